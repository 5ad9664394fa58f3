"""Reductions, with every keyword they honour, as functions and as methods."""

import numpy as np
import pytest

from morula import grad, gradient, jvp, pullback
from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_gradient, check_rrule

SUMS = [np.sum, np.mean, np.prod, np.var, np.std]
EXTREMES = [np.max, np.min, np.ptp]
DTYPES = ["f8", "f4", "c16", "i8", "f2"]


def draw(rng, dtype, shape=(2, 3, 4)):
    x = rng.permutation(np.prod(shape)).reshape(shape) / 8 - 1.3
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return (x * 8 if dtype == "i8" else x).astype(dtype)


def gradients(fn, *args, ȳ=1.0, **kwargs):
    return apply_rule(find_rrule(fn, args, kwargs), args, kwargs)[1](ȳ)


@pytest.mark.parametrize("fn", SUMS + EXTREMES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(rng, fn, dtype, axis, keepdims):
    if (fn in EXTREMES and dtype == "c16") or (axis == () and fn in (np.var, np.std, np.ptp)):
        return
    x = draw(rng, dtype)
    if fn is np.prod:
        x = (
            x[..., :2] / (2 if dtype != "i8" else 1)
            if dtype != "i8"
            else np.array([[[1, 2], [3, 1]]])
        )
    check_rrule(fn, x, axis, keepdims=keepdims)
    check_rrule(fn, x, axis=axis, keepdims=keepdims)
    check_rrule(fn, x.T, axis=axis)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "var", "std", "max", "min", "cumsum", "cumprod"]
)
def test_methods(rng, name):
    x = draw(rng, "f8", (2, 3))
    method = getattr(np.ndarray, name)
    check_rrule(method, x, order=2)
    check_rrule(method, x, 0)
    check_rrule(method, x, axis=1)
    if not name.startswith("cum"):
        check_rrule(method, x, axis=1, keepdims=True)


@pytest.mark.parametrize("fn", SUMS + [np.max, np.min])
def test_where(rng, fn):
    x = draw(rng, "f8", (3, 4))
    where = np.array([[True, True, False, True]] * 2 + [[False, True, True, True]])
    extra = {"initial": 1.1} if fn in (np.max, np.min) else {}
    check_rrule(fn, x, where=where, **extra)
    check_rrule(fn, x, axis=1, where=where, **extra)
    check_rrule(fn, x, axis=0, where=where, keepdims=True, **extra)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("fn", [*SUMS, np.max, np.min, np.hypot.reduce, np.fmax.reduce])
def test_what_where_leaves_out_counts_as_not_computed(fn, path):
    mask = np.array([True, False, True])
    keywords = {} if fn in (*SUMS, np.hypot.reduce) else {"initial": 2.5}
    found = gradient(lambda x: fn(np.sqrt(x), where=mask, **keywords), np.array([4.0, 0.0, 9.0]))[0]
    kept = gradient(lambda x: fn(np.sqrt(x), **keywords), np.array([4.0, 9.0]))[0]
    assert found[1] == 0
    np.testing.assert_allclose(found[mask], kept)


@pytest.mark.parametrize("fn", [np.sum, np.prod, np.max, np.min])
@pytest.mark.parametrize("axis", [None, 0])
def test_initial(rng, fn, axis):
    check_rrule(fn, draw(rng, "f8", (3, 2)), axis, initial=0.43)
    check_rrule(fn, draw(rng, "f8", (3, 2)), axis, initial=9.0)


@pytest.mark.parametrize("fn", [np.var, np.std])
def test_degrees_of_freedom_and_given_mean(rng, fn):
    x = draw(rng, "f8", (3, 4))
    check_rrule(fn, x, ddof=1)
    check_rrule(fn, x, axis=0, correction=1)
    check_rrule(fn, x, axis=1, keepdims=True, mean=x.mean(axis=1, keepdims=True) + 0.5)


@pytest.mark.parametrize("fn", [np.sum, np.prod, np.mean, np.cumsum, np.cumprod])
def test_dtype(rng, fn):
    check_rrule(fn, draw(rng, "f4", (2, 3)), None, "f8")
    check_rrule(fn, draw(rng, "f4", (2, 3)), axis=0, dtype="c16")


@pytest.mark.parametrize("fn", SUMS)
def test_empty_arrays(fn):
    for shape in [(0,), (2, 0)]:
        with (
            np.errstate(all="ignore"),
            pytest.warns(RuntimeWarning) if fn in (np.mean, np.var, np.std) else np.errstate(),
        ):
            (x̄, *_) = gradients(fn, np.zeros(shape))
        assert x̄.shape == shape


