"""Forward rules of inv, solve and cholesky, for stacks of matrices too.

    Y = A⁻¹:       Ẏ = -Y Ȧ Y
    A X = B:       A Ẋ = Ḃ - Ȧ X
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
from morula.rules.arrays.pushforwards import fitted
from morula.rules.linalg.parts import ctranspose


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
    n = L.shape[-1]
    half = 1 - np.eye(n) / 2
    below = np.tril(Ȧ) * half
    inner = np.linalg.solve(L, below + ctranspose(below))
    inner = np.linalg.solve(L, ctranspose(inner))
    return L @ (np.tril(ctranspose(inner)) * half)
