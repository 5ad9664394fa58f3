"""Rules of structured matrices of scipy.linalg: how they are built, and equations with them.

The cotangent of a number that stands in several places is the sum of theirs: for Toeplitz matrices
the sums along diagonals.
Tests: tests/rules/scipy/test_linalg_structured.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from morula.core.extend import NoTangent, non_differentiable, rrule
from morula.rules.arrays.broadcasting import match
from morula.rules.arrays.construction import as_it_is, back_to_argument, like_sequence
from morula.rules.arrays.types import Anything
from morula.rules.linalg.factors import cholesky_cotangent
from morula.rules.linalg.parts import ctranspose
from morula.rules.scipy.linalg.by_code import by_code
from morula.rules.scipy.linalg.solvers import of_equation
from morula.rules.scipy.linalg.spectral import dense_triangle
from morula.rules.scipy.linalg.stacks import EITHER, is_stack, of_each

# -- building --------------------------------------------------------------------------------------


def diagonal_sums(G, n, sign):
    """Σ over the diagonals 0, ±1, …, ±(n-1)."""
    return np.stack([np.trace(G, offset=sign * k, axis1=-2, axis2=-1) for k in range(n)], axis=-1)


def unbatched(sums, shape):
    """The cotangent of columns or rows of this shape, stacks that were broadcast, or flattened."""
    return match(sums, shape) if sums.ndim > 1 else np.reshape(sums, shape)


@rrule(linalg.toeplitz)
def _(c: np.ndarray, r: np.ndarray | None = None, /):
    def toeplitz_pullback(ȳ):
        down = unbatched(diagonal_sums(ȳ, ȳ.shape[-2], -1), c.shape)
        along = diagonal_sums(ȳ, ȳ.shape[-1], 1)
        beyond_first = np.where(np.arange(ȳ.shape[-1]) == 0, 0.0, along)
        if r is None:
            return down + np.reshape(np.conjugate(beyond_first), c.shape), NoTangent()
        return down, unbatched(beyond_first, np.shape(r))

    return linalg.toeplitz(c, r), toeplitz_pullback


def hankel(c: Any, r: Any = None) -> Any:
    """hᵢⱼ = c or r at i + j; the first of r is not read."""
    c = np.ravel(c)
    rest = np.zeros_like(c) if r is None else np.ravel(r)
    joined = np.concatenate((c, rest[1:]))
    return joined[np.arange(len(c))[:, None] + np.arange(len(rest))]


def circulant(c: Any) -> Any:
    """The columns are c, turned by one more each."""
    c = np.asarray(c)
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)) % n]


def companion(a: Any) -> Any:
    """-aᵢ / a₀ in the first row, ones below the diagonal."""
    a = np.asarray(a)
    n = a.shape[-1] - 1
    first = -a[..., 1:] / a[..., :1]
    below = np.broadcast_to(np.eye(n, k=-1)[1:], (*a.shape[:-1], n - 1, n))
    return np.concatenate((first[..., None, :], below), axis=-2)


def leslie(f: Any, s: Any) -> Any:
    """Fecundities in the first row, survivals below the diagonal."""
    f, s = np.asarray(f), np.asarray(s)
    n = f.shape[-1]
    below = s[..., :, None] * np.eye(n - 1, n)
    batch = np.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    first = np.broadcast_to(f[..., None, :], (*batch, 1, n))
    return np.concatenate((first, np.broadcast_to(below, (*batch, n - 1, n))), axis=-2)


def fiedler(a: Any) -> Any:
    """|aᵢ - aⱼ|."""
    a = np.asarray(a)
    return np.abs(a[..., :, None] - a[..., None, :])


def convolution_matrix(a: Any, n: Any, mode: Any = "full") -> Any:
    """What maps x of length n to the convolution with a."""
    a = np.asarray(a)
    m = a.shape[-1]
    shift = np.arange(n + m - 1)[:, None] - np.arange(n)
    inside = (shift >= 0) & (shift < m)
    whole = np.where(inside, a[..., np.where(inside, shift, 0)], 0.0)
    if mode == "full":
        return whole
    length, least = max(n, m), min(n, m)
    if mode == "valid":
        return whole[..., least - 1 : length, :]
    start = (least - 1) // 2
    return whole[..., start : start + length, :]


def diagsvd(s: Any, M: Any, N: Any) -> Any:
    """s on the diagonal of an M × N matrix."""
    s = np.asarray(s)
    rest = np.zeros((*s.shape[:-1], M - s.shape[-1]), s.dtype)
    return np.concatenate((s, rest), axis=-1)[..., None] * np.eye(M, N)


def khatri_rao(a: Any, b: Any) -> Any:
    """Kronecker products column by column."""
    a, b = np.asarray(a), np.asarray(b)
    c = a[..., :, None, :] * b[..., None, :, :]
    return np.reshape(c, (*c.shape[:-3], c.shape[-3] * c.shape[-2], c.shape[-1]))


by_code(linalg.hankel, hankel)
by_code(linalg.circulant, circulant)
by_code(linalg.companion, companion)
by_code(linalg.leslie, leslie)
by_code(linalg.fiedler, fiedler)
by_code(linalg.convolution_matrix, convolution_matrix)
by_code(linalg.diagsvd, diagsvd)
by_code(linalg.khatri_rao, khatri_rao)


@rrule(linalg.block_diag)
def _(*arrs: Anything):
    given = [as_it_is(a) for a in arrs]

    def block_diag_pullback(ȳ):
        bars = []
        i = j = 0
        for a in given:
            shape = (1, 1, *np.shape(a))[-2:]
            block = ȳ[..., i : i + shape[0], j : j + shape[1]]
            bars.append(like_sequence(np.reshape(block, np.shape(a)), a))
            i, j = i + shape[0], j + shape[1]
        return tuple(bars)

    return linalg.block_diag(*arrs), block_diag_pullback


# -- equations -------------------------------------------------------------------------------------


def of_toeplitz(G, c_or_cr):
    """The cotangent of the column and row, or of the column alone, out of that of the matrix."""
    if isinstance(c_or_cr, tuple):
        c, r = c_or_cr
        along = diagonal_sums(G, G.shape[-1], 1)
        first = np.arange(G.shape[-1]) == 0
        row = np.where(first, 0.0, along)
        return (
            like_sequence(np.reshape(diagonal_sums(G, G.shape[-2], -1), np.shape(c)), c),
            like_sequence(np.reshape(row, np.shape(r)), r),
        )
    down, along = diagonal_sums(G, G.shape[-2], -1), diagonal_sums(G, G.shape[-1], 1)
    first = np.arange(G.shape[-1]) == 0
    return back_to_argument(down + np.where(first, 0.0, np.conjugate(along)), c_or_cr)


def conjugate_transpose_of(c_or_cr):
    """The column and the row of Tᴴ."""
    if isinstance(c_or_cr, tuple):
        c, r = (np.ravel(v) for v in c_or_cr)
        whole_row = np.concatenate((c[:1], r[1:]))
        return np.conjugate(whole_row), np.conjugate(c)
    c = np.ravel(c_or_cr)  # T is Hermitian but for the diagonal
    return np.concatenate((np.conjugate(c[:1]), c[1:])), np.conjugate(c)


def column_and_row(c_or_cr):
    """The column and the row, None where there is none."""
    return c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)


def of_each_toeplitz(ȳ, y, primal, c_or_cr, b):
    """The cotangents of the matrix and of b, where one of them is a stack."""

    def one(c, r, b):
        return primal(c if r is None else (c, r), b)

    c, r = column_and_row(c_or_cr)
    c̄, r̄, b̄ = of_each(ȳ, y, one, (1, 1, EITHER), c, r, b)
    if r is None:
        return back_to_argument(c̄, c), b̄
    bars = [like_sequence(np.reshape(v̄, np.shape(v)), v) for v̄, v in ((c̄, c), (r̄, r))]
    return tuple(bars), b̄


@rrule(linalg.solve_toeplitz)
def _(c_or_cr: np.ndarray | tuple | list, b: np.ndarray, check_finite=True):
    x = linalg.solve_toeplitz(c_or_cr, b, check_finite)
    c_or_cr = as_it_is(c_or_cr)

    def solve_toeplitz_pullback(x̄):
        if is_stack((1, 1, EITHER), *column_and_row(c_or_cr), b):
            bars = of_each_toeplitz(x̄, x, linalg.solve_toeplitz, c_or_cr, b)
            return *bars, NoTangent()
        b̄ = linalg.solve_toeplitz(conjugate_transpose_of(c_or_cr), x̄, check_finite)
        G = of_equation(b̄, x)
        return of_toeplitz(G, c_or_cr), np.reshape(b̄, b.shape), NoTangent()

    return x, solve_toeplitz_pullback


@rrule(linalg.matmul_toeplitz)
def _(c_or_cr: np.ndarray | tuple | list, x: np.ndarray, check_finite=False, workers=None):
    y = linalg.matmul_toeplitz(c_or_cr, x, check_finite, workers)
    c_or_cr = as_it_is(c_or_cr)

    def matmul_toeplitz_pullback(ȳ):
        if is_stack((1, 1, EITHER), *column_and_row(c_or_cr), x):
            bars = of_each_toeplitz(ȳ, y, linalg.matmul_toeplitz, c_or_cr, x)
            return *bars, NoTangent(), NoTangent()
        x̄ = linalg.matmul_toeplitz(conjugate_transpose_of(c_or_cr), ȳ, check_finite, workers)
        G = -of_equation(ȳ, x)
        return of_toeplitz(G, c_or_cr), np.reshape(x̄, x.shape), NoTangent(), NoTangent()

    return y, matmul_toeplitz_pullback


# -- banded equations ------------------------------------------------------------------------------


def shifted(v, k):
    """vⱼ₊ₖ along the first axis, 0 beyond its ends."""
    if k == 0:
        return v
    if abs(k) >= len(v):
        return v * 0
    pad = [(0, k) if k > 0 else (-k, 0)] + [(0, 0)] * (v.ndim - 1)
    return np.pad(v[k:] if k > 0 else v[:k], pad)


def band_of_equation(b̄, x, k):
    """Σ -b̄ⱼ₊ₖ x*ⱼ over the right sides: the entries (j + k, j) of -B̄ Xᴴ."""
    product = -shifted(b̄, k) * np.conjugate(x)
    return product if product.ndim == 1 else np.sum(product, axis=1)


@rrule(linalg.solve_banded)
def _(
    l_and_u: Anything, ab: np.ndarray, b: np.ndarray, overwrite_ab=False, overwrite_b=False,
    check_finite=True,
):  # fmt: skip
    x = linalg.solve_banded(l_and_u, ab, b, False, False, check_finite)

    def solve_banded_pullback(x̄):
        lower, upper = l_and_u
        if is_stack((2, EITHER), ab, b):

            def one(ab, b):
                return linalg.solve_banded(l_and_u, ab, b)

            bars = of_each(x̄, x, one, (2, EITHER), ab, b)
            return (NoTangent(), *bars, *[NoTangent()] * 3)
        n = ab.shape[-1]
        rows = []
        for row in range(lower + upper + 1):  # of Aᴴ, whose lower bands are the upper ones of A
            rows.append(shifted(np.conjugate(ab[lower + upper - row]), row - lower))
        b̄ = linalg.solve_banded((upper, lower), np.stack(rows), x̄)
        inside = np.arange(n)
        bands = []
        for k in range(-upper, lower + 1):
            there = (inside + k >= 0) & (inside + k < n)
            bands.append(np.where(there, band_of_equation(b̄, x, k), 0.0))
        return (NoTangent(), np.stack(bands), np.reshape(b̄, b.shape), *[NoTangent()] * 3)

    return x, solve_banded_pullback


@rrule(linalg.solveh_banded)
def _(
    ab: np.ndarray, b: np.ndarray, overwrite_ab=False, overwrite_b=False, lower=False,
    check_finite=True,
):  # fmt: skip
    x = linalg.solveh_banded(ab, b, False, False, lower, check_finite)

    def solveh_banded_pullback(x̄):
        if is_stack((2, EITHER), ab, b):
            rest = overwrite_ab, overwrite_b, lower, check_finite
            return of_each(x̄, x, linalg.solveh_banded, (2, EITHER), ab, b, *rest)
        b̄ = linalg.solveh_banded(ab, x̄, False, False, lower, check_finite)
        bands = [hermitian_band(b̄, x, k, lower) for k in range(ab.shape[0])]
        ordered = bands if lower else bands[::-1]
        return (np.stack(ordered), np.reshape(b̄, b.shape), *[NoTangent()] * 4)

    return x, solveh_banded_pullback


def hermitian_band(b̄, x, k, lower):
    """The cotangent of band k of a Hermitian A: entries (j + k, j), or (j - k, j)."""
    if k == 0:
        return np.real(band_of_equation(b̄, x, 0))
    below = band_of_equation(b̄, x, k)  # entries (j + k, j)
    mirrored = -b̄ * np.conjugate(shifted(x, k))  # entries (j, j + k)
    mirrored = mirrored if mirrored.ndim == 1 else np.sum(mirrored, axis=1)
    both = below + np.conjugate(mirrored) if lower else np.conjugate(below) + mirrored
    return both if lower else shifted(both, -k)


@rrule(linalg.cholesky_banded)
def _(ab: np.ndarray, overwrite_ab=False, lower=False, check_finite=True):
    y = linalg.cholesky_banded(ab, False, lower, check_finite)

    def cholesky_banded_pullback(ȳ):
        if ab.ndim > 2:
            rest = overwrite_ab, lower, check_finite
            return of_each(ȳ, y, linalg.cholesky_banded, (2,), ab, *rest)
        L = dense_triangle(y, lower)
        Ā = cholesky_cotangent(dense_triangle(ȳ, lower), L, lower)
        outside = np.where(beyond(ab.shape, lower), ȳ, 0.0)  # is handed on
        return (one_triangle(Ā, ab.shape[0], lower) + outside, *[NoTangent()] * 3)

    return y, cholesky_banded_pullback


@rrule(linalg.cho_solve_banded)
def _(cb_and_lower: tuple, b: np.ndarray, overwrite_b=False, check_finite=True):
    x = linalg.cho_solve_banded(cb_and_lower, b, False, check_finite)

    def cho_solve_banded_pullback(x̄):
        cb, lower = cb_and_lower
        if is_stack((2, EITHER), cb, b):

            def one(cb, b):
                return linalg.cho_solve_banded((cb, lower), b)

            c̄b, b̄ = of_each(x̄, x, one, (2, EITHER), cb, b)
            return (c̄b, NoTangent()), b̄, NoTangent(), NoTangent()
        b̄ = linalg.cho_solve_banded(cb_and_lower, x̄, False, check_finite)
        G = of_equation(b̄, x)
        both = G + ctranspose(G)
        C = dense_triangle(cb, lower)
        bands = one_triangle(both @ C if lower else C @ both, cb.shape[0], lower)
        return (bands, NoTangent()), np.reshape(b̄, b.shape), NoTangent(), NoTangent()

    return x, cho_solve_banded_pullback


def beyond(shape: Any, lower: bool) -> Any:
    """Which entries of a banded storage lie beyond the matrix."""
    k = np.arange(shape[0])[:, None]
    j = np.arange(shape[1])
    return j + k >= shape[1] if lower else j < shape[0] - 1 - k


def one_triangle(G, rows, lower):
    """The bands of a matrix in their storage."""
    n = G.shape[0]
    found = []
    for k in range(rows):
        band = np.diagonal(G, -k if lower else k)
        rest = np.zeros(n - len(band), G.dtype)
        found.append(np.concatenate((band, rest) if lower else (rest, band)))
    return np.stack(found if lower else found[::-1])


non_differentiable(
    beyond, linalg.bandwidth, linalg.dft, linalg.hadamard, linalg.helmert, linalg.hilbert,
    linalg.invhilbert, linalg.invpascal, linalg.ishermitian, linalg.issymmetric, linalg.pascal,
)  # fmt: skip
