"""Dask's arrays in differentiated code: gradients are graphs again, which nobody has computed yet.

Few primitives, whose pullbacks are said by themselves: `elementwise`, whose derivative is found block
by block by Morula's rules for NumPy's arrays, `summed`, `extreme`, `spread`, `permuted`, `reshaped`,
`taken`, `joined`, `contracted`, `cast`. What Dask's operators, functions and methods mean is said by
functions of these; what is none of them is an error if a cotangent reaches its result.
Tests: tests/interop/test_dask.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodDescriptorType, MethodType
from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute, persist

from morula.core.errors import ArgumentError
from morula.core.extend import (
    NONE,
    ZERO,
    AbstractZero,
    CotangentError,
    Thunk,
    general,
    is_zero,
    materialise,
    non_differentiable,
    opaque,
    project_to,
    projector,
    registry,
    rrule,
    space_problem,
    stays_general,
    unit,
    unthunk,
)
from morula.core.general import Claim
from morula.core.interface import pullback
from morula.interop.meanings import Args, claim, go_by_value, handed_on, plainly
from morula.mixed_mode.push import opaque as opaque_forward
from morula.mixed_mode.push import pushes
from morula.mixed_mode.tangents import together
from morula.rules.calls import entry, serves, with_derivative_of
from morula.rules.numbers import Anything
from morula.rules.vectors import Foreign, foreign

Array = da.Array

# -- primitives ------------------------------------------------------------------------------------


class Slope:
    """The cotangent of the i-th argument of an elementwise function, as a function of blocks."""

    def __init__(self, fn: Any, i: int) -> None:
        self.fn = fn
        self.i = i
        self.__name__ = f"slope_{i}_of_{getattr(fn, '__name__', 'function')}"

    def __call__(self, ȳ: Any, *xs: Any) -> Any:
        """By Morula's rules for NumPy's arrays."""
        return pullback(self.fn, *xs)[1](ȳ)[self.i]


def elementwise(fn: Any, *xs: Any) -> Any:
    """`fn` of arrays of one shape, block by block."""
    dtype = fn(*[np.ones((1,) * x.ndim, x.dtype) for x in xs]).dtype
    return da.map_blocks(fn, *da.core.unify_chunks(*pairs(xs))[1], dtype=dtype)


def pairs(xs: Any) -> list[Any]:
    """Arrays and the letters of their axes, as Dask wants them."""
    return [item for x in xs for item in (x, tuple(range(x.ndim))[::-1])]


@rrule(elementwise)
def _(fn: Anything, *xs: Anything):
    def elementwise_pullback(ȳ):
        bars = [elementwise(Slope(fn, i), ȳ, *xs) for i in range(len(xs))]
        return (NONE, *bars)

    return elementwise(fn, *xs), elementwise_pullback


def spread(x: Any, shape: Any, chunks: Any) -> Any:
    """A number or an array, broadcast to a shape."""
    x = da.asarray(x)
    of_axes = zip(range(x.ndim), chunks[len(shape) - x.ndim :], strict=True)
    x = x.rechunk({i: c for i, c in of_axes if x.shape[i] != 1})
    return da.broadcast_to(x, shape, chunks=chunks)


@rrule(spread)
def _(x: Anything, shape: Anything, chunks: Anything):
    old = np.shape(x)

    def spread_pullback(ȳ):
        x̄ = folded(ȳ, old)
        return x̄ if isinstance(x, Array) else Thunk(partial(host, x̄)), NONE, NONE

    return spread(x, shape, chunks), spread_pullback


def operands(xs: Args, shape: Any, chunks: Any, dtype: Any) -> Args:
    """Numbers and arrays, all broadcast to a shape; numbers of Python's and integers in a dtype."""
    return tuple([spread(in_precision(x, x, dtype), shape, chunks) for x in xs])


def in_precision(c: Any, x: Any, dtype: Any) -> Any:
    """An operand `x`, or a tangent of it, in the dtype of the result where it does not decide that."""
    if isinstance(x, Array) or dtype is None:
        return c
    decides = type(x) not in (int, float, complex) and np.asarray(x).dtype.kind not in "iu"
    return c if decides else np.asarray(c, dtype)


