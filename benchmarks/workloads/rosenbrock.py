"""Rosenbrock's function of n variables, value and gradient, against finite differences."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import ARRAY, Array, Call, Case
from benchmarks.peers import by_differences, standard


def make_inputs(n: int) -> tuple[Array]:
    return (np.random.default_rng(0).uniform(-1, 1, n),)


def primal(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def by_hand(x: Array) -> tuple[float, Array]:
    a = x[:-1]
    u = x[1:] - a * a
    v = 1.0 - a
    value = 100.0 * u.dot(u) + v.dot(v)
    x̄ = np.zeros(x.shape)
    w = x̄[1:]
    np.multiply(u, 200.0, w)
    u = a * w
    u += v
    u += u
    left = x̄[:-1]
    left -= u
    return value, x̄


def by_hand_for_two(x: Array) -> tuple[float, Array]:
    """Nothing in place: on arrays of one element that takes NumPy twice as long."""
    a = x[:-1]
    u = x[1:] - a * a
    v = a - 1.0
    value = 100.0 * u.dot(u) + v.dot(v)
    w = 200.0 * u
    x̄ = np.zeros(x.shape)
    x̄[1:] = w
    w = v - a * w
    left = x̄[:-1]
    left += w + w
    return value, x̄


def spelled(np: Any) -> Callable[..., Any]:
    def primal(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return primal


def in_torch(torch: Any) -> Callable[..., Any]:
    def primal(x):
        return torch.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return primal


def differences(x: Array) -> Call:
    return by_differences(primal, x, with_value=True)


def case(n: int) -> Case:
    return Case(
        f"Rosenbrock n={n}",
        ARRAY,
        partial(make_inputs, n),
        primal,
        by_hand_for_two if n == 2 else by_hand,
        with_value=True,
        peers=standard(spelled, in_torch, with_value=True) | {"differences": differences},
    )


CASES = [case(n) for n in (2, 4, 10, 100)]
