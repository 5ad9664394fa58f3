"""Forward rules of arrays, where the transpose of the reverse rule would be the dearer way.

    y = f(x):      ẏ = f'(x) ẋ              elementwise
    y = f(a, b):   ẏ = ∂f/∂a ȧ + ∂f/∂b ḃ    spread to the shape of y where operands broadcast
    y = L(x):      ẏ = L(ẋ)                 sums, shapes, items: a linear function is its own
    y = r(x):      ẏ = Re Σ g* ẋ            real numbers made of slices; g is the gradient of each

A tangent that is structurally zero contributes nothing, so an infinite derivative by what is constant
does no harm. Every other rule is transposed (mixed_mode/transposition.py).
Tests: tests/rules/arrays/test_pushforwards.py
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    accumulate,
    find_rrule,
    folds,
    frule,
    is_zero,
    is_zero_value,
    known,
    project_to,
    result_on_samples,
    transfers,
    type_stable,
)
from morula.rules.arrays.arithmetic import by_base, by_exponent, real_slope, slope
from morula.rules.arrays.broadcasting import spread, total, unbroadcast
from morula.rules.arrays.elementwise import numpy_number
from morula.rules.arrays.indexing import scatter, scattered
from morula.rules.arrays.structural import mark, masked, selected
from morula.rules.arrays.traits import whole_shape
from morula.rules.arrays.types import Anything, Numeric, Scalar


def fitted(y, ẏ):
    """A tangent in the space of `y`, spread where an operand was broadcast."""
    if ẏ is ZERO:
        return ZERO
    if type(y) is np.ndarray is type(ẏ) and y.shape == ẏ.shape and y.dtype is ẏ.dtype:
        return ẏ
    if isinstance(y, np.ndarray) and np.shape(ẏ) != y.shape:
        ẏ = np.broadcast_to(ẏ, y.shape)
    ẏ = project_to(y)(ẏ)
    without_axes = isinstance(y, np.ndarray) and isinstance(ẏ, (np.generic, float, complex))
    return np.asarray(ẏ) if without_axes else ẏ


type_stable(fitted)


@folds(fitted)
def _(f: Any, call: Any) -> Any:
    """What is known to be like the value stays."""
    y, ẏ = call.args
    k = f.known(y)
    fits = k is not None and k == f.known(ẏ) and (k.type is not np.ndarray or whole_shape(k.detail))
    return ẏ if fits or is_zero_value(ẏ) else None


@transfers(fitted)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """It is like the value, if that has tangents of its own type."""
    y, ẏ = args
    k = known(y)
    if is_zero_value(ẏ):
        return ẏ
    inexact = k is not None and (
        k.type in (float, complex)
        or (k.type is np.ndarray and k.detail and np.dtype(k.detail[0]).kind in "fc")
    )
    return k if inexact else result_on_samples(fitted, args)


# -- elementwise functions -------------------------------------------------------------------------


def unary(primal, derivative):
    """The forward rule of a function of one argument, from its derivative."""

    @frule(primal)
    def _(x: Numeric):
        y = primal(x)

        def unary_pushforward(ẋ):
            return fitted(y, derivative(y, numpy_number(x, y)) * ẋ)

        return y, unary_pushforward


DERIVATIVES: dict[Any, Any] = {
    np.exp: lambda y, x: y,
    np.log: lambda y, x: 1 / x,
    np.sqrt: lambda y, x: 0.5 / y,
    np.tanh: lambda y, x: 1 - y * y,
    np.sin: lambda y, x: np.cos(x),
    np.cos: lambda y, x: -np.sin(x),
    np.square: lambda y, x: 2 * x,
    np.negative: lambda y, x: -1,
    np.positive: lambda y, x: 1,
    np.expm1: lambda y, x: np.exp(x),
    np.log1p: lambda y, x: 1 / (1 + x),
    np.tan: lambda y, x: 1 + y * y,
    np.sinh: lambda y, x: np.cosh(x),
    np.cosh: lambda y, x: np.sinh(x),
    np.arctan: lambda y, x: 1 / (1 + x * x),
    np.reciprocal: lambda y, x: -y * y,
    np.exp2: lambda y, x: y * math.log(2),
    np.log2: lambda y, x: 1 / (x * math.log(2)),
    np.log10: lambda y, x: 1 / (x * math.log(10)),
    np.arcsinh: lambda y, x: 1 / np.sqrt(1 + x * x),
}
for _primal, _derivative in DERIVATIVES.items():
    unary(_primal, _derivative)


@frule(operator.neg)
def _(x: np.ndarray):
    def neg_pushforward(ẋ):
        return fitted(x, -ẋ)

    return -x, neg_pushforward


def binary(primals, push):
    """The forward rules of a function of two arguments; `push(y, a, b, ȧ, ḃ)` is its tangent."""
    for primal in primals:
        _binary(primal, push)


def _binary(primal, push):
    @frule(primal)
    def _(a: np.ndarray, b: Numeric):
        y = primal(a, b)
        return y, lambda ȧ, ḃ: fitted(y, push(y, a, b, ȧ, ḃ))

    @frule(primal)
    def _(a: Scalar, b: np.ndarray):
        y = primal(a, b)
        return y, lambda ȧ, ḃ: fitted(y, push(y, a, b, ȧ, ḃ))


binary((operator.add, np.add), lambda y, a, b, ȧ, ḃ: ȧ + ḃ)
binary((operator.sub, np.subtract), lambda y, a, b, ȧ, ḃ: ȧ - ḃ)
binary((operator.mul, np.multiply), lambda y, a, b, ȧ, ḃ: ȧ * b + a * ḃ)
binary((operator.truediv, np.true_divide), lambda y, a, b, ȧ, ḃ: ȧ / b - y * ḃ / b)


def power_tangent(y, a, b, ȧ, ḃ):
    """The tangent of a ** b."""
    ẏ: Any = ZERO
    if ȧ is not ZERO:
        if isinstance(b, int):
            d = slope(a, b)
        elif isinstance(b, float) and isinstance(a, np.ndarray):
            d = real_slope(y, a, b)
        else:
            d = by_base(a, b)
        ẏ = ẏ + d * ȧ
    if ḃ is not ZERO:
        ẏ = ẏ + by_exponent(y, a) * ḃ
    return ẏ


binary((operator.pow, np.power), power_tangent)


def product(primal):
    """The forward rule of a product of arrays."""

    @frule(primal)
    def _(a: np.ndarray, b: np.ndarray):
        y = primal(a, b)

        def product_pushforward(ȧ, ḃ):
            ẏ: Any = ZERO
            if ȧ is not ZERO:
                ẏ = ẏ + primal(ȧ, b)
            if ḃ is not ZERO:
                ẏ = ẏ + primal(a, ḃ)
            return fitted(y, ẏ)

        return y, product_pushforward


for _primal in (operator.matmul, np.matmul, np.dot, np.ndarray.dot, np.inner, np.outer):
    product(_primal)


def product_of_sequences(primal, usual):
    """The forward rule of a convolution or a correlation."""

    @frule(primal)
    def _(a: np.ndarray, v: np.ndarray, mode=usual):
        y = primal(a, v, mode)

        def sequences_pushforward(ȧ, v̇, *rest):
            ẏ: Any = ZERO
            if ȧ is not ZERO:
                ẏ = ẏ + primal(ȧ, v, mode)
            if v̇ is not ZERO:
                ẏ = ẏ + primal(a, v̇, mode)
            return fitted(y, ẏ)

        return y, sequences_pushforward


product_of_sequences(np.convolve, "full")
product_of_sequences(np.correlate, "valid")


@frule(np.einsum)
def _(subscripts: str, *operands: np.ndarray):
    y = np.einsum(subscripts, *operands)

    def einsum_pushforward(subscripts_dot, *dots):
        ẏ: Any = ZERO
        for i, ẋ in enumerate(dots):
            if ẋ is not ZERO:
                ẏ = ẏ + np.einsum(subscripts, *operands[:i], ẋ, *operands[i + 1 :])
        return fitted(y, ẏ)

    return y, einsum_pushforward


@frule(np.sort)
def _(a: np.ndarray, axis: int = -1):
    """The permutation that a stable sort takes, as in reverse mode."""
    y = np.sort(a, axis)

    def sort_pushforward(ȧ, *rest):
        if ȧ is ZERO:
            return ZERO
        return fitted(y, np.take_along_axis(ȧ, np.argsort(a, axis, kind="stable"), axis))

    return y, sort_pushforward


# -- choices ---------------------------------------------------------------------------------------


def choice(primal, greater):
    """The forward rule of maximum or minimum: the operand that was taken, half of each at a tie."""

    @frule(primal)
    def _(a: Numeric, b: Numeric):
        y = primal(a, b)

        def choice_pushforward(ȧ, ḃ):
            return fitted(y, along_choice(a, b, ȧ, ḃ, greater))

        return y, choice_pushforward


def along_choice(a, b, ȧ, ḃ, greater):
    """The tangent of the greater or the lesser of two operands."""
    first = np.greater(a, b) if greater else np.less(a, b)
    ties = np.equal(a, b)
    of_a = 0.0 if ȧ is ZERO else ȧ
    of_b = 0.0 if ḃ is ZERO else ḃ
    return np.where(ties, (of_a + of_b) * 0.5, np.where(first, of_a, of_b))


choice(np.maximum, True)
choice(np.minimum, False)


@frule(np.clip)
@frule(np.ndarray.clip)
def _(a: np.ndarray, low: Scalar | None, high: Scalar | None = None):
    y = np.clip(a, low, high)

    def clip_pushforward(ȧ, low_dot, high_dot=ZERO):
        inner, ẏ = a, ȧ
        if low is not None:
            inner, ẏ = np.maximum(a, low), along_choice(a, low, ȧ, low_dot, True)
        if high is not None:
            ẏ = along_choice(inner, high, ẏ, high_dot, False)
        return fitted(y, ẏ)

    return y, clip_pushforward


@frule(np.where)
def _(condition: Anything, a: Numeric, b: Numeric):
    y = np.where(condition, a, b)

    def where_pushforward(condition_dot, ȧ, ḃ):
        of_a = 0.0 if ȧ is ZERO else ȧ
        of_b = 0.0 if ḃ is ZERO else ḃ
        return fitted(y, np.where(condition, of_a, of_b))

    return y, where_pushforward


def absolute(primal):
    """The forward rule of the absolute value: along x / |x|, and 0 at 0."""

    @frule(primal)
    def _(x: np.ndarray):
        y = primal(x)

        def absolute_pushforward(ẋ):
            return fitted(y, np.real(np.conjugate(np.sign(x)) * ẋ))

        return y, absolute_pushforward


for _primal in (np.absolute, abs, operator.abs):
    absolute(_primal)


def extreme(primal):
    """The forward rule of maximum and minimum of entries: the mean over those that attain it."""

    @frule(primal)
    def _(a: np.ndarray, axis=None, *, keepdims=False):
        y = primal(a, axis, keepdims=keepdims)

        def extreme_pushforward(ȧ, axis_dot=ZERO):
            if ȧ is ZERO:
                return ZERO
            attained = np.equal(a, y if axis is None or keepdims else np.expand_dims(y, axis))
            chosen = np.where(attained, ȧ, 0.0)
            count = np.maximum(np.sum(attained, axis, keepdims=keepdims), 1)
            return fitted(y, np.sum(chosen, axis, keepdims=keepdims) / count)

        return y, extreme_pushforward


for _primal in (np.max, np.min, np.ndarray.max, np.ndarray.min):
    extreme(_primal)

# -- linear functions ------------------------------------------------------------------------------


def reduction(primal):
    """The forward rule of sum or mean."""

    @frule(primal)
    def _(x: np.ndarray, axis=None, *, keepdims=False):
        y = primal(x, axis, keepdims=keepdims)

        def reduction_pushforward(ẋ, axis_dot=ZERO):
            if ẋ is ZERO:
                return ZERO
            return fitted(y, primal(ẋ, axis, keepdims=keepdims))

        return y, reduction_pushforward


for _primal in (np.sum, np.ndarray.sum, np.mean, np.ndarray.mean):
    reduction(_primal)

# Linear in their first argument, as long as the others are constant.
LINEAR = (
    np.sum, np.ndarray.sum, np.mean, np.ndarray.mean, np.cumsum, np.ndarray.cumsum, np.diff, np.trace,
    np.ndarray.trace, np.diag, np.diagonal, np.ndarray.diagonal, np.tril, np.triu,
    np.reshape, np.ndarray.reshape, np.ravel, np.ndarray.ravel, np.ndarray.flatten, np.transpose,
    np.ndarray.transpose, np.squeeze, np.ndarray.squeeze, np.expand_dims, np.swapaxes,
    np.ndarray.swapaxes, np.moveaxis, np.rollaxis, np.broadcast_to, np.atleast_1d, np.atleast_2d,
    np.atleast_3d, np.repeat, np.ndarray.repeat, np.tile, np.roll, np.flip, np.fliplr, np.flipud,
    np.rot90, np.take, np.ndarray.take, np.negative, np.positive, operator.neg, operator.pos,
    np.real, np.imag, np.conjugate, np.ndarray.conj, np.ndarray.conjugate, np.copy, np.ndarray.copy,
    np.ascontiguousarray, np.ndarray.astype, np.ndarray.item, np.generic.item, np.float64, float,
    np.fft.fft, np.fft.ifft, np.fft.fftn, np.fft.ifftn, np.fft.fft2, np.fft.ifft2,
)  # fmt: skip


@frule(operator.getitem)
def _(x: np.ndarray, i: Anything):
    y = x[i]

    def getitem_pushforward(ẋ, i_dot):
        return ZERO if ẋ is ZERO else fitted(y, ẋ[i])

    return y, getitem_pushforward


@frule(np.ndarray.reshape)
def _(x: np.ndarray, *shape: Anything):
    y = x.reshape(*shape)

    def reshape_pushforward(ẋ, *shape_dots):
        return ZERO if ẋ is ZERO else ẋ.reshape(*shape)

    return y, reshape_pushforward


@frule(np.reshape)
def _(x: np.ndarray, shape: Anything):
    def reshape_pushforward(ẋ, shape_dot):
        return ZERO if ẋ is ZERO else np.reshape(ẋ, shape)

    return np.reshape(x, shape), reshape_pushforward


def conjugation(of_array, of_number):
    """The forward rules of the conjugate."""

    @frule(of_array)
    def _(x: np.ndarray):
        y = of_array(x)
        return y, lambda ẋ: fitted(y, ẋ.conjugate())

    @frule(of_number)
    def _(x: np.generic):
        y = of_number(x)
        return y, lambda ẋ: fitted(y, ẋ.conjugate())


conjugation(np.ndarray.conjugate, np.generic.conjugate)
conjugation(np.ndarray.conj, np.generic.conj)


@frule(np.ndarray.copy)
def _(x: np.ndarray, order="C"):
    def copy_pushforward(ẋ, order_dot=ZERO):
        return ZERO if ẋ is ZERO else ẋ.copy(order)

    return x.copy(order), copy_pushforward


# What pullbacks are made of is pushed in forward mode over reverse mode.


@frule(accumulate)
def _(a: Numeric, b: Numeric):
    y = accumulate(a, b)

    def accumulate_pushforward(ȧ, ḃ):
        return fitted(y, accumulate(ȧ, ḃ))

    return y, accumulate_pushforward


def linear_in_first(helper):
    """The forward rule of a function that is linear in its first argument."""

    @frule(helper)
    def _(x̄: Anything, *others: Anything):
        y = helper(x̄, *others)

        def linear_pushforward(ẋ, *dots):
            return ZERO if ẋ is ZERO else fitted(y, helper(ẋ, *others))

        return y, linear_pushforward


for _primal in (total, unbroadcast, spread, scatter, scattered, masked, selected, mark):
    linear_in_first(_primal)

# -- real numbers made of slices -------------------------------------------------------------------


def by_slices(primal, args, kwargs, axis, keepdims):
    """The forward rule from the gradient of each number: the pullback of ones."""
    rule: Any = find_rrule(primal, args, kwargs)
    y, pullback = rule.function(*args, **kwargs)

    def slices_pushforward(ẋ, *others):
        g = pullback(np.ones_like(y))[0]
        if is_zero(g) or ẋ is ZERO:
            return ZERO
        ẏ = np.sum(np.real(np.conjugate(g) * ẋ), axis=axis, keepdims=keepdims)
        return fitted(y, ẏ)

    return y, slices_pushforward


for _primal in (np.std, np.ndarray.std):

    @frule(_primal)
    def _(x: np.ndarray, axis=None, *, keepdims=False, ddof=0, where=True):
        keywords = {"keepdims": keepdims, "ddof": ddof, "where": where}
        return by_slices(np.std, (x, axis), keywords, axis, keepdims)


del _primal, _derivative
