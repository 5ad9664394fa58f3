"""Sparse arrays: construction, operators, methods, solvers; gradients have the argument's pattern."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

from morula import gradient, jvp
from morula.core.extend import UnsupportedError
from morula.testing import check_gradient
from tests.array_modes import check_array_modes

PATTERN = sparse.csr_array(
    np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 1, 1], [0, 1, 0, 1]], float)
)
C = np.arange(16.0).reshape(4, 4) / 7 - 1
X = np.array([0.7, -1.2, 0.4, 2.1])


def build(d):
    return sparse.csr_array((d, PATTERN.indices, PATTERN.indptr), shape=(4, 4))


def data(rng, dtype="f8"):
    d = rng.standard_normal(PATTERN.nnz) + 3 * (PATTERN.indices == PATTERN.tocoo().coords[0])
    return d + 1j * rng.standard_normal(PATTERN.nnz) if dtype == "c16" else d


def norm(x):
    return np.sum(np.abs(x) ** 2)


PROGRAMS = {
    "matvec": lambda d: norm(build(d) @ X),
    "matmat": lambda d: norm(build(d) @ C),
    "left": lambda d: norm(X @ build(d)),
    "dot": lambda d: norm(build(d).dot(X)),
    "sparse product": lambda d: norm((build(d) @ build(d) @ X)),
    "numbers": lambda d: norm((2 * build(d) * 3 / 1.5) @ X) + norm((-build(d)).sum()),
    "sums": lambda d: norm((build(d) + build(2 * d) - build(d * d)) @ X),
    "dense sum": lambda d: norm(build(d) + C) + norm(C - build(d)),
    "transpose": lambda d: norm(build(d).T @ X) + norm(build(d).transpose() @ X),
    "data": lambda d: norm(build(d).data),
    "dense": lambda d: norm(build(d).toarray() * C) + norm(build(d).todense()),
    "formats": lambda d: norm(build(d).tocsc().tocoo() @ X) + norm(build(d).todia() @ X),
    "diagonal": lambda d: norm(build(d).diagonal()) + norm(build(d).diagonal(1)) + norm(
        build(d).trace()
    ),
    "total": lambda d: norm(build(d).sum(axis=0)) + norm(build(d).mean(axis=1)) + norm(
        build(d).sum()
    ),
    "entries": lambda d: norm(build(d)[1, 1]) + norm(build(d)[0].sum()) + norm(
        build(d)[:, [1, 1, 2]] @ np.ones(3)
    ) + norm(build(d)[1:3] @ X),
    "multiply": lambda d: norm(build(d).multiply(build(d)) @ X) + norm(
        build(d).multiply(C).sum()
    ) + norm(build(d).multiply(X) @ X),
    "conjugate": lambda d: norm(build(d).conj().T @ build(d) @ X),
    "made of places": lambda d: norm(
        sparse.coo_array((d, PATTERN.tocoo().coords), shape=(4, 4)) @ X
    ),
    "made of sparse": lambda d: norm(sparse.csc_array(build(d)) @ X),
    "made of dense": lambda d: norm(sparse.csr_array(build(d).toarray() * C) @ X),
    "diagonals": lambda d: norm(sparse.diags_array(d[:4]) @ X) + norm(
        sparse.diags_array([d[:4], d[4:7]], offsets=[0, -1]) @ X
    ),
    "spsolve": lambda d: norm(linalg.spsolve(build(d).tocsc(), X)),
    "spsolve many": lambda d: norm(linalg.spsolve(build(d).tocsc(), C)),
    "splu": lambda d: norm(linalg.splu(build(d).tocsc()).solve(X)),
    "splu transposed": lambda d: norm(linalg.splu(build(d).tocsc()).solve(C, "T")),
    "splu adjoint": lambda d: norm(linalg.splu(build(d).tocsc()).solve(C, "H")),
    "factorized": lambda d: norm(linalg.factorized(build(d).tocsc())(X)),
    "gmres": lambda d: norm(linalg.gmres(build(d), X, rtol=1e-12)[0]),
    "bicgstab": lambda d: norm(linalg.bicgstab(build(d), X, rtol=1e-12)[0]),
    "stacked": lambda d: norm(sparse.hstack([build(d), build(d * d)]) @ np.r_[X, X]) + norm(
        sparse.vstack([build(d), build(d * d)]) @ X
    ),
    "blocks": lambda d: norm(
        sparse.block_array([[build(d), None], [build(d * d), build(d)]]) @ np.r_[X, X]
    ) + norm(sparse.block_diag([build(d), build(d)]) @ np.r_[X, X]),
    "triangles": lambda d: norm(sparse.tril(build(d)) @ X) + norm(sparse.triu(build(d), 1) @ X),
    "reshaped": lambda d: norm(build(d).reshape((2, 8)) @ np.r_[X, X]),
    "matrices": lambda d: norm(sparse.csr_matrix(build(d)) * X) + norm(
        sparse.csr_matrix(build(d)).getrow(1).sum()
    ),
    "arrays": lambda d: norm((build(d) * build(d)).sum()) + norm((build(d) * C).sum()),
    "dictionary": lambda d: norm(build(d).todok()[1, 1]) + norm(build(d).tolil()[1].sum()),
    "singular values": lambda d: norm(linalg.svds(build(d), k=2)[1]),
    "norm": lambda d: linalg.norm(build(d)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_by_the_data(rng, name, dtype):
    if dtype == "c16" and name in ("splu", "splu transposed", "splu adjoint", "factorized"):
        d = data(rng, dtype)

        def f(d):
            return norm(linalg.splu(build(d).tocsc()).solve(X + 0j))

        check_gradient(f, d)
        return
    check_gradient(PROGRAMS[name], data(rng, dtype))


@pytest.mark.parametrize(
    "slope", ["sqrt", "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh",
              "expm1", "log1p", "deg2rad", "rad2deg"]
)  # fmt: skip
def test_entrywise_functions(rng, slope):
    d = rng.random(PATTERN.nnz) * 0.8 + 0.1
    check_gradient(lambda d: norm(getattr(build(d), slope)() @ X), d)
    check_gradient(lambda d: norm(build(d).power(3) @ X) + abs(build(-d)).sum(), d)


@pytest.mark.parametrize("name", ["matvec", "spsolve", "sums", "data"])
def test_second_order(rng, name):
    d = data(rng)
    check_gradient(lambda d: np.sum(gradient(PROGRAMS[name], d)[0] ** 2), d)


def test_by_the_dense_operand(rng):
    A = build(data(rng))
    check_gradient(lambda x: norm(A @ x), X)
    check_gradient(lambda x: norm(x @ A), X)
    check_gradient(lambda x: norm(A @ x), C)
    check_gradient(lambda b: norm(linalg.spsolve(A.tocsc(), b)), X)
    check_gradient(lambda b: norm(linalg.splu(A.tocsc()).solve(b)), C)
    check_gradient(lambda b: norm(linalg.gmres(A, b, rtol=1e-12)[0]), X)
    S = sparse.csr_array(A.toarray() @ A.toarray().T + np.eye(4))
    check_gradient(lambda b: norm(linalg.cg(S, b, rtol=1e-12)[0]), X)
    L = sparse.csr_array(np.tril(S.toarray()))
    check_gradient(lambda b: norm(linalg.spsolve_triangular(L, b)), X)
    check_gradient(lambda c: norm(A * c @ X), 0.7)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("of", ["array", "matrix"])
def test_gradients_have_the_pattern_of_their_argument(rng, kind, of, path):
    A = getattr(sparse, f"{kind}_{of}")(build(data(rng)))
    g = gradient(lambda A, x: norm(A @ x), A, X)[0]
    assert type(g) is type(A)
    dense = gradient(lambda A, x: norm(A @ x), A.toarray(), X)[0]
    assert np.allclose(g.toarray(), dense * (A.toarray() != 0))
    unused = gradient(lambda A, x: x[0], A, X)[0]
    assert unused.nnz == A.nnz
    assert not unused.toarray().any()
    twice = gradient(lambda A: norm(A @ X) + A.sum() + norm(A.T @ X), A)[0]
    assert twice.nnz == A.nnz


def test_a_matrix_in_a_structure(rng):
    model = {"A": build(data(rng)), "x": X}
    g = gradient(lambda m: norm(m["A"] @ m["x"]), model)[0]
    assert g["A"].nnz == PATTERN.nnz


def test_eigenvalues(rng):
    def f(d):
        A = build(d) + build(d).T + 5 * sparse.eye_array(4)
        return linalg.eigsh(A, k=2)[0][1] + linalg.eigsh(A, k=1, return_eigenvectors=False)[0]

    check_gradient(f, data(rng))
    with pytest.raises(UnsupportedError, match="toarray"):
        gradient(lambda d: linalg.svds(build(d), k=1)[0][0, 0], data(rng))
    with pytest.raises(UnsupportedError, match="pair of matrices"):
        gradient(lambda d: linalg.eigsh(build(d), k=1, M=sparse.eye_array(4))[0][0], data(rng))


def test_what_changes_an_array_in_place_is_refused(rng):
    def item(d):
        A = build(d)
        A[0, 0] = d[1]
        return A.sum()

    def diagonal(d):
        A = build(d)
        A.setdiag(d[:4])
        return A.sum()

    def attribute(d):
        A = build(d)
        A.data = A.data * 2
        return A.sum()

    def factor(d):
        A = build(d)
        A *= 2
        return A.sum()

    def entries(d):
        A = build(d)
        A.data[0] = d[1]
        return A.sum()

    def scaled(d):
        A = build(d)
        A.data /= 3
        return A.sum()

    def into(d):
        A = build(d)
        np.exp(A.data, out=A.data)
        return A.sum()

    def constant(d):
        A = build(d)
        A.data = np.ones(len(d))
        return A.sum() * d[0]

    def copied(d):
        A = build(d)
        np.copyto(A.data, 2.0)
        return A.sum() * d[0]

    def added(d):
        A = build(d)
        np.add.at(A.data, [0, 0], d[0])
        return A.sum()

    def maximal(d):
        A = build(d)
        np.maximum.at(A.data, [0, 1], 2 * d[0])
        return A.sum()

    def one_of_part(d):
        A = build(d)
        A.data[:2].flat[0] = d[0]
        return A.sum()

    def in_order(d):
        A = build(np.ones(len(d)))
        A.data.sort()
        return A.sum() * d[0]

    writes = (entries, scaled, into, copied, added, maximal, one_of_part, in_order)
    for f in (item, diagonal, attribute, constant, factor, *writes):
        with pytest.raises(UnsupportedError, match="changes a sparse array in place"):
            gradient(f, data(rng))
    for f in (attribute, constant, *writes):
        with pytest.raises(UnsupportedError, match="changes a sparse array in place"):
            jvp(f, (data(rng),), (data(rng),))


def test_entries_that_cancel_are_refused(rng):
    d = data(rng)
    with pytest.raises(UnsupportedError, match="exactly zero"):
        gradient(lambda d: norm((build(d) - build(2 * d) + build(d)) @ X), d)


def check_modes(f, x):
    """Gradient and tangent are those of differences."""
    check_gradient(f, x)
    v = np.cos(np.arange(x.size) + 1.0).reshape(x.shape)
    y, ẏ = jvp(f, (x,), (v,))
    assert y == f(x)
    np.testing.assert_allclose(ẏ, np.vdot(gradient(f, x)[0], v))


FORWARD = {
    "item": lambda x: sparse.csr_array(x)[1, 2],
    "rows": lambda x: norm(sparse.csr_array(x)[[0, 2]].toarray() @ X[:3]),
    "data": lambda x: norm(sparse.csr_array(x).data),
    "transposed": lambda x: sparse.csr_array(x).T.tocoo().data @ np.arange(9.0),
    "extreme": lambda x: sparse.csr_array(x).max(),
    "product": lambda x: norm((sparse.csr_array(x) @ sparse.csr_array(x)).toarray()),
    "stacked": lambda x: norm(
        sparse.vstack([sparse.csr_array(x), sparse.csr_array(2 * x)]) @ X[:3]
    ),
    "blocks": lambda x: norm(
        sparse.bmat([[sparse.csr_array(x), sparse.csr_array(x * x)]]).toarray()
    ),
    "power": lambda x: norm(linalg.matrix_power(sparse.csr_array(x), 3).toarray()),
    "sum of products": lambda x: norm(sparse.kronsum(x, x).toarray()),
    "factorised": lambda x: norm(linalg.splu(sparse.csc_array(x)).solve(X[:3])),
    "transposed solution": lambda x: norm(linalg.splu(sparse.csc_array(x)).solve(C[:3, :2], "T")),
    "solver": lambda x: norm(linalg.factorized(sparse.csc_array(x))(x[0])),
    "inverse": lambda x: norm(linalg.inv(sparse.csc_array(x)).toarray()),
    "diagonal": lambda x: norm(sparse.diags(x[0]).toarray() @ X[:3]),
    "diagonals": lambda x: norm(sparse.diags_array([x[0], x[1, :2]], offsets=[0, 1]) @ X[:3]),
    "data of diagonals": lambda x: norm(sparse.diags(x[0]).data),
    "solved diagonal": lambda x: norm(linalg.spsolve(sparse.csc_array(sparse.diags(x[0])), x[1])),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode(name):
    x = np.array([[3.0, 0.5, -0.4], [0.3, 2.5, 1.1], [-0.7, 0.2, 4.0]])
    check_modes(FORWARD[name], x)


def test_diagonals_keep_entries_that_are_zero():
    d = np.array([0.0, 2.0, 3.0])
    for f in (
        lambda d: sparse.diags(d).toarray()[0, 0],
        lambda d: (sparse.diags(d) @ np.ones(3))[0],
        lambda d: (sparse.diags_array(d) * 2.0).toarray()[0, 0] / 2,
    ):
        assert gradient(f, d)[0].tolist() == [1, 0, 0]
        assert jvp(f, (d,), (np.ones(3),))[1] == 1


def test_attributes_of_other_formats_are_refused():
    with pytest.raises(UnsupportedError, match="'data' of a bsr array has no derivative"):
        gradient(lambda d: norm(build(d).tobsr().data), data(np.random.default_rng(0)))


ROWS, COLUMNS = np.array([0, 0, 1, 2, 2, 0]), np.array([1, 1, 2, 0, 3, 1])
W = np.cos(np.arange(16.0)).reshape(4, 4)
V0 = np.ones(4)


def assembled(x, kind=sparse.coo_array):
    """What is stored three times for one place, as where finite elements are put together."""
    return kind((x, (ROWS, COLUMNS)), shape=(4, 4))


ASSEMBLED = {
    "toarray": lambda A: norm(A.toarray() * W),
    "tocsr": lambda A: norm(A.tocsr() @ X),
    "an entry": lambda A: A.tocsr()[0, 1] ** 3 + norm(A.tocsr()[0].toarray()),
    "product": lambda A: norm((A @ A.T).toarray() * W),
    "sum of two": lambda A: norm((A + 2 * A).toarray() * W),
    "entry by entry": lambda A: norm(A.multiply(A).toarray() * W),
    "negative": lambda A: norm((-A).toarray() * W) ** 2,
    "sums": lambda A: norm(np.asarray(A.sum(axis=0))) + A.mean() ** 2 + norm(A.diagonal(1)),
    "stacks": lambda A: norm(sparse.hstack([A, A], format="csr").toarray()),
    "stacks of COO": lambda A: (
        norm(sparse.vstack([A, 3 * A]).data) + norm(sparse.vstack([A, A]) @ X)
    ),
    "reshape": lambda A: norm(A.reshape((2, 8)).toarray()),
    "largest": lambda A: A.max() ** 2 + norm(A.max(axis=1).toarray()),
    "data": lambda A: norm(A.data * np.arange(6.0)) + norm(A.tocsc().data),
}


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.coo_matrix])
@pytest.mark.parametrize("name", ASSEMBLED)
def test_entries_that_are_stored_several_times(name, kind):
    x = np.array([1.0, -2.0, 3.0, 4.0, 0.5, 0.7])
    check_modes(lambda x: ASSEMBLED[name](assembled(x, kind)), x)


def test_a_gradient_by_an_array_that_stores_entries_several_times():
    """One that is used twice; each of what is summed has the cotangent of the sum."""
    A = assembled(np.arange(1.0, 7.0))
    (g,) = gradient(lambda A: (A.toarray() * W).sum() + (A @ X).sum(), A)
    np.testing.assert_allclose(g.data, (W + X)[ROWS, COLUMNS])


BOTH = {
    "larger": lambda A, B, s: A.maximum(B) @ X,
    "smaller": lambda A, B, s: A.minimum(2 * B - A) @ X,
    "larger than a number": lambda A, B, s: A.maximum(s - 1).toarray() * W,
    "smaller than a number": lambda A, B, s: A.minimum(-s).toarray() * W,
    "quotient": lambda A, B, s: np.nan_to_num(np.asarray(A / B)) * W,
    "power": lambda A, B, s: abs(A).power(s) @ X,
    "broadcast": lambda A, B, s: (A.multiply(B[:1]) + B[:, 1:2].multiply(A)) @ X,
    "number": lambda A, B, s: A.multiply(s) @ X,
    "kron": lambda A, B, s: sparse.kron(A, B).toarray() * np.kron(W, C),
    "expm": lambda A, B, s: linalg.expm(A / 5).toarray() * W,
    "expm_multiply": lambda A, B, s: linalg.expm_multiply(A / 5, X),
    "find": lambda A, B, s: sparse.find(A)[2] * X[0],
    "total over both axes": lambda A, B, s: (A * s).sum(axis=(0, 1)),
    "dense blocks": lambda A, B, s: sparse.block_diag([A, s * np.ones((1, 2))]).toarray() ** 2,
    "blocks": lambda A, B, s: sparse.hstack([A, s * np.ones((4, 1))]).toarray() ** 2,
    "twice": lambda A, B, s: sparse.hstack([A, A, B]).toarray() ** 2,
    "column sums": lambda A, B, s: linalg.norm(A, 1),
    "row sums": lambda A, B, s: linalg.norm(A, np.inf),
    "norms of columns": lambda A, B, s: linalg.norm(A, axis=0),
    "norms of rows": lambda A, B, s: linalg.norm(A, 1, axis=1),
    "ufuncs": lambda A, B, s: np.sin(A).toarray() + np.tanh(A).toarray() * W,
    "masks": lambda A, B, s: (A > 0.5).toarray() * A.toarray() * s,
    "eigsh": lambda A, B, s: linalg.eigsh(A + A.T, 2, v0=V0)[0],
    "vectors of eigsh": lambda A, B, s: abs(linalg.eigsh(A + A.T, 1, v0=V0)[1]),
    "eigs": lambda A, B, s: abs(linalg.eigs(A, 2, v0=V0)[0]),
    "vectors of eigs": lambda A, B, s: abs(linalg.eigs(A, 1, v0=V0)[1]),
    "values of eigs": lambda A, B, s: linalg.eigs(A, 1, v0=V0, return_eigenvectors=False).real,
    "exchanged": lambda A, B, s: sparse.swapaxes(A, 0, 1) @ X,
}  # fmt: skip


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("name", BOTH)
def test_functions_of_two_arrays_and_a_number(name, kind):
    n = PATTERN.nnz
    parts = PATTERN.indices, PATTERN.indptr

    def f(x):
        A, B = (kind((d, *parts), shape=(4, 4)) for d in (x[:n], x[n:-1]))
        return norm(np.asarray(BOTH[name](A, B, x[-1])) - 0.3)

    x = np.random.default_rng(4).standard_normal(2 * n + 1) + 0.1
    x[-1] = 1.7
    check_modes(f, x)


def test_the_size_of_complex_entries(rng):
    check_gradient(lambda d: np.sum(build(d).__abs__().toarray() * C), data(rng, "c16"))
    check_gradient(lambda d, s: norm(build(d).power(s).toarray() * C), data(rng, "c16"), 1.3)


def test_entries_that_find_leaves_out_are_refused():
    with pytest.raises(UnsupportedError, match="left out by find"):
        gradient(lambda d: sparse.find(build(d))[2].sum(), np.zeros(PATTERN.nnz))


def test_dense_blocks_with_zeros_are_refused():
    with pytest.raises(UnsupportedError, match="dense block"):
        gradient(lambda x: sparse.hstack([PATTERN, x]).sum(), np.array([[0.0], [1], [2], [3]]))


def test_arrays_made_of_blocks_and_diagonals(rng):
    blocks = rng.standard_normal((2, 2, 2))

    def of_blocks(x):
        return norm(sparse.bsr_array((x, np.array([1, 0]), np.array([0, 1, 2]))) @ X)

    check_gradient(of_blocks, blocks)
    check_gradient(lambda x: norm(sparse.dia_array((x, [0, 1, -1]), shape=(4, 4)) @ X), C[:3] + 0.1)
    check_gradient(lambda x: norm(sparse.spdiags(x, [0, -2], 4, 4) @ X), C[:2] + 0.1)


def test_what_has_one_axis(rng):
    x = rng.standard_normal(4)
    check_modes(lambda x: sparse.coo_array(x) @ x + norm(sparse.coo_array(x) @ C), x)
    check_modes(lambda x: norm(sparse.coo_array(x).sum(axis=0)) + sparse.coo_array(x).mean(), x)


def test_incomplete_factorisations(rng):
    A = build(data(rng)).tocsc()
    check_array_modes(lambda b: norm(np.sin(linalg.spilu(A).solve(b))), X)
    check_array_modes(lambda b: norm(np.sin(linalg.spilu(A, drop_tol=0.3).solve(b, "T"))), X)
    check_array_modes(lambda b: norm(np.sin(linalg.spilu(A).solve(b, "H"))), C)

    def f(d):
        return norm(linalg.spilu(build(d).tocsc()).solve(X))

    with pytest.raises(UnsupportedError, match="incomplete factorisation"):
        gradient(f, data(rng))
    with pytest.raises(UnsupportedError, match="incomplete factorisation"):
        jvp(f, (data(rng),), (data(rng),))


UNTIDY = {
    "sum_duplicates": lambda d: sparse.csr_array((d, [0, 0, 1], [0, 2, 3]), shape=(2, 2)),
    "sort_indices": lambda d: sparse.csr_array((d, [1, 0, 1], [0, 2, 3]), shape=(2, 2)),
    "eliminate_zeros": lambda d: sparse.csr_array(
        (d * [1, 0, 1], [0, 1, 1], [0, 2, 3]), shape=(2, 2)
    ),
}


@pytest.mark.parametrize("name", UNTIDY)
def test_methods_that_tidy(name):
    """They change nothing of most arrays; what they would move, sum or leave out is an error."""

    def f(d):
        for make in (sparse.csr_array, sparse.csc_matrix):
            A = make(build(d))
            y = A @ X
            assert getattr(A, name)() is None
            d = d * (norm(A @ y) + norm(A.data))
        return norm(d)

    check_array_modes(f, 0.1 * data(np.random.default_rng(0)))
    d = np.array([1.0, 2.0, 3.0])

    def untidy(d):
        A = UNTIDY[name](d)
        getattr(A, name)()
        return A.sum()

    with pytest.raises(UnsupportedError, match=name):
        gradient(untidy, d)
    with pytest.raises(UnsupportedError, match=name):
        jvp(untidy, (d,), (d,))


def test_new_arrays_in_order(path):
    def f(d):
        A = sparse.csr_array((d, [1, 0, 1], [0, 2, 3]), shape=(2, 2)).sorted_indices()
        return np.sum(A.data * [1.0, 2.0, 3.0])

    np.testing.assert_array_equal(gradient(f, np.ones(3))[0], [2.0, 1.0, 3.0])


def test_assignments_are_refused_in_forward_mode():
    def f(d):
        A = build(d)
        A[0, 0] = d[1]
        return A.sum()

    with pytest.raises(UnsupportedError, match="assignment to an item"):
        jvp(f, (np.ones(PATTERN.nnz),), (np.ones(PATTERN.nnz),))
