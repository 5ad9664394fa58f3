"""Derivatives of derivatives, in all mixes of the modes; perturbations are not confused."""

import itertools
import math
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

from morula import Tangent, frule, gradient, hessian, hvp, jvp, pullback, pushforward, rrule, taylor
from morula.core import context, memory, verify
from morula.mixed_mode.jacobians import general_hvp
from morula.mixed_mode.push import push


@pytest.fixture(autouse=True)
def unverified(monkeypatch):
    """The programs of third order are large: the form of each is verified elsewhere."""
    monkeypatch.setattr(verify, "enabled", False)


DERIVATIVES = {
    "f": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "r": lambda f: lambda x: gradient(f, x)[0],
}
PAIRS = ["".join(pair) for pair in itertools.product("fr", repeat=2)]


def nested(order, f):
    for mode in reversed(order):
        f = DERIVATIVES[mode](f)
    return f


SLOW = ("rrf", "rfr", "rff")  # half a minute each


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(order, marks=[pytest.mark.thorough] if order in SLOW else [])
        for order in map("".join, itertools.product("fr", repeat=3))
    ],
)
def test_third_derivatives(order):
    assert nested(order, lambda x: x**3 * math.sin(x))(2.0) == pytest.approx(-38.93103422809044)


def a_loop(x):
    r = 1.0
    for _ in range(4):
        r *= x
    return r


def a_branch(x):
    return x**3 if x > 1 else math.sin(x)


def a_list(x):
    xs = [x]
    for _ in range(2):
        xs.append(xs[-1] * x)
    return sum(xs)


def a_closure(x):
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


def arrays(x):
    v = np.array([x, x * x, 2.0])
    return np.sum(np.exp(0.1 * v) * v[::-1]) / np.mean(v)


SCALARS = [
    (a_loop, 48.0),
    (a_branch, 12.0),
    (a_list, 14.0),
    (a_closure, 160.0),
    (lambda x: Cubic(x)(x), 48.0),
    (lambda x: {"a": x * x}["a"] * (x, x)[1], 12.0),
    (lambda x: 1 / x, 0.25),
    (lambda x: (x * 1j).imag ** 3 + abs(x + 0j) ** 2, 14.0),
]


@pytest.mark.parametrize("order", PAIRS)
@pytest.mark.parametrize(("f", "second"), SCALARS)
def test_second_derivatives(order, f, second):
    assert nested(order, f)(2.0) == pytest.approx(second, rel=1e-12)


@pytest.mark.parametrize("order", PAIRS)
def test_perturbations_are_not_confused(order):
    outer, inner = [DERIVATIVES[mode] for mode in order]
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0
    assert outer(lambda x: x * inner(lambda y: x * y)(x))(4.0) == 8.0

    def rebinding(y):
        x = y

        def f(z):
            nonlocal x
            x = x * z
            return x

        return inner(f)(1.0)

    assert outer(rebinding)(1.0) == 1.0


@pytest.mark.parametrize("order", PAIRS)
def test_an_object_that_differentiates_itself(order):
    outer, inner = [DERIVATIVES[mode] for mode in order]

    class Model:
        def __init__(self, w):
            self.w = w

        def __call__(self, x):
            return self.w * x**3

        def slope(self, x):
            return inner(self)(x)

    assert outer(lambda w: Model(w).slope(w))(2.0) == 36.0


@pytest.mark.parametrize("order", PAIRS)
def test_a_rule_that_keeps_its_result(order):
    def cube(x):
        return x * x * x

    @rrule(cube)
    def _(x: float):
        y = cube(x)
        return y, lambda ȳ: (ȳ * 3 * y / x,)

    assert nested(order, cube)(2.0) == pytest.approx(12.0)


@pytest.mark.parametrize("order", PAIRS)
def test_a_forward_rule_and_what_it_rests_on(order):
    def f(x):
        return x**3

    @frule(f)
    def _(x: float):
        return f(x), lambda ẋ: 3 * x * x * ẋ

    assert nested(order, lambda x: f(x) * x)(2.0) == pytest.approx(48.0)


# -- three ways to a Hessian -----------------------------------------------------------------------


def network(x):
    w = np.reshape(x[:4], (2, 2))
    return np.sum(np.tanh(w @ np.array([0.3, -0.7]) + x[4]) ** 2)


