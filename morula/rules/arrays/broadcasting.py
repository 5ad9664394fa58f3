"""Between a cotangent and its primal's shape: sums over broadcast axes, and their transposes.

    unbroadcast(x̄, shape)               sum over the axes that were broadcast from `shape`
    match(x̄, shape)                     the same, at little cost where the shapes agree
    total(x̄)                            sum of all entries: the cotangent of a scalar operand
    spread(ȳ, shape)                    broadcast, as a read-only view
    restore(ȳ, shape, axis, keepdims)   from the shape of a reduction's result to its operand's
    collapse(x̄, axis, keepdims)         the reduction by a sum

Each is a primitive with a rule of its own, the transpose, so that pullbacks which use them are
differentiable. Views made here are never written to.
Tests: tests/rules/arrays/test_broadcasting.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    NoTangent,
    NotKnown,
    may_vanish,
    non_differentiable,
    rrule,
    type_stable,
    unthunk,
)
from morula.rules.arrays.structural import Selected, selected
from morula.rules.arrays.types import Anything

_sum = np.add.reduce


def unbroadcast(x̄, shape):
    """`x̄` summed over the axes along which a value of `shape` was broadcast."""
    have = shape_of(x̄)
    if have == shape:
        return x̄
    if type(x̄) is Selected and x̄._where is not None:
        return _unbroadcast_selected(x̄, shape)
    if not shape:
        return _sum(x̄, axis=None)
    extra = len(have) - len(shape)
    if extra < 0:
        return spread(x̄, shape)
    if extra == 1 and have[1:] == shape:
        return _sum(x̄, axis=0)
    stretched = [i for i, n in enumerate(shape, extra) if n == 1 and have[i] != 1]
    if stretched:
        x̄ = _sum(x̄, axis=tuple(stretched), keepdims=True)
    if extra:
        x̄ = _sum(x̄, axis=tuple(range(extra)))
    return x̄ if x̄.shape == shape else spread(x̄, shape)


def _unbroadcast_selected(x̄: Selected, shape: tuple[int, ...]) -> Any:
    where = x̄._where
    assert where is not None
    counts = unbroadcast(where.astype(np.intp), shape)
    return selected(unbroadcast(x̄.view(np.ndarray), shape), counts > 0)


def match(x̄, shape):
    """`unbroadcast`, where the shapes mostly agree; `x̄` may be a Python number."""
    return x̄ if shape_of(x̄) == shape else unbroadcast(x̄, shape)


def shape_of(x):
    """The shape of an array or a number; where the type is known, no more than an attribute."""
    return x.shape if isinstance(x, np.ndarray) else ()


def match_part(x̄, shape):
    """`match` of a cotangent that may be zero."""
    return x̄ if x̄ is ZERO or x̄ is NONE else match(x̄, shape)


def total(x̄):
    """The sum of all entries of an array; a number stays as it is."""
    if isinstance(x̄, np.ndarray) and x̄.dtype.kind == "O":
        return sum([total(entry) for entry in np.ravel(x̄)])  # arrays too, of shapes that may differ
    if type(x̄) is Selected:
        return unbroadcast(x̄, ())
    return x̄ if x̄ is ZERO else _sum(x̄, axis=None)


def spread(ȳ, shape):
    """`ȳ` broadcast to `shape`, as a read-only view.

    `np.broadcast_to` does the same in four times the time.
    """
    if isinstance(ȳ, np.ndarray):
        if ȳ.shape == shape:
            return ȳ
        if type(ȳ) is Selected or not ȳ.flags.c_contiguous or ȳ.dtype.kind == "O":
            return np.broadcast_to(ȳ, shape)
        missing = len(shape) - ȳ.ndim
        strides = [0] * missing
        for n, stride in zip(ȳ.shape, ȳ.strides, strict=True):
            strides.append(0 if n == 1 else stride)
        view = np.ndarray(shape, ȳ.dtype, ȳ, 0, strides)
        view.flags.writeable = False
        return view
    if type(ȳ) is float:
        ȳ = np.float64(ȳ)
    elif type(ȳ) is NotKnown:
        return ȳ
    elif not isinstance(ȳ, np.generic):
        ȳ = np.asarray(ȳ)[()]
        if not isinstance(ȳ, np.generic):  # a Fraction, say
            return np.broadcast_to(np.asarray(ȳ, object), shape)
    return np.ndarray(shape, ȳ.dtype, ȳ, 0, (0,) * len(shape))


def restore(ȳ, shape, axis=None, keepdims=False):
    """What a reduction over `axis` of an array of this shape gave, back in that shape."""
    if axis is None or keepdims:
        return spread(ȳ, shape)
    if not isinstance(ȳ, np.ndarray):
        return spread(ȳ, shape)
    kept = list(shape)
    for i in axis if isinstance(axis, tuple) else (axis,):
        kept[i] = 1
    return spread(ȳ.reshape(kept), shape)


def part(ȳ, i):
    """The cotangent of item i of a tuple; ZeroTangent() if it has none."""
    return unthunk(unthunk(ȳ)[i])


def collapse(x̄, axis=None, keepdims=False):
    """The sum over `axis`."""
    return _sum(x̄, axis=axis, keepdims=keepdims)


def reduced_size(shape, axis=None):
    """How many entries a reduction over `axis` takes together."""
    if axis is None:
        axis = range(len(shape))
    size = 1
    for i in axis if not isinstance(axis, int) else (axis,):
        size *= shape[i]
    return size


def quotient(x, y):
    """x / y, and 0 where the size y of x is zero; there it has no derivative: that is NaN."""
    return x / np.where(np.equal(y, 0), 1, y)


def widened(x):
    """Truth values and narrow or unsigned integers as whole numbers, of which formulas are right.

    They have no difference or negative, or one that wraps around, and roots and logarithms of half
    precision. As integers they still choose the loops of functions that take whole numbers.
    """
    if isinstance(x, bool):
        return int(x)
    if not isinstance(x, np.ndarray | np.generic) or x.dtype.kind not in "biu":
        return x
    return x.astype(np.result_type(x.dtype, np.int64))


@rrule(widened)
def _(x: Anything):
    def widened_pullback(z̄):
        return (z̄,)

    return widened(x), widened_pullback


type_stable(widened)


@rrule(quotient)
def _(x: Anything, y: Anything):
    shapes = np.shape(x), np.shape(y)
    z = quotient(x, y)

    def quotient_pullback(z̄):
        with np.errstate(divide="ignore", invalid="ignore"):
            x̄ = np.true_divide(z̄, y)
            return match(x̄, shapes[0]), match(-np.real(x̄ * z.conjugate()), shapes[1])

    return z, quotient_pullback


@rrule(unbroadcast)
def _(x̄: Anything, shape: Anything):
    have = np.shape(x̄)

    def unbroadcast_pullback(ȳ):
        return spread(ȳ, have), NoTangent()

    return unbroadcast(x̄, shape), unbroadcast_pullback


@rrule(total)
def _(x̄: Anything):
    have = np.shape(x̄)

    def total_pullback(ȳ):
        return (spread(ȳ, have),)

    return total(x̄), total_pullback


@rrule(spread)
def _(ȳ: Anything, shape: Anything):
    have = np.shape(ȳ)

    def spread_pullback(x̄):
        return unbroadcast(x̄, have), NoTangent()

    return spread(ȳ, shape), spread_pullback


@rrule(restore)
def _(ȳ: Anything, shape: Anything, axis=None, keepdims=False):
    have = np.shape(ȳ)

    def restore_pullback(x̄):
        return collapse(x̄, axis, keepdims).reshape(have), NoTangent(), NoTangent(), NoTangent()

    return restore(ȳ, shape, axis, keepdims), restore_pullback


@rrule(collapse)
def _(x̄: np.ndarray, axis=None, keepdims=False):
    shape = x̄.shape

    def collapse_pullback(ȳ):
        return restore(ȳ, shape, axis, keepdims), NoTangent(), NoTangent()

    return collapse(x̄, axis, keepdims), collapse_pullback


non_differentiable(reduced_size)
may_vanish(total, unbroadcast)
type_stable(unbroadcast, total, spread, restore, collapse, reduced_size)
