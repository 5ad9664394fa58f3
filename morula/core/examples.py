"""Values that the variables of a program may have: what its types are guessed from."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from types import CellType, MemberDescriptorType
from typing import Any

from morula.core import primitives
from morula.core.infer import is_fixed
from morula.core.ir import IR, Call, Const, Operand, Var
from morula.core.primitives import advance, get_cell, load_global, unpack
from morula.core.values import Value, coarsened, known_value, sample_value


class Examples:
    """Values that variables may have, from the arguments of the call for which one compiles."""

    def __init__(self, given: dict[Var, Any]) -> None:
        self.begun_with = given
        self.given = dict(given)
        self.several: dict[Var, _Several] = {}  # where one does not say all

    def begin_with(self, x: Var, example: Any) -> None:
        """One more that is given, not read from others."""
        self.begun_with[x] = self.given[x] = example

    def follow(self, ir: IR, value: Callable[[Operand], Value]) -> None:
        """Examples of what is read from the examples: items, attributes, what loops run over."""
        self.value = value
        self.given = dict(self.begun_with)  # of a loop that was unrolled, the first item is not all
        self.several = {}
        self.appended = {
            c.args[0]: c.args[1] for c in ir.calls() if c.primitive is primitives.list_append
        }
        self.passed: dict[Operand, list[Operand]] = {}
        for p, a in ir.passed():
            self.passed.setdefault(p, []).append(a)
        changed = True
        while changed:
            changed = False
            for call in ir.calls():
                if not self.has(call.out) and (found := self.read(call)) is not NOTHING:
                    self.keep(call.out, found)
                    changed = True
            for p, a in ir.passed():
                if not self.has(p) and type(a) is Var and self.has(a):
                    self.keep(p, self.known(a))
                    changed = True

    def has(self, x: Var) -> bool:
        return x in self.given or x in self.several

    def known(self, x: Operand) -> Any:
        if type(x) is Const:
            return x.value
        assert type(x) is Var
        return self.several.get(x, self.given.get(x, NOTHING))

    def keep(self, x: Var, example: Any) -> None:
        if type(example) is not _Several:
            self.given[x] = example
            return
        self.several[x] = example
        if not are_unlike(example.items):
            self.given[x] = example.items[0]

    def one(self, x: Operand) -> Any:
        """An example of an operand: one that was given, or a sample of its type."""
        if type(x) is Var and x in self.given:
            return self.given[x]
        try:
            return sample_value(self.value(x))
        except KeyError:
            return NOTHING

    def guess(self, call: Call) -> Value:
        """What a call mostly gives, if what is known of its arguments does not decide it."""
        guess = GUESSES.get(id(call.primitive))
        if guess is None or call.keywords:
            return None
        return guess(*map(self.value_at_first, call.args))

    def value_at_first(self, x: Operand) -> Value:
        """What is known of an operand, or of what it is at the beginning of a loop."""
        found = self.value(x)
        if found is None:
            ways = (self.value(a) for a in self.passed.get(x, ()))
            found = next((value for value in ways if value is not None), None)
        return found

    def read(self, call: Call) -> Any:
        if call.primitive is primitives.build_list:
            items = call.args or [a for a in [self.appended.get(call.out)] if a is not None]
            found = [self.one(a) for a in items]
            return NOTHING if not found or any(x is NOTHING for x in found) else found
        at = _items_of.get(id(call.primitive))
        if at is not None:
            items = self.one(call.args[at])
            return _first_of(items) if type(items) is list and items else NOTHING
        reader = READERS.get(id(call.primitive))
        if reader is None or call.keywords:
            return NOTHING
        args = [self.known(a) for a in call.args]
        if not args or args[0] is NOTHING:
            return NOTHING
        owners = args[0].items if type(args[0]) is _Several else args[:1]
        others = list(map(_only, args[1:]))
        try:
            return _one_of([reader(x, *others) for x in owners])
        except Exception:  # there is no such item
            return NOTHING


NOTHING = object()


def _example_item(items: Any, key: Any) -> Any:
    if type(items) is dict:
        return items[key] if key is not NOTHING else _first_of(items.values())
    if type(items) not in (list, tuple):
        return NOTHING
    return items[key] if type(key) in (int, slice) else _first_of(items)


def _example_get(items: Any, key: Any, default: Any = None) -> Any:
    """An item, if it is of the type of what stands for a missing one."""
    if type(items) is not dict or not items:
        return NOTHING
    found = _first_of(items.values()) if key is NOTHING else items.get(key, default)
    return found if default is NOTHING or type(default) is type(found) else NOTHING


def _example_attribute(x: Any, name: str) -> Any:
    """An attribute that is in the object itself or in its class; nothing is run."""
    fields = getattr(x, "__dict__", None)
    if isinstance(fields, dict) and not isinstance(x, type) and name in fields:
        return fields[name]
    of_class = x.__mro__ if isinstance(x, type) else ()
    classes: tuple[type, ...] = (*of_class, *type(x).__mro__)
    found = next((c.__dict__[name] for c in classes if name in c.__dict__), NOTHING)
    if type(found) is MemberDescriptorType:
        return found.__get__(x)
    return NOTHING if hasattr(type(found), "__get__") else found


def _example_global(namespace: dict[str, Any], name: str) -> Any:
    return namespace.get(name, NOTHING)


def _example_captured(cell: Any, name: str) -> Any:
    return cell.cell_contents if type(cell) is CellType else NOTHING


def _example_iterator(x: Any) -> Any:
    return x if type(x) in (list, tuple, range, dict, _Example) else NOTHING


@dataclass
class _Example:
    """What a loop over zip, enumerate, … gives first."""

    first: Any


@dataclass
class _Several:
    """Values that are not alike, or may hold what is not."""

    items: list[Any]


def _only(x: Any) -> Any:
    """An example that is as good as the others, if there are any."""
    if type(x) is not _Several:
        return x
    return NOTHING if are_unlike(x.items) else x.items[0]


def _first_of(x: Any) -> Any:
    """The first item, with the others if they are not like it in all."""
    if type(x) is _Example:
        return x.first
    return _one_of(list(islice(x, MOST_COMPARED)))


def _one_of(examples: list[Any]) -> Any:
    if any(x is NOTHING for x in examples):
        return NOTHING
    examples = [y for x in examples for y in (x.items if type(x) is _Several else [x])]
    examples = list({id(x): x for x in examples}.values())[:MOST_COMPARED]
    if len(examples) == 1 or not (are_unlike(examples) or _may_hold_others(examples[0])):
        return examples[0]
    return _Several(examples)


def _may_hold_others(x: Any) -> bool:
    return isinstance(x, (list, tuple, dict)) or hasattr(x, "__dict__")


def are_unlike(items: Iterable[Any]) -> bool:
    """Is not the same known of a few items, the first of many?"""
    return len({_what_is_known(y) for y in islice(items, MOST_COMPARED)}) > 1


def are_unlike_inside(items: Iterable[Any]) -> bool:
    """Is not the same known of them, or of their attributes?"""
    items = list(islice(items, MOST_COMPARED))
    fields = [_fields(x) for x in items]
    return are_unlike(items) or any(
        are_unlike([held.get(name, NOTHING) for held in fields]) for name in fields[0]
    )


def _fields(x: Any) -> dict[str, Any]:
    fields = getattr(x, "__dict__", None)
    return fields if isinstance(fields, dict) and not is_fixed(x) else {}


def _what_is_known(x: Any) -> Any:
    return id(x) if is_fixed(x) else coarsened(known_value(x, 1))


MOST_COMPARED = 32


def _each_first(x: Any) -> list[Any]:
    first = _first_of(x)
    return first.items if type(first) is _Several else [first]


def _example_run(firsts: list[Any], item: Callable[[Any], Any]) -> Any:
    """A loop whose items are made of those of another one, which begins so."""
    return _Example(_one_of([item(x) for x in firsts]))


def _example_zip(*xs: Any) -> Any:
    if any(type(x) not in (list, tuple, range, _Example) for x in xs):
        return NOTHING
    firsts = list(map(_each_first, xs))
    n = max(map(len, firsts))
    return _Example(_one_of([tuple([x[i % len(x)] for x in firsts]) for i in range(n)]))


_items_of: dict[int, int] = {}


def gives_item_of(fn: Any, at: int) -> None:
    """Declare that a callable gives an item of its argument number `at`, a list."""
    _items_of[id(fn)] = at


GUESSES: dict[int, Callable[..., Value]] = {}


def guesses(*fns: Any) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register what these mostly give for arguments of which so much is known."""

    def register(guess: Callable[..., Value]) -> Callable[..., Value]:
        GUESSES.update((id(fn), guess) for fn in fns)
        return guess

    return register


READERS: dict[int, Callable[..., Any]] = {
    id(operator.getitem): _example_item,
    id(dict.get): _example_get,
    id(getattr): _example_attribute,
    id(load_global): _example_global,
    id(get_cell): _example_captured,
    id(iter): _example_iterator,
    id(advance): _first_of,
    id(unpack): lambda items, n: tuple(items) if type(items) in (list, tuple) else NOTHING,
    id(zip): _example_zip,
    id(enumerate): lambda x: _example_run(_each_first(x), lambda first: (0, first)),
    id(reversed): lambda x: _example_run(_each_first(x), lambda first: first),
}

# What may be done again if the program begins anew: nothing is left behind by it.
