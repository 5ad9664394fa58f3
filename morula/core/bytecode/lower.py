"""A code object in canonical instructions -> SSA form.

The locals and the slots of the stack are named variables of the blocks, which `ssa.Variables` turns
into block arguments. Every instruction becomes at most a few calls; none has a meaning here.
"""

from __future__ import annotations

import inspect
import operator
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

from morula.core import errors, primitives
from morula.core.bytecode.instructions import Instruction, decode
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Position, Var, reachable
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
}
_ENDS = {"return", "raise", "jump", "reraise"}
_COMPARISONS = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}

_NULL = Const(primitives.NULL)

_lowered: dict[tuple[int, int], tuple[CodeType, IR]] = {}
_lock = threading.Lock()


def lower(code: CodeType, namespace: dict[str, Any]) -> IR:
    """The SSA form of a function with this code and these globals; not to be changed.

    Raises:
        UnsupportedError: the code uses a construct that is not lowered; it is named with its line.
    """
    key = (id(code), id(namespace))
    found = _lowered.get(key)
    if found is None:
        with _lock:
            found = _lowered.setdefault(key, (code, _Lowering(code, namespace).run()))
    return found[1]


def adopt(code: CodeType, namespace: dict[str, Any], ir: IR) -> None:
    """Say what the SSA form of a code object is that was made from it."""
    _lowered[id(code), id(namespace)] = (code, ir)


def is_adopted(code: CodeType, namespace: dict[str, Any]) -> bool:
    """Is the SSA form of this code known already?"""
    return (id(code), id(namespace)) in _lowered


def location(code: CodeType, line: int | None) -> str:
    """A place in the user's source as it stands in messages."""
    return f"{code.co_filename}:{line or code.co_firstlineno}, in {code.co_qualname}"


