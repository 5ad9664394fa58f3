"""Rules of distribution functions and their inverses: binomial, Poisson, χ², F, t, gamma, normal, ….

Each is written by the incomplete gamma and beta functions, which have rules in all arguments; the
inverses follow by the implicit function theorem. Counts are constant where SciPy takes them to be
whole numbers. The noncentral ones are Poisson mixtures of the central ones.
Johnson, Kotz and Balakrishnan, Continuous univariate distributions, volume 2, chapters 29 to 31.
Tests: tests/rules/scipy/test_special_distributions.py
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special as sp

from morula.core.extend import non_differentiable
from morula.rules.scipy.special.error_functions import voigt
from morula.rules.scipy.special.families import (
    CONSTANT,
    by_definition,
    inverse_of,
    partials,
)
from morula.rules.scipy.special.incomplete import beta_density, betainc_by_a, gamma_density

# -- counts ----------------------------------------------------------------------------------------

partials(
    sp.bdtr,
    CONSTANT,
    CONSTANT,
    lambda y, k, n, p: (
        -inside(beta_density(np.floor(k) + 1, np.trunc(n) - np.floor(k), p, 1 - p), k, n)
    ),
)
partials(
    sp.bdtrc,
    CONSTANT,
    CONSTANT,
    lambda y, k, n, p: inside(
        beta_density(np.floor(k) + 1, np.trunc(n) - np.floor(k), p, 1 - p), k, n
    ),
)
partials(
    sp.bdtri,
    CONSTANT,
    CONSTANT,
    lambda y, k, n, p: -1 / beta_density(np.floor(k) + 1, np.trunc(n) - np.floor(k), y, 1 - y),
)
partials(sp.nbdtr, CONSTANT, CONSTANT, lambda y, k, n, p: successes(k, n, p))
partials(sp.nbdtrc, CONSTANT, CONSTANT, lambda y, k, n, p: -successes(k, n, p))
partials(sp.nbdtri, CONSTANT, CONSTANT, lambda y, k, n, p: 1 / successes(k, n, y))
partials(sp.pdtr, CONSTANT, lambda y, k, m: -gamma_density(np.floor(k) + 1, m))
partials(sp.pdtrc, CONSTANT, lambda y, k, m: gamma_density(np.floor(k) + 1, m))
partials(sp.pdtri, CONSTANT, lambda y, k, p: -1 / gamma_density(np.floor(k) + 1, y))


def successes(k, n, p):
    """∂nbdtr(k, n, p)/∂p; SciPy truncates both counts."""
    return beta_density(np.trunc(n), np.trunc(k) + 1, p, 1 - p)


def inside(density, k, n):
    """A density for counts from 0 to n - 1; beyond them nothing changes."""
    return np.where((np.floor(k) >= 0) & (np.floor(k) < np.trunc(n)), density, 0.0)


def binomial(s, n, p):
    """The distribution function at any real s."""
    return sp.betainc(n - s, s + 1, 1 - p)


def negative_binomial(s, n, p):
    """Likewise."""
    return sp.betainc(n, s + 1, p)


def poisson(k, m):
    """Likewise."""
    return sp.gammaincc(k + 1, m)


inverse_of(sp.bdtrik, binomial, 0, 0)
inverse_of(sp.bdtrin, binomial, 1, 1)
inverse_of(sp.nbdtrik, negative_binomial, 0, 0)
inverse_of(sp.nbdtrin, negative_binomial, 1, 1)
inverse_of(sp.pdtrik, poisson, 0, 0)
inverse_of(sp.btdtria, sp.betainc, 0, 0)
inverse_of(sp.btdtrib, sp.betainc, 1, 1)

# -- χ², gamma, F ----------------------------------------------------------------------------------


def chi2(v, x):
    """The distribution function."""
    return sp.gammainc(v / 2, x / 2)


def chi2_tail(v, x):
    """1 - chi2."""
    return sp.gammaincc(v / 2, x / 2)


def gamma(a, b, x):
    """Of rate a and shape b."""
    return sp.gammainc(b, a * x)


def gamma_tail(a, b, x):
    """1 - gamma."""
    return sp.gammaincc(b, a * x)


def f(dfn, dfd, x):
    """The distribution function of Fisher and Snedecor."""
    return sp.betainc(dfn / 2, dfd / 2, dfn * x / (dfd + dfn * x))


def f_tail(dfn, dfd, x):
    """1 - f."""
    return sp.betainc(dfd / 2, dfn / 2, dfd / (dfd + dfn * x))


by_definition(sp.chdtr, chi2)
by_definition(sp.chdtrc, chi2_tail)
inverse_of(sp.chdtri, chi2_tail, 1, 1)
inverse_of(sp.chdtriv, chi2, 0, 0)
by_definition(sp.gdtr, gamma)
by_definition(sp.gdtrc, gamma_tail)
inverse_of(sp.gdtria, gamma, 0, 0)
inverse_of(sp.gdtrib, gamma, 1, 1)
inverse_of(sp.gdtrix, gamma, 2, 2)
by_definition(sp.fdtr, f)
by_definition(sp.fdtrc, f_tail)
inverse_of(sp.fdtri, f, 2, 2)
inverse_of(sp.fdtridfd, f, 1, 1)

# -- Student's t -----------------------------------------------------------------------------------


def t_density(df, t):
    """Γ((ν+1)/2) / (√(νπ) Γ(ν/2)) (1 + t²/ν)^(-(ν+1)/2)."""
    half = df / 2
    return np.exp(-sp.betaln(half, 0.5) - (half + 0.5) * np.log1p(t * t / df)) / np.sqrt(df)


def t_by_df(df, t):
    """∂F/∂ν: of 1 - I(ν/2, 1/2, ν/(ν+t²)) / 2 for t > 0, and of its mirror image."""
    square = t * t
    x, rest = df / (df + square), square / (df + square)
    slope = betainc_by_a(df / 2, np.full(np.shape(df), 0.5), x, rest) / 2
    density = np.where(square > 0, beta_density(df / 2, 0.5, x, np.where(rest > 0, rest, 1.0)), 0.0)
    total = slope + density * square / (df + square) ** 2
    return np.where(t == 0, 0.0, np.where(t > 0, -total / 2, total / 2))


def student(df, t):
    """Student's distribution function."""
    return sp.stdtr(df, t)


