"""Loops that are run by a function: `for x in head(items): body` becomes `run(body, ..., items)`.

A callable that is registered as the head of loops, as `for i in checkpointed(range(n))` has one,
says which function runs the loop. Captured variables and attributes whose values are not known yet
count by their name: the function that runs the loop is told what they are. The body becomes a
function of its own,

    body(*carried, *fixed, item) -> (0, *carried) to go on, (k, *live) to leave by the way k,

of the variables that an iteration hands to the next, of those it only reads, and of the item; `live`
are its variables that are read behind the loop. `run` gives the way by which the loop was left (0:
there were no more items) and the live variables. That is done to the SSA form, whatever the body is.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from morula.core import errors, protected
from morula.core.cfg import dominates, dominators, loop_body, loop_step
from morula.core.emit import emit
from morula.core.ir import (
    IR,
    Block,
    Branch,
    Call,
    Const,
    Operand,
    Var,
    count_uses,
    reachable,
    substitute,
)
from morula.core.primitives import (
    build_tuple,
    get_cell,
    import_from,
    import_name,
    load_global,
)

_runners: dict[int, tuple[Any, Callable[..., Any]]] = {}


def runs_loops(head: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what runs the loops over what `head` gives.

    `run(body, carried, fixed, final, head, *args, **kwargs)` gets, besides the body, the initial values
    of the carried variables, those that are only read, for each live variable its place among the
    carried ones or None, and the head, which may be another callable of that name, with its arguments.
    """

    def register(run: Callable[..., Any]) -> Callable[..., Any]:
        _runners[id(head)] = head, run
        return run

    return register


def names_head(code: CodeType, namespace: dict[str, Any]) -> bool:
    """May there be a loop over a registered head in a function with this code?"""
    names = {head.__name__ for head, _ in _runners.values()}
    return not names.isdisjoint((*code.co_names, *code.co_freevars)) or any(
        id(namespace.get(name)) in _runners for name in code.co_names
    )


def outlined(ir: IR, code: CodeType, namespace: dict[str, Any]) -> IR:
    """The function with its loops over registered heads outlined; itself if there are none."""
    made = made_by(ir)
    if not any(runner_of(call, made) for call in made.values()):
        return ir
    ir = turned(ir.copy())
    left: set[Block] = set()
    while True:
        ir.blocks = reachable(ir)
        found = next((loop for loop in loops_over_heads(ir) if loop[0] not in left), None)
        if found is None:
            return ir
        outlining = Outlining(ir, code, namespace, *found)
        why_not = outlining.why_not()
        if not why_not:
            outlining.run()
        elif outlining.runner.is_known:
            raise outlining.refusal(why_not)
        else:
            left.add(outlining.header)


@dataclass(frozen=True)
class Runner:
    """What runs the loops over a head; is it known to be the head, and not by its name alone?"""

    head: Any
    run: Callable[..., Any]
    is_known: bool


def runner_of(call: Call, made: dict[Var, Call]) -> Runner | None:
    """What runs loops over what a call gives."""
    fn = resolved(call.fn, made)
    if fn is not None:
        return Runner(*_runners[id(fn)], is_known=True) if id(fn) in _runners else None
    source = made.get(call.fn)  # type: ignore[arg-type]
    if source is None or source.primitive not in (get_cell, getattr):
        return None
    name = source.args[1].value
    found = next((pair for pair in _runners.values() if pair[0].__name__ == name), None)
    return Runner(*found, is_known=False) if found else None


def loops_over_heads(ir: IR) -> Iterator[tuple[Block, Call, Call, Runner]]:
    """The loops over registered heads: header, `iter`, the head's call and what runs them."""
    made = made_by(ir)
    for header in ir.blocks:
        item = loop_step(header)
        if item is None or len(header.calls) != 2:
            continue
        iterator = made.get(item.args[0])  # type: ignore[arg-type]
        if iterator is None or iterator.primitive is not iter:
            continue
        call = made.get(iterator.args[0])  # type: ignore[arg-type]
        runner = runner_of(call, made) if call else None
        if call and runner:
            yield header, iterator, call, runner


def turned(ir: IR) -> IR:
    """`enumerate(head(items))` is `head(enumerate(items))`; so are zip and reversed."""
    while True:
        made, uses = made_by(ir), count_uses(ir)
        for outer in made.values():
            if resolved(outer.fn, made) in (enumerate, zip, reversed):
                inner = [made[x] for x in outer.operands() if x in made and is_head(made[x], made)]
                if len(inner) == 1 and inner[0].args and uses[inner[0].out] == 1:
                    turn(ir, outer, inner[0])
                    break
        else:
            return ir


