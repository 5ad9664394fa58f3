"""Who looks on while calls are differentiated: nobody, or one observer in one thread.

While there is an observer, gradients go by the general path. There every call is shown to it, and
it has the reverse pass run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Observer:
    """What looks on; `sees_constants`: also at calls that are known to have no derivative."""

    sees_constants = False

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.ahead = False  # is the next call the one that was just shown?

    def takes(self) -> bool:
        """Is a call to be shown?"""
        if self.thread != threading.get_ident():
            return False
        self.ahead = not self.ahead
        return self.ahead

    def call(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `general.call` gives; it is called from here for the call itself."""
        raise NotImplementedError

    def pull(self, run: Callable[[], Any]) -> Any:
        """What a reverse pass gives."""
        return run()


current: Observer | None = None


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let an observer look on."""
    global current
    if current is not None:
        raise RuntimeError("differentiated calls are observed already")
    current = observer
    try:
        yield
    finally:
        current = None


@contextmanager
def resting(observer: Observer) -> Iterator[None]:
    """Let the observer that was just shown a call look away while it is made."""
    global current
    current, observer.ahead = None, False
    try:
        yield
    finally:
        current = observer


def sees_constants() -> bool:
    """Are calls shown to it that are known to have no derivative?"""
    return current is not None and current.sees_constants
