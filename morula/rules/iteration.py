"""Rules of iteration: iter, next, for loops, zip, enumerate, map, filter, reversed.

The iterators stay Python's own, lazy as they are. After each step, `origin` says where the item
came from: a place in a list, a key of a dict, an item of another iterator, the value of a function.
There its cotangent goes. What comes from a mutable container goes to the adjoint object at once;
what comes from a tuple or an array is kept in the adjoint object of the iterator, and handed over
where the iterator was made. The functions of map and filter are wrapped, so that what they do is
recorded by whoever takes the step; taken by a compiled function, they just run.
Tests: tests/rules/test_iteration.py
"""

import gc
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    NoTangent,
    Tangent,
    accumulate,
    adjoint_object,
    adjoint_of,
    attempted,
    call,
    collector,
    is_protected,
    is_zero,
    materialise,
    no_rule,
    non_differentiable,
    on_entry,
    primitives,
    projector,
    protected,
    rrule,
    strays_here,
    unthunk,
)
from morula.rules.arrays.flat import give_place
from morula.rules.arrays.inplace import fields_of, follow_item
from morula.rules.arrays.memory import reading
from morula.rules.arrays.structural import selected
from morula.rules.calls import MISSING, Back, compiled, entry, lookup, own_method, serves
from morula.rules.containers import give_at
from morula.rules.dicts import Key
from morula.rules.generators import next_of, record_of, steps_of
from morula.rules.numbers import Anything
from morula.rules.objects import give, take
from morula.rules.questions import is_true

# -- where an item came from -----------------------------------------------------------------------


class Origin:
    """Where the cotangent of an item goes; this one has no use for it."""

    __slots__ = ()

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""


class Unknown(Origin):
    """An iterator that nothing is known of."""

    __slots__ = ("iterator",)

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""
        if not is_zero(c):
            raise no_rule(next, (self.iterator,))


class ListItem(Origin):
    """An item of a list."""

    __slots__ = ("i", "xs")

    def __init__(self, xs: list[Any], i: int) -> None:
        self.xs = xs
        self.i = i

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""
        give_at(adjoint_of(self.xs), self.i, c)


class Entry(Origin):
    """An entry of the adjoint table of a dict, a set, or an iterator over an immutable sequence."""

    __slots__ = ("key", "owner")

    def __init__(self, owner: Any, key: Any) -> None:
        self.owner = owner
        self.key = key

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""
        give(adjoint_of(self.owner), self.key, c)


class ArrayItem(Entry):
    """An entry of an array, to whose memory the cotangent goes at once if that is written to."""

    __slots__ = ("xs",)

    def __init__(self, iterator: Any, i: int, xs: np.ndarray) -> None:
        super().__init__(iterator, i)
        self.xs = xs

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""
        if reading(self.xs, self.key, c) is None:
            super().deliver(c)


class FlatItem(Origin):
    """An entry of an array, counted."""

    __slots__ = ("i", "iterator", "xs")

    def __init__(self, iterator: np.flatiter, i: int) -> None:
        self.iterator = iterator
        self.xs = iterator.base
        self.i = i

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""
        if not is_zero(c):
            give_place(self.xs, self.i, c)


