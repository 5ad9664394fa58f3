"""Numbers that are keys of dicts: what reads them, and what puts them into other dicts."""

import collections
import math
import statistics
from collections import Counter, OrderedDict, defaultdict

import pytest

from morula import grad, gradient, jvp
from tests.modes import check_modes


def by_setdefault(v):
    d = {}
    d.setdefault(v * v, 1)
    d.setdefault(v * v, 2)
    return sum(d)


def by_a_factory(v):
    d = defaultdict(list)
    d[v * v].append(v)
    return sum(k * values[0] for k, values in d.items())


def updated(v):
    d = {v: 1.0}
    d.update({v * v: v, v: 2.0})
    d.update([(v**3, v)])
    return sum(k * value for k, value in d.items())


def counted(v):
    c = Counter()
    c.update([v, v * v, v])
    c.update([v * v, v**3])
    return sum(k * n for k, n in c.items())


class Even(Counter):
    def __setitem__(self, key, n):
        super().__setitem__(key, 2 * n)


class Table(collections.UserDict):
    pass


KEYS = {
    "a display": lambda v: sum({v: 1, v * v: 2}),
    "dict": lambda v: max(dict({v * v: 1})) * v,
    "pairs": lambda v: sum(dict(zip([v, v * v], [1, 2], strict=True))) * v,
    "copy": lambda v: max({v * v: 1}.copy()) * v,
    "**": lambda v: max({**{v * v: 1}}) * v,
    "|": lambda v: max({v * v: 1} | {1.0: 2}) * v,
    "fromkeys": lambda v: sum(dict.fromkeys([v, v * v], 2)),
    "popitem": lambda v: {v * v: 1}.popitem()[0] * v,
    "setdefault": by_setdefault,
    "a factory": by_a_factory,
    "update": updated,
    "an inverse table": lambda v: next(iter({b: a for a, b in {"x": v * v}.items()})) * v,
    "OrderedDict": lambda v: next(iter(OrderedDict([(v * v, 1)]).copy())) * v,
    "ChainMap": lambda v: max(collections.ChainMap({v * v: 1}, {v: 1})) * v,
    "UserDict": lambda v: max(Table({v * v: 1})) * v,
    "tuples": lambda v: max(dict({(v, v * v): 1}))[1] * v,
    "Counter": lambda v: sum(k * n for k, n in Counter([v, v * v, v]).items()) * v,
    "Counter of a generator": lambda v: sum(
        k * n for k, n in Counter(x * x for x in [v, 2.0, v]).items()
    ),
    "Counter of pairs": lambda v: sum(
        a * b for a, b in Counter(zip([v, 2.0], [v, v], strict=True))
    ),
    "Counter of a map, more than once": lambda v: max(
        Counter(map(math.exp, [v, 1.0])) + Counter(reversed([v]))
    ),
    "Counter.update": counted,
    "Counter of a class of its own": lambda v: sum(k * n for k, n in Even([v, v * v, v]).items()),
    "Counter of counts": lambda v: sum(k * n for k, n in Counter({v: 2}).items()) * v,
    "elements": lambda v: sum(Counter([v, v * v, v]).elements()) * v,
    "most_common": lambda v: Counter([v, v * v, v]).most_common(1)[0][0] ** 2,
    "sum of counters": lambda v: sum(
        k * n for k, n in (Counter([v]) + Counter([v * v, v])).items()
    ),
    "mode": lambda v: statistics.mode([v * v, v, v * v]) * v,
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_keep_their_derivatives(name):
    check_modes(KEYS[name], 1.7)


@pytest.mark.parametrize("name", ["a display", "update", "a factory", "Counter.update"])
def test_second_derivatives_in_all_orders_of_the_modes(name):
    f = KEYS[name]
    h = 1e-6
    second = pytest.approx((grad(f)(1.7 + h) - grad(f)(1.7 - h)) / (2 * h), rel=1e-6)

    def slope(v):
        return jvp(f, (v,), (1.0,))[1]

    assert grad(grad(f))(1.7) == second
    assert jvp(grad(f), (1.7,), (1.0,))[1] == second
    assert grad(slope)(1.7) == second
    assert jvp(slope, (1.7,), (1.0,))[1] == second


def test_counts_of_what_is_no_number():
    def f(x):
        c = Counter("abca")
        c.update({"a": x})
        return c["a"] * c["b"] + x

    check_modes(f, 1.7)
    assert gradient(lambda x: Counter([1, 2, 1])[1] * x, 3.0) == (2.0,)


@pytest.mark.parametrize("op", ["__or__", "__and__", "__sub__", "__xor__"])
def test_sets_of_keys_are_refused(op):
    def f(v):
        return (
            max(getattr({v * v: 1, v: 2}.keys(), op)({v * v, 9.0} if op == "__and__" else {v})) * v
        )

    f(1.7)
    for derivative in (gradient, lambda f, v: jvp(f, (v,), (1.0,))):
        with pytest.raises(NotImplementedError):
            derivative(f, 1.7)


def test_sets_of_texts_that_are_keys_are_free():
    def f(v):
        a, b = {"x": v, "y": v * v}, {"x": v}
        return sum(a[k] * b[k] for k in a.keys() & b.keys()) + sum(
            a[k] for k in a.keys() - b.keys()
        )

    check_modes(f, 1.7)
