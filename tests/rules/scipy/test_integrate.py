"""Integrals and differential equations of SciPy: the derivative is that of what they stand for."""

import math

import numpy as np
import pytest
from scipy import integrate

from morula import UnsupportedError, grad, gradient, hessian, jvp, pullback
from morula.testing import check_gradient

inf = math.inf
quad = integrate.quad


def differences(f, args, h=1e-4):
    """The partial derivatives by all arguments, to fourth order."""
    found = []
    for i, x in enumerate(args):

        def along(s, i=i, x=x):
            return f(*args[:i], x + s, *args[i + 1 :])

        found.append((8 * (along(h) - along(-h)) - along(2 * h) + along(-2 * h)) / (12 * h))
    return found


P = np.array([1.0, 2.0])


class Power:
    def __init__(self, a):
        self.a = a

    def __call__(self, t):
        return t**self.a


QUADS = {
    "closure and limit": (lambda a, b: quad(lambda t: a / (1 + t * t), b, inf)[0], (-1.0, 0.0)),
    "args": (lambda a, b: quad(lambda t, a: math.exp(-a * t) * t, 0, b, args=(a,))[0], (1.3, 2.0)),
    "one argument": (lambda a: quad(lambda t, a: math.exp(-a * t), 0, 1, args=a)[0], (1.3,)),
    "whole line": (lambda a: quad(lambda t: math.exp(-a * t * t), -inf, inf)[0], (1.3,)),
    "to the left": (lambda a, b: quad(lambda t: math.exp(a * t), -inf, b)[0], (1.3, 0.4)),
    "backwards": (lambda a, b: quad(lambda t: a * t * t, 2.0, b)[0], (1.3, 0.4)),
    "singular end": (lambda a: quad(lambda t: t ** (a - 1), 0, 1)[0], (0.3,)),
    "both limits": (lambda a, b: quad(lambda t: a * math.sin(t), a, b)[0], (0.5, 2.0)),
    "points": (
        lambda a: quad(lambda t: math.sqrt(abs(t - 0.3)) * a * a, 0, 1, points=[0.3])[0],
        (1.3,),
    ),
    "cos": (
        lambda a, w: quad(lambda t: math.exp(-a * t), 0, 2, weight="cos", wvar=w)[0],
        (1.3, 9.0),
    ),
    "sin to infinity": (
        lambda a, w: quad(lambda t: math.exp(-a * t), 0, inf, weight="sin", wvar=w)[0],
        (1.3, 2.0),
    ),
    "an object": (lambda a: quad(Power(a), 0, 1)[0], (1.3,)),
    "an array": (lambda a: quad(lambda t, p: float(p @ p) * t, 0, 1, args=(a * P,))[0], (1.3,)),
    "algebraic weight": (
        lambda a, w: quad(lambda t: math.exp(-a * t), 0, 1, weight="alg", wvar=(w, -0.5))[0],
        (1.3, -0.2),
    ),
    "logarithmic weight": (
        lambda a: quad(lambda t: math.exp(-a * t), 0, 1, weight="alg-log", wvar=(0, 0))[0],
        (1.3,),
    ),
    "principal value": (
        lambda a, c, b: quad(lambda t: math.exp(-a * t), 0, b, weight="cauchy", wvar=c)[0],
        (1.3, 0.4, 1.0),
    ),
    "complex": (
        lambda a: quad(lambda t: np.exp(-1j * a * t), 0, 1, complex_func=True)[0].imag,
        (1.3,),
    ),
    "full output": (lambda a: quad(lambda t: a * t, 0, 1, full_output=1)[0], (1.3,)),
    "twice": (
        lambda a, b: integrate.dblquad(
            lambda y, x: a * x * y * y, 0, b, lambda x: 0, lambda x: a * x
        )[0],
        (1.3, 0.7),
    ),
    "nested": (
        lambda a, b: integrate.nquad(lambda y, x, c: c * x * y, [[0, b], [0, 1]], args=(a,))[0],
        (1.3, 0.7),
    ),
    "vector": (
        lambda a, b: integrate.quad_vec(lambda t: np.array([a * t, np.sin(a * t)]), 0, b)[0].sum(),
        (1.3, 0.7),
    ),
    "vector to infinity": (
        lambda a: integrate.quad_vec(lambda t, a: np.exp(-a * t), 0, inf, args=(a,))[0],
        (1.3,),
    ),
    "fixed points": (
        lambda a, b: integrate.fixed_quad(lambda t: np.sin(a * t), 0, b, n=5)[0],
        (1.3, 0.7),
    ),
}


