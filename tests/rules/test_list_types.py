"""What is known of the items of lists: what the types of results say of them."""

import numpy as np
import pytest

import morula
from morula.core.program import Gradient
from morula.core.values import argument_value, known


def result_type(f, *args):
    """The type that is found for the result of f, or None."""
    gradient = Gradient(f, [argument_value(a) for a in args], (0,), True, True, args)
    found = known(gradient.specialised().returned())
    return None if found is None else found.type


def opaque(xs):
    """Something that is not looked into."""
    with open(xs):
        pass


def built(x):
    xs = [x, x * 2.0]
    return xs[1]


def nested(x):
    rows = [[x * i for i in range(3)] for _ in range(2)]
    return rows[1][2]


def appended(x):
    xs = []
    for _ in range(3):
        xs.append(x)
    return xs[0]


def of_two_types(x):
    xs = [x, "text"]
    return xs[0]


def changed_to_text(x):
    xs = [x]
    ys = xs
    ys[0] = "text"
    return xs[0]


def changed_behind_a_branch(x):
    xs, ys = [x], [x]
    zs = xs if x > 0 else ys
    zs.append("text")
    return ys[0]


def changed_in_a_list(x):
    row = [x]
    rows = [row]
    rows[0].append("text")
    return row[0]


def given_away(x):
    xs = [x]
    opaque(xs)
    return xs[0]


def sorted_by_something(x):
    xs = [x, x * x]
    xs.sort()
    return xs[0]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (built, float),
        (nested, float),
        (appended, float),
        (of_two_types, None),
        (changed_to_text, None),
        (changed_behind_a_branch, None),
        (changed_in_a_list, None),
    ],
)
def test_items_of_lists_that_are_made(f, expected):
    assert result_type(f, 2.0) is expected


@pytest.mark.parametrize("f", [given_away, sorted_by_something])
def test_lists_that_something_unknown_gets(f):
    gradient = Gradient(f, [argument_value(2.0)], (0,), True, True)
    assert gradient.specialised().returned() is None


def first(xs):
    return xs[0]


def first_of_first(xs):
    return xs[0][0]


@pytest.mark.parametrize(
    ("f", "xs", "expected"),
    [
        (first, [1.0, 2.0], float),
        (first, [1, 2], int),
        (first, [np.float32(1)], np.float32),
        (first, [np.ones(2), np.ones(3)], np.ndarray),
        (first_of_first, [[1.0], [2.0, 3.0], []], float),
    ],
)
def test_items_of_arguments(f, xs, expected):
    assert result_type(f, xs) is expected


def test_an_argument_that_gets_something_else():
    def f(xs, ys):
        ys.append("text")
        return xs[0]

    xs = [1.0]
    gradient = Gradient(f, [argument_value(xs)] * 2, (0,), True, True)
    assert gradient.specialised().returned() is None


def test_lists_of_other_items_get_programs_of_their_own(path):
    def f(xs):
        total = 0.0
        for x in xs:
            total = total + np.sum(x * x)
        return total

    slope = morula.grad(f)
    for _ in range(12):
        assert slope([1.0, 2.0]) == [2.0, 4.0]
        np.testing.assert_array_equal(slope([np.ones(2)])[0], [2.0, 2.0])
        assert slope([1, 2.0]) == [2.0, 4.0]
        assert slope([]) == []
    if path == "specialised":
        programs = slope.__dict__["__morula__"].programs.values()
        assert all(p.code is not None for p in programs)
        assert max(p.tries for p in programs) <= 2
