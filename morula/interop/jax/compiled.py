"""Compiled passes of JAX's callables that are called often in the same way.

`jax.vjp` traces a callable at every call, which takes a thousand times as long as to run it. After as
many calls as pay for it, the forward and the reverse pass of a call are compiled: of a callable of
JAX's own or a jitted one, by the form of its arguments, which are arrays, numbers and plain options.
Tests: tests/interop/test_jax_compiled.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, proxy

import jax
import numpy as np

from morula.interop.jax.forms import JITTED, Constant, Keyed, Leaf, List, Tuple
from morula.interop.jax.kinds import is_public, is_tracer

OFTEN = 20  # calls cost as much as a compilation
MOST = 512  # forms of calls that are counted
STATIC = (str, bytes, bool, type(None), type(Ellipsis), type, np.dtype)

Compiled = tuple[Callable[..., Any], Callable[..., Any]]


class Count:
    """How often a call was made in one form, and its passes: None, if it cannot be compiled."""

    def __init__(self) -> None:
        self.calls = 0
        self.passes: Any = False


_of_jax: dict[Any, Count] = {}
_of_users: WeakKeyDictionary[Any, dict[Any, Count]] = WeakKeyDictionary()
_known: dict[int, Any] = {}


def count_of(run: Any, leaves: tuple[Any, ...]) -> Count | None:
    """The count for a call; None: it is not one of these."""
    form, *rest = run.forms
    if type(form) is not Constant:
        return None
    counts = counts_of(form.x)
    if counts is None or any(map(is_tracer, leaves)):
        return None
    try:
        key = (id(form.x), *[described(part, leaves, run.integers) for part in rest])
    except NotPlainError:
        return None
    found = counts.get(key)
    if found is None:
        if len(counts) >= MOST:
            counts.clear()
        found = counts[key] = Count()
    found.calls += 1
    return found


def counts_of(fn: Any) -> dict[Any, Count] | None:
    """Where calls of a callable are counted."""
    if isinstance(fn, JITTED) and not is_known(fn):
        return _of_users.setdefault(fn, {})
    return _of_jax if is_known(fn) else None


def is_known(fn: Any) -> bool:
    """Is it a callable of JAX's own, which stays?"""
    if id(fn) not in _known:
        if not is_public(fn) and getattr(fn, "__module__", "") != "_operator":
            return False
        _known[id(fn)] = fn
    return True


class NotPlainError(Exception):
    """An argument is more than arrays, numbers and options."""


def described(form: Any, leaves: tuple[Any, ...], integers: set[int]) -> Any:
    """What of an argument decides what is compiled."""
    kind = type(form)
    if kind is Leaf:
        x = leaves[form.i]
        if isinstance(x, int) and form.i in integers:
            return x
        return (x.shape, x.dtype, getattr(x, "weak_type", None)) if hasattr(x, "shape") else type(x)
    if kind is Constant:
        return described_constant(form.x)
    if kind in (Tuple, List) or (kind is Keyed and type(form.x) is dict):
        return type(form.x), *[(key, described(part, leaves, integers)) for key, part in form.parts]
    raise NotPlainError


def described_constant(x: Any) -> Any:
    """The same of a value without leaves."""
    if isinstance(x, STATIC):
        return type(x), x
    if type(x) is slice:
        parts = (x.start, x.stop, x.step)
        if all(i is None or type(i) is int for i in parts):
            return slice, parts
    if type(x) in (tuple, list, dict) and not x:
        return type(x)
    if type(x) is tuple:
        return tuple, *map(described_constant, x)
    raise NotPlainError


class Slot:
    """Stands for a leaf."""

    def __init__(self, i: int) -> None:
        self.i = i


def compile_passes(vjp: Any, run: Any, leaves: tuple[Any, ...], active: list[int]) -> Compiled:
    """The forward and the reverse pass of calls like this one; nothing of its arrays is kept."""
    slots = [Slot(i) for i in range(len(leaves))]
    template = [form.build(slots, {}) for form in run.forms[1:]]
    given = [i for i in range(len(leaves)) if type(leaves[i]) is not int]
    others = [i for i in given if i not in active]
    options = [x if type(x) is int else None for x in leaves]
    fn: Any = proxy(run.fn) if isinstance(run.fn, JITTED) else run.fn  # it is counted by itself
    last: list[Any] = []

    class Call(type(run)):
        """The call with leaves in the slots."""

        def plain(self, values: tuple[Any, ...]) -> Any:
            """The call itself."""
            args, kwargs = jax.tree_util.tree_map(
                lambda x: values[x.i] if type(x) is Slot else x, template
            )
            return fn(*args, **kwargs)

    again = Call(fn, (), set(), run.integers)

    @jax.jit
    def forward(values: list[Any], rest: list[Any]) -> Any:
        filled = list(options)
        for i, x in zip((*active, *others), (*values, *rest), strict=True):
            filled[i] = x
        outs, (pull, _), result = vjp(again, tuple(filled), active)
        arrays, result.others = result.others, []
        last[:] = [result]
        return outs, arrays, pull

    backward = jax.jit(lambda pull, bars: pull(bars))

    def run_forward(leaves: tuple[Any, ...]) -> Any:
        outs, arrays, pull = forward([leaves[i] for i in active], [leaves[i] for i in others])
        return outs, arrays, pull, last[0]

    return run_forward, backward
