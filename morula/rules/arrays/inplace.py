"""Rules of what writes to arrays in place: x[i] = v, x += v, out=, np.add.at, sort, fill, ….

A write keeps what it overwrites, and no more. The pullback puts that back, so that whatever ran
before finds its residuals as they were, and takes the cotangents of what was written from beside
the memory (memory.py). What is written is computed by the rules of the functions that make a new
array: x += v writes x + v. At the end of a reverse pass all memory holds what it did at its
beginning.
Tests: tests/rules/arrays/test_inplace.py, tests/rules/arrays/test_aliases.py
"""

from __future__ import annotations

import array
import math
import mmap
import numbers
import operator
import sys
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from types import MethodDescriptorType, ModuleType
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    UnsupportedError,
    attributes_that_write,
    call,
    changes_in_place,
    deals_in_place,
    is_zero,
    memory,
    names_that_read,
    names_that_write,
    non_differentiable,
    places,
    project_to,
    rrule,
    stays_general,
    unthunk,
)
from morula.rules.arrays.broadcasting import unbroadcast
from morula.rules.arrays.indexing import along
from morula.rules.arrays.memory import (
    address,
    beside_of,
    contents,
    give,
    is_basic,
    is_nothing,
    is_one_entry,
    overlaps,
    owner_of,
    take,
    take_at,
)
from morula.rules.arrays.types import Anything
from morula.rules.numbers import is_inexact

# The in-place operators, and what they write.
OPERATORS = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    operator.ifloordiv: operator.floordiv,
    operator.imod: operator.mod,
    operator.ipow: operator.pow,
    operator.imatmul: operator.matmul,
    operator.iand: operator.and_,
    operator.ior: operator.or_,
    operator.ixor: operator.xor,
    operator.ilshift: operator.lshift,
    operator.irshift: operator.rshift,
}
WRITING = (
    operator.setitem, operator.delitem, np.put, np.place, np.putmask, np.copyto,
    np.put_along_axis, np.fill_diagonal, np.ndarray.fill, np.ndarray.sort, np.ndarray.partition,
    np.ndarray.put, np.ndarray.resize, np.ndarray.setfield, np.random.Generator.shuffle,
    np.random.RandomState.shuffle,
)  # fmt: skip


def refuse(what: str) -> UnsupportedError:
    """The error of a change in place that is not followed."""
    return UnsupportedError(
        f"{what} changes an array in place in a way that differentiated code cannot follow\n"
        f"  {users_line()}\n"
        "  Ways out: make a new array instead, or write its entries by x[i] = v"
    )


def users_line() -> str:
    """Where in the user's source the running code was called."""
    return str(places.place_of(sys._getframe(1)))


non_differentiable(refuse, users_line)

_shown: dict[int, tuple[Any, Callable[[], Any]]] = {}  # memory, by identity; what refuses writes


def note_shown(x: np.ndarray, refusal: Callable[[], Any]) -> None:
    """Note that this shows what something else holds, read-only, as changes of it are not followed."""
    owner = owner_of(x)
    key = id(owner)
    _shown[key] = weakref.ref(owner, lambda _: _shown.pop(key, None)), refusal


def check_writes(x: Any) -> None:
    """An error of Morula's own where an array is read-only in differentiated code only."""
    if isinstance(x, np.flatiter):
        x = x.base
    if isinstance(x, np.ndarray) and not x.flags.writeable:
        found = _shown.get(id(owner_of(x)))
        if found is not None:
            found[1]()


non_differentiable(note_shown, check_writes)


# -- writing and undoing ---------------------------------------------------------------------------


SHARED = (bytearray, array.array, mmap.mmap, memoryview, np.nditer)


def is_of_others(memory: Any) -> bool:
    """Has something that is no array this memory, which may give it to others as well?"""
    return isinstance(memory, SHARED) or hasattr(memory, "__array_interface__")


def note(x: np.ndarray) -> None:
    """Note that an array is written to."""
    owner = owner_of(x)
    if overlaps(x) or not owner.flags.writeable or is_of_others(owner.base):
        raise refuse("a write to an array that overlaps itself, or to memory of something else,")
    memory.write_to(owner)


