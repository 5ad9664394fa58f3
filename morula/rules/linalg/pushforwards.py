"""Forward rules of norm, inv, solve, cholesky, eigvalsh and svdvals, for stacks of matrices too.

    Y = A⁻¹:       Ẏ = -Y Ȧ Y
    A X = B:       A Ẋ = Ḃ - Ȧ X
    A = V w Vᴴ:    ẇ = diag Vᴴ Ȧ V, where equal values share;  A = U s Vᴴ: ṡ = Re diag Uᴴ Ȧ V
    A = L Lᴴ:      L̇ = L Φ(L⁻¹ Ȧ L⁻ᴴ),   Φ(X) = tril(X) with half its diagonal

The transposes of the reverse rules solve with the transposed matrix as well; these need A alone, which
counts where the rule is differentiated again and again (mixed_mode/taylor.py).
Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), section 3.
Tests: tests/rules/linalg/test_pushforwards.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import ZERO, frule, is_zero
from morula.rules.arrays.pushforwards import by_slices, fitted
from morula.rules.linalg.factors import halved
from morula.rules.linalg.norms import has_order, order_slope
from morula.rules.linalg.parts import ctranspose, tangent_of_values, vanishing


@frule(np.linalg.norm)
def _(x: np.ndarray, ord=None, axis=None, keepdims=False):
    y, by_entries = by_slices(np.linalg.norm, (x, ord, axis, keepdims), {}, axis, keepdims)

    def norm_pushforward(ẋ, ȯrd=ZERO, *others):
        ẏ = by_entries(ẋ)
        if is_zero(ȯrd) or not has_order(x, ord, axis):
            return ẏ
        return ẏ + fitted(y, ȯrd * order_slope(y, x, ord, axis, keepdims))

    return y, norm_pushforward


@frule(np.linalg.inv)
def _(a: np.ndarray):
    y = np.linalg.inv(a)

    def inv_pushforward(ȧ):
        return fitted(y, -(y @ ȧ @ y))

    return y, inv_pushforward


@frule(np.linalg.solve)
def _(a: np.ndarray, b: np.ndarray):
    x = np.linalg.solve(a, b)

    def solve_pushforward(ȧ, ḃ):
        rest: Any = ZERO if is_zero(ḃ) else columns(b, ḃ)
        if not is_zero(ȧ):
            rest = rest - ȧ @ columns(b, x)
        ẋ = np.linalg.solve(a, rest)
        return fitted(x, ẋ[..., 0] if b.ndim == 1 else ẋ)

    return x, solve_pushforward


def columns(b, x):
    """Vectors as matrices of one column, if `b` is a vector."""
    return x[..., None] if b.ndim == 1 else x


@frule(np.linalg.eigvalsh)
def _(a: np.ndarray, UPLO="L"):
    y = np.linalg.eigvalsh(a, UPLO)

    def eigvalsh_pushforward(ȧ, *_):
        w, V = np.linalg.eigh(a, UPLO)
        M = ctranspose(V) @ read_from(ȧ, UPLO in ("L", "l")) @ V
        return fitted(y, tangent_of_values(M, w, False))

    return y, eigvalsh_pushforward


def read_from(Ȧ, lower):
    """The Hermitian matrix of which one triangle is read."""
    read = np.tril(Ȧ, -1) if lower else np.triu(Ȧ, 1)
    return read + ctranspose(read) + np.eye(Ȧ.shape[-1]) * np.real(Ȧ)


@frule(np.linalg.svdvals)
def _(x: np.ndarray):
    y = np.linalg.svdvals(x)

    def svdvals_pushforward(ẋ):
        return fitted(y, singular_tangents(x, ẋ))

    return y, svdvals_pushforward


def singular_tangents(A, Ȧ):
    """The tangents of singular values."""
    U, s, Vh = np.linalg.svd(A, full_matrices=False)
    M = ctranspose(U) @ Ȧ @ ctranspose(Vh)
    return tangent_of_values(M, s, vanishing(s))


@frule(np.linalg.cholesky)
def _(a: np.ndarray, *, upper=False):
    y = np.linalg.cholesky(a, upper=upper)

    def cholesky_pushforward(ȧ):
        if upper:
            return fitted(y, ctranspose(factor_tangent(ctranspose(y), ctranspose(ȧ))))
        return fitted(y, factor_tangent(y, ȧ))

    return y, cholesky_pushforward


def factor_tangent(L, Ȧ):
    """L̇ of A = L Lᴴ, of which the lower triangle is read."""
    below = halved(Ȧ)
    inner = np.linalg.solve(L, below + ctranspose(below))
    inner = np.linalg.solve(L, ctranspose(inner))
    return L @ halved(ctranspose(inner))
