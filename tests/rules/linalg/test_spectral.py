"""Eigenvalues, singular values and their vectors: differences, equal values, what is refused."""

import numpy as np
import pytest
from scipy import linalg

from morula import grad, gradient, hvp, jvp
from morula.core.extend import UnsupportedError
from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw, hermitian

DTYPES = ["f8", "c16", "f4"]
SHAPES = [(3, 3), (2, 3, 3), (1, 1), (0, 2, 2)]


def order(dtype, shape=()):
    return 2 if dtype == "f8" and len(shape) == 2 else 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("UPLO", ["L", "U"])
def test_eigvalsh(rng, dtype, shape, UPLO):
    check_rrule(np.linalg.eigvalsh, hermitian(rng, shape, dtype), UPLO, order=order(dtype, shape))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("UPLO", ["L", "U"])
def test_eigh_of_real_matrices(rng, dtype, shape, UPLO):
    check_rrule(np.linalg.eigh, hermitian(rng, shape, dtype), UPLO, order=order(dtype, shape))


@pytest.mark.parametrize("power", [0.5, 3])
def test_eigh_of_complex_matrices(rng, power):
    a, C = hermitian(rng, (3, 3), "c16") + 9 * np.eye(3), draw(rng, (3, 3), "c16")

    def f(a):
        w, V = np.linalg.eigh(a)
        return np.sum(np.real(C * ((V * w**power) @ np.conj(V).T)))

    check_gradient(f, a)
    check_gradient(lambda a: np.real(np.vdot(C, gradient(f, a)[0])), a)


def test_phases_of_eigenvectors_are_refused(rng):
    a = hermitian(rng, (3, 3), "c16")
    with pytest.raises(UnsupportedError, match="phases of complex eigenvectors"):
        grad(lambda a: np.linalg.eigh(a)[1][1, 1].real)(a)
    with pytest.raises(UnsupportedError, match="phases of complex eigenvectors"):
        gradient(lambda a: np.linalg.eig(a)[1][0, 1].real, draw(rng, (3, 3), "c16"))
    with pytest.raises(UnsupportedError, match="phases of complex eigenvectors"):
        gradient(lambda a: np.linalg.svd(a)[0][0, 1].real, draw(rng, (3, 3), "c16"))
    check_gradient(lambda a: np.abs(np.linalg.eigh(a)[1][0, 1]), a)


def test_equal_eigenvalues():
    eye = np.eye(3)
    assert np.allclose(gradient(lambda a: np.linalg.eigvalsh(a).sum(), eye)[0], eye)
    assert np.allclose(gradient(lambda a: np.linalg.eigvalsh(a)[-1], eye)[0], eye / 3)
    assert np.allclose(gradient(lambda a: np.linalg.eigvals(a).sum().real, eye)[0], eye)

    def rebuilt(a):
        w, V = np.linalg.eigh(a)
        return np.sum((V * w) @ V.T * np.diag([1.0, 2.0, 3.0]))

    assert np.allclose(gradient(rebuilt, eye)[0], np.diag([1.0, 2.0, 3.0]))
    with pytest.raises(UnsupportedError, match="equal values"):
        gradient(lambda a: np.linalg.eigh(a)[1][0, 1], eye)

    def mixed(a):
        w, V = np.linalg.eigh(a)
        return np.sum((V * w) @ V.T)

    with pytest.raises(UnsupportedError, match="equal values"):
        gradient(mixed, eye)


def test_triangles():
    a = np.array([[4.0, 1.0], [1.0, 3.0]])
    g = gradient(lambda a: np.log(np.linalg.eigvalsh(a, UPLO="L")).sum(), a)[0]
    assert np.allclose(g, [[0.2727272727, 0], [-0.1818181818, 0.3636363636]])
    upper = gradient(lambda a: np.log(np.linalg.eigh(a, "U").eigenvalues).sum(), a)[0]
    assert np.allclose(upper, g.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (4, 4), (1, 1)])
