"""Functions of quaternions (x, y, z, w), whose last axis has these four, as formulas of NumPy's.

What is smooth in a vector is written as a function of the square of its length, by a series near
zero, so that every order of its derivative is right there.
Tests: tests/rules/scipy/test_rotations.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import non_differentiable

NEAR = 1e-2  # below this six terms of a series have all digits
HALF_COSINE = (1.0, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920, -1 / 3715891200)
HALF_SINE = (1 / 2, -1 / 48, 1 / 3840, -1 / 645120, 1 / 185794560, -1 / 81749606400)
ARCTANGENT = (1.0, -1 / 3, 1 / 5, -1 / 7, 1 / 9, -1 / 11, 1 / 13, -1 / 15, 1 / 17)


def polynomial(s: Any, coefficients: tuple[float, ...]) -> Any:
    """The sum of the powers of s with these coefficients."""
    total: Any = 0.0
    for c in coefficients[::-1]:
        total = total * s + c
    return total


def smooth(s: Any, coefficients: tuple[float, ...], closed: Callable[[Any], Any]) -> Any:
    """A function of s, by its series where s is near zero, by its closed form elsewhere."""
    near = s < NEAR
    return np.where(near, polynomial(s, coefficients), closed(np.where(near, 1.0, s)))


def square(v: Any) -> Any:
    """The squared length of vectors, with their axis."""
    return np.sum(v * v, axis=-1, keepdims=True)


def rolled(q: Any, scalar_first: Any, by: int) -> Any:
    """The scalar from the first to the last place, or back."""
    return np.roll(q, by, axis=-1) if scalar_first else q


def unit(q: Any) -> Any:
    """Quaternions of length one."""
    return q / np.sqrt(square(q))


def product(p: Any, q: Any) -> Any:
    """The products of quaternions, which are broadcast."""
    a, b, c, d = p[..., 0], p[..., 1], p[..., 2], p[..., 3]
    x, y, z, w = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    parts = (
        d * x + a * w + b * z - c * y,
        d * y - a * z + b * w + c * x,
        d * z + a * y - b * x + c * w,
        d * w - a * x - b * y - c * z,
    )
    return np.stack(parts, axis=-1)


def conjugate(q: Any) -> Any:
    """The inverse rotations."""
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def sign_of(q: Any) -> Any:
    """Minus one where the first of w, x, y, z that is not zero is negative, one elsewhere."""
    ordered = np.roll(q, 1, axis=-1)
    first = np.argmax(ordered != 0, axis=-1)[..., None]
    return np.where(np.take_along_axis(ordered, first, -1) < 0, -1.0, 1.0)


def largest_of(M: Any) -> Any:
    """Which of x, y, z, w is the largest in the quaternions of matrices."""
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    decision = np.concatenate((diagonal, np.sum(diagonal, axis=-1, keepdims=True)), axis=-1)
    return np.argmax(decision, axis=-1)[..., None]


non_differentiable(sign_of, largest_of)


def of_vector(v: Any) -> Any:
    """The quaternions of rotation vectors."""
    s = square(v)
    sines = smooth(s, HALF_SINE, lambda s: np.sin(np.sqrt(s) / 2) / np.sqrt(s))
    cosines = smooth(s, HALF_COSINE, lambda s: np.cos(np.sqrt(s) / 2))
    return np.concatenate((v * sines, cosines), axis=-1)


def vector_of(q: Any) -> Any:
    """The rotation vectors, of angles up to π, of quaternions."""
    q = q * sign_of(q)
    v, w = q[..., :3], q[..., 3:]
    near = square(v) < NEAR * w * w
    t = np.where(near, square(v), 0.0) / np.where(near, w * w, 1.0)
    length = np.sqrt(np.where(near, 1.0, square(v)))
    close = polynomial(t, ARCTANGENT) / np.where(near, w, 1.0)
    halves = np.where(near, close, np.arctan2(length, w) / length)
    return 2 * halves * np.sqrt(square(q)) * v


def of_parameters(p: Any) -> Any:
    """The quaternions of modified Rodrigues parameters."""
    s = square(p)
    return np.concatenate((2 * p, 1 - s), axis=-1) / (1 + s)


def parameters_of(q: Any) -> Any:
    """The modified Rodrigues parameters, of angles up to π, of quaternions."""
    q = np.where(q[..., 3:] < 0, -q, q)
    return q[..., :3] / (1 + q[..., 3:])


def of_axis(axis: int, angle: Any) -> Any:
    """The quaternions of rotations about an axis of the coordinates."""
    e = np.eye(4)
    return np.sin(angle / 2)[..., None] * e[axis] + np.cos(angle / 2)[..., None] * e[3]


def of_matrix(M: Any) -> Any:
    """The quaternions of rotation matrices, by the largest of their four parts.

    Markley, Unit quaternion from rotation matrix, J. Guid. Control Dyn. 31 (2008).
    """
    a, b, c = M[..., 0, 0], M[..., 1, 1], M[..., 2, 2]
    xy, xz, yz = (
        M[..., 0, 1] + M[..., 1, 0], M[..., 0, 2] + M[..., 2, 0], M[..., 1, 2] + M[..., 2, 1],
    )  # fmt: skip
    x, y, z = (
        M[..., 2, 1] - M[..., 1, 2], M[..., 0, 2] - M[..., 2, 0], M[..., 1, 0] - M[..., 0, 1],
    )  # fmt: skip
    rows = (
        (1 + a - b - c, xy, xz, x), (xy, 1 - a + b - c, yz, y), (xz, yz, 1 - a - b + c, z),
        (x, y, z, 1 + a + b + c),
    )  # fmt: skip
    largest = largest_of(M)
    found = np.stack(rows[3], axis=-1)
    for i in range(3):
        found = np.where(largest == i, np.stack(rows[i], axis=-1), found)
    return unit(found)


def matrix_of(q: Any) -> Any:
    """The rotation matrices of quaternions."""
    x, y, z, w = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    entries = (
        x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w),
        2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w),
        2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w,
    )  # fmt: skip
    return np.reshape(np.stack(entries, axis=-1), (*q.shape[:-1], 3, 3))


def power(q: Any, n: Any) -> Any:
    """The rotations by n times the angles; those of n = ±1 keep their sign."""
    if n == 1:
        return product(q, of_vector((n - 1) * vector_of(q)))
    if n == -1:
        return product(conjugate(q), of_vector((n + 1) * vector_of(q)))
    return of_vector(n * vector_of(q))
