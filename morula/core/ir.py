"""The SSA form: variables, calls, blocks with arguments, branches; and its printed form.

A function is a list of blocks. A block has parameters, calls and branches; a call, the only kind
of statement, defines one variable. There are no phi nodes: what differs by the way a block was
reached is passed to its parameters. A block without branches ends in an exception.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple


class Position(NamedTuple):
    """Where in the user's source a call stands; columns are None where CPython dropped them.

    `within` is code of Morula's own that the call was inlined from, of which a user sees nothing.
    """

    line: int | None = None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None
    inlined: Inlined | None = None
    within: tuple[CodeType, ...] = ()

    def is_from(self, code: CodeType) -> bool:
        """Did a call come to its place by the inlining of a function with this code?"""
        if code in self.within:
            return True
        outer = self.inlined
        return outer is not None and (outer.code is code or outer.at.is_from(code))

    def outermost(self) -> Position:
        """Where the function itself was when it came here, by way of the functions inlined."""
        return self if self.inlined is None else self.inlined.at.outermost()


class Inlined(NamedTuple):
    """The function that a position is in: its code and globals, and where it was called."""

    code: CodeType
    namespace: dict[str, Any]
    at: Position


NOWHERE = Position()


def count_of_parameters(code: CodeType) -> int:
    """All parameters of a function, `*args` and `**kwargs` among them."""
    stars = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + stars


class Var:
    """An SSA value, defined once: by a call or as a parameter of a block."""

    __slots__ = ("id", "name")
    if TYPE_CHECKING:  # it has none: who asks has made sure that the operand is a constant
        value: Any

    def __init__(self, id: int, name: str = "") -> None:
        self.id = id
        self.name = name  # the user's variable, for reading only

    def __repr__(self) -> str:
        return f"%{self.id}.{self.name}" if self.name else f"%{self.id}"


class Const:
    """A constant operand; two are the same if they are the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return describe_constant(self.value)


Operand = Var | Const


class Call:
    """`out = fn(*args)`; the last `len(keywords)` arguments are passed by these names.

    A removable call has no effect but its result: it may go if nobody uses it. A movable one, what is
    more, depends on nothing that may change: it may be computed later, and once for all.
    """

    __slots__ = ("args", "fn", "keywords", "movable", "out", "position", "removable")

    def __init__(
        self,
        out: Var,
        fn: Operand,
        args: Iterable[Operand],
        keywords: tuple[str, ...] = (),
        position: Position = NOWHERE,
    ) -> None:
        self.out = out
        self.fn = fn
        self.args = tuple(args)
        self.keywords = keywords
        self.position = position
        self.removable = False
        self.movable = False

    def copy(self) -> Call:
        """An independent copy."""
        twin = Call(self.out, self.fn, self.args, self.keywords, self.position)
        twin.removable = self.removable
        twin.movable = self.movable
        return twin

    def operands(self) -> tuple[Operand, ...]:
        """The callee and the arguments."""
        return (self.fn, *self.args)

    @property
    def primitive(self) -> Any:
        """The callable itself where it is a constant, else None."""
        return self.fn.value if type(self.fn) is Const else None

    def __repr__(self) -> str:
        return f"{self.out} = {self.fn}{self.args}"


class Branch:
    """Go to `block` with `args` for its parameters, if `cond` holds; None as block: return."""

    __slots__ = ("args", "block", "cond")

    def __init__(
        self, block: Block | None, args: Iterable[Operand] = (), cond: Operand | None = None
    ) -> None:
        self.block = block
        self.args: list[Operand] = list(args)
        self.cond = cond

    def __repr__(self) -> str:
        target = "return" if self.block is None else f"goto {id(self.block):x}"
        return f"{target}{self.args} if {self.cond}"


class Block:
    """A straight line of calls; control leaves it by the first branch whose condition holds."""

    __slots__ = ("branches", "calls", "params")

    def __init__(self) -> None:
        self.params: list[Var] = []
        self.calls: list[Call] = []
        self.branches: list[Branch] = []

    def successors(self) -> list[Block]:
        """The blocks that control may go to, in the order of the branches."""
        return [b.block for b in self.branches if b.block is not None]

    def replace(self, now: Callable[[Operand], Operand]) -> None:
        """Put `now(x)` in the place of every operand x."""
        for call in self.calls:
            call.fn, *args = [now(x) for x in call.operands()]
            call.args = tuple(args)
        for branch in self.branches:
            branch.args = [now(x) for x in branch.args]
            branch.cond = None if branch.cond is None else now(branch.cond)

    @property
    def returns(self) -> bool:
        """Does the block end the function with a result?"""
        return any(b.block is None for b in self.branches)


_calls_of = operator.attrgetter("calls")


