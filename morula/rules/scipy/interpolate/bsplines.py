"""Rules of B-splines: values by de Boor's algorithm, matrices of them, fits by least squares.

The points, the coefficients and the knots have their gradients.
de Boor, A practical guide to splines, chapter X.
Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from scipy.interpolate import NdBSpline
from scipy.linalg import lapack

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.scipy.answers import refused, told_as
from morula.rules.scipy.interpolate import routines
from morula.rules.scipy.interpolate.polynomials import outside
from morula.rules.scipy.kernels import writes, written_to
from morula.rules.steering import ignore_derivatives


def span_of(t: Any, k: int, points: Any) -> Any:
    """The numbers of the last knots that are not beyond the points, between k and n - 1."""
    return np.clip(np.searchsorted(t, points, "right") - 1, k, len(t) - k - 2)


non_differentiable(span_of, routines.find_interval)


def de_boor(t: Any, k: int, i: Any, x: Any, d: Any, nu: int = 0) -> Any:
    """A slope of order nu at points x between t[i] and t[i+1], of the k + 1 coefficients there."""
    d = list(d)
    for r in range(nu):
        for j in range(k, r, -1):
            gap = beside(t[i + j - r] - t[i + j - k], d[j])
            d[j] = (k - r) * (d[j] - d[j - 1]) / gap
    for r in range(nu + 1, k + 1):
        for j in range(k, r - 1, -1):
            left, right = t[i + j - k], t[i + j + 1 - r]
            share = beside((x - left) / (right - left), d[j])
            d[j] = (1.0 - share) * d[j - 1] + share * d[j]
    return d[k]


def beside(s: Any, d: Any) -> Any:
    """Numbers for the rows of d."""
    return np.reshape(s, (-1, *(1,) * (np.ndim(d) - 1)))


def along_first(t: Any, c: Any, k: int, x: Any, nu: int) -> Any:
    """The splines of the columns of c, beyond the knots those of the last intervals."""
    if nu > k:
        return np.zeros((len(x), *c.shape[1:]))
    i = span_of(t, k, x)
    return de_boor(t, k, i, x, [c[i - k + j] for j in range(k + 1)], nu)


def basis(t: Any, k: int, i: Any, x: Any, nu: int = 0) -> Any:
    """The k + 1 splines that are not zero between t[i] and t[i+1], for each of the points there."""
    if nu > k:
        return np.zeros((len(x), k + 1))
    return de_boor(t, k, i, x, [np.ones((len(x), 1)) * unit for unit in np.eye(k + 1)], nu)


def design(t: Any, k: int, x: Any) -> Any:
    """All splines at all points."""
    return along_first(t, np.eye(len(t) - k - 1), k, x, 0)


@derivative_of(routines.evaluate_spline)
def evaluate_spline(t: Any, c: Any, k: Any, xp: Any, nu: Any, extrapolate: Any) -> Any:
    """By de Boor's algorithm, the slopes by differences of the coefficients."""
    found = along_first(t, c, k, xp, nu)
    if extrapolate:
        return found
    return np.where(outside(t[k : len(t) - k], xp)[:, None], np.nan, found)


@derivative_of(routines.evaluate_all_bspl)
def evaluate_all_bspl(t: Any, k: Any, xval: Any, interval: Any, nu: Any = 0) -> Any:
    """The splines that are not zero in an interval, at one point."""
    at = np.reshape(np.asarray(xval), (1,))
    return basis(t, k, np.array([interval]), at, nu)[0]


@writes(routines.coloc, 3)
def _(x, t, k, ab, offset=0):
    """Row `column` of ab holds what the splines of that number are at the points, as LAPACK has it."""
    n = len(t) - k - 1
    row = np.arange(len(x)) + offset
    splines = design(t, k, x)
    columns = np.arange(n)
    at = 2 * k + row[:, None] - columns
    near = (at >= 0) & (at < ab.shape[1])
    where = np.where(near, at, 0)
    picked = np.where(near, splines, 0.0)
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


# -- several dimensions ----------------------------------------------------------------------------


def local(xi: Any, t: Any, len_t: Any, ks: Any, nu: Any) -> tuple[list[Any], list[Any]]:
    """For each axis the first spline that is not zero at each point, and the values of those."""
    firsts, values = [], []
    for d, k in enumerate(ks):
        knots = t[d, : len_t[d]]
        i = span_of(knots, int(k), xi[:, d])
        firsts.append(i - int(k))
        values.append(basis(knots, int(k), i, xi[:, d], int(nu[d])))
    return firsts, values


@derivative_of(routines.evaluate_ndbspline)
def evaluate_ndbspline(
    xi: Any, t: Any, len_t: Any, k: Any, nu: Any, extrapolate: Any, c1r: Any, num_c_tr: Any,
    strides_c1: Any, indices_k1d: Any,
) -> Any:  # fmt: skip
    """Sums of coefficients times products of splines."""
    firsts, values = local(xi, t, len_t, k, nu)
    sizes = [int(n - order - 1) for n, order in zip(len_t, k, strict=True)]
    at = corners(firsts, k)
    found = np.reshape(c1r, (*sizes, num_c_tr))[at]
    for splines in values:
        found = np.sum(
            np.reshape(splines, (*splines.shape, *(1,) * (found.ndim - 2))) * found, axis=1
        )
    if extrapolate:
        return found
    return np.where(beyond(xi, t, len_t, k)[:, None], np.nan, found)


