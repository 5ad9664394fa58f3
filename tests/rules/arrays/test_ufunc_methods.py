"""np.add.reduce and the like, and ufuncs with keywords."""

import numpy as np
import pytest

from morula import gradient, jvp, pullback
from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_gradient, check_rrule

X = np.array([[1.3, -0.7, 2.1], [0.4, 5.3, -1.2]])
REDUCING = [np.add, np.multiply, np.maximum, np.minimum, np.logaddexp, np.hypot, np.fmax, np.fmin]


def gradients(fn, *args, ȳ=1.0, **kwargs):
    return apply_rule(find_rrule(fn, args, kwargs), args, kwargs)[1](ȳ)


@pytest.mark.parametrize("ufunc", REDUCING)
def test_reduce(ufunc):
    reduce = np.ufunc.reduce
    check_rrule(reduce, ufunc, X)
    check_rrule(reduce, ufunc, X, 1)
    if ufunc is not np.hypot:
        check_rrule(reduce, ufunc, X, axis=0, keepdims=True)
    if ufunc in (np.add, np.multiply, np.maximum, np.minimum):
        check_rrule(reduce, ufunc, X, None, initial=0.5)
        check_rrule(reduce, ufunc, X, None, initial=0.5, where=X > 0)
        check_rrule(reduce, ufunc, X, axis=(0, 1))


ONE_BY_ONE = [
    np.subtract, np.divide, np.power, np.arctan2, np.fmod, np.remainder, np.copysign, np.hypot,
    np.logaddexp, np.logaddexp2, np.fmax, np.fmin,
]  # fmt: skip


@pytest.mark.parametrize("ufunc", ONE_BY_ONE)
def test_entries_in_turn(ufunc):
    x = np.abs(X)
    if not np.allclose(ufunc.reduce(x, 1), ufunc.accumulate(x, 1)[:, -1]):
        pytest.skip("NumPy's own reduction is wrong on this processor, which has AVX-512")
    check_gradient(lambda x: (ufunc.reduce(x, 1) * [1.0, 2.0]).sum(), x)
    check_gradient(lambda x, a: (ufunc.reduce(x, initial=a) * [1.0, 2.0, 3.0]).sum(), x, 2.5)
    check_gradient(
        lambda x, a: ufunc.reduce(x, -1, initial=a, where=x > 1, keepdims=True).sum(), x, 2.5
    )
    check_gradient(lambda x: (ufunc.accumulate(x, -1) * X).sum(), x, order=2)


def test_outer_with_an_operand_that_has_no_influence():
    check_gradient(lambda x: (np.copysign.outer(x[0], x[1]) * X[:1]).sum(), X)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_accumulate(ufunc, axis):
    check_rrule(np.ufunc.accumulate, ufunc, X, axis)


@pytest.mark.parametrize(
    "ufunc", [np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.arctan2]
)
def test_outer(ufunc):
    check_rrule(np.ufunc.outer, ufunc, X, X[0] + 0.05)
    check_rrule(np.ufunc.outer, ufunc, X[0], 1.5)


def test_reduceat():
    check_rrule(np.ufunc.reduceat, np.add, X, [0, 2], 1)
    check_rrule(np.ufunc.reduceat, np.add, np.arange(8.0), np.array([0, 4, 1, 5]))


@pytest.mark.parametrize("ufunc", [np.logical_or, np.equal])
def test_constants(ufunc):
    x = X > 0
    assert not any(gradients(np.ufunc.reduce, ufunc, x, ȳ=np.ones(3)))


def test_what_has_no_rule_says_so_in_the_pullback():
    made = np.frompyfunc(float.__add__, 2, 1)
    with pytest.raises(NotImplementedError, match=r"\.reduce"):
        gradients(np.ufunc.reduce, made, X, ȳ=np.ones(3))
    with pytest.raises(NotImplementedError, match=r"\.accumulate"):
        gradients(np.ufunc.accumulate, made, X, ȳ=np.ones(X.shape))


