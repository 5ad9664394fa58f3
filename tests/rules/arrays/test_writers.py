"""Shuffles, ufunc.at with repeats, np.nan_to_num in place, loops over the entries of arrays."""

import numpy as np
import pytest

from morula import UnsupportedError, grad, gradient, hvp, jvp, pullback

X = np.array([3.0, 1.5, 2.0, 0.5])
V = np.array([0.3, -0.7, 0.2, 0.9])
WEIGHTS = np.array([1.0, -2.0, 3.0, 0.5])


def loss(write):
    """A function of x that writes to w = x² and then weighs it, by its place."""

    def f(x):
        w = x * x
        write(w, x)
        return (w * w * WEIGHTS[: w.size].reshape(w.shape)).sum()

    return f


def shuffled(w, x):
    np.random.default_rng(3).shuffle(w)


def shuffled_rows(w, x):
    m = w.reshape(2, 2)
    np.random.default_rng(1).shuffle(m, axis=1)


def shuffled_as_ever(w, x):
    np.random.RandomState(2).shuffle(w[1:])


def shuffled_list(w, x):
    items = [w[0], x[1], w[2] * x[3], x[2]]
    np.random.default_rng(5).shuffle(items)
    w[:] = items


def permuted(w, x):
    np.random.default_rng(3).permuted(w, out=w)


def permuted_into(w, x):
    m = x.reshape(2, 2)
    np.random.default_rng(3).permuted(m, axis=1, out=w.reshape(2, 2))


def multiplied(w, x):
    np.multiply.at(w, [0, 0, 1, 0], x)


def divided(w, x):
    np.divide.at(w, np.array([[2, 1], [2, 2]]), x[1])


def largest(w, x):
    np.maximum.at(w, [3, 3, 1], x[:3] * 2)


def negated(w, x):
    np.negative.at(w, [0, 0, 1, 0])


def masked_rows(w, x):
    m = w.reshape(2, 2)
    np.multiply.at(m, ([0, 1, 0], slice(None)), [[x[0], 2.0], [1.0, x[1]], [x[2], x[3]]])


def without_nan(w, x):
    w[1] = np.nan
    np.nan_to_num(w, copy=False, nan=x[0])


def without_nan_by_position(w, x):
    np.nan_to_num(w, False)


def over_flat(w, x):
    for i, v in enumerate(w.flat):
        w.flat[i] = v * x[0]


def over_flat_of_a_view(w, x):
    total = sum([v * v for v in w.reshape(2, 2).T.flat])
    w[0] = total


def over_flat_by_next(w, x):
    items = x.flat
    w[1] = next(items) * next(items)
    w[2] = sum(items)


def over_entries(w, x):
    for (i,), v in np.ndenumerate(x):
        w[i] = w[i] * v


def over_nditer(w, x):
    for v in np.nditer(w, op_flags=["readwrite"]):
        v[...] = v * x[0]


def over_nditer_of_two(w, x):
    with np.nditer([x, w], op_flags=[["readonly"], ["readwrite"]]) as it:
        for a, b in it:
            b[...] = a * b


PAIRS = [("a", float), ("b", float)]
MIXED = [("n", int), ("a", float), ("b", complex, (2,))]


def fields(w, x):
    s = np.zeros(2, PAIRS)
    s["a"][0] = w[0]
    s["b"][:] = x[1:3]
    s[1]["a"] = w[2] * s[0]["b"]
    w[:2] = s["a"] * s["b"]


def records(w, x):
    s = np.ones(3, PAIRS)
    s[0] = (w[0], x[1])
    s[1] = s[0]
    s[1:] = [(w[2], 2.0), (x[3], s[1]["a"])]
    w[0] = s["a"].sum() * s["b"].sum()
    s[s["a"] > 1] = (1.0, 2.0)
    w[1] = (s["a"] * s["b"]).sum()


def records_in_a_loop(w, x):
    s = np.zeros(4, PAIRS)
    s["a"], s["b"] = w, x
    for r in s:
        r["a"] = r["a"] * r["b"]
    w[3] = sum(r["a"] for r in s[::-1])


