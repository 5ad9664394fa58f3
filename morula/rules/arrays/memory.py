"""Cotangents of arrays whose memory is written to: they are kept beside it, in the same places.

Views of one array are one piece of memory. Its adjoint object is a flat array with one cotangent for
each item, and a mask that says which of them anything has reached: the others are structurally zero.
A view's cotangent is the view of that array at the same offset with the same strides, so that all
aliases find one and the same.

    y = f(x):       x̄ += f̄(ȳ), into the memory of x, at once
    y is new:       ȳ is what its memory holds when the reverse pass comes to f
    x[i] = v:       v̄ is what the memory holds at i, which is zero before that

Tests: tests/rules/arrays/test_inplace.py
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    NotKnown,
    UnsupportedError,
    accumulate,
    beside,
    directly,
    from_memory,
    is_zero,
    memory,
    memory_of,
    non_differentiable,
)
from morula.rules.arrays.structural import Selected, selected
from morula.rules.numbers import is_added_float


def owner_of(x: np.ndarray) -> np.ndarray:
    """The array that stands for all of the memory that x is a view of."""
    while True:
        base = x.base
        if isinstance(base, np.nditer):
            base = operand_of(base, x)
        elif base is not None and not isinstance(base, np.ndarray):
            base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
        if not isinstance(base, np.ndarray):
            return x
        x = base


def operand_of(iterator: np.nditer, item: np.ndarray) -> Any:
    """The operand of an iterator that an item of it is a part of; None: it is a buffer."""
    place = address(item)
    for x in iterator.operands:
        start, stop = bounds(x)
        if start <= place < stop:
            return x
    return None


def is_followed(x: Any) -> bool:
    """Are the cotangents of this array kept beside its memory, in the running reverse pass?"""
    return memory.in_memory() and isinstance(x, np.ndarray) and memory.is_written(owner_of(x))


class Beside:
    """The cotangents of the items in some memory, and which of them are not structurally zero."""

    __slots__ = ("cotangents", "dtype", "itemsize", "reached", "start", "uniform")

    def __init__(self, owner: np.ndarray) -> None:
        start, stop = bounds(owner)
        dtype = owner.dtype
        self.uniform = dtype.kind in "fciuO" or is_added_float(dtype)
        self.start, self.dtype, self.itemsize = start, dtype, dtype.itemsize
        n = (stop - start) // max(dtype.itemsize, 1) if self.uniform else stop - start
        kind = float if dtype.kind in "iu" else dtype if self.uniform else np.uint8
        self.cotangents = np.zeros(n, kind)
        self.reached = np.zeros(n, bool) if self.uniform else None

    def at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The cotangents of a view, and which are reached; None: that is not known one by one."""
        offset = address(x) - self.start if x.size else 0
        if x.dtype == self.dtype and self.uniform:
            step = self.itemsize
            part = view(self.cotangents, x, offset, step)
            return part, view(self.reached, x, offset, step)
        if x.dtype.kind not in "fc" or (self.uniform and self.dtype.kind not in "fc"):
            raise UnsupportedError(
                f"the gradient runs through an array of dtype {x.dtype} in the memory of one of "
                f"dtype {self.dtype}, which is written to: make it a copy"
            )
        if self.reached is not None:  # parts of complex numbers
            self.reached[...] = True
        return np.ndarray(x.shape, x.dtype, self.cotangents, offset, x.strides), None


def address(x: np.ndarray) -> int:
    """Where the first item of an array is."""
    return x.__array_interface__["data"][0]


def bounds(x: np.ndarray) -> tuple[int, int]:
    """The first address of the memory of an array, and the first one behind it."""
    start = stop = address(x)
    for n, stride in zip(x.shape, x.strides, strict=True):
        if n > 1:
            start += min(stride * (n - 1), 0)
            stop += max(stride * (n - 1), 0)
    return start, stop + x.itemsize if x.size else start


