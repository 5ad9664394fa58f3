"""Functions of mpmath, on its real and complex numbers.

mpmath computes with whole numbers, through which no derivative can be followed. So what reads the
digits of a number has a rule; where there is no formula here, it refuses a cotangent that arrives.
All else in mpmath is ordinary Python over its operators.
Tests: tests/rules/test_multiprecision.py
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

import mpmath

from morula.core.extend import ZERO, is_zero, no_rule, project_to, registry, rrule
from morula.rules.numbers import Anything

SLOPES: dict[str, Any] = {
    "exp": lambda y, x: y,
    "expm1": lambda y, x: y + 1,
    "ln": lambda y, x: 1 / x,
    "sqrt": lambda y, x: 1 / (2 * y),
    "cbrt": lambda y, x: y / (3 * x),
    "sin": lambda y, x: mpmath.cos(x),
    "cos": lambda y, x: -mpmath.sin(x),
    "tan": lambda y, x: 1 + y**2,
    "sinpi": lambda y, x: mpmath.pi * mpmath.cospi(x),
    "cospi": lambda y, x: -mpmath.pi * mpmath.sinpi(x),
    "asin": lambda y, x: 1 / mpmath.sqrt(1 - x**2),
    "acos": lambda y, x: -1 / mpmath.sqrt(1 - x**2),
    "atan": lambda y, x: 1 / (1 + x**2),
    "sinh": lambda y, x: mpmath.cosh(x),
    "cosh": lambda y, x: mpmath.sinh(x),
    "tanh": lambda y, x: 1 - y**2,
    "asinh": lambda y, x: 1 / mpmath.sqrt(1 + x**2),
    "acosh": lambda y, x: 1 / (mpmath.sqrt(x - 1) * mpmath.sqrt(x + 1)),
    "atanh": lambda y, x: 1 / (1 - x**2),
    "gamma": lambda y, x: y * mpmath.digamma(x),
    "rgamma": lambda y, x: -y * mpmath.digamma(x),
    "loggamma": lambda y, x: mpmath.digamma(x),
    "factorial": lambda y, x: y * mpmath.digamma(x + 1),
    "erf": lambda y, x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(x**2)),
    "erfc": lambda y, x: -2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-(x**2)),
    "ei": lambda y, x: mpmath.exp(x) / x,
}
DIGITS = {"_mpf_", "_mpc_", "man_exp"}  # attributes that read the digits of a number


def give_slope_to_method(f: Any, slope: Any) -> None:
    """The rule of a holomorphic function of one number, as a method of mpmath's context."""

    @rrule(f)
    def _(context: Anything, x: Anything, **keywords):
        y = f(context, x, **keywords)

        def slope_pullback(ȳ):
            return ZERO, project_to(x)(ȳ * mpmath.conj(slope(y, x)))

        return y, slope_pullback


@rrule(type(mpmath.mp).convert)
def _(context: Anything, x: Anything, strings: Anything = True):
    """A number as one of mpmath's."""

    def convert_pullback(ȳ):
        return ZERO, project_to(x)(ȳ), ZERO

    return context.convert(x, strings), convert_pullback


@rrule(type(mpmath.mp).atan2)
def _(context: Anything, a: Anything, b: Anything):
    y, square = context.atan2(a, b), a**2 + b**2

    def atan2_pullback(ȳ):
        return ZERO, project_to(a)(ȳ * b / square), project_to(b)(-ȳ * a / square)

    return y, atan2_pullback


@rrule(type(mpmath.mp).hypot)
def _(context: Anything, a: Anything, b: Anything):
    y = context.hypot(a, b)

    def hypot_pullback(ȳ):
        return ZERO, project_to(a)(ȳ * a / y), project_to(b)(ȳ * b / y)

    return y, hypot_pullback


def give_slope(f: Any, slope: Any) -> None:
    """The rule of a holomorphic function of one number."""

    @rrule(f)
    def _(x: Anything, **keywords):
        y = f(x, **keywords)

        def slope_pullback(ȳ):
            return (project_to(x)(ȳ * mpmath.conj(slope(y, x))),)

        return y, slope_pullback


def refuse(f: Any) -> None:
    """The rule of what reads the digits of its arguments: no derivative, but of what it hands on."""

    @rrule(f)
    def _(*args: Anything, **keywords):
        y = f(*args, **keywords)

        def refusing_pullback(ȳ):
            if not is_zero(ȳ) and not any(y is a for a in args):
                raise no_rule(f, args)
            return tuple([ȳ if y is a else ZERO for a in args])

        return y, refusing_pullback


def _register() -> None:
    slopes = {}
    for name, slope in SLOPES.items():
        f = getattr(mpmath, name)
        if isinstance(f, MethodType):
            give_slope_to_method(f.__func__, slope)
        else:
            slopes[id(f)] = slope
    context = type(mpmath.mp)
    functions = [f for f in vars(mpmath).values() if type(f) is FunctionType]
    functions += [getattr(context, name) for name in dir(context)]
    for f in functions:
        if type(f) is not FunctionType or registry.registry.get(f) is not None:
            continue
        if id(f) in slopes:
            give_slope(f, slopes[id(f)])
        elif "_wrap_libmp_function" in f.__qualname__ or DIGITS & {*f.__code__.co_names}:
            refuse(f)


_register()
