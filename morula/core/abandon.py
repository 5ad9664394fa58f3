"""Loops that leave a generator before its end: it ends there, as it does when Python drops it.

`for x in g(): … break` drops a generator that nobody else holds, so what `finally` and `with` say in it
happens at once. A reverse pass holds it for longer: the end is made a call of its own. Lowering notes
what it drops, if asked to; here that becomes the end of what a loop has dropped and a call gave.
Tests: tests/test_generators.py
"""

from __future__ import annotations

from typing import Any

from morula.core.ir import IR, Call, Const, Operand, Var
from morula.core.protected import attempt
from morula.core.ssa import prune_params


def dropped(x: Any) -> None:
    """The note of a value that is dropped."""


def abandon(iterator: Any, maker: Any) -> None:
    """End what a call of `maker` gave, if that was a generator which only a loop held."""


def with_ends(ir: IR) -> IR:
    """The function, in whose place it is: what loops over results of calls dropped is abandoned."""
    made = {c.out: c for c in ir.calls()}
    for call in made.values():
        maker = maker_of(call.args[0], made) if call.primitive is dropped else None
        if maker is not None:
            call.fn, call.args = Const(abandon), (call.args[0], maker)
    for block in ir.blocks:
        block.calls = [c for c in block.calls if c.primitive is not dropped]
    prune_params(ir)
    return ir


def maker_of(iterator: Operand, made: dict[Var, Call]) -> Operand | None:
    """What was called for what an iterator is of, if it has no name by which it may live on."""
    taken = made.get(iterator)  # type: ignore[arg-type]
    fn, args = (None, ()) if taken is None else spoken(taken)
    if type(fn) is not Const or fn.value is not iter:
        return None
    result = made.get(args[0])  # type: ignore[arg-type]
    return None if result is None or result.out.name else spoken(result)[0]


def spoken(call: Call) -> tuple[Operand, tuple[Operand, ...]]:
    """What is called with which arguments, also within `try`."""
    return (call.args[0], call.args[1:]) if call.primitive is attempt else (call.fn, call.args)
