"""Models of libraries built on JAX: their gradients are trees of their own class, as in JAX."""

import dataclasses

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is an extra")
eqx = pytest.importorskip("equinox", reason="one of the libraries built on JAX")
linen = pytest.importorskip("flax.linen", reason="one of the libraries built on JAX")
nnx = pytest.importorskip("flax.nnx", reason="one of the libraries built on JAX")
optax = pytest.importorskip("optax", reason="one of the libraries built on JAX")

import jax.numpy as jnp  # noqa: E402

from morula import (  # noqa: E402
    J,
    Tangent,
    grad,
    gradient,
    hvp,
    jacobian,
    jvp,
    pullback,
    ravel,
    value_and_grad,
)
from morula.core.errors import ArgumentError, CotangentError, UnsupportedError  # noqa: E402

X = jnp.array([0.5, 1.2])
W = jnp.array([1.0, 2.0])


def agree(found, expected):
    """The same trees, with arrays of the same dtypes and numbers."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


class Net(eqx.Module):
    """With what is no parameter: a rate, a function, texts and numbers in a list."""

    layer: eqx.nn.Linear
    w: jax.Array
    dropout: eqx.nn.Dropout
    act: object
    notes: list
    scale: float = 2.0

    def __call__(self, x):
        h = self.dropout(self.act(self.layer(x)), inference=True)
        return jnp.sum(self.w * h) * self.scale


def net(dtype=jnp.float32):
    layer = eqx.nn.Linear(2, 2, key=jax.random.key(0), dtype=dtype)
    return Net(layer, W.astype(dtype), eqx.nn.Dropout(0.3), jnp.tanh, ["a", 0.5, 3, W.astype(int)])


def loss(m, x):
    return m(x) ** 2


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_gradient_of_a_module_of_equinox_is_that_of_filter_grad(dtype):
    m, x = net(dtype), X.astype(dtype)
    value, found = value_and_grad(loss)(m, x)
    assert isinstance(found, Net)
    assert value == loss(m, x)
    expected = eqx.filter_grad(loss)(m, x)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    assert found.layer.weight.dtype == dtype
    if dtype == jnp.float32:
        agree(found, expected)
        agree(grad(eqx.filter_jit(loss))(m, x), expected)
        agree(pullback(loss, m, x)[1](1.0)[0], expected)
        agree(J(m, x)[1](2 * m(x))[0], expected)


def test_a_module_trains_by_apply_updates():
    def train(grad):
        m, rule = net(), optax.adam(1e-1)
        state = rule.init(eqx.filter(m, eqx.is_inexact_array))
        for _ in range(3):
            updates, state = rule.update(grad(loss)(m, X), state)
            m = eqx.apply_updates(m, updates)
        return m

    found, expected = train(grad), train(eqx.filter_grad)
    agree(eqx.filter(found, eqx.is_array), eqx.filter(expected, eqx.is_array))
    assert found.scale == 2.0
    assert found.notes[:3] == ["a", 0.5, 3]


def test_second_derivatives_by_a_module():
    m = net()
    params, static = eqx.partition(m, eqx.is_inexact_array)
    v = jax.tree.map(lambda p: p + 1, params)
    of_params = lambda p: loss(eqx.combine(p, static), X)
    expected = jax.jvp(jax.grad(of_params), (params,), (v,))[1]
    agree(hvp(lambda m: loss(m, X), m, v), expected)
    agree(jvp(grad(of_params), (params,), (v,))[1], expected)
    agree(grad(lambda m: optax.tree.norm(grad(loss)(m, X)))(m), eqx.filter_grad(
        lambda m: optax.tree.norm(eqx.filter_grad(loss)(m, X)))(m))  # fmt: skip
    agree(jvp(lambda s: jax.tree.map(lambda p: p * s, v), (2.0,), (1.0,))[1], v)

    def after_a_step(grad):
        def f(m):
            updates = jax.tree.map(lambda c: -0.1 * c, grad(loss)(m, X))
            return loss(eqx.apply_updates(m, updates), X)

        return f

    agree(grad(after_a_step(grad))(m), eqx.filter_grad(after_a_step(eqx.filter_grad))(m))


def test_numbers_of_a_module_are_numbers_in_differentiated_code():
    m = net()
    nothing = jax.tree.map(lambda p: None, m)

    def f(scale):
        new = Net(m.layer, m.w, m.dropout, m.act, m.notes, scale)
        return eqx.apply_updates(new, nothing).scale * 3

    value, found = value_and_grad(f)(2.0)
    assert (value, type(value), found) == (6.0, float, 3.0)
    assert hvp(lambda s: f(s) * s, 2.0, 1.0) == 6.0
    seen = []
    grad(lambda m: seen.append(type(m.scale)) or m.scale * m.w.sum())(m)
    assert seen == [float]


def test_vectors_of_a_module_have_its_arrays():
    m = net()
    vector, unravel = ravel(m)
    assert vector.shape == (8,)
    again = unravel(2 * vector)
    assert isinstance(again, Net)
    np.testing.assert_allclose(again.w, 2 * W)
    assert (again.scale, again.layer.in_features, again.notes[:3]) == (2.0, 2, ["a", 0.5, 3])
    np.testing.assert_allclose(
        grad(lambda v: loss(unravel(v), X))(vector), ravel(grad(loss)(m, X))[0], rtol=1e-5
    )
    np.testing.assert_allclose(grad(lambda m: (ravel(m)[0] ** 2).sum())(m).w, 2 * W)


def test_what_does_not_mirror_a_module_is_refused():
    m = net()
    with pytest.raises(CotangentError, match=r"is a Linear, expected Tangent\[Net\]"):
        jvp(lambda m: loss(m, X), (m,), (m.layer,))
    with pytest.raises(CotangentError, match=r"object of type Net is a Linear"):
        pullback(lambda w: dataclasses.replace(m, w=w), W)[1](m.layer)
    with pytest.raises(ArgumentError, match="use ravel for a structure"):
        jacobian(lambda m: m.w, m)
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nope'"):
        gradient(lambda m: m.nope, m)


@jax.tree_util.register_pytree_node_class
class Listed:
    """A tree whose children stand in a list."""

    def __init__(self, items):
        self.items = list(items)

    def tree_flatten(self):
        return self.items, None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(children)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Kept:
    """A tree with a dict and a number."""

    parts: dict
    factor: float


TREES = [
    (Listed([W, 3 * W]), lambda p: jnp.sum(p.items[0] ** 2 * p.items[1])),
    (Listed([W, 3 * W]), lambda p: jax.jit(lambda p: jnp.sum(p.items[0] ** 2 * p.items[1]))(p)),
    (Kept({"u": W}, 3.0), lambda p: jnp.sum(p.parts["u"] ** 2) * p.factor),
]


@pytest.mark.parametrize(("p", "f"), TREES)
def test_trees_that_are_registered_with_jax(p, f):
    found, expected = grad(f)(p), jax.grad(f)(p)
    assert type(found) is type(p)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), found, expected)
    assert type(getattr(found, "factor", 0.0)) is float
    twice = hvp(f, p, p)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5),
        twice,
        jax.jvp(jax.grad(f), (p,), (jax.tree.map(jnp.asarray, p),))[1],
    )


def test_a_tree_whose_children_are_no_attributes_has_a_tangent():
    class Pair:
        def __init__(self, items):
            self.both = tuple(items)

    jax.tree_util.register_pytree_node(Pair, lambda p: (p.both, None), lambda _, c: Pair(c))
    (found,) = gradient(lambda p: jnp.sum(p.both[0] * p.both[1]), Pair([W, 3 * W]))
    assert isinstance(found, Tangent)
    np.testing.assert_allclose(found.both[0], 3 * W)


# -- Flax ------------------------------------------------------------------------------------------


def test_a_model_of_linen_with_statistics_and_a_train_state():
    class Model(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.BatchNorm(use_running_average=False)(linen.Dense(2)(x))
            return jnp.sum(jnp.tanh(x) ** 3)

    from flax.core import freeze
    from flax.training.train_state import TrainState

    model, x = Model(), jnp.array([[0.5, 1.2], [0.1, -1.0], [2.0, 0.3]])
    variables = model.init(jax.random.key(0), x)

    def loss(params):
        return model.apply(
            {"params": params, "batch_stats": variables["batch_stats"]}, x, mutable=["batch_stats"]
        )

    params = variables["params"]
    found, aux = grad(loss, has_aux=True)(params)
    expected, expected_aux = jax.grad(loss, has_aux=True)(params)
    agree(found, expected)
    agree(aux, expected_aux)
    of_params = lambda p: loss(p)[0]
    agree(
        hvp(of_params, params, params),
        jax.jvp(jax.grad(of_params), (params,), (params,))[1],
    )
    frozen = freeze(params)
    agree(grad(of_params)(frozen), freeze(expected))
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(1e-1))
    after = state.apply_gradients(grads=found).params
    agree(after, jax.tree.map(lambda p, c: p - 0.1 * c, params, expected))
    by_state = grad(lambda s: of_params(s.params))(state)
    assert type(by_state) is TrainState
    agree(by_state.params, expected)
    with pytest.raises(UnsupportedError, match=r"module of Flax with its variables[\s\S]*apply"):
        gradient(lambda x: model.bind(variables)(x), x)


class Block(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(2, 2, rngs=rngs)
        self.w = nnx.Param(W)
        self.calls = nnx.Variable(jnp.array(0.0))

    def __call__(self, x):
        return jnp.sum(jnp.tanh(self.layer(x)) * self.w[...])


def block_loss(m):
    return m(X) ** 2


def test_a_model_of_nnx():
    m = Block(nnx.Rngs(0))
    found = grad(block_loss)(m)
    assert type(found) is Block
    expected = nnx.grad(block_loss)(m)
    agree(nnx.state(found, nnx.Param), expected)
    graph, params, rest = nnx.split(m, nnx.Param, ...)
    of_params = lambda p: block_loss(nnx.merge(graph, p, rest))
    agree(grad(of_params)(params), expected)
    twice = jax.jvp(jax.grad(of_params), (params,), (params,))[1]
    agree(hvp(of_params, params, params), twice)
    agree(nnx.state(hvp(block_loss, m, m), nnx.Param), twice)
    by_hand = grad(lambda m: float(m.w[...][0]) * 3.0 + jnp.sum(m.layer.bias.get_value()))(m)
    np.testing.assert_allclose(by_hand.w[...], [3, 0])
    np.testing.assert_allclose(by_hand.layer.bias[...], 1)


def test_a_model_of_nnx_trains():
    def train(grad):
        m = Block(nnx.Rngs(0))
        rule = nnx.Optimizer(m, optax.adam(1e-1), wrt=nnx.Param)
        for _ in range(2):
            rule.update(m, nnx.state(grad(block_loss)(m), nnx.Param))
        return nnx.state(m, nnx.Param)

    agree(train(grad), train(nnx.grad))


def sets_an_entry(m):
    m.w[...] = m.w[...] * 2.0
    return jnp.sum(m.w[...] ** 2)


def sets_by_a_method(m):
    m.w.set_value(m.w.get_value() * 2.0)
    return jnp.sum(m.w[...] ** 2)


class Counting(Block):
    def __call__(self, x):
        self.calls[...] += jnp.sum(x)
        return super().__call__(x)


@pytest.mark.parametrize("f", [sets_an_entry, sets_by_a_method, block_loss])
def test_what_changes_a_variable_of_nnx_is_refused(f):
    m = Counting(nnx.Rngs(0))
    with pytest.raises(UnsupportedError, match=r"changes a (Param|Variable)[\s\S]*under jax\.jit"):
        gradient(f, m)
    assert (float(m.calls[...]), m.w[...].tolist()) == (0.0, W.tolist())

    @jax.jit
    def functional(params, rest):
        m = nnx.merge(graph, params, rest)
        y = f(m)
        return y, nnx.state(m)

    graph, params, rest = nnx.split(m, nnx.Param, ...)
    found, state = grad(functional, has_aux=True)(params, rest)
    expected, expected_state = jax.grad(functional, has_aux=True)(params, rest)
    agree(found, expected)
    agree(state, expected_state)


# -- Optax -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_losses_and_tree_helpers_of_optax(dtype):
    params = {"w": X.astype(dtype), "b": [W.astype(dtype), None]}

    def f(p):
        fit = jnp.sum(optax.huber_loss(p["w"] * 3, p["b"][0], delta=1.0))
        return fit + optax.tree.norm(p) ** 2 + optax.tree_utils.tree_vdot(p, p)

    found, expected = grad(f)(params), jax.grad(f)(params)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(np.float32(a), np.float32(b), rtol=2e-2)
    if dtype == "float32":
        agree(hvp(f, params, params), jax.jvp(jax.grad(f), (params,), (params,))[1])


def test_steps_of_optax_are_differentiated():
    rule = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(0.1))

    def trained(grad, square):
        def f(rate):
            params = {"w": X}
            state = rule.init(params)
            for _ in range(2):
                found = grad(lambda p: jnp.sum(square(p["w"]) * rate))(params)
                updates, state = rule.update(found, state, params)
                params = optax.apply_updates(params, updates)
            return jnp.sum(params["w"] ** 2)

        return f

    square = lambda w: w**2 + jnp.sin(w)
    found = value_and_grad(trained(grad, square))(1.5)
    expected = jax.value_and_grad(trained(jax.grad, square))(1.5)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_updates_of_another_structure_are_the_librarys_error():
    rule = optax.adam(0.1)
    state = rule.init({"w": X})
    with pytest.raises(ValueError, match="key"):
        gradient(lambda x: rule.update({"v": x}, state)[0]["v"].sum(), X)
    with pytest.raises(ValueError, match=r"key|structure|arity"):
        gradient(lambda x: jnp.sum(optax.apply_updates({"w": x}, {"v": x})["w"]), X)
