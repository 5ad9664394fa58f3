"""Functions by bodies in Python: values are the plain call's, functions are called as often."""

import re

import numpy as np
import pytest

from morula import gradient, pullback


@pytest.mark.parametrize("out", [None, "array"])
def test_results_may_be_written_to_an_array(out):
    def f(x):
        y = np.full(3, 7.0)
        z = np.nancumsum(x, out=y if out else None)
        return (z * z).sum() + (y.sum() if out else 0.0)

    x = np.array([1.0, np.nan, 2.0])
    steps = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(gradient(f, x)[0], steps, rtol=1e-6)


def counted(make):
    """How often, and with what types, the function is called, plainly and under differentiation."""
    found = []
    for differentiated in (False, True):
        seen = []

        def f(*args):
            seen.append([type(a) for a in args])
            return args[0] * 2

        program = make(f)
        x = np.array([1.0, 2.0, 3.0], np.float32)
        y = pullback(program, x)[0] if differentiated else program(x)
        found.append((seen, y.dtype, y.tolist()))
    return found


@pytest.mark.parametrize(
    "make",
    [
        lambda f: lambda x: np.vectorize(f)(x),
        lambda f: lambda x: np.vectorize(f, cache=True)(x),
        lambda f: lambda x: np.vectorize(f, otypes=[float])(x),
        lambda f: lambda x: np.vectorize(f, signature="()->()")(x),
        lambda f: lambda x: np.vectorize(f, signature="(n)->(n)")(x),
        lambda f: lambda x: np.vectorize(f)(x, 2),
        lambda f: lambda x: np.apply_along_axis(f, 0, x),
        lambda f: lambda x: np.piecewise(x, [x > 1, x > 2], [f, f]),
        lambda f: lambda x: np.piecewise(x, x > 1, [f, 0.5]),
    ],
)
def test_functions_are_called_as_by_numpy(make):
    plain, ours = counted(make)
    assert ours == plain


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.vectorize(lambda v: v)(x[:0]),
        lambda x: np.apply_along_axis(np.sum, 0, np.ones((2, 0)) * x[0]),
        lambda x: np.piecewise(x, [x > 1], [1.0, 2.0, 3.0]),
        lambda x: np.fromiter([1.0], float, count=2),
    ],
)
def test_errors_are_those_of_numpy(f):
    with pytest.raises(ValueError, match=r".") as plain:
        f(np.ones(3))
    with pytest.raises(ValueError, match=re.escape(str(plain.value)[:20])):
        gradient(f, np.ones(3))


def test_functions_close_over_what_is_differentiated():
    x = np.array([0.5, -1.0, 2.0])
    found = gradient(
        lambda s: np.piecewise(x, [x > 0], [lambda v: s * v, lambda v: s * s]).sum(), 3.0
    )
    assert found == (2.5 + 6.0,)
    found = gradient(lambda s: np.apply_along_axis(lambda v: v * s, 0, x).sum(), 3.0)
    assert found == (1.5,)


RESULTS = [  # of functions whose derivative is that of a body
    lambda p: np.interp(np.array([0.5, 1.5, 1.7]), np.arange(3.0), p),
    pytest.param(
        lambda p: np.cumulative_sum(p),
        marks=pytest.mark.skipif(not hasattr(np, "cumulative_sum"), reason="since NumPy 2.1"),
    ),
    lambda p: np.nanprod(np.stack([p, p]), axis=0),
    lambda p: np.gradient(p),
    lambda p: np.vander(p),
    lambda p: np.cov(np.stack([p, p**2])),
    lambda p: np.select([p > 2.5], [p * p], p),
    lambda p: np.histogram([0.5, 1.5], 2, weights=p[:2])[0],
    lambda p: np.geomspace(p[0], p[1], 3),
]


@pytest.mark.parametrize("make", RESULTS)
def test_results_that_are_written_to(make, path):
    def f(p, write):
        y = make(p)
        if write:
            y[...] *= 1.0
            y[0] = y[0] * 2.0
        weights = np.arange(1.0, y.size + 1).reshape(y.shape)
        if not write:
            weights[0] *= 2.0
        return (y * weights).sum()

    p = np.array([2.0, 3.0, 5.0])
    found, expected = gradient(f, p, True)[0], gradient(f, p, False)[0]
    assert np.any(expected != 0)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("sample", [np.zeros((0, 2)), np.zeros(0), [], [[], []]])
def test_multidimensional_histograms_of_nothing(sample):
    def f(w):
        return np.sum(np.histogramdd(sample, bins=2, weights=w)[0])

    assert gradient(f, np.zeros(0))[0].shape == (0,)


def test_multidimensional_histograms_of_one_column():
    def f(w):
        return np.histogramdd(np.array([0.0, 1.0, 2.0]), bins=2, weights=w)[0] @ [3.0, 5.0]

    np.testing.assert_array_equal(gradient(f, np.ones(3))[0], [3.0, 5.0, 5.0])


def test_too_few_weights_of_a_multidimensional_histogram():
    def f(w):
        return np.sum(np.histogramdd(np.zeros((3, 2)), bins=2, weights=w)[0])

    with pytest.raises(ValueError, match="same length"):
        gradient(f, np.zeros(0))
