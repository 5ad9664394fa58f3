"""Writes to arrays by arrays of indices and masks, np.put, putmask, fill_diagonal, in programs."""

import numpy as np
import pytest

from morula import code_adjoint, grad, gradient, hvp, jvp
from morula.core.extend import by_the_general_path
from tests.mutation import check_mutation

X = np.random.default_rng(0).normal(size=(6, 2)) + 2
W = 1.3
ROWS = np.array([0, 1, 0, 2, -1, 2])  # some of them twice
COLUMNS = np.array([1, 0, 1, 1, 0, 0])
CHOSEN = np.array([True, False, True, True])


def the_last_write_counts(x, w):
    y = np.zeros((4, 2))
    y[ROWS] = x * w
    return (y**3).sum()


def added_to_and_multiplied(x, w):
    y = np.zeros((4, 2))
    y[ROWS] += x
    y[ROWS] *= w
    return (y**3).sum()


def by_pairs_of_indices(x, w):
    y = np.ones((4, 2))
    y[ROWS, COLUMNS] = x[:, 0] * w
    return (y**2 * x[:4]).sum()


def one_number_to_many_places(x, w):
    y = np.ones((4, 2))
    y[ROWS, COLUMNS] = w
    y[ROWS[:2]] = x[1]
    return (y**2 * x[:4]).sum()


def read_by_indices_and_overwritten(x, w):
    y = x.copy()
    t = y[ROWS]
    y[ROWS] = np.sqrt(np.abs(t))
    z = y[ROWS[:3], 0]
    y[0] = 3.0
    return (z**2).sum() + y.sum() * w


def added_as_often_as_named(x, w):
    y = x.copy()
    np.add.at(y, (ROWS, COLUMNS), x[:, 1] * w)
    np.subtract.at(y, ROWS, x**2)
    return (y**2).sum()


def in_a_loop(x, w):
    y = np.zeros((4, 2))
    for k in range(3):
        y[ROWS[k : k + 3]] += x[k : k + 3] * w
        y[CHOSEN] *= w
    return (y**2).sum()


def behind_an_infinite_slope(x, w):
    y = np.zeros(6)
    y[ROWS] = np.sqrt(x[:, 0] ** 2)
    y[COLUMNS] += w
    return np.sqrt(y + 1).sum()


def masks_and_indices(x, w):
    y = np.zeros((4, 2))
    y[CHOSEN, 1] = w
    y[CHOSEN] += x[:3]
    y[CHOSEN] -= w
    return (y**2 * y[CHOSEN][0, 0]).sum()


def read_and_written_by_the_same_indices(x, w):
    y = np.full((4, 2), 2.0)
    y[ROWS] = x
    v = y[ROWS]
    y[ROWS] = v * v
    return (y * w).sum()


def indices_of_two_axes(x, w):
    y = np.zeros((4, 2))
    y[np.array([[0, 1], [1, 0]])] = x[0] * w
    y[:, np.array([1, 0])] += y[:, np.array([0, 0])]
    return (y**2).sum()


def lists_of_indices(x, w):
    y = x.copy()
    y[[0, 1, 0]] += w
    y[[2]] = x[0]
    y[[3, 4, 5], [0, 1, 1]] *= w
    y[[True, False, False, False, False, True], 0] = w
    return (y**2).sum()


def put_to_places(x, w):
    y = np.zeros(6)
    np.put(y, [3, 1, 1], w * x[0, 0])
    np.put(y, ROWS[:2], 3.0)
    np.put(y, [5, 0], x[1])
    return (y**2 * np.arange(1, 7)).sum()


def a_diagonal_filled(x, w):
    d = x @ x.T
    np.fill_diagonal(d, w)
    return (d**2).sum()


def diagonals_of_parts(x, w):
    d = np.zeros((4, 4))
    d += w
    np.fill_diagonal(d, x[:4, 0])
    np.fill_diagonal(d[:2, 1:3], 7.0)
    return (d**2).sum()


def diagonals_of_what_is_no_square(x, w):
    d, e = np.zeros((6, 2)), np.ones((2, 6))
    np.fill_diagonal(d, w)
    np.fill_diagonal(d, x[0])
    np.fill_diagonal(e, w)
    return (d**2).sum() + (e * x.T).sum()


def put_by_masks(x, w):
    d = x * 1.0
    np.putmask(d, d > 2, w)
    np.putmask(d, d < 1.5, x * x)
    return (d**2).sum()


def distances_in_a_loop(x, w):
    s = 0.0
    for _ in range(3):
        d = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + w)
        np.fill_diagonal(d, np.inf)
        s += np.exp(-d).sum()
    return s


