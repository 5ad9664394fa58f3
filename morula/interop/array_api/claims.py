"""Which calls are those of the array API standard, and what they mean.

What has a formula of its own (formulas.py) stays with the library's arrays. Every other function of
the standard, and methods and functions that NumPy knows by the same name, are called as they are
and differentiated as NumPy's of the same name at the same numbers, which are compared with what the
library gave. What neither knows is an error where a cotangent reaches its result.
Tests: tests/interop/test_array_api.py
"""

from __future__ import annotations

import operator
import sys
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType
from typing import Any

import numpy as np

from morula.core.extend import (
    general,
    non_differentiable,
    opaque,
    registry,
    stays_general,
    unsupported,
)
from morula.core.general import Claim
from morula.interop.array_api import formulas
from morula.interop.array_api.arrays import by_standard, goes_by_value, host, valued
from morula.interop.array_api.formulas import PAIRED, SLOPES, is_plain_key
from morula.interop.array_api.kinds import (
    QUESTIONS,
    as_numpy_dtype,
    holds_array,
    is_array,
    is_class,
    is_inexact,
    is_namespace,
    is_of_standard,
    name_of,
    namespaces,
)
from morula.interop.meanings import (
    ITERATING,
    NUMBERS,
    Args,
    array_of,
    as_it_is,
    claim,
    handed_on,
    iterates,
    plainly,
)
from morula.mixed_mode.push import opaque as opaque_forward

# -- by NumPy --------------------------------------------------------------------------------------


def numpys(name: str) -> Any:
    """NumPy's function of a name in the standard, or None."""
    *part, last = name.split(".")
    return getattr(getattr(np, part[0]) if part else np, last, None)


