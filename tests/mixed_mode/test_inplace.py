"""Forward mode of programs that write to arrays: alone, and in all pairs of modes."""

import array
import ctypes
import random
import warnings

import numpy as np
import pytest
from scipy import stats

from morula import (
    NoRuleError,
    NoTangent,
    UnsupportedError,
    forwarddiff,
    grad,
    gradient,
    hessian,
    hvp,
    jacobian,
    jvp,
    pullback,
    rrule,
    taylor,
)
from morula.core import memory
from tests.array_programs import InPlaceWriter, check_forward, raises

X = np.array([0.3, -0.7, 1.2])
V = np.array([1.0, 0.5, -2.0])


def views_and_aliases(x):
    x = x.copy()
    y = x * x
    x[0] = x[1] * x[2]
    v = x[1:]
    v += y[:-1]
    return (x * y).sum()


def a_recurrence(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] * (y[i - 1] if i else 1)
    return y * 2


def products_of_what_was_written(x):
    y = np.zeros((2, 3, 3))
    y[0] = np.outer(x, x)
    y[1] = y[0] + y[0] @ (np.arange(9.0).reshape(3, 3) / 9)
    return y[1] * (y[1] @ np.ones((3, 1)))


def attributes_that_are_set(x):
    y = np.outer(x, x)[:2]
    y.flat = y[::-1] * 2
    z = y.view()
    z.shape = 3, 2
    z[0] *= z[1]
    y.real = y * y
    y.shape = -1
    return y[1:] * z[2, 1]


def masks_and_transposes(x):
    y = np.zeros((3, 3))
    y[:, 0] = x
    y[0, :] = 0
    y.T[1] = x**2
    y[x > 0] *= 2
    np.add.at(y, ([0, 0], [1, 1]), x[:2])
    np.subtract.at(y, ([0, 2], [1, 1]), x[1])
    np.exp.at(y, ([1], [1]))
    return y


def functions_with_out(x):
    y = np.exp(x)
    np.multiply(y, x, out=y)
    np.sin(y, y)
    return np.sum(y * y, out=np.zeros(())) + np.cumsum(y, out=np.zeros(3))


def functions_that_write(x):
    y = x.copy()
    y.sort()
    z = y[::-1]
    z[0] = 0
    np.put(y, [0, 1], [x[0], 5.0])
    np.copyto(y, 2 * x, where=x > 1)
    m = np.outer(y, x)
    np.fill_diagonal(m, y)
    np.place(m, m > 1, [x[0]])
    np.putmask(m, m < 0, x)
    np.put_along_axis(m, np.array([[1], [0], [2]]), x[1], axis=1)
    w = np.empty(3)
    w.fill(x[2])
    w.partition(1)
    return m + w


def lists_and_loops(x):
    rows = [x.copy(), x * 2]
    rows[0][1] = 7
    s = np.concatenate(rows)
    rows[0] -= s[3:]
    a = np.outer(x, x)
    for row in a:
        row *= row[0]
    total = 0
    for v in a[0]:
        a[0, 2] = v
        total = total + v
    held = {"a": x * 2}
    held["a"][0] = 1
    return np.stack(rows).sum(0) + total + held["a"].reshape(-1)


def overwritten(x):
    y = x.copy()
    z = y
    y[...] = 0
    return z


def every_operator(x):
    y = np.zeros(3)
    y += x
    y *= y
    y /= 2
    y **= 2
    y -= x[::-1]
    y %= 5.0
    y @= np.diag(x)
    return y


def parts_of_complex_numbers(x):
    y = x.astype(complex)
    y[0] *= 1j
    y.imag[1] = 2 * x[2]
    return np.abs(y)


def places_twice(x):
    y = x.copy()
    y[[0, 0]] = [x[1], x[2]]
    y.flat[1:] = y.flat[:2] * x[1]
    y.reshape(3, 1).flat[2] = x[0] ** 2
    return y


def other_ways_to_the_same_memory(x):
    y = x.copy()
    entries = y.flat
    y[0] = x[1] ** 2
    z = x.astype(complex)
    z.real = entries[:] ** 2
    z.imag = x[1]
    return np.abs(z)


