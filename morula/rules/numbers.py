"""What the core has to be told about numbers, and about values that have no tangent space.

    int, float          a point of the real line; its cotangent is a Python float
    complex             z̄ = ∂l/∂x + i ∂l/∂y, a complex
    Fraction, Decimal, every numbers.Number (mpmath.mpf, …)     cotangents of their own type
    bool, str, bytes, None, classes, modules, slices, ranges    no tangent space

NumPy's scalars are numbers too, but their traits stand with those of the arrays: np.floating,
np.complexfloating and np.integer come before float, complex and numbers.Number.
Tests: tests/rules/test_numbers.py
"""

import numbers
import os
import sys
import types
from abc import ABC
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from morula.core.extend import (
    NONE,
    AbstractZero,
    CotangentError,
    brought_by,
    detail_of,
    materialise,
    multiply,
    no_tangent,
    projector,
    sample_of,
    scalars,
    space_problem,
    unit,
    unthunk,
    zero_of,
)


def is_added_float(dtype: Any) -> bool:
    """Is it a floating dtype that a library has added to NumPy's, such as `bfloat16`?"""
    return dtype.kind == "V" and np.can_cast(dtype, float) and not np.can_cast(dtype, int)


def is_inexact(dtype: Any) -> bool:
    """Are the items of an array of this dtype real or complex numbers, and no integers?"""
    return dtype.kind in "fc" or is_added_float(dtype)


class AddedFloat(ABC):  # noqa: B024
    """The scalars of such a dtype; NumPy's own are real numbers to Python, these are not."""

    @classmethod
    def __subclasshook__(cls, t: type) -> bool:
        is_scalar = issubclass(t, np.generic) and t.__module__.partition(".")[0] != "numpy"
        return (is_scalar and is_added_float(np.dtype(t))) or NotImplemented


if TYPE_CHECKING:  # what flows through rules is of any type; the types are there for dispatch
    Real = Any
    Scalar = Any
    Numeric = Any
    Native = Any
    Text = Any
    Items = Any
    Digits = Any
    Anything = Any
else:
    Real = int | float  # bool and numpy.float64 are subclasses
    Scalar = (
        numbers.Number | np.bool_ | AddedFloat
    )  # every number: of Python, of NumPy, of any package
    Numeric = Scalar | np.ndarray
    Native = int | float | complex
    Text = str | bytes
    Items = tuple | np.ndarray
    Digits = str | tuple | list
    Anything = object

CONSTANTS: tuple[type, ...] = (
    bool,
    str,
    bytes,
    bytearray,
    type,
    range,
    type(None),
    type(...),
    type(NotImplemented),
    types.ModuleType,
    types.CodeType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    *map(type, (sys.version_info, sys.flags, sys.float_info, sys.int_info, sys.hash_info)),
    os.stat_result,
    os.terminal_size,
    os.times_result,
)


def is_number(x: Any) -> bool:
    """Is `x` one number, of whichever type? Arrays are none, not even those of no dimension."""
    return isinstance(x, (numbers.Number, np.bool_, AddedFloat))


# -- projection: the space of a number is its own type ---------------------------------------------


def to_float(x̄: Any) -> Any:
    """A cotangent as a Python float; an abstract value of a tracing library is left as it is."""
    if type(x̄) is float:
        return x̄
    if not isinstance(x̄, numbers.Number):
        if not isinstance(x̄, np.ndarray):
            return no_container(x̄)
        x̄ = _only_entry(x̄)
    return float(x̄ if isinstance(x̄, (float, int, Decimal, numbers.Real)) else x̄.real)


def to_complex(x̄: Any) -> Any:
    """A cotangent as a Python complex."""
    if type(x̄) is complex:
        return x̄
    if not isinstance(x̄, numbers.Number):
        if not isinstance(x̄, np.ndarray):
            return no_container(x̄)
        x̄ = _only_entry(x̄)
    return complex(x̄)


def no_container(x̄: Any) -> Any:
    """An abstract value of a tracing library; Python's own values that are no numbers are none."""
    if isinstance(x̄, (str, bytes, tuple, list, dict, set, type(None))):
        raise CotangentError(f"a cotangent of a number is a {type(x̄).__name__}, expected a number")
    return x̄.item() if isinstance(x̄, np.generic) else x̄  # of a dtype added to NumPy's


def _only_entry(x̄: Any) -> Any:
    if x̄.shape != ():
        raise ValueError(f"a cotangent of a number has shape {x̄.shape}, expected a number")
    return x̄[()]


