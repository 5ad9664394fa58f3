"""Movements of entries: each against differences, as function and as method."""

import numpy as np
import pytest

from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_gradient, check_rrule

X = np.arange(24.0).reshape(2, 3, 4) / 7

CALLS = [
    (np.reshape, (6, 4)), (np.reshape, -1), (np.ndarray.reshape, (6, -1)), (np.ndarray.reshape,
    6, 4), (np.ndarray.reshape, -1), (np.ravel,), (np.ndarray.ravel,), (np.ndarray.flatten,),
    (np.expand_dims, 1), (np.expand_dims, (0, 2)), (np.atleast_1d,), (np.atleast_3d,),
    (np.broadcast_to, (5, 2, 3, 4)), (np.transpose,), (np.transpose, (1, 2, 0)),
    (np.ndarray.transpose,), (np.ndarray.transpose, 2, 0, 1), (np.ndarray.transpose, (2, 0, 1)),
    (np.ndarray.transpose, None), (np.transpose, (-1, 0, 1)), (np.matrix_transpose,),
    (np.swapaxes, 0, -1), (np.ndarray.swapaxes, 1, 2), (np.moveaxis, 0, -1), (np.moveaxis, (0,
    1), (1, 2)), (np.rollaxis, 2), (np.rollaxis, 0, 3), (np.flip,), (np.flip, 1), (np.flip, (0,
    2)), (np.fliplr,), (np.flipud,), (np.rot90,), (np.rot90, 3, (1, 2)), (np.roll, 5), (np.roll,
    1, 2), (np.roll, (1, -2), (0, 2)), (np.repeat, 2), (np.repeat, 3, 1), (np.repeat, [1, 0, 2],
    1), (np.ndarray.repeat, 2, 0), (np.tile, 2), (np.tile, (2, 1, 3)), (np.tile, (2, 1, 1, 2)),
    (np.diff,), (np.diff, 2), (np.diff, 1, 0), (np.diff, 3, 1), (np.pad, 1),
    (np.pad, ((0, 1), (2, 0), (1, 1))),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4", "i8"])
def test_movements(check_second_order, call, dtype):
    fn, *rest = call
    x = X.astype(dtype)
    check_rrule(fn, x, *rest)
    if dtype == "f8":
        check_second_order(fn, x, *rest)
    check_rrule(fn, np.asfortranarray(x), *rest)


def test_keywords():
    check_rrule(np.reshape, X, (4, 6), order="F")
    check_rrule(np.ndarray.reshape, X, 4, 6, order="F")
    check_rrule(np.ravel, X, order="F")
    check_rrule(np.ndarray.flatten, X, "F")
    check_rrule(np.repeat, X, 2, axis=-1)
    check_rrule(np.roll, X, 1, axis=-1)
    check_rrule(np.diff, X, axis=1)
    check_rrule(np.transpose, X, axes=(2, 1, 0))
    check_rrule(np.pad, X, 1, constant_values=2.0)


def test_squeeze():
    x = X[:1, :, :1]
    check_rrule(np.squeeze, x)
    check_rrule(np.squeeze, x, 0)
    check_rrule(np.ndarray.squeeze, x, axis=(0, 2))
    check_rrule(np.squeeze, X[:1, :1, :1])


@pytest.mark.parametrize("fn", [np.atleast_1d, np.atleast_2d, np.atleast_3d])
def test_atleast(fn):
    for x in (2.0, np.array(2.0), X[0, 0], X[0]):
        check_rrule(fn, x)


@pytest.mark.parametrize(
    "call",
    [(np.split, 2), (np.split, [1, 2], 1), (np.array_split, 3, 2), (np.vsplit, 2), (np.hsplit, 3),
     (np.dsplit, [1])],
)  # fmt: skip
def test_splits(call):
    fn, *rest = call
    y, back = apply_rule(find_rrule(fn, (X, *rest)), (X, *rest), {})
    assert back([p * 2 for p in y])[0].tolist() == (2 * X).tolist()


def test_broadcast_arrays():
    check_rrule(np.broadcast_arrays, X, X[0, 0], 2.0)


@pytest.mark.parametrize("shape", [(2, 1, 3), (2, 3, 1), (1, 2, 3)])
def test_the_order_in_memory_of_what_repeats_itself(shape):
    def f(x):
        wide = np.broadcast_to(x.T[::-1].reshape(shape), np.add(shape, np.equal(shape, 1)))
        return np.ravel(wide, order="K") @ np.arange(12.0) + wide.flatten("K")[3]

    check_gradient(f, np.arange(6.0).reshape(2, 3))
