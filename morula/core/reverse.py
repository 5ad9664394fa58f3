"""The reverse transform: a function in SSA form -> the same function followed by its adjoint.

Every call `y = f(x)` becomes `y, back = J(f, x)`; the adjoint runs the blocks backwards along the
transposed graph and calls the pullbacks (Innes, Don't Unroll Adjoint, arXiv:1810.07951). What kind
of pair a call gives is decided by the planner; nothing is known here of values.

`Reversal.build` writes the adjoint blocks with plain references to variables of the primal. Passes
may then inline and simplify. `Reversal.resolve` makes the references good: a variable that is
computed once per run reaches the adjoint as a block argument, one that is computed in a loop is
pushed on the loop's tape at the end of the iteration and pulled when the adjoint comes by.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Set
from dataclasses import dataclass
from typing import Any

from morula.core.cfg import (
    Joins,
    Loop,
    canonical_loops,
    dominators,
    is_reducible,
    leads_to,
    loop_body,
    loop_step,
    one_exit,
)
from morula.core.cotangents import ZERO, accumulate
from morula.core.ir import (
    IR,
    NOWHERE,
    Block,
    Branch,
    Call,
    Const,
    Operand,
    Position,
    Var,
    count_uses,
    reachable,
)
from morula.core.primitives import (
    DONE,
    advance,
    build_list,
    build_tuple,
    list_append,
    pull,
)
from morula.core.reducible import make_reducible
from morula.core.ssa import Placed, Variables, prune_params


@dataclass(slots=True)
class Pair:
    """How the value and the pullback of a call are computed.

    `forward(*args)` gives both. The pullback gives a tuple; `slots` says which of its items is the
    cotangent of which operand of the call.
    """

    forward: Operand
    args: tuple[Operand, ...]
    keywords: tuple[str, ...]
    slots: tuple[tuple[int, Operand], ...]
    always: bool = True  # must the pullback run even if no cotangent reaches the value?


Planner = Callable[[Call], Pair | None]


# Marks that `build` leaves for `resolve`: calls with a Loop as argument.


def enter_loop(loop: Loop) -> Any:
    """Primal, at the end of the preheader: the tape begins."""


def end_iteration(loop: Loop) -> Any:
    """Primal, in the latch: what the adjoint of this iteration needs goes on the tape."""


def enter_adjoint(loop: Loop) -> Any:
    """Adjoint, on the way into the loop: the tape is read from its end."""


def more_iterations(loop: Loop) -> Any:
    """Adjoint, behind the header: was there an iteration before?"""


def begin_iteration(loop: Loop) -> Any:
    """Adjoint, on the way to the latch: what the iteration needs comes off the tape."""


# What stands between a counter and the index that is made of it.
STEPS = (operator.add, operator.sub, build_tuple, slice, range)
MARKS = (enter_loop, end_iteration, enter_adjoint, more_iterations, begin_iteration)


class Reversal:
    """A primal and its adjoint under construction; `ir` holds the blocks of both.

    After `build`, control goes from the primal's exit to `start`, the first adjoint block, with the
    cotangent `seed` of the `result`; the block `end` has the cotangents of the parameters.
    """

    def __init__(
        self,
        ir: IR,
        plan: Planner,
        wanted: list[Var] | None = None,
        is_truth_value: Callable[[Operand], bool] = lambda x: False,
    ) -> None:
        self.ir = ir.copy()
        self.plan = plan
        self.is_truth_value = is_truth_value
        if not is_reducible(self.ir):
            make_reducible(self.ir)
        self.exit = one_exit(self.ir)
        self.loops = canonical_loops(self.ir)
        self.loop_of = {loop.header: loop for loop in self.loops}
        self.wanted = list(self.ir.params) if wanted is None else wanted
        self.position: Position = NOWHERE
        self.backwards: list[tuple[Block, Block, Block]] = []  # source, target, the edge reversed

    # -- the adjoint blocks

    def build(self) -> None:
        """Write the adjoint."""
        ir = self.ir
        self.primal = reachable(ir)
        if self.exit not in self.primal:  # it always ends in an exception
            return
        live = leads_to(ir, self.exit)
        self.entries = ir.predecessors()
        entries = [(b, self.entries[b]) for b in self.primal if b in live]
        predecessors = {b: [e for e in edges if e[0] in live] for b, edges in entries}
        tags = {b: self.tag(b, edges) for b, edges in predecessors.items()}
        self.start, self.end = ir.block(), ir.block()
        self.seed = ir.var("ȳ")
        self.start.params = [self.seed]
        result = self.exit.params[0]
        self.exit.branches = [Branch(self.start, [result])]
        self.bars = Variables(ir, self.zero_at_start)
        self.bars.write(self.start, result, self.seed)
        twin = {b: ir.block() for b in predecessors}
        self.start.branches = [Branch(twin[self.exit])]
        pairs = {b: self.differentiate_calls(b) for b in self.primal}
        reached = self.reached_by_cotangents(pairs, predecessors)
        self.nonzero = {twin[b]: variables for b, variables in reached.items()}
        self.bars.follow(twin[self.exit], self.start)
        self.ways: dict[Block, list[Block]] = {
            b: [] for b in twin
        }  # from which the adjoint is entered
        for block in reversed(twin):  # against the arrows, so that mostly the ways in are known
            ways_out = [b for b in block.successors() if b in live]
            if len(ways_out) == 1 and self.ways[block]:
                self.bars.follow(twin[block], self.ways[block][0])
            adjoint = self.adjoint_of_calls(twin[block], pairs[block])
            self.go_back(block, adjoint, predecessors[block], tags[block], twin)
        self.mark_loops()
        cotangents = [self.bars.read(self.end, v, v.name + "̄") for v in self.wanted]
        out = ir.var()
        self.end.calls.append(Call(out, Const(build_tuple), cotangents))
        self.end.branches = [Branch(None, [out])]
        self.bars.finish()
        prune_params(ir, keep=self.start)

    @property
    def result(self) -> Operand:
        """The value of the primal."""
        return self.exit.branches[0].args[0]

    def zero_at_start(self, block: Block, variable: Hashable) -> Operand | None:
        is_zero = block is self.start or variable not in self.nonzero.get(block, (variable,))
        return Const(ZERO) if is_zero else None

    def reached_by_cotangents(
        self,
        pairs: dict[Block, list[tuple[Var, Pair, Var, Position]]],
        predecessors: dict[Block, list[tuple[Block, Branch]]],
    ) -> dict[Block, set[Var]]:
        """The variables that have a cotangent at the ends of the blocks: those that are used behind."""
        home: dict[Operand, Block] = {
            v: b for b in predecessors for v in (*b.params, *(c.out for c in b.calls))
        }
        reached: dict[Block, set[Var]] = {b: set() for b in predecessors}

        def reach(x: Operand, ends: list[Block]) -> None:
            while ends:
                block = ends.pop()
                if type(x) is Var and x not in reached[block]:
                    reached[block].add(x)
                    if home.get(x) is not block:
                        ends += [source for source, _ in predecessors[block]]

        for block, edges in predecessors.items():
            for _, pair, _, _ in pairs[block]:
                for _, x in pair.slots:
                    if home.get(x) is not block:
                        reach(x, [source for source, _ in edges])
            for source, branch in edges:
                for x in branch.args:
                    reach(x, [source])
        reach(self.exit.params[0], [self.exit])
        return reached

    def tag(self, block: Block, edges: list[tuple[Block, Branch]]) -> Var | None:
        """A parameter that says which way a block with several ways in was reached."""
        if len(edges) < 2 or block in self.loop_of:
            return None
        condition = self.deciding(edges) if len(edges) == 2 else None
        if condition is not None:
            return condition
        tag = self.ir.var("from")
        block.params.append(tag)
        for i, (_, branch) in enumerate(edges):
            branch.args.append(Const(i if len(edges) > 2 else bool(i)))
        for _, branch in self.ir.predecessors()[block]:
            if len(branch.args) < len(block.params):  # from a block that ends in an exception
                branch.args.append(Const(None))
        return tag

    def differentiate_calls(self, block: Block) -> list[tuple[Var, Pair, Var, Position]]:
        """Calls become pairs; returns for each its value, its plan and its pullback."""
        calls, pairs = [], []
        for call in block.calls:
            pair = self.plan(call)
            if pair is None:
                calls.append(call)
                continue
            both, back = self.ir.var(), self.ir.var()
            where = call.position
            calls += [
                Call(both, pair.forward, pair.args, pair.keywords, where),
                Call(call.out, Const(operator.getitem), (both, Const(0)), (), where),
                Call(back, Const(operator.getitem), (both, Const(1)), (), where),
            ]
            pairs.append((call.out, pair, back, where))
        block.calls = calls
        return pairs

    def append(self, block: Block, fn: Any, *args: Operand, name: str = "") -> Var:
        out = self.ir.var(name)
        block.calls.append(Call(out, Const(fn), args, (), self.position))
        return out

    def deciding(self, edges: list[tuple[Block, Branch]]) -> Var | None:
        """The condition by which control went one of two ways; if true, the second of the edges."""
        first, second = (self.decisions_before(source, branch) for source, branch in edges)
        for block, branch in first.items():
            if block in second and second[block] is not branch:
                condition = block.branches[0].cond
                if type(condition) is not Var or not self.is_truth_value(condition):
                    return None
                if branch is block.branches[0]:
                    edges.reverse()
                return condition
        return None

    def decisions_before(self, block: Block, branch: Branch) -> dict[Block, Branch]:
        """The branches that control has taken on its way here in this iteration, the last first."""
        found: dict[Block, Branch] = {}
        while block not in self.loop_of:
            if len(block.branches) == 2:
                found[block] = branch
            if len(self.entries[block]) != 1:
                break
            block, branch = self.entries[block][0]
        return found

    def adjoint_of_calls(self, block: Block, pairs: list[tuple[Var, Pair, Var, Position]]) -> Block:
        """Call the pullbacks, last first; returns the block that control is in after them."""
        for y, pair, back, position in reversed(pairs):
            self.position = position
            ȳ = self.bars.read(block, y, y.name + "̄")
            self.bars.write(block, y, Const(ZERO))
            if pair.always:
                self.pull_back(block, pair, back, ȳ)
                continue
            run, after = self.ir.block(), self.ir.block()
            nothing = self.append(block, operator.is_, ȳ, Const(ZERO))
            block.branches = [Branch(after, (), nothing), Branch(run)]
            self.bars.follow(run, block)
            self.pull_back(run, pair, back, ȳ)
            run.branches = [Branch(after)]
            self.bars.seal(after, (block, block.branches[0]), (run, run.branches[0]))
            block = after
        return block

    def pull_back(self, block: Block, pair: Pair, back: Var, ȳ: Operand) -> None:
        """One pullback: what it returns goes to the operands of the call."""
        cotangents = self.ir.var()
        block.calls.append(Call(cotangents, back, (ȳ,), (), self.position))
        for i, x in pair.slots:
            if type(x) is Var:
                c = self.append(block, operator.getitem, cotangents, Const(i))
                self.contribute(block, x, c)

    def contribute(self, block: Block, x: Var, c: Operand) -> None:
        """Add to the cotangent of a variable."""
        total = self.bars.read(block, x, x.name + "̄")
        if type(total) is Const and total.value is ZERO:
            self.bars.write(block, x, c)
        else:
            total = self.append(block, accumulate, total, c, name=x.name + "̄")
            self.bars.write(block, x, total)

    def go_back(
        self,
        block: Block,
        adjoint: Block,
        edges: list[tuple[Block, Branch]],
        tag: Var | None,
        twin: dict[Block, Block],
    ) -> None:
        """From the adjoint of a block to those of its predecessors."""
        self.position = NOWHERE
        if not edges:
            adjoint.branches = [Branch(self.end)]
            return
        edges_back = []
        for source, branch in edges:
            edge = self.ir.block()
            if len(edges) <= 2:
                self.bars.follow(edge, adjoint)
            self.adjoint_of_arguments(edge, block, branch)
            self.backwards.append((source, block, edge))
            edge.branches = [Branch(twin[source])]
            self.ways[source].append(edge)
            edges_back.append(edge)
        loop = self.loop_of.get(block)
        if len(edges_back) == 1:
            adjoint.branches = [Branch(edges_back[0])]
        elif loop is not None:
            again = self.append(adjoint, more_iterations, Const(loop))
            way = [source is loop.latch for source, _ in edges]
            adjoint.branches = [
                Branch(edges_back[way.index(True)], (), again),
                Branch(edges_back[way.index(False)]),
            ]
            self.append(edges_back[way.index(True)], begin_iteration, Const(loop))
        else:
            assert tag is not None
            self.dispatch(adjoint, tag, edges_back)

    def adjoint_of_arguments(self, edge: Block, block: Block, branch: Branch) -> None:
        """A parameter's cotangent goes to the argument that was passed for it."""
        received = [(p, a) for p, a in zip(block.params, branch.args, strict=True)]
        bars = [self.bars.read(edge, p, p.name + "̄") for p, _ in received]
        for p, _ in received:
            self.bars.write(edge, p, Const(ZERO))
        for (_, a), p̄ in zip(received, bars, strict=True):
            if type(a) is Var:
                self.contribute(edge, a, p̄)

    def dispatch(self, block: Block, tag: Var, targets: list[Block]) -> None:
        """Go to the target with the number that the tag holds."""
        if len(targets) == 2:
            block.branches = [Branch(targets[1], (), tag), Branch(targets[0])]
            return
        for i, target in enumerate(targets[:-2]):
            test = self.append(block, operator.eq, tag, Const(i))
            rest = self.ir.block()
            block.branches = [Branch(target, (), test), Branch(rest)]
            block = rest
        test = self.append(block, operator.eq, tag, Const(len(targets) - 2))
        block.branches = [Branch(targets[-2], (), test), Branch(targets[-1])]

    def mark_loops(self) -> None:
        """Leave marks where `resolve` puts the tapes."""
        for loop in self.loops:
            self.append(loop.preheader, enter_loop, Const(loop))
            self.append(loop.latch, end_iteration, Const(loop))
            for source, target, edge in self.backwards:
                if source in loop.body and target not in loop.body:
                    self.append(edge, enter_adjoint, Const(loop))

    # -- residuals

    def loop_values(self) -> set[Var]:
        """The variables of the primal that have a value per iteration of a loop.

        In the adjoint, such a variable means the value of the iteration that its place belongs to.
        """
        latches = {
            call.args[0].value: block
            for block in self.ir.blocks
            if self.loops
            for call in block.calls
            if call.primitive is end_iteration
        }
        predecessors = self.ir.predecessors()
        return {
            v
            for loop, latch in latches.items()
            for block in loop_body(loop.header, [latch], predecessors)
            for v in (*block.params, *(c.out for c in block.calls))
        }

    def resolve(
        self,
        is_cheap: Callable[[Call], bool] = lambda call: False,
        residuals: Callable[..., Residuals] | None = None,
    ) -> None:
        """Make the adjoint's references to variables of the primal good.

        What a cheap call gives is computed again in the place of keeping it on a tape, where all
        that it needs is there. `residuals` says how the others are kept.
        """
        if self.exit not in self.primal:
            return
        (residuals or Residuals)(self, is_cheap).run()


