"""The arrays whose addresses the differentiated call knows, as compiled code is given them.

Tests: tests/rules/test_foreign.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import ZERO, memory, non_differentiable
from morula.rules.arrays.memory import bounds, owner_of


class _Exposed(threading.local):
    """Those of this thread, by identity, until nothing is differentiated any more."""

    def __init__(self) -> None:
        self.owners: dict[int, np.ndarray] = {}


_exposed = _Exposed()
memory.AT_END.append(lambda: _exposed.owners.clear())


def expose(x: np.ndarray) -> None:
    """Note that the address of an array is asked for."""
    owner = owner_of(x)
    _exposed.owners[id(owner)] = owner


def exposed_at(address: int) -> dict[int, np.ndarray]:
    """The arrays at an address that was asked for."""
    return {key: owner for key, owner in _exposed.owners.items() if is_at(owner, address)}


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
