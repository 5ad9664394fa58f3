"""Rules of scipy.ndimage's kernels: filters by the neighbours of each entry, and splines.

    y = Σ wₖ x[i + k - origin],   min, max or a rank of them

Neighbours beyond the ends are found as the mode says. A spline filter is linear along its axis: it is
the matrix that the kernel makes of the identity.
Tests: tests/rules/scipy/test_chapters.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.ndimage import _nd_image, _rank_filter_1d

from morula.core.extend import UnsupportedError, non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.kernels import writes, written_to

NEAREST, WRAP, REFLECT, MIRROR, CONSTANT, GRID_WRAP, GRID_CONSTANT = range(7)


def extended(n: int, size: int, origin: int, mode: int) -> Any:
    """Where a row of n entries, longer by the neighbours of its ends, is found; and what is outside."""
    at = np.arange(n + size - 1) - size // 2 - origin
    outside = np.zeros(at.shape, bool)
    if mode == NEAREST:
        at = np.clip(at, 0, n - 1)
    elif mode in (WRAP, GRID_WRAP):
        at = at % n
    elif mode == REFLECT:
        at = np.minimum(at % (2 * n), 2 * n - 1 - at % (2 * n))
    elif mode == MIRROR:
        period = max(2 * n - 2, 1)
        at = np.minimum(at % period, period - at % period) if n > 1 else np.zeros_like(at)
    else:
        outside = (at < 0) | (at >= n)
        at = np.clip(at, 0, n - 1)
    return at, outside


def spline_matrix(n: int, order: int, mode: int) -> Any:
    """What the filter of splines makes of the identity, along its last axis."""
    found = np.empty((n, n))
    _nd_image.spline_filter1d(np.eye(n), order, 1, found, mode)
    return found


non_differentiable(extended, spline_matrix)


def longer(x: Any, size: int, axis: int, mode: int, cval: Any, origin: int) -> Any:
    """x with the neighbours of its ends along an axis."""
    at, outside = extended(x.shape[axis], size, origin, mode)
    x = np.take(x, at, axis)
    if not np.any(outside):
        return x
    return np.where(np.expand_dims(outside, [*range(1, x.ndim - axis)]), cval, x)


def in_a_row(x: Any, size: int, axis: int, mode: int, cval: Any, origin: int) -> Any:
    """The neighbours along an axis, which comes last but one."""
    x = np.moveaxis(x, axis, -1)
    if x.size == 0:
        return np.zeros((*x.shape, size), x.dtype)
    return sliding_window_view(longer(x, size, x.ndim - 1, mode, cval, origin), size, axis=-1)


def all_around(x: Any, shape: Any, mode: int, cval: Any, origins: Any) -> Any:
    """The neighbours in all directions, (*x.shape, *shape)."""
    if x.size == 0:
        return np.zeros((*x.shape, *shape), x.dtype)
    for axis in range(x.ndim):
        x = longer(x, shape[axis], axis, mode, cval, int(origins[axis]))
    return sliding_window_view(x, shape)


@writes(_nd_image.correlate1d, 3)
def _(x, weights, axis, output, mode, cval, origin):
    found = in_a_row(x, len(weights), axis, mode, cval, origin) @ weights
    return np.moveaxis(found, -1, axis).astype(output.dtype)


@writes(_nd_image.uniform_filter1d, 3)
def _(x, size, axis, output, mode, cval, origin):
    found = np.mean(in_a_row(x, size, axis, mode, cval, origin), axis=-1)
    return np.moveaxis(found, -1, axis).astype(output.dtype)


@writes(_nd_image.min_or_max_filter1d, 3)
def _(x, size, axis, output, mode, cval, origin, minimum):
    row = in_a_row(x, size, axis, mode, cval, origin)
    found = np.min(row, axis=-1) if minimum else np.max(row, axis=-1)
    return np.moveaxis(found, -1, axis).astype(output.dtype)


@writes(_rank_filter_1d.rank_filter, 3)
def _(x, rank, size, output, mode, cval, origin):
    return np.sort(in_a_row(x, size, -1, mode, cval, origin), axis=-1)[..., rank].astype(
        output.dtype
    )


@writes(_nd_image.correlate, 2)
def _(x, weights, output, mode, cval, origins):
    near = all_around(x, weights.shape, mode, cval, origins)
    return np.tensordot(near, weights, axes=weights.ndim).astype(output.dtype)


@writes(_nd_image.min_or_max_filter, 3)
def _(x, footprint, structure, output, mode, cval, origins, minimum):
    near = all_around(x, footprint.shape, mode, cval, origins)
    if structure is not None:
        near = near - structure if minimum else near + structure
    near = near[..., footprint.astype(bool)]
    found = np.min(near, axis=-1) if minimum else np.max(near, axis=-1)
    return found.astype(output.dtype)


@writes(_nd_image.rank_filter, 3)
def _(x, rank, footprint, output, mode, cval, origins):
    near = all_around(x, footprint.shape, mode, cval, origins)[..., footprint.astype(bool)]
    return np.sort(near, axis=-1)[..., rank].astype(output.dtype)


@writes(_nd_image.spline_filter1d, 3)
def _(x, order, axis, output, mode):
    row = np.moveaxis(x, axis, -1)
    found = row @ spline_matrix(row.shape[-1], order, mode)
    return np.moveaxis(found, -1, axis).astype(output.dtype)


# -- functions of the neighbours, called once for each place ---------------------------------------

written_to(_nd_image.generic_filter, _nd_image.generic_filter1d)


def python_function(function: Any) -> Any:
    """A function that is called with arrays; compiled ones have no derivative."""
    if not callable(function):
        raise UnsupportedError("no reverse rule for filters by a scipy.LowLevelCallable")
    return function


non_differentiable(python_function)


@instead_of(_nd_image.generic_filter)
def generic_filter(x, function, footprint, output, mode, cval, origins, extra, keywords):
    """What a function makes of the neighbours of each entry."""
    python_function(function)
    near = all_around(x.astype(float), footprint.shape, mode, cval, origins)[..., footprint]
    rows = near.reshape((x.size, near.shape[-1]))
    output[...] = np.array([function(row, *extra, **keywords) for row in rows]).reshape(x.shape)


@instead_of(_nd_image.generic_filter1d)
def generic_filter1d(x, function, size, axis, output, mode, cval, origin, extra, keywords):
    """What a function writes down for each line, which it gets with the neighbours of its ends."""
    python_function(function)
    x = np.moveaxis(x.astype(float), axis, -1)
    lines = longer(x, size, x.ndim - 1, mode, cval, origin).reshape((-1, x.shape[-1] + size - 1))
    found = np.zeros((len(lines), x.shape[-1]))
    for line, row in zip(lines, found, strict=True):
        function(line, row, *extra, **keywords)
    output[...] = np.moveaxis(found.reshape(x.shape), -1, axis)
