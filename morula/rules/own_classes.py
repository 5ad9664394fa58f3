"""Classes of numbers and arrays that say in Python what is done with them, and these without the class.

Rules compute with plain numbers and arrays: a pullback that multiplied by an object of such a class
would do whatever its author has made of `*`.
Tests: tests/interop/test_array_classes.py
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from morula.core.extend import (
    IMMUTABLE_TYPE,
    is_own,
    non_differentiable,
    says_otherwise,
    stands_apart,
)
from morula.rules.calls import MISSING, own_method, with_derivative_of

NUMERIC = """
    all any argmax argmin clip conj conjugate cumprod cumsum dot max mean min prod round std sum
    trace var
"""
METHODS = {*NUMERIC.split()}
TWO_SIDED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
ARITHMETIC = {f"__{prefix}{name}__" for name in TWO_SIDED for prefix in ("", "r", "i")}
ARITHMETIC_IN_PLACE = {f"__i{name}__" for name in TWO_SIDED}
ARITHMETIC |= {"__neg__", "__pos__", "__abs__", "__divmod__", "__rdivmod__"}
OPERATORS = {
    *ARITHMETIC,
    *("__invert__", "__and__", "__or__", "__xor__", "__lshift__", "__rshift__"),
    *("__lt__", "__le__", "__eq__", "__ne__", "__ge__", "__gt__"),
}
PROTOCOLS = {"__array_ufunc__", "__array_function__", "__array_wrap__"}
# Methods that give, or put in, numbers as they are.
MOVING = """
    __getitem__ __setitem__ __delitem__ astype byteswap choose compress copy diagonal fill flatten
    getfield item itemset partition put ravel repeat reshape searchsorted setfield sort squeeze
    swapaxes take tolist transpose
"""
MOVES = ARITHMETIC_IN_PLACE | {*MOVING.split()}
SAID_BY_ARRAYS = METHODS | OPERATORS | PROTOCOLS | MOVES

# What a number is without its class.
PLAIN: dict[type, Any] = {
    np.generic: lambda x: x.dtype.type(x),
    float: float.__float__,
    int: int.__int__,
    complex: complex.__complex__,
    Decimal: Decimal,
    Fraction: lambda x: Fraction(x.numerator, x.denominator),
}


def has_ways_of_its_own(t: type) -> bool:
    """Is it a class of arrays or numbers that says in Python what is done with them?"""
    if t.__flags__ & IMMUTABLE_TYPE:
        return False
    base = next((base for base in (np.ndarray, *PLAIN) if issubclass(t, base)), None)
    if base is None or stands_apart(t) is not None or is_own(t):
        return False
    names = SAID_BY_ARRAYS if base is np.ndarray else ARITHMETIC
    return any(
        name in names and says_otherwise(name, value)
        for owner in t.__mro__[: t.__mro__.index(base)]
        for name, value in vars(owner).items()
    )


def iterates_itself(t: type) -> bool:
    """Is it a class of lists or tuples that says in Python what the items are?"""
    derived = t not in SEQUENCES and issubclass(t, SEQUENCES)
    return derived and own_method(t, "__iter__") is not MISSING


SEQUENCES = (list, tuple)


def types_in(values: Any) -> set[type]:
    """The types of values, and of what lists and tuples among them hold.

    No code of a class is run for it, as iterating over an object of a derived class would.
    """
    types: set[type] = set()
    waiting, seen = [values], {id(values)}
    while waiting:
        xs = waiting.pop()
        new = set(map(type, xs))
        types |= new
        if not new.isdisjoint(SEQUENCES):
            inner = [x for x in xs if type(x) in SEQUENCES and id(x) not in seen]
            seen.update(map(id, inner))
            waiting += inner
    return types


def plain(x: Any) -> Any:
    """Such an array or number, or those that a list or a tuple holds, without the class."""
    if type(x) in SEQUENCES:
        return type(x)([plain(item) for item in x])
    if iterates_itself(type(x)):
        return [plain(item) for item in x]
    if not has_ways_of_its_own(type(x)):
        return x
    return (
        np.ndarray.view(x, np.ndarray)
        if isinstance(x, np.ndarray)
        else with_derivative_of(number(x), x)
    )


def number(x: Any) -> Any:
    """What a number is without its class."""
    return next(of(x) for base, of in PLAIN.items() if isinstance(x, base))


non_differentiable(has_ways_of_its_own, iterates_itself, number, types_in)
