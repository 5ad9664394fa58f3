"""The rules of Numba, which are loaded when a differentiated program first meets one of its functions.

A function of `njit` is differentiated through the Python function that it was made of, and so is one of
`vectorize`, entry by entry. What `guvectorize` makes has no function of its arguments to look into.
Tests: tests/interop/test_numba.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.np.ufunc.dufunc import DUFunc
from numba.np.ufunc.gufunc import GUFunc

from morula.core.cotangents import ZERO
from morula.core.extend import (
    Const,
    call,
    expect_nothing,
    non_differentiable,
    opaque,
    parts_of,
    registry,
    resolves,
    rewrites,
    runs,
)
from morula.mixed_mode.push import opaque as push_opaque
from morula.mixed_mode.push import push, pushes_type


def jitted_function(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The Python function that was compiled."""
    return call(fn.py_func, *args, **kwargs)


for _type in (Dispatcher, CPUDispatcher):
    resolves(_type, passing=True)(jitted_function)

    @runs(_type)
    def _(fn: Any) -> Any:
        return fn.py_func, (), {}

    @pushes_type(_type)
    def _(run: Any, fn: Any, ḟ: Any, args: Any, tangents: Any, keywords: Any) -> Any:
        return push(run, fn.py_func, ZERO, args, tangents, keywords)


@rewrites
def call_python_functions(s: Any) -> bool:
    """Calls of compiled functions are those of what they were made of, which can be inlined."""
    found = [c for c in s.ir.calls() if isinstance(c.primitive, Dispatcher)]
    for c in found:
        c.fn = Const(c.primitive.py_func)
    return bool(found)


WITH_OPTIONS = "it is differentiated without out=, where= and the like"


def entry_by_entry(fn: Any) -> Any:
    """What a universal function made by `vectorize` does, in Python."""
    scalar = fn._dispatcher.py_func

    def apply(*args: Any) -> Any:
        shape = np.broadcast_shapes(*map(np.shape, args))
        columns = [np.broadcast_to(a, shape).reshape(-1) for a in args]
        entries = [scalar(*[c[i] for c in columns]) for i in range(math.prod(shape))]
        return np.reshape(np.array(entries, float if not entries else None), shape)[()]

    return apply


non_differentiable(entry_by_entry)


@resolves(DUFunc)
def universal_function(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of `vectorize`: that of numbers, for every entry."""
    expect_nothing()
    if kwargs or len(args) != fn.nin:
        return opaque(fn, args, kwargs, WITH_OPTIONS)  # type: ignore[call-arg]
    return call(entry_by_entry(fn), *args)


@pushes_type(DUFunc)
def _(run: Any, fn: Any, ḟ: Any, args: Any, tangents: Any, keywords: Any) -> Any:
    if keywords or len(args) != fn.nin:
        return push_opaque(run, fn, ḟ, args, tangents, keywords, WITH_OPTIONS)
    return push(run, entry_by_entry(fn), ZERO, args, tangents)


@resolves(GUFunc)
def generalised_function(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of `guvectorize` writes its result to an argument that the caller does not give."""
    return opaque(fn, args, kwargs, GENERALISED)  # type: ignore[call-arg]


@pushes_type(GUFunc)
def _(run: Any, fn: Any, ḟ: Any, args: Any, tangents: Any, keywords: Any) -> Any:
    return push_opaque(run, fn, ḟ, args, tangents, keywords, GENERALISED)


GENERALISED = (
    "it was made by guvectorize; a function of njit that returns its result is looked into"
)


@parts_of.register(Dispatcher)
@parts_of.register(DUFunc)
@parts_of.register(GUFunc)
def _(fn: Any) -> None:
    """What compiled functions hold is Numba's own."""


registry.registry.entry(jitted_function).changed()
