"""What calls mean that belong to another library: said by functions that Morula differentiates.

A meaning is a Python function `meaning(f, args, kwargs)` that gives the value of the call, and is
differentiated in the place of it; `claim(meaning)` is what the core asks for. Cotangents and
tangents of what lists, dicts, objects and cells hold are found by identity, in a *store*: that of the
running reverse pass, or of a forward pass.
Tests: tests/interop/
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from types import CellType
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    Thunk,
    accumulate,
    adjoint_object,
    adjoint_of,
    call,
    collector,
    detail_of,
    frule,
    is_zero,
    memory_of,
    no_rule,
    non_differentiable,
    on_entry,
    primitives,
    project_to,
    remembered,
    rrule,
)
from morula.core.general import Claim
from morula.mixed_mode.memory import current
from morula.mixed_mode.push import push
from morula.mixed_mode.tangents import (
    Pass,
    box_of,
    item_of,
    set_box,
    set_item,
    set_value,
    tangents_if_any,
    together,
    value_of,
)
from morula.rules import boxes
from morula.rules.calls import entry, with_derivative_of
from morula.rules.containers import give_at, lengthen, take_at
from morula.rules.numbers import Anything
from morula.rules.objects import give, table_of, take

Args = tuple[Any, ...]
Meaning = Callable[[Any, Args, dict[str, Any]], Any]


def is_or_holds(x: Any, is_one: Callable[[Any], bool]) -> bool:
    """Is x one of these, or a list or a tuple that holds one? It may hold itself."""
    waiting, seen = [x], {id(x)}
    while waiting:
        y = waiting.pop()
        if type(y) in (list, tuple):
            new = [item for item in y if id(item) not in seen]
            seen.update(map(id, new))
            waiting += new
        elif is_one(y):
            return True
    return False


def may_be_kept(t: type) -> bool:
    """May a table keep a class for good? Those that functions make are made again and again."""
    return "<locals>" not in t.__qualname__


def claim(meaning: Meaning) -> Claim:
    """The call means what this function gives."""
    return Claim(partial(reverse, meaning), partial(forward, meaning))


def reverse(meaning: Meaning, fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The value of a call and its pullback."""
    y, back = call(meaning, fn, args, kwargs)
    project = project_to(y) if isinstance(y, np.ndarray) else as_given  # it may have been filled

    def meaning_pullback(ȳ: Any) -> Args:
        _, f̄, of_args, _ = back(project(ȳ))
        named = adjoint_of(kwargs)
        bars = [raw(of_args, i) for i in range(len(args))]
        return (f̄, *bars, *[take(named, key) for key in kwargs])

    return y, meaning_pullback


def as_given(ȳ: Any) -> Any:
    """What comes back for a value that nothing is written to."""
    return ȳ


def raw(of_args: Any, i: int) -> Any:
    """One entry of the cotangent of a tuple; a thunk stays one."""
    return of_args[i] if type(of_args) is tuple else entry(of_args, i)


def forward(
    meaning: Meaning, run: Any, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Any
) -> Any:
    """The value of a call and its tangent."""
    n = len(args) - len(keywords)
    kwargs = dict(zip(keywords, args[n:], strict=True))
    for key, ẋ in zip(keywords, tangents[n:], strict=True):
        set_value(run, kwargs, key, ẋ)
    dots = (ḟ, together(tangents[:n]), NONE)
    y, ẏ = push(run, meaning, NONE, (fn, args[:n], kwargs), dots)
    return y, current(run, y, ẏ)


# -- meanings that any library needs ---------------------------------------------------------------


