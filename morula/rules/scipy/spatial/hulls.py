"""Rules of what Qhull computes: the volume and the area of convex hulls, by their facets.

    volume = Σ |det(facet - c)| / d!,   area = Σ √det(E Eᵀ) / (d - 1)!,   E the edges from one corner

A hull goes by value, with the cotangent `Tangent[ConvexHull](points=…)`. What is numbered or counted,
in hulls, triangulations and diagrams, is constant; what else is real is refused where it counts.
Tests: tests/rules/scipy/test_spatial.py
"""

from __future__ import annotations

from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import ConvexHull, Delaunay, HalfspaceIntersection, Voronoi

from morula.core.extend import (
    ZERO,
    NoTangent,
    Tangent,
    UnsupportedError,
    adjoint_object,
    call,
    frule,
    is_zero,
    non_differentiable,
    rrule,
    stays_general,
)
from morula.rules.arrays.bodies import instead_of
from morula.rules.arrays.types import Anything
from morula.rules.scipy.spatial.fields import reader_of
from morula.rules.versions import present

if TYPE_CHECKING:  # the type is there for dispatch
    Diagram = Any
else:
    Diagram = ConvexHull | Delaunay | Voronoi | HalfspaceIntersection
CLASSES = (ConvexHull, Delaunay, Voronoi, HalfspaceIntersection)
MORE_POINTS = (
    "points that are added to a hull, a triangulation or a diagram have no derivative: make a new "
    "one of all points"
)


def corners(hull: Any) -> Any:
    """The points at the corners of the facets."""
    return points_of(hull)[hull.simplices]


def volume(hull: Any) -> Any:
    """The sum of the cones from a point inside over the facets."""
    at = corners(hull)
    return np.sum(np.abs(np.linalg.det(at - inside(hull)))) / factorial(at.shape[-1])


def area(hull: Any) -> Any:
    """The sum of the facets."""
    at = corners(hull)
    edges = at[:, 1:] - at[:, :1]
    squares = np.linalg.det(edges @ np.swapaxes(edges, -1, -2))
    flat = squares <= 0
    return np.sum(np.where(flat, 0.0, np.sqrt(np.where(flat, 1.0, squares)))) / factorial(
        at.shape[-1] - 1
    )


def inside(hull: Any) -> Any:
    """A point inside, which may be any."""
    return np.mean(hull.points[hull.vertices], axis=0)


non_differentiable(inside)
MEASURES = {(ConvexHull, "volume"): volume, (ConvexHull, "area"): area}


def measure_of(x: Any, name: str) -> Any:
    """What an attribute means as a function of the points, or None."""
    return next((f for (cls, n), f in MEASURES.items() if n == name and isinstance(x, cls)), None)


points_of = reader_of("points")


def is_constant(y: Any) -> bool:
    """Are these numbers or lists of numbers that count, or a method?"""
    if isinstance(y, tuple):
        return all(map(is_constant, y))
    if isinstance(y, np.ndarray):
        return y.dtype.kind in "biu"
    return not isinstance(y, float) and not callable(y)


non_differentiable(measure_of, is_constant, *present(Delaunay, "find_simplex"))


def refuse(name: str) -> None:
    """Refuse an attribute that is real and has no formula here."""
    raise UnsupportedError(
        f"{name!r} of what Qhull computes has no derivative here: compute it from the points, whose "
        "numbers are constant"
    )


@rrule(getattr)
def _(x: Diagram, name: str):
    y = getattr(x, name)

    def getattr_pullback(ȳ):
        if is_zero(ȳ) or is_constant(y):
            return ZERO, NoTangent()
        if name == "points" and not isinstance(x, HalfspaceIntersection):
            return Tangent[type(x)](points=ȳ), NoTangent()
        measure = measure_of(x, name)
        if measure is not None:
            _, back = call(measure, x)
            return back(ȳ)[1], NoTangent()
        if not isinstance(ȳ, Tangent):
            refuse(name)
        return ȳ, NoTangent()

    return y, getattr_pullback


@frule(getattr)
def _(x: Diagram, name: str):
    y = getattr(x, name)

    def getattr_pushforward(ẋ, *_):
        if is_zero(ẋ) or is_constant(y):
            return ZERO
        measure = measure_of(x, name)
        if measure is not None:
            _, back = call(measure, x)
            return np.sum(back(1.0)[1].points * ẋ.points)
        if name != "points" and not callable(y):
            refuse(name)
        return ẋ.points if name == "points" else ẋ

    return y, getattr_pushforward


def make(cls: Any, options: dict[str, Any], points: Any, *rest: Any) -> Any:
    """A hull, a triangulation or a diagram."""
    return cls(points, *rest, **options)


@rrule(make)
def _(cls: Any, options: dict, points: np.ndarray, *rest: Anything):
    def make_pullback(x̄):
        return NoTangent(), NoTangent(), of_points(x̄, cls), *[ZERO] * len(rest)

    return make(cls, options, points, *rest), make_pullback


@frule(make)
def _(cls: Any, options: dict, points: np.ndarray, *rest: Anything):
    def make_pushforward(ċ, ȯ, ẋ, *_):
        if is_zero(ẋ):
            return ZERO
        return Tangent[cls](points=np.asarray(ẋ, dtype=float))

    return make(cls, options, points, *rest), make_pushforward


def of_points(x̄: Any, cls: Any) -> Any:
    """The cotangent of the points; half-spaces have none."""
    if is_zero(x̄):
        return ZERO
    if cls is HalfspaceIntersection:
        refuse(cls.__name__)
    return x̄.points


def _followed(cls):
    adjoint_object.register(cls, lambda x: None)

    @instead_of(cls)
    def made(points: Any, *rest: Any, **options: Any) -> Any:
        return make(cls, options, np.asarray(points), *rest)

    @instead_of(*present(cls, "add_points add_halfspaces"))
    def add_points(self: Any, *points: Any, **options: Any) -> Any:
        raise UnsupportedError(MORE_POINTS)


for _class in CLASSES:
    _followed(_class)

# Their attributes count as what they mean, not as parts that each have a gradient of their own.
stays_general.append(lambda x: isinstance(x, type) and issubclass(x, CLASSES))
