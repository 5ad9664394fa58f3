"""Draws with parameters: the derivative is that of the same draw; places tell what was taken."""

import random

import numpy as np
import pytest

import morula
from morula import gradient
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient
from tests.modes import check_modes

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


class Particle:
    def __init__(self, weight):
        self.weight = weight


@pytest.mark.parametrize("source", SOURCES)
def test_places_of_lists_of_objects(source):
    def chosen(x):
        rng = source(1)
        particles = [Particle(x), Particle(x * x), Particle(np.sin(x))]
        a, b = rng.choice(particles, size=2, p=[0.2, 0.3, 0.5])
        return a.weight * b.weight * rng.choice(particles).weight

    def permuted(x):
        particles = source(2).permutation([Particle(x), Particle(x * x), Particle(np.sin(x))])
        return sum([i * p.weight for i, p in enumerate(particles)])

    check_modes(chosen, 0.7)
    check_modes(permuted, 0.7)


def test_what_has_no_formula_is_refused():
    with pytest.raises(NotImplementedError, match="by its shape"):
        gradient(lambda k: np.random.default_rng(0).gamma(k), 2.0)
    assert gradient(lambda s: np.random.default_rng(0).gamma(2.0, s), 1.0)[0] > 0


@pytest.mark.parametrize("mode", [None, 0.3, 1.9])
def test_triangular_of_the_standard_library(mode):
    for seed in range(4):
        check_gradient(lambda a, b: random.Random(seed).triangular(a, b, mode), -1.0, 2.5)
        check_modes(lambda a, seed=seed: random.Random(seed).triangular(a - 3.0, 2 * a, mode), 1.2)
        if mode is not None:
            check_gradient(lambda m: random.Random(seed).triangular(-1.0, 2.5, m), mode)


def of_an_argument(x, source):
    z = source.normal(size=3)
    source.normal()
    return np.exp(x * z).mean() * source.random()


def of_its_own(x):
    source = np.random.default_rng(3)
    t = 0.0
    for _ in range(3):
        t = t + source.normal(x[0], abs(x[1])) * source.uniform(0, x[2]) + source.standard_normal()
    return t * source.integers(0, 10) + source.integers(0, 10)


def of_the_old_kind(x):
    source = np.random.RandomState(0)
    y = 1.0
    for dw in source.normal(size=20) * 0.1:
        y = y + x[0] * (x[1] - y) * 0.01 + x[2] * np.sqrt(max(y, 0)) * dw
    return y * x[0]


def masked_at_random(x):
    source = np.random.default_rng(1)
    kept = source.random(x.shape) < 0.5
    return (x * kept / 0.5 * (source.random(size=(3,)) < 0.5)).sum()


@pytest.mark.parametrize("f", [of_an_argument, of_its_own, of_the_old_kind, masked_at_random])
def test_programs_that_draw_are_compiled_and_draw_the_same(f):
    x = np.array([0.3, 0.6, 0.9])

    def sources():
        return (np.random.default_rng(0),) if f is of_an_argument else ()

    plain, ours, general = sources(), sources(), sources()
    g = morula.value_and_grad(f)
    values = [f(x, *plain) for _ in range(3)]
    found = [g(x, *ours) for _ in range(3)]
    with by_the_general_path():
        expected = [g(x, *general) for _ in range(3)]
    assert [v for v, _ in found] == values
    for (_, a), (_, b) in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert str(morula.code_adjoint(f, x, *sources())).startswith("# specialised")


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_draws_of_standard_gamma_are_refused_by_their_shape_only(path, source):
    def f(a):
        return source(0).standard_gamma(a)

    for differentiate in (gradient, lambda f, a: morula.jvp(f, (a,), (1.0,))):
        with pytest.raises(morula.DifferentiationError, match="no derivative by its shape"):
            differentiate(f, 1.5)
    assert gradient(lambda x: x * source(0).standard_gamma(1.5), 2.0) == (f(1.5),)
    assert morula.jvp(lambda x: source(0).gamma(1.5, x), (2.0,), (1.0,))[1] == f(1.5)


