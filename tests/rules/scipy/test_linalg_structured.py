"""Structured matrices: building them, and equations with them."""

import numpy as np
import pytest
from scipy import linalg

from morula import gradient
from morula.core.extend import call
from morula.testing import check_gradient, check_rrule
from tests.array_modes import check_array_modes
from tests.rules.linalg.matrices import draw

call(linalg.inv, np.eye(2))  # loads the rules
DTYPES = ["f8", "c16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_building(rng, dtype):
    c, r = draw(rng, 4, dtype), draw(rng, 3, dtype)
    check_rrule(linalg.toeplitz, c)
    check_rrule(linalg.toeplitz, c, r)
    check_rrule(linalg.hankel, c)
    check_rrule(linalg.hankel, c, r)
    check_rrule(linalg.circulant, c)
    check_rrule(linalg.companion, c)
    check_rrule(linalg.leslie, c, r)
    for mode in ("full", "same", "valid"):
        check_rrule(linalg.convolution_matrix, c, 6, mode)
        check_rrule(linalg.convolution_matrix, c, 2, mode)
    check_rrule(linalg.diagsvd, c, 4, 5)
    check_rrule(linalg.diagsvd, c, 6, 4)
    check_rrule(linalg.khatri_rao, draw(rng, (2, 3), dtype), draw(rng, (4, 3), dtype))
    check_rrule(linalg.block_diag, draw(rng, (2, 3), dtype), draw(rng, 2, dtype), 2.0)
    if dtype == "f8":
        check_rrule(linalg.fiedler, c)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_toeplitz_equations(rng, dtype, shape):
    c, r, b = draw(rng, 4, dtype), draw(rng, 4, dtype), draw(rng, shape, dtype)
    c[0] = r[0] = 5
    check_rrule(linalg.solve_toeplitz, (c, r), b)
    check_rrule(linalg.solve_toeplitz, c, b)
    check_rrule(linalg.matmul_toeplitz, (c, r), b)
    check_rrule(linalg.matmul_toeplitz, c, b)
    check_gradient(lambda c, b: np.sum(np.abs(linalg.solve_circulant(c, b)) ** 2), c, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (5, 2)])
@pytest.mark.parametrize("bands", [(1, 1), (2, 1), (0, 2), (1, 0)])
def test_banded_equations(rng, dtype, shape, bands):
    ab = draw(rng, (sum(bands) + 1, 5), dtype)
    ab[bands[1]] += 5
    check_rrule(linalg.solve_banded, bands, ab, draw(rng, shape, dtype))

    def f(ab, b):
        return np.sum(np.real(linalg.solve_banded(bands, ab, b)) ** 2)

    check_gradient(f, ab, draw(rng, shape, dtype))
    check_gradient(lambda ab, b: np.sum(np.abs(gradient(f, ab, b)[0])), ab, draw(rng, shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (5, 2)])
@pytest.mark.parametrize("lower", [False, True])
def test_hermitian_banded_equations(rng, dtype, shape, lower):
    ab, b = draw(rng, (3, 5), dtype), draw(rng, shape, dtype)
    ab[0 if lower else -1] = 7
    check_rrule(linalg.solveh_banded, ab, b, lower=lower)
    check_rrule(linalg.cholesky_banded, ab, lower=lower)
    cb = linalg.cholesky_banded(ab, lower=lower)
    check_rrule(linalg.cho_solve_banded, (cb, lower), b)


def test_functions_that_are_written_in_python(rng):
    a, b = draw(rng, (4, 3), "f8"), draw(rng, (4, 3), "f8")
    check_gradient(lambda a, b: linalg.orthogonal_procrustes(a, b)[0][0, 1], a, b)
    check_gradient(lambda a, b: linalg.orthogonal_procrustes(a, b)[1], a, b)


def test_fiedler_companion_in_all_modes():
    def f(a):
        return np.sum(np.sin(linalg.fiedler_companion(a)))

    check_array_modes(f, np.array([1.0, -1.6, 0.8, -1.7, 1.05]))


def test_bands_longer_than_the_matrix(rng):
    ab, b = rng.standard_normal((11, 3)), rng.standard_normal(3)
    ab[5] += 4.0

    def f(ab, b):
        return np.sum(np.cos(np.arange(3.0)) * linalg.solve_banded((5, 5), ab, b))

    check_array_modes(f, ab, b, second=True)
