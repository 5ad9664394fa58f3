"""Tangents beside memory that is written to, and reading them; writing.py has what writes.

Tangents of arrays go by value. Once some memory is written to, the tangents of what was written lie
beside it, in the same places, for all views of it (docs/mutation.md has the picture):

    x[i] = v:       what lies beside x at i becomes v̇, and counts as written
    y = f(x):       ẋ is what lies beside x where that was written to, else what came by value

for an entry that nobody has written to has the tangent that it had when its array was made. Where
tangents are not arrays (series, sets of indices) there is a layer of arrays for each of their parts.
Tests: tests/mixed_mode/test_inplace.py
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from morula.core.cotangents import ZERO, is_zero
from morula.core.registry import non_differentiable
from morula.rules.arrays import inplace
from morula.rules.arrays.memory import address, bounds, owner_of, view
from morula.rules.calls import entry

Args = tuple[Any, ...]


class Layers:
    """The tangents of the items in some memory, an array for each layer, and which were written to.

    Of a complex number the real and the imaginary part may be written to by themselves.
    """

    __slots__ = ("dtype", "known", "layers", "start", "step")

    def __init__(self, run: Any, owner: np.ndarray) -> None:
        start, stop = bounds(owner)
        self.start, self.dtype = start, owner.dtype
        self.step = owner.dtype.itemsize // (2 if owner.dtype.kind == "c" else 1)
        kind = owner.dtype
        if kind.kind == "V" or kind == np.uint8:  # records, or what lies beside them: by bytes
            self.step, kind = 1, np.dtype(np.uint8)
        n = (stop - start) // kind.itemsize
        self.layers = [run.empty_layer((n,), kind) for _ in range(run.count_of_layers())]
        self.known = np.zeros((stop - start) // self.step, bool)

    def at(self, x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The tangents of a view in each layer, and which of its entries, or parts, were written."""
        offset = address(x) - self.start if x.size else 0
        layers = self.layers
        if x.dtype.kind in "fc" and layers[0].dtype == np.uint8:
            return self.at_field(x, offset)
        if x.dtype != self.dtype:
            if (
                self.dtype.kind != "c"
                or x.dtype.itemsize != self.step
                or layers[0].dtype != self.dtype
            ):
                raise inplace.refuse(
                    f"writing to memory that is an array of dtype {x.dtype} and one of {self.dtype}"
                )
            layers = [layer.view(x.dtype) for layer in layers]
        parts = [view(layer, x, offset, x.dtype.itemsize) for layer in layers]
        known = [view(self.known, x, offset, self.step)] if x.size else [np.zeros(x.shape, bool)]
        if x.dtype.kind == "c" and x.size:
            known.append(view(self.known, x, offset + self.step, self.step))
        return parts, known

    def at_field(self, x: np.ndarray, offset: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The same of a part of records."""
        parts = [np.ndarray(x.shape, x.dtype, layer, offset, x.strides) for layer in self.layers]
        halves = range(0, x.itemsize, x.itemsize // 2 if x.dtype.kind == "c" else x.itemsize)
        if not x.size:
            return parts, [np.zeros(x.shape, bool) for _ in halves]
        return parts, [view(self.known, x, offset + half, 1) for half in halves]


def layers_of(run: Any, x: np.ndarray) -> Layers:
    """What lies beside the memory of an array, made if there is nothing yet."""
    owner = owner_of(x)
    found = run.written.get(id(owner))
    if found is None:
        if len(run.written) >= run.limit:
            forget_the_dead(run)
        found = run.written[id(owner)] = (owner, Layers(run, owner))
    return found[1]


def places_of(run: Any, x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The tangents of an array that is written to, to be written to as well."""
    return layers_of(run, x).at(x)


def forget_the_dead(run: Any) -> None:
    """Drop what lies beside memory that nothing else refers to."""
    for key in list(run.written):
        if sys.getrefcount(run.written[key][0]) <= HELD:
            del run.written[key]
    run.limit = max(run.limit, 2 * len(run.written))


HELD = 2  # references to an owner that the table alone holds, and the one that asks


def is_followed(run: Any, x: Any) -> bool:
    """Do tangents of this array lie beside its memory?"""
    return isinstance(x, np.ndarray) and id(owner_of(x)) in run.written


non_differentiable(layers_of, places_of, is_followed, forget_the_dead)

# -- reading ---------------------------------------------------------------------------------------


def current(run: Any, x: Any, ẋ: Any) -> Any:
    """The tangent of a value, of which that which came by value may be older than what was written."""
    if type(x) is tuple:
        if not any(holds_followed(run, v) for v in x):
            return ẋ
        return tuple([current(run, v, entry(ẋ, i)) for i, v in enumerate(x)])
    if not is_followed(run, x):
        return ẋ
    return item_of(run, x, ẋ, Ellipsis)


def holds_followed(run: Any, x: Any) -> bool:
    """Is it an array that is written to, or a tuple that holds one?"""
    if type(x) is tuple:
        return any(holds_followed(run, v) for v in x)
    return is_followed(run, x)


non_differentiable(holds_followed)


def item_of(run: Any, x: np.ndarray, ẋ: Any, index: Any) -> Any:
    """The tangent of x[index]."""
    if x.dtype.names is not None:
        return records_of(run, x, ẋ, index)
    if x.dtype.kind not in "fcO" and owner_of(x).dtype.names is not None:
        return ZERO
    parts, known = places_of(run, x)
    where = [mask[index] for mask in known]
    if not np.any(where):
        return ẋ if index is Ellipsis or is_zero(ẋ) else ẋ[index]
    if np.all(where):
        return run.of_layers([copied(part[index]) for part in parts])
    old = [ZERO] * len(parts) if is_zero(ẋ) else run.layers(ẋ)
    found = []
    for part, c in zip(parts, old, strict=True):
        base = run.empty_layer(x.shape, x.dtype) if is_zero(c) else c
        found.append(chosen(where, part[index], base[index]))
    return run.of_layers(found)


def refuse_records(run: Any, fn: Any, args: Args) -> None:
    """An error if a call reads records as a whole whose fields have tangents."""
    for x in args:
        if isinstance(x, np.ndarray) and fn in (np.ndarray.copy, np.ndarray.reshape):
            continue
        is_record = isinstance(x, np.void) and isinstance(x.base, np.ndarray)
        whole = x.base if is_record else x
        if (
            isinstance(whole, np.ndarray)
            and whole.dtype.names is not None
            and is_followed(run, whole)
        ):
            raise inplace.refuse(f"{getattr(fn, '__name__', fn)} of records, in forward mode,")


non_differentiable(refuse_records)


def records_of(run: Any, x: np.ndarray, ẋ: Any, index: Any) -> Any:
    """The same of a structured array: of a field, or of records."""
    if run.primitive is not None:
        raise inplace.refuse("writing to a structured array, in search of a pattern or a series,")
    if isinstance(index, str):
        return item_of(run, x[index], ZERO if is_zero(ẋ) else ẋ[index], Ellipsis)
    names = [name for name in x.dtype.names or () if x[name].dtype.kind in "fcV"]
    fields = [item_of(run, x[k], ZERO if is_zero(ẋ) else ẋ[k], Ellipsis) for k in names]
    if all(map(is_zero, fields)):
        return ZERO

    def records(*fields: Any) -> Any:
        found = np.zeros(x.shape, x.dtype)
        for name, c in zip(names, fields, strict=True):
            if not is_zero(c):
                found[name] = c
        return found[index]

    return run.each(records, *fields)


def chosen(where: Any, new: Any, old: Any) -> Any:
    """The new tangents where there are any, of real and imaginary parts by themselves."""
    if len(where) == 1:
        return np.where(where[0], new, old)
    found = np.array(old)
    found.real[...] = np.where(where[0], np.real(new), np.real(old))
    found.imag[...] = np.where(where[1], np.imag(new), np.imag(old))
    return found[()] if np.ndim(new) == 0 and not isinstance(new, np.ndarray) else found


def copied(x: Any) -> Any:
    """The same in memory of its own."""
    return x.copy() if isinstance(x, np.ndarray) else x
