"""Arrays of JAX's: kinds, dtypes, zeros, containers, the way to NumPy, closures, models."""

import collections
import functools
import math
import os
import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is an extra")
jnp = pytest.importorskip("jax.numpy", reason="JAX is an extra")

import morula  # noqa: E402
from morula import (  # noqa: E402
    J,
    OutputError,
    Tangent,
    gradient,
    jvp,
    pullback,
    value_and_grad,
)

X = jnp.array([0.5, 1.2, 2.0])


def test_a_gradient_is_of_the_kind_of_its_argument():
    def f(x, w, a):
        return jnp.sum(jnp.sin(x) * w) * a

    w = np.array([1.0, 2.0, 3.0])
    x̄, w̄, ā = gradient(f, X, w, 2.0)
    assert isinstance(x̄, jax.Array)
    assert x̄.dtype == jnp.float32
    assert (type(w̄), w̄.dtype, type(ā)) == (np.ndarray, np.float64, float)
    np.testing.assert_allclose(x̄, 2 * np.cos(X) * w, rtol=1e-6)
    np.testing.assert_allclose(w̄, 2 * np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64"])
def test_dtypes_are_kept(dtype):
    x = X.astype(dtype)
    (x̄,) = gradient(lambda x: jnp.abs(x * 2).sum(), x)
    assert x̄.dtype == x.dtype
    np.testing.assert_allclose(x̄.astype(np.complex64), 2.0, rtol=1e-2)


def test_double_precision():
    with jax.enable_x64():
        x = jnp.array([0.5, 1.2])
        (x̄,) = gradient(lambda x: jnp.sum(jnp.sin(x) * x), x)
        assert x̄.dtype == jnp.float64
        np.testing.assert_allclose(x̄, np.cos(x) * x + np.sin(x), rtol=1e-14)


def test_complex_gradients_descend():
    z = jnp.array([1 + 2j])
    for point in (z, np.asarray(z).astype(complex)):
        (z̄,) = gradient(lambda z: jnp.abs(z**2).sum(), point)
        np.testing.assert_allclose(z̄, 2 * z, rtol=1e-5)


def test_integers_and_keys_have_none_and_what_has_no_influence_zeros():
    f = lambda x, i, key, y: (x * jax.random.normal(key, (3,)) * i.sum()).sum()
    _, ī, k̄, ȳ = gradient(f, X, jnp.arange(3), jax.random.key(0), X.astype(jnp.bfloat16))
    assert (ī, k̄) == (None, None)
    assert ȳ.dtype == jnp.bfloat16
    np.testing.assert_array_equal(ȳ.astype(np.float32), 0.0)


def test_structures_mirror_their_argument():
    params = {"w": X, "b": [jnp.float32(1.0), (X, "name")]}
    (p̄,) = gradient(lambda p: (p["w"] * p["b"][1][0]).sum() + p["b"][0], params)
    np.testing.assert_allclose(p̄["w"], X)
    np.testing.assert_allclose(p̄["b"][1][0], X)
    assert p̄["b"][0] == 1.0
    assert p̄["b"][1][1] is None
    (p̄,) = gradient(jax.jit(lambda p: (p["w"] * p["b"][1]).sum()), {"w": X, "b": [1, X]})
    np.testing.assert_allclose(p̄["b"][1], X)


def test_outputs_that_are_not_one_real_number():
    for f in (lambda x: x, lambda x: x.argmax(), lambda x: x[0] > 0, lambda x: x[0] * 1j):
        with pytest.raises(OutputError):
            gradient(f, X)


def test_pullback_of_a_structure():
    y, back = pullback(lambda x: {"a": jnp.sin(x), "b": [x * 2, jnp.argmax(x)]}, X)
    assert int(y["b"][1]) == 2
    (x̄,) = back({"a": jnp.ones(3), "b": [np.ones(3), None]})
    np.testing.assert_allclose(x̄, np.cos(X) + 2, rtol=1e-6)
    np.testing.assert_allclose(back({"a": jnp.ones(3), "b": [np.ones(3), None]})[0], x̄)


# -- NumPy and Python's numbers --------------------------------------------------------------------


def into_a_buffer(x):
    buffer = np.zeros(3)
    for i in range(3):
        buffer[i] = x[i] ** 2
    return buffer.sum()


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: np.sin(x).sum(), np.cos),
        (lambda x: (np.asarray(x) * np.array(x)).sum(), lambda x: 2 * x),
        (lambda x: np.stack([x, 2 * x]).sum(), lambda x: 0 * x + 3),
        (lambda x: np.where(x > 1, x, 0.0).sum(), lambda x: (x > 1) * 1.0),
        (lambda x: sum(float(v) * v.item() for v in x), lambda x: 2 * x),
        (lambda x: sum(math.sin(v) for v in x), np.cos),
        (lambda x: sum(v * v for v in x.tolist()), lambda x: 2 * x),
        (lambda x: np.ones(3).dot(x), lambda x: 0 * x + 1),
        (lambda x: (np.ones(3) @ x) * 2.0, lambda x: 0 * x + 2),
        (lambda x: jax.device_get(x).sum(), lambda x: 0 * x + 1),
        (lambda x: x.block_until_ready().sum(), lambda x: 0 * x + 1),
        (into_a_buffer, lambda x: 2 * x),
    ],
)  # fmt: skip
def test_the_gradient_survives_the_way_to_numpy(f, slope):
    y, (x̄,) = morula.withgradient(f, X)
    assert type(y) is type(f(X))
    np.testing.assert_allclose(y, f(X), rtol=1e-6)
    assert isinstance(x̄, jax.Array)
    np.testing.assert_allclose(x̄, slope(np.asarray(X)), rtol=1e-5)


