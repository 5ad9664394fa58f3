"""What the class of a dict or a queue has a say in: copies, unions, sums, defaults.

Compiled code makes the result by calling the class, or puts the items in through its methods. So
each is written here as the Python code that it amounts to, which runs in its place.
Tests: tests/rules/test_class_copies.py
"""

from __future__ import annotations

import operator
from collections import OrderedDict, defaultdict, deque
from typing import Any

from morula.core.extend import call, non_differentiable
from morula.rules.calls import MISSING, own_method, runs_body, serves

# -- dicts -----------------------------------------------------------------------------------------


def copied_as_dict(d: Any) -> dict[Any, Any]:
    """`dict.copy(d)` where the class says how its items are iterated over."""
    new: dict[Any, Any] = {}
    new.update(d)
    return new


def ordered_copy(d: Any) -> Any:
    """`OrderedDict.copy(d)`."""
    if type(d) is OrderedDict:
        return OrderedDict(d)
    new = type(d)()
    for key in OrderedDict.keys(d):
        new[key] = d[key]
    return new


def default_copy(d: Any) -> Any:
    """`defaultdict.copy(d)`."""
    return type(d)(d.default_factory, d)


def ordered_union(a: Any, b: Any) -> Any:
    """`a | b`, one of which is an OrderedDict."""
    if not isinstance(a, dict) or not isinstance(b, dict):
        return NotImplemented
    maker: Any = a if isinstance(a, OrderedDict) else b
    new = type(maker)(a)
    OrderedDict.update(new, b)
    return new


def default_union(a: Any, b: Any) -> Any:
    """`a | b`, one of which is a defaultdict."""
    if not isinstance(a, dict) or not isinstance(b, dict):
        return NotImplemented
    maker: Any = a if isinstance(a, defaultdict) else b
    new = type(maker)(maker.default_factory, a)
    dict.update(new, b)
    return new


def plain_from_the_right(b: Any, a: Any) -> Any:
    """`dict.__ror__(b, a)`."""
    return dict.__or__(a, b)


def ordered_from_the_right(b: Any, a: Any) -> Any:
    """`OrderedDict.__ror__(b, a)`."""
    return ordered_union(a, b)


def default_from_the_right(b: Any, a: Any) -> Any:
    """`defaultdict.__ror__(b, a)`."""
    return default_union(a, b)


UNIONS: tuple[tuple[type, Any], ...] = ((OrderedDict, ordered_union), (defaultdict, default_union))


def union_of(a: Any, b: Any) -> Any:
    """What `a | b` runs, of two dicts whose classes leave it as it is; None if that is `dict`'s own."""
    first = b if issubclass(type(b), type(a)) else a
    for cls, union in UNIONS:
        if isinstance(first, cls):
            return union
    return None


def ordered_default(d: Any, key: Any, default: Any = None) -> Any:
    """`OrderedDict.setdefault` of a derived class."""
    if key in d:
        return d[key]
    d[key] = default
    return default


class _Noting(defaultdict[Any, Any]):
    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, True)


_noting = _Noting(bool)
_noting["a"]
ASKED_TO_STORE = dict.__getitem__(_noting, "a")  # CPython before 3.14


def stores_by_class(d: Any) -> bool:
    """Does a class of its own say how an item is put in that the factory of a defaultdict has made?"""
    return ASKED_TO_STORE and own_method(type(d), "__setitem__") is not MISSING


non_differentiable(stores_by_class)


def made_by_factory(d: Any, key: Any) -> Any:
    """`d[key]` of a defaultdict that has no such key, whose class says how items are put in."""
    d[key] = value = d.default_factory()
    return value


# -- queues ----------------------------------------------------------------------------------------


def queue_copy(q: Any) -> Any:
    """`deque.copy(q)`."""
    return type(q)(q) if q.maxlen is None else type(q)(q, q.maxlen)


def queue_sum(a: Any, b: Any) -> Any:
    """`deque.__add__(a, b)`."""
    if not isinstance(b, deque):
        raise TypeError(f'can only concatenate deque (not "{type(b).__name__}") to deque')
    new = deque.copy(a)
    deque.extend(new, b)
    return new


def queue_repeated(q: Any, n: Any) -> Any:
    """`deque.__mul__(q, n)`."""
    return deque.__imul__(deque.copy(q), n)


def repeated_in_place(q: Any, n: Any) -> Any:
    """`deque.__imul__(q, n)` where the class says how its items are iterated over."""
    items = [deque.__getitem__(q, 0)] if len(q) == 1 else list(q)
    if operator.index(n) <= 0:
        deque.clear(q)
    for _ in range(n - 1):
        deque.extend(q, items)
    return q


# -- they run in the place of what they stand for --------------------------------------------------


def _stands_for(body: Any, *methods: Any) -> None:
    @serves(*methods)
    def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return call(body, *args, **kwargs)

    runs_body(body, *methods)


_stands_for(ordered_copy, OrderedDict.copy)
_stands_for(default_copy, defaultdict.copy, vars(defaultdict)["__copy__"])
_stands_for(plain_from_the_right, dict.__ror__)
_stands_for(ordered_union, OrderedDict.__or__)
_stands_for(ordered_from_the_right, OrderedDict.__ror__)
_stands_for(default_union, defaultdict.__or__)
_stands_for(default_from_the_right, defaultdict.__ror__)
_stands_for(queue_copy, deque.copy, deque.__copy__)
_stands_for(queue_sum, deque.__add__)
_stands_for(queue_repeated, deque.__mul__, deque.__rmul__)
