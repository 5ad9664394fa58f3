"""Rules of scipy.sparse.csgraph: what depends on the weights of the edges that were chosen.

    D[s, t] = Σ w[e], over the edges e of the path that was found from s to t

A tree has the weights of its edges, and what only counts or orders nodes is constant. Where an edge
of a graph without directions is stored in both of them with the same weight, each has half of the
cotangent.
Tests: tests/rules/scipy/test_csgraph.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.csgraph import _laplacian

from morula.core.extend import UnsupportedError, non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.arrays.indexing import scattered
from morula.rules.scipy.answers import told_as
from morula.rules.scipy.sparse.spaces import entries, first_of, like, places
from morula.rules.versions import present

# -- weights of edges ------------------------------------------------------------------------------


def weights(graph: Any, starts: Any, ends: Any, directed: bool) -> Any:
    """The weights of edges of a graph."""
    first, second = stored(graph, starts, ends, directed)
    if first is second:
        return weights_at(graph, *first)
    return 0.5 * (weights_at(graph, *first) + weights_at(graph, *second))


def weights_at(graph: Any, rows: Any, columns: Any) -> Any:
    """The entries at these places."""
    if not sparse.issparse(graph):
        return np.asarray(graph)[rows, columns]
    return entries(graph, pattern(rows, columns, graph.shape))


def pattern(rows: Any, columns: Any, shape: Any) -> Any:
    """A sparse array with ones at these places."""
    return sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def stored(graph: Any, starts: Any, ends: Any, directed: bool) -> Any:
    """Two places that each edge has its weight from, half from each; one and the same for most."""
    refuse_parallel(graph)
    there, back = (starts, ends), (ends, starts)
    if directed:
        return there, there
    matrix = in_rows(graph)
    forth, against = weights_or_inf(matrix, *there), weights_or_inf(matrix, *back)
    first = tuple(np.where(forth <= against, there, back))
    if not np.any(forth == against):
        return first, first
    return first, tuple(np.where(forth >= against, back, first))


def in_rows(graph: Any) -> Any:
    """A graph as SciPy's functions take it, in the format CSR."""
    if sparse.issparse(graph):
        return graph.tocsr()
    if np.ma.isMaskedArray(graph):
        return csgraph.csgraph_from_masked(graph)
    return csgraph.csgraph_from_dense(graph)


def weights_or_inf(matrix: Any, rows: Any, columns: Any) -> Any:
    """The entries at these places, infinite where nothing is stored."""
    where = pattern(rows, columns, matrix.shape)
    exist = entries(like(matrix, np.ones(len(matrix.data))), where)
    return np.where(exist > 0, entries(matrix, where), np.inf)


def refuse_parallel(graph: Any) -> None:
    """Refuse a graph with several edges between the same nodes: SciPy takes the best of them."""
    if not sparse.issparse(graph) or graph.format not in ("csr", "csc"):
        return
    if not graph.has_canonical_format:
        single = graph.copy()
        single.sum_duplicates()
        if single.nnz != graph.nnz:
            raise UnsupportedError(
                "a graph with several entries for the same edge has no derivative: sum them with "
                "graph.tocoo().tocsr(), or keep one of them"
            )


non_differentiable(pattern, stored, refuse_parallel)

# -- shortest paths --------------------------------------------------------------------------------


def lengths(graph: Any, found: Any, predecessors: Any, directed: Any, shape: Any) -> Any:
    """The sums of the weights along the paths that were found, by twice as many edges each time."""
    sources, ends, starts, steps = edges(found, predecessors)
    size = (len(np.atleast_2d(predecessors)), np.shape(predecessors)[-1])
    last = weights(graph, starts, ends, directed)
    total = scattered(last, (sources, ends), size, np.dtype(float))
    for step in steps:
        total = total + np.take_along_axis(total, step, 1)
    return np.reshape(total, shape)


def edges(found: Any, predecessors: Any) -> Any:
    """The last edge of each path, and for each node those 1, 2, 4, … edges before it."""
    before = np.atleast_2d(predecessors).astype(int)
    known = (before >= 0) & np.isfinite(np.reshape(found, before.shape))
    sources, ends = np.nonzero(known)
    steps = []
    step = np.where(known, before, np.arange(before.shape[1]))
    for _ in range(max(before.shape[1] - 1, 0).bit_length()):
        steps.append(step)
        step = np.take_along_axis(step, step, 1)
    return sources, ends, before[known], steps


