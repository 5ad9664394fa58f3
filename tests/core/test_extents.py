"""Dicts and lists from outside whose values are not alike: programs ask for their keys, or length."""

import copy

import numpy as np
import pytest

from morula import code_adjoint, gradient, hvp, jvp, ravel, value_and_grad, withgradient
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient

rng = np.random.default_rng(0)
NAMED = {
    "w0": rng.normal(size=(3, 3)),
    "b0": rng.normal(size=3),
    "w1": rng.normal(size=(3, 3)),
    "b1": rng.normal(size=3),
}
LISTED = list(NAMED.values())
LAYERS = [{"w": NAMED["w0"], "b": NAMED["b0"]}, {"w": NAMED["w1"], "b": NAMED["b1"]}]
X = rng.normal(size=3)


def keys(p, x):
    return sum(np.sum(p[k] ** 2) for k in p) * x[0]


def values(p, x):
    return np.sqrt(sum(np.vdot(v, v) for v in p.values())) * x[0]


def items_by_name(p, x):
    t = 0.0
    for k, v in p.items():
        if k.startswith("w") and k[0] == "w":
            t = t + np.sum(v * v) * len(k)
    return t * x[0]


def keys_in_order(p, x):
    t = x[0]
    for k in sorted(p):
        if "w" in k or k.endswith("1"):
            t = t + np.sum(p[k] ** 2)
    return t


def pairs_in_order(p, x):
    return sum(i * np.sum(v * x) for i, (k, v) in enumerate(sorted(p.items())))


