"""Gradients of gradients, and products with a Hessian, are programs of their own."""

import functools
import itertools
import math
import pickle

import numpy as np
import pytest

import morula
from morula import (
    NoTangent,
    grad,
    gradient,
    hessian,
    hook,
    hvp,
    ignore_derivatives,
    isderiving,
    jvp,
    nestlevel,
    rrule,
    taylor,
    value_and_grad,
)
from morula.core.compiled import by_the_general_path
from morula.mixed_mode.jacobians import general_hvp, product_for


def reasons(g):
    """Why a gradient function has no programs; empty if it has."""
    programs = g.__dict__["__morula__"].programs.values()
    assert programs
    return [p.reason for p in programs if p.code is None]


def nested(f, order):
    for _ in range(order):
        f = grad(f)
    return f


def bump(x):
    return math.exp(-x * x) / (1.0 + x * x)


def branching(x):
    return x**5 if x > 1 else math.sin(x)


def looping(x):
    r = 1.0
    for _ in range(3):
        r = r * x + math.sin(r)
    return r


def helper(x):
    return math.log(x) * x


def calling(x):
    return helper(x) + helper(x * x)


def a_tuple(x):
    a, (b, c) = x, (x * x, 2.0)
    return a * b**2 / c


@pytest.mark.parametrize("f", [bump, branching, calling, a_tuple])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_orders_by_a_program(f, order):
    g = nested(f, order)
    for x in (0.7, 1.9):
        expected = math.factorial(order) * taylor(f, x, order)[order]
        assert g(x) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert not reasons(g)


def test_a_loop_is_differentiated_twice_by_a_program():
    g = nested(looping, 2)
    assert g(0.8) == pytest.approx(2 * taylor(looping, 0.8, 2)[2], rel=1e-12)
    assert not reasons(g)


def test_the_fifth_derivative():
    assert nested(bump, 5)(0.6) == pytest.approx(120 * taylor(bump, 0.6, 5)[5], rel=1e-9)


def test_a_program_for_all_that_is_captured():
    def scaled(k):
        return grad(grad(lambda x: k * x**3))

    functions = [scaled(float(k)) for k in range(5)]
    assert [g(2.0) for g in functions] == [12.0 * k for k in range(5)]
    assert functions[0].__code__ is functions[4].__code__
    assert scaled(2)(2.0) == 24.0  # an int, now

    k = 1.0
    g = grad(grad(lambda x: k * x**3))
    assert g(1.0) == 6.0
    k = 3.0
    assert g(1.0) == 18.0


factor = 2.0


def with_globals(x):
    return factor * of_three(x)


def of_three(x):
    return x**3


def test_what_the_gradient_asked_is_asked_again(monkeypatch):
    g = grad(grad(with_globals))
    assert g(1.0) == 12.0
    monkeypatch.setitem(globals(), "factor", 5.0)
    assert g(1.0) == 30.0
    monkeypatch.setitem(globals(), "of_three", lambda x: x**4)
    assert g(1.0) == 60.0


def test_a_captured_function_that_changes():
    inner = math.sin

    def f(x):
        return inner(x)

    g = grad(grad(f))
    assert g(1.0) == -math.sin(1.0)
    inner = math.exp
    assert g(1.0) == math.exp(1.0)


def test_defaults_and_keywords():
    def f(x, n=3, *, scale=1.0):
        return scale * x**n

    assert grad(grad(f))(2.0) == 12.0
    assert grad(grad(f))(2.0, 4) == 48.0
    assert grad(grad(f))(2.0, scale=2.0) == 24.0
    assert grad(grad(f, 0), 0)(2.0, n=2) == 2.0
    with pytest.raises(TypeError, match="argument"):
        grad(grad(f))()


@pytest.mark.parametrize("argnums", list(itertools.product([0, 1], repeat=3)))
def test_mixed_derivatives(argnums):
    def f(x, y):
        return x**3 * math.sin(y)

    g = f
    for i in argnums:
        g = grad(g, i)
    x, y, n = 2.0, 0.7, sum(argnums)
    in_x = [x**3, 3 * x**2, 6 * x, 6.0][3 - n]
    in_y = [math.sin(y), math.cos(y), -math.sin(y), -math.cos(y)][n]
    assert g(x, y) == pytest.approx(in_x * in_y)
    assert not reasons(g)


