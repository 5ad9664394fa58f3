"""Forward mode of arrays that are made of lists and tuples, and of functions that take those."""

import numpy as np
import pytest

from morula import grad, gradient, hvp, jacobian, jvp, taylor
from morula.core.extend import by_the_general_path
from morula.mixed_mode import push

X = np.array([0.3, -0.7, 1.2, 0.9])
V = np.array([1.0, 0.5, -2.0, 0.7])


def numbers(x):
    return np.array([x[0], 2.0, x[1] * x[2], 3]) * x


def rows(x):
    return np.array([[x[0], x[1]], (x[2], 1.0)]) @ np.asarray([x[:2], x[2:] * x[0]])


def with_constants(x):
    return np.array([x * x, np.ones(4), [1.0, 2, x[3], x[0]]]).sum(axis=0)


def written_arrays(x):
    y = x * x
    parts = [y[:2], y[2:]]
    y[1] = x[0] * x[3]
    parts[1][0] *= 3
    z = np.array(parts)
    y *= 0
    return z


def a_list_that_grows(x):
    found = []
    for i in range(3):
        found.append(np.sum([x * i, x[::-1] * x], axis=0))
        found[-1][0] *= x[1]
    return np.array(found)


def functions(x):
    y = np.hypot([x[0], x[1]], [x[2], x[3]]) + np.mean([x[0], x[1] * x[2]])
    z = np.dot(x[:2], [x[2], x[3]]) * np.linalg.norm([x[0], x[1]]) * np.maximum([x[0], 0.1], x[1])
    return y * z * np.diff([x[0], x[1], x[2] * x[0]]) + np.cumsum((x[0], x[3]))


PROGRAMS = (numbers, rows, with_constants, written_arrays, a_list_that_grows, functions)


def slope(f, x, v, h=1e-5):
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


@pytest.mark.parametrize("f", PROGRAMS)
def test_all_that_differentiates_forwards(f):
    def loss(x):
        return np.sum(f(x) ** 2)

    with by_the_general_path():
        y, ẏ = jvp(f, (X.copy(),), (V,))
        columns = jacobian(f, X.copy(), mode="forward")[0]
        second = hvp(loss, X.copy(), V)
    assert y.tolist() == f(X.copy()).tolist()
    np.testing.assert_allclose(ẏ, slope(f, X, V), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(columns @ V, ẏ, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(second, slope(grad(loss), X, V), rtol=1e-6, atol=1e-8)
    series = taylor(lambda t: f(X + t * V), 0.0, 1)
    np.testing.assert_allclose(series[1], ẏ, rtol=1e-12, atol=1e-14)
    (reversed_,) = gradient(lambda v: np.sum(jvp(f, (X.copy(),), (v,))[1]), V)
    np.testing.assert_allclose(reversed_, columns.reshape(-1, 4).sum(axis=0), rtol=1e-12)


def test_other_numbers_than_floats():
    def f(x):
        return (
            np.array([3, 7]).sum() * np.array([x[0], 2], np.float32)[0] * np.array([True, x[1]])[1]
        )

    assert jvp(lambda a, b: np.array([a, b]).sum(), (2, 3), (1.0, 0.5))[1] == 1.5
    with by_the_general_path():
        y, ẏ = jvp(f, (X,), (V,))
        assert jvp(lambda a, b: np.array([a, b]).sum(), (2, 3), (1.0, 0.5))[1] == 1.5
    assert y == f(X)
    assert ẏ == pytest.approx(10 * (V[0] * X[1] + X[0] * V[1]), rel=1e-6)


def test_sequences_are_not_transposed(monkeypatch):
    """Which takes milliseconds for each of them."""

    def transposed(*args):
        raise AssertionError(args[1])

    monkeypatch.setattr(push, "transposed_call", transposed)
    with by_the_general_path():
        for f in (numbers, a_list_that_grows, functions):
            jvp(f, (X.copy(),), (V,))
