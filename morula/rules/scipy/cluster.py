"""Rules of scipy.cluster: codes and clusters are constant, distances and means are not.

The height at which clusters A and B merge, by the distances d of the points, D = (d[i, j]²):

    single, complete           the d[i, j] that was chosen, i in A and j in B
    average, weighted          Σ aᵢ bⱼ d[i, j]
    centroid, median, ward     √(-s/2 uᵀ D u), u = a - b

a and b are the weights of the points in their clusters: equal ones, or (weighted, median) halved at
each merge; s is 1, for Ward's method 2|A||B| / (|A| + |B|). For distances in space -uᵀ D u / 2
is the squared distance of the weighted means; as it is linear in D, it obeys the recurrence of Lance
and Williams (1967), by which SciPy computes, for any other numbers too.
Tests: tests/rules/scipy/test_cluster.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster import hierarchy, vq

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import told_as
from morula.rules.scipy.kernels import writes
from morula.rules.scipy.spatial.distances import places

# The modules that hold the code, or the packages around them; and their compiled parts.
hierarchy = getattr(hierarchy, "_hierarchy_impl", hierarchy)
_hierarchy, _vq = hierarchy._hierarchy, getattr(vq, "_vq_impl", vq)._vq
_optimal_leaf_ordering = hierarchy._optimal_leaf_ordering

# -- vector quantisation ---------------------------------------------------------------------------


def plain(fn: Any, *args: Any) -> Any:
    """The call as it is."""
    return fn(*args)


non_differentiable(plain)
VQ, MEANS = _vq.vq, _vq.update_cluster_means


@instead_of(VQ)
def _(obs, codes):
    code, distances = plain(VQ, obs, codes)
    apart = obs - codes[code]
    apart = np.abs(apart) if apart.ndim == 1 else np.linalg.norm(apart, axis=1)
    return code, told_as(distances, apart)


@instead_of(MEANS)
def _(obs, labels, nc):
    means, has_members = plain(MEANS, obs, labels, nc)
    return told_as(means, np.dot(shares(labels, nc, obs.dtype), obs)), has_members


def shares(labels: Any, n: Any, dtype: Any) -> Any:
    """How much of the mean of each cluster each observation is."""
    members = labels == np.arange(n)[:, None]
    return (members / np.maximum(np.sum(members, axis=1, keepdims=True), 1)).astype(dtype)


non_differentiable(shares)

# -- heights of merges -----------------------------------------------------------------------------

METHODS = {code: name for name, code in hierarchy._LINKAGE_METHODS.items()}
HALVED = ("weighted", "median")
MST, CHAIN, FAST = _hierarchy.mst_single_linkage, _hierarchy.nn_chain, _hierarchy.fast_linkage


@instead_of(MST)
def _(dists, n):
    return linked(plain(MST, dists, n), dists, n, "single")


@instead_of(CHAIN)
def _(dists, n, method):
    return linked(plain(CHAIN, dists, n, method), dists, n, METHODS[method])


@instead_of(FAST)
def _(dists, n, method):
    return linked(plain(FAST, dists, n, method), dists, n, METHODS[method])


def linked(Z: Any, d: Any, n: Any, method: Any) -> Any:
    """Merges that SciPy found, with the heights that they have by the distances."""
    return with_heights(Z, heights(Z, d, n, method))


def with_heights(Z: Any, of: Any) -> Any:
    """Merges, whose heights have the derivative of others."""
    return told_as(Z, np.stack((Z[:, 0] * 0.0, Z[:, 1] * 0.0, of, Z[:, 3] * 0.0), axis=1))


def heights(Z: Any, d: Any, n: Any, method: Any) -> Any:
    """How far apart the clusters of each merge are, by the distances of the points."""
    if method in ("single", "complete"):
        return d[chosen(Z, d, n, method)]
    a, b, scale = clusters(Z, n, method)
    D = np.concatenate((d, np.zeros(1)))[places(n)]
    if method in ("average", "weighted"):
        return np.sum(np.dot(a, D) * b, axis=1)
    u = a - b
    squares = -0.5 * scale * np.sum(np.dot(u, D * D) * u, axis=1)
    same = (squares <= 0) | (Z[:, 2] == 0)
    return np.where(same, 0.0, np.sqrt(np.where(same, 1.0, squares)))


def clusters(Z: Any, n: Any, method: Any) -> Any:
    """The weights of the points in the two clusters of each merge, and the scale of the squares."""
    of = np.concatenate((np.eye(n), np.zeros((n - 1, n))))
    sizes = np.concatenate((np.ones(n), Z[:, 3]))
    left, right = Z[:, :2].astype(int).T
    for m, (i, j) in enumerate(zip(left, right, strict=True)):
        share = 0.5 if method in HALVED else sizes[i] / sizes[n + m]
        of[n + m] = share * of[i] + (1 - share) * of[j]
    a, b = sizes[left], sizes[right]
    return of[left], of[right], 2 * a * b / (a + b) if method == "ward" else np.ones(n - 1)


def chosen(Z: Any, d: Any, n: Any, method: Any) -> Any:
    """Which distance is the height of each merge: the least or the greatest between its clusters."""
    points: list[Any] = [np.array([i]) for i in range(n)]
    numbers, best = places(n), np.argmin if method == "single" else np.argmax
    found = []
    for i, j in Z[:, :2].astype(int):
        between = np.ravel(numbers[np.ix_(points[i], points[j])])
        found.append(between[best(d[between])])
        points.append(np.concatenate((points[i], points[j])))
    return np.array(found, int)


non_differentiable(clusters, chosen)

ORDERED = _optimal_leaf_ordering.optimal_leaf_ordering


@instead_of(ORDERED)
def _(Z, D):
    return with_heights(plain(ORDERED, Z, D), Z[:, 2])


# -- what is told of merges ------------------------------------------------------------------------


@writes(_hierarchy.cophenetic_distances, 1)
def cophenetic(Z: Any, d: Any, n: Any) -> Any:
    """The height at which two points come together."""
    return Z[meetings(Z, len(d), n), 2]


def meetings(Z: Any, size: Any, n: Any) -> Any:
    """The merge at which two points come together."""
    numbered, found = Z.copy(), np.zeros(size)
    numbered[:, 2] = np.arange(len(Z))
    _hierarchy.cophenetic_distances(numbered, found, n)
    return found.astype(int)


def below(Z: Any, depth: Any) -> Any:
    """Which merges (columns) are in the trees under others, and no more than so many levels down."""
    n = len(Z) + 1
    found = np.eye(len(Z), dtype=bool)
    for _ in range(depth):
        deeper = found.copy()
        for m, pair in enumerate(Z[:, :2].astype(int)):
            for child in pair[pair >= n] - n:
                deeper[m] |= found[child]
        found = deeper
    return found


def whole_below(Z: Any) -> Any:
    """Which merges are in the trees under others."""
    n = len(Z) + 1
    found = np.eye(len(Z), dtype=bool)
    for m, pair in enumerate(Z[:, :2].astype(int)):
        for child in pair[pair >= n] - n:
            found[m] |= found[child]
    return found


def largest_below(Z: Any, x: Any) -> Any:
    """For each merge, the one with the largest of x in the tree under it."""
    return np.argmax(np.where(whole_below(Z), x, -np.inf), axis=1)


non_differentiable(meetings, below, largest_below)


@writes(_hierarchy.inconsistent, 1)
def inconsistent(Z: Any, R: Any, n: Any, d: Any) -> Any:
    """Mean and deviation of the heights just under each merge, their number, and how it stands out."""
    near = below(Z, d - 1).astype(float)
    count = np.sum(near, axis=1)
    h = Z[:, 2]
    mean = np.dot(near, h) / count
    squares = np.sum(near * (h - mean[:, None]) ** 2, axis=1) / np.maximum(count - 1, 1)
    same = (squares <= 0) | (count == 1)
    deviation = np.where(same, 0.0, np.sqrt(np.where(same, 1.0, squares)))
    standing = np.where(same, 0.0, (h - mean) / np.where(same, 1.0, deviation))
    return np.stack((mean, deviation, np.zeros(len(h)), standing), axis=1)


@writes(_hierarchy.get_max_dist_for_each_cluster, 1)
def highest(Z: Any, MD: Any, n: Any) -> Any:
    """The greatest height in the tree under each merge."""
    return Z[largest_below(Z, Z[:, 2]), 2]


@writes(_hierarchy.get_max_Rfield_for_each_cluster, 2)
def greatest(Z: Any, R: Any, found: Any, n: Any, field: Any) -> Any:
    """The greatest of one column of R in the tree under each merge."""
    return R[largest_below(Z, R[:, field]), field]


@writes(_hierarchy.calculate_cluster_sizes, 1)
def sizes(Z: Any, CS: Any, n: Any) -> Any:
    """Numbers of points."""
    return np.zeros(len(CS))


non_differentiable(
    hierarchy.fcluster, hierarchy.fclusterdata, hierarchy.cut_tree, hierarchy.leaves_list,
    hierarchy.leaders, hierarchy.is_isomorphic, hierarchy.is_monotonic, hierarchy.is_valid_im,
    hierarchy.is_valid_linkage, hierarchy.num_obs_linkage, hierarchy.correspond,
)  # fmt: skip
