"""Sparse Jacobians: patterns that lack nothing, few runs, the numbers of the dense Jacobian."""

import math

import numpy as np
import pytest
from scipy import sparse

from morula import grad, hessian, jacobian, jvp, rrule
from morula.mixed_mode.colouring import Star, colours_of
from morula.mixed_mode.sparsity import pattern_of

X = np.linspace(0.5, 1.5, 6)
V6 = np.array([1.0, 2.0, 0.0, 4.0, 5.0, 6.0])


def band(x):
    return np.concatenate([[x[0] ** 2], x[1:] * x[:-1] + np.sin(x[1:]), [np.sum(x[:2])]])


def a_loop(x):
    found = []
    for i in range(len(x)):
        s = math.exp(x[i])
        if i > 0:
            s -= x[i - 1] * 2
        found.append(s)
    return np.array(found)


def an_arrow(x):
    return np.concatenate([[np.prod(x)], x[1:] * 2])


def a_constant_matrix(x):
    return np.diag(V6) @ x + np.eye(6)[::-1] @ (x * x)


def a_grid(x):
    u = x.reshape(2, 3)
    return np.roll(u, 1, axis=1) - 2 * u + np.where(u > 1, u.T.reshape(2, 3), 0.0)


def structures(x):
    d = {"a": x[:2], "b": [x[2] * x[3]]}
    d["b"].insert(0, d["a"][1])
    return np.stack([d["b"][0], d["b"][1], max(x[4], x[5])])


def cumulated(x):
    return np.cumsum(x.reshape(2, 3), axis=1).max(axis=0)


def a_norm(x):
    return np.array([np.linalg.norm(x[:3]), np.linalg.norm(x[3:], ord=1)])


def a_sparse_matrix(x):
    return sparse.csr_array(np.diag(V6) + np.eye(6, k=2)) @ np.sin(x)


def entries_written(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] * x[i - 1] if x[i] > 1 else x[i] ** 2
    return y


def a_slice_written(x):
    y = x * 0
    y[0] = x[3]
    y[1:3] = x[4:]
    return y


@pytest.mark.parametrize(
    "f",
    [band, a_loop, an_arrow, a_constant_matrix, a_grid, structures, cumulated, a_norm]
    + [a_sparse_matrix, entries_written, a_slice_written],
)
def test_the_numbers_of_the_dense_jacobian(f):
    (found,) = jacobian(f, X, sparsity="auto")
    assert sparse.issparse(found)
    dense = jacobian(f, X)[0].reshape(-1, 6)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12)
    assert found.nnz <= np.count_nonzero(dense) + 6


def test_a_band_needs_few_runs_however_long_it_is():
    runs = []

    def f(x):
        runs.append(1)
        return x[1:] * x[:-1] - np.sin(x[1:])

    x = np.linspace(1.0, 2.0, 10_000)
    (found,) = jacobian(f, x, sparsity="auto")
    assert found.nnz == 2 * 9999
    assert len(runs) == 2  # one for the pattern, one for both colours
    np.testing.assert_allclose(found.diagonal(), x[1:])


def test_rows_are_coloured_where_that_needs_fewer_runs():
    runs = []

    def f(x):
        runs.append(1)
        return np.concatenate([[np.sum(x**2)], x[1:]])

    jacobian(f, np.ones(50), sparsity="auto")
    assert len(runs) == 2


def test_a_pattern_of_ones_own_and_a_function_of_the_point():
    pattern = sparse.eye_array(6)
    found = jacobian(lambda x: x**2, X, sparsity=pattern)[0]
    np.testing.assert_allclose(found.toarray(), np.diag(2 * X))
    np.testing.assert_allclose(jacobian(band, sparsity="auto")(X).toarray(), jacobian(band)(X))
    by_a, by_x = jacobian(lambda a, x: a * x, 2.0, X, sparsity="auto")
    assert by_a.shape == (6, 1)
    assert by_x.nnz == 6


