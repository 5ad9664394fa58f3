"""The forward rule that a reverse rule gives: a pullback is linear, its own pullback is the transpose.

For y = f(x) the pullback is ȳ ↦ J* ȳ. Its derivative by ȳ does not depend on ȳ; the pullback of
that is ẋ ↦ J** ẋ = J ẋ, the pushforward. The pullback runs once, on zeros of the shape of y (numbers
in its pattern, where y is sparse), and is differentiated in reverse by Morula itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core import context, errors, general, memory, traits
from morula.core.cotangents import (
    ZERO,
    NotKnown,
    Tangent,
    Thunk,
    accumulate,
    is_zero,
    project_to,
    unthunk,
)
from morula.core.registry import Rule, non_differentiable
from morula.core.traits import adjoint_object, has_tangent
from morula.mixed_mode.tangents import (
    BY_VALUE,
    Pass,
    all_zero,
    holder_of,
    holds_mutable,
    in_space_of,
    item_of,
    placed,
    reached,
    refresh_held,
    set_item,
    set_tangents,
    tangents_if_any,
    tangents_of,
    together,
    zeros_like,
)
from morula.rules import meta
from morula.rules.boxes import Box
from morula.rules.builtins import PARTS
from morula.rules.calls import entry
from morula.rules.dicts import Key
from morula.rules.objects import has_fields, is_by_identity, own_fields

Refused = Callable[[Any, errors.UnsupportedError], Any]


def transposed_rule(
    run: Pass,
    rule: Rule,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...],
    refused: Refused | None = None,
) -> tuple[Any, Any]:
    """The value and its tangent by a reverse rule for arguments whose tangents go by value.

    `refused` says what it is where the rule refuses, as at a degenerate point.
    """
    n = len(args) - len(keywords)
    named = dict(zip(keywords, args[n:], strict=True))
    y, pullback = rule.function(*args[:n], **named)
    seed = seed_for(y, set())
    refuse_unknown_space(y, seed)
    if seed is ZERO:
        return y, ZERO
    positions = rule.positions(n, keywords)
    kept = (rule, n, positions, [project_to(x) for x in args], False, None, y, args)
    try:
        ẏ = run.gathered(transposed(pullback, kept, seed, run.split(tangents)))
    except errors.UnsupportedError as error:
        if refused is None or holds_mutable(y):
            raise
        return y, refused(y, error)
    return y, placed(run, y, ẏ) if holds_mutable(y) else ẏ


def refuse_unknown_space(y: Any, seed: Any) -> None:
    """Refuse a value without seed of which nobody says in which space its tangents lie."""
    if type(seed) is tuple:
        for part, of_part in zip(y, seed, strict=True):
            refuse_unknown_space(part, of_part)
    if seed is ZERO and is_of_unknown_space(y):
        raise errors.UnsupportedError(
            f"values of {type(y).__qualname__} have no derivative in forward mode: no frule gives "
            "their tangents, and nothing is known of their space from which a reverse rule could"
        )


def is_of_unknown_space(y: Any) -> bool:
    """Does a value have tangents, and says nobody in which space they lie?"""
    materialise = traits.materialise.dispatch
    unknown = materialise(type(y)) is materialise(object) and not is_by_identity(y)
    return unknown and has_tangent(type(y))


def seed_for(y: Any, met: set[int]) -> Any:
    """Where a pullback is transposed: at zeros, but for values whose form zeros would lose.

    What is mutable counts once: `met` are those that have a seed.
    """
    if isinstance(y, tuple):
        return tuple([seed_for(v, met) for v in y])
    if holds_mutable(y):
        if id(y) in met:
            return ZERO
        met.add(id(y))
    if isinstance(y, (list, deque)):
        return [seed_for(v, met) for v in y]
    some = traits.some_cotangent(y)
    if some is not None:  # sparse arrays, of which some are dicts
        return some
    if isinstance(y, dict):
        return {key: seed_for(v, met) for key, v in y.items()}
    if has_parts(y):
        return Tangent[type(y)]({name: seed_for(v, met) for name, v in own_fields(y).items()})
    if type(y) in PARTS:
        return Tangent[type(y)]({name: seed_for(getattr(y, name), met) for name in PARTS[type(y)]})
    return zeros_like(y)


def has_parts(y: Any) -> bool:
    """Is it an object whose tangent is that of its attributes?"""
    return holds_mutable(y) and has_tangent(type(y)) and has_fields(type(y))


non_differentiable(refuse_unknown_space, seed_for, has_parts)


def at_seed(y: Any, seed: Any, ẏ: Any) -> Any:
    """The tangent of a value by value, from the cotangent of the seed that a pullback was given."""
    if type(seed) is tuple:
        parts = [at_seed(v, s, entry(ẏ, i)) for i, (v, s) in enumerate(zip(y, seed, strict=True))]
        return together(parts)
    if type(seed) is list:
        found = [*(context.adjoint_if_any(seed) or ()), *[ZERO] * len(seed)]
        return together([at_seed(*each) for each in zip(y, seed, found, strict=False)])
    if type(y) in PARTS and seed is not ZERO:
        parts = [at_seed(getattr(y, k), s, entry(ẏ, k)) for k, s in seed._fields.items()]
        return Tangent[type(y)](dict(zip(seed._fields, parts, strict=True)))
    if type(seed) in (dict, Tangent):
        held, values = (seed, y) if type(seed) is dict else (seed._fields, own_fields(y))
        bars = context.adjoint_if_any(held) or {}
        return {key: at_seed(values[key], s, bars.get(key, ZERO)) for key, s in held.items()}
    return in_space_of(y, accumulate(ẏ, traits.from_memory(seed, ())))


def transposed(pullback: Any, kept: Any, seed: Any, directions: list[Any]) -> list[Any]:
    """The pushforward of a pullback, its own pullback by the cotangent that it takes, along some."""
    with np.errstate(all="ignore"), context.isolated():
        return transpose(pullback, kept, seed, directions)


def transpose(pullback: Any, kept: Any, seed: Any, directions: list[Any]) -> list[Any]:
    """The same, as differentiated code sees it."""
    outer = context.enter()
    log = memory.begin_log()
    try:
        bars, back = general.call(meta.pull_back, pullback, kept, seed)
        bars, back_of_thunks = computed(bars, directions)
    finally:
        written = memory.end_log(log)
    context.leave(outer)
    found = []
    for tangents in directions:
        outer = context.enter(written)
        handed = back_of_thunks(handed_in(bars, tangents))
        found.append(at_seed(kept[-2], seed, back(handed)[-1]))
        context.leave(outer)
    return found


def handed_in(bars: Any, tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tangents as cotangents of these cotangents: some of those are found by identity."""
    return tuple([handed_to(x̄, ẋ) for x̄, ẋ in zip(bars, tangents, strict=True)])


