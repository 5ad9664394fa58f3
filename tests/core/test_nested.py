"""Tests of morula/core/nested.py: derivatives that differentiated functions take themselves."""

import contextlib
import functools
import math

import numpy as np
import pytest

import morula
from morula import (
    diaghessian,
    grad,
    gradient,
    hessian,
    hook,
    hvp,
    nestlevel,
    value_and_grad,
    withgradient,
)
from morula.core.extend import by_the_general_path

OUTSIDE = 2.5


class Model:
    def __init__(self, w):
        self.w = w

    def cube(self, y):
        return self.w * y**3

    def slope(self, y):
        return grad(self.cube)(y)


def cube(y, k=3.0):
    return k * y**3


slope_of_cube = grad(cube)
curvature_of_cube = grad(grad(cube))


def steps(x):
    z = x
    for _ in range(4):
        z = z - 0.1 * grad(lambda y: (y * y - x) ** 2)(z)
    return z


def newton(x):
    def f(y):
        return y**3 - x

    slope, y = grad(f), 1.0
    for _ in range(6):
        y = y - f(y) / slope(y)
    return y


def newton_until_exact(x):
    y = 1.0
    while abs(y * y - x) > 1e-9:
        y = y - (y * y - x) / grad(lambda z: z * z - x)(y)
    return y


def momentum(x):
    y, speed, value = 0.5, 0.0, 0.0
    for _ in range(4):
        value, slope = value_and_grad(lambda z: (z * z - x) ** 2)(y)
        speed = 0.9 * speed + slope
        y = y - 0.05 * speed
    return y * value


def loops_in_each_other(x):
    total = 0.0
    for task in (0.5, 1.0, 1.5):
        y = x
        for _ in range(3):
            y = y - 0.1 * grad(lambda z, task: math.tanh(z * task) ** 2)(y, task)
        total = total + y * y * task
    return total


def captured_and_rebound(x):
    k = x

    def f(y):
        return y**3 * k

    first = grad(f)(x)
    k = k * 2
    return first + grad(f)(x)


def captured_and_changed_inside(x):
    n = 0

    def f(y):
        nonlocal n
        n += 1
        return y**3 * x

    return grad(f)(x) * n


def made_later(x):
    def f(y):
        return h(y) * x

    def h(y):
        return y**3

    return grad(f)(x)


def with_an_exception(x):
    def f(y):
        try:
            if y > 1:
                raise ValueError(y * 2)
            return y
        except ValueError as error:
            return error.args[0] ** 2

    return grad(f)(x)


def with_a_buffer(x):
    def f(v):
        w = np.zeros(2)
        w[0] = v[0] * x
        w[1] = w[0] * v[1]
        return w.sum()

    return grad(f)(np.array([x, 2 * x])).sum()


def one_function_twice(x):
    g, s = grad(lambda y: y**3), 0.0
    for _ in range(3):
        s = s + g(x + s * 0.1)
    return s


def factorial(n, y):
    return 1.0 if n == 0 else y * factorial(n - 1, y) * n


def pair_of(both):
    return both[0] * both[1]


