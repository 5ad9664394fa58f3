"""Rules of elliptic integrals and functions, of Carlson's integrals and the arithmetic-geometric mean.

    ∂F/∂m = s³/6 R_D(c², 1, Δ²),   ∂E/∂m = -s³/6 R_D(c², Δ², 1),   s = sin φ, Δ² = 1 - m s²

which have all their digits at m = 0 too. What goes beyond |φ| = π/2 adds multiples of the complete
integrals. Second derivatives of Carlson's integrals are integrals of the same kind, found by
quadrature.
Carlson, Elliptic integrals, in: NIST handbook of mathematical functions (2010), sections 19.18, 19.20.
Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sp

from morula.core.extend import NoTangent, is_zero, non_differentiable, rrule
from morula.rules.arrays.broadcasting import match, part, shape_of, widened
from morula.rules.arrays.types import Anything, Numeric
from morula.rules.scipy.special.families import UNKNOWN, elementwise, partials
from morula.rules.unknown import unknown

elementwise(sp.ellipk)(lambda y, m: sp.elliprd(0.0, 1.0, 1 - m) / 6)
elementwise(sp.ellipkm1)(lambda y, p: -sp.elliprd(0.0, 1.0, p) / 6)
elementwise(sp.ellipe)(lambda y, m: -sp.elliprd(0.0, 1 - m, 1.0) / 6)


def beyond(φ: Any) -> Any:
    """How many times π is left out of φ to come between -π/2 and π/2."""
    return np.round(φ / math.pi)


non_differentiable(beyond)


def first_by_m(φ, m):
    """∂F/∂m of the incomplete integral of the first kind."""
    n = beyond(φ)
    s, c = np.sin(φ - n * math.pi), np.cos(φ - n * math.pi)
    inside = s**3 * sp.elliprd(c * c, 1.0, 1 - m * s * s) / 6
    return inside + np.where(n == 0, 0.0, n * sp.elliprd(0.0, 1.0, 1 - m) / 3)


def second_by_m(φ, m):
    """∂E/∂m of the incomplete integral of the second kind."""
    n = beyond(φ)
    s, c = np.sin(φ - n * math.pi), np.cos(φ - n * math.pi)
    inside = -(s**3) * sp.elliprd(c * c, 1 - m * s * s, 1.0) / 6
    return inside - np.where(n == 0, 0.0, n * sp.elliprd(0.0, 1 - m, 1.0) / 3)


partials(
    sp.ellipkinc,
    lambda y, φ, m: 1 / np.sqrt(1 - m * np.sin(φ) ** 2),
    lambda y, φ, m: first_by_m(φ, m),
)
partials(
    sp.ellipeinc,
    lambda y, φ, m: np.sqrt(1 - m * np.sin(φ) ** 2),
    lambda y, φ, m: second_by_m(φ, m),
)


@rrule(sp.ellipj)
def _(u: Numeric, m: Numeric):
    ys = sp.ellipj(u, m)

    def ellipj_pullback(ȳ):
        sn, cn, dn, φ = ys
        k2 = widened(m)
        by_u = (cn * dn, -sn * dn, -k2 * sn * cn, dn)
        turn = -dn * first_by_m(φ, k2)
        by_m = (cn * turn, -sn * turn, -(sn * sn + 2 * k2 * sn * cn * turn) / (2 * dn), turn)
        ū: Any = 0.0
        m̄: Any = 0.0
        for i in range(4):
            bar = part(ȳ, i)
            if not is_zero(bar):
                ū = ū + bar * by_u[i]
                m̄ = m̄ + bar * by_m[i]
        return match(ū, shape_of(u)), match(m̄, shape_of(m))

    return ys, ellipj_pullback


# -- Carlson's integrals ---------------------------------------------------------------------------

# Points and weights of ∫₀^∞ f(t) dt with t = exp(2 sinh s): whatever the powers at both ends.
_S = np.linspace(-4.2, 4.2, 337)
POINTS = np.exp(2 * np.sinh(_S))
WEIGHTS = POINTS * 2 * np.cosh(_S) * (_S[1] - _S[0])


def carlson(powers, *values):
    """∫ Π (t + vᵢ)^(-pᵢ) dt over t > 0; the values broadcast.

    It is homogeneous: complex values are turned until they lie to both sides of t, for the points
    resolve nothing that is near the negative numbers. Of those it is Cauchy's principal value.
    """
    if any(map(np.iscomplexobj, values)):
        angles = [np.angle(v) for v in np.broadcast_arrays(*values)]
        θ = (np.max(angles, axis=0) + np.min(angles, axis=0)) / 2
        turn = np.exp(-1j * θ)
        return np.exp(1j * θ * (1 - sum(powers))) * integral(powers, [v * turn for v in values])
    if any(np.any(np.less(v, 0)) for v in values):
        return np.real(carlson(powers, *[np.asarray(v, complex) for v in values]))
    return integral(powers, values)


def integral(powers, values):
    """That of carlson, of values that are not near the negative numbers."""
    log: Any = 0.0
    for p, v in zip(powers, values, strict=True):
        log = log - p * np.log(POINTS + np.asarray(v)[..., None])
    return np.sum(np.exp(log) * WEIGHTS, axis=-1)


@rrule(carlson)
def _(powers: Anything, *values: Anything):
    def carlson_pullback(ȳ):
        bars = []
        for i, v in enumerate(values):
            more = tuple([p + (i == j) for j, p in enumerate(powers)])
            slope = -powers[i] * carlson(more, *values)
            bars.append(match(ȳ * np.conjugate(slope), np.shape(v)))
        return (NoTangent(), *bars)

    return carlson(powers, *values), carlson_pullback


HALF, ONE = 0.5, 1.0
partials(
    sp.elliprf,
    lambda r, x, y, z: -sp.elliprd(y, z, x) / 6,
    lambda r, x, y, z: -sp.elliprd(z, x, y) / 6,
    lambda r, x, y, z: -sp.elliprd(x, y, z) / 6,
)
partials(
    sp.elliprg,
    lambda r, x, y, z: sp.elliprf(x, y, z) / 4 - x * sp.elliprd(y, z, x) / 12,
    lambda r, x, y, z: sp.elliprf(x, y, z) / 4 - y * sp.elliprd(z, x, y) / 12,
    lambda r, x, y, z: sp.elliprf(x, y, z) / 4 - z * sp.elliprd(x, y, z) / 12,
)
partials(
    sp.elliprc,
    lambda r, x, y: -carlson((1.5, 1.0), x, y) / 4,
    lambda r, x, y: -carlson((0.5, 2.0), x, y) / 2,
)
partials(
    sp.elliprd,
    lambda r, x, y, z: -0.75 * carlson((1.5, 0.5, 1.5), x, y, z),
    lambda r, x, y, z: -0.75 * carlson((0.5, 1.5, 1.5), x, y, z),
    lambda r, x, y, z: -2.25 * carlson((0.5, 0.5, 2.5), x, y, z),
)
partials(
    sp.elliprj,
    lambda r, x, y, z, p: -0.75 * carlson((1.5, 0.5, 0.5, 1.0), x, y, z, p),
    lambda r, x, y, z, p: -0.75 * carlson((0.5, 1.5, 0.5, 1.0), x, y, z, p),
    lambda r, x, y, z, p: -0.75 * carlson((0.5, 0.5, 1.5, 1.0), x, y, z, p),
    lambda r, x, y, z, p: -1.5 * carlson((0.5, 0.5, 0.5, 2.0), x, y, z, p),
)
partials(
    sp.agm,
    lambda y, a, b: y * a * sp.elliprd(0.0, b * b, a * a) / (3 * sp.elliprf(0.0, a * a, b * b)),
    lambda y, a, b: y * b * sp.elliprd(0.0, a * a, b * b) / (3 * sp.elliprf(0.0, a * a, b * b)),
)


# -- ellipsoidal harmonics -------------------------------------------------------------------------


@rrule(sp.ellip_harm)
def _(h2, k2, n, p, s, signm=1, signn=1):
    def harmonic_pullback(ȳ):
        known = (NoTangent(), NoTangent())
        return (*_unknown(sp.ellip_harm, 2), *known, *_unknown(sp.ellip_harm, 1), *known)

    return sp.ellip_harm(h2, k2, n, p, s, signm, signn), harmonic_pullback


@rrule(sp.ellip_harm_2)
def _(h2, k2, n, p, s):
    def harmonic_pullback(ȳ):
        known = (NoTangent(), NoTangent())
        return (*_unknown(sp.ellip_harm_2, 2), *known, *_unknown(sp.ellip_harm_2, 1))

    return sp.ellip_harm_2(h2, k2, n, p, s), harmonic_pullback


def _unknown(primal, n):
    return [unknown(primal, "its real arguments") for _ in range(n)]


@rrule(sp.ellip_normal)
def _(h2, k2, n, p):
    def normal_pullback(ȳ):
        return (*_unknown(sp.ellip_normal, 2), NoTangent(), NoTangent())

    return sp.ellip_normal(h2, k2, n, p), normal_pullback


__all__ = ["UNKNOWN", "carlson"]
