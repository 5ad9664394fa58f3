"""What a call means in forward mode: `push(run, f, ḟ, args, tangents)` gives the value and its tangent.

A rule comes first, as in reverse mode: a forward rule as it stands, a reverse rule by transposition.
`pushes(f)` says what calling one callable means for structures, whose tangents are moved about;
`pushes_type(T)` what calling an object of a type means. Python functions are transformed, once per
code object. What cannot be looked into is called as it is; its result has a tangent that raises
NoRuleError when it is used, if a tangent went in.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np

from morula.core import errors, general, memory, primitives
from morula.core.arity import counts_of, fail
from morula.core.cotangents import ZERO, is_zero
from morula.core.ir import count_of_parameters
from morula.core.places import Place, place_of, show
from morula.core.protected import caught, hold
from morula.core.registry import (
    Entry,
    Rule,
    find_rrule,
    is_constant_for,
    non_differentiable,
    registry,
)
from morula.core.traits import (
    changes_in_place,
    deals_in_place,
    has_tangent,
    makes_container,
    parts_of,
    shows_memory,
)
from morula.mixed_mode.forward import binder_of, forward_of
from morula.mixed_mode.memory import is_followed, item_of, refuse_records
from morula.mixed_mode.tangents import (
    Pass,
    all_zero,
    any_mutable,
    by_value,
    holds_mutable,
    in_space_by_value,
    placed,
    reached,
    refreshed,
    set_tangents,
    set_value,
    value_of,
    zeros_like,
)
from morula.mixed_mode.transposition import is_of_unknown_space, transposed_call, transposed_rule
from morula.rules import lossy
from morula.rules.arrays.inplace import users_line
from morula.rules.arrays.outs import has_out
from morula.rules.boxes import default_value, missing_arguments
from morula.rules.objects import is_by_identity

Both = tuple[Any, Any]
Meaning = Callable[[Pass, tuple[Any, ...], tuple[Any, ...], tuple[str, ...]], Any]
TypeMeaning = Callable[[Pass, Any, Any, tuple[Any, ...], tuple[Any, ...], tuple[str, ...]], Both]
_F = TypeVar("_F", bound=Callable[..., Any])

_meanings: dict[int, tuple[Any, list[Meaning]]] = {}
_types: dict[type, TypeMeaning] = {}
_moves: dict[int, Meaning] = {}


def pushes(*callables: Any, moves: bool = False) -> Callable[[_F], _F]:
    """Register what calling these means: meaning(run, args, tangents, keywords) -> (y, ẏ).

    The last arguments are passed by the keywords. NotImplemented: these arguments are not its own,
    and what was registered before is asked. What `moves` values about does nothing else with any
    of them, so that no rule, no library and no text is asked for.
    """

    def register(meaning: _F) -> _F:
        for fn in callables:
            _meanings.setdefault(id(fn), (fn, []))[1].insert(0, meaning)
            if moves:
                _moves[id(fn)] = meaning
        return meaning

    return register


def pushes_type(*types: type) -> Callable[[_F], _F]:
    """Register what calling an object means: meaning(run, f, ḟ, args, tangents, keywords)."""

    def register(meaning: _F) -> _F:
        for t in types:
            _types[t] = meaning
        return meaning

    return register


def meanings_of(fn: Any) -> list[Meaning]:
    """What was registered for a callable, the latest first."""
    found = _meanings.get(id(fn))
    return [] if found is None else found[1]


def meaning_of_type(fn: Any) -> TypeMeaning:
    """What calling an object means, by its type."""
    found = _types.get(type(fn))
    if found is None:
        found = _types[type if isinstance(fn, type) else object]
    return found


def rules_of(fn: Any, args: tuple[Any, ...], keywords: tuple[str, ...]) -> Any:
    """The rule that serves a call in forward mode, and if it is a forward rule."""
    entry: Entry | None = registry.get(fn)
    if entry is None:
        return None, False
    constant = entry.constant and is_constant_for(fn, args, keywords)
    if constant and not entry.claimed:
        return entry, False
    positional = args[: len(args) - len(keywords)]
    forward = None if entry.forward is None else entry.find("forward", positional)
    reverse = None if entry.reverse is None else entry.find("reverse", positional)
    if forward is not None and not forward.accepts(keywords):
        forward = None
    if reverse is not None and not reverse.accepts(keywords):
        reverse = None
    if constant and forward is None and reverse is None:
        return entry, False
    if forward is None or (reverse is not None and forward.trusted and not reverse.trusted):
        return reverse, False
    return forward, True


non_differentiable(
    counts_of, fail, meanings_of, meaning_of_type, rules_of, memory.follow, memory.in_memory
)


def push(
    run: Pass,
    fn: Any,
    ḟ: Any,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...] = (),
) -> Both:
    """The value of a call and its tangent."""
    if not keywords and len(args) not in counts_of(fn):
        fail(fn, args)
    if run.written:
        if fn is operator.getitem and is_followed(run, args[0]):
            return operator.getitem(*args), item_of(run, args[0], tangents[0], args[1])
        tangents = refreshed(run, args, tangents)
    move = _moves.get(id(fn))
    if move is not None and not run.encodings and (fn not in READS or is_plain(args[0])):
        found = move(run, args, tangents, keywords)
        if found is not NotImplemented:
            return found
    if type(fn) is partial and is_pullback(fn):
        return _types[partial](run, fn, ḟ, args, tangents, keywords)
    rule, is_forward = rules_of(fn, args, keywords)
    constant = type(rule) is Entry
    known = constant and general.are_unclaimed(fn, args)
    claim = None if known else general.claim_of(None if constant else rule, fn, args)
    if claim is not None:
        refuse_unknown(tangents)
        return claim.forward(run, fn, ḟ, args, tangents, keywords)
    if type(rule) is Entry and (rule.asks is not None or not meanings_of(fn)):
        return without_derivative(run, fn, args, tangents, keywords)
    if writes(fn, args, keywords):
        refuse_unknown(tangents)
        return on_write[0](run, fn, args, tangents, keywords)
    if rule is None or type(rule) is Entry or rule.trusted:
        for meaning in meanings_of(fn):
            found = meaning(run, args, tangents, keywords)
            if found is not NotImplemented:
                if run.encodings or general.encodes(found[0]):
                    follow_text(run, fn, args, tangents, found[0])
                return found
    if rule is None:
        return meaning_of_type(fn)(run, fn, ḟ, args, tangents, keywords)
    if type(rule) is Entry:
        return without_derivative(run, fn, args, tangents, keywords)
    if fn is operator.getitem and type(args[0]) is np.ndarray:
        if type(tangents[0]) is Unknown:
            y = split_call(fn, args, keywords)
            return y, unknown_like(y, tangents[0])
        tangents = (tangents[0], ZERO)  # an index has none
    refuse_unknown(tangents)
    if memory.in_memory():
        outer = memory.follow(None)  # tangents are no cotangents of the reverse pass that is pushed
        found = by_rule(run, rule, is_forward, fn, ḟ, args, tangents, keywords)
        memory.follow(outer)
        return found
    return by_rule(run, rule, is_forward, fn, ḟ, args, tangents, keywords)


def is_pullback(fn: partial[Any]) -> bool:
    """Is it what the general path makes of a pullback, for which nobody has registered anything?"""
    of = fn.func
    if type(of) is not FunctionType or registry.is_registered(fn):
        return False
    return general.is_emitted(of) or str(of.__module__).startswith(OF_PASSES)


OF_PASSES = ("morula.core.", "morula.rules.meta")


non_differentiable(is_pullback)


READS = (operator.getitem, primitives.unpack, primitives.unpack_rest)


def is_plain(xs: Any) -> bool:
    """Is it a list, a tuple or a dict of Python's own?"""
    return type(xs) in (tuple, list, dict)


