"""Masked arrays: the value of the plain call, slopes of what counts, no NaN from under a mask."""

import copy

import numpy as np
import pytest

from morula import grad, gradient, hvp, jvp, pullback

ma = np.ma
MASK = np.array([[0, 1, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0]], bool)
ALL = np.array([[0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], bool)
X = np.array([[0.7, -1.1, 1.9, 0.3], [2.2, 0.9, 1.4, 0.6], [1.3, 0.4, 2.8, 1.7]])
W = np.linspace(0.5, 1.6, 12).reshape(3, 4)
V = np.array([[0.3, 1.0, -0.4, 0.8], [1.0, 0.2, 0.6, -0.9], [0.5, -0.3, 0.1, 0.7]])
Y = ma.array(W, mask=[[0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]])


def m(x):
    return ma.array(x, mask=MASK)


def shaped(y):
    """One number out of an array, masked or not: each entry that counts with a weight of its own."""
    return (y * np.linspace(0.5, 1.6, y.size).reshape(y.shape)).sum()


CALLS = {
    # construction
    "array": lambda x: shaped(ma.array(x * x, mask=MASK)),
    "masked_array": lambda x: shaped(ma.masked_array(x * x, MASK)),
    "MaskedArray": lambda x: shaped(ma.MaskedArray(data=x * x, mask=MASK, copy=True)),
    "of a list": lambda x: shaped(ma.array([x[0, 0], x[1, 1] ** 2, x[2, 2]], mask=[0, 0, 1])),
    "of rows": lambda x: shaped(ma.array([x[0], x[2] ** 2], mask=[[0, 1, 0, 0], [0, 0, 1, 0]])),
    "of a masked one": lambda x: shaped(ma.array(m(x), mask=MASK[::-1])),
    "without a mask": lambda x: shaped(ma.array(x * x)),
    "asarray": lambda x: shaped(ma.asarray(x * x)),
    "masked_where": lambda x: shaped(ma.masked_where(x > 1, x * x)),
    "masked_where, names": lambda x: shaped(ma.masked_where(condition=x > 1, a=x * x)),
    "masked_invalid": lambda x: shaped(ma.masked_invalid(np.log(x))),
    "masked_greater": lambda x: shaped(ma.masked_greater(x * x, 1.0)),
    "masked_greater, names": lambda x: shaped(ma.masked_greater(x=x * x, value=1.0)),
    "masked_less_equal": lambda x: shaped(ma.masked_less_equal(x, 1.0) ** 2),
    "masked_equal": lambda x: shaped(ma.masked_equal(np.where(x > 1, 1.0, x), 1.0) ** 2),
    "masked_not_equal": lambda x: shaped(ma.masked_not_equal(np.where(x > 1, 1.0, x * x), 1.0) * x),
    "masked_inside": lambda x: shaped(ma.masked_inside(x, 0.5, 1.5) ** 2),
    "masked_outside": lambda x: shaped(ma.masked_outside(x, 0.5, 1.5) ** 2),
    "masked_values": lambda x: shaped(ma.masked_values(np.where(x > 1, 1.0, x), 1.0) ** 2),
    "fix_invalid": lambda x: shaped(ma.fix_invalid(np.sqrt(x)) ** 2),
    # operators and universal functions
    "+ -": lambda x: shaped(m(x) + x - Y),
    "* /": lambda x: shaped(m(x) * Y / (1 + m(x) ** 2)),
    "reflected": lambda x: shaped(2.0 / m(x) - x * m(x) + 2.0 ** m(x)),
    "-m, abs": lambda x: shaped(-m(x) + abs(m(x))),
    "powers": lambda x: shaped(m(x) ** 1.5 + m(x) ** 3 + m(x) ** Y),
    "NumPy's scalar": lambda x: shaped(np.float64(2.0) * m(x) * x[0, 0]),
    "a Python number": lambda x: shaped(x[0, 0] * m(x) + x[2, 1]),
    "modulo": lambda x: shaped(m(x) % 0.8),
    "ma.sqrt": lambda x: shaped(ma.sqrt(m(x))),
    "ma.sqrt of data": lambda x: shaped(ma.sqrt(x)),
    "ma.log": lambda x: shaped(ma.log(x) * x),
    "ma.exp": lambda x: shaped(ma.exp(m(x))),
    "ma.arccosh": lambda x: shaped(ma.arccosh(x)),
    "ma.divide": lambda x: shaped(ma.divide(x, np.where(x > 1, x, 0.0))),
    "ma.add": lambda x: shaped(ma.add(m(x), x * Y)),
    "ma.multiply": lambda x: shaped(ma.multiply(x, m(x))),
    "ma.power": lambda x: shaped(ma.power(m(x), 2.5)),
    "ma.maximum": lambda x: shaped(ma.maximum(m(x), 1.0)),
    "ma.hypot": lambda x: shaped(ma.hypot(m(x), Y)),
    "np.sqrt": lambda x: shaped(np.sqrt(m(x))),
    "np.log": lambda x: shaped(np.log(m(x)) ** 2),
    "np.multiply": lambda x: shaped(np.multiply(m(x), x)),
    "np.add": lambda x: shaped(np.add(x, m(x) ** 2)),
    "np.maximum": lambda x: shaped(np.maximum(m(x), 1.0)),
    # what lies under the mask
    "data under the mask": lambda x: (ma.sin(m(x)) + x).data.sum(),
    "0/0 under the mask": lambda x: shaped(m(x) / m(x - np.where(MASK, x, 0.0))),
    "a root of -1 under it": lambda x: shaped(np.sqrt(m(x)) * m(x)),
    "data": lambda x: (m(x).data ** 2).sum(),
    # reductions
    "sum": lambda x: m(x * x).sum(),
    "sum by axis": lambda x: shaped(m(x * x).sum(axis=0)),
    "sum, axes kept": lambda x: shaped(m(x * x).sum(axis=(0, 1), keepdims=True)),
    "ma.sum": lambda x: shaped(ma.sum(m(x * x), axis=-1)),
    "np.sum": lambda x: shaped(np.sum(m(x * x), axis=1)),
    "np.sum, by name": lambda x: np.sum(a=m(x * x)),
    "mean": lambda x: m(x * x).mean(),
    "mean by axis": lambda x: shaped(m(x * x).mean(axis=1)),
    "np.mean": lambda x: shaped(np.mean(m(x * x), 0)),
    "mean of a row of masked ones": lambda x: shaped(ma.array(x * x, mask=ALL).mean(axis=1)),
    "var": lambda x: m(x).var(),
    "var by axis": lambda x: shaped(m(x).var(axis=1, ddof=1)),
    "ma.var": lambda x: shaped(ma.var(m(x), axis=0, keepdims=True)),
    "var of a row of masked ones": lambda x: shaped(ma.array(x, mask=ALL).var(axis=1)),
    "std": lambda x: shaped(m(x).std(axis=0)),
    "np.std": lambda x: np.std(m(x)),
    "std of a row of masked ones": lambda x: shaped(ma.array(x, mask=ALL).std(axis=1, ddof=2)),
    "prod": lambda x: m(x).prod(),
    "prod by axis": lambda x: shaped(m(x).prod(axis=0)),
    "max": lambda x: m(x).max(),
    "max by axis": lambda x: shaped(m(x).max(axis=1)),
    "np.max": lambda x: shaped(np.max(m(x), axis=0, keepdims=True)),
    "ma.min": lambda x: shaped(ma.min(m(x), axis=0)),
    "min of a row of masked ones": lambda x: shaped(ma.array(x, mask=ALL).min(axis=1)),
    "ptp": lambda x: shaped(m(x).ptp(axis=1)),
    "cumsum": lambda x: shaped(m(x * x).cumsum(axis=1)),
    "cumprod": lambda x: shaped(m(x).cumprod(axis=0)),
    "anom": lambda x: shaped(m(x).anom(axis=1) ** 2),
    "dot": lambda x: shaped(ma.dot(m(x), Y.T)),
    "dot as a method": lambda x: shaped(m(x).dot(Y.T)),
    "dot, strict": lambda x: shaped(ma.dot(m(x), Y.T, strict=True)),
    "@": lambda x: shaped(m(x)[:, :3] @ Y[:, :3]),
    "np.dot": lambda x: shaped(np.dot(m(x), Y.T)),
    "inner": lambda x: ma.inner(m(x)[0], Y[0]),
    "outer": lambda x: shaped(ma.outer(m(x)[0], Y[1])),
    "trace": lambda x: m(x).trace(1),
    "average": lambda x: ma.average(m(x * x)),
    "average with weights": lambda x: shaped(ma.average(m(x), axis=1, weights=x[0] ** 2)),
    "average by active weights": lambda x: shaped(ma.average(m(W), axis=0, weights=m(x) ** 2)),
    "average, returned": lambda x: sum(ma.average(m(x), weights=x * x, returned=True)),
    "median": lambda x: ma.median(m(x)),
    "median by axis": lambda x: shaped(ma.median(ma.array(x, mask=ALL), axis=1)),
    # access, shapes, selection
    "filled": lambda x: shaped(m(x * x).filled(7.0)),
    "filled with what is active": lambda x: shaped(m(x * x).filled(x[0, 0] ** 2)),
    "filled with nothing said": lambda x: shaped(ma.filled(m(x * x)) * (~MASK)),
    "compressed": lambda x: shaped(m(x * x).compressed()),
    "ma.compressed": lambda x: shaped(ma.compressed(m(x * x))),
    "an entry": lambda x: m(x * x)[2, 1] * m(x)[0, 0],
    "a row": lambda x: shaped(m(x * x)[1]),
    "by a masked condition": lambda x: shaped(m(x * x)[m(x) > 1.0]),
    "by a list": lambda x: shaped(m(x * x)[[0, 2, 2], 1:]),
    "rows": lambda x: sum([shaped(row) * i for i, row in enumerate(m(x * x))]),
    "reshape": lambda x: shaped(m(x * x).reshape(2, 6)),
    "ma.reshape": lambda x: shaped(ma.reshape(m(x * x), (6, 2))),
    "np.reshape": lambda x: shaped(np.reshape(m(x * x), (6, 2))),
    "T": lambda x: shaped(m(x * x).T),
    "transpose": lambda x: shaped(ma.transpose(m(x * x))),
    "ravel": lambda x: shaped(m(x * x).ravel()),
    "swapaxes": lambda x: shaped(m(x * x).swapaxes(0, 1)),
    "repeat": lambda x: shaped(m(x * x).repeat(2, axis=0)),
    "take": lambda x: shaped(m(x * x).take([0, 2], axis=1)),
    "copy": lambda x: shaped(m(x * x).copy()),
    "copy.copy": lambda x: shaped(copy.copy(m(x * x))),
    "diagonal": lambda x: shaped(m(x * x).diagonal()),
    "where": lambda x: shaped(ma.where(x > 1, m(x * x), Y)),
    "concatenate": lambda x: shaped(ma.concatenate([m(x * x), Y, x])),
    "stack": lambda x: shaped(ma.stack([m(x * x), Y], axis=1)),
    "vstack": lambda x: shaped(ma.vstack((m(x * x), Y))),
    "hstack": lambda x: shaped(ma.hstack((m(x * x), Y))),
    "clip": lambda x: shaped(m(x * x).clip(0.5, x[0, 2])),
    "np.clip": lambda x: shaped(np.clip(m(x * x), 0.5, 3.0)),
    "sort": lambda x: shaped(ma.sort(m(x * x), axis=1)),
    "diff": lambda x: shaped(ma.diff(m(x * x), axis=1)),
    "np.asarray": lambda x: shaped(np.asarray(m(x * x))),
    "real": lambda x: shaped(m(x * x).real),
}  # fmt: skip


def differences(f, x, v, h=1e-6):
    return (f(x + h * v) - f(x - h * v)) / (2 * h)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_differences(name):
    f = CALLS[name]
    with np.errstate(all="ignore"):
        value, slope = f(X), differences(f, X, V)
    y, back = pullback(f, X)
    np.testing.assert_array_equal(y, value)
    for g in (gradient(f, X)[0], back(1.0)[0], back(1.0)[0], grad(f)(X)):
        assert type(g) is np.ndarray
        np.testing.assert_allclose(np.vdot(g, V), slope, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(jvp(f, (X,), (V,))[1], slope, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives_are_differences(name):
    f = CALLS[name]
    first, second = gradient(f, X + 1e-6 * V)[0], gradient(f, X - 1e-6 * V)[0]
    np.testing.assert_allclose(hvp(f, X, V), (first - second) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_single_precision_is_kept(name):
    g = gradient(CALLS[name], X.astype("f4"))[0]
    assert g.dtype == np.float32
    np.testing.assert_allclose(g, gradient(CALLS[name], X)[0], rtol=1e-3, atol=1e-4)


def both(f, *args):
    """The same gradient, all ways."""
    found = [gradient(f, *args)[0], pullback(f, *args)[1](1.0)[0], grad(f)(*args), grad(f)(*args)]
    for g in found[1:]:
        assert type(g) is type(found[0])
        np.testing.assert_array_equal(ma.getmaskarray(g), ma.getmaskarray(found[0]))
        np.testing.assert_allclose(ma.getdata(g), ma.getdata(found[0]))
    return found[0]


def test_the_gradient_of_a_masked_argument_has_its_mask():
    x = ma.array(X, mask=MASK)
    g = both(lambda m: (m**2).sum(), x)
    assert type(g) is ma.MaskedArray
    np.testing.assert_array_equal(g.mask, MASK)
    np.testing.assert_allclose(g.data, np.where(MASK, 0.0, 2 * X))
    assert not np.shares_memory(g.data, x.data)
    assert not np.shares_memory(g.mask, x.mask)
    descended = x - 0.1 * g
    np.testing.assert_array_equal(descended.mask, MASK)


def test_a_masked_argument_without_a_mask_and_of_other_dtypes():
    g = both(lambda m: (m**2).sum(), ma.array([1.0, 2.0]))
    assert type(g) is ma.MaskedArray
    assert g.mask is ma.nomask
    assert g.tolist() == [2.0, 4.0]
    assert both(lambda m: (m**2).sum(), ma.array([1, 2, 3], mask=[0, 1, 0])).dtype == np.float64
    short = both(lambda m: (m**2).mean(), ma.array(X.astype("f4"), mask=MASK))
    assert short.dtype == np.float32
    g = both(lambda m: np.sum(np.abs(m.filled(0)) ** 2), ma.array([3 + 4j, 1j], mask=[0, 1]))
    assert g.data.tolist() == [6 + 8j, 0]
    assert gradient(lambda m, x: m.sum() * x, ma.array([True, False]), 2.0) == (None, 1.0)


def test_both_arguments_of_a_product():
    a, b = ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), ma.array([4.0, 5.0, 6.0], mask=[0, 0, 1])
    ā, b̄ = gradient(lambda a, b: (a * b).sum(), a, b)
    assert ā.filled(-1).tolist() == [4, -1, 0]
    assert b̄.filled(-1).tolist() == [1, 0, -1]


def test_the_mask_is_that_on_entry():
    def f(m):
        y = (m * m).sum()
        m[0] = ma.masked
        return y + (3 * m).sum()

    x = ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    g = gradient(f, x)[0]
    assert g.mask.tolist() == [False, True, False]
    assert g.filled(-1).tolist() == [2, -1, 9]
    assert x.mask.tolist() == [True, True, False]


def test_tangents_and_cotangents_may_be_masked():
    x, v = ma.array(X, mask=MASK), ma.array(V, mask=MASK)
    y, ẏ = jvp(lambda m: (m**2).sum(), (x,), (v,))
    np.testing.assert_allclose(ẏ, 2 * np.sum(np.where(MASK, 0, X * V)))
    assert jvp(lambda m: (m**2).sum(), (x,), (V,))[1] == ẏ
    y, back = pullback(lambda m: m**2, x)
    assert type(y) is ma.MaskedArray
    for ȳ in (ma.array(W, mask=MASK), W):
        np.testing.assert_allclose(back(ȳ)[0].filled(0), np.where(MASK, 0, 2 * X * W))


def filled_in_a_loop(x):
    y = ma.zeros(3)
    for i in range(3):
        y[i] = x[0, i] ** 2
    return shaped(y)


def some_masked_later(x):
    y = m(x * x)
    y[0] = ma.masked
    y[1, 1] = x[0, 0]
    return shaped(y)


def written_by_a_condition(x):
    y = m(x * x)
    y[y > 1.0] = x[0, 0]
    return shaped(y)


def with_a_mask_of_its_own(x):
    y = m(x * x)
    y[0] = ma.array(x[1], mask=[0, 0, 1, 0])
    return shaped(y * y)


def in_place(x):
    y = m(x * x)
    y += x
    y *= Y
    y -= 1.0
    y /= x + 2.0
    y **= 2
    return shaped(y)


def in_place_through_a_row(x):
    y = m(x * x)
    y[1] *= 3.0
    row = y[2]
    row += x[0]
    return shaped(y)


def read_before_it_is_written(x):
    y = m(x.copy())
    z = y * y
    y[2] = 0.0
    return shaped(z) + shaped(y)


def in_the_data(x):
    y = m(x * x)
    y.data[0, 0] = x[1, 1]
    return shaped(y)


def mask_set(x):
    y = ma.array(x * x)
    y.mask = MASK
    return shaped(y)


WRITING = [
    filled_in_a_loop, some_masked_later, written_by_a_condition, with_a_mask_of_its_own, in_place,
    in_place_through_a_row, read_before_it_is_written, in_the_data, mask_set,
]  # fmt: skip


@pytest.mark.parametrize("f", WRITING)
def test_writes(f):
    value, slope = f(X.copy()), differences(f, X, V)
    for _ in range(3):
        x = X.copy()
        y, back = pullback(f, x)
        assert y == value
        np.testing.assert_allclose(np.vdot(back(1.0)[0], V), slope, rtol=1e-6)
        np.testing.assert_allclose(np.vdot(back(1.0)[0], V), slope, rtol=1e-6)
        np.testing.assert_allclose(np.vdot(grad(f)(x), V), slope, rtol=1e-6)
        np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("f", WRITING)
def test_writes_in_forward_mode(f):
    try:
        found = jvp(f, (X,), (V,))[1]
    except NotImplementedError:
        return
    np.testing.assert_allclose(found, differences(f, X, V), rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.median(m(x)),
        lambda x: np.add.reduce(m(x), axis=None),
        lambda x: ma.add.reduce(m(x), axis=None),
        lambda x: ma.cov(m(x)).sum(),
        lambda x: ma.polyfit(m(x)[0], m(x)[1], 1).sum(),
        lambda x: np.linalg.norm(m(x)),
        lambda x: m(x).sum(out=ma.zeros(())).sum(),
        lambda x: np.sum(ma.choose([0, 1, 0, 1], [x[0], x[1]])),
    ],
)
def test_what_has_no_rule_is_refused(f):
    for _ in range(3):
        with pytest.raises(NotImplementedError, match=r"[mM]asked ?[aA]rray"):
            grad(f)(X)


def test_a_write_to_a_hard_mask_is_refused():
    def f(x):
        y = ma.array(x * x, mask=MASK, hard_mask=True)
        y[0] = 1.0
        return y.sum()

    with pytest.raises(NotImplementedError, match="hard mask"):
        gradient(f, X)


def test_sorting_in_place_is_refused():
    def f(x):
        y = m(x * x)
        y.sort(axis=1)
        return shaped(y)

    with pytest.raises(NotImplementedError):
        gradient(f, X)


def test_a_masked_result_is_no_number():
    with pytest.raises(TypeError, match="MaskedConstant"):
        gradient(lambda x: ma.array(x, mask=True).sum(), X)


def test_what_is_asked_of_masked_arrays_is_constant():
    def f(x):
        y = m(x)
        n = y.count() + ma.count_masked(y) + len(y) + y.ndim + y.size
        if y.mask.any() and (y > 0).any() and isinstance(y, np.ndarray) and "--" in str(y):
            return y.sum() * n * ma.argmax(y)
        return y.sum()

    np.testing.assert_allclose(gradient(f, X)[0], np.where(MASK, 0, 29 * ma.argmax(m(X))))


def test_empty_masked_arrays():
    x = ma.array(np.zeros((0, 3)))
    assert both(lambda m: (m * 2).sum(), x).shape == (0, 3)
    f = lambda x: ma.array(x, mask=np.zeros(0, bool)).filled(1.0).prod()
    assert gradient(f, np.zeros(0))[0].shape == (0,)


def test_all_that_is_masked_has_no_slope():
    x = ma.array([np.nan, 1.0], mask=[1, 0])
    assert both(lambda m: (np.sqrt(m - 1.0) * 0.0 + m).sum() + m.mean(), x).data[0] == 0.0
    x = np.array([0.0, 2.0])
    g = gradient(lambda x: (x / ma.masked_equal(x, 0.0)).sum() + ma.log(x).sum(), x)[0]
    assert g.tolist() == [0.0, 0.5]
