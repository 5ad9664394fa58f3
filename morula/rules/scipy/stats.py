"""Rules of the compiled functions in scipy.stats; its distributions are Python about them.

Tests: tests/rules/scipy/test_stats.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import linalg, special
from scipy.stats import _continuous_distns as distributions
from scipy.stats import _ksstats, _multivariate, _qmvnt
from scipy.stats import _stats as compiled
from scipy.stats import _stats_pythran as in_translation

from morula.core.extend import ZERO, NoTangent, generators, non_differentiable, rrule
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.arrays.types import Anything, Numeric
from morula.rules.linalg.parts import hermitian, triangle
from morula.rules.scipy.special.families import by_definition, over
from morula.rules.steering import ignore_derivatives
from morula.rules.unknown import unknown
from morula.rules.versions import present


def declared(name: str, definition: Any) -> None:
    """Declare a compiled function by its definition, if this version of SciPy has it."""
    primal = getattr(compiled, name, None)
    if primal is not None:
        by_definition(primal, definition)


# -- von Mises -------------------------------------------------------------------------------------


def von_mises(kappa: Any, x: Any) -> Any:
    """½ + x/2π + Σ Iⱼ(κ)/I₀(κ) sin(jx)/(πj): the distribution function about the nearest turn."""
    j = np.arange(1, terms_for(kappa))
    turns = np.round(x / (2 * math.pi))
    within = x - 2 * math.pi * turns
    ratios = special.ive(j, kappa[..., None]) / special.ive(0, kappa)[..., None]
    waves = np.sum(ratios * np.sin(j * within[..., None]) / (math.pi * j), axis=-1)
    return 0.5 + within / (2 * math.pi) + waves + turns


def terms_for(kappa: Any) -> int:
    """How many terms count: the ratios fall off like exp(-j²/2κ)."""
    return int(40 + 9 * math.sqrt(np.max(kappa, initial=1.0)))


non_differentiable(terms_for)
declared("von_mises_cdf", von_mises)

# -- Kolmogorov and Smirnov: SciPy's code has other formulas at the knots, whose slopes are not its -


@rrule(_ksstats.kolmogn)
def _(n: Anything, x: Anything, cdf: Anything = True):
    def kolmogn_pullback(ȳ):
        slope = _ksstats.kolmognp(n, x)
        return NoTangent(), over(ȳ * (slope if cdf else -slope), x), NoTangent()

    return _ksstats.kolmogn(n, x, cdf), kolmogn_pullback


@rrule(_ksstats.kolmogni)
def _(n: Anything, q: Anything, cdf: Anything = True):
    y = _ksstats.kolmogni(n, q, cdf)

    def kolmogni_pullback(ȳ):
        slope = _ksstats.kolmognp(n, y)
        return NoTangent(), over(ȳ / (slope if cdf else -slope), q), NoTangent()

    return y, kolmogni_pullback


# -- generalised hyperbolic and inverse Gaussian ---------------------------------------------------


def log_kve(order: Any, x: Any) -> Any:
    """The logarithm of the Bessel function K."""
    return np.log(special.kve(order, x)) - x


def hyperbolic(x: Any, p: Any, a: Any, b: Any) -> Any:
    """The logarithm of the density. Scott et al., Comput. Statist. Data Anal. 53 (2009), section 1."""
    square = (a + b) * (a - b)
    root = np.sqrt(1 + x * x)
    norm = p / 2 * np.log(square) - math.log(2 * math.pi) / 2 - (p - 0.5) * np.log(a)
    of_order = log_kve(p - 0.5, a * root) - log_kve(p, np.sqrt(square))
    return norm + (p - 0.5) * np.log(root) + of_order + b * x


def inverse_gaussian(x: Any, p: Any, b: Any) -> Any:
    """The logarithm of the density."""
    norm = -math.log(2) - log_kve(p, b)
    return norm + (p - 1) * np.log(x) - b * (x + 1 / x) / 2


declared("genhyperbolic_logpdf", hyperbolic)
declared("genhyperbolic_pdf", lambda x, p, a, b: np.exp(hyperbolic(x, p, a, b)))
declared("geninvgauss_logpdf", inverse_gaussian)

# -- estimates of densities, slopes, and ranks -----------------------------------------------------


def kernels(points: Any, xi: Any, root: Any) -> Any:
    """The logarithms of the Gaussian kernels of points at places, in a row for each place."""
    d = points.shape[1]
    from_points = linalg.solve_triangular(root, points.T, lower=True)
    from_places = linalg.solve_triangular(root, xi.T, lower=True)
    squares = np.sum((from_points[:, None, :] - from_places[:, :, None]) ** 2, axis=0)
    return -squares / 2 - d / 2 * math.log(2 * math.pi) - np.sum(np.log(np.diagonal(root)))


def density_estimate(points: Any, values: Any, xi: Any, root: Any, dtype: Any, _: Any = 0) -> Any:
    """The weighted sums of the kernels."""
    return np.exp(kernels(points, xi, root)) @ values


def log_estimate(points: Any, values: Any, xi: Any, root: Any, dtype: Any, _: Any = 0) -> Any:
    """The logarithms of them, also where all kernels vanish."""
    logs = kernels(points, xi, root)[:, :, None] + np.log(values)[None, :, :]
    return special.logsumexp(logs, axis=1)


for _name, _body in (
    ("gaussian_kernel_estimate", density_estimate),
    ("gaussian_kernel_estimate_log", log_estimate),
):
    for _kind in getattr(getattr(compiled, _name, None), "__signatures__", {}):
        derivative_of(getattr(compiled, _name)[_kind])(_body)


def bivariate(bvnu: Any) -> Any:
    """The rule of the probability of X > h and Y > k, of normal variables with correlation r."""

    def rule(h: Anything, k: Anything, r: Anything):
        def bvnu_pullback(ȳ):
            return above(ȳ, h, k, r), above(ȳ, k, h, r), together(ȳ, h, k, r)

        return bvnu(h, k, r), bvnu_pullback

    return rule


for _bvnu in present(_qmvnt, "_bvnu"):
    rrule(_bvnu)(bivariate(_bvnu))


def above(ȳ: Any, h: Any, k: Any, r: Any) -> Any:
    """The cotangent of a limit; nothing depends on one at infinity."""
    if not np.isfinite(h):
        return ZERO
    given_h = special.ndtr((r * h - k) / np.sqrt((1 - r) * (1 + r))) if np.isfinite(k) else k < 0
    return -ȳ * normal_density(h) * given_h


def together(ȳ: Any, h: Any, k: Any, r: Any) -> Any:
    """The cotangent of the correlation: the density at the limits. Plackett, Biometrika 41 (1954)."""
    if not (np.isfinite(h) and np.isfinite(k)):
        return ZERO
    rest = (1 - r) * (1 + r)
    exponent = -(h * h - 2 * r * h * k + k * k) / (2 * rest)
    return ȳ * np.exp(exponent) / (2 * math.pi * np.sqrt(rest))


def normal_density(x: Any) -> Any:
    """That of the standard normal distribution."""
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@derivative_of(in_translation.siegelslopes)
def siegelslopes(y: Any, x: Any, method: Any) -> Any:
    """The median of the medians of the slopes at each point, and an intercept."""
    of_points = [np.median(slopes_at(y, x, i)) for i in range(len(x))]
    slope = np.median(np.array(of_points))
    if method == "separate":
        crossings = [np.median(crossings_at(y, x, i)) for i in range(len(x))]
        return slope, np.median(np.array(crossings))
    return slope, np.median(y - slope * x)


def slopes_at(y: Any, x: Any, i: int) -> Any:
    """Those of the lines through a point and all others."""
    others = ignore_derivatives(x) != ignore_derivatives(x)[i]
    return (y[others] - y[i]) / (x[others] - x[i])


def crossings_at(y: Any, x: Any, i: int) -> Any:
    """Where these lines cross the axis."""
    others = ignore_derivatives(x) != ignore_derivatives(x)[i]
    return (y[i] * x[others] - y[others] * x[i]) / (x[others] - x[i])


non_differentiable(
    *present(compiled, "_weightedrankedtau _kendall_dis _toint64 _rank_distance_matrix")
)
non_differentiable(*present(in_translation, "_concordant_pairs _discordant_pairs _a_ij_Aij_Dij2"))

# -- distribution functions by the integral of a compiled density ----------------------------------


def of_density(cls: Any, name: str, sign: float) -> None:
    """Declare a distribution function, or a tail, by the density; by the shapes it is not known."""
    primal = vars(cls)[name]

    @rrule(primal)
    def _(self: Any, x: Numeric, *shapes: Numeric):
        def of_density_pullback(ȳ):
            unknowns = [unknown(primal, "its shape parameters")] * len(shapes)
            return NoTangent(), over(sign * ȳ * self._pdf(x, *shapes), x), *unknowns

        return primal(self, x, *shapes), of_density_pullback


of_density(distributions.genhyperbolic_gen, "_cdf", 1.0)
of_density(distributions.genhyperbolic_gen, "_sf", -1.0)
of_density(distributions.geninvgauss_gen, "_cdf", 1.0)
of_density(distributions.studentized_range_gen, "_cdf", 1.0)


# -- covariances: any square root of the inverse serves their users, so that equal eigenvalues do ----


def inverse_root(M: np.ndarray, U: np.ndarray, lower: bool) -> np.ndarray:
    """U with U Uᵀ = M⁻¹, of a symmetric matrix of which one triangle is read."""
    return U


@rrule(inverse_root)
def _(M: np.ndarray, U: np.ndarray, lower: bool):
    """Of all changes of U that change U Uᵀ as M says, the one by the left: dU = -½ M⁻¹ dM U."""
    root = inverse_root(M, U, lower)

    def inverse_root_pullback(Ū):
        G = -0.5 * (root @ (root.T @ Ū) @ root.T)
        return triangle(hermitian(G), lower), NoTangent(), NoTangent()

    return root, inverse_root_pullback


def log_volume(M: np.ndarray, U: np.ndarray, value: Any, lower: bool) -> Any:
    """log det M, where U Uᵀ = M⁻¹."""
    return value


@rrule(log_volume)
def _(M: np.ndarray, U: np.ndarray, value: Anything, lower: bool):
    def log_volume_pullback(ȳ):
        root = inverse_root(M, U, lower)
        return triangle(ȳ * (root @ root.T), lower), NoTangent(), NoTangent(), NoTangent()

    return log_volume(M, U, value, lower), log_volume_pullback


decomposed = generators.same_code(_multivariate._PSD.__init__)


def decompose(self, M, cond=None, rcond=None, lower=True, check_finite=True, allow_singular=True):
    """`_PSD.__init__`, by whose attributes SciPy computes with covariances."""
    given = np.asarray(M)
    decomposed(self, ignore_derivatives(given), cond, rcond, lower, check_finite, allow_singular)
    if self.rank == len(given):
        self._M = given
        self.U = inverse_root(given, self.U, lower)
        self.log_pdet = log_volume(given, self.U, self.log_pdet, lower)
    else:
        decomposed(self, M, cond, rcond, lower, check_finite, allow_singular)


instead_of(_multivariate._PSD.__init__)(decompose)
