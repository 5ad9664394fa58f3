"""RK4 into a trajectory that was allocated before; gradient by the initial state."""

import numpy as np

from benchmarks.case import Array, Case

BOUND = 1.5


def make_inputs() -> tuple[Array, float, int]:
    return np.random.default_rng(0).standard_normal(20), 0.05, 200


def rate(y):
    return np.sin(y[::-1]) - 0.1 * y


def primal(y0, h, steps):
    out = np.zeros((steps + 1, len(y0)))
    out[0] = y0
    for i in range(steps):
        y = out[i]
        k1 = rate(y)
        k2 = rate(y + 0.5 * h * k1)
        k3 = rate(y + 0.5 * h * k2)
        k4 = rate(y + h * k3)
        out[i + 1] = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return (out * out).sum()


def by_hand(y0: Array, h: float, steps: int) -> Array:
    out = np.zeros((steps + 1, len(y0)))
    out[0] = y0
    h2, h3, h6 = h / 2, h / 3, h / 6
    tape = []
    for i in range(steps):
        y = out[i]
        k1 = rate(y)
        y2 = y + h2 * k1
        k2 = rate(y2)
        y3 = y + h2 * k2
        k3 = rate(y3)
        y4 = y + h * k3
        k4 = rate(y4)
        tape.append((y2, y3, y4))
        out[i + 1] = y + h6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def back(k̄: Array, y: Array) -> Array:
        c = k̄[::-1] * np.cos(y)
        c -= 0.1 * k̄
        return c

    g = 2.0 * out[steps]
    for i in range(steps - 1, -1, -1):
        y2, y3, y4 = tape[i]
        y = out[i]
        ȳ4 = back(h6 * g, y4)
        ȳ3 = back(h3 * g + h * ȳ4, y3)
        ȳ2 = back(h3 * g + h2 * ȳ3, y2)
        ȳ = back(h6 * g + h2 * ȳ2, y)
        g += ȳ
        g += ȳ2
        g += ȳ3
        g += ȳ4
        g += 2.0 * y
    return g


CASES = [Case("trajectory 20x200", BOUND, make_inputs, primal, by_hand)]