@dataclass(slots=True)
class IR:
    """A function in SSA form; `blocks[0]` is the entry and its parameters are the arguments.

    `free` are the cells that the function closes over, in the order of `co_freevars`.
    """

    name: str
    filename: str = "<ir>"
    blocks: list[Block] = field(default_factory=list)
    free: list[Var] = field(default_factory=list)
    next_id: int = 0
    kept: list[Block] = field(default_factory=list)  # not to be merged with others
    cold: list[Block] = field(default_factory=list)  # rarely run: they stand behind the others

    def var(self, name: str = "") -> Var:
        """A new variable."""
        self.next_id += 1
        return Var(self.next_id - 1, name)

    def block(self) -> Block:
        """A new block at the end."""
        block = Block()
        self.blocks.append(block)
        return block

    def cut(self, block: Block, i: int, *params: Var) -> Block:
        """What a block does from its i-th call on, in a block of its own; no way leads there yet."""
        rest = self.block()
        rest.params, rest.calls, rest.branches = list(params), block.calls[i:], block.branches
        block.calls, block.branches = block.calls[:i], []
        return rest

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]

    @property
    def params(self) -> list[Var]:
        """The arguments of the function."""
        return self.blocks[0].params

    def calls(self) -> Iterator[Call]:
        """All calls, block by block."""
        return itertools.chain.from_iterable(map(_calls_of, self.blocks))

    def passed(self) -> Iterator[tuple[Var, Operand]]:
        """Every parameter of a block with what it is passed, branch by branch."""
        for block in self.blocks:
            for branch in block.branches:
                if branch.block is not None:
                    yield from zip(branch.block.params, branch.args, strict=True)

    def returned(self) -> list[Operand]:
        """What the function may return."""
        ends = [
            branch for block in self.blocks for branch in block.branches if branch.block is None
        ]
        return [x for branch in ends for x in branch.args]

    def predecessors(self) -> dict[Block, list[tuple[Block, Branch]]]:
        """For every block the branches that lead to it, with the blocks they stand in."""
        found: dict[Block, list[tuple[Block, Branch]]] = {b: [] for b in self.blocks}
        for block in self.blocks:
            for branch in block.branches:
                if branch.block is not None:
                    found[branch.block].append((block, branch))
        return found

    def copy(self) -> IR:
        """An independent copy; the variables are shared, for they do not change."""
        new = IR(self.name, self.filename, [], list(self.free), self.next_id)
        twin = {old: new.block() for old in self.blocks}
        for old, block in twin.items():
            block.params = list(old.params)
            block.calls = [c.copy() for c in old.calls]
            block.branches = [
                Branch(None if b.block is None else twin[b.block], b.args, b.cond)
                for b in old.branches
            ]
        return new

    def __str__(self) -> str:
        return IRPrinter(self).text()


def substitute(ir: IR, mapping: dict[Var, Operand]) -> None:
    """Replace uses of variables, following chains of replacements."""
    if not mapping:
        return
    final: dict[Operand, Operand] = {x: replaced(mapping, x) for x in mapping}
    for block in ir.blocks:
        for call in block.calls:
            call.fn = final.get(call.fn, call.fn)
            for a in call.args:
                if a in final:
                    call.args = tuple([final.get(b, b) for b in call.args])
                    break
        for branch in block.branches:
            branch.args = [final.get(a, a) for a in branch.args]
            if branch.cond is not None:
                branch.cond = final.get(branch.cond, branch.cond)


def replace_operands(call: Call, mapping: dict[Var, Operand]) -> None:
    """Replace what one call reads, following chains of replacements."""
    call.fn = replaced(mapping, call.fn)
    for a in call.args:
        if a in mapping:
            call.args = tuple([replaced(mapping, b) for b in call.args])
            return


def replaced(mapping: dict[Var, Operand], x: Operand) -> Operand:
    """What stands for an operand, following chains of replacements."""
    while x in mapping:
        x = mapping[x]
    return x


def count_uses(ir: IR) -> dict[Var, int]:
    """How often each variable is read, in the calls and at the ends of the blocks."""
    uses: dict[Var, int] = {}
    for block in ir.blocks:
        for call in block.calls:
            for x in call.operands():
                if type(x) is Var:
                    uses[x] = uses.get(x, 0) + 1
        for branch in block.branches:
            for x in (*branch.args, branch.cond):  # type: ignore[assignment]
                if type(x) is Var:
                    uses[x] = uses.get(x, 0) + 1
    return uses


def reachable(ir: IR) -> list[Block]:
    """The blocks that control can reach, in reverse postorder."""
    order: list[Block] = []
    seen = {ir.entry}
    stack: list[tuple[Block, Iterator[Block]]] = [(ir.entry, iter(ir.entry.successors()))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(successor.successors())))
                break
        else:
            stack.pop()
            order.append(block)
    return order[::-1]


