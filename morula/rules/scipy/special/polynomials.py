"""Rules of orthogonal polynomials, hypergeometric functions and Legendre functions.

The derivative of a polynomial is one of the family with parameters raised by one, of degree n - 1.
Degrees that are integers are constant; by real degrees and parameters the derivative is not known.
Legendre functions bring their first two derivatives with them.
Abramowitz and Stegun, Handbook of mathematical functions, 8.5, 13.4, 15.2, 22.8.
Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sp

from morula.core.extend import NoTangent, non_differentiable, rrule
from morula.rules.arrays.broadcasting import match, part, shape_of
from morula.rules.arrays.types import Anything, Numeric
from morula.rules.linalg.parts import filled
from morula.rules.scipy.special.families import CONSTANT, ORDER, UNKNOWN, partials
from morula.rules.unknown import unknown

# -- polynomials -----------------------------------------------------------------------------------


def lowered(n, factor, polynomial):
    """factor · polynomial(n - 1), and 0 for degree 0."""
    return np.where(n == 0, 0.0, factor * polynomial(np.where(n == 0, 0, n - 1)))


def _plain(primal, derivative):
    partials(primal, ORDER, derivative)


_plain(sp.eval_chebyt, lambda y, n, x: lowered(n, n, lambda k: sp.eval_chebyu(k, x)))
_plain(sp.eval_chebyu, lambda y, n, x: lowered(n, 2, lambda k: sp.eval_gegenbauer(k, 2.0, x)))
_plain(sp.eval_chebyc, lambda y, n, x: lowered(n, n, lambda k: sp.eval_chebys(k, x)))
_plain(sp.eval_chebys, lambda y, n, x: lowered(n, 1, lambda k: sp.eval_gegenbauer(k, 2.0, x / 2)))
_plain(sp.eval_sh_chebyt, lambda y, n, x: lowered(n, 2 * n, lambda k: sp.eval_sh_chebyu(k, x)))
_plain(
    sp.eval_sh_chebyu,
    lambda y, n, x: lowered(n, 4, lambda k: sp.eval_gegenbauer(k, 2.0, 2 * x - 1)),
)
_plain(sp.eval_legendre, lambda y, n, x: lowered(n, 1, lambda k: sp.eval_gegenbauer(k, 1.5, x)))
_plain(
    sp.eval_sh_legendre,
    lambda y, n, x: lowered(n, 2, lambda k: sp.eval_gegenbauer(k, 1.5, 2 * x - 1)),
)
_plain(sp.eval_laguerre, lambda y, n, x: lowered(n, -1, lambda k: sp.eval_genlaguerre(k, 1.0, x)))
_plain(sp.eval_hermite, lambda y, n, x: lowered(n, 2 * n, lambda k: sp.eval_hermite(k, x)))
_plain(sp.eval_hermitenorm, lambda y, n, x: lowered(n, n, lambda k: sp.eval_hermitenorm(k, x)))
partials(
    sp.eval_genlaguerre,
    ORDER,
    UNKNOWN,
    lambda y, n, a, x: lowered(n, -1, lambda k: sp.eval_genlaguerre(k, a + 1, x)),
)
partials(
    sp.eval_gegenbauer,
    ORDER,
    UNKNOWN,
    lambda y, n, a, x: lowered(n, 2 * a, lambda k: sp.eval_gegenbauer(k, a + 1, x)),
)
partials(
    sp.eval_jacobi,
    ORDER,
    UNKNOWN,
    UNKNOWN,
    lambda y, n, a, b, x: lowered(
        n, (n + a + b + 1) / 2, lambda k: sp.eval_jacobi(k, a + 1, b + 1, x)
    ),
)
partials(
    sp.eval_sh_jacobi,
    ORDER,
    UNKNOWN,
    UNKNOWN,
    lambda y, n, p, q, x: lowered(
        n,
        (n + p) / sp.binom(2 * n + p - 1, n),
        lambda k: sp.eval_jacobi(k, p - q + 1, q, 2 * x - 1),
    ),
)

# -- hypergeometric functions ----------------------------------------------------------------------

partials(sp.hyp0f1, UNKNOWN, lambda y, v, z: sp.hyp0f1(v + 1, z) / v)
partials(sp.hyp1f1, UNKNOWN, UNKNOWN, lambda y, a, b, z: a / b * sp.hyp1f1(a + 1, b + 1, z))
partials(sp.hyperu, UNKNOWN, UNKNOWN, lambda y, a, b, z: -a * sp.hyperu(a + 1, b + 1, z))
partials(
    sp.hyp2f1,
    UNKNOWN,
    UNKNOWN,
    UNKNOWN,
    lambda y, a, b, c, z: a * b / c * sp.hyp2f1(a + 1, b + 1, c + 1, z),
)

# -- Legendre functions ----------------------------------------------------------------------------

partials(
    sp.lpmv,
    CONSTANT,
    UNKNOWN,
    lambda y, m, v, x: (v * x * y - (v + m) * sp.lpmv(m, v - 1, x)) / (x * x - 1),
)


def _legendre(primal, whole):
    """Functions that give their first `diff_n` derivatives, at most two, in front or behind."""

    @rrule(primal)
    def _(*args: Numeric, diff_n=0, **options):
        y = primal(*args, diff_n=diff_n, **options)

        def legendre_pullback(ȳ):
            if diff_n >= 2:
                bars = (unknown(primal, "its argument, three times"),)
            else:
                more = primal(*args, diff_n=diff_n + 1, **options)
                slopes = more[1:] if diff_n else more[1]
                total = ȳ * np.conjugate(slopes)
                kept = total
                if diff_n:
                    kept = np.sum(total, axis=0)
                bars = (match_last(kept, args[-1], whole),)
            return (*[NoTangent()] * (len(args) - 1), *bars)

        return y, legendre_pullback


def match_last(x̄, x, whole):
    """A cotangent in the shape of the argument; `whole` axes of orders come first."""
    if whole:
        x̄ = np.sum(x̄, axis=tuple(range(whole)))
    return match(x̄, shape_of(x))


_legendre(sp.legendre_p, 0)
_legendre(sp.legendre_p_all, 1)
_legendre(sp.assoc_legendre_p, 0)
_legendre(sp.assoc_legendre_p_all, 2)
_legendre(sp.sph_legendre_p, 0)
_legendre(sp.sph_legendre_p_all, 2)


def _harmonic(primal, whole):
    @rrule(primal)
    def _(n, m, theta: Numeric, phi: Numeric, *, diff_n=0):
        y = primal(n, m, theta, phi, diff_n=diff_n)

        def harmonic_pullback(ȳ):
            if diff_n > 1:
                why = "its angles, three times"
                return NoTangent(), NoTangent(), unknown(primal, why), unknown(primal, why)
            if diff_n:
                values, slopes, seconds = primal(n, m, theta, phi, diff_n=2)
                ȳ, S̄ = filled(part(ȳ, 0), values), filled(part(ȳ, 1), slopes)
                further = np.sum(np.real(np.conjugate(S̄)[..., None] * seconds), axis=-2)
            else:
                _, slopes = primal(n, m, theta, phi, diff_n=1)
                further = np.zeros(np.shape(slopes))
            θ̄ = np.real(np.conjugate(ȳ) * slopes[..., 0]) + further[..., 0]
            φ̄ = np.real(np.conjugate(ȳ) * slopes[..., 1]) + further[..., 1]
            return (
                NoTangent(),
                NoTangent(),
                match_last(θ̄, theta, whole),
                match_last(φ̄, phi, whole),
            )

        return y, harmonic_pullback


_harmonic(sp.sph_harm_y, 0)
_harmonic(sp.sph_harm_y_all, 2)


@rrule(sp.lqn)
def _(n, z: Numeric):
    """Q₀ to Qₙ and their derivatives; (1 - z²) Q'' = 2 z Q' - k (k+1) Q."""
    y = sp.lqn(n, z)

    def lqn_pullback(ȳ):
        values, slopes = y
        k = np.arange(len(values)).reshape((-1, *[1] * np.ndim(z)))
        seconds = (2 * z * slopes - k * (k + 1) * values) / (1 - z * z)
        total = filled(part(ȳ, 0), values) * np.conjugate(slopes)
        total = total + filled(part(ȳ, 1), slopes) * np.conjugate(seconds)
        return NoTangent(), np.sum(total, axis=0)

    return y, lqn_pullback


