"""Rules of asyncio: the loop runs on its own; the steps of coroutines are pulled back in its order.

`asyncio.run(main())` lets Python's own loop drive the coroutine, and those of tasks. All their steps
are pulled back, in the reverse of the order in which the loop made them. A task or a `gather` stands
for the coroutines that it runs: where it has been awaited, these get the cotangents of what they
returned.
Tests: tests/test_asynchronous.py
"""

import asyncio
from asyncio import BaseEventLoop
from collections.abc import Callable, Generator
from functools import partial
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
    general,
    generators,
    is_zero,
    materialise,
    no_rule,
    non_differentiable,
    on_entry,
    projector,
)
from morula.rules.calls import compiled, entry, once, serves
from morula.rules.generators import delegating, give_returned, pull_steps, record_of
from morula.rules.objects import give, take

# Takes the cotangent of a result, given with the result, to where that came from.
Receive = Callable[[Any, Any], None]

_futures: WeakKeyDictionary[Any, Receive] = WeakKeyDictionary()
_waiting: dict[int, tuple[Any, Any]] = {}  # iterators over futures that are awaited, and those


def of_coroutine(x: Any) -> Receive:
    """What takes the cotangent of what a coroutine returns, or a task of one."""
    record = record_of(x) if isinstance(x, CoroutineType) else None
    if record is not None:
        return lambda ȳ, y: give_returned(record, ȳ)
    return _futures.get(x, from_elsewhere) if isinstance(x, asyncio.Future) else from_elsewhere


def from_elsewhere(ȳ: Any, y: Any) -> None:
    """A result that differentiated code has not made."""
    if not is_zero(ȳ):
        raise not_followed(y)


def not_followed(y: Any) -> Exception:
    """Code that is not differentiated has set what a future holds."""
    why = "which other code has set, and whose value reaches the gradient"
    return no_rule(asyncio.Future.result, (y,), why=why)


def remember(future: Any, receive: Receive) -> None:
    """Note what takes the cotangent of a future's result."""
    _futures[future] = receive


def wait_for(iterator: Any, future: Any) -> None:
    """Note which future an iterator waits for."""
    _waiting[id(iterator)] = iterator, future


def awaited(iterator: Any) -> Any:
    """The future that an iterator waits for, or None."""
    found = _waiting.get(id(iterator))
    return None if found is None else found[1]


def done_waiting(iterator: Any) -> None:
    """The iterator has returned."""
    _waiting.pop(id(iterator), None)


adjoint_object.register(asyncio.Future, lambda x: None)
projector.register(asyncio.Future, lambda x: lambda x̄: ZERO)
collector.register(asyncio.Future, lambda y, part: None)
on_entry.register(asyncio.Future, lambda x, known: x)
materialise.register(asyncio.Future, lambda x, x̄, of: None)

non_differentiable(of_coroutine, remember, wait_for, awaited, done_waiting)
non_differentiable(
    asyncio.sleep, asyncio.get_running_loop, asyncio.current_task, asyncio.new_event_loop
)


def run_loop(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], receive: Callable[[Any], None]
) -> Any:
    """The steps that a loop makes, of whichever coroutine, are pulled back last first.

    `receive` takes the cotangent of what `fn` returns to where that came from.
    """
    once(f"asyncio.{fn.__name__}")
    steps: list[tuple[Any, int]] = []

    def observer(record: Any, signal: Any) -> Any:
        n = len(record.backs)
        try:
            return record.resume(record, signal)
        finally:
            steps.append((record, n))

    def pull_back(ȳ: Any) -> Any:
        receive(ȳ)
        for driven, n in reversed(steps):
            pull_steps(driven, n, ZERO)
        return (NONE, *[ZERO] * (len(args) + len(kwargs)))

    outer = general.begin_attempt()  # the loop catches what a coroutine raises
    general.expect_nothing()
    try:
        y = generators.observed(observer, fn, *args, **kwargs)
    except BaseException:
        outer.append((fn, pull_back))
        raise
    finally:
        general.end_attempt(outer)

    return y, pull_back


