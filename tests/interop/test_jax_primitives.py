"""Callables of JAX's as primitives: gradients, forward mode and second order, beside JAX's own."""

import functools
import operator

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="JAX is an extra")
jnp = pytest.importorskip("jax.numpy", reason="JAX is an extra")
lax, flatten_util = jax.lax, pytest.importorskip("jax.flatten_util")

import morula  # noqa: E402
from morula import DifferentiationError, NoRuleError, grad, gradient, hessian, jvp  # noqa: E402
from morula.interop.jax import vjp_rule  # noqa: E402

X = jnp.array([0.5, 1.2, 2.0])
A = jnp.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.0, 0.1, 1.2]])


class Scaled:
    def __init__(self, w):
        self.w = w
        self.n = 3

    def method(self, v):
        return v * self.w + self.n

    def __call__(self, v):
        return v * self.w


def nested(x):
    w = x[0]

    def inner(v):
        return v * w**2

    def outer(v):
        return inner(v) * 2

    return jax.vmap(jax.jit(outer))(x).sum()


def in_place(x):
    y = x
    y += x * 2
    y *= x
    return y.sum()


PROGRAMS = {
    "function": lambda x: jnp.sum(jnp.sin(x) * x),
    "methods": lambda x: x.reshape(3, 1).T.mean() * x.max() + x.astype(jnp.float32).prod(),
    "operators": lambda x: (((-x + 1) * 2 / x - 3 * x) ** 2 // 100 + x**3 % 2 + abs(x)).sum(),
    "matrix": lambda x: x @ A @ x + (A.T @ x)[0],
    "index": lambda x: x[0] * x[1:].sum() + x[jnp.array([0, 2])].sum() ** 2 + x[-1],
    "at": lambda x: x.at[0].add(x[1] ** 2).at[1:].multiply(x[0]).sum(),
    "where": lambda x: jnp.where(x > 1, x**2, x).sum(),
    "nn": lambda x: jax.nn.relu(x - 1).sum() + jax.nn.softmax(x)[0] + jax.nn.gelu(x).sum(),
    "special": lambda x: jax.scipy.special.gammaln(x).sum() + jax.scipy.special.erf(x).sum(),
    "linalg": lambda x: jnp.linalg.slogdet(A * x)[1] + jnp.linalg.solve(A, x).sum(),
    "einsum": lambda x: jnp.einsum("i,ij,j", x, A, x),
    "jit": lambda x: jax.jit(lambda v: jnp.sum(v**2 * x))(x),
    "scan": lambda x: lax.scan(lambda c, v: (c * v * x[0], c + v * x[1]), 1.0, x)[1].sum(),
    "cond": lambda x: lax.cond(x[0] > 0, lambda: (x**2).sum(), lambda: x.prod()),
    "switch": lambda x: lax.switch(1, [lambda: x.sum(), lambda: x.prod()]),
    "map": lambda x: lax.map(lambda v: v * x[0], x).sum(),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * x[i], 1.0),
    "vmap": lambda x: jax.vmap(lambda v: v**2 * x[0])(x).sum(),
    "nested": nested,
    "partial": lambda x: jax.jit(functools.partial(lambda w, v: v * w**2, x))(x).sum(),
    "method of an object": lambda x: jax.vmap(Scaled(x[0]).method)(x).sum(),
    "object": lambda x: jax.vmap(Scaled(x[0]))(x).sum(),
    "grad": lambda x: jax.grad(lambda y: jnp.sum(y**3 * x[0]))(x).sum(),
    "value_and_grad": lambda x: jax.value_and_grad(lambda y: jnp.sum(y**3 * x[0]))(x)[0],
    "vjp": lambda x: jax.vjp(lambda y: jnp.sin(y) * x, x)[1](x)[0].sum(),
    "jvp": lambda x: jax.jvp(lambda y: jnp.sin(y) * x, (x,), (x,))[1].sum(),
    "jacfwd": lambda x: jax.jacfwd(lambda y: jnp.sin(y) * x[0])(x).sum(),
    "checkpoint": lambda x: jax.checkpoint(lambda y: jnp.sum(jnp.sin(y) * x))(x),
    "vectorize": lambda x: jnp.vectorize(lambda a: a * x[0])(x).sum(),
    "dict": lambda x: jax.jit(lambda d: {"c": d["a"] ** 2 * d["b"]})({"a": x, "b": x})["c"].sum(),
    "list": lambda x: jnp.stack([x, x**2, 2 * x]).prod(),
    "ravel_pytree": lambda x: (flatten_util.ravel_pytree({"a": x, "b": x * 2})[0] ** 2).sum(),
    "unravel": lambda x: (lambda flat, back: back(flat**2)["b"].sum())(
        *flatten_util.ravel_pytree({"a": x, "b": x})
    ),
    "tree": lambda x: sum(
        jax.tree.leaves(jax.tree.map(lambda a: (a**3).sum(), {"a": x, "b": (x, 2 * x)}))
    ),
    "random": lambda x: (jax.random.normal(jax.random.key(0), (3,)) * x**2).sum(),
    "stop_gradient": lambda x: (lax.stop_gradient(x) * x**2).sum(),
    "branch": lambda x: (x**2).sum() if x[0] > 0 else x.prod(),
    "loop": lambda x: functools.reduce(operator.mul, list(x)),
    "rows": lambda x: sum([a * b for a, b in zip(x, 2 * x, strict=True)]),
    "unpacking": lambda x: (lambda a, b, c: a * b + c)(*x),
    "greatest": lambda x: max(x[0], x[1] * 2) * min(list(x)),
    "in place": in_place,
    "attributes": lambda x: (x.T * x.real).sum() / x.shape[0] * len(x) * x.size * x.ndim,
    "mixed with NumPy": lambda x: (np.arange(3.0) * x + x * np.float32(2) * x).sum(),
}


