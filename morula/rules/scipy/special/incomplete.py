"""Rules of the incomplete gamma and beta functions, in all arguments, and of their inverses.

    P(a, x) = ∫₀ˣ p dt,      p = tᵃ⁻¹ e⁻ᵗ / Γ(a):              ∂P/∂a = ∫₀ˣ p (log t - ψ(a)) dt
    I(a, b, x) = ∫₀ˣ q dt,   q = tᵃ⁻¹ (1-t)ᵇ⁻¹ / B(a, b):      ∂I/∂a = ∫₀ˣ q (log t - ψ(a) + ψ(a+b)) dt

Over the whole range the second integrals are zero, so each is taken over the side of the mean on
which x lies; there the integrand has one sign but near x, and the quadrature (double exponential,
Takahasi and Mori, Publ. RIMS 9, 1974) loses no digits. It is ordinary code, which second derivatives
differentiate. Below a = 1 the variable is tᵃ, without the singularity at 0.
Tests: tests/rules/scipy/test_special_incomplete.py
"""

from __future__ import annotations

import numpy as np
from scipy import special as sp

from morula.rules.scipy.special.families import inverse_of, partials
from morula.rules.scipy.special.gammas import digamma_difference

_S = np.linspace(-3.6, 3.6, 241)
_U = np.pi / 2 * np.sinh(_S)
LEFT = 1 / (1 + np.exp(-2 * _U))  # the points' distances from 0 and from 1
RIGHT = 1 / (1 + np.exp(2 * _U))
WEIGHTS = np.pi * np.cosh(_S) * LEFT * RIGHT * (_S[1] - _S[0])


def quadrature(values):
    """∫₀¹ of what has these values at the points of the last axis."""
    return np.sum(values * WEIGHTS, axis=-1)


def gamma_density(a, x):
    """xᵃ⁻¹ e⁻ˣ / Γ(a), for large a by Stirling's series about x = a."""
    large = a > 20
    b = np.where(large, a, 20.0)
    r = np.where(large, x / b, 1.0)
    stirling = 1 / (12 * b) - 1 / (360 * b**3) + 1 / (1260 * b**5) - 1 / (1680 * b**7)
    far = np.exp(b * log_excess(r) - stirling) * np.sqrt(b / (2 * np.pi)) / np.where(large, x, 1.0)
    small = np.where(large, 1.0, a)
    near = np.exp(
        sp.xlogy(small - 1, np.where(large, 1.0, x)) - np.where(large, 1.0, x) - sp.gammaln(small)
    )
    return np.where(large, far, near)


def log_excess(r):
    """1 - r + log r, near 1 without cancellation."""
    u = r - 1
    near = np.absolute(u) < 0.4
    v = np.where(near, u, 0.0)
    w = np.where(near, 1.0, r)
    return np.where(near, -v * v / 2 * sp.hyp2f1(1, 2, 3, -v), 1 - w + np.log(w))


def gammainc_by_a(a, x):
    """∂P/∂a."""
    a, x = np.broadcast_arrays(np.asarray(a, float), np.asarray(x, float))
    a, x = a[..., None], x[..., None]
    width = 12 * np.sqrt(a + 40)
    below = x <= a
    start = np.where(below, np.maximum(a - 3 * width, 0.0), x)
    end = np.where(below, x, np.maximum(x, a) + 4 * width)
    ψ = sp.digamma(a)
    t = start + (end - start) * LEFT
    t = np.where(t > 0, t, 1e-300)
    direct = (end - start)[..., 0] * quadrature(gamma_density(a, t) * (np.log(t) - ψ))
    singular = below & (a < 1)
    c = np.where(singular, a, 1.0)
    z = np.where(singular & (x > 0), x, 1.0)
    log_t = np.log(z) + np.log(LEFT) / c
    inner = np.exp(-np.exp(log_t)) * (log_t - ψ)
    scaled = np.exp(c * np.log(z) - sp.gammaln(c + 1))[..., 0] * quadrature(inner)
    total = np.where(singular[..., 0], scaled, np.where(below[..., 0], direct, -direct))
    return np.where(x[..., 0] > 0, np.where(np.isinf(x[..., 0]), 0.0, total), 0.0)[()]