non_differentiable(note)


def follow_item(x: np.ndarray) -> None:
    """Let the cotangent of an item of np.nditer go to the memory that it is a part of."""
    if isinstance(owner_of(x).base, np.nditer):
        raise refuse("np.nditer with a buffer")
    memory.write_to(owner_of(x))


def undo(x: np.ndarray, index: Any, old: Any) -> None:
    """Put back what a write has overwritten; at the end of the reverse pass it is made good."""
    owner = owner_of(x)
    if not memory.is_put_back(id(owner)):
        now = np.ndarray.copy(owner)

        def make_good() -> None:
            write_anyway(owner, Ellipsis, np.ndarray.reshape(now, owner.shape))

        memory.put_back(id(owner), make_good)
    write_anyway(x, index, old)


def write_anyway(x: np.ndarray, index: Any, values: Any) -> None:
    """`x[index] = values`, also where x has been made read-only since."""
    chain = [y for y in (x, owner_of(x)) if not y.flags.writeable]
    for y in reversed(chain):
        y.flags.writeable = True
    np.ndarray.__setitem__(x, index, values)  # whatever its class has made of it
    for y in chain:
        y.flags.writeable = False


non_differentiable(np.ndarray.setflags)


def seed(x: np.ndarray, x̄: Any) -> None:
    """A cotangent that comes by value for an array that is written to goes to its memory."""
    if not is_zero(x̄):
        project_to(x)(x̄)


def as_operand(v: Any) -> tuple[Any, Callable[[Any], Any]]:
    """A number or an array of what is written, and: its cotangent -> that of what was given."""
    if isinstance(v, (np.ndarray, np.generic, numbers.Number)):
        return v, project_to(v)
    y, back = call(np.asarray, v)
    return y, lambda ȳ: back(ȳ)[1]


def in_shape(v̄: Any, shape: tuple[int, ...]) -> Any:
    """The cotangent of what was broadcast from this shape, which may begin with ones."""
    if type(v̄) is NotKnown:
        return v̄
    core = shape
    while len(core) > np.ndim(v̄):
        core = core[1:]
    v̄ = unbroadcast(v̄, core)
    return v̄ if core == shape else v̄.reshape(shape)


def frozen(index: Any) -> Any:
    """An index that nobody changes later."""
    if type(index) is tuple:
        return tuple([frozen(i) for i in index])
    return np.array(index, None if index else int) if isinstance(index, list) else index


non_differentiable(frozen)


@rrule(operator.setitem, by_identity=True)
@rrule(np.ndarray.__setitem__, by_identity=True)
def _(x: np.ndarray, index: Anything, value: Anything):
    check_writes(x)
    if x.dtype.names is not None and not isinstance(index, str):
        _, back = call(write_records, x, frozen(index), value)
        return None, lambda ȳ: (ZERO, NONE, back(ZERO)[3])
    if isinstance(index, str):
        _, back = call(operator.setitem, x[index], Ellipsis, value)
        return None, lambda ȳ: (ZERO, NONE, back(ZERO)[3])
    index = frozen(index)
    if overlaps(x) and is_basic(index):
        _, back = call(operator.setitem, x[index_of_view(x, index)], Ellipsis, value)
        return None, lambda ȳ: (ZERO, NONE, back(ZERO)[3])
    if is_there_already(x, index, value):
        operator.setitem(x, index, value)
        return None, lambda ȳ: (ZERO, NONE, ZERO)
    if x.dtype.kind == "O" and is_one_entry(x, index):
        return set_object(x, index, value)
    v, project = as_operand(value)
    old = contents(x, index)
    operator.setitem(x, index, value)
    note(x)
    rounded = rounds(x, v)

    def setitem_pullback(ȳ):
        undo(x, index, old)
        v̄ = take_written(x, index)
        if is_zero(v̄):
            return ZERO, NONE, ZERO
        if rounded:
            warn_of_rounding(x, rounded)
            return ZERO, NONE, ZERO
        return ZERO, NONE, project(in_shape(v̄, np.shape(v)))

    return None, setitem_pullback


