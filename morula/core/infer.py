"""Type inference on the SSA form, and the resolution of what the types decide.

What a primitive gives is found by calling it on samples, if the rules declare its type stable; what
is read from outside (globals, captured variables) is known by its present value, and guarded: the
program asks at its entry whether it still is so.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import math
import operator
import sys
import warnings
from abc import ABCMeta
from collections.abc import Callable
from dataclasses import dataclass, field
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    NoneType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any, get_args

from morula.core.cotangents import accumulate, projector
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, reachable, substitute
from morula.core.primitives import (
    UNDEFINED,
    actual_attribute,
    actual_item,
    actual_length,
    actual_type,
    advance,
    alias,
    build_named,
    build_tuple,
    check_bound,
    get_cell,
    has_keys,
    import_from,
    import_name,
    load_global,
    maybe_zero,
    never_zero,
    require,
    sum_if_any,
    unpack,
)
from morula.core.registry import (
    Entry,
    Rule,
    asks_inside,
    exact_rule,
    is_declared_call,
    non_differentiable,
    registry,
)
from morula.core.shipped import meet
from morula.core.simplify import PURE, is_simple
from morula.core.traits import (
    Known,
    attribute_rules,
    constant_attribute,
    contents,
    describe,
    detail_matches,
    effects,
    has_constants,
    has_python,
    holds_memory,
    is_compiled,
    is_finest,
    is_sized_by,
    leaves_types,
    only_reads,
    part_of,
    say_once,
    typed_zero,
    with_fixed_attributes,
)
from morula.core.values import (
    MOST_MEMBERS,
    NEVER,
    IteratorOver,
    OneOf,
    Plain,
    Value,
    alternatives,
    coarsened,
    equal,
    followed_of,
    is_fine,
    is_plainly_named,
    is_zero_value,
    join,
    key_of,
    known,
    known_value,
    lose,
    possibilities,
    sample_value,
    types_inside,
    without_contents,
)


@dataclass
class Guards:
    """What the program asks at its entry about the world outside its arguments."""

    globals: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = field(default_factory=dict)
    attributes: dict[tuple[int, str], tuple[Any, str, Any]] = field(default_factory=dict)
    items: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = field(default_factory=dict)
    types: list[tuple[Var, Known]] = field(default_factory=list)
    tests: list[tuple[Callable[..., bool], tuple[Any, ...]]] = field(default_factory=list)
    cells: dict[int, tuple[CellType, str, Any]] = field(default_factory=dict)
    identities: list[tuple[Var, Any]] = field(default_factory=list)
    of_classes: dict[tuple[int, str], tuple[type, str, FunctionType]] = field(default_factory=dict)
    results: dict[Callable[..., bool], None] = field(default_factory=dict)  # asked of the results

    def take_over(self, inner: Guards) -> None:
        """Ask what another program asks, but for what it asks of its own variables."""
        self.globals.update(inner.globals)
        self.attributes.update(inner.attributes)
        self.items.update(inner.items)
        self.cells.update(inner.cells)
        self.of_classes.update(inner.of_classes)
        self.results.update(inner.results)
        self.tests += inner.tests


class Inference:
    """The values of all variables of a function, from those of some."""

    def __init__(
        self, ir: IR, given: dict[Var, Value], results: dict[int, Value] | None = None
    ) -> None:
        self.ir = ir
        self.given = given
        self.results = results or {}  # of functions, by id
        self.types: dict[Var, Value] = {}
        self.expected: dict[Var, Callable[[], Value]] = {}  # of calls of which nothing is known yet
        self.assumed: set[Var] = set()  # given for what examples show
        self.guards = Guards()

    def infer(self) -> None:
        """The values of all variables, by iteration to a fixed point."""
        ir = self.ir
        ir.blocks = reachable(ir)
        self.memory: dict[Any, Any] = {}  # of what the rules follow
        self.own_changes: set[Var] = set()  # calls that change only what this run has made
        self.reads = {c.out: c for c in ir.calls() if c.primitive is getattr and len(c.args) == 2}
        self.bound = self.reads.keys() - self.kept_variables() if self.reads else set()
        begun = {v: self.begin(x) for v, x in self.given.items()}
        types = self.types = {**dict.fromkeys(ir.free), **begun}
        visited = {ir.entry}
        given, is_ahead, result = self.given, self.is_ahead, self.result
        again = True
        while again:
            again = self.grown = False  # until what goes back to the beginning of a loop is no news
            done = set()
            for block in ir.blocks:
                done.add(block)
                if block not in visited:
                    continue
                for call in block.calls:
                    if call.out in given:
                        self.see_more(call)
                        continue
                    if is_ahead(call):
                        continue
                    value = result(call)
                    if value is not NEVER:
                        types[call.out] = value
                for branch in self.open_branches(block):
                    target = branch.block
                    if target is None:
                        continue
                    if target not in visited:
                        visited.add(target)
                        again |= target in done
                    for p, a in zip(target.params, branch.args, strict=True):
                        if p in self.given or (type(a) is Var and a not in types):
                            continue
                        value = self.value(a)
                        new = join(types[p], value) if p in types else value
                        if p not in types or not equal(types[p], new):
                            types[p] = new
                            again |= target in done
            again |= self.grown

    def see_more(self, call: Call) -> None:
        """What a container holds that was assumed to be one, as soon as that is known."""
        given = self.given[call.out]
        if call.out not in self.assumed or type(given) is not Known or given.type not in contents:
            return
        fn, args = self.value(call.fn), [self.value(a) for a in call.args]
        found = None if self.is_ahead(call) else self.result_for(call, fn, args)
        k = None if found is None or found is NEVER else known(found)
        self.types[call.out] = k if k is not None and k.type is given.type else given

    def kept_variables(self) -> set[Operand]:
        """The variables that something else is done with than that they are called."""
        kept = {a for call in self.ir.calls() for a in call.args}
        for block in self.ir.blocks:
            kept.update([x for branch in block.branches for x in (branch.cond, *branch.args) if x])
        return kept

    def open_branches(self, block: Block) -> list[Branch]:
        """The ways out of a block that control may go, as far as is known by now."""
        for i, branch in enumerate(block.branches):
            test = None if branch.cond is None else self.value(branch.cond)
            if type(test) is Const and test.value is True:
                return block.branches[: i + 1]
        return block.branches

    def is_ahead(self, call: Call) -> bool:
        """Does it read what control has not come to yet?"""
        types = self.types
        for x in call.args:
            if type(x) is Var and x not in types:
                return True
        return type(call.fn) is Var and call.fn not in types

    def begin(self, value: Value) -> Value:
        """What is known at first of a value that is given."""
        if type(value) is Known and value.type in contents and value.detail is not None:
            return Known(value.type, contents[value.type].begin(self, value.detail))
        return value

    def value(self, x: Operand) -> Value:
        return x if type(x) is Const else self.types.get(x)  # type: ignore[arg-type]

    def rule_for(self, call: Call) -> Rule | None:
        """The rule that the types of the arguments choose."""
        exact = None if call.keywords else self.exact_rule_for(call)
        return self.rule_by_types(call, "reverse") if exact is None else exact

    def rule_by_types(self, call: Call, table: str) -> Rule | None:
        """The reverse or the forward rule that the types of the arguments choose."""
        assert type(call.fn) is Const
        entry = registry.get(call.fn.value)
        if entry is None or getattr(entry, table) is None:
            return None
        n = len(call.args) - len(call.keywords)
        options = []
        for x in call.args[:n]:
            value = self.value(x)
            if type(value) is Known and value.type is IteratorOver:
                value = None
            if value is None and not entry.has_one_rule(table):
                return None
            options.append([object] if value is None else [k.type for k in possibilities(value)])
        if not entry.is_faithful(table):
            return None
        found = [entry.find_by_types(table, types) for types in itertools.product(*options)]
        rule = found[0]
        if rule is None or not rule.accepts(call.keywords):
            return None
        if any(r is None or r.function is not rule.function for r in found):
            return None
        return rule

    def exact_rule_for(self, call: Call) -> Rule | None:
        """The rule for exactly the types of the arguments, if these are known."""
        types: list[type] = []
        for value in map(self.value, call.args):
            found = [] if value is None else [k.type for k in possibilities(value)]
            if len(found) != 1:
                return None
            types += found
        return exact_rule(call.primitive, tuple(types))

    def may_have_rule(self, call: Call) -> bool:
        """May a rule serve the call, by what is known of the types of the arguments?"""
        entry = registry.get(call.primitive)
        if entry is None or entry.reverse is None:
            return False
        unknown = not entry.is_faithful() or any(self.value(a) is None for a in call.args)
        return unknown or self.rule_for(call) is not None

    def attribute_rule(self, call: Call) -> Any:
        """The rule of an attribute that a call reads: None if it is constant, `ANY` if not known."""
        value = self.value(call.args[0]) if call.primitive is getattr else None
        name = call.args[1] if len(call.args) == 2 else None
        if value is None or type(name) is not Const or type(name.value) is not str:
            return ANY
        found = [attribute_rules.get((k.type, name.value), ANY) for k in possibilities(value)]
        return found[0] if all(rule is found[0] for rule in found) else ANY

    def is_constant(self, call: Call) -> bool:
        """Has a call no derivative, by what is known of the types of its arguments?"""
        if type(call.fn) is not Const or self.may_be_claimed(call):
            return False
        if is_declared_call(call) or self.attribute_rule(call) is None:
            return True
        types: list[Any] = []
        for x in call.args:
            value = self.value(x)
            types += [None] if value is None else [k.type for k in possibilities(value)]
            if asks_inside(call.fn.value):
                types += types_inside(value)
        return is_declared_call(call, tuple([t for t in types if t not in (Plain, IteratorOver)]))

    def may_be_claimed(self, call: Call) -> bool:
        """May a rule from outside serve a call, by what is known of the types of its arguments?"""
        entry = registry.get(call.primitive)
        if entry is None or not entry.claimed:
            return False
        return any(self.may_be_claimed_in(call, entry, table) for table in ("reverse", "forward"))

    def may_be_claimed_in(self, call: Call, entry: Entry, table: str) -> bool:
        """May one of this table serve it?"""
        if getattr(entry, table) is None:
            return False
        given = [self.value(x) for x in call.args[: len(call.args) - len(call.keywords)]]
        if not entry.is_faithful(table) or None in given:
            return True
        options = [[k.type for k in possibilities(x)] for x in given if x is not None]
        found = [entry.find_by_types(table, types) for types in itertools.product(*options)]
        return not all(rule is None or rule.trusted for rule in found)

    def result(self, call: Call) -> Value:
        """What is known of the result of a call; what it does to containers is noted."""
        if type(call.fn) is Var and (method := self.method_called(call)) is not None:
            call = method
        types = self.types
        fn = self.value(call.fn)
        args = [a if type(a) is Const else types.get(a) for a in call.args]  # type: ignore[arg-type]
        value = self.result_for(call, fn, args)
        if value is None and call.out in self.expected:
            value = self.expected[call.out]()
        if value is None and type(fn) is Const and fn.value in ARITHMETIC and Known(Plain) in args:
            return Known(Plain)
        if call.out in self.bound and self.is_method(call):
            return value  # the object is known where the method is called
        leaves = call.out in self.own_changes or (type(fn) is Const and leaves_types(fn.value))
        leaves = leaves or self.gives_number(call, value)
        if value is None or not leaves:
            for a in args:
                lose(a)
            if not is_pure(fn):
                for kind in contents.values():
                    kind.changed(self)
        return value

    def result_for(self, call: Call, fn: Value, args: list[Value]) -> Value:
        """What is known of the result of a call of `fn` with these arguments."""
        if type(fn) is not Const:
            return None
        if type(call.fn) is Var:  # what is called is known all the same
            call = Call(call.out, fn, call.args, call.keywords, call.position)
        transfer = TRANSFERS.get(id(fn.value))
        if transfer is not None:
            return transfer(self, call, args)
        entry = registry.get(fn.value)
        if entry is None:
            return self.result_of_callee(call)
        if not entry.stable:
            return None
        return result_on_samples(fn.value, args, call.keywords)

    def gives_number(self, call: Call, value: Value) -> bool:
        """Does a call run a function that changes nothing, and keeps nothing in its result?"""
        return False

    def is_method(self, read: Call) -> bool:
        """Is what is read a method of a value of known type?"""
        name = read.args[1]
        if type(name) is not Const:
            return False
        return method_of(known(self.value(read.args[0])), name.value) is not None

    def result_of_callee(self, call: Call) -> Value:
        """What is known of the result of a function without a rule."""
        return self.results.get(id(call.primitive))

    def returned(self) -> Value:
        """What is known of the result of the function."""
        found = self.ir.returned()
        results = [self.value(x) for x in found if type(x) is Const or x in self.types]
        return functools.reduce(join, results) if results else NEVER

    def resolve_methods(self) -> bool:
        """A method of a value of known type becomes a function of the value."""
        changed = False
        found: set[Operand] = set()
        for call in self.ir.calls():
            bound = call.primitive
            if type(bound) is BuiltinMethodType and not isinstance(bound.__self__, ModuleType):
                method = method_of(describe(bound.__self__), bound.__name__)
                if method is not None:
                    call.fn, call.args = Const(method), (Const(bound.__self__), *call.args)
                    changed = True
                continue
            method = self.method_called(call)
            if method is not None:
                self.reads[call.fn].removable = True  # type: ignore[index]
                found.add(call.fn)
                call.fn, call.args = method.fn, method.args
                changed = True
        if found:
            self.demand_no_more(found)
        return changed

    def demand_no_more(self, found: set[Operand]) -> None:
        """To read these raises nothing, so nothing waits for it."""
        for block in self.ir.blocks:
            block.calls = [
                c for c in block.calls if c.primitive is not require or c.args[0] not in found
            ]

    def method_called(self, call: Call) -> Call | None:
        """The call of the function that a method of a value of known type is."""
        read = self.reads.get(call.fn) if type(call.fn) is Var else None
        if read is None or type(read.args[1]) is not Const:
            return None
        owner, name = read.args[0], read.args[1].value
        method = method_of(known(self.value(owner)), name)
        if method is None and type(owner) is Const and len(read.args) == 2:
            found = attribute_of_class(owner.value, name)
            if type(found) is classmethod and type(found.__func__) is FunctionType:
                method = found.__func__
                self.guards.of_classes[id(owner.value), name] = (owner.value, name, method)
        if method is None:
            return None
        args = (owner, *call.args)
        return Call(call.out, Const(method), args, call.keywords, call.position)

    def is_decided(self, call: Call, value: Value) -> bool:
        """Is it clear for good whether two operands are one object? Zeros may cease to be zeros."""
        if not getattr(value, "value", True):
            return True
        given = [self.value(a) for a in call.args]
        return all(map(is_none, given)) or is_none_beside(given)

    def resolve_constants(self) -> bool:
        """Variables that are known constants become constants."""
        mapping: dict[Var, Operand] = {}
        for block in self.ir.blocks:
            kept = []
            for call in block.calls:
                value = self.types.get(call.out)
                resolvable = (
                    call.primitive in (load_global, *IMPORTS, getattr, isinstance, type, len)
                    or id(call.primitive) in ANSWERS
                    or (call.primitive in IDENTITY and self.is_decided(call, value))
                )
                captured = call.primitive is get_cell and type(call.args[0]) is Const
                if type(value) is Const and (resolvable or captured):
                    mapping[call.out] = value
                else:
                    kept.append(call)
            block.calls = kept
        substitute(self.ir, mapping)
        return bool(mapping)


def method_of(owner: Known | None, name: str) -> Any:
    """The function that a method of a builtin type is; None where the object may say otherwise."""
    if owner is None or owner.type is None or not is_builtin(owner.type):
        return None
    if issubclass(owner.type, type):
        return None
    method = inspect.getattr_static(owner.type, name, None)
    if type(method) in (MethodDescriptorType, WrapperDescriptorType):
        return method
    if type(method) is FunctionType or not hasattr(type(method), "__get__"):
        return None
    return method if registry.get(method) is not None else None


def is_of_plain_kind(cls: Any) -> bool:
    """Is it a class whose own class adds nothing to how attributes of objects are found?

    An abstract one of a library that has rules may have meanings by its type: those come first.
    """
    if type(cls) is not ABCMeta:
        return type(cls) is type
    meet(cls)
    return typed_zero(cls) is None and projector.dispatch(cls) is projector.dispatch(object)


def attribute_of_class(cls: Any, name: str) -> Any:
    """What stands in a user's class, or in one of its bases, under a name; None if unclear."""
    if type(cls) is not type or is_builtin(cls) or hasattr(type, name):
        return None
    return next((c.__dict__[name] for c in cls.__mro__ if name in c.__dict__), None)


