"""Writing to arrays in place: every way to write, against finite differences."""

import contextlib
import operator
import warnings

import numpy as np
import pytest

from morula import UnsupportedError, grad, gradient, hvp, jvp, pullback, withgradient
from morula.core.compiled import by_the_general_path
from morula.testing import check_gradient
from tests.modes import check_modes
from tests.mutation import check_mutation

X = np.array([0.7, -1.3, 1.9, 0.4])
A = np.array([[0.5, -1.2, 0.8], [1.1, 0.3, -0.6], [0.9, 1.4, -0.2]])
Z = np.array([0.3 + 0.4j, -0.5 + 0.1j, 0.2 - 0.7j])

INDICES = [
    1, -2, slice(1, 3), slice(None, None, -1), slice(None, None, 2), Ellipsis, (Ellipsis, 0), None,
    [0, 2], [1, 1, 3], np.array([3, 0]), np.array([[0, 1], [1, 2]]), np.array([True, False] * 2),
    (np.array([0, 2]),), np.int64(2), (), slice(2, 2),
]  # fmt: skip
INDICES_2 = [
    0, (1, 2), (slice(None), 1), (Ellipsis, slice(0, 2)), ([0, 2], [1, 0]), ([0, 0], [1, 1]),
    (slice(1, None), [0, 2]), np.eye(3, dtype=bool), (np.array([True, False, True]), 1),
    (None, 0), np.ix_([0, 2], [1, 2]), (np.array([[0], [2]]), np.array([[1, 1]])),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_items_are_set(index):
    def f(x, v):
        y = x * x
        x[index] = v
        z = np.sin(x)
        x[index] *= 2.0
        return (y * z).sum() + (x**3).sum()

    check_mutation(f, X, 0.8)


@pytest.mark.parametrize("index", INDICES_2, ids=repr)
def test_items_of_matrices_are_set(index):
    def f(a, v):
        b = np.tanh(a)
        a[index] = b[index] * v + a.T[0, 1]
        a[index] -= a[0, 0]
        return (a * b).sum() + (a @ a).sum()

    check_mutation(f, A, 1.3)


def test_of_what_is_written_twice_the_last_counts():
    def f(x, v):
        x[[0, 1, 0]] = v
        return (x * np.array([1.0, 2.0, 3.0, 4.0])).sum()

    found = gradient(f, X.copy(), np.array([5.0, 6.0, 7.0]))
    assert found[0].tolist() == [0.0, 0.0, 3.0, 4.0]
    assert found[1].tolist() == [0.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "v", [np.array(2.0), np.array([1.5]), np.array([[0.5], [2.0], [1.0]]), [1.0, 2.0, 3.0]]
)
def test_what_is_written_is_broadcast(v):
    def f(a, v):
        a[:] = v
        a[1] = v[0] if np.ndim(v) else v
        return (a * A).sum()

    check_mutation(f, A, v)


def test_a_list_of_numbers_is_written():
    def f(x, a, b):
        x[1:3] = [a * b, a]
        x[0], x[3] = x[1], b
        return (x * x).sum()

    check_mutation(f, X, 0.6, 0.9)


IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow, operator.imod,
    operator.ifloordiv,
]  # fmt: skip


@pytest.mark.parametrize("op", IN_PLACE)
@pytest.mark.parametrize("v", [1.7, np.array([1.3, 2.1, 0.6])])
def test_operators(op, v):
    def f(a, v):
        b = a * a + 0.3
        c = np.sin(b)
        d = op(b, v)
        d[0] = 2.0
        return (b * c).sum()

    check_mutation(f, A, v)


def test_matrices_are_multiplied_in_place():
    def f(a, b):
        a @= b
        a @= a
        return (a * b).sum()

    check_mutation(f, A, A.T + 1.0)


def test_an_operand_is_the_array_itself():
    def f(a):
        a += a
        a *= a.T
        a -= a[0]
        return (a * a).sum()

    check_mutation(f, A)


UNARY = [np.exp, np.sin, np.square, np.negative, np.tanh, np.absolute]


