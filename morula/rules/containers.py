"""Rules of tuples and lists: displays, items, methods, construction, unpacking.

Tuples go by value: the cotangent of a tuple is a tuple of cotangents, or `Tangent[tuple]({i: c})`
with those entries that are not zero. The adjoint object of a list is a list of cotangents that
follows the changes of the primal backwards: what was appended is popped, what was popped is put
back. It may be shorter than its primal; what is not there is zero. A subclass that redefines an
operation in Python has its own way.
Tests: tests/rules/test_containers.py
"""

import collections
import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    IMMUTABLE_TYPE,
    ZERO,
    CotangentError,
    NoTangent,
    Tangent,
    UnsupportedError,
    accumulate,
    adjoint_object,
    adjoint_of,
    as_passing,
    call,
    constant_unless,
    hands_on,
    hands_over,
    is_zero,
    no_tangent,
    non_differentiable,
    primitives,
    project_to,
    projector,
    rrule,
)
from morula.rules.calls import MISSING, entry, lookup, own_method, served, serves, together
from morula.rules.filling import extend_list, runs_code
from morula.rules.numbers import Anything
from morula.rules.objects import asks, give, types_within
from morula.rules.questions import is_greater, is_less, is_same_or_equal

# -- adjoint lists ---------------------------------------------------------------------------------


@adjoint_object.register(list)
def _(x: list) -> list[Any]:
    if type(x) is not list and not is_native(x, "__len__"):
        raise UnsupportedError(
            f"{type(x).__name__} is a list whose class has a `__len__` of its own: places in it have "
            "no derivative. Let the class hold a list instead of being one"
        )
    return []


def lengthen(bars: list[Any], n: int) -> None:
    """Zeros at the end of an adjoint list, so that it has n entries."""
    for _ in range(n - len(bars)):
        bars.append(ZERO)


def give_at(bars: list[Any], i: int, c: Any) -> None:
    """Add to an entry of an adjoint list."""
    if not is_zero(c):
        lengthen(bars, i + 1)
        bars[i] = accumulate(bars[i], c)


def take_at(bars: list[Any], i: int) -> Any:
    """An entry of an adjoint list, which is zero afterwards."""
    if i >= len(bars):
        return ZERO
    c = bars[i]
    bars[i] = ZERO
    return c


def cut(bars: list[Any], start: int, stop: int, n: int = 0) -> list[Any]:
    """Entries of an adjoint list, of which n zeros are left."""
    lengthen(bars, stop)
    found = bars[start:stop]
    bars[start:stop] = [ZERO] * n
    return found


def drop_from(bars: list[Any], n: int, count: int) -> list[Any]:
    """The `count` entries from the n-th, which end the adjoint list."""
    found = [take_at(bars, n + i) for i in range(count)]
    del bars[n:]
    return found


def is_native(x: Any, method: str) -> bool:
    """Does the class of a container leave this method as its compiled base has it?"""
    cls = type(x)
    return bool(cls.__flags__ & IMMUTABLE_TYPE) or own_method(cls, method) is MISSING


non_differentiable(is_native)


def by_class(method: str, *args: Any) -> Any:
    """The method that a class defines itself: its value, and the cotangents of `args`."""
    y, back = call(own_method(type(args[0]), method), *args)
    return y, lambda ȳ: back(ȳ)[1:]


# -- all items of any iterable ---------------------------------------------------------------------


