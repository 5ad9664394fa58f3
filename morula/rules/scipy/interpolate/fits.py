"""Rules of the splines that FITPACK fits to data.

For given knots the coefficients solve equations, by least squares where there are more of them:

    w A(x, t) c = w y        A: all splines at all sites x

An interpolation has knots that follow its sites, a polynomial by least squares those at the ends.
Any other smoothing fit chooses its knots and how smooth it is by the data, by a search that ends
early: it has no derivative by them.
Dierckx, Curve and surface fitting with splines, chapters 4, 5 and 9.
Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import _dfitpack, _fitpack_impl, _fitpack_repro
from scipy.interpolate import BSpline

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import refused, told_as
from morula.rules.scipy.interpolate.bsplines import best, design, periodic_fit
from morula.rules.steering import ignore_derivatives

SMOOTH = (
    "a smoothing fit (s > 0) chooses its knots and how smooth it is by the data, so it has no "
    "derivative by them: take s=0, or knots of your own, or make_smoothing_spline with lam="
)
DEFICIENT = "a fit of splines whose coefficients the data do not determine has no derivative by them"
AGAIN = "a fit that goes on from an earlier one (task=1) has no derivative: start anew with task=0 or -1"


def floats(*given: Any) -> list[Any]:
    """Arrays of what may be lists."""
    return [None if a is None else np.asarray(a) for a in given]


def knots_between(x: Any, k: int) -> Any:
    """The knots of an interpolation but for those at the ends: sites, or halfway between sites."""
    j = k // 2 + 1
    if k % 2:
        return x[j : len(x) - j]
    return (x[j : len(x) - j + 1] + x[j - 1 : len(x) - j]) / 2


def with_ends(low: Any, between: Any, high: Any, k: int) -> Any:
    """Knots whose ends are repeated."""
    first, last = np.reshape(np.asarray(low), (1,)), np.reshape(np.asarray(high), (1,))
    return np.concatenate((np.repeat(first, k + 1), between, np.repeat(last, k + 1)))


def knots_of(found: Any, x: Any, low: Any, high: Any, k: int, s: Any) -> Any:
    """Knots as they follow from the sites and the ends; None where the data have chosen them."""
    if len(found) == 2 * k + 2:
        return with_ends(low, np.zeros(0), high, k)
    if s == 0 and len(found) == len(x) + k + 1:
        return with_ends(low, knots_between(x, k), high, k)
    return None


def agree(found: Any, told: Any) -> bool:
    """Are knots or coefficients what SciPy has found?"""
    size = np.max(np.abs(found), initial=1e-300)
    return found.shape == told.shape and bool(np.all(np.abs(found - told) <= 1e-6 * size))


non_differentiable(agree)


def fitted(found: Any, x: Any, y: Any, w: Any, k: int, t: Any) -> Any:
    """The knots and the coefficients that were found, and the sum of squares, for knots t."""
    return in_columns(found, x, y[:, None], w, k, t)


def in_columns(found: Any, x: Any, y: Any, w: Any, k: int, t: Any) -> Any:
    """The same for data in columns, whose coefficients follow each other."""
    knots, c, fp = found
    weights = np.ones(len(x)) if w is None else w
    if t is None:
        return [refused(value, SMOOTH, x, y, weights) for value in found]
    splines = weights[:, None] * design(t, k, x)
    columns = best(splines, weights[:, None] * y)
    told = np.ravel(columns.T)
    if not agree(knots, t) or not agree(c, told):
        return [refused(value, DEFICIENT, x, y, weights, t) for value in found]
    rest = weights[:, None] * y - splines @ columns
    return told_as(knots, t), told_as(c, told), told_as(fp, squares(rest, columns))


def squares(rest: Any, c: Any) -> Any:
    """The sum of squares of what is left, nothing where as many coefficients as equations."""
    return np.sum(rest * rest) if len(rest) > len(c) else 0.0 * np.sum(rest)


# -- curves ----------------------------------------------------------------------------------------


def of_curve(found: Any, x: Any, y: Any, w: Any, low: Any, high: Any, s: Any, t: Any = None) -> Any:
    """The fourteen answers of FITPACK's about a curve, with what has a derivative."""
    k, n = int(found[5]), int(found[7])
    knots = found[8][:n]
    told = knots_of(knots, x, low, high, k, s) if t is None else t
    c = found[9][: n - k - 1]
    knots, c, fp = fitted((knots, c, found[10]), x, y, w, k, told)
    knots = np.concatenate((knots, found[8][n:]))
    c = np.concatenate((c, found[9][n - k - 1 :]))
    weights = found[2] if w is None else w
    return (x, y, weights, low, high, *found[5:8], knots, c, fp, *found[11:])


