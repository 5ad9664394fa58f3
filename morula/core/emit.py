"""SSA form -> code object.

A variable that is used once, where it can be left on the stack, is left there; the others get local
variables, shared by those that are never alive together, so that passing an argument to a block
mostly costs nothing. A call of a primitive becomes the instruction that it stands for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from types import CodeType
from typing import Any

from bytecode import Bytecode, CompilerFlags, Label

from morula.core import primitives, protected
from morula.core.assemble import (
    BINARY_OPS,
    COMPARISONS,
    OPPOSITE,
    UNARY,
    Assembler,
    assembler,
)
from morula.core.cfg import loop_step
from morula.core.cotangents import ZERO
from morula.core.ir import (
    IR,
    Block,
    Branch,
    Call,
    Const,
    Operand,
    Position,
    Var,
    count_of_parameters,
    count_uses,
    reachable,
)
from morula.core.ssa import prune_params, split_critical_edges
from morula.core.verify import checked


class Node:
    """A call whose single-use operands stand in it as nodes: an expression tree."""

    __slots__ = ("call", "depth", "is_pure", "operands")
    depth: int
    is_pure: bool

    def __init__(self, call: Call, operands: list[Any]) -> None:
        self.call = call
        self.operands = operands
        self.depth = 1 + max([x.depth for x in operands if type(x) is Node], default=0)
        # Pure trees may be evaluated later than they stand, the others keep their order.
        self.is_pure = call.movable and all(x.is_pure for x in operands if type(x) is Node)

    def loads(self) -> list[Var]:
        """The local variables that evaluating the tree reads."""
        found: list[Var] = []
        for x in self.operands:
            if type(x) is Var:
                found.append(x)
            elif type(x) is Node:
                found += x.loads()
        return found


class Jump:
    """How a block ends."""

    __slots__ = ("branches", "item", "iterator", "operands")

    def __init__(self, branches: list[Branch]) -> None:
        self.branches = branches
        self.operands: list[Any] = []  # of the condition, or of the arguments of a lone branch
        self.iterator: Operand | None = None  # set: `item` is the next of the iterator, or jump
        self.item: Var | None = None


def emit(
    ir: IR,
    like: CodeType,
    namespace: dict[str, Any],
    is_large: Callable[[Var], bool] = lambda v: False,
    order: Callable[[IR], list[Block]] | None = None,
    is_program: bool = False,
    doubtful: Collection[Var] = (),
    retry: Var | None = None,
) -> CodeType:
    """A code object with the signature of `like` that does what `ir` says.

    `namespace` are the globals of the functions that will be made of it; `ir` is changed. What is
    large is released where it is read for the last time, and not only when the function returns.
    `order` says in which order the blocks are to stand, if it matters. Of what leaves a program by an
    exception, `frames` says where it came from. Where a call that defines a `doubtful` variable
    raises one, control goes on in the block whose first call defines `retry`, if that is given.
    """
    emitter = _Emitter(ir, like, namespace, is_large, order)
    emitter.asm.handles = is_program
    if retry is not None:
        emitter.doubtful, emitter.retry = frozenset(doubtful), retry
    return emitter.run()


def tidy(ir: IR) -> None:
    """Blocks in reverse postorder, no critical edges, arguments only on unconditional branches."""
    ir.blocks = reachable(ir)
    split_critical_edges(ir)
    prune_params(ir)
    while return_earlier(ir):
        ir.blocks = reachable(ir)
    _thread_jumps(ir)
    merge_blocks(ir)
    ir.blocks = reachable(ir)
    split_critical_edges(ir, all_of_them=False)
    blocks = reachable(ir)
    ir.blocks = [b for b in blocks if b not in ir.cold] + [b for b in blocks if b in ir.cold]


MOST_PUT_TOGETHER = 8  # tuples: each way to a result has its own


def return_earlier(ir: IR) -> bool:
    """What only goes on to put the result together returns it at once; does anything?

    There it may be a constant.
    """
    changed = False
    for block in ir.blocks:
        target = block.branches[0].block if len(block.branches) == 1 else None
        if target is not None and target.params and only_puts_together(target):
            args = block.branches[0].args
            now: dict[Operand, Operand] = dict(zip(target.params, args, strict=True))
            for call in target.calls:
                items = [now.get(a, a) for a in call.args]
                if all(type(a) is Const and is_literal(a.value) for a in items):
                    now[call.out] = Const(tuple([getattr(a, "value", None) for a in items]))
                    continue
                out = now[call.out] = ir.var(call.out.name)
                block.calls.append(Call(out, call.fn, items, (), call.position))
            block.branches = [Branch(None, [now.get(a, a) for a in target.branches[0].args])]
            changed = True
    return changed


def is_literal(x: Any) -> bool:
    """May a tuple of such be a constant, made once for all?"""
    if type(x) is tuple:
        return all(map(is_literal, x))
    return x is None or x is ... or type(x) in (bool, int, float, complex, str, bytes, CodeType)


def only_puts_together(block: Block) -> bool:
    """Does a block return what it puts together, or is given, and nothing else?"""
    ends = len(block.branches) == 1 and block.returns and len(block.calls) <= MOST_PUT_TOGETHER
    return ends and all(c.primitive is primitives.build_tuple for c in block.calls)


def _thread_jumps(ir: IR) -> None:
    """Jumps to an empty block without parameters go to where it leads."""
    for block in ir.blocks:
        for branch in block.branches:
            seen = set()
            while (
                (target := branch.block) is not None
                and target not in seen
                and not target.params
                and not target.calls
                and len(target.branches) == 1
                and target.branches[0].block is not None
                and not branch.args
                and (branch.cond is None or not target.branches[0].args)
            ):
                seen.add(target)
                branch.block, branch.args = (
                    target.branches[0].block,
                    list(target.branches[0].args),
                )


def merge_blocks(ir: IR) -> None:
    """A block with one way in from a block with one way out is part of it."""
    ir.blocks = reachable(ir)
    predecessors = ir.predecessors()
    for block in ir.blocks:
        while len(block.branches) == 1:
            target = block.branches[0].block
            if (
                target is None
                or target is block
                or target is ir.entry
                or len(predecessors[target]) != 1
                or target.params
                or target in ir.kept
            ):
                break
            block.calls += target.calls
            block.branches = target.branches
            for successor in target.successors():
                predecessors[successor] = [
                    (block if b is target else b, branch) for b, branch in predecessors[successor]
                ]
            target.calls, target.branches = [], []
    ir.blocks = reachable(ir)


class Trees:
    """The calls of a function as expression trees, block by block, in the order of their effects."""

    def __init__(self, ir: IR, like: CodeType) -> None:
        self.ir = ir
        self.like = like
        self.roots: dict[Block, list[Node]] = {}
        self.jumps: dict[Block, Jump] = {}
        self.slots: dict[Var, str] = {}
        self.free = {v: name for v, name in zip(ir.free, like.co_freevars, strict=False)}
        self.uses: dict[Var, int] = {}

    def arrange(self, call: Call) -> list[Operand]:
        """The operands of a call in the order in which they are evaluated."""
        raise NotImplementedError

    def lay_out(self, order: Callable[[IR], list[Block]] | None = None) -> None:
        """Put the blocks in order and plant the trees."""
        tidy(self.ir)
        if order is not None:
            self.ir.blocks = order(self.ir)
        checked("tidy", self.ir)
        self.uses = count_uses(self.ir)
        for block in self.ir.blocks:
            self.build_trees(block)

    def build_trees(self, block: Block) -> None:
        jump = Jump(block.branches)
        calls = block.calls
        if loop := self.loop_test(block):
            jump.iterator, jump.item = loop.args[0], loop.out
            calls = calls[:-2]
        roots: list[Node] = []
        late: list[Node] = []  # pure, for other blocks: computed last, when what they read may die
        pending = _Pending(roots)
        users = self.users_in(block)
        unpacked = {c.out for c in calls if c.primitive is primitives.unpack}
        for call in calls:
            node = Node(call, pending.take(self.arrange(call)))
            used_here = call.out in users
            if call.primitive is operator.getitem and call.args[0] in unpacked:
                roots.append(node)  # beside the unpacking, with which it is emitted
            elif (
                self.uses.get(call.out, 0) == 1
                and used_here
                and not _is_emitted_alone(call)
                and node.depth < MOST_NESTED
            ):
                pending.add(node)
            elif node.is_pure and not used_here:
                late.append(node)
            else:
                if not node.is_pure:
                    pending.flush()
                roots.append(node)
        if jump.iterator is not None:
            jump.operands = pending.take([jump.iterator])
        elif len(block.branches) == 1:
            jump.operands = pending.take(list(block.branches[0].args))
        elif block.branches:
            cond = block.branches[0].cond
            assert cond is not None
            jump.operands = pending.take([cond])
        pending.flush()
        roots += late
        self.roots[block], self.jumps[block] = roots, jump

    def users_in(self, block: Block) -> set[Operand]:
        """The operands of the calls and of the end of a block that may stand in it as trees."""
        found: set[Operand] = {x for c in block.calls for x in c.operands()}
        if len(block.branches) == 1:
            found.update(block.branches[0].args)
        elif block.branches and block.branches[0].cond is not None:
            found.add(block.branches[0].cond)
        return found

    def loop_test(self, block: Block) -> Call | None:
        """The step of a loop at the end of a block, if nothing else reads its test."""
        step = loop_step(block)
        return step if step is not None and self.uses.get(block.calls[-1].out) == 1 else None


class _Emitter(Trees):
    def __init__(
        self,
        ir: IR,
        like: CodeType,
        namespace: dict[str, Any],
        is_large: Callable[[Var], bool],
        order_of: Callable[[IR], list[Block]] | None,
    ) -> None:
        super().__init__(ir, like)
        self.namespace = namespace
        self.is_large = is_large
        self.order_of = order_of
        self.last_reads: dict[Var, int] = {}  # in the tree that is emitted, those still to come
        self.asm: Assembler = assembler()
        self.labels: dict[Block, Label] = {}
        self.order: dict[Block, int] = {}
        self.loop_ends: list[tuple[Label, Block]] = []
        self.never: Label | None = None
        self.doubtful: Collection[Var] = ()
        self.retry: Var | None = None

    def run(self) -> CodeType:
        self.lay_out(self.order_of)
        slots = Slots(self.ir, self.roots, self.jumps, self.like, self.free)
        self.slots = slots.assign()
        self.dying = slots.dying(self.is_large)
        self.labels = {b: Label() for b in self.ir.blocks}
        if self.retry is not None:
            way = next(b for b in self.ir.blocks if b.calls and b.calls[0].out is self.retry)
            self.asm.retry = self.labels[way]
        self.order = {b: i for i, b in enumerate(self.ir.blocks)}
        self.asm.at(Position(self.like.co_firstlineno, self.like.co_firstlineno, 0, 0))
        self.asm.begin(list(self.free.values()))
        for block in self.ir.blocks:
            self.emit_block(block)
        self.emit_loop_ends()
        return self.assemble()

    def assemble(self) -> CodeType:
        like = self.like
        code = Bytecode()
        code.name = like.co_name
        if hasattr(like, "co_qualname"):
            code.qualname = like.co_qualname
        code.filename = like.co_filename
        code.first_lineno = like.co_firstlineno
        code.argcount = like.co_argcount
        code.posonlyargcount = like.co_posonlyargcount
        code.kwonlyargcount = like.co_kwonlyargcount
        code.argnames = [self.slots[p] for p in self.ir.params]
        code.freevars = list(self.free.values())
        flags = CompilerFlags.OPTIMIZED | CompilerFlags.NEWLOCALS
        for flag in (CompilerFlags.VARARGS, CompilerFlags.VARKEYWORDS):
            if like.co_flags & flag:
                flags |= flag
        if self.free:
            flags |= CompilerFlags.NESTED
        code.flags = flags
        return self.asm.finish(code, like)

    # -- blocks

    def emit_block(self, block: Block) -> None:
        asm = self.asm
        asm.label(self.labels[block])
        roots = self.roots[block]
        i = 0
        while i < len(roots):
            i += self.emit_runs(roots, i) or self.emit_root(roots[i])
        self.last_reads = {}
        self.emit_jump(block, self.jumps[block])

    def emit_root(self, node: Node) -> int:
        call = node.call
        reads = node.loads()
        out = self.slots.get(call.out)  # what is stored there releases what was there before
        dying = [v for v in self.dying.get(node, ()) if self.slots[v] != out]
        self.last_reads = {v: reads.count(v) for v in dying}
        if self.expression(node):
            return 1
        if self.uses.get(call.out, 0):
            self.asm.store(self.slots[call.out])
        else:
            self.asm.op("POP_TOP")
        return 1

    def emit_runs(self, roots: list[Node], i: int) -> int:
        """Appends to one tape, items of one tape, and unpackings, are emitted together."""
        first = roots[i].call
        if first.primitive is primitives.list_append and type(first.args[0]) is Var:
            run = self.run_of(roots, i, lambda c: c.args[0] is first.args[0])
            if all(type(n.operands[0]) is Var for n in run):
                self.operand(first.args[0])
                for node in run:
                    self.asm.at(node.call.position)
                    self.operand(node.operands[1])
                    self.asm.op("LIST_APPEND", 1)
                self.asm.op("POP_TOP")
                return len(run)
        if first.primitive is primitives.pull:
            run = self.run_of(roots, i, lambda c: c.args[0] is first.args[0])
            self.operand(roots[i].operands[1])
            for node in run:
                self.pull(node.call.out)
            self.asm.op("POP_TOP")
            return len(run)
        if first.primitive is primitives.unpack and type(first.args[1]) is Const:
            return self.emit_unpack(roots, i, first.args[1].value)
        return 0

    def run_of(self, roots: list[Node], i: int, same: Callable[[Call], bool]) -> list[Node]:
        end = i
        primitive = roots[i].call.primitive
        while end < len(roots) and roots[end].call.primitive is primitive:
            if not same(roots[end].call):
                break
            end += 1
        return roots[i:end]

    def pull(self, out: Var) -> None:
        """iterator -> iterator, with the next item, which there is, in the slot of `out`."""
        self.never = self.never or Label()
        self.asm.for_iter(self.never)
        if self.uses.get(out, 0):
            self.asm.store(self.slots[out])
        else:
            self.asm.op("POP_TOP")

    def emit_unpack(self, roots: list[Node], i: int, n: int) -> int:
        items = roots[i].call.out
        run = roots[i + 1 : i + 1 + n]
        outs: dict[int, Var] = {}
        for node in run:
            call = node.call
            if call.primitive is not operator.getitem or call.args[0] is not items:
                break
            if type(call.args[1]) is Const and type(call.args[1].value) is int:
                outs[call.args[1].value] = call.out
        if len(outs) != self.uses.get(items, 0) or not all(0 <= k < n for k in outs):
            return 0
        self.operand(roots[i].operands[1])
        self.asm.at(roots[i].call.position)
        self.asm.op("UNPACK_SEQUENCE", n)
        for k in range(n):
            if k in outs and self.uses.get(outs[k], 0):
                self.asm.store(self.slots[outs[k]])
            else:
                self.asm.op("POP_TOP")
        return 1 + len(outs)

    def emit_jump(self, block: Block, jump: Jump) -> None:
        asm = self.asm
        if jump.iterator is not None:
            self.emit_loop_test(block, jump)
        elif not jump.branches:
            asm.op("LOAD_CONST", AssertionError)
            asm.op("RAISE_VARARGS", 1)
        elif len(jump.branches) == 1:
            self.emit_branch(block, jump.branches[0], jump.operands)
        else:
            self.emit_fork(block, jump)

    def emit_branch(self, block: Block, branch: Branch, operands: list[Any]) -> None:
        if branch.block is None:
            self.operand(operands[0])
            self.asm.returns()
            return
        moves = []
        for x, param in zip(operands, branch.block.params, strict=True):
            if type(x) is Var and self.slots.get(x) == self.slots[param]:
                continue
            self.operand(x)
            moves.append(self.slots[param])
        for slot in reversed(moves):
            self.asm.store(slot)
        self.goto(block, branch.block)

    def goto(self, block: Block, target: Block) -> None:
        if self.order[target] != self.order[block] + 1:
            self.asm.jump(self.labels[target], self.order[target] <= self.order[block])

    def emit_fork(self, block: Block, jump: Jump) -> None:
        yes, no = jump.branches[0].block, jump.branches[1].block
        cond = jump.operands[0]
        if yes is None or no is None:
            raise AssertionError("a return is never conditional after tidy")
        test = "TRUE"
        while type(cond) is Node and (asked := self.asked_of_operand(cond, test)):
            test, cond = asked
        if self.order[yes] == self.order[block] + 1:
            yes, no = no, yes
            test = OPPOSITE[test]
        self.operand(cond)
        self.asm.jump_if(test, self.labels[yes], self.order[yes] <= self.order[block])
        self.goto(block, no)

    def asked_of_operand(self, node: Node, test: str) -> tuple[str, Any] | None:
        """How the test of a truth value, of `not x` or `x is None`, becomes one of `x`."""
        if test not in ("TRUE", "FALSE"):
            return None
        fn = node.call.primitive
        if fn is operator.truth:
            return test, node.operands[-1]
        if fn is operator.not_:
            return OPPOSITE[test], node.operands[0]
        if fn not in (operator.is_, operator.is_not):
            return None
        x, y = node.operands
        if type(y) is not Const or y.value is not None:
            return None
        return "NONE" if (fn is operator.is_) == (test == "TRUE") else "NOT_NONE", x

    def emit_loop_test(self, block: Block, jump: Jump) -> None:
        asm = self.asm
        ended, go_on = jump.branches[0].block, jump.branches[1].block
        assert ended is not None
        assert go_on is not None
        assert jump.item is not None
        self.operand(jump.operands[0])
        asm.at(block.calls[-2].position)
        done = Label()
        asm.for_iter(done)
        if self.uses.get(jump.item, 0) > 1:
            asm.store(self.slots[jump.item])
            asm.op("POP_TOP")
        else:
            asm.op("POP_TOP")
            asm.op("POP_TOP")
        self.loop_ends.append((done, ended))
        self.goto(block, go_on)

    def emit_loop_ends(self) -> None:
        """Where for_iter goes at the end of its iterator."""
        for done, ended in self.loop_ends:
            self.asm.label(done)
            self.asm.after_loop()
            self.asm.jump(self.labels[ended], True)
        if self.never is not None:
            self.asm.label(self.never)
            self.asm.after_loop()
            self.asm.op("LOAD_CONST", AssertionError)
            self.asm.op("RAISE_VARARGS", 1)

    # -- expressions

    def operand(self, x: Any) -> None:
        if type(x) is Node:
            self.expression(x)
        elif type(x) is Const:
            self.asm.const(x.value)
        elif x in self.free:
            self.asm.free("LOAD_CLOSURE", self.free[x])
        else:
            self.asm.load(self.slots[x])
            if x in self.last_reads:
                self.last_reads[x] -= 1
                if not self.last_reads[x]:
                    del self.last_reads[x]
                    self.asm.delete(self.slots[x])

    def expression(self, node: Node) -> bool:
        """Leave the value of the tree on the stack; True: it was a statement and left nothing."""
        call, asm = node.call, self.asm
        inside = asm.is_doubtful
        asm.is_doubtful = inside or call.out in self.doubtful
        selected = self.selected(call)
        if selected is None:
            self.plain_call(node)
        else:
            selected.emit(self, node)
        asm.is_doubtful = inside
        return selected is not None and selected.is_statement

    def selected(self, call: Call) -> Selection | None:
        """The instruction that a call of a primitive stands for."""
        if type(call.fn) is not Const or call.keywords:
            return None
        selection = SELECTIONS.get(id(call.fn.value))
        if selection is None or selection.arrange(self, call) is None:
            return None
        if selection.is_statement and self.uses.get(call.out, 0):
            return None
        return selection

    def arrange(self, call: Call) -> list[Operand]:
        """The operands of a call in the order in which they go onto the stack."""
        selected = self.selected(call)
        if selected is None:
            return [call.fn, *call.args]
        arranged = selected.arrange(self, call)
        assert arranged is not None
        return arranged

    def plain_call(self, node: Node) -> None:
        call, (fn, *args) = node.call, node.operands
        asm = self.asm
        if (
            type(fn) is Node
            and fn.call.primitive is getattr
            and len(fn.operands) == 2
            and type(fn.operands[1]) is Const
        ):
            self.operand(fn.operands[0])
            asm.at(fn.call.position)
            asm.method(fn.operands[1].value)
        else:
            asm.at(call.position)
            asm.before_callable()
            self.operand(fn)
            asm.after_callable()
        for x in args:
            self.operand(x)
        asm.at(call.position)
        asm.call(len(args), call.keywords)


MOST_NESTED = 40  # expressions within expressions


def _is_emitted_alone(call: Call) -> bool:
    """Is it a call that is emitted with others like it, or with what takes items of its result?"""
    return call.primitive in (primitives.pull, primitives.unpack)


class _Pending:
    """Trees whose value is used once, later in the block, and may stand in the tree of that use."""

    def __init__(self, roots: list[Node]) -> None:
        self.roots = roots
        self.pure: dict[Operand, Node] = {}
        self.ordered: list[Node] = []

    def add(self, node: Node) -> None:
        if node.is_pure:
            self.pure[node.call.out] = node
        else:
            self.ordered.append(node)

    def take(self, operands: list[Operand]) -> list[Any]:
        """Operands, with trees in the place of variables where the order of effects allows."""
        taken: list[Any] = list(operands)
        for k in reversed(range(len(taken))):
            x = taken[k]
            if x in self.pure:
                taken[k] = self.pure.pop(x)
            elif self.ordered and x is self.ordered[-1].call.out:
                taken[k] = self.ordered.pop()
        left = [n.call.out in operands for n in self.ordered]
        while any(left):  # an operand that could not be a tree is computed before
            self.roots.append(self.ordered.pop(0))
            left.pop(0)
        return taken

    def flush(self) -> None:
        """What has effects and is pending comes before what follows."""
        self.roots += self.ordered
        self.ordered.clear()


# -- local variables


class Slots:
    """Gives the variables that are not left on the stack local variables.

    The live range of a variable is a set of points of the program, a bit each. A parameter shares
    the local variable of its arguments where the ranges allow, so that passing it costs nothing.
    """

    def __init__(
        self,
        ir: IR,
        roots: dict[Block, list[Node]],
        jumps: dict[Block, Jump],
        like: CodeType,
        free: dict[Var, str],
    ) -> None:
        self.ir, self.roots, self.jumps, self.like, self.free = ir, roots, jumps, like, free
        self.parent: dict[Var, Var] = {}
        self.range: dict[Var, int] = {}
        self.last: dict[Node, list[Var]] = {}  # what each root reads for the last time

    def assign(self) -> dict[Var, str]:
        self.measure()
        self.coalesce()
        return self.colour()

    def reads(self, block: Block) -> list[list[Var]]:
        """The variables that each root of a block, and then its end, read from slots."""
        per_root = [n.loads() for n in self.roots[block]]
        end = Node(Call(Var(-1), Const(None), ()), self.jumps[block].operands).loads()
        return [[v for v in vs if v not in self.free] for vs in [*per_root, end]]

    def measure(self) -> None:
        """Live ranges, by the usual iteration against the arrows."""
        blocks = self.ir.blocks
        reads = {b: self.reads(b) for b in blocks}
        live_in: dict[Block, set[Var]] = {b: set() for b in blocks}
        changed = True
        while changed:
            changed = False
            for block in reversed(blocks):
                live = self.live_at_end(block, live_in)
                live -= self.written_by_end(block)
                live.update(reads[block][-1])
                for node, vs in zip(
                    reversed(self.roots[block]), reversed(reads[block][:-1]), strict=True
                ):
                    live.discard(node.call.out)
                    live.update(vs)
                live -= set(block.params)
                if live != live_in[block]:
                    live_in[block] = live
                    changed = True
        point = 0
        for block in blocks:
            n = len(self.roots[block])
            live = self.live_at_end(block, live_in)
            end = point + n + 1
            self.mark(live | self.written_by_end(block), end)
            live -= self.written_by_end(block)
            live.update(reads[block][-1])
            for i in reversed(range(n)):
                self.mark(live, point + 1 + i)
                out = self.roots[block][i].call.out
                self.range[out] = self.range.get(out, 0) | 1 << (point + 1 + i)
                live.discard(out)
                if ended := [v for v in dict.fromkeys(reads[block][i]) if v not in live]:
                    self.last[self.roots[block][i]] = ended
                live.update(reads[block][i])
            self.mark(live | set(block.params), point)
            point = end + 1

    def dying(self, is_large: Callable[[Var], bool]) -> dict[Node, list[Var]]:
        """The large variables that each root reads for the last time, but for the arguments.

        The caller holds those anyhow.
        """
        kept = set(map(self.find, self.ir.params))
        found = {}
        for node, ended in self.last.items():
            if large := [v for v in ended if self.find(v) not in kept and is_large(v)]:
                found[node] = large
        return found

    def written_by_end(self, block: Block) -> set[Var]:
        item = self.jumps[block].item
        return set() if item is None else {item}

    def live_at_end(self, block: Block, live_in: dict[Block, set[Var]]) -> set[Var]:
        live: set[Var] = set()
        for successor in block.successors():
            live |= live_in[successor]
        return live

    def mark(self, live: set[Var], point: int) -> None:
        bit = 1 << point
        for v in live:
            self.range[v] = self.range.get(v, 0) | bit

    def find(self, v: Var) -> Var:
        while (up := self.parent.get(v)) is not None:
            v = up
        return v

    def coalesce(self) -> None:
        entry = set(self.ir.params)
        for block in reversed(self.ir.blocks):
            if len(block.branches) != 1 or block.branches[0].block is None:
                continue
            for x, param in zip(
                self.jumps[block].operands, block.branches[0].block.params, strict=True
            ):
                if type(x) is Node:
                    continue
                if type(x) is not Var or x in self.free:
                    continue
                a, b = self.find(x), self.find(param)
                if a is b or (a in entry and b in entry):
                    continue
                if self.range.get(a, 0) & self.range.get(b, 0):
                    continue
                if b in entry:
                    a, b = b, a
                self.parent[b] = a
                self.range[a] = self.range.get(a, 0) | self.range.get(b, 0)

    def colour(self) -> dict[Var, str]:
        """Slots for the classes, the first that is free over the whole range."""
        taken: list[tuple[str, int]] = []
        names: set[str] = set(self.free.values())
        slot_of: dict[Var, str] = {}
        for i, param in enumerate(self.ir.params):
            name = self.like.co_varnames[i] if i < count_of_parameters(self.like) else f"arg{i}"
            slot_of[self.find(param)] = name
            taken.append((name, self.range.get(self.find(param), 0) | 1))
            names.add(name)
        classes = {self.find(v): None for v in self.range}
        for v in sorted(classes, key=lambda v: self.range[v] & -self.range[v]):
            if v in slot_of:
                continue
            slot_of[v] = self.first_free(v, taken, names)
        return {v: slot_of[self.find(v)] for v in self.range}

    def first_free(self, v: Var, taken: list[tuple[str, int]], names: set[str]) -> str:
        for i, (name, range_) in enumerate(taken):
            if not range_ & self.range[v]:
                taken[i] = (name, range_ | self.range[v])
                return name
        name = base = v.name if v.name.isidentifier() else f"v{len(taken)}"
        while name in names:
            name = f"{base}_{len(names)}"
        names.add(name)
        taken.append((name, self.range[v]))
        return name


# -- the instructions that primitives stand for


class Selection:
    """How calls of a primitive are emitted.

    `arrange` gives the operands in the order of the stack, or None where only a call will do.
    """

    __slots__ = ("arrange", "emit", "is_statement")

    def __init__(
        self,
        arrange: Callable[[_Emitter, Call], list[Operand] | None],
        emit: Callable[[_Emitter, Node], None],
        is_statement: bool,
    ) -> None:
        self.arrange = arrange
        self.emit = emit
        self.is_statement = is_statement


SELECTIONS: dict[int, Selection] = {}


def _all_args(e: _Emitter, call: Call) -> list[Operand] | None:
    return list(call.args)


def _takes(n: int) -> Callable[[_Emitter, Call], list[Operand] | None]:
    return lambda e, call: list(call.args) if len(call.args) == n else None


def select(
    primitive: Any,
    finish: Callable[[Assembler, Node], None],
    arrange: Callable[[_Emitter, Call], list[Operand] | None] = _all_args,
    statement: bool = False,
) -> None:
    """Calls of `primitive`: its operands, loaded in the order of `arrange`, then `finish`."""

    def emit_operation(e: _Emitter, node: Node) -> None:
        for x in node.operands:
            e.operand(x)
        e.asm.at(node.call.position)
        finish(e.asm, node)

    SELECTIONS[id(primitive)] = Selection(arrange, emit_operation, statement)


def _constant(x: Operand) -> Any:
    assert type(x) is Const
    return x.value


for _name in BINARY_OPS:
    select(getattr(operator, _name), lambda asm, node, n=_name: asm.binary(n), _takes(2))  # type: ignore[misc]
for _name in COMPARISONS:
    select(getattr(operator, _name), lambda asm, node, n=_name: asm.compare(n), _takes(2))  # type: ignore[misc]
for _name in UNARY:
    select(getattr(operator, _name), lambda asm, node, n=_name: asm.unary(n), _takes(1))  # type: ignore[misc]
select(primitives.alias, lambda asm, node: None, _takes(1))
select(operator.is_, lambda asm, node: asm.op("IS_OP", 0), _takes(2))
select(operator.is_not, lambda asm, node: asm.op("IS_OP", 1), _takes(2))
select(
    operator.contains,
    lambda asm, node: asm.op("CONTAINS_OP", 0),
    lambda e, c: [c.args[1], c.args[0]],
)
select(operator.getitem, lambda asm, node: asm.subscript(), _takes(2))
select(
    operator.setitem,
    lambda asm, node: asm.op("STORE_SUBSCR"),
    lambda e, c: [c.args[2], c.args[0], c.args[1]],
    statement=True,
)
select(primitives.require, lambda asm, node: asm.op("POP_TOP"), _takes(1), statement=True)
select(operator.delitem, lambda asm, node: asm.op("DELETE_SUBSCR"), _takes(2), statement=True)


def _attribute(n: int, order: tuple[int, ...]) -> Callable[[_Emitter, Call], list[Operand] | None]:
    """Operands of an access whose name, the second argument, is a constant."""

    def arrange(e: _Emitter, call: Call) -> list[Operand] | None:
        if len(call.args) != n or type(call.args[1]) is not Const:
            return None
        return [call.args[i] for i in order]

    return arrange


def _emit_getattr(e: _Emitter, node: Node) -> None:
    e.operand(node.operands[0])
    e.asm.at(node.call.position)
    e.asm.load_attr(_constant(node.call.args[1]))


SELECTIONS[id(getattr)] = Selection(_attribute(2, (0, 1)), _emit_getattr, False)
SELECTIONS[id(primitives.actual_attribute)] = SELECTIONS[id(getattr)]
SELECTIONS[id(primitives.actual_item)] = SELECTIONS[id(operator.getitem)]


def _calls(builtin: Any) -> Selection:
    """A call of the builtin that a primitive is another name of."""

    def emit_call(e: _Emitter, node: Node) -> None:
        e.asm.before_callable()
        e.asm.const(builtin)
        e.asm.after_callable()
        e.operand(node.operands[0])
        e.asm.at(node.call.position)
        e.asm.call(1, ())

    return Selection(_takes(1), emit_call, False)


SELECTIONS[id(primitives.actual_type)] = _calls(type)
SELECTIONS[id(primitives.actual_length)] = _calls(len)
select(
    setattr,
    lambda asm, node: asm.op("STORE_ATTR", _constant(node.call.args[1])),
    _attribute(3, (2, 0)),
    statement=True,
)
select(
    delattr,
    lambda asm, node: asm.op("DELETE_ATTR", _constant(node.call.args[1])),
    _attribute(2, (0,)),
    statement=True,
)
for _primitive, _op in (
    (primitives.build_tuple, "BUILD_TUPLE"),
    (primitives.build_list, "BUILD_LIST"),
    (primitives.build_set, "BUILD_SET"),
    (primitives.build_string, "BUILD_STRING"),
):
    select(
        _primitive,
        lambda asm, node, op=_op: asm.op(op, len(node.operands)),  # type: ignore[misc]
    )
select(primitives.build_map, lambda asm, node: asm.const_key_map(len(node.operands) // 2))
select(
    slice,
    lambda asm, node: asm.op("BUILD_SLICE", len(node.operands)),
    lambda e, c: list(c.args) if len(c.args) in (2, 3) else None,
)
select(iter, lambda asm, node: asm.op("GET_ITER"), _takes(1))


def _grows(primitive: Any, op: str) -> None:
    def finish(asm: Assembler, node: Node) -> None:
        asm.op(op, 1)
        asm.op("POP_TOP")

    select(primitive, finish, statement=True)


_grows(primitives.list_append, "LIST_APPEND")
_grows(primitives.list_extend, "LIST_EXTEND")
_grows(primitives.set_add, "SET_ADD")
_grows(primitives.set_update, "SET_UPDATE")
_grows(primitives.map_add, "MAP_ADD")
_grows(primitives.dict_update, "DICT_UPDATE")

select(
    primitives.format_value,
    lambda asm, node: asm.format_value(_constant(node.call.args[1]), len(node.operands) == 2),
    lambda e, c: (
        None
        if type(c.args[1]) is not Const
        else [c.args[0]]
        if type(c.args[2]) is Const and c.args[2].value == ""
        else [c.args[0], c.args[2]]
    ),
)


def _emit_apply(e: _Emitter, node: Node) -> None:
    fn, args, kwargs = node.operands
    e.asm.at(node.call.position)
    e.asm.before_callable()
    e.operand(fn)
    e.asm.after_callable()
    e.operand(args)
    made = type(kwargs) is Node and kwargs.call.primitive is primitives.build_map
    none = made and not kwargs.operands
    if not none:
        e.operand(kwargs)
    e.asm.at(node.call.position)
    e.asm.call_ex(not none)


SELECTIONS[id(primitives.apply)] = Selection(_takes(3), _emit_apply, False)


def _own(operands: Callable[[Call], list[Operand]]) -> Any:
    """Instructions that work on the globals of the running function."""

    def arrange(e: _Emitter, call: Call) -> list[Operand] | None:
        namespace, name = call.args[:2]
        if type(namespace) is not Const or namespace.value is not e.namespace:
            return None
        return operands(call) if type(name) is Const else None

    return arrange


select(
    primitives.load_global,
    lambda asm, node: asm.load_global(_constant(node.call.args[1])),
    _own(lambda c: []),
)
select(
    primitives.store_global,
    lambda asm, node: asm.op("STORE_GLOBAL", _constant(node.call.args[1])),
    _own(lambda c: [c.args[2]]),
    statement=True,
)
select(
    primitives.delete_global,
    lambda asm, node: asm.op("DELETE_GLOBAL", _constant(node.call.args[1])),
    _own(lambda c: []),
    statement=True,
)
select(
    primitives.import_name,
    lambda asm, node: asm.import_name(_constant(node.call.args[1])),
    _own(lambda c: [c.args[3], c.args[2]]),
)


def _own_cell(e: _Emitter, call: Call) -> list[Operand] | None:
    """A cell that the emitted function itself closes over."""
    cell = call.args[0]
    return list(call.args[1:2]) if type(cell) is Var and cell in e.free else None


def _emit_get_cell(e: _Emitter, node: Node) -> None:
    e.asm.at(node.call.position)
    e.asm.free("LOAD_DEREF", e.free[node.call.args[0]])  # type: ignore[index]


def _emit_set_cell(e: _Emitter, node: Node) -> None:
    e.operand(node.operands[0])
    e.asm.at(node.call.position)
    e.asm.free("STORE_DEREF", e.free[node.call.args[0]])  # type: ignore[index]


SELECTIONS[id(primitives.get_cell)] = Selection(_own_cell, _emit_get_cell, False)
SELECTIONS[id(primitives.set_cell)] = Selection(_own_cell, _emit_set_cell, True)


def _arrange_function(e: _Emitter, call: Call) -> list[Operand] | None:
    namespace, code, defaults, kwdefaults, annotations, *cells = call.args
    own = type(namespace) is Const and namespace.value is e.namespace
    plain = type(annotations) is Const and annotations.value is None
    return [defaults, kwdefaults, *cells, code] if own and plain else None


def _emit_function(e: _Emitter, node: Node) -> None:
    defaults, kwdefaults, *cells, code = node.operands
    flags = 0
    for bit, x in ((1, defaults), (2, kwdefaults)):
        if not (type(x) is Const and x.value is None):
            e.operand(x)
            flags |= bit
    if cells:
        for x in cells:
            e.operand(x)
        e.asm.op("BUILD_TUPLE", len(cells))
        flags |= 8
    e.operand(code)
    e.asm.at(node.call.position)
    e.asm.make_function(flags)


SELECTIONS[id(primitives.make_function)] = Selection(_arrange_function, _emit_function, False)


def _arrange_raise(e: _Emitter, call: Call) -> list[Operand] | None:
    if type(call.args[1]) is Const and call.args[1].value is primitives.NULL:
        return [call.args[0]]
    return list(call.args)


select(
    primitives.raise_exception,
    lambda asm, node: asm.op("RAISE_VARARGS", len(node.operands)),
    _arrange_raise,
    statement=True,
)


def _emit_push_exc_info(asm: Assembler, node: Node) -> None:
    asm.op("PUSH_EXC_INFO")
    asm.op("POP_TOP")


select(protected.push_exc_info, _emit_push_exc_info, _takes(1))
select(protected.pop_except, lambda asm, node: asm.op("POP_EXCEPT"), _takes(1), statement=True)
select(protected.reraise, lambda asm, node: asm.op("RERAISE", 0), _takes(1), statement=True)


def _emit_sum(e: _Emitter, node: Node) -> None:
    """c, x̄ -> c where x̄ is the structural zero, else c + x̄."""
    add, end = Label(), Label()
    for x in node.operands:
        e.operand(x)
    e.asm.at(node.call.position)
    e.asm.op("COPY", 1)
    e.asm.const(ZERO)
    e.asm.op("IS_OP", 0)
    e.asm.jump_if("FALSE", add, False)
    e.asm.op("POP_TOP")
    e.asm.jump(end, False)
    e.asm.label(add)
    e.asm.binary("add")
    e.asm.label(end)


SELECTIONS[id(primitives.sum_if_any)] = Selection(
    lambda e, c: [c.args[1], c.args[0]], _emit_sum, False
)
