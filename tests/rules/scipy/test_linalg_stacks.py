"""Rules of morula/rules/scipy/linalg/stacks.py: stacks of matrices in scipy.linalg."""

import numpy as np
import pytest
from scipy import linalg

from morula import grad, gradient, jvp
from morula.testing import check_gradient

BATCH = (2, 2)


def operands():
    """Stacks of matrices, of vectors and of bands, by name."""
    rng = np.random.default_rng(11)

    def draw(*shape):
        return rng.standard_normal((*BATCH, *shape))

    def definite(a):
        return a @ np.conjugate(a.mT) + 3 * np.eye(a.shape[-1])

    def complex_draw(*shape):
        return draw(*shape) + 1j * draw(*shape)

    a, z = draw(3, 3) + 3 * np.eye(3), complex_draw(3, 3)
    main = np.array([[0.0], [5.0]])
    return {
        "a": a, "z": z + 3 * np.eye(3), "q": draw(3, 3), "s": definite(draw(3, 3)),
        "h": definite(z), "r": definite(draw(2, 2)), "t": draw(4, 3), "zt": complex_draw(4, 3),
        "w": draw(3, 4), "b": draw(3, 2), "zb": complex_draw(3, 2), "k": draw(4), "e": draw(3),
        "kb": draw(4, 2), "c": np.array([4.0, 0.2, 0.3, -0.1]) + 0.3 * draw(4),
        "o": np.array([4.0, 0.2, 0.3, -0.1]) + 0.3 * draw(4),
        "bands": np.array([[0.0], [3.0], [0.0]]) + np.abs(draw(3, 4)),
        "half": main + draw(2, 4) / 2, "zhalf": main + draw(2, 4) / 2 + [[0.3j], [0.0]] * draw(2, 4),
    }  # fmt: skip


OPERANDS = operands()


def weigh(y):
    """A real number that depends on every entry of the results."""
    if isinstance(y, tuple | list):
        return sum([weigh(y[i]) for i in range(len(y))])
    weights = np.cos(np.arange(np.size(y)) + 1.0).reshape(np.shape(y))
    return np.sum(np.real(y * (weights * (1 - 0.5j if np.iscomplexobj(y) else 1.0))))


def symmetric(a):
    return (a + a.mT) / 2


def difference(f, args, along, h=1e-5):
    """The derivative along a direction, by values only."""
    above, below = ([x + d * v for x, v in zip(args, along, strict=True)] for d in (h, -h))
    return (f(*above) - f(*below)) / (2 * h)


