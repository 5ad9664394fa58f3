"""Dicts that a program makes: what is known of their values, and that it is as on the general path."""

from collections import defaultdict

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


def walked(a, b):
    probs = {0: 1.0}
    for _ in range(3):
        new = {}
        for k, p in probs.items():
            new[k + 1] = new.get(k + 1, 0.0) + p * a
            new[k - 1] = new.get(k - 1, 0.0) + p * b
        probs = new
    return sum(p * k * k for k, p in probs.items()) + max(probs.values())


def grouped(a, b):
    groups, totals = {}, {}
    for i, label in enumerate("abcab"):
        groups.setdefault(label, []).append(a * i)
        totals[label] = totals.get(label, b) * (1 + a * i)
    found = 0.0
    for label in groups:
        found += sum(groups[label]) * totals[label]
    return found * len(groups)


def popped(a, b):
    d = {str(i): a**i for i in range(4)}
    x = d.pop("2") * d.pop("7", b) * d.pop("3", b)
    d["2"] = b
    del d["1"]
    d["1"] = d["2"] * a
    return x + d["1"] + sum(d.values())


def of_two(a, b):
    d, e = {}, {}
    for i in range(3):
        d[i], e[i + 1] = a * i, b * i
    f = d | e
    f.update(d)
    f[0] = b
    g = dict(f)
    g[1] = 2.0 * a
    h = g.copy()
    h.update(g)
    return sum(v * (k + 1) for k, v in f.items()) + g[1] * f[1] + h[3] * d[2]


def zipped(a, b):
    d = dict(zip("xyzx", [a, b, a * b, a + b]))  # noqa: B905
    return sum(len(k) * v for k, v in d.items()) * d["x"]


def shadow_comes_back(a, b):
    d = {}
    for i in range(3):
        d[i] = [a * i, b]
    first, kept = d[1], d[2]
    first.append(a)
    d[1] = d[2]
    d[1][0] = b
    d[2] = [first[2] * a]
    return d[1][0] * kept[1] * d[2][0] + first[0] * first[1]


def dicts_inside(a, b):
    d = {}
    for i in range(3):
        for j in range(2):
            d.setdefault(i, {})[j] = a * i + b * j
    e = d[1]
    e[0] = a
    return sum(sum(row.values()) for row in d.values()) * d[1][0]


def same_key_twice(a, b):
    t = 0.0
    for i in range(3):
        k, m = i % 2, (i + 1) % 2
        d = {k: a * i, 0: b, m: a + b}
        t += d[0] * d[1] * (i + 1)
    return t


def changed_while_read(a, b):
    d = {i: a * i for i in range(4)}
    for k, v in d.items():
        if k < 3:
            d[k + 1] = d[k + 1] + v * b
    return d[3]


def many_names(a, b):
    ds = [{0: a}, {0: b}]
    for i in range(4):
        d = ds[i % 2]
        d[i + 1] = d[i // 2 * 2 if i % 2 else i] * a + i if (i // 2 * 2 if i % 2 else i) in d else b
    return sum(sum(d.values()) for d in ds)


def keys_with_derivatives(a, b):
    d = {}
    for i in range(3):
        d[a * i] = b * i
    t = 0.0
    for k in d:
        t += k * b
    return t


def optional(a, b):
    d = {}
    for i in range(4):
        if i % 2:
            d[i] = a * i
    t = 0.0
    for i in range(4):
        v = d.get(i)
        if v is not None:
            t += v * b
    return t


ALL = [
    walked, grouped, popped, of_two, zipped, shadow_comes_back, dicts_inside, same_key_twice,
    changed_while_read, many_names, keys_with_derivatives, optional,
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


COMPILED = [
    table, shortest, two_names, lists_inside, walked, grouped, popped, of_two, zipped,
    shadow_comes_back, dicts_inside, same_key_twice, changed_while_read, many_names,
]  # fmt: skip


@pytest.mark.parametrize("f", COMPILED)
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
    ("f", "expected"),
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


def loss(p):
    t = 0.0
    for k, v in p.items():
        t += v * v * (2.0 if k == "a" else 1.0)
    return t + p["a"] * sum(p.values()) + len(p)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.ones(2).__mul__])
def test_a_loop_over_an_argument(kind):
    p = {"a": kind(1.5), "b": kind(-2.0), "c": kind(0.25)}
    f = loss if np.ndim(p["a"]) == 0 else lambda p: loss(p).sum()
    if kind in (float, np.float64):
        assert not morula.code_adjoint(f, p).left
    with by_the_general_path():
        expected = morula.gradient(f, p)[0]
    found = morula.gradient(f, p)[0]
    assert list(found) == list(p)
    for k in p:
        assert type(found[k]) is type(expected[k])
        assert np.array(found[k]).dtype == np.array(expected[k]).dtype
        np.testing.assert_allclose(found[k], expected[k], rtol=1e-6)
    assert morula.gradient(loss, {"a": 2.0})[0] == {"a": 16.0 - 4.0}


