"""Rules of solve, inv, det, slogdet, matrix_power, multi_dot, for stacks of matrices too.

    X = A⁻¹ B:      B̄ = A⁻ᴴ X̄,   Ā = -B̄ Xᴴ
    Y = A⁻¹:        Ā = -Yᴴ Ȳ Yᴴ
    y = det A:      Ā = ȳ adj(A)ᴴ, which is ȳ y* A⁻ᴴ where A can be inverted

Shapes: (..., n, n); leading axes broadcast.
Giles, An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation, report 08/01, Oxford University Computing Laboratory (2008).
Tests: tests/rules/linalg/test_matrices.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from morula.core.extend import (
    AbstractZero,
    NoTangent,
    non_differentiable,
    partial_functions,
    rrule,
    type_stable,
)
from morula.rules.arrays.broadcasting import match
from morula.rules.arrays.construction import as_it_is
from morula.rules.arrays.joining import members
from morula.rules.arrays.types import Sequence
from morula.rules.linalg.parts import ctranspose, diagonal, field, on_diagonal, precision


@rrule(np.linalg.solve)
def _(a: np.ndarray, b: np.ndarray):
    a_shape = a.shape
    b_shape = b.shape
    x = np.linalg.solve(a, b)

    def solve_pullback(x̄):
        if len(b_shape) == 1:
            b̄ = np.linalg.solve(ctranspose(a), x̄[..., None])[..., 0]
            ā = -b̄[..., None] * x.conjugate()[..., None, :]
        else:
            b̄ = np.linalg.solve(ctranspose(a), x̄)
            ā = -np.matmul(b̄, ctranspose(x))
        return match(ā, a_shape), match(b̄, b_shape)

    return x, solve_pullback


@rrule(np.linalg.inv)
def _(a: np.ndarray):
    y = np.linalg.inv(a)

    def inv_pullback(ȳ):
        yH = ctranspose(y)
        return (-np.matmul(np.matmul(yH, ȳ), yH),)

    return y, inv_pullback


@rrule(np.linalg.det)
def _(a: np.ndarray):
    y = np.linalg.det(a)

    def det_pullback(ȳ):
        if is_singular(a):
            return (ctranspose(adjugate(a)) * np.asarray(ȳ)[..., None, None],)
        inverse = ctranspose(np.linalg.inv(a))
        return (np.asarray(ȳ * y.conjugate())[..., None, None] * inverse,)

    return y, det_pullback


def is_singular(A: Any) -> bool:
    """Is a matrix so near to a singular one that its inverse has lost half of its digits?"""
    try:
        return not A.size or bool(np.any(np.linalg.cond(A, 1) * np.sqrt(precision(A)) > 1))
    except np.linalg.LinAlgError:
        return True


def adjugate(A):
    """The transposed cofactors of any A = U S Vᴴ: adj A = adj Vᴴ adj S adj U."""
    U, s, Vh = np.linalg.svd(A)
    middle = without(s)[..., :, None] * ctranspose(U)
    return turned_by(U, Vh) * np.matmul(ctranspose(Vh), middle)


@rrule(adjugate)
def _(A: np.ndarray):
    """For B = Uᴴ Ȧ V: (adj S)˙ᵢᵢ = Σₖ Pᵢₖ Bₖₖ, (adj S)˙ᵢⱼ = -Pᵢⱼ Bᵢⱼ, P the products of two less."""

    def adjugate_pullback(ȳ):
        U, s, Vh = np.linalg.svd(A)
        P = without_two(s)
        X = turned_by(U, Vh).conjugate() * (Vh @ ȳ @ U)
        inner = on_diagonal(np.matmul(P, diagonal(X)[..., None])[..., 0]) - P * X
        return (U @ inner @ Vh,)

    return adjugate(A), adjugate_pullback


def turned_by(U, Vh):
    """The determinant of the two bases of singular vectors, for all entries of a matrix."""
    return (np.linalg.det(U) * np.linalg.det(Vh))[..., None, None]


def without(s):
    """The products of all numbers but one."""
    return np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(axis=-1)


def without_two(s):
    """The products of all numbers but two, for each two of them that are not the same."""
    one = np.eye(s.shape[-1], dtype=bool)
    left = np.where(one[:, None, :] | one[None, :, :], 1, s[..., None, None, :]).prod(axis=-1)
    return np.where(one, 0, left)


@rrule(np.linalg.slogdet)
def _(a: np.ndarray):
    """(s, l) with det A = s eˡ: Ā = (l̄ + i Im(s* s̄)) A⁻ᴴ."""
    y = np.linalg.slogdet(a)
    sign = y[0]

    def slogdet_pullback(ȳ):
        s̄ = field(ȳ, 0, "sign")
        l̄ = field(ȳ, 1, "logabsdet")
        weight: Any = 0.0 if isinstance(l̄, AbstractZero) else l̄
        if np.iscomplexobj(a) and not isinstance(s̄, AbstractZero):
            weight = weight + 1j * np.imag(np.conjugate(sign) * s̄)
        return (np.asarray(weight)[..., None, None] * ctranspose(np.linalg.inv(a)),)

    return y, slogdet_pullback


@rrule(np.linalg.matrix_power)
def _(a: np.ndarray, n: int):
    """Aⁿ, n > 0: Ā = Σ (Aᴴ)ᵏ Ȳ (Aᴴ)ⁿ⁻¹⁻ᵏ; a negative power is one of the inverse."""
    y = np.linalg.matrix_power(a, n)

    def matrix_power_pullback(ȳ):
        base = ctranspose(a if n >= 0 else np.linalg.inv(a))
        ā = np.zeros_like(ȳ)
        for k in range(abs(n)):
            left = np.matmul(np.linalg.matrix_power(base, k), ȳ)
            ā = ā + np.matmul(left, np.linalg.matrix_power(base, abs(n) - 1 - k))
        return ā if n >= 0 else -np.matmul(np.matmul(base, ā), base), NoTangent()

    return y, matrix_power_pullback


@rrule(np.linalg.multi_dot)
def _(arrays: Sequence):
    """A B C …: that of one factor is (left)ᴴ Ȳ (right)ᴴ; the first and the last may be vectors."""

    given = as_it_is(arrays)

    def multi_dot_pullback(ȳ):
        factors = [np.asarray(a) for a in given]
        last = len(factors) - 1
        wide = [as_factor(a, i == 0, i == last) for i, a in enumerate(factors)]
        shape = np.shape(wide[0])[0], np.shape(wide[-1])[-1]
        Ȳ = np.reshape(ȳ, shape)
        cotangents = []
        for i, a in enumerate(factors):
            left = ctranspose(chain(wide[:i], Ȳ.shape[0]))
            right = ctranspose(chain(wide[i + 1 :], Ȳ.shape[1]))
            cotangents.append(np.reshape(left @ Ȳ @ right, a.shape))
        return (members(cotangents, given),)

    return np.linalg.multi_dot(arrays), multi_dot_pullback


def as_factor(a, first, last):
    """A vector as a row in the first place, as a column in the last one."""
    if a.ndim == 2:
        return a
    return a[None, :] if first else a[:, None]


def chain(factors, n):
    """The product of matrices; the identity if there are none."""
    if not factors:
        return np.eye(n)
    return factors[0] if len(factors) == 1 else np.linalg.multi_dot(factors)


@rrule(np.linalg.tensorsolve)
def _(a: np.ndarray, b: np.ndarray, axes=None):
    """A x = b with axes of A taken together: as solve, for the matrix."""
    y = np.linalg.tensorsolve(a, b, axes)

    def tensorsolve_pullback(ȳ):
        order = [*range(a.ndim)]
        if axes is not None:
            order = [i for i in order if i not in axes] + [i % a.ndim for i in axes]
        moved = np.transpose(a, order)
        A = np.reshape(moved, (b.size, b.size))
        z = np.linalg.solve(ctranspose(A), np.ravel(ȳ))
        Ā = np.reshape(-z[:, None] * np.ravel(y).conjugate(), moved.shape)
        return np.transpose(Ā, np.argsort(order)), np.reshape(z, b.shape), NoTangent()

    return y, tensorsolve_pullback


@rrule(np.linalg.tensorinv)
def _(a: np.ndarray, ind=2):
    """The inverse with axes taken together: as inv, for the matrix."""
    y = np.linalg.tensorinv(a, ind)

    def tensorinv_pullback(ȳ):
        rows = math.prod(a.shape[:ind])
        YH = ctranspose(np.reshape(y, (rows, rows)))
        Ā = -YH @ np.reshape(ȳ, (rows, rows)) @ YH
        return np.reshape(Ā, a.shape), NoTangent()

    return y, tensorinv_pullback


@rrule(np.linalg.vecdot)
def _(x1: np.ndarray, x2: np.ndarray, *, axis=-1):
    """Σ x₁* x₂ over an axis."""

    def vecdot_pullback(ȳ):
        wide = np.expand_dims(ȳ, axis)
        return match(wide.conjugate() * x2, x1.shape), match(wide * x1, x2.shape)

    return np.linalg.vecdot(x1, x2, axis=axis), vecdot_pullback


@rrule(np.linalg.outer)
def _(x1: np.ndarray, x2: np.ndarray):
    def outer_pullback(ȳ):
        return ȳ @ x2.conjugate(), x1.conjugate() @ ȳ

    return np.linalg.outer(x1, x2), outer_pullback


non_differentiable(is_singular)
type_stable(np.linalg.solve, np.linalg.inv, np.linalg.det)
partial_functions(np.linalg.solve, np.linalg.inv, of_arrays=True)
