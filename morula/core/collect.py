"""A generator expression that is read at once becomes a list: `sum(x * x for x in xs)`.

Nothing happens between two items but the reading of one, so the items may all be made before. Which
callables read so, the rules tell (`reads_at_once`).
Tests: tests/core/test_collect.py
"""

from __future__ import annotations

from inspect import CO_GENERATOR
from types import CodeType
from typing import Any

from morula.core.bytecode.generators import collected
from morula.core.errors import UnsupportedError
from morula.core.ir import IR, Block, Call, Const, Operand, count_uses
from morula.core.primitives import make_function
from morula.core.traits import is_read_at_once


def collect_generators(ir: IR) -> bool:
    """Make lists of the generator expressions of a program that are read at once; were there any?"""
    made: dict[Operand, Call] = {c.out: c for c in ir.calls() if c.primitive is make_function}
    if not any(is_expression(c) for c in made.values()):
        return False
    uses = count_uses(ir)
    return any([collect_in(block, made, uses) for block in ir.blocks])


def is_expression(function: Call) -> bool:
    """Is it the function of a generator expression?"""
    code = function.args[1]
    return type(code) is Const and code.value.co_name == "<genexpr>" and is_generator(code.value)


def is_generator(code: CodeType) -> bool:
    """Is it not one that was made a list of already, and not asynchronous?"""
    return bool(code.co_flags & CO_GENERATOR)


def collect_in(block: Block, made: dict[Operand, Call], uses: Any) -> bool:
    """The same for one block."""
    found = False
    for call, reader in zip(block.calls, block.calls[1:], strict=False):
        function = made.get(call.fn)
        if function is None or not is_expression(function) or call.keywords:
            continue
        if uses.get(call.out) != 1 or uses.get(function.out) != 1:
            continue
        if not reader.args or reader.args[0] is not call.out or not is_read_at_once(reader):
            continue
        namespace, code, *rest = function.args
        try:
            derived = collected(code.value, namespace.value)
        except UnsupportedError:
            continue
        function.args = (namespace, Const(derived), *rest)
        found = True
    return found
