"""Rules of the elementwise functions of one and two arguments, of choices, rounding and parts.

    y = f(x):      x̄ = ȳ f'(x)*        (z* is the complex conjugate; f is holomorphic)
    y = f(a, b):   ā = ȳ (∂f/∂a)*      summed over the axes along which a was broadcast

At kinks: |x| has slope 0 at 0; where the operands of a maximum or minimum are equal, they share ȳ
equally; the branch of `where` that is not taken gets structural zeros (see structural.py).
Shapes: those of NumPy's broadcasting. A table of derivatives stands for the functions that are
seldom the dear part of a program; the others are written out.
Tests: tests/rules/arrays/test_elementwise.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    NoTangent,
    NotSpecialised,
    ZeroTangent,
    rewrites,
    rrule,
    type_stable,
)
from morula.rules.arrays.bodies import derivative_of
from morula.rules.arrays.broadcasting import (
    match,
    part,
    quotient,
    shape_of,
    spread,
    total,
    unbroadcast,
    widened,
)
from morula.rules.arrays.structural import SMALL, masked, selected
from morula.rules.arrays.types import NO_VALUE, Anything, Numeric, Scalar

LOG2 = math.log(2)
LOG10 = math.log(10)


# -- written out -----------------------------------------------------------------------------------


@rrule(np.exp)
def _(x: Numeric):
    y = np.exp(x)

    def exp_pullback(ȳ):
        return (ȳ * y.conjugate(),)

    return y, exp_pullback


@rrule(np.exp)
def _(x: float):
    y = np.exp(x)

    def exp_pullback(ȳ):
        return (ȳ * y,)

    return y, exp_pullback


@rrule(np.log)
def _(x: Numeric):
    y = np.log(x)

    def log_pullback(ȳ):
        return (ȳ / numpy_number(x, y).conjugate(),)

    return y, log_pullback


@rrule(np.log)
def _(x: float):
    def log_pullback(ȳ):
        return (ȳ / np.float64(x),)  # a number of Python's may not divide by zero

    return np.log(x), log_pullback


@rrule(np.sqrt)
def _(x: Numeric):
    y = np.sqrt(x)

    def sqrt_pullback(ȳ):
        return (ȳ * (0.5 / y.conjugate()),)

    return y, sqrt_pullback


@rrule(np.sqrt)
def _(x: float):
    y = np.sqrt(x)

    def sqrt_pullback(ȳ):
        return (ȳ * (0.5 / y),)

    return y, sqrt_pullback


@rrule(np.tanh)
def _(x: Numeric):
    y = np.tanh(x)

    def tanh_pullback(ȳ):
        return (ȳ * (1 - y * y).conjugate(),)

    return y, tanh_pullback


@rrule(np.tanh)
def _(x: float):
    y = np.tanh(x)

    def tanh_pullback(ȳ):
        return (ȳ * (1 - y * y),)

    return y, tanh_pullback


@rrule(np.sin)
def _(x: Numeric):
    def sin_pullback(ȳ):
        return (ȳ * np.cos(x).conjugate(),)

    return np.sin(x), sin_pullback


@rrule(np.sin)
def _(x: float):
    def sin_pullback(ȳ):
        return (ȳ * np.cos(x),)

    return np.sin(x), sin_pullback


@rrule(np.cos)
def _(x: Numeric):
    def cos_pullback(ȳ):
        return (ȳ * -np.sin(x).conjugate(),)

    return np.cos(x), cos_pullback


@rrule(np.cos)
def _(x: float):
    def cos_pullback(ȳ):
        return (ȳ * -np.sin(x),)

    return np.cos(x), cos_pullback


@rrule(np.square)
def _(x: Numeric):
    def square_pullback(ȳ):
        return (ȳ * (2 * x).conjugate(),)

    return np.square(x), square_pullback


@rrule(np.negative)
def _(x: Numeric):
    def negative_pullback(ȳ):
        return (-ȳ,)

    return np.negative(x), negative_pullback


@rrule(np.positive)
def _(x: Numeric):
    def positive_pullback(ȳ):
        return (ȳ,)

    return np.positive(x), positive_pullback


@rrule(np.absolute)
def _(x: Numeric):
    def absolute_pullback(ȳ):
        return (ȳ * np.sign(x),)  # x / |x| for complex x, and 0 at 0

    return np.absolute(x), absolute_pullback


@rrule(np.fabs)
def _(x: Numeric):
    def fabs_pullback(ȳ):
        return (ȳ * np.sign(x * 1.0),)

    return np.fabs(x), fabs_pullback


@rrule(np.sign)
def _(x: Numeric):
    """The unit z / |z| of a complex z: z̄ = (ȳ - y Re(y* ȳ)) / |z|; of a real number, constant."""
    y = np.sign(x)

    def sign_pullback(ȳ):
        if not np.iscomplexobj(x):
            return (ZeroTangent(),)
        across = ȳ - y * np.real(y.conjugate() * ȳ)
        size = np.absolute(x)
        return (across / np.where(size == 0, 1, size),)

    return y, sign_pullback


@rrule(np.conjugate)
def _(x: Numeric):
    def conjugate_pullback(ȳ):
        return (ȳ.conjugate(),)

    return np.conjugate(x), conjugate_pullback


@rrule(np.ndarray.conjugate)
@rrule(np.ndarray.conj)
def _(x: np.ndarray):
    def conjugate_pullback(ȳ):
        return (ȳ.conjugate(),)

    return x.conjugate(), conjugate_pullback


# -- by their derivatives --------------------------------------------------------------------------


def elementwise(*primals: Callable[..., Any]) -> Callable[..., Any]:
    """Declare functions of one argument by their derivative: `def _(y, x): return ∂y_∂x`."""

    def register(derivative: Callable[..., Any]) -> Callable[..., Any]:
        for primal in primals:
            _unary(primal, derivative)
        return derivative

    return register


def _unary(primal, derivative):
    @rrule(primal)
    def _(x: Numeric):
        y = primal(x)

        def elementwise_pullback(ȳ):
            return (ȳ * derivative(y, widened(numpy_number(x, y))).conjugate(),)

        return y, elementwise_pullback

    type_stable(primal)


def numpy_number(x, y):
    """A number of Python's as one of the type of the result, by zero of which one may divide."""
    return type(y)(x) if isinstance(x, float | int | complex) else x


