"""Functions that call themselves and work on lists, dicts, objects: found by identity."""

import math

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


def total(t):
    if isinstance(t, list):
        return sum(total(u) for u in t) * 2.0
    return t * t


def sorted_by_parts(xs):
    if len(xs) <= 1:
        return xs
    first, rest = xs[0], xs[1:]
    less = [x for x in rest if x < first]
    more = [x for x in rest if x >= first]
    return sorted_by_parts(less) + [first] + sorted_by_parts(more)


def weighted(xs):
    return sum(x * (i + 1) for i, x in enumerate(sorted_by_parts(xs)))


def determinant(m):
    if len(m) == 1:
        return m[0][0]
    found = 0.0
    for j in range(len(m)):
        minor = [row[:j] + row[j + 1 :] for row in m[1:]]
        found += (-1) ** j * m[0][j] * determinant(minor)
    return found


def evaluated(e, names):
    if isinstance(e, str):
        return names[e]
    if e[0] == "num":
        return e[1]
    if e[0] == "sin":
        return math.sin(evaluated(e[1], names))
    left, right = evaluated(e[1], names), evaluated(e[2], names)
    return left + right if e[0] == "add" else left * right


FORMULA = ("add", ("mul", "x", ("num", 3.0)), ("sin", ("mul", "x", "y")))


def by_formula(x, y):
    return evaluated(FORMULA, {"x": x, "y": y})


def filled(out, x, n):
    """It fills a list that it is given."""
    if n:
        out.append(x * n)
        filled(out, x * x, n - 1)
    return out


def of_filled(x, y):
    return sum(filled([y], x, 3)) * y


class Node:
    def __init__(self, value, children=()):
        self.value, self.children = value, list(children)


def height(node):
    return node.value * node.value + sum([height(c) for c in node.children])


def built(x, n):
    return Node(x * n, [built(x * 0.5, n - 1) for _ in range(n)])


def of_a_tree(x, y):
    return height(built(x, 2)) * y


def of_an_argument(node):
    return height(node)


def first_of_two(pair, n):
    """Nothing reaches the second item."""
    return pair[0] * n if n == 0 or n > 3 else first_of_two([pair[0] * 2.0, pair[1]], n + 1)


def unused(x, y):
    return first_of_two([x, math.sqrt(y)], 1)


NUMBERS = [
    (by_formula, (0.7, 1.3)), (of_filled, (0.7, 1.3)), (of_a_tree, (0.7, 1.3)), (unused, (0.7, 1.3)),
]  # fmt: skip
LISTS = [
    (total, [1.0, [2.0, [3.0, 0.5]], 0.25]), (weighted, [3.0, 1.0, 2.0, 5.0, 4.0]),
    (determinant, [[4.0, 1.0, 2.0], [1.0, 3.0, 0.5], [2.0, 0.5, 5.0]]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), [*NUMBERS, *[(f, (x,)) for f, x in LISTS]])
def test_value_and_gradient(f, args):
    check_gradient(f, *args)
    with by_the_general_path():
        general, expected = morula.withgradient(f, *args)
    for _ in range(2):
        value, gradients = morula.withgradient(f, *args)
        assert repr(value) == repr(general) == repr(f(*args))
        flat, _ = morula.ravel(gradients)
        np.testing.assert_allclose(flat, morula.ravel(expected)[0], rtol=1e-12)
    _, back = morula.pullback(f, *args)
    for _ in range(2):
        np.testing.assert_allclose(morula.ravel(back(2.0))[0], 2.0 * flat, rtol=1e-12)


def test_zeros_stay_structural():
    assert morula.gradient(unused, 0.7, 0.0)[1] == 0.0


def test_an_object_as_an_argument():
    tree = Node(1.0, [Node(2.0), Node(3.0, [Node(0.5)])])
    for _ in range(2):
        (gradient,) = morula.gradient(of_an_argument, tree)
        assert gradient.value == 2.0
        assert [c.value for c in gradient.children] == [4.0, 6.0]
        assert gradient.children[1].children[0].value == 1.0


def test_second_order():
    def f(x):
        return by_formula(x, 1.3)

    h, slope = 1e-5, morula.grad(f)
    expected = (slope(0.7 + h) - slope(0.7 - h)) / (2 * h)
    assert morula.hvp(f, 0.7, 1.0) == pytest.approx(expected, rel=1e-6)
    assert morula.jvp(f, (0.7,), (1.0,))[1] == pytest.approx(slope(0.7), rel=1e-12)


def changing(xs, n):
    """What it is given is changed, so nothing is known of it behind the call."""
    if n:
        xs.append(0.5 * n)
        return changing(xs, n - 1) + xs[0]
    return xs[-1] * 2.0


def changed_list(x, y):
    xs = [x, y]
    first = changing(xs, 2)
    return first + sum(xs) * len(xs)


def of_whole_numbers(xs, n):
    return xs[0] if n == 0 else of_whole_numbers([x * 0.5 for x in xs], n - 1) + (-1) ** n * len(xs)


def whole(x, y):
    """Lists of ints at first, then of floats."""
    return of_whole_numbers([2, 3], 3) * x * y


def below(xs, table):
    return 0.0 if not xs else xs[0] * table["k"] + below(xs[1:], table)


def with_a_table(x, y):
    table, xs = {"k": y}, []
    for i in range(4):
        xs.append(x * i)
    first = below(xs, table)
    xs.append(y)
    return first * below(xs, table)


@pytest.mark.parametrize("f", [changed_list, whole, with_a_table])
def test_what_is_known_of_lists_that_are_handed_on(f):
    check_gradient(f, 0.7, 1.3)
    for _ in range(2):
        assert repr(morula.withgradient(f, 0.7, 1.3)[0]) == repr(f(0.7, 1.3))
    with by_the_general_path():
        expected = morula.gradient(f, 0.7, 1.3)
    np.testing.assert_allclose(morula.gradient(f, 0.7, 1.3), expected, rtol=1e-12)
