"""Rules of scipy.spatial's KDTree and cKDTree: the distances, by the points of the tree and others.

A tree goes by value, with the cotangent `Tangent[KDTree](data=…, boxsize=…)`. Which points are
neighbours is constant; what is missing, at an infinite distance, has no gradient. KDTree is Python of
SciPy's, so that its methods are those of cKDTree.
Tests: tests/rules/scipy/test_neighbours.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree, cKDTree

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
)
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.arrays.types import Anything
from morula.rules.scipy.spatial.fields import reader_of

WEIGHTED = (
    "cKDTree.count_neighbors has no derivative by its weights here: multiply the weights of the pairs "
    "that query_ball_tree or query_pairs gives"
)
OF_NODES = "the nodes of a KDTree have no derivative: use its points, tree.data"
STRUCTURED = (
    "the structured array of sparse_distance_matrix holds no derivatives: ask for a 'coo_matrix' or "
    "a 'dict'"
)

adjoint_object.register(cKDTree, lambda tree: None)


points_of = reader_of("data")
sizes_of = reader_of("boxsize")  # of the periodic box
EXTREMES = {"maxes": np.max, "mins": np.min}
CONSTANT = ("n", "m", "size", "leafsize", "indices")


@rrule(getattr)
def _(tree: cKDTree, name: str):
    """The points and what bounds them have a derivative; a method counts as its tree."""

    def getattr_pullback(ȳ):
        if name in ("data", "boxsize"):
            return Tangent[type(tree)]({name: ȳ}), NoTangent()
        if name in EXTREMES:
            _, back = call(extremes_of, tree, name)
            return back(ȳ)[1:]
        if name in CONSTANT or is_zero(ȳ):
            return ZERO, NoTangent()
        return of_method(ȳ, tree, name), NoTangent()

    return getattr(tree, name), getattr_pullback


@frule(getattr)
def _(tree: cKDTree, name: str):
    def getattr_pushforward(ṫ, *_):
        if is_zero(ṫ) or callable(getattr(tree, name)):
            return ṫ
        if name in EXTREMES:
            points = points_of(tree)
            at = np.argmax if name == "maxes" else np.argmin
            return ṫ.data[at(points, axis=0), np.arange(points.shape[1])]
        return getattr(ṫ, name) if name in ("data", "boxsize") else ZERO

    return getattr(tree, name), getattr_pushforward


def of_method(ȳ: Any, tree: Any, name: str) -> Any:
    """The cotangent of the tree that a method has."""
    if isinstance(ȳ, Tangent) and callable(getattr(tree, name)):
        return ȳ
    raise UnsupportedError(OF_NODES)


def extremes_of(tree: Any, name: str) -> Any:
    """The largest or the smallest coordinates."""
    return EXTREMES[name](points_of(tree), axis=0)


# -- construction ----------------------------------------------------------------------------------


def make(tree_class: Any, data: Any, boxsize: Any, options: tuple[Any, ...]) -> Any:
    """A tree of a class, of arrays."""
    return tree_class(data, *options, boxsize)


@rrule(make)
def _(tree_class: Any, data: np.ndarray, boxsize: Anything, options: tuple):
    def make_pullback(t̄):
        return NoTangent(), t̄.data, of_sizes(t̄.boxsize, boxsize), NoTangent()

    return make(tree_class, data, boxsize, options), make_pullback


@frule(make)
def _(tree_class: Any, data: np.ndarray, boxsize: Anything, options: tuple):
    tree = make(tree_class, data, boxsize, options)

    def make_pushforward(ṫ, ẋ, ṡ, ȯ):
        if is_zero(ẋ) and is_zero(ṡ):
            return ZERO
        points = np.zeros(tree.data.shape) if is_zero(ẋ) else np.asarray(ẋ, dtype=float)
        sizes = np.zeros(tree.m) if is_zero(ṡ) else ṡ * np.ones(tree.m)
        return Tangent[tree_class](data=points, boxsize=sizes)

    return tree, make_pushforward


def _made(tree_class, default):
    @instead_of(tree_class)
    def made(
        data: Any, leafsize: Any = default, compact_nodes: Any = True, copy_data: Any = False,
        balanced_tree: Any = True, boxsize: Any = None,
    ) -> Any:  # fmt: skip
        size = None if boxsize is None else np.asarray(boxsize)
        options = leafsize, compact_nodes, copy_data, balanced_tree
        return make(tree_class, np.asarray(data), size, options)


def of_sizes(s̄: Any, boxsize: Any) -> Any:
    """The cotangent of what is given as the size of a box: one number for all axes, or one for each."""
    return np.sum(s̄) if not is_zero(s̄) and np.ndim(boxsize) == 0 else s̄


_made(cKDTree, 16)
_made(KDTree, 10)

# -- distances -------------------------------------------------------------------------------------


def turns(tree: Any, d: Any) -> Any:
    """How often the sizes of a periodic box are to be taken off differences."""
    sizes = np.asarray(tree.boxsize)
    return np.where(sizes > 0, np.round(d / np.where(sizes > 0, sizes, 1.0)), 0.0)


def wrapped(tree: Any, d: Any) -> Any:
    """Differences in the box of a tree, if it has one."""
    return d if tree.boxsize is None else d - turns(tree, d) * sizes_of(tree)


def is_order(p: Any, order: Any) -> bool:
    """Is a norm of this order?"""
    return bool(p == order)


non_differentiable(turns, is_order)


def lengths(d: Any, p: Any) -> Any:
    """The norms of differences along the last axis; that of zero has the gradient zero."""
    if is_order(p, 1):
        return np.sum(np.abs(d), axis=-1)
    if is_order(p, np.inf):
        return np.max(np.abs(d), axis=-1)
    return np.linalg.norm(d, None if is_order(p, 2) else p, axis=-1)


def neighbours(tree: Any, x: Any, k: Any, eps: Any, p: Any, bound: Any, workers: Any) -> Any:
    """What `query` gives."""
    return cKDTree.query(tree, x, k, eps, p, bound, workers)


@derivative_of(neighbours)
def distances(tree: Any, x: Any, k: Any, eps: Any, p: Any, bound: Any, workers: Any) -> Any:
    """The distances of points to their neighbours, which are those of the plain call."""
    x = np.asarray(x, dtype=float)
    i, found = numbers(tree, x, k, eps, p, bound, workers)
    if tree.n == 0:
        return np.zeros(i.shape), i
    near = x if i.ndim < x.ndim else x[..., None, :]
    d = points_of(tree)[i] - near
    return np.where(found, lengths(wrapped(tree, d), p), 0.0), i


def numbers(tree: Any, x: Any, *options: Any) -> Any:
    """The numbers of the neighbours, and whether there are any."""
    i = np.asarray(cKDTree.query(tree, x, *options)[1])
    found = i < tree.n
    return np.where(found, i, 0), found


non_differentiable(numbers)


@instead_of(cKDTree.query)
def query(
    tree: Any, x: Any, k: Any = 1, eps: Any = 0.0, p: Any = 2.0, distance_upper_bound: Any = np.inf,
    workers: Any = 1,
) -> Any:  # fmt: skip
    """The distances to the nearest points, and their numbers."""
    return neighbours(tree, x, k, eps, p, distance_upper_bound, workers)


# -- matrices of distances -------------------------------------------------------------------------


def pairs(tree: Any, other: Any, max_distance: Any, p: Any) -> Any:
    """The pairs of points that are near, with their distances."""
    found = cKDTree.sparse_distance_matrix(tree, other, max_distance, p, "ndarray")
    return found["i"].copy(), found["j"].copy(), found["v"].copy()


def numbers_of_pairs(tree: Any, other: Any, max_distance: Any, p: Any) -> Any:
    """The numbers of these points."""
    return pairs(tree, other, max_distance, p)[:2]


non_differentiable(numbers_of_pairs)


@derivative_of(pairs)
def distances_of_pairs(tree: Any, other: Any, max_distance: Any, p: Any) -> Any:
    """The distances of the pairs of the plain call."""
    i, j = numbers_of_pairs(tree, other, max_distance, p)
    d = points_of(other)[j] - points_of(tree)[i]
    return i, j, lengths(wrapped(tree, d), p)


@instead_of(cKDTree.sparse_distance_matrix)
def sparse_distance_matrix(
    tree: Any, other: Any, max_distance: Any, p: Any = 2.0, output_type: Any = "dok_matrix"
) -> Any:
    """The distances of points that are near each other, in one of four forms."""
    if output_type == "ndarray":
        return structured(tree, other, max_distance, p)
    i, j, v = pairs(tree, other, max_distance, p)
    if output_type == "dict":
        return {(int(i[n]), int(j[n])): v[n] for n in range(len(i))}
    if output_type not in ("coo_matrix", "dok_matrix"):
        raise ValueError("Invalid output type")
    found = sparse.coo_matrix((v, (i, j)), shape=(tree.n, other.n))
    return found if output_type == "coo_matrix" else found.todok()


def structured(tree: Any, other: Any, max_distance: Any, p: Any) -> Any:
    """The distances with the numbers of the points in an array of records."""
    return cKDTree.sparse_distance_matrix(tree, other, max_distance, p, "ndarray")


@rrule(structured)
def _(tree: Anything, other: Anything, max_distance: Anything, p: Anything):
    def structured_pullback(ȳ):
        if not is_zero(ȳ):
            raise UnsupportedError(STRUCTURED)
        return ZERO, ZERO, ZERO, ZERO

    return structured(tree, other, max_distance, p), structured_pullback


@frule(structured)
def _(tree: Anything, other: Anything, max_distance: Anything, p: Anything):
    def structured_pushforward(ṫ, ȯ, *_):
        if not is_zero(ṫ) or not is_zero(ȯ):
            raise UnsupportedError(STRUCTURED)
        return ZERO

    return structured(tree, other, max_distance, p), structured_pushforward


# -- what is counted -------------------------------------------------------------------------------

non_differentiable(cKDTree.query_pairs, cKDTree.query_ball_point, cKDTree.query_ball_tree)


@rrule(cKDTree.count_neighbors)
def _(self: cKDTree, other: cKDTree, r: Anything, p=2.0, weights=None, cumulative=True):
    def count_pullback(ȳ):
        if weights is not None and not is_zero(ȳ):
            raise UnsupportedError(WEIGHTED)
        return (NoTangent(),) * 6

    return self.count_neighbors(other, r, p, weights, cumulative), count_pullback


@frule(cKDTree.count_neighbors)
def _(self: cKDTree, other: cKDTree, r: Anything, p=2.0, weights=None, cumulative=True):
    def count_pushforward(ṡ, ȯ, ṙ, ṗ=ZERO, ẇ=ZERO, *_):
        if not is_zero(ẇ):
            raise UnsupportedError(WEIGHTED)
        return ZERO

    return self.count_neighbors(other, r, p, weights, cumulative), count_pushforward
