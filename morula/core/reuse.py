"""Results in the memory of operands that nobody reads any more.

What can be computed in place, and how it is said, the rules tell (`in_place_forms`); what is new, and
so belongs to the program alone, too (`fresh_results`).
"""

from __future__ import annotations

from collections.abc import Callable

from morula.core.ir import IR, Call, Const, Operand, Var, count_uses
from morula.core.traits import (
    Form,
    Known,
    forms_in_place,
    gives_new,
    instead_if_marked,
    is_written,
    marks,
    may_give_operand,
    typed_zero,
)
from morula.core.values import is_fine


def reuse_memory(
    ir: IR, known: Callable[[Operand], Known | None], is_in_memory: Callable[[Var], bool]
) -> None:
    """Let calls overwrite operands that are new, like the result, and read nowhere else."""
    if any(marks(call.primitive) for call in ir.calls()):
        for call in ir.calls():
            if (instead := instead_if_marked(call.primitive)) is not None:
                call.fn = Const(instead)
        return
    uses = count_uses(ir)
    for block in ir.blocks:
        ours: dict[Var, int] = {}  # new values, and how often they are still to be read
        readers: dict[Var, list[Call]] = {}
        for call in block.calls:
            read = [x for x in call.args if type(x) is Var and x in ours]
            for x in read:
                ours[x] -= 1
            n, forms = forms_in_place(call.primitive)
            is_new = gives_new(call.primitive) and _writes_to_nothing(call, n)
            for i, form in forms.items() if is_new else ():
                operand = call.args[i]
                if type(operand) is not Var or ours.get(operand) != 0:
                    continue
                if is_like(operand, call, known) and call.args.count(operand) == 1:
                    _overwrite(call, form, readers.get(operand, []))
                    break
            is_own = is_new
            if is_new and may_give_operand(call.primitive):  # which others may read
                first = call.args[0]
                is_own = type(first) is Var and ours.get(first) == 0
            holds_nothing = (k := known(call.out)) is not None and typed_zero(k.type) is not None
            for x in read:
                if not (is_new or holds_nothing) or is_written(call.primitive):
                    ours.pop(x, None)  # the result may share its memory
                else:
                    readers.setdefault(x, []).append(call)
            if is_own and is_in_memory(call.out):
                ours[call.out] = uses.get(call.out, 0)


def is_like(operand: Operand, call: Call, known: Callable[[Operand], Known | None]) -> bool:
    """Is the result of a call certainly like an operand, extents included?"""
    k = known(operand)
    if k is None or k != known(call.out):
        return False
    others = [known(x) for x in call.args if x is not operand]
    return is_fine(k) or all(o is not None and typed_zero(o.type) is not None for o in others)


def _writes_to_nothing(call: Call, n: int | None) -> bool:
    """Is there no argument that the result may be written to?"""
    if call.keywords:
        return False
    return all(type(a) is Const for a in call.args[2:]) if n is None else len(call.args) == n


def _overwrite(call: Call, form: Form, readers: list[Call]) -> None:
    """Let the call compute in place; those that read what it overwrites must not come later."""
    fn, *args = form(*call.args)
    call.fn, call.args = Const(fn), tuple(args)
    for reader in (call, *readers):
        reader.movable = False