def plain(fn: Any, *args: Any, **options: Any) -> Any:
    """The call as it is."""
    return fn(*args, **options)


non_differentiable(edges, plain)


def distances(
    primal: Any, graph: Any, directed: Any, predecessors: Any, unweighted: Any, **options: Any
) -> Any:
    """What a search for shortest paths tells: lengths, predecessors if they are wanted, sources."""
    options = {**options, "directed": directed, "unweighted": unweighted}
    found, before, *others = plain(primal, graph, **options, return_predecessors=True)
    if not unweighted:
        found = told_as(found, lengths(graph, found, before, directed, np.shape(found)))
    return (found, before, *others) if predecessors else found


def refuse_overwriting(overwrite: Any) -> None:
    """The graph is needed later."""
    if overwrite:
        raise UnsupportedError("a graph that is overwritten has no derivative: leave out overwrite")


non_differentiable(refuse_overwriting)


@instead_of(csgraph.shortest_path)
def _(
    csgraph, method="auto", directed=True, return_predecessors=False, unweighted=False, overwrite=False,
    indices=None,
):  # fmt: skip
    refuse_overwriting(overwrite)
    options = {"method": method, "indices": indices}
    return distances(SHORTEST, csgraph, directed, return_predecessors, unweighted, **options)


@instead_of(csgraph.floyd_warshall)
def _(csgraph, directed=True, return_predecessors=False, unweighted=False, overwrite=False):
    refuse_overwriting(overwrite)
    return distances(FLOYD_WARSHALL, csgraph, directed, return_predecessors, unweighted)


@instead_of(csgraph.dijkstra)
def _(
    csgraph, directed=True, indices=None, return_predecessors=False, unweighted=False, limit=np.inf,
    min_only=False,
):  # fmt: skip
    options = {"indices": indices, "limit": limit, "min_only": min_only}
    return distances(DIJKSTRA, csgraph, directed, return_predecessors, unweighted, **options)


SHORTEST, FLOYD_WARSHALL = csgraph.shortest_path, csgraph.floyd_warshall
DIJKSTRA = csgraph.dijkstra


def _from_nodes(primal: Any) -> None:
    @instead_of(primal)
    def _(csgraph, directed=True, indices=None, return_predecessors=False, unweighted=False):
        return distances(
            primal, csgraph, directed, return_predecessors, unweighted, indices=indices
        )


_from_nodes(csgraph.bellman_ford)
_from_nodes(csgraph.johnson)


def _best(primal: Any) -> None:
    @instead_of(primal)
    def _(
        csgraph, source, sink, K, *, directed=True, return_predecessors=False, unweighted=False
    ):  # fmt: skip
        options = {"directed": directed, "unweighted": unweighted, "return_predecessors": True}
        found, before = plain(primal, csgraph, source, sink, K, **options)
        if not unweighted and len(found):
            size = np.shape(before)
            total = lengths(csgraph, np.zeros(size), before, directed, size)
            found = told_as(found, total[:, sink])
        return (found, before) if return_predecessors else found


for _search in present(csgraph, "yen"):
    _best(_search)


@instead_of(csgraph.construct_dist_matrix)
def _(graph, predecessors, directed=True, null_value=np.inf):
    found = plain(DIST_MATRIX, graph, predecessors, directed, null_value)
    return told_as(found, lengths(graph, found, predecessors, directed, np.shape(found)))


DIST_MATRIX = csgraph.construct_dist_matrix

# -- trees and conversions -------------------------------------------------------------------------


def with_weights(y: Any, graph: Any, directed: Any) -> Any:
    """A sparse result, whose entries are weights of edges of the graph."""
    starts, ends = places(y)
    return told_as(y, like(y, weights(graph, starts, ends, directed)))


def _tree(primal: Any) -> None:
    @instead_of(primal)
    def _(csgraph, i_start, directed=True):
        return with_weights(plain(primal, csgraph, i_start, directed), csgraph, directed)


_tree(csgraph.breadth_first_tree)
_tree(csgraph.depth_first_tree)


