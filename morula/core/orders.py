"""What is differentiated once more: gradients, and their products with a direction, in SSA form.

The gradient of a gradient is a program of its own. It is made of the form in which the program of
the first order is before it is emitted: its rules are inlined, so what is left are calls of functions
that have rules themselves. Where that is not so, a `NotSpecialised` leaves it to the general path.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from morula.core import context
from morula.core.adjoint import is_numeric
from morula.core.bytecode.lower import lower
from morula.core.cfg import Loop, is_reducible
from morula.core.cotangents import ZERO, AbstractZero, accumulate, settled
from morula.core.flags import flag_zeros
from morula.core.general import call_from_program
from morula.core.infer import Guards, transfers
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, substitute
from morula.core.primitives import (
    alias,
    build_list,
    list_append,
    maybe_zero,
    maybe_zero_of_parts,
    sum_if_any,
)
from morula.core.program import Gradient, one_of
from morula.core.reducible import make_reducible
from morula.core.registry import non_differentiable
from morula.core.reverse import (
    Residuals,
    Reversal,
    begin_iteration,
    end_iteration,
    enter_loop,
    more_iterations,
    reachable_from,
)
from morula.core.specialise import (
    WAYS_OUT,
    NotSpecialised,
    without_exceptions,
)
from morula.core.traits import Known, gradient_for, sample, vanishes
from morula.core.values import Value, is_fine, known, possibilities

# What programs of the first order do that is said of cotangents, not of values.
OF_COTANGENTS = {
    accumulate,
    call_from_program,
    context.adjoint_of,
    context.call_plainly,
    context.enter,
    context.leave,
    gradient_for,
    maybe_zero,
    maybe_zero_of_parts,
    one_of,
    settled,
    sum_if_any,
}
_once: set[int] = set()


def only_once(*fns: Any) -> None:
    """Declare what programs call that means another thing in derivatives of derivatives."""
    _once.update(map(id, fns))


class Source:
    """How a function comes about that has no code of its own."""

    def function(
        self, fn: FunctionType, knowns: list[Known], examples: Sequence[Any], keywords: Any
    ) -> tuple[IR, Guards]:
        """Its SSA form for arguments of known types, and what a program of it has to ask."""
        raise NotImplementedError


@dataclass(frozen=True)
class OfGradient(Source):
    """The gradient of a function, which may have a source itself."""

    wanted: tuple[int, ...]
    with_value: bool
    single: bool
    has_aux: bool
    keywords: tuple[str, ...]
    source: Source | None

    @staticmethod
    def of_family(family: Any) -> OfGradient:
        """What the gradient functions of a family give."""
        how = (family.wanted, family.with_value, family.single, family.has_aux)
        return OfGradient(*how, family.keywords, family.source)

    def function(
        self, fn: FunctionType, knowns: list[Known], examples: Sequence[Any], keywords: Any
    ) -> tuple[IR, Guards]:
        """The gradient before it is emitted."""
        gradient = self.built(fn, knowns, examples, keywords)
        return gradient.ir, gradient.specialiser.guards

    def built(
        self, fn: FunctionType, knowns: list[Known], examples: Sequence[Any], keywords: Any
    ) -> Gradient:
        """The same, with what is known of its variables."""
        gradient = InnerGradient(
            fn,
            knowns,
            self.wanted,
            self.with_value,
            self.single,
            self.has_aux,
            self.keywords,
            examples,
            assuming=True,
            source=self.source,
        )
        ir = gradient.build()
        ir.kept = []
        if gradient.needs_context or gradient.shadows or gradient.specialiser.callees.found:
            raise NotSpecialised("a gradient that works on mutable values")
        substitute(ir, {c.out: c.args[0] for c in ir.calls() if c.primitive is alias})
        for block in ir.blocks:
            block.calls = [c for c in block.calls if c.primitive is not alias]
        if not all(map(is_of_values, ir.calls())) or passes_zeros(ir):
            raise NotSpecialised("a gradient with pullbacks that are not inlined")
        if not is_reducible(ir):  # the adjoint of a loop that is left in several places
            make_reducible(ir)
        return gradient


class InnerGradient(Gradient):
    """A gradient that is differentiated in its turn."""

    again = True
    may_keep_objects = False

    def resolve(self) -> None:
        """Let the residuals reach the adjoint."""
        self.infer_again()
        self.reversal.resolve(
            self.is_cheap, lambda reversal, is_cheap: Numbered(reversal, is_cheap, self.stand_in)
        )

    def settle_zeros(self) -> None:
        """What may be a structural zero becomes a number with a flag, or a gradient of zeros."""
        self.infer_again()
        if numbers := self.settle_numbers():
            self.infer_again()
        r, definite = self.reversal, self.definite_cotangents()
        built = self.result_tuple()
        for i, leaf in enumerate(self.leaves):
            x̄ = built.args[i]
            if type(x̄) is Var and x̄ not in definite and self.nothing_like(x̄) is not None:
                self.choose_gradient(built, i, leaf)
        ends = flag_zeros(self.ir, r.start, self.definite_cotangents() | numbers, self.nothing_like)
        self.end_in(ends.get(r.end, r.end))

    def settle_numbers(self) -> set[Operand]:
        """What a rule gives as a number or as a structural zero: which one, is a matter of control."""
        found: set[Operand] = set()
        doubtful = self.vanishing_numbers()
        for start in reachable_from(self.reversal.start):
            block, i = start, 0
            while i < len(block.calls):
                call, i = block.calls[i], i + 1
                if not vanishes(call.primitive) or call.out not in doubtful:
                    continue
                rest, number = self.ir.cut(block, i, call.out), self.ir.var()
                call.out = number
                test = self.append(block, operator.is_, number, Const(ZERO))
                block.branches = [Branch(rest, [Const(ZERO)], test), Branch(rest, [number])]
                if block is self.reversal.end:
                    self.end_in(rest)
                found.add(number)
                block, i = rest, 0
        return found

    def choose_gradient(self, built: Call, i: int, leaf: Var) -> None:
        """The i-th result: zeros like the leaf, if its cotangent is a structural zero."""
        x̄, block, at = built.args[i], self.reversal.end, self.reversal.end.calls.index(built)
        nothing, chosen = self.ir.block(), self.ir.var()
        rest = self.ir.cut(block, at, chosen)
        test = self.append(block, operator.is_, x̄, Const(ZERO))
        block.branches = [Branch(nothing, (), test), Branch(rest, [x̄])]
        nothing.branches = [Branch(rest, [self.append(nothing, zero_gradient, leaf)])]
        built.args = (*built.args[:i], chosen, *built.args[i + 1 :])
        self.end_in(rest)

    def end_in(self, block: Block) -> None:
        """This is the last block now."""
        r = self.reversal
        r.end = block
        self.ir.kept = [r.exit, r.start, r.end]

    def nothing_like(self, v: Var) -> Const | None:
        """A number or an array of the type that a cotangent has where it is no structural zero."""
        value = self.types.get(v)
        if value is None:
            return None
        kinds = [k for k in possibilities(value) if not issubclass(k.type, AbstractZero)]
        alike = len(kinds) == 1 or all(issubclass(k.type, float) for k in kinds)
        return zero_like(kinds[0]) if kinds and alike else None

    def stand_in(self, v: Var) -> Const:
        """What a variable is on a way on which it is not defined, and not read."""
        k = known(self.types.get(v))
        found = None if k is None else Const(False) if k.type is bool else zero_like(k)
        return found or Const(None)


def zero_like(k: Known) -> Const | None:
    """A number or an array of this type."""
    if not is_fine(k) or not is_numeric(k):
        return None
    one = sample(k)
    return Const(one - one)


def zero_gradient(x: Any) -> Any:
    """The gradient for an argument on which nothing depends."""
    return gradient_for(x, ZERO, no_adjoint)


def no_adjoint(x: Any) -> None:
    """Numbers and arrays have no adjoint objects."""


@transfers(zero_gradient)
def _(s: Any, call: Call, args: list[Value]) -> Value:
    return args[0]


non_differentiable(zero_gradient)


class Numbered(Residuals):
    """Residuals of loops in lists, one for each variable, whose items are read by number.

    The adjoint of a loop counts down from the length of its lists. So the lists hold values of one
    type each, which the next derivative knows, and what is done with them is known to have shadows.
    """

    reader = len
    knows_ranges = False

    def __init__(
        self,
        reversal: Reversal,
        is_cheap: Callable[[Call], bool],
        stand_in: Callable[[Var], Const],
    ) -> None:
        self.stand_in = stand_in
        self.lists: set[Var] = set()
        super().__init__(reversal, is_cheap)

    def begin_tapes(self) -> None:
        super().begin_tapes()
        self.lists.update(self.tapes.values())

    def at_start(self, block: Block, variable: Any) -> Operand | None:
        """What is not defined on a way is of the same type there."""
        found = super().at_start(block, variable)
        if block is not self.ir.entry:
            return found
        kind, key = variable
        if kind == "items":
            return Const(0)
        if key not in self.lists:
            return self.stand_in(key)
        empty = self.ir.var("empty")
        block.calls.insert(0, Call(empty, Const(build_list), ()))
        return empty

    def begin(self, block: Block, loop: Loop) -> None:
        """One iteration fewer is left."""
        left, number = self.variables.read(block, ("items", loop)), self.ir.var("k")
        block.calls.insert(0, Call(number, Const(operator.sub), (left, Const(1))))
        self.variables.write(block, ("items", loop), number)

    def emit_tapes(self) -> None:
        """Loops in loops come first: their lists are residuals of the loops around them."""
        for loop in sorted(self.loops, key=lambda loop: len(self.bodies[loop])):
            self.emit_lists(loop, self.pulled[loop] or [(self.ir.var(), Const(None))])
            self.emit_count(loop)

    def emit_lists(self, loop: Loop, pulled: list[tuple[Var, Operand]]) -> None:
        """The latch appends to the lists, and the adjoint of an iteration reads them."""
        latch, _ = self.marks[end_iteration, loop][0]
        block, _ = self.marks[begin_iteration, loop][0]
        number = self.variables.read(block, ("items", loop))
        at = 1 + next(i for i, call in enumerate(block.calls) if call.out is number)
        for i, (item, value) in enumerate(pulled):
            items = self.list_of(loop) if i else self.tapes[loop]
            latch.calls.append(Call(self.ir.var(), Const(list_append), (items, value)))
            there = self.variables.read(block, ("residual", items))
            block.calls.insert(at, Call(item, Const(operator.getitem), (there, number)))
        self.variables.finish()

    def list_of(self, loop: Loop) -> Var:
        """One more list for the residuals of a loop."""
        block, _ = self.marks[enter_loop, loop][0]
        items = self.ir.var("tape")
        block.calls.append(Call(items, Const(build_list), ()))
        self.home[items] = block
        self.lists.add(items)
        self.variables.write(block, ("residual", items), items)
        return items

    def emit_count(self, loop: Loop) -> None:
        """The adjoint runs as long as iterations are left."""
        header, _ = self.marks[more_iterations, loop][0]
        more = self.ir.var()
        left = self.variables.read(header, ("items", loop))
        header.calls.append(Call(more, Const(operator.gt), (left, Const(0))))
        again, leave = header.branches
        header.branches = [Branch(again.block, again.args, more), Branch(leave.block, leave.args)]


def is_of_values(call: Call) -> bool:
    """Is it a call of a known function of values, none of which is a structural zero?"""
    fn = call.primitive
    if type(call.fn) is not Const or id(fn) in _once:
        return fn in WAYS_OUT
    return fn not in OF_COTANGENTS and not any(map(is_zero, call.args))


def passes_zeros(ir: IR) -> bool:
    """May the value of a variable be a structural zero?"""
    return any(is_zero(a) for block in ir.blocks for b in block.branches for a in b.args)


def is_zero(x: Any) -> bool:
    """Is an operand a structural zero?"""
    return type(x) is Const and isinstance(x.value, AbstractZero)


@dataclass(frozen=True)
class OfFunction(Source):
    """A function as it stands."""

    def function(
        self, fn: FunctionType, knowns: list[Known], examples: Sequence[Any], keywords: Any
    ) -> tuple[IR, Guards]:
        """Its own SSA form."""
        return without_exceptions(lower(fn.__code__, fn.__globals__)).copy(), Guards()


@dataclass(frozen=True)
class Along(Source):
    """The product of what a function or a gradient gives with a direction, the second argument."""

    of: Source
    inner: Callable[[Any, Any], Any]

    def function(
        self, fn: FunctionType, knowns: list[Known], examples: Sequence[Any], keywords: Any
    ) -> tuple[IR, Guards]:
        """`inner(of(x, *args), v)` for x, v and args."""
        code = without_direction(fn.__code__)
        of_x = FunctionType(code, fn.__globals__, fn.__name__, None, fn.__closure__)
        others = [knowns[0], *knowns[2:]]
        ir, guards = self.of.function(of_x, others, without_second(examples), keywords)
        v = ir.var("v")
        ir.entry.params = [ir.params[0], v, *ir.params[1:]]
        for block in ir.blocks:
            for branch in block.branches:
                if branch.block is None:
                    out: Var = ir.var()
                    block.calls.append(Call(out, Const(self.inner), (branch.args[0], v)))
                    branch.args = [out]
        return ir, guards


def without_second(xs: Sequence[Any]) -> Sequence[Any]:
    """All but the second of some arguments."""
    return [*xs[:1], *xs[2:]]


def with_direction(code: CodeType) -> CodeType:
    """The code with a parameter behind the first, for its signature; one for each code."""
    found = _with_direction.get(id(code))
    if found is None:
        found = _with_direction[id(code)] = (code, made_with_direction(code))
    return found[1]


def made_with_direction(code: CodeType) -> CodeType:
    """Such a code."""
    names = (code.co_varnames[0], DIRECTION, *code.co_varnames[1:])
    return code.replace(
        co_varnames=names,
        co_nlocals=code.co_nlocals + 1,
        co_argcount=code.co_argcount + 1,
        co_posonlyargcount=max(code.co_posonlyargcount, 1) + 1,
    )


def without_direction(code: CodeType) -> CodeType:
    """The code that `with_direction` was made of, for its signature."""
    return code.replace(
        co_varnames=(code.co_varnames[0], *code.co_varnames[2:]),
        co_nlocals=code.co_nlocals - 1,
        co_argcount=code.co_argcount - 1,
        co_posonlyargcount=code.co_posonlyargcount - 1,
    )


DIRECTION = "direction of the product"
_with_direction: dict[int, tuple[CodeType, CodeType]] = {}
