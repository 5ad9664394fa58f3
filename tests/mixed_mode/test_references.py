"""Forward mode through weak references, and second derivatives through them."""

import weakref

import numpy as np
import pytest

from morula import NoRuleError, gradient, hessian, jvp


class Thing:
    def __init__(self, v):
        self.v = v


def by_reference(x):
    thing = Thing(x**2)
    r = weakref.ref(thing)
    r().v *= x
    return r().v * 2 + thing.v


def with_callback(x):
    thing = Thing(x**2)
    r = weakref.ref(thing, lambda r: None)
    return r().v * thing.v


def by_weak_keys(x):
    thing, weights = Thing(x**2), weakref.WeakKeyDictionary()
    weights[thing] = x * 2
    return weights[thing] * thing.v


def by_weak_values(x):
    thing, things = Thing(x**2), weakref.WeakValueDictionary()
    things["a"] = thing
    return things["a"].v * thing.v


def in_weak_set(x):
    thing = Thing(x**2)
    for other in weakref.WeakSet([thing]):
        other.v = other.v * x
    return thing.v


@pytest.mark.parametrize(
    ("f", "value", "slope", "curvature"),
    [
        (by_reference, 24.0, 36.0, 36.0),
        (with_callback, 16.0, 32.0, 48.0),
        (by_weak_keys, 16.0, 24.0, 24.0),
        (by_weak_values, 16.0, 32.0, 48.0),
        (in_weak_set, 8.0, 12.0, 12.0),
    ],
)
def test_objects_are_followed_through_weak_references(f, value, slope, curvature):
    assert f(2.0) == value
    assert gradient(f, 2.0) == (slope,)
    assert jvp(f, (2.0,), (1.0,)) == (value, slope)
    assert hessian(f, 2.0) == curvature


def test_arrays_behind_weak_references_are_refused():
    def f(x):
        kept = [x * 2]
        r = weakref.ref(kept[0])
        return (r() ** 2).sum() + kept[0].sum()

    x = np.array([1.0, 2.0])
    with pytest.raises(NoRuleError, match="ReferenceType"):
        gradient(f, x)
    with pytest.raises(NoRuleError, match="ReferenceType"):
        jvp(f, (x,), (x,))


class Part:
    """What knows its whole by a weak reference."""

    def __init__(self, size, whole=None):
        self.size = size
        self.whole = whole and weakref.proxy(whole)

    def share(self):
        return self.size if self.whole is None else self.size / self.whole.share()


def test_attributes_and_methods_behind_a_proxy():
    def f(x):
        whole = Part(x)
        middle = Part(x**3, whole)
        part = Part(x, middle)
        middle.whole.size = x * x
        return part.share() * middle.whole.size

    assert f(2.0) == 4.0
    assert gradient(f, 2.0) == (4.0,)
    assert jvp(f, (2.0,), (1.0,)) == (4.0, 4.0)
    assert hessian(f, 2.0) == pytest.approx(2.0)


def test_operators_of_a_proxy():
    class Number:
        def __init__(self, x):
            self.x = x

        def __add__(self, other):
            return self.x + other

    def f(x):
        number = Number(x * x)
        return weakref.proxy(number) + x

    assert gradient(f, 2.0) == (5.0,)
    assert jvp(f, (2.0,), (1.0,)) == (6.0, 5.0)
