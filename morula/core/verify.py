"""Is a function in SSA form what every pass takes for granted? One function per invariant.

Each yields the faults that it finds, with the block and the number of the call, or None for what is
around the calls. `checked` stands between passes; it does something only if MORULA_DEBUG is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from morula.core import debug
from morula.core.cfg import dominated, dominators
from morula.core.ir import IR, Block, Const, IRPrinter, Operand, Var, reachable

enabled = debug.ON
AROUND = 3  # the lines that a message shows before and after the fault


class InvalidIR(AssertionError):
    """A pass left a function that is not in SSA form."""


class Fault(NamedTuple):
    """What is wrong, and where: `at` is the index of a call; -1 the head, above are branches."""

    message: str
    block: Block
    at: int = -1
    subject: Var | None = None  # what the message begins with


Invariant = Callable[[IR], Iterator[Fault]]
INVARIANTS: list[Invariant] = []


def invariant(check: Invariant) -> Invariant:
    """Register a check; its name is the invariant's name."""
    INVARIANTS.append(check)
    return check


def verify(ir: IR, after: str = "") -> IR:
    """The function itself, if it is valid.

    Raises:
        InvalidIR: an invariant does not hold; the message has its name and the lines around the fault.
    """
    for check in INVARIANTS:
        fault = next(check(ir), None)
        if fault is not None:
            raise InvalidIR(_message(ir, check.__name__, fault, after))
    return ir


def checked(after: str, ir: IR) -> IR:
    """The function itself, verified if MORULA_DEBUG is set; `after` is the name of the pass."""
    return verify(ir, after) if enabled else ir


def _message(ir: IR, name: str, fault: Fault, after: str) -> str:
    place = f" after {after}" if after else ""
    printer = IRPrinter(ir)
    lines: list[str] = []
    marked = 0
    for block in ir.blocks:
        start = len(lines)
        lines += printer.block(block)
        if block is fault.block:
            marked = start + 1 + fault.at
    subject = "" if fault.subject is None else f"{printer.operand(fault.subject)} "
    head = f"{name.replace('_', ' ')}: {subject}{fault.message}\n  in {ir.name}{place}"
    first = max(0, marked - AROUND)
    around = enumerate(lines[first : marked + AROUND + 1], first)
    shown = [f"  {'>' if i == marked else ' '} {line}" for i, line in around]
    return "\n".join([head, *shown])


def _uses(ir: IR) -> Iterator[tuple[Operand, Block, int]]:
    """All operands, with the block and the index of the call or branch that reads them."""
    for block in ir.blocks:
        for i, call in enumerate(block.calls):
            for x in call.operands():
                yield x, block, i
        for i, branch in enumerate(block.branches, len(block.calls)):
            for x in branch.args:
                yield x, block, i
            if branch.cond is not None:
                yield branch.cond, block, i


def _definitions(ir: IR) -> Iterator[tuple[Var, Block, int]]:
    """All variables where they are defined, with the index of the call; -1 is the head of the block."""
    for v in ir.free:
        yield v, ir.entry, -1
    for block in ir.blocks:
        for v in block.params:
            yield v, block, -1
        for i, call in enumerate(block.calls):
            yield call.out, block, i


# -- the graph


@invariant
def targets_belong_to_the_function(ir: IR) -> Iterator[Fault]:
    """Every branch leads to a block that is listed, and each is listed once."""
    listed = set(ir.blocks)
    for block in ir.blocks:
        for i, branch in enumerate(block.branches, len(block.calls)):
            if branch.block is not None and branch.block not in listed:
                yield Fault("a branch to a block that is not listed", block, i)
    if len(listed) < len(ir.blocks):
        twice = next(b for b in ir.blocks if ir.blocks.count(b) > 1)
        yield Fault("a block is listed twice", twice)


@invariant
def entry_is_entered_once(ir: IR) -> Iterator[Fault]:
    """No branch leads to the first block."""
    for block in ir.blocks:
        for i, branch in enumerate(block.branches, len(block.calls)):
            if branch.block is ir.entry:
                yield Fault("a branch to the entry", block, i)


@invariant
def blocks_are_reachable(ir: IR) -> Iterator[Fault]:
    """Control can get to every block."""
    found = set(reachable(ir))
    for block in ir.blocks:
        if block not in found:
            yield Fault("control cannot reach this block", block)


@invariant
def last_branch_is_unconditional(ir: IR) -> Iterator[Fault]:
    """A block that has branches ends with one that is always taken, and with no other such one."""
    for block in ir.blocks:
        for i, branch in enumerate(block.branches, 1):
            last = i == len(block.branches)
            if last != (branch.cond is None):
                what = "the last branch has a condition" if last else "a branch behind this is dead"
                yield Fault(what, block, len(block.calls) + i - 1)


@invariant
def arguments_match_parameters(ir: IR) -> Iterator[Fault]:
    """A branch passes one argument per parameter of its block, a return passes one result."""
    for block in ir.blocks:
        for i, branch in enumerate(block.branches, len(block.calls)):
            expected = 1 if branch.block is None else len(branch.block.params)
            if len(branch.args) != expected:
                yield Fault(f"{len(branch.args)} arguments for {expected} parameters", block, i)


# -- variables


@invariant
def operands_are_variables_or_constants(ir: IR) -> Iterator[Fault]:
    """Nothing else stands where an operand is read."""
    for x, block, i in _uses(ir):
        if type(x) is not Var and type(x) is not Const:
            yield Fault(f"an operand of type {type(x).__name__}", block, i)


@invariant
def keywords_name_arguments(ir: IR) -> Iterator[Fault]:
    """A call has as many arguments as keywords at least, and each keyword once."""
    for block in ir.blocks:
        for i, call in enumerate(block.calls):
            if len(call.keywords) > len(call.args) or len(set(call.keywords)) < len(call.keywords):
                yield Fault(f"keywords {call.keywords} of {len(call.args)} arguments", block, i)


@invariant
def variables_are_defined_once(ir: IR) -> Iterator[Fault]:
    """One call or one parameter defines a variable."""
    seen: set[Var] = set()
    for v, block, i in _definitions(ir):
        if v in seen:
            yield Fault("is defined a second time", block, i, v)
        seen.add(v)


@invariant
def numbers_are_unique(ir: IR) -> Iterator[Fault]:
    """Two variables have two numbers, below the next one that the function will give."""
    seen: dict[int, Var] = {}
    for v, block, i in _definitions(ir):
        if seen.setdefault(v.id, v) is not v:
            yield Fault("has the number of another variable", block, i, v)
        if v.id >= ir.next_id:
            yield Fault("has a number that will be given again", block, i, v)


@invariant
def definitions_dominate_uses(ir: IR) -> Iterator[Fault]:
    """Whichever way control takes, a variable is defined before it is used."""
    defined = {v: (block, i) for v, block, i in _definitions(ir)}
    span = dominated(dominators(ir))
    for x, block, i in _uses(ir):
        if type(x) is not Var:
            continue
        if x not in defined:
            yield Fault("is not defined", block, i, x)
            continue
        home, at = defined[x]
        if home is block:
            dominates = at < i
        else:
            first, last = span[home]
            dominates = first < span[block][0] <= last
        if not dominates:
            yield Fault("may be used before it is defined", block, i, x)
