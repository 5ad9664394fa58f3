"""Ways of structural zeros through an adjoint.

A pullback that was inlined is passed by where its cotangent is `ZERO`. What it would have given is
then `ZERO` too, so the next pullback is passed by, and so on: control that brings a zero to the
first of these tests goes to the end of them at once. On the other way the cotangents are certainly
none, and what is computed from them stands in one block, without tests.
Tests: tests/core/test_zeros.py
"""

from __future__ import annotations

import operator
from functools import partial

from morula.core.cfg import dominated, dominators
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, reachable, substitute
from morula.core.reverse import reachable_from
from morula.core.ssa import Variables
from morula.core.values import is_zero_value

Bound = dict[Var, tuple[Block, Operand]]  # parameters, with their blocks and what they receive
Way = tuple[Block, Bound]  # the new block on it, what is bound there


def part_ways(ir: IR, start: Block) -> bool:
    """Let control that brings zeros pass by all tests that they decide, from `start` on."""
    adjoint = reachable_from(start)
    ways: list[Way] = []
    passed: dict[Var, Block] = {}  # the parameters of the blocks that are passed by
    for block in [b for b in ir.blocks if b in adjoint]:
        for branch in block.branches:
            target, args, bound = way_of(branch, start)
            if target is branch.block:
                continue
            way = ir.block()
            way.branches = [Branch(target, args)]
            branch.block, branch.args = way, []
            ways.append((way, bound))
            passed.update({v: home for v, (home, _) in bound.items()})
    if ways:
        read_again(ir, adjoint, ways, passed)
    return bool(ways)


def read_again(ir: IR, adjoint: set[Block], ways: list[Way], passed: dict[Var, Block]) -> None:
    """Where parameters may have been passed by, read what they would have been."""
    ir.blocks = reachable(ir)
    reached = set(ir.blocks)
    ways = [way for way in ways if way[0] in reached]
    variables = Variables(ir, lambda block, variable: None)
    for v, home in passed.items():
        variables.write(home, v, v)

    def read(block: Block, x: Operand) -> Operand:
        return variables.read(block, x, x.name) if type(x) is Var and x in passed else x

    for way, bound in ways:  # other ways may lead to it, too, with parameters of their own
        values = {v: read(way, value) for v, (_, value) in bound.items()}
        way.branches[0].args = [read(way, a) for a in way.branches[0].args]
        for v, value in values.items():
            variables.write(way, v, value)
    for block in [b for b in ir.blocks if b in adjoint]:
        block.replace(partial(read, block))
    variables.finish()


def fold_decided(ir: IR, start: Block) -> bool:
    """Tests behind a test of the same cotangent are decided, from `start` on."""
    inside = dominated(dominators(ir))
    predecessors = ir.predecessors()
    adjoint = reachable_from(start)
    answers: dict[Operand, list[tuple[tuple[int, int], bool]]] = {}
    for block in adjoint:
        for branch in block.branches if len(block.branches) == 2 else ():
            tested = tested_by(block)
            target = branch.block
            if tested is not None and target is not None and len(predecessors[target]) == 1:
                answers.setdefault(tested, []).append((inside[target], branch.cond is not None))
    decided: dict[Var, Operand] = {}
    for block in adjoint:
        here = inside[block][0]
        for call in filter(is_zero_test, block.calls):
            for (first, last), answer in answers.get(call.args[0], ()):
                if first <= here <= last:
                    decided[call.out] = Const(answer)
    for block in ir.blocks:
        block.calls = [c for c in block.calls if c.out not in decided]
    substitute(ir, decided)
    return bool(decided)


def tested_by(block: Block) -> Operand | None:
    """The cotangent on whose being zero it depends where control goes from a block."""
    cond = block.branches[0].cond
    test = next((c for c in block.calls if c.out is cond), None)
    return test.args[0] if test is not None and is_zero_test(test) else None


def way_of(branch: Branch, start: Block) -> tuple[Block | None, list[Operand], Bound]:
    """Where a branch leads behind the tests that it decides; the parameters that it passes by."""
    target, args = branch.block, branch.args
    bound: Bound = {}
    seen = {start}
    while target is not None and target not in seen:
        seen.add(target)
        here = bound | {p: (target, a) for p, a in zip(target.params, args, strict=True)}
        taken = taken_by(target, here)
        if taken is None:
            break
        bound = here
        target, args = taken.block, [value_in(bound, a) for a in taken.args]
    return target, args, bound


def taken_by(block: Block, bound: Bound) -> Branch | None:
    """The branch that is taken at the end of a block which only tests what certainly is zero."""
    if not block.calls or not all(map(is_zero_test, block.calls)):
        return None
    zero = {call.out for call in block.calls if is_zero_value(value_in(bound, call.args[0]))}
    first = block.branches[0]
    return first if first.cond in zero and first.block is not None else None


def value_in(bound: Bound, x: Operand) -> Operand:
    """What a variable is on a way."""
    return bound[x][1] if type(x) is Var and x in bound else x


def is_zero_test(call: Call) -> bool:
    """Is it `x̄ is ZERO`?"""
    return call.primitive is operator.is_ and is_zero_value(call.args[1])