def set_object(x: np.ndarray, index: Any, value: Any) -> Any:
    """x[index] = value of an array of objects, of which the value becomes one entry as it is."""
    old = contents(x, index)
    operator.setitem(x, index, value)
    note(x)
    project = project_to(value)

    def set_object_pullback(ȳ):
        undo(x, index, old)
        v̄ = take_written(x, index)
        return ZERO, NONE, ZERO if is_nothing(v̄) else project(v̄)

    return None, set_object_pullback


def index_of_view(x: np.ndarray, index: Any) -> Any:
    """The index that gives a part of an array that overlaps itself as a view, also one entry."""
    parts = index if type(index) is tuple else (index,)
    key = parts if Ellipsis in parts else (*parts, Ellipsis)
    if overlaps(x[key]) and x.flags.writeable:
        raise refuse("a write to an array that overlaps itself, or to memory of something else,")
    return key


non_differentiable(index_of_view)


def write_records(x: Any, index: Any, value: Any) -> None:
    """x[index] = value of a structured array: field by field."""
    check_records(x, index, value)
    for i, name in enumerate(x.dtype.names):
        x[name][index] = field_of(value, i)


def field_of(value: Any, i: int) -> Any:
    """What the i-th field becomes: records count their fields, other values are for all of them."""
    if isinstance(value, tuple):
        return value[i]
    if isinstance(value, list):
        return [field_of(item, i) for item in value]
    if isinstance(value, (np.void, np.ndarray)) and value.dtype.names is not None:
        return value[value.dtype.names[i]]
    return value


def check_records(x: np.ndarray, index: Any, value: Any) -> None:
    """An error, NumPy's own, if there are too many fields or too few; can the others be written to?"""
    names, parts = x.dtype.names, index if type(index) is tuple else (index,)
    if names is None or (len(parts) > 1 and any([p is Ellipsis or p is None for p in parts])):
        raise refuse("writing to a structured array, but by one of its fields,")
    given = getattr(getattr(value, "dtype", None), "names", None)
    if len(given if given is not None else value if isinstance(value, tuple) else names) != len(
        names
    ):
        operator.setitem(x, index, value)
        raise refuse("writing records of another number of fields")


def is_in_memory(r: np.void) -> bool:
    """Is it an item of an array, not a copy of one?"""
    return isinstance(r.base, np.ndarray) and r.base.ndim > 0


def fields_of(r: Any) -> Any:
    """What an item of a structured array gives when it is unpacked."""
    return tuple([r[name] for name in r.dtype.names])


def record_view(r: np.void) -> np.ndarray:
    """An item of a structured array as an array without axes, in the memory of that array."""
    if not is_in_memory(r):
        raise refuse("an item of a structured array that is not in its memory")
    owner = owner_of(r.base)
    if not owner.flags.c_contiguous:
        raise refuse("an item of a structured array whose memory has gaps")
    return np.ndarray((), r.dtype, owner, address(r) - address(owner))


non_differentiable(check_records, record_view, is_in_memory)


@rrule(operator.getitem, by_identity=True)
def _(r: np.void, name: str):
    if not is_in_memory(r):
        return r[name], partial(lost, f"item {name!r} of a record")
    field = record_view(r)[name]
    memory.write_to(owner_of(field))  # its cotangents are kept there, as those of any view

    def getitem_pullback(ȳ):
        if not is_zero(ȳ):
            give(field, unthunk(ȳ))
        return ZERO, NONE

    return r[name], getitem_pullback


def lost(what: str, ȳ: Any) -> Any:
    """The pullback of what reads a record that is not in the memory of an array, or all of one."""
    if not is_zero(ȳ):
        raise UnsupportedError(
            f"the gradient runs through {what}, which is a copy of what a structured array holds: "
            'read the fields of the array, s["name"]'
        )
    return ZERO, NONE


@rrule(np.generic.item)
def _(r: np.void):
    return r.item(), partial(lost, "x.item() of a record")


