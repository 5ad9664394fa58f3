"""Fraction and Decimal: construction and methods."""

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from morula.core.cotangents import NoTangent
from morula.core.registry import apply_rule, find_rrule
from morula.testing import check_rrule
from tests.modes import check_modes


def gradient_of(fn, *args, seed=1.0, **kwargs):
    return apply_rule(find_rrule(fn, args, kwargs), args, kwargs)[1](seed)


@pytest.mark.parametrize(
    "args",
    [
        (),
        (1.5,),
        (np.float64(0.5),),
        (Fraction(1, 3),),
        (Decimal("1.5"),),
        (Fraction(1, 3), Fraction(2, 3)),
        (1.5, None),
        ("1/3",),
    ],
)
def test_fractions(args):
    check_rrule(Fraction, *args)


def test_fractions_of_integers():
    seed = Fraction(1)
    assert gradient_of(Fraction, 3, 4, seed=seed) == (0.25, -3 / 16)
    assert gradient_of(Fraction, 3, denominator=4, seed=seed) == (0.25, -3 / 16)
    assert gradient_of(Fraction, numerator=3, denominator=4, seed=seed) == (0.25, -3 / 16)
    assert gradient_of(Fraction, 3, seed=seed) == (1.0,)
    assert gradient_of(Fraction, "1/3", seed=seed) == (NoTangent(),)


def test_fractions_from_other_numbers():
    check_rrule(Fraction.from_float.__func__, Fraction, 1.5)
    check_rrule(Fraction.from_decimal.__func__, Fraction, Decimal("1.5"))


@pytest.mark.parametrize("args", [(), (1.5,), ("1.5",), (Decimal("1.5"),), ((0, (1, 2), -1),)])
def test_decimals(args):
    check_rrule(Decimal, *args)
    assert type(Decimal(*args)) is Decimal


def test_decimals_of_integers():
    assert gradient_of(Decimal, 3, seed=Decimal(2)) == (2.0,)


@pytest.mark.parametrize(
    "name", ["sqrt", "exp", "ln", "log10", "normalize", "copy_abs", "copy_negate"]
)
@pytest.mark.parametrize("x", ["1.7", "0.2"])
def test_methods_of_decimals(name, x):
    check_rrule(getattr(Decimal, name), Decimal(x))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("fma", ("1.5", "2", "3")),
        ("copy_sign", ("1.5", "-2")),
        ("copy_sign", ("-1.5", "-2")),
        ("remainder_near", ("7.9", "2.1")),
        ("max", ("1.5", "-2")),
        ("max", ("-2", "1.5")),
        ("min", ("1.5", "-2")),
        ("max_mag", ("1.5", "-2")),
        ("min_mag", ("1.5", "-2")),
    ],
)
def test_methods_of_several_decimals(name, args):
    check_rrule(getattr(Decimal, name), *map(Decimal, args))


def test_scaleb():
    check_rrule(Decimal.scaleb, Decimal("1.5"), 3)


def test_the_root_of_zero_has_an_infinite_slope():
    assert gradient_of(Decimal.sqrt, Decimal(0), seed=Decimal(1)) == (Decimal("Infinity"),)


@pytest.mark.parametrize("name", ["sqrt", "exp", "ln", "log10"])
def test_second_derivatives(name):
    check_rrule(getattr(Decimal, name), Decimal("1.7"), order=2)


def test_decimals_from_floats():
    check_modes(lambda x: float(Decimal.from_float(x) ** 2 * Decimal(2).sqrt()) * x, 0.7)


MORE_DIGITS = {
    "max": lambda x: Decimal(x).max(Decimal(1)) * Decimal(1).max(Decimal(x)),
    "min": lambda x: Decimal(x).min(Decimal(3)),
    "max_mag": lambda x: Decimal(-x).max_mag(Decimal(1)),
    "min_mag": lambda x: Decimal(-x).min_mag(Decimal(3)),
    "of another context": lambda x: Decimal(x).max(Decimal(1), context=Context(prec=12)),
    "the other one": lambda x: Decimal(x).min(Decimal(1)) * Decimal(x),
    "next numbers": lambda x: Decimal(x).next_plus() * Decimal(x).next_minus(),
    "next number towards": lambda x: Decimal(x).next_toward(Decimal(5)) * Decimal(x).canonical(),
}


@pytest.mark.parametrize("name", MORE_DIGITS)
def test_decimals_with_more_digits_than_the_context_has(name):
    """Decimal(1.3) has some fifty: what is chosen is rounded, and no longer equal to it."""
    check_modes(lambda x: float(MORE_DIGITS[name](x)) * x, 1.3)