def computed_keys(p, x):
    for i in range(len(p) // 2):
        x = np.tanh(x @ p[f"w{i}"] + p["b" + str(i)])
    return np.sum(x)


def a_new_dict(p, x):
    q = {k: v * 2 for k, v in p.items()}
    return sum(np.sum(q[k] * p[k]) for k in q) * x[1]


class Model:
    def __init__(self, p):
        self.p = p

    def __call__(self, x):
        for i in range(2):
            x = np.tanh(x @ self.p[f"w{i}"] + self.p[f"b{i}"])
        return x.sum()


def held_by_an_object(p, x):
    return Model(p)(x)


def items(ps, x):
    return sum(np.sum(w**2) for w in ps) * x[0]


def by_steps(ps, x):
    for i in range(0, len(ps), 2):
        x = np.tanh(x @ ps[i] + ps[i + 1])
    return x.sum()


def slices_in_pairs(ps, x):
    for w, b in zip(ps[::2], ps[1::2], strict=True):
        x = np.tanh(x @ w + b)
    return x.sum()


def from_behind(ps, x):
    t = x[0]
    for i, v in enumerate(reversed(ps)):
        t = t + i * np.sum(v * x)
    return t


def dicts_in_a_list(ls, x):
    return sum(np.sum(v**2) for layer in ls for v in layer.values()) * x[0]


class Dense:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def __call__(self, x):
        return x @ self.w + self.b


class Tanh:
    def __call__(self, x):
        return np.tanh(x)


class Network:
    def __init__(self, layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_objects_of_several_classes_in_a_list():
    def f(network, x):
        return np.sum(network(x) ** 2)

    def of(w0, b0, w1, b1, x):
        return f(Network([Dense(w0, b0), Tanh(), Dense(w1, b1)]), x)

    network = Network([Dense(*LISTED[:2]), Tanh(), Dense(*LISTED[2:])])
    expected = gradient(of, *LISTED, X)
    code = code_adjoint(f, network, X)
    assert code.kind.startswith("specialised")
    assert not code.left
    for _ in range(3):
        m̄, x̄ = gradient(f, network, X)
        found = [m̄.layers[0].w, m̄.layers[0].b, m̄.layers[2].w, m̄.layers[2].b, x̄]
        for ours, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, other, rtol=1e-12)
    network.layers.append(Tanh())
    assert withgradient(f, network, X)[0] == f(network, X)


OF_DICTS = [
    keys,
    values,
    items_by_name,
    keys_in_order,
    pairs_in_order,
    computed_keys,
    a_new_dict,
    held_by_an_object,
]
OF_LISTS = [items, by_steps, slices_in_pairs, from_behind]
CASES = (
    [(f, NAMED) for f in OF_DICTS] + [(f, LISTED) for f in OF_LISTS] + [(dicts_in_a_list, LAYERS)]
)


def numbers_in(x):
    return ravel(x)[0]


@pytest.mark.parametrize(("f", "p"), CASES)
def test_gradients_of_values_that_are_not_alike(f, p):
    code = code_adjoint(f, p, X)
    assert code.kind.startswith("specialised")
    assert "bail_out" in str(code)
    with by_the_general_path():
        expected = gradient(f, p, X)
    for _ in range(3):
        given = copy.deepcopy(p)
        y, found = withgradient(f, given, X)
        assert y == f(p, X)
        assert type(found[0]) is type(p)
        np.testing.assert_allclose(numbers_in(found), numbers_in(expected), rtol=1e-12)
        np.testing.assert_array_equal(numbers_in(given), numbers_in(p))


@pytest.mark.parametrize(("f", "p"), CASES)
def test_they_are_not_run_again_on_the_general_path(f, p, monkeypatch):
    g = value_and_grad(f)
    g(p, X)

    def refuse(*args):
        raise AssertionError("the program begins anew")

    monkeypatch.setattr("morula.core.compiled.Family.program", refuse)
    g(p, X)


@pytest.mark.parametrize(("f", "p"), CASES)
def test_second_derivatives_and_tangents(f, p):
    vector, unravel = ravel(p)
    along, h = np.cos(np.arange(vector.size)), 1e-5

    def slope(t):
        return numbers_in(gradient(f, unravel(vector + t * along), X)[0]) @ along

    assert jvp(lambda q: f(q, X), (p,), (unravel(along),))[1] == pytest.approx(slope(0.0))
    found = numbers_in(hvp(lambda q: f(q, X), p, unravel(along))) @ along
    assert found == pytest.approx((slope(h) - slope(-h)) / (2 * h), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("f", OF_DICTS)
def test_dicts_of_other_keys_one_after_the_other(f):
    swapped = {k: NAMED[k] for k in ("b1", "w1", "b0", "w0")}
    more = {**NAMED, "w2": NAMED["w0"], "b2": NAMED["b1"]}
    g = value_and_grad(f)
    for p in (NAMED, swapped, more, NAMED, swapped, more):
        y, p̄ = g(p, X)
        with by_the_general_path():
            expected = value_and_grad(f)(p, X)
        assert list(p̄) == list(p)
        np.testing.assert_allclose(y, expected[0])
        np.testing.assert_allclose(numbers_in(p̄), numbers_in(expected[1]), rtol=1e-12)


@pytest.mark.parametrize("f", OF_LISTS)
def test_lists_of_other_lengths_one_after_the_other(f):
    for p in (LISTED, LISTED[:2], LISTED * 2, LISTED):
        y, p̄ = value_and_grad(f)(p, X)
        with by_the_general_path():
            expected = value_and_grad(f)(p, X)
        np.testing.assert_allclose(y, expected[0])
        np.testing.assert_allclose(numbers_in(p̄), numbers_in(expected[1]), rtol=1e-12)


def names_that_change(p, x):
    names, t = sorted(p), x[0]
    names.remove("b0")
    names += ["w0"]
    for n in names:
        t = t + np.sum(p[n] ** 2)
    return t


def a_copy_of_what_changes(p, x):
    t = x[0]
    for k, v in list(p.items()):
        t = t + np.sum(v**2)
        p["b1"] = p["b1"] * 2.0
        p["w1"] = v * 1.0 if k == "w0" else p["w1"]
    return t + np.sum(p["w1"])


def items_that_change(p, x):
    t = x[0]
    for k in p:
        t = t + np.sum(p[k] ** 2)
        p["b1"] = p["b1"] * 2.0
    return t


def what_has_begun_to_run(p, x):
    run, t = iter(p.items()), x[0]
    _, first = next(run)
    for _, v in run:
        t = t + np.sum(v**2)
    return t * np.sum(first)


@pytest.mark.parametrize(
    "f", [names_that_change, a_copy_of_what_changes, items_that_change, what_has_begun_to_run]
)
def test_dicts_and_copies_that_change(f):
    for _ in range(3):
        plain, ours, general = dict(NAMED), dict(NAMED), dict(NAMED)
        y = f(plain, X)
        value, found = withgradient(f, ours, X)
        assert value == pytest.approx(y, rel=1e-13)
        with by_the_general_path():
            expected = gradient(f, general, X)
        np.testing.assert_allclose(numbers_in(found), numbers_in(expected), rtol=1e-12)
        np.testing.assert_array_equal(numbers_in(ours), numbers_in(plain))


def a_slice_of_what_changes(ps, x):
    t = x[0]
    for v in ps[1::2]:
        t = t + np.sum(v**2)
        ps[3] = ps[3] * 2.0
    return t


def numbers_among_arrays(ps, x):
    t = x[0] * (2.0 if 0 in [len(v) for v in ps] else 3.0)
    for v in ps:
        t = t + np.sum(v)
    return t


def a_number_is_in_a_list(ps, x):
    t = x[0] * (2.0 if 1 in ps else 3.0)
    for v in ps:
        t = t + v * v
    return t


def test_lists_that_change_or_are_asked():
    for f, p in [
        (a_slice_of_what_changes, LISTED),
        (numbers_among_arrays, LISTED),
        (a_number_is_in_a_list, [0.5, 3, 2.5]),
        (a_number_is_in_a_list, [0.5, 1, 2.5]),
    ]:
        for _ in range(3):
            plain, ours, general = list(p), list(p), list(p)
            y = f(plain, X)
            value, found = withgradient(f, ours, X)
            assert value == pytest.approx(y, rel=1e-13)
            with by_the_general_path():
                expected = gradient(f, general, X)
            np.testing.assert_allclose(numbers_in(found), numbers_in(expected), rtol=1e-12)


KEPT = dict(NAMED)


def changes_a_dict_it_reaches_otherwise(p, x):
    t = x[0]
    del KEPT["b0"]
    for k in p:
        t = t + np.sum(p[k] ** 2)
    return t


def shortens_a_list_it_reaches_otherwise(p, q):
    t = 0.0
    q.pop()
    for v in p:
        t = t + np.sum(v**2)
    return t


def test_what_changes_meanwhile_is_seen():
    for _ in range(3):
        KEPT.clear()
        KEPT.update(NAMED)
        y, g = value_and_grad(changes_a_dict_it_reaches_otherwise)(KEPT, X)
        assert list(KEPT) == ["w0", "w1", "b1"]
        assert y == X[0] + sum(np.sum(v**2) for v in KEPT.values())
        np.testing.assert_array_equal(g["w0"], 2 * NAMED["w0"])
    for _ in range(3):
        p = list(LISTED)
        y, g = value_and_grad(shortens_a_list_it_reaches_otherwise)(p, p)
        assert y == sum(np.sum(v**2) for v in LISTED[:3])
        np.testing.assert_array_equal(g[0], 2 * LISTED[0])


class Name(str):
    __slots__ = ()


def test_keys_of_a_class_of_the_users():
    def f(p):
        t = 0.0
        for k, v in p.items():
            t = t + np.sum(v) * (2.0 if type(k) is str else 3.0)
        return t

    g = value_and_grad(f)
    for p in (NAMED, {Name(k): v for k, v in NAMED.items()}):
        assert g(p)[0] == f(p)
        np.testing.assert_array_equal(g(p)[1]["b0"], np.full(3, 2.0 if p is NAMED else 3.0))


def energy(k, m, x=0.3, v=0.1):
    return 0.5 * k * x**2 + 0.5 * m * v**2


def merged_display(p):
    q = {**p, "x": 3.0, "k": p["m"]}
    return energy(**q) * len(q) + sum(i * v for i, v in enumerate(q.values()))


def keyword_arguments(p):
    return energy(**p) * energy(x=2.0, **p)


def copies(p):
    q, r, s = dict(p, x=p["m"]), p.copy(), {"v": 1.0}
    q["k"] = q["k"] * 2
    r["k"] += 1
    s.update(p)
    return energy(**q) * energy(**r) + energy(**s) * p["k"]


def unions(p):
    q = p | {"x": p["m"], "k": 3.0}
    return energy(**q) * p["k"] + energy(**({"x": 2.0} | p))


def a_copy_is_another(p):
    q = {**p}
    p["k"] = p["k"] * 7
    return q["k"] * p["k"] * q["m"]


@pytest.mark.parametrize(
    "f", [merged_display, keyword_arguments, copies, unions, a_copy_is_another]
)
def test_dicts_that_are_copied_into_others(f):
    g = value_and_grad(f)
    for p in ({"k": 2.0, "m": 1.5}, {"m": 1.5, "k": 2.0}, {"k": 2.0, "m": 3, "v": 0.7}):
        assert g(dict(p))[0] == f(dict(p))
        check_gradient(f, dict(p))
    if f is not a_copy_is_another:
        assert str(code_adjoint(f, {"k": 2.0, "m": 1.5})).startswith("# specialised")


def test_keyword_arguments_that_do_not_fit():
    for p in ({"k": 2.0, "q": 1.0}, {"k": 2.0}, {"k": 2.0, "m": 1.0, "x": 2.0}):
        with pytest.raises(TypeError) as plain:
            keyword_arguments(p)
        with pytest.raises(TypeError) as ours:
            gradient(keyword_arguments, p)
        assert str(ours.value).startswith(str(plain.value))


class Layer:
    def __init__(self, w, b, act):
        self.w, self.b, self.act = w, b, act

    def __call__(self, x):
        y = x @ self.w
        return self.act(y if self.b is None else y + self.b)


class Net:
    def __init__(self, *layers):
        self.layers = list(layers)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def net_loss(net, x):
    return np.sum(net(x) ** 2)


def test_objects_of_one_class_with_other_functions_in_them():
    net = Net(
        Layer(NAMED["w0"], NAMED["b0"], np.tanh),
        Layer(NAMED["w1"], None, lambda z: z),
        Layer(NAMED["w1"], NAMED["b1"], np.sin),
    )
    check_gradient(net_loss, net, X)
    assert "0 calls are resolved" in str(code_adjoint(net_loss, net, X))
    g = value_and_grad(net_loss, argnums=(0, 1))
    g(net, X)
    program = g.__code__
    g(net, X)
    assert g.__code__ is program
    net.layers[0].act, net.layers[2].b = np.cos, None
    assert g(net, X)[0] == net_loss(net, X)
    check_gradient(net_loss, net, X)
