"""Rules of eig, eigh, eigvals, eigvalsh, svd, svdvals, for stacks of matrices too.

    A = V w Vᴴ:      Ā = V (diag w̄ + F ∘ skew(Vᴴ V̄)) Vᴴ,              F = 1 / (wⱼ - wᵢ)
    A = V w V⁻¹:     Ā = V⁻ᴴ (diag w̄ + F* ∘ (Vᴴ V̄')) Vᴴ,             V̄' = V̄ - V diag Re(Vᴴ V̄)
    A = U s Vᴴ:      Ā = U P Vᴴ + (1 - U Uᴴ) Ū s⁻¹ Vᴴ + U s⁻¹ V̄ᴴ (1 - V Vᴴ)
                     P = diag s̄ + (Ω + Ψ) / 2(sⱼ - sᵢ) + (Ω - Ψ) / 2(sⱼ + sᵢ)
                     Ω = Uᴴ Ū - its conjugate transpose,   Ψ likewise of Vᴴ V̄

Equal values: where only they are used, they share their cotangents. Vectors of equal values may be
turned among themselves, and every vector times a phase; what depends on that is refused. So is what
depends on both the vectors and the value of a group of equal ones, unless the cotangents do not mix
them: then the answer is the limit. What vectors of singular values that are zero would add cannot
be seen; it is refused where their values are used. Singular values that are zero have slope 0.
A real value of a real matrix stays real, and so does its vector, which has no phase but its sign.
eigh and eigvalsh read one triangle only, so the cotangent is zero in the other one.
Giles, An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation, report 08/01, Oxford University Computing Laboratory (2008), sections 3.1 and 3.2;
Wan and Zhang, Automatic differentiation for complex valued SVD, arXiv:1909.02659 (2019);
Boeddeker et al., On the computation of complex-valued gradients with application to statistically
optimum beamforming, arXiv:1701.00392 (2017), section 4.
Tests: tests/rules/linalg/test_spectral.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    AbstractZero,
    NoTangent,
    UnsupportedError,
    non_differentiable,
    partial_functions,
    rrule,
)
from morula.rules.linalg.parts import (
    apart,
    beside_vectors,
    both,
    ctranspose,
    diagonal,
    field,
    filled,
    hermitian,
    involved,
    of_values,
    on_diagonal,
    precision,
    read_of,
    repeated,
    require_distinct,
    require_zero,
    shared,
    triangle,
    vanishing,
)

PHASE = (
    "the gradient depends on the phases of complex eigenvectors or singular vectors, which are not "
    "determined: use what does not change with them, as abs(v) or v v^H"
)
TURNED = (
    "the gradient depends on the choice of eigenvectors or singular vectors of equal values, which "
    "is not determined: use what does not change with it, as the projection on their span, or "
    "functions of the matrix itself (solve, expm, norm)"
)
NO_VECTORS = (
    "the gradient runs through a singular value that is zero and through singular vectors, which "
    "have no derivative there: use functions of the matrix itself, or leave these values out"
)


# -- Hermitian matrices ----------------------------------------------------------------------------


def hermitian_eigen_cotangent(w̄, V̄, w, V):
    """Ā, Hermitian, of A ↦ (w, V)."""
    if isinstance(V̄, AbstractZero):
        return of_eigenvalues(filled(w̄, w), w, V)
    w̄ = filled(w̄, w)
    K = ctranspose(V) @ V̄
    inner = beside_vectors(w̄, w, False) + over_gaps((K - ctranspose(K)) / 2, K, w̄, w)
    return hermitian(V @ inner @ ctranspose(V))


def of_eigenvalues(w̄, w, V):
    """The same, if the vectors have no cotangents."""
    return hermitian(V @ of_values(w̄, w, False) @ ctranspose(V))


def over_gaps(skew, K, w̄, w):
    """skewᵢⱼ / (wⱼ - wᵢ), where equal values add nothing; K tells what mixes them."""
    same = repeated(w)
    refuse_mixed(skew, K, w̄, same)
    gaps = w[..., None, :] - w[..., :, None]
    return apart(skew / np.where(same, 1.0, gaps), same)


def refuse_mixed(skew: Any, K: Any, w̄: Any, same: Any) -> None:
    """Refuse cotangents that tell vectors of equal values apart, or mix them with the values."""
    own = np.eye(same.shape[-1], dtype=bool)
    require_zero(skew, own, K, PHASE)
    require_zero(skew, same & ~own, K, TURNED)
    used = involved(w̄)
    require_zero(K, same & ~own & (used[..., None, :] | used[..., :, None]), K, TURNED)


non_differentiable(refuse_mixed)
partial_functions(refuse_mixed)


@rrule(np.linalg.eigh)
def _(a: np.ndarray, UPLO="L"):
    y = np.linalg.eigh(a, UPLO)
    w, V = y

    def eigh_pullback(ȳ):
        H = hermitian_eigen_cotangent(field(ȳ, 0, "eigenvalues"), field(ȳ, 1, "eigenvectors"), w, V)
        return triangle(H, UPLO in ("L", "l")), NoTangent()

    return y, eigh_pullback


@rrule(np.linalg.eigvalsh)
def _(a: np.ndarray, UPLO="L"):
    def eigvalsh_pullback(w̄):
        w, V = np.linalg.eigh(a, UPLO)
        H = V @ of_values(w̄, w, False) @ ctranspose(V)
        return triangle(H, UPLO in ("L", "l")), NoTangent()

    return np.linalg.eigvalsh(a, UPLO), eigvalsh_pullback


# -- other square matrices -------------------------------------------------------------------------


def eigen_cotangent(w̄, V̄, w, V, is_real):
    """Ā of A ↦ (w, V), where the columns of V have length 1; is_real tells that A is."""
    refuse_defective(V)
    VH = ctranspose(V)
    if isinstance(V̄, AbstractZero):
        inner = on_diagonal(shared(filled(w̄, w), w))
    else:
        # What depends on values and vectors, as V f(w) V⁻¹ does, need not show in V̄.
        require_distinct(w, "a function of the eigenvectors")
        w̄ = filled(w̄, w)
        if is_real:
            V̄ = np.where(w.imag[..., None, :] == 0, V̄.real, V̄)
        K = VH @ V̄
        require_zero(1j * diagonal(K).imag, True, K, PHASE)
        X = VH @ (V̄ - V * diagonal(K).real[..., None, :])
        inner = on_diagonal(w̄) + over_conjugate_gaps(X, K, w̄, w)
    return np.linalg.solve(VH, inner @ VH)


def over_conjugate_gaps(X, K, w̄, w):
    """Xᵢⱼ / (wⱼ - wᵢ)*, where equal values add nothing."""
    same = repeated(w)
    require_zero(X, same & ~np.eye(w.shape[-1], dtype=bool), K, TURNED)
    gaps = (w[..., None, :] - w[..., :, None]).conjugate()
    return np.where(same, 0.0, X / np.where(same, 1.0, gaps))


def refuse_defective(V: Any) -> None:
    """Refuse a matrix that has no basis of eigenvectors: its eigenvalues have no derivative."""
    if V.size and np.any(np.linalg.cond(V) * precision(V) > 1e-2):
        raise UnsupportedError(
            "a matrix without a basis of eigenvectors has equal eigenvalues that have no derivative"
        )


non_differentiable(refuse_defective)
partial_functions(refuse_defective)


@rrule(np.linalg.eig)
def _(a: np.ndarray):
    y = np.linalg.eig(a)
    w, V = y

    def eig_pullback(ȳ):
        w̄, V̄ = field(ȳ, 0, "eigenvalues"), field(ȳ, 1, "eigenvectors")
        return (eigen_cotangent(w̄, V̄, w, V, np.isrealobj(a)),)

    return y, eig_pullback


@rrule(np.linalg.eigvals)
def _(a: np.ndarray):
    y = np.linalg.eigvals(a)

    def eigvals_pullback(w̄):
        w, V = np.linalg.eig(a)
        order = matching(y, w)
        w̄ = np.take_along_axis(w̄, order, -1)
        refuse_defective(V)
        VH = ctranspose(V)
        return (np.linalg.solve(VH, shared(w̄, w)[..., None] * VH),)

    return y, eigvals_pullback


def matching(y: Any, w: Any) -> Any:
    """Where in y the values w stand, which are the same in another order and to rounding."""
    order = np.empty(w.shape, int)
    for k in np.ndindex(w.shape[:-1]):
        distance = np.absolute(y[k][None, :] - w[k][:, None])
        for i in range(w.shape[-1]):
            order[k][i] = j = np.argmin(distance[i])
            distance[:, j] = np.inf
    return order


non_differentiable(matching)


# -- singular values -------------------------------------------------------------------------------


def singular_cotangent(Ū, s̄, V̄h, U, s, Vh):
    """Ā of A ↦ (U, s, Vᴴ); U and V may have more columns than there are singular values."""
    if isinstance(Ū, AbstractZero) and isinstance(V̄h, AbstractZero):
        return values_cotangent(filled(s̄, s), U, s, Vh)
    k = s.shape[-1]
    V = ctranspose(Vh)
    U, Ū = of_basis(U, filled(Ū, U), k)
    V, V̄ = of_basis(V, ctranspose(filled(V̄h, Vh)), k)
    s̄ = filled(s̄, s)
    zero = vanishing(s)
    J = ctranspose(U) @ Ū
    K = ctranspose(V) @ V̄
    Ω = J - ctranspose(J)
    Ψ = K - ctranspose(K)
    refuse_mixed_singular(J, K, s̄, repeated(s), zero)
    inner = (
        beside_vectors(s̄, s, zero)
        + over_gaps_of(Ω + Ψ, s)
        + over(Ω - Ψ, 2 * (s[..., None, :] + s[..., :, None]), both(zero))
    )
    outside = over_values(Ū - U @ J, s, zero, Ū)
    across = over_values(V̄ - V @ K, s, zero, V̄)
    return (U @ inner + outside) @ ctranspose(V) + U @ ctranspose(across)


def values_cotangent(s̄, U, s, Vh):
    """Ā, where only the singular values are used; those that are zero have slope 0."""
    k = s.shape[-1]
    return U[..., :, :k] @ of_values(s̄, s, vanishing(s)) @ Vh[..., :k, :]


def of_basis(U, Ū, k):
    """The first k columns of a basis, and their cotangent with what the others add.

    The others span the complement, dU₂ = -U dUᴴ U₂; how they are turned is not determined.
    """
    if U.shape[-1] == k:
        return U, Ū
    rest = ctranspose(U[..., k:]) @ Ū[..., k:]
    require_zero(rest - ctranspose(rest), True, Ū, TURNED)
    first = U[..., :k]
    return first, Ū[..., :k] - U[..., k:] @ (ctranspose(Ū[..., k:]) @ first)


def refuse_mixed_singular(J: Any, K: Any, s̄: Any, same: Any, zero: Any) -> None:
    """As `refuse_mixed`, for singular vectors on both sides."""
    size = np.maximum(np.absolute(J), np.absolute(K))
    own = np.eye(same.shape[-1], dtype=bool)
    apart = same & ~own
    turned = J - ctranspose(J) + K - ctranspose(K)
    require_zero(turned, own, size, PHASE)
    require_zero(turned, apart, size, TURNED)
    require_zero(J - ctranspose(J), both(zero), size, TURNED)
    used = involved(s̄)
    mixed = apart & (used[..., None, :] | used[..., :, None])
    require_zero(J, mixed, size, TURNED)
    require_zero(K, mixed, size, TURNED)
    if np.any(used & zero):
        raise UnsupportedError(NO_VECTORS)


non_differentiable(refuse_mixed_singular)
partial_functions(refuse_mixed_singular)


def over_gaps_of(X, s):
    """Xᵢⱼ / 2(sⱼ - sᵢ), where equal values add nothing."""
    same = repeated(s)
    gaps = 2 * (s[..., None, :] - s[..., :, None])
    return apart(X / np.where(same, 1.0, gaps), same)


def over(X, divisor, where):
    """X / divisor, and 0 where the mask holds."""
    return np.where(where, 0.0, X / np.where(where, 1.0, divisor))


def over_values(X, s, zero, size):
    """The columns of X over the singular values; where these are zero, so must X be."""
    require_zero(X, zero[..., None, :], size, NO_VECTORS)
    return over(X, s[..., None, :], zero[..., None, :])


@rrule(np.linalg.svd)
def _(a: np.ndarray, full_matrices=True, compute_uv=True, hermitian=False):
    y = np.linalg.svd(a, full_matrices, compute_uv, hermitian)

    def svd_pullback(ȳ):
        if compute_uv:
            Ū, s̄, V̄h = field(ȳ, 0, "U"), field(ȳ, 1, "S"), field(ȳ, 2, "Vh")
            Ā = singular_cotangent(Ū, s̄, V̄h, y[0], y[1], y[2])
        else:
            U, s, Vh = np.linalg.svd(a, False, True, hermitian)
            Ā = values_cotangent(ȳ, U, s, Vh)
        return read_of(Ā, hermitian), NoTangent(), NoTangent(), NoTangent()

    return y, svd_pullback


@rrule(np.linalg.svdvals)
def _(x: np.ndarray):
    def svdvals_pullback(s̄):
        U, s, Vh = np.linalg.svd(x, full_matrices=False)
        return (values_cotangent(s̄, U, s, Vh),)

    return np.linalg.svdvals(x), svdvals_pullback
