"""Rules of FITPACK's splines: values, slopes, integrals, roots, further knots.

The points, the coefficients and the knots have their gradients.
Dierckx, Curve and surface fitting with splines, chapters 1 and 2.
Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from morula.core.extend import UnsupportedError
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.scipy.answers import told_as
from morula.rules.scipy.interpolate import routines
from morula.rules.scipy.interpolate.bsplines import along_first, de_boor, span_of
from morula.rules.scipy.interpolate.polynomials import outside
from morula.rules.scipy.interpolate.roots import refined
from morula.rules.steering import ignore_derivatives


def kept(x: Any, low: Any, high: Any) -> Any:
    """Points brought between two limits, which they follow only beyond them."""
    return np.where(x < low, low, np.where(x > high, high, x))


def inner(t: Any, k: int) -> Any:
    """The knots between which the spline is defined."""
    return t[k : len(t) - k]


def cut(t: Any, c: Any, k: int) -> Any:
    """As many coefficients as count."""
    return np.asarray(c)[: len(t) - k - 1]


# -- curves ----------------------------------------------------------------------------------------


@derivative_of(routines.splev)
def splev(t: Any, c: Any, k: Any, x: Any, e: Any = 0) -> Any:
    """The spline."""
    return slopes(np.asarray(t), c, k, x, 0, e), 0


@derivative_of(routines.splder)
def splder(t: Any, c: Any, k: Any, nu: Any, x: Any, e: Any = 0) -> Any:
    """One of its slopes."""
    return slopes(np.asarray(t), c, k, x, nu, e), 0


@derivative_of(routines.splder_at)
def splder_at(t: Any, c: Any, k: Any, x: Any, nu: Any = 1, e: Any = 0) -> Any:
    """The same."""
    return slopes(np.asarray(t), c, k, x, nu, e), 0


def slopes(t: Any, c: Any, k: int, x: Any, nu: int, e: int) -> Any:
    """Values of one order; beyond the ends as extrapolated, zeros, or those at the ends."""
    ends = inner(t, k)
    at = kept(x, ends[0], ends[-1]) if e == 3 else x
    found = along_first(t, cut(t, c, k), k, at, nu)
    return np.where(outside(ends, x), 0.0, found) if e == 1 else found


@derivative_of(routines.spalde)
def spalde(t: Any, c: Any, k1: Any, x: Any) -> Any:
    """The value and all slopes at one point."""
    t, k, at = np.asarray(t), k1 - 1, np.reshape(np.asarray(x), (1,))
    return np.concatenate([along_first(t, cut(t, c, k), k, at, nu) for nu in range(k1)]), 0


@derivative_of(routines.splint)
def splint(t: Any, c: Any, k: Any, a: Any, b: Any) -> Any:
    """The integral of the spline."""
    return splint_of_parts(t, c, k, a, b)[0]


@derivative_of(routines.splint_of_parts)
def splint_of_parts(t: Any, c: Any, k: Any, a: Any, b: Any) -> Any:
    """The integral of the spline, and those of its parts."""
    t = np.asarray(t)
    parts = integral(t, np.eye(len(t) - k - 1), k, a, b)
    return parts @ cut(t, c, k), np.concatenate((parts, np.zeros(k + 1)))


def integral(t: Any, c: Any, k: int, a: Any, b: Any) -> Any:
    """The integrals of the splines of the columns of c, which are zero beyond the ends."""
    ends = inner(t, k)
    limits = kept(np.stack((np.asarray(a), np.asarray(b))), ends[0], ends[-1])
    sums = np.cumsum(c * ((t[k + 1 :] - t[: -k - 1]) / (k + 1))[:, None], axis=0)
    sums = np.concatenate((np.zeros((1, c.shape[1])), sums))
    begin, end = along_first(np.concatenate((t[:1], t, t[-1:])), sums, k + 1, limits, 0)
    return end - begin


@instead_of(routines.sproot)
def sproot(t: Any, c: Any, mest: Any = 10) -> Any:
    """The roots of a cubic spline."""
    zero, m, ier = ignore_derivatives(partial(routines.sproot, t, c, mest))
    if ier == 10 or m == 0:
        return zero, m, ier
    knots, count = np.asarray(t), cut(t, c, 3)

    def difference(s):
        return along_first(knots, count, 3, s, 0)

    def slope(s):
        return along_first(knots, count, 3, s, 1)

    roots = refined(difference, slope, zero[:m])
    return told_as(zero, np.concatenate((roots, np.zeros(len(zero) - m)))), m, ier


@derivative_of(routines.insert)
def insert(per: Any, t: Any, c: Any, k: Any, x: Any, m: Any) -> Any:
    """The same spline with a knot x, m times, by Boehm's algorithm."""
    if per:
        raise UnsupportedError("insert into a periodic spline (per=1) has no derivative here")
    t, c = np.asarray(t), np.asarray(c)
    c, x = cut(t, c, k), np.asarray(x)
    for _ in range(m):
        i = int(span_of(t, k, np.reshape(x, (1,)))[0])
        near = slice(i - k + 1, i + 1)
        share = (x - t[near]) / (t[i + 1 : i + k + 1] - t[near])
        between = share * c[near] + (1.0 - share) * c[i - k : i]
        c = np.concatenate((c[: i - k + 1], between, c[i:]))
        t = np.concatenate((t[: i + 1], np.reshape(x, (1,)), t[i + 1 :]))
    return t, np.concatenate((c, np.zeros(k + 1))), 0


