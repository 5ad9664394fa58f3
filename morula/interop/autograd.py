"""Autograd's language of rules: what `primitive` and `defvjp` say of a function holds here as well.

A primitive of Autograd's own is the function of NumPy or SciPy that it wraps, whose rules are Morula's;
one that a user has made has the vector-Jacobian products that were defined for it, of all orders, since
these are ordinary Python.
Tests: tests/interop/test_autograd.py
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from autograd.core import primitive_vjps

from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    general,
    has_tangent,
    no_rule,
    non_differentiable,
    registry,
    rrule,
    stays_general,
)
from morula.interop.meanings import claim
from morula.rules.numbers import Anything

DISPATCHED = "called_by_autograd_dispatcher"  # a keyword that primitives have for themselves
LIBRARIES = ("numpy", "scipy", "autograd")


def is_primitive(x: Any) -> bool:
    """Was it made by `autograd.extend.primitive`?"""
    return type(x) is FunctionType and "_is_autograd_primitive" in x.__dict__


def of_library(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function that Autograd wraps."""
    return fn.fun(*args, **{k: v for k, v in kwargs.items() if k != DISPATCHED})


def of_user(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A primitive with the rules that it was given."""
    return applied(fn, args, {k: v for k, v in kwargs.items() if k != DISPATCHED})


def applied(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value."""
    return fn.fun(*args, **kwargs)


@rrule(applied)
def _(fn: Anything, args: tuple, kwargs: dict):
    y = applied(fn, args, kwargs)

    def applied_pullback(ȳ):
        bars = [cotangent(fn, i, y, args, kwargs, ȳ) for i in range(len(args))]
        return NONE, tuple(bars), NONE

    return y, applied_pullback


def cotangent(fn: Any, i: int, y: Any, args: Any, kwargs: Any, ȳ: Any) -> Any:
    """The cotangent of one argument, by the vector-Jacobian product that was defined for it."""
    if not has_tangent(type(args[i])):
        return NONE
    vjp = primitive_vjps.get(fn)
    if vjp is None:
        return NotKnown(partial(no_rule, fn.fun, args, reason="defvjp was not called for it"))
    (x̄,) = vjp((i,), y, args, kwargs)(ȳ)
    return ZERO if x̄ is None else x̄


non_differentiable(is_primitive)

BY_LIBRARY, BY_USER = claim(of_library), claim(of_user)


def claims(fn: Any, values: tuple[Any, ...]) -> Any:
    """What a primitive of Autograd means; None: it is none."""
    if not is_primitive(fn):
        return None
    home = str(getattr(fn.fun, "__module__", None)).split(".")[0]
    own = isinstance(fn.fun, np.ufunc) or home in LIBRARIES
    return BY_LIBRARY if own else BY_USER


general.CLAIMS.append(claims)
stays_general.append(is_primitive)
registry.registry.entry(claims).changed()
