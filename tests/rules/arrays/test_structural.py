"""Zeros of the branch not taken (T9 of the traps)."""

import operator

import numpy as np
import pytest

from morula import code_adjoint, grad, gradient, hessian, hvp, jvp, pullback, value_and_grad
from morula.core.extend import ZeroTangent, accumulate, find_rrule
from morula.core.registry import apply_rule
from morula.rules.arrays.structural import Selected, masked, selected
from morula.testing import check_gradient


def back(fn, *args, **kwargs):
    return apply_rule(find_rrule(fn, args, kwargs), args, kwargs)


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("x", [1.0, np.float64(1.0), np.array([1.0, -4.0])])
def test_square_root_in_the_branch_not_taken(x):
    minus, minus_back = -x, lambda ȳ: (-ȳ,)
    root, root_back = back(np.sqrt, minus)
    _, where_back = back(np.where, x >= 0, x, root)
    _, a, b = where_back(np.ones(np.shape(x)))
    if b is ZeroTangent():
        assert a == 1
    else:
        x̄ = accumulate(a, minus_back(root_back(b)[0])[0])
        assert np.array_equal(x̄, [1.0, -0.25])


def test_square_root_at_zero():
    x = np.array([0.0, 4.0])
    root, root_back = back(np.sqrt, x)
    _, where_back = back(np.where, x < 1, x, root)
    _, a, b = where_back(np.ones(2))
    assert np.array_equal(accumulate(a, root_back(b)[0]), [1.0, 0.25])


def test_boolean_mask():
    d = np.array([0.0, 1.0])
    root, root_back = back(operator.pow, d, 0.5)
    _, item_back = back(operator.getitem, root, d > 0)
    assert np.array_equal(root_back(item_back(np.ones(1))[0])[0], [0.0, 0.5])


def test_nanmean_of_a_square():
    x = np.array([1.0, np.nan, 3.0])
    square, square_back = back(operator.pow, x, 2)
    _, mean_back = back(np.nanmean, square)
    assert np.array_equal(square_back(mean_back(1.0)[0])[0], [1.0, 0.0, 3.0])


def test_minimum_of_an_infinite_number():
    _, low_back = back(np.minimum, 1.0, np.float64(np.inf))
    assert low_back(1.0)[1] is ZeroTangent()


def test_a_numerical_zero_is_not_structural():
    x = np.array([0.0])
    root, root_back = back(np.sqrt, x)
    _, square_back = back(operator.pow, root, 2)
    assert np.isnan(root_back(square_back(np.ones(1))[0])[0])


def test_arithmetic_of_marked_cotangents():
    x̄ = selected(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]))
    inf = np.array([2.0, np.inf, 2.0])
    assert type(x̄ * inf) is Selected
    assert (x̄ * inf).tolist() == [2, 0, 6]
    assert (inf * x̄).tolist() == [2, 0, 6]
    assert (x̄ / np.array([1.0, 0.0, 1.0])).tolist() == [1, 0, 3]
    assert (-x̄ * inf).tolist() == [-2, 0, -6]
    assert type(x̄ + inf) is np.ndarray
    assert (x̄ + inf).tolist() == [3, np.inf, 5]
    both = x̄ + selected(np.ones(3), np.array([False, False, True]))
    assert (both * inf).tolist() == [2, 0, 8]
    assert (x̄.reshape(3, 1) * inf[:, None]).tolist() == [[2], [0], [6]]
    assert (x̄[::-1] * inf).tolist()[1] == 0
    assert type(np.sum(x̄)) is np.float64
    assert type(np.dot(x̄, x̄)) is np.float64


def test_in_place_addition_forgets_the_mark():
    x̄ = selected(np.ones(2), np.array([True, False]))
    x̄ += np.ones(2)
    assert (x̄ * np.array([1.0, 3.0])).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("n", [4, 5000])
def test_masked(n):
    mask = np.arange(n) % 2 == 0
    x̄ = np.ones(n)
    assert masked(x̄, mask).sum() == n / 2
    x̄[1] = np.inf
    assert masked(x̄, mask).sum() == n / 2
    assert masked(x̄.astype("f4"), mask).dtype == np.float32


