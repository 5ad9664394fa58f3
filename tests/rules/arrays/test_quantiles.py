"""Medians, quantiles and percentiles: each method, axis and keyword; ties, NaN, ends."""

import numpy as np
import pytest

from morula import gradient
from morula.testing import check_rrule

METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest",
]  # fmt: skip
PLAIN = [np.quantile, np.percentile]
WITH_NAN = [np.nanquantile, np.nanpercentile]


def unit(fn):
    return 100 if fn in (np.percentile, np.nanpercentile) else 1


@pytest.fixture
def x(rng):
    return rng.permutation(24).reshape(2, 3, 4) / 8 - 1.3


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_median(x, axis, keepdims):
    check_rrule(np.median, x, axis, keepdims=keepdims)
    check_rrule(np.median, x[:, :, :3], axis=axis, keepdims=keepdims)
    check_rrule(np.nanmedian, x, axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("dtype", ["f2", "f4", "g", "c16", "i8"])
def test_median_keeps_the_dtype(x, dtype):
    check_rrule(np.median, np.floor(x * 8).astype(dtype))


@pytest.mark.parametrize("fn", PLAIN + WITH_NAN)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes(x, fn, axis, keepdims):
    q = 0.37 * unit(fn)
    check_rrule(fn, x, q, axis, keepdims=keepdims)
    check_rrule(fn, x, np.array([q, q / 5, 2 * q]), axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("fn", PLAIN + WITH_NAN)
@pytest.mark.parametrize("method", METHODS)
def test_methods(x, fn, method):
    for q in (0.017, 0.21, 0.53, 0.993):
        check_rrule(fn, x, q * unit(fn), method=method)
        check_rrule(fn, x, q * unit(fn), -1, method=method)


@pytest.mark.parametrize("fn", PLAIN)
def test_dtypes_and_sequences_of_quantiles(x, fn):
    q = 0.37 * unit(fn)
    for dtype in ("f2", "f4", "g"):
        check_rrule(fn, x.astype(dtype), q)
    check_rrule(fn, x, [q, q / 2])
    check_rrule(fn, [2.0, 1.0, 4.0], q)


@pytest.mark.parametrize("fn", [np.nanmedian, *WITH_NAN])
def test_rows_with_different_counts(fn):
    x = np.array([[1.0, np.nan, 3.0, 2.5], [np.nan, np.nan, 7.0, 4.0], [np.nan, 1, np.nan, np.nan]])
    args = () if fn is np.nanmedian else (0.6 * unit(fn),)
    found = gradient(lambda x: (np.array([1.0, 10.0, 100.0]) * fn(x, *args, axis=1)).sum(), x)[0]
    shares = (
        [[0, 0, 0, 1], [0, 0, 5, 5], [0, 100, 0, 0]]
        if fn is np.nanmedian
        else [[0, 0, 0.2, 0.8], [0, 0, 6, 4], [0, 100, 0, 0]]
    )
    np.testing.assert_allclose(found, shares, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:All-NaN")
def test_a_row_without_entries_gets_zeros():
    x = np.array([[np.nan, np.nan], [1.0, 2.0]])
    found = gradient(lambda x: np.nansum(np.nanmedian(x, axis=1)), x)[0]
    assert found.tolist() == [[0, 0], [0.5, 0.5]]
    found = gradient(lambda x: np.nansum(np.nanquantile(x, 0.25, axis=1)), x)[0]
    assert found.tolist() == [[0, 0], [0.75, 0.25]]


@pytest.mark.parametrize("q", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("method", METHODS)
def test_ties_share_one(q, method):
    x = np.array([2.0, 2.0, 1.0, 2.0, 5.0])
    found = gradient(lambda x: np.quantile(x, q, method=method), x)[0]
    assert np.isclose(found.sum(), 1)
    assert np.isclose(found @ x, np.quantile(x, q, method=method))


def test_the_quantile_has_a_slope_at_both_ends():
    x = np.array([1.0, 3.0, 2.0])
    assert gradient(lambda q: np.quantile(x, q), 0.0) == (2.0,)
    assert gradient(lambda q: np.quantile(x, q), 1.0) == (2.0,)
    assert gradient(lambda q: np.percentile(x, q), 100.0) == (0.02,)
    assert gradient(lambda q: np.quantile(x, q, method="hazen"), 1.0) == (0.0,)


def test_second_derivatives(x, check_second_order):
    check_second_order(np.median, x)
    check_second_order(np.quantile, x, 0.3, axis=1)
    row = np.array([1.0, 4.0, 2.0])

    def slope(q, x):
        return gradient(lambda q: np.quantile(x, q) ** 2, q)[0]

    # y = 1 + 2 q below one half, so the slope of y**2 is 4 y, and that of this 8
    assert gradient(slope, 0.25, row)[0] == 8.0
    np.testing.assert_allclose(gradient(slope, 0.25, row)[1], [-4.0, 0.0, 8.0])


def test_small_arrays():
    check_rrule(np.median, np.array([2.5]))
    check_rrule(np.median, np.array(2.5))
    check_rrule(np.quantile, np.array([2.5]), 0.3)
    check_rrule(np.quantile, np.array([[1.0, 2.5]]), 0.3, axis=0)
