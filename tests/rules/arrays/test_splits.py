"""Arrays that compiled programs split."""

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path

A = np.linspace(0.5, 3.0, 72).reshape(6, 12)
STACK = np.linspace(-1.0, 1.0, 72).reshape(2, 3, 12)


def weighted(parts):
    return sum([np.sum(part**2) * (i + 1) for i, part in enumerate(parts)])


def gates(x):
    i, f, g, o = np.split(A.T @ x[:6], 4)
    return np.sum(np.tanh(i) * f + g / (1 + o * o))


PROGRAMS = [
    gates,
    lambda x: np.sum(np.split(A * x, 3, axis=1)[1] ** 2),
    lambda x: np.sum(np.split(A * x, 3)[2] ** 2),
    lambda x: np.sum(np.split(STACK * x, 4, axis=2)[3] ** 2),
    lambda x: np.sum(np.split(STACK * x, 4, -1)[3] ** 2),
    lambda x: weighted(np.split(A * x, [2, 3, 9], axis=1)),
    lambda x: weighted(np.split(x, (5, 4))),
    lambda x: weighted(np.split(x, [-3, 40])),
    lambda x: weighted(np.array_split(x, 5)),
    lambda x: weighted(np.array_split(A * x, 4)),
    lambda x: weighted(np.hsplit(A * x, 3)),
    lambda x: weighted(np.hsplit(x, 3)),
    lambda x: weighted(np.vsplit(A * x, [1])),
    lambda x: weighted(np.dsplit(STACK * x, 2)),
    lambda x: weighted(np.split(x, indices_or_sections=2)),
    lambda x: weighted(np.split(STACK * x, 3, 1)),
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_splits(f):
    x, h = np.linspace(0.2, 1.3, 12), 1e-6
    assert "call_from_program" not in str(morula.code_adjoint(f, x))
    value, (found,) = morula.withgradient(f, x)
    assert value == f(x)
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(12)]
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-6)
    with by_the_general_path():
        np.testing.assert_allclose(morula.gradient(f, x)[0], found, rtol=1e-12)


@pytest.mark.parametrize("n", [5, 0])
def test_what_numpy_refuses(n):
    def f(x):
        return np.sum(np.split(x, n)[0])

    with pytest.raises((ValueError, ZeroDivisionError)) as plain:
        f(np.ones(12))
    with pytest.raises(type(plain.value), match=str(plain.value)):
        morula.gradient(f, np.ones(12))


def test_parts_that_are_written_to():
    """They are views: what is written into them is in the array."""

    def f(x):
        y = x * 2.0
        left, right = np.split(y, 2)
        left[:] = right * x[:6]
        return np.sum(y**2)

    x, h = np.linspace(0.2, 1.3, 12), 1e-6
    value, (found,) = morula.withgradient(f, x)
    assert value == f(x)
    differences = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(12)]
    np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-6)


def test_a_number_of_parts_that_changes():
    def f(x, n):
        return weighted(np.split(x, n))

    x = np.linspace(0.2, 1.3, 12)
    for n in (2, 3, 4):
        found = morula.gradient(f, x, n)[0]
        np.testing.assert_allclose(found, 2 * x * np.repeat(np.arange(1, n + 1), 12 // n))


def test_places_in_a_list_that_changes():
    def f(x, later):
        places = [3, 1]
        places.sort()
        if later:
            places.append(4)
        parts = np.split(x, places)
        return sum((k + 1) * np.sum(part**2) for k, part in enumerate(parts))

    x = np.arange(1.0, 6)
    assert morula.grad(f)(x, False).tolist() == [2.0, 8.0, 12.0, 24.0, 30.0]
    assert morula.grad(f)(x, True).tolist() == [2.0, 8.0, 12.0, 24.0, 40.0]