class IRPrinter:
    """The printed form, with ids counted anew from the top, so that equal functions print alike.

    `constants` tells, after `text`, what the names of constants that are no literals stand for; two
    objects of one name are told apart by a number: `$dict`, `$dict$2`.
    """

    def __init__(self, ir: IR) -> None:
        self.ir = ir
        self.ids: dict[Var, int] = {}
        self.labels = {block: f"b{i}" for i, block in enumerate(ir.blocks)}
        self.constants: dict[str, Any] = {}
        self.names: dict[int, str] = {}  # of these constants, by identity

    def text(self) -> str:
        """The whole function."""
        lines = [f"{self.ir.name}:" + (f"  # {self.ir.filename}" if self.ir.filename else "")]
        if self.ir.free:
            lines.append(f"    closure {', '.join(self.operand(v) for v in self.ir.free)}")
        for block in self.ir.blocks:
            lines += self.block(block)
        return "\n".join(lines)

    def block(self, block: Block) -> list[str]:
        """The lines of a block."""
        params = ", ".join(self.operand(p) for p in block.params)
        notes = [
            w for w, marked in (("kept", self.ir.kept), ("cold", self.ir.cold)) if block in marked
        ]
        lines = [_noted(f"{self.labels[block]}({params}):", notes)]
        for call in block.calls:
            line = call.position.line
            notes = [] if line is None else [str(line)]
            if call.removable:
                notes.append("removable")
            lines.append(_noted(f"    {self.operand(call.out)} = {self.call(call)}", notes))
        lines += ["    " + self.branch(branch) for branch in block.branches]
        return lines if block.branches else [*lines, "    unreachable"]

    def call(self, call: Call) -> str:
        """The callee and its arguments."""
        n = len(call.args) - len(call.keywords)
        args = [self.operand(a) for a in call.args[:n]]
        args += [
            f"{k}={self.operand(a)}" for k, a in zip(call.keywords, call.args[n:], strict=True)
        ]
        return f"{self.operand(call.fn)}({', '.join(args)})"

    def branch(self, branch: Branch) -> str:
        """Where it goes, with what and when."""
        args = ", ".join(self.operand(a) for a in branch.args)
        if branch.block is None:
            head = f"return {args}"
        else:
            head = f"goto {self.labels.get(branch.block, 'nowhere')}({args})"
        return head if branch.cond is None else f"{head} if {self.operand(branch.cond)}"

    def operand(self, x: Operand) -> str:
        """A variable by its number and the user's name, or a constant."""
        if type(x) is Const:
            return self.constant(x.value)
        if type(x) is not Var:
            return f"?{x!r}"  # no operand: `verify` shows it
        if x not in self.ids:
            self.ids[x] = len(self.ids)
        return f"%{self.ids[x]}.{x.name}" if x.name else f"%{self.ids[x]}"

    def constant(self, value: Any) -> str:
        """A literal, or the name that stands for the constant in the table."""
        if is_literal(value):
            return repr(value)
        if type(value) is tuple:
            return describe_tuple(value, self.constant)
        name = self.names.get(id(value))
        if name is None:
            name = base = describe_constant(value)
            k = 1
            while name in self.constants:
                k += 1
                name = f"{base}${k}"
            self.names[id(value)] = name
            self.constants[name] = value
        return name


def _noted(text: str, notes: list[str]) -> str:
    return f"{text:<40}  # {' '.join(notes)}" if notes else text


def is_literal(value: Any) -> bool:
    """Does the printed form of a constant read back as the same value?"""
    if value is None or value is ... or type(value) in (bool, int, str, bytes):
        return True
    if type(value) in (float, complex):
        try:
            return repr(ast.literal_eval(repr(value))) == repr(value)
        except ValueError:  # nan, inf
            return False
    return False


def describe_tuple(values: tuple[Any, ...], describe: Callable[[Any], str]) -> str:
    """A tuple display."""
    inside = ", ".join(describe(v) for v in values)
    return f"({inside},)" if len(values) == 1 else f"({inside})"


def describe_constant(value: Any) -> str:
    """How a constant prints: as a literal, or by its qualified name."""
    if is_literal(value):
        return repr(value)
    if type(value) is tuple:
        return describe_tuple(value, describe_constant)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if isinstance(name, str):
        module = getattr(value, "__module__", None)
        text = name if module in (None, "builtins") else f"{str(module).lstrip('_')}.{name}"
        text = text.replace("<", "⟨").replace(">", "⟩")
        if _NAME.fullmatch(text):
            return text
    return f"${type(value).__name__}"


# What the name of a constant may look like in the printed form.
_NAME = re.compile(r"[^\W\d][^\s,(){}=\[\]\"'#%$]*")


Operation = Callable[..., Any]