def is_function_of_class(cls: type, name: str, function: FunctionType) -> bool:
    """Has a class this method of its own, or inherited, still?"""
    return getattr(getattr(cls, name, None), "__func__", None) is function


# What gives a number or an array for such.
ARITHMETIC = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.neg,
    operator.pos,
)


def is_pure(fn: Value) -> bool:
    """Does a call of this change nothing?"""
    if type(fn) is not Const:
        return False
    entry = registry.get(fn.value)
    if id(fn.value) in PURE or leaves_types(fn.value):
        return True
    return entry is not None and (entry.stable or entry.constant or entry.pure)


fixed_types: set[type] = set()  # of callables that are what they are


def does_the_same(x: Any, f: FunctionType) -> bool:
    """Is it this function, or one made of the same code in the same namespace, with nothing else?"""
    if x is f:
        return True
    alike = type(x) is FunctionType and x.__code__ is f.__code__ and x.__globals__ is f.__globals__
    return alike and is_bare(x)


def is_bare(f: FunctionType) -> bool:
    """Has a function captured nothing, no default values, no attributes and no rule?"""
    held = f.__closure__ or f.__defaults__ or f.__kwdefaults__ or f.__dict__
    return not held and registry.get(f) is None


def is_fixed(x: Any) -> bool:
    """Is it known by identity: a module, a function, a class, a callable?"""
    if isinstance(x, ModuleType | FunctionType | BuiltinFunctionType | type):
        return True
    return type(x) in fixed_types or registry.get(x) is not None