def test_a_standard_gamma_draw_that_fills_an_array():
    def f(a, x):
        y = x * np.ones(2)
        np.random.default_rng(0).standard_gamma(a, out=y)
        return y.sum() * x

    drawn = np.random.default_rng(0).standard_gamma(1.5, 2).sum()
    assert gradient(lambda x: f(1.5, x), 2.0) == (drawn,)
    assert morula.jvp(lambda x: f(1.5, x), (2.0,), (1.0,)) == (2 * drawn, drawn)
    for differentiate in (gradient, lambda f, a: morula.jvp(f, (a,), (1.0,))):
        with pytest.raises(morula.DifferentiationError, match="no derivative by its shape"):
            differentiate(lambda a: f(a, 2.0), 1.5)


DRAWN = {
    "gamma": lambda source, x: source.gamma(2.0, x),
    "gamma of a size": lambda source, x: source.gamma(2.0, x, size=3),
    "standard_gamma": lambda source, x: source.standard_gamma(2.0) * x**2,
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_second_derivatives_of_gamma_draws_in_every_mixture_of_modes(name, source, path):
    def f(x):
        return np.sum(DRAWN[name](source(3), x) ** 3)

    def forward(x):
        return morula.jvp(f, (x,), (1.0,))[1]

    def reverse(x):
        return gradient(f, x)[0]

    h = 1e-5
    slope = (reverse(1.3 + h) - reverse(1.3 - h)) / (2 * h)
    for first in (forward, reverse):
        assert gradient(first, 1.3)[0] == pytest.approx(slope, rel=1e-6)
        assert morula.jvp(first, (1.3,), (1.0,))[1] == pytest.approx(slope, rel=1e-6)


WITHOUT_FORMULA = {
    "beta": (2.0, 3.0),
    "chisquare": (3.0,),
    "noncentral_chisquare": (3.0, 1.0),
    "f": (3.0, 4.0),
    "noncentral_f": (3.0, 4.0, 1.0),
    "standard_t": (3.0,),
    "vonmises": (0.5, 2.0),
    "wald": (1.0, 2.0),
    "dirichlet": (np.array([1.0, 2.0]),),
    "multivariate_normal": (np.zeros(2), np.eye(2)),
}


@pytest.mark.parametrize("name", WITHOUT_FORMULA)
@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_draws_without_a_formula_are_constant_unless_their_parameters_are_not(name, source, path):
    parameters = WITHOUT_FORMULA[name]

    def f(x, n):
        return np.sum(getattr(source(3), name)(*parameters, size=n) * x**2)

    def g(x):
        return np.sum(getattr(source(3), name)(*parameters[:-1], parameters[-1] * x))

    def of_list(x):
        *others, last = parameters
        return np.sum(getattr(source(3), name)(*others, [y * x for y in np.ravel(last)]))

    def of_constant_list(x):
        *others, last = parameters
        return np.sum(getattr(source(3), name)(*others, np.asarray(last).tolist())) * x

    slope = 4 * f(1.0, 3)
    assert gradient(f, 2.0, 3)[0] == pytest.approx(slope)
    assert morula.jvp(lambda x: f(x, 3), (2.0,), (1.0,))[1] == pytest.approx(slope)
    assert morula.hvp(lambda x: f(x, 3), 2.0, 1.0) == pytest.approx(slope / 2)
    for differentiate in (gradient, lambda g, x: morula.jvp(g, (x,), (1.0,))):
        with pytest.raises(morula.DifferentiationError):
            differentiate(g, 1.0)
        if name != "multivariate_normal":
            with pytest.raises(morula.DifferentiationError):
                differentiate(of_list, 1.0)
    assert gradient(of_constant_list, 1.0)[0] == pytest.approx(of_constant_list(1.0))


COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize(
    ("name", "other", "size"), [("vonmises", 2.0, (3, 2)), ("multivariate_normal", COVARIANCE, 3)]
)
def test_draws_move_with_their_location(name, other, size, source, path):
    """A draw is the location and what it would be at zero."""
    location, weights = np.array([0.3, -0.2]), np.arange(6.0).reshape(3, 2)

    def draws(x):
        return getattr(source(3), name)(x, other, size)

    def f(x):
        return np.sum(weights * draws(x) ** 2)

    expected = np.sum(2 * weights * draws(location), axis=0)
    np.testing.assert_allclose(gradient(f, location)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(morula.hvp(f, location, np.ones(2)), 2 * weights.sum(0))
    assert morula.jvp(f, (location,), (np.ones(2),))[1] == pytest.approx(expected.sum())
    as_list = gradient(lambda x: f([x, -0.2]), 0.3)[0]
    assert as_list == pytest.approx(expected[0])
