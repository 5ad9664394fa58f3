"""Forward mode of what writes to arrays: x[i] = v, x += v, out=, np.add.at, sort, ….

The user's own operation writes the numbers; the tangents that it writes beside the memory (memory.py)
are those of the operation that makes a new array, or go where the numbers go by the same operation.
Tests: tests/mixed_mode/test_inplace.py
"""

from __future__ import annotations

import array
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.cotangents import ZERO, is_zero
from morula.core.registry import non_differentiable
from morula.mixed_mode.memory import current, is_followed, places_of
from morula.mixed_mode.push import Both, on_write, push, pushes, split_call
from morula.mixed_mode.structures import drain
from morula.mixed_mode.tangents import Pass, all_zero, by_value, reached, together, zeros_like
from morula.rules import functional, packed
from morula.rules.arrays import construction, flat, inplace
from morula.rules.arrays.draws import FILLING, NO_SHAPE, permuted_into, place_of_shape, shuffle
from morula.rules.arrays.memory import is_basic, overlaps, owner_of
from morula.rules.arrays.outs import has_out, outs_of, parted, where_of
from morula.rules.calls import entry, spelling_for

Args = tuple[Any, ...]
Names = tuple[str, ...]
INEXACT = "fcO"

# -- writing ---------------------------------------------------------------------------------------


def check(x: np.ndarray) -> None:
    """Can writes to this array be followed?"""
    owner = owner_of(x)
    if overlaps(x) or inplace.is_of_others(owner.base):
        raise inplace.refuse(
            "a write to an array that overlaps itself, or to memory of something else,"
        )


non_differentiable(check)


def refuse_parts_of_numbers(x: np.ndarray) -> None:
    """An error if an array without tangents shows the memory of one that may have some."""
    dtype = owner_of(x).dtype
    if dtype.kind in INEXACT:
        raise inplace.refuse(
            f"writing to memory that is an array of dtype {x.dtype} and of {dtype}"
        )


non_differentiable(refuse_parts_of_numbers)


def put(run: Pass, x: np.ndarray, ẋ: Any, v: Any, v̇: Any, write: Any) -> None:
    """Write tangents beside an array as `write(array, values)` writes the numbers."""
    if x.dtype.kind not in INEXACT:
        refuse_parts_of_numbers(x)
        if not is_zero(v̇):
            inplace.warn_of_rounding(x, inplace.users_line())
        return
    if is_zero(v̇) and is_zero(ẋ) and not is_followed(run, x):
        return
    check(x)
    parts, known = places_of(run, x)
    given = [ZERO] * len(parts) if is_zero(v̇) else run.layers(v̇)
    for part, c in zip(parts, given, strict=True):
        write(part, as_layer(run, v, c, part))
    for mask in known:
        write(mask, np.ones(np.shape(v), bool) if np.ndim(v) else True)


def as_layer(run: Pass, v: Any, c: Any, part: np.ndarray) -> Any:
    """Tangents of the values that are written, as they are written."""
    if is_zero(c):
        c = run.empty_layer(np.shape(v), part.dtype)
    if part.dtype == object and isinstance(c, np.ndarray) and c.ndim == 0:
        return c[()]  # the set itself: an array of it would be stored as an entry
    return np.real(c) if np.iscomplexobj(c) and not np.iscomplexobj(part) else c


def reshape(run: Pass, x: np.ndarray, ẋ: Any, change: Callable[[], Any]) -> None:
    """`x.shape = shape`: its tangent, which has come by value, lies beside it from now on."""
    ẋ = current(run, x, ẋ)
    change()
    put_all(run, x, ẋ, ZERO if is_zero(ẋ) else run.each(lambda c: np.reshape(c, x.shape), ẋ))


def put_all(run: Pass, x: np.ndarray, ẋ: Any, v̇: Any) -> None:
    """Write the tangents of all entries of an array."""
    put(run, x, ẋ, x, v̇, fill)


