"""The gradient as one function that Numba compiles: the program of core/program.py for other ears.

The SSA form is that of the compiled program, but for three things: residuals of loops lie on stacks,
each of one type, in the place of a tape; the structural zero is None; what rules call in Python has a
form that Numba knows (`meanings.py`). There are no guards: globals are what they were when it was
compiled, as everywhere in Numba, and the types of arguments are those that Numba dispatches on.
Tests: tests/interop/test_numba.py
"""

from __future__ import annotations

import functools
import math
import operator
from types import FunctionType, MethodDescriptorType
from typing import Any

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

from morula.core import errors, primitives
from morula.core.callees import Callees
from morula.core.cfg import nested
from morula.core.context import call_plainly
from morula.core.cotangents import AbstractZero
from morula.core.emit import emit, merge_blocks
from morula.core.general import call_from_program
from morula.core.ir import Block, Branch, Call, Const, Operand, Var, substitute
from morula.core.primitives import alias, build_list, get_cell, load_global
from morula.core.program import Gradient
from morula.core.reverse import (
    Residuals,
    begin_iteration,
    end_iteration,
    enter_loop,
    more_iterations,
)
from morula.core.specialise import NotSpecialised, Specialiser
from morula.core.traits import gradient_for
from morula.core.values import argument_value, coarsened, known
from morula.interop.numba import meanings
from morula.interop.numba.meanings import MEANINGS, present

ASKS = (operator.is_, operator.is_not)  # whether something is the structural zero


class Program(Gradient):
    """The gradient of a function for arguments of known types, as Numba compiles it."""

    def specialised(self) -> Specialiser:
        """The primal for these types: nothing is assumed from examples, for there is no other way."""
        s = ForNumba(self.fn, self.knowns, Callees(), (), self.keywords)
        s.run()
        return s

    def test_results(self, gradients: list[Operand]) -> None:
        """There is no other way to begin anew by."""

    def resolve(self) -> None:
        """Let the residuals reach the adjoint, on stacks."""
        self.reversal.resolve(self.is_cheap, lambda r, cheap: Stacks(r, cheap, self.types))

    def function(self) -> FunctionType:
        """The function for `numba.njit`."""
        try:
            self.build()
        except NotSpecialised as reason:
            raise not_compiled(self.fn, str(reason)) from None
        self.ir.kept = []
        merge_blocks(self.ir)
        self.translate()
        f = self.fn
        code = emit(self.ir, f.__code__, f.__globals__, order=nested)
        return FunctionType(code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)

    # -- translation

    def translate(self) -> None:
        """Say everything in words that Numba knows."""
        nothing = self.may_be_nothing()
        for block in self.ir.blocks:
            calls: list[Call] = []
            for call in block.calls:
                call.position = call.position.outermost()  # no handler for the frames of others
                self.rename(call)
                self.call_methods(call, calls)
                if call.primitive not in ASKS and call.primitive not in TAKE_NOTHING:
                    call.args = tuple([self.held(x, nothing, calls, call) for x in call.args])
                call.args = tuple(map(as_nothing, call.args))
                calls.append(call)
            block.calls = calls
            for branch in block.branches:
                branch.args = list(map(as_nothing, branch.args))

    def held(self, x: Operand, nothing: set[Operand], calls: list[Call], call: Call) -> Operand:
        """A cotangent that is there, where one that may not be is used."""
        if x not in nothing:
            return x
        out = self.ir.var()
        calls.append(Call(out, Const(present), (x,), (), call.position))
        return out

    def rename(self, call: Call) -> None:
        """The form of what is called that Numba knows."""
        fn = call.primitive
        if fn is call_plainly:
            call.fn, call.args = call.args[0], call.args[1:]
            self.rename(call)
        elif fn is gradient_for:
            call.fn, call.args = Const(meanings.gradient), call.args[:2]
        elif fn is np.ufunc.reduce:
            self.rename_reduction(call)
        elif id(fn) in MEANINGS:
            call.fn = Const(MEANINGS[id(fn)])
        elif type(fn) is FunctionType and str(fn.__module__).startswith("morula.rules."):
            call.fn = Const(jitted(fn))
        elif is_own(fn):
            raise self.refused(call)

    def call_methods(self, call: Call, calls: list[Call]) -> None:
        """A method that was found in the class of an array is one of the array."""
        fn = call.primitive
        if fn is load_global:
            call.fn, call.args = Const(alias), (Const(load_global(*[a.value for a in call.args])),)
        elif type(fn) is MethodDescriptorType:
            method = self.ir.var()
            calls.append(Call(method, Const(getattr), (call.args[0], Const(fn.__name__))))
            call.fn, call.args = method, () if fn is np.ndarray.copy else call.args[1:]

    def rename_reduction(self, call: Call) -> None:
        """`np.add.reduce(x, axis)` is a sum."""
        ufunc, *args = call.args
        fn = REDUCTIONS.get(ufunc.value) if type(ufunc) is Const else None
        if fn is None or call.keywords:
            raise self.refused(call)
        if len(args) == 2 and type(args[1]) is Const and args[1].value is None:
            args.pop()
        call.fn, call.args = Const(fn), tuple(args)

    def refused(self, call: Call) -> Exception:
        """The construct that stands in the way, by the user's line."""
        fn = call.primitive
        if fn is call_from_program:
            fn = call.args[0].value if type(call.args[0]) is Const else None
        what = "a call" if fn is None else f"a call of {errors.qualified_name(fn)}"
        place = call.position.outermost().line
        return not_compiled(self.fn, what + (f" in line {place}" if place else ""))

    def may_be_nothing(self) -> set[Operand]:
        """The variables that may hold the structural zero."""
        found: set[Operand] = set()
        before = -1
        while len(found) > before:
            before = len(found)
            for block in self.ir.blocks:
                for branch in block.branches:
                    for p, a in zip(
                        branch.block.params if branch.block else (), branch.args, strict=False
                    ):
                        if a in found or (type(a) is Const and isinstance(a.value, AbstractZero)):
                            found.add(p)
                for call in block.calls:
                    if call.primitive is alias and call.args[0] in found:
                        found.add(call.out)
        return found