Transfer = Callable[[Any, Call, list[Value]], Value]
TRANSFERS: dict[int, Transfer] = {}


def transfers(*fns: Any, over: Transfer | None = None) -> Callable[[Transfer], Transfer]:
    """Register what is known of the results of primitives; `over` is what was known, and is used."""

    def register(transfer: Transfer) -> Transfer:
        say_once(TRANSFERS, fns, transfer, over)
        return transfer

    return register


def transfers_like(f: Any, other: Any) -> None:
    """Register that as much is known of the results of a primitive as of those of another one."""
    if id(other) in TRANSFERS:
        say_once(TRANSFERS, (f,), TRANSFERS[id(other)])


ANSWERS: set[int] = set()


def answers(*fns: Any) -> None:
    """Register functions that do nothing but answer, and whose transfers may tell the answer."""
    ANSWERS.update(map(id, fns))


# Arguments that stand for those of a function in its samples, and what the result says of theirs.
StandIns = Callable[[list[Value]], tuple[list[Value], Callable[[Value], Value]]]
STAND_INS: dict[int, StandIns] = {}


def stands_in(*fns: Any) -> Callable[[StandIns], StandIns]:
    """Register how the samples of functions are made smaller than what they stand for."""

    def register(stand_ins: StandIns) -> StandIns:
        say_once(STAND_INS, fns, stand_ins)
        return stand_ins

    return register


