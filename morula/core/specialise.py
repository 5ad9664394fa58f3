"""The specialisation of a function: its callees resolved and inlined, its types inferred."""

from __future__ import annotations

import dis
import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from morula.core import errors, primitives
from morula.core.bytecode.lower import lower
from morula.core.cells import promote_cells
from morula.core.cfg import loop_step
from morula.core.collect import collect_generators
from morula.core.displays import make_displays, tell_apart
from morula.core.emit import tidy
from morula.core.examples import Examples, are_unlike_inside
from morula.core.infer import (
    TRANSFERS,
    Inference,
    does_the_same,
    is_bare,
    is_builtin,
    is_fixed,
    is_of_plain_kind,
)
from morula.core.inline import changes_objects, inline
from morula.core.instances import (
    BY_CLASS,
    PLAIN_READING,
    Escapes,
    has_constant_keys,
    is_pending,
    named,
    new_instance,
    presumed,
    resolve_instances,
)
from morula.core.ir import (
    IR,
    Block,
    Branch,
    Call,
    Const,
    Operand,
    Position,
    Var,
    count_uses,
    reachable,
    substitute,
)
from morula.core.keys import MOST_ITEMS, Keys
from morula.core.lift import (
    captured_by,
    captures,
    give_functions,
    holds_stub,
    is_stub,
    lift_functions,
)
from morula.core.primitives import (
    actual_attribute,
    actual_item,
    actual_length,
    actual_type,
    advance,
    build_map,
    build_tuple,
    get_cell,
    has_keys,
    load_global,
    make_cell,
    make_function,
    require,
    set_cell,
)
from morula.core.protected import attempt, has_raised
from morula.core.registry import as_declared, is_constant, on_claim, registry, times_conjugate
from morula.core.simplify import (
    FOLDS,
    captured_by_rule,
    is_trusted,
    rebinds,
    simplify,
    simplify_once,
    simplify_rule,
)
from morula.core.spread import spread_arguments
from morula.core.ssa import split_critical_edges
from morula.core.traits import (
    Known,
    changes_in_place,
    coarse_detail,
    contents,
    deals_in_place,
    detail_matches,
    detail_tests,
    has_effect,
    has_tangent,
    is_inlined,
    is_repeatable,
    is_written,
    names_that_read,
    only_reads,
    parts_of,
    reads_only,
    stays_general,
    typed_zero,
)
from morula.core.tuples import pass_items
from morula.core.unroll import unroll_loops
from morula.core.values import (
    NEVER,
    OneOf,
    Plain,
    Value,
    coarsened,
    has_items,
    known,
    known_value,
    possibilities,
    waits_for_contents,
)
from morula.core.verify import checked
from morula.core.weave import iterate_once, weave_generators
from morula.core.writers import (
    has_meaning_of_its_own,
    may_rebind,
    name_read,
    named_by,
    runs_method_that_writes,
    surroundings,
)

if TYPE_CHECKING:
    from morula.core.callees import Callee, Callees


WRITES_ATTRIBUTES = (
    setattr,
    delattr,
    object.__setattr__,
    object.__delattr__,
    type.__setattr__,
    type.__delattr__,
)


class NotSpecialised(Exception):
    """The function goes by the general path."""


class TooMuchEffort(NotSpecialised):
    """It takes longer than is reasonable to find out what the function does."""


