"""Rules of rational interpolation: poles and roots as the equations say that they are solutions of.

    Σⱼ wⱼ / (z - zⱼ) = 0

Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import told_as
from morula.rules.scipy.interpolate import routines
from morula.rules.scipy.interpolate.roots import refined


def zeros_of(points: Any, weights: Any) -> Any:
    """Where the sum of weights over distances is zero."""

    def difference(z):
        return np.sum(weights / (z[:, None] - points), axis=1)

    def slope(z):
        return -np.sum(weights / (z[:, None] - points) ** 2, axis=1)

    found = found_zeros(points, weights)
    return told_as(found, refined(difference, slope, found))


def found_zeros(points: Any, weights: Any) -> Any:
    """What SciPy finds."""
    plain = object.__new__(routines.BarycentricRational)
    plain._support_points, plain.weights, plain._poles = points, weights, None
    return routines.poles(plain)


non_differentiable(found_zeros)


@instead_of(routines.poles)
def poles(self: Any) -> Any:
    """The poles, which are kept for the next time."""
    if self._poles is None:
        self._poles = zeros_of(self._support_points, self.weights)
    return self._poles


@instead_of(routines.roots)
def roots(self: Any) -> Any:
    """The roots, which are kept for the next time."""
    if self._support_values.ndim > 1:
        raise NotImplementedError("Roots not implemented for multi-dimensional data.")
    if self._roots is None:
        self._roots = zeros_of(self._support_points, self.weights * self._support_values)
    return self._roots
