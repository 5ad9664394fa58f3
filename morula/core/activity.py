"""Which variables of a program carry a derivative, and which calls may change an object."""

from __future__ import annotations

import operator
from collections.abc import Collection
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

from morula.core.inline import changes_objects
from morula.core.ir import Call, Const, Operand
from morula.core.primitives import (
    get_cell,
    list_append,
    load_global,
    map_add,
    set_add,
    set_cell,
    store_global,
)
from morula.core.registry import (
    registry,
)
from morula.core.simplify import PURE, is_simple
from morula.core.specialise import (
    NotSpecialised,
    Specialiser,
    is_ours,
)
from morula.core.traits import (
    Known,
    coarse_detail,
    has_tangent,
    is_view,
    typed_zero,
)
from morula.core.values import IteratorOver, Plain, Value, known, possibilities
from morula.core.writers import IN_PLACE_OPERATORS, may_write_to_hidden_arrays

if TYPE_CHECKING:
    from morula.core.callees import Callee


def may_mutate(s: Specialiser, call: Call) -> bool:
    """May a call change an object that the caller holds too?"""
    if type(call.fn) is not Const:
        return True
    if s.callee_of(call) is not None:
        return False
    if call.primitive in (list_append, map_add, set_add, set_cell):
        return False  # what is under construction here
    fn = call.fn.value
    entry = registry.get(fn)
    if type(fn) is FunctionType and (entry is None or entry.whole) and not is_ours(fn):
        return True
    return changes_objects(fn) and not is_plain_in_place(s, call)


def is_plain_in_place(s: Specialiser, call: Call) -> bool:
    """Is it `x += y` for an x whose type has no in-place form, or goes by value?"""
    return call.primitive in IN_PLACE_OPERATORS and not may_hold(s.value(call.args[0]))


def varied_variables(
    s: Specialiser,
    leaves: Collection[Operand],
    stopped: Collection[Operand] = (),
    planned: Collection[Operand] = (),
) -> set[Operand]:
    """The variables that depend on the arguments by way of differentiable calls.

    Where a value that does may have been stored in an object, all objects count, and so do global
    and captured variables. Those that are `stopped` never do, and what the calls that are `planned`
    store is cared for otherwise.
    """
    varied: set[Operand] = set(leaves)
    spread_varied(s, varied, stopped)
    calls = [call for call in s.ir.calls() if call.out not in planned]
    if may_store(s, calls, varied):
        if any(_stores_outside(s, call) for call in calls):
            raise NotSpecialised("an object from outside of the function may be changed")
        variables = [c.out for c in s.ir.calls()]
        variables += [p for block in s.ir.blocks for p in block.params]
        if any(map(reads_outside, s.callees.found.values())):
            raise NotSpecialised("what it calls may read what is stored outside")
        if may_store_in_hidden_arrays(s, calls, varied):
            raise NotSpecialised("an array from outside may be written to by what it calls")
        rebound = {
            c.out for c in s.ir.calls() if may_read_rebound(s, c) and carries(s.value(c.out))
        }
        varied.update(
            v
            for v in variables
            if v not in s.counted
            and v not in stopped
            and (v in rebound or may_hold(s.types.get(v)))
        )
        spread_varied(s, varied, stopped)
    return varied


def carries(value: Value) -> bool:
    """May a value of which this is known carry a derivative?"""
    return value is None or any(has_tangent(k.type) for k in possibilities(value))


def spread_varied(s: Specialiser, varied: set[Operand], stopped: Collection[Operand] = ()) -> None:
    """Add what depends on the variables that are varied, but for those that are `stopped`."""
    changed = True
    while changed:
        changed = False
        for call in s.ir.calls():
            if call.out in varied or call.out in s.counted or call.out in stopped:
                continue
            if not any(x in varied for x in call.operands()):
                continue
            reaches = not s.is_constant(call) or is_view(call.primitive)
            if reaches and carries(s.types.get(call.out)):
                varied.add(call.out)
                changed = True
        for p, a in s.ir.passed():
            if a in varied and not (p in varied or p in stopped) and carries(s.types.get(p)):
                varied.add(p)
                changed = True


def may_store(s: Specialiser, calls: list[Call], varied: set[Operand]) -> bool:
    """Is one a call that may put a value that depends on the arguments into an object?"""
    for call in calls:
        if not any(x in varied for x in call.operands()):
            continue
        if type(call.fn) is not Const:
            return True
        if s.callee_of(call) is not None or is_plain_in_place(s, call):
            continue
        if changes_objects(call.fn.value):
            return True
        entry = registry.get(call.fn.value)
        if id(call.fn.value) in PURE or (entry is not None and (entry.stable or entry.constant)):
            continue
        k = known(s.types.get(call.out))
        if k is None or not is_immutable(k.type):
            return True
    return False


def may_store_in_hidden_arrays(s: Specialiser, calls: list[Call], varied: set[Operand]) -> bool:
    """May unknown code write what depends on the arguments to arrays that are not its operands?

    Those that are, are seen when it happens.
    """
    if not any(s.may_run_code(c) and not varied.isdisjoint(c.operands()) for c in calls):
        return False
    return may_write_to_hidden_arrays(s.values_at_hand())


def _stores_outside(s: Specialiser, call: Call) -> bool:
    """May a call change an object that is a constant of the program, a class or a global?"""
    if type(call.fn) is not Const:
        return False
    if call.primitive is store_global:
        return True
    if s.callee_of(call) is not None:
        return False
    entry = registry.get(call.fn.value)
    if id(call.fn.value) in PURE or (entry is not None and (entry.stable or entry.constant)):
        return False
    if call.primitive in (load_global, getattr, get_cell, iter, isinstance):
        return False
    return any(
        type(a) is Const and not callable_or_simple(a.value) and not is_immutable(type(a.value))
        for a in call.args
    ) or (call.primitive is setattr and type(call.args[0]) is Const)


def is_read_from_outside(call: Call) -> bool:
    """Does it read a global, a captured variable or a part of an object that is known?"""
    of_constant = call.primitive in (getattr, operator.getitem) and type(call.args[0]) is Const
    return of_constant or call.primitive in (load_global, get_cell)


def may_read_rebound(s: Specialiser, call: Call) -> bool:
    """May it give what one of the calls before it has set outside of the program?"""
    if call.out in s.captured or s.callee_of(call) is not None:
        return False
    return is_read_from_outside(call) or s.may_run_code(call)


def reads_outside(callee: Callee) -> bool:
    """Does a specialised function read what may be set outside of the program?"""
    s = callee.specialiser
    return s is not None and any(
        carries(s.value(c.out)) and may_read_rebound(s, c) for c in s.ir.calls()
    )


def callable_or_simple(x: Any) -> bool:
    """Is it a function, or a value of a plain type?"""
    return is_simple(x) or isinstance(x, FunctionType | CodeType | dict)


def may_hold(value: Value) -> bool:
    """May it be an object that others write to?"""
    if type(value) is Known and value.type is IteratorOver:
        return value.detail is None or may_hold(value.detail)
    return value is None or any(not is_immutable(k.type) for k in possibilities(value))


def is_immutable(t: type) -> bool:
    """Is it a type whose values are what they are: numbers, arrays, tuples, strings?"""
    return (
        typed_zero(t) is not None
        or t is Plain
        or not has_tangent(t)
        or t in coarse_detail
        or t in (object, tuple, slice, range, type, FunctionType, BuiltinFunctionType, ModuleType)
        or (issubclass(t, tuple) and not t.__dictoffset__)
    )
