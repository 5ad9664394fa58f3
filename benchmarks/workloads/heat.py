"""The heat equation in place, by entries and by slices, gradient by the initial state."""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.case import Array, Case

BOUND = 1.5


def make_inputs(shape: tuple[int, ...], steps: int) -> tuple[Array, float, int]:
    return np.random.default_rng(0).standard_normal(shape), 0.1, steps


def by_entries(u0, k, steps):
    n = len(u0)
    u = u0.copy()
    for _ in range(steps):
        v = np.zeros(n)
        for i in range(1, n - 1):
            v[i] = u[i] + k * (u[i + 1] - 2 * u[i] + u[i - 1])
        u = v
    return (u * u).sum()


def entries_by_hand(u0: Array, k: float, steps: int) -> Array:
    n = len(u0)
    u = u0.copy()
    for _ in range(steps):
        v = np.zeros(n)
        for i in range(1, n - 1):
            v[i] = u[i] + k * (u[i + 1] - 2 * u[i] + u[i - 1])
        u = v
    ū = 2 * u
    for _ in range(steps):
        v̄ = ū
        ū = np.zeros(n)
        for i in range(n - 2, 0, -1):
            g = v̄[i]
            w = k * g
            ū[i - 1] += w
            ū[i] += g - 2 * w
            ū[i + 1] += w
    return ū


def by_slices(u0, k, steps):
    u = u0.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += k * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
    return (u * u).sum()


def slices_by_hand(u0: Array, k: float, steps: int) -> Array:
    u = u0.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += k * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
    u *= 2.0
    for _ in range(steps):
        g = k * u[1:-1, 1:-1]
        u[2:, 1:-1] += g
        u[:-2, 1:-1] += g
        u[1:-1, 2:] += g
        u[1:-1, :-2] += g
        g *= 4.0
        u[1:-1, 1:-1] -= g
    return u


def case(name: str, shape: tuple[int, ...], primal: Any, by_hand: Any) -> Case:
    return Case(f"heat {name}", BOUND, partial(make_inputs, shape, 50), primal, by_hand)


CASES = [
    case("by entries 64", (64,), by_entries, entries_by_hand),
    case("by slices 256x256", (256, 256), by_slices, slices_by_hand),
]
