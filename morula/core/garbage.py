"""Fewer runs of the garbage collector while code is transformed.

A transform makes many objects that live until it ends, and the collector, which runs after every few
hundred new ones, would look at them again and again, together with all else that the process holds.
Tests: tests/core/test_garbage.py
"""

from __future__ import annotations

import functools
import gc
import os
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

FEW = 200_000  # new objects between two runs: some tens of megabytes


class _Runs:
    """How many transforms are running, and how often the collector ran before the first of them.

    The lock may be asked for again by what the collector runs while it is held.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = 0
        self.before = 0

    def enter(self) -> None:
        """A transform begins."""
        with self.lock:
            self.depth += 1
            if self.depth == 1:
                self.before, *others = gc.get_threshold()
                if 0 < self.before < FEW:
                    gc.set_threshold(FEW, *others)

    def leave(self) -> None:
        """A transform ends."""
        with self.lock:
            self.depth = max(self.depth - 1, 0)
            if self.depth == 0:
                now, *others = gc.get_threshold()
                if now == FEW:  # else somebody has set it meanwhile
                    gc.set_threshold(self.before, *others)

    def forked(self) -> None:
        """In the child, the transforms of other threads are gone."""
        self.lock = threading.RLock()
        if self.depth:
            self.depth = 1
            self.leave()


_runs = _Runs()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_runs.forked)


def collecting_seldom(transform: Callable[P, R]) -> Callable[P, R]:
    """The function, while which the garbage collector runs seldom."""

    @functools.wraps(transform)
    def seldom(*args: P.args, **kwargs: P.kwargs) -> R:
        _runs.enter()
        try:
            return transform(*args, **kwargs)
        finally:
            _runs.leave()

    return seldom
