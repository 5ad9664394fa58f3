"""Forward mode of iteration and of the functions that run over any iterable.

The iterators stay Python's own. After each step, `origin` says where the item came from, as in
reverse mode; there its tangent is. The functions of map and filter are wrapped, so that they are
pushed when a step is taken.
Tests: tests/mixed_mode/test_language.py
"""

import functools
import gc
import math
import operator
from collections import deque
from types import GeneratorType
from typing import Any

import numpy as np

from morula.core import errors, patterns, primitives
from morula.core.cotangents import ZERO, is_zero
from morula.core.registry import non_differentiable
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.generators import stepped, stepper_of
from morula.mixed_mode.memory import is_followed
from morula.mixed_mode.memory import item_of as item_at
from morula.mixed_mode.push import (
    Unknown,
    carries,
    opaque,
    push,
    pushes,
    split_call,
)
from morula.mixed_mode.structures import Compared, drain, order_of, visit
from morula.mixed_mode.tangents import (
    Pass,
    item_of,
    reached,
    set_all,
    tangents_if_any,
    tangents_of,
    together,
    value_of,
)
from morula.rules import functional, iterators
from morula.rules import iteration as reverse
from morula.rules.arrays import callbacks
from morula.rules.arrays.inplace import fields_of
from morula.rules.calls import MISSING, entry, lookup, own_method
from morula.rules.containers import answers
from morula.rules.questions import is_true

REMEMBERED = 4096  # of the latest values of a function that map or filter calls

# -- where the tangent of an item is ---------------------------------------------------------------


class Known(reverse.Origin):
    """An item whose tangent is known."""

    __slots__ = ("tangent",)

    def __init__(self, tangent: Any) -> None:
        self.tangent = tangent


def tangent_at(run: Pass, origin: Any) -> Any:
    """The tangent of the item that came from there."""
    if type(origin) is reverse.Layered:
        origin = origin.outer
    kind = type(origin)
    if kind is Known:
        return origin.tangent
    if kind is reverse.ListItem:
        return item_of(tangents_if_any(run, origin.xs), origin.i)
    if kind is reverse.Entry or kind is reverse.ArrayItem:
        tangents = tangents_if_any(run, origin.owner)
        if tangents is None:
            return ZERO
        if SOURCE in tangents:
            xs = tangents.get(SEQUENCE)
            if run.written and is_followed(run, xs):
                return item_at(run, xs, tangents[SOURCE], origin.key)
            return entry(tangents[SOURCE], origin.key)
        return tangents.get(origin.key, ZERO)
    if kind is reverse.FlatItem:
        tangents = tangents_if_any(run, origin.iterator)
        ẋ = ZERO if tangents is None else tangents.get(SOURCE, ZERO)
        place = np.unravel_index(origin.i, origin.xs.shape)
        return push(run, operator.getitem, ZERO, (origin.xs, place), (ẋ, ZERO))[1]
    if kind is reverse.Pieces:
        return together([tangent_at(run, part) for part in origin.parts])
    if origin is reverse.CONSTANT:
        return ZERO
    if kind is reverse.Unknown and runs_over_constants(run, origin.iterator):
        return ZERO
    return Unknown(errors.no_rule(next, (origin,)))


def runs_over_constants(run: Pass, iterator: Any) -> bool:
    """Was a compiled iterator that nothing is known of made of what has no tangents, and has none now?

    What goes by value has none: otherwise the iterator would have been made with them.
    """
    seen: set[int] = set()
    waiting, mutable = [iterator], []
    while waiting:
        x = waiting.pop()
        if id(x) in seen or isinstance(x, WITHOUT_TANGENTS):
            continue
        seen.add(id(x))
        compiled = type(x).__module__ in ("builtins", "itertools") and hasattr(x, "__next__")
        if type(x) is tuple or (compiled and type(x) is not GeneratorType):
            waiting += gc.get_referents(x)
        elif isinstance(x, (list, dict, set)):
            mutable.append(x)
        else:
            return False
    return not reached(run, tuple(mutable))


WITHOUT_TANGENTS = (int, float, complex, str, bytes, range, type, type(None))
non_differentiable(runs_over_constants)


SOURCE = "source"  # in the tangents of an iterator: the tangent of what it runs over
SEQUENCE = "sequence"  # and that itself