def is_head(call: Call, made: dict[Var, Call]) -> bool:
    """Is it the call of what is known to be the head of loops?"""
    runner = runner_of(call, made)
    return runner is not None and runner.is_known


def turn(ir: IR, outer: Call, head: Call) -> None:
    """Let `head` be called with what `outer` gives, not the other way round."""
    args = [head.args[0] if x is head.out else x for x in outer.args]
    inner = Call(ir.var(), outer.fn, args, outer.keywords, outer.position)
    whole = Call(outer.out, head.fn, [inner.out, *head.args[1:]], head.keywords, head.position)
    for block in ir.blocks:
        block.calls = [c for c in block.calls if c is not head]
        if outer in block.calls:
            at = block.calls.index(outer)
            block.calls[at : at + 1] = [inner, whole]


def made_by(ir: IR) -> dict[Var, Call]:
    """The call of each variable that is made by one."""
    return {call.out: call for call in ir.calls()}


def resolved(x: Operand, made: dict[Var, Call]) -> Any:
    """The function or module that an operand names, or None."""
    if type(x) is Const:
        return x.value
    call = made.get(x)  # type: ignore[arg-type]
    if call is None:
        return None
    if call.primitive is load_global:
        namespace, name = [a.value for a in call.args]
        return namespace.get(name, vars(builtins).get(name))
    if call.primitive in (getattr, import_from):
        owner, name = resolved(call.args[0], made), call.args[1].value
        return vars(owner).get(name) if isinstance(owner, type(sys)) else None
    if call.primitive is import_name:
        return sys.modules.get(call.args[1].value)
    return None