non_differentiable(is_plain)


def by_rule(
    run: Pass,
    rule: Rule,
    is_forward: bool,
    fn: Any,
    ḟ: Any,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...],
) -> Any:
    """The value of a call and its tangent by the rule that serves it."""
    if run.written:
        refuse_records(run, fn, args)
    if is_forward and keywords and passes_over(rule, tangents, keywords):
        reverse = find_rrule(fn, args[: len(args) - len(keywords)], keywords)
        rule, is_forward = (rule, True) if reverse is None else (reverse, False)
    if run.primitive is not None and not (rule.by_identity and rule.trusted):
        return run.primitive(fn, rule, is_forward, args, tangents, keywords)
    refused = lost if rule.trusted else None
    if is_forward:
        found = by_forward_rule(run, rule, args, tangents, keywords)
    elif rule.by_identity or any_mutable(args) or makes_container(fn):
        found = transposed_call(run, fn, ḟ, args, tangents, keywords, refused)
    elif all_zero(tangents):
        found = value_by(rule, args, keywords), ZERO
    else:
        found = transposed_rule(run, rule, args, tangents, keywords, refused)
    if run.encodings or is_zero(found[1]):
        follow_text(run, fn, args, tangents, found[0])
    if is_made_of_records(found[0], args) and (not all_zero(tangents) or reached(run, args)):
        raise errors.UnsupportedError(
            "an array of records that is made of numbers has no derivative in forward mode: write to "
            "the fields of one that is there"
        )
    return found


