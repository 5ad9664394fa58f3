"""Operators on numbers of every type, in every mixture, against finite differences."""

import itertools
import math
import operator
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from morula.core.cotangents import unthunk
from morula.core.registry import apply_rule, find_rrule, registry
from morula.rules.operators import METHODS, generic_arithmetic_rule
from morula.testing import check_frule, check_rrule

NATIVE = [3, 2.5, -1.5, True, 1.2 - 0.7j]
NUMPY = [
    np.float64(1.7),
    np.float32(2.3),
    np.float16(1.3),
    np.longdouble(2.1),
    np.complex128(1 + 2j),
    np.complex64(1 - 1j),
    np.int8(3),
    np.uint8(5),
    np.bool_(True),
]
FOREIGN = [Fraction(7, 3), Decimal("1.7"), mpmath.mpf("2.2"), mpmath.mpc(1, 1)]
BINARY = ["add", "sub", "mul", "truediv", "mod", "pow"]


def allowed(op, a, b):
    """Does Python allow it, and is it a smooth point?"""
    try:
        y = op(a, b)
    except (TypeError, NotImplementedError, RecursionError):  # the latter of mpmath
        return False
    if isinstance(y, (bool, np.bool_)):
        return False
    if op in (operator.mod, operator.imod) and (complex(a) / complex(b)).real % 1 == 0:
        return False
    if op in (operator.pow, operator.ipow):
        # no logarithm of a negative base, and no overflow of the arguments' own integers
        return not (complex(a).real < 0 and complex(b).imag == 0) and not isinstance(b, np.integer)
    return True


def gradient_of(fn, *args, seed=1.0):
    return apply_rule(find_rrule(fn, args), args, {})[1](seed)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("a", NATIVE, ids=repr)
@pytest.mark.parametrize("b", NATIVE, ids=repr)
def test_binary_operators_of_python_numbers(name, a, b):
    for op in (getattr(operator, name), getattr(operator, f"i{name}")):
        if allowed(op, a, b):
            check_rrule(op, a, b)
    if allowed(getattr(operator, name), a, b):
        check_frule(getattr(operator, name), a, b)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("a", [*NUMPY, *FOREIGN], ids=repr)
def test_binary_operators_of_other_numbers(name, a):
    op = getattr(operator, name)
    for b in (*NATIVE, *NUMPY, *FOREIGN):
        for x, y in ((a, b), (b, a)):
            if allowed(op, x, y):
                check_rrule(op, x, y)
                check_frule(op, x, y)
            in_place = getattr(operator, f"i{name}")
            if allowed(in_place, x, y):
                check_rrule(in_place, x, y)


@pytest.mark.parametrize("op", [operator.neg, operator.pos, operator.abs, abs])
@pytest.mark.parametrize("a", [*NATIVE, *NUMPY[:-1], *FOREIGN], ids=repr)
def test_unary_operators(op, a):
    check_rrule(op, a)
    check_frule(op, a)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("a", "b"), [(1.7, 2.5), (3, 2.5), (2.5, 3), (1 + 2j, 2 - 1j), (2.0, 1j)])
def test_second_derivatives(name, a, b):
    op = getattr(operator, name)
    if allowed(op, a, b):
        check_rrule(op, a, b, order=2)


@pytest.mark.parametrize("op", [operator.floordiv, operator.ifloordiv])
@pytest.mark.parametrize("pair", [(7.5, 2), (7, 2.5), (Fraction(7, 2), 3), (np.float32(7), 2.5)])
def test_floor_division_has_derivative_zero(op, pair):
    check_rrule(op, *pair)
    assert all(not x̄ for x̄ in gradient_of(op, *pair))


# -- powers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 2.0, 3.0, 0.0, -1, -1.5, 0.5])
@pytest.mark.parametrize("x", [2.0, 3, 0.5])
def test_powers(n, x):
    check_rrule(operator.pow, x, n)


@pytest.mark.parametrize("zero", [0, 0.0, np.float64(0), np.float32(0), Fraction(0)])
@pytest.mark.parametrize(("n", "slope"), [(0, 0), (1, 1), (2, 0), (3, 0)])
def test_powers_at_zero(zero, n, slope):
    x̄, n̄ = gradient_of(operator.pow, zero, n)
    assert x̄ == slope
    assert math.isfinite(unthunk(n̄))


@pytest.mark.parametrize(("n", "slope"), [(0.0, 0), (1.0, 1), (2.0, 0), (3.0, 0), (0.5, math.inf)])
def test_float_powers_at_zero(n, slope):
    assert gradient_of(operator.pow, 0.0, n) == (slope, 0.0)


def test_the_exponents_derivative_at_a_zero_base_is_zero():
    assert gradient_of(operator.pow, 0.0, 1.0)[1] == 0.0
    assert gradient_of(operator.pow, 0.0, 1)[1] == 0.0
    assert gradient_of(operator.pow, 0j, 2)[1] == 0.0


@pytest.mark.parametrize("exponent", [2, 2.0, 3, -1, -1.0])
def test_at_a_negative_base_only_the_exponents_derivative_is_nan(exponent):
    a = -1.5
    ā, b̄ = gradient_of(operator.pow, a, exponent)
    assert ā == pytest.approx((((a + 1e-6) ** exponent) - ((a - 1e-6) ** exponent)) / 2e-6)
    assert math.isnan(b̄)


