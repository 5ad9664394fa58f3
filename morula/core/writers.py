"""Does a function write to what it is given? As its own code tells, without what it calls.

Tests: tests/rules/test_checkpoints.py
"""

from __future__ import annotations

import operator
from types import CodeType
from typing import Any

from morula.core.activity import IN_PLACE_OPERATORS
from morula.core.bytecode.lower import lower
from morula.core.errors import UnsupportedError
from morula.core.ir import Call, Const, Var
from morula.core.primitives import get_cell, make_function
from morula.core.specialise import Specialiser

METHODS = ("fill", "sort", "partition", "put", "resize", "setfield", "itemset")


def writes_to_given(s: Specialiser, fn: Any) -> bool:
    """May a function, an operand of a program, write to an argument or to what it captures?"""
    value = s.value(fn)
    if type(value) is Const:
        code = getattr(getattr(value.value, "__func__", value.value), "__code__", None)
    else:
        made = next((c for c in s.ir.calls() if c.out is fn), None)
        is_local = made is not None and made.primitive is make_function
        code = s.value(made.args[1]).value if is_local else None  # type: ignore[union-attr]
    return type(code) is CodeType and code_writes(code)


def code_writes(code: CodeType) -> bool:
    """The same of its code."""
    try:
        ir = lower(code, {})
    except UnsupportedError:
        return False
    given: set[Any] = set(ir.blocks[0].params)
    before = -1
    while len(given) > before:
        before = len(given)
        given.update([p for p, x in ir.passed() if x in given])
        given.update([c.out for c in ir.calls() if is_of_given(c, given)])
    return any(writes(c, given) for c in ir.calls())


def is_of_given(c: Call, given: set[Any]) -> bool:
    """Is what a call gives captured, or a part or a view of what was given?"""
    if type(c.fn) is Var:
        return c.fn in given  # a method; what it gives may be a view
    parts = (getattr, operator.getitem, *IN_PLACE_OPERATORS)
    return c.primitive is get_cell or (c.primitive in parts and c.args[0] in given)


def writes(c: Call, given: set[Any]) -> bool:
    """Does a call write to what was given?"""
    by_name = zip(c.keywords, c.args[len(c.args) - len(c.keywords) :], strict=True)
    if any(name == "out" and x in given for name, x in by_name):
        return True
    if c.primitive is getattr and c.args[0] in given:
        return getattr(c.args[1], "value", None) in METHODS
    return c.primitive in (operator.setitem, *IN_PLACE_OPERATORS) and c.args[0] in given
