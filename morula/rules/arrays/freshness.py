"""What is known of results: which are new arrays, and what their shapes follow from.

A new array shares memory with nothing, so that it needs no copy. Elementwise functions, products
and reductions pass the extents of their operands on, so that small samples tell the shapes of large
results. A mask, or a number of repetitions per entry, decides the shape of what it selects; of those
results samples may not tell the shape.

Tests: tests/rules/arrays/test_freshness.py
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from typing import Any

import numpy as np

from morula.core.extend import (
    Const,
    Known,
    coarsened,
    fresh_results,
    in_place_forms,
    known,
    marks_results,
    of_marked,
    result_on_samples,
    results_in_operand,
    sized_by_values,
    stands_in,
    transfers,
    type_stable,
    written_results,
)
from morula.rules.arrays.broadcasting import restore, spread, total
from morula.rules.arrays.elementwise import marked_part, taken
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.reductions import marked_shared, on_diagonal
from morula.rules.arrays.sequences import BINARY, UNARY
from morula.rules.arrays.structural import selected
from morula.rules.arrays.traits import INTEGERS, MOST_ENTRIES, whole_shape
from morula.rules.list_types import array_of_rows, components

FRESH = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod,
    operator.matmul, operator.neg, operator.abs, abs, pow, np.where, np.zeros, np.ones, np.full,
    np.zeros_like, np.ones_like, np.full_like, np.ndarray.dot, np.linalg.solve,
    np.linalg.inv, np.linalg.cholesky, np.cumsum, np.ndarray.cumsum, np.concatenate, np.stack,
    np.hstack, np.vstack, np.copy, np.ndarray.copy, np.ndarray.flatten, np.sum, np.ndarray.sum,
    np.mean, np.ndarray.mean, np.max, np.ndarray.max, np.min, np.ndarray.min, np.var, np.ndarray.var,
    np.std, np.ndarray.std, np.prod, np.ndarray.prod, np.dot, np.outer, np.tensordot, np.kron,
    np.eye, np.arange, np.linspace, np.tile, np.repeat, np.roll, np.sort, np.triu, np.tril,
    np.empty, np.empty_like, np.identity, array_of_rows,
)  # fmt: skip

# np.real and np.imag give views.
fresh_results(*FRESH, *[f for f in (*UNARY, *BINARY) if f not in (np.real, np.imag)])


IN_PLACE = {
    operator.add: (operator.iadd, np.add),
    operator.sub: (operator.isub, np.subtract),
    operator.mul: (operator.imul, np.multiply),
    operator.truediv: (operator.itruediv, np.true_divide),
}


OUT_BY_NAME = (np.maximum, np.minimum)  # NumPy warns where these are given it by position


def _in_place() -> None:
    """Elementwise functions may write their results over their operands."""
    for fn, (left, ufunc) in IN_PLACE.items():
        forms = {
            0: lambda a, b, left=left: (left, a, b),
            1: lambda a, b, ufunc=ufunc: (ufunc, a, b, b),
        }
        in_place_forms(fn, 2, forms)
    in_place_forms(operator.neg, 1, {0: lambda a: (np.negative, a, a)})
    for fn in UNARY:
        if isinstance(fn, np.ufunc):
            in_place_forms(fn, 1, {0: lambda a, fn=fn: (fn, a, a)})
    for fn in BINARY:
        if isinstance(fn, np.ufunc) and fn.signature is None and fn not in OUT_BY_NAME:
            forms = {
                0: lambda a, b, fn=fn: (fn, a, b, a),
                1: lambda a, b, fn=fn: (fn, a, b, b),
            }
            in_place_forms(fn, 2, forms)
    in_place_forms(np.where, 3, {})


_in_place()
fresh_results(operator.isub, operator.imul, operator.itruediv)
written_results(operator.isub, operator.imul, operator.itruediv)
results_in_operand(*[in_place for in_place, _ in IN_PLACE.values()])


def _by_name(name: str) -> None:
    """Methods of arrays, of which marked ones have their own."""

    def method(x, *args, **keywords):
        return getattr(x, name)(*args, **keywords)

    of_marked(getattr(np.ndarray, name), method)


for _name in ("reshape", "transpose", "copy", "astype", "ravel", "flatten", "swapaxes"):
    _by_name(_name)
marks_results(selected, scatter, taken, marked_part, marked_shared, on_diagonal)

# Every extent of the result is that of an operand, or 1; numbers among the operands decide none.
ELEMENTWISE = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.neg, operator.pos, operator.abs, abs, operator.eq, operator.ne,
    operator.lt, operator.le, operator.gt, operator.ge, np.equal, np.not_equal, np.less,
    np.less_equal, np.greater, np.greater_equal, np.where,
    *[f for f in (*UNARY, *BINARY) if isinstance(f, np.ufunc)],
)  # fmt: skip
# Likewise, but that numbers say along which axis.
PASSING = (
    operator.matmul, np.dot, np.vdot, np.inner, np.ndarray.dot, np.ufunc.reduce, np.sum,
    np.ndarray.sum, np.mean, np.ndarray.mean, np.max, np.ndarray.max, np.min, np.ndarray.min,
    np.var, np.ndarray.var, np.std, np.ndarray.std, np.prod, np.ndarray.prod, np.cumsum,
    np.ndarray.cumsum, np.ndarray.conj, np.ndarray.conjugate, np.ndarray.copy, np.zeros_like,
    np.ones_like, total,
)  # fmt: skip
FEWEST = 8  # extents below stand for themselves
FEW = {n: n for n in range(FEWEST)}
STAND_INS = (11, 13, 17, 19, 23, 29, 31, 37)


@stands_in(*PASSING)
def with_few_entries(args: Any) -> Any:
    """Extents are replaced by small ones, alike by alike, and put back in the result."""
    extents = {n for a in args if is_shaped(a) for n in a.detail[2] if n >= FEWEST}
    small = dict(zip(sorted(extents), STAND_INS, strict=False))
    large = {n: extent for extent, n in small.items()} | FEW

    def shrunk(value: Any) -> Any:
        if not is_shaped(value):
            return value
        dtype, _, shape = value.detail
        return Const(np.ones([(small | FEW)[n] for n in shape], dtype))

    def back(value: Any) -> Any:
        if not is_shaped(value):
            return value
        dtype, ndim, shape = value.detail
        return replace(value, detail=(dtype, ndim, tuple([large[n] for n in shape])))

    return [shrunk(a) for a in args], back


@stands_in(*ELEMENTWISE)
def _(args: Any) -> Any:
    """Likewise, and one for a number that elsewhere may decide a shape."""
    args, back = with_few_entries(args)
    return [Const(a.type(1)) if getattr(a, "type", None) in COUNTS else a for a in args], back


COUNTS = (int, bool, np.bool_, *INTEGERS)


def is_shaped(value: Any) -> bool:
    """Is it known to be an array of numbers, or truth values, of known shape?"""
    plain = getattr(value, "type", None) is np.ndarray and value.detail[0][1] in "iufcb"
    return plain and whole_shape(value.detail) is not None


@stands_in(operator.getitem)
def _(args: Any) -> Any:
    """Whichever entry or row an integer selects, its shape is that of the first one."""
    items, key = args
    if getattr(items, "type", None) is np.ndarray and picks_row(items, key):
        dtype, ndim, shape = items.detail
        items, key = replace(items, detail=(dtype, ndim, (1, *shape[1:]))), of_first_row(key)
    return [view_of_one(items), at_first(key)], lambda value: value


def picks_row(items: Any, key: Any) -> bool:
    """Is it an integer that picks a row of an array, of which there are nobody knows how many?"""
    shape = items.detail[2]
    if not shape or shape[0] is not None:
        return False
    return getattr(known(components(key)[0]), "type", None) in (int, *INTEGERS)


def of_first_row(key: Any) -> Any:
    """The same index with zero for the row."""
    return Known(tuple, (Const(0), *components(key)[1:]))


def at_first(key: Any) -> Any:
    """The same index with zeros for integers that are not known."""
    if getattr(key, "type", None) is tuple and key.detail is not None:
        return replace(key, detail=tuple(map(at_first, key.detail)))
    return Const(key.type(0)) if getattr(key, "type", None) in (int, *INTEGERS) else key


@stands_in(
    getattr, spread, restore, np.broadcast_to, np.reshape, np.ndarray.reshape,
    np.transpose, np.ndarray.transpose, np.swapaxes, np.ndarray.swapaxes, np.moveaxis,
    np.expand_dims, np.squeeze,
)  # fmt: skip
def _(args: Any) -> Any:
    """What gives views costs nothing, however large the sample."""
    return [view_of_one(a) for a in args], lambda value: value


def view_of_one(value: Any) -> Any:
    """An array of known shape as a sample, all of whose entries are a single one."""
    if not is_shaped(value) or value.detail[0][1] == "b":
        return value
    dtype, _, shape = value.detail
    return Const(np.broadcast_to(np.ones((), dtype), shape))


@transfers(np.where)
def _(s: Any, call: Any, args: Any) -> Any:
    """With three arguments, the mask counts by its shape only."""
    if len(args) != 3 or call.keywords:
        return None
    mask = args[0]
    if getattr(mask, "type", None) is np.ndarray and mask.detail is not None:
        mask = replace(mask, detail=(np.dtype(int).str, *mask.detail[1:]))
    return result_on_samples(np.where, [mask, *args[1:]])


@transfers(np.repeat, np.ndarray.repeat)
def _(s: Any, call: Any, args: Any) -> Any:
    if len(args) < 2 or type(getattr(args[1], "value", None)) is not int:
        return None
    return result_on_samples(call.primitive, args, call.keywords)


# -- functions whose results are of a type that those of the arguments decide ----------------------

type_stable(
    np.clip, np.ndarray.clip, np.copysign, np.full_like, np.kron, np.linspace, np.median, np.nan_to_num,
    np.percentile, np.quantile, np.nanmedian, np.nanpercentile, np.nanquantile, np.sinc, np.i0,
    np.ndarray.take, np.take_along_axis, np.ufunc.accumulate, np.ufunc.outer, np.unwrap, np.rollaxis,
    np.ascontiguousarray, np.asfortranarray, np.asarray_chkfinite, np.around, np.round, np.isin,
    np.ndarray.round, np.ndim, np.shape, np.size, np.searchsorted, np.ndarray.searchsorted, np.tri,
    np.argpartition, np.arange, np.isreal, np.iscomplex, np.isneginf, np.isposinf, np.nanargmax,
    np.nanargmin, np.gcd, np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn, np.fft.rfft2,
    np.fft.rfftn, np.interp, np.trapezoid, np.vander, np.average, np.cov, np.corrcoef, np.polyval,
    np.gradient,
)  # fmt: skip


@transfers(np.arange)
def _(s: Any, call: Any, args: Any) -> Any:
    """How many there are depends on the numbers themselves."""
    value = result_on_samples(np.arange, args, call.keywords)
    return value if all(type(a) is Const for a in args) else coarsened(value)


SQUARE = (
    np.linalg.solve, np.linalg.inv, np.linalg.det, np.linalg.cholesky, np.linalg.pinv, np.linalg.qr,
    np.linalg.eigh, np.linalg.eigvalsh, np.linalg.svd, np.linalg.svdvals, np.linalg.slogdet,
    np.linalg.matrix_power, np.linalg.cond, np.linalg.multi_dot,
)  # fmt: skip
type_stable(*SQUARE, np.linalg.outer, np.linalg.vecdot)


@stands_in(*SQUARE)
def with_units(args: Any) -> Any:
    """Square matrices are replaced by those of the identity, which all of these functions take."""
    return [unit_of(a) for a in args], lambda value: value


def unit_of(value: Any) -> Any:
    """The identity, or a stack of it, for a square matrix of known shape."""
    if not is_shaped(value) or value.detail[0][1] not in "fc":
        return value
    dtype, ndim, shape = value.detail
    if ndim < 2 or shape[-1] != shape[-2] or not 0 < math.prod(shape) <= MOST_ENTRIES:
        return value
    return Const(np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape))


sized_by_values(
    np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.tri, np.vander, np.tile, np.repeat,
    np.ndarray.repeat, np.broadcast_to, np.linspace, np.logspace, np.geomspace, np.arange,
    np.moveaxis, np.rollaxis, np.swapaxes, np.ndarray.swapaxes, np.transpose, np.ndarray.transpose,
    np.reshape, np.ndarray.reshape, np.pad, np.zeros_like, np.ones_like, np.empty_like, np.full_like,
    *[getattr(np.fft, name) for name in np.fft.__all__],
)  # fmt: skip
