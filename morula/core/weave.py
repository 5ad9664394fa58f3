"""A generator that one loop runs over becomes part of the loop.

Its body stands where the loop asks for an item, and the body of the loop in the place of each of its
yields: to ask for the next item is to go on behind the yield. No object is needed then, and the
variables of both are those of the program. What happens, happens in the order in which it did.
Tests: tests/core/test_weave.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from morula.core.bytecode.generators import body_of
from morula.core.cfg import dominates, dominators, loop_step
from morula.core.generators import hand_over, make_generator
from morula.core.inline import copy_blocks
from morula.core.ir import (
    IR,
    Block,
    Branch,
    Call,
    Const,
    Operand,
    Var,
    count_uses,
    reachable,
    substitute,
)
from morula.core.primitives import DONE
from morula.core.simplify import is_trusted
from morula.core.ssa import Variables
from morula.core.values import IteratorOver, known

if TYPE_CHECKING:
    from morula.core.specialise import Specialiser

MOST_YIELDS = 4  # the body of the loop is copied for each but one
MOST_COPIED = 200  # calls, in all copies together
_HEAD = 2  # in the first frame, the arguments stand behind the number of the yield and its value

Yield = tuple[Block, Operand, Block]  # the block that ends with it, the item, what is behind


@dataclass
class Loop:
    """A loop over an iterator that nothing else reads.

    To its head, the block that asks for an item, control is `entering` with the iterator at its
    beginning, or comes `back`; to both belong the blocks from which it comes.
    """

    iterator: Call
    head: Block
    entering: list[tuple[Block, Branch]] = field(default_factory=list)
    back: list[tuple[Block, Branch]] = field(default_factory=list)

    @property
    def item(self) -> Var:
        """What the head asks for."""
        return self.head.calls[-2].out

    def body(self, ir: IR) -> list[Block]:
        """The blocks from which control comes back to the head."""
        entries = ir.predecessors()
        found, work = {self.head}, [source for source, _ in self.back]
        while work:
            block = work.pop()
            if block not in found:
                found.add(block)
                work += [source for source, _ in entries[block]]
        return [b for b in ir.blocks if b in found and b is not self.head]

    def size(self, ir: IR) -> int:
        """How many calls there are in the body."""
        return sum(len(b.calls) for b in self.body(ir))


def weave_generators(ir: IR) -> bool:
    """Make a generator of a program part of the loop that runs over it; was there one?"""
    if not any(c.primitive is make_generator for c in ir.calls()):
        return False
    return any(
        weave(ir, loop)
        for loop in loops_of(ir, count_uses(ir))
        if loop.iterator.primitive is make_generator
    )


def iterate_once(s: Specialiser) -> bool:
    """An iterator of Python's own, and a generator, is its own iterator; was there one?"""
    makers = {c.out for c in s.ir.calls() if c.primitive is make_generator}
    same: dict[Var, Operand] = {}
    for call in s.ir.calls():
        if call.primitive is iter and len(call.args) == 1:
            k = known(s.value(call.args[0]))
            if call.args[0] in makers or (k is not None and k.type is IteratorOver):
                same[call.out] = call.args[0]
    substitute(s.ir, same)
    for block in s.ir.blocks:
        block.calls = [c for c in block.calls if c.out not in same]
    return bool(same)


# -- which generators and loops ---------------------------------------------------------------------


def loops_of(ir: IR, uses: dict[Var, int]) -> Iterator[Loop]:
    """The loops of a program of which it is known where they begin."""
    iterators = {c.out: c for c in ir.calls() if c.primitive in (iter, make_generator)}
    loops = []
    for head in filter(loop_step, list(ir.blocks)):
        step, test = head.calls[-2:]
        iterator = iterators.get(step.args[0])  # type: ignore[arg-type]
        if iterator is not None and uses[iterator.out] == uses[test.out] == 1:
            loops.append(Loop(iterator, cut_off(ir, head)))
    parent, entries = dominators(ir), ir.predecessors()
    for loop in loops:
        find_ways(ir, loop, parent, entries[loop.head])
        if loop.entering:
            yield loop


def cut_off(ir: IR, block: Block) -> Block:
    """The question at the end of a block in a block of its own."""
    if len(block.calls) == 2:
        return block
    head = ir.cut(block, len(block.calls) - 2)
    block.branches = [Branch(head)]
    return head


def find_ways(
    ir: IR, loop: Loop, parent: dict[Block, Block | None], ways: list[tuple[Block, Branch]]
) -> None:
    """Which ways to the head are which; none are `entering`, if it is not sure where it begins."""
    head = loop.head
    back = [way for way in ways if dominates(parent, head, way[0])]
    entering = [way for way in ways if way not in back]
    new = next(b for b in ir.blocks if loop.iterator in b.calls)
    stale, work = {new}, [head]
    while work:  # where control comes from the head without a new generator
        for block in work.pop().successors():
            if block not in stale:
                stale.add(block)
                work.append(block)
    if all(source is new or source not in stale for source, _ in entering):
        loop.entering, loop.back = entering, back


