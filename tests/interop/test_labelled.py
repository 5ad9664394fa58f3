"""Arrays of pandas and xarray: their gradients have their labels."""

import numpy as np
import pytest

from morula import grad, gradient, hvp, jvp, pullback, ravel
from morula.core.errors import CotangentError

pd = pytest.importorskip("pandas", reason="the extra labelled is not installed")
xr = pytest.importorskip("xarray", reason="the extra labelled is not installed")

V = np.array([1.0, 2.0, 3.5])
M = np.arange(6.0).reshape(3, 2) + 1


def series():
    return pd.Series(V, index=list("abc"), name="v")


def frame():
    return pd.DataFrame(M, index=list("abc"), columns=["k", "l"])


def array():
    return xr.DataArray(M, dims=("t", "x"), coords={"t": [10, 20, 30]})


def close(got, want, like):
    assert type(got) is type(like)
    np.testing.assert_allclose(np.asarray(got), want)
    if isinstance(like, xr.DataArray):
        assert got.dims == like.dims
        assert got.coords.equals(like.coords)
    else:
        assert got.index.equals(like.index)


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda s: (s * s).sum(), 2 * V),
        (lambda s: (np.sin(s) / 2 - 1).mean(), np.cos(V) / 6),
        (lambda s: (s.to_numpy() ** 2).sum() + s.values[0], 2 * V + [1, 0, 0]),
        (lambda s: s["b"] ** 2 + s[s > 3].sum(), [0, 4, 1]),
        (lambda s: s.var(), (V - V.mean()) * 2 / 2),
        (lambda s: s["b"] ** 2 + s[["a", "c"]].sum(), [1, 4, 1]),
        (lambda s: float(np.asarray(s)[2]) * 3, [0, 0, 3]),
        (lambda s: s.a**2 + s.c, [2, 0, 1]),
    ],
)
def test_series(f, want):
    close(gradient(f, series())[0], want, series())


def test_frames():
    close(gradient(lambda d: (d["k"] * d["l"]).sum(), frame())[0], M[:, ::-1], frame())
    close(gradient(lambda d: (d * d).sum().sum(), frame())[0], 2 * M, frame())
    close(gradient(lambda d: (d.k.values**2).sum(), frame())[0], M * [2, 0], frame())
    close(
        gradient(lambda d: d.mean(axis=1).max(), frame())[0], [[0, 0], [0, 0], [0.5, 0.5]], frame()
    )


def test_precision_is_that_of_the_argument():
    (g,) = gradient(lambda s: (s * s).sum(), series().astype("float32"))
    assert g.dtype == np.float32
    (g,) = gradient(lambda x: float((x * x).sum()), array().astype("float32"))
    assert g.dtype == np.float32
    mixed = pd.DataFrame({"a": np.ones(2, np.float32), "b": np.ones(2), "n": [1, 2]})
    (g,) = gradient(lambda d: (d["a"] * d["b"] * d["n"]).sum(), mixed)
    assert [t.name for t in g.dtypes] == ["float32", "float64", "float64"]
    np.testing.assert_allclose(g, [[1, 1, 1], [2, 2, 1]])
    (z,) = gradient(lambda x: float((abs(x) ** 2).sum()), array() * (1 + 1j))
    np.testing.assert_allclose(z, 2 * (1 + 1j) * M)


def test_arrays_of_xarray():
    x = array()
    close(gradient(lambda x: (x**2).sum().item(), x)[0], 2 * M, x)
    close(gradient(lambda x: float(x.mean("t")[1] * 3), x)[0], [[0, 1]] * 3, x)
    close(
        gradient(lambda x: float(x.sel(t=20).sum() + x.isel(x=0)[0] ** 2), x)[0],
        [[2, 0], [1, 1], [0, 0]],
        x,
    )
    close(gradient(lambda x: (x.values * np.exp(x.data)).sum(), x)[0], (1 + M) * np.exp(M), x)


C = np.array([1.0, 10.0])
CC = np.array([[1.0, 2.0], [30.0, 40.0]])


def square(*dims):
    return xr.DataArray(np.ones((2,) * len(dims)), dims=dims)


