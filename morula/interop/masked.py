"""Masked arrays: what `np.ma` computes, by what NumPy computes of the entries that are not masked.

A meaning does the call as it is, for the value; its derivative is that of a formula over the data,
in which what is masked is selected away, so that nothing under a mask is ever evaluated backwards.
A formula whose numbers are not those of the call is not used: then, and where there is no formula,
an error says so if a cotangent reaches the result. The cotangent of a masked array is a plain array
of the shape of its data; the gradient that users get has the mask of the argument.
Tests: tests/interop/test_masked.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.ma import MaskedArray

from morula.core.extend import (
    NONE,
    frule,
    general,
    materialise,
    no_tangent,
    non_differentiable,
    on_entry,
    opaque,
    projector,
    registry,
    rrule,
    stays_general,
    unit,
    unsupported,
)
from morula.core.general import Claim
from morula.interop.meanings import (
    ITERATING,
    Args,
    as_it_is,
    claim,
    forward,
    handed_on,
    iterates,
    plainly,
    reverse,
)
from morula.mixed_mode.push import opaque as opaque_forward
from morula.rules.arrays.types import NO_VALUE, Anything

Formula = Callable[..., Any]


def is_masked_array(x: Any) -> bool:
    """Is it an array with a mask?"""
    return isinstance(x, MaskedArray)


# -- data and masks --------------------------------------------------------------------------------


def data_of(x: Any) -> Any:
    """The data of a masked array, in its memory; what is something else stays as it is."""
    return x.view(np.ndarray) if isinstance(x, MaskedArray) else x


@rrule(data_of)
def _(x: Anything):
    def data_pullback(ȳ):
        return (ȳ,)

    return data_of(x), data_pullback


@frule(data_of)
def _(x: Anything):
    def data_pushforward(ẋ):
        return ẋ

    return data_of(x), data_pushforward


def mask_of(x: Any) -> np.ndarray:
    """Where an array is masked, now: nobody changes this later."""
    return np.array(np.ma.getmaskarray(x))


class Held:
    """A result: its memory is not taken for that of an operand."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def told(z: Any, held: Held) -> Any:
    """A result, whose derivative is that of z."""
    return held.value


@rrule(told)
def _(z: Anything, held: Held):
    def told_pullback(ȳ):
        return ȳ, NONE

    return told(z, held), told_pullback


@frule(told)
def _(z: Anything, held: Held):
    def told_pushforward(ż, _):
        return ż

    return told(z, held), told_pushforward


def plain(x: Any) -> Any:
    """The data of masked arrays, also of those in lists and tuples; `masked` is no number."""
    if x is np.ma.masked:
        return 0.0
    if isinstance(x, (list, tuple)):
        return [plain(item) for item in x]
    return data_of(x)


def filled(x: Any, value: Any) -> Any:
    """The data of an array, with a value where it is masked."""
    x = as_array(x)
    return np.where(mask_of(x), value, data_of(x))


def as_array(x: Any) -> Any:
    """An array, masked or not, of what may be a list or a number."""
    return x if isinstance(x, np.ndarray) else np.asarray(plain(x))


# -- formulas: of the callable, its result and its arguments ----------------------------------------


