"""Arrays that loops read entry by entry, whose cotangents grow in place."""

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.testing import check_gradient

X = np.array([0.5, -1.2, 2.0, 0.7, 1.1])
Y = np.array([1.5, 0.2, -0.4, 0.9, 0.3])
A = np.outer(X, Y) + 1.0


def squares(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
    return s


def neighbours(x):
    s = 0.0
    i = 0
    while i < len(x) - 1:
        s += x[i] * x[i + 1] - x[-1]
        i += 1
    return s


def nested(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += np.sin(a[i, j]) * a[j, i]
    return s


def in_a_branch(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.6:
            s += x[i] ** 2
        elif i % 2:
            s -= x[i] * x[0]
    return s


def whole_and_by_entries(x):
    s = (x * x).sum()
    for i in range(len(x)):
        s += x[i] * np.cos(x).sum()
    return s * x[2] + np.exp(x).sum()


def of_an_intermediate(x):
    y = np.exp(x) * x
    s = 0.0
    for i in range(len(y)):
        s += y[i] * x[i] * y[0]
    return s + y.sum()


def windows(x):
    s = 0.0
    for i in range(len(x) - 2):
        s += np.prod(x[i : i + 3])
    return s


def fancy(x):
    s = 0.0
    for _ in range(3):
        s += (x[np.array([0, 0, 2])] * x[1]).sum()
    return s


def rows(a):
    s = 0.0
    for row in a:
        s += np.dot(row, row) * row[0]
    return s


def pairs(x):
    return sum([v * w for v, w in zip(x, x[::-1], strict=True)])


def counted(x):
    s = 0.0
    for i, v in enumerate(x):
        s += v**i
    return s


def recurrence(x):
    y = x[0]
    for v in x:
        y = np.tanh(y * v + x[1])
    return y


def two_loops(x):
    s = 0.0
    for v in x:
        s += v * v
    for i in range(len(x)):
        s = s * 0.9 + x[i] * s
    return s


ONE = [squares, neighbours, in_a_branch, whole_and_by_entries, of_an_intermediate, windows, fancy]
ONE += [pairs, counted, recurrence, two_loops]


OTHERS = [X[::-1], X.astype(np.float32), np.arange(1, 6)]


@pytest.mark.parametrize(
    ("f", "x"), [*[(f, X) for f in ONE], *[(f, x) for f in ONE[3:5] for x in OTHERS]]
)
def test_a_vector(f, x):
    gradient = morula.grad(f)
    first, again = gradient(x), gradient(x)
    with compiled.by_the_general_path():
        general = morula.grad(f)(x)
    assert first.dtype == general.dtype
    np.testing.assert_allclose(first, general, rtol=1e-5 if x.dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(first, again)
    assert not np.shares_memory(first, again)
    if x.dtype == float:
        check_gradient(f, x)


@pytest.mark.parametrize("f", [nested, rows])
def test_a_matrix(f):
    check_gradient(f, A)
    check_gradient(f, A.T)


def test_complex_entries():
    def f(z):
        s = 0.0
        for i in range(len(z)):
            s += abs(z[i]) ** 2 + (z[i] * z[0]).real
        return s

    check_gradient(f, X + 1j * Y)


def test_a_cotangent_that_two_arrays_share():
    """The sum x + y hands the same cotangent to both; each grows by entries of its own."""

    def f(x, y):
        z = x + y
        s = (z * z).sum()
        for i in range(len(x)):
            s += x[i] * 2.0 - y[i] * 3.0
        return s

    x̄, ȳ = morula.grad(f, (0, 1))(X, Y)
    np.testing.assert_allclose(x̄, 2 * (X + Y) + 2)
    np.testing.assert_allclose(ȳ, 2 * (X + Y) - 3)


def test_a_part_of_a_cotangent_that_is_read_as_well():
    """What is added by entries to the one cotangent must not show in the other."""

    def f(x):
        y = np.exp(x)
        z = y.reshape(-1)
        s = (z * X).sum()
        for i in range(len(y)):
            s += y[i] * z[i] + z[0]
        return s

    check_gradient(f, X)


def test_loops_in_loops_grow_one_sum():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            for j in range(i):
                s += x[i] * x[j]
            s *= x[i]
        return s

    check_gradient(f, X)


def kept_in_a_list(x):
    kept = []
    for i in range(len(x)):
        kept.append(x[i] * 2)
    return sum(kept) * kept[0]


def kept_in_lists(x):
    table = [[0.0] * 3 for _ in range(3)]
    for i in range(3):
        for j in range(3):
            table[i][j] = x[i] * x[j]
    return table[0][1] * table[1][2]


def kept_in_a_dict(x):
    kept = {}
    for i in range(3):
        kept[i] = x[i] * 2
    return kept[0] * kept[1]


def kept_in_an_object(x):
    class Total:
        value = 0.0

    total = Total()
    for i in range(3):
        total.value = total.value + x[i] ** 2
    return total.value * x[0]


def kept_in_a_cell(x):
    total = 0.0

    def add(v):
        nonlocal total
        total += v * v

    for i in range(3):
        add(x[i])
    return total


@pytest.mark.parametrize(
    "f", [kept_in_a_list, kept_in_lists, kept_in_a_dict, kept_in_an_object, kept_in_a_cell]
)
def test_entries_that_are_kept(f):
    check_gradient(f, X)


def test_empty_arrays():
    assert morula.grad(squares)(np.zeros(0)).shape == (0,)
    assert morula.grad(rows)(np.zeros((0, 3))).shape == (0, 3)


def test_second_derivatives():
    h = morula.hessian(squares, X)
    np.testing.assert_allclose(h, 2 * np.eye(5))
    np.testing.assert_allclose(
        morula.jacobian(morula.grad(neighbours), X)[0], morula.hessian(neighbours, X), atol=1e-12
    )
