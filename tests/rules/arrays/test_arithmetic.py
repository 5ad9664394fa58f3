"""The operators and their ufuncs: every combination of arrays and scalars, against differences."""

import operator

import numpy as np
import pytest

from morula import grad
from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_rrule

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]
UFUNCS = [np.add, np.subtract, np.multiply, np.true_divide]
SHAPES = [
    ((3, 2), (3, 2)),
    ((3, 2), (2,)),
    ((1, 2), (3, 1)),
    ((2,), (4, 1, 2)),
    ((0, 2), (2,)),
    ((), (3,)),
]


def draw(rng, shape, dtype):
    x = rng.uniform(0.5, 2.0, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(x).astype(dtype)


@pytest.mark.parametrize("fn", OPERATORS + UFUNCS)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f8", "c16"), ("c16", "c16"), ("f4", "f8")])
def test_two_arrays(rng, fn, shapes, dtypes):
    check_rrule(fn, draw(rng, shapes[0], dtypes[0]), draw(rng, shapes[1], dtypes[1]), order=2)


@pytest.mark.parametrize("fn", [*OPERATORS, *UFUNCS, operator.pow, np.power])
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4", "i8"])
@pytest.mark.parametrize(
    "scalar", [1.5, 2, 0.5 + 0.5j, np.float32(1.5), np.float64(1.5), np.complex64(1j + 1)]
)
def test_array_and_scalar(rng, fn, dtype, scalar):
    x = draw(rng, (2, 3), dtype) + (1 if dtype == "i8" else 0)
    if fn in (operator.pow, np.power) and isinstance(scalar, int) and dtype == "i8":
        check_rrule(fn, x, scalar)
        return
    check_rrule(fn, x, scalar)
    check_rrule(fn, scalar, x)


@pytest.mark.parametrize("fn", UFUNCS + [np.power, np.float_power, np.remainder, np.divmod])
@pytest.mark.parametrize("scalars", [(1.7, 0.6), (np.float32(1.7), 0.6), (np.float64(1.7), 2)])
def test_ufuncs_of_two_numbers(fn, scalars):
    check_rrule(fn, *scalars)


@pytest.mark.parametrize("fn", [operator.pow, pow, np.power, np.float_power])
@pytest.mark.parametrize("n", [0, 1, 2, 3, -1, 0.0, 0.5, 2.0, -1.5, 2.5])
def test_powers(rng, fn, n):
    check_rrule(fn, draw(rng, (2, 2), "f8"), n, order=1 if n == 0 else 2)
    check_rrule(fn, draw(rng, (2, 2), "c16"), n)
    check_rrule(fn, draw(rng, 3, "f4"), n)


@pytest.mark.parametrize("fn", [operator.pow, np.power, np.float_power])
def test_powers_of_arrays(rng, fn):
    check_rrule(fn, draw(rng, (2, 1), "f8"), draw(rng, 3, "f8"), order=2)
    check_rrule(fn, draw(rng, (2, 1), "c16"), draw(rng, 3, "f8"))
    check_rrule(fn, 2.0, draw(rng, 3, "f8"), order=2)


@pytest.mark.parametrize("fn", [operator.mod, np.remainder, np.fmod, np.divmod, divmod])
def test_remainders(rng, fn):
    a = np.array([5.3, -4.1, 0.7])
    check_rrule(fn, a, np.array([[2.0], [-1.5]]))
    check_rrule(fn, a, 2)
    if fn is not divmod:
        check_rrule(fn, 7.3, np.array([2.0, -1.5]))


@pytest.mark.parametrize("fn", [operator.neg, operator.pos, operator.abs, abs])
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4", "i8"])
def test_one_argument(rng, fn, dtype):
    check_rrule(fn, draw(rng, (3, 2), dtype) - 1.2 if dtype != "i8" else np.array([1, -2]))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 0.0, 2.0])
def test_powers_at_zero_have_no_nan(n):
    x = np.array([0.0, 2.0])
    _, back = apply_rule(find_rrule(operator.pow, (x, n)), (x, n), {})
    expected = {0: [0, 0], 1: [1, 1], 2: [0, 4], 3: [0, 12]}[int(n)]
    assert back(np.ones(2))[0].tolist() == expected


def test_exponent_at_zero_base_and_negative_base():
    a, b = np.array([0.0, -2.0]), np.array([1.0, 2.0])
    ā, b̄ = apply_rule(find_rrule(operator.pow, (a, b)), (a, b), {})[1](np.ones(2))
    assert ā.tolist() == [1.0, -4.0]
    assert b̄[0] == 0.0
    assert np.isnan(b̄[1])


def test_powers_do_not_warn(recwarn):
    x = np.array([-1.0, 0.0, 2.0])
    apply_rule(find_rrule(operator.pow, (x, 2)), (x, 2), {})[1](np.ones(3))
    assert not recwarn.list


def test_a_float_cotangent_of_an_array_without_axes():
    x = np.array(3.0)
    _, back = apply_rule(find_rrule(operator.mul, (x, x)), (x, x), {})
    assert [g.tolist() for g in back(2.0)] == [6.0, 6.0]


@pytest.mark.parametrize("fn", [operator.iadd, operator.imul, operator.ipow])
def test_in_place_on_a_number_is_no_mutation(rng, fn):
    check_rrule(fn, 1.5, draw(rng, 3, "f8"))


def arrays_of_arrays(x):
    o = np.empty(2, object)
    o[0], o[1] = x, x[:2] * x[2]
    return o


@pytest.mark.parametrize(
    "f",
    [
        lambda x: arrays_of_arrays(x) * x[0],
        lambda x: x[0] / (arrays_of_arrays(x) - 3.0 * x[1]),
        lambda x: arrays_of_arrays(x) ** 2 + arrays_of_arrays(x * x),
        lambda x: np.multiply(arrays_of_arrays(x), x[:2]) * np.array([2.0, 3.0]),
    ],
)
def test_arrays_of_arrays_by_numbers_and_arrays(path, f):
    def loss(x):
        y = f(x)
        return (y[0] * y[0]).sum() + y[1].sum()

    x, v, h = np.array([0.7, 1.3, -0.4]), np.array([1.0, -2.0, 0.5]), 1e-6
    expected = (loss(x + h * v) - loss(x - h * v)) / (2 * h)
    assert grad(loss)(x) @ v == pytest.approx(expected, rel=1e-6)
