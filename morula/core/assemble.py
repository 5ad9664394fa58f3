"""The instructions that CPython versions spell differently, for `emit`.

An `Assembler` is a list of `bytecode` instructions with methods that append: a call, a global, a
jump. Everything that is the same in all versions, `emit` appends itself.
"""

from __future__ import annotations

import sys
from typing import Any

from bytecode import BinaryOp, Bytecode, CellVar, Compare, FreeVar, Instr, Label
from bytecode.instr import InstrLocation

from morula.core.ir import Position

BINARY_OPS = {
    "add": BinaryOp.ADD,
    "and_": BinaryOp.AND,
    "floordiv": BinaryOp.FLOOR_DIVIDE,
    "lshift": BinaryOp.LSHIFT,
    "matmul": BinaryOp.MATRIX_MULTIPLY,
    "mul": BinaryOp.MULTIPLY,
    "mod": BinaryOp.REMAINDER,
    "or_": BinaryOp.OR,
    "pow": BinaryOp.POWER,
    "rshift": BinaryOp.RSHIFT,
    "sub": BinaryOp.SUBTRACT,
    "truediv": BinaryOp.TRUE_DIVIDE,
    "xor": BinaryOp.XOR,
    "iadd": BinaryOp.INPLACE_ADD,
    "iand": BinaryOp.INPLACE_AND,
    "ifloordiv": BinaryOp.INPLACE_FLOOR_DIVIDE,
    "ilshift": BinaryOp.INPLACE_LSHIFT,
    "imatmul": BinaryOp.INPLACE_MATRIX_MULTIPLY,
    "imul": BinaryOp.INPLACE_MULTIPLY,
    "imod": BinaryOp.INPLACE_REMAINDER,
    "ior": BinaryOp.INPLACE_OR,
    "ipow": BinaryOp.INPLACE_POWER,
    "irshift": BinaryOp.INPLACE_RSHIFT,
    "isub": BinaryOp.INPLACE_SUBTRACT,
    "itruediv": BinaryOp.INPLACE_TRUE_DIVIDE,
    "ixor": BinaryOp.INPLACE_XOR,
}
COMPARISONS = {
    "lt": Compare.LT,
    "le": Compare.LE,
    "eq": Compare.EQ,
    "ne": Compare.NE,
    "gt": Compare.GT,
    "ge": Compare.GE,
}
UNARY = {"neg": "UNARY_NEGATIVE", "invert": "UNARY_INVERT", "not_": "UNARY_NOT"}


class Assembler:
    """CPython 3.11; subclasses change what later versions spell differently."""

    def __init__(self) -> None:
        self.code: list[Any] = []
        self.location: InstrLocation | None = None

    def at(self, position: Position) -> None:
        """The instructions that follow belong to this place in the source."""
        line, end, column, end_column = position
        if line is None:
            return
        if end is None or column is None or end_column is None or end < line:
            end = column = end_column = None
        self.location = InstrLocation(line, end, column, end_column)

    def op(self, name: str, *arg: Any) -> None:
        """Append an instruction."""
        self.code.append(Instr(name, *arg, location=self.location))

    def label(self, label: Label) -> None:
        """Jumps to `label` arrive here."""
        self.code.append(label)

    # -- loads

    def const(self, value: Any) -> None:
        """Push a constant."""
        self.op("LOAD_CONST", value)

    def load(self, slot: str) -> None:
        """Push a local variable."""
        self.op("LOAD_FAST", slot)

    def store(self, slot: str) -> None:
        """Pop into a local variable."""
        self.op("STORE_FAST", slot)

    def load_global(self, name: str) -> None:
        """Push a global variable."""
        self.op("LOAD_GLOBAL", (False, name))

    def free(self, op: str, name: str) -> None:
        """LOAD_DEREF, STORE_DEREF, DELETE_DEREF or LOAD_CLOSURE of a cell closed over."""
        self.op(op, FreeVar(name))

    def load_attr(self, name: str) -> None:
        """Replace an object by its attribute."""
        self.op("LOAD_ATTR", name)

    # -- operators

    def binary(self, name: str) -> None:
        """A function of `operator` as an instruction."""
        self.op("BINARY_OP", BINARY_OPS[name])

    def subscript(self) -> None:
        """container, key -> item."""
        self.op("BINARY_SUBSCR")

    def unary(self, name: str) -> None:
        """`neg`, `invert` or `not_`."""
        self.op(UNARY[name])

    def compare(self, name: str) -> None:
        """A comparison of `operator`."""
        self.op("COMPARE_OP", COMPARISONS[name])

    def format_value(self, conversion: str, with_spec: bool) -> None:
        """value[, spec] -> str."""
        flags = ("", "s", "r", "a").index(conversion) | (4 if with_spec else 0)
        self.op("FORMAT_VALUE", flags)

    def const_key_map(self, n: int) -> None:
        """k, v, k, v, ... -> dict."""
        self.op("BUILD_MAP", n)

    def import_name(self, name: str) -> None:
        """level, fromlist -> module."""
        self.op("IMPORT_NAME", name)

    # -- calls

    def before_callable(self) -> None:
        """What stands below a callable on the stack."""
        self.op("PUSH_NULL")

    def after_callable(self) -> None:
        """What stands between a callable and its arguments."""

    def method(self, name: str) -> None:
        """object -> the two slots of a call of its method."""
        self.op("LOAD_METHOD", name)

    def call(self, n: int, keywords: tuple[str, ...]) -> None:
        """Call with n arguments, the last ones by keyword."""
        if keywords:
            self.op("KW_NAMES", keywords)
        self.op("PRECALL", n)
        self.op("CALL", n)

    def call_ex(self) -> None:
        """callable, tuple, dict -> result."""
        self.op("CALL_FUNCTION_EX", 1)

    def make_function(self, flags: int) -> None:
        """[defaults], [kwdefaults], [annotations], [closure], code -> function; by the flags."""
        self.op("MAKE_FUNCTION", flags)

    # -- jumps

    def jump(self, target: Label, backward: bool) -> None:
        """Go to the target."""
        self.op("JUMP_BACKWARD" if backward else "JUMP_FORWARD", target)

    def jump_if(self, test: str, target: Label, backward: bool) -> None:
        """Pop, and go to the target if TRUE, FALSE, NONE or NOT_NONE."""
        self.op(f"POP_JUMP_{'BACKWARD' if backward else 'FORWARD'}_IF_{test}", target)

    def for_iter(self, target: Label) -> None:
        """iterator -> iterator, item; or go to the target."""
        self.op("FOR_ITER", target)

    def after_loop(self) -> None:
        """At the target of for_iter: take the iterator off, where CPython has not done it."""

    def returns(self) -> None:
        """Return the top of the stack."""
        self.op("RETURN_VALUE")

    def begin(self, free: list[str]) -> None:
        """The instructions that every function begins with."""
        if free:
            self.op("COPY_FREE_VARS", len(free))
        self.op("RESUME", 0)


def assembler() -> Assembler:
    """The assembler of the running version."""
    return Assembler()


__all__ = ["Assembler", "Bytecode", "CellVar", "Label", "assembler", "sys"]