MOVES = [
    lambda r: r[::-1],
    lambda r: r[None],
    lambda r: r[np.array([0, 1, 2])],
    lambda r: r[[0, 1, 1]],
    lambda r: r[...],
    lambda r: np.flip(r),
    lambda r: np.roll(r, 1),
    lambda r: np.squeeze(r[:, None]),
    lambda r: np.expand_dims(r, 1),
    lambda r: r.reshape(3, 1).T,
    lambda r: np.stack([r, r], 1),
    lambda r: np.concatenate([r[:2], r[1:]]),
    lambda r: np.broadcast_to(r[:, None], (3, 2)),
    lambda r: np.moveaxis(r[:, None], 0, 1),
    lambda r: np.take(r, [0, 1]),
    lambda r: r[:, None] * np.ones((3, 2)),
]


@pytest.mark.parametrize("move", MOVES)
def test_what_moves_entries_keeps_the_branch_that_was_not_taken(move, path):
    x = np.array([4.0, 0.0, 9.0])

    def f(x):
        r = move(np.sqrt(x))
        return np.where(r > 0, r, 0.0).sum()

    found = gradient(f, x)[0]
    times = np.array([np.count_nonzero(move(x) == v) for v in x])
    np.testing.assert_allclose(found[[0, 2]], [times[0] / 4, times[2] / 6])
    assert found[1] == 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: np.compress(x > 0, np.sqrt(x)).sum(), [0, 0, 0.25]),
        (lambda x: np.sqrt(x).compress([0, 0, 1]).sum(), [0, 0, 0.25]),
        (lambda x: np.compress([0, 0, 1], np.sqrt(np.stack([x, x])), axis=1).sum(), [0, 0, 0.5]),
        (lambda x: np.extract(x > 0, np.sqrt(x)).sum(), [0, 0, 0.25]),
        (lambda x: np.nan_to_num(1 / np.sqrt(x)).sum(), [0, 0, -1 / 16]),
        (lambda x: np.fmax(np.sqrt(x - 0.5), 1.0).sum(), [0, 0, 0.5 / np.sqrt(3.5)]),
        (lambda x: np.select([x > 0], [np.sqrt(x)], 0.0).sum(), [0, 0, 0.25]),
        (lambda x: np.choose(1 * (x > 0), [0.0, np.sqrt(x)]).sum(), [0, 0, 0.25]),
        (lambda x: np.piecewise(x, [x > 0], [np.sqrt, 0.0]).sum(), [0, 0, 0.25]),
    ],
)
def test_other_selections(f, expected, path):
    found = gradient(f, np.array([-1.0, 0.0, 4.0]))[0]
    np.testing.assert_allclose(found, expected)


