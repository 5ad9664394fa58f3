"""scipy.stats: distributions by their variable, location, scale and shapes; estimates and tests."""

import numpy as np
import pytest
from scipy import special, stats
from scipy.special import _ufuncs as private

from morula import NoRuleError, UnsupportedError, grad, gradient, hessian, jvp, value_and_grad
from morula.testing import check_gradient
from tests.array_modes import check_array_modes, often

SHAPES = {
    "beta": (2.3, 0.6), "betaprime": (5.0, 6.0), "cauchy": (), "cosine": (), "invgauss": (0.7,),
    "jf_skew_t": (8.0, 4.0), "kstwobign": (), "ncf": (27.0, 27.0, 0.4), "nct": (14.0, 0.24),
    "ncx2": (21.0, 1.06), "rdist": (1.6,), "semicircular": (),
    "skewnorm": (4.0,), "vonmises": (3.99,), "wald": (), "norm": (), "gamma": (1.99,), "t": (2.74,),
    "weibull_min": (1.8,), "lognorm": (0.95,), "genextreme": (-0.1,), "triang": (0.16,),
}  # fmt: skip
SLOPES_OF = ("pdf", "cdf", "sf", "ppf", "isf")


@pytest.mark.parametrize(
    "name", often(SHAPES, "beta", "nct", "skewnorm", "vonmises", "norm", "gamma")
)
def test_distributions(name):
    d, shapes = getattr(stats, name), SHAPES[name]
    q = d.ppf(0.37, *shapes, loc=0.3, scale=1.7)

    def f(p):
        *s, loc, scale, x, level = p
        total = d.logpdf(x, *s, loc=loc, scale=scale) if name != "ncx2" else 0.0
        for k, method in enumerate(SLOPES_OF):
            at = level if method in ("ppf", "isf") else x
            total += (k + 1.0) * getattr(d, method)(at, *s, loc=loc, scale=scale)
        return total

    p = np.array([*shapes, 0.3, 1.7, q, 0.4])
    check_array_modes(f, p, second=False)


def test_large_and_small_arguments_of_the_noncentral_ones():
    for t in (-1.3, 0.0, 0.4, 6.0):
        check_array_modes(lambda p: stats.nct.pdf(p[0], p[1], p[2]), np.array([t, 4.5, 0.7]))
    for x in (0.01, 3.0, 60.0):
        check_array_modes(lambda p: stats.ncx2.pdf(p[0], p[1], p[2]), np.array([x, 4.5, 2.7]))
        check_array_modes(lambda p: stats.ncf.pdf(*p), np.array([x / 4, 4.5, 5.2, 2.7]))


def test_moments():
    for name, shapes in (("nct", (14.0, 0.24)), ("ncf", (27.0, 27.0, 0.4)), ("nbinom", (4.5, 0.4))):
        d = getattr(stats, name)
        check_array_modes(
            lambda p, d=d: np.sum(np.array(d.stats(*p, moments="mvsk"))), np.array(shapes)
        )


COUNTS = {
    "bernoulli": (0, (0.3,)), "betabinom": (2, (5.0, 2.0, 3.0)), "binom": (3, (8.0, 0.4)),
    "boltzmann": (2, (1.4, 19.0)), "dlaplace": (2, (0.8,)), "geom": (3, (0.4,)),
    "logser": (3, (0.6,)), "nbinom": (3, (4.5, 0.4)), "poisson": (3, (2.4,)),
    "skellam": (2, (3.0, 5.0)), "yulesimon": (3, (4.5,)), "zipf": (2, (6.5,)),
    "zipfian": (2, (1.25, 10.0)),
}  # fmt: skip
WHOLE = {"betabinom": 1, "binom": 1}  # how many of the shapes are counts
AFTER = {"boltzmann": 1, "zipfian": 1}