def structures(x):
    class Box:
        pass

    box = Box()
    box.xs = x * 1.0
    box.xs[1:] = x[:-1]
    return box.xs, [box.xs]


PROGRAMS = [
    views_and_aliases, attributes_that_are_set, products_of_what_was_written, a_recurrence,
    masks_and_transposes, functions_with_out, functions_that_write, lists_and_loops,
    overwritten, other_ways_to_the_same_memory, every_operator,
    parts_of_complex_numbers, places_twice,
]  # fmt: skip


def difference(f, x, v, h=1e-5):
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


@pytest.mark.parametrize("f", PROGRAMS)
def test_jvp(f):
    y, ẏ = jvp(f, (X,), (V,))
    np.testing.assert_array_equal(y, f(X))
    np.testing.assert_allclose(ẏ, difference(f, X, V), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("number", range(12))
def test_random_programs(number):
    program = InPlaceWriter(random.Random(f"forward {number}")).program()
    if not raises(program):
        check_forward(program)


def total(f):
    return lambda x: np.sum(np.sin(f(x)))


@pytest.mark.parametrize("f", PROGRAMS)
def test_second_derivatives(f):
    s = total(f)
    expected = difference(lambda x: gradient(s, x)[0], X, V)
    near = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(hvp(s, X, V), expected, **near)
    if f not in (a_recurrence, masks_and_transposes, overwritten):  # the others compile for long
        return
    mixed = gradient(lambda x: jvp(s, (x,), (V,))[1], X)[0]
    np.testing.assert_allclose(mixed, expected, **near)
    twice = jvp(lambda x: jvp(s, (x,), (V,))[1], (X,), (V,))[1]
    np.testing.assert_allclose(twice, expected @ V, **near)


def test_out_with_a_mask():
    def f(x):
        y = x * 2
        np.sqrt(x, out=y, where=x > 0)
        return y

    ẏ = jvp(f, (X,), (V,))[1]
    np.testing.assert_allclose(ẏ, difference(f, X, V), rtol=1e-6)


def test_second_derivatives_of_calls_with_keywords_for_what_a_rule_has_by_position():
    def f(x):
        return np.sum(np.cumsum(a=x**2, axis=0) ** 2)

    expected = [difference(lambda x: gradient(f, x)[0], X, e) for e in np.eye(3)]
    np.testing.assert_allclose(hessian(f, X), expected, rtol=1e-6)
    np.testing.assert_allclose(
        jacobian(lambda x: gradient(f, x)[0], X, mode="reverse")[0], expected, rtol=1e-6
    )


def test_jacobians():
    J = jacobian(a_recurrence, X, mode="forward")[0]
    np.testing.assert_allclose(J, jacobian(a_recurrence, X, mode="reverse")[0])
    sparse = jacobian(a_recurrence, X, sparsity="auto")[0]
    np.testing.assert_allclose(sparse.toarray(), J)
    assert sparse.nnz == 6
    H = hessian(total(a_recurrence), X)
    np.testing.assert_allclose(H, H.T)


def test_series():
    def f(t):
        y = np.zeros(3)
        y[0] = t
        y[1:] = np.sin(y[0] * X[1:])
        y *= y
        return y.sum()

    c = taylor(f, 0.4, 12)
    h = 0.05
    assert sum(c[k] * h**k for k in range(13)) == pytest.approx(f(0.4 + h), rel=1e-12)


def test_results_in_structures_are_as_written():
    (a, [b]), (ȧ, [ḃ]) = jvp(structures, (X,), (V,))
    assert a is b
    np.testing.assert_array_equal(ȧ, [1.0, 1.0, 0.5])
    np.testing.assert_array_equal(ḃ, ȧ)


def test_arguments_hold_what_the_plain_call_leaves():
    def f(x):
        x[0] = x[1] * 3
        return x[0] + x[2]

    x = X.copy()
    assert jvp(f, (x,), (V,))[1] == 3 * V[1] + V[2]
    assert x[0] == 3 * X[1]


def test_a_tangent_that_comes_back_is_not_written_to_later():
    def f(x):
        y = x * 2
        first = y[:2] * 1.0
        y[:] = 0
        return first

    np.testing.assert_array_equal(jvp(f, (X,), (V,))[1], 2 * V[:2])


def test_a_loop_over_many_arrays_keeps_none_of_them():
    def f(x):
        for _ in range(600):
            y = np.zeros(2)
            y[0] = x
            x = y[0] * 1.001 + y[1]
        return x

    assert jvp(f, (1.0,), (1.0,))[1] == pytest.approx(1.001**600)


def test_a_function_with_a_parameter_named_out_is_a_function():
    def scaled(x, out):
        return x * out

    assert jvp(lambda x: scaled(x, out=x), (3.0,), (1.0,))[1] == 6.0


def test_rounding_in_an_array_of_integers_warns():
    def f(x):
        y = np.zeros(2, int)
        y[0] = x
        return y[0] * x

    with pytest.warns(UserWarning, match="rounded, because it is stored in an array"):
        assert jvp(f, (2.5,), (1.0,))[1] == 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jvp(f, (2.5,), (None,))[1] == 0.0


def test_all_entries_of_flat_at_once():
    def f(x):
        y = x * 1.0
        y[0] = x[1] ** 2
        a, *_ = y.flat
        (b,) = y[1:2].flat
        first, second = tuple(y.flat)[:2]
        return a * b + first * second

    x, v = np.array([0.5, 2.0, 3.0]), np.array([1.0, 0.25, -1.0])
    (x̄,) = gradient(f, x)
    assert jvp(f, (x,), (v,)) == (f(x), pytest.approx(x̄ @ v))


def test_a_generator_over_flat():
    y, ẏ = jvp(lambda x: sum(v * v for v in x.flat), (X,), (V,))
    assert y == pytest.approx((X * X).sum())
    assert ẏ == pytest.approx((2 * X * V).sum())


def test_what_cannot_be_followed_is_refused():
    def f(x):
        y = np.zeros(4)
        np.lib.stride_tricks.as_strided(y, (3, 2), (8, 8))[:] = x
        return y

    with pytest.raises((UnsupportedError, NotImplementedError), match=r"in place|no reverse rule"):
        jvp(f, (2.0,), (1.0,))


# -- rules whose pullbacks write --------------------------------------------------------------------


def picked(x, i):
    return x[i] ** 2


@rrule(picked)
def _(x: np.ndarray, i):
    def picked_pullback(ȳ):
        x̄ = np.zeros_like(x)
        x̄[i] += 2 * x[i] * ȳ
        return x̄, NoTangent()

    return picked(x, i), picked_pullback


def doubled_and_tripled(xs):
    return [2 * xs[0], 3 * xs[1]]


@rrule(doubled_and_tripled)
def _(xs: list):
    def doubled_and_tripled_pullback(ȳ):
        x̄ = np.zeros(2)
        x̄[0] = 2 * ȳ[0]
        x̄[1] = 3 * ȳ[1]
        return (list(x̄),)

    return doubled_and_tripled(xs), doubled_and_tripled_pullback


def windows(x):
    return np.lib.stride_tricks.sliding_window_view(x, 2).prod(1)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: picked(x, slice(0, 2)) * x[1:],
        windows,
        lambda x: forwarddiff(a_recurrence, x),
        lambda x: forwarddiff(windows, x) * x[0],
    ],
    ids=["a rule of a user", "sliding windows", "forwarddiff", "forwarddiff of windows"],
)
def test_what_a_pullback_writes_is_followed_in_every_pair_of_modes(f):
    def loss(x):
        return (f(x) ** 2).sum()

    h = 1e-6
    slope = (f(X + h * V) - f(X - h * V)) / (2 * h)
    np.testing.assert_allclose(jvp(f, (X,), (V,))[1], slope, rtol=1e-6, atol=1e-8)
    curvature = (grad(loss)(X + h * V) - grad(loss)(X - h * V)) / (2 * h)
    for second in (
        hvp(loss, X, V),
        grad(lambda x: (grad(loss)(x) * V).sum())(X),
        grad(lambda x: jvp(loss, (x,), (V,))[1])(X),
    ):
        np.testing.assert_allclose(second, curvature, rtol=1e-5, atol=1e-7)
    twice = jvp(lambda x: jvp(loss, (x,), (V,))[1], (X,), (V,))[1]
    np.testing.assert_allclose(twice, curvature @ V, rtol=1e-5)