@pytest.mark.parametrize(
    ("f", "args", "want"),
    [
        (lambda x: (x.sum("b").values * C).sum(), [square("a", "b")], [[[1, 1], [10, 10]]]),
        (lambda x: (x.prod("a").values * C).sum(), [square("a", "b")], [[[1, 10], [1, 10]]]),
        (lambda x: (x.max("b").values * C).sum(), [square("a", "b")], [[[0.5] * 2, [5.0] * 2]]),
        (
            lambda x: (x.mean(["a", "c"]).values * C).sum(),
            [square("a", "b", "c")],
            [np.full((2, 2, 2), [[0.25], [2.5]])],
        ),
        (
            lambda x, z: ((x * z).values * CC).sum(),
            [square("a", "b"), square("a")],
            [CC, CC.sum(1)],
        ),
        (
            lambda y, z: (np.add(y, z).values * CC).sum(),
            [square("a"), square("b")],
            [CC.sum(1), CC.sum(0)],
        ),
        (lambda x: ((x * x.T).values * CC).sum(), [square("a", "b")], [2 * CC]),
        (
            lambda d: (d.sum(axis=1).values * C).sum(),
            [pd.DataFrame(np.zeros((2, 2)))],
            [[[1, 1], [10, 10]]],
        ),
        (
            lambda s, t: ((s / t).values * C).sum(),
            [pd.Series([1.0, 1.0], index=[0, 1]), pd.Series([1.0, 1.0], index=[1, 0])],
            [C, -C[::-1]],
        ),
        (
            lambda s, t: (s * t).sum().item(),
            [xr.DataArray([1.0, 2.0], {"i": [i, i + 1]}, "i") for i in (0, 1)],
            [[0, 1], [2, 0]],
        ),
    ],
)
def test_labels_decide_where_numbers_are_the_same(f, args, want):
    found = gradient(f, *args)
    for g, g_want, x in zip(found, want, args, strict=True):
        close(g, g_want, x)
    slope = sum((np.asarray(w) * np.asarray(x) * 3).sum() for w, x in zip(want, args, strict=True))
    tangents = tuple([x * 3 for x in args])
    assert jvp(f, tuple(args), tangents) == (f(*args), pytest.approx(slope))


def test_made_of_arrays_of_numpy():
    (g,) = gradient(lambda v: (pd.Series(v, index=list("abc")) ** 2).sum(), V)
    np.testing.assert_allclose(g, 2 * V)
    (g,) = gradient(lambda v: float((xr.DataArray(v, dims="t") ** 2).sum()), V)
    np.testing.assert_allclose(g, 2 * V)


def test_forward_and_second_order():
    s = series()
    assert jvp(lambda s: (s * s).sum(), (s,), (s * 0 + 1,))[1] == pytest.approx(2 * V.sum())
    (h,) = gradient(lambda s: gradient(lambda s: (s * s).sum(), s)[0].sum(), s)
    close(h, [2, 2, 2], s)


@pytest.mark.parametrize(
    "f",
    [
        lambda s: s.cumsum().sum(),
        lambda s: (s + pd.Series([1.0, 2.0, 3.0], index=list("bcd"))).sum(),
        lambda s: pd.DataFrame({"s": s}).values.sum(),
        lambda s: pd.concat([s, s]).sum(),
        lambda s: xr.DataArray(s).sum().item(),
        lambda s: s.groupby([0, 0, 1]).sum().max(),
        lambda s: s.rolling(2).mean().sum(),
        lambda s: s.loc["a"] * 2,
    ],
)
def test_what_is_not_followed_is_an_error(f):
    with pytest.raises(NotImplementedError):
        gradient(f, series())
    with pytest.raises(NotImplementedError):
        jvp(f, (series(),), (series(),))


def sets_an_item(s):
    s = s * 1.0
    s["a"] = s["b"] ** 2
    return s.sum()


def sets_after_it_was_read(s):
    s = s * 1.0
    y = s * s
    s.loc["a"] = 5.0
    return y.sum()


