"""scipy.spatial's distances of two points, interpolation on spheres, hulls and diagrams."""

import numpy as np
import pytest
from scipy import spatial
from scipy.spatial import (
    ConvexHull,
    Delaunay,
    HalfspaceIntersection,
    SphericalVoronoi,
    Voronoi,
    distance,
)

from morula import UnsupportedError, grad, gradient, jvp
from morula.testing import check_gradient
from tests.array_modes import check_array_modes, weigh

RNG = np.random.default_rng(1)
U, V, W = RNG.random((3, 5)) + 0.1
VI = 1.3 * np.eye(5) + 0.1
P2 = RNG.standard_normal((8, 2))
P3 = RNG.standard_normal((9, 3))
P4 = RNG.standard_normal((9, 4))


def unit(x):
    return x / np.sqrt(np.sum(x * x))


OF_TWO_POINTS = {
    "braycurtis": (lambda u, v, w: distance.braycurtis(u, v - 0.5, w), U, V, W),
    "canberra": (lambda u, v, w: distance.canberra(u, v, w=w), U, V, W),
    "chebyshev": (lambda u, v, w: distance.chebyshev(u, v, w), U, V, W),
    "cityblock": (lambda u, v, w: distance.cityblock(u, v, w), U, V, W),
    "correlation": (lambda u, v, w: distance.correlation(u, v, w), U, V, W),
    "correlation, not centred": (lambda u, v: distance.correlation(u, v, None, False), U, V),
    "cosine": (lambda u, v, w: distance.cosine(u, v, w), U, V, W),
    "euclidean": (lambda u, v, w: distance.euclidean(u, v, w), U, V, W),
    "jensenshannon": (lambda u, v: distance.jensenshannon(u, v, 2.0), U, V),
    "jensenshannon of rows": (
        lambda u, v: weigh(distance.jensenshannon([u, v], [v, u * u], axis=1, keepdims=True)), U, V,
    ),
    "mahalanobis": (lambda u, v, i: distance.mahalanobis(u, v, i), U, V, VI),
    "minkowski": (lambda u, v, w: distance.minkowski(u, v, 3, w), U, V, W),
    "minkowski, 1": (lambda u, v, w: distance.minkowski(u, v, p=1, w=w), U, V, W),
    "minkowski, inf": (lambda u, v, w: distance.minkowski(u, v, np.inf, w), U, V, W),
    "seuclidean": (lambda u, v, w: distance.seuclidean(u, v, w), U, V, W),
    "sqeuclidean": (lambda u, v, w: distance.sqeuclidean(u, v, w), U, V, W),
    "of lists": (lambda u, v: distance.euclidean([u[0], 1.0], [2.0, v[1]]), U, V),
    "directed_hausdorff": (lambda u, v: distance.directed_hausdorff(u, v)[0], P3, 1.1 * P3[:4]),
    "cdist with weights": (lambda u, w: weigh(distance.cdist(u, u * u, "cosine", w=w)), P3, W[:3]),
    "squareform": (lambda u: weigh(distance.squareform(distance.pdist(u))), P3),
    "distance_matrix": (lambda u, v: weigh(spatial.distance_matrix(u, v, 3)), P2, P2[:3] ** 2),
    "distance_matrix, by rows": (
        lambda u, v: weigh(spatial.distance_matrix(v, u, threshold=1)), P2, P2[:3] ** 2,
    ),
    "distance_matrix, by columns": (
        lambda u, v: weigh(spatial.distance_matrix(u, v, threshold=1)), P2, P2[:3] ** 2,
    ),
    "minkowski_distance": (lambda u, v: weigh(spatial.minkowski_distance(u, v, 3)), P2, P2**2),
    "minkowski_distance, broadcast": (
        lambda u, v: weigh(spatial.minkowski_distance(u, v)), P2, P2[0] + 1,
    ),
    "minkowski_distance_p": (
        lambda u, v: weigh(spatial.minkowski_distance_p(u, v, np.inf)), P2, P2**2,
    ),
    "geometric_slerp": (
        lambda u, v, t: weigh(spatial.geometric_slerp(unit(u), unit(v), t)), U, V, W[:3],
    ),
    "geometric_slerp at one": (
        lambda u, v, t: weigh(spatial.geometric_slerp(unit(u), unit(v), t)), U, V, 0.4,
    ),
    "procrustes": (lambda u, v: weigh(spatial.procrustes(u, v)), P3, P3[::-1] + 0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TWO_POINTS)
def test_of_two_points(name):
    f, *xs = OF_TWO_POINTS[name]
    check_array_modes(f, *xs)


@pytest.mark.parametrize("name", ["euclidean", "cityblock", "chebyshev", "minkowski"])
def test_points_that_are_the_same(name):
    f = getattr(distance, name)
    assert [g.tolist() for g in gradient(lambda u, v: f(u, v), U, U.copy())] == [[0.0] * 5] * 2


def test_sets_that_are_the_same():
    for g in gradient(lambda u, v: distance.directed_hausdorff(u, v)[0], P3, P3.copy()):
        assert not np.any(g)
    with pytest.raises(ValueError, match="same number of columns"):
        grad(lambda u: distance.directed_hausdorff(u, P2)[0])(P3)


BOOLEAN = {
    "dice": distance.dice,
    "hamming": distance.hamming,
    "jaccard": distance.jaccard,
    "rogerstanimoto": distance.rogerstanimoto,
    "russellrao": distance.russellrao,
    "sokalsneath": distance.sokalsneath,
    "yule": distance.yule,
}


@pytest.mark.parametrize("name", BOOLEAN)
def test_distances_of_truth_values_are_constant(name):
    def f(u, v):
        return np.sum(u) * BOOLEAN[name](u > 0.5, v > 0.5)

    c = f(U, V) / np.sum(U)
    for g, h in (gradient(f, U, V),):
        np.testing.assert_allclose(g, np.full(5, c))
        assert not np.any(h)
    np.testing.assert_allclose(jvp(f, (U, V), (U, V)), (f(U, V), f(U, V)))


# -- hulls and diagrams ----------------------------------------------------------------------------


@pytest.mark.parametrize("points", [P2, P3, P4], ids=["2", "3", "4"])
def test_volume_and_area_of_hulls(points):
    check_array_modes(lambda p: ConvexHull(p).volume, points)
    check_array_modes(lambda p: ConvexHull(p).area, points)


def test_hulls_of_lists_with_facets_in_one_plane_and_as_arguments():
    cube = np.array([[i, j, k] for i in (0.0, 1.0) for j in (0.0, 1.0) for k in (0.0, 1.0)])
    stretched = gradient(lambda s: ConvexHull(cube * s).volume, np.array([1.0, 2.0, 3.0]))[0]
    np.testing.assert_allclose(stretched, [6.0, 3.0, 2.0])
    stretched = gradient(lambda s: ConvexHull(cube * s).area, np.array([1.0, 2.0, 3.0]))[0]
    np.testing.assert_allclose(stretched, [10.0, 8.0, 6.0])
    check_gradient(lambda p: ConvexHull([p[0], p[1], [3.0, 4.0]], qhull_options="Qt").volume, P2)
    hull = ConvexHull(P3)
    np.testing.assert_allclose(
        grad(lambda h: h.volume)(hull).points, grad(lambda p: ConvexHull(p).volume)(P3)
    )
    check_array_modes(lambda p: np.sum(p**2) * hull.volume, P3)


NUMBERED = {
    "simplices": lambda p: np.sum(ConvexHull(p).simplices),
    "vertices": lambda p: np.sum(ConvexHull(p).vertices) + ConvexHull(p).nsimplex,
    "triangles": lambda p: np.sum(Delaunay(p).simplices) + Delaunay(p).ndim,
    "find_simplex": lambda p: np.sum(Delaunay(p).find_simplex(P2 * 0.1)),
    "neighbours": lambda p: np.sum(Delaunay(p).vertex_neighbor_vertices[1]),
    "regions": lambda p: sum(map(len, Voronoi(p).regions)) + np.sum(Voronoi(p).ridge_points),
}


@pytest.mark.parametrize("name", NUMBERED)
def test_what_is_numbered_is_constant(name):
    def f(p):
        return np.sum(p**2) * NUMBERED[name](p)

    np.testing.assert_allclose(grad(f)(P2), 2 * P2 * NUMBERED[name](P2))
    np.testing.assert_allclose(jvp(f, (P2,), (P2,))[1], 2 * f(P2))


def test_triangles_from_their_points():
    def f(p):
        d = Delaunay(p)
        a, b, c = [d.points[d.simplices[:, i]] for i in range(3)]
        u, v = b - a, c - a
        return np.sum(np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])) / 2

    check_array_modes(f, P2)
    np.testing.assert_allclose(grad(f)(P2), grad(lambda p: ConvexHull(p).volume)(P2), atol=1e-12)


