"""Put the body of a function in the place of a call of it."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType, MethodDescriptorType
from typing import Any

from morula.core import primitives
from morula.core.bytecode.instructions import IN_PLACE
from morula.core.ir import (
    IR,
    Block,
    Branch,
    Call,
    Const,
    Inlined,
    Operand,
    Position,
    Var,
    count_uses,
)
from morula.core.traits import has_effect

# What changes an object that others may hold: never removed for want of a use of its result.
EFFECTS = {
    id(f)
    for f in (
        operator.setitem,
        operator.delitem,
        setattr,
        delattr,
        primitives.list_append,
        primitives.list_extend,
        primitives.set_add,
        primitives.set_update,
        primitives.map_add,
        primitives.dict_update,
        primitives.dict_merge,
        primitives.set_cell,
        primitives.delete_cell,
        primitives.store_global,
        primitives.raise_exception,
        *(getattr(operator, name) for name in IN_PLACE.values()),
    )
}


MUTATORS = set(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
        "fill",
        "put",
        "resize",
        "partition",
        "itemset",
        "setfield",
        "setflags",
        "write",
        "appendleft",
        "popleft",
        "rotate",
    ]
)


def changes_objects(fn: Any) -> bool:
    """Is it a primitive or a method that changes an object?"""
    if isinstance(fn, MethodDescriptorType):
        return fn.__name__ in MUTATORS
    return id(fn) in EFFECTS


def _may_have_effect(call: Call, loaded: dict[Operand, Call]) -> bool:
    """Is it a call of something unknown, or of something that changes an object?"""
    if type(call.fn) is Const:
        return changes_objects(call.fn.value) or has_effect(call.fn.value)
    source = loaded.get(call.fn)
    if source is None or not all(type(a) is Const for a in source.args[1:]):
        return True
    if source.primitive is getattr:
        return source.args[1].value in MUTATORS
    value = source.args[0].value.get(source.args[1].value)
    return changes_objects(value) or has_effect(value)


def _is_statement(call: Call, loaded: dict[Operand, Call], uses: Mapping[Var, int]) -> bool:
    """Is a function called for what it does, as to refuse something, and not for its result?"""
    if call.out in uses:
        return False
    source = loaded.get(call.fn)
    value = call.primitive
    if source is not None and source.primitive is primitives.load_global:
        namespace, name = source.args
        value = namespace.value.get(name.value) if type(namespace) is type(name) is Const else None
    return type(value) is FunctionType


def inline(
    ir: IR,
    block: Block,
    index: int,
    callee: IR,
    args: Sequence[Operand],
    free: Sequence[Operand],
    removable: bool,
    results: dict[Var, Operand],
    of: tuple[CodeType, dict[str, Any]] | None = None,
    renamed: dict[Var, Operand] | None = None,
) -> tuple[Block, int]:
    """Replace the call `block.calls[index]` by the body of `callee`.

    `args` are its arguments, one per parameter, and `free` its cells. The calls put in stand where
    the call stood in the source, or, if the callee is a function `of` the user's with this code and
    these globals, where they stood themselves. The result of a straight body is noted in `results`,
    for the caller to substitute, and in `renamed` what its variables are called here. Returns where the
    calls behind it now are: a block and an index.
    """
    call = block.calls[index]
    renamed = {} if renamed is None else renamed
    renamed.update(zip(callee.params, args, strict=True))
    renamed.update(zip(callee.free, free, strict=True))
    straight = len(callee.blocks) == 1 and callee.blocks[0].returns
    inlined = None if of is None else Inlined(*of, call.position)
    body = copy_blocks(ir, callee, renamed, call.position, inlined, removable)
    if straight:
        (only,) = body
        block.calls[index : index + 1] = only.calls
        results[call.out] = only.branches[0].args[0]
        return block, index + len(only.calls)
    rest = ir.block()
    rest.params = [call.out]
    rest.calls = block.calls[index + 1 :]
    rest.branches = block.branches
    build_behind_exits(ir, body, rest, call)
    block.calls = block.calls[:index] + body[0].calls
    block.branches = body[0].branches
    ir.blocks += body[1:]
    for inside in (block, *body[1:]):
        for branch in inside.branches:
            if branch.block is body[0]:
                raise AssertionError("the entry of a function is the target of a branch")
            if branch.block is None:
                branch.block = rest
    return rest, 0


def build_behind_exits(ir: IR, body: list[Block], rest: Block, call: Call) -> None:
    """If every exit returns a tuple of so many items, pass the items and put them together behind.

    So what takes the tuple apart is seen to take the items.
    """
    made = {
        c.out: c for inside in body for c in inside.calls if c.primitive is primitives.build_tuple
    }
    exits = [branch for inside in body for branch in inside.branches if branch.block is None]
    tuples = [made.get(branch.args[0]) for branch in exits]  # type: ignore[arg-type]
    lengths = {-1 if t is None else len(t.args) for t in tuples}
    if len(exits) < 2 or len(lengths) > 1 or -1 in lengths:
        return
    rest.params = [ir.var() for _ in range(lengths.pop())]
    whole = Call(call.out, Const(primitives.build_tuple), tuple(rest.params), (), call.position)
    rest.calls = [whole, *rest.calls]
    for branch, t in zip(exits, tuples, strict=True):
        assert t is not None
        branch.args = list(t.args)


def copy_blocks(
    ir: IR,
    callee: IR,
    renamed: dict[Var, Operand],
    position: Position,
    inlined: Inlined | None,
    removable: bool,
) -> list[Block]:
    """The blocks of `callee`, with new variables; those that are `renamed` stand for others."""

    def fresh(v: Var) -> Var:
        new = ir.var(v.name)
        renamed[v] = new
        return new

    def find(x: Operand) -> Operand:
        return renamed[x] if type(x) is Var else x

    twins = {old: Block() for old in callee.blocks}
    for old, new in twins.items():
        if old is not callee.entry:
            new.params = [fresh(p) for p in old.params]
        for call in old.calls:
            fresh(call.out)
    loaded = {
        renamed[c.out]: c
        for c in callee.calls()
        if c.primitive in (getattr, primitives.load_global)
    }
    uses = count_uses(callee)
    of_callee: dict[Operand, Call] = {c.out: c for c in callee.calls()}
    for old, new in twins.items():
        for call in old.calls:
            out = renamed[call.out]
            assert type(out) is Var
            where = position if inlined is None else call.position._replace(inlined=inlined)
            twin = Call(out, find(call.fn), [find(a) for a in call.args], call.keywords, where)
            twin.movable = call.movable
            twin.removable = (
                (removable or call.removable)
                and not _may_have_effect(twin, loaded)
                and not _is_statement(call, of_callee, uses)
            )
            new.calls.append(twin)
        new.branches = [
            Branch(
                None if b.block is None else twins[b.block],
                [find(a) for a in b.args],
                None if b.cond is None else find(b.cond),
            )
            for b in old.branches
        ]
    return list(twins.values())
