"""Tuples that control passes on are passed item by item."""

import math

import pytest

from morula import code_adjoint, gradient, withgradient
from morula.testing import check_gradient


def swapped(x, y):
    pair = x, y
    for i in range(3):
        pair = (pair[1] * pair[0], pair[0] + i)
    return pair[0] - pair[1]


def chosen(x, y):
    pair = (x, y) if x > y else (y * 2.0, x)
    a, b = pair
    return a * a * b


def constant(x, y):
    pair = (1.0, 2.0)
    if x > 0:
        pair = x, y
    return pair[0] * y + pair[1]


def nested(x, y):
    state = (x, (y, 1.0))
    for _ in range(3):
        a, (b, c) = state
        state = (a * b, (b + c, c * 0.5))
    return state[0] + state[1][0] * state[1][1]


def kept(x, y):
    """The tuples are also wanted whole."""
    pairs, pair = [], (x, y)
    for _ in range(3):
        pair = pair[1], pair[0] * y
        pairs.append(pair)
    return sum(a * math.sin(b) for a, b in pairs) + pair[1]


def given(x, y):
    """What stands behind the loop is read there, and not at the end of every iteration."""

    def step(pair):
        return divmod(pair[0] * 3.0, 2.0) if pair[0] > 5.0 else (pair[0] * pair[1], pair[1])

    pair = x, y
    for _ in range(4):
        pair = step(pair)
    return pair[0] * pair[1] + x


def uneven(x, y):
    items = (x,)
    if y > 0:
        items = (x, y)
    return items[0] * len(items) + items[-1]


@pytest.mark.parametrize("f", [swapped, chosen, constant, nested, kept, given, uneven])
@pytest.mark.parametrize("args", [(1.3, 0.7), (1.1, 2.2)])
def test_gradients(f, args):
    check_gradient(f, *args)
    assert withgradient(f, *args)[0] == f(*args)


@pytest.mark.parametrize("f", [swapped, chosen, constant, nested])
def test_no_tuples_are_left(f):
    gradient(f, 1.3, 0.7)
    text = str(code_adjoint(f, 1.3, 0.7))
    assert "bars_of" not in text
    assert "accumulate" not in text


def summed(x, y):
    pair = (x, 1.0)
    for _ in range(3):
        pair = (pair[0] * y, sum(pair))
    return sum((x, y, 2)) * sum(pair)


def test_sums_of_tuples():
    check_gradient(summed, 1.3, 0.7)
    assert "call_from_program" not in str(code_adjoint(summed, 1.3, 0.7))
