"""The specialised path: a gradient as one function for arguments of known types.

The primal and its adjoint are emitted as one function. The rules that the registry chose are
inlined: a rule's body into the primal, that of its pullback into the adjoint, and what the pullback
captured becomes a residual.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
)
from typing import Any

from morula.core import errors
from morula.core.bytecode.instructions import IN_PLACE
from morula.core.context import adjoint_if_any, enter, leave
from morula.core.cotangents import (
    NONE,
    ZERO,
    AbstractZero,
    NoTangent,
    Thunk,
    ZeroTangent,
    accumulate,
    add,
)
from morula.core.emit import emit, merge_blocks
from morula.core.general import call as general_call
from morula.core.infer import (
    AssumptionsUnsafe,
    Inference,
    IteratorOver,
    NotSpecialised,
    Specialiser,
    Value,
    bail_out,
    bind,
    check_type,
    inline_form,
    is_ours,
    known,
    possibilities,
)
from morula.core.inline import EFFECTS, MUTATORS, inline
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, reachable, substitute
from morula.core.primitives import (
    alias,
    build_tuple,
    get_cell,
    list_append,
    load_global,
    make_function,
    map_add,
    set_add,
    set_cell,
    store_global,
    sum_if_any,
)
from morula.core.registry import (
    Rule,
    exact_rule,
    is_constant,
    registry,
    times_conjugate,
)
from morula.core.reverse import (
    MARKS,
    Pair,
    Reversal,
    enter_loop,
    more_iterations,
    reachable_from,
)
from morula.core.simplify import PURE, is_simple, share, simplify
from morula.core.ssa import prune_params
from morula.core.traits import (
    Known,
    coarse_detail,
    field,
    gives_new,
    gradient_for,
    has_effect,
    has_tangent,
    is_partial,
    is_written,
    sample,
    typed_zero,
    unit,
)


class Gradient:
    """The gradient of `fn` by some of its parameters, for arguments of known types."""

    def __init__(
        self,
        fn: FunctionType,
        knowns: list[Known],
        wanted: Sequence[int],
        with_value: bool,
        single: bool,
        has_aux: bool,
        examples: Sequence[Any] = (),
    ) -> None:
        self.fn = fn
        self.knowns = knowns
        self.wanted = wanted
        self.with_value = with_value
        self.single = single
        self.has_aux = has_aux
        self.examples = examples
        self.rules: dict[int, Rule] = {}
        self.pure_codes: set[CodeType] = set()  # of pullbacks without effects
        self.needs_context = False
        self.types: dict[Var, Value] = {}

    def compile(self, otherwise: Callable[..., Any], this: Any) -> CodeType:
        """The code, which closes over one more variable than `fn`: the function that runs it.

        Where its guards do not hold, it calls `otherwise(function, this, *arguments)`.
        """
        self.build()
        self.add_guards(otherwise, this)
        self.ir.kept = []
        like = with_own_cell(positional_only(self.fn.__code__, self.wanted))
        return emit(self.ir, like, self.fn.__globals__)

    def build(self) -> IR:
        """The primal and its adjoint in one, with the gradients as the result."""
        self.specialiser = s = Specialiser(self.fn, self.knowns, self.examples)
        try:
            s.run()
        except AssumptionsUnsafe:
            self.specialiser = s = Specialiser(self.fn, self.knowns)
            s.run()
        self.leaves = [leaf for i in self.wanted for leaf in flat(s.leaves[i])]
        if any(_may_hold(s.value(leaf)) for leaf in self.leaves) and any(
            map(may_mutate, s.ir.calls())
        ):
            raise NotSpecialised("an argument may be changed in place")
        self.varied = varied_variables(s, self.leaves)
        self.reversal = r = Reversal(s.ir, self.plan, list(self.leaves))
        self.types = s.types
        r.build()
        if r.exit not in r.primal:
            raise NotSpecialised("it always ends in an exception")
        self.ir = r.ir
        self.ir.kept = [r.exit, r.start, r.end]
        self.set_seed()
        self.inline_rules()
        self.clean_adjoint()
        self.return_gradients()
        if self.needs_context:
            self.keep_context()
        r.resolve()
        prune_params(self.ir)
        return self.ir

    # -- plans

    def plan(self, call: Call) -> Pair | None:
        operands = call.operands()
        if call.out in self.specialiser.counted:
            return None
        if not any(x in self.varied for x in operands):
            return None
        if type(call.fn) is Const:
            if is_constant(call.fn.value):
                return None
            if (pair := self.pair_of_item(call)) is not None:
                return pair
            rule = self.rule_for(call)
            if rule is not None and not self.makes_object(rule, call):
                return self.pair_of(rule, call)
        self.needs_context = True
        return Pair(Const(general_call), operands, call.keywords, tuple(enumerate(operands)))

    def pair_of_item(self, call: Call) -> Pair | None:
        """An item of a tuple of known length: its cotangent is a tuple with zeros beside it."""
        if call.primitive is not operator.getitem or type(call.args[1]) is not Const:
            return None
        items, i = known(self.specialiser.value(call.args[0])), call.args[1].value
        if items is None or items.type is not tuple or items.detail is None or type(i) is not int:
            return None
        function = item_rule(len(items.detail), i % len(items.detail))
        self.rules[id(function)] = Rule(operator.getitem, function)
        self.pure_codes.update(c for c in function.__code__.co_consts if is_code(c))
        return Pair(Const(function), call.args, (), ((0, call.args[0]),), False)

    def rule_for(self, call: Call) -> Rule | None:
        """The rule that the types of the arguments choose."""
        assert type(call.fn) is Const
        entry = registry.get(call.fn.value)
        if entry is None or entry.reverse is None:
            return None
        n = len(call.args) - len(call.keywords)
        options = []
        for x in call.args[:n]:
            value = self.specialiser.value(x)
            if type(value) is Known and value.type is IteratorOver:
                value = None
            if value is None and not entry.has_one_rule():
                return None
            options.append([object] if value is None else [k.type for k in possibilities(value)])
        if all(len(o) == 1 for o in options) and not call.keywords:
            exact = exact_rule(call.fn.value, tuple([o[0] for o in options]))
            if exact is not None:
                return exact
        if not entry.is_faithful():
            return None
        found = [entry.find_by_types("reverse", types) for types in itertools.product(*options)]
        rule = found[0]
        if rule is None or not rule.accepts(call.keywords):
            return None
        if any(r is None or r.function is not rule.function for r in found):
            return None
        return rule

    def pair_of(self, rule: Rule, call: Call) -> Pair:
        n = len(call.args) - len(call.keywords)
        slots = list(enumerate(call.args[:n]))
        for name, x in zip(call.keywords, call.args[n:], strict=True):
            position = rule.position_of(name)
            if position is not None:
                slots.append((position, x))
        active = tuple((i, x) for i, x in slots if x in self.varied)
        self.rules[id(rule.function)] = rule
        if rule.trusted and not rule.by_identity:
            self.pure_codes.update(c for c in rule.function.__code__.co_consts if is_code(c))
        self.needs_context |= rule.by_identity or uses_adjoints(rule.function)
        direct = rule.trusted and not self.needs_projection(rule, call, active)
        if not direct:
            active = tuple((i, x) for i, x in enumerate(call.args) if x in self.varied)
        forward = Const(rule.function if direct else checked_rule(rule))
        return Pair(forward, call.args, call.keywords, active, rule.by_identity)

    def makes_object(self, rule: Rule, call: Call) -> bool:
        """May the result be a mutable object, whose cotangent the general path finds?"""
        if rule.by_identity or uses_adjoints(rule.function):
            return False
        return _may_hold(self.specialiser.value(call.out))

    def needs_projection(
        self, rule: Rule, call: Call, active: tuple[tuple[int, Operand], ...]
    ) -> bool:
        """Must cotangents be brought to their spaces: those of mutable objects, of real numbers?"""
        if rule.by_identity or uses_adjoints(rule.function):
            return False
        fields = {
            field(k)
            for x in (*call.args, call.out)
            for k in possibilities(self.specialiser.value(x) or Known(object))
        } - {None}
        if len(fields) > 1:
            return True
        return any(_may_hold(self.specialiser.value(x)) for _, x in active)

    # -- the adjoint

    def set_seed(self) -> None:
        """The cotangent that the reverse pass begins with."""
        (branch,) = self.reversal.exit.branches
        y = branch.args[0]
        if self.has_aux:
            raise NotSpecialised("aux")
        built = self.result_tuple()
        built.args = (*built.args, *self.leaves)  # their gradients are made with a look at them
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

    def inline_rules(self) -> None:
        """Put the bodies of rules and pullbacks, and of small helpers, in the place of calls."""
        ir = self.ir
        self.simplify()
        while True:
            self.simplify()  # first, so that what a pullback returned is seen item by item
            self.fold_zero_tests()
            self.simplify()
            merge_blocks(ir)
            if not (self.inline_step() | self.fold_types()):
                break
        self.fold_zero_tests()
        self.simplify()

    def simplify(self) -> bool:
        """Simplify primal and adjoint."""
        adjoint = reachable_from(self.reversal.start)
        return simplify(self.ir, trusted, self.known_of, adjoint, self.with_value)

    def known_of(self, x: Operand) -> Known | None:
        """Type and detail of an operand, where they are known."""
        return known(self.types.get(x) if type(x) is Var else x)  # type: ignore[arg-type]

    def fold_types(self) -> bool:
        """Fold what the types decide in the bodies that were inlined."""
        inference = Inference(self.ir, dict(self.specialiser.types))
        inference.infer()
        self.types = inference.types
        return inference.resolve_constants() | inference.resolve_methods()

    def inline_step(self) -> bool:
        """Inline all calls of rules and of functions made here that can be."""
        ir = self.ir
        made = {c.out: c for c in ir.calls() if c.primitive is make_function}
        results: dict[Var, Operand] = {}
        done = False
        for start in list(ir.blocks):
            block, i = start, 0
            while i < len(block.calls):
                target = self.inlinable(block.calls[i], made)
                if target is None:
                    i += 1
                    continue
                callee, bound, free, removable = target
                block.calls[i:i] = bound.calls
                i += len(bound.calls)
                block, i = inline(ir, block, i, callee, bound.operands, free, removable, results)
                done = True
        substitute(ir, results)
        return done

    def inlinable(self, call: Call, made: dict[Var, Call]) -> Any:
        """The body, the arguments and the cells of a callee to be inlined."""
        fn = call.fn
        if type(fn) is Const:
            f = fn.value
            if type(f) is not FunctionType or not self.may_inline(f):
                return None
            code, namespace, defaults = f.__code__, f.__globals__, f.__defaults__
            kwdefaults = f.__kwdefaults__ or {}
            free: list[Operand] = [Const(c) for c in f.__closure__ or ()]
            removable = self.is_pure_rule(f) or call.removable
        elif fn in made:
            function = made[fn]
            code, namespace = function.args[1].value, function.args[0].value  # type: ignore[union-attr]
            defaults, kwdefaults = None, {}
            free = list(function.args[5:])
            removable = code in self.pure_codes or call.removable
        else:
            return None
        try:
            callee = inline_form(code, namespace)
        except errors.UnsupportedError:
            return None
        bound = bind(self.ir, call, code, defaults, kwdefaults)
        return None if bound is None else (callee, bound, free, removable)

    def may_inline(self, f: FunctionType) -> bool:
        if id(f) in self.rules:
            return True
        return is_helper(f) and is_small(f) and not is_written(f) and not has_effect(f)

    def is_pure_rule(self, f: FunctionType) -> bool:
        """May calls that the rule makes go where their results are not needed?"""
        rule = self.rules.get(id(f))
        if rule is None or rule.by_identity or not rule.trusted:
            return False
        entry = registry.get(rule.primal)
        return entry is not None and (entry.stable or entry.pure)

    def fold_zero_tests(self) -> None:
        """`x̄ is ZERO` is known where a cotangent certainly is none, or certainly is."""
        definite = self.definite_cotangents()
        mapping: dict[Var, Operand] = {}
        for block in self.ir.blocks:
            for call in block.calls:
                if call.primitive is operator.is_ and _is_zero(call.args[1]):
                    x = call.args[0]
                    if type(x) is Var and x in definite:
                        mapping[call.out] = Const(False)
                    elif type(x) is Const:
                        mapping[call.out] = Const(isinstance(x.value, AbstractZero))
        for block in self.ir.blocks:
            block.calls = [c for c in block.calls if c.out not in mapping]
        substitute(self.ir, mapping)

    def definite_cotangents(self) -> set[Operand]:
        """The variables that certainly do not hold a structural zero or a thunk."""
        ir = self.ir
        opaque = self.opaque_results()
        doubtful: set[Operand] = set()
        passed: dict[Var, list[tuple[Operand, Operand | None]]] = {}  # and the test on the way
        sums: list[Call] = []
        for block in ir.blocks:
            tests: dict[Operand, Operand] = {}
            for call in block.calls:
                unknown_helper = (
                    type(call.primitive) is FunctionType
                    and call.primitive is not accumulate
                    and call.primitive is not sum_if_any
                    and (self.types.get(call.out) is None or self.may_inline(call.primitive))
                )
                unresolved = type(call.fn) is not Const or (
                    call.primitive is operator.getitem and self.types.get(call.out) is None
                )
                if call.out in opaque or unknown_helper or unresolved or call.primitive in ZEROS:
                    doubtful.add(call.out)
                elif call.primitive is accumulate:
                    sums.append(call)
                elif call.primitive is operator.is_ and _is_zero(call.args[1]):
                    tests[call.out] = call.args[0]
            for branch in block.branches:
                if branch.block is not None:
                    tested = None if branch.cond is None else tests.get(branch.cond)
                    for p, a in zip(branch.block.params, branch.args, strict=True):
                        passed.setdefault(p, []).append((a, tested))

        def is_doubtful(x: Operand) -> bool:
            return _is_zero(x) or x in doubtful

        def may_pass_zero(x: Operand, tested: Operand | None) -> bool:
            """Behind a test whether a cotangent is zero, only if that one may be."""
            return is_doubtful(x) and (tested is None or is_doubtful(tested))

        changed = True
        while changed:
            changed = False
            for p, values in passed.items():
                if p not in doubtful and any(may_pass_zero(*v) for v in values):
                    doubtful.add(p)
                    changed = True
            for call in sums:
                a, b = call.args
                thunks = a in opaque or b in opaque
                if call.out not in doubtful and (thunks or (is_doubtful(a) and is_doubtful(b))):
                    doubtful.add(call.out)
                    changed = True
        defined = {c.out for c in ir.calls()} | {p for b in ir.blocks for p in b.params}
        return defined - doubtful  # type: ignore[return-value]

    def opaque_results(self) -> set[Var]:
        """What comes out of pullbacks that were not inlined, of which nothing is known."""
        calls = {c.out: c for c in self.ir.calls()}
        opaque = set()
        for call in calls.values():
            if call.primitive is operator.getitem and type(call.args[0]) is Var:
                source = calls.get(call.args[0])
                if source is not None and type(source.fn) is Var:
                    opaque.add(call.out)
        return opaque

    def clean_adjoint(self) -> None:
        """Sums become additions, sums of arguments begin from a zero, empty loops go."""
        self.begin_sums_with_zeros()
        definite = self.definite_cotangents()
        opaque = self.opaque_results()
        inference = Inference(self.ir, dict(self.specialiser.types))
        inference.infer()
        self.types = inference.types
        for block in self.ir.blocks:
            for call in block.calls:
                if call.primitive is accumulate:
                    self.lower_sum(call, definite, opaque)
        self.mark_pure_calls()
        self.share_values()
        changed = True
        while changed:
            changed = self.simplify()
            changed |= remove_empty_control(self.ir, self.reversal)
            merge_blocks(self.ir)
            changed |= self.fold_types()

    def share_values(self) -> None:
        """Common values are computed once; between primal and adjoint only where neither loops."""
        adjoint = reachable_from(self.reversal.start)
        loops = any(c.primitive is enter_loop for c in self.ir.calls())
        share(self.ir, lambda block: loops and block in adjoint)

    def mark_pure_calls(self) -> None:
        """Type-stable functions of values of known types have no effect but their result.

        If the values cannot change, it does not matter when they are called.
        """
        for call in self.ir.calls():
            if type(call.fn) is not Const:
                continue
            entry = registry.get(call.fn.value)
            if entry is not None and entry.stable and self.types.get(call.out) is not None:
                call.removable = True
            pure = id(call.fn.value) in PURE or (entry is not None and entry.stable)
            call.movable = pure and all(map(self.is_unchanging, call.args))
        for block in self.reversal.primal:
            for call in block.calls:
                if is_partial(call.primitive) and self.may_raise(call):
                    call.removable = call.movable = False

    def may_raise(self, call: Call) -> bool:
        """May a partial function raise an exception: is an argument a plain number?"""
        return any(
            typed_zero(t) is not None and t.__module__ == "builtins"
            for x in call.args
            for t in self.types_of(x)
        )

    def is_unchanging(self, x: Operand) -> bool:
        """Is the operand a value that nothing can change?"""
        value = self.types.get(x) if type(x) is Var else x
        if value is None:
            return False
        return all(_is_immutable(k.type) for k in possibilities(value))  # type: ignore[arg-type]

    def lower_sum(self, call: Call, definite: set[Operand], opaque: set[Var]) -> None:
        a, b = call.args
        for x in (a, b):
            if any(not adds_plainly(t) for t in self.types_of(x)):
                return
        if a in opaque or b in opaque or not self.adds(a, b):
            return
        a_sure = a in definite or (type(a) is Const and not _is_zero(a))
        b_sure = b in definite or (type(b) is Const and not _is_zero(b))
        if a_sure and b_sure:
            call.fn = Const(operator.add)
        elif b_sure:
            call.fn = Const(sum_if_any)
        elif a_sure:
            call.fn, call.args = Const(sum_if_any), (b, a)

    def adds(self, a: Operand, b: Operand) -> bool:
        """Are both of types whose sums are written +?"""
        return any(self.types_of(x) for x in (a, b))

    def types_of(self, x: Operand) -> list[type]:
        """The types that an operand may have; empty if nothing is known."""
        value = self.types.get(x) if type(x) is Var else x
        return [] if value is None else [k.type for k in possibilities(value)]  # type: ignore[arg-type]

    def begin_sums_with_zeros(self) -> None:
        """The sum for an argument begins with a zero of its type, for nothing depends on it."""
        variable_of = self.reversal.bars.variable_of
        zeros: dict[Any, Any] = {}
        for leaf in self.leaves:
            k = known(self.specialiser.value(leaf))
            zero = None if k is None else typed_zero(k.type)
            if zero is not None:
                zeros[leaf] = zero
        for block in self.ir.blocks:
            for branch in block.branches:
                if branch.block is None:
                    continue
                for i, p in enumerate(branch.block.params):
                    leaf = variable_of.get(p)  # type: ignore[assignment]
                    if leaf in zeros and _is_zero(branch.args[i]):
                        branch.args[i] = Const(zeros[leaf])

    # -- the result

    def return_gradients(self) -> None:
        built = self.result_tuple()
        bars = list(built.args)
        y = bars.pop() if self.with_value else None
        leaves = bars[len(self.leaves) :]
        del bars[len(self.leaves) :]
        block = self.reversal.end
        block.calls.remove(built)
        found = {}
        definite = self.definite_cotangents()
        for leaf, x, x̄ in zip(self.leaves, leaves, bars, strict=True):
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

    def result_tuple(self) -> Call:
        """The call at the end of the adjoint that puts the cotangents together."""
        out = self.reversal.end.branches[0].args[0]
        return next(c for c in self.reversal.end.calls if c.out is out)

    def assemble(self, block: Block, leaves: Any, found: dict[Var, Operand]) -> Operand:
        if type(leaves) is Var:
            return found[leaves]
        return self.append(block, build_tuple, *[self.assemble(block, x, found) for x in leaves])

    def append(self, block: Block, fn: Any, *args: Operand) -> Var:
        out = self.ir.var()
        block.calls.append(Call(out, Const(fn), args))
        return out

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
        if k is not None and _is_zero(x̄) and typed_zero(k.type) is not None:
            return Const(typed_zero(k.type))
        x̄_known = known(self.types.get(x̄) if type(x̄) is Var else x̄)  # type: ignore[arg-type]
        if k is not None and x̄_known is not None and (x̄ in definite or type(x̄) is Const):
            zero = typed_zero(k.type)
            if zero is not None and x̄_known.type is type(zero):
                return x̄
            if k == x̄_known and self.is_new(x̄) and all_bars.count(x̄) == 1:
                return x̄
        return self.append(block, gradient_for, x, x̄, Const(adjoint_if_any))

    def is_new(self, x̄: Operand) -> bool:
        """Does the value share memory with nothing else?"""
        for call in self.ir.calls():
            if call.out is x̄:
                return type(call.fn) is Const and gives_new(call.fn.value)
        return False

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


@functools.cache
def item_rule(n: int, i: int) -> FunctionType:
    """The rule of taking the i-th of n items of a tuple."""
    entries = ["ZERO"] * n
    entries[i] = "x̄"
    source = f"""
