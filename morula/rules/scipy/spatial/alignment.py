"""The rotation nearest to a matrix, the mean of rotations and the alignment of vectors.

    M = Q P with Q a rotation and P symmetric:  dQ = Q [ω],  (tr P - P) ω = vee(Qᵀ dM)
    where [ω] x = ω × x, and vee([ω]) is 2 ω

That follows from the symmetry of Qᵀ M, and holds where singular values are equal.
Tests: tests/rules/scipy/test_rotations.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    NoTangent,
    UnsupportedError,
    non_differentiable,
    partial_functions,
    rrule,
)
from morula.rules.arrays.types import Anything
from morula.rules.scipy.spatial.jumps import not_at
from morula.rules.scipy.spatial.quaternions import matrix_of, of_matrix, of_vector, product, square

TURNED = (
    "the rotation that is nearest to a matrix is not determined, and has no derivative there: align "
    "vectors that do not lie on one line"
)
OPPOSITE = (
    "the shortest rotation between opposite vectors is not determined, and has no derivative there"
)


def nearest_rotation(M: Any, kept: bool = False) -> Any:
    """The rotations nearest to matrices; `kept`: what is one to rounding stays as it is."""
    U, _, Vh = np.linalg.svd(M)
    turned = np.linalg.det(U @ Vh) < 0
    signs = np.where(turned[..., None], np.array([1.0, 1.0, -1.0]), 1.0)
    Q = (U * signs[..., None, :]) @ Vh
    return np.where(are_orthogonal(M), M, Q) if kept else Q


def are_orthogonal(M: Any) -> Any:
    """Which matrices SciPy takes for orthogonal."""
    close = np.isclose(M @ np.swapaxes(M, -1, -2), np.eye(3), atol=1e-12)
    return np.all(close, axis=(-2, -1), keepdims=True)


@rrule(nearest_rotation)
def _(M: Anything, kept: bool = False):
    Q = nearest_rotation(M, kept)

    def nearest_pullback(Q̄):
        QT = np.swapaxes(Q, -1, -2)
        around = others(QT @ M)
        require_determined(around)
        y = np.linalg.solve(around, vee(QT @ Q̄)[..., None])[..., 0]
        return Q @ skew(y), NoTangent()

    return Q, nearest_pullback


def others(P: Any) -> Any:
    """tr P - P, whose values are the sums of two of those of P."""
    P = (P + np.swapaxes(P, -1, -2)) / 2
    return np.trace(P, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - P


def require_determined(around: Any) -> None:
    """Refuse matrices to which many rotations are equally near."""
    sizes = np.abs(np.linalg.eigvalsh(around))
    if np.any(np.min(sizes, axis=-1) <= 1e-14 * np.max(sizes, axis=-1)):
        raise UnsupportedError(TURNED)


def vee(A: Any) -> Any:
    """What a matrix has along the generators of rotations."""
    return np.stack(
        (
            A[..., 2, 1] - A[..., 1, 2],
            A[..., 0, 2] - A[..., 2, 0],
            A[..., 1, 0] - A[..., 0, 1],
        ),
        axis=-1,
    )


def skew(v: Any) -> Any:
    """The matrices [v] that multiply by v as the cross product does."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    zero = np.zeros_like(x)
    entries = np.stack((zero, -z, y, z, zero, -x, -y, x, zero), axis=-1)
    return np.reshape(entries, (*v.shape[:-1], 3, 3))


def from_matrix(matrix: Any, assume_valid: Any = False) -> Any:
    """The quaternions of matrices, or of the rotations nearest to them."""
    M = np.asarray(matrix, dtype=float)
    return of_matrix(M if assume_valid else nearest_rotation(M, True))


def mean(quat: Any, weights: Any = None, axis: Any = None) -> Any:
    """The vector of the largest value of Σ w q qᵀ."""
    q = np.asarray(quat)
    if axis == ():
        return q
    weights = np.ones(len(q)) if weights is None else np.asarray(weights)
    return np.linalg.eigh(np.dot(weights * q.T, q))[1][:, -1]


# -- alignment -------------------------------------------------------------------------------------


def align_vectors(a: Any, b: Any, weights: Any = None, return_sensitivity: Any = False) -> Any:
    """The rotation from b to a, what remains, and how it depends on the vectors."""
    a, b = np.atleast_2d(np.asarray(a, dtype=float)), np.atleast_2d(np.asarray(b, dtype=float))
    w = np.ones(len(a)) if weights is None else np.asarray(weights, dtype=float)
    fixed = fixed_of(w, len(a))
    if fixed is not None:
        q = of_fixed(a, b, w, fixed)
        w = np.where(np.isposinf(w), 0.0, w)
        return q, remainder(a, b, w, matrix_of(q)), None
    B = np.einsum("ji,jk->ik", w[:, None] * a, b)
    Q = nearest_rotation(B)
    found = sensitivity(B, Q, w) if return_sensitivity else None
    return of_matrix(Q), remainder(a, b, w, Q), found


def fixed_of(weights: Any, n: int) -> int | None:
    """Which pair of vectors is to coincide in direction: the only one, or that of infinite weight."""
    infinite = np.isposinf(weights)
    return 0 if n == 1 else int(np.argmax(infinite)) if np.any(infinite) else None


def remainder(a: Any, b: Any, weights: Any, Q: Any) -> Any:
    """The root of the weighted sum of squared distances."""
    total = np.sum(weights[:, None] * (a - b @ Q.T) ** 2)
    return np.where(total == 0, 0.0, np.sqrt(np.where(total == 0, 1.0, total)))


def sensitivity(B: Any, Q: Any, weights: Any) -> Any:
    """As Rotation.align_vectors defines it; the values come in symmetric functions only."""
    P = Q.T @ B
    kappa = (np.trace(P) ** 2 - np.trace(P @ P)) / 2
    zeta = np.linalg.det(others(P))
    return np.mean(weights) / zeta * (kappa * np.eye(3) + B @ B.T)


def of_fixed(a: Any, b: Any, weights: Any, fixed: int) -> Any:
    """The shortest rotation that aligns one pair, then the best one about that direction."""
    n, m = a[fixed] / np.sqrt(square(a[fixed])), b[fixed] / np.sqrt(square(b[fixed]))
    q = shortest(m, n)
    if len(a) == 1:
        return q
    rest = np.array([i for i in range(len(a)) if i != fixed])
    w, a, c = weights[rest], a[rest], b[rest] @ matrix_of(q).T
    sines = np.cross(c, a) @ n
    cosines = np.sum(c * a, axis=-1) - (c @ n) * (a @ n)
    angle = np.arctan2(np.sum(w * sines), np.sum(w * cosines))
    return product(of_vector(angle * n), q)


def shortest(m: Any, n: Any) -> Any:
    """The quaternion that takes one unit vector to another: of the angle to what is between them."""
    opposite = np.all(m + n == 0)
    middle = np.where(opposite, m, m + n)
    middle = middle / np.sqrt(square(middle))
    found = np.concatenate((np.cross(m, middle), np.sum(m * middle, keepdims=True)))
    return not_at(opposite, found, m + n, OPPOSITE)


non_differentiable(require_determined, fixed_of, are_orthogonal)
partial_functions(require_determined)