def fill(x: np.ndarray, values: Any) -> None:
    """Let an array hold these values."""
    x[...] = values


def as_operand(run: Pass, v: Any, v̇: Any) -> Both:
    """What is written as a number or an array."""
    if isinstance(v, (np.ndarray, np.generic, numbers.Number)):
        return v, v̇
    return push(run, np.asarray, ZERO, (v,), (v̇,))


def written(run: Pass, fn: Any, args: Args, tangents: Args, keywords: Names) -> Any:
    """A call that writes to an array, and what that does to tangents."""
    if fn is np.ndarray.resize:
        flat.check_size(args[0], args[1 : len(args) - len(keywords)])
    if fn is not np.nditer:  # which writes nothing yet
        inplace.check_writes(args[1 if fn is np.ufunc.at else 0])
    if nothing_enters(run, fn, args, tangents):
        return split_call(fn, args, keywords), ZERO
    if fn is np.nditer:
        return entries(run, args, tangents, keywords)
    if fn is np.random.Generator.shuffle:
        return push(run, shuffle, ZERO, args, tangents, keywords)
    if id(fn) in DRAWS:
        return drawn(run, fn, args, tangents, keywords)
    if has_out(fn, len(args) - len(keywords), keywords):
        return into_out(run, fn, args, tangents, keywords)
    in_place = OPERATORS.get(id(fn))
    if in_place is not None:
        return by_operator(run, fn, in_place, args, tangents)
    meaning = WRITERS.get(id(fn))
    spelling = spelling_of(fn, args, keywords) if keywords else None
    if spelling is not None:
        order = [*spelling[0], *[i for _, i in spelling[1]]]
        args, tangents = [tuple([xs[i] for i in order]) for xs in (args, tangents)]
        keywords = tuple([name for name, _ in spelling[1]])
    if meaning is None or not isinstance(args[1 if fn is np.ufunc.at else 0], np.ndarray):
        raise inplace.refuse(f"{getattr(fn, '__name__', fn)}, in forward mode,")
    named = dict(zip(keywords, args[len(args) - len(keywords) :], strict=True))
    dots = dict(zip(keywords, tangents[len(args) - len(keywords) :], strict=True))
    n = len(args) - len(keywords)
    return meaning(run, fn, list(args[:n]), list(tangents[:n]), named, dots)


def nothing_enters(run: Pass, fn: Any, args: Args, tangents: Args) -> bool:
    """Is all that is written constant, and all that it is written over?"""
    if not all_zero(tangents) or any([is_followed(run, x) for x in args]):
        return False
    held = [x for x in args if isinstance(x, (list, tuple))]
    if not all_zero([by_value(run, x, ZERO) for x in held]):
        return False
    places = args[fn is np.ufunc.at]
    if isinstance(places, np.ndarray) and places.dtype.kind == "O":
        return True  # objects have their tangents wherever they are
    return not reached(run, args)


def spelling_of(fn: Any, args: Args, keywords: Names) -> Any:
    """How a rule of `fn` would have the call spelt."""
    n = len(args) - len(keywords)
    return spelling_for(fn, args[:n], dict(zip(keywords, args[n:], strict=True)))


non_differentiable(nothing_enters, spelling_of)


