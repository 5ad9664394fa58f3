"""What moves entries: orders of memory, first ones of equal entries, sources and margins."""

import warnings

import numpy as np
import pytest

from morula import gradient, jvp, pullback
from morula.rules.arrays.moving import converted
from morula.testing import check_rrule

X = np.arange(12.0).reshape(3, 4) / 7
LAYOUTS = {
    "C": X.copy(), "F": np.asfortranarray(X), "strided": np.repeat(X, 2, 1)[:, ::2],
    "turned": np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1), "reversed": X[::-1],
}  # fmt: skip


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
def test_orders_of_memory(x, order):
    w = np.cos(np.arange(x.size))
    for f in (np.ravel, np.ndarray.ravel, np.ndarray.flatten):
        found = gradient(lambda x: (f(x, order=order) * w).sum(), x)[0]
        expected = [(f(e, order=order) * w).sum() for e in unit_arrays(x)]
        np.testing.assert_allclose(found.ravel(), expected)
    if order != "K":
        shape = (x.size // 2, 2)
        for f in (np.reshape, np.ndarray.reshape):
            found = gradient(lambda x: (f(x, shape, order=order) * w.reshape(shape)).sum(), x)[0]
            expected = [(f(e, shape, order=order).ravel() * w).sum() for e in unit_arrays(x)]
            np.testing.assert_allclose(found.ravel(), expected)


def unit_arrays(x):
    """An array with a single one for each entry, laid out in memory as x is."""
    for i in range(x.size):
        e = np.empty_like(x)
        if e.strides != x.strides:  # a view with gaps or backwards
            e = np.repeat(np.zeros_like(x), 2, 1)[:, ::2] if x.strides[-1] > 8 else e[::-1]
        e[...] = 0
        e[np.unravel_index(i, x.shape)] = 1
        yield e


def test_equal_values_count_once():
    x = np.array([2.0, 1.0, 2.0, 1.0, 3.0])
    assert gradient(lambda x: np.unique(x).sum(), x)[0].tolist() == [1, 1, 0, 0, 1]
    assert gradient(lambda x: np.union1d(x, x)[0], x)[0].tolist() == [0, 1, 0, 0, 0]
    _, index = np.unique(x, return_index=True)
    found = gradient(lambda x: np.unique(x, return_inverse=True)[0] @ np.arange(3.0), x)[0]
    assert found[index].tolist() == [0, 1, 2]


def test_places_of_inserted_values(rng, check_second_order):
    x = rng.standard_normal((3, 4))
    check_rrule(np.insert, x, 1, rng.standard_normal((2, 4)), 0)
    check_rrule(np.insert, x, [0, 3], rng.standard_normal((3, 1)), axis=1)
    check_rrule(np.insert, x[0], 2, [0.5, 0.25])
    check_rrule(np.delete, x, [0, 2], 1)
    check_second_order(np.delete, x, [0, 2], 1)
    check_second_order(np.insert, x, [0, 2], 0.5, 1)
    check_second_order(np.resize, x, (5, 3))


@pytest.mark.parametrize("dtype", [int, np.int32, bool])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, t: x.astype(t), lambda x, t: np.astype(x, t), lambda x, t: np.array(x, t),
        lambda x, t: np.asarray(x, t), lambda x, t: np.array([x[0], x[1]], t),
        lambda x, t: np.full(3, x[0], t), lambda x, t: np.full_like(np.zeros(2, t), x[1]),
        lambda x, t: np.ascontiguousarray(x, t), lambda x, t: x.__array__(t),
        lambda x, t: np.concatenate([x, x], dtype=t, casting="unsafe"),
    ],
)  # fmt: skip
def test_conversions_to_whole_numbers_have_derivative_zero(f, dtype, path):
    found = gradient(lambda x: (f(x, dtype) * 2.5).sum(), np.array([0.3, 2.7]))[0]
    assert found.tolist() == [0, 0]
    whole = gradient(lambda x: (f(x, dtype) * 2.5).sum(), np.array([1, 3]))[0]
    assert whole.dtype == float


@pytest.mark.parametrize(
    "f",
    [
        lambda m: np.delete(m, [0, 2], axis=1),
        lambda m: np.insert(m, 0, 0.7, axis=1),
        lambda m: np.resize(m, (2, 2)),
        np.unique,
        lambda m: np.maximum.accumulate(m, axis=0),
        pytest.param(
            lambda m: np.cumulative_sum(m, axis=0, include_initial=True),
            marks=pytest.mark.skipif(not hasattr(np, "cumulative_sum"), reason="since NumPy 2.1"),
        ),
        lambda m: np.histogram(m, 4)[1],
        np.cov,
    ],
)
def test_arrays_without_entries(f):
    m = np.zeros((0, 4))
    y, back = pullback(f, m)
    assert np.array_equal(y, f(m))
    (x̄,) = back(np.ones_like(y))
    assert x̄.shape == m.shape
    assert x̄.dtype == m.dtype
    assert jvp(f, (m,), (m,))[1].shape == y.shape


def test_a_real_cotangent_is_the_real_part_of_a_complex_one():
    x = np.array([0.3, 0.7])
    _, back = pullback(lambda x: converted(x, np.complex128), x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x̄,) = back(np.array([1.0 + 2.0j, 3.0j]))
    assert x̄.tolist() == [1.0, 0.0]


def test_where_values_stand_is_constant():
    def f(x):
        _, inverse, counts = np.unique(np.round(x, 1), return_inverse=True, return_counts=True)
        return x @ inverse + counts.sum() * x[0]

    assert gradient(f, np.array([0.3, 0.8, 0.3]))[0].tolist() == [3.0, 1.0, 0.0]
