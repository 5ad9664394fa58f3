"""Angles of rotations about three axes one after the other, as formulas of NumPy's.

    Step by step after Bernardes and Viollet, Quaternion to Euler angles conversion: a direct,
    general and computationally efficient method, PLoS ONE 17(11): e0276302 (2022).

At gimbal lock, where the first and the last axis coincide, SciPy lets one of the angles be zero: they
jump there, and have no derivative. That is an error where it counts.
Tests: tests/rules/scipy/test_rotations.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import non_differentiable
from morula.rules.scipy.spatial.jumps import not_at
from morula.rules.scipy.spatial.quaternions import of_axis, of_vector, product, unit

LOCKED = 1e-7  # how near to zero or π SciPy counts the second angle as locked
GIMBAL = (
    "Euler angles at gimbal lock have no derivative: use another sequence of axes, or the matrix, "
    "the quaternion or the rotation vector"
)


def composed(axes: Any, angles: Any, turn: Any, intrinsic: bool) -> Any:
    """The rotations by angles about axes, each made by `turn`, one after the other."""
    q = turn(axes[0], angles[..., 0])
    for i in range(1, len(axes)):
        other = turn(axes[i], angles[..., i])
        q = product(q, other) if intrinsic else product(other, q)
    return q


def from_angles(axes: Any, angles: Any, degrees: Any, turn: Any, intrinsic: bool) -> Any:
    """The same of a number, of a row or of rows of angles, in degrees or radians."""
    given = np.asarray(angles, dtype=float)
    rows = np.atleast_2d(given) * (np.pi / 180 if degrees else 1.0)
    q = composed(axes, rows, turn, intrinsic)
    return q if given.ndim == 2 else q[0]


def numbers_of(seq: str) -> list[int]:
    """Which axes of the coordinates a text names."""
    return ["xyz".index(letter) for letter in seq.lower()]


def from_euler(seq: Any, angles: Any, degrees: Any = False) -> Any:
    """The quaternions of rotations about axes of the coordinates."""
    return from_angles(numbers_of(seq), angles, degrees, of_axis, seq.isupper())


def about(axis: Any, angle: Any) -> Any:
    """The quaternions of rotations about a unit vector."""
    return of_vector(angle[..., None] * axis)


def from_davenport(axes: Any, order: Any, angles: Any, degrees: Any = False) -> Any:
    """The quaternions of rotations about any axes."""
    directions = unit(np.atleast_2d(np.asarray(axes, dtype=float)))
    return from_angles(directions, angles, degrees, about, order[0] == "i")


def are_locked(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Where the second angle is zero or π."""
    second = 2 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    return (second <= LOCKED) | (np.abs(second - np.pi) <= LOCKED)


non_differentiable(numbers_of, are_locked)


def angles_of(a: Any, b: Any, c: Any, d: Any, extrinsic: bool, offset: Any, sign: Any) -> Any:
    """The three angles, but for multiples of 2π, from the parts along the axes."""
    locked, given = are_locked(a, b, c, d), np.stack((a, b, c, d), axis=-1)
    a, b, c, d = [
        np.where(locked, safe, x) for safe, x in zip((1, 0, 0, 1), (a, b, c, d), strict=True)
    ]
    total, difference = np.arctan2(b, a), np.arctan2(d, c)
    second = 2 * np.arctan2(np.hypot(c, d), np.hypot(a, b)) - offset
    first, third = total - difference, sign * (total + difference)
    ordered = (first, second, third) if extrinsic else (third, second, first)
    return not_at(locked[..., None], np.stack(ordered, axis=-1), given, GIMBAL)


def as_euler(quat: Any, seq: Any, degrees: Any = False, suppress_warnings: Any = False) -> Any:
    """The angles about axes of the coordinates."""
    extrinsic = seq.islower()
    i, j, k = numbers_of(seq) if extrinsic else numbers_of(seq)[::-1]
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x, y, z, w = quat[..., i], quat[..., j], sign * quat[..., k], quat[..., 3]
    if symmetric:
        found = angles_of(w, x, y, z, extrinsic, 0.0, 1)
    else:
        found = angles_of(w - y, x + z, y + w, z - x, extrinsic, np.pi / 2, sign)
    return np.rad2deg(found) if degrees else found


def as_davenport(
    quat: Any, axes: Any, order: Any, degrees: Any = False, suppress_warnings: Any = False
) -> Any:
    """The angles about any axes of which each is perpendicular to the next one."""
    extrinsic = order[0] == "e"
    directions = unit(np.asarray(axes, dtype=float))
    n1, n2, n3 = directions[..., 0, :], directions[..., 1, :], directions[..., 2, :]
    if not extrinsic:
        n1, n3 = n3, n1
    offset = np.arctan2(np.sum(n3 * np.cross(n1, n2), axis=-1), np.sum(n3 * n1, axis=-1))
    side = np.where(offset < 0, -1.0, 1.0)
    offset, n2 = side * offset, side[..., None] * n2
    q = product(about(n2, offset), quat)
    a, v = q[..., 3], q[..., :3]
    b, c, d = [np.sum(v * n, axis=-1) for n in (n1, n2, np.cross(n1, n2))]
    found = angles_of(a, b, c, d, extrinsic, offset, 1)
    found = found * np.stack((np.ones_like(side), side, np.ones_like(side)), axis=-1)
    return np.rad2deg(found) if degrees else found
