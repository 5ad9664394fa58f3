"""Iteration: for loops, iter and next, zip, enumerate, map, filter, reversed."""

# ruff: noqa: B905

import numpy as np
import pytest

from morula import NoRuleError, gradient, pullback
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


def weighted(xs):
    s = 0.0
    for i, x in enumerate(xs):
        s = s * 1.5 + (i + 1.0) * x
    return s


class Growing:
    """An iterator with a state."""

    def __init__(self, x, n):
        self.x = x
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        self.x = self.x * 1.5
        return self.x


class Sequence:
    def __init__(self, x):
        self.x = x

    def __getitem__(self, i):
        if not 0 <= i < 3:
            raise IndexError
        return self.x * (i + 1)

    def __len__(self):
        return 3


class Iterable:
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __reversed__(self):
        return iter([self.items[-1], 2 * self.items[0]])


def over_each_kind(x, y):
    s = weighted([x, y]) * weighted((y, x, x * y)) + weighted(np.array([x, y, x]))
    for row in np.array([[x, y], [y, x]]):
        s = s * 0.5 + row[0] * row.sum()
    for k, c in enumerate("ab"):
        s += k * x * len(c)
    for b in b"a":
        s += b * 0.001 * y
    for v in {x, y}:
        s += v * v
    return s


def over_classes(x, y):
    s = weighted(Growing(x, 3)) + weighted(Sequence(y)) * weighted(Iterable(x, y, x))
    for v in reversed(Sequence(x)):
        s = s * 0.9 + v
    for v in reversed(Iterable(x, y)):
        s = s * 0.9 + v * y
    return s


def by_hand(x, y):
    it = iter([x, y, x * y])
    s = next(it) * next(it)
    rest = iter(it)
    s += next(rest, x) * 3 + next(rest, x * x) + next(rest, y)
    t = iter((x, y))
    return (
        s * next(t) + Growing(y, 1).__next__() + next(Growing(x, 2)) + next(iter({"k": x}.values()))
    )


def zipped(x, y):
    xs, t = [x, y, x * y], (y, x, x)
    s = 0.0
    for a, b, c in zip(xs, t, np.array([x, y, y])):
        s += a * b * c
    for a, (i, b) in zip(Growing(x, 2), enumerate(Sequence(y), 1)):
        s = s * 0.5 + a * b * i
    for a, b in zip(*[iter([x, y, x * x, y * x])] * 2):
        s = s * 1.1 + a * b
    for a, b in zip(*[map(lambda v: v * x, [x, y, x, y])] * 2):
        s = s * 1.1 + a / b
    for (a, b), c in zip(zip(*[iter((x, y, x, y))] * 2), xs):
        s = s * 1.1 + a * b * c
    return s + weighted([a for a, _ in zip(xs, t, strict=True)])


def mapped(x, y):
    xs = [x, y, x * y]
    s = weighted(map(lambda v: v * v, xs)) * weighted(map(lambda a, b: a * b * x, xs, (y, x)))
    s += weighted(map(lambda v: v * y, map(lambda v: v + x, xs)))
    s += weighted(list(map(float, xs))) + sum(map(abs, [-x, y])) + max(map(lambda v: v * y, xs))
    return (
        s + weighted(map([x, y, x * x].__getitem__, [2, 0, 1])) + weighted(map(pow, (x, y), [2, 3]))
    )


def filtered(x, y):
    xs = [x, -1.0, y, x * y, 0.0]
    s = weighted(filter(lambda v: v > 0, xs)) * weighted(filter(None, map(lambda v: v * x, xs)))
    for a, b in filter(lambda p: p[1] > 0.8, zip([1.0, 2.0], (x, y))):
        s = s * a + b
    return s


def reversed_things(x, y):
    xs, t = [x, y, x * y], (y, x)
    s = weighted(reversed(xs)) * weighted(reversed(t)) + weighted(reversed(np.array([x, y])))
    d = {"a": x, "b": y}
    for k in reversed(d):
        s = s * 0.5 + d[k]
    for v in reversed(d.values()):
        s = s * 0.5 + v
    for i in reversed(range(3)):
        s = s * x + i
    return s


def a_list_changed_while_it_is_read(x, y):
    xs = [x, y, x * y]
    s = 0.0
    for i, v in enumerate(xs):
        s += v * v
        if i + 1 < len(xs):
            xs[i + 1] = xs[i + 1] * v
    d = {"a": x, "b": y}
    for k, v in d.items():
        d[k] = v * s
        d["b"] *= 2
    return s + d["a"] * d["b"]


