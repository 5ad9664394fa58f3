"""The value of a function and its pullback, as two programs, for arguments of known types.

They are the two halves of one primal and adjoint: the first gives the value and the residuals, the
second the gradients, from the residuals and any cotangent of the value. Only programs that leave
nothing behind are divided, so that the second may run any number of times.
Tests: tests/core/test_pulled.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from morula.core.adjoint import flat
from morula.core.callables import is_plain
from morula.core.compiled import Family, family_by
from morula.core.context import adjoint_if_any
from morula.core.cotangents import NONE, ZERO, is_zero, project_to, unthunk
from morula.core.emit import emit, merge_blocks
from morula.core.general import pullback_like, separate
from morula.core.ir import IR, Branch, Const, Operand
from morula.core.primitives import alias, build_tuple
from morula.core.program import Gradient, Tried
from morula.core.reuse import reuse_memory
from morula.core.reverse import reachable_from
from morula.core.sharing import ask_whether_shared
from morula.core.simplify import remove_unused
from morula.core.specialise import WAYS_OUT, NotSpecialised
from morula.core.ssa import prune_params
from morula.core.traits import Known, gradient_for, sample
from morula.core.values import NEVER, argument_value, possibilities


class Halves(Gradient):
    """The two programs; what they give is what `with_pullback` gives."""

    may_round_otherwise = False  # the first call of a function takes the general path

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.with_value = True

    def build(self) -> IR:
        """The primal, which packs the residuals; the adjoint is a function of its own."""
        self.specialiser = s = self.specialised()
        self.returned = s.returned()
        if self.returned is None or self.returned is NEVER or s.protected:
            raise NotSpecialised("it handles exceptions, or it is not known what it gives")
        if not all(map(is_like_its_cotangents, possibilities(self.returned))):
            raise NotSpecialised("its value is not one real or complex number, or array of such")
        leaves = [leaf for i in self.wanted for leaf in flat(self.leaves_of(i))]
        ask_whether_shared(s, leaves)
        self.differentiate(leaves, leaves)
        if not self.leaves_nothing or self.prepared is not None or s.own_changes:
            raise NotSpecialised("it changes something")
        built = self.result_tuple()
        y = self.append(self.reversal.exit, alias, self.reversal.result)
        built.args = (*built.args, *leaves, y)
        self.inline_rules()
        self.clean_adjoint()
        built = self.result_tuple()
        *bars, self.y = built.args
        built.args = tuple(bars)
        self.return_gradients()
        if self.needs_context or self.shadows or s.callees.found:
            raise NotSpecialised("it works on mutable values")
        self.resolve()
        self.divide()
        remove_unused(self.ir)
        prune_params(self.ir)
        return self.ir

    def divide(self) -> None:
        """Make a function of the adjoint."""
        backward, kept = separate(self.reversal)
        self.ir.blocks = [b for b in self.ir.blocks if b not in backward.blocks]
        if any(c.primitive in WAYS_OUT for c in backward.calls()):
            raise NotSpecialised("its reverse pass may have to begin anew")
        merge_blocks(backward)
        reuse_memory(backward, self.known_of, self.is_in_memory)
        like = pullback_like(self.fn.__code__)
        code = emit(backward, like, self.fn.__globals__, self.holds_memory)
        function = Const(FunctionType(code, self.fn.__globals__, self.fn.__name__))
        exit = self.reversal.exit
        arguments = self.append(exit, build_tuple, *self.ir.params)
        out = self.append(exit, with_pullback, function, self.y, kept, arguments)
        exit.branches = [Branch(None, [out])]

    def is_new(self, x̄: Operand) -> bool:
        """Does each run of the adjoint make the value, in memory of its own?"""
        adjoint = reachable_from(self.reversal.start)
        return any(c.out is x̄ for b in adjoint for c in b.calls) and super().is_new(x̄)


def is_like_its_cotangents(k: Known) -> bool:
    """Are the cotangents of such a value of the same type as the value, dtype and shape included?"""
    try:
        y = sample(k)
    except KeyError:
        return False
    return argument_value(project_to(y)(y)) == argument_value(y)


def with_pullback(
    backward: Callable[[Any, Any], Any], y: Any, residuals: Any, args: tuple[Any, ...]
) -> Any:
    """The value, the pullback, which gives no cotangent for the function, and the memory written to."""
    return y, partial(pull, backward, project_to(y), residuals, args), {}


def pull(
    backward: Callable[[Any, Any], Any],
    project: Callable[[Any], Any],
    residuals: Any,
    args: tuple[Any, ...],
    ȳ: Any,
) -> tuple[Any, ...]:
    """One reverse pass."""
    ȳ = ZERO if ȳ is None else unthunk(project(ȳ))
    if is_zero(ȳ):
        return (NONE, *[gradient_for(x, ZERO, adjoint_if_any) for x in args])
    return (NONE, *backward(residuals, ȳ))


class Pullbacks(Family):
    """The programs for the pullbacks of functions with one code object, by argument types."""

    was_asked_for = False

    def gradient(self, f: FunctionType, key: Any, tries: int, args: Any, tried: Tried) -> Gradient:
        """The two programs for arguments of these types."""
        return Halves(
            self.target(f),
            list(key),
            self.wanted,
            with_value=False,
            single=False,
            examples=args if tries < 2 else (),
            no_exceptions=True,
            tried=tried,
        )


def pullbacks_of(f: Any, n: int, general: Callable[..., Any]) -> Any:
    """A function that gives what `with_pullback` does, for n arguments.

    None where there can be none, and for the first call: most functions are pulled back once only.
    `general(f, args, kwargs)` gives the same where there is no program for the arguments.
    """
    if not is_plain(f) or f.__code__.co_argcount != n or "__morula__" in f.__dict__:
        return None
    how = (tuple(range(n)), False, False, False, ())
    family = family_by(f.__code__, f, how, general, None, Pullbacks)
    if family is None:
        return None
    if not family.was_asked_for:
        family.was_asked_for = True
        return None
    return family.function(f)