@pytest.mark.parametrize("name", QUADS)
def test_integrals(name):
    f, args = QUADS[name]
    y, back = pullback(f, *args)
    assert y == f(*args)
    expected = differences(f, args)
    np.testing.assert_allclose(back(1.0), expected, rtol=2e-6, atol=2e-7)
    if name in ("twice", "nested"):
        return
    ẏ = jvp(f, args, (1.0,) * len(args))[1]
    np.testing.assert_allclose(ẏ, sum(expected), rtol=2e-6, atol=2e-7)


def test_the_example_of_the_contract():
    f, args = QUADS["closure and limit"]
    np.testing.assert_allclose(gradient(f, *args), (np.pi / 2, 1), rtol=1e-9)


def test_slopes_are_resolved_where_the_integrand_is_not_steep():
    """The integrand is 1, and its slope a narrow peak."""

    def f(a):
        return quad(lambda t: 1 + a * math.exp(-(((t - 0.3) / 0.01) ** 2)), 0, 1)[0]

    np.testing.assert_allclose(grad(f)(0.0), 0.01 * math.sqrt(math.pi), rtol=1e-7)


def test_a_jump_of_the_integrand_moves_with_the_limit():
    def f(b):
        return quad(lambda t: 1.0 if t < 0.5 else 3.0, 0, b, points=[0.5])[0]

    assert grad(f)(0.8) == 3.0


def test_an_end_where_the_integrand_is_not_defined():
    """Its value there is not asked for, if the limit is no variable."""

    def f(a):
        return quad(lambda t: a / math.sqrt(t), 0.0, 1)[0]

    np.testing.assert_allclose(grad(f)(1.3), 2.0, rtol=1e-7)


def test_the_second_derivative_of_an_integral():
    def f(b):
        return quad(lambda t: b * t * t, 0, b)[0]  # b⁴ / 3

    np.testing.assert_allclose(jvp(grad(f), (1.3,), (1.0,))[1], 4 * 1.3**2, rtol=1e-9)


def test_what_quad_tells_by_the_way_is_no_constant():
    with pytest.raises(UnsupportedError, match="has no derivative"):
        grad(lambda a: quad(lambda t: math.exp(a * t), 0, 1)[1])(1.3)
    with pytest.raises(UnsupportedError, match="by its limits is not known"):
        grad(lambda b: quad(math.sin, 0, b, weight="alg", wvar=(0.5, 0.5))[0])(1.3)


SAMPLED = [
    lambda y: integrate.trapezoid(y, x=y**2),
    lambda y: integrate.simpson(y[:4], x=np.array([0, 1, 2.5, 3])),
    lambda y: (integrate.cumulative_trapezoid(y, initial=0) ** 2).sum(),
    lambda y: (integrate.cumulative_simpson(y, dx=0.5) ** 2).sum(),
]


@pytest.mark.parametrize("f", SAMPLED)
def test_integrals_of_samples(f):
    y = np.array([1.0, 0.5, 0.3, 0.9, 0.2])
    expected = [
        differences(lambda s, i=i: f(np.where(np.arange(5) == i, s, y)), (y[i],))[0]
        for i in range(5)
    ]
    np.testing.assert_allclose(grad(f)(y), expected, rtol=1e-8, atol=1e-9)


def spring(t, u, a):
    return [u[1], -a * u[0]]


def by_odeint(a):
    return integrate.odeint(lambda u, t: [u[1], -a * u[0]], [1.0, a], np.array([0, 0.7, 2.0]))[2, 0]


def by_lsoda(a):
    found = integrate.solve_ivp(
        spring, (0, 2.0), [1.0, a], "LSODA", args=(a,), rtol=1e-8, atol=1e-8
    )
    return found.y[0, -1]


def by_dop853(a):
    found = integrate.solve_ivp(
        lambda t, u: spring(t, u, a), (0, 2.0), [1.0, a], "DOP853", rtol=1e-8, atol=1e-8
    )
    return found.y[0, -1]


