"""Forward rules of arrays, against finite differences."""

import operator

import numpy as np
import pytest

from morula import gradient, hvp, jvp, pullback
from morula.core.extend import ZERO, accumulate
from morula.rules.arrays.broadcasting import spread, total, unbroadcast
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.pushforwards import DERIVATIVES
from morula.rules.arrays.structural import masked, selected
from morula.testing import check_frule


def matrix(rng, *shape, dtype="f8"):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return (x + 2.5).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
@pytest.mark.parametrize("f", DERIVATIVES, ids=lambda f: f.__name__)
def test_elementwise_functions(rng, f, dtype):
    check_frule(f, matrix(rng, 2, 3, dtype=dtype) / 4)


@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("c16", "f8"), ("f8", "c16"), ("f4", "f4")])
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (3,)), ((2,), ())])
@pytest.mark.parametrize(
    "f",
    [
        operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, np.add,
        np.subtract, np.multiply, np.true_divide, np.power,
    ],
)  # fmt: skip
def test_functions_of_two_arguments(rng, f, shapes, dtypes):
    a, b = [matrix(rng, *s, dtype=t) for s, t in zip(shapes, dtypes, strict=True)]
    check_frule(f, a, b)
    if not shapes[1]:
        check_frule(f, a, b.item())
        check_frule(f, b.item(), a)


@pytest.mark.parametrize("f", [operator.matmul, np.matmul, np.dot, np.ndarray.dot, np.inner])
def test_products(rng, f):
    check_frule(f, matrix(rng, 3, 3), matrix(rng, 3))
    check_frule(f, matrix(rng, 3, dtype="c16"), matrix(rng, 3))


@pytest.mark.parametrize("axis", [None, 0, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("f", [np.sum, np.mean, np.std, np.linalg.norm])
def test_reductions(rng, f, axis, keepdims):
    check_frule(f, matrix(rng, 3, 2), axis=axis, keepdims=keepdims)


def test_items_and_shapes(rng):
    x = matrix(rng, 3, 4)
    for i in (1, (0, 2), slice(None, None, 2), (Ellipsis, None, 0), [0, 2, 2], x > 2.5):
        check_frule(operator.getitem, x, i)
    check_frule(np.reshape, x, (4, 3))
    check_frule(np.ndarray.reshape, x, 2, 6)


def test_choices(rng):
    a, b = matrix(rng, 3), matrix(rng, 2, 3)
    check_frule(np.maximum, a, b)
    check_frule(np.minimum, a, 2.5)
    _, ẏ = jvp(np.maximum, (np.ones(2), np.ones(2)), (np.ones(2), None))
    np.testing.assert_array_equal(ẏ, [0.5, 0.5])


def test_an_infinite_slope_by_what_is_constant_does_no_harm():
    _, ẏ = jvp(lambda a: a * np.array([np.inf, 1.0]) ** 0.5, (2.0,), (1.0,))
    np.testing.assert_array_equal(ẏ, [np.inf, 1.0])
    _, ẏ = jvp(lambda x: np.array([0.0, 4.0]) ** 0.5 * x, (2.0,), (1.0,))
    np.testing.assert_array_equal(ẏ, [0.0, 2.0])


@pytest.mark.parametrize(
    "f",
    [
        np.std,
        lambda x: np.std(x, ddof=1),
        lambda x: np.std(x, where=np.array([True, True, False])),
        lambda x: x.std(None, ddof=1),
        lambda x: np.std([x[0], x[1]]),
        lambda x: x[0].std(),
        lambda x: np.linalg.norm(0 * x, 2),
        lambda x: np.linalg.norm(np.outer(0 * x, x), "fro", (0, 1)),
        np.nanstd,
    ],
)
def test_the_slope_at_a_kink_is_that_of_reverse_mode(f):
    x = np.ones(3)
    assert jvp(f, (x,), (np.arange(3.0),))[1] == 0.0
    assert not gradient(f, x)[0].any()


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("ddof", [0, 1])
def test_standard_deviations(rng, axis, ddof):
    where = rng.standard_normal((4, 3)) > -1
    check_frule(np.std, matrix(rng, 4, 3), axis, ddof=ddof, keepdims=True, where=where)
    check_frule(np.linalg.norm, matrix(rng, 4, 3), 1, axis or 0, True)


@pytest.mark.parametrize("bounds", [(-0.5, 0.7), (0.1, None), (None, 0.2)])
@pytest.mark.parametrize("fn", [np.clip, np.ndarray.clip])
def test_what_is_clipped_by_numbers(fn, bounds, rng):
    x = rng.normal(size=(3, 4))
    check_frule(fn, x, *bounds)
    check_frule(fn, x.astype(np.float32), *bounds)
    bound = next(b for b in bounds if b is not None)
    assert jvp(lambda x: fn(x, *bounds), (np.array([bound]),), (np.ones(1),))[1].tolist() == [0.5]
    product = hvp(lambda x: np.sum(fn(x, *bounds) ** 2), x, x)
    np.testing.assert_allclose(product, 2 * x * (fn(x, *bounds) == x))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("fn", [np.convolve, np.correlate])
def test_products_of_sequences(fn, mode, rng):
    a, v = matrix(rng, 5), matrix(rng, 3)
    check_frule(fn, a, v, mode)
    check_frule(fn, v, a + 1j * a**2, mode)
    check_frule(fn, a, v)


@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "ij,jk", "ij,jk->", "ij,ji->j", "...i,ik->k..."]
)
def test_einsum(subscripts, rng):
    a, b = matrix(rng, 3, 3), matrix(rng, 3, 3)
    check_frule(np.einsum, subscripts, a, b)
    check_frule(np.einsum, subscripts, a, b * 1j)
    check_frule(np.einsum, "ii->i", a)
    check_frule(np.einsum, "ij->ji", a.astype(np.float32))
    check_frule(np.einsum, "ij,ij->i", a, b[:, :1])  # an axis of length one is spread


