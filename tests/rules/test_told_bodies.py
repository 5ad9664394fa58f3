"""Functions whose derivative is told in Python, in compiled programs: values, gradients, fallbacks."""

import numpy as np
import pytest

from morula import code_adjoint, grad, hvp, withgradient
from morula.mixed_mode.jacobians import general_hvp
from morula.testing import check_gradient

X = np.array([0.3, 1.1, 0.7, 2.2])
GRID = np.array([0.0, 1.0, 1.5, 3.0])

FUNCTIONS = {
    "trapezoid": lambda x: np.trapezoid(x**2, GRID) + np.trapezoid(x),
    "vander": lambda x: np.sum(np.vander(x, 3) ** 2),
    "polyval": lambda x: np.sum(np.polyval(x, GRID) ** 2),
    "interp": lambda x: np.sum(np.interp(x, GRID, GRID**2) * x),
    "interp, the values": lambda x: np.sum(np.interp([0.2, 1.2], GRID, x) ** 2),
    "cov": lambda x: np.cov(x, x**2)[0, 1],
    "corrcoef": lambda x: np.corrcoef(x, x**3)[0, 1],
    "gradient": lambda x: np.sum(np.gradient(x, 0.5) ** 2),
    "cross": lambda x: np.sum(np.cross(x[:3], x[1:]) * GRID[1:]),
    "average": lambda x: np.average(x**2, weights=x),
    "ptp": lambda x: np.ptp(x) * x[0],
    "several": lambda x: np.trapezoid(np.vander(x, 2)[:, 0]) * np.average(x),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_values_and_gradients(path, f):
    check_gradient(f, X)
    y, _ = withgradient(f, X)
    assert type(y) is type(f(X))
    assert np.asarray(y).tobytes() == np.asarray(f(X)).tobytes()


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_products_with_hessians(f):
    v = np.array([1.0, -0.5, 0.2, 0.7])
    np.testing.assert_allclose(hvp(f, X, v), general_hvp(f, X, v), rtol=1e-9, atol=1e-11)


def test_what_is_told_is_inlined():
    text = str(code_adjoint(lambda x: np.trapezoid(x**2), X))
    assert text.startswith("# specialised")
    assert "call_from_program" not in text


def test_where_it_cannot_be_the_function_stays_a_call():
    text = str(code_adjoint(lambda x: np.average(x**2), X))
    assert text.startswith("# specialised")
    assert "numpy.average" in text


def test_errors_are_those_of_the_functions(path):
    with pytest.raises(ValueError, match="fp and xp are not of the same length"):
        grad(lambda x: np.interp(0.3, GRID, x[:2]))(X)


def test_what_is_called_is_called_once(path):
    seen = []

    def f(x):
        return np.trapezoid(noted(x))

    def noted(x):
        seen.append(float(x[0]))
        return x * x

    grad(f)(X)
    assert seen == [0.3]


def test_a_body_that_calls_itself_is_put_in_once():
    """`np.block` goes through nested lists by recursion; the program grew by it to its limit."""

    def f(x):
        return np.sum(np.block([[x], [x**2]]) ** 2)

    check_gradient(f, X)
    assert "it is too long" not in str(code_adjoint(f, X)).partition("\n")[0]
