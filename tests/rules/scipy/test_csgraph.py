"""Graphs: shortest paths, trees, conversions, Laplacians; what counts or orders nodes is constant."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from morula import gradient, jvp
from morula.core.extend import UnsupportedError
from tests.array_modes import check_array_modes

GRAPH = np.array(
    [
        [0, 1.03, 2.5, 0, 0],
        [0.3, 0, 1.08, 4.01, 0],
        [0, 0, 0, 1.2, 0],
        [0.5, 0, 0.7, 0, 0],
        [0, 0, 0, 0, 0],
    ]
)
PATTERN = sparse.csr_array(GRAPH)
FROM_0 = csgraph.dijkstra(GRAPH, indices=0, return_predecessors=True)[1]
FROM_ALL = csgraph.dijkstra(GRAPH, return_predecessors=True)[1]
BOTH_WAYS = csgraph.dijkstra(GRAPH, directed=False, return_predecessors=True)[1]


def rows(d):
    return sparse.csr_array((d, PATTERN.indices, PATTERN.indptr), shape=GRAPH.shape)


def columns(d):
    return rows(d).tocsc()


def dense(d):
    return rows(d).toarray()


def total(y):
    """A number of what a call gave: finite entries, with a weight for each."""
    x = np.asarray(y.tocoo().data if sparse.issparse(y) else y)
    x = np.where(np.isfinite(x), x, 0.0)
    return np.sum(np.sin(x) * np.cos(np.arange(x.size)).reshape(x.shape))


OF_ANY = {
    "dijkstra": lambda G: csgraph.dijkstra(G),
    "dijkstra from one": lambda G: csgraph.dijkstra(G, True, 2),
    "dijkstra limited": lambda G: csgraph.dijkstra(G, indices=[0, 2], limit=2.0),
    "dijkstra from the nearest": lambda G: csgraph.dijkstra(
        G, directed=False, indices=[0, 2], min_only=True, return_predecessors=True
    )[0],
    "dijkstra both ways": lambda G: csgraph.dijkstra(G, directed=False, return_predecessors=True)[0],
    "bellman_ford": lambda G: csgraph.bellman_ford(G),
    "bellman_ford from some": lambda G: csgraph.bellman_ford(G, directed=False, indices=[1]),
    "johnson": lambda G: csgraph.johnson(G),
    "johnson from one": lambda G: csgraph.johnson(G, directed=False, indices=1),
    "floyd_warshall": lambda G: csgraph.floyd_warshall(G),
    "floyd_warshall both ways": lambda G: csgraph.floyd_warshall(G, False, True)[0],
    "shortest_path": lambda G: csgraph.shortest_path(G),
    "shortest_path FW": lambda G: csgraph.shortest_path(G, "FW"),
    "shortest_path D": lambda G: csgraph.shortest_path(G, method="D", directed=False, indices=[0, 1]),
    "shortest_path BF": lambda G: csgraph.shortest_path(G, "BF", return_predecessors=True)[0],
    "shortest_path J": lambda G: csgraph.shortest_path(G, method="J"),
    "yen": lambda G: csgraph.yen(G, 0, 3, 3),
    "yen both ways": lambda G: csgraph.yen(G, 0, 3, 4, directed=False, return_predecessors=True)[0],
    "minimum_spanning_tree": lambda G: csgraph.minimum_spanning_tree(G),
    "construct_dist_matrix": lambda G: csgraph.construct_dist_matrix(G, FROM_ALL),
    "construct_dist_matrix both ways": lambda G: csgraph.construct_dist_matrix(
        G, BOTH_WAYS, directed=False, null_value=-1.0
    ),
    "reconstruct_path": lambda G: csgraph.reconstruct_path(G, FROM_0),
    "reconstruct_path both ways": lambda G: csgraph.reconstruct_path(G, BOTH_WAYS[0], False),
    "breadth_first_tree": lambda G: csgraph.breadth_first_tree(G, 0),
    "depth_first_tree": lambda G: csgraph.depth_first_tree(G, 0, directed=False),
    "laplacian": lambda G: csgraph.laplacian(G),
    "laplacian symmetrised": lambda G: csgraph.laplacian(G, symmetrized=True, use_out_degree=True),
    "laplacian as a function": lambda G: csgraph.laplacian(G, form="function")(np.eye(5)[:, :2]),
    "laplacian as an operator": lambda G: csgraph.laplacian(G, form="lo").matmat(np.eye(5)[:, :2]),
}  # fmt: skip
OF_ROWS = {
    "laplacian normed": lambda G: csgraph.laplacian(G, normed=True),
    "laplacian symmetrised and normed": lambda G: csgraph.laplacian(
        G, True, symmetrized=True, return_diag=True
    )[0],
    "laplacian's diagonal": lambda G: csgraph.laplacian(G, normed=True, return_diag=True)[1],
    "degrees": lambda G: csgraph.laplacian(G, return_diag=True)[1],
    "csgraph_to_dense": lambda G: csgraph.csgraph_to_dense(G, null_value=3.0),
    "csgraph_to_masked": lambda G: csgraph.csgraph_to_masked(G).sum() ** 2,
}
OF_DENSE = {
    "csgraph_from_dense": lambda G: csgraph.csgraph_from_dense(G, null_value=1.2),
    "csgraph_masked_from_dense": lambda G: csgraph.csgraph_masked_from_dense(G).sum() ** 2,
    "csgraph_from_masked": lambda G: csgraph.csgraph_from_masked(np.ma.masked_values(G, 0)),
    "of masked": lambda G: csgraph.dijkstra(csgraph.csgraph_masked_from_dense(G), directed=False),
    "of lists": lambda G: csgraph.dijkstra([[0, G[0, 1]], [G[1, 2], 0]]),
}
PROGRAMS = [
    *[(name, make) for name in OF_ANY for make in (rows, dense)],
    *[(name, columns) for name in ("dijkstra both ways", "johnson", "laplacian", "yen both ways")],
    *[(name, rows) for name in OF_ROWS],
    *[(name, dense) for name in OF_DENSE],
]


@pytest.mark.parametrize(("name", "make"), PROGRAMS)
def test_all_modes(name, make):
    f = {**OF_ANY, **OF_ROWS, **OF_DENSE}[name]
    check_array_modes(lambda d: total(f(make(d))), PATTERN.data)


def test_large_graphs(rng, path):
    """The lengths are those that SciPy tells without predecessors, and of degree one in the weights."""
    A = sparse.random_array((60, 60), density=0.06, rng=rng, format="csr")
    for search in (csgraph.dijkstra, csgraph.bellman_ford, csgraph.johnson, csgraph.floyd_warshall):
        for directed in (True, False):
            kept = []

            def f(A, search=search, directed=directed, kept=kept):
                D = search(A, directed=directed)
                kept.append(D)
                return np.sum(np.where(np.isfinite(D), D, 0.0))

            (g,) = gradient(f, A)
            np.testing.assert_array_equal(kept[0], search(A, directed=directed))
            assert g.multiply(A).sum() == pytest.approx(f(A), rel=1e-12)


def test_what_is_told_beside_the_lengths_is_constant(path):
    def f(d):
        D, before, sources = csgraph.dijkstra(
            rows(d), indices=[0, 2], min_only=True, return_predecessors=True
        )
        assert before.dtype == np.int32
        assert sources.dtype == np.int32
        return D[3] * before[3] + np.sum(d) * sources[1]

    check = csgraph.dijkstra(GRAPH, indices=[0, 2], min_only=True, return_predecessors=True)
    (g,) = gradient(f, PATTERN.data)
    want = np.zeros(PATTERN.nnz)
    want[PATTERN.data == 1.2] = check[1][3]
    np.testing.assert_array_equal(g, want + check[2][1])


def test_lengths_in_edges_and_far_nodes_have_no_derivative(path):
    for f in (
        lambda d: np.sum(csgraph.dijkstra(rows(d), unweighted=True, indices=0)[:4]),
        lambda d: csgraph.floyd_warshall(dense(d), unweighted=True)[0, 3],
        lambda d: csgraph.yen(rows(d), 0, 3, 2, unweighted=True)[1],
        lambda d: csgraph.dijkstra(rows(d))[0, 4],
        lambda d: csgraph.dijkstra(rows(d))[2, 2],
        lambda d: np.size(csgraph.yen(rows(d), 0, 4, 2)) + 1.0,
    ):
        (g,) = gradient(f, PATTERN.data)
        np.testing.assert_array_equal(g, np.zeros(PATTERN.nnz))


def test_equal_weights_both_ways_share():
    A = np.array([[0, 2.0, 0], [2.0, 0, 1.0], [0, 3.0, 0]])
    for G in (A, sparse.csr_array(A)):
        (g,) = gradient(lambda G: csgraph.dijkstra(G, directed=False)[0, 2], G)
        g = g.toarray() if sparse.issparse(g) else g
        np.testing.assert_array_equal(g, [[0, 0.5, 0], [0.5, 0, 1], [0, 0, 0]])


def test_edges_of_weight_zero_are_those_that_are_stored(path):
    A = sparse.csr_array(([0.0, 1.0], [1, 2], [0, 1, 2, 2]), shape=(3, 3))
    (g,) = gradient(lambda A: csgraph.dijkstra(A)[0, 2], A)
    np.testing.assert_array_equal(g.data, [1.0, 1.0])


def test_negative_weights(path):
    A = np.array([[0, 2.0, 1.0], [0, 0, 0], [0, -0.5, 0]])
    for search in (csgraph.bellman_ford, csgraph.johnson, csgraph.floyd_warshall):
        (g,) = gradient(lambda A, search=search: search(A)[0, 1], A)
        np.testing.assert_array_equal(g, [[0, 0, 1], [0, 0, 0], [0, 1, 0]])
        with pytest.raises(csgraph.NegativeCycleError):
            gradient(lambda A, search=search: search(-A, directed=False)[0, 1], A)


def test_graphs_of_integers_and_without_edges(path):
    A = np.array([[0, 2], [0, 0]])
    (g,) = gradient(lambda c: c * csgraph.dijkstra(A)[0, 1], 3.0)
    assert g == 2.0
    (g,) = gradient(lambda A: np.sum(np.isfinite(csgraph.dijkstra(A))) + 0.0, np.zeros((2, 2)))
    np.testing.assert_array_equal(g, np.zeros((2, 2)))
    (g,) = gradient(lambda A: csgraph.minimum_spanning_tree(A).sum(), np.zeros((2, 2)))
    np.testing.assert_array_equal(g, np.zeros((2, 2)))


def test_graphs_of_single_precision():
    A = GRAPH.astype(np.float32)
    (g,) = gradient(lambda A: csgraph.dijkstra(A)[0, 3], A)
    assert g.dtype == np.float32
    np.testing.assert_array_equal(g, gradient(lambda A: csgraph.dijkstra(A)[0, 3], GRAPH)[0])


DISCRETE = {
    "breadth_first_order": lambda G: csgraph.breadth_first_order(G, 0)[0],
    "connected_components": lambda G: csgraph.connected_components(G)[1],
    "depth_first_order": lambda G: csgraph.depth_first_order(G, 0)[1],
    "maximum_bipartite_matching": csgraph.maximum_bipartite_matching,
    "maximum_flow": lambda G: csgraph.maximum_flow((9.7 * G).astype(int), 0, 3).flow_value,
    "min_weight_full_bipartite_matching": lambda G: csgraph.min_weight_full_bipartite_matching(
        G[:4, :4]
    )[1],
    "reverse_cuthill_mckee": csgraph.reverse_cuthill_mckee,
    "structural_rank": csgraph.structural_rank,
}


@pytest.mark.parametrize("name", DISCRETE)
def test_what_counts_or_orders_is_constant(name):
    f = DISCRETE[name]
    check_array_modes(lambda d: np.sum(d * d) * np.sum(f(rows(d)) + 1.5), PATTERN.data)


def test_what_is_refused():
    twice = sparse.csr_array(([3.0, 2.0, 1.0], [1, 1, 2], [0, 2, 3, 3]), shape=(3, 3))
    several = sparse.coo_array(([3.0, 2.0, 1.0], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    for f, A in (
        (lambda A: csgraph.dijkstra(A)[0, 1], twice),
        (lambda A: csgraph.csgraph_to_dense(A)[0, 1], twice),
        (lambda A: csgraph.laplacian(A).sum(), several),
        (lambda A: csgraph.laplacian(A, copy=False).sum(), PATTERN),
        (lambda A: csgraph.shortest_path(A, overwrite=True)[0, 1], GRAPH),
        (lambda A: csgraph.minimum_spanning_tree(A, overwrite=True).sum(), PATTERN),
        (lambda A: csgraph.csgraph_masked_from_dense(A, copy=False).sum(), GRAPH),
    ):
        with pytest.raises(UnsupportedError):
            gradient(f, A)
        with pytest.raises(UnsupportedError):
            jvp(f, (A,), (A,))
    (g,) = gradient(lambda A: csgraph.dijkstra(A)[0, 2], several)
    np.testing.assert_array_equal(g.data, [1.0, 1.0, 1.0])
