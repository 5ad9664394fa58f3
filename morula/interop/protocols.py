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

from morula.core.extend import general, meet, non_differentiable, stays_general
from morula.core.general import Claim
from morula.interop.meanings import Args, as_it_is, claim
from morula.rules.objects import is_by_identity

ARRAY_FUNCTION = type(np.sum)


def follows(t: type, name: str) -> bool:
    """Does a class answer by code of its own, which is Python?"""
    return type(getattr(t, name, None)) is FunctionType and not issubclass(t, np.ndarray)


def speakers(values: Any, name: str) -> list[Any]:
    """The objects that are asked, the first of each class, a subclass before its bases."""
    found: list[Any] = []
    for x in values:
        t = type(x)
        if not follows(t, name) or any(type(other) is t for other in found):
            continue
        meet(t)
        if not is_by_identity(x) and not isinstance(x, tuple):
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
    return UFUNCS[name](*args) if name in UFUNCS else UFUNCS[name[1:]](args[1], args[0])


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
OF_ARRAYS = (np.ndarray, np.generic)
OPERATORS = {getattr(operator, name) for name in UFUNCS}
METHODS = {f"__{reflected}{name}__" for name in UFUNCS for reflected in ("", "r")}
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
    """Is it an operator of an array, on the left, with such an object?"""
    if len(values) != 2:
        return False
    if kind is METHOD:
        of_array = fn.__name__ in METHODS and issubclass(fn.__objclass__, OF_ARRAYS)
    else:
        of_array = (
            isinstance(values[0], OF_ARRAYS) and kind is BuiltinFunctionType and fn in OPERATORS
        )
    return of_array and bool(speakers(values[1:], "__array_ufunc__"))


def is_class(x: Any) -> bool:
    """Is it such a class, so that a program with it is not specialised?"""
    return isinstance(x, type) and any(
        follows(x, name) for name in ("__array_ufunc__", "__array_function__")
    )


general.CLAIMS.append(claims)
stays_general.append(is_class)
