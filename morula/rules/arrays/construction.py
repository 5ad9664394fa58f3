"""Rules of what makes arrays of numbers, and numbers of arrays: array, full, astype, float, ….

Conversions keep the values, so cotangents pass as they are; the core projects them to the types
that went in. Nested lists and tuples get nested lists and tuples of cotangents.
Tests: tests/rules/arrays/test_construction.py
"""

from __future__ import annotations

import builtins
import copy

import numpy as np

from morula.core.extend import NONE, AbstractZero, NoTangent, project_to, rrule, type_stable
from morula.rules.arrays.broadcasting import part, total, unbroadcast
from morula.rules.arrays.types import Anything, Numeric

# -- conversions of arrays and numbers -------------------------------------------------------------


def like_sequence(ȳ, items):
    """The cotangents of nested lists and tuples that made an array, in their structure."""
    if isinstance(items, list | tuple):
        parts = [like_sequence(ȳ[i], item) for i, item in enumerate(items)]
        return parts if isinstance(items, list) else tuple(parts)
    return project_to(items)(ȳ)


def back_to_argument(ȳ, a):
    """The cotangent of an array made of `a`, in the form of `a`."""
    if isinstance(a, list | tuple):
        return like_sequence(ȳ, a)
    return np.reshape(ȳ, np.shape(a))


@rrule(np.array)
def _(a: Numeric | list | tuple, dtype=None, *, copy=True, order="K", subok=False, ndmin=0):
    def array_pullback(ȳ):
        return back_to_argument(ȳ, a), NoTangent()

    return np.array(a, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin), array_pullback


def _as_array(primal):
    @rrule(primal)
    def _(a: Numeric | list | tuple, dtype=None, order=None, *, copy=None):
        def asarray_pullback(ȳ):
            return back_to_argument(ȳ, a), NoTangent(), NoTangent()

        return primal(a, dtype, order, copy=copy), asarray_pullback


_as_array(np.asarray)
_as_array(np.asanyarray)


def _contiguous(primal):
    @rrule(primal)
    def _(a: Numeric, dtype=None):
        old = np.shape(a)

        def contiguous_pullback(ȳ):
            return np.reshape(ȳ, old), NoTangent()

        return primal(a, dtype), contiguous_pullback

    @rrule(primal)
    def _(a: list | tuple, dtype=None):
        def contiguous_pullback(ȳ):
            return like_sequence(ȳ, a), NoTangent()

        return primal(a, dtype), contiguous_pullback


for _primal in (np.ascontiguousarray, np.asfortranarray, np.asarray_chkfinite):
    _contiguous(_primal)


@rrule(np.copy)
@rrule(copy.copy)
@rrule(np.ndarray.__copy__)
def _(a: np.ndarray):
    def copy_pullback(ȳ):
        return (ȳ,)

    return np.copy(a, order="K"), copy_pullback


@rrule(np.ndarray.copy)
def _(a: np.ndarray, order="C"):
    def copy_pullback(ȳ):
        return ȳ, NoTangent()

    return a.copy(order), copy_pullback


@rrule(copy.deepcopy)
def _(a: np.ndarray, memo=None):
    def deepcopy_pullback(ȳ):
        return ȳ, NoTangent()

    return copy.deepcopy(a), deepcopy_pullback


@rrule(np.ndarray.astype)
def _(x: np.ndarray, dtype: Anything, *, order="K", casting="unsafe", copy=True):
    def astype_pullback(ȳ):
        return ȳ, NoTangent()

    return x.astype(dtype, order=order, casting=casting, copy=copy), astype_pullback


@rrule(np.astype)
def _(x: np.ndarray, dtype: Anything, *, copy=True):
    def astype_pullback(ȳ):
        return ȳ, NoTangent()

    return np.astype(x, dtype, copy=copy), astype_pullback


def _scalar_type(t):
    @rrule(t)
    def _(x: Numeric):
        old = np.shape(x)

        def conversion_pullback(ȳ):
            return (np.reshape(ȳ, old) if old else ȳ,)

        return t(x), conversion_pullback

    @rrule(t)
    def _(x: list | tuple):
        def conversion_pullback(ȳ):
            return (like_sequence(ȳ, x),)

        return t(x), conversion_pullback


for _t in (
    np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128,
    np.clongdouble,
):  # fmt: skip
    _scalar_type(_t)