class Specialiser(Inference):
    """One function for arguments of known types: callees resolved and inlined, types inferred."""

    max_calls = 2000
    max_effort = 30_000

    def __init__(
        self,
        fn: FunctionType,
        knowns: Sequence[Value],
        callees: Callees,
        examples: Sequence[Any] = (),
        keywords: Sequence[str] = (),
        own_objects: bool = True,
        no_exceptions: bool = False,
        ir: IR | None = None,
    ) -> None:
        self.no_exceptions = no_exceptions  # is it taken for granted that none is raised?
        self.protected = False  # would one be handled?
        if ir is None:
            ir = lower(fn.__code__, fn.__globals__)
            self.protected = no_exceptions and handles_exceptions(ir)
            ir = assuming_no_exceptions(ir) if self.protected else without_exceptions(ir).copy()
            if fn.__code__.co_flags & inspect.CO_VARKEYWORDS:
                name_keywords(ir, fn.__code__, keywords)
        super().__init__(ir, dict(zip(ir.params, knowns, strict=True)))
        self.fn = fn
        self.callees = callees
        self.called: set[Var] = set()  # results of calls that are not inlined
        self.examples = Examples(dict(zip(ir.params, examples, strict=False)))
        self.counted: set[Var] = set()  # iterators, their items and tests: they carry no cotangent
        self.narrowed: dict[Var, Value] = {}  # that were asked for None, by what was known of them
        self.key_loops: list[Operand] = []  # dicts over whose keys, which are counted, loops run
        self.writes_in_place = False  # does a call change a value that goes by value?
        self.own_meanings: dict[str, bool] = {}  # has a class of the user's a method of this name?
        self.bail: Block | None = None  # where control goes if an assumption does not hold
        self.made: dict[Var, Call] = {}
        self.captured: dict[Var, Var] = {}
        self.own_cells: set[Var] = set()  # in the place of captured ones, for functions made here
        self.left_general: set[Var] = set()  # derivatives that it takes by the general path
        self.may_expect = True  # may the types of derivatives be guessed before they are built?
        self.own_objects = own_objects  # are objects that it makes taken for its own?
        self.keeps_objects = False  # and those that it puts into others for objects that it knows?
        self.leaves_objects = False  # does it know more of others that it makes than it uses?
        self.presumes = False  # does it leave out for now what depends on the classes of objects?
        self.by_bodies = True  # may functions stand in the place of others, to be compiled as well?
        self.has_bodies = False  # does one?
        self.by_forward_rules = False  # do functions stay calls that have no other rule?
        self.in_several_runs = False  # one that calls a function several times?
        self.hoped: dict[Var, tuple[Var, type]] = {}  # what asks whether a variable is one of these
        self.assumed_keys: dict[Var, tuple[Any, ...]] = {}  # of dicts and lists from outside
        self.leaves: list[Any] = []  # of each parameter: itself, or the list of those of its items
        self.effort = 0  # calls that were looked at, in all rounds
        self.unrolled = 0  # calls that there are more of by the unrolling of loops

    def run(self) -> None:
        """Infer and resolve until nothing changes."""
        self.read_captured()
        self.take_apart_arguments()
        simplify(self.ir, no_namespace)
        self.limit_size()
        while True:
            self.infer()
            changed = self.resolve_constants()
            self.leave_to_libraries()
            changed |= self.resolve_methods()
            changed |= simplify_once(self.ir, no_namespace)
            changed |= spread_arguments(self.ir) | collect_generators(self.ir)
            changed |= lift_functions(self)
            changed |= iterate_once(self) or weave_generators(self.ir)
            self.limit_size()
            checked("specialisation", self.ir)
            if changed or promote_cells(self.ir) or self.inline_calls():
                continue
            if any([put_in(self) for put_in in DERIVATIVES]):
                continue
            if tell_apart(self) or unroll_loops(self) or make_displays(self) or pass_items(self):
                continue
            if self.own_objects and resolve_instances(self):
                continue
            if self.assume_extents() or any([spell(self) for spell in SPELLINGS]) or self.assume():
                continue
            if not any([rewrite(self) for rewrite in REWRITES]):
                break
        for block in self.ir.blocks:
            block.calls = [c for c in block.calls if c.primitive is not captures]
        self.infer()
        if any(c.out in self.expected for c in self.ir.calls()):
            raise NotAsExpected
        if self.in_several_runs and not all(may_run_twice(self, c) for c in self.ir.calls()):
            raise NotSpecialised("a function with effects runs several times")
        if self.own_objects and any(map(self.is_left_over, self.ir.calls())):
            raise Escapes
        if self.protected and not all(may_run_twice(self, c) for c in self.ir.calls()):
            raise ExceptionsMatter
        if any(map(self.writes_what_was_taken, self.ir.calls())) or self.may_lose_what_was_taken():
            raise NotSpecialised("a global or an attribute that was taken as it is may be rebound")
        if (self.captured or self.guards.cells) and self.may_be_rebound():
            raise NotSpecialised("a captured variable may be rebound by what it calls")
        if any(map(self.is_lifted_in_vain, self.ir.calls())) or self.hands_on_lifted():
            raise NotSpecialised("a local function that calls itself is more than called")
        if any(self.own_cells.intersection(c.operands()) for c in self.ir.calls()):
            raise NotSpecialised("a captured variable is shared with a function that stays")
        if self.bail is not None and not all(map(self.may_be_before_bail, self.before(self.bail))):
            raise AssumptionsUnsafe
        if self.assumed_keys and any(map(self.may_change_keys, self.ir.calls())):
            raise AssumptionsUnsafe
        self.writes_in_place = any(map(self.changes_value, self.ir.calls()))

    def is_left_over(self, call: Call) -> bool:
        """Is it the making of an object that is not followed, or a question about one?"""
        if call.primitive is not new_instance:
            return call.out in self.hoped or call.primitive is presumed
        value = self.value(call.out)
        followed = type(value) is Known and value.type in contents
        return not (followed and contents[value.type].is_followed(value.detail))  # type: ignore[union-attr]

    def result(self, call: Call) -> Value:
        """What is known of the result of a call."""
        return NEVER if self.presumes and is_pending(self, call) else super().result(call)

    def is_lifted_in_vain(self, call: Call) -> bool:
        """Is what stands for a local function called without being specialised, or not called?"""
        if is_stub(call.primitive) and self.callee_of(call) is None:
            return True
        return any(type(a) is Const and holds_stub(a.value) for a in call.args)

    def hands_on_lifted(self) -> bool:
        """Does a block hand it on to another one, or the program to its caller?"""
        handed = [a for b in self.ir.blocks for branch in b.branches for a in branch.args]
        return any(type(a) is Const and holds_stub(a.value) for a in handed)

    def may_be_before_bail(self, call: Call) -> bool:
        """May the program begin anew after a call? Writes to arrays not its own are refused anyhow."""
        return may_run_twice(self, call) or self.changes_value(call)

    def before(self, end: Block) -> list[Call]:
        """The calls that may have run where control comes to a block."""
        entries = self.ir.predecessors()
        found, work = {end}, [end]
        while work:
            for block, _ in entries.get(work.pop(), ()):
                if block not in found:
                    found.add(block)
                    work.append(block)
        return [call for block in found for call in block.calls]

    def leave_to_libraries(self) -> None:
        """What belongs to a library that differentiates its own values goes by the general path."""
        if not stays_general:
            return
        seen: list[Any] = [c.primitive for c in self.ir.calls()]
        seen += [x for fn in seen for x in named_by(fn)]
        for value in self.types.values():
            if value is not None:
                seen += [k.type for k in possibilities(value)]
        if any(test(x) for x in seen for test in stays_general):
            raise NotSpecialised("it belongs to a library that differentiates its own values")

    def changes_value(self, call: Call) -> bool:
        """May a call change an array in place? Then it matters when other calls read it."""
        if type(call.fn) is not Const or self.runs_unknown_code(call):
            reached = self.deals_with_arrays and any(map(self.may_reach_arrays, call.operands()))
            return reached and not self.only_reads_by_name(call)
        first = self.value(call.args[0]) if call.args else None
        types = [] if first is None else [k.type for k in possibilities(first)]
        if not types and call.args and not self.deals_with_arrays:
            types = [object]
        fn, n = call.fn.value, len(call.args) - len(call.keywords)
        if self.deals_with_arrays and self.runs_methods_that_write(call, types):
            return True
        return any(test(fn, types, n, call.keywords) for test in changes_in_place)

    def only_reads_by_name(self, call: Call) -> bool:
        """Is it a method of something unknown, but of a name that only arrays and the like have?"""
        name = next((name_read(c) for c in self.ir.calls() if c.out is call.fn), None)
        if name not in names_that_read or "out" in call.keywords:
            return False
        if len(call.args) - len(call.keywords) > names_that_read[name]:
            return False
        if name not in self.own_meanings:
            roots = [self.fn, *self.values_at_hand()]
            self.own_meanings[name] = has_meaning_of_its_own(roots, name)
        return not self.own_meanings[name]

    def runs_methods_that_write(self, call: Call, types: list[type]) -> bool:
        """May a call run a method of its first operand, by the types that this may have, that writes?

        If they are not known, it may be of any class that the program makes objects of.
        """
        if not types and call.args:
            consts = [c.fn.value for c in self.ir.calls() if type(c.fn) is Const]
            made = {id(x): x for x in consts if isinstance(x, type)}
            types = [cls for cls in made.values() if not is_builtin(cls)]
        name = getattr(call.args[1], "value", None) if len(call.args) > 1 else None
        return any(runs_method_that_writes(call.primitive, t, name) for t in types)

    @functools.cached_property
    def deals_with_arrays(self) -> bool:
        """Is an array seen anywhere? Else, what is unknown is taken for none; if it is one, and is
        written to, the call says so when it happens.
        """
        seen: list[Any] = [c.primitive for c in self.ir.calls()]
        seen += [x for fn in seen for x in named_by(fn)]
        for value in self.types.values():
            if value is not None:
                seen += [k.type for k in possibilities(value)]
        if any(test(x) for x in seen for test in deals_in_place):
            return True
        waiting, known_ids = list(self.examples.given.values()), set()
        while waiting:
            x = waiting.pop()
            if type(x) in coarse_detail:
                return True
            if id(x) not in known_ids:
                known_ids.add(id(x))
                waiting += (parts_of(x) or {}).values()
        return False

    def runs_unknown_code(self, call: Call) -> bool:
        """Is it the call of a Python function that stays a call, and has no rule?"""
        fn = call.primitive
        return (
            type(fn) is FunctionType
            and not (is_constant(fn) or has_rule(fn) or is_ours(fn))
            and self.callee_of(call) is None
        )

    def may_reach_arrays(self, x: Operand) -> bool:
        """May an operand be an array, or hold one?"""
        value = self.value(x)
        if type(value) is Const and callable(value.value):
            return False
        return value is None or not all(
            typed_zero(k.type) is not None or k.type is Plain or not has_tangent(k.type)
            for k in possibilities(value)
        )

    def limit_size(self) -> None:
        """A very long function goes by the general path, which is transformed faster.

        So does one that takes too many rounds: it calls what calls more and more of a library.
        """
        size = sum(len(b.calls) for b in self.ir.blocks)
        self.effort += size
        if size > self.max_calls:
            raise NotSpecialised("it is too long")
        if self.effort > self.max_effort:
            raise TooMuchEffort("it calls too much code of others")

    def assume(self) -> bool:
        """Take values of unknown type to be like the examples; the program asks whether they are.

        Where one is not, the program begins anew on the general path. So nothing may have happened
        before that must not happen twice.
        """
        if not self.examples.given or sum(len(b.calls) for b in self.ir.blocks) > self.max_calls:
            return False
        self.examples.follow(self.ir, self.value)
        found = self.assume_functions() or self.resolve_objects()
        for block in list(self.ir.blocks):
            found |= self.assume_in(block)
        return found

    def assume_extents(self) -> bool:
        """Take dicts and lists of unlike values to have the keys, or the length, of the examples.

        Those of values that are alike are as well looped over, whatever their keys are; but what a
        dict is copied into is looked into by key.
        """
        if not self.examples.given:
            return False
        self.examples.follow(self.ir, self.value)
        keys = Keys(self.ir, self.assumed_keys)
        for x, example in self.examples.given.items():
            if not isinstance(example, (dict, list)) or x in self.assumed_keys:
                continue
            k = known(self.value(x))
            if k is None or k.type not in (dict, list) or k.type is not type(example):
                continue
            if not 0 < len(example) <= MOST_ITEMS:
                continue
            if not (is_of_the_unlike(example) or (k.type is dict and keys.is_copied(x))):
                continue
            if x not in keys.made and x not in self.ir.entry.params:
                continue
            names = tuple(example) if k.type is dict else tuple(range(len(example)))
            if keys.are_run_over(x, names):
                self.assumed_keys[x] = names
                self.ask_for_keys(x, names)
                return True
        return False

    def ask_for_keys(self, x: Var, names: tuple[Any, ...]) -> None:
        """Let the program go on behind the making of x only if it has these keys, or this length."""
        home, i = self.ir.entry, 0
        for block in self.ir.blocks:
            for j, call in enumerate(block.calls):
                if call.out is x or (x in self.captured and call.out in self.captured):
                    home, i = block, j + 1  # what it has captured is read before all questions
        test = self.ir.var()
        home.calls.insert(i, Call(test, Const(has_keys), (x, Const(names))))
        self.counted.add(test)
        self.guard_test(home, i + 1, test)

    def may_change_keys(self, call: Call) -> bool:
        """May a call change which keys, or how many items, what was asked for them has?"""
        if type(call.fn) is not Const:
            return True
        if self.callee_of(call) is not None or call.out in self.own_changes:
            return False
        if call.primitive in UNDER_CONSTRUCTION:
            return False
        if self.runs_unknown_code(call):
            return True
        if not changes_objects(call.fn.value) or not call.args or call.args[0] in self.assumed_keys:
            return False
        k = known(self.value(call.args[0]))
        return k is None or issubclass(k.type, (dict, list))

    def resolve_objects(self) -> bool:
        """Calls of objects, and of their methods, become calls of the functions of their class."""
        reads = {c.out: (b, c) for b in self.ir.blocks for c in b.calls if c.primitive is getattr}
        for call in self.ir.calls():
            if type(call.fn) is not Var:
                continue
            owner, name = call.fn, "__call__"
            if call.fn in reads:
                block, read = reads[call.fn]
                if len(read.args) != 2 or type(read.args[1]) is not Const:
                    continue
                if type(read.args[0]) is not Var:
                    continue
                owner, name = read.args[0], read.args[1].value
            k = known(self.types.get(owner))
            function = None if k is None else function_of_class(k.type, name)
            if function is None or k is None:
                continue
            if call.fn in reads and not reads_plainly(k.type):
                continue
            if call.fn in reads and not self.is_not_shadowed(block, read, owner, name):
                continue
            self.guards.attributes[id(k.type), name] = (k.type, name, function)
            call.fn, call.args = Const(function), (owner, *call.args)
            return True
        return False

    def is_not_shadowed(self, block: Block, read: Call, owner: Var, name: str) -> bool:
        """Let the program ask that the object has no attribute in the place of the method."""
        if known(self.types.get(owner)).type.__dictoffset__ == 0:  # type: ignore[union-attr]
            read.removable = True
            return True
        example = self.examples.given.get(owner)
        if example is None or name in example.__dict__:
            return False
        fields, shadowed, free = self.ir.var(), self.ir.var(), self.ir.var()
        self.counted.update((fields, shadowed, free))
        i = block.calls.index(read)
        read.removable = True
        block.calls[i:i] = [
            Call(fields, Const(actual_attribute), (owner, Const("__dict__")), (), read.position),
            Call(shadowed, Const(operator.contains), (fields, Const(name)), (), read.position),
            Call(free, Const(operator.not_), (shadowed,), (), read.position),
        ]
        self.guard_test(block, i + 3, free)
        return True

    def guard_test(self, block: Block, index: int, test: Var) -> None:
        """Go on behind `index` only if the test holds."""
        rest = self.split(block, index)
        block.branches = [Branch(rest, (), test), Branch(self.bail)]
        self.ir.blocks = reachable(self.ir)

    def split(self, block: Block, index: int) -> Block:
        """The block of what stands behind `index`; a way to begin anew is there as well."""
        ir = self.ir
        if self.bail is None:
            self.bail = ir.block()
            self.bail.calls = [Call(ir.var(), Const(bail_out), ())]
        return ir.cut(block, index)

    def assume_in(self, block: Block) -> bool:
        for i, call in enumerate(block.calls):
            x = call.out
            if self.types.get(x) is not None or x in self.given:
                continue
            if (guess := self.examples.guess(call)) is not None:
                self.given[x] = guess
                self.guard(block, i + 1, x, guess)
                return True
            if x not in self.examples.given:
                continue
            example = self.examples.given[x]
            if call.primitive is advance:
                after = self.behind_loop_test(block, call)
                if after is None:
                    continue
                block, i = after, -1
            if is_fixed(example):
                self.assume_identity(block, i + 1, x, example)
                return True
            self.given[x] = coarsened(known_value(example, 1))
            self.assumed.add(x)
            self.guard(block, i + 1, x, self.given[x])
            return True
        return False

    def assume_functions(self) -> bool:
        """An argument that is a function which has captured nothing is taken for that function."""
        uses = count_uses(self.ir)
        for x in self.ir.entry.params:
            example = self.examples.given.get(x)
            closure = getattr(example, "__closure__", None)
            if x in uses and x not in self.assumed and is_fixed(example) and not closure:
                self.assumed.add(x)
                behind = sum(
                    c.out in self.captured for c in self.ir.entry.calls
                )  # these come first
                bare = type(example) is FunctionType and is_bare(example)
                test = does_the_same if bare else operator.is_
                self.assume_identity(self.ir.entry, behind, x, example, test)
                return True
        return False

    def assume_identity(
        self, block: Block, index: int, x: Var, fixed: Any, test: Any = operator.is_
    ) -> None:
        """Take x for this function, class or module; the program asks whether it is that."""
        same = self.ir.var()
        substitute(self.ir, {x: Const(fixed)})
        block.calls.insert(index, Call(same, Const(test), (x, Const(fixed))))
        self.given[x] = Known(type(fixed))  # not the constant: the test would be one, too
        self.guard_test(block, index + 1, same)

    def behind_loop_test(self, block: Block, call: Call) -> Block | None:
        """The block that control goes to with an item, and in no other way."""
        if loop_step(block) is not call:
            return None
        split_critical_edges(self.ir)
        return block.branches[1].block

    def guard(self, block: Block, index: int, x: Var, k: Any) -> None:
        """Go on behind `index` only if x is of the type that is assumed."""
        ir = self.ir
        rest = self.split(block, index)

        def check(test: Var) -> None:
            nonlocal block
            after = ir.block()
            assert self.bail is not None
            block.branches = [Branch(after, (), test), Branch(self.bail)]
            block = after

        def append(fn: Any, *args: Operand) -> Var:
            out = ir.var()
            block.calls.append(Call(out, Const(fn), args))
            self.counted.add(out)
            return out

        check_type(x, k, append, check)
        block.branches = [Branch(rest)]
        ir.blocks = reachable(ir)

    def take_apart_arguments(self) -> None:
        """A tuple that is an argument is put together anew from its items, which are then known."""
        calls: list[Call] = []
        for param in self.ir.params:
            made, leaves = self.take_apart(param, self.given[param], calls)
            self.leaves.append(leaves)
            if made is not param:
                substitute(self.ir, {param: made})
        self.ir.entry.calls[:0] = calls

    def take_apart(self, x: Var, value: Value, calls: list[Call]) -> tuple[Var, Any]:
        if type(value) is not Known or value.type is not tuple or value.detail is None:
            return self.take_apart_named(x, value, calls)
        items, leaves = [], []
        for i, inside in enumerate(value.detail):
            item = self.ir.var(f"{x.name}{i}")
            calls.append(Call(item, Const(operator.getitem), (x, Const(i))))
            made, leaf = self.take_apart(item, inside, calls)
            items.append(made)
            leaves.append(leaf)
        whole = self.ir.var(x.name)
        calls.append(Call(whole, Const(build_tuple), items))
        return whole, leaves

    def take_apart_named(self, x: Var, value: Value, calls: list[Call]) -> tuple[Var, Any]:
        """The same for a named tuple, while it is taken for one of the program's own objects."""
        if type(value) is not Known or not has_items(value):
            return x, x
        if not self.own_objects:
            self.given[x] = Known(value.type)
            return x, x
        items, leaves = {}, NamedLeaves(value.type)
        for i, (name, inside) in enumerate(zip(value.type._fields, value.detail, strict=True)):  # type: ignore[attr-defined]
            item = self.ir.var(name)
            calls.append(Call(item, Const(actual_item), (x, Const(i))))
            self.given[item] = inside
            if x in self.examples.given:
                self.examples.begin_with(item, self.examples.given[x][i])
            items[name], leaf = self.take_apart(item, inside, calls)
            leaves.append(leaf)
        whole = self.ir.var(x.name)
        calls += named(self.ir, whole, value.type, items, Position())
        return whole, leaves

    # -- captured variables

    def read_captured(self) -> None:
        """A captured variable that nobody here rebinds is read once, at the entry."""
        ir = self.ir
        rebound = {c.args[0] for c in ir.calls() if c.primitive is set_cell}
        shared = {a for c in ir.calls() if not only_reads_cells(c) for a in c.args}
        reads = []
        for cell, real in zip(ir.free, self.fn.__closure__ or (), strict=True):
            if cell in rebound or cell in shared:
                raise NotSpecialised("a captured variable is rebound or shared")
            try:
                now = real.cell_contents
            except ValueError:
                raise NotSpecialised("a captured variable is unbound") from None
            uses = [c for c in ir.calls() if c.primitive is get_cell and c.args[0] is cell]
            functions = [c for c in ir.calls() if c.primitive is make_function and cell in c.args]
            if not uses and not functions:
                continue
            value = ir.var(cell.name)
            reads.append(Call(value, Const(get_cell), (cell, Const(cell.name))))
            if functions:
                own = ir.var(cell.name)
                self.own_cells.add(own)
                reads.append(Call(own, Const(make_cell), (value,)))
                for call in functions:
                    call.args = tuple([own if a is cell else a for a in call.args])
            for block in ir.blocks:
                block.calls = [c for c in block.calls if c not in uses]
            substitute(ir, {c.out: value for c in uses})
            if is_fixed(now):
                self.guards.identities.append((value, now))
                self.given[value] = Const(now)
            else:
                self.guards.types.append((value, known_value(now)))
                self.given[value] = known_value(now)
                if self.examples.given:
                    self.examples.begin_with(value, now)
            self.captured[value] = cell
        fixed = {v: x for v, x in self.given.items() if type(x) is Const and v in self.captured}
        substitute(ir, fixed)  # type: ignore[arg-type]
        ir.entry.calls[:0] = reads

    def writes_what_was_taken(self, call: Call) -> bool:
        """May a call rebind a global, or an attribute of a class or module, that was read for good?"""
        if call.primitive is primitives.store_global:
            namespace, name = [x.value for x in call.args[:2] if type(x) is Const]
            return (id(namespace), name) in self.guards.globals
        if call.primitive not in WRITES_ATTRIBUTES:
            return False
        owner, name = (self.value(x) for x in call.args[:2])
        of_classes = self.guards.of_classes.values()
        return any(
            (type(name) is not Const or name.value == taken) and may_own(owner, x)
            for x, taken, _ in (*self.guards.attributes.values(), *of_classes)
        )

    def may_lose_what_was_taken(self) -> bool:
        """May code that it runs, and that is not seen here, rebind a global or an attribute like it?"""
        if not any(map(self.may_run_code, self.ir.calls())):
            return False
        inside = [c.specialiser.guards for c in self.callees.found.values() if c.specialiser]
        guards = [self.guards, *inside]
        variables = {key for g in guards for key in g.globals}
        taken = [x for g in guards for x in g.attributes.values()]
        names = {name for _, name, _ in taken} | {name for g in guards for _, name in g.of_classes}
        has_data = any(isinstance(owner, type) and is_data(x) for owner, _, x in taken)
        return may_rebind(self.values_at_hand(), variables, names, has_data)

    def values_at_hand(self) -> list[Any]:
        """The constants of the program, and examples of its variables."""
        operands = [x for c in self.ir.calls() for x in c.operands()]
        operands += [a for _, a in self.ir.passed()]
        self.examples.follow(self.ir, self.value)
        constants = [x.value for x in operands if type(x) is Const]
        return [*constants, *self.examples.given.values()]

    def may_run_code(self, call: Call) -> bool:
        """May a call run code that is not looked into here?"""
        if type(call.fn) is Var:
            return call.fn not in self.made
        fn = call.fn.value
        if self.callee_of(call) is not None or registry.get(fn) is not None:
            return False
        if isinstance(fn, type):
            return function_of_class(fn, "__init__") is not None
        return type(fn) is FunctionType and not is_ours(fn)

    def may_be_rebound(self) -> bool:
        """May what it calls rebind what it, or a function in it, has captured?

        That does a function that has captured the same; of a callee that is not known, it may.
        """
        if self.captured and any(type(c.fn) is Var for c in self.ir.calls()):
            return True
        if not any(map(self.may_run_code, self.ir.calls())):
            return False
        cells = {*map(id, self.fn.__closure__ or ()), *self.guards.cells}
        found = surroundings([self.fn, *self.values_at_hand()])
        return any(
            rebinds(f.__code__) and not cells.isdisjoint(map(id, f.__closure__ or ()))
            for f, _ in found
            if type(f) is FunctionType
        )

    # -- resolution

    def inline_calls(self) -> bool:
        """Inline the calls of Python functions that have no rule; were there any?"""
        ir = self.ir
        self.made = {c.out: c for c in ir.calls() if c.primitive is make_function}
        self.displays: dict[Operand, Call] = {c.out: c for c in ir.calls()}
        results: dict[Var, Operand] = {}
        done, called = False, len(self.called)
        for start in list(ir.blocks):
            block, i = start, 0
            while i < len(block.calls):
                call = block.calls[i]
                target = self.inlinable(call)
                if target is None:
                    i += 1
                    continue
                callee, bound, free, of = target
                block.calls[i:i] = bound.calls
                i += len(bound.calls)
                block, i = inline(
                    ir,
                    block,
                    i,
                    callee,
                    bound.operands,
                    free,
                    call.removable,
                    results,
                    of,
                )
                done = True
        substitute(ir, results)
        return done or len(self.called) > called

    def inlinable(self, call: Call) -> Any:
        """The body, the arguments and the cells of a callee that can be inlined."""
        fn = self.value(call.fn)
        free: list[Operand] = []
        defaults: Sequence[Operand] | None
        kwdefaults: dict[str, Operand] | None
        if type(fn) is Const and type(fn.value) is FunctionType:
            code, namespace = fn.value.__code__, fn.value.__globals__
            by_name = fn.value.__kwdefaults__ or {}
            if is_constant(fn.value) or self.has_rule(fn.value) or is_ours(fn.value):
                return None
            if "__morula__" in fn.value.__dict__:  # its code is a stub, or holds for other types
                return None
            if is_of_other_mode(namespace) and not is_inlined(fn.value):
                return None
            if fn.value in BY_CLASS:
                return None
            if is_stub(fn.value):
                self.call_lifted(call, fn.value)
                return None
            if fn.value.__closure__ and not self.follows_captured(fn.value):
                return None
            if is_trusted(namespace):
                free = captured_by_rule(fn.value)
            else:
                free = [Const(cell) for cell in fn.value.__closure__ or ()]
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                now = getattr(fn.value, name)
                if now is not None:
                    self.guards.attributes[id(fn.value), name] = (fn.value, name, now)
            for name, now in by_name.items():
                self.guards.items[id(by_name), name] = (by_name, name, now)
            defaults, kwdefaults = constants(fn.value.__defaults__), constants_of(by_name)
        else:
            made = self.made.get(call.fn)  # type: ignore[arg-type]
            if made is None or type(made.args[1]) is not Const:
                return None
            code, namespace = made.args[1].value, made.args[0].value
            defaults, kwdefaults = self.items_put_in(made.args[2]), self.named_in(made.args[3])
            if defaults is None or kwdefaults is None:
                return None
            free = list(made.args[5:])
        bound = bind(self.ir, call, code, defaults, kwdefaults, any_keywords=True)
        if bound is None:
            return None
        if code is self.fn.__code__ or call.position.is_from(code):
            if not free and not bound.calls and not code.co_kwonlyargcount:
                self.call_directly(call, bound)
            return None
        try:
            callee = inline_form(code, namespace)
        except errors.UnsupportedError:
            form = protected_form(code, namespace) if self.no_exceptions else None
            if form is None:
                return None
            callee, self.protected = form, True
        if not is_trusted(namespace):
            return callee, bound, free, (code, namespace)
        call.position = call.position._replace(within=(*call.position.within, code))
        return callee, bound, free, None

    def items_put_in(self, x: Operand) -> Sequence[Operand] | None:
        """The items of a tuple, if it is known what they are."""
        if type(x) is Const:
            return constants(x.value)
        made = self.displays.get(x)
        return made.args if made is not None and made.primitive is build_tuple else None

    def named_in(self, x: Operand) -> dict[str, Operand] | None:
        """The values of a dict, if it is known what they are, and nobody changes it."""
        if type(x) is Const:
            return constants_of(x.value or {})
        made = self.displays.get(x)
        if made is None or not has_constant_keys(made) or count_uses(self.ir)[made.out] != 1:
            return None
        return {k.value: v for k, v in zip(made.args[::2], made.args[1::2], strict=True)}

    def has_rule(self, fn: FunctionType) -> bool:
        """Is there a rule of this mode for a function, or is it not looked into for another reason?"""
        entry = registry.get(fn)
        forward = self.by_forward_rules and entry is not None and entry.forward is not None
        return forward or has_rule(fn)

    def follows_captured(self, fn: FunctionType) -> bool:
        """Does it only read what it has captured? What is known by identity is taken as it is."""
        try:
            ir = inline_form(fn.__code__, fn.__globals__)
        except errors.UnsupportedError:
            return False
        cells = set(ir.free)
        for call in ir.calls():
            others = call.operands()[2 if call.primitive is get_cell else 0 :]
            if not cells.isdisjoint(others):
                return False
        found = {}
        for cell, name in zip(fn.__closure__ or (), fn.__code__.co_freevars, strict=True):
            try:
                now = cell.cell_contents
            except ValueError:
                return False
            if is_fixed(now):
                found[id(cell)] = (cell, name, now)
        self.guards.cells |= found
        return True

    # -- callees

    def call_directly(self, call: Call, bound: Bound) -> None:
        """A function that calls itself is specialised by itself; the call gives all arguments."""
        if call.out in self.called or give_functions(self, call, bound.operands):
            return
        call.args, call.keywords = tuple(bound.operands), ()
        self.called.add(call.out)

    def call_lifted(self, call: Call, stub: FunctionType) -> None:
        """A local function that is lifted gets what it has captured as further arguments."""
        captured = None if call.out in self.called else captured_by(self.ir, stub)
        if captured is None:
            return
        code, defaults = stub.__code__, stub.__defaults__
        own = code.replace(co_argcount=code.co_argcount - len(captured))
        bound = bind(self.ir, call, own, constants(defaults), {})
        if bound is not None:
            call.fn, call.args, call.keywords = Const(stub), (*bound.operands, *captured), ()
            self.called.add(call.out)

    def callee_of(self, call: Call) -> Callee | None:
        """The specialised function that is called, if it is one."""
        if call.out not in self.called:
            return None
        found = self.callees.of(call.primitive, [self.value(a) for a in call.args])
        return None if found.failed else found

    def gives_number(self, call: Call, value: Value) -> bool:
        """Is it that of a callee, whose effects have been looked at?"""
        if value is NEVER:  # it is looked at again when it is known what it is given
            return call.out in self.called
        if value is None or self.callee_of(call) is None:
            return False
        return all(typed_zero(k.type) is not None for k in possibilities(value))

    def result_of_callee(self, call: Call) -> Value:
        """What the specialised function returns."""
        if any(waits_for_contents(self.value(a)) for a in call.args):
            return NEVER
        callee = self.callee_of(call)
        return None if callee is None else callee.result


