"""Rules of what makes arrays of numbers, and numbers of arrays: array, full, astype, float, ….

Conversions keep the values, so cotangents pass as they are; the core projects them to the types
that went in. Nested lists and tuples get nested lists and tuples of cotangents.
Tests: tests/rules/arrays/test_construction.py
"""

from __future__ import annotations

import builtins
import copy
from collections import deque

import numpy as np

from morula.core.extend import (
    NONE,
    AbstractZero,
    Const,
    NoTangent,
    NotKnown,
    UnsupportedError,
    ZeroTangent,
    folds,
    non_differentiable,
    only_reads,
    project_to,
    rrule,
    transfers,
    type_stable,
)
from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.arrays.broadcasting import part, shape_of, total, unbroadcast
from morula.rules.arrays.constants import decided_by_types
from morula.rules.arrays.indexing import entry
from morula.rules.arrays.structural import Selected, mark
from morula.rules.arrays.traits import COMPLEX, FLOATING
from morula.rules.arrays.types import Anything, Numeric, Scalar, Sequence
from morula.rules.list_types import array_of_rows
from morula.rules.numbers import is_inexact

# -- memory that nobody has written to -------------------------------------------------------------


def uninitialised(y):
    """The array, filled with NaN, so that a compiled function is always seen to write to it.

    The memory is often that of an earlier run, with the very numbers that are written now.
    """
    if isinstance(y, np.ndarray) and y.dtype.kind in "fc":
        y.fill(np.nan)
    return y


def _uninitialised(primal):
    @rrule(primal)
    def _(*args: Anything, **kwargs):
        def empty_pullback(ȳ):
            return (NoTangent(),) * (len(args) + len(kwargs))

        return uninitialised(primal(*args, **kwargs)), empty_pullback


_uninitialised(np.empty)
_uninitialised(np.empty_like)
non_differentiable(np.empty, np.empty_like, uninitialised)


# -- conversions of arrays and numbers -------------------------------------------------------------


def like_sequence(ȳ, items):
    """The cotangents of nested lists and tuples that made an array, in their structure."""
    if isinstance(items, list | deque):
        return list(parts_like(ȳ, items))
    if isinstance(items, tuple):
        return parts_like(ȳ, items)
    return like_one(ȳ, items)


def like_one(ȳ, x):
    """The cotangent of a number or an array, in its space."""
    if type(ȳ) is Selected and not ȳ.ndim:
        ȳ = entry(ȳ, ())
    return project_to(x)(ȳ)


def as_it_is(x):
    """The same number, array, or sequence, whose lists keep the items that they have now."""
    if isinstance(x, list | deque):
        return [as_it_is(item) for item in x] if has_sequences(x) else list(x)
    if type(x) is tuple and has_sequences(x):
        return tuple([as_it_is(item) for item in x])
    return x


def has_sequences(items):
    """Is one of these a list, a tuple or a deque?"""
    return any([issubclass(t, Sequence) for t in set(map(type, items))])


non_differentiable(has_sequences)
only_reads(as_it_is)


@transfers(as_it_is)
def _(s, call, args):
    """What is not changed is of the same type, to the last item."""
    return args[0] if keeps_items(args[0]) else None


@folds(as_it_is)
def _(f, call):
    """A tuple without lists is what it is."""
    return call.args[0] if keeps_items(f.known(call.args[0])) else None


def keeps_items(k):
    """Is it known for no list, nor something that holds one?"""
    if type(k) is Const:
        return (
            all(map(keeps_items, map(Const, k.value)))
            if type(k.value) is tuple
            else (not isinstance(k.value, Sequence))
        )
    kind = getattr(k, "type", None)
    if kind is tuple and k.detail is not None:
        return all(map(keeps_items, k.detail))
    return kind is not None and not issubclass(kind, Sequence)


