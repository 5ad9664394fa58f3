"""Arrays made of numbers and lists, and numbers made of arrays."""

import builtins
import copy

import numpy as np
import pytest

from morula import grad
from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_gradient, check_rrule

X = np.arange(6.0).reshape(2, 3) / 7


def gradients(fn, *args, ȳ=1.0, **kwargs):
    return apply_rule(find_rrule(fn, args, kwargs), args, kwargs)[1](ȳ)


@pytest.mark.parametrize(
    "fn", [np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray]
)
def test_array(fn):
    for x in (X, X.astype("f4"), X[0, 1], 2.0, X * 1j):
        check_rrule(fn, x)
        check_rrule(fn, x, "c16")
    for x in (
        [1.0, 2.0],
        (1.0, 2),
        [[1.0, 2.0], [3.0, 4.0]],
        [(1.0, 2.0), (3, 4.0)],
        [X[0], X[1]],
        [],
    ):
        check_rrule(fn, x)
    check_rrule(fn, [1.0, 2j])
    check_rrule(fn, [1.0, 2.0], dtype="f4")


def test_cotangents_of_lists_mirror_them():
    for items, ȳ, expected in (
        ([(2.0, 3.0)], np.array([[1.0, 2.0]]), [(1.0, 2.0)]),
        ([1, 2j], np.array([1j, 1j]), [0.0, 1j]),
    ):
        _, back = find_rrule(np.array, (items,)).function(items)
        assert back(ȳ)[0] == expected


@pytest.mark.parametrize("fn", [np.copy, np.ndarray.copy, copy.copy, copy.deepcopy])
def test_copies(fn):
    check_rrule(fn, X)
    check_rrule(fn, X.T.astype("c8"))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "g"])
def test_astype(dtype):
    check_rrule(np.ndarray.astype, X, dtype)
    check_rrule(np.ndarray.astype, X.astype("f4"), dtype, copy=False)
    check_rrule(np.astype, X, np.dtype(dtype))


@pytest.mark.parametrize("t", [np.float64, np.float32, np.complex128, np.complex64, np.longdouble])
def test_scalar_types(t):
    for x in (1.5, 2, np.float32(1.5), np.float64(1.5)):
        check_rrule(t, x)
    check_rrule(t, X)
    check_rrule(t, [1.0, 2.0])


def test_numbers_of_arrays():
    for fn in (builtins.float, builtins.complex):
        for x in (np.array(2.5), np.array(2.5, "f4"), np.float32(2.5), np.float64(2.5)):
            check_rrule(fn, x)


def test_tolist():
    check_rrule(np.ndarray.tolist, np.array(2.0))
    _, back = apply_rule(find_rrule(np.ndarray.tolist, (X,)), (X,), {})
    assert np.array_equal(back((2 * X).tolist())[0], 2 * X)


def test_full():
    check_rrule(np.full, (2, 3), 1.5)
    check_rrule(np.full, (2, 3), X[0])
    check_rrule(np.full_like, X, 2.5)


def test_arange():
    check_rrule(np.arange, 1.0, 3.05, 0.25)
    check_rrule(np.arange, 5)


@pytest.mark.parametrize("kwargs", [{}, {"num": 5}, {"num": 4, "endpoint": False}, {"num": 1}])
def test_linspace(kwargs):
    check_rrule(np.linspace, 1.0, 2.5, **kwargs)
    check_rrule(np.linspace, X[0], 2.5, **kwargs)
    check_rrule(np.linspace, X[0], X[:1], axis=1, **kwargs)
    if kwargs.get("num") != 1:
        check_rrule(np.linspace, 1.0, 2.5, retstep=True, **kwargs)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing):
    check_rrule(np.meshgrid, X[0], X[1, :2], indexing=indexing)
    check_rrule(np.meshgrid, X[0], X[1, :2], X[0], indexing=indexing)


@pytest.mark.parametrize("primal", [np.asarray, np.asanyarray])
def test_arrays_on_a_device(path, primal):
    if primal is np.asanyarray and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("np.asanyarray has device= since NumPy 2.1")
    check_gradient(lambda x: (primal([x, x * x], device="cpu") ** 2).sum(), 0.7)
    check_gradient(lambda x: (np.arange(x, x + 2.5, device="cpu") ** 2).sum(), 0.7)
    check_gradient(lambda x: (np.arange(3, device="cpu") * x).sum(), 0.7)
    check_gradient(lambda x: (np.arange(start=0, stop=3, device="cpu") * x).sum(), 0.7)


def test_how_many_numbers_a_range_has_is_found_when_it_runs(path):
    assert grad(lambda s: np.sum(np.arange(s, 3.0, 0.5)))(0.7) == 5.0
    assert grad(lambda s: s * len(np.arange(0.0, 10 * s)))(0.7) == 7.0
    x = np.array([0.3, 2.2])
    found = grad(lambda x: np.mean(np.arange(0.0, x[1], 0.5) * x[0]))(x)
    np.testing.assert_allclose(found, [1.0, 0.0])
