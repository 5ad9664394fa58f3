"""Rules of x[i] and its relatives: take, take_along_axis, compress, choose, diag, triu, tril, ….

    y = x[i]:     x̄ = scatter(ȳ, i): zeros of the shape of x to which ȳ is added at i
    scatter:      its transpose is x[i] again

Shapes: every kind of index, entries that are met twice add. A boolean mask marks what it left out
as structurally zero.
Tests: tests/rules/arrays/test_indexing.py
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    NoTangent,
    NotKnown,
    UnsupportedError,
    may_vanish,
    non_differentiable,
    rrule,
    type_stable,
)
from morula.rules.arrays.structural import Selected, mark, selected
from morula.rules.arrays.traits import tangent_dtype
from morula.rules.arrays.types import Anything

_BASIC = (int, slice, type(Ellipsis), type(None), np.integer)


@rrule(operator.getitem)
@rrule(np.ndarray.__getitem__)
def _(x: np.ndarray, index: Anything):
    shape = x.shape
    dtype = x.dtype

    def getitem_pullback(ȳ):
        return scatter(ȳ, index, shape, dtype), NoTangent()

    return x[index], getitem_pullback


@rrule(operator.getitem)
def _(x: np.number, index: Anything):
    """An index of a NumPy scalar only adds axes: every entry of the result is x."""

    def scalar_getitem_pullback(ȳ):
        return np.add.reduce(ȳ, None), NoTangent()

    return x[index], scalar_getitem_pullback  # type: ignore[index]


def entry(ȳ, i):
    """Item i of a cotangent; ZERO for a number that is structurally zero."""
    part = ȳ[i]
    if type(ȳ) is not Selected or ȳ._where is None or isinstance(part, np.ndarray):
        return part
    return part if ȳ._where[i] else ZERO


@rrule(entry)
def _(ȳ: np.ndarray, i: Anything):
    shape = ȳ.shape
    dtype = ȳ.dtype

    def entry_pullback(part):
        return scatter(part, i, shape, dtype), NoTangent()

    return entry(ȳ, i), entry_pullback


def scatter(ȳ, index, shape, dtype):
    """`scattered`, where what nothing came to is structurally zero.

    In compiled programs a sum of structural zeros is ZERO where a number was expected.
    """
    if type(ȳ) is NotKnown:
        return ȳ
    x̄ = scattered(ȳ, index, shape, dtype)
    return marked_like(x̄, ȳ, index) if x̄.ndim else x̄


def scattered(ȳ, index, shape, dtype):
    """Zeros of this shape, with ȳ added at `index`: the transpose of indexing."""
    if isinstance(index, str):
        raise UnsupportedError(
            f"the gradient runs through the field {index!r} of a structured array that nothing writes "
            "to here, but that was copied, made or given as a whole: give its fields as arrays"
        )
    if ȳ is ZERO:
        return np.zeros(shape, tangent_dtype(dtype) or float)
    x̄ = np.zeros(shape, _scattered_dtype(ȳ, dtype))
    if is_view(index):
        x̄[index] = ȳ
    else:
        np.add.at(x̄, index, ȳ)
    return x̄


def is_view(index):
    """Does an index name each entry once, as slices and masks do?"""
    if type(index) is tuple:
        return all(isinstance(i, _BASIC) and not isinstance(i, bool) for i in index)
    if isinstance(index, _BASIC) and not isinstance(index, bool):
        return True
    return isinstance(index, np.ndarray | list) and np.asarray(index).dtype == bool


def scattered_all(shape, dtype, *indices_and_parts):
    """The sum of `scattered(part, index, shape, dtype)`, from indices and parts in turn."""
    index, part, *others = indices_and_parts
    x̄ = scattered(part, index, shape, dtype)
    for index, part in zip(others[::2], others[1::2], strict=True):
        if part is ZERO:
            continue
        wide = np.result_type(x̄.dtype, _scattered_dtype(part, dtype))
        x̄ = x̄.astype(wide, copy=False)
        if is_view(index):
            x̄[index] += part
        else:
            np.add.at(x̄, index, part)
    return x̄


def scatter_all(shape, dtype, *indices_and_parts):
    """`scattered_all`, where what nothing came to is structurally zero."""
    x̄ = scattered_all(shape, dtype, *indices_and_parts)
    where = np.zeros(x̄.shape, bool)
    for index, part in zip(indices_and_parts[::2], indices_and_parts[1::2], strict=True):
        mark_reached(where, part, index)
    return x̄ if not x̄.ndim or where.all() else mark(x̄, where)


def mark_reached(where, ȳ, index):
    """Note where something has come from `ȳ` at `index`."""
    if ȳ is ZERO:
        return
    is_entry = np.ndim(ȳ) and not np.ndim(where[index])  # an array, among objects
    if type(ȳ) is not Selected or ȳ._where is None or is_entry:
        where[index] = True
    else:
        np.logical_or.at(where, index, ȳ._where)


def marked_like(x̄, ȳ, index):
    """`x̄`, structurally zero where all that came to it from `ȳ` at `index` is."""
    if type(ȳ) is not Selected and ȳ is not ZERO and names_one(index):
        return mark(x̄, where_alone(x̄.shape, index))
    where = np.zeros(x̄.shape, bool)
    mark_reached(where, ȳ, index)
    return x̄ if where.all() else mark(x̄, where)


def names_one(index):
    """Is it an integer or a tuple of integers?"""
    return all(type(i) is int for i in index) if type(index) is tuple else type(index) is int


@functools.lru_cache(256)
def where_alone(shape, index):
    """Which entries of an array of this shape an index of integers names."""
    where = np.zeros(shape, bool)
    where[index] = True
    where.flags.writeable = False
    return where


def _scattered_dtype(ȳ: Any, dtype: np.dtype) -> np.dtype:
    """The dtype of the primal's tangents, or of ȳ, if that is the wider one."""
    dtype = tangent_dtype(dtype) or np.dtype(float)
    if dtype.kind == "O":
        return dtype
    alike = isinstance(ȳ, float | int) or getattr(ȳ, "dtype", None) == dtype
    return dtype if alike else np.result_type(dtype, ȳ)