partials(sp.stdtr, lambda y, df, t: t_by_df(df, t), lambda y, df, t: t_density(df, t))
inverse_of(sp.stdtrit, student, 1, 1)
inverse_of(sp.stdtridf, student, 0, 0)

# -- normal ----------------------------------------------------------------------------------------


def mean_for(p, sigma, x):
    """The mean of a normal distribution with P(X < x) = p."""
    return x - sigma * sp.ndtri(p)


def deviation_for(mean, p, x):
    """Its standard deviation."""
    return (x - mean) / sp.ndtri(p)


by_definition(sp.nrdtrimn, mean_for)
by_definition(sp.nrdtrisd, deviation_for)
by_definition(sp.voigt_profile, voigt)

# -- Tukey's λ -------------------------------------------------------------------------------------


def tukey(p, shape):
    """The quantile (pˡ - (1-p)ˡ) / l."""
    return sp.boxcox(p, shape) - sp.boxcox(1 - p, shape)


def between_bounds(x, shape):
    """The distribution function inside its support, which is bounded for l > 0."""
    return sp.tklmbda(x, shape)


def tukey_distribution(x, shape):
    """It is 0 and 1 beyond the bounds ±1/l."""
    bounded = shape > 0
    inside = ~bounded | (np.abs(x) * np.where(bounded, shape, 1.0) < 1)
    return np.where(inside, between_bounds(np.where(inside, x, 0.0), shape), x > 0)


inverse_of(between_bounds, tukey, 0, 0)
by_definition(sp.tklmbda, tukey_distribution)

# -- noncentral ------------------------------------------------------------------------------------


def mixture(half, n):
    """The weights of a Poisson distribution of this mean, along a new last axis."""
    j = np.arange(n)
    mean = half[..., None]
    none = mean == 0
    some = np.where(none, 1.0, mean)
    weights = np.exp(sp.xlogy(j, some) - some - sp.gammaln(j + 1.0))
    return np.where(none, np.where(j == 0, 1 - mean, np.where(j == 1, mean, 0.0)), weights), j


def terms_for(nc):
    """How many of them count."""
    most = float(np.max(nc, initial=0.0, where=np.isfinite(nc))) / 2
    return int(most + 12 * math.sqrt(most + 10) + 20)


non_differentiable(terms_for)


def noncentral_chi2(x, df, nc):
    """Σ wⱼ P(ν/2 + j, x/2)."""
    w, j = mixture(nc / 2, terms_for(nc))
    return np.sum(w * sp.gammainc(df[..., None] / 2 + j, x[..., None] / 2), axis=-1)


def noncentral_f(dfn, dfd, nc, x):
    """Σ wⱼ I(ν₁/2 + j, ν₂/2, z)."""
    w, j = mixture(nc / 2, terms_for(nc))
    z = (dfn * x / (dfd + dfn * x))[..., None]
    return np.sum(w * sp.betainc(dfn[..., None] / 2 + j, dfd[..., None] / 2, z), axis=-1)


def noncentral_t(df, nc, t):
    """Of t < 0 it is 1 less that of -t and -nc. Lenth, Algorithm AS 243, Appl. Statist. 38 (1989)."""
    sign = np.where(t < 0, -1.0, 1.0)
    δ, u = sign * nc, sign * t
    w, j = mixture(δ * δ / 2, terms_for(nc * nc))
    y = (u * u / (u * u + df))[..., None]
    odd = δ[..., None] / math.sqrt(2) * w * np.exp(sp.gammaln(j + 1.0) - sp.gammaln(j + 1.5))
    half = df[..., None] / 2
    sums = w * sp.betainc(j + 0.5, half, y) + odd * sp.betainc(j + 1.0, half, y)
    return (1 - sign) / 2 + sign * (sp.ndtr(-δ) + np.sum(sums, axis=-1) / 2)


by_definition(sp.chndtr, noncentral_chi2)
inverse_of(sp.chndtrix, noncentral_chi2, 0, 0)
inverse_of(sp.chndtridf, noncentral_chi2, 1, 1)
inverse_of(sp.chndtrinc, noncentral_chi2, 2, 2)
by_definition(sp.ncfdtr, noncentral_f)
inverse_of(sp.ncfdtri, noncentral_f, 3, 3)
inverse_of(sp.ncfdtridfn, noncentral_f, 0, 0)
inverse_of(sp.ncfdtridfd, noncentral_f, 1, 1)
inverse_of(sp.ncfdtrinc, noncentral_f, 2, 2)
by_definition(sp.nctdtr, noncentral_t)
inverse_of(sp.nctdtrit, noncentral_t, 2, 2)
inverse_of(sp.nctdtridf, noncentral_t, 0, 0)
inverse_of(sp.nctdtrinc, noncentral_t, 1, 1)
