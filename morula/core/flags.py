"""Structural zeros as flags beside numbers, in an adjoint that is differentiated in its turn.

`ZERO` is no number: a program that hands it on cannot be differentiated as one of values. So what may
be `ZERO` here becomes two variables: a value of its type, which stands for nothing where it is zero,
and a flag that says whether it is. A test `x̄ is ZERO` becomes the flag, a sum a choice by flags.
Tests: tests/core/test_flags.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator

from morula.core.cfg import dominators
from morula.core.cotangents import ZERO, accumulate
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, substitute
from morula.core.reverse import reachable_from
from morula.core.values import is_zero_value
from morula.core.zeros import is_zero_test, tested_by

StandIn = Callable[[Var], Const | None]


def flag_zeros(
    ir: IR, start: Block, definite: Collection[Operand], stand_in: StandIn
) -> dict[Block, Block]:
    """Give what may be a structural zero, from `start` on, a flag; `stand_in` is of a variable's type.

    `definite` are the variables that certainly are none. Nothing is changed where a zero may come to
    what is no test, no sum and no parameter. Returns where the ends of blocks are that were divided.
    """
    zeros = Zeros(ir, start, definite)
    values = {v: stand_in(v) for v in zeros.doubtful if type(v) is Var}
    if not values or None in values.values() or not zeros.are_understood():
        return {}
    ends = expand_sums(ir, zeros)
    add_flags(ir, {v: value for v, value in values.items() if value is not None})
    return ends


class Zeros:
    """Which variables of an adjoint may be structural zeros, and where they certainly are none."""

    def __init__(self, ir: IR, start: Block, definite: Collection[Operand]) -> None:
        self.definite = definite
        inside = reachable_from(start)
        self.blocks = [b for b in ir.blocks if b in inside]
        self.parent = dominators(ir)
        self.nonzero = self.tested(ir)
        self.doubtful: set[Operand] = set()
        changed = True
        while changed:
            found = {p for block in self.blocks for p, _ in self.zeros_from(block)}
            changed = not found <= self.doubtful
            self.doubtful |= found

    def tested(self, ir: IR) -> dict[Block, Operand]:
        """The cotangents that are none behind the test before a block."""
        predecessors = ir.predecessors()
        found = {}
        for block in self.blocks:
            tested = tested_by(block) if len(block.branches) == 2 else None
            target = block.branches[-1].block
            if tested is not None and target is not None and len(predecessors[target]) == 1:
                found[target] = tested
        return found

    def may_be_zero(self, x: Operand, block: Block | None) -> bool:
        """May an operand be a structural zero in a block?"""
        if x not in self.doubtful:
            return is_zero_value(x)
        while block is not None:
            if self.nonzero.get(block) is x:
                return False
            block = self.parent[block]
        return True

    def zeros_from(self, block: Block) -> Iterator[tuple[Var, Operand]]:
        """What becomes a structural zero in a block, or at its end, and of what."""
        for call in block.calls:
            if call.primitive is accumulate and all(self.may_be_zero(a, block) for a in call.args):
                yield call.out, call.args[0]
        tested = tested_by(block) if len(block.branches) == 2 else None
        for i, branch in enumerate(block.branches):
            for p, a in zip(branch.block.params if branch.block else (), branch.args, strict=False):
                if self.may_be_zero(a, block) and not (i == 1 and a is tested):
                    yield p, a

    def are_understood(self) -> bool:
        """Are there no others, and do they only come where it is known what is done with them?"""
        for block in self.blocks:
            for call in block.calls:
                if is_zero_test(call):
                    understood = call.args[0] in self.doubtful or call.args[0] in self.definite
                elif call.primitive is accumulate:
                    understood = all(map(self.is_known, call.args))
                else:
                    understood = not any(self.may_be_zero(x, block) for x in call.operands())
                if not understood:
                    return False
            for branch in block.branches:
                if branch.block is None and any(self.may_be_zero(a, block) for a in branch.args):
                    return False
                for p, a in zip(
                    branch.block.params if branch.block else (), branch.args, strict=False
                ):
                    if p in self.doubtful and not self.is_known(a):
                        return False
        return True

    def is_known(self, x: Operand) -> bool:
        """Is it known whether it may be a structural zero?"""
        return type(x) is Const or x in self.doubtful or x in self.definite


def expand_sums(ir: IR, zeros: Zeros) -> dict[Block, Block]:
    """What a sum is where one of the cotangents is zero depends on control."""
    ends: dict[Block, Block] = {}
    for start in zeros.blocks:
        block = start
        while (i := doubtful_sum(start, block, zeros)) is not None:
            call = block.calls[i]
            a, b = call.args
            rest = ir.cut(block, i + 1, call.out)
            del block.calls[i]
            for x, other in ((a, b), (b, a)):
                if zeros.may_be_zero(x, start):
                    test, onward = ir.var(), ir.block()
                    block.calls.append(Call(test, Const(operator.is_), (x, Const(ZERO))))
                    block.branches = [Branch(rest, [other], test), Branch(onward)]
                    block = onward
            total = ir.var()
            block.calls.append(Call(total, call.fn, call.args, (), call.position))
            block.branches = [Branch(rest, [total])]
            block = ends[start] = rest
    return ends


def doubtful_sum(start: Block, block: Block, zeros: Zeros) -> int | None:
    """Where in a block, a part of that at the start, is a sum with what may be zero?"""
    for i, call in enumerate(block.calls):
        if call.primitive is accumulate and any(zeros.may_be_zero(a, start) for a in call.args):
            return i
    return None


def add_flags(ir: IR, values: dict[Operand, Const]) -> None:
    """Beside what may be zero, a parameter now, comes a flag; tests are answered by it."""
    flags = {v: ir.var("none") for v in values}

    def flag_of(x: Operand) -> Operand:
        return flags[x] if x in flags else Const(is_zero_value(x))

    answers: dict[Var, Operand] = {}
    for block in ir.blocks:
        for branch in block.branches:
            for i, p in enumerate(branch.block.params if branch.block else ()):
                if p in flags:
                    x = branch.args[i]
                    branch.args.append(flag_of(x))
                    branch.args[i] = values[p] if is_zero_value(x) else x
        for call in filter(is_zero_test, block.calls):
            answers[call.out] = flag_of(call.args[0])
    for block in ir.blocks:
        block.params = [*block.params, *[flags[p] for p in block.params if p in flags]]
        block.calls = [c for c in block.calls if c.out not in answers]
    substitute(ir, answers)
