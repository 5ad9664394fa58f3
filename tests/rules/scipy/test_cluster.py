"""Vector quantisation and hierarchical clustering: distances, means and heights of merges."""

import numpy as np
import pytest
from scipy.cluster import hierarchy, vq
from scipy.spatial.distance import pdist

from morula import gradient, jvp, withgradient
from tests.array_modes import check_array_modes, often

METHODS = ("single", "complete", "average", "weighted", "centroid", "median", "ward")
X = np.random.default_rng(3).standard_normal((7, 3))
Y = pdist(X)
ANY = np.random.default_rng(1).random(21) + 0.5  # no distances of points
CENTRES = X[:2] + 0.1
LONELY = np.array([[0.0, 0, 0], [1, 1, 1], [50, 50, 50]])


def total(x):
    return np.sum(np.sin(x) * np.cos(np.arange(np.size(x))).reshape(np.shape(x)))


def heights(Z):
    return np.sum(np.sin(Z[:, 2]) * np.arange(1, len(Z) + 1))


@pytest.mark.parametrize("method", often(METHODS, "single", "average", "ward"))
def test_heights_of_merges(method):
    check_array_modes(lambda X: heights(hierarchy.linkage(X, method)), X)
    check_array_modes(lambda y: heights(getattr(hierarchy, method)(y)), ANY)


def average(y):
    return hierarchy.linkage(y, "average")


OF_DISTANCES = {
    "optimal_leaf_ordering": lambda y: heights(hierarchy.optimal_leaf_ordering(average(y), y)),
    "linkage ordered": lambda y: heights(hierarchy.linkage(y, optimal_ordering=True)),
    "cophenet": lambda y: total(hierarchy.cophenet(average(y))),
    "cophenet of distances": lambda y: hierarchy.cophenet(average(y), y)[0],
    "inconsistent": lambda y: total(hierarchy.inconsistent(average(y))),
    "inconsistent deeper": lambda y: total(hierarchy.inconsistent(average(y), d=3)),
    "maxdists": lambda y: total(hierarchy.maxdists(hierarchy.centroid(y))),
    "maxinconsts": lambda y: total(
        hierarchy.maxinconsts(average(y), hierarchy.inconsistent(average(y)))
    ),
    "maxRstat": lambda y: total(
        hierarchy.maxRstat(average(y), hierarchy.inconsistent(average(y)), 1)
    ),
    "mlab": lambda y: heights(hierarchy.from_mlab_linkage(hierarchy.to_mlab_linkage(average(y)))),
    "to_tree": lambda y: (
        hierarchy.to_tree(average(y)).dist * hierarchy.to_tree(average(y)).left.dist
    ),
    "dendrogram": lambda y: sum(
        [sum(row) for row in hierarchy.dendrogram(average(y), no_plot=True)["dcoord"]]
    ),
}
CONSTANT = {
    "fcluster": lambda y: np.sum(hierarchy.fcluster(average(y), 1.2, "distance")),
    "cut_tree": lambda y: np.sum(hierarchy.cut_tree(average(y), 3)),
    "leaves_list": lambda y: hierarchy.leaves_list(average(y))[2],
    "leaders": lambda y: hierarchy.leaders(
        average(y), hierarchy.fcluster(average(y), 2, "maxclust")
    )[0][0],
    "questions": lambda y: hierarchy.num_obs_linkage(average(y)) * (
        hierarchy.is_valid_linkage(average(y)) and hierarchy.is_monotonic(average(y))
        and hierarchy.correspond(average(y), y)
        and hierarchy.is_valid_im(hierarchy.inconsistent(average(y)))
        and hierarchy.is_isomorphic(np.array([1, 1, 2]), np.array([2, 2, 1]))
    ),
    "fclusterdata": lambda y: np.sum(hierarchy.fclusterdata(y.reshape(7, 3), 1.2)),
}  # fmt: skip


@pytest.mark.parametrize("name", often(OF_DISTANCES, "cophenet", "inconsistent", "dendrogram"))
def test_what_is_told_of_merges(name):
    check_array_modes(OF_DISTANCES[name], Y)


