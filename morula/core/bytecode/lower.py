"""A code object in canonical instructions -> SSA form.

The locals and the slots of the stack are named variables of the blocks, which `ssa.Variables` turns
into block arguments. Every instruction becomes at most a few calls; none has a meaning here.
"""

from __future__ import annotations

import builtins
import inspect
import operator
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from types import CodeType
from typing import Any

from morula.core import errors, patterns, primitives, protected
from morula.core.abandon import dropped
from morula.core.bytecode.instructions import Handler, Instruction, decode, handlers, slot_names
from morula.core.emit import emit
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
    reachable,
)
from morula.core.ssa import Variables, prune_params

_JUMPS = {
    "jump",
    "jump_if_true",
    "jump_if_false",
    "jump_if_none",
    "jump_if_not_none",
    "jump_if_true_or_pop",
    "jump_if_false_or_pop",
    "for_iter",
    "send",
}
_ENDS = {"return", "raise", "jump", "reraise"}
# What the instructions on variables do to them: bind or unbind. Cells count as what they hold.
_BINDING = {
    "store_local": True,
    "store_deref": True,
    "delete_local": False,
    "delete_deref": False,
    "load_and_clear_local": False,
}
_COMPARISONS = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}

_NULL = Const(primitives.NULL)

# Calls of these do not raise, so they need no second successor.
_NEVER_RAISE = {
    operator.is_,
    operator.is_not,
    slice,
    type,
    primitives.build_tuple,
    primitives.build_list,
    primitives.list_append,
    primitives.make_cell,
    primitives.set_cell,
    primitives.make_function,
    primitives.own_keywords,
    protected.push_exc_info,
    protected.pop_except,
    protected.attempt,
    protected.has_raised,
    protected.exception_of,
    protected.give_raised,
    patterns.is_sequence,
    patterns.is_mapping,
}
# Their values are bools, so that testing them does not raise either.
_TESTS = {operator.is_, operator.is_not, operator.not_, operator.truth, operator.contains}
_TESTS |= {protected.exception_matches, patterns.is_sequence, patterns.is_mapping}
_CONDITIONS = {getattr(operator, name) for name in ("lt", "le", "eq", "ne", "ge", "gt")}
_CONDITIONS |= _TESTS

_lowered: dict[tuple[int, int, bool], tuple[CodeType, IR]] = {}
_lock = threading.RLock()


def lower(
    code: CodeType, namespace: dict[str, Any], guarded: bool = False, keep: bool = True
) -> IR:
    """The SSA form of a function with this code and these globals; not to be changed.

    A guarded one gives `Raised` where an exception would leave the function. Without `keep` it is made
    anew the next time: for those who keep what they make of it.

    Raises:
        UnsupportedError: the code uses a construct that is not lowered; it is named with its line.
    """
    key = (id(code), id(namespace), guarded)
    found = _lowered.get(key)
    if found is None:
        if not keep:
            return _lower(code, namespace, guarded)
        with _lock:
            found = _lowered.setdefault(key, (code, _lower(code, namespace, guarded)))
    return found[1]


Maker = Callable[[CodeType, dict[str, Any]], IR | None]
MAKERS: list[Maker] = []  # for code that is not that of an ordinary function


def with_notes(code: CodeType, namespace: dict[str, Any], guarded: bool = False) -> IR:
    """The same, made anew, with notes of what is dropped."""
    return _lower(code, namespace, guarded, notes=True)


def _lower(code: CodeType, namespace: dict[str, Any], guarded: bool, notes: bool = False) -> IR:
    if id(code) in _derived:
        _, original, form = _derived[id(code)]
        lowering = form(original, namespace, guarded)
    else:
        for make in MAKERS:
            ir = make(code, namespace)
            if ir is not None:
                return ir
        lowering = Lowering(code, namespace, guarded)
    lowering.notes = notes
    return lowering.run()


_derived: dict[int, tuple[CodeType, CodeType, Form]] = {}


def derive(code: CodeType, namespace: dict[str, Any], form: Form, like: CodeType) -> CodeType:
    """A code object with the parameters of `like` that does what the form makes of `code`."""
    ir = form(code, namespace, False).run()
    like = like.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_freevars=code.co_freevars,
    )
    derived = emit(ir.copy(), like, namespace)
    _derived[id(derived)] = (derived, code, form)
    adopt(derived, namespace, ir)
    return derived


def adopt(code: CodeType, namespace: dict[str, Any], ir: IR) -> None:
    """Say what the SSA form of a code object is that was made from it."""
    _lowered[id(code), id(namespace), False] = (code, ir)


def location(code: CodeType, line: int | None) -> str:
    """A place in the user's source as it stands in messages."""
    return f"{code.co_filename}:{line or code.co_firstlineno}, in {code.co_qualname}"


