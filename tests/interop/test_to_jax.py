"""NumPy functions that Morula differentiates, as JAX functions: against what JAX gives itself."""

import dataclasses

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the extra jax is not installed")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from morula.interop.jax import to_jax  # noqa: E402
from morula.interop.operations import OperationError  # noqa: E402


def model(x, a):
    """Has what JAX cannot trace: a loop that ends by a value."""
    y = np.sin(x) * a
    while y[0] < 0.1:
        y = y + 1.0
    return np.sum(y**2) + x[0] ** 3


def model_in_jax(x, a):
    return jnp.sum((jnp.sin(x) * a) ** 2) + x[0] ** 3


X = np.array([0.5, 1.0, 2.0], dtype=np.float32)
f = to_jax(model)


def close(got, want, rtol=2e-5):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol, 1e-5), got, want)


@pytest.mark.parametrize(
    "transform",
    [
        lambda h: h,
        jax.grad,
        lambda h: jax.grad(h, argnums=(0, 1)),
        lambda h: jax.jit(jax.value_and_grad(h)),
        lambda h: lambda x, a: jax.jvp(h, (x, a), (x + 1, 0.5)),
        lambda h: jax.jit(lambda x, a: jax.jvp(lambda x: h(x, a), (x,), (x,))),
        lambda h: jax.jacfwd(jax.jacfwd(h)),
        lambda h: jax.jacrev(jax.jacrev(h)),
        lambda h: jax.jit(jax.hessian(h)),
        lambda h: jax.grad(lambda x, a: jnp.sum(jax.grad(h)(x, a) ** 2)),
    ],
)
def test_transforms_of_jax_give_what_they_give_for_its_own_functions(transform):
    close(transform(f)(X, 2.0), transform(model_in_jax)(X, 2.0))


@pytest.mark.parametrize(
    "transform",
    [
        lambda h: jax.vmap(h, (0, None)),
        lambda h: jax.jit(jax.vmap(jax.grad(h), (0, None))),
        lambda h: jax.grad(
            lambda xs, a: jnp.sum(jax.vmap(h, (0, None))(xs, a) ** 2), argnums=(0, 1)
        ),
        lambda h: jax.jit(jax.vmap(jax.hessian(h), (0, None))),
    ],
)
def test_along_an_axis(transform):
    xs = jnp.stack([X, X + 1, 2 * X])
    close(transform(f)(xs, 2.0), transform(model_in_jax)(xs, 2.0))


def test_along_two_axes():
    xs, a = jnp.stack([X, X + 1, 2 * X]), jnp.array([1.0, 2.0])

    def twice(h):
        return jax.jit(jax.vmap(jax.vmap(jax.grad(h), (None, 0)), (0, None)))

    close(twice(f)(xs, a), twice(model_in_jax)(xs, a))


def test_a_program_that_writes_into_an_array():
    def writes(x, a):
        y = np.zeros(3)
        for i in range(3):
            y[i] = np.sin(x[i]) * a
        return np.sum(y**2) + x[0] ** 3

    h = to_jax(writes)
    close(jax.jit(jax.grad(h))(X, 2.0), jax.grad(model_in_jax)(X, 2.0))
    close(jax.jacrev(jax.grad(h))(X, 2.0), jax.hessian(model_in_jax)(X, 2.0))


def test_third_derivative():
    cube = to_jax(lambda x: x**4)
    assert jax.jit(jax.jacfwd(jax.jacfwd(jax.jacfwd(cube))))(2.0) == 48.0


def test_in_scan_and_cond():
    step = to_jax(lambda x: np.cos(x) * 1.5)

    def loop(h):
        def run(x):
            x, _ = lax.scan(lambda x, _: (h(x), None), x, None, length=4)
            return lax.cond(x > 0, h, lambda x: x, x)

        return run

    close(jax.grad(loop(step))(0.3), jax.grad(loop(lambda x: jnp.cos(x) * 1.5))(0.3))


