"""Classes derived from those of Python that say themselves what items, iteration and operators are."""

import collections
import heapq
import math
from collections import OrderedDict, deque

import numpy as np
import pytest

import morula
from morula import UnsupportedError, gradient
from tests.modes import check_modes


class FromOne(list):
    """A list whose places are counted from one."""

    def __getitem__(self, i):
        return list.__getitem__(self, i if isinstance(i, slice) else i - 1)

    def __setitem__(self, i, value):
        list.__setitem__(self, i - 1, value)


class Doubling(list):
    def __iter__(self):
        return iter([v * 2 for v in list.__iter__(self)])

    def append(self, value):
        super().append(value * 3)


class DoublingTuple(tuple):
    def __iter__(self):
        return iter([v * 2 for v in tuple.__iter__(self)])


class Scaled(dict):
    def __getitem__(self, key):
        return dict.__getitem__(self, key) * 10


class Missing(dict):
    def __missing__(self, key):
        return 7.0

    def get(self, key, default=None):
        return dict.get(self, key, default) * 2

    def values(self):
        return [v * 3 for v in dict.values(self)]


class Storing(dict):
    def __setitem__(self, key, value):
        dict.__setitem__(self, key, value * 2)

    def items(self):
        return [(k, v * 5) for k, v in dict.items(self)]

    def __iter__(self):
        return iter(["b", "a"])


class Ordered(collections.OrderedDict):
    def __getitem__(self, key):
        return super().__getitem__(key) * 2


class Queue(collections.deque):
    def append(self, value):
        super().append(value * 2)


class Number(float):
    def __add__(self, other):
        return Number(float(self) * 2 + other)

    __radd__ = __add__

    def __mul__(self, other):
        return Number(float.__mul__(self, other) + 1)

    def __neg__(self):
        return float.__neg__(self) * 3

    def __abs__(self):
        return float(self) * 5


class Whole(int):
    def __mul__(self, other):
        return int(self) + other


def read_from_one(x):
    xs = FromOne([x, x * x, 3.0])
    xs[1] = xs[2] * x
    a, b, c = xs
    return sum(xs) * xs[1] + a * b * c + max(xs) + [*xs, x][0] + (lambda u, v, w: u * v)(*xs)


def run_through(x):
    xs = FromOne([x, x * x])
    pairs = dict(zip("ab", xs, strict=True))
    return pairs["b"] * sorted(xs)[0] + list(enumerate(xs))[1][1] + next(iter(xs)) + tuple(xs)[1]


def doubled(x):
    xs = Doubling([x, 2.0])
    xs.append(x)
    return sum(xs) + xs[2] * max(xs) + sum(v * w for v, w in zip(xs, [1.0, 2.0, x], strict=True))


def doubled_tuple(x):
    t = DoublingTuple([x, 3.0])
    a, b = t
    return sum(t) + t[0] * a + b


def scaled_dict(x):
    d = Scaled(a=x, b=2.0)
    plain, changed = {**d}, dict(d)
    changed.update(Scaled(c=x * x))
    return (
        d["a"] * d.get("b")
        + plain["a"]
        + changed["c"]
        + (lambda a, b: a * b)(**d)
        + sum(d.values())
    )


def missing(x):
    d = Missing(a=x)
    return d["a"] * d["z"] + d.get("a") + sum(d.values()) + d.setdefault("b", x * x) * d.pop("a")


def stored(x):
    d = Storing()
    d["a"] = x
    d.update(b=x * x)
    return sum(v for _, v in d.items()) + sum(d[k] * i for i, k in enumerate(d)) + dict(d)["a"]


def ordered(x):
    d = Ordered(a=x, b=3.0)
    return d["a"] * d["b"] + sum(d.values()) + dict(d)["a"]


def queue(x):
    q = Queue()
    q.append(x)
    q.append(x * x)
    return q[0] * q[1] + sum(q)


def numbers(x):
    n = Number(x)
    return (n * n + n) + (1.0 + n) * 2.0 + (-n) * abs(n) + math.sin(n) + (2.0 - n)


def counted(x):
    d = collections.Counter(a=2)
    d["a"] += 3
    return x ** d["a"]