partials(sp.gammainc, lambda y, a, x: gammainc_by_a(a, x), lambda y, a, x: gamma_density(a, x))
partials(sp.gammaincc, lambda y, a, x: -gammainc_by_a(a, x), lambda y, a, x: -gamma_density(a, x))
inverse_of(sp.gammaincinv, sp.gammainc, 1, 1)
inverse_of(sp.gammainccinv, sp.gammaincc, 1, 1)


# -- beta ------------------------------------------------------------------------------------------


def beta_density(a, b, x, rest):
    """xᵃ⁻¹ (1-x)ᵇ⁻¹ / B(a, b), where rest is 1 - x."""
    return np.exp(sp.xlogy(a - 1, x) + sp.xlogy(b - 1, rest) - sp.betaln(a, b))


def betainc_by_a(a, b, x, rest):
    """∂I/∂a; `rest` is 1 - x. By b it is the negative of this one of b, a and 1 - x."""
    a, b, x, rest = np.broadcast_arrays(*[np.asarray(v, float) for v in (a, b, x, rest)])
    a, b, x, rest = a[..., None], b[..., None], x[..., None], rest[..., None]
    shift = digamma_difference(a, b)  # minus the mean of log t
    mean = a / (a + b)
    width = 40 * np.sqrt(mean * (1 - mean) / (a + b + 1)) + 40 / (a + b)
    below = x <= mean
    # of the lower side: t = xu, or where a < 1, t = x u^(1/a)
    start = np.where(below & (a >= 1), np.maximum(mean - width, 0.0), 0.0)
    start = np.where(start < x, start, 0.0)
    t = np.where(below, start + (x - start) * LEFT, 0.5)
    t = np.where(t > 0, t, 1e-300)
    lower = (x - start)[..., 0] * quadrature(beta_density(a, b, t, 1 - t) * (np.log(t) + shift))
    singular = below & (a < 1)
    c = np.where(singular, a, 1.0)
    z = np.where(singular & (x > 0), x, 0.5)
    log_t = np.log(z) + np.log(LEFT) / c
    inner = np.exp(sp.xlog1py(b - 1, -np.exp(log_t))) * (log_t + shift)
    scale = np.exp(c * np.log(z) - np.log(c) - sp.betaln(c, b))
    by_power = scale[..., 0] * quadrature(inner)
    # of the upper side, in s = 1 - t, or where b < 1, s = rest u^(1/b)
    floor = np.where(~below & (b >= 1), np.maximum(1 - mean - width, 0.0), 0.0)
    floor = np.where(floor < rest, floor, 0.0)
    s = np.where(below, 0.5, floor + (rest - floor) * LEFT)
    s = np.where(s > 0, s, 1e-300)
    upper = (rest - floor)[..., 0] * quadrature(
        beta_density(b, a, s, 1 - s) * (np.log1p(-s) + shift)
    )
    singular_above = ~below & (b < 1)
    d = np.where(singular_above, b, 1.0)
    w = np.where(singular_above & (rest > 0), rest, 0.5)
    log_s = np.log(w) + np.log(LEFT) / d
    r = np.exp(log_s)
    inner_above = np.exp(sp.xlog1py(a - 1, -r)) * (np.log1p(-r) + shift)
    scale_above = np.exp(d * np.log(w) - np.log(d) - sp.betaln(d, a))
    by_power_above = scale_above[..., 0] * quadrature(inner_above)
    under = np.where(singular[..., 0], by_power, lower)
    above = np.where(singular_above[..., 0], by_power_above, upper)
    inside = (x[..., 0] > 0) & (rest[..., 0] > 0)
    return np.where(inside, np.where(below[..., 0], under, -above), 0.0)[()]


partials(
    sp.betainc,
    lambda y, a, b, x: betainc_by_a(a, b, x, 1 - x),
    lambda y, a, b, x: -betainc_by_a(b, a, 1 - x, x),
    lambda y, a, b, x: beta_density(a, b, x, 1 - x),
)
partials(
    sp.betaincc,
    lambda y, a, b, x: -betainc_by_a(a, b, x, 1 - x),
    lambda y, a, b, x: betainc_by_a(b, a, 1 - x, x),
    lambda y, a, b, x: -beta_density(a, b, x, 1 - x),
)
inverse_of(sp.betaincinv, sp.betainc, 2, 2)
inverse_of(sp.betainccinv, sp.betaincc, 2, 2)
