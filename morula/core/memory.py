"""Memory that differentiated code writes to: which it is, and how reverse passes treat it.

Values whose cotangents go by value may share memory that is written to. A rule that writes says so
by `write_to(memory)`. In the reverse pass of what ran then, the cotangents of all values in that
memory are kept beside it (`context.beside`); compiled programs, which write to none, pass them by
value. Writes are undone as a reverse pass goes back, and what makes good for that at its end is left
by `put_back`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Written = dict[int, Any]  # by identity


class _Pass(threading.local):
    """What concerns memory in the reverse pass that is running in this thread."""

    def __init__(self) -> None:
        self.written: Written | None = None  # None: all cotangents go by value
        self.put_back: dict[Any, Callable[[], None]] = {}
        self.log: Written | None = None  # the memory that has been written to since `begin_log`


_pass = _Pass()


def write_to(memory: Any) -> None:
    """Note that differentiated code writes to some memory."""
    if _pass.written is not None:
        _pass.written[id(memory)] = memory
    if _pass.log is not None:
        _pass.log[id(memory)] = memory


def is_written(memory: Any) -> bool:
    """Are cotangents kept beside this memory, in the running reverse pass?"""
    return _pass.written is not None and id(memory) in _pass.written


def in_memory() -> bool:
    """Are there cotangents that are kept beside memory?"""
    return bool(_pass.written)


def follow(written: Written | None) -> Written | None:
    """Say what is kept beside its memory from now on; returns what was."""
    before = _pass.written
    _pass.written = written
    return before


def enter(written: Written | None) -> Any:
    """Begin a reverse pass."""
    outer = _pass.written, _pass.put_back, _pass.log
    _pass.written, _pass.put_back = written, {}
    return outer


def leave(outer: Any) -> None:
    """End it, also one that was broken off: all memory is as it was when it began."""
    if _pass.put_back:
        for make in what_to_put_back():
            make()
    _pass.written, _pass.put_back, _pass.log = outer


def running() -> Any:
    """The pass that is running, for `give_up`."""
    return _pass.written, _pass.put_back, _pass.log


def give_up(outer: Any) -> None:
    """Go back to a pass that was running, if one that began later was broken off."""
    if _pass.put_back is outer[1]:
        _pass.written, _, _pass.log = outer
    else:
        leave(outer)


def present() -> Written | None:
    """What is kept beside its memory now."""
    return _pass.written


def put_back(key: Any, make: Callable[[], None]) -> None:
    """Leave what makes good that something was undone."""
    _pass.put_back[key] = make


def is_put_back(key: Any) -> bool:
    """Is there something that will?"""
    return key in _pass.put_back


def what_to_put_back() -> list[Callable[[], None]]:
    """All of it; who asks calls it."""
    found = list(_pass.put_back.values())
    _pass.put_back.clear()
    return found


def begin_log() -> Any:
    """Collect the memory that is written to from now on; returns what `end_log` needs."""
    outer = _pass.log
    _pass.log = {}
    return outer


def end_log(outer: Any) -> Written:
    """The memory that was written to since `begin_log`."""
    log = _pass.log or {}
    _pass.log = outer
    if outer is not None:
        outer.update(log)
    else:
        for forget in AT_END:
            forget()
    return log


AT_END: list[Callable[[], None]] = []  # what is done when nothing is differentiated any more
