"""Dynamic time warping: a table of costs filled entry by entry, gradient by one of two series."""

import numpy as np

from benchmarks.case import Array, Case

BOUND = 1.5


def make_inputs() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(40), rng.standard_normal(50)


def primal(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1))
    d[0, 1:] = 1e9
    d[1:, 0] = 1e9
    for i in range(n):
        for j in range(m):
            cost = (a[i] - b[j]) ** 2
            d[i + 1, j + 1] = cost + min(d[i, j], d[i + 1, j], d[i, j + 1])
    return d[n, m]


def by_hand(a: Array, b: Array) -> Array:
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1))
    d[0, 1:] = 1e9
    d[1:, 0] = 1e9
    tape = []
    for i in range(n):
        for j in range(m):
            e = a[i] - b[j]
            p, q, r = d[i, j], d[i + 1, j], d[i, j + 1]
            if p <= q and p <= r:
                tape.append((e, 0, 0))
            elif q <= r:
                tape.append((e, 1, 0))
                p = q
            else:
                tape.append((e, 0, 1))
                p = r
            d[i + 1, j + 1] = e * e + p
    ā = np.zeros(n)
    d̄ = np.zeros((n + 1, m + 1))
    d̄[n, m] = 1.0
    steps = reversed(tape)
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            e, down, right = next(steps)
            g = d̄[i + 1, j + 1]
            d̄[i + down, j + right] += g
            ā[i] += 2.0 * e * g
    return ā


CASES = [Case("time warping 40x50", BOUND, make_inputs, primal, by_hand)]
