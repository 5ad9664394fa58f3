"""Differentiation inside differentiated code: higher orders, perturbation confusion."""

import math

import numpy as np
import pytest

import morula
from morula import J, Tangent, grad, gradient, pullback, rrule, value_and_grad, withgradient
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


def D(f):
    return lambda x: gradient(f, x)[0]


def power_by_a_loop(x):
    r = 1.0
    for _ in range(4):
        r *= x
    return r


def with_a_branch(x):
    return x**3 if x > 1 else math.sin(x)


def with_a_list(x):
    xs = [x]
    for _ in range(2):
        xs.append(xs[-1] * x)
    return sum(xs)


def with_a_closure(x):
    y = x

    def f(z):
        nonlocal y
        y = y * z
        return y

    return f(x) * f(x)


class Cubic:
    def __init__(self, a):
        self.a = a

    def __call__(self, x):
        return self.a * x**3

    def slope(self, x):
        return gradient(self, x)[0]


@pytest.mark.parametrize(
    ("f", "x", "second"),
    [
        (math.sin, 0.3, -math.sin(0.3)),
        (lambda x: x**5, 2.0, 160.0),
        (lambda x: 1 / x, 2.0, 0.25),
        (power_by_a_loop, 2.0, 48.0),
        (with_a_branch, 2.0, 12.0),
        (with_a_branch, 0.5, -math.sin(0.5)),
        (with_a_list, 2.0, 14.0),
        (with_a_closure, 2.0, 160.0),
        (lambda x: math.exp(2 * x), 0.0, 4.0),
        (lambda x: abs(x) ** 0.5, 4.0, -1 / 32),
        (lambda x: (x * 1j).imag ** 3 + abs(x + 0j) ** 2, 2.0, 14.0),
    ],
)
def test_second_derivatives(f, x, second):
    assert grad(grad(f))(x) == pytest.approx(second, rel=1e-12)
    assert D(D(f))(x) == pytest.approx(second, rel=1e-12)


def test_the_second_derivative_through_methods_of_arrays():
    def f(x):
        return (x.astype(float).reshape(-1) ** 3).sum() + x.__mul__(x).sum()

    np.testing.assert_allclose(D(lambda x: D(f)(x).sum())(np.array([1.0, 2.0])), [8.0, 14.0])


def test_third_derivatives():
    assert grad(grad(grad(math.sin)))(0.3) == pytest.approx(-math.cos(0.3), rel=1e-12)
    assert D(D(D(lambda x: x**5)))(2.0) == pytest.approx(240.0, rel=1e-12)


def test_the_second_derivative_through_the_residual_of_a_rule():
    def cube(x):
        return x * x * x

    @rrule(cube)
    def _(x: float):
        y = cube(x)

        def cube_pullback(ȳ):
            return (ȳ * 3 * y / x,)

        return y, cube_pullback

    assert grad(grad(cube))(2.0) == 12.0


def test_perturbations_are_not_confused():
    assert D(lambda x: x * D(lambda y: x + y)(1.0))(1.0) == 1.0
    assert D(lambda x: x * D(lambda y: x * y)(x))(4.0) == 8.0
    assert D(lambda x: D(lambda y: x * y * y)(x) * x)(3.0) == 54.0


def test_an_inner_function_that_rebinds_an_outer_variable():
    def outer(y):
        x = y

        def inner(z):
            nonlocal x
            x = x * z
            return x

        return gradient(inner, 1.0)[0]

    assert D(outer)(1.0) == 1.0


def test_an_object_that_differentiates_itself():
    assert D(lambda x: Cubic(x).slope(x))(2.0) == pytest.approx(9 * 4.0)
    check_gradient(lambda x: Cubic(x * x).slope(2.0), 1.5)


