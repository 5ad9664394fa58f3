"""Rules of exponential, sine and other integrals, and of Lambert's and related functions.

Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special as sp

from morula.core.extend import NoTangent, rrule
from morula.rules.arrays.broadcasting import match, shape_of
from morula.rules.arrays.types import Numeric
from morula.rules.scipy.special.families import (
    CONSTANT,
    elementwise,
    partials,
    several_results,
)

elementwise(sp.exp1)(lambda y, x: -np.exp(-x) / x)
elementwise(sp.expi)(lambda y, x: np.exp(x) / x)
several_results(sp.sici)(lambda ys, x: (over(np.sin(x), x), np.cos(x) / x))
several_results(sp.shichi)(lambda ys, x: (over(np.sinh(x), x), np.cosh(x) / x))


def over(f, x):
    """f / x, and 1 at 0."""
    return np.where(x == 0, 1.0, f / np.where(x == 0, 1.0, x))


def slope_of_expn(n, x):
    """-Eₙ₋₁(x), where E₋₁(x) = e⁻ˣ (1 + x) / x²."""
    n = np.trunc(n)  # as SciPy does
    zeroth = np.exp(-x) * (1 + x) / (x * x)
    return -np.where(n == 0, zeroth, sp.expn(np.maximum(n - 1, 0), x))


partials(sp.expn, CONSTANT, lambda y, n, x: slope_of_expn(n, x))


@elementwise(sp.spence)
def _(y, x):
    """log z / (1 - z), which is -1 at 1."""
    near = np.absolute(x - 1) < 0.5
    d = np.where(near, x - 1, 0.0)
    series = -sp.hyp2f1(1, 1, 2, -d)
    away = np.where(near, 2.0, x)
    return np.where(near, series, np.log(away) / (1 - away))


@rrule(sp.lambertw)
def _(z: Numeric, k=0, tol=1e-8):
    """w eʷ = z: w' = e⁻ʷ / (1 + w), infinite at the branch point -1/e."""
    w = sp.lambertw(z, k, tol)

    def lambertw_pullback(w̄):
        slope = np.exp(-w) / (1 + w)
        return match(w̄ * np.conjugate(slope), shape_of(z)), NoTangent(), NoTangent()

    return w, lambertw_pullback


elementwise(sp.wrightomega)(lambda y, x: y / (1 + y))

# -- statistics of Kolmogorov and Smirnov ----------------------------------------------------------


def kolmogorov_density(x):
    """-kolmogorov'(x), by the series that converges faster, on either side of 1."""
    k = np.arange(1, 12)
    at = np.asarray(x)[..., None]
    large = np.maximum(at, 0.5)
    signs = np.where(k % 2 == 1, 1.0, -1.0)
    upper = 8 * np.sum(signs * k**2 * large * np.exp(-2 * k**2 * large**2), axis=-1)
    small = np.clip(at, 0.02, 2.0)
    c = (2 * k - 1) ** 2 * math.pi**2 / 8
    terms = np.exp(-c / small**2) * (2 * c / small**2 - 1) / small**2
    lower = math.sqrt(2 * math.pi) * np.sum(terms, axis=-1)
    return np.where(np.asarray(x) > 1, upper, np.where(np.asarray(x) > 0.02, lower, 0.0))[()]


elementwise(sp.kolmogorov)(lambda y, x: -kolmogorov_density(x))
elementwise(sp.kolmogi)(lambda y, p: -1 / kolmogorov_density(y))


def smirnov_density(n, d):
    """-∂smirnov(n, d)/∂d of Σ C(n, v) d (d + v/n)^(v-1) (1 - d - v/n)^(n-v), v ≤ n (1 - d)."""
    most = int(np.max(n, initial=1))
    v = np.arange(most + 1)
    n = np.trunc(np.asarray(n, float))[..., None]  # as SciPy does
    d = np.asarray(d)[..., None]
    a = d + v / n
    b = 1 - d - v / n
    counts = (b >= 0) & (v <= n)
    b = np.where(counts, np.maximum(b, 1e-300), 1.0)
    term = sp.binom(n, v) * a ** (v - 1.0) * b ** (n - v)
    slope = term * (1 + d * (v - 1) / a - d * (n - v) / b)
    return -np.sum(np.where(counts, slope, 0.0), axis=-1)[()]


partials(sp.smirnov, CONSTANT, lambda y, n, d: -smirnov_density(n, d))
partials(sp.smirnovi, CONSTANT, lambda y, n, p: -1 / smirnov_density(n, y))
