"""Integrals of functions of the user's.

    y = ∫ₐᵇ f(x, p) dx:      p̄ = ȳ ∫ₐᵇ ∂f/∂p dx,      ā = -ȳ f(a),      b̄ = ȳ f(b)

p are the arguments in `args=` and what f captured. The value is SciPy's; the derivative is that of a
sum over points at which f and its slopes are both integrated to the tolerances that SciPy was given
(nodes.py). Estimates of errors have no derivative.
Tests: tests/rules/scipy/test_integrate.py
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import LowLevelCallable, integrate

from morula.core.extend import (
    NONE,
    ZERO,
    DifferentiationError,
    Tangent,
    Thunk,
    UnsupportedError,
    call,
    called_whole,
    frule,
    interface,
    is_zero,
    non_differentiable,
    rrule,
)
from morula.rules.arrays.bodies import instead_of
from morula.rules.arrays.types import Anything
from morula.rules.scipy.answers import told_as, without_derivative
from morula.rules.scipy.integrate.nodes import (
    Nodes,
    Parts,
    chosen,
    on_half_periods,
    unrolled,
)
from morula.rules.steering import ignore_derivatives
from morula.rules.unknown import unknown

COMPILED = "the integral of a LowLevelCallable has no derivative: give a function in Python"
ESTIMATE = "the error that scipy.integrate estimates has no derivative"


@instead_of(integrate.quad)
def _(
    func, a, b, args=(), full_output=0, epsabs=1.49e-8, epsrel=1.49e-8, limit=50, points=None,
    weight=None, wvar=None, wopts=None, maxp1=50, limlst=50, complex_func=False,
):  # fmt: skip
    args = args if isinstance(args, tuple) else (args,)
    options = (
        full_output, epsabs, epsrel, limit, points, weight, wvar, wopts, maxp1, limlst,
    )  # fmt: skip
    if complex_func:
        return complex_quad(func, a, b, args, options)
    found = ignore_derivatives(partial(integrate.quad, func, a, b, args, *options))
    if isinstance(func, LowLevelCallable):
        return of_compiled(found, func, a, b, args)
    y = integral(func, a, b, args, weight, wvar, (found[0], points, (epsabs, epsrel), limit))
    return (y, without_derivative(found[1], ESTIMATE, None, y), *found[2:])


def of_compiled(found: Any, *given: Any) -> Any:
    """What SciPy found of a function that nobody can look into, and of these arguments."""
    return (without_derivative(found[0], COMPILED, UnsupportedError, given), *found[1:])


def complex_quad(func, a, b, args, options):
    """The integral of a complex function from those of its parts."""
    re, error, *more = integrate.quad(part_of(func, np.real), a, b, args, *options)
    im, other, *others = integrate.quad(part_of(func, np.imag), a, b, args, *options)
    told = (re + 1j * im, error + 1j * other)
    return (*told, {"real": tuple(more), "imag": tuple(others)}) if options[0] else told


@instead_of(integrate.nquad)
def _(func, ranges, args=None, opts=None, full_output=False):
    found = ignore_derivatives(partial(integrate.nquad, func, ranges, args, opts, full_output))
    if isinstance(func, LowLevelCallable):
        return of_compiled(found, func, ranges, args)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    given = [{}] if opts is None else [opts] if isinstance(opts, dict) else opts
    y = told_as(found[0], nested(func, ranges, given, len(ranges), args))
    return (y, without_derivative(found[1], ESTIMATE, None, y), *found[2:])


def nested(func, ranges, opts, depth, args):
    """The integral over the first `depth` ranges, as a function of the other variables."""
    if depth == 0:
        return func(*args)
    limits = ranges[depth - 1]
    low, high = limits(*args) if callable(limits) else limits
    options = opts[depth - 1] if len(opts) >= depth else opts[0] if len(opts) == 1 else {}
    options = dict(options(*args) if callable(options) else options)
    if "points" in options:
        options["points"] = [x for x in options["points"] if low <= x <= high]

    def inner(x, *args):
        return nested(func, ranges, opts, depth - 1, (x, *args))

    get = options.get
    settings = (
        None,
        get("points"),
        (get("epsabs", 1.49e-8), get("epsrel", 1.49e-8)),
        get("limit", 50),
    )
    return integral(inner, low, high, args, get("weight"), get("wvar"), settings)


@instead_of(integrate.quad_vec)
def _(
    f, a, b, epsabs=1e-200, epsrel=1e-8, norm="2", cache_size=100e6, limit=10000, workers=1,
    points=None, quadrature=None, full_output=False, *, args=(),
):  # fmt: skip
    args = args if isinstance(args, tuple) else (args,)
    found = ignore_derivatives(
        partial(
            integrate.quad_vec, f, a, b, epsabs, epsrel, norm, cache_size, limit, workers, points,
            quadrature, full_output, args=args,
        )
    )  # fmt: skip
    infinite = not np.isfinite(ignore_derivatives(a) - ignore_derivatives(b))
    cuts = None if infinite else points
    settings = (found[0], cuts, (max(epsabs, 1e-12), max(epsrel, 1e-10)), 200)
    y = integral(f, a, b, args, None, None, settings)
    return (y, without_derivative(found[1], ESTIMATE, None, np.ravel(y)), *found[2:])


def part_of(func: Any, take: Any) -> Any:
    """The real or the imaginary part of a function."""
    return lambda x, *args: take(func(x, *args))


def integral(func, a, b, args, weight, wvar, settings):
    """The first of the settings, or the sum if it is None, with the derivative of the integral."""
    value, points, tolerance, limit = settings
    zero = 0.0 if value is None else value * 0.0
    low, high, ω = ignore_derivatives((a, b, wvar))
    if low == high:
        total = edges_of(zero, func, a, b, args, weight, wvar)
        return total if value is None else told_as(value, total)
    sign = -1.0 if high < low else 1.0
    ends = (low, high) if low < high else (high, low)
    nodes = nodes_for((func, args), ends, points, (weight, ω), tolerance, limit)
    x, w = np.array(nodes).T
    values = np.array([func(at, *args) for at, _ in nodes])
    if weight is not None or np.ndim(value) == 0:
        values = np.ravel(values)
    if weight == "cauchy":
        at = func(wvar, *args)
        total = np.sum(w * (values - at) / (x - wvar))
        total = total + at * np.log((ends[1] - wvar) / (wvar - ends[0]))
    elif weight is None:
        total = np.tensordot(w, values, 1)
    else:
        total = np.dot(w * weighed(weight, wvar, ends, x), values)
    total = sign * total + edges_of(zero, func, a, b, args, weight, wvar)
    if points is not None and weight is None:
        total = total + sign * jumps_at(zero, points, ends, func, args)
    return total if value is None else told_as(value, total)


def edges_of(zero, func, a, b, args, weight, wvar):
    """Zero, with the derivative by the limits."""
    total, low, high = zero, ignore_derivatives(a), ignore_derivatives(b)
    if is_variable(b):
        total = total + end(zero, 1.0, b, (beside(func, low), args, weight, wvar))
    if is_variable(a):
        total = total + end(zero, -1.0, a, (beside(func, high), args, weight, wvar))
    return total


def jumps_at(zero, points, ends, func, args):
    """Zero, with the derivative by the points at which the integrand may jump."""
    total = zero
    for c in points:
        if is_variable(c) and ends[0] < c < ends[1]:
            total = total + end(zero, 1.0, c, (beside(func, ends[0]), args, None, None))
            total = total + end(zero, -1.0, c, (beside(func, ends[1]), args, None, None))
    return total


def beside(func, other):
    """The function at the next number on the side of another: it may jump where a range ends."""
    return lambda x, *args: func(x + step_to(x, other), *args)


def step_to(x: Any, other: Any) -> Any:
    """From a number to the next one on the side of another."""
    return math.nextafter(x, other) - x if type(x) is float else np.nextafter(x, other) - x


def weighed(weight, wvar, ends, x):
    """The weight function at a point."""
    if weight == "cos":
        return np.cos(wvar * x)
    if weight == "sin":
        return np.sin(wvar * x)
    low, high = x - ends[0], ends[1] - x
    w = low ** wvar[0] * high ** wvar[1]
    if weight in ("alg-loga", "alg-log"):
        w = w * np.log(low)
    if weight in ("alg-logb", "alg-log"):
        w = w * np.log(high)
    return w


# -- the limits ------------------------------------------------------------------------------------


def end(zero, sign, x, integrand):
    """Zero, as the integral from where x is to x: its derivative by x is the integrand there."""
    return zero


@rrule(end)
def _(zero: Anything, sign: Anything, x: Anything, integrand: Anything):
    at = found_at(x, integrand)  # what the function captures may be another one afterwards

    def end_pullback(ȳ):
        return end_cotangents(ȳ, zero, sign, x, integrand, at)

    return end(zero, sign, x, integrand), end_pullback


@frule(end)
def _(zero: Anything, sign: Anything, x: Anything, integrand: Anything):
    def end_pushforward(ż, ṡ, ẋ, i̇):
        if is_zero(ẋ):
            return zero + crossing(x)
        return sign * ẋ * integrand_at(x, *integrand) + crossing(x)

    return zero, end_pushforward


def found_at(x, integrand):
    """The integrand at a limit, or the exception that it raises there."""
    try:
        return integrand_at(x, *integrand)
    except Exception as error:
        return error


def given(found):
    """What was found there."""
    if isinstance(found, Exception):
        raise found
    return found


def end_cotangents(ȳ, zero, sign, x, integrand, at):
    """The cotangents of `end`; those of what the integrand depends on are zero, but vary with x."""
    return NONE, NONE, Thunk(lambda: np.sum(sign * ȳ * given(at))), NONE


@instead_of(end_cotangents)
def _(ȳ, zero, sign, x, integrand, at):
    check_unchanged(at, x, integrand)
    return call(near_end, zero, sign, x, integrand)[1](ȳ)[1:]


def check_unchanged(at, x, integrand):
    """Is the integrand, taken anew to be differentiated, still what it was?"""
    again = found_at(x, integrand)
    if isinstance(at, Exception) or isinstance(again, Exception):
        return
    if not np.array_equal(again, at, equal_nan=True):
        raise UnsupportedError(
            "what the integrand of scipy.integrate.quad captured is another value than when the "
            "integral was computed, and higher derivatives by a limit read it again: give it in args="
        )


def near_end(zero, sign, x, integrand):
    """The integral from where x is to x by Gauss's rule of three points: six derivatives are right."""
    start = ignore_derivatives(x)
    length, total = x - start, zero
    for s, w in ((0.5 - THIRD, 5 / 18), (0.5, 8 / 18), (0.5 + THIRD, 5 / 18)):
        total = total + w * integrand_at(start + s * length, *integrand)
    return sign * length * total


