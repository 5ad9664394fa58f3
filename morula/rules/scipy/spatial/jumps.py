"""Results that have no derivative at some places: an error where a cotangent reaches them there.

Tests: tests/rules/scipy/test_rotations.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    NoTangent,
    UnsupportedError,
    frule,
    is_zero,
    non_differentiable,
    partial_functions,
    rrule,
)
from morula.rules.arrays.types import Anything


def not_at(places: Any, y: Any, given: Any, reason: str) -> Any:
    """y, which is made of what is given, and has no derivative at these places."""
    return y


def refuse(places: Any, ȳ: Any, reason: str) -> None:
    """Refuse a cotangent, or a tangent, that is not zero there."""
    if not is_zero(ȳ) and np.any(places & (np.asarray(ȳ) != 0)):
        raise UnsupportedError(reason)


non_differentiable(refuse)
partial_functions(refuse)


@rrule(not_at)
def _(places: Anything, y: Anything, given: Anything, reason: str):
    def not_at_pullback(ȳ):
        refuse(places, ȳ, reason)
        return NoTangent(), ȳ, ZERO, NoTangent()

    return not_at(places, y, given, reason), not_at_pullback


@frule(not_at)
def _(places: Anything, y: Anything, given: Anything, reason: str):
    def not_at_pushforward(ṗ, ẏ, ġ, ṙ):
        refuse(places, ġ, reason)
        return ẏ

    return not_at(places, y, given, reason), not_at_pushforward