@pytest.mark.parametrize("ufunc", UNARY)
def test_out_of_functions_of_one_argument(ufunc):
    def f(x):
        y = np.empty_like(x)
        z = ufunc(x, out=y)
        ufunc(y, y)
        ufunc(x[1:], out=x[:-1])
        return (x * y * z).sum()

    check_mutation(f, X)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.subtract, np.maximum, np.divide])
def test_out_of_functions_of_two_arguments(ufunc):
    def f(a, b):
        c = np.zeros((3, 3))
        ufunc(a, b, out=c)
        ufunc(a, b, out=a)
        ufunc(c, a, out=(b,))
        return (a * b + c).sum()

    check_mutation(f, A, A.T * A + 2.0)


def test_out_with_a_mask():
    def f(x, v):
        y = x * 2.0
        np.multiply(x, v, out=y, where=x > 0)
        np.sqrt(y, out=x, where=y > 0)
        return (x * y).sum()

    check_mutation(f, X, 1.2)


def test_out_is_wider_than_the_result():
    def f(a, x):
        np.multiply(x, 2.0, out=a)
        return (a * A).sum()

    check_mutation(f, A, X[:3])


def test_two_results_go_out():
    def f(x):
        a, b = np.zeros(4), np.zeros(4)
        np.modf(x, out=(a, b))
        q = np.divmod(x, 0.3, a, b)
        return (x * (a + b)).sum() + q[1].sum()

    check_mutation(f, X * 1.7)


def with_out(fn, *args, **kwargs):
    def f(a):
        out = np.empty_like(fn(a, *args, **kwargs))
        y = fn(a * a, *args, out=out, **kwargs)
        out *= 2.0
        return (y * out).sum() + a.sum()

    return f


@pytest.mark.parametrize(
    "f",
    [
        with_out(np.sum, axis=0), with_out(np.mean, axis=1), with_out(np.cumsum, axis=0),
        with_out(np.max, axis=0), with_out(np.dot, A.T), with_out(np.matmul, A),
        with_out(np.clip, 0.1, 0.9), with_out(np.take, [0, 2], 1), with_out(np.prod, axis=1),
        with_out(np.std, axis=0),
        with_out(np.ndarray.sum, axis=0), with_out(np.ndarray.cumsum, axis=1),
        with_out(np.ndarray.mean, axis=0), with_out(np.ndarray.dot, A),
        with_out(np.ndarray.clip, 0.1, 0.9),
    ],
)  # fmt: skip
def test_out_of_other_functions(f):
    check_mutation(f, A)


def test_stacks_go_out():
    def f(x, y):
        out = np.zeros(8)
        np.concatenate([x, y * y], out=out)
        wide = np.zeros((2, 4))
        np.stack([y, x * y], out=wide)
        return (out[1:] * out[:-1]).sum() + (wide * wide).sum()

    check_mutation(f, X, X[::-1].copy())


