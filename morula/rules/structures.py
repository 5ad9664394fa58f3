"""What the core has to be told about containers: their shape on entry, gradients, memory.

A container is shown to the user as it was when the differentiated function was called, with the
cotangents of its items, a container that is reached twice as one. What a rule makes and returns
has the cotangents of its items by value.
Tests: tests/rules/test_containers.py
"""

import operator
from collections import deque
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    accumulate,
    add,
    adjoint_if_any,
    collector,
    gradient_for,
    is_zero,
    materialise,
    memory,
    multiply,
    new_containers,
    on_entry,
    reaching,
    remembered,
    results_of,
    scale,
)
from morula.rules.arrays.construction import entries
from morula.rules.calls import entry
from morula.rules.containers import drop_from
from morula.rules.objects import take

# -- what a rule gets that returns a container: the cotangents of its items, by value --------------


new_containers(
    entries, np.ndarray.tolist, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit,
    np.atleast_1d, np.atleast_2d, np.atleast_3d, np.meshgrid,
)  # fmt: skip


@collector.register(tuple)
def _(y: tuple, part: Any) -> Any:
    parts = [part(item) for item in y]
    if not any(parts):
        return None
    return lambda: tuple([ZERO if part is None else part() for part in parts])


@collector.register(list)
@collector.register(deque)
def _(y: Any, part: Any) -> Any:
    n, inside = len(y), collector(tuple(y), part)

    def collect() -> Any:
        adjoint = adjoint_if_any(y)
        bars = [ZERO] * n if adjoint is None else drop_from(adjoint, 0, n)
        if inside is not None:
            bars = [accumulate(a, b) for a, b in zip(bars, inside(), strict=True)]
        return ZERO if all(map(is_zero, bars)) else bars

    return collect


@collector.register(dict)
def _(y: dict, part: Any) -> Any:
    parts = {key: part(item) for key, item in y.items()}

    def collect() -> Any:
        bars = adjoint_if_any(y) or {}
        found = {}
        for key, part in parts.items():
            c = take(bars, key)
            found[key] = c if part is None else accumulate(c, part())
        return ZERO if all(map(is_zero, found.values())) else found

    return collect


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


class QueueOnEntry(ListOnEntry):
    """A double-ended queue."""

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


UNCHANGED = frozenset((float, int, str, np.ndarray))  # are what they were, in every container


def item_on_entry(item: Any, known: dict[int, Any]) -> Any:
    """`on_entry` of an item, without a look-up for what most items are."""
    return item if type(item) in UNCHANGED else on_entry(item, known)


def item_gradient(x: Any, x̄: Any, of: Any) -> Any:
    """`gradient_for`, without a look-up for numbers and arrays whose cotangents are like them."""
    kind = type(x̄)
    if kind is float is type(x):
        return x̄
    if kind is np.ndarray is type(x) and not memory.in_memory():
        dtype = x̄.dtype
        if x.dtype is dtype and dtype.kind in "fc" and x.shape == x̄.shape:
            return x̄.copy("K")
    return gradient_for(x, x̄, of)


@on_entry.register(list)
def _(x: list, known: dict[int, Any]) -> Any:
    found = known.get(id(x))
    if found is None:
        found = known[id(x)] = ListOnEntry(x, [])
        found.items += [item_on_entry(item, known) for item in x]
    return found


@on_entry.register(deque)
def _(x: deque, known: dict[int, Any]) -> Any:
    found = known.get(id(x))
    if found is None:
        found = known[id(x)] = QueueOnEntry(x, [])
        found.items += [item_on_entry(item, known) for item in x]
    return found


@on_entry.register(dict)
def _(x: dict, known: dict[int, Any]) -> Any:
    found = known.get(id(x))
    if found is None:
        found = known[id(x)] = DictOnEntry(x, {})
        found.items.update({key: item_on_entry(value, known) for key, value in x.items()})
    return found


@on_entry.register(set)
def _(x: set, known: dict[int, Any]) -> Any:
    return SetOnEntry(x, list(x))


@on_entry.register(tuple)
def _(x: tuple, known: dict[int, Any]) -> Any:
    items = [item_on_entry(item, known) for item in x]
    return x if all(map(operator.is_, items, x)) else TupleOnEntry(x, items)


def tuple_gradient(x: tuple, items: Any, x̄: Any, of: Any) -> Any:
    """The gradient of a tuple: of a named tuple, one of its kind."""
    parts = [item_gradient(item, entry(x̄, i), of) for i, item in enumerate(items)]
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
        result: Any = deque() if type(x) is QueueOnEntry else []
        made[id(x)] = result
        bars = of(x.primal) or []
        for i, item in enumerate(x.items):
            c = bars[i] if i < len(bars) else ZERO
            result.append(item_gradient(item, c, of))
    return made[id(x)]


@materialise.register(DictOnEntry)
def _(x: DictOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    made = results_of(of)
    if id(x) not in made:
        made[id(x)] = result = {}
        bars = of(x.primal) or {}
        for key, item in x.items.items():
            result[key] = item_gradient(item, bars.get(key, ZERO), of)
    return made[id(x)]


@materialise.register(SetOnEntry)
def _(x: SetOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    bars = of(x.primal) or {}
    return {item: gradient_for(item, bars.get(item, ZERO), of) for item in x.items}


def _of_mutable(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    return materialise(on_entry(x, {}), x̄, reaching(of))


for _cls in (list, dict, set, deque):
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
remembered.register(deque, lambda x, known: in_parts(x, x, known))
remembered.register(tuple, lambda x, known: in_parts(x, x, known))
remembered.register(dict, lambda x, known: in_parts(list(x.values()), x, known))


@add.register
def _(a: list, b: Any) -> Any:
    return [accumulate(x, y) for x, y in zip_longest(a, b, fillvalue=ZERO)]


@add.register
def _(a: dict, b: Any) -> Any:
    return {key: accumulate(a.get(key, ZERO), b.get(key, ZERO)) for key in {**a, **b}}


@add.register
def _(a: None, b: Any) -> Any:
    return b


@multiply.register
def _(x̄: None, factor: Any) -> Any:
    return None


@multiply.register
def _(x̄: list, factor: Any) -> Any:
    return [scale(c, factor) for c in x̄]


@multiply.register
def _(x̄: dict, factor: Any) -> Any:
    return {key: scale(c, factor) for key, c in x̄.items()}