def handed_to(x̄: Any, ẋ: Any) -> Any:
    """A tangent as the cotangent of this cotangent."""
    if is_zero(ẋ):
        return ẋ
    if type(x̄) is NotKnown:
        x̄.refuse()
    return project_to(x̄)(ẋ) if type(x̄) in (tuple, Tangent) else ẋ


def computed(bars: Any, directions: list[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Cotangents, thunks computed where there is a tangent; and what that means for tangents."""
    if not any([type(x̄) is Thunk for x̄ in bars]):
        return bars, lambda handed: handed
    wanted = tuple([not all_zero(dots) for dots in zip(*directions, strict=True)])
    bars, back = general.call(forced, bars, wanted)
    return bars, lambda handed: back(handed)[1]


def forced(bars: Any, wanted: tuple[bool, ...]) -> Any:
    """Cotangents that are computed where there is a tangent: their transpose asks how."""
    return tuple([unthunk(x̄) if w else ZERO for x̄, w in zip(bars, wanted, strict=True)])


def transposed_attribute(run: Pass, rule: Any, x: Any, ẋ: Any) -> Any:
    """The tangent of an attribute of a number or an array, by its reverse rule."""
    if is_zero(ẋ):
        return ZERO
    y, pullback = rule(x)
    seed = seed_for(y, set())
    refuse_unknown_space(y, seed)
    if seed is ZERO:
        return ZERO
    outer = memory.follow(None)
    kept = (AttributeRule(), 1, [0], [project_to(x)], False, None, y, (x,))
    found = transposed(pullback, kept, seed, run.split((ẋ,)))
    memory.follow(outer)
    return run.gathered(found)


class AttributeRule:
    """A rule of one argument that was not registered for a callable."""

    by_identity = False
    trusted = True
    primal = None

    def checked(self, cotangents: Any, n_args: int) -> Any:
        """The result of the pullback."""
        return cotangents


# -- calls that move the cotangents of mutable values ----------------------------------------------


def transposed_call(
    run: Pass,
    fn: Any,
    ḟ: Any,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...],
    refused: Refused | None = None,
) -> tuple[Any, Any]:
    """Any call by its reverse rule, also one that makes or changes mutable values.

    The adjoint objects of all that the arguments and the value hold begin as zeros of the state
    after the call; the pullback brings them to the state before. In its transpose, the tangents
    before go in where the pullback left them, and come out, as those after, where it began.
    """
    if run.written:
        refresh_held(run, (fn, *args))
    if nothing_enters(run, fn, ḟ, args, tangents):
        n = len(args) - len(keywords)
        return fn(*args[:n], **by_name(args, keywords)), ZERO
    if run.primitive is not None:
        raise errors.no_rule(fn, args, why=run.refusal)
    with np.errstate(all="ignore"), context.isolated():
        return transpose_call(run, fn, ḟ, args, tangents, keywords, refused)


def nothing_enters(
    run: Pass, fn: Any, ḟ: Any, args: tuple[Any, ...], tangents: tuple[Any, ...]
) -> bool:
    """Have the arguments no tangents, and is none of them a function, which may find others?"""
    if not is_zero(ḟ) or not all_zero(tangents) or any([callable(x) for x in args]):
        return False
    return not reached(run, (fn, *args))


def by_name(args: tuple[Any, ...], keywords: tuple[str, ...]) -> dict[str, Any]:
    """The arguments that are passed by keywords."""
    return dict(zip(keywords, args[len(args) - len(keywords) :], strict=True))


def transpose_call(
    run: Pass,
    fn: Any,
    ḟ: Any,
    args: tuple[Any, ...],
    tangents: tuple[Any, ...],
    keywords: tuple[str, ...],
    refused: Refused | None = None,
) -> tuple[Any, Any]:
    """The same, as differentiated code sees it."""
    n = len(args) - len(keywords)
    named = by_name(args, keywords)
    known = mutable((fn, *args))
    carriers = carriers_among(run, args, tangents, known)
    before = {id(x): parts_of(x) for x in known} if carriers else {}
    # By J of J, for the pullback is to be differentiated in its turn.
    log = memory.begin_log()
    try:
        (y, back), _ = general.call(general.call, fn, *args[:n], **named)
    finally:
        written = memory.end_log(log)
    if written:
        raise errors.written_in_transpose(fn)
    pairs = [(x, filled(x)) for x in mutable((fn, *args, y), known)]
    unmoved = []
    if carriers:
        unmoved = [part for x, _ in pairs for part in unmoved_parts(run, x, before, carriers)]
    outer = install(pairs)
    log = memory.begin_log()
    seed = seed_for(y, {id(x) for x, _ in pairs})
    refuse_unknown_space(y, seed)
    try:
        bars, pull = general.call(back, seed)
    except errors.UnsupportedError as error:
        if refused is None or any(map(holds_mutable, (*args, y))):
            raise
        memory.end_log(log)
        put_back(outer)
        return y, refused(y, error)
    directions = run.split((ḟ, *tangents))
    bars, back_of_thunks = computed(bars, directions)
    written = memory.end_log(log)
    of_value, of_held = [], []
    for dots, held in zip(
        directions,
        run.split([tangents_if_any(run, x) for x, _ in pairs]),
        strict=True,
    ):
        doubled = [(x̄, as_adjoint(x̄, ẋ)) for (_, x̄), ẋ in zip(pairs, held, strict=True)]
        around = context.enter(written)
        install(doubled)
        found = pull(back_of_thunks(handed_in(bars, dots)))[-1]
        of_value.append(accumulate(found, traits.from_memory(seed, ())))
        of_held.append([bars_of for _, bars_of in doubled])
        context.leave(around)
    put_back(outer)
    for (x, x̄), found in zip(pairs, run.gathered(of_held), strict=True):
        give_back(run, x, x̄, found)
    for x, key, ẋ in unmoved:
        put_beside(run, x, key, ẋ)
    if holds_mutable(y) and not isinstance(y, tuple):
        return y, ZERO
    return y, run.gathered([in_space_of(y, ẏ) for ẏ in of_value])


def install(pairs: list[tuple[Any, Any]]) -> Any:
    """Begin a reverse pass with these adjoint objects; gives what was there before."""
    outer = context._adjoints.current
    context._adjoints.current = {id(x): (x, x̄) for x, x̄ in pairs}
    return outer


def put_back(outer: Any) -> None:
    """End it."""
    context._adjoints.current = outer


def mutable(values: tuple[Any, ...], known: Any = ()) -> list[Any]:
    """All values with tangents by identity that can be reached from these, and the known ones."""
    found = {id(x): x for x in known}
    held = [holder_of(x) for x, _ in general.held_by(values)]
    held += [x for x in values if type(x) is frozenset]
    found.update({id(x): x for x in held if is_by_identity(x) and not is_owned(x)})
    for x in values:
        by_identity = not isinstance(x, (*BY_VALUE, tuple)) and is_by_identity(x)
        followed = not by_identity or not has_tangent(type(x)) or is_owned(x) or id(x) in found
        if not followed:
            raise errors.no_rule(type(x), values, why="in forward mode")
    return list(found.values())


def is_owned(x: Any) -> bool:
    """Are its tangents found by another value: by the object whose `__dict__` it is, or by that?"""
    return holder_of(x) is not x


def parts_of(x: Any) -> dict[Any, Any]:
    """What a mutable value holds, by the keys of its adjoint object."""
    if isinstance(x, frozenset):
        return {item: item for item in x}
    parts = traits.parts_of(x) or {}
    if isinstance(x, dict):
        parts = {**{Key(k): k for k in x if type(k) is not int and has_tangent(type(k))}, **parts}
    return parts


def filled(x: Any) -> Any:
    """The adjoint object of a mutable value, with zeros for all that it holds."""
    bars = adjoint_object(x)
    parts = parts_of(x)
    if isinstance(bars, list):
        bars[:] = [zeros_like(v) for v in parts.values()]
    elif isinstance(bars, dict):
        bars.update({k: zeros_like(v) for k, v in parts.items()})
    elif isinstance(bars, Box) and "value" in parts:
        bars.cotangent = zeros_like(parts["value"])
    return bars


def tangents_inside(run: Pass, x: Any) -> list[tuple[Any, Any, Any]]:
    """The parts of a mutable value: by what their tangents are found there, they, and these."""
    held = tangents_if_any(run, x)
    parts = parts_of(x)
    if held is None:
        return [(key, value, ZERO) for key, value in parts.items()]
    if isinstance(held, Box):
        return [(key, value, held.cotangent) for key, value in parts.items()]
    if isinstance(held, list):
        return [(i, value, item_of(held, i)) for i, value in enumerate(parts.values())]
    return [(key, value, held.get(key, ZERO)) for key, value in parts.items()]


def carriers_among(
    run: Pass, args: tuple[Any, ...], tangents: tuple[Any, ...], known: list[Any]
) -> set[int]:
    """The identities of values with tangents in spaces that are not known: given, or held by some."""
    pairs = list(zip(args, tangents, strict=True))
    pairs += [(value, ẋ) for x in known for _, value, ẋ in tangents_inside(run, x)]
    return {id(x) for x, ẋ in pairs if not is_zero(ẋ) and is_of_unknown_space(x)}


def unmoved_parts(run: Pass, x: Any, before: dict[int, Any], carriers: set[int]) -> list[Any]:
    """The tangents of those parts of a mutable value that are carriers, by their keys.

    They are where they were before the call. One that is elsewhere now has lost its tangent: it is
    refused.
    """
    old = before.get(id(x), {})
    found = []
    for key, value, ẋ in tangents_inside(run, x):
        if id(value) not in carriers:
            continue
        if old.get(key) is not value:
            refuse_unknown_space(value, ZERO)
        if not is_zero(ẋ):
            found.append((x, key, ẋ))
    return found


def put_beside(run: Pass, x: Any, key: Any, ẋ: Any) -> None:
    """The tangent of a part of a mutable value."""
    tangents = tangents_of(run, x)
    if isinstance(tangents, Box):
        tangents.cotangent = ẋ
    elif isinstance(tangents, list):
        set_item(run, x, key, ẋ)
    else:
        tangents[key] = ẋ


def as_adjoint(x̄: Any, tangents: Any) -> Any:
    """Tangents as the adjoint object of an adjoint object.

    What the pullback has left nothing of was overwritten: its tangent goes nowhere.
    """
    bars = adjoint_object(x̄)
    if tangents is None:
        return bars
    if isinstance(bars, list):
        bars[:] = map(handed_to, x̄, tangents)
    elif isinstance(tangents, Box):
        bars["cotangent"] = handed_to(x̄.cotangent, tangents.cotangent)
    else:
        bars.update({key: handed_to(x̄[key], ẋ) for key, ẋ in tangents.items() if key in x̄})
    return bars


def give_back(run: Pass, x: Any, x̄: Any, bars: Any) -> None:
    """The tangents of a mutable value after the call."""
    if isinstance(x̄, Box):
        bars = {"cotangent": bars.get("cotangent", ZERO)}
        if is_zero(bars["cotangent"]) and tangents_if_any(run, x) is None:
            return
        box = Box()
        box.cotangent = bars["cotangent"]
        set_tangents(run, x, box)
        return
    held = bars if isinstance(bars, list) else list(bars.values())
    if tangents_if_any(run, x) is not None or not all_zero(held):
        set_tangents(run, x, bars)


non_differentiable(mutable, filled, install, put_back, nothing_enters)