def into_a_buffer(x):
    buffer = np.zeros(3)
    for i in range(3):
        buffer[i] = x[i] * x[i]
    return buffer.sum()


def in_its_own_precision(x):
    x = np.asarray(x)
    b = np.array(x)
    b *= 2
    b[0] = b[1] * x[2]
    b[[1, 2]] += x[0]
    np.add.at(b, [0, 0], x[1])
    tail = b[1:]
    tail *= tail
    return float(b.sum())


X16 = X.astype(jnp.bfloat16)


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x: float((x * x).sum()), 2 * X),
        (lambda x: (x * x).sum().item(), 2 * X),
        (lambda x: sum((x * x).tolist()), 2 * X),
        (lambda x: math.sin(x[0]), [math.cos(0.5), 0, 0]),
        (lambda x: np.asarray(x * x, dtype=float).sum(), 2 * X),
        (lambda x: np.asarray(x * x).astype(np.float32).sum(), 2 * X),
        (lambda x: np.float64(x[0]) * 2, [2, 0, 0]),
        (lambda x: np.sum(np.sin(x)), np.cos(X)),
        (lambda x: float(np.mean(np.asarray(x) ** 2)), 2 * X / 3),
        (lambda x: (np.asarray(x) * np.ones(3)).sum(), [1, 1, 1]),
        (lambda x: sum(v * v for v in np.asarray(x)), 2 * X),
        (lambda x: float(np.concatenate([x, x], dtype=float).sum()), [2, 2, 2]),
        (lambda x: np.asarray(x)[1] * np.asarray(x)[0] - 1.5, [1.2, 0.5, 0]),
        (lambda x: float((morula.ignore_derivatives(np.asarray(x)) * np.asarray(x)).sum()), X),
        (into_a_buffer, 2 * X),
        # 2 x₁ x₂ + 2 x₁ + (2 x₁ + x₀)² + (2 x₂ + x₀)²
        (in_its_own_precision, [2 * 2.9 + 2 * 4.5, 2 * 2 + 2 + 4 * 2.9, 2 * 1.2 + 4 * 4.5]),
    ],
)
def test_the_gradient_in_bfloat16_survives_the_way_to_numpy(f, want):
    """NumPy knows the dtype from the library that JAX has it from; it is none of its own kinds."""
    for x in (X16, np.asarray(X16)):
        value, (x̄,) = morula.withgradient(f, x)
        assert type(value) is type(f(x))
        assert (type(x̄), x̄.dtype) == (type(x), jnp.bfloat16)
        np.testing.assert_allclose(np.asarray(x̄, float), want, rtol=2e-2)


