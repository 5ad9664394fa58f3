"""Programs written to the array API standard, on arrays of NumPy, JAX, PyTorch and array_api_strict.

array_api_strict stands for the libraries that cannot be installed everywhere, CuPy for one: nothing
is known of its arrays but that they follow the standard.
"""

import copy
import os
import subprocess
import sys
from typing import Protocol

import numpy as np
import pytest

from morula import (
    Tangent,
    grad,
    gradient,
    hessian,
    hvp,
    jacobian,
    jvp,
    pullback,
    ravel,
    value_and_grad,
)
from morula.core.errors import NoRuleError, UnsupportedError
from morula.interop.array_api import by_standard
from morula.interop.array_api.kinds import is_of_standard

strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
compat = pytest.importorskip("array_api_compat", reason="array_api_compat is not installed")

V = np.array([0.3, -0.7, 1.1, 0.45, -0.2, 0.8])
W = np.array([1.5, 0.5, -0.4, 2.0, 0.9, -1.2])


def library(name):
    """What makes an array, and the namespace that a program asks for."""
    if name == "numpy":
        return np.asarray, lambda x: x.__array_namespace__()
    if name == "strict":
        return strict.asarray, lambda x: x.__array_namespace__()
    if name == "jax":
        jnp = pytest.importorskip("jax.numpy", reason="the extra jax is not installed")
        return jnp.asarray, lambda x: x.__array_namespace__()
    if name == "dask":
        da = pytest.importorskip("dask.array", reason="the extra dask is not installed")
        return lambda v: da.from_array(v, chunks=3), compat.array_namespace
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    return torch.tensor, compat.array_namespace


def slope_by_differences(f, x, h=1e-6):
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = h
        found[i] = (float(f(x + e)) - float(f(x - e))) / (2 * h)
    return found


def positive(xp, x):
    return xp.sum(
        xp.log(x * x + 1.0) + xp.sqrt(x * x + 0.5) - xp.log2(x * x + 2.0) * xp.log1p(x * x)
    )


def network(xp, x):
    w = xp.reshape(x, (2, 3))
    hidden = xp.tanh(xp.matmul(w, xp.matrix_transpose(w)) + x[:2])
    return xp.sum(xp.exp(-hidden) * hidden) / hidden.shape[0]


def softmax(xp, x):
    z = xp.exp(x - xp.max(x))
    p = z / xp.sum(z)
    return -xp.sum(xp.log(p)[1:3]) + xp.mean(p**2)


def standardised(xp, x):
    y = xp.reshape(x, (3, 2))
    centred = y - xp.mean(y, axis=0, keepdims=True)
    return xp.sum((centred / xp.std(y, axis=0, keepdims=True)) ** 3) + xp.var(x, correction=1)


def pieces(xp, x):
    y = xp.concat([x, xp.flip(x), xp.stack([x[0], x[3]])])
    z = xp.where(y > 0, y * y, -3.0 * y)
    return xp.sum(z * xp.roll(y, 2)) + xp.sum(xp.broadcast_to(x[:, None], (6, 2)) ** 2)


