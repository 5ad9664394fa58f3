"""A primal and its adjoint for arguments of known types, with the rules of the registry inlined.

A rule's body goes into the primal, that of its pullback into the adjoint, and what the pullback
captured becomes a residual.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass
from inspect import CO_GENERATOR
from types import (
    CodeType,
    FunctionType,
)
from typing import Any

from morula.core import errors
from morula.core.activity import (
    is_immutable,
    may_hold,
    may_mutate,
    may_read_rebound,
    varied_variables,
)
from morula.core.cfg import dominated, dominators, is_reducible
from morula.core.context import call_plainly
from morula.core.cotangents import (
    NONE,
    ZERO,
    AbstractZero,
    NoTangent,
    Thunk,
    ZeroTangent,
    accumulate,
    add,
    project_to,
    settled,
    unthunk,
)
from morula.core.emit import merge_blocks
from morula.core.examples import NOTHING
from morula.core.general import call as general_call
from morula.core.general import call_from_program
from morula.core.infer import ANY, Inference
from morula.core.inline import EFFECTS, inline
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, reachable, substitute
from morula.core.primitives import (
    alias,
    build_list,
    build_map,
    build_tuple,
    dict_merge,
    dict_update,
    list_append,
    list_extend,
    make_function,
    map_add,
    maybe_zero,
    maybe_zero_of_parts,
    never_zero,
    set_add,
    set_cell,
    set_update,
    sum_if_any,
)
from morula.core.registry import (
    Rule,
    registry,
)
from morula.core.reverse import (
    MARKS,
    Pair,
    Reversal,
    enter_loop,
    more_iterations,
    reachable_from,
)
from morula.core.simplify import (
    PURE,
    Assumptions,
    captured_by_rule,
    is_trusted,
    share,
    simplify_once,
)
from morula.core.specialise import (
    REPEATABLE,
    NamedLeaves,
    NotSpecialised,
    Specialiser,
    bail_out,
    bind,
    constants,
    constants_of,
    inline_form,
    is_helper,
    may_run_twice,
)
from morula.core.spread import spread_arguments
from morula.core.traits import (
    Known,
    better_made_anew,
    coarse_detail,
    contents,
    costs_little,
    field,
    gives_new,
    has_effect,
    holds_memory,
    is_called_in_company,
    is_harmless,
    is_in_space,
    is_partial,
    is_partial_of_arrays,
    made_again,
    marks,
    stand_for_zero,
    typed_zero,
    vanishes,
)
from morula.core.values import (
    Plain,
    Value,
    is_fine,
    is_plainly_named,
    is_zero_value,
    known,
    possibilities,
)
from morula.core.verify import checked
from morula.core.writers import IN_PLACE_OPERATORS
from morula.core.zeros import fold_decided, part_ways


@dataclass
class Shadow:
    """A leaf's gradient is `finish(leaf, value)`: no cotangents are summed up for it."""

    value: Var
    finish: Callable[[Any, Any], Any]