@rrule(operator.setitem, by_identity=True)
def _(r: np.void, name: str, value: Anything):
    _, back = call(operator.setitem, record_view(r)[name], Ellipsis, value)
    return None, lambda ȳ: (ZERO, NONE, back(ZERO)[3])


@rrule(np.void.getfield, by_identity=True)
def _(r: np.void, dtype: Anything, offset=0):
    place = record_view(r).getfield(dtype, offset)
    memory.write_to(owner_of(place))

    def getfield_pullback(ȳ):
        if not is_zero(ȳ):
            give(place, unthunk(ȳ))
        return ZERO, NONE, NONE

    return r.getfield(dtype, offset), getfield_pullback


@rrule(np.void.setfield, by_identity=True)
def _(r: np.void, value: Anything, dtype: Anything, offset=0):
    _, back = call(operator.setitem, record_view(r).getfield(dtype, offset), Ellipsis, value)
    return None, lambda ȳ: (ZERO, back(ZERO)[3], NONE, NONE)


stays_general.append(lambda x: isinstance(x, type) and issubclass(x, np.void))


def is_there_already(x: np.ndarray, index: Any, value: Any) -> bool:
    """Is the value the very part of x that it is assigned to, as in `x[i] += v`?"""
    if (
        not isinstance(value, np.ndarray)
        or not is_basic(index)
        or owner_of(value) is not owner_of(x)
    ):
        return False
    place = x[index]
    return isinstance(place, np.ndarray) and place.__array_interface__ == value.__array_interface__


def rounds(x: np.ndarray, v: Any) -> str:
    """Where a real number is stored in an array of integers; empty where none is."""
    return users_line() if x.dtype.kind in "iu" and is_inexact(np.result_type(v)) else ""


def warn_of_rounding(x: np.ndarray, where: str) -> None:
    """What an array of integers stores has lost its derivative."""
    warnings.warn(
        f"a real number that the gradient depends on is rounded, because it is stored in an array "
        f"of dtype {x.dtype}: the derivative of that is zero\n  {where}",
        stacklevel=2,
    )


non_differentiable(is_there_already, rounds, warn_of_rounding)


NUMBERS = "fciuO"


def take_written(x: np.ndarray, index: Any) -> Any:
    """The cotangents of what was written to x[index]: of entries written twice, of the last."""
    if is_basic(index):
        return take_at(x, index)
    last = last_writes(x.shape, index)
    v̄ = take_at(x, index)
    return v̄ if last is None or is_zero(v̄) else np.where(last, v̄, 0.0)


def last_writes(shape: tuple[int, ...], index: Any) -> np.ndarray | None:
    """Which entries of x[index] are the last ones to go to their place; None: there are no others."""
    if type(index) is np.ndarray and index.ndim and index.dtype.kind in "iu":
        return last_rows(shape, index)
    parts = index if type(index) is tuple else (index,)
    if all(np.asarray(i).dtype == bool for i in parts if isinstance(i, np.ndarray)):
        return None
    places = np.arange(math.prod(shape)).reshape(shape)[index]
    return last_of_each(places)


def last_rows(shape: tuple[int, ...], index: np.ndarray) -> np.ndarray | None:
    """The same for an array of numbers, in which a row may have two."""
    last = last_of_each(np.where(index < 0, index + shape[0], index))
    if last is None:
        return None
    whole = (*index.shape, *shape[1:])
    return np.broadcast_to(last.reshape(*index.shape, *[1] * (len(shape) - 1)), whole)


def last_of_each(places: np.ndarray) -> np.ndarray | None:
    """Where a number stands for the last time, in the order of the entries; None: all differ."""
    _, from_behind = np.unique(places.ravel()[::-1], return_index=True)
    if from_behind.size == places.size:
        return None
    last = np.zeros(places.size, bool)
    last[places.size - 1 - from_behind] = True
    return last.reshape(places.shape)


non_differentiable(last_writes)


# -- in-place operators ----------------------------------------------------------------------