def test_pytrees_in_and_out():
    def net(params, x, *, scale=1.0):
        h = np.tanh(x @ params["w"][0] + params["b"])
        return {"out": h @ params["w"][1] * scale, "parts": (h.sum(), h.shape[0])}

    def in_jax(params, x, *, scale=1.0):
        h = jnp.tanh(x @ params["w"][0] + params["b"])
        return {"out": h @ params["w"][1] * scale, "parts": (h.sum(), h.shape[0])}

    rng = np.random.default_rng(0)
    params = {"w": [rng.standard_normal((3, 4)), rng.standard_normal(4)], "b": np.zeros(4)}
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params)
    x = jnp.asarray(rng.standard_normal((5, 3)), jnp.float32)
    got, want = to_jax(net)(params, x, scale=2.0), in_jax(params, x, scale=2.0)
    close(got, want)
    assert got["parts"][1].dtype == jnp.int32

    def loss(h):
        def of(params, scale):
            y = h(params, x, scale=scale)
            return jnp.sum(y["out"] ** 2) + y["parts"][0]

        return of

    for how in (lambda h: h, jax.jit):
        g = how(jax.grad(loss(to_jax(net)), argnums=(0, 1)))(params, 2.0)
        close(g, jax.grad(loss(in_jax), argnums=(0, 1))(params, 2.0), rtol=1e-4)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Line:
    slope: object
    offset: object
    name: str = dataclasses.field(metadata={"static": True}, default="line")


def test_objects_that_jax_knows_as_pytrees():
    h = to_jax(lambda line, x: Line(line.slope * x, line.offset + len(line.name), "out"))

    def loss(line, x):
        y = h(line, x)
        return y.slope**2 + 3 * y.offset

    for how in (lambda h: h, jax.jit):
        g = how(jax.grad(loss))(Line(2.0, 1.0), 3.0)
        assert isinstance(g, Line)
        assert (g.slope, g.offset, g.name) == (36.0, 3.0, "line")
        dots = Line(1.0, 2.0)
        assert (
            how(lambda line: jax.jvp(lambda l: loss(l, 3.0), (line,), (dots,))[1])(Line(2.0, 1.0))
            == 42.0
        )
    with pytest.raises(NotImplementedError, match="derivatives of derivatives by an object"):
        jax.hessian(loss)(Line(2.0, 1.0), 3.0)


def test_integers_and_what_is_no_number_are_no_variables():
    def power(x, n, how):
        assert type(n) is int
        y = 1.0
        for _ in range(n):
            y = y * x
        return y if how == "up" else 1 / y

    h = to_jax(power)
    assert jax.grad(h)(2.0, 3, "up") == 12.0
    assert jax.grad(h)(2.0, 1, "down") == -0.25
    assert jax.jit(jax.grad(h), static_argnums=2)(2.0, jnp.int32(3), "up") == 12.0
    assert jax.vmap(h, (None, 0, None))(2.0, jnp.arange(3), "up").tolist() == [1, 2, 4]
    counts = to_jax(lambda x: (x.sum(), np.argmax(x)))
    assert jax.grad(lambda x: counts(x)[0])(X).tolist() == [1, 1, 1]
    assert jax.grad(lambda x: jnp.where(counts(x)[1] == 2, x[2], 0.0))(X).tolist() == [0, 0, 1]


def test_precision_is_that_of_jax_outside_and_double_inside():
    seen = []

    def g(x):
        seen.append(np.asarray(x).dtype)
        return x**2

    h = to_jax(g)
    for dtype in (jnp.float32, jnp.float16, jnp.bfloat16):
        x = jnp.array([1.5, 2.0], dtype)
        assert h(x).dtype == dtype
        slope = jax.jit(jax.grad(lambda x: h(x).sum()))(x)
        assert slope.dtype == dtype
        assert slope.tolist() == [3.0, 4.0]
    assert {*map(str, seen)} == {"float64"}
    with jax.enable_x64(True):
        x = jnp.array([1.5, 2.0])
        assert h(x).dtype == jnp.float64
        assert jax.grad(lambda x: h(x / 3).sum())(x)[1] == pytest.approx(4 / 9, rel=1e-15)
    narrow = to_jax(g, out=jax.ShapeDtypeStruct((2,), jnp.float16))
    assert narrow(jnp.ones(2)).dtype == jnp.float16