@instead_of(_dfitpack.fpcurf0)
def fpcurf0(
    x: Any, y: Any, k: Any, w: Any = None, xb: Any = None, xe: Any = None, s: Any = None,
    nest: Any = None,
) -> Any:  # fmt: skip
    """A curve through data, or near them."""
    given = {"w": w, "xb": xb, "xe": xe, "s": s, "nest": nest}
    given = {name: value for name, value in given.items() if value is not None}
    found = ignore_derivatives(partial(_dfitpack.fpcurf0, x, y, k, **given))
    x, y, w = floats(x, y, w)
    return of_curve(found, x, y, w, x[0] if xb is None else xb, x[-1] if xe is None else xe, found[6])


@instead_of(_dfitpack.fpcurf1)
def fpcurf1(
    x: Any, y: Any, w: Any, xb: Any, xe: Any, k: Any, s: Any, n: Any, t: Any, c: Any, fp: Any,
    fpint: Any, nrdata: Any, ier: Any, **overwrite: Any,
) -> Any:  # fmt: skip
    """The same with another s, or more room for knots."""
    found = later_fit(x, y, w, xb, xe, k, s, n, t, c, fp, fpint, nrdata, ier)
    return of_curve(found, x, y, w, xb, xe, s)


def later_fit(*args: Any) -> Any:
    """What SciPy makes of copies of what an earlier fit has left."""
    return _dfitpack.fpcurf1(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])


non_differentiable(later_fit)


@instead_of(_dfitpack.fpcurfm1)
def fpcurfm1(
    x: Any, y: Any, k: Any, t: Any, w: Any = None, xb: Any = None, xe: Any = None,
    overwrite_t: Any = 0,
) -> Any:  # fmt: skip
    """A curve of given knots."""
    given = {"w": w, "xb": xb, "xe": xe}
    given = {name: value for name, value in given.items() if value is not None}
    found = ignore_derivatives(partial(_dfitpack.fpcurfm1, x, y, k, t, **given))
    x, y, w, t = floats(x, y, w, t)
    low, high = x[0] if xb is None else xb, x[-1] if xe is None else xe
    return of_curve(found, x, y, w, low, high, found[6], with_ends(low, t[k + 1 : -k - 1], high, k))


@instead_of(_fitpack_impl.splrep)
def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: Any = 3, task: Any = 0,
    s: Any = None, t: Any = None, full_output: Any = 0, per: Any = 0, quiet: Any = 1,
) -> Any:  # fmt: skip
    """A curve through data, or near them, or of given knots."""
    found = ignore_derivatives(
        partial(_fitpack_impl.splrep, x, y, w, xb, xe, k, task, s, t, full_output, per, quiet)
    )
    knots, padded, _ = found[0] if full_output else found
    c = padded[: len(knots) - k - 1]
    fp = found[1] if full_output else 0.0
    x, y, w, t = floats(x, y, w, t)
    if s is None:
        s = 0 if w is None else 1
    low, high = x[0] if xb is None or per else xb, x[-1] if xe is None or per else xe
    if task == 1:
        told = [refused(value, AGAIN, x, y) for value in (knots, c, fp)]
    elif per:
        told = closed((knots, c, fp), x, y[:, None], w, k, s, t)
    else:
        if t is not None:
            chosen = with_ends(low, t, high, k)
        else:
            chosen = knots_of(knots, x, low, high, k, s)
        told = fitted((knots, c, fp), x, y, w, k, chosen)
    tck = (told[0], np.concatenate((told[1], padded[len(c) :])), k)
    return (tck, told[2], *found[2:]) if full_output else tck


