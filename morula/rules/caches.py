"""Functions with a cache: the value is the cached one, its pullback that of the function.

The function runs once more, in the reverse pass, if a cotangent reaches the value. What it calls in
turn may have a cache as well, and a function that calls itself by way of it counts on that: so in
such a run, a call that has been made already gives what has reached it to the first one, by the
adjoint object of this.

    fib(n) = fib(n - 1) + fib(n - 2):  the second call of fib(n - 2) adds to what reaches the first

That two calls have equal arguments does not make them one: their values may come from different
places. So a number counts as the same only if it is one object that this run has made. Integers
count as the same, and what they get is not known then; who asks for it nevertheless gets it from a
run in which no call is shared.
Tests: tests/rules/test_caches.py
"""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    Thunk,
    accumulate,
    adjoint_object,
    adjoint_of,
    call,
    general,
    has_tangent,
    is_reached,
    is_reached_at,
    is_zero,
    isolated,
    no_rule,
    non_differentiable,
    resolves,
    unthunk,
)
from morula.rules.boxes import Box, take

NUMBERS = (float, complex, np.float64, np.float32)


class Calls:
    """The calls of functions with caches, in one run of such a function."""

    def __init__(self, share: bool = True) -> None:
        self.share = share
        self.made: dict[Any, Made] = {}
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


@resolves(type(functools.lru_cache(abs)))
def cached(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function with a cache."""
    calls = general.calls_here()
    if calls is not None:
        return cached_within(calls, fn, args, kwargs)
    before = general.held_by((fn.__wrapped__, *args, *kwargs.values()))
    y = fn(*args, **kwargs)
    changed = general.changes(before)
    n = 1 + len(args) + len(kwargs)

    def cached_pullback(ȳ: Any) -> tuple[Any, ...]:
        refuse_changes(fn, args, changed)
        refuse_mutable(fn, args, kwargs, y)
        if is_zero(unthunk(ȳ)):
            return (ZERO,) * n
        again, back = call_again(Calls(), fn, args, kwargs)
        refuse_other(fn, args, y, again)
        bars = back(ȳ)[1:]
        return NONE, *[
            Thunk(partial(alone, fn, args, kwargs, ȳ, i)) if type(c) is NotKnown else c
            for i, c in enumerate(bars)
        ]

    return y, cached_pullback


def alone(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], ȳ: Any, i: int) -> Any:
    """The cotangent of one argument, by a run in which no call is shared."""
    with isolated():
        _, back = call_again(Calls(share=False), fn, args, kwargs)
        return back(ȳ)[1 + i]


def call_again(calls: Calls, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function itself, without its cache, while the calls within it know of each other."""
    outer = general.calls_here()
    general.follow_calls(calls)
    try:
        given = [owned(calls, x) for x in args]
        named = {name: owned(calls, x) for name, x in kwargs.items()}
        return call(fn.__wrapped__, *given, **named)
    finally:
        general.follow_calls(outer)


def cached_within(
    calls: Calls, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """A function with a cache that is called where another one runs again."""
    y = fn(*args, **kwargs)
    values, names = (*args, *kwargs.values()), tuple(kwargs)
    by_integers = partial(no_rule, fn, values, why="by an integer, though it has a cache")
    unknown = [NotKnown(by_integers) if is_integer(x) else ZERO for x in values]
    made = made_before(calls, fn, values, names)
    if made is not None:

        def hit_pullback(ȳ: Any) -> tuple[Any, ...]:
            box = adjoint_of(made)
            box.cotangent = accumulate(box.cotangent, ȳ)
            return NONE, *unknown

        return y, hit_pullback
    before = general.held_by((fn.__wrapped__, *values))
    again, back = call_again(calls, fn, args, kwargs)
    changed = general.changes(before)
    first = note(calls, fn, values, names)

    def miss_pullback(ȳ: Any) -> tuple[Any, ...]:
        refuse_changes(fn, args, changed)
        refuse_mutable(fn, args, kwargs, y)
        ȳ = accumulate(ȳ, take(adjoint_of(first)))
        if is_zero(unthunk(ȳ)):
            return (ZERO,) * (1 + len(values))
        refuse_other(fn, args, y, again)
        bars = back(ȳ)[1:]
        if not first.is_shared:
            return NONE, *bars
        return NONE, *[
            c if is_zero(c) or is_zero(u) else u for c, u in zip(bars, unknown, strict=True)
        ]

    return y, miss_pullback


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