def into_out(run: Pass, fn: Any, args: Args, tangents: Args, keywords: Names) -> Any:
    """A call with out=: the call without, and its results written where they go."""
    parts = parted(fn, len(args) - len(keywords), keywords)
    assert parts is not None
    outs = outs_of(parts, args)
    for x in outs:
        inplace.check_writes(x)
    mask = where_of(fn, {k: args[i] for k, i in parts.names})
    rest = [(k, i) for k, i in parts.names if k != "where" or not isinstance(fn, np.ufunc)]
    values, dots = [
        [xs[i] for i in (*parts.positions, *[i for _, i in rest])] for xs in (args, tangents)
    ]
    names = tuple([k for k, _ in rest])
    with np.errstate(all="ignore"):  # the user's own call warns, of what the mask selects
        y, ẏ = push(run, fn, ZERO, tuple(values), tuple(dots), names)
    before = [ZERO if x is Ellipsis else current(run, x, ZERO) for x in outs]
    result = split_call(fn, args, keywords)
    several = isinstance(y, tuple)
    found = [entry(ẏ, i) for i in range(len(y))] if several else [ẏ]
    for i, x in enumerate(outs):
        if x is None or x is Ellipsis:
            continue
        old = out_tangent(args, tangents, x, before[i])
        put(run, x, old, y[i] if several else y, found[i], masked_fill(mask))
        found[i] = current(run, x, old)
    if len(outs) == 1 and outs[0] is Ellipsis:  # the result as an array, also where it has no axes
        return result, ẏ if is_zero(ẏ) else push(run, np.asarray, ZERO, (y,), (ẏ,))[1]
    return result, together(found) if several else found[0]


def drawn(run: Pass, fn: Any, args: Args, tangents: Args, keywords: Names) -> Any:
    """A draw that fills an array: it happens once, and has no tangent."""
    if fn is np.random.Generator.permuted:
        return push(run, permuted_into, ZERO, args, tangents, keywords)
    parts = parted(fn, len(args) - len(keywords), keywords)
    shape = place_of_shape(fn, len(args) - len(keywords), keywords)
    if shape is not None and not is_zero(tangents[shape]):
        NO_SHAPE.refuse()
    result = split_call(fn, args, keywords)
    x = None if parts is None else outs_of(parts, args)[0]
    if x is not None:
        put_all(run, x, out_tangent(args, tangents, x, ZERO), ZERO)
    return result, ZERO


DRAWS = {id(fn) for fn in (*FILLING, np.random.Generator.permuted)}


def out_tangent(args: Args, tangents: Args, x: Any, default: Any) -> Any:
    """The tangent of an array that is written to, as it came."""
    for a, ȧ in zip(args, tangents, strict=True):
        if a is x:
            return ȧ
        if isinstance(a, tuple) and not is_zero(ȧ):
            for v, c in zip(a, ȧ, strict=True):
                if v is x:
                    return c
    return default


def masked_fill(mask: Any) -> Any:
    """Writing where a mask holds."""
    if mask is True:
        return fill

    def write(x: np.ndarray, values: Any) -> None:
        np.copyto(x, values, where=mask)

    return write


def by_operator(run: Pass, fn: Any, op: Any, args: Args, tangents: Args) -> Any:
    """x += v: x + v, written over x."""
    x, v = args
    _, ẏ = push(run, inplace.operation_on(x, op), ZERO, args, tangents)
    found = fn(x, v)
    if found is not x:
        return found, ẏ
    put_all(run, x, tangents[0], ẏ)
    return x, ẏ


# -- what each of the others writes ----------------------------------------------------------------


def item(run: Pass, fn: Any, args: Any, dots: Any, named: Any, named_dots: Any) -> Both:
    """x[i] = v."""
    x, index, value = args
    if isinstance(index, str):
        part, ṗart = push(run, operator.getitem, ZERO, (x, index), (dots[0], ZERO))
        return item(run, operator.setitem, [part, Ellipsis, value], [ṗart, ZERO, dots[2]], {}, {})
    if x.dtype.kind == "V":
        records = (x, inplace.frozen(index), value)
        return push(run, inplace.write_records, ZERO, records, tuple(dots))
    index = inplace.frozen(index)
    if x.dtype.kind == "O" and is_entry(x, index):
        return object_entry(run, x, dots[0], index, value, dots[2])
    if overlaps(x) and is_basic(index):
        given = (x, inplace.index_of_view(x, index))
        part, ṗart = push(run, operator.getitem, ZERO, given, (dots[0], ZERO))
        return item(run, fn, [part, Ellipsis, value], [ṗart, ZERO, dots[2]], {}, {})
    v, v̇ = as_operand(run, value, dots[2])
    if inplace.is_there_already(x, index, v):
        return operator.setitem(x, index, value), ZERO
    operator.setitem(x, index, value)
    is_matrix = isinstance(x, np.matrix)  # of which columns have two dimensions

    def write(part: np.ndarray, values: Any) -> None:
        part = part.view(np.matrix) if is_matrix else part
        part[index] = values

    put(run, x, dots[0], v, v̇, write)
    return None, ZERO


