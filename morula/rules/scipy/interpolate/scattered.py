"""Rules of data at scattered points: nearest neighbours, and pieces on the triangles between them.

Which triangle a point lies in is constant. On triangles the values are linear, or cubic on their
thirds; slopes at the corners are those that bend the edges least:

    Σⱼ e (4 e·gᵢ + 2 e·gⱼ + 6 (fᵢ - fⱼ)) / |e|³ = 0,    e = pⱼ - pᵢ,    over the neighbours j of i

Alfeld, A trivariate Clough-Tocher scheme for tetrahedral data (1984); Farin, Triangular
Bernstein-Bézier patches (1986); Nielson, A method for interpolating scattered data based upon a
minimum norm network (1983).
Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy.interpolate import (
    CloughTocher2DInterpolator,
    LinearNDInterpolator,
    NearestNDInterpolator,
)
from scipy.spatial import Delaunay

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import told_as
from morula.rules.scipy.interpolate import routines

Linear, CloughTocher = LinearNDInterpolator, CloughTocher2DInterpolator


def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """An interpolator as SciPy makes it."""
    return cls(*args, **kwargs)


def values_at(interpolator: Any, args: Any, options: dict[str, Any]) -> Any:
    """What SciPy's own code gives."""
    return routines.call(interpolator, *args, **options)


def prepared(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """What the initialisation of an interpolator leaves in it."""
    empty = object.__new__(NearestNDInterpolator)
    routines.initialise(empty, *args, **kwargs)
    return dict(empty.__dict__)


def simplices_of(tri: Any, x: Any, simplex_tolerance: float = 1.0) -> Any:
    """In which simplices the points lie, and whether in any."""
    found = tri.find_simplex(x, tol=100 * np.finfo(float).eps * simplex_tolerance)
    return np.maximum(found, 0), found >= 0


def check_shape(interpolator: Any, x: Any) -> None:
    """Points of another dimension are an error."""
    routines.check_call_shape(interpolator, x)


non_differentiable(made, values_at, prepared, simplices_of, check_shape)


@instead_of(routines.initialise)
def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
    """The data of nearest neighbours, whose points have no influence but by the choice."""
    for name, value in prepared(*args, **kwargs).items():
        setattr(self, name, value)


@instead_of(routines.check_call_shape)
def points_as_array(self: Any, xi: Any) -> Any:
    """The points, if they are of as many dimensions as the data."""
    check_shape(self, xi)
    return np.asanyarray(xi)


@instead_of(routines.scale_x)
def scaled(self: Any, xi: Any) -> Any:
    """The points as those of the data are scaled."""
    return xi if self.scale is None else (xi - self.offset) / self.scale


# -- nearest neighbours ----------------------------------------------------------------------------


@instead_of(NearestNDInterpolator.__call__)
def nearest(self: Any, *args: Any, **query_options: Any) -> Any:
    """The values of the nearest points, numbers that are none where no point is near enough."""
    i, found = numbers_of_nearest(self, args, query_options)
    rest = (1,) * (self.values.ndim - 1)
    values = self.values[i] * 1.0
    return np.where(np.reshape(found, (*found.shape, *rest)), values, np.nan)


def numbers_of_nearest(self: Any, args: Any, options: dict[str, Any]) -> Any:
    """Which points SciPy chooses, and whether it has found any."""
    numbered = copy(self)
    numbered.values = np.arange(float(len(self.values)))
    found = NearestNDInterpolator.__call__(numbered, *args, **options)
    return np.nan_to_num(found).astype(int), ~np.isnan(found)


non_differentiable(numbers_of_nearest)


# -- making ----------------------------------------------------------------------------------------


def with_data(interpolator: Any, points: Any, values: Any, fill_value: Any) -> Any:
    """An interpolator whose attributes have the derivatives of its data."""
    if not isinstance(points, Delaunay):
        given = routines.coordinates(points)
        if interpolator.scale is not None:
            offset, scale = np.mean(given, axis=0), np.ptp(given, axis=0)
            interpolator.offset = told_as(interpolator.offset, offset)
            interpolator.scale = told_as(interpolator.scale, np.where(scale > 0, scale, 1.0))
            given = (given - interpolator.offset) / interpolator.scale
        interpolator.points = told_as(interpolator.points, given)
    columns = np.reshape(np.asarray(values), interpolator.values.shape)
    interpolator.values = told_as(interpolator.values, columns)
    interpolator.fill_value = told_as(interpolator.fill_value, fill_value)
    return interpolator


@instead_of(Linear)
def linear(points: Any, values: Any, fill_value: Any = np.nan, rescale: Any = False) -> Any:
    """Planes over simplices."""
    new = made(Linear, points, values, fill_value=fill_value, rescale=rescale)
    return with_data(new, points, values, fill_value)


@instead_of(CloughTocher)
def clough_tocher(
    points: Any, values: Any, fill_value: Any = np.nan, tol: Any = 1e-6, maxiter: Any = 400,
    rescale: Any = False,
) -> Any:  # fmt: skip
    """Cubic pieces with continuous slopes."""
    new = made(CloughTocher, points, values, fill_value, tol, maxiter, rescale)
    with_data(new, points, values, fill_value)
    new.grad = told_as(new.grad, slopes(new.tri, new.points, new.values))
    return new


def edges_of(tri: Any) -> Any:
    """The points that each edge joins, in both directions."""
    starts, ends = tri.vertex_neighbor_vertices
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts)), ends