def is_made_of_records(y: Any, args: tuple[Any, ...]) -> bool:
    """Is it a structured array, made of what is none?"""
    return has_records(y) and not any(map(has_records, args))


def has_records(x: Any) -> bool:
    """Is it a structured array?"""
    return isinstance(x, np.ndarray) and x.dtype.names is not None


non_differentiable(is_made_of_records, has_records)


def without_derivative(
    run: Pass, fn: Any, args: tuple[Any, ...], tangents: tuple[Any, ...], keywords: tuple[str, ...]
) -> Both:
    """The value of a call that has no derivative; texts are noted, if what they say of has tangents."""
    y = split_call(fn, args, keywords)
    follow_made_text(run, fn, args, tangents, y)
    return y, ZERO


def follow_made_text(
    run: Pass, fn: Any, args: tuple[Any, ...], tangents: tuple[Any, ...], y: Any
) -> None:
    """Note a text that a call without derivative may have made of anything; warn if one is read."""
    if general.encodes(y) or (run.encodings and (lossy.is_text(y) or lossy.holds_text(y))):
        note(run, args, tangents, y)
    elif run.encodings:
        follow_text(run, fn, args, tangents, y)


def note(run: Pass, args: tuple[Any, ...], tangents: tuple[Any, ...], y: Any) -> None:
    """Note a text, or texts, made of values that have tangents."""
    entering = not all_zero(tangents) or lossy.any_marked(args, run.encodings)
    if entering or reached(run, args):
        lossy.mark(y, run.encodings)


def follow_text(
    run: Pass, fn: Any, args: tuple[Any, ...], tangents: tuple[Any, ...], y: Any
) -> None:
    """Note a text that was made of a noted one, or of numbers with tangents; warn if one is read."""
    if lossy.is_text(y) or lossy.is_row(args, y):
        if lossy.any_marked(args, run.encodings, lossy.reads(fn, args)):
            lossy.mark(y, run.encodings)
        elif lossy.makes(fn, args, y, False):
            note(run, args, tangents, y)
    elif y is None and lossy.any_marked(args, run.encodings):
        lossy.mark_all(args, run.encodings)
    elif run.encodings and lossy.reads(fn, args) and lossy.any_marked(args, run.encodings):
        if lossy.holds_text(y):
            lossy.mark(y, run.encodings)
        elif lossy.holds_numbers(y):
            lossy.warn_of_reading(users_line())


non_differentiable(note, follow_text, follow_made_text)


