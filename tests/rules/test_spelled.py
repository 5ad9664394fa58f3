"""Calls that compiled programs spell out in Python."""

import contextlib
import functools
import math
import operator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient

W = [0.5, -1.0, 2.0]


def reduced_display(w):
    return functools.reduce(lambda a, b: a * b, [w[0], w[1], w[2]])


def reduced_with_start(w):
    return functools.reduce(lambda a, b: a + b * b, w, 0.5)


def starred(x):
    a, *b, c = [x, x * 2, x * 3, x * x]
    return a * b[0] * b[1] * c


def starred_tuple(t):
    a, *b = t
    return a * b[0] + b[1] * a


def partial(x):
    f = functools.partial(lambda a, b, c=1.0, d=2.0: a * b + c * c * d, x, c=x)
    return f(3.0) + f(x, d=5.0)


PROGRAMS = [
    (lambda w: sum(map(lambda t: t * t, w)), W),
    (lambda w: sum(map(lambda t: t * t, w)), np.array(W)),
    (lambda w: sum(map(lambda s, t: s * t * t, w, [1.0, 2.0])), W),
    (lambda w: sum(list(map(lambda t: t * t, w))), W),
    (lambda w: sum(filter(lambda t: t > 0, w)) * w[0], W),
    (lambda w: max(map(lambda t: t * t, w)), W),
    (reduced_display, W),
    (reduced_with_start, W),
    (reduced_with_start, np.array(W)),
    (reduced_with_start, []),
    (starred, 2.0),
    (starred_tuple, (1.0, 2.0, 3.0)),
    (partial, 2.0),
    (lambda x: (max(x) - min(x)) * sum(x), np.array(W)),
    (lambda x: sum(x * x, 2.0) * min(x), np.array(W)),
    (lambda x: sum(list(sum(np.outer(x, x)))) * x[0], np.array(W)),
]


@pytest.mark.parametrize(("f", "x"), PROGRAMS)
def test_what_is_spelled_out_is_the_same(f, x):
    value, found = morula.value_and_grad(f)(x)
    with by_the_general_path():
        expected = morula.value_and_grad(f)(x)
    assert value == expected[0]
    assert np.shape(found) == np.shape(expected[1])
    np.testing.assert_allclose(np.array(found), np.array(expected[1]), rtol=1e-13)
    if x is not PROGRAMS[9][1]:
        check_gradient(f, x)
    program = str(morula.code_adjoint(f, x))
    of_array = isinstance(x, np.ndarray)
    assert not any(
        f"call_from_program({name}" in program
        for name in ("map", "filter", "functools", *(("min", "max") if of_array else ()))
    )


@pytest.mark.parametrize("choose", [min, max])
def test_of_an_array_whose_length_is_not_known(choose):
    """It was spelled out again and again, until the program was too large."""
    f = morula.grad(lambda x: choose(x[x > 0]) ** 2)
    np.testing.assert_allclose(f(np.array([3.0, -2.0])), [6.0, 0.0])
    assert [program.reason for program in f.__morula__.programs.values()] == [""]


def test_effects_of_the_functions_come_in_order():
    log = []

    def f(w):
        def square(t):
            log.append(t)
            return t * t

        return sum(map(square, w)) + functools.reduce(lambda a, b: a + square(b), w, 0.0)

    assert morula.grad(f)(W) == [2.0, -4.0, 8.0]
    assert log == W + W


def too_few(x):
    a, b, *c = [x]
    return a


def test_errors_are_those_of_the_callables():
    with pytest.raises(TypeError, match=r"of empty iterable|of empty sequence"):
        morula.grad(lambda w: functools.reduce(operator.mul, w))([])
    with pytest.raises(TypeError, match=r"of empty iterable|of empty sequence"):
        morula.grad(lambda w: functools.reduce(lambda a, b: a, w))([])
    with pytest.raises(ValueError, match="not enough values to unpack"):
        morula.grad(too_few)(1.0)
    for choose in (min, max):
        with pytest.raises(ValueError, match="empty"):
            morula.grad(lambda x: choose(x[:0]))(np.array(W))


def two_keys(x):
    d = {"a": x}
    d["b"] = x * 2
    d["a"] = d["a"] * d["b"]
    return d["a"] + d["b"]


def handed_on(x):
    s = {"x": x, 1: 1.0}
    for _ in range(4):
        s = {"x": s["x"] + 0.1 * s[1], 1: s[1] - 0.1 * s["x"]}
    return s["x"] * s[1]


def one_in_another(x):
    p = {"layer": {"w": x, "b": x * x}, "k": 3.0}
    p["layer"]["w"] = p["layer"]["w"] * 2.0
    return p["layer"]["w"] * p["layer"]["b"] * p["k"]