METHODS = {
    "fill": lambda x, v: x[1:].fill(v),
    "sort": lambda x, v: x.sort(),
    "sort rows": lambda x, v: x.reshape(2, 2).sort(axis=0),
    "partition": lambda x, v: x.partition(2),
    "put": lambda x, v: np.put(x, [0, -1, 0], [v, v * v, 2 * v]),
    "put one": lambda x, v: x.put([1, 2], v),
    "put clipped": lambda x, v: x.put([1, 20], v, mode="clip"),
    "put wrapped": lambda x, v: x.put([1, 7], v, mode="wrap"),
    "place": lambda x, v: np.place(x, x > 0, np.array([v, v * x[1]])),
    "putmask": lambda x, v: np.putmask(x, x > 0.5, x * v),
    "putmask short": lambda x, v: np.putmask(x, x > 0.5, np.array([v, 2 * v])),
    "put_along_axis": lambda x, v: np.put_along_axis(
        x.reshape(2, 2), np.array([[0], [1]]), v * v, 1
    ),
    "fill_diagonal": lambda x, v: np.fill_diagonal(x.reshape(2, 2), v * x[1]),
    "fill_diagonal with two": lambda x, v: np.fill_diagonal(x.reshape(2, 2), np.array([v, v * v])),
    "copyto": lambda x, v: np.copyto(x, x[::-1] * v),
    "copyto a number": lambda x, v: np.copyto(x[1:], v),
    "copyto masked": lambda x, v: np.copyto(x, x * x * v, where=x > 0),
    "add.at": lambda x, v: np.add.at(x, [0, 0, 2], x[1:] * v),
    "add.at a number": lambda x, v: np.add.at(x, [0, 0, 2], v),
    "subtract.at": lambda x, v: np.subtract.at(x, (np.array([1, 1]),), x[:2] * v),
    "multiply.at": lambda x, v: np.multiply.at(x, [3, 1], np.array([v, v * v])),
    "exp.at": lambda x, v: np.exp.at(x, [3, 1]),
    "negative.at": lambda x, v: np.negative.at(x, slice(1, 3)),
    "flat": lambda x, v: x.reshape(2, 2).T.flat.__setitem__(1, v * x[0]),
    "flat part": lambda x, v: operator.setitem(x.reshape(2, 2).T.flat, slice(1, 3), [v, v * v]),
    "flat all": lambda x, v: setattr(x.reshape(2, 2).T, "flat", x * v),
    "real": lambda x, v: setattr(x, "real", x * v),
    "shape": lambda x, v: setattr(x, "shape", (2, 2)),
    "resize": lambda x, v: x.resize((2, 2), refcheck=False),
    "methods": lambda x, v: (x.__setitem__(1, v), x[1:].__imul__(v), x.__iadd__(x[0])),
    "T": lambda x, v: operator.setitem(x.reshape(2, 2).T, 0, v * x[:2]),
}


@pytest.mark.parametrize("write", METHODS.values(), ids=METHODS)
def test_functions_that_write(write):
    def f(x, v):
        y = np.cos(x)
        write(x, v)
        return (x.ravel() * y.ravel()).sum() + (x.ravel() ** 3).sum()

    check_mutation(f, X, 0.7)


def test_complex_arrays():
    def f(z, w):
        y = z * w
        z[1:] *= y[:-1]
        z.real[0] = w.imag[1]
        z.imag += z.real
        np.exp(z, out=w)
        w.real = y.imag
        return np.sum(np.abs(w * z) ** 2)

    check_mutation(f, Z, Z[::-1] * 1.5)


def test_entries_one_by_one():
    def f(a):
        b = np.zeros((3, 3))
        for i, v in enumerate(a.T.flat):
            b.flat[i] = v * v
            a.flat[i] += v
        for i, v in np.ndenumerate(a):
            b[i] *= v
        for v in np.nditer(a, op_flags=["readwrite"]):
            v[...] = v * v + 1.0
        for v, w in np.nditer([a, b]):
            a[0, 0] += v * w
        return (a * b).sum() + a.flat[1:3].sum()

    check_mutation(f, A)


def test_complex_arrays_as_real_ones():
    def f(z):
        v = z.view(float)
        v[1] = v[0] * v[2]
        v *= 2.0
        return np.sum(np.abs(z) ** 2) + v[3]

    check_mutation(f, Z)


def test_structured_arrays():
    kind = np.dtype([("a", float), ("b", float, 2)])

    def f(x):
        s = np.zeros(2, kind)
        s["a"] = x[:2] ** 2
        s["b"][:, 1] = x[2:]
        s["b"][0] += s["a"]
        return (s["a"] * s["b"][:, 1]).sum() + s["b"][0, 0]

    check_mutation(f, X)


def test_a_field_of_one_item():
    kind = np.dtype([("a", float), ("b", float)])

    def f(x):
        s = np.zeros(2, kind)
        s[1]["a"] = x[0]
        return (s["a"] * x[:2]).sum()

    check_mutation(f, X)


def by_attributes(x):
    r = np.recarray(4, [("a", float), ("b", float)])
    r.a = x
    r.b[:] = x * r.a
    r.a[0] = r.b[1] * x[2]
    return (r.a * r.b).sum()


def by_attributes_of_records(x):
    r = np.recarray(4, [("a", float), ("b", float)])
    r["a"] = x
    r["b"] = 1.0
    r[2].b = x[0] * r[1].a
    return sum(e.a * e.b for e in r)


