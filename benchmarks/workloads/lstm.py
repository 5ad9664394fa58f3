"""An LSTM over 20 steps: hidden 32, input 16, batch 8; gradient by the tuple of its weights."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import ARRAY, Array, Case
from benchmarks.peers import standard

STEPS, BATCH, INPUT, HIDDEN = 20, 8, 16, 32
Parameters = tuple[Array, Array, Array, Array]


def make_inputs() -> tuple[Parameters, Array, Array]:
    rng = np.random.default_rng(0)
    Wx = rng.standard_normal((INPUT, 4 * HIDDEN)) / 4
    Wh = rng.standard_normal((HIDDEN, 4 * HIDDEN)) / 6
    b = 0.1 * rng.standard_normal(4 * HIDDEN)
    Wy = rng.standard_normal(HIDDEN)
    return (Wx, Wh, b, Wy), rng.standard_normal((STEPS, BATCH, INPUT)), rng.standard_normal(BATCH)


def primal(params, xs, target):
    Wx, Wh, b, Wy = params
    n = len(Wh)
    h = np.zeros((xs.shape[1], n))
    c = np.zeros((xs.shape[1], n))
    for x in xs:
        a = x @ Wx + h @ Wh + b
        s = 1 / (1 + np.exp(-a[:, : 3 * n]))
        i, f, o = s[:, :n], s[:, n : 2 * n], s[:, 2 * n :]
        c = f * c + i * np.tanh(a[:, 3 * n :])
        h = o * np.tanh(c)
    return np.mean((h @ Wy - target) ** 2)


def by_hand(params: Parameters, xs: Array, target: Array) -> Parameters:
    Wx, Wh, b, Wy = params
    n, batch = len(Wh), xs.shape[1]
    h, c = np.zeros((batch, n)), np.zeros((batch, n))
    tape = []
    for x in xs:
        a = x.dot(Wx)
        a += h.dot(Wh)
        a += b
        s = np.negative(a[:, : 3 * n])
        np.exp(s, out=s)
        s += 1.0
        np.reciprocal(s, out=s)
        g = np.tanh(a[:, 3 * n :])
        i, f, o = s[:, :n], s[:, n : 2 * n], s[:, 2 * n :]
        c_next = f * c
        c_next += i * g
        t = np.tanh(c_next)
        tape.append((x, h, c, s, i, f, o, g, t))
        c = c_next
        h = o * t
    ē = h.dot(Wy)
    ē -= target
    ē *= 2.0 / batch
    Wȳ = ē.dot(h)
    h̄ = np.multiply.outer(ē, Wy)
    c̄ = np.zeros_like(c)
    Wx̄, Wh̄, b̄ = np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(b)
    s̄, ā = np.empty((batch, 3 * n)), np.empty((batch, 4 * n))
    ī, f̄, ō = s̄[:, :n], s̄[:, n : 2 * n], s̄[:, 2 * n :]
    ā_s, ā_g = ā[:, : 3 * n], ā[:, 3 * n :]
    for x, h, c, s, i, f, o, g, t in reversed(tape):  # each residual is used once: work in place
        np.multiply(h̄, t, out=ō)
        h̄ *= o
        t *= t
        np.subtract(1.0, t, out=t)
        h̄ *= t
        c̄ += h̄
        np.multiply(c̄, g, out=ī)
        np.multiply(c̄, c, out=f̄)
        ḡ = c̄ * i
        c̄ *= f
        s̄ *= s
        np.subtract(1.0, s, out=s)
        np.multiply(s̄, s, out=ā_s)
        g *= g
        np.subtract(1.0, g, out=g)
        np.multiply(ḡ, g, out=ā_g)
        Wx̄ += x.T.dot(ā)
        Wh̄ += h.T.dot(ā)
        b̄ += np.add.reduce(ā, axis=0)
        h̄ = ā.dot(Wh.T)
    return Wx̄, Wh̄, b̄, Wȳ


def spelled(np: Any) -> Callable[..., Any]:
    def primal(params, xs, target):
        Wx, Wh, b, Wy = params
        n = len(Wh)
        h = np.zeros((xs.shape[1], n))
        c = np.zeros((xs.shape[1], n))
        for x in xs:
            a = x @ Wx + h @ Wh + b
            s = 1 / (1 + np.exp(-a[:, : 3 * n]))
            i, f, o = s[:, :n], s[:, n : 2 * n], s[:, 2 * n :]
            c = f * c + i * np.tanh(a[:, 3 * n :])
            h = o * np.tanh(c)
        return np.mean((h @ Wy - target) ** 2)

    return primal


def in_torch(torch: Any) -> Callable[..., Any]:
    def primal(params, xs, target):
        Wx, Wh, b, Wy = params
        n = len(Wh)
        h = xs.new_zeros(xs.shape[1], n)
        c = xs.new_zeros(xs.shape[1], n)
        for x in xs:
            a = x @ Wx + h @ Wh + b
            i, f, o = torch.sigmoid(a[:, : 3 * n]).chunk(3, dim=1)
            c = f * c + i * torch.tanh(a[:, 3 * n :])
            h = o * torch.tanh(c)
        return torch.nn.functional.mse_loss(h @ Wy, target)

    return primal


def compiled(jax: Any) -> Callable[..., Any]:
    jnp = jax.numpy

    def primal(params, xs, target):
        Wx, Wh, b, Wy = params
        n = len(Wh)

        def step(state, x):
            h, c = state
            a = x @ Wx + h @ Wh + b
            i, f, o = jnp.split(jax.nn.sigmoid(a[:, : 3 * n]), 3, axis=1)
            c = f * c + i * jnp.tanh(a[:, 3 * n :])
            return (o * jnp.tanh(c), c), None

        zeros = jnp.zeros((xs.shape[1], n))
        (h, _), _ = jax.lax.scan(step, (zeros, zeros), xs)
        return jnp.mean((h @ Wy - target) ** 2)

    return primal


CASES = [
    Case(
        "LSTM 20 steps",
        ARRAY,
        make_inputs,
        primal,
        by_hand,
        peers=standard(spelled, in_torch, jit=compiled),
    ),
]
