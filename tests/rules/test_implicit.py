"""Fixed points and solvers of equations."""

import math
from collections import namedtuple

import numpy as np
import pytest
from scipy.optimize import brentq, root

from morula import (
    ConvergenceError,
    J,
    UnsupportedError,
    fixed_point,
    grad,
    gradient,
    implicit_rule,
    pullback,
    withgradient,
)
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")

State = namedtuple("State", "x y")


def babylonian(x, a):
    return (x + a / x) / 2


def test_the_derivative_is_that_of_the_equation():
    assert fixed_point(math.cos, 1.0) == pytest.approx(0.7390851332151607, rel=1e-12)
    value, (slope,) = withgradient(lambda a: fixed_point(babylonian, 1.0, a), 2.0)
    assert value == fixed_point(babylonian, 1.0, 2.0)
    assert type(value) is type(slope) is float
    assert slope == pytest.approx(1 / (2 * math.sqrt(2)), rel=1e-12)
    assert grad(lambda a: fixed_point(babylonian, 1.0, a) * a)(4.0) == pytest.approx(3.0, rel=1e-12)


def test_it_does_not_depend_on_where_the_iteration_began():
    for x0 in (math.sqrt(2), 1.0, 100.0):  # the first one takes no step
        g = gradient(lambda x0, a: fixed_point(babylonian, x0, a), x0, 2.0)
        assert g == (0.0, pytest.approx(1 / (2 * math.sqrt(2)), rel=1e-12))


def test_captured_variables_and_objects_count():
    class Map:
        def __init__(self, a):
            self.a = a

        def __call__(self, x):
            return 0.5 * math.cos(x) + self.a

    def slope_at(a):
        x = fixed_point(Map(a), 0.0)
        return 1 / (1 + 0.5 * math.sin(x))

    def closure(a):
        return fixed_point(lambda x: 0.5 * math.cos(x) + a, 0.0)

    assert gradient(closure, 0.3)[0] == pytest.approx(slope_at(0.3), rel=1e-11)
    assert gradient(lambda m: fixed_point(m, 0.0), Map(0.3))[0].a == pytest.approx(slope_at(0.3))
    a = 0.3
    _, back = J(lambda: fixed_point(lambda x: 0.5 * math.cos(x) + a, 0.0))
    assert back(2.0)[0].a == pytest.approx(2 * slope_at(0.3))


def test_arrays_structures_and_dtypes(rng):
    A = rng.standard_normal((4, 4)) / 8

    def of_arrays(A, b):
        return (fixed_point(lambda x, A, b: np.tanh(A @ x) + b, np.zeros(4), A, b) ** 2).sum()

    check_gradient(of_arrays, A, rng.standard_normal(4), rtol=1e-6)

    def step(s, p):
        return {"s": State(0.3 * np.sin(s["s"].y) + p[0], s["s"].x * p[1]), "name": s["name"]}

    def of_structures(p):
        s = fixed_point(step, {"s": State(np.zeros(2), np.zeros(2)), "name": "n"}, p)
        return s["s"].x.sum() * s["s"].y[0]

    check_gradient(of_structures, [np.array([0.4, 0.5]), 0.7], rtol=1e-6)
    x = np.float32(2)
    value, (slope,) = withgradient(lambda a: fixed_point(babylonian, np.float32(1), a), x)
    assert type(value) is type(slope) is np.float32
    assert slope == pytest.approx(1 / (2 * math.sqrt(2)), rel=1e-5)


def test_complex_fixed_points():
    def f(z, c):
        return 0.25 * z * z + 0.1 * z.conjugate() + c

    def loss(c):
        z = fixed_point(f, 0j, c)
        return z.real * 2 + z.imag**2

    check_gradient(loss, 0.3 + 0.2j, rtol=1e-6)
    with pytest.raises(ValueError, match="begin with a complex x0"):
        fixed_point(lambda x: x * 0.5 + 1j, 1.0)


