"""Rules of Bessel functions and their relatives: Airy, Kelvin, Struve, spherical, their integrals.

    J' = (Jᵥ₋₁ - Jᵥ₊₁) / 2        likewise Y, H⁽¹⁾, H⁽²⁾
    I' = (Iᵥ₋₁ + Iᵥ₊₁) / 2,        K' = -(Kᵥ₋₁ + Kᵥ₊₁) / 2

Scaled ones have the derivative of their factor besides; for complex z the factors exp(-|Im z|) and
exp(-|Re z|) are not holomorphic, which their rules follow. By the order nobody has a formula.
Abramowitz and Stegun, Handbook of mathematical functions, chapters 9 to 12.
Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sp

from morula.core.extend import NoTangent, non_differentiable, rrule
from morula.rules.arrays.broadcasting import match, part, shape_of, widened
from morula.rules.arrays.types import Numeric
from morula.rules.linalg.parts import filled
from morula.rules.scipy.special.families import (
    CONSTANT,
    UNKNOWN,
    elementwise,
    partials,
    several_results,
)
from morula.rules.unknown import unknown

# -- of order 0 and 1 ------------------------------------------------------------------------------

elementwise(sp.j0)(lambda y, x: -sp.j1(x))
elementwise(sp.j1)(lambda y, x: (sp.j0(x) - sp.jv(2, x)) / 2)
elementwise(sp.y0)(lambda y, x: -sp.y1(x))
elementwise(sp.y1)(lambda y, x: (sp.y0(x) - sp.yv(2, x)) / 2)
elementwise(sp.i0)(lambda y, x: sp.i1(x))
elementwise(sp.i1)(lambda y, x: (sp.i0(x) + sp.iv(2, x)) / 2)
elementwise(sp.i0e)(lambda y, x: sp.i1e(x) - np.sign(x) * y)
elementwise(sp.i1e)(lambda y, x: (sp.i0e(x) + sp.ive(2, x)) / 2 - np.sign(x) * y)
elementwise(sp.k0)(lambda y, x: -sp.k1(x))
elementwise(sp.k1)(lambda y, x: -(sp.k0(x) + sp.kv(2, x)) / 2)
elementwise(sp.k0e)(lambda y, x: y - sp.k1e(x))
elementwise(sp.k1e)(lambda y, x: y - (sp.k0e(x) + sp.kve(2, x)) / 2)

# -- of any order ----------------------------------------------------------------------------------


def _order(primal, derivative, order=UNKNOWN):
    partials(primal, order, derivative)


for _f in {sp.jv, sp.jn}:
    _order(_f, lambda y, v, z: (sp.jv(v - 1, z) - sp.jv(v + 1, z)) / 2)
_order(sp.yv, lambda y, v, z: (sp.yv(v - 1, z) - sp.yv(v + 1, z)) / 2)
_order(sp.yn, lambda y, v, z: sp.yvp(np.trunc(v), z), CONSTANT)
_order(sp.iv, lambda y, v, z: (sp.iv(v - 1, z) + sp.iv(v + 1, z)) / 2)
_order(sp.kv, lambda y, v, z: -(sp.kv(v - 1, z) + sp.kv(v + 1, z)) / 2)
_order(sp.kn, lambda y, v, z: sp.kvp(np.trunc(v), z), CONSTANT)
_order(sp.kve, lambda y, v, z: y - (sp.kve(v - 1, z) + sp.kve(v + 1, z)) / 2)
_order(sp.hankel1, lambda y, v, z: (sp.hankel1(v - 1, z) - sp.hankel1(v + 1, z)) / 2)
_order(sp.hankel2, lambda y, v, z: (sp.hankel2(v - 1, z) - sp.hankel2(v + 1, z)) / 2)
_order(sp.hankel1e, lambda y, v, z: (sp.hankel1e(v - 1, z) - sp.hankel1e(v + 1, z)) / 2 - 1j * y)
_order(sp.hankel2e, lambda y, v, z: (sp.hankel2e(v - 1, z) - sp.hankel2e(v + 1, z)) / 2 + 1j * y)


def _scaled(primal, sign, across):
    """F(z) exp(-|Re z|), or exp(-|Im z|) if the factor is constant along the real line."""

    @rrule(primal)
    def _(v: Numeric, z: Numeric):
        y = primal(v, z)

        def scaled_pullback(ȳ):
            order, at = widened(v), widened(z)
            slope = (primal(order - 1, at) + sign * primal(order + 1, at)) / 2
            z̄ = ȳ * np.conjugate(slope)
            pull = np.real(np.conjugate(y) * ȳ)
            if not across:
                z̄ = z̄ - np.sign(np.real(at)) * pull
            elif np.iscomplexobj(z):
                z̄ = z̄ - 1j * np.sign(np.imag(at)) * pull
            return unknown(primal, "its order"), match(z̄, shape_of(z))

        return y, scaled_pullback


_scaled(sp.jve, -1.0, True)
_scaled(sp.yve, -1.0, True)
_scaled(sp.ive, 1.0, False)


# -- derivatives of Bessel functions ---------------------------------------------------------------


def _derivative(primal):
    @rrule(primal)
    def _(v: Numeric, z: Numeric, n=1):
        def derivative_pullback(ȳ):
            z̄ = match(ȳ * np.conjugate(primal(v, z, n + 1)), shape_of(z))
            return unknown(primal, "its order"), z̄, NoTangent()

        return primal(v, z, n), derivative_pullback


for _f in (sp.jvp, sp.yvp, sp.ivp, sp.kvp, sp.h1vp, sp.h2vp):
    _derivative(_f)

# -- spherical ones --------------------------------------------------------------------------------


def _spherical(primal, less, more):
    """f' = (less n fₙ₋₁ + more (n+1) fₙ₊₁) / (2n + 1)."""

    @rrule(primal)
    def _(n: Numeric, z: Numeric, derivative=False):
        def spherical_pullback(ȳ):
            k = widened(n)
            below = primal(np.maximum(k - 1, 0), z, derivative)
            above = primal(k + 1, z, derivative)
            slope = (less * k * below + more * (k + 1) * above) / (2 * k + 1)
            return NoTangent(), match(ȳ * np.conjugate(slope), shape_of(z)), NoTangent()

        return primal(n, z, derivative), spherical_pullback


