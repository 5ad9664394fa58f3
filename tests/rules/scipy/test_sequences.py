"""Functions of SciPy on lists and tuples, in the place of arrays."""

import numpy as np
import pytest
import scipy.fft as F
import scipy.linalg as L
import scipy.special as S
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg
from scipy.spatial.distance import cdist, pdist

from morula import NoRuleError, UnsupportedError, grad, gradient, jvp, pullback
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient

A = [[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.3, 0.2, 5.0]]
H = [[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]]
B = [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]
V = [1.0, 2.0, 3.0]


def weighed(y):
    """A number made of all numbers of a result."""
    if isinstance(y, tuple | list):
        return sum([weighed(part) for part in y])
    y = np.asarray(y)
    if y.dtype.kind not in "fc":
        return 0.0
    w = np.cos(np.arange(y.size).reshape(y.shape) + 1.0)
    return np.sum(np.real(y) * w) + np.sum(np.imag(y) * w)


def check(f, *args):
    """The gradient is that of differences, has the lists of the arguments, in both modes."""
    try:
        f(*args)
    except AttributeError as error:  # SciPy 1.18 has lost lists in a few functions
        pytest.skip(str(error))
    check_gradient(f, *args)
    g = gradient(f, *args)
    np.testing.assert_equal(g, pullback(f, *args)[1](1.0))
    np.testing.assert_equal(grad(f, tuple(range(len(args))))(*args), g)
    v = tuple([np.cos(np.asarray(x)).tolist() for x in args])
    expected = sum([np.vdot(x̄, ẋ) for x̄, ẋ in zip(g, v, strict=True)])
    np.testing.assert_allclose(jvp(f, args, v)[1], expected, rtol=1e-9, atol=1e-14)
    assert all([type(x̄) is list for x̄ in g])


OF_A_MATRIX = [
    L.inv, L.det, L.pinv, L.norm, L.lu, L.lu_factor, L.qr, L.rq, L.polar, L.hessenberg, L.expm,
    L.logm, L.sqrtm, L.cosm, L.svd, L.svdvals, L.eigvals, L.fiedler, L.matrix_balance,
    lambda a: L.eig(a)[0], lambda a: L.qr(a, mode="economic"), lambda a: L.inv(a=a),
    lambda a: L.svd(a=a, full_matrices=False), lambda a: L.fractional_matrix_power(a, 0.5),
    lambda a: L.funm(a, np.exp), lambda a: L.norm(a, 1, axis=0), L.block_diag,
    lambda a: L.solve_discrete_are(a, np.eye(3), H, H),
]  # fmt: skip


@pytest.mark.parametrize("fn", OF_A_MATRIX)
def test_matrices(fn):
    check(lambda a: weighed(fn(a)), A)


@pytest.mark.parametrize(
    "fn",
    [
        L.cholesky, L.cho_factor, L.eigvalsh, L.pinvh, L.schur, L.ldl,
        lambda a: L.cholesky(a, lower=True), lambda a: L.eigh(a, eigvals_only=True),
        lambda a: L.eigvalsh(a, b=np.diag(V)), lambda a: L.cho_solve(L.cho_factor(a), V),
    ],
)  # fmt: skip
def test_symmetric_matrices(fn):
    check(lambda a: weighed(fn(a)), H)


def test_vectors_that_may_have_either_sign():
    check_gradient(lambda a: weighed([np.abs(part) for part in L.eigh(a)]), H)