def drain(xs: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The list of all items, and: cotangents of the items -> the cotangent of `xs`."""
    if type(xs) is list:
        return xs[:], lambda bars: scatter(xs, bars)
    if type(xs) is tuple:
        return list(xs), together
    items, back = visit(xs, ignore)
    return items, lambda bars: back(bars.__getitem__)


def ignore(item: Any) -> None:
    """What `visit` does with an item that is only collected."""


def visit(xs: Any, each: Callable[[Any], None]) -> tuple[list[Any], Callable[..., Any]]:
    """All items, with `each` called for one before the next is fetched.

    The pullback asks for the cotangent of the i-th item by number, the last one first.
    """
    iterator, iter_back = call(iter, xs)
    items, backs = [], []
    item, back = call(primitives.advance, iterator)
    while item is not primitives.DONE:
        items.append(item)
        each(item)
        backs.append(back)
        item, back = call(primitives.advance, iterator)
    last = back

    def visit_pullback(cotangent_of: Callable[[int], Any]) -> Any:
        last(ZERO)
        for i in reversed(range(len(backs))):
            backs[i](cotangent_of(i))
        return iter_back(ZERO)[1]

    return items, visit_pullback


def scatter(xs: list[Any], bars: list[Any]) -> Any:
    """Cotangents of the items of a list go to its adjoint."""
    adjoint = adjoint_of(xs)
    for i in range(len(bars)):
        give_at(adjoint, i, bars[i])
    return ZERO


def entries(x̄: Any, n: int) -> list[Any]:
    """The n entries of the cotangent of a tuple."""
    return [entry(x̄, i) for i in range(n)]


def bars_of(x̄: Any, n: int) -> tuple[Any, ...]:
    """The same as a tuple."""
    return tuple([entry(x̄, i) for i in range(n)])


# -- tuples ----------------------------------------------------------------------------------------


@rrule(primitives.build_tuple)
def _(*items: Anything):
    n = len(items)

    def build_tuple_pullback(ȳ):
        return bars_of(ȳ, n)

    return items, build_tuple_pullback


@rrule(primitives.build_named)
def _(cls: type, *items: Anything):
    n = len(items)

    def build_named_pullback(ȳ):
        return NoTangent(), *bars_of(ȳ, n)

    return primitives.build_named(cls, *items), build_named_pullback


@rrule(operator.getitem)
def _(xs: tuple, i: int):
    if not is_native(xs, "__getitem__"):
        return by_class("__getitem__", xs, i)
    n = len(xs)

    def getitem_pullback(ȳ):
        return Tangent[tuple]({i % n: ȳ}), NoTangent()

    return xs[i], getitem_pullback


@rrule(operator.getitem)
def _(xs: tuple, i: Anything):
    if not is_native(xs, "__getitem__"):
        return by_class("__getitem__", xs, i)
    y = xs[i]
    positions: Any = range(len(xs))[i]

    def getitem_pullback(ȳ):
        if isinstance(positions, int):
            return Tangent[tuple]({positions: ȳ}), NoTangent()
        return pieces(positions, ȳ), NoTangent()

    return y, getitem_pullback


def pieces(positions: Any, ȳ: Any) -> Any:
    """The cotangent of a tuple from that of a slice of it."""
    found = {k: entry(ȳ, j) for j, k in enumerate(positions)}
    found = {k: c for k, c in found.items() if not is_zero(c)}
    return Tangent[tuple](found) if found else ZERO


@rrule(tuple.__getitem__)
def _(xs: tuple, i: Anything):
    y = tuple.__getitem__(xs, i)
    positions: Any = range(len(xs))[i]

    def getitem_pullback(ȳ):
        if isinstance(positions, int):
            return Tangent[tuple]({positions: ȳ}), NoTangent()
        return pieces(positions, ȳ), NoTangent()

    return y, getitem_pullback


def concatenated(a: tuple, b: tuple):
    n, m = len(a), len(b)

    def add_pullback(ȳ):
        bars = entries(ȳ, n + m)
        return together(bars[:n]), together(bars[n:])

    return tuple.__add__(a, b), add_pullback


def repeated(xs: tuple, k: int | np.integer):
    n = len(xs)

    def mul_pullback(ȳ):
        bars = entries(ȳ, n * max(k, 0))
        return together([sum_of(bars[i::n]) for i in range(n)]), NoTangent()

    return tuple.__mul__(xs, k), mul_pullback


def sum_of(bars: list[Any]) -> Any:
    """The sum of cotangents."""
    total: Any = ZERO
    for c in bars:
        total = accumulate(total, c)
    return total


@rrule(operator.add)
@rrule(operator.iadd)
def _(a: tuple, b: tuple):
    if is_native(a, "__add__") and is_native(b, "__radd__"):
        return concatenated(a, b)
    return by_operator(operator.add, a, b)


@rrule(operator.mul)
@rrule(operator.imul)
def _(a: tuple, b: int | np.integer):
    return repeated(a, b) if is_native(a, "__mul__") else by_operator(operator.mul, a, b)


@rrule(operator.mul)
@rrule(operator.imul)
def _(a: int | np.integer, b: tuple):
    if not is_native(b, "__rmul__"):
        return by_operator(operator.mul, a, b)
    y, back = repeated(b, a)
    return y, lambda ȳ: back(ȳ)[::-1]


def by_operator(op: Any, a: Any, b: Any) -> Any:
    """An operator that a subclass redefines."""
    y, back = served(op)(op, (a, b), {})
    return y, lambda ȳ: back(ȳ)[1:]


rrule(tuple.__add__)(concatenated)
rrule(tuple.__mul__)(repeated)


# Iterators of any kind may run code that makes lists, whose cotangents go by identity: so their
# pullbacks run always. Of tuples and lists, the items are there already.


def new_tuple(cls: type, items: Any) -> Any:
    """`tuple.__new__`."""
    values, back = drain(items)

    def new_pullback(ȳ):
        return NoTangent(), back(entries(ȳ, len(values)))

    return tuple.__new__(cls, values), new_pullback


def made_tuple(items: Any) -> Any:
    """`tuple(items)`."""
    if type(items) is tuple:
        return items, lambda ȳ: (ȳ,)
    values, back = drain(items)

    def tuple_pullback(ȳ):
        return (back(entries(ȳ, len(values))),)

    return tuple(values), tuple_pullback


def argument_tuple(items: Any, fn: Any) -> Any:
    """`*items` in a call of `fn`."""
    if fn is not primitives.NULL:
        primitives.check_iterable(items, fn)
    y, back = call(tuple, items)
    return y, lambda ȳ: (*back(ȳ)[1:], NoTangent())


def unpacked(items: Any, n: int) -> Any:
    """`a, b = items`."""
    values, back = first_items(items, n)

    def unpack_pullback(ȳ):
        return back(entries(ȳ, n)), NoTangent()

    return tuple(values), unpack_pullback


@rrule(tuple.__new__)
def _(cls: type, items: tuple | list = ()):
    return new_tuple(cls, items)


@rrule(tuple.__new__, by_identity=True)
def _(cls: type, items: Anything):
    return new_tuple(cls, items)


@rrule(tuple)
def _(items: tuple | list):
    return made_tuple(items)


@rrule(tuple, by_identity=True)
def _(items: Anything):
    return made_tuple(items)


@rrule(primitives.as_tuple)
def _(items: tuple | list, fn: Anything = primitives.NULL):
    return argument_tuple(items, fn)


@rrule(primitives.as_tuple, by_identity=True)
def _(items: Anything, fn: Anything = primitives.NULL):
    return argument_tuple(items, fn)


@rrule(primitives.unpack)
def _(items: tuple | list, n: int):
    return unpacked(items, n)


@rrule(primitives.unpack, by_identity=True)
def _(items: Anything, n: int):
    return unpacked(items, n)


def first_items(items: Any, n: int) -> Any:
    """The n items of an iterable that must have no more, for `a, b = items`."""
    if type(items) is tuple or type(items) is list:
        if len(items) != n:
            primitives.unpack(items, n)  # raises
        return drain(items)
    iterator, iter_back = call(iter, items)
    values, backs = [], []
    for i in range(n + 1):
        item, back = call(primitives.advance, iterator)
        backs.append(back)
        if item is primitives.DONE:
            break
        if i == n:
            raise ValueError(f"too many values to unpack (expected {n})")
        values.append(item)
    if len(values) < n:
        raise ValueError(f"not enough values to unpack (expected {n}, got {len(values)})")

    def first_items_pullback(bars: list[Any]) -> Any:
        backs[n](ZERO)
        for i in reversed(range(n)):
            backs[i](bars[i])
        return iter_back(ZERO)[1]

    return values, first_items_pullback


hands_over(tuple, tuple.__new__, primitives.as_tuple, primitives.unpack)


@rrule(primitives.unpack_rest, by_identity=True)
def _(items: Anything, before: int, after: int):
    values, back = drain(items)
    if len(values) < before + after:
        primitives.unpack_rest(values, before, after)  # raises
    end = len(values) - after
    rest = values[before:end]
    y = (*values[:before], rest, *values[end:])

    def unpack_rest_pullback(ȳ):
        bars = entries(ȳ, len(y))
        middle = drop_from(adjoint_of(rest), 0, end - before)
        return (
            back([*bars[:before], *middle, *bars[before + 1 :]]),
            NoTangent(),
            NoTangent(),
        )

    return y, unpack_rest_pullback


@as_passing
@rrule(primitives.apply, by_identity=True)
def _(fn: Anything, args: tuple, kwargs: Anything):
    keys = list(kwargs)
    y, back = call(fn, *args, **kwargs)
    n = 1 + len(args)

    def apply_pullback(ȳ):
        bars = back(ȳ)
        named = adjoint_of(kwargs)
        for key, c in zip(keys, bars[n:], strict=True):
            give(named, key, c)
        return bars[0], together(bars[1:n]), NoTangent()

    return y, apply_pullback


def mutable_parts(items: Any) -> dict[int, Any]:
    """The projections of those items of a tuple that may change before they are needed."""
    return {i: projection_inside(v) for i, v in enumerate(items) if isinstance(v, CHANGING)}


@projector.register(tuple)
def _(x: tuple) -> Any:
    if not x:
        return None
    parts = mutable_parts(x)

    def project_item(i: int, c: Any) -> Any:
        if c is None:  # that is how a user writes a zero
            return ZERO
        return parts[i](c) if i in parts else project_to(x[i])(c)

    @hands_on(x, range(len(x)))
    def project_tuple(x̄: Any) -> Any:
        if isinstance(x̄, Tangent):
            pieces = {position(x, k): c for k, c in x̄.items()}
            return Tangent[tuple]({i: project_item(i, c) for i, c in pieces.items()})
        if not isinstance(x̄, (tuple, list, np.ndarray)) or len(x̄) != len(x):
            raise not_like(x, x̄)
        return tuple([project_item(i, c) for i, c in enumerate(x̄)])

    return project_tuple


def position(x: Any, key: Any) -> int:
    """The position that a key of the cotangent of a (named) tuple means."""
    return type(x)._fields.index(key) if isinstance(key, str) else operator.index(key)


def not_like(x: Any, x̄: Any) -> CotangentError:
    """A cotangent that does not have the structure of its primal."""
    kind = type(x̄).__name__
    if hasattr(x̄, "__len__"):
        kind += f" of length {len(x̄)}"
    return CotangentError(
        f"the cotangent of a {type(x).__name__} of length {len(x)} is a {kind}, expected one entry "
        "for each of its items"
    )


non_differentiable(position)

# -- lists -----------------------------------------------------------------------------------------


@rrule(primitives.build_list, by_identity=True)
def _(*items: Anything):
    n = len(items)
    y = [*items]

    def build_list_pullback(ȳ):
        return tuple(drop_from(adjoint_of(y), 0, n))

    return y, build_list_pullback


@rrule(primitives.list_append, by_identity=True)
@rrule(list.append, by_identity=True)
def _(xs: list, value: Anything):
    n = len(xs)
    list.append(xs, value)

    def append_pullback(ȳ):
        return NoTangent(), drop_from(adjoint_of(xs), n, 1)[0]

    return None, append_pullback


@rrule(list.extend, by_identity=True)
def _(xs: list, more: Anything):
    if runs_code(more):
        _, back = call(extend_list, xs, more)
        return None, lambda ȳ: back(ZERO)[1:]
    return extend_at_once(xs, more)


@rrule(primitives.list_extend, by_identity=True)
def extend_at_once(xs: list, more: Anything):
    n = len(xs)
    items, back = drain(more)
    list.extend(xs, items)

    def extend_pullback(ȳ):
        return NoTangent(), back(drop_from(adjoint_of(xs), n, len(items)))

    return None, extend_pullback


@rrule(list.insert, by_identity=True)
def _(xs: list, i: int, value: Anything):
    k = slice(i, None).indices(len(xs))[0]
    list.insert(xs, i, value)

    def insert_pullback(ȳ):
        return NoTangent(), NoTangent(), cut(adjoint_of(xs), k, k + 1)[0]

    return None, insert_pullback


def put_back(xs: list[Any], k: int, c: Any) -> None:
    """The adjoint of taking the k-th item out of a list."""
    bars = adjoint_of(xs)
    lengthen(bars, k)
    bars.insert(k, c)


@rrule(list.pop, by_identity=True)
def _(xs: list, i: int = -1):
    k = i % len(xs) if xs else i
    y = list.pop(xs, i)

    def pop_pullback(ȳ):
        put_back(xs, k, ȳ)
        return NoTangent(), NoTangent()

    return y, pop_pullback


@rrule(list.remove, by_identity=True)
def _(xs: list, value: Anything):
    k, asked = place_of(list, xs, value)
    list.pop(xs, k)

    def remove_pullback(ȳ):
        put_back(xs, k, ZERO)
        return NoTangent(), asked()

    return None, remove_pullback


def place_of(kind: Any, xs: Any, value: Any) -> Any:
    """Where the item is that `remove` of such a sequence takes away, and: -> the cotangent that the
    value has from the asking.
    """
    if not compares(xs, value):
        return index_of(kind, xs, value), lambda: ZERO
    items, item_backs = drain(xs)
    asked: list[Any] = []
    k = -1
    for i, y in enumerate(items):
        equal, back = call(is_same_or_equal, y, value)
        asked.append(back)
        if equal:
            k = i
            break
    if k < 0:
        kind.remove(kind(), value)  # raises

    def place_pullback() -> Any:
        c: Any = ZERO
        bars: list[Any] = [ZERO] * len(items)
        for i in reversed(range(len(asked))):
            _, bars[i], of_value = asked[i](ZERO)
            c = accumulate(c, of_value)
        item_backs(bars)
        return c

    return k, place_pullback


def index_of(kind: Any, xs: Any, value: Any) -> int:
    """The place of a value in a sequence."""
    if value not in xs:
        kind.remove(xs, value)  # raises
    return int(xs.index(value))


def compares(xs: Any, value: Any) -> bool:
    """Does one of these say by code of its own what it is equal to?"""
    return ASKS_EQUAL(types_within((xs, value)))


ASKS_EQUAL = asks("__eq__")
non_differentiable(index_of, compares)


@rrule(list.reverse, by_identity=True)
def _(xs: list):
    n = len(xs)
    list.reverse(xs)

    def reverse_pullback(ȳ):
        bars = adjoint_of(xs)
        lengthen(bars, n)
        bars[:n] = bars[:n][::-1]
        return (NoTangent(),)

    return None, reverse_pullback


@rrule(list.clear, by_identity=True)
def _(xs: list):
    list.clear(xs)

    def clear_pullback(ȳ):
        del adjoint_of(xs)[:]
        return (NoTangent(),)

    return None, clear_pullback


@rrule(list.copy, by_identity=True)
def _(xs: list):
    n = len(xs)
    y = list.copy(xs)

    def copy_pullback(ȳ):
        scatter(xs, drop_from(adjoint_of(y), 0, n))
        return (NoTangent(),)

    return y, copy_pullback


@rrule(list, by_identity=True)
def _(items: Anything):
    y, back = drain(items)
    n = len(y)

    def list_pullback(ȳ):
        return (back(drop_from(adjoint_of(y), 0, n)),)

    return y, list_pullback


@rrule(list, by_identity=True)
def _():
    return [], lambda ȳ: ()


@rrule(list.__init__, by_identity=True)
def _(xs: list, items: Anything = ()):
    values, back = drain(items)
    list.__init__(xs, values)

    def init_pullback(ȳ):
        return NoTangent(), back(drop_from(adjoint_of(xs), 0, len(values)))

    return None, init_pullback


# Items and slices of lists


def list_getitem(xs: list, i: Anything):
    y = list.__getitem__(xs, i)
    positions: Any = range(len(xs))[i]

    def getitem_pullback(ȳ):
        bars = adjoint_of(xs)
        if isinstance(positions, int):
            give_at(bars, positions, ȳ)
        else:
            parts = drop_from(adjoint_of(y), 0, len(positions))
            for j, k in enumerate(positions):
                give_at(bars, k, parts[j])
        return NoTangent(), NoTangent()

    return y, getitem_pullback


def list_setitem(xs: list, i: Anything, value: Anything):
    if isinstance(i, slice):
        return set_slice(xs, i, value)
    k = range(len(xs))[i] if -len(xs) <= operator.index(i) < len(xs) else 0
    list.__setitem__(xs, i, value)

    def setitem_pullback(ȳ):
        return NoTangent(), NoTangent(), take_at(adjoint_of(xs), k)

    return None, setitem_pullback


def set_slice(xs: list, i: Any, value: Any):
    """`xs[i:j] = value`."""
    positions = range(len(xs))[i]
    items, back = drain(value)
    list.__setitem__(xs, i, items)

    def set_slice_pullback(ȳ):
        bars = adjoint_of(xs)
        if positions.step == 1:
            start, n = positions.start, len(positions)
            parts = cut(bars, start, start + len(items), n)
        else:
            parts = [take_at(bars, k) for k in positions]
        return NoTangent(), NoTangent(), back(parts)

    return None, set_slice_pullback


def list_delitem(xs: list, i: Anything):
    positions: Any = range(len(xs))[i] if is_within(i, len(xs)) else ()
    list.__delitem__(xs, i)
    places = [positions] if isinstance(positions, int) else sorted(positions)

    def delitem_pullback(ȳ):
        for k in places:
            put_back(xs, k, ZERO)
        return NoTangent(), NoTangent()

    return None, delitem_pullback


def is_within(i: Any, n: int) -> bool:
    """Is it a slice or an index of a sequence of n items?"""
    return isinstance(i, slice) or -n <= operator.index(i) < n


non_differentiable(is_within)


@rrule(operator.getitem, by_identity=True)
def _(xs: list, i: Anything):
    if is_native(xs, "__getitem__"):
        return list_getitem(xs, i)
    return by_class("__getitem__", xs, i)


@rrule(operator.setitem, by_identity=True)
def _(xs: list, i: Anything, value: Anything):
    if is_native(xs, "__setitem__"):
        return list_setitem(xs, i, value)
    return by_class("__setitem__", xs, i, value)


@rrule(operator.delitem, by_identity=True)
def _(xs: list, i: Anything):
    if is_native(xs, "__delitem__"):
        return list_delitem(xs, i)
    return by_class("__delitem__", xs, i)


rrule(list.__getitem__, by_identity=True)(list_getitem)
rrule(list.__setitem__, by_identity=True)(list_setitem)
rrule(list.__delitem__, by_identity=True)(list_delitem)

# Sums and multiples of lists


def list_add(a: list, b: list):
    n, m = len(a), len(b)
    y = list.__add__(a, b)

    def add_pullback(ȳ):
        bars = drop_from(adjoint_of(y), 0, n + m)
        scatter(b, bars[n:])
        scatter(a, bars[:n])
        return NoTangent(), NoTangent()

    return y, add_pullback


def list_mul(xs: list, k: int | np.integer):
    n = len(xs)
    y = list.__mul__(xs, k)

    def mul_pullback(ȳ):
        bars = drop_from(adjoint_of(y), 0, n * max(k, 0))
        scatter(xs, [sum_of(bars[i::n]) for i in range(n)])
        return NoTangent(), NoTangent()

    return y, mul_pullback


def list_imul(xs: list, k: int | np.integer):
    n = len(xs)
    list.__imul__(xs, k)

    def imul_pullback(ȳ):
        adjoint = adjoint_of(xs)
        bars = drop_from(adjoint, 0, n * max(k, 0))
        for i in range(n):
            give_at(adjoint, i, sum_of(bars[i::n]))
        return NoTangent(), NoTangent()

    return xs, imul_pullback


def list_iadd(xs: list, more: Anything):
    _, back = call(list.extend, xs, more)
    return xs, lambda ȳ: back(ZERO)[1:]


@rrule(operator.add, by_identity=True)
def _(a: list, b: list):
    if is_native(a, "__add__") and is_native(b, "__radd__"):
        return list_add(a, b)
    return by_operator(operator.add, a, b)


@rrule(operator.iadd, by_identity=True)
def _(xs: list, more: Anything):
    asks_more = type(xs) is list and lookup(type(more), "__radd__") is not MISSING
    if is_native(xs, "__iadd__") and not isinstance(more, np.ndarray) and not asks_more:
        return list_iadd(xs, more)
    return by_operator(operator.iadd, xs, more)


@rrule(operator.iadd, by_identity=True)
def _(xs: list, more: np.ndarray):
    y, back = call(operator.add, xs, more)  # a list has no say over an array
    return y, lambda ȳ: back(ȳ)[1:]


@rrule(operator.mul, by_identity=True)
def _(a: list, b: int | np.integer):
    return list_mul(a, b) if is_native(a, "__mul__") else by_operator(operator.mul, a, b)


@rrule(operator.mul, by_identity=True)
@rrule(operator.imul, by_identity=True)
def _(a: int | np.integer, b: list):
    if not is_native(b, "__rmul__"):
        return by_operator(operator.mul, a, b)
    y, back = list_mul(b, a)
    return y, lambda ȳ: back(ȳ)[::-1]


@rrule(operator.imul, by_identity=True)
def _(xs: list, k: int | np.integer):
    return list_imul(xs, k) if is_native(xs, "__imul__") else by_operator(operator.imul, xs, k)


@serves(operator.concat)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(operator.add, *args)


@serves(operator.iconcat)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(operator.iadd, *args)


rrule(list.__add__, by_identity=True)(list_add)
rrule(list.__mul__, by_identity=True)(list_mul)
rrule(list.__imul__, by_identity=True)(list_imul)
rrule(list.__iadd__, by_identity=True)(list_iadd)


@rrule(list.sort, by_identity=True)
def _(xs: list, *, key=None, reverse=False):
    items = list.copy(xs)
    order, asked = order_of(items, key, reverse)
    list.__setitem__(xs, slice(None), [items[i] for i in order])

    def sort_pullback(ȳ):
        bars = adjoint_of(xs)
        parts = drop_from(bars, 0, len(order))
        for j, i in enumerate(order):
            give_at(bars, i, parts[j])
        for i, c in enumerate(asked()):
            give_at(bars, i, c)
        return (NoTangent(),)

    return None, sort_pullback


def order_of(items: list[Any], key: Any, reverse: bool) -> Any:
    """The places of the items in their order; the cotangents that asking gives them."""
    pairs = [] if key is None else [call(key, item) for item in items]
    keys = items if key is None else [k for k, _ in pairs]
    asked: list[Any] = []
    if answers(keys):
        compared = [Compared(x, i, asked) for i, x in enumerate(keys)]
        order = sorted(range(len(keys)), key=compared.__getitem__, reverse=reverse)
    else:
        order = stable_order(keys, reverse)

    def asking_pullback() -> list[Any]:
        bars = cotangents_of(asked, len(keys))
        for i in reversed(range(len(pairs))):
            bars[i] = pairs[i][1](bars[i])[1]
        return bars

    return order, asking_pullback


class Compared:
    """An object that says by code of its own which of two comes first: what it does is recorded."""

    __slots__ = ("asked", "i", "x")

    def __init__(self, x: Any, i: int, asked: list[Any]) -> None:
        self.x = x
        self.i = i
        self.asked = asked

    def __lt__(self, other: Any) -> bool:
        y, back = call(is_less, self.x, other.x)
        self.asked.append((self.i, other.i, back))
        return y

    def __gt__(self, other: Any) -> bool:
        y, back = call(is_greater, self.x, other.x)
        self.asked.append((self.i, other.i, back))
        return y


def cotangents_of(asked: list[Any], n: int) -> list[Any]:
    """The cotangents of n objects from their comparisons."""
    bars: list[Any] = [ZERO] * n
    for i, j, back in reversed(asked):
        _, left, right = back(ZERO)
        bars[i] = accumulate(bars[i], left)
        bars[j] = accumulate(bars[j], right)
    return bars


def answers(keys: Any) -> bool:
    """Does one of these say by code of its own which of two comes first?"""
    return asks_order(tuple(map(type, keys)))


asks_order = asks("__lt__", "__gt__")
non_differentiable(answers)


def stable_order(keys: list[Any], reverse: bool) -> list[int]:
    """The places of the keys in their order; equal keys keep theirs."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


non_differentiable(stable_order)


@projector.register(list)
@projector.register(collections.deque)
def _(x: Any) -> Any:
    items = list(x)
    inside = projections_inside(dict(enumerate(items)))

    @hands_on(x, range(len(items)))
    def absorb(x̄: Any) -> Any:
        """A cotangent that a rule returned by value goes to the adjoint of the list."""
        bars = adjoint_of(x)
        if isinstance(x̄, (Tangent, dict)):
            pairs = [(operator.index(i), c) for i, c in x̄.items()]
        elif isinstance(x̄, (list, tuple, collections.deque, np.ndarray)) and len(x̄) == len(items):
            pairs = list(enumerate(x̄))
        else:
            raise not_like(items, x̄)
        for i, c in pairs:
            if c is not None:
                give_at(bars, i, (inside.get(i) or project_to(items[i]))(c))
        return ZERO

    return absorb


def projections_inside(items: dict[Any, Any]) -> dict[Any, Any]:
    """The projections to containers among some items, which may hold other items later."""
    kinds = {t for t in set(map(type, items.values())) if issubclass(t, CHANGING)}
    if not kinds:
        return {}
    return {key: projection_inside(x) for key, x in items.items() if type(x) in kinds}


class Unfinished(threading.local):
    """The projections to containers that are being made, by identity: a container may hold itself."""

    def __init__(self) -> None:
        self.made: dict[int, list[Any]] = {}


_unfinished = Unfinished()


def projection_inside(x: Any) -> Any:
    """The projection to a container that is held by another one, or by itself."""
    made = _unfinished.made
    found = made.get(id(x))
    if found is not None:
        return lambda x̄: found[0](x̄)
    made[id(x)] = found = []
    try:
        found.append(project_to(x))
        return found[0]
    finally:
        del made[id(x)]


CHANGING = (list, tuple, dict, collections.deque)


# -- text, ranges, slices: constants ---------------------------------------------------------------


@rrule(operator.getitem)
def _(xs: str | bytes | bytearray | range, i: Anything):
    def getitem_pullback(ȳ):
        return NoTangent(), NoTangent()

    return xs[i], getitem_pullback


non_differentiable(
    primitives.build_string,
    primitives.format_value,
    primitives.raise_exception,
    primitives.import_name,
    primitives.import_from,
    primitives.globals_of,
    *[
        getattr(cls, name)
        for cls in (list, tuple, dict, set, frozenset)
        for name in (
            "__len__", "isdisjoint", "issubset", "issuperset",
        )
        if callable(getattr(cls, name, None))
    ],
)  # fmt: skip
COMPARED = asks("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__")
ASKED = asks(
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__", "__hash__", "__str__"
)
for _cls in (list, tuple, dict, set, frozenset):
    for _name in (
        "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
        "__repr__", "index", "count", "__hash__",
    ):  # fmt: skip
        if callable(getattr(_cls, _name, None)):
            asked = ASKED if _name == "__repr__" else COMPARED
            constant_unless(asked, getattr(_cls, _name), types_of=types_within)
no_tangent(type(primitives.DONE))


@rrule(primitives.check_bound)
def _(value: Anything, name: str, own: bool = True):
    def check_bound_pullback(ȳ):
        return ȳ, NoTangent(), NoTangent()

    return primitives.check_bound(value, name, own), check_bound_pullback