def test_what_the_pullback_of_a_rule_for_lists_writes_is_followed():
    assert jvp(lambda a, b: sum(doubled_and_tripled([a, b])), (1.0, 2.0), (1.0, 1.0)) == (8.0, 5.0)


def test_an_exception_in_a_transposed_rule_leaves_nothing_behind():
    @rrule(windows_of := lambda x: x * 1.0)
    def _(x: np.ndarray):
        def pullback(ȳ):
            np.zeros(1)[0] = 1.0
            raise ZeroDivisionError

        return windows_of(x), pullback

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            jvp(windows_of, (X,), (V,))
    assert memory.end_log(memory.begin_log()) == {}
    assert memory._pass.log is None


def test_what_is_written_to_memory_of_other_kinds_is_refused():
    def through_an_array(x):
        a = array.array("d", [0.0, 0.0])
        a[0] = x[0]
        return a[0] * x[1]

    def through_bytes(x):
        y = np.frombuffer(bytearray(24))
        y[:] = x
        return (y**2).sum()

    for f in (through_an_array, through_bytes):
        with pytest.raises((UnsupportedError, NoRuleError)):
            jvp(f, (X,), (V,))
        with pytest.raises((UnsupportedError, NoRuleError)):
            grad(f)(X)


@pytest.mark.parametrize(
    "write",
    [
        lambda q, x: np.copyto(dst=q, src=x),
        lambda q, x: np.put(a=q, ind=[1, 2], v=x[:2]),
        lambda q, x: np.place(arr=q, mask=[True, False, True], vals=x[:2]),
        lambda q, x: np.fill_diagonal(a=q.reshape(1, 3), val=x[0]),
        lambda q, x: np.put_along_axis(arr=q, indices=np.array([1, 2]), values=x[:2], axis=0),
    ],
)
def test_arguments_of_writes_by_name(write):
    def f(x):
        q = 3 * x
        write(q, x)
        return q

    x, v = np.array([0.3, 1.1, 0.8]), np.array([1.0, -2.0, 0.5])
    assert jvp(f, (x,), (v,))[1] == pytest.approx(f(v))  # f is linear


