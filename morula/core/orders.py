"""What is differentiated once more: gradients, and their products with a direction, in SSA form.

The gradient of a gradient is a program of its own. It is made of the form in which the program of
the first order is before it is emitted: its rules are inlined, so what is left are calls of functions
that have rules themselves. Where that is not so, a `NotSpecialised` leaves it to the general path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from morula.core import context
from morula.core.bytecode.lower import lower
from morula.core.cotangents import AbstractZero, accumulate, settled
from morula.core.general import call_from_program
from morula.core.infer import Guards
from morula.core.ir import IR, Call, Const, Var, substitute
from morula.core.primitives import alias, maybe_zero, maybe_zero_of_parts, sum_if_any
from morula.core.program import Gradient, one_of
from morula.core.specialise import NotSpecialised, bail_out, go_general, without_exceptions
from morula.core.traits import Known, gradient_for

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
        gradient = Gradient(
            fn,
            knowns,
            self.wanted,
            self.with_value,
            self.single,
            self.has_aux,
            self.keywords,
            examples,
            source=self.source,
        )
        gradient.again = True
        ir = gradient.build()
        ir.kept = []
        if gradient.needs_context or gradient.shadows or gradient.specialiser.callees.found:
            raise NotSpecialised("a gradient that works on mutable values")
        substitute(ir, {c.out: c.args[0] for c in ir.calls() if c.primitive is alias})
        for block in ir.blocks:
            block.calls = [c for c in block.calls if c.primitive is not alias]
        if not all(map(is_of_values, ir.calls())) or passes_zeros(ir):
            raise NotSpecialised("a gradient with pullbacks that are not inlined")
        return gradient


def is_of_values(call: Call) -> bool:
    """Is it a call of a known function of values, none of which is a structural zero?"""
    fn = call.primitive
    if type(call.fn) is not Const or id(fn) in _once:
        return fn in (bail_out, go_general)
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