_spherical(sp.spherical_jn, 1.0, -1.0)
_spherical(sp.spherical_yn, 1.0, -1.0)
_spherical(sp.spherical_in, 1.0, 1.0)
_spherical(sp.spherical_kn, -1.0, -1.0)


# -- pairs of functions and their derivatives, by their differential equations ---------------------


def _with_derivatives(primal, second):
    """f(order, x) gives values and slopes; second(v, x, values, slopes) gives the slopes' slopes."""

    @rrule(primal)
    def _(v: Numeric, x: Numeric):
        y = primal(v, x)

        def pair_pullback(ȳ):
            x̄: Any = 0.0
            values, slopes = y
            for i, slope in enumerate((slopes, second(v, x, values, slopes))):
                x̄ = x̄ + np.sum(filled(part(ȳ, i), slope) * np.conjugate(slope))
            return unknown(primal, "its order"), x̄

        return y, pair_pullback


def _riccati(n, x, f, g):
    k = np.arange(len(f))
    return (k * (k + 1) / (x * x) - 1) * f


_with_derivatives(sp.riccati_jn, _riccati)
_with_derivatives(sp.riccati_yn, _riccati)


def _orders(v, f):
    """The orders of the entries of lmbda(v, x): v less its whole part, and so on by ones."""
    return v - np.floor(v) + np.arange(len(f))


_with_derivatives(sp.lmbda, lambda v, x, f, g: -f - (2 * _orders(v, f) + 1) / x * g)


# -- Airy functions --------------------------------------------------------------------------------


@several_results(sp.airy)
def _(ys, z):
    return ys[1], z * ys[0], ys[3], z * ys[2]


def defined(slope):
    """Zero where there is none: scaled Ai of negative numbers is NaN, and Bi beside it is not."""
    return np.where(np.isnan(slope), 0.0, slope)