TAKE_NOTHING = {alias, *MEANINGS.values(), meanings.gradient} - {meanings.spread}
REDUCTIONS = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}


def as_nothing(x: Operand) -> Operand:
    """None in the place of the structural zero."""
    return Const(None) if type(x) is Const and isinstance(x.value, AbstractZero) else x


def not_compiled(fn: Any, reason: str) -> errors.UnsupportedError:
    """The gradient of a function is no program that Numba compiles."""
    return errors.UnsupportedError(
        f"the gradient of {errors.qualified_name(fn)} cannot be compiled by Numba: {reason}\n"
        "  What compiles is code of numbers and of loops over arrays, see docs/interop/numba.md; "
        "morula.grad differentiates the function without Numba"
    )


def is_own(fn: Any) -> bool:
    """Is it a function of Morula's that emission does not know?"""
    module = str(getattr(fn, "__module__", None))
    return module.startswith("morula.") and module != primitives.__name__


@functools.cache
def jitted(fn: FunctionType) -> Any:
    """A function that rules call, compiled."""
    return njit(fn)


class ForNumba(Specialiser):
    """Inference with what Numba's own types decide."""

    def resolve_constants(self) -> bool:
        """Also globals, and powers of floats, which are floats here."""
        changed = super().resolve_constants() | self.freeze_globals()
        for call in self.ir.calls():
            if call.primitive is operator.pow and not call.keywords:
                x, n = [known(self.value(a)) for a in call.args]
                if x is not None and n is not None and x.type is float and n.type is float:
                    call.fn = Const(math.pow)
                    changed = True
        return changed

    def read_captured(self) -> None:
        """Captured numbers and functions are constants."""
        cells = dict(zip(self.ir.free, self.fn.__closure__ or (), strict=True))
        found: dict[Var, Operand] = {}
        for call in self.ir.calls():
            if call.primitive is get_cell and call.args[0] in cells:
                value = frozen(cells[call.args[0]].cell_contents)
                if value is not None:
                    found[call.out] = value
        self.put_in(found)
        super().read_captured()

    def freeze_globals(self) -> bool:
        """What is global is constant."""
        found: dict[Var, Operand] = {}
        for call in self.ir.calls():
            if call.primitive is load_global and call.out not in self.given:
                namespace, name = [a.value for a in call.args]
                value = load_global(namespace, name)
                if (constant := frozen(value)) is not None:
                    found[call.out] = constant
                elif type(value) is np.ndarray:
                    self.given[call.out] = coarsened(argument_value(value))
        self.put_in(found)
        return bool(found)

    def put_in(self, found: dict[Var, Operand]) -> None:
        """Put constants in the place of the calls that read them."""
        for block in self.ir.blocks if found else ():
            block.calls = [c for c in block.calls if c.out not in found]
        substitute(self.ir, found)


