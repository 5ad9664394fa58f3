"""Fewer runs of the garbage collector while code is transformed, and while the general path goes.

They make many objects that live until they end, and the collector, which runs after every few
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

FEW = 50_000  # new objects between two runs: some megabytes


class Collector:
    """How many ask for it to run seldom, and how often it ran before the first of them.

    The lock may be asked for again by what the collector runs while it is held.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = 0
        self.before = 0

    def slow_down(self) -> None:
        """It runs seldom from now on."""
        with self.lock:
            self.depth += 1
            if self.depth == 1:
                self.before, *others = gc.get_threshold()
                if 0 < self.before < FEW:
                    gc.set_threshold(FEW, *others)

    def as_before(self) -> None:
        """It runs as often as before the `slow_down` that this one belongs to."""
        with self.lock:
            self.depth = max(self.depth - 1, 0)
            if self.depth == 0:
                now, *others = gc.get_threshold()
                if now == FEW:  # else somebody has set it meanwhile
                    gc.set_threshold(self.before, *others)

    def forked(self) -> None:
        """In the child, the other threads are gone."""
        self.lock = threading.RLock()
        if self.depth:
            self.depth = 1
            self.as_before()


collector = Collector()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=collector.forked)


def collecting_seldom(transform: Callable[P, R]) -> Callable[P, R]:
    """The function, while which the garbage collector runs seldom."""

    @functools.wraps(transform)
    def seldom(*args: P.args, **kwargs: P.kwargs) -> R:
        collector.slow_down()
        try:
            return transform(*args, **kwargs)
        finally:
            collector.as_before()

    return seldom