@serves(operands)
def _(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    xs, shape, chunks, dtype = args

    def operands_pullback(ȳ: Any) -> Args:
        bars = tuple([cotangent_of(x, entry(ȳ, i)) for i, x in enumerate(xs)])
        return NONE, bars, NONE, NONE, NONE

    return operands(xs, shape, chunks, dtype), operands_pullback


@pushes(operands)
def _(run: Any, args: Args, tangents: Args, keywords: Any) -> Any:
    xs, shape, chunks, dtype = args
    dots = [entry(tangents[0], i) for i in range(len(xs))]
    moved = [
        ẋ if is_zero(ẋ) else run.each(lambda c, x=x: brought(c, x, shape, chunks, dtype), ẋ)
        for x, ẋ in zip(xs, dots, strict=True)
    ]
    return operands(xs, shape, chunks, dtype), together(moved)


def brought(c: Any, x: Any, shape: Any, chunks: Any, dtype: Any) -> Any:
    """The tangent of an operand, broadcast."""
    return spread(in_precision(c, x, dtype), shape, chunks)


def cotangent_of(x: Any, ȳ: Any) -> Any:
    """That of an operand: lazy also where it is no array of Dask's, and so may have to be computed."""
    if is_zero(ȳ):
        return ZERO
    if isinstance(x, Array):
        return project_to(x)(folded(ȳ, x.shape))
    return Thunk(lambda: project_to(x)(host(folded(ȳ, np.shape(x)))))


def folded(ȳ: Any, shape: Any) -> Any:
    """The sum over those axes along which an array of a shape was broadcast."""
    extra = ȳ.ndim - len(shape)
    axes = [*range(extra)]
    axes += [extra + i for i, n in enumerate(shape) if n == 1 and ȳ.shape[extra + i] != 1]
    if axes:
        ȳ = summed(ȳ, tuple(axes), True)
    return reshaped(ȳ, tuple(shape)) if extra else ȳ


def summed(x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum along axes."""
    return Array.sum(x, axis=axis, keepdims=keepdims)


@rrule(summed)
def _(x: Anything, axis: Anything, keepdims: Anything):
    shape, chunks = x.shape, x.chunks
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    kept = tuple([1 if i in {a % x.ndim for a in axes} else n for i, n in enumerate(shape)])

    def summed_pullback(ȳ):
        return spread(reshaped(ȳ, kept), shape, chunks), NONE, NONE

    return summed(x, axis, keepdims), summed_pullback


def permuted(x: Any, axes: Any) -> Any:
    """The axes in another order."""
    return da.transpose(x, axes)


@rrule(permuted)
def _(x: Anything, axes: Anything):
    back = tuple(np.argsort(axes).tolist())

    def permuted_pullback(ȳ):
        return permuted(ȳ, back), NONE

    return permuted(x, axes), permuted_pullback


def reshaped(x: Any, shape: Any) -> Any:
    """Another shape."""
    return da.reshape(x, shape)


@rrule(reshaped)
def _(x: Anything, shape: Anything):
    old = x.shape

    def reshaped_pullback(ȳ):
        return reshaped(ȳ, old), NONE

    return reshaped(x, shape), reshaped_pullback


def taken(x: Any, key: Any) -> Any:
    """An entry, or a part that slices give."""
    return x[key]


@rrule(taken)
def _(x: Anything, key: Anything):
    where = da.arange(x.size, chunks=-1).reshape(x.shape)[key].ravel()
    shape, chunks = x.shape, x.chunks

    def taken_pullback(ȳ):
        return put(ȳ, where, shape, chunks), NONE

    return taken(x, key), taken_pullback


def put(ȳ: Any, where: Any, shape: Any, chunks: Any) -> Any:
    """Zeros but for the entries at these places of the flat array."""
    flat = reshaped(ȳ, (int(np.prod(ȳ.shape)),)).rechunk(-1)
    size = int(np.prod(shape))
    whole = da.map_blocks(
        scattered, flat, where.rechunk(-1), size, dtype=ȳ.dtype, chunks=((size,),)
    )
    return whole.reshape(shape).rechunk(chunks)


def scattered(values: Any, where: Any, size: int) -> Any:
    """The same for one block."""
    found = np.zeros(size, values.dtype)
    np.add.at(found, where, values)
    return found


@rrule(put)
def _(ȳ: Anything, where: Anything, shape: Anything, chunks: Anything):
    of, old = ȳ.shape, where

    def put_pullback(x̄):
        return reshaped(reshaped(x̄, (int(np.prod(shape)),))[old], of), NONE, NONE, NONE

    return put(ȳ, where, shape, chunks), put_pullback


def extreme(fn: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """The largest or the smallest along axes."""
    return fn(x, axis=axis, keepdims=keepdims)


@rrule(extreme)
def _(fn: Anything, x: Anything, axis: Anything, keepdims: Anything):
    y = extreme(fn, x, axis, True)
    shape, chunks = x.shape, x.chunks
    reached = cast(x == y, x.dtype)
    shares = cast(reached / Array.sum(reached, axis=axis, keepdims=True), x.dtype)  # ties share

    def extreme_pullback(ȳ):
        c = spread(reshaped(ȳ, y.shape), shape, chunks)
        return NONE, elementwise(np.multiply, c, shares), NONE, NONE

    return extreme(fn, x, axis, keepdims), extreme_pullback


def joined(fn: Any, xs: Args, axis: int) -> Any:
    """Arrays along an axis that they have, or along a new one."""
    return fn(xs, axis=axis)


@serves(joined)
def _(f: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    fn, xs, axis = args

    def joined_pullback(ȳ: Any) -> Args:
        return NONE, NONE, ZERO if is_zero(ȳ) else cut(fn, ȳ, xs, axis), NONE

    return joined(fn, xs, axis), joined_pullback


def cut(fn: Any, ȳ: Any, xs: Args, axis: int) -> Args:
    """The pieces that were joined."""
    before = (slice(None),) * (axis % ȳ.ndim)
    if fn is da.stack:
        return tuple([taken(ȳ, (*before, i)) for i in range(len(xs))])
    stops = np.cumsum([x.shape[axis] for x in xs]).tolist()
    starts = [0, *stops[:-1]]
    return tuple([taken(ȳ, (*before, slice(*ends))) for ends in zip(starts, stops, strict=True)])


@pushes(joined)
def _(run: Any, args: Args, tangents: Args, keywords: Any) -> Any:
    fn, xs, axis = args
    dots = [entry(tangents[1], i) for i in range(len(xs))]
    filled = [da.zeros_like(x) if is_zero(ẋ) else ẋ for x, ẋ in zip(xs, dots, strict=True)]
    return joined(fn, xs, axis), run.each(lambda *each: joined(fn, each, axis), *filled)


def contracted(a: Any, b: Any) -> Any:
    """The product of matrices, or of a matrix and a vector."""
    return da.matmul(a, b)


@rrule(contracted)
def _(a: Anything, b: Anything):
    def contracted_pullback(ȳ):
        rows = a if a.ndim == 2 else reshaped(a, (1, a.shape[0]))
        columns = b if b.ndim == 2 else reshaped(b, (b.shape[0], 1))
        c = reshaped(ȳ, (rows.shape[0], columns.shape[1]))
        ā = contracted(c, permuted(conjugate(columns), (1, 0)))
        b̄ = contracted(permuted(conjugate(rows), (1, 0)), c)
        return reshaped(ā, a.shape), reshaped(b̄, b.shape)

    return contracted(a, b), contracted_pullback


def conjugate(x: Any) -> Any:
    """The conjugate, where numbers are complex."""
    return elementwise(np.conjugate, x) if x.dtype.kind == "c" else x


def host(x: Any) -> Any:
    """The computed array."""
    return np.asarray(x.compute())[()]


def chunked(x: Any, chunks: Any) -> Any:
    """An array of NumPy's, in chunks."""
    return da.from_array(np.asarray(x), chunks=chunks)


@rrule(host)
def _(x: Anything):
    chunks = x.chunks

    def host_pullback(ȳ):
        return (chunked(ȳ, chunks),)

    return host(x), host_pullback


@rrule(chunked)
def _(x: Anything, chunks: Anything):
    def chunked_pullback(ȳ):
        return Thunk(partial(host, ȳ)), NONE

    return chunked(x, chunks), chunked_pullback


def cast(x: Any, dtype: Any) -> Any:
    """Another dtype."""
    return x.astype(dtype)


@rrule(cast)
def _(x: Anything, dtype: Anything):
    def cast_pullback(ȳ):
        return ȳ, NONE  # the projection to the space of x casts it back

    return cast(x, dtype), cast_pullback


# -- what the core is told -------------------------------------------------------------------------


def is_inexact(x: Any) -> bool:
    """Has an array a tangent space?"""
    return x.dtype.kind in "fc"


@projector.register(Array)
def _(x: Any) -> Any:
    if not is_inexact(x):
        return lambda x̄: NONE

    def project_dask(x̄: Any) -> Any:
        if not isinstance(x̄, Array):
            x̄ = chunked(np.broadcast_to(x̄, x.shape), x.chunks)
        if len(x̄.shape) != len(x.shape) or any(map(differ, x̄.shape, x.shape)):
            raise CotangentError(
                f"the cotangent of an array of shape {x.shape} has shape {x̄.shape}"
            )
        if x.dtype.kind == "f" and x̄.dtype.kind == "c":
            x̄ = elementwise(np.real, x̄)
        return x̄ if x̄.dtype == x.dtype else cast(x̄, x.dtype)

    return project_dask


def differ(m: Any, n: Any) -> bool:
    """Are these two lengths, neither of them unknown, which is NaN?"""
    return m != n and m == m and n == n


@unit.register(Array)
def _(y: Any) -> Any:
    return da.ones_like(y) if y.size == 1 and y.dtype.kind == "f" else None


@materialise.register(Array)
def _(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    x̄ = unthunk(x̄)
    if not is_inexact(x):
        return None
    return da.zeros_like(x) if isinstance(x̄, AbstractZero) else da.rechunk(x̄, x.chunks)


def not_in_vectors(x: Any) -> bool:
    """`ravel` makes an array of NumPy's, and nothing is computed by Morula's doing."""
    raise ArgumentError("ravel computes: give it x.compute() in the place of an array of Dask's")


foreign.append(Foreign((Array,), not_in_vectors, np.asarray, not_in_vectors, is_inexact))


@space_problem.register(Array)
def _(x: Any, x̄: Any) -> tuple[str, str] | None:
    if np.shape(x̄) != x.shape:
        return f"an array of shape {x.shape}", f"of shape {np.shape(x̄)}"
    return None


go_by_value(Array)


# -- meanings --------------------------------------------------------------------------------------


def by_elements(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An operator, or a universal function."""
    fn = UFUNCS.get(id(fn), fn)
    shape, chunks = common(args)
    return elementwise(fn, *operands(args, shape, chunks, precision_of(fn, args)))


def precision_of(fn: Any, xs: Args) -> Any:
    """The dtype in which numbers are computed; None: in integers, or with some that stay such."""
    given = [x if type(x) in (int, float, complex) else np.result_type(x) for x in xs]
    dtype = np.result_type(*given)
    return dtype if dtype.kind in "fc" and fn is not np.ldexp else None


def common(xs: Any) -> tuple[Any, Any]:
    """The shape and chunks to which operands are broadcast."""
    whole = da.broadcast_arrays(*[da.asarray(x) for x in xs])[0]
    return whole.shape, whole.chunks


def total(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A sum."""
    return total_of(*args, **kwargs)


def total_of(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """The same, with the options that count."""
    return summed(x, axis, bool(keepdims))


def mean(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A mean."""
    y = total_of(*args, **kwargs)
    return times(y, y.size / args[0].size)


def times(y: Any, factor: float) -> Any:
    """A multiple."""
    return elementwise(np.multiply, y, full_of(factor, y))


def full_of(factor: float, y: Any) -> Any:
    """An array like another of one number."""
    return da.full(y.shape, factor, dtype=y.dtype, chunks=y.chunks)


def variance(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A variance."""
    return variance_of(*args, **kwargs)


def variance_of(x: Any, axis: Any = None, *, keepdims: Any = False, ddof: int = 0) -> Any:
    """The same, with the options that count."""
    centre = summed(x, axis, True)
    n = x.size / centre.size
    away = elementwise(np.subtract, x, spread(times(centre, 1 / n), x.shape, x.chunks))
    y = summed(elementwise(np.square, away), axis, bool(keepdims))
    return times(y, 1 / (n - ddof))


def deviation(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A standard deviation."""
    return elementwise(np.sqrt, variance_of(*args, **kwargs))


def as_dask(x: Any) -> Any:
    """An array of Dask's."""
    return x if isinstance(x, Array) else chunked(x, "auto")


def product_of(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A product of matrices."""
    return contracted(as_dask(args[0]), as_dask(args[1]))


def turned(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A transpose."""
    x, *axes = args
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        axes = list(axes[0])
    axes = list(kwargs.get("axes") or axes) or list(range(x.ndim))[::-1]
    return permuted(x, tuple([a % x.ndim for a in axes]))


def swapped(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Two axes swapped."""
    return swapped_of(*args, **kwargs)


def swapped_of(x: Any, axis1: int, axis2: int) -> Any:
    """The same, with the options that count."""
    axes = list(range(x.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return permuted(x, tuple(axes))


def largest(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """A maximum or minimum along axes."""
    return largest_of(fn, *args, **kwargs)


def largest_of(fn: Any, x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """The same, with the options that count."""
    return extreme(getattr(Array, EXTREMES[fn.__name__]), x, axis, bool(keepdims))


def broadcast(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """An array, broadcast to a shape."""
    return spread_to(*args, **kwargs)


def spread_to(x: Any, shape: Any) -> Any:
    """The same, with the options that count."""
    return spread(x, tuple(shape), chunks_of(da.broadcast_to, (x, shape), {}))


def together_along(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`da.concatenate(xs)`, `da.stack(xs)`."""
    return together_of(fn, *args, **kwargs)


def together_of(fn: Any, xs: Any, axis: int = 0) -> Any:
    """The same, with the options that count."""
    return joined(fn, tuple([as_dask(x) for x in xs]), axis)


def attribute(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.T`."""
    return turned(fn, args[:1], {})


def shaped(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Another shape."""
    x, *shape = args
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = list(shape[0])
    return reshaped(x, whole_shape(x, shape))


def whole_shape(x: Any, shape: Any) -> Any:
    """A shape with -1 in it, filled in."""
    return np.empty(x.shape, bool).reshape(shape).shape if -1 in shape else tuple(shape)


def flat(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """One axis."""
    return reshaped(args[0], (args[0].size,))


def part(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x[key]`."""
    return taken(*args)


def computed(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.compute()`, `np.asarray(x)`."""
    return host(args[0])


def all_of(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`dask.compute(x, y)`, `dask.persist(x, y)`: a tuple."""
    method = host if fn is compute else persisted
    return tuple([method(x) if isinstance(x, Array) else x for x in args])


def persisted(x: Any) -> Any:
    """`x.persist()`."""
    return the_same(Array.persist, (x,), {})


def number(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`float(x)`."""
    return fn(host(args[0]))


def in_chunks(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`da.from_array(x)`."""
    return chunked(args[0], chunks_of(fn, args, kwargs))


def chunks_of(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """In which chunks Dask puts it."""
    return fn(*args, **kwargs).chunks


def the_same(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.rechunk(…)`, `x.persist()`: the values stay."""
    return with_derivative_of(after(fn, args, kwargs), args[0])


def after(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What it gives."""
    return fn(*args, **kwargs)


def typed(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x.astype(dtype)`."""
    return cast(*args[:2])


def unknown(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What has no rule: a call as it is."""
    return opaque(fn, args, kwargs, REASON)  # type: ignore[call-arg]


def unknown_forward(run: Any, fn: Any, ḟ: Any, args: Args, tangents: Any, keywords: Any) -> Any:
    """The same in forward mode."""
    return opaque_forward(run, fn, ḟ, args, tangents, keywords, REASON)


REASON = "Morula has no rule for it on Dask's arrays"
ELEMENTS, TOTAL, MEAN, VARIANCE = claim(by_elements), claim(total), claim(mean), claim(variance)
DEVIATION, PRODUCT, TURNED, ATTRIBUTE = (
    claim(deviation), claim(product_of), claim(turned), claim(attribute),
)  # fmt: skip
SHAPED, FLAT, PART, COMPUTED, NUMBER = (
    claim(shaped), claim(flat), claim(part), claim(computed), claim(number),
)  # fmt: skip
IN_CHUNKS, THE_SAME, TYPED = claim(in_chunks), claim(the_same), claim(typed)
ALL_OF, SWAPPED, LARGEST, BROADCAST, TOGETHER = (
    claim(all_of), claim(swapped), claim(largest), claim(broadcast), claim(together_along),
)  # fmt: skip
EXTREMES = {"max": "max", "min": "min", "amax": "max", "amin": "min"}
HANDED_ON, PLAINLY = claim(handed_on), claim(plainly)
UNKNOWN = Claim(unknown, unknown_forward)

_NAMES = {
    "neg": "negative", "pos": "positive", "abs": "absolute", "add": "add", "sub": "subtract",
    "mul": "multiply", "truediv": "divide", "pow": "power", "mod": "remainder",
}  # fmt: skip
UFUNCS = {id(getattr(operator, k)): getattr(np, v) for k, v in _NAMES.items()} | {
    id(abs): np.absolute
}
COMPARISONS = {id(getattr(operator, k)) for k in ("lt", "le", "eq", "ne", "gt", "ge")}
BY_NAME = {
    "sum": TOTAL, "mean": MEAN, "var": VARIANCE, "std": DEVIATION, "dot": PRODUCT, "matmul": PRODUCT,
    "transpose": TURNED, "reshape": SHAPED, "ravel": FLAT, "flatten": FLAT, "compute": COMPUTED,
    "swapaxes": SWAPPED, "max": LARGEST, "min": LARGEST, "amax": LARGEST, "amin": LARGEST,
    "broadcast_to": BROADCAST, "astype": TYPED, "rechunk": THE_SAME, "persist": THE_SAME,
    "__array__": COMPUTED,
}  # fmt: skip


def claims(fn: Any, values: Args) -> Claim | None:
    """What a call means that has to do with Dask's arrays."""
    if type(fn) in (MethodType, MethodDescriptorType):
        return None
    if fn is da.from_array:
        return IN_CHUNKS
    if fn is da.stack or fn is da.concatenate:
        return TOGETHER if values and all(map(is_operand, values[0])) else UNKNOWN
    if fn is compute or fn is persist:
        inside = any(holds_array(x) and not isinstance(x, Array) for x in values)
        return UNKNOWN if inside else ALL_OF
    if not values or not any(isinstance(x, Array) for x in values[:3]):
        return UNKNOWN if is_of_dask(fn) and any(map(holds_array, values)) else None
    if fn is getattr:
        if values[1] == "T":
            return ATTRIBUTE
        return HANDED_ON if callable(getattr(Array, values[1], None)) else PLAINLY
    if id(fn) in UFUNCS or (isinstance(fn, np.ufunc) and fn.signature is None):
        return ELEMENTS if all(map(is_operand, values)) else UNKNOWN
    if id(fn) in COMPARISONS:
        return PLAINLY
    if fn is operator.matmul or fn is np.matmul:
        return PRODUCT if all(np.ndim(x) in (1, 2) for x in values) else UNKNOWN
    if fn is operator.getitem:
        return PART
    if fn in (float, complex):
        return NUMBER
    if fn in (np.asarray, np.array):
        return COMPUTED
    module = str(getattr(fn, "__module__", "")).split(".")[0]
    if type(fn) is FunctionType and module == "morula":
        return None
    if module in ("dask", "numpy") and hasattr(fn, "__name__"):
        return by_name(fn, values)
    return UNKNOWN if module in DASKS else None


def is_of_dask(fn: Any) -> bool:
    """Is it a function of Dask's?"""
    return str(getattr(fn, "__module__", "")).split(".")[0] in DASKS


def holds_array(x: Any) -> bool:
    """Is it an array of Dask's, or a list, a tuple or a dict that holds one?"""
    if isinstance(x, dict):
        return any(map(holds_array, x.values()))
    return isinstance(x, Array) or (isinstance(x, (list, tuple)) and any(map(holds_array, x)))


DASKS = ("dask", "distributed")


def by_name(fn: Any, values: Args) -> Claim:
    """A function or a method, of Dask's or of NumPy's."""
    ufunc = getattr(np, fn.__name__, None)
    if isinstance(ufunc, np.ufunc) and ufunc.signature is None and all(map(is_operand, values)):
        return NAMED
    found = BY_NAME.get(fn.__name__)
    if found is PRODUCT and not all(np.ndim(x) in (1, 2) for x in values):
        return UNKNOWN
    return found or UNKNOWN


def named(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`da.sin(x)`: as NumPy's."""
    return by_elements(getattr(np, fn.__name__), args, kwargs)


NAMED = claim(named)


def is_operand(x: Any) -> bool:
    """Is it what arrays are computed with?"""
    return isinstance(x, (Array, int, float, complex, np.ndarray, np.generic))


def belongs(x: Any) -> bool:
    """Is a callable or a type Dask's, so that a program with it is not specialised?"""
    return str(getattr(x, "__module__", "")).split(".")[0] == "dask"


non_differentiable(
    differ, full_of, common, precision_of, pairs, chunks_of, after, whole_shape, is_operand
)
general.CLAIMS.append(claims)
stays_general.append(belongs)
registry.registry.entry(claims).changed()