class Adjoint:
    """A function, specialised, and its adjoint under construction."""

    specialiser: Specialiser
    ir: IR

    again = False  # will it be differentiated in its turn? Then it writes to no memory
    has_shadows = True  # are the gradients of lists and objects found in shadows, if it has any?
    may_round_otherwise = True  # than the general path, in the last bit of a cotangent

    def __init__(self, with_value: bool = True, optimistic: bool = False) -> None:
        self.with_value = with_value  # is the value asked for, bit for bit as the plain call's?
        self.leaves_nothing = False  # but its result: may a run begin anew?
        self.optimistic = optimistic  # begin anew where a doubtful cotangent is a structural zero?
        self.rules: dict[int, Rule] = {}
        self.pure_codes: set[CodeType] = set()  # of pullbacks without effects
        self.pairs: dict[Var, Pair] = {}  # of calls that a preparation has planned
        self.shadows: dict[Var, Shadow] = {}  # of leaves
        self.never_raising: set[Var] = set()  # what calls give that go with others, which may raise
        self.needs_context = False
        self.types: dict[Var, Value] = {}
        self.results: dict[int, Value] = {}  # of the reverse passes of callees
        self.maybe_zero: set[Operand] = set()  # cotangents from outside
        self.taken_for_none: set[Operand] = set()  # parameters, to see what follows of it
        self.assumptions = Assumptions()
        self.primal_of: dict[Operand, Known] = {}  # what cotangents are those of, for some
        self.prepared: set[Any] | None = None  # what carries a derivative, if a preparation says it
        self.apart: set[Any] = set()  # what it says does not, though it depends on what does

    def differentiate(self, leaves: list[Var], sums: Collection[Var]) -> None:
        """Write the adjoint for these parameters, or items of parameters.

        `sums` are those whose cotangents begin with a zero, for nothing depends on them.
        """
        s = self.specialiser
        self.leaves = leaves
        self.sums = sums
        self.types = s.types
        self.arrays_change = s.writes_in_place or any(map(self.may_change_arrays, s.ir.calls()))
        share(s.ir, lambda block, call: None, self.gives_the_same)
        self.leaves_nothing = all(may_run_twice(s, c) for c in s.ir.calls())
        for refuse in REFUSALS:
            refuse(self)
        for prepare in PREPARATIONS:
            found = prepare(self)
            self.prepared = self.prepared if found is None else found
        if s.writes_in_place:
            found = write_preparation[0](self)
            if found is None:
                raise NotSpecialised("a value that goes by value is changed in place")
            self.prepared = found
            own = [c for c in s.ir.calls() if s.changes_value(c)]  # to what it makes itself
            self.leaves_nothing = all(c in own or may_run_twice(s, c) for c in s.ir.calls())
        if self.pairs and not is_reducible(s.ir):
            raise NotSpecialised("a loop with several ways in is to be copied")
        if self.prepared is not None:
            self.varied = self.prepared
        elif self.may_change_leaves():
            raise NotSpecialised("an argument may be changed in place")
        else:
            self.varied = varied_variables(s, leaves)
        self.reversal = r = Reversal(
            checked("preparation", s.ir), self.plan, list(leaves), self.is_truth_value
        )
        r.build()
        if r.exit not in r.primal:
            raise NotSpecialised("it always ends in an exception")
        self.ir = r.ir
        self.ir.kept = [r.exit, r.start, r.end]
        self.optimistic &= self.leaves_nothing and not self.needs_context
        self.assumptions.allowed &= self.leaves_nothing  # the context is left by then

    def may_change_leaves(self, planned: Collection[Operand] = ()) -> bool:
        """May the program, but for what is planned, change an object whose gradient is asked for?"""
        s = self.specialiser
        return any(may_hold(s.value(leaf)) for leaf in self.leaves) and any(
            may_mutate(s, call)
            for call in s.ir.calls()
            if call.out not in s.own_changes and call.out not in planned
        )

    # -- plans

    def plan(self, call: Call) -> Pair | None:
        if call.out in self.pairs:
            return self.pairs[call.out]
        operands = call.operands()
        if call.out in self.specialiser.counted:
            return None
        if not any(x in self.varied for x in operands):
            reads = makes_generator(call.fn) or may_read_rebound(self.specialiser, call)
            if call.out in self.varied and reads:
                return self.pair_of_call(call)
            if self.specialiser.may_run_code(call):
                call.fn, call.args = Const(call_plainly), (call.fn, *call.args)
            return None
        if type(call.fn) is Const:
            if self.specialiser.is_constant(call):
                return None
            if (pair := self.pair_of_item(call)) is not None:
                return pair
            if (pair := self.pair_of_attribute(call)) is not None:
                return pair
            rule = self.specialiser.rule_for(call)
            if rule is not None and not self.makes_object(rule, call):
                return self.pair_of(rule, call)
            if (pair := self.pair_of_callee(call)) is not None:
                return pair
        return self.pair_of_call(call)

    def pair_of_call(self, call: Call) -> Pair:
        """What a call means is found out when it happens."""
        operands = call.operands()
        fn = self.specialiser.value(call.fn)
        if fn is not None and any(is_called_in_company(k.type) for k in possibilities(fn)):
            raise NotSpecialised("the calls of one of its functions know of each other")
        if self.writes_to_outer_array(call):
            raise NotSpecialised("an array from outside is written to")
        self.needs_context = True
        return Pair(Const(call_from_program), operands, call.keywords, tuple(enumerate(operands)))

    def writes_to_outer_array(self, call: Call) -> bool:
        """Does it write to a value of unknown type, which now is, or may be, an array?"""
        s = self.specialiser
        if call.primitive not in (operator.setitem, setattr, *IN_PLACE_OPERATORS):
            return False
        owner = call.args[0]
        if (value := s.value(owner)) is not None:
            return any(k.type in coarse_detail for k in possibilities(value))
        s.examples.follow(s.ir, s.value)
        example = s.examples.given.get(owner, NOTHING) if type(owner) is Var else NOTHING
        return type(example) in coarse_detail or (example is NOTHING and s.deals_with_arrays)

    def pair_of_item(self, call: Call) -> Pair | None:
        """An item of a tuple of known length: its cotangent is a tuple with zeros beside it."""
        if call.primitive is not operator.getitem or type(call.args[1]) is not Const:
            return None
        items, i = known(self.specialiser.value(call.args[0])), call.args[1].value
        if items is None or items.detail is None or type(i) is not int:
            return None
        if items.type is not tuple and not is_plainly_named(items):
            return None
        if not -len(items.detail) <= i < len(items.detail):
            return None
        function = item_rule(len(items.detail), i % len(items.detail))
        self.rules[id(function)] = Rule(operator.getitem, function)
        self.note_pure(function)
        return Pair(Const(function), call.args, (), ((0, call.args[0]),), False)

    def pair_of_attribute(self, call: Call) -> Pair | None:
        """An attribute of a number or an array that has a rule of its own."""
        function = self.specialiser.attribute_rule(call)
        if function is ANY:
            return None
        read = Call(call.out, call.fn, call.args[:1], (), call.position)
        return self.pair_of(Rule(getattr, function), read)

    def pair_of_callee(self, call: Call) -> Pair | None:
        """A function that is not inlined has a reverse pass of its own."""
        callee = self.specialiser.callee_of(call)
        twin = None if callee is None else callee.twin(tuple(map(self.activity_of, call.args)))
        if twin is None:
            return None
        self.rules[id(twin.rule.function)] = twin.rule
        self.results[id(twin.backward)] = twin.cotangents
        self.needs_context |= twin.in_context
        active = tuple((i, x) for i, x in enumerate(call.args) if x in self.varied)
        return Pair(Const(twin.rule.function), call.args, (), active, twin.in_context)

    def activity_of(self, x: Operand) -> str:
        """Whether the cotangent of an argument is asked for, and whether it may begin with a zero."""
        if x not in self.varied:
            return "no"
        k = known(self.specialiser.value(x))
        return (
            "sum" if x in self.sums and k is not None and typed_zero(k.type) is not None else "yes"
        )

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
            self.note_pure(rule.function)
        self.needs_context |= rule.by_identity or uses_adjoints(rule.function)
        self.needs_context |= differentiates(rule.function)
        by_keyword = any(x in self.varied for x in call.args[n:])  # for these it may return nothing
        direct = rule.trusted and not by_keyword and not self.needs_projection(rule, call, active)
        if direct:
            return Pair(Const(rule.function), call.args, call.keywords, active, rule.by_identity)
        if rule.trusted and not by_keyword and self.may_project(rule, active):
            places = tuple(i for i, _ in active)
            function = projecting_rule(rule.function, n, places, call.keywords)
            self.rules[id(function)] = Rule(rule.primal, function)
            self.note_pure(function)
            return Pair(Const(function), call.args, call.keywords, active, False)
        active = tuple((i, x) for i, x in enumerate(call.args) if x in self.varied)
        return Pair(Const(checked_rule(rule)), call.args, call.keywords, active, rule.by_identity)

    def note_pure(self, function: Callable[..., Any]) -> None:
        """The pullbacks that a rule's function makes have no effects."""
        self.pure_codes.update(filter(is_code, function.__code__.co_consts))

    def makes_object(self, rule: Rule, call: Call) -> bool:
        """May the result be a mutable object, whose cotangent the general path finds?"""
        if rule.by_identity or uses_adjoints(rule.function):
            return False
        return may_hold(self.specialiser.value(call.out))

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
        if len(fields) > 1 and not is_in_space(rule.primal):
            return True
        return any(may_hold(self.specialiser.value(x)) for _, x in active)

    def may_project(self, rule: Rule, active: tuple[tuple[int, Operand], ...]) -> bool:
        """Are the cotangents of a rule numbers or arrays, to be brought to their spaces one by one?"""
        if rule.by_identity or uses_adjoints(rule.function) or differentiates(rule.function):
            return False
        kinds = [known(self.specialiser.value(x)) for _, x in active]
        return all(k is not None and field(k) is not None and is_numeric(k) for k in kinds)

    # -- the adjoint

    def inline_rules(self) -> None:
        """Put the bodies of rules and pullbacks, and of small helpers, in the place of calls."""
        changed = True
        while changed:
            changed = self.simplify()  # so that what pullbacks return is seen item by item
            if self.fold_zero_tests():
                changed = True
                self.simplify()
            merge_blocks(self.ir)
            changed |= spread_arguments(self.ir) | self.inline_step() | self.fold_types()
        self.assumptions.inlined = True
        if self.assumptions.waiting:
            while self.simplify() | self.fold_zero_tests():
                merge_blocks(self.ir)
        self.follow_calls()
        self.force_thunks()

    def follow_calls(self) -> None:
        """Rules call functions by `call`, but here all arrays go by value."""
        for c in self.ir.calls():
            c.fn, *args = [
                Const(call_from_program) if type(x) is Const and x.value is general_call else x
                for x in (c.fn, *c.args)
            ]
            c.args = tuple(args)

    def force_thunks(self) -> None:
        """What comes out of pullbacks that were not inlined may be put off, and is needed here."""
        opaque = self.opaque_results()
        for block in self.ir.blocks if opaque else ():
            calls = []
            for call in block.calls:
                calls.append(call)
                if call.out in opaque:
                    out, call.out = call.out, self.ir.var()
                    calls.append(Call(out, Const(settled), (call.out,), (), call.position))
                    calls[-1].removable = True
            block.calls = calls

    def simplify(self) -> bool:
        """A round of simplification of primal and adjoint."""
        start = self.reversal.start
        adjoint = reachable_from(start)
        return simplify_once(
            self.ir,
            is_trusted,
            self.known_of,
            adjoint,
            self.with_value or self.specialiser.protected,
            start,
            self.reversal.loop_values(),
            self.again,
            assumptions=self.assumptions,
        )

    def known_of(self, x: Operand) -> Known | None:
        """Type and detail of an operand, where they are known."""
        return known(self.types.get(x) if type(x) is Var else x)  # type: ignore[arg-type]

    def holds_memory(self, v: Var) -> bool:
        """Is a variable worth releasing early?"""
        value = self.types.get(v)
        return value is not None and any(
            k.type in holds_memory and holds_memory[k.type](k.detail) for k in possibilities(value)
        )

    def is_in_memory(self, v: Var) -> bool:
        """Is a variable a value that other values may well be computed in the memory of?"""
        value = self.types.get(v)
        return value is not None and any(
            k.type in holds_memory
            and not (k.type in better_made_anew and better_made_anew[k.type](k.detail))
            for k in possibilities(value)
        )

    def is_truth_value(self, x: Operand) -> bool:
        """Is it True or False, and no other object that is asked whether it is true?"""
        k = known(self.specialiser.value(x))
        return k is not None and k.type is bool

    def is_cheap(self, call: Call) -> bool:
        """Is it as cheap to compute a plain number, an index or a view again as to keep it?"""
        if call.keywords:
            return False
        if call.primitive in (build_tuple, slice, range):
            return all(
                t in PARTS_OF_INDICES for x in call.args for t in self.types_of(x) or [object]
            )
        if any(test(self.known_of, call) for test in made_again):
            return True
        types = self.types_of(call.out)
        plain = types and all(
            t is bool or (t.__module__ == "builtins" and typed_zero(t) is not None) for t in types
        )
        return bool(plain) and call.movable and costs_little(call.primitive)

    def infer_again(self) -> Inference:
        """The types of what has come in; what is known of a call as well as can be stays."""
        given = self.specialiser.types
        if self.types is not given:
            results = {c.out for c in self.ir.calls()}
            found = {v: k for v, k in self.types.items() if v in results and is_fine(k)}
            given = found | given
        if self.again:
            anew = self.of_displays()  # which are closures' no more
            given = {v: k for v, k in given.items() if v not in anew}
        inference = Inference(self.ir, given, self.results)
        inference.infer()
        if values := self.values_of_rules(inference.types):
            self.specialiser.types.update(values)
            inference = Inference(self.ir, given | values, self.results)
            inference.infer()
        self.types = inference.types
        return inference

    def of_displays(self) -> set[Operand]:
        """The lists and dicts that are made here, and all that is computed from them."""
        calls, passed = list(self.ir.calls()), list(self.ir.passed())
        found: set[Operand] = {c.out for c in calls if c.primitive in (build_list, build_map)}
        n = -1
        while n < len(found):
            n = len(found)
            found.update(c.out for c in calls if not found.isdisjoint(c.operands()))
            found.update(p for p, a in passed if a in found)
        return found

    def values_of_rules(self, types: dict[Var, Value]) -> dict[Var, Value]:
        """What the primal knows of values that rules compute in ways of which nothing is known."""
        makers = {c.out: c for c in self.ir.calls()}
        found: dict[Var, Value] = {}
        for out, call in makers.items():
            value = self.specialiser.types.get(out)
            item = None if value is None else item_put_in(call, makers)
            if type(item) is Var and types.get(item) is None and not may_hold(value):
                found[item] = value
        return found

    def fold_types(self) -> bool:
        """Fold what the types decide in the bodies that were inlined."""
        inference = self.infer_again()
        return inference.resolve_constants() | inference.resolve_methods()

    def inline_step(self) -> bool:
        """Inline all calls of rules and of functions made here that can be."""
        ir = self.ir
        made = {c.out: c for c in ir.calls() if c.primitive is make_function}
        results: dict[Var, Operand] = {}
        done = False
        loop_values = self.reversal.loop_values()
        adjoint = reachable_from(self.reversal.start) if loop_values else ()
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
                call = block.calls[i]
                renamed: dict[Var, Operand] = {}
                block, i = inline(
                    ir, block, i, callee, bound.operands, free, removable, results, None, renamed
                )
                self.note_inlined(call, [*bound.calls, *callee.calls()], renamed)
                if start in adjoint and results.get(call.out) in loop_values:
                    value = results.pop(call.out)
                    block.calls.insert(i, Call(call.out, Const(alias), (value,), (), call.position))
                    i += 1
                done = True
        substitute(ir, results)
        return done

    def note_inlined(self, call: Call, body: list[Call], renamed: dict[Var, Operand]) -> None:
        """A body stands in the place of a call; its variables are `renamed`."""

    def inlinable(self, call: Call, made: dict[Var, Call]) -> Any:
        """The body, the arguments and the cells of a callee to be inlined."""
        fn = call.fn
        if type(fn) is Const:
            f = fn.value
            if type(f) is not FunctionType or not self.may_inline(f):
                return None
            code, namespace, defaults = f.__code__, f.__globals__, constants(f.__defaults__)
            kwdefaults = constants_of(f.__kwdefaults__ or {})
            free = captured_by_rule(f)
            removable = self.is_pure_rule(f, call) or call.removable
        elif fn in made:
            function = made[fn]
            code, namespace = function.args[1].value, function.args[0].value
            defaults, kwdefaults = [], {}
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
        return id(f) in self.rules or is_helper(f)

    def is_pure_rule(self, f: FunctionType, call: Call) -> bool:
        """May what a call of a rule does go where its results are not needed?"""
        rule = self.rules.get(id(f))
        if rule is None or rule.by_identity or not rule.trusted:
            return False
        partial = is_partial(rule.primal) and not is_harmless(rule.primal, call.args)
        if partial or self.may_miss(rule.primal, call):
            return False
        entry = registry.get(rule.primal)
        return entry is not None and (entry.stable or entry.pure)

    def fold_zero_tests(self) -> bool:
        """`x̄ is ZERO` is known where a cotangent certainly is none, or certainly is."""
        definite = self.definite_cotangents()
        mapping: dict[Var, Operand] = {}
        for block in self.ir.blocks:
            for call in block.calls:
                if call.primitive is operator.is_ and is_zero_value(call.args[1]):
                    x = call.args[0]
                    if type(x) is Var and x in definite:
                        mapping[call.out] = Const(False)
                    elif type(x) is Const:
                        mapping[call.out] = Const(isinstance(x.value, AbstractZero))
        for block in self.ir.blocks:
            block.calls = [c for c in block.calls if c.out not in mapping]
        for block in reachable_from(self.reversal.start):
            for branch in block.branches:
                if branch.block is not None:
                    branch.args = [Const(ZERO) if is_zero_value(a) else a for a in branch.args]
        substitute(self.ir, mapping)
        return bool(mapping)

    def definite_cotangents(self) -> set[Operand]:
        """The variables that certainly do not hold a structural zero or a thunk."""
        ir = self.ir
        opaque = self.opaque_results()
        doubtful = self.maybe_zero | self.vanishing_numbers()
        makers = {c.out: c for c in ir.calls()}
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
                    call.primitive is operator.getitem
                    and (self.types.get(call.out) is None or self.is_item(call, makers))
                    and not self.is_entry(call)
                )
                doubted = call.primitive in DOUBTS and not self.optimistic
                if (
                    call.out in opaque
                    or unknown_helper
                    or unresolved
                    or doubted
                    or call.primitive in ZEROS
                ):
                    doubtful.add(call.out)
                elif call.primitive is accumulate:
                    sums.append(call)
                elif (item := item_put_in(call, makers)) is not None:
                    passed.setdefault(call.out, []).append((item, None))
                elif (i := ZERO_IF.get(call.primitive)) is not None:
                    passed.setdefault(call.out, []).append((call.args[i], None))
                elif self.is_entry(call):
                    passed.setdefault(call.out, []).append((call.args[0], None))
                elif call.primitive is operator.is_ and is_zero_value(call.args[1]):
                    tests[call.out] = call.args[0]
            nonzero = None  # on the second way out of a test
            for branch in block.branches:
                tested = None if branch.cond is None else tests.get(branch.cond)
                if branch.block is not None:
                    for p, a in zip(branch.block.params, branch.args, strict=True):
                        if a is not nonzero:
                            passed.setdefault(p, []).append((a, tested))
                nonzero = tested

        def is_doubtful(x: Operand) -> bool:
            return is_zero_value(x) or x in doubtful

        def may_pass_zero(x: Operand, tested: Operand | None) -> bool:
            """Behind a test whether a cotangent is zero, only if that one may be."""
            return is_doubtful(x) and (tested is None or is_doubtful(tested))

        changed = True
        while changed:
            changed = False
            for p, values in passed.items():
                if p in doubtful or p in self.taken_for_none:
                    continue
                if any(may_pass_zero(*v) for v in values):
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

    def vanishing_numbers(self) -> set[Operand]:
        """Numbers of rules that are structural zeros where all that they come of is marked as such."""
        if not any(marks(call.primitive) for call in self.ir.calls()):
            return set()
        parent = dominators(self.ir)
        nonzero = self.tested_operands()
        found: set[Operand] = set()

        def may_be_zero(x: Operand, block: Block | None) -> bool:
            if x not in found:
                return False
            while block is not None:
                if x in nonzero.get(block, ()):
                    return False
                block = parent[block]
            return True

        changed = True
        while changed:
            changed = False
            for block in parent:
                for call in block.calls:
                    if call.out not in found and self.may_vanish(call, block, may_be_zero):
                        found.add(call.out)
                        changed = True
                for branch in block.branches if found else ():
                    target = branch.block
                    if target is None:
                        continue
                    for p, a in zip(target.params, branch.args, strict=True):
                        if p not in found and may_be_zero(a, block):
                            found.add(p)
                            changed = True
        return found

    def may_vanish(
        self, call: Call, block: Block, may_be_zero: Callable[[Operand, Block | None], bool]
    ) -> bool:
        """May a call give a number that is a structural zero?"""
        if vanishes(call.primitive):
            return any(typed_zero(t) is not None for t in self.types_of(call.out))
        may_be = [may_be_zero(x, block) for x in call.args]
        if call.primitive in (operator.add, operator.sub):
            return all(may_be)
        return call.primitive in HANDING_ZEROS_ON and any(may_be)

    def tested_operands(self) -> dict[Block, set[Operand]]:
        """What is known to be no structural zero at the beginning of a block, by the test before it."""
        tests = {
            c.out: c.args[0]
            for c in self.ir.calls()
            if c.primitive is operator.is_ and is_zero_value(c.args[1])
        }
        found: dict[Block, set[Operand]] = {}
        predecessors = self.ir.predecessors()
        for block in self.ir.blocks:
            if len(block.branches) == 2 and block.branches[0].cond in tests:
                target = block.branches[1].block
                if target is not None and len(predecessors[target]) == 1:
                    found[target] = {tests[block.branches[0].cond]}
        return found

    def may_be_structural(self, x: Operand) -> bool:
        """May a value be a structural zero, by its type?"""
        value = self.types.get(x) if type(x) is Var else None
        return value is None or any(issubclass(k.type, AbstractZero) for k in possibilities(value))

    def is_item(self, call: Call, makers: dict[Var, Call]) -> bool:
        """Is it an item of what may hold structural zeros as well?

        That is a container, or a tuple that comes from more than one place.
        """
        items = call.args[0]
        k = self.known_of(items)
        if k is not None and k.type in contents:
            return not self.again or self.may_be_structural(call.out)
        made = makers.get(items)  # type: ignore[arg-type]
        if made is not None and made.primitive is operator.getitem:
            return self.is_item(made, makers)
        return type(items) is Var and made is None

    def is_entry(self, call: Call) -> bool:
        """Is it an item of what holds numbers only? It is no structural zero if that is none."""
        if call.primitive is not operator.getitem:
            return False
        k = self.known_of(call.args[0])
        return k is not None and is_numeric(k)

    def opaque_results(self) -> set[Var]:
        """What comes out of pullbacks that were not inlined, of which nothing is known."""
        calls = {c.out: c for c in self.ir.calls()}
        opaque = set()
        for call in calls.values():
            if call.primitive is settled:
                opaque.add(call.out)
            elif call.primitive is operator.getitem and type(call.args[0]) is Var:
                source = calls.get(call.args[0])
                if source is not None and type(source.fn) is Var:
                    opaque.add(call.out)
        return opaque

    def clean_adjoint(self) -> None:
        """Sums become additions, sums of arguments begin with a zero, empty loops go."""
        self.begin_sums_with_zeros()
        self.begin_loops_with_numbers()
        start = self.reversal.start
        while part_ways(self.ir, start) | fold_decided(self.ir, start):
            self.fold_zero_tests()
            self.simplify()
            merge_blocks(self.ir)
        self.settle_zeros()
        definite = self.definite_cotangents()
        opaque = self.opaque_results()
        self.infer_again()
        for block in self.ir.blocks:
            for call in block.calls:
                if call.primitive is accumulate:
                    self.lower_sum(call, definite, opaque)
        self.note_primals(definite)
        self.drop_doubts()
        self.mark_pure_calls()
        self.share_values()
        self.simplify_all()
        adjoint = reachable_from(start)
        blocks = [block for block in self.ir.blocks if block in adjoint]
        if self.may_round_otherwise and any([tidy(self, blocks) for tidy in TIDYINGS]):
            self.simplify_all()

    def simplify_all(self) -> None:
        """Simplify until nothing changes, with the types known anew."""
        are_new = False  # the types that are known: are they those of the program as it is?
        while self.fold_all() or not are_new:
            are_new = not self.fold_types()

    def fold_all(self) -> bool:
        """Simplify until nothing changes, with the types as they are known; was anything changed?"""
        changed = False
        while self.simplify() | remove_empty_control(self.ir, self.reversal):
            changed = True
            merge_blocks(self.ir)
        return changed

    def settle_zeros(self) -> None:
        """Structural zeros that are left are handed on as they are."""

    def note_primals(self, definite: set[Operand]) -> None:
        """Of what control brings: which cotangents certainly are some, and of what."""
        for p, x in self.reversal.bars.variable_of.items():
            k = known(self.specialiser.value(x)) if type(x) is Var else None
            if p in definite and k is not None:
                self.primal_of[p] = k

    def drop_doubts(self) -> None:
        """What may be a structural zero, or is none, has been said by calls of the identity.

        What else they are known to be stays known.

        An optimist has taken it for none, and begins anew if it is one.
        """
        doubted = [c for c in self.ir.calls() if c.primitive in OPINIONS]
        doubts = {c.out: c.args[0] for c in doubted}
        for c in doubted:
            if len(c.args) == 2 and (k := self.known_of(c.args[1])) is not None:
                self.primal_of[c.args[0]] = k
        for out, x̄ in doubts.items():
            value = self.types.get(out)
            if type(x̄) is Var and type(value) is Known and value.type is not Plain:
                self.specialiser.types[x̄] = value
        for block in list(self.ir.blocks) if self.optimistic else ():
            self.test_doubts(block)
        for block in self.ir.blocks:
            block.calls = [c for c in block.calls if c.out not in doubts]
        substitute(self.ir, doubts)

    def test_doubts(self, block: Block) -> None:
        """Test what a block takes for no structural zero."""
        ir = self.ir
        bail: Block | None = None
        i = 0
        while i < len(block.calls):
            call = block.calls[i]
            i += 1
            if call.primitive not in DOUBTS:
                continue
            if bail is None:
                bail = ir.block()
                bail.calls = [Call(ir.var(), Const(bail_out), ())]
            rest = ir.cut(block, i)
            test = self.append(block, operator.is_, call.args[0], Const(ZERO))
            block.branches = [Branch(bail, (), test), Branch(rest)]
            block, i = rest, 0

    def share_values(self) -> None:
        """Common values are computed once.

        Between primal and adjoint only where neither loops: residuals of a loop's iterations are
        not worth more than a cheap operation. What an adjoint computes from a variable of a loop
        is for one iteration.
        """
        adjoint = reachable_from(self.reversal.start)
        loops = any(c.primitive is enter_loop for c in self.ir.calls())
        loop_values = self.reversal.loop_values()

        def side(block: Block, call: Call) -> Any:
            if block not in adjoint:
                return False
            return block if any(a in loop_values for a in call.args) else loops

        share(self.ir, side, self.gives_the_same)

    def gives_the_same(self, call: Call) -> bool:
        """Does a call with these operands always give the same, which nothing changes?"""
        entry = registry.get(call.primitive)
        if entry is None or not entry.stable or self.types.get(call.out) is None:
            return False
        return all(map(self.is_unchanging, (*call.args, call.out)))

    def may_change_arrays(self, call: Call) -> bool:
        """May a call change a value that goes by value, of which nothing is known?"""
        entry = registry.get(call.primitive)
        if id(call.primitive) in EFFECTS and id(call.primitive) not in GROWING:
            targets = call.args[:1]
        elif (
            id(call.primitive) in REPEATABLE
            or id(call.primitive) in PURE
            or id(call.primitive) in GROWING
            or (entry is not None and (entry.stable or entry.constant))
            or self.specialiser.callee_of(call) is not None
        ):
            return False
        else:
            targets = call.args
        return any(not t or any(k in coarse_detail for k in t) for t in map(self.types_of, targets))

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
        for call in self.primal_calls():
            if call.out in self.never_raising:
                call.removable = True
                continue
            partial = is_partial(call.primitive) and self.may_raise(call)
            if partial or self.may_miss(call.primitive, call):
                call.removable = call.movable = False

    def primal_calls(self) -> list[Call]:
        """The calls that the value is computed by."""
        return [call for block in self.reversal.primal for call in block.calls]

    def may_raise(self, call: Call) -> bool:
        """May a partial function raise an exception: is an argument a plain number?"""
        if is_harmless(call.primitive, call.args):
            return False
        return is_partial_of_arrays(call.primitive) or any(
            typed_zero(t) is not None and t.__module__ == "builtins"
            for x in call.args
            for t in self.types_of(x)
        )

    def may_miss(self, primal: Any, call: Call) -> bool:
        """Is it the reading of an item of a container that may have none of this index or key?"""
        if primal is not operator.getitem:
            return False
        k, i = known(self.types.get(call.args[0])), call.args[1]  # type: ignore[arg-type]
        if k is None or type(i) is not Const:
            return True
        if k.type in (tuple, list) and type(i.value) is slice:
            return False
        n = len(k.detail) if isinstance(k.detail, tuple) else 0
        return k.type is not tuple or type(i.value) is not int or not -n <= i.value < n

    def is_unchanging(self, x: Operand) -> bool:
        """Is the operand a value that nothing can change?"""
        types = self.types_of(x)
        if self.arrays_change and any(t in coarse_detail for t in types):
            return False
        return bool(types) and all(map(is_immutable, types))

    def lower_sum(self, call: Call, definite: set[Operand], opaque: set[Var]) -> None:
        a, b = call.args
        for x in (a, b):
            if any(not adds_plainly(t) for t in self.types_of(x)):
                return
        if a in opaque or b in opaque or not self.adds(a, b):
            return
        a_sure = a in definite or (type(a) is Const and not is_zero_value(a))
        b_sure = b in definite or (type(b) is Const and not is_zero_value(b))
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
        """The sum for an argument begins with a zero of its type, where nothing depends on it."""
        variable_of = self.reversal.bars.variable_of
        zeros: dict[Any, Any] = {}
        for leaf in self.sums:
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
                    if leaf in zeros and is_zero_value(branch.args[i]):
                        branch.args[i] = Const(zeros[leaf])

    def begin_loops_with_numbers(self) -> None:
        """What a loop of the adjoint carries begins with a number, not with a structural zero.

        So nobody asks in each iteration. An optimist takes it that the number, where nothing is added
        to it, does not meet an infinite slope.
        """
        if not self.optimistic:
            return
        inside = dominated(dominators(self.ir))
        predecessors = self.ir.predecessors()
        for block in reachable_from(self.reversal.start):
            first, last = inside[block]
            ways = predecessors[block]
            if not any(first <= inside[source][0] <= last for source, _ in ways):
                continue
            for i, p in enumerate(block.params):
                zero = [branch for _, branch in ways if is_zero_value(branch.args[i])]
                x = self.reversal.bars.variable_of.get(p)
                number = self.stand_for_zero(x) if zero else None  # type: ignore[arg-type]
                for branch in zero if number is not None else ():
                    branch.args[i] = number  # type: ignore[assignment]

    def stand_for_zero(self, x: Operand | None) -> Const | None:
        """What may stand for a structural zero as the cotangent of a variable of the primal."""
        k = known(self.specialiser.value(x)) if type(x) is Var else None
        stand = None if k is None else stand_for_zero(k.type)
        if stand is None or not self.assumptions.assume(stand[1]):
            return None
        return Const(stand[0])

    def result_tuple(self) -> Call:
        """The call at the end of the adjoint that puts the cotangents together."""
        out = self.reversal.end.branches[0].args[0]
        return next(c for c in self.reversal.end.calls if c.out is out)

    def assemble(self, block: Block, leaves: Any, found: dict[Var, Operand]) -> Operand:
        if type(leaves) is Var:
            return found[leaves]
        whole = self.append(block, build_tuple, *[self.assemble(block, x, found) for x in leaves])
        if type(leaves) is NamedLeaves:
            return self.append(block, tuple.__new__, Const(leaves.cls), whole)
        return whole

    def append(self, block: Block, fn: Any, *args: Operand) -> Var:
        out = self.ir.var()
        block.calls.append(Call(out, Const(fn), args))
        return out

    def is_new(self, x̄: Operand) -> bool:
        """Does the value share memory with nothing else?"""
        for call in self.ir.calls():
            if call.out is x̄:
                return type(call.fn) is Const and gives_new(call.fn.value)
        return False


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


