"""Rules of `x.flat`: its items, its entries by an index, the array made of it.

An iterator has an adjoint object: a table of what came back, by the number of the entry, and for all
entries at once under None. Where the attribute was read, it goes back to the array.
Tests: tests/rules/arrays/test_flat.py
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    NoTangent,
    adjoint_object,
    adjoint_of,
    collector,
    is_zero,
    materialise,
    on_entry,
    project_to,
    projector,
    rrule,
    unthunk,
)
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.types import Anything
from morula.rules.iteration import Entry, originates
from morula.rules.objects import BY_IDENTITY, constant_attribute, give

adjoint_object.register(np.flatiter, lambda x: {})
projector.register(np.flatiter, lambda x: lambda x̄: ZERO)
collector.register(np.flatiter, lambda y: None)
on_entry.register(np.flatiter, lambda x, known: x)
materialise.register(np.flatiter, lambda x, x̄, of: None)


@originates(np.flatiter)
def _(iterator: Any, item: Any, skip: int) -> Any:
    return Entry(iterator, iterator.index - 1 - skip)


def flat_of(x: Any) -> Any:
    """`x.flat`: what came back to the iterator goes to the array."""
    y = x.flat
    return y, lambda ȳ: project_to(x)(from_flat(y, x))


BY_IDENTITY[np.ndarray, "flat"] = flat_of
for _name in ("coords", "index"):
    BY_IDENTITY[np.flatiter, _name] = constant_attribute(_name)


def from_flat(iterator: Any, x: Any) -> Any:
    """The cotangent of the array whose `flat` this is."""
    bars = adjoint_of(iterator)
    whole = unthunk(bars.pop(None, ZERO))
    single = {i: unthunk(c) for i, c in bars.items()}
    bars.clear()
    if not single:
        return ZERO if is_zero(whole) else np.reshape(whole, x.shape)
    x̄ = scatter(np.stack(list(single.values())), np.array(list(single)), (x.size,), x.dtype)
    return np.reshape(x̄ if is_zero(whole) else x̄ + whole, x.shape)


@rrule(operator.getitem, by_identity=True)
@rrule(np.flatiter.__getitem__, by_identity=True)
def _(x: np.flatiter, index: Anything):
    shape = (len(x),)
    dtype = x.base.dtype

    def getitem_pullback(ȳ):
        if not is_zero(ȳ):
            give(adjoint_of(x), None, scatter(ȳ, index, shape, dtype))
        return NoTangent(), NoTangent()

    return x[index], getitem_pullback


def _as_array(primal):
    @rrule(primal, by_identity=True)
    def _(x: np.flatiter, dtype=None):
        y = primal(x) if dtype is None else primal(x, dtype)

        def flat_pullback(ȳ):
            if y.dtype.kind in "fc":
                give(adjoint_of(x), None, ȳ)
            return NoTangent(), NoTangent()

        return y, flat_pullback


for _primal in (np.array, np.asarray, np.asanyarray, np.flatiter.copy, np.flatiter.__array__):
    _as_array(_primal)
