"""Rules of scipy.linalg's eigenvalues, singular values and Schur form.

    A V = B V w, Vᴴ B V = 1:    Ā = V M Vᴴ,   B̄ = -V (M w + w M + herm K) Vᴴ / 2
                                M = diag w̄ + F ∘ skew K,  K = Vᴴ V̄

What is said of equal values and of phases in rules/linalg/spectral.py holds here too. Where a part of
the values was selected, the others are computed for the derivative.
Giles (2008), as in rules/linalg; Boeddeker et al., arXiv:1701.00392 (2017), section 4.4.
Tests: tests/rules/scipy/test_linalg_spectral.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from morula.core.extend import (
    ZERO,
    AbstractZero,
    NoTangent,
    UnsupportedError,
    frule,
    is_zero,
    non_differentiable,
    rrule,
)
from morula.rules.arrays.broadcasting import match, part
from morula.rules.arrays.pushforwards import fitted
from morula.rules.arrays.types import Anything
from morula.rules.linalg.parts import (
    beside_vectors,
    ctranspose,
    diagonal,
    filled,
    hermitian,
    of_values,
    on_diagonal,
    require_distinct,
    require_zero,
    shared,
    tangent_of_values,
    triangle,
)
from morula.rules.linalg.pushforwards import read_from, singular_tangents
from morula.rules.linalg.spectral import (
    PHASE,
    eigen_cotangent,
    matching,
    over_gaps,
    refuse_defective,
    singular_cotangent,
    values_cotangent,
)
from morula.rules.scipy.linalg.stacks import is_stack, of_each

OF_ANOTHER_TYPE = "scipy.linalg.eigh of type {} has no derivative here: write it with type=1"

# -- Hermitian -------------------------------------------------------------------------------------


def hermitian_cotangents(w̄, V̄, w, V, generalised):
    """Ā and B̄, Hermitian, of (A, B) ↦ (w, V) for all values; B̄ is None without B."""
    VH = ctranspose(V)
    if isinstance(V̄, AbstractZero):
        K = None
        M = of_values(filled(w̄, w), w, False).astype(V.dtype)
    else:
        w̄ = filled(w̄, w)
        K = VH @ V̄
        M = beside_vectors(w̄, w, False) + over_gaps((K - ctranspose(K)) / 2, K, w̄, w)
    Ā = hermitian(V @ M @ VH)
    if not generalised:
        return Ā, None
    N = M * w[..., None, :] + M * w[..., :, None]
    if K is not None:
        N = N + hermitian(K)
    return Ā, -hermitian(V @ N @ VH) / 2


def embedded(w̄, V̄, chosen, w, V, selected):
    """Cotangents of selected values and vectors among those of all; V by the selected ones' signs."""
    where = chosen[:, None] == np.arange(len(w))
    if not isinstance(w̄, AbstractZero):
        w̄ = w̄ @ where
    if not isinstance(V̄, AbstractZero):
        turns = np.sum(np.conjugate(V[:, chosen]) * selected, axis=0)
        turns = turns / np.absolute(turns)
        V̄ = (V̄ * np.conjugate(turns)) @ where
    return w̄, V̄


def positions(all_values: Any, found: Any) -> Any:
    """Where ascending values that were selected begin among all of them, by their closeness."""
    n = len(found)
    spans = range(len(all_values) - n + 1)
    distance = [np.sum(np.absolute(all_values[i : i + n] - found)) for i in spans]
    return int(np.argmin(distance)) + np.arange(n)


def eigh_cotangents(w̄, V̄, a, b, lower, found, selected, type):
    """Ā and B̄ in the triangles that are read."""
    if type != 1:
        raise UnsupportedError(OF_ANOTHER_TYPE.format(type))
    w, V = linalg.eigh(a, b, lower=lower)
    if len(found) < len(w):
        chosen = positions(w, found)
        w̄, V̄ = embedded(w̄, V̄, chosen, w, V, selected)
    elif not isinstance(V̄, AbstractZero):
        V = selected
    Ā, B̄ = hermitian_cotangents(w̄, V̄, w, V, b is not None)
    return triangle(Ā, lower), NoTangent() if b is None else triangle(B̄, lower)


