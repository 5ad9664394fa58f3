"""Rules of scipy.interpolate's compiled functions: piecewise polynomials, B-splines, regular grids.

They are written in NumPy for the derivative: Horner's scheme, de Boor's algorithm, products of
distances; so the points, the coefficients and the knots have their gradients.
de Boor, A practical guide to splines, chapter X.
Tests: tests/rules/scipy/test_chapters.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.interpolate import _dierckx, _interpnd, _ppoly, _rgi_cython
from scipy.linalg import lapack

from morula.core.extend import UnsupportedError, non_differentiable
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.scipy.kernels import writes

# -- piecewise polynomials -------------------------------------------------------------------------


def interval_of(x: Any, points: Any) -> Any:
    """In which interval of the breakpoints, in either order, the points lie."""
    if x[-1] >= x[0]:
        return np.clip(np.searchsorted(x, points, "right") - 1, 0, len(x) - 2)
    return np.clip(np.searchsorted(-x, -points, "right") - 1, 0, len(x) - 2)


def factors(k: int, dx: int) -> Any:
    """What the powers k-1, …, dx have as factors in the derivative of order dx."""
    powers = np.arange(k - 1, dx - 1, -1)
    return np.prod([np.ones(len(powers)), *[powers - i for i in range(dx)]], axis=0)


def outside(x: Any, points: Any) -> Any:
    """Which points are beyond the ends, or not numbers."""
    low, high = min(x[0], x[-1]), max(x[0], x[-1])
    return ~((points >= low) & (points <= high))


non_differentiable(interval_of, factors, outside)


def horner(c, s):
    """Σ c[j] s^(k-1-j), the coefficients of shape (k, r, n), s of shape (r,)."""
    total = np.zeros(c.shape[1:], c.dtype)
    for row in c:
        total = total * s[:, None] + row
    return total


@writes(_ppoly.evaluate, 5)
def _(c, x, xp, dx, extrapolate, out):
    k = c.shape[0]
    if dx >= k:
        return np.zeros(out.shape, out.dtype)
    i = interval_of(x, xp)
    found = horner(c[: k - dx, i] * factors(k, dx)[:, None, None], xp - x[i])
    return found if extrapolate else np.where(outside(x, xp)[:, None], np.nan, found)


@writes(_ppoly.integrate, 5)
def _(c, x, a, b, extrapolate, out):
    if not extrapolate and np.any(outside(x, np.array([a, b]))):
        return np.full(out.shape, np.nan)
    if x[-1] < x[0]:
        raise UnsupportedError("integrate over descending breakpoints has no derivative here")
    k, m = c.shape[:2]
    edges = np.concatenate((x[:1], x[1:-1], x[-1:]))
    low = np.where(np.arange(m) == 0, -np.inf, edges[:-1])
    high = np.where(np.arange(m) == m - 1, np.inf, edges[1:])
    whole = c / np.arange(k, 0, -1)[:, None, None]
    antiderivative = np.concatenate((whole, np.zeros((1, *c.shape[1:]))))
    begin = np.clip(a, low, high) - x[:-1]
    end = np.clip(b, low, high) - x[:-1]
    return np.sum(horner(antiderivative, end) - horner(antiderivative, begin), axis=0)


# -- B-splines -------------------------------------------------------------------------------------


def span_of(t: Any, k: int, points: Any) -> Any:
    """The numbers of the last knots that are not beyond the points, between k and n - 1."""
    return np.clip(np.searchsorted(t, points, "right") - 1, k, len(t) - k - 2)


non_differentiable(span_of)


@derivative_of(_dierckx.evaluate_spline)
def evaluate_spline(t: Any, c: Any, k: Any, xp: Any, nu: Any, extrapolate: Any) -> Any:
    """By de Boor's algorithm, the derivative by differences of the coefficients."""
    if nu > k:
        return np.zeros((len(xp), c.shape[1]))
    inside = ~outside(t[k : len(t) - k], xp)[:, None]
    i = span_of(t, k, xp)
    for order in range(k, k - nu, -1):  # the knots at both ends stay
        gaps = t[order + 1 : order + len(c)] - t[1 : len(c)]
        steps = (order * (c[1:] - c[:-1])) / np.where(gaps == 0, 1.0, gaps)[:, None]
        t, c = t[1:-1], np.where((gaps == 0)[:, None], 0.0, steps)
    k = k - nu
    i = i - nu
    d = [c[i - k + j] for j in range(k + 1)]
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            left, right = t[j + i - k], t[j + 1 + i - r]
            share = ((xp - left) / (right - left))[:, None]
            d[j] = (1.0 - share) * d[j - 1] + share * d[j]
    return d[k] if extrapolate else np.where(inside, d[k], np.nan)


