"""Rules of the functions of polynomials that NumPy computes in place, or by other objects.

Coefficients come with the highest power first. What else NumPy has for polynomials is Python code
over functions that have rules: `polyval`, `polyadd`, `polyder`, `polyint`, `poly1d`.
Tests: tests/rules/arrays/test_polynomials.py
"""

from __future__ import annotations

import numpy as np

from morula.core.extend import UnsupportedError
from morula.rules.arrays.bodies import derivative_of, instead_of


@instead_of(np.polymul)
def polymul(a1, a2):
    """The convolution of the coefficients."""
    as_objects = isinstance(a1, np.poly1d) or isinstance(a2, np.poly1d)
    product = np.convolve(np.poly1d(a1).coeffs, np.poly1d(a2).coeffs)
    return np.poly1d(product) if as_objects else product


@derivative_of(np.vander)
def vander(x, N=None, increasing=False):
    """The powers of x as columns."""
    x = np.asarray(x)
    n = len(x) if N is None else N
    powers = np.arange(n) if increasing else np.arange(n)[::-1]
    return x[:, None] ** powers


@instead_of(np.polydiv)
def polydiv(u, v):
    """Quotient and remainder, by long division."""
    as_objects = isinstance(u, np.poly1d) or isinstance(v, np.poly1d)
    u, v = np.atleast_1d(coefficients(u)) + 0.0, np.atleast_1d(coefficients(v)) + 0.0
    w = u[0] + v[0]
    n, m = len(v), max(len(u) - len(v) + 1, 0)
    scale = 1.0 / v[0]
    rest = u.astype(w.dtype)
    found = [np.zeros((), w.dtype)] * (m == 0)
    for k in range(m):
        d = scale * rest[k]
        found.append(d)
        rest = np.concatenate((rest[:k], rest[k : k + n] - d * v, rest[k + n :]))
    while len(rest) > 1 and np.allclose(rest[0], 0, rtol=1e-14):
        rest = rest[1:]
    quotient = np.stack(found)
    return (np.poly1d(quotient), np.poly1d(rest)) if as_objects else (quotient, rest)


def coefficients(p):
    """Those of a polynomial that is an object, or given by them."""
    return p.coeffs if isinstance(p, np.poly1d) else np.asarray(p)


@derivative_of(np.roots)
def roots(p):
    """The eigenvalues of the companion matrix, and a zero for each power that all terms have."""
    p = np.atleast_1d(coefficients(p)) + 0.0
    used = np.flatnonzero(p)
    if not len(used):
        return np.zeros(0)
    zeros = len(p) - 1 - used[-1]
    p = p[used[0] : used[-1] + 1]
    n = len(p) - 1
    if not n:
        return np.zeros(zeros)
    companion = np.concatenate((np.reshape(-p[1:] / p[0], (1, n)), np.eye(n)[:-1]))
    found = np.linalg.eigvals(companion)
    if np.isrealobj(companion) and not np.any(found.imag):
        found = found.real
    return np.concatenate((found, np.zeros(zeros, found.dtype)))


@derivative_of(np.polyfit)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """Least squares by columns of powers, each of length 1."""
    if full or cov:
        raise UnsupportedError("np.polyfit has a derivative without full= and cov= only")
    x, y = np.asarray(x) + 0.0, np.asarray(y) + 0.0
    powers = np.vander(x, int(deg) + 1)
    if w is not None:
        w = np.asarray(w) + 0.0
        powers = powers * w[:, None]
        y = y * (w[:, None] if y.ndim == 2 else w)
    lengths = np.sqrt(np.sum(powers * powers, axis=0))
    rcond = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    c = np.linalg.lstsq(powers / lengths, y, rcond)[0]
    return (c.T / lengths).T