@serves(asyncio.run)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    record = record_of(args[0])
    if record is None:
        return compiled(fn, args, kwargs)
    return run_loop(fn, args, kwargs, partial(give_returned, record))


@serves(BaseEventLoop.run_forever)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return run_loop(fn, args, kwargs, lambda ȳ: None)


# -- what a loop calls


def called_by_loop(fn: Any, *args: Any) -> Generator[Any, Any, None]:
    """The calls that a loop makes of a function, as the steps of a generator."""
    given = yield
    while True:
        try:
            fn(*args, *given)
            error = None
        except Exception as raised:
            error = raised
        given = yield error


class Callback:
    """What a loop calls in the place of a function; it is equal to that, for who looks for it."""

    __slots__ = ("fn", "steps")

    def __init__(self, fn: Any, steps: Any) -> None:
        self.fn = fn
        self.steps = steps
        next(steps)

    def __call__(self, *given: Any) -> None:
        """One more step."""
        error = self.steps.send(given)
        if error is not None:
            raise error

    def __eq__(self, other: object) -> bool:
        return bool(self.fn == (other.fn if type(other) is Callback else other))

    __hash__ = None


# Where the callback stands among the arguments; those behind it are its own.
CALLS_LATER = {
    **dict.fromkeys((BaseEventLoop.call_soon, BaseEventLoop.call_soon_threadsafe), 1),
    **dict.fromkeys((BaseEventLoop.call_later, BaseEventLoop.call_at), 2),
    **dict.fromkeys((asyncio.Future.add_done_callback, asyncio.Task.add_done_callback), 1),
    BaseEventLoop.set_exception_handler: 1,
    asyncio.SelectorEventLoop.add_reader: 2,
    asyncio.SelectorEventLoop.add_writer: 2,
    asyncio.SelectorEventLoop.add_signal_handler: 2,
}


def is_to_be_followed(fn: Any, args: tuple[Any, ...]) -> bool:
    """Is a callback handed over that nobody follows yet?"""
    callback = (*args, None)[min(CALLS_LATER[fn], len(args))]
    return callable(callback) and type(callback) is not Callback


non_differentiable(is_to_be_followed)


@serves(*CALLS_LATER)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first = CALLS_LATER[fn]
    if not is_to_be_followed(fn, args):
        return compiled(fn, args, kwargs)
    steps, back = call(called_by_loop, *args[first:])
    y = fn(*args[:first], Callback(args[first], steps), **kwargs)

    def later_pullback(ȳ: Any) -> tuple[Any, ...]:
        return (NONE, *[ZERO] * first, *back(ZERO)[1:], *[NONE] * len(kwargs))

    return y, later_pullback


# -- tasks and futures


@serves(asyncio.create_task, asyncio.ensure_future, asyncio.Task)
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
            if i >= len(bars):
                continue
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
    future = awaited(receiver)
    if future is None:
        return None
    both = generators.delegate(receiver, signal)
    if not both[0]:
        return both, lambda ȳ: (NONE, ZERO, ZERO)
    done_waiting(receiver)
    receive = of_coroutine(future)

    def waiting_pullback(ȳ: Any) -> tuple[Any, ...]:
        receive(entry(ȳ, 1), both[1])
        return NONE, ZERO, ZERO

    return both, waiting_pullback


@serves(asyncio.Task.result, asyncio.Future.result)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y = fn(*args)
    receive = of_coroutine(args[0])

    def result_pullback(ȳ: Any) -> tuple[Any, ...]:
        receive(ȳ, y)
        return NONE, ZERO

    return y, result_pullback


class Given:
    """A result that a future was given; its adjoint table has the cotangent."""

    __slots__ = ("value",)


@serves(asyncio.Task.exception, asyncio.Future.exception)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The very exception that was raised or set, which is found by its identity."""
    return fn(*args), lambda ȳ: (NONE, ZERO)


@serves(asyncio.Future.set_result)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y = fn(*args)
    given = Given()
    remember(args[0], lambda ȳ, y: give(adjoint_of(given), "value", ȳ))
    return y, lambda ȳ: (NONE, ZERO, take(adjoint_of(given), "value"))
