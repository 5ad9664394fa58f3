"""What the specialised path knows of the items of lists.

Lists that may be one and the same share one `Items`, to which every call that puts something into
one of them contributes. A list that comes from outside holds what was found when the program was
made, as the program asks at its entry, until something may change it that is not followed.
Tests: tests/rules/test_list_types.py
"""

from __future__ import annotations

import bisect
import functools
import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from morula.core.extend import (
    IMMUTABLE_TYPE,
    NEVER,
    Call,
    Const,
    Contents,
    Known,
    answers,
    coarsened,
    contents,
    equal,
    follows_changes,
    join,
    known,
    known_value,
    lose,
    only_reads,
    part_of,
    possibilities,
    primitives,
    result_on_samples,
    rewrites,
    transfers,
)
from morula.rules.containers import is_native


@dataclass(frozen=True)
class Held:
    """The type of all items of a list that is an argument."""

    item: Any


class Shared:
    """What is known of containers that may be one and the same."""

    outside: bool  # does the caller hold one of them?

    def __init__(self, inference: Any) -> None:
        self.inference = inference
        self.some = False  # is it certain that none of them is empty?
        self.same: Any = None

    def root(self) -> Any:
        """The one that stands for all that are the same."""
        found = self
        while found.same is not None:
            found = found.same
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shared) and self.root() is other.root()

    def __hash__(self) -> int:
        return hash(type(self))

    def unite(self, other: Any) -> Any:
        """Containers of both may be the same."""
        a, b = self.root(), other.root()
        if a is not b:
            b.same = a
            a.inference.grown = True
            a.merge(b)
        return a

    def merge(self, other: Any) -> None:
        """Take over what is known of another one."""
        raise NotImplementedError

    def held(self) -> list[Any]:
        """What is known of all that they hold, one by one."""
        raise NotImplementedError


class Items(Shared):
    """What is known of the items of some lists."""

    def __init__(self, inference: Any, value: Any = NEVER, outside: bool = False) -> None:
        super().__init__(inference)
        self.value = value
        self.outside = outside  # does the caller hold one of the lists?
        if outside:
            inference.memory.setdefault(Items, []).append(self)

    def put(self, value: Any) -> None:
        """A list gets an item of which this is known."""
        this = self.root()
        if this.value is None:
            lose(value)
            return
        new = join(this.value, value)
        if not equal(new, this.value):
            this.value = new
            this.inference.grown = True

    def held(self) -> list[Any]:
        """What is known of the items, together."""
        value = self.root().value
        return [] if value is NEVER else [value]

    def merge(self, other: Any) -> None:
        """Take over what is known of the lists of another one."""
        self.outside |= other.outside
        self.some &= other.some
        self.put(other.value)


def is_type_alone(value: Any) -> bool:
    """Is nothing known of a value but its type?"""
    return type(value) is Known and value.detail is None


