"""CPython 3.13: NULL above the callable, CALL_KW, pairs of loads and stores, pieces of f-strings.

Attributes of functions are set by instructions. Conditional jumps want a bool: TO_BOOL, or a flag of
COMPARE_OP, comes before every one of them and before every UNARY_NOT, and nowhere else, so that
neither needs a meaning here, where branches and `not` test any object.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from morula.core.bytecode import py312
from morula.core.bytecode.instructions import Rewrite, nothing, number


def _load_global(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    loaded: list[tuple[str, Any]] = [("load_global", ins.argval)]
    return [*loaded, ("push_null", None)] if (ins.arg or 0) & 1 else loaded


def _load_attr(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    loaded: list[tuple[str, Any]] = [("load_attr", ins.argval)]
    return [*loaded, ("push_null", None)] if (ins.arg or 0) & 1 else loaded


def _load_super_attr(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    return [("call_super", bool((ins.arg or 0) & 2)), *_load_attr(ins, code)]


def pair(first: str, second: str) -> Rewrite:
    """Two instructions, whose slots are the halves of the argument."""
    return lambda ins, code: [(first, (ins.arg or 0) >> 4), (second, (ins.arg or 0) & 15)]


REWRITE = {
    **py312.REWRITE,
    "LOAD_FAST_LOAD_FAST": pair("load_local", "load_local"),
    "STORE_FAST_LOAD_FAST": pair("store_local", "load_local"),
    "STORE_FAST_STORE_FAST": pair("store_local", "store_local"),
    "LOAD_GLOBAL": _load_global,
    "LOAD_ATTR": _load_attr,
    "LOAD_SUPER_ATTR": _load_super_attr,
    "TO_BOOL": nothing,
    "CALL_KW": lambda ins, code: [("pop_keywords", None), ("call", ins.arg)],
    "MAKE_FUNCTION": lambda ins, code: [("make_function", 0)],
    "SET_FUNCTION_ATTRIBUTE": number("set_function_attribute"),
    "CONVERT_VALUE": lambda ins, code: [("convert", (str, repr, ascii)[(ins.arg or 1) - 1])],
    "FORMAT_SIMPLE": lambda ins, code: [("format_value", "")],
    "FORMAT_WITH_SPEC": lambda ins, code: [("format_value", ":")],
    "FOR_ITER": lambda ins, code: [
        ("for_iter", (ins.argval, False))
    ],  # a POP_TOP is behind END_FOR
}
