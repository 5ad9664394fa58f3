"""A function in SSA form as Python: its names, expressions and statements."""

from __future__ import annotations

import builtins
import inspect
import keyword
import operator
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, MethodDescriptorType
from typing import Any

from morula.core import primitives
from morula.core.emit import Node, Slots, Trees
from morula.core.ir import IR, Block, Call, Const, Operand, Var
from morula.core.reducible import make_reducible
from morula.core.source.module import Module
from morula.core.source.notation import WRITTEN, is_written_out
from morula.core.specialise import WAYS_OUT


class Names(Slots):
    """A name for each variable and for the parameters that it is passed to."""

    def __init__(self, *args: Any, taken: Callable[[str], bool]) -> None:
        super().__init__(*args)
        self.is_taken = taken

    def first_free(self, v: Var, taken: list[tuple[str, int]], names: set[str]) -> str:
        base = v.name if v.name.isidentifier() and not keyword.iskeyword(v.name) else "v"
        name, k = base if base != "v" else "v1", 1
        while name in names or self.is_taken(name):
            k += 1
            name = f"{base}{k}" if base == "v" else f"{base}_{k}"
        names.add(name)
        return name


# Names that may turn out to be needed while the text is written.
RESERVED = {"at", primitives.unpack.__name__, primitives.sum_if_any.__name__}


class FunctionText(Trees):
    """Writes a function in SSA form as Python."""

    def __init__(self, ir: IR, like: CodeType, module: Module, captured: Sequence[Any]) -> None:
        make_reducible(ir)
        super().__init__(ir, like)
        self.module = module
        self.captured = dict(zip(self.free, captured, strict=False))
        self.lay_out()
        self.constants = {  # asked for first: no local variable may have a name that they need
            id(x): module.constant(x.value) for x in self.all_constants()
        }
        names = Names(ir, self.roots, self.jumps, like, self.free, taken=self.means_something)
        self.slots = names.assign()

    def means_something(self, name: str) -> bool:
        return name in self.module.bound or name in RESERVED or hasattr(builtins, name)

    def all_constants(self) -> Iterator[Const]:
        for block in self.ir.blocks:
            if is_way_out(block):
                continue
            for node in self.roots[block]:
                yield from constants_in(node)
            for x in self.jumps[block].operands:
                if type(x) is Const:
                    yield x
                elif type(x) is Node:
                    yield from constants_in(x)

    def arrange(self, call: Call) -> list[Operand]:
        """The operands in the order in which the text evaluates them."""
        if call.primitive is operator.setitem:
            target, key, value = call.args
            return [value, target, key]
        if call.primitive is operator.contains:
            return [call.args[1], call.args[0]]
        if call.primitive in (primitives.get_cell, primitives.load_global):
            return []
        if is_written_out(call):
            return list(call.args)
        return [call.fn, *call.args]

    # -- blocks

    def statements(self, block: Block) -> list[str]:
        """What a block does before it ends."""
        lines: list[str] = []
        roots, i = self.roots[block], 0
        while i < len(roots):
            run = self.unpacked(roots, i)
            if run:
                names = [self.name_of(v) for v in run]
                left = ", ".join(names) + ("," if len(names) == 1 else "")
                lines.append(f"{left} = {self.expression(roots[i].operands[1])}")
                i += 1 + sum(v is not None for v in run)
                continue
            lines.append(self.statement(roots[i]))
            i += 1
        return lines

    def unpacked(self, roots: list[Node], i: int) -> list[Var | None]:
        """The variables that a tuple is taken apart into, if nothing else reads it."""
        call = roots[i].call
        if call.primitive is not primitives.unpack or type(call.args[1]) is not Const:
            return []
        found: list[Var | None] = [None] * call.args[1].value
        for node in roots[i + 1 :]:
            if node.call.primitive is not operator.getitem or node.operands[0] is not call.out:
                break
            found[node.call.args[1].value] = node.call.out
        used = sum(v is not None for v in found)
        return found if used == self.uses.get(call.out, 0) else []

    def name_of(self, v: Var | None) -> str:
        """The local variable that a value goes to; nobody reads `_`."""
        return "_" if v is None else self.slots.get(v, "_")

    def statement(self, node: Node) -> str:
        call = node.call
        text = self.expression(node)
        if not self.uses.get(call.out, 0):
            return text
        return f"{self.slots[call.out]} = {text}"

    def passing(self, block: Block) -> list[str]:
        """Give the parameters of the next block their values."""
        (branch,) = self.jumps[block].branches
        assert branch.block is not None
        moves = []
        for x, param in zip(self.jumps[block].operands, branch.block.params, strict=True):
            name = self.name_of(param)
            text = self.expression(x)
            if text != name:
                moves.append((name, text, self.reads(x)))
        apart = all(
            name not in reads
            for i, (name, _, _) in enumerate(moves)
            for _, _, reads in moves[i + 1 :]
        )
        if apart:
            return [f"{name} = {text}" for name, text, _ in moves]
        left, right = ", ".join(m[0] for m in moves), ", ".join(m[1] for m in moves)
        return [f"{left} = {right}"]

    def reads(self, x: Any) -> set[str]:
        """The local variables that an operand reads."""
        read = x.loads() if type(x) is Node else [x] if type(x) is Var else []
        return {self.slots[v] for v in read if v in self.slots}

    def returned(self, block: Block) -> str:
        return f"return {self.expression(self.jumps[block].operands[0])}"

    def step(self, block: Block) -> list[str]:
        """Ask for the next item, where a block ends with the step of an iterator."""
        jump = self.jumps[block]
        if jump.iterator is None:
            return []
        done = self.module.mark(primitives.DONE)
        return [f"{self.name_of(jump.item)} = next({self.listed(jump.operands)}, {done})"]

    def condition(self, block: Block, negated: bool = False) -> str:
        """When the first of the two branches is taken."""
        jump = self.jumps[block]
        if jump.iterator is not None:
            text = f"({self.name_of(jump.item)} is DONE)"
        else:
            text = self.expression(jump.operands[0])
        return f"not {text}" if negated else text

    # -- expressions

    def expression(self, x: Any) -> str:
        """The text of an operand, in brackets where it is not one word: `tidy` takes them away."""
        if type(x) is Const:
            return self.constants.get(id(x)) or self.module.constant(x.value)
        if type(x) is Node:
            return self.call(x)
        return self.slots[x]

    def listed(self, operands: Sequence[Any]) -> str:
        return ", ".join(map(self.expression, operands))

    def call(self, node: Node) -> str:
        call = node.call
        if is_written_out(call):
            return WRITTEN[call.primitive](self, node)
        fn, *args = node.operands
        if is_method_of_constant(call):
            fn, args = Const(getattr(args[0].value, fn.value.__name__)), args[1:]
        n = len(args) - len(call.keywords)
        named = [f"{k}={self.expression(x)}" for k, x in zip(call.keywords, args[n:], strict=True)]
        return f"{self.expression(fn)}({', '.join([*map(self.expression, args[:n]), *named])})"


