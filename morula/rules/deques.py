"""Double-ended queues: `collections.deque`.

The adjoint of a queue is a list, as that of a list is; what a full queue drops at its other end has
no cotangent from then on.
Tests: tests/rules/test_deques.py
"""

import operator
from collections import deque
from typing import Any

from morula.core.extend import (
    ZERO,
    NoTangent,
    accumulate,
    adjoint_object,
    adjoint_of,
    call,
    non_differentiable,
    rrule,
)
from morula.rules.class_copies import queue_repeated, queue_sum, repeated_in_place
from morula.rules.containers import (
    by_class,
    by_operator,
    cut,
    drain,
    drop_from,
    give_at,
    is_native,
    is_within,
    lengthen,
    place_of,
    put_back,
    take_at,
)
from morula.rules.filling import extend_queue, extend_queue_left, runs_code
from morula.rules.iteration import ListItem, originates
from morula.rules.numbers import Anything

adjoint_object.register(deque, lambda x: [])
_iterator = type(iter(deque()))
_reversed = type(reversed(deque()))


@originates(_iterator)
def _(iterator: Any, item: Any, skip: int) -> Any:
    _, (xs, i) = iterator.__reduce__()
    return ListItem(xs, i - 1 - skip)


@originates(_reversed)
def _(iterator: Any, item: Any, skip: int) -> Any:
    _, (xs, i) = iterator.__reduce__()
    return ListItem(xs, len(xs) - i + skip)


def is_full(q: deque) -> bool:
    """Does a queue drop an item for each that comes?"""
    return q.maxlen is not None and len(q) == q.maxlen


non_differentiable(is_full, deque.count, deque.index, deque.__len__)


@rrule(deque, by_identity=True)
def _(iterable: Anything = (), maxlen: Anything = None):
    values, back = drain(iterable)
    q = deque(values, maxlen)
    n, dropped = len(q), len(values) - len(q)

    def deque_pullback(ȳ):
        return back([ZERO] * dropped + drop_from(adjoint_of(q), 0, n)), NoTangent()

    return q, deque_pullback


@rrule(deque.__init__, by_identity=True)
def _(q: deque, iterable: Anything = (), maxlen: Anything = None):
    deque.__init__(q, (), maxlen)
    _, back = extended(q, deque.extend, extend_queue, iterable)

    def init_pullback(ȳ):
        _, more_bar = back(ȳ)
        return NoTangent(), more_bar, NoTangent()

    return None, init_pullback


@rrule(deque.append, by_identity=True)
def _(q: deque, value: Anything):
    n, full = len(q), is_full(q)
    deque.append(q, value)

    def append_pullback(ȳ):
        bars = adjoint_of(q)
        if not full:
            return NoTangent(), drop_from(bars, n, 1)[0]
        c = take_at(bars, n - 1) if n else ZERO
        del bars[n - 1 if n else 0 :]
        bars.insert(0, ZERO)
        return NoTangent(), c

    return None, append_pullback


@rrule(deque.appendleft, by_identity=True)
def _(q: deque, value: Anything):
    n, full = len(q), is_full(q)
    deque.appendleft(q, value)

    def appendleft_pullback(ȳ):
        if full and not n:
            return NoTangent(), ZERO
        bars = adjoint_of(q)
        c = cut(bars, 0, 1)[0]
        if full:
            lengthen(bars, n)
        return NoTangent(), c

    return None, appendleft_pullback


@rrule(deque.pop, by_identity=True)
def _(q: deque):
    n = len(q)
    y = deque.pop(q)

    def pop_pullback(ȳ):
        put_back(q, n - 1, ȳ)
        return (NoTangent(),)

    return y, pop_pullback


@rrule(deque.popleft, by_identity=True)
def _(q: deque):
    y = deque.popleft(q)

    def popleft_pullback(ȳ):
        put_back(q, 0, ȳ)
        return (NoTangent(),)

    return y, popleft_pullback


def moved(q: deque, change: Any, items: Any) -> Any:
    """What `change(q, values)` does, seen by the identity of what it holds before and after."""
    values, back = drain(items)
    boxes = [Box(i) for i in range(len(q) + len(values))]
    n = len(q)
    like = deque(boxes[:n], q.maxlen)
    change(like, boxes[n:])
    change(q, values)
    places = [box.place for box in like]

    def moved_pullback(ȳ):
        bars = adjoint_of(q)
        found = drop_from(bars, 0, len(places))
        whole = [ZERO] * len(boxes)
        for place, c in zip(places, found, strict=True):
            whole[place] = accumulate(whole[place], c)
        bars[:] = whole[:n]
        return NoTangent(), back(whole[n:])

    return None, moved_pullback


class Box:
    """Stands for an item, by the place that it had."""

    def __init__(self, place: int) -> None:
        self.place = place


@rrule(deque.extend, by_identity=True)
def _(q: deque, more: Anything):
    return extended(q, deque.extend, extend_queue, more)


def extended(q: deque[Any], at_once: Any, in_turn: Any, more: Any) -> Any:
    """The rule of putting all items into a queue."""
    if not runs_code(more):
        return moved(q, at_once, more)
    _, back = call(in_turn, q, more)
    return None, lambda ȳ: back(ZERO)[1:]


