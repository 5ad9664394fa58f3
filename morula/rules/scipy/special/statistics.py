"""Rules of the functions that scipy.stats calls by private names: densities, distributions, moments.

They are those of Boost and Cephes, elementwise as the public ones. Counts are constant; where the
density of a distribution is a mixture, that of its distribution function in `distributions` is taken.
Tests: tests/rules/scipy/test_stats.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sp
from scipy.special import _ufuncs as private

from morula.core.extend import non_differentiable
from morula.rules.arrays.elementwise import elementwise
from morula.rules.scipy.special.distributions import (
    mixture,
    noncentral_chi2,
    noncentral_f,
    noncentral_t,
    terms_for,
)
from morula.rules.scipy.special.families import (
    CONSTANT,
    UNKNOWN,
    by_definition,
    inverse_of,
    partials,
)
from morula.rules.scipy.special.incomplete import beta_density, gamma_density
from morula.rules.scipy.special.integrals import kolmogorov_density, smirnov_density
from morula.rules.versions import present


def declared(declare: Any, name: str, *how: Any) -> None:
    """Declare a private function, if this version of SciPy has it."""
    primal = getattr(private, name, None)
    if primal is not None:
        declare(primal, *how)


def by_slope(primal: Any, slope: Any) -> None:
    """Declare a function of one argument by its derivative."""
    elementwise(primal)(slope)


# -- beta, Cauchy, cosine, inverse Gaussian --------------------------------------------------------


def cauchy_quantile(p, loc, scale):
    """The quantile; that of the tail is its mirror image."""
    return loc - scale / np.tan(math.pi * p)


def inverse_gaussian(x, mu, scale):
    """Φ(√(λ/x) (x/μ - 1)) + e^(2λ/μ) Φ(-√(λ/x) (x/μ + 1))."""
    root = np.sqrt(scale / x)
    far = np.exp(2 * scale / mu + sp.log_ndtr(-root * (x / mu + 1)))
    return sp.ndtr(root * (x / mu - 1)) + far


declared(by_definition, "_beta_pdf", lambda x, a, b: beta_density(a, b, x, 1 - x))
declared(inverse_of, "_beta_ppf", lambda a, b, x: sp.betainc(a, b, x), 2, 0)
declared(by_definition, "_cauchy_ppf", cauchy_quantile)
declared(by_definition, "_cauchy_isf", lambda p, loc, scale: cauchy_quantile(-p, loc, scale))
declared(
    by_slope,
    "_cosine_cdf",
    lambda y, x: np.where(np.abs(x) < math.pi, (1 + np.cos(x)) / (2 * math.pi), 0.0),
)
declared(by_slope, "_cosine_invcdf", lambda y, p: 2 * math.pi / (1 + np.cos(y)))
declared(inverse_of, "_invgauss_ppf", inverse_gaussian, 0, 0)
declared(inverse_of, "_invgauss_isf", lambda x, mu, s: 1 - inverse_gaussian(x, mu, s), 0, 0)

# -- Landau: nobody has a formula for the derivative of its density --------------------------------


def landau_density(sign: float) -> Any:
    """The derivative of its distribution function, or of the tail, by x."""
    return lambda y, x, loc, scale: sign * private._landau_pdf(x, loc, scale)


def landau_slope(sign: float) -> Any:
    """The derivative of its quantiles by the probability."""
    return lambda y, p, loc, scale: sign / private._landau_pdf(y, loc, scale)


declared(partials, "_landau_pdf", UNKNOWN, UNKNOWN, UNKNOWN)
declared(partials, "_landau_cdf", landau_density(1.0), landau_density(-1.0), UNKNOWN)
declared(partials, "_landau_sf", landau_density(-1.0), landau_density(1.0), UNKNOWN)
declared(partials, "_landau_ppf", landau_slope(1.0), lambda y, p, loc, scale: 1.0, UNKNOWN)
declared(partials, "_landau_isf", landau_slope(-1.0), lambda y, p, loc, scale: 1.0, UNKNOWN)

# -- noncentral ------------------------------------------------------------------------------------


def noncentral_chi2_density(x, df, nc):
    """Σ wⱼ p(ν/2 + j, x/2) / 2."""
    w, j = mixture(nc / 2, terms_for(nc))
    return np.sum(w * gamma_density(df[..., None] / 2 + j, x[..., None] / 2), axis=-1) / 2


def noncentral_f_density(x, dfn, dfd, nc):
    """Σ wⱼ b(ν₁/2 + j, ν₂/2, z) dz/dx, z = ν₁x / (ν₂ + ν₁x)."""
    w, j = mixture(nc / 2, terms_for(nc))
    total = dfd + dfn * x
    z, rest = (dfn * x / total)[..., None], (dfd / total)[..., None]
    densities = beta_density(dfn[..., None] / 2 + j, dfd[..., None] / 2, z, rest)
    return np.sum(w * densities, axis=-1) * dfn * dfd / total**2


def noncentral_t_density(x, df, nc):
    """The derivative of `noncentral_t`, term by term, without the powers of y that cancel."""
    sign = np.where(x < 0, -1.0, 1.0)
    δ, u = sign * nc, sign * x
    w, j = mixture(δ * δ / 2, terms_for(nc * nc))
    total = u * u + df
    y, half = (u * u / total)[..., None], df[..., None] / 2
    kernel = y**j * np.exp((half - 1) * np.log(df / total)[..., None])
    even = w * kernel / sp.beta(j + 0.5, half)
    odd = w * kernel * np.exp(sp.gammaln(j + 1.0) - sp.gammaln(j + 1.5)) / sp.beta(j + 1.0, half)
    of_odd = δ * u / np.sqrt(2 * total)
    return (np.sum(even, axis=-1) + of_odd * np.sum(odd, axis=-1)) * df / total**1.5


declared(by_definition, "_ncx2_pdf", noncentral_chi2_density)
declared(by_definition, "_ncx2_sf", lambda x, df, nc: 1 - noncentral_chi2(x, df, nc))
declared(inverse_of, "_ncx2_isf", lambda x, df, nc: 1 - noncentral_chi2(x, df, nc), 0, 0)
declared(by_definition, "_ncf_pdf", noncentral_f_density)
declared(by_definition, "_ncf_sf", lambda x, m, n, nc: 1 - noncentral_f(m, n, nc, x))
declared(inverse_of, "_ncf_isf", lambda m, n, nc, x: 1 - noncentral_f(m, n, nc, x), 3, 0)
declared(by_definition, "_nct_pdf", noncentral_t_density)
declared(by_definition, "_nct_sf", lambda x, df, nc: 1 - noncentral_t(df, nc, x))
declared(inverse_of, "_nct_isf", lambda df, nc, x: 1 - noncentral_t(df, nc, x), 2, 0)


def spread_of(m1, m2):
    """The variance, from the first two moments."""
    return m2 - m1 * m1


def skewness(m1, m2, m3):
    """The third standardised moment."""
    return (m3 - 3 * m1 * m2 + 2 * m1**3) / spread_of(m1, m2) ** 1.5


def excess(m1, m2, m3, m4):
    """The fourth standardised moment, less that of a normal distribution."""
    return (m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4) / spread_of(m1, m2) ** 2 - 3


def moments_of_t(df, nc):
    """E Xᵏ = (ν/2)^(k/2) Γ((ν-k)/2) / Γ(ν/2) E (Z + δ)ᵏ."""

    def scale(k):
        return (df / 2) ** (k / 2) * np.exp(sp.gammaln((df - k) / 2) - sp.gammaln(df / 2))

    return (
        scale(1) * nc,
        df / (df - 2) * (1 + nc**2),
        scale(3) * (3 * nc + nc**3),
        df**2 / ((df - 2) * (df - 4)) * (3 + 6 * nc**2 + nc**4),
    )


def moments_of_f(dfn, dfd, nc):
    """Those of noncentral χ², from its cumulants 2ᵏ⁻¹ (k-1)! (ν + kλ), times those of 1/χ²."""
    k1, k2, k3, k4 = dfn + nc, 2 * (dfn + 2 * nc), 8 * (dfn + 3 * nc), 48 * (dfn + 4 * nc)
    ratio = dfd / dfn
    a = ratio / (dfd - 2)
    b = a * ratio / (dfd - 4)
    c = b * ratio / (dfd - 6)
    return (
        a * k1,
        b * (k2 + k1**2),
        c * (k3 + 3 * k1 * k2 + k1**3),
        c * ratio / (dfd - 8) * (k4 + 4 * k1 * k3 + 3 * k2**2 + 6 * k1**2 * k2 + k1**4),
    )


MOMENTS = {
    "mean": lambda m1, *_: m1,
    "variance": lambda m1, m2, *_: spread_of(m1, m2),
    "skewness": lambda m1, m2, m3, _: skewness(m1, m2, m3),
    "kurtosis_excess": excess,
}


def declare_moments(kind: str, moments: Any) -> None:
    """Declare the four of them for one distribution, from its moments about zero."""
    for name, of_moments in MOMENTS.items():
        declared(by_definition, f"_{kind}_{name}", lambda *args, of=of_moments: of(*moments(*args)))


declare_moments("nct", moments_of_t)
declare_moments("ncf", moments_of_f)

# -- skew normal, Kolmogorov, Smirnov --------------------------------------------------------------


def skew_normal(x, loc, scale, shape):
    """Φ(z) - 2 T(z, a)."""
    z = (x - loc) / scale
    return sp.ndtr(z) - 2 * sp.owens_t(z, shape)


declared(by_definition, "_skewnorm_cdf", skew_normal)
declared(inverse_of, "_skewnorm_ppf", skew_normal, 0, 0)
declared(inverse_of, "_skewnorm_isf", lambda x, loc, s, a: 1 - skew_normal(x, loc, s, a), 0, 0)
declared(by_slope, "_kolmogc", lambda y, x: kolmogorov_density(x))
declared(by_slope, "_kolmogci", lambda y, p: 1 / kolmogorov_density(y))
declared(by_definition, "_kolmogp", lambda x: -kolmogorov_density(x))
declared(partials, "_smirnovc", CONSTANT, lambda y, n, d: smirnov_density(n, d))
declared(partials, "_smirnovci", CONSTANT, lambda y, n, p: 1 / smirnov_density(n, y))
declared(by_definition, "_smirnovp", lambda n, d: -smirnov_density(n, d))
declared(by_slope, "_log1mexp", lambda y, x: -1 / np.expm1(-x))

# -- counts ----------------------------------------------------------------------------------------


def binomial_slope(k, n, p):
    """∂F/∂p, which is -n times the density of one trial less."""
    of_one_less = sp.xlogy(k, p) + sp.xlog1py(n - 1 - k, -p)
    ways = sp.gammaln(n) - sp.gammaln(k + 1) - sp.gammaln(n - k)
    return np.where((k >= 0) & (k < n), -n * np.exp(ways + of_one_less), 0.0)


def negative_binomial_density(k, n, p):
    """Γ(k+n) / (k! Γ(n)) pⁿ (1-p)ᵏ."""
    k = np.floor(k)
    ways = sp.gammaln(k + n) - sp.gammaln(k + 1) - sp.gammaln(n)
    return np.exp(ways + sp.xlogy(n, p) + sp.xlog1py(k, -p))


def negative_binomial(k, n, p):
    """I(n, k+1, p)."""
    return sp.betainc(n, np.floor(k) + 1, p)


declared(
    partials,
    "_binom_pmf",
    CONSTANT,
    CONSTANT,
    lambda y, k, n, p: y * (np.floor(k) / p - (n - np.floor(k)) / (1 - p)),
)
declared(
    partials,
    "_binom_cdf",
    CONSTANT,
    CONSTANT,
    lambda y, k, n, p: binomial_slope(np.floor(k), n, p),
)
declared(
    partials,
    "_binom_sf",
    CONSTANT,
    CONSTANT,
    lambda y, k, n, p: -binomial_slope(np.floor(k), n, p),
)
declared(by_definition, "_nbinom_pmf", negative_binomial_density)
declared(by_definition, "_nbinom_cdf", negative_binomial)
declared(by_definition, "_nbinom_sf", lambda k, n, p: 1 - negative_binomial(k, n, p))
declared(by_definition, "_nbinom_mean", lambda n, p: n * (1 - p) / p)
declared(by_definition, "_nbinom_variance", lambda n, p: n * (1 - p) / p**2)
declared(by_definition, "_nbinom_skewness", lambda n, p: (2 - p) / np.sqrt(n * (1 - p)))
declared(by_definition, "_nbinom_kurtosis_excess", lambda n, p: (p * (p - 6) + 6) / (n * (1 - p)))
# Counts, and what depends on nothing but counts.
COUNTS = """
    _binom_ppf _binom_isf _nbinom_ppf _nbinom_isf _hypergeom_pmf _hypergeom_cdf _hypergeom_sf
    _hypergeom_mean _hypergeom_variance _hypergeom_skewness _hypergeom_kurtosis_excess
"""
non_differentiable(*present(private, COUNTS))


def harmonic(n, a):
    """Σ k⁻ᵃ, k ≤ n."""
    k = np.arange(1, int(np.max(n, initial=0)) + 1)
    return np.sum(np.where(k <= n[..., None], k ** -a[..., None], 0.0), axis=-1)


declared(by_definition, "_gen_harmonic", harmonic)
declared(
    by_definition,
    "_normalized_gen_harmonic",
    lambda j, k, n, a: (harmonic(k, a) - harmonic(j - 1, a)) / harmonic(n, a),
)
