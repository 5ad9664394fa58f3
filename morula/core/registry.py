"""The registry of rules: which rule serves a call, by multiple dispatch on its arguments.

Rules are kept per primal in a plum `Function`, so the most specific signature wins and an
ambiguity is an error. Whoever compiles an answer of the registry into a program watches the
primal, and is told when a rule for it is added.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, NamedTuple, get_args

import plum

from morula.core import debug, errors
from morula.core.arity import counts_of, fail, is_lasting
from morula.core.cotangents import (
    NONE,
    ZERO,
    NotKnown,
    Thunk,
    accumulate,
    is_zero,
    project_to,
    projected,
    projector,
    unthunk,
)
from morula.core.ir import Call, Const
from morula.core.memory import in_memory
from morula.core.places import tell_place
from morula.core.shipped import meet
from morula.core.traits import (
    IMMUTABLE_TYPE,
    adjoint_object,
    at_once,
    collector,
    cotangent_type,
    from_memory,
    gives_itself,
    gives_old,
    is_abstract,
    is_compiled,
    makes_container,
    memory_of,
    parts_of,
    resolved_by,
    says_itself,
    says_where_to_write,
    space_problem,
    stands_apart,
)

Pullback = Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Rule:
    """One rule: its function, and what it was registered for."""

    primal: Any
    function: Callable[..., Any]
    by_identity: bool = False

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature that the rule's author wrote."""
        return inspect.signature(self.function)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """The names of its positional parameters."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(p.name for p in self.signature.parameters.values() if p.kind in kinds)

    @cached_property
    def keyword_only(self) -> tuple[str, ...]:
        """The names of its keyword-only parameters, in their order."""
        kind = inspect.Parameter.KEYWORD_ONLY
        return tuple(p.name for p in self.signature.parameters.values() if p.kind is kind)

    @cached_property
    def variadic(self) -> bool:
        """Does it take `*args`?"""
        kind = inspect.Parameter.VAR_POSITIONAL
        return any(p.kind is kind for p in self.signature.parameters.values())

    @cached_property
    def takes_any_keyword(self) -> bool:
        """Does it take `**kwargs`?"""
        kind = inspect.Parameter.VAR_KEYWORD
        return any(p.kind is kind for p in self.signature.parameters.values())

    @cached_property
    def trusted(self) -> bool:
        """Is it one of Morula's own, which the test-suite checks against finite differences?"""
        return is_own(self.function)

    def accepts(self, keywords: Iterable[str]) -> bool:
        """Does the rule honour each of these keyword arguments?"""
        if not keywords:
            return True
        by_place = inspect.Parameter.POSITIONAL_ONLY
        named = [k for k in self.positional if self.signature.parameters[k].kind is not by_place]
        known = {*named, *self.keyword_only}
        return self.takes_any_keyword or all(k in known for k in keywords)

    def __str__(self) -> str:
        code = inspect.unwrap(self.function).__code__
        return (
            f"the rule of {errors.qualified_name(self.primal)} "
            f"({code.co_filename}:{code.co_firstlineno})"
        )

    def position_of(self, keyword: str) -> int | None:
        """Where in the pullback's result the cotangent of a keyword argument stands."""
        return self.positions(0, (keyword,))[0]

    def positions(self, n_args: int, keywords: Iterable[str]) -> list[int | None]:
        """Where the cotangents of so many arguments by position, and of those by keyword, stand.

        Those that `**kwargs` takes come last, in the order of the call.
        """
        found: list[int | None] = [*range(n_args)]
        first = self.least(n_args)
        last = first + len(self.keyword_only)
        for k in keywords:
            if k in self.positional:
                found.append(self.positional.index(k))
            elif k in self.keyword_only:
                found.append(first + self.keyword_only.index(k))
            elif self.takes_any_keyword:
                found.append(last)
                last += 1
            else:
                found.append(None)
        return found

    def least(self, n_args: int) -> int:
        """How many cotangents there are at least for a call with so many arguments by position."""
        return max(n_args, len(self.positional)) if self.variadic else len(self.positional)

    def checked(self, cotangents: Any, n_args: int) -> tuple[Any, ...]:
        """The result of the rule's pullback, if it is a tuple of the right length."""
        if type(cotangents) is not tuple:
            raise errors.not_a_tuple(str(self), cotangents)
        least = self.least(n_args)
        most = least + len(self.keyword_only)
        many = self.takes_any_keyword and len(cotangents) > most
        if not (least <= len(cotangents) <= most or many):
            expected = str(least) if least == most else f"{least} to {most}"
            raise errors.wrong_count(str(self), expected, len(cotangents))
        return cotangents