SECOND = ("function", "at", "dict")
FORWARD = (
    *SECOND,
    "operators",
    "cond",
    "fori_loop",
    "object",
    "grad",
    "tree",
    "in place",
    "unravel",
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient_and_value_are_those_of_jax(name):
    f = PROGRAMS[name]
    y, (x̄,) = morula.withgradient(f, X)
    np.testing.assert_allclose(y, f(X), rtol=1e-6)
    assert isinstance(x̄, jax.Array)
    assert x̄.dtype == X.dtype
    np.testing.assert_allclose(x̄, jax.grad(f)(X), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_is_that_of_jax(name):
    f = PROGRAMS[name]
    y, ẏ = jvp(f, (X,), (A[0],))
    np.testing.assert_allclose(y, f(X), rtol=1e-6)
    np.testing.assert_allclose(ẏ, jax.jvp(f, (X,), (A[0],))[1], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", SECOND)
def test_second_order_is_that_of_jax_in_all_mixtures(name):
    f, v = PROGRAMS[name], A[1]
    exact = jax.jvp(jax.grad(f), (X,), (v,))[1]
    reverse_over_reverse = grad(lambda x: (grad(f)(x) * v).sum())(X)
    forward_over_reverse = jvp(grad(f), (X,), (v,))[1]
    reverse_over_forward = grad(lambda x: jvp(f, (x,), (v,))[1])(X)
    for found in (reverse_over_reverse, forward_over_reverse, reverse_over_forward):
        np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)


def test_a_gradient_agrees_with_finite_differences_in_double_precision():
    with jax.enable_x64():
        x = jnp.array([0.5, 1.2, 2.0])

        def f(x):
            w = jnp.tanh(x[0])
            return lax.scan(lambda c, v: (c * v * w + x[1], jnp.sin(c)), 1.0, x)[1].sum()

        (x̄,) = gradient(f, x)
        assert x̄.dtype == jnp.float64
        for i in range(3):
            e = np.zeros(3)
            e[i] = 1e-6
            np.testing.assert_allclose(x̄[i], (f(x + e) - f(x - e)) / 2e-6, rtol=1e-7)


def test_jacobian_hessian_and_products_are_arrays_of_jax():
    f = PROGRAMS["function"]
    H = hessian(f, X)
    assert isinstance(H, jax.Array)
    np.testing.assert_allclose(H, jax.hessian(f)(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(morula.hvp(f, X, X), H @ X, rtol=1e-5)
    np.testing.assert_allclose(morula.diaghessian(f, X), jnp.diag(H), rtol=1e-5)
    for mode in ("forward", "reverse"):
        (J,) = morula.jacobian(lambda x: jnp.sin(x) * x[0], X, mode=mode)
        assert isinstance(J, jax.Array)
        np.testing.assert_allclose(J, jax.jacrev(lambda x: jnp.sin(x) * x[0])(X), rtol=1e-5)


def test_hessian_by_a_numpy_array_is_one_of_numpy():
    H = hessian(PROGRAMS["function"], np.array([0.5, 1.2, 2.0]))
    assert type(H) is np.ndarray
    assert H.dtype == np.float64
    np.testing.assert_allclose(H, jax.hessian(PROGRAMS["function"])(X), rtol=1e-5, atol=1e-6)


# -- rules of JAX's own ----------------------------------------------------------------------------


def test_custom_vjp_is_honoured():
    @jax.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, ȳ: (7.0 * ȳ * x,))
    np.testing.assert_allclose(gradient(lambda x: square(x).sum(), X)[0], 7 * X)


@jax.custom_vjp
def clipped(p, x):
    return jnp.sum(p["w"] * x**3), x


def clipped_forward(p, x):
    return clipped(p, x), (p, x)


def clipped_reverse(kept, bars):
    p, x = kept
    ȳ, z̄ = bars
    return {"w": ȳ * x**3}, jnp.clip(ȳ * 3 * p["w"] * x**2, -4, 4) + z̄


clipped.defvjp(clipped_forward, clipped_reverse)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_custom_vjp_keeps_structures_and_dtypes(dtype):
    p, x = {"w": jnp.array([1.0, 2.0], dtype)}, jnp.array([0.5, 3.0], dtype)
    f = lambda p, x: clipped(p, x)[0] * 2 + clipped(p, x)[1].sum()
    p̄, x̄ = gradient(f, p, x)
    want_p, want_x = jax.grad(f, (0, 1))(p, x)
    assert (p̄["w"].dtype, x̄.dtype) == (x.dtype, x.dtype)
    np.testing.assert_array_equal(np.float32(p̄["w"]), np.float32(want_p["w"]))
    np.testing.assert_array_equal(np.float32(x̄), np.float32(want_x))
    n̄, ā = gradient(f, {"w": np.array([1.0, 2.0])}, np.array([0.5, 3.0]))
    assert (n̄["w"].dtype, ā.dtype) == (np.float64, np.float64)


def test_second_derivatives_by_a_custom_vjp_are_those_of_its_rule():
    p, x, v = {"w": jnp.array([1.0, 2.0])}, jnp.array([0.5, 3.0]), jnp.array([1.0, -1.0])
    f = lambda x: clipped(p, x)[0] + jnp.sum(clipped(p, x)[1] ** 2)
    along = lambda grad: lambda x: jnp.sum(grad(f)(x) * v)
    np.testing.assert_allclose(gradient(along(grad), x)[0], jax.grad(along(jax.grad))(x))
    with pytest.raises(TypeError, match="custom_vjp"):  # forward mode of it is none of JAX's
        jax.jvp(f, (x,), (v,))
    with pytest.raises((TypeError, NotImplementedError), match="custom_vjp"):
        jvp(f, (x,), (v,))


@jax.custom_vjp
def false_slope(x):
    return jnp.sin(x)


false_slope.defvjp(lambda x: (jnp.sin(x), x), lambda x, ȳ: (7.0 * x**2 * ȳ,))


@jax.custom_vjp
def by_its_value(x):
    return x**3


by_its_value.defvjp(
    lambda x: (x**3, x**3), lambda y, ȳ: (3 * jnp.sign(y) * jnp.abs(y) ** (2 / 3) * ȳ,)
)


@pytest.mark.parametrize("x", [1.5, jnp.float32(1.5)])
@pytest.mark.parametrize(
    ("f", "first", "second"),
    [  # what the rule gives, and the derivative of that; y' is that of the rule's forward pass
        (false_slope, 7 * 1.5**2, 14 * 1.5),
        (lambda x: false_slope(x) * x, 7 * 1.5**3 + np.sin(1.5), 21 * 1.5**2 + np.cos(1.5)),
        (by_its_value, 3 * 1.5**2, 6 * 1.5),
    ],
)
def test_second_derivatives_by_a_false_custom_vjp_are_those_of_jax(f, first, second, x):
    np.testing.assert_allclose(grad(f)(x), first, rtol=1e-5)
    over = jax.jvp(jax.grad(f), (x,), (jnp.ones_like(x),))[1]
    np.testing.assert_allclose(over, second, rtol=1e-5)
    found = [
        morula.hvp(f, x, 1.0),
        morula.hessian(f, x),
        jvp(grad(f), (x,), (1.0,))[1],
        morula.jacobian(grad(f), x, mode="forward")[0],
    ]
    np.testing.assert_allclose(found, over, rtol=1e-5)
    np.testing.assert_allclose(grad(grad(f))(x), jax.grad(jax.grad(f))(x), rtol=1e-5)
    with pytest.raises((NoRuleError, TypeError), match="custom_vjp"):
        jvp(f, (x,), (1.0,))
    with pytest.raises(NoRuleError, match=r"in forward mode[^!]*custom_vjp"):
        grad(lambda x: jvp(f, (x,), (1.0,))[1])(x)


def test_custom_jvp_is_honoured_in_both_modes():
    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda x, ẋ: (x[0] * x[0], 5.0 * x[0] * ẋ[0]))
    np.testing.assert_allclose(gradient(lambda x: square(x).sum(), X)[0], 5 * X)
    np.testing.assert_allclose(jvp(lambda x: square(x), (X,), (X,))[1], 5 * X**2)


def test_the_rule_of_a_custom_jvp_may_call_its_function():
    @jax.custom_jvp
    def sine(x):
        return jnp.sin(x)

    @jax.custom_jvp
    def twice(x):
        return 2 * sine(x)

    sine.defjvp(lambda x, ẋ: (sine(*x), 7.0 * ẋ[0] + 0.0 * twice(*x)))
    twice.defjvp(lambda x, ẋ: (twice(*x), 3.0 * ẋ[0] + 0.0 * sine(*x)))
    np.testing.assert_allclose(gradient(lambda x: (sine(x) * x).sum(), X)[0], 7 * X + jnp.sin(X))
    np.testing.assert_allclose(gradient(lambda x: twice(x).sum(), X)[0], 3.0 * jnp.ones_like(X))


def test_what_a_custom_vjp_captures_is_refused_where_it_matters():
    def f(x, w):
        @jax.custom_vjp
        def scaled(x):
            return x * w

        scaled.defvjp(lambda x: (x * w, None), lambda _, ȳ: (ȳ * 2.0,))
        return scaled(x).sum()

    np.testing.assert_allclose(grad(f)(X, 3.0), 2 * jnp.ones(3))
    with pytest.raises(DifferentiationError, match="custom_vjp"):
        grad(f, argnums=1)(X, 3.0)


def doubled(x):
    return lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x).sum()


def test_while_loop_is_refused_in_reverse_with_the_reason_of_jax_and_works_forward():
    def f(x):
        return doubled(x)

    with pytest.raises(NoRuleError, match="Reverse-mode differentiation does not work") as caught:
        gradient(f, X)
    assert any(entry.name == "doubled" for entry in caught.traceback)
    np.testing.assert_allclose(jvp(f, (X,), (X,))[1], jax.jvp(doubled, (X,), (X,))[1])


def test_a_while_loop_whose_result_does_not_matter_is_in_nobodys_way():
    seen = []

    def f(x):
        seen.append(float(doubled(x)))
        return (x**2).sum()

    np.testing.assert_allclose(gradient(f, X)[0], 2 * X)
    assert len(seen) == 1


def test_fori_loop_with_a_traced_bound_is_refused():
    f = jax.jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * 2, x).sum())
    with pytest.raises(NoRuleError, match="fori_loop"):
        gradient(f, X, 3)