def is_data(x: Any) -> bool:
    """Is it neither a method nor anything else that says how attributes are read?"""
    return not (callable(x) or hasattr(type(x), "__get__"))


def may_own(owner: Value, x: Any) -> bool:
    """May x, or the class that x has its attributes from, be what this is known of?"""
    if type(owner) is Const:
        return x is owner.value or (
            isinstance(x, type) and any(c is owner.value for c in x.__mro__)
        )
    return owner is None or any(isinstance(x, k.type) for k in possibilities(owner))


class NamedLeaves(list[Any]):
    """The leaves of a named tuple."""

    def __init__(self, cls: type) -> None:
        super().__init__()
        self.cls = cls


def only_reads_cells(call: Call) -> bool:
    """Does a call read or set a captured variable, or make a function that only reads it?"""
    if call.primitive is make_function:
        return type(call.args[1]) is Const and not rebinds(call.args[1].value)
    return call.primitive in (get_cell, set_cell)


def name_keywords(ir: IR, code: CodeType, keywords: Sequence[str]) -> None:
    """Give a function keyword-only parameters of these names in the place of `**kwargs`."""
    n = code.co_argcount + code.co_kwonlyargcount
    whole = ir.params.pop()
    values = [ir.var(name) for name in keywords]
    ir.params[n:n] = values
    pairs = [x for name, value in zip(keywords, values, strict=True) for x in (Const(name), value)]
    ir.entry.calls.insert(0, Call(whole, Const(build_map), pairs))


