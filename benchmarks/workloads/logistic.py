"""Logistic regression: mean cross-entropy, gradient by the weights."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import ARRAY, Array, Call, Case, Peer
from benchmarks.peers import by_differences, standard


def make_inputs(n: int, d: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = (X @ rng.standard_normal(d) + rng.standard_normal(n) > 0).astype(np.float64)
    return 0.1 * rng.standard_normal(d), X, y


def primal(w, X, y):
    z = X @ w
    return np.mean(np.logaddexp(0.0, z) - y * z)


def by_hand(w: Array, X: Array, y: Array) -> Array:
    z̄ = X.dot(w)
    np.negative(z̄, out=z̄)
    np.exp(z̄, out=z̄)
    z̄ += 1.0
    np.reciprocal(z̄, out=z̄)
    z̄ -= y
    w̄: Array = z̄.dot(X)
    w̄ /= len(X)
    return w̄


def spelled(np: Any) -> Callable[..., Any]:
    def primal(w, X, y):
        z = X @ w
        return np.mean(np.logaddexp(0.0, z) - y * z)

    return primal


def in_torch(torch: Any) -> Callable[..., Any]:
    def primal(w, X, y):
        return torch.nn.functional.binary_cross_entropy_with_logits(X @ w, y)

    return primal


def differences(w: Array, X: Array, y: Array) -> Call:
    return by_differences(lambda w: primal(w, X, y), w)


def case(n: int, d: int, more: dict[str, Peer]) -> Case:
    return Case(
        f"logistic {n}x{d}",
        ARRAY,
        partial(make_inputs, n, d),
        primal,
        by_hand,
        peers=standard(spelled, in_torch) | more,
    )


CASES = [case(100, 10, {"differences": differences}), case(10_000, 100, {})]