@functools.cache
def projecting_rule(
    function: FunctionType, n: int, active: tuple[int, ...], keywords: tuple[str, ...] = ()
) -> FunctionType:
    """A rule for n arguments, with these of its cotangents brought to the spaces of the arguments.

    Arguments by keyword have no cotangents.
    """
    names = [f"_{i}" for i in range(n)]
    given = ", ".join([*names, *[f"{name}={name}" for name in keywords]])
    parameters = ", ".join([*names, *(("*", *keywords) if keywords else ())])
    cotangents = [
        f"_to_space({x}, _bars[{i}])" if i in active else "_NONE" for i, x in enumerate(names)
    ]
    source = f"""
def rule({parameters}):
    _y, _back = _inner({given})
    def projecting_pullback(_ȳ):
        _bars = _back(_ȳ)
        return {", ".join(cotangents)},
    return _y, projecting_pullback
"""
    scope = {"_NONE": NONE, "_to_space": to_space, "_inner": function, "__name__": __name__}
    exec(source, scope)
    return scope["rule"]  # type: ignore[return-value]


def to_space(x: Any, x̄: Any) -> Any:
    """A cotangent in the space of x; structural zeros stay what they are."""
    return project_to(x)(unthunk(x̄))


# What changes containers only.
GROWING = {
    id(f)
    for f in (
        dict_merge,
        dict_update,
        list_append,
        list_extend,
        map_add,
        set_add,
        set_cell,
        set_update,
    )
}

