"""Type inference on the SSA form, and the resolution of what the types decide.

A value is known as a constant (`Const`), by its exact type and a detail (`Known`), or not at all
(None). What a primitive gives is found by calling it on samples, if the rules declare its type
stable; what is read from outside (globals, captured variables) is known by its present value, and
guarded: the program asks at its entry whether it still is so.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from morula.core import errors, primitives
from morula.core.bytecode.lower import lower
from morula.core.cells import promote_cells
from morula.core.cotangents import ZERO, AbstractZero, accumulate
from morula.core.emit import tidy
from morula.core.inline import inline
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, reachable, substitute
from morula.core.primitives import (
    actual_attribute,
    actual_item,
    actual_length,
    actual_type,
    advance,
    build_tuple,
    get_cell,
    load_global,
    make_function,
    set_cell,
    sum_if_any,
    unpack,
)
from morula.core.registry import is_constant, non_differentiable, registry
from morula.core.simplify import is_simple, simplify
from morula.core.ssa import same
from morula.core.traits import (
    Known,
    coarse,
    coarse_detail,
    constant_attribute,
    describe,
    detail_matches,
    detail_tests,
    sample,
)


@dataclass(frozen=True)
class OneOf:
    """A value of one of a few types that rules mostly treat alike, such as int and float."""

    members: frozenset[Known]


Value = Const | Known | OneOf | None
MOST_MEMBERS = 3


class NotSpecialised(Exception):
    """The function goes by the general path."""


@dataclass
class Guards:
    """What the program asks at its entry about the world outside its arguments."""

    globals: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = field(default_factory=dict)
    attributes: dict[tuple[int, str], tuple[Any, str, Any]] = field(default_factory=dict)
    items: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = field(default_factory=dict)
    types: list[tuple[Var, Known]] = field(default_factory=list)
    identities: list[tuple[Var, Any]] = field(default_factory=list)


def join(a: Value, b: Value) -> Value:
    """What is known of a value that is `a` or `b`."""
    if type(a) is Const and type(b) is Const and equal(a, b):
        return a
    if _is_zero(a) and _is_zero(b):
        return Const(ZERO)
    if _is_zero(a):  # cotangents: what a value is where it is not structurally zero
        return b
    if _is_zero(b):
        return a
    if a is None or b is None:
        return None
    x, y = known(a), known(b)
    if x is not None and y is not None and x.type is tuple and y.type is tuple:
        i, j = x.detail, y.detail
        if i is None or j is None or len(i) != len(j):
            return Known(tuple)
        return Known(tuple, tuple([join(p, q) for p, q in zip(i, j, strict=True)]))
    members = possibilities(a) | possibilities(b)
    if len({m.type for m in members}) == 1:
        members = frozenset(map(coarse, members))
    if len(members) == 1:
        return next(iter(members))
    if len(members) > MOST_MEMBERS or any(m.detail is not None for m in members):
        return None
    return OneOf(members)


def _is_zero(value: Value) -> bool:
    return type(value) is Const and isinstance(value.value, AbstractZero)


def possibilities(value: Value) -> frozenset[Known]:
    """The types that a value may have."""
    if type(value) is OneOf:
        return value.members
    k = known(value)
    assert k is not None
    return frozenset((k,)) if is_hashable(k) else frozenset((Known(k.type),))


def is_hashable(k: Known) -> bool:
    """May it stand in a set? Constants inside of tuples may not."""
    return k.type is not tuple and k.type is not slice


def equal(a: Any, b: Any) -> bool:
    """Is the same known of both?"""
    if type(a) is Const and type(b) is Const:
        return same(a, b) or (is_simple(a.value) and repr(a.value) == repr(b.value))
    if type(a) is Known and type(b) is Known:
        return a.type is b.type and equal(a.detail, b.detail)
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and bool(a == b)


def known(value: Value) -> Known | None:
    """Type and detail of a value, where it has one."""
    if type(value) is Const:
        return known_value(value.value)
    return value if type(value) is Known else None


def known_value(x: Any, depth: int = 2) -> Known:
    """What is taken as known of an argument: a tuple by its items, down to some depth."""
    if type(x) is tuple and depth and len(x) <= 32:
        return Known(tuple, tuple([known_value(i, depth - 1) for i in x]))
    return describe(x)


class Inference:
    """The values of all variables of a function, from those of some."""

    def __init__(self, ir: IR, given: dict[Var, Value]) -> None:
        self.ir = ir
        self.given = given
        self.types: dict[Var, Value] = {}
        self.guards = Guards()

    def infer(self) -> None:
        """The values of all variables, by iteration to a fixed point."""
        ir = self.ir
        ir.blocks = reachable(ir)
        types = self.types = dict(self.given)
        visited = {ir.entry}
        changed = True
        while changed:
            changed = False
            for block in ir.blocks:
                if block not in visited:
                    continue
                for call in block.calls:
                    if call.out in self.given:
                        continue
                    value = self.result(call)
                    if call.out not in types or not equal(types[call.out], value):
                        types[call.out] = value
                        changed = True
                for branch in block.branches:
                    target = branch.block
                    if target is None:
                        continue
                    if target not in visited:
                        visited.add(target)
                        changed = True
                    for p, a in zip(target.params, branch.args, strict=True):
                        if type(a) is Var and a not in types:
                            continue
                        value = self.value(a)
                        new = join(types[p], value) if p in types else value
                        if p not in types or not equal(types[p], new):
                            types[p] = new
                            changed = True

    def value(self, x: Operand) -> Value:
        return x if type(x) is Const else self.types.get(x)  # type: ignore[arg-type]

    def result(self, call: Call) -> Value:
        """What is known of the result of a call."""
        fn = self.value(call.fn)
        if type(fn) is not Const:
            return None
        args = [self.value(a) for a in call.args]
        transfer = TRANSFERS.get(id(fn.value))
        if transfer is not None:
            return transfer(self, call, args)
        entry = registry.get(fn.value)
        if entry is None or not entry.stable:
            return None
        return result_on_samples(fn.value, args, call.keywords)

    def resolve_methods(self) -> bool:
        """A method of a value of known type becomes a function of the value."""
        reads = {c.out: c for c in self.ir.calls() if c.primitive is getattr and len(c.args) == 2}
        changed = False
        for call in self.ir.calls():
            bound = call.primitive
            if type(bound) is BuiltinMethodType and not isinstance(bound.__self__, ModuleType):
                method = method_of(describe(bound.__self__), bound.__name__)
                if method is not None:
                    call.fn, call.args = Const(method), (Const(bound.__self__), *call.args)
                    changed = True
                continue
            read = reads.get(call.fn) if type(call.fn) is Var else None
            if read is None or type(read.args[1]) is not Const:
                continue
            owner = self.value(read.args[0])
            method = method_of(known(owner), read.args[1].value)
            if method is None:
                continue
            call.fn, call.args = Const(method), (read.args[0], *call.args)
            read.removable = True
            changed = True
        return changed

    def resolve_constants(self) -> bool:
        """Variables that are known constants become constants."""
        mapping: dict[Var, Operand] = {}
        for block in self.ir.blocks:
            kept = []
            for call in block.calls:
                value = self.types.get(call.out)
                resolvable = call.primitive in (load_global, getattr, isinstance, type, len)
                if type(value) is Const and resolvable:
                    mapping[call.out] = value
                else:
                    kept.append(call)
            block.calls = kept
        substitute(self.ir, mapping)
        return bool(mapping)


class Specialiser(Inference):
    """One function for arguments of known types: callees resolved and inlined, types inferred."""

    max_calls = 600

    def __init__(self, fn: FunctionType, knowns: list[Known], examples: Sequence[Any] = ()) -> None:
        ir = lower(fn.__code__, fn.__globals__).copy()
        super().__init__(ir, dict(zip(ir.params, knowns, strict=True)))
        self.fn = fn
        self.examples = Examples(dict(zip(ir.params, examples, strict=False)))
        self.counted: set[Var] = set()  # iterators and their items that carry no cotangent
        self.bail: Block | None = None  # where control goes if an assumption does not hold
        self.chain_starts: list[tuple[int, int, tuple[Any, ...]]] = []
        self.made: dict[Var, Call] = {}
        self.captured: dict[Var, Var] = {}
        self.leaves: list[Any] = []  # of each parameter: itself, or the list of those of its items

    def run(self) -> None:
        """Infer and resolve until nothing changes."""
        self.read_captured()
        self.take_apart_arguments()
        simplify(self.ir, no_namespace)
        self.limit_size()
        while True:
            self.infer()
            changed = self.resolve_constants()
            changed |= self.resolve_methods()
            changed |= simplify(self.ir, no_namespace)
            self.limit_size()
            if changed or promote_cells(self.ir) or self.inline_calls() or self.assume():
                continue
            if not any([rewrite(self) for rewrite in REWRITES]):
                break
        self.infer()
        if self.bail is not None and not all(map(may_run_twice, self.ir.calls())):
            raise AssumptionsUnsafe

    def limit_size(self) -> None:
        """A very long function goes by the general path, which is transformed faster."""
        if sum(len(b.calls) for b in self.ir.blocks) > self.max_calls:
            raise NotSpecialised("it is too long")

    def assume(self) -> bool:
        """Take values of unknown type to be like the examples; the program asks whether they are.

        Where one is not, the program begins anew on the general path. So nothing may have happened
        before that must not happen twice.
        """
        if not self.examples.given or sum(len(b.calls) for b in self.ir.blocks) > self.max_calls:
            return False
        self.examples.follow(self.ir, self.value)
        found = self.resolve_objects()
        for block in list(self.ir.blocks):
            found |= self.assume_in(block)
        return found

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
            if call.fn in reads and not self.is_not_shadowed(block, read, owner, name):
                continue
            self.guards.attributes[id(k.type), name] = (k.type, name, function)
            call.fn, call.args = Const(function), (owner, *call.args)
            return True
        return False

    def is_not_shadowed(self, block: Block, read: Call, owner: Var, name: str) -> bool:
        """Let the program ask that the object has no attribute in the place of the method."""
        if known(self.types.get(owner)).type.__dictoffset__ == 0:  # type: ignore[union-attr]
            return True
        example = self.examples.given.get(owner)
        if example is None or name in example.__dict__:
            return False
        fields, shadowed, free = self.ir.var(), self.ir.var(), self.ir.var()
        i = block.calls.index(read)
        block.calls[i : i + 1] = [
            Call(fields, Const(actual_attribute), (owner, Const("__dict__")), (), read.position),
            Call(shadowed, Const(operator.contains), (fields, Const(name)), (), read.position),
            Call(free, Const(operator.not_), (shadowed,), (), read.position),
        ]
        self.guard_test(block, i + 3, free)
        return True

    def guard_test(self, block: Block, index: int, test: Var) -> None:
        """Go on behind `index` only if the test holds."""
        ir = self.ir
        if self.bail is None:
            self.bail = ir.block()
            self.bail.calls = [Call(ir.var(), Const(bail_out), ())]
        rest = ir.block()
        rest.calls, rest.branches = block.calls[index:], block.branches
        block.calls = block.calls[:index]
        block.branches = [Branch(rest, (), test), Branch(self.bail)]
        ir.blocks = reachable(ir)

    def assume_in(self, block: Block) -> bool:
        for i, call in enumerate(block.calls):
            x = call.out
            if self.types.get(x) is not None or x in self.given or x not in self.examples.given:
                continue
            example = self.examples.given[x]
            if call.primitive is advance:
                after = self.behind_loop_test(block, call)
                if after is None:
                    continue
                block, i = after, -1
            self.given[x] = coarsened(known_value(example, 1))
            self.guard(block, i + 1, x, self.given[x])  # type: ignore[arg-type]
            return True
        return False

    @staticmethod
    def behind_loop_test(block: Block, call: Call) -> Block | None:
        """The block that control goes to with an item."""
        if len(block.branches) != 2 or block.calls[-2:][0] is not call:
            return None
        return block.branches[1].block

    def guard(self, block: Block, index: int, x: Var, k: Known) -> None:
        """Go on behind `index` only if x is of the type that is assumed."""
        ir = self.ir
        if self.bail is None:
            self.bail = ir.block()
            self.bail.calls = [Call(ir.var(), Const(bail_out), ())]
        rest = ir.block()
        rest.calls, rest.branches = block.calls[index:], block.branches
        block.calls = block.calls[:index]

        def check(test: Var) -> None:
            nonlocal block
            after = ir.block()
            assert self.bail is not None
            block.branches = [Branch(after, (), test), Branch(self.bail)]
            block = after

        def append(fn: Any, *args: Operand) -> Var:
            out = ir.var()
            block.calls.append(Call(out, Const(fn), args))
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
            return x, x
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

    # -- captured variables

    def read_captured(self) -> None:
        """A captured variable that nobody here rebinds is read once, at the entry."""
        ir = self.ir
        rebound = {c.args[0] for c in ir.calls() if c.primitive is set_cell}
        shared = {a for c in ir.calls() if c.primitive not in (get_cell, set_cell) for a in c.args}
        reads = []
        for cell, real in zip(ir.free, self.fn.__closure__ or (), strict=True):
            if cell in rebound or cell in shared:
                raise NotSpecialised("a captured variable is rebound or shared")
            try:
                now = real.cell_contents
            except ValueError:
                raise NotSpecialised("a captured variable is unbound") from None
            uses = [c for c in ir.calls() if c.primitive is get_cell and c.args[0] is cell]
            if not uses:
                continue
            value = ir.var(cell.name)
            reads.append(Call(value, Const(get_cell), (cell, Const(cell.name))))
            for block in ir.blocks:
                block.calls = [c for c in block.calls if c not in uses]
            substitute(ir, {c.out: value for c in uses})
            if is_fixed(now):
                self.guards.identities.append((value, now))
                self.given[value] = Const(now)
            else:
                self.guards.types.append((value, known_value(now)))
                self.given[value] = known_value(now)
            self.captured[value] = cell
        fixed = {v: x for v, x in self.given.items() if type(x) is Const and v in self.captured}
        substitute(ir, fixed)  # type: ignore[arg-type]
        ir.entry.calls[:0] = reads

    # -- inference

    # -- resolution

    def inline_calls(self) -> bool:
        """Inline the calls of Python functions that have no rule; were there any?"""
        ir = self.ir
        self.made = {c.out: c for c in ir.calls() if c.primitive is make_function}
        results: dict[Var, Operand] = {}
        done = False
        for start in list(ir.blocks):
            block, i = start, 0
            while i < len(block.calls):
                call = block.calls[i]
                target = self.inlinable(call)
                if target is None:
                    i += 1
                    continue
                callee, bound, free, code = target
                chain = (*self.chain_of(call), code)
                first = ir.next_id
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
                    keep_positions=callee.filename == ir.filename,
                )
                self.chains_from(first, chain)
                done = True
        substitute(ir, results)
        return done

    def chains_from(self, first: int, chain: tuple[Any, ...]) -> None:
        """Calls whose results have ids from `first` on were inlined by way of this chain."""
        self.chain_starts.append((first, self.ir.next_id, chain))

    def chain_of(self, call: Call) -> tuple[Any, ...]:
        """The codes of the functions by whose inlining the call came here."""
        for first, end, chain in reversed(self.chain_starts):
            if first <= call.out.id < end:
                return chain
        return ()

    def inlinable(self, call: Call) -> Any:
        """The body, the arguments and the cells of a callee that can be inlined."""
        fn = self.value(call.fn)
        free: list[Operand] = []
        if type(fn) is Const and type(fn.value) is FunctionType:
            code, namespace, defaults = (
                fn.value.__code__,
                fn.value.__globals__,
                fn.value.__defaults__,
            )
            kwdefaults = fn.value.__kwdefaults__ or {}
            if is_constant(fn.value) or has_rule(fn.value) or is_ours(fn.value):
                return None
            if fn.value.__closure__:
                return None
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                now = getattr(fn.value, name)
                if now is not None:
                    self.guards.attributes[id(fn.value), name] = (fn.value, name, now)
            for name, now in kwdefaults.items():
                self.guards.items[id(kwdefaults), name] = (kwdefaults, name, now)
        else:
            made = self.made.get(call.fn)  # type: ignore[arg-type]
            if made is None or type(made.args[1]) is not Const:
                return None
            if type(made.args[2]) is not Const or type(made.args[3]) is not Const:
                return None
            code, namespace = made.args[1].value, made.args[0].value  # type: ignore[union-attr]
            defaults, kwdefaults = made.args[2].value, made.args[3].value or {}
            free = list(made.args[5:])
        if code in self.chain_of(call) or code is self.fn.__code__:
            return None
        try:
            callee = inline_form(code, namespace)
        except errors.UnsupportedError:
            return None
        bound = bind(self.ir, call, code, defaults, kwdefaults)
        return None if bound is None else (callee, bound, free, code)


class AssumptionsUnsafe(Exception):
    """The program does what must not happen twice, so it cannot begin anew."""


def bail_out() -> Any:
    """Stands where the program begins anew on the general path."""


def check_type(
    x: Operand, k: Known, append: Callable[..., Var], check: Callable[[Var], None]
) -> None:
    """Append tests of the type and the detail of x; of a tuple also of its items."""
    check(append(operator.is_, append(actual_type, x), Const(k.type)))
    if k.type is tuple:
        if k.detail is None:
            return
        check(append(operator.eq, append(actual_length, x), Const(len(k.detail))))
        for i, inside in enumerate(k.detail):
            if inside is not None:
                check_type(append(actual_item, x, Const(i)), inside, append, check)
    elif k.detail is not None:
        test = detail_tests.get(k.type)
        if test is None:
            check(append(detail_matches, x, Const(k.detail)))
            return
        for attribute, expected, how in test(k.detail):
            check(append(how, append(actual_attribute, x, Const(attribute)), Const(expected)))


class Examples:
    """Values that variables may have, from the arguments of the call for which one compiles."""

    def __init__(self, given: dict[Var, Any]) -> None:
        self.given = given

    def follow(self, ir: IR, value: Callable[[Operand], Value]) -> None:
        """Examples of what is read from the examples: items, attributes, what loops run over."""
        self.value = value
        self.appended = {
            c.args[0]: c.args[1] for c in ir.calls() if c.primitive is primitives.list_append
        }
        changed = True
        while changed:
            changed = False
            for block in ir.blocks:
                for call in block.calls:
                    if call.out not in self.given and (found := self.read(call)) is not _NOTHING:
                        self.given[call.out] = found
                        changed = True
                for branch in block.branches:
                    if branch.block is None:
                        continue
                    for p, a in zip(branch.block.params, branch.args, strict=True):
                        if p not in self.given and type(a) is Var and a in self.given:
                            self.given[p] = self.given[a]
                            changed = True

    def one(self, x: Operand) -> Any:
        """An example of an operand: one that was given, or a sample of its type."""
        if type(x) is Var and x in self.given:
            return self.given[x]
        try:
            return sample_value(self.value(x))
        except KeyError:
            return _NOTHING

    def read(self, call: Call) -> Any:
        if call.primitive is primitives.build_list:
            items = call.args or [a for a in [self.appended.get(call.out)] if a is not None]
            found = [self.one(a) for a in items]
            return _NOTHING if not found or any(x is _NOTHING for x in found) else found
        reader = READERS.get(id(call.primitive))
        if reader is None or call.keywords:
            return _NOTHING
        args = []
        for a in call.args:
            if type(a) is Const:
                args.append(a.value)
            elif a in self.given:
                args.append(self.given[a])
            else:
                args.append(_NOTHING)
        if not args or args[0] is _NOTHING:
            return _NOTHING
        try:
            return reader(*args)
        except Exception:  # there is no such item
            return _NOTHING


_NOTHING = object()


def _example_item(items: Any, key: Any) -> Any:
    if type(items) is dict:
        return items[key] if key is not _NOTHING else next(iter(items.values()))
    if type(items) not in (list, tuple) or type(key) is slice:
        return _NOTHING
    return items[key if type(key) is int else 0]


def _example_attribute(x: Any, name: str) -> Any:
    """An attribute that is in the object itself; nothing is run."""
    fields = getattr(x, "__dict__", None)
    if isinstance(fields, dict) and not isinstance(x, type | ModuleType) and name in fields:
        return fields[name]
    slot = getattr(type(x), name, None)
    return slot.__get__(x) if type(slot) is MemberDescriptorType else _NOTHING


def _example_iterator(x: Any) -> Any:
    return x if type(x) in (list, tuple, range, dict, _Example) else _NOTHING


@dataclass
class _Example:
    """What a loop over zip, enumerate, … gives first."""

    first: Any


def _first_of(x: Any) -> Any:
    return x.first if type(x) is _Example else next(iter(x))


def _example_zip(*xs: Any) -> Any:
    firsts = [_first_of(x) if type(x) in (list, tuple, range, _Example) else _NOTHING for x in xs]
    return _NOTHING if any(x is _NOTHING for x in firsts) else _Example(tuple(firsts))


READERS: dict[int, Callable[..., Any]] = {
    id(operator.getitem): _example_item,
    id(getattr): _example_attribute,
    id(iter): _example_iterator,
    id(advance): _first_of,
    id(unpack): lambda items, n: tuple(items) if type(items) in (list, tuple) else _NOTHING,
    id(zip): _example_zip,
    id(enumerate): lambda x: _Example((0, _first_of(x))),
    id(reversed): lambda x: _Example(x[-1]),
}

# What may be done again if the program begins anew: nothing is left behind by it.
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
        primitives.unpack,
        primitives.as_tuple,
        primitives.format_value,
        primitives.build_string,
        actual_type,
        actual_attribute,
        actual_length,
        actual_item,
        get_cell,
        set_cell,
        load_global,
        advance,
        bail_out,
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


def may_run_twice(call: Call) -> bool:
    """Does a call leave nothing behind, so that the program may begin anew after it?"""
    if type(call.fn) is not Const:
        return False
    entry = registry.get(call.fn.value)
    return id(call.fn.value) in REPEATABLE or (entry is not None and entry.stable)


def has_rule(fn: Any) -> bool:
    """Is there any rule for this callable?"""
    entry = registry.get(fn)
    return entry is not None and entry.reverse is not None


def method_of(owner: Known | None, name: str) -> Any:
    """The function that a method of a builtin type is; None where the object may say otherwise."""
    if owner is None or not _is_builtin(owner.type):
        return None
    method = getattr(owner.type, name, None)
    return method if type(method) in (MethodDescriptorType, WrapperDescriptorType) else None


def function_of_class(t: type, name: str) -> FunctionType | None:
    """The plain function that a class, written in Python, has under a name."""
    if _is_builtin(t) or type(t) is not type:
        return None
    for base in t.__mro__:
        if name in base.__dict__:
            found = base.__dict__[name]
            return found if type(found) is FunctionType else None
    return None


def is_ours(fn: FunctionType) -> bool:
    """Is it one of the core's own functions, such as a primitive?"""
    return str(fn.__globals__.get("__name__")).startswith("morula.core")