class ExceptionsMatter(Exception):
    """The program handles exceptions, and does what must not happen twice."""


class NotAsExpected(Exception):
    """A derivative whose type was guessed could not be built."""


class AssumptionsUnsafe(Exception):
    """The program does what must not happen twice, so it cannot begin anew."""


def bail_out() -> Any:
    """Stands where the program begins anew on the general path."""


def go_general() -> Any:
    """Stands where the program begins anew on the general path, and not as another program."""


def assume_less() -> Any:
    """Stands where the program begins anew as one whose folds assume nothing."""


WAYS_OUT = (bail_out, go_general, assume_less)
only_reads(*WAYS_OUT, primitives.raise_exception)


# What puts items into displays and comprehensions, which nobody holds yet.
UNDER_CONSTRUCTION = (
    primitives.list_append, primitives.list_extend, primitives.map_add, primitives.set_add,
)  # fmt: skip


def is_of_the_unlike(x: Any) -> bool:
    """Has a dict, under texts, or a list values of which not the same is known?"""
    if len(x) < 2 or (type(x) is dict and not {str}.issuperset(map(type, x))):
        return False
    return are_unlike_inside(x.values() if type(x) is dict else x)


def check_type(
    x: Operand, k: Known | OneOf, append: Callable[..., Var], check: Callable[[Var], None]
) -> None:
    """Append tests of the type and the detail of x; of a tuple also of its items."""
    if type(k) is OneOf:
        types = tuple(sorted((member.type for member in k.members), key=str))
        check(append(operator.contains, Const(types), append(actual_type, x)))
        return
    assert type(k) is Known
    check(append(operator.is_, append(actual_type, x), Const(k.type)))
    if k.type is tuple or has_items(k):
        if k.detail is None:
            return
        if k.type is tuple:
            check(append(operator.eq, append(actual_length, x), Const(len(k.detail))))
        for i, inside in enumerate(k.detail):
            if inside is not None:
                check_type(append(actual_item, x, Const(i)), inside, append, check)
    elif k.type in contents:
        if k.detail is not None:
            check(append(contents[k.type].holds, x, Const(k.detail)))
    elif k.detail is not None:
        test = detail_tests.get(k.type)
        if test is None:
            check(append(detail_matches, x, Const(k.detail)))
            return
        for attribute, expected, how in test(k.detail):
            check(append(how, append(actual_attribute, x, Const(attribute)), Const(expected)))