def test_a_number_in_bfloat16_that_is_rounded_is_told():
    def f(x):
        buffer = np.zeros(1, int)
        buffer[0] = np.asarray(x)[0]
        return float(buffer.sum()) * float(x[1])

    with pytest.warns(UserWarning, match="is rounded"):
        (x̄,) = gradient(f, X16)
    np.testing.assert_allclose(np.asarray(x̄, float), 0)


def test_derivatives_in_bfloat16():
    f = lambda x: float((x * x * x).sum())
    g = lambda x: np.sum(np.asarray(x) ** 3)
    h = lambda x: (x * x * x).sum()
    v = jnp.ones(3, jnp.bfloat16)
    for fn in (f, g, h):
        np.testing.assert_allclose(float(jvp(fn, (X16,), (v,))[1]), 3 * (X**2).sum(), rtol=2e-2)
        for found in (morula.hvp(fn, X16, v), morula.diaghessian(fn, X16)):
            assert found.dtype == jnp.bfloat16
            np.testing.assert_allclose(found.astype(float), 6 * X, rtol=2e-2)
        H = morula.hessian(fn, X16)
        assert (type(H), H.dtype) == (type(X16), jnp.bfloat16)
        np.testing.assert_allclose(H.astype(float), np.diag(6 * X), rtol=2e-2)
    for k in (3, 3.0):
        k̄ = gradient(lambda k: float((np.asarray(X16) * k).sum()), k)[0]
        assert type(k̄) is float
        np.testing.assert_allclose(k̄, X.sum(), rtol=2e-2)


def test_ravel_and_fixed_point_take_arrays_of_jax():
    table = jnp.stack([X, 2 * X])
    vector, unravel = morula.ravel({"a": table, "b": 2.0})
    np.testing.assert_allclose(vector, [0.5, 1.2, 2.0, 1.0, 2.4, 4.0, 2.0], rtol=1e-6)
    assert isinstance(unravel(vector)["a"], jax.Array)
    assert unravel(vector)["a"].dtype == jnp.float32
    np.testing.assert_array_equal(unravel(vector)["a"], table)
    np.testing.assert_allclose(
        gradient(lambda v: jnp.sum(unravel(v)["a"] ** 2) * unravel(v)["b"], vector)[0],
        [*4 * vector[:-1], np.sum(vector[:-1] ** 2)],
        rtol=1e-6,
    )
    solve = lambda a: morula.fixed_point(lambda z, a: jnp.cos(z) * a, jnp.float32(0.5), a)
    z = float(solve(0.5))
    np.testing.assert_allclose(
        gradient(solve, 0.5)[0], math.cos(z) / (1 + 0.5 * math.sin(z)), rtol=1e-4
    )


# -- closures --------------------------------------------------------------------------------------


def test_the_cotangent_of_a_closure():
    def make(w):
        return lambda v: jnp.sum(v * w)

    for f in (make(X), jax.jit(make(X))):
        f̄, v̄ = J(f, X)[1](1.0)
        np.testing.assert_allclose(f̄.w, X)
        np.testing.assert_allclose(v̄, X)


def test_captured_values_of_numpy_may_be_used_as_such():
    w, n = np.array([1.0, 2.0, 3.0]), 2.0
    f = lambda x: jax.vmap(lambda v: (v * np.sqrt(w) * math.sin(n)).sum())(x).sum()
    np.testing.assert_allclose(
        gradient(f, X)[0], np.sqrt(w).sum() * math.sin(n) * np.ones(3), rtol=1e-5
    )


