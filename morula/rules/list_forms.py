"""What compiled programs spell out of lists: sorting, choosing by a key, joining, extending, heaps.

An order is a list of places, which has no derivative; the items are then read by number. So what is
left are readings and writings of single items, which have shadows (shadows.py).
Tests: tests/rules/test_list_forms.py
"""

from __future__ import annotations

import bisect
import heapq
import operator
from typing import Any

from morula.core.extend import (
    Call,
    Const,
    Known,
    NotSpecialised,
    effects,
    generators,
    known,
    may_hold,
    non_differentiable,
    only_reads,
    possibilities,
    prepares,
    spells,
    transfers,
)
from morula.rules.lazy import listed
from morula.rules.list_types import Items, is_array, items_of, own_items

# -- what is left of them --------------------------------------------------------------------------


def order_of(keys: list[Any], reverse: bool) -> list[int]:
    """The places of a list in the order of what it holds."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


def place_of_greatest(keys: list[Any]) -> int:
    """The place that `max` chooses."""
    greatest = max(keys)
    return next(i for i, key in enumerate(keys) if key is greatest)


def place_of_least(keys: list[Any]) -> int:
    """The place that `min` chooses."""
    least = min(keys)
    return next(i for i, key in enumerate(keys) if key is least)


ASKING = (order_of, place_of_greatest, place_of_least)
non_differentiable(*ASKING)
only_reads(*ASKING)
effects(*ASKING)  # they may raise exceptions


@transfers(order_of)
def _(s: Any, call: Call, args: Any) -> Any:
    made = own_items(s, call)
    made.put(Known(int))
    return Known(list, made.root())


@transfers(place_of_greatest, place_of_least)
def _(s: Any, call: Call, args: Any) -> Any:
    return Known(int)


@prepares
def _(adjoint: Any) -> None:
    """What is compared must not say itself what is less: that would be code with effects."""
    s = adjoint.specialiser
    for call in s.ir.calls():
        if call.primitive in ASKING and not is_compared_plainly(items_of(s.value(call.args[0]))):
            raise NotSpecialised("an order of objects")


def is_compared_plainly(items: Items | None) -> bool:
    """Are such items numbers, texts, or tuples of these?"""
    return items is not None and all(map(is_plain, items.held()))


def is_plain(value: Any) -> bool:
    """The same of one item."""
    members = [value] if type(value) is Known else () if value is None else possibilities(value)
    return bool(members) and all(map(is_of_plain_type, members))


def is_of_plain_type(k: Known) -> bool:
    """The same of an item of which this is known."""
    if k.type is tuple:
        return k.detail is not None and all(map(is_plain, k.detail))
    return k.type.__module__ in ("builtins", "numpy") and not may_hold(k)


# -- what is spelled out ---------------------------------------------------------------------------

# Functions, for what reads a method may keep it: of such a list nothing would be known.
append, insert, pop = list.append, list.insert, list.pop


def ordered(xs: Any, reverse: Any = False) -> Any:
    """`sorted(xs, reverse=reverse)`."""
    return [xs[i] for i in order_of(xs, reverse)]


def ordered_by(xs: Any, key: Any, reverse: Any = False) -> Any:
    """`sorted(xs, key=key, reverse=reverse)`."""
    return [xs[i] for i in order_of([key(x) for x in xs], reverse)]


def put_in_order(xs: Any, reverse: Any = False) -> None:
    """`xs.sort(reverse=reverse)`."""
    ys = [xs[i] for i in order_of(xs, reverse)]
    for i in range(len(ys)):
        xs[i] = ys[i]


def put_in_order_by(xs: Any, key: Any, reverse: Any = False) -> None:
    """`xs.sort(key=key, reverse=reverse)`."""
    ys = [xs[i] for i in order_of([key(x) for x in xs], reverse)]
    for i in range(len(ys)):
        xs[i] = ys[i]


def with_keys(xs: Any, key: Any) -> Any:
    """The items and their keys: what the key of one changes is there when the next is asked for."""
    items: list[Any] = []
    keys: list[Any] = []
    for x in xs:
        append(items, x)
        append(keys, key(x))
    return items, keys


def greatest_by(xs: Any, key: Any) -> Any:
    """`max(xs, key=key)`."""
    items, keys = with_keys(xs, key)
    return items[place_of_greatest(keys)]


def least_by(xs: Any, key: Any) -> Any:
    """`min(xs, key=key)`."""
    items, keys = with_keys(xs, key)
    return items[place_of_least(keys)]


def joined(xs: Any, ys: Any) -> Any:
    """`xs + ys`."""
    new = xs[:]
    for y in ys:
        append(new, y)
    return new


def extend(xs: Any, ys: Any) -> None:
    """`xs.extend(ys)` of a list, which may be the same."""
    for y in ys[:]:
        append(xs, y)


def extended(xs: Any, ys: Any) -> Any:
    """`xs += ys`."""
    for y in ys[:]:
        append(xs, y)
    return xs


def insert_in_order(xs: Any, x: Any) -> None:
    """`bisect.insort(xs, x)`."""
    insert(xs, bisect.bisect_right(xs, x), x)


def insert_in_order_left(xs: Any, x: Any) -> None:
    """`bisect.insort_left(xs, x)`."""
    insert(xs, bisect.bisect_left(xs, x), x)


def push(heap: Any, item: Any) -> None:
    """`heapq.heappush(heap, item)`: those above that are greater go down one by one."""
    append(heap, item)
    rise(heap, 0, len(heap) - 1)


def rise(heap: Any, top: Any, place: Any) -> None:
    """Bring the item at a place up, not beyond the top."""
    item = heap[place]
    while place > top:
        above = (place - 1) // 2
        other = heap[above]
        if not item < other:
            break
        heap[place] = other
        place = above
    heap[place] = item


def pop_least(heap: Any) -> Any:
    """`heapq.heappop(heap)`: the last item takes the place of the first, and sinks."""
    last = pop(heap)
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    sink(heap)
    return first


def sink(heap: Any) -> None:
    """Bring the first item down to the end of a heap along the lesser ones, and up from there."""
    n, place = len(heap), 0
    item = heap[0]
    below = 1
    while below < n:
        if below + 1 < n and not heap[below] < heap[below + 1]:
            below += 1
        heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    heap[place] = item
    rise(heap, 0, place)


KEYED = {
    (id(sorted), 1, ()): ordered,
    (id(sorted), 1, ("reverse",)): ordered,
    (id(sorted), 1, ("key",)): ordered_by,
    (id(sorted), 1, ("key", "reverse")): ordered_by,
    (id(sorted), 1, ("reverse", "key")): ordered_by,
    (id(list.sort), 1, ()): put_in_order,
    (id(list.sort), 1, ("reverse",)): put_in_order,
    (id(list.sort), 1, ("key",)): put_in_order_by,
    (id(list.sort), 1, ("key", "reverse")): put_in_order_by,
    (id(list.sort), 1, ("reverse", "key")): put_in_order_by,
    (id(max), 1, ("key",)): greatest_by,
    (id(min), 1, ("key",)): least_by,
    (id(bisect.insort), 2, ()): insert_in_order,
    (id(bisect.insort_left), 2, ()): insert_in_order_left,
    (id(heapq.heappush), 2, ()): push,
    (id(heapq.heappop), 1, ()): pop_least,
}
OF_TWO_LISTS = {
    id(operator.add): joined,
    id(operator.iadd): extended,
    id(list.extend): extend,
}
CHOSEN_BY = (greatest_by, least_by)
OF_ANY = (ordered, ordered_by, *CHOSEN_BY)  # they go through it once, whatever it is
DICTS = (dict, *map(type, ({}.keys(), {}.values(), {}.items())))


@spells
def spell_out_lists(s: Any) -> bool:
    """Put Python functions in the place of what is called of lists; was there anything?"""
    changed = False
    for block in s.ir.blocks:
        for call in list(block.calls):
            spelled = spelling(s, call)
            if spelled is not None:
                call.fn, changed = Const(spelled), True
                if spelled not in CHOSEN_BY and is_gone_through(known(s.value(call.args[0]))):
                    xs, *others = call.args
                    items = Call(s.ir.var(), Const(listed), (xs,), (), call.position)
                    block.calls.insert(block.calls.index(call), items)
                    call.args = (items.out, *others)
    return changed


def spelling(s: Any, call: Call) -> Any:
    """The function in the place of what is called."""
    n = len(call.args) - len(call.keywords)
    two = OF_TWO_LISTS.get(id(call.primitive))
    if two is not None and n == 2 and not call.keywords:
        lists = all(items_of(s.value(x)) is not None for x in call.args)
        return two if lists and (two is joined or is_own(s, call.args[0])) else None
    spelled = KEYED.get((id(call.primitive), n, call.keywords))
    if spelled is None:
        return None
    if spelled not in OF_ANY:
        return spelled if is_own(s, call.args[0]) else None
    k = known(s.value(call.args[0]))
    if items_of(k) is not None or is_gone_through(k) or (k is not None and k.type is range):
        return spelled
    return spelled if spelled in CHOSEN_BY and is_run_through(s, call.args[0], k) else None


def is_run_through(s: Any, xs: Any, k: Any) -> bool:
    """May a loop of the program run through it, be it a dict, a view of one or an iterator?"""
    if k is not None:
        return k.type in DICTS
    made = next((c for c in s.ir.calls() if c.out is xs), None)
    return made is not None and made.primitive in (generators.make_generator, map, filter)


def is_gone_through(k: Any) -> bool:
    """Is it known what the items are of something that is no list?"""
    if is_array(k):
        return bool(k.detail[1] == 1)
    return k is not None and k.type in (tuple, zip, enumerate) and k.detail is not None


def is_own(s: Any, xs: Any) -> bool:
    """Is it a list that the program has made?"""
    items = items_of(s.value(xs))
    return items is not None and not items.outside
