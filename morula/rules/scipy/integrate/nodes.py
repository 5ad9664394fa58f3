"""Points and weights of quadratures that are good for an integrand and for its slopes.

An interval is covered by a Gauss-Kronrod pair of 10 and 21 points or, where that is not enough, by
the double exponential rule, which is good at algebraic and logarithmic singularities at the ends;
where neither is enough it is cut into halves. What is integrated to decide that is a dictionary of
arrays: the integrand, and what it contributes to every cotangent.

Kronrod, Nodes and weights of quadrature formulas, Consultants Bureau (1965); the error estimate is
that of Piessens et al., QUADPACK, Springer (1983), section 2.2. Takahasi & Mori, Double exponential
formulas for numerical integration, Publ. RIMS 9 (1974). Cohen, Rodriguez Villegas & Zagier,
Convergence acceleration of alternating series, Exp. Math. 9 (2000), algorithm 1.
Tests: tests/rules/scipy/test_integrate.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Nodes = list[tuple[float, float]]  # pairs of point and weight
Parts = dict[Any, Any]  # numbers and arrays by name
Estimate = tuple[Parts, Parts]  # integrals and their errors

# The half of the points that are not negative, and their weights; every other one is of Gauss.
KRONROD = (
    (0.0, 0.1494455540029169), (0.14887433898163122, 0.14773910490133849),
    (0.2943928627014602, 0.14277593857706009), (0.4333953941292472, 0.13470921731147334),
    (0.5627571346686047, 0.12349197626206584), (0.6794095682990244, 0.10938715880229764),
    (0.7808177265864169, 0.0931254545836976), (0.8650633666889845, 0.07503967481091996),
    (0.9301574913557082, 0.054755896574351995), (0.9739065285171717, 0.032558162307964725),
    (0.9956571630258081, 0.011694638867371874),
)  # fmt: skip
GAUSS = (
    0.29552422471475287, 0.26926671930999635, 0.21908636251598204, 0.1494513491505806,
    0.06667134430868814,
)  # fmt: skip


def kronrod(low: float, high: float) -> tuple[Nodes, Nodes]:
    """The nodes of the pair for an interval: the finer rule, the coarser one."""
    middle, half = (low + high) / 2, (high - low) / 2
    fine = [(middle + s * half * x, half * w) for x, w in KRONROD for s in ((1, -1) if x else (1,))]
    coarse = [
        (middle + s * half * x, half * w)
        for (x, _), w in zip(KRONROD[1::2], GAUSS, strict=True)
        for s in (1, -1)
    ]
    return fine, coarse


def double_exponential(low: float, high: float, h: float = 1 / 12) -> tuple[Nodes, Nodes]:
    """The same of the double exponential rule; points that round to an end are left out."""
    fine, coarse = [], []
    length = high - low
    for k in range(-66, 67):
        u = k * h
        z = math.pi * math.sinh(u)  # s = 1 / (1 + exp(-z)), measured from the nearer end
        s = 1 / (1 + math.exp(abs(z)))
        x = low + length * s if u < 0 else high - length * s
        w = h * length * math.pi * math.cosh(u) * s * (1 - s)
        if low < x < high and w > 0:
            fine.append((x, w))
            if k % 2 == 0:
                coarse.append((x, 2 * w))
    return fine, coarse


def integrals(measure: Callable[[float], Parts], rules: tuple[Nodes, Nodes]) -> Estimate:
    """Integrals by the finer rule, and estimates of their errors."""
    fine: Parts = {}
    coarse: Parts = {}
    size: Parts = {}
    found = {}
    for x, w in rules[0]:
        found[x] = measure(x)
        for key, value in found[x].items():
            fine[key] = fine.get(key, 0.0) + w * value
            size[key] = size.get(key, 0.0) + w * np.abs(value)
    for x, w in rules[1]:
        for key, value in found[x].items():
            coarse[key] = coarse.get(key, 0.0) + w * value
    return fine, {
        key: error_of(fine[key], coarse.get(key, 0.0), np.maximum(size[key], 1e-300))
        for key in fine
    }


def error_of(fine: Any, coarse: Any, size: Any) -> Any:
    """An estimate of the error of the finer one of two approximations."""
    return size * np.minimum(1.0, (200 * np.abs(fine - coarse) / size) ** 1.5)


def excess(estimates: list[Estimate], tolerance: tuple[float, float]) -> list[float]:
    """The error of each interval, where 1 / n of what is allowed is 1; not a number counts as more."""
    total: Parts = {}
    for values, _ in estimates:
        for key, value in values.items():
            total[key] = total.get(key, 0.0) + value
    absolute, relative = tolerance
    allowed = {key: np.maximum(absolute, relative * np.abs(value)) for key, value in total.items()}
    return [
        max((ratio(errors[key], allowed[key]) for key in errors), default=0.0) * len(estimates)
        for _, errors in estimates
    ]


def ratio(error: Any, allowed: Any) -> float:
    """The largest of the quotients."""
    found = np.max(error / np.maximum(allowed, 1e-300), initial=0.0)
    return float(found) if found == found else math.inf


def chosen(
    measure: Callable[[float], Parts],
    intervals: list[tuple[float, float]],
    tolerance: tuple[float, float],
    limit: int,
) -> Nodes:
    """The nodes of rules on intervals and on parts of them, so that all integrals are good."""
    kept = [covered(measure, low, high, tolerance) for low, high in intervals]
    while len(kept) < limit:
        excesses = excess([estimate for _, _, estimate in kept], tolerance)
        worst = max(range(len(kept)), key=excesses.__getitem__, default=0)
        if not kept or sum(excesses) <= len(kept) or excesses[worst] <= 1e-3:
            break
        (low, high), _, _ = kept[worst]
        middle = (low + high) / 2
        if not low < middle < high or high - low < 1e-14 * (abs(low) + abs(high)):
            break
        kept[worst] = covered(measure, low, middle, tolerance)
        kept.append(covered(measure, middle, high, tolerance))
    return [node for _, nodes, _ in kept for node in nodes]


def covered(
    measure: Callable[[float], Parts], low: float, high: float, tolerance: tuple[float, float]
) -> tuple[tuple[float, float], Nodes, Estimate]:
    """An interval, the better one of the two rules for it, what this gives."""
    found = []
    for rule in (kronrod, double_exponential):
        rules = rule(low, high)
        try:
            estimate = integrals(measure, rules)
        except ArithmeticError:  # of a point too near to an end
            if not found:
                raise
            break
        error = excess([estimate], tolerance)[0]
        found.append((error, rules[0], estimate))
        if error <= 1:
            break
    _, nodes, estimate = min(found, key=lambda one: one[0])
    return (low, high), nodes, estimate


# -- infinite ranges -------------------------------------------------------------------------------


def unrolled(nodes: Nodes, a: float, b: float) -> Nodes:
    """Nodes on (0, 1) as such on an infinite range, by x = a + (1 - t) / t."""
    found = []
    for t, w in nodes:
        x, w = (1 - t) / t, w / t**2
        if a == -math.inf and b == math.inf:
            found += [(x, w), (-x, w)]
        else:
            found.append((a + x, w) if b == math.inf else (b - x, w))
    return found


def on_half_periods(start: float, frequency: float, is_sine: bool) -> Iterator[tuple[float, float]]:
    """Nodes for the product of a function and cos or sin from a start to infinity.

    Half periods, the first of them plainly and the others as an alternating series, accelerated.
    """
    half = math.pi / abs(frequency)
    shift = 0.0 if is_sine else half / 2
    zero = shift + math.ceil((start - shift) / half) * half
    cuts = [start, *[zero + k * half for k in range(PLAIN + ACCELERATED + 1)]]
    factors = [1.0] * (PLAIN + 1) + accelerating(ACCELERATED)
    for low, high, factor in zip(cuts, cuts[1:], factors, strict=False):
        if high > low:
            yield from [(x, factor * w) for x, w in kronrod(low, high)[1]]


PLAIN, ACCELERATED = 12, 16


def accelerating(n: int) -> list[float]:
    """Factors of the first n terms of an alternating series that give its sum to 5.8⁻ⁿ."""
    d = (3 + math.sqrt(8)) ** n
    d = (d + 1 / d) / 2
    b, c, found = -1.0, -d, []
    for k in range(n):
        c = b - c
        found.append((-1) ** k * c / d)
        b = (k + n) * (k - n) * b / ((k + 0.5) * (k + 1))
    return found