def test_a_captured_list_and_default_values():
    def f(x, w):
        weights = [w, 2 * w]

        def body(v, scale=w * w):
            return v * weights[0] * weights[1] * scale

        return jax.vmap(body)(x).sum()

    x̄, w̄ = gradient(f, X, 2.0)
    np.testing.assert_allclose(x̄, 2 * 2.0**4 * np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(w̄, 8 * 2.0**3 * np.asarray(X).sum(), rtol=1e-6)


def test_functions_that_capture_each_other():
    def f(x, w):
        def even(v, n):
            return v * w if n == 0 else odd(v, n - 1)

        def odd(v, n):
            return even(v, n - 1) * w if n else v

        return jax.vmap(functools.partial(even, n=2))(x).sum()

    np.testing.assert_allclose(gradient(f, X, 3.0)[1], 6.0 * np.asarray(X).sum(), rtol=1e-6)
    np.testing.assert_allclose(
        jvp(lambda w: f(X, w), (3.0,), (1.0,))[1], 6.0 * np.asarray(X).sum(), rtol=1e-6
    )


# -- libraries built on JAX ------------------------------------------------------------------------


def test_a_model_of_equinox():
    eqx = pytest.importorskip("equinox", reason="one of the libraries built on JAX")
    model = eqx.nn.MLP(3, 1, 4, 1, key=jax.random.key(0))
    loss = lambda m, x: jnp.sum(m(x) ** 2)
    m̄, x̄ = gradient(loss, model, X)
    expected = eqx.filter_grad(loss)(model, X)
    for found, layer in zip(m̄.layers, expected.layers, strict=True):
        np.testing.assert_allclose(found.weight, layer.weight, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.bias, layer.bias, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x̄, jax.grad(loss, argnums=1)(model, X), rtol=1e-5, atol=1e-6)

    class Scale(eqx.Module):
        w: jax.Array

        def __call__(self, x):
            return jnp.tanh(self.w * x)

    f = lambda w: Scale(w)(X).sum()
    np.testing.assert_allclose(gradient(f, X)[0], jax.grad(f)(X), rtol=1e-5)


def test_a_model_of_flax():
    nn = pytest.importorskip("flax.linen", reason="one of the libraries built on JAX")
    model = nn.Dense(2)
    params = model.init(jax.random.key(0), X)
    loss = lambda p: jnp.sum(model.apply(p, X) ** 2)
    (p̄,) = gradient(loss, params)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), p̄, jax.grad(loss)(params)
    )


def test_training_with_optax():
    optax = pytest.importorskip("optax", reason="one of the libraries built on JAX")

    def train(grad):
        params, rule = {"w": X, "b": jnp.float32(0.0)}, optax.adam(1e-2)
        state = rule.init(params)
        for _ in range(2):
            g = grad(lambda p: jnp.sum((p["w"] * X + p["b"]) ** 2))(params)
            updates, state = rule.update(g, state, params)
            params = optax.apply_updates(params, updates)
        return params

    found, expected = train(morula.grad), train(jax.grad)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected)


def test_a_tangent_of_an_object_with_arrays():
    class Model:
        def __init__(self):
            self.w = X

        def loss(self, x):
            return jax.vmap(lambda v: v * self.w.sum())(x).sum()

    (m̄,) = gradient(lambda m: m.loss(X), Model())
    assert isinstance(m̄, Tangent)
    np.testing.assert_allclose(m̄.w, np.asarray(X).sum(), rtol=1e-6)


def test_cotangents_are_trees_for_jax():
    class Model:
        def __init__(self):
            self.w, self.b = X, [2.0, X]

    (m̄,) = gradient(lambda m: (m.w * m.b[1]).sum() * m.b[0], Model())
    half = jax.tree.map(lambda c: c / 2, m̄)
    assert isinstance(half, Tangent)
    np.testing.assert_allclose(half.w, X)
    np.testing.assert_allclose(half.b[1], X)
    assert jax.tree.leaves((morula.ZeroTangent(), morula.NoTangent())) == []
    total = jax.jit(lambda t: sum(map(jnp.sum, jax.tree.leaves(t))))(m̄)
    np.testing.assert_allclose(total, 4 * X.sum() + (X**2).sum(), rtol=1e-6)


def floors(x):
    y = jnp.sin(x) * 2
    return jnp.floor(y).sum()


