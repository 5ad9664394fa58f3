"""Loops in two versions: one while tangents may be structural zeros, one from when they are none.

Many loops begin with constants (`x = 0.0`), so the tangents of their variables are structural zeros in
the first iterations, and are asked about in all of them. So such a loop is written twice; control goes
over to the second version as soon as the tangents that it begins an iteration with are no zeros, and
there nothing is asked.
Tests: tests/mixed_mode/test_programs.py
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from functools import partial

from morula.core.cfg import dominates, dominators, loop_body
from morula.core.cotangents import ZERO
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, reachable
from morula.core.ssa import Variables

Body = set[Block]


def loops_of(ir: IR) -> list[tuple[Block, Body]]:
    """The headers of loops and their bodies; those that are in others come first."""
    parent, predecessors = dominators(ir), ir.predecessors()
    found = []
    for header in parent:
        latches = [b for b, _ in predecessors[header] if dominates(parent, header, b)]
        if latches:
            found.append((header, loop_body(header, latches, predecessors)))
    return sorted(found, key=lambda loop: len(loop[1]))


def write_twice(ir: IR, header: Block, body: Body, doubtful: Collection[Operand]) -> dict[Var, Var]:
    """Write a loop once more, to be entered when none of these parameters is zero.

    Returns what its variables are called there.
    """
    parent = dominators(ir)
    homes = {v: b for b in ir.blocks if b in body for v in (*b.params, *[c.out for c in b.calls])}
    renamed = {v: ir.var(v.name) for v in homes}
    twins = {b: ir.block() for b in ir.blocks if b in body}

    def now(x: Operand) -> Operand:
        return renamed.get(x, x) if type(x) is Var else x

    for block, twin in twins.items():
        twin.params = [renamed[p] for p in block.params]
        for call in block.calls:
            copy = call.copy()
            copy.out = renamed[call.out]
            twin.calls.append(copy)
        twin.branches = [
            Branch(twins.get(b.block, b.block), b.args, b.cond) for b in block.branches
        ]
        twin.replace(now)
    tested = [i for i, p in enumerate(header.params) if p in doubtful]
    for block in twins:
        for branch in block.branches:
            if branch.block is header:
                branch.block, branch.args = to_either(ir, branch, twins[header], tested), []
    ir.blocks = reachable(ir)
    inside = {*body, *twins.values()}
    outside = [b for b in ir.blocks if b not in inside]
    read_outside(ir, outside, homes, renamed, twins, parent)
    return renamed


def to_either(ir: IR, back: Branch, twin: Block, tested: list[int]) -> Block:
    """The way back to the header of a loop, or to that of its second version."""
    start = block = ir.block()
    for i in tested:
        test, onward = ir.var(), ir.block()
        block.calls = [Call(test, Const(operator.is_), (back.args[i], Const(ZERO)))]
        block.branches = [Branch(back.block, back.args, test), Branch(onward)]
        block = onward
    block.branches = [Branch(twin, back.args)]
    return start


def read_outside(
    ir: IR,
    outside: list[Block],
    homes: dict[Var, Block],
    renamed: dict[Var, Var],
    twins: dict[Block, Block],
    parent: dict[Block, Block | None],
) -> None:
    """Behind the loop, its variables are those of the version that control comes from."""
    read = {x for b in outside for x in used_by(b) if type(x) is Var and x in homes}
    variables = Variables(ir, lambda block, variable: None)
    for v in read:
        for block, twin in twins.items():
            if dominates(parent, homes[v], block):
                variables.write(block, v, v)
                variables.write(twin, v, renamed[v])

    def value(block: Block, x: Operand) -> Operand:
        return variables.read(block, x, x.name) if type(x) is Var and x in read else x

    for block in outside:
        block.replace(partial(value, block))
    variables.finish()


def used_by(block: Block) -> list[Operand]:
    """What is read in a block."""
    found: list[Operand] = [x for call in block.calls for x in call.operands()]
    for branch in block.branches:
        found += [*branch.args, *([] if branch.cond is None else [branch.cond])]
    return found
