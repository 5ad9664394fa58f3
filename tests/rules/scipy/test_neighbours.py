"""scipy.spatial's trees: distances have derivatives, what is counted or numbered has none."""

import numpy as np
import pytest
from scipy.spatial import KDTree, cKDTree

import morula
from morula import UnsupportedError, grad, gradient, jvp
from morula.core.errors import NoRuleError
from morula.testing import check_gradient
from tests.array_modes import check_array_modes, check_second, weigh

RNG = np.random.default_rng(11)
P = RNG.random((9, 3)) * 4
X = RNG.random((5, 3)) * 4
R = RNG.random((6, 3)) * 4

QUERIES = {
    "one": lambda t, x: t.query(x),
    "of one point": lambda t, x: t.query(x[0]),
    "of one point, many": lambda t, x: t.query(x[0], 4),
    "some": lambda t, x: t.query(x, k=3),
    "a list of places": lambda t, x: t.query(x, k=[1, 3]),
    "the second only": lambda t, x: t.query(x, [2]),
    "an array of points": lambda t, x: t.query(x[:4].reshape(2, 2, 3), 2),
    "sum of sides": lambda t, x: t.query(x, 2, p=1),
    "largest side": lambda t, x: t.query(x, 2, p=np.inf),
    "another norm": lambda t, x: t.query(x, 2, 0.0, 3.5),
    "nearly": lambda t, x: t.query(x, 2, eps=0.5),
    "in parallel": lambda t, x: t.query(x, workers=2),
    "a list": lambda t, x: t.query([x[0], [0.5, 1.0, 2.0]], 2),
}


def distances(t, x, name):
    d, i = QUERIES[name](t, x)
    return weigh(d) + np.sum(i) * np.sum(x)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("tree", [KDTree, cKDTree])
def test_distances_to_neighbours(tree, name):
    second = True if name == "of one point" else None  # its distance is a float
    check_array_modes(lambda p, x: distances(tree(p), x, name), P, X, second=second)


def test_programs_of_second_derivatives():
    check_second(lambda xs: weigh(KDTree(xs[0]).query(xs[1], 2)[0]), (P, X), (P[::-1], X[::-1]))


def bounded(p, x):
    d, i = cKDTree(p).query(x, 4, distance_upper_bound=1.9)
    return np.sum(np.where(np.isinf(d), 0.0, d) ** 2) + np.sum(1.0 / d) + np.sum(i == len(p))


def test_neighbours_that_are_missing_have_no_gradient():
    d, _ = cKDTree(P).query(X, 4, distance_upper_bound=1.9)
    assert 0 < np.sum(np.isinf(d)) < d.size
    check_array_modes(bounded, P, X)
    g = gradient(lambda p, x: np.sum(np.exp(-KDTree(p).query(x, 12)[0])), P, X)
    assert all(np.all(np.isfinite(part)) for part in g)
    empty = np.zeros((0, 3))
    g, h = gradient(lambda p, x: np.sum(np.exp(-KDTree(p).query(x, 2)[0])), empty, X)
    assert g.shape == (0, 3)
    assert not np.any(h)
    g, h = gradient(lambda p, x: np.sum(KDTree(p).query(x, 2)[0]), P, empty)
    assert not np.any(g)
    assert h.shape == (0, 3)


def test_in_a_periodic_box():
    x = X + np.array([0.0, 4.5, -5.0])
    check_array_modes(lambda p, x, s: weigh(KDTree(p, boxsize=s).query(x, 3)[0]), P, x, 4.2)
    check_array_modes(
        lambda p, s: weigh(KDTree(p, boxsize=[s[0], 5.0, 0.0]).query(X - 2, 3)[0]),
        P,
        np.array([4.4]),
    )
    check_array_modes(
        lambda p, s: weigh(cKDTree(p, 16, True, False, True, s).query(p * 0.9, 3, p=1)[0]), P, 4.2
    )


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
def test_points_that_coincide_have_the_gradient_zero(p):
    found = grad(lambda x: np.sum(KDTree(P).query(x, p=p)[0]))(P)
    assert found.tolist() == np.zeros_like(P).tolist()


def test_trees_from_outside_and_as_arguments():
    tree = KDTree(P)
    check_array_modes(lambda x: weigh(tree.query(x, 2)[0]), X)
    for made in (tree, cKDTree(P)):
        g = grad(lambda t: weigh(t.query(X, 2)[0]))(made)
        expected = grad(lambda p: weigh(KDTree(p).query(X, 2)[0]))(P)
        np.testing.assert_allclose(g.data, expected)


def attributes(t):
    return (
        weigh(t.data) * t.n + weigh(t.maxes) - weigh(t.mins) * t.m + t.leafsize * np.sum(t.data[0])
    )


