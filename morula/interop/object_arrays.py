"""Arrays of objects: what NumPy's functions do with entries that are objects, lists or arrays.

NumPy computes with such entries as Python does: `V + W` adds them pair by pair, `np.sin(V)` calls
their method `sin`. So each function means a Python function of the entries, which is differentiated
in the place of the call. What only moves entries has rules of its own; a function of which nothing is
said here is refused. Arrays of Python's floats, integers and complex numbers go by the rules of other
arrays; those of decimals and fractions are computed entry by entry, for their derivatives are decimals
and fractions. As the latter mix with floats, rules serve for them where nothing is said here.
Tests: tests/interop/test_object_arrays.py
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import numpy as np

from morula.core.extend import (
    UnsupportedError,
    adjoint_object,
    general,
    is_constant,
    meet,
    non_differentiable,
    registry,
)
from morula.core.general import Claim
from morula.interop.meanings import Args, claim, is_or_holds
from morula.interop.protocols import (
    ARRAY_FUNCTION,
    OF_ARRAYS,
    OPERATORS,
    UFUNC_METHODS,
    UFUNCS,
    operands,
)

PLAIN = (int, float, complex, str, bytes, type(None), np.generic)
EXACT = (Decimal, Fraction)  # numbers that are no floats and have derivatives of their own kind
SIMPLE = {
    float, int, bool, complex, np.float64, np.ndarray, list, tuple, dict, set, frozenset, slice, range,
}  # fmt: skip
IS_ARRAY = ("__array__", "__array_ufunc__", "__array_function__", "__array_interface__")


def holds_objects(x: np.ndarray) -> bool:
    """Is it an array of objects that are not all plain numbers?"""
    return holds_others(x, PLAIN)


def holds_others(x: np.ndarray, kinds: tuple[type, ...]) -> bool:
    """Is it an array of objects that are not all of these kinds?"""
    if x.dtype.kind != "O":
        return False
    return any([not issubclass(t, kinds) for t in set(map(type, x.flat))])


def is_one(x: Any) -> bool:
    """Is it an object that NumPy takes for one entry of an array of objects?"""
    t = type(x)
    if issubclass(t, EXACT):
        return True
    if t in SIMPLE or issubclass(t, PLAIN) or any([hasattr(t, name) for name in IS_ARRAY]):
        return False
    if hasattr(t, "__getitem__") or callable(x):
        return False
    if t.__module__.partition(".")[0] in ("morula", "numpy"):  # what tells of calls, and cotangents
        return False
    meet(t)
    return adjoint_object(x) is not None


def takes_part(x: Any) -> bool:
    """Is it such an array or object, or a list or tuple that holds one?"""
    return is_or_holds(x, is_array_or_object)


def is_array_or_object(x: Any) -> bool:
    """Is it an array of objects, or an object that may be an entry?"""
    return holds_objects(x) if type(x) is np.ndarray else is_one(x)


def is_no_number(x: Any) -> bool:
    """The same, but for decimals and fractions."""
    if type(x) is np.ndarray:
        return holds_others(x, (*PLAIN, *EXACT))
    return is_one(x) and not isinstance(x, EXACT)


def has_no_rules(x: Any) -> bool:
    """Does one take part that does not mix with floats, so that other rules cannot be used?"""
    return is_or_holds(x, mixes_with_no_float)


def mixes_with_no_float(x: Any) -> bool:
    """Is it an array that holds such an object, or one?"""
    if type(x) is np.ndarray:
        return holds_others(x, (*PLAIN, Fraction))
    return isinstance(x, Decimal) or is_no_number(x)


# -- entries ---------------------------------------------------------------------------------------


def as_array(x: Any) -> Any:
    """What NumPy makes of an operand."""
    if isinstance(x, np.ndarray):
        return x
    if type(x) in (list, tuple):
        return array_of(np.array, (x,), {})
    if isinstance(x, np.generic):
        return np.asarray(x)
    return made([x], ())


def made(entries: list[Any], shape: tuple[int, ...]) -> Any:
    """An array of objects with these entries."""
    y = np.empty(shape, object)
    for i, entry in zip(places(shape), entries, strict=True):
        y[i] = entry
    return y


def entries_of(x: Any, shape: tuple[int, ...]) -> list[Any]:
    """The entries of an operand that is stretched to a shape, as Python sees them."""
    x = as_array(x)
    y = np.broadcast_to(x, shape)
    if x.dtype.kind == "O":
        return [y[i] for i in places(shape)]
    return [y[i].item() for i in places(shape)]


def places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The indices of all entries, in the order of C."""
    return list(np.ndindex(shape))