class Entry:
    """All that is registered for one primal."""

    __slots__ = (
        "_by_identity",
        "_cache",
        "_rules",
        "asks",
        "claimed",
        "constant",
        "forward",
        "primal",
        "pure",
        "reverse",
        "stable",
        "types_of",
        "whole",
        "writes",
    )

    def __init__(self, primal: Any) -> None:
        self.primal = primal
        self.constant = False
        self.claimed = False  # by a rule from outside: the callable is not simply constant
        self.asks: Callable[[tuple[Any, ...]], bool] | None = None
        self.types_of: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
        self.writes: Callable[[int, Iterable[str]], bool] | None = None
        self.stable = False
        self.pure = False
        self.whole = False
        self.reverse: plum.Function | None = None
        self.forward: plum.Function | None = None
        self._cache: dict[tuple[Any, ...], Rule | None] = {}
        self._by_identity: set[int] = set()
        self._rules: dict[int, Rule] = {}  # by their functions, so that what they know is kept

    def changed(self) -> None:
        """Forget what was looked up, here and in compiled programs."""
        self._cache.clear()
        self._rules.clear()
        for forget in on_change:
            forget()

    def add(self, table: str, function: Any, by_identity: bool = False) -> None:
        """Register a rule in `reverse` or `forward`."""
        may_be_in_code = type(self.primal) is not FunctionType or self.has_meaning()
        if not callable(function):
            name = errors.qualified_name(self.primal)
            raise errors.RuleError(f"the rule of {name} is to be a function, got {function!r}")
        if by_identity:
            self._by_identity.add(id(function))
        rules = getattr(self, table)
        if rules is None:

            def rules_of(*args: Any) -> Any: ...

            rules_of.__name__ = errors.qualified_name(self.primal)
            rules = plum.Function(rules_of)
            setattr(self, table, rules)
        rules.register(function)
        if not (self.claimed or is_own(function)):
            self.claimed = True
            if may_be_in_code:
                for forget in on_claim:
                    forget()
        self.changed()

    def has_meaning(self) -> bool:
        """Is anything said here of calls of the primal, which transformed code may rest on?"""
        rules = (self.reverse, self.forward)
        return self.constant or self.whole or any(r is not None for r in rules)

    def is_faithful(self, table: str = "reverse") -> bool:
        """Do the types of the arguments, and nothing else of them, decide which rule serves?"""
        rules = getattr(self, table)
        if rules is None:
            return True
        rules._resolve_pending_registrations()
        return bool(rules._resolver.is_faithful)

    def has_one_rule(self, table: str = "reverse") -> bool:
        """Is there one rule only, so that more specific types make no difference?"""
        rules = getattr(self, table)
        if rules is None:
            return False
        rules._resolve_pending_registrations()
        return len(rules._resolver.methods) == 1

    def find(self, table: str, args: tuple[Any, ...]) -> Rule | None:
        """The most specific rule for these arguments."""
        types: tuple[Any, ...] = (table, *map(type, args))
        try:
            return self._cache[types]
        except KeyError:
            pass
        if id(self.primal) in resolved_by and (sizes := sizes_of(types[1:])):
            types = (*types, sizes)
            if types in self._cache:
                return self._cache[types]
        rules = getattr(self, table)
        rule = None if rules is None else self._resolve(rules, args, args)
        if rules is None or rules._resolver.is_faithful:
            self._cache[types] = rule
        return rule

    def find_by_types(self, table: str, types: tuple[type, ...]) -> Rule | None:
        """The most specific rule for arguments of exactly these types."""
        key: tuple[Any, ...] = ("types", table, *types)
        if id(self.primal) in resolved_by:
            key = (*key, sizes_of(types))
        try:
            return self._cache[key]
        except KeyError:
            pass
        rules = getattr(self, table)
        if rules is None:
            return None
        rules._resolve_pending_registrations()
        rule = self._cache[key] = self._resolve(rules, plum.Signature(*types), types)
        return rule

    def _resolve(self, rules: plum.Function, target: Any, shown: tuple[Any, ...]) -> Rule | None:
        for x in shown:  # their packages may ship rules for what is done with them
            meet(x if isinstance(x, type) else type(x))
        try:
            function, _ = rules.resolve_method(target)
        except plum.NotFoundLookupError:
            return None
        except plum.AmbiguousLookupError as error:
            meant = [m for m in error.methods if _means_them(rules, m.implementation, shown)]
            if len(meant) == 1:
                return self._rule(meant[0].implementation)
            candidates = [
                f"{m.signature} at {m.implementation.__code__.co_filename}:"
                f"{m.implementation.__code__.co_firstlineno}"
                for m in error.methods
            ]
            raise errors.ambiguous(self.primal, shown, candidates) from None
        if not _means_them(rules, function, shown) or self._has_own(rules, function, shown):
            return None
        return self._rule(function)

    def _rule(self, function: Callable[..., Any]) -> Rule:
        """The rule with this function, which is registered."""
        found = self._rules.get(id(function))
        if found is None:
            found = Rule(self.primal, function, id(function) in self._by_identity)
            self._rules[id(function)] = found
        return found

    def _has_own(
        self, rules: plum.Function, function: Callable[..., Any], shown: tuple[Any, ...]
    ) -> bool:
        """Do classes that derive from those of a rule say themselves what the primal does?"""
        if id(self.primal) not in resolved_by:
            return False
        signature = _signature_of(rules, function)
        pairs = list(zip(_types_of(shown), signature.types, strict=False))
        return any(
            says_itself(self.primal, i, t, c)
            for i, (t, of_rule) in enumerate(pairs)
            for c in _classes_in(of_rule)
        )