INLINED = {
    "captures": lambda x: grad(lambda y: y**3 * x)(x),
    "a global variable": lambda x: grad(lambda y: OUTSIDE * y**2 * x)(x),
    "made before": lambda x: slope_of_cube(x),
    "made before, with a default value given": lambda x: slope_of_cube(x, x),
    "made before, twice": lambda x: curvature_of_cube(x),
    "the second argument": lambda x: grad(lambda a, b: a**2 * b**3, argnums=1)(x, 2 * x),
    "gradient": lambda x: gradient(lambda a, b: a**2 * b**3, x, x * 3)[1],
    "value_and_grad": lambda x: pair_of(value_and_grad(lambda a: a**3)(x)),
    "has_aux": lambda x: pair_of(grad(lambda a: (a**3, a * 2), has_aux=True)(x)),
    "a branch": lambda x: grad(lambda y: y**3 if y > 1 else y**2)(x),
    "by an integer": lambda x: grad(lambda y: y**3 * x)(2),
    "of a constant": lambda x: grad(lambda y: y**3)(2.0) * x,
    "gradient of a gradient": lambda x: grad(grad(lambda y: y**4 * x))(x),
    "a function made later": made_later,
    "a function of math": lambda x: grad(lambda y: math.sin(y) * y)(x) * x,
    "a tuple": lambda x: pair_of(grad(lambda t: t[0] ** 2 * t[1] ** 3)((x, 2 * x))),
    "a keyword": lambda x: grad(cube)(x, k=x),
    "argnums from the end": lambda x: grad(lambda a, b: a**2 * b**3, -1)(x, 2 * x),
    "in a loop": steps,
    "Newton's method": newton,
    "Newton's method until it is exact": newton_until_exact,
    "momentum": momentum,
    "loops in each other": loops_in_each_other,
    "hvp": lambda x: hvp(lambda y: y**4 * x, x, x * 2),
    "hvp with an argument": lambda x: hvp(lambda y, k: y**4 * k, x, 2.0, x),
    "hessian": lambda x: hessian(lambda y: y**4 * x, x),
    "a function that gives the hessian": lambda x: hessian(lambda y: y**4 * x)(x),
    "diaghessian": lambda x: diaghessian(lambda y: y**4 * x, x),
}  # fmt: skip
THIRD_ORDER = (  # slow on the general path
    "made before, twice", "gradient of a gradient", "hvp", "hvp with an argument", "hessian",
    "a function that gives the hessian", "diaghessian",
)  # fmt: skip
OTHERS = {
    "levels": lambda x: grad(lambda y: y**3 * nestlevel() / 2)(x),
    "a hook": lambda x: grad(lambda y: hook(lambda c: c, y) ** 3)(x),
    "withgradient": lambda x: (lambda r: r[0] * r[1][0])(withgradient(lambda a: a**3, x)),
    "a default value that is captured": lambda x: grad(lambda y, k=x: k * y**3)(x),
    "two arguments": lambda x: sum(grad(lambda a, b: a**2 * b**3, (0, 1))(x, 2 * x)),
    "a method": lambda x: Model(x).slope(x),
    "in a generator": lambda x: sum(grad(lambda y: y**3 * k)(x) for k in range(3)),
    "rebound": captured_and_rebound,
    "changed inside": captured_and_changed_inside,
    "an exception": with_an_exception,
    "a buffer": with_a_buffer,
    "one function several times": one_function_twice,
    "recursion": lambda x: grad(lambda y: factorial(3, y))(x),
    "an array": lambda x: (grad(lambda v: np.sin(v @ v))(np.array([x, 2 * x])) ** 2).sum(),
    "a list": lambda x: pair_of(grad(lambda t: t[0] ** 2 * t[1] ** 3)([x, 2 * x])),
    "complex": lambda x: grad(lambda y: abs(np.exp(1j * y) * y) ** 2)(x),
    "max": lambda x: grad(lambda y: max(y * y * y, x))(x + 1),
    "partial": lambda x: functools.partial(grad(lambda a, b: a**2 * b**2), x)(x),
    "map": lambda x: sum(map(grad(lambda a: a**3), [x, 2 * x])),
    "one of two": lambda x: (grad(math.sin) if x > 0 else grad(math.cos))(x),
    "nothing": lambda x: x if grad(lambda y: x * x)(x) in (None, 0.0) else 2 * x,
}


EXACT = set(INLINED) - {"levels"}


@pytest.mark.parametrize("x", [1.3, 0.6])
@pytest.mark.parametrize("name", [*INLINED, *OTHERS])
def test_both_paths_agree_with_differences(name, x):
    f, h = {**INLINED, **OTHERS}[name], 1e-6
    expected = (f(x + h) - f(x - h)) / (2 * h)
    if name == "levels":
        expected *= 2  # one level more
    paths = [contextlib.nullcontext, by_the_general_path]
    for path in paths[: 1 if name in THIRD_ORDER else 2]:
        with path():
            y, (found,) = morula.withgradient(f, x)
            plain = 2 * f(x) if name == "levels" else f(x)
            # What is inlined is computed as in the plain call, bit for bit; other inner gradients may
            # be programs there, and here not, which multiply in another order.
            exact = name in EXACT and path is contextlib.nullcontext
            assert y == (plain if exact else pytest.approx(plain, rel=1e-14))
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", INLINED)
def test_what_is_inlined(name):
    text = str(morula.code_adjoint(INLINED[name], 1.3))
    assert "call_from_program" not in text
    assert text.splitlines()[0].startswith("# specialised")


