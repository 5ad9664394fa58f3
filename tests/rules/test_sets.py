"""Sets in compiled programs, what `list()` and the like give, objects that may be unbound."""

import math
from dataclasses import dataclass, field

import pytest

import morula
from morula import gradient
from tests.modes import check_modes


def visited(x):
    graph = {0: [1, 2], 1: [2, 0], 2: [3], 3: []}
    seen, stack, total = set(), [0], 0.0
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        total += x**node
        stack.extend(graph[node])
    return total * len(seen)


def of_texts(x):
    vowels = set("aeiou")
    return sum(x**i for i, c in enumerate("banana") if c in vowels) * len({c for c in "banana"})


def empty_ones(x):
    xs, d, s, t = list(), dict(), set(), tuple()
    xs.append(x)
    xs.append(x * x)
    d["a"] = xs[0]
    s.add(len(xs))
    return xs[1] * d["a"] * len(s) + len(t)


@dataclass
class Record:
    scale: float
    items: list = field(default_factory=list)
    named: dict = field(default_factory=dict)

    def add(self, name, value):
        self.items.append(value * self.scale)
        self.named[name] = value
        return self

    @property
    def total(self):
        return sum(self.items) * len(self.named)


def default_factories(x):
    record = Record(x)
    for i, name in enumerate("aba"):
        record.add(name, x * i)
    return record.total + Record(2.0, [x], {"b": x}).total


class Point:
    def __init__(self, x, depth=0):
        self.x, self.depth = x, depth


def last_of_a_stack(x):
    stack = [Point(x)]
    while stack:
        point = stack.pop()
        if point.depth < 3:
            stack.append(Point(point.x * x + 1, point.depth + 1))
    return point.x * point.depth


def last_of_a_loop(x):
    for i in range(1, 4):
        point = Point(x * i)
    return point.x**2


def with_numbers(x):
    numbers = {x, 2 * x}
    numbers.add(x * x)
    return max(numbers) * min(numbers) + sum(sorted(numbers)[:2])


def operations(x):
    a, b = {1, 2, 3}, {3, 4}
    return sum(x**k for k in sorted(a ^ b)) + x * len(a & b) + x * len(a | b) + len(a - b)


COMPILED = [visited, of_texts, empty_ones, default_factories, last_of_a_stack, last_of_a_loop]


@pytest.mark.parametrize("f", [*COMPILED, with_numbers, operations])
def test_gradients(f):
    check_modes(f, 0.7)


@pytest.mark.parametrize("f", COMPILED)
def test_nothing_is_left_to_run_time(f):
    assert not morula.code_adjoint(f, 0.7).left


def test_an_object_that_was_never_bound():
    def f(x, n):
        for i in range(n):
            point = Point(x * i)
        return point.x

    assert gradient(f, 0.7, 3)[0] == 2.0
    for _ in range(2):
        with pytest.raises(UnboundLocalError, match="'point'"):
            gradient(f, 0.7, 0)
    assert gradient(f, 0.7, 2)[0] == 1.0


def test_a_set_that_is_returned_is_a_set():
    def f(x):
        seen = set()
        for i in range(3):
            seen.add(i % 2)
        return x * math.sqrt(len(seen)), seen

    slope, seen = morula.grad(f, has_aux=True)(2.0)
    assert (slope, seen, type(seen)) == (math.sqrt(2), {0, 1}, set)