class Pieces(Origin):
    """The items of a tuple, each with an origin of its own."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Origin]) -> None:
        self.parts = parts

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""
        for i in reversed(range(len(self.parts))):
            self.parts[i].deliver(entry(c, i))


class Value(Origin):
    """The value of a recorded call."""

    __slots__ = ("step",)

    def __init__(self, step: Any) -> None:
        self.step = step

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""
        give(adjoint_of(self.step), VALUE, c)


class Layered(Origin):
    """An origin that was recorded while the code that records was differentiated in its turn.

    `outer` is what the differentiating code knows of the item, `inner` what the differentiated one
    does.
    """

    __slots__ = ("inner", "outer")

    def __init__(self, outer: Origin, inner: Origin) -> None:
        self.outer = outer
        self.inner = inner

    def deliver(self, c: Any) -> None:
        """Add the cotangent of the item."""
        self.outer.deliver(c)


def inner_of(found: Any) -> Any:
    """What differentiated code sees where the code that differentiates it sees this."""
    if isinstance(found, list):
        return [inner_of(o) for o in found]
    if type(found) is Pieces:
        return Pieces(inner_of(found.parts))
    if type(found) is Layered:
        return found.inner
    return Unknown(found.step) if type(found) is Value else found


def latest(fn: Any) -> Origin | None:
    """Where a function that records within another got its latest value from."""
    if type(fn) is Noted:
        return fn.origin(0)
    return fn.origins[-1] if isinstance(fn, Recorder) and fn.origins else None


CONSTANT = Origin()
VALUE = "value"  # in the table of a step: the cotangent of its value
FUNCTION = "function"  # in the table of a recorder: the cotangent of its function

# -- calls that iterators make ---------------------------------------------------------------------


class Recording(threading.local):
    """The steps recorded for the item that is being fetched in this thread, if any is.

    With them stand those of a fetch within which this one happens: the fetch of differentiated code.
    """

    def __init__(self) -> None:
        self.now: Any = None


_recording = Recording()


def record(steps: list[Any]) -> Any:
    """Record steps here from now on; gives what `go_on` needs afterwards."""
    before = _recording.now
    _recording.now = steps, before
    return before


def pause(fn: Any) -> Any:
    """Record nothing from now on, but for a function that records for the differentiated code."""
    now = _recording.now
    _recording.now = now[1] if now is not None and isinstance(fn, Recorder) else None
    return now


def go_on(before: Any) -> None:
    """Record as before."""
    _recording.now = before


non_differentiable(record, pause, go_on)


class Step:
    """A call that was made to fetch an item."""

    __slots__ = ("back", "origins", "recorder")

    def __init__(self, back: Back, origins: list[Origin], recorder: Any) -> None:
        self.back = back
        self.origins = origins
        self.recorder = recorder

    def pull_back(self) -> None:
        """From the cotangent of the value to those of what it was made from."""
        f̄, *cotangents = self.back(take(adjoint_of(self), VALUE))
        give(adjoint_of(self.recorder), FUNCTION, f̄)
        for i in reversed(range(len(self.origins))):
            self.origins[i].deliver(cotangents[i])


class Recorder:
    """A function as map, filter and their like call it: what it does is recorded."""

    __slots__ = ("fn", "iterators", "origins")

    def __init__(self, fn: Any, iterators: tuple[Any, ...]) -> None:
        self.fn = fn
        self.iterators = iterators
        self.origins: list[Origin] = []  # of the latest values

    def __call__(self, *items: Any) -> Any:
        """The value, recorded unless a compiled function takes it."""
        now = pause(self.fn)
        if now is None:
            return self.fn(*items)
        y, back = self.ask(items)
        go_on(now)
        step = Step(back, origins_of(self.iterators, items), self)
        now[0].append(step)
        if type(y) is protected.Raised:
            raise y.exception
        self.keep(y, items, step)
        return y

    def ask(self, items: tuple[Any, ...]) -> tuple[Any, Back]:
        """The value, or what the function raised, and the pullback."""
        return attempted(self.fn, *items)

    def keep(self, y: Any, items: tuple[Any, ...], step: Step) -> None:
        """Remember where the value came from."""
        self.note(Value(step))

    def note(self, found: Origin) -> None:
        """Remember an origin, and what a recorder within this one knows."""
        inner = latest(self.fn)
        self.origins.append(found if inner is None else Layered(found, inner))


class Predicate(Recorder):
    """A function as filter calls it: the items that it accepts come from where they came from."""

    __slots__ = ()

    def ask(self, items: tuple[Any, ...]) -> tuple[Any, Back]:
        """Is the item accepted?"""
        y, back = attempted(is_true, self.fn, *items)
        return y, lambda ȳ: back(ȳ)[1:]

    def keep(self, y: Any, items: tuple[Any, ...], step: Step) -> None:
        """Remember where an accepted item came from."""
        if y:
            self.note(step.origins[0])


class Noted:
    """Notes the keys of a dict as its items pass; gives the keys, the items or the values."""

    __slots__ = ("d", "keys", "kind")

    def __init__(self, d: Any, kind: str) -> None:
        self.d = d
        self.kind = kind
        self.keys: list[Any] = []

    def __call__(self, pair: Any) -> Any:
        """The key, the item or the value."""
        self.keys.append(pair if self.kind == "keys" else pair[0])
        return pair[1] if self.kind == "values" else pair

    def origin(self, skip: int) -> Origin:
        """Where the last value but `skip` came from."""
        key = self.keys[-1 - skip]
        of_key, of_value = Entry(self.d, Key(key)), Entry(self.d, key)
        if self.kind == "items":
            return Pieces([of_key, of_value])
        return of_key if self.kind == "keys" else of_value


class Indexed:
    """A sequence of a user's class as iter and reversed see it: what they call is recorded."""

    __slots__ = ("recorder", "size", "xs")

    def __init__(self, xs: Any, size: int | None = None) -> None:
        self.xs = xs
        self.size = size  # that reversed asks for, if it has been asked for already
        self.recorder = Recorder(get_item(xs), ())

    def __getitem__(self, i: int) -> Any:
        return self.recorder(i)

    def __len__(self) -> int:
        size, self.size = self.size, None
        return len(self.xs) if size is None else size