def fits(x: np.ndarray, *operands: Any) -> bool:
    """Has the result of an elementwise function room in x?"""
    try:
        return np.broadcast_shapes(x.shape, *map(np.shape, operands)) == x.shape
    except ValueError:
        return False


non_differentiable(fits)


def overwrite(x: np.ndarray, write: Callable[[], Any]) -> Callable[[], Any]:
    """Let all of x be written to; gives what undoes it and takes the cotangents of what was written.

    The user's own call writes, for its errors and for its last bits.
    """
    check_writes(x)
    old = x.copy()
    write()
    note(x)

    def taken() -> Any:
        undo(x, Ellipsis, old)
        return take(x)

    return taken


def of_plain_arrays(op: Any) -> Any:
    """An operator on arrays as such, whatever their classes say that it is."""

    def on_plain_arrays(x: Any, v: Any) -> Any:
        return op(x.view(np.ndarray), v.view(np.ndarray) if isinstance(v, np.ndarray) else v)

    return on_plain_arrays


OF_PLAIN_ARRAYS = {op: of_plain_arrays(op) for op in OPERATORS.values()}


def operation_on(x: Any, op: Any) -> Any:
    """What an array's in-place operator writes into it: that of arrays asks no class for `op`."""
    name = op.__name__.strip("_")
    asked = is_of_arrays(x, f"__{name}__") or not is_of_arrays(x, f"__i{name}__")
    return op if asked else OF_PLAIN_ARRAYS[op]


def is_of_arrays(x: Any, method: str) -> bool:
    """Has the class of an array this method from NumPy's?"""
    return getattr(type(x), method) is getattr(np.ndarray, method)


non_differentiable(operation_on, is_of_arrays)


def _operator(in_place: Any, op: Any) -> None:
    @rrule(in_place, by_identity=True)
    @rrule(getattr(np.ndarray, f"__{in_place.__name__}__"), by_identity=True)
    def _(x: np.ndarray, v: Anything):
        if not isinstance(v, (np.ndarray, np.generic, int, float, complex, list, tuple)):
            return by_class(in_place, op, x, v)
        v_array, v_back = as_operand(v)
        if op is not operator.matmul and not fits(x, x, v_array):
            in_place(x, v)  # raises
        y, back = call(operation_on(x, op), x, v_array)
        taken = overwrite(x, lambda: in_place(x, v))

        def in_place_pullback(ȳ):
            seed(x, ȳ)
            bars = back(project_to(y)(taken()))
            return bars[1], v_back(bars[2])

        return x, in_place_pullback


def by_class(in_place: Any, op: Any, x: Any, v: Any) -> Any:
    """An operation with an operand of a class that has its own say."""
    if getattr(type(v), "__array_ufunc__", 0) is not None:
        raise refuse(f"{in_place.__name__} of an array and a {type(v).__name__}")
    y, back = call(op, x, v)
    return y, lambda ȳ: back(ȳ)[1:]


for _in_place, _op in OPERATORS.items():
    _operator(_in_place, _op)


@rrule(np.copyto, by_identity=True)
def _(dst: np.ndarray, src: Anything, casting="same_kind", where=True):
    check_writes(dst)
    v, v_back = as_operand(src)
    masked = where is not True
    some_back = to_masked(v, where, dst.shape) if masked else None
    mask = np.array(np.broadcast_to(where, dst.shape)) if masked else Ellipsis
    old = contents(dst, mask)
    np.copyto(dst, src, casting, where)
    note(dst)
    rounded = rounds(dst, v)

    def copyto_pullback(ȳ):
        undo(dst, mask, old)
        c = take_at(dst, mask)
        if rounded and not is_zero(c):
            warn_of_rounding(dst, rounded)
            c = ZERO
        if is_zero(c):
            return ZERO, ZERO, NONE, NONE
        return ZERO, v_back(some_back(c) if masked else in_shape(c, np.shape(v))), NONE, NONE

    return None, copyto_pullback