def test_an_argument_of_many_kinds():
    def f(p):
        t = p["scale"] * sum(p["xs"])
        for k, v in p["inner"].items():
            t += v * p["scale"] * len(k)
        return t * p["n"]

    p = {"scale": 2.0, "xs": [1.0, 3.0], "inner": {"u": 1.0, "vw": 2.0}, "n": 3, "name": "x"}
    expected = {
        "scale": 27.0, "xs": [6.0, 6.0], "inner": {"u": 6.0, "vw": 12.0}, "n": 18.0, "name": None,
    }  # fmt: skip
    assert morula.gradient(f, p)[0] == expected


def test_an_argument_that_is_passed_twice():
    def f(p, q):
        return sum(v * q[k] for k, v in p.items())

    p = {"a": 2.0, "b": 3.0}
    assert morula.gradient(f, p, p) == ({"a": 4.0, "b": 6.0},) * 2
    assert morula.gradient(f, p, dict(p)) == ({"a": 2.0, "b": 3.0},) * 2


def test_an_argument_that_changes():
    def f(p):
        p["c"] = p["a"] * p["b"]
        p["a"] = 0.0
        return sum(p.values())

    p = {"a": 2.0, "b": 3.0}
    assert morula.gradient(f, p)[0] == {"a": 3.0, "b": 3.0}
    assert p == {"a": 0.0, "b": 3.0, "c": 6.0}


def test_whole_numbers_as_keys_that_carry_a_derivative():
    def f(n):
        d = {}
        for i in range(3):
            d[i * n] = 2.0
        return sum(k * v for k, v in d.items())

    assert morula.gradient(f, 2)[0] == 6.0


def test_a_key_that_is_missing():
    def f(a):
        d = {i: a for i in range(2)}
        return d.pop(5) * a

    with pytest.raises(KeyError, match="5"):
        morula.gradient(f, 1.0)


def test_a_dict_that_changes_its_size_in_a_loop():
    def f(a):
        d = {i: a for i in range(2)}
        for k in d:
            d[k + 7] = a
        return d[0]

    with pytest.raises(RuntimeError, match="changed size"):
        morula.gradient(f, 1.0)


def test_empty_dicts():
    def f(d, a):
        t = a
        for k, v in d.items():
            t += v
        e = {}
        for k in e:
            t += e[k]
        return t + sum(e.values()) + sum(d.values())

    assert morula.gradient(f, {}, 2.0) == ({}, 1.0)


# -- dicts that make what is missing


def grouped_sums(x, y):
    sums, counts = defaultdict(float), defaultdict(int)
    for label, v in zip("abcab", [x, y, x * y, 2.0, x], strict=True):
        sums[label] += v * y
        counts[label] += 1
    return sum((sums[k] / counts[k]) ** 2 for k in sums) + len(sums)


def grouped_lists(x, y):
    groups = defaultdict(list)
    for label, v in zip("abcab", [x, y, x * y, 2.0, x], strict=True):
        groups[label].append(v)
    total = 0.0
    for group in groups.values():
        mean = sum(group) / len(group)
        total += sum((v - mean) ** 2 for v in group)
    return total


def nested_defaults(x, y):
    table = defaultdict(dict)
    for i in range(3):
        table[i % 2][i] = x * i + y
    return sum(sum(row.values()) ** 2 for row in table.values())


def made_by_a_function(x, y):
    d = defaultdict(lambda: 0.5)
    d["a"] = x
    for k in ["a", "b", "a", "c"]:
        d[k] = d[k] * y + x
    return d["a"] + d["b"] * d["z"] + len(d)


def asked_for(x, y):
    """Questions put nothing into it."""
    d = defaultdict(float)
    d["a"] += x
    found = d.get("b", y) * ("b" in d) + d.get("a", y)
    del d["a"]
    return found * y + d["a"] + len(d)


def by_places(x, y):
    d = defaultdict(float)
    for i in range(4):
        for j in range(3):
            d[i, j % 2] += x * i + y * j
    return sum(v * v for v in d.values())


WITH_DEFAULTS = [
    grouped_sums,
    grouped_lists,
    nested_defaults,
    made_by_a_function,
    asked_for,
    by_places,
]


def missing_is_popped(x, y):
    d = defaultdict(float)
    try:
        return d.pop("a") + x
    except KeyError:
        return x * y + len(d)


def with_a_start(x, y):
    d = defaultdict(float, a=x)
    d["b"] += y
    return d["a"] * d["b"]


def a_copy(x, y):
    d = defaultdict(float)
    d["a"] = x * y
    e = d.copy()
    e["b"] += y
    return e["a"] * e["b"] + len(d)