def a_product_by_a_loop(x):
    p = 1.0
    for i in range(len(x)):
        p = p * (x[i] + i)
    return p


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def by_parts(x):
    d = {"a": x[:2], "b": [x[2], x[3] * x[4]]}
    return np.sum(d["a"] ** 3) * d["b"][0] + d["b"][1] ** 2


def a_conditional(x):
    s = 0.0
    for v in x:
        s = s + (v**3 if v > 0.5 else np.sin(v))
    return s * s


A = np.arange(25.0).reshape(5, 5) / 10.0 + 2 * np.eye(5)
FUNCTIONS = [
    network,
    a_product_by_a_loop,
    rosenbrock,
    by_parts,
    a_conditional,
    lambda x: x @ A @ x,
    lambda x: np.sum(x) ** 3,
    lambda x: np.exp(np.dot(x, x) / 10),
    lambda x: np.log(np.sum(np.exp(x))),
    lambda x: np.prod(x),
    lambda x: np.linalg.norm(x),
    lambda x: np.sqrt(np.sum(x**2) + 1.0),
    lambda x: np.mean(x**3) - np.var(x),
    lambda x: np.sum(np.cumsum(x) ** 2),
    lambda x: np.sum(np.outer(x, x**2)),
    lambda x: np.sum(np.sin(x[::2]) * np.cos(x[1]) / x[2]),
    lambda x: np.max(x) ** 2 * np.min(x),
    lambda x: np.einsum("i,ij,j->", x, A, x * x),
    lambda x: np.sum(np.linalg.solve(A + np.diag(x), x)),
    lambda x: math.fsum([math.log(v) * v for v in x.tolist()]),
]


@pytest.mark.parametrize("i", range(len(FUNCTIONS)))
def test_three_ways_to_a_hessian(i):
    f = FUNCTIONS[i]
    x = np.array([0.4, 0.9, 1.3, 0.7, 0.2])
    found = hessian(f, x)
    e = np.eye(5)[1]

    def slope(y):
        return jvp(f, (y,), (e,))[1]

    def slope_of_gradient(y):
        return gradient(f, y)[0][1]

    np.testing.assert_allclose(found, found.T, atol=1e-11)
    routes = {
        "reverse over reverse": gradient(slope_of_gradient, x)[0],
        "reverse over forward": gradient(slope, x)[0],
        "forward over forward": [jvp(slope, (x,), (d,))[1] for d in np.eye(5)],
    }
    for route, row in routes.items():
        np.testing.assert_allclose(row, found[1], rtol=1e-9, atol=1e-11, err_msg=route)


def tripled(x):
    return 3.0 * x


@rrule(tripled)
def _(x):
    def tripled_pullback(ȳ):
        if x > 1:
            raise ValueError("too large")
        return (3.0 * ȳ,)

    return 3.0 * x, tripled_pullback


def written_to(x):
    y = np.zeros(2) + x
    y[0] = tripled(x[0])
    return y[0] * y[1]


BROKEN_OFF = {
    "hessian": lambda x: hessian(written_to, x),
    "gradient of gradient": lambda x: gradient(lambda x: gradient(written_to, x)[0].sum(), x),
    "jvp of gradient": lambda x: jvp(lambda x: gradient(written_to, x)[0], (x,), (x,)),
    "series": lambda x: taylor(lambda t: gradient(written_to, t * x)[0].sum(), 1.0, 2),
}


@pytest.mark.parametrize("way", BROKEN_OFF)
def test_a_pass_that_is_broken_off_leaves_nothing_to_later_ones(way):
    """It had left the memory that was written to, beside which others then kept cotangents."""
    x = np.array([2.0, 3.0])
    with pytest.raises(ValueError, match="too large"):
        BROKEN_OFF[way](x)
    assert (memory.present(), context.adjoint_if_any(x)) == (None, None)
    with pytest.raises(RuntimeError, match="outside of a reverse pass"):
        context.adjoint_of(x)
    ones = np.ones(2)
    np.testing.assert_array_equal(gradient(written_to, ones)[0], [3.0, 3.0])
    np.testing.assert_array_equal(hessian(written_to, ones), [[0.0, 3.0], [3.0, 0.0]])