def to_masked(v: Any, where: Any, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """From the cotangent of what is taken of v, in this shape, where a mask holds, to that of v."""
    wide, wide_back = call(np.broadcast_to, v, shape)
    _, some_back = call(operator.getitem, wide, np.array(np.broadcast_to(where, shape)))
    return lambda c: wide_back(some_back(c)[1])[1]


# -- functions and methods, by what they write where -----------------------------------------------


def at_places(x: np.ndarray, places: np.ndarray, values: Any) -> Callable[[Any], Any]:
    """Write values, again and again as long as there are places, to these entries of x, counted flat.

    Gives the pullback: -> the cotangent of the values.
    """
    v, v_back = as_operand(values)
    flat, flat_back = call(np.ravel, v)
    taken: Any = np.arange(len(places)) % max(len(flat), 1)
    index: Any = np.unravel_index(places, x.shape) if x.ndim else ()
    some, some_back = call(operator.getitem, flat, taken if x.ndim else taken[-1])
    _, back = call(operator.setitem, x, index, some)
    return lambda ȳ: v_back(flat_back(some_back(back(ZERO)[3])[1])[1])


@rrule(np.put, by_identity=True)
@rrule(np.ndarray.put, by_identity=True)
def _(a: np.ndarray, ind: Anything, v: Anything, mode="raise"):
    places = np.ravel(ind).astype(int)
    if mode == "raise":
        np.take(a, places)  # raises, if one is out of bounds
    places = np.clip(places, 0, a.size - 1) if mode == "clip" else places % a.size
    if not np.size(v):
        return None, lambda ȳ: (ZERO, NONE, ZERO, NONE)
    back = at_places(a, places, v)
    return None, lambda ȳ: (ZERO, NONE, back(ZERO), NONE)


def require_safe(write: Any, a: np.ndarray, values: Any) -> None:
    """Raise what a function raises that does not write such values to an array of this dtype."""
    write(np.empty(1, a.dtype), np.ones(1, bool), values)


non_differentiable(require_safe)


@rrule(np.place, by_identity=True)
def _(arr: np.ndarray, mask: Anything, vals: Anything):
    places = np.flatnonzero(np.asarray(mask, bool))
    if not len(places) or not np.size(vals) or np.size(mask) != arr.size:
        np.place(arr, mask, vals)  # does nothing, or raises
        return None, lambda ȳ: (ZERO, NONE, ZERO)
    require_safe(np.place, arr, vals)
    back = at_places(arr, places, vals)
    return None, lambda ȳ: (ZERO, NONE, back(ZERO))


@rrule(np.putmask, by_identity=True)
def _(a: np.ndarray, mask: Anything, values: Anything):
    places = np.flatnonzero(np.asarray(mask, bool))
    if not len(places) or not np.size(values) or np.size(mask) != a.size:
        np.putmask(a, mask, values)
        return None, lambda ȳ: (ZERO, NONE, ZERO)
    require_safe(np.putmask, a, values)
    v, v_back = as_operand(values)
    flat, flat_back = call(np.ravel, v)
    some, some_back = call(operator.getitem, flat, places % len(flat))
    back = at_places(a, places, some)
    return None, lambda ȳ: (ZERO, NONE, v_back(flat_back(some_back(back(ZERO))[1])[1]))


@rrule(np.put_along_axis, by_identity=True)
def _(arr: np.ndarray, indices: Anything, values: Anything, axis: Anything):
    np.take_along_axis(arr, np.asarray(indices), axis)  # raises where there are no such places
    where = along(arr.shape, np.asarray(indices), axis)
    if axis is None:
        where = np.unravel_index(np.asarray(indices), arr.shape)
    _, back = call(operator.setitem, arr, where, values)
    return None, lambda ȳ: (ZERO, NONE, back(ZERO)[3], NONE)


@rrule(np.fill_diagonal, by_identity=True)
def _(a: np.ndarray, val: Anything, wrap=False):
    places = np.arange(a.size).reshape(a.shape)
    np.fill_diagonal(places, -1, wrap)
    back = at_places(a, np.flatnonzero(places.reshape(-1) == -1), val)
    return None, lambda ȳ: (ZERO, back(ZERO), NONE)


@rrule(np.ndarray.fill, by_identity=True)
def _(x: np.ndarray, value: Anything):
    if x.dtype.kind == "O":
        back = call(into_each, x, value)[1]
        return None, lambda ȳ: (ZERO, back(ZERO)[2])
    require_one(x, value)
    _, back = call(operator.setitem, x, Ellipsis, value)
    return None, lambda ȳ: (ZERO, back(ZERO)[3])


def require_one(x: np.ndarray, value: Any) -> None:
    """Raise what NumPy raises where an array is filled with several numbers."""
    np.empty((), x.dtype).fill(value)


non_differentiable(require_one)


def into_each(x, value):
    """The value itself as every entry, though it may be an array."""
    for place in np.ndindex(x.shape):
        x[place] = value


@rrule(np.ndarray.sort, by_identity=True)
def _(x: np.ndarray, axis=-1, kind=None):
    _, back = call(np.sort, x, axis, kind)
    taken = overwrite(x, lambda: x.sort(axis, kind))
    return None, lambda ȳ: (back(taken())[1], NONE, NONE)


@rrule(np.ndarray.partition, by_identity=True)
def _(x: np.ndarray, kth: Anything, axis=-1):
    _, back = call(np.partition, x, kth, axis)
    taken = overwrite(x, lambda: x.partition(kth, axis))
    return None, lambda ȳ: (back(taken())[1], NONE, NONE)


@rrule(operator.delitem)
def _(x: np.ndarray, index: Anything):
    operator.delitem(x, index)  # raises
    return None, lambda ȳ: (ZERO, NONE)


@rrule(np.ndarray.setfield, by_identity=True)
def _(x: np.ndarray, value: Anything, dtype: Anything, offset=0):
    _, back = call(operator.setitem, field_at(x, dtype, offset), Ellipsis, value)
    return None, lambda ȳ: (ZERO, back(ZERO)[3], NONE, NONE)


def field_at(x: np.ndarray, dtype: Any, offset: int) -> np.ndarray:
    """A field of records, or the numbers or parts of numbers at an offset, in their memory."""
    if x.dtype.names is None and np.dtype(dtype) not in (x.dtype, x.real.dtype):
        raise refuse(f"x.setfield(...) of {np.dtype(dtype)} in an array of {x.dtype}")
    return x.getfield(dtype, offset)


non_differentiable(field_at)


@rrule(np.ufunc.at, by_identity=True)
def _(ufunc: np.ufunc, x: np.ndarray, index: Anything, *operands: Anything):
    check_writes(x)
    index = frozen(index)
    if ufunc in (np.add, np.subtract) and len(operands) == 1:
        return added_at(ufunc, x, index, operands[0])
    if x.dtype.kind == "b":
        return truths_at(ufunc, x, index, operands)
    if last_writes(x.shape, index) is not None:
        _, back = call(repeated_at, ufunc, x, index, *operands)
        return None, lambda ȳ: back(ȳ)[1:]
    old, old_back = call(operator.getitem, x, index)
    y, back = call(ufunc, old, *operands)
    _, set_back = call(operator.setitem, x, index, y)

    def at_pullback(ȳ):
        bars = back(set_back(ZERO)[3])
        old_back(bars[1])
        return (NONE, ZERO, NONE, *bars[2:])

    return None, at_pullback


def repeated_at(ufunc: Any, x: Any, index: Any, *operands: Any) -> None:
    """`ufunc.at(x, index, …)` where a place comes more than once: in rounds in which none does."""
    places, rounds = rounds_of(x.shape, index)
    given = [np.ravel(np.broadcast_to(np.asarray(v), places.shape)) for v in operands]
    for chosen in rounds:
        here = np.unravel_index(np.ravel(places)[chosen], x.shape)
        x[here] = ufunc(x[here], *[v[chosen] for v in given])


def rounds_of(shape: tuple[int, ...], index: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """The places that an index means, counted, and which of them are the first, second, … of one."""
    places = np.arange(int(np.prod(shape))).reshape(shape)[index]
    flat = np.ravel(places)
    order = np.argsort(flat, kind="stable")
    first = np.searchsorted(flat[order], flat[order])
    number = np.empty(flat.size, int)
    number[order] = np.arange(flat.size) - first
    by_number = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number))
    return places, np.split(by_number, ends[:-1])