@instead_of(csgraph.reconstruct_path)
def _(csgraph, predecessors, directed=True):
    return with_weights(plain(RECONSTRUCT, csgraph, predecessors, directed), csgraph, directed)


@instead_of(csgraph.minimum_spanning_tree)
def _(csgraph, overwrite=False):
    refuse_overwriting(overwrite)
    return with_weights(plain(SPANNING_TREE, csgraph), csgraph, True)


@instead_of(csgraph.csgraph_from_dense)
def _(graph, null_value=0, nan_null=True, infinity_null=True):
    y = plain(FROM_DENSE, graph, null_value, nan_null, infinity_null)
    return with_weights(y, graph, True)


@instead_of(csgraph.csgraph_from_masked)
def _(graph):
    return with_weights(plain(FROM_MASKED, graph), graph, True)


@instead_of(csgraph.csgraph_to_dense)
def _(csgraph, null_value=0):
    refuse_parallel(csgraph)
    return told_as(plain(TO_DENSE, csgraph, null_value), csgraph.toarray())


@instead_of(csgraph.csgraph_to_masked)
def _(csgraph):
    refuse_parallel(csgraph)
    return masked_like(plain(TO_MASKED, csgraph), csgraph.toarray())


@instead_of(csgraph.csgraph_masked_from_dense)
def _(graph, null_value=0, nan_null=True, infinity_null=True, copy=True):
    refuse_sharing(copy)
    y = plain(MASKED_FROM_DENSE, graph, null_value, nan_null, infinity_null)
    return masked_like(y, np.asarray(graph))


def masked_like(y: Any, data: Any) -> Any:
    """A masked array, whose entries are those of data where it has no mask."""
    return told_as(y, np.where(mask_of(y), 0.0, data))


def mask_of(y: Any) -> Any:
    """Where an array is masked."""
    return np.ma.getmaskarray(y)


def refuse_sharing(copy: Any) -> None:
    """What is written to a masked array in the memory of a graph would be lost."""
    if not copy:
        raise UnsupportedError("a masked array in the memory of a graph has no derivative: copy it")


non_differentiable(mask_of, refuse_sharing)
RECONSTRUCT, SPANNING_TREE = csgraph.reconstruct_path, csgraph.minimum_spanning_tree
FROM_DENSE, FROM_MASKED = csgraph.csgraph_from_dense, csgraph.csgraph_from_masked
TO_DENSE, TO_MASKED = csgraph.csgraph_to_dense, csgraph.csgraph_to_masked
MASKED_FROM_DENSE = csgraph.csgraph_masked_from_dense

# -- Laplacians of sparse graphs -------------------------------------------------------------------

LAPLACIAN = _laplacian._laplacian_sparse


@instead_of(LAPLACIAN)
def _(graph, normed, axis, copy, form, dtype, symmetrized):
    refuse_overwriting(not copy)
    L, told = plain(LAPLACIAN, graph, normed, axis, copy, form, dtype, symmetrized)
    refuse_several(L)
    whole = graph + graph.T.conj() if symmetrized else graph
    degrees = np.ravel(np.asarray(whole.sum(axis=axis))) - whole.diagonal()
    rows, columns = places(L)
    off = -entries(whole, L)
    if not normed:
        data = np.where(rows == columns, degrees[rows], off)
        return told_as(L, like(L, data)), told_as(told, degrees)
    isolated = degrees == 0
    roots = np.where(isolated, 1.0, np.sqrt(np.where(isolated, 1.0, degrees)))
    data = np.where(rows == columns, 0.0, off / (roots[rows] * roots[columns]))
    return told_as(L, like(L, data)), told_as(told, roots)


def refuse_several(L: Any) -> None:
    """Refuse a COO array with several entries for one place."""
    first = first_of(L)
    if np.any(first != np.arange(len(first))):
        raise UnsupportedError(
            "the Laplacian of a graph with several entries for the same edge has no derivative: sum "
            "them with graph.tocsr()"
        )


non_differentiable(refuse_several)

# -- what only counts or orders --------------------------------------------------------------------

non_differentiable(
    *present(
        csgraph,
        """
        breadth_first_order connected_components depth_first_order maximum_bipartite_matching
        maximum_flow min_weight_full_bipartite_matching reverse_cuthill_mckee structural_rank
        """,
    )
)
