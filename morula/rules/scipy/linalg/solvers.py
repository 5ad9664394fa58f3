"""Rules of scipy.linalg's solvers of linear equations, inverses, determinants, least squares, norms.

    X = op(A)⁻¹ B:    B̄ = op(A)⁻ᴴ X̄,   G = -B̄ Xᴴ is the cotangent of op(A)

Where a structure of A was declared, only the entries that are read have a cotangent. Operands are
never overwritten.
Shapes: stacks of matrices where SciPy takes them.
Giles, An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation, report 08/01, Oxford University Computing Laboratory (2008).
Tests: tests/rules/scipy/test_linalg.py
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from morula.core.extend import NoTangent, call, rrule
from morula.rules.arrays.broadcasting import match, part
from morula.rules.arrays.sequences import as_array
from morula.rules.arrays.types import Anything
from morula.rules.linalg.inverses import lstsq_cotangents, pinv_cotangent
from morula.rules.linalg.matrices import adjugate, is_singular
from morula.rules.linalg.parts import ctranspose, hermitian, triangle
from morula.rules.scipy.linalg.stacks import EITHER, is_stack, of_columns, of_each

SYMMETRIC = ("sym", "symmetric")
HERMITIAN = ("her", "hermitian", "pos", "positive definite")
TRANSPOSED, CONJUGATED = (1, "T"), (2, "C")  # how op is named
WITH_ZEROS = ("upper triangular", "lower triangular", "diagonal", "tridiagonal")


def read_of(G, assume_a, lower):
    """The cotangent of A where it is read as a matrix of this structure whose cotangent is G."""
    if assume_a in SYMMETRIC:
        return of_symmetric(G, lower)
    if assume_a in HERMITIAN:
        return triangle(hermitian(G), lower)
    return structured(G, assume_a)


def of_symmetric(G, lower):
    """That of the triangle which is read."""
    both = G + np.swapaxes(G, -1, -2)
    both = both * (1 - np.eye(G.shape[-1]) / 2)
    return np.tril(both) if lower else np.triu(both)


def structured(A, assume_a):
    """The entries of a matrix that are read where it has this structure, not a symmetric one."""
    return within_bands(A, assume_a) if assume_a in WITH_ZEROS else A


def within_bands(A, assume_a):
    if assume_a == "upper triangular":
        return np.triu(A)
    if assume_a == "lower triangular":
        return np.tril(A)
    if assume_a == "diagonal":
        return A * np.eye(A.shape[-1])
    return np.tril(np.triu(A, -1), 1)


def of_equation(b̄, x):
    """-B̄ Xᴴ, for vectors too."""
    if x.ndim == 1:
        return -b̄[:, None] * np.conjugate(x)
    return -b̄ @ ctranspose(x)


def conjugated(assume_a):
    """The structure of the conjugate transpose."""
    if assume_a == "upper triangular":
        return "lower triangular"
    return "upper triangular" if assume_a == "lower triangular" else assume_a


@rrule(linalg.solve)
def _(
    a: np.ndarray, b: np.ndarray, lower=False, overwrite_a=False, overwrite_b=False,
    check_finite=True, assume_a=None, transposed=False,
):  # fmt: skip
    x = linalg.solve(a, b, lower, False, False, check_finite, assume_a, transposed)

    def solve_pullback(x̄):
        if b.ndim == 1 and x.ndim > 1:
            rest = lower, overwrite_a, overwrite_b, check_finite, assume_a, transposed
            return of_columns(x̄, linalg.solve, a, b, *rest)
        one_triangle = assume_a in SYMMETRIC or assume_a in HERMITIAN
        if one_triangle:
            A = np.conjugate(a) if assume_a in SYMMETRIC else a
            b̄ = linalg.solve(A, x̄, lower, False, False, check_finite, assume_a)
        else:
            A = np.conjugate(a) if transposed else ctranspose(a)
            structure = assume_a if transposed else conjugated(assume_a)
            b̄ = linalg.solve(A, x̄, False, False, False, check_finite, structure)
        G = of_equation(b̄, x)
        if transposed and not one_triangle:
            G = np.swapaxes(G, -1, -2)
        ā = match(read_of(G, assume_a, lower), a.shape)
        return (
            ā, match(b̄, b.shape), NoTangent(), NoTangent(), NoTangent(), NoTangent(), NoTangent(),
            NoTangent(),
        )  # fmt: skip

    return x, solve_pullback


@rrule(linalg.solve_triangular)
def _(
    a: np.ndarray, b: np.ndarray, trans=0, lower=False, unit_diagonal=False, overwrite_b=False,
    check_finite=True,
):  # fmt: skip
    x = linalg.solve_triangular(a, b, trans, lower, unit_diagonal, False, check_finite)

    def solve_triangular_pullback(x̄):
        if b.ndim == 1 and x.ndim > 1:
            rest = trans, lower, unit_diagonal, overwrite_b, check_finite
            return of_columns(x̄, linalg.solve_triangular, a, b, *rest)
        A = np.conjugate(a) if trans in TRANSPOSED else a
        is_as_it_is = trans not in TRANSPOSED and trans not in CONJUGATED
        b̄ = linalg.solve_triangular(A, x̄, 2 if is_as_it_is else 0, lower, unit_diagonal)
        G = turned(of_equation(b̄, x), trans)
        ā = triangle_read(G, lower, unit_diagonal)
        return (
            match(ā, a.shape), match(b̄, b.shape), NoTangent(), NoTangent(), NoTangent(),
            NoTangent(), NoTangent(),
        )  # fmt: skip

    return x, solve_triangular_pullback


def turned(A, trans):
    """op(A)."""
    if trans in TRANSPOSED:
        return np.swapaxes(A, -1, -2)
    return ctranspose(A) if trans in CONJUGATED else A


def triangle_read(A, lower, unit_diagonal):
    """What of a triangular matrix is read."""
    if lower:
        return np.tril(A, -1 if unit_diagonal else 0)
    return np.triu(A, 1 if unit_diagonal else 0)


@rrule(linalg.inv)
def _(a: np.ndarray, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False):
    y = linalg.inv(a, False, check_finite, assume_a=assume_a, lower=lower)

    def inv_pullback(ȳ):
        yH = ctranspose(y)
        return read_of(-yH @ ȳ @ yH, assume_a, lower), NoTangent(), NoTangent()

    return y, inv_pullback


@rrule(linalg.det)
def _(a: np.ndarray, overwrite_a=False, check_finite=True):
    y = linalg.det(a, False, check_finite)

    def det_pullback(ȳ):
        wide = np.asarray(ȳ)[..., None, None]
        if is_singular(a):
            return ctranspose(adjugate(a)) * wide, NoTangent(), NoTangent()
        factor = wide * np.conjugate(np.asarray(y))[..., None, None]
        return factor * ctranspose(np.linalg.inv(a)), NoTangent(), NoTangent()

    return y, det_pullback


@rrule(linalg.pinv)
def _(a: np.ndarray, *, atol=None, rtol=None, return_rank=False, check_finite=True):
    y = linalg.pinv(a, atol=atol, rtol=rtol, return_rank=return_rank, check_finite=check_finite)

    def pinv_pullback(ȳ):
        if return_rank:
            return (pinv_cotangent(part(ȳ, 0), a, y[0]),)
        return (pinv_cotangent(ȳ, a, y),)

    return y, pinv_pullback


@rrule(linalg.pinvh)
def _(a: np.ndarray, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True):
    y = linalg.pinvh(a, atol, rtol, lower, return_rank, check_finite)

    def pinvh_pullback(ȳ):
        Y, Ȳ = (y[0], part(ȳ, 0)) if return_rank else (y, ȳ)
        whole = triangle(a, lower)  # all of A, out of the triangle that is read
        A = (whole + ctranspose(whole)) / 2
        G = pinv_cotangent(Ȳ, A, Y)
        return (triangle(hermitian(G), lower), *[NoTangent()] * 5)

    return y, pinvh_pullback


@rrule(linalg.lstsq)
def _(
    a: np.ndarray, b: np.ndarray, cond=None, overwrite_a=False, overwrite_b=False,
    check_finite=True, lapack_driver=None,
):  # fmt: skip
    y = linalg.lstsq(a, b, cond, False, False, check_finite, lapack_driver)

    def lstsq_pullback(ȳ):
        if is_stack((2, EITHER), a, b):
            rest = cond, overwrite_a, overwrite_b, check_finite, lapack_driver
            return of_each(ȳ, y, linalg.lstsq, (2, EITHER), a, b, *rest)
        s̄ = NoTangent() if y[3] is None else part(ȳ, 3)  # gelsy gives no singular values
        Ā, B̄ = lstsq_cotangents(part(ȳ, 0), part(ȳ, 1), s̄, a, b, y)
        return (Ā, B̄, *[NoTangent()] * 5)

    return y, lstsq_pullback


@rrule(linalg.norm)
def _(a: Anything, ord=None, axis=None, keepdims=False, check_finite=True):
    x = as_array(a)  # a list may change until it is asked

    def norm_pullback(ȳ):
        _, back = call(np.linalg.norm, x, ord, axis, keepdims)
        return (*back(ȳ)[1:], NoTangent())

    return linalg.norm(a, ord, axis, keepdims, check_finite), norm_pullback


def complex_if(A, E):
    """A, complex if E is: SciPy's Schur forms do not mix."""
    return A + 0j if np.iscomplexobj(E) and not np.iscomplexobj(A) else A