THIRD = math.sqrt(0.15)


def crossing(x):
    """Zero, whose derivative by x is what a slope of the integrand contributes there."""
    return 0.0


@rrule(crossing)
def _(x: Anything):
    def crossing_pullback(ȳ):
        return (unknown(integrate.quad, "a limit, of a derivative in forward mode,"),)

    return 0.0, crossing_pullback


@frule(crossing)
def _(x: Anything):
    def crossing_pushforward(ẋ):
        if is_zero(ẋ):
            return ZERO
        raise UnsupportedError(
            "a pushforward of a pushforward of scipy.integrate.quad by its limits is not known here: "
            "take the gradient in reverse mode inside, or put the limits into the function"
        )

    return 0.0, crossing_pushforward


def is_variable(x: Any) -> bool:
    """May something depend on this limit?"""
    return bool(np.all(np.isfinite(x))) and not isinstance(x, int)


def integrand_at(x, func, args, weight, wvar):
    """What is integrated, at a limit."""
    if weight is None:
        return func(x, *args)
    if weight == "cauchy":
        return func(x, *args) / (x - wvar)
    if weight in ("cos", "sin"):
        return weighed(weight, wvar, (0.0, 0.0), x) * func(x, *args)
    raise UnsupportedError(
        f"the derivative of scipy.integrate.quad with weight={weight!r} by its limits is not known "
        "here: put the weight into the function"
    )


