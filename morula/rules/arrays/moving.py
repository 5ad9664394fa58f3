"""Rules of what puts entries elsewhere, and says only by its value where: delete, insert, unique, ….

The function itself, applied to the numbers of the entries, tells where each entry of the result
comes from: y = x[places]; x̄ = ȳ added at the places. What was not among the entries is numbered -1.
Shapes: as NumPy's. Where equal entries are taken together, the first one stands for all.
Tests: tests/rules/arrays/test_moving.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import NoTangent, non_differentiable, rrule
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.arrays.broadcasting import part
from morula.rules.arrays.construction import as_it_is, is_number, like_sequence
from morula.rules.arrays.indexing import entry, scatter
from morula.rules.arrays.structural import Selected, selected
from morula.rules.arrays.types import Anything, Numeric, Sequence


def numbered(a: Any) -> np.ndarray:
    """The numbers of the entries of an array, in its shape."""
    return np.arange(np.size(a)).reshape(np.shape(a))


def moved_back(ȳ, places, shape):
    """ȳ added at the places of an array of this shape; nowhere where the place is -1."""
    ȳ = selected(ȳ, places >= 0) if np.any(places < 0) else ȳ
    size = int(np.prod(shape))
    if not size:
        return np.zeros(shape)
    found = scatter(ȳ, np.maximum(places, 0), (size,), ȳ.dtype)
    return np.reshape(found, shape) if shape else entry(found, 0)


@rrule(np.delete)
def _(arr: np.ndarray, obj: Anything, axis=None):
    places = np.delete(numbered(arr), obj, axis)

    def delete_pullback(ȳ):
        return moved_back(ȳ, places, arr.shape), NoTangent(), NoTangent()

    return np.delete(arr, obj, axis), delete_pullback


@rrule(np.insert)
def _(arr: np.ndarray, obj: Anything, values: Numeric | Sequence, axis=None):
    places = np.insert(numbered(arr), obj, np.full(np.shape(values), -1), axis)
    given = as_it_is(values)

    def insert_pullback(ȳ):
        arr_bar = moved_back(ȳ, places, arr.shape)
        sources = np.insert(np.full(arr.shape, -1), obj, numbered(given), axis)
        v̄ = moved_back(ȳ, sources, np.shape(given))
        v̄ = like_sequence(v̄, given) if isinstance(given, Sequence) else v̄
        return arr_bar, NoTangent(), v̄, NoTangent()

    return np.insert(arr, obj, values, axis), insert_pullback


@rrule(np.resize)
def _(a: Numeric, new_shape: Anything):
    places = np.resize(numbered(a), new_shape)

    def resize_pullback(ȳ):
        return moved_back(ȳ, places, np.shape(a)), NoTangent()

    return np.resize(a, new_shape), resize_pullback


@rrule(np.trim_zeros)
def _(filt: np.ndarray, trim="fb", axis=None):
    y = np.trim_zeros(filt, trim, axis)
    places = trimmed(filt, trim, axis)

    def trim_zeros_pullback(ȳ):
        return moved_back(ȳ, places, filt.shape), NoTangent(), NoTangent()

    return y, trim_zeros_pullback


def trimmed(filt: Any, trim: str, axis: Any) -> np.ndarray:
    """Where the entries that `trim_zeros` leaves stand."""
    found = np.argwhere(filt)
    axes = range(filt.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    kept = [slice(None)] * filt.ndim
    for i in axes:
        low = found[:, i].min() if len(found) else filt.shape[i]
        high = found[:, i].max() + 1 if len(found) else filt.shape[i]
        kept[i] = slice(low if "f" in trim.lower() else None, high if "b" in trim.lower() else None)
    return numbered(filt)[tuple(kept)]


@rrule(np.diagflat)
def _(v: Numeric | Sequence, k=0):
    n = np.size(v)
    given = as_it_is(v)

    def diagflat_pullback(ȳ):
        v̄ = np.reshape(np.diagonal(ȳ, k)[:n], np.shape(given))
        return like_sequence(v̄, given) if isinstance(given, Sequence) else v̄, NoTangent()

    return np.diagflat(v, k), diagflat_pullback


@rrule(np.sort_complex)
def _(a: np.ndarray):
    order = np.argsort(a, -1, kind="stable")

    def sort_complex_pullback(ȳ):
        places = np.take_along_axis(numbered(a), order, -1)
        return (moved_back(ȳ, places, a.shape),)

    return np.sort_complex(a), sort_complex_pullback


# -- sets of values --------------------------------------------------------------------------------


def unique_places(ar: Any, axis: int, equal_nan: bool) -> np.ndarray:
    """Where the slices that `unique` gives stand first."""
    _, first = np.unique(ar, return_index=True, axis=axis, equal_nan=equal_nan)
    return np.take(numbered(ar), first, axis)


@rrule(np.unique)
def _(
    ar: np.ndarray, return_index=False, return_inverse=False, return_counts=False, axis=None, *,
    equal_nan=True, sorted=True,
):  # fmt: skip
    several = return_index or return_inverse or return_counts
    unsorted = {} if sorted else {"sorted": False}  # NumPy 2.3 has it
    y = np.unique(
        ar, return_index, return_inverse, return_counts, axis, equal_nan=equal_nan, **unsorted
    )

    def unique_pullback(ȳ):
        ȳ = part(ȳ, 0) if several else ȳ
        if not is_number(ȳ):  # a structural zero, or what nobody knows
            return ȳ, *[NoTangent()] * 4
        values = y[0] if several else y
        first = first_places(ar, values) if axis is None else unique_places(ar, axis, equal_nan)
        return (moved_back(ȳ, first, ar.shape), *[NoTangent()] * 4)

    return y, unique_pullback


def first_places(ar: Any, values: Any) -> np.ndarray:
    """Where each of some values of an array stands first."""
    flat = np.ravel(ar)
    order = np.argsort(flat, kind="stable")
    return order[np.searchsorted(flat[order], values)]


non_differentiable(numbered, trimmed, unique_places, first_places)


def _of_values(primal, first):
    @rrule(primal)
    def _(x: np.ndarray):
        y = primal(x)
        values = first(y)

        def unique_pullback(ȳ):
            ȳ = ȳ if values is y else part(ȳ, 0)
            if not is_number(ȳ):
                return (ȳ,)
            return (moved_back(ȳ, first_places(x, values), x.shape),)

        return y, unique_pullback


_of_values(np.unique_values, lambda y: y)
for _primal in (np.unique_all, np.unique_counts, np.unique_inverse):
    _of_values(_primal, lambda y: y[0])


@derivative_of(np.union1d)
def union1d(ar1, ar2):
    """The values of both."""
    return np.unique(np.concatenate((np.ravel(ar1), np.ravel(ar2))))


@derivative_of(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    """The values of the first that are not in the second."""
    kept = np.ravel(ar1) if assume_unique else np.unique(np.asarray(ar1))
    return kept[np.isin(kept, np.asarray(ar2), invert=True)]


@derivative_of(np.setxor1d)
def setxor1d(ar1, ar2, assume_unique=False):
    """The values of only one of them."""
    a, b = np.ravel(ar1), np.ravel(ar2)
    one = np.concatenate((a[~np.isin(a, b)], b[~np.isin(b, a)]))
    return np.sort(one) if assume_unique else np.unique(one)


@derivative_of(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The values of the first that are in the second, too."""
    a = np.ravel(ar1)
    both = np.unique(a[np.isin(a, np.asarray(ar2))])
    return (both, None, None) if return_indices else both


