"""Rules of the reductions: sum, prod, mean, var, std, max, min, ptp, cumsum, cumprod, trace, all.

    y = Σ x:          x̄ = ȳ, put back into the shape of x by `restore`
    y = Π x:          x̄ = ȳ Π of the other entries, by y / x where no entry is zero
    y = max x:        the entries that attain it share ȳ equally
    y = var x:        x̄ = ȳ 2 (x - mean x) / (n - ddof);   std: ȳ (x - mean x) / (y (n - ddof)),
                      and 0 where y = 0;  by ddof: ȳ y / (n - ddof), std: half of it

Shapes: y is x without `axis` (1 there if keepdims). The functions of NumPy, the methods of arrays
and the `reduce` of the ufuncs share these rules. `out=` is not served.
Tests: tests/rules/arrays/test_reductions.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    Const,
    Known,
    NoTangent,
    ZeroTangent,
    folds,
    non_differentiable,
    rrule,
    transfers,
    type_stable,
)
from morula.rules.arrays.bodies import derivative_of
from morula.rules.arrays.broadcasting import (
    quotient,
    reduced_size,
    restore,
    shape_of,
    spread,
    total,
    unbroadcast,
)
from morula.rules.arrays.constants import decided_by_types
from morula.rules.arrays.indexing import scatter, scattered
from morula.rules.arrays.structural import mark, masked, selected, unmarked
from morula.rules.arrays.types import NO_VALUE, Anything
from morula.rules.numbers import is_inexact

# -- sums and means --------------------------------------------------------------------------------


@rrule(np.sum)
@rrule(np.ndarray.sum)
def _(a: np.ndarray, axis=None, dtype=None, *, initial=NO_VALUE, keepdims=False, where=True):
    shape = a.shape
    rounded = dtype is not None and rounds(a, dtype)

    def sum_pullback(ȳ):
        return (
            ZeroTangent() if rounded else restored_where(ȳ, shape, axis, keepdims, where),
            NoTangent(),
            NoTangent(),
            NoTangent() if initial is NO_VALUE else of_initial(total(ȳ), initial, y),
        )

    y = np.add.reduce(a, axis, dtype, None, keepdims, initial, where)
    return y, sum_pullback


def rounds(a: np.ndarray, dtype: Any) -> bool:
    """Are real numbers made whole before they are reduced? Then nothing depends on them."""
    return is_inexact(a.dtype) and np.dtype(dtype).kind in "iub"


def made_whole(initial: Any, y: Any) -> bool:
    """Is a real number that a reduction begins with made whole, as all of its result is?"""
    return is_inexact(np.asarray(initial).dtype) and np.asarray(y).dtype.kind in "iub"


def drops_imaginary(a: np.ndarray, dtype: Any) -> bool:
    """Are only the real parts of complex numbers reduced?"""
    return a.dtype.kind == "c" and np.dtype(dtype).kind == "f"


decided_by_types(rounds, made_whole, drops_imaginary)


def of_initial(x̄, initial, y):
    """The cotangent of what a reduction begins with, if that reached it as it is."""
    return ZeroTangent() if made_whole(initial, y) else x̄


def restored_where(ȳ, shape, axis, keepdims, where):
    """`restore`, for the entries that were asked for."""
    if where is True:
        return spread(ȳ, shape) if axis is None else restore(ȳ, shape, axis, keepdims)
    return asked_for(restore(ȳ, shape, axis, keepdims), where)


def asked_for(x̄, where):
    """`x̄`, structurally zero at the entries that `where` leaves out."""
    return x̄ if where is True else selected(x̄, np.asarray(where))


def count(shape, axis, keepdims, where):
    """How many entries each entry of the result was made of."""
    if where is True:
        return max(reduced_size(shape, axis), 1)
    return np.add.reduce(np.broadcast_to(where, shape), axis=axis, keepdims=keepdims, dtype=float)


@rrule(np.mean)
@rrule(np.ndarray.mean)
def _(a: np.ndarray, axis=None, dtype=None, *, keepdims=False, where=True):
    shape = a.shape
    size = a.size
    rounded = dtype is not None and rounds(a, dtype)

    def mean_pullback(ȳ):
        if rounded:
            return ZeroTangent(), NoTangent(), NoTangent()
        n = (size or 1) if axis is None and where is True else count(shape, axis, keepdims, where)
        return restored_where(ȳ / n, shape, axis, keepdims, where), NoTangent(), NoTangent()

    return a.mean(axis, dtype, keepdims=keepdims, where=where), mean_pullback


def deviations(a, axis, where, mean):
    """a - mean(a), and 0 at the entries that were not asked for."""
    if mean is not NO_VALUE:
        return a - mean if where is True else masked(a - mean, where)
    if where is True:
        return a - np.mean(a, axis=axis, keepdims=True)
    return masked(a - np.mean(a, axis=axis, keepdims=True, where=where), where)


def mean_cotangent(ā, mean):
    """The cotangent of the keyword `mean` of var and std; nothing, if the mean was not given."""
    return NoTangent() if mean is NO_VALUE else -unbroadcast(ā, shape_of(mean))


def freedom_cotangents(slope, ddof, correction):
    """The cotangents of `ddof` and `correction`, two names of one number, of which one is given."""
    x̄ = unbroadcast(slope, shape_of(ddof))
    return (x̄, NoTangent()) if correction is NO_VALUE else (NoTangent(), x̄)


def _asked(where, mean):
    keywords = {} if where is True else {"where": where}
    return keywords if mean is NO_VALUE else {**keywords, "mean": mean}


@rrule(np.var)
@rrule(np.ndarray.var)
def _(
    a: np.ndarray, axis=None, dtype=None, *,
    mean=NO_VALUE, ddof=0, keepdims=False, where=True, correction=NO_VALUE,
):  # fmt: skip
    shape = a.shape
    ddof = ddof if correction is NO_VALUE else correction
    rounded = dtype is not None and rounds(a, dtype)

    def var_pullback(ȳ):
        if rounded:
            return (ZeroTangent(),) * 8
        n = count(shape, axis, keepdims, where) - ddof
        share = restore(np.true_divide(ȳ * 2, n), shape, axis, keepdims)
        ā = asked_for(share * deviations(a, axis, where, mean), where)
        ddof_bar, correction_bar = freedom_cotangents(np.true_divide(ȳ * y, n), ddof, correction)
        return (
            ā, NoTangent(), NoTangent(), mean_cotangent(ā, mean), ddof_bar, NoTangent(),
            NoTangent(), correction_bar,
        )  # fmt: skip

    y = np.var(a, axis, dtype, ddof=ddof, keepdims=keepdims, **_asked(where, mean))
    return y, var_pullback


@rrule(np.std)
@rrule(np.ndarray.std)
def _(
    a: np.ndarray, axis=None, dtype=None, *,
    mean=NO_VALUE, ddof=0, keepdims=False, where=True, correction=NO_VALUE,
):  # fmt: skip
    shape = a.shape
    ddof = ddof if correction is NO_VALUE else correction
    rounded = dtype is not None and rounds(a, dtype)
    y = np.std(a, axis, dtype, ddof=ddof, keepdims=keepdims, **_asked(where, mean))

    def std_pullback(ȳ):
        if rounded:
            return (ZeroTangent(),) * 8
        n = count(shape, axis, keepdims, where) - ddof
        share = np.true_divide(ȳ, n) * quotient(1.0, y)
        share = restore(share, shape, axis, keepdims)
        ā = asked_for(share * deviations(a, axis, where, mean), where)
        ddof_bar, correction_bar = freedom_cotangents(
            np.true_divide(ȳ * y, 2 * n), ddof, correction
        )
        return (
            ā, NoTangent(), NoTangent(), mean_cotangent(ā, mean), ddof_bar, NoTangent(),
            NoTangent(), correction_bar,
        )  # fmt: skip

    return y, std_pullback


# -- diagonals -------------------------------------------------------------------------------------


@rrule(np.trace)
@rrule(np.ndarray.trace)
def _(a: np.ndarray, offset=0, axis1=0, axis2=1, *, dtype=None):
    shape = a.shape

    rounded = dtype is not None and rounds(a, dtype)

    def trace_pullback(ȳ):
        if rounded:
            return ZeroTangent(), NoTangent(), NoTangent(), NoTangent()
        along = restore(ȳ, diagonal_shape(shape, offset, axis1, axis2), -1, False)
        ā = on_diagonal(along, shape, offset, axis1, axis2)
        return ā, NoTangent(), NoTangent(), NoTangent()

    return np.trace(a, offset, axis1, axis2, dtype=dtype), trace_pullback


@rrule(np.diagonal)
@rrule(np.ndarray.diagonal)
def _(a: np.ndarray, offset=0, axis1=0, axis2=1):
    shape = a.shape

    def diagonal_pullback(ȳ):
        ā = on_diagonal(ȳ, shape, offset, axis1, axis2)
        return ā, NoTangent(), NoTangent(), NoTangent()

    return np.diagonal(a, offset, axis1, axis2), diagonal_pullback


def diagonal_shape(shape, offset, axis1, axis2):
    """The shape of the diagonals of an array, which are the last axis."""
    n, m = shape[axis1], shape[axis2]
    length = max(0, min(n + min(offset, 0), m - max(offset, 0)))
    kept = [i for i in range(len(shape)) if i not in (axis1 % len(shape), axis2 % len(shape))]
    return (*[shape[i] for i in kept], length)


def on_diagonal(ȳ, shape, offset, axis1, axis2):
    """`set_on_diagonal`, where what is beside the diagonals is structurally zero."""
    return diagonals_in(scatter, ȳ, shape, offset, axis1, axis2)


def set_on_diagonal(ȳ, shape, offset, axis1, axis2):
    """Zeros of this shape, with ȳ on the diagonals."""
    return diagonals_in(scattered, ȳ, shape, offset, axis1, axis2)


def diagonals_in(scatter, ȳ, shape, offset, axis1, axis2):
    """The same, by a function that puts entries into zeros."""
    steps = np.arange(ȳ.shape[-1])
    index = (..., steps + max(-offset, 0), steps + max(offset, 0))
    n, m = shape[axis1], shape[axis2]
    rest = [k for i, k in enumerate(shape) if i not in (axis1 % len(shape), axis2 % len(shape))]
    return np.moveaxis(scatter(ȳ, index, (*rest, n, m), ȳ.dtype), (-2, -1), (axis1, axis2))


def _taking_back(put):
    @rrule(put)
    def _(ȳ: Anything, shape: Anything, offset: Anything, axis1: Anything, axis2: Anything):
        def diagonal_pullback(x̄):
            nothing = NoTangent()
            return np.diagonal(x̄, offset, axis1, axis2), nothing, nothing, nothing, nothing

        return put(ȳ, shape, offset, axis1, axis2), diagonal_pullback


_taking_back(on_diagonal)
_taking_back(set_on_diagonal)
non_differentiable(diagonal_shape)


@folds(diagonal_shape)
def _(f: Any, call: Any) -> Any:
    """It is constant, if the shape is."""
    if not all(type(x) is Const for x in call.args):
        return None
    shape, offset, *axes = [x.value for x in call.args]
    fits = all(-len(shape) <= axis < len(shape) for axis in axes)
    return f.const(diagonal_shape(shape, offset, *axes)) if fits else None


@transfers(diagonal_shape)
def _(s: Any, call: Any, args: Any) -> Any:
    """An axis less."""
    shape = args[0]
    axes = shape.value if type(shape) is Const else getattr(shape, "detail", None)
    return None if axes is None else Known(tuple, (Known(int),) * (len(axes) - 1))


@transfers(on_diagonal, set_on_diagonal)
def _(s: Any, call: Any, args: Any) -> Any:
    """An array of the shape that is asked for."""
    ȳ, shape, *_ = args
    if getattr(ȳ, "type", None) is not np.ndarray or ȳ.detail[0][1] != "f":
        return None
    if type(shape) is Const:
        return Known(np.ndarray, (ȳ.detail[0], len(shape.value), shape.value))
    return Known(np.ndarray, (ȳ.detail[0], ȳ.detail[1] + 1, None))


# -- products --------------------------------------------------------------------------------------


def exclusive_cumprod(x, axis):
    """The product of all earlier entries along `axis`."""
    before = np.moveaxis(x, axis, 0)[:-1]
    ones = np.ones_like(np.moveaxis(x, axis, 0)[:1])
    return np.moveaxis(np.cumprod(np.concatenate((ones, before)), axis=0), 0, axis)


def product_of_others(x, axis):
    """For each entry, the product of all others along `axis`: no division, right to all orders."""
    after = np.flip(exclusive_cumprod(np.flip(x, axis), axis), axis)
    return exclusive_cumprod(x, axis) * after


def product_slopes(a, axis, y):
    """∂y/∂a of the product along `axis`; y is in the shape that `restore` gives."""
    if np.all(a):
        return y / a
    if axis is None:
        return product_of_others(a.reshape(-1), 0).reshape(a.shape)
    if not isinstance(axis, tuple):
        return product_of_others(a, axis) if a.shape[axis] else a
    last = tuple(range(-len(axis), 0))
    moved = np.moveaxis(a, axis, last)
    flat = moved.reshape((*moved.shape[: moved.ndim - len(axis)], -1))
    return np.moveaxis(product_of_others(flat, -1).reshape(moved.shape), last, axis)


@rrule(np.prod)
@rrule(np.ndarray.prod)
def _(a: np.ndarray, axis=None, dtype=None, *, initial=NO_VALUE, keepdims=False, where=True):
    shape = a.shape
    y = np.multiply.reduce(a, axis, dtype, None, keepdims, initial, where)
    if dtype is not None and drops_imaginary(a, dtype):
        a = a.real
    factors = a if where is True else np.where(where, a, 1)
    bare = np.multiply.reduce(factors, axis, dtype, None, keepdims)
    rounded = dtype is not None and rounds(a, dtype)

    def prod_pullback(ȳ):
        if rounded:
            return ZeroTangent(), NoTangent(), NoTangent(), NoTangent()
        others = product_slopes(factors, axis, restore(bare, shape, axis, keepdims))
        each = ȳ if initial is NO_VALUE else ȳ * np.conjugate(initial)
        ā = restore(each, shape, axis, keepdims) * others.conjugate()
        return (
            asked_for(ā, where),
            NoTangent(),
            NoTangent(),
            NoTangent()
            if initial is NO_VALUE
            else of_initial(total(ȳ * bare.conjugate()), initial, y),
        )

    return y, prod_pullback


# -- running sums and products ---------------------------------------------------------------------


@rrule(np.cumsum)
@rrule(np.ndarray.cumsum)
def _(a: np.ndarray, axis=None, dtype=None):
    shape = a.shape

    rounded = dtype is not None and rounds(a, dtype)

    def cumsum_pullback(ȳ):
        if rounded:
            return ZeroTangent(), NoTangent(), NoTangent()
        return running_back(ȳ, axis).reshape(shape), NoTangent(), NoTangent()

    return np.cumsum(a, axis, dtype), cumsum_pullback


def running_back(ȳ, axis):
    """The sum of each entry and all later ones."""
    along = 0 if axis is None else axis
    return np.flip(np.cumsum(np.flip(ȳ, along), axis=along), along)


@rrule(np.cumprod)
@rrule(np.ndarray.cumprod)
def _(a: np.ndarray, axis=None, dtype=None):
    shape = a.shape
    y = np.cumprod(a, axis, dtype)
    if dtype is not None and drops_imaginary(a, dtype):
        a = a.real
    rounded = dtype is not None and rounds(a, dtype)

    def cumprod_pullback(ȳ):
        if rounded:
            return ZeroTangent(), NoTangent(), NoTangent()
        ā = cumprod_cotangent(ȳ, y, a.reshape(-1) if axis is None else a, axis or 0)
        return ā.reshape(shape), NoTangent(), NoTangent()

    return y, cumprod_pullback


def _cumulative(primal, running, start):
    @derivative_of(primal)
    def cumulative(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        """The running sum or product, and what it begins with."""
        y = running(x, 0 if axis is None else axis, dtype)
        if not include_initial:
            return y
        shape = list(y.shape)
        shape[axis or 0] = 1
        first = np.full(shape, start, y.dtype)
        return np.concatenate((first, y), axis or 0)


if hasattr(np, "cumulative_sum"):  # since NumPy 2.1
    _cumulative(np.cumulative_sum, np.cumsum, 0)
    _cumulative(np.cumulative_prod, np.cumprod, 1)


def cumprod_cotangent(ȳ, y, x, axis):
    """x̄ of y = cumprod(x): Σ of ȳ y over later entries, divided by x; without zeros in x.

    With zeros: the product of the earlier entries, times a backward recurrence.
    """
    if np.all(x):
        return running_back(ȳ * y.conjugate(), axis) / x.conjugate()
    factors = np.moveaxis(x.conjugate(), axis, 0)
    ȳ = np.moveaxis(ȳ, axis, 0)
    n = len(factors)
    sums = [ȳ[n - 1]]
    for i in range(n - 2, -1, -1):
        sums.append(ȳ[i] + factors[i + 1] * sums[-1])
    return np.moveaxis(exclusive_cumprod(factors, 0) * np.stack(sums[::-1]), 0, axis)


# -- extremes --------------------------------------------------------------------------------------


def attains(a, y, axis, keepdims, where):
    """Which entries of `a` are the extreme value y."""
    mask = np.equal(a, restore(y, a.shape, axis, keepdims))
    return mask if where is True else mask & where


def attaining(mask, axis, keepdims, initial, y):
    """How many share ȳ."""
    if axis is None and not keepdims:
        n = int(np.count_nonzero(mask))
        if initial is NO_VALUE:
            return n or 1
    else:
        dtype = y.dtype if y.dtype.kind == "f" else float
        n = np.add.reduce(mask, axis=axis, keepdims=keepdims, dtype=dtype)
    return np.maximum(n if initial is NO_VALUE else n + np.equal(y, initial), 1)


def extreme_cotangent(ȳ, a, y, axis, keepdims, where, initial=NO_VALUE):
    """ȳ to the entries that attain y, in equal shares, of which `initial` has one if it does."""
    if axis is None and not keepdims and where is True and initial is NO_VALUE:
        return marked_shared(ȳ, a, y)
    return extreme_cotangents(ȳ, a, y, axis, keepdims, where, initial)


def shared(ȳ, a, y):
    """ȳ in equal shares to the entries of `a` that are the number y; there mostly is one."""
    mask = np.equal(a, y)
    n = np.count_nonzero(mask)
    if n != 1 or a.dtype.kind == "O":
        return masked(spread(ȳ / (n or 1), a.shape), mask)
    ā = np.zeros(a.shape, getattr(ȳ, "dtype", float))
    ā.flat[mask.argmax()] = ȳ
    return ā


def marked_shared(ȳ, a, y):
    """The same; entries that are less, or greater, get structural zeros."""
    return mark(shared(ȳ, a, y), np.equal(a, y)) if a.ndim else shared(ȳ, a, y)


def plus_shared(x̄, ȳ, a, y):
    """`shared`, added to an array like `a`."""
    return add_shared(x̄.copy(), ȳ, a, y)


def add_shared(total, ȳ, a, y):
    """The same in place, for an array that is ours."""
    total = unmarked(total)
    mask = np.equal(a, y)
    n = np.count_nonzero(mask)
    if n == 1:
        total.flat[mask.argmax()] += ȳ
    elif n:
        total += masked(spread(ȳ / n, a.shape), mask)
    return total


def _sharing(shared):
    @rrule(shared)
    def _(ȳ: Anything, a: np.ndarray, y: Anything):
        mask = np.equal(a, y)
        n = np.count_nonzero(mask) or 1

        def shared_pullback(ā):
            return total(masked(ā, mask)) / n, NoTangent(), NoTangent()

        return shared(ȳ, a, y), shared_pullback


_sharing(shared)
_sharing(marked_shared)


def extreme_cotangents(ȳ, a, y, axis, keepdims, where, initial):
    """ȳ to the entries that attain y."""
    mask = attains(a, y, axis, keepdims, where)
    n = attaining(mask, axis, keepdims, initial, y)
    return selected(restore(ȳ / n, a.shape, axis, keepdims), mask)


def initial_cotangent(ȳ, a, y, axis, keepdims, where, initial):
    """The share of `initial`."""
    if initial is NO_VALUE:
        return NoTangent()
    n = attaining(attains(a, y, axis, keepdims, where), axis, keepdims, initial, y)
    return of_initial(total(masked(ȳ / n, np.equal(y, initial))), initial, y)


def _extreme(primals, reduce):
    def rule(a: np.ndarray, axis=None, *, initial=NO_VALUE, keepdims=False, where=True):
        y = reduce(a, axis, None, None, keepdims, initial, where)

        def max_pullback(ȳ):
            return (
                extreme_cotangent(ȳ, a, y, axis, keepdims, where, initial),
                NoTangent(),
                initial_cotangent(ȳ, a, y, axis, keepdims, where, initial),
            )

        return y, max_pullback

    for primal in primals:
        rrule(primal)(rule)


_extreme([np.max, np.amax, np.ndarray.max], np.maximum.reduce)
_extreme([np.min, np.amin, np.ndarray.min], np.minimum.reduce)


@rrule(np.ptp)
def _(a: np.ndarray, axis=None, *, keepdims=False):
    high = np.max(a, axis=axis, keepdims=keepdims)
    low = np.min(a, axis=axis, keepdims=keepdims)

    def ptp_pullback(ȳ):
        return (
            extreme_cotangent(ȳ, a, high, axis, keepdims, True)
            - extreme_cotangent(ȳ, a, low, axis, keepdims, True),
            NoTangent(),
        )

    return np.ptp(a, axis=axis, keepdims=keepdims), ptp_pullback


non_differentiable(count, attains, attaining)
type_stable(
    shared, plus_shared, count, attains, attaining, np.sum, np.ndarray.sum, np.mean,
    np.ndarray.mean, np.var, np.ndarray.var, np.std, np.ndarray.std, np.trace, np.ndarray.trace,
    np.diagonal, np.ndarray.diagonal, np.prod,
    np.ndarray.prod, np.cumsum, np.ndarray.cumsum, np.cumprod, np.ndarray.cumprod, np.max,
    np.ndarray.max, np.min, np.ndarray.min, np.amax, np.amin, np.ptp,
)  # fmt: skip
