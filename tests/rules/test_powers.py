"""Powers: what is real is compiled as such, though Python's `**` need not be real."""

import itertools
import math

import numpy as np
import pytest

from morula import code_adjoint, grad, gradient, withgradient
from morula.testing import check_gradient
from tests.random_programs import on_path

BASES = (2.0, 0.3, 1.0, 0.0, -0.0, -1.5, math.inf)
EXPONENTS = (1.5, 0.5, 1.0, 2.0, 3.0, 0.0, -0.5, -2.0, 0.3)


def power(a, b):
    return a**b


def of_sum(a, b):
    s = 0.0
    for i in range(3):
        s = s + a * i
    return s**b


def outcome(f, *args):
    try:
        return f(*args)
    except (ArithmeticError, ValueError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize("number", [float, np.float64])
@pytest.mark.parametrize("f", [power, of_sum])
def test_both_paths_agree(f, number):
    pairs = [(number(a), b) for a, b in itertools.product(BASES, EXPONENTS)]
    with np.errstate(all="ignore"):
        with on_path("specialised"):
            found = [outcome(withgradient, f, *pair) for pair in pairs]
        with on_path("general"):
            expected = [outcome(withgradient, f, *pair) for pair in pairs]
    for pair, one, other in zip(pairs, found, expected, strict=True):
        assert repr(one) == repr(other), pair


@pytest.mark.parametrize("i", [0, 1])
@pytest.mark.parametrize("j", [0, 1])
def test_second_derivatives_agree(i, j):
    pairs = list(itertools.product(BASES[:-1], EXPONENTS))
    with on_path("specialised"):
        found = [outcome(grad(grad(power, i), j), *pair) for pair in pairs]
    with on_path("general"):
        expected = [outcome(grad(grad(power, i), j), *pair) for pair in pairs]
    for pair, one, other in zip(pairs, found, expected, strict=True):
        if isinstance(one, float) and isinstance(other, float):
            np.testing.assert_allclose(one, other, rtol=1e-14, err_msg=str(pair))
        else:
            assert one is other, pair


@pytest.mark.parametrize("b", [1.5, 0.3, -0.7, 2.0])
def test_slopes(b):
    check_gradient(power, 1.7, b)
    check_gradient(of_sum, 1.7, b)
    check_gradient(lambda x: 2**x + 0.5**x + math.pow(1.3, x), b)
    check_gradient(lambda p: np.sum(p ** p[0] + 2.0**p + p[1] ** p), np.array([1.3, 0.7]))


def test_no_call_is_left_to_be_found_out():
    def f(x, p):
        s = 0.0
        for i in range(3):
            s = s + (x + i) ** 1.5 + 2.0 ** p[0] + p[1] ** x
        return s**0.5

    gradient(f, 1.1, np.array([0.3, 0.7]))
    assert "call_from_program" not in str(code_adjoint(f, 1.1, np.array([0.3, 0.7])))


def test_a_power_that_is_complex():
    def f(x):
        return abs(x**0.5) ** 2

    assert gradient(f, 4.0) == (1.0,)
    assert gradient(f, -4.0) == (pytest.approx(-1.0),)
    assert gradient(f, -9.0) == (pytest.approx(-1.0),)
    assert gradient(f, 4.0) == (1.0,)


def test_lists_from_outside_stay_known():
    def f(xs):
        total = 0.0
        for a, b in zip(xs[:-1], xs[1:], strict=True):  # noqa: RUF007
            total += (b - a) ** 2
        return total

    assert gradient(f, [1.0, 2.0, 4.0]) == ([-2.0, -2.0, 4.0],)
    assert "call_from_program" not in str(code_adjoint(f, [1.0, 2.0, 4.0]))