def test_what_nothing_is_known_of_depends_on_everything():
    def opaque(x):
        raise AssertionError

    @rrule(opaque)
    def _(x: np.ndarray):
        return 2 * x, lambda ȳ: (2 * ȳ,)

    assert pattern_of(opaque, (X,), 0).nnz == 36
    np.testing.assert_allclose(jacobian(opaque, X, sparsity="auto")[0].toarray(), 2 * np.eye(6))


def test_columns_of_one_colour_share_no_row(rng):
    pattern = sparse.random_array((30, 40), density=0.1, rng=rng, format="csr")
    colours = colours_of(pattern)
    for c in range(colours.max() + 1):
        assert (pattern[:, colours == c] != 0).sum(axis=1).max() <= 1


@pytest.mark.parametrize("density", [0.02, 0.1, 0.4, 1.0])
def test_each_entry_of_a_symmetric_matrix_is_somewhere_alone(rng, density):
    half = sparse.random_array((40, 40), density=density, rng=rng)
    pattern = sparse.csr_array(half + half.T)
    star = Star(pattern)
    table = pattern.toarray()
    sums = np.stack([table[:, star.colours == c].sum(axis=1) for c in range(40)], axis=1)
    for i, j in np.transpose(pattern.nonzero()):
        c, row = star.place(i, j)
        assert sums[row, c] == table[i, j]


def test_stars_and_bands_need_few_colours():
    arrow = sparse.lil_array((50, 50))
    arrow.setdiag(1)
    arrow[20, :] = arrow[:, 20] = 1
    assert Star(arrow).colours.max() + 1 == 2
    band = sparse.diags_array([1.0, 1, 1, 1, 1], offsets=(-2, -1, 0, 1, 2), shape=(50, 50))
    assert Star(band).colours.max() + 1 <= 5
    assert Star(sparse.csr_array((4, 4))).colours.tolist() == [0, 0, 0, 0]


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def an_arrow_of_numbers(x):
    return x[0] * sum(math.sin(v) for v in x[1:]) + x[0] ** 3


def neighbours(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += x[i] ** 2 * x[i + 1]
    return total


def differences(x):
    u = x.reshape(2, 3)
    return np.sum(np.diff(u, axis=1) ** 4) + np.sum(np.diff(x[:3], 2) ** 2)


def products(x):
    bands = np.eye(6) + np.eye(6, k=1)
    return np.sum((bands @ x) ** 2) + np.sum((x[:2] @ bands[:2]) ** 2)


def elementwise(x):
    return np.sum(np.log1p(np.exp(-x)) + x.clip(0.6, 1.2) ** 3 + np.where(x > 1, x**3, x**2))


def written_entries(x):
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        y[i] = x[i] * x[i - 1]
    return np.sum(y**2)


def no_curvature(x):
    return 3.0 * x.sum()


@pytest.mark.parametrize(
    "f",
    [rosenbrock, an_arrow_of_numbers, neighbours, differences, products, elementwise]
    + [written_entries, no_curvature, lambda x: np.linalg.norm(x) ** 3],
)
def test_the_numbers_of_the_dense_hessian(f):
    dense = hessian(f, X)
    found = hessian(f, X, sparsity="auto")
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-9, atol=1e-12)
    assert found.nnz == np.count_nonzero(dense)
    again = hessian(f, sparsity=found)(X)
    np.testing.assert_allclose(again.toarray(), dense, rtol=1e-9, atol=1e-12)


def test_hessians_of_complex_arrays_are_not_symmetric():
    z = np.array([1 + 2j, 0.5 - 1j, 2.0, -1j])

    def f(z):
        return np.sum(z[0].real * (z[1:].real + z[1:].imag)) + np.sum(np.abs(z) ** 2 * z.real)

    dense = hessian(f, z)
    assert not np.allclose(dense, dense.T)
    for sparsity in ("auto", dense != 0):
        np.testing.assert_allclose(hessian(f, z, sparsity=sparsity).toarray(), dense)


def test_hessians_of_nothing_and_of_single_precision():
    assert hessian(lambda x: np.sum(x**2), np.zeros(0), sparsity="auto").shape == (0, 0)
    found = hessian(lambda x: np.sum(x**3), np.ones(3, np.float32), sparsity="auto")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), 6 * np.eye(3))


