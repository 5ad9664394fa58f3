"""Rules of scipy.linalg's factorisations: Cholesky, LU, LDL, QR, RQ, polar, Hessenberg.

    A = P L U:        Ā = P L⁻ᴴ (slow(Lᴴ L̄) + upp(Ū Uᴴ)) U⁻ᴴ;  P is constant
    A = L D Lᴴ:       Ā = L⁻ᴴ (blow(Lᴴ L̄) D⁻ᴴ + bdiag(D̄)) L⁻¹, by the blocks of D
    A = U P:          Ā = U (2 Z + H) + (1 - U Uᴴ) Ū P⁻¹,  H = herm P̄,  P Z + Z P = skew(Uᴴ Ū - H P)

Where pivots change, or P is singular, there is no derivative; what comes out is that of the order of
pivots that was taken. Operands are never overwritten.
Giles (2008), as in rules/linalg; de Hoog, Anderssen and Lukas, Differentiation of matrix functionals
using triangular factorization, Math. Comp. 80 (2011).
Tests: tests/rules/scipy/test_linalg.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from morula.core.extend import NoTangent, UnsupportedError, call, non_differentiable, rrule
from morula.rules.arrays.broadcasting import match, part
from morula.rules.linalg.factors import (
    cholesky_cotangent,
    complete_qr,
    qr_cotangent,
    raw_qr,
    reflections,
)
from morula.rules.linalg.parts import ctranspose, filled, hermitian, triangle
from morula.rules.scipy.linalg.solvers import of_equation
from morula.rules.scipy.linalg.stacks import EITHER, is_stack, of_columns, of_each

# -- Cholesky --------------------------------------------------------------------------------------


@rrule(linalg.cholesky)
def _(a: np.ndarray, lower=False, overwrite_a=False, check_finite=True):
    y = linalg.cholesky(a, lower, False, check_finite)

    def cholesky_pullback(ȳ):
        return cholesky_cotangent(ȳ, y, lower), NoTangent(), NoTangent(), NoTangent()

    return y, cholesky_pullback


@rrule(linalg.cho_factor)
def _(a: np.ndarray, lower=False, overwrite_a=False, check_finite=True):
    """The other triangle of the factor holds what is in that of A, or is cleared."""
    y = linalg.cho_factor(a, lower, False, check_finite)

    def cho_factor_pullback(ȳ):
        c̄, c = filled(part(ȳ, 0), y[0]), y[0]
        own, other = (np.tril, strictly_upper) if lower else (np.triu, strictly_lower)
        ā = cholesky_cotangent(own(c̄), own(c), lower)
        if keeps(other(a), other(c)):
            ā = ā + other(c̄)
        return ā, NoTangent(), NoTangent(), NoTangent()

    return y, cho_factor_pullback


def strictly_lower(X):
    """What is below the diagonal."""
    return np.tril(X, -1)


def strictly_upper(X):
    """What is above the diagonal."""
    return np.triu(X, 1)


def keeps(before: Any, after: Any) -> bool:
    """Whether cho_factor left the triangle that it does not read as it was.

    SciPy 1.18 clears it, but not in what it had to convert. Where there is nothing to tell by, a
    small matrix of that kind is tried.
    """
    if np.any(before):
        return bool(np.any(after))
    one = np.ones((*[1] * (before.ndim - 2), 1, 1))
    tried, _ = linalg.cho_factor((np.eye(2) + one).astype(before.dtype))
    return bool(np.any(strictly_lower(tried)))


non_differentiable(keeps)


@rrule(linalg.cho_solve)
def _(c_and_lower: tuple | list, b: np.ndarray, overwrite_b=False, check_finite=True):
    x = linalg.cho_solve(c_and_lower, b, False, check_finite)

    def cho_solve_pullback(x̄):
        c, lower = c_and_lower
        if b.ndim == 1 and x.ndim > 1:
            return of_columns(x̄, linalg.cho_solve, c_and_lower, b, overwrite_b, check_finite)
        b̄ = linalg.cho_solve(c_and_lower, x̄, False, check_finite)
        G = of_equation(b̄, x)
        both = G + ctranspose(G)
        is_lower = reads_lower(lower)
        c̄ = np.tril(both @ np.tril(c)) if is_lower else np.triu(np.triu(c) @ both)
        of_pair = match(c̄, c.shape), NoTangent()
        if type(c_and_lower) is list:
            of_pair = [*of_pair]
        return of_pair, match(b̄, b.shape), NoTangent(), NoTangent()

    return x, cho_solve_pullback


def reads_lower(lower: Any) -> bool:
    """Is it the lower triangle of a factor? For a stack SciPy reads the first answer."""
    return lower if type(lower) is bool else is_first_true(lower)


def is_first_true(answers: Any) -> bool:
    return bool(np.any(np.ravel(answers)[:1]))


non_differentiable(is_first_true)


# -- LU --------------------------------------------------------------------------------------------


def lu_cotangent(L̄, Ū, L, U):
    """That of P⁻¹ A = L U; L (..., m, k), U (..., k, n), k = min(m, n)."""
    k = L.shape[-1]
    rest, wide = None, None
    L̄1, Ū1, L1, U1 = L̄, Ū, L, U
    if L.shape[-2] > k:
        L1, U1 = L[..., :k, :], U
        rest = right_solve(L̄[..., k:, :], U)
        Ū1 = Ū - ctranspose(L[..., k:, :]) @ rest
        L̄1 = L̄[..., :k, :]
    elif U.shape[-1] > k:
        U1 = U[..., :, :k]
        wide = np.linalg.solve(ctranspose(L), Ū[..., :, k:])
        L̄1 = L̄ - wide @ ctranspose(U[..., :, k:])
        Ū1 = Ū[..., :, :k]
    inner = np.tril(ctranspose(L1) @ L̄1, -1) + np.triu(Ū1 @ ctranspose(U1))
    Ā = right_solve(np.linalg.solve(ctranspose(L1), inner), U1)
    if rest is not None:
        return np.concatenate((Ā, rest), axis=-2)
    return Ā if wide is None else np.concatenate((Ā, wide), axis=-1)


def right_solve(X, U):
    """X U⁻ᴴ."""
    return ctranspose(np.linalg.solve(U, ctranspose(X)))


@rrule(linalg.lu)
def _(a: np.ndarray, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
    y = linalg.lu(a, permute_l, False, check_finite, p_indices)

    def lu_pullback(ȳ):
        p, L, U = linalg.lu(a, p_indices=True)
        L̄ = filled(part(ȳ, 0 if permute_l else 1), L)
        Ū = filled(part(ȳ, 1 if permute_l else 2), U)
        rows = p[..., None]
        if permute_l:
            L̄ = np.take_along_axis(L̄, np.argsort(rows, axis=-2), -2)
        M̄ = lu_cotangent(np.tril(L̄, -1), np.triu(Ū), L, U)
        return (np.take_along_axis(M̄, rows, -2), *[NoTangent()] * 4)

    return y, lu_pullback


def permutation_of(piv: Any) -> Any:
    """The order of rows that a sequence of exchanges makes."""
    order = np.broadcast_to(np.arange(piv.shape[-1]), piv.shape).copy()
    for k in np.ndindex(piv.shape[:-1]):
        for i, j in enumerate(piv[k]):
            order[k][[i, j]] = order[k][[j, i]]
    return order


def unpacked(lu):
    """L and U, square."""
    return np.tril(lu, -1) + np.eye(lu.shape[-1], dtype=lu.dtype), np.triu(lu)


@rrule(linalg.lu_factor)
def _(a: np.ndarray, overwrite_a=False, check_finite=True):
    y = linalg.lu_factor(a, False, check_finite)

    def lu_factor_pullback(ȳ):
        lu, piv = y
        k = min(a.shape[-2:])
        c̄ = filled(part(ȳ, 0), lu)
        L = np.tril(lu, -1)[..., :, :k] + np.eye(a.shape[-2], k, dtype=lu.dtype)
        U = np.triu(lu)[..., :k, :]
        M̄ = lu_cotangent(np.tril(c̄, -1)[..., :, :k], np.triu(c̄)[..., :k, :], L, U)
        order = complete_order(piv, a.shape[-2])
        ā = np.take_along_axis(M̄, np.argsort(order, axis=-1)[..., None], -2)
        return ā, NoTangent(), NoTangent()

    return y, lu_factor_pullback


def complete_order(piv: Any, m: int) -> Any:
    """`permutation_of`, for a matrix of m rows that may be more than there are pivots."""
    missing = np.arange(piv.shape[-1], m)
    wide = np.broadcast_to(missing, (*piv.shape[:-1], len(missing)))
    return permutation_of(np.concatenate((piv, wide), axis=-1))


non_differentiable(permutation_of, complete_order)


@rrule(linalg.lu_solve)
def _(lu_and_piv: tuple | list, b: np.ndarray, trans=0, overwrite_b=False, check_finite=True):
    x = linalg.lu_solve(lu_and_piv, b, trans, False, check_finite)

    def lu_solve_pullback(x̄):
        lu, piv = lu_and_piv
        if b.ndim == 1 and x.ndim > 1:
            rest = trans, overwrite_b, check_finite
            return of_columns(x̄, linalg.lu_solve, lu_and_piv, b, *rest)
        if trans == 1:
            b̄ = linalg.lu_solve((np.conjugate(lu), piv), x̄, 0)
        else:
            b̄ = linalg.lu_solve((lu, piv), x̄, 2 if trans == 0 else 0)
        G = of_equation(b̄, x)
        if trans == 1:
            G = np.swapaxes(G, -1, -2)
        elif trans == 2:
            G = ctranspose(G)
        M̄ = np.take_along_axis(G, permutation_of(piv)[..., None], -2)
        L, U = unpacked(lu)
        c̄ = np.tril(M̄ @ ctranspose(U), -1) + np.triu(ctranspose(L) @ M̄)
        pair = type(lu_and_piv)((match(c̄, lu.shape), NoTangent()))
        return pair, match(b̄, b.shape), NoTangent(), NoTangent(), NoTangent()

    return x, lu_solve_pullback


# -- LDL -------------------------------------------------------------------------------------------


@rrule(linalg.ldl)
def _(A: np.ndarray, lower=True, hermitian=True, overwrite_a=False, check_finite=True):
    y = linalg.ldl(A, lower, hermitian, False, check_finite)

    def ldl_pullback(ȳ):
        if A.ndim > 2:
            return of_each(ȳ, y, linalg.ldl, (2,), A, lower, hermitian, overwrite_a, check_finite)
        return (ldl_cotangent(ȳ, y, lower, hermitian), *[NoTangent()] * 4)

    return y, ldl_pullback


def ldl_cotangent(ȳ, y, lower, is_hermitian):
    """Ā, in the triangle that is read."""
    outer, D, order = y
    star = ctranspose if is_hermitian or D.dtype.kind != "c" else transposed
    L = outer[order]
    L̄ = filled(part(ȳ, 0), outer)[order]
    D̄ = filled(part(ȳ, 1), D)
    blocks = np.eye(len(D), dtype=bool) | (D != 0) | (D.T != 0)
    beyond = np.tril(~blocks, -1) if lower else np.triu(~blocks, 1)
    inner = np.where(beyond, ctranspose(L) @ L̄, 0.0) @ ctranspose(np.linalg.inv(D))
    inner = inner + np.where(blocks, D̄, 0.0)
    M = np.linalg.solve(ctranspose(L), inner)
    if star is ctranspose:
        G = ctranspose(np.linalg.solve(ctranspose(L), ctranspose(M)))
    else:
        G = np.linalg.solve(ctranspose(L), M.T).T
    back = np.argsort(order)
    G = G[back][:, back]
    if star is ctranspose:
        return triangle(hermitian(G), lower)
    both = (G + G.T) * (1 - np.eye(len(G)) / 2)
    return np.tril(both) if lower else np.triu(both)


def transposed(X):
    """The transpose of a matrix."""
    return X.T


# -- QR and RQ -------------------------------------------------------------------------------------


@rrule(linalg.qr)
def _(a: np.ndarray, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    options = {} if lwork is None else {"lwork": lwork}  # SciPy 1.18 warns of it
    y = linalg.qr(a, mode=mode, pivoting=pivoting, check_finite=check_finite, **options)

    def qr_pullback(ȳ):
        A = a
        if pivoting:
            A = np.take_along_axis(a, y[-1][..., None, :], -1)
        if mode == "raw":
            (H, τ), back = call(raw_qr, A)
            packed = part(ȳ, 0)
            bars = raw_cotangents(part(packed, 0), part(packed, 1), part(ȳ, 1), H, τ)
            Ā = back(bars)[1]
        elif mode == "full" and A.shape[-2] > A.shape[-1]:
            _, back = call(complete_qr, A)
            Ā = back((filled(part(ȳ, 0), y[0]), filled(part(ȳ, 1), y[1])))[1]
        else:
            Ā = thin_qr_cotangent(ȳ, y, A, mode)
        if pivoting:
            Ā = np.take_along_axis(Ā, np.argsort(y[-1], axis=-1)[..., None, :], -1)
        return (Ā, *[NoTangent()] * 5)

    return y, qr_pullback


def thin_qr_cotangent(ȳ, y, A, mode):
    """Ā of A = Q R, where Q has no more columns than A."""
    if mode == "r":
        Q = np.linalg.qr(A)[0]
        k = Q.shape[-1]
        R, R̄ = (y, ȳ) if isinstance(y, np.ndarray) else (y[0], part(ȳ, 0))  # an array of a stack
        return qr_cotangent(np.zeros_like(Q), R̄[..., :k, :], Q, R[..., :k, :], A)
    Q, R = y[0], y[1]
    return qr_cotangent(filled(part(ȳ, 0), Q), filled(part(ȳ, 1), R), Q, R, A)


def raw_cotangents(H̄, τ̄, R̄, H, τ):
    """The cotangents of what LAPACK leaves, with that of R, which is a part of it."""
    packed = np.swapaxes(H, -1, -2)
    H̄ = filled(H̄, packed)
    k = min(packed.shape[-2:])
    R̄ = np.triu(filled(R̄, packed[..., :k, :]))
    rows = [(0, 0)] * (R̄.ndim - 2) + [(0, packed.shape[-2] - R̄.shape[-2]), (0, 0)]
    return np.swapaxes(H̄ + np.pad(R̄, rows), -1, -2), filled(τ̄, τ)


@rrule(linalg.qr_multiply)
def _(
    a: np.ndarray, c: np.ndarray, mode="right", pivoting=False, conjugate=False, overwrite_a=False,
    overwrite_c=False,
):  # fmt: skip
    y = linalg.qr_multiply(a, c, mode, pivoting, conjugate)

    def qr_multiply_pullback(ȳ):
        if is_stack((2, EITHER), a, c):
            rest = mode, pivoting, conjugate, overwrite_a, overwrite_c
            return of_each(ȳ, y, linalg.qr_multiply, (2, EITHER), a, c, *rest)
        A = a[:, y[2]] if pivoting else a
        _, back = call(multiplied, A, c, mode, conjugate)
        product = filled(part(ȳ, 0), y[0])
        R = filled(part(ȳ, 1), y[1])
        _, ā, c̄, *_ = back((product, R))
        if pivoting:
            ā = ā[:, np.argsort(y[2])]
        return (ā, c̄, *[NoTangent()] * 5)

    return y, qr_multiply_pullback


def multiplied(A: Any, C: Any, mode: str, conjugate: bool) -> Any:
    """C Q, or Q C, and R."""
    Q, R = np.linalg.qr(A)
    if conjugate:
        Q = np.conjugate(Q)
    return (C @ Q if mode == "right" else Q @ C), R


@rrule(linalg.rq)
def _(a: np.ndarray, overwrite_a=False, lwork=None, mode="full", check_finite=True):
    """A = R Q, by the QR decomposition of A backwards and transposed, but for signs of rows."""
    y = linalg.rq(a, False, lwork, mode, check_finite)

    def rq_pullback(ȳ):
        if a.ndim > 2:
            return of_each(ȳ, y, linalg.rq, (2,), a, overwrite_a, lwork, mode, check_finite)
        m, n = a.shape
        if m > n or (mode == "full" and m < n):
            raise UnsupportedError(
                f"rq of a matrix of shape {a.shape} in mode {mode!r} has no derivative here: "
                "use mode='economic' and at least as many columns as rows"
            )
        R = (y if mode == "r" else y[0])[:, n - m if mode == "r" else 0 :]
        (R0, Q0), back = call(backwards, a)
        signs = np.where(np.real(np.diagonal(R) * np.conjugate(np.diagonal(R0))) < 0, -1.0, 1.0)
        R̄ = ȳ[:, n - m :] if mode == "r" else filled(part(ȳ, 0), R)
        Q̄ = np.zeros_like(Q0) if mode == "r" else filled(part(ȳ, 1), y[1])
        return (back((np.triu(R̄) * signs, Q̄ * signs[:, None]))[1], *[NoTangent()] * 4)

    return y, rq_pullback


def backwards(A: Any) -> Any:
    """R and Q of A = R Q, m ≤ n."""
    Q, R = np.linalg.qr(np.conjugate(np.flip(A, 0).T))
    return np.flip(np.conjugate(R.T)), np.flip(np.conjugate(Q.T), 0)


# -- polar decomposition ---------------------------------------------------------------------------


@rrule(linalg.polar)
def _(a: np.ndarray, side="right"):
    y = linalg.polar(a, side)

    def polar_pullback(ȳ):
        if a.ndim > 2:
            return of_each(ȳ, y, linalg.polar, (2,), a, side)
        U, P = y[0], y[1]
        Ū, P̄ = filled(part(ȳ, 0), U), filled(part(ȳ, 1), P)
        if side == "right":
            return polar_cotangent(Ū, P̄, U, P), NoTangent()
        return ctranspose(polar_cotangent(ctranspose(Ū), P̄, ctranspose(U), P)), NoTangent()

    return y, polar_pullback


def polar_cotangent(Ū, P̄, U, P):
    """Ā of A = U P, where U has at least as many rows as columns."""
    if U.shape[0] < U.shape[1]:
        raise UnsupportedError(
            "the polar decomposition whose positive factor is singular has no derivative: take "
            "the other side"
        )
    H = hermitian(P̄)
    J = ctranspose(U) @ Ū
    W = J - H @ P
    Z = linalg.solve_sylvester(P, P, (W - ctranspose(W)) / 2)
    outside = Ū - U @ J
    return U @ (2 * Z + H) + ctranspose(np.linalg.solve(P, ctranspose(outside)))


# -- Hessenberg form -------------------------------------------------------------------------------


@rrule(linalg.hessenberg)
def _(a: np.ndarray, calc_q=False, overwrite_a=False, check_finite=True):
    y = linalg.hessenberg(a, calc_q, False, check_finite)

    def hessenberg_pullback(ȳ):
        if a.ndim > 2:
            return of_each(ȳ, y, linalg.hessenberg, (2,), a, calc_q, overwrite_a, check_finite)
        (H, Q), back = call(hessenberg_form, a)
        H̄ = filled(part(ȳ, 0), H) if calc_q else ȳ
        Q̄ = filled(part(ȳ, 1), Q) if calc_q else np.zeros_like(Q)
        return back((np.triu(H̄, -1), Q̄))[1], NoTangent(), NoTangent(), NoTangent()

    return y, hessenberg_pullback


def hessenberg_form(A: Any) -> Any:
    """H and Q of A = Q H Qᴴ by reflections. Golub and Van Loan, Matrix computations, section 7.4."""
    n = A.shape[-1]
    Q = np.eye(n, dtype=A.dtype)
    for j in range(n - 1 if n > 2 else 0):  # the last step makes the last entry real
        column = np.where(np.arange(n) > j, A[:, j], 0.0)[j + 1 :, None]
        (v,), (τ,), _ = reflections(column)
        v = np.concatenate((np.zeros(j + 1, A.dtype), v))
        A = A - np.conjugate(τ) * v[:, None] * (np.conjugate(v) @ A)
        A = A - τ * (A @ v)[:, None] * np.conjugate(v)
        Q = Q - τ * (Q @ v)[:, None] * np.conjugate(v)
    return np.triu(A, -1), Q


# -- balancing -------------------------------------------------------------------------------------


@rrule(linalg.matrix_balance)
def _(A: np.ndarray, permute=True, scale=True, separate=False, overwrite_a=False):
    """B = T⁻¹ A T, where T is constant: powers of 2, permuted."""
    y = linalg.matrix_balance(A, permute, scale, separate)

    def balance_pullback(ȳ):
        if A.ndim > 2:
            rest = permute, scale, separate, overwrite_a
            return of_each(ȳ, y, linalg.matrix_balance, (2,), A, *rest)
        T = linalg.matrix_balance(A, permute, scale)[1]
        TH = ctranspose(T)
        Ā = np.linalg.solve(TH, filled(part(ȳ, 0), y[0]) @ TH)
        return (Ā, *[NoTangent()] * 4)

    return y, balance_pullback