class Pushing(reverse.Recorder):
    """A function as map, filter and their like call it: with the tangents of the items."""

    __slots__ = ("run", "tangent")

    def __init__(self, run: Pass, fn: Any, ḟ: Any, iterators: Any) -> None:
        self.run = run
        self.fn = fn
        self.tangent = ḟ
        self.iterators = iterators
        self.origins: Any = deque(maxlen=REMEMBERED)

    def __call__(self, *items: Any) -> Any:
        """The value, whose tangent is kept."""
        origins = reverse.origins_of(self.iterators, items)
        tangents = tuple([tangent_at(self.run, origin) for origin in origins])
        tangents += (ZERO,) * (len(items) - len(tangents))
        y, ẏ = self.pushed(items, tangents)
        self.keep(y, ẏ, origins)
        return y

    def pushed(self, items: Any, tangents: Any) -> Any:
        """The value and its tangent."""
        return push(self.run, self.fn, self.tangent, items, tangents)

    def keep(self, y: Any, ẏ: Any, origins: Any) -> None:
        """Remember the tangent of the value."""
        self.note(Known(ẏ))


class Choosing(Pushing):
    """A function as filter calls it: the items that it accepts come from where they came from."""

    __slots__ = ()

    def pushed(self, items: Any, tangents: Any) -> Any:
        """Is the item accepted?"""
        return push(self.run, is_true, ZERO, (self.fn, *items), (self.tangent, *tangents))

    def keep(self, y: Any, ẏ: Any, origins: Any) -> None:
        """Remember where an accepted item came from."""
        if y:
            self.note(Known(tangent_at(self.run, origins[0])))


class Indexed(reverse.Indexed):
    """A sequence of a user's class as iter and reversed see it."""

    __slots__ = ()

    def __init__(self, run: Pass, xs: Any, ẋs: Any, size: int | None = None) -> None:
        self.xs = xs
        self.size = size
        self.recorder = Pushing(run, reverse.get_item(xs), ẋs, ())


# -- iter ------------------------------------------------------------------------------------------


@pushes(iter)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if len(args) == 2:
        return iter(Pushing(run, args[0], tangents[0], ()), args[1]), ZERO
    (xs,), (ẋs,) = args, tangents
    cls = type(xs)
    method = own_method(cls, "__iter__")
    if method is not MISSING:
        return push(run, method, ZERO, args, tangents)
    if issubclass(cls, np.void) and xs.dtype.names is not None:
        return push(run, iter, ZERO, *[(x,) for x in push(run, fields_of, ZERO, args, tangents)])
    generator = reverse.generator_over(cls)
    if generator is not None:
        return push(run, generator, ZERO, args, tangents)
    remember_flat(run, xs, ẋs)
    if cls in reverse.ORIGINS or stepper_of(run, xs) is not None:
        return xs, ẋs
    if isinstance(xs, (tuple, np.ndarray)):
        return over(run, iter(xs), xs, ẋs), ZERO
    if cls in reverse.NOTED:
        return reverse.noted(xs, iter), ZERO
    if reverse.is_read_by_items(cls, "__iter__"):
        return iter(Indexed(run, xs, ẋs)), ZERO
    return iter(xs), ZERO


def remember_flat(run: Pass, iterator: Any, ẋ: Any) -> None:
    """Remember the tangent of `x.flat`, which is that of x, where its items come from."""
    if type(iterator) is np.flatiter and not is_zero(ẋ):
        begin_flat(run, iterator)
        tangents_of(run, iterator)[SOURCE] = ẋ


def begin_flat(run: Pass, iterator: Any) -> None:
    """Make room for the tangents of an iterator of the class of `x.flat`."""
    if id(iterator) not in run.table:
        run.table[id(iterator)] = (iterator, {})


non_differentiable(begin_flat)


def over(run: Pass, iterator: Any, xs: Any, ẋs: Any) -> Any:
    """An iterator over a sequence whose tangent goes by value, with that tangent."""
    if isinstance(xs, np.ndarray) or not is_zero(ẋs):
        tangents = tangents_of(run, iterator)
        tangents[SOURCE], tangents[SEQUENCE] = ẋs, xs
    return iterator


@pushes(reversed)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    (xs,), (ẋs,) = args, tangents
    method = own_method(type(xs), "__reversed__")
    if method is not MISSING:
        return push(run, method, ZERO, args, tangents)
    if isinstance(xs, (tuple, np.ndarray)):
        return over(run, reversed(xs), xs, ẋs), ZERO
    if type(xs) in reverse.NOTED:
        return reverse.noted(xs, reversed), ZERO
    if reverse.is_read_by_items(type(xs), "__reversed__"):
        n, _ = push(run, len, ZERO, args, tangents)
        return reversed(Indexed(run, xs, ẋs, n)), ZERO
    return reversed(xs), ZERO


