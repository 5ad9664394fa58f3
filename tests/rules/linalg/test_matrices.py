"""solve, inv, det, slogdet, matrix_power, products and tensors against differences."""

import numpy as np
import pytest

from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw, regular

DTYPES = ["f8", "c16", "f4"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shapes",
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3,)), ((2, 3, 3), (2, 3, 4)),
     ((3, 3), (2, 3, 1))],
)  # fmt: skip
def test_solve(rng, dtype, shapes):
    order = {"order": 2} if dtype == "f8" else {}
    check_rrule(
        np.linalg.solve, regular(rng, shapes[0], dtype), draw(rng, shapes[1], dtype), **order
    )
    check_rrule(np.linalg.solve, regular(rng, shapes[0], "f8"), draw(rng, shapes[1], dtype))


@pytest.mark.parametrize("fn", [np.linalg.inv, np.linalg.det, np.linalg.slogdet])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (1, 1), (0, 2, 2)])
def test_inverse_and_determinant(rng, fn, dtype, shape):
    check_rrule(fn, regular(rng, shape, dtype), order=2 if dtype == "f8" else 1)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_determinant_of_singular_matrices(rng, dtype):
    check_rrule(np.linalg.det, np.zeros((3, 3), dtype))
    check_rrule(np.linalg.det, np.array([[1.0, 2], [2, 4]]).astype(dtype))
    check_rrule(
        np.linalg.det, np.stack([np.eye(3, dtype=dtype), np.diag([1.0, 2, 0]).astype(dtype)])
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, -1, -3])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_matrix_power(rng, n, dtype):
    check_rrule(np.linalg.matrix_power, regular(rng, (3, 3), dtype), n)
    check_rrule(np.linalg.matrix_power, regular(rng, (2, 3, 3), dtype), n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3, 4)), ((2, 3), (3, 4), (4, 2)), ((3,), (3, 2), (2, 4), (4,)), ((3,), (3, 2)),
     ((2, 3), (3,)), ((0, 3), (3, 2), (2, 2))],
)  # fmt: skip
def test_multi_dot(rng, dtype, shapes):
    factors = [draw(rng, s, dtype) for s in shapes]
    check_rrule(np.linalg.multi_dot, factors)
    check_rrule(np.linalg.multi_dot, tuple(factors), order=2 if dtype == "f8" else 1)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_tensors(rng, dtype):
    a = draw(rng, (2, 3, 6), dtype)
    check_rrule(np.linalg.tensorsolve, a, draw(rng, (2, 3), dtype))
    moved = np.moveaxis(a, 2, 1)
    check_rrule(np.linalg.tensorsolve, moved, draw(rng, (2, 3), dtype), axes=(1,))
    check_rrule(np.linalg.tensorsolve, a, draw(rng, (2, 3), "f8"), order=2)
    check_rrule(np.linalg.tensorinv, a, ind=2, order=2)
    check_rrule(np.linalg.tensorinv, draw(rng, (6, 3, 2), dtype), 1)


@pytest.mark.parametrize("fn", [np.linalg.inv, np.linalg.det])
def test_views_and_integers(rng, fn):
    check_rrule(fn, regular(rng, (6, 6), "f8")[::2, ::2].T)
    check_rrule(fn, np.array([[2, 1], [1, 3]]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_vectors(rng, dtype):
    check_rrule(np.linalg.vecdot, draw(rng, (2, 3), dtype), draw(rng, (2, 3), dtype), order=1)
    check_rrule(np.linalg.vecdot, draw(rng, (2, 3), dtype), draw(rng, (4, 2, 1), dtype), axis=-2)
    check_rrule(np.linalg.vecdot, draw(rng, 3, "f8"), draw(rng, 3, "f8"), order=2)
    check_rrule(np.linalg.outer, draw(rng, 2, dtype), draw(rng, 3, dtype))


def test_functions_that_are_written_in_python(rng):
    a, b = draw(rng, (2, 3, 3), "f8")
    for f in (
        lambda a, b: np.linalg.matmul(a, b)[0, 1],
        lambda a, b: np.linalg.tensordot(a, b, axes=1)[1, 0],
        lambda a, b: np.linalg.trace(a @ b),
        lambda a, b: np.linalg.diagonal(a @ b)[2],
        lambda a, b: np.linalg.matrix_transpose(a)[0, 2] * b[0, 0],
        lambda a, b: np.linalg.vector_norm(a * b),
        lambda a, b: np.linalg.vector_norm(a * b, axis=1, ord=3)[1],
        lambda a, b: np.linalg.matrix_norm(a @ b),
        lambda a, b: np.linalg.matrix_norm(a @ b, ord="nuc"),
        lambda a, b: np.linalg.slogdet(a @ b).logabsdet,
        lambda a, b: np.linalg.matrix_rank(a) * b[0, 0],
    ):
        check_gradient(f, a, b)


def test_nested_lists():
    a = [[2.0, 1.0], [0.5, 3.0]]
    for fn in (np.linalg.inv, np.linalg.det, np.linalg.eigvals, np.linalg.svd, np.linalg.qr):
        check_rrule(fn, a)
    check_rrule(np.linalg.solve, a, [1.0, 2.0])
    check_rrule(np.linalg.solve, np.array(a), (1.0, 2.0))
