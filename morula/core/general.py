"""The general path: what a call means under differentiation, found out when it happens.

`call(f, *args)` gives the value and a pullback that returns one cotangent for `f` and one for each
argument. A rule comes first, then Python code, which is transformed once per code object.
"""

from __future__ import annotations

import builtins
import inspect
import operator
import threading
from collections.abc import Callable, Iterable
from functools import partial
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple, TypeVar

from morula.core import context, errors, watch
from morula.core.abandon import with_ends
from morula.core.bytecode.lower import as_written, lower, with_notes
from morula.core.context import is_reached, is_reached_at, replace_at
from morula.core.cotangents import (
    NONE,
    ZERO,
    AbstractZero,
    is_zero,
    project_to,
    unthunk,
)
from morula.core.emit import emit
from morula.core.ir import IR, Branch, Call, Const, Operand, Var, reachable, substitute
from morula.core.memory import AT_END, Written, begin_log, end_log, follow, in_memory
from morula.core.outline import names_head, outlined
from morula.core.primitives import build_tuple, load_global, make_function, unpack
from morula.core.protected import Raised, caught, hold, passed_by
from morula.core.registry import (
    Rule,
    is_constant_call,
    is_declared_call,
    non_differentiable,
    not_known,
    on_claim,
    service_of,
)
from morula.core.reverse import Pair, Reversal, reachable_from
from morula.core.settings import with_own_settings
from morula.core.simplify import is_trusted
from morula.core.ssa import prune_params, same
from morula.core.traits import (
    adjoint_object,
    from_memory,
    has_tangent,
    holds_memory,
    looked_through,
    memory_of,
    parts_of,
    shows_all,
    typed_zero,
)
from morula.core.verify import checked

Back = Callable[[Any], tuple[Any, ...]]


def call(fn: Any, /, *args: Any, **kwargs: Any) -> tuple[Any, Back]:
    """`fn(*args, **kwargs)` and its pullback: ȳ -> (f̄, one cotangent per argument)."""
    if watch.current is not None and watch.current.takes():
        return watch.current.call(fn, args, kwargs)
    rule, apply, constant, unclaimed = service_of(fn, args, kwargs)
    claim = None if unclaimed else claim_of(rule, fn, (*args, *kwargs.values()))
    if claim is not None:
        protection.expected = False
        return claim.reverse(fn, args, kwargs)
    if rule is not None:
        if protection.expected:
            protection.expected = rule.function in PASSING
        y, back = apply(rule, args, kwargs, OF_CALLABLE)
        if LOSSY or encodes(y):
            back = followed(fn, args, kwargs, y, back, False)
        return y, back
    if constant:
        protection.expected = False
        y, back = fn(*args, **kwargs), partial(_constant_back, 1 + len(args) + len(kwargs))
        if LOSSY or encodes(y):
            back = followed(fn, args, kwargs, y, back, True)
        return y, back
    resolve = resolver_of(fn)
    if protection.expected:
        protection.expected = resolve in PASSING
    if type(fn) in CALLED_BY_CODE:
        return resolve(fn, args, kwargs)
    y, back = resolve(fn, args, kwargs)
    if LOSSY or encodes(y):
        back = followed(fn, args, kwargs, y, back, True)
    return y, back


OF_CALLABLE = (NONE,)  # the cotangent of what has a rule


# Values that hold numbers without having cotangents, as texts do: by their types, what says whether
# one is; those of them that were made of numbers; and what knows of the calls that make and read them.
ENCODINGS: dict[type, Callable[[Any], bool]] = {}
LOSSY: dict[int, Any] = {}
AT_END.append(LOSSY.clear)
FOLLOWS: list[Follows] = []
CALLED_BY_CODE = (FunctionType, MethodType, partial)


class Follows(NamedTuple):
    """Follows numbers through values that have no cotangents.

    `reads(fn, values, y, by_code)` says where in the user's source a call reads numbers that have
    lost their derivative, or nothing; `by_code` says that no rule serves it. `back(where, back, y, ȳ)`
    is the pullback of such a call, `warn(where)` what it does if the gradient depends on y.
    """

    reads: Callable[..., str]
    back: Callable[..., Any]
    warn: Callable[[str], None]


