"""Forward mode of displays, items, closure variables and global variables, lists and dicts.

An operation that moves values about does the same to their tangents: what is appended to a list is
appended to its tangents, what is read at a place has the tangent at that place. The tangents of a
list may be fewer than its items; what is not there is zero.
Tests: tests/mixed_mode/test_language.py
"""

import collections
import ctypes
import operator
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import CellType, FunctionType, MappingProxyType
from typing import Any

import numpy as np

from morula.core import primitives
from morula.core.cotangents import ZERO, Tangent, is_zero
from morula.core.generators import same_code
from morula.core.registry import find_rrule, non_differentiable
from morula.mixed_mode.forward import TWINS
from morula.mixed_mode.push import Both, follow_text, opaque, push, pushes, split_call
from morula.mixed_mode.tangents import (
    Pass,
    all_zero,
    box_of,
    is_stream,
    item_of,
    refreshed,
    set_all,
    set_box,
    set_item,
    set_value,
    tangents_if_any,
    tangents_of,
    together,
    value_of,
)
from morula.rules import boxes, containers, dicts, objects
from morula.rules.calls import MISSING, PARTS_OF_A_FUNCTION, entry, lookup, own_method
from morula.rules.class_copies import made_by_factory, ordered_default, stores_by_class
from morula.rules.containers import is_native, lengthen
from morula.rules.dicts import (
    Key,
    counted_one_by_one,
    counts_plainly,
    is_copied_plainly,
    is_stored_plainly,
    plain_keys,
    put_of,
)
from morula.rules.filling import (
    extend_list,
    extend_queue,
    extend_queue_left,
    put_by_keys,
    put_pairs,
    runs_code,
    update_difference,
    update_set,
)
from morula.rules.foreign import CData, address_of
from morula.rules.objects import behind, own_class_getitem
from morula.rules.questions import is_greater, is_less

Args = tuple[Any, ...]
Names = tuple[str, ...]


def by_class(run: Pass, method: str, args: Args, tangents: Args) -> Both:
    """The method that a class defines in Python."""
    return push(run, own_method(type(args[0]), method), ZERO, args, tangents)


# -- primitives whose tangents programs ask for by themselves ----------------------------------------


def twin(primitive: Any) -> Any:
    """Declare what gives the tangent of the value of a primitive, as programs ask for it."""

    def register(tangent: Any) -> Any:
        TWINS[primitive] = tangent
        return tangent

    return register


@twin(primitives.build_tuple)
def _(run: Pass, y: Any, dots: Any) -> Any:
    return together(refreshed(run, y, dots) if run.written else dots)


@twin(operator.getitem)
def _(run: Pass, y: Any, xs: Any, i: Any, ẋs: Any) -> Any:
    """Of a tuple."""
    args = xs, i
    if run.encodings:
        follow_text(run, operator.getitem, args, (ẋs, ZERO), y)
    if run.written:
        ẋs, _ = refreshed(run, args, (ẋs, ZERO))
    return ZERO if ẋs is ZERO else entry(ẋs, i if i >= 0 else len(xs) + i)


@twin(primitives.get_cell)
def _(run: Pass, y: Any, cell: Any, *names: Any) -> Any:
    if run.encodings:
        follow_text(run, primitives.get_cell, (cell, *names), (ZERO, *[ZERO for _ in names]), y)
    return box_of(run, cell)


@twin(primitives.load_global)
def _(run: Pass, y: Any, namespace: Any, name: str) -> Any:
    if run.encodings:
        follow_text(run, primitives.load_global, (namespace, name), (ZERO, ZERO), y)
    return value_of(run, namespace, name) if run.table else ZERO


# -- all items of an iterable ----------------------------------------------------------------------


