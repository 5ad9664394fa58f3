"""Functions of mpmath, on its real and complex numbers.

mpmath computes with whole numbers, through which no derivative can be followed. So what reads the
digits of a number has a rule; where there is no formula here, it refuses a cotangent that arrives.
All else in mpmath is ordinary Python over its operators.
Tests: tests/interop/test_mpmath.py
"""

from __future__ import annotations

from numbers import Number
from types import FunctionType, MethodType
from typing import Any

import mpmath
from mpmath.calculus.differentiation import hsteps

from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    UnsupportedError,
    is_zero,
    no_rule,
    project_to,
    registry,
    rrule,
)
from morula.mixed_mode.structures import reads_whole
from morula.rules.builtins import ATTRIBUTES
from morula.rules.containers import drain
from morula.rules.numbers import Anything, Scalar

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
    **dict.fromkeys(("floor", "ceil", "nint"), lambda y, x: 0),
    "frac": lambda y, x: 1,
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


@rrule(mpmath.mpf)
def _(val: Scalar, **keywords):
    project = project_to(val)
    return mpmath.mpf(val, **keywords), lambda ȳ: (project(ȳ),)


@rrule(mpmath.mpf)
def _(val: str | tuple, **keywords):
    return mpmath.mpf(val, **keywords), lambda ȳ: (NONE,)


@rrule(mpmath.mpc)
def _(real: Scalar, imag: Scalar = 0):
    """A complex number of two: real + i imag."""
    to_real, to_imag = project_to(real), project_to(imag)

    def mpc_pullback(ȳ):
        return to_real(ȳ), to_imag(-1j * ȳ)

    return mpmath.mpc(real, imag), mpc_pullback


@rrule(mpmath.mpc.conjugate)
def _(z: mpmath.mpc):
    return z.conjugate(), lambda ȳ: (mpmath.conj(ȳ),)


def _real_part(z: Any) -> Any:
    return z.real, lambda ȳ: (mpmath.mpc(ȳ, 0),)


def _imaginary_part(z: Any) -> Any:
    return z.imag, lambda ȳ: (mpmath.mpc(0, ȳ),)


def _digits(name: str) -> Any:
    def rule(x: Any) -> Any:
        error = UnsupportedError(
            f"the digits of a number of mpmath's, {name}, have no derivative: register a rule for "
            "the function that reads them"
        )
        return getattr(x, name), lambda ȳ: (NotKnown(lambda: error),)

    return rule


for _name in ("_mpf_", "man_exp"):
    ATTRIBUTES[mpmath.mpf, _name] = _digits(_name)
ATTRIBUTES[mpmath.mpc, "_mpc_"] = _digits("_mpc_")
ATTRIBUTES[mpmath.mpc, "real"] = _real_part
ATTRIBUTES[mpmath.mpc, "imag"] = _imaginary_part


@rrule(type(mpmath.mp).fsum, by_identity=True)
def _(context: Anything, terms: Anything, absolute: Anything = False, squared: Anything = False):
    values, back = drain(terms)
    values = [context.convert(v) for v in values]

    def fsum_pullback(ȳ):
        return ZERO, back([ȳ * part_of_sum(v, absolute, squared) for v in values]), ZERO, ZERO

    return context.fsum(values, absolute, squared), fsum_pullback


def part_of_sum(v: Any, absolute: bool, squared: bool) -> Any:
    """The slope of a term of a sum, of absolute values and of squares."""
    if squared:
        return 2 * v if absolute else 2 * mpmath.conj(v)
    return mpmath.sign(v) if absolute else 1


@rrule(type(mpmath.mp).fdot, by_identity=True)
def _(context: Anything, A: Anything, B: Anything = None, conjugate: Anything = False):
    (first, back), (second, back_of_second) = drain(A), drain(() if B is None else B)
    pairs = first if B is None else list(zip(first, second, strict=False))
    y = context.fdot(pairs, None, conjugate)

    def fdot_pullback(ȳ):
        bars = [parts_of_product(ȳ, a, b, conjugate) for a, b in pairs]
        if B is None:
            return ZERO, back(bars), ZERO, ZERO
        rest = [ZERO] * (len(first) - len(pairs)), [ZERO] * (len(second) - len(pairs))
        ā = back([ā for ā, _ in bars] + rest[0])
        return ZERO, ā, back_of_second([b̄ for _, b̄ in bars] + rest[1]), ZERO

    return y, fdot_pullback


def parts_of_product(ȳ: Any, a: Any, b: Any, conjugate: bool) -> tuple[Any, Any]:
    """The cotangents of a and b in a·b, or in a·b̄."""
    if conjugate:
        return project_to(a)(ȳ * b), project_to(b)(mpmath.conj(ȳ) * a)
    return project_to(a)(ȳ * mpmath.conj(b)), project_to(b)(ȳ * mpmath.conj(a))


reads_whole(type(mpmath.mp).fsum)
reads_whole(type(mpmath.mp).fdot)


@rrule(type(mpmath.mp).sign)
def _(context: Anything, x: Anything):
    """z / |z|; of a real number it is constant."""
    y = context.sign(x)

    def sign_pullback(ȳ):
        if not isinstance(y, mpmath.mpc) or y == 0:
            return ZERO, ZERO
        along = mpmath.re(ȳ * mpmath.conj(y))
        return ZERO, project_to(x)((ȳ - along * y) / abs(x))

    return y, sign_pullback


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
    """The rule of what has no derivative by its arguments, but of those that it hands on."""
    reads_whole(f)

    @rrule(f)
    def _(*args: Anything, **keywords):
        y = f(*args, **keywords)

        def refusing_pullback(ȳ):
            if is_zero(ȳ) or any(y is a for a in args):
                return tuple([ȳ if y is a else ZERO for a in args])
            error = no_rule(f, args)
            if not all(
                isinstance(a, (Number, str, type, type(mpmath.mp), type(None))) for a in args
            ):
                raise error
            unknown = NotKnown(lambda: error)
            return tuple([unknown if isinstance(a, Number) else ZERO for a in args])

        return y, refusing_pullback


def _register() -> None:
    refuse(hsteps)  # by differences, whose cotangents cancel in the precision of floats
    slopes = {}
    for name, slope in SLOPES.items():
        f = getattr(mpmath, name)
        if isinstance(f, MethodType):
            give_slope_to_method(f.__func__, slope)
        else:
            slopes[id(f)] = slope
    context = type(mpmath.mp)
    functions = [f for f in vars(mpmath).values() if type(f) is FunctionType]
    for owner in (context, mpmath.mpf, mpmath.mpc):
        functions += [getattr(owner, name) for name in dir(owner)]
    for f in functions:
        if type(f) is not FunctionType or registry.registry.get(f) is not None:
            continue
        if id(f) in slopes:
            give_slope(f, slopes[id(f)])
        elif "_wrap_libmp_function" in f.__qualname__ or DIGITS & {*f.__code__.co_names}:
            refuse(f)


_register()