def _scattering(scatter):
    @rrule(scatter)
    def _(ȳ: Anything, index: Anything, shape: Anything, dtype: Anything):
        def scatter_pullback(x̄):
            return x̄[index], NoTangent(), NoTangent(), NoTangent()

        return scatter(ȳ, index, shape, dtype), scatter_pullback


_scattering(scatter)
_scattering(scattered)


def _scattering_all(scatter_all):
    @rrule(scatter_all)
    def _(shape: Anything, dtype: Anything, *indices_and_parts):
        def scatter_all_pullback(x̄):
            bars = []
            for index in indices_and_parts[::2]:
                bars += [NoTangent(), x̄[index]]
            return NoTangent(), NoTangent(), *bars

        return scatter_all(shape, dtype, *indices_and_parts), scatter_all_pullback


_scattering_all(scatter_all)
_scattering_all(scattered_all)


@rrule(np.take)
@rrule(np.ndarray.take)
def _(a: np.ndarray, indices: Anything, axis=None, *, mode="raise"):
    shape = a.shape
    dtype = a.dtype

    def take_pullback(ȳ):
        n = a.size if axis is None else shape[axis]
        found = _within(indices, n, mode)
        if axis is None:
            ā = scatter(ȳ, found, (n,), dtype).reshape(shape)
        else:
            ā = scatter(ȳ, (*[slice(None)] * (axis % len(shape)), found), shape, dtype)
        return ā, NoTangent(), NoTangent()

    return np.take(a, indices, axis, mode=mode), take_pullback


def _within(indices: Any, n: int, mode: str) -> np.ndarray:
    found = np.asarray(indices)
    if mode == "wrap":
        return found % n
    return np.clip(found, 0, n - 1) if mode == "clip" else found


@rrule(np.take_along_axis)
def _(arr: np.ndarray, indices: Anything, axis=-1):
    index = along(arr.shape, np.asarray(indices), axis)
    shape = arr.shape if axis is not None else (arr.size,)

    def take_along_axis_pullback(ȳ):
        return scatter(ȳ, index, shape, arr.dtype).reshape(arr.shape), NoTangent(), NoTangent()

    return np.take_along_axis(arr, indices, axis), take_along_axis_pullback


def along(shape, indices, axis):
    """The index that takes `indices` along one axis, and every entry along the others."""
    if axis is None:
        return (indices,)
    axis %= len(shape)
    index = list(np.ix_(*[np.arange(n) for n in shape]))
    index[axis] = indices
    return tuple(index)


def kept_by(condition, shape, axis):
    """A mask of this shape: the entries that `compress` keeps."""
    condition = np.asarray(condition, bool)
    n = int(np.prod(shape)) if axis is None else shape[axis]
    mask = np.zeros(n, bool)
    mask[: len(condition)] = condition[:n]
    if axis is None:
        return mask.reshape(shape)
    return np.broadcast_to(mask.reshape([-1] + [1] * (len(shape) - 1 - axis % len(shape))), shape)


non_differentiable(kept_by)


def compress_pair(a, condition, axis):
    """The value of `compress`, and from its cotangent that of the array."""
    mask = kept_by(condition, a.shape, axis)
    kept = np.flatnonzero(np.asarray(condition))

    def back(ȳ):
        if axis is None:
            ā = scatter(ȳ, kept, (a.size,), a.dtype).reshape(a.shape)
        else:
            ā = scatter(ȳ, (*[slice(None)] * (axis % a.ndim), kept), a.shape, a.dtype)
        return selected(ā, mask)

    return np.compress(condition, a, axis), back


