"""Loops over items that are known one by one: the same as on the general path, without a loop."""

# ruff: noqa: B905  # as users write it

import math
from dataclasses import dataclass

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.testing import check_gradient


def vectors(a, b):
    o, d, t = (a, 0.0, -3.0), (0.0, b, 1.0), 0.0
    for _ in range(5):
        p = tuple(x + t * y for x, y in zip(o, d))
        t += 0.1 * (math.sqrt(sum(x * x for x in p)) - a)
    return t


def constant_direction(a, b):
    p = tuple(x + a * y for x, y in zip((a, b, 1.0), (0.0, 1.0, 2.0)))
    return sum(x * x for x in p)


def functions(a, b):
    t = 0.0
    for f in (math.sin, math.cos, math.exp):
        t += f(a * b + t)
    return t


def letters(a, b):
    values, t = {"A": a, "B": b}, 0.0
    for k in "ABA":
        t += values[k] * t + values[k]
    return t


def states(a, b):
    alpha = {t: a if t == "A" else b for t in "AB"}
    for _ in range(6):
        new = {}
        for t in "AB":
            scores = [alpha[s] * 0.3 + b for s in "AB"]
            most = max(scores)
            new[t] = most + math.log(sum(math.exp(v - most) for v in scores))
        alpha = new
    return sum(alpha.values()) + alpha["A"]


def views(a, b):
    d, t = {"x": a, "y": b, 3: a * b}, 0.0
    for v in d.values():
        t += v * t + v
    for k, v in d.items():
        t += v * (2.0 if k == "x" else t)
    for k in d:
        t *= d[k]
    for k in d.keys():
        t += d[k] ** 2
    return t + len(d)


def view_of_what_changes(a, b):
    d, t = {"x": a, "y": b}, 0.0
    for v in d.values():
        d["y"] = 3.0 * a
        t += v * t + v
    return t


def dict_that_grows(a, b):
    d, t = {"x": a}, 0.0
    for k in ("x", "y", "z"):
        d[k] = d.get(k, b) * a
    for v in d.values():
        t += v * t + v
    return t


def order_of_keys(a, b):
    d = {"x": a, "y": b}
    d["x"] = b * a
    e = {"y": b, "x": a * a} if a > b else {"x": b, "y": b}
    t = 1.0
    for v in d.values():
        t = t * v + 1
    for v in e.values():
        t = t * v + 1
    return t


@dataclass
class Body:
    """A point with a mass."""

    x: float
    v: float
    m: float


def objects(a, b):
    bodies = [Body(a, 0.0, 1.0), Body(-1.0, b, 2.0), Body(0.5, 0.0, a * b)]
    for _ in range(4):
        for p in bodies:
            for q in bodies:
                if p is not q:
                    p.v += 0.1 * q.m * (q.x - p.x)
        for p in bodies:
            p.x += 0.1 * p.v
    return sum(p.x**2 for p in bodies)


def displays(a, b):
    u, v = [a, b, a * b], [b, 1.0, a]
    w = [x * y for x, y in zip(u, v)]
    return sum([x + y for x, y in zip(w, u)]) * w[0] + len(w) + max(u)


def with_indices(a, b):
    t = 0.0
    for i, x in enumerate((a, b, a + b)):
        if i == 1:
            continue
        t += x**i * (i + 1)
    return t


def left_early(a, b):
    last = 0.0
    for x in (a, b, a * b):
        last = x * 2
        if x < 1:
            break
    else:
        last = last * 5
    return last * x


def nested(a, b):
    t = 0.0
    for x, w in ((a, 2.0), (b, 3.0)):
        for y in (a, b, 1.5):
            t += x * y * w
            if t > 5:
                break
    return t


def of_nothing(a, b):
    t = a
    for x in ():
        t = t * x
    return t * b


def matrix(a, b):
    rows, x = ((a, b), (b, a)), (1.0, a)
    for _ in range(3):
        x = tuple(sum(m * v for m, v in zip(row, x)) for row in rows)
    return x[0] * x[1]


def matrix_of_lists(a, b):
    rows, x = [[a, b], [b, a]], [1.0, a]
    for _ in range(3):
        x = [sum(m * v for m, v in zip(row, x)) for row in rows]
    return x[0] * x[1]


def branches_between(a, b):
    xs = []
    for x in (a, b, a * b):
        xs.append(x * 2 if x > 1 else x * 3)
    return xs[0] * xs[1] * xs[2]


def any_number(a, b):
    def total(*xs):
        t = 0.0
        for x in xs:
            t += x * t + x
        return t

    return total(a, b, a * b)


COMPILED = [
    vectors, constant_direction, functions, letters, states, views, view_of_what_changes,
    objects, displays, with_indices, left_early, nested, of_nothing, matrix,
    matrix_of_lists, branches_between, any_number,
]  # fmt: skip


def changing(a, b):
    xs = [a, b]
    for x in xs:
        if len(xs) < 4:
            xs.append(x * 2)
    return sum(xs)


