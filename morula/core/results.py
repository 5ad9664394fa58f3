"""Where what a function returns is made, for messages."""

from __future__ import annotations

from typing import Any

from morula.core import errors
from morula.core.bytecode.lower import lower
from morula.core.callables import function_of
from morula.core.ir import IR, Call, Operand
from morula.core.places import Place


def lines_of_result(f: Any) -> list[str]:
    """The lines of the user's source where what `f` returns was made, for messages."""
    target = function_of(f)
    if target is None:
        return []
    function, _, _ = target
    code = function.__code__
    try:
        ir = lower(code, function.__globals__)
    except errors.UnsupportedError:
        return []
    lines = {line for call in makers_of_result(ir) if (line := call.position.line) is not None}
    return [str(Place(code.co_filename, line, code.co_name)) for line in sorted(lines)]


def makers_of_result(ir: IR) -> list[Call]:
    """The calls that define what is returned, by whatever way it came there."""
    made = {call.out: call for call in ir.calls()}
    incoming: dict[Operand, list[Operand]] = {}
    for param, x in ir.passed():
        incoming.setdefault(param, []).append(x)
    seen: set[Operand] = set()
    work = ir.returned()
    while work:
        x = work.pop()
        if x not in seen:
            seen.add(x)
            work += incoming.get(x, [])
    return [call for out, call in made.items() if out in seen]
