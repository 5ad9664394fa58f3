"""Sparse arrays of SciPy in a user's programs: gradients, second order, dtypes, structures, errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import cg, eigsh, spilu, spsolve

from morula import grad, gradient, hvp, jvp, pullback, ravel, withgradient
from morula.core.errors import DifferentiationError
from morula.testing import check_gradient

FORMATS = ["csr", "csc", "coo", "dia", "bsr", "lil", "dok"]
DENSE = np.array([[4.0, 1.0, 0.0], [1.0, 5.0, 2.0], [0.0, 2.0, 6.0]])
B = np.array([1.0, 2.0, 3.0])


def matrix(kind="csr", dtype=float):
    return sp.csr_array(DENSE.astype(dtype)).asformat(kind)


def quadratic(A):
    return (B @ (A @ B)) ** 2


@pytest.mark.parametrize("kind", FORMATS)
def test_the_gradient_has_the_format_and_the_pattern(kind):
    A = matrix(kind)
    value, (g,) = withgradient(quadratic, A)
    assert value == quadratic(A)
    assert (type(g), g.format, g.nnz) == (type(A), kind, A.nnz)
    stored = 1 if kind == "bsr" else DENSE != 0  # a block is there as a whole
    want = 2 * (B @ DENSE @ B) * np.outer(B, B) * stored
    np.testing.assert_allclose(g.toarray(), want)


ONE = np.outer(B, [0, 1, 0])


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda A: spsolve(A, B).sum(), None),
        (lambda A: (A @ A).sum(), lambda A: A.sum(0)[:, None] + A.sum(1)[None, :]),
        (lambda A: A.multiply(A).sum() + A.trace(), lambda A: 2 * A + np.eye(3)),
        (lambda A: (A.T @ B)[1] + A[1, 2], lambda A: ONE + np.outer([0, 1, 0], [0, 0, 1])),
        (lambda A: sp.vstack([A, 2 * A]).sum(), lambda A: np.full((3, 3), 3.0)),
        (lambda A: np.sin(A.data).sum(), np.cos),
        (lambda A: (A.toarray() ** 2).sum(), lambda A: 2 * A),
    ],
)
def test_gradients_and_second_derivatives(f, slope):
    A = matrix("csr")
    (g,) = gradient(f, A)
    if slope is not None:
        np.testing.assert_allclose(g.toarray(), slope(DENSE) * (DENSE != 0), atol=1e-12)
    check_gradient(lambda v: f(sp.csr_array((v, A.indices, A.indptr), A.shape)), A.data.copy())
    h = 1e-6
    along = (grad(f)(A + h * A).toarray() - grad(f)(A - h * A).toarray()) / (2 * h)
    np.testing.assert_allclose(hvp(f, A, A).toarray(), along, rtol=1e-5, atol=1e-6)
    tangent = jvp(f, (A,), (A,))[1]
    np.testing.assert_allclose(tangent, (g.toarray() * DENSE).sum(), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_precision_is_that_of_the_argument(dtype):
    (g,) = gradient(lambda A: abs((A @ B).sum()) ** 2, matrix(dtype=dtype))
    assert g.dtype == dtype
    np.testing.assert_allclose(g.toarray(), 2 * (DENSE @ B).sum() * B * (DENSE != 0), rtol=1e-5)
    assert gradient(quadratic, matrix(dtype=int))[0].dtype == np.float64


def test_structures_that_hold_sparse_arrays():
    p = {"A": matrix(), "b": [B, matrix("csc")]}
    f = lambda p: p["b"][0] @ (p["A"] @ p["b"][0]) + p["b"][1].sum()
    (g,) = gradient(f, p)
    np.testing.assert_allclose(g["A"].toarray(), np.outer(B, B) * (DENSE != 0))
    np.testing.assert_allclose(g["b"][0], 2 * DENSE @ B)
    assert g["b"][1].format == "csc"
    assert np.all(g["b"][1].data == 1.0)
    _, back = pullback(lambda v: sp.diags_array(v), B)
    np.testing.assert_allclose(back(sp.diags_array(3 * B))[0], 3 * B)
    vector, unravel = ravel(p)
    assert vector.shape == (7 + 3 + 7,)
    np.testing.assert_allclose(unravel(2 * vector)["A"].toarray(), 2 * DENSE)
    np.testing.assert_allclose(grad(lambda v: f(unravel(v)))(vector), ravel(g)[0])


def sets_an_entry(A):
    A = A * 1.0
    A[0, 1] = A[1, 1] ** 2
    return A.sum()


def test_solvers_and_what_has_no_rule():
    np.testing.assert_allclose(
        gradient(lambda b: cg(matrix(), b, rtol=1e-12)[0].sum(), B)[0],
        np.linalg.solve(DENSE, np.ones(3)),
        rtol=1e-8,
    )
    (g,) = gradient(lambda A: eigsh(A, k=1)[0][0], matrix())
    v = np.linalg.eigh(DENSE)[1][:, -1]
    np.testing.assert_allclose(g.toarray(), np.outer(v, v) * (DENSE != 0), rtol=1e-8)
    with pytest.raises(DifferentiationError, match=r"splu\(A\)[\s\S]*test_sparse\.py"):
        gradient(lambda A: spilu(A).solve(B).sum(), matrix("csc"))
    with pytest.raises(DifferentiationError, match="changes a sparse array in place"):
        gradient(sets_an_entry, matrix("lil"))
    with pytest.raises(DifferentiationError, match="shape"):
        pullback(lambda A: A @ B, matrix())[1](np.ones(4))
    with pytest.raises(ValueError, match="dimension mismatch"):
        gradient(lambda A: (A @ np.ones(4)).sum(), matrix())
    with pytest.raises(TypeError, match="csr_array"):
        gradient(lambda A: A * 2.0, matrix())
