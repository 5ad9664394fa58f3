"""Polynomials: their roots, real where all of them are."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev, polynomial

from morula import gradient
from morula.testing import check_gradient

REAL, MIXED = np.array([2.0, -3.0, -4.0, 1.0]), np.array([2.0, -3.0, 4.0, 1.0])
FINDERS = [np.roots, polynomial.polyroots, lambda c: polynomial.Polynomial(c).roots()]


@pytest.mark.parametrize("roots", FINDERS)
def test_roots(roots):
    assert gradient(lambda c: roots(c)[1], REAL)[0].dtype == float
    check_gradient(lambda c: np.sum(roots(c) ** 3 * np.arange(3)), REAL)
    check_gradient(lambda c: np.sum(np.abs(roots(c)) ** 3), MIXED)
    check_gradient(lambda c: np.sum(gradient(lambda c: roots(c)[1], c)[0] ** 2), REAL)


def test_roots_of_chebyshev_series():
    check_gradient(lambda c: np.sum(chebyshev.chebroots(c).real ** 3), REAL)


def test_roots_that_are_zero():
    c = np.array([0.0, 1.0, -3.0, 2.0, 0.0])
    assert np.allclose(gradient(lambda c: np.roots(c)[0], c)[0][1:4], [-4.0, -2.0, -1.0])
    assert not np.any(gradient(lambda c: np.roots(c)[-1], c)[0])