def broadcasting(*primals: Callable[..., Any]) -> Callable[..., Any]:
    """Declare functions of two arguments by their partial derivatives, from y, a and b."""

    def register(partials: Callable[..., Any]) -> Callable[..., Any]:
        for primal in primals:
            _binary(primal, partials)
        return partials

    return register


def _binary(primal, partials):
    @rrule(primal)
    def _(a: Numeric, b: Numeric):
        a_shape = shape_of(a)
        b_shape = shape_of(b)
        y = primal(a, b)

        def broadcasting_pullback(ȳ):
            d_a, d_b = partials(y, a, b)
            return match(ȳ * d_a, a_shape), match(ȳ * d_b, b_shape)

        return y, broadcasting_pullback

    type_stable(primal)


@elementwise(np.exp2)
def _(y, x):
    return y * LOG2


@elementwise(np.expm1)
def _(y, x):
    return np.exp(x)


@elementwise(np.log2)
def _(y, x):
    return 1 / (x * LOG2)


@elementwise(np.log10)
def _(y, x):
    return 1 / (x * LOG10)


@elementwise(np.log1p)
def _(y, x):
    return 1 / (1 + x)


@elementwise(np.cbrt)
def _(y, x):
    return 1 / (3 * y * y)


@elementwise(np.reciprocal)
def _(y, x):
    return -y * y


@elementwise(np.tan)
def _(y, x):
    return 1 + y * y