def test_eigvals(rng, dtype, shape):
    a = draw(rng, shape, dtype)
    check_rrule(np.linalg.eigvals, a, order=order(dtype, shape), seed=1)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_eig(rng, dtype):
    a, C = draw(rng, (3, 3), dtype), draw(rng, (3, 3), "f8")

    def f(a):
        w, V = np.linalg.eig(a)
        return np.sum(np.abs(V * w) * C) + np.sum(np.abs(V.T @ V) * C) + w[0].real

    check_gradient(f, a)
    check_gradient(lambda a: np.real(np.sum(C * gradient(f, a)[0])), a)


def test_eig_of_a_symmetric_matrix(rng):
    """Real eigenvalues, real vectors of length 1."""
    check_rrule(np.linalg.eig, hermitian(rng, (3, 3), "f8"))


def test_the_real_vector_of_a_real_matrix_with_complex_eigenvalues():
    a, C = np.array([[0.0, 1.0, 0.1], [-1.0, 0.2, 0.0], [0.3, 0.5, 2.0]]), np.array([1.0, 3.0, 2.0])

    def f(a):
        w, V = np.linalg.eig(a)
        k = np.argmax(w.real)
        return np.sum(C * V[:, k].real) + w[k].real ** 2

    check_gradient(f, a)
    check_gradient(lambda a: np.sum(C * gradient(f, a)[0][1]), a)
    real, pair = np.argsort(-np.linalg.eigvals(a).real)[:2]
    assert not np.any(gradient(lambda a: np.linalg.eig(a)[1][1, real].imag, a)[0])
    with pytest.raises(UnsupportedError, match="phases of complex eigenvectors"):
        gradient(lambda a: np.linalg.eig(a)[1][1, pair].imag, a)
    with pytest.raises(UnsupportedError, match="phases of complex eigenvectors"):
        gradient(lambda a: np.linalg.eig(a)[1][1, real].imag, a + 0j)


def test_eig_without_a_basis_of_vectors():
    with pytest.raises(UnsupportedError, match="without a basis of eigenvectors"):
        gradient(lambda a: np.linalg.eigvals(a)[0].real, np.array([[1.0, 1.0], [0.0, 1.0]]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (0, 2, 2)])
def test_singular_values(rng, dtype, shape):
    a = draw(rng, shape, dtype)
    check_rrule(np.linalg.svdvals, a, order=order(dtype, shape))
    check_rrule(np.linalg.svd, a, compute_uv=False)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2, 2)])
def test_svd_of_real_matrices(rng, dtype, shape):
    check_rrule(np.linalg.svd, draw(rng, shape, dtype), False, order=order(dtype, shape))


def test_svd_with_all_vectors(rng):
    a, C = draw(rng, (4, 2), "f8"), draw(rng, (4, 4), "f8")

    def f(a):
        U, s, Vh = np.linalg.svd(a)
        rest = U[:, 2:]
        return np.sum(C * (rest @ rest.T)) + np.sum(C[:, :2] * ((U[:, :2] * s) @ Vh))

    check_gradient(f, a)
    check_gradient(lambda a: f(a.T), a.T)
    with pytest.raises(UnsupportedError, match="equal values"):
        gradient(lambda a: np.linalg.svd(a).U[0, 3], a)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_svd_of_complex_matrices(rng, shape):
    a, C = draw(rng, shape, "c16"), draw(rng, shape, "c16")

    def f(a):
        U, s, Vh = np.linalg.svd(a, full_matrices=False)
        return np.sum(np.real(C * ((U * s**3) @ Vh))) + np.sum(np.abs(U @ Vh) * C.real)

    check_gradient(f, a)
    check_gradient(lambda a: np.real(np.vdot(C, gradient(f, a)[0])), a)


def test_svd_of_hermitian_matrices(rng):
    check_rrule(np.linalg.svd, hermitian(rng, (3, 3), "f8"), hermitian=True)
    check_rrule(np.linalg.svd, hermitian(rng, (3, 3), "c16"), compute_uv=False, hermitian=True)


