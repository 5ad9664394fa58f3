"""A loop over items that are known one by one becomes its body, once for each of them.

    for t in "AB": …      for f in (sin, cos): …      tuple(a + b for a, b in zip(u, v))

Each copy sees one item: keys and functions are constants then, objects are variables of the program,
and a list that such a loop has filled is a display. A display that nobody changes counts as the tuple
of its items.
Tests: tests/core/test_unroll.py
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from morula.core.emit import merge_blocks
from morula.core.generators import hand_over
from morula.core.ir import Block, Branch, Call, Const, Operand, Var
from morula.core.keys import MOST_ITEMS, Item, Keys
from morula.core.primitives import (
    build_list,
    build_string,
    build_tuple,
    format_value,
    make_function,
)
from morula.core.ssa import prune_params
from morula.core.traits import is_read_at_once
from morula.core.values import known
from morula.core.weave import Loop, Weaving, loops_of

if TYPE_CHECKING:
    from morula.core.specialise import Specialiser

MOST_CALLS = 400  # that a program may have more for it


def unroll_loops(s: Specialiser) -> bool:
    """Unroll a loop of a program; was there one?"""
    unrolling = Unrolling(s)
    if not any(unrolling.unroll(loop) for loop in loops_of(s.ir, unrolling.keys.uses)):
        return False
    prune_params(s.ir)
    merge_blocks(s.ir)
    return True


class Unrolling:
    """What the loops of a program run over."""

    def __init__(self, s: Specialiser) -> None:
        self.s = s
        self.keys = Keys(s.ir, s.assumed_keys)

    def unroll(self, loop: Loop) -> bool:
        """Unroll one loop, if its items are known and its body is short enough."""
        ir = self.s.ir
        if loop.iterator.primitive is not iter or len(loop.iterator.args) != 1:
            return False
        over = loop.iterator.args[0]
        items = None if is_of_numbers(over) else self.items(over)
        if items is None and self.asks_by_number(loop):
            items = self.numbers(over)
        if items is None or len(items) > MOST_ITEMS:
            return False
        more = max(len(items) - 1, 0) * loop.size(ir)
        if self.s.unrolled + more > MOST_CALLS:
            return False
        self.s.unrolled += more
        giving = Block()
        for x, calls in items:
            giving.calls += [*calls, Call(ir.var(), Const(hand_over), (x,))]
        giving.branches = [Branch(None)]
        Weaving(ir, loop).weave([giving])
        gone = [loop.iterator, *self.made_for(loop.iterator)]
        for block in ir.blocks:
            block.calls = [c for c in block.calls if c not in gone]
        return True

    def asks_by_number(self, loop: Loop) -> bool:
        """Does a loop make functions, or ask for items of what was asked for its extent?"""
        calls = [call for block in loop.body(self.s.ir) for call in block.calls]
        return any(call.primitive is make_function or self.asks_for_item(call) for call in calls)

    def asks_for_item(self, call: Call) -> bool:
        """Is it an item of what was asked for its extent, or a text that may be a key of one?"""
        assumed = self.keys.assumed
        if call.primitive in MAKE_TEXTS:
            return bool(assumed)
        return call.primitive is operator.getitem and call.args[0] in assumed

    def numbers(self, x: Operand) -> list[Item] | None:
        """The numbers of a range, if they are known and few."""
        made = self.keys.made.get(x)
        if type(x) is Const:
            return [(Const(n), []) for n in x.value] if is_of_numbers(x) else None
        if made is None or made.primitive is not range or made.keywords:
            return None
        if not all(type(a) is Const and type(a.value) is int for a in made.args):
            return None
        found = range(*[a.value for a in made.args])
        return [(Const(n), []) for n in found] if len(found) <= MOST_ITEMS else None

    def made_for(self, reader: Call) -> list[Call]:
        """What gives nothing but what a loop runs over."""
        keys, found = self.keys, []
        for x in reader.args:
            made = keys.made.get(x)
            if type(x) is not Var or made is None or keys.uses[x] != 1:
                continue
            if made.primitive in (zip, enumerate, sorted, list, tuple, reversed):
                found += [made, *self.made_for(made)]
            elif made.primitive is build_list:
                found.append(made)
            elif keys.view(made) is not None:
                found += [made, *[keys.made[f] for f in [made.fn] if f in keys.made]]
        return found

    def items(self, x: Operand) -> list[Item] | None:
        """The items of what a loop runs over, if they are known."""
        if type(x) is Const:
            return items_of_constant(x.value)
        made = self.keys.made.get(x)
        if made is not None and not made.keywords:
            if made.primitive is build_tuple or self.is_settled(made):
                return [(a, []) for a in made.args]
            if (view := self.keys.view(made)) is not None:
                return self.keys.items(*view)
            if self.keys.uses[made.out] == 1 and made.args:  # nobody changes it, or reads of it
                return self.items_of_run(made)
        if x in self.keys.of:
            return self.keys.items(x, "keys")
        return self.items_of_tuple(x)

    def items_of_run(self, made: Call) -> list[Item] | None:
        """Those of what runs over others, or of a list that is made of others."""
        keys, fn = self.keys, made.primitive
        if fn is zip:
            return self.zipped([self.items(a) for a in made.args])
        if len(made.args) == 1 and fn is enumerate:
            items = self.items(made.args[0])
            if items is None:
                return None
            return self.zipped([[(Const(i), []) for i in range(len(items))], items])
        if len(made.args) == 1 and fn in (sorted, list, tuple):
            return self.in_order(fn, made.args[0])
        return self.part_of_list(made) if keys.is_list(made.args[0]) else None

    def part_of_list(self, made: Call) -> list[Item] | None:
        """The items of a slice of a list from outside, or of it from behind."""
        keys, (x, *others) = self.keys, made.args
        items = keys.items(x, "keys")
        if items is None or not keys.are_as_they_were(x):
            return None
        if made.primitive is reversed:
            return items[::-1]
        part = others[0] if made.primitive is operator.getitem else None
        if type(part) is not Const or type(part.value) is not slice:
            return None
        found: list[Item] = items[part.value]
        return found

    def in_order(self, fn: Any, x: Operand) -> list[Item] | None:
        """The keys of a dict, or its items, in their order or sorted by the keys."""
        keys = self.keys
        view = (x, "keys") if x in keys.of else None
        if type(x) is Var and x in keys.made and keys.uses[x] == 1:
            view = keys.view(keys.made[x]) or view
        items = None if view is None else keys.items(*view)
        if view is None or items is None or not keys.are_as_they_were(view[0]):
            return None
        if fn is not sorted:
            return items
        names = keys.of[view[0]]
        if keys.is_list(view[0]) or view[1] == "values" or {*map(type, names)} != {str}:
            return None
        return [
            item for _, item in sorted(zip(names, items, strict=True), key=lambda pair: pair[0])
        ]

    def is_settled(self, made: Call) -> bool:
        """Is it a display of a list that is read and nothing else?"""
        if made.primitive is not build_list:
            return False
        readers = self.keys.readers.get(made.out, [])
        if sum(c.operands().count(made.out) for c in readers) != self.keys.uses.get(made.out, 0):
            return False
        return all(c.primitive in LOOKS or is_read_at_once(c) for c in readers)

    def zipped(self, sources: list[list[Item] | None]) -> list[Item] | None:
        """The tuples that `zip` makes of such items."""
        rows: list[Item] = []
        if None in sources:
            return None
        for row in zip(*sources, strict=False):
            out = self.s.ir.var()
            made = Call(out, Const(build_tuple), [x for x, _ in row])
            rows.append((out, [*[c for _, calls in row for c in calls], made]))
        return rows

    def items_of_tuple(self, x: Operand) -> list[Item] | None:
        """Those of a tuple of which the types of the items are known."""
        k = known(self.s.value(x))
        if k is None or k.type is not tuple or k.detail is None or None in k.detail:
            return None
        reads = [
            Call(self.s.ir.var(), Const(operator.getitem), (x, Const(i)))
            for i in range(len(k.detail))
        ]
        return [(c.out, [c]) for c in reads]


MAKE_TEXTS = (format_value, build_string, str)
LOOKS = (iter, len, operator.getitem, zip, enumerate)


def is_of_numbers(x: Operand) -> bool:
    """Is it a tuple of numbers of one type? A loop over constants is as good as it is."""
    value = x.value if type(x) is Const else ()
    return type(value) is tuple and {*map(type, value)} in ({int}, {float})


def items_of_constant(value: Any) -> list[Item] | None:
    """Those of a text, or of a tuple."""
    return [(Const(x), []) for x in value] if type(value) in (str, tuple) else None
