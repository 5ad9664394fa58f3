"""Containers: displays, items, methods, construction, unpacking, and gradients of their shape."""

# ruff: noqa: B905

import collections
import functools
import operator
from typing import NamedTuple

import numpy as np
import pytest

import morula
from morula import Tangent, Thunk, UnsupportedError, gradient, hvp, jvp, pullback, rrule
from morula.testing import check_gradient
from tests.modes import check_modes

pytestmark = pytest.mark.usefixtures("path")


class Named(NamedTuple):
    u: float
    v: float = 1.5


class Loud(list):
    """A list that redefines its operations in Python."""

    def __getitem__(self, i):
        return super().__getitem__(i) * 2.0

    def __setitem__(self, i, value):
        super().__setitem__(i, value * 3.0)

    def append(self, value):
        super().append(value)
        super().append(value * value)


class Defaults(dict):
    def __missing__(self, key):
        return self["w"] * len(key)


class Mapping:
    def __init__(self, x):
        self.x = x

    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return self.x * len(key)


def weighted(xs):
    """A sum that tells the places of the items apart."""
    s = 0.0
    for i, x in enumerate(xs):
        s += (i + 1.0) * x
    return s


def of_dict(d):
    s = 0.0
    for key, x in d.items():
        s += len(key) * x
    return s


def items_and_slices(x, y):
    xs = [x, y, x * y]
    xs[0] = xs[1] * xs[-1]
    xs[-1] = x
    xs[1:2] = [x, y, xs[0]]
    xs[::2] = xs[1:4]
    ys = xs[::-1]
    del ys[0]
    del ys[1:3]
    return weighted(xs) * weighted(ys) + xs[np.int64(1)]


def methods_of_lists(x, y):
    xs = [x]
    xs.append(y)
    xs.extend([x * y, x])
    xs.insert(1, y * y)
    xs.insert(-100, x + y)
    xs.insert(100, x - y)
    last, second = xs.pop(), xs.pop(1)
    ys = xs.copy()
    xs.reverse()
    ys.remove(ys[1])
    xs.sort(key=lambda v: -v)
    n = xs.index(y) + xs.count(y)
    zs = list(xs)
    xs.clear()
    xs.append(last)
    return weighted(ys) * weighted(zs) + second * n + weighted(xs)


def sums_and_multiples_of_lists(x, y):
    xs = [x, y] + [x * y]
    xs += (y, x)
    ys = xs
    ys *= 2
    zs = 2 * [x, y] + [y] * 3 + [x] * 0
    return weighted(xs) * weighted(zs) + (xs is ys)


def an_alias_of_a_list(x, y):
    xs = [x, y]
    table = {"xs": xs, "again": [xs]}
    table["again"][0][0] = y * y
    table["xs"].append(x * xs[0])
    return weighted(xs)


def a_list_that_grows_while_it_is_read(x, y):
    xs = [x, y]
    s = 0.0
    for v in xs:
        if len(xs) < 5:
            xs.append(v * x)
        s = s * y + v
    return s


def nested_lists(x, y):
    rows = [[x, y], [y, x * y]]
    rows[0][1], rows[1][0] = rows[1][0], rows[0][1] * x
    rows.append(rows[0])
    rows[2][0] *= 2
    return weighted(rows[0]) * weighted(rows[1])


def tuples(x, y):
    t = (x, y, x * y)
    u = t[1:] + (x,) + t[::-1] * 2
    u += t
    (a, b), *rest = (u[0], u[-2]), *u[2:]
    return weighted(u) * t[-1] + a * b + weighted(rest)


def named_tuples(x, y):
    n = Named(x, y)
    m = n._replace(u=n.v * x)
    u, v = m
    return u * v * n[0] + n._asdict()["v"] + sum(Named(x)) + n[0:1][0]


def unpacking(x, y):
    a, b = [x, y]
    (c, (d, *e)), f = (a * b, (b, a, a)), x
    *g, h = {"k": c, "m": d}.items()
    [i] = {x * y}
    first, second = np.array([x, y]) * 1.0
    return a * c + d * e[1] + f * h[1] * g[0][1] + i + first * second


def methods_of_dicts(x, y):
    d = {"a": x, "bb": y}
    d["ccc"] = d["a"] * d["bb"]
    d["a"] = d["a"] * y
    d.update(bb=x, dddd=x * y)
    d.update({"a": d["a"] * x})
    d.update([("e", y), ["ff", x]])
    popped = d.pop("ff") * d.pop("no", x)
    d.setdefault("a", y)
    d.setdefault("gg", y * y)
    key, value = d.popitem()
    e = d.copy()
    del d["bb"]
    s = of_dict(d) * of_dict(e) + popped + len(key) * value + d.get("a") * d.get("no", y)
    d.clear()
    d["z"] = x
    return s + of_dict(d)


