"""Rules of what makes one array of several: concatenate, stack, hstack, append, ….

The cotangents of the arrays are the pieces of that of the whole, in the shapes of the arrays. Sequences
of arrays get theirs as a sequence of the same type. In programs that know the arrays, each piece is
an item of the whole, which has derivatives of its own.
Shapes: as NumPy's.
Tests: tests/rules/arrays/test_joining.py
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from morula.core.extend import (
    ZERO,
    Call,
    Const,
    Known,
    NoTangent,
    ZeroTangent,
    folds,
    gives_in_space,
    primitives,
    rrule,
    to_space,
    transfers,
    type_stable,
)
from morula.rules.arrays.broadcasting import shape_of as extents
from morula.rules.arrays.construction import as_it_is, like_sequence, parts_like
from morula.rules.arrays.indexing import entry
from morula.rules.arrays.types import Numeric, Sequence
from morula.rules.numbers import is_inexact

Shape = tuple[int, ...]


class Joint(NamedTuple):
    """How arrays are joined: the shape that each of them gets first, and the axis, by their shapes."""

    widened: Callable[[Shape], Shape]
    axis_of: Callable[[list[Shape]], int]


def unjoined(ȳ, items, joint):
    """The cotangents of the items that were joined: list for list, tuple for tuple."""
    shapes = [np.shape(a) for a in items]
    axis = joint.axis_of(shapes)
    return members(pieces(ȳ, [joint.widened(s)[axis] for s in shapes], axis), items)


def unconcatenated(ȳ, items, axis):
    """The same of `np.concatenate`."""
    sizes = [np.size(a) if axis is None else np.shape(a)[axis] for a in items]
    return members(pieces(ȳ, sizes, 0 if axis is None else axis), items)


def in_two(ȳ, a_shape, b_shape, axis):
    """The pieces that belong to the two arrays of `np.append`, by their shapes."""
    sizes = [math.prod(s) if axis is None else s[axis] for s in (a_shape, b_shape)]
    return tuple(pieces(ȳ, sizes, 0 if axis is None else axis))


def pieces(ȳ, sizes, axis):
    """ȳ cut along `axis` into pieces of these sizes."""
    before = (slice(None),) * (axis % ȳ.ndim)
    start = 0
    cut = []
    for n in sizes:
        cut.append(ȳ[(*before, slice(start, start + n))])
        start += n
    return cut


def members(parts, items):
    """Parts of a cotangent as those of the items that were joined: list for list, tuple for tuple.

    Each in the shape, and in the space, of its item.
    """
    cotangents = []
    for i, x in enumerate(items):
        x̄ = entry(parts, i)
        if x̄ is ZERO:
            pass
        elif type(x) is not np.ndarray or x̄.dtype != x.dtype or x̄.shape != x.shape:
            x̄ = like_sequence(np.reshape(x̄, np.shape(x)), x)
        cotangents.append(x̄)
    return tuple(cotangents) if isinstance(items, tuple) else cotangents


# -- the rules -------------------------------------------------------------------------------------


def _joining(primal, joint):
    """Rules of what joins a sequence of arrays in this way."""

    @rrule(primal)
    def _(tup: Sequence):
        given = as_it_is(tup)

        def joining_pullback(ȳ):
            return (unjoined(ȳ, given, joint),)

        return primal(tup), joining_pullback


def _1d(shape):
    return shape or (1,)


def _2d(shape):
    return (1, *_1d(shape)) if len(shape) < 2 else shape


def _3d(shape):
    return (*_2d(shape), 1) if len(shape) < 3 else shape


def _column(shape):
    return (*_1d(shape), 1) if len(shape) < 2 else shape


_joining(np.vstack, Joint(_2d, lambda shapes: 0))
_joining(np.hstack, Joint(_1d, lambda shapes: 0 if shapes and len(shapes[0]) < 2 else 1))
_joining(np.dstack, Joint(_3d, lambda shapes: 2))
_joining(np.column_stack, Joint(_column, lambda shapes: 1))


@rrule(np.concatenate)
def _(arrays: Sequence, axis=0, *, dtype=None, casting="same_kind"):
    given = as_it_is(arrays)

    def concatenate_pullback(ȳ):
        return unconcatenated(ȳ, given, axis), NoTangent()

    if dtype is None:
        return np.concatenate(arrays, axis), concatenate_pullback
    y = np.concatenate(arrays, axis, dtype=dtype, casting=casting)
    return y, concatenate_pullback if is_inexact(y.dtype) else to_whole_numbers


@rrule(np.concatenate)
def _(arrays: np.ndarray, axis=0):
    shape = arrays.shape

    def concatenate_pullback(ȳ):
        if axis is None:
            return ȳ.reshape(shape), NoTangent()
        return np.stack(pieces(ȳ, [shape[1:][axis]] * shape[0], axis)), NoTangent()

    return np.concatenate(arrays, axis), concatenate_pullback


def to_whole_numbers(ȳ):
    """The pullback of what rounds."""
    return ZeroTangent(), NoTangent()


@rrule(np.stack)
def _(arrays: Sequence, axis=0):
    given = as_it_is(arrays)

    def stack_pullback(ȳ):
        return members(np.moveaxis(ȳ, axis, 0), given), NoTangent()

    return np.stack(arrays, axis), stack_pullback


@rrule(np.stack)
def _(arrays: np.ndarray, axis=0):
    def stack_pullback(ȳ):
        return np.moveaxis(ȳ, axis, 0), NoTangent()

    return np.stack(arrays, axis), stack_pullback


@rrule(np.append)
def _(arr: np.ndarray, values: Numeric, axis=None):
    arr_shape = arr.shape
    values_shape = extents(values)

    def append_pullback(ȳ):
        ā, v̄ = in_two(ȳ, arr_shape, values_shape, axis)
        return np.reshape(ā, arr_shape), np.reshape(v̄, values_shape), NoTangent()

    return np.append(arr, values, axis), append_pullback


gives_in_space(np.concatenate, np.stack)
type_stable(
    np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.append
)  # fmt: skip


# -- in programs -----------------------------------------------------------------------------------


@folds(unconcatenated)
def _(f: Any, call: Call) -> Any:
    """The pieces one by one."""
    ȳ, items, axis = call.args
    if type(axis) is not Const:
        return None
    if axis.value is None:
        return one_by_one(f, call, ȳ, items, FLAT)
    along = axis.value
    return one_by_one(f, call, ȳ, items, Joint(lambda shape: shape, lambda shapes: along))


@folds(unjoined)
def _(f: Any, call: Call) -> Any:
    ȳ, items, joint = call.args
    return one_by_one(f, call, ȳ, items, joint.value) if type(joint) is Const else None


@folds(members)
def _(f: Any, call: Call) -> Any:
    """Likewise of what was stacked: the arrays get one axis more, of length 1."""
    parts, items = call.args
    along, moved = 0, f.definition(parts, np.moveaxis)
    if moved is not None and type(value_of(moved.args[1])) is int and value_of(moved.args[2]) == 0:
        parts, along = moved.args[0], moved.args[1].value

    def widened(shape: Shape) -> Shape:
        at = along % (len(shape) + 1)
        return (*shape[:at], 1, *shape[at:])

    return one_by_one(f, call, parts, items, Joint(widened, lambda shapes: along))


@folds(in_two)
def _(f: Any, call: Call) -> Any:
    ȳ, *shapes, axis = call.args
    found = [constant_shape(f, x) for x in shapes]
    found = [(1,) if shape == () else shape for shape in found]
    whole = f.details(ȳ) if f.types(ȳ) is np.ndarray else None
    if None in found or whole is None or type(axis) is not Const:
        return None
    known = [Known(np.ndarray, (whole[0], len(shape), shape)) for shape in found]
    along = axis.value
    joint = FLAT if along is None else Joint(lambda shape: shape, lambda shapes: along)
    return cut_up(f, call, ȳ, known, None, joint)


@transfers(in_two)
def _(s: Any, call: Call, args: Any) -> Any:
    """Two arrays with as many axes as the whole."""
    whole = args[0].detail if getattr(args[0], "type", None) is np.ndarray else None
    return whole and Known(tuple, (Known(np.ndarray, (*whole[:2], None)),) * 2)


def constant_shape(f: Any, x: Any) -> Any:
    """The shape that an operand is known to be."""
    if type(x) is Const:
        return x.value
    items = f.details(x) if f.types(x) is tuple else None
    if items is None or not all(type(k) is Const for k in items):
        return None
    return tuple([k.value for k in items])


def flat(shape: Any) -> Any:
    """The shape of an array along one axis."""
    return (None if None in shape else math.prod(shape),)


FLAT = Joint(flat, lambda shapes: 0)


def one_by_one(f: Any, call: Call, ȳ: Any, items: Any, joint: Joint) -> Any:
    """The cotangents of items of a tuple, if it is known what they are."""
    known = f.known(items)
    if getattr(known, "type", None) is not tuple or not known.detail:
        return None
    return cut_up(f, call, ȳ, known.detail, items, joint)


def cut_up(f: Any, call: Call, ȳ: Any, known: Any, items: Any, joint: Joint) -> Any:
    """The tuple of the pieces of ȳ, each of which belongs to an item of which this is known."""
    whole = f.known(ȳ)
    if getattr(whole, "type", None) is not np.ndarray or whole.detail is None:
        return None
    shapes = [shape_of(k) for k in known]
    if None in shapes or not whole.detail[1]:
        return None
    axis = joint.axis_of(shapes) % whole.detail[1]
    cuts = Cuts(f, call, ȳ, items)
    start: Any = f.const(0)
    parts = []
    for i, (k, shape) in enumerate(zip(known, shapes, strict=True)):
        wide = shape if joint is FLAT and len(shape) == 1 else joint.widened(shape)
        if len(wide) != whole.detail[1]:
            return None
        size = f.const(wide[axis])
        if wide[axis] is None:
            size = cuts.append(getattr, cuts.item(i), f.const("shape"))
            size = cuts.append(operator.getitem, size, f.const(axis))
        if wide[axis] == 1 and (*wide[:axis], *wide[axis + 1 :]) == shape:
            part = cuts.layer(axis, start, k)
        elif wide == shape or None not in shape:
            part = cuts.slice(axis, start, size)
            if wide != shape:
                part = cuts.append(np.ndarray.reshape, part, f.const(shape))
        else:
            return None
        parts.append(cuts.in_space_of(i, part, k, whole.detail))
        start = cuts.sum(start, size)
    return [*cuts.calls, f.same_call(call, primitives.build_tuple, *parts)]


class Cuts:
    """The calls that cut a cotangent into pieces."""

    def __init__(self, f: Any, call: Call, ȳ: Any, items: Any) -> None:
        self.f, self.call, self.ȳ, self.items = f, call, ȳ, items
        self.calls: list[Call] = []

    def append(self, fn: Any, *args: Any) -> Any:
        """One more call, and its result."""
        self.calls.append(self.f.new_call(self.call, fn, *args))
        return self.calls[-1].out

    def item(self, i: int) -> Any:
        """An item of those that were joined."""
        return self.append(operator.getitem, self.items, self.f.const(i))

    def sum(self, a: Any, b: Any) -> Any:
        """Of two integers."""
        if type(a) is Const and type(b) is Const:
            return self.f.const(a.value + b.value)
        return self.append(operator.add, a, b)

    def layer(self, axis: int, i: Any, k: Any) -> Any:
        """What stands at one place of an axis."""
        is_number = not shape_of(k)
        if type(i) is Const:
            index = self.f.const((slice(None),) * axis + (i.value,) if axis else i.value)
        else:
            before = [self.f.const(slice(None))] * axis
            index = self.append(primitives.build_tuple, *before, i) if axis else i
        return self.append(entry if is_number else operator.getitem, self.ȳ, index)

    def slice(self, axis: int, start: Any, size: Any) -> Any:
        """What stands at some places of an axis."""
        end = self.sum(start, size)
        if type(start) is Const and type(end) is Const:
            cut = slice(start.value, end.value)
            index = self.f.const((slice(None),) * axis + (cut,) if axis else cut)
        else:
            index = self.append(slice, start, end)
            if axis:
                before = [self.f.const(slice(None))] * axis
                index = self.append(primitives.build_tuple, *before, index)
        return self.append(operator.getitem, self.ȳ, index)

    def in_space_of(self, i: int, part: Any, k: Any, whole: Any) -> Any:
        """A piece in the form of its item."""
        if type(k) is Const:
            return self.f.const(ZERO)
        if k.type is tuple:
            return self.append(parts_like, part, self.item(i))
        dtype = k.detail[0] if k.type is np.ndarray else NUMBERS[k.type]
        if dtype == whole[0] or self.items is None:
            return part
        return self.append(to_space, self.item(i), part)


# Numbers, and the dtype of cotangents that are theirs without being brought to their space.
NUMBERS = {float: "<f8", int: "<f8", np.float64: "<f8", np.float32: "<f4"}


def shape_of(k: Any) -> Any:
    """The shape of an array, a number or a nested tuple, with None for extents that are not known."""
    if type(k) is Const and type(k.value) is not tuple:
        return np.shape(k.value) if isinstance(k.value, ARRAYS_AND_NUMBERS) else None
    items: Any = [*map(Const, k.value)] if type(k) is Const else getattr(k, "detail", None)
    kind = tuple if type(k) is Const else getattr(k, "type", None)
    if kind in NUMBERS:
        return ()
    if items is None or kind not in (np.ndarray, tuple):
        return None
    if kind is np.ndarray:
        return items[2] or (None,) * items[1]
    shapes = list(map(shape_of, items))
    if not shapes:
        return (0,)
    alike = shapes.count(shapes[0]) == len(shapes) and shapes[0] is not None
    return (len(shapes), *shapes[0]) if alike else None


ARRAYS_AND_NUMBERS = (float, int, complex, np.ndarray, np.generic)


def value_of(x: Any) -> Any:
    """The value of a constant operand."""
    return x.value if type(x) is Const else None