REPEATABLE = {
    id(f)
    for f in (
        *(getattr(operator, n) for n in operator.__all__ if n not in ("setitem", "delitem")),
        build_tuple,
        primitives.build_list,
        primitives.build_map,
        primitives.build_set,
        primitives.list_append,
        primitives.list_extend,
        primitives.map_add,
        primitives.make_cell,
        primitives.make_function,
        primitives.check_bound,
        primitives.pull,
        primitives.unpack,
        primitives.as_tuple,
        primitives.format_value,
        primitives.build_string,
        actual_type,
        actual_attribute,
        actual_length,
        actual_item,
        has_keys,
        does_the_same,
        get_cell,
        set_cell,
        load_global,
        advance,
        bail_out,
        primitives.require,
        iter,
        len,
        range,
        zip,
        enumerate,
        reversed,
        slice,
        isinstance,
        type,
        getattr,
        sum,
        min,
        max,
        abs,
        float,
        int,
        detail_matches,
    )
}


def may_run_twice(s: Specialiser, call: Call) -> bool:
    """Does a call leave nothing behind, so that the program may begin anew after it?"""
    if type(call.fn) is not Const:
        return False
    if call.out in s.own_changes or s.callee_of(call) is not None:
        return True
    fn = call.fn.value
    if fn is primitives.raise_exception:
        return raises_ordinary(s, call.args[0])
    if is_ordinary(fn) and fn.__module__ == "builtins":
        return True
    if id(fn) in REPEATABLE or is_repeatable(fn) or reads_only(fn):
        return True
    entry = registry.get(fn)
    return entry is not None and entry.stable


