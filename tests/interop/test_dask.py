"""Dask's arrays: gradients are lazy, and those of NumPy; on a cluster of two workers too."""

import numpy as np
import pytest

pytest.importorskip("dask", reason="the extra dask is not installed")
import dask
import dask.array as da

from morula import DifferentiationError, gradient, jvp, pullback, ravel

X = np.arange(12.0).reshape(3, 4) / 5 + 0.1
W = np.arange(4.0) + 1


def nobody_computes(*args, **kwargs):
    raise AssertionError("computed before anybody asked")


PROGRAMS = [
    lambda x, w, m: (x * x + 2 * x).sum(),
    lambda x, w, m: (m.sin(x) ** 2 / (1 + x)).mean(),
    lambda x, w, m: ((x @ w) ** 2).sum(),
    lambda x, w, m: (m.exp(x).mean(axis=1, keepdims=True) * x).sum(),
    lambda x, w, m: x.var() + x.std(axis=0).sum() + m.var(x, axis=1, ddof=1)[0],
    lambda x, w, m: (x.T.reshape(-1) * m.exp(-x).ravel()).sum(),
    lambda x, w, m: (x[1:, ::2] * 3).sum() + x[0, 1] ** 2 + x[:, -1].sum(),
    lambda x, w, m: (x * w + x.sum(axis=0)).sum(axis=1)[0],
    lambda x, w, m: (m.maximum(x, 1.0) - abs(x - 1)).sum() + (x.T @ x).sum() + x.astype("f4").sum(),
    lambda x, w, m: (
        (x.max(axis=1) * m.min(x * w, axis=0)[:3]).sum() + x.min() * m.max(x, axis=(0, 1))
    ),
    lambda x, w, m: (m.stack([x, x * x])[1] * m.concatenate([x, 2 * x])[2:5] * w).sum(),
    lambda x, w, m: (m.concatenate([x, x**3], axis=1)[:, 2:6] * m.stack([w, w, w])).sum(),
    lambda x, w, m: (m.swapaxes(x, 0, 1) ** 2 * m.broadcast_to(x[0, 0], (4, 3))).sum(),
    lambda x, w, m: (m.broadcast_to(w, (3, 4)) * x.swapaxes(1, 0).T).sum(),
    lambda x, w, m: m.sum(m.sqrt(x), axis=(0, 1)) + m.matmul(w, m.transpose(x)).sum(),
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_are_lazy_and_those_of_numpy(f):
    x = da.from_array(X, chunks=(2, 2))
    w = da.from_array(W, chunks=3)
    with dask.config.set(scheduler=nobody_computes):
        y, _ = pullback(lambda x, w: f(x, w, da), x, w)
        found = gradient(lambda x, w: f(x, w, da), x, w)
    assert all(isinstance(g, da.Array) for g in found)
    np.testing.assert_allclose(y.compute(), f(X, W, np), rtol=1e-6)
    want = gradient(lambda x, w: f(x, w, np), X, W)
    for g, g_want, of in zip(found, want, (x, w), strict=True):
        assert g.chunks == of.chunks
        assert g.dtype == of.dtype
        np.testing.assert_allclose(g.compute(), g_want, rtol=1e-6, atol=1e-12)


def test_arrays_of_numpy_and_numbers_keep_their_kind():
    x = da.from_array(X, chunks=(2, 2))
    g_w, g_a = gradient(lambda w, a: (x * w * a).sum(), W, 2.0)
    np.testing.assert_allclose(g_w, 2 * X.sum(0))
    assert type(g_w) is np.ndarray
    assert g_a == pytest.approx((X * W).sum())
    (g,) = gradient(lambda x: (da.from_array(x, chunks=2) ** 2).sum().compute(), X)
    np.testing.assert_allclose(g, 2 * X)
    (g,) = gradient(lambda x: float(x.sum()) ** 2 + np.asarray(x)[0, 0], x)
    np.testing.assert_allclose(g.compute()[1], 2 * X.sum())
    (g,) = gradient(lambda x: (x.rechunk(3).persist() * x).sum(), x.astype("f4"))
    assert g.dtype == np.float32
    np.testing.assert_allclose(g.compute(), 2 * X, rtol=1e-6)


def test_functions_that_compute_give_tuples():
    x = da.from_array(X, chunks=(2, 2))

    def f(x):
        y, three, z = dask.compute((x * x).sum(), 3.0, x[0])
        (kept,) = dask.persist(x)
        return y * three + z[1] + kept.sum().compute()

    want = 6 * X + 1
    want[0, 1] += 1
    assert f(x) == pytest.approx(3 * (X * X).sum() + X[0, 1] + X.sum())
    np.testing.assert_allclose(gradient(f, x)[0].compute(), want)
    value, slope = jvp(f, (x,), (da.ones_like(x),))
    assert (value, slope) == (pytest.approx(f(x)), pytest.approx(want.sum()))


def test_second_order_and_forward_mode():
    x = da.from_array(X, chunks=(2, 2))

    def f(x):
        return (x * x).sum()

    (h,) = gradient(lambda x: gradient(f, x)[0].sum(), x)
    np.testing.assert_allclose(h.compute(), 2 * np.ones((3, 4)), rtol=1e-12)
    _, ẏ = jvp(f, (x,), (da.ones_like(x),))
    np.testing.assert_allclose(float(ẏ), 2 * X.sum())

    def g(x, m):
        return (m.stack([x, x**2])[1] * m.concatenate([x, x])[1:4]).sum() * x.max() + (x.T**3).min()

    of = lambda h: (h * h).sum()
    (h,) = gradient(lambda x: of(gradient(lambda x: g(x, da), x)[0]), x)
    (want,) = gradient(lambda x: of(gradient(lambda x: g(x, np), x)[0]), X)
    np.testing.assert_allclose(h.compute(), want, rtol=1e-10)
    _, ẏ = jvp(lambda x: g(x, da), (x,), (x,))
    np.testing.assert_allclose(float(ẏ), (gradient(lambda x: g(x, np), X)[0] * X).sum())


def test_ties_share():
    x = da.from_array(np.array([1.0, 3.0, 3.0, 0.0]), chunks=2)
    np.testing.assert_allclose(gradient(lambda x: x.max() * 4, x)[0].compute(), [0, 2, 2, 0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: da.linalg.norm(x),
        lambda x: x.cumsum(axis=0).sum(),
        lambda x: da.median(x, axis=0).sum(),
        lambda x: x.map_blocks(np.sin).sum(),
        lambda x: da.where(x > 1, x, 0.0).sum(),
        lambda x: da.block([[x], [x]]).sum(),
        lambda x: dask.compute([x.sum()])[0][0],
        lambda x: dask.compute({"y": x.sum()})[0]["y"],
    ],
)
def test_what_has_no_rule_is_an_error(f):
    x = da.from_array(X, chunks=(2, 2))
    with pytest.raises((NotImplementedError, TypeError)):
        gradient(f, x)
    with pytest.raises((NotImplementedError, TypeError)):
        jvp(f, (x,), (da.ones_like(x),))
    assert gradient(lambda x: x.sum() * int(x.cumsum(axis=0).size), x)[0].compute()[0, 0] == 12


def test_on_a_cluster():
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            host="127.0.0.1",
            dashboard_address=None,
            protocol="tcp",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        x = da.from_array(np.arange(4000.0).reshape(40, 100) / 4000, chunks=(10, 50))

        def loss(x):
            return (np.tanh(x) ** 2).mean() + x.std()

        (g,) = gradient(loss, x)
        assert isinstance(g, da.Array)
        future = client.compute(g)
        np.testing.assert_allclose(future.result(), gradient(loss, x.compute())[0], rtol=1e-10)
        done = client.run(lambda dask_worker: len(dask_worker.state.log) > 0)
        assert list(done.values()) == [True, True]  # both have worked


def test_vectors_of_structures_are_not_computed_silently():
    with pytest.raises(TypeError, match=r"ravel computes: give it x.compute\(\)"):
        ravel([da.ones(3)])


def test_structures_precision_and_pullbacks_called_twice():
    x = da.from_array(X.astype("f4"), chunks=(2, 2))
    p = {"x": x, "parts": [x[0] * 1, np.arange(4.0)], "n": 2, "name": "p"}

    def f(p):
        a, b = p["parts"]
        return (p["x"] * a * b).sum() * p["n"] + p["x"].max()

    (g,) = gradient(f, p)
    assert (g["x"].dtype, g["parts"][0].dtype, g["x"].chunks) == (np.float32, np.float32, x.chunks)
    assert (type(g["parts"][1]), g["parts"][1].dtype, g["name"]) == (np.ndarray, np.float64, None)
    whole = X.astype("f4").astype(float)
    want = np.outer(np.ones(3), 2 * whole[0] * np.arange(4.0))
    want[2, 3] += 1
    np.testing.assert_allclose(g["x"].compute(), want, rtol=1e-6)
    np.testing.assert_allclose(g["parts"][1], 2 * whole.sum(0) * whole[0], rtol=1e-6)
    np.testing.assert_allclose(g["n"], (whole * whole[0] * np.arange(4.0)).sum(), rtol=1e-6)
    _, back = pullback(lambda x: da.concatenate([x, x * x]), x)
    for _ in range(2):
        (x̄,) = back(da.ones((6, 4), chunks=2))
        np.testing.assert_allclose(x̄.compute(), 1 + 2 * whole, rtol=1e-6)
    with pytest.raises(DifferentiationError, match="has shape"):
        back(da.ones(3))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2,
        lambda x: 2.5 - x,
        lambda x: x**2 / 3,
        lambda x: x * np.float64(2),
        lambda x: x * np.arange(4),
        lambda x: x * np.arange(4, dtype=np.int8),
        lambda x: da.maximum(x, 1) + x.mean() + x.var(axis=0) + x.std(),
    ],
)
def test_precision_is_that_of_the_plain_call(f):
    x = da.from_array(X.astype("f4"), chunks=(2, 2))
    y, back = pullback(f, x)
    assert y.dtype == f(x).dtype == y.compute().dtype
    np.testing.assert_allclose(y.compute(), f(x).compute(), rtol=1e-6)
    (x̄,) = back(da.ones_like(y))
    assert x̄.dtype == x̄.compute().dtype == np.float32
    _, ẏ = jvp(f, (x,), (da.ones_like(x),))
    assert ẏ.dtype == y.dtype


@pytest.mark.parametrize("k", [3, 3.0, np.int64(3), np.arange(4)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_integers_beside_arrays_of_dask_are_points_of_the_real_line(k, dtype):
    x = da.from_array(X.astype(dtype), chunks=(2, 2))
    f = lambda k: float((x * k * k + da.sin(k * x)).sum())
    want = 2 * X * k + X * np.cos(k * X)
    want = want.sum(0) if np.ndim(k) else want.sum()
    (found,) = gradient(f, k)
    assert isinstance(found, np.ndarray if np.ndim(k) else float)
    np.testing.assert_allclose(found, want, rtol=1e-5)
    np.testing.assert_allclose(jvp(f, (k,), (np.ones(np.shape(k)),))[1], np.sum(want), rtol=1e-5)
