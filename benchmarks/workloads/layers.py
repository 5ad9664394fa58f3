"""A network of objects: three dense layers in a Sequential; gradient by the model itself."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.case import ARRAY, Array, Call, Case, Peer
from benchmarks.peers import in_autograd, in_jax

SIZES = (16, 32, 32, 4)
BATCH = 16
Structure = dict[str, list[dict[str, Array]]]
Layers = list[tuple[Array, Array]]


class Dense:
    def __init__(self, W, b):
        self.W = W
        self.b = b

    def __call__(self, x):
        return np.tanh(x @ self.W + self.b)


class Sequential:
    def __init__(self, layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def make_inputs() -> tuple[Sequential, Array, Array]:
    rng = np.random.default_rng(0)
    layers = [
        Dense(rng.standard_normal((m, n)) / m**0.5, 0.1 * rng.standard_normal(n))
        for m, n in pairwise(SIZES)
    ]
    x = rng.standard_normal((BATCH, SIZES[0]))
    return Sequential(layers), x, rng.standard_normal((BATCH, SIZES[-1]))


def primal(model, x, y):
    return np.mean((model(x) - y) ** 2)


def by_hand(model: Any, x: Array, y: Array) -> Structure:
    tape = []
    for layer in model.layers:
        h = x.dot(layer.W)
        h += layer.b
        np.tanh(h, out=h)
        tape.append((layer, x, h))
        x = h
    h̄ = x - y
    h̄ *= 2.0 / h̄.size
    gradients = []
    last = len(tape) - 1
    for i in range(last, -1, -1):
        layer, x, h = tape[i]
        slope = h * h
        np.subtract(1.0, slope, out=slope)
        h̄ *= slope
        gradients.append({"W": x.T.dot(h̄), "b": np.add.reduce(h̄, axis=0)})
        if i:  # nobody asks for the cotangent of the input
            h̄ = h̄.dot(layer.W.T)
    gradients.reverse()
    return {"layers": gradients}


def spelled(np: Any) -> Callable[..., Any]:
    """Parameters as a list of pairs, as in the examples of Autograd and JAX."""

    def primal(layers, x, y):
        for W, b in layers:
            x = np.tanh(x @ W + b)
        return np.mean((x - y) ** 2)

    return primal


def as_pairs(model: Any) -> Layers:
    return [(layer.W, layer.b) for layer in model.layers]


def autograd(model: Any, x: Array, y: Array) -> Call:
    import autograd.numpy

    return in_autograd(spelled(autograd.numpy), (as_pairs(model), x, y))


def torch(model: Any, x: Array, y: Array) -> Call:
    """Modules: `torch.nn.Linear` keeps the transposed weight."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    net = nn.Sequential()
    for layer in model.layers:
        m, n = layer.W.shape
        linear = nn.Linear(m, n, dtype=torch.float64)
        linear.weight = nn.Parameter(torch.tensor(layer.W.T.copy()))
        linear.bias = nn.Parameter(torch.tensor(layer.b))
        net.extend([linear, nn.Tanh()])
    parameters = [*net.parameters()]

    def gradient(x: Any, y: Any) -> Any:
        return torch.autograd.grad(nn.functional.mse_loss(net(x), y), parameters)

    def read(gradients: Any) -> Any:
        return [g.T if g.ndim == 2 else g for g in gradients]

    return Call(gradient, (torch.tensor(x), torch.tensor(y)), read)


def jax(model: Any, x: Array, y: Array) -> Call:
    import jax.numpy

    return in_jax(spelled(jax.numpy), (as_pairs(model), x, y))


def jax_jit(model: Any, x: Array, y: Array) -> Call:
    import jax.numpy

    return in_jax(spelled(jax.numpy), (as_pairs(model), x, y), jit=True)


PEERS: dict[str, Peer] = {"autograd": autograd, "torch": torch, "jax": jax, "jax.jit": jax_jit}

CASES = [Case("layer objects", ARRAY, make_inputs, primal, by_hand, peers=PEERS)]
