"""Rules of covariances, correlations and histograms.

Which bin a value is in is constant; weights are not, nor are edges, given or out of the data.
Where a variable is constant, its correlation has no derivative: NaN, as its value.
Tests: tests/rules/arrays/test_statistics.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import derivative_of, instead_of


@derivative_of(np.cov)
def cov(
    m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None
):  # fmt: skip
    """Σ w (x - mean) (x - mean)ᴴ / n, of variables that are the rows."""
    x = rows_of(np.asarray(m), rowvar)
    if y is not None:
        x = np.concatenate((x, rows_of(np.asarray(y), rowvar)), axis=0)
    if not x.shape[0]:
        return np.zeros((0, 0))
    ddof = (0 if bias else 1) if ddof is None else ddof
    w = np.ones(x.shape[1]) if fweights is None else np.asarray(fweights)
    if aweights is not None:
        w = w * np.asarray(aweights)
    total = np.sum(w)
    by_weight = 1.0 if aweights is None else np.sum(w * np.asarray(aweights)) / total
    n = total - ddof * by_weight
    apart = x - (np.dot(x, w) / total)[:, None]
    return np.squeeze(np.dot(apart * w, np.conjugate(apart).T) / n)


def rows_of(x, rowvar):
    """The variables as rows."""
    return np.atleast_2d(x) if rowvar or x.ndim < 2 else x.T


@derivative_of(np.corrcoef)
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """Covariances over the standard deviations."""
    c = np.atleast_2d(np.cov(x, y, rowvar))
    deviation = np.sqrt(np.real(np.diag(c)))
    found = c / deviation[:, None] / deviation[None, :]
    return found if len(deviation) != 1 else found[0, 0]


# -- histograms ------------------------------------------------------------------------------------


def bin_of(a: Any, edges: Any) -> np.ndarray:
    """The number of the bin that each value is in; -1: in none."""
    a, edges = np.ravel(a), np.asarray(edges)
    found = np.searchsorted(edges, a, "right") - 1
    found = np.where(a == edges[-1], len(edges) - 2, found)
    return np.where((found < len(edges) - 1) & (a <= edges[-1]), found, -1)


def bins_of(columns: Any, edges: Any) -> np.ndarray:
    """The number, in the flat array of all bins, of the bin that each row is in; -1: in none."""
    places = [bin_of(column, e) for column, e in zip(columns, edges, strict=True)]
    shape = [len(e) - 1 for e in edges]
    flat = np.ravel_multi_index([np.maximum(p, 0) for p in places], shape)
    return np.where(np.any(np.less(places, 0), axis=0), -1, flat)


def edges_as_numbers(column: Any, bins: Any, limits: Any, weights: Any = None) -> np.ndarray:
    """The edges of the bins, as constants."""
    weights = None if weights is None else np.ravel(weights)
    return np.histogram_bin_edges(np.ravel(column), bins, limits, weights)


non_differentiable(bin_of, bins_of, edges_as_numbers)


def edges_of(column, bins, limits, numbers):
    """The edges of the bins: as given, or even parts of what is between the limits."""
    if np.ndim(bins):
        return np.asarray(bins)
    if limits is None:
        limits = (np.min(column), np.max(column)) if np.size(column) else (0.0, 1.0)
    low, high = limits
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, len(numbers))


def weight_of_each(places, w, n):
    """The sums of the weights in n bins; `bincount` takes those that are float64."""
    if w.dtype.kind == "c":
        parts = [np.bincount(places, part.astype(float), n) for part in (w.real, w.imag)]
        return parts[0] + 1j * parts[1]
    return np.bincount(places, w.astype(float), n)


def counted(places, shape, density, weights, edges):
    """How many samples, or of what weight, are in each bin; over its size and the whole."""
    n = int(np.prod(shape))
    inside = places >= 0
    if weights is None:
        h = np.bincount(places[inside], None, n)
    else:
        w = np.ravel(np.asarray(weights))
        if np.size(w) != np.size(places):
            raise ValueError("The weights and list don't have the same length.")
        h = weight_of_each(places[inside], w[inside], n)
    h = np.reshape(h, shape)
    if density:
        whole = np.sum(h)
        for i, e in enumerate(edges):
            h = h / np.reshape(np.diff(e), [-1 if i == j else 1 for j in range(len(edges))])
        h = h / whole
    return h


@derivative_of(np.histogram_bin_edges)
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """Even parts of what is between the limits, and the edges that are given."""
    a = np.ravel(np.asarray(a))
    return edges_of(a, bins, range, edges_as_numbers(a, bins, range, weights))


@derivative_of(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    """Counts, and the edges between which they are."""
    a = np.ravel(np.asarray(a))
    numbers = edges_as_numbers(a, bins, range, weights)
    edges = edges_of(a, bins, range, numbers)
    return counted(bin_of(a, numbers), (len(numbers) - 1,), density, weights, (edges,)), edges


def columns_of(sample):
    """Those of a matrix of rows, those that are given one by one, or the only one."""
    if np.ndim(sample) == 1:
        return [np.asarray(sample)]
    return list(sample.T) if isinstance(sample, np.ndarray) else list(map(np.asarray, sample))


@instead_of(np.histogramdd)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """Counts of rows, or of columns that are given one by one, and the edges along each axis."""
    columns = columns_of(sample)
    n = len(columns)
    bins = [bins] * n if np.ndim(bins) == 0 else bins
    limits = [None] * n if range is None else range
    numbers = [edges_as_numbers(c, b, r) for c, b, r in zip(columns, bins, limits, strict=True)]
    edges = [edges_of(columns[i], bins[i], limits[i], e) for i, e in enumerate(numbers)]
    shape = [len(e) - 1 for e in numbers]
    h = counted(bins_of(columns, numbers), shape, density, weights, edges)
    return h.astype(float), edges


@derivative_of(np.histogram2d)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """Counts of pairs, and the edges along both axes."""
    if np.ndim(bins) == 1 and len(bins) not in (1, 2):
        bins = [np.asarray(bins), np.asarray(bins)]
    h, edges = np.histogramdd([x, y], bins, range, density, weights)
    return h, edges[0], edges[1]