def encodes(y: Any) -> bool:
    """May a value hold numbers without having a cotangent?"""
    test = ENCODINGS.get(type(y))
    return test is not None and test(y)


def followed(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], y: Any, back: Back, by_code: bool
) -> Back:
    """The pullback of a call, which says so if numbers were read that have lost their derivative."""
    for follows in FOLLOWS:
        where = follows.reads(fn, (*args, *kwargs.values()), y, by_code)
        if where:
            back = partial(follows.back, where, back, y)
    return back


def seen(fn: Any, values: tuple[Any, ...], y: Any, by_code: bool) -> None:
    """The same where derivatives of derivatives are taken: what is read counts as needed."""
    if LOSSY or encodes(y):
        for follows in FOLLOWS:
            where = follows.reads(fn, values, y, by_code)
            if where:
                follows.warn(where)


non_differentiable(encodes, followed, seen)


class Claim(NamedTuple):
    """What a library that differentiates its own values says of a call of them.

    `reverse` is a resolver; `forward` is what forward mode asks for the value and its tangent.
    """

    reverse: Callable[..., Any]
    forward: Callable[..., Any]


# Functions of a callable and all values of its arguments; they give None where the call is not theirs.
CLAIMS: list[Callable[[Any, tuple[Any, ...]], Claim | None]] = []


# Types of which no value is a library's but Python's and NumPy's, or what says whether one is; and
# those of callables that nobody claims for such values, where it is known what they mean.
UNCLAIMED: dict[type, Callable[[Any], bool] | None] = dict.fromkeys(
    (int, float, complex, bool, str, type(None), type(ZERO), type(NONE))
)
COMPILED: set[type] = {type, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType}


def are_unclaimed(fn: Any, values: tuple[Any, ...]) -> bool:
    """Can no library lay claim to a call, which has a rule or is constant?"""
    if type(fn) not in COMPILED:
        return False
    for x in values:
        if type(x) not in UNCLAIMED:
            return False
        test = UNCLAIMED[type(x)]
        if test is not None and not test(x):
            return False
    return True


def claim_of(rule: Rule | None, fn: Any, values: tuple[Any, ...]) -> Claim | None:
    """Who lays claim to a call. Rules of a user come first, those for values of any type last."""
    if rule is not None and (not rule.trusted or are_unclaimed(fn, values)):
        return None
    for claims in CLAIMS:
        found = claims(fn, values)
        if found is not None:
            return found
    return None


