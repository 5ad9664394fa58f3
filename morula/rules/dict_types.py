"""What the specialised path knows of the values in dicts that a program makes.

Dicts that may be one and the same share one `Entries`, as lists share their `Items`: the type of the
value of every key that is a constant, and that of all values under keys that are computed. Nothing is
known of dicts from outside, but what present arguments show when they are read.
Tests: tests/rules/test_dict_types.py
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from morula.core.extend import (
    NEVER,
    NONE,
    ZERO,
    Const,
    Contents,
    Known,
    NotSpecialised,
    adjoint_of,
    coarsened,
    contents,
    effects,
    equal,
    exactly,
    follows_changes,
    join,
    known,
    known_value,
    lacks,
    lose,
    only_reads,
    primitives,
    rewrites,
    transfers,
)
from morula.rules.dicts import Key
from morula.rules.list_types import Shared, item, items_of
from morula.rules.memos import is_remembered, refuse, remember
from morula.rules.objects import give, take

COMPUTED = object()  # stands for all keys that are not constants


class Entries(Shared):
    """What is known of the values of some dicts: by key, or nothing; and of all keys."""

    outside = False

    def __init__(self, inference: Any) -> None:
        super().__init__(inference)
        self.values: dict[Any, Any] | None = {}
        self.key: Any = NEVER
        self.make: Any = None  # what makes the value of a missing key

    def put(self, key: Any, value: Any) -> None:
        """A dict gets a value of which this is known."""
        this = self.root()
        this.put_key(item(key))
        this.put_at(place_of(key), value)

    def put_at(self, place: Any, value: Any) -> None:
        """The same where the value is kept in mind."""
        this = self.root()
        if this.values is None:
            lose(value)
            return
        old = this.values.get(place, NEVER)
        new = join(old, value)
        if this.values is None:  # it is among what is no longer followed
            return
        if place not in this.values or not equal(new, old):
            this.values[place] = new
            this.inference.grown = True

    def put_key(self, key: Any) -> None:
        """A dict gets a key of which this is known."""
        new = join(self.key, key)
        if not equal(new, self.key):
            self.key = new
            self.inference.grown = True

    def held(self) -> list[Any]:
        """What is known of the values, one by one."""
        return list((self.root().values or {}).values())

    def at(self, key: Any) -> Any:
        """What is known of the value under a key."""
        values = self.root().values
        if values is None:
            return None
        place = place_of(key)
        if place is COMPUTED:
            return functools.reduce(join, values.values(), NEVER)
        return join(values.get(place, NEVER), values.get(COMPUTED, NEVER))

    def merge(self, other: Any) -> None:
        """Take over what is known of the dicts of another one."""
        values, other.values = other.values, {}
        self.outside |= other.outside
        self.put_key(other.key)
        if values is None or self.make is not other.make:
            self.forget()
        for place, value in (values or {}).items():
            self.put_at(place, value)

    def forget(self) -> None:
        """The dicts may hold anything."""
        this = self.root()
        values, this.values = this.values, None
        for value in (values or {}).values():
            lose(value)
        if values is not None:
            this.inference.grown = True


@dataclass(frozen=True)
class Named:
    """The keys of a dict that is an argument, and the types of its values."""

    keys: tuple[str, ...]
    types: tuple[type, ...]
    arrays: tuple[tuple[str, Known], ...]  # by key, what more is known of them


MOST_KEYS = 16
PLAIN = {float, int, np.float64, np.ndarray}


def place_of(key: Any) -> Any:
    """Where the value of a key is kept in mind."""
    plain = type(key) is Const and type(key.value) in (str, int)
    return key.value if plain else COMPUTED


class DictContents(Contents):
    """Dicts, known by the types of their values."""

    def seen(self, x: Any) -> Any:
        """The types of the values of a small dict with names as keys, if they are numbers or arrays."""
        if type(x) is not dict or not 0 < len(x) <= MOST_KEYS or set(map(type, x)) != {str}:
            return None
        if not PLAIN.issuperset(map(type, x.values())):
            return None
        kinds: list[Any] = [(key, coarsened(known_value(value))) for key, value in x.items()]
        arrays = tuple([(key, kind) for key, kind in kinds if kind.detail is not None])
        return Named(tuple(x), tuple(map(type, x.values())), arrays)

    def holds(self, x: Any, detail: Any) -> bool:
        """Has a dict these keys, in this order, and values of these types?"""
        if tuple(x) != detail.keys or tuple(map(type, x.values())) != detail.types:
            return False
        return all([coarsened(known_value(x[key])) == kind for key, kind in detail.arrays])

    def begin(self, inference: Any, detail: Any) -> Any:
        """A dict from outside holds what was seen."""
        if type(detail) is not Named:
            return detail
        entries = Entries(inference)
        entries.outside = True
        arrays = dict(detail.arrays)
        for name, kind in zip(detail.keys, detail.types, strict=True):
            entries.put(Const(name), arrays.get(name, Known(kind)))
        inference.memory.setdefault(Entries, []).append(entries)
        return entries

    def join(self, a: Any, b: Any) -> Any:
        """The same may be known under one name: all that is put into one may be in the other."""
        if a is None or b is None:
            self.lose(a)
            self.lose(b)
            return None
        return a.unite(b)

    def lose(self, detail: Any) -> None:
        """Nothing is known of the values any more."""
        if detail is not None:
            detail.forget()

    def changed(self, inference: Any) -> None:
        """Dicts from outside may hold anything now."""
        for entries in inference.memory.get(Entries, ()):
            entries.forget()

    def item(self, detail: Any) -> Any:
        """The type of the keys."""
        return None if detail is None or detail.root().values is None else detail.root().key

    def at(self, detail: Any, key: Any) -> Any:
        """The type of a value."""
        return None if detail is None else detail.at(key)

    def put(self, s: Any, call: Any, container: Any, key: Any, value: Any) -> Any:
        """A value is put into a dict."""
        entries = entries_of(container)
        if entries is None or entries.outside:
            s.own_changes.discard(call.out)
            return None
        entries.put(key, item(value))
        s.own_changes.add(call.out)
        return Known(type(None))


DICTS = (dict, defaultdict)
contents.update(dict.fromkeys(DICTS, DictContents()))


def entries_of(value: Any) -> Entries | None:
    """What is known of the values of a dict."""
    k = known(value)
    return k.detail.root() if k is not None and k.type in DICTS and k.detail is not None else None


@transfers(defaultdict)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A dict that makes values by a function that is known."""
    if len(args) != 1 or call.keywords or type(args[0]) is not Const or not callable(args[0].value):
        return None
    made: Entries = s.memory.setdefault(call.out, Entries(s))
    made.make = args[0].value
    return Known(defaultdict, made.root())