@rrule(linalg.eigh)
def _(
    a: np.ndarray, b: np.ndarray | None = None, /, *, lower=True, eigvals_only=False, overwrite_a=False,
    overwrite_b=False, type=1, check_finite=True, subset_by_index=None, subset_by_value=None,
    driver=None,
):  # fmt: skip
    y = linalg.eigh(
        a, b, lower=lower, eigvals_only=eigvals_only, type=type, check_finite=check_finite,
        subset_by_index=subset_by_index, subset_by_value=subset_by_value, driver=driver,
    )  # fmt: skip

    def eigh_pullback(ȳ):
        if is_stack((2, 2), a, b):
            if type != 1 or subset_by_index is not None or subset_by_value is not None:
                one = partial(
                    linalg.eigh, lower=lower, eigvals_only=eigvals_only, type=type,
                    subset_by_index=subset_by_index, subset_by_value=subset_by_value,
                )  # fmt: skip
                return of_each(ȳ, y, one, (2, 2), a, b)
            return stacked_eigh(ȳ, y, a, b, lower, eigvals_only)
        if eigvals_only:
            return eigh_cotangents(ȳ, ZERO, a, b, lower, y, None, type)
        return eigh_cotangents(part(ȳ, 0), part(ȳ, 1), a, b, lower, y[0], y[1], type)

    return y, eigh_pullback


def stacked_eigh(ȳ, y, a, b, lower, eigvals_only):
    """The same for a stack of matrices, all values."""
    if eigvals_only:
        w, V = linalg.eigh(a, b, lower=lower)
        Ā, B̄ = hermitian_cotangents(ȳ, ZERO, w, V, b is not None)
    else:
        Ā, B̄ = hermitian_cotangents(part(ȳ, 0), part(ȳ, 1), y[0], y[1], b is not None)
    ā = match(triangle(Ā, lower), a.shape)
    return ā, NoTangent() if b is None else match(triangle(B̄, lower), b.shape)


@rrule(linalg.eigvalsh)
def _(
    a: np.ndarray, b: np.ndarray | None = None, /, *, lower=True, overwrite_a=False,
    overwrite_b=False, type=1, check_finite=True, subset_by_index=None, subset_by_value=None,
    driver=None,
):  # fmt: skip
    y = linalg.eigvalsh(
        a, b, lower=lower, type=type, check_finite=check_finite, subset_by_index=subset_by_index,
        subset_by_value=subset_by_value, driver=driver,
    )  # fmt: skip

    def eigvalsh_pullback(w̄):
        if is_stack((2, 2), a, b):
            if type != 1 or subset_by_index is not None or subset_by_value is not None:
                one = partial(
                    linalg.eigvalsh, lower=lower, type=type, subset_by_index=subset_by_index,
                    subset_by_value=subset_by_value,
                )  # fmt: skip
                return of_each(w̄, y, one, (2, 2), a, b)
            return stacked_eigh(w̄, y, a, b, lower, True)
        return eigh_cotangents(w̄, ZERO, a, b, lower, y, None, type)

    return y, eigvalsh_pullback


# -- banded and tridiagonal ------------------------------------------------------------------------


def dense_triangle(bands, lower):
    """The triangular matrix of a banded storage."""
    u, n = bands.shape[0] - 1, bands.shape[1]
    shift = np.arange(n)[:, None] - np.arange(n)
    row = shift if lower else shift + u
    inside = (shift >= 0) & (shift <= u) if lower else (shift <= 0) & (shift >= -u)
    columns = np.broadcast_to(np.arange(n), (n, n))
    return np.where(inside, bands[np.where(inside, row, 0), columns], 0.0)