def rule(items, i):
    def item_pullback(x̄):
        return ({", ".join(entries)},), NONE
    return items[{i}], item_pullback
"""
    scope: dict[str, Any] = {"ZERO": ZERO, "NONE": NONE, "__name__": __name__}
    exec(source, scope)
    rule: FunctionType = scope["rule"]
    return rule


ZEROS = (ZeroTangent, NoTangent, Thunk)  # what may give a cotangent that is no number


def may_mutate(call: Call) -> bool:
    """May a call change an object that the caller holds too?"""
    if type(call.fn) is not Const:
        return True
    if call.primitive in (list_append, map_add, set_add, set_cell):
        return False  # what is under construction here
    fn = call.fn.value
    if isinstance(fn, MethodDescriptorType):
        return fn.__name__ in MUTATORS
    if type(fn) is FunctionType and registry.get(fn) is None and not is_ours(fn):
        return True
    return id(fn) in EFFECTS and fn not in IN_PLACE_OPERATORS


IN_PLACE_OPERATORS = [getattr(operator, name) for name in IN_PLACE.values() if name != "iadd"]


def flat(leaves: Any) -> list[Var]:
    """The variables of a nested list of them."""
    return [leaves] if type(leaves) is Var else [v for x in leaves for v in flat(x)]


def _is_zero(x: Operand) -> bool:
    return type(x) is Const and isinstance(x.value, AbstractZero)


def adds_plainly(t: type) -> bool:
    """Are cotangents of primals of this type added by +?"""
    return add.dispatch(t) is add.dispatch(object)


def trusted(namespace: dict[str, Any]) -> bool:
    """Are these the globals of one of Morula's own modules, which are taken as constants?"""
    return str(namespace.get("__name__", "")).split(".")[0] == "morula"