def test_many_unknowns_are_solved_for_without_a_matrix(rng):
    d = rng.uniform(-0.4, 0.4, 500)

    def loss(d):
        return (fixed_point(lambda x, d: d * np.roll(x, 1) + 1.0, np.ones(500), d) ** 2).sum()

    g = gradient(loss, d)[0]
    h = 1e-6
    for i in (0, 250):
        e = np.zeros(500)
        e[i] = h
        assert g[i] == pytest.approx((loss(d + e) - loss(d - e)) / (2 * h), rel=1e-5)


def test_what_does_not_converge_is_an_error():
    with pytest.raises(ConvergenceError, match="did not converge in 50 steps"):
        fixed_point(lambda x: -x, 1.0, max_steps=50)
    with pytest.raises(ConvergenceError, match="not finite"):
        fixed_point(lambda x: x * x, 3.0)
    with pytest.raises(ConvergenceError, match="does not determine"):
        gradient(lambda a: fixed_point(lambda x, a: x + 0.0 * a, 1.0, a), 2.0)
    with pytest.raises(ValueError, match="2 numbers for an x of 1"):
        fixed_point(lambda x: [x, x], 1.0)


def test_higher_orders():
    def f(a):
        return fixed_point(babylonian, 1.0, a)

    assert grad(grad(f))(2.0) == pytest.approx(-0.25 * 2**-1.5, rel=1e-10)


def residual(x, a, scale=1.0):
    return scale * (x**3 + a * x - 1)


@implicit_rule(residual)
def real_root(a, *, scale=1.0, tol=1e-13):
    """The root."""
    return brentq(residual, 0, 2, args=(a, scale), xtol=tol)


def test_solvers_of_the_users_own():
    x = real_root(2.0)
    assert real_root.__doc__ == "The root."
    assert gradient(real_root, 2.0) == (pytest.approx(-x / (3 * x * x + 2), rel=1e-10),)
    assert gradient(lambda a: real_root(a, tol=1e-10) * a, 2.0)[0] == pytest.approx(
        x - 2 * x / (3 * x * x + 2), rel=1e-8
    )
    assert gradient(lambda s: real_root(2.0, scale=s), 3.0)[0] == pytest.approx(0.0, abs=1e-10)
    second = (real_root_slope(2.0 + 1e-5) - real_root_slope(2.0 - 1e-5)) / 2e-5
    assert grad(grad(real_root))(2.0) == pytest.approx(second, rel=1e-6)


def real_root_slope(a):
    x = real_root(a)
    return -x / (3 * x * x + a)


def test_a_solver_of_a_system_with_captured_parameters():
    def loss(p):
        k = p[1] * 2

        def equations(u):
            return [u["v"] ** 2 + u["w"] - p[0], u["v"] * u["w"] - k]

        @implicit_rule(equations)
        def solve():
            found = root(lambda u: equations({"v": u[0], "w": u[1]}), [1.0, 1.0], tol=1e-12)
            return {"v": found.x[0], "w": found.x[1]}

        u = solve()
        return u["v"] * u["w"] ** 2

    check_gradient(loss, [3.0, 0.5], rtol=1e-6)


def test_too_few_equations():
    @implicit_rule(lambda z, a: z[0] - a)
    def solve(a):
        return np.array([a, 1.0])

    np.testing.assert_array_equal(solve(2.0), [2.0, 1.0])
    with pytest.raises(ValueError, match="1 equations cannot determine 2 unknowns"):
        gradient(lambda a: solve(a).sum(), 2.0)


def test_the_pullback_serves_again():
    _, back = pullback(lambda a: fixed_point(babylonian, 1.0, a), 2.0)
    assert back(2.0) == back(2.0)
    assert back(0.0) == (0.0,)


@pytest.mark.parametrize("size", [2, 300])
def test_what_the_residual_captured_may_change_after_the_solution_was_found(size):
    def by_list(a):
        kept = [a]
        x = brentq(lambda x: x * kept[0] - 1, 0.0, 9.0)
        kept[0] = 7.0
        return x

    def by_array(a):
        A = np.full(size, a)
        x = fixed_point(lambda x: 0.5 * x + 1 / A, np.zeros(size))
        A[:] = 3.0
        return x[0] * x[1]

    for f in (by_list, by_array):
        check_gradient(f, 0.5, order=1)
    with pytest.raises(UnsupportedError, match="let it capture a copy"):
        grad(grad(by_list))(0.5)
