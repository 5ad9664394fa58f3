"""One instruction set for all supported CPythons.

`decode` gives the instructions of a code object with canonical names and meanings; the table of the
running version, `py3XX.REWRITE`, says how each of CPython's instructions is spelt in them.
"""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from morula.core.ir import Position

Rewrite = Callable[[dis.Instruction, CodeType], list[tuple[str, Any]]]


@dataclass(slots=True)
class Instruction:
    """A canonical instruction and what it works with.

    `arg` is the offset of the target for a jump, the index of the slot for a variable of the function.
    """

    op: str
    arg: Any
    offset: int
    position: Position


def same(op: str) -> Rewrite:
    """The instruction `op` with CPython's resolved argument (a name, a constant, an offset)."""
    return lambda ins, code: [(op, ins.argval)]


def number(op: str) -> Rewrite:
    """The instruction `op` with CPython's plain number."""
    return lambda ins, code: [(op, ins.arg)]


def nothing(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    """An instruction without meaning for us."""
    return []


def const(value: Any) -> Rewrite:
    """Push a constant."""
    return lambda ins, code: [("const", value)]


def const_arg(op: str, arg: Any) -> Rewrite:
    """The instruction `op` with an argument that is always the same."""
    return lambda ins, code: [(op, arg)]


BINARY = {
    "+": "add",
    "&": "and_",
    "//": "floordiv",
    "<<": "lshift",
    "@": "matmul",
    "*": "mul",
    "%": "mod",
    "|": "or_",
    "**": "pow",
    ">>": "rshift",
    "-": "sub",
    "/": "truediv",
    "^": "xor",
}
IN_PLACE = {
    f"{sign}=": "i" + name.rstrip("_") if name in ("and_", "or_") else "i" + name
    for sign, name in BINARY.items()
}


def binary(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    """BINARY_OP, by the sign that it stands for."""
    sign = ins.argrepr
    if sign == "[]":
        return [("binary", "getitem")]
    return [("binary", BINARY.get(sign) or IN_PLACE[sign])]


_AFTER_YIELD = 1


def _resume(ins: dis.Instruction, code: CodeType) -> list[tuple[str, Any]]:
    """After a plain yield, what was sent is taken out; `yield from` passes it on as it is."""
    return [("receive", None)] if (ins.arg or 0) & 3 == _AFTER_YIELD else []


COMMON: dict[str, Rewrite] = {
    "NOP": nothing,
    "RESUME": _resume,
    "CACHE": nothing,
    "EXTENDED_ARG": nothing,
    "COPY_FREE_VARS": nothing,
    "POP_TOP": number("pop"),
    "COPY": number("copy"),
    "SWAP": number("swap"),
    "PUSH_NULL": number("push_null"),
    "LOAD_CONST": same("const"),
    "STORE_FAST": number("store_local"),
    "DELETE_FAST": number("delete_local"),
    "MAKE_CELL": number("make_cell"),
    "LOAD_CLOSURE": number("load_local"),
    "LOAD_DEREF": number("load_deref"),
    "STORE_DEREF": number("store_deref"),
    "DELETE_DEREF": number("delete_deref"),
    "STORE_GLOBAL": same("store_global"),
    "DELETE_GLOBAL": same("delete_global"),
    "STORE_ATTR": same("store_attr"),
    "DELETE_ATTR": same("delete_attr"),
    "BINARY_OP": binary,
    "IS_OP": lambda ins, code: [("compare", "is_not" if ins.arg else "is_")],
    "CONTAINS_OP": lambda ins, code: [("contains", bool(ins.arg))],
    "UNARY_NEGATIVE": lambda ins, code: [("unary", "neg")],
    "UNARY_POSITIVE": lambda ins, code: [("unary", "pos")],
    "UNARY_INVERT": lambda ins, code: [("unary", "invert")],
    "UNARY_NOT": lambda ins, code: [("unary", "not_")],
    "BINARY_SUBSCR": lambda ins, code: [("binary", "getitem")],
    "STORE_SUBSCR": number("store_item"),
    "DELETE_SUBSCR": number("delete_item"),
    "BUILD_TUPLE": number("build_tuple"),
    "BUILD_LIST": number("build_list"),
    "BUILD_SET": number("build_set"),
    "BUILD_MAP": number("build_map"),
    "BUILD_CONST_KEY_MAP": number("build_const_key_map"),
    "BUILD_SLICE": number("build_slice"),
    "BUILD_STRING": number("build_string"),
    "LIST_APPEND": number("list_append"),
    "LIST_EXTEND": number("list_extend"),
    "SET_ADD": number("set_add"),
    "SET_UPDATE": number("set_update"),
    "MAP_ADD": number("map_add"),
    "DICT_UPDATE": number("dict_update"),
    "DICT_MERGE": number("dict_merge"),
    "UNPACK_SEQUENCE": number("unpack"),
    "UNPACK_EX": number("unpack_ex"),
    "GET_ITER": number("get_iter"),
    "JUMP_FORWARD": same("jump"),
    "JUMP_BACKWARD": same("jump"),
    "JUMP_BACKWARD_NO_INTERRUPT": same("jump"),
    "RETURN_VALUE": number("return"),
    "RAISE_VARARGS": number("raise"),
    "IMPORT_NAME": same("import_name"),
    "IMPORT_FROM": same("import_from"),
    "CALL_FUNCTION_EX": number("call_ex"),
    "LOAD_BUILD_CLASS": number("build_class"),
    "LOAD_NAME": same("load_name"),
    "STORE_NAME": same("store_name"),
    "DELETE_NAME": same("delete_name"),
    "SETUP_ANNOTATIONS": number("setup_annotations"),
    "BEFORE_WITH": const_arg("enter_with", ("__enter__", "__exit__")),
    "WITH_EXCEPT_START": const_arg("exit_with", 4),
    "PUSH_EXC_INFO": number("push_exc_info"),
    "POP_EXCEPT": number("pop_except"),
    "CHECK_EXC_MATCH": number("exception_matches"),
    "CHECK_EG_MATCH": number("split_group"),
    "PREP_RERAISE_STAR": number("regroup"),
    "RERAISE": number("reraise"),
    "GET_LEN": number("get_len"),
    "MATCH_CLASS": number("match_class"),
    "MATCH_KEYS": number("match_keys"),
    "MATCH_MAPPING": number("match_mapping"),
    "MATCH_SEQUENCE": number("match_sequence"),
    "RETURN_GENERATOR": const(None),
    "YIELD_VALUE": number("yield"),
    "GET_YIELD_FROM_ITER": number("delegated_iterator"),
    "SEND": lambda ins, code: [("send", (ins.argval, False))],
    "GET_AWAITABLE": number("awaitable"),
    "GET_AITER": const_arg("special_call", "__aiter__"),
    "GET_ANEXT": lambda ins, code: [
        ("copy", 1),
        ("special_call", "__anext__"),
        ("awaitable", None),
    ],
    "END_ASYNC_FOR": number("end_async_for"),
    "BEFORE_ASYNC_WITH": const_arg("enter_with", ("__aenter__", "__aexit__")),
}


def slot_names(code: CodeType) -> list[str]:
    """The names of the slots that a function keeps its variables in.

    A local variable that is also a cell has one slot; a free variable has its own, even if a
    comprehension has a local variable of that name.
    """
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    return [*code.co_varnames, *cells, *code.co_freevars]


def decode(code: CodeType) -> list[Instruction]:
    """The canonical instructions of a code object."""
    name = f"py3{sys.version_info.minor}"
    table = importlib.import_module(f"morula.core.bytecode.{name}").REWRITE
    decoded = []
    for ins in dis.get_instructions(code):
        rewrite = table.get(ins.opname)
        spelt: list[tuple[str, Any]] = [("unsupported", f"the instruction {ins.opname}")]
        if rewrite is not None:
            spelt = rewrite(ins, code)
        position = Position(*ins.positions) if ins.positions else Position()
        # An instruction without meaning may be the target of a jump.
        decoded += [
            Instruction(op, arg, ins.offset, position) for op, arg in spelt or [("nothing", None)]
        ]
    return decoded


_HANDLING = {"push_exc_info", "pop_except", "end_async_for"}


@dataclass(slots=True, frozen=True)
class Handler:
    """Where control goes from the instructions of a protected region when one of them raises.

    `depth` slots of the stack stay; the offset of the instruction, if `with_offset`, and the exception
    are pushed on them.
    """

    start: int
    end: int
    target: int
    depth: int
    with_offset: bool

    def protects(self, offset: int) -> bool:
        """Is the instruction at this offset in the region?"""
        return self.start <= offset < self.end


def handlers(code: CodeType, instructions: list[Instruction]) -> list[Handler]:
    """The protected regions of a code object that matter.

    A handler matters that handles the exception, or that one stands around which does. What is left
    out only puts variables in order that nobody sees any more, as that of a comprehension does.
    """
    entries = [
        Handler(e.start, e.end, e.target, e.depth, e.lasti)
        for e in dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    ]
    body: dict[int, list[str]] = {e.target: [] for e in entries}
    for target, ops in body.items():
        ops += [ins.op for ins in instructions if ins.offset >= target][:2]
    matter = {t for t, ops in body.items() if {*ops} & _HANDLING}
    while True:
        more = {
            target
            for target in body
            if target not in matter
            and any(e.target in matter and e.protects(target) for e in entries)
        }
        if not more:
            return [e for e in entries if e.target in matter]
        matter |= more
