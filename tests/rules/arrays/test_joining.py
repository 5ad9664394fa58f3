"""Arrays made of several: each rule against differences, and the pieces that programs make of it."""

import numpy as np
import pytest

from morula import grad, hvp
from morula.mixed_mode.jacobians import general_hvp, product_for
from morula.testing import check_gradient, check_rrule
from tests.core.test_orders import reasons

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
X = np.arange(24.0).reshape(2, 3, 4) / 7

JOINS = [np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack]


@pytest.mark.parametrize("fn", JOINS)
@pytest.mark.parametrize("x", [X[0, 0], X[0], X])
@pytest.mark.parametrize("kind", [list, tuple])
def test_joins(fn, x, kind):
    check_rrule(fn, kind([x, 2 * x, x + 1]))
    if fn in (np.concatenate, np.stack):
        check_rrule(fn, kind([x, 2 * x]), -1)
    if fn is np.concatenate:
        check_rrule(fn, kind([x, 2 * x]), axis=None)


def test_joins_of_different_things():
    check_rrule(np.concatenate, (X[0], X[0, :1]))
    check_rrule(np.hstack, [X[0, 0], 2.0, X[0, 1]])
    check_rrule(np.stack, (1.0, np.float64(2.0)))
    check_rrule(np.vstack, [X[0, 0], X[0]])
    check_rrule(np.column_stack, [X[0, :, 0], X[0]])
    check_rrule(np.concatenate, (X[0].astype("f4"), X[0] * 1j))
    check_rrule(np.concatenate, X)
    check_rrule(np.concatenate, X, axis=1)
    check_rrule(np.stack, X, axis=1)
    check_rrule(np.append, X, X[:1], 0)
    check_rrule(np.append, X, 3.0)


V = np.array([0.4, -0.3, 1.2])
A = np.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.1, 0.6, 1.8]])
INTEGERS = np.array([3, 1])

JOINED = {
    "vectors": lambda x: np.concatenate([x, x**2]),
    "three, one of them twice": lambda x: np.concatenate((x, x[:1] ** 2, x)),
    "rows": lambda x: np.concatenate([np.outer(x, x), x[None] ** 2]),
    "a matrix from outside": lambda x: np.concatenate([A * x, x[None] ** 2]),
    "columns": lambda x: np.concatenate([np.outer(x, x), x[:, None] ** 2], axis=1),
    "the last axis": lambda x: np.concatenate([np.outer(x, x), np.outer(x, 1 / x)], axis=-1),
    "flat": lambda x: np.concatenate([np.outer(x, x), x[None]], axis=None),
    "constants": lambda x: np.concatenate([[0.0], x, [1.0, 2.0]]),
    "nothing": lambda x: np.concatenate([[], x, np.zeros(0)]),
    "integers": lambda x: np.concatenate([INTEGERS, x, [1, 2]]),
    "lists of entries": lambda x: np.concatenate([[x[0], 1.0], x, (x[1] ** 2,)]),
    "an array of another dtype": lambda x: np.concatenate([x.astype(np.longdouble), x]),
    "complex numbers": lambda x: np.abs(np.concatenate([np.exp(1j * x), x**2, x])),
    "a mask": lambda x: np.concatenate([x[x > 0.35], x**2, x[x > 0.5]]),
    "a mask of columns": lambda x: np.concatenate(
        [np.outer(x, x), (np.outer(x, x))[:, x > 0.35]], axis=1
    ),
    "a stack": lambda x: np.stack([x, x**2]),
    "a stack of columns": lambda x: np.stack([x, x**2], axis=-1),
    "a stack of numbers": lambda x: np.stack([x[0], x[1] * x[2], 2.0]),
    "a stack of matrices": lambda x: np.stack([np.outer(x, x), np.outer(x, 1 / x), A], axis=1),
    "vstack": lambda x: np.vstack([x, x**2, np.outer(x, x)]),
    "hstack": lambda x: np.hstack([x[0] ** 2, x, 1.0]),
    "hstack of matrices": lambda x: np.hstack([np.outer(x, x), x[:, None]]),
    "dstack": lambda x: np.dstack([x, x**2]),
    "dstack of matrices": lambda x: np.dstack([np.outer(x, x), np.outer(x, 1 / x)]),
    "column_stack": lambda x: np.column_stack([x, np.outer(x, x)]),
    "append": lambda x: np.append(x, x**2),
    "append a number": lambda x: np.append(x, x[0] ** 2),
    "append rows": lambda x: np.append(np.outer(x, x), x[None] ** 2, axis=0),
    "append to a mask": lambda x: np.append(x[x > 0.35], x**2),
    "pieces that are not used": lambda x: np.concatenate([x, x**2, x**3])[3:6],
    "pieces that are multiplied by zero": lambda x: np.concatenate([x, 0.0 * x]),
    "branches not taken": lambda x: np.where(
        np.arange(6) < 3, np.concatenate([x, np.sqrt(x - x)]), 0.0
    ),
    "a shape of a branch": lambda x: np.concatenate([x, x**2] if x[0] < 9 else [x, [1.0]]),
}

# Those whose shapes or types are not known, or decided by a branch.
OTHERS = {"a mask of columns", "an array of another dtype", "a shape of a branch"}


@pytest.mark.parametrize("joined", JOINED.values(), ids=JOINED.keys())
def test_gradients_and_hessians_of_programs(joined):
    def f(x):
        y = joined(x)
        return np.sum(y**3 * np.cos(np.arange(y.size).reshape(y.shape)))

    x, h = np.array([0.3, 0.4, 0.6]), 1e-5
    check_gradient(f, x)
    found = hvp(f, x, V)
    np.testing.assert_allclose(found, general_hvp(f, x, V), rtol=1e-9, atol=1e-12)
    slopes = [grad(f)(x + d * V) for d in (h, -h)]
    np.testing.assert_allclose(found, (slopes[0] - slopes[1]) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in JOINED if name not in OTHERS])
def test_products_have_programs(name):
    joined = JOINED[name]

    def f(x):
        return np.sum(joined(x) ** 3)

    f.__code__ = f.__code__.replace(co_name=name)  # programs are kept per code object
    x = np.array([0.3, 0.4, 0.6])
    hvp(f, x, V)
    assert not reasons(product_for(f, x))


def test_integers_are_points_of_the_real_line():
    for joined in (np.concatenate, np.stack, np.hstack, np.vstack):
        found = grad(lambda x, joined=joined: np.sum(joined([x, x * 0.5, x]) ** 2))(INTEGERS)
        assert found.dtype == float
        assert found.tolist() == (4.5 * INTEGERS).tolist()


def test_gradients_keep_the_dtype_of_each_array():
    a, b = np.array([0.5, 2.0], np.float32), np.array([1.0])
    found = grad(lambda a, b: np.sum(np.concatenate([a, b, a * 1j]).real ** 2), (0, 1))(a, b)
    assert [x.dtype for x in found] == [np.float32, np.float64]
    assert [x.tolist() for x in found] == [[1.0, 4.0], [2.0]]


def test_gradients_share_no_memory():
    def f(a, b):
        return np.sum(np.concatenate([a, b]))

    ā, b̄ = grad(f, (0, 1))(np.ones(2), np.ones(2))
    ā[0] = 7
    assert b̄.tolist() == [1.0, 1.0]
    assert ā.flags.writeable
