"""Rules of tuples, lists, dicts and sets: displays, items, methods, construction, unpacking.

Tuples go by value: the cotangent of a tuple is a tuple of cotangents, or `Tangent[tuple]({i: c})`
with those entries that are not zero. The adjoint object of a list is a list of cotangents, that of
a dict a dict, that of a set a dict by element; they follow the changes of the primal backwards:
what was appended is popped, what was popped is put back. An adjoint list may be shorter than its
primal; what is not there is zero. A subclass that redefines an operation in Python has its own way.
Tests: tests/rules/test_containers.py
"""

import collections
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    CotangentError,
    NoTangent,
    Tangent,
    accumulate,
    adjoint_object,
    adjoint_of,
    call,
    collector,
    gradient_for,
    materialise,
    multiply,
    new_containers,
    no_tangent,
    non_differentiable,
    on_entry,
    primitives,
    project_to,
    projector,
    reaching,
    remembered,
    results_of,
    rrule,
    scale,
)
from morula.rules.calls import entry, is_zero, lookup, served, serves, together
from morula.rules.objects import give, owner_of, take

# -- adjoint lists ---------------------------------------------------------------------------------


@adjoint_object.register(list)
def _(x: list) -> list[Any]:
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
    return type(lookup(type(x), method)) is not FunctionType


non_differentiable(is_native)


def by_class(method: str, *args: Any) -> Any:
    """The method that a class defines in Python: its value, and the cotangents of `args`."""
    y, back = call(lookup(type(args[0]), method), *args)
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


# -- tuples ----------------------------------------------------------------------------------------


@rrule(primitives.build_tuple)
def _(*items: object):
    n = len(items)

    def build_tuple_pullback(ȳ):
        return tuple(entries(ȳ, n))

    return items, build_tuple_pullback


@rrule(operator.getitem)
def _(xs: tuple, i: int):
    if not is_native(xs, "__getitem__"):
        return by_class("__getitem__", xs, i)
    n = len(xs)

    def getitem_pullback(ȳ):
        return Tangent[tuple]({i % n: ȳ}), NoTangent()

    return xs[i], getitem_pullback


@rrule(operator.getitem)
def _(xs: tuple, i: object):
    if not is_native(xs, "__getitem__"):
        return by_class("__getitem__", xs, i)
    positions: Any = range(len(xs))[i]

    def getitem_pullback(ȳ):
        if isinstance(positions, int):
            return Tangent[tuple]({positions: ȳ}), NoTangent()
        return pieces(positions, ȳ), NoTangent()

    return xs[i], getitem_pullback


def pieces(positions: Any, ȳ: Any) -> Any:
    """The cotangent of a tuple from that of a slice of it."""
    found = {k: entry(ȳ, j) for j, k in enumerate(positions)}
    found = {k: c for k, c in found.items() if not is_zero(c)}
    return Tangent[tuple](found) if found else ZERO


@rrule(tuple.__getitem__)
def _(xs: tuple, i: object):
    positions: Any = range(len(xs))[i]

    def getitem_pullback(ȳ):
        if isinstance(positions, int):
            return Tangent[tuple]({positions: ȳ}), NoTangent()
        return pieces(positions, ȳ), NoTangent()

    return tuple.__getitem__(xs, i), getitem_pullback


def concatenated(a: tuple, b: tuple):
    n, m = len(a), len(b)

    def add_pullback(ȳ):
        bars = entries(ȳ, n + m)
        return together(bars[:n]), together(bars[n:])

    return tuple.__add__(a, b), add_pullback


def repeated(xs: tuple, k: int):
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
def _(a: tuple, b: int):
    return repeated(a, b) if is_native(a, "__mul__") else by_operator(operator.mul, a, b)


@rrule(operator.mul)
@rrule(operator.imul)
def _(a: int, b: tuple):
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


@rrule(tuple.__new__)
def _(cls: type, items: object = ()):
    values, back = drain(items)

    def new_pullback(ȳ):
        return NoTangent(), back(entries(ȳ, len(values)))

    return tuple.__new__(cls, values), new_pullback


@rrule(tuple)
def _(items: object):
    if type(items) is tuple:
        return items, lambda ȳ: (ȳ,)
    values, back = drain(items)

    def tuple_pullback(ȳ):
        return (back(entries(ȳ, len(values))),)

    return tuple(values), tuple_pullback