def sets_in_what_is_made(s):
    out = pd.Series(np.zeros(3), index=s.index)
    for k in s.index:
        out[k] = s[k] ** 2
    return out.sum()


def sets_an_attribute(s):
    s = s * 1.0
    s.a = s.b
    return s.sum()


def changes_by_a_method(s):
    s = s * 1.0
    s.update(s * s)
    return s.sum()


def fills_a_column(s):
    d = pd.DataFrame(index=s.index)
    d["v"] = s**2
    return d["v"].sum()


def changes_its_argument(s):
    s["a"] = 0.0
    return (s * s).sum()


def sets_rows_of_xarray(s):
    x = xr.DataArray(s.values, dims="t") * 1.0
    x[0] = 5.0
    return float((x * x).sum())


@pytest.mark.parametrize(
    "f",
    [
        sets_an_item,
        sets_after_it_was_read,
        sets_in_what_is_made,
        sets_an_attribute,
        changes_by_a_method,
        fills_a_column,
        changes_its_argument,
        sets_rows_of_xarray,
    ],
)
def test_what_is_written_to_is_an_error(f):
    with pytest.raises(NotImplementedError, match=r"what writes to a|no reverse rule"):
        gradient(f, series())
    with pytest.raises(NotImplementedError):
        jvp(f, (series(),), (series(),))


def test_what_is_written_to_besides_is_in_nobodys_way():
    log = pd.DataFrame({"loss": np.zeros(2)})

    def f(s):
        y = (s * s).sum()
        log.loc[0, "loss"] = y
        log["loss"] = log["loss"] + 1.0
        named = s * 1.0
        named.name, named.index = "w", list("xyz")
        return y + named["x"]

    close(gradient(f, series())[0], 2 * V + [1, 0, 0], series())
    assert log.loc[0, "loss"] == (V @ V) + 1.0
    assert jvp(lambda s: (s * s).sum() + 0 * len(log), (series(),), (series(),))[1] == 2 * V @ V


def test_memory_that_is_shared():
    def writes_to_what_is_seen(x):
        x = x * 1.0
        x.values[0, 0] = 5.0
        return float((x * x).sum())

    def writes_to_what_was_given(v):
        v = v * 1.0
        x = xr.DataArray(v, dims="t")
        v[0] = 5.0
        return float((x * x).sum())

    with pytest.raises(ValueError, match="read-only"):
        gradient(writes_to_what_is_seen, array())
    with pytest.raises((NotImplementedError, ValueError)):
        gradient(writes_to_what_was_given, V)


@pytest.mark.parametrize("x", [series(), frame(), array()])
def test_vectors_of_structures_have_their_numbers(x):
    vector, unravel = ravel([x, 1.0])
    assert vector.tolist() == [*np.ravel(np.asarray(x)), 1.0]
    close(unravel(2 * vector)[0], 2 * np.asarray(x), x)
    slopes = gradient(lambda v: (unravel(v)[0] ** 2).values.sum() + v[-1], vector)[0]
    np.testing.assert_allclose(slopes, [*2 * np.ravel(np.asarray(x)), 1.0])
    weights = np.arange(float(x.size))
    close(gradient(lambda x: ravel(x)[0] @ weights, x)[0], weights.reshape(x.shape), x)
    with pytest.raises(TypeError, match="ravel cannot take a DataFrame of objects"):
        ravel(pd.DataFrame({"k": [1.0], "l": ["one"]}))


# -- second order, data sets -----------------------------------------------------------------------


def data_set():
    return xr.Dataset({"u": array(), "v": ("t", V), "name": ("t", ["a", "b", "c"])})


