"""Rules of x.flat, of np.nditer, and of setting attributes: other ways to the same memory.

The cotangent of `x.flat` is that of x. An item of np.nditer is a view of the array's memory.
Tests: tests/rules/arrays/test_inplace.py
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    NotSpecialised,
    adjoint_object,
    call,
    collector,
    frule,
    materialise,
    memory,
    non_differentiable,
    on_entry,
    project_to,
    projector,
    rewrites,
    rrule,
)
from morula.rules.arrays.inplace import at_places, follow_item, refuse
from morula.rules.arrays.memory import give_at, owner_of
from morula.rules.arrays.types import Anything
from morula.rules.builtins import ATTRIBUTES
from morula.rules.calls import compiled, serves


def flat(x: np.ndarray):
    """The rule of reading `x.flat`."""

    def flat_pullback(ȳ):
        return (ȳ,)

    return x.flat, flat_pullback


@projector.register(np.flatiter)
def _(x: np.flatiter) -> Any:
    return project_to(x.base)


def _constant(name: str) -> Any:
    return lambda x: (getattr(x, name), lambda ȳ: (ZERO,))


for _name in ("coords", "index"):
    ATTRIBUTES[np.flatiter, _name] = _constant(_name)
for _name in (
    "dtypes", "finished", "has_delayed_bufalloc", "has_index", "has_multi_index", "index", "iterindex",
    "iterationneedsapi", "iterrange", "itersize", "multi_index", "ndim", "nop", "shape",
):  # fmt: skip
    ATTRIBUTES[np.nditer, _name] = _constant(_name)


def over_arrays(op: Any, *args: Any, **kwargs: Any) -> Any:
    """np.nditer over arrays in the place of numbers and lists, which have no memory of their own."""
    if type(op) in (list, tuple):
        return np.nditer([x if is_operand(x) else np.asarray(x) for x in op], *args, **kwargs)
    return np.nditer(np.asarray(op), *args, **kwargs)


def is_operand(x: Any) -> bool:
    """Is it an array, or nothing, in whose place one is made?"""
    return x is None or isinstance(x, np.ndarray)


def are_operands(op: Any) -> bool:
    """The same of all operands of an iterator."""
    return all(map(is_operand, op)) if type(op) in (list, tuple) else is_operand(op)


non_differentiable(is_operand, are_operands)


@serves(np.nditer)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not args or are_operands(args[0]):
        return compiled(fn, args, kwargs)
    return call(over_arrays, *args, **kwargs)


def _views(name: str) -> Any:
    def rule(it):
        y = getattr(it, name)
        for x in y if type(y) is tuple else (y,):
            follow_item(x)
        return y, lambda ȳ: (ZERO,)

    return rule


for _name in ("operands", "value"):
    ATTRIBUTES[np.nditer, _name] = _views(_name)
for _type in (np.flatiter, np.nditer):
    adjoint_object.register(_type, lambda x: None)
    collector.register(_type, lambda y, part: None)
    on_entry.register(_type, lambda x, known: x)


materialise.register(np.nditer, lambda x, x̄, of: None)
materialise.register(np.flatiter, lambda x, x̄, of: materialise(x.base, x̄, of))


def places_of(x: np.ndarray, index: Any) -> Any:
    """The entries that an index of `x.flat` means, counted."""
    return np.arange(x.size)[index if not isinstance(index, tuple) else index[0]]


non_differentiable(places_of)


del _type


@rrule(operator.getitem)
@rrule(np.flatiter.__getitem__)
def _(entries: np.flatiter, index: Anything):
    x = entries.base
    places = places_of(x, index)
    y, back = call(operator.getitem, x, np.unravel_index(places, x.shape))

    def getitem_pullback(ȳ):
        return back(ȳ)[1], NONE

    return y, getitem_pullback


@frule(operator.getitem)
@frule(np.flatiter.__getitem__)
def _(entries: np.flatiter, index: Anything):
    def getitem_pushforward(ẋ, i̇):
        return np.ravel(ẋ)[index]

    return entries[index], getitem_pushforward


@rrule(operator.setitem, by_identity=True)
@rrule(np.flatiter.__setitem__, by_identity=True)
def _(entries: np.flatiter, index: Anything, value: Anything):
    x = entries.base
    places = np.ravel(places_of(x, index))
    if not len(places) or not np.size(value):
        operator.setitem(entries, index, value)
        return None, lambda ȳ: (ZERO, NONE, ZERO)
    back = at_places(x, places, value)
    return None, lambda ȳ: (ZERO, NONE, back(ZERO))


def _as_array(primal: Any) -> None:
    @rrule(primal)
    def _(entries: np.flatiter, dtype=None):
        y = primal(entries) if dtype is None else primal(entries, dtype)
        shape = entries.base.shape
        return y, lambda ȳ: (np.reshape(ȳ, shape), NONE)


for _primal in (np.array, np.asarray, np.asanyarray, np.flatiter.copy, np.flatiter.__array__):
    _as_array(_primal)
del _primal


@rrule(operator.getitem)
def _(it: np.nditer, index: Anything):
    y: Any = it[index]
    for x in y if isinstance(y, tuple) else (y,):
        follow_item(x)
    return y, lambda ȳ: (NONE, NONE)


@rrule(operator.setitem, by_identity=True)
def _(it: np.nditer, index: Anything, value: Anything):
    places: Any = it[index]
    if isinstance(places, tuple):
        _, back = call(into_places, places, value)
        return None, lambda ȳ: (NONE, NONE, back(ȳ)[2])
    follow_item(places)
    _, back = call(operator.setitem, places, Ellipsis, value)
    return None, lambda ȳ: (NONE, NONE, back(ȳ)[3])


def into_places(places, values):
    """What is written to the current items of several operands."""
    for place, value in zip(places, values, strict=True):
        place[...] = value


@rrule(np.nditer.close)
@rrule(np.nditer.__exit__)
def _(it: np.nditer, *exception: Anything):
    """An iterator without buffers, which are refused, has nothing to write back: it stays open, for
    what its items are parts of is asked again in the reverse pass.
    """
    return None, lambda ȳ: (NONE,) * (1 + len(exception))


def give_place(x: np.ndarray, i: int, c: Any) -> None:
    """Add to the cotangent of the i-th entry of an array, counted, beside its memory."""
    memory.write_to(owner_of(x))
    give_at(x, np.unravel_index(i, x.shape), c)


def set_attribute(x: np.ndarray, name: str, value: Any) -> Any:
    """`x.name = value` of an array, and its pullback: -> the cotangent of the value."""
    if name == "flat":
        return at_places(x, np.arange(x.size), value)
    if name == "real" or (name == "imag" and np.iscomplexobj(x)):
        _, back = call(operator.setitem, getattr(x, name), Ellipsis, value)
        return lambda ȳ: back(ZERO)[3]
    if name != "shape":
        raise refuse(f"x.{name} = v of an array")
    return reshaped(x, lambda: setattr(x, "shape", value))


def reshaped(x: np.ndarray, reshape: Callable[[], Any]) -> Any:
    """Let an array have another shape; gives the pullback."""
    old = x.shape
    reshape()
    memory.write_to(owner_of(x))

    def reshape_back(ȳ: Any) -> Any:
        now, key = x.shape, (id(x), "shape")
        if not memory.is_put_back(key):

            def make_good() -> None:
                x.shape = now

            memory.put_back(key, make_good)
        x.shape = old
        return NONE

    return reshape_back


@rrule(np.ndarray.resize, by_identity=True)
def _(x: np.ndarray, *shape: Anything, refcheck=True):
    check_size(x, shape)
    back = reshaped(x, lambda: x.resize(*shape, refcheck=refcheck))
    return None, lambda ȳ: (ZERO, *[back(ȳ)] * len(shape), NONE)


def check_size(x: np.ndarray, shape: Any) -> None:
    """An error if an array would get other memory than it has."""
    wanted = shape[0] if len(shape) == 1 else shape
    if wanted is not None and math.prod(np.atleast_1d(wanted).tolist()) != x.size:
        raise refuse("x.resize(...) to another number of entries")
    if not x.flags.c_contiguous:
        raise refuse("x.resize(...) of a part of an array")


non_differentiable(check_size)


@rewrites
def _(s: Any) -> bool:
    """What goes by `x.flat`, also inside of an `np.ndenumerate`, is followed on the general path."""
    if any(
        c.primitive is np.ndenumerate
        or (c.primitive is getattr and getattr(c.args[1], "value", None) == "flat")
        for c in s.ir.calls()
    ):
        raise NotSpecialised("x.flat")
    return False
