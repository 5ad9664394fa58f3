"""What NumPy does with functions of the user's: vectorize, apply_along_axis, piecewise, fromiter.

Each calls the function as often, and in the same order, as NumPy does; the function may close over
what is differentiated.
Tests: tests/rules/arrays/test_callbacks.py
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    NoTangent,
    adjoint_of,
    call,
    non_differentiable,
    rrule,
)
from morula.rules.arrays.bodies import instead_of
from morula.rules.arrays.indexing import scattered
from morula.rules.arrays.types import Anything
from morula.rules.calls import serves
from morula.rules.objects import give


@instead_of(np.apply_along_axis)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """func1d of each row along an axis; its axes stand in the place of that one."""
    arr = np.asanyarray(arr)
    axis = axis % arr.ndim
    rows = np.moveaxis(arr, axis, -1)
    places = list(np.ndindex(rows.shape[:-1]))
    if not places:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [np.asanyarray(func1d(rows[i], *args, **kwargs)) for i in places]
    first = results[0]
    joined = np.reshape(np.stack(results), (*rows.shape[:-1], *first.shape)).astype(first.dtype)
    for _ in range(first.ndim):  # the axes of the results, last first, to their place
        joined = np.moveaxis(joined, -1, axis)
    return joined


@instead_of(np.piecewise)
def piecewise(x, condlist, funclist, *args, **kw):
    """On the entries where a condition holds, its function; the last one elsewhere."""
    x = np.asanyarray(x)
    conditions = conditions_of(condlist, x.ndim)
    if len(funclist) == len(conditions) + 1:
        conditions = conditions_or_none(conditions)
    elif len(funclist) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    y = np.zeros(x.shape, x.dtype)
    for where, f in zip(conditions, funclist, strict=True):
        if not callable(f):
            y = np.where(where, f, y).astype(x.dtype)
        elif np.any(where):
            values = np.broadcast_to(f(x[where], *args, **kw), (np.count_nonzero(where),))
            y = np.where(where, scattered(values, where, x.shape, x.dtype), y).astype(x.dtype)
    return y


def conditions_of(condlist: Any, ndim: int) -> list[np.ndarray]:
    """The conditions, of which a single one need not stand in a list."""
    if np.isscalar(condlist) or (not isinstance(condlist[0], list | np.ndarray) and ndim):
        condlist = [condlist]
    return list(np.asarray(condlist, bool))


def conditions_or_none(conditions: list[np.ndarray]) -> list[np.ndarray]:
    """The conditions, and that none of them holds."""
    return [*conditions, ~np.any(conditions, axis=0)]


non_differentiable(conditions_of, conditions_or_none)


@instead_of(np.fromiter)
def fromiter(iter, dtype, count=-1, *, like=None):
    """An array of the items, at most `count` of them."""
    items = []
    for item in iter:
        if len(items) == count:
            break
        items.append(item)
        if len(items) == count:
            break
    if len(items) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)}")
    return np.array(items, dtype)


# -- vectorize -------------------------------------------------------------------------------------


@serves(np.vectorize.__call__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self, *rest = args
    y, back = call(vectorized, self.pyfunc, settings_of(self), *rest, **kwargs)

    def vectorize_pullback(ȳ: Any) -> tuple[Any, ...]:
        _, f̄, _, *bars = back(ȳ)
        give(adjoint_of(self), "pyfunc", f̄)
        return ZERO, ZERO, *bars

    return y, vectorize_pullback


def settings_of(vectorize: Any) -> tuple[Any, ...]:
    """What `vectorized` has to know of it: types of results, axes, what is left out, caching."""
    types = vectorize.otypes and list(vectorize.otypes)
    dims = vectorize.signature and vectorize._in_and_out_core_dims
    return types, dims, vectorize.excluded, vectorize.cache


non_differentiable(settings_of)


def vectorized(f, settings, *args, **kwargs):
    """What `np.vectorize(f)` does: f of all entries, or rows, after one call that tells the type.

    That call gets an entry of NumPy's type; the others get Python's own numbers.
    """
    types, dims, excluded, cache = settings
    arrays = [None if i in excluded else np.asanyarray(a) for i, a in enumerate(args)]
    named = {k: np.asanyarray(a) for k, a in kwargs.items() if k not in excluded}
    core = core_axes(dims, len(args))
    shape = np.broadcast_shapes(
        *[loop_shape(a, n) for a, n in zip(arrays, core, strict=True) if a is not None],
        *[np.shape(a) for a in named.values()],
    )
    wide = [
        None if a is None else np.broadcast_to(a, (*shape, *a.shape[a.ndim - n :]))
        for a, n in zip(arrays, core, strict=True)
    ]
    wide_named = {k: np.broadcast_to(a, shape) for k, a in named.items()}

    def at(place, own):
        items = [args[i] if a is None else taken(a, place, own) for i, a in enumerate(wide)]
        keywords = {
            k: taken(wide_named[k], place, own) if k in wide_named else v for k, v in kwargs.items()
        }
        return f(*items, **keywords)

    places = list(np.ndindex(shape))
    if not places and types is None:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    known = types is not None or dims is not None
    trial = None if known else at(places[0], False)
    kept = [trial] if cache and not known else []
    results = kept + [at(place, dims is None) for place in places[len(kept) :]]
    several = isinstance(results[0], tuple) if results else types is not None and len(types) > 1
    columns = list(zip(*results, strict=True)) if several and results else [results]
    first = (trial if several else (trial,)) if trial is not None else None
    found = []
    for i, column in enumerate(columns):
        dtype = types[i] if types is not None else None
        if dtype is None and first is not None:
            dtype = np.asarray(first[i]).dtype
        if np.dtype(dtype) == object:
            whole = objects(column)
        else:
            whole = np.array([np.asarray(item) for item in column], dtype)
        found.append(np.reshape(whole, (*shape, *whole.shape[1:])))
    return tuple(found) if several else found[0]


def taken(a, place, own):
    """An entry, as Python's own number or as it is, or a row."""
    return a[place].item() if own and a.dtype.kind != "O" else a[place]