X = np.array([0.0, 4.0, 9.0])
ROOT = 0.5 / np.sqrt(np.array([np.inf, 4.0, 9.0]))  # its slope, and 0 where it is infinite
CURVE = -0.25 * np.array([np.inf, 4.0, 9.0]) ** -1.5
PARTS = [  # what selects of √x, and what it selects
    (lambda r: np.maximum(r, 1.0), [0, 1, 1]),
    (lambda r: np.maximum(1.0, r), [0, 1, 1]),
    (lambda r: np.maximum(r, np.ones(3)), [0, 1, 1]),
    (lambda r: -np.minimum(-r, np.array([[-1.0], [-0.5]])), [0, 2, 2]),
    (lambda r: np.fmax(r, 1.0), [0, 1, 1]),
    (lambda r: np.clip(r, 1.0, 5.0), [0, 1, 1]),
    (lambda r: r.clip(1.0), [0, 1, 1]),
    (lambda r: 3.0 * np.maximum(2.0 * r + 0.5, 1.0), [0, 6, 6]),
    (lambda r: np.maximum(r[:, None] * np.ones(2), 1.0), [0, 2, 2]),
    (lambda r: np.maximum(r.reshape(3, 1).T.ravel(), 1.0), [0, 1, 1]),
    (lambda r: np.maximum(r.copy(), 1.0), [0, 1, 1]),
    (lambda r: r.max(), [0, 0, 1]),
    (lambda r: np.stack([r, np.ones(3)]).max(axis=0), [0, 1, 1]),
    (lambda r: np.nanmax(r), [0, 0, 1]),
    (lambda r: np.maximum.reduce(r), [0, 0, 1]),
    (lambda r: np.ptp(r[1:]), [0, -1, 1]),
    (lambda r: np.sort(r)[1:], [0, 1, 1]),
    (lambda r: np.partition(r, 1)[1:], [0, 1, 1]),
    (lambda r: np.median(r), [0, 1, 0]),
    (lambda r: np.quantile(r, 0.75), [0, 0.5, 0.5]),
    (lambda r: np.unique(r)[1:], [0, 1, 1]),
    (lambda r: np.take(r, [1, 2]), [0, 1, 1]),
    (lambda r: np.delete(r, 0), [0, 1, 1]),
    (lambda r: np.split(r, [1])[1], [0, 1, 1]),
    (lambda r: np.hstack([r, [1.0]])[1:], [0, 1, 1]),
    (lambda r: np.pad(r, 1)[2:], [0, 1, 1]),
    (lambda r: np.diag(np.diag(r))[1:], [0, 1, 1]),
    (lambda r: np.trace(np.diag(r)[1:, 1:]), [0, 1, 1]),
    (lambda r: np.triu(r + np.zeros((3, 3)), 1), [0, 1, 2]),
    (lambda r: r[1:], [0, 1, 1]),
    (lambda r: r[1] * 2.0, [0, 2, 0]),
    (lambda r: r[[1, 2]], [0, 1, 1]),
    (lambda r: r.flat[1:], [0, 1, 1]),
    (lambda r: sum([v for v in r][1:]), [0, 1, 1]),
    (lambda r: max(r[0], 1.0) + max(r[1], 1.0), [0, 1, 0]),
]


@pytest.mark.parametrize(("part", "weights"), PARTS)
def test_no_infinite_slope_leaks_out_of_what_was_not_taken(part, weights):
    def f(x):
        return np.sum(part(np.sqrt(x)))

    slopes, bend = weights * ROOT, weights * CURVE
    _, back = pullback(f, X)
    np.testing.assert_allclose(grad(f)(X), slopes)
    np.testing.assert_allclose(back(1.0)[0], slopes)
    np.testing.assert_allclose(back(1.0)[0], slopes)
    np.testing.assert_allclose(jvp(f, (X,), (np.ones(3),))[1], np.sum(slopes))
    np.testing.assert_allclose(hessian(f, X), np.diag(bend), atol=1e-15)
    twice = grad(lambda x: np.sum(grad(f)(x) * np.array([1.0, 2.0, 3.0])))
    np.testing.assert_allclose(twice(X), bend * [1.0, 2.0, 3.0], atol=1e-15)
    single = grad(f)(X.astype("f4"))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, slopes, rtol=1e-6)


def test_the_slope_of_a_square_of_a_root_is_not_hidden():
    found = grad(lambda x: np.sum(np.maximum(np.sqrt(x) ** 2, -1.0)))(X)
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:], 1.0)


def test_complex_selections():
    found = grad(lambda z: np.maximum(np.abs(np.sqrt(z)), 1.0).sum())(X + 0j)
    np.testing.assert_allclose(found, ROOT)
    found = grad(lambda z: np.real(np.sqrt(z)[1:] * 1j).sum())(X + 0j)
    np.testing.assert_allclose(found, -1j * ROOT)


def test_in_place_addition_keeps_what_both_leave_out():
    x̄ = selected(np.ones(3), np.array([True, False, False]))
    x̄ += selected(np.ones(3), np.array([False, False, True]))
    assert (x̄ * np.array([1.0, np.inf, 3.0])).tolist() == [1.0, 0.0, 3.0]


MARKED = [
    lambda x: np.exp(x)[0].sum(),
    lambda x: np.exp(x)[0, 1] ** 2 + np.exp(x)[1, 1],
    lambda x: np.exp(x).max(),
    lambda x: np.exp(x).max(axis=0).sum(),
    lambda x: np.take(np.exp(x), [0, 1]).sum(),
]


