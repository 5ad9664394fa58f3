"""The gradient of a function as one function, for arguments of known types.

The primal and its adjoint are emitted as one function, with guards at its entry.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from morula.core import errors
from morula.core.adjoint import Adjoint, flat, is_zero
from morula.core.callees import Callees
from morula.core.context import adjoint_if_any, enter, leave
from morula.core.emit import emit, merge_blocks
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, substitute
from morula.core.primitives import alias, build_tuple, get_cell, load_global
from morula.core.reuse import reuse_memory
from morula.core.simplify import remove_unused
from morula.core.specialise import (
    AssumptionsUnsafe,
    NotSpecialised,
    Specialiser,
    bail_out,
    check_type,
)
from morula.core.ssa import prune_params
from morula.core.traits import Known, gradient_for, has_tangent, sample, typed_zero, unit
from morula.core.values import Value, known, possibilities


class Gradient(Adjoint):
    """The gradient of `fn` by some of its parameters, for arguments of known types."""

    def __init__(
        self,
        fn: FunctionType,
        knowns: list[Known],
        wanted: Sequence[int],
        with_value: bool,
        single: bool,
        examples: Sequence[Any] = (),
        optimistic: bool = False,
    ) -> None:
        self.fn = fn
        self.knowns = knowns
        self.wanted = wanted
        self.single = single
        self.examples = examples
        super().__init__(with_value, optimistic)

    def compile(self, otherwise: Callable[..., Any], this: Any) -> CodeType:
        """The code, which closes over one more variable than `fn`: the function that runs it.

        Where its guards do not hold, it calls `otherwise(function, this, *arguments)`.
        """
        self.build()
        self.ir.kept = []
        merge_blocks(self.ir)
        reuse_memory(self.ir, self.known_of, self.holds_memory)
        self.add_guards(otherwise, this)
        like = with_own_cell(positional_only(self.fn.__code__, self.wanted))
        return emit(self.ir, like, self.fn.__globals__, self.holds_memory)

    def specialised(self) -> Specialiser:
        """The primal for these types; with what is assumed from the examples, if that is safe."""
        s = Specialiser(self.fn, self.knowns, Callees(), self.examples)
        try:
            s.run()
        except AssumptionsUnsafe:
            s = Specialiser(self.fn, self.knowns, Callees())
            s.run()
        s.callees.add_guards(s.guards)
        return s

    def build(self) -> IR:
        """The primal and its adjoint in one, with the gradients as the result."""
        self.specialiser = s = self.specialised()
        leaves = [leaf for i in self.wanted for leaf in flat(s.leaves[i])]
        self.differentiate(leaves, leaves)
        self.set_seed()
        self.inline_rules()
        self.clean_adjoint()
        self.return_gradients()
        if self.needs_context:
            self.keep_context()
        self.reversal.resolve(self.is_cheap)
        remove_unused(self.ir)
        prune_params(self.ir)
        return self.ir

    # -- the adjoint

    def set_seed(self) -> None:
        """The cotangent that the reverse pass begins with."""
        (branch,) = self.reversal.exit.branches
        y = branch.args[0]
        built = self.result_tuple()
        # Their gradients are made with a look at them, or found in their shadows.
        looked_at = [self.shadows[x].value if x in self.shadows else x for x in self.leaves]
        built.args = (*built.args, *looked_at)
        if self.with_value:
            # The result may be a variable of a loop: this is the instance at the exit.
            built.args = (*built.args, self.append(self.reversal.exit, alias, y))
        one = self.unit_of(self.specialiser.value(y))
        if one is None:
            seed = self.ir.var("one")
            name = errors.qualified_name(self.fn)
            self.reversal.exit.calls.append(Call(seed, Const(one_of), (y, Const(name))))
            branch.args[0] = seed
        else:
            branch.args[0] = one
        ir = self.ir
        (seed_param,) = self.reversal.start.params
        substitute(ir, {seed_param: branch.args[0]})
        self.reversal.start.params, branch.args = [], []

    def unit_of(self, y: Value) -> Const | None:
        """The cotangent "one" of the output, if its type decides it."""
        if y is None:
            return None
        units = []
        for k in possibilities(y):
            try:
                one = unit(sample(k))
            except KeyError:
                return None
            if one is None:
                raise NotSpecialised("the output is not one real number")
            if getattr(one, "shape", ()) != ():
                return None
            units.append(one)
        if any(type(one) is not type(units[0]) for one in units):
            return None
        return Const(units[0])

    # -- the result

    def return_gradients(self) -> None:
        built = self.result_tuple()
        bars = list(built.args)
        y = bars.pop() if self.with_value else None
        leaves = bars[len(self.leaves) :]
        del bars[len(self.leaves) :]
        block = self.reversal.end
        block.calls.remove(built)
        found: dict[Var, Operand] = {}
        definite = self.definite_cotangents()
        for leaf, x, x̄ in zip(self.leaves, leaves, bars, strict=True):
            if leaf in self.shadows:
                found[leaf] = self.append(block, self.shadows[leaf].finish, leaf, x)
                continue
            found[leaf] = self.final(block, x, x̄, bars, definite)
        results = []
        for i in self.wanted:
            results.append(self.assemble(block, self.specialiser.leaves[i], found))
        out: Operand
        out = results[0] if self.single else self.append(block, build_tuple, *results)
        if y is not None:
            out = self.append(block, build_tuple, y, out)
        block.branches[0].args = [out]

    def keep_context(self) -> None:
        """Adjoint objects live from the beginning of the reverse pass to its end."""
        outer = self.append(self.reversal.exit, enter)
        result = self.append(self.reversal.end, leave, outer)
        assert result is not None

    def final(
        self,
        block: Block,
        x: Operand,
        x̄: Operand,
        all_bars: list[Operand],
        definite: set[Operand],
    ) -> Operand:
        """The gradient that the user gets for the argument x."""
        k = known(self.specialiser.value(x))
        if k is not None and not has_tangent(k.type):
            return Const(None)
        if k is not None and is_zero(x̄) and typed_zero(k.type) is not None:
            return Const(typed_zero(k.type))
        x̄_known = known(self.types.get(x̄) if type(x̄) is Var else x̄)  # type: ignore[arg-type]
        if k is not None and x̄_known is not None and (x̄ in definite or type(x̄) is Const):
            zero = typed_zero(k.type)
            if zero is not None and x̄_known.type is type(zero):
                return x̄
            if k == x̄_known and self.is_new(x̄) and all_bars.count(x̄) == 1:
                return x̄
        return self.append(block, gradient_for, x, x̄, Const(adjoint_if_any))

    # -- guards

    def add_guards(self, otherwise: Callable[..., Any], this: Any) -> None:
        """At the entry: are the world and the arguments as they were when this was compiled?"""
        ir, guards = self.ir, self.specialiser.guards
        slow = ir.block()
        ir.cold.append(slow)
        out, own, function = ir.var(), ir.var(OWN), ir.var()
        ir.free.append(own)
        slow.calls = [
            Call(function, Const(get_cell), (own, Const(OWN))),
            Call(out, Const(otherwise), (function, Const(this), *ir.params)),
        ]
        slow.branches = [Branch(None, [out])]
        body = ir.block()
        entry = ir.entry
        body.calls, body.branches = entry.calls, entry.branches
        entry.calls, entry.branches = [], []
        captured = set(self.specialiser.captured)
        reads = [c for c in body.calls if c.out in captured]
        body.calls = [c for c in body.calls if c.out not in captured]
        entry.calls += reads
        block = entry

        def check(test: Var) -> None:
            nonlocal block
            after = ir.block()
            block.branches = [Branch(after, (), test), Branch(slow)]
            block = after

        for namespace, name, value in guards.globals.values():
            found = ir.var(name)
            block.calls.append(Call(found, Const(load_global), (Const(namespace), Const(name))))
            check(self.append(block, operator.is_, found, Const(value)))
        for owner, name, value in guards.attributes.values():
            found = ir.var(name)
            block.calls.append(Call(found, Const(getattr), (Const(owner), Const(name))))
            check(self.append(block, operator.is_, found, Const(value)))
        for mapping, name, value in guards.items.values():
            found = ir.var(name)
            block.calls.append(Call(found, Const(dict.get), (Const(mapping), Const(name))))
            check(self.append(block, operator.is_, found, Const(value)))
        for test, values in guards.tests:
            check(self.append(block, test, *map(Const, values)))
        for v, value in guards.identities:
            if any(c.out is v for c in reads):
                check(self.append(block, operator.is_, v, Const(value)))

        def append(fn: Any, *args: Operand) -> Var:
            return self.append(block, fn, *args)

        for v, k in [*zip(ir.params, self.knowns, strict=True), *guards.types]:
            check_type(v, k, append, check)
        block.branches = [Branch(body)]
        for other in ir.blocks:
            if any(c.primitive is bail_out for c in other.calls):
                other.calls, other.branches = [], [Branch(slow)]
                ir.cold.append(other)


OWN = "gradient function"  # the variable by which emitted code finds the function that runs it


def with_own_cell(code: CodeType) -> CodeType:
    """The code with one more closure variable, for its signature and its names."""
    return code.replace(co_freevars=(*code.co_freevars, OWN))


def positional_only(code: CodeType, wanted: Sequence[int]) -> CodeType:
    """The code with the arguments that are differentiated, and those before them, by position only."""
    n = max(code.co_posonlyargcount, *[i + 1 for i in wanted], 0)
    return code.replace(co_posonlyargcount=n)


def stub(
    code: CodeType,
    namespace: dict[str, Any],
    wanted: Sequence[int],
    otherwise: Callable[..., Any],
) -> CodeType:
    """Code that goes to `otherwise(function, None, *arguments)` at once."""
    ir = IR(code.co_name, code.co_filename)
    block = ir.block()
    block.params = [ir.var(n) for n in code.co_varnames[: code.co_argcount]]
    ir.free = [ir.var(n) for n in (*code.co_freevars, OWN)]
    out, function = ir.var(), ir.var()
    block.calls = [
        Call(function, Const(get_cell), (ir.free[-1], Const(OWN))),
        Call(out, Const(otherwise), (function, Const(None), *block.params)),
    ]
    block.branches = [Branch(None, [out])]
    return emit(ir, with_own_cell(positional_only(code, wanted)), namespace)


def one_of(y: Any, name: str) -> Any:
    """The cotangent "one" of an output that must be one real number."""
    one = unit(y)
    if one is None:
        raise errors.not_scalar(y, name)
    return one
