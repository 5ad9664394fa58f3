"""Dicts that a program makes: what is known of their values, and that it is as on the general path."""

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


def table(a, b):
    d = {}
    for i in range(5):
        for j in range(5):
            if i == 0 or j == 0:
                d[i, j] = a * i + b * j
            else:
                d[i, j] = 0.5 * d[i - 1, j] + 0.3 * d[i, j - 1] * a + b
    return d[4, 4]


def records(a, b):
    balance, history = 10.0 * a, []
    for m in range(20):
        interest = balance * b / 12
        balance = balance + interest - 0.1
        history.append({"month": m, "interest": interest, "balance": balance})
        if balance < 0:
            break
    return sum(h["interest"] * h["month"] for h in history) + history[-1]["balance"]


def shortest(a, b):
    graph = {0: [(1, 1.0), (2, 4.0)], 1: [(2, 2.0), (3, 6.0)], 2: [(3, 3.0)], 3: []}
    dist = {0: 0.0, 1: 100.0, 2: 100.0, 3: 100.0}
    for _ in range(4):
        for u in range(4):
            for v, w in graph[u]:
                dist[v] = min(dist[v], dist[u] + w * a + b)
    return dist[3]


def two_names(a, b):
    d = {"x": a}
    e = d
    for i in range(3):
        e[i] = a * i
    e["x"] = b
    return d["x"] * d[2]


def one_of_two(a, b):
    d = {}
    for i in range(4):
        e = d if i % 2 else {}
        e[i] = a * i
        e["last"] = b * i
    return d[3] * d["last"] + len(d)


def values_of_several_types(a, b):
    d = {"x": a}
    for i in range(3):
        d[i] = i if i == 1 else b * i
    return d["x"] * d[1] + d[2]


def lists_inside(a, b):
    d = {}
    for i in range(3):
        d[i] = [a * i, b]
    d[1].append(a)
    return d[1][2] * d[2][0] * d[1][0]


def arrays_inside(a, b):
    d = {}
    for i in range(3):
        d[str(i)] = np.ones(2) * a * i
    d["1"][0] = b
    return np.sum(d["1"] * d["2"])


def overwritten(a, b):
    d = {}
    for i in range(6):
        d[i % 2] = a * i + d.get(i % 2, 0.0) * b
    return d[0] * d[1]


def deleted(a, b):
    d = {0: a, 1: b}
    for i in range(2, 5):
        d[i] = d[i - 1] * a + d[i - 2]
    del d[0]
    return sum(d.values()) + d.pop(2)


def given_away(a, b):
    def change(d):
        d["x"] = a * b
        d["new"] = [b]

    d = {"x": a, 0: 1.0}
    for i in range(3):
        d[i] = d["x"] * i
        if i == 1:
            change(d)
    return d["x"] * d["new"][0] + d[2]


def merged(a, b):
    d, e = {"x": a}, {}
    for i in range(3):
        e[i] = b * i
    d |= e
    d.update(x=d["x"] * 2)
    return d["x"] * d[2]


def floats_as_keys(a, b):
    d = {}
    for i in range(3):
        d[a * i] = b * i
    t = 0.0
    for k, v in d.items():
        t += k * v
    return t


ALL = [
    table, records, shortest, two_names, one_of_two, values_of_several_types, lists_inside,
    arrays_inside, overwritten, deleted, given_away, merged, floats_as_keys,
]  # fmt: skip


@pytest.mark.parametrize("f", ALL)
def test_value_and_gradient(f):
    value, gradient = morula.value_and_grad(f, (0, 1))(1.3, 0.7)
    assert value == f(1.3, 0.7)
    with by_the_general_path():
        general = morula.grad(f, (0, 1))(1.3, 0.7)
    np.testing.assert_allclose(gradient, general, rtol=1e-12)
    check_gradient(f, 1.3, 0.7)
    _, back = morula.pullback(f, 1.3, 0.7)
    assert back(1.0) == back(1.0)
    g = morula.grad(lambda x: f(x, 0.7))
    assert morula.grad(g)(1.3) == pytest.approx(morula.hvp(lambda x: f(x, 0.7), 1.3, 1.0))


@pytest.mark.parametrize("f", [table, shortest, two_names, lists_inside])
def test_nothing_is_resolved_at_run_time(f):
    assert not morula.code_adjoint(f, 1.3, 0.7).left


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, complex, int])
def test_numbers_of_every_kind(kind):
    def f(x):
        d = {0: x}
        for i in range(1, 4):
            d[i] = d[i - 1] * x + i
        return abs(d[3]) ** 2

    x = kind(2)
    with by_the_general_path():
        expected = morula.grad(f)(x)
    found = morula.grad(f)(x)
    assert type(found) is type(expected)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    "f, expected",
    [
        (lambda p: sum(p.values()) ** 2, {"a": 6.0, "b": 6.0}),
        (lambda p: max(p.values()) * 2, {"a": 0.0, "b": 2.0}),
        (lambda p: max(p.items())[1], {"a": 0.0, "b": 1.0}),
        (lambda p: sum(v * p["a"] for v in p.values()), {"a": 4.0, "b": 1.0}),
    ],
)
def test_views_of_an_argument(f, expected):
    assert morula.gradient(f, {"a": 1.0, "b": 2.0})[0] == expected


def test_a_dict_made_of_the_items_of_a_list():
    def f(xs):
        d = {str(i): x * x for i, x in enumerate(xs)}
        return d["1"] * d["2"] + xs[0]

    assert morula.gradient(f, [1.0, 2.0, 3.0])[0] == [1.0, 36.0, 24.0]