def is_ordinary(cls: Any) -> bool:
    """Is it a class of exceptions other than those that end a program, which nobody may take up?"""
    return isinstance(cls, type) and issubclass(cls, Exception)


def raises_ordinary(s: Specialiser, x: Operand) -> bool:
    """Is what is raised known to be of such a class, or such a class?"""
    if type(x) is Const:
        return isinstance(x.value, Exception) or is_ordinary(x.value)
    return any(c.out is x and is_ordinary(c.primitive) for c in s.ir.calls())


def has_rule(fn: Any) -> bool:
    """Is there any rule for this callable, or is it not looked into for another reason?"""
    entry = registry.get(fn)
    return entry is not None and (entry.reverse is not None or entry.whole)


def function_of_class(t: type, name: str) -> FunctionType | None:
    """The plain function that a class, written in Python, has under a name."""
    if is_builtin(t) or not is_of_plain_kind(t):
        return None
    for base in t.__mro__:
        if name in base.__dict__:
            found = base.__dict__[name]
            return found if type(found) is FunctionType else None
    return None


def reads_plainly(t: type) -> bool:
    """Does a class leave it to Python how attributes of its objects are found?"""
    found: Any = t.__getattribute__
    return found in PLAIN_READING


# Their functions run programs of their own kind: they are called, not inlined.
OTHER_MODES = ("morula.mixed_mode", "morula.interop")


