"""LU factors in place, without pivots, row by row; gradient of log|det| by the matrix."""

import numpy as np

from benchmarks.case import Array, Case

BOUND = 1.5


def make_inputs() -> tuple[Array]:
    a = np.random.default_rng(0).standard_normal((60, 60))
    return (a @ a.T + 60 * np.eye(60),)


def primal(a):
    n = len(a)
    u = a.copy()
    for k in range(n - 1):
        for i in range(k + 1, n):
            u[i, k] /= u[k, k]
            u[i, k + 1 :] -= u[i, k] * u[k, k + 1 :]
    s = 0.0
    for k in range(n):
        s += np.log(u[k, k])
    return s


def by_hand(a: Array) -> Array:
    n = len(a)
    u = a.copy()
    for k in range(n - 1):
        for i in range(k + 1, n):
            u[i, k] /= u[k, k]
            u[i, k + 1 :] -= u[i, k] * u[k, k + 1 :]
    ū = np.zeros((n, n))
    for k in range(n):
        ū[k, k] = 1.0 / u[k, k]
    for k in range(n - 2, -1, -1):
        for i in range(n - 1, k, -1):
            row, row_bar, pivot = u[k, k + 1 :], ū[i, k + 1 :], u[i, k]
            ū[i, k] -= row_bar.dot(row)
            ū[k, k + 1 :] -= pivot * row_bar
            u[i, k + 1 :] += pivot * row
            ū[i, k] /= u[k, k]
            ū[k, k] -= ū[i, k] * pivot
            u[i, k] = pivot * u[k, k]
    return ū


CASES = [Case("elimination 60x60", BOUND, make_inputs, primal, by_hand)]
