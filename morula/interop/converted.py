"""Objects that NumPy's functions, or those of math, make arrays or numbers of themselves.

An object with an `__array__` is the array that it gives, one with `__len__` and `__getitem__` the
array of its items; where a number is asked for, `__float__` or `__complex__` gives it. These methods
are Python, so a call means theirs and then what it means for arrays and numbers.
Tests: tests/interop/test_converted.py
"""

from __future__ import annotations

import cmath
import math
import operator
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, NamedTuple

import numpy as np

from morula.core.extend import (
    general,
    is_constant,
    meet,
    non_differentiable,
    registry,
)
from morula.core.general import Claim
from morula.interop.meanings import Args, as_it_is, claim
from morula.interop.object_arrays import holds_objects
from morula.interop.protocols import ARRAY_FUNCTION, METHODS, OF_ARRAYS, OPERATORS, UFUNCS, follows
from morula.rules.mathematics import are_numbers, multiplied, sum_of_products
from morula.rules.objects import is_by_identity

# How an object is converted.
ARRAY, SEQUENCE, NUMBER = "array", "sequence", "number"
ITEMS, ENTRIES = "items", "entries"  # some of those in a list, of those in an array of objects

PLAIN = frozenset({np.ndarray, np.float64, float, int, complex, bool, str, type(None), slice, dict})
# Python's own: NumPy has ways of its own with them.
OF_PYTHON = (str, bytes, dict, list, tuple, set, frozenset)


class Asks(NamedTuple):
    """What a call asks its operands for: numbers of a type, or none; arrays or not."""

    number: type | None
    arrays: bool


def conversion(x: Any, asks: Asks) -> str | None:
    """How what is asked for is made of x, if by code of the user's."""
    t = type(x)
    if t is np.ndarray and holds_objects(x):
        some = asks.number is not None and any([conversion(v, asks) for v in x.flat])
        return ENTRIES if some else None
    if t in PLAIN:
        return None
    if t in (list, tuple):
        return ITEMS if any([conversion(item, asks) for item in all_within(x)]) else None
    if asks.arrays and follows(t, "__array__"):
        how = ARRAY
    elif asks.arrays and is_sequence(t):
        how = SEQUENCE
    elif asks.number is not None and (follows(t, "__float__") or follows(t, "__complex__")):
        how = NUMBER
    else:
        return None
    if hasattr(t, "__array_ufunc__") or hasattr(t, "__array_function__"):
        return None
    meet(t)
    return how if is_by_identity(x) else None


def is_plain(x: Any) -> bool:
    """Is it a number, or an array of numbers?"""
    return type(x) in PLAIN and not (type(x) is np.ndarray and holds_objects(x))


def is_sequence(t: type) -> bool:
    """Are its objects sequences to NumPy, by methods of their own?"""
    return follows(t, "__getitem__") and follows(t, "__len__") and not issubclass(t, OF_PYTHON)


def all_within(items: Any) -> list[Any]:
    """What a list holds, and the lists in it, that is neither a number nor an array.

    Nothing, quickly, where all are. Lists may hold themselves.
    """
    found: list[Any] = []
    waiting, seen = [items], {id(items)}
    while waiting:
        inner = waiting.pop()
        if set(map(type, inner)) <= PLAIN:
            continue
        for x in inner:
            if type(x) not in (list, tuple):
                found.append(x)
            elif id(x) not in seen:
                seen.add(id(x))
                waiting.append(x)
    return found


def asked_by(fn: Any, args: Args, kwargs: dict[str, Any]) -> Asks:
    """What a call asks its operands for."""
    return asks_for(fn, args, dtype_among((kwargs.get("dtype"), *args[1:2])))


def asks_for(fn: Any, args: Args, dtype: Any) -> Asks:
    """The same of a call that was given this dtype, if it makes an array."""
    if type(fn) is BuiltinFunctionType and fn.__module__ in NUMBERS:
        return Asks(None if fn in AS_THEY_ARE else NUMBERS[fn.__module__], False)
    if fn in WRITERS and isinstance(args[0], np.ndarray):
        dtype = args[0].dtype
    elif fn not in MAKERS:
        dtype = None
    kind = None if dtype is None else np.dtype(dtype).kind
    return Asks(float if kind == "f" else complex if kind == "c" else None, True)


def dtype_among(options: Args) -> Any:
    """The first of them that is a dtype; None for none."""
    for x in options:
        if x is not None:
            with suppress(TypeError):  # it is an order
                return np.dtype(x)
    return None