@rrule(primitives.as_tuple)
def _(items: object, fn: object = primitives.NULL):
    if fn is not primitives.NULL:
        primitives.check_iterable(items, fn)
    y, back = call(tuple, items)
    return y, lambda ȳ: (*back(ȳ)[1:], NoTangent())


@rrule(primitives.unpack)
def _(items: object, n: int):
    values, back = first_items(items, n)

    def unpack_pullback(ȳ):
        return back(entries(ȳ, n)), NoTangent()

    return tuple(values), unpack_pullback


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


@rrule(primitives.unpack_rest, by_identity=True)
def _(items: object, before: int, after: int):
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


@rrule(primitives.apply, by_identity=True)
def _(fn: object, args: tuple, kwargs: object):
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
    return {i: project_to(v) for i, v in enumerate(items) if type(v) in (list, dict, tuple)}


@projector.register(tuple)
def _(x: tuple) -> Any:
    if not x:
        return None
    parts = mutable_parts(x)

    def project_item(i: int, c: Any) -> Any:
        if c is None:  # that is how a user writes a zero
            return ZERO
        return parts[i](c) if i in parts else project_to(x[i])(c)

    def project_tuple(x̄: Any) -> Any:
        if isinstance(x̄, Tangent):
            pieces = {position(x, k): c for k, c in x̄.items()}
            return Tangent[tuple]({i: project_item(i, c) for i, c in pieces.items()})
        if not isinstance(x̄, (tuple, list, np.ndarray)) or len(x̄) != len(x):
            raise not_like(x, x̄)
        return tuple([project_item(i, c) for i, c in enumerate(x̄)])

    return project_tuple


# -- what a rule gets that returns a container: the cotangents of its items, by value --------------


new_containers(
    np.ndarray.tolist, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.atleast_1d,
    np.atleast_2d, np.atleast_3d, np.meshgrid,
)  # fmt: skip


@collector.register(tuple)
def _(y: tuple) -> Any:
    parts = [collector(item) if type(item) in (list, dict, tuple) else None for item in y]
    if not any(parts):
        return None
    return lambda: tuple([ZERO if part is None else part() for part in parts])


@collector.register(list)
def _(y: list) -> Any:
    n, inside = len(y), collector(tuple(y))

    def collect() -> Any:
        bars = drop_from(adjoint_of(y), 0, n)
        if inside is not None:
            bars = [accumulate(a, b) for a, b in zip(bars, inside(), strict=True)]
        return ZERO if all(map(is_zero, bars)) else bars

    return collect


@collector.register(dict)
def _(y: dict) -> Any:
    parts = {key: collector(item) for key, item in y.items()}

    def collect() -> Any:
        bars = adjoint_of(y)
        found = {}
        for key, part in parts.items():
            c = take(bars, key)
            found[key] = c if part is None else accumulate(c, part())
        return ZERO if all(map(is_zero, found.values())) else found

    return collect


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
def _(*items: object):
    n = len(items)
    y = [*items]

    def build_list_pullback(ȳ):
        return tuple(drop_from(adjoint_of(y), 0, n))

    return y, build_list_pullback


@rrule(primitives.list_append, by_identity=True)
@rrule(list.append, by_identity=True)
def _(xs: list, value: object):
    n = len(xs)
    list.append(xs, value)

    def append_pullback(ȳ):
        return NoTangent(), drop_from(adjoint_of(xs), n, 1)[0]

    return None, append_pullback


@rrule(primitives.list_extend, by_identity=True)
@rrule(list.extend, by_identity=True)
def _(xs: list, more: object):
    n = len(xs)
    items, back = drain(more)
    list.extend(xs, items)

    def extend_pullback(ȳ):
        return NoTangent(), back(drop_from(adjoint_of(xs), n, len(items)))

    return None, extend_pullback


@rrule(list.insert, by_identity=True)
def _(xs: list, i: int, value: object):
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
def _(xs: list, value: object):
    before = xs[:]
    list.remove(xs, value)
    k = first_difference(before, xs)

    def remove_pullback(ȳ):
        put_back(xs, k, ZERO)
        return NoTangent(), NoTangent()

    return None, remove_pullback


