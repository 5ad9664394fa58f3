"""What a program reads from outside may be what it is differentiated by, under another name.

A program follows the objects among its arguments by its variables, the general path by their
identity. So a program whose arguments hold objects asks of every object that it has from elsewhere
(a global, a captured variable, another argument, a part of one of these) whether it is among
theirs; if it is, the call goes by the general path.
Tests: tests/core/test_sharing.py
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

from morula.core.activity import (
    is_immutable,
    is_read_from_outside,
    may_hold,
    spread_varied,
)
from morula.core.ir import Block, Branch, Call, Const, Operand, Var, reachable
from morula.core.registry import non_differentiable
from morula.core.specialise import NotSpecialised, Specialiser, go_general, may_run_twice
from morula.core.traits import Known, are_numbers, items_held, only_reads, parts_of


def ask_whether_shared(s: Specialiser, leaves: Collection[Var]) -> None:
    """Let a program ask of objects from outside whether its arguments hold them."""
    arguments: list[Operand] = [x for x in leaves if may_hold(s.value(x))]
    if not arguments:
        return
    varied: set[Operand] = set(leaves)
    spread_varied(s, varied)
    objects = objects_from_outside(s, varied)
    if not objects:
        return
    if not all(may_run_twice(s, call) for call in s.ir.calls()):
        raise NotSpecialised("what it is differentiated by may be read from outside, too")
    Questions(s, arguments, objects).ask()


def objects_from_outside(s: Specialiser, varied: Collection[Operand]) -> set[Operand]:
    """The variables of a program that may be objects which it has not got from what is varied."""
    if any(reads_unseen(s, call, varied) for call in s.ir.calls()):
        raise NotSpecialised("what it calls may read what it is differentiated by")
    found: set[Operand] = {p for p in s.ir.params if p not in varied and may_hold(s.value(p))}
    candidates = [c for c in s.ir.calls() if c.out not in varied and may_hold(s.value(c.out))]
    found.update(c.out for c in candidates if is_read_from_outside(c))
    before = -1
    while len(found) > before:
        before = len(found)
        found.update(c.out for c in candidates if not found.isdisjoint(c.operands()))
        found.update(p for p, a in s.ir.passed() if a in found and p not in varied)
    return found


def reads_unseen(s: Specialiser, call: Call, varied: Collection[Operand]) -> bool:
    """May a call that carries no derivative read objects where that is not seen here?"""
    callee = s.callee_of(call)
    if callee is not None and callee.specialiser is not None:
        inside = callee.specialiser
        given = [x for x in call.args if x not in varied and type(x) is Var]
        read = [c.out for c in inside.ir.calls() if is_read_from_outside(c)]
        return any(may_hold(s.value(x)) for x in given) or any(
            may_hold(inside.value(x)) for x in read
        )
    return s.runs_unknown_code(call) and not any(x in varied for x in call.operands())


class Questions:
    """The questions that one program asks."""

    def __init__(
        self, s: Specialiser, arguments: list[Operand], objects: Collection[Operand]
    ) -> None:
        self.s = s
        self.objects = objects
        self.given = Call(self.own(Known(set)), Const(objects_in), tuple(arguments))
        self.shared = s.ir.block()
        self.shared.calls = [Call(s.ir.var(), Const(go_general), ())]

    def ask(self) -> None:
        """Put the questions where the objects come from."""
        ir = self.s.ir
        parts = self.count_parts(ir.entry)
        for block in list(ir.blocks):
            calls, block.calls = block.calls, []
            last = block
            waiting = [x for x in block.params if x in self.objects]
            if block is ir.entry:
                block.calls, calls = [*calls[:parts], self.given], calls[parts:]
                waiting += [c.out for c in block.calls if c.out in self.objects]
            for x in waiting:
                last = self.ask_of(last, x)
            for call in calls:
                last.calls.append(call)
                if call.out in self.objects:
                    last = self.ask_of(last, call.out)
        ir.blocks = reachable(ir)

    def count_parts(self, entry: Block) -> int:
        """How many calls the entry begins with that take the arguments apart."""
        places = [i for i, c in enumerate(entry.calls) if c.out in self.given.args]
        return max(places, default=-1) + 1

    def ask_of(self, block: Block, x: Operand) -> Block:
        """End a block with the question for one object; gives the block where the answer is no."""
        number, among = self.own(Known(int)), self.own(Known(bool))
        rest = self.s.ir.block()
        rest.branches = block.branches
        block.calls += [
            Call(number, Const(id), (x,)),
            Call(among, Const(operator.contains), (self.given.out, number)),
        ]
        block.branches = [Branch(self.shared, (), among), Branch(rest)]
        return rest

    def own(self, known: Known) -> Var:
        """A variable that carries no cotangent."""
        out = self.s.ir.var()
        self.s.types[out] = known
        self.s.counted.add(out)
        return out


def objects_in(*arguments: Any) -> set[int]:
    """The ids of all objects that the arguments hold."""
    found: set[int] = set()
    waiting = list(arguments)
    while waiting:
        x = waiting.pop()
        if id(x) in found:
            continue
        parts = items_held(x)
        if parts is None:
            if is_immutable(type(x)):
                continue
            parts = (parts_of(x) or {}).values()
        found.add(id(x))
        if not are_numbers(set(map(type, parts))):
            waiting += parts
    return found


non_differentiable(objects_in, id)
only_reads(objects_in, id)
