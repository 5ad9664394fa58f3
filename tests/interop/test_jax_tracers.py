"""Morula's functions within JAX's programs, on tracers."""

import math
from functools import partial

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


@pytest.mark.parametrize(
    "c", [np.sqrt(2.0), np.float32(3), np.int64(2), np.complex128(1j), np.array(2.0), 3, 1.5]
)
def test_numbers_of_numpy_within_a_trace(c):
    f = lambda x: jnp.sum(jnp.abs(x * c) * x)
    close(jax.jit(grad(f))(X), jax.grad(f)(X))
    close(jax.jit(lambda x: morula.hvp(f, x, x))(X), jax.jvp(jax.grad(f), (X,), (X,))[1])
    (c̄,) = jax.jit(lambda x: morula.gradient(lambda c: jnp.sum(jnp.abs(x * c)), c))(X)
    np.testing.assert_allclose(c̄, X.sum() * c / abs(c), rtol=1e-6)


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


PARAMS = {"w": X, "b": [2.0, np.float64(3.0)], "k": 3, "i": jnp.arange(2), "none": None}


def through_a_vector(p):
    vector, unravel = morula.ravel(p)
    again = unravel(vector * vector)
    return jnp.sum(again["w"] ** 2) * again["b"][0] + again["b"][1] * again["k"]


def by_hand(p):
    return jnp.sum(p["w"] ** 4) * p["b"][0] ** 2 + p["b"][1] ** 2 * p["k"] ** 2


def with_w(f, w):
    return f({**PARAMS, "w": w})


@pytest.mark.parametrize(
    ("how", "by_jax"),
    [
        (lambda w: jax.jit(partial(with_w, through_a_vector))(w), partial(with_w, by_hand)),
        (jax.vmap(partial(with_w, through_a_vector)), jax.vmap(partial(with_w, by_hand))),
        (jax.grad(partial(with_w, through_a_vector)), jax.grad(partial(with_w, by_hand))),
        (jax.hessian(partial(with_w, through_a_vector)), jax.hessian(partial(with_w, by_hand))),
        (jax.jit(grad(partial(with_w, through_a_vector))), jax.grad(partial(with_w, by_hand))),
        (
            jax.jit(lambda w: morula.jvp(partial(with_w, through_a_vector), (w,), (w,))),
            lambda w: jax.jvp(partial(with_w, by_hand), (w,), (w,)),
        ),
    ],
)
def test_ravel(how, by_jax):
    w = jnp.stack([X, 2 * X])
    close(how(w), by_jax(w))


def test_ravel_of_traced_numbers_keeps_dtypes_and_structure():
    def there_and_back(p):
        vector, unravel = morula.ravel(p)
        return vector, unravel(vector)

    p = {"h": X.astype(jnp.bfloat16), "f": X, "z": jnp.complex64(1 + 2j), "n": 3, "e": ()}
    vector, again = jax.jit(there_and_back)(p)
    assert vector.dtype == jnp.complex64
    close(again, {**p, "n": 3})
    assert (again["h"].dtype, again["f"].dtype) == (jnp.bfloat16, jnp.float32)
    unravel = morula.ravel({"a": np.ones(2), "b": 1.0})[1]
    close(jax.jit(unravel)(jnp.arange(3)), {"a": [0.0, 1.0], "b": 2.0})
    close(jax.jit(grad(lambda v: unravel(v)["a"].prod()))(X), [1.2, 0.5, 0.0])
    with pytest.raises(ValueError, match=r"of shape \(3,\), got shape \(2,\)"):
        jax.jit(unravel)(X[:2])
    with pytest.raises(TypeError, match="a vector of numbers"):
        jax.jit(unravel)(X > 1)


def test_why_needs_numbers():
    with pytest.raises(morula.DifferentiationError, match="call it outside of jit"):
        jax.jit(lambda x: morula.why(f, x).value)(X)


def test_steps_of_optimisers_on_structures():
    loss = lambda p: jnp.sum(p["w"] ** 2) * p["b"][0]
    step = lambda p: morula.tree_map(lambda x, g: x - 0.1 * g, p, grad(loss)(p))
    p = {"w": X, "b": [2.0, ()], "none": None}
    close(jax.jit(step)(p), step(p))


def test_nothing_keeps_a_tracer():
    with jax.checking_leaks():
        jax.jit(grad(lambda x: f(x)))(X)
        jax.vmap(grad(lambda x: f(x)))(jnp.stack([X, X]))
        jax.grad(lambda x: grad(lambda y: f(y))(x).sum())(X)
        grad(lambda x: jax.vmap(lambda v: v * x[0])(x).sum())(X)
        jax.jit(lambda x: morula.jvp(f, (x,), (x,))[1])(X)


BY_METHODS = [  # NumPy hands these to methods of the tracer
    (lambda x: np.sum(x**2), lambda x: jnp.sum(x**2)),
    (lambda x: np.mean(x) * np.max(x), lambda x: jnp.mean(x) * jnp.max(x)),
    (lambda x: np.std(x) + np.prod(x), lambda x: jnp.std(x) + jnp.prod(x)),
    (lambda x: np.cumsum(x)[1] ** 2, lambda x: jnp.cumsum(x)[1] ** 2),
    (lambda x: np.reshape(x, (3, 1))[1, 0] ** 2, lambda x: x[1] ** 2),
    (lambda x: np.shape(x)[0] * np.squeeze(x[None])[0] ** 2, lambda x: 3 * x[0] ** 2),
]


@pytest.mark.parametrize(("ours", "theirs"), BY_METHODS)
def test_numpy_functions_that_call_methods_of_tracers(ours, theirs):
    close(jax.jit(grad(ours))(X), jax.grad(theirs)(X))
    close(jax.vmap(grad(ours))(X[None])[0], jax.grad(theirs)(X))
    close(jax.jit(lambda x: morula.jvp(ours, (x,), (x,))[1])(X), jax.grad(theirs)(X) @ X)
    close(jax.jit(lambda x: morula.hvp(ours, x, x))(X), jax.hessian(theirs)(X) @ X)


CONSTANTS = [  # what NumPy computes in a traced program
    lambda x: (x * np.arange(3.0)).sum() ** 2,
    lambda x: (x * np.linspace(0, 1, 3)).sum() * x[0],
    lambda x: (np.cos(np.pi * np.arange(3) / 3) * x).sum() ** 2,
    lambda x: (np.linalg.inv(2 * np.eye(3)) @ x) @ x,
    lambda x: (np.where(np.arange(3) > 1, 2.0, 3.0) * x).sum() ** 2,
    lambda x: (np.einsum("ij,j->i", 2 * np.eye(3), np.ones(3)) * x**2).sum(),
    lambda x: (x**2 * np.array([math.sin(k) for k in range(3)])).sum(),
    lambda x: x[0] ** 2 * np.mean([1.0, 2.0]) * np.exp(0.3),
]


@pytest.mark.parametrize("f", CONSTANTS)
def test_constants_of_numpy_need_no_cotangents(f):
    close(jax.jit(grad(f))(X), jax.grad(f)(X))
    close(jax.vmap(grad(f))(X[None])[0], jax.grad(f)(X))
    close(jax.jit(lambda x: morula.hvp(f, x, x))(X), jax.hessian(f)(X) @ X)


def test_what_numpy_computes_of_what_is_asked_for_is_an_error():
    def by_both(x, c):
        return (x * np.sort(np.interp(c, [0.0, 1.0], [0.0, 2.0]))).sum()

    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: morula.gradient(by_both, x, np.ones(3) / 3))(X)