CALLS = {
    "lstsq": lambda t, kb: weigh(linalg.lstsq(t, kb)[:2]),
    "lstsq of complex": lambda zt, kb: weigh(linalg.lstsq(zt, kb)[0]),
    "lstsq, singular values": lambda t, kb: weigh(linalg.lstsq(t, kb)[3]),
    "lstsq by gelsy": lambda t, kb: weigh(linalg.lstsq(t, kb, lapack_driver="gelsy")[0]),
    "lstsq of one matrix": lambda t, kb: weigh(linalg.lstsq(t[0, 0], kb)[0]),
    "ldl": lambda s: weigh(linalg.ldl(s)[:2]),
    "ldl of Hermitian": lambda h: weigh(linalg.ldl(h, lower=False)[:2]),
    "qr_multiply": lambda t, kb: weigh(linalg.qr_multiply(t, kb.mT)),
    "qr_multiply, pivoting": lambda t, kb: weigh(linalg.qr_multiply(t, kb.mT, pivoting=True)[:2]),
    "rq": lambda a: weigh(linalg.rq(a)),
    "rq, economic": lambda w: weigh(linalg.rq(w, mode="economic")),
    "rq, the factor": lambda w: weigh(linalg.rq(w, mode="r")),
    "polar": lambda t: weigh(linalg.polar(t)),
    "polar, left": lambda w: weigh(linalg.polar(w, "left")),
    "polar of complex": lambda z: weigh(linalg.polar(z)),
    "hessenberg": lambda a: weigh(linalg.hessenberg(a[0], calc_q=True)),
    "matrix_balance": lambda a: weigh(linalg.matrix_balance(a)[0]),
    "matrix_balance, separate": lambda a: weigh(linalg.matrix_balance(a, separate=1)[0]),
    "eigh, some": lambda s: weigh(linalg.eigh(s, subset_by_index=(0, 1))),
    "eigh, some values": lambda h: weigh(
        linalg.eigh(h, eigvals_only=True, subset_by_index=[1, 2], lower=False)
    ),
    "eigvalsh, some": lambda s: weigh(linalg.eigvalsh(s, subset_by_index=(1, 2))),
    "eigvalsh, one with each": lambda a, s: weigh(linalg.eigvalsh(symmetric(a[0, 0]), s)),
    "eigh, each with one": lambda a, s: weigh(linalg.eigh(symmetric(a), s[0, 0])),
    "eig, one with each": lambda a, s: weigh(linalg.eigvals(a[0, 0], s)),
    "eig, each with one": lambda a, s: weigh(linalg.eig(a, s[0, 0])[0]),
    "eig_banded": lambda half: weigh(linalg.eig_banded(half)),
    "eig_banded, values": lambda zhalf: weigh(linalg.eig_banded(zhalf, eigvals_only=True)),
    "eigvals_banded": lambda half: weigh(
        linalg.eigvals_banded(half[..., ::-1, :], True, select="i", select_range=(0, 1))
    ),
    "eigh_tridiagonal": lambda k, e: weigh(linalg.eigh_tridiagonal(k, e)),
    "eigvalsh_tridiagonal": lambda k, e: weigh(linalg.eigvalsh_tridiagonal(k[0, 0], e)),
    "schur": lambda s: weigh(linalg.schur(symmetric(s))[0]),
    "funm": lambda s: weigh(linalg.funm(symmetric(s), np.exp)),
    "expm_frechet": lambda a, q: weigh(linalg.expm_frechet(a, q)),
    "expm_frechet, one": lambda a, q: weigh(linalg.expm_frechet(a, q[0], compute_expm=False)),
    "diagsvd": lambda e: weigh(linalg.diagsvd(e, 3, 4)),
    "toeplitz": lambda k, c: weigh(linalg.toeplitz(k, c[:, :1])),
    "leslie": lambda k, e: weigh(linalg.leslie(k, e[0])),
    "solve_toeplitz": lambda c, kb: weigh(linalg.solve_toeplitz(c, kb)),
    "solve_toeplitz, rows": lambda c, o, kb: weigh(linalg.solve_toeplitz((c, o), kb)),
    "solve_toeplitz, one": lambda c, kb: weigh(linalg.solve_toeplitz(c[0, 0], kb)),
    "matmul_toeplitz": lambda c, kb: weigh(linalg.matmul_toeplitz(c, kb[0, 0])),
    "matmul_toeplitz, rows": lambda c, o, kb: weigh(linalg.matmul_toeplitz((c, o), kb)),
    "solve_circulant": lambda c, k: weigh(linalg.solve_circulant(c, k, baxis=-1, outaxis=-1)),
    "solve_circulant, a vector": lambda c, k: weigh(linalg.solve_circulant(c, k[0, 0])),
    "solve_banded": lambda bands, kb: weigh(linalg.solve_banded((1, 1), bands, kb)),
    "solve_banded, a vector": lambda bands, k: weigh(linalg.solve_banded((1, 1), bands, k[0, 0])),
    "solve_banded, one": lambda bands, kb: weigh(linalg.solve_banded((1, 1), bands[0, 0], kb)),
    "solveh_banded": lambda half, kb: weigh(linalg.solveh_banded(half, kb)),
    "solveh_banded of complex": lambda zhalf, kb: weigh(linalg.solveh_banded(zhalf, kb)),
    "cholesky_banded": lambda half: weigh(linalg.cholesky_banded(half)),
    "cho_solve_banded": lambda half, kb: weigh(
        linalg.cho_solve_banded((linalg.cholesky_banded(half), False), kb)
    ),
    "cho_solve_banded, one": lambda half, kb: weigh(
        linalg.cho_solve_banded((half[0, 0], False), kb)
    ),
    "solve_sylvester": lambda a, s, q: weigh(linalg.solve_sylvester(a, s[0], q[0, 0])),
    "solve_continuous_lyapunov": lambda a, q: weigh(linalg.solve_continuous_lyapunov(a[0, 0], q)),
    "solve_discrete_lyapunov": lambda a, q: weigh(linalg.solve_discrete_lyapunov(a / 9, q[0])),
    "solve_continuous_are": lambda a, b, s, r: weigh(
        linalg.solve_continuous_are(a / 4, b, symmetric(s), symmetric(r))
    ),
    "solve_discrete_are": lambda a, b, s, r: weigh(
        linalg.solve_discrete_are(a, b[0, 0], symmetric(s), symmetric(r))
    ),
}  # fmt: skip
OF_A_VECTOR = {
    "solve": lambda a, v: weigh(linalg.solve(a, v)),
    "solve, definite": lambda a, v: weigh(linalg.solve(a @ a.mT, v, assume_a="pos")),
    "solve_triangular": lambda a, v: weigh(linalg.solve_triangular(a, v, trans=1)),
    "cho_solve": lambda a, v: weigh(linalg.cho_solve((a, True), v)),
    "lu_solve": lambda a, v: weigh(linalg.lu_solve(linalg.lu_factor(a), v)),
}