class Lowering:
    """The lowering of one code object; the functions in `STEPS` are its instructions."""

    notes = False  # are values noted that are dropped?

    def __init__(self, code: CodeType, namespace: dict[str, Any], guarded: bool) -> None:
        self.code = code
        self.namespace = namespace
        self.guarded = guarded
        self.handler: Handler | None = None  # of the instruction that is being lowered
        self.ir = IR(code.co_qualname, code.co_filename)
        self.variables = Variables(self.ir, self.at_entry)
        self.slots = slot_names(code)
        self.at_start: dict[int, Var] = {}  # what the slots of arguments and free variables hold
        self.block = Block()
        self.depth = 0
        self.keywords: tuple[str, ...] = ()
        self.position = Position()
        self.bound: set[int] = set()
        self.before: dict[Block, Block] = {}  # a call that may raise -> where it stands
        self.nulls: set[int] = set()  # the slots of the stack that hold NULL

    # -- the whole function

    def run(self) -> IR:
        instructions = decode(self.code)
        self.handlers = handlers(self.code, instructions)
        self.instructions = instructions
        self.bare_handlers = {  # where `except:` drops the exception that it does not ask about
            ins.offset
            for before, ins in pairwise(instructions)
            if (before.op, ins.op) == ("push_exc_info", "pop")
        }
        bodies = self.cut(instructions)
        self.entry()
        self.assigned = self.definitely_assigned(bodies)
        by_block = dict(bodies)
        # In the order of control, so that the depth of the stack is known where a block begins.
        self.waiting: list[tuple[Block, int, set[int]]] = [(self.first, 0, set())]
        seen = set()
        while self.waiting:
            begin, self.depth, nulls = self.waiting.pop()
            if begin in seen:
                continue
            seen.add(begin)
            self.block, self.nulls = begin, set(nulls)
            self.bound = set(self.assigned[begin])
            for ins in by_block[begin]:
                self.position = ins.position
                self.offset = ins.offset
                self.handler = self.handler_at(ins.offset)
                STEPS[ins.op](self, ins.arg)
            self.handler = None
            block = self.block  # another one than where it began, if calls may raise
            if not block.branches and by_block[begin][-1].op not in _ENDS:
                self.goto(self.following[block])
            for target in block.successors():
                depth = self.exit_depths.get((block, target), self.depth)
                if target in by_block:
                    self.waiting.append((target, depth, self.nulls))
        self.finish()
        prune_params(self.ir)
        return self.ir

    def finish(self) -> None:
        """All instructions have been lowered."""
        self.ir.blocks = reachable(self.ir)
        self.variables.finish()

    def returns(self, value: Operand) -> None:
        """End the function."""
        self.block.branches.append(Branch(None, (value,)))

    def entry(self) -> None:
        """The first block: arguments and the cells that are closed over."""
        entry = self.ir.block()
        self.ir.blocks.insert(0, self.ir.blocks.pop())
        self.block = entry
        code = self.code
        n = count_of_parameters(code)
        for i, name in enumerate(code.co_varnames[:n]):
            self.at_start[i] = self.ir.var(name)
        entry.params = list(self.at_start.values())
        if code.co_flags & inspect.CO_VARKEYWORDS:
            kwargs, name = entry.params[-1], entry.params[-1].name
            self.at_start[n - 1] = self.call(primitives.own_keywords, kwargs, name=name)
        self.ir.free = [self.ir.var(name) for name in code.co_freevars]
        self.at_start.update(enumerate(self.ir.free, len(self.slots) - len(self.ir.free)))
        entry.branches.append(Branch(self.first))

    def at_entry(self, block: Block, variable: Any) -> Operand | None:
        if block is not self.ir.entry:
            return None
        kind, i = variable
        found = self.at_start.get(i) if kind == "slot" else None
        return Const(primitives.UNDEFINED) if found is None else found

    def handler_at(self, offset: int) -> Handler | None:
        """The handler of an instruction."""
        return next((h for h in self.handlers if h.protects(offset)), None)

    def cut(self, instructions: list[Instruction]) -> list[tuple[Block, list[Instruction]]]:
        """Basic blocks: they begin at the targets of jumps and behind jumps."""
        self.check_constructs(instructions)
        offsets = [ins.offset for ins in instructions]
        leaders = {offsets[0], *[h.target for h in self.handlers]}
        for i, ins in enumerate(instructions):
            if ins.op in _JUMPS:
                leaders.add(self.target(ins))
            if (ins.op in _JUMPS or ins.op in _ENDS) and i + 1 < len(offsets):
                leaders.add(offsets[i + 1])
        bodies: list[tuple[Block, list[Instruction]]] = []
        self.block_at: dict[int, Block] = {}
        self.following: dict[Block, Block] = {}
        for ins in instructions:
            if ins.offset in leaders and ins.offset not in self.block_at:
                block = self.ir.block()
                if bodies:
                    self.following[bodies[-1][0]] = block
                self.block_at[ins.offset] = block
                bodies.append((block, []))
            bodies[-1][1].append(ins)
        self.first = bodies[0][0]
        return bodies

    def check_constructs(self, instructions: list[Instruction]) -> None:
        for ins in instructions:
            if ins.op == "unsupported":
                raise errors.unsupported(ins.arg, location(self.code, ins.position.line))

    @staticmethod
    def target(ins: Instruction) -> int:
        return ins.arg[0] if type(ins.arg) is tuple else ins.arg

    def definitely_assigned(
        self, bodies: list[tuple[Block, list[Instruction]]]
    ) -> dict[Block, frozenset[int]]:
        """The slots that are bound whichever way a block was reached."""
        self.exit_depths: dict[tuple[Block, Block], int] = {}
        following: dict[Block, list[Block]] = {}
        for block, body in bodies:
            targets = [self.block_at[self.target(ins)] for ins in body if ins.op in _JUMPS]
            if body[-1].op not in _ENDS and block in self.following:
                targets.append(self.following[block])
            following[block] = targets
        # Comprehensions put back what they found, which may be nothing.
        self.hidden = {
            ins.arg for _, body in bodies for ins in body if ins.op == "load_and_clear_local"
        }
        found: dict[Block, frozenset[int]] = {self.first: frozenset(self.at_start) - self.hidden}
        work = [self.first]

        def meet(target: Block, bound: set[int]) -> None:
            old = found.get(target)
            new = frozenset(bound) if old is None else old & bound
            if new != old:
                found[target] = new
                work.append(target)

        by_block = dict(bodies)
        while work:
            block = work.pop()
            bound = set(found[block])
            for ins in by_block[block]:
                if self.handlers and (handler := self.handler_at(ins.offset)) is not None:
                    meet(self.block_at[handler.target], bound)
                if ins.op in _BINDING:
                    self.bind(bound, ins.arg, _BINDING[ins.op])
            for target in following[block]:
                meet(target, bound)
        return found

    def bind(self, bound: set[int], slot: int, binds: bool) -> None:
        if binds and slot not in self.hidden:
            bound.add(slot)
        else:
            bound.discard(slot)

    # -- the stack and the locals of the current block

    def push(self, value: Operand, is_null: bool = False) -> None:
        self.variables.write(self.block, ("stack", self.depth), value)
        (self.nulls.add if is_null or value is _NULL else self.nulls.discard)(self.depth)
        self.depth += 1

    def pop(self) -> Operand:
        self.depth -= 1
        return self.variables.read(self.block, ("stack", self.depth))

    def note_dropped(self, depth: int) -> None:
        """Note that the stack is cut down to this depth, from the top."""
        for i in reversed(range(depth, self.depth)):
            x = self.variables.read(self.block, ("stack", i))
            if type(x) is Var:
                self.append(dropped, x)

    def popn(self, n: int) -> list[Operand]:
        return [self.pop() for _ in range(n)][::-1]

    def peek(self, i: int) -> Operand:
        return self.variables.read(self.block, ("stack", self.depth - i))

    def append(self, fn: Any, *args: Any, keywords: tuple[str, ...] = (), name: str = "") -> Var:
        """Append a call; operands that are not variables are constants."""
        out = self.ir.var(name)
        callee = fn if isinstance(fn, Var | Const) else Const(fn)
        operands = [a if isinstance(a, Var | Const) else Const(a) for a in args]
        self.block.calls.append(Call(out, callee, operands, keywords, self.position))
        return out

    def call(self, fn: Any, *args: Any, keywords: tuple[str, ...] = (), name: str = "") -> Var:
        """Append a call; in a protected region it ends the block, which has two successors."""
        is_protected = self.guarded or self.handler is not None
        if not is_protected or not self.may_raise(fn, args):
            return self.append(fn, *args, keywords=keywords, name=name)
        out = self.append(protected.attempt, fn, *args, keywords=keywords, name=name)
        go_on = self.split(self.append(protected.has_raised, out))
        self.goto_handler(self.append(protected.exception_of, out))
        self.block = go_on
        return out

    def split(self, cond: Operand) -> Block:
        """Go on in a new block if the condition holds; gives the block that is for when it does not.

        There the instructions go on.
        """
        yes, no = self.ir.block(), self.ir.block()
        self.block.branches = [Branch(yes, (), cond), Branch(no)]
        if self.block in self.following:
            self.following[no] = self.following[self.block]
        self.before[no] = self.block
        for block in (yes, no):
            self.variables.follow(block, self.block)
        self.block = yes
        return no

    def may_raise(self, fn: Any, args: tuple[Any, ...]) -> bool:
        """Does a call perhaps raise an exception?"""
        fn = fn.value if type(fn) is Const else fn
        if fn is primitives.load_global:
            name = args[1]
            return name not in self.namespace and name not in vars(builtins)
        return type(fn) is Var or fn not in _NEVER_RAISE

    def goto_handler(self, exception: Operand) -> None:
        """End the block with an exception: it goes to its handler or leaves the function."""
        if self.notes and (self.handler is not None or self.guarded):
            self.note_dropped(0 if self.handler is None else self.handler.depth)
        if self.handler is not None:
            self.handle(exception, self.handler)
        elif self.guarded:
            raised = self.append(protected.give_raised, exception)
            self.block.branches = [Branch(None, (raised,))]
        else:
            self.append(protected.reraise, exception)
        self.block = self.ir.block()  # which is never reached

    def handle(self, exception: Operand, handler: Handler) -> None:
        """Go to a handler, with the stack as it expects it."""
        depth = handler.depth
        if handler.with_offset:
            self.variables.write(self.block, ("stack", depth), Const(-1))
            depth += 1
        self.variables.write(self.block, ("stack", depth), exception)
        target = self.block_at[handler.target]
        self.block.branches = [Branch(target)]
        nulls = {i for i in self.nulls if i < handler.depth}
        self.waiting.append((target, depth + 1, nulls))

    def test(self, x: Operand) -> Operand:
        """A condition, whose truth is found here if that may run code or raise an exception."""
        made = self.definition(x)
        protected = self.guarded or self.handler is not None
        if made is not None and made in (_TESTS if protected else _CONDITIONS):
            return x
        return self.call(operator.truth, x)

    def definition(self, x: Operand) -> Any:
        """The primitive that gives x, if it is one."""
        made = _definition(self, x)
        return None if made is None else made.primitive

    def callee(self) -> tuple[Operand, list[Operand]]:
        """The callable of a call and the arguments that stand beside it.

        Of its two slots one is NULL, or the upper one is the first argument.
        """
        top_is_null, below_is_null = (self.depth - i in self.nulls for i in (1, 2))
        below, top = self.popn(2)
        if below_is_null:
            return top, []
        return below, [] if top_is_null else [top]

    # -- the ends of blocks

    def goto(self, target: Block, cond: Operand | None = None) -> None:
        self.block.branches.append(Branch(target, (), cond))

    def fork(self, offset: int, cond: Operand) -> None:
        """Jump if the condition holds, else go on."""
        cond = self.test(cond)
        self.goto(self.block_at[offset], cond)
        self.goto(self.following[self.block])


