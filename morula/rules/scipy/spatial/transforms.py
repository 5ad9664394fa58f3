"""Rules of the compiled functions behind scipy.spatial.transform.RigidTransform.

    exp: t = V τ,  V = 1 + k₁ [ω] + k₂ [ω]²,   k₁ = (1 - cos θ) / θ²,  k₂ = (θ - sin θ) / θ³
    log: τ = V⁻¹ t,  V⁻¹ = 1 - [ω] / 2 + k [ω]²,   k = (1 - θ/2 cot θ/2) / θ²

Murray, Li and Sastry, A mathematical introduction to robotic manipulation (1994), chapter 2.
Tests: tests/rules/scipy/test_rotations.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.spatial import alignment
from morula.rules.scipy.spatial.alignment import nearest_rotation, skew
from morula.rules.scipy.spatial.quaternions import (
    conjugate,
    matrix_of,
    of_matrix,
    of_vector,
    product,
    rolled,
    smooth,
    square,
    vector_of,
)
from morula.rules.scipy.spatial.rotations import compiled as compiled_of
from morula.rules.scipy.spatial.rotations import derivatives_of, of_many_axes

COSINES = (1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800, -1 / 479001600)
SINES = (1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800, -1 / 6227020800)
COTANGENTS = (
    1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600,
)  # fmt: skip


def compiled(name: str) -> list[Any]:
    """The compiled function of this name, if this version has it."""
    return compiled_of(name, "_rigid_transform_cy")


def assembled(rotation: Any, translation: Any) -> Any:
    """The matrices of four rows that rotate and then translate."""
    upper = np.concatenate((rotation, translation[..., None]), axis=-1)
    below = np.broadcast_to(np.eye(4)[3:], (*upper.shape[:-2], 1, 4))
    return np.concatenate((upper, below), axis=-2)


def rotation_of(matrix: Any) -> Any:
    """The part that rotates."""
    return matrix[..., :3, :3]


def translation_of(matrix: Any) -> Any:
    """The part that translates."""
    return matrix[..., :3, 3]


def times(M: Any, v: Any) -> Any:
    """Matrices times vectors."""
    return np.matmul(M, v[..., None])[..., 0]


# -- from something, and as something --------------------------------------------------------------


@derivatives_of(compiled("from_matrix"))
def from_matrix(matrix: Any, normalize: Any = True, copy: Any = True) -> Any:
    """Matrices whose part that rotates is made a rotation, or not."""
    M = np.asarray(matrix)
    if not normalize:
        return M
    upper = np.concatenate((nearest_rotation(rotation_of(M), True), M[..., :3, 3:]), axis=-1)
    return np.concatenate((upper, M[..., 3:, :]), axis=-2)


@derivatives_of(compiled("from_rotation"))
def from_rotation(quat: Any) -> Any:
    """The matrices of rotations alone."""
    M = matrix_of(quat)
    return assembled(M, np.zeros(M.shape[:-1]))


@derivatives_of(compiled("from_translation"))
def from_translation(translation: Any) -> Any:
    """The matrices of translations alone."""
    t = np.asarray(translation, dtype=float)
    return assembled(np.broadcast_to(np.eye(3), (*t.shape, 3)), t)


@of_many_axes("_compute_se3_exp_translation_transform", "_rigid_transform_xp")
def exponential(v: Any) -> Any:
    """The matrices V of rotation vectors."""
    K, s = skew(v), square(v)[..., None]
    k1 = smooth(s, COSINES, lambda s: (1 - np.cos(np.sqrt(s))) / s)
    k2 = smooth(s, SINES, lambda s: (np.sqrt(s) - np.sin(np.sqrt(s))) / (s * np.sqrt(s)))
    return np.eye(3) + k1 * K + k2 * (K @ K)


@of_many_axes("_compute_se3_log_translation_transform", "_rigid_transform_xp")
def logarithm(v: Any) -> Any:
    """The inverses of the matrices V."""
    K, s = skew(v), square(v)[..., None]
    k = smooth(s, COTANGENTS, lambda s: (1 - np.sqrt(s) / 2 / np.tan(np.sqrt(s) / 2)) / s)
    return np.eye(3) - K / 2 + k * (K @ K)


@derivatives_of(compiled("from_exp_coords"))
def from_exp_coords(exp_coords: Any) -> Any:
    """The matrices of motions along a screw."""
    x = np.asarray(exp_coords, dtype=float)
    v = x[..., :3]
    return assembled(matrix_of(of_vector(v)), times(exponential(v), x[..., 3:]))


@derivatives_of(compiled("as_exp_coords"))
def as_exp_coords(matrix: Any) -> Any:
    """The screws of motions."""
    v = vector_of(of_matrix(rotation_of(matrix)))
    return np.concatenate((v, times(logarithm(v), translation_of(matrix))), axis=-1)


def parts_of(dual_quat: Any) -> Any:
    """The real and the dual part, the one a unit and the other perpendicular to it."""
    real, dual = dual_quat[..., :4], dual_quat[..., 4:]
    size = square(real)
    none = size == 0
    length = np.sqrt(np.where(none, 1.0, size))
    real = np.where(none, np.eye(4)[3], real) / length
    dual = dual / length
    return real, dual - np.sum(real * dual, axis=-1, keepdims=True) * real


@derivatives_of(compiled("normalize_dual_quaternion"))
def normalize_dual_quaternion(dual_quat: Any) -> Any:
    """Dual quaternions of length one."""
    return np.concatenate(parts_of(np.asarray(dual_quat)), axis=-1)


@derivatives_of(compiled("from_dual_quat"))
def from_dual_quat(dual_quat: Any, *, scalar_first: Any = False) -> Any:
    """The matrices of dual quaternions."""
    x = np.asarray(dual_quat, dtype=float)
    both = [rolled(x[..., :4], scalar_first, -1), rolled(x[..., 4:], scalar_first, -1)]
    real, dual = parts_of(np.concatenate(both, axis=-1))
    return assembled(matrix_of(real), 2 * product(dual, conjugate(real))[..., :3])


@derivatives_of(compiled("as_dual_quat"))
def as_dual_quat(matrix: Any, *, scalar_first: Any = False) -> Any:
    """The dual quaternions of matrices."""
    real = of_matrix(rotation_of(matrix))
    t = translation_of(matrix)
    dual = product(np.concatenate((t, np.zeros_like(t[..., :1])), axis=-1), real) / 2
    both = [rolled(real, scalar_first, 1), rolled(dual, scalar_first, 1)]
    return np.concatenate(both, axis=-1)


# -- with each other -------------------------------------------------------------------------------


@derivatives_of(compiled("inv"))
def inv(matrix: Any) -> Any:
    """The motions back."""
    back = np.swapaxes(rotation_of(matrix), -1, -2)
    return assembled(back, -times(back, translation_of(matrix)))


@derivatives_of(compiled("apply"))
def apply(matrix: Any, vector: Any, inverse: Any = False) -> Any:
    """Moved points; one motion or one point stands for many."""
    M = inv(matrix) if inverse else matrix
    points = np.atleast_2d(np.asarray(vector, dtype=float))
    return times(rotation_of(M), points) + translation_of(M)


@derivatives_of(compiled("compose_transforms"))
def compose_transforms(tf_matrix: Any, other_tf_matrix: Any) -> Any:
    """One motion after another."""
    return np.matmul(tf_matrix, other_tf_matrix)


@derivatives_of(compiled("pow"))
def power(matrix: Any, n: Any) -> Any:
    """The motions n times, along their screws."""
    if n == 1:
        return np.matmul(matrix, from_exp_coords((n - 1) * as_exp_coords(matrix)))
    if n == -1:
        return np.matmul(inv(matrix), from_exp_coords((n + 1) * as_exp_coords(matrix)))
    return from_exp_coords(n * as_exp_coords(matrix))


def mean(matrix: Any, weights: Any = None, axis: Any = None) -> Any:
    """The mean rotation with the mean translation."""
    M = np.asarray(matrix)
    if axis == ():
        return M
    w = np.ones(len(M)) if weights is None else np.asarray(weights)
    q = alignment.mean(of_matrix(rotation_of(M)), w)
    return assembled(matrix_of(q), np.average(translation_of(M), axis=0, weights=w))


derivatives_of(compiled("mean"))(mean)


@instead_of(*compiled("setitem"))
def setitem(matrix: Any, indexer: Any, value: Any) -> Any:
    """Some motions become others."""
    matrix[indexer] = value
    return matrix