def to_decimal(x̄: Any) -> Any:
    """A cotangent as a Decimal."""
    if isinstance(x̄, Decimal):
        return x̄
    if isinstance(x̄, Fraction):
        return Decimal(x̄.numerator) / Decimal(x̄.denominator)
    return Decimal(x̄ if isinstance(x̄, int) else to_float(x̄))


def to_fraction(x̄: Any) -> Any:
    """A cotangent as a Fraction; where a float is infinite or NaN it stays a float."""
    if isinstance(x̄, (Fraction, int, Decimal)):
        return Fraction(x̄)
    x̄ = to_float(x̄)
    return Fraction(x̄) if np.isfinite(x̄) else x̄


def _converter(x: Any) -> Callable[[Any], Any]:
    """What brings a cotangent to the type of a number of another package."""
    kind, real = type(x), isinstance(x, numbers.Real)
    if isinstance(x, numbers.Integral):
        return to_float

    def converted(x̄: Any) -> Any:
        if real and not isinstance(x̄, (numbers.Real, Decimal)):
            x̄ = x̄.real
        if isinstance(x̄, kind) or not isinstance(x̄, numbers.Number):
            return x̄
        for convert in (lambda v: v, to_float if real else to_complex):
            try:
                return kind(convert(x̄))
            except TypeError:
                continue
        return 0 * x + x̄  # a constant of mpmath's, say, is made of no number

    return converted


for _type, _project in {
    int: to_float,
    float: to_float,
    complex: to_complex,
    Fraction: to_fraction,
    Decimal: to_decimal,
}.items():
    projector.register(_type, lambda x, project=_project: project)
projector.register(numbers.Number, _converter)
for _type in CONSTANTS:
    projector.register(_type, lambda x: lambda x̄: NONE)


@multiply.register
def _(x̄: Fraction, factor: Any) -> Any:
    return x̄ * to_fraction(factor)


@multiply.register
def _(x̄: Decimal, factor: Any) -> Any:
    return x̄ * to_decimal(factor)


# -- the cotangent "one", zeros, samples -----------------------------------------------------------


def _one(y: Any) -> Any:
    kind: Any = type(y)
    return kind(1) if isinstance(y, (numbers.Real, Decimal)) else None


unit.register(int, lambda y: 1.0)
unit.register(float, lambda y: 1.0)
unit.register(complex, lambda y: None)
unit.register(bool, lambda y: None)
unit.register(numbers.Number, _one)

scalars(float, int, float)
zero_of(int, 0.0)
zero_of(float, 0.0)
zero_of(complex, 0j)
zero_of(Fraction, Fraction(0))
zero_of(Decimal, Decimal(0))

brought_by[np.float64, float] = float

no_tangent(*CONSTANTS)

for _sample in (
    True,
    1,
    1.0,
    0.5 + 0.5j,
    Fraction(1),
    Decimal(1),
    "a",
    b"a",
    None,
    ...,
    slice(None),
    range(1),
):
    sample_of(type(_sample))(lambda detail, sample=_sample: sample)


@detail_of.register(type)
@detail_of.register(types.ModuleType)
def _(x: Any) -> Any:
    return x


@detail_of.register
def _(x: types.BuiltinFunctionType) -> Any:
    """The function itself; not a bound method, which would keep its object alive."""
    unbound = x.__self__ is None or isinstance(x.__self__, types.ModuleType)
    return x if unbound else None


for _type in (type, types.ModuleType):
    sample_of(_type)(lambda detail: detail)


@sample_of(types.BuiltinFunctionType)
def _(detail: Any) -> Any:
    if detail is None:
        raise KeyError(types.BuiltinFunctionType)
    return detail


# -- what the user gets ----------------------------------------------------------------------------


def _materialise_number(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    x̄ = unthunk(x̄)
    if isinstance(x̄, AbstractZero):
        x̄ = 0
    project = projector(x)
    return x̄ if project is None else project(x̄)


def _materialise_constant(x: Any, x̄: Any, of: Callable[[Any], Any]) -> None:
    return None


for _type in (int, float, complex, numbers.Number):
    materialise.register(_type, _materialise_number)
for _type in (*CONSTANTS, types.BuiltinFunctionType):
    materialise.register(_type, _materialise_constant)

del _type, _project, _sample


@space_problem.register(int)
@space_problem.register(float)
@space_problem.register(complex)
def _(x: Any, x̄: Any) -> tuple[str, str] | None:
    """A cotangent of a number is a number, or an array of one entry."""
    if is_number(x̄) or getattr(x̄, "size", None) == 1:
        return None
    shape = getattr(x̄, "shape", None)
    return "a number", f"a {type(x̄).__name__}" + ("" if shape is None else f" of shape {shape}")