def test_a_callback_is_called_and_refused_only_where_it_matters():
    def outside(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float32), x)

    np.testing.assert_allclose(gradient(lambda x: (outside(x) > 0).sum() * x.sum(), X)[0], 3.0)
    with pytest.raises(NoRuleError, match="pure_callback"):
        gradient(lambda x: outside(x).sum(), X)


def test_vjp_rule_hands_a_function_over_to_jax():
    entered = []

    @vjp_rule
    def energy(x, scale):
        entered.append(type(x))
        return jnp.sum(jnp.tanh(x) ** 2) * scale

    x = np.array([0.3, 0.7])
    x̄, s̄ = gradient(lambda x, s: 2.0 * energy(x, s), x, 3.0)
    assert x̄.dtype == np.float64
    t = np.tanh(x)
    np.testing.assert_allclose(x̄, 12 * t * (1 - t**2), rtol=1e-6)
    np.testing.assert_allclose(s̄, 2 * (t**2).sum(), rtol=1e-6)
    assert all(issubclass(t, jax.core.Tracer) for t in entered)
    assert len(entered) == 1


def test_the_users_own_rule_comes_before_jax():
    def own(x):
        return jnp.sin(x)

    f = jax.jit(own)

    @morula.rrule(f)
    def _(x: object):
        return f(x), lambda ȳ: (ȳ * 3.0,)

    np.testing.assert_allclose(gradient(lambda x: f(x).sum(), X)[0], 3.0)