def core_axes(dims: Any, n: int) -> list[int]:
    """How many axes of each argument go to the function, by the signature."""
    return [0] * n if dims is None else [len(d) for d in dims[0]]


def loop_shape(a: Any, n: int) -> tuple[int, ...]:
    """The axes of an argument along which the function is repeated."""
    return a.shape[: a.ndim - n]


non_differentiable(core_axes, loop_shape)


# -- frompyfunc ------------------------------------------------------------------------------------


@rrule(np.frompyfunc)
def _(func: Anything, nin: Anything, nout: Anything, **keywords):
    """The cotangent of the ufunc is that of its function."""

    def frompyfunc_pullback(f̄):
        return f̄, NoTangent(), NoTangent()

    return np.frompyfunc(func, nin, nout, **keywords), frompyfunc_pullback


def function_of_ufunc(ufunc: np.ufunc) -> Any:
    """The function that `np.frompyfunc` made a ufunc of, which only it refers to; None for others."""
    if ufunc.types != [f"{'O' * ufunc.nin}->{'O' * ufunc.nout}"]:
        return None
    held = [x for x in gc.get_referents(ufunc) if callable(x)]
    return held[0] if len(held) == 1 else None


def each_entry(f, nout, *args):
    """What `np.frompyfunc(f, len(args), nout)` does: an array of objects, or what f gives."""
    arrays = np.broadcast_arrays(*[np.asarray(a) for a in args])
    shape = arrays[0].shape
    results = [f(*[object_at(a, place) for a in arrays]) for place in np.ndindex(shape)]
    if not shape:
        return results[0]
    columns = [[y[i] for y in results] for i in range(nout)] if nout > 1 else [results]
    found = [np.reshape(objects(column), shape) for column in columns]
    return tuple(found) if nout > 1 else found[0]


def object_at(a, place):
    """An entry, as Python's own number."""
    return a[place] if a.dtype.kind == "O" else a[place].item()


def objects(items):
    """An array of objects, which may be arrays."""
    y = np.empty(len(items), object)
    for i, item in enumerate(items):
        y[i] = item
    return y


@rrule(function_of_ufunc)
def _(ufunc: np.ufunc):
    def function_pullback(f̄):
        return (f̄,)

    return function_of_ufunc(ufunc), function_pullback
