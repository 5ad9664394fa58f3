"""weakref.proxy: operators, iteration and calls of a proxy are those of the object behind it.

Attributes: rules/objects.py.
Tests: tests/interop/test_weak_references.py
"""

from __future__ import annotations

import math
import operator
from types import BuiltinFunctionType
from typing import Any
from weakref import ProxyTypes

from morula.core import general, primitives
from morula.core.general import Claim
from morula.core.registry import non_differentiable
from morula.interop.meanings import Args, claim
from morula.rules.objects import referent

ITEMS = (operator.getitem, operator.setitem, operator.delitem, operator.contains)
# What asks its first operand only; the others may be stored, or given to somebody else.
OF_FIRST = (
    *ITEMS, iter, next, sum, list, tuple, set, frozenset, sorted, enumerate, reversed, max, min,
    math.fsum, math.prod, abs, float, complex, int, round, len, bool, primitives.unpack,
    primitives.unpack_rest, primitives.as_tuple,
)  # fmt: skip
IDENTITY = (operator.is_, operator.is_not)


def asked(fn: Any, n: int) -> int:
    """How many of the first n operands a function asks for what they are."""
    if fn in OF_FIRST:
        return 1 if n == 1 or fn not in (max, min) else 0  # of several, one is the result
    is_operator = type(fn) is BuiltinFunctionType and fn.__module__ == "_operator"
    return n if (is_operator and fn not in IDENTITY) or fn in (divmod, pow, zip) else 0


def is_proxy(x: Any) -> bool:
    """Does it stand for an object?"""
    return type(x) in ProxyTypes


non_differentiable(asked, is_proxy)


def of_objects(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The call of the objects that proxies stand for."""
    if is_proxy(fn):
        return referent(fn)(*args, **kwargs)
    n = asked(fn, len(args))
    behind = [referent(x) if is_proxy(x) else x for x in args[:n]]
    return fn(*behind, *args[n:], **kwargs)


OF_OBJECTS = claim(of_objects)


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means that asks a proxy."""
    if is_proxy(fn):
        return OF_OBJECTS
    if not any(map(is_proxy, values)):
        return None
    return OF_OBJECTS if any(map(is_proxy, values[: asked(fn, len(values))])) else None


general.CLAIMS.append(claims)