def drain(run: Pass, xs: Any, ẋs: Any) -> tuple[list[Any], list[Any]]:
    """The lists of all items of an iterable, and of their tangents."""
    if type(xs) is tuple:
        return list(xs), [entry(ẋs, i) for i in range(len(xs))]
    if type(xs) is list:
        tangents = tangents_if_any(run, xs)
        return xs[:], [item_of(tangents, i) for i in range(len(xs))]
    if type(xs) is np.flatiter and xs.index == 0 and not isinstance(xs.base, np.matrix):
        ẋs = push(run, operator.getitem, ZERO, (xs, slice(None)), (ẋs, ZERO))[1]
        return list(xs), [entry(ẋs, i) for i in range(len(xs))]
    items: list[Any] = []
    dots: list[Any] = []

    def each(item: Any, dot: Any) -> None:
        items.append(item)
        dots.append(dot)

    visit(run, xs, ẋs, each)
    return items, dots


def visit(run: Pass, xs: Any, ẋs: Any, each: Callable[[Any, Any], None]) -> None:
    """Call `each` for an item of an iterable and its tangent, before the next is fetched."""
    iterator, ȯf = push(run, iter, ZERO, (xs,), (ẋs,))
    item, dot = push(run, primitives.advance, ZERO, (iterator,), (ȯf,))
    while item is not primitives.DONE:
        each(item, dot)
        item, dot = push(run, primitives.advance, ZERO, (iterator,), (ȯf,))


def reads_whole(fn: Any) -> None:
    """Declare a callable that goes through the iterators that it is given at once."""

    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        """Its rule is transposed, which finds tangents in lists."""
        hands_out = [is_stream(x) or isinstance(x, dict) for x in args]
        if not any(hands_out):
            return NotImplemented
        pairs = [
            push(run, list, ZERO, (x,), (ẋ,)) if listed else (x, ẋ)
            for x, ẋ, listed in zip(args, tangents, hands_out, strict=True)
        ]
        items, dots = zip(*pairs, strict=True)
        return push(run, fn, ZERO, items, dots, keywords)


for _fn in (
    list.__init__, deque.__init__, set.__init__, frozenset.__new__,
    set, frozenset, set.update, primitives.set_update, set.union, set.intersection, set.difference,
    set.intersection_update, set.difference_update, set.symmetric_difference,
    set.symmetric_difference_update, frozenset.union, frozenset.intersection, frozenset.difference,
    frozenset.symmetric_difference,
):  # fmt: skip
    reads_whole(_fn)


# -- tuples ----------------------------------------------------------------------------------------


