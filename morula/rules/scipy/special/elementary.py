"""Rules of the elementary functions of scipy.special: logarithms, entropies, Box and Cox, losses.

Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special as sp

from morula.rules.arrays.broadcasting import quotient
from morula.rules.arrays.outs import constant_but_for_out
from morula.rules.scipy.special.families import CONSTANT, elementwise, partials

LOG10 = math.log(10)
DEGREE = math.pi / 180


@elementwise(sp.cbrt)
def _(y, x):
    return 1 / (3 * y * y)


@elementwise(sp.exp2)
def _(y, x):
    return y * math.log(2)


@elementwise(sp.exp10)
def _(y, x):
    return y * LOG10


@elementwise(sp.expm1)
def _(y, x):
    return np.exp(x)


@elementwise(sp.log1p)
def _(y, x):
    return 1 / (1 + x)


@elementwise(sp.cosm1)
def _(y, x):
    return -np.sin(x)


@elementwise(sp.sindg)
def _(y, x):
    return DEGREE * sp.cosdg(x)


@elementwise(sp.cosdg)
def _(y, x):
    return -DEGREE * sp.sindg(x)


@elementwise(sp.tandg)
def _(y, x):
    return DEGREE * (1 + y * y)


@elementwise(sp.cotdg)
def _(y, x):
    return -DEGREE * (1 + y * y)


@elementwise(sp.entr)
def _(y, x):
    return -np.log(x) - 1


@elementwise(sp.exprel)
def _(y, x):
    return slope_of_exprel(y, x)


def slope_of_exprel(y, x):
    """(eˣ - y) / x, and near 0 by ₁F₁."""
    near = np.absolute(x) < 1
    far = np.where(near, 1.0, x)
    return np.where(near, sp.hyp1f1(2, 3, np.where(near, x, 0.0)) / 2, (np.exp(far) - y) / far)


def slope_of_logrel(u):
    """The derivative of log(1 + u) / u, near 0 by ₂F₁."""
    near = np.absolute(u) < 0.5
    far = np.where(near, 1.0, u)
    inside = -sp.hyp2f1(2, 2, 3, -np.where(near, u, 0.0)) / 2
    return np.where(near, inside, (1 / (1 + far) - np.log1p(far) / far) / far)


partials(sp.xlogy, lambda y, a, b: np.log(b), lambda y, a, b: np.where(a == 0, 0.0, a / b))
partials(
    sp.xlog1py, lambda y, a, b: np.log1p(b), lambda y, a, b: np.where(a == 0, 0.0, a / (1 + b))
)
partials(
    sp.powm1,
    lambda y, a, b: b * np.power(a, b - 1.0),
    lambda y, a, b: (y + 1) * np.log(a),
)
partials(sp.kl_div, lambda y, a, b: np.log(a / b), lambda y, a, b: 1 - a / b)
partials(sp.rel_entr, lambda y, a, b: np.log(a / b) + 1, lambda y, a, b: -a / b)
partials(
    sp.huber,
    lambda y, d, r: np.maximum(np.absolute(r) - d, 0.0),
    lambda y, d, r: np.clip(r, -d, d),
)
partials(
    sp.pseudo_huber,
    lambda y, d, r: slope_by_width(y, d, r),
    lambda y, d, r: r / np.hypot(1, quotient(r, d)) * (d != 0),
)
partials(
    sp.radian,
    lambda y, d, m, s: DEGREE,
    lambda y, d, m, s: DEGREE / 60,
    lambda y, d, m, s: DEGREE / 3600,
)


def slope_by_width(y, d, r):
    """∂/∂δ of δ² (√(1 + (r/δ)²) - 1)."""
    t = quotient(r, d)
    return d * (np.hypot(1, t) - 1) ** 2 / np.hypot(1, t)


def _box_cox(primal, log, base):
    partials(
        primal,
        lambda y, x, p: np.power(base(x), p - 1.0),
        lambda y, x, p: log(x) ** 2 * slope_of_exprel(sp.exprel(p * log(x)), p * log(x)),
    )


_box_cox(sp.boxcox, np.log, lambda x: x)
_box_cox(sp.boxcox1p, np.log1p, lambda x: 1 + x)
partials(
    sp.inv_boxcox,
    lambda y, z, p: y / (1 + p * z),
    lambda y, z, p: y * z * z * slope_of_logrel(p * z),
)
partials(
    sp.inv_boxcox1p,
    lambda y, z, p: (1 + y) / (1 + p * z),
    lambda y, z, p: (1 + y) * z * z * slope_of_logrel(p * z),
)


partials(
    sp.diric,
    lambda y, x, n: slope_of_dirichlet(y, x, n),
    CONSTANT,
)


def slope_of_dirichlet(y, x, n):
    """½ (cos(n x/2) - y cos(x/2)) / sin(x/2); 0 at its extremes."""
    s = np.sin(x / 2)
    at = np.absolute(s) < 1e-9
    return np.where(at, 0.0, (np.cos(n * x / 2) - y * np.cos(x / 2)) / (2 * np.where(at, 1.0, s)))


constant_but_for_out(sp.round)