def get_item(xs: Any) -> Any:
    """What gives the items of a sequence: its `__getitem__`, bound."""
    return xs.recorder if isinstance(xs, Indexed) else xs.__getitem__


non_differentiable(get_item)

# -- the origin of the item that an iterator has just given ----------------------------------------

ORIGINS: dict[type, Callable[[Any, Any, int], Origin]] = {}


def origin(iterator: Any, item: Any, skip: int = 0) -> Origin:
    """Where the item came from that the iterator gave `skip` items before its last one."""
    of = ORIGINS.get(type(iterator))
    return Unknown(iterator) if of is None else of(iterator, item, skip)


def origins_of(iterators: tuple[Any, ...], items: tuple[Any, ...], skip: int = 0) -> list[Origin]:
    """The origins of items that iterators have just given, one each, in this order.

    An iterator may stand there more than once, as in `zip(it, it)`.
    """
    found = []
    for k, iterator in enumerate(iterators):
        times = sum(other is iterator for other in iterators)
        later = sum(other is iterator for other in iterators[k + 1 :])
        found.append(origin(iterator, items[k], skip * times + later))
    return found


non_differentiable(latest, inner_of)


@serves(origin, origins_of)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return inner_of(fn(*args)), lambda ȳ: (NONE,) * (1 + len(args))


def originates(*types: type) -> Any:
    """Register how the origin of the last item of an iterator is found."""

    def register(of: Any) -> Any:
        for t in types:
            ORIGINS[t] = of
        return of

    return register


_OF_CONSTANTS: Any = (
    *[t for t in vars(itertools).values() if hasattr(t, "__next__")],
    type(iter(memoryview(b""))),
)


@originates(
    type(iter("")), type(iter(b"")), type(iter(range(0))), type(iter(range(1 << 100))),
    type(iter(bytearray())), type(iter("é")),
)  # fmt: skip
def _(iterator: Any, item: Any, skip: int) -> Origin:
    return CONSTANT


@originates(type(iter([])))
def _(iterator: Any, item: Any, skip: int) -> Origin:
    _, (xs,), i = iterator.__reduce__()
    return ListItem(xs, i - 1 - skip)


@originates(type(reversed([])))
def _(iterator: Any, item: Any, skip: int) -> Origin:
    (xs,) = gc.get_referents(iterator)
    return ListItem(xs, iterator.__length_hint__() + skip)