def uses_adjoints(function: Callable[..., Any]) -> bool:
    """Does the pullback of a rule call a helper that works on adjoint objects?"""
    namespace = function.__globals__
    return any(
        has_effect(namespace.get(name))
        for code in filter(is_code, function.__code__.co_consts)
        for name in code.co_names
    )


def is_code(x: Any) -> bool:
    """Is a constant of a code object a code object?"""
    return isinstance(x, CodeType)


def is_helper(f: FunctionType) -> bool:
    """Is it a function that rules call, and not one that the core looks for?"""
    return f is times_conjugate or f.__module__.startswith("morula.rules.")


def is_small(f: FunctionType) -> bool:
    """Is a helper of the rules worth inlining: no loop, few instructions?"""
    code = f.__code__
    return (
        len(code.co_code) <= 160
        and not code.co_cellvars
        and not f.__kwdefaults__
        and registry.get(f) is None
    )


def checked_rule(rule: Rule) -> Callable[..., Any]:
    """A rule from outside, whose pullback's results are checked and projected."""
    from morula.core.registry import apply_rule

    def checked(*args: Any, **kwargs: Any) -> Any:
        return apply_rule(rule, args, kwargs)

    return checked


def one_of(y: Any, name: str) -> Any:
    """The cotangent "one" of an output that must be one real number."""
    one = unit(y)
    if one is None:
        raise errors.not_scalar(y, name)
    return one


