"""Lists and tuples of numbers where arrays are expected, compiled and on the general path."""

import math

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.testing import check_gradient

X = np.array([0.5, 1.2, 2.0, 0.7, 1.1])

PROGRAMS = {
    "method dot": lambda x: x[:3].dot([1.0, 2.0, 3.0]) * x[0],
    "dot of a constant tuple": lambda x: np.dot(x[:2], (1, 2)) * x[1],
    "dot of a display": lambda x: x[:2].dot([x[2], x[3] * 2]),
    "product": lambda x: (x[:3] * [1.0, x[0], 3]).sum(),
    "from the left": lambda x: ((1.0, x[0], 3.0) - x[:3] ** 2).sum(),
    "matrix product": lambda x: x[:2] @ [[x[0], 2.0], [1.0, x[1]]] @ (1.0, 3.0),
    "quotient": lambda x: ([x[0], 1.0] / x[:2]).prod(),
    "norm": lambda x: np.linalg.norm([x[0], x[1] - 2.0, 1.0]),
    "norm of a difference": lambda x: np.linalg.norm(x[:2] - [3.0, 4.0]),
    "determinant": lambda x: np.linalg.det([[x[0], 1.0], (x[1], x[2])]),
    "solve": lambda x: np.linalg.solve([[x[0], 1.0], [0.5, x[2]]], (1.0, x[3])).sum(),
    "ufunc": lambda x: np.exp([x[0], 2.0]).sum() + np.arctan2((x[0], x[1]), x[2]).prod(),
    "list that grows": lambda x: x[:3].dot([v * v for v in x[:3]]),
    "mean": lambda x: np.mean([x[0], x[1] * x[2]]) * np.std((x[0], x[3])),
    "where": lambda x: np.where(x[:2] > 1, [x[0], 1.0], (2.0, x[4])).sum(),
    "arrays in a list": lambda x: np.sum([x, x**2]) * np.max([x[:2], x[2:4]]),
    "sort": lambda x: np.sort([x[2], x[0], x[1]])[1] * x[0],
    "items of arrays": lambda x: x[0].item() * x[1].item() + x.sum().item(),
    "rows": lambda x: np.array([[math.sin(v), v * v] for v in x])[:, 1].sum(),
    "rows of tuples": lambda x: (np.array([(v, i, 2.0 * v) for i, v in enumerate(x)]) ** 2).sum(),
    "determinant of rows": lambda x: np.linalg.det(np.array([[v, v**3] for v in x[:2]])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    f = PROGRAMS[name]
    assert str(morula.code_adjoint(f, X)).startswith("# specialised")
    check_gradient(f, X)
    with compiled.by_the_general_path():
        general = morula.grad(f)(X)
    np.testing.assert_allclose(morula.grad(f)(X), general, rtol=1e-12)


def test_a_gradient_by_the_items_of_a_list():
    def f(xs, w):
        return np.dot(w, xs) * np.linalg.norm(xs)

    check_gradient(f, [0.5, 1.5, -2.0], np.array([1.0, 2.0, 3.0]))
    check_gradient(f, (0.5, 1.5, -2.0), np.array([1.0, 2.0, 3.0]))


def test_no_rows_make_no_matrix():
    def f(x, n):
        rows = np.array([[v, 1.0] for v in x[:n]])
        return rows.sum() * rows.ndim + x[0]

    for n in (3, 0, 2, 0):
        np.testing.assert_allclose(
            morula.gradient(f, X, n)[0], [2.0 * (i < n) + (i == 0) for i in range(5)]
        )


def test_rows_of_several_lengths_are_refused_as_numpy_does():
    def f(x):
        return np.array([[v] * (i + 1) for i, v in enumerate(x)]).sum()

    with pytest.raises(ValueError, match="inhomogeneous"):
        morula.grad(f)(X)


def test_what_was_converted_is_as_it_was():
    def f(x):
        weights = [1.0, x[0]]
        y = x[:2].dot(weights)
        weights[0] = x[3]
        return y * weights[0] + x[:2].dot(weights)

    check_gradient(f, X)


class Scaled:
    """A number that says itself what `sum` and `dot` of it are."""

    def __init__(self, a):
        self.a = a

    def sum(self):
        self.a[0] *= 2.0
        return self.a[0]


def halved(x, of):
    y = x * 1.0
    holder = of(y)
    before = y[0] * y[1]
    return before + holder.sum() + y[0] * y[0]


def test_methods_of_the_users_classes_may_write_to_arrays():
    of = [Scaled]
    check_gradient(lambda x: halved(x, of[0]), X)
    check_gradient(lambda x: halved(x, lambda y: [Scaled(y)][0]), X)
    check_gradient(
        lambda x: halved(x, lambda y: type("S", (), {"sum": lambda s: y.fill(3.0) or 1.0})()), X
    )


OF_EVERY_KIND = {
    "product": lambda x: (x * [1.0, 2.0, 3.0]).sum(),
    "dot": lambda x: x.dot([1, 2, 3]),
    "dot from the left": lambda x: np.dot((1.0, 2.0, 3.0), x),
    "difference": lambda x: ((1.0, 2, 3) - x).prod(),
    "norm": lambda x: np.linalg.norm([x[0], x[1]]),
    "rows": lambda x: np.array([[v, v * v] for v in x])[:, 1].sum(),
    "rows of tuples": lambda x: (np.array([(v, 1.0) for v in x]) ** 2).sum(),
    "items": lambda x: x[0].item() * x[1].item(),
    "reduction": lambda x: np.add.reduce([x[0], x[1] * x[2]]),
    "sorted": lambda x: sorted(x.real)[0] * sorted(x.real)[1],
}


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128, np.int64])
@pytest.mark.parametrize("name", OF_EVERY_KIND)
def test_dtypes(name, dtype):
    def f(x):
        return abs(OF_EVERY_KIND[name](x)) ** 2

    x = np.array([3.0, 1.0, 2.0]).astype(dtype)
    if x.dtype.kind == "c":
        x = x + np.array([0.5, 1.0, -1.0], x.real.dtype) * dtype(1j)
    value, slope = morula.value_and_grad(f)(x)
    assert (value, type(value)) == (f(x), type(f(x)))
    with compiled.by_the_general_path():
        general_value, general = morula.value_and_grad(f)(x)
    assert (general_value, general.dtype) == (value, slope.dtype)
    np.testing.assert_allclose(slope, general, rtol=1e-6)
    y, back = morula.pullback(f, x)
    assert y == value
    for _ in range(2):
        np.testing.assert_allclose(back(2.0)[0], 2 * general, rtol=1e-6)


def test_nothing_to_convert():
    def f(x):
        return np.dot(x[:0], []) + (x[:0] * []).sum() + x.sum()

    assert morula.grad(f)(X).tolist() == [1.0] * 5