def test_values_and_tuples_and_auxiliary_outputs():
    def f(x, y):
        return x**3 * y

    assert value_and_grad(grad(f))(2.0, 3.0) == (36.0, 36.0)
    assert grad(grad(f), (0, 1))(2.0, 3.0) == (36.0, 12.0)
    assert gradient(grad(f, 1), 2.0, 3.0) == (12.0, 0.0)
    assert grad(value_and_grad(f), has_aux=True)(2.0, 3.0) == (36.0, 36.0)
    with pytest.raises(TypeError, match="tuple"):
        grad(grad(f, (0, 1)))(2.0, 3.0)


def test_types_of_arguments():
    def f(x):
        return (x**3).sum()

    def total(x):
        return grad(f)(x).sum()

    assert grad(grad(lambda x: x**3))(2) == 12.0
    for dtype in ("f4", "f8"):
        x = np.array([1.0, 2.0], dtype)
        found = hvp(f, x, np.ones_like(x))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, [6.0, 12.0])
        np.testing.assert_array_equal(gradient(total, x)[0], [6.0, 12.0])
    x = np.arange(3)
    np.testing.assert_array_equal(hvp(f, x, np.ones(3)), 6.0 * x)
    np.testing.assert_array_equal(hvp(f, np.ones((2, 3)), np.ones((2, 3))), np.full((2, 3), 6.0))
    z = np.array([1.0 + 1j])
    assert hvp(lambda z: (abs(z) ** 2).sum(), z, z)[0] == pytest.approx(2 + 2j)
    assert hvp(lambda p: p["a"] ** 3 * p["b"][0], {"a": 1.0, "b": [2.0]}, {"a": 1.0}) == {
        "a": 12.0,
        "b": [3.0],
    }


def test_pickled_gradients_of_gradients():
    g = grad(grad(bump))
    assert g(0.5) == pickle.loads(pickle.dumps(g))(0.5)


def test_a_rule_that_comes_later():
    def cube(x):
        return x * x * x

    g = grad(grad(lambda x: cube(x)))
    assert g(2.0) == 12.0

    @rrule(cube)
    def _(x: float):
        return cube(x), lambda ȳ: (ȳ * 5 * x * x,)

    assert g(2.0) == 20.0
    outer = grad(grad(cube))
    assert outer(2.0) == 20.0

    @rrule(cube)
    def _(x: float):
        return cube(x), lambda ȳ: (NoTangent(),)

    assert outer(2.0) == 0.0


# -- what is said of the level of differentiation --------------------------------------------------


@pytest.mark.parametrize(
    ("f", "second"),
    [
        (lambda x: x * ignore_derivatives(x), 0.0),
        (lambda x: x * x * ignore_derivatives(x), 4.0),
        (lambda x: x * x * nestlevel(), 4.0),
        (lambda x: x**3 if isderiving() else x, 12.0),
        (lambda x: hook(lambda x̄: 5 * x̄, x) ** 2, 10.0),
        (lambda x: x * math.floor(x), 0.0),
        (lambda x: float(np.where(x > 1, x**3, x)), 12.0),
    ],
)
def test_constants_and_levels(f, second):
    assert grad(grad(f))(2.0) == second


# -- products with a Hessian -----------------------------------------------------------------------


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def layers(x):
    w = np.reshape(x[:4], (2, 2))
    return np.sum(np.tanh(w @ x[:2] + x[4]) ** 2)


def softmax(x):
    e = np.exp(x - np.max(x))
    return np.sum((e / e.sum()) ** 2)


def entries(x):
    s = 0.0
    for i in range(1, len(x)):
        s = s + x[i] * x[i - 1] ** 2
    return s * s


def written(x):
    y = np.zeros(5)
    for i in range(5):
        y[i] = x[i] ** 2
    y[1:] += x[:-1] ** 3
    return np.sum(y * x)


