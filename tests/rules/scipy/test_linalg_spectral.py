"""scipy.linalg: eigenvalues of every kind of matrix, singular values, Schur form."""

import numpy as np
import pytest
from scipy import linalg

from morula import gradient
from morula.core.extend import UnsupportedError, call
from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw, hermitian, positive

call(linalg.inv, np.eye(2))  # loads the rules


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
def test_eigvalsh(rng, lower, dtype):
    a, b = hermitian(rng, (3, 3), dtype), positive(rng, (3, 3), dtype)
    order = 2 if dtype == "f8" else 1
    check_rrule(linalg.eigvalsh, a, lower=lower, order=order)
    check_rrule(linalg.eigvalsh, a, b, lower=lower, order=order)
    check_rrule(linalg.eigvalsh, a, b, lower=lower, subset_by_index=[1, 2])
    check_rrule(linalg.eigh, a, b, lower=lower, eigvals_only=True)


@pytest.mark.parametrize("lower", [False, True])
def test_eigh_of_real_matrices(rng, lower):
    a, b = hermitian(rng, (3, 3), "f8"), positive(rng, (3, 3), "f8")
    C = draw(rng, (3, 3), "f8")
    low, high = np.sort(linalg.eigvalsh(a))[[0, 2]] + 0.1

    def invariant(w, V):  # LAPACK's signs are not continuous
        return np.sum(C * ((V * w[..., None, :] ** 3) @ np.swapaxes(V, -1, -2))) + np.sum(abs(V))

    for options in (
        {}, {"subset_by_index": [1, 1]}, {"subset_by_index": [0, 1]},
        {"subset_by_value": [low, high]},
    ):  # fmt: skip

        def f(a, options=options):
            return invariant(*linalg.eigh(a, lower=lower, **options))

        def g(a, b, options=options):
            return invariant(*linalg.eigh(a, b, lower=lower, **options))

        check_gradient(f, a)
        check_gradient(g, a, b)
    check_gradient(lambda a: np.sum(C * gradient(f, a)[0]), a)
    check_gradient(lambda a: invariant(*linalg.eigh(a)), hermitian(rng, (2, 3, 3), "f8"))
    with pytest.raises(UnsupportedError, match="type=1"):
        gradient(lambda a: linalg.eigh(a, b, type=2)[0][0], a)


def test_eigh_of_complex_matrices(rng):
    a, b = hermitian(rng, (3, 3), "c16"), positive(rng, (3, 3), "c16")
    C = draw(rng, (3, 3), "c16")

    def f(a, b):
        w, V = linalg.eigh(a, b)
        return np.sum(np.real(C * ((V * w) @ np.conjugate(V).T)))

    check_gradient(f, a, b)
    with pytest.raises(UnsupportedError, match="phases"):
        gradient(lambda a: linalg.eigh(a)[1][1, 1].real, a)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("lower", [False, True])
def test_banded_matrices(rng, dtype, lower):
    bands = draw(rng, (3, 5), dtype)
    bands[0 if lower else -1] = np.arange(5.0)
    check_rrule(linalg.eigvals_banded, bands, lower=lower)
    check_rrule(linalg.eigvals_banded, bands, lower=lower, select="i", select_range=(1, 3))
    check_rrule(linalg.eig_banded, bands, lower=lower, eigvals_only=True)
    if dtype == "f8":
        check_rrule(linalg.eig_banded, bands, lower=lower)
        check_gradient(lambda a: linalg.eigvals_banded(a, lower)[1] ** 2, bands)


def test_tridiagonal_matrices(rng):
    d, e = draw(rng, 4, "f8"), draw(rng, 3, "f8")
    check_rrule(linalg.eigh_tridiagonal, d, e, order=2)
    check_rrule(linalg.eigvalsh_tridiagonal, d, e, order=2)
    check_rrule(linalg.eigh_tridiagonal, d, e, select="i", select_range=(0, 1))


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_general_matrices(rng, dtype):
    a, b, C = draw(rng, (3, 3), dtype), draw(rng, (3, 3), dtype), draw(rng, (3, 3), "f8")
    check_rrule(linalg.eigvals, a)
    check_rrule(linalg.eigvals, a, b)

    def f(a):
        w, left, right = linalg.eig(a, left=True)
        return np.sum(np.abs(left * w) * C) + np.sum(np.abs(right.T @ right) * C)

    def g(a, b):
        w, V = linalg.eig(a, b)
        return np.sum(np.abs(V * w) * C)

    check_gradient(f, a)
    check_gradient(g, a, b)


