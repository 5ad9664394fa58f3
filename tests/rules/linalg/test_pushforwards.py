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