def appended(x):
    ys = []
    for v in x:
        ys.append(v * v)
    return ys[0] * ys[1] + ys[2]


def orbit(p):
    """Arrays that a loop hands on; those of the last step have cotangents before the others."""
    y, h = p[:2], 0.1

    def slope(y):
        return np.array([p[2] * y[1], -p[3] * np.sin(y[0])])

    for _ in range(7):
        k = slope(y)
        y = y + h * slope(y + 0.5 * h * k)
    return np.sum(y**2)


def flow(p):
    """A tuple that a loop hands on."""
    state = p[0], p[1]
    for i in range(6):
        a, b = state
        state = (a + 0.1 * b, b - p[2] * math.sin(a)) if i % 3 else (a * b, b)
    return state[0] * state[1]


def nest(p):
    """Loops in loops, of lengths that depend on the numbers."""
    s = p[0]
    for i in range(3):
        t = s
        while abs(t) > 0.3:
            t = t * 0.5 * p[1]
            if t > 0.5:
                t = t * p[2]
        s = s + t * i
    return s


def some(p):
    """A loop that may not run, and residuals that are only there if it does."""
    s = p[0] * p[0]
    if p[1] > 0.5:
        for i in range(2):
            s = s + math.exp(s * p[1]) * i
    for _ in range(int(p[4] > 1.0)):
        s = s * p[2]
    return s * math.sin(s)


def sweep(p):
    """What is a structural zero at the end of the loop, where the cotangents begin."""
    s, q = 0.0, p
    for _ in range(4):
        s = s + np.sum(q * q[0])
        q = np.maximum(q * p, 0.1) + np.abs(q)
    return s


def powers(p):
    s = 0.0
    for i in range(3):
        s = s + float(p[i]) ** 1.5 * 2.0 ** p[3] + p[1] ** p[2]
    return s