@rrule(deque.__iadd__, by_identity=True)
def queue_iadd(q: deque, more: Anything):
    _, back = extended(q, deque.extend, extend_queue, more)
    return q, back


@rrule(operator.iadd, by_identity=True)
def _(q: deque, more: Anything):
    native = is_native(q, "__iadd__")
    return queue_iadd(q, more) if native else by_operator(operator.iadd, q, more)


@rrule(deque.__imul__, by_identity=True)
def queue_imul(q: deque, n: Anything):
    if not is_native(q, "__iter__"):
        y, back = call(repeated_in_place, q, n)
        return y, lambda ȳ: back(ȳ)[1:]
    _, back = moved(q, lambda queue, _: deque.__imul__(queue, n), ())
    return q, lambda ȳ: (back(ȳ)[0], NoTangent())


@rrule(operator.imul, by_identity=True)
def _(q: deque, n: Anything):
    native = is_native(q, "__imul__")
    return queue_imul(q, n) if native else by_operator(operator.imul, q, n)


@rrule(operator.mul, by_identity=True)
def _(q: deque, n: int):
    if not is_native(q, "__mul__"):
        return by_operator(operator.mul, q, n)
    y, back = call(queue_repeated, q, n)
    return y, lambda ȳ: back(ȳ)[1:]


@rrule(operator.mul, by_identity=True)
def _(n: int, q: deque):
    if not is_native(q, "__rmul__"):
        return by_operator(operator.mul, n, q)
    y, back = call(queue_repeated, q, n)
    return y, lambda ȳ: back(ȳ)[:0:-1]


@rrule(deque.remove, by_identity=True)
def _(q: deque, value: Anything):
    k, asked = place_of(deque, q, value)
    deque.__delitem__(q, k)

    def remove_pullback(ȳ):
        put_back(q, k, ZERO)
        return NoTangent(), asked()

    return None, remove_pullback


@rrule(deque.extendleft, by_identity=True)
def _(q: deque, more: Anything):
    return extended(q, deque.extendleft, extend_queue_left, more)


@rrule(deque.rotate, by_identity=True)
def _(q: deque, n: int = 1):
    return moved(q, lambda queue, _: deque.rotate(queue, n), ())


@rrule(deque.reverse, by_identity=True)
def _(q: deque):
    _, back = moved(q, lambda queue, _: deque.reverse(queue), ())
    return None, lambda ȳ: back(ȳ)[:1]


@rrule(deque.clear, by_identity=True)
def _(q: deque):
    deque.clear(q)

    def clear_pullback(ȳ):
        del adjoint_of(q)[:]
        return (NoTangent(),)

    return None, clear_pullback


@rrule(deque.insert, by_identity=True)
def _(q: deque, i: int, value: Anything):
    k = slice(i, None).indices(len(q))[0]
    deque.insert(q, i, value)

    def insert_pullback(ȳ):
        return NoTangent(), NoTangent(), cut(adjoint_of(q), k, k + 1)[0]

    return None, insert_pullback


@rrule(operator.add, by_identity=True)
def _(a: deque, b: deque):
    if not is_native(a, "__add__") or not is_native(b, "__radd__"):
        return by_operator(operator.add, a, b)
    y, back = call(queue_sum, a, b)
    return y, lambda ȳ: back(ȳ)[1:]


def queue_getitem(q: deque, i: Anything):
    y = deque.__getitem__(q, i)
    k = range(len(q))[i]

    def getitem_pullback(ȳ):
        give_at(adjoint_of(q), k, ȳ)
        return NoTangent(), NoTangent()

    return y, getitem_pullback


def queue_setitem(q: deque, i: Anything, value: Anything):
    k = range(len(q))[i] if is_within(i, len(q)) else 0
    deque.__setitem__(q, i, value)

    def setitem_pullback(ȳ):
        return NoTangent(), NoTangent(), take_at(adjoint_of(q), k)

    return None, setitem_pullback


def queue_delitem(q: deque, i: Anything):
    k = range(len(q))[i] if is_within(i, len(q)) else 0
    deque.__delitem__(q, i)

    def delitem_pullback(ȳ):
        put_back(q, k, ZERO)
        return NoTangent(), NoTangent()

    return None, delitem_pullback


_ITEMS = {"getitem": queue_getitem, "setitem": queue_setitem, "delitem": queue_delitem}
for _name, _rule in _ITEMS.items():
    rrule(getattr(deque, f"__{_name}__"), by_identity=True)(_rule)


@rrule(operator.getitem, by_identity=True)
def _(q: deque, i: Anything):
    return queue_getitem(q, i) if is_native(q, "__getitem__") else by_class("__getitem__", q, i)


@rrule(operator.setitem, by_identity=True)
def _(q: deque, i: Anything, value: Anything):
    native = is_native(q, "__setitem__")
    return queue_setitem(q, i, value) if native else by_class("__setitem__", q, i, value)


@rrule(operator.delitem, by_identity=True)
def _(q: deque, i: Anything):
    return queue_delitem(q, i) if is_native(q, "__delitem__") else by_class("__delitem__", q, i)


del _name, _rule
