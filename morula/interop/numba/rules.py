"""The rules of Numba, which are loaded when a differentiated program first meets one of its functions.

A function of `njit` is differentiated through the Python function that it was made of, and so is one of
`vectorize`, entry by entry. What `guvectorize` makes has no function of its arguments to look into.
Tests: tests/interop/test_numba.py
"""

from __future__ import annotations

import math
from functools import update_wrapper
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.experimental.jitclass._box import Box
from numba.experimental.jitclass.base import JitClassType
from numba.np.ufunc.dufunc import DUFunc
from numba.np.ufunc.gufunc import GUFunc

from morula.core.cotangents import ZERO
from morula.core.extend import (
    Const,
    call,
    expect_nothing,
    general,
    non_differentiable,
    on_entry,
    opaque,
    parts_of,
    registry,
    remembered,
    resolves,
    rewrites,
    runs,
    stays_general,
)
from morula.core.general import Claim
from morula.interop.meanings import claim
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


on_entry.register(Dispatcher, lambda fn, known: on_entry(fn.py_func, known))
remembered.register(Dispatcher, lambda fn, known: remembered(fn.py_func, known))
for _type in (DUFunc, GUFunc):
    on_entry.register(_type, lambda fn, known: fn)
    remembered.register(_type, lambda fn, known: [])


# -- compiled gradients, and what nobody can look into ---------------------------------------------


class CompiledGradient:
    """What `njit_grad` and its kin give; differentiated, it is Morula's own gradient, `plain`."""

    def __init__(self, compiled: Any, plain: Any, f: Any) -> None:
        update_wrapper(self, f, updated=())
        self.compiled = compiled
        self.plain = plain

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What Numba computes."""
        return self.compiled(args, kwargs)


@resolves(CompiledGradient, passing=True)
def plain_gradient(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The gradient that Morula computes."""
    return call(fn.plain, *args, **kwargs)


@runs(CompiledGradient)
def _(fn: Any) -> Any:
    return fn.plain, (), {}


@pushes_type(CompiledGradient)
def _(run: Any, fn: Any, ḟ: Any, args: Any, tangents: Any, keywords: Any) -> Any:
    return push(run, fn.plain, ZERO, args, tangents, keywords)


def called(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same where a program calls the method of the class, as compiled programs do."""
    return args[0].plain(*args[1:], **kwargs)


CALLED = claim(called)


@parts_of.register(CompiledGradient)
def _(fn: Any) -> None:
    """What it holds has no derivative."""


on_entry.register(CompiledGradient, lambda fn, known: fn)
remembered.register(CompiledGradient, lambda fn, known: [])

COMPILED = "Numba compiled it, and what it was made of cannot be looked into"
HOMES = ("numba.typed", "numba.experimental", "numba.stencils")


def not_followed(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of one of Numba's containers, of a `jitclass`, of a stencil."""
    return opaque(fn, args, kwargs, COMPILED)  # type: ignore[call-arg]


def push_not_followed(run: Any, fn: Any, ḟ: Any, args: Any, tangents: Any, keywords: Any) -> Any:
    """The same in forward mode."""
    return push_opaque(run, fn, ḟ, args, tangents, keywords, COMPILED)


NOT_FOLLOWED = Claim(not_followed, push_not_followed)


def claims(fn: Any, values: tuple[Any, ...]) -> Any:
    """What a call means that is Numba's; None: it is none."""
    if fn is CompiledGradient.__call__:
        return CALLED
    if is_compiled_class(fn) or is_at_home(fn):
        return NOT_FOLLOWED
    reads = values and is_compiled_class(type(values[0])) and not is_followed(fn)
    return NOT_FOLLOWED if reads else None


def is_followed(fn: Any) -> bool:
    """Is it a function of the user's, and no method of a `jitclass`?"""
    home = fn.__globals__.get("__name__") if type(fn) is FunctionType else HOMES[0]
    return not str(home).startswith(HOMES)


def is_compiled_class(x: Any) -> bool:
    """Is it a class of `jitclass`?"""
    return isinstance(x, JitClassType) or (isinstance(x, type) and issubclass(x, Box))


def is_at_home(fn: Any) -> bool:
    """Is it one of Numba's containers, a method of one, or a stencil?"""
    owner = fn if isinstance(fn, (type, FunctionType)) else type(fn)
    return str(getattr(owner, "__module__", "")).startswith(HOMES)


def stays(x: Any) -> bool:
    """Is a callable or a type one of these, so that a program with it is not specialised?"""
    if isinstance(x, CompiledGradient) or x is CompiledGradient.__call__:
        return True
    return is_compiled_class(x) or is_at_home(x)


general.CLAIMS.append(claims)
stays_general.append(stays)
registry.registry.entry(jitted_function).changed()