def frozen(value: Any) -> Const | None:
    """The constant that a global or captured value is: a number, or what a compiled function runs."""
    if isinstance(value, Dispatcher):
        return Const(value.py_func)
    return Const(value) if type(value) in NUMBERS else None


NUMBERS = (bool, int, float, complex)


class Stacks(Residuals):
    """Residuals on stacks that last as long as the function runs, one for each variable.

    What a tape is elsewhere is here the height of the stacks when the loop was entered: its adjoint
    ends when they are as high again.
    """

    reader = staticmethod(alias)
    knows_ranges = False

    def __init__(self, reversal: Any, is_cheap: Any, types: Any) -> None:
        self.value_types = types
        super().__init__(reversal, is_cheap)

    def at_start(self, block: Block, variable: Any) -> Operand | None:
        """What is not defined on a way, and not read there, is a number of the right type."""
        found = super().at_start(block, variable)
        if type(found) is not Const:
            return found
        if variable[1] in self.tapes.values():
            return Const(0)
        k = known(self.value_types.get(variable[1]))
        return Const(k.type()) if k is not None and k.type in NUMBERS else found

    def emit_tapes(self) -> None:
        """Push in the latch of every loop, pop where the adjoint of an iteration begins."""
        for loop in self.loops:
            pulled = self.pulled[loop]
            if not pulled:
                pulled.append((self.ir.var(), Const(True)))
            self.emit_stacks(loop, pulled)

    def emit_stacks(self, loop: Any, pulled: list[tuple[Var, Operand]]) -> None:
        """The stacks of one loop."""
        stacks = [self.ir.var("stack") for _ in pulled]
        self.ir.entry.calls[:0] = [Call(s, Const(build_list), ()) for s in stacks]
        height = stacks[0]
        (entered,) = [
            c for c in self.marks[enter_loop, loop][0][0].calls if c.out is self.tapes[loop]
        ]
        entered.fn, entered.args = Const(len), (height,)
        latch, _ = self.marks[end_iteration, loop][0]
        for stack, (_, value) in zip(stacks, pulled, strict=True):
            self.call_method(latch.calls, stack, "append", value)
        header, _ = self.marks[more_iterations, loop][0]
        items = self.variables.read(header, ("items", loop))
        now, ended = self.ir.var(), self.ir.var()
        header.calls += [
            Call(now, Const(len), (height,)),
            Call(ended, Const(operator.eq), (now, items)),
        ]
        begin, leave = header.branches
        header.branches = [Branch(leave.block, leave.args, ended), Branch(begin.block, begin.args)]
        block, _ = self.marks[begin_iteration, loop][0]
        pops: list[Call] = []
        for stack, (item, _) in zip(stacks, pulled, strict=True):
            self.call_method(pops, stack, "pop", out=item)
        block.calls[:0] = pops
        self.variables.finish()

    def call_method(
        self, calls: list[Call], x: Var, name: str, *args: Operand, out: Var | None = None
    ) -> None:
        """Append a call of a method."""
        method = self.ir.var()
        calls += [
            Call(method, Const(getattr), (x, Const(name))),
            Call(out or self.ir.var(), method, args),
        ]