@pytest.mark.parametrize("f", MARKED)
def test_gradients_are_plain_arrays_whatever_is_known_of_their_zeros(f):
    x = np.array([[0.7, 0.3, 0.9], [1.4, 2.6, 1.3]])
    v = np.ones((2, 3))
    product = hvp(f, x, v)
    twice = grad(lambda x: np.vdot(grad(f)(x), v))(x)
    for found in (grad(f)(x), pullback(f, x)[1](1.0)[0], product, twice):
        assert type(found) is np.ndarray
    np.testing.assert_allclose(product, hessian(f, x).sum(axis=(2, 3)))
    np.testing.assert_allclose(product, twice)


def general(f):
    """The function, which only the general path can follow."""

    def program(x):
        scope = {"f": f, "x": x}
        exec("y = f(x)", scope)
        return scope["y"]

    return program


def powers(x):
    return [x ** (1.0 - 0.5 * i) for i in range(2)]


def appended(x):
    found = []
    for i in range(2):
        found.append(x ** (1.0 - 0.5 * i))
    return np.array(found)[0]


def rows_of_loop(x):
    rows = []
    for i in range(2):
        rows.append(np.array([x, x ** (0.5 + 0.5 * i)]))
    return np.stack(rows)[1].sum()


def scaled_in_a_loop(x):
    y = np.array([x, np.sqrt(x)])
    for _ in range(3):
        y = 2.0 * y
    return y[0]


ENTRIES_THAT_NOBODY_TAKES = {  # and the slope at 0
    "array": (lambda x: np.array([x, np.sqrt(x)])[0], 1.0),
    "from the end": (lambda x: np.array([x, np.sqrt(x)])[-2], 1.0),
    "power": (lambda x: np.array([x, x**0.5])[0], 1.0),
    "part": (lambda x: np.array([x, np.sqrt(x)])[:1].sum(), 1.0),
    "mask": (lambda x: np.array([x, np.sqrt(x)])[np.array([True, False])].sum(), 1.0),
    "places": (lambda x: np.array([x, np.sqrt(x)])[[0]].sum(), 1.0),
    "stack": (lambda x: np.stack([x, np.sqrt(x)])[0], 1.0),
    "hstack": (lambda x: np.hstack([x, np.sqrt(x)])[0], 1.0),
    "concatenate": (lambda x: np.concatenate(([x], [np.sqrt(x)]))[0], 1.0),
    "asarray": (lambda x: np.asarray((x, np.sqrt(x)))[0], 1.0),
    "nested": (lambda x: np.array([[x, np.sqrt(x)], [2 * x, np.log(x)]])[:, 0].sum(), 3.0),
    "unpacked": (lambda x: (lambda a, b: a)(*np.array([x, np.sqrt(x)])), 1.0),
    "item": (lambda x: np.array([x, np.sqrt(x)]).item(0), 1.0),
    "list of an array": (lambda x: np.array([x, np.sqrt(x)]).tolist()[0], 1.0),
    "maximum": (lambda x: np.max(np.array([x + 1, np.sqrt(x)])), 1.0),
    "sorted": (lambda x: np.sort(np.array([x + 1, np.sqrt(x)]))[1], 1.0),
    "elementwise": (lambda x: np.exp(2 * np.array([x, np.sqrt(x)]))[0], 2.0),
    "transposed": (lambda x: np.array([[x, np.sqrt(x)]]).T[0, 0], 1.0),
    "inserted": (lambda x: np.insert(np.array([x, 2 * x]), 0, np.sqrt(x))[1:].sum(), 3.0),
    "comprehension": (lambda x: np.array(powers(x))[0], 1.0),
    "list in a loop": (appended, 1.0),
    "rows of a loop": (rows_of_loop, 2.0),
    "loop behind": (scaled_in_a_loop, 8.0),
    "single precision": (lambda x: np.array([x, np.sqrt(x)], np.float32)[0], 1.0),
    "overflow": (lambda x: np.array([x, np.exp(x + 1000.0)])[0], 1.0),
}