def changed_by_another_name(a, b):
    inner = [a, b]
    outer = [inner, [b, 1.0]]
    t = 0.0
    for row in outer:
        inner[1] = a * a
        for x in row:
            t += x * t + x
    return t


def changed_by_a_function(a, b):
    def change(xs):
        xs[1] = a * b
        xs.append(b)

    xs, t = [a, b], 0.0
    for x in xs:
        if len(xs) == 2:
            change(xs)
        t += x * t + x
    return t


def filled_on_some_ways(a, b):
    xs = [a]
    for x in (a, b, a * b):
        if x > 1:
            xs.append(x * x)
    xs.append(b)
    t = 1.0
    for x in xs:
        t = t * x + 1
    return t


def filled_in_a_loop(a, b):
    xs = []
    for i in range(3):
        xs.append(a * i)
        for y in (a, b):
            xs.append(y)
    t = 1.0
    for x in xs:
        t = t * 0.5 + x
    return t


def too_many(a, b):
    t = 0.0
    for i in (1.0 * a, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, b):
        t += i * t * 0.1 + i
    return t


def too_long(a, b):
    t = 0.0
    for x in (a, b, a * b, a, b):
        for y in (a, b, a * b, a, b):
            for z in (a, b, a * b, a, b):
                t += x * y * z + math.sin(x * t) - math.cos(y) * z / (1.0 + t * t)
    return t


def keys_from_outside(a, b):
    d = {k: a * i for i, k in enumerate(NAMES)}
    t = 0.0
    for k in NAMES:
        t += d[k] * b
    return t


def default_values(a, b):
    f = lambda v, k=b: v * k
    b = b * 2.0
    return f(a) + f(a, 2.0) + f(b, k=a)


def default_values_by_name(a, b):
    def g(v, *, k=b, m=a):
        return v * k + m

    return g(a) * g(b, k=3.0) + g(1.0, m=2.0)


def rest_and_names(a, b):
    def f(x, *rest, scale=1.0, **named):
        return x * scale + sum(rest) * named.get("w", 1.0)

    args, named = (a, b, a * b), {"scale": a, "w": b}
    return f(*args, **named) + f(b, 1.0) + f(a, b, scale=b)


def functions_with_their_numbers(a, b):
    fs = [lambda v, i=i: v * i * b + i for i in range(3)]
    t = a
    for f in fs:
        t += f(t)
    return t + sum(f(a) for f in fs)


def functions_that_share_a_variable(a, b):
    fs = [lambda v: v * i * b for i in range(3)]
    return sum(f(a) for f in fs)


def functions_that_a_function_makes(a, b):
    def scaled(k):
        def inner(v):
            return v * k + b

        return inner

    t = 1.0
    for f in [scaled(a * i) for i in range(4)]:
        t = f(t)
    return t


def made_in_each_turn(a, b):
    t = 0.0
    for i in range(3):
        f = lambda v, i=i: v * i + b
        t += f(a + t)
    return t


NAMES = ["u", "v", "w"]
OF_FUNCTIONS = [
    default_values, default_values_by_name, rest_and_names, functions_with_their_numbers,
    functions_that_a_function_makes, made_in_each_turn,
]  # fmt: skip
ALL = [
    *OF_FUNCTIONS, functions_that_share_a_variable,
    *COMPILED, changing, changed_by_another_name, changed_by_a_function, filled_on_some_ways,
    filled_in_a_loop, too_many, too_long, keys_from_outside, dict_that_grows,
    order_of_keys,
]  # fmt: skip


@pytest.mark.parametrize("f", ALL)
def test_value_and_gradient(f):
    value, gradient = morula.value_and_grad(f, (0, 1))(1.3, 0.7)
    assert value == f(1.3, 0.7)
    with compiled.by_the_general_path():
        general = morula.grad(f, (0, 1))(1.3, 0.7)
    np.testing.assert_allclose(gradient, general, rtol=1e-12)
    check_gradient(f, 1.3, 0.7)


@pytest.mark.parametrize("f", [*COMPILED, *OF_FUNCTIONS])
def test_nothing_is_resolved_at_run_time(f):
    adjoint = morula.code_adjoint(f, 1.3, 0.7)
    assert adjoint.kind.startswith("specialised")
    assert not adjoint.left


def test_effects_stay_in_order():
    log = []

    def f(x):
        t = 0.0
        for name, v in (("a", x), ("b", 2 * x)):
            log.append(name)
            t += v * t + v
        return t

    morula.grad(f)(0.5)
    assert log == ["a", "b"]


def test_a_class_that_is_no_longer_plain():
    class P:
        def __init__(self, x):
            self.x = x

    def f(x):
        found, t = [P(x), P(2 * x)], 0.0
        for p in found:
            for q in found:
                if p is not q:
                    t += p.x * q.x
        return t

    assert morula.grad(f)(1.0) == 8.0
    one = P(3.0)
    P.__new__ = lambda cls, x: one
    try:
        assert f(1.0) == morula.withgradient(f, 1.0)[0] == 0.0
    finally:
        del P.__new__
