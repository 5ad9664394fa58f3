"""CPython 3.14: small integers, borrowed references, POP_ITER, subscripts as a BINARY_OP.

CALL_FUNCTION_EX always has a slot for the keywords, which may be NULL. The annotations of a function
are a function, `__annotate__`.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from morula.core.bytecode import py313
from morula.core.bytecode.instructions import const_arg, nothing, number

_COMMON_CONSTANTS = (AssertionError, NotImplementedError, tuple, all, any)


def _common_constant(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    return [("const", _COMMON_CONSTANTS[ins.arg or 0])]


_SPECIAL_METHODS = ("__enter__", "__exit__", "__aenter__", "__aexit__")


def _load_special(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    return [("special_method", _SPECIAL_METHODS[ins.arg or 0]), ("push_null", None)]


_CONVERSIONS = (None, "s", "r", "a")


def _interpolation(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    arg = ins.arg or 0
    return [("interpolation", (_CONVERSIONS[arg >> 2], bool(arg & 1)))]


REWRITE = {
    **py313.REWRITE,
    "NOT_TAKEN": nothing,
    "LOAD_SMALL_INT": number("const"),
    "LOAD_COMMON_CONSTANT": _common_constant,
    "LOAD_FAST_BORROW": number("load_local"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": py313.pair("load_local", "load_local"),
    "POP_ITER": number("pop"),
    "CALL_FUNCTION_EX": lambda ins, code: [("call_ex", 1)],
    "LOAD_SPECIAL": _load_special,
    "WITH_EXCEPT_START": const_arg("exit_with", 5),
    "BUILD_INTERPOLATION": _interpolation,
    "BUILD_TEMPLATE": number("template"),
}
