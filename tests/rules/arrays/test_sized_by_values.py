"""Lengths and shapes that values say: of integers, arrays and ranges that are not known beforehand."""

import numpy as np
import pytest

from morula import gradient, pullback
from morula.testing import check_gradient

X = np.arange(6.0) + 1
A = np.array


def k(x):
    """3, which nobody knows before."""
    return len(x) - 3


def repeated_in_place(x):
    shape = (2,)
    shape *= k(x)
    return np.ones(shape).sum() * x[0]


FUNCTIONS = {
    "a tuple k times": lambda x: len((1, 2) * k(x)) * x[0],
    "k times a tuple": lambda x: len(k(x) * (x[0],)) * x[1],
    "a tuple times k in place": repeated_in_place,
    "zeros of k axes": lambda x: np.zeros((2,) * k(x)).ndim * x[0],
    "k axes before": lambda x: np.reshape(x, (1,) * k(x) + x.shape).ndim * x[0],
    "a shape k times": lambda x: np.ones(x.shape * k(x)).ndim * x[0],
    "broadcast to k axes": lambda x: np.sum(np.broadcast_to(x[0], (2,) * k(x))),
    "at least one axis": lambda x: np.ones((1,) * max(k(x), 2)).ndim * x[0],
    "zeros of a range": lambda x: np.zeros(range(2, 4)).size * x[0],
    "full of a range": lambda x: np.full(range(2, 4), x[0]).sum(),
    "tiles of a range": lambda x: np.tile(x, range(1, 3)).sum(),
    "axes of a range": lambda x: np.moveaxis(x.reshape(1, 2, 3), range(2), range(1, 3))[0, 0, 1],
    "zeros of an array": lambda x: np.zeros(A([2, 3])).size * x[0],
    "full of an array": lambda x: np.full(A([2, 3]), x[0]).sum(),
    "broadcast to an array": lambda x: np.broadcast_to(x[0], A([2, 3])).sum(),
    "tiles of an array": lambda x: np.tile(x, A([2, 3])).sum(),
    "zeros like another, of an array": lambda x: np.zeros_like(x, shape=A([2, 3])).size * x[0],
    "full like another, of an array": lambda x: np.full_like(x, x[0], shape=A([2, 4])).sum(),
    "a number in an array": lambda x: np.linspace(x[0], x[1], A(4)).size * x[0],
    "eye of an array": lambda x: np.eye(A(4)).size * x[0],
    "a transform of a size": lambda x: np.fft.fftn(x.reshape(2, 3), A([4, 5]), (0, 1)).size * x[0],
    "axes of arrays": lambda x: np.swapaxes(x.reshape(1, 2, 3), A(0), A(2)).shape[0] * x[0],
    "an axis in an array": lambda x: np.trapezoid(x.reshape(2, 3), axis=A(0)).size * x[0],
    "differences of an order": lambda x: np.diff(x, A(2)).size * x[0],
    "powers of bases": lambda x: np.sum(np.logspace(x[0], 1.0, 3, base=x[1:] / 3)),
    "an axis rolled": lambda x: np.rollaxis(x.reshape(1, 2, 3), -1, 1)[0, 2, 1] ** 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_size_that_is_not_known_beforehand(name):
    check_gradient(FUNCTIONS[name], X)


def test_an_entry_by_an_ellipsis_is_an_array():
    """Of vectors whose length is not known beforehand, too."""
    z, w = A([1 + 1j, 2, 3 - 1j]), A([1, 2j, 3])
    f = lambda z, x, n: np.sum(np.real(np.cross(z[:n], x[:n]) * w))
    check_gradient(lambda z, x: f(z, x, len(x) - 3), z, X)
    assert gradient(lambda x, n: type(x[:n][..., 0]) is np.ndarray and x[0] * 2, X, 2)[0][0] == 2


@pytest.mark.parametrize("axis", [0, 1])
def test_the_gradient_of_a_range_of_values_has_the_precision_of_the_array(axis):
    a = A([[1, 5, 2], [4, 2, 7]], np.float32)
    f = lambda a: np.ptp(a, axis=axis)
    assert gradient(lambda a: np.sum(f(a) ** 2), a)[0].dtype == np.float32
    for _ in range(3):
        y, back = pullback(f, a)
        assert back(np.ones_like(y))[0].dtype == np.float32


def test_a_pullback_of_a_number_that_is_appended():
    for _ in range(3):
        _, back = pullback(np.append, X, 2.0)
        x̄, n̄ = back(np.arange(7.0))
        np.testing.assert_array_equal(x̄, np.arange(6.0))
        assert n̄ == 6.0
        _, back = pullback(lambda x, n: np.append(x, n), X, 2.0)
        assert back(np.arange(7.0))[1] == 6.0