def no_namespace(namespace: dict[str, Any]) -> bool:
    """The user's globals are not constant: they are guarded."""
    return False


def is_fixed(x: Any) -> bool:
    """Is it known by identity: a module, a function, a class, a callable?"""
    return isinstance(x, ModuleType | FunctionType | BuiltinFunctionType | type) or (
        registry.get(x) is not None
    )


_inline_forms: dict[tuple[int, int], tuple[Any, IR]] = {}


def inline_form(code: Any, namespace: dict[str, Any]) -> IR:
    """The SSA form of a callee, with as few blocks as can be."""
    found = _inline_forms.get((id(code), id(namespace)))
    if found is None:
        ir = lower(code, namespace).copy()
        tidy(ir)
        if any(b.block is ir.entry for block in ir.blocks for b in block.branches):
            raise AssertionError("the entry of a function is the target of a branch")
        found = _inline_forms[id(code), id(namespace)] = (code, ir)
    return found[1]


@dataclass
class Bound:
    """Arguments of a call, one for each parameter, and the calls that put them together."""

    operands: list[Operand]
    calls: list[Call]


def bind(ir: IR, call: Call, code: Any, defaults: Any, kwdefaults: dict[str, Any]) -> Bound | None:
    """Bind the arguments of a call as Python does; None where only Python can say."""
    n_keywords = len(call.keywords)
    positional = list(call.args[: len(call.args) - n_keywords])
    named = dict(zip(call.keywords, call.args[len(positional) :], strict=True))
    n, n_kwonly = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    if code.co_flags & 0x08:
        return None
    extra = positional[n:]
    if extra and not code.co_flags & 0x04:
        return None
    operands: list[Operand] = positional[:n]
    first_default = n - len(defaults or ())
    for i in range(len(operands), n):
        if names[i] in named and i >= code.co_posonlyargcount:
            operands.append(named.pop(names[i]))
        elif i >= first_default:
            operands.append(Const(defaults[i - first_default]))
        else:
            return None
    for name in names[n : n + n_kwonly]:
        if name in named:
            operands.append(named.pop(name))
        elif name in kwdefaults:
            operands.append(Const(kwdefaults[name]))
        else:
            return None
    if named:
        return None
    calls = []
    if code.co_flags & 0x04:
        rest = Call(ir.var(names[n + n_kwonly]), Const(build_tuple), extra, (), call.position)
        calls.append(rest)
        operands.append(rest.out)
    return Bound(operands, calls)