# -- the next item ---------------------------------------------------------------------------------


@pushes(primitives.advance)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    (iterator,) = args
    method = own_method(type(iterator), "__next__")
    if method is not MISSING:
        found = next_or_none(run, method, iterator, tangents[0])
        return (primitives.DONE, ZERO) if found is None else found
    if stepper_of(run, iterator) is not None:
        item, ẏ = stepped(run, next, iterator, (primitives.DONE,))
        return item, ZERO if item is primitives.DONE else ẏ
    remember_flat(run, iterator, tangents[0])
    item = next(iterator, primitives.DONE)
    if item is primitives.DONE:
        return item, ZERO
    ẏ = tangent_at(run, reverse.origin(iterator, item))
    return item, ẏ if carries(item) else ZERO


def next_or_none(run: Pass, method: Any, iterator: Any, ẋ: Any) -> Any:
    """The value and the tangent of `__next__`, or None at the end."""
    try:
        return push(run, method, ZERO, (iterator,), (ẋ,))
    except StopIteration:
        return None


@pushes(primitives.pull)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, primitives.advance, ZERO, args, tangents)


@pushes(next)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    method = own_method(type(args[0]), "__next__")
    if lookup(type(args[0]), "__next__") is MISSING:
        return next(*args), ZERO  # raises
    if len(args) == 1 and method is not MISSING:
        return push(run, method, ZERO, args, tangents)
    if len(args) == 1 and stepper_of(run, args[0]) is not None:
        return stepped(run, next, args[0], ())
    if len(args) == 1 and hasattr(args[0], "send"):  # it may return a value, with StopIteration
        return opaque(run, next, ZERO, args, tangents, keywords)
    y, ẏ = push(run, primitives.advance, ZERO, args[:1], tangents[:1])
    if y is not primitives.DONE:
        return y, ẏ
    if len(args) == 1:
        raise StopIteration
    return args[1], tangents[1]


def _next_of(t: type) -> None:
    @pushes(t.__next__)  # type: ignore[attr-defined]
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        """`it.__next__()`."""
        return push(run, next, ZERO, args, tangents, keywords)


for _type in reverse.ORIGINS:
    _next_of(_type)


# -- iterators made of others ----------------------------------------------------------------------


def sources(run: Pass, xs: Any, ẋs: Any) -> Any:
    """Iterators over several sources."""
    found = []
    for x, ẋ in zip(xs, ẋs, strict=True):
        iterator, _ = push(run, iter, ZERO, (x,), (ẋ,))
        by_python = own_method(type(iterator), "__next__") is not MISSING
        if by_python or stepper_of(run, iterator) is not None:
            iterator = map(Pushing(run, next, ZERO, ()), reverse.Repeated(iterator))
        found.append(iterator)
    return tuple(found)


@pushes(zip)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    n = len(args) - len(keywords)
    iterators = sources(run, args[:n], tangents[:n])
    return split_call(zip, (*iterators, *args[n:]), keywords), ZERO


@pushes(enumerate)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    n = len(args) - len(keywords)
    k = 0 if n else n + keywords.index("iterable")
    (iterator,) = sources(run, args[k : k + 1], tangents[k : k + 1])
    return split_call(enumerate, (*args[:k], iterator, *args[k + 1 :]), keywords), ZERO


@pushes(map)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    n = len(args) - len(keywords)
    iterators = sources(run, args[1:n], tangents[1:n])
    fn = Pushing(run, args[0], tangents[0], iterators)
    return split_call(map, (fn, *iterators, *args[n:]), keywords), ZERO


@pushes(filter)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    fn, _ = args
    iterators = sources(run, args[1:], tangents[1:])
    return filter(
        Choosing(run, bool if fn is None else fn, tangents[0], iterators), *iterators
    ), ZERO


def _asks_class(fn: Any) -> None:
    @pushes(fn, moves=True)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if args and type(args[0]) is GeneratorType:
            return iterators.is_instance_seen(*args), ZERO
        return split_call(fn, args, keywords), ZERO


for _fn in (isinstance, patterns.is_instance):
    _asks_class(_fn)


# -- functions of iterables ------------------------------------------------------------------------