RANGE = Known(range)  # how long it is may say how many axes an array has
_results: dict[Any, tuple[Any, Value]] = {}


def result_on_samples(fn: Any, args: list[Value], keywords: tuple[str, ...] = ()) -> Value:
    """What a type-stable primitive gives, found by calling it on small samples."""
    if is_sized_by(fn, args):
        return None
    if RANGE in args:
        short, long = [[Const(range(n)) if a == RANGE else a for a in args] for n in (1, 2)]
        found = [coarsened(result_on_samples(fn, some, keywords)) for some in (short, long)]
        return found[0] if found[0] == found[1] else None
    result: Value = None
    combinations = [list(c) for c in itertools.product(*map(cases, args))]
    if len(combinations) > MOST_MEMBERS**2:
        return None
    for i, combination in enumerate(combinations):
        one = _result(fn, combination, keywords)
        result = one if i == 0 else join(result, one)
        if result is None:
            return None
    return result


def cases(value: Value) -> list[Value]:
    """The alternatives; a truth value may decide a type, as `keepdims` does, so both are tried."""
    if type(value) is Known and value.type is bool:
        return [Const(False), Const(True)]
    if type(value) is Known and value.type is tuple and value.detail is not None:
        items = [alternatives(item) for item in value.detail]
        if 1 < math.prod(map(len, items)) <= MOST_MEMBERS**2:
            return [Known(tuple, combination) for combination in itertools.product(*items)]
    return alternatives(value)


