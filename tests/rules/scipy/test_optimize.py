"""Solvers of scipy.optimize: the derivative is that of the equation, not of the steps."""

import numpy as np
import pytest
from scipy import optimize

from morula import (
    ConvergenceError,
    UnsupportedError,
    grad,
    gradient,
    hessian,
    hvp,
    jvp,
    pullback,
)

P = np.array([2.0, 3.0])
CUBE = P ** (-2 / 3) / 3  # the slope of the cube root
START = np.array([1.0, 1.0])


class Model:
    def __init__(self, p):
        self.p = p

    def __call__(self, u):
        return u**3 - self.p


CASES = [
    (lambda p: optimize.root(lambda u: u**3 - p, START).x.sum(), CUBE),
    (lambda p: optimize.root(lambda u, q: u**3 - q, START, args=(p,)).x.sum(), CUBE),
    (lambda p: optimize.root(Model(p), START).x.sum(), CUBE),
    (lambda p: optimize.root(lambda u: u**3 - p, P ** (1 / 3)).x.sum(), CUBE),  # no step at all
    (
        lambda p: optimize.root(lambda u: (u**3 - p, np.diag(3 * u**2)), START, jac=True).x.sum(),
        CUBE,
    ),
    (lambda p: optimize.fsolve(lambda u: u**3 - p, START).sum(), CUBE),
    (lambda p: optimize.brentq(lambda u: u**3 - p[0], 0, 5), CUBE * [1, 0]),
    (lambda p: optimize.bisect(lambda u, q: u**3 - q, 0, 5, args=(p[0],)), CUBE * [1, 0]),
    (lambda p: optimize.toms748(lambda u: u**3 - p[1], 0, 5), CUBE * [0, 1]),
    (lambda p: optimize.ridder(lambda u: u**3 - p[1], 0, 5, full_output=True)[0], CUBE * [0, 1]),
    (lambda p: optimize.root_scalar(lambda u: u**3 - p[0], bracket=(0, 5)).root, CUBE * [1, 0]),
    (lambda p: optimize.newton(lambda u: u**3 - p[0], 1.0), CUBE * [1, 0]),
    (lambda p: optimize.newton(lambda u: u**3 - p, START).sum(), CUBE),
    (lambda p: optimize.fixed_point(lambda u: (u + p / u) / 2, START).sum(), 0.5 / np.sqrt(P)),
    (lambda p: optimize.minimize(lambda u: ((u - p) ** 2 + u**2).sum(), START).x.sum(), [0.5, 0.5]),
    (lambda p: optimize.minimize(lambda u: ((u - p) ** 2 + u**2).sum(), START).fun, P),
    (
        lambda p: optimize.minimize(
            lambda u, q: ((u - q) ** 2).sum(), START, args=(p,), jac=lambda u, q: 2 * (u - q)
        ).x[0],
        [1, 0],
    ),
    (lambda p: optimize.minimize_scalar(lambda u: (u - p[0]) ** 2 + u**2).x, [0.5, 0]),
    (
        lambda p: optimize.least_squares(lambda u: np.array([u[0] - p[0], u[0] - p[1]]), [1.0]).x[
            0
        ],
        [0.5, 0.5],
    ),
    (
        lambda p: optimize.curve_fit(lambda t, a: a * t, np.arange(3.0), np.arange(3.0) * p[0])[0][
            0
        ],
        [1, 0],
    ),
]


@pytest.mark.parametrize(("f", "expected"), CASES)
def test_solutions(f, expected):
    np.testing.assert_allclose(grad(f)(P), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("f", "expected"), CASES[::4])
def test_solutions_by_the_other_modes(f, expected):
    v = np.array([0.3, -0.7])
    np.testing.assert_allclose(pullback(f, P)[1](1.0)[0], expected, rtol=1e-5, atol=1e-7)
    y, ẏ = jvp(f, (P,), (v,))
    np.testing.assert_allclose(ẏ, np.dot(expected, v), rtol=1e-5, atol=1e-7)
    assert y == f(P)


