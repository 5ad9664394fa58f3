"""Lists and tuples that one call reads where they are written down, compiled and generally."""

import math

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.testing import check_gradient

X = np.array([0.5, 1.2, 2.0, 0.7, 1.1])

PROGRAMS = {
    "stack": lambda x: (np.stack([x, x**2]) * np.stack([x, x], axis=0)).sum(),
    "stack of three": lambda x: np.prod(np.stack([x, x**2, x + 1], axis=1)),
    "concatenate": lambda x: (np.concatenate([x, x[:2]]) ** 2).sum(),
    "hstack": lambda x: np.cumsum(np.hstack([x, 2.0, x[0]])).sum(),
    "vstack": lambda x: np.linalg.norm(np.vstack([x, x * x])),
    "column_stack": lambda x: (np.column_stack([x, x**3])[:, 1]).sum(),
    "array": lambda x: (np.array([x[0], x[1] * 2, 3.0]) ** 2).sum(),
    "array of lists": lambda x: np.linalg.det(np.array([[x[0], x[1]], [x[2], x[3] * x[0]]])),
    "array of lists and tuples": lambda x: (np.array([(x[0], 1.0), [2.0, x[1]]]) ** 3).sum(),
    "array with a dtype": lambda x: np.array([x[0], x[1], 1], dtype=float).prod(),
    "array of arrays": lambda x: np.array([x, x * x]).sum(axis=0) @ x,
    "asarray": lambda x: np.asarray([x[0] * x[1], x[2]]).sum(),
    "constant array": lambda x: (np.array([1.0, 2.0, 3.0, 4.0, 5.0]) * x * x).sum(),
    "list as an index": lambda x: (x[[0, 2, 2]] ** 2).sum(),
    "short list as an index": lambda x: (x[[1, -1]] ** 2).sum(),
    "list of truth values": lambda x: (x[[True, False, True, False, True]] ** 2).sum(),
    "max of a list": lambda x: max([x[0] * 3, x[1]]) * x[2],
    "min of a tuple": lambda x: min((x[0] * 3, x[1], x[2])) * x[2],
    "max of one": lambda x: max([x[0] * 3]) * x[2],
    "max of two": lambda x: max(x[0], x[1]) + max(x[2] * 2, x[1]) * min(x[0], 0.2),
    "sum of a list": lambda x: sum([x[0] * 3, x[1], x[2] * x[2]]),
    "np.sum of a list": lambda x: np.sum([x[0] * 3, x[1], x[2] * x[2]]),
    "np.mean of a list": lambda x: np.mean([x[0] * 3, x[1], x[2] * x[2]]),
    "ufunc of a list": lambda x: np.exp([x[0], x[1]]).sum(),
    "dot of lists": lambda x: np.dot([x[0], x[1]], [x[2], 2.0]),
    "multi_dot": lambda x: np.linalg.multi_dot([np.outer(x, x), np.diag(x), x]).sum(),
    "constants of modules": lambda x: np.sum(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)) * math.pi,
    "length of a text": lambda x: x[0] * len(f"{x[1]:.3f}") * x[2],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    f = PROGRAMS[name]
    check_gradient(f, X)
    with compiled.by_the_general_path():
        general = morula.grad(f)(X)
    np.testing.assert_allclose(morula.grad(f)(X), general, rtol=1e-12)


def collected(x):
    squares = []
    for v in x:
        squares.append(v * v)
    return squares


READERS = [np.array, np.asarray, np.sum, np.mean, sum, max, min]


@pytest.mark.parametrize("read", READERS)
def test_lists_that_grow(read):
    def f(x):
        y = read(collected(x))
        return (y * y * x[0]).sum()

    def of_floats(x):
        y = read([v * 2.0 for v in x])
        return np.sum(y * y) * x[0]

    check_gradient(f, X)
    check_gradient(of_floats, X.tolist())


@pytest.mark.parametrize("read", [np.array, np.sum, sum])
def test_empty_lists(read):
    def f(x):
        return np.sum(read(collected(x))) + x.sum()

    assert morula.grad(f)(np.zeros(0)).shape == (0,)


def test_a_list_that_others_read_stays_a_list():
    def f(x):
        rows = [x[0], x[1] * 2]
        a = np.array(rows)
        rows.append(x[2])
        return a.sum() * len(rows) + sum(rows)

    check_gradient(f, X)


def test_records_are_made_of_tuples_only():
    def f(x):
        records = np.array([(1, 2.0)], dtype=[("n", int), ("v", float)])
        return records["v"][0] * x[0]

    assert morula.grad(f)(X)[0] == 2.0


@pytest.mark.parametrize("keepdims", [False, True])
def test_a_truth_value_that_decides_a_type(keepdims):
    def f(x):
        return (np.mean(np.outer(x, x), axis=1, keepdims=keepdims) * x).sum()

    check_gradient(f, X)
