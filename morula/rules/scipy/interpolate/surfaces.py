"""Rules of the surfaces that FITPACK fits to data, on grids, at scattered points, on the sphere.

For given knots the coefficients solve equations, as those of curves do. On the sphere, where they
meet at the poles, they are a linear function of the data, which FITPACK itself tells.
Dierckx, Curve and surface fitting with splines, chapters 5 and 11.
Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import LSQSphereBivariateSpline

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import refused, told_as
from morula.rules.scipy.interpolate import routines
from morula.rules.scipy.interpolate.bsplines import best, design
from morula.rules.scipy.interpolate.fits import (
    AGAIN,
    DEFICIENT,
    agree,
    between_ends,
    chosen_by,
    few_knots,
    floats,
    knots_of,
    squares,
)
from morula.rules.steering import ignore_derivatives


def of_surface(
    found: Any, kx: int, ky: int, x: Any, y: Any, z: Any, w: Any, tx: Any, ty: Any, others: Any = ()
) -> Any:
    """The knots, the coefficients and the sum of squares for scattered data and knots tx and ty.

    `others` is what a fit that has chosen its knots, with tx or ty None, depends on besides.
    """
    weights = np.ones(len(x)) if w is None else w
    if tx is None or ty is None:
        return chosen_by((x, y, z, w, *others), found)
    rows = design(tx, kx, x)[:, :, None] * design(ty, ky, y)[:, None, :]
    rows = weights[:, None] * np.reshape(rows, (len(x), -1))
    told = best(rows, weights * z)
    chosen = agree(found[0], tx) and agree(found[1], ty) and agree(found[2], told)
    if not chosen:
        return chosen_by((x, y, z, w, tx, ty), found, DEFICIENT)
    fp = told_as(found[3], squares(weights * z - rows @ told, told))
    return told_as(found[0], tx), told_as(found[1], ty), told_as(found[2], told), fp


def limits(x: Any, low: Any, high: Any) -> Any:
    """The ends of the knots; by default those of the data."""
    return np.min(x) if low is None else low, np.max(x) if high is None else high


def wide_limits(x: Any, t: Any, low: Any, high: Any) -> Any:
    """The ends of the knots of LSQBivariateSpline: by default those of the data, or a step beyond t."""
    step = (np.max(t) - np.min(t)) / len(t)
    if low is None:
        low = np.min(x) if np.min(x) < np.min(t) else np.min(t) - step
    if high is None:
        high = np.max(x) if np.max(x) > np.max(t) else np.max(t) + step
    return low, high


@instead_of(routines.surfit_smth)
def surfit_smth(
    x: Any, y: Any, z: Any, w: Any, xb: Any, xe: Any, yb: Any, ye: Any, kx: Any, ky: Any, s: Any,
    eps: Any,
) -> Any:  # fmt: skip
    """A surface near scattered data."""
    found = ignore_derivatives(
        partial(routines.surfit_smth, x, y, z, w, xb, xe, yb, ye, kx, ky, s, eps)
    )
    return of_smooth_surface(found, kx, ky, x, y, z, w, xb, xe, yb, ye, s)


@instead_of(routines.surfit_smth_anew)
def surfit_smth_anew(
    x: Any, y: Any, z: Any, w: Any = None, xb: Any = None, xe: Any = None, yb: Any = None,
    ye: Any = None, kx: Any = 3, ky: Any = 3, s: Any = None, nxest: Any = None, nyest: Any = None,
    eps: Any = 1e-16, lwrk2: Any = None,
) -> Any:  # fmt: skip
    """The same, or how much room it needs."""
    given = {"s": s, "nxest": nxest, "nyest": nyest, "eps": eps, "lwrk2": lwrk2}
    given = {name: value for name, value in given.items() if value is not None}
    found = ignore_derivatives(
        partial(routines.surfit_smth_anew, x, y, z, w, xb, xe, yb, ye, kx, ky, **given)
    )
    if found[-1] > 10:
        return found
    return of_smooth_surface(found, kx, ky, x, y, z, w, xb, xe, yb, ye, s)


def of_smooth_surface(
    found: Any, kx: int, ky: int, x: Any, y: Any, z: Any, w: Any, xb: Any, xe: Any, yb: Any,
    ye: Any, s: Any,
) -> Any:  # fmt: skip
    """What was found, with what has a derivative: it chooses its knots unless it is a polynomial."""
    nx, tx, ny, ty, c, fp, *rest = found
    x, y, z, w = floats(x, y, z, w)
    n = (nx - kx - 1) * (ny - ky - 1)
    few = few_knots(tx[:nx], limits(x, xb, xe), kx), few_knots(ty[:ny], limits(y, yb, ye), ky)
    told = of_surface((tx[:nx], ty[:ny], c[:n], fp), kx, ky, x, y, z, w, *few, (xb, xe, yb, ye, s))
    return nx, told[0], ny, told[1], told[2], told[3], *rest


@instead_of(routines.surfit_lsq)
def surfit_lsq(
    x: Any, y: Any, z: Any, nx: Any, tx: Any, ny: Any, ty: Any, w: Any, xb: Any, xe: Any, yb: Any,
    ye: Any, kx: Any, ky: Any, eps: Any,
) -> Any:  # fmt: skip
    """A surface of given knots near scattered data."""
    found = ignore_derivatives(
        partial(routines.surfit_lsq, x, y, z, nx, tx, ny, ty, w, xb, xe, yb, ye, kx, ky, eps)
    )
    return of_surface_of_knots(found, kx, ky, x, y, z, nx, tx, ny, ty, w, xb, xe, yb, ye)


@instead_of(routines.surfit_lsq_anew)
def surfit_lsq_anew(
    x: Any, y: Any, z: Any, nx: Any, tx: Any, ny: Any, ty: Any, w: Any = None, xb: Any = None,
    xe: Any = None, yb: Any = None, ye: Any = None, kx: Any = 3, ky: Any = 3, eps: Any = None,
    lwrk2: Any = None, overwrite_tx: Any = 0, overwrite_ty: Any = 0,
) -> Any:  # fmt: skip
    """The same, or how much room it needs."""
    found = fit_of_knots(x, y, z, nx, tx, ny, ty, w, xb, xe, yb, ye, kx, ky, eps, lwrk2)
    if found[-1] > 10:
        return found
    return of_surface_of_knots(found, kx, ky, x, y, z, nx, tx, ny, ty, w, xb, xe, yb, ye)


def of_surface_of_knots(
    found: Any, kx: int, ky: int, x: Any, y: Any, z: Any, nx: int, tx: Any, ny: int, ty: Any,
    w: Any, xb: Any, xe: Any, yb: Any, ye: Any,
) -> Any:  # fmt: skip
    """What was found, with what has a derivative."""
    x, y, z, w, tx, ty = floats(x, y, z, w, tx, ty)
    chosen_x = between_ends(tx[:nx], wide_limits(x, tx[:nx], xb, xe), kx)
    chosen_y = between_ends(ty[:ny], wide_limits(y, ty[:ny], yb, ye), ky)
    answers = found[0][:nx], found[1][:ny], found[2], found[3]
    told = of_surface(answers, kx, ky, x, y, z, w, chosen_x, chosen_y)
    return (
        np.concatenate((told[0], found[0][nx:])), np.concatenate((told[1], found[1][ny:])),
        *told[2:], *found[4:],
    )  # fmt: skip


def fit_of_knots(x: Any, y: Any, z: Any, nx: Any, tx: Any, ny: Any, ty: Any, *rest: Any) -> Any:
    """What SciPy finds, which changes the knots that it is given."""
    return routines.surfit_lsq_anew(x, y, z, nx, tx.copy(), ny, ty.copy(), *rest)


non_differentiable(fit_of_knots)


@instead_of(routines.bisplrep)
def bisplrep(
    x: Any, y: Any, z: Any, w: Any = None, xb: Any = None, xe: Any = None, yb: Any = None,
    ye: Any = None, kx: Any = 3, ky: Any = 3, task: Any = 0, s: Any = None, eps: Any = 1e-16,
    tx: Any = None, ty: Any = None, full_output: Any = 0, nxest: Any = None, nyest: Any = None,
    quiet: Any = 1,
) -> Any:  # fmt: skip
    """A surface near scattered data."""
    found = ignore_derivatives(
        partial(
            routines.bisplrep, x, y, z, w, xb, xe, yb, ye, kx, ky, task, s, eps, tx, ty,
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
        told = chosen_by((x, y, z, w, xb, xe, yb, ye, s), answers, AGAIN)
    else:
        if task == -1:
            chosen = between_ends(tx, ends_x, kx), between_ends(ty, ends_y, ky)
        else:
            chosen = few_knots(knots_x, ends_x, kx), few_knots(knots_y, ends_y, ky)
        told = of_surface(answers, kx, ky, x, y, z, w, *chosen, (xb, xe, yb, ye, s))
    tck = [told[0], told[1], told[2], kx, ky]
    return (tck, told[3], *found[2:]) if full_output else tck


@instead_of(routines.regrid_smth)
def regrid_smth(
    x: Any, y: Any, z: Any, xb: Any = None, xe: Any = None, yb: Any = None, ye: Any = None,
    kx: Any = 3, ky: Any = 3, s: Any = 0.0, maxit: Any = 20,
) -> Any:  # fmt: skip
    """A surface through data on a grid, or near them."""
    found = ignore_derivatives(
        partial(routines.regrid_smth, x, y, z, xb, xe, yb, ye, kx, ky, s, maxit)
    )
    nx, tx, ny, ty, c, fp, ier = found
    x, y, z = floats(x, y, z)
    n = (nx - kx - 1) * (ny - ky - 1)
    answers = tx[:nx], ty[:ny], c[:n], fp
    chosen_x = knots_of(tx[:nx], x, limits(x, xb, xe), kx, s)
    chosen_y = knots_of(ty[:ny], y, limits(y, yb, ye), ky, s)
    if chosen_x is None or chosen_y is None:
        told = chosen_by((x, y, z, xb, xe, yb, ye, s), answers)
    else:
        told = on_grid(answers, x, y, np.reshape(z, (len(x), len(y))), kx, ky, chosen_x, chosen_y)
    return nx, told[0], ny, told[1], told[2], told[3], ier


def on_grid(found: Any, x: Any, y: Any, z: Any, kx: int, ky: int, tx: Any, ty: Any) -> Any:
    """The same as `of_surface` for data on a grid: fits along one axis, then along the other."""
    along_x, along_y = design(tx, kx, x), design(ty, ky, y)
    table = best(along_y, best(along_x, z).T).T
    told = np.ravel(table)
    if not (agree(found[0], tx) and agree(found[1], ty) and agree(found[2], told)):
        return chosen_by((x, y, z, tx, ty), found, DEFICIENT)
    fp = told_as(found[3], squares(np.ravel(z - along_x @ table @ along_y.T), told))
    return told_as(found[0], tx), told_as(found[1], ty), told_as(found[2], told), fp


# -- the sphere ------------------------------------------------------------------------------------

SITES = (
    "a fit of splines on the sphere has a derivative by the values only, not by sites or weights"
)


def on_sphere(found: Any, fp: Any, data: Any, columns: Any, others: Any) -> Any:
    """Coefficients as a linear function of the data, whose columns are the answers to units."""
    told = columns @ data
    if not agree(found, told):
        return refused(found, DEFICIENT, data, *others), refused(fp, DEFICIENT, data, *others)
    return refused(told_as(found, told), SITES, *others), refused(fp, SITES, data, *others)


def answers_to_units(fit: Any, n: int) -> Any:
    """What a fit makes of each unit vector."""
    return np.stack([fit(unit) for unit in np.eye(n)], axis=1)


non_differentiable(answers_to_units)


@instead_of(routines.regrid_smth_spher)
def regrid_smth_spher(
    iopt: Any, ider: Any, u: Any, v: Any, r: Any, r0: Any = None, r1: Any = None, s: Any = 0.0,
    *room: Any,
) -> Any:  # fmt: skip
    """A surface over a grid of angles, perhaps with values at the poles."""
    poles = [value for value in (r0, r1) if value is not None]
    constant = ignore_derivatives((iopt, ider, u, v, r, r0, r1, s, *room))
    found = fit_on_grid(*constant)
    nu, tu, nv, tv, c, fp, ier = found
    data = np.concatenate((np.ravel(r), *[np.reshape(np.asarray(a), (1,)) for a in poles]))
    if s > 0:
        told = chosen_by((data, u, v, s), (c, fp))
    else:
        fit = partial(coefficients_of, constant)
        told = on_sphere(c, fp, data, answers_to_units(fit, len(data)), (u, v))
    return nu, refused(tu, SITES, u), nv, refused(tv, SITES, v), *told, ier


def coefficients_of(given: Any, data: Any) -> Any:
    """The coefficients for other values on the grid, and at those poles that have any."""
    iopt, ider, u, v, r, r0, r1, *smoothing = given
    rest = list(data[r.size :])
    new = [None if a is None else rest.pop(0) for a in (r0, r1)]
    return fit_on_grid(iopt, ider, u, v, data[: r.size], *new, *smoothing)[4]


def fit_on_grid(*args: Any) -> Any:
    """What SciPy finds, for copies of what it may change."""
    return routines.regrid_smth_spher(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])


non_differentiable(fit_on_grid)


@instead_of(LSQSphereBivariateSpline.__init__)
def least_squares_on_sphere(
    self: Any, theta: Any, phi: Any, r: Any, tt: Any, tp: Any, w: Any = None, eps: Any = 1e-16
) -> None:
    """A surface of given knots near scattered data, which SciPy would write among others."""
    others = [a for a in floats(theta, phi, tt, tp, w) if a is not None]
    given = ignore_derivatives((theta, phi, tt, tp, w, eps))
    fp, (knots, more, c), self.degrees = fit_by_knots(given, ignore_derivatives(r))
    columns = answers_to_units(lambda unit: fit_by_knots(given, unit)[1][2], np.size(r))
    c, self.fp = on_sphere(c, fp, np.asarray(r), columns, others)
    self.tck = refused(knots, SITES, others[2]), refused(more, SITES, others[3]), c


def fit_by_knots(given: Any, r: Any) -> Any:
    """What SciPy finds for these values."""
    theta, phi, tt, tp, w, eps = given
    found = LSQSphereBivariateSpline(theta, phi, r, tt, tp, w, eps)
    return found.fp, found.tck, found.degrees


non_differentiable(fit_by_knots)


@instead_of(routines.spherfit_smth)
def spherfit_smth(
    teta: Any, phi: Any, r: Any, w: Any = None, s: Any = None, eps: Any = 1e-16
) -> Any:  # fmt: skip
    """A surface near scattered data, which chooses its knots: it has no derivative."""
    found = smooth_on_sphere(teta, phi, r, w, s, eps)
    nt, tt, np_, tp, c, fp, ier = found
    return nt, tt, np_, tp, *chosen_by((*floats(teta, phi, r, w), s), (c, fp)), ier


def smooth_on_sphere(teta: Any, phi: Any, r: Any, w: Any, s: Any, eps: Any) -> Any:
    """What SciPy finds."""
    return routines.spherfit_smth(teta, phi, r, w=w, s=s, eps=eps)


non_differentiable(smooth_on_sphere)