def test_hessians_in_reverse_mode():
    assert gradient(lambda x: hessian(lambda u: u**4 * x, x), 1.3)[0] == pytest.approx(36 * 1.3**2)


class Body:
    def __init__(self, place, mass):
        self.place, self.mass, self.name = place, mass, "body"


def energy_of(body):
    return np.sum(body.place**3) * body.mass**2


def slope_of(body):
    return gradient(energy_of, body)[0]


BODY, ALONG = Body(np.array([1.0, 2.0]), 2.0), Tangent[Body](place=np.ones(2), mass=1.0)


def test_the_tangent_of_a_gradient_by_an_object_mirrors_the_object():
    body, t = BODY, ALONG
    second = Tangent[Body](place=np.array([36.0, 96.0]), mass=78.0)
    assert hvp(energy_of, body, t) == second
    assert hvp(lambda bodies: sum(map(energy_of, bodies)), [body], [t]) == [second]
    assert jvp(slope_of, (body,), (t,))[1] == second
    assert pushforward(slope_of, body)[1](t) == second
    assert pullback(slope_of, body)[1](t) == (second,)


@pytest.mark.thorough
def test_third_derivatives_by_an_object_mirror_the_object():
    body, t = BODY, ALONG
    third = Tangent[Body](place=np.array([78.0, 144.0]), mass=132.0)
    assert jvp(lambda b: jvp(slope_of, (b,), (t,))[1], (body,), (t,))[1] == third
    assert pullback(lambda b: pullback(slope_of, b)[1](t)[0], body)[1](t) == (third,)


def test_a_tangent_is_an_argument_like_another():
    t = Tangent[Body](place=np.ones(2), mass=2.0)
    (found,) = gradient(lambda t: t.place.sum() * t["mass"], t)
    assert found == Tangent[Body](place=np.full(2, 2.0), mass=2.0)
    assert jvp(lambda t: t.place.sum() * t["mass"], (t,), (found,))[1] == 12.0
    with pytest.raises(
        ValueError, match=r"is Tangent\[Body\] of 'speed', expected Tangent\[Body\]"
    ):
        jvp(lambda t: t.mass, (t,), (Tangent[Body](speed=1.0),))


def test_a_dataclass_with_a_default_factory_is_made_in_a_second_derivative():
    def f(x):
        @dataclass
        class Node:
            value: float
            children: list = field(default_factory=list)

        node = Node(x)
        node.children.append(Node(x * x))
        return node.value * node.children[0].value

    assert hessian(f, 0.5) == 3.0
    assert jvp(lambda x: gradient(f, x)[0], (0.5,), (1.0,)) == (0.75, 3.0)


def complex_numbers(x):
    z = 0.3 + 0.2j
    for _ in range(5):
        z = (z**3 - x[0] * z**2 + x[1]) * 0.1
    return abs(z)


def parts_and_transposes(x):
    A = np.outer(x, x) + 1j * x
    y = np.zeros((2, 2, 2), complex)
    y[0] = A.T
    y[1] = y[0].conj().T * A.real + y[0].imag * A.imag.T * A.shape[0]
    return np.sum((y * y.conj()).real)


@pytest.mark.parametrize("f", [complex_numbers, parts_and_transposes])
def test_hessians_by_the_general_path(f):
    x, v, h = np.array([0.3, 0.7]), np.array([1.0, -2.0]), 1e-6
    expected = (gradient(f, x + h * v)[0] - gradient(f, x - h * v)[0]) / (2 * h)
    found = general_hvp(f, x, v)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    third = jvp(lambda x: general_hvp(f, x, v), (x,), (v,))[1]
    expected = (general_hvp(f, x + h * v, v) - general_hvp(f, x - h * v, v)) / (2 * h)
    np.testing.assert_allclose(third, expected, rtol=1e-6)


def test_the_bookkeeping_of_pullbacks_is_not_interpreted():
    count = 0

    def observe(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code is push.__code__

    x = np.array([0.3, 0.7])
    general_hvp(complex_numbers, x, x)
    sys.setprofile(observe)
    general_hvp(complex_numbers, x, x)
    sys.setprofile(None)
    assert count < 5 * 400  # it was 1300 for each of the five iterations