def test_a_function_handed_to_jax_runs_once_in_a_call():
    runs = []

    def body(v):
        runs.append(1)
        return v**2

    gradient(lambda x: jax.vmap(body)(x).sum(), X)
    assert len(runs) == 1


def test_an_exception_of_the_users_function_passes_as_it_is():
    class MyError(Exception):
        pass

    def body(v):
        raise MyError("mine")

    with pytest.raises(MyError, match="mine"):
        gradient(lambda x: jax.vmap(body)(x).sum(), X)


def test_static_arguments_stay_static():
    f = jax.jit(lambda x, n, p: (x.reshape(n, 1) ** p).sum(), static_argnums=(1, 2))
    np.testing.assert_allclose(grad(f)(X, 3, 2.0), 2 * X)
    g = jax.jit(lambda x, how: x.sum() if how == "sum" else x.prod(), static_argnames="how")
    np.testing.assert_allclose(gradient(lambda x: g(x, how="sum"), X)[0], 1.0)
    with pytest.raises(DifferentiationError):
        grad(f, argnums=2)(X, 3, 2.0)


def test_an_integer_is_a_point_of_the_real_line_where_jax_can_take_a_real_number():
    np.testing.assert_allclose(gradient(lambda n: jnp.sin(n), 2)[0], np.cos(2), rtol=1e-6)
    x̄, n̄ = gradient(lambda x, n: (x**n).sum() + x[n] + jnp.sum(x, axis=n - 2), X, 2)
    np.testing.assert_allclose(n̄, (X**2 * jnp.log(X)).sum(), rtol=1e-5)
    (x̄,) = gradient(lambda x: jnp.sum(jnp.sin(x)), np.arange(3))
    assert x̄.dtype == np.float64
    np.testing.assert_allclose(x̄, np.cos(np.arange(3)), rtol=1e-6)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("n", [3, np.arange(3)])
