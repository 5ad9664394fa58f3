"""Morula's functions within JAX's programs, on tracers."""

import math

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is an extra")
jnp = pytest.importorskip("jax.numpy", reason="JAX is an extra")

import morula  # noqa: E402
from morula import grad  # noqa: E402

X = jnp.array([0.5, 1.2, 2.0])


def f(x):
    return jnp.sum(jnp.sin(x) * x) * x[0]


def close(found, expected):
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, expected
    )


def test_jit():
    close(jax.jit(grad(f))(X), jax.grad(f)(X))
    close(jax.jit(morula.value_and_grad(f))(X), jax.value_and_grad(f)(X))


def test_the_body_runs_once_for_each_trace():
    runs = []

    def counted(x):
        runs.append(1)
        return f(x)

    compiled = jax.jit(grad(counted))
    for k in range(3):
        compiled(X + k)
    assert len(runs) == 1


def test_vmap():
    xs = jnp.stack([X, 2 * X])
    close(jax.vmap(grad(f))(xs), jax.vmap(jax.grad(f))(xs))


def test_jax_grad_of_a_gradient_and_the_other_way_round():
    expected = jax.grad(lambda x: jax.grad(f)(x).sum())(X)
    close(jax.grad(lambda x: grad(f)(x).sum())(X), expected)
    close(grad(lambda x: jax.jit(lambda y: grad(f)(y).sum())(x))(X), expected)


def test_a_scan_of_gradient_steps():
    def descent(gradient):
        return jax.lax.scan(lambda x, _: (x - 0.1 * gradient(x), f(x)), X, None, length=3)

    close(descent(grad(f)), descent(jax.grad(f)))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda x: morula.jvp(f, (x,), (x,)), lambda x: jax.jvp(f, (x,), (x,))),
        (lambda x: morula.hvp(f, x, x), lambda x: jax.jvp(jax.grad(f), (x,), (x,))[1]),
        (lambda x: morula.jacobian(lambda y: jnp.sin(y) * y[0], x)[0],
         lambda x: jax.jacrev(lambda y: jnp.sin(y) * y[0])(x)),
        (lambda x: morula.pullback(jnp.sin, x)[1](x), lambda x: (jnp.cos(x) * x,)),
        (lambda x: grad(lambda y: morula.checkpoint(f, y))(x), jax.grad(f)),
    ],
    ids=["jvp", "hvp", "jacobian", "pullback", "checkpoint"],
)  # fmt: skip
def test_the_others_under_jit(ours, theirs):
    close(jax.jit(ours)(X), theirs(X))


def test_numbers_become_weakly_typed_arrays_as_in_jax():
    y, ā = jax.jit(morula.value_and_grad(lambda a: a * a * 2.0))(3.0)
    assert (y.dtype, y.weak_type, float(y)) == (jnp.float32, True, 18.0)
    assert float(ā) == 12.0
    assert float(jax.grad(lambda a: grad(lambda b: b**3)(a))(2.0)) == 12.0


def test_values_of_numpy_within_a_trace():
    w = np.array([1.0, 2.0, 3.0])
    close(jax.jit(grad(lambda x: (w * x**2).sum()))(X), 2 * w * X)
    close(jax.jit(lambda x: morula.gradient(lambda a, b: (a * (b * x)).sum(), 2.0, w))(X),
          ((w * X).sum(), 2.0 * X))  # fmt: skip


def test_a_branch_on_a_traced_value_is_an_error_of_jax():
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(grad(lambda x: x.sum() if x[0] > 0 else x.prod()))(X)


@pytest.mark.parametrize("g", [math.sin, float, lambda a: a.item()])
def test_the_value_of_a_tracer_is_refused_by_jax(g):
    with pytest.raises(jax.errors.JAXTypeError):
        jax.jit(grad(lambda a: g(a) * 1.0))(3.0)
    with pytest.raises((jax.errors.JAXTypeError, morula.NoRuleError)):
        jax.grad(lambda a: grad(lambda b: g(b) * 1.0)(a))(3.0)


@pytest.mark.parametrize("g", [np.sin, np.asarray, lambda x: np.stack([x, x])])
def test_numpy_refuses_a_tracer_as_jax_says(g):
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(grad(lambda x: g(x).sum()))(X)


def test_nothing_keeps_a_tracer():
    with jax.checking_leaks():
        jax.jit(grad(lambda x: f(x)))(X)
        jax.vmap(grad(lambda x: f(x)))(jnp.stack([X, X]))
        jax.grad(lambda x: grad(lambda y: f(y))(x).sum())(X)
        grad(lambda x: jax.vmap(lambda v: v * x[0])(x).sum())(X)
        jax.jit(lambda x: morula.jvp(f, (x,), (x,))[1])(X)