@originates(type(iter(())), type(iter(np.zeros(1))))
def _(iterator: Any, item: Any, skip: int) -> Origin:
    _, (xs,), i = iterator.__reduce__()
    if isinstance(xs, Indexed):
        return xs.recorder.origins[-1 - skip]
    if isinstance(xs, np.ndarray):
        return ArrayItem(iterator, i - 1 - skip, xs)
    return Entry(iterator, i - 1 - skip)


@originates(reversed)
def _(iterator: Any, item: Any, skip: int) -> Origin:
    (xs,) = gc.get_referents(iterator)
    _, _, *index = iterator.__reduce__()
    i = index[0] if index else -1  # CPython 3.14 does not tell behind the last item
    if isinstance(xs, Indexed):
        return xs.recorder.origins[-1 - skip]
    if isinstance(xs, np.ndarray):
        return ArrayItem(iterator, (i + 1 + skip) % len(xs), xs)
    return Entry(iterator, i + 1 + skip)


@originates(np.flatiter)
def _(iterator: Any, item: Any, skip: int) -> Origin:
    return FlatItem(iterator, iterator.index - 1 - skip)


@originates(np.nditer)
def _(iterator: Any, item: Any, skip: int) -> Origin:
    items = item if type(item) is tuple else (item,)
    for x in items:
        follow_item(x)
    return CONSTANT


@originates(*_OF_CONSTANTS)
def _(iterator: Any, item: Any, skip: int) -> Origin:
    """Differentiated code has such an iterator only where what it runs over was constant."""
    return CONSTANT if is_discrete(item) else Unknown(iterator)


def is_discrete(item: Any) -> bool:
    """Is it made of whole numbers and text?"""
    if type(item) is tuple:
        return all(map(is_discrete, item))
    return type(item) in (int, bool, str, bytes, type(None))


def container_of(iterator: Any, kind: Any) -> Any:
    """The container that a compiled iterator runs over."""
    return next(x for x in gc.get_referents(iterator) if isinstance(x, kind))


non_differentiable(container_of)  # the container has a cotangent of its own


@originates(type(iter({})), type(reversed({})))
def _(iterator: Any, item: Any, skip: int) -> Origin:
    return Entry(container_of(iterator, dict), Key(item))


@originates(type(iter({}.items())), type(reversed({}.items())))
def _(iterator: Any, item: Any, skip: int) -> Origin:
    d = container_of(iterator, dict)
    return Pieces([Entry(d, Key(item[0])), Entry(d, item[0])])


@originates(type(iter(set())))
def _(iterator: Any, item: Any, skip: int) -> Origin:
    return Entry(container_of(iterator, (set, frozenset)), item)


@originates(zip)
def _(iterator: Any, item: Any, skip: int) -> Origin:
    return Pieces(origins_of(iterator.__reduce__()[1], item, skip))


@originates(enumerate)
def _(iterator: Any, item: Any, skip: int) -> Origin:
    return Pieces([CONSTANT, origin(iterator.__reduce__()[1][0], item[1], skip)])


@originates(map)
def _(iterator: Any, item: Any, skip: int) -> Origin:
    fn = iterator.__reduce__()[1][0]
    if type(fn) is Noted:
        return fn.origin(skip)
    return fn.origins[-1 - skip] if isinstance(fn, Recorder) and fn.origins else Unknown(iterator)


@originates(filter)
def _(iterator: Any, item: Any, skip: int) -> Origin:
    fn = iterator.__reduce__()[1][0]
    return fn.origins[-1 - skip] if isinstance(fn, Recorder) and fn.origins else Unknown(iterator)


@originates(type(iter(int, 1)))
def _(iterator: Any, item: Any, skip: int) -> Origin:
    recorders = [x for x in gc.get_referents(iterator) if isinstance(x, Recorder)]
    return recorders[0].origins[-1 - skip] if recorders else Unknown(iterator)


_OF_ARRAYS = {np.flatiter, np.nditer}  # which have cotangents by value, see arrays/flat.py
for _type in (*{*ORIGINS} - _OF_ARRAYS, type(iter({}.values())), type(reversed({}.values()))):
    adjoint_object.register(_type, lambda x: {})
    projector.register(_type, lambda x: lambda x̄: ZERO)
    collector.register(_type, lambda y, part: None)
    on_entry.register(_type, lambda x, known: x)
    materialise.register(_type, lambda x, x̄, of: None)