def a_sentinel(x, y):
    items = [x, y, -1.0, x]
    s = 1.0
    for v in iter(lambda: items.pop(0), -1.0):
        s = s * v + x
    return s * items[0]


def a_captured_function_with_a_state(x, y):
    total = x

    def step(v):
        nonlocal total
        total = total * v + y
        return total * v

    s = weighted(map(step, [x, y, x]))
    return s * total


def comprehensions(x, y):
    a = [v * w for v in [x, y] for w in (x, y) if v is not w]
    b = {k: v * x for k, v in zip("ab", [x, y])}
    c = [[v * w for v in [x, y]] for w in [y, x]]
    d = {v * 2 for v in (x,)}
    return weighted(a) * b["b"] + c[0][1] * c[1][0] + sum(d)


PROGRAMS = [
    over_each_kind,
    over_classes,
    by_hand,
    zipped,
    mapped,
    filtered,
    reversed_things,
    a_list_changed_while_it_is_read,
    a_sentinel,
    a_captured_function_with_a_state,
    comprehensions,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_agrees_with_differences(program):
    check_gradient(program, 0.7, 1.3)


def test_iterators_stay_pythons_own_and_lazy():
    seen = []

    def noting(v):
        seen.append(v)
        return v * v

    def f(x):
        xs = map(noting, [x, 2 * x, 3 * x])
        kinds = [type(it) for it in (xs, zip([x]), enumerate([x]), filter(None, [x]), iter([x]))]
        first = next(xs)
        seen.append(None)
        return first * next(xs), kinds

    y, back = pullback(f, 1.0)
    assert seen == [1.0, None, 2.0]
    assert y == (4.0, [map, zip, enumerate, filter, type(iter([]))])
    assert back((1.0, None)) == (16.0,)


def test_effects_happen_once_and_in_order():
    log = []

    def note(name):
        def noting(v):
            log.append((name, v))
            return v * 2

        return noting

    def f(x):
        s = 0.0
        for a, b in zip(map(note("f"), [x, 2 * x]), map(note("g"), map(note("h"), [x]))):
            s += a * b
        return s + sum(map(note("i"), filter(note("p"), [x, 0.0])))

    def plain():
        log.clear()
        return f(1.0), list(log)

    expected = plain()
    log.clear()
    y, back = pullback(f, 1.0)
    assert (y, log) == expected
    assert [back(1.0), back(1.0)] == [(18.0,), (18.0,)]
    assert log == expected[1]


def test_an_infinite_iterator_is_read_as_far_as_needed():
    class Powers:
        def __init__(self, x):
            self.x = x
            self.y = 1.0

        def __iter__(self):
            return self

        def __next__(self):
            self.y = self.y * self.x
            return self.y

    def f(x):
        s = 0.0
        for i, (v, w) in enumerate(zip(Powers(x), map(lambda u: u * x, Powers(x)))):
            if i == 3:
                break
            s += v * w
        return s

    check_gradient(f, 0.7)


def test_functions_that_consume_iterators_and_give_constants():
    def f(x):
        xs = [x, 2 * x]
        if all(map(lambda v: v > 0, xs)) and any([v > 1 for v in xs]) and x in iter(xs):
            return x * len(list(map(str, xs))) * len(",".join(map(str, xs)))
        return 0.0

    assert gradient(f, 1.0) == (14.0,)


def test_errors_are_those_of_the_plain_call():
    with pytest.raises(StopIteration):
        gradient(lambda x: next(iter([])) * x, 1.0)
    with pytest.raises(TypeError, match="'float' object is not iterable"):
        gradient(lambda x: weighted(x), 1.0)
    with pytest.raises(TypeError, match="'list' object is not an iterator"):
        gradient(lambda x: next([x]), 1.0)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        gradient(lambda x: weighted([a for a, b in zip([x, x], [x], strict=True)]), 1.0)

    def f(x):
        d = {"a": x}
        for k in d:
            d[k * 2] = x

    with pytest.raises(RuntimeError, match="dictionary changed size during iteration"):
        gradient(f, 1.0)


def test_an_unknown_iterator_is_refused_only_if_it_matters():
    import re

    def harmless(x):
        for m in re.finditer("a", "aa"):
            x = x * len(m.group())
        return x

    assert gradient(harmless, 2.0) == (1.0,)
    with pytest.raises(NoRuleError):
        gradient(lambda x: next(np.broadcast(np.array([x]), 1.0))[0] * x, 2.0)


def test_long_loops_need_no_recursion():
    def f(x):
        s = 0.0
        for v in map(lambda v: v * x, [1.0] * 3000):
            s += v
        return s

    assert gradient(f, 2.0) == (3000.0,)