def varied_variables(s: Specialiser, leaves: list[Var]) -> set[Operand]:
    """The variables that depend on the arguments by way of differentiable calls.

    Where a value that does may have been stored in an object, all objects count.
    """
    varied: set[Operand] = set(leaves)
    _spread_varied(s, varied)
    if _may_store(s, varied):
        if any(_stores_outside(s, call) for call in s.ir.calls()):
            raise NotSpecialised("an object from outside of the function may be changed")
        variables = [c.out for c in s.ir.calls()]
        variables += [p for block in s.ir.blocks for p in block.params]
        varied.update(v for v in variables if v not in s.counted and _may_hold(s.types.get(v)))
        _spread_varied(s, varied)
    return varied


def _carries(value: Value) -> bool:
    """May a value of which this is known carry a derivative?"""
    return value is None or any(has_tangent(k.type) for k in possibilities(value))


def _spread_varied(s: Specialiser, varied: set[Operand]) -> None:
    changed = True
    while changed:
        changed = False
        for block in s.ir.blocks:
            for call in block.calls:
                if call.out in varied or call.out in s.counted:
                    continue
                if not any(x in varied for x in call.operands()):
                    continue
                constant = type(call.fn) is Const and is_constant(call.fn.value)
                if not constant and _carries(s.types.get(call.out)):
                    varied.add(call.out)
                    changed = True
            for branch in block.branches:
                if branch.block is None:
                    continue
                for p, a in zip(branch.block.params, branch.args, strict=True):
                    if a in varied and p not in varied and _carries(s.types.get(p)):
                        varied.add(p)
                        changed = True