def sizes_of(types: Iterable[type]) -> tuple[int, ...]:
    """How many names classes written in Python have, which may get operators of their own."""
    return tuple([len(vars(c)) for t in types if not is_compiled(t) for c in t.__mro__])


def _means_them(rules: plum.Function, function: Callable[..., Any], shown: tuple[Any, ...]) -> bool:
    """Was the rule written for types that stand apart from their bases, if there are any?"""
    types = _types_of(shown)
    if not any(map(stands_apart, types)):
        return True
    signature = _signature_of(rules, function)
    for i, t in enumerate(types):
        base = stands_apart(t)
        of_rule = signature.types[i] if i < len(signature.types) else signature.varargs
        if base is None or of_rule is Any:
            continue
        if not any(c is object or issubclass(c, base) for c in _classes_in(of_rule)):
            return False
    return True


def _types_of(shown: tuple[Any, ...]) -> list[type]:
    """The types of what is shown, which may be types already."""
    return [x if isinstance(x, type) else type(x) for x in shown]


def _signature_of(rules: plum.Function, function: Callable[..., Any]) -> plum.Signature:
    """That of a rule among those of a primal."""
    return next(m.signature for m in rules._resolver.methods if m.implementation is function)


def _classes_in(of_rule: Any) -> list[type]:
    """The classes that a type of a rule's parameter names."""
    return [c for c in (get_args(of_rule) or (of_rule,)) if isinstance(c, type)]


on_change: list[Callable[[], None]] = []  # called whenever a rule is added anywhere
on_claim: list[Callable[[], None]] = []  # called when a callable gets its first rule from outside


def is_own(x: Any) -> bool:
    """Is the function of a rule, or a class, one of Morula's?"""
    return str(getattr(x, "__module__", None)).split(".")[0] == "morula"


class Registry:
    """Entries by primal; primals are compared by identity."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}

    def entry(self, primal: Any) -> Entry:
        """The entry of a primal, made if there is none."""
        found = self._entries.get(id(primal))
        if found is None:
            found = self._entries[id(primal)] = Entry(primal)
        return found

    def get(self, primal: Any) -> Entry | None:
        """The entry of a primal, if it has one; rules that its package ships are loaded first."""
        found = self._entries.get(id(primal))
        if found is None and meet(primal):
            found = self._entries.get(id(primal))
        return found

    def is_registered(self, primal: Any) -> bool:
        """Is there an entry? Nobody is asked for rules of its."""
        return id(primal) in self._entries

    def __iter__(self) -> Any:
        return iter(list(self._entries.values()))


registry = Registry()


def rrule(
    primal: Any, by_identity: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a reverse rule for a callable: `@rrule(f) def _(a: A, b: B): ... return y, pullback`.

    The rule dispatches on all its positional arguments by their annotations. `pullback(ȳ)` returns
    a tuple: one cotangent per positional parameter, then, if wished, one per keyword-only one.
    It takes effect at the next call. With `by_identity`, the pullback runs even if no cotangent
    reached the value: for what makes or changes mutable objects, whose cotangents are found by
    `adjoint_of`.
    """
    _require_callable(primal, "rrule")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if is_class_method(primal):
            registry.entry(primal.__func__).add(
                "reverse", of_class(function, also_of_class), by_identity
            )
        else:
            registry.entry(primal).add("reverse", function, by_identity)
        return function

    return register


def is_class_method(primal: Any) -> bool:
    """Is it a class method, which is bound anew whenever it is read from its class?"""
    return isinstance(primal, MethodType) and isinstance(primal.__self__, type)