def is_claimed(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Does a library say what a call means?"""
    rule, _, _, unclaimed = service_of(fn, args, kwargs)
    return not unclaimed and claim_of(rule, fn, (*args, *kwargs.values())) is not None


non_differentiable(claim_of, are_unclaimed)


def _with_callee(pullback: Back, ȳ: Any) -> tuple[Any, ...]:
    return (NONE, *pullback(ȳ))


def _constant_back(n: int, ȳ: Any) -> tuple[Any, ...]:
    return (ZERO,) * n


FEW = 40  # values that are looked through for arrays before every such call


def arrays_at_hand(fn: Any, operands: tuple[Any, ...]) -> set[int] | None:
    """The memory of arrays that a call can reach, by identity.

    None where there is too much to see, and where a new array could be hung onto nothing.
    """
    if type(fn) in COMPILED and all(map(is_number, operands)):
        return None
    found: set[int] = set()
    seen: set[int] = set()
    waiting = [fn, *operands]
    while waiting:
        x = waiting.pop()
        own = memory_of(x)
        if own is not None:
            found.add(id(own))
        elif id(x) not in seen:
            seen.add(id(x))
            if len(seen) > FEW or (type(x) in (list, tuple, dict) and len(x) > FEW):
                return None
            waiting += (parts_of(x) or {}).values()
    return found


def call_from_program(fn: Any, /, *args: Any, **kwargs: Any) -> tuple[Any, Back]:
    """`call`, from a compiled program, in which all arrays go by value and none is written to.

    What the callee makes and writes to itself is followed inside of it.
    """
    if service_of(fn, args, kwargs).of_scalars:
        return call(fn, *args, **kwargs)
    operands = (*args, *kwargs.values())
    before = arrays_at_hand(fn, operands)
    outer = begin_log()
    written: Written = {}
    try:
        y, back = call(fn, *args, **kwargs)
    finally:
        written.update(end_log(outer))
    if not written:
        return y, partial(in_own_pass, back) if is_of_numbers(fn, operands) else back
    for x, _ in held_by((fn, *operands)):
        if id(memory_of(x)) in written and (before is None or id(memory_of(x)) in before):
            raise errors.written_behind(fn)
    inside = [
        (x, key, project_to(part))
        for x, parts in held_by((y, *operands))
        for key, part in parts.items()
        if id(memory_of(part)) in written
    ]
    return y, partial(_back_in_memory, back, project_to(y), inside, written)


def is_of_numbers(fn: Any, operands: Iterable[Any]) -> bool:
    """Is it a function of Morula's own, of arguments that nobody finds by their identity?"""
    of_rules = type(fn) is FunctionType and str(fn.__module__).startswith("morula.rules.")
    return of_rules and fn.__closure__ is None and all(map(is_number, operands))


def is_number(x: Any) -> bool:
    """Does it go by value: a number, an array, a text, a tuple of such?"""
    if type(x) is tuple:
        return all(map(is_number, x))
    return x is None or type(x) in (str, bool) or type(x) in holds_memory or is_scalar(type(x))


def is_scalar(t: type) -> bool:
    """Is it a type of numbers?"""
    return typed_zero(t) is not None


def in_own_pass(back: Back, ȳ: Any) -> tuple[Any, ...]:
    """The pullback of such a call: a compiled program may have no reverse pass that is running."""
    if context.is_running():
        return back(ȳ)
    with context.isolated():
        return back(ȳ)


def _back_in_memory(
    back: Back,
    project: Callable[[Any], Any],
    inside: list[tuple[Any, Any, Callable[[Any], Any]]],
    written: Written,
    ȳ: Any,
) -> tuple[Any, ...]:
    """The pullback of a call that writes to memory of its own: by value on both sides.

    `inside` are the parts of mutable values that lie in it; their cotangents are brought there.
    """
    before = follow({**written})
    try:
        for x, key, project_part in inside:
            replace_at(x, key, project_part)
        return back(project(ȳ))
    finally:
        follow(before)


Resolver = Callable[[Any, tuple[Any, ...], dict[str, Any]], tuple[Any, Back]]
RESOLVERS: dict[type, Resolver] = {}
# The resolvers and rules that pass on what the call that they end with gives.
PASSING: set[Callable[..., Any]] = set()
_F = TypeVar("_F", bound=Callable[..., Any])


def as_passing(resolver: _F) -> _F:
    """Say that a resolver or a rule makes one call and passes on its value, `Raised` or not."""
    PASSING.add(resolver)
    return resolver


def resolver_of(fn: Any) -> Resolver:
    """What says what calling `fn` means."""
    found = RESOLVERS.get(type(fn))
    return found or RESOLVERS[type if isinstance(fn, type) else object]


def resolves(t: type, passing: bool = False) -> Callable[[Resolver], Resolver]:
    """Register what calling an object of type `t` means.

    A resolver that is `passing` makes one call and passes on its value, even if that is `Raised`.
    """

    def register(resolver: Resolver) -> Resolver:
        RESOLVERS[t] = resolver
        return as_passing(resolver) if passing else resolver

    return register


# -- exceptions


class Protection(threading.local):
    """What goes on in protected regions, in this thread.

    In one, functions run guarded: if an exception leaves them, their callers learn how to pull back
    what they did before. A caller that expects it gets `Raised` and the pullback; for others, which
    are rules that call functions, the exception passes. The pullbacks of what they call are the
    `strays`, of use only if the rule itself gives none.

    Code that differentiates may be differentiated in its turn, and has regions of its own then:
    `below` goes from the ones of the differentiating code to those of the differentiated one.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.expected = False
        self.strays: list[tuple[Any, Back]] = []
        self.calls: Any = None
        self.level = 0
        self.levels: list[tuple[int, bool, list[tuple[Any, Back]], Any]] = [(0, False, [], None)]

    def go_to(self, level: int) -> None:
        """Deal with the regions of another level from now on."""
        self.levels[self.level] = self.depth, self.expected, self.strays, self.calls
        if level == len(self.levels):
            self.levels.append((0, False, [], None))
        self.level = level
        self.depth, self.expected, self.strays, self.calls = self.levels[level]


protection = Protection()


def below(fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(*args)`, which asks about protected regions, for code that is differentiated."""
    protection.go_to(protection.level + 1)
    try:
        return fn(*args)
    finally:
        protection.go_to(protection.level - 1)


def begin_attempt() -> list[tuple[Any, Back]]:
    """Enter a protected region; gives the strays of the one around."""
    strays, protection.strays = protection.strays, []
    protection.depth += 1
    protection.expected = True
    return strays


def end_attempt(outer: list[tuple[Any, Back]]) -> list[tuple[Any, Back]]:
    """Leave a protected region; gives its strays."""
    strays, protection.strays = protection.strays, outer
    protection.depth -= 1
    protection.expected = False
    return strays


def attempted(fn: Any, /, *args: Any, **kwargs: Any) -> tuple[Any, Back]:
    """`call`, but an exception is caught: the value is `Raised`, the pullback that of what ran."""
    if service_of(fn, args, kwargs).of_scalars:
        try:
            return call(fn, *args, **kwargs)
        except BaseException as error:
            return caught(error), partial(pull_back_strays, [], 1 + len(args))
    operands = (*args, *kwargs.values())
    outer = begin_attempt()
    strays = protection.strays
    try:
        y, back = call(fn, *args, **kwargs)
        return (passed_by(y, 1) if type(y) is Raised else y), back
    except BaseException as error:
        back = partial(pull_back_strays, strays, 1 + len(operands))
        return caught(error), with_operand(error, operands, back)
    finally:
        end_attempt(outer)


def with_operand(error: BaseException, operands: tuple[Any, ...], back: Back) -> Back:
    """The pullback of a call that has raised an exception, which may hold an operand."""
    i = operand_in(error, operands)
    if i is None:
        return back
    _, held = call(hold, error, operands[i])
    return partial(pull_back_operand, back, held, i)


def operand_in(error: BaseException, operands: tuple[Any, ...]) -> int | None:
    """Which operand the interpreter has put into an exception, if it carries a derivative."""
    if type(error) is KeyError:
        held = error.args[0] if error.args else None
    elif type(error) is AttributeError:
        held = error.obj
    else:
        return None
    if not has_tangent(type(held)):
        return None
    return next((i for i, x in enumerate(operands) if x is held), None)


def pull_back_operand(back: Back, held: Back, i: int, ȳ: Any) -> tuple[Any, ...]:
    """The pullback of a call that has raised an exception which holds the i-th operand."""
    bars = [*back(ȳ)]
    bars[1 + i] = held(ZERO)[2]
    return tuple(bars)


def pull_back_strays(strays: list[tuple[Any, Back]], n: int, ȳ: Any) -> tuple[Any, ...]:
    """What functions did that were called by a callable that an exception has left."""
    for fn, back in reversed(strays):
        if not all(map(is_zero, back(ZERO))):
            raise errors.lost_in_exception(fn)
    return (ZERO,) * n


def done_or_missed(
    kind: type[BaseException], fn: Callable[..., Any], *args: Any
) -> tuple[Any, Back | None]:
    """`fn(*args)` for a rule; or None, and the pullback of what ran, if it raises such an exception."""
    outer = begin_attempt()
    expect_nothing()
    strays = strays_here()
    try:
        return fn(*args), None
    except kind:
        return None, partial(pull_back_strays, strays, 0)
    except BaseException:
        outer.extend(strays)
        raise
    finally:
        end_attempt(outer)


def how_called() -> tuple[bool, bool]:
    """Is a function to run guarded, and does its caller expect `Raised`?"""
    expected, protection.expected = protection.expected, False
    return protection.depth > 0, expected


def expect_nothing() -> None:
    """Nobody takes `Raised` for the value of the call that is being made."""
    protection.expected = False


def expect_from(resolve: Callable[..., Any]) -> None:
    """`Raised` is still expected from a resolver or a rule that passes it on."""
    protection.expected = protection.expected and resolve in PASSING


def strays_here() -> list[tuple[Any, Back]]:
    """The strays of the protected region."""
    return protection.strays


def is_protected() -> bool:
    """May an exception be caught?"""
    return protection.depth > 0


def calls_here() -> Any:
    """What the calls of functions with caches know of each other, or None."""
    return protection.calls


def follow_calls(calls: Any) -> None:
    """Let the calls from now on know of these."""
    protection.calls = calls


# What asks about the protected regions and the calls of the level that it runs at.
ABOUT_REGIONS = (
    begin_attempt,
    end_attempt,
    how_called,
    expect_nothing,
    expect_from,
    strays_here,
    is_protected,
    calls_here,
    follow_calls,
)


def note_stray(fn: Any, y: Any, back: Back) -> None:
    """Keep the pullback of a call that a rule has made, and let an exception pass."""
    strays_here().append((fn, back))
    if type(y) is Raised:
        raise y.exception


non_differentiable(resolver_of, operand_in)


Held = list[tuple[Any, Any]]  # mutable values, with what they hold or where
RUN_LATER = (GeneratorType, AsyncGeneratorType, CoroutineType)


def in_sight(error: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Cotangents that nobody knows, for values that show all that may depend on arguments."""
    if not all(map(shows_all, values)):
        raise error
    return not_known(error, values)


@resolves(object)
def opaque(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reason: str = "",
    unknown: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]] = in_sight,
) -> Any:
    """A callable that cannot be looked into: an error, if a cotangent reaches what it gives.

    That is its result, and what it has changed. `unknown` gives the cotangents of the callable and of
    its arguments then, or raises the error.
    """
    y, back, _ = opaque_with_changes(fn, args, kwargs, reason, unknown)
    return y, back


def opaque_with_changes(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reason: str,
    unknown: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]] = in_sight,
) -> tuple[Any, Back, Held]:
    """The same, and what it has changed."""
    expect_nothing()
    before = held_by((fn, *args, *kwargs.values()))
    try:
        # Some compiled callables tell no keywords from none.
        y = fn(*args, **kwargs) if kwargs else fn(*args)
    except BaseException:
        if is_protected():
            strays_here().append((fn, partial(refuse_changes, fn, args, changes(before))))
        raise
    n = 1 + len(args) + len(kwargs)
    changed = changes(before)
    for x, _ in changed:
        if adjoint_object(x) is None:
            raise errors.changed_in_place(fn, x)
    inside = made_inside(y, args, before)
    if type(y) not in RUN_LATER:  # what a generator changes, it changes later
        before = []

    def opaque_pullback(ȳ: Any) -> tuple[Any, ...]:
        for x, keys in changed or changes(before):
            if is_reached_at(x, keys):
                why = f"which changes a {type(x).__name__} that the gradient runs through"
                raise errors.no_rule(fn, args, reason=reason, why=why)
        given = (*args, *kwargs.values())
        reached = n > 1 and any(map(is_reached, inside))
        if in_memory() and n > 1:
            reached = reached or not is_zero(from_memory(y, given))
        if is_zero(ȳ) and not reached:
            return (ZERO,) * n
        return unknown(errors.no_rule(fn, args, reason=reason), (fn, *given))

    return y, opaque_pullback, changed


def made_inside(y: Any, args: tuple[Any, ...], before: Held) -> list[Any]:
    """The mutable values in a result that were not in what was given."""
    given = {id(x) for x in args} | {id(x) for x, _ in before}
    if isinstance(y, (list, tuple, dict)):
        return [x for x, _ in held_by((y,)) if id(x) not in given]
    return [] if id(y) in given else [y]


def refuse_changes(fn: Any, args: tuple[Any, ...], changed: Held, ȳ: Any) -> tuple[Any, ...]:
    """The pullback of a callable that raised an exception when it had changed something."""
    for x, keys in changed:
        if is_reached_at(x, keys):
            why = f"which changes a {type(x).__name__} that the gradient runs through"
            raise errors.no_rule(fn, args, why=why)
    return ()


def held_by(values: tuple[Any, ...]) -> Held:
    """All mutable values that can be reached from these, with what they hold at present."""
    found: Held = []
    seen: dict[int, Any] = {}
    waiting = list(values)
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen[id(x)] = x
        waiting += looked_through(x)
        parts = parts_of(x)
        if parts is not None:
            found.append((x, parts))
            waiting += parts.values()
    return found


def holds(x: Any, test: Callable[[Any], bool]) -> bool:
    """Does a value pass a test, or anything in one that has no adjoint object?"""
    return test(x) or (
        adjoint_object(x) is None
        and any([test(v) for _, parts in held_by((x,)) for v in parts.values()])
    )


def changes(before: Held) -> Held:
    """Those that hold something else now, and where."""
    found = []
    for x, old in before:
        new = parts_of(x) or {}
        keys = [k for k in {**old, **new} if not same_part(old.get(k, old), new.get(k, new))]
        if keys:
            found.append((x, keys))
    return found


def same_part(old: Any, new: Any) -> bool:
    """Is a part of a value what it was?"""
    return old is new or (type(old) is bytes and old == new)


non_differentiable(held_by, changes, arrays_at_hand)


@resolves(FunctionType)
def python_function(fn: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A Python function: through its own code."""
    guarded, expected = how_called()
    if guarded and is_emitted(fn):
        return emitted_function(fn, args, kwargs)
    forward, reason = try_forward_of(fn, guarded)
    if forward is None:
        return opaque(fn, args, kwargs, reason)  # type: ignore[call-arg]
    if guarded and id(forward.__code__) in _unguarded:
        y, back = run_unguarded(fn, forward, args, kwargs)
    else:
        y, back = forward(*args, **kwargs)
    code = fn.__code__
    if (
        not kwargs
        and len(args) == code.co_argcount
        and not (code.co_flags & 0x0C or code.co_kwonlyargcount)
    ):
        back = partial(_with_callee, back)
    else:
        back = partial(_by_call, back, _binding(code, len(args), tuple(kwargs)))
    if guarded and not expected:
        note_stray(fn, y, back)
    return y, back


def emitted_function(fn: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that was emitted here, in a protected region of a derivative of a derivative.

    What exceptions mean in it are values of it already, so it is not guarded: where one leaves it
    nevertheless, what it has done before is refused.
    """
    try:
        y, back = forward_of(fn)(*args, **kwargs)
    except BaseException:
        strays_here().append((fn, refuse))
        raise
    return y, partial(_by_call, back, _binding(fn.__code__, len(args), tuple(kwargs)))


def refuse(ȳ: Any) -> Any:
    """The pullback of what cannot be pulled back."""
    raise errors.exception_of_higher_order()


def is_emitted(fn: Any) -> bool:
    """Is its code the work of `transform`?"""
    return type(fn) is FunctionType and id(fn.__code__) in _emitted


non_differentiable(is_emitted)


def _by_call(back: Back, binding: list[Any], ȳ: Any) -> tuple[Any, ...]:
    """From one cotangent per parameter to one per argument of the call."""
    cotangents = back(ȳ)
    return (NONE, *[_item(cotangents, where) for where in binding])


def _item(cotangents: tuple[Any, ...], where: Any) -> Any:
    if type(where) is int:
        return cotangents[where]
    i, key = where
    inside = unthunk(cotangents[i])
    return ZERO if isinstance(inside, AbstractZero) else inside[key]


def _binding(code: CodeType, n_args: int, keywords: tuple[str, ...]) -> list[Any]:
    """For each argument of a call its parameter, or its place in `*args` or `**kwargs`."""
    n_positional, n_named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    star = n_named
    double_star = n_named + bool(code.co_flags & inspect.CO_VARARGS)
    first = code.co_posonlyargcount
    names = code.co_varnames[first:n_named]
    where: list[Any] = [i if i < n_positional else (star, i - n_positional) for i in range(n_args)]
    for k in keywords:
        where.append(first + names.index(k) if k in names else (double_star, k))
    return where


# -- programs


_forward_codes: dict[tuple[int, int, bool, bool], tuple[CodeType, CodeType]] = {}
on_claim.append(_forward_codes.clear)


def forward_of(fn: FunctionType, guarded: bool = False) -> FunctionType:
    """The function that gives the value and the pullback of `fn`.

    A guarded one gives `Raised` as the value where an exception would leave `fn`.
    """
    key = (id(fn.__code__), id(fn.__globals__), guarded, watch.sees_constants())
    found = _forward_codes.get(key)
    if found is None:
        code = transform(fn.__code__, fn.__globals__, guarded)
        found = _forward_codes[key] = (fn.__code__, code)
    return twin(fn, found[1])


def try_forward_of(fn: FunctionType, guarded: bool) -> tuple[FunctionType | None, str]:
    """`forward_of`, or why there is none."""
    try:
        return forward_of(fn, guarded), ""
    except errors.UnsupportedError as error:
        return None, str(error)


def twin(fn: FunctionType, code: CodeType) -> FunctionType:
    """A function like `fn`, with its closure, defaults and globals, that runs other code."""
    new = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    new.__kwdefaults__ = fn.__kwdefaults__
    return new


_emitted: dict[int, CodeType] = {}


@with_own_settings
def transform(code: CodeType, namespace: dict[str, Any], guarded: bool = False) -> CodeType:
    """Code -> code that returns the value and the pullback."""
    ir, is_guarded = lowered(code, namespace, guarded)
    plan = plan_of_rules if asks_nothing(namespace) else general_plan
    reversal = Reversal(checked("outline", ir), plan)
    reversal.build()
    reversal.resolve()
    checked("resolve", reversal.ir)
    emitted = split(reversal, code, namespace)
    _emitted[id(emitted)] = emitted
    if guarded and not is_guarded:
        _unguarded[id(emitted)] = emitted
    return emitted


# Functions with loops that are run by others have no guarded form: exceptions leave them as they are.
_unguarded: dict[int, CodeType] = {}


def lowered(code: CodeType, namespace: dict[str, Any], guarded: bool) -> tuple[IR, bool]:
    """The SSA form of a function, its loops over registered heads outlined; is it guarded?"""
    if not names_head(code, namespace):
        return with_ends(checked("lower", with_notes(code, namespace, guarded))), guarded
    if guarded:
        plain = checked("lower", lower(code, namespace, False, keep=False))
        ir = outlined(plain, code, namespace)
        if ir is not plain:
            return ir, False
    ir = checked("lower", lower(code, namespace, guarded, keep=False))
    return outlined(ir, code, namespace), guarded


def run_unguarded(
    fn: FunctionType, forward: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Back]:
    """The value and the pullback; of what an exception breaks off, nothing can be pulled back."""
    try:
        found: tuple[Any, Back] = forward(*args, **kwargs)
        return found
    except BaseException:
        strays_here().append((fn, lambda ȳ: (1.0,)))
        raise


def asks_nothing(namespace: dict[str, Any]) -> bool:
    """Are these the globals of a module of rules, none of which deals with objects of users?"""
    return is_trusted(namespace) and not namespace.get("ASKS_OBJECTS")


def _is_plain(c: Call) -> bool:
    """Is it a global variable that holds no data, or a function without default values?"""
    if c.primitive is make_function:
        return all(type(x) is Const and x.value is None for x in c.args[2:4])
    if c.primitive is not load_global:
        return False
    namespace, name = [x.value for x in c.args]
    value = namespace.get(name, vars(builtins).get(name))
    return callable(value) or type(value) is ModuleType


def is_shown(c: Call) -> bool:
    """Is a call to be shown to the observer though it has no derivative?"""
    module = getattr(c.primitive, "__module__", None)
    return watch.sees_constants() and not str(module).startswith("morula.core")


def plan_of_rules(c: Call) -> Pair | None:
    """The same in rules, which ask no objects of users' for what is constant for numbers."""
    written = as_written(c)
    if type(written.fn) is Const and is_declared_call(written, ()) and not is_shown(written):
        return None
    return general_plan(c)


def general_plan(c: Call) -> Pair | None:
    """Every call whose callee is not known to be constant is looked up when it happens."""
    written = as_written(c)
    if _is_plain(written) or (is_constant_call(written) and not is_shown(written)):
        return None
    operands = written.operands()
    how = call if written is c else attempted
    return Pair(Const(how), operands, c.keywords, tuple(enumerate(operands)))


def split(reversal: Reversal, code: CodeType, namespace: dict[str, Any]) -> CodeType:
    """Emit primal and adjoint as two functions; the primal gives the value and the pullback.

    The residuals that the primal's exit passes to the adjoint go by a tuple.
    """
    ir = reversal.ir
    if reversal.exit not in reachable(ir):  # it always ends in an exception
        return emit(ir, code, namespace)
    backward, kept = separate(reversal)
    run = FunctionType(emit(backward, pullback_like(code), namespace), namespace, code.co_name)
    _emitted[id(run.__code__)] = run.__code__
    back, both = ir.var(), ir.var()
    reversal.exit.calls += [
        Call(back, Const(partial), (Const(run), kept)),
        Call(both, Const(build_tuple), (reversal.result, back)),
    ]
    reversal.exit.branches = [Branch(None, [both])]
    return emit(ir, code, namespace)


def separate(reversal: Reversal) -> tuple[IR, Var]:
    """The adjoint as a function of the residuals and ȳ; the residuals as the primal packs them."""
    ir, start = reversal.ir, reversal.start
    prune_params(ir, keep=start)
    residuals = _residuals(reversal)
    backward = IR(ir.name, ir.filename, next_id=ir.next_id)
    entry = backward.block()
    packed = ir.var("residuals")
    entry.params = [packed, reversal.seed]
    items = ir.var()
    entry.calls = [Call(items, Const(unpack), (packed, Const(len(residuals))))]
    entry.calls += [
        Call(param, Const(operator.getitem), (items, Const(i)))
        for i, (param, _) in enumerate(residuals)
    ]
    entry.branches = [Branch(start)]
    start.params = []
    adjoint = reachable_from(start)
    backward.blocks += [b for b in ir.blocks if b in adjoint]
    kept = ir.var()
    backward.next_id = ir.next_id
    reversal.exit.calls.append(Call(kept, Const(build_tuple), [x for _, x in residuals]))
    return backward, kept


def _residuals(reversal: Reversal) -> list[tuple[Var, Operand]]:
    """The variables of the adjoint that the primal gives values, each value once."""
    (branch,) = reversal.exit.branches
    start = reversal.start
    kept: list[tuple[Var, Operand]] = []
    mapping: dict[Var, Operand] = {}
    for param, x in zip(start.params[1:], branch.args[1:], strict=True):
        known = next((p for p, y in kept if same(x, y)), None)
        if type(x) is Const:
            mapping[param] = x
        elif known is not None:
            mapping[param] = known
        else:
            kept.append((param, x))
    substitute(reversal.ir, mapping)
    return kept


def pullback_like(code: CodeType) -> CodeType:
    """The signature of a pullback: residuals and ȳ; its name and place are the primal's."""
    return _TEMPLATE.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )


_TEMPLATE = (lambda residuals, ȳ: None).__code__