@pytest.mark.parametrize("seed", [1.0, 1j, 0.3 - 2j])
def test_a_negative_base_with_a_complex_power(seed):
    a, b, h = -1.5, 0.7, 1e-6
    ā, b̄ = gradient_of(operator.pow, a, b, seed=seed)
    by_a = ((a + h) ** b - (a - h) ** b) / (2 * h)
    by_b = (a ** (b + h) - a ** (b - h)) / (2 * h)
    assert ā == pytest.approx((seed.conjugate() * by_a).real)
    assert b̄ == pytest.approx((seed.conjugate() * by_b).real)
    assert isinstance(ā, float)
    assert isinstance(b̄, float)


# -- kinks, types, constants -----------------------------------------------------------------------


@pytest.mark.parametrize("zero", [0.0, 0, -0.0, 0j, np.float64(0), Fraction(0), Decimal(0)])
def test_abs_at_zero_has_slope_zero(zero):
    for op in (abs, operator.abs):
        assert gradient_of(op, zero) == (0,)


def test_abs_of_nan_is_nan():
    assert math.isnan(gradient_of(abs, math.nan)[0])


def test_the_gradient_of_a_squared_modulus_ascends():
    (z̄,) = gradient_of(abs, 3 + 4j, seed=2 * abs(3 + 4j))
    assert z̄ == 6 + 8j


@pytest.mark.parametrize("a", [1.5, 2, Fraction(1, 3), Decimal(2), np.float32(2), mpmath.mpf(2)])
@pytest.mark.parametrize("b", [2, Fraction(1, 7)])
def test_cotangents_are_of_the_arguments_type(a, b):
    if isinstance(a, (Decimal, mpmath.mpf)) and isinstance(b, Fraction):
        return
    y = a * b
    ā, b̄ = gradient_of(operator.mul, a, b, seed=type(y)(1))
    assert type(ā) is (float if type(a) is int else type(a))
    assert type(b̄) is (float if type(b) is int else type(b))


def test_rational_gradients_are_exact():
    a, b = Fraction(1, 3), Fraction(2, 7)
    assert gradient_of(operator.truediv, a, b, seed=Fraction(1)) == (Fraction(7, 2), -a / b**2)


@pytest.mark.parametrize("name", ["add", "iadd"])
def test_texts_under_plus(name):
    for a, b in (("a", "b"), (b"a", b"b")):
        check_rrule(getattr(operator, name), a, b)


@pytest.mark.parametrize(("a", "b"), [("a", 3), (3, "a"), (b"a", 2)])
def test_texts_are_repeated(a, b):
    check_rrule(operator.mul, a, b)
    check_rrule(operator.imul, a, b)


def test_texts_are_formatted():
    for argument in (1.5, (1.5, 2), {"a": 1.5}):
        text = "%(a)s" if isinstance(argument, dict) else "%s %s"[: 5 if argument != 1.5 else 2]
        assert find_rrule(operator.mod, (text, argument)) is not None
        assert gradient_of(operator.mod, text, argument) == gradient_of(operator.add, "a", "b")


@pytest.mark.parametrize("name", ["lt", "le", "eq", "ne", "ge", "gt", "is_", "not_", "contains"])
def test_comparisons_are_constant(name):
    assert registry.get(getattr(operator, name)).constant


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift", "iand", "ilshift"])
def test_operators_on_bits_are_constant_for_numbers_only(name):
    op = getattr(operator, name)
    check_rrule(op, 6, 3)
    check_rrule(op, np.int64(6), 3)
    check_rrule(op, 6, np.array([3, 1]))
    assert find_rrule(op, ("a", "b")) is None
    assert not getattr(registry.get(op), "constant", False)


def test_invert():
    check_rrule(operator.invert, 6)
    check_rrule(operator.invert, np.array([True, False]))


# -- the tables for the core -----------------------------------------------------------------------


@pytest.mark.parametrize("op", METHODS)
def test_methods_are_those_that_python_calls(op):
    called = []

    class Probe:
        pass

    def method(name):
        def record(self, *args):
            called.append(name)
            if op is operator.truth:
                return True
            return 1 if op is operator.index else NotImplemented if args else self

        return record

    names = [name for name in METHODS[op] if name]
    for name in names:
        setattr(Probe, name, method(name))
    n_args = 1 if METHODS[op][1:] == (None, None) else 2
    operands = [Probe() if n_args == 1 else type("Left", (Probe,), {})(), Probe()][:n_args]
    try:
        op(*operands)
    except TypeError:
        assert n_args == 2  # all of them declined
    assert called == names


@pytest.mark.parametrize("name", [*BINARY, "floordiv", "neg", "pos", "abs"])
def test_there_is_a_rule_for_any_number(name):
    op = getattr(operator, name)
    rule = generic_arithmetic_rule(op)
    args = (1.7, 2.5)[: rule.__code__.co_argcount]
    y, pullback = rule(*args)
    assert y == op(*args)
    got, expected = map(unthunk, pullback(1.0)), gradient_of(op, *args)
    assert [x̄ or 0.0 for x̄ in got] == pytest.approx([x̄ or 0.0 for x̄ in expected])


def test_no_mixture_of_types_is_ambiguous():
    values = [*NATIVE, *NUMPY, *FOREIGN, np.ones(2), "a"]
    for op, methods in METHODS.items():
        n_args = 1 if methods[1:] == (None, None) else 2
        for args in itertools.product(values, repeat=n_args):
            find_rrule(op, args)