MAKERS = (
    np.array,
    np.asarray,
    np.asanyarray,
    np.ascontiguousarray,
    np.asfortranarray,
    np.ndarray.astype,
)
WRITERS = (operator.setitem, np.ndarray.__setitem__, np.ndarray.fill)
OF_ITEMS = (math.fsum, math.prod)  # an object that these are given is iterated over
NUMBERS: dict[str, type] = {math.__name__: float, cmath.__name__: complex}
AS_THEY_ARE = (math.prod, getattr(math, "sumprod", math.prod))  # by the operators of the items
non_differentiable(conversion, is_plain, is_sequence, all_within, asked_by, asks_for, dtype_among)


# -- what calls mean -------------------------------------------------------------------------------


def by_conversion(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The call with what its operands are converted to."""
    asks = asked_by(fn, args, kwargs)
    new = [converted(x, asks) for x in args]
    named = {name: converted(x, asks) for name, x in kwargs.items()}
    if any([conversion(x, asks) for x in (*new, *named.values())]):
        return as_it_is(fn, args, kwargs)  # no array is given: it raises
    return fn(*new, **named)


def converted(x: Any, asks: Asks) -> Any:
    """What is made of one operand."""
    how = conversion(x, asks)
    if how == ITEMS:
        return type(x)([converted(item, asks) for item in x])
    if how == ENTRIES:
        return np.reshape(np.array([converted(v, asks) for v in x.ravel().tolist()]), x.shape)
    if how == ARRAY:
        found = x.__array__()
        return found if isinstance(found, np.ndarray) else x
    if how == NUMBER:
        return asks.number(x)
    if how == SEQUENCE:
        try:
            return [converted(item, asks) for item in x]
        except KeyError:  # it is like a dict, which is no sequence
            return x
    return x


def by_operators(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Products of objects, and sums of them, by the operators of their class."""
    return multiplied(args[0], **kwargs) if fn is math.prod else sum_of_products(*args)


BY_CONVERSION, BY_OPERATORS = claim(by_conversion), claim(by_operators)


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means that converts one of its operands."""
    if type(fn) is BuiltinFunctionType and fn in AS_THEY_ARE:
        n = 1 if fn is math.prod else 2
        items = [v for x in values[:n] if type(x) in (list, tuple) for v in x]
        return None if are_numbers([*items, *values[n:]]) else BY_OPERATORS
    if all(map(is_plain, values)) or not may_convert(fn, values):
        return None
    asks = asks_for(fn, values, dtype_among(values[1:]) if fn in MAKERS else None)
    converts = any([conversion(x, asks) for x in values])
    return BY_CONVERSION if converts and not is_constant(fn) else None


def may_convert(fn: Any, values: Args) -> bool:
    """Does a function convert operands by itself? That is asked before any of them is looked into."""
    kind = type(fn)
    if kind is FunctionType:
        module = str(fn.__module__)
        return module.startswith(OF_ARRAYS_ONLY) and registry.registry.get(fn) is not None
    if kind is ARRAY_FUNCTION:  # some of them ask for a method of that name first
        name = ALIASES.get(fn.__name__, fn.__name__)
        return type(values[0]) in PLAIN or not hasattr(type(values[0]), name)
    if kind is BuiltinFunctionType:
        if fn in OF_ITEMS:
            return all([type(x) in (list, tuple) for x in values[:1]])
        if fn in OPERATORS or fn in IN_PLACE:
            return is_of_arrays(fn.__name__, *values)
        if fn is operator.setitem:
            return isinstance(values[0], OF_ARRAYS)
        return fn in MAKERS or fn.__module__ in NUMBERS
    if kind is np.ufunc:
        return True
    if kind not in METHODS_OF or not issubclass(fn.__objclass__, (*OF_ARRAYS, np.ufunc)):
        return False
    is_operator = fn.__name__ in METHODS or fn.__name__ in METHODS_IN_PLACE
    return not is_operator or is_of_arrays(fn.__name__.strip("_"), *values)


def is_of_arrays(name: str, x: Any, y: Any, *_: Any) -> bool:
    """Is it NumPy that answers an operator, and not the class of the other operand?"""
    if not isinstance(x, OF_ARRAYS):
        return isinstance(y, OF_ARRAYS) and not hasattr(type(x), f"__{name}__")
    return getattr(y, "__array_priority__", 0.0) <= 0.0


IN_PLACE = {getattr(operator, f"i{name}") for name in UFUNCS}
METHODS_IN_PLACE = {f"__i{name}__" for name in UFUNCS}
ALIASES = {"amax": "max", "amin": "min", "around": "round"}
# Functions written in Python that have rules, for arrays, and take nothing else.
OF_ARRAYS_ONLY = ("scipy.fft", "scipy.linalg", "scipy.signal", "scipy.special")
METHODS_OF = (MethodDescriptorType, WrapperDescriptorType)
non_differentiable(may_convert, is_of_arrays)
general.CLAIMS.insert(0, claims)
general.UNCLAIMED.update({np.float64: None, np.complex128: None, np.ndarray: is_plain})
general.COMPILED.update((np.ufunc, ARRAY_FUNCTION))
