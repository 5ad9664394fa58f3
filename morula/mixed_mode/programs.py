"""The value of a function and its derivative along a direction, as one program, for known types.

The primal comes from the specialiser, as for gradients. What carries a derivative gets a twin, its
tangent, by value: nothing runs backwards, so there are no tapes and no residuals, and a loop stays
one. A call `y = f(x)` becomes `y, push = frule(x)`, with ẏ the sum of what `push` gives for the
tangent of each operand; or the slopes of a scalar rule give it. These rules are inlined. Where there
is only a pullback to arrays, or a rule of a user's, `push` says what the call means when it happens.
Tangents may be structurally zero, as cotangents may, and are tested for it where they are used.
Whatever is not followed (objects, lists of other kinds, arrays that are written to) is left to the
general path. Tests: tests/mixed_mode/test_programs.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import CodeType, FunctionType
from typing import Any

from morula.core.activity import may_hold, varied_variables
from morula.core.adjoint import REFUSALS
from morula.core.bytecode.instructions import IN_PLACE
from morula.core.compiled import VARARGS, VARKEYWORDS, Family, family_by, primal_of
from morula.core.context import as_before, call_plainly
from morula.core.cotangents import ZERO, AbstractZero, accumulate
from morula.core.emit import merge_blocks
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, reachable
from morula.core.orders import OfGradient
from morula.core.primitives import build_tuple
from morula.core.program import Gradient, Tried
from morula.core.registry import Rule, registry
from morula.core.reverse import Reversal
from morula.core.sharing import ask_whether_shared
from morula.core.simplify import is_trusted, remove_unused, share, simplify_once
from morula.core.specialise import NotSpecialised, may_run_twice
from morula.core.ssa import Variables, prune_params
from morula.core.traits import (
    Known,
    coarse_detail,
    only_reads,
    sample,
    typed_zero,
    unit,
)
from morula.core.values import IteratorOver, is_zero_value, known, possibilities
from morula.core.verify import checked
from morula.core.zeros import is_zero_test
from morula.mixed_mode.directions import Several, gathered
from morula.mixed_mode.overwriting import (
    buffer_twin,
    gives_new_array,
    members_of,
    own,
    set_part,
    write_twin,
    writes_to,
)
from morula.mixed_mode.push import push, refuse_unknown
from morula.mixed_mode.tangents import Pass, absorb, holds_mutable, last, shown_to_user
from morula.mixed_mode.versions import loops_of, write_twice
from morula.rules.arrays.pushforwards import fitted
from morula.rules.buffers import is_write

MOST_CALLS = 600  # of a program that has loops written twice
Make = Callable[[Operand], Operand]
Tangent = Callable[[], Operand]
NOTHING = Const(ZERO)
PLAINLY = {getattr(operator, name): getattr(operator, name[1:], None) for name in IN_PLACE.values()}


class Straight(Reversal):
    """In the place of a reversal: all blocks are of the primal, and none runs backwards."""

    def __init__(self, ir: IR) -> None:
        self.ir = ir
        self.bars = Variables(ir, lambda block, variable: None)

    @property
    def start(self) -> Block:  # type: ignore[override]
        """Where tangents begin."""
        return self.ir.entry

    def loop_values(self) -> set[Var]:
        """Nothing is read in another iteration than its own."""
        return set()


class Pushed(Gradient):
    """The value of `fn` and its tangents along some directions.

    What is known is that of the arguments, then of one tangent for each, direction by direction.
    """

    by_forward_rules = True
    may_keep_objects = False
    may_round_otherwise = False  # the value is computed in the same blocks as its tangents

    def __init__(
        self, fn: FunctionType, signature: CodeType, knowns: Sequence[Known], **options: Any
    ) -> None:
        n = fn.__code__.co_argcount
        wanted = {i % n for i, k in enumerate(knowns[n:]) if not is_nothing(k)} if n else set()
        super().__init__(fn, list(knowns[:n]), sorted(wanted), True, False, **options)
        self.examples = self.examples[:n]
        self.signature = signature
        self.of_tangents = knowns[n:]

    def build(self) -> IR:
        """The value and the tangents as a tuple."""
        self.specialiser = s = self.specialised()
        if s.callees.found:
            raise NotSpecialised("a function calls itself")
        self.types = s.types
        self.ir = s.ir
        self.add_parameters()
        self.leaves, self.sums = list({x: None for dots in self.directions for x in dots}), ()
        ask_whether_shared(s, self.leaves)
        for refuse in REFUSALS:
            refuse(self)
        self.members = members_of(self)
        self.arrays_change = s.writes_in_place or any(map(self.may_change_arrays, s.ir.calls()))
        share(s.ir, lambda block, call: None, self.gives_the_same)
        self.leaves_nothing = all(may_run_twice(s, c) for c in s.ir.calls())
        self.varied = varied_variables(s, {*self.leaves, *self.members})
        self.transform()
        self.inline_rules()
        self.clean_adjoint()
        self.settle_calls()
        remove_unused(self.ir)
        prune_params(self.ir)
        return self.ir

    def add_parameters(self) -> None:
        """The tangents of the arguments, item by item where those are tuples."""
        s, calls, n = self.specialiser, list[Call](), len(self.ir.params)
        self.sure: set[Operand] = set()  # tangents that are no structural zeros
        self.directions: list[dict[Var, Operand]] = []  # the tangents of variables along each
        for j, k in enumerate(self.of_tangents):
            i = j % n
            if i == 0:
                self.dots: dict[Var, Operand] = {}  # those along the direction in question
                self.directions.append(self.dots)
            ẋ = self.ir.var(self.ir.params[i].name + "̇")
            self.ir.entry.params = [*self.ir.params, ẋ]
            s.types[ẋ] = s.given[ẋ] = k
            self.knowns.append(k)
            self.take_apart(s.leaves[i], ẋ, k, calls)
        self.added = {call.out for call in calls}
        self.ir.entry.calls[:0] = calls

    def take_apart(self, leaves: Any, ẋ: Operand, k: Any, calls: list[Call]) -> None:
        """Note the tangents of the leaves of an argument."""
        if is_nothing(k):
            return
        if type(leaves) is Var:
            self.dots[leaves] = ẋ
            self.sure.add(ẋ)
            return
        if k.type is not tuple or k.detail is None or len(k.detail) != len(leaves):
            raise NotSpecialised("the tangent of a tuple is not known item by item")
        for i, (leaf, inside) in enumerate(zip(leaves, k.detail, strict=True)):
            item = self.ir.var()
            calls.append(Call(item, Const(operator.getitem), (ẋ, Const(i))))
            self.specialiser.types[item] = inside
            self.take_apart(leaf, item, known(inside), calls)

    # -- the transform

    def transform(self) -> None:
        """Every variable that carries a derivative gets its tangent beside it."""
        ir = self.ir
        self.reversal = Straight(ir)
        self.parameters_of_tangents: set[Operand] = set()
        self.primal_variables = {c.out for c in ir.calls() if c.out not in self.added}
        ir.blocks = blocks = reachable(ir)
        for block in blocks:
            for p in block.params if block is not ir.entry else ():
                if p in self.varied:
                    self.refuse_mutable(p)
                    for dots in self.directions:
                        dots[p] = ẋ = ir.var(p.name + "̇")
                        self.parameters_of_tangents.add(ẋ)
        received = {
            block: [p for p in block.params if p in self.varied and p not in self.leaves]
            for block in blocks[1:]
        }
        branches = [branch for block in blocks for branch in block.branches]
        for block in list(blocks):
            self.transform_block(block)
        for branch in branches:
            if branch.block is not None:
                pairs = list(zip(branch.block.params, branch.args, strict=True))
                for _ in self.each_direction():
                    branch.args += [
                        self.passed_on(p, a) for p, a in pairs if p in received[branch.block]
                    ]
        for block, params in received.items():
            for dots in self.directions:
                block.params = [*block.params, *[dots[p] for p in params]]  # type: ignore[list-item]
        checked("forward", ir)

    def each_direction(self) -> Iterator[None]:
        """Once for each direction, whose tangents are `dots` meanwhile."""
        for dots in self.directions:
            self.dots = dots
            yield

    def passed_on(self, p: Var, a: Operand) -> Operand:
        """The tangent that a parameter receives with what it is passed."""
        return self.twin(a) if self.is_list(p) or p in self.members else self.dot(a)

    def transform_block(self, block: Block) -> None:
        """The value first, then its tangents; control may part on the way to the end of the block."""
        calls, branches = block.calls, block.branches
        block.calls, block.branches = [], []
        self.at = block
        self.waiting: list[tuple[Call, Callable[[], Operand]]] = []
        for call in calls:
            if call.out in self.leaves or not self.is_active(call):
                self.plain_call(call)
            elif call.out not in self.members and self.has_no_tangent(call):
                self.at.calls.append(call)
            else:
                self.push(call)
        self.compute_tangents()
        for branch in branches:
            if branch.block is None:
                y = branch.args[0]
                dots = [self.dot(y) for _ in self.each_direction()]
                branch.args = [self.append(self.at, shown, y, *dots)]
        self.at.branches = branches

    def has_no_tangent(self, call: Call) -> bool:
        """Is it known that a call has no derivative?"""
        s = self.specialiser
        return call.out in s.counted or s.is_constant(call)

    def is_active(self, call: Call) -> bool:
        """Do tangents go into a call, or may they be put into the list that it makes?"""
        made = call.out in self.varied and self.is_list(call.out)
        made |= call.out in self.members or writes_to(self, call)
        return made or any(x in self.varied for x in call.operands())

    def plain_call(self, call: Call) -> None:
        """A call into which no tangent goes."""
        if call.out not in self.leaves and self.specialiser.may_run_code(call):
            call.fn, call.args = Const(call_plainly), (call.fn, *call.args)
        self.at.calls.append(call)

    def compute_tangents(self) -> None:
        """Those of what has been computed so far."""
        for _ in self.each_direction():
            for call, tangent in self.waiting:
                self.position = call.position
                self.dots[call.out] = tangent()
        self.waiting = []

    def dot(self, x: Operand) -> Operand:
        """The tangent of an operand."""
        return self.dots.get(x, NOTHING) if type(x) is Var else NOTHING

    def refuse_mutable(self, x: Var) -> None:
        """Of what may change, only lists have tangents here."""
        if may_hold(self.specialiser.value(x)) and not self.is_list(x):
            raise NotSpecialised("tangents of mutable values")

    def is_list(self, x: Operand) -> bool:
        """Is it known to be a list, or an iterator over one?"""
        k = known(self.specialiser.value(x))
        inside = known(k.detail) if k is not None and k.type is IteratorOver else k
        return inside is not None and inside.type is list

    def twin(self, x: Operand) -> Operand:
        """The list of the tangents of a list; it has one wherever it may be written to."""
        found = self.dot(x)
        if is_zero_value(found):
            raise NotSpecialised("a list or an array from outside of the function")
        return found

    def held(self, x: Operand) -> Operand:
        """The tangent of what is put into a container."""
        return self.twin(x) if type(x) is Var and self.is_list(x) else self.dot(x)

    def push(self, call: Call) -> None:
        """A call into which tangents go."""
        if type(call.fn) is not Const:
            raise NotSpecialised("it is not known what is called")
        if writes_to(self, call):
            self.compute_tangents()
            self.position = call.position
            for _ in self.each_direction():
                write_twin(self, call)
            self.at.calls.append(call)
            return
        move = MOVES.get(call.primitive)
        tangent = None if move is None else move(self, call)
        if tangent is not None:
            self.at.calls.append(call)
        else:
            self.refuse_mutable(call.out)
            self.refuse_views(call)
            tangent = self.by_slopes(call) or self.by_forward_rule(call)
        if tangent is None:
            self.push_when_it_happens(call)
            return
        if self.members and gives_new_array(call.primitive) and self.is_array(call.out):
            how = buffer_twin if call.out in self.members else own
            tangent = partial(self.in_own_memory, how, call, tangent)
        self.waiting.append((call, tangent))

    def in_own_memory(self, how: Any, call: Call, tangent: Tangent) -> Operand:
        """The tangent of a new array, in memory that nothing else has."""
        ẏ = tangent()
        if how is own and is_zero_value(ẏ):
            return ẏ
        return self.append(self.at, how, call.out, ẏ)

    def refuse_views(self, call: Call) -> None:
        """Where arrays are written to, it has to be known which arrays are in their memory."""
        if self.members and self.is_array(call.out) and not gives_new_array(call.primitive):
            raise NotSpecialised("what may be a view of an array that is written to")

    def is_array(self, x: Operand) -> bool:
        """May it be an array?"""
        value = self.specialiser.value(x)
        return value is None or any(k.type in coarse_detail for k in possibilities(value))

    def sum_of(self, parts: Sequence[tuple[Operand, Make]]) -> Operand:
        """The tangent of a result is the sum of what those of operands make that are no zeros."""
        total: Operand = NOTHING
        for x, make in parts:
            ẋ = self.dot(x)
            if not is_zero_value(ẋ):
                total = self.unless_zero(ẋ, total, partial(make, ẋ))
        return total

    def unless_zero(self, ẋ: Operand, total: Operand, make: Callable[[], Operand]) -> Operand:
        """A sum with what is made, if a tangent is no structural zero."""
        if ẋ in self.sure:
            c = make()
            return c if total is NOTHING else self.append(self.at, accumulate, total, c)
        ir = self.ir
        run, after, out = ir.block(), ir.block(), ir.var()
        after.params = [out]
        nothing = self.append(self.at, operator.is_, ẋ, NOTHING)
        self.at.branches = [Branch(after, [total], nothing), Branch(run)]
        self.at = run
        c = make()
        if total is not NOTHING:
            c = self.append(self.at, accumulate, total, c)
        self.at.branches = [Branch(after, [c])]
        self.at = after
        return out

    def if_zero(self, ẋ: Operand, make: Callable[[], Operand]) -> Operand:
        """A tangent, or what is made in its place if it is structurally zero."""
        if ẋ in self.sure or is_zero_value(ẋ):
            return make() if is_zero_value(ẋ) else ẋ
        ir = self.ir
        none, after, out = ir.block(), ir.block(), ir.var()
        after.params = [out]
        nothing = self.append(self.at, operator.is_, ẋ, NOTHING)
        self.at.branches = [Branch(none, (), nothing), Branch(after, [ẋ])]
        self.at = none
        none.branches = [Branch(after, [make()])]
        self.at = after
        return out

    def applied(self, fn: Operand, *args: Operand) -> Var:
        """The result of a call where tangents are computed."""
        out = self.ir.var()
        self.at.calls.append(Call(out, fn, args, (), self.position))
        return out

    def settle_calls(self) -> None:
        """What is known to be no structural zero needs no questions at run time.

        A number of Python's and its tangent are what the user gets, as they are.
        """
        definite = self.definite_cotangents()
        for call in self.ir.calls():
            if call.primitive is shown and definite.issuperset(call.args[1:]):
                kinds = {k and k.type for k in map(self.known_of, call.args)}
                if kinds in ({float}, {complex}):
                    call.fn = Const(build_tuple)
            elif call.primitive is set_part and call.args[2] in definite:
                call.fn = Const(operator.setitem)

    # -- by rules

    def by_forward_rule(self, call: Call) -> Tangent | None:
        """By a forward rule of Morula's."""
        rule = self.forward_rule(call)
        n = len(call.args) - len(call.keywords)
        if rule is None or any(x in self.varied for x in call.args[n:]):
            return None
        if any(map(self.may_be_mutable, call.args)):
            return None
        places = [rule.position_of(name) for name in call.keywords]
        count = max([n, *[i + 1 for i in places if i is not None and i < len(rule.positional)]])
        pushforward = self.pair(call, rule)

        def along(i: int, ẋ: Operand) -> Operand:
            tangents: list[Operand] = [NOTHING] * count
            tangents[i] = ẋ
            return self.applied(pushforward, *tangents)

        parts = [(x, partial(along, i)) for i, x in enumerate(call.args[:n])]
        k = known(self.specialiser.value(call.out))
        if k is None or k.type not in coarse_detail or k.detail is None or k.detail[1]:
            return partial(self.sum_of, parts)
        return partial(self.array_of, call, parts)

    def array_of(self, call: Call, parts: Sequence[tuple[Operand, Make]]) -> Operand:
        """The tangent of an array without axes: sums of such arrays are numbers."""
        total = self.sum_of(parts)
        return self.append(self.at, fitted, call.out, total)

    def forward_rule(self, call: Call) -> Rule | None:
        """The forward rule of Morula's that serves a call, if it is not one of a user's that does."""
        plainly = Call(
            call.out, Const(PLAINLY.get(call.primitive) or call.primitive), call.args, call.keywords
        )
        s = self.specialiser
        rule, reverse = s.rule_by_types(plainly, "forward"), s.rule_for(call)
        if rule is None or not rule.trusted or (reverse is not None and not reverse.trusted):
            return None
        return rule

    def pair(self, call: Call, rule: Rule) -> Var:
        """Let the rule compute the value, and what gives its derivative."""
        self.rules[id(rule.function)] = rule
        self.note_pure(rule.function)
        both, back, where = self.ir.var(), self.ir.var(), call.position
        self.primal_variables.update((both, back))
        self.at.calls += [
            Call(both, Const(rule.function), call.args, call.keywords, where),
            Call(call.out, Const(operator.getitem), (both, Const(0)), (), where),
            Call(back, Const(operator.getitem), (both, Const(1)), (), where),
        ]
        return back

    def by_slopes(self, call: Call) -> Tangent | None:
        """By a reverse rule from real numbers to a real number: the pullback of one."""
        rule = self.specialiser.rule_for(call)
        active = [x for x in call.args if x in self.varied]
        if rule is None or not rule.trusted or rule.by_identity or call.keywords:
            return None
        if any(map(self.may_be_mutable, call.args)):
            return None
        if not all(map(self.is_real_number, (call.out, *active))):
            return None
        y = known(self.specialiser.value(call.out))
        one = None if y is None else unit(sample(y))
        if one is None or self.needs_projection(rule, call, tuple(enumerate(active))):
            return None
        pullback = self.pair(call, rule)

        def along(i: int, ẋ: Operand) -> Operand:
            slopes = self.applied(pullback, Const(one))
            slope = self.append(self.at, operator.getitem, slopes, Const(i))
            return self.unless_zero(
                slope, NOTHING, lambda: self.append(self.at, operator.mul, slope, ẋ)
            )

        return partial(self.sum_of, [(x, partial(along, i)) for i, x in enumerate(call.args)])

    def is_real_number(self, x: Operand) -> bool:
        """Is it a real number of Python's or NumPy's?"""
        value = self.specialiser.value(x)
        return value is not None and all(
            k.type is not complex and typed_zero(k.type) is not None for k in possibilities(value)
        )

    # -- at run time

    def push_when_it_happens(self, call: Call) -> None:
        """By whatever rule there is, with tangents by value."""
        if self.members and self.is_array(call.out):
            raise NotSpecialised("a call where arrays are written to")
        entry = registry.get(call.primitive)
        if entry is None or (entry.reverse is None and entry.forward is None):
            raise NotSpecialised(f"{call.primitive!r} has no rule")
        s = self.specialiser
        rule = s.rule_for(call) or s.rule_by_types(call, "forward")
        if (
            rule is None
            or rule.by_identity
            or any(map(self.may_be_mutable, (*call.args, call.out)))
        ):
            raise NotSpecialised("the rule of a call is not known, or finds tangents by identity")
        self.compute_tangents()
        self.position = call.position
        args = self.append(self.at, build_tuple, *call.args)
        directions = [
            self.append(self.at, build_tuple, *map(self.dot, call.args))
            for _ in self.each_direction()
        ]
        all_of_it = self.applied(
            Const(pushed_when_it_happens), call.fn, Const(call.keywords), args, *directions
        )
        self.at.calls.append(Call(call.out, Const(operator.getitem), (all_of_it, Const(0))))
        self.primal_variables.update((all_of_it, args))
        for i, _ in enumerate(self.each_direction()):
            self.dots[call.out] = ẏ = self.append(
                self.at, operator.getitem, all_of_it, Const(i + 1)
            )
            self.maybe_zero.add(ẏ)

    def may_be_mutable(self, x: Operand) -> bool:
        """May it be what has tangents by identity?"""
        return may_hold(self.specialiser.value(x))

    # -- tests that decide nothing

    def clean_adjoint(self) -> None:
        """Sums and tests for structural zeros become no more than is needed."""
        while self.join_ways():
            self.fold_zero_tests()
            prune_params(self.ir, self.ir.entry)
            self.simplify()
            merge_blocks(self.ir)
        if self.write_loops_twice():
            prune_params(self.ir, self.ir.entry)
            self.infer_again()
            self.fold_zero_tests()
            self.simplify()
            merge_blocks(self.ir)
        super().clean_adjoint()
        for block in list(self.ir.blocks):
            self.spell_out_sums(block)

    def write_loops_twice(self) -> bool:
        """Loops whose tangents are structural zeros at first get a version for later."""
        done: set[Block] = set()
        changed = True
        while changed:
            changed = False
            definite = self.definite_cotangents()
            for header, body in loops_of(self.ir):
                doubtful = {p for p in header.params if self.is_tangent(p) and p not in definite}
                if header in done or not doubtful or not self.pays(header, body, doubtful):
                    continue
                done.add(header)
                renamed = write_twice(self.ir, header, body, doubtful)
                self.note_copies(renamed)
                checked("loops written twice", self.ir)
                changed = True
                break
        return bool(done)

    def pays(self, header: Block, body: set[Block], doubtful: set[Operand]) -> bool:
        """Is a loop short, and do no zeros come back once there are none?"""
        if sum(len(b.calls) for b in self.ir.blocks) > MOST_CALLS:
            return False
        self.taken_for_none = doubtful
        definite = self.definite_cotangents()
        self.taken_for_none = set()
        received = [
            a
            for block in body
            for branch in block.branches
            if branch.block is header
            for p, a in zip(header.params, branch.args, strict=True)
            if p in doubtful
        ]
        return definite.issuperset(received)

    def is_tangent(self, x: Var) -> bool:
        """Is it a tangent that may be tested for being zero?"""
        return x in self.parameters_of_tangents

    def note_copies(self, renamed: dict[Var, Var]) -> None:
        """What is known of variables is known of their copies."""
        for v, copy in renamed.items():
            for known_ones in (self.primal_variables, self.maybe_zero, self.parameters_of_tangents):
                if v in known_ones:
                    known_ones.add(copy)
            if v in self.specialiser.types:
                self.specialiser.types[copy] = self.specialiser.types[v]

    def spell_out_sums(self, block: Block) -> None:
        """What a sum is where a tangent is structurally zero depends on control: that is the faster."""
        ir = self.ir
        while (
            i := next(filter(partial(self.is_open_sum, block), range(len(block.calls))), None)
        ) is not None:
            call, rest = block.calls[i], ir.block()
            a, b = call.args
            rest.params, rest.calls, rest.branches = (
                [call.out],
                block.calls[i + 1 :],
                block.branches,
            )
            block.calls = block.calls[:i]
            for x, other in ((a, b), (b, a)):
                onward = ir.block()
                nothing = self.append(block, operator.is_, x, NOTHING)
                block.branches = [Branch(rest, [other], nothing), Branch(onward)]
                block = onward
            block.branches = [Branch(rest, [self.append(block, operator.add, a, b)])]
            block = rest

    def is_open_sum(self, block: Block, i: int) -> bool:
        """Is the i-th call of a block a sum of numbers, each of which may be a structural zero?"""
        call = block.calls[i]
        return call.primitive is accumulate and all(map(self.is_number, call.args))

    def is_number(self, x: Operand) -> bool:
        """Is it a number of Python's or NumPy's, or a structural zero?"""
        k = self.known_of(x)
        return k is not None and typed_zero(k.type) is not None

    def join_ways(self) -> bool:
        """Where control passes by what would do no more than add a structural zero, it need not."""
        tests = {c.out: c.args[0] for c in self.ir.calls() if is_zero_test(c)}
        entries = self.ir.predecessors()
        changed = False
        for block in self.ir.blocks:
            ẋ = tests.get(block.branches[0].cond) if len(block.branches) == 2 else None
            if ẋ is None:
                continue
            past, run = block.branches[0], block.branches[1].block
            if run is None or run is block or len(entries[run]) > 1 or len(run.branches) > 1:
                continue
            if run.branches and adds_nothing(run, past, ẋ):
                block.calls += run.calls
                block.branches, run.branches = run.branches, []
                changed = True
        self.ir.blocks = reachable(self.ir)
        return changed

    # -- what is the value's, what is the tangent's

    def note_inlined(self, call: Call, body: list[Call], renamed: dict[Var, Operand]) -> None:
        """What stands in the place of a call of the value's is the value's."""
        if call.out in self.primal_variables:
            self.primal_variables.update(renamed.get(c.out, c.out) for c in body)

    def simplify(self) -> bool:
        """A round of simplification of the value and its tangent."""
        return simplify_once(
            self.ir, is_trusted, self.known_of, keep=self.ir.entry, primal=self.primal_variables
        )

    def mark_pure_calls(self) -> None:
        """Which calls may go, and may wait: none that writes to an array."""
        super().mark_pure_calls()
        for call in self.ir.calls() if self.members else ():
            if is_write(call) and self.is_array(call.args[0]):
                call.removable = call.movable = False

    def primal_calls(self) -> list[Call]:
        """The calls that the value is computed by."""
        return [c for c in self.ir.calls() if c.out in self.primal_variables]