SECOND = [  # a function, its argument, and its Hessian times the argument
    (lambda d: (d**3).sum().sum(), frame(), 6 * M**2),
    (lambda d: (d["k"] ** 2 * d["l"]).sum(), frame(), np.stack([4 * M.prod(1), 2 * M[:, 0] ** 2], 1)),
    (lambda x: float((x.mean("t") ** 3).sum()), array(), np.tile(2 * M.mean(0) ** 2, (3, 1))),
    (lambda x: float((x * x.isel(t=0)).sum()), array(), M[:1] + [M.sum(0), [0, 0], [0, 0]]),
    (lambda s: (s * s["b"]).sum(), series(), [2.0, 2 + V.sum(), 2.0]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x", "want"), SECOND)
def test_second_derivatives(f, x, want):
    close(hvp(f, x, x), want, x)
    along = lambda y: (gradient(f, y)[0].values * x.values).sum()
    close(gradient(along, x)[0], want, x)


def test_data_sets_have_gradients_of_their_variables():
    d = data_set()
    f = lambda d: float((d["u"] ** 3 * d.v).sum())
    (g,) = gradient(f, d)
    assert type(g) is xr.Dataset
    assert list(g.data_vars) == ["u", "v"]
    close(g["u"], 3 * M**2 * V[:, None], d["u"])
    close(g["v"], (M**3).sum(1), d["v"])
    twice = hvp(f, d, d[["u", "v"]])
    close(twice["u"], 9 * M**2 * V[:, None], d["u"])
    close(twice["v"], 3 * (M**3).sum(1), d["v"])
    assert jvp(f, (d,), (d[["u"]],))[1] == pytest.approx(3 * f(d))
    (single,) = gradient(lambda d: float((d["u"] ** 2).sum()), d[["u"]].astype("f4"))
    assert single["u"].dtype == np.float32
    (parts,) = gradient(lambda p: float((p[0]["u"] ** 2).sum()), [d])
    close(parts[0]["u"], 2 * M, d["u"])


@pytest.mark.parametrize(
    "f",
    [
        lambda d: float(d.sum()["u"]),
        lambda d: float((d**2)["u"].sum()),
        lambda d: float(xr.Dataset({"w": d["u"]})["w"].sum()),
    ],
)
def test_what_is_done_with_whole_data_sets_is_an_error(f):
    d = data_set()[["u", "v"]]
    with pytest.raises(
        NotImplementedError, match="Morula has no rule for it on arrays with labels"
    ):
        gradient(f, d)
    assert gradient(lambda a: a * f(d), 2.0) == (f(d),)


def test_cotangents_and_tangents_have_the_labels():
    s, d = series(), data_set()
    other = pd.Series(V, index=list("xyz"))
    with pytest.raises(CotangentError, match="cotangent or tangent of a Series has other labels"):
        pullback(lambda s: s**2, s)[1](other)
    with pytest.raises(CotangentError, match="other labels"):
        jvp(lambda s: (s**2).sum(), (s,), (other,))
    with pytest.raises(CotangentError, match="DataArray has other labels"):
        hvp(lambda x: float((x**3).sum()), array(), array().assign_coords(t=[1, 2, 3]))
    with pytest.raises(CotangentError, match="expected one of its variables u, v"):
        jvp(lambda d: float(d["u"].sum()), (d[["u", "v"]],), (xr.Dataset({"w": array()}),))
    with pytest.raises(TypeError, match="ravel cannot take a Dataset: give it a dict"):
        ravel(d)
    close(pullback(lambda s: s**2, s)[1](np.ones(3))[0], 2 * V, s)


TABLE = pd.DataFrame({"k": [1.0, 2.0], "n": ["a", "b"], "z": [1.0, np.nan]})


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda a, d: (a * d["k"]).sum(), 3.0),
        (lambda a, d: a * d["z"].sum(), 1.0),
        (lambda a, d: a * d.groupby("n").k.sum().iloc[0], 1.0),
        (lambda a, d: a * d.loc[1, "k"], 2.0),
        (lambda a, d: a * d.merge(d, on="n").k_x.sum(), 3.0),
        (lambda a, d: (a * d[d.n == "b"].k.fillna(0.0).values).sum(), 2.0),
    ],
)
def test_tables_that_are_no_parameters_are_in_nobodys_way(f, want):
    assert grad(f)(2.0, TABLE) == want
    assert gradient(lambda a: f(a, TABLE), 2.0) == (want,)
    assert jvp(lambda a: f(a, TABLE), (2.0,), (1.0,))[1] == want
    with pytest.raises(NotImplementedError):
        gradient(f, 2.0, TABLE)
