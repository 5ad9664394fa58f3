"""Forward rules of solvers and of Cholesky's factor; what they make of second derivatives."""

import numpy as np
import pytest
from scipy import linalg

import morula
from morula.testing import check_frule

STRUCTURES = [
    None, "general", "diagonal", "tridiagonal", "symmetric", "hermitian", "positive definite",
    "upper triangular", "lower triangular",
]  # fmt: skip


def matrices(rng, shape, dtype):
    A = rng.standard_normal(shape)
    if dtype is complex:
        A = A + 1j * rng.standard_normal(shape)
    return A + 3 * np.eye(shape[-1])


def definite(rng, dtype, shape=(3, 3)):
    A = matrices(rng, shape, dtype)
    return A @ np.swapaxes(A.conj(), -1, -2) + 3 * np.eye(3)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("assume_a", STRUCTURES)
def test_solve(rng, dtype, lower, transposed, assume_a):
    if transposed and dtype is complex:
        pytest.skip("SciPy has no such solver")
    A = definite(rng, dtype)
    options = {"assume_a": assume_a, "lower": lower, "transposed": transposed}
    for b in (rng.standard_normal(3), rng.standard_normal((3, 2))):
        check_frule(linalg.solve, A, b, **options)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
def test_solve_triangular(rng, dtype, lower, unit, trans):
    A = matrices(rng, (3, 3), dtype)
    for b in (rng.standard_normal(3), rng.standard_normal((3, 2))):
        check_frule(linalg.solve_triangular, A, b, trans, lower, unit)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(rng, dtype, lower):
    A = definite(rng, dtype)
    check_frule(linalg.cholesky, A, lower)
    check_frule(linalg.cho_factor, A, lower)
    c = linalg.cho_factor(A, lower)
    for b in (rng.standard_normal(3), rng.standard_normal((3, 2))):
        check_frule(linalg.cho_solve, c, b)


@pytest.mark.parametrize("dtype", [float, complex])
def test_determinants(rng, dtype):
    A = matrices(rng, (3, 3), dtype)
    check_frule(linalg.det, A)
    check_frule(linalg.det, matrices(rng, (2, 3, 3), dtype))
    A[2] = A[0] + A[1]
    check_frule(linalg.det, A)


def test_stacks(rng):
    A = definite(rng, float, (2, 3, 3))
    for b in (rng.standard_normal(3), rng.standard_normal((2, 3, 2))):
        check_frule(linalg.solve, A, b)
        check_frule(linalg.solve_triangular, A, b, lower=True)
        check_frule(linalg.cho_solve, tuple(linalg.cho_factor(A)), b)
    check_frule(linalg.cholesky, A, True)
    check_frule(linalg.cho_factor, A)


# -- the likelihood of a Gaussian process, by several ways


X = np.random.default_rng(3).standard_normal((6, 2))
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
DISTANCES = ((X[:, None] - X) ** 2).sum(axis=-1)


def covariance(t):
    return np.exp(t[0] - 0.5 * DISTANCES * np.exp(-2 * t[1])) + np.exp(t[2]) * np.eye(len(Y))


def by_solve(t):
    K = covariance(t)
    return 0.5 * Y @ np.linalg.solve(K, Y) + 0.5 * np.linalg.slogdet(K)[1]


def by_numpys_factor(t):
    L = np.linalg.cholesky(covariance(t))
    z = np.linalg.solve(L, Y)
    return 0.5 * z @ z + np.log(np.diag(L)).sum()


def by_a_triangle(t):
    L = linalg.cholesky(covariance(t), lower=True)
    z = linalg.solve_triangular(L, Y, lower=True)
    return 0.5 * z @ z + np.log(np.diag(L)).sum()


def by_cho_solve(t):
    c = linalg.cho_factor(covariance(t), lower=True)
    return 0.5 * Y @ linalg.cho_solve(c, Y) + np.log(np.diag(c[0])).sum()


def by_scipys_solve(t):
    K = covariance(t)
    return 0.5 * Y @ linalg.solve(K, Y, assume_a="pos") + 0.5 * np.log(linalg.det(K))


LIKELIHOODS = [by_solve, by_numpys_factor, by_a_triangle, by_cho_solve, by_scipys_solve]


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_the_hessian_of_a_likelihood(likelihood):
    t, h = np.array([0.1, 0.2, -1.0]), 1e-5
    differences = [
        (morula.gradient(likelihood, t + e)[0] - morula.gradient(likelihood, t - e)[0]) / (2 * h)
        for e in h * np.eye(3)
    ]
    np.testing.assert_allclose(morula.hessian(likelihood, t), differences, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        morula.hvp(likelihood, t, np.ones(3)), np.sum(differences, axis=0), rtol=1e-6, atol=1e-8
    )


def test_the_tangent_of_a_factor_that_comes_in_a_list(rng):
    """SciPy gives a list for a stack."""
    A, Ȧ = definite(rng, float, (2, 3, 3)), rng.standard_normal((2, 3, 3))
    f = lambda a: np.sum(linalg.cho_factor(a)[0] ** 2)
    (g,) = morula.gradient(f, A)
    assert morula.jvp(f, (A,), (Ȧ,))[1] == pytest.approx(np.vdot(g, Ȧ))


def short(A):
    return A.astype(np.complex64 if np.iscomplexobj(A) else np.float32)


@pytest.mark.parametrize("dtype", [float, complex])
def test_single_precision_stays(rng, dtype):
    A, b = short(definite(rng, dtype)), short(rng.standard_normal(3))
    functions = [
        np.linalg.det, linalg.det, np.linalg.cholesky, linalg.cholesky,
        lambda a: linalg.cho_factor(a)[0],
        lambda a: np.linalg.slogdet(a)[1],
        lambda a: np.linalg.matrix_power(a, -2),
        lambda a: np.kron(a, a),
        lambda a: linalg.solve(a, b),
        lambda a: linalg.solve_triangular(a, b),
        lambda a: linalg.cho_solve((a, True), b),
    ]  # fmt: skip
    for f in functions:
        y, ẏ = morula.jvp(f, (A,), (A,))
        assert np.asarray(ẏ).dtype == np.asarray(y).dtype


def test_empty_matrices():
    A, b = np.zeros((0, 0)), np.zeros(0)
    for f in (np.linalg.det, lambda a: np.linalg.slogdet(a)[1]):
        assert morula.jvp(f, (A,), (A,))[1] == 0.0
    for f in (
        lambda a: linalg.solve(a, b),
        lambda a: linalg.solve_triangular(a, b),
        lambda a: linalg.cholesky(a),
    ):
        y, ẏ = morula.jvp(f, (A,), (A,))
        assert np.shape(ẏ) == np.shape(y)