class ListContents(Contents):
    """Lists, known by the type of their items."""

    hands_on = True

    def seen(self, x: Any) -> Any:
        """The type of all items, also those of lists inside; None where they are not of one type."""
        types = set(map(type, x))
        if len(types) != 1:
            return None
        (t,) = types
        if t is list:
            inside = [self.seen(y) for y in x if y]
            return Held(Known(list, inside[0])) if inside and len(set(inside)) == 1 else None
        items = {coarsened(known_value(y, 1)) for y in x}
        return Held(*items) if len(items) == 1 else None

    def holds(self, x: Any, detail: Any) -> bool:
        """Are all items of this type?"""
        item = detail.item
        if not {item.type}.issuperset(map(type, x)):
            return False
        if item.type is list:
            return item.detail is None or all([self.holds(y, item.detail) for y in x])
        if item.type is tuple and item.detail is not None and all(map(is_type_alone, item.detail)):
            return set(map(len, x)) <= {len(item.detail)} and all(
                [{k.type}.issuperset(map(type, part)) for k, part in zip(item.detail, zip(*x))]  # noqa: B905
            )
        return item.detail is None or all([coarsened(known_value(y, 1)) == item for y in x])

    def begin(self, inference: Any, detail: Any) -> Any:
        """A list from outside holds what was seen."""
        if type(detail) is not Held:
            return detail
        item = detail.item
        if item.type is list and item.detail is not None:
            item = Known(list, self.begin(inference, item.detail))
        return Items(inference, item, outside=True)

    def kept(self, detail: Any) -> Any:
        """The type of the items, also of those of lists inside."""
        value = detail.root().value if type(detail) is Items else None
        if type(value) is not Known or value is NEVER:
            return None
        if value.type is list:
            inside = self.kept(value.detail)
            return None if inside is None else Held(Known(list, inside))
        return Held(Known(value.type)) if value.type in (float, int, str, np.float64) else None

    def join(self, a: Any, b: Any) -> Any:
        """The same may be known under one name: all that is put into one may be in the other."""
        if a is None or b is None:
            self.lose(a)
            self.lose(b)
            return None
        if type(a) is not Items or type(b) is not Items:
            return a if a == b else None
        return a.unite(b)

    def lose(self, detail: Any) -> None:
        """Nothing is known of the items any more."""
        if type(detail) is Items and detail.root().value is not None:
            this = detail.root()
            value, this.value = this.value, None
            this.inference.grown = True
            if value is not NEVER:
                lose(value)

    def changed(self, inference: Any) -> None:
        """Lists from outside may hold anything now."""
        for items in inference.memory.get(Items, ()):
            self.lose(items)

    def item(self, detail: Any) -> Any:
        """The type of the items."""
        return detail.root().value if type(detail) is Items else None

    def part(self, inference: Any, call: Any, detail: Any) -> Any:
        """A new list of items of the same type."""
        if type(detail) is not Items or detail.root().value is None:
            return None
        made = own_items(inference, call)
        if detail.root().value is not NEVER:
            made.put(detail.root().value)
        return Known(list, made.root())

    def at(self, detail: Any, key: Any) -> Any:
        """The type of the items, by number."""
        k = known(key)
        return self.item(detail) if k is not None and k.type is int else None

    def put(self, s: Any, call: Any, container: Any, key: Any, value: Any) -> Any:
        """An item is put into a list."""
        k = known(key)
        if k is None or k.type is not int:
            return None
        put(s, call, container, value)
        return Known(type(None))


contents[list] = ListContents()
only_reads(
    list,
    math.fsum,
    math.prod,
    sum,
    min,
    max,
    np.array,
    np.asarray,
    np.stack,
    np.concatenate,
    np.vstack,
    np.hstack,
    np.sum,
    np.mean,
    primitives.build_list,
    primitives.as_tuple,
    bisect.bisect_left,
    bisect.bisect_right,
    list.index,
    list.count,
)
follows_changes(
    primitives.list_append, list.append, list.pop, list.insert, list.reverse, operator.setitem,
    operator.mul, operator.add, operator.iadd, list.extend,
)  # fmt: skip


def items_of(value: Any) -> Items | None:
    """What is known of the items of a list."""
    k = known(value)
    return k.detail.root() if k is not None and k.type is list and type(k.detail) is Items else None


def own_items(s: Any, call: Any) -> Items:
    """The items of the lists that a call makes."""
    if call.out not in s.memory:
        s.memory[call.out] = Items(s)
        s.memory[call.out].some = call.primitive is primitives.build_list and bool(call.args)
    found: Items = s.memory[call.out]
    return found


def item(value: Any) -> Any:
    """What is kept in mind of a value that becomes an item: its type, of a function itself."""
    if not hasattr(value, "value") or callable(value.value):
        return value
    k = known(value)
    return k if k is not None and k.type is np.ndarray else coarsened(k)


@transfers(primitives.build_list)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    items = own_items(s, call)
    for a in args:
        items.put(item(a))
    return Known(list, items.root())


@transfers(primitives.list_append)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A list that is under construction nobody else holds yet."""
    items = items_of(args[0])
    if items is None:
        return None
    items.put(item(args[1]))
    return Known(type(None))


@transfers(list.append)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    put(s, call, args[0], args[1])
    return Known(type(None))


@transfers(list.insert)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    put(s, call, args[0], args[2])
    return Known(type(None))


@transfers(list.reverse)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A list holds what it held."""
    items = items_of(args[0])
    if items is None or items.outside:
        return None
    s.own_changes.add(call.out)
    return Known(type(None))