def test_second_derivatives():
    expected = np.diag(-2 / 9 * P ** (-5 / 3))
    v = np.array([1.0, -2.0])
    found = hvp(lambda p: optimize.root(lambda u: u**3 - p, START).x.sum(), P, v)
    np.testing.assert_allclose(found, expected @ v, rtol=1e-5, atol=1e-7)
    found = grad(grad(lambda p: optimize.brentq(lambda u: u**3 - p, 0, 5)))(float(P[0]))
    assert found == pytest.approx(expected[0, 0], rel=1e-5)


@pytest.mark.parametrize("method", ["BFGS", "Nelder-Mead"])
def test_products_with_hessians_of_minima(method):
    def f(p):
        def loss(u):
            return ((u - p**2) ** 2).sum()

        return np.sum(optimize.minimize(loss, START, method=method, tol=1e-12).x ** 2)

    v = np.array([1.0, -0.5])
    np.testing.assert_allclose(hvp(f, P, v), 12 * P**2 * v, rtol=1e-5)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: optimize.root(lambda u, a: u**3 - a, START[:1], args=(a,)).x[0],
        lambda a: optimize.brentq(lambda u: u**3 - a, 0, 5),
        lambda a: optimize.newton(Model(a), 1.0),
    ],
)
def test_all_orders_of_two_modes(f):
    def slope(a):
        return jvp(f, (a,), (1.0,))[1]

    second = pytest.approx(-2 / 9 * 2.0 ** (-5 / 3), rel=1e-5)
    assert gradient(lambda a: gradient(f, a)[0], 2.0)[0] == second
    assert gradient(slope, 2.0)[0] == second
    assert jvp(slope, (2.0,), (1.0,))[1] == second
    assert hessian(f, 2.0) == second


def at_a_bound(p):
    return optimize.minimize(lambda u: ((u - p) ** 2).sum(), START, bounds=[(0, 1), (0, None)]).x[0]


def of_another_loss(p):
    return optimize.least_squares(lambda u: u - p, START, loss="soft_l1").x[0]


@pytest.mark.parametrize("f", [at_a_bound, of_another_loss])
def test_a_minimum_under_constraints_has_no_derivative(f):
    for derivative in (grad(f), lambda p: jvp(f, (p,), (np.ones(2),))):
        with pytest.raises(UnsupportedError, match="at a bound, under constraints"):
            derivative(P)


@pytest.mark.filterwarnings("ignore")
def test_what_was_not_found_has_no_derivative():
    def f(p):
        return optimize.root(lambda u: u**2 + p, START).x.sum()

    for derivative in (grad(f), lambda p: jvp(f, (p,), (np.ones(2),))):
        with pytest.raises(ConvergenceError, match="root did not converge"):
            derivative(P)


def test_what_a_solver_tells_by_the_way_is_no_constant():
    def f(p):
        return optimize.root(lambda u: u - p, START).fun.sum()

    with pytest.raises(UnsupportedError, match="'fun' of the result"):
        grad(f)(P)
    assert np.isnan(jvp(f, (P,), (np.ones(2),))[1])


@pytest.mark.parametrize(
    "solve",
    [
        lambda a: optimize.brentq(lambda x: x - a, -9, 9),
        lambda a: optimize.minimize_scalar(lambda x: (x - a) ** 2 + 1).x,
        lambda a: optimize.minimize_scalar(lambda x: (x - a) ** 2 + 1).fun,
        lambda a: optimize.fixed_point(lambda x: 0.5 * x + a, 1.0),
        lambda a: optimize.minimize(lambda x: (x - a) ** 2 + np.cos(x), 0.3).fun,
        lambda a: optimize.least_squares(lambda x: [x[0] - a, x[0] + a * a, a - 0.1], [1.0]).cost,
    ],
)
def test_solutions_are_of_the_types_that_scipy_gives(solve):
    plain, (found, _) = solve(0.7), pullback(solve, 0.7)
    assert type(found) is type(plain)
    assert found == plain


def test_what_is_written_to_a_solution_later_is_no_solution(path):
    def f(p):
        x = optimize.fsolve(lambda x, p: x**3 - p, np.ones(2), args=(p,))
        x[0] = p[1] * 2
        x *= 2
        return np.sum(x * x)

    p = np.array([1.5, 2.5])
    (g,) = gradient(f, p)
    np.testing.assert_allclose(g, [0.0, 32 * p[1] + 8 / 3 * p[1] ** (-1 / 3)], rtol=1e-9)