# -- what primitives give


# What the rules rewrite in a program whose types are known: functions of the Specialiser that say
# whether they changed anything.
REWRITES: list[Callable[[Specialiser], bool]] = []


def rewrites(rewrite: Callable[[Specialiser], bool]) -> Callable[[Specialiser], bool]:
    """Register a rewriting of programs."""
    REWRITES.append(rewrite)
    return rewrite


Transfer = Callable[[Any, Call, list[Value]], Value]
TRANSFERS: dict[int, Transfer] = {}


def transfers(*fns: Any) -> Callable[[Transfer], Transfer]:
    """Register what is known of the results of primitives."""

    def register(transfer: Transfer) -> Transfer:
        for f in fns:
            TRANSFERS[id(f)] = transfer
        return transfer

    return register


_results: dict[Any, tuple[Any, Value]] = {}


def result_on_samples(fn: Any, args: list[Value], keywords: tuple[str, ...] = ()) -> Value:
    """What a type-stable primitive gives, found by calling it on small samples."""
    result: Value = None
    combinations = [list(c) for c in itertools.product(*[alternatives(a) for a in args])]
    if len(combinations) > MOST_MEMBERS**2:
        return None
    for i, combination in enumerate(combinations):
        one = _result(fn, combination, keywords)
        result = one if i == 0 else join(result, one)
        if result is None:
            return None
    return result