def elementwise(fn: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """An operator or a universal function; `np.ma` leaves the first operand where it masks."""
    ufunc = ufunc_of(fn)
    below = plain(args[0]) if keeps_first(fn) else 0.0
    return np.where(mask_of(y), below, ufunc(*[plain(x) for x in args], **kwargs))


def ufunc_of(fn: Any) -> Any:
    """What a function of `np.ma` does with data."""
    if isinstance(fn, np.ufunc) or not in_masked_arrays(fn):
        return fn
    return getattr(fn, "f", None) or getattr(np, fn.__name__)


def keeps_first(fn: Any) -> bool:
    """Is what lies under the mask of a result what lay there in the first operand?"""
    return not isinstance(fn, np.ufunc)


def moved(fn: Any, y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """What puts the entries of an array, or of several, elsewhere."""
    if isinstance(fn, FunctionType) and hasattr(np, fn.__name__) and not is_method(fn):
        return getattr(np, fn.__name__)(plain(x), *args, **kwargs)
    if in_masked_arrays(fn):
        return getattr(data_of(x), fn.__name__)(*args, **kwargs)
    return fn(plain(x), *args, **kwargs)


def item(fn: Any, y: Any, x: Any, index: Any) -> Any:
    """`x[index]`."""
    return data_of(x)[plain_index(index)]


def plain_index(index: Any) -> Any:
    """An index by the data of masked arrays, as NumPy takes it."""
    if isinstance(index, tuple):
        return tuple([data_of(i) for i in index])
    return data_of(index)


def attribute(fn: Any, y: Any, x: Any, name: Any) -> Any:
    """`x.T`, `x.real`, `x.data`."""
    data = data_of(x)
    return data if name in ("data", "_data") else getattr(data, name)


def made(fn: Any, y: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
    """A masked array of data: `np.ma.array(data, mask=…)`."""
    return np.reshape(np.asarray(plain(data), dtype=y.dtype), np.shape(y))


def masked_where(fn: Any, y: Any, condition: Any, a: Any, copy: Any = True) -> Any:
    """`np.ma.masked_where(condition, a)`."""
    return np.asarray(plain(a))


def made_valid(fn: Any, y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Data, of which what is NaN or infinite is replaced."""
    x = np.asarray(plain(x))
    return np.where(np.isfinite(x), x, 0.0)


def filled_with(fn: Any, y: Any, x: Any, fill_value: Any = None) -> Any:
    """`x.filled(value)`."""
    return filled(x, fill_of(x) if fill_value is None else fill_value)


def fill_of(x: Any) -> Any:
    """What fills an array, if nothing else is said."""
    return x.fill_value if isinstance(x, MaskedArray) else 0.0


def compressed(fn: Any, y: Any, x: Any) -> Any:
    """The entries that are not masked, along one axis."""
    x = as_array(x)
    return data_of(x)[~mask_of(x)]


def chosen(fn: Any, y: Any, condition: Any, a: Any, b: Any) -> Any:
    """`np.ma.where(condition, a, b)`."""
    return np.where(plain(condition), plain(a), plain(b))


def clipped(fn: Any, y: Any, x: Any, low: Any = None, high: Any = None, **kwargs: Any) -> Any:
    """`x.clip(low, high)`."""
    return np.clip(plain(x), plain(low), plain(high), **{k: plain(v) for k, v in kwargs.items()})


def total(
    fn: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """The sum of what is not masked."""
    return np.sum(filled(x, 0), axis, dtype, keepdims=is_kept(keepdims))


def product(
    fn: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """The product of what is not masked."""
    return np.prod(filled(x, 1), axis, dtype, keepdims=is_kept(keepdims))


def cumulated(fn: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums and products from the first entry on; what is masked is left out."""
    function = getattr(np, fn.__name__)
    return function(filled(x, 0 if fn.__name__ == "cumsum" else 1), axis, dtype)


def is_kept(keepdims: Any) -> bool:
    """Are axes kept, with one entry?"""
    return keepdims is not NO_VALUE and bool(keepdims)


def count_of(x: Any, axis: Any, keepdims: bool) -> Any:
    """How many entries are not masked; at least one."""
    return np.maximum(np.sum(~mask_of(x), axis=axis, keepdims=keepdims), 1)


def mean(
    fn: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """The mean of what is not masked."""
    x = as_array(x)
    return total(fn, y, x, axis, dtype, None, keepdims) / count_of(x, axis, is_kept(keepdims))


def anomalies(fn: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """What is not masked, less its mean."""
    x = as_array(x)
    return np.where(mask_of(x), 0.0, data_of(x) - mean(fn, y, x, axis, dtype, None, True))


def variance(
    fn: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """The variance of what is not masked."""
    x = as_array(x)
    rest = anomalies(fn, y, x, axis)
    squares = rest.real**2 + rest.imag**2 if np.iscomplexobj(rest) else rest**2
    n = np.sum(~mask_of(x), axis=axis, keepdims=is_kept(keepdims)) - ddof
    return np.sum(squares, axis, keepdims=is_kept(keepdims)) / np.where(n > 0, n, 1)


def deviation(fn: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """The standard deviation, whose slope is 0 at 0."""
    squares = variance(fn, y, *args, **kwargs)
    positive = squares > 0
    return np.where(positive, np.sqrt(np.where(positive, squares, 1.0)), 0.0)


def largest(
    fn: Any, y: Any, x: Any, axis: Any = None, out: Any = None, fill_value: Any = None,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """The largest of what is not masked."""
    return np.max(filled(x, -bound_of(x)), axis, keepdims=is_kept(keepdims))


def least(
    fn: Any, y: Any, x: Any, axis: Any = None, out: Any = None, fill_value: Any = None,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """The least of what is not masked."""
    return np.min(filled(x, bound_of(x)), axis, keepdims=is_kept(keepdims))


def bound_of(x: Any) -> Any:
    """What no entry of an array is beyond."""
    dtype = np.asarray(plain(x)).dtype
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def extent(
    fn: Any, y: Any, x: Any, axis: Any = None, out: Any = None, fill_value: Any = None,
    keepdims: Any = False,
) -> Any:  # fmt: skip
    """From the least to the largest of what is not masked."""
    high = largest(fn, y, x, axis, None, None, keepdims)
    return high - least(fn, y, x, axis, None, None, keepdims)


def median(
    fn: Any, y: Any, x: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False,
    keepdims: Any = False,
) -> Any:  # fmt: skip
    """The median of what is not masked."""
    x = as_array(x)
    masked = mask_of(x)
    none = np.all(masked, axis=axis, keepdims=True)
    some = np.where(none, 0.0, np.where(masked, np.nan, data_of(x)))
    return np.nanmedian(some, axis=axis, keepdims=keepdims)


def average(
    fn: Any, y: Any, x: Any, axis: Any = None, weights: Any = None, returned: Any = False, *,
    keepdims: Any = NO_VALUE,
) -> Any:  # fmt: skip
    """The weighted mean of what is not masked."""
    x = as_array(x)
    if weights is None:
        weights = np.ones(x.shape)
    elif np.shape(weights) != x.shape:
        weights = along(plain(weights), axis, x.ndim)
    else:
        weights = filled(weights, 0.0)
    weights = np.where(mask_of(x), 0.0, weights)
    sums = np.sum(weights, axis, keepdims=is_kept(keepdims))
    found = np.sum(filled(x, 0) * weights, axis, keepdims=is_kept(keepdims))
    found = found / np.where(sums == 0, 1.0, sums)
    return (found, sums + np.zeros(np.shape(found))) if returned else found


def along(weights: Any, axis: Any, ndim: int) -> Any:
    """Weights for one axis, beside an array of so many axes."""
    return np.reshape(weights, [-1 if i == axis % ndim else 1 for i in range(ndim)])


def trace(
    fn: Any, y: Any, x: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """The sum of what is not masked on a diagonal."""
    return np.trace(filled(x, 0), offset, axis1, axis2, dtype)


def dot(fn: Any, y: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """`np.ma.dot`, `np.ma.inner`, `np.ma.outer`: what is masked counts as 0."""
    function = getattr(np, fn.__name__.removesuffix("product"))
    return function(filled(a, 0), filled(b, 0))


def product_of_data(fn: Any, y: Any, a: Any, b: Any) -> Any:
    """`a @ b`, `np.dot`, which multiply the data; the mask comes after."""
    return np.where(mask_of(y), 0.0, fn(plain(a), plain(b)))


def in_order(fn: Any, y: Any, x: Any, axis: Any = -1, *args: Any, **kwargs: Any) -> Any:
    """`np.ma.sort(x)`."""
    x = as_array(x)
    if axis is None:
        return data_of(x).ravel()[order_of(x.ravel(), 0, *args, **kwargs)]
    return np.take_along_axis(data_of(x), order_of(x, axis, *args, **kwargs), axis)


def order_of(x: Any, axis: Any, *args: Any, **kwargs: Any) -> Any:
    """The places of the entries, in their order."""
    return np.asarray(np.ma.argsort(x, axis, *args, **kwargs))


def differences(fn: Any, y: Any, x: Any, n: Any = 1, axis: Any = -1) -> Any:
    """`np.ma.diff(x)`."""
    return np.where(mask_of(y), 0.0, np.diff(plain(x), n, axis))


def number(fn: Any, y: Any, x: Any, *args: Any) -> Any:
    """`float(x)`, `x.item()`."""
    return data_of(x).item(*args)


def copied(fn: Any, y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A copy, or an array of the data."""
    return np.array(plain(x), dtype=y.dtype)


# -- meanings --------------------------------------------------------------------------------------


class OtherNumbersError(Exception):
    """The formula of a call has other numbers than the call."""


def by(formula: Formula) -> Claim:
    """The call has the derivative of this formula, where that has the same numbers."""

    def meaning(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
        args, kwargs = with_first(fn, args, kwargs)
        y = as_it_is(fn, args, kwargs)
        if has_no_derivative(y):
            return y
        with np.errstate(all="ignore"):
            z = formula(fn, y, *args, **kwargs)
        if isinstance(y, tuple):
            return tuple([answer(fn, part, z[i]) for i, part in enumerate(y)])
        return answer(fn, y, z)

    return Claim(partial(reverse_or_unknown, meaning), partial(forward_or_unknown, meaning))


def answer(fn: Any, y: Any, z: Any) -> Any:
    """A result, with the derivative of z where it is not masked."""
    check(fn, y, z)
    return told(z, Held(y))


NAMES_OF_FIRST = ("a", "x", "arr", "obj", "data", "m", "arrays", "tup", "self")


def with_first(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The arguments of a call, the first of which stands in its place."""
    if args or "condition" in kwargs:
        return args, kwargs
    for name in NAMES_OF_FIRST:
        if name in kwargs:
            rest = {key: x for key, x in kwargs.items() if key != name}
            return (kwargs[name],), rest
    return args, kwargs


def has_no_derivative(y: Any) -> bool:
    """Is it `masked`, or nothing that numbers are in?"""
    dtype = getattr(y, "dtype", None)
    return y is np.ma.masked or (dtype is not None and dtype.kind not in "fciu")


def check(fn: Any, y: Any, z: Any) -> None:
    """Are these the numbers of a result, where it is not masked?"""
    valid = ~mask_of(y)
    data, z = np.asarray(data_of(y)), np.asarray(z)
    if data.shape != z.shape:
        raise OtherNumbersError
    data, z = data[valid], z[valid]
    eps = max(
        [float(np.finfo(x.dtype).eps) for x in (data, z) if x.dtype.kind in "fc"], default=0.0
    )
    scale = np.max(np.abs(data[np.isfinite(data)]), initial=0.0)
    if not np.allclose(data, z, eps**0.5, eps**0.5 * scale, equal_nan=True):
        raise OtherNumbersError


def listed(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`for v in x`, `sum(x)`, `list(x)`."""
    return fn(*[rows(x) for x in args], **kwargs)


def rows(x: Any) -> Any:
    """The items of a masked array; what is something else stays as it is."""
    return [x[i] for i in range(len(x))] if isinstance(x, MaskedArray) else x


def written(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x[index] = value`: the data are written to, and the mask is as NumPy says."""
    x, index, value = args
    if isinstance(x, MaskedArray) and x.hardmask:
        raise unsupported(
            "a write to an array with a hard mask", "it is not followed", "call x.soften_mask()"
        )
    if value is not np.ma.masked:
        data_of(x)[plain_index(index)] = plain(value)
    as_it_is(fn, args, kwargs)


def in_place(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`x += v`."""
    x, v = args
    y = in_place_of_copy(fn, x, v)
    before, masked = np.array(data_of(x)), mask_of(y)
    with np.errstate(all="ignore"):
        z = np.where(masked, before, OPERATORS_IN_PLACE[fn](before, plain(v)))
    data_of(x)[...] = told(z, Held(data_of(y)))
    take_mask(x, y)
    return x


def in_place_of_copy(fn: Any, x: Any, v: Any) -> Any:
    """The array that an operator makes of another in place."""
    return fn(x.copy(), v)


def take_mask(x: Any, y: Any) -> None:
    """Let an array have the mask of another one, also where others share it."""
    if y.mask is np.ma.nomask:
        return
    if x.mask is np.ma.nomask:
        x.mask = y.mask
    else:
        x._mask[...] = y.mask


REASON = "Morula has no rule for it on masked arrays"


def unknown(fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """What has no formula: a call as it is, and an error where a cotangent reaches its result."""
    return opaque(fn, args, kwargs, REASON)  # type: ignore[call-arg]


def unknown_forward(run: Any, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Any) -> Any:
    """The same in forward mode."""
    return opaque_forward(run, fn, ḟ, args, tangents, keywords, REASON)


def reverse_or_unknown(meaning: Any, fn: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """The value of a call and its pullback, which is not known where the numbers are others."""
    if not gives_room(args, kwargs):
        try:
            return reverse(meaning, fn, args, kwargs)
        except OtherNumbersError:
            pass
    return unknown(fn, args, kwargs)


def forward_or_unknown(
    meaning: Any, run: Any, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Any
) -> Any:
    """The same in forward mode."""
    n = len(args) - len(keywords)
    if not gives_room(args[:n], dict(zip(keywords, args[n:], strict=True))):
        try:
            return forward(meaning, run, fn, ḟ, args, tangents, keywords)
        except OtherNumbersError:
            pass
    return unknown_forward(run, fn, ḟ, args, tangents, keywords)


def gives_room(args: Args, kwargs: dict[str, Any]) -> bool:
    """Does a call say where its result is to go?"""
    return kwargs.get("out") is not None


UNKNOWN = Claim(unknown, unknown_forward)
PLAINLY, HANDED_ON, LISTED = claim(plainly), claim(handed_on), claim(listed)
WRITTEN, IN_PLACE = claim(written), claim(in_place)
ELEMENTS, MOVED, ITEM, NUMBER = by(elementwise), by(moved), by(item), by(number)
ATTRIBUTE, COPIED, MADE, OF_DATA = by(attribute), by(copied), by(made), by(product_of_data)
DOT, CHOSEN, FILLED = by(dot), by(chosen), by(filled_with)

OPERATORS_IN_PLACE = {
    getattr(operator, f"i{name}"): getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "pow")
}
OPERATORS = (
    operator.neg, operator.pos, operator.abs, operator.add, operator.sub, operator.mul,
    operator.truediv, operator.pow, operator.mod, abs,
)  # fmt: skip
ASKING = (
    len, type, isinstance, hasattr, callable, id, repr, str, print, format, bool, operator.truth,
    operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge, operator.invert,
    operator.and_, operator.or_, operator.xor, operator.is_, operator.is_not, operator.not_,
)  # fmt: skip
BY_IDENTITY: dict[int, Claim] = {
    **dict.fromkeys(map(id, OPERATORS), ELEMENTS),
    **dict.fromkeys(map(id, ASKING), PLAINLY),
    **dict.fromkeys(map(id, (float, complex)), NUMBER),
    id(operator.matmul): OF_DATA,
}
MASKING = """
    array masked_array MaskedArray asarray asanyarray copy masked_greater masked_greater_equal
    masked_less masked_less_equal masked_equal masked_not_equal masked_inside masked_outside
    masked_invalid masked_values masked_object getdata
"""
FUNCTIONS = """
    add subtract multiply divide true_divide power mod remainder fmod hypot arctan2 maximum minimum
    sqrt exp log log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh
    absolute abs fabs negative conjugate angle floor ceil
"""
MOVING = """
    reshape ravel flatten transpose squeeze swapaxes repeat take diagonal resize expand_dims
    broadcast_to moveaxis rollaxis roll flip fliplr flipud rot90 tile atleast_1d atleast_2d
    atleast_3d diag diagflat compress concatenate hstack vstack row_stack dstack column_stack stack
    astype
"""
CONSTANT = """
    zeros ones empty masked_all zeros_like ones_like empty_like masked_all_like identity getmask
    getmaskarray count count_masked is_masked isMaskedArray isMA isarray mask_or make_mask
    make_mask_none round round_ around harden_mask soften_mask unshare_mask set_fill_value
    argmin argmax argsort nonzero shape size ndim all any
"""
OF_MASKED_ARRAYS: dict[str, Claim] = {  # functions of np.ma, and methods
    **dict.fromkeys(FUNCTIONS.split(), ELEMENTS),
    **dict.fromkeys(MASKING.split(), MADE),
    **dict.fromkeys(CONSTANT.split(), PLAINLY),
    **dict.fromkeys(("dot", "inner", "innerproduct", "outer", "outerproduct"), DOT),
    **dict.fromkeys(("anom", "anomalies"), by(anomalies)),
    "masked_where": by(masked_where),
    "fix_invalid": by(made_valid),
    "filled": FILLED,
    "compressed": by(compressed),
    "where": CHOSEN,
    "median": by(median),
    "average": by(average),
    "diff": by(differences),
}
OF_BOTH: dict[str, Claim] = {  # functions of NumPy's that call the methods, too
    **dict.fromkeys(MOVING.split(), MOVED),
    **dict.fromkeys(("max", "amax"), by(largest)),
    **dict.fromkeys(("min", "amin"), by(least)),
    **dict.fromkeys(("prod", "product"), by(product)),
    **dict.fromkeys(("cumsum", "cumprod"), by(cumulated)),
    **dict.fromkeys(("item", "__float__"), NUMBER),
    **dict.fromkeys(("copy", "__copy__", "__array__"), COPIED),
    **dict.fromkeys(("round", "around"), PLAINLY),
    "sum": by(total),
    "mean": by(mean),
    "var": by(variance),
    "std": by(deviation),
    "ptp": by(extent),
    "trace": by(trace),
    "clip": by(clipped),
    "sort": by(in_order),
}
OF_NUMPY: dict[str, Claim] = {
    **dict.fromkeys(CONSTANT.split(), PLAINLY),
    **dict.fromkeys(("array", "asarray", "ascontiguousarray"), COPIED),
    **dict.fromkeys(("dot", "matmul"), OF_DATA),
    **dict.fromkeys(("real", "imag"), MOVED),
    "where": CHOSEN,
}


def claims(fn: Any, given: Args) -> Claim | None:
    """What a call means that has to do with masked arrays."""
    if isinstance(fn, (MethodType, partial)):
        return None
    if in_masked_arrays(fn):
        return of_masked_arrays(fn)
    if any(map(is_masked_array, given)):
        found = of_python(fn, given)
        if found is not None:
            return found
    return of_numpy(fn) if any(map(takes_part, given)) else None


def of_python(fn: Any, given: Args) -> Claim | None:
    """An operator, or a builtin function, of a masked array."""
    if fn is getattr:
        return of_attribute(*given[:2]) if is_masked_array(given[0]) else None
    if fn is setattr and is_masked_array(given[0]):
        return PLAINLY if given[1] in ("mask", "fill_value") else UNKNOWN
    if fn in (operator.getitem, operator.setitem) and isinstance(given[0], np.ndarray):
        return ITEM if fn is operator.getitem else WRITTEN
    if fn in OPERATORS_IN_PLACE:
        return IN_PLACE if is_masked_array(given[0]) else UNKNOWN
    if id(fn) in ITERATING and iterates(fn, given, is_masked_array):
        return LISTED
    return BY_IDENTITY.get(id(fn))


def takes_part(x: Any) -> bool:
    """Is it a masked array, or a list or tuple in which one is?"""
    return is_masked_array(x) or (type(x) in (list, tuple) and any(map(is_masked_array, x)))


def of_masked_arrays(fn: Any) -> Claim | None:
    """A callable of `np.ma`."""
    name = getattr(fn, "__name__", "")
    if name == "sort" and is_method(fn):  # in place
        return UNKNOWN
    if name in OWN_CODE:
        return None
    return OF_MASKED_ARRAYS.get(name) or OF_BOTH.get(name) or UNKNOWN


OWN_CODE = {  # they call functions of np.ma
    f"__{reflected}{name}__"
    for name in ("add", "sub", "mul", "truediv", "pow")
    for reflected in ("", "r")
}


def of_numpy(fn: Any) -> Claim | None:
    """A function of NumPy's, or a method of arrays, of a masked array."""
    if str(getattr(fn, "__module__", "")).split(".")[0] != "numpy" and not is_method(fn):
        return None
    name = getattr(fn, "__name__", "")
    if isinstance(fn, np.ufunc) and fn is not np.matmul:
        return ELEMENTS if fn.nin < 3 and fn.nout == 1 else UNKNOWN
    return OF_NUMPY.get(name) or OF_BOTH.get(name) or UNKNOWN


def is_method(fn: Any) -> bool:
    """Is it a method of arrays, masked or not?"""
    name = getattr(fn, "__name__", "")
    return getattr(MaskedArray, name, None) is fn or getattr(np.ndarray, name, None) is fn


def in_masked_arrays(fn: Any) -> bool:
    """Is a callable one of `np.ma`, so that a program with it is not specialised?"""
    module = getattr(fn, "__module__", None)
    if not isinstance(module, str):
        module = type(fn).__module__
    return f"{module}.".startswith("numpy.ma.") and not (
        isinstance(fn, type) and issubclass(fn, BaseException)
    )


def of_attribute(x: Any, name: str) -> Claim:
    """`x.name`."""
    if name in ("data", "_data", "T", "mT", "real", "imag"):
        return ATTRIBUTE
    if name == "flat":
        return UNKNOWN
    return HANDED_ON if callable(getattr(x, name, None)) else PLAINLY


# -- what the core is told -------------------------------------------------------------------------


@projector.register(MaskedArray)
def _(x):
    project = projector.dispatch(np.ndarray)(x)

    def project_masked(x̄):
        return project(np.ma.filled(x̄, 0.0) if isinstance(x̄, MaskedArray) else x̄)

    project_masked.takes_unknown = True
    return project_masked


@unit.register(MaskedArray)
def _(y):
    return None if np.any(mask_of(y)) else unit.dispatch(np.ndarray)(y)


@on_entry.register(MaskedArray)
def _(x, known):
    """The array with the mask that it has now."""
    return masked_like(data_of(x), x)


@materialise.register(MaskedArray)
def _(x, x̄, of):
    found = materialise.dispatch(np.ndarray)(x, data_of(x̄), of)
    return None if found is None else masked_like(found, x)


def masked_like(data: Any, x: Any) -> Any:
    """Data with the mask of an array."""
    mask = np.ma.nomask if x.mask is np.ma.nomask else mask_of(x)
    return np.ma.array(data, mask=mask, copy=False)


no_tangent(Held)
non_differentiable(
    is_masked_array, mask_of, Held, ufunc_of, keeps_first, is_method, in_masked_arrays, fill_of,
    is_kept, count_of, bound_of, order_of, has_no_derivative, check, in_place_of_copy, take_mask,
)  # fmt: skip
general.CLAIMS.append(claims)
stays_general.append(in_masked_arrays)
registry.registry.entry(claims).changed()
