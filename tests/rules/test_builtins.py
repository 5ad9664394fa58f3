"""The built-in functions of numbers, their methods and attributes."""

import builtins
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from morula import NoRuleError, gradient, jvp
from morula.core.cotangents import AbstractZero, NoTangent, Tangent, ZeroTangent
from morula.core.registry import apply_rule, find_rrule, registry
from morula.rules.builtins import ATTRIBUTES
from morula.testing import check_frule, check_rrule

REAL = [2, 1.5, np.float32(2), np.int8(3), Fraction(1, 3), Decimal(2), mpmath.mpf(2)]
COMPLEX = [1 - 2j, np.complex64(1 + 2j), np.complex128(2j)]


def gradient_of(fn, *args, seed=1.0, **kwargs):
    return apply_rule(find_rrule(fn, args, kwargs), args, kwargs)[1](seed)


# -- float and complex -----------------------------------------------------------------------------


@pytest.mark.parametrize("x", [*REAL, np.array(1.5), np.array(3)], ids=repr)
def test_float(x):
    check_rrule(float, x)
    check_rrule(float)


@pytest.mark.parametrize("x", [*REAL, *COMPLEX, mpmath.mpc(1, 2), np.array(1.5)], ids=repr)
def test_complex(x):
    check_rrule(complex, x)
    check_rrule(complex, real=x)
    check_rrule(complex)
    if not isinstance(x, mpmath.mpc):
        check_rrule(complex, x, 2.5)
        check_rrule(complex, 2.5, x)
        check_rrule(complex, imag=x)
        check_rrule(complex, real=x, imag=2.5)


def test_complex_of_a_number_and_a_keyword():
    check_rrule(complex, 2.5, imag=1.5)
    check_rrule(complex, 2, imag=1 + 2j)


def test_forward_rules():
    check_frule(float, 2.5)
    check_frule(complex, 2.5)
    check_frule(complex, 2.5, 1.5)
    check_frule(complex, 2.5j, 1j)


def test_texts_have_no_tangent():
    for fn, text in ((float, "1.5"), (complex, "1j"), (float, b"2")):
        check_rrule(fn, text)
        assert gradient_of(fn, text) == (NoTangent(),)


# -- max and min -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", [max, min])
@pytest.mark.parametrize(
    "args",
    [
        (1.0, 2.0),
        (2.0, 1),
        (1, 2),
        (1.5, 2.5, 0.5),
        (3, 2.0, Fraction(1)),
        (Fraction(1), 2.0),
        (Decimal(1), Decimal(2)),
        (np.float32(1), 2.0),
    ],
)
def test_max_and_min(fn, args):
    check_rrule(fn, *args)
    check_frule(fn, *args)


@pytest.mark.parametrize("fn", [max, min])
def test_at_a_tie_the_branch_that_ran_counts(fn):
    zero = ZeroTangent()
    assert gradient_of(fn, 1.0, 1.0) == (1.0, zero)
    assert gradient_of(fn, 1, 1.0) == (1.0, zero)
    assert gradient_of(fn, 1.0, 1.5 - 0.5, 1.0) == (1.0, zero, zero)
    assert gradient_of(fn, 1.0, math.nan) == (1.0, zero)
    assert math.isnan(fn(math.nan, 1.0))
    assert gradient_of(fn, math.nan, 1.0) == (1.0, zero)


def test_the_argument_that_was_not_chosen_has_a_structural_zero():
    assert gradient_of(max, 0.0, -1.0, seed=math.inf)[1] is ZeroTangent()


def test_any_values_can_be_compared():
    assert gradient_of(max, "a", "b") == (ZeroTangent(), NoTangent())
    assert gradient_of(min, (1.0, 2.0), (3.0, 4.0), seed=(1.0, 0.0)) == ((1.0, 0.0), ZeroTangent())


def test_a_key_is_not_for_these_rules():
    assert find_rrule(max, (1.0, 2.0), ("key",)) is None


# -- divmod and pow --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (7.5, 2.0),
        (7, 2.5),
        (-7.5, 2),
        (Fraction(7, 2), Fraction(2, 3)),
        (Decimal(7), Decimal("2.3")),
        (np.float64(7.5), 2.0),
        (mpmath.mpf("7.5"), 2),
    ],
)
def test_divmod(a, b):
    if not isinstance(a, mpmath.mpf):
        check_rrule(divmod, a, b)


def test_divmod_of_a_part():
    assert gradient_of(divmod, 7.5, 2.0, seed=Tangent[tuple]({1: 1.0})) == (1.0, -3.0)
    assert all(not x̄ for x̄ in gradient_of(divmod, 7.5, 2.0, seed=Tangent[tuple]({0: 1.0})))


def test_pow_in_every_spelling():
    check_rrule(pow, 2.0, 3.0)
    check_rrule(pow, 2.0, 3)
    check_frule(pow, 2.0, 3)
    check_rrule(pow, 2.0, exp=3.0)
    check_rrule(pow, base=2.0, exp=3.0)
    check_rrule(pow, 2.0, 3.0, None)
    check_rrule(pow, Fraction(1, 2), exp=3)