def by_numpy(counterpart: Any, fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The call as it is, with the derivative of NumPy's at the same numbers."""
    if kwargs.get("out") is not None:
        return refused(fn, args, kwargs)
    y = as_it_is(fn, args, kwargs)
    named = {key: to_numpy(x) for key, x in kwargs.items() if key != "device"}
    return with_values(counterpart(*[to_numpy(x) for x in args], **named), y)


def to_numpy(x: Any) -> Any:
    """An array, also in a list or a tuple, or a dtype of the library's, as NumPy's."""
    if is_array(x):
        return host(x)
    if type(x) in (list, tuple) and holds_array(x):
        return type(x)([to_numpy(item) for item in x])
    return as_numpy_dtype(x) if is_dtype(x) else x


def is_dtype(x: Any) -> bool:
    """Is it a dtype of a library's own?"""
    return any(type(x) is type(xp.float64) for xp in namespaces.values())


def with_values(z: Any, y: Any) -> Any:
    """What a function gave, in the same structure as NumPy's."""
    if type(y) in (list, tuple) or (isinstance(y, tuple) and hasattr(y, "_fields")):
        items = [with_values(z[i], y[i]) for i in range(len(y))]
        return items if type(y) is list else made_like(y, items)
    if is_array(y):
        return valued(z, y) if is_inexact(y) else y
    return z if isinstance(y, (np.ndarray, np.generic, float, complex)) else y


def made_like(y: Any, items: Any) -> Any:
    """A tuple of the type of another."""
    return tuple(items) if type(y) is tuple else type(y)(*items)


def by_its_name(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function of the standard."""
    return by_numpy(numpys(name_of(fn) or ""), fn, args, kwargs)


def by_itself(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function of NumPy's or SciPy's that takes such arrays."""
    return by_numpy(fn, fn, args, kwargs)


def by_method(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A method that NumPy's arrays have, too."""
    return by_numpy(getattr(np.ndarray, fn.__name__), fn, args, kwargs)


def bound(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A compiled method that is bound to an array."""
    return by_numpy(getattr(np.ndarray, fn.__name__), unbound(fn), (array_of(fn), *args), kwargs)


def unbound(method: Any) -> Any:
    """The method of the class."""
    return getattr(type(method.__self__), method.__name__)


# -- with formulas of their own --------------------------------------------------------------------


def standard_name(fn: Any) -> str:
    """The name in the standard of a function or an operator."""
    return name_of(fn) or OPERATORS[id(fn)]


def of_one(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An elementwise function."""
    return formulas.elementwise(standard_name(fn), fn, *args)


def of_two(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An elementwise function of two arrays."""
    return formulas.pairwise(standard_name(fn), fn, *args)


def absolute(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """|x|."""
    return formulas.magnitude(fn, *args)


def part(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`real`, `imag`, `conj`."""
    return formulas.part_of(standard_name(fn), fn, *args)


def where(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A choice."""
    return formulas.chosen(fn, *args)


def reduction(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A sum, a mean, a maximum or minimum."""
    if len(args) > 2 or not set(kwargs) <= {"axis", "keepdims"}:
        return by_its_name(fn, args, kwargs)
    axis = args[1] if len(args) == 2 else kwargs.get("axis")
    return REDUCTIONS[standard_name(fn)](fn, args[0], axis, bool(kwargs.get("keepdims")))


def product(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A product of matrices."""
    return formulas.product(fn, *args)


def reshaped(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Another shape."""
    return formulas.reshaped(fn, args[0], args[1:], kwargs)


def permuted(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Other axes."""
    return formulas.permuted(fn, args[0], args[1:], kwargs)


def broadcast(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A larger shape."""
    return formulas.broadcast(fn, *args, **kwargs)


def cast(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Another dtype, or a copy."""
    return formulas.cast(fn, args[0], args[1:], kwargs)


def joined(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Arrays side by side."""
    if len(args) > 2 or not set(kwargs) <= {"axis"}:
        return by_its_name(fn, args, kwargs)
    return formulas.joined(fn, tuple(args[0]), args[1] if len(args) == 2 else kwargs.get("axis", 0))


def entries(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x[key]`."""
    return formulas.taken(*args)


def transposed(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.T`, `x.mT`."""
    x, name = args
    return formulas.permuted(getattr_of(name), x, (), {})


def getattr_of(name: str) -> Any:
    """The function that reads an attribute."""
    return operator.attrgetter(name)


# -- what any library needs ------------------------------------------------------------------------


def number(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function of Python's numbers, or a conversion to one."""
    return fn(*[host(x).item() if is_array(x) else x for x in args], **kwargs)


def conversion(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.__float__()`, `x.item()`."""
    return getattr(host(args[0]), fn.__name__)(*args[1:], **kwargs)


def by_rows(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What iterates: over the rows of an array."""
    given = [rows_of(x) if is_array(x) else x for x in args]
    return fn(*given, **kwargs)


def rows_of(x: Any) -> Any:
    """The rows."""
    return tuple([formulas.taken(x, (i, ...)) for i in range(x.shape[0])])


def rows(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An iterator over the rows."""
    return iter(rows_of(args[0]))


def exported(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`np.asarray(x)`, `np.from_dlpack(x)`."""
    x, *more = args
    return (np.asarray if fn is np.from_dlpack else fn)(host(x), *more, **kwargs)


def refused(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What changes an array in place."""
    raise unsupported(
        f"{getattr(fn, '__name__', fn)}, which changes an array of the array API standard in place,",
        "such arrays go by value in differentiated code",
        "make a new one, by where or concat for example",
    )


REASON = "it is no function of the array API standard, and none that NumPy knows by this name"


def unknown(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A call that has no rule."""
    return opaque(fn, args, kwargs, REASON)  # type: ignore[call-arg]


def unknown_forward(run: Any, fn: Any, ḟ: Any, args: Args, tangents: Any, keywords: Any) -> Any:
    """The same in forward mode."""
    return opaque_forward(run, fn, ḟ, args, tangents, keywords, REASON)


# -- which calls -----------------------------------------------------------------------------------

BY_ITS_NAME, BY_ITSELF, BY_METHOD, BOUND = map(claim, (by_its_name, by_itself, by_method, bound))
OF_ONE, OF_TWO, ABSOLUTE, PART = map(claim, (of_one, of_two, absolute, part))
REDUCTION, PRODUCT, ENTRIES, TRANSPOSED = map(claim, (reduction, product, entries, transposed))
NUMBER, CONVERSION, BY_ROWS, ROWS = map(claim, (number, conversion, by_rows, rows))
EXPORTED, REFUSED = claim(exported), claim(refused)
HANDED_ON, PLAINLY = claim(handed_on), claim(plainly)
RESHAPED, PERMUTED, JOINED, CAST = map(claim, (reshaped, permuted, joined, cast))
UNKNOWN = Claim(unknown, unknown_forward)

REDUCTIONS = {
    "sum": formulas.summed, "mean": formulas.mean, "max": formulas.extreme, "min": formulas.extreme,
}  # fmt: skip
FORMULAS: dict[str, Claim] = {
    **dict.fromkeys(SLOPES, OF_ONE),
    **dict.fromkeys(PAIRED, OF_TWO),
    **dict.fromkeys(REDUCTIONS, REDUCTION),
    **dict.fromkeys(("real", "imag", "conj"), PART),
    **dict.fromkeys(("reshape", "expand_dims", "squeeze"), RESHAPED),
    **dict.fromkeys(("permute_dims", "moveaxis"), PERMUTED),
    **dict.fromkeys(("matrix_transpose", "linalg.matrix_transpose"), PERMUTED),
    **dict.fromkeys(("concat", "stack"), JOINED),
    **dict.fromkeys(("matmul", "linalg.matmul"), PRODUCT),
    "abs": ABSOLUTE, "where": claim(where), "broadcast_to": claim(broadcast), "astype": CAST,
}  # fmt: skip
_OPERATORS = {
    "neg": "negative", "pos": "positive", "abs": "abs", "add": "add", "sub": "subtract",
    "mul": "multiply", "truediv": "divide", "mod": "remainder", "pow": "pow", "matmul": "matmul",
}  # fmt: skip
_CHANGING = "add sub mul truediv mod pow matmul floordiv and or xor lshift rshift"
_ASKING = "lt le eq ne gt ge and_ or_ xor invert lshift rshift floordiv not_ truth"
OF_IN_PLACE = {f"i{k}": v for k, v in _OPERATORS.items() if hasattr(operator, f"i{k}")}
IN_PLACE = {id(getattr(operator, f"i{k}")): f"__i{k}__" for k in _CHANGING.split()}
OPERATORS = (
    {id(getattr(operator, k)): v for k, v in _OPERATORS.items()}
    | {id(getattr(operator, k)): OF_IN_PLACE[k] for k in OF_IN_PLACE}
    | {id(abs): "abs", id(pow): "pow"}
)
CONSTANT = {id(getattr(operator, k)) for k in _ASKING.split()} | {id(bool), id(len)}
CHANGING = {
    "sort", "partition", "fill", "put", "itemset", "resize", "setfield", "setflags", "byteswap",
    "__setitem__", *IN_PLACE.values(),
}  # fmt: skip
CONVERSIONS = {"__float__", "__complex__", "__int__", "__index__", "item", "tolist"}
READ = {"shape", "ndim", "size", "dtype", "device", "nbytes", "itemsize"}
OF_NUMPY = (np.asarray, np.array, np.asanyarray, np.ascontiguousarray, np.from_dlpack)
NUMPYS_FUNCTION = type(np.sum)
METHODS = (FunctionType, MethodDescriptorType, type(list.__len__))


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means that has to do with arrays of the standard."""
    name = name_of(fn)
    if name is not None:
        return of_standard(name, fn, values)
    if is_class(fn):
        return UNKNOWN
    if not namespaces:
        return None
    if type(fn) is not MethodType and is_array(getattr(fn, "__self__", None)):
        return of_bound(fn)
    if not any(map(holds_array, values[:4])):
        return None
    if fn is getattr:
        return of_attribute(*values[:2]) if is_array(values[0]) else None
    if type(fn) is BuiltinFunctionType or isinstance(fn, type):
        found = of_builtin(fn, values)
        if found is not None:
            return found
    if any(fn is other for other in OF_NUMPY):
        return EXPORTED if is_array(values[0]) else OF_ITEM
    if type(fn) in (np.ufunc, NUMPYS_FUNCTION):
        return BY_ITSELF
    if is_array(values[0]) and type(fn) in METHODS and is_method(fn, values[0]):
        return of_method(fn)
    if is_of_scipy(fn) and not any(map(callable, values)):
        return BY_ITSELF
    return of_library(fn) if is_of_library(fn) else None


def is_of_scipy(fn: Any) -> bool:
    """Is it a function of SciPy's, which takes arrays of the standard if it is told so?"""
    return str(getattr(fn, "__module__", None)).split(".")[0] == "scipy"


def is_of_library(fn: Any) -> bool:
    """Is it a function of a library that is a namespace of the standard itself?"""
    package = sys.modules.get(str(getattr(fn, "__module__", None)).split(".")[0])
    return package is not None and is_namespace(package) and not isinstance(fn, type)


def of_library(fn: Any) -> Claim:
    """A function of such a library's that is not in the standard."""
    return BY_SAME_NAME if callable(getattr(np, getattr(fn, "__name__", ""), None)) else UNKNOWN


def by_same_name(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function that has a namesake in NumPy."""
    return by_numpy(numpys(fn.__name__), fn, args, kwargs)


BY_SAME_NAME = claim(by_same_name)


def of_bound(method: Any) -> Claim:
    """A compiled method that is bound to an array."""
    found = of_method(method)
    return BOUND if found is BY_METHOD else PLAINLY if found is PLAINLY else UNKNOWN


def is_method(fn: Any, x: Any) -> bool:
    """Is a function a method of the class of an array?"""
    return getattr(type(x), fn.__name__, None) is fn


def of_standard(name: str, fn: Any, values: Args) -> Claim:
    """A function of the standard, with a formula if its arguments are arrays that can be varied."""
    if name in QUESTIONS:
        return PLAINLY
    found = FORMULAS.get(name)
    if found is not None and has_formula(found, values):
        return found
    if name == "asarray" and is_array(values[0]):
        return CAST
    return BY_ITS_NAME if numpys(name) is not None else UNKNOWN


def has_formula(found: Claim, values: Args) -> bool:
    """Are the operands what the formulas are for: arrays of numbers that have tangents?"""
    if found is JOINED:
        return all(map(is_array, values[0])) and type(values[0]) in (list, tuple)
    n = 2 if found in (OF_TWO, PRODUCT) else 3 if found is FORMULAS["where"] else 1
    operands = values[:n]
    if len(operands) < n or (
        found in (OF_ONE, OF_TWO, ABSOLUTE, PART, PRODUCT) and len(values) > n
    ):
        return False
    return any(is_array(x) and is_inexact(x) for x in operands) and is_array(
        operands[0] if found is not OF_TWO else next(filter(is_array, operands))
    )


def of_builtin(fn: Any, values: Args) -> Claim | None:
    """An operator, or a compiled function of Python's."""
    if id(fn) in IN_PLACE and is_array(values[0]) and hasattr(values[0], IN_PLACE[id(fn)]):
        return REFUSED
    if id(fn) in OPERATORS or id(fn) in CONSTANT:
        return of_operator(fn, values) if any(map(is_array, values)) else None
    if fn is operator.setitem:
        return REFUSED if is_array(values[0]) else of_numpys_item(values)
    if fn is operator.getitem:
        if not is_array(values[0]):
            return of_numpys_item(values)
        return ENTRIES if is_plain_key(values[1]) else INDEXED
    if id(fn) in ITERATING:
        return BY_ROWS if iterates(fn, values, is_array) else None
    if id(fn) in NUMBERS or getattr(fn, "__module__", None) in ("math", "cmath"):
        return NUMBER
    return None


def of_operator(fn: Any, values: Args) -> Claim:
    """An operator with an array among its operands."""
    if id(fn) in CONSTANT or not any(is_array(x) and is_inexact(x) for x in values):
        return PLAINLY
    name = OPERATORS[id(fn)]
    return FORMULAS[name] if len(values) == (1 if name in UNARY else 2) else UNKNOWN


def of_numpys_item(values: Args) -> Claim | None:
    """`v[i] = x` and `v[x]` of an array of NumPy's: with arrays of NumPy's."""
    return OF_ITEM if isinstance(values[0], np.ndarray) else None


def with_numpys(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A call with arrays of NumPy's in the place of the library's."""
    return fn(*[to_numpy(x) for x in args], **{key: to_numpy(x) for key, x in kwargs.items()})


OF_ITEM = claim(with_numpys)
UNARY = {"negative", "positive", "abs"}


def indexed(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x[key]` by arrays of numbers, which may name an entry twice."""
    return by_numpy(operator.getitem, fn, args, kwargs)


INDEXED = claim(indexed)


def of_attribute(x: Any, name: str) -> Claim:
    """`x.name`."""
    if name in ("T", "mT"):
        return TRANSPOSED
    if name in READ or name == "__class__":
        return PLAINLY
    method = getattr(x, name, None)
    if not callable(method):
        return UNKNOWN
    if not isinstance(method, (MethodType, BuiltinFunctionType)):
        goes_by_value(type(method))
    return HANDED_ON


def of_method(fn: Any) -> Claim:
    """A method of an array."""
    name = fn.__name__
    if name in CONVERSIONS:
        return CONVERSION
    if name in ("__array_namespace__", "__len__", "__dlpack_device__", "__bool__"):
        return PLAINLY
    if name in CHANGING:
        return REFUSED
    if name == "__iter__":
        return ROWS
    if name in ("to_device", "copy"):
        return CAST
    if name in ("__array__", "__dlpack__"):
        return UNKNOWN
    return BY_METHOD if hasattr(np.ndarray, name) else UNKNOWN


def recognise(t: type) -> bool:
    """Let arrays of a class go by value, if it is one of the standard's."""
    if is_of_standard(t):
        by_standard(t)
        return True
    return False


def belongs(x: Any) -> bool:
    """Is a callable or a type of the standard, so that a program with it is not specialised?"""
    return name_of(x) is not None or is_class(x)


non_differentiable(unbound, getattr_of, numpys, standard_name, is_dtype)
general.CLAIMS.append(claims)
stays_general.append(belongs)
registry.registry.entry(claims).changed()