def is_nothing(k: Any) -> bool:
    """Is a tangent known to be structurally zero?"""
    return k is not None and issubclass(k.type, AbstractZero)


def adds_nothing(run: Block, past: Branch, ẋ: Operand) -> bool:
    """Does a block give, if a tangent is structurally zero, what the way past it gives?"""
    onward = run.branches[0]
    sums = {c.out: c for c in run.calls if c.primitive is accumulate}
    if onward.block is not past.block or onward.cond is not None or len(sums) < len(run.calls):
        return False

    def given_zero(x: Operand) -> Operand:
        if x is ẋ:
            return NOTHING
        if x not in sums:
            return x
        a, b = map(given_zero, sums[x].args)
        return b if is_zero_value(a) else a if is_zero_value(b) else x

    return all(
        a is (b := given_zero(given)) or (is_zero_value(a) and is_zero_value(b))
        for a, given in zip(past.args, onward.args, strict=True)
    )


def pushed_when_it_happens(
    fn: Any, keywords: tuple[str, ...], args: tuple[Any, ...], *directions: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The value of a call and its tangents, in a pass of its own."""
    run = Several(len(directions)) if len(directions) > 1 else Pass()
    dots = (
        directions[0]
        if len(directions) == 1
        else tuple(map(gathered, zip(*directions, strict=True)))
    )
    y, ẏ = as_before(push, run, fn, ZERO, args, dots, keywords)
    refuse_unknown((ẏ,))
    return (y, *run.split(last(run, y, ẏ)))


only_reads(pushed_when_it_happens)


def shown(y: Any, *tangents: Any) -> tuple[Any, ...]:
    """The value and its tangents as a user gets them."""
    return (y, *[shown_tangent(y, ẏ) for ẏ in tangents])


def shown_tangent(y: Any, ẏ: Any) -> Any:
    """One of them."""
    run = Pass()
    if holds_mutable(y):
        ẏ = absorb(run, y, ẏ, "the value")
    return shown_to_user(run, y, ẏ)


# -- what moves values about -----------------------------------------------------------------------

Move = Callable[[Pushed, Call], Tangent | None]
MOVES: dict[Any, Move] = {}


def moves(*primitives: Any) -> Callable[[Move], Move]:
    """Register what makes the tangents of results from those of operands, if it is known."""

    def register(move: Move) -> Move:
        MOVES.update(dict.fromkeys(primitives, move))
        return move

    return register


# -- programs --------------------------------------------------------------------------------------


class Pushes(Family):
    """The programs for the derivatives along directions of functions with one code object."""

    def target(self, f: FunctionType) -> FunctionType:
        """What is differentiated, with its own parameters and no others."""
        if self.source is None:
            return f
        code, primal = _without_tangents[id(self.code)][1], primal_of(f)
        return FunctionType(
            code, f.__globals__, f.__name__, primal.__defaults__, primal.__closure__
        )

    def gradient(
        self, f: FunctionType, key: Sequence[Any], tries: int, args: Sequence[Any], tried: Tried
    ) -> Gradient:
        """The program for arguments and tangents of these types."""
        return Pushed(
            self.target(f),
            self.code,
            key,
            examples=args if tries < 2 else (),
            source=self.source,
            no_exceptions=True,
            tried=tried,
        )


def with_tangents(code: CodeType, count: int) -> CodeType:
    """The code with further parameters, some for each of its own, for its signature; it is kept."""
    found = _with_tangents.get((id(code), count))
    if found is None:
        made = made_with_tangents(code, count)
        found = _with_tangents[id(code), count] = (code, made)
        _without_tangents[id(made)] = (made, code)
    return found[1]


_with_tangents: dict[tuple[int, int], tuple[CodeType, CodeType]] = {}
_without_tangents: dict[int, tuple[CodeType, CodeType]] = {}


def made_with_tangents(code: CodeType, count: int) -> CodeType:
    """Such a code."""
    n = code.co_argcount
    names = [f"tangent {j} of {name}" for j in range(count) for name in code.co_varnames[:n]]
    return code.replace(
        co_varnames=(*code.co_varnames[:n], *names, *code.co_varnames[n:]),
        co_nlocals=code.co_nlocals + len(names),
        co_argcount=n + len(names),
    )


_functions: dict[Any, tuple[CodeType, Any]] = {}  # of functions that capture nothing
MOST_KEPT = 64


def pushes_of(f: Any, n: int, general: Callable[..., Any], count: int = 1) -> Any:
    """A function of n arguments, and their tangents along some directions, that gives all tangents.

    They come behind the value. None where there can be no such function; `general(f, args, kwargs)`
    gives the same where no program fits.
    """
    if type(f) is not FunctionType or not n:
        return None
    key = f, n, count
    kept = _functions.get(key)
    if kept is not None and kept[0] is f.__code__:
        return kept[1]
    inner, source, code = f.__dict__.get("__morula__"), None, f.__code__
    if inner is not None:
        if type(inner) is not Family or inner.keywords:
            return None
        source, code = OfGradient.of_family(inner), inner.signature
    if code.co_argcount != n or code.co_kwonlyargcount or code.co_flags & (VARARGS | VARKEYWORDS):
        return None
    how = (tuple(range(n * (count + 1))), False, False, False, ())
    family = family_by(with_tangents(code, count), f, how, general, source, Pushes)
    if family is None:
        return None
    found = family.function(f)
    if f.__closure__ is None:
        if len(_functions) >= MOST_KEPT:
            _functions.clear()
        _functions[key] = f.__code__, found
    return found


def runs_again(g: Any, args: tuple[Any, ...]) -> bool:
    """Has such a function a program for arguments like these that leaves nothing behind?"""
    family: Pushes = g.__dict__["__morula__"]
    program = family.program(g.__wrapped__, args, None)
    return program.code is not None and program.leaves_nothing
