"""Functions of matrices: their Fréchet derivatives against differences."""

import numpy as np
import pytest
from scipy import linalg

from morula import jvp
from morula.core.extend import call
from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw, positive

call(linalg.inv, np.eye(2))  # loads the rules


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("name", ["expm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"])
def test_entire_functions(rng, dtype, name):
    a = 0.4 * draw(rng, (3, 3), dtype)
    check_rrule(getattr(linalg, name), a, order=2 if dtype == "f8" else 1)


def norm_of(y):
    return np.sum(np.abs(y - 0.1) ** 2)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("name", ["logm", "sqrtm"])
def test_roots_and_logarithms(rng, dtype, name):
    a = positive(rng, (3, 3), dtype) + 0.1 * draw(rng, (3, 3), dtype)
    check_rrule(getattr(linalg, name), a, order=2 if dtype == "f8" else 1, rtol=1e-5)
    # SciPy's own algorithm draws random numbers, so two calls differ in the last digits.
    check_gradient(lambda a, t: norm_of(linalg.fractional_matrix_power(a, t)), a, 0.3, rtol=1e-5)
    check_rrule(linalg.fractional_matrix_power, a, 3)


@pytest.mark.parametrize("seed", range(4))
def test_signs_of_matrices(seed):
    a, b = np.random.default_rng(seed).standard_normal((2, 3, 3))
    check_rrule(linalg.signm, a, order=2)
    check_rrule(linalg.signm, a + 1j * b)
    step = 1e-6 * b
    difference = (linalg.signm(a + step) - linalg.signm(a - step)) / 2e-6
    assert jvp(linalg.signm, (a,), (b,))[1] == pytest.approx(difference, rel=1e-5, abs=1e-5)


def test_expm_of_defective_matrices():
    check_rrule(linalg.expm, np.array([[1.0, 1.0], [0.0, 1.0]]), order=2)
    check_rrule(linalg.expm, np.zeros((2, 2)), order=2)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_expm_frechet(rng, dtype):
    a, e = 0.4 * draw(rng, (3, 3), dtype), draw(rng, (3, 3), dtype)
    check_rrule(linalg.expm_frechet, a, e)
    check_rrule(linalg.expm_frechet, a, e, compute_expm=False)


def test_funm(rng):
    a = positive(rng, (3, 3), "f8")
    check_gradient(
        lambda a, p: np.sum(linalg.funm(a, lambda x: np.exp(p * x)) * np.arange(9).reshape(3, 3)),
        a / 5,
        0.7,
        rtol=1e-5,
    )