def mixed_records(w, x):
    s = np.zeros((2, 2), MIXED)
    s[0, 1] = (3, w[0], [x[1], 1j * x[2]])
    s[1] = s[0, 1]
    s[1, 0]["b"][1] = x[0] + 1j * x[1]
    a, n = s[1, 0]["a"], int(s["n"][0, 1])
    w[:2] = (s["b"] * s["b"][::-1]).real.sum() * a * n


def record_of_another_name(w, x):
    s, t = np.zeros(2, PAIRS), np.zeros(2, [("u", float), ("v", float)])
    t["u"], t["v"] = w[:2], x[2:]
    s[...] = t
    s[0] = t[1]
    w[:2] = s["a"] * s["b"]


CASES = [
    fields, records, records_in_a_loop, mixed_records, record_of_another_name,
    shuffled, shuffled_rows, shuffled_as_ever, shuffled_list, permuted, permuted_into, multiplied,
    divided, largest, negated, masked_rows, without_nan, without_nan_by_position, over_flat,
    over_flat_of_a_view, over_flat_by_next, over_entries, over_nditer, over_nditer_of_two,
]  # fmt: skip


def differences(f, x, h=1e-6):
    """The gradient by central differences."""
    steps = h * np.eye(x.size)
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in steps])


@pytest.mark.parametrize("write", CASES)
def test_gradient_value_and_repeated_pullback(write):
    f = loss(write)
    expected = differences(f, X)
    y, back = pullback(f, X)
    assert y == f(X)
    np.testing.assert_allclose(back(1.0)[0], expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(back(1.0)[0], back(1.0)[0])
    np.testing.assert_allclose(grad(f)(X), expected, rtol=1e-7, atol=1e-7)
    y, ẏ = jvp(f, (X,), (V,))
    assert y == f(X)
    assert ẏ == pytest.approx(expected @ V, rel=1e-7)


@pytest.mark.parametrize("write", CASES)
def test_the_state_in_the_end(write):
    w, again, x = X * X, X * X, X.copy()
    write(again, x)
    _, back = pullback(write, w, x)
    np.testing.assert_array_equal(w, again)
    back(None)
    np.testing.assert_array_equal(w, again)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("write", [permuted, multiplied, over_flat, over_nditer])
def test_second_derivatives(write):
    f = loss(write)
    expected = (grad(f)(X + 1e-5 * V) - grad(f)(X - 1e-5 * V)) / 2e-5
    found = [
        hvp(f, X, V),
        gradient(lambda x: gradient(f, x)[0] @ V, X)[0],
        gradient(lambda x: jvp(f, (x,), (V,))[1], X)[0],
    ]
    for second in found:
        np.testing.assert_allclose(second, expected, rtol=1e-6, atol=1e-6)
    along = jvp(lambda x: jvp(f, (x,), (V,))[1], (X,), (V,))[1]
    assert along == pytest.approx(expected @ V, rel=1e-6)


def test_second_derivatives_of_records():
    f = loss(records)
    expected = (grad(f)(X + 1e-5 * V) - grad(f)(X - 1e-5 * V)) / 2e-5
    np.testing.assert_allclose(hvp(f, X, V), expected, rtol=1e-6)
    along = jvp(lambda x: jvp(f, (x,), (V,))[1], (X,), (V,))[1]
    assert along == pytest.approx(expected @ V, rel=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4"])
@pytest.mark.parametrize("shape", [(7,), (4, 3), (3, 2, 2)])
def test_the_draw_is_that_of_the_plain_call(dtype, shape):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for axis in range(len(shape)):
        plain, found = x.copy(), x.copy()
        first, second = np.random.default_rng(9), np.random.default_rng(9)
        first.shuffle(plain, axis)
        pullback(lambda w, rng, axis: rng.shuffle(w, axis), found, second, axis)
        np.testing.assert_array_equal(found, plain)
        plain, found = np.zeros_like(x), np.zeros_like(x)
        first.permuted(x, axis=axis, out=plain)
        pullback(lambda w, rng, axis: rng.permuted(x, axis=axis, out=w), found, second, axis)
        np.testing.assert_array_equal(found, plain)
        assert first.random() == second.random()
    old, new = np.random.RandomState(9), np.random.RandomState(9)
    plain, found = x.copy(), x.copy()
    old.shuffle(plain)
    pullback(lambda w, rng: rng.shuffle(w), found, new)
    np.testing.assert_array_equal(found, plain)


def test_records_with_too_few_fields_are_numpys_error():
    def f(x):
        s = np.zeros(2, PAIRS)
        s[0] = (x[0],)
        return s["a"].sum()

    with pytest.raises(ValueError, match="could not assign tuple"):
        gradient(f, X)


def copied(x):
    s = np.zeros(2, PAIRS)
    s["a"] = x[:2]
    return s[0].copy()["a"]


def as_items(x):
    s = np.zeros(2, PAIRS)
    s["a"] = x[:2]
    return s[0].item()[0]


def copied_array(x):
    s = np.zeros(2, PAIRS)
    s["a"] = x[:2]
    t = s.copy()
    t["b"][0] = 1.0
    return t["a"][0]


@pytest.mark.parametrize("f", [copied, as_items, copied_array])
def test_copies_of_records_are_refused(f):
    with pytest.raises(UnsupportedError, match="the gradient runs through"):
        gradient(f, X)
    if f is copied_array:
        assert jvp(f, (X,), (V,))[1] == V[0]
        return
    with pytest.raises(UnsupportedError, match="of records, in forward mode"):
        jvp(f, (X,), (V,))


OTHER_ARRAYS = {
    "copy": lambda s: s.copy(),
    "a list of places": lambda s: s[[1, 0]],
    "a mask": lambda s: s[np.array([True, False])],
    "take": lambda s: np.take(s, [0]),
    "sort": lambda s: np.sort(s, order="a"),
    "concatenate": lambda s: np.concatenate([s, s]),
    "stack": lambda s: np.stack([s, s]),
    "where": lambda s: np.where([True, False], s, np.zeros(2, PAIRS)),
    "astype": lambda s: s.astype([("a", "f4"), ("b", float)]),
}


@pytest.mark.parametrize("name", OTHER_ARRAYS)
def test_no_copy_of_records_that_nothing_writes_to_loses_them(name):
    def f(x):
        s = np.zeros(2, PAIRS)
        s["a"] = x[:2]
        return OTHER_ARRAYS[name](s)["a"].sum()

    with pytest.raises(UnsupportedError, match=r"gradient runs through|changes a ndarray in place"):
        gradient(f, X)
    try:
        ẏ = jvp(f, (X,), (V,))[1]
    except UnsupportedError:
        return
    assert ẏ == pytest.approx((f(X + 1e-6 * V) - f(X - 1e-6 * V)) / 2e-6)


def test_a_list_of_records_is_a_copy_of_them():
    def f(x):
        s = np.zeros(2, PAIRS)
        s["a"] = x[:2]
        return s.tolist()[1][0]

    with pytest.raises(UnsupportedError, match=r"x.tolist\(\) of records"):
        gradient(f, X)
    with pytest.raises(UnsupportedError, match="of records, in forward mode"):
        jvp(f, (X,), (V,))


def test_a_view_of_numbers_as_records():
    def f(x):
        return (2.0 * x).view(PAIRS)["a"].sum()

    with pytest.raises(UnsupportedError, match="the gradient runs through"):
        gradient(f, X)
    with pytest.raises(UnsupportedError, match="records that is made of numbers"):
        jvp(f, (X,), (V,))


def test_a_record_that_is_unpacked():
    def f(x):
        s = np.zeros(2, PAIRS)
        s["a"], s["b"] = x[:2], x[2:]
        a, b = s[1]
        return a * b

    np.testing.assert_array_equal(gradient(f, X)[0], [0.0, 0.5, 0.0, 1.5])
    assert jvp(f, (X,), (V,))[1] == pytest.approx(0.5 * V[1] + 1.5 * V[3])


def test_an_out_without_room_is_numpys_error():
    with pytest.raises((TypeError, ValueError)):
        gradient(lambda x: np.random.default_rng(0).permuted(x, out=np.zeros(3)).sum(), X)