def first_difference(a: list[Any], b: list[Any]) -> int:
    """Where the longer list `a` has an item that `b` lacks."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x is not y), len(b))


non_differentiable(first_difference)


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
def _(items: object):
    y, back = drain(items)
    n = len(y)

    def list_pullback(ȳ):
        return (back(drop_from(adjoint_of(y), 0, n)),)

    return y, list_pullback


@rrule(list, by_identity=True)
def _():
    return [], lambda ȳ: ()


@rrule(list.__init__, by_identity=True)
def _(xs: list, items: object = ()):
    values, back = drain(items)
    list.__init__(xs, values)

    def init_pullback(ȳ):
        return NoTangent(), back(drop_from(adjoint_of(xs), 0, len(values)))

    return None, init_pullback


# Items and slices of lists


def list_getitem(xs: list, i: object):
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


def list_setitem(xs: list, i: object, value: object):
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


def list_delitem(xs: list, i: object):
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
def _(xs: list, i: object):
    if is_native(xs, "__getitem__"):
        return list_getitem(xs, i)
    return by_class("__getitem__", xs, i)


@rrule(operator.setitem, by_identity=True)
def _(xs: list, i: object, value: object):
    if is_native(xs, "__setitem__"):
        return list_setitem(xs, i, value)
    return by_class("__setitem__", xs, i, value)


@rrule(operator.delitem, by_identity=True)
def _(xs: list, i: object):
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


def list_mul(xs: list, k: int):
    n = len(xs)
    y = list.__mul__(xs, k)

    def mul_pullback(ȳ):
        bars = drop_from(adjoint_of(y), 0, n * max(k, 0))
        scatter(xs, [sum_of(bars[i::n]) for i in range(n)])
        return NoTangent(), NoTangent()

    return y, mul_pullback


def list_imul(xs: list, k: int):
    n = len(xs)
    list.__imul__(xs, k)

    def imul_pullback(ȳ):
        adjoint = adjoint_of(xs)
        bars = drop_from(adjoint, 0, n * max(k, 0))
        for i in range(n):
            give_at(adjoint, i, sum_of(bars[i::n]))
        return NoTangent(), NoTangent()

    return xs, imul_pullback


def list_iadd(xs: list, more: object):
    _, back = call(list.extend, xs, more)
    return xs, lambda ȳ: back(ZERO)[1:]


@rrule(operator.add, by_identity=True)
def _(a: list, b: list):
    if is_native(a, "__add__") and is_native(b, "__radd__"):
        return list_add(a, b)
    return by_operator(operator.add, a, b)


@rrule(operator.iadd, by_identity=True)
def _(xs: list, more: object):
    if is_native(xs, "__iadd__") and not isinstance(more, np.ndarray):
        return list_iadd(xs, more)
    return by_operator(operator.iadd, xs, more)


@rrule(operator.iadd)
def _(xs: list, more: np.ndarray):
    y, back = call(operator.add, xs, more)  # a list has no say over an array
    return y, lambda ȳ: back(ȳ)[1:]


@rrule(operator.mul, by_identity=True)
def _(a: list, b: int):
    return list_mul(a, b) if is_native(a, "__mul__") else by_operator(operator.mul, a, b)


@rrule(operator.mul, by_identity=True)
@rrule(operator.imul, by_identity=True)
def _(a: int, b: list):
    if not is_native(b, "__rmul__"):
        return by_operator(operator.mul, a, b)
    y, back = list_mul(b, a)
    return y, lambda ȳ: back(ȳ)[::-1]


@rrule(operator.imul, by_identity=True)
def _(xs: list, k: int):
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
    order, backs = order_of(xs[:], key, reverse)
    xs[:] = [xs[i] for i in order]

    def sort_pullback(ȳ):
        bars = adjoint_of(xs)
        parts = drop_from(bars, 0, len(order))
        for j, i in enumerate(order):
            give_at(bars, i, parts[j])
        for i in reversed(range(len(backs))):
            backs[i](ZERO)
        return (NoTangent(),)

    return None, sort_pullback


def order_of(items: list[Any], key: Any, reverse: bool) -> Any:
    """The places of the items in their order, and the pullbacks of the calls of the key."""
    if key is None:
        return stable_order(items, reverse), []
    pairs = [call(key, item) for item in items]
    return stable_order([k for k, _ in pairs], reverse), [back for _, back in pairs]


def stable_order(keys: list[Any], reverse: bool) -> list[int]:
    """The places of the keys in their order; equal keys keep theirs."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)