def loop(xp, x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            total = total + x[i] ** 2 * i
        else:
            total = total - xp.sin(x[i])
    return total


GENERIC = [positive, network, softmax, standardised, pieces, loop]
LIBRARIES = ["numpy", "strict", "jax", "torch", "dask"]


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("program", GENERIC)
def test_one_program_for_all_libraries(program, name):
    make, namespace = library(name)
    x = make(V) if name != "jax" else make(V.astype(np.float32))

    def f(x):
        return program(namespace(x), x)

    tolerance = {"rtol": 2e-3, "atol": 1e-4} if name == "jax" else {"rtol": 1e-6, "atol": 1e-7}
    if name == "dask" and program is pieces:  # has functions that have no rule on arrays of Dask's
        with pytest.raises(NoRuleError, match="no rule for it on Dask's arrays"):
            gradient(f, x)
        return
    want = slope_by_differences(lambda v: program(np, v), V)
    y, g = value_and_grad(f)(x)
    assert type(g) is type(x)
    assert g.dtype == x.dtype
    assert float(y) == (pytest.approx(float(f(x))) if name == "dask" else float(f(x)))
    np.testing.assert_allclose(np.asarray(g), want, **tolerance)
    ẏ = jvp(f, (x,), (make(W.astype(np.asarray(x).dtype)),))[1]
    np.testing.assert_allclose(float(ẏ), want @ W, **tolerance)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.thorough] if n == "dask" else []) for n in LIBRARIES],
)
def test_second_order_for_all_libraries(name):
    make, namespace = library(name)
    x = make(V.astype(np.float32)) if name == "jax" else make(V)

    def f(x):
        xp = namespace(x)
        return xp.sum(xp.exp(x) * x) * x[0] + xp.sum(xp.matmul(x[None, :], x[:, None]) ** 2)

    def slope(v):
        y = np.exp(v) * (1 + v) * v[0]
        y[0] += np.sum(np.exp(v) * v)
        return y + 4 * v * (v @ v)

    want = (slope(V + 1e-6 * W) - slope(V - 1e-6 * W)) / 2e-6
    tolerance = 1e-3 if name == "jax" else 1e-7
    np.testing.assert_allclose(
        np.asarray(hvp(f, x, make(W.astype(np.asarray(x).dtype)))), want, tolerance
    )


A = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [-0.3, 0.4, 1.8]])
FUNCTIONS = {
    "acos": lambda xp, x: xp.acos(x / 3),
    "acosh": lambda xp, x: xp.acosh(x + 3),
    "asin": lambda xp, x: xp.asin(x / 3),
    "asinh": lambda xp, x: xp.asinh(x),
    "atan": lambda xp, x: xp.atan(x),
    "atanh": lambda xp, x: xp.atanh(x / 3),
    "atan2": lambda xp, x: xp.atan2(x, x[0, :] + 2),
    "cosh": lambda xp, x: xp.cosh(x) - xp.cos(x) + xp.sinh(x) * xp.tan(x / 3),
    "expm1": lambda xp, x: xp.expm1(x) + xp.log10(x * x) + xp.reciprocal(x) + xp.square(x),
    "hypot": lambda xp, x: xp.hypot(x, xp.matrix_transpose(x)) + xp.logaddexp(x, x[0, :]),
    "pow": lambda xp, x: xp.pow(x * x, x) + x**3 + 2.0**x + (x + 3) ** x[1, :],
    "remainder": lambda xp, x: xp.remainder(x, x[:, 1] + 1.3) + x % 0.7 - 2.5 % (x + 4),
    "minimum": lambda xp, x: xp.minimum(x, x[:1, :]) + xp.maximum(x, 0.1 * x[:, :1]),
    "abs": lambda xp, x: abs(x) * xp.abs(x - 0.2) - (-x) / (+x + 4),
    "clip": lambda xp, x: xp.clip(x, 0.0, 1.6) * xp.copysign(x, xp.ones_like(x)),
    "scalars": lambda xp, x: 1.5 - x + (2 / (x + 3)) - (x - 1) * (3 * x) / 2,
    "max": lambda xp, x: xp.max(x, axis=1) * xp.min(x, axis=0) + xp.max(x) - xp.sum(x, axis=-1),
    "prod": lambda xp, x: xp.prod(x, axis=0) + xp.cumulative_sum(x, axis=1)[:, 2] * xp.prod(x),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(x, axis=1) + xp.diff(x, axis=0)[0, :],
    "sort": lambda xp, x: xp.sort(x, axis=1) * xp.asarray([1.0, 2.0, 4.0]),
    "take": lambda xp, x: xp.take(x, xp.asarray([0, 2, 0]), axis=1) * x,
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.asarray([[0, 2, 0]]), axis=0) ** 2,
    "index arrays": lambda xp, x: x[xp.asarray([0, 1, 0]), xp.asarray([1, 2, 1])] ** 2,
    "mask": lambda xp, x: x[x > 0.25] ** 2,
    "slices": lambda xp, x: x[::-1, 1:] * x[1, ..., None] + x[-1, 0],
    "tile": lambda xp, x: xp.tile(x, (2, 1)) * xp.repeat(x, 2, axis=0),
    "triangles": lambda xp, x: xp.tril(x) * 2 + xp.triu(x, k=1) ** 2,
    "moveaxis": lambda xp, x: xp.moveaxis(x[None, :, :], 0, 2)[:, :, 0] @ x + x.T * x.mT**2,
    "permute_dims": lambda xp, x: xp.permute_dims(x[None, :, :], (2, 0, 1))[:, 0, :] * x**2,
    "squeeze": lambda xp, x: xp.squeeze(xp.expand_dims(x, axis=1), axis=1) ** 2,
    "unstack": lambda xp, x: xp.unstack(x)[1] * xp.unstack(x, axis=1)[0],
    "meshgrid": lambda xp, x: xp.meshgrid(x[0, :], x[1, :])[0] * xp.broadcast_arrays(x, x[0, :])[1],
    "full": lambda xp, x: (
        xp.full((2, 2), float(x[0, 1])) ** 2 + xp.full_like(x[:2, :2], float(x[2, 2]))
    ),
    "linspace": lambda xp, x: xp.linspace(float(x[0, 0]), 3.0, 4) ** 2,
    "astype": lambda xp, x: xp.astype(x, xp.float32) ** 2,
    "tensordot": lambda xp, x: xp.tensordot(x, x, axes=((0,), (1,))) + xp.vecdot(x, x)[0],
    "product": lambda xp, x: (
        x @ x[0, :] + x[1, :] @ x + (x[0, :] @ x[1, :]) + (x @ x[None, :, :])[0, 0, :]
    ),
    "det": lambda xp, x: (
        xp.linalg.det(x) * xp.linalg.slogdet(x)[1] + xp.linalg.slogdet(x).logabsdet
    ),
    "inv": lambda xp, x: (
        xp.linalg.inv(x) + xp.linalg.solve(x, x.T) + xp.linalg.pinv(x[:, :2])[0, 0]
    ),
    "cholesky": lambda xp, x: xp.linalg.cholesky(x @ x.T) + xp.linalg.outer(x[0, :], x[1, :]),
    "eigh": lambda xp, x: xp.linalg.eigh(x + x.T)[0] + xp.linalg.eigvalsh(x @ x.T),
    "svd": lambda xp, x: xp.linalg.svd(x).S + xp.linalg.svdvals(x.T)[0],
    "qr": lambda xp, x: xp.linalg.qr(x).R ** 2 + xp.linalg.matrix_power(x, 3),
    "norms": lambda xp, x: xp.linalg.vector_norm(x, axis=0) + xp.linalg.matrix_norm(x),
    "trace": lambda xp, x: (
        xp.linalg.trace(x) * xp.linalg.diagonal(x) + xp.linalg.cross(x, x.T)[0, :]
    ),
    "fft": lambda xp, x: xp.abs(xp.fft.rfft(x[0, :])) ** 2 + xp.imag(xp.fft.rfft(x[1, :])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_functions_of_the_standard(name):
    program = FUNCTIONS[name]
    weights = np.cos(np.arange(1.0, 40.0))

    def f(x):
        xp = x.__array_namespace__()
        y = xp.reshape(program(xp, x), (-1,))
        return xp.sum(y * xp.asarray(weights[: y.shape[0]], dtype=y.dtype))

    x = strict.asarray(A)
    step, rtol = (1e-2, 1e-3) if name == "astype" else (1e-6, 1e-6)
    want = slope_by_differences(lambda v: f(strict.asarray(v)), A, step)
    y, back = pullback(f, x)
    assert y == f(x)
    for _ in range(2):
        (g,) = back(strict.asarray(1.0, dtype=y.dtype))
        assert g.dtype == strict.float64
        np.testing.assert_allclose(np.asarray(g), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ["pow", "max", "take", "slices", "product", "inv", "index arrays"])
def test_second_derivatives_of_functions_of_the_standard(name):
    def f(x):
        xp = x.__array_namespace__()
        return xp.sum(FUNCTIONS[name](xp, x) ** 2)

    def slope(v):
        return np.asarray(grad(f)(strict.asarray(v)))

    v = A[::-1].copy()
    want = (slope(A + 1e-6 * v) - slope(A - 1e-6 * v)) / 2e-6
    got = hvp(f, strict.asarray(A), strict.asarray(v))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


def test_kinks_and_ties_are_those_of_numpys_arrays():
    x = strict.asarray([0.0, 0.0, 1.0])
    xp = strict
    for f, want in [
        (lambda x: xp.sum(abs(x)), [0, 0, 1]),
        (lambda x: xp.max(x[:2]), [0.5, 0.5, 0]),
        (lambda x: xp.sum(xp.maximum(x, xp.zeros_like(x))), [0.5, 0.5, 1]),
        (lambda x: xp.sum(xp.hypot(x, x)), [0, 0, np.sqrt(2)]),
        (lambda x: xp.sum(x**2) + xp.sum(x**0), [0, 0, 2]),
        (lambda x: xp.prod(x + xp.asarray([0.0, 2.0, 3.0])), [8, 0, 0]),
        (lambda x: xp.std(x[:2]), [0, 0, 0]),
        (lambda x: xp.sum(xp.floor(x) * x + xp.sign(x)), [0, 0, 1]),
    ]:
        np.testing.assert_allclose(np.asarray(gradient(f, x)[0]), want)


CHOICES = [  # of the namespace, at [0, 1, 4]: what is not chosen has an infinite slope there
    (lambda xp, x: xp.sum(xp.where(x > 0, xp.sqrt(x), 0 * x)), [0, 0.5, 0.25]),
    (lambda xp, x: xp.sum(xp.where(x > 0, xp.sqrt(x), 0.0)), [0, 0.5, 0.25]),
    (lambda xp, x: xp.sum(xp.where(x > 0, xp.sqrt(x) * xp.sqrt(x) + 1, x)), [1, 1, 1]),
    (lambda xp, x: xp.sum(xp.where(x[0] >= 0, x, xp.sqrt(x - 1))), [1, 1, 1]),
    (lambda xp, x: xp.sum(xp.where(x > 0, xp.reshape(xp.log(x), (3,)), x)), [1, 1, 0.25]),
    (
        lambda xp, x: xp.sum(
            xp.where(x > 0, xp.permute_dims(xp.sqrt(x)[:, None], (1, 0))[0, ...], x)
        ),
        [1, 0.5, 0.25],
    ),
    (lambda xp, x: xp.sum(xp.minimum(xp.ones_like(x), 1 / x)), [0, -0.5, -1 / 16]),
    (lambda xp, x: xp.max(xp.sqrt(x)), [0, 0, 0.25]),
    (lambda xp, x: xp.sum((1 / x)[1:]), [0, -1, -1 / 16]),
    (lambda xp, x: xp.sum(xp.sqrt(x)[x > 0]), [0, 0.5, 0.25]),
    (lambda xp, x: xp.sum(xp.concat([xp.sqrt(x), x])[1:]), [1, 1.5, 1.25]),
    (lambda xp, x: xp.sum(xp.stack([xp.sqrt(x), x])[1, ...]), [1, 1, 1]),
    (lambda xp, x: xp.sum(xp.where(x > 0, x ** (1 / 3), x)), [1, 1 / 3, 4 ** (-2 / 3) / 3]),
    # by NumPy's function
    (lambda xp, x: xp.sum(xp.where(x > 0, xp.clip(xp.sqrt(x), 0.0, 9.0), x)), [1, 0.5, 0.25]),
    (lambda xp, x: xp.sum(xp.sqrt(x) ** 2), [np.nan, 1, 1]),
]


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize(("f", "want"), CHOICES)
def test_what_is_not_chosen_has_no_influence(f, want):
    """Zeros of its cotangent are structural: 0 times infinity is 0; other zeros are numbers."""
    v = np.array([0.0, 1.0, 4.0])
    x = strict.asarray(v)
    y, back = pullback(lambda x: f(strict, x), x)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(back(strict.ones_like(y))[0]), want, rtol=1e-12)
    by_numpy = hvp(lambda x: f(np, x), v, v + 1)
    found = hvp(lambda x: f(strict, x), x, strict.asarray(v + 1))
    np.testing.assert_allclose(np.asarray(found), by_numpy, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_gradients_have_the_dtype_of_their_argument(dtype):
    x = strict.asarray(V.astype(dtype)) * strict.asarray(
        1 + 0.5j if "c" in dtype else 1.0, dtype=getattr(strict, dtype)
    )

    def f(x):
        y = strict.exp(x) * strict.conj(x) if "c" in dtype else strict.exp(x) * x
        return strict.sum(abs(y) ** 2) if "c" in dtype else strict.sum(y)

    (g,) = gradient(f, x)
    assert g.dtype == x.dtype
    z = np.asarray(x)
    if "c" in dtype:  # |e^z z̄|² = e^(2 Re z) |z|²
        want = np.exp(2 * z.real) * (2 * np.abs(z) ** 2 + 2 * z)
    else:
        want = np.exp(z) * (1 + z)
    np.testing.assert_allclose(
        np.asarray(g), want, rtol=1e-5 if dtype in ("float32", "complex64") else 1e-12
    )


def test_numbers_and_arrays_of_numpy_beside_them():
    def f(x, a, v):
        y = a * x - x / a
        total = float(strict.sum(y * strict.asarray(v)))
        buffer = np.zeros(3)
        buffer[0] = x[1]
        buffer[1:] = np.asarray(x)[2:4]
        return total * a + buffer @ buffer

    def by_hand(x, a, v):
        return x @ v * (a * a - 1) + x[1] ** 2 + x[2] ** 2 + x[3] ** 2

    x, a = strict.asarray(V), 1.7
    assert f(x, a, W) == pytest.approx(by_hand(V, a, W))
    x̄, ā, v̄ = gradient(f, x, a, W)
    assert (type(x̄), type(ā), type(v̄)) == (type(x), float, np.ndarray)
    np.testing.assert_allclose(np.asarray(x̄), W * (a * a - 1) + 2 * V * [0, 1, 1, 1, 0, 0])
    assert ā == pytest.approx(2 * a * (V @ W))
    np.testing.assert_allclose(v̄, V * (a * a - 1))


def test_structures_integers_and_empty_arrays():
    class Model:
        def __init__(self, w, n):
            self.w = w
            self.n = n

    def f(model, table):
        return strict.sum(model.w ** table["power"]) * int(strict.sum(model.n)) + strict.sum(
            table["empty"]
        )

    model = Model(strict.asarray(V), strict.asarray([1, 2]))
    table = {"power": 2, "empty": strict.zeros((0, 2))}
    of_model, of_table = gradient(f, model, table)
    assert isinstance(of_model, Tangent)
    assert list(of_model.keys()) == ["w"]
    np.testing.assert_allclose(np.asarray(of_model.w), 6 * V)
    assert of_table["empty"].shape == (0, 2)
    unused = gradient(lambda x, y: strict.sum(x), strict.asarray(V), strict.asarray(W))[1]
    np.testing.assert_array_equal(np.asarray(unused), np.zeros(6))


def test_jacobians_hessians_and_vectors():
    x = strict.asarray(V[:3])
    (rows,) = jacobian(lambda x: strict.sin(x) * x[0], x)
    want = np.diag(np.cos(V[:3]) * V[0])
    want[:, 0] += np.sin(V[:3])
    assert type(rows) is type(x)
    np.testing.assert_allclose(np.asarray(rows), want)
    np.testing.assert_allclose(
        np.asarray(hessian(lambda x: strict.sum(x**3), x)), np.diag(6 * V[:3])
    )
    vector, unravel = ravel({"a": x, "b": 2.0})
    np.testing.assert_array_equal(vector, [*V[:3], 2.0])
    back = unravel(2 * vector)
    assert back["b"] == 4.0
    np.testing.assert_array_equal(np.asarray(back["a"]), 2 * V[:3])


def test_lists_of_arrays_stay_lists():
    def f(x):
        rows = [x[0], x[1]] + [x[2]]
        rows[0] = rows[0] * 2.0
        rows += [x[3]] * 2
        table = np.asarray(rows) ** 2 + np.sin(x)[:5]
        return table.sum() * len(rows) + max(rows, key=float) ** 2

    x = strict.asarray(V)
    want = slope_by_differences(lambda v: f(strict.asarray(v)), V)
    np.testing.assert_allclose(np.asarray(gradient(f, x)[0]), want, rtol=1e-7)
    slope = lambda v: np.asarray(grad(f)(strict.asarray(v)))
    want = (slope(V + 1e-6 * W) - slope(V - 1e-6 * W)) / 2e-6
    np.testing.assert_allclose(np.asarray(hvp(f, x, strict.asarray(W))), want, rtol=1e-6, atol=1e-7)


def test_lists_that_hold_themselves():
    gradient(strict.sum, strict.asarray(V))  # from now on lists are asked for such arrays

    def f(x):
        xs = [x]
        xs.append((xs, x))
        ys = copy.deepcopy(xs)
        return ys[0] * ys[1][0][0]

    assert gradient(f, 3.0) == (6.0,)


def test_gradients_are_memory_of_their_own():
    x, y = strict.asarray(V), strict.asarray(V)
    for f in (lambda x, y: strict.sum(x + y), lambda x, y: strict.sum(x * y)):
        x̄, ȳ = gradient(f, x, y)
        x̄ *= 0.0
        assert strict.all(ȳ != 0)
        np.testing.assert_array_equal(np.asarray(x), V)


def test_what_changes_an_array_in_place_is_refused():
    def added(x):
        y = x * 2.0
        y += x
        return strict.sum(y)

    def stored(x):
        y = strict.zeros(6)
        y[0] = x[1]
        return strict.sum(y)

    for f in (added, stored):
        with pytest.raises(
            UnsupportedError, match=r"changes an array of the array API standard in place"
        ):
            gradient(f, strict.asarray(V))


def test_what_is_not_of_the_standard_is_an_error_where_it_counts():
    x = strict.asarray(V)
    with pytest.raises(NoRuleError, match="_array"):
        gradient(lambda x: x._array.sum(), x)
    with pytest.raises(TypeError, match="one real number"):
        gradient(lambda x: x * 2.0, x)
    assert np.asarray(gradient(lambda x: strict.sum(x) * x._array.size, x)[0])[0] == 6.0


class Compiled:
    """A method that has no code of Python's to be followed."""

    def __init__(self, name):
        self.__name__ = name

    def __get__(self, x, cls):
        return self if x is None else Bound(self, x)

    def __call__(self, x, *args, **kwargs):
        return Own(getattr(x.v, self.__name__)(*map(opened, args), **kwargs))


class Bound:
    def __init__(self, method, x):
        self.__name__, self.__self__, self.method = method.__name__, x, method

    def __call__(self, *args, **kwargs):
        return self.method(self.__self__, *args, **kwargs)


class Own:
    """An array of nobody's library, which answers to NumPy as well, as those of CuPy do."""

    def __init__(self, v):
        self.v = np.asarray(v)

    shape = property(lambda self: self.v.shape)
    ndim = property(lambda self: self.v.ndim)
    size = property(lambda self: self.v.size)
    dtype = property(lambda self: self.v.dtype)
    device = "cpu"
    __mul__, __rmul__, __add__, __radd__ = map(
        Compiled, ["__mul__", "__rmul__", "__add__", "__radd__"]
    )
    __sub__, __pow__, __eq__, __getitem__ = map(
        Compiled, ["__sub__", "__pow__", "__eq__", "__getitem__"]
    )
    __truediv__, __rtruediv__, __neg__ = map(Compiled, ["__truediv__", "__rtruediv__", "__neg__"])
    __float__ = lambda self: float(self.v)
    sum, reshape, dot = map(Compiled, ["sum", "reshape", "dot"])

    def cumsum(self, axis=None):
        return Own(self.v.cumsum(axis))

    def shuffled(self):
        return Own(self.v[::-1])

    def __setitem__(self, key, value):
        self.v[opened(key)] = opened(value)

    def __array__(self, dtype=None, copy=None):
        return self.v

    def __array_namespace__(self, api_version=None):
        return Namespace

    def __array_ufunc__(self, ufunc, method, *args, **kwargs):
        return Own(getattr(ufunc, method)(*map(opened, args), **kwargs))

    def __array_function__(self, func, types, args, kwargs):
        return Own(func(*map(opened, args), **kwargs))


def opened(x):
    return x.v if isinstance(x, Own) else x


class Namespace:
    float64 = np.dtype("f8")


def own_function(name):
    def function(*args, **kwargs):
        y = getattr(np, name)(*map(opened, args), **{k: opened(x) for k, x in kwargs.items()})
        return Own(y)

    function.__name__ = name
    return staticmethod(function)


for (
    _name
) in """sum exp sin log reshape zeros_like ones_like asarray astype broadcast_to cumulative_prod
    where max conj logical_not""".split():
    setattr(Namespace, _name, own_function(_name))


def test_arrays_of_a_library_that_nobody_knows():
    def f(x):
        xp = x.__array_namespace__()
        y = xp.sum(xp.exp(x) * x[::-1]) + np.sin(x).sum() * x.cumsum()[2] - x.dot(x**2)
        return y + np.sum(x**2) + xp.cumulative_prod(x)[1] + float(x.reshape(2, 3)[1, 0]) ** 2

    want = slope_by_differences(lambda v: f(Own(v)), V)
    y, g = value_and_grad(f)(Own(V))
    assert type(g) is Own
    assert y.v == f(Own(V)).v
    np.testing.assert_allclose(g.v, want, rtol=1e-6)
    want = 2 * W * V[0] + 2 * V * W[0] + 2 * np.eye(6)[0] * (V @ W)  # of sum(x**2) x[0]
    got = hvp(lambda x: (x**2).sum() * x[0], Own(V), Own(W))
    np.testing.assert_allclose(got.v, want)
    with pytest.raises(NoRuleError, match="shuffled"):
        gradient(lambda x: x.shuffled().sum(), Own(V))
    with pytest.raises(NoRuleError, match="Own"):
        gradient(lambda v: Own(v * 2.0).sum(), V)


def test_a_function_that_gives_other_numbers_than_numpys_is_refused():
    @by_standard
    class Odd(Own):
        def __array_namespace__(self, api_version=None):
            return Namespace

        def cumsum(self, axis=None):
            return Odd(2.0 * self.v.cumsum())

    with pytest.raises(UnsupportedError, match="other numbers than NumPy's"):
        gradient(lambda x: float(x.cumsum()[1]), Odd(V))


def test_only_classes_with_a_namespace_are_declared():
    with pytest.raises(TypeError, match="__array_namespace__"):
        by_standard(Compiled)


def test_protocols_are_no_classes_of_arrays():
    """SciPy has one: asking it whether it is a base of a class is an error."""

    class HasNamespace(Protocol):
        def __array_namespace__(self): ...

    assert not is_of_standard(HasNamespace)


SCIPY = """
import array_api_strict as strict
import numpy as np
import scipy.fft, scipy.special, scipy.stats
from morula import gradient

def total(y):
    return y.__array_namespace__().sum(y)

v = np.array([0.3, 0.7, 1.1])
for f in (
    lambda x: total(scipy.special.gammaln(x)),
    lambda x: scipy.special.logsumexp(x),
    lambda x: total(abs(scipy.fft.rfft(x)) ** 3),
    lambda x: total(scipy.stats.zscore(x) ** 3),
):
    x = strict.asarray(v)
    assert type(f(x)) is type(x)
    (g,) = gradient(f, x)
    assert type(g) is type(x)
    for i in range(3):
        e = 1e-6 * np.eye(3)[i]
        slope = (float(f(strict.asarray(v + e))) - float(f(strict.asarray(v - e)))) / 2e-6
        assert abs(float(g[i]) - slope) < 1e-6 * (1 + abs(slope)), (g, slope)
"""


def test_scipys_functions_of_arrays_of_the_standard():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", SCIPY], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