@pytest.mark.parametrize("f", [by_attributes, by_attributes_of_records])
def test_fields_that_are_attributes(f):
    check_mutation(f, X)


def test_fields_that_are_attributes_in_forward_mode():
    v = np.array([1.0, 0.5, -2.0, 0.7])
    expected = (by_attributes(X + 1e-6 * v) - by_attributes(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(jvp(by_attributes, (X.copy(),), (v,))[1], expected, rtol=1e-6)


def made_read_only(x):
    y = x * x
    y[0] = x[1] * y[2]
    y.setflags(write=False)
    try:
        y[1] = 7.0
    except ValueError:
        x[1] *= y[0]
    return (y * x).sum()


def shaped_anew(x):
    y = x * x
    y[0] *= y[1]
    y.resize(2, 2, refcheck=False)
    y[0] *= y[1]
    y.resize(4, refcheck=False)
    return (y * x).sum()


@pytest.mark.parametrize("f", [made_read_only, shaped_anew])
def test_what_changes_no_entries(f):
    check_mutation(f, X)
    v = np.array([1.0, 0.5, -2.0, 0.7])
    expected = (f(X + 1e-6 * v) - f(X - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(jvp(f, (X.copy(),), (v,))[1], expected, rtol=1e-6)


def test_arrays_of_objects():
    from fractions import Fraction

    def f(x):
        y = x * 2
        y[0] = y[1] * y[0]
        y += x
        return y.sum()

    x = np.array([Fraction(1, 2), Fraction(1, 3)], object)
    (found,) = gradient(f, x)
    assert found.tolist() == [Fraction(4, 3) + 1, Fraction(2) + 3]


def test_an_array_that_fills_an_array_of_objects(path):
    def f(x):
        a = np.empty((2, 2), object)
        a.fill(x)
        return np.sum(a[0, 0] * a[1, 1]) + a[0, 1][0]

    assert gradient(f, np.array([1.0, 2.0, 3.0]))[0].tolist() == [3, 4, 6]


def test_arrays_in_arrays_of_objects():
    def f(x):
        y, z = np.empty(2, object), x * 2
        y[0], y[1] = z, [x[1] * x[1]]
        z[0] = 5.0
        y[0][1] *= x[2]
        y[1].append(y[0][2])
        return y[0].sum() * sum(y[1])

    check_mutation(f, X)
    assert jvp(f, (X.copy(),), (X,))[1] == pytest.approx(gradient(f, X.copy())[0] @ X)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, np.complex64])
def test_dtypes_are_kept(dtype):
    def f(x):
        y = x * x
        x[1:] += y[:-1]
        y *= x
        return np.sum(np.abs(y))

    x = np.array([0.5, 1.5, 2.0], dtype)
    (found,) = gradient(f, x.copy())
    wide = np.array([0.5, 1.5, 2.0], complex if dtype is np.complex64 else float)
    assert found.dtype == dtype
    assert found == pytest.approx(gradient(f, wide)[0], rel=2e-3)


# -- integers --------------------------------------------------------------------------------------


def test_a_real_number_in_an_array_of_integers():
    def f(x):
        y = np.zeros_like(x)
        for i in range(3):
            y[i] = x[i] * 0.5
        return y.sum() * 1.0

    with pytest.warns(UserWarning, match=r"rounded(.|\n)*test_inplace.py:\d+, in f"):
        value, (found,) = withgradient(f, np.array([1, 2, 3]))
    assert (value, found.tolist()) == (2.0, [0.0, 0.0, 0.0])
    value, (found,) = withgradient(f, np.array([1.0, 2.0, 3.0]))
    assert (value, found.tolist()) == (3.0, [0.5, 0.5, 0.5])


def test_nothing_is_said_of_rounding_that_does_not_matter():
    def f(x):
        n = np.zeros(2, int)
        n[0] = x[0] * 3.0
        return x[n[0]] * x[1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradient(f, np.array([0.4, 2.0]))[0].tolist() == [0.0, 4.0]


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
def test_integers_are_points_of_the_line(dtype):
    def f(x):
        y = x * 2
        x[0] = x[1] * x[2]
        x += y
        x[1:] *= 2
        return (x * 1.0 * y).sum()

    x = np.array([1, 2, 3], dtype)
    (found,) = gradient(f, x.copy())
    (expected,) = gradient(f, x.astype(float))
    assert found.dtype == np.float64
    assert found.tolist() == expected.tolist()


def test_an_index_that_is_written_to():
    def f(x):
        i = np.array([0, 1])
        y = x[i]
        i[0] = 3
        z = x[i] * y
        i += 1
        m = x > 0
        w = np.where(m, x, 2 * x)
        m[:] = False
        return z.sum() + (w * w).sum() + i.sum()

    check_mutation(f, X)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda x: operator.setitem(x, 7, 1.0), IndexError),
        (lambda x: operator.setitem(x, slice(0, 2), np.ones(3)), ValueError),
        (lambda x: operator.iadd(x, np.ones(3)), ValueError),
        (lambda x: operator.iadd(x, 1j), TypeError),
        (lambda x: operator.setitem(x, 0, "a"), ValueError),
        (lambda x: operator.delitem(x, 0), ValueError),
        (lambda x: np.add(x, np.ones((2, 4)), out=x), ValueError),
        (lambda x: np.copyto(x, 1j), TypeError),
        (lambda x: np.place(x, x > 0, []), ValueError),
        (lambda x: np.put(x, [9], 1.0), IndexError),
        (lambda x: operator.setitem(np.broadcast_to(x, (2, 4)), 0, 1.0), ValueError),
    ],
)
def test_errors_are_those_of_the_plain_call(path, write, error):
    def f(x):
        write(x)
        return x.sum()

    with pytest.raises(error) as plain:
        f(X.copy())
    with pytest.raises(error) as found:
        gradient(f, X.copy())
    assert str(found.value) == str(plain.value)