# -- the generator in the loop ----------------------------------------------------------------------


def weave(ir: IR, loop: Loop) -> bool:
    """Make a generator part of a loop, if its body and the loop's are such that it can be done."""
    made = loop.iterator
    steps = made.args[0].value
    frame = next((c for c in ir.calls() if c.out is made.args[1]), None)
    if frame is None or steps.kind != "generator" or (body := body_of(steps)) is None:
        return False
    n = sum(call.primitive is hand_over for call in body.calls())
    if n > MOST_YIELDS or (n - 1) * loop.size(ir) > MOST_COPIED:
        return False
    renamed: dict[Var, Operand] = dict(zip(body.params, frame.args[_HEAD:], strict=True))
    renamed.update(zip(body.free, made.args[2:], strict=True))
    inlined = None if is_trusted(steps.namespace) else made.position.inlined
    Weaving(ir, loop).weave(copy_blocks(ir, body, renamed, made.position, inlined, False))
    for block in ir.blocks:
        block.calls = [c for c in block.calls if c is not made]
    return True


class Weaving:
    """What gives items, on its way into a loop.

    What the head receives, the item, and what there are copies of are variables meanwhile: their
    value depends on the way that control took.
    """

    def __init__(self, ir: IR, loop: Loop) -> None:
        self.ir = ir
        self.loop = loop
        self.own = loop.body(ir)
        self.tracked: set[Operand] = {*loop.head.params, loop.item}
        self.variables = Variables(ir, lambda block, variable: None)

    def weave(self, generator: list[Block]) -> None:
        """Do it with these blocks, of which the first is the entry; they hand over items."""
        ir, head = self.ir, self.loop.head
        entry, end, begin = generator[0], head.branches[0], head.branches[1]
        for block in generator:
            for branch in block.branches:
                if branch.block is None:
                    branch.block, branch.args = end.block, list(end.args)
        yields = [y for block in list(generator) for y in yields_in(block, generator)]
        ir.blocks += generator
        bodies = [self.copy() if i else {b: b for b in self.own} for i in range(len(yields))]
        back = [(s, s.branches.index(branch)) for s, branch in self.loop.back if s is not head]
        for _, branch in self.loop.entering:
            self.lead(branch, entry)
        for (block, item, rest), body in zip(yields, bodies, strict=True):
            self.variables.write(block, self.loop.item, item)
            assert begin.block is not None
            taken = Branch(body.get(begin.block, begin.block), begin.args)
            block.branches = [taken]
            again = [body[source].branches[i] for source, i in back]
            for branch in [taken] if taken.block is head else again:
                self.lead(branch, rest)
        ir.blocks = reachable(ir)
        for block in ir.blocks:
            block.replace(partial(self.read, block))
        self.variables.finish()

    def lead(self, branch: Branch, target: Block) -> None:
        """Let a branch to the head lead to the target, by way of a block that receives the same."""
        way = self.ir.block()
        for p in self.loop.head.params:
            received = self.ir.var(p.name)
            way.params.append(received)
            self.variables.write(way, p, received)
        self.variables.write(way, self.loop.item, Const(DONE))
        way.branches = [Branch(target)]
        branch.block = way

    def copy(self) -> dict[Block, Block]:
        """Another copy of the body of the loop, by the blocks of the first."""
        twins = {b: self.ir.block() for b in self.own}
        renamed: dict[Operand, Var] = {}
        for old, new in twins.items():
            for v in (*old.params, *[c.out for c in old.calls]):
                renamed[v] = self.ir.var(v.name)
                self.variables.write(old, v, v)
                self.variables.write(new, v, renamed[v])
        self.tracked.update(renamed)
        for old, new in twins.items():
            new.params = [renamed[p] for p in old.params]
            for call in old.calls:
                twin = call.copy()
                twin.out = renamed[call.out]
                twin.fn, *args = [renamed.get(x, x) for x in call.operands()]
                twin.args = tuple(args)
                new.calls.append(twin)
            new.branches = [
                Branch(
                    twins.get(b.block, b.block),  # type: ignore[arg-type]
                    [renamed.get(x, x) for x in b.args],
                    None if b.cond is None else renamed.get(b.cond, b.cond),
                )
                for b in old.branches
            ]
        return twins

    def read(self, block: Block, x: Operand) -> Operand:
        """What is tracked as it is in a block, in the place of a variable that the program had."""
        return self.variables.read(block, x, x.name) if type(x) is Var and x in self.tracked else x


def yields_in(block: Block, blocks: list[Block]) -> Iterator[Yield]:
    """End a block at each of its yields; the new ones are added. Nobody sends anything."""
    i = 0
    while i < len(block.calls):
        call = block.calls[i]
        i += 1
        if call.primitive is hand_over:
            rest = Block()
            rest.calls, rest.branches = block.calls[i:], block.branches
            block.calls, block.branches = block.calls[: i - 1], []
            blocks.append(rest)
            substitute(IR("", blocks=blocks), {call.out: Const(None)})
            yield block, call.args[0], rest
            block, i = rest, 0
