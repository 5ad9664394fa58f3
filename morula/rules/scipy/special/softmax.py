"""Rules of logsumexp, softmax and log_softmax.

    y = log Σ b exp(a):       ā = ȳ b exp(a - y),   b̄ = ȳ exp(a - y)
    y = softmax(x):           x̄ = y (ȳ - Σ y ȳ)
    y = log softmax(x):       x̄ = ȳ - exp(y) Σ ȳ

Of complex numbers they are holomorphic: what stands before ȳ is conjugated.
Where y is infinite, entries that are infinite too share ȳ equally.
Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

import numpy as np
from scipy import special as sp

from morula.core.extend import NoTangent, is_zero, rrule, stands_in, type_stable
from morula.rules.arrays.bodies import instead_of
from morula.rules.arrays.broadcasting import match, part, restore, shape_of
from morula.rules.arrays.construction import as_it_is, like_sequence
from morula.rules.arrays.freshness import with_few_entries
from morula.rules.arrays.types import Numeric
from morula.rules.bar_types import like
from morula.rules.scipy.special.families import takes_sequences


def shares(a, y, axis):
    """exp(a - y); where y is infinite, equal parts for the entries that are equal to it."""
    infinite = np.isinf(np.real(y))
    if not np.any(infinite):
        return np.exp(a - y)
    ties = np.where(infinite, a == y, False)
    counts = np.maximum(np.sum(ties, axis=axis, keepdims=True), 1)
    finite = np.exp(np.where(infinite, 0.0, a) - np.where(infinite, 0.0, y))
    return np.where(infinite, ties / counts, finite)


def logsumexp_cotangent(ȳ, y, a, axis, keepdims):
    """ā of y = log Σ exp a."""
    shape = np.shape(a)
    over = axis
    if axis is None:
        over = tuple(range(len(shape)))
    wide = restore(np.asarray(ȳ), shape, over, keepdims)
    top = restore(np.asarray(y), shape, over, keepdims)
    return match(wide * np.conjugate(shares(a, top, over)), shape_of(a))


like(2, logsumexp_cotangent)


@rrule(sp.logsumexp)
def _(a: Numeric, axis=None, b: Numeric | None = None, keepdims=False, return_sign=False):
    y = sp.logsumexp(a, axis, b, keepdims, return_sign)
    given = as_it_is(b) if isinstance(b, (list, tuple)) else None
    weights = b if given is None else np.asarray(given)

    def logsumexp_pullback(ȳ):
        if weights is None and not return_sign:
            ā = logsumexp_cotangent(ȳ, y, a, axis, keepdims)
            return ā, NoTangent(), NoTangent(), NoTangent(), NoTangent()
        level = y
        sign = 1.0
        rest = (NoTangent(), NoTangent())
        if return_sign:
            level, sign = y
            s̄ = part(ȳ, 1)
            ȳ = part(ȳ, 0)
            if is_zero(ȳ):
                ȳ = np.zeros_like(level)
            if not is_zero(s̄) and np.iscomplexobj(sign):  # a unit: it turns with the phase
                ȳ = ȳ + 1j * np.imag(np.conjugate(sign) * s̄)
        shape = np.broadcast_shapes(np.shape(a), () if weights is None else np.shape(weights))
        over = axis
        if axis is None:
            over = tuple(range(len(shape)))
        wide = restore(np.asarray(ȳ), shape, over, keepdims)
        top = restore(np.asarray(level), shape, over, keepdims)
        unit = restore(np.broadcast_to(sign, np.shape(level)), shape, over, keepdims)
        part_of = shares(np.broadcast_to(a, shape), top, over) * np.conjugate(unit)
        if weights is None:
            ā = wide * np.conjugate(part_of)
            return match(ā, shape_of(a)), NoTangent(), NoTangent(), *rest
        ā = np.where(np.equal(weights, 0), 0.0, wide * np.conjugate(part_of * weights))
        b̄ = wide * np.conjugate(part_of)
        b̄ = match(b̄, shape_of(weights))
        if given is not None:
            b̄ = like_sequence(b̄, given)
        return match(ā, shape_of(a)), NoTangent(), b̄, *rest

    return y, logsumexp_pullback


@rrule(sp.softmax)
def _(x: np.ndarray, axis=None):
    y = sp.softmax(x, axis)

    def softmax_pullback(ȳ):
        w = np.conjugate(y)
        product = w * ȳ
        return product - w * np.sum(product, axis=axis, keepdims=True), NoTangent()

    return y, softmax_pullback


@rrule(sp.log_softmax)
def _(x: np.ndarray, axis=None):
    y = sp.log_softmax(x, axis)

    def log_softmax_pullback(ȳ):
        return ȳ - np.conjugate(np.exp(y)) * np.sum(ȳ, axis=axis, keepdims=True), NoTangent()

    return y, log_softmax_pullback


takes_sequences(sp.softmax, sp.log_softmax)


@instead_of(sp.logsumexp)
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    """Of sequences, weights among them."""
    weights = None if b is None else np.asarray(b)
    return sp.logsumexp(np.asarray(a), axis, weights, keepdims, return_sign)


type_stable(sp.logsumexp, sp.softmax, sp.log_softmax)
stands_in(sp.logsumexp, sp.softmax, sp.log_softmax)(with_few_entries)
