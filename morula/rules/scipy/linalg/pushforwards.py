"""Forward rules of scipy.linalg's solvers of linear equations, of det and of Cholesky's factor.

    op(A) X = B:   op(A) Ẋ = Ḃ - op(Ȧ) X, where of Ȧ is read what is read of A
    A = L Lᴴ:      Ȧ X = L̇ (Lᴴ X) + L (L̇ᴴ X), for a factor that is given
    A = L Lᴴ:      L̇ as in rules/linalg/pushforwards.py

Tests: tests/rules/scipy/test_linalg_pushforwards.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from morula.core.extend import ZERO, frule, is_zero
from morula.rules.arrays.pushforwards import fitted
from morula.rules.linalg.parts import ctranspose
from morula.rules.linalg.pushforwards import (
    columns,
    det_tangent,
    factor_tangent,
    like_solution,
    read_from,
    right_side,
)
from morula.rules.scipy.linalg.factors import keeps, reads_lower, strictly_lower, strictly_upper
from morula.rules.scipy.linalg.solvers import (
    HERMITIAN,
    SYMMETRIC,
    structured,
    triangle_read,
    turned,
)


def read_tangent(Ȧ, assume_a, lower):
    """The tangent of the matrix that is meant where A is read as one of this structure."""
    if assume_a in SYMMETRIC:
        read = np.tril(Ȧ, -1) if lower else np.triu(Ȧ, 1)
        return read + np.swapaxes(read, -1, -2) + np.eye(Ȧ.shape[-1]) * Ȧ
    if assume_a in HERMITIAN:
        return read_from(Ȧ, lower)
    return structured(Ȧ, assume_a)


@frule(linalg.solve)
def _(
    a: np.ndarray, b: np.ndarray, lower=False, overwrite_a=False, overwrite_b=False,
    check_finite=True, assume_a=None, transposed=False,
):  # fmt: skip
    x = linalg.solve(a, b, lower, False, False, check_finite, assume_a, transposed)

    def solve_pushforward(ȧ, ḃ, *_):
        product: Any = ZERO
        if not is_zero(ȧ):
            Ȧ = read_tangent(ȧ, assume_a, lower)
            is_turned = transposed and assume_a not in HERMITIAN
            product = (np.swapaxes(Ȧ, -1, -2) if is_turned else Ȧ) @ columns(b, x)
        rest = right_side(product, b, ḃ)
        ẋ = linalg.solve(a, rest, lower, False, False, check_finite, assume_a, transposed)
        return like_solution(x, b, ẋ)

    return x, solve_pushforward


@frule(linalg.solve_triangular)
def _(
    a: np.ndarray, b: np.ndarray, trans=0, lower=False, unit_diagonal=False, overwrite_b=False,
    check_finite=True,
):  # fmt: skip
    x = linalg.solve_triangular(a, b, trans, lower, unit_diagonal, False, check_finite)

    def solve_triangular_pushforward(ȧ, ḃ, *_):
        product: Any = ZERO
        if not is_zero(ȧ):
            Ȧ = triangle_read(ȧ, lower, unit_diagonal)
            product = turned(Ȧ, trans) @ columns(b, x)
        rest = right_side(product, b, ḃ)
        ẋ = linalg.solve_triangular(a, rest, trans, lower, unit_diagonal)
        return like_solution(x, b, ẋ)

    return x, solve_triangular_pushforward


@frule(linalg.det)
def _(a: np.ndarray, overwrite_a=False, check_finite=True):
    y = linalg.det(a, False, check_finite)

    def det_pushforward(ȧ, *_):
        return fitted(y, det_tangent(y, a, ȧ))

    return y, det_pushforward


@frule(linalg.cho_solve)
def _(c_and_lower: tuple, b: np.ndarray, overwrite_b=False, check_finite=True):
    x = linalg.cho_solve(c_and_lower, b, False, check_finite)

    def cho_solve_pushforward(ċ_and_lower, ḃ, *_):
        product: Any = ZERO
        ċ = ZERO if is_zero(ċ_and_lower) else ċ_and_lower[0]
        if not is_zero(ċ):
            c, lower = c_and_lower
            X = columns(b, x)
            if reads_lower(lower):
                L, L̇ = np.tril(c), np.tril(ċ)
            else:
                L, L̇ = ctranspose(np.triu(c)), ctranspose(np.triu(ċ))
            product = L̇ @ (ctranspose(L) @ X) + L @ (ctranspose(L̇) @ X)
        ẋ = linalg.cho_solve(c_and_lower, right_side(product, b, ḃ), False, check_finite)
        return like_solution(x, b, ẋ)

    return x, cho_solve_pushforward


@frule(linalg.cholesky)
def _(a: np.ndarray, lower=False, overwrite_a=False, check_finite=True):
    y = linalg.cholesky(a, lower, False, check_finite)

    def cholesky_pushforward(ȧ, *_):
        return fitted(y, factor_tangent(y, ȧ, lower))

    return y, cholesky_pushforward


@frule(linalg.cho_factor)
def _(a: np.ndarray, lower=False, overwrite_a=False, check_finite=True):
    y = linalg.cho_factor(a, lower, False, check_finite)

    def cho_factor_pushforward(ȧ, *_):
        own, other = (np.tril, strictly_upper) if lower else (np.triu, strictly_lower)
        ċ = factor_tangent(own(y[0]), ȧ, lower)
        if keeps(other(a), other(y[0])):
            ċ = ċ + other(ȧ)
        return type(y)((fitted(y[0], ċ), ZERO))  # SciPy gives a list for a stack

    return y, cho_factor_pushforward