PROGRAMS = [
    read_from_one, run_through, doubled, doubled_tuple, scaled_dict, missing, stored, ordered, queue,
    numbers, counted,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    check_modes(f, 0.7)


def test_whole_numbers_with_operators_of_their_own():
    assert gradient(lambda x: Whole(x) * x, 3) == (1.0,)  # `int` rounds
    assert gradient(lambda n, x: n * x, Whole(3), 2.0) == (0.0, 1.0)


def test_a_list_that_says_itself_how_long_it_is():
    class Long(list):
        def __len__(self):
            return 5

    def f(x):
        xs = Long([x, 2.0])
        xs.append(x)
        return xs[2]

    with pytest.raises(UnsupportedError, match="`__len__` of its own"):
        gradient(f, 0.7)
    assert gradient(lambda x: x * len(Long([1.0])), 0.7) == (5.0,)


class Reversed(list):
    """Runs backwards."""

    def __iter__(self):
        return list.__reversed__(self)


class Ring(deque):
    def __getitem__(self, i):
        return super().__getitem__(i % len(self)) * 3

    def __setitem__(self, i, value):
        super().__setitem__(i % len(self), value * 2)

    def __delitem__(self, i):
        super().__delitem__(i % len(self))

    def rotate(self, n=1):
        super().rotate(-n)


class ByName(dict):
    def __iter__(self):
        return iter(sorted(dict.keys(self)))


class Renamed(dict):
    def keys(self):
        return ["b"]

    def __getitem__(self, key):
        return 3 * dict.__getitem__(self, key)


def first_and_last(d):
    values = list(d.values())
    return values[0] * values[-1] ** 2


def put_in_a_ring(x):
    ring = Ring([x, x * x])
    ring[3] = x**3
    ring.rotate()
    del ring[4]
    ring.append(x)
    return ring[0] + 2.0 * ring[3]


def heap(x):
    items = Reversed([2 * x, x, 3 * x])
    heapq.heapify(items)
    return heapq.heappop(items) + 5 * heapq.heappop(items)


def in_order(x):
    items = Reversed([2 * x, x * x, 3 * x])
    items.sort()
    return list.__getitem__(items, 0) + 2 * list.__getitem__(items, 2)


def moved_to_the_end(x):
    d = OrderedDict(a=x, b=x * x)
    d.move_to_end("a")
    return first_and_last({**d}) + first_and_last(d.copy()) + first_and_last(dict(d))


FOUND = {
    "ring": put_in_a_ring,
    "heap": heap,
    "in order": in_order,
    "concatenate": lambda x: np.concatenate(Reversed([np.array([x]), np.array([x * x])]))[0],
    "display of a dict": lambda x: first_and_last({**ByName(b=x * x, a=x)}),
    "dict": lambda x: first_and_last(dict(ByName(b=x * x, a=x))),
    "update": lambda x: first_and_last(OrderedDict(ByName(b=x * x, a=x))),
    "copy": lambda x: first_and_last(ByName(b=x * x, a=x).copy()),
    "keys": lambda x: first_and_last(OrderedDict(Renamed(b=x * x, a=x))),
    "keywords": lambda x: (lambda **named: first_and_last(named))(**ByName(b=x * x, a=x)),
    "moved to the end": moved_to_the_end,
}


@pytest.mark.parametrize("name", FOUND)
def test_what_compiled_code_finds_in_them(name):
    f, x = FOUND[name], 1.3
    slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
    for _ in range(2):
        value, (gradient,) = morula.withgradient(f, x)
        assert value == f(x)
        np.testing.assert_allclose(gradient, slope, rtol=1e-6)
    np.testing.assert_allclose(morula.jvp(f, (x,), (1.0,)), (value, slope), rtol=1e-6)


class Contrary(dict):
    def __contains__(self, key):
        asked.append(key)
        return not super().__contains__(key)


asked = []


def test_a_dict_of_a_class_is_not_taken_for_that_of_a_module():
    def f(x):
        return x * x if "b" in Contrary(a=x) else x

    asked.clear()
    assert gradient(f, 1.3) == (2.6,)
    assert "__name__" not in asked
