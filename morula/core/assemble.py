"""The instructions that CPython versions spell differently, for `emit`.

An `Assembler` is a list of `bytecode` instructions with methods that append: a call, a global, a
jump. Everything that is the same in all versions, `emit` appends itself.
"""

from __future__ import annotations

import dis
import sys
from itertools import islice
from types import CodeType
from typing import Any

from bytecode import BinaryOp, Bytecode, Compare, Instr, Label
from bytecode.instr import FreeVar, InstrLocation, Intrinsic1Op

from morula.core.context import enter
from morula.core.frames import Places, exception_table, handler_of
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
UNARY = {
    "neg": "UNARY_NEGATIVE",
    "pos": "UNARY_POSITIVE",
    "invert": "UNARY_INVERT",
    "not_": "UNARY_NOT",
}
# The flags of a code object that belong to its text: nested, the futures, has a docstring (in 3.14).
HAS_DOCSTRING = 0x4000000
INHERITED = 0x10 | 0x1FE0000 | HAS_DOCSTRING
BOOL = 16  # flag of a comparison whose result is tested, in CPython 3.13
SUBSCR = 26  # the number of `x[i]` among the binary operations, in CPython 3.14
# `bytecode` writes columns up to 255 in one byte. CPython reads what is above 127 as another entry: a
# tracer, profiler or debugger that asks for the lines writes beyond the memory for them.
LAST_COLUMN = 127
OPPOSITE = {"TRUE": "FALSE", "FALSE": "TRUE", "NONE": "NOT_NONE", "NOT_NONE": "NONE"}