@transfers(primitives.as_tuple)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A tuple of the items of a list: who gets it cannot change the list, but what is in it."""
    items = items_of(args[0])
    if items is None:
        return None
    if items.value is not None and items.value is not NEVER:
        lose(items.value)
    return Known(tuple)


@transfers(list.index, list.count)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    return Known(int)


@transfers(list.pop)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """An item, of a list that is followed."""
    items = items_of(args[0])
    if items is None or items.outside or len(args) > 2:
        s.own_changes.discard(call.out)
        return None
    s.own_changes.add(call.out)
    items.root().some = False
    return items.value


@transfers(math.fsum)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """The sum of a list of numbers, as a float."""
    items = items_of(args[0])
    found = None if items is None or len(args) != 1 else items.value
    if found is None:
        return None
    return Known(float) if found is NEVER or {*NUMBERS}.issuperset(possibilities(found)) else None


@transfers(sum, math.prod)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """The sum or the product of a list of numbers, which may be empty."""
    k = known(args[0])
    if k is not None and k.type is tuple and not call.keywords:
        numbers = k.detail and None not in k.detail and None not in args
        return result_on_samples(call.primitive, args) if numbers else None
    items = items_of(args[0]) if not call.keywords else None
    found = None if items is None else items.value
    start = Known(int) if len(args) == 1 else known(args[1])
    if found is NEVER:
        return start
    if found is None or start not in NUMBERS or not {*NUMBERS}.issuperset(possibilities(found)):
        return None
    if found in NUMBERS and items is not None and items.root().some and len(args) == 1:
        return found
    return join(start, found)


@transfers(list, sorted)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A list of the items of another sequence."""
    found = items_in(args[0]) if len(args) == 1 and not call.keywords else None
    if found is None or (call.primitive is sorted and not {*NUMBERS}.issuperset(found)):
        return None
    made = own_items(s, call)
    for value in found:
        made.put(item(value))
    return Known(list, made.root())


def items_in(xs: Any) -> tuple[Any, ...] | None:
    """What is known of the items of a list, a tuple or a range; nothing of those of an empty one."""
    k, items = known(xs), items_of(xs)
    if items is not None:
        return () if items.value is NEVER else None if items.value is None else (items.value,)
    if k is not None and k.type is range:
        return (Known(int),)
    known_items = None if k is None or k.type is not tuple else k.detail
    return None if known_items is None or None in known_items else known_items


def components(key: Any) -> list[Any]:
    """What is known of the parts of an index or a shape, which may be a tuple or a single one."""
    if type(key) is Const and type(key.value) is tuple:
        return [Const(part) for part in key.value]
    if type(key) is Known and key.type is tuple:
        return list(key.detail or (None,))
    return [key]


@transfers(operator.mul)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A list n times over holds what the list holds."""
    for xs, n in (args, args[::-1]):
        items, times = items_of(xs), known(n)
        if items is not None and times is not None and times.type is int:
            made = own_items(s, call)
            if items.value is not NEVER:
                made.put(items.value)
            return Known(list, made.root())
    return None if repeats_tuple(args) else result_on_samples(operator.mul, args)


def repeats_tuple(args: list[Any]) -> bool:
    """Is it a tuple, as often as a number says that is not known? So its length is not known."""
    return any(
        type(n) is not Const and getattr(known(xs), "type", None) is tuple
        for xs, n in (args, args[::-1])
    )


@transfers(operator.add)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A list behind a list holds what both hold."""
    both = [items_of(x) for x in args]
    if None in both:
        return result_on_samples(operator.add, args)
    made = own_items(s, call)
    for items in both:
        if items is not None and items.value is not NEVER:
            made.put(items.value)
    return Known(list, made.root())


@transfers(operator.iadd)
def extended_in_place(s: Any, call: Any, args: list[Any]) -> Any:
    """A list that is extended holds what the other holds."""
    items, more = map(items_of, args)
    if items is None or items.outside or more is None:
        s.own_changes.discard(call.out)
        return result_on_samples(operator.iadd, args) if items is None else None
    if more.value is not NEVER:
        items.put(more.value)
    s.own_changes.add(call.out)
    return Known(list, items.root())


@transfers(list.extend)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    items, more = map(items_of, args)
    if items is None or items.outside or more is None:
        s.own_changes.discard(call.out)
        return None
    if more.value is not NEVER:
        items.put(more.value)
    s.own_changes.add(call.out)
    return Known(type(None))


@transfers(round)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A whole number, or one of the same type with so many digits."""
    x, *digits = [known(a) for a in args]
    if call.keywords or x not in NUMBERS or (digits and digits[0] != Known(int)):
        return None
    return x if digits else Known(int)


@transfers(bisect.bisect_left, bisect.bisect_right)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A place in a list."""
    return Known(int)


@transfers(is_native)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """Nobody puts methods into the classes that are Python's own."""
    k = known(args[0])
    return Const(True) if k is not None and k.type.__flags__ & IMMUTABLE_TYPE else Known(bool)


answers(is_native)
part_of[str] = lambda detail, key: Known(str)
NUMBERS = (Known(float), Known(int), Known(np.float64))


