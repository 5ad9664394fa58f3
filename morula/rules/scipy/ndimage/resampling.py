"""Rules of scipy.ndimage's resampling by splines, and of its filters in Fourier space.

    y(p) = Σ c[start + l] Π βₙ(p - start - l),   l = 0 … n in every direction

An entry beyond the ends is found as the mode says, and so is a place p; both by a piecewise linear map.
Unser, Splines, IEEE Signal Process. Mag. 16 (1999), box 1 for βₙ.
Tests: tests/rules/scipy/test_resampling.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special
from scipy.ndimage import _nd_image

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.scipy.kernels import writes, written_to
from morula.rules.scipy.ndimage.filters import (
    CONSTANT,
    GRID_CONSTANT,
    GRID_WRAP,
    MIRROR,
    NEAREST,
    REFLECT,
    WRAP,
    python_function,
)
from morula.rules.steering import ignore_derivatives


def folded(p: Any, n: int, mode: int) -> tuple[Any, Any, Any]:
    """Where places on a line of n entries are found: sign and shift of each, and which are."""
    p = np.asarray(p, float)
    one, none, found = np.ones_like(p), np.zeros_like(p), np.ones(p.shape, bool)
    if mode == WRAP and n > 1:
        return one, -(n - 1.0) * np.where((p < 0) | (p > n - 1), np.floor(p / (n - 1)), 0.0), found
    if mode == GRID_WRAP:
        turns = np.where(
            p < 0, -np.floor((-1 - p) / n) - 1, np.where(p > n - 1, np.floor(p / n), 0)
        )
        return one, -float(n) * turns, found
    if mode == MIRROR and n > 1:
        q = np.mod(p, 2 * n - 2)
        back = q > n - 1
        return np.where(back, -one, one), np.where(back, 2 * n - 2 - q + p, q - p), found
    if mode == REFLECT:
        q = np.mod(p + 0.5, 2 * n)
        back = q > n
        return np.where(back, -one, one), np.where(back, 2 * n - 0.5 - q + p, q - 0.5 - p), found
    if mode == CONSTANT:
        return one, none, (p >= 0) & (p <= n - 1)
    if mode in (NEAREST, GRID_CONSTANT):  # the entries are found one by one
        return one, none, found
    return none, none, found  # of one entry


def entries(start: Any, order: int, n: int, mode: int) -> tuple[Any, Any]:
    """The entries that a spline takes from each start on, and which of them there are."""
    at = start[..., None] + np.arange(order + 1)
    if mode in (NEAREST, GRID_CONSTANT):
        inside = (at >= 0) & (at < n)
        return np.clip(at, 0, n - 1).astype(np.intp), inside | (mode == NEAREST)
    sign, shift, found = folded(at, n, MIRROR if mode in (CONSTANT, WRAP) else mode)
    return np.rint(sign * at + shift).astype(np.intp), found


def start_of(p: Any, order: int) -> Any:
    """The first entry that counts for each place."""
    return np.floor(p if order % 2 else p + 0.5) - order // 2


def spline(t: Any, order: int) -> Any:
    """βₙ(t) = 1/n! Σ (-1)ᵏ C(n+1, k) (t + (n+1)/2 - k)₊ⁿ."""
    if order == 0:
        return np.ones(np.shape(t))
    total: Any = 0.0
    for k in range(order + 1):
        part = np.maximum(t + (order + 1) / 2 - k, 0.0) ** order
        total = total + (-1) ** k * math.comb(order + 1, k) * part
    return total / math.factorial(order)


non_differentiable(folded, entries, start_of)


def sampled(c: Any, places: Any, order: int, mode: int, cval: Any, padding: int, dtype: Any) -> Any:
    """The spline with coefficients c at places, one array for each axis."""
    weights: Any = 1.0
    known: Any = True
    index: list[Any] = []
    d = len(places)
    for axis, place in enumerate(places):
        n = c.shape[axis]
        p = place + padding
        sign, shift, found = folded(ignore_derivatives(p), n, mode)
        p = np.where(found, sign * p + shift, 0.0)
        start = start_of(ignore_derivatives(p), order)
        at, there = entries(start, order, n, mode)
        w = spline(p[..., None] - start[..., None] - np.arange(order + 1), order)
        across = tuple([1] * axis + [order + 1] + [1] * (d - 1 - axis))
        form = (*p.shape, *across)
        index.append(at.reshape(form))
        known = known & (there & found[..., None]).reshape(form)
        weights = weights * w.reshape(form)
    items = np.where(known, c[tuple(index)], cval if mode == GRID_CONSTANT else 0.0)
    y = np.sum(items * weights, axis=tuple(range(-d, 0)))
    if mode == CONSTANT:
        y = np.where(np.any(known, axis=tuple(range(-d, 0))), y, cval)
    return y.astype(dtype)


# -- geometric transforms --------------------------------------------------------------------------


def transformed(
    c: Any, coordinates: Any, matrix: Any, offset: Any, output: Any, *settings: Any
) -> Any:
    """What the kernel writes, by the places themselves or by an affine map of the indices."""
    new = output.copy()
    _nd_image.geometric_transform(c, None, coordinates, matrix, offset, new, *settings, None, None)
    return new


@derivative_of(transformed)
def _(c, coordinates, matrix, offset, output, order, mode, cval, padding):
    if coordinates is None:
        indices = np.indices(output.shape).astype(float)
        coordinates = np.tensordot(matrix, indices, axes=1)
        coordinates = coordinates + np.reshape(offset, (-1,) + (1,) * output.ndim)
    return sampled(c, coordinates, order, mode, cval, padding, output.dtype)


written_to(_nd_image.geometric_transform, _nd_image.zoom_shift)


@instead_of(_nd_image.geometric_transform)
def _(
    c, mapping, coordinates, matrix, offset, output, order, mode, cval, padding, extra, keywords
):  # fmt: skip
    if mapping is not None:
        python_function(mapping)
        found = [mapping(i, *extra, **keywords) for i in np.ndindex(output.shape)]
        coordinates = np.array(found, dtype=float).T.reshape((c.ndim, *output.shape))
    output[...] = transformed(c, coordinates, matrix, offset, output, order, mode, cval, padding)


@writes(_nd_image.zoom_shift, 3)
def _(c, zoom, shift, output, order, mode, cval, padding, grid_mode):
    places = []
    for axis, n in enumerate(output.shape):
        p = np.arange(n, dtype=float)
        if shift is not None:
            p = p + shift[axis]
        if zoom is not None:
            p = (p + 0.5) * zoom[axis] - 0.5 if grid_mode else p * zoom[axis]
        places.append(
            np.broadcast_to(p.reshape((-1,) + (1,) * (output.ndim - 1 - axis)), output.shape)
        )
    return sampled(c, places, order, mode, cval, padding, output.dtype)


# -- filters in Fourier space ----------------------------------------------------------------------

GAUSSIAN, UNIFORM, ELLIPSOID = range(3)


def frequencies(shape: Any, n: int, axis: int) -> Any:
    """Those of each axis, in the shape of the whole; `n` is the length that a half axis had."""
    found = []
    for k, size in enumerate(shape):
        f = np.arange(size) / n if n >= 0 and k == axis else np.fft.fftfreq(size)
        found.append(f.reshape((-1,) + (1,) * (len(shape) - 1 - k)))
    return found


non_differentiable(frequencies)


def ball(radius: Any, d: int) -> Any:
    """The Fourier transform of a ball of diameter 1 in d dimensions, which is 1 at zero."""
    at_zero = radius == 0
    r = math.pi * np.where(at_zero, 1.0, radius)
    if d == 1:
        found = np.sin(r) / r
    elif d == 2:
        found = 2 * special.j1(r) / r
    else:
        found = 3 * (np.sin(r) - r * np.cos(r)) / r**3
    return np.where(at_zero, 1.0, found)


@writes(_nd_image.fourier_filter, 4)
def _(x, parameters, n, axis, output, kind):
    fs = frequencies(x.shape, n, axis)
    if kind == ELLIPSOID:
        square: Any = 0.0
        for i, f in enumerate(fs):
            square = square + (parameters[i] * f) ** 2
        at_zero = square == 0
        radius = np.where(at_zero, 0.0, np.sqrt(np.where(at_zero, 1.0, square)))
        return (x * ball(radius, x.ndim)).astype(output.dtype)
    y = x
    for i, f in enumerate(fs):
        factor = (
            np.exp(-2 * (math.pi * parameters[i] * f) ** 2)
            if kind == GAUSSIAN
            else np.sinc(parameters[i] * f)
        )
        y = y * factor
    return y.astype(output.dtype)


@writes(_nd_image.fourier_shift, 4)
def _(x, shift, n, axis, output):
    angle: Any = 0.0
    for i, f in enumerate(frequencies(x.shape, n, axis)):
        angle = angle - 2 * math.pi * shift[i] * f
    return (x * (np.cos(angle) + 1j * np.sin(angle))).astype(output.dtype)