def _result(fn: Any, args: list[Value], keywords: tuple[str, ...]) -> Value:
    # Containers have no samples; what they hold is known in one program only, and would be kept here.
    args = [without_contents(a) for a in args]
    key = (id(fn), keywords, tuple(map(key_of, args)))
    found = _results.get(key)
    if found is None:
        found = _results[key] = ((fn, args), _compute_result(fn, args, keywords))
    return found[1]


def _compute_result(fn: Any, args: list[Value], keywords: tuple[str, ...]) -> Value:
    other_args = STAND_INS.get(id(fn))
    if other_args is not None:
        try:
            args_for, back = other_args(args)
            return back(_call_on_samples(fn, args_for, keywords, True))
        except Exception:  # to samples, then
            pass
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


@transfers(load_global)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    namespace, name = call.args[0].value, call.args[1].value
    try:
        now = load_global(namespace, name)
    except NameError:
        return None
    if is_fixed(now):
        s.guards.globals[id(namespace), name] = (namespace, name, now)
        return Const(now)
    return None


_IMPORT = builtins.__import__


@transfers(import_name)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    """A module that has been imported before, if the program asks whether it is still there."""
    _, name, names, level = [x.value if type(x) is Const else s for x in call.args]
    if type(name) is not str or level != 0 or builtins.__import__ is not _IMPORT:
        return None
    given = name if names else name.partition(".")[0]
    modules = {n: sys.modules.get(n) for n in {name, given}}
    if not all(map(is_imported, modules.values())):
        return None
    for n, module in modules.items():
        s.guards.items[id(sys.modules), n] = (sys.modules, n, module)
    return Const(modules[given])