def alternatives(value: Value) -> list[Value]:
    """The single types that a value may have."""
    return list(value.members) if type(value) is OneOf else [value]


def _result(fn: Any, args: list[Value], keywords: tuple[str, ...]) -> Value:
    key = (id(fn), keywords, tuple([_key(a) for a in args]))
    found = _results.get(key)
    if found is None:
        found = _results[key] = ((fn, args), _compute_result(fn, args, keywords))
    return found[1]


def _key(value: Value) -> Any:
    """A hashable that stands for what is known."""
    if type(value) is Const:
        return "constant", type(value.value), id(value.value)
    if type(value) is Known and value.type in (tuple, slice) and value.detail is not None:
        return value.type, tuple([_key(v) for v in value.detail])
    return value


def _compute_result(fn: Any, args: list[Value], keywords: tuple[str, ...]) -> Value:
    try:
        return _call_on_samples(fn, args, keywords, True)
    except Exception:  # the samples do not fit: perhaps smaller ones do
        pass
    try:
        return _call_on_samples(fn, args, keywords, False)
    except Exception:  # nothing is known
        return None


def _call_on_samples(fn: Any, args: list[Value], keywords: tuple[str, ...], fine: bool) -> Value:
    """The result for samples with fine details where all arguments have such, else for small ones."""
    fine = fine and all(map(is_fine, args))
    samples = [sample_value(a if fine else coarsened(a)) for a in args]
    n = len(samples) - len(keywords)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = fn(*samples[:n], **dict(zip(keywords, samples[n:], strict=True)))
    value = known_value(y)
    return value if fine else coarsened(value)