Form = Callable[[CodeType, dict[str, Any], bool], Lowering]

STEPS: dict[str, Callable[[Lowering, Any], None]] = {}


def lowers(op: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register how a canonical instruction becomes calls."""

    def register(step: Callable[..., None]) -> Callable[..., None]:
        STEPS[op] = step
        return step

    return register


# -- the stack


@lowers("nothing")
def _(b: Lowering, arg: Any) -> None:
    pass


@lowers("const")
def _(b: Lowering, arg: Any) -> None:
    b.push(Const(arg))


@lowers("push_null")
def _(b: Lowering, arg: Any) -> None:
    b.push(_NULL)


@lowers("push_null_below")
def _(b: Lowering, arg: Any) -> None:
    top = b.pop()
    b.push(_NULL)
    b.push(top)


@lowers("pop")
def _(b: Lowering, arg: Any) -> None:
    x = b.pop()
    if b.offset in b.bare_handlers:
        b.call(protected.pass_refusals, x)
    if b.notes and type(x) is Var:
        b.append(dropped, x)


@lowers("copy")
def _(b: Lowering, arg: int) -> None:
    b.push(b.peek(arg))


@lowers("swap")
def _(b: Lowering, arg: int) -> None:
    nulls = [i in b.nulls for i in range(b.depth - arg, b.depth)]
    items = b.popn(arg)
    items[0], items[-1] = items[-1], items[0]
    nulls[0], nulls[-1] = nulls[-1], nulls[0]
    for item, is_null in zip(items, nulls, strict=True):
        b.push(item, is_null)


# -- variables


def _read(b: Lowering, slot: int) -> Operand:
    """What a slot holds: an object, a cell or UNDEFINED."""
    return b.variables.read(b.block, ("slot", slot), b.slots[slot])


def _check_bound(b: Lowering, slot: int) -> Operand:
    """What a slot holds, if it is bound."""
    value = _read(b, slot)
    if slot in b.bound:
        return value
    return b.call(primitives.check_bound, value, b.slots[slot], name=b.slots[slot])


@lowers("load_local")
def _(b: Lowering, slot: int) -> None:
    b.push(_read(b, slot))


@lowers("load_local_checked")
def _(b: Lowering, slot: int) -> None:
    b.push(_check_bound(b, slot))
    b.bind(b.bound, slot, True)


@lowers("store_local")
def _(b: Lowering, slot: int) -> None:
    value = b.pop()
    if type(value) is Var and not value.name:
        value.name = b.slots[slot]
    b.variables.write(b.block, ("slot", slot), value)
    b.bind(b.bound, slot, True)


@lowers("load_and_clear_local")
def _(b: Lowering, slot: int) -> None:
    b.push(_read(b, slot))
    b.variables.write(b.block, ("slot", slot), Const(primitives.UNDEFINED))


@lowers("delete_local")
def _(b: Lowering, slot: int) -> None:
    _check_bound(b, slot)
    b.variables.write(b.block, ("slot", slot), Const(primitives.UNDEFINED))
    b.bind(b.bound, slot, False)


@lowers("make_cell")
def _(b: Lowering, slot: int) -> None:
    cell = b.call(primitives.make_cell, _read(b, slot), name=b.slots[slot])
    b.variables.write(b.block, ("slot", slot), cell)


def _cell(b: Lowering, slot: int) -> list[Operand]:
    """The cell in a slot and its name, for a primitive that reads it.

    They also learn if the function's own variable, not a free one, may be unbound here.
    """
    name = b.slots[slot]
    own = slot < len(b.slots) - len(b.ir.free)
    return [_read(b, slot), Const(name), *([Const(True)] if own and slot not in b.bound else [])]


@lowers("load_deref")
def _(b: Lowering, slot: int) -> None:
    b.push(b.call(primitives.get_cell, *_cell(b, slot), name=b.slots[slot]))


@lowers("store_deref")
def _(b: Lowering, slot: int) -> None:
    b.call(primitives.set_cell, _read(b, slot), b.pop())
    b.bind(b.bound, slot, True)


@lowers("delete_deref")
def _(b: Lowering, slot: int) -> None:
    b.call(primitives.delete_cell, *_cell(b, slot))
    b.bind(b.bound, slot, False)


@lowers("load_global")
def _(b: Lowering, name: str) -> None:
    b.push(b.call(primitives.load_global, Const(b.namespace), name, name=name))


@lowers("store_global")
def _(b: Lowering, name: str) -> None:
    b.call(primitives.store_global, Const(b.namespace), name, b.pop())


@lowers("delete_global")
def _(b: Lowering, name: str) -> None:
    b.call(primitives.delete_global, Const(b.namespace), name)


@lowers("build_class")
def _(b: Lowering, arg: Any) -> None:
    b.push(Const(builtins.__build_class__))


@lowers("import_name")
def _(b: Lowering, name: str) -> None:
    level, names = b.popn(2)
    b.push(b.call(primitives.import_name, Const(b.namespace), name, names, level))


@lowers("import_from")
def _(b: Lowering, name: str) -> None:
    b.push(b.call(primitives.import_from, b.peek(1), name))


# -- operators


@lowers("binary")
def _(b: Lowering, name: str) -> None:
    left, right = b.popn(2)
    b.push(b.call(getattr(operator, name), left, right))


@lowers("unary")
def _(b: Lowering, name: str) -> None:
    b.push(b.call(getattr(operator, name), b.pop()))


@lowers("compare")
def _(b: Lowering, sign: str) -> None:
    left, right = b.popn(2)
    b.push(b.call(getattr(operator, _COMPARISONS.get(sign, sign)), left, right))


@lowers("contains")
def _(b: Lowering, negated: bool) -> None:
    item, items = b.popn(2)
    found = b.call(operator.contains, items, item)
    b.push(b.call(operator.not_, found) if negated else found)


@lowers("store_item")
def _(b: Lowering, arg: Any) -> None:
    value, items, key = b.popn(3)
    b.call(operator.setitem, items, key, value)


@lowers("delete_item")
def _(b: Lowering, arg: Any) -> None:
    items, key = b.popn(2)
    b.call(operator.delitem, items, key)


@lowers("get_slice")
def _(b: Lowering, arg: Any) -> None:
    items, start, stop = b.popn(3)
    b.push(b.call(operator.getitem, items, b.call(slice, start, stop)))


@lowers("set_slice")
def _(b: Lowering, arg: Any) -> None:
    value, items, start, stop = b.popn(4)
    b.call(operator.setitem, items, b.call(slice, start, stop), value)


@lowers("load_attr")
def _(b: Lowering, name: str) -> None:
    if name == "f_locals":
        b.call(primitives.refuse_frame, b.peek(1), location(b.code, b.position.line))
    b.push(b.call(getattr, b.pop(), name, name=name))


@lowers("store_attr")
def _(b: Lowering, name: str) -> None:
    value, owner = b.popn(2)
    b.call(setattr, owner, name, value)


@lowers("delete_attr")
def _(b: Lowering, name: str) -> None:
    b.call(delattr, b.pop(), name)


# -- displays


def _display(op: str, fn: Any) -> None:
    @lowers(op)
    def _(b: Lowering, n: int) -> None:
        b.push(b.call(fn, *b.popn(n)))


_display("build_tuple", primitives.build_tuple)
_display("build_list", primitives.build_list)
_display("build_set", primitives.build_set)
_display("build_string", primitives.build_string)
_display("build_slice", slice)


@lowers("build_map")
def _(b: Lowering, n: int) -> None:
    b.push(b.call(primitives.build_map, *b.popn(2 * n)))


@lowers("build_const_key_map")
def _(b: Lowering, n: int) -> None:
    keys = b.pop()
    assert isinstance(keys, Const)
    pairs = zip(keys.value, b.popn(n), strict=True)
    b.push(b.call(primitives.build_map, *[x for k, v in pairs for x in (Const(k), v)]))


def _grow(op: str, fn: Any, n: int = 1) -> None:
    """`fn` on a container `i` slots down the stack, with the `n` items above it."""

    @lowers(op)
    def _(b: Lowering, i: int) -> None:
        items = b.popn(n)
        b.call(fn, b.peek(i), *items)


_grow("list_append", primitives.list_append)
_grow("set_add", primitives.set_add)
_grow("set_update", primitives.set_update)
_grow("map_add", primitives.map_add, 2)
_grow("dict_update", primitives.dict_update)

MOST_CONSTANTS = 64  # of a display that are written down one by one


@lowers("list_extend")
def _(b: Lowering, i: int) -> None:
    """`[1, 2, 3]` of constants is an empty list and its extension in the code object."""
    more = b.pop()
    xs = b.peek(i)
    made = b.block.calls[-1] if b.block.calls else None
    if (
        type(more) is Const
        and type(more.value) is tuple
        and len(more.value) <= MOST_CONSTANTS
        and made is not None
        and made.out is xs
        and made.primitive is primitives.build_list
    ):
        made.args = (*made.args, *map(Const, more.value))
    else:
        b.call(primitives.list_extend, xs, more)


@lowers("dict_merge")
def _(b: Lowering, i: int) -> None:
    more = b.pop()
    below_args = i + 2
    fn = b.peek(below_args + (b.depth - below_args in b.nulls))
    b.call(primitives.dict_merge, b.peek(i), more, fn)


@lowers("list_to_tuple")
def _(b: Lowering, arg: Any) -> None:
    b.push(b.call(primitives.as_tuple, b.pop()))


@lowers("make_type")
def _(b: Lowering, how: tuple[Any, int]) -> None:
    make, n = how
    b.push(b.call(make, *b.popn(n)))


@lowers("set_type")
def _(b: Lowering, change: Any) -> None:
    of = b.pop()
    b.call(change, b.peek(1), of)


@lowers("interpolation")
def _(b: Lowering, how: tuple[str | None, bool]) -> None:
    conversion, with_spec = how
    spec = b.pop() if with_spec else Const("")
    expression = b.pop()
    b.push(b.call(primitives.interpolation, b.pop(), expression, Const(conversion), spec))


@lowers("template")
def _(b: Lowering, arg: Any) -> None:
    interpolations = b.pop()
    b.push(b.call(primitives.template, b.pop(), interpolations))


@lowers("format_value")
def _(b: Lowering, how: str) -> None:
    spec = b.pop() if how.endswith(":") else Const("")
    b.push(b.call(primitives.format_value, b.pop(), how.rstrip(":"), spec))


@lowers("convert")
def _(b: Lowering, how: Callable[[Any], str]) -> None:
    b.push(b.call(how, b.pop()))


@lowers("unpack")
def _(b: Lowering, n: int) -> None:
    items = b.call(primitives.unpack, b.pop(), n)
    for i in reversed(range(n)):
        b.push(b.append(operator.getitem, items, i))


@lowers("unpack_ex")
def _(b: Lowering, arg: int) -> None:
    before, after = arg & 0xFF, arg >> 8
    items = b.call(primitives.unpack_rest, b.pop(), before, after)
    for i in reversed(range(before + 1 + after)):
        b.push(b.append(operator.getitem, items, i))


# -- iteration and jumps


@lowers("get_iter")
def _(b: Lowering, arg: Any) -> None:
    b.push(b.call(iter, b.pop()))


@lowers("for_iter")
def _(b: Lowering, arg: tuple[int, bool]) -> None:
    offset, pops = arg
    item = b.call(primitives.advance, b.peek(1))
    ended = b.call(operator.is_, item, primitives.DONE)
    b.push(item)
    target = b.block_at[offset]
    b.exit_depths[b.block, target] = b.depth - 1 - pops
    b.fork(offset, ended)


@lowers("jump")
def _(b: Lowering, offset: int) -> None:
    b.goto(b.block_at[offset])


@lowers("jump_if_true")
def _(b: Lowering, offset: int) -> None:
    b.fork(offset, b.pop())


def _fork_unless(b: Lowering, offset: int, cond: Operand) -> None:
    cond = b.test(cond)
    b.goto(b.following[b.block], cond)
    b.goto(b.block_at[offset])


@lowers("jump_if_false")
def _(b: Lowering, offset: int) -> None:
    _fork_unless(b, offset, b.pop())


@lowers("jump_if_none")
def _(b: Lowering, offset: int) -> None:
    b.fork(offset, b.call(operator.is_, b.pop(), None))


@lowers("jump_if_not_none")
def _(b: Lowering, offset: int) -> None:
    _fork_unless(b, offset, b.call(operator.is_, b.pop(), None))


@lowers("jump_if_true_or_pop")
def _(b: Lowering, offset: int) -> None:
    cond = b.test(b.peek(1))
    b.exit_depths[b.block, b.block_at[offset]] = b.depth
    b.fork(offset, cond)
    b.depth -= 1


@lowers("jump_if_false_or_pop")
def _(b: Lowering, offset: int) -> None:
    cond = b.test(b.peek(1))
    b.exit_depths[b.block, b.block_at[offset]] = b.depth
    _fork_unless(b, offset, cond)
    b.depth -= 1


@lowers("return")
def _(b: Lowering, arg: Any) -> None:
    b.returns(b.pop())


# -- exceptions, `with`


@lowers("raise")
def _(b: Lowering, n: int) -> None:
    if n == 0:
        b.call(protected.raise_again)
        return
    cause = b.pop() if n == 2 else Const(primitives.NULL)
    b.call(primitives.raise_exception, b.pop(), cause)


@lowers("reraise")
def _(b: Lowering, arg: Any) -> None:
    b.goto_handler(b.pop())


@lowers("push_exc_info")
def _(b: Lowering, arg: Any) -> None:
    exception = b.pop()
    b.push(b.call(protected.push_exc_info, exception))
    b.push(exception)


@lowers("pop_except")
def _(b: Lowering, arg: Any) -> None:
    b.call(protected.pop_except, b.pop())


@lowers("exception_matches")
def _(b: Lowering, arg: Any) -> None:
    kinds = b.pop()
    b.push(b.call(protected.exception_matches, b.peek(1), kinds))


@lowers("split_group")
def _(b: Lowering, arg: Any) -> None:
    exception, kinds = b.popn(2)
    both = b.call(protected.split_group, exception, kinds)
    b.push(b.append(operator.getitem, both, 0))
    b.push(b.append(operator.getitem, both, 1))


@lowers("regroup")
def _(b: Lowering, arg: Any) -> None:
    original, raised = b.popn(2)
    b.push(b.call(protected.regroup, original, raised))


@lowers("special_method")
def _(b: Lowering, name: str) -> None:
    b.push(b.call(protected.special_method, b.pop(), name))


@lowers("special_call")
def _(b: Lowering, name: str) -> None:
    b.push(b.call(b.call(protected.special_method, b.pop(), name)))


@lowers("enter_with")
def _(b: Lowering, methods: tuple[str, str]) -> None:
    manager = b.pop()
    enter, leave = [b.call(protected.special_method, manager, name) for name in methods]
    b.push(leave)
    b.push(b.call(enter))


@lowers("end_async_for")
def _(b: Lowering, arg: Any) -> None:
    _, exception = b.popn(2)
    ended = b.append(protected.exception_matches, exception, StopAsyncIteration)
    go_on = b.split(b.append(operator.not_, ended))
    b.goto_handler(exception)
    b.block = go_on


@lowers("exit_with")
def _(b: Lowering, depth: int) -> None:
    exception = b.peek(1)
    kind = b.call(type, exception)
    trace = b.append(getattr, exception, "__traceback__")
    leave = b.peek(depth)
    b.push(b.call(protected.answer_heeded, leave, b.call(leave, kind, exception, trace), exception))


# -- patterns


@lowers("get_len")
def _(b: Lowering, arg: Any) -> None:
    b.push(b.call(len, b.peek(1)))


@lowers("match_sequence")
def _(b: Lowering, arg: Any) -> None:
    b.push(b.call(patterns.is_sequence, b.peek(1)))


@lowers("match_mapping")
def _(b: Lowering, arg: Any) -> None:
    b.push(b.call(patterns.is_mapping, b.peek(1)))


@lowers("match_keys")
def _(b: Lowering, arg: Any) -> None:
    b.push(b.call(patterns.match_keys, b.peek(2), b.peek(1)))


@lowers("match_class")
def _(b: Lowering, n: int) -> None:
    subject, cls, names = b.popn(3)
    b.push(b.call(patterns.match_class, subject, cls, n, names))


# -- calls and functions


@lowers("keywords")
def _(b: Lowering, names: tuple[str, ...]) -> None:
    b.keywords = names


@lowers("pop_keywords")
def _(b: Lowering, arg: Any) -> None:
    names = b.pop()
    assert isinstance(names, Const)
    b.keywords = names.value


@lowers("call")
def _(b: Lowering, n: int) -> None:
    keywords, b.keywords = b.keywords, ()
    args = b.popn(n)
    fn, first = b.callee()
    args = first + args
    if not args and _is_super(b, fn):
        args = [_own_class(b), _first_argument(b)]
    if not args and not keywords and (variables := _variables_around(b, fn)) is not None:
        b.push(variables)
        return
    b.push(b.call(fn, *args, keywords=keywords))


@lowers("call_super")
def _(b: Lowering, explicit: bool) -> None:
    fn, owner, instance = b.popn(3)
    b.push(b.call(fn) if _hides_super(b) and not explicit else b.call(fn, owner, instance))


@lowers("call_ex")
def _(b: Lowering, flags: int) -> None:
    kwargs = b.pop() if flags & 1 else _NULL
    args = b.pop()
    fn, _ = b.callee()
    if (made := _definition(b, args)) is None or made.primitive is not primitives.as_tuple:
        args = b.call(primitives.as_tuple, args, fn)
    if kwargs is _NULL:
        kwargs = b.call(primitives.build_map)
    b.push(b.call(primitives.apply, fn, args, kwargs))


def _definition(b: Lowering, x: Operand) -> Call | None:
    """The call that defines x, in the current block or in one that only this one follows.

    If that call may raise, it is shown as it was written.
    """
    block: Block | None = b.block
    while block is not None:
        found = next((c for c in reversed(block.calls) if c.out is x), None)
        if found is not None:
            return as_written(found)
        block = b.before.get(block)
    return None


def as_written(call: Call) -> Call:
    """`f(x)` for `attempt(f, x)`."""
    if call.primitive is not protected.attempt:
        return call
    return Call(call.out, call.args[0], call.args[1:], call.keywords, call.position)


def _is_super(b: Lowering, fn: Operand) -> bool:
    """`super()` finds its arguments in the frame that calls it; here they are made explicit."""
    if "__class__" not in b.code.co_freevars or not b.code.co_argcount or _hides_super(b):
        return False
    return _global_name(b, fn) == "super"


def _global_name(b: Lowering, fn: Operand) -> Any:
    """The name of the global variable, or of the builtin, that this is."""
    loaded = _definition(b, fn)
    if loaded is None or loaded.primitive is not primitives.load_global:
        return None
    name = loaded.args[1]
    return name.value if type(name) is Const else None


def _hides_super(b: Lowering) -> bool:
    """Has the user a global variable of that name?"""
    return "super" in b.namespace and b.namespace["super"] is not super


def _own_class(b: Lowering) -> Operand:
    slot = len(b.slots) - len(b.ir.free) + b.code.co_freevars.index("__class__")
    return b.call(primitives.get_cell, *_cell(b, slot))


def _first_argument(b: Lowering) -> Operand:
    if b.slots[0] in b.code.co_cellvars:
        return b.call(primitives.get_cell, *_cell(b, 0), name=b.slots[0])
    return _check_bound(b, 0)


# Without arguments they ask for the variables of the function that calls them.
_ASKING = {"locals": locals, "vars": vars, "dir": dir}


def _variables_around(b: Lowering, fn: Operand) -> Operand | None:
    """`locals()` is a display of the variables that are bound, `dir()` the list of their names.

    None: it is something else, or which variables are bound depends on the way that was taken.
    """
    asks = _global_name(b, fn)
    if asks not in _ASKING or b.namespace.get(asks, _ASKING[asks]) is not _ASKING[asks]:
        return None
    if not b.code.co_flags & inspect.CO_OPTIMIZED or _in_loop(b):
        return None
    if (names := _bound_names(b)) is None:
        return None
    if asks == "dir":
        return b.call(primitives.build_list, *sorted(names))
    if not _is_new_dict(b):
        return None
    items = [x for name, slot in names.items() for x in (Const(name), _bound_value(b, slot))]
    return b.call(primitives.build_map, *items)


def _in_loop(b: Lowering) -> bool:
    """Is there a jump from behind this instruction to before it?"""
    jumps = [(b.target(ins), ins.offset) for ins in b.instructions if ins.op in _JUMPS]
    return any(first <= b.offset <= last for first, last in jumps)


def _bound_names(b: Lowering) -> dict[str, int] | None:
    """The variables that are bound here, which is in no loop, and their slots."""
    stored = [ins for ins in b.instructions if _BINDING.get(ins.op) and ins.offset < b.offset]
    perhaps = {*b.at_start, *[ins.arg for ins in stored]}
    return None if perhaps - b.bound else {b.slots[i]: i for i in sorted(b.bound)}


def _is_new_dict(b: Lowering) -> bool:
    """Before Python 3.13 a function has one dict of its variables: each call brings it up to date."""
    asking = [ins for ins in b.instructions if ins.op == "load_global" and ins.arg in _ASKING]
    return sys.version_info >= (3, 13) or len([ins for ins in asking if ins.arg != "dir"]) == 1


def _bound_value(b: Lowering, slot: int) -> Operand:
    name = b.slots[slot]
    if name in b.code.co_cellvars or slot >= len(b.slots) - len(b.ir.free):
        return b.call(primitives.get_cell, *_cell(b, slot), name=name)
    return _read(b, slot)


# The flags of an instruction that makes a function; the values lie below its code in this order.
_DEFAULTS, _KWDEFAULTS, _ANNOTATIONS, _CLOSURE, _ANNOTATE = 1, 2, 4, 8, 16


@lowers("make_function")
def _(b: Lowering, flags: int) -> None:
    code = b.pop()
    given = [f for f in (_DEFAULTS, _KWDEFAULTS, _ANNOTATIONS, _CLOSURE) if flags & f]
    values = b.popn(len(given))
    nothing = Const(None)
    made = b.call(primitives.make_function, Const(b.namespace), code, nothing, nothing, nothing)
    for flag, value in zip(given, values, strict=True):
        _set_attribute(b, made, flag, value)
    b.push(made)


@lowers("set_function_attribute")
def _(b: Lowering, flag: int) -> None:
    value, made = b.popn(2)
    _set_attribute(b, made, flag, value)
    b.push(made)


def _set_attribute(b: Lowering, made: Operand, flag: int, value: Operand) -> None:
    """Give a function that has just been made defaults, annotations or the cells of a closure."""
    call = _definition(b, made)
    assert call is not None
    args = list(call.args)
    if flag == _CLOSURE:
        cells = _definition(b, value)
        assert cells is not None
        args += cells.args
        b.block.calls.remove(cells)
    else:
        args[{_DEFAULTS: 2, _KWDEFAULTS: 3}.get(flag, 4)] = value
    call.args = tuple(args)
