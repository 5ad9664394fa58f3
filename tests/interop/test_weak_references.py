"""Operators, iteration and calls of what weakref.proxy gives."""

import operator
import weakref

import pytest

from tests.modes import check_modes


class Pair:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return self.v + other

    def __rsub__(self, other):
        return other - self.v

    def __mul__(self, other):
        return self.v * other.v

    def __neg__(self):
        return -self.v

    def __iadd__(self, other):
        self.v = self.v + other
        return self

    def __getitem__(self, i):
        if i > 1:
            raise IndexError(i)
        return self.v * (i + 1)

    def __setitem__(self, i, value):
        self.v = value * i

    def __contains__(self, value):
        return value > self.v

    def __len__(self):
        return 2

    def __bool__(self):
        return self.v > 0

    def __abs__(self):
        return abs(self.v)

    def __float__(self):
        return float(self.v)

    def __pow__(self, n):
        return self.v**n

    def __lt__(self, other):
        return self.v < other


class Callable(Pair):
    def __call__(self, y, by=1.0):
        return self.v * y * by


def assigned(p, x):
    p[2] = x**3
    return p.v * x


def changed(p, x):
    q = p
    q += x * x
    return p.v * q.v


def looped(p, x):
    y = 0.0
    for i, value in enumerate(p):
        y += value * (i + x)
    first, second = p
    start, *rest = p
    return y + first * second + start * rest[0]


CASES = {
    "sum": lambda p, x: (p + 1.0) * x,
    "difference from the right": lambda p, x: (x - p) * x,
    "product of two": lambda p, x: p * p,
    "sign": lambda p, x: -p,
    "power": lambda p, x: p**2,
    "item": lambda p, x: p[1] * x,
    "assigned item": assigned,
    "in place": changed,
    "loop": looped,
    "all items": lambda p, x: sum(p) * max(p) + list(p)[1] + next(iter(p)),
    "questions": lambda p, x: (x if p < 100 and 100 in p and p else 0.0) * len(p),
    "number": lambda p, x: float(p) * abs(p),
    "by the operator": lambda p, x: operator.getitem(p, 1) * operator.add(p, x),
    "kept in a list": lambda p, x: [p, x][0].v * {"a": p}["a"].v,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", [Pair, Callable])
def test_a_proxy_is_asked_as_the_object_is(name, kind):
    def f(x):
        a = kind(x * x)
        return CASES[name](weakref.proxy(a), x) * a.v

    check_modes(f, 1.3)


def test_a_proxy_is_called():
    def f(x):
        a = Callable(x * x)
        p = weakref.proxy(a)
        return p(x) * p(2.0, by=x)

    check_modes(f, 1.3)