def is_fine(value: Value) -> bool:
    """Does what is known have its finest detail, as far as samples go?"""
    if type(value) is not Known:
        return type(value) is Const
    if value.type in (tuple, slice):
        return value.detail is not None and all(map(is_fine, value.detail))
    if value.type is int:
        return False  # its value may decide a shape
    return value.type not in coarse_detail or coarse(value) != value


def coarsened(value: Value) -> Value:
    """The same with coarse details."""
    if type(value) is not Known:
        return value
    if value.type in (tuple, slice) and value.detail is not None:
        return Known(value.type, tuple(map(coarsened, value.detail)))
    return coarse(value)


def sample_value(value: Value) -> Any:
    """A small value of which this is known; KeyError where there is none."""
    if type(value) is Const:
        return value.value
    if type(value) is not Known:
        raise KeyError(value)
    if value.type in (tuple, slice):
        if value.detail is None:
            raise KeyError(value)
        items = [sample_value(v) for v in value.detail]
        return tuple(items) if value.type is tuple else slice(*items)
    return sample(value)


@transfers(load_global)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    namespace, name = call.args[0].value, call.args[1].value  # type: ignore[union-attr]
    try:
        now = load_global(namespace, name)
    except NameError:
        return None
    if is_fixed(now):
        s.guards.globals[id(namespace), name] = (namespace, name, now)
        return Const(now)
    return None