def corners(firsts: Any, k: Any) -> tuple[Any, ...]:
    """Which coefficients count at each point, for each axis."""
    n = len(k)
    found = []
    for d, (first, order) in enumerate(zip(firsts, k, strict=True)):
        near = first[:, None] + np.arange(int(order) + 1)
        found.append(np.reshape(near, (len(first), *(1,) * d, -1, *(1,) * (n - 1 - d))))
    return tuple(found)


def beyond(xi: Any, t: Any, len_t: Any, k: Any) -> Any:
    """Which points are outside of the knots of some axis."""
    found = np.zeros(len(xi), bool)
    for d, order in enumerate(k):
        found |= outside(t[d, order : len_t[d] - order], xi[:, d])
    return found


non_differentiable(corners, beyond)


@instead_of(routines.coloc_nd)
def coloc_nd(xvals: Any, t: Any, len_t: Any, k: Any, indices_k1d: Any, cstrides: Any) -> Any:
    """The entries of a sparse matrix, and where they are."""
    data, *where = ignore_derivatives(
        partial(routines.coloc_nd, xvals, t, len_t, k, indices_k1d, cstrides)
    )
    products = np.ones((len(xvals), 1))
    for splines in local(xvals, t, len_t, k, np.zeros(len(k), int))[1]:
        products = np.reshape(products[:, :, None] * splines[:, None, :], (len(xvals), -1))
    return told_as(data, np.ravel(products)), *where


@instead_of(routines.make_ndbspl)
def make_ndbspl(points: Any, values: Any, k: Any = 3, **options: Any) -> Any:
    """An interpolation on a grid, whose coefficients solve equations along one axis after the other."""
    found = plain_ndbspl(points, values, k, options)
    told, knots = np.asarray(values), []
    for d, order in enumerate(found.k):
        x = np.asarray(points[d], dtype=float)
        t = routines.not_a_knot(x, order)
        first = np.swapaxes(told, 0, d)
        flat = np.linalg.solve(design(t, order, x), np.reshape(first, (len(x), -1)))
        told = np.swapaxes(np.reshape(flat, first.shape), 0, d)
        knots.append(t)
    return NdBSpline(tuple(knots), told_as(found.c, told), k)


def plain_ndbspl(points: Any, values: Any, k: Any, options: dict[str, Any]) -> Any:
    """What SciPy makes."""
    return routines.make_ndbspl(points, values, k, **options)


non_differentiable(plain_ndbspl)


# -- least squares ---------------------------------------------------------------------------------


@instead_of(routines.data_matrix)
def data_matrix(x: Any, t: Any, k: Any, w: Any, extrapolate: Any = False) -> Any:
    """The splines that are not zero at each point, times its weight."""
    data, *where = ignore_derivatives(partial(routines.data_matrix, x, t, k, w, extrapolate))
    return told_as(data, w[:, None] * basis(t, k, span_of(t, k, x), x)), *where


written_to(routines.norm_eq_lsq)


def normal_equations(x: Any, t: Any, k: Any, y: Any, w: Any, ab: Any, rhs: Any) -> Any:
    """What SciPy writes to its last two arguments."""
    bands, right = np.array(ab, order="K"), rhs.copy()
    routines.norm_eq_lsq(x, t, k, y, w, bands, right)
    return bands, right


non_differentiable(normal_equations)


@instead_of(routines.norm_eq_lsq)
def norm_eq_lsq(x: Any, t: Any, k: Any, y: Any, w: Any, ab: Any, rhs: Any) -> None:
    """The normal equations, the matrix by its bands."""
    bands, right = normal_equations(x, t, k, y, w, ab, rhs)
    splines = w[:, None] * design(t, k, x)
    products = splines.T @ splines
    n = len(products)
    lower = [np.concatenate((np.diagonal(products, -b), np.zeros(b))) for b in range(k + 1)]
    ab[...] = told_as(bands, np.stack(lower, axis=1)[:n])
    rhs[...] = told_as(right, splines.T @ (w[:, None] * y))


def best(A: Any, b: Any) -> Any:
    """The solution of A c = b by least squares, of the least norm."""
    return np.linalg.lstsq(A, b)[0]


@instead_of(routines.lsq_solve_qr)
def lsq_solve_qr(x: Any, y: Any, t: Any, k: Any, w: Any, periodic: Any = False) -> Any:
    """Coefficients, residuals and their sum; the factors on the way have no derivative."""
    found = ignore_derivatives(partial(routines.lsq_solve_qr, x, y, t, k, w, periodic))
    A, y_w, c, fp, residuals = found
    if periodic:
        return tuple([refused(value, FACTORS, x, y, t, w) for value in found])
    splines = design(t, k, x)
    coefficients = best(w[:, None] * splines, w[:, None] * y)
    squares = np.sum((w[:, None] * (y - splines @ coefficients)) ** 2, axis=1)
    return (
        refused(A, FACTORS, x, t, w), refused(y_w, FACTORS, x, y, t, w), told_as(c, coefficients),
        told_as(fp, np.sum(squares)), told_as(residuals, squares),
    )  # fmt: skip


FACTORS = "the factors of a fit of splines have no derivative"


def periodic_fit(A: Any, y: Any, w: Any, k: int) -> Any:
    """Coefficients by least squares whose last k are the first k."""
    turns = around(A.shape[1], k)
    return turns @ best(w[:, None] * (A @ turns), w[:, None] * y)


def around(n: int, k: int) -> Any:
    """The matrix that writes out n coefficients of a periodic spline."""
    return np.eye(n - k)[np.arange(n) % (n - k)]


non_differentiable(around)
