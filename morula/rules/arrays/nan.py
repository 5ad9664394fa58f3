"""Rules of the functions that leave out NaN: nansum, nanmean, nanmax, nanvar, nancumsum, ….

They are those of the whole, with `where=` for what counts, or with 0 or 1 in the place of NaN. The
entries that are NaN get zeros, structurally; where nothing is left, so does all of a row.
Tests: tests/rules/arrays/test_nan.py
"""

from __future__ import annotations

import numpy as np

from morula.core.extend import NoTangent, ZeroTangent, rrule, type_stable
from morula.rules.arrays.bodies import derivative_of
from morula.rules.arrays.broadcasting import total
from morula.rules.arrays.reductions import (
    count,
    extreme_cotangent,
    initial_cotangent,
    of_initial,
    restored_where,
    rounds,
)
from morula.rules.arrays.structural import selected
from morula.rules.arrays.types import NO_VALUE


def counting(a, where):
    """Which entries count."""
    kept = ~np.isnan(a)
    return kept if where is NO_VALUE else kept & where


def filled(a, value):
    """The array with a number in the place of NaN."""
    a = np.asanyarray(a)
    return np.where(np.isnan(a), value, a) if a.dtype.kind in "fc" else a


@rrule(np.nansum)
def _(
    a: np.ndarray, axis=None, dtype=None, *, keepdims=NO_VALUE, initial=NO_VALUE, where=NO_VALUE
):  # fmt: skip
    kept = counting(a, where)
    wide = keepdims is not NO_VALUE and keepdims
    rounded = dtype is not None and rounds(a, dtype)

    def nansum_pullback(ȳ):
        return (
            ZeroTangent() if rounded else restored_where(ȳ, kept.shape, axis, wide, kept),
            NoTangent(),
            NoTangent(),
            NoTangent(),
            NoTangent() if initial is NO_VALUE else of_initial(total(ȳ), initial, y),
        )

    y = np.nansum(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)
    return y, nansum_pullback


@rrule(np.nanmean)
def _(a: np.ndarray, axis=None, dtype=None, *, keepdims=NO_VALUE, where=NO_VALUE):
    kept = counting(a, where)
    wide = keepdims is not NO_VALUE and keepdims

    def nanmean_pullback(ȳ):
        n = np.maximum(count(kept.shape, axis, wide, kept), 1)
        return restored_where(ȳ / n, kept.shape, axis, wide, kept), NoTangent(), NoTangent()

    return np.nanmean(a, axis, dtype, keepdims=keepdims, where=where), nanmean_pullback


def _extreme(primal):
    @rrule(primal)
    def _(a: np.ndarray, axis=None, *, keepdims=NO_VALUE, initial=NO_VALUE, where=NO_VALUE):
        y = primal(a, axis, keepdims=keepdims, initial=initial, where=where)
        wide = keepdims is not NO_VALUE and keepdims
        asked = True if where is NO_VALUE else where

        def nanmax_pullback(ȳ):
            ā = extreme_cotangent(ȳ, a, y, axis, wide, asked, initial)
            return (
                selected(ā, ~np.isnan(a)),
                NoTangent(),
                NoTangent(),
                initial_cotangent(ȳ, a, y, axis, wide, asked, initial),
            )

        return y, nanmax_pullback


_extreme(np.nanmax)
_extreme(np.nanmin)


@derivative_of(np.nanprod)
def nanprod(
    a, axis=None, dtype=None, out=None, keepdims=NO_VALUE, initial=NO_VALUE, where=NO_VALUE
):  # fmt: skip
    """The product with ones for NaN."""
    wide = keepdims is not NO_VALUE and keepdims
    asked = True if where is NO_VALUE else where
    return np.prod(filled(a, 1), axis, dtype, keepdims=wide, initial=initial, where=asked)


def _spread(primal, whole):
    @derivative_of(primal)
    def nanvar(
        a, axis=None, dtype=None, out=None, ddof=0, keepdims=NO_VALUE, *,
        where=NO_VALUE, mean=NO_VALUE, correction=NO_VALUE,
    ):  # fmt: skip
        """The variance of what counts."""
        a = np.asanyarray(a)
        asked = counting(a, where)
        ddof = ddof if correction is NO_VALUE else correction
        wide = keepdims is not NO_VALUE and keepdims
        return whole(a, axis, dtype, ddof=ddof, keepdims=wide, where=asked, mean=mean)


_spread(np.nanvar, np.var)
_spread(np.nanstd, np.std)


@derivative_of(np.nancumsum)
def nancumsum(a, axis=None, dtype=None, out=None):
    """The running sum with zeros for NaN."""
    return np.cumsum(filled(a, 0), axis, dtype)


@derivative_of(np.nancumprod)
def nancumprod(a, axis=None, dtype=None, out=None):
    """The running product with ones for NaN."""
    return np.cumprod(filled(a, 1), axis, dtype)


type_stable(
    np.nansum, np.nanmean, np.nanprod, np.nancumsum, np.nancumprod, np.nanmax, np.nanmin
)  # the types of nanvar and nanstd depend on whether there is a NaN
