"""Lazy iterators over which one loop runs: as generators in programs, as ever elsewhere."""

# ruff: noqa: B905  # as users write it

import functools
import itertools
import math
import operator

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient
from tests.modes import check_modes


def endless(a, b):
    x = 1.0
    while True:
        yield x
        x = x + 0.1 * (a - b * x)


def few(x, n):
    for i in range(n):
        yield x * i + 0.5


def with_state(items):
    """Something that depends on all items and on their order."""
    t = 1.0
    for x in items:
        t = t * (x + 0.5) + 1
    return t


def with_indices(pairs):
    t = 1.0
    for i, x in pairs:
        t = t * 0.5 + i * x
    return t


def until(pairs, n):
    t = 0.0
    for i, x in pairs:
        if i == n:
            break
        t += x * i + x * x
    return t


LAZY = {
    "enumerate": lambda a, b: until(enumerate(endless(a, b)), 20),
    "enumerate from": lambda a, b: with_indices(enumerate(few(a, 5), 2)) * b,
    "enumerate by name": lambda a, b: sum(i * x for i, x in enumerate(few(a, 5), start=1)) * b,
    "zip, first": lambda a, b: with_indices(zip(endless(a, b), range(7))),
    "zip, second": lambda a, b: with_indices(zip(range(7), endless(a, b))),
    "zip, a list": lambda a, b: with_indices(zip([a, b, 2.0], endless(a, b))),
    "zip, a list behind": lambda a, b: with_indices(zip(few(a, 2), [a, b, 2.0])),
    "zip, an array": lambda a, b: with_indices(zip(np.ones(3) * b, endless(a, b))),
    "map": lambda a, b: with_state(map(lambda x: x * x * a, few(b, 4))),
    "map, a function": lambda a, b: with_state(map(math.sin, [a, b, a * b])),
    "map, two": lambda a, b: with_state(map(operator.mul, few(a, 3), [a, b, a * b])),
    "starmap": lambda a, b: with_state(map(pow, few(a, 4), range(4))) * b,
    "filter": lambda a, b: with_state(filter(lambda x: x > 1, few(b, 6))) * a,
    "takewhile": lambda a, b: with_state(itertools.takewhile(lambda x: x < 1.7, endless(a, b))),
    "takewhile, sum": lambda a, b: sum(itertools.takewhile(lambda x: x < 1.7, endless(a, b))),
    "dropwhile": lambda a, b: with_state(
        itertools.islice(itertools.dropwhile(lambda x: x < 1.2, endless(a, b)), 5)
    ),
    "islice": lambda a, b: sum(itertools.islice(endless(a, b), 12)),
    "islice, list": lambda a, b: list(itertools.islice(endless(a, b), 12))[-1] * b,
    "islice, array": lambda a, b: np.sum(np.array(list(itertools.islice(endless(a, b), 9))) ** 2),
    "chain": lambda a, b: with_state(itertools.chain(few(a, 3), few(b, 2))),
    "chain, lists": lambda a, b: with_state(itertools.chain([a, b], [b * b])),
    "count, floats": lambda a, b: with_state(
        itertools.takewhile(lambda n: n < 5, itertools.count(a, b))
    ),
    "accumulate": lambda a, b: with_state(itertools.accumulate((a, b, a * b, 2.0))),
    "pairwise": lambda a, b: with_indices(itertools.pairwise((a, b, a * b, 2.0))),
    "product": lambda a, b: with_state(a**i * b**j for i, j in itertools.product(range(3), range(2))),
    "product, lists": lambda a, b: with_indices(itertools.product([a, b], [a * b, 1.0])),
    "combinations": lambda a, b: with_indices(itertools.combinations((a, b, a * b, 2.0), 2)),
    "combinations, a list": lambda a, b: with_indices(itertools.combinations([a, b, a * b], 2)),
    "combinations, a range": lambda a, b: with_state(
        a * i + b * j for i, j in itertools.combinations(range(4), 2)
    ),
}  # fmt: skip