def on_two_ways(x):
    d = {"a": x}
    if x > 1:
        d["a"] = x * x
    return d["a"] * x


@pytest.mark.parametrize("f", [two_keys, handed_on, one_in_another, on_two_ways])
def test_dicts_with_known_keys_are_variables(f):
    check_gradient(f, 1.3)
    assert "call_from_program" not in str(morula.code_adjoint(f, 1.3))


def written_on_one_way(x):
    d = {"a": x}
    if x > 1:
        d["b"] = x * x
    return d["b"] * d["a"]


def counted(x):
    d = {"a": x, "b": x * x}
    return d["a"] * len(d) + sum(d.values())


def captured(x):
    d = {"a": x}

    def double():
        d["a"] = d["a"] * 2

    double()
    return d["a"] * d["a"]


@pytest.mark.parametrize("f", [written_on_one_way, counted, captured])
def test_other_dicts_have_the_same_gradient(f):
    check_gradient(f, 1.3)


def test_a_key_that_is_not_there_raises_as_it_does_without():
    grad = morula.grad(written_on_one_way)
    assert grad(2.0) == 12.0
    with pytest.raises(KeyError, match="b"):
        grad(0.5)
    with pytest.raises(KeyError, match="z"):
        morula.grad(lambda x: {"a": x}["z"])(1.0)


# -- named tuples, as NumPy's functions give them ------------------------------------------------------


def determinant(a):
    sign, log = np.linalg.slogdet(a)
    return sign * log


def principal(a):
    w, v = np.linalg.eigh(a)
    return w[0] * (v[:, 0] @ np.arange(3.0)) ** 2


def singular(a):
    u, s, v = np.linalg.svd(a)
    return (u[0] * s @ v).sum() ** 2


def by_names(a):
    return np.linalg.eigh(a).eigenvalues[1] * np.linalg.slogdet(a).logabsdet


def in_a_loop(a):
    total = 0.0
    for k in range(3):
        sign, log = np.linalg.slogdet(a + k * np.eye(3))
        total += sign * log
    return total


MATRIX = np.array([[3.0, 0.2, 0.1], [0.2, 2.0, 0.3], [0.1, 0.3, 1.0]])


@pytest.mark.parametrize("f", [determinant, principal, singular, by_names, in_a_loop])
def test_named_tuples_of_numpy_are_taken_apart(f):
    program = str(morula.code_adjoint(f, MATRIX))
    assert program.startswith("# specialised")
    assert f is by_names or "call_from_program" not in program
    check_gradient(f, MATRIX)
    second = morula.hessian(f)(MATRIX)
    with by_the_general_path():
        np.testing.assert_allclose(second, morula.hessian(f)(MATRIX), rtol=1e-9, atol=1e-12)


class Turned(NamedTuple):
    a: float
    b: float

    def __iter__(self):
        return iter((self.b * 2, self.a))


class Counted(NamedTuple):
    a: float
    b: float

    def __getitem__(self, i):
        return 3.0 * tuple.__getitem__(self, i)


def test_named_tuples_that_say_themselves_how_they_are_read():
    def made(x):
        u, v = Turned(x, x * x)
        return u * 3 + v

    def given(p, x):
        u, v = p
        return u * 3 + v * x

    assert morula.gradient(made, 2.0) == (25.0,)
    assert morula.grad(given, (0, 1))(Turned(2.0, 3.0), 5.0) == (Turned(5.0, 6.0), 2.0)
    assert morula.gradient(lambda p: p[0] * p[1], Counted(2.0, 5.0)) == (Counted(45.0, 18.0),)


def numbers(x):
    t = 0.0
    for i, v in enumerate(x.tolist()):
        t += v * v * i + math.sin(v)
    return t


def of_two_axes(x):
    return sum([r[0] * r[1] for r in x.reshape(-1, 2).tolist()])


def of_another_array(x):
    ys = (x * 2).tolist()
    ys.append(ys[0] * ys[1])
    return math.fsum(ys) + max(ys)


@pytest.mark.parametrize("f", [numbers, of_two_axes, of_another_array])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_lists_of_the_numbers_of_an_array(f, dtype):
    x = np.array([0.5, -1.2, 1.5, 0.9], dtype)
    adjoint = morula.code_adjoint(f, x)
    assert adjoint.kind.startswith("specialised")
    assert not adjoint.left
    y, (g,) = morula.withgradient(f, x)
    assert y == f(x)
    assert g.dtype == dtype
    with by_the_general_path():
        np.testing.assert_allclose(g, morula.gradient(f, x)[0], rtol=1e-6)
    check_gradient(f, x.astype(float))
    along = np.cos(x)
    want = (morula.grad(f)(x + 0.01 * along) - morula.grad(f)(x - 0.01 * along)) @ along / 0.02
    assert morula.hvp(f, x, along) @ along == pytest.approx(want, rel=1e-2, abs=1e-3)