@pushes(sum)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    start, ṡtart = (args[1], tangents[1]) if len(args) > 1 else (0, ZERO)
    if isinstance(start, (str, bytes, bytearray)):
        return sum([], start), ZERO  # raises
    items, dots = drain(run, args[0], tangents[0])
    n = 0
    if type(start) in functional.NUMBERS:
        while n < len(items) and type(items[n]) in functional.NUMBERS:
            n += 1
    total = sum(items[:n], start)  # Python's own numbers, which sum adds in a way of its own
    ṫotal = ṡtart
    for ẋ in dots[:n]:
        ṫotal = ṫotal + ẋ
    for item, ẋ in zip(items[n:], dots[n:], strict=True):
        total, ṫotal = push(run, operator.add, ZERO, (total, item), (ṫotal, ẋ))
    return total, ṫotal


def extreme(fn: Any) -> Any:
    """`max` or `min` of an iterable, or with a key."""

    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        n = len(args) - len(keywords)
        named = dict(zip(keywords, zip(args[n:], tangents[n:], strict=True), strict=True))
        key, k̇ey = named.get("key", (None, ZERO))
        items: list[Any] = []
        dots: list[Any] = []
        keys: list[Any] = items
        of_keys: list[Any] = dots
        if key is not None:
            keys, of_keys = [], []

        def each(x: Any, ẋ: Any) -> None:
            items.append(x)
            dots.append(ẋ)
            if key is not None:
                k, k̇ = push(run, key, k̇ey, (x,), (ẋ,))
                keys.append(k)
                of_keys.append(k̇)

        if n == 1:
            visit(run, args[0], tangents[0], each)
        elif "default" not in named:
            for pair in zip(args[:n], tangents[:n], strict=True):
                each(*pair)
        if not items and "default" in named and n == 1:
            return named["default"]
        if not items or (n != 1 and "default" in named):
            return split_call(fn, (*([items] if n == 1 else args[:n]), *args[n:]), keywords), ZERO
        if answers(keys):
            keys = [Compared(run, x, ẋ) for x, ẋ in zip(keys, of_keys, strict=True)]
        place = fn(range(len(items)), key=keys.__getitem__)
        return items[place], dots[place]

    return meaning


for _fn in (max, min):
    pushes(_fn)(extreme(_fn))


@pushes(sorted)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if len(args) != 1 + len(keywords) or {*keywords} - {"key", "reverse"}:
        split_call(sorted, args, keywords)  # raises
    items, dots = drain(run, args[0], tangents[0])
    named = dict(zip(keywords, args[1:], strict=True))
    order = order_of(run, items, dots, named, dict(zip(keywords, tangents[1:], strict=True)))
    y = [items[i] for i in order]
    set_all(run, y, [dots[i] for i in order])
    return y, ZERO


@pushes(functools.reduce)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    y, ẏ = (args[2], tangents[2]) if len(args) > 2 else (MISSING, ZERO)

    def each(x: Any, ẋ: Any) -> None:
        nonlocal y, ẏ
        y, ẏ = (x, ẋ) if y is MISSING else push(run, args[0], tangents[0], (y, x), (ẏ, ẋ))

    visit(run, args[1], tangents[1], each)
    if y is MISSING:
        functools.reduce(args[0], [])  # raises
    return y, ẏ


def of_iterables(fn: Any) -> Any:
    """Functions of math that take iterables: their rules are for tuples."""

    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if not any([functional.is_iterable(x) for x in args]):
            return NotImplemented
        values, found = [], []
        for x, ẋ in zip(args, tangents, strict=True):
            if functional.is_iterable(x):
                items, dots = drain(run, x, ẋ)
                x, ẋ = tuple(items), together(dots)
            values.append(x)
            found.append(ẋ)
        return push(run, fn, ZERO, tuple(values), tuple(found), keywords)

    return meaning


for _name in ("prod", "fsum", "dist", "sumprod"):
    if hasattr(math, _name):
        pushes(getattr(math, _name))(of_iterables(getattr(math, _name)))


@pushes(np.vectorize.__call__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    self, *rest = args
    dots = (value_of(run, self, "pyfunc"), ZERO, *tangents[1:])
    values = (self.pyfunc, callbacks.settings_of(self), *rest)
    return push(run, callbacks.vectorized, ZERO, values, dots, keywords)


del _name


def _origins(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return reverse.inner_of(fn(*args)), ZERO


for _fn in (reverse.origin, reverse.origins_of):
    _origins(_fn)
del _fn
