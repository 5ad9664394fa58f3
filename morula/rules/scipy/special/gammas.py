"""Rules of the gamma function and its relatives: logarithms, derivatives, zeta, beta, binomials.

    Γ' = Γ ψ,   ψ⁽ⁿ⁾' = ψ⁽ⁿ⁺¹⁾,   ∂ζ(s, q)/∂q = -s ζ(s+1, q),   ∂B(a, b)/∂a = B (ψ(a) - ψ(a+b))

What SciPy has for real numbers only (ψ⁽ⁿ⁾ of complex ones, ∂ζ/∂s) goes by Euler and Maclaurin's sum.
Differences ψ(a) - ψ(a+b) of large arguments go by their asymptotic series.
Abramowitz and Stegun, Handbook of mathematical functions, 6.3, 6.4, 23.2.
Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sp

from morula.core.extend import NoTangent, call, non_differentiable, rrule
from morula.rules.arrays.broadcasting import match, shape_of, widened
from morula.rules.arrays.types import Anything, Numeric
from morula.rules.scipy.special.families import (
    CONSTANT,
    by_definition,
    elementwise,
    partials,
    takes_sequences,
)
from morula.rules.unknown import unknown

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def hurwitz(s, q):
    """ζ(s, q) = Σ (q+k)⁻ˢ by Euler and Maclaurin's sum; Re q > 0 need not hold."""
    n = terms_before(q)
    far = q + n
    total = far ** (1 - s) / (s - 1) + 0.5 * far ** (-s)
    for k in range(n):
        total = total + (q + k) ** (-s)
    rising = s
    power = far ** (-s - 1)
    for j, b in enumerate(BERNOULLI):
        total = total + b / math.factorial(2 * j + 2) * rising * power
        rising = rising * (s + 2 * j + 1) * (s + 2 * j + 2)
        power = power / (far * far)
    return total


def terms_before(q: Any) -> int:
    """How many terms are summed one by one: until the real part is 16."""
    least = np.min(np.real(q), initial=16.0)
    return int(max(0.0, np.ceil(16.0 - least)))


def polygamma_at(n, x):
    """ψ⁽ⁿ⁾ of real or complex numbers, n ≥ 1."""
    if np.iscomplexobj(x):
        return (-1.0) ** (n + 1) * math.factorial(n) * hurwitz(n + 1, x)
    return sp.polygamma(n, x)


non_differentiable(terms_before)


@rrule(polygamma_at)
def _(n: int, x: Numeric):
    def polygamma_pullback(ȳ):
        return NoTangent(), ȳ * np.conjugate(polygamma_at(n + 1, x))

    return polygamma_at(n, x), polygamma_pullback


@rrule(sp.polygamma)
def _(n: Anything, x: Numeric):
    def polygamma_pullback(ȳ):
        return NoTangent(), match(ȳ * sp.polygamma(np.asarray(n) + 1, x), shape_of(x))

    return sp.polygamma(n, x), polygamma_pullback


@elementwise(sp.digamma)
def _(y, x):
    return polygamma_at(1, x)


@elementwise(sp.gamma)
def _(y, x):
    return y * sp.digamma(x)


@elementwise(sp.gammaln, sp.loggamma)
def _(y, x):
    return sp.digamma(x)


@elementwise(sp.rgamma)
def _(y, x):
    """-ψ / Γ; at a pole -n of both it is (-1)ⁿ n!."""
    pole = (np.real(x) <= 0) & (x == np.floor(np.real(x)))
    n = np.where(pole, -np.real(x), 0.0)
    at = np.where(n % 2 == 0, 1.0, -1.0) * sp.gamma(n + 1)
    return np.where(pole, at, -y * sp.digamma(np.where(pole, 1.0, x)))


def digamma_difference(a, b):
    """ψ(a + b) - ψ(a), also where b is small and a is large."""
    c = a + b
    far = np.minimum(a, c) > 16
    p, q = np.where(far, a, 20.0), np.where(far, c, 20.0)
    d = np.where(far, b, 0.0)
    total = np.log1p(d / p) + d / (2 * p * q)
    for j, bernoulli in enumerate(BERNOULLI):
        k = 2 * j + 2
        total = total - bernoulli / k * (q ** (-k) - p ** (-k))
    return np.where(far, total, sp.digamma(c) - sp.digamma(a))


