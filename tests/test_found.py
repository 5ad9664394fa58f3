"""Programs whose gradients were wrong once, found among random ones."""

import math

import numpy as np
import pytest

from morula import NoTangent, gradient, jvp, rrule, withgradient


def test_a_truth_value_decides_the_shape_of_what_it_selects(path):
    def f(a):
        top = np.max(a)
        return a.sum() + np.sin(np.mean(top[top > 0] * 1.0)) + np.sin(top[top > 9].sum())

    value, (ā,) = withgradient(f, np.array([0.5, -1.0, 0.25]))
    assert value == -0.25 + math.sin(0.5)
    assert ā == pytest.approx([1 + math.cos(0.5), 1, 1])


def test_no_tangent_out_of_a_rule_is_zero_to_what_comes_before(path):
    assert gradient(lambda a: (np.arange(a[1]) * a[0]).sum(), np.array([0.5, 2.5]))[
        0
    ] == pytest.approx([3.0, 0.0])

    def whole(x):
        return math.floor(x) * 1.0

    @rrule(whole)
    def _(x):
        def whole_pullback(ȳ):
            return (NoTangent(),)

        return whole(x), whole_pullback

    (ā,) = gradient(lambda a: whole(a[1]) * a[0], np.array([0.5, 2.5]))
    assert ā == pytest.approx([2.0, 0.0])


class Items(dict):
    """A dict with its items as attributes, as SciPy's results are."""

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__
    __getattr__ = dict.__getitem__


def test_attributes_that_a_class_stores_as_items(path):
    def f(a):
        items = Items(y=1.0)
        items.y = a * a
        items.z = items.y * 2
        del items.y
        items["y"] = a
        return items.y + items.z

    assert gradient(f, 3.0) == (13.0,)
    assert jvp(f, (3.0,), (1.0,)) == (21.0, 13.0)