@elementwise(np.sinh)
def _(y, x):
    return np.cosh(x)


@elementwise(np.cosh)
def _(y, x):
    return np.sinh(x)


# On the branch cuts of the complex functions the square roots are those that y itself tells.


@elementwise(np.arcsin)
def _(y, x):
    return 1 / (np.cos(y) if np.iscomplexobj(x) else np.sqrt((1 - x) * (1 + x)))


@elementwise(np.arccos)
def _(y, x):
    return -1 / (np.sin(y) if np.iscomplexobj(x) else np.sqrt((1 - x) * (1 + x)))


@elementwise(np.arctan)
def _(y, x):
    return 1 / (1 + x * x)


@elementwise(np.arcsinh)
def _(y, x):
    return 1 / (np.cosh(y) if np.iscomplexobj(x) else np.hypot(1, x))


@elementwise(np.arccosh)
def _(y, x):
    return 1 / (np.sinh(y) if np.iscomplexobj(x) else np.sqrt((x - 1) * (x + 1)))


@elementwise(np.arctanh)
def _(y, x):
    return 1 / ((1 - x) * (1 + x))


@elementwise(np.degrees, np.rad2deg)
def _(y, x):
    return 180 / math.pi


@elementwise(np.radians, np.deg2rad)
def _(y, x):
    return math.pi / 180


@broadcasting(np.arctan2)
def _(y, a, b):
    """The slope is 0 where both are."""
    r = np.hypot(a, b)
    return quotient(quotient(b, r), r), -quotient(quotient(a, r), r)


@broadcasting(np.hypot)
def _(y, a, b):
    return quotient(a, y), quotient(b, y)


@broadcasting(np.logaddexp)
def _(y, a, b):
    return share_of(a, b), share_of(b, a)


def share_of(a, b):
    """exp(a) / (exp(a) + exp(b)); 1/2 where a = b is infinite.

    In the form 1 / (1 + exp(b - a)) the value of logaddexp is not needed; what would overflow stands
    for a share below the smallest normal number.
    """
    if is_safe(a, b):
        d = np.negative(a)
        return one_more_below(np.exp(d, d))
    size = norm(a) + norm(b)
    if not math.isfinite(size):
        d = np.where(a == b, 0.0, b - np.where(a == b, 0.0, a))
    elif type(b) is float and b == 0 and type(a) is np.ndarray:
        d = -a
    else:
        d = b - a
    most = LARGEST_EXPONENT.get(getattr(d, "dtype", None), LARGEST_EXPONENT[FLOAT64])
    if not size < most:
        d = np.minimum(d, most)
    if type(d) is not np.ndarray:
        return 1 / (1 + np.exp(d))
    return one_more_below(np.exp(d, d) if d.dtype.kind == "f" else np.exp(d))


def share_in(a, b):
    """The same in the memory of `a`, an array that is ours, where that is easy."""
    if not is_safe(a, b):
        return share_of(a, b)
    np.negative(a, a)
    return one_more_below(np.exp(a, a))


def is_safe(a, b):
    """Are these an array of doubles and zero, and does no exponential overflow?"""
    if type(a) is not np.ndarray or a.dtype is not FLOAT64 or type(b) is not float or b:
        return False
    return (a.dot(a) if a.ndim == 1 else np.vdot(a, a)) < SAFE and a.ndim > 0


def one_more_below(e):
    """1 / (1 + e) in the memory of e."""
    e += 1
    return np.reciprocal(e, e)


def norm(x):
    """The Euclidean norm of a number or an array of any shape; not finite where an entry is not."""
    if isinstance(x, float | int):
        return abs(x)
    if x.dtype.kind != "f" or x.itemsize == 2:
        x = np.asarray(x, float)  # these would overflow
    return math.sqrt(x.dot(x) if type(x) is np.ndarray and x.ndim == 1 else np.vdot(x, x))


