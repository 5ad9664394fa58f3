"""What the programs of Morula call, in forms that Numba compiles.

The structural zero is None here, and what may be one an optional value, so that what is never zero
costs nothing. `MEANINGS` has the form of each function that rules leave in a program.
Tests: tests/interop/test_numba.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, overload
from numba.np.numpy_support import as_dtype

from morula.core import cotangents, primitives
from morula.rules import buffers, operators, steering
from morula.rules.arrays import broadcasting, indexing


@intrinsic
def present(context: Any, x: Any) -> Any:
    """What an optional value holds; an error if that is nothing."""
    held = x.type if isinstance(x, types.Optional) else x

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = context.cast(builder, args[0], x, held)
        return impl_ret_borrowed(context, builder, held, value)

    return held(x), generate


def may_be_zero(t: Any) -> bool:
    """May a value of this type be the structural zero?"""
    return isinstance(t, types.Optional)


def is_nothing(t: Any) -> bool:
    """Is a value of this type the structural zero?"""
    return isinstance(t, types.NoneType)


def plus(a: Any, b: Any) -> Any:
    """The sum of two cotangents, each of which may be the structural zero."""
    return b if a is None else a if b is None else a + b


@overload(plus, inline="always")
def _(a, b):
    if is_nothing(a):
        return lambda a, b: b
    if is_nothing(b):
        return lambda a, b: a
    if may_be_zero(a) and may_be_zero(b):

        def sum_of_both(a, b):
            if a is None:
                return b
            if b is None:
                return a
            return present(a) + present(b)

        return sum_of_both
    if may_be_zero(a):
        return lambda a, b: b if a is None else present(a) + b
    if may_be_zero(b):
        return lambda a, b: a if b is None else a + present(b)
    return lambda a, b: a + b


def gradient_of(x: Any, x̄: Any) -> Any:
    """The gradient by an argument, whose cotangent may be the structural zero."""
    return x * 0.0 if x̄ is None else x̄


@overload(gradient_of)
def _(x, x̄):
    if isinstance(x, types.Array):
        dtype = as_dtype(x.dtype)
        if dtype.kind not in "fc":
            dtype = np.dtype(np.float64)
        if is_nothing(x̄):
            return lambda x, x̄: np.zeros(x.shape, dtype)
        if may_be_zero(x̄):

            def from_optional(x, x̄):
                if x̄ is None:
                    return np.zeros(x.shape, dtype)
                return present(x̄).astype(dtype)

            return from_optional
        return lambda x, x̄: x̄.astype(dtype)
    if isinstance(x, types.Boolean | types.NoneType):
        return lambda x, x̄: None
    zero = 0j if isinstance(x, types.Complex) else 0.0
    if is_nothing(x̄):
        return lambda x, x̄: zero
    if may_be_zero(x̄):
        return lambda x, x̄: zero if x̄ is None else zero + present(x̄)
    return lambda x, x̄: zero + x̄


@njit
def sum_to(x̄: Any, c: Any) -> Any:
    """`c` added to a cotangent."""
    return plus(x̄, c)


@njit
def gradient(x: Any, x̄: Any) -> Any:
    """What the user gets for an argument."""
    return gradient_of(x, x̄)


@njit
def zeros_for(x: Any) -> Any:
    """A shadow of zeros."""
    return np.zeros(x.shape)


@njit
def unreached_like(x: Any) -> Any:
    """A shadow that nothing has reached yet."""
    return np.full(x.shape, -0.0)


@njit
def scattered(ȳ: Any, index: Any, shape: Any, dtype: Any) -> Any:
    """Zeros with a cotangent at an index."""
    x̄ = np.zeros(shape, dtype)
    x̄[index] = ȳ
    return x̄


@njit
def spread(ȳ: Any, shape: Any) -> Any:
    """A cotangent in all entries of an array."""
    return np.broadcast_to(np.asarray(ȳ), shape)


@njit
def add_to(x̂: Any, c: Any) -> None:
    """Add to a shadow."""
    if c is not None:
        x̂ += present(c)  # type: ignore[call-arg, unused-ignore]


def fitted(x̄: Any, shape: Any) -> Any:
    """A cotangent of this shape; a sum of it, if that is the shape of a number."""
    return x̄


@overload(fitted)
def _(x̄, shape):
    if not isinstance(x̄, types.Array):
        return (lambda x̄, shape: x̄) if not len(shape) else None
    if not len(shape):
        return lambda x̄, shape: x̄.sum()
    if len(shape) != x̄.ndim:
        return None

    def of_same_shape(x̄, shape):
        if x̄.shape != shape:
            raise ValueError("arrays that broadcast against each other do not compile under Numba")
        return x̄

    return of_same_shape


@njit
def unbroadcast(x̄: Any, shape: Any) -> Any:
    """A cotangent in the shape of its primal."""
    return fitted(x̄, shape)


@njit
def total(x̄: Any) -> Any:
    """The sum of all entries."""
    return fitted(x̄, ())


@njit
def exponent_slope(a: Any, y: Any) -> Any:
    """∂y/∂b for y = a ** b of real numbers."""
    if a == 0:
        return 0.0
    return y * math.log(a) if a > 0 else math.nan


# What stands for a function that rules leave in a program.
MEANINGS: dict[int, Callable[..., Any]] = {
    id(primitives.sum_if_any): sum_to,
    id(cotangents.accumulate): sum_to,
    id(cotangents.settled): primitives.alias,
    id(primitives.maybe_zero): primitives.alias,
    id(buffers.zeros_for): zeros_for,
    id(buffers.unreached_like): unreached_like,
    id(indexing.scatter): scattered,
    id(indexing.scattered): scattered,
    id(broadcasting.spread): spread,
    id(broadcasting.unbroadcast): unbroadcast,
    id(broadcasting.match): unbroadcast,
    id(broadcasting.total): total,
    id(buffers.add_to): add_to,
    id(operators.exponent_slope): exponent_slope,
    id(steering.ignore_derivatives): primitives.alias,
}