@pytest.mark.parametrize("f", [*WITH_DEFAULTS, missing_is_popped, with_a_start, a_copy])
def test_dicts_with_defaults(f):
    check_gradient(f, 0.7, 1.3)
    with by_the_general_path():
        expected = morula.gradient(f, 0.7, 1.3)
    for point in ((0.7, 1.3), (2, 1.3), (0.7, 1.3)):
        value, gradients = morula.withgradient(f, *point)
        assert repr(value) == repr(f(*point))
    np.testing.assert_allclose(gradients, expected, rtol=1e-12)
    _, back = morula.pullback(f, 0.7, 1.3)
    np.testing.assert_allclose(back(1.0), expected, rtol=1e-12)
    np.testing.assert_allclose(back(1.0), expected, rtol=1e-12)


@pytest.mark.parametrize("f", WITH_DEFAULTS)
def test_dicts_with_defaults_are_compiled(f):
    code = morula.code_adjoint(f, 0.7, 1.3)
    assert code.kind.startswith("specialised")
    assert not code.left


def test_a_dict_with_defaults_stays_one():
    seen = []

    def f(x):
        d = defaultdict(float)
        d["a"] += x
        seen.append(d)
        return d["a"] * d["b"] + x

    assert morula.grad(f)(2.0) == 1.0
    assert seen == [{"a": 2.0, "b": 0.0}]
    assert type(seen[0]) is defaultdict


# -- dicts of the caller with names as keys


def descended(p):
    """What is handed on is the argument first, then dicts of its own."""
    for _ in range(4):
        slopes = {"w": p["w"] * 2 + p["b"], "b": p["w"] + p["b"]}
        p = {k: v - 0.1 * slopes[k] for k, v in p.items()}
    return p["w"] * p["b"]


def read_in_a_loop(p):
    total = 0.0
    for _ in range(3):
        for k in p:
            total = total * 0.5 + p[k] * len(k)
    return total * p["b"]


def changed_by_the_function(p):
    p["w"] = p["w"] * p["b"]
    p["new"] = 2.0
    return p["w"] * p["new"] + p["b"]


def chosen_from_two(p):
    q = {"w": p["b"], "b": 2.0 * p["w"]}
    r = p if p["w"] > 1.0 else q
    return r["w"] * r["w"] + r["b"]


@pytest.mark.parametrize("f", [descended, read_in_a_loop, changed_by_the_function, chosen_from_two])
def test_dicts_of_the_caller(f):
    g = morula.value_and_grad(f)
    dicts = [
        {"w": 0.5, "b": 0.1},
        {"b": 0.1, "w": 1.5},
        {"w": 2, "b": 0.1},
        {"w": np.float64(0.5), "b": 0.1},
        {"w": 0.5, "b": 0.1, "other": 3.0},
        {"w": np.float32(0.5), "b": 0.1},
        {"w": 0.5, "b": 0.1, "name": "x"},
    ]
    for p in dicts + dicts:
        if (f is read_in_a_loop and "name" in p) or (f is descended and len(p) > 2):
            continue
        plain, ours, generally = dict(p), dict(p), dict(p)
        value = f(plain)
        found, gradient = g(ours)
        assert repr(found) == repr(value)
        assert repr(ours) == repr(plain)
        with by_the_general_path():
            expected = morula.grad(f)(generally)
        assert list(gradient) == list(expected) == list(p)
        for k in p:
            assert type(gradient[k]) is type(expected[k])
            if expected[k] is not None:
                np.testing.assert_allclose(gradient[k], expected[k], rtol=1e-6)


def test_a_dict_of_arrays_in_a_loop():
    def f(p, x):
        for _ in range(3):
            p = {"w": p["w"] - 0.1 * (p["w"] @ x) * x, "b": p["b"] * 0.5}
        return (p["w"] ** 2).sum() + p["b"].sum()

    for n in (3, 4, 3):
        p, x = {"w": np.arange(1.0, n + 1), "b": np.ones(2)}, np.linspace(0.1, 0.5, n)
        check_gradient(f, p, x)
        assert not np.shares_memory(morula.grad(f)(p, x)["w"], p["w"])


def test_two_names_for_one_dict():
    def f(p, q):
        return p["w"] * q["w"] * q["b"]

    p, q = {"w": 2.0, "b": 3.0}, {"w": 5.0, "b": 7.0}
    for _ in range(2):
        assert morula.gradient(f, p, q) == ({"w": 35.0, "b": 0.0}, {"w": 14.0, "b": 10.0})
        both = {"w": 12.0, "b": 4.0}
        assert morula.gradient(f, p, p) == (both, both)


def test_what_an_update_by_name_gives():
    def f(k, r, s):
        q = {"w": s}
        pair = (q.update(w=r), q["w"] * s)
        return pair[k + 1] * 2.0

    check_gradient(lambda r, s: f(0, r, s), 1.5, 2.5)
    assert morula.gradient(f, 0, 1.5, 2.5) == (0.0, 5.0, 3.0)