def _may_store(s: Specialiser, varied: set[Operand]) -> bool:
    """Is there a call that may put a value that depends on the arguments into an object?"""
    for call in s.ir.calls():
        if not any(x in varied for x in call.operands()):
            continue
        if type(call.fn) is not Const:
            return True
        entry = registry.get(call.fn.value)
        if id(call.fn.value) in PURE or (entry is not None and (entry.stable or entry.constant)):
            continue
        k = known(s.types.get(call.out))
        if k is None or not _is_immutable(k.type):
            return True
    return False


def _stores_outside(s: Specialiser, call: Call) -> bool:
    """May a call change an object that is a constant of the program, a class or a global?"""
    if type(call.fn) is not Const:
        return False
    if call.primitive is store_global:
        return True
    entry = registry.get(call.fn.value)
    if id(call.fn.value) in PURE or (entry is not None and (entry.stable or entry.constant)):
        return False
    if call.primitive in (load_global, getattr, get_cell, iter, isinstance):
        return False
    return any(
        type(a) is Const and not callable_or_simple(a.value) and not _is_immutable(type(a.value))
        for a in call.args
    ) or (call.primitive is setattr and type(call.args[0]) is Const)


def callable_or_simple(x: Any) -> bool:
    """Is it a function, or a value of a plain type?"""
    return is_simple(x) or isinstance(x, FunctionType | CodeType | dict)