def is_imported(module: Any) -> bool:
    """Is it a module, and has it been executed to its end?"""
    spec = getattr(module, "__spec__", None)
    return isinstance(module, ModuleType) and not getattr(spec, "_initializing", False)


@transfers(get_cell)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    """What a function captures that is called here, if the program asks for it."""
    cell = call.args[0]
    found = s.guards.cells.get(id(cell.value)) if type(cell) is Const else None
    return None if found is None else Const(found[2])


IMPORTS = (import_name, import_from)
ANY = object()


@transfers(getattr)
@transfers(import_from)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    owner, name = args[0], args[1]
    if type(name) is not Const or len(args) != 2:
        return None
    if type(owner) is OneOf and not hasattr(None, name.value):  # if it is None, an exception comes
        owner = followed_of(owner) or owner
    if type(owner) is Known:
        decided = constant_attribute.get(owner.type)
        found = None if decided is None else decided(owner.detail, name.value)
        if found is not None:
            return Const(found)
        if owner.type in contents and owner.detail is not None:
            held = contents[owner.type].attribute(s, call, owner.detail, name.value)
            if held is not None:
                return held
        entry = registry.get(owner.type)
        stable = entry is not None and entry.stable
        told = (owner.type, name.value) in attribute_rules  # as that of a number
        return result_on_samples(getattr, args) if stable or told else None
    if type(owner) is Const and isinstance(owner.value, tuple(with_fixed_attributes)):
        now = getattr(owner.value, name.value, s)
        return Const(now) if is_fixed(now) or is_simple(now) else None
    if type(owner) is not Const:
        return None
    if (type(owner.value), name.value) in attribute_rules and is_simple(owner.value):
        return Const(getattr(owner.value, name.value))
    if type(attribute_of_class(owner.value, name.value)) in (FunctionType, staticmethod):
        function = getattr(owner.value, name.value)
        if type(function) is FunctionType:
            s.guards.attributes[id(owner.value), name.value] = (owner.value, name.value, function)
            return Const(function)
    if not isinstance(owner.value, ModuleType):
        return None
    now = getattr(owner.value, name.value, s)
    if now is s or not (is_fixed(now) or (has_constants(owner.value) and is_simple(now))):
        return None
    s.guards.attributes[id(owner.value), name.value] = (owner.value, name.value, now)
    return Const(now)