def attempted(
    run: Pass,
    fn: Any,
    ḟ: Any,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...] = (),
) -> Both:
    """`push`, but an exception is caught: the value is `Raised`."""
    run.protected += 1
    try:
        return push(run, fn, ḟ, args, tangents, keywords)
    except BaseException as error:
        push_operand(run, error, args, tangents)
        return caught(error), ZERO
    finally:
        run.protected -= 1


def noting(
    run: Pass,
    fn: Any,
    ḟ: Any,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...] = (),
) -> Both:
    """`push` in a function that an exception may leave which is caught further out."""
    try:
        return push(run, fn, ḟ, args, tangents, keywords)
    except BaseException as error:
        push_operand(run, error, args, tangents)
        raise


def push_operand(
    run: Pass, error: BaseException, args: tuple[Any, ...], tangents: tuple[Any, ...]
) -> None:
    """The tangent of the operand that the interpreter has put into an exception, if it has."""
    i = general.operand_in(error, args)
    if i is not None:
        push(run, hold, ZERO, (error, args[i]), (ZERO, tangents[i]))


def writes(fn: Any, args: tuple[Any, ...], keywords: tuple[str, ...]) -> bool:
    """Does a call change a value whose tangent goes by value?"""
    if type(fn) is MethodType:
        return False  # its function is asked
    n = len(args) - len(keywords)
    if has_out(fn, n, keywords):
        return any([test(fn) for test in deals_in_place])
    first = args[fn is np.ufunc.at] if args else None
    if not keywords and not isinstance(first, np.ndarray) and fn is not np.nditer:
        return False
    types = [type(x) for x in args]
    return any([test(fn, types, n, keywords) for test in changes_in_place])


non_differentiable(writes)


on_write: list[Any] = []  # what calls that write to arrays mean


def split_call(fn: Any, args: tuple[Any, ...], keywords: tuple[str, ...]) -> Any:
    """The plain call, with the last arguments by these keywords."""
    if not keywords:
        return fn(*args)
    n = len(args) - len(keywords)
    return fn(*args[:n], **dict(zip(keywords, args[n:], strict=True)))


def value_by(rule: Rule, args: tuple[Any, ...], keywords: tuple[str, ...]) -> Any:
    """The value of a call that a rule serves, where no tangent arrives."""
    return split_call(rule.function, args, keywords)[0]


# -- forward rules ---------------------------------------------------------------------------------


def by_forward_rule(
    run: Pass,
    rule: Rule,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...],
) -> Both:
    """A forward rule: one tangent per positional parameter."""
    if any_mutable(args):
        tangents = tuple([by_value(run, x, ẋ) for x, ẋ in zip(args, tangents, strict=True)])
    if all_zero(tangents):
        return value_by(rule, args, keywords), ZERO
    y, pushforward = split_call(rule.function, args, keywords)
    if keywords:
        tangents = by_position(rule, tangents, keywords)
    if rule.trusted:
        ẏ = run.each(pushforward, *tangents)
        return y, placed(run, y, ẏ) if type(y) is list else ẏ
    ẏ = run.each(partial(in_spaces, pushforward, args, y), *tangents)
    return y, placed(run, y, ẏ) if holds_mutable(y) else ẏ


def in_spaces(pushforward: Any, args: tuple[Any, ...], y: Any, *tangents: Any) -> Any:
    """A pushforward that was not written here: it gets zeros as such, and its tangent is checked."""
    given = [zeros_like(x) if is_zero(ẋ) else ẋ for x, ẋ in zip(args, tangents, strict=False)]
    return in_space_by_value(y, pushforward(*given))


def passes_over(rule: Rule, tangents: tuple[Any, ...], keywords: tuple[str, ...]) -> bool:
    """Is there a tangent by a keyword that this forward rule takes no tangent of?"""
    named = tangents[len(tangents) - len(keywords) :]
    return any(
        [
            not is_zero(ẋ) and name not in rule.positional
            for name, ẋ in zip(keywords, named, strict=True)
        ]
    )