@pytest.mark.parametrize("name", often(COUNTS, "binom", "nbinom", "poisson", "skellam"))
def test_distributions_of_counts(name):
    d, (k, shapes) = getattr(stats, name), COUNTS[name]
    before, after = WHOLE.get(name, 0), len(shapes) - AFTER.get(name, 0)

    def f(p):
        s = (*shapes[:before], *p, *shapes[after:])
        return d.logpmf(k, *s) + 2.0 * d.pmf(k, *s) + 3.0 * d.cdf(k, *s) + d.sf(k, *s) + d.mean(*s)

    check_array_modes(f, np.array(shapes[before:after]), second=False)


def test_quantiles_of_counts_are_constant():
    assert gradient(lambda p: stats.binom.ppf(0.3, 8, p) + stats.nbinom.isf(0.3, 2, p), 0.41) == (
        0.0,
    )
    assert gradient(lambda x: stats.hypergeom.pmf(3, 20, 7, 8) * x, 2.0) == (
        stats.hypergeom.pmf(3, 20, 7, 8),
    )


@pytest.mark.parametrize("kappa", [0.3, 4.0, 600.0])
def test_von_mises(kappa):
    x = 0.4 / np.sqrt(kappa)
    check_array_modes(lambda p: stats.vonmises.cdf(p[0], p[1]), np.array([x, kappa]), second=True)
    check_array_modes(lambda p: stats.vonmises.cdf(p[0] + 2 * np.pi, p[1]), np.array([x, kappa]))


@pytest.mark.parametrize("x", [0.06, 0.23, 0.3, 0.6])
def test_two_sided_kolmogorov(x):
    """At 3/10, the code of SciPy's for ten numbers has a formula with the slope zero."""
    density = stats.kstwo.pdf(x, 10)
    assert grad(lambda x: stats.kstwo.cdf(x, 10))(x) == pytest.approx(density)
    assert grad(lambda x: stats.kstwo.sf(x, 10))(x) == pytest.approx(-density)
    level = stats.kstwo.cdf(x, 10)
    assert grad(lambda p: stats.kstwo.ppf(p, 10))(level) == pytest.approx(1 / density)


def test_by_some_shapes_nobody_knows():
    for d, shapes in (
        (stats.genhyperbolic, (0.5, 1.5, -0.5)),
        (stats.geninvgauss, (2.3, 1.5)),
        (stats.studentized_range, (3.0, 10.0)),
    ):
        q = d.ppf(0.37, *shapes)
        with pytest.raises(NoRuleError, match="shape parameters"):
            gradient(lambda p, d=d, s=shapes, q=q: d.cdf(q, p, *s[1:]), shapes[0])
        slope = grad(lambda x, d=d, s=shapes: d._cdf(x, *s))(q)
        assert slope == pytest.approx(d.pdf(q, *shapes), rel=1e-6)
    with pytest.raises(NoRuleError, match="its first argument"):
        gradient(lambda x: stats.landau.pdf(x), 0.4)
    assert grad(stats.landau.cdf)(0.4) == pytest.approx(stats.landau.pdf(0.4))
    with pytest.raises(UnsupportedError, match="LowLevelCallable"):
        gradient(lambda x: stats.studentized_range.pdf(x, 3.0, 10.0), 2.5)
    with pytest.raises(NoRuleError, match="order"):
        gradient(lambda df: stats.ncx2.logpdf(13.0, df, 1.056), 21.0)


def test_what_is_not_known_stops_nothing_else():
    """The order of a Bessel function is broadcast along with what is known."""
    h = 1e-5
    for f, x in (
        (lambda x: stats.ncx2.logpdf(x, 21.0, 1.056), 13.0),
        (lambda x: stats.gausshyper.pdf(x, 13.8, 3.1, 2.5, 5.2), 0.4),
        (lambda x: stats.genhyperbolic.cdf(x, 0.5, 1.5, -0.5), 0.3),
    ):
        assert grad(f)(x) == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-6)


PRIVATE = {
    "_log1mexp": (-0.7,), "_kolmogp": (0.7,), "_kolmogc": (0.7,), "_kolmogci": (0.7,),
    "_cosine_cdf": (0.7,), "_cosine_invcdf": (0.7,), "_beta_ppf": (0.3, 2.0, 3.0),
    "_skewnorm_isf": (0.3, 0.1, 1.2, 2.0), "_invgauss_isf": (0.3, 1.1, 0.8),
}  # fmt: skip