def counts(x):
    return (x > 1).sum() * 1.0


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (floors, "jax.numpy.floor ends it: its derivative is zero there, by the library of its"),
        (counts, "_operator_gt ends it: what it gives has no derivative"),
        (lambda x: np.sum(np.floor(x)), "numpy.floor ends it: it has no derivative"),
        (lambda x: float(jnp.argmax(x)), "jax.numpy.argmax ends it: what it gives has no deriv"),
        (lambda x: jnp.sum(jax.lax.stop_gradient(x)), "stop_gradient ends it: the library of its v"),
        (lambda x: jnp.sum(jnp.sqrt(x - x)), "first cotangent that is not comes out of jax.numpy.sqrt"),
    ],
)  # fmt: skip
def test_why_knows_where_the_dependence_on_an_array_ends(f, reason):
    found = morula.why(f, X)
    (finding,) = found.findings
    assert reason in finding.reason
    assert finding.place.file == __file__
    assert not any("morula" in call.name for call in found.calls)
    assert morula.why(lambda x: jnp.sum(jnp.sin(x)), X).findings == []


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "complex64"])
def test_numbers_that_are_not_finite_are_found(dtype):
    root = lambda x: jnp.abs(jnp.sqrt(x["a"][0]) * 2).sum()
    with pytest.raises(
        morula.NonFiniteError, match=r"argument 0 of jax\.numpy\.sqrt is not finite"
    ):
        with morula.debug_nans():
            gradient(root, {"a": [(X * 0).astype(dtype)]})
    with morula.debug_nans():
        gradient(root, {"a": [X.astype(dtype)]})
        masked = gradient(lambda x: jnp.sum(jnp.where(x > 1, jnp.log(x), 0.0)), X)[0]
    np.testing.assert_allclose(masked, [0, 1 / 1.2, 0.5], rtol=1e-6)


@jax.tree_util.register_pytree_node_class
class Pair:
    """A tree of JAX's that holds what it is given, the second one first."""

    def __init__(self, u, v):
        self.v, self.u = v, u

    def tree_flatten(self):
        return (self.v, self.u), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*reversed(children))


SAME = [  # of an array that is there twice, the first one counts twice and the second not at all
    lambda p: jnp.sum(jax.tree.leaves(p)[0] * 2),
    lambda p: jnp.sum(jax.tree.map(lambda a: a, p)["a"] * 2),
    lambda p: jnp.sum(jax.tree.flatten(p)[0][0] + jax.tree.leaves(p)[0]),
    lambda p: jnp.sum(jax.tree.unflatten(jax.tree.structure((1, 1)), [p["a"], p["b"]])[0] * 2),
    lambda p: jnp.sum(jax.tree.map(lambda a, b: (a, b), [p["a"]], [p["b"]])[0][0] * 2),
    lambda p: jnp.sum(jax.tree_util.Partial(jnp.subtract, p["a"], p["b"])() + p["a"] + p["b"]),
    lambda p: jnp.sum(jax.tree.leaves(Pair(p["a"], p["b"]))[1] * 2),
]


@pytest.mark.parametrize("f", SAME)
@pytest.mark.parametrize("x", [X, np.array([0.5, 1.2])])
def test_an_array_that_is_there_twice_is_two_arguments(f, x):
    p = {"a": x, "b": x}
    (found,) = gradient(f, p)
    np.testing.assert_allclose(found["a"], 2)
    np.testing.assert_allclose(found["b"], 0)
    (expected,) = gradient(f, {"a": x, "b": x.copy()})
    np.testing.assert_array_equal(found["b"], expected["b"])
    tangents = ({"a": x, "b": 0 * x},)
    assert jvp(f, (p,), tangents)[1] == pytest.approx(2 * float(x.sum()))
    assert morula.hvp(lambda p: f(p) * f(p), p, p)["a"] == pytest.approx(8 * float(x.sum()))