def parts_like(ȳ, items):
    """The cotangents of the items."""
    if type(ȳ) is NotKnown:
        return tuple([like_sequence(ȳ, item) for item in items])
    if are_numbers(ȳ, items):
        return tuple(ȳ.tolist())
    return tuple([like_sequence(entry(ȳ, i), item) for i, item in enumerate(items)])


def are_numbers(ȳ, items):
    """Are these real numbers, and their cotangents floats in an array?"""
    plain = type(ȳ) is np.ndarray and ȳ.dtype == float and ȳ.ndim == 1
    return plain and {float, int, np.float64}.issuperset(map(type, items))


non_differentiable(are_numbers)


def back_to_argument(ȳ, a):
    """The cotangent of an array made of `a`, in the form of `a`."""
    if isinstance(a, Sequence):
        return like_sequence(ȳ, a)
    return np.reshape(ȳ, np.shape(a))


def rounds(dtype, x):
    """Does a conversion to this dtype make whole numbers of x, so that it has derivative zero?"""
    return dtype.kind in "iub" and is_inexact(np.asarray(x).dtype)


decided_by_types(rounds)


@rrule(np.array)
def _(a: Numeric | Sequence, dtype=None, *, copy=True, order="K", subok=False, ndmin=0):
    y = np.array(a, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    rounded = dtype is not None and rounds(y.dtype, a)
    given = as_it_is(a)

    def array_pullback(ȳ):
        ȳ = np.reshape(ȳ, np.shape(given)) if ndmin else ȳ
        return ZeroTangent() if rounded else back_to_argument(ȳ, given), NoTangent()

    return y, array_pullback


@rrule(array_of_rows)
def _(rows: list):
    given = as_it_is(rows)

    def array_of_rows_pullback(ȳ):
        return (like_sequence(ȳ, given),)

    return np.array(rows), array_of_rows_pullback


def _as_array(primal):
    @rrule(primal)
    def _(a: Numeric | Sequence, dtype=None, order=None, *, copy=None, device=None):
        if copy is None and device is None:
            y = primal(a, dtype, order)
        else:  # of np.asanyarray since NumPy 2.1
            y = primal(a, dtype, order, copy=copy, device=device)
        rounded = dtype is not None and rounds(y.dtype, a)
        given = as_it_is(a)

        def asarray_pullback(ȳ):
            ā = ZeroTangent() if rounded else back_to_argument(ȳ, given)
            return ā, NoTangent(), NoTangent()

        return y, asarray_pullback


_as_array(np.asarray)
_as_array(np.asanyarray)


def _contiguous(primal):
    @rrule(primal)
    def _(a: Numeric, dtype=None):
        old = np.shape(a)
        y = primal(a, dtype)
        rounded = dtype is not None and rounds(y.dtype, a)

        def contiguous_pullback(ȳ):
            return ZeroTangent() if rounded else np.reshape(ȳ, old), NoTangent()

        return y, contiguous_pullback

    @rrule(primal)
    def _(a: Sequence, dtype=None):
        y = primal(a, dtype)
        rounded = dtype is not None and rounds(y.dtype, a)
        given = as_it_is(a)

        def contiguous_pullback(ȳ):
            return ZeroTangent() if rounded else like_sequence(ȳ, given), NoTangent()

        return y, contiguous_pullback


for _primal in (np.ascontiguousarray, np.asfortranarray, np.asarray_chkfinite):
    _contiguous(_primal)


@rrule(np.ndarray.__array__)
def _(a: np.ndarray, dtype=None, *, copy=None):
    y = a.__array__(dtype, copy=copy)
    rounded = dtype is not None and rounds(y.dtype, a)

    def array_pullback(ȳ):
        return ZeroTangent() if rounded else ȳ, NoTangent()

    return y, array_pullback


@rrule(np.ndarray.view)
def _(a: np.ndarray, dtype=None, type=None):
    """The same entries; a complex number as two real ones, or two real numbers as a complex one."""
    given = [x for x in (dtype, type) if x is not None]
    y = a.view(*given)
    if y.dtype != a.dtype and (y.dtype.kind not in "fc" or a.dtype.kind not in "fc"):
        raise UnsupportedError(f"a view of {a.dtype} as {y.dtype} has no reverse rule")
    if y.dtype != a.dtype and np.empty(1, a.dtype).real.dtype != np.empty(1, y.dtype).real.dtype:
        raise UnsupportedError(f"a view of {a.dtype} as {y.dtype} has no reverse rule")

    def view_pullback(ȳ):
        if y.dtype != a.dtype:
            ȳ = pairs_joined(ȳ) if a.dtype.kind == "c" else pairs_split(ȳ)
        return ȳ, NoTangent(), NoTangent()

    return y, view_pullback


def pairs_joined(x):
    """Complex numbers out of pairs of real ones along the last axis."""
    return x[..., 0::2] + 1j * x[..., 1::2]


def pairs_split(z):
    """Pairs of real numbers out of complex ones along the last axis."""
    both = np.stack((z.real, z.imag), -1)
    return np.reshape(both, (*both.shape[:-2], -1))


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
@rrule(np.ndarray.__deepcopy__)
def _(a: np.ndarray, memo=None):
    def deepcopy_pullback(ȳ):
        return ȳ, NoTangent()

    return copy.deepcopy(a), deepcopy_pullback


@rrule(np.ndarray.astype)
def _(x: np.ndarray, dtype: Anything, *, order="K", casting="unsafe", subok=True, copy=True):
    y = x.astype(dtype, order=order, casting=casting, subok=subok, copy=copy)
    rounded = rounds(y.dtype, x)

    def astype_pullback(ȳ):
        return ZeroTangent() if rounded else ȳ, NoTangent()

    return y, astype_pullback


@rrule(np.astype)
def _(x: np.ndarray, dtype: Anything, *, copy=True):
    y = np.astype(x, dtype, copy=copy)
    rounded = rounds(y.dtype, x)

    def astype_pullback(ȳ):
        return ZeroTangent() if rounded else ȳ, NoTangent()

    return y, astype_pullback


def _scalar_type(t):
    @rrule(t)
    def _(x: Numeric):
        old = np.shape(x)

        def conversion_pullback(ȳ):
            return (np.reshape(ȳ, old) if old else ȳ,)

        return t(x), conversion_pullback

    @rrule(t)
    def _(x: Sequence):
        given = as_it_is(x)

        def conversion_pullback(ȳ):
            return (like_sequence(ȳ, given),)

        return t(x), conversion_pullback


for _t in (
    np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128,
    np.clongdouble,
):  # fmt: skip
    _scalar_type(_t)


def _to_python(method, kind):
    @rrule(method)
    def _(x: np.generic):
        def to_python_pullback(ȳ):
            return (ȳ if x.dtype.kind == "c" else ȳ.real,)

        return kind(x), to_python_pullback


for _t in (*FLOATING, *COMPLEX):
    if "__float__" in vars(_t):
        _to_python(vars(_t)["__float__"], builtins.float)
    if "__complex__" in vars(_t):
        _to_python(vars(_t)["__complex__"], builtins.complex)
for _name, _kind in (("__float__", builtins.float), ("__complex__", builtins.complex)):
    if _name in vars(np.generic):
        _to_python(vars(np.generic)[_name], _kind)


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


def entries(ȳ):
    """The entries of a cotangent of one axis, or the rows of one of more, in a list."""
    if type(ȳ) is Selected:
        return [entry(ȳ, i) for i in range(len(ȳ))]
    return ȳ.tolist() if ȳ.ndim == 1 else list(ȳ)


@rrule(entries)
def _(ȳ: np.ndarray):
    shape = ȳ.shape

    def entries_pullback(parts):
        return (from_sequence(parts, shape),)

    return entries(ȳ), entries_pullback


def from_sequence(parts, shape):
    """An array of this shape out of nested cotangents, of which some may be zeros."""
    if not shape or isinstance(parts, AbstractZero):
        return parts
    found = [from_sequence(part(parts, i), shape[1:]) for i in range(shape[0])]
    if not found:
        return np.zeros(shape)
    for one in found:
        if type(one) is NotKnown:
            return one
        if not is_number(one) and not isinstance(one, AbstractZero):
            raise UnsupportedError(
                "the gradient runs through x.tolist() of records, which are copies of what a "
                "structured array holds: read its fields as arrays"
            )
    whole = np.stack([one if is_number(one) else np.zeros(shape[1:]) for one in found])
    reached = np.stack([where_reached(one, shape[1:]) for one in found])
    return whole if reached.all() else mark(whole, reached)


def where_reached(x̄, shape):
    """Where a cotangent of this shape is not structurally zero."""
    if type(x̄) is Selected and x̄._where is not None:
        return x̄._where
    return np.full(shape, is_number(x̄))


non_differentiable(where_reached)


def is_number(x):
    """Is a cotangent a number or an array, and no structural zero?"""
    return isinstance(x, np.ndarray | float | complex | int | np.generic)


# -- arrays made of a few numbers ------------------------------------------------------------------


@rrule(np.full)
def _(shape: Anything, fill_value: Numeric, dtype=None, order="C"):
    have = np.shape(fill_value)
    y = np.full(shape, fill_value, dtype, order)
    rounded = dtype is not None and rounds(y.dtype, fill_value)

    def full_pullback(ȳ):
        v̄ = ZeroTangent() if rounded else unbroadcast(ȳ, have)
        return NoTangent(), v̄, NoTangent(), NoTangent()

    return y, full_pullback


@rrule(np.full)
def _(shape: Anything, fill_value: Sequence, dtype=None, order="C"):
    y = np.full(shape, fill_value, dtype, order)
    rounded = rounds(y.dtype, fill_value)
    given = as_it_is(fill_value)

    def full_pullback(ȳ):
        if rounded:
            return (ZeroTangent(),) * 4
        v̄ = like_sequence(unbroadcast(ȳ, np.shape(given)), given)
        return NoTangent(), v̄, NoTangent(), NoTangent()

    return y, full_pullback


@rrule(np.full_like)
def _(a: Anything, fill_value: Numeric, dtype=None, order="K", subok=True, shape=None):
    have = np.shape(fill_value)
    y = np.full_like(a, fill_value, dtype, order, subok, shape)
    rounded = rounds(y.dtype, fill_value)

    def full_like_pullback(ȳ):
        v̄ = ZeroTangent() if rounded else unbroadcast(ȳ, have)
        return NoTangent(), v̄, NoTangent(), NoTangent(), NoTangent(), NoTangent()

    return y, full_like_pullback


@rrule(np.arange)
def _(start: Anything, *, stop=None, step=1, dtype=None, device=None):
    y = np.arange(start, stop=stop, step=step, dtype=dtype, device=device)

    def arange_pullback(ȳ):
        if rounds(y.dtype, [start, step]):
            return (ZeroTangent(),) * 3
        start_bar = ZeroTangent() if stop is None else total(ȳ)  # without stop it is the end
        return start_bar, ZeroTangent(), np.dot(ȳ, np.arange(len(y)))

    return y, arange_pullback


@rrule(np.arange)
def _(*, start=0, stop=None, step=1, dtype=None, device=None):
    y = np.arange(start=start, stop=stop, step=step, dtype=dtype, device=device)

    def arange_pullback(ȳ):
        if rounds(y.dtype, [start, step]):
            return (ZeroTangent(),) * 3
        return total(ȳ), ZeroTangent(), np.dot(ȳ, np.arange(len(y)))

    return y, arange_pullback


@rrule(np.arange)
def _(start: Anything, stop: Anything, step=1, dtype=None, *, device=None):
    """start + i step: the number of entries is a step function of stop."""
    y = np.arange(start, stop, step, dtype, device=device)
    n = len(y)
    rounded = rounds(y.dtype, [start, step])

    def arange_pullback(ȳ):
        if rounded:
            return (ZeroTangent(),) * 4
        start_bar = ZeroTangent() if stop is None else total(ȳ)
        return start_bar, ZeroTangent(), np.dot(ȳ, np.arange(n)), NoTangent()

    return y, arange_pullback


@rrule(np.linspace)
def _(start: Numeric, stop: Numeric, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    start_shape = shape_of(start)
    stop_shape = shape_of(stop)
    parts = num - 1 if endpoint else num
    y = np.linspace(start, stop, num, endpoint, retstep, dtype, axis)
    rounded = dtype is not None and rounds(np.dtype(dtype), start + stop)

    def linspace_pullback(ȳ):
        if rounded:
            return (ZeroTangent(),) * 7
        step_bar = 0.0
        if retstep:
            ȳ, step_bar = part(ȳ, 0), part(ȳ, 1) / max(parts, 1)
            ȳ = np.zeros(y[0].shape) if isinstance(ȳ, AbstractZero) else ȳ
        ȳ = np.moveaxis(ȳ, axis, 0)
        t = np.arange(num) / max(parts, 1)
        stop_bar = np.tensordot(t, ȳ, ((0,), (0,)))
        start_bar = np.sum(ȳ, axis=0) - stop_bar
        return (
            unbroadcast(start_bar - step_bar, start_shape),
            unbroadcast(stop_bar + step_bar, stop_shape),
            NONE, NONE, NONE, NONE, NONE,
        )  # fmt: skip

    return y, linspace_pullback


@derivative_of(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """Ends given as lists."""
    return np.linspace(np.asarray(start), np.asarray(stop), num, endpoint, retstep, dtype, axis)


@rrule(np.meshgrid)
def _(*xi: np.ndarray | Scalar, copy=True, sparse=False, indexing="xy"):
    n = len(xi)
    places = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    shapes = [np.shape(x) for x in xi]

    def meshgrid_pullback(ȳ):
        return tuple([_unmeshed(part(ȳ, i), places[i], shapes[i], n) for i in range(n)])

    return np.meshgrid(*xi, copy=copy, sparse=sparse, indexing=indexing), meshgrid_pullback


def _unmeshed(ȳ, place, shape, n):
    if not is_number(ȳ):
        return ȳ
    return np.reshape(np.sum(ȳ, axis=tuple(j for j in range(n) if j != place)), shape)


@instead_of(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Coordinates given as lists."""
    return np.meshgrid(*map(np.asarray, xi), copy=copy, sparse=sparse, indexing=indexing)


@derivative_of(np.geomspace)
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Powers of the ratio of the ends; on the arc between them, if they are complex."""
    start, stop = np.asarray(start), np.asarray(stop)
    parts = num - 1 if endpoint else num
    t = np.arange(num) / max(parts, 1)
    ratio = (stop + 0 * start) / start  # of the broadcast ends
    wide = np.reshape(t, (-1, *[1] * ratio.ndim))
    y = np.moveaxis(start * ratio**wide, 0, axis)
    return y if dtype is None else y.astype(dtype)


@derivative_of(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """The base to evenly spaced powers."""
    base = np.asarray(base)
    ndmax = max(np.ndim(start), np.ndim(stop), base.ndim)
    start, stop = wide_ends(start, ndmax), wide_ends(stop, ndmax)
    powers = np.linspace(start, stop, num, endpoint, axis=axis)
    if base.ndim:
        base = np.expand_dims(wide_ends(base, ndmax), axis)
    y = base**powers
    return y if dtype is None else y.astype(dtype)


def wide_ends(x, ndim):
    """An array with axes of length 1 before its own."""
    x = np.asarray(x)
    return np.reshape(x, (1,) * (ndim - x.ndim) + x.shape)


type_stable(
    np.array, np.asarray, np.asanyarray, np.copy, np.ndarray.copy, np.ndarray.astype, np.float64,
    np.float32, np.float16, np.longdouble, np.complex64, np.complex128, np.clongdouble,
    builtins.float, builtins.complex,
)  # fmt: skip