def test_an_integer_beside_an_array_of_any_precision(dtype, n, x64):
    """A real number in its place may give another dtype than the integer does."""
    with jax.enable_x64(x64):
        x = jnp.array([0.5, 1.25, 2.0], dtype)
        f = lambda n: (x * n * n).sum()
        want = 2 * np.asarray(x, float) * n
        want = want if isinstance(n, np.ndarray) else want.sum()
        found = grad(lambda n: float(f(n)))(n)
        assert isinstance(found, np.ndarray if isinstance(n, np.ndarray) else float)
        np.testing.assert_allclose(found, want, rtol=1e-2)
        y, ẏ = jvp(f, (n,), (np.ones(np.shape(n)),))
        assert y.dtype == ẏ.dtype == f(n).dtype
        np.testing.assert_allclose(float(y), float(f(n)))
        np.testing.assert_allclose(float(ẏ), np.sum(want), rtol=1e-2)
        twice = morula.hvp(f, n, np.ones(np.shape(n)))
        each = 2 * np.asarray(x, float)
        np.testing.assert_allclose(twice, each if np.ndim(n) else each.sum(), rtol=1e-2)


def test_an_integer_of_which_integers_are_made_beside_numbers():
    """With a real number in its place there are more outputs that have cotangents."""
    f = jax.jit(lambda x, n: (n + 1, (x * n).sum(), 5 * n))
    np.testing.assert_allclose(gradient(lambda n: f(X, n)[1], 3)[0], X.sum(), rtol=1e-6)
    np.testing.assert_allclose(morula.hessian(lambda n: f(X, n)[1] * n, 3), 2 * X.sum(), rtol=1e-6)

    def g(n):
        place, y, _ = f(X, n)
        return jnp.arange(9.0)[place] * y

    (y, ẏ) = jvp(g, (3,), (1.0,))
    np.testing.assert_allclose([y, ẏ], [12 * X.sum(), 4 * X.sum()], rtol=1e-6)
    np.testing.assert_allclose(gradient(g, 3)[0], 4 * X.sum(), rtol=1e-6)