# -- the points ------------------------------------------------------------------------------------


def nodes_for(
    integrand: Any, ends: Any, points: Any, weight: Any, tolerance: Any, limit: int
) -> Nodes:
    """Points and weights for a function and for its slopes."""
    func, args = integrand
    a, b = ends
    name, ω = weight
    if name in ("cos", "sin") and not math.isfinite(b - a):
        if b == math.inf:
            return list(on_half_periods(a, ω, name == "sin"))
        return [(-x, w) for x, w in on_half_periods(-b, ω, name == "sin")]
    finite = math.isfinite(b - a)
    cuts = starting_cuts(a, b, points, name, ω) if finite else [0.0, 1.0]

    def measure(x: float) -> Parts:
        """What contributes at a point, in the variable of integration."""
        total: Parts = {}
        for at, factor in [(x, 1.0)] if finite else unrolled([(x, 1.0)], a, b):
            w = factor
            if name == "cauchy":
                w = w / (at - ω)
            elif name is not None:
                w = w * weighed(name, ω, ends, at)
            for key, value in slopes(func, at, args).items():
                total[key] = total.get(key, 0.0) + w * value
        return total

    def difference(x: float) -> Parts:
        """The same for a principal value."""
        here, there = slopes(func, x, args), slopes(func, ω, args)
        return {key: (here[key] - there.get(key, 0.0)) / (x - ω) for key in here}

    with np.errstate(all="ignore"):
        intervals = list(pairwise(cuts))
        chosen_for = difference if name == "cauchy" else measure
        nodes = chosen(chosen_for, intervals, tolerance, max(limit, len(intervals)))
    return nodes if finite else unrolled(nodes, a, b)


