"""Arrays that are read entry by entry: their cotangents are put together from the entries."""

from contextlib import nullcontext

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.rules.gathering import pieced, vector
from morula.testing import check_gradient, check_rrule

V = np.array([0.7, -1.3, 1.9])
M = np.array([[0.5, -1.2], [1.1, 0.3]])


def rosenbrock(p):
    x, y, _ = p
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2


def determinant(m):
    (a, b), (c, d) = m
    return a * d - b * c


def entries_of_matrix(m):
    return m[0, 0] * m[1, -1] - m[0, 1] * m[-1, 0] + m[0, 0] ** 2


def lotka_volterra(t):
    y = np.array([1.0, 0.5])
    for _ in range(5):
        u, v = y
        y = y + 0.1 * np.array([t[0] * u - u * v, -v + t[1] * u * v])
    return y[0] * y[1] * t[2]


def by_matrices(t):
    y = np.array([1.0, 0.5])
    for _ in range(3):
        m = np.array([[t[0], y[0]], [1.0, t[1] * y[1]]])
        y = m @ y * 0.3 + np.array([0.0, t[2]])
    return (y * y).sum()


def twice_the_same(v):
    return v[0] * v[1] + v[-3] ** 2 + np.sin(v[0])


def entries_and_whole(v):
    w = v * v
    return w[0] * w[1] + (w * w).sum() + w[0]


def in_a_branch(v):
    w = v * 2.0
    y = w[0] * w[1]
    if y < 0:
        y = y * w[2] + w[1]
    return y


