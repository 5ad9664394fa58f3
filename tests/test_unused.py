"""Expressions that raise an exception raise it in the differentiated run, whoever uses their value."""

# ruff: noqa: F821  # as users write it

import math
import operator
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.linalg

from morula import gradient, jvp, withgradient


@dataclass
class Point:
    a: float


class Slotted:
    __slots__ = ("a",)


def several(x):
    yield x


def item_of_a_dict(x):
    d = {"a": x}
    d["b"]


def item_of_a_list(x):
    xs = [x]
    xs[3]


def bound_nowhere(x):
    if x < 0:
        y = 1
    y


def unpacked(x):
    a, b = (x,)


FAILING = [
    item_of_a_dict, item_of_a_list, bound_nowhere, unpacked,
    lambda x: (+x,)[3],
    lambda x: (x, 2 * x)[-3],
    lambda x: [x][3],
    lambda x: {"a": x}["b"],
    lambda x: {1: 2}[[x]],
    lambda x: {x}.__getitem__(0),
    lambda x: {[x]},
    lambda x: "abc"[5],
    lambda x: x[0],
    lambda x: np.array([x])[3],
    lambda x: np.zeros(3)[5],
    lambda x: np.zeros(3)["a"],
    lambda x: (np.zeros(3) * x)[1, 2],
    lambda x: operator.itemgetter(3)((x,)),
    lambda x: Point(x).b,
    lambda x: Slotted().a,
    lambda x: several(x).foo,
    lambda x: x.foo,
    lambda x: (x,).foo,
    lambda x: np.zeros(3).foo,
    lambda x: math.foo,
    lambda x: 1 / (0 * x),
    lambda x: x // (0 * x),
    lambda x: x % (0 * x),
    lambda x: (0 * x) ** -1,
    lambda x: (x * 1e300) ** 3,
    lambda x: math.log(-x),
    lambda x: math.exp(1000 * x),
    lambda x: math.pow(-x, 0.5),
    lambda x: int(math.inf * x),
    lambda x: math.sin(x, x),
    lambda x: (1, 2) + [x],
    lambda x: "a" + x,
    lambda x: -"a",
    lambda x: ~x,
    lambda x: x < "a",
    lambda x: int("q"),
    lambda x: f"{x:q}",
    lambda x: {}.pop("a"),
    lambda x: [].pop(),
    lambda x: [x].index(3),
    lambda x: next(iter(())),
    lambda x: max([]),
    lambda x: np.linalg.inv(np.zeros((2, 2)) * x),
    lambda x: np.linalg.cholesky(-x * np.eye(2)),
    lambda x: np.linalg.solve(np.zeros((2, 2)) * x, np.ones(2)),
    lambda x: scipy.linalg.cholesky(-x * np.eye(2)),
    lambda x: x(),
    lambda x: (lambda q: q)(x, x),
    lambda x: undefined_name,
    lambda x: x in 3,
    lambda x: 1 in x,
    lambda x: x not in 3.0,
    lambda x: [x] in {1: 2},
    lambda x: [x] in {1},
    lambda x: len(3),
    lambda x: len(x),
    lambda x: range(x),
    lambda x: range(0, 3, 0),
    lambda x: isinstance(x, 3),
    lambda x: isinstance(x, (int, 3)),
    lambda x: divmod(x, 0),
    lambda x: math.sqrt("a"),
    lambda x: math.hypot("4", x),
    lambda x: (x,)[x],
    lambda x: x.conjugate(1),
]  # fmt: skip


# What shapes and types decide, and what only fails at infinity, goes with the value that nobody uses.
FAILING_WHERE_CAUGHT = [
    lambda x: math.sin(math.inf * x),
    lambda x: np.zeros(3) + np.zeros(2),
    lambda x: np.zeros((2, 2)) @ np.zeros(3),
    lambda x: np.array([x, x]).reshape(3),
]


def outcome(fn, x):
    """What a function raises."""
    try:
        fn(x)
    except Exception as e:
        return type(e), str(e)
    pytest.fail("nothing was raised")


DERIVATIVES = [
    lambda f: lambda x: gradient(f, x),
    lambda f: lambda x: withgradient(f, x),
    lambda f: lambda x: jvp(f, (x,), (1.0,)),
]


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("failing", FAILING)
def test_what_is_raised(derivative, failing, path):
    def ignoring(x):
        failing(x)
        return x * x

    assert outcome(derivative(ignoring), 1.5) == outcome(failing, 1.5)


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("failing", FAILING + FAILING_WHERE_CAUGHT)
def test_what_is_caught(derivative, failing, path):
    caught = []

    def catching(x):
        try:
            failing(x)
        except Exception as e:
            caught.append((type(e), str(e)))
        return x * x

    derivative(catching)(1.5)
    assert caught == [outcome(failing, 1.5)]


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: (x,)[3] * x, 1.5),
        (lambda x: (x, 2 * x)[-3], 1.5),
        (lambda t: t[-3], (1.0, 2.0)),
        (lambda t: t[2] * t[0], (1.0, 2.0)),
        (lambda t: t[2], [1.0, 2.0]),
        (lambda t: t[2], np.array([1.0, 2.0])),
    ],
)
def test_an_index_beyond_the_end_of_what_is_used(f, x, path):
    with pytest.raises(IndexError):
        gradient(f, x)
