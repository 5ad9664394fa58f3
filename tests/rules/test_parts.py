"""What a function without rule changed: an error if the gradient runs through it, else nothing."""

import argparse
import collections
import statistics
import sys

import numpy as np
import pytest

from morula import NoRuleError, Tangent, gradient
from morula.core.extend import UnsupportedError

pytestmark = pytest.mark.usefixtures("path")


def opaquely(f):
    """A function that is called by compiled code, which cannot be looked into."""

    def run(*args):
        sys.call_tracing(f, args)

    return run


class Weights:
    def __init__(self, w):
        self.w = w
        self.calls = 0


def double_item(xs):
    xs[0] = xs[0] * 2


def double_weight(o):
    o.w = o.w * 2


def triple_later(xs):
    xs[0] = xs[0] * 3
    yield None


class Slots:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


HARMFUL = {
    "list": (lambda x: [x, x], double_item, lambda xs: xs[0] * xs[1]),
    "dict": (lambda x: {0: x, 1: x}, double_item, lambda d: d[0] * d[1]),
    "Weights": (Weights, double_weight, lambda o: o.w**2),
    "Slots": (Slots, double_weight, lambda o: o.w**2),
    "list in a dict": (lambda x: {"a": [x]}, lambda d: double_item(d["a"]), lambda d: d["a"][0]),
    "list in a tuple": (lambda x: ([x],), lambda t: double_item(t[0]), lambda t: t[0][0]),
    "list in Weights": (lambda x: Weights([x]), lambda o: double_item(o.w), lambda o: o.w[0]),
    "appended": (lambda x: [x], lambda xs: xs.append(xs[0] * 2), lambda xs: xs[-1]),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_change_that_the_gradient_runs_through_is_refused(name):
    make, change, use = HARMFUL[name]
    change = opaquely(change)
    kind = name.split()[0] if " in " in name else "list" if name == "appended" else name

    def f(x):
        value = make(x)
        change(value)
        return use(value)

    with pytest.raises(NoRuleError, match=f"which changes a {kind} that the gradient runs"):
        gradient(f, 2.0)


def test_a_captured_variable_that_is_changed_is_refused():
    def f(x):
        total = 0.0

        def add(y):
            nonlocal total
            total = total + y * y

        opaquely(add)(x)
        return total * x

    with pytest.raises(NoRuleError, match="which changes a cell"):
        gradient(f, 2.0)


def test_a_generator_that_changes_its_argument_is_followed():
    def f(x):
        xs = [x, x]
        list(triple_later(xs))
        return xs[0]

    assert gradient(f, 2.0) == (3.0,)


def test_changes_elsewhere_do_no_harm():
    def count(o):
        o.calls += 1

    def note(log, xs):
        log.append(len(xs))

    count, note = opaquely(count), opaquely(note)

    def f(x):
        o, log, xs = Weights(x), [], [x, 3.0]
        count(o)
        note(log, xs)
        return o.w * xs[0] + len(log)

    assert gradient(f, 2.0) == (4.0,)


def test_an_array_that_is_changed_is_refused():
    change = opaquely(double_item)

    def f(x):
        y = x * 1.0
        change(y)
        return y.sum()

    with pytest.raises(UnsupportedError, match="changes a ndarray in place"):
        gradient(f, np.array([2.0, 3.0]))


def test_an_array_of_integers_may_be_changed():
    change = opaquely(double_item)

    def f(x):
        order = np.array([1, 0])
        change(order)
        return x * order[0]

    assert gradient(f, 3.0) == (2.0,)


def test_what_python_has_for_holding_values_has_gradients():
    found = gradient(lambda d: d["a"] ** 2, collections.UserDict(a=2.0, b=1.0))[0]
    assert found == Tangent[collections.UserDict](data={"a": 4.0, "b": 0.0})
    found = gradient(lambda xs: xs[0] ** 2, collections.UserList([2.0]))[0]
    assert found == Tangent[collections.UserList](data=[4.0])
    found = gradient(lambda o: o.a**2, argparse.Namespace(a=2.0, name="n"))[0]
    assert found == Tangent[argparse.Namespace](a=4.0)


def test_other_objects_of_python_show_what_reached_them():
    normal = statistics.NormalDist(1.0, 2.0)
    assert gradient(lambda d: d.mean**2, normal) == (Tangent[statistics.NormalDist](_mu=2.0),)
    assert gradient(lambda d, x: x, normal, 2.0) == (None, 1.0)