@rrule(builtins.float)
@rrule(np.ndarray.__float__)
def _(x: np.ndarray):
    old = x.shape

    def float_pullback(ȳ):
        return (np.full(old, ȳ),)

    return float(x), float_pullback


@rrule(builtins.complex)
@rrule(np.ndarray.__complex__)
def _(x: np.ndarray):
    old = x.shape

    def complex_pullback(ȳ):
        return (np.full(old, ȳ),)

    return complex(x), complex_pullback


@rrule(np.ndarray.tolist)
def _(x: np.ndarray):
    shape = x.shape

    def tolist_pullback(ȳ):
        return (from_sequence(ȳ, shape),)

    return x.tolist(), tolist_pullback


def from_sequence(parts, shape):
    """An array of this shape out of nested cotangents, of which some may be zeros."""
    if not shape or isinstance(parts, AbstractZero):
        return parts
    whole = []
    for i in range(shape[0]):
        one = from_sequence(part(parts, i), shape[1:])
        whole.append(one if is_number(one) else np.zeros(shape[1:]))
    return np.stack(whole) if whole else np.zeros(shape)


def is_number(x):
    """Is a cotangent a number or an array, and no structural zero?"""
    return isinstance(x, np.ndarray | float | complex | int | np.generic)


# -- arrays made of a few numbers ------------------------------------------------------------------


@rrule(np.full)
def _(shape: Anything, fill_value: Numeric, dtype=None):
    have = np.shape(fill_value)

    def full_pullback(ȳ):
        return NoTangent(), unbroadcast(ȳ, have), NoTangent()

    return np.full(shape, fill_value, dtype), full_pullback


@rrule(np.full_like)
def _(a: Anything, fill_value: Numeric, dtype=None):
    have = np.shape(fill_value)

    def full_like_pullback(ȳ):
        return NoTangent(), unbroadcast(ȳ, have), NoTangent()

    return np.full_like(a, fill_value, dtype), full_like_pullback


@rrule(np.arange)
def _(stop: Anything, *, dtype=None):
    def arange_pullback(ȳ):
        return (NoTangent(),)

    return np.arange(stop, dtype=dtype), arange_pullback


@rrule(np.arange)
def _(start: Anything, stop: Anything, step=1, dtype=None):
    """start + i step: the number of entries is a step function of stop."""
    y = np.arange(start, stop, step, dtype)
    n = len(y)

    def arange_pullback(ȳ):
        return total(ȳ), NoTangent(), np.dot(ȳ, np.arange(n)), NoTangent()

    return y, arange_pullback


@rrule(np.linspace)
def _(start: Numeric, stop: Numeric, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    shapes = np.shape(start), np.shape(stop)
    parts = num - 1 if endpoint else num
    y = np.linspace(start, stop, num, endpoint, retstep, dtype, axis)

    def linspace_pullback(ȳ):
        step_bar = 0.0
        if retstep:
            ȳ, step_bar = part(ȳ, 0), part(ȳ, 1) / max(parts, 1)
            ȳ = ȳ if is_number(ȳ) else np.zeros(y[0].shape)
        ȳ = np.moveaxis(ȳ, axis, 0)
        t = np.arange(num) / max(parts, 1)
        stop_bar = np.tensordot(t, ȳ, ((0,), (0,)))
        start_bar = np.sum(ȳ, axis=0) - stop_bar
        return (
            unbroadcast(start_bar - step_bar, shapes[0]),
            unbroadcast(stop_bar + step_bar, shapes[1]),
            *[NONE] * 5,
        )

    return y, linspace_pullback


@rrule(np.meshgrid)
def _(*xi: np.ndarray, indexing="xy"):
    n = len(xi)
    places = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    shapes = [np.shape(x) for x in xi]

    def meshgrid_pullback(ȳ):
        return tuple([_unmeshed(part(ȳ, i), places[i], shapes[i], n) for i in range(n)])

    return np.meshgrid(*xi, indexing=indexing), meshgrid_pullback


def _unmeshed(ȳ, place, shape, n):
    if not is_number(ȳ):
        return ȳ
    return np.reshape(np.sum(ȳ, axis=tuple(j for j in range(n) if j != place)), shape)


type_stable(
    np.copy, np.ndarray.copy, np.ndarray.astype, np.float64, np.float32, np.float16,
    np.longdouble, np.complex64, np.complex128, np.clongdouble, builtins.float, builtins.complex,
)  # fmt: skip
