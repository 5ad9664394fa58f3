"""Memos: dicts outside of a function in which it finds again what an earlier call has computed.

    if x not in memo: memo[x] = x * x

What a differentiated call has stored is a plain number to the next one, whose dependence on the
arguments is gone: a derivative by way of it would be a silent zero. Which dicts are memos is told by
their keys, which are real numbers, or bytes of arrays: those of other dicts are names and indices.
Tests: tests/rules/test_memos.py
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from morula.core.extend import UnsupportedError, effects, is_zero, non_differentiable

REAL = (float, complex, np.inexact, bytes)

_stored: dict[int, tuple[dict[Any, Any], dict[Any, Any]]] = {}  # by identity: the dict, its items
_most = [64]


def remember(d: dict[Any, Any], key: Any) -> None:
    """A differentiated call has stored an item."""
    if not is_real(key) or key not in d:
        return
    if len(_stored) >= _most[0]:
        forget_unused()
    _stored.setdefault(id(d), (d, {}))[1][key] = dict.__getitem__(d, key)


def forget_unused() -> None:
    """Drop the dicts that nobody else holds."""
    for name in list(_stored):
        if sys.getrefcount(_stored[name][0]) <= 2:
            del _stored[name]
    _most[0] = max(64, 2 * len(_stored))


def is_remembered(d: dict[Any, Any], key: Any) -> bool:
    """Is an item, which is in the dict, what an earlier differentiated call has stored?"""
    _, items = _stored.get(id(d), (None, {}))
    return bool(items) and is_real(key) and items.get(key) is dict.__getitem__(d, key)


def is_real(key: Any) -> bool:
    """Is a key a real or complex number, the bytes of an array, or a tuple with such?"""
    return isinstance(key, REAL) or (type(key) is tuple and any(map(is_real, key)))


def refuse(ȳ: Any, key: Any) -> None:
    """An error if a cotangent has come for an item of a memo."""
    if not is_zero(ȳ):
        raise UnsupportedError(
            f"the item of a dict under {key!r} was stored by an earlier differentiated call, so how "
            "it depends on the arguments is not known any more, and a cotangent has reached it. Clear "
            "such a memo before the call, or take the item by ignore_derivatives(...) if it is a "
            "constant"
        )


non_differentiable(remember, is_remembered, refuse)
effects(remember, refuse)
