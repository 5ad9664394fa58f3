"""Classes that say themselves what NumPy's functions do with their objects, as those of pint do.

By NumPy's protocols: `__array_ufunc__` for ufuncs and the operators of arrays, `__array_function__`
for the other functions. They are Python, so a call means theirs. Arrays of libraries with rules of
their own, which go by value, are left to those.
Tests: tests/interop/test_protocols.py
"""

from __future__ import annotations

import operator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    COMPILED_METHODS,
    general,
    is_own,
    meet,
    non_differentiable,
    resolved_by,
    stays_general,
)
from morula.core.general import Claim
from morula.interop.meanings import Args, as_it_is, claim
from morula.rules.objects import attempts, is_by_identity, is_python, method_of
from morula.rules.own_classes import ARITHMETIC

ARRAY_FUNCTION = type(np.sum)


def follows(t: type, name: str) -> bool:
    """Does a class answer by code of its own, which is Python?"""
    return type(getattr(t, name, None)) is FunctionType and not is_own(t)


def speakers(values: Any, name: str) -> list[Any]:
    """The objects that are asked, the first of each class, a subclass before its bases."""
    found: list[Any] = []
    for x in values:
        t = type(x)
        if not follows(t, name) or any(type(other) is t for other in found):
            continue
        meet(t)
        if not is_by_identity(x) and not isinstance(x, (tuple, np.ndarray)):
            continue
        place = next((i for i, other in enumerate(found) if isinstance(x, type(other))), len(found))
        found.insert(place, x)
    return found


def operands(args: Args, kwargs: dict[str, Any]) -> list[Any]:
    """What a function of NumPy's looks at: arguments, and what lists and tuples of them hold."""
    found: list[Any] = []
    for x in (*args, *kwargs.values()):
        if type(x) in (list, tuple):
            found += x
        else:
            found.append(x)
    return found


def types_of(values: Any, name: str) -> tuple[type, ...]:
    """The classes that take part."""
    return tuple(dict.fromkeys([type(x) for x in values if hasattr(type(x), name)]))


non_differentiable(follows, speakers, types_of)


# -- what calls mean -------------------------------------------------------------------------------