# -- iter ------------------------------------------------------------------------------------------


@serves(iter)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) == 2:
        recorder = Recorder(args[0], ())
        return iter(recorder, args[1]), lambda ȳ: (NONE, take(adjoint_of(recorder), FUNCTION), NONE)
    (xs,) = args
    if isinstance(xs, np.void) and xs.dtype.names is not None:
        fields, of_fields = call(fields_of, xs)
        iterator, of_iterator = call(iter, fields)
        return iterator, lambda ȳ: (NONE, of_fields(of_iterator(ȳ)[1])[1])
    generator = generator_over(type(xs))
    if generator is not None:
        return call(generator, xs)
    y, back = iterator_of(xs)
    return y, lambda ȳ: (NONE, back())


def iterator_of(xs: Any) -> tuple[Any, Callable[[], Any]]:
    """`iter(xs)`, and what gives the cotangent of `xs` by value, when all items have theirs."""
    cls = type(xs)
    method = own_method(cls, "__iter__")
    if method is not MISSING:
        y, back = call(method, xs)
        return y, lambda: back(ZERO)[1]
    if cls in ORIGINS or record_of(xs) is not None:
        return xs, nothing
    if isinstance(xs, tuple):
        y = iter(xs)
        return y, lambda: gathered(y)
    if isinstance(xs, np.ndarray):
        y = iter(xs)
        return y, lambda: stacked(y, xs)
    if cls in NOTED:
        return noted(xs, iter), nothing
    if is_read_by_items(cls, "__iter__"):
        indexed = Indexed(xs)
        return iter(indexed), lambda: take(adjoint_of(indexed.recorder), FUNCTION)
    return iter(xs), nothing


def is_read_by_items(cls: type, method: str) -> bool:
    """Does Python run over objects of this class by their items, one by one, for want of a method?"""
    return lookup(cls, method) is MISSING and own_method(cls, "__getitem__") is not MISSING


non_differentiable(is_read_by_items)


BY_GENERATOR: dict[type, Any] = {}  # generator functions that run over what Python's iterators hide


def generator_over(cls: type) -> Any:
    """The generator function that runs over what is of this class; None: iterators tell enough."""
    if cls in BY_GENERATOR or lookup(cls, "__iter__") is not MISSING:
        return BY_GENERATOR.get(cls)
    read, size = lookup(cls, "__getitem__"), lookup(cls, "__len__")
    compiled = own_method(cls, "__getitem__") is MISSING
    return by_index if MISSING not in (read, size) and compiled else None


def by_index(xs):
    """The items of a sequence of a compiled class."""
    for i in range(len(xs)):
        yield xs[i]


non_differentiable(generator_over)

# What tells by itself neither the dict nor the key: an iterator over the items has to.
_VIEWS: OrderedDict[Any, Any] = OrderedDict()
NOTED = {
    type({}.values()): "values",
    OrderedDict: "keys",
    type(_VIEWS.keys()): "keys",
    type(_VIEWS.items()): "items",
    type(_VIEWS.values()): "values",
}


def noted(xs: Any, start: Any) -> Any:
    """An iterator over a dict or a view of it that notes the keys; `start` is iter or reversed."""
    kind = NOTED[type(xs)]
    d = xs if isinstance(xs, dict) else container_of(xs, dict)
    if kind != "values":
        return map(Noted(d, kind), start(xs))
    items = OrderedDict.items if type(xs) is type(_VIEWS.values()) else dict.items
    return map(Noted(d, kind), start(items(d)))  # whatever its class has made of `items`


def nothing() -> Any:
    """No cotangent by value."""
    return ZERO


def gathered(iterator: Any) -> Any:
    """The cotangent of the tuple that an iterator ran over."""
    bars = adjoint_of(iterator)
    found = {i: bars[i] for i in list(bars)}
    bars.clear()
    return Tangent[tuple](found) if found else ZERO


