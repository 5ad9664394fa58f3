"""What the rules of matrices share: conjugate transposes, triangles, parts of results, equal values.

Where eigenvalues or singular values are equal, their vectors are not determined, and a cotangent
that depends on the choice that was made has no derivative. `require_zero` refuses it; what does
not depend on it has a derivative there too (docs/conventions.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    AbstractZero,
    NoTangent,
    Tangent,
    UnsupportedError,
    frule,
    is_zero,
    non_differentiable,
    partial_functions,
    rrule,
    unthunk,
)
from morula.rules.arrays.types import Anything


def ctranspose(A):
    """The conjugate transpose of each matrix of a stack."""
    return np.swapaxes(A, -1, -2).conjugate()


def hermitian(X):
    """The Hermitian part of each matrix."""
    return (X + ctranspose(X)) / 2


def triangle(H, lower):
    """What is read of a Hermitian matrix is one triangle: the cotangent of that, of H for all of it."""
    read = np.tril(H) if lower else np.triu(H)
    return read * (2 - np.eye(H.shape[-1], dtype=H.dtype))


def read_of(Ā, is_hermitian):
    """Ā, in the lower triangle, which is what is read of a matrix declared to be Hermitian."""
    return triangle(hermitian(Ā), True) if is_hermitian else Ā


def on_diagonal(x):
    """The matrices that have the last axis of x on their diagonals."""
    return x[..., None] * np.eye(x.shape[-1], dtype=x.dtype)


def diagonal(X):
    """The diagonal of each matrix."""
    return np.diagonal(X, axis1=-2, axis2=-1)


def field(ȳ: Any, i: int, name: str) -> Any:
    """The cotangent of a field of a named tuple, by position or by name."""
    ȳ = unthunk(ȳ)
    if isinstance(ȳ, Tangent) and name in ȳ:
        return unthunk(ȳ[name])
    return unthunk(ȳ[i])


def filled(x̄: Any, x: Any) -> Any:
    """`x̄`, as zeros like x if it is structurally zero."""
    return np.zeros_like(x) if isinstance(x̄, AbstractZero) else x̄


def precision(x: Any) -> Any:
    """The distance of 1 to the next larger number of its kind."""
    return np.finfo(x.dtype).eps if x.dtype.kind in "fc" else np.finfo(float).eps


def repeated(w: Any) -> Any:
    """Which pairs of values are equal to rounding, each with itself among them."""
    if not w.shape[-1]:
        return np.zeros((*w.shape, 0), bool)
    size = np.max(np.absolute(w), axis=-1)[..., None, None]
    gaps = np.absolute(w[..., None, :] - w[..., :, None])
    return gaps <= 10 * w.shape[-1] * precision(w) * size


def vanishing(s: Any) -> Any:
    """Which singular values are zero to rounding."""
    largest = np.max(s, axis=-1, keepdims=True, initial=0)
    return s <= 10 * s.shape[-1] * precision(s) * largest


def involved(x̄: Any) -> Any:
    """Which entries are not zero to rounding."""
    largest = np.max(np.absolute(x̄), initial=0)
    return np.absolute(x̄) > 1000 * precision(x̄) * largest


def require_zero(X: Any, where: Any, size: Any, why: str) -> None:
    """Refuse a cotangent X of this size that does not vanish where the mask holds."""
    largest = np.max(np.absolute(size), initial=0)
    noise = 1000 * max(1, X.shape[-1]) * precision(X) * largest
    if np.any(where & (np.absolute(X) > noise)):
        raise UnsupportedError(why)


def shared(w̄: Any, w: Any) -> Any:
    """Equal values share their cotangents."""
    same = repeated(w).astype(w̄.dtype)
    return np.matmul(same, w̄[..., None])[..., 0] / np.sum(same, axis=-1)


# -- directions that mix equal values ---------------------------------------------------------------

MIXED = (
    "a direction, or a second derivative, that mixes equal eigenvalues or singular values cannot be "
    "told from the cotangents of the values and vectors alone: use functions of the matrix itself "
    "(norm, det, expm, inv)"
)


def apart(X, same):
    """X, without its entries at pairs of equal values, of which no derivative is known."""
    return np.where(same, 0.0, X)


@rrule(apart)
def _(X: np.ndarray, same: np.ndarray):
    def apart_pullback(X̄):
        return apart(X̄, same), NoTangent()

    return apart(X, same), apart_pullback


@frule(apart)
def _(X: np.ndarray, same: np.ndarray):
    def apart_pushforward(Ẋ, _):
        return ZERO if is_zero(Ẋ) else unmixed(Ẋ, same)

    return apart(X, same), apart_pushforward


def unmixed(Ẋ, same):
    """The tangent of what is kept apart, of directions that do not mix equal values."""
    require_zero(Ẋ, same & ~np.eye(same.shape[-1], dtype=bool), Ẋ, MIXED)
    return apart(Ẋ, same)


def beside_vectors(w̄, w, zero):
    """The matrices with the cotangents of values on the diagonal, where vectors are used as well."""
    return on_diagonal(w̄)


@rrule(beside_vectors)
def _(w̄: np.ndarray, w: np.ndarray, zero: Anything):
    """Along directions that mix equal values, these go with vectors that are turned: NaN."""

    def beside_vectors_pullback(M):
        lost = is_mixed(M, w, zero)
        return np.where(lost, np.nan, np.real(diagonal(M))), NoTangent(), NoTangent()

    return beside_vectors(w̄, w, zero), beside_vectors_pullback


def of_values(w̄, w, zero):
    """The matrices with the cotangents of values on the diagonal; equal ones share, zeros have none.

    How the cotangents change with the values along directions that mix these is not known: NaN.
    """
    w̄ = shared(w̄, w)
    return on_diagonal(np.where(zero & ~np.isnan(w̄), 0.0, w̄))


@rrule(of_values)
def _(w̄: np.ndarray, w: np.ndarray, zero: Anything):
    def of_values_pullback(M):
        found = np.where(zero, 0.0, shared(np.real(diagonal(M)), w))
        return np.where(is_mixed(M, w, zero), np.nan, found), NoTangent(), NoTangent()

    return of_values(w̄, w, zero), of_values_pullback


@frule(of_values)
def _(w̄: np.ndarray, w: np.ndarray, zero: Anything):
    """The cotangents change with the values in a way that depends on their direction."""

    def of_values_pushforward(ẇ̄, ẇ, _):
        if is_zero(ẇ̄):
            return ZERO
        if np.any(zero) or np.any(ẇ̄):
            require_single(w, zero)
        return of_values(ẇ̄, w, zero)

    return of_values(w̄, w, zero), of_values_pushforward


def tangent_of_values(M, w, zero):
    """The tangents of values, from that of the matrix in the basis of their vectors."""
    return np.where(zero, 0.0, shared(np.real(diagonal(M)), w))


@rrule(tangent_of_values)
def _(M: np.ndarray, w: np.ndarray, zero: Anything):
    def tangent_of_values_pullback(c):
        require_unmixed(M, w, zero)
        return of_values(c, w, zero).astype(M.dtype), NoTangent(), NoTangent()

    return tangent_of_values(M, w, zero), tangent_of_values_pullback


@frule(tangent_of_values)
def _(M: np.ndarray, w: np.ndarray, zero: Anything):
    def tangent_of_values_pushforward(Ṁ, ẇ, _):
        require_unmixed(M, w, zero)
        return ZERO if is_zero(Ṁ) else tangent_of_values(Ṁ, w, zero)

    return tangent_of_values(M, w, zero), tangent_of_values_pushforward


def is_mixed(M: Any, w: Any, zero: Any) -> Any:
    """Which values a direction does not treat as those that they are equal to, or moves from zero."""
    zero = np.broadcast_to(zero, w.shape)
    H = hermitian(M)
    noise = 1000 * max(1, w.shape[-1]) * precision(H) * np.max(np.absolute(H), initial=0)
    alike = shared(np.real(diagonal(H)), w)
    turned = repeated(w) & (np.absolute(H - on_diagonal(alike)) > noise)
    moved = both(zero) & (np.absolute(M) > noise)
    return np.any(turned | moved | np.swapaxes(moved, -1, -2), axis=-1)


def both(zero: Any) -> Any:
    """Which pairs are of two zeros."""
    return zero[..., None, :] & zero[..., :, None]


def require_unmixed(M: Any, w: Any, zero: Any) -> None:
    """Refuse directions that do not treat equal values alike."""
    if np.any(is_mixed(M, w, zero)):
        raise UnsupportedError(MIXED)


def require_single(w: Any, zero: Any) -> None:
    """Refuse values of which some are equal, or zero."""
    if np.any(zero) or np.any(repeated(w) & ~np.eye(w.shape[-1], dtype=bool)):
        raise UnsupportedError(MIXED)


def require_full_rank(R: Any) -> None:
    """Refuse a triangular factor of dependent columns or rows: nothing tells what turns with them.

    Raises:
        LinAlgError: an entry on the diagonal is zero to rounding.
    """
    pivots = np.absolute(diagonal(R))
    largest = np.max(np.absolute(R), axis=(-2, -1), initial=0)[..., None]
    if np.any(pivots <= 10 * R.shape[-1] * precision(R) * largest):
        raise np.linalg.LinAlgError(
            "Singular matrix: qr and rq of dependent columns or rows have no derivative"
        )


def require_distinct(w: Any, what: str) -> None:
    """Refuse eigenvalues of which some are equal to rounding."""
    if np.any(repeated(w) & ~np.eye(w.shape[-1], dtype=bool)):
        raise UnsupportedError(f"{what} of a matrix with equal eigenvalues has no derivative here")


non_differentiable(
    precision, repeated, vanishing, involved, require_zero, require_full_rank, require_distinct,
    require_unmixed, require_single, is_mixed, both,
)  # fmt: skip
REFUSALS = (require_zero, require_full_rank, require_distinct, require_unmixed, require_single)
partial_functions(*REFUSALS)