def windows(x):
    return np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True)


def parts_of_windows(x):
    w = windows(x)
    w[0, 0] = x[1] * x[2]
    w[1] = x[1:] * w[0]
    w[..., 1] *= 2.0
    return (x * x).sum() * w[1, 1]


def augmented_windows(x):
    y = x * x
    w = windows(y)
    w[1] *= x[0]
    w[0, 1] += x[2]
    w[::2] = y[1] * x[:2]
    for row in w:
        row[0] = row[1] * x[0]
    return (y * x).sum() + (w * w).sum()


@pytest.mark.parametrize("f", [parts_of_windows, augmented_windows])
def test_parts_of_views_that_overlap_themselves(f, path):
    x = np.array([0.7, 1.3, -0.4])
    (x̄,) = check_mutation(f, x)
    v = np.array([1.0, -0.5, 2.0])
    assert jvp(f, (x.copy(),), (v,))[1] == pytest.approx(x̄ @ v)
    h = 1e-5 * v
    expected = (gradient(f, x + h)[0] - gradient(f, x - h)[0]) / 2e-5
    np.testing.assert_allclose(hvp(f, x, v), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.resize(2, refcheck=False),
        lambda x: operator.setitem(np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)), ..., 1.0),
        lambda x: operator.setitem(memoryview(bytearray(8)), 0, 1),
        lambda x: x.setfield(1, int),
        lambda x: x.byteswap(True),
    ],
)
def test_what_is_not_followed_is_refused(write):
    def f(x):
        write(x)
        return x.sum()

    with pytest.raises(UnsupportedError, match="in place"):
        gradient(f, X.copy())


# -- what was there before -------------------------------------------------------------------------


def _item(v):
    w = v @ v
    v[0] = 3.0
    return w


def _alias(v):
    w = v.sum()
    u = v
    u += 1
    return w


def _out(v):
    w = v @ v
    np.add(v, 1, out=v)
    return w


def _method(v):
    w = v.sum()
    v.fill(2.0)
    return w


@pytest.mark.parametrize("change", [_item, _alias, _out, _method])
def test_constant_arrays_that_are_written_to(path, change):
    """What is read before a change is not read after it, nor is a residual of the reverse pass."""

    def value(x):
        return change(np.zeros(3)) + x.sum()

    def residual(x):
        v = np.zeros(3)
        y = x * v
        change(v)
        return y.sum()

    for f, expected in ((value, np.ones(3)), (residual, np.zeros(3))):
        assert withgradient(f, np.ones(3))[1][0] == pytest.approx(expected)