# -- equations of matrices -------------------------------------------------------------------------


@rrule(linalg.solve_sylvester)
def _(a: np.ndarray, b: np.ndarray, q: np.ndarray):
    """A X + X B = Q: the equation of Q̄ has Aᴴ and Bᴴ; Ā = -Q̄ Xᴴ, B̄ = -Xᴴ Q̄."""
    x = linalg.solve_sylvester(a, b, q)

    def sylvester_pullback(x̄):
        if is_stack((2, 2, 2), a, b, q):
            return of_each(x̄, x, linalg.solve_sylvester, (2, 2, 2), a, b, q)
        A, B = complex_if(ctranspose(a), x̄), complex_if(ctranspose(b), x̄)
        q̄ = linalg.solve_sylvester(A, B, x̄)
        return -q̄ @ ctranspose(x), -ctranspose(x) @ q̄, q̄

    return x, sylvester_pullback


@rrule(linalg.solve_continuous_lyapunov)
def _(a: np.ndarray, q: np.ndarray):
    """A X + X Aᴴ = Q."""
    x = linalg.solve_continuous_lyapunov(a, q)

    def lyapunov_pullback(x̄):
        if is_stack((2, 2), a, q):
            return of_each(x̄, x, linalg.solve_continuous_lyapunov, (2, 2), a, q)
        q̄ = linalg.solve_continuous_lyapunov(ctranspose(a), x̄)
        return -q̄ @ ctranspose(x) - ctranspose(q̄) @ x, q̄

    return x, lyapunov_pullback