def network(layers, x):
    for w, b in layers[:-1]:
        x = np.tanh(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


@pytest.mark.parametrize("kind", [tuple, list])
def test_the_slope_of_a_network_in_its_loss(kind):
    rng = np.random.default_rng(1)
    shapes = [(1, 4), (4, 4), (4, 1)]
    layers = kind([(rng.normal(size=s), rng.normal(size=s[1])) for s in shapes])
    points = np.linspace(0.0, 1.0, 5)[:, None]

    def loss(layers):
        slope = grad(lambda x: np.sum(network(layers, x)))(points)
        return np.mean((slope - np.cos(points)) ** 2)

    assert "interface.grad" not in str(morula.code_adjoint(loss, layers))
    value, (found,) = morula.withgradient(loss, layers)
    assert value == loss(layers)
    assert type(found) is kind
    with by_the_general_path():
        (general,) = gradient(loss, layers)
    for a, b in zip(found, general, strict=True):
        np.testing.assert_allclose(a[0], b[0], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(a[1], b[1], rtol=1e-10, atol=1e-13)
    step = kind([(rng.normal(size=s), rng.normal(size=s[1])) for s in shapes])

    def moved(h):
        pairs = zip(layers, step, strict=True)
        return kind([(w + h * dw, b + h * db) for (w, b), (dw, db) in pairs])

    along = sum(
        np.sum(g * d) for pair in zip(found, step, strict=True) for g, d in zip(*pair, strict=True)
    )
    differences = (loss(moved(1e-6)) - loss(moved(-1e-6))) / 2e-6
    assert along == pytest.approx(differences, rel=1e-6)


def test_the_curvature_of_a_network_in_its_loss():
    rng = np.random.default_rng(2)
    layers = tuple((rng.normal(size=s), rng.normal(size=s[1])) for s in [(1, 4), (4, 1)])
    points = np.linspace(0.0, 1.0, 5)[:, None]

    def loss(layers):
        def u(x):
            return np.sum(network(layers, x))

        curvature = grad(lambda x: np.sum(grad(u)(x)))(points)
        return np.mean((curvature + np.sin(points)) ** 2)

    assert "call_from_program" not in str(morula.code_adjoint(loss, layers))
    (found,) = gradient(loss, layers)
    (w, b), last = layers
    h = 1e-5
    for i in range(4):
        step = np.zeros(4)
        step[i] = h
        up, down = loss(((w, b + step), last)), loss(((w, b - step), last))
        assert found[0][1][i] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-9)


WEIGHTS = np.array([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [0.1, 0.2, 1.0]])
ALONG = np.array([1.0, -2.0, 0.5])


def energy(x):
    return np.sum(np.tanh(WEIGHTS @ x) ** 2)


def energy_of_table(x):
    return np.sum(np.tanh(WEIGHTS @ x) ** 2 * x)


def scaled(x, k):
    return np.sum(np.tanh(WEIGHTS @ x * k) ** 2)


def steepest_descent(x):
    for _ in range(3):
        slope = grad(energy)(x)
        x = x - slope * (slope @ slope) / (slope @ hvp(energy, x, slope) + 5.0)
    return np.sum(x**2)


def newton_with_the_hessian(x):
    for _ in range(3):
        table = hessian(energy, x) + 4 * np.eye(3)
        x = x - np.linalg.solve(table, grad(energy)(x))
    return np.sum(x**2)


def leapfrog(q):
    def hamiltonian(q, p):
        return p @ p / 2 + energy(q)

    force, speed = grad(hamiltonian, 0), grad(hamiltonian, 1)
    p = ALONG
    for _ in range(4):
        p = p - 0.05 * force(q, p)
        q = q + 0.1 * speed(q, p)
        p = p - 0.05 * force(q, p)
    return q @ p


def energy_of_entries(x):
    return (1 - x[0]) ** 2 * x[2] + 3.0 * (x[1] - x[0] ** 2) ** 2 + x[2] ** 4


def recorded(x):
    table = np.zeros((4, 3))
    for i in range(4):
        value, slope = value_and_grad(scaled)(x, k=1.5)
        x = x - 0.1 * slope
        table[i] = x * value
    return np.sum(table**2)


OF_ARRAYS = {
    "steepest descent": steepest_descent,
    "Newton's method": newton_with_the_hessian,
    "leapfrog": leapfrog,
    "recorded": recorded,
    "hvp": lambda x: np.sum(hvp(energy, x, ALONG) ** 2),
    "hvp by its direction": lambda x: np.sum(hvp(energy, ALONG, x) ** 3),
    "hvp by a further argument": lambda x: np.sum(hvp(scaled, ALONG, ALONG, x) ** 2),
    "hvp in a loop": lambda x: sum(np.sum(hvp(energy, x, w) ** 2) for w in WEIGHTS),
    "hvp of a gradient": lambda x: np.sum(grad(lambda y: np.sum(grad(energy)(y) * ALONG))(x) ** 2),
    "hessian": lambda x: np.sum(hessian(energy, x) ** 2),
    "a function that gives the hessian": lambda x: np.sum(hessian(energy)(x) ** 2),
    "the determinant": lambda x: np.linalg.slogdet(hessian(energy, x) + 3 * np.eye(3))[1],
    "the trace": lambda x: np.trace(hessian(energy, x)) ** 2,
    "diaghessian": lambda x: np.sum(diaghessian(energy, x) ** 2),
    "of entries": lambda x: np.sum(hessian(energy_of_entries, x) ** 2),
    "hvp of entries": lambda x: np.sum(hvp(energy_of_entries, x, x * ALONG) ** 2),
    "of a table": lambda x: np.sum(hessian(energy_of_table, np.stack([x, x * x], 1)) ** 2),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_second_derivatives_in_a_loss(name):
    f, x, h = OF_ARRAYS[name], np.array([0.3, -0.2, 0.4]), 1e-5
    assert "call_from_program" not in str(morula.code_adjoint(f, x))
    value, (found,) = withgradient(f, x)
    assert value == f(x)
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "take", [pytest.param(hvp, marks=pytest.mark.thorough), hessian, diaghessian]
)
def test_second_derivatives_elsewhere(take):
    """In the spaces that programs do not take into themselves: complex numbers, structures."""

    def loss(k, z):
        def f(z):
            return abs(z) ** 4 * k

        return abs(take(f, z, 1.0 + 0.5j) if take is hvp else take(f, z))

    z, h = 0.5 + 0.25j, 1e-6
    (found, _) = gradient(loss, 1.5, z)
    assert found == pytest.approx((loss(1.5 + h, z) - loss(1.5 - h, z)) / (2 * h), rel=1e-6)


def test_four_levels():
    def f(x):
        return grad(lambda y: grad(lambda z: grad(lambda t: t**5 * y)(z) * x)(y))(x)

    differences = (f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6
    assert gradient(f, 1.3)[0] == pytest.approx(differences, rel=1e-6)


def test_derivatives_in_loops_that_are_not_what_was_expected():
    """They are taken to be like the argument first; here none of them can be built."""

    def listed(x):
        z = x
        for _ in range(3):
            items = []

            def f(y, items=items):
                items.append(y * x)
                return items[-1] ** 2 * y

            z = z - 0.1 * grad(f)(z)
        return z

    def of_an_integer(x):
        z = 1
        for _ in range(4):
            z = z - (z**3 - x) / grad(lambda y: y**3 - x)(z)
        return z

    for f in (listed, of_an_integer):
        value, (found,) = withgradient(f, 1.3)
        assert value == f(1.3)
        assert found == pytest.approx((f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6, rel=1e-6)


def test_effects_happen_once():
    seen = []

    def f(x):
        return grad(lambda y: (seen.append("inside"), y**3)[1])(x)

    assert gradient(f, 2.0) == (12.0,)
    assert seen == ["inside"]


def test_a_gradient_function_that_is_changed():
    def square(y):
        return y**2

    g = grad(square)

    def f(x):
        return g(x) * x

    assert gradient(f, 3.0) == (12.0,)
    square.__code__ = (lambda y: y**3).__code__
    assert gradient(f, 3.0) == pytest.approx((81.0,))


def writes(z):
    z[0] = z[1] * z[0]
    z *= 2.0
    return np.sum(z**3)


@pytest.mark.parametrize(
    "at", [lambda z: z.copy(), lambda z: z * 1.0, lambda z: np.array([z[0], z[1]])]
)
def test_a_function_that_writes_to_its_argument(at):
    v, x = np.array([1.0, 2.0]), np.array([0.3, 0.5])
    (found,) = gradient(lambda z: np.vdot(gradient(writes, at(z))[0], v), x)
    np.testing.assert_allclose(found, [12 * 0.84 * 0.5, 50.916], rtol=1e-9)
