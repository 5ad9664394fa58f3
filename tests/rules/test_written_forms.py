"""out=, where=, np.copyto, fill, sort, np.add.at in compiled programs; what they raise and round."""

import numpy as np
import pytest

import morula
from morula import code_adjoint, grad, hvp, jvp, value_and_grad
from tests.mutation import check_mutation

X = np.linspace(-1.03, 1.2, 12)
PLACES = np.array([0, 1, 1, 3, 2, 0, 5, 4, 4, 3, 2, 1])


def a_function_to_a_new_array(x):
    y = np.empty_like(x)
    z = np.exp(x, out=y)
    return (z * x).sum() + y[0]


def by_position(x):
    y = np.zeros(12)
    np.multiply(x, x, y)
    return (y * x).sum()


def over_an_operand(x):
    y = x * x
    np.multiply(y, x, out=y)
    np.subtract(x, y, out=y)
    np.negative(y, out=y)
    return (y * y).sum()


def over_an_operand_with_a_shadow(x):
    y = np.zeros(12)
    for i in range(12):
        y[i] = x[i] * 2.0
    np.add(x, y, out=y)
    np.multiply(y, y, out=y)
    np.true_divide(y, 4.0, out=y)
    return (y * y[::-1]).sum()


def to_views(x):
    y = np.zeros((2, 12))
    np.add(x, x[::-1], out=y[0])
    np.multiply(x, y[0], out=y[1])
    np.sqrt(np.square(y[1, 1:]) + 1.0, out=y[0, :-1])
    return (y * y).sum()


def overlapping(x):
    y = np.zeros(13)
    y[1:] = x
    np.add(y[:-1], y[1:], out=y[1:])
    np.multiply(y[1:], 2.0, out=y[:-1])
    return (y * y).sum()


def broadcast(x):
    y = np.zeros((3, 12))
    np.add(x, 1.0, out=y)
    np.multiply(x[0], 2.0, out=y[0])
    return (y * y).sum()


def in_a_loop(x):
    y, t = np.zeros(12), np.empty(12)
    for _ in range(5):
        np.multiply(x, y, out=t)
        np.add(t, x, out=y)
    return (y * y).sum()


def products_and_reductions(x):
    A = np.cos(np.arange(144.0)).reshape(12, 12)
    y, s = np.empty(12), np.empty(())
    np.dot(A, x, out=y)
    np.sum(y * x, out=s)
    z = np.empty(12)
    np.matmul(A, y, out=z)
    return (z * z).sum() + s * 2


def where_a_mask_holds(x):
    y = np.zeros(12)
    np.sqrt(x, out=y, where=x > 0)
    z = np.divide(y, x, out=np.ones(12), where=x != 0)
    return (y * y * z).sum()


def copies(x):
    y = np.empty(12)
    np.copyto(y, x * x)
    np.copyto(y, 2.0 * x, where=x > 0.3)
    y[:2].fill(x[5])
    return (y * x).sum()


def sorted_in_place(x):
    y = np.sin(3 * x)
    y.sort()
    return (y * np.arange(12)).sum() + (y[::-1] * y).sum()


def added_at(x):
    y = np.ones(6)
    np.add.at(y, PLACES, x * x)
    y *= y
    np.subtract.at(y, PLACES[:4], x[0])
    return (y * y).sum()


def added_at_one_place_in_a_loop(x):
    y = np.zeros(6)
    for i in range(12):
        np.add.at(y, PLACES[i], x[i] * y[PLACES[i] - 1] + x[i])
    return (y * y).sum()


def added_at_pairs_of_places(x):
    y = np.zeros((6, 2))
    np.add.at(y, (PLACES, PLACES % 2), x)
    np.add.at(y, (slice(None), 0), x[:6])
    np.add.at(y, np.array([True, False, True, False, False, True]), x[:2])
    return (y * y * y).sum()


def slopes_that_are_infinite(x):
    y = np.zeros(6)
    np.add.at(y, PLACES, x * x)
    z = np.sqrt(y)
    z[0] = 0.0
    return (z[1:3] * z[2:4]).sum()


def buffers_that_change_places(x):
    a, b = x.copy(), np.empty(12)
    for _ in range(5):
        np.multiply(a, x, out=b)
        np.add(b, 0.1, out=b)
        a, b = b, a
    return (a * b).sum()


def one_of_two_arrays(x):
    y, w = np.zeros(12), np.ones(12)
    t = y if x[0] > 0 else w
    r = np.multiply(x, x, out=t)
    t += y
    r *= 2.0
    return (y * w).sum() + (r is t)


def the_result_is_the_array(x):
    t = np.zeros(12)
    r = np.multiply(x, x, out=t)
    t += x
    r *= 2.0
    z = x * x
    s = np.exp(z, out=z)
    s[0] = x[1]
    return (t * t * z).sum() + (r is t)


def masks_in_a_loop(x):
    y = np.zeros(12)
    for i in range(3):
        m = x * i > y
        np.copyto(y, x * i, where=m)
        np.add(y, x, out=y, where=~m)
    return (y * y).sum()


def places_that_change(x):
    y, k = np.zeros(12), np.array(PLACES)
    np.add.at(y, k, x * x)
    k[0] = 2
    np.add.at(y, k, y)
    return (y * y).sum()


def a_product_with_a_sparse_matrix(x):
    rows, columns = np.array([0, 0, 1, 2, 3]), np.array([1, 2, 0, 3, 3])
    y = np.zeros(4)
    for _ in range(3):
        z = np.zeros(4)
        np.add.at(z, rows, x[:5] * (x[columns] + y[columns]))
        y = z
    return (y * y).sum()


