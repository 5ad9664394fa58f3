"""Rules of the products: @, matmul, dot, vdot, inner, outer, einsum, tensordot, kron, vecdot, ….

    Y = A B:          Ā = Ȳ Bᴴ      B̄ = Aᴴ Ȳ
    y = A b:          Ā = ȳ bᴴ      b̄ = Aᴴ ȳ
    y = aᵀ b:         ā = ȳ b*      b̄ = ȳ a*          (vdot conjugates a: b̄ = ȳ a, ā = ȳ* b)
    einsum:           each operand's cotangent is an einsum of ȳ with the other operands

Shapes: stacks of matrices broadcast over their leading axes. `dot` is taken rather than `@` for
matrices: where an inner dimension is 1, as with a batch of one, it takes a quarter of the time.
Tests: tests/rules/arrays/test_products.py
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy import dot

from morula.core.extend import NONE, NoTangent, call, folds, non_differentiable, rrule, type_stable
from morula.rules.arrays.broadcasting import match, shape_of, total, unbroadcast
from morula.rules.arrays.construction import as_it_is
from morula.rules.arrays.outs import call_with_out
from morula.rules.arrays.types import Numeric, Scalar
from morula.rules.calls import compiled, serves
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
    over_a, over_b = contracted(axes, a.ndim, b.ndim)
    rest_a = tuple(i for i in range(a.ndim) if i not in over_a)
    rest_b = tuple(i for i in range(b.ndim) if i not in over_b)

    def tensordot_pullback(ȳ):
        return (
            left_tensordot(ȳ, b, over_a, over_b, rest_a, rest_b),
            right_tensordot(ȳ, a, over_a, over_b, rest_a, rest_b),
            NoTangent(),
        )

    return np.tensordot(a, b, axes), tensordot_pullback


def contracted(axes, a_ndim, b_ndim):
    """The axes of a and of b that tensordot sums over, counted from 0."""
    if isinstance(axes, int | np.integer):
        return tuple(range(a_ndim - axes, a_ndim)), tuple(range(axes))
    over_a, over_b = axes
    over_a = (over_a,) if isinstance(over_a, int | np.integer) else tuple(over_a)
    over_b = (over_b,) if isinstance(over_b, int | np.integer) else tuple(over_b)
    return tuple(i % a_ndim for i in over_a), tuple(i % b_ndim for i in over_b)


def left_tensordot(ȳ, b, over_a, over_b, rest_a, rest_b):
    """ȳ has the axes rest_a, rest_b; summing over rest_b leaves rest_a and over_b, sorted."""
    n = len(rest_a)
    mixed = np.tensordot(ȳ, b.conjugate(), (range(n, n + len(rest_b)), rest_b))
    order = sorted(range(len(over_b)), key=over_b.__getitem__)
    return np.moveaxis(mixed, range(mixed.ndim), (*rest_a, *[over_a[i] for i in order]))


def right_tensordot(ȳ, a, over_a, over_b, rest_a, rest_b):
    """Summing over rest_a leaves over_a, sorted, and rest_b."""
    mixed = np.tensordot(a.conjugate(), ȳ, (rest_a, range(len(rest_a))))
    order = sorted(range(len(over_a)), key=over_a.__getitem__)
    return np.moveaxis(mixed, range(mixed.ndim), (*[over_b[i] for i in order], *rest_b))


@rrule(np.kron)
def _(a: np.ndarray, b: np.ndarray):
    ndim = max(a.ndim, b.ndim)
    a_shape = (1,) * (ndim - a.ndim) + a.shape
    b_shape = (1,) * (ndim - b.ndim) + b.shape
    split = tuple(n for pair in zip(a_shape, b_shape, strict=True) for n in pair)

    def kron_pullback(ȳ):
        blocks = ȳ.reshape(split)  # axes of a and of b in turn
        a_wide = a.reshape([n for m in a_shape for n in (m, 1)])
        b_wide = b.reshape([n for m in b_shape for n in (1, m)])
        ā = np.sum(blocks * b_wide.conjugate(), axis=tuple(range(1, 2 * ndim, 2)))
        b̄ = np.sum(blocks * a_wide.conjugate(), axis=tuple(range(0, 2 * ndim, 2)))
        return np.reshape(ā, a.shape), np.reshape(b̄, b.shape)

    return np.kron(a, b), kron_pullback


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


# -- einsum ----------------------------------------------------------------------------------------


@rrule(np.einsum)
def _(subscripts: str, *operands, optimize=False, dtype=None):
    inputs, output = einsum_subscripts(subscripts, operands)
    given = tuple([as_it_is(x) for x in operands])

    def einsum_pullback(ȳ):
        cotangents = [
            einsum_cotangent(ȳ, i, inputs, output, given, optimize) for i in range(len(given))
        ]
        return (NoTangent(), *cotangents)

    if dtype is None:
        return np.einsum(subscripts, *operands, optimize=optimize), einsum_pullback
    return np.einsum(subscripts, *operands, optimize=optimize, dtype=dtype), einsum_pullback


@serves(np.einsum)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Operands and lists of axes in turn, the axes of the result last; or a call with out=."""
    found = call_with_out(fn, args, kwargs)
    if found is not None:
        return found
    if len(args) < 2 or isinstance(args[0], str):
        return compiled(fn, args, kwargs)
    operands, subscripts = as_letters(args)
    y, back = call(np.einsum, subscripts, *operands, **kwargs)
    n = len(operands)

    def einsum_pullback(ȳ):
        _, _, *cotangents = back(ȳ)
        found = [NONE] * len(args)
        found[: 2 * n : 2] = cotangents[:n]
        return (NONE, *found, *[NONE] * len(kwargs))

    return y, einsum_pullback


