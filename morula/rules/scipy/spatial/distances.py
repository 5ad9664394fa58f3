"""Rules of scipy.spatial.distance: distances of many points, by what they are.

Where two points are the same, the distances that are norms have the gradient zero there.
Tests: tests/rules/scipy/test_chapters.py, test_spatial.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import _hausdorff, distance

from morula.core.extend import NoTangent, UnsupportedError, call, non_differentiable, rrule
from morula.rules.arrays.bodies import derivative_of
from morula.rules.arrays.broadcasting import part
from morula.rules.arrays.sequences import as_array
from morula.rules.arrays.types import Anything

SHORT = {
    "euclid": "euclidean", "eu": "euclidean", "e": "euclidean", "sqe": "sqeuclidean",
    "sqeuclid": "sqeuclidean", "cblock": "cityblock", "cb": "cityblock", "c": "cityblock",
    "chebychev": "chebyshev", "cheby": "chebyshev", "cheb": "chebyshev", "ch": "chebyshev",
    "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski", "cos": "cosine", "co": "correlation",
    "mahal": "mahalanobis", "mah": "mahalanobis", "se": "seuclidean", "s": "seuclidean",
}  # fmt: skip


def between(a: Any, b: Any, metric: Any, points: Any, p: Any, w: Any, V: Any, VI: Any) -> Any:
    """The distances of a and b along their last axis; `points` tell V and VI if they are not given."""
    if callable(metric):
        a, b = np.broadcast_arrays(a, b)
        options = named(p=p, w=w, V=V, VI=VI)
        rows = zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]), strict=True)
        return np.array([metric(u, v, **options) for u, v in rows]).reshape(a.shape[:-1])
    name = SHORT.get(metric.lower(), metric.lower())
    weights = 1.0 if w is None else np.asarray(w)
    if name == "euclidean":
        return np.linalg.norm(np.sqrt(weights) * (a - b), axis=-1)
    if name == "sqeuclidean":
        return np.sum(weights * (a - b) ** 2, axis=-1)
    if name == "cityblock":
        return np.sum(weights * np.abs(a - b), axis=-1)
    if name == "chebyshev":
        return np.max((np.asarray(weights) > 0) * np.abs(a - b), axis=-1)
    if name == "minkowski":
        p = 2 if p is None else p
        if np.isinf(p):
            return np.max((np.asarray(weights) > 0) * np.abs(a - b), axis=-1)
        return np.linalg.norm(weights ** (1 / p) * (a - b), p, axis=-1)
    if name == "seuclidean":
        spread = np.var(points(), axis=0, ddof=1) if V is None else np.asarray(V)
        return np.linalg.norm((a - b) / np.sqrt(spread), axis=-1)
    if name == "mahalanobis":
        inverse = np.linalg.inv(np.cov(points().T)).T if VI is None else np.asarray(VI)
        squares = np.sum(((a - b) @ inverse) * (a - b), axis=-1)
        same = squares == 0
        return np.where(same, 0.0, np.sqrt(np.where(same, 1.0, squares)))
    if name in ("cosine", "correlation"):
        if name == "correlation":
            total = np.sum(weights * np.ones(a.shape[-1]))
            a = a - np.sum(weights * a, axis=-1, keepdims=True) / total
            b = b - np.sum(weights * b, axis=-1, keepdims=True) / total
        sizes = np.sum(weights * a * a, axis=-1) * np.sum(weights * b * b, axis=-1)
        return 1 - np.sum(weights * a * b, axis=-1) / np.sqrt(sizes)
    if name == "canberra":
        sizes = np.abs(a) + np.abs(b)
        both_zero = sizes == 0
        parts = np.abs(a - b) / np.where(both_zero, 1.0, sizes)
        return np.sum(weights * np.where(both_zero, 0.0, parts), axis=-1)
    if name == "braycurtis":
        sizes = np.sum(weights * np.abs(a + b), axis=-1)
        return np.sum(weights * np.abs(a - b), axis=-1) / sizes
    raise UnsupportedError(
        f"the distance {metric!r} has no derivative here: give a function of two points as metric"
    )


def named(**options: Any) -> Any:
    """The options that were given; those of other metrics are errors."""
    return {name: value for name, value in options.items() if value is not None}


@rrule(distance.cdist)
def _(XA: Anything, XB: Anything, metric: str = "euclidean", *, p=None, w=None, V=None, VI=None):
    A, B, *options = [
        as_array(x) for x in (XA, XB, w, V, VI)
    ]  # lists may change until they are asked

    def cdist_pullback(ȳ):
        _, back = call(of_two, A, B, metric, p, *options)
        return back(ȳ)[1:]

    return distance.cdist(XA, XB, metric, **named(p=p, w=w, V=V, VI=VI)), cdist_pullback


@rrule(distance.pdist)
def _(X: Anything, metric: str = "euclidean", *, p=None, w=None, V=None, VI=None):
    A, *options = [as_array(x) for x in (X, w, V, VI)]

    def pdist_pullback(ȳ):
        _, back = call(of_one, A, metric, p, *options)
        return back(ȳ)[1:]

    return distance.pdist(X, metric, **named(p=p, w=w, V=V, VI=VI)), pdist_pullback


def of_two(XA: Any, XB: Any, metric: Any, p: Any, w: Any, V: Any, VI: Any) -> Any:
    """All distances of two sets of points."""
    A, B = np.asarray(XA), np.asarray(XB)

    def points():
        return np.concatenate((A, B))

    return between(A[:, None, :], B[None, :, :], metric, points, p, w, V, VI)


def of_one(X: Any, metric: Any, p: Any, w: Any, V: Any, VI: Any) -> Any:
    """All distances among the points of one set."""
    A = np.asarray(X)
    i, j = pairs(len(A))
    return between(A[i], A[j], metric, lambda: A, p, w, V, VI)


def pairs(n: int) -> Any:
    """The numbers of the two points of each distance in a condensed matrix."""
    return np.triu_indices(n, 1)


def places(n: int) -> Any:
    """Where each entry of a matrix of distances stands in the condensed one; its length for none."""
    found = np.full((n, n), n * (n - 1) // 2)
    i, j = pairs(n)
    found[i, j] = found[j, i] = np.arange(len(i))
    return found


non_differentiable(pairs, places)


@derivative_of(distance.squareform)
def squareform(X: Any, force: Any = "no", checks: Any = True) -> Any:
    """Between the condensed and the whole matrix."""
    x = np.asarray(X)
    if x.ndim == 1:
        n = int(np.ceil(np.sqrt(2 * len(x))))
        return np.concatenate((x, np.zeros(1)))[places(max(n, 1))]
    return x[pairs(len(x))]


def apart(ar1: Any, ar2: Any, i: int, j: int) -> Any:
    """The distance of one point of each set."""
    return np.linalg.norm(np.asarray(ar1)[i] - np.asarray(ar2)[j])


@rrule(_hausdorff.directed_hausdorff)
def _(ar1: Anything, ar2: Anything, *seed: Anything):
    y = _hausdorff.directed_hausdorff(ar1, ar2, *seed)

    def hausdorff_pullback(ȳ):
        _, back = call(apart, ar1, ar2, *y[1:])
        return (*back(part(ȳ, 0))[1:3], *[NoTangent()] * len(seed))

    return y, hausdorff_pullback