def kept(p, x):
    trees = [KDTree(p), KDTree(2 * p)]
    found = {"query": trees[1].query}
    return (
        weigh(trees[0].query(x)[0]) + weigh(found["query"](x)[0]) + np.sum(trees[0].indices) * 1.0
    )


def test_attributes_and_trees_in_containers():
    for tree in (KDTree, cKDTree):
        check_array_modes(lambda p, t=tree: attributes(t(p)), P)
    check_array_modes(kept, P, X)
    with pytest.raises((UnsupportedError, NoRuleError)):
        grad(lambda p: cKDTree(p, leafsize=1).tree.split * 1.0)(P)


class Named(KDTree):
    def __init__(self, points, name):
        super().__init__(points)
        self.name = name


def test_classes_of_ones_own():
    with pytest.raises((UnsupportedError, NoRuleError)):
        grad(lambda p: weigh(Named(p, "a").query(X)[0]))(P)


FORMS = {
    "dok_matrix": lambda m: m.tocsr().data,
    "coo_matrix": lambda m: m.data,
    "dict": lambda m: np.array([*m.values()]),
}


@pytest.mark.parametrize("tree", [KDTree, cKDTree])
@pytest.mark.parametrize("form", FORMS)
def test_matrices_of_distances(tree, form):
    def f(p, r):
        m = tree(p).sparse_distance_matrix(tree(r), 2.5, 3.0, output_type=form)
        return weigh(FORMS[form](m))

    def matrix(p, r):
        return np.sum(tree(p).sparse_distance_matrix(tree(r), 2.5).toarray() ** 2)

    if form == "dok_matrix":
        check_gradient(f, P, R)
        check_gradient(matrix, P, R)
    else:
        check_array_modes(f, P, R)
    plain = tree(P).sparse_distance_matrix(tree(R), 2.5, output_type=form)
    value, _ = morula.pullback(
        lambda p: tree(p).sparse_distance_matrix(tree(R), 2.5, output_type=form), P
    )
    assert type(value) is type(plain)
    if form == "dict":
        assert value == plain
    else:
        assert (value != plain).nnz == 0


def test_matrices_of_distances_in_records_are_refused():
    def f(p):
        return np.sum(KDTree(p).sparse_distance_matrix(KDTree(R), 2.5, output_type="ndarray")["v"])

    with pytest.raises((UnsupportedError, NoRuleError)):
        grad(f)(P)
    with pytest.raises(UnsupportedError):
        jvp(f, (P,), (P,))


COUNTS = {
    "query_pairs": lambda t, o: len(t.query_pairs(1.5)),
    "query_pairs, array": lambda t, o: np.sum(t.query_pairs(1.5, output_type="ndarray")),
    "query_ball_point": lambda t, o: sum(t.query_ball_point(X[0], 2.0)),
    "query_ball_point, many": lambda t, o: sum(map(len, t.query_ball_point(X, 2.0, p=1))),
    "query_ball_point, lengths": lambda t, o: np.sum(
        t.query_ball_point(X, 2.0, return_length=True)
    ),
    "query_ball_tree": lambda t, o: sum(map(len, t.query_ball_tree(o, 1.5))),
    "count_neighbors": lambda t, o: t.count_neighbors(o, 1.5),
    "count_neighbors, radii": lambda t, o: np.sum(
        t.count_neighbors(o, [0.5, 1.5], cumulative=False)
    ),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("tree", [KDTree, cKDTree])
def test_counts_are_constant(tree, name):
    def f(p):
        return np.sum(p**2) * COUNTS[name](tree(p), tree(p + 0.1))

    count = COUNTS[name](tree(P), tree(P + 0.1))
    assert count > 0
    check_array_modes(f, P)
    np.testing.assert_allclose(grad(f)(P), 2 * P * count)


def test_counts_by_weights_are_refused_where_they_reach():
    def f(p, w):
        return KDTree(p).count_neighbors(KDTree(p), 1.5, weights=(w, w)) + np.sum(w)

    w = np.ones(9)
    with pytest.raises(UnsupportedError, match="weights"):
        gradient(f, P, w)
    with pytest.raises(UnsupportedError, match="weights"):
        jvp(f, (P, w), (P, w))


def test_float32_is_kept():
    found = grad(lambda p: weigh(KDTree(p).query(X)[0]))(P.astype(np.float32))
    assert found.dtype == np.float32
    check_array_modes(lambda p: weigh(KDTree([p, [1.0, 2.0, 3.0]]).query(X)[0]), P[0])


def test_errors_are_those_of_the_plain_call():
    with pytest.raises(TypeError, match="complex"):
        grad(lambda p: weigh(KDTree(p * 1j).query(X)[0]))(P)
    with pytest.raises(ValueError, match="x must consist of vectors"):
        grad(lambda p: weigh(KDTree(p).query(X[:, :2])[0]))(P)
