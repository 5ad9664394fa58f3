"""Draws with parameters: the derivative is that of the same draw; places tell what was taken."""

import random

import numpy as np
import pytest

from morula import gradient
from morula.testing import check_gradient

P = {
    "normal": (0.4, 1.7), "uniform": (-0.3, 2.0), "laplace": (0.4, 1.7), "logistic": (0.4, 1.7),
    "gumbel": (0.4, 1.7), "exponential": (1.7,), "rayleigh": (1.7,), "lognormal": (0.2, 0.5),
    "weibull": (1.7,), "power": (1.7,), "pareto": (2.7,), "triangular": (-1.0, 0.2, 3.0),
}  # fmt: skip
SOURCES = [np.random.default_rng, np.random.RandomState]


@pytest.mark.parametrize("name", P)
@pytest.mark.parametrize("source", SOURCES)
def test_parameters(name, source, path):
    weights = np.cos(np.arange(20.0)).reshape(4, 5)

    def f(*parameters):
        return np.sum(weights * getattr(source(3), name)(*parameters, size=(4, 5)))

    check_gradient(f, *P[name])
    check_gradient(f, *[np.full(5, p) for p in P[name]])
    check_gradient(lambda *p: getattr(source(3), name)(*p), *P[name])


@pytest.mark.parametrize("name", ["normal", "uniform", "laplace"])
def test_a_scale_of_zero(name):
    found = gradient(
        lambda b: getattr(np.random.default_rng(0), name)(1.0, b), 1.0 * (name == "uniform")
    )
    assert found[0] == 0.0


def test_the_module_is_one_of_them():
    def f(a, b):
        np.random.seed(2)
        return np.random.normal(a, b, 4) @ np.arange(4.0) + np.random.exponential(b)

    check_gradient(f, 0.5, 2.0)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, x: rng.permutation(x), lambda rng, x: rng.permutation(x[0]),
        lambda rng, x: rng.choice(x[0], 3), lambda rng, x: rng.choice(x[1], (2, 2), False),
        lambda rng, x: rng.choice(x.ravel(), 4, p=np.arange(12) / 66),
        lambda rng, x: rng.permutation(x.astype("f4")), lambda rng, x: rng.permutation(x + 1j),
    ],
)  # fmt: skip
def test_places(source, draw, path):
    x = np.arange(12.0).reshape(3, 4) ** 2
    y = draw(source(1), x)
    found = gradient(lambda x: np.sum(np.real(draw(source(1), x)) ** 2), x)[0]
    counts = np.array([np.sum(y.real == v) for v in x.ravel()]).reshape(3, 4)
    np.testing.assert_allclose(found, 2 * x * counts, rtol=1e-6)


def test_what_has_no_formula_is_refused():
    with pytest.raises(NotImplementedError, match="by its shape"):
        gradient(lambda k: np.random.default_rng(0).gamma(k), 2.0)
    assert gradient(lambda s: np.random.default_rng(0).gamma(2.0, s), 1.0)[0] > 0


@pytest.mark.parametrize("mode", [None, 0.3, 1.9])
def test_triangular_of_the_standard_library(mode):
    for seed in range(4):
        check_gradient(lambda a, b: random.Random(seed).triangular(a, b, mode), -1.0, 2.5)
        if mode is not None:
            check_gradient(lambda m: random.Random(seed).triangular(-1.0, 2.5, m), mode)
