"""Rules of Mathieu's, parabolic cylinder and spheroidal wave functions, by the last argument.

Each gives a value and a slope; the slope of the slope is that of the differential equation. By the
parameters nobody has a formula, but that of Mathieu's characteristic values by q (Hellmann, Feynman).
Abramowitz and Stegun, Handbook of mathematical functions, 19.1, 20.1, 21.6.
Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special as sp

from morula.core.extend import NoTangent, UnsupportedError, non_differentiable, rrule
from morula.rules.arrays.broadcasting import part
from morula.rules.arrays.types import Numeric
from morula.rules.linalg.parts import filled
from morula.rules.scipy.special.families import CONSTANT, UNKNOWN, partials, several_results
from morula.rules.unknown import unknown

DEGREE = math.pi / 180


def _angular_mathieu(primal, characteristic):
    @several_results(primal, CONSTANT, UNKNOWN)
    def _(ys, m, q, x):
        y, slope = ys
        inner = 2 * q * np.cos(2 * DEGREE * x) - characteristic(m, q)
        return DEGREE * slope, DEGREE * inner * y


def _modified_mathieu(primal, characteristic):
    @several_results(primal, CONSTANT, UNKNOWN)
    def _(ys, m, q, x):
        y, slope = ys
        return slope, (characteristic(m, q) - 2 * q * np.cosh(2 * x)) * y


_angular_mathieu(sp.mathieu_cem, sp.mathieu_a)
_angular_mathieu(sp.mathieu_sem, sp.mathieu_b)
_modified_mathieu(sp.mathieu_modcem1, sp.mathieu_a)
_modified_mathieu(sp.mathieu_modcem2, sp.mathieu_a)
_modified_mathieu(sp.mathieu_modsem1, sp.mathieu_b)
_modified_mathieu(sp.mathieu_modsem2, sp.mathieu_b)


def _cylinder(primal):
    @several_results(primal, UNKNOWN)
    def _(ys, v, x):
        return ys[1], (x * x / 4 - v - 0.5) * ys[0]


_cylinder(sp.pbdv)
_cylinder(sp.pbvv)


@several_results(sp.pbwa, UNKNOWN)
def _(ys, a, x):
    return ys[1], (a - x * x / 4) * ys[0]


def _sequence(primal, orders):
    @rrule(primal)
    def _(v, x: Numeric):
        ys = primal(v, x)

        def sequence_pullback(ȳ):
            values, slopes = ys
            seconds = (x * x / 4 - orders(v, len(values)) - 0.5) * values
            total = filled(part(ȳ, 0), values) * np.conjugate(slopes)
            total = total + filled(part(ȳ, 1), slopes) * np.conjugate(seconds)
            return unknown(primal, "its order"), np.sum(total)

        return ys, sequence_pullback


def _orders(v, n):
    start = v - np.trunc(v)
    return start + np.arange(n) * (1 if v >= 0 else -1)


_sequence(sp.pbdv_seq, _orders)
_sequence(sp.pbvv_seq, _orders)


@rrule(sp.pbdn_seq)
def _(n, z: Numeric):
    ys = sp.pbdn_seq(n, z)

    def sequence_pullback(ȳ):
        values, slopes = ys
        k = np.arange(len(values)) * (1 if n >= 0 else -1)
        seconds = (z * z / 4 - k - 0.5) * values
        total = filled(part(ȳ, 0), values) * np.conjugate(slopes)
        total = total + filled(part(ȳ, 1), slopes) * np.conjugate(seconds)
        return NoTangent(), np.sum(total)

    return ys, sequence_pullback


# Spheroidal functions: ((1 - x²) S')' + (λ - c² x² - m² / (1 - x²)) S = 0, which holds for the radial
# ones too; of the oblate kind c² and, in the radial ones, x² are negative.


def _spheroidal(name, characteristic, oblate, radial):
    def slopes(ys, m, c, cv, x):
        value, slope = ys
        sign = -1.0 if oblate else 1.0
        if oblate and radial:
            p, dp = x * x + 1, 2 * x
            inner = cv - c * c * x * x - m * m / p
            return slope, (inner * value - dp * slope) / p
        p, dp = 1 - x * x, -2 * x
        inner = cv - sign * c * c * x * x - m * m / p
        return slope, -(inner * value + dp * slope) / p

    def checked(ys, m, n, c, cv, x):
        if name == "obl_rad2":
            check_wronskian(*ys, m, n, c, cv, x)
        return slopes(ys, m, c, cv, x)

    @several_results(getattr(sp, name), CONSTANT, CONSTANT, UNKNOWN)
    def _(ys, m, n, c, x):
        return checked(ys, m, n, c, characteristic(m, n, c), x)

    @several_results(getattr(sp, name + "_cv"), CONSTANT, CONSTANT, UNKNOWN, UNKNOWN)
    def _(ys, m, n, c, cv, x):
        return checked(ys, m, n, c, cv, x)


def check_wronskian(value, slope, m, n, c, cv, x):
    """An error unless R₁R₂' - R₁'R₂ = 1 / c(x² + 1), as it is not for what SciPy gives at small x."""
    first, first_slope = sp.obl_rad1_cv(m, n, c, cv, x)
    expected = 1 / (c * (x * x + 1))
    if np.any(np.abs(first * slope - first_slope * value - expected) > 1e-5 * expected):
        raise UnsupportedError(
            "obl_rad2 has no derivative here: its value and its slope, as SciPy gives them for such "
            "small x, are not those of one function"
        )


non_differentiable(check_wronskian)
_spheroidal("pro_ang1", sp.pro_cv, False, False)
_spheroidal("pro_rad1", sp.pro_cv, False, True)
_spheroidal("pro_rad2", sp.pro_cv, False, True)
_spheroidal("obl_ang1", sp.obl_cv, True, False)
_spheroidal("obl_rad1", sp.obl_cv, True, True)
_spheroidal("obl_rad2", sp.obl_cv, True, True)

# -- characteristic values -------------------------------------------------------------------------

_PERIOD = np.arange(512) * (360 / 512)


def _characteristic(primal, function):
    """∂a/∂q of y'' + (a - 2q cos 2x) y = 0: the mean of 2 cos 2x by the weight y²."""

    def by_q(y, m, q):
        wave, _ = function(np.asarray(m)[..., None], np.asarray(q)[..., None], _PERIOD)
        weight = wave * wave
        return 2 * np.sum(np.cos(2 * DEGREE * _PERIOD) * weight, -1) / np.sum(weight, -1)

    partials(primal, CONSTANT, by_q)


_characteristic(sp.mathieu_a, sp.mathieu_cem)
_characteristic(sp.mathieu_b, sp.mathieu_sem)
partials(sp.pro_cv, CONSTANT, CONSTANT, UNKNOWN)
partials(sp.obl_cv, CONSTANT, CONSTANT, UNKNOWN)


def _by_its_last(primal, *constants):
    """Functions that are no ufuncs: nobody has the derivative by the parameter that comes last."""

    def by_last(*args):
        def last_pullback(ȳ):
            return (*constants, unknown(primal, "its last argument"))

        return primal(*args), last_pullback

    rrule(primal)(by_last)


for _f in (sp.mathieu_even_coef, sp.mathieu_odd_coef):
    _by_its_last(_f, NoTangent())
for _f in (sp.pro_cv_seq, sp.obl_cv_seq):
    _by_its_last(_f, NoTangent(), NoTangent())
