"""Sparse arrays: construction, operators, methods, solvers; gradients have the argument's pattern."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

from morula import gradient, jvp
from morula.core.extend import UnsupportedError
from morula.testing import check_gradient

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
        gradient(lambda d: linalg.eigsh(build(d) + build(d).T, k=1)[1][0, 0], data(rng))


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

    for f in (item, diagonal, attribute, factor):
        with pytest.raises(UnsupportedError, match="changes a sparse array in place"):
            gradient(f, data(rng))
    with pytest.raises(ValueError, match="read-only"):
        gradient(entries, data(rng))


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