@transfers(min, max)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """The least or the greatest of some numbers, or of a list of them."""
    if call.keywords or not args:
        return None
    if len(args) > 1:
        if None in args:
            return None
        kinds = [coarsened(k) for a in args for k in possibilities(a)]
        return functools.reduce(join, kinds) if all(k in NUMBERS for k in kinds) else None
    items = items_of(args[0])
    found = None if items is None else items.value
    return found if found is NEVER or found in NUMBERS else None


@transfers(np.array, np.asarray, np.sum, np.mean)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """Of a list of floats, which may be empty; of other values what samples say."""
    items = items_of(args[0]) if len(args) == 1 and not call.keywords else None
    if items is None:
        return result_on_samples(call.primitive, args, call.keywords)
    if maker_of(s, call, items.value) is not None:
        return rows_of(np.stack, items.value)
    if not are_floats(items.value):
        return items.value if items.value is NEVER else None
    if call.primitive in (np.sum, np.mean):
        return Known(np.float64)
    return coarsened(known_value(np.zeros(1)))


@transfers(np.stack, np.concatenate, np.vstack, np.hstack)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """Of a list of arrays, of which there must be one."""
    items = items_of(args[0])
    if items is None:
        return result_on_samples(call.primitive, args, call.keywords)
    if items.value is NEVER:
        return NEVER
    if are_floats(items.value) and call.primitive is np.stack:
        return coarsened(known_value(np.zeros(1)))
    if not is_array(items.value) or not all(map(is_constant, args[1:])):
        return None
    return rows_of(call.primitive, items.value, *args[1:])


def array_of_rows(rows: Any) -> Any:
    """`np.array` of a list of lists or tuples, of which it is known that there is one."""
    return np.array(rows)


only_reads(array_of_rows)


@transfers(array_of_rows)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A matrix of numbers."""
    items = items_of(args[0])
    return None if items is None else rows_of(np.stack, items.value)


def rows_of(join: Any, row: Any, *options: Any) -> Any:
    """What is known of such arrays, or of such lists or tuples of numbers, joined."""
    items = items_of(row)
    if items is not None:
        row = Known(tuple, (Known(float),))
    return coarsened(result_on_samples(join, [Known(tuple, (row, row)), *options]))


def maker_of(s: Any, call: Any, row: Any) -> Any:
    """What `np.array` of a list of such rows does, if a program may assume that it has any."""
    makes = call.primitive in (np.array, np.asarray) and len(call.args) == 1 and not call.keywords
    examples = getattr(s, "examples", None)
    if not (makes and examples and examples.given):
        return None
    if is_array(row) and row.detail[1] > 0:
        return np.stack
    return array_of_rows if is_row(row) else None


def are_floats(value: Any) -> bool:
    """Is each of the items known to be a float, of Python or of NumPy?"""
    if value is NEVER or value is None:
        return False
    return {*possibilities(value)} <= {Known(float), Known(np.float64)}


def is_row(row: Any) -> bool:
    """Is it known to be a list of floats, or a tuple of numbers?"""
    items, k = items_of(row), known(row)
    if items is not None:
        return are_floats(items.value)
    return k is not None and k.type is tuple and bool(k.detail) and {*k.detail} <= {*NUMBERS}


def is_array(value: Any) -> bool:
    """Is it known to be an array?"""
    return type(value) is Known and value.type is np.ndarray and value.detail is not None


def is_constant(value: Any) -> bool:
    return type(value) is Const


@rewrites
def stack_rows(s: Any) -> bool:
    """`np.array(xs)` of a list of rows stacks them; the program asks whether there is one."""
    for block in s.ir.blocks:
        for i, call in enumerate(block.calls):
            items = items_of(s.value(call.args[0])) if call.args else None
            if items is None:
                continue
            maker = maker_of(s, call, items.value)
            is_display = maker is array_of_rows and items.root().some
            if maker is not None and not is_display:
                some = s.ir.var()
                test = Call(some, Const(operator.truth), call.args, (), call.position)
                block.calls.insert(i, test)
                call.fn = Const(maker)
                s.guard_test(block, i + 1, some)
                return True
    return False


def put(s: Any, call: Any, xs: Any, value: Any) -> None:
    """An item is put into a list; where it is not known which, into all from outside."""
    items = items_of(xs)
    if items is not None:
        items.put(item(value))
    else:
        lose(value)
    if items is None or items.outside:
        contents[list].changed(s)
        s.own_changes.discard(call.out)
    else:
        s.own_changes.add(call.out)


@transfers(operator.setitem)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    container, key, value = args
    k = known(container)
    kind = contents[list] if k is None else contents.get(k.type)
    return None if kind is None else kind.put(s, call, container, key, value)