PARTS_OF_INDICES = (int, bool, slice, type(None), type(Ellipsis))
DOUBTS = (maybe_zero, maybe_zero_of_parts)
OPINIONS = (*DOUBTS, never_zero)  # whether a cotangent is a structural zero


# What gives a structural zero if the operand at this place is one.
ZERO_IF: dict[Any, int] = {to_space: 1}

HANDING_ZEROS_ON = (operator.mul, operator.truediv, operator.neg, operator.pos, alias)

ZEROS = (ZeroTangent, NoTangent, Thunk)  # what may give a cotangent that is no number

# Functions that may rewrite the primal of an Adjoint before it is differentiated. They return the
# variables that carry a derivative, or None, if they changed nothing.
PREPARATIONS: list[Callable[[Adjoint], set[Any] | None]] = []


def prepares(
    prepare: Callable[[Adjoint], set[Any] | None],
) -> Callable[[Adjoint], set[Any] | None]:
    """Register such a function."""
    PREPARATIONS.append(prepare)
    return prepare


# Functions that raise NotSpecialised where a program, in whatever mode, is not to be compiled.
REFUSALS: list[Callable[[Adjoint], None]] = []


def refuses(refuse: Callable[[Adjoint], None]) -> Callable[[Adjoint], None]:
    """Register such a function."""
    REFUSALS.append(refuse)
    return refuse