@rrule(sp.airye)
def _(z: Numeric):
    """Ai and Ai' times exp(ζ), Bi and Bi' times exp(-|Re ζ|), ζ = 2/3 z √z."""
    ys = sp.airye(z)

    def airye_pullback(ȳ):
        root = np.sqrt(z) if np.iscomplexobj(z) else np.sqrt(np.maximum(z, 0.0))
        a, da, b, db = ys
        ā, dā, b̄, db̄ = [filled(part(ȳ, i), ys[i]) for i in range(4)]
        z̄ = ā * np.conjugate(defined(da + root * a))
        z̄ = z̄ + dā * np.conjugate(defined(z * a + root * da))
        z̄ = z̄ + b̄ * np.conjugate(db) + db̄ * np.conjugate(z * b)
        pull = np.real(np.conjugate(b) * b̄ + np.conjugate(db) * db̄)
        z̄ = z̄ - np.sign(np.real(z * root)) * pull * np.conjugate(root)
        return (z̄,)

    return ys, airye_pullback


@several_results(sp.itairy)
def _(ys, x):
    ai, _, bi, _ = sp.airy(x)
    mirrored, _, mirrored_bi, _ = sp.airy(-x)
    return ai, bi, mirrored, mirrored_bi


# -- Kelvin functions ------------------------------------------------------------------------------


def over_x(f, x, limit):
    """f / x, and its limit at 0."""
    return np.where(x == 0, limit, f / np.where(x == 0, 1.0, x))


elementwise(sp.ber)(lambda y, x: sp.berp(x))
elementwise(sp.bei)(lambda y, x: sp.beip(x))
elementwise(sp.ker)(lambda y, x: sp.kerp(x))
elementwise(sp.kei)(lambda y, x: sp.keip(x))
elementwise(sp.berp)(lambda y, x: -sp.bei(x) - over_x(y, x, 0.0))
elementwise(sp.beip)(lambda y, x: sp.ber(x) - over_x(y, x, 0.5))
elementwise(sp.kerp)(lambda y, x: -sp.kei(x) - y / x)
elementwise(sp.keip)(lambda y, x: sp.ker(x) - y / x)


@several_results(sp.kelvin)
def _(ys, x):
    be, ke, bep, kep = ys
    return bep, kep, 1j * be - over_x(bep, x, 0.5j), 1j * ke - kep / x


# -- Struve functions and integrals ----------------------------------------------------------------


def _first_of_struve(v, x):
    return np.power(x / 2, v) * sp.rgamma(v + 1.5) / math.sqrt(math.pi)


partials(
    sp.struve,
    UNKNOWN,
    lambda y, v, x: (sp.struve(v - 1, x) - sp.struve(v + 1, x) + _first_of_struve(v, x)) / 2,
)
partials(
    sp.modstruve,
    UNKNOWN,
    lambda y, v, x: (sp.modstruve(v - 1, x) + sp.modstruve(v + 1, x) + _first_of_struve(v, x)) / 2,
)
elementwise(sp.itstruve0)(lambda y, x: sp.struve(0, x))
elementwise(sp.itmodstruve0)(lambda y, x: sp.modstruve(0, x))
elementwise(sp.it2struve0)(lambda y, x: -sp.struve(0, x) / x)
several_results(sp.itj0y0)(lambda ys, x: (sp.j0(x), sp.y0(x)))
several_results(sp.iti0k0)(lambda ys, x: (sp.i0(x), sp.k0(x)))
several_results(sp.it2j0y0)(lambda ys, x: (over_x(1 - sp.j0(x), x, 0.0), -sp.y0(x) / x))
several_results(sp.it2i0k0)(lambda ys, x: (over_x(sp.i0(x) - 1, x, 0.0), -sp.k0(x) / x))
partials(
    sp.besselpoly,
    lambda y, a, p, v: sp.besselpoly(a, p + 1, v - 1) - sp.besselpoly(a, p + 1, v + 1),
    UNKNOWN,
    UNKNOWN,
)
partials(sp.wright_bessel, UNKNOWN, UNKNOWN, lambda y, a, b, x: sp.wright_bessel(a, a + b, x))
partials(
    sp.log_wright_bessel,
    UNKNOWN,
    UNKNOWN,
    lambda y, a, b, x: np.exp(sp.log_wright_bessel(a, a + b, x) - y),
)


non_differentiable(
    *[getattr(sp, name) for name in dir(sp) if name.endswith("_zeros") or name == "jnjnp_zeros"]
)