@pytest.mark.parametrize(
    "fn",
    [
        L.solve, L.solve_triangular, L.lstsq, lambda a, b: L.khatri_rao(a, a),
        lambda a, b: L.solve(b=b, a=a), lambda a, b: L.solve(np.array(a), b),
        lambda a, b: L.solve(a, np.array(b)), lambda a, b: L.lu_solve(L.lu_factor(a), b),
        lambda a, b: L.solve_sylvester(a, a, a), lambda a, b: L.expm_frechet(a, a),
        lambda a, b: L.solve_continuous_lyapunov(a, a), lambda a, b: L.solve_banded((1, 1), a, b),
        lambda a, b: L.solve_discrete_lyapunov(a, a), lambda a, b: L.solveh_banded(a[:1], b),
        lambda a, b: L.subspace_angles(a, b), lambda a, b: L.orthogonal_procrustes(a, a),
        lambda a, b: L.matmul_toeplitz(a[0], b), lambda a, b: L.solve_circulant(a[0], b),
        lambda a, b: L.matmul_toeplitz((a[0], a[1]), b), lambda a, b: L.solve_toeplitz(a[0], b),
        lambda a, b: L.solve_toeplitz((a[0], np.array(a[0])), b),
    ],
)  # fmt: skip
def test_two_matrices(fn):
    check(lambda a, b: weighed(fn(a, b)), A, B)


@pytest.mark.parametrize(
    "fn",
    [
        L.toeplitz, L.hankel, L.circulant, L.companion, L.fiedler, L.block_diag,
        lambda v: L.toeplitz(v, v), lambda v: L.toeplitz(r=v, c=v), lambda v: L.leslie(v, v[:2]),
        lambda v: L.toeplitz(np.array(v), r=v), lambda v: L.convolution_matrix(v, 4),
        lambda v: L.diagsvd(v, 3, 4), lambda v: L.eigvalsh_tridiagonal(v, v[1:]),
        lambda v: L.eigvals_banded([v, v]), lambda v: L.eigvalsh(H, b=np.diag(v).tolist()),
        F.fft, F.rfft, F.dct, F.idst, lambda v: F.fft(x=v), lambda v: F.dct(type=3, x=np.array(v)),
        lambda v: F.fht(v, 0.1, 0.2), lambda v: F.fht(a=np.array(v), dln=0.1, mu=0.2),
        lambda v: S.gamma(v), lambda v: S.betainc(v, v, [0.1, 0.2, 0.3]), S.lambertw,
        lambda v: S.betaincinv(2.0, v, 0.3), lambda v: S.jv(1, v), lambda v: S.kv([1, 2, 3], v),
        lambda v: S.zeta(2.0, v), lambda v: S.spherical_jn(2, v), lambda v: S.polygamma(1, v),
        lambda v: S.voigt_profile(v, v, 1.0), lambda v: S.elliprj(v, 1.0, v, [1.0, 2.0, 3.0]),
        lambda v: S.diric(v, 5), lambda v: S.factorial(v), lambda v: S.binom(v, 1.5),
        lambda v: np.exp(v, dtype=float), lambda v: np.add(v, 1.0, where=True),
        lambda v: S.softmax(x=v), lambda v: S.logsumexp(v, b=v), lambda v: S.nctdtr(3.0, v, 1.0),
    ],
)  # fmt: skip
def test_vectors(fn):
    check(lambda v: weighed(fn(v)), V)


def test_tuples_and_the_second_order():
    f = grad(lambda v: np.sum(L.solve([(v[0], 1.0), (0.5, v[1])], (1.0, v[1]))))
    check_gradient(lambda v: f(v)[0] * f(v)[1], (2.0, 3.0))


def test_arguments_by_name_of_functions_that_are_objects():
    check_gradient(lambda x: np.abs(F.fftn(x=x)).sum(), np.array(A))
    assert jvp(lambda x: F.dct(x=x)[0], (np.ones(3),), (np.ones(3),))[1] == 6.0


def test_what_has_no_formula_is_refused_in_both_modes():
    def f(v):
        return np.sum(S.jv(v, v))

    for v in (V, np.array(V)):
        for differentiate in (gradient, lambda f, v: jvp(f, (v,), (v,))):
            with pytest.raises(NoRuleError, match=r"by its first argument is not known"):
                differentiate(f, v)


def test_strides_that_leave_an_array_are_refused():
    def f(x):
        y = np.concatenate((x, 2 * x))[2:]
        return np.sum(np.lib.stride_tricks.as_strided(y, (2, 2), (-8, 8)))

    with pytest.raises(NotImplementedError, match="beyond the array's ends"):
        gradient(f, np.array(V))


