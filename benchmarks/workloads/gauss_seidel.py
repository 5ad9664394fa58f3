"""Gauss-Seidel sweeps over a vector in place, entry by entry; gradient by the right-hand side."""

import numpy as np

from benchmarks.case import Array, Case

BOUND = 1.5


def make_inputs() -> tuple[Array, int]:
    return np.random.default_rng(0).standard_normal(100), 30


def primal(b, sweeps):
    n = len(b)
    x = np.zeros(n)
    for _ in range(sweeps):
        for i in range(1, n - 1):
            x[i] = 0.5 * (b[i] + x[i - 1] + x[i + 1])
    return (x * x).sum()


def by_hand(b: Array, sweeps: int) -> Array:
    n = len(b)
    x = np.zeros(n)
    for _ in range(sweeps):
        for i in range(1, n - 1):
            x[i] = 0.5 * (b[i] + x[i - 1] + x[i + 1])
    x *= 2.0
    b̄ = np.zeros(n)
    for _ in range(sweeps):
        for i in range(n - 2, 0, -1):
            g = 0.5 * x[i]
            x[i] = 0.0
            b̄[i] += g
            x[i - 1] += g
            x[i + 1] += g
    return b̄


CASES = [Case("gauss seidel 100x30", BOUND, make_inputs, primal, by_hand)]
