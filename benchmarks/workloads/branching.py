"""A scalar loop whose branch depends on the data: 1000 steps, up by sine, down by a factor."""

import math
from collections.abc import Callable
from math import cos, sin
from typing import Any

from benchmarks.case import SCALAR, Case
from benchmarks.peers import standard


def make_inputs() -> tuple[float, int]:
    return 0.4, 1000


def primal(x, n):
    y = x
    for _ in range(n):
        if y > 1.0:
            y = y * x
        else:
            y = y + math.sin(y) * x
    return y


def by_hand(x: float, n: int) -> float:
    tape = []
    y = x
    for _ in range(n):
        tape.append(y)
        if y > 1.0:
            y = y * x
        else:
            y = y + sin(y) * x
    x̄, ȳ = 0.0, 1.0
    for y in reversed(tape):
        if y > 1.0:  # the residual tells the branch, no need to keep it
            x̄ += ȳ * y
            ȳ *= x
        else:
            x̄ += ȳ * sin(y)
            ȳ += ȳ * x * cos(y)
    return x̄ + ȳ


def spelled(np: Any) -> Callable[..., Any]:
    def primal(x, n):
        y = x
        for _ in range(n):
            if y > 1.0:
                y = y * x
            else:
                y = y + np.sin(y) * x
        return y

    return primal


def compiled(jax: Any) -> Callable[..., Any]:
    def primal(x, n):
        def step(_, y):
            return jax.lax.cond(y > 1.0, lambda: y * x, lambda: y + jax.numpy.sin(y) * x)

        return jax.lax.fori_loop(0, n, step, x)

    return primal


CASES = [
    Case(
        "branch in a loop",
        SCALAR,
        make_inputs,
        primal,
        by_hand,
        peers=standard(spelled, spelled, jit=compiled),
        step=1e-7,  # small, so that no branch flips
    ),
]
