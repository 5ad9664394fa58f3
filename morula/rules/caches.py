"""Functions with a cache: the value is the cached one, its pullback that of the function.

Where the cache has no value, the function runs once, differentiated, and its value is kept there. Of a
value that is there already nothing else is known: the function runs once more for it, in the reverse
pass, if a cotangent reaches it. What it calls in turn may have a cache as well, and a function that
calls itself by way of it counts on that: so within its run, a call that has been made already gives
what has reached it to the first one, by the adjoint object of this.

    fib(n) = fib(n - 1) + fib(n - 2):  the second call of fib(n - 2) adds to what reaches the first

That two calls have equal arguments does not make them one: their values may come from different
places. So a number counts as the same only if it is one object that this run has made. Integers
count as the same, and what they get is not known then; who asks for it nevertheless gets it from a
run in which no call is shared.
Tests: tests/rules/test_caches.py
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    accumulate,
    adjoint_object,
    adjoint_of,
    call,
    called_in_company,
    collector,
    general,
    has_tangent,
    is_reached,
    is_reached_at,
    is_zero,
    isolated,
    no_rule,
    non_differentiable,
    projector,
    resolves,
    unthunk,
)
from morula.rules.boxes import Box, take
from morula.rules.calls import serves, together
from morula.rules.objects import give

CACHED = type(functools.lru_cache(abs))
non_differentiable(CACHED.cache_info, CACHED.cache_clear)
SUSPENDS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
BY_INTEGERS = "by an integer, on which calls of it depend that its cache has made one"
NUMBERS = (float, complex, np.float64, np.float32)


class Calls:
    """The calls of functions with caches within one of them.

    If it runs in the reverse pass, it does so for the pullbacks, and all that it calls is run again.
    """

    def __init__(self, again: bool = False, share: bool = True) -> None:
        self.again = again
        self.share = share
        self.made: dict[Any, Made] = {}
        self.all: list[Made] = []
        self.own: dict[int, Any] = {}  # numbers that were made for this run, by identity


class Made:
    """A call that was made: its adjoint object holds what reaches the later ones."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values
        self.is_shared = False


@adjoint_object.register
def _(made: Made) -> Box:
    return Box()


