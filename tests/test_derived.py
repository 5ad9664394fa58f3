"""Classes derived from those of Python that say themselves what items, iteration and operators are."""

import collections
import math

import pytest

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