def of_class(
    rule: Callable[..., Any], linear: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """The rule of a class method as one of its function, whose first argument is the class.

    `linear` makes the pullback or the pushforward of the one of the other's.
    """
    signature = inspect.signature(rule, eval_str=True)
    first = inspect.Parameter("_class", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [first, *signature.parameters.values()]

    @wraps(rule)
    def with_class(_class: Any, /, *args: Any, **kwargs: Any) -> Any:
        pair = rule(*args, **kwargs)
        if type(pair) is not tuple or len(pair) != 2:
            return pair
        return pair[0], linear(pair[1])

    with_class.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_class.__annotations__ = {
        p.name: p.annotation for p in parameters if p.annotation is not p.empty
    }
    return with_class


def also_of_class(pullback: Callable[..., Any]) -> Callable[..., Any]:
    """A pullback that gives the class no cotangent."""

    def class_pullback(ȳ: Any) -> Any:
        bars = pullback(ȳ)
        return (NONE, *bars) if type(bars) is tuple else bars

    return class_pullback


def but_of_class(pushforward: Callable[..., Any]) -> Callable[..., Any]:
    """A pushforward that is given the tangent of the class, too: there is none."""
    return lambda _, *tangents: pushforward(*tangents)


_exact: dict[tuple[Any, ...], Rule] = {}


def exactly(
    primal: Any, *types: type, by_identity: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a rule that the specialised path takes for arguments of exactly these types.

    It must mean what the rule for these types means that dispatch finds; it is there for speed.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _exact[(id(primal), *types)] = Rule(primal, function, by_identity)
        return function

    return register


def exact_rule(primal: Any, types: tuple[type, ...]) -> Rule | None:
    """The rule for arguments of exactly these types, if one was registered as such."""
    return _exact.get((id(primal), *types))


def frule(primal: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a forward rule: `@frule(f) def _(a: A): ... return y, pushforward`.

    `pushforward(ȧ, ...)` takes one tangent per positional parameter and gives that of `y`.
    """
    _require_callable(primal, "frule")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if is_class_method(primal):
            registry.entry(primal.__func__).add("forward", of_class(function, but_of_class))
        else:
            registry.entry(primal).add("forward", function)
        return function

    return register


def non_differentiable(*primals: Any) -> Any:
    """Declare callables whose results have no derivative: indices, comparisons, shapes.

    Returns the callable, so that it serves as a decorator too.
    """
    for primal in primals:
        _require_callable(primal, "non_differentiable")
        entry = registry.entry(primal.__func__ if is_class_method(primal) else primal)
        entry.constant = True
        entry.changed()
    return primals[0] if len(primals) == 1 else primals


def constant_unless(
    says: Callable[[tuple[Any, ...]], bool],
    *primals: Any,
    types_of: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None,
) -> None:
    """Declare callables without derivative, unless the types of the arguments say what they mean.

    `says(types)` tells whether they do; None stands for a type that is not known. The types are
    those of the arguments, or what `types_of` gives for them: that of all they hold, too.
    """
    for primal in primals:
        non_differentiable(primal)
        entry = registry.entry(primal)
        entry.asks, entry.types_of = says, types_of


def constant_unless_written(says: Callable[[Any, int, Iterable[str]], bool], *primals: Any) -> None:
    """Say which calls of callables without derivative are not constant, as they write to an argument.

    Or they ask for more than their arguments. `says(primal, n, keywords)` is asked of calls with n
    arguments by position.
    """
    for primal in primals:
        registry.entry(primal).writes = partial(says, primal)


def called_whole(*primals: Any) -> None:
    """Declare Python functions whose own code does not say what they mean: it is never looked into."""
    for primal in primals:
        entry = registry.entry(primal)
        entry.whole = True
        entry.changed()


def type_stable(*primals: Any) -> None:
    """Declare callables for which the types of the arguments decide that of the result.

    For arrays, type means dtype and number of dimensions as well.
    """
    for primal in primals:
        registry.entry(primal).stable = True


def _require_callable(primal: Any, decorator: str) -> None:
    if not callable(primal):
        raise errors.RuleError(
            f"{decorator} needs the callable that the rule is for, got {primal!r}: "
            f"write @{decorator}(f) above the rule"
        )
    if is_bound_anew(primal):
        kind, name = type(primal.__self__).__name__, getattr(primal, "__name__", "__call__")
        raise errors.RuleError(
            f"{decorator} was given the method {name} of one {kind}, which is a new object whenever "
            f"it is read: the rule would never apply. Register it for {kind}.{name}, with the "
            "object as the first argument, or for a name that a module gives to the method"
        )


def is_bound(fn: Any) -> bool:
    """Is it a method of an object, whose function is called next?"""
    owner = getattr(fn, "__self__", None)
    return owner is not None and not isinstance(owner, (ModuleType, type))


def is_bound_anew(primal: Any) -> bool:
    """Is it a bound method of an object that no module has under a name?"""
    kinds = (MethodType, BuiltinFunctionType, MethodWrapperType)
    if not isinstance(primal, kinds) or not is_bound(primal):
        return False
    home = sys.modules.get(type(primal.__self__).__module__)
    if getattr(home, getattr(primal, "__name__", ""), None) is primal:
        return False
    tables = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
    return not any(x is primal for table in tables for x in list(table.values()))


_SCALAR_RULE = """
def make({own}primal, {own}partials, {own}multiply):
    def rule({args}):
        {own}y = {own}primal({args})
        def {name}_pullback({own}ȳ):
            {unpack} = {own}partials({own}y, {args})
            {only}
            return {products},
        return {own}y, {name}_pullback
    def push_rule({args}):
        {own}y = {own}primal({args})
        def {name}_pushforward({tangents}):
            {unpack} = {own}partials({own}y, {args})
            {only}
            return {sum}
        return {own}y, {name}_pushforward
    return rule, push_rule
"""


def scalar_rule(primal: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function of scalars by its partial derivatives; yields the rrule and the frule.

    `@scalar_rule(f) def _(y, a, b): return ∂y_∂a, ∂y_∂b`, from the result and the arguments; for
    one argument the bare derivative serves as well as a 1-tuple. The derivatives are those of a
    holomorphic function where arguments are complex: the pullback conjugates them.
    """
    _require_callable(primal, "scalar_rule")

    def register(partials: Callable[..., Any]) -> Callable[..., Any]:
        parameters = list(inspect.signature(partials, eval_str=True).parameters.values())[1:]
        names = [p.name for p in parameters]
        name = "".join(c for c in getattr(primal, "__name__", "f") if c.isalnum() or c == "_")
        own = "_"  # begins every name of the template's, and none of the parameters
        while any(n.startswith(own) for n in names):
            own += "_"
        source = _SCALAR_RULE.format(
            own=own,
            name=name or "scalar",
            args=", ".join(names),
            unpack=", ".join(f"{own}d_{n}" for n in names),
            only=""
            if len(names) > 1
            else "if isinstance({0}d_{1}, tuple): {0}d_{1}, = {0}d_{1}".format(own, *names),
            products=", ".join(f"{own}multiply({own}ȳ, {own}d_{n})" for n in names),
            tangents=", ".join(f"{own}dot_{n}" for n in names),
            sum=" + ".join(f"{own}d_{n} * {own}dot_{n}" for n in names),
        )
        scope: dict[str, Any] = {"__name__": partials.__module__}
        exec(compile(source, partials.__code__.co_filename, "exec"), scope)
        rules = scope["make"](primal, partials, times_conjugate)
        annotations = {
            p.name: p.annotation for p in parameters if p.annotation is not inspect.Parameter.empty
        }
        for table, rule in zip(("reverse", "forward"), rules, strict=True):
            rule.__annotations__ = dict(annotations)
            registry.entry(primal).add(table, rule)
        return partials

    return register


def times_conjugate(ȳ: Any, derivative: Any) -> Any:
    """`ȳ * conj(derivative)`, the pullback of a holomorphic scalar function."""
    if isinstance(derivative, complex):
        return ȳ * derivative.conjugate()
    return ȳ * derivative


def find_rrule(fn: Any, args: tuple[Any, ...], keywords: Iterable[str] = ()) -> Rule | None:
    """The reverse rule that serves a call, if there is one that honours its keywords."""
    entry = registry.get(fn)
    if entry is None or entry.reverse is None:
        return None
    rule = entry.find("reverse", args)
    if rule is None or (keywords and not rule.accepts(keywords)):
        return None
    by_value = rule.takes_any_keyword and not rule.by_identity
    if by_value and any([test(fn, len(args), keywords) for test in says_where_to_write]):
        return None
    return rule


non_differentiable(find_rrule)


_as_declared: dict[int, Callable[..., Any]] = {}


def as_declared(fn: Any) -> Any:
    """A callable without derivative as Morula's own rules mean it, whatever rules came from outside."""
    entry = registry.get(fn)
    if entry is None or not (entry.claimed and entry.constant):
        return fn
    found = _as_declared.get(id(fn))
    if found is None:

        def declared(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        found = _as_declared[id(fn)] = non_differentiable(declared)
        registry.entry(declared).stable = entry.stable
    return found


def is_known(fn: Any) -> bool:
    """Is anything registered for a callable?"""
    return registry.get(fn) is not None


def is_constant(
    fn: Any, types: tuple[Any, ...] | None = None, n: int = 0, keywords: Iterable[str] = ()
) -> bool:
    """Was this callable declared non-differentiable, for arguments of these types or of any?

    A call has n arguments by position, and these keywords. Where a rule from outside may say what
    it means, it is not constant.
    """
    entry = registry.get(fn)
    return entry is not None and not entry.claimed and is_declared(entry, types, n, keywords)


def is_declared(
    entry: Entry, types: tuple[Any, ...] | None, n: int, keywords: Iterable[str]
) -> bool:
    """The same, whatever rules there are."""
    if not entry.constant:
        return False
    if entry.writes is not None and entry.writes(n, keywords):
        return False
    return entry.asks is None or (types is not None and not entry.asks(types))


def is_constant_call(call: Call, types: tuple[Any, ...] | None = None) -> bool:
    """Is the callee of a statement known, and such a call of it constant?"""
    if type(call.fn) is not Const:
        return False
    return is_constant(call.fn.value, types, len(call.args) - len(call.keywords), call.keywords)


def is_declared_call(call: Call, types: tuple[Any, ...] | None = None) -> bool:
    """The same, whatever rules there are."""
    entry = registry.get(call.primitive)
    if entry is None:
        return False
    return is_declared(entry, types, len(call.args) - len(call.keywords), call.keywords)


def is_constant_for(fn: Any, args: tuple[Any, ...], keywords: Collection[str] = ()) -> bool:
    """The same for these arguments, of which the last ones go by keywords, and no rule serves."""
    entry = registry.get(fn)
    if entry is None or not entry.constant:
        return False
    if entry.writes is not None and entry.writes(len(args) - len(keywords), keywords):
        return False
    if entry.asks is None:
        return True
    of = entry.types_of
    return not entry.asks(tuple(map(type, args)) if of is None else of(args))


def asks_inside(fn: Any) -> bool:
    """Is a callable constant or not by what its arguments hold?"""
    entry = registry.get(fn)
    return entry is not None and entry.types_of is not None


def in_spaces(
    rule: Rule,
    args: tuple[Any, ...],
    positions: Sequence[int | None],
    cotangents: tuple[Any, ...],
) -> tuple[Any, ...]:
    """The cotangents that a pullback returned; an error if one is not in the space of its argument."""
    checked = list(cotangents)
    for x, i in zip(args, positions, strict=True):
        if i is not None and i < len(cotangents):
            checked[i] = in_space(rule, i, x, cotangents[i])
    return tuple(checked)


def in_space(rule: Rule, i: int, x: Any, x̄: Any) -> Any:
    """One of them; a thunk is looked at when it is computed."""
    if type(x̄) is Thunk:
        return Thunk(lambda: in_space(rule, i, x, x̄.force()))
    if is_zero(x̄) or type(x̄) is NotKnown:
        return x̄
    problem = space_problem(x, x̄)
    if problem is not None:
        raise errors.wrong_space(f"cotangent {i} of the pullback of {rule}", *problem)
    return x̄


def not_known(error: Exception, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The cotangents of values when nobody knows them: an error where they matter."""
    raised = error.__traceback__
    tell_place(error, sys._getframe(1))
    bars = passed_on(NotKnown(lambda: error), values)
    if bars is None:
        raise error.with_traceback(raised)
    return bars


def passed_on(unknown: NotKnown, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What is not known as the cotangents of these values; None where there is no place for it.

    That is in adjoint objects that no projection hands parts to. Where memory is written to, the
    projection refuses.
    """
    if any([adjoint_object(x) is not None and not has_parts(x) for x in values]):
        return None
    return tuple([project_to(x)(unknown) for x in values])


def has_parts(x: Any) -> bool:
    """Does the projection to the space of `x` hand on the parts of a cotangent?"""
    return hasattr(projector(x), "hands_on")


def collector_of(rule: Rule, y: Any, args: tuple[Any, ...]) -> Callable[[], Any] | None:
    """What gives the cotangent of a mutable value that the rule has made."""
    if rule.by_identity:
        return None
    if not rule.trusted:
        return collector(y, NewParts(() if any(y is a for a in args) else args))
    if not makes_container(rule.primal) or any(y is a for a in args):
        return None
    return collector(y, container_part)


def container_part(y: Any) -> Callable[[], Any] | None:
    """The collector of what a container holds, where a rule moves cotangents of containers alone."""
    return collector(y, container_part) if type(y) in (list, dict, tuple) else None


class NewParts:
    """The collectors of what a rule's value holds: each once, and none of what its arguments hold."""

    __slots__ = ("known", "values")

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values
        self.known: set[int] | None = None

    def __call__(self, y: Any) -> Callable[[], Any] | None:
        if isinstance(y, tuple):
            return collector(y, self)
        if adjoint_object(y) is None:
            return None
        if self.known is None:
            self.known = within(self.values)
        if id(y) in self.known:
            return None
        self.known.add(id(y))
        return collector(y, self)


def within(values: tuple[Any, ...]) -> set[int]:
    """The identities of all that can be reached from these values and has cotangents by identity."""
    found: set[int] = set()
    waiting = list(values)
    while waiting:
        x = waiting.pop()
        parts = None if id(x) in found or memory_of(x) is not None else parts_of(x)
        if parts is not None:
            found.add(id(x))
            waiting += parts.values()
    return found


non_differentiable(collector_of)


def with_memory(rule: Rule, y: Any, args: tuple[Any, ...], ȳ: Any) -> Any:
    """All of the cotangent of a rule's value: what came by value, and is kept beside its memory."""
    if gives_old(rule.primal):
        return ȳ
    among = () if gives_all(rule) else args
    return unthunk(accumulate(ȳ, from_memory(y, among)))


def gives_all(rule: Rule) -> bool:
    """Is a rule meant for all that reaches its value, even if that is an argument itself?"""
    return not rule.trusted or gives_itself(rule.primal)


Applied = tuple[Any, Pullback]


def apply_rule(
    rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], first: tuple[Any, ...] = ()
) -> Applied:
    """Run a rule; its pullback gives one projected cotangent per argument, positional first.

    They come behind `first`, which is the cotangent of the callable, if somebody asks for it.
    """
    y, pullback = run_rule(rule, args, kwargs)
    return y, pullback_of(rule, y, pullback, args, kwargs, first)


def run_rule(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Applied:
    """What the function of a rule gives, if it is a pair."""
    pair = rule.function(*args, **kwargs)
    if type(pair) is not tuple or len(pair) != 2:
        raise errors.not_a_pair(str(rule), pair)
    return pair


def pullback_of(
    rule: Rule,
    y: Any,
    pullback: Pullback,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first: tuple[Any, ...],
) -> Pullback:
    """What a rule's pullback means for who called: checked, projected, in the order of the call."""
    n = len(args)
    values = (*args, *kwargs.values()) if kwargs else args
    positions = rule.positions(n, kwargs) if kwargs else range(n)
    if rule.by_identity:
        return partial(pull_moving, rule, pullback, n, values, positions, first)
    collect = collector_of(rule, y, args)
    projections = [projector(x) for x in values]
    return partial(pull, rule, pullback, n, values, positions, first, y, projections, collect)


def pull(
    rule: Rule,
    pullback: Pullback,
    n_args: int,
    values: tuple[Any, ...],
    positions: Sequence[int | None],
    first: tuple[Any, ...],
    y: Any,
    projections: list[Callable[[Any], Any] | None],
    collect: Callable[[], Any] | None,
    ȳ: Any,
) -> tuple[Any, ...]:
    """One call of the pullback of a rule."""
    if collect is not None:
        ȳ = accumulate(ȳ, collect())
    if in_memory():
        ȳ = with_memory(rule, y, values, ȳ)
        given = at_once(rule.primal, values, ȳ)
        if given is not None:
            return (*first, *given)
    if ȳ is ZERO or ȳ is NONE:
        return (*first, *[ZERO] * len(positions))
    ȳ = unthunk(ȳ)
    if type(ȳ) is NotKnown and type(values[0] if values else None) is not tuple:
        given = passed_on(ȳ, values)  # of a tuple, the pullback says which part it is
        if given is not None:
            return (*first, *given)
    try:
        cotangents = rule.checked(pullback(ȳ), n_args)
    except errors.UnsupportedError as error:
        if not rule.trusted:
            raise
        return (*first, *not_known(error, values))
    except Exception as error:
        given = passed_on(ȳ, values) if type(ȳ) is NotKnown else None
        if given is not None:
            return (*first, *given)
        if not rule.trusted or not is_abstract(ȳ):
            raise
        return (
            *first,
            *not_known(error, values),
        )  # of a constant, as a rule, for which nobody asks
    bars = in_order(rule, cotangents, values, positions)
    return (*first, *[projected(*pair) for pair in zip(projections, bars, strict=True)])


def pull_moving(
    rule: Rule,
    pullback: Pullback,
    n_args: int,
    values: tuple[Any, ...],
    positions: Sequence[int | None],
    first: tuple[Any, ...],
    ȳ: Any,
) -> tuple[Any, ...]:
    """The same of a rule that moves cotangents about, which are in their spaces."""
    cotangents = rule.checked(pullback(unthunk(ȳ)), n_args)
    return (*first, *in_order(rule, cotangents, values, positions))


def in_order(
    rule: Rule,
    cotangents: tuple[Any, ...],
    values: tuple[Any, ...],
    positions: Sequence[int | None],
) -> list[Any]:
    """What a pullback gave, checked: one cotangent for each value of the call."""
    n = len(cotangents)
    if debug.ON or not rule.trusted:
        cotangents = in_spaces(rule, values, positions, cotangents)
    return [cotangents[i] if i is not None and i < n else NONE for i in positions]


def apply_moving(
    rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], first: tuple[Any, ...]
) -> Applied:
    """`apply_rule` for a rule of Morula's that moves cotangents about."""
    y, pullback = rule.function(*args)
    return y, partial(pull_moved, pullback, len(args), first)


def pull_moved(pullback: Pullback, n: int, first: tuple[Any, ...], ȳ: Any) -> tuple[Any, ...]:
    """Its pullback."""
    return (*first, *pullback(unthunk(ȳ))[:n])


def apply_to_scalars(
    rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], first: tuple[Any, ...]
) -> Applied:
    """`apply_rule` for a rule of Morula's and arguments all of which are `scalars`."""
    y, pullback = rule.function(*args)
    of_y = cotangent_type(type(y))
    if of_y is None:
        return y, pullback_of(rule, y, pullback, args, kwargs, first)
    return y, partial(pull_scalars, rule, y, pullback, args, first, of_y)


def pull_scalars(
    rule: Rule,
    y: Any,
    pullback: Pullback,
    args: tuple[Any, ...],
    first: tuple[Any, ...],
    of_y: type,
    ȳ: Any,
) -> tuple[Any, ...]:
    """The pullback of a rule from a scalar to scalars; only what is of another type is projected."""
    if ȳ is ZERO or ȳ is NONE:
        return (*first, *[ZERO] * len(args))
    if type(ȳ) is not of_y:
        return pullback_of(rule, y, pullback, args, {}, first)(ȳ)
    try:
        bars = pullback(ȳ)
    except errors.UnsupportedError as error:
        return (*first, *not_known(error, args))
    found = [
        x̄ if type(x̄) is cotangent_type(type(x)) else projected(projector(x), x̄)
        for x, x̄ in zip(args, bars, strict=False)
    ]
    return (*first, *found)


Apply = Callable[[Rule, tuple[Any, ...], dict[str, Any], tuple[Any, ...]], Applied]


class Service(NamedTuple):
    """What serves a call: a rule and how it is applied, or none; `constant`: none is needed.

    `unclaimed` is a call that no other library can lay claim to: what it means is said here, and
    all values are Python's numbers.
    """

    rule: Rule | None
    apply: Apply
    constant: bool
    unclaimed: bool

    @property
    def of_scalars(self) -> bool:
        """Is it one of Morula's own for scalars, which holds on to nothing and writes to nothing?"""
        return self.unclaimed and (self.constant or self.apply is apply_to_scalars)


MOST_SERVICES = 10_000
_services: dict[tuple[Any, ...], tuple[Any, Service]] = {}  # with the callable, whose id is the key
on_change.append(_services.clear)


def service_of(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Service:
    """What serves a call; it is found by one look-up where the types of the arguments decide it."""
    if kwargs:
        return find_service(fn, args, kwargs)
    key = (id(fn), *map(type, args))
    found = _services.get(key)
    if found is not None:
        return found[1]
    service = find_service(fn, args, kwargs)
    if types_decide(fn, args):
        if len(_services) >= MOST_SERVICES:  # of classes that are made again and again
            _services.clear()
        _services[key] = fn, service
    return service


def types_decide(fn: Any, args: tuple[Any, ...]) -> bool:
    """Do the types of the arguments, and nothing that may change, say what serves a call?"""
    entry = registry.get(fn)
    if entry is None:
        return is_lasting(fn)
    if not entry.is_faithful():
        return False
    if id(fn) in resolved_by and not all(map(is_compiled, map(type, args))):
        return False  # such a class may get an operator of its own
    if entry.asks is None or are_scalars(args):
        return True
    return entry.types_of is None and all([type(x).__flags__ & IMMUTABLE_TYPE for x in args])


def are_scalars(args: tuple[Any, ...]) -> bool:
    """Are all of these numbers that no library but Python knows?"""
    return all([cotangent_type(type(x)) is not None for x in args])


def find_service(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Service:
    """The same, by the registry."""
    if not kwargs and len(args) not in counts_of(fn):
        fail(fn, args)
    rule = find_rrule(fn, args, kwargs)
    constant = rule is None and is_constant_for(
        fn, (*args, *kwargs.values()) if kwargs else args, kwargs
    )
    plain = not kwargs and are_scalars(args)
    own = rule is not None and rule.trusted
    how: Apply = apply_rule
    if rule is not None and own and not kwargs and not debug.ON:
        if rule.by_identity:
            how = apply_moving
        elif plain:
            how = apply_to_scalars
    return Service(rule, how, constant, plain and (own or constant))
