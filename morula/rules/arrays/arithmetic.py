"""Rules of + - * / ** % and their relatives on arrays: the operators and the ufuncs behind them.

    y = a + b:   ā = ȳ            b̄ = ȳ
    y = a * b:   ā = ȳ b*         b̄ = ȳ a*             (z* is the complex conjugate)
    y = a / b:   ā = ȳ / b*       b̄ = -ȳ y* / b*
    y = a ** b:  ā = ȳ (b a^(b-1))*      b̄ = ȳ (y log a)*, and 0 where a = 0

Shapes: operands broadcast; `match` sums a cotangent over the axes that were broadcast. With a
scalar operand the array has the shape of the result, and the scalar gets the `total`.
`x += a` of a number x and an array `a` is an addition. In-place changes of arrays: inplace.py.
Tests: tests/rules/arrays/test_arithmetic.py
"""

from __future__ import annotations

import builtins
import cmath
import math
import operator

import numpy as np

from morula.core.extend import ZeroTangent, non_differentiable, rrule, type_stable
from morula.rules.arrays.broadcasting import match, match_part, part, shape_of, total
from morula.rules.arrays.structural import masked
from morula.rules.arrays.types import Anything, Numeric, Real, Scalar

# -- addition and subtraction ----------------------------------------------------------------------


@rrule(operator.add)
@rrule(np.add)
def _(a: np.ndarray, b: np.ndarray):
    a_shape = a.shape
    b_shape = b.shape

    def add_pullback(ȳ):
        return match(ȳ, a_shape), match(ȳ, b_shape)

    return a + b, add_pullback


@rrule(operator.add)
@rrule(np.add)
def _(a: np.ndarray, b: Scalar):
    def add_pullback(ȳ):
        return ȳ, total(ȳ)

    return a + b, add_pullback


@rrule(operator.add)
@rrule(operator.iadd)
@rrule(np.add)
def _(a: Scalar, b: np.ndarray):
    def add_pullback(ȳ):
        return total(ȳ), ȳ

    return a + b, add_pullback


@rrule(np.add)
def _(a: Scalar, b: Scalar):
    def add_pullback(ȳ):
        return ȳ, ȳ

    return np.add(a, b), add_pullback


@rrule(operator.sub)
@rrule(np.subtract)
def _(a: np.ndarray, b: np.ndarray):
    a_shape = a.shape
    b_shape = b.shape

    def sub_pullback(ȳ):
        return match(ȳ, a_shape), match(-ȳ, b_shape)

    return a - b, sub_pullback


@rrule(operator.sub)
@rrule(np.subtract)
def _(a: np.ndarray, b: Scalar):
    def sub_pullback(ȳ):
        return ȳ, -total(ȳ)

    return a - b, sub_pullback


@rrule(operator.sub)
@rrule(operator.isub)
@rrule(np.subtract)
def _(a: Scalar, b: np.ndarray):
    def sub_pullback(ȳ):
        return total(ȳ), -ȳ

    return a - b, sub_pullback


@rrule(np.subtract)
def _(a: Scalar, b: Scalar):
    def sub_pullback(ȳ):
        return ȳ, -ȳ

    return np.subtract(a, b), sub_pullback


# -- multiplication --------------------------------------------------------------------------------


@rrule(operator.mul)
@rrule(np.multiply)
def _(a: np.ndarray, b: np.ndarray):
    a_shape = a.shape
    b_shape = b.shape

    def mul_pullback(ȳ):
        return match(ȳ * b.conjugate(), a_shape), match(ȳ * a.conjugate(), b_shape)

    return a * b, mul_pullback


@rrule(operator.mul)
@rrule(np.multiply)
def _(a: np.ndarray, b: Real):
    def mul_pullback(ȳ):
        return ȳ * b, total(ȳ * a.conjugate())

    return a * b, mul_pullback


@rrule(operator.mul)
@rrule(np.multiply)
def _(a: np.ndarray, b: Scalar):
    def mul_pullback(ȳ):
        return ȳ * b.conjugate(), total(ȳ * a.conjugate())

    return a * b, mul_pullback


@rrule(operator.mul)
@rrule(operator.imul)
@rrule(np.multiply)
def _(a: Real, b: np.ndarray):
    def mul_pullback(ȳ):
        return total(ȳ * b.conjugate()), ȳ * a

    return a * b, mul_pullback


@rrule(operator.mul)
@rrule(operator.imul)
@rrule(np.multiply)
def _(a: Scalar, b: np.ndarray):
    def mul_pullback(ȳ):
        return total(ȳ * b.conjugate()), ȳ * a.conjugate()

    return a * b, mul_pullback


@rrule(np.multiply)
def _(a: Scalar, b: Scalar):
    def mul_pullback(ȳ):
        return ȳ * b.conjugate(), ȳ * a.conjugate()

    return np.multiply(a, b), mul_pullback


