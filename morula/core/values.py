"""What may be known of a value before the program runs.

A value is known as a constant (`Const`), by its exact type and a detail (`Known`), as one of a few
types (`OneOf`), or not at all (None).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import FunctionType, NoneType
from typing import Any

from morula.core.cotangents import ZERO, AbstractZero
from morula.core.ir import Const, Var
from morula.core.primitives import UNDEFINED
from morula.core.simplify import is_simple
from morula.core.ssa import same
from morula.core.traits import (
    Known,
    coarse,
    contents,
    decide_details,
    describe,
    is_finest,
    may_hold_others,
    sample,
)


@dataclass(frozen=True)
class OneOf:
    """A value of one of a few types that rules mostly treat alike, such as int and float."""

    members: frozenset[Known]


class Never:
    """Stands for the result of what has not been seen to return."""


class Plain:
    """Stands for the type of a cotangent that is a number or an array, no structural zero."""


NEVER: Any = Never()
Value = Const | Known | OneOf | None
MOST_MEMBERS = 3


def join(a: Value, b: Value) -> Value:
    """What is known of a value that is `a` or `b`."""
    if type(a) is Const and type(b) is Const and equal(a, b):
        return a
    if a is NEVER:
        return b
    if b is NEVER:
        return a
    if is_zero_value(a) and is_zero_value(b):
        return Const(ZERO)
    if is_zero_value(a):  # cotangents: what a value is where it is not structurally zero
        return b
    if is_zero_value(b):
        return a
    if a is None or b is None:
        lose(a)
        lose(b)
        return None
    x, y = known(a), known(b)
    if x is not None and y is not None and x.type is y.type in contents:
        return Known(x.type, contents[x.type].join(x.detail, y.detail))
    if x is not None and y is not None and x.type is y.type and issubclass(x.type, tuple):
        i, j = x.detail, y.detail
        if i is None or j is None or len(i) != len(j):
            lose(x)
            lose(y)
            return Known(x.type)
        return Known(x.type, tuple([join(p, q) for p, q in zip(i, j, strict=True)]))
    members = possibilities(a) | possibilities(b)
    if (found := followed_or_none(members)) is not None:
        return found
    if len(members) > 1 and len({m.type for m in members}) == 1:
        members = frozenset(map(coarse, members))
    if len(members) == 1:
        return next(iter(members))
    if len(members) > MOST_MEMBERS or any(m.detail is not None for m in members):
        lose(a)
        lose(b)
        return None
    return OneOf(members)


def followed_or_none(members: frozenset[Known]) -> Value:
    """What is known of what is None or unbound, or a container that is followed nevertheless."""
    absent = [m for m in members if m.type in ABSENT]
    there = [m for m in members if m.type not in ABSENT]
    if not there or len({m.type for m in there}) > 1 or any(m.detail is None for m in there):
        return None
    kind = contents.get(there[0].type)
    if kind is None or not kind.may_be_missing:
        return None
    detail = functools.reduce(kind.join, [m.detail for m in there])
    return OneOf(frozenset((*absent, Known(there[0].type, detail))))


ABSENT = (NoneType, type(UNDEFINED))


def followed_of(value: OneOf) -> Known | None:
    """The container that is followed, of a value that is one or None."""
    return next((m for m in value.members if m.type in contents and m.detail is not None), None)


def lose(value: Value) -> None:
    """A value is known under a name of which nothing is known."""
    if type(value) is OneOf:
        for member in value.members:
            lose(member)
        return
    if type(value) is not Known or value.detail is None:
        return
    if value.type in contents:
        contents[value.type].lose(value.detail)
    elif type(value.detail) is tuple:
        for inside in value.detail:
            lose(inside)
    else:
        lose(value.detail)


def types_inside(value: Value) -> list[Any]:
    """The types of all that a value holds; None for what is not known."""
    if value is None:
        return [None]
    found: list[Any] = []
    for k in value.members if type(value) is OneOf else (known(value),):
        assert k is not None
        if k.type is not tuple and k.type not in contents:
            found += [None] if may_hold_others(k.type) else []
        elif k.detail is None:
            found.append(None)
        else:
            for v in k.detail if k.type is tuple else (contents[k.type].item(k.detail),):
                if v is not NEVER:
                    found += [None] if v is None else [of.type for of in possibilities(v)]
                    found += types_inside(v)
    return found


def without_contents(value: Value) -> Value:
    """The same but for what containers hold."""
    if type(value) is Known and value.type in contents:
        return Known(value.type)
    if type(value) is Known and value.type is tuple and value.detail is not None:
        return Known(tuple, tuple(map(without_contents, value.detail)))
    return value


def kept_contents(value: Value) -> Value:
    """The same with what lists hold, as far as that stays what it is."""
    if type(value) is Known and value.type in contents:
        return Known(value.type, contents[value.type].kept(value.detail))
    if type(value) is Known and value.type is tuple and value.detail is not None:
        return Known(tuple, tuple(map(kept_contents, value.detail)))
    return value


def waits_for_contents(value: Value) -> bool:
    """Has nothing been seen yet that a container holds, of those whose contents are handed on?"""
    if type(value) is not Known or value.type not in contents or value.detail is None:
        return False
    kind = contents[value.type]
    inside = kind.item(value.detail)
    return kind.hands_on and (inside is NEVER or waits_for_contents(inside))


def is_zero_value(value: Value | Var) -> bool:
    """Is it known to be structurally zero?"""
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
    if isinstance(x, tuple) and depth and len(x) <= 32 and is_named_tuple(type(x)):
        return Known(type(x), tuple([known_value(i, depth - 1) for i in x]))
    return describe(x)


def is_named_tuple(cls: type) -> bool:
    """Is it a class of named tuples, made and read in the way of all of them?"""
    if not issubclass(cls, tuple) or cls is tuple:
        return False
    new, fields = cls.__new__, getattr(cls, "_fields", None)
    return (
        type(cls) is type
        and type(fields) is tuple
        and type(new) is FunctionType
        and str(new.__globals__.get("__name__")).startswith("namedtuple_")
        and cls.__init__ is object.__init__
        and cls.__getattribute__ is tuple.__getattribute__
        and not hasattr(cls, "__getattr__")
        and cls.__iter__ is tuple.__iter__
        and cls.__getitem__ is tuple.__getitem__
        and cls.__len__ is tuple.__len__
    )


class IteratorOver:
    """Stands for the type of the iterator over a value of known type, its detail."""


def alternatives(value: Value) -> list[Value]:
    """The single types that a value may have."""
    return list(value.members) if type(value) is OneOf else [value]


def argument_value(x: Any) -> Known:
    """What is taken as known of an argument, with what a container holds."""
    k = known_value(x)
    return Known(k.type, contents[k.type].seen(x)) if k.type in contents else k


def is_fine(value: Value) -> bool:
    """Does what is known have its finest detail, as far as samples go?"""
    if type(value) is not Known:
        return type(value) is Const
    if value.type in (tuple, slice) or has_items(value):
        return value.detail is not None and all(map(is_fine, value.detail))
    if value.type in decide_details:
        return False
    return value.type not in is_finest or is_finest[value.type](value.detail)


def coarsened(value: Value) -> Value:
    """The same with coarse details."""
    if type(value) is not Known:
        return value
    if (value.type in (tuple, slice) or has_items(value)) and value.detail is not None:
        return Known(value.type, tuple(map(coarsened, value.detail)))
    return coarse(value)


def has_items(value: Known) -> bool:
    """Is it a named tuple whose items are known?"""
    return issubclass(value.type, tuple) and value.detail is not None


def is_plainly_named(value: Known) -> bool:
    """Is it such a named tuple, of a class that leaves it to `tuple` how items are read?"""
    if not has_items(value):
        return False
    t: Any = value.type
    return t.__iter__ is tuple.__iter__ and t.__getitem__ is tuple.__getitem__


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


def key_of(value: Value) -> Any:
    """A hashable that stands for what is known."""
    if type(value) is Const:
        return "constant", type(value.value), id(value.value)
    if type(value) is Known and value.type in (tuple, slice) and value.detail is not None:
        return value.type, tuple([key_of(v) for v in value.detail])
    return value