def starting_cuts(a: float, b: float, points: Any, name: Any, ω: Any) -> list[float]:
    """Where a finite range is cut at once."""
    inner = [] if points is None or name is not None else [float(x) for x in np.ravel(points)]
    if name == "cauchy":
        inner = [ω]
    if name in ("cos", "sin"):
        n = min(50, int(abs(ω) * (b - a) / 8) + 1)
        inner = [a + (b - a) * k / n for k in range(1, n)]
    return [a, *sorted({x for x in inner if a < x < b}), b]


def slopes(func: Any, x: float, args: Any) -> Parts:
    """The value of a function, and its derivative by all that it depends on, by name."""
    found: Parts = {}
    try:
        y, back = interface.J(func, x, *args)
        found["value"] = np.asarray(y, float)
        f̄, _, *bars = back(y * 0 + 1.0)
        collect(found, (), (f̄, *bars))
    except DifferentiationError:  # which is raised where the derivative is asked for
        found.setdefault("value", np.asarray(func(x, *args), float))
    return found


def collect(
    found: Parts, path: tuple[Any, ...], bar: Any, within: frozenset[int] = frozenset()
) -> None:
    """The numbers and arrays of a structure, which may hold itself, by where they are in it."""
    if id(bar) in within:
        return
    within = within | {id(bar)}
    if isinstance(bar, (tuple, list)):
        for i, part in enumerate(bar):
            collect(found, (*path, i), part, within)
    elif isinstance(bar, (dict, Tangent)):
        for key, part in bar.items():
            collect(found, (*path, key), part, within)
    elif isinstance(bar, (float, complex, np.ndarray, np.generic)):
        array = np.asarray(bar)
        if array.dtype.kind in "fc":
            found[path] = array


called_whole(
    integrate.quad, integrate.nquad, integrate.quad_vec, nested, integral, end, end_cotangents,
    crossing,
)  # fmt: skip
non_differentiable(nodes_for, is_variable, step_to, found_at, check_unchanged)
