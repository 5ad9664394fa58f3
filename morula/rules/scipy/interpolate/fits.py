"""Rules of the curves that FITPACK fits to data.

For given knots the coefficients solve equations, by least squares where there are more of them:

    w A(x, t) c = w y        A: all splines at all sites x

An interpolation has knots that follow its sites, a polynomial by least squares those at the ends.
Any other smoothing fit chooses its knots and how smooth it is by the data, by a search that ends
early: it has no derivative by them.
Dierckx, Curve and surface fitting with splines, chapters 4 and 9.
Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import refused, told_as
from morula.rules.scipy.interpolate import routines
from morula.rules.scipy.interpolate.bsplines import best, design, periodic_fit
from morula.rules.steering import ignore_derivatives

SMOOTH = (
    "a smoothing fit (s > 0) chooses its knots and how smooth it is by the data, so it has no "
    "derivative by them: take s=0, or knots of your own, or make_smoothing_spline with lam="
)
DEFICIENT = "a fit of splines that the data do not determine has no derivative by them"
AGAIN = "a fit that goes on from an earlier one (task=1) has no derivative: start with task=0 or -1"


def chosen_by(data: Any, found: Any, what: str = SMOOTH) -> list[Any]:
    """What was found in a way that has no derivative by any of the data."""
    data = [a for a in data if a is not None]
    return [refused(value, what, *data) for value in found]


def floats(*given: Any) -> list[Any]:
    """Arrays of what may be lists."""
    return [None if a is None else np.asarray(a) for a in given]


def knots_between(x: Any, k: int) -> Any:
    """The knots of an interpolation but for those at the ends: sites, or halfway between sites."""
    j = k // 2 + 1
    if k % 2:
        return x[j : len(x) - j]
    return (x[j : len(x) - j + 1] + x[j - 1 : len(x) - j]) / 2


def with_ends(ends: Any, between: Any, k: int) -> Any:
    """Knots whose ends are repeated."""
    low, high = ends
    first, last = np.reshape(np.asarray(low), (1,)), np.reshape(np.asarray(high), (1,))
    return np.concatenate((np.repeat(first, k + 1), between, np.repeat(last, k + 1)))


def between_ends(t: Any, ends: Any, k: int) -> Any:
    """Knots whose ends are those of the data, whatever was given for them."""
    return with_ends(ends, t[k + 1 : len(t) - k - 1], k)


def first_and_last(x: Any, low: Any, high: Any) -> Any:
    """The ends of the knots; by default the first and the last site."""
    return x[0] if low is None else low, x[-1] if high is None else high


def few_knots(found: Any, ends: Any, k: int) -> Any:
    """The knots of a polynomial, None where there are more of them."""
    return with_ends(ends, np.zeros(0), k) if len(found) == 2 * k + 2 else None


def knots_of(found: Any, x: Any, ends: Any, k: int, s: Any) -> Any:
    """Knots as they follow from the sites and the ends; None where the data have chosen them."""
    if len(found) == 2 * k + 2:
        return with_ends(ends, np.zeros(0), k)
    if s == 0 and len(found) == len(x) + k + 1:
        return with_ends(ends, knots_between(x, k), k)
    return None


def agree(found: Any, told: Any) -> bool:
    """Are knots or coefficients what SciPy has found?"""
    size = np.max(np.abs(found), initial=1e-300)
    return found.shape == told.shape and bool(np.all(np.abs(found - told) <= 1e-6 * size))


non_differentiable(agree)


def fitted(found: Any, x: Any, y: Any, w: Any, k: int, t: Any, others: Any) -> Any:
    """The knots and the coefficients that were found, and the sum of squares, for knots t.

    `others` is what a fit that has chosen its knots, with t None, depends on besides.
    """
    return in_columns(found, x, y[:, None], w, k, t, others)


def in_columns(found: Any, x: Any, y: Any, w: Any, k: int, t: Any, others: Any) -> Any:
    """The same for data in columns, whose coefficients follow each other."""
    knots, c, fp = found
    weights = np.ones(len(x)) if w is None else w
    if t is None:
        return chosen_by((x, y, w, *others), found)
    splines = weights[:, None] * design(t, k, x)
    columns = best(splines, weights[:, None] * y)
    told = np.ravel(columns.T)
    if not agree(knots, t) or not agree(c, told):
        return chosen_by((x, y, w, t), found, DEFICIENT)
    rest = weights[:, None] * y - splines @ columns
    return told_as(knots, t), told_as(c, told), told_as(fp, squares(rest, columns))


def squares(rest: Any, c: Any) -> Any:
    """The sum of squares of what is left, nothing where as many coefficients as equations."""
    return np.sum(rest * rest) if len(rest) > len(c) else 0.0 * np.sum(rest)


# -- curves ----------------------------------------------------------------------------------------


def of_curve(
    found: Any, x: Any, y: Any, w: Any, xb: Any, xe: Any, s: Any, t: Any = None
) -> Any:  # fmt: skip
    """The fourteen answers about a curve, perhaps one of knots t, with what has a derivative."""
    x, y, w, t = floats(x, y, w, t)
    ends = first_and_last(x, xb, xe)
    s = found[6] if s is None else told_as(found[6], s)
    k, n = int(found[5]), int(found[7])
    knots = found[8][:n]
    chosen = knots_of(knots, x, ends, k, s) if t is None else between_ends(t, ends, k)
    c = found[9][: n - k - 1]
    knots, c, fp = fitted((knots, c, found[10]), x, y, w, k, chosen, (*ends, s))
    knots = np.concatenate((knots, found[8][n:]))
    c = np.concatenate((c, found[9][n - k - 1 :]))
    weights = found[2] if w is None else w
    return (x, y, weights, *ends, found[5], s, found[7], knots, c, fp, *found[11:])


@instead_of(routines.curfit)
def curfit(
    x: Any, y: Any, k: Any, w: Any = None, xb: Any = None, xe: Any = None, s: Any = None,
    nest: Any = None, iopt: Any = 0, t: Any = None, c: Any = None, n: Any = None, fpint: Any = None,
    nrdata: Any = None,
) -> Any:  # fmt: skip
    """A curve through data, or near them: a first one, a later one, or one of given knots."""
    found = ignore_derivatives(
        partial(routines.curfit, x, y, k, w, xb, xe, s, nest, iopt, t, c, n, fpint, nrdata)
    )
    return of_curve(found, x, y, w, xb, xe, s, t if iopt == -1 else None)


@instead_of(routines.fpcurf0)
def fpcurf0(
    x: Any, y: Any, k: Any, w: Any = None, xb: Any = None, xe: Any = None, s: Any = None,
    nest: Any = None,
) -> Any:  # fmt: skip
    """A curve through data, or near them."""
    given = {"w": w, "xb": xb, "xe": xe, "s": s, "nest": nest}
    given = {name: value for name, value in given.items() if value is not None}
    found = ignore_derivatives(partial(routines.fpcurf0, x, y, k, **given))
    return of_curve(found, x, y, w, xb, xe, s)


@instead_of(routines.fpcurf1)
def fpcurf1(
    x: Any, y: Any, w: Any, xb: Any, xe: Any, k: Any, s: Any, n: Any, t: Any, c: Any, fp: Any,
    fpint: Any, nrdata: Any, ier: Any, **overwrite: Any,
) -> Any:  # fmt: skip
    """The same with another s, or more room for knots."""
    found = later_fit(x, y, w, xb, xe, k, s, n, t, c, fp, fpint, nrdata, ier)
    return of_curve(found, x, y, w, xb, xe, s)


def later_fit(*args: Any) -> Any:
    """What SciPy makes of copies of what an earlier fit has left."""
    return routines.fpcurf1(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])


non_differentiable(later_fit)


@instead_of(routines.fpcurfm1)
def fpcurfm1(
    x: Any, y: Any, k: Any, t: Any, w: Any = None, xb: Any = None, xe: Any = None,
    overwrite_t: Any = 0,
) -> Any:  # fmt: skip
    """A curve of given knots."""
    given = {"w": w, "xb": xb, "xe": xe}
    given = {name: value for name, value in given.items() if value is not None}
    found = ignore_derivatives(partial(routines.fpcurfm1, x, y, k, t, **given))
    return of_curve(found, x, y, w, xb, xe, None, t)


@instead_of(routines.splrep)
def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: Any = 3, task: Any = 0,
    s: Any = None, t: Any = None, full_output: Any = 0, per: Any = 0, quiet: Any = 1,
) -> Any:  # fmt: skip
    """A curve through data, or near them, or of given knots."""
    found = ignore_derivatives(
        partial(routines.splrep, x, y, w, xb, xe, k, task, s, t, full_output, per, quiet)
    )
    knots, padded, _ = found[0] if full_output else found
    c = padded[: len(knots) - k - 1]
    fp = found[1] if full_output else 0.0
    x, y, w, t = floats(x, y, w, t)
    if s is None:
        s = 0 if w is None else 1
    ends = first_and_last(x, xb, xe)
    if task == 1:
        told = chosen_by((x, y, w, *ends, s), (knots, c, fp), AGAIN)
    elif per:
        told = closed((knots, c, fp), x, y[:, None], w, k, s, t)
    else:
        chosen = knots_of(knots, x, ends, k, s) if t is None else with_ends(ends, t, k)
        told = fitted((knots, c, fp), x, y, w, k, chosen, (*ends, s))
    tck = (told[0], np.concatenate((told[1], padded[len(c) :])), k)
    return (tck, told[2], *found[2:]) if full_output else tck


def closed(found: Any, x: Any, y: Any, w: Any, k: int, s: Any, t: Any) -> Any:
    """The same for a periodic curve: the last data are the first again."""
    knots, c, fp = found
    weights = np.ones(len(x)) if w is None else w
    if t is not None:
        between = t
    elif len(knots) == 2 * k + 2:
        between = np.zeros(0)
    elif s == 0:
        between = x[1:-1] if k % 2 else (x[1:-1] + x[:-2]) / 2
    else:
        return chosen_by((x, y, w, s), found)
    t = around_knots(x[0], between, x[-1], k)
    if len(t) != len(knots):
        return chosen_by((x, y, w, t), found, DEFICIENT)
    splines = design(t, k, x[:-1])
    told = periodic_fit(splines, y[:-1], weights[:-1], k)
    rest = weights[:-1, None] * (y[:-1] - splines @ told)
    told = np.ravel(told.T)
    if not agree(knots, t) or not agree(c, told):
        return chosen_by((x, y, w, t), found, DEFICIENT)
    return told_as(knots, t), told_as(c, told), told_as(fp, np.sum(rest * rest))


def around_knots(low: Any, between: Any, high: Any, k: int) -> Any:
    """Knots that go on beyond the ends as they do within."""
    inside = np.concatenate((np.reshape(low, (1,)), between, np.reshape(high, (1,))))
    n, period = len(inside) - 1, high - low
    places = np.arange(-k, len(inside) + k)
    return inside[places % n] + (places // n) * period


@instead_of(routines.splprep)
def splprep(
    x: Any, w: Any = None, u: Any = None, ub: Any = None, ue: Any = None, k: Any = 3, task: Any = 0,
    s: Any = None, t: Any = None, full_output: Any = 0, nest: Any = None, per: Any = 0, quiet: Any = 1,
) -> Any:  # fmt: skip
    """A curve in several dimensions through points, or near them; by default along their distances."""
    found = ignore_derivatives(
        partial(
            routines.splprep, x, w, u, ub, ue, k, task, s, t, full_output, nest, per, quiet
        )
    )  # fmt: skip
    (knots, columns, _), along = found[0] if full_output else found
    fp = found[1] if full_output else 0.0
    points, w, u, t = np.stack(floats(*x), axis=1), *floats(w, u, t)
    if per:
        points = np.concatenate((points[:-1], points[:1]))
    s = len(points) if s is None else s
    sites = told_as(along, lengths(points) if u is None else u)
    ends = first_and_last(sites, ub, ue)
    answers = knots, np.concatenate(columns), fp
    if task == 1:
        told = chosen_by((points, sites, w, *ends, s), answers, AGAIN)
    elif per:
        told = closed(answers, sites, points, w, k, s, None if t is None else t[k + 1 : -k - 1])
    else:
        given = task == -1
        chosen = between_ends(t, ends, k) if given else knots_of(knots, sites, ends, k, s)
        told = in_columns(answers, sites, points, w, k, chosen, (*ends, s))
    n = len(told[1]) // len(columns)
    curve = [told[0], [told[1][i * n : (i + 1) * n] for i in range(len(columns))], k], sites
    return (curve, told[2], *found[2:]) if full_output else curve


def lengths(points: Any) -> Any:
    """How far along the points each is, as a share of the whole way."""
    way = np.cumsum(np.sqrt(np.sum((points[1:] - points[:-1]) ** 2, axis=1)))
    return np.concatenate((np.zeros(1), way / way[-1]))


@instead_of(routines.make_splrep)
def make_splrep_impl(
    x: Any, y: Any, w: Any, xb: Any, xe: Any, k: Any, s: Any, t: Any, nest: Any, periodic: Any,
    xp: Any = np,
) -> Any:  # fmt: skip
    """A smoothing curve as an object; a polynomial if it has no knots within."""
    found = ignore_derivatives(
        partial(routines.make_splrep, x, y, w, xb, xe, k, s, t, nest, periodic, xp)
    )
    answers = found.t, np.ravel(found.c.T), 0.0
    chosen = None if periodic else few_knots(found.t, (xb, xe), k)
    knots, c, _ = in_columns(answers, x, y, w, k, chosen, (xb, xe, s))
    c = np.reshape(c, found.c.shape[::-1]).T
    return BSpline.construct_fast(knots, c, k, axis=found.axis, extrapolate=found.extrapolate)
