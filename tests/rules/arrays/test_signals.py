"""Lines of samples: lengths in any order, ends and knots, coordinates, vectors of two components."""

import math

import numpy as np
import pytest

from morula import gradient, pullback
from morula.testing import check_gradient, check_rrule

MODES = ["full", "same", "valid"]


def draw(rng, n, dtype="f8"):
    x = rng.standard_normal(n)
    return (x + 1j * rng.standard_normal(n) if dtype[0] == "c" else x).astype(dtype)


@pytest.mark.parametrize("fn", [np.convolve, np.correlate])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("m", [1, 2, 3, 6])
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("c16", "f8"), ("f8", "c16"), ("f4", "f4")])
def test_convolutions(rng, fn, mode, n, m, dtypes):
    check_rrule(fn, draw(rng, n, dtypes[0]), draw(rng, m, dtypes[1]), mode)


@pytest.mark.parametrize("fn", [np.convolve, np.correlate])
@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives_of_convolutions(rng, check_second_order, fn, mode):
    check_second_order(fn, draw(rng, 5), draw(rng, 3), mode)
    check_second_order(fn, draw(rng, 2), draw(rng, 5), mode)


def test_interpolation_at_knots_and_ends(path):
    xp, fp = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 8.0])
    slopes = [
        gradient(lambda x: np.interp(x, xp, fp), x)[0] for x in (-1.0, 0.0, 1.0, 2.0, 3.0, 4.0)
    ]
    assert slopes == [0.0, 1.0, 3.0, 3.0, 3.0, 0.0]
    found = gradient(lambda a, b: np.interp([-1.0, 5.0], xp, fp, a, b) @ [1.0, 10.0], 0.5, 0.5)
    assert found == (1.0, 10.0)
    assert gradient(lambda f: np.interp(0.5, [0.0], [f]), 2.0) == (1.0,)


def test_interpolation_at_nan_and_by_all_its_arrays():
    x, xp, fp = np.array([0.3, 1.7]), np.array([0.0, 1.0, 2.5]), np.array([1.0, -1.0, 4.0])
    check_gradient(lambda x, xp, fp: np.sum(np.interp(x, xp, fp) ** 2), x, xp, fp)
    check_gradient(lambda x, xp, fp: np.sum(np.interp(x, xp, fp, period=2.6) ** 2), x, xp, fp)
    check_gradient(lambda p: np.sum(np.interp(x, xp, fp, period=p) ** 2), 2.6)
    found = gradient(lambda x: np.interp(x, xp, fp)[1], np.array([np.nan, 1.7]))[0]
    assert np.isclose(found[1], 5 / 1.5)


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_differences(rng, edge_order, dtype):
    f = draw(rng, 24, dtype).reshape(4, 6)
    x = np.cumsum(rng.random(6) + 0.2)
    for args in ((), (0.5,), (0.5, 2.0), (0.5, x), (np.arange(4.0) ** 2, x)):
        check_gradient(
            lambda f: sum(
                np.sum(np.abs(g) ** 2) for g in np.gradient(f, *args, edge_order=edge_order)
            ),
            f,
        )
    check_gradient(lambda x: np.sum(np.abs(np.gradient(f, x, axis=1, edge_order=edge_order))), x)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_integrals(rng, axis):
    y, x = rng.standard_normal((3, 4)), np.cumsum(rng.random((3, 4)), axis)
    check_gradient(lambda y, x: np.sum(np.trapezoid(y, x, axis=axis) ** 2), y, x)
    check_gradient(lambda y, h: np.sum(np.trapezoid(y, dx=h, axis=axis) ** 2), y, 0.3)


def test_vectors_of_two_components_are_refused_as_by_numpy_or_right(rng):
    a, b = rng.standard_normal((2, 3, 3))
    check_gradient(lambda a, b: np.sum(np.cross(a, b, axis=0) ** 2), a, b)
    check_gradient(lambda a, b: np.sum(np.cross(a, b[0]) ** 2), a, b)
    check_gradient(lambda a, b: np.sum(np.cross(a, b[:, 0], axisa=0) ** 2), a, b)


def test_unwrapping_has_slope_one():
    x = np.array([0.0, 2.5, 5.5, 9.0, 8.5])
    assert gradient(lambda x: np.unwrap(x) @ np.arange(5.0), x)[0].tolist() == [0, 1, 2, 3, 4]
    check_gradient(lambda p: np.sum(np.unwrap(x, period=p) ** 2), 6.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda b, x: np.gradient(x, b[0]),
        lambda b, x: np.gradient(b, np.cumsum(x * x), edge_order=2),
        lambda b, x: np.interp(x, b[[1, 0]], x[:2]),
        lambda b, x: np.arctan2(b, x),
        lambda b, x: np.copysign(b, x) * x,
        lambda b, x: np.fabs(b) * x,
        lambda b, x: np.roots(b) * x[:3].sum(),
    ],
)
def test_truth_values_are_the_numbers_0_and_1(f):
    b, x = np.array([True, False, True, True]), np.array([0.3, 0.9, 0.4, 1.7])
    y, back = pullback(f, b, x)
    found = back(np.cos(np.arange(y.size)).reshape(y.shape))
    y, back = pullback(f, b.astype(float), x)
    expected = back(np.cos(np.arange(y.size)).reshape(y.shape))
    assert found[0] is None
    np.testing.assert_allclose(found[1], expected[1])


def test_truth_values_in_sums_of_the_standard_library():
    assert gradient(lambda b, s: math.fsum(b) * s, np.array([True, True, False]), 3.0) == (
        None,
        2.0,
    )