def test_sorting(rng):
    x = matrix(rng, 4, 3)
    check_frule(np.sort, x)
    check_frule(np.sort, x, 0)
    _, ẏ = jvp(np.sort, (np.array([2.0, 1.0, 2.0]),), (np.array([1.0, 2.0, 3.0]),))
    np.testing.assert_array_equal(ẏ, [2.0, 1.0, 3.0])


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
def test_what_pullbacks_are_made_of(rng, dtype):
    x, y = matrix(rng, 2, 3, dtype=dtype), matrix(rng, 2, 3, dtype=dtype)
    for f in (np.ndarray.conjugate, np.ndarray.conj, np.ndarray.copy, total):
        check_frule(f, x)
    for f in (np.generic.conjugate, np.generic.conj):
        check_frule(f, x[0, 0])
    check_frule(accumulate, x, y)
    check_frule(unbroadcast, x, (3,))
    check_frule(spread, x, (4, 2, 3))
    for f in (masked, selected):
        check_frule(f, x, np.abs(x) > 2.5)
    for i in (1, (0, 2), slice(None, None, 2), np.array([1, 0, 1])):
        check_frule(scatter, x[i], i, x.shape, x.dtype)


def test_sums_of_cotangents_along_one_of_them(rng):
    x, ẋ = rng.standard_normal((2, 3))
    for f in (accumulate, lambda a, b: accumulate(b, a)):
        y, ẏ = jvp(lambda x, f=f: f(x, np.ones(3)), (x,), (ẋ,))
        np.testing.assert_array_equal(y, x + 1)
        np.testing.assert_array_equal(ẏ, ẋ)
        np.testing.assert_array_equal(jvp(lambda x, f=f: f(x, ZERO), (x,), (ẋ,))[1], ẋ)


OF_ARRAYS = {
    "clip": lambda x: np.clip(x, -0.5, 0.7),
    "clip from below": lambda x: x.clip(0.1),
    "clip from above": lambda x: np.clip(x, None, 0.2),
    "sort": np.sort,
    "sort columns": lambda x: np.sort(x, 0),
    "einsum of one": lambda x: np.einsum("ij->ji", x),
    "einsum of two": lambda x: np.einsum("ij,ij->i", x, x),
    "einsum of three": lambda x: np.einsum("ij,ij,kj->ik", x, x, x),
}
KINDS = {
    "double": lambda x: x,
    "single": lambda x: x.astype(np.float32),
    "complex": lambda x: x + 0.5j * x[::-1] ** 2,
    "empty": lambda x: x[:0],
    "view": lambda x: x.T[::-1, 1:],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OF_ARRAYS)
def test_both_modes_agree(name, kind, rng, path):
    f, x = OF_ARRAYS[name], KINDS[kind](matrix(rng, 3, 4))
    y, ẏ = jvp(f, (x,), (x,))
    same, back = pullback(f, x)
    np.testing.assert_array_equal(y, same)
    assert ẏ.dtype == y.dtype
    c = y / (1 + np.abs(y))
    (x̄,) = back(c)
    assert x̄.dtype == x.dtype
    rtol = 1e-5 if kind == "single" else 1e-12
    np.testing.assert_allclose(np.vdot(c, ẏ).real, np.vdot(x̄, x).real, rtol=rtol)
    np.testing.assert_array_equal(back(c)[0], x̄)