def dense_of(bands, lower):
    """The Hermitian matrix of a banded storage."""
    half = dense_triangle(bands, lower)
    return half + ctranspose(half) - on_diagonal(np.conjugate(diagonal(half)))


def bands_of(H, u, lower):
    """The cotangent of the storage: that of A in one triangle, band by band."""
    H = triangle(H, lower)
    n = H.shape[0]
    rows = []
    for k in range(u + 1):
        band = np.diagonal(H, -k if lower else k)
        rest = np.zeros(n - len(band), H.dtype)
        rows.append(np.concatenate((band, rest) if lower else (rest, band)))
    return np.stack(rows if lower else rows[::-1])


def _banded(primal):
    @rrule(primal)
    def _(a_band: np.ndarray, lower=False, *rest: Anything, **keywords):
        y = primal(a_band, lower, *rest, **keywords)

        def banded_pullback(ȳ):
            if a_band.ndim > 2:
                return of_each(ȳ, y, partial(primal, **keywords), (2,), a_band, lower, *rest)
            values_only = not isinstance(y, tuple)
            A = dense_of(a_band, lower)
            w̄, V̄ = (ȳ, ZERO) if values_only else (part(ȳ, 0), part(ȳ, 1))
            found, vectors = (y, None) if values_only else y
            H = dense_cotangent(w̄, V̄, A, found, vectors)
            bars = bands_of(H, a_band.shape[0] - 1, lower)
            return (bars, NoTangent(), *[NoTangent()] * len(rest))

        return y, banded_pullback


def dense_cotangent(w̄, V̄, A, found, vectors):
    """The Hermitian cotangent of a Hermitian matrix."""
    w, V = linalg.eigh(A)
    w̄, V̄ = embedded(w̄, V̄, positions(w, found), w, V, vectors)
    return hermitian_cotangents(w̄, V̄, w, V, False)[0]


_banded(linalg.eig_banded)
_banded(linalg.eigvals_banded)


def _tridiagonal(primal):
    @rrule(primal)
    def _(d: np.ndarray, e: np.ndarray, *rest: Anything, **keywords):
        y = primal(d, e, *rest, **keywords)

        def tridiagonal_pullback(ȳ):
            if is_stack((1, 1), d, e):
                return of_each(ȳ, y, partial(primal, **keywords), (1, 1), d, e, *rest)
            values_only = not isinstance(y, tuple)
            A = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
            w̄, V̄ = (ȳ, ZERO) if values_only else (part(ȳ, 0), part(ȳ, 1))
            found, vectors = (y, None) if values_only else y
            H = dense_cotangent(w̄, V̄, A, found, vectors)
            none = [NoTangent()] * len(rest)
            return (np.diagonal(H), 2 * np.diagonal(H, 1), *none)

        return y, tridiagonal_pullback


_tridiagonal(linalg.eigh_tridiagonal)
_tridiagonal(linalg.eigvalsh_tridiagonal)

# -- general ---------------------------------------------------------------------------------------


def pencil_cotangents(C̄, a, b):
    """Ā and B̄ out of the cotangent of C = B⁻¹ A."""
    if b is None:
        return C̄, NoTangent()
    Ā = np.linalg.solve(ctranspose(b), C̄)
    B̄ = -Ā @ ctranspose(np.linalg.solve(b, a))
    return match(Ā, a.shape), match(B̄, b.shape)