def is_entry(x: np.ndarray, index: Any) -> bool:
    """Is x[index] one entry?"""
    return not isinstance(np.broadcast_to(True, x.shape)[index], np.ndarray)


non_differentiable(is_entry)


def object_entry(run: Pass, x: np.ndarray, ẋ: Any, index: Any, value: Any, v̇: Any) -> Both:
    """x[i] = value of an array of objects: whatever the value is, it becomes one entry."""
    operator.setitem(x, index, value)
    if is_zero(v̇):
        zero = zeros_like(value)
        v̇ = run.of_layers([0 if is_zero(zero) else zero] * run.count_of_layers())

    def write(part: np.ndarray, dot: Any) -> None:
        part[index] = dot

    put(run, x, ẋ, 0, v̇, write)
    return None, ZERO


@pushes(operator.setitem)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    places, index, value = args
    if isinstance(places, np.void) and isinstance(index, str):
        field = inplace.record_view(places)[index]
        return item(
            run, operator.setitem, [field, Ellipsis, value], [UNKNOWN, ZERO, tangents[2]], {}, {}
        )
    if isinstance(places, np.nditer):
        now: Any = places[index]
        fn = flat.into_places if isinstance(now, tuple) else fill
        return push(run, fn, ZERO, (now, value), (ZERO, tangents[2]))
    if isinstance(places, inplace.SHARED) and not is_zero(tangents[2]):
        raise inplace.refuse(f"x[i] = v of {type(places).__name__}, in forward mode,")
    if not isinstance(places, np.flatiter):
        return NotImplemented
    x = places.base
    inplace.check_writes(x)
    where = np.arange(x.size)[inplace.frozen(index)]
    v, v̇ = as_operand(run, value, tangents[2])
    if not np.size(v):
        return operator.setitem(places, index, value), ZERO
    if np.ndim(v) and np.shape(v) != np.shape(where):  # values are taken in turn, and once more
        turns = np.arange(where.size).reshape(where.shape) % np.size(v)
        v, v̇ = push(run, np.take, ZERO, (v, turns), (v̇, ZERO))
    at_places = np.unravel_index(where, x.shape)
    return item(run, operator.setitem, [x, at_places, v], [UNKNOWN, ZERO, v̇], {}, {})


@pushes(operator.getitem)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    places, index = args
    if isinstance(places, np.void) and isinstance(index, str):
        field = inplace.record_view(places)[index]
        ẋ = run.each(lambda c: ZERO if is_zero(c) else np.asarray(c[index]), tangents[0])
        return places[index], push(run, operator.getitem, ZERO, (field, ()), (ẋ, ZERO))[1]
    if isinstance(places, np.ndarray) and places.dtype.names is not None:
        return places[index], ZERO if is_zero(tangents[0]) else tangents[0][index]
    if isinstance(places, np.nditer):
        return places[index], ZERO  # the tangents of views lie beside the memory
    if not isinstance(places, np.flatiter):
        return NotImplemented
    x = places.base
    at_places = np.unravel_index(np.arange(x.size)[index], x.shape)
    return places[index], push(run, operator.getitem, ZERO, (x, at_places), (tangents[0], ZERO))[1]


