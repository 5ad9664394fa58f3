"""Dicts of a program whose keys are known, in their order, and stay as they are.

Such are displays, `{"x": a, "y": b}`, dicts from outside of which a program asks whether they have the
keys of the example, and what receives nothing but such dicts of the same keys. A list from outside
that the program asks for its length counts as one: its keys are the places.
Tests: tests/core/test_unroll.py
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

from morula.core.instances import has_constant_keys
from morula.core.ir import IR, Call, Const, Operand, Var, count_uses
from morula.core.primitives import actual_type, build_tuple, dict_merge, dict_update, has_keys

Item = tuple[Operand, list[Call]]  # with the calls that read it
VIEWS = ("keys", "values", "items")
METHODS = {id(getattr(dict, name)): name for name in (*VIEWS, "get", "copy")}
COPIES = (dict, operator.or_)  # what makes a dict of the keys of its arguments
SPREADS = (dict_update, dict_merge, dict.update)  # what puts those of the second into the first
RUNS_OVER = (iter, sorted, list, tuple, enumerate, reversed, zip)
READS = (*RUNS_OVER, *COPIES, operator.getitem, operator.contains, len, has_keys, actual_type)
MOST_ITEMS = 16  # over which loops are unrolled


class Keys:
    """The keys of the dicts of a program, and what defines and what reads its variables."""

    def __init__(self, ir: IR, assumed: Mapping[Any, tuple[Any, ...]] = {}) -> None:
        self.ir = ir
        self.assumed = assumed
        self.uses = count_uses(ir)
        self.made: dict[Operand, Call] = {c.out: c for c in ir.calls()}
        self.readers: dict[Operand, list[Call]] = {}
        for call in ir.calls():
            for x in call.operands():
                self.readers.setdefault(x, []).append(call)

    @functools.cached_property
    def of(self) -> dict[Operand, tuple[Any, ...]]:
        """The keys of the dicts of which they are known, in their order, and stay as they are."""
        found: dict[Operand, tuple[Any, ...]] = {
            c.out: tuple(dict.fromkeys([x.value for x in c.args[::2]]))
            for c in self.made.values()
            if has_constant_keys(c)
        }
        found.update(self.assumed)
        passed: dict[Operand, list[Operand]] = {}
        for p, a in self.ir.passed():
            passed.setdefault(p, []).append(a)
        grown = True
        while grown:  # what receives one of them may receive nothing else
            more = {p: found[a] for p in passed for a in passed[p] if p not in found and a in found}
            found.update(more)
            grown = bool(more)
        while lost := [x for x in found if not self.keeps_keys(x, found, passed)]:
            for x in lost:
                del found[x]
        return found

    def keeps_keys(
        self,
        x: Operand,
        found: dict[Operand, tuple[Any, ...]],
        passed: dict[Operand, list[Operand]],
    ) -> bool:
        """Has a dict these keys, whatever it is known as, and however it is used?"""
        keys = found[x]
        if any(found.get(a) != keys for a in passed.get(x, ())):
            return False
        receivers = [p for p in passed if x in passed[p]]
        if any(found.get(p) != keys for p in receivers) or x in self.ir.returned():
            return False
        return all(self.leaves_keys(c, x, keys) for c in self.readers.get(x, ()))

    def leaves_keys(self, call: Call, x: Operand, keys: tuple[Any, ...]) -> bool:
        """Does a call leave a dict with the same keys, and give it to nobody?"""
        if call.operands().count(x) != 1:
            return False
        if call.primitive is zip:
            return not call.keywords
        if call.primitive in SPREADS and call.args[1:2] == (x,):
            return not call.keywords
        if call.primitive is operator.or_:
            return True
        if call.args[:1] != (x,):
            return False
        if call.primitive is operator.setitem:
            return is_key(call.args[1]) and call.args[1].value in keys
        if call.primitive is getattr:
            calls = self.readers.get(call.out, [])
            return all(self.method(c) is not None for c in calls) and bool(calls)
        if id(call.primitive) in METHODS:
            return True
        return call.primitive in READS

    def method(self, call: Call) -> tuple[str, Operand, tuple[Operand, ...]] | None:
        """The method of a dict that a call may be of, the dict, and the arguments behind it."""
        if call.keywords:
            return None
        if id(call.primitive) in METHODS:
            return METHODS[id(call.primitive)], call.args[0], call.args[1:]
        bound = self.made.get(call.fn)
        if bound is None or bound.primitive is not getattr or self.uses[bound.out] != 1:
            return None
        name = bound.args[1]
        if type(name) is not Const or name.value not in METHODS.values():
            return None
        return name.value, bound.args[0], call.args

    def answer(self, call: Call) -> Operand | None:
        """What a call gives that asks a dict for its length, or for a key that it may have."""
        if call.primitive is len and call.args[0] in self.of:
            return Const(len(self.of[call.args[0]]))
        if call.primitive is operator.contains and call.args[0] in self.of:
            if self.is_list(call.args[0]):
                return None
            key = call.args[1]
            return Const(key.value in self.of[call.args[0]]) if is_key(key) else None
        name, d, args = self.method(call) or ("", None, ())
        if name != "get" or d not in self.of or not is_key(args[0]):
            return None
        if call.fn in self.made:
            self.made[call.fn].removable = True
        if args[0].value not in self.of[d]:
            return args[1] if len(args) > 1 else Const(None)
        call.fn, call.args = Const(operator.getitem), (d, args[0])
        return call.out

    def view(self, call: Call) -> tuple[Operand, str] | None:
        """The dict that a call may be a view of, and of what: values, items or keys."""
        name, d, args = self.method(call) or ("", Const(None), ())
        return (d, name) if name in VIEWS and not args else None

    def are_run_over(self, d: Var, keys: tuple[Any, ...]) -> bool:
        """Does a loop run over a dict or list from outside, or ask for items by computed keys?"""
        readers = self.readers.get(d, [])
        return any(map(self.asks_for_all, readers)) and self.keeps_keys(d, {d: keys}, {})

    def is_copied(self, d: Var) -> bool:
        """Are all items of a dict put into another one?"""
        return any(
            c.primitive in (*COPIES, *SPREADS, dict.copy)
            or (c.primitive is getattr and getattr(c.args[1], "value", None) == "copy")
            for c in self.readers.get(d, [])
        )

    def asks_for_all(self, call: Call) -> bool:
        """May a call be about any item?"""
        if call.primitive is operator.getitem:
            return type(call.args[1]) is not Const or type(call.args[1].value) is slice
        return call.primitive in (*RUNS_OVER, *COPIES, *SPREADS) or self.is_view_of(call)

    def is_view_of(self, call: Call) -> bool:
        """Does a call give a view or a copy of a dict, or the method that does?"""
        if call.primitive is getattr:
            return type(call.args[1]) is Const and call.args[1].value in (*VIEWS, "copy")
        return METHODS.get(id(call.primitive)) in (*VIEWS, "copy")

    def is_list(self, d: Operand) -> bool:
        """Is it a list from outside?"""
        return d in self.assumed and keys_are_places(self.assumed[d])

    def are_as_they_were(self, d: Operand) -> bool:
        """Is nothing written to a dict, or a list, so that a copy of it holds the same?"""
        return all(c.primitive is not operator.setitem for c in self.readers.get(d, ()))

    def copied(self, call: Call) -> list[Operand] | None:
        """The dicts of known keys that a call makes a new dict of, which may be none."""
        name, d, args = self.method(call) or ("", Const(None), ())
        is_copy = name == "copy" and not args
        n = len(call.args) - len(call.keywords)
        if not is_copy and call.primitive not in COPIES:
            return None
        dicts = [d] if is_copy else list(call.args[:n])
        return dicts if all(x in self.of and not self.is_list(x) for x in dicts) else None

    def entries(self, d: Operand) -> tuple[list[Operand], list[Call]]:
        """The keys of a dict and its values, one by one, with the calls that read these."""
        values = [self.ir.var() for _ in self.of[d]]
        pairs = [x for pair in zip(map(Const, self.of[d]), values, strict=True) for x in pair]
        reads = [
            Call(value, Const(operator.getitem), (d, Const(key)))
            for value, key in zip(values, self.of[d], strict=True)
        ]
        return pairs, reads

    def items(self, d: Operand, what: str) -> list[Item] | None:
        """What a view of a dict gives, each read when its turn comes."""
        items: list[Item] = []
        for key in self.of.get(d, ()):
            value, pair = self.ir.var(), self.ir.var()
            read = Call(value, Const(operator.getitem), (d, Const(key)))
            both = Call(pair, Const(build_tuple), (Const(key), value))
            ways: dict[str, Item] = {
                "keys": (value, [read]) if self.is_list(d) else (Const(key), []),
                "values": (value, [read]),
                "items": (pair, [read, both]),
            }
            items.append(ways[what])
        return items if d in self.of else None


def keys_are_places(keys: tuple[Any, ...]) -> bool:
    """Are these keys those of a list?"""
    return keys == tuple(range(len(keys)))


def is_key(x: Operand) -> bool:
    """Is it a key that is known, and does not say itself what it is equal to?"""
    return type(x) is Const and type(x.value) in (str, int)