FLOAT64 = np.dtype(float)
LARGEST_EXPONENT = {
    np.dtype(t): float(np.floor(np.log(np.finfo(t).max)))
    for t in (np.float16, np.float32, np.float64, np.longdouble)
}
SAFE = LARGEST_EXPONENT[FLOAT64] ** 2  # the square of a norm below which nothing overflows


@broadcasting(share_of)
def _(y, a, b):
    slope = y * share_of(b, a)
    return slope, -slope


@broadcasting(np.logaddexp2)
def _(y, a, b):
    return np.exp2(infinite_less(a, y, b, 1.0)), np.exp2(infinite_less(b, y, a, 1.0))


def infinite_less(a, y, b, half=LOG2):
    """a - y, also where a = b is infinite and they share ȳ, and where a is the infinite one."""
    if np.isfinite(np.add.reduce(y, axis=None)):  # a sum of finite numbers: nothing of the kind
        return a - y
    return np.where(a == b, -half, np.where(a == y, 0.0, a - np.where(a == y, 0.0, y)))


@broadcasting(np.fmod)
def _(y, a, b):
    return 1, -np.trunc(a / b)


@rrule(np.copysign)
def _(a: Numeric, b: Numeric):
    shape = shape_of(a)

    def copysign_pullback(ȳ):
        return match(ȳ * np.copysign(np.sign(a * 1.0), a * np.copysign(1, b)), shape), ZeroTangent()

    return np.copysign(a, b), copysign_pullback


@broadcasting(np.nextafter)
def _(y, a, b):
    return 1.0, 0.0


@rrule(np.heaviside)
def _(a: Numeric, b: Numeric):
    b_shape = shape_of(b)

    def heaviside_pullback(ȳ):
        return ZeroTangent(), unbroadcast(masked(ȳ, np.equal(a, 0)), b_shape)

    return np.heaviside(a, b), heaviside_pullback


@rrule(np.ldexp)
def _(x: Numeric, n: Numeric):
    shape = shape_of(x)

    def ldexp_pullback(ȳ):
        return match(np.ldexp(ȳ, n), shape), NoTangent()

    return np.ldexp(x, n), ldexp_pullback


@rrule(np.frexp)
def _(x: Numeric):
    y = np.frexp(x)
    exponent = y[1]

    def frexp_pullback(ȳ):
        m̄ = part(ȳ, 0)
        return (m̄ if m̄ is ZERO else np.ldexp(m̄, -exponent),)

    return y, frexp_pullback


@rrule(np.modf)
def _(x: Numeric):
    def modf_pullback(ȳ):
        return (part(ȳ, 0),)

    return np.modf(x), modf_pullback


# -- choices ---------------------------------------------------------------------------------------


def array_part(ȳ, a, b, greater):
    """The cotangent of `a` where max(a, b), or min(a, b), was taken, in the shape of ȳ.

    Zero, not NaN, where `b` was taken; half of ȳ at a tie.
    """
    ties = np.equal(a, b)
    chosen = np.greater(a, b) if greater else np.less(a, b)
    if not isinstance(ties, np.ndarray):  # arrays without axes
        return ȳ * (1.0 if chosen else 0.5 if ties else 0.0)
    if np.count_nonzero(ties):
        return np.where(chosen, ȳ, np.where(ties, ȳ * 0.5, 0.0))
    return np.where(chosen, ȳ, 0.0) if chosen.size <= SMALL else masked(ȳ, chosen)


def marked_part(ȳ, a, b, greater):
    """The same, marked as structurally zero where `b` was taken."""
    x̄ = array_part(ȳ, a, b, greater)
    counts = np.greater_equal(a, b) if greater else np.less_equal(a, b)
    return selected(x̄, counts)


def number_part(ȳ, a, b, greater):
    """The same for two numbers: structurally zero, if `b` was taken."""
    chosen = a > b if greater else a < b
    return ȳ if chosen else ȳ * 0.5 if a == b else ZeroTangent()