@rrule(linalg.eig)
def _(
    a: np.ndarray, b: np.ndarray | None = None, /, left=False, right=True, overwrite_a=False,
    overwrite_b=False, check_finite=True, homogeneous_eigvals=False,
):  # fmt: skip
    y = linalg.eig(a, b, left, right, False, False, check_finite, homogeneous_eigvals)

    def eig_pullback(ȳ):
        if homogeneous_eigvals or (left and b is not None):
            raise UnsupportedError(
                "homogeneous eigenvalues, and left vectors of a pair of matrices, have no "
                "derivative here"
            )
        if not left and not right:
            Ā, B̄ = eigenvalues_cotangents(ȳ, y, a, b)
            return (Ā, B̄, *[NoTangent()] * 6)
        w̄, w = part(ȳ, 0), y[0]
        is_real = np.isrealobj(a) and (b is None or np.isrealobj(b))
        C̄: Any = 0.0
        if right:
            C̄ = eigen_cotangent(w̄, part(ȳ, 2 if left else 1), w, y[-1], is_real)
            w̄ = ZERO
        if left:
            conjugate = w̄ if isinstance(w̄, AbstractZero) else np.conjugate(w̄)
            G = eigen_cotangent(conjugate, part(ȳ, 1), np.conjugate(w), y[1], is_real)
            C̄ = C̄ + ctranspose(G)
        Ā, B̄ = pencil_cotangents(C̄, a, b)
        return (Ā, B̄, *[NoTangent()] * 6)

    return y, eig_pullback


def eigenvalues_cotangents(w̄, y, a, b):
    """Of the values alone; their order may differ from that of a computation with vectors."""
    C = a if b is None else np.linalg.solve(b, a)
    w, V = np.linalg.eig(C)
    refuse_defective(V)
    VH = ctranspose(V)
    bars = shared(np.take_along_axis(w̄, matching(y, w), -1), w)
    return pencil_cotangents(np.linalg.solve(VH, bars[..., None] * VH), a, b)


@rrule(linalg.eigvals)
def _(
    a: np.ndarray, b: np.ndarray | None = None, /, overwrite_a=False, check_finite=True,
    homogeneous_eigvals=False,
):  # fmt: skip
    y = linalg.eigvals(a, b, False, check_finite, homogeneous_eigvals)

    def eigvals_pullback(w̄):
        if homogeneous_eigvals:
            raise UnsupportedError("homogeneous eigenvalues have no derivative here")
        return (*eigenvalues_cotangents(w̄, y, a, b), NoTangent(), NoTangent(), NoTangent())

    return y, eigvals_pullback


# -- singular values -------------------------------------------------------------------------------


@rrule(linalg.svd)
def _(
    a: np.ndarray, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True,
    lapack_driver="gesdd",
):  # fmt: skip
    y = linalg.svd(a, full_matrices, compute_uv, False, check_finite, lapack_driver)

    def svd_pullback(ȳ):
        none = [NoTangent()] * 5
        if compute_uv:
            bars = part(ȳ, 0), part(ȳ, 1), part(ȳ, 2)
            return (singular_cotangent(*bars, y[0], y[1], y[2]), *none)
        U, s, Vh = np.linalg.svd(a, full_matrices=False)
        return (values_cotangent(ȳ, U, s, Vh), *none)

    return y, svd_pullback


@rrule(linalg.svdvals)
def _(a: np.ndarray, overwrite_a=False, check_finite=True):
    def svdvals_pullback(s̄):
        U, s, Vh = np.linalg.svd(a, full_matrices=False)
        return values_cotangent(s̄, U, s, Vh), NoTangent(), NoTangent()

    return linalg.svdvals(a, False, check_finite), svdvals_pullback


# -- Schur form ------------------------------------------------------------------------------------


@rrule(linalg.schur)
def _(a: np.ndarray, output="real", lwork=None, overwrite_a=False, sort=None, check_finite=True):
    """A = Z T Zᴴ with T upper triangular and no two eigenvalues equal.

    Ω = Zᴴ dZ is skew, and the part below the diagonal of Ω T - T Ω is that of Zᴴ dA Z.
    """
    y = linalg.schur(a, output, lwork, False, sort, check_finite)

    def schur_pullback(ȳ):
        if a.ndim > 2:
            rest = output, lwork, overwrite_a, sort, check_finite
            return of_each(ȳ, y, linalg.schur, (2,), a, *rest)
        T, Z = y[0], y[1]
        if np.any(np.tril(T, -1)):
            raise UnsupportedError(
                "a real Schur form with pairs of complex eigenvalues has no derivative here: "
                "take output='complex'"
            )
        Ā = schur_cotangent(filled(part(ȳ, 0), T), filled(part(ȳ, 1), Z), T, Z)
        return (Ā, *[NoTangent()] * 5)

    return y, schur_pullback


