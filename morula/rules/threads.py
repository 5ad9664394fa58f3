"""Rules of threads: what a pool is given runs at once, in the thread that is differentiated.

The reverse pass of a thread would have to wait for that of others. So the tasks of a pool run one
after the other as they are handed in, which is one of the orders that they may have. A thread of
one's own runs as it is; what it changes is refused if a cotangent reaches it.
Tests: tests/rules/test_threads.py
"""

from __future__ import annotations

import _thread
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.pool import ApplyResult, IMapIterator, Pool
from typing import Any
from weakref import WeakKeyDictionary

from morula.core.extend import (
    NoTangent,
    UnsupportedError,
    adjoint_object,
    general,
    is_reached,
    is_reached_at,
    is_zero,
    no_rule,
    non_differentiable,
    parts_of,
    unthunk,
)
from morula.rules.arrays.bodies import instead_of
from morula.rules.calls import serves


def check_pool(pool: Any) -> None:
    """Raise what handing a task to a pool raises."""
    if pool._shutdown:
        raise RuntimeError("cannot schedule new futures after shutdown")
    if initializer_of(pool) is not None:
        raise UnsupportedError("a pool of threads with an initializer is not differentiated yet")


def initializer_of(pool: Any) -> Any:
    """What each worker of a pool begins with."""
    make = getattr(pool, "_create_worker_context", None)  # since CPython 3.14
    return pool._initializer if make is None else make().initializer


non_differentiable(check_pool, initializer_of)


@instead_of(ThreadPoolExecutor.submit)
def submit(self, fn, /, *args, **kwargs):
    """Run a task, and give what holds its result."""
    check_pool(self)
    future = Future()
    future.set_running_or_notify_cancel()
    try:
        y = fn(*args, **kwargs)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(y)
    return future


def content_of(cell: Any) -> Any:
    """What a cell holds, if anything."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def reached_from(thread: Any) -> list[Any]:
    """A thread, its arguments, and what its functions have captured."""
    given = [x for name, x in vars(thread).items() if name not in OF_EVERY_THREAD]
    given += getattr(thread, "_args", None) or ()
    held = [y for x in given for y in inside(x)]
    return [thread, *given, *held, *[x for f in given if callable(f) for x in captured_by(f)]]


# Among them is where errors are reported, from which all that runs the program may be reached.
OF_EVERY_THREAD = vars(threading.Thread()).keys() - {"_target", "_args", "_kwargs"}


def captured_by(fn: Any) -> list[Any]:
    """The object of a method, and the cells of a function with what they hold."""
    cells = getattr(fn, "__closure__", None) or ()
    held = [getattr(fn, "__self__", None), *map(content_of, cells)]
    return [*cells, *held, *[y for x in held for y in inside(x)]]


def inside(x: Any) -> list[Any]:
    """What an object of the standard library holds, such as a queue."""
    return [*getattr(x, "__dict__", {}).values()] if parts_of(x) is None else []


class Started:
    """A thread that was started: what it may reach, and what it has changed when it was waited for."""

    def __init__(self, values: list[Any]) -> None:
        self.before = general.held_by(tuple(values))
        self.changed: Any = None

    def end(self) -> None:
        """The thread is at its end; what it has put somewhere may be taken out from now on."""
        self.changed = general.changes(self.before)

    def is_needed(self) -> bool:
        """Does the gradient depend on what it has changed, or may have?"""
        if self.changed is None:
            return any([is_reached(x) for x, _ in self.before])
        changed = [*self.changed, *general.changes(self.before)]
        return any([adjoint_object(x) is None or is_reached_at(x, keys) for x, keys in changed])


_started: WeakKeyDictionary[threading.Thread, Started] = WeakKeyDictionary()
non_differentiable(Started.end, Started.is_needed)


def start(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], started: Started) -> Any:
    """The start of a thread, which is refused if the gradient depends on what it does."""
    y = fn(*args, **kwargs)

    def start_pullback(ȳ: Any) -> Any:
        if started.is_needed():
            raise no_rule(fn, args, why="which changes what the gradient depends on")
        return (NoTangent(),) * (1 + len(args) + len(kwargs))

    return y, start_pullback


@serves(threading.Thread.start)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _started[args[0]] = started = Started(reached_from(args[0]))
    return start(fn, args, kwargs, started)


@serves(_thread.start_new_thread, _thread.start_new)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = (*args, *kwargs.values())
    return start(fn, args, kwargs, Started([*given, *captured_by(args[0])]))


@serves(threading.Thread.join)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y = fn(*args, **kwargs)
    thread = args[0]
    if thread in _started and not thread.is_alive():
        _started[thread].end()
    return y, lambda ȳ: (NoTangent(),) * (1 + len(args) + len(kwargs))


@serves(
    *[getattr(Pool, name) for name in ("apply", "map", "starmap")],
    ApplyResult.get,
    IMapIterator.next,
)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What others have computed."""
    y = fn(*args, **kwargs)

    def others_pullback(ȳ: Any) -> Any:
        if is_reached(y) or not is_zero(unthunk(ȳ)):
            raise no_rule(fn, args, why="whose result was computed by others")
        return (NoTangent(),) * (1 + len(args) + len(kwargs))

    return y, others_pullback
