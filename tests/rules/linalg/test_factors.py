"""cholesky and qr against differences."""

import numpy as np
import pytest

from morula import DifferentiationError, gradient
from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw, positive

DTYPES = ["f8", "c16", "f4"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2), (0, 2, 2)])
def test_cholesky(rng, dtype, upper, shape):
    a = positive(rng, shape, dtype)
    check_rrule(np.linalg.cholesky, a, upper=upper, order=2 if dtype == "f8" else 1)


def test_cholesky_reads_one_triangle():
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    _, back = apply_rule(find_rrule(np.linalg.cholesky, (a,)), (a,), {})
    assert back(np.ones((2, 2)))[0][0, 1] == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (3, 1)])
def test_qr(rng, dtype, mode, shape):
    order = 2 if dtype == "f8" and len(shape) == 2 else 1
    check_rrule(np.linalg.qr, draw(rng, shape, dtype), mode, order=order)


@pytest.mark.parametrize("mode", ["reduced", "complete", "raw"])
def test_qr_of_a_triangular_matrix(mode):
    """Where nothing has to be reflected, LAPACK does nothing; the last column never is."""
    a = np.array([[1.0, 2.0], [0.0, 3.0]])
    check_rrule(np.linalg.qr, np.array([[1.0, 2.0], [1e-3, 3.0]]), mode)
    if mode == "reduced":
        with np.errstate(all="ignore"):
            check_gradient(lambda a: np.linalg.qr(a)[1][1, 1] ** 2, a)


def test_fields_of_qr(rng):
    a = draw(rng, (3, 2), "f8")
    check_gradient(lambda a: np.linalg.qr(a).R[0, 1] + np.linalg.qr(a).Q[1, 0], a)
    check_gradient(lambda a: np.abs(np.linalg.det(np.linalg.qr(a, "r"))), draw(rng, (2, 2), "f8"))


DEPENDENT = {
    "rank one": np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    "rank two": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
    "tall": np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]),
    "zero": np.zeros((3, 3)),
}


@pytest.mark.parametrize("name", DEPENDENT)
@pytest.mark.parametrize("part", [0, 1])
def test_qr_of_dependent_columns_has_no_derivative(name, part):
    """It was a number that had nothing to do with differences."""
    with pytest.raises(np.linalg.LinAlgError, match="dependent"):
        gradient(lambda a: np.sum(np.linalg.qr(a)[part] ** 3), DEPENDENT[name])


@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (2, 4)])
@pytest.mark.parametrize("mode", ["complete", "raw"])
def test_qr_by_reflections_in_compiled_programs(mode, shape):
    """Lists in the code that runs there need adjoint objects: that was a RuntimeError."""
    a = np.random.default_rng(0).standard_normal(shape)

    def f(a):
        first, second = np.linalg.qr(a, mode)
        return np.sum(first**3) + np.sum(second**2 * second)

    check_gradient(f, a)


def test_a_column_that_needs_no_reflection_is_refused():
    a = np.array([[1.0, 2.0], [0.0, 3.0], [0.0, 1.0]])
    with pytest.raises(DifferentiationError, match="sign"):
        gradient(lambda a: np.sum(np.linalg.qr(a, "complete")[0] ** 3), a)
