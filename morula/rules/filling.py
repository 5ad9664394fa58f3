"""Containers that are filled by what runs code: each item is in before the next is asked for.

So the code that gives the items may look at the container, as in `xs.extend(xs[-1] * a for _ in r)`,
and what came before an exception stays.
Tests: tests/rules/test_filling.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import non_differentiable

AT_HAND = (list, tuple, dict, set, frozenset, deque, str, bytes, bytearray, range, np.ndarray)


def runs_code(xs: Any) -> bool:
    """May code of anybody's run where the items of `xs` are asked for?"""
    return type(xs) not in AT_HAND


def in_turn(put: Callable[[Any, Any], Any]) -> Callable[[Any, Any], None]:
    """Put all items into a container, one by one."""

    def put_in_turn(container: Any, items: Any) -> None:
        for item in items:
            put(container, item)

    return put_in_turn


extend_list = in_turn(list.append)
extend_queue = in_turn(deque.append)
extend_queue_left = in_turn(deque.appendleft)


def others_in_turn(method: Callable[..., Any], change: Callable[[Any, Any], Any]) -> Any:
    """A method of a set that takes one after the other, and those that run code item by item."""
    one_by_one = in_turn(change)

    def take_in_turn(s: set[Any], *others: Any) -> None:
        for xs in others:
            if runs_code(xs):
                one_by_one(s, xs)
            else:
                method(s, xs)

    return take_in_turn


update_set = others_in_turn(set.update, set.add)
update_difference = others_in_turn(set.difference_update, set.discard)


def put_pairs(put: Callable[..., Any], d: dict[Any, Any], pairs: Any) -> None:
    """Put all pairs of a key and a value into a dict."""
    for n, pair in enumerate(pairs):
        require_pair(n, pair)
        key, value = pair
        put(d, key, value)


def put_by_keys(put: Callable[..., Any], d: dict[Any, Any], source: Any) -> None:
    """Put all items of a mapping of a user's class into a dict."""
    for key in list(source.keys()):
        put(d, key, source[key])


def require_pair(n: int, pair: Any) -> None:
    """What is no pair raises what a dict raises, whose n-th it is."""
    if isinstance(pair, (tuple, list)):
        is_pair = len(pair) == 2
    else:
        is_pair = hasattr(type(pair), "__iter__") or hasattr(type(pair), "__getitem__")
    if not is_pair:
        dict([((), ())] * n + [pair])


non_differentiable(runs_code, require_pair)