def is_method_of_constant(call: Call) -> bool:
    """Is it `C.method(c)` with a constant c of class C?"""
    if not call.args or type(call.args[0]) is not Const:
        return False
    found = getattr(type(call.args[0].value), getattr(call.primitive, "__name__", ""), None)
    return type(found) is MethodDescriptorType and found is call.primitive


def constants_in(node: Node) -> Iterator[Const]:
    """The constants of a tree whose text is asked for."""
    for x in node.operands[node.call.primitive is primitives.unpack :]:
        if type(x) is Const:
            yield x
        elif type(x) is Node:
            yield from constants_in(x)


def indented(lines: list[str], times: int = 1) -> list[str]:
    """The lines, further in."""
    return ["    " * times + line for line in lines]


def signature_text(code: CodeType) -> str:
    """The parameters as they stand between the brackets of `def`."""
    names, n = code.co_varnames, code.co_argcount
    parts = list(names[:n])
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    last = n + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        parts.append("*" + names[last])
        last += 1
    elif code.co_kwonlyargcount:
        parts.append("*")
    parts += names[n : n + code.co_kwonlyargcount]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append("**" + names[last])
    return ", ".join(parts)


UNREACHABLE = 'raise AssertionError("no way leads here")'
WAY_OUT = 'raise TypeError("a value is of another type than when this program was made")'


def is_way_out(block: Block) -> bool:
    """Does a block leave the program for what it was not made for?"""
    return any(c.primitive in WAYS_OUT for c in block.calls)