non_differentiable(edges_of)


def slopes(tri: Any, points: Any, values: Any) -> Any:
    """The slopes at all points, for each column of values."""
    i, j = edges_of(tri)
    n = len(points)
    e = points[j] - points[i]
    weights = np.sum(e * e, axis=1) ** -1.5
    products = weights[:, None, None] * (e[:, :, None] * e[:, None, :])
    here = (np.arange(n)[:, None] == i).astype(float)
    there = (np.arange(n)[:, None] == j).astype(float)
    blocks = np.einsum("ae,exy,be->axby", here, products, 4.0 * here + 2.0 * there)
    rise = (weights[:, None] * e)[:, :, None] * (6.0 * (values[j] - values[i]))[:, None, :]
    right = np.einsum("ae,exc->axc", here, rise)
    found = np.linalg.solve(np.reshape(blocks, (2 * n, 2 * n)), np.reshape(right, (2 * n, -1)))
    return np.swapaxes(np.reshape(found, (n, 2, -1)), 1, 2)


# -- values ----------------------------------------------------------------------------------------


@instead_of(routines.call)
def at_points(self: Any, *args: Any, **tolerance: Any) -> Any:
    """Values at points, which lie in simplices or get the fill value."""
    found = values_at(self, args, tolerance)
    x = routines.coordinates(args, ndim=self.points.shape[1])
    x = scaled(self, np.reshape(x, (-1, x.shape[-1])))
    simplices, inside = simplices_of(self.tri, x, **tolerance)
    piece = cubic if isinstance(self, CloughTocher) else plane
    told = np.where(inside[:, None], piece(self, simplices, x), self.fill_value)
    return told_as(found, np.reshape(told, found.shape))


def barycentric(corners: Any, x: Any) -> Any:
    """The coordinates of points by the corners of simplices, of shape (m, d + 1, d)."""
    sides = np.swapaxes(corners[:, :-1] - corners[:, -1:], 1, 2)
    first = np.linalg.solve(sides, (x - corners[:, -1])[:, :, None])[:, :, 0]
    return np.concatenate((first, 1.0 - np.sum(first, axis=1, keepdims=True)), axis=1)


def plane(self: Any, simplices: Any, x: Any) -> Any:
    """Planes through the values at the corners."""
    corners = self.tri.simplices[simplices]
    shares = barycentric(self.points[corners], x)
    return np.sum(shares[:, :, None] * self.values[corners], axis=1)