def test_products_with_lists():
    bands = np.eye(3)[:, :2]
    for f in (lambda x: bands @ [x[0], x[1]], lambda x: np.dot(bands, [x[0] * x[1], x[1]])):
        found = jacobian(f, X[:3], sparsity="auto")[0]
        np.testing.assert_allclose(found.toarray(), jacobian(f, X[:3])[0])


def test_zeros_and_signs_in_a_pattern_of_ones_own_count_as_entries():
    dense = hessian(rosenbrock, X)
    for values in (np.triu(np.ones((6, 6)), 1) - np.tril(np.ones((6, 6)), -1) + np.eye(6), 0):
        pattern = sparse.csr_array(np.ones((6, 6)))
        pattern.data = np.ravel(values * np.ones((6, 6)))
        found = hessian(rosenbrock, X, sparsity=pattern)
        np.testing.assert_allclose(found.toarray(), dense, rtol=1e-12)


def test_a_hessian_takes_as_many_products_as_colours():
    runs = []

    def f(x, scale):
        runs.append(1)
        return scale * np.sum(x[0] * np.tanh(x[1:]))

    x = np.linspace(0.1, 1.0, 2000)
    found = hessian(f, x, 2.0, sparsity="auto")
    assert found.nnz == 3 * 1999
    assert len(runs) <= 3
    np.testing.assert_allclose(found[[0], :].toarray()[0, 1:], 2 / np.cosh(x[1:]) ** 2)
    expected = hessian(lambda x: f(x, 2.0), x[:9])
    np.testing.assert_allclose(found[:9, :9].toarray(), expected, rtol=1e-9)


def test_sparse_hessians_of_structures_and_within_differentiated_code():
    z = np.linspace(0.5, 1.5, 4).reshape(2, 2)
    found = hessian(lambda z: np.sum(z**3), z, sparsity="auto")
    np.testing.assert_allclose(found.toarray(), np.diag(6 * z.ravel()))
    assert hessian(lambda a: a**3, 2.0, sparsity="auto").toarray().tolist() == [[12.0]]

    def trace(x):
        return hessian(lambda y: np.sum(y**3), sparsity=sparse.eye_array(2))(x).data.sum()

    assert jvp(trace, (np.array([1.0, 2.0]),), (np.ones(2),)) == pytest.approx((18.0, 12.0))
    with pytest.raises(TypeError, match=r"the pattern is of shape \(3, 3\)"):
        hessian(rosenbrock, X, sparsity=np.eye(3))
    pattern = pattern_of(grad(rosenbrock), (X,), 0)
    assert pattern.nnz == 16


@pytest.mark.parametrize("shape", [(3, 3), (2, 2), (1, 3), (4, 4), (3,)])
def test_a_pattern_of_another_shape_is_refused(shape):
    def f(x):
        return np.array([x[0] * x[1], x[2] ** 2])

    with pytest.raises(TypeError, match="the pattern is of shape"):
        jacobian(f, np.ones(3), sparsity=np.ones(shape))


def test_what_is_refused():
    with pytest.raises(ValueError, match="sparsity is 'auto' or a matrix"):
        jacobian(band, X, sparsity="yes")
    with pytest.raises(TypeError, match="a pattern may be given for one argument"):
        jacobian(lambda x, y: x * y, X, X, sparsity=np.eye(6))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.interp(x, [0.0, 1.0], [0.0, 2.0]) * x,
        lambda x: np.gradient(x * x),
        lambda x: np.cross(x[:3], x[2:5]),
        lambda x: np.moveaxis(x, x.ndim - 1, -1) * x,
    ],
)
def test_bodies_that_tell_a_derivative_tell_the_pattern(f):
    dense = jacobian(f, X)[0]
    assert np.any(dense)
    np.testing.assert_allclose(jacobian(f, X, sparsity="auto")[0].toarray(), dense)


def test_complex_results_of_real_arguments_keep_their_imaginary_parts():
    (found,) = jacobian(lambda x: np.array([np.sum(x) * (1 + 2j)]), np.ones(3), sparsity="auto")
    assert found.toarray().tolist() == [[1 + 2j] * 3]
