"""Steps of optimisers on structures: `tree_map`, and sums of a primal and a tangent."""

import dataclasses
from collections import OrderedDict, deque
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from morula import (
    Tangent,
    ZeroTangent,
    gradient,
    jvp,
    ravel,
    tree_leaves,
    tree_map,
    withgradient,
)
from morula.testing import check_gradient


class Pair(NamedTuple):
    a: object
    b: object


@dataclasses.dataclass(frozen=True)
class Model:
    w: object
    b: float
    name: str = "model"
    inner: object = None


class Slotted:
    __slots__ = ("flag", "k")

    def __init__(self, k):
        self.k = k
        self.flag = True


def structure():
    return Model(
        np.array([1.0, 2.0]), 2.0, inner=[Pair(1.0, np.zeros(2)), {"k": 3, "s": None}, "text", True]
    )


def loss(p):
    pair, table, *_ = p.inner
    return (p.w**2).sum() * p.b + pair.a * table["k"] + (pair.b + 1.0).prod()


def step(p, g):
    return p - 0.1 * g


def same(a, b):
    xs, ys = tree_leaves(a), tree_leaves(b)
    assert len(xs) == len(ys)
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


def test_a_step_down_the_gradient_of_a_structure():
    p = structure()
    (g,) = gradient(loss, p)
    q = tree_map(step, p, g)
    assert type(q) is Model
    assert q.name == "model"
    np.testing.assert_allclose(q.w, [0.6, 1.2])
    assert q.b == 1.5
    assert type(q.inner[0]) is Pair
    assert q.inner[0].a == pytest.approx(0.7)
    assert q.inner[1] == {"k": 2.9, "s": None}
    assert q.inner[2:] == ["text", True]
    same(p, structure())
    assert q.inner is not p.inner
    same(p - 0.1 * g, q)
    same(p + (-0.1) * g, q)


def test_arithmetic_of_tangents_goes_item_by_item():
    (g,) = gradient(loss, structure())
    for got, factor in ((g + g, 2), (g - 3 * g, -2), (-g, -1), (g / 4, 0.25), (0.5 * g + g, 1.5)):
        assert len(got.inner) == 4
        assert type(got.inner[0]) is Pair
        same(got, tree_map(lambda x: factor * x, g))
        assert got.inner[2] is None


def test_a_gradient_in_the_structure_of_its_argument():
    p = structure()
    (g,) = gradient(loss, p)
    like = tree_map(lambda p, g: g, p, g)
    assert type(like) is Model
    vector, unravel = ravel(p)
    np.testing.assert_array_equal(ravel(like)[0], gradient(lambda v: loss(unravel(v)), vector)[0])


def test_kinds_of_containers():
    x = (1.0, [2.0], deque([3.0]), OrderedDict(a=4.0), {"b": (5,)}, Slotted(6.0), Fraction(7))
    y = tree_map(lambda x: 2 * x, x)
    assert [type(c) for c in y] == [type(c) for c in x]
    assert [float(v) for v in tree_leaves(y)] == [2, 4, 6, 8, 10, 12, 14]
    assert y[5].flag is True
    assert tree_map(lambda x: 2 * x, Tangent[Model](b=1.0)) == Tangent[Model](b=2.0)
    assert tree_map(abs, -1.0) == 1.0
    assert tree_leaves("text") == []


def test_what_stands_in_two_places_is_one():
    shared = [1.0]
    calls = []
    y = tree_map(lambda x: calls.append(x) or x + 1, {"a": shared, "b": shared})
    assert y == {"a": [2.0], "b": [2.0]}
    assert y["a"] is y["b"]
    assert calls == [1.0]
    ring = [1.0]
    ring.append(ring)
    assert tree_map(lambda x: -x, ring)[1][0] == -1.0


def test_zeros_of_a_gradient():
    assert tree_map(step, {"a": 1.0, "b": 2.0}, {"a": ZeroTangent(), "b": None}) == {"a": 1, "b": 2}
    same(
        tree_map(step, structure(), Tangent[Model](b=1.0)), dataclasses.replace(structure(), b=1.9)
    )


@pytest.mark.parametrize(
    ("params", "other", "text"),
    [
        ([1.0], [1.0, 2.0], "a list of 1, another has a list of 2"),
        ({"a": 1.0}, {"b": 1.0}, r"keys \['a'\], another has a dict with the keys \['b'\]"),
        (Model(1.0, 2.0), Slotted(1.0), "a Model, another has a Slotted"),
        (Model(1.0, 2.0), Tangent[Slotted](k=1.0), "a Model, another has a Tangent"),
        ((1.0, [2.0]), (1.0, 2.0), "a list of 1, another has a float"),
    ],
)
def test_structures_that_do_not_fit(params, other, text):
    with pytest.raises(TypeError, match=text):
        tree_map(step, params, other)


def test_only_its_own_tangents_move_an_object():
    for wrong in (Slotted(1.0), 1.0, [1.0]):
        with pytest.raises(TypeError):
            wrong - Tangent[Model](b=1.0)


def by_tree_map(p, g, r):
    return tree_map(lambda p, g: p - r * g, p, g)


@pytest.mark.parametrize(
    "how",
    [pytest.param(by_tree_map, marks=pytest.mark.thorough), lambda p, g, r: p - r * g],
)
def test_training_that_is_differentiated(how):
    def trained(rate):
        p = Model(np.array([1.0, 2.0]), 0.5)
        for _ in range(3):
            (g,) = gradient(lambda p: ((p.w - 1.5) ** 2).sum() * p.b + p.b**2, p)
            p = how(p, g, rate)
        return (p.w**2).sum() + p.b

    check_gradient(trained, 0.1)
    (want,) = gradient(trained, 0.1)
    assert jvp(trained, (0.1,), (1.0,))[1] == pytest.approx(want, rel=1e-12)


def test_second_derivative_through_tree_map():
    def f(x):
        p = tree_map(lambda a: a * x**2, {"a": [2.0, 3.0]})
        return p["a"][0] * p["a"][1]

    y, (g,) = withgradient(lambda x: gradient(f, x)[0], 2.0)
    assert (y, g) == pytest.approx((6 * 4 * 8, 6 * 12 * 4))