PROGRAMS = [
    (rosenbrock, V), (determinant, M), (entries_of_matrix, M), (lotka_volterra, V), (by_matrices, V),
    (twice_the_same, V), (entries_and_whole, V), (in_a_branch, V),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x"), PROGRAMS)
def test_what_is_put_together_is_the_sum(f, x):
    found = morula.grad(f)(x)
    second = morula.hessian(f)(x)
    with by_the_general_path():
        np.testing.assert_allclose(found, morula.grad(f)(x), rtol=1e-13)
        np.testing.assert_allclose(second, morula.hessian(f)(x), rtol=1e-12, atol=1e-13)
    check_gradient(f, x)
    check_gradient(lambda x: morula.grad(f)(x).sum(), x)


@pytest.mark.parametrize(("f", "x"), [(lotka_volterra, V), (by_matrices, V), (determinant, M)])
def test_no_zeros_are_written_for_entries(f, x):
    program = str(morula.code_adjoint(f, x))
    assert "call_from_program" not in program
    start = program.index("reversed") if "reversed" in program else 0
    loop = program[start : program.rindex("goto")] if start else program
    assert "scatter" not in loop
    assert "parts_like" not in program


def test_zeros_that_nothing_came_to_stay_structural():
    def f(v):
        w = np.sqrt(v)  # its slope is infinite in the last entry, which is not read
        return w[0] * w[1] + w[0]

    x = np.array([4.0, 9.0, 0.0])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(morula.grad(f)(x), [1.0, 1 / 3, 0.0])


def test_lengths_are_asked_for():
    def f(p):
        a, b = p
        return a * b

    assert morula.grad(f)(np.array([2.0, 3.0])).tolist() == [3.0, 2.0]
    with pytest.raises(ValueError, match="too many values to unpack"):
        morula.grad(f)(V)
    with pytest.raises(ValueError, match="not enough values to unpack"):
        morula.grad(f)(V[:1])


def test_the_rule_of_what_is_put_together():
    check_rrule(vector, 1.5, -2.0, 0.25)


def gates(a, h):
    """Parts of one array that are read by slices, which leave nothing out, or something."""
    n = len(h)
    total = 0.0
    for _ in range(2):
        s = np.tanh(a[:, : 3 * n] * h[0])
        i, f, o = s[:, :n], s[:, n : 2 * n], s[:, 2 * n :]
        total = total + np.sum(i * f) * np.sum(o * o) + np.sum(np.sqrt(s[:, 0] ** 2 + s[:, 1]))
        total = total + np.sum(s[[0, 0, 1]] * s[1]) + np.sum(s[s > 0.3])
    return total


def in_three(a):
    """An array in three parts."""
    s = 1 / (1 + np.exp(-a))
    i, f, o = s[:, :3], s[:, 3:6], s[:, 6:]
    return np.sum(o * (i - f))


def left_out(a):
    """Entries that nothing came to stay zeros, whatever their factor is."""
    y = np.sqrt(a)
    return np.sum(y[1:3]) + np.sum(y[2:] * y[3:4])


def test_parts_of_an_array_are_put_together_at_once():
    a, h = np.linspace(0.1, 0.9, 18).reshape(2, 9), np.array([0.5, 0.7, 0.2])
    program = str(morula.code_adjoint(in_three, a))
    assert program.count("gathering.pieced") == 1
    assert "indexing.scatter" not in program
    check_gradient(in_three, a)
    check_gradient(gates, a, h)
    x = np.array([0.0, 1.0, 4.0, 9.0])
    expected = [0.0, 0.5, 0.25 + 0.75, (2 + 3 + 3) / 6]
    for _ in range(2):
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(morula.grad(left_out)(x), expected)
    second = morula.hvp(lambda a: gates(a, h), a, a)
    with by_the_general_path():
        np.testing.assert_allclose(second, morula.hvp(lambda a: gates(a, h), a, a), rtol=1e-9)


def blocks(x):
    """Halves of rows, and a column: every entry is read once."""
    a = np.tanh(x)
    return np.sum(a[0, :2] * a[0, 2:]) + a[1:, 0] @ np.sin(a[1:, 1:].sum(1))


def blocks_not_all(x):
    a = np.tanh(x)
    return np.sum(a[0, :2] * a[0, 2:]) + a[2:, 0] @ np.sin(a[2:, 1:].sum(1))


def roots_of_blocks(x):
    """What was not chosen of the first half keeps its mark."""
    a = np.sqrt(np.abs(x) - 0.5)
    return np.sum(np.where(x[:, :2] > 1, a[:, :2], 0.0)) + np.sum(a[:, 2:] ** 2)


def test_parts_that_meet_every_entry_once_are_written_into_new_memory():
    x = np.linspace(1.1, 1.9, 12).reshape(3, 4)
    assert "gathering.pieced" in str(morula.code_adjoint(blocks, x))
    assert "gathering.pieced" not in str(morula.code_adjoint(blocks_not_all, x))
    for f in (blocks, blocks_not_all):
        check_gradient(f, x)
        check_gradient(lambda x, f=f: np.sum(morula.grad(f)(x) ** 2), x)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_parts_that_are_marked_stay_so():
    x = np.array([[0.5, 2.0, 1.5, 0.7]])
    assert "gathering.pieced" in str(morula.code_adjoint(roots_of_blocks, x))
    found = morula.grad(roots_of_blocks)(x)
    with by_the_general_path():
        np.testing.assert_array_equal(found, morula.grad(roots_of_blocks)(x))
    assert np.isfinite(found).all()


def rows(x, steps):
    """Rows of an array whose number of rows is known only when the program runs."""
    out = np.zeros((steps + 1, len(x)))
    out[0] = x
    for i in range(steps):
        y = out[i]
        out[i + 1] = y + 0.1 * np.sin(y[::-1]) * y[0]
    return (out[-1] ** 2).sum() + out[1, 2]


def test_rows_have_a_shape_that_is_known():
    program = str(morula.code_adjoint(rows, V, 3))
    loop = program[program.index("advance") : program.index("gradient_for")]
    assert "'shape'" not in loop
    check_gradient(lambda x: rows(x, 3), V)
    check_gradient(lambda x: morula.grad(rows)(x, 3).sum(), V)
    check_gradient(lambda x: rows(x, 2), np.array([1.0, 2.0, 3.0, 4.0]))


def test_pieces():
    check_rrule(
        pieced,
        (2, 3),
        (slice(None), 0),
        V[:2],
        (0, slice(1, None)),
        V[1:],
        (1, 1),
        0.3,
        (1, 2),
        0.4,
    )


def unread_row(x):
    b = np.zeros(1)
    b[:] = x * x[0]
    return (x * 2.0).sum()


def unread_entries(x):
    b = np.zeros((2, 2))
    b[0] = x * x[0] * x[1]
    return b[1].sum() + x[1] * x[1]


def slopes_of_what_is_not_taken(x):
    y = np.where(x > 9, np.sqrt(x[0]) * x, x)
    return y.sum() + y[0] * y[-1]


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (unread_row, [1.0], [2.0]),
        (unread_entries, [3.0, 2.0], [0.0, 4.0]),
        (slopes_of_what_is_not_taken, [0.0, 2.0], [3.0, 1.0]),
        (slopes_of_what_is_not_taken, [0.0], [1.0]),
    ],
)
def test_sums_of_structural_zeros_are_put_where_numbers_are_expected(f, x, expected, path):
    assert morula.gradient(f, np.array(x))[0].tolist() == expected


@pytest.mark.parametrize("path", ["compiled", "general"])
def test_whole_numbers_beside_others_are_points_of_the_real_line(path):
    def f(a, b):
        return (np.array([a, 1.0]) * np.array([b, 3.0])).sum()

    def g(a, b):
        return (np.array([[a, 1.0], [2.0, b]]) * np.array([1.0, 3.0])).sum()

    with by_the_general_path() if path == "general" else nullcontext():
        for _ in range(2):
            assert morula.gradient(f, 2, 5.0) == (5.0, 2.0)
            assert morula.gradient(f, 2, 5) == (5.0, 2.0)
            assert morula.gradient(g, 2, 5) == (1.0, 3.0)
            assert [type(x) for x in morula.gradient(g, 2, 5)] == [float, float]