@pytest.mark.parametrize("name", PRIVATE)
def test_private_functions(name):
    fn = getattr(private, name)
    check_array_modes(lambda p: fn(*p), np.array(PRIVATE[name]))


RNG = np.random.default_rng(4)
A, B = RNG.normal(1.0, 1.0, 12), RNG.normal(1.3, 1.2, 12)
S = np.array([[2.0, 0.3], [0.3, 1.5]])


def symmetric(s):
    return (s + s.T) / 2


ESTIMATES = {
    "density": lambda a, b: stats.gaussian_kde(a)(b[:2])[0],
    "its logarithm": lambda a, b: stats.gaussian_kde(b, 0.4).logpdf(a[:2])[1],
    "weighted density": lambda a, b: stats.gaussian_kde(a, weights=b * b).evaluate([0.4])[0],
    "of two variables": lambda a, b: stats.gaussian_kde(np.stack((a, b)))(np.array([[0.4], [0.7]]))[0],
    "integral of one": lambda a, b: stats.gaussian_kde(a).integrate_box_1d(-1.0, b[0]),
    "repeated medians": lambda a, b: np.sum(np.array(stats.siegelslopes(a, b))),
    "separate medians": lambda a, b: stats.siegelslopes(a, b, method="separate").intercept,
    "ranks": lambda a, b: stats.weightedtau(a, b)[0] * a[0] + stats.kendalltau(a, b)[0] * b[1],
    "regression": lambda a, b: stats.linregress(a, b).slope + stats.linregress(a, b).pvalue,
    "t test": lambda a, b: stats.ttest_ind(a, b, equal_var=False).pvalue,
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates(name):
    check_array_modes(ESTIMATES[name], A, B, second=False)


@pytest.mark.parametrize("x", [(0.5, 0.8), (-0.3, 0.1), (-1.0, -1.2)])
def test_probabilities_of_two_normal_variables(x):
    def f(x, m, s):
        return stats.multivariate_normal.cdf(x, m, symmetric(s))

    check_array_modes(f, np.array(x), np.array([0.1, -0.4]), S, second=False)

    def between(x, s):
        return stats.multivariate_normal.cdf(x + 1.0, cov=symmetric(s), lower_limit=x)

    check_array_modes(between, np.array(x), S, second=False)


@pytest.mark.parametrize(
    "f",
    [
        lambda s: stats.multivariate_normal.logpdf([0.5, 0.8], [0.1, -0.4], symmetric(s)),
        lambda s: stats.multivariate_t.logpdf([0.5, 0.8], [0.1, -0.4], symmetric(s), 4.5),
        lambda s: stats.wishart.logpdf(S, 4.5, symmetric(s)),
        lambda s: stats.invwishart.logpdf(S, 4.5, symmetric(s)),
        lambda s: stats.matrix_normal.logpdf(np.eye(2), None, symmetric(s), S),
    ],
)
def test_distributions_of_vectors_and_matrices(f):
    check_array_modes(f, S + np.eye(2), second=False)


def test_new_distributions():
    def f(p):
        m, s = p
        x = stats.Normal(mu=m, sigma=s)
        y = stats.Normal() * s + m
        return x.pdf(0.5) + x.icdf(0.3) + y.cdf(0.7) + stats.truncate(x, lb=0.0, ub=2.0).pdf(0.4)

    check_array_modes(f, np.array([0.3, 1.2]), second=False)


def test_methods_among_the_attributes_of_an_object():
    """Distributions hold methods of their own, and so themselves."""

    class Decay:
        def __init__(self, rate):
            self.rate, self.density = rate, self.pdf

        def pdf(self, x):
            return self.rate * np.exp(-self.rate * x)

    d = Decay(2.0)
    value, (slope,) = value_and_grad(lambda d: d.density(0.3), argnums=(0,))(d)
    assert value == d.pdf(0.3)
    assert slope.rate == pytest.approx((1 - 0.6) * np.exp(-0.6))
    assert jvp(lambda x: stats.norminvgauss.sf(x, 1.25, 0.5), (0.3,), (1.0,))[1] == pytest.approx(
        -stats.norminvgauss.pdf(0.3, 1.25, 0.5)
    )


def test_the_branch_not_taken_leaks_no_nan():
    """scipy.stats.skellam computes both sides; one of them is NaN."""
    assert np.isfinite(grad(lambda m: stats.skellam.cdf(2, m, 5.0))(3.0))
    x = np.array([-1.0, 2.0])
    f = lambda x: np.sum(np.where(x > 0, special.chndtr(x, 3.0, x), 0.0))
    slope = grad(f)(x)
    assert slope[0] == 0.0
    assert np.isfinite(slope[1])


def test_inverse_functions_whose_result_is_written_to():
    """The derivative at the result is no cotangent of it, though its memory is."""

    def f(x):
        level = np.zeros(2)
        level[:] = x
        y = special.chndtrix(level, 3.0, 1.5)
        y[0] = level[1]
        level[0] = 0.0
        return np.sum(y * level)

    check_array_modes(f, np.array([0.3, 0.4]))


def test_noncentrality_zero():
    for f in (
        lambda nc: special.chndtr(3.0, 2.0, nc),
        lambda nc: special.ncfdtr(3.0, 4.0, nc, 1.2),
        lambda nc: special.nctdtr(4.0, nc, 0.3),
    ):
        h = 1e-5
        if f(0.0) == f(0.0) and f(h) == f(h):
            assert grad(f)(0.0) == pytest.approx((f(h) - f(0.0)) / h, rel=1e-3)


COVARIANCES = {
    "a variance": lambda x, μ, s, C: stats.multivariate_normal.logpdf(x, μ, s),
    "independent": lambda x, μ, s, C: stats.multivariate_normal(μ, s * np.eye(3)).logpdf(x),
    "about the unit": lambda x, μ, s, C: stats.multivariate_normal.pdf(
        x, μ, np.eye(3) + s * C - s * C
    ),
    "any": lambda x, μ, s, C: stats.multivariate_normal.logpdf(x, μ, C @ C.T + s * np.eye(3)),
    "singular": lambda x, μ, s, C: stats.multivariate_normal.logpdf(
        np.array([x[0], x[1], 0.0]), None, np.diag([s, s * s, 0.0]), allow_singular=True
    ),
    "of Student": lambda x, μ, s, C: stats.multivariate_t.logpdf(x, μ, s * np.eye(3), df=5),
    "of matrices": lambda x, μ, s, C: stats.matrix_normal.logpdf(
        C, None, s * np.eye(3), np.eye(3) / s
    ),
    "entropy": lambda x, μ, s, C: stats.multivariate_normal.entropy(μ, s * np.eye(3) + C @ C.T),
}


@pytest.mark.parametrize("name", COVARIANCES)
def test_covariances_with_equal_eigenvalues(name):
    """Their densities do not depend on which eigenvectors are taken."""
    rng = np.random.default_rng(3)
    x, μ, C = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(3, 3))
    f, args = COVARIANCES[name], (x, μ, 1.3, C)
    check_gradient(f, *args)
    v = tuple([rng.normal(size=np.shape(a))[()] for a in args])
    along = sum([np.sum(g * d) for g, d in zip(gradient(f, *args), v, strict=True)])
    np.testing.assert_allclose(jvp(f, args, v)[1], along)

    def of_variance(s):
        return f(x, μ, s, C)

    slopes = [gradient(of_variance, 1.3 + h)[0] for h in (-1e-5, 1e-5)]
    np.testing.assert_allclose(
        hessian(of_variance, 1.3), np.diff(slopes)[0] / 2e-5, rtol=1e-6, atol=1e-8
    )


def test_each_triangle_of_a_covariance_that_is_read():
    rng = np.random.default_rng(3)
    C = np.eye(3) + np.triu(rng.normal(size=(3, 3)), 1)  # the lower triangle is read
    check_gradient(lambda C: stats.multivariate_normal.logpdf(np.ones(3), None, C), C)
