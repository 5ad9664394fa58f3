"""Behind the question `x is None` a variable is known better: there it is None, or it is not.

    if self.last is None: …
    else: slope = (err - self.last) / h

Where it is not, x is read as `present(x)`, which is of the types that x may have but for that of None.
Tests: tests/rules/test_narrowing.py
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from typing import Any

from morula.core.extend import (
    NEVER,
    Block,
    Branch,
    Call,
    Const,
    Known,
    OneOf,
    Var,
    dominates,
    dominators,
    folds,
    followed_of,
    join,
    may_hold,
    only_reads,
    rewrites,
    rrule,
    spells,
    substitute,
    transfers,
)

NOTHING = Known(type(None))
MARKS = NOTHING, Known(object)


def is_mark(x: Any) -> bool:
    """Does it stand for nothing: None, or an `object()`?"""
    return x is None or type(x) is object


def present(x: Any) -> Any:
    """x, which is not None here."""
    return x


only_reads(present)


@rrule(present)
def _(x: object):
    def present_pullback(x̄):
        return (x̄,)

    return x, present_pullback


@transfers(present)
def _(s: Any, call: Call, args: list[Any]) -> Any:
    """What x may be but for None."""
    value = args[0]
    if value in MARKS or (type(value) is Const and is_mark(value.value)):
        return NEVER
    if type(value) is not OneOf:
        return value
    return functools.reduce(join, value.members.difference(MARKS), NEVER)


@folds(present)
def _(f: Any, call: Call) -> Any:
    """Where the adjoint is written, x is all that is left of it."""
    return call.args[0] if f.differentiated else None


@spells
def read_as_present(s: Any) -> bool:
    """Read what may be None as present where it is not; is there anything new?"""
    entries = s.ir.predecessors()
    found = [(x, branch) for x, branch in where_present(s) if may_be_none(s, x)]
    found = [(x, home_of(s, x, branch, entries)) for x, branch in found if not is_narrowed(s, x)]
    homes = [(x, home) for x, home in found if home is not None]
    parent = dominators(s.ir) if homes else {}
    for x, home in homes:
        s.narrowed[x] = s.value(x)
        y = s.ir.var(x.name)
        for block in s.ir.blocks:
            if dominates(parent, home, block):
                replace_in(block, x, y)
        home.calls.insert(0, Call(y, Const(present), (x,)))
    return bool(homes)


def is_narrowed(s: Any, x: Var) -> bool:
    """Is it read as present already? Where nothing was known of it then, that has been forgotten."""
    return x in s.narrowed and (s.narrowed[x] is not None or s.value(x) is None)


def home_of(s: Any, x: Var, branch: Any, entries: Any) -> Any:
    """The block that control comes to by this branch alone, which may have to be made."""
    target = branch.block
    if len(entries[target]) == 1:
        return target
    if x not in branch.args:
        return None
    between: Block = s.ir.block()
    between.branches = [Branch(target, branch.args)]
    branch.block, branch.args = between, []
    return between


def may_be_none(s: Any, x: Var) -> bool:
    """May x be None, or a number or an array, by what is known of it?"""
    value = s.value(x)
    return value is None or (type(value) is OneOf and not value.members.isdisjoint(MARKS))


def where_present(s: Any) -> Iterator[tuple[Var, Any]]:
    """Variables, and the branches by which control goes only if they are not None."""
    made = {c.out: c for c in s.ir.calls()}
    marks = marks_in(s)
    for block in s.ir.blocks:
        if len(block.branches) != 2:
            continue
        x, holds = block.branches[0].cond, True
        test = made.get(x)
        while test is not None and test.primitive in (operator.not_, operator.truth):
            holds ^= test.primitive is operator.not_
            x = test.args[0]
            test = made.get(x)
        if test is not None and test.primitive in (operator.is_, operator.is_not):
            x, other = test.args
            if type(x) is not Var or type(other) is not Const:
                continue
            if not any(other.value is mark for mark in marks):
                continue
            holds ^= test.primitive is operator.is_
        elif not is_object_or_none(s, x):
            continue
        branch = block.branches[0 if holds else 1]
        if branch.block is not None:
            yield x, branch


def marks_in(s: Any) -> list[Any]:
    """What may stand for nothing: None, and an `object()` if there is one only in the program."""
    found = {id(x.value): x.value for x in constants(s.ir) if type(x.value) is object}
    return [None, *(found.values() if len(found) == 1 else ())]


def constants(ir: Any) -> Iterator[Const]:
    """The constants in a program."""
    for block in ir.blocks:
        operands = [x for call in block.calls for x in call.operands()]
        operands += [x for branch in block.branches for x in branch.args]
        yield from (x for x in operands if type(x) is Const)


def is_object_or_none(s: Any, x: Any) -> bool:
    """Is it None, or an object that is true because it is there?"""
    value = s.value(x) if type(x) is Var else None
    followed = followed_of(value) if type(value) is OneOf else None
    return followed is not None and not any(
        name in base.__dict__ for base in followed.type.__mro__ for name in ("__bool__", "__len__")
    )


def replace_in(block: Block, x: Var, y: Var) -> None:
    """Let a block read y in the place of x."""
    for call in block.calls:
        if x in call.operands():
            call.fn = y if call.fn is x else call.fn
            call.args = tuple([y if a is x else a for a in call.args])
    for branch in block.branches:
        branch.args = [y if a is x else a for a in branch.args]


@rewrites
def forget_present(s: Any) -> bool:
    """What cannot be None, or is no number and no array, is read as it is."""
    idle = {}
    for call in s.ir.calls():
        if call.primitive is present:
            value = s.value(call.args[0])
            may_be = type(value) is OneOf and not value.members.isdisjoint(MARKS)
            rest = value.members.difference(MARKS) if may_be else ()
            if not may_be or (any(map(may_hold, rest)) and followed_of(value) is None):
                idle[call.out] = call.args[0]
    substitute(s.ir, idle)
    for block in s.ir.blocks:
        block.calls = [c for c in block.calls if c.out not in idle]
    return bool(idle)
