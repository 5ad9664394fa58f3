"""In-place changes are refused with a way out."""

import operator

import numpy as np
import pytest

from morula import UnsupportedError, withgradient
from morula.core.extend import find_rrule

X = np.ones(3)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (operator.iadd, (X, 1.0)), (operator.imul, (X, X)), (operator.imatmul, (X, X)),
        (operator.setitem, (X, 0, 1.0)), (np.copyto, (X, X)), (np.ndarray.fill, (X, 0.0)),
        (np.ndarray.sort, (X,)), (np.ufunc.at, (np.add, X, [0], 1.0)),
        (operator.ior, (X > 0, X > 0)),
    ],
)  # fmt: skip
def test_refused(fn, args):
    with pytest.raises(NotImplementedError, match=r"in place(.|\n)*make a new"):
        find_rrule(fn, args).function(*args)


def _item(v):
    w = v @ v
    v[0] = 3.0
    return w


def _alias(v):
    w = v
    w += 1
    return v.sum()


def _view(v):
    w = v[1:]
    v += 2
    u = w.sum()
    w *= 3
    return u + v.sum()


def _out(v):
    w = v @ v
    np.add(v, 1, out=v)
    return w + v[0]


def _positional_out(v):
    w = v.sum()
    np.add(v, 1, v)
    return w


def _at(v):
    w = v.sum()
    np.add.at(v, [0, 0], 1.0)
    return w


def _method(v):
    w = v.sum()
    v.fill(2.0)
    return w


@pytest.mark.parametrize("change", [_item, _alias, _view, _out, _positional_out, _at, _method])
def test_constant_arrays_are_not_changed_silently(path, change):
    """What is read before a change is not read after it, nor is a residual of the reverse pass."""

    def value(x):
        return change(np.zeros(3)) + x.sum()

    def residual(x):
        v = np.zeros(3)
        y = x * v
        change(v)
        return y.sum()

    x = np.ones(3)
    for f, expected in ((value, np.ones(3)), (residual, np.zeros(3))):
        with pytest.raises(UnsupportedError, match="in place"):
            assert withgradient(f, x)[1][0] == pytest.approx(expected)