@transfers(getattr)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    owner, name = args[0], args[1]
    if type(name) is not Const or len(args) != 2:
        return None
    if type(owner) is Known:
        decided = constant_attribute.get(owner.type)
        found = None if decided is None else decided(owner.detail, name.value)
        if found is not None:
            return Const(found)
        entry = registry.get(owner.type)
        stable = entry is not None and entry.stable
        return result_on_samples(getattr, args) if stable else None
    if type(owner) is not Const or not isinstance(owner.value, ModuleType):
        return None
    now = getattr(owner.value, name.value, s)
    if now is s or not is_fixed(now):
        return None
    s.guards.attributes[id(owner.value), name.value] = (owner.value, name.value, now)
    return Const(now)


@transfers(build_tuple)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    return Known(tuple, tuple(args))


@transfers(unpack)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    items, n = known(args[0]), args[1]
    if items is not None and items.type is tuple and type(n) is Const and items.detail:
        return items if len(items.detail) == n.value else None
    return None


@transfers(operator.getitem)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    items, key = known(args[0]), args[1]
    if items is not None and items.type is tuple:
        known_items = items.detail or ()
        plain = type(key) is Const and type(key.value) is int
        inside = plain and -len(known_items) <= key.value < len(known_items)  # type: ignore[union-attr]
        return known_items[key.value] if inside else None  # type: ignore[union-attr]
    entry = registry.get(operator.getitem)
    if entry is None or not entry.stable:
        return None
    return result_on_samples(operator.getitem, args, call.keywords)


