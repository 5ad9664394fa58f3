"""Rules of cholesky and qr, for stacks of matrices too.

    A = L Lᴴ:     see there
    A = Q R:      Ā = ((1 - Q Qᴴ) Q̄ + Q C) R⁻ᴴ
                  C = slow(J - Jᴴ + Nᴴ) + sup(N) + Re diag(N) + i Im diag(J),   J = Qᴴ Q̄, N = R̄ Rᴴ

slow and sup are the strictly lower and upper triangle; the diagonal of R is real. Where A has more
columns than rows, A = Q (R₁ R₂), and R₂ = Qᴴ A₂. R⁻¹ has to exist: of a matrix whose first columns
are dependent qr has no derivative, and NumPy's LinAlgError comes out of the pullback.
Walter and Lehmann, Algorithmic differentiation of linear algebra functions with application in
optimum experimental design, arXiv:1001.1654 (2010); Roberts and Roberts, QR and LQ decomposition
matrix backpropagation algorithms for square, wide, and deep, real or complex, matrices,
arXiv:2009.10071 (2020).
Tests: tests/rules/linalg/test_factors.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    NoTangent,
    UnsupportedError,
    call,
    non_differentiable,
    partial_functions,
    rrule,
    type_stable,
    unthunk,
)
from morula.rules.linalg.parts import (
    ctranspose,
    diagonal,
    field,
    filled,
    on_diagonal,
    require_full_rank,
)


@rrule(np.linalg.cholesky)
def _(a: np.ndarray, *, upper=False):
    y = np.linalg.cholesky(a, upper=upper)

    def cholesky_pullback(ȳ):
        return (cholesky_cotangent(ȳ, y, not upper),)

    return y, cholesky_pullback


def cholesky_cotangent(ȳ, y, lower):
    """A = L Lᴴ ↦ L;  A (..., n, n) Hermitian positive definite, real or complex.

    S = L⁻ᴴ Φ(Lᴴ L̄) L⁻¹,   Φ(X) = tril(X) with half its diagonal

    The cotangent of the Hermitian A is (S + Sᴴ) / 2. One triangle of A only is read, so that
    Ā is zero in the other one and twice that below (above) the diagonal.
    Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016), section 3.
    """
    L, L̄ = (y, ȳ) if lower else (ctranspose(y), ctranspose(ȳ))
    LH = ctranspose(L)
    P = halved(np.matmul(LH, L̄))
    S = ctranspose(np.linalg.solve(LH, ctranspose(np.linalg.solve(LH, P))))
    both = halved(S + ctranspose(S))
    return both if lower else ctranspose(both)


def halved(X):
    """Φ(X): the lower triangle with half its diagonal."""
    return np.tril(X) * (1 - np.eye(X.shape[-1], dtype=X.dtype) / 2)


@rrule(np.linalg.qr)
def _(a: np.ndarray, mode="reduced"):
    y = np.linalg.qr(a, mode)

    def qr_pullback(ȳ):
        if mode == "r":
            Q = np.linalg.qr(a)[0]
            return qr_cotangent(np.zeros_like(Q), ȳ, Q, y, a), NoTangent()
        if mode == "reduced" or (mode == "complete" and a.shape[-2] <= a.shape[-1]):
            Q, R = y
            Q̄ = filled(field(ȳ, 0, "Q"), Q)
            R̄ = filled(field(ȳ, 1, "R"), R)
            return qr_cotangent(Q̄, R̄, Q, R, a), NoTangent()
        by_reflections = complete_qr if mode == "complete" else raw_qr
        _, back = call(by_reflections, a)
        parts = unthunk(ȳ)
        return back((field(parts, 0, "Q"), field(parts, 1, "R")))[1], NoTangent()

    return y, qr_pullback


def qr_cotangent(Q̄, R̄, Q, R, A):
    """Ā of A ↦ (Q, R), where Q has as many columns as A, or as A has rows if these are fewer."""
    k = Q.shape[-1]
    R̄ = np.triu(R̄)
    if k == A.shape[-1]:
        return square_qr_cotangent(Q̄, R̄, Q, R)
    R̄2 = R̄[..., k:]
    Q̄ = Q̄ + A[..., k:] @ ctranspose(R̄2)
    Ā1 = square_qr_cotangent(Q̄, R̄[..., :k], Q, R[..., :k])
    return np.concatenate((Ā1, Q @ R̄2), axis=-1)


def square_qr_cotangent(Q̄, R̄, Q, R):
    """The same for a square R."""
    require_full_rank(R)
    J = ctranspose(Q) @ Q̄
    N = R̄ @ ctranspose(R)
    C = np.tril(J - ctranspose(J) + ctranspose(N), -1) + np.triu(N, 1)
    own = diagonal(N).real + 1j * diagonal(J).imag if J.dtype.kind == "c" else diagonal(N)
    C = C + on_diagonal(own)
    X = Q̄ - Q @ J + Q @ C
    return ctranspose(np.linalg.solve(R, ctranspose(X)))


# -- by reflections, as LAPACK does it -------------------------------------------------------------


def refuse_settled(settled: Any, below: int) -> None:
    """Refuse a column with nothing below the diagonal: a reflection begins there, with any sign."""
    if below and np.any(settled):
        raise UnsupportedError(
            "a reflection of a column that is zero below the diagonal already has no derivative: "
            "close by, the sign of the result is another one"
        )


non_differentiable(refuse_settled)
partial_functions(refuse_settled)


def reflections(A: Any) -> Any:
    """The vectors v and factors τ of H = 1 - τ v vᴴ that bring A to triangular form, and that form.

    v is 1 in its row and zero above. Golub and Van Loan, Matrix computations, section 5.1.
    """
    m, n = A.shape[-2:]
    vectors = []
    factors = []
    for j in range(min(m, n)):
        column = A[..., j]
        above = np.arange(m) < j
        α = column[..., j]
        tail = np.where(np.arange(m) <= j, 0.0, column)
        length = np.sqrt(np.abs(α) ** 2 + np.sum(np.abs(tail) ** 2, axis=-1))
        settled = np.all(tail == 0, axis=-1) & (np.imag(α) == 0)  # nothing to reflect
        refuse_settled(settled, m - j - 1)
        β = np.where(np.real(α) >= 0, -1.0, 1.0) * length
        β = np.where(settled, np.real(α), β)
        v = tail / np.where(settled, 1.0, α - β)[..., None] + (np.arange(m) == j)
        v = np.where(above, 0.0, v)
        τ = np.where(settled, 0.0, (β - α) / np.where(settled, 1.0, β))
        vectors.append(v)
        factors.append(τ)
        reflected = np.conjugate(τ)[..., None, None] * (
            v[..., None] * (np.conjugate(v)[..., None, :] @ A)
        )
        A = A - reflected
    return vectors, factors, A


def complete_qr(A: Any) -> Any:
    """Q, with all its columns, and R."""
    vectors, factors, R = reflections(A)
    Q = np.broadcast_to(np.eye(A.shape[-2], dtype=A.dtype), (*A.shape[:-1], A.shape[-2]))
    for v, τ in zip(vectors, factors, strict=True):
        Q = (
            Q
            - (τ[..., None] * (Q @ v[..., None])[..., 0])[..., None] * np.conjugate(v)[..., None, :]
        )
    return Q, np.triu(R)


def raw_qr(A: Any) -> Any:
    """What LAPACK leaves: R with the vectors below its diagonal, transposed, and the factors."""
    vectors, factors, R = reflections(A)
    below = np.tril(np.stack(vectors, axis=-1), -1)
    missing = A.shape[-1] - below.shape[-1]
    if missing > 0:
        below = np.concatenate((below, np.zeros((*A.shape[:-1], missing), A.dtype)), axis=-1)
    return np.swapaxes(np.triu(R) + below, -1, -2), np.stack(factors, axis=-1)


type_stable(np.linalg.cholesky)
partial_functions(np.linalg.cholesky, of_arrays=True)