@rrule(np.compress)
def _(condition: Anything, a: np.ndarray, axis=None):
    y, back = compress_pair(a, condition, axis)

    def compress_pullback(ȳ):
        return NoTangent(), back(ȳ), NoTangent()

    return y, compress_pullback


@rrule(np.ndarray.compress)
def _(a: np.ndarray, condition: Anything, axis=None):
    y, back = compress_pair(a, condition, axis)

    def compress_pullback(ȳ):
        return back(ȳ), NoTangent(), NoTangent()

    return y, compress_pullback


@rrule(np.extract)
def _(condition: Anything, arr: np.ndarray):
    kept = np.flatnonzero(np.ravel(condition))

    def extract_pullback(ȳ):
        ā = scatter(ȳ, kept, (arr.size,), arr.dtype).reshape(arr.shape)
        return NoTangent(), selected(ā, kept_by(np.ravel(condition), arr.shape, None))

    return np.extract(condition, arr), extract_pullback


@rrule(np.diag)
def _(v: np.ndarray, k=0):
    shape = v.shape

    def diag_pullback(ȳ):
        if len(shape) == 1:
            return np.diagonal(ȳ, k), NoTangent()
        return diag_back(ȳ, shape, k), NoTangent()

    return np.diag(v, k), diag_pullback


def diag_back(ȳ, shape, k):
    """Zeros of this shape with ȳ on diagonal k."""
    steps = np.arange(ȳ.shape[0])
    return scatter(ȳ, (steps + max(-k, 0), steps + max(k, 0)), shape, ȳ.dtype)


@rrule(np.tril)
def _(m: np.ndarray, k=0):
    shape = m.shape

    def tril_pullback(ȳ):
        return selected(ȳ, np.tri(*shape[-2:], k=k, dtype=bool)), NoTangent()

    return np.tril(m, k), tril_pullback


@rrule(np.triu)
def _(m: np.ndarray, k=0):
    shape = m.shape

    def triu_pullback(ȳ):
        return selected(ȳ, ~np.tri(*shape[-2:], k=k - 1, dtype=bool)), NoTangent()

    return np.triu(m, k), triu_pullback


@rrule(np.sort)
def _(a: np.ndarray, axis=-1, kind=None, *, stable=None):
    """The permutation that a stable sort takes: one output has one source, ties or not."""
    y = np.sort(a, axis, kind, stable=stable)
    flat = a.reshape(-1) if axis is None else a
    along_axis = -1 if axis is None else axis
    order = np.argsort(flat, along_axis, kind="stable")
    index = along(flat.shape, order, along_axis)

    def sort_pullback(ȳ):
        ā = scatter(ȳ, index, flat.shape, a.dtype).reshape(a.shape)
        return ā, NoTangent(), NoTangent()

    return y, sort_pullback


@rrule(np.partition)
def _(a: np.ndarray, kth: Anything, axis=-1):
    flat = a.reshape(-1) if axis is None else a
    along_axis = -1 if axis is None else axis
    order = np.argpartition(flat, kth, along_axis)
    index = along(flat.shape, order, along_axis)

    def partition_pullback(ȳ):
        ā = scatter(ȳ, index, flat.shape, a.dtype).reshape(a.shape)
        return ā, NoTangent(), NoTangent()

    return flat[index], partition_pullback


@rrule(np.bincount)
def _(x: Anything, weights=None, minlength=0):
    def bincount_pullback(ȳ):
        ones = NoTangent() if weights is None else ȳ[np.asarray(x)]
        return NoTangent(), ones, NoTangent()

    return np.bincount(x, weights, minlength), bincount_pullback


@rrule(np.ndarray.item)
def _(x: np.ndarray, *index: Anything):
    shape = x.shape
    dtype = x.dtype

    def item_pullback(ȳ):
        if not index:
            ā = np.full(shape, ȳ)
        elif len(index) == 1 and not isinstance(index[0], tuple) and len(shape) != 1:
            ā = scatter(ȳ, index[0], (int(np.prod(shape)),), dtype).reshape(shape)
        else:
            ā = scatter(ȳ, index[0] if isinstance(index[0], tuple) else index, shape, dtype)
        return (ā, *[NoTangent() for _ in index])

    return x.item(*index), item_pullback


non_differentiable(along)
may_vanish(entry)
type_stable(
    operator.getitem,
    np.take,
    np.diag,
    np.tril,
    np.triu,
    np.sort,
    scattered,
    entry,
    along,
    np.argsort,
)
