"""Rules of np.matrix: those of the arrays that matrices are, with the shapes that matrices keep.

`*` and `**` are products of matrices, and a sum along an axis keeps the axis; the methods that say
so are Python code, over the functions below. No other rule of arrays serves a matrix; nor does one
serve a masked array, of which interop/masked.py says what is done.
Tests: tests/rules/arrays/test_matrix_class.py
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from morula.core.extend import (
    UnsupportedError,
    call,
    is_zero,
    keep_apart,
    non_differentiable,
    rrule,
)
from morula.rules.arrays import sequences
from morula.rules.arrays.broadcasting import part
from morula.rules.arrays.types import Anything, Real, Scalar

keep_apart(np.matrix, np.ma.MaskedArray)
sequences.takes_sequences(np.matrix)


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, np.matrix) else x


def same_numbers(y: Any, z: Any) -> bool:
    """Are the numbers of two results, whose shapes may differ, the same?"""
    if isinstance(y, tuple | list):
        return all(map(same_numbers, y, z))
    y, z = np.ravel(_plain(np.asarray(y))), np.ravel(np.asarray(z))
    return y.dtype.kind not in "fc" or (
        y.shape == z.shape and np.allclose(y, z, rtol=1e-3, equal_nan=True)
    )


non_differentiable(same_numbers)


def _by_arrays(primal: Any, args: Any, kwargs: Any) -> Any:
    y = primal(*args, **kwargs)
    of_arrays = operator.getitem if primal is np.matrix.__getitem__ else primal
    z, back = call(of_arrays, *[_plain(a) for a in args], **kwargs)

    if not same_numbers(y, z):
        raise UnsupportedError(
            f"{primal.__name__} of a matrix is not that of its entries, and has no derivative here: "
            "call it with np.asarray(…)"
        )

    def matrix_pullback(ȳ):
        return tuple(back(_of_arrays(ȳ, z))[1:])

    return y, matrix_pullback


def _of_arrays(ȳ: Any, z: Any) -> Any:
    """The cotangent of a result of matrices, or of several, as that of arrays."""
    if isinstance(z, np.ndarray):
        return np.reshape(_plain(ȳ), z.shape)
    if type(z) is tuple:
        bars = [part(ȳ, i) for i in range(len(z))]
        pairs = zip(bars, z, strict=True)
        return tuple([x̄ if is_zero(x̄) else _of_arrays(x̄, x) for x̄, x in pairs])
    return ȳ


def _first(primal):
    @rrule(primal)
    def _(x: np.matrix, *args: Anything, **kwargs):
        return _by_arrays(primal, (x, *args), kwargs)


def _pair(primal):
    @rrule(primal)
    def _(a: np.matrix, b: np.matrix, *args: Anything, **kwargs):
        return _by_arrays(primal, (a, b, *args), kwargs)

    @rrule(primal)
    def _(a: np.matrix, b: np.ndarray, *args: Anything, **kwargs):
        return _by_arrays(primal, (a, b, *args), kwargs)

    @rrule(primal)
    def _(a: np.ndarray, b: np.matrix, *args: Anything, **kwargs):
        return _by_arrays(primal, (a, b, *args), kwargs)

    @rrule(primal)
    def _(a: np.matrix, b: Scalar, *args: Anything, **kwargs):
        return _by_arrays(primal, (a, b, *args), kwargs)

    @rrule(primal)
    def _(a: np.matrix, b: Real, *args: Anything, **kwargs):
        return _by_arrays(primal, (a, b, *args), kwargs)

    @rrule(primal)
    def _(a: Scalar, b: np.matrix, *args: Anything, **kwargs):
        return _by_arrays(primal, (a, b, *args), kwargs)

    @rrule(primal)
    def _(a: Real, b: np.matrix, *args: Anything, **kwargs):
        return _by_arrays(primal, (a, b, *args), kwargs)


def by_method(method, a, b):
    """The rule of a product of matrices: that of the method, which is Python code."""
    y, back = call(method, a, b)
    return y, lambda ȳ: back(ȳ)[1:]


def reflected(a, b):
    """The rule of a product of which only the right factor is a matrix."""
    y, back = call(np.matrix.__rmul__, b, a)

    def mul_pullback(ȳ):
        _, b̄, ā = back(ȳ)
        return ā, b̄

    return y, mul_pullback


@rrule(operator.mul)
def _(a: np.matrix, b: np.matrix):
    return by_method(np.matrix.__mul__, a, b)


@rrule(operator.mul)
def _(a: np.matrix, b: np.ndarray):
    return by_method(np.matrix.__mul__, a, b)


@rrule(operator.mul)
def _(a: np.matrix, b: Scalar):
    return by_method(np.matrix.__mul__, a, b)


@rrule(operator.mul)
def _(a: np.ndarray, b: np.matrix):
    return reflected(a, b)


@rrule(operator.mul)
def _(a: np.matrix, b: Real):
    return by_method(np.matrix.__mul__, a, b)


@rrule(operator.mul)
def _(a: Scalar, b: np.matrix):
    return reflected(a, b)


@rrule(operator.mul)
def _(a: Real, b: np.matrix):
    return reflected(a, b)


@rrule(operator.pow)
def _(a: np.matrix, n: int):
    return by_method(np.matrix.__pow__, a, n)


@rrule(np.linalg.matrix_power)
def _(a: np.matrix, n: int):
    return _by_arrays(np.linalg.matrix_power, (a, n), {})


METHODS = """
    sum mean prod std var max min trace diagonal reshape ravel flatten transpose squeeze astype copy
    tolist item take conj conjugate clip cumsum cumprod repeat swapaxes view __array__ __getitem__
"""
for _primal in (*sequences.UNARY, *sequences.FIRST, *sequences.OF_A_MATRIX):
    if _primal is not np.linalg.matrix_power:
        _first(_primal)
for _primal in (*sequences.BINARY, *sequences.OF_A_MATRIX_AND_ANOTHER, *sequences.OPERATORS):
    if _primal not in (operator.mul, operator.pow):
        _pair(_primal)
for _primal in (operator.neg, operator.pos, operator.abs, abs, np.modf, np.frexp, np.gradient):
    _first(_primal)
for _primal in (np.divmod, divmod):
    _pair(_primal)
for _name in np.fft.__all__:
    if _name not in ("fftfreq", "rfftfreq", "fftshift", "ifftshift"):
        _first(getattr(np.fft, _name))
for _name in METHODS.split():
    _first(getattr(np.ndarray, _name))
for _primal in (np.array, np.asarray, np.asanyarray, operator.getitem, np.matrix.__getitem__):
    _first(_primal)
_pair(np.ndarray.dot)


@rrule(np.where)
def _(condition: Anything, a: np.matrix, b: np.ndarray | Scalar | Real):
    return _by_arrays(np.where, (condition, a, b), {})


@rrule(np.where)
def _(condition: Anything, a: np.ndarray | Scalar | Real, b: np.matrix):
    return _by_arrays(np.where, (condition, a, b), {})


@rrule(np.where)
def _(condition: Anything, a: np.matrix, b: np.matrix):
    return _by_arrays(np.where, (condition, a, b), {})