@rewrites
def _(s: Any) -> bool:
    """Who assigns `d.default_factory` changes what is known of d."""
    for c in s.ir.calls():
        k = known(s.value(c.args[0])) if c.primitive is setattr else None
        if k is not None and k.type in DICTS:
            raise NotSpecialised("the factory of a dict is assigned")
    return False


@transfers(dict.__getitem__)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """The value of a key that is there."""
    entries = entries_of(args[0])
    return None if entries is None else entries.at(args[1])


@transfers(primitives.build_map)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    made: Entries = s.memory.setdefault(call.out, Entries(s))
    for key, value in zip(args[::2], args[1::2], strict=True):
        made.put(key, item(value))
    return Known(dict, made.root())


@transfers(primitives.map_add)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A dict that is under construction nobody else holds yet."""
    entries = entries_of(args[0])
    if entries is None:
        return None
    entries.put(args[1], item(args[2]))
    return Known(type(None))


@transfers(operator.delitem)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """What a dict or a list of the program loses; all others may have lost it."""
    found = entries_of(args[0]) or items_of(args[0])
    if found is None or found.outside:
        s.own_changes.discard(call.out)
        return None
    s.own_changes.add(call.out)
    found.root().some = False
    return Known(type(None))


@transfers(dict, dict.copy)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A copy of a dict holds the same values."""
    entries = entries_of(args[0]) if len(args) == 1 and not call.keywords else None
    if entries is None:
        return None
    made: Entries = s.memory.setdefault(call.out, Entries(s))
    made.put_key(entries.key)
    if entries.values is None:
        made.forget()
    for place, value in (entries.values or {}).items():
        made.put_at(place, value)
    return Known(dict, made.root())


@transfers(dict.keys, dict.values, dict.items)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A view of a dict that is followed."""
    followed = entries_of(args[0]) is not None and len(args) == 1
    return Known(type(getattr({}, call.primitive.__name__)())) if followed else None


@transfers(operator.contains)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """A truth value, unless Python cannot look there, or not for this."""
    container, key = args
    if lacks(container, "__contains__", "__iter__", "__getitem__"):
        return None
    hashes = not lacks(container, "keys") or not lacks(container, "union")
    return None if hashes and lacks(key, "__hash__") else Known(bool)


@transfers(dict.get)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    entries = entries_of(args[0])
    if entries is None:
        return None
    return join(entries.at(args[1]), args[2] if len(args) > 2 else Const(None))


def give_at(d: dict[Any, Any], key: Any, x̄: Any) -> None:
    """Add to the adjoint of the value under a key."""
    give(adjoint_of(d), key, x̄)


def take_at(d: dict[Any, Any], key: Any) -> Any:
    """The cotangent of the value under a key, which has none afterwards."""
    return take(adjoint_of(d), key)


def take_key(d: dict[Any, Any], key: Any, new: bool) -> Any:
    """The cotangent of a key, if the dict has it from here on."""
    return take(adjoint_of(d), Key(key)) if new else ZERO


effects(give_at, take_at, take_key)


def take_item(d, key):
    y = d[key]

    def getitem_pullback(x̄):
        give_at(d, key, x̄)
        return NONE, NONE

    return y, getitem_pullback


def put_item(d, key, value):
    new = key not in d
    d[key] = value

    def setitem_pullback(ȳ):
        return NONE, take_key(d, key, new), take_at(d, key)

    return None, setitem_pullback


def take_item_of_memo(d, key):
    y = d[key]
    is_memo = is_remembered(d, key)

    def getitem_pullback(x̄):
        if is_memo:
            refuse(x̄, key)
        give_at(d, key, x̄)
        return NONE, NONE

    return y, getitem_pullback


def put_item_of_memo(d, key, value):
    new = key not in d
    d[key] = value

    def setitem_pullback(ȳ):
        remember(d, key)
        return NONE, take_key(d, key, new), take_at(d, key)

    return None, setitem_pullback


VALUES = (float, int, np.float64, np.ndarray, list, tuple, dict)

# Keys of types that Python itself compares; tuples may hold real numbers, by which a dict is a memo.
for _keys, _take, _put in (
    (int, take_item, put_item),
    (str, take_item, put_item),
    (tuple, take_item_of_memo, put_item_of_memo),
):
    exactly(operator.getitem, dict, _keys)(_take)
    for _values in VALUES:
        exactly(operator.setitem, dict, _keys, _values, by_identity=True)(_put)

only_reads(
    primitives.build_map, dict, defaultdict, dict.__getitem__, dict.get, dict.copy, dict.keys,
    dict.values, dict.items, operator.contains,
)  # fmt: skip
follows_changes(primitives.map_add, operator.delitem)