@pytest.mark.parametrize("name", CONSTANT)
def test_clusters_are_constant(name, path):
    f = CONSTANT[name]
    (g,) = gradient(lambda y: f(y) * np.sum(y * y), Y)
    np.testing.assert_allclose(g, 2 * f(Y) * Y, rtol=1e-14)
    pushed = jvp(lambda y: f(y) * np.sum(y * y), (Y,), (Y,))[1]
    assert pushed == pytest.approx(2 * f(Y) * np.sum(Y * Y), rel=1e-13)


OF_POINTS = {
    "whiten": lambda X: total(vq.whiten(X)),
    "vq": lambda X: total(vq.vq(X, CENTRES)[1]),
    "vq of one feature": lambda X: total(vq.vq(X[:, 0], np.array([0.0, 1.0]))[1]),
    "vq by the codes": lambda X: total(vq.vq(X[2:], X[:2])[1]),
    "py_vq": lambda X: total(vq.py_vq(X, CENTRES)[1]),
    "kmeans": lambda X: total(vq.kmeans(X, CENTRES)[0]) + vq.kmeans(X, CENTRES)[1],
    "kmeans from a start": lambda X: total(vq.kmeans(X, 2, iter=3, rng=1)[0]),
    "kmeans of one feature": lambda X: total(vq.kmeans(X[:, 0], np.array([0.0, 1.0]))[0]),
    "kmeans2": lambda X: total(vq.kmeans2(X, CENTRES, minit="matrix")[0]),
    "kmeans2 ++": lambda X: total(vq.kmeans2(X, 2, minit="++", rng=1)[0]),
    "kmeans2 points": lambda X: total(vq.kmeans2(X, 2, minit="points", rng=1)[0]),
    "kmeans2 random": lambda X: total(vq.kmeans2(X, 2, minit="random", rng=1, iter=1)[0]),
}


@pytest.mark.parametrize("name", OF_POINTS)
def test_codes(name):
    check_array_modes(OF_POINTS[name], X)


@pytest.mark.filterwarnings("ignore:One of the clusters is empty")
def test_clusters_without_members_stay_where_they_are(path):
    (g,) = gradient(lambda C: vq.kmeans2(X, C, minit="matrix", iter=2)[0][2, 1], LONELY)
    np.testing.assert_array_equal(g, [[0, 0, 0], [0, 0, 0], [0, 1, 0]])


def test_values_are_those_of_the_plain_call(path):
    for method in METHODS:
        for points in (X, ANY):
            kept = []

            def f(x, method=method, kept=kept):
                kept.append(hierarchy.linkage(x, method))
                return kept[0][-1, 2]

            value, _ = withgradient(f, points)
            np.testing.assert_array_equal(kept[0], hierarchy.linkage(points, method))
            assert value == hierarchy.linkage(points, method)[-1, 2]


def test_points_in_the_same_place():
    for method in METHODS:
        (g,) = gradient(lambda X, m=method: hierarchy.linkage(X, m)[0, 2], X[[0, 0, 1, 2]])
        np.testing.assert_array_equal(g, np.zeros((4, 3)))
    (g,) = gradient(lambda X: vq.vq(X, X[:2])[1][0], X)
    np.testing.assert_array_equal(g, np.zeros(X.shape))


def test_single_precision_and_lists(path):
    x = X.astype(np.float32)

    def f(x):
        code, distances = vq.vq(x, np.float32(CENTRES))
        assert code.dtype == np.int32
        return np.sum(distances)

    value, (g,) = withgradient(f, x)
    assert value.dtype == g.dtype == np.float32
    y = [1.0, 2.0, 4.0]
    assert gradient(lambda y: hierarchy.linkage(y)[1, 2], y) == ([0.0, 1.0, 0.0],)


def test_errors_are_those_of_scipy():
    with pytest.raises(ValueError, match="Invalid method"):
        gradient(lambda X: hierarchy.linkage(X, "none")[0, 2], X)
    with pytest.raises(ValueError, match="finite values"):
        gradient(lambda y: hierarchy.linkage(y)[0, 2], np.array([1.0, np.nan, 2.0]))
    with pytest.raises(ValueError, match="Asked for 0 clusters"):
        gradient(lambda X: vq.kmeans(X, 0)[1], X)