AT_ONCE = {
    "max and min": lambda a, b: max(few(a, 4)) * min(few(b, 4)),
    "sum": lambda a, b: sum(few(a, 4)) * b,
    "list": lambda a, b: list(few(a, 4))[2] * b,
}
SOMETIMES = {  # not all of it is compiled
    "islice, none": lambda a, b: with_state(itertools.islice(endless(a, b), 0)) * a,
    "zip, an empty list": lambda a, b: with_indices(zip([a, b][2:], endless(a, b))) * a,
    "count": lambda a, b: until(zip(itertools.count(2), endless(a, b)), 9),
    "sum with start": lambda a, b: sum(few(a, 4), b),
    "sorted": lambda a, b: sorted(few(-a, 4))[1] * b,
    "prod": lambda a, b: math.prod(few(a, 4)) * b,
    "tuple": lambda a, b: tuple(few(a, 4))[2] * b,
    "zip, two generators": lambda a, b: with_indices(zip(few(a, 4), few(b, 3))),
}
ALL = LAZY | AT_ONCE | SOMETIMES


@pytest.mark.parametrize("name", ALL)
def test_value_and_gradient(name):
    f = ALL[name]
    value, gradient = morula.value_and_grad(f, (0, 1))(1.3, 0.7)
    assert value == f(1.3, 0.7)
    with compiled.by_the_general_path():
        general = morula.grad(f, (0, 1))(1.3, 0.7)
    np.testing.assert_allclose(gradient, general, rtol=1e-12)
    check_gradient(f, 1.3, 0.7)


@pytest.mark.parametrize("name", LAZY | AT_ONCE)
def test_it_is_compiled(name):
    adjoint = morula.code_adjoint(ALL[name], 1.3, 0.7)
    assert adjoint.kind.startswith("specialised")
    assert not adjoint.left
    assert "make_generator" not in str(adjoint)


def logged(log, name, x, n):
    for i in range(n):
        log.append((name, i))
        yield x * i + 0.1
    log.append((name, "end"))