@transfers(maybe_zero)
@transfers(never_zero)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    """Cotangents of values that have details have the same."""
    k = known(args[1]) if len(args) == 2 else None
    return k if k is not None and k.type in is_finest else Known(Plain)


@transfers(check_bound)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    """What goes on is bound."""
    value = args[0]
    if value is None:
        return None
    bound = [
        k for k in alternatives(value) if getattr(known(k), "type", None) is not type(UNDEFINED)
    ]
    return functools.reduce(join, bound, NEVER)


@transfers(build_tuple)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    return Known(tuple, tuple(args))


@transfers(build_named)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    return Known(args[0].value, tuple(args[1:]))  # type: ignore[union-attr]


@transfers(unpack)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    items, n = known(args[0]), args[1]
    if items is None or type(n) is not Const:
        return None
    if (items.type is tuple or is_plainly_named(items)) and items.detail:
        return Known(tuple, items.detail) if len(items.detail) == n.value else None
    if items.type in part_of:
        return Known(tuple, tuple([entry_of(args[0], Const(i)) for i in range(n.value)]))
    item = item_of(items) if items.type in contents else None
    return item if item is NEVER or item is None else Known(tuple, (item,) * n.value)


@transfers(operator.getitem)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    if len(args) != 2:
        return None
    items, key = known(args[0]), args[1]
    if items is not None and (items.type is tuple or is_plainly_named(items)):
        known_items = items.detail or ()
        plain = type(key) is Const and type(key.value) is int
        inside = plain and -len(known_items) <= key.value < len(known_items)  # type: ignore[union-attr]
        return known_items[key.value] if inside else None  # type: ignore[union-attr]
    if items is not None and items.type in contents:
        k = known(key)
        if k is not None and k.type is slice:
            return contents[items.type].part(s, call, items.detail)
        return contents[items.type].at(items.detail, key)
    if items is not None and items.type is range:
        k = known(key)
        return {int: Known(int), slice: Known(range)}.get(k.type) if k is not None else None
    return entry_of(args[0], key)


def entry_of(items: Value, key: Value) -> Value:
    """What `items[key]` gives, by its rule."""
    entry = registry.get(operator.getitem)
    if entry is None or not entry.stable:
        return None
    found = result_on_samples(operator.getitem, [items, key])
    k = known(items)
    return part_of[k.type](k.detail, key) if found is None and k and k.type in part_of else found


@transfers(accumulate, sum_if_any)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    a, b = args
    if is_zero_value(a):
        return b
    if is_zero_value(b):
        return a
    if a is None or b is None:
        return None
    if Known(Plain) in (a, b):
        return Known(Plain)
    return result_on_samples(operator.add, args)


@transfers(alias)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    return args[0]


def lacks(value: Value, *methods: str) -> bool:
    """Is it known that a value is of types without all of these methods?"""
    if value is None or value is NEVER:
        return False
    types = [k.type for k in possibilities(value)]
    return not any([t is Plain or t is IteratorOver or t is None for t in types]) and not any(
        [getattr(t, name, None) is not None for t in types for name in methods]
    )


@transfers(isinstance)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    value, t = args
    if value is None or value is NEVER or type(t) is not Const or not are_classes(t.value):
        return None
    types = {k.type for k in possibilities(value)}
    if IteratorOver in types or not all(isinstance(x, type) for x in types):
        return None
    answers = {issubclass(x, t.value) for x in types}
    return Const(answers.pop()) if len(answers) == 1 else None


def are_classes(x: Any) -> bool:
    """Is it a class, or a tuple or union of classes, of which objects may be instances?"""
    parts = x if type(x) is tuple else get_args(x) if type(x) is UnionType else None
    return isinstance(x, type) if parts is None else all(map(are_classes, parts))


