"""log Σ exp(x) of 1000 numbers, shifted by their maximum."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import ARRAY, Array, Case
from benchmarks.peers import standard


def make_inputs() -> tuple[Array]:
    return (np.random.default_rng(0).standard_normal(1000),)


def primal(x):
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


def by_hand(x: Array) -> Array:
    # The shift cancels: its cotangent is 1 - Σ softmax(x) = 0.
    e: Array = x - np.maximum.reduce(x)
    np.exp(e, out=e)
    e /= np.add.reduce(e)
    return e


def with_the_shift(x: Array) -> Array:
    """The adjoint line by line, without knowing that the shift cancels."""
    m = np.maximum.reduce(x)
    x̄: Array = x - m
    np.exp(x̄, out=x̄)
    x̄ /= np.add.reduce(x̄)
    m̄ = 1.0 - np.add.reduce(x̄)
    ties = np.equal(x, m)
    x̄ += ties * (m̄ / np.count_nonzero(ties))
    return x̄


def spelled(np: Any) -> Callable[..., Any]:
    def primal(x):
        m = np.max(x)
        return m + np.log(np.sum(np.exp(x - m)))

    return primal


def in_torch(torch: Any) -> Callable[..., Any]:
    def primal(x):
        m = torch.max(x)
        return m + torch.log(torch.sum(torch.exp(x - m)))

    return primal


CASES = [
    Case(
        "logsumexp 1000",
        ARRAY,
        make_inputs,
        primal,
        by_hand,
        peers=standard(spelled, in_torch),
        variants={"line by line": with_the_shift},
    ),
]
