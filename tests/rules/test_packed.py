"""array.array: constant where only constants were stored, refused where the gradient needs more."""

import array

import numpy as np
import pytest

from morula import DifferentiationError, gradient, jvp
from tests.mutation import check_mutation

X = np.array([0.3, -0.7, 1.2, 0.9])
V = np.array([1.0, 0.5, -2.0, 0.7])
TABLE = array.array("d", [1.0, 2.0, 3.0, 4.0])


def by_a_table(x):
    return (np.array(TABLE) * x).sum() + sum(TABLE) * x[0] * np.frombuffer(TABLE)[1]


def made_inside(x):
    a = array.array("d", [1.0])
    a.append(2.0)
    a.extend([3.0, 5.0])
    a.insert(0, 7.0)
    a[1] = a.pop() * 2
    a += array.array("d", a[:2])
    total = 0.0
    for i, v in enumerate(a):
        total += v * x[i % 4] ** 2
    return total + a.tolist()[2] * x[1]


def in_one_memory(x):
    a = array.array("d", [1.0, 2.0])
    y = np.asarray(a)
    p = y * x[:2]
    a[0] = 100.0
    return (p * p).sum() + y[0] * x[1]


def beside_writes(x):
    x[0] *= 2
    return sum(v * w for v, w in zip(TABLE, x, strict=True))


def whole_numbers(x):
    a = array.array("i", [1, 2])
    a[0] = 3
    b = bytearray(b"\x01\x02")
    b[0] = 2
    b.append(1)
    return x[a[0]] * a[1] + x[b[0]] * sum(b)


@pytest.mark.parametrize(
    "f", [by_a_table, made_inside, in_one_memory, beside_writes, whole_numbers]
)
def test_constants(f):
    check_mutation(f, X)
    expected = (f(X + 1e-6 * V) - f(X - 1e-6 * V)) / 2e-6
    np.testing.assert_allclose(jvp(f, (X.copy(),), (V,))[1], expected, rtol=1e-6)


def by_item(x):
    a = array.array("d", [0.0])
    a[0] = x[0]
    return a[0] * x[1]


def by_append(x):
    a = array.array("d")
    a.append(x[0] * x[1])
    return sum(a)


def by_extend(x):
    a = array.array("d", [1.0])
    a.extend(v * v for v in x)
    return np.array(a).sum()


def by_insert(x):
    a = array.array("d")
    a.fromlist([x[0], x[1]])
    a.insert(0, x[2])
    return a.tolist()[0]


def when_made(x):
    return np.array(array.array("d", x)).sum()


@pytest.mark.parametrize("f", [by_item, by_append, by_extend, by_insert, when_made])
def test_what_depends_on_arguments_is_refused_where_it_matters(f):
    with pytest.raises(DifferentiationError, match="test_packed"):
        gradient(f, X.copy())
    with pytest.raises(DifferentiationError, match="array"):
        jvp(f, (X.copy(),), (V,))


def test_what_does_not_matter_is_free():
    def f(x):
        seen = array.array("d")
        seen.append(x[0])
        return x[1] * 2 + len(seen)

    np.testing.assert_allclose(gradient(f, X)[0], [0, 2, 0, 0])
    assert gradient(lambda a, x: (np.array(a) * x).sum(), TABLE, X)[0] is None
