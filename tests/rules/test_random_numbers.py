"""Random numbers in differentiated code."""

import random

import numpy as np
import pytest

from morula import UnsupportedError, gradient, pullback

pytestmark = pytest.mark.usefixtures("path")


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.random(),
        lambda rng: rng.standard_normal(3).sum(),
        lambda rng: rng.integers(1, 9),
        lambda rng: rng.normal(1.0, 2.0),
        lambda rng: rng.uniform(1.0, size=2).sum(),
        lambda rng: np.random.rand(),
        lambda rng: np.random.normal(0.0, 1.0),
        lambda rng: random.random() + random.gauss(0.0, 1.0) + random.randint(1, 3),
    ],
)
def test_draws_are_constants_where_nothing_depends_on_an_argument(draw):
    def f(x):
        return x * draw(np.random.default_rng(0))

    def seed():
        random.seed(1)
        np.random.seed(1)

    seed()
    expected = f(1.0)
    seed()
    assert gradient(f, 1.0) == (pytest.approx(expected),)
    seed()
    y, back = pullback(f, 1.0)
    assert y == expected
    assert back(1.0) == (pytest.approx(expected),)


@pytest.mark.parametrize("name", ["normal", "uniform"])
@pytest.mark.parametrize("kind", [np.random.Generator, np.random.RandomState])
@pytest.mark.parametrize(
    ("a", "b", "size"),
    [(0.5, 2.0, None), (np.zeros(2), 1.5, (3, 2)), (1.0, np.array([[2.0], [3.0]]), (2, 3))],
)
def test_affine_families(name, kind, a, b, size):
    def f(a, b):
        source = (
            np.random.default_rng(3) if kind is np.random.Generator else np.random.RandomState(3)
        )
        return (
            (getattr(source, name)(a, b, size) ** 2).sum() if size else getattr(source, name)(a, b)
        )

    ā, b̄ = gradient(f, a, b)
    h = 1e-6
    assert np.sum(ā) == pytest.approx((f(a + h, b) - f(a - h, b)) / (2 * h), rel=1e-5)
    assert np.sum(b̄) == pytest.approx((f(a, b + h) - f(a, b - h)) / (2 * h), rel=1e-5)


def test_a_scale_of_zero_and_families_without_rule():
    rng = np.random.default_rng(0)
    assert gradient(lambda m, s: rng.normal(m, s), 2.0, 0.0) == (1.0, 0.0)
    with pytest.raises(UnsupportedError, match="no derivative by its shape"):
        gradient(lambda a: rng.gamma(a), 2.0)