partials(
    sp.beta,
    lambda y, a, b: -y * digamma_difference(a, b),
    lambda y, a, b: -y * digamma_difference(b, a),
)
partials(
    sp.betaln,
    lambda y, a, b: -digamma_difference(a, b),
    lambda y, a, b: -digamma_difference(b, a),
)
partials(
    sp.poch,
    lambda y, z, m: y * digamma_difference(z, m),
    lambda y, z, m: y * sp.digamma(z + m),
)
partials(
    sp.binom,
    lambda y, n, k: y * digamma_difference(n - k + 1, k),
    lambda y, n, k: y * (sp.digamma(n - k + 1) - sp.digamma(k + 1)),
)


@rrule(sp.comb)
def _(N: Numeric, k: Numeric, *, exact=False, repetition=False):
    y = sp.comb(N, k, exact=exact, repetition=repetition)

    def comb_pullback(ȳ):
        if exact:
            return NoTangent(), NoTangent()
        n = N + k - 1 if repetition else N
        counts = (k >= 0) & (k <= n) & (n >= 0)
        by_n = ȳ * np.where(counts, y * digamma_difference(n - k + 1, k), 0.0)
        by_k = ȳ * np.where(counts, y * (sp.digamma(n - k + 1) - sp.digamma(k + 1)), 0.0)
        if repetition:
            by_k = by_k + by_n
        return match(by_n, shape_of(N)), match(by_k, shape_of(k))

    return y, comb_pullback


@rrule(sp.perm)
def _(N: Numeric, k: Numeric, exact=False):
    y = sp.perm(N, k, exact)

    def perm_pullback(ȳ):
        if exact:
            return NoTangent(), NoTangent(), NoTangent()
        counts = (k >= 0) & (k <= N) & (N >= 0)
        by_n = ȳ * np.where(counts, y * digamma_difference(N - k + 1, k), 0.0)
        by_k = ȳ * np.where(counts, y * sp.digamma(N - k + 1), 0.0)
        return match(by_n, shape_of(N)), match(by_k, shape_of(k)), NoTangent()

    return y, perm_pullback


@rrule(sp.factorial)
def _(n: Numeric, exact=False, extend="zero"):
    y = sp.factorial(n, exact, extend)

    def factorial_pullback(ȳ):
        if exact:
            return NoTangent(), NoTangent(), NoTangent()
        slope = sp.gamma(n + 1) * sp.digamma(n + 1)
        if extend == "zero":
            slope = np.where(n < 0, 0.0, slope)
        return ȳ * np.conjugate(slope), NoTangent(), NoTangent()

    return y, factorial_pullback


@rrule(sp.multigammaln)
def _(a: Numeric, d: int):
    def multigammaln_pullback(ȳ):
        slope: Any = 0.0
        for j in range(int(d)):
            slope = slope + sp.digamma(a - j / 2)
        return ȳ * slope, NoTangent()

    return sp.multigammaln(a, d), multigammaln_pullback


# -- zeta ------------------------------------------------------------------------------------------


@rrule(sp.zeta)
def _(x: Numeric, q: Numeric):
    y = sp.zeta(x, q)

    def zeta_pullback(ȳ):
        shape = np.shape(ȳ)
        wide = [np.broadcast_to(np.asarray(v, float), shape) for v in (x, q)]
        bars = call(hurwitz, *wide)[1](ȳ if isinstance(ȳ, np.ndarray) else np.asarray(ȳ))
        s = widened(x)
        q̄ = ȳ * -(s * sp.zeta(s + 1, q))
        return match(bars[1], shape_of(x)), match(q̄, shape_of(q))

    return y, zeta_pullback


@rrule(sp.zeta)
def _(x: Numeric):
    def zeta_pullback(ȳ):
        return (riemann_cotangent(ȳ, x),)

    return sp.zeta(x), zeta_pullback


def riemann_cotangent(ȳ, x):
    """x̄ of ζ(x); far to the left the sum has no digits left."""
    if np.any(np.real(x) < -8):
        return unknown(sp.zeta, "an argument below -8")
    with np.errstate(divide="ignore", invalid="ignore"):  # at the pole
        return call(hurwitz, np.asarray(widened(x)), 1.0)[1](ȳ)[1]


@rrule(sp.zetac)
def _(x: Numeric):
    def zetac_pullback(ȳ):
        return (riemann_cotangent(ȳ, x),)

    return sp.zetac(x), zetac_pullback


non_differentiable(sp.gammasgn)
takes_sequences(sp.zetac)

__all__ = ["CONSTANT", "by_definition", "digamma_difference"]
