"""Products: vectors, matrices, stacks of them."""

import operator

import numpy as np
import pytest

from morula import grad, pullback
from morula.testing import check_rrule

MATMUL = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)),
    ((3,), (5, 3, 2)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)), ((1, 3), (3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
]  # fmt: skip


def draw(rng, shape, dtype="f8"):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x, dtype)


@pytest.mark.parametrize("fn", [operator.matmul, np.matmul])
@pytest.mark.parametrize("shapes", MATMUL)
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("c16", "f8"), ("f4", "f4"), ("f8", "c16")])
def test_matmul(rng, fn, shapes, dtypes):
    a, b = (draw(rng, s, d) for s, d in zip(shapes, dtypes, strict=True))
    check_rrule(fn, a, b, order=2 if dtypes == ("f8", "f8") else 1)


@pytest.mark.parametrize("fn", [np.dot, np.ndarray.dot])
@pytest.mark.parametrize(
    "shapes",
    [*MATMUL[:4], ((2, 3), (4, 3, 5)), ((2, 4, 3), (3,)), ((2, 4, 3), (3, 5)), ((3,), (2, 3, 4)),
     ((2, 4, 3), (2, 3, 5)), ((), (3,)), ((2, 3), ())],
)  # fmt: skip
def test_dot(rng, fn, shapes):
    for d in ("f8", "c16"):
        check_rrule(fn, draw(rng, shapes[0], d), draw(rng, shapes[1], d))


def test_dot_with_a_number(rng):
    check_rrule(np.dot, draw(rng, (2, 3)), 1.5)
    check_rrule(np.dot, 1.5, draw(rng, (2, 3)))
    check_rrule(np.dot, 1.5, 2.5)
    check_rrule(np.dot, draw(rng, (2, 3), "c16"), 0.5j)


@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("c16", "c16"), ("c16", "f8")])
def test_products_of_vectors(rng, dtypes):
    a, b = (draw(rng, (2, 3), d) for d in dtypes)
    check_rrule(np.vdot, a, b)
    check_rrule(np.vdot, a[0], b[1])
    check_rrule(np.outer, a, b[0])
    check_rrule(np.outer, a[0], b[0], order=2)
    check_rrule(np.inner, a, b)
    check_rrule(np.inner, a[0], b[0])
    check_rrule(np.inner, a, b[0])
    check_rrule(np.inner, a, 2.0)
    check_rrule(np.kron, a, b)
    check_rrule(np.kron, a[0], b)
    check_rrule(np.vecdot, a, b)
    check_rrule(np.vecdot, a, b[0])
    if hasattr(np, "matvec"):  # since NumPy 2.2
        check_rrule(np.matvec, a, b[0])
        check_rrule(np.matvec, a, np.stack([b[0], b[1]]))
        check_rrule(np.vecmat, a[:, 0], b)


@pytest.mark.parametrize(
    "axes", [1, 2, 0, ([1], [0]), ([0, 1], [1, 0]), ([1, 0], [0, 1]), (1, 0), ((-1, 0), (0, 1))]
)
def test_tensordot(rng, axes):
    a, b = draw(rng, (3, 3, 3), "c16"), draw(rng, (3, 3, 3))
    if axes == 2:
        a = a[:2]
    check_rrule(np.tensordot, a if axes == 2 or axes == 1 else a[0] if axes in (0,) else a, b, axes)
    check_rrule(np.tensordot, a[0], b, axes=0)


def test_tensordot_of_different_sizes(rng):
    a, b = draw(rng, (2, 3, 4)), draw(rng, (4, 5, 2))
    check_rrule(np.tensordot, a, b, axes=([2, 0], [0, 2]), order=2)
    check_rrule(np.tensordot, a, b, axes=([0], [2]))


def sorted_late(a, b):
    axes = [0, 2]
    swapped = [2, 0]
    axes.sort(reverse=True)
    swapped.reverse()
    return np.tensordot(a, b, (axes, swapped))


TENSORDOTS = {
    "lists": lambda a, b: np.tensordot(a, b, axes=([1, 2], [1, 0])),
    "lists, by position": lambda a, b: np.tensordot(a, b, ([2, 1], [0, 1])),
    "tuples": lambda a, b: np.tensordot(a, b, axes=((-2,), (1,))),
    "single axes": lambda a, b: np.tensordot(a, b, axes=(2, 0)),
    "a number": lambda a, b: np.tensordot(a, b, 1),
    "lists that change": sorted_late,
}


@pytest.mark.parametrize("fn", TENSORDOTS.values(), ids=TENSORDOTS.keys())
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("c16", "f8"), ("f4", "f4"), ("c16", "c16")])
def test_tensordot_in_programs(rng, fn, dtypes):
    a, b = draw(rng, (2, 3, 4), dtypes[0]), draw(rng, (4, 3, 2), dtypes[1])

    def f(a, b):
        return np.sum(np.abs(fn(a, b)) ** 2)

    f.__code__ = f.__code__.replace(co_name=str(fn))
    _, back = pullback(f, a, b)
    for x, x̄, expected in zip((a, b), grad(f, (0, 1))(a, b), back(1.0), strict=True):
        assert x̄.dtype == x.dtype
        np.testing.assert_allclose(x̄, expected, rtol=1e-4 if dtypes[0] == "f4" else 1e-10)
