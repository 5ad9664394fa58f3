"""Rules of data on regular grids: the cells that points lie in, and lines between their corners.

Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import derivative_of
from morula.rules.scipy.interpolate import routines
from morula.rules.scipy.kernels import writes


def cells(grid: Any, xi: Any) -> Any:
    """The numbers of the cells that the points lie in, for each axis."""
    found = []
    for x, points in zip(grid, xi, strict=True):
        found.append(np.clip(np.searchsorted(x, points, "right") - 1, 0, max(len(x) - 2, 0)))
    return np.stack(found)


non_differentiable(cells)


@derivative_of(routines.coordinates)
def coordinates(points: Any, ndim: Any = None) -> Any:
    """Points as rows, out of an array of them or a tuple of their coordinates."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return np.stack(np.broadcast_arrays(*points), axis=-1)
    points = np.asarray(points)
    if points.ndim == 1:
        return points[:, None] if ndim is None else np.reshape(points, (-1, ndim))
    return points


@derivative_of(routines.find_indices)
def find_indices(grid: Any, xi: Any) -> Any:
    """The cells, and how far into them the points lie."""
    found = cells(grid, xi)
    shares = []
    for x, points, i in zip(grid, xi, found, strict=True):
        if len(x) == 1:
            shares.append(np.zeros(points.shape))
        else:
            shares.append((points - x[i]) / (x[i + 1] - x[i]))
    return found, np.stack(shares)


@writes(routines.evaluate_linear_2d, 4)
def evaluate_linear_2d(values, indices, distances, grid, out):
    (i, j), (u, v) = indices, distances
    i1, j1 = np.minimum(i + 1, values.shape[0] - 1), np.minimum(j + 1, values.shape[1] - 1)
    below = values[i, j] * (1 - v) + values[i, j1] * v
    above = values[i1, j] * (1 - v) + values[i1, j1] * v
    return below * (1 - u) + above * u