class _Held:
    """A constant that is itself and equal to no other.

    `bytecode` takes two constants that marshal alike for the same one. But two empty lists are two,
    marshal sees no difference between an array and its bytes, and guards ask whether a number or a
    tuple (`math.pi`, `np.pi`, default values) is the same object still.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def stack_size(code: list[Any]) -> int:
    """The most that the instructions have on the stack, along all ways that jumps may take."""
    begins = {x: i for i, x in enumerate(code) if type(x) is Label}
    depths: dict[Label, int] = {}
    waiting = [(0, 0)]
    most = 0
    while waiting:
        i, depth = waiting.pop()
        for x in islice(code, i, None):
            if type(x) is Label:
                if depths.get(x, -1) >= depth:
                    break
                depths[x] = depth
                continue
            if x.has_jump():
                after = depth + x.stack_effect(jump=True)
                most = max(most, after)
                if depths.get(x.arg, -1) < after:
                    waiting.append((begins[x.arg], after))
            depth += x.stack_effect(jump=False)
            most = max(most, depth)
            if x.is_final():
                break
    return most


class Assembler:
    """CPython 3.11; subclasses change what later versions spell differently."""

    def __init__(self) -> None:
        self.code: list[Any] = []
        self.location: InstrLocation | None = None
        self.position: Position | None = None
        self.places: dict[int, Position] = {}  # of instructions in inlined code, by their numbers
        self.held: dict[int, _Held] = {}
        self.handles = False  # exceptions that leave the code, to say where they came from
        self.retry: Label | None = None  # where an exception of what is doubtful goes on
        self.is_doubtful = False  # is what comes next?
        self.doubtful: set[int] = set()  # instructions, by their numbers

    def at(self, position: Position) -> None:
        """The instructions that follow belong to this place in the source."""
        line, end, column, end_column, *_ = position.outermost()
        if line is None:
            return
        self.position = position
        if (
            end is None
            or column is None
            or end_column is None
            or not (line <= end and max(column, end_column) <= LAST_COLUMN)
        ):
            end = column = end_column = None
        self.location = InstrLocation(line, end, column, end_column)

    def op(self, name: str, *arg: Any) -> None:
        """Append an instruction."""
        if self.position is not None and self.position.inlined is not None:
            self.places[len(self.code)] = self.position
        if self.is_doubtful:
            self.doubtful.add(len(self.code))
        self.code.append(Instr(name, *arg, location=self.location))

    def label(self, label: Label) -> None:
        """Jumps to `label` arrive here."""
        self.code.append(label)

    # -- loads

    def const(self, value: Any) -> None:
        """Push a constant."""
        self.handles |= value is enter
        if not (value is None or value is ... or type(value) is bool):
            value = self.held.setdefault(id(value), _Held(value))
        self.op("LOAD_CONST", value)

    def finish(self, code: Bytecode, like: CodeType) -> CodeType:
        """The code object of these instructions, whose names and numbers `code` knows.

        It has the docstring of `like` and is under the same `from __future__ import`s.
        """
        code.docstring = self.docstring(like)
        places: Places = {}
        doubtful: set[int] = set()
        handles = bool(self.places) or self.handles or self.retry is not None
        if handles:
            self.handle_exceptions(places, doubtful)
        code.extend(self.code)
        size = stack_size(self.code)
        done = code.to_code(stacksize=size, compute_exception_stack_depths=False)
        if handles:
            done = self.protected(done, places, doubtful)
        consts = [c.value if type(c) is _Held else c for c in done.co_consts]
        flags = done.co_flags | like.co_flags & INHERITED
        return done.replace(co_consts=tuple(consts), co_flags=flags)

    def handle_exceptions(self, places: Places, doubtful: set[int]) -> None:
        """Append a handler that passes an exception on, with frames of what was inlined.

        One that comes from what is doubtful ends there, if there is another way to go.
        """
        self.position, self.is_doubtful = None, False
        self.handler = len(self.code)
        anew = Label()
        self.op("PUSH_EXC_INFO")
        self.before_callable()
        self.const(handler_of(places, doubtful))
        self.after_callable()
        self.op("COPY", 3)
        self.call(1, ())
        if self.retry is None:
            self.op("POP_TOP")
        else:
            self.jump_if("TRUE", anew, False)
        self.op("RERAISE", 0)
        self.cleanup = len(self.code)
        self.op("COPY", 3)
        self.op("POP_EXCEPT")
        self.op("RERAISE", 1)
        if self.retry is not None:
            self.label(anew)
            self.op("POP_TOP")
            self.op("POP_EXCEPT")
            self.jump(self.retry, True)

    def protected(self, code: CodeType, places: Places, doubtful: set[int]) -> CodeType:
        """The code with its handler in force.

        `places` and `doubtful` get the offsets of what was inlined and of what is doubtful.
        """
        numbers = [i for i, instr in enumerate(self.code) if isinstance(instr, Instr)]
        offsets = [i.offset for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG"]
        offset_of = dict(zip(numbers, offsets, strict=True))
        places.update((offset_of[i], p) for i, p in self.places.items() if i in offset_of)
        doubtful.update(offset_of[i] for i in self.doubtful if i in offset_of)
        resume = next(i for i in numbers if self.code[i].name == "RESUME")
        begin = offset_of[numbers[numbers.index(resume) + 1]]
        handler, cleanup = offset_of[self.handler], offset_of[self.cleanup]
        table = exception_table(
            [(begin, handler, handler, 0, False), (handler, cleanup, cleanup, 1, True)]
        )
        size = max(code.co_stacksize, len(self.code) - self.handler)
        return code.replace(co_exceptiontable=table, co_stacksize=size)

    def docstring(self, code: CodeType) -> str | None:
        """That of a function with this code: its first constant, if it is a string."""
        first = code.co_consts[0] if code.co_consts else None
        return first if isinstance(first, str) else None

    def load(self, slot: str) -> None:
        """Push a local variable."""
        self.op("LOAD_FAST", slot)

    def store(self, slot: str) -> None:
        """Pop into a local variable."""
        self.op("STORE_FAST", slot)

    def delete(self, slot: str) -> None:
        """Unbind a local variable."""
        self.op("DELETE_FAST", slot)

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
        """`neg`, `pos`, `invert` or `not_`."""
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

    def call_ex(self, keywords: bool) -> None:
        """callable, tuple[, dict] -> result."""
        self.op("CALL_FUNCTION_EX", int(keywords))

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


class Assembler312(Assembler):
    """CPython 3.12: methods are attributes with a flag; conditional jumps go forward only."""

    def load_attr(self, name: str) -> None:
        """Replace an object by its attribute."""
        self.op("LOAD_ATTR", (False, name))

    def method(self, name: str) -> None:
        """object -> the two slots of a call of its method."""
        self.op("LOAD_ATTR", (True, name))

    def unary(self, name: str) -> None:
        """`neg`, `pos`, `invert` or `not_`."""
        if name == "pos":
            self.op("CALL_INTRINSIC_1", Intrinsic1Op.INTRINSIC_UNARY_POSITIVE)
        else:
            super().unary(name)

    def call(self, n: int, keywords: tuple[str, ...]) -> None:
        """Call with n arguments, the last ones by keyword."""
        if keywords:
            self.op("KW_NAMES", keywords)
        self.op("CALL", n)

    def jump_if(self, test: str, target: Label, backward: bool) -> None:
        """Pop, and go to the target if TRUE, FALSE, NONE or NOT_NONE."""
        if backward:
            beyond = Label()
            self.op(f"POP_JUMP_IF_{OPPOSITE[test]}", beyond)
            self.jump(target, True)
            self.label(beyond)
        else:
            self.op(f"POP_JUMP_IF_{test}", target)

    def after_loop(self) -> None:
        """The target of for_iter has to be END_FOR, which is jumped over."""
        self.op("END_FOR")


class Assembler313(Assembler312):
    """CPython 3.13: NULL is above the callable; only a bool is tested or negated."""

    def free(self, op: str, name: str) -> None:
        """LOAD_DEREF, STORE_DEREF, DELETE_DEREF or LOAD_CLOSURE of a cell closed over."""
        super().free("LOAD_FAST" if op == "LOAD_CLOSURE" else op, name)

    def before_callable(self) -> None:
        """Nothing stands below a callable."""

    def after_callable(self) -> None:
        """What stands between a callable and its arguments."""
        self.op("PUSH_NULL")

    def call(self, n: int, keywords: tuple[str, ...]) -> None:
        """Call with n arguments, the last ones by keyword."""
        if keywords:
            self.const(keywords)
        self.op("CALL_KW" if keywords else "CALL", n)

    def make_function(self, flags: int) -> None:
        """[defaults], [kwdefaults], [annotations], [closure], code -> function; by the flags."""
        self.op("MAKE_FUNCTION")
        for flag in (8, 4, 2, 1):
            if flags & flag:
                self.op("SET_FUNCTION_ATTRIBUTE", flag)

    def format_value(self, conversion: str, with_spec: bool) -> None:
        """value[, spec] -> str."""
        if conversion:
            if with_spec:
                self.op("SWAP", 2)
            self.op("CONVERT_VALUE", ("", "s", "r", "a").index(conversion))
            if with_spec:
                self.op("SWAP", 2)
        self.op("FORMAT_WITH_SPEC" if with_spec else "FORMAT_SIMPLE")

    def unary(self, name: str) -> None:
        """`neg`, `pos`, `invert` or `not_`."""
        if name == "not_":
            self.truth()
        super().unary(name)

    def truth(self) -> None:
        """Replace an object by its truth, unless the instruction before gives a bool."""
        last = self.code[-1]
        name = last.name if isinstance(last, Instr) else ""
        if name == "COMPARE_OP":
            if not last.arg & BOOL:
                last.arg = Compare(last.arg | BOOL)
        elif name not in ("IS_OP", "CONTAINS_OP", "UNARY_NOT"):
            self.op("TO_BOOL")

    def jump_if(self, test: str, target: Label, backward: bool) -> None:
        """Pop, and go to the target if TRUE, FALSE, NONE or NOT_NONE."""
        if test in ("TRUE", "FALSE"):
            self.truth()
        super().jump_if(test, target, backward)

    def after_loop(self) -> None:
        """The target of for_iter has to be END_FOR, and what takes the iterator off behind it."""
        self.op("END_FOR")
        self.op("POP_TOP")


class Assembler314(Assembler313):
    """CPython 3.14: subscripts are a BINARY_OP; NULL stands for keywords that there are none of."""

    def const(self, value: Any) -> None:
        """Push a constant."""
        if type(value) is int and 0 <= value < 256:
            self.op("LOAD_SMALL_INT", value)
        else:
            super().const(value)

    def docstring(self, code: CodeType) -> str | None:
        """That of a function with this code: a flag tells whether there is one."""
        return super().docstring(code) if code.co_flags & HAS_DOCSTRING else None

    def subscript(self) -> None:
        """container, key -> item."""
        self.op("BINARY_OP", BinaryOp(SUBSCR))

    def call_ex(self, keywords: bool) -> None:
        """callable, tuple[, dict] -> result."""
        if not keywords:
            self.op("PUSH_NULL")
        self.op("CALL_FUNCTION_EX")

    def after_loop(self) -> None:
        """The target of for_iter has to be END_FOR, and what takes the iterator off behind it."""
        self.op("END_FOR")
        self.op("POP_ITER")


ASSEMBLERS = {11: Assembler, 12: Assembler312, 13: Assembler313, 14: Assembler314}


def assembler() -> Assembler:
    """The assembler of the running version."""
    return ASSEMBLERS[sys.version_info.minor]()


__all__ = ["Assembler", "Bytecode", "Label", "assembler"]