non_differentiable(stable_order)


@projector.register(list)
def _(x: list) -> Any:
    items = x[:]

    def absorb(x̄: Any) -> Any:
        """A cotangent that a rule returned by value goes to the adjoint of the list."""
        bars = adjoint_of(x)
        if isinstance(x̄, (Tangent, dict)):
            pairs = [(operator.index(i), c) for i, c in x̄.items()]
        elif isinstance(x̄, (list, tuple, np.ndarray)) and len(x̄) == len(items):
            pairs = list(enumerate(x̄))
        else:
            raise not_like(items, x̄)
        for i, c in pairs:
            if c is not None:
                give_at(bars, i, project_to(items[i])(c))
        return ZERO

    return absorb


# -- dicts -----------------------------------------------------------------------------------------


class Key:
    """In the adjoint of a dict: the cotangent of a key, not of its value."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __hash__(self) -> int:
        return hash((Key, self.key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and (self.key is other.key or bool(self.key == other.key))


@adjoint_object.register(dict)
def _(x: dict) -> dict[Any, Any]:
    owner = owner_of(x)
    return {} if owner is None else adjoint_of(owner)


@rrule(primitives.build_map, by_identity=True)
def _(*items: object):
    y = primitives.build_map(*items)
    keys = items[::2]

    def build_map_pullback(ȳ):
        bars = adjoint_of(y)
        found = []
        for key in keys[::-1]:  # of a key that is given twice, the last value counts
            found += [take(bars, key), take(bars, Key(key))]
        return tuple(found[::-1])

    return y, build_map_pullback


def dict_getitem(d: dict, key: object):
    if key not in d and type(d) is not dict:
        missing = lookup(type(d), "__missing__")
        if type(missing) is FunctionType:
            return by_class("__missing__", d, key)
        if missing is defaultdict.__missing__ and d.default_factory is not None:
            return default_item(d, key)

    def getitem_pullback(ȳ):
        give(adjoint_of(d), key, ȳ)
        return NoTangent(), NoTangent()

    return dict.__getitem__(d, key), getitem_pullback


def default_item(d: Any, key: Any) -> Any:
    """`d[key]` of a defaultdict that has no such key."""
    y, back = call(d.default_factory)
    dict.__setitem__(d, key, y)

    def default_item_pullback(ȳ):
        back(accumulate(take(adjoint_of(d), key), ȳ))
        return NoTangent(), NoTangent()

    return y, default_item_pullback


def dict_setitem(d: dict, key: object, value: object):
    new = key not in d
    store_of(d)(d, key, value)

    def setitem_pullback(ȳ):
        bars = adjoint_of(d)
        return NoTangent(), take(bars, Key(key)) if new else ZERO, take(bars, key)

    return None, setitem_pullback


def store_of(d: dict[Any, Any]) -> Any:
    """The compiled `__setitem__` of a dict; an OrderedDict has its own."""
    return OrderedDict.__setitem__ if isinstance(d, OrderedDict) else dict.__setitem__


def delete_of(d: dict[Any, Any]) -> Any:
    """The compiled `__delitem__` of a dict."""
    return OrderedDict.__delitem__ if isinstance(d, OrderedDict) else dict.__delitem__


non_differentiable(store_of, delete_of)


def dict_delitem(d: dict, key: object):
    delete_of(d)(d, key)

    def delitem_pullback(ȳ):
        take(adjoint_of(d), key)
        return NoTangent(), NoTangent()

    return None, delitem_pullback


@rrule(operator.getitem, by_identity=True)
def _(d: dict, key: object):
    if is_native(d, "__getitem__"):
        return dict_getitem(d, key)
    return by_class("__getitem__", d, key)


@rrule(operator.setitem, by_identity=True)
def _(d: dict, key: object, value: object):
    if is_native(d, "__setitem__"):
        return dict_setitem(d, key, value)
    return by_class("__setitem__", d, key, value)


@rrule(primitives.map_add, by_identity=True)
def _(d: dict, key: object, value: object):
    return dict_setitem(d, key, value)


@rrule(operator.delitem, by_identity=True)
def _(d: dict, key: object):
    if is_native(d, "__delitem__"):
        return dict_delitem(d, key)
    return by_class("__delitem__", d, key)


rrule(dict.__getitem__, by_identity=True)(dict_getitem)
for _cls in (dict, OrderedDict):
    rrule(_cls.__setitem__, by_identity=True)(dict_setitem)
    rrule(_cls.__delitem__, by_identity=True)(dict_delitem)


@rrule(dict.get, by_identity=True)
def _(d: dict, key: object, default: object = None):
    if key not in d:
        return default, lambda ȳ: (NoTangent(), NoTangent(), ȳ)

    def get_pullback(ȳ):
        give(adjoint_of(d), key, ȳ)
        return NoTangent(), NoTangent(), ZERO

    return dict.__getitem__(d, key), get_pullback


def dict_pop(d: dict, key: object, *default: object):
    if key not in d:
        y = dict.pop(d, key, *default)  # raises KeyError without a default
        return y, lambda ȳ: (NoTangent(), NoTangent(), *[ȳ] * len(default))
    y = OrderedDict.pop(d, key) if isinstance(d, OrderedDict) else dict.pop(d, key)

    def pop_pullback(ȳ):
        give(adjoint_of(d), key, ȳ)
        return (NoTangent(), NoTangent(), *[ZERO] * len(default))

    return y, pop_pullback


@rrule(dict.popitem, by_identity=True)
@rrule(OrderedDict.popitem, by_identity=True)
def _(d: dict, last: bool = True):
    y = OrderedDict.popitem(d, last) if isinstance(d, OrderedDict) else dict.popitem(d)

    def popitem_pullback(ȳ):
        bars = adjoint_of(d)
        give(bars, Key(y[0]), entry(ȳ, 0))
        give(bars, y[0], entry(ȳ, 1))
        return NoTangent(), NoTangent()

    return y, popitem_pullback


def dict_setdefault(d: dict, key: object, default: object = None):
    if key in d:
        y, back = dict_getitem(d, key)
        return y, lambda ȳ: (*back(ȳ), ZERO)
    store_of(d)(d, key, default)

    def setdefault_pullback(ȳ):
        return NoTangent(), NoTangent(), accumulate(take(adjoint_of(d), key), ȳ)

    return default, setdefault_pullback


for _cls in (dict, OrderedDict):
    rrule(_cls.pop, by_identity=True)(dict_pop)
    rrule(_cls.setdefault, by_identity=True)(dict_setdefault)


@rrule(dict.clear, by_identity=True)
@rrule(OrderedDict.clear, by_identity=True)
def _(d: dict):
    OrderedDict.clear(d) if isinstance(d, OrderedDict) else dict.clear(d)

    def clear_pullback(ȳ):
        adjoint_of(d).clear()
        return (NoTangent(),)

    return None, clear_pullback


def dict_copy(d: dict):
    y = OrderedDict.copy(d) if isinstance(d, OrderedDict) else copy_of(d)(d)
    keys = list(d)

    def copy_pullback(ȳ):
        bars, copied = adjoint_of(d), adjoint_of(y)
        for key in keys:
            give(bars, key, take(copied, key))
        return (NoTangent(),)

    return y, copy_pullback


def copy_of(d: dict[Any, Any]) -> Any:
    """The compiled `copy` of a dict."""
    return defaultdict.copy if isinstance(d, defaultdict) else dict.copy


non_differentiable(copy_of)
for _cls in (dict, OrderedDict, defaultdict):
    rrule(_cls.copy, by_identity=True)(dict_copy)
non_differentiable(
    OrderedDict.move_to_end, dict.keys, dict.items, dict.values, OrderedDict.keys,
    OrderedDict.items, OrderedDict.values,
)  # fmt: skip


def update(d: dict[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`d.update(*args, **kwargs)`, item by item; its pullback gives the cotangents of both."""
    pairs, source_back = [], None
    if args:
        pairs, source_back = pairs_of(args[0])
    n = len(pairs)
    backs = [dict_setitem(d, key, value)[1] for key, value in [*pairs, *kwargs.items()]]

    def update_pullback() -> list[Any]:
        bars: list[Any] = [ZERO] * len(backs)
        for i in reversed(range(len(backs))):
            _, key_bar, value_bar = backs[i](ZERO)
            bars[i] = value_bar if i >= n else (key_bar, value_bar)
        found = [] if source_back is None else [source_back(bars[:n])]
        return found + bars[n:]

    return update_pullback