def shape_of(*xs: Any) -> tuple[int, ...]:
    """That to which operands are stretched."""
    return np.broadcast_shapes(*map(own_shape, xs))


def own_shape(x: Any) -> tuple[int, ...]:
    """That of one operand."""
    if isinstance(x, np.ndarray):
        return x.shape
    return np.array(x).shape if type(x) in (list, tuple) else ()


def delivered(entries: list[Any], shape: tuple[int, ...], out: Any) -> Any:
    """The result of a call: an array, or the entry where there is one without axes."""
    if out is not None:
        for i, entry in zip(places(shape), entries, strict=True):
            out[i] = entry
        return out
    return made(entries, shape) if shape else entries[0]


# -- what ufuncs do with a pair of entries ----------------------------------------------------------


def square(x: Any) -> Any:
    """What NumPy does instead of calling a method `square`."""
    return x * x


def reciprocal(x: Any) -> Any:
    """The same for `reciprocal`."""
    return 1 / x


def greater(x: Any, y: Any) -> Any:
    """The greater of two, the first of equal ones."""
    return x if x >= y else y


def smaller(x: Any, y: Any) -> Any:
    """The smaller of two, the first of equal ones."""
    return x if x <= y else y


def sign(x: Any) -> int:
    """By comparing with zero."""
    return int(x > 0) - int(x < 0)


def by_method(name: str, x: Any, *others: Any) -> Any:
    """The method of this name."""
    return getattr(x, name)(*others)


OPERATIONS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.power: operator.pow,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.absolute: operator.abs,
    np.square: square,
    np.reciprocal: reciprocal,
    np.maximum: greater,
    np.minimum: smaller,
    np.fmax: greater,
    np.fmin: smaller,
    np.sign: sign,
}
METHODS_OF_ENTRIES = {
    u
    for u in vars(np).values()
    if isinstance(u, np.ufunc) and u.signature is None and "O->O" in "".join(u.types)
}  # `np.sin` of an entry calls its method `sin`


def operation(ufunc: np.ufunc) -> Callable[..., Any]:
    """What it does with entries."""
    found = OPERATIONS.get(ufunc)
    if found is None and ufunc in METHODS_OF_ENTRIES:
        return partial(by_method, ufunc.__name__)
    if found is None:
        raise refusal(ufunc)
    return found


def refusal(fn: Any, of: str = "") -> UnsupportedError:
    """The error about a function, called with such arguments, of which nothing is said here."""
    name = getattr(fn, "__name__", str(fn))
    return UnsupportedError(
        f"{name}{of} of an array whose entries are objects, lists or arrays has no derivative here: "
        "write it as a loop over the entries, or make an array of numbers"
    )


# -- meanings --------------------------------------------------------------------------------------