@rrule(linalg.solve_discrete_lyapunov)
def _(a: np.ndarray, q: np.ndarray, method=None):
    """X = A X Aᴴ + Q."""
    x = linalg.solve_discrete_lyapunov(a, q, method)

    def lyapunov_pullback(x̄):
        if is_stack((2, 2), a, q):
            return of_each(x̄, x, linalg.solve_discrete_lyapunov, (2, 2), a, q, method)
        q̄ = linalg.solve_discrete_lyapunov(ctranspose(a), x̄, method)
        ā = q̄ @ a @ ctranspose(x) + ctranspose(q̄) @ a @ x
        return ā, q̄, NoTangent()

    return x, lyapunov_pullback


# Riccati: the residual's derivative by X is a Lyapunov operator of the closed loop, whose adjoint
# equation gives Z; the cotangents of the data are those of the residual for -Z.
# Kao and Hennequin, Automatic differentiation of Sylvester, Lyapunov, and algebraic Riccati
# equations, arXiv:2011.11430 (2020).


def continuous_residual(a, b, q, r, e, s, X):
    """Aᴴ X E + Eᴴ X A - (Eᴴ X B + S) R⁻¹ (Bᴴ X E + Sᴴ) + Q."""
    XE = X if e is None else X @ e
    gain = np.conjugate(b.T) @ XE
    if s is not None:
        gain = gain + np.conjugate(s.T)
    AX = np.conjugate(a.T) @ XE
    return AX + np.conjugate(AX.T) - np.conjugate(gain.T) @ np.linalg.solve(r, gain) + q