# -- surfaces --------------------------------------------------------------------------------------


def table(tx: Any, ty: Any, c: Any, kx: int, ky: int) -> Any:
    """The coefficients as a matrix."""
    nx, ny = len(tx) - kx - 1, len(ty) - ky - 1
    return np.reshape(np.asarray(c)[: nx * ny], (nx, ny))


def between_ends(t: Any, k: int, x: Any) -> Any:
    """Points as FITPACK takes them: those beyond the knots at the ends."""
    ends = inner(t, k)
    return kept(np.ravel(np.asarray(x)), ends[0], ends[-1])


def on_grid(tx: Any, ty: Any, c: Any, kx: int, ky: int, dx: int, dy: int, x: Any, y: Any) -> Any:
    """The surface, or one of its slopes, on the grid of x and y."""
    tx, ty = np.asarray(tx), np.asarray(ty)
    rows = along_first(tx, table(tx, ty, c, kx, ky), kx, between_ends(tx, kx, x), dx)
    return along_first(ty, rows.T, ky, between_ends(ty, ky, y), dy).T


def at_points(tx: Any, ty: Any, c: Any, kx: int, ky: int, dx: int, dy: int, x: Any, y: Any) -> Any:
    """The surface, or one of its slopes, at the points of x and y."""
    tx, ty = np.asarray(tx), np.asarray(ty)
    x, y = between_ends(tx, kx, x), between_ends(ty, ky, y)
    i, j = span_of(tx, kx, x), span_of(ty, ky, y)
    near = table(tx, ty, c, kx, ky)[
        i[:, None, None] - kx + np.arange(kx + 1)[:, None],
        j[:, None, None] - ky + np.arange(ky + 1),
    ]
    rows = de_boor(tx, kx, i, x, [near[:, a] for a in range(kx + 1)], dx)
    return de_boor(ty, ky, j, y, [rows[:, b] for b in range(ky + 1)], dy)


def surface_by(value: Any, slope: Any, surface: Any) -> None:
    """Declare what gives the values of a surface, and what gives its slopes of orders nux and nuy."""

    @derivative_of(value)
    def _(tx: Any, ty: Any, c: Any, kx: Any, ky: Any, x: Any, y: Any) -> Any:
        return surface(tx, ty, c, kx, ky, 0, 0, x, y), 0

    @derivative_of(slope)
    def _(
        tx: Any, ty: Any, c: Any, kx: Any, ky: Any, nux: Any, nuy: Any, x: Any, y: Any
    ) -> Any:  # fmt: skip
        return surface(tx, ty, c, kx, ky, nux, nuy, x, y), 0


surface_by(routines.bispev, routines.parder, on_grid)
surface_by(routines.bispeu, routines.pardeu, at_points)


@derivative_of(routines.pardtc)
def pardtc(tx: Any, ty: Any, c: Any, kx: Any, ky: Any, nux: Any, nuy: Any) -> Any:
    """The coefficients of a slope, which is a surface of lower degrees."""
    tx, ty = np.asarray(tx), np.asarray(ty)
    rows = steps(tx, table(tx, ty, c, kx, ky), kx, nux)
    found = np.ravel(steps(ty, rows.T, ky, nuy).T)
    return np.concatenate((found, np.zeros(len(c) - len(found)))), 0


def steps(t: Any, c: Any, k: int, nu: int) -> Any:
    """The coefficients of slopes of order nu, along the first axis."""
    for order in range(k, k - nu, -1):
        gaps = t[order + 1 : -1] - t[1 : -order - 1]
        c = order * (c[1:] - c[:-1]) / gaps[:, None]
        t = t[1:-1]
    return c


@derivative_of(routines.dblint)
def dblint(
    tx: Any, ty: Any, c: Any, kx: Any, ky: Any, xb: Any, xe: Any, yb: Any, ye: Any
) -> Any:  # fmt: skip
    """The integral over a rectangle, of the part that is within the knots at the ends."""
    tx, ty = np.asarray(tx), np.asarray(ty)
    columns = integral(tx, table(tx, ty, c, kx, ky), kx, xb, xe)
    return integral(ty, columns[:, None], ky, yb, ye)[0]