def is_of_other_mode(namespace: dict[str, Any]) -> bool:
    """Is it the namespace of such a module?"""
    return str(namespace.get("__package__")).startswith(OTHER_MODES)


def is_ours(fn: FunctionType) -> bool:
    """Is it one of the core's own functions, such as a primitive?"""
    return str(fn.__globals__.get("__name__")).startswith("morula.core")


def no_namespace(namespace: dict[str, Any]) -> bool:
    """The user's globals are not constant: they are guarded."""
    return False


def without_exceptions(ir: IR) -> IR:
    """The function itself, unless it handles exceptions: such functions run on the general path."""
    if any(call.primitive is attempt for call in ir.calls()):
        raise errors.UnsupportedError(f"{ir.name} handles exceptions")
    return ir


def handles_exceptions(ir: IR) -> bool:
    """Has it `try` or `with` statements?"""
    return any(call.primitive is attempt for call in ir.calls())


def assuming_no_exceptions(ir: IR) -> IR:
    """The same, taking for granted that no exception is raised where one would be handled.

    A program of it that an exception leaves begins anew on the general path. What might raise one is
    computed although nobody may need what it gives (`require`).
    """
    ir = ir.copy()
    never: dict[Var, Operand] = {}
    for block in ir.blocks:
        calls = []
        for call in block.calls:
            if call.primitive is has_raised:
                never[call.out] = Const(False)
                continue
            calls.append(call)
            if call.primitive is attempt:
                call.fn, call.args = call.args[0], call.args[1:]
                calls.append(Call(ir.var(), Const(require), (call.out,), (), call.position))
        block.calls = calls
    substitute(ir, never)
    for block in ir.blocks:
        taken = [b for b in block.branches if type(b.cond) is not Const]
        block.branches = taken[: 1 + next((i for i, b in enumerate(taken) if b.cond is None), 0)]
    ir.blocks = reachable(ir)
    return ir


_inline_forms: dict[tuple[int, int], tuple[Any, IR]] = {}
on_claim.append(_inline_forms.clear)