@derivative_of(_dierckx.evaluate_all_bspl)
def evaluate_all_bspl(t: Any, k: Any, xval: Any, interval: Any, nu: Any = 0) -> Any:
    """The splines that are not zero in an interval, at one point."""
    at = np.reshape(np.asarray(xval), (1,))
    return evaluate_spline(t, np.eye(len(t) - k - 1), k, at, nu, True)[
        0, interval - k : interval + 1
    ]


@writes(_dierckx._coloc, 3)
def _(x, t, k, ab, offset=0):
    """Row `column` of ab holds what the splines of that number are at the points, as LAPACK has it."""
    n = len(t) - k - 1
    row = np.arange(len(x)) + offset
    basis = evaluate_spline(t, np.eye(n), k, x, 0, True)
    columns = np.arange(n)
    at = 2 * k + row[:, None] - columns
    near = (at >= 0) & (at < ab.shape[1])
    where = np.where(near, at, 0)
    picked = np.where(near, basis, 0.0)
    places = (np.arange(ab.shape[1]) == where[..., None]) * picked[..., None]
    return np.sum(places, axis=0)


def _banded(kernel):
    """gbsv, whose operands stay as they are: SciPy does not read them again."""

    def solved(kl: Any, ku: Any, ab: Any, b: Any) -> Any:
        return kernel(kl, ku, ab, b)

    @derivative_of(solved)
    def solve_banded(kl: Any, ku: Any, ab: Any, b: Any) -> Any:
        return None, None, linalg.solve_banded((kl, ku), ab[kl:], b), 0

    @instead_of(kernel)
    def solve(
        kl: Any, ku: Any, ab: Any, b: Any, overwrite_ab: Any = 0, overwrite_b: Any = 0
    ) -> Any:
        return solved(kl, ku, ab, b)


_banded(lapack.dgbsv)
_banded(lapack.zgbsv)

# -- regular grids ---------------------------------------------------------------------------------


def cells(grid: Any, xi: Any) -> Any:
    """The numbers of the cells that the points lie in, for each axis."""
    found = []
    for x, points in zip(grid, xi, strict=True):
        found.append(np.clip(np.searchsorted(x, points, "right") - 1, 0, max(len(x) - 2, 0)))
    return np.stack(found)


non_differentiable(cells)


@derivative_of(_interpnd._ndim_coords_from_arrays)
def coordinates(points: Any, ndim: Any = None) -> Any:
    """Points as rows, out of an array of them or a tuple of their coordinates."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return np.stack(np.broadcast_arrays(*points), axis=-1)
    points = np.asarray(points)
    if points.ndim == 1:
        return points[:, None] if ndim is None else np.reshape(points, (-1, ndim))
    return points


@derivative_of(_rgi_cython.find_indices)
def find_indices(grid: Any, xi: Any) -> Any:
    """The cells, and how far into them the points lie."""
    found = cells(grid, xi)
    shares = []
    for x, points, i in zip(grid, xi, found, strict=True):
        if len(x) == 1:
            shares.append(np.zeros(points.shape))
        else:
            shares.append((points - x[i]) / (x[i + 1] - x[i]))
    return found, np.stack(shares)


@writes(_rgi_cython.evaluate_linear_2d, 4)
def evaluate_linear_2d(values, indices, distances, grid, out):
    (i, j), (u, v) = indices, distances
    i1, j1 = np.minimum(i + 1, values.shape[0] - 1), np.minimum(j + 1, values.shape[1] - 1)
    below = values[i, j] * (1 - v) + values[i, j1] * v
    above = values[i1, j] * (1 - v) + values[i1, j1] * v
    return below * (1 - u) + above * u