def test_complex_cotangents_follow_jax():
    def g(z, x):
        return np.abs(z * np.exp(1j * x)) ** 2 * x + np.real(z**2)

    def in_jax(z, x):
        return jnp.abs(z * jnp.exp(1j * x)) ** 2 * x + jnp.real(z**2)

    h = to_jax(g)
    z, x = jnp.complex64(1 + 2j), jnp.float32(0.7)
    close(jax.grad(h, argnums=(0, 1))(z, x), jax.grad(in_jax, argnums=(0, 1))(z, x))
    holomorphic = jax.grad(to_jax(lambda z: np.sin(z) * z), holomorphic=True)
    close(holomorphic(z), jnp.cos(z) * z + jnp.sin(z))
    close(jax.grad(holomorphic, holomorphic=True)(z), 2 * jnp.cos(z) - jnp.sin(z) * z)


def test_what_the_value_looks_like_may_be_said():
    def picky(x):
        return np.linalg.cholesky(np.outer(x, x) + np.diag(x - 1))

    with pytest.raises(np.linalg.LinAlgError) as info:
        jax.jit(to_jax(picky))(X + 1)
    assert "give to_jax(f, out=" in "".join(info.value.__notes__)
    want = picky(X.astype(float) + 1)
    for out in (
        jax.ShapeDtypeStruct((3, 3), jnp.float32),
        ((3, 3), "float32"),
        jnp.zeros((3, 3)),
    ):
        close(jax.jit(to_jax(picky, out=out))(X + 1), want)
    pair = to_jax(lambda x: (x, {"n": x.sum()}), out=(((3,), "f4"), {"n": ((), "f4")}))
    close(jax.jit(pair)(X), (X, {"n": X.sum()}))
    assert to_jax(picky)(X + 1).shape == (3, 3)
    close(jax.grad(lambda x: to_jax(picky)(x).sum())(X + 1).shape, (3,))


def test_errors_say_what_is_missing():
    with pytest.raises(OperationError, match=r"shape \(3,\) where shape \(2,\) was announced"):
        to_jax(lambda x: x, out=((2,), float))(X)
    with pytest.raises(OperationError, match="gave complex128 where float32 was announced"):
        to_jax(lambda x: x * 1j, out=((3,), float))(X)
    with pytest.raises(OperationError, match="gave a str"):
        to_jax(lambda x: "x")(X)
    with pytest.raises(OperationError, match="structure"):
        to_jax(lambda x: (x, x), out=((3,), float))(X)
    with pytest.raises(TypeError, match=r"by jax\.ShapeDtypeStruct or pairs"):
        to_jax(lambda x: x, out="float32")
    with pytest.raises(TypeError, match="runs in NumPy"):
        to_jax(lambda x: x)(jax.random.key(0))
    with pytest.raises(TypeError, match="hashed"):
        to_jax(lambda x, s: x)(X, {1, 2})


def test_the_programs_errors_come_through():
    def refuses(x):
        raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        to_jax(refuses)(X)
    with pytest.raises(Exception, match="no such thing"):
        jax.block_until_ready(jax.jit(to_jax(refuses, out=((), float)))(X))


def test_optax_trains_a_numpy_model():
    optax = pytest.importorskip("optax", reason="optax is not installed")
    rng = np.random.default_rng(1)
    points = rng.standard_normal((20, 2))
    targets = points @ [1.0, -2.0] + 0.5

    def loss(params):
        return np.mean((points @ params["w"] + params["b"] - targets) ** 2)

    params = {"w": jnp.zeros(2), "b": jnp.zeros(())}
    optimiser = optax.adam(0.1)
    state = optimiser.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(to_jax(loss))(params)
        updates, state = optimiser.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    for _ in range(200):
        params, state, value = step(params, state)
    assert value < 1e-4
    np.testing.assert_allclose(params["w"], [1.0, -2.0], atol=0.02)
