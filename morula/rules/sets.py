"""Rules of sets and frozensets.

The adjoint object of a set is a dict of cotangents by element: of equal elements, the first one put
in is the element.
Tests: tests/rules/test_containers.py
"""

import operator
from typing import Any

from morula.core.extend import (
    ZERO,
    Known,
    NoTangent,
    adjoint_object,
    adjoint_of,
    call,
    primitives,
    rrule,
    transfers,
)
from morula.rules.containers import by_operator, drain, is_native
from morula.rules.filling import runs_code, update_difference, update_set
from morula.rules.numbers import Anything
from morula.rules.objects import give, take

# -- sets ------------------------------------------------------------------------------------------


@adjoint_object.register(set)
@adjoint_object.register(frozenset)
def _(x: Any) -> dict[Any, Any]:
    return {}


def fill(s: set[Any], items: Any) -> Any:
    """Add all items to a set; gives the cotangents of those that were not in it before."""
    before = [item in s for item in items]
    new = []
    for item in items:
        new.append(item not in s)
        set.add(s, item)
    del before

    def fill_pullback() -> list[Any]:
        bars = adjoint_of(s)
        return [take(bars, x) if is_new else ZERO for x, is_new in zip(items, new, strict=True)]

    return fill_pullback


@rrule(primitives.build_set, by_identity=True)
def _(*items: Anything):
    y: set[Any] = set()
    back = fill(y, items)
    return y, lambda ȳ: tuple(back())


@rrule(set, by_identity=True)
def _(*items: Anything):
    values, back = drain(*items) if items else ([], None)
    y: set[Any] = set()
    filled = fill(y, values)
    return y, lambda ȳ: () if back is None else (back(filled()),)


@rrule(frozenset, by_identity=True)
def _(*items: Anything):
    if items and type(items[0]) is frozenset:
        return items[0], lambda ȳ: (ȳ,)
    values, back = drain(*items) if items else ([], None)
    y = frozenset(values)

    def frozenset_pullback(ȳ):
        if back is None:
            return ()
        bars = adjoint_of(y)
        return (back([take(bars, value) for value in values]),)

    return y, frozenset_pullback


@rrule(primitives.set_add, by_identity=True)
@rrule(set.add, by_identity=True)
def _(s: set, item: Anything):
    back = fill(s, [item])
    return None, lambda ȳ: (NoTangent(), back()[0])


@rrule(primitives.set_update, by_identity=True)
@rrule(set.update, by_identity=True)
def _(s: set, *more: Anything):
    if len(more) != 1 or runs_code(more[0]):
        return by_function(update_set, s, more)
    values, back = drain(more[0])
    filled = fill(s, values)
    return None, lambda ȳ: (NoTangent(), back(filled()))


def by_function(fn: Any, s: set[Any], others: tuple[Any, ...]) -> Any:
    """What a function does that changes a set by others."""
    _, back = call(fn, s, *others)
    return None, lambda ȳ: back(ZERO)[1:]


def renewal(method: Any) -> Any:
    """The rule of changing a set by others, from which the elements come that it had not before."""

    def rule(s: set, *others: Anything):
        before = frozenset(s)
        pairs = [(x, None) if is_set(x) else drain(x) for x in others]
        y = method(s, *[values for values, _ in pairs])
        new = [x for x in s if x not in before]

        def renewal_pullback(ȳ):
            bars = adjoint_of(s)
            found = {x: take(bars, x) for x in new}
            return NoTangent(), *[handed_back(found, *pair) for pair in pairs]

        return y, renewal_pullback

    return rule


def handed_back(found: dict[Any, Any], values: Any, back: Any) -> Any:
    """Give elements' cotangents to where they came from."""
    if back is not None:
        return back([found.pop(x, ZERO) for x in values])
    for x in [x for x in found if x in values]:
        give(adjoint_of(values), x, found.pop(x))
    return NoTangent()


def in_place(op: Any, name: str) -> None:
    """The rules of an operator like `|=` on sets."""
    rule = renewal(op)

    @rrule(op, by_identity=True)
    def _(a: set, b: Anything):
        return rule(a, b) if is_native(a, name) and is_set(b) else by_operator(op, a, b)

    rrule(getattr(set, name), by_identity=True)(rule)


for _name in ("intersection_update", "symmetric_difference_update"):
    rrule(getattr(set, _name), by_identity=True)(renewal(getattr(set, _name)))
_difference_at_once = renewal(set.difference_update)


@rrule(set.difference_update, by_identity=True)
def _(s: set, *others: Anything):
    if len(others) == 1 and not runs_code(others[0]):
        return _difference_at_once(s, *others)
    return by_function(update_difference, s, others)


for _name in ("ior", "iand", "isub", "ixor"):
    in_place(getattr(operator, _name), f"__{_name}__")


def removal(method: Any) -> Any:
    """The rule of taking an element out of a set."""

    def rule(s: set, item: Anything):
        method(s, item)

        def removal_pullback(ȳ):
            take(adjoint_of(s), item)
            return NoTangent(), NoTangent()

        return None, removal_pullback

    return rule


rrule(set.remove, by_identity=True)(removal(set.remove))
rrule(set.discard, by_identity=True)(removal(set.discard))


@rrule(set.pop, by_identity=True)
def _(s: set):
    y = set.pop(s)

    def pop_pullback(ȳ):
        give(adjoint_of(s), y, ȳ)
        return (NoTangent(),)

    return y, pop_pullback


@rrule(set.clear, by_identity=True)
def _(s: set):
    set.clear(s)

    def clear_pullback(ȳ):
        adjoint_of(s).clear()
        return (NoTangent(),)

    return None, clear_pullback


def combination(method: Any) -> Any:
    """The rule of making a set of others: each element comes from the first that has it."""

    def rule(s: set | frozenset, *others: Anything):
        pairs = [(x, None) if is_set(x) else call(frozenset, x) for x in others]
        sources = [s, *[source for source, _ in pairs]]
        y = method(*sources)
        origins = [(x, next((s for s in sources if x in s), None)) for x in y]

        def combination_pullback(ȳ):
            bars = adjoint_of(y)
            for element, origin in origins:  # all of these sets may hold others now
                c = take(bars, element)
                if origin is not None:
                    give(adjoint_of(origin), element, c)
            of_others = [NoTangent() if back is None else back(ZERO)[1] for _, back in pairs]
            return NoTangent(), *of_others

        return y, combination_pullback

    return rule


def is_set(x: Any) -> bool:
    """Is it a set?"""
    return isinstance(x, (set, frozenset))


for _name in ("union", "intersection", "difference", "symmetric_difference", "copy"):
    for _cls in (set, frozenset):
        rrule(getattr(_cls, _name), by_identity=True)(combination(getattr(_cls, _name)))


def set_operator(op: Any) -> Any:
    """The rule of `|` and its kin on sets."""

    def rule(a: set | frozenset, b: set | frozenset):
        return combination(op)(a, b)

    return rule


for _op in (operator.or_, operator.and_, operator.sub, operator.xor):
    rrule(_op, by_identity=True)(set_operator(_op))


del _cls, _name, _op


@transfers(primitives.build_set)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """Of its items nothing is known."""
    return Known(set)