@transfers(accumulate, sum_if_any)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    a, b = args
    if _is_zero(a):
        return b
    if _is_zero(b):
        return a
    return None if a is None or b is None else result_on_samples(operator.add, args)


@transfers(isinstance)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    x, t = known(args[0]), args[1]
    if x is None or x.type is IteratorOver or type(t) is not Const:
        return None
    return Const(issubclass(x.type, t.value))


@transfers(type)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    x = known(args[0]) if len(args) == 1 else None
    return None if x is None or x.type is IteratorOver else Const(x.type)


@transfers(iter)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    """An iterator is known by what it runs over."""
    x = known(args[0])
    if x is None or len(args) > 1:
        return None
    return x if x.type is IteratorOver else Known(IteratorOver, x)


class IteratorOver:
    """Stands for the type of the iterator over a value of known type, its detail."""


@transfers(advance)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    it = args[0]
    if type(it) is not Known or it.type is not IteratorOver:
        return None
    return item_of(it.detail)


def item_of(over: Any) -> Value:
    """What is known of each item of what is iterated over."""
    if over is None:
        return None
    if over.type is range:
        return Known(int)
    if over.type is tuple:
        if not over.detail:
            return None
        value = over.detail[0]
        for other in over.detail[1:]:
            value = join(value, other)
        return value
    if over.type is zip:
        return Known(tuple, tuple([item_of(known(v)) for v in over.detail]))
    if over.type is enumerate:
        return Known(tuple, (Known(int), item_of(known(over.detail[0]))))
    if over.type is reversed:
        return item_of(known(over.detail[0]))
    if registry.entry(operator.getitem).stable:
        return result_on_samples(operator.getitem, [over, Const(0)])
    return None


@transfers(operator.is_, operator.is_not, operator.not_, operator.truth)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    return Known(bool)


@transfers(zip, enumerate, reversed)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    if call.keywords or (call.primitive is not zip and len(args) != 1):
        return None
    return Known(call.primitive, tuple(args))


@transfers(slice)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    return Known(slice, tuple(args)) if None not in args else None


@transfers(len)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    x = known(args[0])
    if x is None or not _is_builtin(x.type):
        return None
    decided = constant_attribute.get(x.type)
    n = None if decided is None else decided(x.detail, "__len__")
    if x.type is tuple and x.detail is not None:
        n = len(x.detail)
    return Known(int) if n is None else Const(n)


def _is_builtin(t: type) -> bool:
    """Is it a type whose methods are compiled, and whose objects have no attributes of their own?"""
    return not t.__flags__ & (1 << 9) or t.__dictoffset__ == 0


@transfers(range)
def _(s: Specialiser, call: Call, args: list[Value]) -> Value:
    return Known(range)


non_differentiable(actual_type, actual_attribute, actual_length, actual_item, detail_matches)
