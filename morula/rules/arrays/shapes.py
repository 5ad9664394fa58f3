"""Rules of what moves entries and changes none: reshape, transpose, split, repeat, roll, ….

Each pullback is the movement back; where an entry was copied its cotangents are summed.
Shapes: as NumPy's. Sequences of arrays get their cotangents as a sequence of the same type.
Tests: tests/rules/arrays/test_shapes.py
"""

from __future__ import annotations

import numpy as np

from morula.core.extend import (
    NONE,
    AbstractZero,
    NoTangent,
    NotKnown,
    is_zero,
    no_rule,
    non_differentiable,
    rrule,
    type_stable,
    unthunk,
)
from morula.rules.arrays.bodies import derivative_of
from morula.rules.arrays.broadcasting import match_part, part, unbroadcast
from morula.rules.arrays.construction import as_it_is, like_sequence
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.structural import zeros_without_cotangent
from morula.rules.arrays.types import Anything, Numeric, Scalar, Sequence

# -- one array in another shape --------------------------------------------------------------------


def order_of(a, order):
    """The order in which `order` reads the entries of an array, C or F; None: neither of them."""
    if order in ("C", "F"):
        return order
    if a.flags.c_contiguous or not a.flags.f_contiguous:
        return "C" if order == "A" or a.flags.c_contiguous else None
    return "F"


def read_back(ȳ, a_shape, places, order):
    """The cotangent of an array whose entries were read in this order, or at these places."""
    if places is None:
        return ȳ.reshape(a_shape, order=order)
    flat = ȳ.reshape(-1)
    return scatter(flat, places, flat.shape, flat.dtype).reshape(a_shape)


def places_of(a, order):
    """Where `ravel` in the order of memory finds the entries; None: in another order than that."""
    if order_of(a, order) is not None:
        return None
    return np.arange(a.size).reshape(a.shape).transpose(axes_in_memory(a.strides)).ravel()


def axes_in_memory(strides):
    """The axes from the outermost in memory to the innermost; those that repeat stay where they are."""
    inner_first: list[int] = []
    for axis in reversed(range(len(strides))):
        place = len(inner_first)
        for i in reversed(range(len(inner_first))):
            if strides[axis] == 0 or strides[inner_first[i]] == 0:
                continue
            if abs(strides[inner_first[i]]) <= abs(strides[axis]):
                break
            place = i
        inner_first.insert(place, axis)
    return inner_first[::-1]


non_differentiable(zeros_without_cotangent, order_of, places_of)


@rrule(np.reshape)
def _(a: np.ndarray, shape: Anything, order="C", *, copy=None):
    old = a.shape
    back = order if order == "C" else order_of(a, order)

    def reshape_pullback(ȳ):
        return np.reshape(ȳ, old, back), NoTangent(), NoTangent()

    if copy is None:
        return np.reshape(a, shape, order), reshape_pullback
    return np.reshape(a, shape, order, copy=copy), reshape_pullback  # since NumPy 2.1


@rrule(np.ndarray.reshape)
def _(a: np.ndarray, shape: Anything, *, order="C", copy=None):
    old = a.shape
    back = order if order == "C" else order_of(a, order)

    def reshape_pullback(ȳ):
        return ȳ.reshape(old, order=back), NoTangent()

    if copy is None:
        return a.reshape(shape, order=order), reshape_pullback
    return a.reshape(shape, order=order, copy=copy), reshape_pullback  # since NumPy 2.1


@rrule(np.ndarray.reshape)
def _(a: np.ndarray, *shape: Anything, order="C", copy=None):
    old = a.shape
    back = order if order == "C" else order_of(a, order)

    def reshape_pullback(ȳ):
        return (ȳ.reshape(old, order=back), *[NONE for _ in shape])

    if copy is None:
        return a.reshape(shape, order=order), reshape_pullback
    return a.reshape(shape, order=order, copy=copy), reshape_pullback  # since NumPy 2.1


@rrule(np.ravel)
@rrule(np.ndarray.ravel)
def _(a: np.ndarray, order="C"):
    old = a.shape
    back = order if order == "C" else order_of(a, order)
    places = None if back is not None else places_of(a, order)

    def ravel_pullback(ȳ):
        return read_back(ȳ, old, places, back), NoTangent()

    return a.ravel(order), ravel_pullback


@rrule(np.ndarray.flatten)
def _(a: np.ndarray, order="C"):
    old = a.shape
    back = order if order == "C" else order_of(a, order)
    places = None if back is not None else places_of(a, order)

    def flatten_pullback(ȳ):
        return read_back(ȳ, old, places, back), NoTangent()

    return a.flatten(order), flatten_pullback