@pytest.mark.parametrize("name", CALLS)
def test_stacks_agree_with_differences_in_all_modes(name):
    f = CALLS[name]
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    args = [OPERANDS[n] for n in names]
    along = [np.sin(x) for x in args]
    slope = difference(f, args, along)
    np.testing.assert_allclose(jvp(f, args, along)[1], slope, rtol=1e-6, atol=1e-7)
    for found in (gradient(f, *args), grad(f, tuple(range(len(args))))(*args)):
        pairs = zip(found, along, strict=True)
        got = sum(np.vdot(g, v).real for g, v in pairs)
        np.testing.assert_allclose(got, slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", OF_A_VECTOR)
def test_each_matrix_of_a_stack_takes_the_vector(rng, name, n):
    """A stack of three matrices of three rows too, where x itself could be read as a matrix."""
    f = OF_A_VECTOR[name]
    args = rng.standard_normal((n, 3, 3)) + 3 * np.eye(3), rng.standard_normal(3)
    along = rng.standard_normal((n, 3, 3)), rng.standard_normal(3)
    slope = difference(f, args, along)
    found = gradient(f, *args)
    got = sum(np.vdot(g, v) for g, v in zip(found, along, strict=True))
    np.testing.assert_allclose(got, slope, rtol=1e-6)
    np.testing.assert_allclose(jvp(f, args, along)[1], slope, rtol=1e-6)


def test_second_derivatives_of_stacks(rng):
    a, v = OPERANDS["a"][0], np.sin(OPERANDS["a"][0])
    for f in (
        lambda a: weigh(linalg.polar(a)),
        lambda a: weigh(linalg.eigvalsh(symmetric(a), subset_by_index=(0, 1))),
    ):
        slope = difference(lambda a, f=f: gradient(f, a)[0], [a], [v])
        forward = jvp(lambda a, f=f: gradient(f, a)[0], (a,), (v,))[1]
        np.testing.assert_allclose(forward, slope, rtol=1e-5, atol=1e-6)
        over = gradient(lambda a, f=f: np.vdot(gradient(f, a)[0], v), a)[0]
        np.testing.assert_allclose(over, slope, rtol=1e-5, atol=1e-6)


def test_circulant_equations_honour_every_keyword(rng):
    """Where the matrix is singular, too."""
    c = np.array([1.0, -1.0, 0.0, 0.0])
    b = rng.standard_normal(4)
    check_gradient(lambda b: weigh(linalg.solve_circulant(c, b, singular="lstsq")), b)


def test_least_squares_without_singular_values_in_forward_mode(rng):
    a, b = rng.standard_normal((4, 3)), rng.standard_normal(4)

    def f(a):
        return linalg.lstsq(a, b, lapack_driver="gelsy")[0] @ np.ones(3)

    v = rng.standard_normal((4, 3))
    np.testing.assert_allclose(jvp(f, (a,), (v,))[1], np.vdot(gradient(f, a)[0], v))