def of_entries(cotangents: list[Any]) -> Any:
    """The cotangent of an array of objects, which may be arrays, from those of its entries."""
    whole = np.zeros(len(cotangents), object)
    for i, c in enumerate(cotangents):
        if not is_zero(c):
            whole[i] = unthunk(c)
    return whole


def stacked(iterator: Any, xs: Any) -> Any:
    """The cotangent of the array that an iterator ran over."""
    bars = adjoint_of(iterator)
    if not bars:
        return ZERO
    rows = [bars.get(i, ZERO) for i in range(len(xs))]
    bars.clear()
    shape = np.shape(xs)[1:]
    if isinstance(xs, np.ndarray) and xs.dtype.kind == "O" and not shape:
        return of_entries(rows)
    parts = [np.zeros(shape) if is_zero(row) else np.reshape(unthunk(row), shape) for row in rows]
    whole = np.stack(parts)  # a row of a matrix is a matrix
    reached = np.array([not is_zero(row) for row in rows]).reshape((-1, *[1] * len(shape)))
    return selected(whole, reached)


# -- the next item ---------------------------------------------------------------------------------


@rrule(primitives.advance, by_identity=True)
def _(iterator: Anything):
    method = own_method(type(iterator), "__next__")
    if method is not MISSING:
        return advance_by_method(method, iterator)
    if record_of(iterator) is not None:
        y, back = next_of(iterator)
        return y, lambda ȳ: (no_more(back(ȳ)),)
    item, steps = fetch(iterator)
    source = CONSTANT if item is primitives.DONE else origin(iterator, item)

    def advance_pullback(ȳ):
        source.deliver(ȳ)
        pull_back_all(steps, ZERO)
        return (NoTangent(),)

    return item, advance_pullback


@rrule(primitives.pull, by_identity=True)
def _(iterator: Anything):
    item, back = call(primitives.advance, iterator)
    return item, lambda ȳ: back(ȳ)[1:]


def no_more(sent: Any) -> Any:
    """The cotangent of an iterator, whatever its steps gave."""
    return ZERO


def fetch(iterator: Any) -> tuple[Any, list[Any]]:
    """The next item or DONE, and the calls that were made to get it."""
    steps: list[Any] = []
    before = record(steps)
    if is_protected():
        strays_here().append((iterator, partial(pull_back_all, steps)))
    try:
        item = next(iterator, primitives.DONE)
    finally:
        go_on(before)
    return item, steps


def pull_back_all(steps: list[Any], ȳ: Any) -> tuple[Any, ...]:
    """From the cotangents of the values of some calls to those of what they were made from."""
    for i in reversed(range(len(steps))):
        steps[i].pull_back()
    return ()


def advance_by_method(method: Any, iterator: Any) -> Any:
    """The next item of an iterator of a user's class."""
    y, back = attempted(method, iterator)
    if is_protected():
        strays_here().append((method, back))
    if type(y) is not protected.Raised:
        return y, lambda ȳ: back(ȳ)[1:]
    if isinstance(y.exception, StopIteration):
        return primitives.DONE, lambda ȳ: back(ZERO)[1:]
    raise y.exception


@serves(next)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    iterator, *default = args
    if lookup(type(iterator), "__next__") is MISSING:
        return next(*args), None  # raises
    if not default and record_of(iterator) is not None:
        y, pull_back = steps_of(next, iterator)
        return y, lambda ȳ: (NONE, no_more(pull_back(ȳ)))
    if not default and own_method(type(iterator), "__next__") is not MISSING:
        return call(lookup(type(iterator), "__next__"), iterator)
    if not default and hasattr(iterator, "send"):  # it may return a value, with StopIteration
        return compiled(fn, args, kwargs)
    y, back = call(primitives.advance, iterator)
    if y is not primitives.DONE:
        return y, lambda ȳ: (NONE, back(ȳ)[1], *[ZERO] * len(default))
    if not default:
        raise StopIteration
    return default[0], lambda ȳ: (NONE, back(ZERO)[1], ȳ)