def what_raises_is_caught(x):
    y = np.zeros(12)
    try:
        np.add(x, np.ones(3), out=y)
    except ValueError:
        np.add(x, 1.0, out=y)
    return (y * y).sum()


def a_buffer_of_a_closure(x):
    buffer = np.empty(12)

    def step(v):
        return np.multiply(v, x, out=buffer)

    a = step(x).copy()
    rows = [step(a), step(x)]
    return (np.stack(rows) * a).sum() + buffer[0]


OTHERS = (
    buffers_that_change_places, one_of_two_arrays, the_result_is_the_array, masks_in_a_loop,
    places_that_change, a_product_with_a_sparse_matrix, what_raises_is_caught, a_buffer_of_a_closure,
)  # fmt: skip
PROGRAMS = (
    a_function_to_a_new_array, by_position, over_an_operand, over_an_operand_with_a_shadow,
    to_views, overlapping, broadcast, in_a_loop, products_and_reductions, where_a_mask_holds,
    copies, sorted_in_place, added_at, added_at_one_place_in_a_loop, added_at_pairs_of_places,
    slopes_that_are_infinite,
)  # fmt: skip


@pytest.mark.parametrize("f", [*PROGRAMS, *OTHERS])
def test_writes(f, path):
    x = X.copy()
    (x̄,) = check_mutation(f, x)
    assert jvp(f, (x,), (np.cos(x),))[1] == pytest.approx(x̄ @ np.cos(x))


@pytest.mark.parametrize("f", PROGRAMS)
def test_they_are_compiled(f):
    assert "specialised" in str(code_adjoint(f, X.copy())).split("\n")[0]


@pytest.mark.parametrize("f", PROGRAMS)
def test_single_precision_and_second_derivatives(f):
    x̄ = grad(f)(X.astype("f4"))
    assert x̄.dtype == np.float32
    np.testing.assert_allclose(x̄, grad(f)(X), rtol=2e-3, atol=2e-3)
    v, h = np.cos(X), 1e-6
    expected = (grad(f)(X + h * v) - grad(f)(X - h * v)) / (2 * h)
    np.testing.assert_allclose(hvp(f, X, v), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.add(x, 1.0, out=np.zeros(2)).sum(),
        lambda x: np.exp(x, out=np.zeros((12, 1))).sum(),
        lambda x: np.copyto(np.zeros(2), x),
        lambda x: np.multiply(x, 1j, out=np.zeros(12)).sum(),
        lambda x: np.add.at(np.zeros(2), np.arange(12), x),
    ],
)
def test_errors_are_those_of_numpy(f, path):
    with pytest.raises((ValueError, TypeError, IndexError)) as plain:
        f(X)
    for _ in range(2):
        with pytest.raises(type(plain.value)) as found:
            grad(f)(X)
        assert str(found.value) == str(plain.value)


def test_what_runs_for_shapes_that_are_not_known_raises_too():
    def f(x, n):
        y = np.zeros(n)
        np.add(x, 1.0, out=y)
        return (y * y).sum()

    assert value_and_grad(f)(X, 12)[0] == f(X, 12)
    with pytest.raises(ValueError, match="could not be broadcast"):
        grad(f)(X, 11)


def test_empty_arrays():
    def f(x):
        y = np.zeros(0)
        np.add.at(y, np.zeros(0, int), x)
        np.exp(x, out=y)
        return (y * y).sum()

    assert grad(f)(np.zeros(0)).shape == (0,)


def none_of_copyto(x):
    y = x * 1.0
    r = np.copyto(y, 2.0)
    return (y * x).sum() if r is None else 0.0


def none_of_copyto_where(x):
    y = np.zeros(4)
    y[0] = x[0]
    r = np.copyto(y, x, where=x > 1)
    return (y * x).sum() if r is None else 0.0


def none_of_fill(x):
    y = x * 1.0
    r = y.fill(2.0)
    return (y * x).sum() if r is None else 0.0


def none_of_sort(x):
    y = x * 1.0
    r = y.sort()
    return (y * x).sum() if r is None else 0.0


@pytest.mark.parametrize("f", [none_of_copyto, none_of_copyto_where, none_of_fill, none_of_sort])
def test_writes_that_give_none(f):
    x = np.array([0.7, 1.3, 0.4, 2.1])
    h = 1e-6
    slopes = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(4)]
    for _ in range(3):
        value, (slope,) = morula.withgradient(f, x)
        assert value == f(x)
        np.testing.assert_allclose(slope, slopes, rtol=1e-6)
        assert morula.jvp(f, (x,), (np.ones(4),))[1] == pytest.approx(sum(slopes), rel=1e-6)


def filled_with_several(x):
    y = np.zeros(4)
    y.fill(x)
    return y.sum()


def sorted_without_axes(x):
    y = np.array(x[0] * 2.0)
    y.sort()
    return y * 1.0


@pytest.mark.parametrize("f", [filled_with_several, sorted_without_axes])
def test_what_numpy_refuses_is_refused_with_its_words(f):
    x = np.array([0.7, 1.3, 0.4, 2.1])
    with pytest.raises(ValueError) as plain:  # noqa: PT011
        f(x)
    for run in (morula.gradient, lambda f, x: jvp(f, (x,), (x,))):
        with pytest.raises(type(plain.value), match=str(plain.value)):
            run(f, x)