@rrule(sp.lqmn)
def _(m, n, z: Numeric):
    """Qₘₙ and their derivatives by the differential equation, as in lqn."""
    y = sp.lqmn(m, n, z)

    def lqmn_pullback(ȳ):
        values, slopes = y
        rows, columns = values.shape[:2]
        k = np.arange(columns).reshape((1, -1, *[1] * np.ndim(z)))
        j = np.arange(rows).reshape((-1, 1, *[1] * np.ndim(z)))
        inner = k * (k + 1) - j * j / (1 - z * z)
        seconds = (2 * z * slopes - inner * values) / (1 - z * z)
        total = filled(part(ȳ, 0), values) * np.conjugate(slopes)
        total = total + filled(part(ȳ, 1), slopes) * np.conjugate(seconds)
        return NoTangent(), NoTangent(), np.sum(total, axis=(0, 1))

    return y, lqmn_pullback


# -- objects of polynomials, which are evaluated by the functions above ----------------------------


def _object(primal, parameters):
    @rrule(primal)
    def _(n, *rest: Anything, **keywords):
        def object_pullback(ȳ):
            bars = [NoTangent() for _ in rest]
            for i in range(min(parameters, len(rest))):
                bars[i] = unknown(primal, "its parameters")
            for name in keywords:
                constant = name in ("monic", "mu")
                bars.append(NoTangent() if constant else unknown(primal, f"its parameter {name}"))
            return (NoTangent(), *bars)

        return primal(n, *rest, **keywords), object_pullback


for _name, _parameters in {
    "chebyc": 0, "chebys": 0, "chebyt": 0, "chebyu": 0, "hermite": 0, "hermitenorm": 0,
    "laguerre": 0, "legendre": 0, "sh_chebyt": 0, "sh_chebyu": 0, "sh_legendre": 0,
}.items():  # fmt: skip
    _object(getattr(sp, _name), _parameters)

_PARAMETERS: Any = {  # of the weight that the roots and weights of quadrature depend on
    sp.roots_gegenbauer: 1,
    sp.roots_genlaguerre: 1,
    sp.roots_jacobi: 2,
    sp.roots_sh_jacobi: 2,
}
for _primal, _parameters in _PARAMETERS.items():
    _object(_primal, _parameters)
_ROOTS: Any = {
    getattr(sp, name) for name in dir(sp) if name.startswith("roots_") or name.endswith("_roots")
}
non_differentiable(
    *(_ROOTS - _PARAMETERS.keys()),
    sp.bernoulli,
    sp.euler,
    sp.factorial2,
    sp.factorialk,
    sp.stirling2,
)
