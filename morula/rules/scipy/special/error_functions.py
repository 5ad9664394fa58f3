"""Rules of the error functions, the normal distribution and the logistic function.

In the tails, where a derivative such as 2 x erfcx(x) - 2/√π is a small difference of large numbers,
the asymptotic series stands for it; ratios of density and distribution go by erfcx.
Abramowitz and Stegun, Handbook of mathematical functions, 7.1, 7.1.23, 26.2.
Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special as sp

from morula.rules.scipy.special.families import elementwise, partials, several_results

ROOT_PI = math.sqrt(math.pi)
ROOT_2_PI = math.sqrt(2 * math.pi)
FAR = 30.0  # from here on the series has all digits


def tail(z):
    """Σ (2n-1)!! / (2 z²)ⁿ, n ≥ 1: what is left of 2 z F(z) - 1, F being Dawson's integral."""
    u = 0.5 / (z * z)
    total = 0.0 * u
    for n in range(8, 0, -1):
        total = (2 * n - 1) * u * (1 + total)
    return total


@elementwise(sp.erf)
def _(y, x):
    return 2 / ROOT_PI * np.exp(-x * x)


@elementwise(sp.erfc)
def _(y, x):
    return -2 / ROOT_PI * np.exp(-x * x)


@elementwise(sp.erfi)
def _(y, x):
    return 2 / ROOT_PI * np.exp(x * x)


@elementwise(sp.erfcx)
def _(y, x):
    far = np.real(x) > FAR
    return np.where(far, 2 / ROOT_PI * tail(1j * x * far + ~far).real, 2 * x * y - 2 / ROOT_PI)


@elementwise(sp.dawsn)
def _(y, x):
    far = np.absolute(np.real(x)) > FAR + np.absolute(np.imag(x))
    return np.where(far, -tail(np.where(far, x, 1.0)), 1 - 2 * x * y)


@elementwise(sp.wofz)
def _(y, x):
    far = (np.absolute(x) > FAR) & (np.imag(x) >= 0)
    return np.where(far, -2j / ROOT_PI * tail(np.where(far, x, 1.0)), 2j / ROOT_PI - 2 * x * y)


@elementwise(sp.erfinv)
def _(y, x):
    return ROOT_PI / 2 * np.exp(y * y)


@elementwise(sp.erfcinv)
def _(y, x):
    return -ROOT_PI / 2 * np.exp(y * y)


@elementwise(sp.ndtr)
def _(y, x):
    return np.exp(-x * x / 2) / ROOT_2_PI


@elementwise(sp.ndtri)
def _(y, x):
    return ROOT_2_PI * np.exp(y * y / 2)


def hazard(y, x):
    """Density over distribution of the normal distribution, where y = log_ndtr(x)."""
    low = np.real(x) < 0
    ratio = math.sqrt(2 / math.pi) / sp.erfcx(np.where(low, -x, 1.0) / math.sqrt(2))
    return np.where(low, ratio, np.exp(np.where(low, 0.0, -x * x / 2 - y)) / ROOT_2_PI)


@elementwise(sp.log_ndtr)
def _(y, x):
    return hazard(y, x)


@elementwise(sp.ndtri_exp)
def _(y, x):
    return 1 / hazard(x, y)


@elementwise(sp.expit)
def _(y, x):
    return y * sp.expit(-x)


@elementwise(sp.log_expit)
def _(y, x):
    return sp.expit(-x)


@elementwise(sp.softplus)
def _(y, x):
    return sp.expit(x)


@elementwise(sp.logit)
def _(y, x):
    return 1 / (x * (1 - x))


@several_results(sp.fresnel)
def _(ys, x):
    angle = math.pi / 2 * x * x
    return np.sin(angle), np.cos(angle)


@several_results(sp.modfresnelp)
def _(ys, x):
    return -np.exp(1j * x * x), -2j * x * ys[1] - np.exp(-0.25j * math.pi) / ROOT_PI


@several_results(sp.modfresnelm)
def _(ys, x):
    return -np.exp(-1j * x * x), 2j * x * ys[1] - np.exp(0.25j * math.pi) / ROOT_PI


partials(
    sp.owens_t,
    lambda y, h, a: -np.exp(-h * h / 2) * sp.erf(a * h / math.sqrt(2)) / (2 * ROOT_2_PI),
    lambda y, h, a: np.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)),
)


def voigt(x, sigma, gamma):
    """The profile by the Faddeeva function; sigma > 0."""
    width = sigma * math.sqrt(2)
    return np.real(sp.wofz((x + 1j * gamma) / width)) / (width * ROOT_PI)