def intersected(p):
    sides = np.array([[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [1.0, 1.0, -2.0]])
    return weigh(HalfspaceIntersection(sides * np.sum(p**2), np.array([0.5, 0.5])).intersections)


def areas(p):
    return weigh(SphericalVoronoi(p / np.linalg.norm(p, axis=1)[:, None]).calculate_areas())


REFUSED = {
    "equations": (lambda p: weigh(ConvexHull(p).equations), P2),
    "bounds": (lambda p: weigh(ConvexHull(p).max_bound), P2),
    "transform": (lambda p: weigh(Delaunay(p).transform), P2),
    "vertices": (lambda p: weigh(Voronoi(p).vertices), P2),
    "intersections": (intersected, P2),
    "areas on a sphere": (areas, P3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_else_is_real_is_refused(name):
    f, p = REFUSED[name]
    assert np.isfinite(f(p))
    with pytest.raises(UnsupportedError, match="has no derivative here"):
        grad(f)(p)
    with pytest.raises(UnsupportedError):
        jvp(f, (p,), (p,))


def test_points_that_are_added_are_refused():
    def f(p):
        hull = ConvexHull(p[:5], incremental=True)
        hull.add_points(p[5:])
        return hull.volume

    with pytest.raises(UnsupportedError, match="added"):
        grad(f)(P2)
