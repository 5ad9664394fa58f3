"""Rules of the module statistics, whose own code goes through exact fractions.

Data may be any iterable, which is read once; the value is that of the module, the derivative that
of the formula in its docstring here. At data without spread, deviations have slope 0.
Tests: tests/rules/test_statistical.py
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from morula.core.extend import UnsupportedError, call, non_differentiable, rrule
from morula.rules.calls import runs_body, serves
from morula.rules.mathematics import filled
from morula.rules.numbers import Anything
from morula.rules.own_classes import has_ways_of_its_own, plain, types_in


def of_data(primal: Any, n: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let Python code tell the derivative of a function whose first n arguments are data."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        def on_tuples(*args: Any, **kwargs: Any) -> Any:
            return primal(*args, **kwargs)

        on_tuples.__module__, on_tuples.__qualname__ = primal.__module__, primal.__qualname__

        @serves(on_tuples)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            y = primal(*args, **kwargs)
            if not any(map(has_ways_of_its_own, types_in(args[:n]))):
                return y, call(body, *args, **kwargs)[1]
            z, back = call(plainly, *args, **kwargs)
            if not np.allclose(np.asarray(y, float), np.asarray(z, float), 1e-9, 0, equal_nan=True):
                raise UnsupportedError(
                    f"statistics.{primal.__name__} of numbers of a class with operators of its own "
                    "is not that of the numbers: call it with float(…) of each"
                )
            return y, back

        def plainly(*args: Any, **kwargs: Any) -> Any:
            return body(*map(plain, args), **kwargs)

        def with_tuples(*args: Any, **kwargs: Any) -> Any:
            data = [tuple(x) for x in args[:n]]
            return on_tuples(*data, *args[n:], **kwargs)

        @serves(primal)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return call(with_tuples, *args, **kwargs)

        runs_body(with_tuples, primal)
        return body

    return register


@of_data(statistics.mean)
def mean(data):
    """Σ x / n."""
    return sum(data) / len(data)


@of_data(statistics.fmean)
def fmean(data, weights=None):
    """Σ w x / Σ w."""
    if weights is None:
        return sum(data) / len(data)
    weights = tuple(weights)
    return sum([w * x for w, x in zip(weights, data, strict=True)]) / sum(weights)


@of_data(statistics.geometric_mean)
def geometric_mean(data):
    """The exponential of the mean of the logarithms."""
    return math.exp(sum([math.log(x) for x in data]) / len(data))


@of_data(statistics.harmonic_mean)
def harmonic_mean(data, weights=None):
    """Σ w / Σ (w / x)."""
    if weights is None:
        return len(data) / sum([1 / x for x in data])
    weights = tuple(weights)
    return sum(weights) / sum([w / x for w, x in zip(weights, data, strict=True)])


@of_data(statistics.median_grouped)
def median_grouped(data, interval=1):
    """The lower end of the class of the median, and a part of the interval that counts tell."""
    return sorted(data)[len(data) // 2] + interval * class_share(data)


def class_share(data: Any) -> float:
    """Where in its class the median is, from -1/2 to 1/2."""
    data = sorted(data)
    x = data[len(data) // 2]
    below = sum([other < x for other in data])
    return (len(data) / 2 - below) / sum([other == x for other in data]) - 0.5


non_differentiable(class_share)


def spread(data, centre):
    """Σ (x - centre)²."""
    if centre is None:
        centre = sum(data) / len(data)
    return sum([(x - centre) * (x - centre) for x in data])


def root(v):
    """The square root, with slope 0 at 0."""
    if v == 0:
        return 0 * v
    return v.sqrt() if isinstance(v, Decimal) else math.sqrt(v)


@of_data(statistics.variance)
def variance(data, xbar=None):
    """Σ (x - mean)² / (n - 1)."""
    return spread(data, xbar) / (len(data) - 1)


@of_data(statistics.pvariance)
def pvariance(data, mu=None):
    """Σ (x - mean)² / n."""
    return spread(data, mu) / len(data)


@of_data(statistics.stdev)
def stdev(data, xbar=None):
    """√(Σ (x - mean)² / (n - 1))."""
    return root(spread(data, xbar) / (len(data) - 1))


@of_data(statistics.pstdev)
def pstdev(data, mu=None):
    """√(Σ (x - mean)² / n)."""
    return root(spread(data, mu) / len(data))


@of_data(statistics._mean_stdev)  # type: ignore[attr-defined]
def mean_and_deviation(data):
    """What NormalDist.from_samples asks for."""
    return mean(data), stdev(data)


def apart(data):
    """The differences from the mean."""
    centre = sum(data) / len(data)
    return [x - centre for x in data]


def product(a, b):
    """Σ a b."""
    return sum([x * y for x, y in zip(a, b, strict=True)])


@of_data(statistics.covariance, 2)
def covariance(x, y):
    """Σ (x - mean x) (y - mean y) / (n - 1)."""
    return product(apart(x), apart(y)) / (len(x) - 1)


@of_data(statistics.correlation, 2)
def correlation(x, y, *, method="linear"):
    """The covariance over both deviations; of ranks, it is constant."""
    if method == "ranked":
        return 0.0
    dx, dy = apart(x), apart(y)
    return product(dx, dy) / math.sqrt(product(dx, dx) * product(dy, dy))


@of_data(statistics.linear_regression, 2)
def linear_regression(x, y, *, proportional=False):
    """The line through the means with the slope cov(x, y) / var(x); or through the origin."""
    if proportional:
        return statistics.LinearRegression(product(x, y) / product(x, x), 0.0)
    dx = apart(x)
    slope = product(dx, apart(y)) / product(dx, dx)
    return statistics.LinearRegression(slope, sum(y) / len(y) - slope * (sum(x) / len(x)))


_inv_cdf: Any = statistics._normal_dist_inv_cdf  # type: ignore[attr-defined]


@rrule(_inv_cdf)
def _(p: Anything, mu: Anything, sigma: Anything):
    """μ + σ z with Φ(z) = p: its slope in p is σ / φ(z)."""
    y = _inv_cdf(p, mu, sigma)
    z = _inv_cdf(p, 0.0, 1.0)

    def inv_cdf_pullback(ȳ):
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return filled(p, ȳ * sigma / density), filled(mu, ȳ), filled(sigma, ȳ * z)

    return y, inv_cdf_pullback


def place_of_mode(data: Any) -> int:
    """Where the most common value is first."""
    return data.index(statistics.mode(data))


def places_of_modes(data: Any) -> list[int]:
    """Where each of the most common values is first."""
    return [data.index(x) for x in statistics.multimode(data)]


non_differentiable(place_of_mode, places_of_modes)


@of_data(statistics.mode)
def mode(data):
    """The most common value, where it is first."""
    return data[place_of_mode(data)]


def multimode(data):
    """The most common values, each where it is first."""
    data = tuple(data)
    return [data[i] for i in places_of_modes(data)]


@serves(statistics.multimode)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(multimode, *args, **kwargs)


runs_body(multimode, statistics.multimode)
