"""Rules of asyncio: the loop runs on its own; steps of coroutines are pulled back where it is awaited.

`asyncio.run(main())` lets Python's own loop drive the coroutine. A task or a `gather` stands for the
coroutines that it runs: where it has been awaited, their steps are pulled back, from the cotangents of
what they returned.
Tests: tests/test_generators.py
"""

import asyncio
from collections.abc import Callable
from types import CoroutineType
from typing import Any
from weakref import WeakKeyDictionary

from morula.core.extend import (
    NONE,
    ZERO,
    adjoint_object,
    adjoint_of,
    call,
    collector,
    generators,
    is_zero,
    materialise,
    no_rule,
    non_differentiable,
    on_entry,
    projector,
)
from morula.rules.calls import compiled, entry, serves
from morula.rules.generators import Steps, delegating, pull_steps, record_of

# Takes the cotangent of a result, given with the result, to where that came from.
Receive = Callable[[Any, Any], None]

_futures: WeakKeyDictionary[Any, Receive] = WeakKeyDictionary()
_waiting: dict[int, tuple[Any, Receive]] = {}  # what iterators over futures that are awaited give


def of_coroutine(x: Any) -> Receive:
    """What takes the cotangent of what a coroutine returns, or a task of one."""
    record = record_of(x) if isinstance(x, CoroutineType) else None
    if record is not None:
        return lambda ȳ, y: pull_steps(record, 0, ȳ)
    return _futures.get(x, from_elsewhere) if isinstance(x, asyncio.Future) else from_elsewhere


def from_elsewhere(ȳ: Any, y: Any) -> None:
    """A result that differentiated code has not made."""
    if not is_zero(ȳ):
        raise no_rule(asyncio.gather, (y,))


def remember(future: Any, receive: Receive) -> None:
    """Note what takes the cotangent of a future's result."""
    _futures[future] = receive


def wait_for(iterator: Any, future: Any) -> None:
    """Note which future an iterator waits for."""
    receive = _futures.get(future)
    if receive is not None:
        _waiting[id(iterator)] = (iterator, receive)


def receiver_of(iterator: Any) -> Receive | None:
    """What takes the cotangent of what an iterator over a future returns."""
    found = _waiting.get(id(iterator))
    return None if found is None else found[1]


def done_waiting(iterator: Any) -> None:
    """The iterator has returned."""
    _waiting.pop(id(iterator), None)


adjoint_object.register(asyncio.Future, lambda x: None)
projector.register(asyncio.Future, lambda x: lambda x̄: ZERO)
collector.register(asyncio.Future, lambda y: None)
on_entry.register(asyncio.Future, lambda x, known: x)
materialise.register(asyncio.Future, lambda x, x̄, of: None)

non_differentiable(of_coroutine, remember, wait_for, receiver_of, done_waiting)
non_differentiable(asyncio.sleep, asyncio.get_running_loop, asyncio.current_task)


@serves(asyncio.run)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    record = record_of(args[0])
    if record is None:
        return compiled(fn, args, kwargs)
    steps = Steps(record)
    y = fn(*args, **kwargs)
    steps.end()

    def run_pullback(ȳ: Any) -> tuple[Any, ...]:
        steps.pull_back(ȳ)
        return (NONE, *[ZERO] * (len(args) + len(kwargs)))

    return y, run_pullback


@serves(asyncio.create_task, asyncio.ensure_future)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y = fn(*args, **kwargs)
    remember(y, of_coroutine(args[0]))
    return y, lambda ȳ: (NONE, *[ZERO] * (len(args) + len(kwargs)))


@serves(asyncio.gather)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    receivers = [of_coroutine(x) for x in args]
    y = fn(*args, **kwargs)

    def receive(ȳ: Any, results: Any) -> None:
        bars = adjoint_of(results)
        for i in reversed(range(len(receivers))):
            c, bars[i] = bars[i], ZERO
            receivers[i](c, results[i])

    remember(y, receive)
    return y, lambda ȳ: (NONE, *[ZERO] * (len(args) + len(kwargs)))


@serves(generators.awaitable)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (x,) = args
    if not isinstance(x, asyncio.Future):
        return call(plain_awaitable, x)
    y = generators.awaitable(x)
    wait_for(y, x)
    return y, lambda ȳ: (NONE, ZERO)


plain_awaitable = generators.same_code(generators.awaitable)


@delegating
def _(receiver: Any, signal: Any) -> Any:
    receive = receiver_of(receiver)
    if receive is None:
        return None
    both = generators.delegate(receiver, signal)
    if both[0]:
        done_waiting(receiver)

    def waiting_pullback(ȳ: Any) -> tuple[Any, ...]:
        if both[0]:
            receive(entry(ȳ, 1), both[1])
        return NONE, ZERO, ZERO

    return both, waiting_pullback