def test_pairs_of_matrices_in_lists_have_no_general_schur_form():
    with pytest.raises(UnsupportedError, match="qz has no derivative"):
        gradient(lambda a: weighed(L.qz(a, a)), A)


@pytest.mark.parametrize(
    "fn",
    [
        L.norm,
        lambda xs: np.sum(cdist([xs], [[0.0, 1.0]])),
        lambda xs: np.sum(pdist([xs, [0.0, 1.0]])),
    ],
)
def test_lists_that_change_after_the_call(fn):
    def f(x):
        xs = [x, 3.0 * x]
        y = fn(xs)
        xs.clear()
        return y * 1.0

    check_gradient(f, 0.7)


M = sparse.csr_array([[2.0, 0.3], [0.1, 1.5]])
PLACES = ([0, 1], [1, 0])


def squares(y):
    return np.sum(np.asarray(y) ** 2)


READS = {
    "csr rows": lambda xs: squares(sparse.csr_array([xs, [1.0, 2.0]]) @ [1.0, 2.0]),
    "csr entries": lambda xs: squares(sparse.csr_array((xs, [1, 0], [0, 1, 2])).toarray()),
    "coo": lambda xs: squares(sparse.coo_array((xs, PLACES), shape=(2, 2)).toarray()),
    "dia": lambda xs: squares(sparse.dia_array(([xs], [0]), shape=(2, 2)).toarray()),
    "diags": lambda xs: squares(sparse.diags_array([xs], offsets=[0]).toarray()),
    "product": lambda xs: squares(M @ xs),
    "product from the left": lambda xs: squares(xs @ M),
    "dot": lambda xs: squares(M.dot(xs)),
    "multiply": lambda xs: squares(M.multiply(xs).toarray()),
    "cg": lambda xs: squares(sparse_linalg.cg(M @ M.T, xs, rtol=1e-12)[0]),
    "gmres": lambda xs: squares(sparse_linalg.gmres(M, xs, rtol=1e-12)[0]),
    "spsolve": lambda xs: squares(sparse_linalg.spsolve(M, xs)),
    "block_diag": lambda xs: squares(L.block_diag(xs, [1.0])),
    "circulant": lambda xs: squares(L.circulant(xs)),
    "hankel": lambda xs: squares(L.hankel(xs)),
    "leslie": lambda xs: squares(L.leslie(xs, [0.4])),
    "fiedler": lambda xs: squares(L.fiedler(xs)),
    "solve_toeplitz": lambda xs: squares(L.solve_toeplitz(xs, [1.0, 2.0])),
    "solve_toeplitz, both": lambda xs: squares(L.solve_toeplitz((xs, xs), [1.0, 2.0])),
    "matmul_toeplitz": lambda xs: squares(L.matmul_toeplitz(xs, [1.0, 2.0])),
    "outer": lambda xs: squares(np.subtract.outer(xs, [1.0, 2.0])),
    "delete": lambda xs: squares(np.delete(xs, 1)),
    "compress": lambda xs: squares(np.compress([True, False], xs)),
    "array_split": lambda xs: squares(np.array_split(xs, 2)[0]),
}


@pytest.mark.parametrize("read", READS)
def test_lists_that_change_have_the_derivatives_of_the_call(read):
    def unchanged(x):
        return READS[read]([x, 3.0 * x]) * 1.0

    def cleared(x):
        xs = [x, 3.0 * x]
        y = READS[read](xs)
        xs.clear()
        return y * 1.0

    def overwritten(x):
        xs = [x, 3.0 * x]
        y = READS[read](xs)
        xs.append(3.0)
        xs[0] = 5.0
        return y * 1.0

    expected = pytest.approx(grad(unchanged)(0.7))
    check_gradient(unchanged, 0.7, order=1)
    assert grad(cleared)(0.7) == grad(overwritten)(0.7) == expected
    with by_the_general_path():
        assert grad(cleared)(0.7) == grad(overwritten)(0.7) == expected