# -- division --------------------------------------------------------------------------------------


@rrule(operator.truediv)
@rrule(np.true_divide)
def _(a: np.ndarray, b: np.ndarray):
    a_shape = a.shape
    b_shape = b.shape
    y = a / b

    def truediv_pullback(ȳ):
        return (
            match(ȳ / b.conjugate(), a_shape),
            match(-(ȳ / b.conjugate()) * y.conjugate(), b_shape),
        )

    return y, truediv_pullback


@rrule(operator.truediv)
@rrule(np.true_divide)
def _(a: np.ndarray, b: Real):
    y = a / b

    def truediv_pullback(ȳ):
        return ȳ / b, -total(ȳ * y.conjugate()) / b

    return y, truediv_pullback


@rrule(operator.truediv)
@rrule(np.true_divide)
def _(a: np.ndarray, b: Scalar):
    y = a / b

    def truediv_pullback(ȳ):
        return ȳ / b.conjugate(), -total(ȳ * y.conjugate()) / b.conjugate()

    return y, truediv_pullback


@rrule(operator.truediv)
@rrule(operator.itruediv)
@rrule(np.true_divide)
def _(a: Scalar, b: np.ndarray):
    y = a / b

    def truediv_pullback(ȳ):
        return total(ȳ / b.conjugate()), -(ȳ / b.conjugate()) * y.conjugate()

    return y, truediv_pullback


@rrule(np.true_divide)
def _(a: Scalar, b: Scalar):
    y = np.true_divide(a, b)

    def truediv_pullback(ȳ):
        return ȳ / b.conjugate(), -(ȳ / b.conjugate()) * y.conjugate()

    return y, truediv_pullback


# -- powers ----------------------------------------------------------------------------------------


def slope(x, n):
    """∂(x**n)/∂x of a natural number n, without NaN at x = 0."""
    return n * x ** (n - 1) if n != 0 else 0


def real_slope(y, x, p):
    """∂(x**p)/∂x of a real number p, where y = x**p."""
    if p == 2:
        return p * x
    if p == 0.5:
        return p / y
    return p * x ** (p - 1) if p != 0 else x * 0.0


@rrule(real_slope)
def _(y: Anything, x: Anything, p: Real):
    """The derivative by p needs its own rule: what is written for one p holds for that p only."""

    def real_slope_pullback(s̄):
        q = p - 1
        slope = real_slope(x**q if q == 0.5 else y, x, q) if p != 0 else x * 0.0
        second = (p * slope).conjugate()
        by_p = (x ** (p - 1) * (1 + p * log_or_zero(x))).conjugate()
        return ZeroTangent(), s̄ * second, total(s̄ * by_p)

    return real_slope(y, x, p), real_slope_pullback


def by_base(a, b):
    """∂(a**b)/∂a = b a^(b-1), and 0 where a = b = 0."""
    both_zero = np.equal(a, 0) & np.equal(b, 0)
    return b * np.power(np.where(both_zero, 1, a), np.subtract(b, 1.0))


def log_or_zero(a):
    """log a, and 0 where a = 0; NaN, without a warning, where a real `a` is negative."""
    if isinstance(a, np.ndarray) and a.dtype.kind == "O":
        return np.reshape(objects([log_of_object(v) for v in a.flat]), a.shape)
    with np.errstate(invalid="ignore"):
        return np.log(np.where(np.equal(a, 0), 1, a))


def objects(values):
    """An array of objects, which may be arrays."""
    y = np.empty(len(values), object)
    for i, v in enumerate(values):
        y[i] = v
    return y


def log_of_object(v):
    """The same for a number of any type, by its own method if it has one."""
    if isinstance(v, np.ndarray):
        return log_or_zero(v)
    if v == 0:
        return 0
    if hasattr(v, "ln"):
        return v.ln()
    return cmath.log(v) if isinstance(v, complex) else math.log(v) if v > 0 else math.nan


@rrule(log_or_zero)
def _(a: Anything):
    def log_or_zero_pullback(ȳ):
        nonzero = np.not_equal(a, 0)
        return (masked(ȳ / np.where(nonzero, a, 1).conjugate(), nonzero),)

    return log_or_zero(a), log_or_zero_pullback


def by_exponent(y, a):
    """∂(a**b)/∂b = a**b log a, and 0 where a = 0."""
    return y * log_or_zero(a)


@rrule(operator.pow)
@rrule(builtins.pow)
def _(x: np.ndarray, n: int):
    y = x**n

    def pow_pullback(ȳ):
        return ȳ * slope(x, n).conjugate(), total(ȳ * by_exponent(y, x).conjugate())

    return y, pow_pullback


@rrule(operator.pow)
@rrule(builtins.pow)
def _(x: np.ndarray, p: float):
    y = x**p

    def pow_pullback(ȳ):
        return ȳ * real_slope(y, x, p).conjugate(), total(ȳ * by_exponent(y, x).conjugate())

    return y, pow_pullback


