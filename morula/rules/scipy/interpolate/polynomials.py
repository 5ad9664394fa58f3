"""Rules of piecewise polynomials, in powers and in Bernstein's basis.

The points, the coefficients and the breakpoints have their gradients.
Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import binom

from morula.core.extend import UnsupportedError, non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import told_as
from morula.rules.scipy.interpolate import routines
from morula.rules.scipy.interpolate.roots import refined
from morula.rules.scipy.kernels import writes
from morula.rules.steering import ignore_derivatives


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


@writes(routines.evaluate, 5)
def _(c, x, xp, dx, extrapolate, out):
    k = c.shape[0]
    if dx >= k:
        return np.zeros(out.shape, out.dtype)
    i = interval_of(x, xp)
    found = horner(c[: k - dx, i] * factors(k, dx)[:, None, None], xp - x[i])
    return found if extrapolate else np.where(outside(x, xp)[:, None], np.nan, found)


@writes(routines.integrate, 5)
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


@writes(routines.fix_continuity, 0)
def _(c, x, order):
    """The lowest powers follow from the piece before, the highest of them first."""
    k, steps = len(c), np.diff(x)[:-1, None]
    rows = list(c)
    for dx in range(order, -1, -1):
        rise = np.zeros(rows[0][:-1].shape, c.dtype)
        for j in range(k - 1 - dx):
            rise = rise + binom(k - 1 - j, dx) * rows[j][:-1] * steps ** (k - 1 - j - dx)
        start = rows[k - 1 - dx][:1]
        rows[k - 1 - dx] = np.concatenate((start, start + np.cumsum(rise, axis=0)))
    return np.stack(rows)


@writes(routines.evaluate_bernstein, 5)
def _(c, x, xp, nu, extrapolate, out):
    k = len(c)
    if nu >= k:
        return np.zeros(out.shape, out.dtype)
    i = interval_of(x, xp)
    length = (x[i + 1] - x[i])[:, None]
    share = (xp - x[i])[:, None] / length
    rows = c[:, i]
    for order in range(nu):
        rows = (k - 1 - order) * (rows[1:] - rows[:-1]) / length
    while len(rows) > 1:
        rows = (1.0 - share) * rows[:-1] + share * rows[1:]
    found = rows[0]
    return found if extrapolate else np.where(outside(x, xp)[:, None], np.nan, found)


@writes(routines.evaluate_nd, 6)
def _(c, xs, ks, xp, dx, extrapolate, out):
    ks = [int(k) for k in ks]
    if any(order >= k for k, order in zip(ks, dx, strict=True)):
        return np.zeros(out.shape, out.dtype)
    pieces = np.reshape(c, (*ks, *[len(x) - 1 for x in xs], c.shape[-1]))
    cells = [interval_of(x, xp[:, d]) for d, x in enumerate(xs)]
    found = pieces[(*[slice(None)] * len(ks), *cells)]
    for d, (k, x, i) in enumerate(zip(ks, xs, cells, strict=True)):
        rest = (1,) * (found.ndim - 1)
        found = found[: k - dx[d]] * np.reshape(factors(k, int(dx[d])), (-1, *rest))
        into = np.reshape(xp[:, d] - x[i], (*(1,) * (len(ks) - 1 - d), -1, 1))
        total = np.zeros(found.shape[1:], found.dtype)
        for row in found:
            total = total * into + row
        found = total
    beyond = np.any(np.stack([outside(x, xp[:, d]) for d, x in enumerate(xs)]), axis=0)
    return found if extrapolate else np.where(beyond[:, None], np.nan, found)


def found_roots(*args: Any) -> Any:
    """What SciPy finds."""
    return routines.real_roots(*args)


non_differentiable(found_roots)


@instead_of(routines.real_roots)
def real_roots(c: Any, x: Any, y: Any, report_discont: Any, extrapolate: Any) -> Any:
    """Where each column of polynomials is y: they move as their equations say, jumps as breakpoints."""
    found = found_roots(c, x, y, report_discont, extrapolate)
    return [roots_of(c[:, :, j], x, y, z) for j, z in enumerate(found)]


def roots_of(c: Any, x: Any, y: Any, z: Any) -> Any:
    """The roots z, and what follows from them."""
    if len(z) == 0:
        return z
    constants = ignore_derivatives((c, x, y))
    i, jump, at = pieces_of(constants, z)

    def difference(s):
        return horner(c[:, i, None], s - x[i])[:, 0] - y

    def slope(s):
        k = len(c)
        powers = factors(k, 1)[:, None, None]
        return horner(c[: k - 1, i, None] * powers, s - x[i])[:, 0]

    smooth = refined(difference, slope, np.where(jump, x[i], z), jump)
    return told_as(z, np.where(jump, x[at], smooth))


def pieces_of(constants: Any, z: Any) -> Any:
    """The piece of each root, whether it is no root of that piece, and the breakpoint next to it."""
    c, x, y = constants
    i = interval_of(x, z)
    sizes = horner(np.abs(c[:, i, None]), np.abs(z - x[i]))[:, 0] + abs(y)
    jump = ~(np.abs(horner(c[:, i, None], z - x[i])[:, 0] - y) <= 1e-6 * sizes)
    return i, jump, np.argmin(np.abs(x[:, None] - np.nan_to_num(z)), axis=0)


non_differentiable(pieces_of)
