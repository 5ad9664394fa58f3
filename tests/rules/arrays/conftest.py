"""The rules under test, and those of numbers, which they build on."""

import numpy as np
import pytest

import morula


def _check_second_order(fn, x, *rest, **kwargs):
    """The derivative of the gradient of Σ w fn(x)² in one direction, against a difference.

    As `order=2` of `check_rrule`, for calls with integers that are no points of the real line.
    """
    rng = np.random.default_rng(0)
    w = rng.standard_normal(np.shape(fn(x, *rest, **kwargs)))
    u, v = rng.standard_normal((2, *x.shape))

    def gradient(f, x):  # by the general path: nothing is compiled for these shapes
        _, back = morula.pullback(f, x)
        return back(1.0)[0]

    def slope(x):
        return np.sum(v * gradient(loss, x))

    def loss(x):
        return np.sum(w * fn(x, *rest, **kwargs) ** 2)

    got = np.sum(u * gradient(slope, x))
    h = 1e-5
    expected = (slope(x + h * u) - slope(x - h * u)) / (2 * h)
    assert np.isclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.fixture
def check_second_order():
    """A check of the derivative of a rule."""
    return _check_second_order