def pairs_of(source: Any) -> Any:
    """The items of what a dict is made from: a mapping, or an iterable of pairs."""
    if isinstance(source, MappingProxyType):
        return list(source.items()), lambda bars: ZERO
    if isinstance(source, dict) and is_native(source, "keys") and is_native(source, "__getitem__"):
        keys = list(source)
        pairs = [(key, dict.__getitem__(source, key)) for key in keys]

        def mapping_pullback(bars: list[Any]) -> Any:
            table = adjoint_of(source)
            for key, c in zip(keys, bars, strict=True):
                give(table, key, c[1])
            return ZERO

        return pairs, mapping_pullback
    if hasattr(source, "keys"):
        return pairs_by_keys(source)
    items, back = drain(source)
    unpacked = [call(primitives.unpack, item, 2) for item in items]

    def pairs_pullback(bars: list[Any]) -> Any:
        of_items: list[Any] = [ZERO] * len(unpacked)
        for i in reversed(range(len(unpacked))):
            of_items[i] = unpacked[i][1](bars[i])[1]
        return back(of_items)

    return [pair for pair, _ in unpacked], pairs_pullback


def pairs_by_keys(source: Any) -> Any:
    """The items of a mapping of a user's class, by `keys()` and `source[key]`."""
    keys, keys_back = call(call_keys, source)
    got = [call(operator.getitem, source, key) for key in keys]

    def keys_pullback(bars: list[Any]) -> Any:
        x̄: Any = ZERO
        for i in reversed(range(len(got))):
            x̄ = accumulate(got[i][1](bars[i][1])[1], x̄)
        return accumulate(keys_back(ZERO)[1], x̄)

    return list(zip(keys, [y for y, _ in got], strict=True)), keys_pullback