def _may_hold(value: Value) -> bool:
    """May it be an object that others write to?"""
    return value is None or any(not _is_immutable(k.type) for k in possibilities(value))


def _is_immutable(t: type) -> bool:
    """Is it a type whose values are what they are: numbers, arrays, tuples, strings?"""
    return (
        typed_zero(t) is not None
        or not has_tangent(t)
        or t in coarse_detail
        or t in (tuple, slice, range, type, FunctionType, BuiltinFunctionType, ModuleType)
    )


def remove_empty_control(ir: IR, reversal: Reversal) -> bool:
    """Branches and loops of the adjoint that lead to nothing but their end."""
    changed = False
    for block in ir.blocks:
        if len(block.branches) != 2:
            continue
        first, second = block.branches
        mark = [c for c in block.calls if c.primitive is more_iterations]
        if mark:
            if not block.params and _runs_empty(first.block, block):
                block.calls.remove(mark[0])
                second.cond = None
                block.branches = [second]
                changed = True
            continue
        if _end_of(first.block) is _end_of(second.block) and not first.args and not second.args:
            second.cond = None
            block.branches = [second]
            changed = True
    if changed:
        ir.blocks = reachable(ir)
    return changed


def _end_of(block: Block | None) -> Block | None:
    """Where control gets from a block without doing anything."""
    seen = set()
    while (
        block is not None
        and block not in seen
        and not block.calls
        and not block.params
        and len(block.branches) == 1
        and block.branches[0].block is not None
        and not block.branches[0].args
    ):
        seen.add(block)
        block = block.branches[0].block
    return block


def _runs_empty(start: Block | None, header: Block) -> bool:
    """Do all blocks from here to the header do nothing?"""
    seen, work = set(), [start]
    while work:
        block = work.pop()
        if block is header or block in seen:
            continue
        if block is None or block.params or any(c.primitive not in MARKS for c in block.calls):
            return False
        seen.add(block)
        work += [b.block for b in block.branches]
    return True