def chosen_part(ȳ, a, b, greater):
    """The same for arrays or numbers."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return marked_part(ȳ, a, b, greater)
    return number_part(ȳ, a, b, greater)


@rrule(array_part)
def _(ȳ: Anything, a: Anything, b: Anything, greater: Anything):
    def array_part_pullback(x̄):
        return array_part(x̄, a, b, greater), ZeroTangent(), ZeroTangent(), NoTangent()

    return array_part(ȳ, a, b, greater), array_part_pullback


@rrule(marked_part)
def _(ȳ: Anything, a: Anything, b: Anything, greater: Anything):
    def marked_part_pullback(x̄):
        return marked_part(x̄, a, b, greater), ZeroTangent(), ZeroTangent(), NoTangent()

    return marked_part(ȳ, a, b, greater), marked_part_pullback


def _choice(primal, greater):
    @rrule(primal)
    def _(a: np.ndarray, b: Scalar):
        def maximum_pullback(ȳ):
            return marked_part(ȳ, a, b, greater), total(marked_part(ȳ, b, a, greater))

        return primal(a, b), maximum_pullback

    @rrule(primal)
    def _(a: Scalar, b: np.ndarray):
        def maximum_pullback(ȳ):
            return total(marked_part(ȳ, a, b, greater)), marked_part(ȳ, b, a, greater)

        return primal(a, b), maximum_pullback

    @rrule(primal)
    def _(a: np.ndarray, b: np.ndarray):
        a_shape = a.shape
        b_shape = b.shape

        def maximum_pullback(ȳ):
            return (
                match(marked_part(ȳ, a, b, greater), a_shape),
                match(marked_part(ȳ, b, a, greater), b_shape),
            )

        return primal(a, b), maximum_pullback

    @rrule(primal)
    def _(a: Scalar, b: Scalar):
        def maximum_pullback(ȳ):
            return number_part(ȳ, a, b, greater), number_part(ȳ, b, a, greater)

        return primal(a, b), maximum_pullback

    type_stable(primal)


_choice(np.maximum, True)
_choice(np.minimum, False)


def of_numbers(x̄, x):
    """`x̄`, structurally zero where x is NaN."""
    nan = np.isnan(x)
    if np.ndim(nan):
        return selected(x̄, ~nan) if np.any(nan) else x̄
    return ZeroTangent() if nan else x̄


def _choice_but_nan(primal, plain):
    """fmax and fmin: as maximum and minimum, and a number is preferred to NaN."""

    @rrule(primal)
    def _(a: Numeric, b: Numeric):
        a_shape = shape_of(a)
        b_shape = shape_of(b)
        lost = math.inf if plain is np.minimum else -math.inf
        greater = plain is np.maximum

        def fmax_pullback(ȳ):
            a_or = np.where(np.isnan(a), lost, a)
            b_or = np.where(np.isnan(b), lost, b)
            return (
                unbroadcast(of_numbers(chosen_part(ȳ, a_or, b_or, greater), a), a_shape),
                unbroadcast(of_numbers(chosen_part(ȳ, b_or, a_or, greater), b), b_shape),
            )

        return primal(a, b), fmax_pullback

    type_stable(primal)


_choice_but_nan(np.fmax, np.maximum)
_choice_but_nan(np.fmin, np.minimum)


@rrule(np.where)
def _(condition: Anything, a: Numeric, b: Numeric):
    a_shape = shape_of(a)
    b_shape = shape_of(b)

    def where_pullback(ȳ):
        return (
            NoTangent(),
            taken(ȳ, condition, True, a_shape),
            taken(ȳ, condition, False, b_shape),
        )

    return np.where(condition, a, b), where_pullback


@rrule(np.where)
def _(condition: Anything):
    def where_pullback(ȳ):
        return (ZeroTangent(),)

    return np.where(condition), where_pullback


def taken(ȳ, condition, holds, shape):
    """The cotangent of one branch of `where`, marked as structurally zero where it is not taken."""
    mask = np.asarray(condition, bool)
    if not holds:
        mask = ~mask
    if mask.ndim == 0:
        return unbroadcast(ȳ, shape) if mask else ZeroTangent()
    return unbroadcast(selected(ȳ, mask), shape)


@rrule(taken)
def _(ȳ: Anything, condition: Anything, holds: Anything, shape: Anything):
    have = np.shape(ȳ)

    def taken_pullback(x̄):
        return (
            taken(spread(x̄, have), condition, holds, have),
            NoTangent(),
            NoTangent(),
            NoTangent(),
        )

    return taken(ȳ, condition, holds, shape), taken_pullback


def clip_parts(ȳ, x, low, high):
    """The cotangents of clip(x, low, high), with the ties of min(max(x, low), high)."""
    inner = x if low is None else np.maximum(x, low)
    high_bar = None
    if high is not None:
        high_bar = unbroadcast(chosen_part(ȳ, high, inner, False), np.shape(high))
        ȳ = chosen_part(ȳ, inner, high, False)
    ȳ = unbroadcast(ȳ, np.shape(inner))
    low_bar = None
    if low is not None:
        low_bar = unbroadcast(chosen_part(ȳ, low, x, True), np.shape(low))
        ȳ = chosen_part(ȳ, x, low, True)
    return (
        unbroadcast(ȳ, np.shape(x)),
        NoTangent() if low_bar is None else low_bar,
        NoTangent() if high_bar is None else high_bar,
    )


@rrule(np.clip)
@rrule(np.ndarray.clip)
def _(a: np.ndarray, a_min: Scalar | None, a_max: Scalar | None = None):
    """By numbers: nothing is computed for a bound that is not there, or constant in a program."""

    def clip_pullback(ȳ):
        inner, low, high = a, NoTangent(), NoTangent()
        if a_min is not None:
            inner = np.maximum(a, a_min)
        if a_max is not None:
            high = total(marked_part(ȳ, a_max, inner, False))
            ȳ = marked_part(ȳ, inner, a_max, False)
        if a_min is not None:
            low = total(marked_part(ȳ, a_min, a, True))
            ȳ = marked_part(ȳ, a, a_min, True)
        return ȳ, low, high

    return np.clip(a, a_min, a_max), clip_pullback


@rrule(np.clip)
@rrule(np.ndarray.clip)
def _(a: Numeric, a_min=None, a_max=None, *, min=NO_VALUE, max=NO_VALUE):
    low = a_min if min is NO_VALUE else min
    high = a_max if max is NO_VALUE else max

    def clip_pullback(ȳ):
        ā, low_bar, high_bar = clip_parts(ȳ, a, low, high)
        return ā, low_bar, high_bar, low_bar, high_bar

    return np.clip(a, low, high), clip_pullback


# -- parts of complex numbers ----------------------------------------------------------------------


@rrule(np.real)
def _(val: Numeric):
    def real_pullback(ȳ):
        return (ȳ,)

    return np.real(val), real_pullback


@rrule(np.imag)
def _(val: Numeric):
    def imag_pullback(ȳ):
        if not np.iscomplexobj(val):
            return (ZeroTangent(),)
        return (ȳ * 1j,)

    return np.imag(val), imag_pullback


@rrule(np.angle)
def _(z: Numeric, deg=False):
    """arg z = Im log z: z̄ = i ȳ z / |z|², and 0 at 0."""

    def angle_pullback(ȳ):
        if not np.iscomplexobj(z):
            return ZeroTangent(), NoTangent()
        factor = 180 / math.pi if deg else 1
        r = np.absolute(z)
        return ȳ * (1j * factor) * quotient(quotient(z, r), r), NoTangent()

    return np.angle(z, deg), angle_pullback


@rrule(np.real_if_close)
def _(a: Numeric, tol=100):
    def real_if_close_pullback(ȳ):
        return ȳ, NoTangent()

    return np.real_if_close(a, tol), real_if_close_pullback


@rrule(np.nan_to_num)
def _(x: Numeric, *, nan=0.0, posinf=None, neginf=None):
    """What a number is replaced by has the cotangents of those places."""

    def nan_to_num_pullback(ȳ):
        return (
            selected(of_finite_parts(ȳ, x), has_finite_part(x)),
            in_place_of(np.isnan, x, nan, ȳ),
            in_place_of(np.isposinf, x, posinf, ȳ),
            in_place_of(np.isneginf, x, neginf, ȳ),
        )

    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf), nan_to_num_pullback


def has_finite_part(x):
    """Is a number, or one of its parts, finite?"""
    return np.isfinite(np.real(x)) | (np.iscomplexobj(x) & np.isfinite(np.imag(x)))


def of_finite_parts(ȳ, x):
    """ȳ without the parts of complex numbers that were replaced."""
    if not np.iscomplexobj(x):
        return ȳ
    real = masked(np.real(ȳ), np.isfinite(np.real(x)))
    return real + 1j * masked(np.imag(ȳ), np.isfinite(np.imag(x)))


def in_place_of(what, x, value, ȳ):
    """The cotangent of a value that stands where a part of x is of this kind."""
    if value is None:
        return NoTangent()
    parts = masked(np.real(ȳ), what(np.real(x)))
    if np.iscomplexobj(x):
        parts = parts + masked(np.imag(ȳ), what(np.imag(x)))
    return unbroadcast(parts, np.shape(value))


@rewrites
def _(s: Any) -> bool:
    """`np.nan_to_num(x, copy=False)` writes to x, which is followed on the general path."""
    for c in s.ir.calls():
        if c.primitive is np.nan_to_num and (
            "copy" in c.keywords or len(c.args) > 1 + len(c.keywords)
        ):
            raise NotSpecialised("np.nan_to_num in place")
    return False


@rrule(np.sinc)
def _(x: Numeric):
    """sin(πx) / (πx); the slope is (cos(πx) - y) / x, and by its series near 0."""
    y = np.sinc(x)

    def sinc_pullback(ȳ):
        t = math.pi * x
        near = np.absolute(t) < 0.02
        series = t * (t * t / 30 - 1 / 3 - t * t * t * t / 840) * math.pi
        slope = np.where(near, series, (np.cos(t) - y) / np.where(near, 1, x))
        return (ȳ * slope.conjugate(),)

    return y, sinc_pullback


@rrule(np.i0)
def _(x: Numeric):
    def i0_pullback(ȳ):
        return (np.reshape(ȳ * i1(x), np.shape(x)),)

    return np.i0(x), i0_pullback


def i1(x):
    """The modified Bessel function I₁, the derivative of I₀."""
    from scipy import special  # which takes long to import

    return special.i1(x)


@elementwise(i1)
def _(y, x):
    """I₁' = I₀ - I₁ / x; one half at 0."""
    near = np.equal(x, 0)
    return np.where(near, 0.5, np.i0(x) - y / np.where(near, 1, x))


@derivative_of(np.kaiser)
def kaiser(M, beta):
    """I₀ along half an ellipse."""
    t = np.linspace(-1.0, 1.0, M) if M > 1 else np.zeros(M)
    return np.i0(beta * np.sqrt(1 - t * t)) / np.i0(beta)


type_stable(
    array_part, np.exp, np.log, np.sqrt, np.tanh, np.sin, np.cos, np.square, np.negative,
    np.positive,
    np.absolute, np.fabs, np.sign, np.conjugate, np.ndarray.conjugate, np.ndarray.conj,
    np.where, np.heaviside, np.ldexp, np.frexp, np.modf, np.real, np.imag, np.angle,
)  # fmt: skip
