"""Settings of the interpreter that are others while code is transformed, and on the general path.

Both make many objects that live until they end, and the garbage collector, which runs after every
few hundred new ones, would look at them again and again, together with all else that the process
holds. And functions that call themselves need several frames for each of the user's there.
Tests: tests/core/test_settings.py
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

FEW = 50_000  # new objects between two runs of the collector: some megabytes
DEEPER = 5  # frames for one of the user's; more would be too much for the stack of a thread


class Setting(NamedTuple):
    """One of them: what reads and writes it, and what it is to be, from what it was before."""

    read: Callable[[], int]
    write: Callable[[int], None]
    wanted: Callable[[int], int]


def set_threshold(n: int) -> None:
    """Have the collector run after this many new objects."""
    gc.set_threshold(n, *gc.get_threshold()[1:])


SETTINGS = (
    Setting(lambda: gc.get_threshold()[0], set_threshold, lambda n: FEW if 0 < n < FEW else n),
    Setting(sys.getrecursionlimit, sys.setrecursionlimit, lambda n: max(n, min(DEEPER * n, 5000))),
)


class Settings:
    """How many ask for them, and what they were before the first of them.

    The lock may be asked for again by what the collector runs while it is held.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = 0
        self.changed: list[tuple[Setting, int, int]] = []  # with what it was, and what it is

    def begin(self) -> None:
        """They are others from now on."""
        with self.lock:
            self.depth += 1
            if self.depth == 1:
                self.changed = []
                for setting in SETTINGS:
                    before = setting.read()
                    now = setting.wanted(before)
                    if now != before:
                        setting.write(now)
                        self.changed.append((setting, before, now))

    def end(self) -> None:
        """They are what they were before the `begin` that this one belongs to."""
        with self.lock:
            self.depth = max(self.depth - 1, 0)
            if self.depth == 0:
                for setting, before, now in self.changed:
                    if setting.read() == now:  # else somebody has set it meanwhile
                        setting.write(before)
                self.changed = []

    def forked(self) -> None:
        """In the child, the other threads are gone."""
        self.lock = threading.RLock()
        if self.depth:
            self.depth = 1
            self.end()


settings = Settings()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=settings.forked)


def with_own_settings(transform: Callable[P, R]) -> Callable[P, R]:
    """The function, with these settings while it runs."""

    @functools.wraps(transform)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        settings.begin()
        try:
            return transform(*args, **kwargs)
        finally:
            settings.end()

    return run
