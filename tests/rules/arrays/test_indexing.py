"""Indexing of every kind, and the functions that select entries."""

import operator

import numpy as np
import pytest

from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_rrule

X = np.arange(24.0).reshape(2, 3, 4) / 7
INDICES = [
    0, -1, np.int64(1), (1, 2), (1, 2, 3), (-1, ..., 0), slice(None), slice(1, None), (0,
    slice(None, None, -1)), ..., None, (None, 0), (slice(None), None, 1), [0, 1, 1],
    np.array([1, 1, 0]), (slice(None), [0, 2, 2]), ([0, 1], [1, 1], [2, 2]), (np.array([[0],
    [1]]), np.array([0, 2, 2])), X > 1, (X[:, 0, 0] > 1).nonzero()[0], np.array([True, False]),
    (slice(None), np.array([True, False, True])), (1, [2, 0], slice(0, 2)), [], True,
    np.array(1), (np.array([[0, 1], [1, 1]]), ...),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4", "i8"])
def test_getitem(check_second_order, index, dtype):
    check_rrule(operator.getitem, X.astype(dtype), index)
    if dtype == "f8":
        check_second_order(operator.getitem, X, index)


def test_getitem_of_a_vector():
    check_rrule(operator.getitem, X[0, 0], 2)
    check_rrule(operator.getitem, X[0, 0], slice(3, 0, -2))
    check_rrule(operator.getitem, np.array(3.0), ())


@pytest.mark.parametrize("index", [(), None, ..., True, False, (None, ..., None)])
@pytest.mark.parametrize(
    "x", [np.float64(1.5), np.float32(1.5), np.complex128(1 + 2j), np.int64(3)]
)
def test_getitem_of_a_scalar(x, index):
    check_rrule(operator.getitem, x, index)


def test_one_entry_of_float32_stays_float32():
    x = np.ones(3, "f4")
    x̄ = apply_rule(find_rrule(operator.getitem, (x, 1)), (x, 1), {})[1](2.0)[0]
    assert x̄.dtype == np.float32


@pytest.mark.parametrize("fn", [np.take, np.ndarray.take])
def test_take(fn):
    check_rrule(fn, X, 5)
    check_rrule(fn, X, np.array([5, 5, 23]))
    check_rrule(fn, X, [2, 0, 2], 1)
    check_rrule(fn, X, np.array([[0, 1], [1, 1]]), axis=0)
    check_rrule(fn, X, [-1, 7], axis=2, mode="wrap")
    check_rrule(fn, X, [-1, 7], axis=2, mode="clip")


def test_take_along_axis():
    order = np.argsort(-X, axis=1)
    check_rrule(np.take_along_axis, X, order, 1)
    check_rrule(np.take_along_axis, X, order[:, :1], axis=1)
    check_rrule(np.take_along_axis, X, np.array([3, 3, 0]), None)


def test_compress_extract():
    check_rrule(np.compress, [True, False, True], X, 1)
    check_rrule(np.compress, np.arange(24) % 3 == 0, X)
    check_rrule(np.extract, X > 1, X)


@pytest.mark.parametrize("k", [0, 1, -1])
def test_triangles_and_diagonals(k):
    for dtype in ("f8", "c16", "f4"):
        x = X[0].astype(dtype)
        check_rrule(np.diag, x, k)
        check_rrule(np.diag, x[0], k)
        check_rrule(np.tril, x, k)
        check_rrule(np.triu, X.astype(dtype), k)


@pytest.mark.parametrize("axis", [-1, 0, None])
def test_sort_and_partition(rng, axis):
    x = rng.permutation(12).reshape(3, 4) / 3.0
    check_rrule(np.sort, x, axis)
    check_rrule(np.sort, x, axis=axis, kind="stable")
    y, back = apply_rule(find_rrule(np.partition, (x, 1)), (x, 1), {"axis": axis})
    assert np.array_equal(np.sort(y, axis), np.sort(x, axis))
    assert back(y)[0].tolist() == x.tolist()


def test_sort_with_ties_gives_each_output_one_source():
    x = np.ones(3)
    _, back = apply_rule(find_rrule(np.sort, (x,)), (x,), {})
    assert back(np.array([1.0, 0, 0]))[0].sum() == 1


def test_bincount():
    check_rrule(np.bincount, np.array([0, 2, 2]), np.array([0.5, 1.5, 2.5]), minlength=5)


def test_item():
    check_rrule(np.ndarray.item, np.array([[2.5]]))
    check_rrule(np.ndarray.item, X, 1, 2, 0)
    check_rrule(np.ndarray.item, X, (1, 2, 0))
    check_rrule(np.ndarray.item, X, 7)
    check_rrule(np.ndarray.item, X[0, 0], 2)
    check_rrule(np.ndarray.item, np.array([1 + 2j]))
