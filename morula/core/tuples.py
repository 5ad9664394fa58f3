"""Tuples that control passes on, as in `state = step(state)`, are passed item by item.

So the items are variables, and have cotangents, of their own.
Tests: tests/core/test_tuples.py
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from morula.core.ir import Block, Branch, Call, Const, Operand, Var
from morula.core.primitives import build_tuple, unpack
from morula.core.values import known

if TYPE_CHECKING:
    from morula.core.specialise import Specialiser


def pass_items(s: Specialiser) -> bool:
    """Pass the items of tuples of known lengths that are taken apart; was there such a tuple?"""
    ir = s.ir
    taken_apart = {c.args[0] for c in ir.calls() if c.primitive in (operator.getitem, unpack)}
    items: dict[Operand, list[Var]] = {}
    for block in ir.blocks:
        for p in block.params if block is not ir.entry else ():
            n = length(s, p)
            if n and p in taken_apart:
                items[p] = [ir.var(p.name) for _ in range(n)]
    if items:
        made = {c.out: c for c in ir.calls()}
        for block in list(ir.blocks):
            for branch in block.branches:
                if branch.block is not None and any(p in items for p in branch.block.params):
                    pass_on(s, block, branch, items, made)
        for block in ir.blocks:
            receive(block, items)
    return bool(items)


def length(s: Specialiser, x: Operand) -> int:
    """How long a tuple is; 0: x is not known to be one."""
    k = known(s.value(x))
    return len(k.detail) if k is not None and k.type is tuple and k.detail is not None else 0


def pass_on(
    s: Specialiser,
    block: Block,
    branch: Branch,
    items: dict[Operand, list[Var]],
    made: dict[Var, Call],
) -> None:
    """Pass the items of the arguments for such parameters."""
    target = branch.block
    assert target is not None
    edge = None

    def item(x: Operand, i: int) -> Operand:
        nonlocal edge
        if x in items:
            return items[x][i]
        if type(x) is Const:
            return Const(x.value[i])
        if x in made and made[x].primitive is build_tuple:
            return made[x].args[i]
        if edge is None:  # what stands at the end of a loop's header would be done once too often
            edge = s.ir.block()
        out = s.ir.var()
        edge.calls.append(Call(out, Const(operator.getitem), (x, Const(i))))
        return out

    args: list[Operand] = []
    for p, a in zip(target.params, branch.args, strict=True):
        args += [item(a, i) for i in range(len(items[p]))] if p in items else [a]
    if edge is None:
        branch.args = args
    else:
        edge.branches = [Branch(target, args)]
        branch.block, branch.args = edge, []


def receive(block: Block, items: dict[Operand, list[Var]]) -> None:
    """Put the tuples together again where they are received, for what needs them whole."""
    whole = [Call(p, Const(build_tuple), items[p]) for p in block.params if p in items]
    block.params = [x for p in block.params for x in items.get(p, [p])]
    block.calls = [*whole, *block.calls]
