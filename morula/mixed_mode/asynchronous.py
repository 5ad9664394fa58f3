"""Forward mode of asyncio: the loop runs on its own, and every step is a push.

The tangent of what a task or a `gather` gives is found where it has been awaited.
Tests: tests/mixed_mode/test_language.py
"""

import asyncio
from collections.abc import Callable
from types import CoroutineType
from typing import Any
from weakref import WeakKeyDictionary

from morula.core import generators
from morula.core.cotangents import ZERO, is_zero
from morula.core.registry import non_differentiable
from morula.mixed_mode.calls import Args, Names, compiled
from morula.mixed_mode.generators import stepper_of
from morula.mixed_mode.push import Unknown, carries, push, pushes, split_call
from morula.mixed_mode.tangents import Pass, set_all
from morula.rules import asynchronous as reverse
from morula.rules.calls import entry, once

# Gives the tangent of a result.
Tangents = Callable[[Any], Any]

_futures: WeakKeyDictionary[Any, dict[int, Tangents]] = WeakKeyDictionary()


def of_coroutine(run: Pass, x: Any) -> Tangents:
    """What gives the tangent of what a coroutine returns, or a task of one."""
    stepper = stepper_of(run, x) if isinstance(x, CoroutineType) else None
    if stepper is not None:
        return lambda y: entry(stepper.frame, 1)
    found = _futures.get(x, {}).get(id(run)) if isinstance(x, asyncio.Future) else None
    return found or from_elsewhere


def from_elsewhere(y: Any) -> Any:
    """The tangent of a result that differentiated code has not made."""
    return Unknown(reverse.not_followed(y)) if carries(y) else ZERO


def remember(run: Pass, future: Any, tangents: Tangents) -> None:
    """Note what gives the tangent of a future's result."""
    _futures.setdefault(future, {})[id(run)] = tangents


non_differentiable(of_coroutine, remember)


@pushes(asyncio.run)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    stepper = stepper_of(run, args[0])
    if stepper is None:
        return compiled(run, asyncio.run, ZERO, args, tangents, keywords)
    once("asyncio.run")
    return split_call(asyncio.run, args, keywords), entry(stepper.frame, 1)


@pushes(asyncio.BaseEventLoop.run_forever)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    once("asyncio.run_forever")
    return split_call(asyncio.BaseEventLoop.run_forever, args, keywords), ZERO


def _task(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        y = split_call(fn, args, keywords)
        remember(run, y, of_coroutine(run, args[0]))
        return y, ZERO


_task(asyncio.create_task)
_task(asyncio.Task)
_task(asyncio.ensure_future)


def _calls_later(fn: Any, first: int) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        n = len(args) - len(keywords)
        if not reverse.is_to_be_followed(fn, args[:n]):
            return compiled(run, fn, ZERO, args, tangents, keywords)
        steps, _ = push(run, reverse.called_by_loop, ZERO, args[first:n], tangents[first:n])
        callback = reverse.Callback(args[first], steps)
        return split_call(fn, (*args[:first], callback, *args[n:]), keywords), ZERO


for _later, _first in reverse.CALLS_LATER.items():
    _calls_later(_later, _first)
del _later, _first


@pushes(asyncio.gather)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    sources = [of_coroutine(run, x) for x in args[: len(args) - len(keywords)]]
    y = split_call(asyncio.gather, args, keywords)

    def of_results(results: Any) -> Any:
        found = [of(result) for of, result in zip(sources, results, strict=True)]
        set_all(run, results, found)
        return ZERO

    remember(run, y, of_results)
    return y, ZERO


@pushes(generators.awaitable)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    (x,) = args
    if not isinstance(x, asyncio.Future):
        return push(run, reverse.plain_awaitable, ZERO, args, tangents)
    y = generators.awaitable(x)
    reverse.wait_for(y, x)
    return y, ZERO


@pushes(generators.delegate)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    receiver, signal = args
    future = reverse.awaited(receiver)
    if future is None:
        return NotImplemented
    both = generators.delegate(receiver, signal)
    if not both[0]:
        return both, ZERO
    reverse.done_waiting(receiver)
    ẏ = of_coroutine(run, future)(both[1])
    return both, ZERO if is_zero(ẏ) else (ZERO, ẏ)


@pushes(asyncio.Task.result, asyncio.Future.result)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    y = args[0].result()
    return y, of_coroutine(run, args[0])(y)


@pushes(asyncio.Task.exception, asyncio.Future.exception)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return args[0].exception(), ZERO


@pushes(asyncio.Future.set_result)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    remember(run, args[0], lambda y: tangents[1])
    return split_call(asyncio.Future.set_result, args, keywords), ZERO
