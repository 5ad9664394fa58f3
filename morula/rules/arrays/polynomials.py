"""Rules of the functions of polynomials that NumPy computes in place, or by other objects.

Coefficients come with the highest power first. What else NumPy has for polynomials is Python code
over functions that have rules: `polyval`, `polyadd`, `polyder`, `polyint`, `poly1d`.
Tests: tests/rules/arrays/test_polynomials.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    Const,
    UnsupportedError,
    rewrites,
    rrule,
    transfers,
    type_stable,
)
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.arrays.types import Numeric
from morula.rules.list_types import is_array


def horner(p, x):
    """`np.polyval` of an array of coefficients at a number or an array."""
    return np.polyval(p, x)


@rrule(horner)
def _(p: np.ndarray, x: Numeric):
    """Σ pₖ xᵏ:  p̄ₖ = Σ ȳ x*ᵏ,  x̄ = ȳ times the conjugate of the derivative."""
    n = len(p)

    def horner_pullback(ȳ):
        slope = horner(p[:-1] * np.arange(n - 1, 0, -1), x)
        return by_coefficients(ȳ, p, x), ȳ * np.conjugate(slope)

    return horner(p, x), horner_pullback


def by_coefficients(ȳ, p, x):
    """p̄ of y = horner(p, x)."""
    powers = np.asarray(x)[..., None] ** np.arange(len(p))[::-1]
    return np.tensordot(np.asarray(ȳ), np.conjugate(powers), np.ndim(x))


type_stable(horner)


@transfers(by_coefficients)
def _(s: Any, call: Any, args: Any) -> Any:
    """Like the coefficients, where all is real."""
    ȳ, p, x = args
    alike = all(is_real(k) for k in (ȳ, x)) and is_array(p) and p.detail[0] == "<f8"
    return p if alike else None


def is_real(k: Any) -> bool:
    """Is it a real number of double precision, or an array of such numbers?"""
    if is_array(k):
        return k.detail[0] == "<f8"
    kind = type(k.value) if type(k) is Const else getattr(k, "type", None)
    return kind in (float, int, np.float64)


@rewrites
def _(s: Any) -> bool:
    """In programs, polynomials are evaluated by what has a rule."""
    changed = False
    for call in s.ir.calls():
        if call.primitive is np.polyval and len(call.args) == 2 and not call.keywords:
            p, x = map(s.value, call.args)
            if is_array(p) and p.detail[:2] == ("<f8", 1) and is_real(x):
                call.fn, changed = Const(horner), True
    return changed


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