non_differentiable(rounds_of)


def added_at(ufunc: np.ufunc, x: np.ndarray, index: Any, v: Any) -> Any:
    """`np.add.at(x, index, v)`: what is added has the cotangents of where it went."""
    v_array, project = as_operand(v)
    old = contents(x, index)
    ufunc.at(x, index, v)
    note(x)

    def at_pullback(ȳ):
        undo(x, index, old)
        v̄ = in_shape(given_at(x, index), np.shape(v_array))
        return NONE, ZERO, NONE, project(-v̄ if ufunc is np.subtract else v̄)

    return None, at_pullback


def truths_at(ufunc: np.ufunc, x: np.ndarray, index: Any, operands: tuple[Any, ...]) -> Any:
    """`np.logical_or.at(x, index, v)`: truth values, which have no cotangents."""
    old = contents(x, index)
    ufunc.at(x, index, *operands)
    note(x)

    def truths_pullback(ȳ):
        undo(x, index, old)
        return (NONE, ZERO, *[NONE] * (1 + len(operands)))

    return None, truths_pullback


def given_at(x: np.ndarray, index: Any) -> Any:
    """The cotangents of x[index], which stay."""
    return contents(beside_of(x)[0], index)


@rrule(operator.setitem)
def _(x: np.void, index: Anything, value: Anything):
    raise refuse(f"x[i] = v of a {type(x).__name__}")