def as_letters(args: Any) -> Any:
    """The operands and the subscripts of an `einsum` that is given by lists of axes."""
    n = len(args) // 2
    operands, axes = args[: 2 * n : 2], list(args[1::2])
    if len(args) % 2:
        axes.append(args[-1])
    letters = "".join(
        ["," * (0 < i < n) + "->" * (i == n) + subscripts_of(axes[i]) for i in range(len(axes))]
    )
    return operands, letters


def subscripts_of(axes: Any) -> str:
    """The letters of a list of axes."""
    return "".join(["..." if i is Ellipsis else LETTERS[i] for i in axes])


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
non_differentiable(subscripts_of)


def einsum_subscripts(subscripts, operands):
    """The letters of each operand and of the result, with letters in place of the ellipses."""
    return parsed(subscripts, tuple([np.ndim(x) for x in operands]))


@lru_cache(maxsize=1000)
def parsed(subscripts: str, ndims: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """The same, from the numbers of axes of the operands."""
    subscripts = subscripts.replace(" ", "")
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    free = [c for c in LETTERS if c not in inputs]
    extra = [
        ndim - len(t.replace("...", "")) if "..." in t else 0
        for t, ndim in zip(terms, ndims, strict=True)
    ]
    most = max(extra, default=0)
    dots = "".join(free[:most])
    terms = [t.replace("...", dots[most - n :]) for t, n in zip(terms, extra, strict=True)]
    if arrow:
        return tuple(terms), output.replace("...", dots)
    letters = sorted(set("".join(terms)) - set(dots))
    once = [c for c in letters if "".join(terms).count(c) == 1]
    return tuple(terms), dots + "".join(once)


def einsum_cotangent(ȳ, i, inputs, output, operands, optimize):
    """The cotangent of operand i: einsum of ȳ with the others, spread over what was summed away.

    A letter that the operand has twice is put on its diagonal.
    """
    plan = einsum_plan(i, inputs, output, tuple([np.shape(x) for x in operands]))
    others = [np.conjugate(x) for x in (*operands[:i], *operands[i + 1 :])]
    x̄ = np.einsum(plan.expression, ȳ, *others, optimize=optimize)
    x̄ = np.broadcast_to(np.reshape(x̄, einsum_shape(plan, np.shape(x̄))), plan.full)
    x̄ = unbroadcast(x̄, plan.own)
    if plan.diagonal is None:
        return x̄
    return np.einsum(plan.diagonal, x̄, *[np.eye(n, dtype=x̄.dtype) for n in plan.repeated])


class EinsumPlan(NamedTuple):
    """How the cotangent of an operand is found."""

    expression: str  # of ȳ and the other operands: gives the letters that these have
    letters: str  # of the operand, each once
    found: str  # those that the expression gives
    full: tuple[int, ...]  # the sizes of the letters, where operands broadcast
    own: tuple[int, ...]  # those that the operand has
    diagonal: str | None  # puts the result on diagonals
    repeated: tuple[int, ...]  # the sizes of the letters that the operand has again


@lru_cache(maxsize=1000)
def einsum_plan(i, inputs, output, shapes):
    """The plan for operand i; all of it is letters and sizes."""
    sizes: dict = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        for c, n in zip(letters, shape, strict=True):
            sizes[c] = n if n != 1 else sizes.get(c, 1)
    wanted = inputs[i]
    own = dict(zip(wanted, shapes[i], strict=True))
    letters = "".join(dict.fromkeys(wanted))
    terms = [*inputs[:i], *inputs[i + 1 :]]
    found = "".join([c for c in letters if c in output or any(c in t for t in terms)])
    expression = ",".join([output, *terms]) + "->" + found
    fresh = [c for c in "zyxwvutsrqponmlkjihgfedcba" if c not in wanted]
    spelled, again = "", []
    for c in wanted:
        if c in spelled:
            again.append((c, fresh.pop()))
        spelled += again[-1][1] if c in spelled else c
    diagonal = ",".join([letters, *[a + b for a, b in again]]) + "->" + spelled if again else None
    return EinsumPlan(
        expression,
        letters,
        found,
        tuple([sizes[c] for c in letters]),
        tuple([own[c] for c in letters]),
        diagonal,
        tuple([own[a] for a, _ in again]),
    )


def einsum_shape(plan, shape):
    """The shape of what was found with an axis of length 1 for each letter that was not."""
    return tuple([shape[plan.found.index(c)] if c in plan.found else 1 for c in plan.letters])


non_differentiable(einsum_plan, einsum_shape, einsum_subscripts)
type_stable(
    operator.matmul, np.matmul, np.dot, np.ndarray.dot, np.vdot, np.inner, np.outer, np.tensordot,
    np.vecdot, *present(np, "matvec vecmat"), np.einsum,
)  # fmt: skip
