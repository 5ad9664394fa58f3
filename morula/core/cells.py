"""Closure variables that no closure shares any more become variables of the SSA form."""

from __future__ import annotations

from collections.abc import Hashable

from morula.core.ir import IR, Block, Call, Const, Operand, Var, substitute
from morula.core.primitives import UNDEFINED, check_bound, get_cell, make_cell, set_cell
from morula.core.ssa import Variables, prune_params


def promote_cells(ir: IR) -> bool:
    """Turn cells that are only read and written here into block arguments; were there any?"""
    cells = _private_cells(ir)
    if not cells:
        return False

    def at_entry(block: Block, variable: Hashable) -> Operand | None:
        return Const(UNDEFINED) if block is ir.entry else None

    variables = Variables(ir, at_entry)
    mapping: dict[Var, Operand] = {}
    for block in ir.blocks:
        kept = []
        for call in block.calls:
            if call.primitive is make_cell and call.out in cells:
                variables.write(block, call.out, call.args[0])
            elif call.primitive is set_cell and call.args[0] in cells:
                variables.write(block, call.args[0], call.args[1])
            elif call.primitive is get_cell and call.args[0] in cells:
                cell, name, *own = call.args
                value = variables.read(block, cell, call.out.name)
                known = (value, name, *(own or [Const(False)]))
                kept.append(Call(call.out, Const(check_bound), known, (), call.position))
            else:
                kept.append(call)
        block.calls = kept
    variables.finish()
    substitute(ir, mapping)
    prune_params(ir)
    return True


def _private_cells(ir: IR) -> set[Operand]:
    """The cells made here that are passed to nothing but `get_cell` and `set_cell`."""
    made: set[Operand] = {c.out for c in ir.calls() if c.primitive is make_cell}
    for call in ir.calls():
        if call.primitive is get_cell:
            continue
        shared = call.args[1:] if call.primitive is set_cell else call.operands()
        made.difference_update(shared)
    for block in ir.blocks:
        for branch in block.branches:
            made.difference_update(branch.args)
    return made