def test_equal_singular_values():
    a = np.diag([1.0, 1.0, 2.0, 3.0])

    def rebuilt(a):
        U, S, Vh = np.linalg.svd(a)
        return np.linalg.norm((U * S) @ Vh)

    assert np.allclose(gradient(rebuilt, a)[0], a / np.sqrt(15))
    C = np.arange(9.0).reshape(3, 3)

    def rotation(a):
        U, _, Vh = np.linalg.svd(a)
        return np.sum(C * (U @ Vh))

    assert np.allclose(gradient(rotation, np.eye(3))[0], (C - C.T) / 2)
    with pytest.raises(UnsupportedError, match="equal values"):
        gradient(lambda a: np.linalg.svd(a)[0][0, 1], np.eye(3))


def test_singular_values_that_are_zero():
    a = np.diag([2.0, 1.0, 0.0])
    assert np.allclose(gradient(lambda a: np.linalg.svdvals(a).sum(), a)[0], np.diag([1, 1, 0]))

    def largest(a):
        U, s, Vh = np.linalg.svd(a)
        return np.sum(U[:, :1] * s[:1] @ Vh[:1] * np.arange(9.0).reshape(3, 3))

    check_gradient(largest, a)

    def rebuilt(a):
        U, s, Vh = np.linalg.svd(a)
        return np.sum((U * s) @ Vh * np.arange(9.0).reshape(3, 3))

    with pytest.raises(UnsupportedError, match="singular value that is zero"):
        gradient(rebuilt, a)


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"])
def test_condition_numbers(rng, p):
    for dtype in ("f8", "c16"):
        a = draw(rng, (3, 3), dtype)
        check_gradient(lambda a: np.linalg.cond(a, p), a)
    if p not in (np.inf, -np.inf):  # there is no step along these
        check_rrule(np.linalg.cond, draw(rng, (2, 3, 3), "f8"), p)


@pytest.mark.parametrize("a", [np.eye(3), np.diag([1.0, 1.0, 2.0]), np.zeros((3, 3))])
def test_a_matrix_put_together_again_from_equal_eigenvalues_is_refused(a):
    """V w V⁻¹ has the derivative of A; what comes to V cancels, and w alone does not tell it."""

    def rebuilt(a):
        w, v = np.linalg.eig(a)
        return np.sum(np.arange(9.0).reshape(3, 3) * ((v * w) @ np.linalg.inv(v)).real)

    with pytest.raises(UnsupportedError, match="equal eigenvalues"):
        gradient(rebuilt, a)


# -- second derivatives, and directions, where values are equal -------------------------------------

MIXING = np.array([[0.3, -0.7, 0.2], [0.5, 1.1, -0.4], [0.9, 0.6, -0.8]])
TURN = np.linalg.qr(MIXING)[0]
TWICE = TURN @ np.diag([2.0, 2.0, 5.0]) @ TURN.T


def second_ways(f, A, v):
    """The second derivative along v, in all mixtures of modes; NaN, or an error, is no number."""
    ways = (
        lambda: hvp(f, A, v),
        lambda: gradient(lambda A: np.sum(gradient(f, A)[0] * v), A)[0],
        lambda: jvp(lambda A: gradient(f, A)[0], (A,), (v,))[1],
        lambda: gradient(lambda A: jvp(f, (A,), (v,))[1], A)[0],
    )
    for way in ways:
        try:
            found = way()
        except UnsupportedError:
            continue
        if np.all(np.isfinite(found)):
            yield found


@pytest.mark.parametrize("A", [np.eye(3), TWICE, np.zeros((3, 3)), np.diag([0.0, 1.0, 3.0])])
@pytest.mark.parametrize(
    "f",
    [
        lambda A: np.sum(np.linalg.eigvalsh((A + A.T) / 2) ** 3),
        lambda A: np.sum(np.linalg.eigvalsh((A + A.T) / 2)),
        lambda A: np.sum(np.linalg.svdvals(A) ** 2),
        lambda A: np.sum(np.linalg.svd(A, compute_uv=False) ** 4),
        lambda A: np.sum(linalg.svdvals(A) ** 2),
        lambda A: np.sum(linalg.eigvalsh((A + A.T) / 2) ** 3),
        lambda A: np.sum((lambda U, s, Vh: U * s @ Vh)(*np.linalg.svd(A)) * MIXING),
        lambda A: np.sum((lambda U, s, Vh: U @ Vh)(*np.linalg.svd(A)) * MIXING),
    ],
)
def test_second_derivatives_at_equal_values_are_right_or_no_number(f, A):
    """They were numbers: of those of f, what mixes equal values had been left out."""
    for found in second_ways(f, A, MIXING):
        steps = [gradient(f, A + h * MIXING)[0] for h in (1e-5, -1e-5)]
        np.testing.assert_allclose(found, (steps[0] - steps[1]) / 2e-5, atol=1e-5)


