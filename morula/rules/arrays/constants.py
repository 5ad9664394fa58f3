"""What is constant: masks, indices, orders, counts, shapes and fresh arrays of fixed numbers.

Tests: tests/rules/arrays/test_constants.py
"""

from __future__ import annotations

import struct
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    Call,
    Const,
    Known,
    NotSpecialised,
    answers,
    have_constants,
    is_known,
    non_differentiable,
    rewrites,
    sample_value,
    transfers,
    type_stable,
)
from morula.rules.arrays.outs import constant_but_for_out
from morula.rules.arrays.traits import tangent_dtype
from morula.rules.versions import present

CONSTANT = """
    all allclose any argmax argmin argpartition argsort argwhere around array2string array_equal
    array_equiv array_repr array_str bartlett bitwise_and bitwise_count bitwise_invert
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman broadcast
    broadcast_shapes can_cast ceil common_type count_nonzero diag_indices diag_indices_from digitize
    dtype einsum_path equal errstate eye finfo fix flatnonzero floor floor_divide
    gcd greater greater_equal hamming hanning identity iinfo indices invert
    isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan isnat isneginf
    isposinf isreal isrealobj isscalar issubdtype iterable ix_ lcm left_shift less less_equal
    lexsort logical_and logical_not logical_or logical_xor mask_indices may_share_memory
    min_scalar_type mintypecode nanargmax nanargmin ndim ndindex nested_iters nonzero
    not_equal ones ones_like packbits promote_types ravel_multi_index result_type right_shift rint
    round
    searchsorted shape shares_memory signbit size spacing tri tril_indices tril_indices_from
    triu_indices triu_indices_from trunc typename unpackbits unravel_index zeros zeros_like
"""
METHODS = """
    all any argmax argmin argpartition argsort nonzero searchsorted tobytes round dump dumps
    __len__ __bool__ __int__ __index__ __contains__ __str__ __repr__ __format__ __eq__ __ne__
    __lt__ __le__ __gt__ __ge__ __floordiv__ __rfloordiv__ __and__ __or__ __xor__ __invert__
    __lshift__ __rshift__
"""
STABLE = """
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not
    logical_xor isnan isinf isfinite floor ceil trunc rint floor_divide zeros_like ones_like
    empty_like signbit bitwise_and bitwise_or bitwise_xor invert all any argmax argmin argsort isclose
    diag_indices diag_indices_from tril_indices triu_indices tril_indices_from triu_indices_from
    count_nonzero identity
"""

_METHODS = [*present(np.ndarray, METHODS), *present(np.generic, METHODS)]
constant_but_for_out(*present(np, CONSTANT), *_METHODS)
non_differentiable(
    np.int8, np.int16, np.int32, np.int64, np.longlong, np.uint8, np.uint16, np.uint32, np.uint64,
    np.ulonglong, np.bool_, np.str_, tangent_dtype,
)  # fmt: skip
type_stable(*[getattr(np, name) for name in STABLE.split()])
type_stable(
    np.ndarray.argmax, np.ndarray.argmin, np.ndarray.argsort, np.ndarray.all, np.ndarray.any
)
have_constants(np)

PLAIN = (np.ndarray, float, int, complex, bool, np.float64)


def decided_by_types(*primals: Any) -> None:
    """Declare callables whose answers are the same for all arrays and numbers of the same types."""
    non_differentiable(*primals)
    answers(*primals)
    for primal in primals:
        transfers(primal)(partial(answer, primal))


def one_of_type(value: Any) -> Any:
    """A constant, or any value of the type: neither the shape nor what is in it counts."""
    if type(value) is Known and value.type is np.ndarray:
        dtype, ndim, _ = value.detail
        return np.zeros((1,) * ndim, dtype)
    return sample_value(value)


def answer(primal: Any, s: Any, call: Call, args: Any) -> Any:
    """What it gives for all arguments of these types."""
    if not all(type(a) is Const or (type(a) is Known and a.type in PLAIN) for a in args):
        return None
    samples = [one_of_type(a) for a in args]
    n = len(samples) - len(call.keywords)
    return Const(primal(*samples[:n], **dict(zip(call.keywords, samples[n:], strict=True))))


decided_by_types(np.result_type, np.common_type, np.iscomplexobj, np.isrealobj)


@rewrites
def _(s: Any) -> bool:
    """What comes out of these is followed on the general path, which refuses it."""
    if any(c.primitive in OUT_OF_SIGHT for c in s.ir.calls()):
        raise NotSpecialised("numbers that were bytes, or come out of an iterator over entries")
    return False


@rewrites
def _(s: Any) -> bool:
    """Only the general path sees what an unknown function writes to memory that nobody has filled."""
    made = {c.out for c in s.ir.calls() if c.primitive in (np.empty, np.empty_like)}
    for c in s.ir.calls() if made else ():
        if not made.isdisjoint(c.args) and is_unknown(c.primitive):
            raise NotSpecialised("memory that a function of which nothing is known may write to")
    return False


def is_unknown(fn: Any) -> bool:
    """Is a callable neither Python code nor known to any rule?"""
    return not (fn is None or isinstance(fn, FunctionType | type) or is_known(fn))


OUT_OF_SIGHT = (
    np.broadcast, np.nested_iters, np.frombuffer, np.ndarray, np.ndarray.__new__, np.fromstring,
    struct.unpack, struct.unpack_from, struct.iter_unpack,
)  # fmt: skip
