"""Containers that are filled by what runs code: what the code sees, and what an exception leaves."""

import functools
from collections import Counter, OrderedDict, defaultdict, deque

import pytest

from morula import jvp, withgradient


def squares_until_three(x):
    yield x * x
    yield x**3
    raise ValueError("no more")


def pairs_until_two(x):
    yield "a", x * x
    raise ValueError("no more")


class Sparse:
    def __init__(self, x):
        self.x = x

    def keys(self):
        return ["a", "b"]

    def __getitem__(self, key):
        return {"a": self.x**2}[key]


class Doubled(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)


def check(f, slope):
    """The value is that of the plain call at 2., the derivative is this."""
    y = f(2.0)
    assert withgradient(f, 2.0) == (y, (slope,))
    assert jvp(f, (2.0,), (1.0,)) == (y, slope)


def grown(x, container, grow):
    grow(container, (container[-1] * x + container[0] for _ in range(2)))
    return container[-1]  # ((a x + a) x + a) at a = x


@pytest.mark.parametrize(
    ("make", "grow"),
    [
        (lambda x: [x], list.extend),
        (lambda x: [x], lambda xs, more: xs.extend(more)),
        (lambda x: [x], lambda xs, more: xs.__iadd__(more)),
        (lambda x: [x], lambda xs, more: xs.extend(map(lambda v: v, more))),
        (lambda x: deque([x]), deque.extend),
        (lambda x: deque([x], 9), lambda xs, more: xs.__iadd__(more)),
    ],
)
def test_code_that_gives_items_sees_those_before(make, grow):
    check(lambda x: grown(x, make(x), grow), 3 * 4.0 + 2 * 2.0 + 1.0)


def test_augmented_assignment_and_the_other_end():
    def forth(x):
        xs = [1.0, x]
        xs += (xs[-1] + xs[-2] * x for _ in range(2))
        return xs[-1]  # 2 x + x² of 1, x, 2 x

    def back(x):
        xs = deque([x])
        xs.extendleft(xs[0] * x for _ in range(3))
        return xs[0]

    check(forth, 2.0 + 2 * 2.0)
    check(back, 4 * 2.0**3)


@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda **own: defaultdict(float, **own)])
def test_code_that_gives_pairs_sees_those_before(kind):
    def f(x):
        d = kind(a=x)
        d.update((key, d["a"] * x) for key in "aab")
        return d["b"]

    check(f, 4 * 2.0**3)


def test_a_set():
    def f(x):
        s = {x}
        s.update(max(s) * x for _ in range(2))
        return sum(s)

    check(f, 1.0 + 2 * 2.0 + 3 * 4.0)


@pytest.mark.parametrize(
    ("make", "fill"),
    [
        (lambda: [1.0], lambda xs, x: xs.extend(squares_until_three(x))),
        (lambda: [1.0], lambda xs, x: xs.extend(map(abs, squares_until_three(x)))),
        (lambda: [1.0], lambda xs, x: xs.__iadd__(squares_until_three(x))),
        (lambda: deque([1.0]), lambda xs, x: xs.extend(squares_until_three(x))),
        (lambda: deque([1.0]), lambda xs, x: xs.extendleft(squares_until_three(x))),
        (lambda: {1.0}, lambda xs, x: xs.update(squares_until_three(x))),
        (lambda: {1.0}, lambda xs, x: xs.update([x * x], squares_until_three(x))),
        (Counter, lambda xs, x: xs.update(squares_until_three(x))),
    ],
)
def test_what_came_before_an_exception_stays(make, fill):
    def f(x):
        xs = make()
        try:
            fill(xs, x)
        except ValueError:
            return sum(xs) * x
        return 0.0

    first = sum(make())
    check(f, first + 3 * 4.0 + 4 * 8.0)


@pytest.mark.parametrize(
    ("fill", "error"),
    [
        (lambda d, x: d.update(pairs_until_two(x)), ValueError),
        (lambda d, x: d.__ior__(pairs_until_two(x)), ValueError),
        (lambda d, x: d.update([("a", x * x), (1.0,)]), ValueError),
        (lambda d, x: d.update([("a", x * x), 1.0]), TypeError),
        (lambda d, x: d.update(Sparse(x)), KeyError),
    ],
)
def test_pairs_before_an_exception_stay(fill, error):
    def f(x):
        d = {"a": 1.0}
        try:
            fill(d, x)
        except error:
            return d["a"]
        return 0.0

    check(f, 4.0)


def test_elements_that_were_taken_out_before_an_exception():
    def f(x):
        s = {1.0, x * x, x**4}
        try:
            s.difference_update(squares_until_three(x))
        except ValueError:
            return sum(s)
        return 0.0

    check(f, 4 * 8.0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: dict([x]),
        lambda x: dict([("a", x), (x,)]),
        lambda x: {}.update([("a", x), ("b", x, x)]),
        lambda x: {}.update([("a", x)], []),
        lambda x: dict([("a", x)], []),
        lambda x: vars([x]),
        lambda x: vars(x, x),
    ],
)
def test_errors_are_those_of_the_plain_call(wrong):
    with pytest.raises(Exception) as plain:  # noqa: PT011
        wrong(2.0)
    for mode in (withgradient, lambda f, x: jvp(f, (x,), (1.0,))):
        with pytest.raises(plain.type) as found:
            mode(wrong, 2.0)
        assert str(found.value) == str(plain.value)


def test_an_ordered_dict_asks_its_class():
    def f(x):
        d = Doubled(a=x)
        d.update(b=x)
        d.update({"c": x})
        d.update([("d", x)])
        d |= {"e": x}
        return d["a"] * d["b"] * d["c"] * d["d"] * d["e"]

    check(f, 2.0**5 * 5 * 2.0**4)


def told(what, seen):
    for v in what:
        seen.append(("given", v))
        yield v


def multiplied(x, seen):
    def step(a, b):
        seen.append(("taken", b))
        return a * b

    return functools.reduce(step, told([x, 2 * x, 3 * x], seen))


def chosen(x, seen):
    def key(v):
        seen.append(("asked", v))
        return -v

    items = iter(list(told([x, 3 * x], [])))
    return max(map(lambda v: seen.append(("given", v)) or v, items), key=key)


@pytest.mark.parametrize("f", [multiplied, chosen])
def test_what_is_taken_is_used_before_the_next_is_given(f):
    plain, forward = [], []
    f(2.0, plain)
    jvp(lambda x: f(x, forward), (2.0,), (1.0,))
    assert [(what, float(v)) for what, v in forward] == plain
    slope = jvp(lambda x: jvp(lambda y: f(y, []), (x,), (1.0,))[1], (2.0,), (1.0,))[1]
    assert slope == (36.0 * 2.0 if f is multiplied else 0.0)
