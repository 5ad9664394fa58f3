"""Rules of the products: @, matmul, dot, vdot, inner, outer, tensordot, kron, vecdot, ….

    Y = A B:          Ā = Ȳ Bᴴ      B̄ = Aᴴ Ȳ
    y = A b:          Ā = ȳ bᴴ      b̄ = Aᴴ ȳ
    y = aᵀ b:         ā = ȳ b*      b̄ = ȳ a*          (vdot conjugates a: b̄ = ȳ a, ā = ȳ* b)

Shapes: stacks of matrices broadcast over their leading axes. `dot` is taken rather than `@` for
matrices: where an inner dimension is 1, as with a batch of one, it takes a quarter of the time.
Tests: tests/rules/arrays/test_products.py
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy import dot

from morula.core.extend import (
    Const,
    NoTangent,
    folds,
    non_differentiable,
    primitives,
    rewrites,
    rrule,
    type_stable,
)
from morula.rules.arrays.broadcasting import match, shape_of, total, unbroadcast
from morula.rules.arrays.types import Numeric, Scalar
from morula.rules.versions import present

# -- matrix products -------------------------------------------------------------------------------


# The case is known from the types, so that these fold to the one line that is needed.


def have_axes(a, m, b, n):
    """Have a and b these numbers of axes?"""
    return a.ndim == m and b.ndim == n


def are_vectors_or_matrices(a, b):
    """Have a and b one or two axes?"""
    return 1 <= a.ndim <= 2 and 1 <= b.ndim <= 2


def axes_of(f: Any, *operands: Any) -> Any:
    """The known numbers of axes of arrays; None, if one of them is not known."""
    if any(f.types(x) is not np.ndarray for x in operands):
        return None
    return [f.details(x)[1] for x in operands]


@folds(have_axes)
def _(f: Any, call: Any) -> Any:
    a, m, b, n = call.args
    axes = axes_of(f, a, b)
    return None if axes is None else type(call.fn)(axes == [m.value, n.value])


@folds(are_vectors_or_matrices)
def _(f: Any, call: Any) -> Any:
    axes = axes_of(f, *call.args)
    return None if axes is None else type(call.fn)(set(axes) <= {1, 2})


non_differentiable(have_axes, are_vectors_or_matrices)


def left_factor(ȳ, a, b):
    """Ā of Y = A B."""
    if have_axes(a, 2, b, 2):
        return dot(ȳ, b.conjugate().T)
    return left_of_vector(ȳ, a, b)


def left_of_vector(ȳ, a, b):
    """Ā of y = A b."""
    if have_axes(a, 2, b, 1):
        return ȳ[:, None] * b.conjugate()
    return left_of_vectors(ȳ, a, b)


def left_of_vectors(ȳ, a, b):
    """ā of y = aᵀ b."""
    if have_axes(a, 1, b, 1):
        return ȳ * b.conjugate()
    return left_of_stacks(ȳ, a, b)


def left_of_stacks(ȳ, a, b):
    """Ā of Y = A B, for all others."""
    if a.ndim == 1 and b.ndim == 2:
        return np.dot(b.conjugate(), ȳ)
    if b.ndim == 1:
        return match(ȳ[..., None] * b.conjugate(), a.shape)
    if a.ndim == 1:
        return match(np.matmul(b.conjugate(), ȳ[..., None])[..., 0], a.shape)
    return match(np.matmul(ȳ, np.swapaxes(b.conjugate(), -1, -2)), a.shape)


def right_factor(ȳ, a, b):
    """B̄ of Y = A B."""
    if have_axes(a, 2, b, 2):
        return dot(a.conjugate().T, ȳ)
    return right_of_vector(ȳ, a, b)


def right_of_vector(ȳ, a, b):
    """b̄ of y = A b."""
    if have_axes(a, 2, b, 1):
        return dot(ȳ, a.conjugate())
    return right_of_vectors(ȳ, a, b)


def right_of_vectors(ȳ, a, b):
    """b̄ of y = aᵀ b."""
    if have_axes(a, 1, b, 1):
        return ȳ * a.conjugate()
    return right_of_stacks(ȳ, a, b)


def right_of_stacks(ȳ, a, b):
    """B̄ of Y = A B, for all others."""
    if a.ndim == 1 and b.ndim == 2:
        return a.conjugate()[:, None] * ȳ
    if b.ndim == 1:
        return match(np.matmul(ȳ[..., None, :], a.conjugate())[..., 0, :], b.shape)
    if a.ndim == 1:
        return match(a.conjugate()[:, None] * ȳ[..., None, :], b.shape)
    return match(np.matmul(np.swapaxes(a.conjugate(), -1, -2), ȳ), b.shape)


@rrule(operator.matmul)
def _(a: np.ndarray, b: np.ndarray):
    def matmul_pullback(ȳ):
        return left_factor(ȳ, a, b), right_factor(ȳ, a, b)

    return a @ b, matmul_pullback


@rrule(np.matmul)
def _(a: np.ndarray, b: np.ndarray):
    def matmul_pullback(ȳ):
        return left_factor(ȳ, a, b), right_factor(ȳ, a, b)

    return np.matmul(a, b), matmul_pullback


@rrule(np.dot)
@rrule(np.ndarray.dot)
def _(a: np.ndarray, b: np.ndarray):
    def dot_pullback(ȳ):
        return left_dot(ȳ, a, b), right_dot(ȳ, a, b)

    return np.dot(a, b), dot_pullback


def left_dot(ȳ, a, b):
    """ā of y = dot(a, b)."""
    return left_factor(ȳ, a, b) if are_vectors_or_matrices(a, b) else left_of_many(ȳ, a, b)


def left_of_many(ȳ, a, b):
    """ā of y = dot(a, b): over the last axis of a and the last but one of b."""
    if a.ndim == 0 or b.ndim == 0:
        return match(ȳ * b.conjugate(), a.shape)
    if b.ndim == 1:
        return left_factor(ȳ, a, b)
    rest = tuple(range(a.ndim - 1, a.ndim + b.ndim - 2))
    return np.tensordot(ȳ, np.moveaxis(b.conjugate(), -2, 0), (rest, range(1, b.ndim)))


def right_dot(ȳ, a, b):
    """b̄ of y = dot(a, b)."""
    return right_factor(ȳ, a, b) if are_vectors_or_matrices(a, b) else right_of_many(ȳ, a, b)


def right_of_many(ȳ, a, b):
    """b̄ of y = dot(a, b), for all others."""
    if a.ndim == 0 or b.ndim == 0:
        return match(ȳ * a.conjugate(), b.shape)
    rest = tuple(range(a.ndim - 1))
    inner_first = np.tensordot(a.conjugate(), ȳ, (rest, rest))
    return inner_first if b.ndim == 1 else np.moveaxis(inner_first, 0, -2)


@rrule(np.dot)
@rrule(np.ndarray.dot)
def _(a: np.ndarray, b: Scalar):
    def dot_pullback(ȳ):
        return ȳ * b.conjugate(), total(ȳ * a.conjugate())

    return np.dot(a, b), dot_pullback


@rrule(np.dot)
def _(a: Scalar, b: Numeric):
    b_shape = shape_of(b)

    def dot_pullback(ȳ):
        return total(ȳ * b.conjugate()), match(ȳ * a.conjugate(), b_shape)

    return np.dot(a, b), dot_pullback


@rrule(np.vdot)
def _(a: Numeric, b: Numeric):
    a_shape = shape_of(a)
    b_shape = shape_of(b)

    def vdot_pullback(ȳ):
        return (
            np.reshape(np.conjugate(ȳ) * np.ravel(b), a_shape),
            np.reshape(ȳ * np.ravel(a), b_shape),
        )

    return np.vdot(a, b), vdot_pullback


@rrule(np.inner)
def _(a: Numeric, b: Numeric):
    def inner_pullback(ȳ):
        return inner_left(ȳ, a, b), inner_right(ȳ, a, b)

    return np.inner(a, b), inner_pullback


def inner_left(ȳ, a, b):
    """ā of y = inner(a, b): over the last axes of both."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return unbroadcast(ȳ * np.conjugate(b), np.shape(a))
    rest = a.ndim - 1
    return np.tensordot(ȳ, np.conjugate(b), (range(rest, rest + b.ndim - 1), range(b.ndim - 1)))


