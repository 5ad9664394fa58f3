"""Numbers of gmpy2: conversions and holomorphic functions of one number.

Their operators are those of numbers.

Tests: tests/interop/test_gmpy2.py
"""

from __future__ import annotations

from typing import Any

import gmpy2

from morula.core.extend import NONE, project_to, rrule
from morula.rules.numbers import Anything, Scalar
from morula.rules.operators import conjugate

SLOPES: dict[str, Any] = {
    "exp": lambda y, x: y,
    "expm1": lambda y, x: y + 1,
    "log": lambda y, x: 1 / x,
    "log2": lambda y, x: 1 / (x * gmpy2.log(2)),
    "log10": lambda y, x: 1 / (x * gmpy2.log(10)),
    "log1p": lambda y, x: 1 / (1 + x),
    "sqrt": lambda y, x: 1 / (2 * y),
    "cbrt": lambda y, x: y / (3 * x),
    "square": lambda y, x: 2 * x,
    "sin": lambda y, x: gmpy2.cos(x),
    "cos": lambda y, x: -gmpy2.sin(x),
    "tan": lambda y, x: 1 + y * y,
    "asin": lambda y, x: 1 / gmpy2.sqrt(1 - x * x),
    "acos": lambda y, x: -1 / gmpy2.sqrt(1 - x * x),
    "atan": lambda y, x: 1 / (1 + x * x),
    "sinh": lambda y, x: gmpy2.cosh(x),
    "cosh": lambda y, x: gmpy2.sinh(x),
    "tanh": lambda y, x: 1 - y * y,
    "asinh": lambda y, x: 1 / gmpy2.sqrt(x * x + 1),
    "acosh": lambda y, x: 1 / gmpy2.sqrt(x * x - 1),
    "atanh": lambda y, x: 1 / (1 - x * x),
    "gamma": lambda y, x: y * gmpy2.digamma(x),
    "erf": lambda y, x: 2 / gmpy2.sqrt(gmpy2.const_pi()) * gmpy2.exp(-x * x),
    "erfc": lambda y, x: -2 / gmpy2.sqrt(gmpy2.const_pi()) * gmpy2.exp(-x * x),
    **dict.fromkeys(("floor", "ceil", "trunc"), lambda y, x: 0),
}


@rrule(gmpy2.mpfr)
def _(n: Scalar, precision: Anything = 0, context: Anything = None):
    project = project_to(n)
    y = gmpy2.mpfr(n, precision) if context is None else gmpy2.mpfr(n, precision, context)
    return y, lambda ȳ: (project(ȳ), NONE, NONE)


@rrule(gmpy2.mpq)
def _(n: Scalar):
    project = project_to(n)
    return gmpy2.mpq(n), lambda ȳ: (project(ȳ),)


def _conjugates(kind: type) -> None:
    @rrule(kind.conjugate)  # type: ignore[attr-defined]
    def _(z: Scalar):
        return z.conjugate(), lambda ȳ: (conjugate(ȳ),)


for _kind in (gmpy2.mpz, gmpy2.mpq, gmpy2.mpfr, gmpy2.mpc):
    _conjugates(_kind)


def _has_slope(f: Any, slope: Any) -> None:
    @rrule(f)
    def _(x: Scalar):
        y, project = f(x), project_to(x)

        def slope_pullback(ȳ):
            return (project(ȳ * conjugate(slope(y, x))),)

        return y, slope_pullback


for _name, _slope in SLOPES.items():
    if hasattr(gmpy2, _name):
        _has_slope(getattr(gmpy2, _name), _slope)