def call_keys(source: Any) -> list[Any]:
    """The keys of a mapping."""
    return list(source.keys())


@serves(dict.update, OrderedDict.update, dict.__init__, OrderedDict.__init__, dict.__ior__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    d, *rest = args
    back = update(d, tuple(rest), kwargs)
    y = d if fn is dict.__ior__ else None
    return y, lambda ȳ: (NONE, ZERO, *back())


@serves(defaultdict.__init__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    d, *rest = args
    defaultdict.__init__(d, *rest[:1])
    back = update(d, tuple(rest[1:]), kwargs)
    return None, lambda ȳ: (NONE, ZERO, *[NONE] * len(rest[:1]), *back())


@serves(dict, OrderedDict, defaultdict)
def _(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    factory = args[:1] if cls is defaultdict else ()
    d = cls(*factory)
    back = update(d, args[len(factory) :], kwargs)
    return d, lambda ȳ: (NONE, *[NONE] * len(factory), *back())


@rrule(primitives.dict_update, by_identity=True)
def _(d: dict, more: object):
    if not hasattr(more, "keys"):
        raise TypeError(f"'{type(more).__name__}' object is not a mapping")
    back = update(d, (more,), {})
    return None, lambda ȳ: (NoTangent(), *back())


@rrule(primitives.dict_merge, by_identity=True)
def _(d: dict, more: object, fn: object):
    if not hasattr(more, "keys") or any([key in d for key in more]):
        primitives.dict_merge(d, more, fn)  # raises
    back = update(d, (more,), {})
    return None, lambda ȳ: (NoTangent(), *back(), NoTangent())


def dict_or(a: dict, b: dict):
    y, copy_back = dict_copy(a)
    back = update(y, (b,), {})

    def or_pullback(ȳ):
        back()
        copy_back(ZERO)
        return NoTangent(), NoTangent()

    return y, or_pullback


def dict_ior(a: dict, b: object):
    back = update(a, (b,), {})
    return a, lambda ȳ: (NoTangent(), *back())


@rrule(operator.or_, by_identity=True)
def _(a: dict, b: dict):
    if is_native(a, "__or__") and is_native(b, "__ror__"):
        return dict_or(a, b)
    return by_operator(operator.or_, a, b)


@rrule(operator.ior, by_identity=True)
def _(a: dict, b: object):
    return dict_ior(a, b) if is_native(a, "__ior__") else by_operator(operator.ior, a, b)


rrule(dict.__or__, by_identity=True)(dict_or)


@rrule(vars(dict)["fromkeys"], by_identity=True)
def _(cls: type, keys: object, value: object = None):
    names, back = drain(keys)
    y = cls.fromkeys(names, value)

    def fromkeys_pullback(ȳ):
        bars = adjoint_of(y)
        total: Any = ZERO
        for key in y:
            total = accumulate(total, take(bars, key))
        return NoTangent(), back([ZERO] * len(names)), total

    return y, fromkeys_pullback


@rrule(primitives.own_keywords, by_identity=True)
def _(kwargs: dict):
    def own_keywords_pullback(ȳ):
        bars = adjoint_of(kwargs)
        return (Tangent[dict]({key: take(bars, key) for key in list(bars)}),)

    return kwargs, own_keywords_pullback


@projector.register(dict)
def _(x: dict) -> Any:
    items = dict(x)

    def absorb(x̄: Any) -> Any:
        """A cotangent that a rule returned by value goes to the adjoint of the dict."""
        if not isinstance(x̄, (dict, Tangent)):
            raise not_like(items, x̄)
        bars = adjoint_of(x)
        for key, c in x̄.items():
            if c is not None:
                give(bars, key, project_to(items[key])(c))
        return ZERO

    return absorb


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
def _(*items: object):
    y: set[Any] = set()
    back = fill(y, items)
    return y, lambda ȳ: tuple(back())


@rrule(set, by_identity=True)
def _(*items: object):
    values, back = drain(*items) if items else ([], None)
    y: set[Any] = set()
    filled = fill(y, values)
    return y, lambda ȳ: () if back is None else (back(filled()),)


@rrule(frozenset, by_identity=True)
def _(*items: object):
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
def _(s: set, item: object):
    back = fill(s, [item])
    return None, lambda ȳ: (NoTangent(), back()[0])


@rrule(primitives.set_update, by_identity=True)
@rrule(set.update, by_identity=True)
def _(s: set, *more: object):
    backs = []
    for xs in more:
        values, back = drain(xs)
        backs.append((fill(s, values), back))

    def update_pullback(ȳ):
        found = [back(filled()) for filled, back in reversed(backs)]
        return NoTangent(), *reversed(found)

    return None, update_pullback


def removal(method: Any) -> Any:
    """The rule of taking an element out of a set."""

    def rule(s: set, item: object):
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

    def rule(s: set | frozenset, *others: object):
        sources = [s, *[other if is_set(other) else frozenset(other) for other in others]]
        y = method(*sources)

        def combination_pullback(ȳ):
            bars = adjoint_of(y)
            for element in y:
                origin = next((source for source in sources if element in source), None)
                c = take(bars, element)
                if origin is not None:
                    give(adjoint_of(origin), element, c)
            return tuple([NoTangent()] * len(sources))

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

# -- text, ranges, slices: constants ---------------------------------------------------------------


@rrule(operator.getitem)
def _(xs: str | bytes | range, i: object):
    def getitem_pullback(ȳ):
        return NoTangent(), NoTangent()

    return xs[i], getitem_pullback


non_differentiable(
    slice,
    primitives.build_string,
    primitives.format_value,
    primitives.raise_exception,
    primitives.import_name,
    primitives.import_from,
    primitives.globals_of,
    collections._count_elements,  # type: ignore[attr-defined]
    *[
        getattr(cls, name)
        for cls in (list, tuple, dict, set, frozenset)
        for name in (
            "__len__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
            "__repr__", "index", "count", "isdisjoint", "issubset", "issuperset", "__hash__",
        )
        if callable(getattr(cls, name, None))
    ],
)  # fmt: skip
no_tangent(type(primitives.DONE))


@rrule(primitives.check_bound)
def _(value: object, name: str):
    def check_bound_pullback(ȳ):
        return ȳ, NoTangent()

    return primitives.check_bound(value, name), check_bound_pullback


# -- the structure of arguments, and what the user gets --------------------------------------------


class OnEntry:
    """A container, with the items that it had when the differentiated function was called."""

    __slots__ = ("items", "primal")

    def __init__(self, primal: Any, items: Any) -> None:
        self.primal = primal
        self.items = items


class ListOnEntry(OnEntry):
    """A list."""

    __slots__ = ()


class DictOnEntry(OnEntry):
    """A dict."""

    __slots__ = ()


class TupleOnEntry(OnEntry):
    """A tuple that holds something mutable."""

    __slots__ = ()


class SetOnEntry(OnEntry):
    """A set."""

    __slots__ = ()


@on_entry.register(list)
def _(x: list, known: dict[int, Any]) -> Any:
    found = known.get(id(x))
    if found is None:
        found = known[id(x)] = ListOnEntry(x, [])
        found.items += [on_entry(item, known) for item in x]
    return found


@on_entry.register(dict)
def _(x: dict, known: dict[int, Any]) -> Any:
    found = known.get(id(x))
    if found is None:
        found = known[id(x)] = DictOnEntry(x, {})
        found.items.update({key: on_entry(value, known) for key, value in x.items()})
    return found


@on_entry.register(set)
def _(x: set, known: dict[int, Any]) -> Any:
    return SetOnEntry(x, list(x))


@on_entry.register(tuple)
def _(x: tuple, known: dict[int, Any]) -> Any:
    items = [on_entry(item, known) for item in x]
    return x if all(map(operator.is_, items, x)) else TupleOnEntry(x, items)


def tuple_gradient(x: tuple, items: Any, x̄: Any, of: Any) -> Any:
    """The gradient of a tuple: of a named tuple, one of its kind."""
    parts = [gradient_for(item, entry(x̄, i), of) for i, item in enumerate(items)]
    return tuple.__new__(type(x) if hasattr(x, "_fields") else tuple, parts)


@materialise.register(tuple)
def _(x: tuple, x̄: Any, of: Callable[[Any], Any]) -> Any:
    return tuple_gradient(x, x, x̄, of)


@materialise.register(TupleOnEntry)
def _(x: TupleOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    return tuple_gradient(x.primal, x.items, x̄, of)


@materialise.register(ListOnEntry)
def _(x: ListOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    made = results_of(of)
    if id(x) not in made:
        made[id(x)] = result = []
        bars = of(x.primal) or []
        for i, item in enumerate(x.items):
            c = bars[i] if i < len(bars) else ZERO
            result.append(gradient_for(item, c, of))
    return made[id(x)]


@materialise.register(DictOnEntry)
def _(x: DictOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    made = results_of(of)
    if id(x) not in made:
        made[id(x)] = result = {}
        bars = of(x.primal) or {}
        for key, item in x.items.items():
            result[key] = gradient_for(item, bars.get(key, ZERO), of)
    return made[id(x)]


@materialise.register(SetOnEntry)
def _(x: SetOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    bars = of(x.primal) or {}
    return {item: gradient_for(item, bars.get(item, ZERO), of) for item in x.items}


def _of_mutable(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    return materialise(on_entry(x, {}), x̄, reaching(of))


for _cls in (list, dict, set):
    materialise.register(_cls, _of_mutable)


# -- the memory of arrays, which the caller of a pullback may have written to since ----------------


@remembered.register(np.ndarray)
def _(x: np.ndarray, known: dict[int, Any]) -> Any:
    if id(x) in known or not x.flags.writeable or x.dtype.hasobject:
        return []
    known[id(x)] = x
    before = x.copy()

    def as_it_was() -> Callable[[], None]:
        now = x.copy()
        x[...] = before

        def restore() -> None:
            x[...] = now

        return restore

    def if_changed() -> Callable[[], None]:
        return leave_it if x.tobytes() == before.tobytes() else as_it_was()

    return [if_changed]


def leave_it() -> None:
    """There is nothing to restore."""


def in_parts(items: Any, x: Any, known: dict[int, Any]) -> list[Any]:
    """What is remembered of the parts of a value."""
    if id(x) in known:
        return []
    known[id(x)] = x
    return [found for item in items for found in remembered(item, known)]


remembered.register(list, lambda x, known: in_parts(x, x, known))
remembered.register(tuple, lambda x, known: in_parts(x, x, known))
remembered.register(dict, lambda x, known: in_parts(list(x.values()), x, known))


@multiply.register
def _(x̄: list, factor: Any) -> Any:
    return [scale(c, factor) for c in x̄]


@multiply.register
def _(x̄: dict, factor: Any) -> Any:
    return {key: scale(c, factor) for key, c in x̄.items()}


del _cls, _name, _op
