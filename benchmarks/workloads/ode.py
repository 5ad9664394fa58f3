"""Lotka-Volterra by 100 steps of RK4 in Python floats, gradient by the four parameters."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import SCALAR, Call, Case
from benchmarks.peers import by_differences, standard

ALL = (0, 1, 2, 3)
Four = tuple[float, float, float, float]


def make_inputs() -> tuple[float, float, float, float, int, float]:
    return 1.1, 0.4, 0.3, 0.6, 100, 0.05


def rates(x, y, a, b, c, d):
    return a * x - b * x * y, c * x * y - d * y


def primal(a, b, c, d, steps, h):
    x, y = 1.0, 0.5
    for _ in range(steps):
        k1, l1 = rates(x, y, a, b, c, d)
        k2, l2 = rates(x + 0.5 * h * k1, y + 0.5 * h * l1, a, b, c, d)
        k3, l3 = rates(x + 0.5 * h * k2, y + 0.5 * h * l2, a, b, c, d)
        k4, l4 = rates(x + h * k3, y + h * l3, a, b, c, d)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        y = y + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
    return (x - 1.0) ** 2 + (y - 2.0) ** 2


def by_hand(a: float, b: float, c: float, d: float, steps: int, h: float) -> Four:
    x, y = 1.0, 0.5
    h2, h3, h6 = h / 2, h / 3, h / 6
    tape = []
    for _ in range(steps):
        xy = x * y
        k = a * x - b * xy
        l = c * xy - d * y  # noqa: E741
        x2, y2 = x + h2 * k, y + h2 * l
        xy = x2 * y2
        p = a * x2 - b * xy
        q = c * xy - d * y2
        k += 2.0 * p
        l += 2.0 * q  # noqa: E741
        x3, y3 = x + h2 * p, y + h2 * q
        xy = x3 * y3
        p = a * x3 - b * xy
        q = c * xy - d * y3
        k += 2.0 * p
        l += 2.0 * q  # noqa: E741
        x4, y4 = x + h * p, y + h * q
        xy = x4 * y4
        tape.append((x, y, x2, y2, x3, y3, x4, y4))
        x += h6 * (k + a * x4 - b * xy)
        y += h6 * (l + c * xy - d * y4)
    # In each stage p = k̄ x and q = l̄ y serve the cotangents of parameters and state alike.
    ā = b̄ = c̄ = d̄ = 0.0  # b̄ and d̄ without their sign
    x̄, ȳ = 2.0 * (x - 1.0), 2.0 * (y - 2.0)
    for x, y, x2, y2, x3, y3, x4, y4 in reversed(tape):
        k̄, l̄ = h6 * x̄, h6 * ȳ
        k̄3, l̄3 = h3 * x̄, h3 * ȳ
        p, q = k̄ * x4, l̄ * y4
        ā += p
        b̄ += p * y4
        c̄ += q * x4
        d̄ += q
        u, v = k̄ * (a - b * y4) + c * q, l̄ * (c * x4 - d) - b * p
        x̄ += u
        ȳ += v
        k̄, l̄ = k̄3 + h * u, l̄3 + h * v
        p, q = k̄ * x3, l̄ * y3
        ā += p
        b̄ += p * y3
        c̄ += q * x3
        d̄ += q
        u, v = k̄ * (a - b * y3) + c * q, l̄ * (c * x3 - d) - b * p
        x̄ += u
        ȳ += v
        k̄, l̄ = k̄3 + h2 * u, l̄3 + h2 * v
        p, q = k̄ * x2, l̄ * y2
        ā += p
        b̄ += p * y2
        c̄ += q * x2
        d̄ += q
        u, v = k̄ * (a - b * y2) + c * q, l̄ * (c * x2 - d) - b * p
        x̄ += u
        ȳ += v
        k̄, l̄ = 0.5 * k̄3 + h2 * u, 0.5 * l̄3 + h2 * v
        p, q = k̄ * x, l̄ * y
        ā += p
        b̄ += p * y
        c̄ += q * x
        d̄ += q
        x̄ += k̄ * (a - b * y) + c * q
        ȳ += l̄ * (c * x - d) - b * p
    return ā, -b̄, c̄, -d̄


def spelled(namespace: Any) -> Callable[..., Any]:
    return primal  # operators alone, the same for all


def compiled(jax: Any) -> Callable[..., Any]:
    def primal(a, b, c, d, steps, h):
        def step(_, state):
            x, y = state
            k1, l1 = rates(x, y, a, b, c, d)
            k2, l2 = rates(x + 0.5 * h * k1, y + 0.5 * h * l1, a, b, c, d)
            k3, l3 = rates(x + 0.5 * h * k2, y + 0.5 * h * l2, a, b, c, d)
            k4, l4 = rates(x + h * k3, y + h * l3, a, b, c, d)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            y = y + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
            return x, y

        x, y = jax.lax.fori_loop(0, steps, step, (1.0, 0.5))
        return (x - 1.0) ** 2 + (y - 2.0) ** 2

    return primal


def differences(a: float, b: float, c: float, d: float, steps: int, h: float) -> Call:
    def of_vector(p):
        a, b, c, d = p.tolist()
        return primal(a, b, c, d, steps, h)

    return by_differences(of_vector, np.array([a, b, c, d]))


CASES = [
    Case(
        "RK4 Lotka-Volterra",
        SCALAR,
        make_inputs,
        primal,
        by_hand,
        argnums=ALL,
        peers=standard(spelled, spelled, ALL, jit=compiled) | {"differences": differences},
        step=1e-4,
    ),
]