@transfers(type)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    x = known(args[0]) if len(args) == 1 else None
    return None if x is None or x.type is IteratorOver else Const(x.type)


@transfers(iter)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    """An iterator is known by what it runs over."""
    x = known(args[0])
    if x is None or len(args) > 1:
        return None
    return x if x.type is IteratorOver else Known(IteratorOver, x)


@transfers(advance)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
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
    if over.type in contents:
        return None if over.detail is None else contents[over.type].item(over.detail)
    if over.type is zip or over.type is enumerate:
        items = [item_of(known(v)) for v in over.detail]
        if NEVER in items:
            return NEVER
        return Known(tuple, tuple(items if over.type is zip else [Known(int), *items]))
    if over.type is reversed:
        return item_of(known(over.detail[0]))
    if registry.entry(operator.getitem).stable:
        return result_on_samples(operator.getitem, [over, Const(0)])
    return None


def is_number(value: Value) -> bool:
    """Is it known to be a number or an array, so that it is not None?"""
    if type(value) is not Known or value.type in (None, Plain, object):
        return False
    return typed_zero(value.type) is not None or value.type in holds_memory


def is_none_beside(args: list[Value]) -> bool:
    """Is one of two values None, and the other one a number or an array?"""
    return any(is_none(a) and is_number(b) for a, b in (args, args[::-1]))


@transfers(operator.not_, operator.truth)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    return Known(bool)


@transfers(operator.is_not)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    if is_none_beside(args):
        return Const(True)
    return Const(False) if all(map(is_none, args)) else Known(bool)


@transfers(operator.is_)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    if is_none_beside(args) or any(is_other_object(a, b) for a, b in (args, args[::-1])):
        return Const(False)
    if all(map(is_none, args)):
        return Const(True)
    return Const(True) if all(map(is_zero_value, args)) else Known(bool)


IDENTITY = (operator.is_, operator.is_not)


def is_none(value: Value) -> bool:
    """Is it known to be None?"""
    return (type(value) is Known and value.type is NoneType) or (
        type(value) is Const and value.value is None
    )


def is_other_object(a: Value, b: Value) -> bool:
    """Is one a mark, an `object()`, and the other known to be of another type?"""
    if type(a) is not Const or type(a.value) is not object or b is None:
        return False
    return all(k.type not in (None, Plain, object) for k in possibilities(b))


@transfers(zip, enumerate, reversed)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    if call.primitive is zip and call.keywords == ("strict",):
        return Known(zip, tuple(args[:-1]))
    if call.keywords or (call.primitive is not zip and len(args) != 1):
        return None
    return Known(call.primitive, tuple(args))


@transfers(slice)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    return Known(slice, tuple(args)) if None not in args else None


@transfers(len)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    x = known(args[0])
    if x is None or not is_builtin(x.type) or lacks(x, "__len__"):
        return None
    decided = constant_attribute.get(x.type)
    n = None if decided is None else decided(x.detail, "__len__")
    if x.type is tuple and x.detail is not None:
        n = len(x.detail)
    return Known(int) if n is None else Const(n)


def is_builtin(t: type) -> bool:
    """Is it a type whose methods are compiled, and whose objects have no attributes of their own?"""
    return is_compiled(t) or (t.__dictoffset__ == 0 and not any(map(has_python, t.__mro__)))


@transfers(range)
def _(s: Inference, call: Call, args: list[Value]) -> Value:
    without_end = len(args) == 3 and type(args[2]) is Const and not args[2].value
    return None if without_end or any([lacks(x, "__index__") for x in args]) else Known(range)


only_reads(
    advance,
    alias,
    check_bound,
    get_cell,
    load_global,
    unpack,
    build_named,
    build_tuple,
    operator.getitem,
    operator.is_,
    operator.is_not,
    operator.not_,
    operator.truth,
    isinstance,
    type,
    iter,
    zip,
    enumerate,
    reversed,
    len,
    range,
)

non_differentiable(
    actual_type,
    actual_attribute,
    actual_length,
    actual_item,
    has_keys,
    detail_matches,
    require,
)
only_reads(require)
effects(require)
