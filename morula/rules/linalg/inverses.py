"""Rules of pinv and lstsq, pinv for stacks of matrices too.

    Y = A⁺:        Ā = -Yᴴ Ȳ Yᴴ + (1 - A Y) Ȳᴴ Y Yᴴ + Yᴴ Y Ȳᴴ (1 - Y A)
    X = A⁺ B:      B̄ = Yᴴ X̄ =: Z,   Ā = -Z Xᴴ + (B - A X) (Y Z)ᴴ + (Yᴴ X) (X̄ - Y A X̄)ᴴ

They hold as long as the rank stays the same. Where the rank of A is less than it might be, A⁺ jumps
under most changes of A, and this is the derivative along those that keep the rank.
Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
variables separate, SIAM J. Numer. Anal. 10(2), 1973.
Tests: tests/rules/linalg/test_inverses.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import AbstractZero, NoTangent, non_differentiable, rrule
from morula.rules.arrays.broadcasting import part
from morula.rules.arrays.types import NO_VALUE
from morula.rules.linalg.parts import ctranspose, filled, read_of
from morula.rules.linalg.spectral import values_cotangent


@rrule(np.linalg.pinv)
def _(a: np.ndarray, rcond=None, hermitian=False, *, rtol=NO_VALUE):
    y = np.linalg.pinv(a, rcond, hermitian, rtol=rtol)

    def pinv_pullback(ȳ):
        Ā = pinv_cotangent(ȳ, a, y)
        return read_of(Ā, hermitian), NoTangent(), NoTangent()

    return y, pinv_pullback


def pinv_cotangent(Ȳ, A, Y):
    """Ā of Y = A⁺."""
    YH = ctranspose(Y)
    ȲH = ctranspose(Ȳ)
    left = ȲH @ Y @ YH
    right = YH @ Y @ ȲH
    return -YH @ Ȳ @ YH + left - A @ (Y @ left) + right - (right @ Y) @ A


@rrule(np.linalg.lstsq)
def _(a: np.ndarray, b: np.ndarray, rcond=None):
    y = np.linalg.lstsq(a, b, rcond)

    def lstsq_pullback(ȳ):
        Ā, B̄ = lstsq_cotangents(part(ȳ, 0), part(ȳ, 1), part(ȳ, 3), a, b, y)
        return Ā, B̄, NoTangent()

    return y, lstsq_pullback


def lstsq_cotangents(x̄, r̄, s̄, a, b, y):
    """Of A and b, from those of x = A⁺ b, of the sums of squares of b - A x and of the values of A."""
    x, squares, rank = y[0], y[1], y[2]
    Y = np.linalg.pinv(a, cutoff(a, y[3], rank))
    X = as_columns(x)
    X̄ = as_columns(filled(x̄, x))
    rest = as_columns(b) - a @ X
    Z = ctranspose(Y) @ X̄
    Ā = -Z @ ctranspose(X) + rest @ ctranspose(Y @ Z)
    Ā = Ā + (ctranspose(Y) @ X) @ ctranspose(X̄ - Y @ (a @ X̄))
    if not isinstance(r̄, AbstractZero) and np.size(squares):
        wide = 2 * rest * np.real(r̄)  # SciPy 1.18 gives complex sums of squares
        Z = Z + wide
        Ā = Ā - wide @ ctranspose(X)
    if not isinstance(s̄, AbstractZero):
        U, S, Vh = np.linalg.svd(a, full_matrices=False)
        Ā = Ā + values_cotangent(s̄, U, S, Vh)
    return Ā, np.reshape(Z, b.shape)


def cutoff(A: Any, S: Any, rank: int) -> Any:
    """What separates the singular values that count from the others, as a part of the largest one."""
    if S is None:
        S = np.linalg.svd(A, compute_uv=False)
    if rank == len(S) or not rank:
        return 2.0 if not rank else 0.0
    return (S[rank - 1] + S[rank]) / 2 / S[0]


non_differentiable(cutoff)


def as_columns(x):
    """A vector as a matrix of one column."""
    return x[:, None] if x.ndim == 1 else x