def closed(found: Any, x: Any, y: Any, w: Any, k: int, s: Any, t: Any) -> Any:
    """The same as `fitted` for a periodic curve, in several columns; the last data are the first again."""
    knots, c, fp = found
    weights = np.ones(len(x)) if w is None else w
    if t is not None:
        between = t
    elif len(knots) == 2 * k + 2:
        between = np.zeros(0)
    elif s == 0:
        between = x[1:-1] if k % 2 else (x[1:-1] + x[:-2]) / 2
    else:
        return [refused(value, SMOOTH, x, y, weights) for value in found]
    t = around_knots(x[0], between, x[-1], k)
    if len(t) != len(knots):
        return [refused(value, DEFICIENT, x, y, weights, t) for value in found]
    splines = design(t, k, x[:-1])
    told = periodic_fit(splines, y[:-1], weights[:-1], k)
    rest = weights[:-1, None] * (y[:-1] - splines @ told)
    told = np.ravel(told.T)
    if not agree(knots, t) or not agree(c, told):
        return [refused(value, DEFICIENT, x, y, weights, t) for value in found]
    return told_as(knots, t), told_as(c, told), told_as(fp, np.sum(rest * rest))


def around_knots(low: Any, between: Any, high: Any, k: int) -> Any:
    """Knots that go on beyond the ends as they do within."""
    inside = np.concatenate((np.reshape(low, (1,)), between, np.reshape(high, (1,))))
    n, period = len(inside) - 1, high - low
    places = np.arange(-k, len(inside) + k)
    return inside[places % n] + (places // n) * period


@instead_of(_fitpack_impl.splprep)
def splprep(
    x: Any, w: Any = None, u: Any = None, ub: Any = None, ue: Any = None, k: Any = 3, task: Any = 0,
    s: Any = None, t: Any = None, full_output: Any = 0, nest: Any = None, per: Any = 0, quiet: Any = 1,
) -> Any:  # fmt: skip
    """A curve in several dimensions through points, or near them; by default along their distances."""
    found = ignore_derivatives(
        partial(
            _fitpack_impl.splprep, x, w, u, ub, ue, k, task, s, t, full_output, nest, per, quiet
        )
    )  # fmt: skip
    (knots, columns, _), along = found[0] if full_output else found
    fp = found[1] if full_output else 0.0
    points, w, u, t = np.stack(floats(*x), axis=1), *floats(w, u, t)
    if per:
        points = np.concatenate((points[:-1], points[:1]))
    s = len(points) if s is None else s
    sites = told_as(along, lengths(points) if u is None else u)
    low, high = (sites[0] if ub is None or per else ub), (sites[-1] if ue is None or per else ue)
    answers = knots, np.concatenate(columns), fp
    if task == 1:
        told = [refused(value, AGAIN, points, sites) for value in answers]
    elif per:
        told = closed(answers, sites, points, w, k, s, None if t is None else t[k + 1 : -k - 1])
    else:
        chosen = with_ends(low, t[k + 1 : -k - 1], high, k) if task == -1 else None
        if chosen is None:
            chosen = knots_of(knots, sites, low, high, k, s)
        told = in_columns(answers, sites, points, w, k, chosen)
    n = len(told[1]) // len(columns)
    curve = [told[0], [told[1][i * n : (i + 1) * n] for i in range(len(columns))], k], sites
    return (curve, told[2], *found[2:]) if full_output else curve


def lengths(points: Any) -> Any:
    """How far along the points each is, as a share of the whole way."""
    way = np.cumsum(np.sqrt(np.sum((points[1:] - points[:-1]) ** 2, axis=1)))
    return np.concatenate((np.zeros(1), way / way[-1]))


@instead_of(_fitpack_repro._make_splrep_impl)
def make_splrep_impl(
    x: Any, y: Any, w: Any, xb: Any, xe: Any, k: Any, s: Any, t: Any, nest: Any, periodic: Any,
    xp: Any = np,
) -> Any:  # fmt: skip
    """A smoothing curve as an object; a polynomial if it has no knots within."""
    found = ignore_derivatives(
        partial(_fitpack_repro._make_splrep_impl, x, y, w, xb, xe, k, s, t, nest, periodic, xp)
    )
    answers = found.t, np.ravel(found.c.T), 0.0
    chosen = None if periodic else few_knots(found.t, xb, xe, k)
    knots, c, _ = in_columns(answers, x, y, w, k, chosen)
    c = np.reshape(c, found.c.shape[::-1]).T
    return BSpline.construct_fast(knots, c, k, axis=found.axis, extrapolate=found.extrapolate)


# -- surfaces --------------------------------------------------------------------------------------


def of_surface(found: Any, kx: int, ky: int, x: Any, y: Any, z: Any, w: Any, tx: Any, ty: Any) -> Any:
    """The knots, the coefficients and the sum of squares for scattered data and knots tx and ty."""
    weights = np.ones(len(x)) if w is None else w
    if tx is None or ty is None:
        return [refused(value, SMOOTH, x, y, z, weights) for value in found]
    rows = design(tx, kx, x)[:, :, None] * design(ty, ky, y)[:, None, :]
    rows = weights[:, None] * np.reshape(rows, (len(x), -1))
    told = best(rows, weights * z)
    chosen = agree(found[0], tx) and agree(found[1], ty) and agree(found[2], told)
    if not chosen:
        return [refused(value, DEFICIENT, x, y, z, weights, tx, ty) for value in found]
    fp = told_as(found[3], squares(weights * z - rows @ told, told))
    return told_as(found[0], tx), told_as(found[1], ty), told_as(found[2], told), fp


def limits(x: Any, low: Any, high: Any) -> Any:
    """The ends of the knots; by default those of the data."""
    return np.min(x) if low is None else low, np.max(x) if high is None else high


def wide_limits(x: Any, t: Any, low: Any, high: Any) -> Any:
    """The ends of the knots of LSQBivariateSpline: by default a step beyond all that is in t."""
    step = (np.max(t) - np.min(t)) / len(t)
    return (
        np.minimum(np.min(x), np.min(t) - step) if low is None else low,
        np.maximum(np.max(x), np.max(t) + step) if high is None else high,
    )


def few_knots(found: Any, low: Any, high: Any, k: int) -> Any:
    """The knots of a polynomial, None where there are more of them."""
    return with_ends(low, np.zeros(0), high, k) if len(found) == 2 * k + 2 else None


@instead_of(_dfitpack.surfit_smth)
def surfit_smth(
    x: Any, y: Any, z: Any, w: Any = None, xb: Any = None, xe: Any = None, yb: Any = None,
    ye: Any = None, kx: Any = 3, ky: Any = 3, s: Any = None, nxest: Any = None, nyest: Any = None,
    eps: Any = 1e-16, lwrk2: Any = None,
) -> Any:  # fmt: skip
    """A surface near scattered data."""
    given = {"s": s, "nxest": nxest, "nyest": nyest, "eps": eps, "lwrk2": lwrk2}
    given = {name: value for name, value in given.items() if value is not None}
    found = ignore_derivatives(
        partial(_dfitpack.surfit_smth, x, y, z, w, xb, xe, yb, ye, kx, ky, **given)
    )
    nx, tx, ny, ty, c, fp, *rest = found
    if rest[-1] > 10:
        return found
    x, y, z, w = floats(x, y, z, w)
    n = (nx - kx - 1) * (ny - ky - 1)
    few = few_knots(tx[:nx], *limits(x, xb, xe), kx), few_knots(ty[:ny], *limits(y, yb, ye), ky)
    told = of_surface((tx[:nx], ty[:ny], c[:n], fp), kx, ky, x, y, z, w, *few)
    return nx, told[0], ny, told[1], told[2], told[3], *rest


@instead_of(_dfitpack.surfit_lsq)
def surfit_lsq(
    x: Any, y: Any, z: Any, nx: Any, tx: Any, ny: Any, ty: Any, w: Any = None, xb: Any = None,
    xe: Any = None, yb: Any = None, ye: Any = None, kx: Any = 3, ky: Any = 3, eps: Any = None,
    lwrk2: Any = None, overwrite_tx: Any = 0, overwrite_ty: Any = 0,
) -> Any:  # fmt: skip
    """A surface of given knots near scattered data."""
    found = fit_of_knots(x, y, z, nx, tx, ny, ty, w, xb, xe, yb, ye, kx, ky, eps, lwrk2)
    if found[-1] > 10:
        return found
    x, y, z, w, tx, ty = floats(x, y, z, w, tx, ty)
    chosen_x = between_ends(tx[:nx], *wide_limits(x, tx[:nx], xb, xe), kx)
    chosen_y = between_ends(ty[:ny], *wide_limits(y, ty[:ny], yb, ye), ky)
    answers = found[0][:nx], found[1][:ny], found[2], found[3]
    told = of_surface(answers, kx, ky, x, y, z, w, chosen_x, chosen_y)
    return (
        np.concatenate((told[0], found[0][nx:])), np.concatenate((told[1], found[1][ny:])),
        *told[2:], *found[4:],
    )  # fmt: skip


def fit_of_knots(x: Any, y: Any, z: Any, nx: Any, tx: Any, ny: Any, ty: Any, *rest: Any) -> Any:
    """What SciPy finds, which changes the knots that it is given."""
    return _dfitpack.surfit_lsq(x, y, z, nx, tx.copy(), ny, ty.copy(), *rest)


non_differentiable(fit_of_knots)


@instead_of(_fitpack_impl.bisplrep)
def bisplrep(
    x: Any, y: Any, z: Any, w: Any = None, xb: Any = None, xe: Any = None, yb: Any = None,
    ye: Any = None, kx: Any = 3, ky: Any = 3, task: Any = 0, s: Any = None, eps: Any = 1e-16,
    tx: Any = None, ty: Any = None, full_output: Any = 0, nxest: Any = None, nyest: Any = None,
    quiet: Any = 1,
) -> Any:  # fmt: skip
    """A surface near scattered data."""
    found = ignore_derivatives(
        partial(
            _fitpack_impl.bisplrep, x, y, z, w, xb, xe, yb, ye, kx, ky, task, s, eps, tx, ty,
            full_output, nxest, nyest, quiet,
        )
    )  # fmt: skip
    knots_x, knots_y, c, _, _ = found[0] if full_output else found
    fp = found[1] if full_output else 0.0
    x, y, z = [np.ravel(a) for a in floats(x, y, z)]
    w, tx, ty = floats(w, tx, ty)
    ends_x, ends_y = limits(x, xb, xe), limits(y, yb, ye)
    answers = knots_x, knots_y, c, fp
    if task == 1:
        told = [refused(value, AGAIN, x, y, z) for value in answers]
    else:
        if task == -1:
            chosen = between_ends(tx, *ends_x, kx), between_ends(ty, *ends_y, ky)
        else:
            chosen = few_knots(knots_x, *ends_x, kx), few_knots(knots_y, *ends_y, ky)
        told = of_surface(answers, kx, ky, x, y, z, w, *chosen)
    tck = [told[0], told[1], told[2], kx, ky]
    return (tck, told[3], *found[2:]) if full_output else tck


def between_ends(t: Any, low: Any, high: Any, k: int) -> Any:
    """Knots whose ends are those of the data, whatever was given for them."""
    return with_ends(low, t[k + 1 : len(t) - k - 1], high, k)


@instead_of(_dfitpack.regrid_smth)
def regrid_smth(
    x: Any, y: Any, z: Any, xb: Any = None, xe: Any = None, yb: Any = None, ye: Any = None,
    kx: Any = 3, ky: Any = 3, s: Any = 0.0, maxit: Any = 20,
) -> Any:  # fmt: skip
    """A surface through data on a grid, or near them."""
    found = ignore_derivatives(
        partial(_dfitpack.regrid_smth, x, y, z, xb, xe, yb, ye, kx, ky, s, maxit)
    )
    nx, tx, ny, ty, c, fp, ier = found
    x, y, z = floats(x, y, z)
    n = (nx - kx - 1) * (ny - ky - 1)
    answers = tx[:nx], ty[:ny], c[:n], fp
    chosen_x = knots_of(tx[:nx], x, *limits(x, xb, xe), kx, s)
    chosen_y = knots_of(ty[:ny], y, *limits(y, yb, ye), ky, s)
    told = on_grid(answers, x, y, np.reshape(z, (len(x), len(y))), kx, ky, chosen_x, chosen_y)
    return nx, told[0], ny, told[1], told[2], told[3], ier


def on_grid(found: Any, x: Any, y: Any, z: Any, kx: int, ky: int, tx: Any, ty: Any) -> Any:
    """The same as `of_surface` for data on a grid: fits along one axis, then along the other."""
    if tx is None or ty is None:
        return [refused(value, SMOOTH, x, y, z) for value in found]
    along_x, along_y = design(tx, kx, x), design(ty, ky, y)
    table = best(along_y, best(along_x, z).T).T
    told = np.ravel(table)
    if not (agree(found[0], tx) and agree(found[1], ty) and agree(found[2], told)):
        return [refused(value, DEFICIENT, x, y, z, tx, ty) for value in found]
    fp = told_as(found[3], squares(np.ravel(z - along_x @ table @ along_y.T), told))
    return told_as(found[0], tx), told_as(found[1], ty), told_as(found[2], told), fp