def test_a_program_without_jax_is_not_slowed_down_by_importing_morula():
    import subprocess
    import sys

    code = "import sys, morula; morula.grad(lambda x: x * x)(2.0); assert 'jax' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("n", [2, np.int64(2), 2.0])
@pytest.mark.parametrize(
    "f", [lambda x, n: jnp.sum(x**2 * jnp.sin(n * x)), lambda x, n: jnp.sum(jnp.sin(x * n) * x**2)]
)
def test_second_derivatives_with_integers(f, n):
    """Those that are held as constants, and those by the integer as a point of the real line."""
    x = jnp.array([0.5, 1.2, 2.0])
    captured = lambda x: f(x, n)
    want = jax.grad(lambda x: jax.grad(lambda x: f(x, 2.0))(x).sum())(x)
    np.testing.assert_allclose(grad(lambda x: grad(captured)(x).sum())(x), want, rtol=1e-4)
    np.testing.assert_allclose(morula.hvp(captured, x, jnp.ones(3)), want, rtol=1e-4)
    mixed = jax.jacfwd(jax.grad(f, argnums=1))(x, 2.0)
    np.testing.assert_allclose(grad(lambda x: grad(f, 1)(x, n))(x), mixed, rtol=1e-4)
    np.testing.assert_allclose(jvp(lambda x: grad(f, 1)(x, n), (x,), (x,))[1], mixed @ x, rtol=1e-4)
    twice = jax.grad(jax.grad(f, argnums=1), argnums=1)(x, 2.0)
    np.testing.assert_allclose(grad(lambda n: grad(f, 1)(x, n))(n), twice, rtol=1e-4)


def test_what_stop_gradient_ends_needs_no_reverse_rule():
    def f(x):
        scale = jax.lax.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, 1.0)
        return jnp.sum(x * jax.lax.stop_gradient(x)) * jax.lax.stop_gradient(scale)

    x = jnp.array([0.5, 1.5])
    np.testing.assert_allclose(gradient(f, x)[0], 16.0 * x)
    np.testing.assert_allclose(jax.jit(grad(f))(x), 16.0 * x)
    assert jvp(f, (x,), (jnp.ones(2),))[1] == 32.0