def ufunc_by_class(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A ufunc, as the classes of its operands say."""
    if len(args) > fn.nin:
        kwargs = {**kwargs, "out": args[fn.nin :]}
        args = args[: fn.nin]
    elif "out" in kwargs and not isinstance(kwargs["out"], tuple):
        kwargs = {**kwargs, "out": (kwargs["out"],)}
    for x in speakers((*args, *kwargs.get("out", ())), "__array_ufunc__"):
        y = x.__array_ufunc__(fn, "__call__", *args, **kwargs)
        if y is not NotImplemented:
            return y
    return as_it_is(fn, args, kwargs)  # raises


def ufunc_method_by_class(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`reduce`, `outer` and the like of a ufunc, as the classes of its operands say."""
    ufunc, *rest = args
    n, names = UFUNC_METHODS[fn.__name__]
    given = {**dict(zip(names, rest[n:], strict=False)), **kwargs}
    out = given.pop("out", None)
    outs = () if out is None else out if isinstance(out, tuple) else (out,)
    if outs:
        given["out"] = outs
    for x in speakers((*rest[:n], *outs), "__array_ufunc__"):
        y = x.__array_ufunc__(ufunc, fn.__name__, *rest[:n], **given)
        if y is not NotImplemented:
            return y
    return as_it_is(fn, args, kwargs)  # raises


UFUNC_METHODS: dict[str, tuple[int, tuple[str, ...]]] = {  # operands, and what may follow them
    "reduce": (1, ("axis", "dtype", "out", "keepdims", "initial", "where")),
    "accumulate": (1, ("axis", "dtype", "out")),
    "reduceat": (2, ("axis", "dtype", "out")),
    "outer": (2, ()),
    "at": (3, ()),
}


def function_by_class(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Another function of NumPy's, as the classes of its operands say."""
    values = operands(args, kwargs)
    types = types_of(values, "__array_function__")
    for x in speakers(values, "__array_function__"):
        y = x.__array_function__(fn, types, args, kwargs)
        if y is not NotImplemented:
            return y
    return as_it_is(fn, args, kwargs)  # raises


def operator_by_class(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An operator of an array or of a scalar with such an operand, which is its ufunc."""
    name = fn.__name__.strip("_")
    if type(fn) is METHOD and len(args) == 2 and gives_up(*args):
        return NotImplemented
    if name in OTHERS:
        return OTHERS[name](*args)
    if name not in UFUNCS and name[0] == "r":
        return (UFUNCS | OTHERS)[name[1:]](args[1], args[0])
    out = () if name in UFUNCS else (args[0],)
    short = shorter_power(name, args)
    if short is not None:
        return short(args[0], *out)
    return UFUNCS[name if name in UFUNCS else name[1:]](*args, *out)


def gives_up(x: Any, other: Any) -> bool:
    """Does an operator method of an array leave the other to say what is done?"""
    if hasattr(type(other), "__array_ufunc__"):
        return type(other).__array_ufunc__ is None
    return getattr(other, "__array_priority__", LEAST) > getattr(x, "__array_priority__", LEAST)


LEAST = -1_000_000.0  # NumPy's, for what names no priority


def shorter_power(name: str, args: Args) -> Any:
    """The ufunc of one operand that arrays call for some powers, or None."""
    x, *exponent = args
    if name not in ("pow", "ipow") or type(exponent[0]) not in (int, float):
        return None
    return SHORT.get(exponent[0]) if np.asarray(x).dtype.kind in "fc" else None


non_differentiable(shorter_power, gives_up)
SHORT = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal}
UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
}
OTHERS = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "divmod": np.divmod}
OF_ARRAYS = (np.ndarray, np.generic)
OPERATORS = {getattr(operator, name) for name in UFUNCS}
FURTHER = {operator.neg, operator.pos, operator.abs, abs, divmod}
OF_ANY_PLACE = {*OPERATORS, *FURTHER, *[getattr(operator, f"i{name}") for name in UFUNCS]}
METHODS = {f"__{prefix}{name}__" for name in UFUNCS for prefix in ("", "r")}
METHOD = type(np.ndarray.__mul__)
UFUNC_METHOD = type(np.ufunc.reduce)
OF_UFUNC, OF_UFUNC_METHOD, OF_FUNCTION, OF_OPERATOR = map(
    claim, (ufunc_by_class, ufunc_method_by_class, function_by_class, operator_by_class)
)


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means in which such an object takes part."""
    kind = type(fn)
    if kind is np.ufunc:
        return OF_UFUNC if speakers(values, "__array_ufunc__") else None
    if kind is UFUNC_METHOD and fn.__objclass__ is np.ufunc:
        return OF_UFUNC_METHOD if speakers(values[1:], "__array_ufunc__") else None
    if kind is ARRAY_FUNCTION:
        return OF_FUNCTION if speakers(operands(values, {}), "__array_function__") else None
    return OF_OPERATOR if is_operator(kind, fn, values) else None


def is_operator(kind: type, fn: Any, values: Args) -> bool:
    """Is it an operator of an array with such an object?"""
    if kind is METHOD:
        asked = fn.__name__ in ARITHMETIC and issubclass(fn.__objclass__, OF_ARRAYS)
    else:
        asked = kind is BuiltinFunctionType and (fn in OF_ANY_PLACE and means_ufunc(fn, values))
    return asked and bool(speakers(values, "__array_ufunc__"))


def means_ufunc(fn: Any, values: Args) -> bool:
    """Is an operator that of an array, because no class has a Python method for it?"""
    return any([isinstance(x, OF_ARRAYS) for x in values]) and is_compiled_for(fn, values)


def is_compiled_for(fn: Any, values: Args) -> bool:
    """Has no class of the operands a method of its own for an operator?"""
    found = methods(fn, values)
    return not any(map(is_python, found)) and not any([is_of_another(m, fn) for m in found])


def is_of_another(method: Any, fn: Any) -> bool:
    """Is it the compiled method of another operator, as in `__mul__ = np.ndarray.__matmul__`?"""
    if type(method) not in COMPILED_METHODS:
        return False
    return not any([method.__name__ in names for names in resolved_by.get(id(fn), ())])


def methods(fn: Any, values: Args) -> list[Any]:
    """The methods by which Python finds what an operator of these values does."""
    if fn is divmod:
        names = ("__divmod__", "__rdivmod__")
        return [method_of(type(x), name) for x, name in zip(values, names, strict=True)]
    if len(values) == 2:
        return [method for method, _ in attempts(fn, *values)]
    return [method_of(type(values[0]), f"__{fn.__name__}__")]


non_differentiable(methods)


def is_class(x: Any) -> bool:
    """Is it such a class, so that a program with it is not specialised?"""
    return isinstance(x, type) and any(
        follows(x, name) for name in ("__array_ufunc__", "__array_function__")
    )


general.CLAIMS.append(claims)
stays_general.append(is_class)