@rrule(np.power)
def _(x: np.ndarray, p: Real):
    y = np.power(x, p)

    def power_pullback(ȳ):
        return ȳ * real_slope(y, x, p).conjugate(), total(ȳ * by_exponent(y, x).conjugate())

    return y, power_pullback


@rrule(operator.pow)
@rrule(builtins.pow)
def _(a: np.ndarray, b: np.ndarray | Scalar):
    a_shape = a.shape
    b_shape = shape_of(b)
    y = a**b

    def pow_pullback(ȳ):
        return (
            match(ȳ * by_base(a, b).conjugate(), a_shape),
            match(ȳ * by_exponent(y, a).conjugate(), b_shape),
        )

    return y, pow_pullback


@rrule(operator.pow)
@rrule(operator.ipow)
@rrule(builtins.pow)
def _(a: Scalar, b: np.ndarray):
    y = a**b

    def pow_pullback(ȳ):
        return (
            total(ȳ * by_base(a, b).conjugate()),
            ȳ * by_exponent(y, a).conjugate(),
        )

    return y, pow_pullback


@rrule(np.power)
def _(a: Numeric, b: Numeric):
    a_shape = shape_of(a)
    b_shape = shape_of(b)
    y = np.power(a, b)

    def power_pullback(ȳ):
        return (
            match(ȳ * by_base(a, b).conjugate(), a_shape),
            match(ȳ * by_exponent(y, a).conjugate(), b_shape),
        )

    return y, power_pullback


@rrule(np.float_power)
def _(a: Numeric, b: Numeric):
    a_shape = shape_of(a)
    b_shape = shape_of(b)
    y = np.float_power(a, b)

    def float_power_pullback(ȳ):
        return (
            match(ȳ * by_base(a, np.multiply(b, 1.0)).conjugate(), a_shape),
            match(ȳ * by_exponent(y, a).conjugate(), b_shape),
        )

    return y, float_power_pullback


# -- remainders ------------------------------------------------------------------------------------


@rrule(operator.mod)
def _(a: np.ndarray, b: np.ndarray | Scalar):
    a_shape = a.shape
    b_shape = shape_of(b)

    def mod_pullback(ȳ):
        return match(ȳ, a_shape), match(-ȳ * np.floor_divide(a, b), b_shape)

    return a % b, mod_pullback


@rrule(operator.mod)
@rrule(operator.imod)
def _(a: Scalar, b: np.ndarray):
    def mod_pullback(ȳ):
        return total(ȳ), -ȳ * np.floor_divide(a, b)

    return a % b, mod_pullback


@rrule(np.remainder)
def _(a: Numeric, b: Numeric):
    a_shape = shape_of(a)
    b_shape = shape_of(b)

    def remainder_pullback(ȳ):
        return match(ȳ, a_shape), match(-ȳ * np.floor_divide(a, b), b_shape)

    return np.remainder(a, b), remainder_pullback


@rrule(np.divmod)
def _(a: Numeric, b: Numeric):
    a_shape = shape_of(a)
    b_shape = shape_of(b)
    quotient, remainder = np.divmod(a, b)

    def divmod_pullback(ȳ):
        r̄ = part(ȳ, 1)
        return match_part(r̄, a_shape), match_part(-(r̄ * quotient), b_shape)

    return (quotient, remainder), divmod_pullback


def divmod_of_arrays(a, b):
    """The rule of the built-in function."""
    a_shape = shape_of(a)
    b_shape = shape_of(b)
    quotient, remainder = divmod(a, b)

    def divmod_pullback(ȳ):
        r̄ = part(ȳ, 1)
        return match_part(r̄, a_shape), match_part(-(r̄ * quotient), b_shape)

    return (quotient, remainder), divmod_pullback


@rrule(builtins.divmod)
def _(a: np.ndarray, b: Numeric):
    return divmod_of_arrays(a, b)


@rrule(builtins.divmod)
def _(a: Scalar, b: np.ndarray):
    return divmod_of_arrays(a, b)


# -- operators of one argument ---------------------------------------------------------------------


@rrule(operator.neg)
def _(x: np.ndarray):
    def neg_pullback(ȳ):
        return (-ȳ,)

    return -x, neg_pullback


@rrule(operator.pos)
def _(x: np.ndarray):
    def pos_pullback(ȳ):
        return (ȳ,)

    return +x, pos_pullback


@rrule(operator.abs)
@rrule(builtins.abs)
def _(x: np.ndarray):
    def abs_pullback(ȳ):
        return (ȳ * np.sign(x),)

    return abs(x), abs_pullback


non_differentiable(np.floor_divide)
type_stable(
    np.add, np.subtract, np.multiply, np.true_divide, np.power, np.float_power, np.remainder,
    np.divmod,
)  # fmt: skip
