"""Rules of the quantiles: median, quantile, percentile, and those that leave out NaN.

    y = (1 - γ) s[k] + γ s[k + 1],   s = sort(a):   each of the two entries gets its share of ȳ

The position p = k + γ is what the quantile of 0, 1, 2, … is, so it need not be known how NumPy's
methods find it. By q: ȳ (s[k + 1] - s[k]) ∂p/∂q, to the right at an entry, to the left at the last.
Ties: the order of a stable sort says which entries are meant, so the shares add up to 1.
Shapes: y is q's shape and then a's without `axis` (1 there if keepdims). `out=` is not
served. With `weights=` the quantile is one of the entries, which gets all of ȳ.
Tests: tests/rules/arrays/test_quantiles.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import NoTangent, ZeroTangent, non_differentiable, rrule
from morula.rules.arrays.construction import as_it_is, like_sequence
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.structural import masked
from morula.rules.arrays.types import Anything, Sequence

# ∂p/∂q - n of the methods that interpolate, for n entries; all others are steps.
_RATES = {
    "linear": -1.0, "hazen": 0.0, "weibull": 1.0, "interpolated_inverted_cdf": 0.0,
    "median_unbiased": 1 / 3, "normal_unbiased": 1 / 4,
}  # fmt: skip


def _rows(a: np.ndarray, axis: Any) -> np.ndarray:
    """The array with the axes that are taken together as its last one."""
    if axis is None:
        return a.reshape(-1)
    axes = [i % a.ndim for i in (axis if isinstance(axis, tuple) else (axis,))]
    kept = [i for i in range(a.ndim) if i not in axes]
    return a.transpose(*kept, *axes).reshape((*[a.shape[i] for i in kept], -1))


def counted(a: np.ndarray, axis: Any, without_nan: bool) -> np.ndarray:
    """How many entries count in each row."""
    rows = _rows(a, axis)
    if without_nan:
        return np.count_nonzero(~np.isnan(rows), axis=-1)
    return np.full(rows.shape[:-1], rows.shape[-1])


def place(primal: Any, q: Any, a: Any, counts: Any, method: str) -> np.ndarray:
    """p of each quantile and row: an axis for each of q's, then one for each of the rows'."""
    n = int(np.max(counts, initial=1))
    short = a.dtype.kind == "f" and n * np.finfo(a.dtype).eps < 1
    steps = np.arange(n, dtype=a.dtype if short else float)
    if np.all(np.equal(counts, n)):
        p = np.asarray(primal(steps, q, method=method))
        return np.reshape(p, p.shape + (1,) * np.ndim(counts))
    left_out = np.greater_equal(steps, np.maximum(counts, 1)[..., None])
    return np.asarray(primal(np.where(left_out, np.nan, steps), q, axis=-1, method=method))


@rrule(place)
def _(primal: Any, q: Anything, a: Anything, counts: Anything, method: str):
    p = place(primal, q, a, counts, method)
    given = as_it_is(q)

    def place_pullback(p̄):
        q̄ = position_to_quantile(p̄, primal, given, p, counts, method)
        return NoTangent(), q̄, NoTangent(), NoTangent(), NoTangent()

    return p, place_pullback


def position_to_quantile(p̄, primal, q, p, counts, method):
    """The cotangent of q, from that of the positions."""
    rates = rates_of(primal, p, counts, method)
    by_row = p̄ * rates
    q̄ = np.sum(by_row, axis=tuple(range(np.ndim(q), np.ndim(by_row))))
    return like_sequence(q̄, q) if isinstance(q, Sequence) else q̄


def rates_of(primal: Any, p: Any, counts: Any, method: str) -> Any:
    """∂p/∂q; zero where a method stops at the first or the last entry."""
    if method not in _RATES:
        return np.zeros(np.shape(p))
    rates = counts + _RATES[method]
    if method != "linear":
        rates = np.where((p > 0) & (p < counts - 1), rates, 0.0)
    return rates / 100 if primal in (np.percentile, np.nanpercentile) else rates


def neighbours(a: np.ndarray, axis: Any, p: Any, counts: Any) -> tuple[Any, Any, Any]:
    """k, and where in the flat array s[k] and s[k + 1] come from."""
    order = np.argsort(_rows(a, axis), axis=-1, kind="stable")
    sources = np.take_along_axis(_rows(np.arange(a.size).reshape(a.shape), axis), order, -1)
    k = np.clip(np.floor(p), 0, np.maximum(counts - 2, 0)).astype(int)
    k = np.broadcast_to(k, (*np.shape(p)[: np.ndim(p) - np.ndim(counts)], *np.shape(counts)))
    after = np.minimum(k + 1, np.maximum(counts - 1, 0))
    return k, _of_rows(sources, k), _of_rows(sources, after)


def _of_rows(sources: np.ndarray, k: np.ndarray) -> np.ndarray:
    """`sources[row, k]`, where k has the axes of the rows as its last ones."""
    flat = k.reshape((-1, *sources.shape[:-1]))
    return np.take_along_axis(sources, np.moveaxis(flat, 0, -1), -1).transpose(
        -1, *range(sources.ndim - 1)
    ).reshape(k.shape)  # fmt: skip


def shared_out(ȳ, γ, below, above, counts, a):
    """ā: the shares of the entries on both sides; none where no entry counts."""
    ȳ = masked(np.reshape(ȳ, below.shape), np.greater(counts, 0))
    above, below = np.where(np.equal(γ, 0), below, above), np.where(np.equal(γ, 1), above, below)
    parts = scatter(ȳ * (1 - γ), below, (a.size,), a.dtype)
    return (parts + scatter(ȳ * γ, above, (a.size,), a.dtype)).reshape(a.shape)


def _median(primal: Any, without_nan: bool) -> None:
    @rrule(primal)
    def _(a: np.ndarray, axis=None, *, keepdims=False):
        y = primal(a, axis, keepdims=keepdims)

        def median_pullback(ȳ):
            if not a.size:
                return np.zeros(a.shape), NoTangent()
            counts = counted(a, axis, without_nan)
            p = (np.maximum(counts, 1) - 1) / 2
            k, below, above = neighbours(a, axis, p, counts)
            return shared_out(ȳ, p - k, below, above, counts, a), NoTangent()

        return y, median_pullback


def entry_taken(a, y, axis, q_ndim):
    """Where in the flat array the entries stand that a weighted quantile gives: the first equal."""
    rows = _rows(a, axis)
    sources = _rows(np.arange(a.size).reshape(a.shape), axis)
    y = np.reshape(y, (*np.shape(y)[:q_ndim], *rows.shape[:-1], 1))
    first = np.argmax(np.equal(rows, y), -1)
    return _of_rows(sources, first)


def _quantile(primal: Any, without_nan: bool) -> None:
    @rrule(primal)
    def _(a: np.ndarray, q: Anything, axis=None, *, method="linear", keepdims=False, weights=None):
        if weights is not None:
            y = primal(a, q, axis, method=method, keepdims=keepdims, weights=weights)

            def weighted_pullback(ȳ):
                places = entry_taken(a, y, axis, np.ndim(q))
                ā = scatter(np.reshape(ȳ, places.shape), places, (a.size,), a.dtype)
                return ā.reshape(a.shape), ZeroTangent(), NoTangent()

            return y, weighted_pullback
        y = primal(a, q, axis, method=method, keepdims=keepdims)

        def quantile_pullback(ȳ):
            if not a.size:
                return np.zeros(a.shape), NoTangent(), NoTangent()
            counts = counted(a, axis, without_nan)
            p = place(primal, q, a, counts, method)
            k, below, above = neighbours(a, axis, p, counts)
            ā = shared_out(ȳ, p - k, below, above, counts, a)
            flat = a.reshape(-1)
            p̄ = np.reshape(ȳ, below.shape) * (flat[above] - flat[below])
            return ā, position_to_quantile(p̄, primal, q, p, counts, method), NoTangent()

        return y, quantile_pullback


_median(np.median, without_nan=False)
_median(np.nanmedian, without_nan=True)
for _primal in (np.quantile, np.percentile):
    _quantile(_primal, without_nan=False)
for _primal in (np.nanquantile, np.nanpercentile):
    _quantile(_primal, without_nan=True)
non_differentiable(counted, rates_of, neighbours, entry_taken)