@rrule(np.lib.stride_tricks.as_strided)
def _(x: np.ndarray, shape=None, strides=None, *, subok=False, writeable=True):
    y = np.lib.stride_tricks.as_strided(x, shape, strides, subok=subok, writeable=writeable)

    def as_strided_pullback(ȳ):
        if not x.flags.c_contiguous:
            raise no_rule(np.lib.stride_tricks.as_strided, (x,), reason="of an array with gaps")
        places = sum(
            i * stride
            for i, stride in zip(np.indices(y.shape, sparse=True), y.strides, strict=True)
        )
        if y.size and not 0 <= np.min(places) <= np.max(places) < x.nbytes:
            raise no_rule(np.lib.stride_tricks.as_strided, (x,), reason="beyond the array's ends")
        return from_places(ȳ, places // x.itemsize, x), NoTangent(), NoTangent()

    return y, as_strided_pullback


@rrule(np.lib.stride_tricks.sliding_window_view)
def _(x: np.ndarray, window_shape: Anything, axis=None, *, subok=False, writeable=False):
    window = np.lib.stride_tricks.sliding_window_view
    y = window(x, window_shape, axis, subok=subok, writeable=writeable)

    def sliding_window_pullback(ȳ):
        places = window(np.arange(x.size).reshape(x.shape), window_shape, axis)
        return from_places(ȳ, places, x), NoTangent(), NoTangent()

    return y, sliding_window_pullback


def from_places(ȳ, places, x):
    """The cotangent of x from that of a view, whose entries are these ones of x, counted."""
    x̄ = np.zeros(x.size, np.result_type(ȳ))
    np.add.at(x̄, places, ȳ)
    return x̄.reshape(x.shape)


@rrule(np.ndarray.view)
def _(x: np.ndarray, *args: Anything, **kwargs):
    """The same memory: also as the real numbers that complex ones consist of, or back."""
    y = x.view(*args, **kwargs)

    def view_pullback(ȳ):
        if y.dtype == x.dtype:
            x̄ = ȳ.reshape(x.shape)
        elif y.dtype.kind in "fc" and x.dtype.kind in "fc" and "c" in (y.dtype.kind + x.dtype.kind):
            x̄ = np.ascontiguousarray(ȳ).view(x.dtype)
        else:
            raise no_rule(np.ndarray.view, (x, *args))
        return (x̄, *[NONE] * len(args))

    return y, view_pullback


@rrule(np.squeeze)
@rrule(np.ndarray.squeeze)
def _(a: np.ndarray, axis=None):
    old = a.shape

    def squeeze_pullback(ȳ):
        return np.reshape(ȳ, old), NoTangent()

    return np.squeeze(a, axis), squeeze_pullback


@rrule(np.expand_dims)
def _(a: np.ndarray, axis: Anything):
    old = a.shape

    def expand_dims_pullback(ȳ):
        return ȳ.reshape(old), NoTangent()

    return np.expand_dims(a, axis), expand_dims_pullback


def _at_least(primal):
    @rrule(primal)
    def _(a: Numeric):
        old = np.shape(a)

        def atleast_pullback(ȳ):
            return (np.reshape(ȳ, old),)

        return primal(a), atleast_pullback


for _primal in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    _at_least(_primal)


@rrule(np.broadcast_to)
def _(array: Numeric, shape: Anything, subok=False):
    old = np.shape(array)

    def broadcast_to_pullback(ȳ):
        return unbroadcast(ȳ, old), NoTangent(), NoTangent()

    return np.broadcast_to(array, shape, subok), broadcast_to_pullback


@rrule(np.broadcast_arrays)
def _(*args: np.ndarray | Scalar | Sequence):
    given = [as_it_is(a) for a in args]

    def broadcast_arrays_pullback(ȳ):
        bars = [match_part(part(ȳ, i), np.shape(a)) for i, a in enumerate(given)]
        return tuple(
            [
                like_sequence(unthunk(ā), a) if isinstance(a, Sequence) and not is_zero(ā) else ā
                for a, ā in zip(given, bars, strict=True)
            ]
        )

    return np.broadcast_arrays(*args), broadcast_arrays_pullback


# -- axes ------------------------------------------------------------------------------------------


@rrule(np.transpose)
def _(a: np.ndarray, axes=None):
    def transpose_pullback(ȳ):
        return np.transpose(ȳ, inverse(axes)), NoTangent()

    return np.transpose(a, axes), transpose_pullback


def inverse(axes):
    """The permutation that undoes this one; None undoes None."""
    if axes is None:
        return None
    back = [0] * len(axes)
    for i, axis in enumerate(axes):
        back[axis] = i
    return back


@rrule(np.ndarray.transpose)
def _(a: np.ndarray):
    def transpose_pullback(ȳ):
        return (ȳ.T,)

    return a.transpose(), transpose_pullback


@rrule(np.ndarray.transpose)
def _(a: np.ndarray, axes: tuple | list | np.ndarray | None):
    def transpose_pullback(ȳ):
        return np.transpose(ȳ, inverse(axes)), NoTangent()

    return a.transpose(axes), transpose_pullback


@rrule(np.ndarray.transpose)
def _(a: np.ndarray, *axes: Anything):
    def transpose_pullback(ȳ):
        return (np.transpose(ȳ, inverse(axes)), *[NONE for _ in axes])

    return a.transpose(*axes), transpose_pullback


@rrule(np.matrix_transpose)
def _(x: np.ndarray, /):
    def matrix_transpose_pullback(ȳ):
        return (np.swapaxes(ȳ, -1, -2),)

    return np.matrix_transpose(x), matrix_transpose_pullback


@rrule(np.swapaxes)
@rrule(np.ndarray.swapaxes)
def _(a: np.ndarray, axis1: Anything, axis2: Anything):
    def swapaxes_pullback(ȳ):
        return ȳ.swapaxes(axis1, axis2), NoTangent(), NoTangent()

    return a.swapaxes(axis1, axis2), swapaxes_pullback


@rrule(np.moveaxis)
def _(a: np.ndarray, source: Anything, destination: Anything):
    def moveaxis_pullback(ȳ):
        return np.moveaxis(ȳ, destination, source), NoTangent(), NoTangent()

    return np.moveaxis(a, source, destination), moveaxis_pullback


@rrule(np.rollaxis)
def _(a: np.ndarray, axis: Anything, start=0):
    order = tuple(np.rollaxis(np.empty(range(a.ndim)), axis, start).shape)

    def rollaxis_pullback(ȳ):
        return np.transpose(ȳ, inverse(order)), NoTangent(), NoTangent()

    return np.rollaxis(a, axis, start), rollaxis_pullback


@rrule(np.flip)
def _(m: np.ndarray, axis=None):
    def flip_pullback(ȳ):
        return np.flip(ȳ, axis), NoTangent()

    return np.flip(m, axis), flip_pullback


@rrule(np.fliplr)
def _(m: np.ndarray):
    def fliplr_pullback(ȳ):
        return (np.fliplr(ȳ),)

    return np.fliplr(m), fliplr_pullback


@rrule(np.flipud)
def _(m: np.ndarray):
    def flipud_pullback(ȳ):
        return (np.flipud(ȳ),)

    return np.flipud(m), flipud_pullback


@rrule(np.rot90)
def _(m: np.ndarray, k=1, axes=(0, 1)):
    def rot90_pullback(ȳ):
        return np.rot90(ȳ, -k, axes), NoTangent(), NoTangent()

    return np.rot90(m, k, axes), rot90_pullback


@rrule(np.roll)
def _(a: np.ndarray, shift: Anything, axis=None):
    def roll_pullback(ȳ):
        return np.roll(ȳ, np.negative(shift), axis), NoTangent(), NoTangent()

    return np.roll(a, shift, axis), roll_pullback


# -- one array in several --------------------------------------------------------------------------


def _splitting(primal):
    @rrule(primal)
    def _(ary: np.ndarray, indices_or_sections: Anything, axis=0):
        y = primal(ary, indices_or_sections, axis)
        shapes = [p.shape for p in y]
        length = ary.shape[axis]

        def split_pullback(ȳ):
            ā = joined(ȳ, shapes, axis)
            known = type(ā) is not NotKnown
            if known and ā.shape[axis] != length:  # parts overlap, or leave entries out
                numbers = np.concatenate(primal(np.arange(length), indices_or_sections))
                ā = summed_at(ā, numbers, length, axis)
            return ā, NoTangent(), NoTangent()

        return y, split_pullback


def _splitting_along(primal, axis_of):
    @rrule(primal)
    def _(ary: np.ndarray, indices_or_sections: Anything):
        y = primal(ary, indices_or_sections)
        shapes = [p.shape for p in y]

        def split_pullback(ȳ):
            return joined(ȳ, shapes, axis_of(ary.ndim)), NoTangent()

        return y, split_pullback


def summed_at(x, numbers, length, axis):
    """The sums of the layers of x along an axis that have the same number."""
    sums = np.zeros((*x.shape[:axis], length, *x.shape[axis:][1:]), x.dtype)
    np.add.at(np.moveaxis(sums, axis, 0), numbers, np.moveaxis(x, axis, 0))
    return sums


def joined(parts, shapes, axis):
    """Pieces joined again; those that have no cotangent are zero."""
    whole = []
    for i, shape in enumerate(shapes):
        one = part(parts, i)
        whole.append(zeros_without_cotangent(shape) if isinstance(one, AbstractZero) else one)
    return np.concatenate(whole, axis)


_splitting(np.split)
_splitting(np.array_split)
_splitting_along(np.vsplit, lambda ndim: 0)
_splitting_along(np.hsplit, lambda ndim: 0 if ndim < 2 else 1)
_splitting_along(np.dsplit, lambda ndim: 2)


# -- copies ----------------------------------------------------------------------------------------


@rrule(np.repeat)
@rrule(np.ndarray.repeat)
def _(a: np.ndarray, repeats: Anything, axis=None):
    shape = a.shape

    def repeat_pullback(ȳ):
        return summed_repeats(ȳ, shape, repeats, axis), NoTangent(), NoTangent()

    return np.repeat(a, repeats, axis), repeat_pullback


def summed_repeats(ȳ, shape, repeats, axis):
    """The sum over the copies that `repeat` made of each entry."""
    flat = (int(np.prod(shape)),) if axis is None else shape
    axis = 0 if axis is None else axis % len(shape)
    if np.size(repeats) == 1:
        n = int(np.ravel(repeats)[0])
        wide = ȳ.reshape((*flat[: axis + 1], n, *flat[axis + 1 :]))
        return np.add.reduce(wide, axis=axis + 1).reshape(shape)
    sources = np.repeat(np.arange(flat[axis]), repeats)
    x̄ = np.zeros(flat, ȳ.dtype)
    np.add.at(x̄, (*[slice(None)] * axis, sources), ȳ)
    return x̄.reshape(shape)


@rrule(summed_repeats)
def _(ȳ: np.ndarray, shape: Anything, repeats: Anything, axis: Anything):
    def summed_repeats_pullback(x̄):
        nothing = NoTangent()
        return np.repeat(x̄, repeats, axis), nothing, nothing, nothing

    return summed_repeats(ȳ, shape, repeats, axis), summed_repeats_pullback


@rrule(np.tile)
def _(A: np.ndarray, reps: Anything):
    shape = A.shape

    def tile_pullback(ȳ):
        counts = (reps,) if np.ndim(reps) == 0 else tuple(reps)
        ndim = max(len(counts), len(shape))
        counts = (1,) * (ndim - len(counts)) + counts
        sizes = (1,) * (ndim - len(shape)) + shape
        split = [n for pair in zip(counts, sizes, strict=True) for n in pair]
        summed = np.sum(ȳ.reshape(split), axis=tuple(range(0, 2 * ndim, 2)))
        return np.reshape(summed, shape), NoTangent()

    return np.tile(A, reps), tile_pullback


@rrule(np.diff)
def _(a: np.ndarray, n=1, axis=-1):
    shape = a.shape

    def diff_pullback(ȳ):
        for _ in range(min(n, shape[axis])):
            edge = [1 if i == axis % len(shape) else m for i, m in enumerate(ȳ.shape)]
            zero = np.zeros(edge, ȳ.dtype)
            ȳ = np.concatenate((zero, ȳ), axis) - np.concatenate((ȳ, zero), axis)
        return ȳ, NoTangent(), NoTangent()

    return np.diff(a, n, axis), diff_pullback


@derivative_of(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours in the flat array, and what is put around them."""
    parts = [] if to_begin is None else [np.ravel(np.asarray(to_begin))]
    flat = np.ravel(np.asarray(ary))
    parts.append(flat[1:] - flat[:-1])
    if to_end is not None:
        parts.append(np.ravel(np.asarray(to_end)))
    return np.concatenate(parts)


type_stable(
    np.reshape, np.ndarray.reshape, np.ravel, np.ndarray.ravel, np.ndarray.flatten,
    np.expand_dims, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_to, np.transpose,
    np.ndarray.transpose, np.matrix_transpose, np.swapaxes, np.ndarray.swapaxes, np.moveaxis,
    np.flip, np.fliplr, np.flipud, np.roll, np.rot90, np.repeat, np.ndarray.repeat, np.tile,
    np.diff,
)  # fmt: skip
