"""A two-layer network 784-32-10 with softmax cross-entropy, gradient by all its parameters."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import ARRAY, Array, Case
from benchmarks.peers import standard

Parameters = tuple[Array, Array, Array, Array]


def make_inputs(batch: int) -> tuple[Parameters, Array, Array]:
    rng = np.random.default_rng(0)
    W1, b1 = rng.standard_normal((784, 32)) / 28, np.zeros(32)
    W2, b2 = rng.standard_normal((32, 10)) / 6, np.zeros(10)
    X = rng.random((batch, 784))
    Y = np.eye(10)[rng.integers(0, 10, batch)]
    return (W1, b1, W2, b2), X, Y


def primal(params, X, Y):
    W1, b1, W2, b2 = params
    h = np.tanh(X @ W1 + b1)
    z = h @ W2 + b2
    z = z - np.max(z, axis=1, keepdims=True)
    log_p = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
    return -np.sum(Y * log_p) / len(X)


def by_hand(params: Parameters, X: Array, Y: Array) -> Parameters:
    W1, b1, W2, b2 = params
    h = X.dot(W1)
    h += b1
    np.tanh(h, out=h)
    z̄ = h.dot(W2)
    z̄ += b2
    # A row of Y sums to one: the cotangent is softmax(z) - Y, and the shift cancels.
    z̄ -= np.maximum.reduce(z̄, axis=1, keepdims=True)
    np.exp(z̄, out=z̄)
    z̄ /= np.add.reduce(z̄, axis=1, keepdims=True)
    z̄ -= Y
    z̄ /= len(X)
    return backward(W2, X, h, z̄)


def line_by_line(params: Parameters, X: Array, Y: Array) -> Parameters:
    """The adjoint of each line as it stands: nothing known about rows of Y or the shift."""
    W1, b1, W2, b2 = params
    h = X.dot(W1)
    h += b1
    np.tanh(h, out=h)
    z = h.dot(W2)
    z += b2
    m = np.maximum.reduce(z, axis=1, keepdims=True)
    z̄ = z - m
    np.exp(z̄, out=z̄)
    s = np.add.reduce(z̄, axis=1, keepdims=True)
    log_p̄ = Y * (-1.0 / len(X))
    z̄ *= np.add.reduce(log_p̄, axis=1, keepdims=True) / s
    np.subtract(log_p̄, z̄, out=z̄)
    ties = np.equal(z, m)
    m̄ = np.add.reduce(z̄, axis=1, keepdims=True) / np.add.reduce(ties, axis=1, keepdims=True)
    z̄ -= ties * m̄
    return backward(W2, X, h, z̄)


def backward(W2: Array, X: Array, h: Array, z̄: Array) -> Parameters:
    """From the cotangent of the second layer's output to those of the parameters."""
    W2̄ = h.T.dot(z̄)
    h̄ = z̄.dot(W2.T)
    np.multiply(h, h, out=h)
    np.subtract(1.0, h, out=h)
    h̄ *= h
    return X.T.dot(h̄), np.add.reduce(h̄, axis=0), W2̄, np.add.reduce(z̄, axis=0)


def spelled(np: Any) -> Callable[..., Any]:
    def primal(params, X, Y):
        W1, b1, W2, b2 = params
        h = np.tanh(X @ W1 + b1)
        z = h @ W2 + b2
        z = z - np.max(z, axis=1, keepdims=True)
        log_p = z - np.log(np.sum(np.exp(z), axis=1, keepdims=True))
        return -np.sum(Y * log_p) / len(X)

    return primal


def in_torch(torch: Any) -> Callable[..., Any]:
    def primal(params, X, Y):
        W1, b1, W2, b2 = params
        z = torch.tanh(X @ W1 + b1) @ W2 + b2
        return torch.nn.functional.cross_entropy(z, Y)

    return primal


def case(batch: int) -> Case:
    return Case(
        f"MLP batch {batch}",
        ARRAY,
        partial(make_inputs, batch),
        primal,
        by_hand,
        peers=standard(spelled, in_torch),
        variants={"line by line": line_by_line},
    )


CASES = [case(batch) for batch in (1, 16, 256, 1024)]