@pytest.mark.parametrize(
    ("outer", "expected"),
    [
        (lambda x: value_and_grad(lambda y: y**3 * x)(x)[1], 9 * 4.0),
        (lambda x: value_and_grad(lambda y: y**3)(x)[0], 12.0),
        (lambda x: withgradient(lambda y, z: y**2 * z, x, x)[1][1] * x, 12.0),
        (lambda x: pullback(lambda y: (y**3, y), x)[1]((x, 2.0))[0], 36.0),
        (lambda x: J(lambda y: x * y**2, x)[1](1.0)[0].x * x, 12.0),
        (lambda x: grad(lambda a, b: a**2 * b, argnums=(0, 1))(x, x)[0], 8.0),
        (lambda x: grad(lambda a, k: a**2 * k, argnums=0)(2.0, k=x), 4.0),
        (lambda x: grad(lambda a: (a**3, a * x), has_aux=True)(x)[1], 4.0),
        (lambda x: gradient(lambda q: q[0] * q[1] ** 2, [x, x * x])[0][1], 24.0),
        (lambda x: gradient(lambda d: d["a"] ** 3, {"a": x})[0]["a"], 12.0),
        (lambda x: gradient(lambda c: c(2.0) ** 2, Cubic(x))[0].a, 128.0),
        (lambda x: gradient(lambda t: t[0] ** 2 * t[1], (x, x))[0][1], 4.0),
        (lambda x: sum(map(grad(lambda y: y**3), [x, 2 * x])), 6 * 2.0 + 12 * 4.0),
    ],
)
def test_everything_public_may_be_used_inside(outer, expected):
    assert D(outer)(2.0) == pytest.approx(expected, rel=1e-12)


def test_newtons_method_with_gradients_inside():
    def root(a):
        x = 1.0
        for _ in range(20):
            f, slope = value_and_grad(lambda x: x * x - a)(x)
            x = x - f / slope
        return x

    assert gradient(root, 2.0)[0] == pytest.approx(0.5 / math.sqrt(2.0))


def test_second_derivatives_of_arrays():
    a = np.array([[2.0, 1.0], [0.5, 3.0]])

    def f(x):
        return ((a @ x) ** 2).sum() + np.sin(x).sum()

    def along(x):
        return (gradient(f, x)[0] * np.array([1.0, 2.0])).sum()

    x = np.array([0.3, -0.7])
    expected = (2 * a.T @ a - np.diag(np.sin(x))) @ np.array([1.0, 2.0])
    np.testing.assert_allclose(gradient(along, x)[0], expected, rtol=1e-12)


def test_the_inner_gradient_of_nothing_is_zero():
    assert D(lambda x: gradient(lambda y: 3.0 * x, x)[0])(2.0) == 0.0
    assert D(lambda x: x * gradient(lambda y: 1.0, x)[0])(2.0) == 0.0


def test_errors_inside_are_those_of_the_inner_call():
    with pytest.raises(morula.OutputError, match="returned a list"):
        D(lambda x: gradient(lambda y: [y], x)[0])(2.0)
    with pytest.raises(ZeroDivisionError):
        D(lambda x: gradient(lambda y: y / 0, x)[0])(2.0)
    assert D(lambda x: x * x)(2.0) == 4.0  # the tables of the broken passes are gone


def test_tangents_are_differentiated_like_all_objects():
    def f(x):
        t = Tangent[Cubic](a=x) + 2 * Tangent[Cubic](a=x * x)
        return (t * x).a

    assert D(f)(2.0) == pytest.approx(2 * 2.0 + 6 * 4.0)


def doubled_sine(x):
    return 2.0 * math.sin(x)


@rrule(doubled_sine)
def _(x: float):
    y, back = pullback(math.sin, x)
    return 2.0 * y, lambda ȳ: back(2.0 * ȳ)


def test_rules_that_differentiate_are_transposed():
    assert morula.jvp(doubled_sine, (0.7,), (1.0,))[1] == pytest.approx(2.0 * math.cos(0.7))
    assert grad(grad(doubled_sine))(0.7) == pytest.approx(-2.0 * math.sin(0.7))