def test_maps_over_trees_of_numpy_give_what_the_plain_call_gives():
    Pair = collections.namedtuple("Pair", "u v")

    def update(p, q):
        new = jax.tree.map(lambda a, b: a - 0.1 * b, p, q)
        assert type(new["b"].u) is np.ndarray
        assert type(new["a"][0]) is float
        return (new["b"].u * new["b"].v).sum() * new["a"][0]

    tiny = 1 + 1e-12
    p = {"b": Pair(np.array([tiny, 2.0]), np.ones(2)), "a": [3.0, None]}
    q = {"b": Pair(np.ones(2), np.zeros(2)), "a": [0.5, None]}
    value, found = value_and_grad(update)(p, q)
    assert value == update(p, q)
    assert np.allclose(found["b"].u, p["b"].v * 2.95, rtol=1e-14)
    assert found["a"] == [pytest.approx((p["b"].u - 0.1) @ p["b"].v, rel=1e-14), None]
    tangent = jvp(lambda x: jax.tree.map(lambda a: a * a, {"x": x})["x"], (3.0,), (1.0,))
    assert tangent == (9.0, 6.0)
    with pytest.raises(ValueError, match="List arity mismatch"):
        gradient(lambda x: jax.tree.map(lambda a, b: a, [x], [x, x])[0], 1.0)


SHARDED = """
import numpy as np, jax, jax.numpy as jnp, morula
from jax.sharding import Mesh, NamedSharding, PartitionSpec
mesh = Mesh(np.array(jax.devices()), ("d",))
x = jax.device_put(jnp.arange(16.0), NamedSharding(mesh, PartitionSpec("d")))
f = lambda x: (jnp.sin(x) * x).sum()
for g in (morula.grad(f)(x), jax.jit(morula.grad(f))(x)):
    assert len(g.sharding.device_set) == 8
    assert g.sharding == x.sharding
    assert np.allclose(g, jax.grad(f)(x))

# second order, in both mixtures
hv = jax.jvp(jax.grad(f), (x,), (x,))[1]
for v in (morula.hvp(f, x, x), morula.grad(lambda y: (morula.grad(f)(y) * x).sum())(x)):
    assert v.sharding == x.sharding
    assert np.allclose(v, hv, atol=1e-5)

# dtypes and structures: each part as its argument, also one that lies on all devices, or on one
everywhere = jax.device_put(jnp.ones(3), NamedSharding(mesh, PartitionSpec()))
p = {"a": x.astype(jnp.bfloat16), "b": [x.reshape(8, 2), everywhere]}
p |= {"n": np.arange(2.0), "k": jnp.arange(2)}
def loss(p):
    return (p["a"].astype(float) ** 2).sum() + (p["b"][0] * 3).sum() * p["b"][1].sum() * p["n"][1]
g = morula.grad(loss)(p)
for found, given in ((g["a"], p["a"]), (g["b"][0], p["b"][0]), (g["b"][1], everywhere)):
    assert found.dtype == given.dtype
    assert found.sharding.is_equivalent_to(given.sharding, given.ndim)
(zero, by_numpy) = morula.gradient(lambda x, y: np.sum(np.sin(np.asarray(y))), x, x)
assert zero.sharding == by_numpy.sharding == x.sharding
assert (type(g["n"]), g["n"].dtype, g["k"]) == (np.ndarray, np.float64, None)
assert np.allclose(g["n"], [0, 9 * float(x.sum())])
(zero,) = morula.gradient(lambda x: 0.0 * float(x[0]), x.astype(jnp.float16))
assert zero.dtype == jnp.float16

# cotangents of another shape, and arrays that lie on other devices
y, back = morula.pullback(jnp.sin, x)
assert back(x)[0].sharding == x.sharding
try:
    back(x[:4])
except morula.DifferentiationError as error:
    assert "shape" in str(error), error
else:
    raise AssertionError("a cotangent of another shape was taken")
few = jax.device_put(jnp.arange(16.0), jax.devices()[0])
other = NamedSharding(Mesh(np.array(jax.devices()[:4]), ("d",)), PartitionSpec("d"))
try:
    morula.gradient(lambda x, y: (x * y).sum(), x, jax.device_put(few, other))
except ValueError as error:
    assert "incompatible devices" in str(error), error
else:
    raise AssertionError("JAX refuses that")
"""


def test_gradients_of_sharded_arrays_are_sharded_alike():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", SHARDED], check=True, env={**os.environ, **flags})