def test_what_would_lose_digits_raises_as_the_plain_call():
    for write in (np.place, np.putmask):
        with pytest.raises(TypeError, match="Cannot cast"):
            pullback(lambda x, write=write: write(np.arange(3), [True, False, True], x), np.ones(3))


def test_views_in_a_tuple_of_results_see_what_was_written():
    """A rule gives the tangent of its tuple by the entries that are not zero."""
    x, v = np.array([0.3, 1.1, 0.8]), np.array([1.0, -2.0, 0.5])

    def f(x):
        q = 3 * x
        q[0] = 1.0
        first, _ = np.broadcast_arrays(q, np.ones((2, 3)))
        return first.sum()

    assert jvp(f, (x,), (v,))[1] == pytest.approx(-9.0)
    assert jvp(lambda x: stats.pearsonr(x, v)[0], (x,), (v,))[1] == pytest.approx(
        gradient(lambda x: stats.pearsonr(x, v)[0], x)[0] @ v
    )


def test_writing_by_a_pointer_of_ctypes_is_refused_as_in_reverse_mode():
    def f(x):
        pointer = x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        pointer[0] = 5.0
        return np.sum(x * x)

    message = "setitem changes a ndarray in place"
    with pytest.raises(UnsupportedError, match=message):
        gradient(f, np.arange(3.0))
    with pytest.raises(UnsupportedError, match=message):
        jvp(f, (np.arange(3.0),), (np.ones(3),))


def test_a_pointer_of_ctypes_to_a_number_of_its_own_is_written_to():
    def f(x):
        pointer = ctypes.pointer(ctypes.c_double(1.0))
        pointer[0] = 5.0
        return np.sum(x * x) * pointer[0]

    assert jvp(f, (np.arange(3.0),), (np.ones(3),)) == (25.0, 30.0)
