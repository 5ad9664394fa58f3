"""Types of results that small samples do not show: too few entries, or shapes that do not fit.

Tests: tests/rules/arrays/test_result_types.py
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from morula.core.extend import (
    Call,
    Const,
    Known,
    answers,
    known,
    only_reads,
    result_on_samples,
    transfers,
)
from morula.rules.arrays.traits import whole_shape
from morula.rules.list_types import is_array, items_in


def array_of(x: Any, ndim: int | None) -> Known | None:
    """An array of so many axes and of the dtype of x."""
    if not is_array(x) or not ndim:
        return None
    return Known(np.ndarray, (x.detail[0], ndim, None))


def array_with(x: Any, lengths: Any) -> Known | None:
    """An array of these lengths, which may be constants."""
    shape = tuple([getattr(n, "value", None) for n in lengths])
    if not is_array(x) or not shape or not all(type(n) is int and n >= 0 for n in shape):
        return array_of(x, len(shape))
    return Known(np.ndarray, (x.detail[0], len(shape), shape))


def ndim_of(x: Any) -> int | None:
    """How many axes an index has, if it is an array, a list or a tuple of integers."""
    if is_array(x):
        return int(x.detail[1]) if x.detail[0][1] in "iu" else None
    inside = items_in(x)
    return (
        1 if inside and all(k is not None and k.type is int for k in map(known, inside)) else None
    )


def option(call: Call, args: list[Any], name: str, position: int, default: Any = None) -> Any:
    """What is known of an argument, by its name or by its position."""
    n = len(args) - len(call.keywords)
    if name in call.keywords:
        return args[n + call.keywords.index(name)]
    return args[position] if position < n else Const(default)


def remaining(call: Call, args: list[Any], x: Any, axis_at: int) -> int | None:
    """The axes of x, one if it is flattened."""
    axis = option(call, args, "axis", axis_at)
    if type(axis) is not Const or not is_array(x):
        return None
    return 1 if axis.value is None else int(x.detail[1])


@transfers(np.cov, np.corrcoef)
def _(s: Any, call: Any, args: Any) -> Any:
    """Of one variable it is a number, of several a matrix: only whole shapes tell."""
    if any([is_array(k) and whole_shape(k.detail) is None for k in args]):
        return None
    return result_on_samples(call.primitive, args, call.keywords)


@transfers(np.reshape, np.ndarray.reshape)
def _(s: Any, call: Any, args: Any) -> Any:
    """By the number of lengths that it gets."""
    found = result_on_samples(call.primitive, args, call.keywords)
    n = len(args) - len(call.keywords)
    if found is not None or n < 2:
        return found
    if n > 2 and call.primitive is np.ndarray.reshape:
        return array_with(args[0], args[1:n])
    lengths = known(args[1])
    if lengths is None or lengths.type is not tuple:
        return array_with(args[0], args[1:2]) if lengths == Known(int) else None
    shape = getattr(args[1], "value", None)
    if type(shape) is tuple:
        return array_with(args[0], [Const(n) for n in shape])
    return None if lengths.detail is None else array_with(args[0], lengths.detail)


only_reads(np.take, np.ndarray.take)


@transfers(np.take, np.ndarray.take)
def _(s: Any, call: Any, args: Any) -> Any:
    """The axes of the index take the place of one."""
    found = result_on_samples(call.primitive, args, call.keywords)
    if found is not None or len(args) - len(call.keywords) < 2:
        return found
    axes, of_index = remaining(call, args, args[0], 2), ndim_of(args[1])
    return None if axes is None or of_index is None else array_of(args[0], axes - 1 + of_index)


@transfers(np.take_along_axis)
def _(s: Any, call: Any, args: Any) -> Any:
    axes = remaining(call, args, args[0], 2) if args else None
    return None if axes is None or ndim_of(args[1]) is None else array_of(args[0], axes)


@transfers(np.insert)
def _(s: Any, call: Any, args: Any) -> Any:
    return array_of(args[0], remaining(call, args, args[0], 3)) if args else None


@transfers(np.delete)
def _(s: Any, call: Any, args: Any) -> Any:
    return array_of(args[0], remaining(call, args, args[0], 2)) if args else None


@transfers(np.ndim)
def _(s: Any, call: Any, args: Any) -> Any:
    """The answer, of arrays and numbers."""
    x: Any = args[0] if args else None
    if is_array(x):
        return Const(int(x.detail[1]))
    kind = type(x.value) if type(x) is Const else getattr(x, "type", None)
    return Const(0) if kind in (float, int, complex, np.float64, np.float32) else Known(int)


@transfers(np.size)
def _(s: Any, call: Any, args: Any) -> Any:
    """Likewise, of arrays of known shape."""
    shape = whole_shape(args[0].detail) if len(args) == 1 and is_array(args[0]) else None
    return Known(int) if shape is None else Const(math.prod(shape))


answers(np.ndim, np.size)


@transfers(np.bincount)
def _(s: Any, call: Any, args: Any) -> Any:
    """Of weights, floats."""
    weights = option(call, args, "weights", 1)
    real = is_array(weights) and weights.detail[0][1] in "fiu"
    return Known(np.ndarray, (np.dtype(float).str, 1, None)) if real else None


NUMBERS = {"<f2": float, "<f4": float, "<f8": float, "<c8": complex, "<c16": complex}


@transfers(np.ndarray.item)
def _(s: Any, call: Any, args: Any) -> Any:
    number = NUMBERS.get(args[0].detail[0]) if is_array(args[0]) else None
    return None if number is None else Known(number)


@transfers(np.average)
def _(s: Any, call: Any, args: Any) -> Any:
    """Of floats along one axis, or of all of them."""
    found = result_on_samples(np.average, args, call.keywords)
    if found is not None or not is_array(args[0]) or args[0].detail[0] != "<f8":
        return found
    axis, returned = option(call, args, "axis", 1), option(call, args, "returned", 3, False)
    if type(axis) is not Const or getattr(returned, "value", None) is not False:
        return None
    if axis.value is None or args[0].detail[1] == 1:
        return Known(np.float64)
    return array_of(args[0], args[0].detail[1] - 1) if type(axis.value) is int else None