PROGRAMS = [
    the_last_write_counts,
    added_to_and_multiplied,
    by_pairs_of_indices,
    one_number_to_many_places,
    read_by_indices_and_overwritten,
    added_as_often_as_named,
    in_a_loop,
    behind_an_infinite_slope,
    masks_and_indices,
    read_and_written_by_the_same_indices,
    indices_of_two_axes,
    lists_of_indices,
    put_to_places,
    a_diagonal_filled,
    diagonals_of_parts,
    diagonals_of_what_is_no_square,
    put_by_masks,
    distances_in_a_loop,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_writes_by_indices(f):
    code = code_adjoint(f, X, W)
    assert code.kind.startswith("specialised")
    assert not code.left
    gradients = check_mutation(f, X, W)
    with by_the_general_path():
        expected = gradient(f, X, W)
    for ours, general in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(ours, general, rtol=1e-13)


@pytest.mark.parametrize("f", PROGRAMS)
def test_tangents_and_second_derivatives_of_writes_by_indices(f):
    along, h = np.cos(X), 1e-5

    def slope(t):
        return np.vdot(grad(f)(X + t * along, W), along)

    expected = (slope(h) - slope(-h)) / (2 * h)
    assert jvp(f, (X, W), (along, 0.0))[1] == pytest.approx(slope(0.0))
    second = hvp(lambda x: f(x, W), X, along)
    assert np.vdot(second, along) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def adding_by_an_argument(x, rows):
    y = np.zeros((3, 2))
    np.add.at(y, rows, x)
    return (y**2).sum()


def adding_rows_by_an_argument(x, rows):
    y = np.zeros((3, 2))
    for i in range(len(rows)):
        y[rows[i]] += x[i]
    return (y**2).sum()


@pytest.mark.parametrize("f", [adding_by_an_argument, adding_rows_by_an_argument])
def test_an_array_of_indices_may_be_an_argument(f):
    rows = np.array([0, 1, 0, 1, 2, 2])
    code = code_adjoint(f, X, rows)
    assert code.kind.startswith("specialised")
    assert not code.left
    (x̄, r̄) = gradient(f, X, rows)
    totals = np.array([X[rows == i].sum(axis=0) for i in range(3)])
    np.testing.assert_allclose(x̄, 2 * totals[rows])
    assert r̄ is None or not np.any(r̄)


def writing_out_of_bounds(x):
    y = np.zeros(2)
    y[np.array([0, 5])] = x
    return y.sum()


def adding_what_does_not_fit(x):
    y = np.zeros(4)
    y[np.array([0, 1, 2])] += x
    return y.sum()


def putting_a_mask_of_another_shape(x):
    y = np.zeros(3)
    np.putmask(y, np.array([True, False]), x[0])
    return y.sum()


@pytest.mark.parametrize(
    "f", [writing_out_of_bounds, adding_what_does_not_fit, putting_a_mask_of_another_shape]
)
def test_what_numpy_refuses_is_refused(f):
    x = np.array([1.0, 2.0])
    with pytest.raises((IndexError, ValueError)) as plain:
        f(x)
    for run in (gradient, lambda f, x: jvp(f, (x,), (x,))):
        with pytest.raises(plain.type):
            run(f, x)


def test_structural_zeros_stay_where_nothing_was_picked():
    def f(x):
        y = np.zeros(3)
        y[np.array([0, 1])] = np.sqrt(x)
        return y[np.array([1, 1])].sum()

    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(grad(f)(np.array([0.0, 4.0])), [0.0, 0.5])


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
@pytest.mark.parametrize("value", [-2, 0.5, np.float64(0.7), [0.5, 3]])
@pytest.mark.parametrize("write", [np.putmask, np.place])
def test_values_that_are_converted_take_the_cotangents_of_what_was_there(write, value, dtype):
    """NumPy converts numbers and lists where it would not cast an array of them."""

    def f(x):
        y = x * x
        write(y, np.real(y) > 1.0, value)
        return np.real(y * np.arange(1, 5)).sum()

    x = np.array([0.5, -1.2, 1.5, 0.9], dtype)
    expected = np.array([0.5 * 2, 0, 0, 0.9 * 2 * 4])
    for g in (grad(f)(x), jvp_of_each(f, x)):
        assert g.dtype == dtype
        np.testing.assert_allclose(g, expected, rtol=1e-6)
    with by_the_general_path():
        np.testing.assert_allclose(grad(f)(x), expected, rtol=1e-6)


def jvp_of_each(f, x):
    return np.array([jvp(f, (x,), (e,))[1] for e in np.eye(len(x), dtype=x.dtype)], x.dtype)


@pytest.mark.parametrize("write", [np.putmask, np.place])
def test_arrays_that_would_lose_digits_are_refused_as_by_numpy(write):
    def f(x):
        y = x * x
        write(y, y > 1.0, np.array([0.5]))
        return y.sum()

    x = np.array([0.5, 1.5], np.float32)
    with pytest.raises(TypeError, match="Cannot cast"):
        f(x)
    with pytest.raises(TypeError, match="Cannot cast"):
        gradient(f, x)
