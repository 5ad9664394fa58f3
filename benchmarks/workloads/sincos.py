"""sin(cos(x)): the smallest program, where only the way in and out counts."""

import math
from collections.abc import Callable
from math import cos, sin
from typing import Any

from benchmarks.case import SCALAR, Case
from benchmarks.peers import standard


def make_inputs() -> tuple[float]:
    return (0.5,)


def primal(x):
    return math.sin(math.cos(x))


def by_hand(x: float) -> float:
    return -cos(cos(x)) * sin(x)


def spelled(np: Any) -> Callable[..., Any]:
    def primal(x):
        return np.sin(np.cos(x))

    return primal


CASES = [
    Case("sincos", SCALAR, make_inputs, primal, by_hand, peers=standard(spelled, spelled)),
]
