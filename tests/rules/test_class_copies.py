"""Copies, unions and sums of containers of a user's class."""

import copy
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np
import pytest

import morula


class Getting(dict):
    def __iter__(self):
        return super().__iter__()

    def __getitem__(self, key):
        return 3 * super().__getitem__(key)


class Keyed(dict):
    def keys(self):
        return ["a"]

    def __iter__(self):
        return super().__iter__()

    def __getitem__(self, key):
        return 5 * super().__getitem__("b")


class OrderedGetting(OrderedDict):
    def __getitem__(self, key):
        return 3 * super().__getitem__(key)


class OrderedSetting(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, 3 * value)


class DefaultMade(defaultdict):
    def __init__(self, factory=None, *rest, **items):
        super().__init__(factory, *rest, **items)
        for key in list(self):
            self[key] = self[key] * 2


class DefaultGetting(defaultdict):
    def __iter__(self):
        return super().__iter__()

    def __getitem__(self, key):
        return 3 * super().__getitem__(key)


class DefaultSetting(defaultdict):
    def __setitem__(self, key, value):
        super().__setitem__(key, 3 * value)


class Counting(Counter):
    def __setitem__(self, key, value):
        super().__setitem__(key, 3 * value)


DICTS = (
    dict, OrderedDict, defaultdict, Counter, Getting, Keyed, OrderedGetting, OrderedSetting,
    DefaultMade, DefaultGetting, DefaultSetting, Counting,
)  # fmt: skip


def made(cls, x):
    return cls(lambda: x, a=x, b=x) if issubclass(cls, defaultdict) else cls(a=x, b=x)


def updated(d, other):
    d.update(other)
    return d


def in_place(d, other):
    d |= other
    return d


OF_DICTS = {
    "copy": lambda d, x: d.copy(),
    "copy.copy": lambda d, x: copy.copy(d),
    "copy.deepcopy": lambda d, x: copy.deepcopy(d),
    "union": lambda d, x: d | {"z": x},
    "union, plain first": lambda d, x: {"z": x} | d,
    "union with ordered": lambda d, x: d | OrderedDict(a=x * x),
    "union with default": lambda d, x: defaultdict(float, b=x * x) | d,
    "method of the base": lambda d, x: dict.__or__(d, {"b": x * x}),
    "from the right": lambda d, x: d.__ror__({"b": x * x, "a": 1.0}),
    "no union": lambda d, x: {"a": x if d.__or__([x]) is NotImplemented else 0.0, "b": 1.0},
    "update": lambda d, x: updated({"z": x}, d),
    "update it": lambda d, x: updated(d, {"a": x * x}),
    "in place": lambda d, x: in_place(d, {"a": x * x}),
    "dict": lambda d, x: dict(d),
    "setdefault, there": lambda d, x: {"a": d.setdefault("a", x), "b": 1.0},
    "setdefault, new": lambda d, x: {"a": d.setdefault("c", x * x), "b": dict.__getitem__(d, "c")},
}


def check(f, x=1.3):
    f(x)
    slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
    y, (gradient,) = morula.withgradient(f, x)
    assert y == f(x)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6)
    np.testing.assert_allclose(morula.jvp(f, (x,), (1.0,))[1], slope, rtol=1e-6)


@pytest.mark.parametrize("expression", OF_DICTS)
@pytest.mark.parametrize("cls", DICTS)
def test_dicts(cls, expression):
    if cls is Keyed and expression in ("from the right", "method of the base"):
        pytest.skip("gives no other item than `a`")

    def f(x):
        d = OF_DICTS[expression](made(cls, x), x)
        return dict.__getitem__(d, "a") + 0.5 * dict.get(d, "b", x)

    check(f)


@pytest.mark.parametrize("cls", [defaultdict, DefaultMade, DefaultGetting, DefaultSetting])
def test_items_that_a_factory_makes(cls):
    def f(x):
        d = cls(lambda: x * x)
        return d["a"] + 2 * dict.__getitem__(d, "a") + d["a"]

    check(f)


class Made(deque):
    def __init__(self, items=(), maxlen=None):
        super().__init__([3 * v for v in items], maxlen)