def test_an_array_without_axes_is_a_number():
    assert morula.gradient(lambda x: np.sum(x).tolist() * 2.0, np.ones(3))[0].tolist() == [2.0] * 3
    assert morula.gradient(lambda x: sum(x[:0].tolist(), x[0]), np.ones(3))[0].tolist() == [1, 0, 0]


class Place(NamedTuple):
    x: float
    y: float


def nearest(p, places):
    q = min(places, key=lambda r: (r.x - p.x) ** 2 + (r.y - p.y) ** 2)
    return math.hypot(q.x - p.x, q.y - p.y)


def test_fields_of_named_tuples_in_a_list():
    places = [Place(0.0, 0.0), Place(1.0, 1.0), Place(2.0, 0.5)]
    adjoint = morula.code_adjoint(nearest, Place(1.2, 1.5), places)
    assert adjoint.kind.startswith("specialised")
    assert not adjoint.left
    check_gradient(nearest, Place(1.2, 1.5), places)


def layers_and_the_last(layers, x):
    *hidden, last = layers
    for w, b in hidden:
        x = np.tanh(x @ w + b)
    (first, _), *others = layers
    return np.sum(x @ last[0] + last[1]) + np.sum(first) * len(others)


def test_the_rest_of_a_list():
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(4)]
    adjoint = morula.code_adjoint(layers_and_the_last, layers, np.ones(3))
    assert adjoint.kind.startswith("specialised")
    assert not adjoint.left
    check_gradient(layers_and_the_last, layers, np.ones(3))
    with pytest.raises(ValueError, match="not enough values to unpack"):
        morula.gradient(lambda xs: xs[0] * unpacked(xs)[0], [1.0])


def unpacked(xs):
    a, *_, b = xs
    return a, b


SEQUENCES = {
    "product of a list": lambda x: math.prod([x[0], x[1] * 2, 3]),
    "product of an array": lambda x: math.prod(x) * x[0],
    "product with a zero": lambda x: math.prod([x[0], x[1] - 1.2, x[2]]),
    "exact sum of an array": lambda x: math.fsum(x) * x[1],
    "distance in the plane": lambda x: math.dist([x[0], x[1]], (1.0, x[2])),
    "distance in space": lambda x: math.dist((x[0], x[1], 0.5), [1.0, x[2], 2.0]),
    "length": lambda x: math.hypot(x[0], x[1], x[2]) * math.hypot(x[0], 2.0),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_products_sums_and_distances(name):
    f, x = SEQUENCES[name], np.array([0.5, 1.2, 2.0])
    assert "; 0 calls are" in str(morula.code_adjoint(f, x)).split("\n")[0]
    assert morula.value_and_grad(f)(x)[0] == f(x)
    check_gradient(f, x)
    check_gradient(lambda a, b, c: f([a, b, c]), 0.5, 1.2, 2.0)


def test_no_distance_and_no_length_have_slope_zero():
    assert morula.gradient(lambda a, b: math.dist((a, b), (1.0, 2.0)), 1.0, 2.0) == (0.0, 0.0)
    assert morula.gradient(math.hypot, 0.0, 0, 0.0) == (0.0, 0.0, 0.0)
    assert morula.gradient(lambda x: math.prod(x[:0]) * 1.0, np.ones(2))[0].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="same number of dimensions"):
        morula.grad(lambda x: math.dist((x, 1.0), (1.0,)))(2.0)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (np.array([0.1, 0.9], np.float32), (np.float32(0.3), np.float32(0.7))),
        ((2, 2**60 + 1), (1.0, 2**60)),
        ((Fraction(1, 3), Fraction(2, 3)), (0.5, 0.25)),
        ((np.int8(100), 1.0), (np.int8(-100), 2.0)),
    ],
)
def test_distances_are_those_of_floats(p, q):
    def f(x):
        return math.dist((p[0], p[1]), (q[0], q[1])) * x

    def of_points(p, q):
        return math.dist((p[0], p[1]), (q[0], q[1]))

    assert morula.value_and_grad(f)(1.0) == (math.dist(p, q), math.dist(p, q))
    assert morula.value_and_grad(of_points)(p, q)[0] == math.dist(p, q)


def test_more_items_than_variables_are_not_asked_for():
    asked = []

    def f(x):
        asked.clear()
        with contextlib.suppress(ValueError):
            _, _ = map(asked.append, [1, 2, 3, 4, 5])
        return x * len(asked)

    assert morula.value_and_grad(f)(2.0) == (f(2.0), 3.0)
