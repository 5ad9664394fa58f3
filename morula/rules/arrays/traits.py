"""What the core is told of arrays and NumPy's scalars: details, spaces, units, gradients.

The tangent space of a floating or complex array has its shape and dtype; that of an integer array
is real, of float64; arrays of truth values, strings and dates have none. Scalars likewise, where
the space of an integer scalar is `float`.
Tests: tests/rules/arrays/test_traits.py
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    AbstractZero,
    CotangentError,
    NotKnown,
    accumulate,
    better_made_anew,
    coarse_detail,
    constant_attribute,
    decide_details,
    detail_of,
    detail_tests,
    hides_values,
    holds_memory,
    is_abstract,
    is_finest,
    materialise,
    no_tangent,
    non_differentiable,
    project_to,
    projector,
    sample_of,
    space_problem,
    stands_apart,
    unit,
    unthunk,
    with_fixed_attributes,
    zero_of,
)
from morula.rules.arrays.broadcasting import total
from morula.rules.arrays.memory import give, is_followed, take
from morula.rules.numbers import is_added_float

FLOATING = (np.float16, np.float32, np.float64, np.longdouble)
COMPLEX = (np.complex64, np.complex128, np.clongdouble)
INTEGERS = (
    np.int8, np.int16, np.int32, np.int64, np.longlong,
    np.uint8, np.uint16, np.uint32, np.uint64, np.ulonglong,
)  # fmt: skip


def tangent_dtype(dtype: np.dtype) -> np.dtype | None:
    """The dtype of the tangents of an array of this dtype; None: it has no tangent space."""
    if dtype.kind in "fcO" or is_added_float(dtype):
        return dtype
    return np.dtype(float) if dtype.kind in "iu" else None


# -- what is known of a value before the program runs ----------------------------------------------


# The shape is None where nothing is known of it, and begins with None where the number of rows is not.


@detail_of.register(np.ndarray)
def _(x):
    return x.dtype.str, x.ndim, x.shape


def whole_shape(detail):
    """The shape of an array, if it is known to the last extent; else None."""
    shape = detail[2]
    return None if shape is None or None in shape else shape


MOST_ENTRIES = 30_000  # of a sample: what is known of larger ones has to be found without


@sample_of(np.ndarray)
def _(detail):
    """Ones; where the shape is known, a view of a single one."""
    dtype, ndim, _ = detail
    shape = whole_shape(detail)
    if dtype[1] not in "biufc":
        raise KeyError(dtype)  # structured dtypes, strings, objects: nothing can be said
    if shape is None:
        return np.ones((1,) * ndim, dtype)
    if dtype[1] == "b":
        raise KeyError(dtype)  # the values of a mask may decide the shape of what it selects
    if math.prod(shape) > MOST_ENTRIES:
        raise KeyError(shape)
    return np.broadcast_to(np.ones((), dtype), shape)


coarse_detail[np.ndarray] = lambda detail: (*detail[:2], None)


def is_fine_array(detail: Any) -> bool:
    """Is the shape known? An array that stands for an integer says more by its value."""
    return whole_shape(detail) is not None and (detail[1] > 0 or not holds_integers(detail))


def holds_integers(detail: Any) -> bool:
    return detail is not None and detail[0][1] in "iub"


is_finest[np.ndarray] = is_fine_array
hides_values[np.ndarray] = holds_integers


def _is_large(detail):
    """Is it worth a nanosecond or two to release an array early?"""
    dtype, shape = detail[0], whole_shape(detail)
    return shape is None or math.prod(shape) * np.dtype(dtype).itemsize >= LARGE


LARGE = 4096  # bytes
holds_memory[np.ndarray] = _is_large


def _is_one_number(detail):
    """NumPy takes twice as long for one number where an operand is the result as well."""
    shape = whole_shape(detail)
    return shape is not None and math.prod(shape) == 1


better_made_anew[np.ndarray] = _is_one_number


def _attribute(detail, name):
    """The attributes of an array that its dtype and shape decide."""
    dtype, ndim, _ = detail
    shape = whole_shape(detail)
    if name == "ndim":
        return ndim
    if name == "dtype":
        return np.dtype(dtype)
    if name == "shape":
        return shape
    if name == "__len__":
        return shape[0] if shape else None
    return math.prod(shape) if name == "size" and shape is not None else None


constant_attribute[np.ndarray] = _attribute
with_fixed_attributes.append(np.dtype)


def _tests(detail):
    """What to ask an array for to know that it has this detail."""
    dtype, ndim, _ = detail
    shape = whole_shape(detail)
    extent = ("ndim", ndim) if shape is None else ("shape", shape)
    return [("dtype", np.dtype(dtype), operator.is_), (*extent, operator.eq)]


detail_tests[np.ndarray] = _tests


def _sample_scalar(t: type) -> None:
    sample_of(t)(lambda detail: t(1))


for _t in (*FLOATING, *COMPLEX, *INTEGERS, np.bool_):
    _sample_scalar(_t)
for _t in (*FLOATING, *COMPLEX):
    zero_of(_t, _t(0))
for _t in INTEGERS:
    zero_of(_t, 0.0)

decide_details.update((*INTEGERS, np.bool_))
no_tangent(np.bool_, np.str_, np.bytes_, np.datetime64, np.timedelta64)
no_tangent(type(np.empty(0).flags))
no_tangent(np.ufunc, type(np.sum), type(NONE), type(np._NoValue), np.errstate, np.finfo, np.iinfo)
no_tangent(*{type(np.dtype(c)) for c in np.typecodes["All"]})


# -- projections -----------------------------------------------------------------------------------


@projector.register(np.ndarray)
def _(x):
    dtype = tangent_dtype(x.dtype)
    shape = x.shape

    def project_array(x̄):
        if type(x̄) is NotKnown:
            return x̄.refuse() if is_followed(x) else x̄  # it has no place beside memory
        if dtype is None:
            return NONE
        if type(x̄) is not np.ndarray or x̄.dtype != dtype or x̄.shape != shape:
            x̄ = _into_space(x̄, shape, dtype)
        if not is_followed(x):
            return x̄
        give(x, x̄)
        return ZERO

    project_array.takes_unknown = True
    return project_array


def _into_space(x̄: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """`x̄` as an array of this shape and dtype: real part, conversion, axes of length 1."""
    if is_abstract(x̄):
        return x̄
    if not isinstance(x̄, np.ndarray) or stands_apart(type(x̄)):
        x̄ = np.asarray(x̄)
    if x̄.dtype.kind == "O" and dtype.kind != "O":  # of what has met objects, which may be arrays
        x̄ = np.reshape(np.array([total(entry) for entry in np.ravel(x̄)]), x̄.shape)
    if dtype.kind != "c" and x̄.dtype.kind == "c":
        x̄ = x̄.real
    if x̄.dtype != dtype:
        x̄ = x̄.astype(dtype)
    if x̄.shape != shape:
        if x̄.shape == () and x̄ == 0:  # it fills the cotangents of objects to which nothing came
            return np.zeros(shape, dtype)
        if [n for n in x̄.shape if n != 1] != [n for n in shape if n != 1]:
            raise CotangentError(f"the cotangent of an array of shape {shape} has shape {x̄.shape}")
        x̄ = x̄.reshape(shape)
    return x̄


non_differentiable(is_abstract)


def _scalar_of(x̄: Any) -> Any:
    """A number out of a cotangent that may be an array of size 1."""
    return x̄.reshape(())[()] if isinstance(x̄, np.ndarray) else x̄


def real_of(x̄: Any) -> Any:
    """The real part of a number; some that are real have none."""
    return x̄ if isinstance(x̄, numbers.Real) else x̄.real


@projector.register(np.floating)
def _(x):
    t = x.dtype.type  # of a derived class that of NumPy

    def project_floating(x̄):
        x̄ = _scalar_of(x̄)
        if type(x̄) is t:
            return x̄
        return x̄.real if is_abstract(x̄) else t(real_of(x̄))

    return project_floating


@projector.register(np.complexfloating)
def _(x):
    t = x.dtype.type  # of a derived class that of NumPy

    def project_complex(x̄):
        x̄ = _scalar_of(x̄)
        return x̄ if type(x̄) is t or is_abstract(x̄) else t(x̄)

    return project_complex


@projector.register(np.integer)
def _(x):
    def project_integer(x̄):
        x̄ = real_of(_scalar_of(x̄))
        return x̄ if is_abstract(x̄) else float(x̄)

    return project_integer


@projector.register(np.generic)
def _(x):
    if not is_added_float(x.dtype):
        return lambda x̄: NONE  # truth values, strings, dates
    dtype = x.dtype
    return lambda x̄: np.asarray(_scalar_of(x̄).real).astype(dtype)[()]


# -- outputs and gradients -------------------------------------------------------------------------


@unit.register(np.floating)
def _(y):
    return 1.0 if isinstance(y, float) else y.dtype.type(1)  # products with 1.0 are left out


@unit.register(np.integer)
def _(y):
    return 1.0


@unit.register(np.generic)
def _(y):
    return type(y)(1) if is_added_float(y.dtype) else None


@unit.register(np.ndarray)
def _(y):
    if y.size != 1:
        return None
    if y.dtype.kind == "O":
        one = unit(y.item())
        return None if one is None else np.full(y.shape, one, object)
    if y.dtype.kind not in "fiu" and not is_added_float(y.dtype):
        return None
    return np.ones(y.shape, tangent_dtype(y.dtype))


materialise.register(np.dtype, lambda x, x̄, of: None)


@materialise.register(np.ndarray)
def _(x, x̄, of: Callable[[Any], Any]):
    dtype = tangent_dtype(x.dtype)
    if dtype is None:
        return None
    if is_followed(x):
        x̄ = accumulate(x̄, take(x))
    x̄ = unthunk(x̄)
    if isinstance(x̄, AbstractZero):
        return np.zeros(x.shape, dtype)
    if type(x̄) is not np.ndarray or x̄.dtype != dtype or x̄.shape != x.shape:
        x̄ = _into_space(x̄, x.shape, dtype)
    return np.array(x̄, subok=False) if isinstance(x̄, np.ndarray) else x̄


@materialise.register(np.floating)
@materialise.register(np.complexfloating)
def _(x, x̄, of: Callable[[Any], Any]):
    x̄ = unthunk(x̄)
    return x.dtype.type(0) if isinstance(x̄, AbstractZero) else project_to(x)(x̄)


@materialise.register(np.integer)
def _(x, x̄, of: Callable[[Any], Any]):
    x̄ = unthunk(x̄)
    return 0.0 if isinstance(x̄, AbstractZero) else project_to(x)(x̄)


@materialise.register(np.generic)
def _(x, x̄, of: Callable[[Any], Any]):
    if not is_added_float(x.dtype):
        return None
    x̄ = unthunk(x̄)
    return type(x)(0) if isinstance(x̄, AbstractZero) else project_to(x)(x̄)


@space_problem.register(np.ndarray)
def _(x, x̄):
    """A cotangent of an array has its shape, and is finite where the array is."""
    if np.shape(x̄) != x.shape:
        return f"an array of shape {x.shape}", f"of type {type(x̄).__name__} and shape {np.shape(x̄)}"
    return problem_inside(x, x̄) if x.dtype.kind == "O" else None


def problem_inside(x: np.ndarray, x̄: Any) -> tuple[str, str] | None:
    """The same for the arrays that an array of objects holds."""
    for i, (item, c) in enumerate(zip(x.flat, np.asarray(x̄).flat, strict=True)):
        if isinstance(item, np.ndarray) and not (c is None or is_abstract(c)):
            problem = space_problem(item, c)
            if problem is not None:
                return f"{problem[0]} for the array that is entry {i} of it", problem[1]
    return None