def cubic(self: Any, simplices: Any, x: Any) -> Any:
    """Cubic pieces on the thirds of triangles, by their control points and Bernstein's polynomials."""
    corners = self.tri.simplices[simplices]
    p, f, g = self.points[corners], self.values[corners], self.grad[corners]
    shares = barycentric(p, x)
    least = np.min(shares, axis=1)
    b = [shares[:, 0] - least, shares[:, 1] - least, shares[:, 2] - least, 3.0 * least]
    bends = [bend(self, p, simplices, corner) for corner in range(3)]
    total = np.zeros(f[:, 0].shape)
    for powers, control in control_points(p, f, g, bends).items():
        total = total + bernstein(powers, b)[:, None] * control
    return total


FACTORIAL = (1.0, 1.0, 2.0, 6.0)


def bernstein(powers: tuple[int, ...], b: Any) -> Any:
    """The polynomial of these powers of the four coordinates."""
    product, count = np.ones(len(b[0])), 6.0
    for share, power in zip(b, powers, strict=True):
        count = count / FACTORIAL[power]
        for _ in range(power):
            product = product * share
    return count * product


def bend(self: Any, p: Any, simplices: Any, corner: int) -> Any:
    """Where the slope across the edge opposite to a corner is linear: towards the next centre."""
    neighbours, exists = beyond_edge(self.tri, simplices, corner)
    centres = np.mean(self.points[self.tri.simplices[neighbours]], axis=1)
    shares = barycentric(p, centres)
    one, other = shares[:, (corner + 1) % 3], shares[:, (corner + 2) % 3]
    across = np.where(exists, 2.0 - 3.0 * other - 3.0 * one, 1.0)
    return np.where(exists, (2.0 * other + one - 1.0) / across, -0.5)[:, None]


def beyond_edge(tri: Any, simplices: Any, corner: int) -> Any:
    """The triangles beyond the edges opposite to a corner, and whether there are any."""
    found = tri.neighbors[simplices, corner]
    return np.maximum(found, 0), found >= 0


non_differentiable(beyond_edge)


def control_points(p: Any, f: Any, g: Any, bends: Any) -> dict[tuple[int, ...], Any]:
    """The nineteen control points by the powers of three corners and the centre."""
    c = {}
    for i in range(3):
        c[powers_of(i, i, i)] = f[:, i]
        for j in range(3):
            if i != j:
                rise = np.sum(g[:, i] * (p[:, j] - p[:, i])[:, None, :], axis=2)
                c[powers_of(i, i, j)] = f[:, i] + rise / 3.0
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        c[powers_of(i, i, 3)] = third(c, (i, i, j), (i, i, k), (i, i, i))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        c0, c1, c2, c3 = [c[powers_of(*at)] for at in ((j, j, j), (j, j, k), (j, k, k), (k, k, k))]
        ends = c[powers_of(j, j, 3)] + c[powers_of(k, k, 3)]
        turned = bends[i] * (c3 - 3.0 * c2 + 3.0 * c1 - c0)
        c[powers_of(j, k, 3)] = (turned - c0 + 2.0 * c1 - c2 + ends) / 2.0
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        c[powers_of(i, 3, 3)] = third(c, (i, j, 3), (i, k, 3), (i, i, 3))
    c[powers_of(3, 3, 3)] = third(c, (0, 3, 3), (1, 3, 3), (2, 3, 3))
    return c


def powers_of(*numbers: int) -> tuple[int, ...]:
    """How often each of the four points counts."""
    return tuple([numbers.count(i) for i in range(4)])


def third(c: Any, *places: tuple[int, ...]) -> Any:
    """The mean of three control points."""
    return (c[powers_of(*places[0])] + c[powers_of(*places[1])] + c[powers_of(*places[2])]) / 3.0
