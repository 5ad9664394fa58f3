"""Functions of the user's that NumPy calls."""

import functools

import numpy as np
import pytest

import morula
from morula import gradient, hvp, jvp, pullback
from morula.testing import check_gradient


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def of(self, v):
        return self.factor * v**2


SQUARED = np.frompyfunc(lambda v: v**2, 1, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: lambda v: s * v**2,
        lambda s: functools.partial(lambda s, v: s * v**2, s),
        lambda s: Scaled(s).of,
    ],
    ids=["closure", "partial", "method"],
)
def test_frompyfunc_of_what_holds_active_values(make, path):
    def f(s, x):
        return np.frompyfunc(make(s), 1, 1)(x).sum()

    s, x = 2.0, np.array([1.0, 3.0])
    s̄, x̄ = gradient(f, s, x)
    assert s̄ == 10
    assert x̄.tolist() == [4, 12]
    assert jvp(f, (s, x), (1.0, np.ones(2))) == (20, 26)
    assert hvp(lambda s: f(s, s * x), 2.0, 1.0) == pytest.approx(6 * 2.0 * 10)


def test_frompyfunc_made_before_with_numbers_lists_and_several_results(path):
    assert gradient(SQUARED, 3.0) == (6,)
    assert gradient(lambda x: SQUARED([x, 2.0]).sum(), 3.0) == (6,)
    both = np.frompyfunc(lambda v, w: (v * w, v - w), 2, 2)
    x, y = np.arange(3.0), np.ones((2, 1))
    x̄, ȳ = gradient(lambda x, y: both(x, y)[0].sum() + 2 * both(x, y)[1].sum(), x, y)
    assert x̄.tolist() == [6, 6, 6]
    assert ȳ.tolist() == [[-3], [-3]]
    found = pullback(SQUARED, x)[0]
    assert found.dtype == object
    assert found.tolist() == SQUARED(x).tolist() == [0, 1, 4]


def test_frompyfunc_that_gives_arrays(path):
    def f(x):
        return np.frompyfunc(lambda v: v * v * np.ones(2), 1, 1)(x)[0].sum()

    assert gradient(f, np.array([1.0, 3.0]))[0].tolist() == [4.0, 0.0]
    assert jvp(f, (np.array([1.0, 3.0]),), (np.ones(2),)) == (2.0, 4.0)


def test_vectorize_with_excluded_arguments(path):
    def f(x, p):
        return np.vectorize(lambda v, p: v * p[0], excluded=["p"])(x, p=p).sum()

    x, p = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x̄, p̄ = gradient(f, x, p)
    assert x̄.tolist() == [3, 3]
    assert p̄.tolist() == [3, 0]
    assert jvp(f, (x, p), (np.ones(2), np.array([1.0, 0.0]))) == (9, 9)


def test_powers_of_arrays_of_objects(path):
    def f(x):
        return (np.array([x, 2 * x], dtype=object) ** 3).sum() + (
            np.array([x], dtype=object) ** 2.5
        ).sum()

    assert gradient(f, 4.0)[0] == pytest.approx(27 * 16 + 2.5 * 8)
    assert jvp(f, (4.0,), (1.0,))[1] == pytest.approx(27 * 16 + 2.5 * 8)


def test_arrays_in_arrays_of_objects(path):
    def f(x):
        return sum(v.sum() for v in np.array([x, x[:1] ** 2], dtype=object))

    check_gradient(f, np.array([1.0, 3.0]))
    assert jvp(f, (np.array([1.0, 3.0]),), (np.array([1.0, 2.0]),)) == (5.0, 5.0)


@pytest.mark.parametrize("make", [np.array, np.asarray])
def test_records_made_of_numbers_are_refused_in_forward_mode(make):
    """The tangent was zero, silently."""
    dtype = [("a", float), ("b", float)]
    for f in (lambda x: make([(x, 2 * x)], dtype=dtype)["a"][0] ** 2,):
        with pytest.raises(morula.DifferentiationError, match="records"):
            jvp(f, (3.0,), (1.0,))
    assert jvp(lambda x: make([(1.0, 2.0)], dtype=dtype)["a"][0] * x, (3.0,), (1.0,)) == (3, 1)