def discrete_residual(a, b, q, r, e, s, X):
    """Aᴴ X A - Eᴴ X E - (Aᴴ X B + S) (R + Bᴴ X B)⁻¹ (Bᴴ X A + Sᴴ) + Q."""
    EXE = X if e is None else np.conjugate(e.T) @ X @ e
    gain = np.conjugate(b.T) @ X @ a
    if s is not None:
        gain = gain + np.conjugate(s.T)
    inner = r + np.conjugate(b.T) @ X @ b
    AXA = np.conjugate(a.T) @ X @ a
    return AXA - EXE - np.conjugate(gain.T) @ np.linalg.solve(inner, gain) + q


def _riccati(primal, residual, adjoint):
    @rrule(primal)
    def _(
        a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray,
        e: np.ndarray | None = None, s: np.ndarray | None = None, balanced=True,
    ):  # fmt: skip
        x = primal(a, b, q, r, e, s, balanced)

        def riccati_pullback(x̄):
            operands = a, b, q, r, e, s
            if is_stack((2,) * 6, *operands):
                return of_each(x̄, x, primal, (2,) * 6, *operands, balanced)
            Z = adjoint(hermitian(x̄), a, b, r, e, s, x)
            _, back = call(residual, a, b, q, r, e, s, x)
            bars = back(Z)[1:7]
            return (*bars, NoTangent())

        return x, riccati_pullback


def continuous_adjoint(X̄, a, b, r, e, s, X):
    """Z with Aᶜ Z Eᴴ + E Z Aᶜᴴ = -X̄, Aᶜ = A - B R⁻¹ (Bᴴ X E + Sᴴ)."""
    gain = ctranspose(b) @ (X if e is None else X @ e)
    if s is not None:
        gain = gain + ctranspose(s)
    closed = a - b @ np.linalg.solve(r, gain)
    if e is not None:
        closed = np.linalg.solve(e, closed)
        X̄ = np.linalg.solve(e, ctranspose(np.linalg.solve(e, ctranspose(X̄))))
    return linalg.solve_continuous_lyapunov(closed, -X̄)


def discrete_adjoint(X̄, a, b, r, e, s, X):
    """Z with Aᶜ Z Aᶜᴴ - E Z Eᴴ = -X̄, Aᶜ = A - B (R + Bᴴ X B)⁻¹ (Bᴴ X A + Sᴴ)."""
    gain = ctranspose(b) @ X @ a
    if s is not None:
        gain = gain + ctranspose(s)
    closed = a - b @ np.linalg.solve(r + ctranspose(b) @ X @ b, gain)
    if e is not None:
        closed = np.linalg.solve(e, closed)
        X̄ = np.linalg.solve(e, ctranspose(np.linalg.solve(e, ctranspose(X̄))))
    return linalg.solve_discrete_lyapunov(closed, X̄)


_riccati(linalg.solve_continuous_are, continuous_residual, continuous_adjoint)
_riccati(linalg.solve_discrete_are, discrete_residual, discrete_adjoint)