ORDERS = {
    "zip": lambda log, x: [a * b for a, b in zip(logged(log, "a", x, 2), logged(log, "b", x, 3))],
    "zip, a range first": lambda log, x: [a * b for a, b in zip(range(2), logged(log, "b", x, 3))],
    "zip, a range last": lambda log, x: [a * b for a, b in zip(logged(log, "a", x, 3), range(2))],
    "zip, a list first": lambda log, x: [a * b for a, b in zip([x, x], logged(log, "b", x, 3))],
    "zip, a list last": lambda log, x: [a * b for a, b in zip(logged(log, "a", x, 3), [x, x])],
    "islice": lambda log, x: list(itertools.islice(logged(log, "a", x, 4), 2)),
    "islice, none": lambda log, x: list(itertools.islice(logged(log, "a", x, 4), 0)),
    "takewhile": lambda log, x: list(
        itertools.takewhile(lambda v: v < 1, logged(log, "a", x, 4))
    ),
    "chain": lambda log, x: list(
        itertools.chain(logged(log, "a", x, 1), logged(log, "b", x, 1))
    ),
    "enumerate": lambda log, x: [i * v for i, v in enumerate(logged(log, "a", x, 2))],
    "map": lambda log, x: list(map(lambda v: log.append("f") or v, logged(log, "a", x, 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
def test_what_is_asked_for_and_in_which_order(name):
    log = []

    def f(x):
        return sum(ORDERS[name](log, x), 0.0) * x

    f(0.7)
    expected, log[:] = list(log), []
    morula.grad(f)(0.7)
    assert log == expected


def test_a_list_that_changes_meanwhile():
    def f(x):
        xs, t = [x, 2 * x, 3 * x], 0.0
        for a, b in itertools.pairwise(xs):
            xs[2] = x * x
            t += a * b
        for s in itertools.accumulate(xs):
            xs[1] = 5.0
            t += s
        return t

    assert morula.withgradient(f, 0.7)[0] == f(0.7)
    check_gradient(f, 0.7)


def test_a_negative_number_of_items():
    def f(x, n):
        t = x
        for v in itertools.islice(few(x, 5), n):
            t += v
        return t

    assert morula.grad(f)(0.7, 2) == 2.0
    assert morula.grad(f)(0.7, 0) == 1.0
    with pytest.raises(ValueError, match="islice"):
        morula.grad(f)(0.7, -1)


def test_an_iterator_that_is_kept():
    def f(x):
        pairs = enumerate(few(x, 5))
        _, first = next(pairs)
        t = first
        for i, v in pairs:
            t += i * v
        return t

    check_gradient(f, 0.7)


def running(x, y):
    return list(itertools.accumulate([x, y, x * y], lambda a, b: a * b + 1))[-1]


def running_over_a_list_that_grows(x, y):
    xs, total = [x, y], 0.0
    for s in itertools.accumulate(xs, lambda a, b: a * y + b):
        total += s * s
        if len(xs) < 5:
            xs.append(s)
    return total


def of_three(x, y):
    return sum(a * b * c for a, b, c in itertools.product([x, y], [y, 2.0], [1.0, x]))


def of_itself(x, y):
    total = 0.0
    for a, b in itertools.product([x, y, 2.0], repeat=2):
        total += a * b * b
    return total


def in_both_orders(x, y):
    return sum(a * a * b for a, b in itertools.permutations([x, y, 0.5], 2))


def of_none(x, y):
    return x * y + sum(itertools.accumulate([], lambda a, b: a * b))


def a_list_of_pairs(x, y):
    points = list(zip([x, y, x * y], [y, 1.0, 2.0]))
    total = 0.0
    for (a, b), (c, d) in zip(points, points[1:] + points[:1]):
        total += a * d - b * c
    return total + sum(v * i for i, v in list(enumerate([x, y])))


def neighbours(x, y):
    """What has no neighbour yet is told by a mark."""
    xs = [x, y, x * y]
    return sum((b - a) ** 2 for a, b in itertools.pairwise(xs)) + sum(
        v * v for v in itertools.accumulate(xs)
    )


@pytest.mark.parametrize(
    "f",
    [
        running,
        running_over_a_list_that_grows,
        of_three,
        of_itself,
        in_both_orders,
        of_none,
        neighbours,
        a_list_of_pairs,
    ],
)
def test_more_of_itertools(f):
    check_gradient(f, 0.7, 1.3)
    for _ in range(2):
        assert morula.withgradient(f, 0.7, 1.3)[0] == f(0.7, 1.3)
    code = morula.code_adjoint(f, 0.7, 1.3)
    assert code.kind.startswith("specialised")
    assert not code.left


FIRST = {
    "that is": lambda xs: next(x for x in xs if x > 0.8) * xs[0],
    "place": lambda xs: xs[next(i for i, x in enumerate(xs) if x > 0.8)] ** 2,
    "or another": lambda xs: next((x * x for x in xs if x > 9.0), xs[1] * 3),
    "of a list": lambda xs: next(iter(xs)) * xs[2],
    "of a dict": lambda xs: next(iter({"a": xs[1], "b": 2.0}.values())) * xs[1],
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_of_an_iterator(name):
    f, xs = FIRST[name], [0.5, 1.5, 2.0]
    assert not morula.code_adjoint(f, xs).left
    check_gradient(f, xs)
    with by_the_general_path():
        general = morula.grad(f)(xs)
    assert morula.grad(f)(xs) == general


def test_no_first_of_an_iterator():
    def f(xs):
        return next(x for x in xs if x > 9.0)

    for transform in (morula.grad(f), f):
        with pytest.raises(StopIteration):
            transform([0.5, 1.5])


def test_what_comes_between_an_iterator_and_its_first():
    def f(xs):
        it = iter(xs)
        xs[0] = xs[1] * 3
        return next(it) * xs[0]

    assert morula.grad(f)([1.0, 2.0]) == [0.0, 36.0]


def test_arrays_that_itertools_combine():
    x = np.array([0.5, 1.5, 2.0])
    for f in (
        lambda x: sum(a * b**2 for a, b in itertools.combinations(x, 2)),
        lambda x: sum(a * b**2 for a, b in itertools.product(x, x)),
        lambda x: sum(a - b**2 for a, b in itertools.permutations(x, 2)),
        lambda x: functools.reduce(lambda a, b: a * b + 1, x),
    ):
        assert not morula.code_adjoint(f, x).left
        check_gradient(f, x)
    with pytest.raises(TypeError, match="empty"):
        morula.grad(lambda x: functools.reduce(lambda a, b: a * b, x))(np.zeros(0))


def asked_again(x):
    def doubling(v):
        while True:
            yield v
            v = v * 2

    g, total = doubling(x), 0.0
    for _ in range(3):
        total += next(g)
    return total


def asked_to_the_end(x):
    g, total = (v for v in [x, 2 * x, 3 * x]), 0.0
    while (v := next(g, None)) is not None:
        total += v * v
    return total


def made_again(x):
    return sum([next(v for v in [x, 2 * x, 3 * x] if v > i) for i in range(3)])


@pytest.mark.parametrize("f", [asked_again, asked_to_the_end, made_again])
def test_one_question_asked_several_times(f):
    check_modes(f, 1.3)