class Outlining:
    """One loop, and the function that holds it."""

    def __init__(
        self,
        ir: IR,
        code: CodeType,
        namespace: dict[str, Any],
        header: Block,
        iterator: Call,
        head: Call,
        runner: Runner,
    ) -> None:
        self.ir = ir
        self.code = code
        self.namespace = namespace
        self.header = header
        self.iterator = iterator
        self.head = head
        self.runner = runner
        self.item = header.calls[0].out
        self.parent = dominators(ir)
        self.loop = self.find_loop()
        self.home = {
            v: block
            for block in ir.blocks
            if block in self.loop
            for v in (*block.params, *(c.out for c in block.calls))
        }
        self.exits = [
            (block, branch)
            for block in ir.blocks
            if block in self.loop and block is not header
            for branch in block.branches
            if branch.block is None or branch.block not in self.loop
        ]

    def find_loop(self) -> set[Block]:
        """The header, and the blocks from which control comes back to it."""
        predecessors = self.ir.predecessors()
        back = [b for b, _ in predecessors[self.header] if dominates(self.parent, self.header, b)]
        return loop_body(self.header, back, predecessors)

    def run(self) -> None:
        """Rewrite the function."""
        live, fixed = self.live(), self.fixed()
        ways = [self.header.branches[0], *[branch for _, branch in self.exits]]
        targets = [(branch.block, list(branch.args)) for branch in ways]
        self.put_run(self.body(live, fixed), fixed, live, targets)

    def why_not(self) -> str:
        """Why it cannot be outlined, if so."""
        uses = count_uses(self.ir)
        once = [self.head.out, self.iterator.out]
        if any(uses[v] != 1 for v in once) or self.iterator.out in self.home:
            return "whose iterator is used elsewhere too"
        inside = [call for block in self.loop for call in block.calls]
        if any(getattr(c.primitive, "__module__", "") == protected.__name__ for c in inside):
            return "with try or with inside"
        return ""

    def refusal(self, what: str) -> errors.UnsupportedError:
        """The error for a loop that cannot be outlined."""
        name = errors.qualified_name(self.runner.head)
        where = f"{self.ir.filename}:{self.head.position.line}, in {self.ir.name}"
        hint = "Way out: put that part of the body into a function of its own"
        return errors.unsupported(f"a loop over {name} {what}", where, hint)

    def live(self) -> list[Var]:
        """The variables of the loop that are read behind it, or passed on the way out."""
        found: dict[Var, None] = {}
        for block in self.ir.blocks:
            if block not in self.loop:
                for call in block.calls:
                    found.update(dict.fromkeys(x for x in call.operands() if x in self.home))
            for branch in block.branches:
                if branch.block is None or branch.block not in self.loop:
                    args = (*branch.args, *((branch.cond,) if block not in self.loop else ()))
                    found.update(dict.fromkeys(x for x in args if x in self.home))
        return list(found)

    def fixed(self) -> list[Var]:
        """The variables from outside that the body reads."""
        found: dict[Var, None] = {}
        for block in self.loop:
            if block is self.header:
                operands: list[Any] = list(self.header.branches[1].args)
            else:
                operands = [x for call in block.calls for x in call.operands()]
                for branch in block.branches:
                    operands += [*branch.args, branch.cond]
            found.update(
                dict.fromkeys(x for x in operands if type(x) is Var and x not in self.home)
            )
        return sorted(found, key=lambda v: v.id)

    def place_of(self, v: Var) -> int | None:
        """Where a variable stands among those that are carried."""
        return self.header.params.index(v) if v in self.header.params else None

    # -- the body

    def body(self, live: list[Var], fixed: list[Var]) -> FunctionType:
        """One iteration as a function; takes the blocks of the loop out of the function."""
        ir = IR(self.ir.name, self.ir.filename, next_id=self.ir.next_id)
        entry = ir.block()
        entry.params = [*self.header.params, *fixed, self.item]
        first = self.header.branches[1]
        entry.branches = [Branch(first.block, first.args)]
        ways = {id(branch): k for k, (_, branch) in enumerate(self.exits, 1)}
        ir.blocks += [b for b in self.ir.blocks if b in self.loop and b is not self.header]
        for block in list(ir.blocks):
            for branch in block.branches:
                k = ways.get(id(branch))
                if branch.block is self.header:
                    self.leave(ir, branch, [Const(0), *branch.args])
                elif k is not None:
                    values = [
                        v if dominates(self.parent, self.home[v], block) else Const(None)
                        for v in live
                    ]
                    self.leave(ir, branch, [Const(k), *values])
        self.ir.blocks = [b for b in self.ir.blocks if b not in ir.blocks]
        like = signature(len(entry.params)).replace(
            co_name=self.code.co_name,
            co_qualname=self.code.co_qualname,
            co_filename=self.code.co_filename,
            co_firstlineno=self.code.co_firstlineno,
        )
        return FunctionType(emit(ir.copy(), like, self.namespace), self.namespace)

    def leave(self, ir: IR, branch: Branch, values: list[Operand]) -> None:
        """Let a branch of the body end the iteration with these values."""
        end, out = ir.block(), ir.var()
        end.calls = [Call(out, Const(build_tuple), values, (), self.head.position)]
        end.branches = [Branch(None, [out])]
        branch.block, branch.args = end, []

    # -- the function that is left

    def put_run(
        self,
        body: FunctionType,
        fixed: list[Var],
        live: list[Var],
        ways: list[tuple[Block | None, list[Operand]]],
    ) -> None:
        """A call of what runs the loop in the place of it, then on by the way that it gives."""
        ir, header, head = self.ir, self.header, self.head
        final = tuple([self.place_of(v) for v in live])
        for block in ir.blocks:
            block.calls = [c for c in block.calls if c is not head and c is not self.iterator]
        ends = [self.way_out(target, args) for target, args in ways]
        after = {v: ir.var(v.name) for v in live}
        substitute(ir, dict(after))
        calls: list[Call] = []

        def append(fn: Any, *args: Operand, keywords: tuple[str, ...] = ()) -> Var:
            out = ir.var()
            calls.append(Call(out, Const(fn), args, keywords, head.position))
            return out

        carried, read = append(build_tuple, *header.params), append(build_tuple, *fixed)
        given = (Const(body), carried, read, Const(final), head.fn, *head.args)
        out = append(self.runner.run, *given, keywords=head.keywords)
        way, values = (
            append(operator.getitem, out, Const(0)),
            append(operator.getitem, out, Const(1)),
        )
        for i, v in enumerate(after.values()):
            calls.append(Call(v, Const(operator.getitem), (values, Const(i)), (), head.position))
        block = header
        block.calls = calls
        for k, end in enumerate(ends[1:], 1):
            test = ir.var()
            block.calls.append(Call(test, Const(operator.eq), (way, Const(k)), (), head.position))
            rest = ir.block()
            block.branches = [Branch(end, (), test), Branch(rest)]
            block = rest
        block.branches = [Branch(ends[0])]
        ir.blocks = reachable(ir)

    def way_out(self, target: Block | None, args: list[Operand]) -> Block:
        """A block that goes on behind the loop."""
        block = self.ir.block()
        block.branches = [Branch(target, args)]
        return block


def signature(n: int) -> CodeType:
    """The code of a function of n arguments."""
    names = ", ".join(f"x{i}" for i in range(n))
    code: CodeType = eval(f"lambda {names}: None").__code__
    return code