def test_what_is_overwritten_is_structurally_zero():
    def f(x):
        y = np.sqrt(x)
        y[x == 0] = 0.0
        return y.sum()

    assert gradient(f, np.array([0.0, 4.0]))[0].tolist() == [0.0, 0.25]


def test_a_pullback_of_an_array():
    def f(x):
        x[0] *= 2.0
        return x

    x = X.copy()
    y, back = pullback(f, x)
    assert y is x
    for _ in range(2):
        assert back(np.arange(1.0, 5.0))[0].tolist() == [2.0, 2.0, 3.0, 4.0]
    assert x[0] == 2 * X[0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.flat[1:3].sum() * x.flat[0],
        lambda x: (np.array(x.flat) * np.arange(4.0)).sum(),
        lambda x: sum(v * v for v in x.T.flat),
        lambda x: (np.asarray(x.T.flat) * x.flat.copy()).sum(),
    ],
)
def test_flat_is_read(f):
    check_gradient(f, np.array([[0.4, 1.2], [-0.7, 2.1]]))


@pytest.mark.parametrize("index", [slice(1, None), 1, np.array([0, 2]), np.array([2, 2])])
def test_items_of_flat_in_forward_mode(index):
    x, ẋ = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 10.0], [100.0, 1000.0]])
    found = jvp(lambda x: np.sum((x * x).flat[index]), (x,), (ẋ,))[1]
    assert found == np.sum((2 * x * ẋ).flat[index])
    assert jvp(lambda x: np.array((x * x).flat).sum(), (x,), (ẋ,))[1] == np.sum(2 * x * ẋ)


def test_nditer_over_a_new_array_in_a_compiled_program():
    def f(x):
        s = 0.0
        for v, w in np.nditer([x * x, x]):
            s = s + v * w
        return s

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert np.array_equal(grad(f)(x), 3 * x**2)


def entries_by_flat(x):
    y = np.zeros((2, 2))
    y.flat[1:] = x[1:] ** 2
    y.flat[0] = x[0]
    return (y @ y).sum()


def parts_of_complex_numbers(x):
    y = np.zeros(4, complex)
    y.real = x * x
    y.imag = x
    return (np.abs(y) ** 2).sum()


def items_by_number(x):
    m = (x * x).reshape(2, 2)
    it = np.nditer(m, flags=["multi_index"], op_flags=["readwrite"])
    while not it.finished:
        i, j = it.multi_index
        it[0] = m[j, i] * it[0] if i < j else it.value * 2
        it.iternext()
    return (m**2).sum()


def items_of_several(x):
    x, made = x * 1.5, ["readwrite", "allocate"]
    it = np.nditer([x, x[::-1], None, None], op_flags=[["readwrite"], ["readonly"], made, made])
    with it:
        for a, b, c, d in it:
            np.multiply(a, b, out=c)
            d[...] = a * a
            it[2:] = it[3] * 2, it[2] + 1
            a[...] = b * 3
        return (it.operands[2] * it.operands[3]).sum()


def another_shape(x):
    y = x * x
    y.shape = (2, 2)
    return (y @ y).sum()


def items_of_nditer(x):
    y = x * x
    with np.nditer(y, op_flags=["readwrite"]) as it:
        for v in it:
            v[...] = 2 * v * v
    return (y * x).sum()


@pytest.mark.parametrize(
    "f",
    [
        entries_by_flat,
        parts_of_complex_numbers,
        another_shape,
        items_of_nditer,
        items_by_number,
        items_of_several,
    ],
)
def test_writes_that_a_compiled_program_leaves_to_the_general_path(f):
    x = np.array([0.7, -1.3, 1.9, 0.4])
    check_gradient(f, x)
    np.testing.assert_allclose(grad(f)(x), pullback(f, x)[1](1.0)[0])


