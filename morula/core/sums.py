"""Sums of cotangents that loops add up in place.

The cotangent of an array that a loop reads entry by entry is a sum of arrays with one entry each.
Where nobody else reads the sum while it grows, what is added goes into it, at the cost of an entry.
What can be added so, the rules tell (`adds_into`).
Tests: tests/core/test_sums.py
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

from morula.core.cotangents import accumulate
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, count_uses
from morula.core.primitives import sum_if_any
from morula.core.traits import Adding, adding_into
from morula.core.values import is_zero_value

SYMMETRIC = (accumulate, operator.add)
SUMS = (*SYMMETRIC, sum_if_any)


def add_in_place(ir: IR, start: Block) -> None:
    """Rewrite the sums of an adjoint, which begins at a block, that may grow in place."""
    blocks = reachable_blocks(start)
    if any(adding_into(c.primitive) is not None for b in blocks for c in b.calls):
        Sums(ir, blocks).rewrite()


def reachable_blocks(start: Block) -> list[Block]:
    """All blocks that control can reach."""
    found, waiting = [start], [start]
    while waiting:
        for branch in waiting.pop().branches:
            if branch.block is not None and branch.block not in found:
                found.append(branch.block)
                waiting.append(branch.block)
    return found


class Growth:
    """A sum, as a call, of what it begins with and a part that may be added to it in place."""

    def __init__(
        self, call: Call, block: Block, total: Operand, parts: list[Call], how: Adding
    ) -> None:
        self.call = call
        self.block = block
        self.total = total
        self.parts = parts  # the calls that make the part
        self.how = how


class Sums:
    """The sums of one adjoint.

    An own value is one that nobody else holds: a part, a sum that has grown in place, or a
    parameter for which only such are passed. A loop's parameter may begin with a copy.
    """

    def __init__(self, ir: IR, blocks: list[Block]) -> None:
        self.ir = ir
        self.blocks = blocks
        self.uses = count_uses(ir)
        self.home: dict[Operand, Block] = {c.out: b for b in ir.blocks for c in b.calls}
        self.home.update((p, b) for b in ir.blocks for p in b.params)
        self.after: dict[tuple[Block, Block | None], set[Block]] = {}
        self.entries = ir.predecessors()
        self.growths = {g.call.out: g for b in blocks for g in self.growths_in(b)}
        self.parameters = {p: b for b in blocks for p in b.params}
        parts = {c.out for b in blocks for c in b.calls if adding_into(c.primitive) is not None}
        self.parts = {x for x in parts if self.uses[x] == 1}
        self.readers: dict[Operand, list[tuple[Block, Call]]] = {}
        for b in ir.blocks:
            for call in b.calls:
                for x in {*call.operands()}:
                    self.readers.setdefault(x, []).append((b, call))

    def growths_in(self, block: Block) -> Iterator[Growth]:
        """The sums of a block one part of which is made there and read nowhere else."""
        made: dict[Operand, Call] = {c.out: c for c in block.calls}
        for call in block.calls:
            if call.primitive not in SUMS or len(call.args) != 2:
                continue
            a, b = call.args
            for total, x in ((a, b), (b, a)) if call.primitive in SYMMETRIC else ((a, b),):
                parts = self.parts_of(made.get(x), made)
                if parts:
                    how = adding_into(parts[0].primitive)
                    assert how is not None
                    yield Growth(call, block, total, parts, how)
                    break

    def parts_of(self, part: Call | None, made: dict[Operand, Call]) -> list[Call]:
        """The call that makes a part, and the one that makes its first argument, if there is one."""
        how = None if part is None else adding_into(part.primitive)
        if part is None or how is None or self.uses[part.out] != 1:
            return []
        if how.made is None:
            return [part]
        first = made.get(part.args[0])
        if first is None or first.primitive is not how.made or self.uses[first.out] != 1:
            return []
        return [part, first]

    def rewrite(self) -> None:
        """Let the sums grow in place that may."""
        while self.drop_some():
            pass
        begun = self.parameters_that_grow()
        for p in begun:
            how = begun[p]
            for block, branch in self.entries[self.parameters[p]]:
                i = self.parameters[p].params.index(p)
                if not self.is_own(branch.args[i]):
                    copy = self.ir.var()
                    block.calls.append(Call(copy, Const(how.begin), (branch.args[i],)))
                    branch.args[i] = copy
        for g in self.growths.values():
            part, *first = g.parts
            rest = part.args[len(first) :]
            g.call.fn = Const(g.how.add)
            g.call.args = (g.total, *[x for c in first for x in c.args], *rest)
            g.call.removable = g.call.movable = False
            for call in g.parts:
                g.block.calls.remove(call)

    def drop_some(self) -> bool:
        """Take back what cannot be an own value; was there such?"""
        before = len(self.growths) + len(self.parameters)
        for x, g in list(self.growths.items()):
            if not self.is_own(g.total) or self.is_read_beside(g.total, g.block, g.call):
                del self.growths[x]
        for p, block in list(self.parameters.items()):
            if not self.may_be_own(p, block):
                del self.parameters[p]
        return len(self.growths) + len(self.parameters) < before

    def is_own(self, x: Operand) -> bool:
        """Does nobody else hold this value?"""
        return is_zero_value(x) or x in self.growths or x in self.parameters or x in self.parts

    def may_be_own(self, p: Var, block: Block) -> bool:
        """Is only passed for a parameter what is, or may become, an own value?"""
        i = block.params.index(p)
        entries = self.entries[block]
        back = [branch for b, branch in entries if b in self.reached(block, None)]
        if not back:
            return all(self.is_handed_over(b, branch, i) for b, branch in entries)
        return all(
            self.is_handed_over(b, branch, i)
            for b, branch in entries
            if branch in back or self.is_own(branch.args[i])
        )

    def is_handed_over(self, block: Block, branch: Branch, i: int) -> bool:
        """Is an own value passed by a branch, and held by nobody from then on?"""
        x = branch.args[i]
        if is_zero_value(x):
            return True
        return self.is_own(x) and not self.is_read_beside(x, block, branch)

    def is_read_beside(self, x: Operand, block: Block, use: Call | Branch) -> bool:
        """May a value also be read before this use of it, and kept, or after it?"""
        if type(x) is not Var:
            return False
        home = self.home[x]
        later = self.reached(block, home)
        for b, call in self.readers.get(x, ()):
            if b in later or (b is block and call is not use):
                return True
            grows = call.out in self.growths and self.growths[call.out].total is x
            if call is not use and not grows and block in self.reached(b, home):
                return True
        for b in self.blocks:
            for branch in b.branches:
                n = list(branch.args).count(x) + (branch.cond is x)
                if branch is use:
                    if n > 1 or b in later:
                        return True
                elif n and (
                    b in later
                    or block in self.reached(b, home)
                    or (b is block and type(use) is Call)
                ):
                    return True
        return False

    def reached(self, block: Block, stop: Block | None) -> set[Block]:
        """The blocks that control may come to behind a block, without passing `stop`."""
        found = self.after.get((block, stop))
        if found is None:
            found = self.after[block, stop] = set()
            waiting = [block]
            while waiting:
                for branch in waiting.pop().branches:
                    b = branch.block
                    if b is not None and b is not stop and b not in found:
                        found.add(b)
                        waiting.append(b)
        return found

    def parameters_that_grow(self) -> dict[Var, Adding]:
        """The parameters, own values, that a sum grows from, directly or by way of others."""
        found: dict[Var, Adding] = {}
        waiting = [(g.total, g.how) for g in self.growths.values()]
        while waiting:
            x, how = waiting.pop()
            if x in self.parameters and x not in found:
                found[x] = how
                block = self.parameters[x]
                i = block.params.index(x)
                waiting += [(branch.args[i], how) for _, branch in self.entries[block]]
        return found
