"""Rules of memoryview, np.frombuffer and np.ndarray(buffer=): other ways to the memory of an array.

From then on the cotangents of that array are kept beside its memory (memory.py), where all that is
read or written through such a view finds them.
Tests: tests/rules/arrays/test_memoryviews.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    call,
    general,
    hands_over,
    memory,
    non_differentiable,
    rrule,
    stays_general,
)
from morula.rules.arrays.inplace import SHARED, refuse
from morula.rules.arrays.memory import owner_of
from morula.rules.arrays.types import Anything
from morula.rules.iteration import BY_GENERATOR

stays_general.append(lambda x: x is memoryview or isinstance(x, memoryview))


def is_of_array(m: Any) -> bool:
    """Is the memory that a memoryview shows, or an array is made in, that of an array?"""
    return not isinstance(owner_of(np.asarray(m)).base, SHARED)


def view_of(m: memoryview) -> np.ndarray:
    """The array of the entries that a memoryview shows, in their memory."""
    return np.asarray(m)


def entries_of(m: memoryview) -> Iterator[Any]:
    """The entries, one by one."""
    for i in range(len(m)):
        yield m[i]


non_differentiable(is_of_array)
hands_over(view_of)


@rrule(memoryview)
def _(x: np.ndarray):
    memory.write_to(owner_of(x))
    return memoryview(x), lambda ȳ: (NONE,)


@rrule(view_of)
def _(m: memoryview):
    y = view_of(m)
    memory.write_to(owner_of(y))
    return y, lambda ȳ: (NONE,)


@rrule(operator.getitem)
def _(m: memoryview, index: Anything):
    y = m[index]
    if isinstance(y, (memoryview, int)):
        return y, lambda ȳ: (NONE, NONE)
    _, back = by_entries(operator.getitem, m, index)
    return y, lambda ȳ: (back(ȳ)[1], NONE)


@rrule(memoryview.tolist, by_identity=True)
def _(m: memoryview):
    y, back = by_entries(np.ndarray.tolist, m)
    return y, lambda ȳ: (back(ȳ)[1],)


def by_entries(fn: Any, m: memoryview, *args: Any, **kwargs: Any) -> Any:
    """A call with the array of what a memoryview shows."""
    if not is_of_array(m):
        return general.opaque(fn, (m, *args), kwargs)
    return call(fn, call(view_of, m)[0], *args, **kwargs)


@rrule(operator.setitem, by_identity=True)
def _(m: memoryview, index: Anything, value: Anything):
    if not is_of_array(m):
        raise refuse("x[i] = v of a memoryview of what is no array")
    raise_if_invalid(m, index, value)
    if isinstance(value, (bytes, bytearray)):
        value = np.frombuffer(value, m.format)
    _, back = call(operator.setitem, call(view_of, m)[0], index, value)
    return None, lambda ȳ: (NONE, NONE, back(ZERO)[3])


def raise_if_invalid(m: memoryview, index: Any, value: Any) -> None:
    """Raise what `m[index] = value` raises; else, change nothing."""
    before = np.array(m[index])
    m[index] = value
    np.asarray(m)[index] = before


non_differentiable(raise_if_invalid)


def _as_array(primal: Any) -> None:
    @rrule(primal)
    def _(m: memoryview, *args: Anything, **kwargs: Any):
        y, back = by_entries(primal, m, *args, **kwargs)
        return y, lambda ȳ: (back(ȳ)[1], *[NONE] * (len(args) + len(kwargs)))


for _primal in (np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.copy):
    _as_array(_primal)
del _primal


@rrule(np.frombuffer)
def _(buffer: np.ndarray | memoryview, *args: Anything, **kwargs: Any):
    y = np.frombuffer(buffer, *args, **kwargs)
    return y, in_memory_of(buffer, np.frombuffer, y, 1 + len(args) + len(kwargs))


def array_in(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """An array that is made in new memory, or in that of the buffer among the arguments."""
    y = fn(*args, **kwargs)
    given = (*args, *kwargs.values())
    buffer = next((x for x in given if isinstance(x, (np.ndarray, memoryview))), y)
    return y, in_memory_of(buffer, fn, y, len(given))


@rrule(np.ndarray)
def _(*args: Anything, **kwargs: Any):
    return array_in(np.ndarray, *args, **kwargs)


@rrule(np.ndarray.__new__)
def _(cls: type, *args: Anything, **kwargs: Any):
    return array_in(np.ndarray.__new__, cls, *args, **kwargs)


@rrule(np.from_dlpack)
def _(x: np.ndarray, *, device=None, copy=None):
    np.from_dlpack(x, device=device, copy=copy)  # may raise
    y, back = call(np.array, x, copy=True) if copy else call(operator.getitem, x, Ellipsis)
    return y, lambda ȳ: (back(ȳ)[1],)


def in_memory_of(buffer: Any, fn: Any, y: np.ndarray, n: int) -> Callable[[Any], Any]:
    """The pullback of a function of n arguments that makes an array in the memory of one of them."""
    if not is_of_array(buffer):
        return general.opaque(view_of, (buffer,), {})[1]
    memory.write_to(owner_of(y))
    return lambda ȳ: (NONE,) * n


BY_GENERATOR[memoryview] = entries_of
