"""Rules of lists and dicts that have shadows: what is read from one adds to its shadow's item.

`rules/shadows.py` says which of them a program takes. A rule gets the container, its shadow, and what
else the call has; its pullback changes the shadow. Where it says so, a pullback is differentiated in
its turn: it goes item by item, and zeros are marked (-0.0) instead of `ZERO`.
Tests: tests/rules/test_shadows.py, tests/rules/test_lists_again.py
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    Known,
    accumulate,
    effects,
    non_differentiable,
    only_reads,
    primitives,
    transfers,
)
from morula.rules.arrays.construction import entries


def references(x: Any) -> int:
    """How many hold something that is taken from a container for a call; the least there can be."""
    return sys.getrefcount(x)


_container = {0: object()}
BY_THE_SHADOW = min(3, references(_container[0]))  # nobody else holds it, so it may be given away


def take_item(x, x̂s, k):
    """x, which is the k-th item of a list: its cotangent goes there."""

    def take_item_pullback(x̄):
        total = x̂s[k]
        x̂s[k] = x̄ if total is ZERO else total + x̄
        return ()

    return x, take_item_pullback


def take_number(x, x̂s, k):
    """The same where the shadow holds numbers from the beginning."""

    def take_number_pullback(x̄):
        x̂s[k] = x̂s[k] + x̄
        return ()

    return x, take_number_pullback


def take_structure(x, x̂s, k):
    """The same for an item whose cotangents are not added by +, such as a tuple."""

    def take_structure_pullback(x̄):
        x̂s[k] = accumulate(x̂s[k], x̄)
        return ()

    return x, take_structure_pullback


def reached(x̄, x):
    """The cotangent of x out of a shadow that holds numbers; -0.0 says that nothing has reached it."""
    return ZERO if x̄ == 0.0 and math.copysign(1.0, x̄) < 0.0 else x̄


@functools.cache
def unreached_array(shape):
    """What the shadows of arrays of a shape begin with; it is no cotangent itself."""
    mark = np.full(shape, -0.0)
    mark.flags.writeable = False
    return mark


def sign_of(zero):
    """What stands for what shadows begin with, to find rules by."""
    return zero.value.shape if type(zero.value) is np.ndarray else zero.value


def zero_of(sign):
    """What shadows begin with."""
    return unreached_array(sign) if type(sign) is tuple else sign


@functools.cache
def reached_array(shape):
    """The same for an array of a shape."""
    mark = unreached_array(shape)

    def reached_if_another(x̄, x):
        return ZERO if x̄ is mark else x̄

    return reached_if_another


@functools.cache
def sum_rule(add_up, marked):
    """The rule of `sum(xs)` or `np.sum(xs)`: its cotangent is that of each item."""

    def rule(xs, x̂s, *start):
        def sum_pullback(ȳ):
            add_to_all(x̂s, ȳ)
            return NONE, NONE, ȳ

        return add_up(xs, *start), sum_pullback

    def marked_rule(xs, x̂s, *start):
        """The same, item by item: it is differentiated in its turn."""

        def sum_pullback(ȳ):
            for k in range(len(x̂s)):
                x̂s[k] = x̂s[k] + ȳ
            return NONE, NONE, ȳ

        return add_up(xs, *start), sum_pullback

    return marked_rule if marked else rule


def add_to_all(x̂s: list[Any], ȳ: Any) -> None:
    """Add to all items of a shadow."""
    x̂s[:] = [ȳ if x̄ is ZERO else x̄ + ȳ for x̄ in x̂s]


def product_of_items(xs, x̂s):
    """`math.prod(xs)`: the slope by an item is the product of the others."""
    xs = tuple(xs)

    def product_pullback(ȳ):
        add_to_each(x̂s, slopes_of_product(xs, ȳ))
        return ()

    return math.prod(xs), product_pullback


def slopes_of_product(xs: tuple[Any, ...], ȳ: Any) -> list[Any]:
    """ȳ times the product of all items but one, for each."""
    before = list(itertools.accumulate(xs[:-1], operator.mul, initial=ȳ)) if xs else []
    behind = list(itertools.accumulate(xs[:0:-1], operator.mul, initial=1.0)) if xs else []
    return [a * b for a, b in zip(before, behind[::-1], strict=True)]


def sliced(x̂s, k):
    """The shadow of `xs[k]`: those of its lists and objects, room for other cotangents."""
    places = range(len(x̂s))[k]
    ŷs = part_of_shadow(x̂s, k)

    def sliced_pullback(ȳ):
        add_part(x̂s, places, ŷs)
        return ()

    return ŷs, sliced_pullback


def zeros_beside(xs: list[Any], zero: Any) -> list[Any]:
    """A shadow that nothing has reached yet."""
    return [zero] * len(xs)


@functools.cache
def slice_rule(kind):
    """The same of numbers, item by item: it is differentiated in its turn."""
    zero = kind(-0.0)

    def rule(x̂s, k):
        places = range(len(x̂s))[k]
        n = len(places)
        ŷs = [zero] * n

        def slice_pullback(ȳ):
            for i in range(n):
                place = places[i]
                x̂s[place] = x̂s[place] + ŷs[i]
            return ()

        return ŷs, slice_pullback

    return rule


def part_of_shadow(x̂s: list[Any], k: slice) -> list[Any]:
    """The shadows among these items, and zeros in the place of what has none."""
    return [x̂ if type(x̂) in (list, dict) else ZERO for x̂ in x̂s[k]]


def add_part(x̂s: list[Any], places: range, ŷs: list[Any]) -> None:
    """Add to the items at these places."""
    for k, ȳ in zip(places, ŷs, strict=False):  # more may have been appended
        if type(ȳ) not in (list, dict):
            x̂s[k] = accumulate(x̂s[k], ȳ)


def array_of_items(xs, x̂s):
    """`np.array(xs)` of numbers: each has its entry of the cotangent."""

    def array_pullback(ȳ):
        add_to_each(x̂s, entries(ȳ))
        return ()

    return np.array(xs), array_pullback


def add_to_each(x̂s: list[Any], ȳs: list[Any]) -> None:
    """Add to each item of a shadow its own."""
    x̂s[:] = [ȳ if x̄ is ZERO else x̄ + ȳ for x̄, ȳ in zip(x̂s, ȳs, strict=True)]


def mean_as_array(xs, x̂s):
    """`np.mean(xs)` of numbers."""

    n = len(xs)

    def mean_as_array_pullback(ȳ):
        add_to_all(x̂s, ȳ / n)
        return ()

    return np.mean(xs), mean_as_array_pullback


READ_AT_ONCE = {
    np.array: array_of_items,
    np.asarray: array_of_items,
    np.sum: sum_rule(np.sum, False),
    np.mean: mean_as_array,
}


def one_by_one(take, part_of):
    """The rule of `take(xs)`, item by item: `part_of(ȳ, k, n)` is for the k-th item of n.

    Its pullback is differentiated in its turn.
    """

    def rule(xs, x̂s, *args):
        def pullback(ȳ):
            n = len(x̂s)
            for k in range(n):
                x̂s[k] = x̂s[k] + part_of(ȳ, k, n)
            return ()

        return take(xs, *args), pullback

    return rule


def entry_at(ȳ, k, n):
    return ȳ[k]


def equal_part(ȳ, k, n):
    return ȳ / n


READ_ONE_BY_ONE = {
    np.array: one_by_one(np.array, entry_at),
    np.asarray: one_by_one(np.asarray, entry_at),
    np.sum: sum_rule(np.sum, True),
    np.mean: one_by_one(np.mean, equal_part),
}


def stacked(xs, x̂s, axis=0):
    """`np.stack(xs, axis)` of arrays: each has its row of the cotangent."""

    def stack_pullback(ȳ):
        add_to_each(x̂s, entries(np.moveaxis(ȳ, axis, 0)))
        return ()

    return np.stack(xs, axis), stack_pullback


def concatenated(xs, x̂s, axis=0):
    """`np.concatenate(xs, axis)` of arrays: each has its part of the cotangent."""
    ends = ends_of(xs, axis)

    def concatenate_pullback(ȳ):
        add_to_each(x̂s, np.split(ȳ, ends, axis))
        return ()

    return np.concatenate(xs, axis), concatenate_pullback


def ends_of(xs: list[Any], axis: int) -> Any:
    """Where the parts of the joined array end, but for the last."""
    return np.cumsum([x.shape[axis] for x in xs])[:-1]


def rows_joined(xs, x̂s):
    """`np.vstack(xs)`: vectors become rows."""
    rows = np.ndim(xs[0]) == 1 if xs else False
    ends = None if rows else ends_of(xs, 0)

    def vstack_pullback(ȳ):
        add_to_each(x̂s, entries(ȳ) if rows else np.split(ȳ, ends, 0))
        return ()

    return np.vstack(xs), vstack_pullback


def columns_joined(xs, x̂s):
    """`np.hstack(xs)`: vectors one behind the other, matrices side by side."""
    axis = 0 if xs and np.ndim(xs[0]) == 1 else 1
    ends = ends_of(xs, axis)

    def hstack_pullback(ȳ):
        add_to_each(x̂s, np.split(ȳ, ends, axis))
        return ()

    return np.hstack(xs), hstack_pullback


JOINED = {
    np.stack: stacked,
    np.concatenate: concatenated,
    np.vstack: rows_joined,
    np.hstack: columns_joined,
}


@functools.cache
def joined_rule(join, shape, as_rows):
    """The rule of joining arrays of one shape along the first axis, or of stacking them as rows."""
    length = shape[0] if shape else 1

    def row(ȳ, k, n):
        return ȳ[k].reshape(shape)  # which it has: so it is known

    def part(ȳ, k, n):
        return ȳ[k * length : (k + 1) * length].reshape(shape)

    return one_by_one(join, row if as_rows else part)


effects(add_to_all, add_to_each, add_part)
non_differentiable(ends_of, zeros_beside)


@functools.cache
def extreme_rule(choose, marked):
    """The rule of `min(xs)` or `max(xs)`: the first such item gets the cotangent."""

    def rule(xs, x̂s):
        y = choose(xs)
        k = place_of(y, xs)

        def extreme_pullback(ȳ):
            total = x̂s[k]
            x̂s[k] = ȳ if total is ZERO else total + ȳ
            return ()

        return y, extreme_pullback

    def marked_rule(xs, x̂s):
        y = choose(xs)
        k = place_of(y, xs)

        def extreme_pullback(ȳ):
            x̂s[k] = x̂s[k] + ȳ
            return ()

        return y, extreme_pullback

    return marked_rule if marked else rule


def place_of(y: Any, xs: list[Any]) -> int:
    """The place of an item that is y itself."""
    return next(k for k, x in enumerate(xs) if x is y)


@functools.lru_cache(maxsize=None, typed=True)  # a zero of NumPy equals that of Python
def put_rule(put, doubt, in_dict, has_shadows, sign):
    """The rule of `xs[k] = x`, done by `put`, of a list or a dict that may hold what has shadows."""
    if has_shadows:
        return put_shadow_rule(put, doubt, in_dict)
    zero = zero_of(sign)

    def rule(xs, x̂s, k, x, x̂):
        """What the item has got so far is for x, what it gets now for what was there."""
        put(xs, k, x)
        if in_dict:
            x̂s[k] = zero

        def put_pullback(ȳ):
            x̄ = x̂s[k]
            x̂s[k] = zero
            return NONE, NONE, NONE, doubt(x̄, x)

        return None, put_pullback

    return rule


def put_shadow_rule(put, doubt, in_dict):
    """The same where the shadow that was there comes back."""

    def rule(xs, x̂s, k, x, x̂):
        old = shadow_at(x̂s, k)
        put(xs, k, x)
        x̂s[k] = x̂

        def put_shadow_pullback(ȳ):
            x̄ = x̂s[k]
            x̂s[k] = old
            return NONE, NONE, NONE, doubt(x̄, x)

        return None, put_shadow_pullback

    return rule


def shadow_at(x̂s: Any, k: Any) -> Any:
    """What a shadow has at a place, if it has it."""
    try:
        return x̂s[k]
    except LookupError:
        return ZERO


non_differentiable(shadow_at)


@functools.cache
def append_rule(append, doubt):
    """The rule of appending to a list and to its shadow."""

    def rule(xs, x̂s, x̂, x):
        append(xs, x)
        primitives.list_append(x̂s, x̂)

        def append_pullback(ȳ):
            x̄ = x̂s.pop()
            return NONE, NONE, NONE, doubt(x̄, x)

        return None, append_pullback

    return rule


def popped(xs, x̂s):
    """`xs.pop()`: its cotangent is put where that of the item is looked for."""
    x̂s.pop()

    def pop_pullback(x̄):
        primitives.list_append(x̂s, x̄)
        return ()

    return xs.pop(), pop_pullback


def popped_at(xs, x̂s, k):
    """`xs.pop(k)`."""
    place = place_in(xs, k)
    x = xs.pop(k)
    x̂s.pop(k)

    def pop_pullback(x̄):
        x̂s.insert(place, x̄)
        return ()

    return x, pop_pullback


@functools.cache
def pop_rule(at, kind):
    """The rules of `xs.pop()` and `xs.pop(k)` where shadows hold numbers of this kind."""
    zero = kind(-0.0)

    def popped_number(xs, x̂s):
        x̂s.pop()

        def pop_pullback(x̄):
            primitives.list_append(x̂s, zero if x̄ is ZERO else zero + x̄)
            return ()

        return xs.pop(), pop_pullback

    def popped_number_at(xs, x̂s, k):
        place = place_in(xs, k)
        x = xs.pop(k)
        x̂s.pop(k)

        def pop_pullback(x̄):
            x̂s.insert(place, zero if x̄ is ZERO else zero + x̄)
            return ()

        return x, pop_pullback

    return popped_number_at if at else popped_number


def popped_shadow(xs, x̂s, x̂, k=-1):
    """The same for an item that has a shadow, which was taken out already."""
    place = place_in(xs, k)

    def pop_pullback(x̄):
        x̂s.insert(place, x̂)
        return ()

    return xs.pop(k), pop_pullback


def dropped(xs, x̂s, k):
    """`del xs[k]`."""
    place = place_in(xs, k)
    del xs[k]
    x̂ = x̂s.pop(k)

    def delitem_pullback(ȳ):
        x̂s.insert(place, x̂)
        return ()

    return None, delitem_pullback


@functools.cache
def insert_rule(doubt):
    """The rule of `xs.insert(k, x)`."""

    def rule(xs, x̂s, k, x̂, x):
        xs.insert(k, x)
        x̂s.insert(k, x̂)
        place = place_of_inserted(len(x̂s), k)

        def insert_pullback(ȳ):
            x̄ = x̂s.pop(place)
            return NONE, NONE, NONE, NONE, doubt(x̄, x)

        return None, insert_pullback

    return rule


def turned(xs, x̂s):
    """`xs.reverse()`."""
    xs.reverse()
    x̂s.reverse()

    def reverse_pullback(ȳ):
        x̂s.reverse()
        return ()

    return None, reverse_pullback


def place_in(xs: list[Any], k: int) -> int:
    """The place of the k-th item, from the end if k is negative."""
    return k if k >= 0 else k + len(xs)


def place_of_inserted(n: int, k: int) -> int:
    """The place where `insert(k, x)` has put an item into a list, which has n items now."""
    return min(k, n - 1) if k >= 0 else max(k + n - 1, 0)


non_differentiable(place_in, place_of_inserted)
only_reads(place_in)
transfers(place_in, place_of_inserted)(lambda s, call, args: Known(int))


@functools.lru_cache(maxsize=None, typed=True)  # a zero of NumPy equals that of Python
def dict_rule(sign, *doubts):
    """The rule of the display of a dict: of values under one key the last is there."""
    zero = zero_of(sign)
    n = len(doubts)
    items = ", ".join([f"k{i}, x{i}" for i in range(n)])
    shown = ", ".join([f"k{i}: x{i}" for i in range(n)])
    taken = "\n        ".join([f"x̄{i} = d̂[k{i}]; d̂[k{i}] = zero" for i in reversed(range(n))])
    given = ", ".join([f"NONE, {doubt.__name__}(x̄{i}, x{i})" for i, doubt in enumerate(doubts)])
    source = f"""
def rule(d̂, {items}):
    def dict_pullback(ȳ):
        {taken}
        return NONE, {given}
    return {{{shown}}}, dict_pullback
"""
    scope: dict[str, Any] = {"NONE": NONE, "zero": zero, "__name__": __name__}
    scope |= {doubt.__name__: doubt for doubt in doubts}
    exec(source, scope)
    return scope["rule"]


@functools.cache
def display_rule(*doubts):
    """The rule of a display: the cotangents of its items are the items of the shadow."""
    n = len(doubts)
    items = ", ".join([f"x{i}" for i in range(n)])
    cotangents = ", ".join([f"x̄{i}" for i in range(n)])
    given = ", ".join([f"{doubt.__name__}(x̄{i}, x{i})" for i, doubt in enumerate(doubts)])
    source = f"""
def rule(ŷ, {items}):
    def display_pullback(ȳ):
        {cotangents}, = ŷ
        return NONE, {given}
    return [{items}], display_pullback
"""
    scope: dict[str, Any] = {"NONE": NONE, "__name__": __name__}
    scope |= {doubt.__name__: doubt for doubt in doubts}
    exec(source, scope)
    return scope["rule"]
