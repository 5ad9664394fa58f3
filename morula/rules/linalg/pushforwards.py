"""Forward rules of norm, inv, solve, det, cholesky, eigvalsh, svdvals, …, for stacks of matrices too.

    y = det A:     ẏ = tr adj(A) Ȧ, which is y tr A⁻¹ Ȧ where A can be inverted
    det A = s eˡ:  l̇ = Re tr A⁻¹ Ȧ, ṡ = i s Im tr A⁻¹ Ȧ
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
from morula.rules.linalg.matrices import adjugate, is_singular
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
        product = ZERO if is_zero(ȧ) else ȧ @ columns(b, x)
        return like_solution(x, b, np.linalg.solve(a, right_side(product, b, ḃ)))

    return x, solve_pushforward


def right_side(product, b, ḃ):
    """Ḃ - Ȧ X as columns, of which either may be zero."""
    rest: Any = ZERO if is_zero(ḃ) else columns(b, ḃ)
    return rest if product is ZERO else rest - product


def like_solution(x, b, ẋ):
    """The tangent of a solution, from columns."""
    return fitted(x, ẋ[..., 0] if b.ndim == 1 else ẋ)


def columns(b, x):
    """Vectors as matrices of one column, if `b` is a vector."""
    return x[..., None] if b.ndim == 1 else x


@frule(np.linalg.det)
def _(a: np.ndarray):
    y = np.linalg.det(a)

    def det_pushforward(ȧ):
        return fitted(y, det_tangent(y, a, ȧ))

    return y, det_pushforward


def det_tangent(y, A, Ȧ):
    """tr adj(A) Ȧ."""
    if is_singular(A):
        return trace_of_product(adjugate(A), Ȧ)
    return y * trace_of_product(np.linalg.inv(A), Ȧ)


def trace_of_product(A, B):
    """tr A B."""
    return np.sum(np.swapaxes(A, -1, -2) * B, axis=(-2, -1))


@frule(np.linalg.slogdet)
def _(a: np.ndarray):
    y = np.linalg.slogdet(a)

    def slogdet_pushforward(ȧ):
        t = trace_of_product(np.linalg.inv(a), ȧ)
        if not np.iscomplexobj(a):
            return ZERO, fitted(y[1], t)
        return fitted(y[0], 1j * np.imag(t) * y[0]), fitted(y[1], np.real(t))

    return y, slogdet_pushforward


@frule(np.linalg.matrix_power)
def _(a: np.ndarray, n: int):
    """(Aⁿ)˙ = Σ Aᵏ Ȧ Aⁿ⁻¹⁻ᵏ; a negative power is one of the inverse, whose tangent is -A⁻¹ Ȧ A⁻¹."""
    y = np.linalg.matrix_power(a, n)

    def matrix_power_pushforward(ȧ, _):
        base, inner = (a, ȧ) if n >= 0 else inverse_and_tangent(a, ȧ)
        ẏ: Any = ZERO
        for k in range(abs(n)):
            left = np.linalg.matrix_power(base, k) @ inner
            ẏ = ẏ + left @ np.linalg.matrix_power(base, abs(n) - 1 - k)
        return fitted(y, ẏ)

    return y, matrix_power_pushforward


def inverse_and_tangent(A, Ȧ):
    """A⁻¹ and -A⁻¹ Ȧ A⁻¹."""
    inverse = np.linalg.inv(A)
    return inverse, -(inverse @ Ȧ @ inverse)


@frule(np.kron)
def _(a: np.ndarray, b: np.ndarray):
    y = np.kron(a, b)

    def kron_pushforward(ȧ, ḃ):
        ẏ: Any = ZERO if is_zero(ȧ) else np.kron(ȧ, b)
        return fitted(y, ẏ if is_zero(ḃ) else ẏ + np.kron(a, ḃ))

    return y, kron_pushforward


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
        return fitted(y, factor_tangent(y, ȧ, not upper))

    return y, cholesky_pushforward


def factor_tangent(y, Ȧ, lower):
    """L̇ of A = L Lᴴ, of which one triangle is read, or its conjugate transpose."""
    if lower:
        return lower_tangent(y, Ȧ)
    return ctranspose(lower_tangent(ctranspose(y), ctranspose(Ȧ)))


def lower_tangent(L, Ȧ):
    """L̇, where the lower triangle of A is read."""
    below = halved(Ȧ)
    inner = np.linalg.solve(L, below + ctranspose(below))
    inner = np.linalg.solve(L, ctranspose(inner))
    return L @ halved(ctranspose(inner))
