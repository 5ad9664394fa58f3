"""What the core is told about numbers and constants."""

import math
import sys
import types
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from morula.core.cotangents import NoTangent, Thunk, ZeroTangent, project_to, scale
from morula.core.traits import (
    Known,
    describe,
    has_tangent,
    materialise,
    sample,
    typed_zero,
    unit,
)
from morula.rules.numbers import is_number

third = Fraction(1, 3)
NUMBERS = [2, 2.5, 1 - 2j, third, Decimal("2.5"), mpmath.mpf("2.5"), mpmath.mpc(1, 2)]
CONSTANTS = [True, "a", b"a", None, ..., NotImplemented, range(3), int, math]


def own(x):
    """The gradient of `x` without mutable objects around."""
    return lambda x̄: materialise(x, x̄, lambda _: None)


@pytest.mark.parametrize("x", NUMBERS, ids=repr)
def test_numbers(x):
    assert is_number(x)
    assert has_tangent(type(x))


@pytest.mark.parametrize("x", [np.float32(1), np.int8(1), np.complex64(1), np.bool_(True), True])
def test_scalars_of_numpy_and_truth_values_are_numbers(x):
    assert is_number(x)


@pytest.mark.parametrize("x", [np.array(1.0), np.ones(1), "1", None, [1.0]])
def test_arrays_and_others_are_not(x):
    assert not is_number(x)


# -- projection ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "x̄", "expected"),
    [
        (1.0, 2 + 3j, 2.0),
        (1.0, 2, 2.0),
        (1.0, np.float32(2), 2.0),
        (1.0, np.complex128(2 + 3j), 2.0),
        (1.0, np.array(2 + 3j), 2.0),
        (1.0, third, float(third)),
        (1.0, Decimal("0.5"), 0.5),
        (1.0, mpmath.mpf("0.5"), 0.5),
        (1.0, mpmath.mpc(1, 2), 1.0),
        (3, 2 + 3j, 2.0),
        (3, Decimal("0.5"), 0.5),
        (1j, 2.0, 2 + 0j),
        (1j, np.complex64(2 + 3j), 2 + 3j),
        (1j, np.array(2j), 2j),
        (third, 0.5, Fraction(1, 2)),
        (third, 0.5 + 1j, Fraction(1, 2)),
        (third, Decimal("0.5"), Fraction(1, 2)),
        (Decimal(1), 0.5, Decimal("0.5")),
        (Decimal(1), Fraction(1, 4), Decimal("0.25")),
        (mpmath.mpf(1), 0.5, mpmath.mpf("0.5")),
        (mpmath.mpf(1), mpmath.mpc(1, 2), mpmath.mpf(1)),
        (mpmath.mpf(1), Fraction(1, 4), mpmath.mpf("0.25")),
        (mpmath.mpc(1), 1 + 2j, mpmath.mpc(1, 2)),
    ],
)
def test_projection(x, x̄, expected):
    projected = project_to(x)(x̄)
    assert projected == expected
    assert type(projected) is type(expected)


@pytest.mark.parametrize("x", NUMBERS, ids=repr)
def test_zeros_pass_and_thunks_wait(x):
    assert project_to(x)(ZeroTangent()) is ZeroTangent()
    thunk = project_to(x)(Thunk(lambda: 2))
    assert type(thunk) is Thunk
    assert thunk.force() == 2


@pytest.mark.parametrize("x", CONSTANTS, ids=repr)
def test_constants_have_no_tangents(x):
    assert not has_tangent(type(x))
    assert project_to(x)(1.0) is NoTangent()
    assert own(x)(ZeroTangent()) is None
    assert unit(x) is None


def test_a_cotangent_of_the_wrong_shape_is_an_error():
    for x in (1.0, 1, 1j):
        with pytest.raises(ValueError, match=r"shape \(3,\)"):
            project_to(x)(np.ones(3))


def test_abstract_values_of_other_libraries_are_left_alone():
    class Traced:
        pass

    traced = Traced()
    assert project_to(1.0)(traced) is traced
    assert project_to(1j)(traced) is traced


def test_an_infinite_cotangent_of_a_fraction_stays_a_float():
    assert project_to(third)(math.inf) == math.inf


# -- units, zeros, gradients -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "one"),
    [
        (2, 1.0),
        (2.5, 1.0),
        (third, Fraction(1)),
        (Decimal(2), Decimal(1)),
        (mpmath.mpf(2), mpmath.mpf(1)),
    ],
)
def test_the_unit(y, one):
    assert unit(y) == one
    assert type(unit(y)) is type(one)


@pytest.mark.parametrize("y", [1j, True, mpmath.mpc(1), "a", None, np.complex64(1)])
def test_what_is_not_one_real_number_has_no_unit(y):
    assert unit(y) is None


@pytest.mark.parametrize(
    ("x", "zero"),
    [
        (2, 0.0),
        (2.5, 0.0),
        (1j, 0j),
        (third, Fraction(0)),
        (Decimal(2), Decimal(0)),
        (mpmath.mpf(2), mpmath.mpf(0)),
    ],
)
def test_gradients_are_of_the_numbers_own_kind(x, zero):
    for nothing in (ZeroTangent(), NoTangent(), Thunk(ZeroTangent)):
        assert own(x)(nothing) == zero
        assert type(own(x)(nothing)) is type(zero)
    assert own(x)(Thunk(lambda: 2)) == 2
    assert type(own(x)(2)) is type(zero)


@pytest.mark.parametrize("t", [int, float, complex, Fraction, Decimal])
def test_typed_zeros_start_sums(t):
    assert typed_zero(t) + t(1) == 1
    assert not typed_zero(t)


@pytest.mark.parametrize("x̄", [third, Decimal("0.5")])
@pytest.mark.parametrize("factor", [2, 0.5])
def test_exact_cotangents_take_factors(x̄, factor):
    assert scale(x̄, factor) == x̄ * type(x̄)(factor)


# -- what is known before the program runs ---------------------------------------------------------


@pytest.mark.parametrize(
    "x",
    [1, 1.5, 1j, True, "a", b"a", None, ..., third, Decimal(2), slice(2), range(3), math.sin, int],
)
def test_samples_are_of_the_type(x):
    known = describe(x)
    hash(known)
    assert describe(sample(known)) == known


def test_classes_modules_and_functions_are_told_apart():
    assert describe(int) != describe(float)
    assert describe(math) != describe(sys)
    assert describe(math.sin) != describe(math.cos)


def test_bound_methods_are_not_kept():
    assert describe([].append) == describe([].append) == Known(types.BuiltinFunctionType)
    with pytest.raises(KeyError):
        sample(describe([].append))


def test_constants_that_are_made_of_no_number_have_cotangents():
    pi = mpmath.mp.pi
    assert project_to(pi)(2.5) == mpmath.mpf(2.5)
