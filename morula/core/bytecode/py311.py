"""CPython 3.11: NULL below the callable, PRECALL and KW_NAMES before CALL, directed jumps."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from morula.core.bytecode.instructions import COMMON, const, nothing, number, same


def _load_global(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    loaded: list[tuple[str, Any]] = [("load_global", ins.argval)]
    return [("push_null", None), *loaded] if (ins.arg or 0) & 1 else loaded


def _format_value(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    flags = ins.arg or 0
    return [("format_value", ("", "s", "r", "a")[flags & 3] + (":" if flags & 4 else ""))]


REWRITE = {
    **COMMON,
    "PRECALL": nothing,
    "LOAD_FAST": number("load_local_checked"),
    "LOAD_GLOBAL": _load_global,
    "LOAD_ATTR": same("load_attr"),
    "LOAD_METHOD": lambda ins, code: [("push_null_below", None), ("load_attr", ins.argval)],
    "COMPARE_OP": lambda ins, code: [("compare", ins.argval)],
    "LOAD_ASSERTION_ERROR": const(AssertionError),
    "LIST_TO_TUPLE": number("list_to_tuple"),
    "FORMAT_VALUE": _format_value,
    "FOR_ITER": lambda ins, code: [("for_iter", (ins.argval, True))],
    "SEND": lambda ins, code: [("send", (ins.argval, True))],
    "ASYNC_GEN_WRAP": number("give"),
    "KW_NAMES": lambda ins, code: [("keywords", code.co_consts[ins.arg or 0])],
    "CALL": number("call"),
    "LOAD_CLASSDEREF": number("load_classderef"),
    "MAKE_FUNCTION": number("make_function"),
    **{
        f"POP_JUMP_{way}_IF_{test}": same(f"jump_if_{test.lower()}")
        for way in ("FORWARD", "BACKWARD")
        for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
    "JUMP_IF_TRUE_OR_POP": same("jump_if_true_or_pop"),
    "JUMP_IF_FALSE_OR_POP": same("jump_if_false_or_pop"),
}
