"""Rules of solve, inv, det, slogdet, cholesky, matrix_power, for stacks of matrices too.

    X = A⁻¹ B:      B̄ = A⁻ᴴ X̄,   Ā = -B̄ Xᴴ
    Y = A⁻¹:        Ā = -Yᴴ Ȳ Yᴴ
    y = det A:      Ā = ȳ adj(A)ᴴ, which is ȳ y* A⁻ᴴ where A can be inverted
    A = L Lᴴ ↦ L:   see there

Shapes: (..., n, n); leading axes broadcast.
Giles, An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation, report 08/01, Oxford University Computing Laboratory (2008).
Tests: tests/rules/linalg/test_matrices.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import AbstractZero, NoTangent, Tangent, rrule, type_stable, unthunk
from morula.rules.arrays.broadcasting import match


def ctranspose(A):
    """The conjugate transpose of each matrix of a stack."""
    return np.swapaxes(A, -1, -2).conjugate()


@rrule(np.linalg.solve)
def _(a: np.ndarray, b: np.ndarray):
    a_shape = a.shape
    b_shape = b.shape
    x = np.linalg.solve(a, b)

    def solve_pullback(x̄):
        if len(b_shape) == 1:
            b̄ = np.linalg.solve(ctranspose(a), x̄[..., None])[..., 0]
            ā = -b̄[..., None] * x.conjugate()[..., None, :]
        else:
            b̄ = np.linalg.solve(ctranspose(a), x̄)
            ā = -np.matmul(b̄, ctranspose(x))
        return match(ā, a_shape), match(b̄, b_shape)

    return x, solve_pullback


@rrule(np.linalg.inv)
def _(a: np.ndarray):
    y = np.linalg.inv(a)

    def inv_pullback(ȳ):
        yH = ctranspose(y)
        return (-np.matmul(np.matmul(yH, ȳ), yH),)

    return y, inv_pullback


@rrule(np.linalg.det)
def _(a: np.ndarray):
    y = np.linalg.det(a)

    def det_pullback(ȳ):
        if not np.all(y):
            return (ctranspose(adjugate(a)) * np.asarray(ȳ)[..., None, None],)
        inverse = ctranspose(np.linalg.inv(a))
        return (np.asarray(ȳ * y.conjugate())[..., None, None] * inverse,)

    return y, det_pullback


def adjugate(A):
    """The transposed cofactors of any A = U S Vᴴ: adj A = adj Vᴴ adj S adj U."""
    U, s, Vh = np.linalg.svd(A)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    turned = np.linalg.det(U) * np.linalg.det(Vh)
    middle = others[..., :, None] * ctranspose(U)
    return turned[..., None, None] * np.matmul(ctranspose(Vh), middle)


@rrule(np.linalg.slogdet)
def _(a: np.ndarray):
    """(s, l) with det A = s eˡ: Ā = (l̄ + i Im(s* s̄)) A⁻ᴴ."""
    y = np.linalg.slogdet(a)
    sign = y[0]

    def slogdet_pullback(ȳ):
        s̄ = _field(ȳ, 0, "sign")
        l̄ = _field(ȳ, 1, "logabsdet")
        weight: Any = 0.0 if isinstance(l̄, AbstractZero) else l̄
        if np.iscomplexobj(a) and not isinstance(s̄, AbstractZero):
            weight = weight + 1j * np.imag(np.conjugate(sign) * s̄)
        return (np.asarray(weight)[..., None, None] * ctranspose(np.linalg.inv(a)),)

    return y, slogdet_pullback


def _field(ȳ: Any, i: int, name: str) -> Any:
    """The cotangent of a field of a named tuple, by position or by name."""
    ȳ = unthunk(ȳ)
    if isinstance(ȳ, Tangent) and name in ȳ:
        return unthunk(ȳ[name])
    return unthunk(ȳ[i])


@rrule(np.linalg.cholesky)
def _(a: np.ndarray, *, upper=False):
    """A = L Lᴴ ↦ L;  A (..., n, n) Hermitian positive definite, real or complex.

    S = L⁻ᴴ Φ(Lᴴ L̄) L⁻¹,   Φ(X) = tril(X) with half its diagonal

    The cotangent of the Hermitian A is (S + Sᴴ) / 2. NumPy reads one triangle of A only, so that
    Ā is zero in the other one and twice that below (above) the diagonal.
    Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), section 3.
    """
    y = np.linalg.cholesky(a, upper=upper)

    def cholesky_pullback(ȳ):
        L, L̄ = (ctranspose(y), ctranspose(ȳ)) if upper else (y, ȳ)
        LH = ctranspose(L)
        n = L.shape[-1]
        half = 1 - np.eye(n, dtype=L.dtype) / 2
        P = np.tril(np.matmul(LH, L̄)) * half
        S = ctranspose(np.linalg.solve(LH, ctranspose(np.linalg.solve(LH, P))))
        both = np.tril(S + ctranspose(S)) * half
        return (ctranspose(both) if upper else both,)

    return y, cholesky_pullback


@rrule(np.linalg.matrix_power)
def _(a: np.ndarray, n: int):
    """Aⁿ, n > 0: Ā = Σ (Aᴴ)ᵏ Ȳ (Aᴴ)ⁿ⁻¹⁻ᵏ; a negative power is one of the inverse."""
    y = np.linalg.matrix_power(a, n)

    def matrix_power_pullback(ȳ):
        base = ctranspose(a if n >= 0 else np.linalg.inv(a))
        ā = np.zeros_like(ȳ)
        for k in range(abs(n)):
            left = np.matmul(np.linalg.matrix_power(base, k), ȳ)
            ā = ā + np.matmul(left, np.linalg.matrix_power(base, abs(n) - 1 - k))
        return ā if n >= 0 else -np.matmul(np.matmul(base, ā), base), NoTangent()

    return y, matrix_power_pullback


type_stable(np.linalg.solve, np.linalg.inv, np.linalg.det, np.linalg.cholesky)