def test_second_derivatives_of_a_sum_of_equal_values():
    f = lambda A: np.sum(np.linalg.eigvalsh(A))
    assert np.abs(hvp(f, np.eye(3), MIXING)).max() == 0.0


@pytest.mark.parametrize("A", [np.eye(3), TWICE])
def test_directions_that_mix_equal_values(A):
    """The values go with vectors that are turned: the tangent of their product was wrong."""
    v = MIXING + MIXING.T
    ways = [
        lambda A: (lambda w, V: V * w @ V.T)(*np.linalg.eigh(A)),
        lambda A: (lambda w, V: V * w @ V.T)(*linalg.eigh(A)),
        lambda A: (lambda U, s, Vh: U * s @ Vh)(*np.linalg.svd(A)),
    ]
    for f in ways:
        assert not np.all(np.isfinite(jvp(f, (A,), (v,))[1]))
    np.testing.assert_allclose(jvp(ways[0], (A,), (np.eye(3),))[1], np.eye(3), atol=1e-12)
    for values in (np.linalg.eigvalsh, linalg.eigvalsh):
        found = jvp(lambda A, values=values: values(A).sum(), (A,), (v,))[1]
        np.testing.assert_allclose(found, np.trace(v))
    for values in (np.linalg.svdvals, linalg.svdvals):
        found = jvp(lambda A, values=values: values(A).sum(), (A,), (v,))[1]
        np.testing.assert_allclose(found, np.trace(v))


def test_tangents_of_some_generalised_values(rng):
    A, B = [x @ x.T + np.eye(4) for x in rng.standard_normal((2, 4, 4))]
    Ȧ, Ḃ = [x + x.T for x in rng.standard_normal((2, 4, 4))]
    f = lambda A, B: linalg.eigvalsh(A, B, subset_by_index=[1, 2])
    steps = f(A + 1e-6 * Ȧ, B + 1e-6 * Ḃ) - f(A - 1e-6 * Ȧ, B - 1e-6 * Ḃ)
    np.testing.assert_allclose(jvp(f, (A, B), (Ȧ, Ḃ))[1], steps / 2e-6, rtol=1e-6)


# -- determinants and least squares ----------------------------------------------------------------


@pytest.mark.parametrize("rank", [2, 1, 0])
@pytest.mark.parametrize("det", [np.linalg.det, linalg.det])
def test_second_derivatives_of_determinants_of_low_rank(det, rank):
    A = TURN @ np.diag([2.0, 1.5, 1.0] * (np.arange(3) < rank)) @ MIXING
    v = MIXING.T + np.eye(3)
    steps = [gradient(det, A + h * v)[0] for h in (1e-4, -1e-4)]
    for found in (
        hvp(det, A, v),
        jvp(lambda A: gradient(det, A)[0], (A,), (v,))[1],
        gradient(lambda A: jvp(det, (A,), (v,))[1], A)[0],
        gradient(lambda A: np.sum(gradient(det, A)[0] * v), A)[0],
    ):
        np.testing.assert_allclose(found, (steps[0] - steps[1]) / 2e-4, atol=1e-6)


def test_second_derivatives_of_least_squares_at_equal_singular_values():
    b = np.array([1.0, -0.5, 2.0])
    for A in (np.eye(3), np.eye(3)[:, :2]):
        v = MIXING[:, : A.shape[1]]
        f = lambda A: np.sum(np.linalg.lstsq(A, b)[0] ** 2)
        steps = [gradient(f, A + h * v)[0] for h in (1e-5, -1e-5)]
        for found in second_ways(f, A, v):
            np.testing.assert_allclose(found, (steps[0] - steps[1]) / 2e-5, atol=1e-5)
        assert np.all(np.isfinite(hvp(f, A, v)))