def making_dicts(x, y):
    d = dict(a=x, bb=y)
    e = dict([("a", y), ("ccc", x)], dd=x * y)
    f = {**d, "a": y * y, **e, "eeee": x}
    g = dict(zip(["p", "qq"], (x, y)))
    h = {k * 2: v * x for k, v in g.items() if v > 0}
    i = dict.fromkeys(["a", "b"], x) | d
    i |= h
    j = dict(Mapping(x)) | dict(d)
    return of_dict(d) * of_dict(e) + of_dict(f) + of_dict(h) * of_dict(i) * of_dict(j)


def reading_dicts(x, y):
    d = {"a": x, "bb": y}
    s = 0.0
    for k in d:
        s += d[k] * len(k)
    for v in d.values():
        s *= v
    for k, v in reversed(d.items()):
        d[k] = v * s
    return s + weighted(list(d.values())) + weighted([v for _, v in sorted(d.items())])


def keys_of_dicts(x, y):
    s = 0.0
    for k in {x: 1, x * y: 2}:
        s += k * y
    return s


def other_dicts(x, y):
    d = collections.defaultdict(lambda: x * y)
    d["a"] += x
    d["bb"] *= y
    o = collections.OrderedDict(a=x, bb=y)
    o.move_to_end("a")
    o["ccc"] = o.pop("a") * x
    first = o.popitem(last=False)[1]
    c = collections.Counter("abca")
    m = Defaults(w=x)
    counted = collections.defaultdict(float, {"k": x})
    counted["k"] += y
    return of_dict(d) * of_dict(o) * first + c["a"] * x + m["four"] * m["w"] + counted["k"]


def sets(x, y):
    s = {x, y, x * y, x}
    s.add(x + y)
    s.update([x * x, y])
    s.discard(y)
    s.discard(-1.0)
    total = 0.0
    for v in s:
        total += v * v
    t = frozenset([x, 5.0]) | {y}
    return total + sum(t) * len(s & {x}) + sum(set(s) - {x}) + sum(t ^ {5.0}) + {y}.pop()


def a_list_of_a_class_with_methods_of_its_own(x, y):
    xs = Loud([x])
    xs.append(y)
    xs[0] = x * y
    return xs[0] * xs[1] * xs[2] * len(xs)


def star_arguments(x, y):
    def f(a, *args, b=1.0, **kwargs):
        kwargs["k"] = kwargs["k"] * a
        return a * weighted(args) * b + of_dict(kwargs)

    options = {"k": x, "b": y}
    return f(x, *[y, x], *(x * y,), **options) + f(*(x for x in ()), x, k=y) + options["k"]


def operators_as_functions(x, y):
    xs = operator.concat([x], [y, x * y])
    operator.setitem(xs, 0, operator.getitem(xs, 1) * x)
    operator.delitem(xs, 1)
    operator.iadd(xs, [y])
    return weighted(operator.mul(xs, 2))


