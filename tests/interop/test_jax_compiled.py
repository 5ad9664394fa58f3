"""Calls of JAX's callables that are made often in one form run compiled."""

import gc
import weakref

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is an extra")
jnp = pytest.importorskip("jax.numpy", reason="JAX is an extra")

from morula import grad, jvp  # noqa: E402
from morula.interop.jax import compiled  # noqa: E402

X = jnp.array([0.5, 1.2, 2.0])


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr("morula.interop.jax.primitives.OFTEN", 1)
    compiled._of_jax.clear()
    yield
    compiled._of_jax.clear()


def test_the_same_gradients_and_values_for_other_arrays():
    f = lambda x, n: (jnp.sin(x)[n] * x).sum() * 2.0 + jnp.stack([x, x**n]).sum()
    for k in range(4):
        x = X + k
        np.testing.assert_allclose(grad(f)(x, 2), jax.grad(f)(x, 2), rtol=1e-5)
    assert any(count.passes for count in compiled._of_jax.values())


def test_structures_options_and_second_order():
    f = jax.jit(lambda p, how: (p["w"] ** 3 * p["b"][0]).sum() * len(how), static_argnames="how")
    loss = lambda w: f({"w": w, "b": [w, jnp.arange(3)]}, how="abc")
    for k in range(4):
        x = X + k
        np.testing.assert_allclose(grad(loss)(x), 12 * x**3, rtol=1e-5)
        np.testing.assert_allclose(jvp(grad(loss), (x,), (X,))[1], 36 * x**2 * X, rtol=1e-5)


def test_what_asks_for_values_goes_on_without():
    f = lambda x: jnp.repeat(x, np.array([1, 2, 0])).sum() + x[np.array([True, False, True])].sum()
    for _ in range(4):
        np.testing.assert_allclose(grad(f)(X), [2.0, 2.0, 1.0])


def test_a_jitted_function_is_not_kept():
    f = jax.jit(lambda x: (x**2).sum())
    for _ in range(4):
        np.testing.assert_allclose(grad(f)(X), 2 * X)
    assert any(count.passes for count in compiled._of_users[f].values())
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def test_double_precision_after_single():
    f = lambda x: jnp.sum(jnp.sin(x))
    for _ in range(4):
        grad(f)(np.ones(2))
    with jax.enable_x64():
        for _ in range(4):
            np.testing.assert_allclose(grad(f)(np.ones(2)), np.cos(1.0), rtol=1e-14)
    np.testing.assert_allclose(grad(f)(np.ones(2)), np.cos(1.0), rtol=1e-6)
