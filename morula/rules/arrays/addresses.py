"""The arrays whose addresses differentiated code has asked for, as long as they live.

Tests: tests/rules/test_foreign.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from morula.core.extend import ZERO, non_differentiable
from morula.rules.arrays.memory import bounds, owner_of

_exposed: WeakValueDictionary[int, np.ndarray] = WeakValueDictionary()


def expose(x: np.ndarray) -> None:
    """Note that the address of an array is asked for."""
    owner = owner_of(x)
    _exposed[id(owner)] = owner


def exposed_at(address: int) -> dict[int, np.ndarray]:
    """The arrays at an address that was asked for."""
    return {key: owner for key, owner in _exposed.items() if is_at(owner, address)}


def is_at(x: np.ndarray, address: int) -> bool:
    """Is an address in the memory of an array?"""
    start, stop = bounds(x)
    return start <= address < stop


non_differentiable(expose, exposed_at)


def exposing(name: str) -> Callable[[np.ndarray], Any]:
    """The rule of an attribute by which the address of an array is known."""

    def address_rule(x: np.ndarray) -> Any:
        expose(x)
        return getattr(x, name), lambda ȳ: (ZERO,)

    return address_rule
