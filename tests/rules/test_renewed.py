"""Writes to arrays that nobody else holds: new arrays in their place, by value."""

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.rules.renewed import with_item
from morula.testing import check_rrule
from tests.mutation import check_mutation

X = np.array([[0.7, 0.3, 0.9], [1.4, 2.6, 1.3], [0.9, 1.2, 2.2]])


def softmax(x):
    w = np.exp(x - x.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    return (w * x).sum()


def read_before(x):
    w = np.exp(x)
    b = w[0].sum()
    c = w[1:].T @ x[1:]
    w += x * b
    return (w * b).sum() + c.sum()


def accumulated(x):
    acc = np.zeros((3, 3))
    for i in range(4):
        acc += x * i
        acc *= x
    return acc.sum()


def momentum(x):
    v, p = np.zeros(3), np.ones(3)
    for _ in range(3):
        v *= 0.9
        v -= 0.1 * x @ p
        p += v
    return (p**2).sum()


def handed_over(x):
    u = x * 1.0
    for _ in range(3):
        v = u.copy()
        v += x * u
        u = v
    return (u * u).sum()


def by_a_condition(x):
    w = np.exp(x)
    if x[0, 0] > 0:
        w += x[1]
    return (w * x).sum()


def returned(x):
    def centred(y):
        w = y * 2.0
        w -= y.mean()
        return w

    h = centred(x)
    h *= h
    return h.sum()


def masked(x):
    w = np.exp(x)
    w[x < 1] = 0.0
    return (w * x).sum()


def on_the_diagonal(x):
    k = x @ x.T
    k[np.diag_indices(3)] += x[0, 0] ** 2
    return np.log(np.linalg.det(k))


def rows_and_entries(x):
    w = np.tanh(x)
    w[0] = x[1] * 2.0
    w[:, 1] = 3.0
    w[2, 2] = x[0, 0]
    w[[0, 0, 1]] = x
    return (w * w * x).sum()


def column(x):
    w = x.sum(axis=1, keepdims=True) * 1.0
    w += x[:, :1]
    return (w * w).sum()


RENEWED = [
    softmax, read_before, accumulated, momentum, handed_over, by_a_condition, returned, masked,
    on_the_diagonal, rows_and_entries, column,
]  # fmt: skip


@pytest.mark.parametrize("f", RENEWED)
def test_the_program_is_one_by_value(f):
    check_mutation(f, X.copy())
    program = str(morula.code_adjoint(f, X))
    assert program.startswith("# specialised")
    assert "call_from_program" not in program


def same_array(x):
    w = np.exp(x)
    b = w
    w += x
    return (w * b).sum()


def part_read_later(x):
    w = np.exp(x)
    b = w[0]
    w += x
    return (w * b).sum()


def part_written(x):
    w = np.exp(x)
    b = w[0]
    b += x[1]
    return (w * x).sum()


def held_by_a_list(x):
    w = np.exp(x)
    held = [w]
    w += x
    return (held[0] * w).sum()


def held_by_a_tuple(x):
    w = np.exp(x)
    held = (w, x)
    w *= x
    return (held[0] * held[1]).sum()


def held_by_a_function(x):
    w = np.exp(x)

    def read():
        return w.sum()

    w += x
    w[0] = x[1]
    return read() + w.sum()


def exchanged(x):
    u, v = x * 1.0, x * 2.0
    for _ in range(3):
        u += v
        u, v = v, u
    return (u * v).sum()


def kept_over_the_loop(x):
    u = x * 1.0
    last = u
    for _ in range(2):
        last = u
        u += x
    return (u * last).sum()


def written_on_one_way(x):
    w = np.exp(x)
    if x[0, 0] > 0:
        w[0] = x[1]
    return (w * x).sum()


def joined(x):
    a, b = np.exp(x), np.sin(x)
    c = a if x[0, 0] > 0 else b
    c += x
    return (a * b).sum()


def an_argument(x):
    y = x * x
    x += 1.0
    return (x * y).sum()


def read_by_out(x):
    w = np.exp(x)
    np.multiply(x, 2.0, out=w)
    w += x
    return (w * x).sum()


def no_difference(x):
    w = x * 1.0
    d = np.diff(w, n=0)  # the array itself
    d += 1.0
    return (w * x).sum()


def a_view_as_operand(x):
    w = np.exp(x)
    w += w.T
    w -= w[0]
    return (w * x).sum()


def by_methods(x):
    w = np.exp(x)
    y = w * w
    w.__iadd__(x)
    w.__setitem__(0, x[1])
    np.ndarray.__imul__(w, x)
    return (w * x).sum() + y.sum()


def appended(x):
    y, seen = x[0].copy(), []
    for _ in range(3):
        y *= x[1]
        seen.append(y)
    return sum([a.sum() for a in seen])


def in_a_list_of_the_same(x):
    y = x[0].copy()
    same = [y for _ in range(2)]
    y *= x[1]
    return same[0].sum()


KEPT = []


@morula.non_differentiable
def keep(w):
    KEPT.append(w)


def kept_by_a_function(x):
    KEPT.clear()
    w = np.exp(x)
    keep(w)
    w += x
    return (w * x).sum() + float(np.allclose(KEPT[0], w))


@pytest.mark.parametrize(
    "f",
    [same_array, part_read_later, part_written, held_by_a_list, held_by_a_tuple, held_by_a_function,
     exchanged, kept_over_the_loop, no_difference, written_on_one_way, joined, an_argument, read_by_out,
     a_view_as_operand, by_methods, appended, in_a_list_of_the_same, kept_by_a_function],
)  # fmt: skip
def test_arrays_that_others_hold_are_written_to(f):
    check_mutation(f, X.copy())


def in_the_order_of_columns(x):
    w = np.exp(x.T)
    w += x
    w[0] = x[1]
    return w.ravel("K")[1] * 2.0 + w.sum()


def made_of_columns(x):
    w = np.asfortranarray(np.exp(x))
    w *= x * x
    return w.reshape(-1, order="A")[1] + w.sum()


def in_another_order_of_axes(x):
    w = np.exp(np.transpose(np.stack([x, x * 2.0]), (1, 2, 0)))
    w += x[:, :, None]
    w *= np.ones((3, 2))
    return w.ravel("K")[1] * 2.0 + w.ravel("K")[3] ** 2


def rows_or_columns(x):
    w = np.exp(x)
    if x[0, 0] > 0:
        w = np.exp(x.T)
    w += x
    return w.ravel("K")[1]


def turned_in_a_loop(x):
    w = np.zeros((3, 3))
    for _ in range(3):
        w += x.T
        w *= x
        w = w.T
    return w.ravel("K")[1] + w[0, 1]


@pytest.mark.parametrize(
    "f",
    [in_the_order_of_columns, made_of_columns, in_another_order_of_axes, rows_or_columns,
     turned_in_a_loop],
)  # fmt: skip
def test_a_new_array_is_laid_out_as_the_one_written_to(f):
    check_mutation(f, X.copy())
    columns = np.asfortranarray(X)
    value, found = morula.value_and_grad(f)(columns)
    assert value == f(columns.copy("K"))
    with by_the_general_path():
        np.testing.assert_allclose(found, morula.grad(f)(columns))


@pytest.mark.parametrize("f", [in_the_order_of_columns, made_of_columns, turned_in_a_loop])
def test_layouts_in_derivatives_of_derivatives(f):
    v = np.arange(9.0).reshape(3, 3)
    expected = morula.jvp(lambda x: morula.gradient(f, x)[0], (X,), (v,))[1]
    np.testing.assert_allclose(morula.hvp(f, X, v), expected)
    twice = morula.grad(lambda x: np.vdot(morula.grad(f)(x), v))(X)
    np.testing.assert_allclose(twice, expected)


def test_a_result_that_has_no_room_is_an_error():
    def f(x):
        w = x.sum(axis=1, keepdims=True) * 1.0
        w += x
        return w.sum()

    with pytest.raises(ValueError, match="non-broadcastable output"):
        f(X.copy())
    with pytest.raises(ValueError, match="non-broadcastable output"):
        morula.grad(f)(X)


def test_what_is_overwritten_has_a_structural_zero():
    def f(x):
        w = np.log(x)
        w[0] = 0.0
        w += 1.0
        return w.sum()

    x = X.copy()
    x[0] = 0.0
    with np.errstate(divide="ignore"):
        found = morula.grad(f)(x)
    assert found[0].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(found[1:], 1 / x[1:])


def test_single_precision_stays():
    def f(x):
        w = np.exp(x)
        w *= 2.0
        w /= np.float32(3)
        return w.sum()

    x = X.astype(np.float32)
    found = morula.grad(f)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 2 / 3 * np.exp(X), rtol=1e-6)


INDICES = [0, (0, 1), slice(1, None), (slice(None), 2), np.array([0, 2]), X < 1, [1, 1, 0]]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_the_rule_of_a_copy_with_an_item(index):
    check_rrule(with_item, X, index, 2.5)
    check_rrule(with_item, X, index, X[index] * 2.0)