# Functions that write blocks of an adjoint anew, so that they take less time; did they?
TIDYINGS: list[Callable[[Adjoint, list[Block]], bool]] = []


def tidies(
    tidy: Callable[[Adjoint, list[Block]], bool],
) -> Callable[[Adjoint, list[Block]], bool]:
    """Register such a function."""
    TIDYINGS.append(tidy)
    return tidy


write_preparation: list[Callable[[Adjoint], set[Any] | None]] = []


def prepares_writes(
    prepare: Callable[[Adjoint], set[Any] | None],
) -> Callable[[Adjoint], set[Any] | None]:
    """Register the preparation of programs that change values in place which go by value."""
    write_preparation.append(prepare)
    return prepare


def flat(leaves: Any) -> list[Var]:
    """The variables of a nested list of them."""
    return [leaves] if type(leaves) is Var else [v for x in leaves for v in flat(x)]


def is_numeric(k: Known) -> bool:
    """Is it a number, or holds numbers and nothing else?"""
    return typed_zero(k.type) is not None or k.type in holds_memory


def adds_plainly(t: type) -> bool:
    """Are cotangents of primals of this type added by +?"""
    return add.dispatch(t) is add.dispatch(object)


def differentiates(function: Callable[..., Any]) -> bool:
    """Does a rule call others, whose pullbacks may work on adjoint objects?"""
    namespace, names = function.__globals__, function.__code__.co_names
    return any(namespace.get(name) is general_call for name in names)