class Appending(deque):
    def append(self, value):
        super().append(3 * value)


class Iterating(deque):
    def __iter__(self):
        return (3 * v for v in super().__iter__())


class MadeList(list):
    def __init__(self, items=()):
        super().__init__([3 * v for v in items])


class OwnList(list):
    def __iter__(self):
        return (3 * v for v in super().__iter__())

    def append(self, value):
        super().append(3 * value)


class MadeTuple(tuple):
    def __new__(cls, items=()):
        return super().__new__(cls, [3 * v for v in items])


class OwnTuple(tuple):
    def __iter__(self):
        return (3 * v for v in super().__iter__())


def extended(xs, more):
    xs.extend(more)
    return xs


def sliced(xs, ys):
    xs[:1] = ys
    return xs


def repeated(xs):
    xs *= 2
    return xs


def remade(xs, x):
    xs.__init__([x, x * x])
    return xs


OF_SEQUENCES = {
    "copy": lambda q, x: q.copy(),
    "copy.copy": lambda q, x: copy.copy(q),
    "copy.deepcopy": lambda q, x: copy.deepcopy(q),
    "sum": lambda q, x: q + type(q)([x * x]),
    "twice": lambda q, x: q * 2,
    "twice, number first": lambda q, x: 2 * q,
    "in place": lambda q, x: repeated(q),
    "extend": lambda q, x: extended(q, [x * x]),
    "extend another": lambda q, x: extended([x], q),
    "extend a queue": lambda q, x: extended(deque([x]), q),
    "list": lambda q, x: list(q),
    "queue": lambda q, x: deque(q, 1),
    "sorted": lambda q, x: sorted(q),
    "reversed": lambda q, x: list(reversed(q)),
    "slice": lambda q, x: sliced([x, x], q),
    "display": lambda q, x: [x, *q],
    "zip": lambda q, x: [a * b for a, b in zip(q, [x, x * x], strict=True)],
    "made again": lambda q, x: remade(q, x),
}
NOT_OF_TUPLES = ("copy", "extend", "made again")


@pytest.mark.parametrize("expression", OF_SEQUENCES)
@pytest.mark.parametrize(
    "cls", [deque, Made, Appending, Iterating, list, MadeList, OwnList, tuple, MadeTuple, OwnTuple]
)
def test_sequences(cls, expression):
    if issubclass(cls, tuple) and expression in NOT_OF_TUPLES:
        pytest.skip("no such method")

    def f(x):
        return sum(
            [(i + 1) * v for i, v in enumerate(OF_SEQUENCES[expression](cls([x, x * x]), x))]
        )

    check(f)


@pytest.mark.parametrize("n", [2, 3])
def test_a_full_queue_of_a_class(n):
    class Window(deque):
        def __init__(self, items=(), size=n):
            super().__init__(items, maxlen=size)

        def mean(self):
            return sum(self) / len(self)

    def f(x):
        window = Window([x])
        total = 0.0
        for i in range(4):
            window.append(x * i)
            total += window.mean() * i
        return (
            total
            + sum(window.copy() + Window([x * x]))
            + sum((window * 2))
            + sum(copy.copy(window))
        )

    check(f)


class Amount(float):
    def __new__(cls, value):
        return super().__new__(cls, 3 * value)


class Point(tuple):
    def __new__(cls, *given):
        return super().__new__(cls, given)

    def __getnewargs__(self):
        return tuple(2 * v for v in self)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_of_values(duplicate):
    check(lambda x: duplicate(Amount(x)) * 1.0)
    check(lambda x: duplicate(Point(x, x * x))[1])
    check(lambda x: duplicate([Point(x, x * x), Amount(x)])[0][1])


def test_what_is_no_queue_is_refused_as_by_python():
    with pytest.raises(TypeError, match='can only concatenate deque \\(not "list"\\) to deque'):
        morula.gradient(lambda x: (deque([x]) + [x])[0], 2.0)


def test_second_order():
    def f(x):
        d = OrderedSetting(a=x**3).copy() | {"b": x}
        return d["a"] * sum(Made([x]).copy())

    np.testing.assert_allclose(morula.hessian(f, 1.3), 243 * 12 * 1.3**2)
