"""Cotangents of small arrays that a program reads entry by entry, put together from the entries.

By its rule, every entry read gives an array of zeros with one entry; their sum is written down here
as what it is, an array of those entries.
Tests: tests/rules/test_gathering.py
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    Known,
    NoTangent,
    folds,
    fresh_results,
    marks_results,
    primitives,
    result_on_samples,
    rrule,
    transfers,
    type_stable,
)
from morula.rules.arrays.indexing import scatter, scatter_all, scattered, scattered_all
from morula.rules.arrays.structural import Selected, mark, unmarked
from morula.rules.arrays.types import Anything

MOST = 64  # entries of an array that is put together so


def vector(*parts: Any) -> Any:
    """An array of these numbers, of which some may be structural zeros."""
    y = np.array(parts)
    return y if y.dtype.kind != "O" else np.array(without_zeros(parts))


def without_zeros(parts: Any) -> list[Any]:
    """Numbers in the place of structural zeros."""
    return [0.0 if part is ZERO else part for part in parts]


@rrule(vector)
def _(*parts: Anything):
    n = len(parts)

    def vector_pullback(ȳ):
        return primitives.unpack(ȳ, n)

    return vector(*parts), vector_pullback


def entries_at(shape: Any, places: Any, *parts: Any) -> Any:
    """An array with these numbers at these places of it, counted as it lies, and zeros elsewhere."""
    x̄ = np.zeros(shape)
    x̄.put(places, without_zeros(parts))
    return x̄


def marked_entries_at(shape: Any, places: Any, *parts: Any) -> Any:
    """The same; the zeros are marked as structural."""
    return mark(entries_at(shape, places, *parts), _mask(shape, places))


@functools.lru_cache(256)
def _mask(shape: Any, places: Any) -> Any:
    mask = np.zeros(shape, bool)
    mask.put(places, True)
    mask.flags.writeable = False
    return mask


@transfers(scatter_all, scattered_all)
def _(s: Any, call: Any, args: Any) -> Any:
    shape, dtype, index, part, *_ = args
    return result_on_samples(scattered, [part, index, shape, dtype])


@transfers(entries_at, marked_entries_at)
def _(s: Any, call: Any, args: Any) -> Any:
    return result_on_samples(np.zeros, args[:1])


def pieced(shape: Any, *indices_and_parts: Any) -> Any:
    """An array of doubles from parts at plain indices, which meet every entry once."""
    parts = indices_and_parts[1::2]
    if any(type(part) is Selected or part is ZERO for part in parts):
        return scatter_all(shape, np.dtype(float), *indices_and_parts)
    x̄ = np.empty(shape)
    for index, part in zip(indices_and_parts[::2], parts, strict=True):
        x̄[index] = part
    return x̄


def plus_at(x̄: Any, c: Any, index: Any, shape: Any, dtype: Any) -> Any:
    """`x̄ + scatter(c, index, shape, dtype)` for a plain index and an x̄ of this shape and dtype."""
    if type(x̄) is Selected and x̄._where is not None:
        return x̄ + scatter(c, index, shape, dtype)
    total = unmarked(x̄).copy()
    total[index] += c
    return total


@rrule(pieced)
def _(shape: Anything, *indices_and_parts: Anything):
    def pieced_pullback(x̄):
        bars = [bar for index in indices_and_parts[::2] for bar in (NoTangent(), x̄[index])]
        return NoTangent(), *bars

    return pieced(shape, *indices_and_parts), pieced_pullback


@transfers(pieced)
def _(s: Any, call: Any, args: Any) -> Any:
    return result_on_samples(np.zeros, args[:1])


@folds(scatter_all, scattered_all)
def in_pieces(f: Any, call: Any) -> Any:
    """Parts that meet every entry once leave no zeros, and nothing to be added."""
    shape, dtype, *indices_and_parts = call.args
    if call.primitive not in WHOLE.values():
        part, index, shape, dtype = call.args
        indices_and_parts = [index, part]
    indices, parts = indices_and_parts[::2], indices_and_parts[1::2]
    if not hasattr(shape, "value") or getattr(dtype, "value", None) != np.float64:
        return None
    if not all(hasattr(i, "value") and is_plain(i.value) for i in indices):
        return None
    if not all(is_of_doubles(f, part) for part in parts):
        return None
    if not meet_all_once(shape.value, [i.value for i in indices]):
        return None
    return [f.same_call(call, pieced, shape, *indices_and_parts)]


def is_plain(index: Any) -> bool:
    """Is it a slice, an integer, or a tuple of those?"""
    return all(type(i) in (int, slice) for i in (index if type(index) is tuple else (index,)))


def is_of_doubles(f: Any, x: Any) -> bool:
    """Is it a number or an array in double precision?"""
    if f.types(x) is np.ndarray:
        return f.details(x) is not None and f.details(x)[0] == "<f8"
    return f.types(x) in (float, np.float64)


LARGEST = 1_000_000  # entries of an array that is looked at while a program is made


def meet_all_once(shape: Any, indices: list[Any]) -> bool:
    """Is every entry of an array of this shape met by one of the indices, and by one only?"""
    if not 0 < math.prod(shape) <= LARGEST:
        return False
    count = np.zeros(shape, np.int8)
    try:
        for index in indices:
            count[index] += 1
    except IndexError:  # the program raises before it comes here
        return False
    return bool((count == 1).all())


@transfers(vector)
def _(s: Any, call: Any, args: Any) -> Any:
    """An array as long as there are numbers."""
    found = result_on_samples(vector, args)
    if type(found) is not Known or found.type is not np.ndarray or found.detail[1] != 1:
        return found
    return Known(np.ndarray, (found.detail[0], 1, (len(args),)))


type_stable(vector)
fresh_results(vector, entries_at, marked_entries_at, scatter_all, scattered_all, pieced)
marks_results(marked_entries_at, scatter_all)


class Entries:
    """An array of cotangents by its entries: for each place, the parts that are added there."""

    def __init__(self, shape: tuple[int, ...], marks: bool, known: bool = True) -> None:
        self.shape = shape
        self.marks = marks
        self.known = known  # are all parts known to be numbers of its dtype?
        self.parts: dict[int, list[Any]] = {}

    def add(self, place: int, part: Any) -> None:
        """One more number for a place."""
        self.parts.setdefault(place, []).append(part)

    def add_all(self, other: Entries) -> None:
        """All numbers of another, which has the same shape."""
        for place, parts in other.parts.items():
            for part in parts:
                self.add(place, part)
        self.marks |= other.marks
        self.known &= other.known


def gathered(f: Any, call: Any, a: Any, b: Any) -> Any:
    """In an adjoint, the sum of two arrays that are known by their entries or parts, as one of them."""
    first, second = entries_of(f, a), entries_of(f, b)
    if first is None and second is None:
        return placed_together(f, call, a, b)
    if first is None or second is None:
        return added_before(f, call, a if first is None else b, first or second)
    if first.shape != second.shape:
        return None
    first.add_all(second)
    if f.again and not is_complete(first):
        return None
    return put_together(f, call, first)


SUMS = (operator.add, operator.iadd, primitives.sum_if_any)


def added_before(f: Any, call: Any, x: Any, entries: Entries) -> Any:
    """(x + entries) + others as x + (entries + others), in the place of a sum with the others."""
    made = f.definitions.get(x)
    if made is None or made.primitive not in (*SUMS, plus_at):
        return None
    if not f.used_once(x) or f.block_of.get(x) is not f.block:
        return None
    for whole, part, before in taken_apart(f, made):
        if before is not None and before.shape == entries.shape:
            entries.add_all(before)
            if f.again and not is_complete(entries):
                return None
            together = put_together(f, f.new_call(call, None), entries)
            if together is None:
                return None
            *calls, others = together
            add = made.primitive if part is made.args[1] else operator.add
            made.fn, made.args = f.const(primitives.alias), (whole,)
            return [*calls, others, f.same_call(call, add, made.out, others.out)]
    return None


def taken_apart(f: Any, made: Any) -> list[Any]:
    """The ways to see a sum as one with an array that is known by its entries."""
    if made.primitive is plus_at:
        whole, *part = made.args
        return [(whole, None, entry_of(f, part, True))]
    ways = [made.args] if made.primitive is primitives.sum_if_any else [made.args, made.args[::-1]]
    return [(whole, part, entries_of(f, part)) for whole, part in ways]


WHOLE = {scatter: scatter_all, scattered: scattered_all}


def placed_together(f: Any, call: Any, a: Any, b: Any) -> Any:
    """The sum of two arrays of zeros with parts somewhere, for the same array, as one of them."""
    first, second = placed(f, a), placed(f, b)
    if f.again or first is None or second is None or first[0] is not second[0]:
        return None
    (fn, shape, dtype, *parts), (_, other, kind, *others) = first, second
    if not is_same_shape(f, shape, other) or getattr(dtype, "value", 0) != getattr(
        kind, "value", 1
    ):
        return None
    return [f.same_call(call, fn, shape, dtype, *parts, *others)]


def placed(f: Any, x: Any) -> list[Any] | None:
    """What puts such an array together, if it is done in this block and read once."""
    made = f.definitions.get(x)
    if made is None or not f.in_adjoint or f.block_of.get(x) is not f.block or not f.used_once(x):
        return None
    if made.primitive in WHOLE.values():
        return [made.primitive, *made.args]
    if made.primitive not in WHOLE:
        return None
    part, index, shape, dtype = made.args
    return [WHOLE[made.primitive], shape, dtype, index, part]


def is_same_shape(f: Any, a: Any, b: Any) -> bool:
    """Are both one shape, or that of one array?"""
    if a is b or (hasattr(a, "value") and a.value == getattr(b, "value", None)):
        return True
    first, second = f.definitions.get(a), f.definitions.get(b)
    if first is None or second is None or not first.primitive is second.primitive is getattr:
        return False
    x, y = first.args[0], second.args[0]
    return x is y and [c.args[1].value for c in (first, second)] == ["shape", "shape"]


def is_complete(entries: Entries) -> bool:
    """Is there a number for every entry?"""
    return len(entries.parts) == math.prod(entries.shape)


def put_together(f: Any, call: Any, entries: Entries) -> list[Any] | None:
    """The calls that make an array of its entries, in the place of a call; None if there are none."""
    calls: list[Any] = []

    def new(fn: Any, *args: Any) -> Any:
        calls.append(f.new_call(call, fn, *args))
        return calls[-1].out

    places = sorted(entries.parts)
    numbers = [
        functools.reduce(lambda x, y: new(operator.add, x, y), entries.parts[p]) for p in places
    ]
    if not is_complete(entries):
        if not entries.known:
            return None
        fn = marked_entries_at if entries.marks else entries_at
        return [
            *calls,
            f.same_call(call, fn, f.const(entries.shape), f.const(tuple(places)), *numbers),
        ]
    if len(entries.shape) == 1:
        return [*calls, f.same_call(call, vector, *numbers)]
    whole = new(vector, *numbers)
    return [*calls, f.same_call(call, np.reshape, whole, f.const(entries.shape))]


def entries_of(f: Any, x: Any) -> Entries | None:
    """The entries of what is put together in this block, and read once."""
    made = f.definitions.get(x)
    if made is None or not f.in_adjoint or f.block_of.get(x) is not f.block or not f.used_once(x):
        return None
    if made.primitive in (scatter, scattered):
        return entry_of(f, made.args, made.primitive is scatter)
    if made.primitive in (entries_at, marked_entries_at):
        shape, places, *parts = made.args
        found = Entries(shape.value, made.primitive is marked_entries_at)
        for place, part in zip(places.value, parts, strict=True):
            found.add(place, part)
        return found
    if made.primitive is vector:
        found = Entries(
            (len(made.args),), False, all(f.types(part) is not None for part in made.args)
        )
        for place, part in enumerate(made.args):
            found.add(place, part)
        return found
    if made.primitive is operator.add and f.again:
        first, second = (entries_of(f, part) for part in made.args)
        if first is None or second is None or first.shape != second.shape:
            return None
        first.add_all(second)
        return first
    return None


def entry_of(f: Any, scattered: Any, marks: bool) -> Entries | None:
    """One number at a place known ahead, of a small array of floats."""
    number, index, shape, dtype = scattered
    index, shape, dtype = (getattr(x, "value", None) for x in (index, shape, dtype))
    place = index if type(index) is tuple else (index,)
    if type(shape) is not tuple or len(place) != len(shape) or not 0 < math.prod(shape) <= MOST:
        return None
    if f.types(number) not in (None, float, np.float64) or dtype != np.float64:
        return None
    if not all(type(i) is int and -n <= i < n for i, n in zip(place, shape, strict=True)):
        return None
    found = Entries(shape, marks, f.types(number) is not None)
    inside = [i % n for i, n in zip(place, shape, strict=True)]
    found.add(int(np.ravel_multi_index(inside, shape)), number)
    return found
