"""memoryview, np.frombuffer and np.ndarray(buffer=): value, gradient, final state, both modes."""

import numpy as np
import pytest

from morula import NoRuleError, UnsupportedError, gradient, hvp, jvp
from tests.mutation import check_mutation

X = np.array([0.3, -0.7, 1.2, 0.9])
V = np.array([1.0, 0.5, -2.0, 0.7])


def entries_are_read(x):
    y = x * x
    m = memoryview(y)
    return m[0] * m[-1] * len(m)


def entries_are_written(x):
    m = memoryview(x)
    m[0] = m[1] * m[2]
    m[1:3] = memoryview(x)[2:]
    return (x * x).sum()


def a_part_of_a_part(x):
    m = memoryview(x)[1:][::2]
    x[1] *= 2
    m[1] = x[0]
    return m[0] * (x * x).sum()


def a_loop(x):
    total = 0.0
    for i, v in enumerate(memoryview(x * x)):
        total += v * v * i
    return total + sum(memoryview(x))


def a_list(x):
    a, b, *rest = memoryview(x * x).tolist()
    return a * b * sum(rest)


def as_arrays(x):
    m = memoryview(x)
    y, z, w = np.asarray(m), np.array(m), np.frombuffer(m, count=2, offset=8)
    y[0] = z[1] * 2
    w *= y[0]
    return (x * z).sum()


def made_in_a_buffer(x):
    y = np.ndarray((2, 2), buffer=x)
    z = np.ndarray((2,), float, x, 8, (16,))
    y[0] *= y[1]
    z += y[0]
    return (x * x).sum()


def made_by_new(x):
    y = np.ndarray.__new__(np.ndarray, (3, 2), float, x, 0, (8, 8))
    z = np.ndarray.__new__(np.ndarray, shape=(2,), buffer=x, strides=(16,))
    y[0] *= y[2]
    z += y[1]
    return (y[:, 1] * x[:3]).sum()


def taken_from_a_buffer(x):
    y = x * x
    z = np.frombuffer(y)
    y *= z[::-1]
    return (z * x).sum()


PROGRAMS = (
    entries_are_read,
    entries_are_written,
    a_part_of_a_part,
    a_loop,
    a_list,
    as_arrays,
    made_in_a_buffer,
    made_by_new,
    taken_from_a_buffer,
)


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    check_mutation(f, X)


@pytest.mark.parametrize("f", PROGRAMS)
def test_forward_mode_and_second_derivatives(f):
    h = 1e-5
    x = X.copy()
    y, ẏ = jvp(f, (x,), (V,))
    plain = X.copy()
    assert y == f(plain)
    assert x.tolist() == plain.tolist()
    np.testing.assert_allclose(ẏ, (f(X + h * V) - f(X - h * V)) / (2 * h), rtol=1e-6)
    ahead, behind = [gradient(f, X + s * V)[0] for s in (h, -h)]
    np.testing.assert_allclose(
        hvp(f, X.copy(), V), (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-7
    )


def test_short_and_complex_numbers():
    def f(z):
        m = memoryview(z)
        np.asarray(m)[0] = 2.0
        return float((np.asarray(m).real ** 2).sum())

    assert gradient(f, X.astype(np.float32))[0].dtype == np.float32
    found = gradient(f, X + 1j)[0]
    np.testing.assert_allclose(found, [0, -1.4, 2.4, 1.8])
    assert gradient(lambda x: np.asarray(memoryview(x)).sum(), np.zeros(0))[0].shape == (0,)


def test_errors_are_those_of_the_plain_call():
    def f(x):
        memoryview(x)[9] = 1.0
        return x.sum()

    with pytest.raises(IndexError) as plain:
        f(X.copy())
    with pytest.raises(IndexError) as found:
        gradient(f, X.copy())
    assert str(plain.value) == str(found.value)


def test_memory_of_something_else():
    table = memoryview(b"\x01\x02\x03\x00")
    np.testing.assert_allclose(gradient(lambda x: x[table[1]] * table[2], X)[0], [0, 0, 3, 0])

    def into_bytes(x):
        y = np.frombuffer(memoryview(bytearray(32)))
        y[:] = x
        return y.sum()

    with pytest.raises((UnsupportedError, NoRuleError)):
        gradient(into_bytes, X)