def test_where_of_ufuncs():
    x = np.array([4.0, -1.0, 9.0])
    where = x > 0
    x̄ = gradients(np.ufunc.__call__, np.sqrt, x, where=where, ȳ=np.ones(3))[1]
    assert np.allclose(x̄, [0.25, 0, 1 / 6])
    ā, b̄ = gradients(np.ufunc.__call__, np.true_divide, X, np.zeros(3) + [1, 0, 2],
                     where=np.array([True, False, True]), ȳ=np.ones((2, 3)))[1:3]  # fmt: skip
    assert np.allclose(ā, [[1, 0, 0.5]] * 2)
    assert np.allclose(b̄, [-1.7, 0, -0.9 / 4])


def test_dtype_of_ufuncs():
    check_rrule(np.ufunc.__call__, np.exp, X.astype("f4"), dtype="f8")
    check_rrule(np.ufunc.__call__, np.add, X, 2.0, dtype="c16")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.true_divide(x, 2.0, casting="safe", out=None),
        lambda x: np.true_divide(x, 2.0, None, dtype=float),
        lambda x: np.true_divide(x, 2.0, out=(None,), casting="safe"),
        lambda x: np.true_divide(x, 2.0, out=...),
        lambda x: np.modf(x / 2.0, None, None)[0],
    ],
)
def test_no_array_to_write_to(f):
    x = np.array([0.3, 0.7])
    assert gradient(lambda x: f(x).sum(), x)[0].tolist() == [0.5, 0.5]
    assert pullback(f, x)[1](np.ones(2))[0].tolist() == [0.5, 0.5]
    assert jvp(f, (x,), (np.ones(2),))[1].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.multiply(x, 1.5, dtype=int, casting="unsafe"),
        lambda x: np.add(x, x, dtype=bool, casting="unsafe"),
        lambda x: np.add(x, x, dtype=int, casting="unsafe", where=[True, False, True]),
        lambda x: np.add(x, x, np.zeros(3, int), dtype=int, casting="unsafe"),
        lambda x: np.matmul(x, x, dtype=int, casting="unsafe"),
        lambda x: np.vecdot(x, x, dtype=int, casting="unsafe"),
        lambda x: np.add.reduceat(x, [0, 2], dtype=int),
        lambda x: np.multiply.reduceat(x, [0, 2], dtype=int),
        lambda x: np.maximum.reduce(x, dtype=int),
        lambda x: np.fmin.reduce(x, dtype=int),
        lambda x: np.maximum.accumulate(x, dtype=int),
        lambda x: np.add.accumulate(x, dtype=int),
        lambda x: np.nansum(x, dtype=int),
        lambda x: np.nancumsum(x, dtype=int),
        lambda x: np.var(x, dtype=int),
        lambda x: np.std(x, dtype=int),
        lambda x: np.logspace(x[0], x[1], 3, dtype=int),
        lambda x: np.geomspace(x[0], x[1], 3, dtype=int),
        lambda x: np.sum(np.arange(3), initial=x[1]),
        lambda x: np.prod(np.arange(1, 3), initial=x[1]),
        lambda x: np.nansum(np.arange(3), initial=x[1]),
        lambda x: np.max(np.arange(2), initial=x[1]),
        lambda x: np.fmax.reduce(np.arange(2), initial=x[1]),
    ],
)
def test_what_is_made_whole_on_the_way_carries_no_derivative(f, path):
    x = np.array([1.25, 2.75, 3.5])
    assert gradient(lambda x: 2.5 * np.sum(f(x)), x)[0].tolist() == [0, 0, 0]
    assert jvp(lambda x: 2.5 * np.sum(f(x)), (x,), (np.ones(3),))[1] == 0


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_operands_count_as_what_the_loop_converts_them_to(path):
    def f(x, n):
        return np.multiply(x, n, dtype=int, casting="unsafe").sum()

    x̄, n̄ = gradient(f, np.array([1.75, 2.5]), np.array([3, 4]))
    assert (x̄.tolist(), n̄.tolist()) == ([0, 0], [1, 2])
    z = np.array([1 + 2j, 3 - 1j])
    real = gradient(lambda z: np.multiply(z, z, dtype=float, casting="unsafe").sum(), z)[0]
    assert real.tolist() == [2, 6]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_products_of_real_parts(path):
    z = np.array([1 + 2j, 3 - 1j])
    assert gradient(lambda z: np.prod(z, dtype=float), z)[0].tolist() == [3, 1]
    assert gradient(lambda z: np.cumprod(z, dtype=float).sum(), z)[0].tolist() == [4, 1]
