"""Lists, tuples and dicts that are filled where they are made are displays: `[f(x), f(y)]`.

What asks such a dict for a key or for its length, and what reads it at once, is told by its items.
Tests: tests/core/test_unroll.py
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from morula.core.instances import guard_class, is_plain, new_instance
from morula.core.ir import Block, Call, Const, Operand, Var, substitute
from morula.core.keys import SPREADS, Item, Keys, is_key
from morula.core.primitives import (
    as_tuple,
    build_list,
    build_map,
    build_set,
    build_tuple,
    dict_merge,
    list_append,
    list_extend,
    map_add,
)
from morula.core.traits import is_read_at_once

if TYPE_CHECKING:
    from morula.core.specialise import Specialiser


def tell_apart(s: Specialiser) -> bool:
    """Whether two objects that the program makes are one and the same is known."""
    makers = {c.out: c.primitive for c in s.ir.calls() if makes_object(c.primitive)}
    answers: dict[Var, Operand] = {}
    for call in s.ir.calls():
        if call.primitive in (operator.is_, operator.is_not) and {*call.args} <= makers.keys():
            same = call.args[0] is call.args[1]
            answers[call.out] = Const(same == (call.primitive is operator.is_))
            for x in call.args:
                guard_class(s, makers[x])  # type: ignore[index]
    substitute(s.ir, answers)
    for block in s.ir.blocks:
        block.calls = [c for c in block.calls if c.out not in answers]
    return bool(answers)


def makes_object(fn: Any) -> bool:
    """Does every call of it make a new object?"""
    if fn in (new_instance, build_list, build_map, build_set):
        return True
    return isinstance(fn, type) and is_plain(fn)


EMPTY = {id(list): build_list, id(tuple): build_tuple, id(set): build_set}


def make_displays(s: Specialiser) -> bool:
    """Make displays of what a program fills where it is made; was there anything?"""
    keys = Keys(s.ir, s.assumed_keys)
    return any([make_displays_in(block, keys) for block in s.ir.blocks])


def make_displays_in(block: Block, keys: Keys) -> bool:
    """The same for one block."""
    changed = False
    for call in list(block.calls):
        if not call.args and id(call.primitive) in EMPTY:
            call.fn = Const(EMPTY[id(call.primitive)])
            changed = True
        elif call.primitive in (build_list, build_map):
            changed |= fill(block, call, keys)
        elif (answer := keys.answer(call)) is not None:
            changed = True
            if answer is not call.out:
                substitute(keys.ir, {call.out: answer})
                block.calls.remove(call)
        elif (dicts := keys.copied(call)) is not None:
            copy_display(block, call, dicts, keys)
            changed = True
        elif call.primitive in (tuple, as_tuple) and as_display(call, keys):
            changed = True
        elif is_read_at_once(call) and call.args[0] in keys.made:
            view = keys.view(keys.made[call.args[0]])
            items = None if view is None else keys.items(*view)
            changed |= put_display(block, call, items, keys)
    return changed


def put_display(block: Block, call: Call, items: list[Item] | None, keys: Keys) -> bool:
    """Give a list of its items to what reads a view of a dict at once."""
    if items is None or keys.uses[call.args[0]] != 1:  # type: ignore[index]
        return False
    view = keys.made[call.args[0]]
    gone = [view, *[keys.made[f] for f in [view.fn] if f in keys.made]]
    shown = Call(keys.ir.var(), Const(build_list), [x for x, _ in items], (), call.position)
    at = block.calls.index(call)
    block.calls[at:at] = [*[c for _, calls in items for c in calls], shown]
    call.args = (shown.out, *call.args[1:])
    for home in keys.ir.blocks:
        home.calls = [c for c in home.calls if c not in gone]
    return True


def fill(block: Block, made: Call, keys: Keys) -> bool:
    """Put into a display what is put into the list before anything else is done with it."""
    items = list(made.args)
    filled: list[tuple[Block, Call]] = []
    for home, call in uses_in_order(block, made):
        reads: list[Call] = []
        more = items_put_in(call, made.out, keys)
        if more is None and spreads_new(call, made.out, items, keys):
            more, reads = keys.entries(call.args[1])
        if more is None:
            break
        items += more
        filled.append((home, call))
        at = home.calls.index(call)
        home.calls[at:at] = reads
    if not filled:
        return False
    block.calls.remove(made)
    last, call = filled[-1]
    last.calls[last.calls.index(call)] = made
    for home, call in filled[:-1]:
        home.calls.remove(call)
    made.args = tuple(items)
    return True


def uses_in_order(block: Block, made: Call) -> Iterator[tuple[Block, Call]]:
    """The calls that certainly use what is made in a block next, each once, with their blocks."""
    home: Block | None = block
    begin = block.calls.index(made) + 1
    while home is not None:
        for call in list(home.calls[begin:]):
            if made.out in call.operands():
                yield home, call
        home, begin = next_use(home, block, made.out), 0


def next_use(home: Block, origin: Block, x: Var) -> Block | None:
    """The block that uses x first behind `home`, if it is one, and comes once for each x."""
    if any(x in branch.args for branch in home.branches):
        return None
    found = blocks_behind(home, origin, x)
    if len(found) != 1:
        return None
    (block,) = found
    return None if block is origin or comes_again(block, origin) else block


def comes_again(block: Block, origin: Block) -> bool:
    """Can control come back to a block without passing the origin?"""
    seen, work = {origin}, [block]
    while work:
        for after in work.pop().successors():
            if after is block:
                return True
            if after not in seen:
                seen.add(after)
                work.append(after)
    return False


def blocks_behind(home: Block, origin: Block, x: Var) -> set[Block]:
    """The blocks behind `home` that use x first, but for what comes behind its origin."""
    found, seen, work = set(), {origin}, [home]
    while work:
        for block in work.pop().successors():
            if uses_variable(block, x):
                found.add(block)
            elif block not in seen:
                seen.add(block)
                work.append(block)
    return found - {origin}


def uses_variable(block: Block, x: Var) -> bool:
    """Is x used in a block?"""
    return any(x in c.operands() for c in block.calls) or any(x in b.args for b in block.branches)


def items_put_in(call: Call, xs: Operand, keys: Keys) -> list[Operand] | None:
    """What a call appends to a list, or puts into a dict; None if it does something else."""
    if call.primitive in (map_add, operator.setitem) and call.args[0] is xs:
        key, value = call.args[1:]
        is_entry = keys.made[xs].primitive is build_map and value is not xs
        return [key, value] if is_entry and is_key(key) else None
    if keys.uses.get(call.out) or call.args[:1] != (xs,) or call.operands().count(xs) != 1:
        return None
    if call.primitive in (list_append, list.append) and len(call.args) == 2:
        return [call.args[1]]
    if call.primitive is not list_extend:
        return None
    more = call.args[1]
    if type(more) is Const:
        return [Const(x) for x in more.value] if type(more.value) is tuple else None
    display = keys.made.get(more)
    return list(display.args) if display is not None and display.primitive is build_tuple else None


def spreads_new(call: Call, d: Operand, items: list[Operand], keys: Keys) -> bool:
    """Does a call put all of a dict of known keys into another, which has none of them so far?"""
    if call.primitive not in SPREADS or call.keywords or call.args[0] is not d:
        return False
    more = call.args[1]
    if more is d or more not in keys.of or keys.is_list(more) or keys.uses.get(call.out):
        return False
    before = [x.value if type(x) is Const else None for x in items[::2]]
    return call.primitive is not dict_merge or set(before).isdisjoint(keys.of[more])


def copy_display(block: Block, call: Call, dicts: list[Operand], keys: Keys) -> None:
    """Make a display of the entries of what a call copies."""
    items: list[Operand] = []
    for d in dicts:
        more, reads = keys.entries(d)
        items += more
        at = block.calls.index(call)
        block.calls[at:at] = reads
    named = call.args[len(call.args) - len(call.keywords) :]
    items += [x for k, v in zip(call.keywords, named, strict=True) for x in (Const(k), v)]
    call.fn, call.args, call.keywords = Const(build_map), tuple(items), ()


def as_display(call: Call, keys: Keys) -> bool:
    """The tuple of a list that nobody else reads."""
    made = keys.made.get(call.args[0]) if len(call.args) == 1 and not call.keywords else None
    if made is None or made.primitive is not build_list or keys.uses[made.out] != 1:
        return False
    call.fn, call.args = Const(build_tuple), made.args
    return True