def test_pow_with_a_modulus_is_constant():
    for args, kwargs in (((2, 3, 5), {}), ((2, 3), {"mod": 5}), ((2,), {"exp": 3, "mod": 5})):
        check_rrule(pow, *args, **kwargs)
        assert all(isinstance(x̄, AbstractZero) for x̄ in gradient_of(pow, *args, **kwargs))


# -- methods and attributes ------------------------------------------------------------------------

OPERANDS = [
    (float, 2.5, 1.5),
    (float, 2.5, 2),
    (complex, 1 + 2j, 2 - 1j),
    (Fraction, Fraction(7, 3), Fraction(2, 3)),
    (Fraction, Fraction(1, 3), 2.5),
    (Decimal, Decimal("2.5"), Decimal("1.5")),
]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "mod", "pow"])
@pytest.mark.parametrize("reflected", ["", "r"])
@pytest.mark.parametrize(("cls", "x", "other"), OPERANDS)
def test_operator_methods(cls, x, other, name, reflected):
    method = vars(cls).get(f"__{reflected}{name}__")
    if method is not None:
        check_rrule(method, x, other)


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "float", "complex"])
@pytest.mark.parametrize(("cls", "x", "other"), OPERANDS)
def test_methods_without_arguments(cls, x, other, name):
    method = vars(cls).get(f"__{name}__")
    if method is not None:
        check_rrule(method, x)


def test_methods_of_int():
    assert gradient_of(int.__mul__, 3, 4) == (4.0, 3.0)
    assert gradient_of(int.__rsub__, 3, 4) == (-1.0, 1.0)
    assert gradient_of(int.__neg__, 3) == (-1.0,)
    assert gradient_of(int.conjugate, 3) == (1.0,)


def test_a_declined_operation_has_no_derivative():
    y, back = apply_rule(find_rrule(int.__add__, (1, 2.5)), (1, 2.5), {})
    assert y is NotImplemented
    assert back(1.0) == (NoTangent(), NoTangent())


@pytest.mark.parametrize("x", [2.5, 1 - 2j, Decimal("2.5")])
def test_conjugate(x):
    check_rrule(type(x).conjugate, x)


OF_NUMBERS = [key for key in ATTRIBUTES if key[0] in (int, float, complex, Fraction, Decimal)]


@pytest.mark.parametrize("name", ["start", "stop", "step"])
def test_slices_hold_numbers(name):
    assert gradient(lambda x: 3 * getattr(slice(*[x] * 3), name), 2.0) == (3.0,)
    assert gradient(lambda x: 3 * slice(x).stop, 2.0) == (3.0,)


@pytest.mark.parametrize("key", OF_NUMBERS, ids=lambda key: f"{key[0].__name__}.{key[1]}")
def test_attributes(key):
    cls, name = key
    x = {complex: 1 - 2j, Fraction: Fraction(7, 3), Decimal: Decimal("2.5")}.get(cls) or cls(3)
    y, pullback = ATTRIBUTES[key](x)
    assert y == getattr(x, name)
    assert type(y) is type(getattr(x, name))
    (x̄,) = pullback(2.0)
    expected = {"real": 2.0, "imag": 2j if cls is complex else 0}.get(name, 0)
    assert (x̄ or 0) == expected


# -- constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    """all any bool bytes callable chr dir format hasattr hash hex id int isinstance issubclass len
    ord print range repr round str type""".split(),
)
def test_constants(name):
    assert registry.get(getattr(builtins, name)).constant


@pytest.mark.parametrize(
    "method",
    [float.is_integer, float.hex, int.bit_length, Decimal.quantize]
    + [Fraction.limit_denominator, float.__lt__, int.__and__, Fraction.__eq__, float.__round__],
)
def test_constant_methods(method):
    assert registry.get(method).constant


def test_a_ratio_of_integers_is_no_constant():
    def f(a):
        n, d = a.as_integer_ratio()
        return n / d

    with pytest.raises(NoRuleError, match="as_integer_ratio"):
        gradient(f, 1.5)
    with pytest.raises(NoRuleError, match="as_integer_ratio"):
        jvp(f, (1.5,), (1.0,))


@pytest.mark.parametrize("args", list(itertools.product((1.0, 2.0, 3.0), repeat=3)))
def test_the_first_extreme_of_three_gets_the_cotangent(args):
    for choose in (max, min):
        place = args.index(choose(args))
        expected = tuple([1.0 if i == place else 0.0 for i in range(3)])
        assert gradient(lambda a, b, c, choose=choose: choose(a, b, c) * 1.0, *args) == expected


@pytest.mark.parametrize("xs", [[], (), np.zeros(0)])
@pytest.mark.parametrize("extreme", [max, min])
def test_the_largest_of_nothing_is_the_error_of_the_plain_call(extreme, xs, path):
    """It was an IndexError of Morula's, or what the call says of an empty list."""
    with pytest.raises(TypeError, match="expected at least 1 argument, got 0"):
        gradient(lambda xs: extreme(*xs), xs)
    with pytest.raises(TypeError, match="expected at least 1 argument, got 0"):
        jvp(lambda xs: extreme(*xs), (xs,), (xs,))