_DIRECT = [getattr(np.ndarray, f"__{f.__name__}__") for f in (*OPERATORS, *WRITING[:2])]
_WRITING = {id(f) for f in (*OPERATORS, *WRITING, *_DIRECT)}
HOLDERS = (np.ndarray, np.flatiter, np.nditer, memoryview)


def writes_to_arrays(fn, types, n_args, keywords):
    """May such a call write to an array? Then the compiled path leaves it to these rules."""
    if fn is np.ufunc.at or fn is np.nditer:
        return True  # the items of np.nditer are views
    if fn is setattr:
        return any(issubclass(t, np.ndarray) for t in types)
    return id(fn) in _WRITING and (not types or any(issubclass(t, HOLDERS) for t in types))


changes_in_place.append(writes_to_arrays)


def is_of_numpy(x: Any) -> bool:
    """Is it a callable or a type of NumPy's, or a module of it?"""
    if isinstance(x, ModuleType):
        return x.__name__.split(".")[0] == "numpy"
    owner = getattr(x, "__objclass__", x)
    module = str(getattr(owner, "__module__", None))
    return isinstance(x, np.ufunc) or module.split(".")[0] == "numpy"


deals_in_place.append(is_of_numpy)
names_that_write.update(
    ("out", "at", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")
)
attributes_that_write.update(("real", "imag", "flat"))
ANY_NUMBER = 10**9
NEVER_WRITING = """
    reshape ravel flatten copy astype tolist item transpose squeeze swapaxes repeat diagonal nonzero
    searchsorted view conjugate argsort tobytes
"""
names_that_read.update(dict.fromkeys(NEVER_WRITING.split(), ANY_NUMBER))
for _type in (str, bytes, list, tuple, dict, set, frozenset):
    for _name, _value in vars(_type).items():
        if type(_value) is MethodDescriptorType and not hasattr(np.ndarray, _name):
            names_that_read[_name] = ANY_NUMBER
WRITING_TO_AN_ARGUMENT = {  # how many others come before it
    **dict.fromkeys(("max", "min", "argmax", "argmin", "all", "any", "dot", "round", "ptp"), 1),
    **dict.fromkeys(("sum", "prod", "mean", "std", "var", "cumsum", "cumprod", "clip", "take"), 2),
    "trace": 4,
}
names_that_read.update(WRITING_TO_AN_ARGUMENT)
del _type, _name, _value
