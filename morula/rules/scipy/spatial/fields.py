"""Fields of compiled objects that go by value, with a `Tangent` of their class as cotangent.

Tests: tests/rules/scipy/test_neighbours.py, test_spatial.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import ZERO, Tangent, frule, is_zero, rrule
from morula.rules.arrays.types import Anything


def reader_of(name: str) -> Callable[[Any], Any]:
    """A function that reads an array among the fields, with its derivative."""

    def read(x: Any) -> Any:
        return np.asarray(getattr(x, name))

    @rrule(read)
    def _(x: Anything):
        def read_pullback(ȳ):
            return (Tangent[type(x)]({name: ȳ}),)

        return read(x), read_pullback

    @frule(read)
    def _(x: Anything):
        def read_pushforward(ẋ):
            return ZERO if is_zero(ẋ) else getattr(ẋ, name)

        return read(x), read_pushforward

    return read