@pushes(primitives.build_tuple, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    return args, together(tangents)


@pushes(primitives.build_named)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    return primitives.build_named(*args), together(tangents[1:])


@pushes(tuple)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if len(args) != 1 or keywords or type(args[0]) is tuple:
        return args[0] if args else (), tangents[0] if args else ZERO
    items, dots = drain(run, args[0], tangents[0])
    return tuple(items), together(dots)


@pushes(tuple.__new__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if len(args) != 2 or keywords:
        return tuple.__new__(*args), ZERO
    items, dots = drain(run, args[1], tangents[1])
    return tuple.__new__(args[0], items), together(dots)


@pushes(primitives.as_tuple)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    if len(args) == 2 and args[1] is not primitives.NULL:
        primitives.check_iterable(*args)
    return push(run, tuple, ZERO, args[:1], tangents[:1])


@pushes(primitives.unpack, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    xs, n = args
    if type(xs) in (tuple, list) or (type(xs) is np.flatiter and len(xs) == n):
        if len(xs) != n:
            primitives.unpack(xs, n)  # raises
        items, dots = drain(run, xs, tangents[0])
        return tuple(items), together(dots)
    iterator, ȯf = push(run, iter, ZERO, (xs,), tangents[:1])
    items, dots = [], []
    for i in range(n + 1):
        item, dot = push(run, primitives.advance, ZERO, (iterator,), (ȯf,))
        if item is primitives.DONE:
            break
        if i == n:
            raise ValueError(f"too many values to unpack (expected {n})")
        items.append(item)
        dots.append(dot)
    if len(items) < n:
        raise ValueError(f"not enough values to unpack (expected {n}, got {len(items)})")
    return tuple(items), together(dots)


@pushes(primitives.unpack_rest, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    xs, before, after = args
    if not hasattr(type(xs), "__iter__") and not hasattr(type(xs), "__getitem__"):
        primitives.unpack_rest(xs, before, after)  # raises
    items, dots = drain(run, xs, tangents[0])
    if len(items) < before + after:
        primitives.unpack_rest(items, before, after)  # raises
    end = len(items) - after
    rest = items[before:end]
    set_all(run, rest, dots[before:end])
    return (*items[:before], rest, *items[end:]), together([*dots[:before], ZERO, *dots[end:]])


def of_tuple(xs: Any, ẋs: Any, i: Any) -> Both:
    """`xs[i]` of a tuple."""
    y = tuple.__getitem__(xs, i)
    places: Any = range(len(xs))[i]
    if isinstance(places, int):
        return y, entry(ẋs, places)
    return y, together([entry(ẋs, k) for k in places])


@pushes(slice)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    y = slice(*args)
    names = ("stop",) if len(args) == 1 else ("start", "stop", "step")
    parts = {k: ẋ for k, ẋ in zip(names, tangents, strict=False) if not is_zero(ẋ)}
    return y, Tangent[slice](parts) if parts else ZERO


# -- items of lists and dicts ----------------------------------------------------------------------


def goes_by_value(args: Args) -> bool:
    """Does a rule that needs no identities serve `xs[i]`?"""
    rule = find_rrule(operator.getitem, args)
    return rule is not None and not rule.by_identity


non_differentiable(goes_by_value)


@pushes(operator.getitem, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    xs, i = args
    kind = type(xs)
    if kind is list:
        return of_list(run, xs, i)
    if kind is tuple:
        return of_tuple(xs, tangents[0], i)
    if kind is dict:
        return xs[i], value_of(run, xs, i)
    if kind is deque:
        return of_deque(run, xs, i)
    if goes_by_value(args):
        return NotImplemented
    if isinstance(xs, (list, tuple, dict)):
        if not is_native(xs, "__getitem__"):
            return by_class(run, "__getitem__", args, tangents)
        if isinstance(xs, dict):
            return of_dict(run, xs, i, tangents[1])
        return of_list(run, xs, i) if isinstance(xs, list) else of_tuple(xs, tangents[0], i)
    own = own_class_getitem(xs) if isinstance(xs, type) else None
    if own is not None:
        return push(run, own, ZERO, args, tangents)
    if isinstance(xs, type) and type(lookup(kind, "__getitem__")) is not FunctionType:  # list[int]
        return operator.getitem(xs, i), ZERO
    method = own_method(kind, "__getitem__")
    if method is not MISSING:
        return push(run, method, ZERO, args, tangents)
    if isinstance(xs, MappingProxyType):
        return push(run, operator.getitem, ZERO, (behind(xs), i), (ZERO, tangents[1]))
    if isinstance(xs, CData):  # which may show the memory of an array
        return opaque(run, operator.getitem, ZERO, args, tangents, keywords)
    return NotImplemented


@pushes(ctypes.addressof)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return address_of(args[0]), ZERO


def of_list(run: Pass, xs: Any, i: Any) -> Both:
    """`xs[i]` of a list."""
    y = list.__getitem__(xs, i)
    tangents = tangents_if_any(run, xs)
    if not tangents:
        return y, ZERO
    places: Any = range(len(xs))[i]
    if isinstance(places, int):
        return y, item_of(tangents, places)
    set_all(run, y, [item_of(tangents, k) for k in places])
    return y, ZERO


def of_deque(run: Pass, q: Any, i: Any) -> Both:
    """`q[i]` of a deque."""
    return deque.__getitem__(q, i), item_of(tangents_if_any(run, q), range(len(q))[i])


def of_dict(run: Pass, d: Any, key: Any, of_key: Any = ZERO) -> Both:
    """`d[key]` of a dict of any kind."""
    if key in d:
        return dict.__getitem__(d, key), value_of(run, d, key)
    if own_method(type(d), "__missing__") is not MISSING:
        return by_class(run, "__missing__", (d, key), (ZERO, ZERO))
    factory = getattr(d, "default_factory", None)
    if factory is None:
        return operator.getitem(d, key), ZERO
    if stores_by_class(d):
        return push(run, made_by_factory, ZERO, (d, key), (ZERO, of_key))
    y, ẏ = push(run, factory, ZERO, (), ())
    dict.__setitem__(d, key, y)
    set_value(run, d, Key(key), of_key)
    set_value(run, d, key, ẏ)
    return y, ẏ


@pushes(list.__getitem__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return of_list(run, *args)


@pushes(deque.__getitem__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return of_deque(run, *args)


@pushes(dict.__getitem__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return of_dict(run, args[0], args[1], tangents[1])


@pushes(tuple.__getitem__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return of_tuple(args[0], tangents[0], args[1])


@pushes(operator.setitem)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    xs = args[0]
    if isinstance(xs, (list, dict)):
        if not is_native(xs, "__setitem__"):
            return by_class(run, "__setitem__", args, tangents)
        if isinstance(xs, dict):
            return put_in_dict(run, args, tangents, ())
        return put_in_list(run, args, tangents, ())
    method = own_method(type(xs), "__setitem__")
    if method is not MISSING:
        return push(run, method, ZERO, args, tangents)
    if isinstance(xs, CData):  # which writes to an array that it may show
        return opaque(run, operator.setitem, ZERO, args, tangents, keywords)
    return NotImplemented


@pushes(list.__setitem__)
def put_in_list(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """`xs[i] = value`."""
    xs, i, value = args
    if not isinstance(i, slice):
        list.__setitem__(xs, i, value)
        set_item(run, xs, range(len(xs))[i], tangents[2])
        return None, ZERO
    items, dots = drain(run, value, tangents[2])
    n = len(xs)
    list.__setitem__(xs, i, items)
    if tangents_if_any(run, xs) is not None or not all_zero(dots):
        held = tangents_of(run, xs)
        lengthen(held, n)
        held[i] = dots
    return None, ZERO


@pushes(dict.__setitem__, OrderedDict.__setitem__, primitives.map_add)
def put_in_dict(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """`d[key] = value`."""
    d, key, value = args
    if key not in d and not is_zero(tangents[1]):  # in a table `Key(key)` may be there itself
        set_value(run, d, Key(key), tangents[1])
    dicts.store_of(d)(d, key, value)
    set_value(run, d, key, tangents[2])
    return None, ZERO


@pushes(dict.__delitem__, OrderedDict.__delitem__)
def take_from_dict(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """`del d[key]`."""
    d, key = args
    dicts.delete_of(d)(d, key)
    forget(run, d, key)
    return None, ZERO


def forget(run: Pass, d: Any, key: Any) -> None:
    """The tangents of a key and its value, which were taken from a dict."""
    set_value(run, d, key, ZERO)
    if Key(key) not in d:  # a table may have it beside the key
        set_value(run, d, Key(key), ZERO)


def _names_only(fn: Any) -> None:
    """Keys of tables only name what they stand for: they have no tangents, as keys of dicts have."""
    by_code = same_code(fn)

    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return push(run, by_code, ZERO, args, (tangents[0], ZERO, tangents[2]))


_names_only(objects.give)
_names_only(objects.put)


# -- lists -----------------------------------------------------------------------------------------


@pushes(primitives.build_list, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    y = [*args]
    set_all(run, y, tangents)
    return y, ZERO


@pushes(list)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if len(args) != 1 or keywords:
        return split_call(list, args, keywords), ZERO
    y, dots = drain(run, args[0], tangents[0])
    set_all(run, y, dots)
    return y, ZERO


@pushes(primitives.list_append, list.append, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    xs, value = args
    list.append(xs, value)
    set_item(run, xs, len(xs) - 1, tangents[1])
    return None, ZERO


@pushes(list.extend)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if runs_code(args[1]):
        return push(run, extend_list, ZERO, args, tangents)
    return extend_at_once(run, args, tangents, keywords)


@pushes(primitives.list_extend)
def extend_at_once(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """Put all items in when all are there, for nobody sees the list before."""
    xs, more = args
    items, dots = drain(run, more, tangents[1])
    n = len(xs)
    list.extend(xs, items)
    for i, ẋ in enumerate(dots, n):
        set_item(run, xs, i, ẋ)
    return None, ZERO


@pushes(list.insert)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    xs, i, value = args
    k = slice(i, None).indices(len(xs))[0]
    held = tangents_if_any(run, xs)
    list.insert(xs, i, value)
    if held is not None and k < len(held):
        held.insert(k, tangents[2])
    else:
        set_item(run, xs, k, tangents[2])
    return None, ZERO


@pushes(list.pop)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    xs, *place = args
    k = range(len(xs))[place[0] if place else -1] if xs else 0
    y = list.pop(*args)
    held = tangents_if_any(run, xs)
    if held is None or k >= len(held):
        return y, ZERO
    return y, held.pop(k)


@pushes(deque)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if len(args) == len(keywords):
        return NotImplemented  # the items are given by name, or there are none
    items, dots = drain(run, args[0], tangents[0])
    y = split_call(deque, (items, *args[1:]), keywords)
    set_all(run, y, dots[len(dots) - len(y) :])
    return y, ZERO


def _one_by_one(many: Any, one: Any, in_turn: Any) -> None:
    @pushes(many)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        q, more = args
        if runs_code(more):
            return push(run, in_turn, ZERO, args, tangents)
        for pair in zip(*drain(run, more, tangents[1]), strict=True):
            push(run, one, ZERO, (q, pair[0]), (ZERO, pair[1]))
        return None, ZERO


_one_by_one(deque.extend, deque.append, extend_queue)
_one_by_one(deque.extendleft, deque.appendleft, extend_queue_left)


@pushes(deque.append)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    q, value = args
    held = tangents_if_any(run, q)
    if held and len(q) == q.maxlen:
        held.pop(0)
    deque.append(q, value)
    if q:
        set_item(run, q, len(q) - 1, tangents[1])
    return None, ZERO


@pushes(deque.appendleft)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    q, value = args
    deque.appendleft(q, value)
    if not is_zero(tangents[1]) or tangents_if_any(run, q) is not None:
        held = tangents_of(run, q)
        held.insert(0, tangents[1])
        del held[len(q) :]
    return None, ZERO


@pushes(deque.pop)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    (q,) = args
    y = deque.pop(q)
    held = tangents_if_any(run, q)
    return y, held.pop() if held is not None and len(held) > len(q) else ZERO


@pushes(deque.popleft)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    (q,) = args
    y = deque.popleft(q)
    held = tangents_if_any(run, q)
    return y, held.pop(0) if held else ZERO


@pushes(dict.pop, OrderedDict.pop)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if keywords:
        return NotImplemented
    d, key, *default = args
    if key not in d:
        return dict.pop(d, key, *default), tangents[2] if default else ZERO
    y, ẏ = dict.__getitem__(d, key), value_of(run, d, key)
    take_from_dict(run, (d, key), (), ())
    return y, ẏ


@pushes(dict.popitem, OrderedDict.popitem)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    d, *last = args
    ordered = isinstance(d, OrderedDict)
    key, value = OrderedDict.popitem(d, *last) if ordered else dict.popitem(d)
    dots = [value_of(run, d, Key(key)), value_of(run, d, key)]
    forget(run, d, key)
    return (key, value), together(dots)


def _copies(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        (d,) = args
        return joined(run, fn(d), d, {}) if type(d) in PLAIN_DICTS else NotImplemented


for _fn in (dict.copy, OrderedDict.copy, defaultdict.copy):
    _copies(_fn)


@pushes(dict.clear)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    dict.clear(*args)
    if tangents_if_any(run, args[0]) is not None:
        tangents_of(run, args[0]).clear()
    return None, ZERO


@pushes(dict.get)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    d, key, *default = args
    if key in d:
        return dict.__getitem__(d, key), value_of(run, d, key)
    return dict.get(*args), tangents[2] if default else ZERO


@pushes(dict.setdefault, OrderedDict.setdefault)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    d, key, *default = args
    if isinstance(d, OrderedDict) and not is_stored_plainly(d):
        return push(run, ordered_default, ZERO, args, tangents, keywords)
    if key in d:
        return of_dict(run, d, key)
    y, ẏ = (default[0], tangents[2]) if default else (None, ZERO)
    put_in_dict(run, (d, key, y), (ZERO, tangents[1], ẏ), ())
    return y, ẏ


@pushes(primitives.build_map, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    y: dict[Any, Any] = {}
    for i in range(0, len(args), 2):
        put_in_dict(run, (y, args[i], args[i + 1]), (ZERO, tangents[i], tangents[i + 1]), ())
    return y, ZERO


def update(run: Pass, d: Any, args: Args, tangents: Args, keywords: Names) -> None:
    """`d.update(*args, **kwargs)`, item by item."""
    n = len(args) - len(keywords)
    for source, ẋ in zip(args[:n], tangents[:n], strict=True):
        fill_from(run, d, source, ẋ)
    for name, value, ẋ in zip(keywords, args[n:], tangents[n:], strict=True):
        push(run, put_of(d), ZERO, (d, name, value), (ZERO, ZERO, ẋ))


def fill_from(run: Pass, d: Any, source: Any, ẋ: Any) -> None:
    """Put the items of a mapping, or pairs, into a dict."""
    if isinstance(source, MappingProxyType):
        source, ẋ = behind(source), ZERO
    if not is_copied_plainly(source, d) or put_of(d) is operator.setitem:
        put_all = put_by_keys if hasattr(source, "keys") else put_pairs
        push(run, put_all, ZERO, (put_of(d), d, source), (ZERO, ZERO, ẋ))
        return
    for k in plain_keys(source):
        v = dict.__getitem__(source, k)
        dots = value_of(run, source, Key(k)), value_of(run, source, k)
        put_in_dict(run, (d, k, v), (ZERO, *dots), ())


def _updates(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        d, *rest = args
        if len(rest) - len(keywords) > (2 if fn is defaultdict.__init__ else 1):
            split_call(fn, args, keywords)  # raises
        skip = 0
        if fn is defaultdict.__init__:
            skip = len(rest) - len(keywords) and 1
            defaultdict.__init__(d, *rest[:skip])
        update(run, d, tuple(rest[skip:]), tangents[1 + skip :], keywords)
        return (d if fn is dict.__ior__ else None), ZERO


for _fn in (
    dict.update, OrderedDict.update, dict.__init__, OrderedDict.__init__, dict.__ior__,
    defaultdict.__init__,
):  # fmt: skip
    _updates(_fn)


def _makes(cls: Any) -> None:
    @pushes(cls)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        skip = 1 if cls is defaultdict and len(args) > len(keywords) else 0
        if len(args) - len(keywords) > skip + 1:
            split_call(cls, args, keywords)  # raises
        if not all_zero(tangents[:skip]):
            raise dicts.factory_by_value(args[0])
        d = cls(*args[:skip])
        update(run, d, args[skip:], tangents[skip:], keywords)
        return d, ZERO


for _cls in (dict, OrderedDict, defaultdict):
    _makes(_cls)


@pushes(operator.ior)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    d = args[0]
    if not isinstance(d, dict) or not is_native(d, "__ior__"):
        return NotImplemented
    update(run, d, args[1:], tangents[1:], ())
    return d, ZERO


@pushes(collections._count_elements)  # type: ignore[attr-defined]
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """What `Counter` counts with."""
    if counts_plainly(args[0]) and not runs_code(args[1]):
        return NotImplemented
    return push(run, counted_one_by_one, ZERO, args, tangents)


@pushes(primitives.dict_update)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    if not hasattr(args[1], "keys"):
        raise TypeError(f"'{type(args[1]).__name__}' object is not a mapping")
    update(run, args[0], args[1:], tangents[1:], ())
    return None, ZERO


@pushes(primitives.dict_merge)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    d, more, fn = args
    if not hasattr(more, "keys") or any([key in d for key in more]):
        primitives.dict_merge(d, more, fn)  # raises
    update(run, d, (more,), tangents[1:2], ())
    return None, ZERO


# -- sets ------------------------------------------------------------------------------------------


def _others_in_turn(method: Any, in_turn: Any) -> None:
    @pushes(method)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if len(args) == 2 and not runs_code(args[1]):
            return NotImplemented
        return push(run, in_turn, ZERO, args, tangents)


_others_in_turn(set.update, update_set)
_others_in_turn(set.difference_update, update_difference)


def combination(fn: Any) -> Any:
    """What gives a new set of the elements of others: each has the tangent of the first that has it."""

    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if any(isinstance(x, type) for x in args):  # a union of types
            return fn(*args), ZERO
        if fn is operator.or_ and all(type(x) in PLAIN_DICTS for x in args):
            return joined(run, fn(*args), *args)
        if not all(isinstance(x, (set, frozenset)) and type(x) in (set, frozenset) for x in args):
            return NotImplemented
        y = fn(*args)
        held = {id(x): tangents_if_any(run, s) or {} for s in args for x in s}
        for x in y:
            set_value(run, y, x, held[id(x)].get(x, ZERO))
        return y, ZERO

    return meaning


PLAIN_DICTS = (dict, OrderedDict, defaultdict)


def joined(run: Pass, y: Any, a: Any, b: Any) -> Both:
    """`y = a | b` of dicts: the values are those of b, where it has them, and the keys those of a."""
    for key in y:
        set_value(run, y, key, value_of(run, b if key in b else a, key))
        if Key(key) not in y:
            set_value(run, y, Key(key), value_of(run, a if key in a else b, Key(key)))
    return y, ZERO


@pushes(dict.__or__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if not all(isinstance(x, dict) for x in args):
        return dict.__or__(*args), ZERO
    if not all(type(x) in PLAIN_DICTS for x in args):
        return NotImplemented
    return joined(run, dict.__or__(*args), *args)


for _fn in (operator.or_, operator.and_, operator.sub, operator.xor):
    pushes(_fn)(combination(_fn))
    for _cls in (set, frozenset):
        _name = f"__{_fn.__name__.rstrip('_')}__"
        pushes(_cls.__dict__[_name])(combination(_fn))


# -- calls with * and ** ---------------------------------------------------------------------------


@pushes(primitives.apply)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    fn, given, named = args
    dots = [entry(tangents[1], i) for i in range(len(given))]
    dots += [value_of(run, named, k) for k in named]
    return push(run, fn, tangents[0], (*given, *named.values()), tuple(dots), tuple(named))


@pushes(primitives.own_keywords, primitives.check_bound, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    if len(args) > 1:
        primitives.check_bound(*args)
    return args[0], tangents[0]


# -- cells, functions, global variables ------------------------------------------------------------


@pushes(primitives.make_cell, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    cell = primitives.make_cell(*args)
    set_box(run, cell, tangents[0])
    return cell, ZERO


@pushes(CellType, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    cell = CellType(*args)
    for ẋ in tangents:  # one, or none: an empty cell
        set_box(run, cell, ẋ)
    return cell, ZERO


@pushes(primitives.get_cell, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    return primitives.get_cell(*args), box_of(run, args[0])


@pushes(primitives.set_cell, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    primitives.set_cell(*args)
    set_box(run, args[0], tangents[1])
    return None, ZERO


@pushes(primitives.delete_cell)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    primitives.delete_cell(*args)
    set_box(run, args[0], ZERO)
    return None, ZERO


@pushes(primitives.make_function)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    fn = primitives.make_function(*args)
    put_defaults(run, fn, tangents[2])
    return fn, ZERO


@pushes(FunctionType)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    fn = split_call(FunctionType, args, keywords)
    n = len(args) - len(keywords)
    names = (*PARTS_OF_A_FUNCTION[:n], *keywords)
    put_defaults(run, fn, dict(zip(names, tangents, strict=True)).get("argdefs", ZERO))
    return fn, ZERO


def put_defaults(run: Pass, fn: FunctionType, ḋ: Any) -> None:
    """The tangents of the default values of a function that was just made."""
    boxes.remember(fn)
    for i in range(len(fn.__defaults__ or ())):
        set_value(run, fn, ("default", i), entry(ḋ, i))


@pushes(primitives.load_global, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    namespace, name = args
    y = primitives.load_global(namespace, name)
    return y, value_of(run, namespace, name) if run.table else ZERO


@pushes(primitives.store_global)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    namespace, name, value = args
    primitives.store_global(namespace, name, value)
    boxes.assign_global(namespace, name)
    set_value(run, namespace, name, tangents[2])
    return None, ZERO


@pushes(list.sort)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    (xs, *values), dots = args, tangents
    named = dict(zip(keywords, values, strict=True))
    items, held = list.copy(xs), [*(tangents_if_any(run, xs) or ())]
    held += [ZERO] * (len(items) - len(held))
    order = order_of(run, items, held, named, dict(zip(keywords, dots[1:], strict=True)))
    list.__setitem__(xs, slice(None), [items[i] for i in order])
    if tangents_if_any(run, xs) is not None:
        tangents_of(run, xs)[:] = [held[i] for i in order]
    return None, ZERO


def order_of(
    run: Pass, items: list[Any], dots: list[Any], named: dict[str, Any], named_dots: dict[str, Any]
) -> list[int]:
    """The places of the items in their order, by `key` and `reverse`."""
    key = named.get("key")
    keys = items
    if key is not None:
        ḟ = named_dots["key"]
        pairs = [push(run, key, ḟ, (x,), (ẋ,)) for x, ẋ in zip(items, dots, strict=True)]
        keys, dots = [k for k, _ in pairs], [k̇ for _, k̇ in pairs]
    if containers.answers(keys):
        compared = [Compared(run, x, ẋ) for x, ẋ in zip(keys, dots, strict=True)]
        return sorted(
            range(len(keys)), key=compared.__getitem__, reverse=named.get("reverse", False)
        )
    return containers.stable_order(keys, named.get("reverse", False))


class Compared:
    """An object that says by code of its own which of two comes first, with its tangent."""

    __slots__ = ("run", "x", "ẋ")

    def __init__(self, run: Pass, x: Any, ẋ: Any) -> None:
        self.run = run
        self.x = x
        self.ẋ = ẋ

    def __lt__(self, other: Any) -> bool:
        return push(self.run, is_less, ZERO, (self.x, other.x), (self.ẋ, other.ẋ))[0]

    def __gt__(self, other: Any) -> bool:
        return push(self.run, is_greater, ZERO, (self.x, other.x), (self.ẋ, other.ẋ))[0]


@pushes(operator.concat)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    return push(run, operator.add, ZERO, args, tangents)


@pushes(operator.iconcat)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    return push(run, operator.iadd, ZERO, args, tangents)


@pushes(operator.add)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    a, b = args
    if type(a) is tuple and type(b) is tuple:
        return a + b, together([*drain(run, a, tangents[0])[1], *drain(run, b, tangents[1])[1]])
    if type(a) is list and type(b) is list:
        y = a + b
        set_all(run, y, [*drain(run, a, ZERO)[1], *drain(run, b, ZERO)[1]])
        return y, ZERO
    return NotImplemented


def _extends(fn: Any, extend: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        push(run, extend, ZERO, args, tangents)
        return args[0], ZERO


_extends(list.__iadd__, list.extend)
_extends(deque.__iadd__, deque.extend)


@pushes(operator.iadd)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    a, b = args
    if type(a) is list and lookup(type(b), "__radd__") is MISSING:
        return push(run, list.__iadd__, ZERO, args, tangents)
    if isinstance(a, deque) and is_native(a, "__iadd__"):
        return push(run, deque.__iadd__, ZERO, args, tangents)
    if type(a) is tuple and type(b) is tuple:
        return push(run, operator.add, ZERO, args, tangents)
    return NotImplemented


INTEGERS = (int, np.integer)


@pushes(operator.mul)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if isinstance(args[0], INTEGERS):
        args, tangents = args[::-1], tangents[::-1]
    xs, n = args
    if type(xs) not in (tuple, list) or not isinstance(n, INTEGERS):
        return NotImplemented
    dots = drain(run, xs, tangents[0])[1] * n
    y = xs * n
    if type(xs) is tuple:
        return y, together(dots)
    set_all(run, y, dots)
    return y, ZERO


@pushes(operator.imul)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    xs, n = args
    if type(xs) is not list or not isinstance(n, INTEGERS):
        return (
            push(run, operator.mul, ZERO, args, tangents) if type(xs) is tuple else NotImplemented
        )
    dots = drain(run, xs, ZERO)[1] * n
    xs *= n
    if tangents_if_any(run, xs) is not None or not all_zero(dots):
        tangents_of(run, xs)[:] = dots
    return xs, ZERO


del _cls, _fn, _name