def key_of(fn: Any, values: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    """What a call is found by."""
    return (fn, values, names)


def made_before(calls: Calls, fn: Any, values: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    """The call that was made with the very same arguments, or None."""
    made = calls.made.get(key_of(fn, values, names)) if calls.share else None
    if made is None:
        return None
    pairs = zip(values, made.values, strict=True)
    if not all(is_same_input(calls, a, b) for a, b in pairs):
        return None
    made.is_shared = True
    return made


def is_same_input(calls: Calls, a: Any, b: Any) -> bool:
    """Are two equal arguments one, so that what reaches both may go to either?"""
    if is_integer(a) or not has_tangent(type(a)):
        return type(a) is type(b)
    return a is b and (id(a) in calls.own or adjoint_object(a) is not None)


def is_integer(x: Any) -> bool:
    """Is an argument an integer, which is not one object for each place that it comes from?"""
    return isinstance(x, (int, np.integer))


def note(calls: Calls, fn: Any, values: tuple[Any, ...], names: tuple[str, ...]) -> Made:
    """Note that a call was made."""
    made = calls.made[key_of(fn, values, names)] = Made(values)
    calls.all.append(made)
    return made


def is_shared_number(calls: Calls, x: Any) -> bool:
    """May a number come from elsewhere too?"""
    return type(x) in NUMBERS and id(x) not in calls.own


def own(calls: Calls, x: Any) -> None:
    """Note that a number was made for this run."""
    calls.own[id(x)] = x


non_differentiable(Calls, made_before, is_integer, note, is_shared_number, own)


def owned(calls: Calls, x: Any) -> Any:
    """`x`; a number as a new object, if it may come from elsewhere too."""
    if not is_shared_number(calls, x):
        return x
    x = complex(x.real, x.imag) if type(x) is complex else x * 1.0
    own(calls, x)
    return x


# -- running a function where its cache has no value -----------------------------------------------

_lock = threading.RLock()
_waiting: list[StandIn] = []


class StandIn:
    """What runs in the place of a function with a cache, the next time that it is called."""

    def __init__(self, function: FunctionType, run: Callable[..., Any]) -> None:
        self.function = function
        self.run = run
        self.code = function.__code__
        self.thread = threading.get_ident()

    def begin(self) -> None:
        """Have calls of the function end here, until one does."""
        _lock.acquire()
        _waiting.append(self)
        self.function.__code__ = stand_in_for(self.code)

    def end(self) -> None:
        """Let it be what it was, if it is not yet."""
        if self in _waiting:
            self.function.__code__ = self.code
            _waiting.remove(self)
            _lock.release()

    def called(self) -> Callable[..., Any]:
        """What runs now: in other threads, the function itself."""
        if threading.get_ident() == self.thread:
            self.end()
            return self.run
        f = self.function
        same = FunctionType(self.code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
        same.__kwdefaults__ = f.__kwdefaults__
        return same


def what_is_called() -> Callable[..., Any]:
    """A function was called in whose place another one is to run."""
    return _waiting[-1].called()


def stand_in_for(code: CodeType) -> CodeType:
    """Code that hands its arguments over, with as many captured variables."""
    return stand_in_with(len(code.co_freevars))


@functools.lru_cache(64)
def stand_in_with(n_captured: int) -> CodeType:
    """The same by the number of captured variables, which it names but never asks for."""
    names = ", ".join([f"_{i}" for i in range(n_captured)])
    source = f"""
def enclosing({names}):
    def stand_in(*args, **kwargs):
        from {__name__} import what_is_called
        return what_is_called()(*args, **kwargs)
        return {names or None}
    return stand_in
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    code: CodeType = namespace["enclosing"](*range(n_captured)).__code__
    return code


def on_miss(fn: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`fn(*args, **kwargs)`, where `run` is called in the place of the function itself.

    So a value that is in the cache is taken from there, and one that is not is kept there. Where
    the function itself cannot be replaced, it is called, and `run` is not.
    """
    function = fn.__wrapped__
    if type(function) is not FunctionType or function.__code__.co_flags & SUSPENDS:
        return fn(*args, **kwargs)
    stand_in = StandIn(function, run)
    stand_in.begin()
    try:
        return fn(*args, **kwargs)
    finally:
        stand_in.end()


# -- the pullbacks ---------------------------------------------------------------------------------


called_in_company(CACHED)
projector.register(CACHED, lambda x: None)
adjoint_object.register(CACHED, lambda x: None)
collector.register(CACHED, lambda y, part: None)


def cached(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Any = None) -> Any:
    """A function with a cache, for whose values something else may `run` in its place."""
    run = fn.__wrapped__ if run is None else run
    above = general.calls_here()
    is_root = above is None
    calls = Calls() if is_root else above
    backs: list[Any] = []

    def run_within(*args: Any, **kwargs: Any) -> Any:
        given = [owned(calls, x) for x in args]
        named = {name: owned(calls, x) for name, x in kwargs.items()}
        y, back = call(run, *given, **named)
        backs.append(back)
        return y

    general.follow_calls(calls)
    try:
        y = on_miss(fn, run_within, args, kwargs)
    finally:
        general.follow_calls(above)
    values, names = (*args, *kwargs.values()), tuple(kwargs)
    by_integers = partial(no_rule, fn, values, why=BY_INTEGERS)
    unknown = [NotKnown(by_integers) if is_integer(x) else ZERO for x in values]
    made = None if backs or is_root else made_before(calls, fn, values, names)
    if made is not None:

        def shared_pullback(ȳ: Any) -> tuple[Any, ...]:
            box = adjoint_of(made)
            box.cotangent = accumulate(box.cotangent, ȳ)
            return NONE, *unknown

        return y, shared_pullback
    if not backs and not calls.again:
        return y, partial(pull_by_a_run, fn, args, kwargs, y)
    back = backs[0] if backs else run_again(calls, fn, args, kwargs, y)
    first = note(calls, fn, values, names)

    def first_pullback(ȳ: Any) -> tuple[Any, ...]:
        bars = back(accumulate(ȳ, take(adjoint_of(first))))
        if is_root:
            refuse_left(calls, fn, values)
            return bars[0], *each_by_integers(fn, args, kwargs, ȳ, bars[1:])
        if first.is_shared:
            return bars[0], *map(without_integer, bars[1:], unknown)
        return bars

    return y, first_pullback


resolves(CACHED)(cached)


@serves(on_miss)
def _(on_miss: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What runs in the place of a function with a cache is differentiated in its turn."""
    fn, run, given, named = args
    y, back = cached(fn, given, named, run)

    def on_miss_pullback(ȳ: Any) -> tuple[Any, ...]:
        r̄un, *bars = back(ȳ)
        for name, c in zip(named, bars[len(given) :], strict=True):
            give(adjoint_of(named), name, c)
        return NONE, NONE, r̄un, together(bars[: len(given)]), NONE

    return y, on_miss_pullback


def call_again(
    calls: Calls, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """The function without its cache, while the calls of such functions know of each other."""
    outer = general.calls_here()
    general.follow_calls(calls)
    try:
        given = [owned(calls, x) for x in args]
        named = {name: owned(calls, x) for name, x in kwargs.items()}
        return call(fn.__wrapped__, *given, **named)
    finally:
        general.follow_calls(outer)


def run_again(
    calls: Calls, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], y: Any
) -> Callable[[Any], tuple[Any, ...]]:
    """The pullback of a function with a cache that has the value of an earlier call."""
    before = general.held_by((fn.__wrapped__, *args, *kwargs.values()))
    again, back = call_again(calls, fn, args, kwargs)
    changed = general.changes(before)

    def run_again_pullback(ȳ: Any) -> tuple[Any, ...]:
        refuse_changes(fn, args, changed)
        refuse_mutable(fn, args, kwargs, y)
        if is_zero(unthunk(ȳ)):
            return (ZERO,) * (1 + len(args) + len(kwargs))
        refuse_other(fn, args, y, again)
        return back(ȳ)

    return run_again_pullback


def pull_by_a_run(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], y: Any, ȳ: Any
) -> tuple[Any, ...]:
    """The same, run in the reverse pass, if a cotangent reaches the value."""
    values = (*args, *kwargs.values())
    refuse_mutable(fn, args, kwargs, y)
    if is_zero(unthunk(ȳ)):
        return (ZERO,) * (1 + len(values))
    calls = Calls(again=True)
    bars = run_again(calls, fn, args, kwargs, y)(ȳ)
    refuse_left(calls, fn, values)
    return NONE, *each_by_integers(fn, args, kwargs, ȳ, bars[1:])


def each_by_integers(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], ȳ: Any, bars: tuple[Any, ...]
) -> list[Any]:
    """The cotangents; those that sharing leaves open can be found by a run without it."""
    error = partial(no_rule, fn, (*args, *kwargs.values()), why=BY_INTEGERS)
    return [
        NotKnown(error, partial(alone, fn, args, kwargs, ȳ, i)) if type(c) is NotKnown else c
        for i, c in enumerate(bars)
    ]


def alone(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], ȳ: Any, i: int) -> Any:
    """The cotangent of one argument, by a run in which no call is shared."""
    with isolated():
        _, back = call_again(Calls(again=True, share=False), fn, args, kwargs)
        return back(ȳ)[1 + i]


def without_integer(c: Any, unknown: Any) -> Any:
    """The cotangent of an argument of a shared call."""
    return c if is_zero(c) or is_zero(unknown) else unknown


def refuse_left(calls: Calls, fn: Any, values: tuple[Any, ...]) -> None:
    """An error if what has reached a shared call did not get further."""
    if any(is_reached(made) for made in calls.all):
        raise no_rule(fn, values, reason="what a call of its own gave was not followed")


def refuse_changes(fn: Any, args: tuple[Any, ...], changed: Any) -> None:
    """An error if a cotangent has reached what a function with a cache has changed."""
    if any(is_reached_at(x, keys) for x, keys in changed):
        raise no_rule(fn, args, why="which is called for what it changes, though it has a cache")


def refuse_mutable(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], y: Any) -> None:
    """An error if a cotangent has reached a mutable result that is kept for later calls."""
    if (args or kwargs) and is_reached(y):
        raise no_rule(fn, args, reason="it keeps a mutable result for later calls")


def refuse_other(fn: Any, args: tuple[Any, ...], y: Any, again: Any) -> None:
    """An error if a function with a cache gives something else than what is in it."""
    if not is_same(y, again):
        raise no_rule(fn, args, reason="it gives another result than the one in its cache")


def is_same(a: Any, b: Any) -> bool:
    """Are two results of a function the same?"""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(is_same, a, b))
    return bool(a == b) or a != a


non_differentiable(is_same)
