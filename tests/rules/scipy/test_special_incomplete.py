"""The incomplete gamma and beta functions in all arguments, over their whole range."""

import mpmath
import numpy as np
import pytest
from scipy import special as sp

from morula import gradient
from morula.core.extend import call
from morula.testing import check_rrule

call(sp.erf, 0.5)  # loads the rules
mpmath.mp.dps = 120

A = np.array([0.02, 0.5, 1.0, 3.7, 40.0, 2000.0])


@pytest.mark.parametrize("a", A)
@pytest.mark.parametrize("ratio", [0.01, 0.5, 0.97, 1.0, 1.03, 1.5])
def test_gammainc_by_its_shape(a, ratio):
    x = a * ratio
    expected = mpmath.diff(lambda s: mpmath.gammainc(s, 0, x, regularized=True), a)
    found = gradient(sp.gammainc, a, x)
    assert np.isclose(found[0], float(expected), rtol=1e-9, atol=1e-200)
    density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
    assert np.isclose(found[1], float(density), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize(
    ("a", "b"), [(0.05, 0.3), (0.5, 2), (1, 2), (3.7, 0.4), (30, 50), (900, 2)]
)
@pytest.mark.parametrize("x", [0.001, 0.2, 0.5, 0.9, 0.999])
def test_betainc_by_its_shapes(a, b, x):
    def reference(p, q):
        return mpmath.betainc(p, q, 0, x, regularized=True)

    by_a = float(mpmath.diff(lambda p: reference(p, b), a))
    by_b = float(mpmath.diff(lambda q: reference(a, q), b))
    found = gradient(sp.betainc, float(a), float(b), x)
    assert np.isclose(found[0], by_a, rtol=1e-8, atol=1e-14)
    assert np.isclose(found[1], by_b, rtol=1e-8, atol=1e-14)


def test_a_value_shortcut_does_not_mislead():
    """Trap T15."""
    assert np.isclose(gradient(lambda a: sp.betainc(a, 2.0, 0.5), 1.0)[0], -0.2698603854, rtol=1e-9)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_gamma_functions(name):
    fn = getattr(sp, name)
    check_rrule(fn, np.array([0.3, 2.0, 7.0]), np.array([0.5, 3.0, 4.0]), rtol=1e-5)
    check_rrule(fn, np.array([[0.3], [2.0]]), np.array([0.5, 3.0, 4.0]), rtol=1e-5)
    check_rrule(fn, 2.3, 1.7, order=2, rtol=1e-5)
    check_rrule(fn, 0.4, 1.7, order=2, rtol=1e-5)
    check_rrule(fn, 0.4, 0.1, order=2, rtol=1e-5)
    check_rrule(fn, 30.3, 31.7, order=2, rtol=1e-5)


@pytest.mark.parametrize("name", ["gammaincinv", "gammainccinv"])
def test_inverses_of_gamma_functions(name):
    fn = getattr(sp, name)
    check_rrule(fn, np.array([0.7, 2.0, 7.0]), np.array([0.3, 0.5, 0.9]), rtol=1e-5)
    check_rrule(fn, 2.3, np.array([0.3, 0.9]), rtol=1e-5)


@pytest.mark.parametrize("name", ["betainc", "betaincc", "betaincinv", "betainccinv"])
def test_beta_functions(name):
    fn = getattr(sp, name)
    a, b, x = np.array([0.6, 2.0, 7.0]), np.array([0.7, 3.0, 2.0]), np.array([0.3, 0.5, 0.9])
    check_rrule(fn, a, b, x, rtol=1e-5)
    check_rrule(fn, a[:, None], b, 0.4, rtol=1e-5)
    if not name.endswith("inv"):
        check_rrule(fn, 2.3, 1.7, 0.3, order=2, rtol=1e-5)
        check_rrule(fn, 0.3, 1.7, 0.1, order=2, rtol=1e-5)