non_differentiable(passes_over)


def by_position(
    rule: Rule, tangents: tuple[Any, ...], keywords: tuple[str, ...]
) -> tuple[Any, ...]:
    """The tangents in the order of the parameters of the rule."""
    n = len(tangents) - len(keywords)
    ordered = list(tangents[:n])
    for name, ẋ in zip(keywords, tangents[n:], strict=True):
        i = rule.position_of(name)
        if i is None or i >= len(rule.positional):
            if not is_zero(ẋ):
                raise errors.no_rule(
                    rule.primal, (), why=f"by its keyword argument {name!r}, in forward mode"
                )
            continue
        ordered += [ZERO] * (i + 1 - len(ordered))
        ordered[i] = ẋ
    return tuple(ordered)


# -- callables that cannot be looked into ----------------------------------------------------------


class Unknown:
    """The tangent of what a callable without rule gave: an error, as soon as it is used."""

    __slots__ = ("error", "place")

    def __init__(self, error: errors.DifferentiationError) -> None:
        self.error = error
        self.place = place_of_call()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def refuse(self, *args: Any) -> Any:
        """Raise the error."""
        show(self.place, self.error)
        raise self.error

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = refuse
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __neg__ = __getitem__ = refuse
    __len__ = __iter__ = __float__ = __complex__ = __setitem__ = __contains__ = refuse
    __array__ = __array_ufunc__ = __array_function__ = refuse


@non_differentiable
def place_of_call() -> Place:
    """The user's line that is running."""
    return place_of(sys._getframe(1))


def refuse_unknown(tangents: tuple[Any, ...]) -> None:
    """An error if a tangent is not known."""
    for ẋ in tangents:
        if type(ẋ) is Unknown:
            ẋ.refuse()
        if type(ẋ) is tuple:
            refuse_unknown(ẋ)


non_differentiable(refuse_unknown)


def opaque(
    run: Pass,
    fn: Any,
    ḟ: Any,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...],
    reason: str = "",
) -> Both:
    """A callable that cannot be looked into: its result has no tangent that is known."""
    if run.written:
        refuse_records(run, fn, args)
    before = general.held_by((fn, *args))
    entering = not is_zero(ḟ) or not all_zero(tangents)
    entering = entering or reached(run, (fn, *args)) or lossy.any_marked(args, run.encodings)
    entering = entering or any([shows_memory(x) or id(x) in run.keepers for x in args])
    y = split_call(fn, args, keywords)
    if entering:
        lossy.mark_all(args, run.encodings)
        run.keepers.update({id(x): x for x in (*args, y) if may_keep(x)})
    if lossy.is_text(y) or lossy.holds_text(y):
        if entering:
            lossy.mark(y, run.encodings)
        return y, ZERO
    for x, keys in general.changes(before):
        if not is_by_identity(x):
            raise errors.changed_in_place(fn, x)
        if entering or reached(run, (x,)):
            error = errors.no_rule(
                fn, args, reason=reason, why="which changes one of its arguments"
            )
            if not holds_bytes(x, keys):
                raise error
            set_tangents(run, x, Unknown(error))
    for x, ẋ in zip(args, tangents, strict=True):
        if y is x:
            return y, ẋ
    return y, unknown_tangent(run, fn, args, y, reason) if entering else ZERO


CODE = (type, *general.CALLED_BY_CODE, BuiltinFunctionType, np.ufunc)


def may_keep(x: Any) -> bool:
    """May a compiled object store what it is given, where nobody sees it, and give it back later?"""
    unseen = is_by_identity(x) or is_of_unknown_space(x)
    return unseen and parts_of(x) is None and not isinstance(x, CODE)


def holds_bytes(x: Any, keys: list[Any]) -> bool:
    """Is what lies there no value, but memory that only calls without rule read?"""
    parts = parts_of(x) or {}
    return all([isinstance(parts.get(key), bytes) for key in keys])


non_differentiable(holds_bytes, may_keep)