def test_real_vectors_of_real_matrices(rng):
    a, b, C = hermitian(rng, (3, 3), "f8"), positive(rng, (3, 3), "f8"), draw(rng, (3, 3), "f8")
    check_rrule(linalg.eig, a)
    check_rrule(linalg.eig, a, left=True)
    check_gradient(lambda a, b: np.sum(C * linalg.eig(a, b)[1].real ** 3), a, b)
    with pytest.raises(UnsupportedError, match="phases of complex eigenvectors"):
        gradient(lambda a: linalg.eig(a)[1][1, 1].imag, a + 0j)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_singular_values(rng, shape):
    a = draw(rng, shape, "f8")
    check_rrule(linalg.svd, a, full_matrices=False, order=2)
    check_rrule(linalg.svdvals, draw(rng, shape, "c16"))
    check_rrule(linalg.svd, a, compute_uv=False)
    if shape == (4, 2):
        check_gradient(lambda a: np.sum(linalg.orth(a) @ linalg.orth(a).T * np.arange(4)), a)
        check_gradient(
            lambda a: np.sum((lambda N: N @ N.T)(linalg.null_space(a.T)) * np.arange(4.0)), a
        )


def test_schur(rng):
    a = hermitian(rng, (3, 3), "f8") + 0.1 * np.triu(draw(rng, (3, 3), "f8"))
    check_rrule(linalg.schur, a)
    a, C = draw(rng, (3, 3), "c16"), draw(rng, (3, 3), "f8")

    def f(a):
        T, Z = linalg.schur(a, output="complex")
        return np.sum(np.abs(T) * C) + np.sum(np.abs(Z) * C)

    check_gradient(f, a)
    check_gradient(f, a.real + 0j)
    with pytest.raises(UnsupportedError, match="output='complex'"):
        gradient(lambda a: linalg.schur(a)[0][0, 0], np.array([[1.0, 2], [-2, 1]]))


def test_stacks_whose_results_are_lists(rng):
    a = draw(rng, (2, 3, 3), "f8")
    C = draw(rng, (3, 3), "f8")

    def f(a):
        U, s, Vh = linalg.svd(a)
        w = linalg.eig(a)[0]
        Q, R = linalg.qr(a)
        return np.sum((U * s[:, None] ** 2) @ Vh * C) + np.sum(w**3).real + np.sum(Q * C + R)

    check_gradient(f, a)
    check_gradient(lambda a: linalg.lu_factor(a)[0][1, 2, 0], a)


@pytest.mark.parametrize("part", [0, 1])
def test_the_schur_form_of_equal_eigenvalues_is_refused(part):
    with pytest.raises(UnsupportedError, match="equal eigenvalues"):
        gradient(lambda a: np.sum(linalg.schur(a)[part] ** 3), np.diag([1.0, 1.0, 2.0]))


def test_functions_of_matrices_by_eigenvalues_are_refused_where_they_are_equal():
    with pytest.raises(UnsupportedError, match="equal eigenvalues"):
        gradient(lambda a: np.sum(np.real(linalg.funm(a, np.exp)) ** 2), np.diag([1.0, 1.0, 2.0]))


@pytest.mark.parametrize("a", [np.eye(3), np.zeros((3, 3)), np.triu(np.ones((4, 4)))])
def test_a_hessenberg_form_that_is_there_already_is_refused(a):
    with pytest.raises(UnsupportedError, match="sign"):
        gradient(lambda a: np.sum(linalg.hessenberg(a) ** 3), a)


@pytest.mark.parametrize("options", [{}, {"pivoting": True}, {"mode": "raw"}, {"mode": "r"}])
@pytest.mark.parametrize("shape", [(4, 2), (3, 3)])
def test_qr_in_compiled_programs(options, shape):
    a = np.random.default_rng(0).standard_normal(shape)

    def f(a):
        first = linalg.qr(a, **options)[0]
        return np.sum((first[0] if options.get("mode") == "raw" else first) ** 3)

    check_gradient(f, a)