def inline_form(code: Any, namespace: dict[str, Any]) -> IR:
    """The SSA form of a callee, with as few blocks as can be."""
    found = _inline_forms.get((id(code), id(namespace)))
    if found is None:
        ir = without_exceptions(lower(code, namespace)).copy()
        if is_trusted(namespace):
            for call in ir.calls():
                call.fn = Const(as_declared(call.fn.value)) if type(call.fn) is Const else call.fn
            simplify_rule(ir)
            if inline_helpers(ir):
                simplify_rule(ir)
        tidy(ir)
        if any(b.block is ir.entry for block in ir.blocks for b in block.branches):
            raise AssertionError("the entry of a function is the target of a branch")
        found = _inline_forms[id(code), id(namespace)] = (code, ir)
    return found[1]


_protected_forms: dict[tuple[int, int], tuple[Any, IR | None]] = {}


def protected_form(code: Any, namespace: dict[str, Any]) -> IR | None:
    """That of a callee that handles exceptions, if none is raised."""
    found = _protected_forms.get((id(code), id(namespace)))
    if found is None:
        form = None
        try:
            ir = lower(code, namespace)
            if handles_exceptions(ir) and not is_trusted(namespace):
                form = assuming_no_exceptions(ir)
                tidy(form)
        except errors.UnsupportedError:
            form = None
        found = _protected_forms[id(code), id(namespace)] = (code, form)
    return found[1]


MOST_CALLS = 8  # of a helper that is inlined into the rules that call it, once for all


def inline_helpers(ir: IR) -> bool:
    """Inline what the body of a rule calls, if it is short and straight; was there anything?"""
    results: dict[Var, Operand] = {}
    for block in ir.blocks:
        i = 0
        while i < len(block.calls):
            call = block.calls[i]
            i += 1
            if type(call.primitive) is not FunctionType or not is_helper(call.primitive):
                continue
            helper = call.primitive
            if id(helper) in FOLDS or id(helper) in TRANSFERS:
                continue
            callee = inline_form(helper.__code__, helper.__globals__)
            if len(callee.blocks) > 1 or len(callee.blocks[0].calls) > MOST_CALLS:
                continue
            bound = bind(ir, call, helper.__code__, constants(helper.__defaults__), {})
            if bound is None or helper.__closure__ or not callee.blocks[0].returns:
                continue
            block.calls[i - 1 : i - 1] = bound.calls
            i += len(bound.calls)
            _, i = inline(ir, block, i - 1, callee, bound.operands, (), False, results)
    substitute(ir, results)
    return bool(results)


def is_helper(f: FunctionType) -> bool:
    """Is it a function that rules call, worth inlining: without a loop, of few instructions?"""
    code = f.__code__
    return (
        (f is times_conjugate or str(f.__module__).startswith("morula.rules."))
        and len(code.co_code) <= 240
        and not code.co_cellvars
        and not has_loop(code)
        and not f.__kwdefaults__
        and registry.get(f) is None
        and not is_written(f)
        and not has_effect(f)
    )


@functools.cache
def has_loop(code: Any) -> bool:
    """Does a code object jump back?"""
    return any("JUMP_BACKWARD" in ins.opname for ins in dis.get_instructions(code))


@dataclass
class Bound:
    """Arguments of a call, one for each parameter, and the calls that put them together."""

    operands: list[Operand]
    calls: list[Call]


def constants(values: Sequence[Any] | None) -> list[Operand]:
    """The default values of a function as operands."""
    return [Const(x) for x in values or ()]


def constants_of(values: dict[str, Any]) -> dict[str, Operand]:
    """The same of those that are given by name."""
    return {name: Const(x) for name, x in values.items()}


def bind(
    ir: IR,
    call: Call,
    code: Any,
    defaults: Sequence[Operand],
    kwdefaults: dict[str, Operand],
    any_keywords: bool = False,
) -> Bound | None:
    """Bind the arguments of a call as Python does; None where only Python can say.

    With `any_keywords` also those of a function that takes `**kwargs`.
    """
    n_keywords = len(call.keywords)
    positional = list(call.args[: len(call.args) - n_keywords])
    named = dict(zip(call.keywords, call.args[len(positional) :], strict=True))
    n, n_kwonly = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    if code.co_flags & inspect.CO_VARKEYWORDS and not any_keywords:
        return None
    extra = positional[n:]
    if extra and not code.co_flags & inspect.CO_VARARGS:
        return None
    operands: list[Operand] = positional[:n]
    first_default = n - len(defaults)
    for i in range(len(operands), n):
        if names[i] in named and i >= code.co_posonlyargcount:
            operands.append(named.pop(names[i]))
        elif i >= first_default:
            operands.append(defaults[i - first_default])
        else:
            return None
    for name in names[n : n + n_kwonly]:
        if name in named:
            operands.append(named.pop(name))
        elif name in kwdefaults:
            operands.append(kwdefaults[name])
        else:
            return None
    if any(name in names[code.co_posonlyargcount : n + n_kwonly] for name in named):
        return None  # given twice
    calls = []
    names = names[n + n_kwonly :]
    if code.co_flags & inspect.CO_VARARGS:
        calls.append(Call(ir.var(names[0]), Const(build_tuple), extra, (), call.position))
        names = names[1:]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        pairs = [x for name, value in named.items() for x in (Const(name), value)]
        calls.append(Call(ir.var(names[0]), Const(build_map), pairs, (), call.position))
    elif named:
        return None
    return Bound([*operands, *[c.out for c in calls]], calls)


# What puts the derivatives that a program takes in the place of their calls (nested.py).
DERIVATIVES: list[Callable[[Specialiser], bool]] = []

# What the rules rewrite in a program whose types are known: functions of the Specialiser that say
# whether they changed anything.
REWRITES: list[Callable[[Specialiser], bool]] = []
SPELLINGS: list[Callable[[Specialiser], bool]] = []


def spells(rewrite: Callable[[Specialiser], bool]) -> Callable[[Specialiser], bool]:
    """Register a rewriting that puts Python functions in the place of others.

    It comes before types are assumed: while a function like `max` holds another, what that one has
    captured is known to nobody.
    """
    SPELLINGS.append(rewrite)
    return rewrite


def rewrites(rewrite: Callable[[Specialiser], bool]) -> Callable[[Specialiser], bool]:
    """Register a rewriting of programs."""
    REWRITES.append(rewrite)
    return rewrite