for _type in ORIGINS:

    @serves(_type.__next__)  # type: ignore[attr-defined]
    def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`it.__next__()`."""
        return call(next, *args)


# -- iterators made of others ----------------------------------------------------------------------


def sources_of(xs: tuple[Any, ...]) -> tuple[tuple[Any, ...], Callable[[], list[Any]]]:
    """Iterators over several sources, and what gives the cotangents of the sources."""
    pairs = [call(iter, x) for x in xs]

    def sources_pullback() -> list[Any]:
        bars: list[Any] = [ZERO] * len(pairs)
        for i in reversed(range(len(pairs))):
            bars[i] = pairs[i][1](ZERO)[1]
        return bars

    return tuple([compiled_iterator(y) for y, _ in pairs]), sources_pullback


def compiled_iterator(iterator: Any) -> Any:
    """An iterator whose steps are recorded also if a compiled function takes them."""
    if own_method(type(iterator), "__next__") is not MISSING or record_of(iterator) is not None:
        return map(Recorder(next, ()), Repeated(iterator))
    return iterator


class Repeated:
    """An iterator over an iterator again and again, for `map(next, …)` to end with it."""

    __slots__ = ("iterator",)

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.iterator


@serves(zip)
def _(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    iterators, back = sources_of(args)
    y = zip(*iterators, **kwargs)  # noqa: B905
    return y, lambda ȳ: (NONE, *back(), *[NONE] * len(kwargs))


@serves(enumerate)
def _(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    named = {"iterable": args[0] if args else None, **kwargs}
    iterators, back = sources_of((named.pop("iterable"),))
    y = enumerate(iterators[0], *args[1:], **named)

    def enumerate_pullback(ȳ: Any) -> tuple[Any, ...]:
        x̄ = back()[0]
        if args:
            return (NONE, x̄, *[NONE] * (len(args) - 1 + len(kwargs)))
        return (NONE, *[x̄ if k == "iterable" else NONE for k in kwargs])

    return y, enumerate_pullback


@serves(map)
def _(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    iterators, back = sources_of(args[1:])
    recorder = Recorder(args[0], iterators)
    y = map(recorder, *iterators, **kwargs)

    def map_pullback(ȳ: Any) -> tuple[Any, ...]:
        bars = back()
        return (NONE, take(adjoint_of(recorder), FUNCTION), *bars, *[NONE] * len(kwargs))

    return y, map_pullback


@serves(filter)
def _(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    fn, xs = args
    iterators, back = sources_of((xs,))
    recorder = Predicate(bool if fn is None else fn, iterators)
    y = filter(recorder, *iterators)
    return y, lambda ȳ: (NONE, take(adjoint_of(recorder), FUNCTION), *back())


@serves(reversed)
def _(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (xs,) = args
    method = own_method(type(xs), "__reversed__")
    if method is not MISSING:
        y, back = call(method, xs)
        return y, lambda ȳ: (NONE, back(ȳ)[1])
    if isinstance(xs, list) or type(xs) is range:
        return reversed(xs), lambda ȳ: (NONE, ZERO)
    if isinstance(xs, tuple):
        y = reversed(xs)
        return y, lambda ȳ: (NONE, gathered(y))
    if isinstance(xs, np.ndarray):
        y = reversed(xs)
        return y, lambda ȳ: (NONE, stacked(y, xs))
    if type(xs) in NOTED:
        return noted(xs, reversed), lambda ȳ: (NONE, ZERO)
    if is_read_by_items(type(xs), "__reversed__"):
        n, len_back = call(len, xs)
        indexed = Indexed(xs, n)
        y = reversed(indexed)

        def reversed_pullback(ȳ: Any) -> Any:
            of_items = take(adjoint_of(indexed.recorder), FUNCTION)
            return NONE, accumulate(of_items, len_back(ZERO)[1])

        return y, reversed_pullback
    return reversed(xs), lambda ȳ: (NONE, ZERO)


del _type