def view(flat: np.ndarray, x: np.ndarray, offset: int, step: int) -> np.ndarray:
    """The view of a flat array that is like x, whose items are `step` bytes, from an offset on."""
    size = flat.itemsize
    strides = [stride // step * size if n > 1 else size for n, stride in zip(x.shape, x.strides)]  # noqa: B905
    if flat.dtype.kind == "O":
        start = flat[offset // step :] if x.size else flat
        return np.lib.stride_tricks.as_strided(start, x.shape, strides)
    return np.ndarray(x.shape, flat.dtype, flat, offset // step * size, strides)


def beside_of(x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The cotangents of an array that are kept beside its memory, and which are reached."""
    found: Beside = beside(owner_of(x), Beside)
    return found.at(x)


def overlaps(x: np.ndarray) -> bool:
    """May two entries of the array be one and the same item in memory?"""
    if 0 in x.shape:  # NumPy's strides are 0 there
        return False
    extent = x.itemsize
    for stride, n in sorted((abs(stride), n) for n, stride in zip(x.shape, x.strides) if n > 1):  # noqa: B905
        if stride < extent:
            return True
        extent += stride * (n - 1)
    return False


def item_by_item(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cotangents of all items in the memory of x, which are reached, and those of x among them."""
    found: Beside = beside(owner_of(x), Beside)
    if found.reached is None or x.dtype != found.dtype:
        raise UnsupportedError(
            "the gradient runs through a view that overlaps itself, of parts of the items of an "
            "array that is written to: make it a copy"
        )
    where = np.full(x.shape, address(x) - found.start)
    for i, stride in enumerate(x.strides):
        steps = np.arange(x.shape[i]) * stride
        where += steps.reshape([-1 if j == i else 1 for j in range(x.ndim)])
    return found.cotangents, found.reached, where // x.itemsize


def repeated_axes(x: np.ndarray) -> tuple[int, ...]:
    """The axes along which an array repeats itself, as what was broadcast does."""
    return tuple([i for i, n in enumerate(x.shape) if n > 1 and x.strides[i] == 0])


def first_along(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The first entries along some axes."""
    return x[(*[0 if i in axes else slice(None) for i in range(x.ndim)], ...)]


def is_nothing(c: Any) -> bool:
    """Is it no cotangent, or the number that stands for none among those of objects?"""
    return is_zero(c) or (isinstance(c, (int, float)) and c == 0)


def is_one_entry(x: np.ndarray, index: Any) -> bool:
    """Does an index name one entry of an array, whatever stands there?"""
    return not isinstance(np.broadcast_to(False, x.shape)[index], np.ndarray)


def where_of(x̄: Any) -> Any:
    """Where a cotangent is not structurally zero."""
    return x̄._where if type(x̄) is Selected and x̄._where is not None else True


non_differentiable(
    owner_of,
    is_followed,
    beside_of,
    repeated_axes,
    first_along,
    overlaps,
    item_by_item,
    where_of,
    is_nothing,
    is_one_entry,
)


def give(x: np.ndarray, x̄: Any) -> None:
    """Add to the cotangents beside the memory of an array."""
    axes = repeated_axes(x)
    if axes:
        give(first_along(x, axes), np.add.reduce(x̄, axis=axes))
        return
    if overlaps(x):
        cotangents, reached, where = item_by_item(x)
        np.add.at(cotangents, where, x̄)
        reached[where] = True
        return
    part, is_reached = beside_of(x)
    part += x̄
    if is_reached is not None:
        is_reached |= where_of(x̄)


def give_at(x: np.ndarray, index: Any, ȳ: Any) -> None:
    """Add to the cotangents of x[index], entry by entry."""
    if type(ȳ) is NotKnown:
        ȳ.refuse()
    if x.dtype.kind == "O" and is_one_entry(x, index):
        give_to_object(x, index, ȳ)
        return
    if overlaps(x):
        x̄ = np.zeros(x.shape, np.result_type(ȳ))
        np.add.at(x̄, index, ȳ)
        give(x, x̄)
        return
    if x.dtype.kind not in "fciuO" and not is_added_float(x.dtype):
        return
    part, reached = beside_of(x)
    if is_basic(index):
        part[index] += ȳ
        if reached is not None:
            reached[index] |= where_of(ȳ) if x.dtype.kind != "O" else True
    else:
        np.add.at(part, index, ȳ)
        if reached is not None:
            np.logical_or.at(reached, index, where_of(ȳ))


def give_to_object(x: np.ndarray, index: Any, ȳ: Any) -> None:
    """The same of one entry of an array of objects, whatever the cotangent is."""
    part, reached = beside_of(x)
    if overlaps(x):
        part, reached, where = item_by_item(x)
        index = where[index]
    before = part[index]
    part[index] = ȳ if is_nothing(before) else accumulate(before, ȳ)
    if reached is not None:
        reached[index] = True


def take(x: np.ndarray) -> Any:
    """The cotangents beside the memory of an array, which are zero afterwards."""
    return take_at(x, Ellipsis)


def take_at(x: np.ndarray, index: Any) -> Any:
    """The cotangents of x[index], which are zero afterwards."""
    if x.dtype.names is not None:
        refuse_records(x)
    kind = x.dtype.kind
    if (kind not in "fciuO" and not is_added_float(x.dtype)) or (kind in "iu" and is_of_records(x)):
        return ZERO
    part, reached = beside_of(x)
    if reached is None:
        x̄ = contents(part, index)
        part[index] = 0
        return x̄
    where = contents(reached, index)
    if not where.any():
        return ZERO
    x̄ = contents(part, index)
    part[index] = 0
    reached[index] = False
    return x̄ if where.all() else selected(x̄, where)


def is_of_records(x: np.ndarray) -> bool:
    """Is it a field of a structured array?"""
    return owner_of(x).dtype.names is not None


def refuse_records(x: np.ndarray) -> None:
    """An error if a cotangent lies beside records that were made or written as a whole."""
    for name in x.dtype.names or ():
        field = x[name]
        if field.dtype.names is not None:
            refuse_records(field)
        elif field.dtype.kind in "fc" and np.any(beside_of(field)[0] != 0):
            raise UnsupportedError(
                f"the gradient runs through the field {name!r} of records that were copied or written "
                'as a whole: copy or write their fields, s["name"]'
            )


def contents(x: np.ndarray, index: Any) -> Any:
    """What x holds at an index, in memory of its own."""
    found = x[index]
    return found.copy() if isinstance(found, np.ndarray) else found


def is_basic(index: Any) -> bool:
    """Is it an index that gives a view, or one entry?"""
    parts = index if type(index) is tuple else (index,)
    return all(
        isinstance(i, (int, slice, type(Ellipsis), type(None), np.integer))
        and not isinstance(i, bool)
        for i in parts
    )


non_differentiable(is_basic)


# -- how the core asks -----------------------------------------------------------------------------


memory_of.register(np.ndarray, owner_of)


@from_memory.register(np.ndarray)
def _(y: np.ndarray, args: tuple[Any, ...]) -> Any:
    return take(y) if is_followed(y) and is_new(y, args) else ZERO


@from_memory.register(tuple)
@from_memory.register(list)
def _(y: Any, args: tuple[Any, ...]) -> Any:
    if not any_followed(y):
        return ZERO
    parts = [from_memory(item, args) for item in y]
    return ZERO if all(map(is_zero, parts)) else type(y)(parts) if type(y) is list else tuple(parts)


def any_followed(y: Any) -> bool:
    """Is there an array among these, or in tuples and lists among them? They may hold themselves."""
    waiting, seen = [y], {id(y)}
    while waiting:
        for item in waiting.pop():
            if type(item) not in (tuple, list):
                if is_followed(item):
                    return True
            elif id(item) not in seen:
                seen.add(id(item))
                waiting.append(item)
    return False


def is_new(y: np.ndarray, args: Any) -> bool:
    """Does an array share memory with none among these, or in tuples, lists and dicts of these?"""
    owner = owner_of(y)
    return not any(holds(a, owner) for a in args)


def holds(x: Any, owner: np.ndarray) -> bool:
    """Is an array a view of this memory, or does a container hold one?"""
    if isinstance(x, memoryview):
        x = np.asarray(x)
    if isinstance(x, np.ndarray):
        return owner_of(x) is owner or (x.dtype.kind == "O" and holds(x.ravel().tolist(), owner))
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, np.nditer):
        x = x.operands
    return isinstance(x, (tuple, list)) and any(holds(item, owner) for item in x)


non_differentiable(any_followed, is_new)


def reading(x: np.ndarray, index: Any, ȳ: Any) -> Any:
    """The cotangents of (x, index) for y = x[index], if x is in memory that is written to."""
    if not is_followed(x):
        return None
    if not is_zero(ȳ):
        give_at(x, index, ȳ)
    return ZERO, ZERO


@directly(operator.getitem)
def _(args: tuple[Any, ...], ȳ: Any) -> Any:
    x, index = args
    return reading(x, index, ȳ)