@pytest.mark.parametrize("f", [by_odeint, by_lsoda, by_dop853])
def test_differential_equations(f):
    def exact(a):
        ω = math.sqrt(a)
        return math.cos(2 * ω) + a / ω * math.sin(2 * ω)

    expected = differences(exact, (1.3,))[0]
    y, back = pullback(f, 1.3)
    assert y == f(1.3)
    np.testing.assert_allclose(back(1.0)[0], expected, rtol=2e-6)
    np.testing.assert_allclose(jvp(f, (1.3,), (1.0,))[1], expected, rtol=2e-6)


def test_a_stiff_equation():
    def f(k):
        u = integrate.odeint(
            lambda u, t: -k * (u - np.cos(t)), 1.0, [0.0, 1.0], rtol=1e-10, atol=1e-10
        )
        return u[1, 0]

    k = 1e4  # u -> (k² cos t + k sin t) / (k² + 1)
    expected = differences(lambda k: (k * k * math.cos(1) + k * math.sin(1)) / (k * k + 1), (k,), 1)
    np.testing.assert_allclose(1e4**2 * grad(f)(k), 1e4**2 * expected[0], rtol=1e-3)


@pytest.mark.parametrize(
    "integral",
    [
        lambda a: integrate.quad(lambda t: t * a, 0.0, 1.0)[0],
        lambda a: integrate.quad(lambda t: t * t, a, 2.0)[0],
        lambda a: integrate.quad_vec(lambda t: t * a, 0.0, 1.0)[0],
        lambda a: integrate.nquad(lambda t: t * a, [[0.0, 1.0]])[0],
        lambda a: integrate.odeint(lambda y, t: -y * a, [1.0], [0.0, 1.0])[-1, 0],
    ],
)
def test_second_derivatives_of_products_with_the_value(integral):
    check_gradient(lambda a: integral(a) * a, 0.5, order=2)


class Rate:
    def __init__(self, k):
        self.k = k

    def at(self, t):
        return np.exp(-t * self.k)


def in_a_loop(p):
    total = 0.0
    for k in range(3):
        total += integrate.quad(lambda t: np.exp(-t * k), 0, p)[0]
    return total


def by_a_method(p):
    rate = Rate(1.0)
    first = integrate.quad(rate.at, p, 2.0)[0]
    rate.k = 2.0
    return first + integrate.quad_vec(rate.at, 0, p)[0]


def rebound(p):
    k = 2.0
    first = integrate.quad(lambda t: t**k, 0, p)[0]
    k = 3.0
    return first * k


@pytest.mark.parametrize("f", [in_a_loop, by_a_method, rebound])
def test_limits_where_what_the_integrand_captures_changes_afterwards(f):
    check_gradient(f, 0.7)
    slope = (f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 2e-6
    assert jvp(f, (0.7,), (1.0,))[1] == pytest.approx(slope, rel=1e-6)
    if f is rebound:
        with pytest.raises(UnsupportedError, match="captured is another value"):
            hessian(f, 0.7)


def stepped(a):
    return integrate.quad(lambda x: x if x > a else 0.5 * x * x + 1, 0, 2, points=[a])[0]


def split(a):
    def f(x):
        return x if x > a else 0.5 * x * x + 1

    return integrate.quad(f, 0, a)[0] + integrate.quad(f, a, 2)[0]


def backwards(a):
    return integrate.quad(lambda x: np.where(x > a, x, x * x + 1.0), 2.0, 0.0, points=(a, 1.5))[0]


@pytest.mark.parametrize("f", [stepped, split, backwards])
def test_jumps_at_points_that_are_told(f):
    check_gradient(f, 0.7)
    assert jvp(f, (0.7,), (1.0,))[1] == pytest.approx(gradient(f, 0.7)[0])


def test_the_second_derivative_where_a_slope_jumps_at_a_point_that_is_told():
    def f(a):
        return integrate.quad(lambda x: abs(x - a), 0, 2, points=[a])[0]

    assert gradient(f, 0.7)[0] == pytest.approx(-0.6)
    assert hessian(f, 0.7) == pytest.approx(2.0)
