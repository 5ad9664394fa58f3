"""Hessians times vectors by programs: cotangents that helpers of rules compute have known types."""

import numpy as np
import pytest
from scipy import optimize, special

from morula import UnsupportedError, grad, hvp
from morula.mixed_mode.jacobians import general_hvp, product_for
from tests.core.test_orders import reasons

X = np.array([0.31, 0.52, 0.73])
V = np.array([1.0, -0.4, 0.6])
A = np.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.1, 0.6, 1.8]])

FUNCTIONS = {
    "a power": lambda x: np.sum(x**2.0),
    "a root": lambda x: np.sum(x**0.5),
    "the power of an entry": lambda x: x[0] ** 3.0 * x[1] ** -1.0,
    "powers of powers": lambda x: np.sum(x**x),
    "an array of floats": lambda x: np.sum(np.asarray(x, float) ** 3),
    "a quadratic form": lambda x: x @ A @ x,
    "a matrix from outside": lambda x: np.sum(np.sin(A @ x) ** 2),
    "the inner product": lambda x: np.inner(x, x * x),
    "the Euclidean norm": lambda x: np.linalg.norm(x),
    "a product": lambda x: np.prod(x),
    "running products": lambda x: np.sum(np.cumprod(x)),
    "a factor": lambda x: np.sum(np.linalg.cholesky(A @ A.T + np.diag(x))),
    "a shape by arguments": lambda x: np.sum(x.reshape(3, 1) ** 2 * x),
    "differences of all": lambda x: np.sum((x[:, None] - x[None, :]) ** 4),
    "sums that keep their axis": lambda x: np.sum(np.sum(np.outer(x, x), 1, keepdims=True) ** 2),
    "entries as arguments": lambda x: (lambda a, b, c: a * b + c**2)(*x),
    "vectors joined": lambda x: np.sum(np.concatenate([x, x**2]) ** 2),
    "vectors stacked": lambda x: np.sum(np.stack([x, x**2], axis=1) ** 2),
    "an einsum": lambda x: np.einsum("i,ij,j->", x, np.outer(x, x), x),
    "an einsum of one": lambda x: np.einsum("ii->i", np.outer(x, x)) @ x,
    "a tensordot": lambda x: np.sum(np.tensordot(np.outer(x, x), x, axes=([1], [0])) ** 2),
    "an outer tensordot": lambda x: np.sum(np.tensordot(x, x, 0) ** 2),
    "a transform": lambda x: np.sum(np.abs(np.fft.fft(x)) ** 4),
    "a longer transform": lambda x: np.sum(np.abs(np.fft.fft(x, 5)) ** 4),
    "a shorter transform": lambda x: np.sum(np.abs(np.fft.ifft(x, 2, norm="ortho")) ** 4),
    "a transform of real numbers": lambda x: np.sum(np.abs(np.fft.rfft(np.exp(x))) ** 4),
    "there and back": lambda x: np.sum(np.fft.irfft(np.fft.rfft(x, 6) ** 2, 6) ** 3),
    "a transform of columns": lambda x: np.sum(np.abs(np.fft.rfft(np.outer(x, x), axis=0)) ** 4),
    "a transform of Hermitian numbers": lambda x: np.sum(np.fft.hfft(x * (1 + 2j * x), 4) ** 3),
    "its inverse": lambda x: np.sum(np.abs(np.fft.ihfft(x)) ** 4),
    "a transform over two axes": lambda x: np.sum(np.abs(np.fft.fft2(np.outer(x, x))) ** 2),
    "a transform over all axes": lambda x: np.sum(np.abs(np.fft.rfftn(np.outer(x, x))) ** 2),
    "zeros around": lambda x: np.sum(np.cos(np.pad(x, (1, 2)))),
    "a number around": lambda x: np.sum(np.pad(np.outer(x, x), 1, constant_values=x[0]) ** 3),
    "widths in a list": lambda x: np.sum(np.pad(np.outer(x, x), [[0, 1], [2, 0]]) ** 3),
    "edges around": lambda x: np.sum(np.pad(x, 2, mode="edge") ** 3),
    "a reflection": lambda x: np.sum(np.pad(np.outer(x, x), (1, 2), "reflect") ** 3),
    "a trace": lambda x: np.trace(np.outer(x, np.exp(x)), offset=1) ** 2,
    "a diagonal": lambda x: np.sum(np.diagonal(np.outer(x, np.exp(x))) ** 2),
    "an inverse": lambda x: np.trace(np.linalg.inv(A + np.outer(x, x))),
    "the logarithm of a determinant": lambda x: np.linalg.slogdet(A + np.outer(x, x))[1],
    "eigenvalues": lambda x: np.sum(np.linalg.eigvalsh(A + np.outer(x, x)) ** 3),
    "eigenvalues beside vectors": lambda x: np.sum(np.linalg.eigh(A + np.outer(x, x))[0] ** 3),
    "singular values": lambda x: np.sum(np.linalg.svdvals(A + np.outer(x, x)) ** 3),
    "a norm of a matrix": lambda x: np.linalg.norm(np.outer(x, np.exp(x)), "fro"),
    "norms of rows": lambda x: np.sum(np.linalg.norm(np.outer(x, np.exp(x)), axis=1) ** 3),
    "an integral": lambda x: np.trapezoid(x**3, np.arange(3.0)),
    "integrals along an axis": lambda x: np.trapezoid(np.outer(x, x), x**2, axis=0) @ x,
    "a median": lambda x: np.median(x) ** 2,
    "medians of rows": lambda x: np.sum(np.median(np.outer(x, np.exp(x))[:2], axis=0) ** 2),
    "a quantile": lambda x: np.quantile(x, 0.3) ** 2,
    "a convolution": lambda x: np.sum(np.convolve(x, np.exp(x)) ** 2),
    "the middle of a convolution": lambda x: np.sum(np.convolve(x, x[:2], "same") ** 2),
    "a correlation": lambda x: np.sum(np.correlate(x, x**2, "full") ** 2),
    "a default of None": lambda x: (lambda y, w=None: y if w is None else y @ w)(x, x**2),
    "a norm of another order": lambda x: np.linalg.norm(x, 3) ** 2,
    "the sum of sizes": lambda x: np.linalg.norm(np.outer(x, x)[0], 1) ** 2,
    "a logarithm of a sum": lambda x: special.logsumexp(x * x),
    "logarithms of sums": lambda x: np.sum(special.logsumexp(np.outer(x, x), axis=1) ** 2),
    "repetitions": lambda x: np.sum(np.repeat(np.outer(x, x), 2, axis=1) ** 3),
    "a grid": lambda x: np.sum(np.linspace(x[0], x[1], 5) ** 3),
    "grids": lambda x: np.sum(np.linspace(x, x**2, 4) ** 3),
    "a polynomial": lambda x: np.polyval(x, 1.5) ** 2,
    "a polynomial at zero": lambda x: np.polyval(x, x[0] - 0.31) ** 2,
    "a polynomial at many points": lambda x: np.sum(np.polyval(x, np.outer(x, x)) ** 2),
    "a constant polynomial": lambda x: np.sum(np.polyval(x[:1], x) ** 2),
    "a Kronecker product": lambda x: np.sum(np.kron(x, np.outer(x, x)) ** 2),
    "the Rosenbrock function of SciPy": optimize.rosen,
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_products_have_programs(f):
    found, h = hvp(f, X, V), 1e-5
    np.testing.assert_allclose(found, general_hvp(f, X, V), rtol=1e-9, atol=1e-12)
    assert not reasons(product_for(f, X))
    slopes = [grad(f)(X + d * V) for d in (h, -h)]
    np.testing.assert_allclose(found, (slopes[0] - slopes[1]) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_keep_their_dtype(dtype):
    x, v = X.astype(dtype), V.astype(dtype)
    found = hvp(lambda x: np.sum((A.astype(dtype) @ x) ** 2.0), x, v)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, 2 * A.T @ A @ V, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keywords_beside_single_precision(dtype):
    """A whole number by keyword is a number of another field, but no array is of another one."""

    def f(x):
        y = np.sum(np.outer(x, x) ** 2, axis=0, keepdims=True)
        return np.sum(np.stack([y[0], x**2], axis=1) * np.sum(y, axis=1))

    x, v, h = X.astype(dtype), V.astype(dtype), 1e-5
    found = hvp(f, x, v)
    assert found.dtype == grad(f)(x).dtype == dtype
    assert not reasons(product_for(f, x))
    slopes = [grad(f)(X + d * V) for d in (h, -h)]
    np.testing.assert_allclose(found, (slopes[0] - slopes[1]) / (2 * h), rtol=1e-4)


def spread_out(a):
    values, vectors = np.linalg.eigh(a)
    return np.sum((vectors * values**2) @ vectors.T)


@pytest.mark.parametrize("f", [spread_out, lambda a: np.sum(np.linalg.eigh(a)[1][0] * [1, 2, 3])])
def test_vectors_of_equal_values_are_refused(f):
    for a in (np.eye(3), np.diag([1.0, 1.0, 2.0])):
        with pytest.raises(UnsupportedError, match="equal values"):
            hvp(f, a, A)


def test_roots_beside_a_diagonal():
    """What is not on the diagonal has no cotangent, so no slope of it counts."""
    for f in (lambda x: np.trace(np.sqrt(x)), lambda x: np.sum(np.diagonal(np.sqrt(x)) ** 2)):
        with np.errstate(divide="ignore"):
            assert np.isfinite(grad(f)(np.diag(X))).all()
            assert np.isfinite(hvp(f, np.diag(X), np.diag(V))).all()


def test_the_norm_has_no_second_derivative_at_zero():
    def f(x):
        return np.linalg.norm(x)

    assert grad(f)(np.zeros(3)).tolist() == [0.0] * 3
    with pytest.raises(UnsupportedError, match="no second derivative at 0"):
        hvp(f, np.zeros(3), V)
