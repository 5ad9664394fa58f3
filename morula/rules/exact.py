"""Rules of Fraction and Decimal beside their operators: construction, roots, exp and logarithms.

Their cotangents are of their own type, so gradients of rational functions are exact rationals.
What rounds a Decimal to given digits is constant. Methods of Decimal take a context, last.
Tests: tests/rules/test_exact.py
"""

from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

from morula.core.extend import (
    NoTangent,
    ZeroTangent,
    find_rrule,
    non_differentiable,
    project_to,
    rrule,
)
from morula.rules.mathematics import filled
from morula.rules.numbers import Anything, Digits, Numeric, Scalar

# -- Fraction --------------------------------------------------------------------------------------


# Every way to call it: the code of Fraction itself goes through integers and loses the gradient.


@rrule(Fraction)
def _(numerator: Numeric, denominator: Anything):
    y = Fraction(numerator, denominator)

    def fraction_pullback(ȳ):
        if denominator is None:
            return filled(numerator, ȳ), NoTangent()
        n̄ = ȳ / denominator
        return filled(numerator, n̄), project_to(denominator)(-n̄ * y)

    return y, fraction_pullback


@rrule(Fraction)
def _(numerator: Numeric, *, denominator=None):
    return fraction(numerator, denominator)


@rrule(Fraction)
def _(*, numerator=0, denominator=None):
    return fraction(numerator, denominator)


@rrule(Fraction)
def _(numerator: str):
    def fraction_pullback(ȳ):
        return (NoTangent(),)

    return Fraction(numerator), fraction_pullback


def fraction(numerator: Any, denominator: Any) -> Any:
    """The rule of `Fraction(numerator, denominator)`."""
    rule = find_rrule(Fraction, (numerator, denominator))
    if rule is None:  # text
        return Fraction(numerator, denominator), lambda ȳ: (NoTangent(), NoTangent())
    return rule.function(numerator, denominator)


def from_number(method: Any) -> None:
    """The rule of `Fraction.from_float` and its like: exact, so the derivative is 1."""

    @rrule(method)
    def _(cls: type, x: Scalar):
        def from_number_pullback(ȳ):
            return NoTangent(), project_to(x)(ȳ)

        return method(cls, x), from_number_pullback


for _name in ("from_float", "from_decimal", "from_number"):  # the last one from CPython 3.14
    if hasattr(Fraction, _name):
        from_number(getattr(Fraction, _name).__func__)
for _type in (float, complex, Decimal):
    if "from_number" in vars(_type):  # likewise
        from_number(vars(_type)["from_number"])
del _name, _type


# -- Decimal ---------------------------------------------------------------------------------------


@rrule(Decimal.__dict__["from_float"])
def _(cls: type[Decimal], f: Scalar):
    project = project_to(f)
    return cls.from_float(f), lambda ȳ: (NoTangent(), project(ȳ))


@rrule(Decimal)
def _():
    def decimal_pullback(ȳ):
        return ()

    return Decimal(), decimal_pullback


@rrule(Decimal)
def _(value: Scalar, context: Anything = None):
    def decimal_pullback(ȳ):
        return project_to(value)(ȳ), NoTangent()

    return Decimal(value, context), decimal_pullback


@rrule(Decimal)
def _(value: Digits, context: Anything = None):
    def decimal_pullback(ȳ):
        return NoTangent(), NoTangent()

    return Decimal(value, context), decimal_pullback


def decimal_function(method: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a method of Decimal without further arguments by its derivative, from y and x."""

    def register(derivative: Callable[..., Any]) -> Callable[..., Any]:
        @rrule(method)
        def _(x: Decimal, context: Anything = None):
            y = method(x, context)

            def decimal_pullback(ȳ):
                return ȳ * derivative(y, x), NoTangent()

            return y, decimal_pullback

        return derivative

    return register


@decimal_function(Decimal.sqrt)
def _(y, x):
    return Decimal("0.5") / y if y else Decimal("Infinity")


@decimal_function(Decimal.exp)
def _(y, x):
    return y


@decimal_function(Decimal.ln)
def _(y, x):
    return 1 / x


@decimal_function(Decimal.log10)
def _(y, x):
    return 1 / (x * Decimal(10).ln())


@decimal_function(Decimal.normalize)
def _(y, x):
    return 1


@rrule(Decimal.fma)
def _(x: Decimal, other: Scalar, third: Scalar, context: Anything = None):
    def fma_pullback(ȳ):
        return ȳ * other, project_to(other)(ȳ * x), project_to(third)(ȳ), NoTangent()

    return x.fma(other, third, context), fma_pullback


def sign(x: Decimal) -> int:
    """The sign of a Decimal, 0 of zero."""
    return (x > 0) - (x < 0)


@rrule(Decimal.copy_abs)
def _(x: Decimal):
    def copy_abs_pullback(ȳ):
        return (ȳ * sign(x),)

    return x.copy_abs(), copy_abs_pullback


@rrule(Decimal.copy_negate)
def _(x: Decimal):
    def copy_negate_pullback(ȳ):
        return (-ȳ,)

    return x.copy_negate(), copy_negate_pullback


@rrule(Decimal.copy_sign)
def _(x: Decimal, other: Scalar, context: Anything = None):
    y = x.copy_sign(other, context)

    def copy_sign_pullback(ȳ):
        return ȳ * (sign(x) * sign(y)), ZeroTangent(), NoTangent()

    return y, copy_sign_pullback


@rrule(Decimal.remainder_near)
def _(x: Decimal, other: Scalar, context: Anything = None):
    y = x.remainder_near(other, context)

    def remainder_near_pullback(ȳ):
        return ȳ, project_to(other)(ȳ * ((y - x) / other)), NoTangent()

    return y, remainder_near_pullback


@rrule(Decimal.scaleb)
def _(x: Decimal, other: Scalar, context: Anything = None):
    def scaleb_pullback(ȳ):
        return ȳ.scaleb(other), NoTangent(), NoTangent()

    return x.scaleb(other, context), scaleb_pullback


def is_taken(y: Decimal, x: Decimal, context: Any) -> bool:
    """Is y what was made of x? It has the precision of the context, which may be less."""
    return y == (context or getcontext()).plus(x)


non_differentiable(is_taken)


def neighbour(method: Any) -> None:
    """The rule of the next number: as far as derivatives go, that is the number itself."""

    @rrule(method)
    def _(x: Decimal, context: Anything = None):
        def neighbour_pullback(ȳ):
            return ȳ, NoTangent()

        return method(x, context), neighbour_pullback


neighbour(Decimal.next_plus)
neighbour(Decimal.next_minus)


@rrule(Decimal.next_toward)
def _(x: Decimal, other: Scalar, context: Anything = None):
    def next_toward_pullback(ȳ):
        return ȳ, ZeroTangent(), NoTangent()

    return x.next_toward(other, context), next_toward_pullback


@rrule(Decimal.canonical)
def _(x: Decimal):
    def canonical_pullback(ȳ):
        return (ȳ,)

    return x.canonical(), canonical_pullback


def selection(method: Any) -> None:
    """The rule of `x.max(other)` and its like: ȳ goes to the one whose value was taken."""

    @rrule(method)
    def _(x: Decimal, other: Scalar, context: Anything = None):
        y = method(x, other, context)
        first = is_taken(y, x, context)

        def selection_pullback(ȳ):
            return (
                ȳ if first else ZeroTangent(),
                ZeroTangent() if first else project_to(other)(ȳ),
                NoTangent(),
            )

        return y, selection_pullback


for _method in (Decimal.max, Decimal.min, Decimal.max_mag, Decimal.min_mag):
    selection(_method)
del _method