def inner_right(ȳ, a, b):
    """b̄ of y = inner(a, b)."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return unbroadcast(ȳ * np.conjugate(a), np.shape(b))
    rest = range(a.ndim - 1)
    return np.tensordot(ȳ, np.conjugate(a), (rest, rest))


@rrule(np.outer)
def _(a: Numeric, b: Numeric):
    a_shape = shape_of(a)
    b_shape = shape_of(b)

    def outer_pullback(ȳ):
        return (
            np.reshape(np.dot(ȳ, np.conjugate(np.ravel(b))), a_shape),
            np.reshape(np.dot(np.conjugate(np.ravel(a)), ȳ), b_shape),
        )

    return np.outer(a, b), outer_pullback


@rrule(np.tensordot)
def _(a: np.ndarray, b: np.ndarray, axes=2):
    """Contract `axes` of a with those of b."""
    over_b, a_order, over_a, b_order = contraction(axes, a.ndim, b.ndim)

    def tensordot_pullback(ȳ):
        ā = np.tensordot(ȳ, b.conjugate(), over_b)
        b̄ = np.tensordot(a.conjugate(), ȳ, over_a)
        return in_order(ā, a_order), in_order(b̄, b_order), NoTangent()

    return np.tensordot(a, b, axes), tensordot_pullback


def contraction(axes, a_ndim, b_ndim):
    """What the cotangents of a tensordot are summed over, and how their axes are to be permuted.

    ȳ has the axes of a and of b that are left. Summed over those of b, it has those of a and, sorted,
    the contracted axes of b; and so, in the order of the factors, for b.
    """
    over_a, over_b = contracted(axes, a_ndim, b_ndim)
    rest_a = tuple([i for i in range(a_ndim) if i not in over_a])
    rest_b = tuple([i for i in range(b_ndim) if i not in over_b])
    n = len(rest_a)
    a_found = (*rest_a, *[i for _, i in sorted(zip(over_b, over_a, strict=True))])
    b_found = (*[i for _, i in sorted(zip(over_a, over_b, strict=True))], *rest_b)
    return (
        (tuple(range(n, n + len(rest_b))), rest_b),
        order_of(a_found),
        (rest_a, tuple(range(n))),
        order_of(b_found),
    )


def order_of(places):
    """The permutation that brings each axis to its place; None: they are there."""
    order = tuple(sorted(range(len(places)), key=places.__getitem__))
    return None if order == tuple(range(len(places))) else order


def in_order(x, order):
    """x with its axes permuted."""
    return x if order is None else np.transpose(x, order)


def contracted(axes, a_ndim, b_ndim):
    """The axes of a and of b that tensordot sums over, counted from 0."""
    if isinstance(axes, int | np.integer):
        return tuple(range(a_ndim - axes, a_ndim)), tuple(range(axes))
    over_a, over_b = axes
    over_a = (over_a,) if isinstance(over_a, int | np.integer) else tuple(over_a)
    over_b = (over_b,) if isinstance(over_b, int | np.integer) else tuple(over_b)
    return tuple([i % a_ndim for i in over_a]), tuple([i % b_ndim for i in over_b])


non_differentiable(contraction)


@folds(contraction)
def _(f: Any, call: Any) -> Any:
    """Constants, if they are known."""
    found = [constant_of(f, x) for x in call.args]
    if None in found:
        return None
    return [f.same_call(call, primitives.build_tuple, *map(f.const, contraction(*found)))]


def constant_of(f: Any, x: Any) -> Any:
    """A whole number, or a tuple or list of these, that an operand is known to be."""
    if type(x) is Const:
        return x.value
    made = f.definition(x, primitives.build_tuple)
    if made is None and f.used_once(x):  # so nobody changes it
        made = f.definition(x, primitives.build_list)
    items = [None] if made is None else [constant_of(f, a) for a in made.args]
    return None if None in items else tuple(items)


@folds(np.tensordot)
def _(f: Any, call: Any) -> Any:
    """Axes in lists are constant as well."""
    if len(call.args) != 3 or type(call.args[2]) is Const:
        return None
    axes = constant_of(f, call.args[2])
    if axes is None:
        return None
    return [f.same_call(call, np.tensordot, *call.args[:2], f.const(axes))]


@rewrites
def _(s: Any) -> bool:
    """They are the third argument."""
    named = [c for c in s.ir.calls() if c.primitive is np.tensordot and c.keywords == ("axes",)]
    for call in named:
        call.keywords = ()
    return bool(named)


@rrule(np.kron)
def _(a: np.ndarray, b: np.ndarray):
    def kron_pullback(ȳ):
        return left_kron(ȳ, a, b), right_kron(ȳ, a, b)

    return np.kron(a, b), kron_pullback


def left_kron(ȳ, a, b):
    """ā of y = kron(a, b): summed over the entries of b."""
    a_shape, b_shape = in_blocks(a.shape, b.shape)
    b_wide = b.reshape([n for m in b_shape for n in (1, m)])
    blocks = ȳ.reshape([n for pair in zip(a_shape, b_shape, strict=True) for n in pair])
    axes = tuple(range(1, 2 * len(a_shape), 2))
    return np.reshape(np.sum(blocks * b_wide.conjugate(), axis=axes), a.shape)


def right_kron(ȳ, a, b):
    """b̄ of y = kron(a, b): summed over the entries of a."""
    a_shape, b_shape = in_blocks(a.shape, b.shape)
    a_wide = a.reshape([n for m in a_shape for n in (m, 1)])
    blocks = ȳ.reshape([n for pair in zip(a_shape, b_shape, strict=True) for n in pair])
    axes = tuple(range(0, 2 * len(a_shape), 2))
    return np.reshape(np.sum(blocks * a_wide.conjugate(), axis=axes), b.shape)


def in_blocks(a_shape, b_shape):
    """The shapes of two arrays with as many axes; y has those of a and of b in turn."""
    ndim = max(len(a_shape), len(b_shape))
    return (
        (1,) * (ndim - len(a_shape)) + a_shape,
        (1,) * (ndim - len(b_shape)) + b_shape,
    )


non_differentiable(in_blocks)


# -- products over one axis, of stacks of vectors --------------------------------------------------


@rrule(np.vecdot)
def _(a: np.ndarray, b: np.ndarray):
    """Σ a* b over the last axis."""

    def vecdot_pullback(ȳ):
        wide = np.asarray(ȳ)[..., None]
        return match(wide.conjugate() * b, a.shape), match(wide * a, b.shape)

    return np.vecdot(a, b), vecdot_pullback


if hasattr(np, "matvec"):  # since NumPy 2.2

    @rrule(np.matvec)
    def _(a: np.ndarray, b: np.ndarray):
        """A b over stacks of both."""

        def matvec_pullback(ȳ):
            return (
                match(ȳ[..., None] * b.conjugate()[..., None, :], a.shape),
                match(np.matmul(ȳ[..., None, :], a.conjugate())[..., 0, :], b.shape),
            )

        return np.matvec(a, b), matvec_pullback

    @rrule(np.vecmat)
    def _(a: np.ndarray, b: np.ndarray):
        """aᴴ B over stacks of both."""

        def vecmat_pullback(ȳ):
            return (
                match(np.matmul(b, ȳ.conjugate()[..., None])[..., 0], a.shape),
                match(a[..., None] * ȳ[..., None, :], b.shape),
            )

        return np.vecmat(a, b), vecmat_pullback


type_stable(
    operator.matmul, np.matmul, np.dot, np.ndarray.dot, np.vdot, np.inner, np.outer, np.tensordot,
    np.vecdot, *present(np, "matvec vecmat"),
)  # fmt: skip
