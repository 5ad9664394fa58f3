"""Rules of norms of vectors and matrices, and of condition numbers.

    y = ‖x‖₂:     x̄ = ȳ x / y, and 0 where y = 0 (the shortest subgradient)
    y = ‖x‖ₚ:     x̄ = ȳ sign(x) |x|^(p-1) / y^(p-1)
    y = ‖A‖₂, ‖A‖_nuc:  the singular vectors, ȳ u vᴴ and ȳ U Vᴴ

Shapes: over all entries, or over `axis` (one: vectors, two: matrices). There is no second
derivative where the Euclidean norm is zero; asking for it is an error for the norm of a whole
array, NaN for one of many norms.
Tests: tests/rules/linalg/test_norms.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    NoTangent,
    Thunk,
    UnsupportedError,
    call,
    non_differentiable,
    rrule,
    type_stable,
)
from morula.rules.arrays.broadcasting import quotient, restore
from morula.rules.arrays.reductions import extreme_cotangent
from morula.rules.arrays.types import Anything, Numeric


@rrule(np.linalg.norm)
def _(x: Numeric, ord=None, axis=None, keepdims=False):
    y = np.linalg.norm(x, ord, axis, keepdims)

    def norm_pullback(ȳ):
        return (
            norm_cotangent(ȳ, y, x, ord, axis, keepdims),
            Thunk(lambda: order_cotangent(ȳ, y, x, ord, axis, keepdims)),
            NoTangent(),
            NoTangent(),
        )

    return y, norm_pullback


def norm_cotangent(ȳ, y, x, ord, axis, keepdims):
    """x̄ of y = norm(x, ord, axis, keepdims)."""
    if not isinstance(x, np.ndarray):
        return ȳ * np.sign(x)
    over: Any = tuple(range(x.ndim)) if axis is None else axis
    if isinstance(over, tuple) and len(over) == 1:
        (over,) = over
    matrix = isinstance(over, tuple)
    if ord is None or (ord == 2 and not matrix) or (ord == "fro" and matrix):
        wide = restore(ȳ, x.shape, over, keepdims)
        return wide * direction(x, restore(y, x.shape, over, keepdims), axis is None)
    if matrix:
        return matrix_norm_cotangent(ȳ, x, ord, over, keepdims)
    return vector_norm_cotangent(ȳ, y, x, ord, over, keepdims)


def direction(x, y, whole):
    """x / y, and 0 where y is zero."""
    return quotient(x, y)


@rrule(direction)
def _(x: np.ndarray, y: np.ndarray, whole: Anything):
    d = quotient(x, y)

    def direction_pullback(d̄):
        if whole and np.any(np.equal(y, 0)):
            raise UnsupportedError(
                "the Euclidean norm has no second derivative at 0: write np.sum(x * x), or "
                "np.vdot(x, x), in place of norm(x)**2"
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            x̄ = d̄ / y
            return x̄, -np.real(x̄ * d.conjugate()), NoTangent()

    return d, direction_pullback


def vector_norm_cotangent(ȳ, y, x, ord, axis, keepdims):
    """x̄ of the norms of vectors along one axis."""
    size = np.absolute(x)
    if ord in (np.inf, -np.inf):
        return extreme_cotangent(ȳ, size, y, axis, keepdims, True) * np.sign(x)
    wide = restore(ȳ, x.shape, axis, keepdims)
    if ord == 0:
        return np.zeros_like(x)
    if ord == 1:
        return wide * np.sign(x)
    length = restore(y, x.shape, axis, keepdims)
    ratio = size / np.where(np.equal(length, 0), 1, length)
    return wide * (np.sign(x) * np.where(np.equal(ratio, 0), 0, ratio) ** (ord - 1))


def has_order(x, ord, axis):
    """Is it the p-norm of vectors, with a p that has a derivative?"""
    vectors = np.ndim(x) == 1 if axis is None else np.ndim(axis) == 0
    return vectors and isinstance(ord, int | float) and ord != 0 and not np.isinf(ord)


def order_cotangent(ȳ, y, x, ord, axis, keepdims):
    """p̄ of the p-norm of vectors."""
    if not has_order(x, ord, axis):
        return NoTangent()
    return np.sum(ȳ * order_slope(y, x, ord, axis, keepdims))


def order_slope(y, x, ord, axis, keepdims):
    """∂y/∂p = y/p Σ r^p log r with r = |x| / y."""
    over = 0 if axis is None else axis
    length = restore(y, x.shape, over, keepdims)
    ratio = np.absolute(x) / np.where(np.equal(length, 0), 1, length)
    logs = np.log(np.where(np.equal(ratio, 0), 1, ratio))
    return y * np.sum(ratio**ord * logs, axis=over, keepdims=keepdims) / ord


def matrix_norm_cotangent(ȳ, x, ord, axes, keepdims):
    """x̄ of the norms of matrices along two axes."""
    if keepdims:
        ȳ = np.squeeze(ȳ, axes)
    A = np.moveaxis(x, axes, (-2, -1))
    if ord in (1, -1, np.inf, -np.inf):
        along = -2 if ord in (1, -1) else -1
        sums = np.sum(np.absolute(A), axis=along)
        y = np.max(sums, axis=-1) if ord in (1, np.inf) else np.min(sums, axis=-1)
        sums_bar = extreme_cotangent(ȳ, sums, y, -1, False, True)
        Ā = restore(sums_bar, A.shape, along, False) * np.sign(A)
    else:
        U, s, Vh = np.linalg.svd(A, full_matrices=False)
        wide = np.asarray(ȳ)[..., None]
        if ord == "nuc":
            weights = np.where(s > s[..., :1] * s.shape[-1] * np.finfo(s.dtype).eps, wide, 0)
        else:
            y = s[..., 0] if ord == 2 else s[..., -1]
            weights = extreme_cotangent(ȳ, s, y, -1, False, True)
        Ā = np.matmul(U * weights[..., None, :], Vh)
    return np.moveaxis(Ā, (-2, -1), axes)


@rrule(np.linalg.cond)
def _(x: np.ndarray, p=None):
    """‖A‖ ‖A⁻¹‖ in the norm p; for the Euclidean one the ratio of singular values."""

    def cond_pullback(ȳ):
        _, back = call(condition, x, p)
        return back(ȳ)[1], NoTangent()

    return np.linalg.cond(x, p), cond_pullback


def condition(x: Any, p: Any) -> Any:
    """The condition number, by functions that have rules."""
    if p in (None, 2, -2):
        s = np.linalg.svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return np.linalg.norm(x, p, (-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, (-2, -1))


type_stable(np.linalg.norm)
non_differentiable(np.linalg.matrix_rank)