@pytest.mark.parametrize("fn", [np.cumsum, np.cumprod])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_running(rng, check_second_order, fn, axis, dtype):
    check_rrule(fn, draw(rng, dtype, (3, 2)), axis)
    if dtype == "f8":
        check_second_order(fn, draw(rng, dtype, (3, 2)), axis)


@pytest.mark.parametrize(
    "x", [[1.0, 0.0], [0.0, 2.0, 3.0], [2.0, 0.0, 3.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
)
@pytest.mark.parametrize("fn", [np.cumprod, np.prod])
def test_zeros_in_products(fn, x):
    check_rrule(fn, np.array(x), order=2)
    check_rrule(fn, np.array([x, x[::-1]]), axis=1, order=2)
    check_rrule(fn, np.array([x, x[::-1]]), axis=0)


def test_product_with_zeros_over_two_axes():
    x = np.arange(8.0).reshape(2, 2, 2)
    check_rrule(np.prod, x, axis=(0, 2))
    assert gradients(np.prod, np.array([0.0, 2.0, 3.0]))[0].tolist() == [6, 0, 0]
    assert gradients(np.prod, np.array([0.0, 0.0, 3.0]))[0].tolist() == [0, 0, 0]


def test_ties_share_equally():
    assert gradients(np.max, np.ones(2))[0].tolist() == [0.5, 0.5]
    x = np.array([[1.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    assert gradients(np.max, x, axis=1, ȳ=np.ones(2))[0].tolist() == [[0.5, 0.5, 0], [1, 0, 0]]
    assert gradients(np.max, np.ones(3), initial=1.0)[0].tolist() == [0.25] * 3


def test_std_of_a_constant_has_gradient_zero():
    assert gradients(np.std, np.ones(3))[0].tolist() == [0, 0, 0]
    assert gradients(np.std, np.ones((2, 3)), axis=1, ȳ=np.ones(2))[0].tolist() == [[0] * 3] * 2


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 4)])
@pytest.mark.parametrize("offset", [0, 1, -1])
def test_diagonals(rng, check_second_order, shape, offset):
    x = rng.standard_normal(shape)
    for fn in (np.trace, np.diagonal, np.ndarray.trace, np.ndarray.diagonal):
        check_rrule(fn, x, offset)
        check_second_order(fn, x, offset)
        check_rrule(fn, x.astype("c8"), offset)
        check_rrule(fn, x, offset, axis1=1, axis2=0)


@pytest.mark.parametrize("fn", [np.nansum, np.nanmean, np.nanmax, np.nanmin])
def test_without_nan_and_with(rng, fn):
    x = draw(rng, "f8", (2, 3))
    check_rrule(fn, x)
    check_rrule(fn, x, axis=1)
    x[0, 1] = np.nan
    x̄ = gradients(fn, x)[0]
    assert x̄[0, 1] == 0
    assert np.isclose(x̄.sum(), 1 if fn is not np.nansum else 5)


def test_dtype_of_the_argument_is_kept():
    for fn in SUMS + [np.max, np.cumsum]:
        x = np.array([1, 2, 3], "f4")
        assert gradients(fn, x, ȳ=np.ones_like(fn(x)))[0].dtype == np.float32


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("ties", [1, 2])
def test_the_share_of_an_extreme_is_added_to_other_cotangents(rng, order, n, ties):
    """In place and not, to one entry or to several, whatever the layout."""
    x = np.array(rng.standard_normal((n, n)), order=order)
    x.ravel("K")[:ties] = 9.0

    def program(x):
        return np.sum(np.exp(x / 9)) + 2 * np.max(x) * np.min(x)

    expected = np.exp(x / 9) / 9 + 2 * (x == 9) * np.min(x) / ties + 18 * (x == np.min(x))
    assert np.allclose(grad(program)(x), expected, rtol=1e-12)


def test_an_extreme_that_is_nan_has_no_share():
    x = np.array([1.0, np.nan, 2.0])
    assert grad(lambda x: np.max(x) + np.sum(x[:1]))(x).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("fn", [np.var, np.std, np.nanvar, np.nanstd])
@pytest.mark.parametrize("name", ["ddof", "correction"])
def test_degrees_of_freedom_are_numbers(rng, fn, name):
    x = draw(rng, "f8", (3, 4))
    for f in (
        lambda d: fn(x, **{name: d}),
        lambda d: np.sum(fn(x * d, 0, where=x < 2.0, **{name: d})),
        lambda d: np.sum(fn(x + 1j * x**2, 1, None, None, d)),
        lambda d: fn([1.0, 2.0, d, 7.0], **{name: d}),
    ):
        check_gradient(f, 0.75)
        (slope,) = gradient(f, 0.75)
        np.testing.assert_allclose(jvp(f, (0.75,), (1.0,))[1], slope)
        np.testing.assert_allclose(pullback(f, 0.75)[1](1.0), (slope,))
