"""Rules whose pullbacks read the memory of the cotangent they are given, in forward mode."""

import numpy as np
import pytest

from morula import grad, gradient, hvp, jvp, rrule
from morula.core.extend import by_the_general_path


def entries(ȳ):
    return np.array([c for c in ȳ.flat])


def by_an_iterator(ȳ):
    return np.array([float(c) for c in np.nditer(ȳ)])


def by_a_memoryview(ȳ):
    return np.array([c for c in memoryview(ȳ)])


def ruled(same):
    """x², with a rule whose pullback does `same` to its cotangent, which gives that again."""

    def square(x):
        return x**2

    @rrule(square)
    def _(x):
        def square_pullback(ȳ):
            return (2 * x * same(ȳ),)

        return x**2, square_pullback

    return square


@pytest.mark.parametrize("same", [entries, by_an_iterator, by_a_memoryview])
def test_the_tangent_is_that_of_the_value(same):
    square = ruled(same)
    x, v = np.array([1.0, 2.0]), np.array([0.5, -1.0])

    def f(x):
        return square(square(x)).sum()

    def check():
        np.testing.assert_allclose(jvp(square, (x,), (v,))[1], 2 * x * v)
        np.testing.assert_allclose(gradient(f, x)[0], 4 * x**3)
        np.testing.assert_allclose(hvp(f, x, v), 12 * x**2 * v)
        np.testing.assert_allclose(grad(lambda x: grad(f)(x) @ v)(x), 12 * x**2 * v)

    check()
    with by_the_general_path():
        check()
