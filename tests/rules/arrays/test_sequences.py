"""Lists, tuples and single numbers where NumPy takes arrays."""

import operator

import numpy as np
import pytest

from morula.rules.arrays.sequences import BINARY, FIRST, OF_TWO, UNARY
from morula.testing import check_rrule

PAIR = [0.3, 0.7]


@pytest.mark.parametrize("fn", UNARY)
def test_functions_of_one_list(fn):
    if fn is np.sign:
        return
    check_rrule(fn, PAIR if fn is not np.arccosh else [1.3, 1.7])
    check_rrule(fn, ((0.3, 0.7), (0.2, 0.1)) if fn is not np.arccosh else (1.3, 1.7))


@pytest.mark.parametrize("fn", [*BINARY, *OF_TWO])
def test_functions_of_two_lists(fn):
    if fn is np.tensordot:
        check_rrule(fn, [PAIR, PAIR], [PAIR, PAIR], axes=2)
        return
    check_rrule(fn, PAIR, (0.45, 0.2))
    check_rrule(fn, PAIR, np.array([0.45, 0.2]))
    check_rrule(fn, np.array([0.45, 0.2]), PAIR)


@pytest.mark.parametrize(
    "fn",
    [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.matmul],
)
def test_operators_with_an_array(fn):
    check_rrule(fn, PAIR, np.array([0.45, 0.2]))
    check_rrule(fn, np.array([0.45, 0.2]), (0.3, 0.7))


ARGUMENTS = {
    np.reshape: ((4,),), np.expand_dims: (0,), np.repeat: (2,), np.tile: (2,), np.roll: (1,),
    np.take: (1,), np.clip: (0.1, 0.5), np.pad: (1,), np.quantile: (0.3,), np.percentile: (30.0,),
    np.nanquantile: (0.3,), np.nanpercentile: (30.0,), np.broadcast_to: ((2, 2, 2),),
}  # fmt: skip


@pytest.mark.parametrize("fn", FIRST)
def test_functions_of_a_matrix_as_a_list(fn):
    check_rrule(fn, [[0.3, 0.7], [0.2, 0.9]], *ARGUMENTS.get(fn, ()))


@pytest.mark.parametrize("fn", [np.sum, np.mean, np.max, np.ravel, np.cumsum])
@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.float32(2.0), 2 + 1j])
def test_functions_of_a_number(fn, x):
    if fn is not np.max or not isinstance(x, complex):
        check_rrule(fn, x)


@pytest.mark.parametrize("name", ["sum", "mean", "item", "ravel", "copy", "conj", "max"])
@pytest.mark.parametrize("x", [np.float64(2.0), np.float32(2.0)])
def test_methods_of_a_number(name, x):
    check_rrule(getattr(np.generic, name), x)


def test_where_with_lists():
    check_rrule(np.where, [True, False], PAIR, 2.0)
    check_rrule(np.where, [True, False], 2.0, PAIR)
    check_rrule(np.where, [True, False], PAIR, (0.1, 0.2))
