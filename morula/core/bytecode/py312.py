"""CPython 3.12: super-attributes, slices, intrinsics, inlined comprehensions; no PRECALL.

A load of a local variable that may be unbound has an instruction of its own. A comprehension runs in
the frame of its function: it saves the variables that it hides with LOAD_FAST_AND_CLEAR and restores
them with STORE_FAST, also in an exception handler, which no other code leads to.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from morula.core import primitives
from morula.core.bytecode import py311
from morula.core.bytecode.instructions import nothing, number, same

_ASYNC_GEN_WRAP = 4
_UNARY_POSITIVE, _LIST_TO_TUPLE = 5, 6
_STOP_ITERATION_ERROR = 3  # in a handler that Python's own generator makes needless
_PREP_RERAISE_STAR = 1
_MAKE_TYPES = {
    7: primitives.type_variable,
    8: primitives.parameter_specification,
    9: primitives.type_variable_tuple,
    10: primitives.generic_base,
    11: primitives.type_alias,
}
_MAKE_TYPES_OF_TWO = {2: primitives.bounded_type_variable, 3: primitives.constrained_type_variable}
_SET_TYPES = {4: primitives.set_type_parameters, 5: primitives.set_default_type}


def _load_attr(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    loaded: list[tuple[str, Any]] = [("load_attr", ins.argval)]
    return [("push_null_below", None), *loaded] if (ins.arg or 0) & 1 else loaded


def _load_super_attr(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    return [("call_super", bool((ins.arg or 0) & 2)), *_load_attr(ins, code)]


def intrinsic(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    """CALL_INTRINSIC_1: the few of them that source code is compiled to."""
    if ins.arg == _UNARY_POSITIVE:
        return [("unary", "pos")]
    if ins.arg == _LIST_TO_TUPLE:
        return [("list_to_tuple", None)]
    if ins.arg == _ASYNC_GEN_WRAP:
        return [("give", None)]
    if ins.arg == _STOP_ITERATION_ERROR:
        return []
    if ins.arg in _MAKE_TYPES:
        return [("make_type", (_MAKE_TYPES[ins.arg], 1))]
    return [("unsupported", f"the intrinsic function {ins.argrepr or ins.arg}")]


def _intrinsic_of_two(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    if ins.arg == _PREP_RERAISE_STAR:
        return [("regroup", None)]
    if ins.arg in _MAKE_TYPES_OF_TWO:
        return [("make_type", (_MAKE_TYPES_OF_TWO[ins.arg], 2))]
    if ins.arg in _SET_TYPES:
        return [("set_type", _SET_TYPES[ins.arg])]
    return [("unsupported", f"the intrinsic function {ins.argrepr or ins.arg}")]


REWRITE = {
    **py311.REWRITE,
    "LOAD_FAST": number("load_local"),
    "LOAD_FAST_CHECK": number("load_local_checked"),
    "LOAD_FAST_AND_CLEAR": number("load_and_clear_local"),
    "LOAD_ATTR": _load_attr,
    "LOAD_SUPER_ATTR": _load_super_attr,
    "BINARY_SLICE": number("get_slice"),
    "STORE_SLICE": number("set_slice"),
    "CALL_INTRINSIC_1": intrinsic,
    "CALL_INTRINSIC_2": _intrinsic_of_two,
    "LOAD_LOCALS": number("load_locals"),
    "LOAD_FROM_DICT_OR_GLOBALS": same("load_from_dict_or_globals"),
    "LOAD_FROM_DICT_OR_DEREF": number("load_from_dict_or_deref"),
    "FOR_ITER": lambda ins, code: [("for_iter", (ins.argval, True))],
    "END_SEND": lambda ins, code: [("swap", 2), ("pop", None)],
    "CLEANUP_THROW": nothing,  # what is thrown goes to `delegate`, never here
    "SEND": lambda ins, code: [("send", (ins.argval, False))],
    "END_FOR": nothing,  # FOR_ITER jumps over it
    "RETURN_CONST": lambda ins, code: [("const", ins.argval), ("return", None)],
    **{
        f"POP_JUMP_IF_{test}": same(f"jump_if_{test.lower()}")
        for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}