class _Lowering:
    def __init__(self, code: CodeType, namespace: dict[str, Any]) -> None:
        self.code = code
        self.namespace = namespace
        self.ir = IR(code.co_qualname, code.co_filename)
        self.variables = Variables(self.ir, self.at_entry)
        self.arguments: dict[str, Var] = {}
        self.cells: dict[str, Var] = {}
        self.block = Block()
        self.depth = 0
        self.keywords: tuple[str, ...] = ()
        self.position = Position()
        self.bound: set[str] = set()
        self.nulls: set[int] = set()  # the slots of the stack that hold NULL

    # -- the whole function

    def run(self) -> IR:
        self.refuse_generators()
        instructions = decode(self.code)
        bodies = self.cut(instructions)
        self.entry()
        depths: dict[Block, int] = {self.first: 0}
        nulls: dict[Block, set[int]] = {self.first: set()}
        assigned = self.definitely_assigned(bodies)
        by_block = dict(bodies)
        # In the order of control, so that the depth of the stack is known where a block begins.
        work, seen = [self.first], {self.first}
        while work:
            block = work.pop()
            self.block, self.depth, self.nulls = block, depths[block], set(nulls[block])
            self.bound = set(assigned[block])
            for ins in by_block[block]:
                self.position = ins.position
                STEPS[ins.op](self, ins.arg)
            if not block.branches and by_block[block][-1].op not in _ENDS:
                self.goto(self.following[block])
            for target in block.successors():
                if target not in seen:
                    seen.add(target)
                    depths[target] = self.exit_depths.get((block, target), self.depth)
                    nulls[target] = self.nulls
                    work.append(target)
        self.ir.blocks = reachable(self.ir)
        self.variables.finish()
        prune_params(self.ir)
        return self.ir

    def refuse_generators(self) -> None:
        flags = self.code.co_flags
        for flag, what in (
            (inspect.CO_GENERATOR, "a generator function"),
            (inspect.CO_COROUTINE, "a coroutine function"),
            (inspect.CO_ASYNC_GENERATOR, "an asynchronous generator function"),
        ):
            if flags & flag:
                raise errors.unsupported(what, location(self.code, None))

    def entry(self) -> None:
        """The first block: arguments, and cells for those variables that closures share."""
        entry = self.ir.block()
        self.ir.blocks.insert(0, self.ir.blocks.pop())
        self.block = entry
        code = self.code
        n = code.co_argcount + code.co_kwonlyargcount
        n += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        for name in code.co_varnames[:n]:
            self.arguments[name] = self.ir.var(name)
        entry.params = list(self.arguments.values())
        if code.co_flags & inspect.CO_VARKEYWORDS:
            name, kwargs = list(self.arguments.items())[-1]
            self.arguments[name] = self.call(primitives.own_keywords, kwargs, name=name)
        self.ir.free = [self.ir.var(name) for name in code.co_freevars]
        self.cells = dict(zip(code.co_freevars, self.ir.free, strict=True))
        for name in code.co_cellvars:
            value: Operand = self.arguments.get(name, Const(primitives.UNDEFINED))
            self.cells[name] = self.call(primitives.make_cell, value, name=name)
        entry.branches.append(Branch(self.first))

    def at_entry(self, block: Block, variable: Any) -> Operand | None:
        if block is not self.ir.entry:
            return None
        kind, name = variable
        found = self.arguments.get(name) if kind == "local" else None
        return Const(primitives.UNDEFINED) if found is None else found

    def cut(self, instructions: list[Instruction]) -> list[tuple[Block, list[Instruction]]]:
        """Basic blocks: they begin at the targets of jumps and behind jumps."""
        self.check_constructs(instructions)
        offsets = [ins.offset for ins in instructions]
        leaders = {offsets[0]}
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
        return ins.arg[0] if ins.op == "for_iter" else ins.arg

    def definitely_assigned(
        self, bodies: list[tuple[Block, list[Instruction]]]
    ) -> dict[Block, frozenset[str]]:
        """The locals that are bound whichever way a block was reached."""
        self.exit_depths: dict[tuple[Block, Block], int] = {}
        following: dict[Block, list[Block]] = {}
        effects: dict[Block, list[tuple[str, bool]]] = {}
        for block, body in bodies:
            effects[block] = []
            for ins in body:
                if ins.op == "store_local":
                    effects[block].append((ins.arg, True))
                elif ins.op in ("delete_local", "load_and_clear_local"):
                    effects[block].append((ins.arg, False))
            targets = [self.block_at[self.target(ins)] for ins in body if ins.op in _JUMPS]
            if body[-1].op not in _ENDS and block in self.following:
                targets.append(self.following[block])
            following[block] = targets
        found: dict[Block, frozenset[str]] = {self.first: frozenset(self.arguments)}
        work = [self.first]
        while work:
            block = work.pop()
            bound = set(found[block])
            for name, binds in effects[block]:
                (bound.add if binds else bound.discard)(name)
            for target in following[block]:
                old = found.get(target)
                new = frozenset(bound) if old is None else old & bound
                if new != old:
                    found[target] = new
                    work.append(target)
        return found

    # -- the stack and the locals of the current block

    def push(self, value: Operand) -> None:
        self.variables.write(self.block, ("stack", self.depth), value)
        (self.nulls.add if value is _NULL else self.nulls.discard)(self.depth)
        self.depth += 1

    def pop(self) -> Operand:
        self.depth -= 1
        return self.variables.read(self.block, ("stack", self.depth))

    def popn(self, n: int) -> list[Operand]:
        return [self.pop() for _ in range(n)][::-1]

    def peek(self, i: int) -> Operand:
        return self.variables.read(self.block, ("stack", self.depth - i))

    def call(
        self, fn: Any, *args: Any, keywords: tuple[str, ...] = (), name: str = ""
    ) -> Var:
        """Append a call; operands that are not variables are constants."""
        out = self.ir.var(name)
        callee = fn if isinstance(fn, Var | Const) else Const(fn)
        operands = [a if isinstance(a, Var | Const) else Const(a) for a in args]
        self.block.calls.append(Call(out, callee, operands, keywords, self.position))
        return out

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
        self.goto(self.block_at[offset], cond)
        self.goto(self.following[self.block])


STEPS: dict[str, Callable[[_Lowering, Any], None]] = {}