def schur_cotangent(T̄, Z̄, T, Z):
    """Ā; a cotangent that depends on the phases of the columns of Z is refused."""
    require_distinct(diagonal(T), "the Schur form")
    T̄ = np.triu(T̄)
    J = ctranspose(Z) @ Z̄ + ctranspose(T) @ T̄ - T̄ @ ctranspose(T)  # ⟨J, Ω⟩, of dT = ZᴴdAZ + TΩ - ΩT
    J = J - ctranspose(J)
    require_zero(1j * diagonal(J).imag, True, J, PHASE)
    Y = lower_sylvester(np.tril(J, -1), T)
    return Z @ (T̄ + Y) @ ctranspose(Z)


def lower_sylvester(W, T):
    """Y below the diagonal with slow(Y Tᴴ - Tᴴ Y) = W."""
    n = T.shape[0]
    below = np.nonzero(np.tril(np.ones((n, n)), -1).ravel())[0]
    if not len(below):
        return np.zeros_like(W)
    eye = np.eye(n)
    TH = ctranspose(T)
    operator = np.kron(eye, TH.T) - np.kron(TH, eye)
    inner = operator[below][:, below]
    found = np.linalg.solve(inner, np.ravel(W)[below])
    places = below[:, None] == np.arange(n * n)
    return np.reshape(found @ places, (n, n))


@rrule(linalg.qz)
def _(A: np.ndarray, B: np.ndarray, *rest: Anything, **keywords):
    def qz_pullback(ȳ):
        raise UnsupportedError(
            "scipy.linalg.qz has no derivative here: eigenvalues of a pair have one, by "
            "scipy.linalg.eigvals"
        )

    return linalg.qz(A, B, *rest, **keywords), qz_pullback


# -- forward: the values alone ---------------------------------------------------------------------


@frule(linalg.svdvals)
def _(a: np.ndarray, overwrite_a=False, check_finite=True):
    y = linalg.svdvals(a, False, check_finite)

    def svdvals_pushforward(ȧ, *_):
        return fitted(y, singular_tangents(a, ȧ))

    return y, svdvals_pushforward


@frule(linalg.eigvalsh)
def _(
    a: np.ndarray, b: np.ndarray | None = None, /, *, lower=True, overwrite_a=False,
    overwrite_b=False, type=1, check_finite=True, subset_by_index=None, subset_by_value=None,
    driver=None,
):  # fmt: skip
    y = linalg.eigvalsh(
        a, b, lower=lower, type=type, check_finite=check_finite, subset_by_index=subset_by_index,
        subset_by_value=subset_by_value, driver=driver,
    )  # fmt: skip

    def eigvalsh_pushforward(ȧ, *ḃ):
        if type != 1:
            raise UnsupportedError(OF_ANOTHER_TYPE.format(type))
        w, V = linalg.eigh(a, b, lower=lower)
        M: Any = np.zeros_like(V) if is_zero(ȧ) else in_basis(V, read_from(ȧ, lower))
        if b is not None and ḃ and not is_zero(ḃ[0]):
            M = M - in_basis(V, read_from(ḃ[0], lower)) * w[..., None, :]
        ẇ = tangent_of_values(M, w, False)
        return fitted(y, np.take_along_axis(ẇ, places_among(w, y), -1))

    return y, eigvalsh_pushforward


def places_among(w: Any, y: Any) -> Any:
    """Where ascending values stand among all of them, for each matrix."""
    places = np.empty(y.shape, int)
    for k in np.ndindex(w.shape[:-1]):
        places[k] = positions(w[k], y[k])
    return places


non_differentiable(places_among)


def in_basis(V, A):
    """A matrix in the basis of vectors."""
    return ctranspose(V) @ A @ V
