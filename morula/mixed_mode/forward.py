"""The forward transform: a function in SSA form -> the same function with its tangents alongside.

Every call `y = f(x)` becomes `y, ẏ = push(run, f, ḟ, (x,), (ẋ,))`; a parameter of a block gets a
second one for its tangent. What is known to be constant stays a plain call. `push` decides what a
call means when it happens; nothing is known here of values.
"""

from __future__ import annotations

import operator
from types import CodeType, FunctionType
from typing import Any

from morula.core.abandon import with_ends
from morula.core.bytecode.lower import as_written, with_notes
from morula.core.cotangents import ZERO
from morula.core.emit import emit
from morula.core.general import _is_plain, asks_nothing
from morula.core.ir import IR, Branch, Call, Const, Operand, Var, count_of_parameters
from morula.core.primitives import build_tuple, load_global, unpack
from morula.core.registry import is_constant_call, is_declared_call, on_claim
from morula.core.settings import with_own_settings
from morula.core.verify import checked

_codes: dict[tuple[int, int, int], tuple[CodeType, CodeType]] = {}
on_claim.append(_codes.clear)
_binders: dict[int, tuple[CodeType, CodeType]] = {}
# What gives the tangents of the values of primitives that only move values about, and raise nothing
# that holds an operand: twin(run, y, …). Those of other calls are found by `push` when they happen.
TWINS: dict[Any, Any] = {}
STRUCTURAL_ZERO = Const(ZERO)


def forward_of(fn: FunctionType, push: Any, attempt: Any) -> FunctionType:
    """The function of the pass, the parameters and their tangents that gives y and ẏ.

    `push` is what calls become; `attempt` is the same for calls in a protected region.
    """
    key = (id(fn.__code__), id(fn.__globals__), id(push))
    found = _codes.get(key)
    if found is None:
        code = transform(fn.__code__, fn.__globals__, push, attempt)
        found = _codes[key] = (fn.__code__, code)
    return FunctionType(found[1], fn.__globals__, fn.__name__, None, fn.__closure__)


def binder_of(fn: FunctionType) -> FunctionType:
    """The function with the signature of `fn` that gives the tuple of its parameters."""
    found = _binders.get(id(fn.__code__))
    if found is None:
        found = _binders[id(fn.__code__)] = (fn.__code__, binder(fn.__code__))
    new = FunctionType(found[1], fn.__globals__, fn.__name__, fn.__defaults__, None)
    new.__kwdefaults__ = fn.__kwdefaults__
    new.__qualname__ = fn.__qualname__
    return new


def binder(code: CodeType) -> CodeType:
    """Code with a signature that returns the tuple of the parameters."""
    ir = IR(code.co_name, code.co_filename)
    entry = ir.block()
    entry.params = [ir.var(name) for name in code.co_varnames[: count_of_parameters(code)]]
    out = ir.var()
    entry.calls = [Call(out, Const(build_tuple), entry.params)]
    entry.branches = [Branch(None, [out])]
    return emit(ir, code.replace(co_freevars=(), co_cellvars=()), {})


@with_own_settings
def transform(code: CodeType, namespace: dict[str, Any], push: Any, attempt: Any) -> CodeType:
    """Code -> code of (run, *parameters, *tangents) that returns the value and its tangent."""
    primal = with_ends(with_notes(code, namespace))
    forward = Forward(primal, push, attempt, asks_nothing(namespace))
    ir = checked("forward", forward.run())
    n = 1 + 2 * count_of_parameters(code)
    like = code.replace(
        co_argcount=n,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~0x0C,
        co_varnames=tuple([f"_{i}" for i in range(n)]),
        co_nlocals=n,
        co_cellvars=(),
    )
    return emit(ir, like, namespace)


