"""Rules of the functions of polynomials that NumPy computes in place, or by other objects.

Coefficients come with the highest power first. What else NumPy has for polynomials is Python code
over functions that have rules: `polyval`, `polyadd`, `polyder`, `polyint`, `poly1d`.
Tests: tests/rules/arrays/test_polynomials.py
"""

from __future__ import annotations

import numpy as np

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