def unknown_tangent(run: Pass, fn: Any, args: tuple[Any, ...], y: Any, reason: str = "") -> Any:
    """The tangent of what a callable gave into which tangents have gone."""
    if not carries(y) or shows_memory(y):  # to read that memory gives what is not known
        return ZERO
    error = errors.no_rule(fn, args, reason=reason)
    if type(y) in general.RUN_LATER or (isinstance(y, tuple) and holds_mutable(y)):
        raise error
    if holds_mutable(y):
        set_tangents(run, y, Unknown(error))
        return ZERO
    return unknown_like(y, Unknown(error))


def lost(y: Any, error: errors.DifferentiationError) -> Any:
    """The tangent of a value of which a rule has said that it has none."""
    return unknown_like(y, Unknown(error))


def unknown_like(y: Any, unknown: Unknown) -> Any:
    """The same tangent for every item of a tuple that may have one, for they are used one by one."""
    if not isinstance(y, tuple):
        return unknown if carries(y) else ZERO
    return tuple([unknown_like(item, unknown) for item in y])


def carries(y: Any) -> bool:
    """May this value have a tangent?"""
    if isinstance(y, tuple):
        return any([carries(item) for item in y])
    return has_tangent(type(y)) and y is not NotImplemented


non_differentiable(lost, unknown_like, carries)

# -- Python functions ------------------------------------------------------------------------------


def try_forward_of(fn: FunctionType, protected: bool = False) -> tuple[FunctionType | None, str]:
    """The forward program of a function, called in a protected region or not, or why there is none."""
    try:
        return forward_of(fn, noting if protected else push, attempted), ""
    except errors.UnsupportedError as error:
        return None, str(error)


non_differentiable(try_forward_of, binder_of, count_of_parameters)


def python_function(
    run: Pass,
    fn: FunctionType,
    ḟ: Any,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...] = (),
) -> Both:
    """A Python function: through its own code."""
    forward, reason = try_forward_of(fn, run.protected > 0)
    if forward is None:
        return opaque(run, fn, ḟ, args, tangents, keywords, reason)
    code = fn.__code__
    if not keywords and is_simple(code) and len(args) == code.co_argcount:
        return forward(run, *args, *tangents)
    values = split_call(binder_of(fn), args, keywords)
    missing = missing_arguments(fn, len(args) - len(keywords), keywords)
    if missing:
        values = with_defaults(fn, values, missing)
    return forward(run, *values, *bound(run, fn, values, tangents, keywords))


def with_defaults(
    fn: FunctionType, values: tuple[Any, ...], missing: dict[str, Any]
) -> tuple[Any, ...]:
    """The values of the parameters; default values are read from the function that has them."""
    names = fn.__code__.co_varnames
    places = {names.index(name): place for name, place in missing.items()}
    return tuple([default_value(*places[i]) if i in places else x for i, x in enumerate(values)])


def is_simple(code: CodeType) -> bool:
    """Has a function no parameters but positional ones?"""
    return not (code.co_flags & 0x0C or code.co_kwonlyargcount)


def bound(
    run: Pass,
    fn: FunctionType,
    values: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...],
) -> list[Any]:
    """The tangents of the parameters from those of the arguments of a call."""
    code = fn.__code__
    found: list[Any] = [ZERO] * len(values)
    star = code.co_argcount + code.co_kwonlyargcount
    rest: list[Any] = []
    n = len(tangents) - len(keywords)
    for where, ẋ in zip(general._binding(code, n, keywords), tangents, strict=True):
        if type(where) is int:
            found[where] = ẋ
        elif where[0] == star and code.co_flags & 0x04:
            rest.append(ẋ)
        else:
            set_value(run, values[where[0]], where[1], ẋ)
    if not all_zero(rest):
        found[star] = tuple(rest)
    names = code.co_varnames
    for name, place in missing_arguments(fn, n, keywords).items():
        found[names.index(name)] = value_of(run, *place)
    return found


non_differentiable(is_simple)
