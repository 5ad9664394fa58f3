"""The printed form of the SSA form, read back.

`parse(str(ir))` gives a function that is `alike`: the same up to the numbers of variables and the
columns of positions. A constant without a literal form prints by a name; `constants` says what these
stand for (`IRPrinter.constants` has them all), else the name is looked up as `module.name`.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from morula.core.ir import IR, Block, Branch, Call, Const, IRPrinter, Operand, Position, Var

_HEAD = re.compile(r"(?P<name>.*?):(?:  # (?P<filename>.*))?")
_BLOCK = re.compile(r"(?P<label>\w+)\((?P<params>.*?)\):\s*(?:# (?P<notes>.*))?")
_NOTES = re.compile(r"\s*(?:# (?P<line>\d+)?\s*(?P<removable>removable)?)?")
_VARIABLE = re.compile(r"%(?P<id>\d+)(?:\.(?P<name>[^\s,(){}=:]+))?")
_LITERAL = re.compile(
    r"b?'(?:[^'\\]|\\.)*'|b?\"(?:[^\"\\]|\\.)*\""  # text
    r"|\(-?[\d.]+(?:e[+-]\d+)?[+-][\d.]+(?:e[+-]?\d+)?j\)"  # a complex number
    r"|-?\d[\d.]*(?:e[+-]?\d+)?j?"  # any other number
    r"|(?:None|True|False|Ellipsis)\b"
)
_NAME = re.compile(r"[^\s,(){}=\[\]\"'#%]+")
_KEYWORD = re.compile(r"(\w+)=")


def parse(text: str, constants: Mapping[str, Any] | None = None) -> IR:
    """The function of which `text` is the printed form.

    Raises:
        ValueError: it is no printed form; the message has the line.
    """
    return _Parser(text, constants or {}).function()


class _Parser:
    def __init__(self, text: str, constants: Mapping[str, Any]) -> None:
        self.lines = [line for line in text.splitlines() if line.strip()]
        self.constants = constants
        self.ir = IR("")
        self.variables: dict[str, Var] = {}
        self.blocks: dict[str, Block] = {}
        self.line = ""  # the one that is being read, and how far
        self.at = 0

    def function(self) -> IR:
        head = _HEAD.fullmatch(self.lines[0])
        if head is None:
            raise ValueError(f"not the head of a function: {self.lines[0]!r}")
        self.ir.name, self.ir.filename = head["name"], head["filename"] or ""
        for line in self.lines[1:]:  # jumps may go forward
            if not line[0].isspace():
                self.blocks[line.partition("(")[0]] = self.ir.block()
        block: Block | None = None
        for line in self.lines[1:]:
            self.line = line
            if not self.line[0].isspace():
                block = self.head_of_block()
                continue
            self.at = len(self.line) - len(self.line.lstrip())
            if self.take("closure "):
                self.ir.free = [self.variable() for _ in self.items("")]
            elif block is None:
                raise self.error("a block")
            else:
                self.statement(block)
        return self.ir

    def head_of_block(self) -> Block:
        match = _BLOCK.fullmatch(self.line)
        if match is None:
            raise ValueError(f"not the head of a block: {self.line!r}")
        block = self.blocks[match["label"]]
        self.at = match.start("params")
        block.params = [self.variable() for _ in self.items(")")]
        notes = (match["notes"] or "").split()
        self.ir.kept += [block] * ("kept" in notes)
        self.ir.cold += [block] * ("cold" in notes)
        return block

    def statement(self, block: Block) -> None:
        if self.take("unreachable"):
            return
        if self.take("return "):
            block.branches.append(self.condition(Branch(None, self.operands(""))))
        elif self.take("goto "):
            label = self.pattern(_NAME, "a label")[0]
            if label not in self.blocks:
                raise self.error("the label of a block")
            self.expect("(")
            block.branches.append(self.condition(Branch(self.blocks[label], self.operands(")"))))
        else:
            block.calls.append(self.call())

    def condition(self, branch: Branch) -> Branch:
        if self.take(" if "):
            branch.cond = self.operand()
        if self.line[self.at :].strip():
            raise self.error("the end of a branch")
        return branch

    def call(self) -> Call:
        out = self.variable()
        self.expect(" = ")
        fn = self.operand()
        self.expect("(")
        args, keywords = [], []
        for _ in self.items(")"):
            if keyword := _KEYWORD.match(self.line, self.at):
                keywords.append(keyword[1])
                self.at = keyword.end()
            args.append(self.operand())
        notes = _NOTES.fullmatch(self.line, self.at)
        if notes is None:
            raise self.error("the end of a call")
        line = None if notes["line"] is None else int(notes["line"])
        call = Call(out, fn, args, tuple(keywords), Position(line))
        call.removable = notes["removable"] is not None
        return call

    # -- pieces of a line

    def take(self, text: str) -> bool:
        found = self.line.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise self.error(repr(text))

    def pattern(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = pattern.match(self.line, self.at)
        if match is None:
            raise self.error(what)
        self.at = match.end()
        return match

    def items(self, end: str) -> Iterator[None]:
        """Go through items between commas, to the bracket `end` if there is one."""
        if end and self.take(end):
            return
        yield
        while self.take(", "):
            yield
        self.expect(end)

    def operands(self, end: str) -> list[Operand]:
        return [self.operand() for _ in self.items(end)]

    def variable(self) -> Var:
        match = self.pattern(_VARIABLE, "a variable")
        if match["id"] not in self.variables:
            self.variables[match["id"]] = self.ir.var(match["name"] or "")
        return self.variables[match["id"]]

    def operand(self) -> Operand:
        return self.variable() if self.line.startswith("%", self.at) else Const(self.constant())

    def constant(self) -> Any:
        if match := _LITERAL.match(self.line, self.at):
            self.at = match.end()
            return ... if match[0] == "Ellipsis" else ast.literal_eval(match[0])
        if self.take("("):
            return self.rest_of_tuple()
        name = self.pattern(_NAME, "an operand")[0]
        return self.constants[name] if name in self.constants else self.look_up(name)

    def rest_of_tuple(self) -> tuple[Any, ...]:
        values = []
        while not self.take(")"):
            values.append(self.constant())
            _ = self.take(", ") or self.take(",")
        return tuple(values)

    def look_up(self, name: str) -> Any:
        """A builtin, or what stands in a module under this name."""
        parts = name.split(".")
        for n in range(len(parts), -1, -1):
            try:
                value = importlib.import_module(".".join(parts[:n])) if n else builtins
                for part in parts[n:]:
                    value = getattr(value, part)
            except (ImportError, AttributeError, ValueError):
                continue
            return value
        raise self.error(f"a constant of the table; {name} is none")

    def error(self, expected: str) -> ValueError:
        return ValueError(f"expected {expected} at column {self.at} of {self.line!r}")


def alike(a: IR, b: IR) -> bool:
    """Are two functions the same up to the numbers of variables and the columns of positions?"""
    first, second = IRPrinter(a), IRPrinter(b)
    if first.text() != second.text():
        return False
    return all(second.constants[name] is value for name, value in first.constants.items())