class Residuals:
    """How the variables of the primal reach the adjoint, on demand of its blocks.

    A residual is a named variable of `ssa.Placed`, written where the primal defines it, read
    where the adjoint refers to it. Reading against the arrows comes, at a block that begins the
    adjoint of an iteration, to the values of that iteration: there it is pulled off the tape, and
    the primal's latch pushes it.
    """

    reader: Callable[..., Any] = reversed  # what reads a tape from its end
    knows_ranges = True  # are counters over ranges found without a tape?

    def __init__(self, reversal: Reversal, is_cheap: Callable[[Call], bool]) -> None:
        self.reversal = reversal
        self.ir = reversal.ir
        ir = self.ir
        ir.blocks = reachable(ir)
        parent = dominators(ir)
        self.joins = Joins(ir, parent)
        self.variables = Placed(ir, self.at_start, parent, self.changes)
        self.adjoint = reachable_from(reversal.start)
        self.home = {
            v: block
            for block in ir.blocks
            if block not in self.adjoint
            for v in (*block.params, *(c.out for c in block.calls))
        }
        self.home.update(dict.fromkeys(ir.free, ir.entry))
        self.marks = self.find_marks()
        self.loops = [
            loop
            for loop in reversal.loops
            if {(more_iterations, loop), (end_iteration, loop), (enter_loop, loop)}
            <= self.marks.keys()
        ]
        self.bodies = self.find_bodies()
        self.beginning = {self.marks[begin_iteration, loop][0][0]: loop for loop in self.loops}
        self.pulled: dict[Loop, list[tuple[Var, Operand]]] = {loop: [] for loop in self.loops}
        self.tapes: dict[Loop, Var] = {}
        self.position = NOWHERE
        self.ranges = self.find_ranges() if self.knows_ranges else {}
        self.counters: dict[Loop, Var] = {}  # what the ranges give, where the adjoint asks for it
        self.again = self.find_cheap(is_cheap)

    def find_ranges(self) -> dict[Loop, tuple[Var, Operand]]:
        """The loops over ranges that nothing leaves early: their counters, and the ranges.

        Of these neither the counters nor the number of iterations need a tape.
        """
        makers = {c.out: c for c in self.ir.calls()}
        uses = count_uses(self.ir)
        found: dict[Loop, tuple[Var, Operand]] = {}
        for loop in self.loops:
            step = loop_step(loop.header)
            body = self.bodies[loop]
            begun = None if step is None else makers.get(step.args[0])  # type: ignore[arg-type]
            if step is None or begun is None or begun.primitive is not iter:
                continue
            made = makers.get(begun.args[0])  # type: ignore[arg-type]
            if made is None or made.primitive is not range or uses[begun.out] > 1:
                continue
            leaving = {b for b in body if any(t not in body for t in b.successors())}
            if leaving == {loop.header} and self.home[begun.out] not in body:
                found[loop] = step.out, made.out
        return found

    def find_cheap(self, is_cheap: Callable[[Call], bool]) -> dict[Var, Call]:
        """The cheap calls of iterations whose operands reach the adjoint anyhow.

        A counter over a range does, and so does what only steps between it and an index.
        """
        inside = {b for body in self.bodies.values() for b in body}
        needed = {
            x
            for block in self.adjoint
            for x in (
                *(x for call in block.calls for x in call.operands()),
                *(x for branch in block.branches for x in (*branch.args, branch.cond)),
            )
            if x in self.home
        }
        there = needed | {counter for counter, _ in self.ranges.values()}
        cheap = {c.out: c for b in inside for c in b.calls if is_cheap(c)}
        steps = {x for x, c in cheap.items() if c.primitive in STEPS}

        def is_there(x: Operand) -> bool:
            if type(x) is Const or x in there or self.home[x] not in inside:  # type: ignore[index]
                return True
            return x in steps and all(map(is_there, cheap[x].operands()))

        return {
            x: call
            for x, call in cheap.items()
            if (x in needed or x in steps) and all(map(is_there, call.operands()))
        }

    def find_marks(self) -> dict[tuple[Any, Loop], list[tuple[Block, Call]]]:
        found: dict[tuple[Any, Loop], list[tuple[Block, Call]]] = {}
        for block in self.ir.blocks:
            for call in block.calls:
                if call.primitive in MARKS:
                    loop = call.args[0].value
                    found.setdefault((call.primitive, loop), []).append((block, call))
        return found

    def find_bodies(self) -> dict[Loop, set[Block]]:
        """The blocks of every loop as they are now, for passes may have put in new ones."""
        predecessors = self.ir.predecessors()
        bodies = {}
        for loop in self.loops:
            latches = [block for block, _ in self.marks.get((end_iteration, loop), ())]
            bodies[loop] = loop_body(loop.header, latches, predecessors)
        return bodies

    def run(self) -> None:
        self.begin_tapes()
        for v, block in self.home.items():
            self.variables.write(block, ("residual", v), v)
        for block in self.ir.blocks:
            if block in self.adjoint:
                self.rewrite(block)
        self.variables.finish()
        for loop in sorted(self.loops, key=lambda loop: len(self.bodies[loop])):
            self.read_tape(loop)  # of inner loops first: their tapes are residuals of the others
            self.variables.finish()
        self.emit_tapes()
        self.drop_marks()

    def at_start(self, block: Block, variable: Any) -> Operand | None:
        kind, key = variable
        if block is self.ir.entry:
            return Const(None)
        loop = self.beginning.get(block)
        if loop is None or kind != "residual" or self.home[key] not in self.bodies[loop]:
            return None
        item = self.ir.var(key.name)
        if loop in self.ranges and self.ranges[loop][0] is key:
            self.counters[loop] = item
            return item
        latch = self.marks[end_iteration, loop][0][0]
        self.pulled[loop].append((item, self.variables.read(latch, variable, key.name)))
        return item

    def changes(self, variable: Any) -> Set[Block] | None:
        """The blocks where a residual may be another value; the adjoint as a whole is given all."""
        kind, key = variable
        if kind != "residual":
            return None
        home = self.home[key]
        pulled = [block for block, loop in self.beginning.items() if home in self.bodies[loop]]
        return self.joins.of(frozenset([self.ir.entry, home, self.reversal.start, *pulled]))

    def begin_tapes(self) -> None:
        for loop in self.loops:
            block, _ = self.marks[enter_loop, loop][0]
            tape = self.tapes[loop] = self.ir.var("tape")
            block.calls.append(Call(tape, Const(build_list), ()))
            self.home[tape] = block

    def rewrite(self, block: Block) -> None:
        """Read residuals where the block refers to variables of the primal."""

        calls: list[Call] = []
        again: dict[Var, Var] = {}

        def read(x: Operand) -> Operand:
            if type(x) is not Var or x not in self.home:
                return x
            if x not in self.again:
                return self.variables.read(block, ("residual", x), x.name)
            if x not in again:
                call = self.again[x].copy()
                call.args = tuple([read(a) for a in call.args])
                call.out = again[x] = self.ir.var(x.name)
                calls.append(call)
            return again[x]

        for call in block.calls:
            call.fn = read(call.fn)
            call.args = tuple([read(a) for a in call.args])
            calls.append(call)
        block.calls = calls
        for branch in block.branches:
            branch.args = [read(a) for a in branch.args]
            if branch.cond is not None:
                branch.cond = read(branch.cond)

    def read_tape(self, loop: Loop) -> None:
        """Let the adjoint of a loop go along the tape, or along the range backwards, or both."""
        by_range = self.goes_by_range(loop)
        if by_range or loop in self.counters:
            self.go_along(loop, "counts", self.ranges[loop][1], reversed)
        if by_range:
            block, _ = self.marks[enter_loop, loop][0]
            block.calls = [c for c in block.calls if c.out is not self.tapes[loop]]
        else:
            self.go_along(loop, "items", self.tapes[loop], self.reader)
            for block, _ in self.marks[begin_iteration, loop]:
                self.begin(block, loop)

    def goes_by_range(self, loop: Loop) -> bool:
        """Is there nothing to be kept of the iterations of a loop over a range?"""
        return loop in self.ranges and not self.pulled[loop]

    def go_along(self, loop: Loop, kind: str, x: Operand, reader: Callable[..., Any]) -> None:
        """On the way into the adjoint of a loop, begin to read something from its end."""
        for block, _ in self.marks.get((enter_adjoint, loop), ()):
            items, known = self.ir.var(kind), x
            if type(x) is Var:
                known = self.again_in(block, x)
            block.calls.append(Call(items, Const(reader), (known,)))
            self.variables.write(block, (kind, loop), items)
        for block, _ in self.marks[more_iterations, loop]:
            self.variables.read(block, (kind, loop), kind)

    def again_in(self, block: Block, x: Operand) -> Operand:
        """What a variable of the primal is, at the end of a block of the adjoint."""
        if type(x) is not Var or x not in self.home:
            return x
        if x not in self.again:
            return self.variables.read(block, ("residual", x), x.name)
        call = self.again[x].copy()
        call.args = tuple([self.again_in(block, a) for a in call.args])
        call.out = self.ir.var(x.name)
        block.calls.append(call)
        return call.out

    def begin(self, block: Block, loop: Loop) -> None:
        """The adjoint of an iteration begins here."""

    def emit_tapes(self) -> None:
        for loop in self.loops:
            pulled = self.pulled[loop]
            if self.goes_by_range(loop):
                self.emit_test(loop, "counts", self.counters.get(loop) or self.ir.var(), [])
                continue
            if not pulled:  # its length is all that is needed of the tape
                pulled.append((self.ir.var(), Const(None)))
            latch, _ = self.marks[end_iteration, loop][0]
            tape = self.tapes[loop]
            latch.calls += [
                Call(self.ir.var(), Const(list_append), (tape, value)) for _, value in pulled
            ]
            *others, (last, _) = pulled
            items = [(item, "items") for item, _ in reversed(others)]
            if loop in self.counters:
                items.append((self.counters[loop], "counts"))
            self.emit_test(loop, "items", last, items)

    def emit_test(self, loop: Loop, kind: str, last: Var, items: list[tuple[Var, str]]) -> None:
        """The adjoint goes on as long as there is a last item; the others are pulled then."""
        header, _ = self.marks[more_iterations, loop][0]
        ended = self.ir.var()
        header.calls += [
            Call(last, Const(advance), (self.variables.read(header, (kind, loop)),)),
            Call(ended, Const(operator.is_), (last, Const(DONE))),
        ]
        begin, leave = header.branches
        header.branches = [Branch(leave.block, leave.args, ended), Branch(begin.block, begin.args)]
        block, _ = self.marks[begin_iteration, loop][0]
        block.calls[:0] = [
            Call(item, Const(pull), (self.variables.read(block, (kind, loop)),))
            for item, kind in items
        ]
        self.variables.finish()

    def drop_marks(self) -> None:
        for block in self.ir.blocks:
            for call in block.calls:
                if call.primitive is more_iterations and call.args[0].value not in self.tapes:
                    # No iteration was ever completed: the way on is that to the preheader.
                    block.branches = block.branches[1:]
                    block.branches[0].cond = None
            block.calls = [c for c in block.calls if c.primitive not in MARKS]


def reachable_from(start: Block) -> set[Block]:
    """The blocks that control can reach from `start`."""
    found, work = {start}, [start]
    while work:
        for successor in work.pop().successors():
            if successor not in found:
                found.add(successor)
                work.append(successor)
    return found