@pytest.mark.parametrize("path", ["compiled", "general"])
def test_entries_of_arrays_without_axes_are_put(path):
    def f(x):
        a, b, c = np.zeros(()), np.zeros(()), np.zeros(())
        np.place(a, True, [x[0]])
        np.put(b, [0, 0], [x[1], x[2]])
        np.putmask(c, np.True_, x[3])
        return a + 2 * b + 3 * c

    x = np.array([0.6, -0.4, 1.3, 0.9])
    with by_the_general_path() if path == "general" else contextlib.nullcontext():
        value, (x̄,) = withgradient(f, x)
    assert value == f(x)
    np.testing.assert_array_equal(x̄, [1, 0, 2, 3])


def test_truth_values_are_written_at_places_that_come_twice():
    def f(x):
        mask = np.zeros(3, bool)
        np.logical_or.at(mask, [0, 0, 2], [True, False, x[0] > 0])
        return np.where(mask, x, x**2).sum()

    np.testing.assert_array_equal(gradient(f, np.array([0.5, 2.0, 3.0]))[0], [1, 4, 1])
    assert jvp(f, (np.array([0.5, 2.0, 3.0]),), (np.ones(3),)) == (7.5, 6.0)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 2, 3)])
def test_writes_to_arrays_without_entries(shape):
    def f(x):
        w = np.empty(shape)
        w[...] = 2 * x
        return np.sum(w) + np.sum(x)

    _, back = pullback(f, np.zeros(shape))
    assert back(1.0)[0].shape == grad(f)(np.zeros(shape)).shape == shape


@pytest.mark.parametrize(
    ("op", "slope"),
    [("*", 2.0), ("/", 0.5), ("+", 1.0), ("-", 1.0)],
    ids=["mul", "div", "add", "sub"],
)
def test_arrays_of_arrays_by_numbers_in_place(op, slope):
    def f(x, s):
        o = np.empty(2, object)
        o[0], o[1] = x, x[:1] * 3.0
        if op == "*":
            o[:] *= s
        elif op == "/":
            o[:] /= s
        elif op == "+":
            o[:] += s
        else:
            o[:] -= s
        return np.sum(o[0]) + np.sum(o[1])

    x = np.array([1.0, 2.0, 5.0])
    by_x, by_s = gradient(f, x, 2.0)
    np.testing.assert_allclose(by_x, [4 * slope, slope, slope])
    np.testing.assert_allclose(by_s, (f(x, 2.0 + 1e-6) - f(x, 2.0 - 1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (3,)])
def test_places_that_are_not_there(shape, path):
    """np.put_along_axis raises what the plain call does."""

    def f(x):
        y = x * 1.0
        np.put_along_axis(y, np.zeros((1, 2), int), 2.0, 1)
        return y.sum()

    with pytest.raises((IndexError, ValueError)) as plain:
        f(np.zeros(shape))
    with pytest.raises(plain.type, match=str(plain.value)):
        gradient(f, np.zeros(shape))


def over_numbers(x):
    steps = np.nditer([3, x, None])
    for a, b, c in steps:
        c[...] = np.sin(a * b)
    return float(steps.operands[-1]) * x


def over_lists(x):
    total = 0.0
    with np.nditer([x, [x, x * x]]) as steps:
        for a, b in steps:
            total = total + a * b
    return total


@pytest.mark.parametrize(
    "f", [over_numbers, over_lists, lambda x: sum([v * v for v in np.nditer(x)])]
)
def test_iterators_over_numbers_and_lists(f):
    check_modes(f, 0.7)


class Pose(np.ndarray):
    """An array whose class says what + is, and leaves += to arrays."""

    def __add__(self, other):
        return np.array([self[0] * other[0], 7.0]).view(Pose)

    def __mul__(self, other):
        return 3.0


@pytest.mark.parametrize(
    ("change", "slope"), [(operator.iadd, 3.0 + 2 * 2.0), (operator.imul, 12 * 2.0)]
)
def test_in_place_operators_of_arrays_ask_no_class(change, slope):
    def f(x):
        p = np.array([x, 2.0]).view(Pose)
        change(p, np.array([3.0, 3.0]) if change is operator.iadd else np.array([3.0, x]))
        return p[0] * x if change is operator.iadd else p[0] * p[1]

    y = f(2.0)
    assert withgradient(f, 2.0) == (y, (slope,))
    assert jvp(f, (2.0,), (1.0,)) == (y, slope)
