"""Rules of threads: what a pool is given runs at once, in the thread that is differentiated.

The reverse pass of a thread would have to wait for that of others. So the tasks of a pool run one
after the other as they are handed in, which is one of the orders that they may have. A thread of
one's own runs as it is; what it changes is refused if a cotangent reaches it.
Tests: tests/rules/test_threads.py
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.pool import ApplyResult, IMapIterator, Pool
from typing import Any

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
    """A thread, its arguments, and what its function has captured."""
    target = getattr(thread, "_target", None)
    cells = getattr(target, "__closure__", None) or ()
    return [thread, getattr(target, "__self__", None), *cells, *map(content_of, cells)]


@serves(threading.Thread.start)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    before = general.held_by(tuple([x for a in args for x in reached_from(a)]))
    y = fn(*args, **kwargs)

    def start_pullback(ȳ: Any) -> Any:
        changed = general.changes(before)
        if any(adjoint_object(x) is None or is_reached_at(x, keys) for x, keys in changed):
            raise no_rule(fn, args, why="which changes what the gradient depends on")
        return (NoTangent(),) * (1 + len(args) + len(kwargs))

    return y, start_pullback


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
