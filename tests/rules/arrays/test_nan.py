"""Functions that leave out NaN: zeros there, the rest as without; rows of nothing but NaN."""

import numpy as np
import pytest

from morula import gradient
from morula.testing import check_rrule

X = np.array([[1.5, np.nan, -0.3, 2.0], [0.7, 1.1, np.nan, np.nan], [3.0, -1.0, 0.2, 0.4]])
SUMS = [np.nansum, np.nanmean, np.nanprod, np.nanvar, np.nanstd, np.nanmax, np.nanmin]
RUNNING = {np.nancumsum: np.cumsum, np.nancumprod: np.cumprod}


@pytest.mark.parametrize("fn", SUMS)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_as_without(fn, axis, keepdims, dtype, path):
    if fn in (np.nanmax, np.nanmin) and dtype == "c16":
        return
    x = X.astype(dtype)
    f = {"f8": np.real, "f4": np.real, "c16": np.abs}[dtype]
    found = gradient(lambda x: np.sum(f(fn(x, axis=axis, keepdims=keepdims))), x)[0]
    assert found.dtype == x.dtype
    assert np.all(found[np.isnan(x)] == 0)
    rows = [x.ravel()] if axis in (None, (0, 1)) else np.moveaxis(x, axis, -1)
    bars = [found.ravel()] if axis in (None, (0, 1)) else np.moveaxis(found, axis, -1)
    for row, bar in zip(rows, bars, strict=True):
        kept = row[~np.isnan(row)]
        expected = gradient(lambda r: f(fn(r)), kept)[0]
        np.testing.assert_allclose(bar[~np.isnan(row)], expected, rtol=1e-5)


@pytest.mark.parametrize("fn", RUNNING)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_running(fn, axis, path):
    fill = 0.0 if fn is np.nancumsum else 1.0
    weights = np.cos(np.arange(12.0))
    found = gradient(lambda x: fn(x, axis).ravel() @ weights, X)[0]
    filled = np.where(np.isnan(X), fill, X)
    expected = gradient(lambda x: RUNNING[fn](x, axis).ravel() @ weights, filled)[0]
    np.testing.assert_allclose(found, np.where(np.isnan(X), 0, expected))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fn", SUMS)
def test_rows_of_nothing_but_nan(fn, path):
    x = np.array([[np.nan, np.nan], [1.0, 2.5]])
    found = gradient(lambda x: np.nansum(fn(x, axis=1)), x)[0]
    assert found[0].tolist() == [0, 0]
    assert np.all(np.isfinite(found[1]))


def test_no_nan_leaks_from_behind(path):
    x = np.array([4.0, -1.0, 9.0])
    with np.errstate(invalid="ignore"):
        found = gradient(lambda x: np.nansum(np.sqrt(x)) + np.nanvar(np.sqrt(x)), x)[0]
    assert found[1] == 0
    assert np.all(np.isfinite(found))


def test_keywords():
    for fn in (np.nansum, np.nanmax, np.nanmin):
        check_rrule(fn, X[2], initial=0.1)
    mask = X > 0
    for fn in (np.nansum, np.nanmean):
        check_rrule(fn, X[2], where=mask[2])