@pytest.mark.parametrize(
    ("f", "is_compiled"),
    [
        (orbit, True),
        (flow, True),
        (nest, True),
        (some, True),
        (sweep, False),
        (powers, True),
        (rosenbrock, True),
        (layers, True),
        (softmax, True),
        (entries, True),
        (written, False),
        (appended, False),
        (lambda x: np.linalg.norm(x) ** 3, False),
        (lambda x: np.cumsum(x)[2] ** 2 * np.max(x), True),
        (lambda x: np.sum(np.sort(x) ** np.arange(5)), False),
        (lambda x: np.sum(np.linalg.solve(np.outer(x, x) + np.eye(5), x)), False),
    ],
)
def test_products_agree_with_forward_over_reverse(f, is_compiled):
    x, v = np.array([0.4, 0.9, 1.3, 0.7, 0.2]), np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    expected = general_hvp(f, x, v)
    np.testing.assert_allclose(hvp(f, x, v), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(hessian(f, x) @ v, expected, rtol=1e-10, atol=1e-12)
    product = product_for(f, x)
    assert not is_compiled or not reasons(product)
    if is_compiled:
        x[3] = v[2]
        again = hvp(f, x, v)
        kept = again.copy()
        hvp(f, x, 2 * v)
        np.testing.assert_array_equal(again, kept)


def test_products_at_kinks():
    x = np.array([0.0, 0.0, 2.0])
    with np.errstate(all="ignore"):
        for f in (
            lambda x: np.sum(x**2) + np.sum(x**3),
            lambda x: np.sum(np.maximum(x, 0.0) ** 2),
            lambda x: np.max(x) ** 2 + np.min(x) * 3.0,
            lambda x: np.sum(np.where(x > 1.0, np.sqrt(x - 1.0), x * x)),
            lambda x: np.sum(abs(x)) * x[2],
            lambda x: np.prod(x + np.array([0.0, 1.0, 1.0])),
        ):
            found, expected = hvp(f, x, np.ones(3)), general_hvp(f, x, np.ones(3))
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            assert np.isfinite(found).all()


def test_products_with_more_arguments():
    def f(x, a, b=2.0):
        return a * np.sum(x**3) * b

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(hvp(f, x, np.ones(2), 1.0), 12.0 * x)
    np.testing.assert_array_equal(hvp(f, x, np.ones(2), 1.0, 5.0), 30.0 * x)
    assert hvp(lambda x: x**3, 2.0, 1) == 12.0
    assert hvp(lambda x: x**3, 2.0, None) == 0.0


def test_errors_of_products():
    def f(x):
        return np.sum(x**2)

    with pytest.raises(ValueError, match="argument 0"):
        hvp(f, np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="argument 0"):
        hvp(f, np.ones(3), 1j * np.ones(3))
    with pytest.raises(TypeError, match="shape"):
        hvp(lambda x: x**2, np.ones(3), np.ones(3))
    with pytest.raises(ZeroDivisionError):
        hvp(lambda x: 1 / x, 0.0, 1.0)


def test_products_within_differentiated_code():
    assert morula.jvp(lambda x: hvp(lambda x: x**4, x, 1.0), (2.0,), (1.0,)) == (48.0, 48.0)
    assert gradient(lambda a: a * hvp(lambda x: x**3, 2.0, 1.0), 5.0) == (12.0,)


def test_a_fresh_function_at_every_call_costs_no_compilation(monkeypatch):
    hvp(lambda x: 1.0 * x**3, 2.0, 1.0)
    done = []
    compiled = morula.core.compiled.Gradient.compile
    monkeypatch.setattr(
        morula.core.compiled.Gradient, "compile", lambda *args: done.append(1) or compiled(*args)
    )
    for k in range(20):
        a = float(k)
        assert hvp(lambda x: a * x**3, 2.0, 1.0) == 12.0 * a
        assert grad(grad(lambda x: a * x**2))(2.0) == 2.0 * a
    assert len(done) == 2


def test_by_the_general_path_there_is_no_program():
    with by_the_general_path():
        assert grad(grad(bump))(0.5) == pytest.approx(2 * taylor(bump, 0.5, 2)[2])
        assert hvp(bump, 0.5, 2.0) == pytest.approx(4 * taylor(bump, 0.5, 2)[2])


def cubic(x, y=2.0, z=3.0):
    return x**3 * y * z * z


class Cubic:
    def value(self, x):
        return x**3


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: grad(cubic), 432.0),
        (lambda: functools.partial(grad(cubic), z=3.0), 432.0),
        (lambda: lambda x: value_and_grad(cubic)(x)[1], 432.0),
        (lambda: grad(grad(cubic)), 216.0),
        (lambda: grad(Cubic().value), 24.0),
    ],
)
def test_a_gradient_function_that_was_made_before_is_differentiated(made, expected, warm):
    g = made()
    if warm:
        g(1.5)

    def program(x):
        return g(x) * 2.0

    assert grad(program)(2.0) == pytest.approx(expected)
    assert grad(program)(np.float64(2.0)) == pytest.approx(expected)
    assert gradient(program, 2.0) == pytest.approx((expected,))
    assert jvp(program, (2.0,), (1.0,))[1] == pytest.approx(expected)


def root_within_bounds(x):
    y = x
    n = 0
    while abs(y * y - x) > 1e-14 and n < 30:
        y = 0.5 * (y + x / y)
        n += 1
    return y


def power_until(x):
    y = x
    n = 0
    while y < 100:
        if n >= 3:
            break
        y = y * y
        n += 1
    return y


@pytest.mark.parametrize(
    ("f", "second", "third"),
    [
        (root_within_bounds, -0.25 * 1.3**-1.5, 0.375 * 1.3**-2.5),
        (power_until, 56 * 1.3**6, 336 * 1.3**5),
    ],
)
def test_loops_that_are_left_in_several_places(f, second, third):
    assert grad(grad(f))(1.3) == pytest.approx(second, rel=1e-12)
    assert hessian(f, 1.3) == pytest.approx(second, rel=1e-12)
    assert grad(grad(grad(f)))(1.3) == pytest.approx(third, rel=1e-12)