def plainly(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A call without derivative."""
    return as_it_is(fn, args, kwargs)


def handed_on(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A method of an array, or a place in it: what comes back for it goes to the array."""
    return with_derivative_of(as_it_is(fn, args, kwargs), args[0])


def as_it_is(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The call itself."""
    return fn(*args, **kwargs)


# -- what arrays of any library share --------------------------------------------------------------

ITERATING = {
    id(fn)
    for fn in (
        iter, zip, enumerate, map, filter, reversed, list, tuple, sum, min, max, sorted,
        primitives.unpack, primitives.unpack_rest, primitives.list_extend, primitives.as_tuple,
    )
}  # fmt: skip
NUMBERS = {id(fn) for fn in (float, complex, int, operator.index)}


def iterates(fn: Any, values: Args, is_array: Callable[[Any], bool]) -> bool:
    """Does a function of `ITERATING` go over an array? The least of several is one of them."""
    if fn in (min, max):
        return len(values) == 1
    return any(map(is_array, values[1:] if fn in (map, filter) else values))


def go_by_value(*types: type) -> None:
    """Declare types whose cotangents and tangents are handed on, and not kept by identity."""
    for t in types:
        adjoint_object.register(t, lambda x: None)
        collector.register(t, lambda y, part: None)
        memory_of.register(t, lambda x: None)
        detail_of.register(t, lambda x: None)
        on_entry.register(t, lambda x, known: x)
        remembered.register(t, lambda x, known: [])


def array_of(method: Any) -> Any:
    """The array that a method is bound to; what comes back for it is the method's."""
    return method.__self__


@rrule(array_of)
def _(method: Anything):
    def array_of_pullback(ȳ):
        return (ȳ,)

    return array_of(method), array_of_pullback


@frule(array_of)
def _(method: Anything):
    def array_of_pushforward(ẋ):
        return ẋ

    return array_of(method), array_of_pushforward


def differentiate_copies(
    *to_numpy: Callable[[Any], Any],
    like: Callable[[Any, Any], Any],
    is_array: Callable[[Any], bool],
    is_inexact: Callable[[Any], bool],
) -> None:
    """The rules of the ways between a library's arrays and NumPy's: each is the pullback of the other.

    Args:
        to_numpy: functions that give an array as one of NumPy's.
        like: gives a number or an array of any kind as one like an array of the library's.
        is_array: is it an array of the library's?
        is_inexact: has such an array a tangent space?
    """
    for host in to_numpy:
        differentiate_copy(host, like, is_inexact)

    @rrule(like)
    def _(v: Anything, x: Anything):
        on_host = not is_array(v)

        def like_pullback(ȳ):
            return to_numpy[0](ȳ) if on_host else ȳ, NONE

        return like(v, x), like_pullback


def differentiate_copy(host: Any, like: Any, is_inexact: Any) -> None:
    """The rule of one way to NumPy."""

    @rrule(host)
    def _(x: Anything):
        def host_pullback(ȳ):
            return (like(ȳ, x) if is_inexact(x) else NONE,)

        return host(x), host_pullback


# -- stores ----------------------------------------------------------------------------------------


def is_delayed(c: Any) -> bool:
    """Is it a thunk, or a tuple that has one in it?"""
    return type(c) is Thunk or (type(c) is tuple and any(map(is_delayed, c)))


class Reverse:
    """The store of the running reverse pass: cotangents add up, and are taken by who made the value.

    A thunk is not computed here.
    """

    def put_item(self, x: Any, i: int, c: Any) -> None:
        """The cotangent of an item of a list."""
        bars = adjoint_of(x)
        if is_delayed(c):
            lengthen(bars, i + 1)
            bars[i] = accumulate(bars[i], c)
        else:
            give_at(bars, i, c)

    def put_value(self, x: Any, key: Any, c: Any) -> None:
        """The cotangent of a value in a dict, or of an attribute of an object."""
        table = adjoint_of(x) if isinstance(x, dict) else table_of(x)
        if is_delayed(c):
            table[key] = accumulate(take(table, key), c)
        else:
            give(table, key, c)

    def put_cell(self, cell: CellType, c: Any) -> None:
        """The cotangent of what a cell holds."""
        box = adjoint_of(cell)
        box.cotangent = accumulate(box.cotangent, c)

    def get_item(self, x: Any, i: int) -> Any:
        """What has come together for an item of a list."""
        return take_at(adjoint_of(x), i)

    def get_value(self, x: Any, key: Any) -> Any:
        """What has come together for a value in a dict, or an attribute of an object."""
        return take(adjoint_of(x) if isinstance(x, dict) else table_of(x), key)

    def get_cell(self, cell: CellType) -> Any:
        """What has come together for what a cell holds."""
        return boxes.take(adjoint_of(cell))


class Forward:
    """The store of a forward pass: the tangents of mutable values."""

    def __init__(self, run: Pass) -> None:
        self.run = run

    def put_item(self, x: Any, i: int, ẋ: Any) -> None:
        """The tangent of an item of a list."""
        set_item(self.run, x, i, ẋ)

    def put_value(self, x: Any, key: Any, ẋ: Any) -> None:
        """The tangent of a value in a dict, or of an attribute of an object."""
        set_value(self.run, x, key, ẋ)

    def put_cell(self, cell: CellType, ẋ: Any) -> None:
        """The tangent of what a cell holds."""
        set_box(self.run, cell, ẋ)

    def get_item(self, x: Any, i: int) -> Any:
        """That of an item of a list."""
        return item_of(tangents_if_any(self.run, x), i)

    def get_value(self, x: Any, key: Any) -> Any:
        """That of a value in a dict, or of an attribute of an object."""
        return value_of(self.run, x, key)

    def get_cell(self, cell: CellType) -> Any:
        """That of what a cell holds."""
        return box_of(self.run, cell)


def takes_only_tangents(run: Pass, fn: Any, args: Args, dots: Any) -> None:
    """An error where what a pass carries into a call of another library is no tangent."""
    if run.primitive is not None and not all(map(is_zero, dots)):
        raise no_rule(fn, args, why=run.refusal)


non_differentiable(as_it_is, is_or_holds, may_be_kept)
