"""The forward rules of inv, solve and cholesky, of stacks, real and complex."""

import numpy as np
import pytest

from morula.testing import check_frule


def matrices(rng, shape, dtype):
    A = rng.standard_normal(shape)
    if dtype is complex:
        A = A + 1j * rng.standard_normal(shape)
    return A + 3 * np.eye(shape[-1])


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_inv_and_solve(rng, dtype, shape):
    A = matrices(rng, shape, dtype)
    check_frule(np.linalg.inv, A)
    check_frule(np.linalg.solve, A, rng.standard_normal(3))
    check_frule(np.linalg.solve, A, rng.standard_normal((3, 2)))


@pytest.mark.parametrize("dtype", [float, complex])
def test_cholesky_reads_one_triangle(rng, dtype):
    A = matrices(rng, (3, 3), dtype)
    A = A @ A.conj().T + 3 * np.eye(3)
    check_frule(np.linalg.cholesky, A)
    check_frule(np.linalg.cholesky, A, upper=True)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_determinants(rng, dtype, shape):
    A = matrices(rng, shape, dtype)
    check_frule(np.linalg.det, A)
    check_frule(np.linalg.slogdet, A)


def test_the_determinant_of_a_singular_matrix(rng):
    A = matrices(rng, (3, 3), float)
    A[2] = A[0] + A[1]
    check_frule(np.linalg.det, A)


@pytest.mark.parametrize("dtype", [float, complex])
def test_products(rng, dtype):
    A = matrices(rng, (3, 3), dtype)
    for n in (-2, -1, 0, 1, 2, 3):
        check_frule(np.linalg.matrix_power, A, n)
        check_frule(np.linalg.matrix_power, matrices(rng, (2, 3, 3), dtype), n)
    check_frule(np.kron, A, rng.standard_normal((2, 2)))
    check_frule(np.kron, rng.standard_normal(2), A[0])
    check_frule(np.kron, A, rng.standard_normal((2, 0)))