PROGRAMS = [
    items_and_slices,
    methods_of_lists,
    sums_and_multiples_of_lists,
    an_alias_of_a_list,
    a_list_that_grows_while_it_is_read,
    nested_lists,
    tuples,
    named_tuples,
    unpacking,
    methods_of_dicts,
    making_dicts,
    reading_dicts,
    keys_of_dicts,
    other_dicts,
    sets,
    a_list_of_a_class_with_methods_of_its_own,
    operators_as_functions,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_agrees_with_differences(program):
    check_gradient(program, 0.7, 1.3)


def test_gradients_have_the_structure_of_their_arguments():
    args = ((2.0, "s", [3.0]), [1.0, (4.0, None)], {"b": 5.0, "a": [6.0, True]}, Named(7.0, 8.0))

    def f(t, xs, d, n):
        return t[0] * t[2][0] * xs[1][0] * d["a"][0] * n.v

    assert gradient(f, *args) == (
        (576.0, None, [384.0]),
        [0.0, (288.0, None)],
        {"b": 0.0, "a": [192.0, None]},
        Named(0.0, 144.0),
    )
    assert list(gradient(f, *args)[2]) == ["b", "a"]
    assert type(gradient(f, *args)[3]) is Named


def test_gradients_mirror_containers_as_they_were_on_entry():
    def f(xs, d):
        xs.append(xs.pop(0) * 2)
        d["new"] = d.pop("old") * xs[-1]
        xs[0] = None
        return d["new"]

    xs, d = [1.0, 5.0], {"old": 3.0}
    assert gradient(f, xs, d) == ([6.0, 0.0], {"old": 2.0})
    assert (xs, d) == ([None, 2.0], {"new": 6.0})


def test_a_list_that_holds_itself():
    xs = [2.0]
    xs.append(xs)
    (ḡ,) = gradient(lambda xs: xs[0] * xs[1][1][0], xs)
    assert ḡ[0] == 4.0
    assert ḡ[1] is ḡ


def test_a_pullback_of_containers_takes_their_structure():
    y, back = pullback(lambda x: ([x, (x * x, {"k": x})], Named(x, 2 * x)), 3.0)
    y[0].clear()
    ȳ = ([1.0, (10.0, {"k": 100.0})], Named(1000.0, 0.0))
    assert [back(ȳ) for _ in range(3)] == [(1161.0,)] * 3
    assert back(([0.0, None], Tangent[Named](v=1.0))) == (2.0,)
    with pytest.raises(ValueError, match="expected one entry for each"):
        back(([1.0], None))
    with pytest.raises(ValueError, match="expected one entry for each"):
        back(1.0)


def test_a_rule_may_return_lists_and_dicts():
    def f(xs, d, t):
        raise AssertionError

    @rrule(f)
    def _(xs: list, d: dict, t: tuple):
        def pullback(ȳ):
            return [ȳ, [2 * ȳ]], {"k": 3 * ȳ}, (4 * ȳ, None)

        return xs[0], pullback

    def g(x):
        inner = [x]
        return f([x, inner], {"k": x}, (x, "s")) + inner[0]

    assert gradient(g, 1.0) == (11.0,)


def test_errors_are_those_of_the_plain_call():
    with pytest.raises(IndexError, match="list index out of range"):
        gradient(lambda x: [x][1], 1.0)
    with pytest.raises(IndexError, match="list assignment index out of range"):
        gradient(lambda x: operator.setitem([x], 1, x), 1.0)
    with pytest.raises(IndexError, match="pop from empty list"):
        gradient(lambda x: [].pop(), 1.0)
    with pytest.raises(KeyError, match="b"):
        gradient(lambda x: {"a": x}["b"], 1.0)
    with pytest.raises(ValueError, match=r"x not in list"):
        gradient(lambda x: [x].remove(x + 1), 1.0)
    with pytest.raises(ValueError, match=r"not enough values to unpack \(expected 2, got 1\)"):
        gradient(lambda x: (lambda a, b: a)(*[x]) if x < 0 else unpack_two([x]), 1.0)
    with pytest.raises(ValueError, match=r"too many values to unpack \(expected 2\)"):
        gradient(lambda x: unpack_two(iter([x, x, x])), 1.0)
    with pytest.raises(TypeError, match="multiple values for keyword argument"):
        gradient(lambda x: dict(**{"a": x}, **{"a": x}), 1.0)


def unpack_two(xs):
    a, b = xs
    return a * b


# -- thunks ----------------------------------------------------------------------------------------


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


STRUCTURES = {
    list: (lambda xs: tuple(xs), lambda a, b: [a, b], lambda a, b: [a, b]),
    dict: (lambda xs: tuple(xs.values()), lambda a, b: {"a": a, "b": b}, lambda a, b: {"a": a, "b": b}),
    tuple: (lambda xs: (xs[0][0], xs[1]), lambda a, b: ([a], b), lambda a, b: ([a], b)),
    Pair: (lambda xs: (xs.a, xs.b), Pair, lambda a, b: Tangent[Pair](a=a, b=b)),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRUCTURES)
def test_a_rule_may_give_a_thunk_for_a_structure(kind, path):
    parts, make, mirror = STRUCTURES[kind]

    def product(xs):
        a, b = parts(xs)
        return a * b

    @rrule(product)
    def _(xs: kind):
        a, b = parts(xs)
        return a * b, lambda ȳ: (Thunk(lambda: mirror(ȳ * b, ȳ * a)),)

    assert gradient(product, make(2.0, 3.0)) == (mirror(3.0, 2.0),)
    assert gradient(lambda x: product(make(x, 3 * x)), 2.0) == (12.0,)


def test_bytes_are_constants(path):
    def f(x):
        b = bytearray(2)
        b[0] = int(x)
        return x * b[0] * b"\x03"[0]

    assert gradient(f, 2.0) == (6.0,)


OF_KEYS = {
    "union of a list": lambda xs: sum({1.5}.union(xs)),
    "union of a tuple": lambda xs: sum(frozenset([1.5]).union(tuple(xs), [0.01])),
    "union of an iterator": lambda xs: sum({1.5}.union(iter(xs))),
    "symmetric difference": lambda xs: sum({9.0}.symmetric_difference([x * 2 for x in xs])),
    "set of a dict": lambda xs: sum(set({x * x: 1 for x in xs})),
    "fromkeys": lambda xs: sum(i * x for i, x in enumerate(dict.fromkeys(xs), 1)),
    "fromkeys with a value": lambda xs: sum(dict.fromkeys("ab", xs[0] * xs[1]).values()),
    "OrderedDict.fromkeys": lambda xs: [*collections.OrderedDict.fromkeys(xs, xs[0])][1],
}


@pytest.mark.parametrize("name", OF_KEYS)
def test_elements_and_keys_that_come_from_other_containers(name):
    def f(xs):
        return OF_KEYS[name](xs) ** 2

    xs, v, h = [0.2, 0.7], [1.0, 0.5], 1e-6
    slope = (f([0.2 + h, 0.7 + h / 2]) - f([0.2 - h, 0.7 - h / 2])) / (2 * h)
    assert np.dot(gradient(f, xs)[0], v) == pytest.approx(slope)
    assert np.dot(pullback(f, xs)[1](1.0)[0], v) == pytest.approx(slope)
    assert jvp(f, (xs,), (v,))[1] == pytest.approx(slope)


def changed_by_operators(s, xs):
    s |= {x * 2 for x in xs}
    s -= {xs[0], 9.0}
    t = s
    t ^= {xs[1], xs[1] ** 2}
    s &= {*s, 1.0}


SET_CHANGES = {
    "operators": changed_by_operators,
    "intersection_update": lambda s, xs: s.intersection_update(xs[:2], tuple(xs)),
    "difference_update": lambda s, xs: s.difference_update([xs[1]], (xs[2],)),
    "symmetric_difference_update": lambda s, xs: s.symmetric_difference_update([xs[0], xs[2] * 5]),
    "by an iterator": lambda s, xs: s.symmetric_difference_update(iter([xs[0], xs[2] * 5])),
    "__ior__": lambda s, xs: s.__ior__({xs[0] ** 2}),
}


@pytest.mark.parametrize("name", SET_CHANGES)
def test_sets_that_are_changed_in_place(name):
    def f(xs):
        s = set(xs)
        SET_CHANGES[name](s, xs)
        return sum(i * x for i, x in enumerate(sorted(s), 1)) ** 2

    xs, v, h = [0.2, 0.7, 0.5], [1.0, 0.5, -0.25], 1e-6

    def along(t):
        return [x + t * w for x, w in zip(xs, v)]

    slope = (f(along(h)) - f(along(-h))) / (2 * h)
    assert np.dot(gradient(f, xs)[0], v) == pytest.approx(slope)
    assert np.dot(pullback(f, xs)[1](1.0)[0], v) == pytest.approx(slope)
    assert jvp(f, (xs,), (v,))[1] == pytest.approx(slope)
    slopes = np.subtract(gradient(f, along(h))[0], gradient(f, along(-h))[0]) / (2 * h)
    assert hvp(f, xs, v) == pytest.approx(slopes)


def test_counts_and_places_in_named_tuples_are_constant():
    def f(x):
        point = collections.namedtuple("Point", "u v")(1.5, x)
        return point.count(x) * x + point.index(x) * x**2

    assert gradient(f, 0.5) == (2.0,)
    assert jvp(f, (0.5,), (1.0,)) == (0.75, 2.0)


def rebound_factory(x):
    d = collections.defaultdict(float)
    d["a"] += x * x
    d.default_factory = None
    try:
        return d["b"]
    except KeyError:
        return d["a"] * x


def other_factory(x):
    d = collections.defaultdict(float)
    d.default_factory = lambda: x * x
    return d["a"] * x


@pytest.mark.parametrize("f", [rebound_factory, other_factory])
def test_the_factory_of_a_dict_is_an_attribute(f):
    check_modes(f, 0.7)


@pytest.mark.parametrize("assigned", [False, True])
def test_a_factory_that_holds_numbers_is_refused(assigned):
    def f(x):
        factory = functools.partial(operator.mul, x, x)
        d = collections.defaultdict(None if assigned else factory)
        if assigned:
            d.default_factory = factory
        return d["a"]

    for derivative in (lambda: morula.grad(f)(0.7), lambda: morula.jvp(f, (0.7,), (1.0,))):
        with pytest.raises(UnsupportedError, match="factory"):
            derivative()