# -- pieces of a whole -----------------------------------------------------------------------------


@derivative_of(np.block)
def block(arrays):
    """Nested lists of arrays, joined along the last axis at the deepest level, and so on."""
    depth = nesting(arrays)
    ndim = max(most_axes(arrays), depth)
    return joined_block(arrays, depth, ndim)


def nesting(arrays: Any) -> int:
    """How deep the lists are nested."""
    return 1 + nesting(arrays[0]) if isinstance(arrays, list) and arrays else 0


def most_axes(arrays: Any) -> int:
    """The most axes that an array in nested lists has."""
    if isinstance(arrays, list):
        return max([most_axes(a) for a in arrays])
    return int(np.ndim(arrays))


def joined_block(arrays, depth, ndim):
    """One level of `block`."""
    if depth == 0:
        a = np.asarray(arrays)
        return np.reshape(a, (1,) * (ndim - a.ndim) + a.shape)
    return np.concatenate([joined_block(a, depth - 1, ndim) for a in arrays], axis=-depth)


non_differentiable(nesting, most_axes)


@derivative_of(np.choose)
def choose(a, choices, out=None, mode="raise"):
    """Entry of choices[a]."""
    n = len(choices)
    a = np.asarray(a)
    a = a % n if mode == "wrap" else np.clip(a, 0, n - 1) if mode == "clip" else a
    y = choices[0]
    for i in range(1, n):
        y = np.where(np.equal(a, i), choices[i], y)
    return y


@instead_of(np.ndarray.choose)
def method_choose(a, *choices, out=None, mode="raise"):
    """The same; the choices may be given one by one."""
    several = choices if len(choices) != 1 else choices[0]
    return np.choose(a, several, out=out, mode=mode)


@derivative_of(np.select)
def select(condlist, choicelist, default=0):
    """The choice that belongs to the first condition that holds."""
    y = default
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        y = np.where(condition, choice, y)
    return y


# The methods of marked cotangents, in derivatives of derivatives: the functions of the same names.


@instead_of(Selected.reshape)
def _(x, *shape, **keywords):
    return np.reshape(x, shape[0] if len(shape) == 1 else shape, **keywords)


@instead_of(Selected.transpose)
def _(x, *axes):
    return np.transpose(x, axes[0] if len(axes) == 1 else axes or None)


@instead_of(Selected.ravel)
@instead_of(Selected.flatten)
def _(x, order="C"):
    return np.ravel(x, order)


@instead_of(Selected.swapaxes)
def _(x, first, second):
    return np.swapaxes(x, first, second)


@instead_of(Selected.copy)
def _(x, order="C"):
    return +x


@instead_of(Selected.astype)
def _(x, dtype, **keywords):
    return converted(x, dtype)


def converted(x, dtype):
    """A cotangent with another dtype; with a real one, its real part."""
    real = np.iscomplexobj(x) and np.dtype(dtype).kind != "c"
    return (np.real(x) if real else x).astype(dtype)


@rrule(converted)
def _(x: Anything, dtype: Anything):
    before = x.dtype

    def converted_pullback(ȳ):
        return converted(ȳ, before), NoTangent()

    return converted(x, dtype), converted_pullback