def entry_by_entry(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A ufunc of arrays of objects."""
    if fn in PRODUCTS:
        return PRODUCTS[fn](*args, **kwargs)
    out = args[fn.nin] if len(args) > fn.nin else given(fn, kwargs, "out")
    args = args[: fn.nin]
    shape = shape_of(*args) if out is None else own_shape(out)
    does = operation(fn)
    columns = [entries_of(x, shape) for x in args]
    return delivered([does(*entries) for entries in zip(*columns, strict=True)], shape, out)


def given(fn: Any, kwargs: dict[str, Any], *names: str) -> Any:
    """The argument `out`, alone or in a tuple; an error where there are others than these."""
    unknown = [k for k in kwargs if k not in names and kwargs[k] is not None and k != "dtype"]
    if unknown or kwargs.get("dtype") not in (None, object):
        raise refusal(fn, f"(…, {(unknown or ['dtype'])[0]}=…)")
    out = kwargs.get("out")
    return out[0] if type(out) is tuple else out


def method_of_ufunc(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`np.add.reduce` and its relatives, of arrays of objects."""
    ufunc, *rest = args
    n, names = UFUNC_METHODS[fn.__name__]
    named = {**dict(zip(names, rest[n:], strict=False)), **kwargs}
    if fn.__name__ == "outer":
        x, y = map(as_array, rest)
        return ufunc(x.reshape(own_shape(x) + (1,) * np.ndim(y)), y)
    if fn.__name__ == "reduce":
        return reduced(ufunc, rest[0], **named)
    if fn.__name__ == "accumulate":
        return accumulated(ufunc, rest[0], **named)
    if fn.__name__ == "at":
        return changed_at(ufunc, *rest)
    raise refusal(fn)


def reduced(
    ufunc: Any, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None,
    keepdims: bool = False, initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    """Entries along axes, from the first one on."""
    if where is not True or dtype not in (None, object):
        raise refusal(ufunc, ".reduce(…, where=…) or (…, dtype=…)")
    x = as_array(x)
    axes, shape, kept = split(x.shape, axis)
    rows = np.moveaxis(x, axes, range(-len(axes), 0)) if axes else x
    rows = rows.reshape((*shape, length(x.shape, axes)))
    does = operation(ufunc)
    lines = [list(rows[i]) for i in places(shape)]
    if any([not line for line in lines]) or (initial is not None and initial is not np._NoValue):
        lines = [[initial_of(ufunc, initial), *line] for line in lines]
    entries = [folded(does, line)[-1] for line in lines]
    return delivered(entries, kept if keepdims else shape, out[0] if type(out) is tuple else out)


def initial_of(ufunc: Any, initial: Any) -> Any:
    """What a reduction begins with that is given one, or has no entries."""
    if initial is not None and initial is not np._NoValue:
        return initial
    if ufunc.identity is None:
        raise ValueError(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
        )
    return ufunc.identity


def split(shape: tuple[int, ...], axis: Any) -> tuple[tuple[int, ...], Any, Any]:
    """The axes of a reduction, the shape without them, and with them of length 1."""
    axes = range(len(shape)) if axis is None else axis if type(axis) is tuple else (axis,)
    axes = tuple(sorted([range(len(shape))[i] for i in axes]))
    rest = tuple([n for i, n in enumerate(shape) if i not in axes])
    return axes, rest, tuple([1 if i in axes else n for i, n in enumerate(shape)])


def length(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many entries lie along axes."""
    return math.prod([shape[i] for i in axes])


def folded(does: Callable[..., Any], line: list[Any]) -> list[Any]:
    """The first entry, that with the second, and so on."""
    found = [line[0]]
    for entry in line[1:]:
        found.append(does(found[-1], entry))
    return found


def accumulated(ufunc: Any, x: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """The same with all that lies between."""
    if dtype not in (None, object):
        raise refusal(ufunc, ".accumulate(…, dtype=…)")
    x = as_array(x)
    rows = np.moveaxis(x, axis, -1)
    does = operation(ufunc)
    entries: list[Any] = []
    for i in places(rows.shape[:-1]):
        entries += folded(does, list(rows[i]))
    y = np.moveaxis(made(entries, rows.shape), -1, axis)
    return y if out is None else delivered(entries_of(y, y.shape), y.shape, out)


def changed_at(ufunc: Any, x: Any, index: Any, *others: Any) -> None:
    """`np.add.at`: one entry after the other."""
    numbers = np.arange(x.size).reshape(x.shape)[index]
    does = operation(ufunc)
    columns = [entries_of(v, numbers.shape) for v in others]
    for n, *values in zip(numbers.ravel().tolist(), *columns, strict=True):
        i = tuple([int(k) for k in np.unravel_index(n, x.shape)])
        x[i] = does(x[i], *values)


def operator_of_entries(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An operator of arrays, which is its ufunc."""
    name = fn.__name__.strip("_")
    if name in OF_ONE:
        return entry_by_entry(OF_ONE[name], args, kwargs)
    if name in UFUNCS:
        return entry_by_entry(UFUNCS[name], args, kwargs)
    x, y = args
    if name[0] == "i":
        return entry_by_entry(UFUNCS[name[1:]], args, {"out": x})
    return entry_by_entry(UFUNCS[name[1:]], (y, x), kwargs)


OF_ONE = {"neg": np.negative, "pos": np.positive, "abs": np.absolute}


def dot(x: Any, y: Any, out: Any = None) -> Any:
    """Products of the last axis of x with the last but one of y, and their sums."""
    x, y = as_array(x), as_array(y)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    rows = np.moveaxis(y, -2, -1) if y.ndim > 1 else y
    return inner(x, rows, out)


def inner(x: Any, y: Any, out: Any = None) -> Any:
    """Products of the last axes, and their sums."""
    x, y = as_array(x), as_array(y)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    check_same(x.shape, y.shape)
    before, after = x.shape[:-1], y.shape[:-1]
    entries = [product(x[i], y[j]) for i in places(before) for j in places(after)]
    return delivered(entries, before + after, out)


def product(x: Any, y: Any) -> Any:
    """That of two vectors."""
    n = x.shape
    terms = [a * b for a, b in zip(entries_of(x, n), entries_of(y, n), strict=True)]
    return folded(operator.add, terms)[-1] if terms else 0


def check_same(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """An error where there is no product."""
    if left[-1] != right[-1]:
        raise ValueError(
            f"shapes {left} and {right} do not match: {left[-1]} and {right[-1]} entries"
        )


def matmul(x: Any, y: Any, out: Any = None) -> Any:
    """`x @ y`, of stacks of matrices."""
    x, y = as_array(x), as_array(y)
    rows = x[None, :] if x.ndim == 1 else x
    columns = y[:, None] if y.ndim == 1 else y
    stack = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows = np.broadcast_to(rows, stack + rows.shape[-2:])
    columns = np.broadcast_to(np.swapaxes(columns, -2, -1), stack + columns.shape[:-3:-1])
    check_same(rows.shape, columns.shape)
    n, m = rows.shape[-2], columns.shape[-2]
    entries = [
        product(rows[(*i, j)], columns[(*i, k)])
        for i in places(stack)
        for j in range(n)
        for k in range(m)
    ]
    shape = (*stack, *[n] * (x.ndim > 1), *[m] * (y.ndim > 1))
    return delivered(entries, shape, out)


def total(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """`np.sum`."""
    return reduced(np.add, x, axis, dtype, out, **kwargs)


def prod(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """`np.prod`."""
    return reduced(np.multiply, x, axis, dtype, out, **kwargs)


def mean(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """`np.mean`: the sum divided by a number."""
    axes, _, _ = split(own_shape(x), axis)
    return np.true_divide(total(x, axis, dtype, out, **kwargs), length(own_shape(x), axes))


def largest(x: Any, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """`np.max`."""
    return reduced(np.maximum, x, axis, None, out, **kwargs)


def least(x: Any, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
    """`np.min`."""
    return reduced(np.minimum, x, axis, None, out, **kwargs)


def cumsum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """`np.cumsum`."""
    x = as_array(x)
    return accumulated(np.add, x.ravel() if axis is None else x, axis or 0, dtype, out)


def cumprod(x: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """`np.cumprod`."""
    x = as_array(x)
    return accumulated(np.multiply, x.ravel() if axis is None else x, axis or 0, dtype, out)


def outer(x: Any, y: Any) -> Any:
    """`np.outer`."""
    return np.multiply.outer(as_array(x).ravel(), as_array(y).ravel())


def diff(x: Any, n: int = 1, axis: int = -1) -> Any:
    """`np.diff`."""
    rows = np.moveaxis(as_array(x), axis, -1)
    for _ in range(n):
        rows = np.subtract(rows[..., 1:], rows[..., :-1])
    return np.moveaxis(rows, -1, axis)


def chosen(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`np.where`."""
    if x is None:
        return np.where(condition)
    shape = np.broadcast_shapes(np.shape(condition), own_shape(x), own_shape(y))
    which = np.broadcast_to(condition, shape)
    pairs = zip(places(shape), entries_of(x, shape), entries_of(y, shape), strict=True)
    return made([of_x if which[i] else of_y for i, of_x, of_y in pairs], shape)


def array_of(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`np.array` of lists of objects."""
    x = args[0]
    if any([k is not object for k in args[1:]]) or kwargs.get("dtype", object) is not object:
        raise refusal(fn)
    shape = shape_made(fn, args, kwargs)
    return made([item_at(x, i) for i in places(shape)], shape)


def shape_made(fn: Any, args: Args, kwargs: dict[str, Any]) -> tuple[int, ...]:
    """The shape of the array that NumPy makes of lists."""
    return fn(*args, **kwargs).shape


def item_at(x: Any, place: tuple[int, ...]) -> Any:
    """An entry of nested lists, or of arrays in them, whose numbers become Python's."""
    for n, i in enumerate(place):
        if isinstance(x, np.ndarray):
            return x.item(place[n:]) if x.dtype.kind != "O" else x[place[n:]]
        x = x[i]
    return x


def function_of_entries(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function or a method that computes with entries."""
    does = FUNCTIONS.get(fn.__name__) or METHODS[fn.__name__]
    return does(*args, **kwargs)


def refused(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A function of which nothing is said here."""
    raise refusal(fn)


def joined(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`np.concatenate` and its relatives: numbers of entries are joined, and then looked up."""
    listed = fn.__name__ != "append"
    xs = [as_array(x) for x in (args[0] if listed else args[:2])]
    rest = args[1:] if listed else args[2:]
    entries = [entry for x in xs for entry in entries_of(x, x.shape)]
    where = place_numbers(fn, [x.shape for x in xs], listed, rest, kwargs)
    return made([entries[n] for n in where.flat], where.shape)


def place_numbers(
    fn: Any, shapes: list[tuple[int, ...]], listed: bool, rest: Args, kwargs: dict[str, Any]
) -> np.ndarray:
    """Which entry goes where."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    numbers = [
        np.arange(end - math.prod(s), end).reshape(s) for s, end in zip(shapes, ends, strict=True)
    ]
    return fn(numbers, *rest, **kwargs) if listed else fn(*numbers, *rest, **kwargs)


def item(x: Any, *place: Any) -> Any:
    """`x.item(…)`."""
    index: Any = place[0] if len(place) == 1 else place
    if type(index) is tuple:
        return x[index] if index else entries_of(x, x.shape)[0]
    return entries_of(x, x.shape)[index]


def tolist(x: Any) -> Any:
    """`x.tolist()`."""
    return [tolist(row) for row in x] if x.ndim > 1 else list(x) if x.ndim else x[()]


JOINS = ("append", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")
PRODUCTS = {np.matmul: matmul}
METHODS: dict[str, Callable[..., Any]] = {"item": item, "tolist": tolist}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": total,
    "prod": prod,
    "mean": mean,
    "max": largest,
    "min": least,
    "amax": largest,
    "amin": least,
    "cumsum": cumsum,
    "cumprod": cumprod,
    "dot": dot,
    "inner": inner,
    "outer": outer,
    "diff": diff,
    "where": chosen,
}
COMPUTES = {  # with entries, by functions of which nothing is said here
    "average", "convolve", "correlate", "cov", "corrcoef", "cross", "einsum", "gradient", "interp",
    "kron", "linspace", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar", "percentile", "polyval", "ptp", "quantile", "median", "nanmedian", "std", "var",
    "tensordot", "trace", "trapezoid", "vdot", "clip", "around", "round", "real", "imag", "nan_to_num",
    "apply_along_axis", "apply_over_axes", "unwrap", "ediff1d", "cumulative_sum", "cumulative_prod",
}  # fmt: skip


# -- whose calls these are --------------------------------------------------------------------------

ENTRY_BY_ENTRY, OF_UFUNC, OF_OPERATOR, OF_FUNCTION, ARRAY, JOINED, REFUSED = map(
    claim,
    (
        entry_by_entry,
        method_of_ufunc,
        operator_of_entries,
        function_of_entries,
        array_of,
        joined,
        refused,
    ),
)
OPERATOR_METHODS = {
    *[f"__{prefix}{name}__" for name in UFUNCS for prefix in ("", "r", "i")],
    *[f"__{name}__" for name in OF_ONE],
}
BY_OPERATOR = {
    *OPERATORS,
    *[getattr(operator, "i" + name) for name in UFUNCS],
    operator.neg,
    operator.pos,
    operator.abs,
    abs,
}
BY_NAME = {
    **dict.fromkeys(COMPUTES, REFUSED),
    **dict.fromkeys(JOINS, JOINED),
    **dict.fromkeys(FUNCTIONS, OF_FUNCTION),
}
OF_METHODS = dict.fromkeys(("item", "tolist"), OF_FUNCTION)
MAKERS = (np.array, np.asarray, np.asanyarray)


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means in which entries that are objects take part."""
    kind = type(fn)
    if kind is np.ufunc:
        return of_ufunc(fn) if any(map(takes_part, values)) else None
    if kind is ARRAY_FUNCTION:
        return of_function(fn, values)
    if kind is WrapperDescriptorType or kind is MethodDescriptorType:
        return of_method(fn, values)
    if kind is BuiltinFunctionType and values:
        if fn in MAKERS:
            return ARRAY if makes_objects(values[0], values[1:]) else None
        return OF_OPERATOR if fn in BY_OPERATOR and is_of_array(values) else None
    return None


def makes_objects(x: Any, settings: Args) -> bool:
    """Does NumPy make an array of objects that are not all plain numbers of a list?"""
    if type(x) not in (list, tuple):
        return False
    of_objects = any([k is object for k in settings]) and any([np.ndim(item) for item in x])
    if all([k is object for k in settings]):
        return of_objects or takes_part(x)
    return of_objects or is_or_holds(x, is_no_number)  # of decimals it may make floats


def of_ufunc(fn: Any) -> Claim | None:
    """A ufunc; those whose results have no derivative are done as they are."""
    return None if is_constant(fn) else ENTRY_BY_ENTRY


def of_function(fn: Any, values: Args) -> Claim | None:
    """A function of NumPy's."""
    found = BY_NAME.get(fn.__name__)
    takes = has_no_rules if found is REFUSED else takes_part
    return found if found is not None and any(map(takes, operands(values, {}))) else None


def of_method(fn: Any, values: Args) -> Claim | None:
    """A method of arrays, or of ufuncs."""
    if fn.__objclass__ is np.ufunc:
        known = fn.__name__ in UFUNC_METHODS and not is_constant(values[0])
        return OF_UFUNC if known and any(map(takes_part, values[1:])) else None
    if not issubclass(fn.__objclass__, OF_ARRAYS):
        return None
    if fn.__name__ in OPERATOR_METHODS:
        return OF_OPERATOR if any(map(takes_part, values)) and not defers(values) else None
    found = BY_NAME.get(fn.__name__) or OF_METHODS.get(fn.__name__)
    takes = has_no_rules if found is REFUSED else takes_part
    return found if found is not None and any(map(takes, values)) else None


def is_of_array(values: Args) -> bool:
    """Is it NumPy that answers an operator, for an array of objects or with an object?"""
    x, y = values[0], values[-1]
    if isinstance(x, OF_ARRAYS):
        return any(map(takes_part, values)) and not defers(values)
    return type(y) is np.ndarray and (isinstance(x, EXACT) or not is_one(x)) and holds_objects(y)


def defers(values: Args) -> bool:
    """Does NumPy leave the operator to the class of the other operand?"""
    return any([is_one(x) and getattr(x, "__array_priority__", 0) > 0 for x in values])


non_differentiable(
    holds_objects, holds_others, is_one, takes_part, is_no_number, has_no_rules, mixes_with_no_float,
    places, shape_of, own_shape, operation, given, initial_of, split, length, check_same, shape_made,
    makes_objects, place_numbers,
)  # fmt: skip
general.CLAIMS.append(claims)
registry.registry.entry(claims).changed()