def _packing(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if fn is operator.iadd and not isinstance(args[0], array.array):
            return NotImplemented
        value, dots = args[-1], tangents[-1:]
        if functional.is_iterable(value) and not isinstance(value, (str, bytes, array.array)):
            value, dots = drain(run, value, tangents[-1])
        if not all_zero(tuple(dots)):
            raise inplace.refuse("storing in an array.array, in forward mode,")
        return fn(*args[:-1], value), ZERO


for _fn in (*packed.METHODS, array.array, operator.iadd):
    _packing(_fn)


def _uninitialised(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return construction.uninitialised(split_call(fn, args, keywords)), ZERO


_uninitialised(np.empty)
_uninitialised(np.empty_like)


def _moving_records(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if not isinstance(args[0], np.ndarray) or args[0].dtype.names is None:
            return NotImplemented
        ẋ = tangents[0]
        ẏ = ZERO if is_zero(ẋ) else split_call(fn, (ẋ, *args[1:]), keywords)
        return split_call(fn, args, keywords), ẏ


for _fn in (np.ndarray.copy, np.ndarray.reshape):
    _moving_records(_fn)
del _fn


def entries(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """np.nditer: its items are views of the operands, whose tangents are kept beside their memory."""
    op, ȯp = (args[0], tangents[0]) if len(args) > len(keywords) else (None, None)
    if not flat.are_operands(op):
        return push(run, flat.over_arrays, ZERO, args, tangents, keywords)
    operands = op if isinstance(op, (list, tuple)) else (op,)
    dots = by_value(run, op, ȯp) if isinstance(op, (list, tuple)) else (ȯp,)
    for x, ẋ in zip(operands, dots if not is_zero(dots) else [ZERO] * len(operands), strict=True):
        if x is not None:
            now = current(run, x, ẋ)
            put_all(run, x, now, now)
    return split_call(np.nditer, args, keywords), ZERO


def attribute(run: Pass, fn: Any, args: Any, dots: Any, named: Any, named_dots: Any) -> Both:
    """x.real = v, x.flat = v, x.shape = v, …; attributes of the user's own classes of arrays."""
    x, name, value = args
    if name in ("real", "imag"):
        v, v̇ = as_operand(run, value, dots[2])
        return item(
            run, operator.setitem, [getattr(x, name), Ellipsis, v], [UNKNOWN, ZERO, v̇], {}, {}
        )
    if name == "flat":
        given = (x.flat, slice(None), value)
        return push(run, operator.setitem, ZERO, given, (dots[0], ZERO, dots[2]))
    if name == "shape":
        reshape(run, x, dots[0], lambda: setattr(x, "shape", value))
        return None, ZERO
    if name in (x.dtype.names or ()):  # of np.recarray
        return item(run, operator.setitem, [x, name, value], dots, {}, {})
    if hasattr(np.ndarray, name) or not is_zero(dots[2]):
        raise inplace.refuse(f"x.{name} = v of an array, in forward mode,")
    return fn(x, name, value), ZERO


UNKNOWN = None  # the tangent of an array that is there, but under another name: it may be any


def moved(value_at: int, name: str) -> Any:
    """A function that writes an argument of its own: the same with the tangents of that."""

    def meaning(run: Pass, fn: Any, args: Any, dots: Any, named: Any, named_dots: Any) -> Both:
        given = args[value_at] if len(args) > value_at else named[name]
        dot = dots[value_at] if len(args) > value_at else named_dots[name]
        v, v̇ = as_operand(run, given, dot)
        x = args[0]
        y = fn(*args, **named)

        def write(part: np.ndarray, values: Any) -> None:
            if len(args) > value_at:
                fn(part, *args[1:value_at], values, *args[value_at + 1 :], **named)
            else:
                fn(part, *args[1:], **{**named, name: values})

        put(run, x, dots[0], v, v̇, write)
        return y, ZERO

    return meaning


def ordered(function: Any) -> Any:
    """x.sort(): the sorted array, written over x."""

    def meaning(run: Pass, fn: Any, args: Any, dots: Any, named: Any, named_dots: Any) -> Both:
        keywords = tuple(named)
        zeros = (ZERO,) * (len(args) - 1 + len(keywords))
        values = (*args, *named.values())
        _, ẏ = push(run, function, ZERO, values, (dots[0], *zeros), keywords)
        fn(*args, **named)
        put_all(run, args[0], dots[0], ẏ)
        return None, ZERO

    return meaning


def at(run: Pass, fn: Any, args: Any, dots: Any, named: Any, named_dots: Any) -> Both:
    """np.add.at(x, i, v), and the same for other functions where no index is there twice."""
    ufunc, x, index, *operands = args
    index = inplace.frozen(index)
    if ufunc in (np.add, np.subtract) and len(operands) == 1:
        _, v̇ = as_operand(run, operands[0], dots[3])
        ufunc.at(x, index, operands[0])
        if is_zero(v̇):
            return None, ZERO
        shape = x[index].shape
        sums = run.of_layers([summed(x, index, c, shape, ufunc) for c in run.layers(v̇)])
        old = dots[1]
        put_all(run, x, old, sums if is_zero(old) else old + sums)
        return None, ZERO
    if inplace.last_writes(x.shape, index) is not None:
        given = (ufunc, x, index, *operands)
        return push(run, inplace.repeated_at, ZERO, given, (ZERO, *dots[1:]))
    old, ȯld = push(run, operator.getitem, ZERO, (x, index), (dots[1], ZERO))
    y, ẏ = push(run, ufunc, ZERO, (old, *operands), (ȯld, *dots[3:]))
    return item(run, operator.setitem, [x, index, y], [dots[1], ZERO, ẏ], {}, {})


def summed(x: np.ndarray, index: Any, c: Any, shape: Any, ufunc: Any) -> Any:
    """The tangents that are added at the places of an index."""
    if is_zero(c):
        return ZERO
    found = np.zeros(x.shape, np.result_type(c))
    ufunc.at(found, index, np.broadcast_to(c, shape))
    return found


def field(run: Pass, fn: Any, args: Any, dots: Any, named: Any, named_dots: Any) -> Both:
    """x.setfield(v, dtype, offset): the field of records, written over."""
    x, value, dtype, offset = [*args, 0][:4] if not named else (*args, *named.values())
    place = inplace.field_at(x, dtype, offset)
    return item(run, operator.setitem, [place, Ellipsis, value], [UNKNOWN, ZERO, dots[1]], {}, {})


def resized(run: Pass, fn: Any, args: Any, dots: Any, named: Any, named_dots: Any) -> Both:
    """x.resize(shape), to as many entries as there are."""
    flat.check_size(args[0], tuple(args[1:]))
    reshape(run, args[0], dots[0], lambda: fn(*args, **named))
    return None, ZERO


def copy_to(run: Pass, fn: Any, args: Any, dots: Any, named: Any, named_dots: Any) -> Both:
    """np.copyto(x, v)."""
    v, v̇ = as_operand(run, args[1], dots[1])
    mask = args[3] if len(args) > 3 else named.get("where", True)
    fn(*args, **named)
    put(run, args[0], dots[0], v, v̇, masked_fill(mask))
    return None, ZERO


OPERATORS = {id(fn): op for fn, op in inplace.OPERATORS.items()}
OPERATORS |= {
    id(getattr(np.ndarray, f"__{fn.__name__}__")): op
    for fn, op in inplace.OPERATORS.items()
    if hasattr(np.ndarray, f"__{fn.__name__}__")
}
WRITERS: dict[int, Any] = {
    id(operator.setitem): item,
    id(np.ndarray.__setitem__): item,
    id(np.put): moved(2, "v"),
    id(np.ndarray.put): moved(2, "values"),
    id(np.place): moved(2, "vals"),
    id(np.putmask): moved(2, "values"),
    id(np.put_along_axis): moved(2, "values"),
    id(np.fill_diagonal): moved(1, "val"),
    id(np.ndarray.fill): moved(1, "value"),
    id(np.ndarray.sort): ordered(np.sort),
    id(np.ndarray.partition): ordered(np.partition),
    id(np.copyto): copy_to,
    id(np.ndarray.setfield): field,
    id(np.ndarray.resize): resized,
    id(np.ufunc.at): at,
    id(setattr): attribute,
}


on_write.append(written)