def lowers(op: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register how a canonical instruction becomes calls."""

    def register(step: Callable[..., None]) -> Callable[..., None]:
        STEPS[op] = step
        return step

    return register


# -- the stack


@lowers("nothing")
def _(b: _Lowering, arg: Any) -> None:
    pass


@lowers("const")
def _(b: _Lowering, arg: Any) -> None:
    b.push(Const(arg))


@lowers("push_null")
def _(b: _Lowering, arg: Any) -> None:
    b.push(_NULL)


@lowers("push_null_below")
def _(b: _Lowering, arg: Any) -> None:
    top = b.pop()
    b.push(_NULL)
    b.push(top)


@lowers("pop")
def _(b: _Lowering, arg: Any) -> None:
    b.pop()


@lowers("copy")
def _(b: _Lowering, arg: int) -> None:
    b.push(b.peek(arg))


@lowers("swap")
def _(b: _Lowering, arg: int) -> None:
    items = b.popn(arg)
    items[0], items[-1] = items[-1], items[0]
    for item in items:
        b.push(item)


# -- variables


@lowers("load_local")
def _(b: _Lowering, name: str) -> None:
    if name in b.cells:
        b.push(b.cells[name])
        return
    value = b.variables.read(b.block, ("local", name), name)
    if name not in b.bound:
        value = b.call(primitives.check_bound, value, name, name=name)
        b.bound.add(name)
    b.push(value)


@lowers("store_local")
def _(b: _Lowering, name: str) -> None:
    value = b.pop()
    if type(value) is Var and not value.name:
        value.name = name
    b.variables.write(b.block, ("local", name), value)
    b.bound.add(name)


@lowers("load_and_clear_local")
def _(b: _Lowering, name: str) -> None:
    b.push(b.variables.read(b.block, ("local", name), name))
    b.variables.write(b.block, ("local", name), Const(primitives.UNDEFINED))
    b.bound.discard(name)


@lowers("delete_local")
def _(b: _Lowering, name: str) -> None:
    if name not in b.bound:
        value = b.variables.read(b.block, ("local", name), name)
        b.call(primitives.check_bound, value, name)
    b.variables.write(b.block, ("local", name), Const(primitives.UNDEFINED))
    b.bound.discard(name)


@lowers("make_cell")
def _(b: _Lowering, name: str) -> None:
    pass  # all cells are made on entry


@lowers("load_cell")
def _(b: _Lowering, name: str) -> None:
    b.push(b.cells[name])


@lowers("load_deref")
def _(b: _Lowering, name: str) -> None:
    b.push(b.call(primitives.get_cell, b.cells[name], name, name=name))


@lowers("store_deref")
def _(b: _Lowering, name: str) -> None:
    b.call(primitives.set_cell, b.cells[name], b.pop())


@lowers("delete_deref")
def _(b: _Lowering, name: str) -> None:
    b.call(primitives.delete_cell, b.cells[name], name)


@lowers("load_global")
def _(b: _Lowering, name: str) -> None:
    b.push(b.call(primitives.load_global, Const(b.namespace), name, name=name))


@lowers("store_global")
def _(b: _Lowering, name: str) -> None:
    b.call(primitives.store_global, Const(b.namespace), name, b.pop())


@lowers("import_name")
def _(b: _Lowering, name: str) -> None:
    level, names = b.popn(2)
    b.push(b.call(primitives.import_name, Const(b.namespace), name, names, level))


@lowers("import_from")
def _(b: _Lowering, name: str) -> None:
    b.push(b.call(primitives.import_from, b.peek(1), name))


# -- operators


@lowers("binary")
def _(b: _Lowering, name: str) -> None:
    left, right = b.popn(2)
    b.push(b.call(getattr(operator, name), left, right))


@lowers("unary")
def _(b: _Lowering, name: str) -> None:
    b.push(b.call(getattr(operator, name), b.pop()))


@lowers("compare")
def _(b: _Lowering, sign: str) -> None:
    left, right = b.popn(2)
    b.push(b.call(getattr(operator, _COMPARISONS.get(sign, sign)), left, right))


@lowers("contains")
def _(b: _Lowering, negated: bool) -> None:
    item, items = b.popn(2)
    found = b.call(operator.contains, items, item)
    b.push(b.call(operator.not_, found) if negated else found)


@lowers("to_bool")
def _(b: _Lowering, arg: Any) -> None:
    b.push(b.call(operator.truth, b.pop()))


@lowers("store_item")
def _(b: _Lowering, arg: Any) -> None:
    value, items, key = b.popn(3)
    b.call(operator.setitem, items, key, value)


@lowers("delete_item")
def _(b: _Lowering, arg: Any) -> None:
    items, key = b.popn(2)
    b.call(operator.delitem, items, key)


@lowers("get_slice")
def _(b: _Lowering, arg: Any) -> None:
    items, start, stop = b.popn(3)
    b.push(b.call(operator.getitem, items, b.call(slice, start, stop)))


@lowers("set_slice")
def _(b: _Lowering, arg: Any) -> None:
    value, items, start, stop = b.popn(4)
    b.call(operator.setitem, items, b.call(slice, start, stop), value)


@lowers("load_attr")
def _(b: _Lowering, name: str) -> None:
    b.push(b.call(getattr, b.pop(), name, name=name))


@lowers("store_attr")
def _(b: _Lowering, name: str) -> None:
    value, owner = b.popn(2)
    b.call(setattr, owner, name, value)


@lowers("delete_attr")
def _(b: _Lowering, name: str) -> None:
    b.call(delattr, b.pop(), name)


# -- displays


def _display(op: str, fn: Any) -> None:
    @lowers(op)
    def _(b: _Lowering, n: int) -> None:
        b.push(b.call(fn, *b.popn(n)))


_display("build_tuple", primitives.build_tuple)
_display("build_list", primitives.build_list)
_display("build_set", primitives.build_set)
_display("build_string", primitives.build_string)
_display("build_slice", slice)


@lowers("build_map")
def _(b: _Lowering, n: int) -> None:
    b.push(b.call(primitives.build_map, *b.popn(2 * n)))


@lowers("build_const_key_map")
def _(b: _Lowering, n: int) -> None:
    keys = b.pop()
    assert isinstance(keys, Const)
    pairs = zip(keys.value, b.popn(n), strict=True)
    b.push(b.call(primitives.build_map, *[x for k, v in pairs for x in (Const(k), v)]))


def _grow(op: str, fn: Any, n: int = 1) -> None:
    """`fn` on a container `i` slots down the stack, with the `n` items above it."""

    @lowers(op)
    def _(b: _Lowering, i: int) -> None:
        items = b.popn(n)
        b.call(fn, b.peek(i), *items)


_grow("list_append", primitives.list_append)
_grow("list_extend", primitives.list_extend)
_grow("set_add", primitives.set_add)
_grow("set_update", primitives.set_update)
_grow("map_add", primitives.map_add, 2)
_grow("dict_update", primitives.dict_update)


@lowers("dict_merge")
def _(b: _Lowering, i: int) -> None:
    more = b.pop()
    b.call(primitives.dict_merge, b.peek(i), more, b.peek(i + 2))


@lowers("list_to_tuple")
def _(b: _Lowering, arg: Any) -> None:
    b.push(b.call(primitives.as_tuple, b.pop()))


@lowers("format_value")
def _(b: _Lowering, how: str) -> None:
    spec = b.pop() if how.endswith(":") else Const("")
    b.push(b.call(primitives.format_value, b.pop(), how.rstrip(":"), spec))


@lowers("unpack")
def _(b: _Lowering, n: int) -> None:
    items = b.call(primitives.unpack, b.pop(), n)
    for i in reversed(range(n)):
        b.push(b.call(operator.getitem, items, i))


@lowers("unpack_ex")
def _(b: _Lowering, arg: int) -> None:
    before, after = arg & 0xFF, arg >> 8
    items = b.call(primitives.unpack_rest, b.pop(), before, after)
    for i in reversed(range(before + 1 + after)):
        b.push(b.call(operator.getitem, items, i))


# -- iteration and jumps


@lowers("get_iter")
def _(b: _Lowering, arg: Any) -> None:
    b.push(b.call(iter, b.pop()))


@lowers("for_iter")
def _(b: _Lowering, arg: tuple[int, bool]) -> None:
    offset, pops = arg
    item = b.call(primitives.advance, b.peek(1))
    ended = b.call(operator.is_, item, primitives.DONE)
    b.push(item)
    target = b.block_at[offset]
    b.exit_depths[b.block, target] = b.depth - 1 - pops
    b.fork(offset, ended)


@lowers("jump")
def _(b: _Lowering, offset: int) -> None:
    b.goto(b.block_at[offset])


@lowers("jump_if_true")
def _(b: _Lowering, offset: int) -> None:
    b.fork(offset, b.pop())


def _fork_unless(b: _Lowering, offset: int, cond: Operand) -> None:
    b.goto(b.following[b.block], cond)
    b.goto(b.block_at[offset])


@lowers("jump_if_false")
def _(b: _Lowering, offset: int) -> None:
    _fork_unless(b, offset, b.pop())


@lowers("jump_if_none")
def _(b: _Lowering, offset: int) -> None:
    b.fork(offset, b.call(operator.is_, b.pop(), None))


@lowers("jump_if_not_none")
def _(b: _Lowering, offset: int) -> None:
    _fork_unless(b, offset, b.call(operator.is_, b.pop(), None))


@lowers("jump_if_true_or_pop")
def _(b: _Lowering, offset: int) -> None:
    cond = b.peek(1)
    b.exit_depths[b.block, b.block_at[offset]] = b.depth
    b.fork(offset, cond)
    b.depth -= 1


@lowers("jump_if_false_or_pop")
def _(b: _Lowering, offset: int) -> None:
    cond = b.peek(1)
    b.exit_depths[b.block, b.block_at[offset]] = b.depth
    _fork_unless(b, offset, cond)
    b.depth -= 1


@lowers("return")
def _(b: _Lowering, arg: Any) -> None:
    b.block.branches.append(Branch(None, (b.pop(),)))


@lowers("raise")
def _(b: _Lowering, n: int) -> None:
    if n == 0:
        raise errors.unsupported("a bare raise", location(b.code, b.position.line))
    cause = b.pop() if n == 2 else Const(primitives.NULL)
    b.call(primitives.raise_exception, b.pop(), cause)


# -- calls and functions


@lowers("keywords")
def _(b: _Lowering, names: tuple[str, ...]) -> None:
    b.keywords = names


@lowers("call")
def _(b: _Lowering, n: int) -> None:
    keywords, b.keywords = b.keywords, ()
    args = b.popn(n)
    fn, first = b.callee()
    args = first + args
    if not args and _is_super(b, fn):
        args = [b.call(primitives.get_cell, b.cells["__class__"], "__class__"), _first_argument(b)]
    b.push(b.call(fn, *args, keywords=keywords))


@lowers("call_ex")
def _(b: _Lowering, flags: int) -> None:
    kwargs = b.pop() if flags & 1 else Const(None)
    args = b.call(primitives.as_tuple, b.pop())
    fn, _ = b.callee()
    if type(kwargs) is Const:
        kwargs = b.call(primitives.build_map)
    b.push(b.call(primitives.apply, fn, args, kwargs))


def _is_super(b: _Lowering, fn: Operand) -> bool:
    """`super()` finds its arguments in the frame that calls it; here they are made explicit."""
    if "__class__" not in b.cells or not b.block.calls:
        return False
    loaded = next((c for c in reversed(b.block.calls) if c.out is fn), None)
    return (
        loaded is not None
        and loaded.primitive is primitives.load_global
        and type(loaded.args[1]) is Const
        and loaded.args[1].value == "super"
    )


def _first_argument(b: _Lowering) -> Operand:
    name = b.code.co_varnames[0]
    if name in b.code.co_cellvars:
        return b.call(primitives.get_cell, b.cells[name], name, name=name)
    return b.arguments[name]


@lowers("make_function")
def _(b: _Lowering, flags: int) -> None:
    code = b.pop()
    cells = b.pop() if flags & 8 else None
    annotations = b.pop() if flags & 4 else Const(None)
    kwdefaults = b.pop() if flags & 2 else Const(None)
    defaults = b.pop() if flags & 1 else Const(None)
    b.push(_function(b, code, defaults, kwdefaults, annotations, cells))


def _function(
    b: _Lowering,
    code: Operand,
    defaults: Operand,
    kwdefaults: Operand,
    annotations: Operand,
    cells: Operand | None,
) -> Var:
    closed: list[Operand] = []
    if cells is not None:
        made = next(c for c in b.block.calls if c.out is cells)
        closed = list(made.args)
        b.block.calls.remove(made)
    return b.call(
        primitives.make_function,
        Const(b.namespace),
        code,
        defaults,
        kwdefaults,
        annotations,
        *closed,
    )
