"""scipy.linalg: solvers, equations of matrices, factorisations."""

import warnings

import numpy as np
import pytest
from scipy import linalg

from morula import gradient, jvp
from morula.core.extend import UnsupportedError, call
from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw, hermitian, positive, regular

call(linalg.inv, np.eye(2))  # loads the rules
DTYPES = ["f8", "c16"]


def order(dtype):
    return 2 if dtype == "f8" else 1


@pytest.mark.parametrize("dtype", [*DTYPES, "f4"])
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "structure", [None, "gen", "upper triangular", "lower triangular", "diagonal", "tridiagonal"]
)
def test_solve(rng, dtype, shape, transposed, structure):
    a, b = regular(rng, (3, 3), dtype), draw(rng, shape, dtype)
    if structure in ("diagonal", "tridiagonal"):
        a = np.where(np.abs(np.subtract.outer(range(3), range(3))) < 2, a, 0)
        a = np.diag(np.diag(a)) if structure == "diagonal" else a
    if transposed and dtype == "c16":
        pytest.skip("SciPy does not solve this")
    check_rrule(linalg.solve, a, b, assume_a=structure, transposed=transposed, order=order(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("structure", ["sym", "her", "pos"])
@pytest.mark.parametrize("lower", [False, True])
def test_solve_with_symmetric_matrices(rng, dtype, structure, lower):
    a, b = positive(rng, (3, 3), dtype), draw(rng, (3, 2), dtype)
    check_rrule(linalg.solve, a, b, lower=lower, assume_a=structure, order=order(dtype))
    check_rrule(linalg.inv, a, assume_a=structure, lower=lower)


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacks(rng, dtype):
    a, b = regular(rng, (2, 3, 3), dtype), draw(rng, (2, 3, 2), dtype)
    check_rrule(linalg.solve, a, b)
    check_rrule(linalg.solve, a, b[0])
    check_rrule(linalg.inv, a)
    check_rrule(linalg.det, a, order=order(dtype))
    check_rrule(linalg.pinv, a)
    check_rrule(linalg.solve_triangular, a, b)
    check_rrule(linalg.lu, a)
    check_rrule(linalg.cholesky, positive(rng, (2, 3, 3), dtype))
    check_rrule(linalg.svdvals, a)
    check_rrule(linalg.expm, a)
    check_rrule(linalg.det, np.zeros((2, 2), dtype))


@pytest.mark.parametrize("dtype", [*DTYPES, "f4"])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit_diagonal", [False, True])
def test_solve_triangular(rng, dtype, trans, lower, unit_diagonal):
    for shape in ((3,), (3, 2)):
        keywords = {"trans": trans, "lower": lower, "unit_diagonal": unit_diagonal}
        a, b = regular(rng, (3, 3), dtype), draw(rng, shape, dtype)
        check_rrule(linalg.solve_triangular, a, b, **keywords, order=order(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverses_and_norms(rng, dtype):
    a = regular(rng, (3, 3), dtype)
    check_rrule(linalg.inv, a, order=order(dtype))
    check_rrule(linalg.det, a, order=order(dtype))
    check_rrule(linalg.pinv, draw(rng, (4, 2), dtype), order=order(dtype))
    check_rrule(linalg.pinv, draw(rng, (2, 4), dtype), return_rank=True)
    for lower in (False, True):
        check_rrule(linalg.pinvh, hermitian(rng, (3, 3), dtype), lower=lower)
    check_rrule(linalg.norm, a)
    check_rrule(linalg.norm, a, 2)
    check_rrule(linalg.norm, a, axis=1, keepdims=True)
    check_rrule(linalg.lstsq, draw(rng, (4, 2), dtype), draw(rng, 4, dtype))
    check_rrule(linalg.lstsq, draw(rng, (4, 2), dtype), draw(rng, (4, 3), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_equations_of_matrices(rng, dtype):
    a, b, q = regular(rng, (3, 3), dtype), regular(rng, (2, 2), dtype), draw(rng, (3, 2), dtype)
    check_rrule(linalg.solve_sylvester, a, b, q, order=order(dtype))
    q = draw(rng, (3, 3), dtype)
    check_rrule(linalg.solve_continuous_lyapunov, a, q, order=order(dtype))
    check_rrule(linalg.solve_discrete_lyapunov, a / 8, q, order=order(dtype))
    check_rrule(linalg.solve_discrete_lyapunov, a / 8, q, method="bilinear")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solver", [linalg.solve_continuous_are, linalg.solve_discrete_are])
def test_riccati_equations(rng, dtype, solver):
    a, b = draw(rng, (3, 3), dtype), draw(rng, (3, 2), dtype)
    Q, R = draw(rng, (3, 3), dtype), draw(rng, (2, 2), dtype)
    e, s = regular(rng, (3, 3), dtype), 0.1 * draw(rng, (3, 2), dtype)
    C = draw(rng, (3, 3), dtype)

    def value(X):
        return np.sum(np.real(np.conjugate(C) * X))

    def f(a, b, Q, R):
        q, r = Q @ np.conjugate(Q).T + np.eye(3), R @ np.conjugate(R).T + np.eye(2)
        return value(solver(a, b, q, r))

    def g(a, b, e, s):
        return value(solver(a, b, 3 * np.eye(3), np.eye(2), e, s))

    def by_name(a, b, s):
        return value(solver(a, b, 3 * np.eye(3), r=np.eye(2), s=s, balanced=False))

    check_gradient(f, a, b, Q, R, rtol=1e-5)
    check_gradient(g, a, b, e, s, rtol=1e-5)
    check_gradient(by_name, a, b, s, rtol=1e-5)
    if dtype == "f8":
        check_gradient(lambda a: np.sum(gradient(f, a, b, Q, R)[0] * C), a, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(rng, dtype, lower):
    a = positive(rng, (3, 3), dtype)
    check_rrule(linalg.cholesky, a, lower=lower, order=order(dtype))
    check_rrule(linalg.cho_factor, a, lower=lower)
    for shape in ((3,), (3, 2)):
        b = draw(rng, shape, dtype)
        check_rrule(linalg.cho_solve, (linalg.cho_factor(a, lower)[0], lower), b)

        def f(a, b):
            return np.sum(np.real(linalg.cho_solve(linalg.cho_factor(a, lower), b) ** 2))

        check_gradient(f, a, b)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("kind", ["dense", "triangular", "unaligned"])
def test_the_other_triangle_of_a_factor(rng, kind, lower):
    """What SciPy leaves there, or clears."""
    a = positive(rng, (3, 3), "f8")
    if kind == "triangular":
        a = np.tril(a) if lower else np.triu(a)
    elif kind == "unaligned":
        held = np.zeros((3, 3), [("first", "i1"), ("a", "f8")])
        held["a"] = a
        a = held["a"]
    check_rrule(linalg.cho_factor, a, lower=lower)


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_of_stacks(rng, lower):
    a, b = positive(rng, (2, 3, 3), "f8"), draw(rng, (2, 3, 1), "f8")
    check_rrule(linalg.cho_factor, a, lower=lower)

    def f(a, b):
        return np.sum(linalg.cho_solve(tuple(linalg.cho_factor(a, lower)), b) ** 2)

    check_gradient(f, a, b)


def test_qr_does_not_warn(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient(lambda a: np.sum(linalg.qr(a)[1] ** 2), regular(rng, (3, 3), "f8"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_lu(rng, dtype, shape):
    a = draw(rng, shape, dtype)
    check_rrule(linalg.lu, a, order=order(dtype))
    check_rrule(linalg.lu, a, permute_l=True)
    check_rrule(linalg.lu, a, p_indices=True)
    check_rrule(linalg.lu_factor, a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_solve(rng, dtype, trans):
    a = draw(rng, (3, 3), dtype)
    for shape in ((3,), (3, 2)):
        b = draw(rng, shape, dtype)
        check_rrule(linalg.lu_solve, linalg.lu_factor(a), b, trans=trans)
        check_gradient(
            lambda a, b: np.sum(np.real(linalg.lu_solve(linalg.lu_factor(a), b, trans) ** 2)), a, b
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_ldl(rng, dtype, lower):
    a = hermitian(rng, (4, 4), dtype)
    check_rrule(linalg.ldl, a, lower)
    check_rrule(linalg.ldl, positive(rng, (3, 3), dtype), lower)
    check_rrule(linalg.ldl, np.array([[0.0, 1], [1, 0]], dtype), lower)
    if dtype == "c16":
        check_rrule(linalg.ldl, a + a.T, lower, hermitian=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["full", "economic", "r", "raw"])
@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_qr(rng, dtype, mode, pivoting, shape):
    check_rrule(linalg.qr, draw(rng, shape, dtype), mode=mode, pivoting=pivoting)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr_multiply(rng, dtype, pivoting):
    a = draw(rng, (4, 2), dtype)
    check_rrule(linalg.qr_multiply, a, draw(rng, (3, 4), dtype), "right", pivoting)
    check_rrule(linalg.qr_multiply, a, draw(rng, (2, 3), dtype), "left", pivoting)
    check_rrule(linalg.qr_multiply, a, draw(rng, (2, 3), dtype), "left", pivoting, True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rq(rng, dtype):
    check_rrule(linalg.rq, draw(rng, (3, 3), dtype))
    check_rrule(linalg.rq, draw(rng, (2, 4), dtype), mode="economic")
    check_rrule(linalg.rq, draw(rng, (2, 4), dtype), mode="r")
    with pytest.raises(UnsupportedError, match="mode='economic'"):
        gradient(lambda a: np.abs(linalg.rq(a)[0][0, 0]), draw(rng, (4, 2), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_polar(rng, dtype):
    check_rrule(linalg.polar, draw(rng, (3, 3), dtype), order=order(dtype))
    check_rrule(linalg.polar, draw(rng, (4, 2), dtype))
    check_rrule(linalg.polar, draw(rng, (2, 4), dtype), "left")
    check_rrule(linalg.polar, np.eye(3, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_hessenberg(rng, dtype, n):
    check_rrule(linalg.hessenberg, draw(rng, (n, n), dtype))
    check_rrule(linalg.hessenberg, draw(rng, (n, n), dtype), True)


def test_balance(rng):
    a = draw(rng, (3, 3), "f8") * np.array([[1, 100, 1], [0.01, 1, 1], [1, 1, 1]])
    check_rrule(linalg.matrix_balance, a)
    check_rrule(linalg.matrix_balance, a, separate=True)


def test_both_paths(rng, path):
    a, b = positive(rng, (3, 3), "f8"), draw(rng, 3, "f8")

    def log_density(a, b):
        L = linalg.cholesky(a, lower=True)
        z = linalg.solve_triangular(L, b, lower=True)
        return -0.5 * z @ z - np.sum(np.log(np.diagonal(L)))

    check_gradient(log_density, a, b)
    check_gradient(lambda a, b: b @ linalg.solve(a, b, assume_a="pos"), a, b)


def test_the_triangular_factors_of_a_stack(rng):
    a = rng.standard_normal((2, 3, 3))
    for pivoting in (False, True):
        check_gradient(lambda a, p=pivoting: np.sum(linalg.qr(a, mode="r", pivoting=p)[0] ** 3), a)
    w = rng.standard_normal((2, 3, 3))
    check_gradient(lambda a: np.sum(linalg.qr(a, mode="r") * w), a)


def test_factors_of_a_stack_solve(rng):
    a = rng.standard_normal((2, 3, 3)) + 3 * np.eye(3)
    b, w = rng.standard_normal((3, 2)), rng.standard_normal((2, 3, 2))
    for f in (
        lambda a: np.sum(linalg.lu_solve(linalg.lu_factor(a), b, trans=1) * w),
        lambda a: np.sum(linalg.cho_solve(linalg.cho_factor(a @ a.mT, lower=True), b) * w),
        lambda a: np.sum(linalg.cho_solve([a, True], b) * w),
    ):
        check_gradient(f, a)
        (g,) = gradient(f, a)
        np.testing.assert_allclose(jvp(f, (a,), (np.sin(a),))[1], np.vdot(g, np.sin(a)))
