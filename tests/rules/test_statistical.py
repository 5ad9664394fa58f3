"""The module statistics: every function against differences, any iterable, exact numbers."""

import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from morula import gradient, jvp
from morula.testing import check_gradient

XS = [1.5, 2.5, 0.7, 4.0, 3.1]
YS = [0.3, 1.0, 2.0, 1.7, 0.2]
CALLS = {
    "mean": lambda x: statistics.mean(x), "fmean": lambda x: statistics.fmean(x),
    "geometric mean": lambda x: statistics.geometric_mean(x),
    "harmonic mean": lambda x: statistics.harmonic_mean(x),
    "median": lambda x: statistics.median(x), "low": lambda x: statistics.median_low(x),
    "high": lambda x: statistics.median_high(x),
    "grouped": lambda x: statistics.median_grouped(x, 0.5),
    "variance": lambda x: statistics.variance(x), "pvariance": lambda x: statistics.pvariance(x),
    "stdev": lambda x: statistics.stdev(x), "pstdev": lambda x: statistics.pstdev(x),
    "quantiles": lambda x: statistics.quantiles(x, n=3)[0],
    "covariance": lambda x: statistics.covariance(x, YS),
    "correlation": lambda x: statistics.correlation(x, YS),
    "slope": lambda x: statistics.linear_regression(x, YS).slope,
    "intercept": lambda x: statistics.linear_regression(YS, x).intercept,
    "through the origin": lambda x: statistics.linear_regression(x, YS, proportional=True)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_gradients(name, kind, path):
    check_gradient(CALLS[name], kind(XS))


@pytest.mark.parametrize("name", ["mean", "fmean", "stdev", "geometric mean", "correlation"])
def test_iterators_are_read_once(name):
    found = gradient(lambda xs: CALLS[name](iter(xs)), XS)[0]
    assert found == gradient(CALLS[name], XS)[0]
    found = gradient(lambda xs: CALLS[name](x * 2 for x in xs), XS)[0]
    assert np.allclose(found, gradient(lambda xs: CALLS[name]([x * 2 for x in xs]), XS)[0])


def test_weights_and_given_means():
    check_gradient(lambda x, w: statistics.fmean(x, w), XS, YS)
    check_gradient(lambda x, w: statistics.harmonic_mean(x, weights=w), XS, YS)
    for f in (statistics.variance, statistics.pvariance, statistics.stdev, statistics.pstdev):
        check_gradient(lambda x, m: f(x, m), XS, 2.0)


def test_exact_numbers_stay_exact():
    xs = [Fraction(1, 3), Fraction(1, 2), Fraction(2, 5)]
    assert gradient(statistics.mean, xs)[0] == [Fraction(1, 3)] * 3
    assert gradient(statistics.variance, xs)[0][0] == Fraction(1, 3) - sum(xs) / 3
    found = gradient(statistics.pstdev, [Decimal(1), Decimal(3)])[0]
    assert found == [Decimal("-0.5"), Decimal("0.5")]


def test_data_without_spread_have_slope_zero():
    assert gradient(statistics.stdev, [2.0, 2.0])[0] == [0.0, 0.0]
    assert gradient(statistics.pstdev, (2.0, 2.0, 2.0))[0] == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.99])
def test_normal_distributions(p):
    check_gradient(lambda p, μ, σ: statistics.NormalDist(μ, σ).inv_cdf(p), p, 0.4, 1.7)
    check_gradient(lambda x, μ, σ: statistics.NormalDist(μ, σ).cdf(x), p, 0.4, 1.7)
    check_gradient(lambda x, μ, σ: statistics.NormalDist(μ, σ).pdf(x) * (x + σ), p, 0.4, 1.7)


def test_tuples_and_mixed_numbers_in_forward_mode():
    assert jvp(lambda s, r: statistics.mean((s, r)), (1.0, 1.9), (1.0, 3.0))[1] == 2.0
    assert jvp(lambda s, r: statistics.fmean((s, r)), (1, 1.9), (1.0, 3.0))[1] == 2.0


def test_the_most_common_value_is_one_of_the_data(path):
    assert gradient(lambda a, b: statistics.mode([b, a, a]) ** 2, 3.0, 1.0) == (6.0, 0.0)
    assert gradient(lambda x: sum(statistics.multimode(iter(x))), [2.0, 1.0, 2.0, 1.0]) == (
        [1.0, 1.0, 0.0, 0.0],
    )
    assert jvp(lambda a: statistics.multimode([a, 1, a])[0], (3.0,), (2.0,)) == (3.0, 2.0)
    assert statistics.mode(["b", "a", "a"]) == "a"


def test_normal_distributions_of_samples(path):
    def f(x):
        d = statistics.NormalDist.from_samples(x)
        return d.mean * d.stdev

    check_gradient(f, [0.6, 2.0, 3.0])
    d = statistics.NormalDist.from_samples([1.0, 2.0, 3.0])
    assert jvp(f, ([1.0, 2.0, 3.0],), ([0.0, 0.0, 3.0],)) == (2.0, pytest.approx(1.0 + 2 * 1.5))
    assert (d.mean, d.stdev) == (2.0, 1.0)
