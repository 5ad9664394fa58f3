"""Fixed points and solvers of equations in forward mode, and in forward mode over both modes."""

import numpy as np
import pytest

from morula import ConvergenceError, fixed_point, hessian, hvp, implicit_rule, jvp


class Babylonian:
    def __init__(self, a):
        self.a = a

    def step(self, x):
        return (x + self.a / x) / 2


@pytest.mark.parametrize(
    "f",
    [
        lambda a: fixed_point(Babylonian(a).step, 1.0),
        lambda a: square_root(a)["x"],
        lambda a: square_root_of_array(np.array([a, 2 * a]))[0],
    ],
)
def test_forward_mode_and_forward_over_both(f):
    """The square root at 2: slopes 1 / 2√2 and -1 / 8√2."""
    slope = lambda a: jvp(f, (a,), (1.0,))[1]
    assert slope(2.0) == pytest.approx(8**-0.5, rel=1e-10)
    second = pytest.approx(-1 / (8 * np.sqrt(2)), rel=1e-9)
    assert jvp(slope, (2.0,), (1.0,))[1] == second
    assert hessian(f, 2.0) == second


@implicit_rule(lambda u, a: {"x": u["x"] ** 2 - a})
def square_root(a):
    return {"x": a**0.5}


@implicit_rule(lambda u, *, a: u**2 - a)
def root_by_keyword(*, a):
    return a**0.5


def square_root_of_array(a):
    return root_by_keyword(a=a)


def test_a_large_system_in_forward_mode():
    n = 300

    @implicit_rule(lambda u, p: 2 * u - 0.1 * np.roll(u, 1) - p)
    def solve(p):
        matrix = 2 * np.eye(n) - 0.1 * np.roll(np.eye(n), 1, axis=0)
        return np.linalg.solve(matrix, p)

    p = np.linspace(0, 1, n)
    np.testing.assert_allclose(jvp(solve, (p,), (p[::-1].copy(),))[1], solve(p[::-1]), rtol=1e-9)


def test_a_complex_solution_in_forward_mode():
    f = lambda a: fixed_point(lambda z: (z + a / z) / 2, 1.0 + 1.0j)
    a, ȧ = -3.0 + 4.0j, 0.5 - 2.0j
    assert jvp(f, (a,), (ȧ,))[1] == pytest.approx(ȧ / (2 * f(a)), rel=1e-9)


def test_what_is_not_determined_is_refused_in_forward_mode():
    with pytest.raises(ConvergenceError, match="singular"):
        jvp(lambda a: fixed_point(lambda x: x + 0.0 * a, 1.0), (2.0,), (1.0,))
    implicit = implicit_rule(lambda z, a: z[0] - a)(lambda a: np.array([a, 1.0]))
    with pytest.raises(ValueError, match="1 equations cannot determine 2 unknowns"):
        jvp(implicit, (2.0,), (1.0,))


def test_the_residual_runs_as_often_for_many_unknowns_as_for_few():
    def calls(n):
        count = 0

        def residual(z, p):
            nonlocal count
            count += 1
            return z**3 + z - p

        @implicit_rule(residual)
        def solver(p):
            z = np.zeros_like(p)
            for _ in range(40):
                z = z - (z**3 + z - p) / (3 * z**2 + 1)
            return z

        x = np.linspace(0.5, 1.0, n)
        z = solver(x)
        expected = np.ones(n) * (2 / (3 * z**2 + 1) ** 2 - 2 * z * 6 * z / (3 * z**2 + 1) ** 3)
        found = hvp(lambda x: np.sum(solver(x) ** 2), x, np.ones(n))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        return count

    assert calls(2) == calls(6)
