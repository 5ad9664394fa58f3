"""What one reverse pass carries: the adjoint objects of mutable values, found by identity.

A list, a dict, an object or a cell that is reached under two names is one value, so its cotangent
must be one object. Rules ask for it by `adjoint_of(x)` inside their pullbacks.

The cotangents of values in memory that is written to (memory.py) are kept `beside` it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from morula.core import memory
from morula.core.cotangents import ZERO, is_zero
from morula.core.places import tell_place
from morula.core.traits import adjoint_object


class Adjoints(threading.local):
    """The adjoint objects of the reverse pass that is running in this thread."""

    def __init__(self) -> None:
        self.current: dict[int, tuple[Any, Any]] | None = None


class Pass(dict[int, tuple[Any, Any]]):
    """The adjoint objects of a pass that `enter` began: in which frame, and what `leave` needs."""

    __slots__ = ("frame", "outer")
    frame: FrameType
    outer: Any


_adjoints = Adjoints()


def adjoint_of(x: Any) -> Any:
    """The adjoint object of the mutable value `x` in the running reverse pass."""
    table = _adjoints.current
    if table is None:
        raise RuntimeError("adjoint_of outside of a reverse pass")
    found = table.get(id(x))
    if found is None:
        found = table[id(x)] = (x, adjoint_object(x))  # x is kept: its id must stay its own
    return found[1]


def is_running() -> bool:
    """Is a reverse pass running in this thread?"""
    return _adjoints.current is not None


def adjoint_if_any(x: Any) -> Any:
    """The adjoint object of `x` if something has reached it, else None."""
    found = (_adjoints.current or {}).get(id(x))
    return None if found is None else found[1]


def forget(x: Any) -> None:
    """Take away all that has reached the mutable value `x`: its adjoint object is a new one."""
    if _adjoints.current is not None:
        _adjoints.current.pop(id(x), None)


def share_adjoint(old: Any, new: Any) -> None:
    """`new` stands for `old`: what has reached this in the running reverse pass is of that."""
    table = _adjoints.current
    assert table is not None
    table[id(new)] = (new, adjoint_of(old))


def is_reached(x: Any) -> bool:
    """Has a cotangent that is not zero reached the mutable value `x`?"""
    adjoint = adjoint_if_any(x)
    if isinstance(adjoint, dict):
        adjoint = list(adjoint.values())
    if isinstance(adjoint, list):
        return not all(map(is_zero, adjoint))
    return adjoint is not None and not is_zero(getattr(adjoint, "cotangent", ZERO))


def is_reached_at(x: Any, keys: Iterable[Any]) -> bool:
    """Has a cotangent that is not zero reached one of these parts of the mutable value `x`?"""
    adjoint = adjoint_if_any(x)
    if isinstance(adjoint, list):
        adjoint = dict(enumerate(adjoint))
    if isinstance(adjoint, dict):
        return not all(is_zero(adjoint.get(key, ZERO)) for key in keys)
    return is_reached(x)


def replace_at(x: Any, key: Any, change: Callable[[Any], Any]) -> None:
    """Replace what has reached a part of the mutable value `x` by what `change` makes of it."""
    adjoint = adjoint_if_any(x)
    if isinstance(adjoint, list):
        if key < len(adjoint):
            adjoint[key] = change(adjoint[key])
    elif isinstance(adjoint, dict):
        if key in adjoint:
            adjoint[key] = change(adjoint[key])
    elif adjoint is not None:
        adjoint.cotangent = change(adjoint.cotangent)


@contextmanager
def isolated() -> Iterator[None]:
    """A reverse pass of its own: adjoint objects made inside are gone after it."""
    outer = enter(memory.present())
    try:
        yield
    finally:
        leave(outer)


def enter(written: memory.Written | None = None) -> Any:
    """Begin a reverse pass; returns what `leave` needs.

    `written` is the memory beside which cotangents are kept; None: all go by value.
    """
    outer = _adjoints.current, memory.enter(written)
    begun = _adjoints.current = Pass()
    begun.frame, begun.outer = sys._getframe(1), outer
    return outer


def leave(outer: Any) -> None:
    """End a reverse pass begun by `enter`."""
    _adjoints.current, of_memory = outer
    memory.leave(of_memory)


def break_off(frame: FrameType) -> None:
    """End the reverse pass that was begun in a frame which an exception leaves."""
    current = _adjoints.current
    if type(current) is Pass and current.frame is frame:
        leave(current.outer)


def as_before(run: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`run(*args, **kwargs)`; when an exception leaves it, the pass that runs is that of before.

    What differentiated code says of `enter` and `leave` has nobody to end what is broken off. An error
    of Morula's gets the user's line.
    """
    outer = _adjoints.current, memory.running()
    try:
        return run(*args, **kwargs)
    except BaseException as error:
        _adjoints.current, of_memory = outer
        memory.give_up(of_memory)
        tell_place(error)
        raise


def beside(written: Any, make: Callable[[Any], Any]) -> Any:
    """The adjoint object of some memory, made if there is none."""
    table = _adjoints.current
    assert table is not None
    found = table.get(id(written))
    if found is None:
        found = table[id(written)] = (written, make(written))
    return found[1]


class Depth(threading.local):
    """How deep in differentiation the code counts that is called as it is."""

    level = 0


depth = Depth()


def call_plainly(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`fn(*args, **kwargs)` within differentiated code, where nothing in it needs a derivative."""
    go_deeper(1)
    try:
        return fn(*args, **kwargs)
    finally:
        go_deeper(-1)


def go_deeper(levels: int) -> None:
    """What is called as it is from now on counts as so much deeper in differentiation."""
    depth.level += levels


class Reached:
    """`of` for `materialise`: the adjoint objects that this reverse pass has reached.

    `results` are the gradients already made, so that a value reached twice is shown as one.
    """

    def __init__(self, results: dict[int, Any] | None = None) -> None:
        self.results: dict[int, Any] = {} if results is None else results
        self.hands_on_unknown = results is not None

    def of_callable(self) -> Reached:
        """The same for the callable: what nobody asked for may be unknown."""
        return Reached(self.results)

    def __call__(self, x: Any) -> Any:
        """The adjoint object of `x`, or None."""
        return adjoint_if_any(x)


def reaching(of: Any) -> Reached:
    """`of`, with a memory of the results."""
    return of if isinstance(of, Reached) else Reached()


def results_of(of: Any) -> dict[int, Any]:
    """The gradients of mutable values that were made in this pass."""
    return of.results if isinstance(of, Reached) else {}