@pytest.mark.parametrize("name", ENTRIES_THAT_NOBODY_TAKES)
@pytest.mark.parametrize("x", [0.0, np.float64(0.0)], ids=["float", "float64"])
def test_an_entry_that_nobody_takes_has_no_slope(name, x):
    f, slope = ENTRIES_THAT_NOBODY_TAKES[name]
    y, back = pullback(f, x)
    assert y == f(x)
    assert back(1.0) == back(1.0) == (slope,)
    assert gradient(f, x) == (slope,)
    assert gradient(general(f), x) == (slope,)
    assert gradient(lambda x: 1.0 * sum(f(x) for _ in range(2)), x) == (2 * slope,)
    assert jvp(f, (x,), (1.0,))[1] == slope


def test_an_entry_that_is_taken_and_multiplied_by_zero_has_one():
    assert np.isnan(gradient(lambda x: np.array([x, np.sqrt(x)]) @ np.array([1.0, 0.0]), 0.0)[0])


@pytest.mark.parametrize("name", ["array", "stack", "elementwise", "nested"])
def test_second_derivatives_where_nobody_takes_an_entry(name):
    f, _ = ENTRIES_THAT_NOBODY_TAKES[name]
    expected = 4.0 if name == "elementwise" else 0.0
    assert gradient(lambda x: gradient(f, x)[0], 0.0) == (expected,)
    assert hvp(f, 0.0, 1.0) == expected


def test_complex_entries_that_nobody_takes():
    assert gradient(lambda z: np.array([z, np.sqrt(z)])[0].real, 0j) == (1,)


# -- programs that assume that no slope is infinite ------------------------------------------------


def reaction(x, n=3):
    """An entry is left over in each step, and the steps have a quotient in them."""
    y = np.array([x, 1.0, 0.0])
    for _ in range(n):
        s, q, t = y
        rate = s / (0.5 + np.sqrt(s))
        y = y + 0.1 * np.array([rate, 1.0 / (1.0 + q), t * s])
    return y[1]


def root_left_over(x):
    y = np.array([x, 0.0])
    for _ in range(3):
        y = np.array([2.0 * y[0], np.sqrt(y[0])])
    return y[0]


@pytest.mark.parametrize("f", [reaction, root_left_over])
def test_no_questions_are_asked_of_the_entries_of_each_step(f):
    text = str(code_adjoint(f, 0.5))
    assert text.startswith("# specialised")
    assert "assume_less" in text
    assert "entry" not in text
    assert "indexing.scatter" not in text
    check_gradient(f, 0.5)


def test_nothing_is_assumed_where_all_slopes_are_finite():
    def infected(b):
        y = np.array([0.9, 0.1, 0.0])
        for _ in range(3):
            s, i, _ = y
            y = y + 0.1 * np.array([-b * s * i, b * s * i - 0.1 * i, 0.1 * i])
        return y[2]

    text = str(code_adjoint(infected, 0.5))
    assert "assume_less" not in text
    assert "entry" not in text
    assert "indexing.scatter" not in text
    check_gradient(infected, 0.5)


def test_a_program_whose_assumption_does_not_hold_begins_anew():
    g, both = grad(root_left_over), value_and_grad(root_left_over)
    for x in (1.0, 0.0, 1.0, 0.0, 2.0):
        assert g(x) == gradient(root_left_over, x)[0] == 8
        assert both(x) == (8 * x, 8)
        assert pullback(root_left_over, x)[1](1.0) == (8,)
    assert hvp(root_left_over, 1.0, 1.0) == hvp(root_left_over, 0.0, 1.0) == 0


def test_a_gradient_that_is_not_a_number_stays_that():
    def taken(x):
        return np.array([x, np.sqrt(x)])[1] * 0.0 + x

    g = grad(taken)
    assert g(4.0) == 1
    assert np.isnan(g(0.0))
    assert g(4.0) == 1


def test_effects_happen_once_where_slopes_are_infinite():
    seen = []

    def noted(x):
        seen.append(x)
        return np.array([x, np.sqrt(x)])[0]

    assert grad(noted)(0.0) == 1
    assert seen == [0.0]


@pytest.mark.parametrize("x", [0.0, 4.0])
def test_parts_of_structures_are_looked_at(x):
    def f(p):
        return np.array([p["a"] * 3.0, np.sqrt(p["a"])])[0] + np.sum(p["b"][0])

    found = gradient(f, {"a": x, "b": [np.ones(2)]})[0]
    assert found["a"] == 3
    assert found["b"][0].tolist() == [1, 1]
