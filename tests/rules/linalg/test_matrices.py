"""solve, inv, det, slogdet, cholesky, matrix_power against differences."""

import numpy as np
import pytest

from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_rrule

DTYPES = ["f8", "c16", "f4"]


def draw(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def regular(rng, shape, dtype):
    return draw(rng, shape, dtype) + 3 * np.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shapes",
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3, 4)),
     ((3, 3), (2, 3, 1))],
)  # fmt: skip
def test_solve(rng, dtype, shapes):
    order = {"order": 2} if dtype == "f8" else {}
    check_rrule(
        np.linalg.solve, regular(rng, shapes[0], dtype), draw(rng, shapes[1], dtype), **order
    )
    check_rrule(np.linalg.solve, regular(rng, shapes[0], "f8"), draw(rng, shapes[1], dtype))


@pytest.mark.parametrize("fn", [np.linalg.inv, np.linalg.det, np.linalg.slogdet])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (1, 1), (0, 2, 2)])
def test_inverse_and_determinant(rng, fn, dtype, shape):
    check_rrule(fn, regular(rng, shape, dtype), order=2 if dtype == "f8" else 1)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_determinant_of_singular_matrices(rng, dtype):
    check_rrule(np.linalg.det, np.zeros((3, 3), dtype))
    check_rrule(np.linalg.det, np.array([[1.0, 2], [2, 4]]).astype(dtype))
    check_rrule(
        np.linalg.det, np.stack([np.eye(3, dtype=dtype), np.diag([1.0, 2, 0]).astype(dtype)])
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 2)])
def test_cholesky(rng, dtype, upper, shape):
    a = draw(rng, shape, dtype)
    a = a @ np.swapaxes(a, -1, -2).conj() + np.eye(shape[-1], dtype=dtype)
    check_rrule(np.linalg.cholesky, a, upper=upper)
    check_rrule(np.linalg.cholesky, a, order=2 if dtype == "f8" else 1)


def test_cholesky_reads_one_triangle():
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    _, back = apply_rule(find_rrule(np.linalg.cholesky, (a,)), (a,), {})
    assert back(np.ones((2, 2)))[0][0, 1] == 0


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, -1, -3])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_matrix_power(rng, n, dtype):
    check_rrule(np.linalg.matrix_power, regular(rng, (3, 3), dtype), n)
    check_rrule(np.linalg.matrix_power, regular(rng, (2, 3, 3), dtype), n)