def uses_adjoints(function: Callable[..., Any]) -> bool:
    """Does the pullback of a rule call a helper that works on adjoint objects?"""
    namespace = function.__globals__
    return any(
        has_effect(namespace.get(name))
        for code in filter(is_code, function.__code__.co_consts)
        for name in code.co_names
    )


def makes_generator(fn: Operand) -> bool:
    """Is it a generator function? What its generator does is known only if it is made by `call`."""
    made = getattr(fn, "value", None)
    return type(made) is FunctionType and bool(made.__code__.co_flags & CO_GENERATOR)


def is_code(x: Any) -> bool:
    """Is a constant of a code object a code object?"""
    return isinstance(x, CodeType)


def item_put_in(call: Call, makers: dict[Var, Call]) -> Operand | None:
    """What `items[i]` is, if the tuple was put together here and not yet taken apart."""
    if call.primitive is not operator.getitem or type(call.args[1]) is not Const:
        return None
    made, i = makers.get(call.args[0]), call.args[1].value  # type: ignore[arg-type]
    if made is None or made.primitive is not build_tuple or type(i) is not int:
        return None
    return made.args[i] if -len(made.args) <= i < len(made.args) else None


def checked_rule(rule: Rule) -> Callable[..., Any]:
    """A rule from outside, whose pullback's results are checked and projected."""
    from morula.core.registry import apply_rule

    def checked(*args: Any, **kwargs: Any) -> Any:
        return apply_rule(rule, args, kwargs)

    return checked


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
    """Do all blocks from here to the header, and the header, do nothing?"""
    seen, work = {header}, [start]
    if any(c.primitive not in MARKS for c in header.calls):
        return False
    while work:
        block = work.pop()
        if block in seen:
            continue
        if block is None or block.params or any(c.primitive not in MARKS for c in block.calls):
            return False
        seen.add(block)
        work += [b.block for b in block.branches]
    return True
