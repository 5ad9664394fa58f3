"""Local functions that call themselves: what they have captured becomes arguments of theirs.

    def total(t):
        return t if t < 1.0 else x * total(t / 2)

Such a function is not inlined, so what it has captured would stay out of sight. In its place stands one
that takes the captured values as further arguments, which hands them on where it calls itself; that one
is specialised like any function that calls itself (callees.py). Functions that call each other are
lifted together.
Tests: tests/core/test_lift.py
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from inspect import CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from morula.core.bytecode.lower import lower
from morula.core.cfg import dominates, dominators
from morula.core.ir import IR, Call, Const, Operand, Var, substitute
from morula.core.primitives import (
    UNDEFINED,
    get_cell,
    make_cell,
    make_function,
    set_cell,
)
from morula.core.simplify import rebinds
from morula.core.traits import only_reads

if TYPE_CHECKING:
    from morula.core.specialise import Specialiser


@dataclass
class Lifted:
    """A local function, with all that it and those that it calls have captured as parameters."""

    code: CodeType
    namespace: dict[str, Any]
    group: list[FunctionType]  # what stands for it and those that it calls
    count: int  # of further parameters
    inside: list[int | FunctionType] = field(default_factory=list)  # of each captured variable: its
    # number among the further parameters, or the lifted function that it holds

    def ir(self) -> IR:
        """Its SSA form with the further parameters."""
        ir = lower(self.code, self.namespace).copy()
        values = [ir.var("captured") for _ in range(self.count)]
        own: dict[Var, Operand] = {}
        calls = [holding(ir, stub, values) for stub in self.group]
        for free, where in zip(ir.free, self.inside, strict=True):
            own[free] = cell = ir.var(free.name)
            value: Operand = values[where] if type(where) is int else Const(where)
            calls.append(Call(cell, Const(make_cell), (value,)))
        ir.params.extend(values)
        substitute(ir, own)
        ir.free = []
        ir.entry.calls[:0] = calls
        return ir


@dataclass
class Given:
    """A function that calls itself and is given local ones, which become part of it.

    What those have captured are further parameters of it, in the place of the functions.
    """

    fn: FunctionType
    given: dict[int, Call]  # how they are made, by the number of the parameter

    def ir(self) -> IR:
        """Its SSA form with those parameters."""
        ir = lower(self.fn.__code__, self.fn.__globals__).copy()
        params = list(ir.params)
        calls, own, further = list[Call](), dict[Var, Operand](), list[Var]()
        for i, f in self.given.items():
            values = [ir.var("captured") for _ in f.args[5:]]
            cells = [ir.var("captured") for _ in values]
            calls += [
                Call(cell, Const(make_cell), (value,))
                for cell, value in zip(cells, values, strict=True)
            ]
            made = Call(ir.var(f.out.name), f.fn, (*f.args[:5], *cells), (), f.position)
            calls.append(made)
            own[params[i]] = made.out
            further += values
        substitute(ir, own)
        ir.entry.params[:] = [p for i, p in enumerate(params) if i not in self.given]
        ir.entry.params.extend(further)
        ir.entry.calls[:0] = calls
        return ir


def captures(stub: FunctionType, *values: Any) -> None:
    """Stands where a lifted function is made, with the values that it has captured."""


only_reads(captures)


def holding(ir: IR, stub: FunctionType, values: Sequence[Operand]) -> Call:
    """A call that says so."""
    return Call(ir.var(), Const(captures), (Const(stub), *values))


def captured_by(ir: IR, stub: FunctionType) -> tuple[Operand, ...] | None:
    """What a lifted function has captured; None where that may be one or the other."""
    held = [c.args[1:] for c in ir.calls() if c.primitive is captures and c.args[0].value is stub]
    return held[0] if held and all(other == held[0] for other in held) else None


def lift_functions(s: Specialiser) -> bool:
    """Put lifted functions in the place of local ones that call themselves; were there any?"""
    if not any(c.primitive is make_function for c in s.ir.calls()):
        return False
    local = LocalFunctions(s.ir)
    groups = local.groups()
    for group in groups:
        captured = local.captured(group)
        assert captured is not None
        stubs = {f.out: stub_of(f, len(captured)) for f in group}
        for f in group:
            code, namespace = f.args[1].value, f.args[0].value
            lifted = Lifted(code, namespace, list(stubs.values()), len(captured))
            for cell in f.args[5:]:
                inner = local.held.get(cell)
                own = None if inner is None else stubs.get(inner.out)
                lifted.inside.append(captured.index(cell) if own is None else own)
            s.callees.lifted[stubs[f.out]] = lifted
        first = local.first(group)
        assert first is not None
        block = local.home[id(first)]
        at = block.calls.index(first)
        values = [s.ir.var() for _ in captured]
        block.calls[at:at] = [
            *[
                Call(value, Const(get_cell), (cell, Const("captured")), (), first.position)
                for value, cell in zip(values, captured, strict=True)
            ],
            *[holding(s.ir, stub, values) for stub in stubs.values()],
        ]
        substitute(s.ir, {out: Const(stub) for out, stub in stubs.items()})
        for block in s.ir.blocks:
            block.calls = [c for c in block.calls if c.out not in stubs]
    return bool(groups)


def give_functions(s: Specialiser, call: Call, operands: list[Operand]) -> bool:
    """Let a function that calls itself be called without the local ones that it is given."""
    fn = call.primitive
    given = {i: s.made[x] for i, x in enumerate(operands) if x in s.made and is_handed(s.made[x])}
    if not given or fn.__closure__ or fn.__code__.co_flags & NOT_PLAIN:
        return False
    cells = [cell for f in given.values() for cell in f.args[5:]]
    if any(may_be_rebound(s.ir, cell) for cell in cells):
        return False
    key = fn, *[(i, *[id(x.value) for x in f.args[:5]]) for i, f in given.items()]
    stub = s.callees.given.get(key)
    if stub is None:
        count = sum(len(f.args) - 5 for f in given.values())
        stub = s.callees.given[key] = stub_for(fn.__code__, fn.__globals__, given, count)
        s.callees.lifted[stub] = Given(fn, given)
    block = next(b for b in s.ir.blocks if call in b.calls)
    reads = [
        Call(s.ir.var(), Const(get_cell), (cell, Const("captured")), (), call.position)
        for cell in cells
    ]
    at = block.calls.index(call)
    block.calls[at:at] = reads
    kept = [x for i, x in enumerate(operands) if i not in given]
    call.fn, call.args, call.keywords = Const(stub), (*kept, *[c.out for c in reads]), ()
    s.called.add(call.out)
    return True


def may_be_rebound(ir: IR, cell: Operand) -> bool:
    """May something else than a statement of the program itself give a captured variable a value?"""
    return any(cell in c.args and not leaves_alone(c) for c in ir.calls())


def leaves_alone(call: Call) -> bool:
    """Does nothing give the captured variables of a call another value later on?"""
    if call.primitive is make_function:
        code = call.args[1]
        return type(code) is Const and not rebinds(code.value)
    return call.primitive in (make_cell, get_cell, set_cell)


def is_handed(f: Call) -> bool:
    """Is it a local function that rebinds nothing, whose defaults are known?"""
    return all(type(x) is Const for x in f.args[:5]) and not rebinds(f.args[1].value)


def stub_of(f: Call, count: int) -> FunctionType:
    """A function that stands for a lifted one."""
    stub = stub_for(f.args[1].value, f.args[0].value, (), count)
    stub.__defaults__ = f.args[2].value
    return stub


def stub_for(
    code: CodeType, namespace: dict[str, Any], without: Container[int], count: int
) -> FunctionType:
    """A function that stands for another one, for its signature: it is never run."""
    n = code.co_argcount
    names = [name for i, name in enumerate(code.co_varnames[:n]) if i not in without]
    names += [f"captured {i}" for i in range(count)]
    signature = _TEMPLATE.replace(
        co_varnames=tuple(names),
        co_nlocals=len(names),
        co_argcount=len(names),
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
    stub = FunctionType(signature, namespace, code.co_name)
    stub.__dict__[STUB] = True
    return stub


def _template() -> None:
    raise AssertionError("what stands for a local function was called")


_TEMPLATE = _template.__code__
STUB = "__morula_stub__"


def is_stub(x: Any) -> bool:
    """Does it stand for a local function?"""
    return type(x) is FunctionType and STUB in x.__dict__


def holds_stub(x: Any) -> bool:
    """Is it one, or a tuple with one?"""
    return any(map(holds_stub, x)) if type(x) is tuple else is_stub(x)


class LocalFunctions:
    """The functions that are made in a program and put into one variable each."""

    def __init__(self, ir: IR) -> None:
        self.ir = ir
        functions = {c.out: c for c in ir.calls() if c.primitive is make_function}
        self.parent = dominators(ir)
        self.home = {id(c): b for b in ir.blocks for c in b.calls}
        self.start: dict[Operand, Operand] = {
            c.out: c.args[0] for c in ir.calls() if c.primitive is make_cell
        }
        self.sets: dict[Operand, list[Call]] = {}
        for call in ir.calls():
            if call.primitive is set_cell:
                self.sets.setdefault(call.args[0], []).append(call)
        self.held: dict[Operand, Call] = {}  # the function in a captured variable
        for cell, calls in self.sets.items():
            f = functions.get(calls[0].args[1])  # type: ignore[arg-type]
            if f is not None and len(calls) == 1 and self.is_unset(cell):
                self.held[cell] = f

    def is_unset(self, cell: Operand) -> bool:
        """Is a captured variable made without a value?"""
        start = self.start.get(cell)
        return type(start) is Const and start.value is UNDEFINED

    def reached_from(self, f: Call) -> list[Call]:
        """The functions that it may call by what it has captured."""
        found: list[Call] = []
        waiting = [f]
        while waiting:
            for cell in waiting.pop().args[5:]:
                inner = self.held.get(cell)
                if inner is not None and inner not in found:
                    found.append(inner)
                    waiting.append(inner)
        return found

    def groups(self) -> list[list[Call]]:
        """Those that may call themselves, each with all that it may call."""
        found: list[list[Call]] = []
        for f in self.held.values():
            group = self.reached_from(f)
            if f not in group or any(f in other for other in found):
                continue
            if all(map(is_liftable, group)) and self.captured(group) is not None:
                found = [g for g in found if not set(map(id, g)) & set(map(id, group))]
                found.append(group)
        return found

    def captured(self, group: Sequence[Call]) -> list[Operand] | None:
        """The variables that they have captured, but for themselves; None: one may be without value."""
        cells = [c for f in group for c in f.args[5:] if self.held.get(c) not in group]
        found = list(dict.fromkeys(cells))
        if self.first(group) is None or not all(self.is_set_before(c, group) for c in found):
            return None
        return found

    def first(self, group: Sequence[Call]) -> Call | None:
        """The function that is made before all others."""
        return next((f for f in group if all(f is g or self.precedes(f, g) for g in group)), None)

    def is_set_before(self, cell: Operand, group: Sequence[Call]) -> bool:
        """Has a captured variable the same value as long as one of the functions may be called?"""
        if cell not in self.start or may_be_rebound(self.ir, cell):
            return False
        sets = self.sets.get(cell, ())
        set_once = bool(sets) or not self.is_unset(cell)
        return set_once and all(self.precedes(c, f) for c in sets for f in group)

    def precedes(self, first: Call, second: Call) -> bool:
        """Has one call happened where control comes to the other?"""
        a, b = self.home[id(first)], self.home[id(second)]
        if a is b:
            return a.calls.index(first) < a.calls.index(second)
        return dominates(self.parent, a, b)


def is_liftable(f: Call) -> bool:
    """Is it a plain function of arguments by position, that rebinds nothing?"""
    if any(type(x) is not Const for x in f.args[:4]) or f.args[3].value:
        return False
    code = f.args[1].value
    plain = not code.co_kwonlyargcount and not code.co_flags & NOT_PLAIN
    return plain and not rebinds(code)


NOT_PLAIN = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR
