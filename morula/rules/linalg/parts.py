"""What the rules of matrices share: conjugate transposes, triangles, parts of results, equal values.

Where eigenvalues or singular values are equal, their vectors are not determined, and a cotangent
that depends on the choice that was made has no derivative. `require_zero` refuses it; what does
not depend on it has a derivative there too (docs/conventions.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    AbstractZero,
    Tangent,
    UnsupportedError,
    non_differentiable,
    partial_functions,
    unthunk,
)


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
    precision, repeated, vanishing, involved, require_zero, require_full_rank, require_distinct
)
partial_functions(require_zero, require_full_rank, require_distinct)