class Forward:
    """A function under transformation; `dots` are the tangents of its variables."""

    def __init__(self, ir: IR, push: Any, attempt: Any, trusted: bool) -> None:
        self.ir = ir.copy()
        self.trusted = trusted  # one of Morula's own functions, which ask no objects of users'
        self.push = Const(push)
        self.attempt = Const(attempt)
        self.pass_ = self.ir.var("run")
        self.dots: dict[Var, Operand] = {}
        self.tuples = {c.out for c in ir.calls() if c.primitive in (build_tuple, unpack)}

    def run(self) -> IR:
        """The whole function."""
        ir = self.ir
        for block in ir.blocks:
            for p in block.params:
                self.dots[p] = ir.var(p.name + "̇")
            for call in block.calls:
                self.dots[call.out] = (
                    STRUCTURAL_ZERO if self.is_plain(call) else ir.var(call.out.name + "̇")
                )
        for block in ir.blocks:
            self.transform_block(block)
        entry = ir.entry
        entry.params = [self.pass_, *entry.params]
        return ir

    def is_plain(self, call: Call) -> bool:
        """Can the call have no tangent and no effect on one?"""
        call = as_written(call)
        if type(call.fn) is not Const:
            return False
        if self.trusted and call.primitive is load_global:
            return True
        constant = is_declared_call(call, ()) if self.trusted else is_constant_call(call)
        return constant or _is_plain(call)

    def dot(self, x: Operand) -> Operand:
        """The tangent of an operand."""
        return self.dots.get(x, STRUCTURAL_ZERO) if type(x) is Var else STRUCTURAL_ZERO

    def transform_block(self, block: Any) -> None:
        """Calls and branches with the tangents of what they read."""
        calls: list[Call] = []
        for call in block.calls:
            if self.is_plain(call):
                calls.append(call)
            else:
                calls += self.moved(call) or self.pushed(call)
        block.calls = calls
        for branch in block.branches:
            dots = [self.dot(x) for x in branch.args]
            if branch.block is not None:
                branch.args = [*branch.args, *dots]
                continue
            both = self.ir.var()
            block.calls.append(Call(both, Const(build_tuple), [*branch.args, *dots]))
            branch.args = [both]
        block.params = [*block.params, *[self.dots[p] for p in block.params]]

    def moved(self, call: Call) -> list[Call]:
        """`y = f(x)`, then its tangent by the twin of `f`; nothing, where `push` is asked."""
        twin = TWINS.get(call.primitive)
        if twin is None or as_written(call) is not call or call.keywords:
            return []
        if call.primitive is operator.getitem and not self.reads_tuple(call):
            return []
        operands: list[Operand] = [self.pass_, call.out]
        ẏ, calls = self.dots[call.out], [call]
        assert type(ẏ) is Var
        if call.primitive is build_tuple:
            dots = self.ir.var()
            calls.append(Call(dots, Const(build_tuple), [self.dot(x) for x in call.args]))
            operands.append(dots)
        elif call.primitive is operator.getitem:
            operands += [*call.args, self.dot(call.args[0])]
        else:
            operands += call.args
        return [*calls, Call(ẏ, Const(twin), operands, (), call.position)]

    def reads_tuple(self, call: Call) -> bool:
        """Is it an item of a tuple that was unpacked here?"""
        xs, i = call.args
        return xs in self.tuples and type(i) is Const and type(i.value) is int

    def pushed(self, call: Call) -> list[Call]:
        """`y, ẏ = push(run, f, ḟ, arguments, tangents)`."""
        where = call.position
        how = self.push if as_written(call) is call else self.attempt
        call = as_written(call)
        args, dots, both, items = [self.ir.var() for _ in range(4)]
        operands: list[Operand] = [self.pass_, call.fn, self.dot(call.fn), args, dots]
        if call.keywords:
            operands.append(Const(call.keywords))
        ẏ = self.dots[call.out]
        assert type(ẏ) is Var
        return [
            Call(args, Const(build_tuple), call.args, (), where),
            Call(dots, Const(build_tuple), [self.dot(x) for x in call.args], (), where),
            Call(both, how, operands, (), where),
            Call(items, Const(unpack), (both, Const(2)), (), where),
            Call(call.out, Const(operator.getitem), (items, Const(0)), (), where),
            Call(ẏ, Const(operator.getitem), (items, Const(1)), (), where),
        ]
