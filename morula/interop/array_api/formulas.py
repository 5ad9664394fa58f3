"""The adjoints of functions of the standard that stay on the device of their arrays.

    y = f(x):      x̄ = ȳ f'(x)*
    y = f(a, b):   ā = ȳ (∂f/∂a)*      summed over the axes along which a was broadcast

Each is a primitive that takes the library's own function, so that values are the library's; the
pullbacks are said by operators and functions of the standard, so they have derivatives in turn. All
other functions of the standard are differentiated by NumPy's (claims.py).
At kinks and ties the conventions are those of NumPy's arrays; what is not chosen gets structural zeros
(masks.py).
Tests: tests/interop/test_array_api.py
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    Thunk,
    is_zero,
    non_differentiable,
    project_to,
    rrule,
)
from morula.interop.array_api.arrays import host
from morula.interop.array_api.kinds import is_array, is_inexact, kind_of
from morula.interop.array_api.masks import mask_of, masked, moved, times
from morula.interop.meanings import Args
from morula.mixed_mode.push import pushes
from morula.rules.calls import entry, serves
from morula.rules.numbers import Anything

LOG2 = math.log(2)
LOG10 = math.log(10)
Slope = Callable[[Any, Any, Any], Any]

# -- elementwise -----------------------------------------------------------------------------------

SLOPES: dict[str, Slope] = {  # of the namespace, the argument and the value
    "acos": lambda xp, x, y: -1 / xp.sqrt(1 - x * x),
    "acosh": lambda xp, x, y: 1 / (xp.sqrt(x - 1) * xp.sqrt(x + 1)),
    "asin": lambda xp, x, y: 1 / xp.sqrt(1 - x * x),
    "asinh": lambda xp, x, y: 1 / xp.sqrt(1 + x * x),
    "atan": lambda xp, x, y: 1 / (1 + x * x),
    "atanh": lambda xp, x, y: 1 / (1 - x * x),
    "cos": lambda xp, x, y: -xp.sin(x),
    "cosh": lambda xp, x, y: xp.sinh(x),
    "exp": lambda xp, x, y: y,
    "expm1": lambda xp, x, y: y + 1,
    "log": lambda xp, x, y: 1 / x,
    "log10": lambda xp, x, y: 1 / (LOG10 * x),
    "log1p": lambda xp, x, y: 1 / (1 + x),
    "log2": lambda xp, x, y: 1 / (LOG2 * x),
    "negative": lambda xp, x, y: -1,
    "positive": lambda xp, x, y: 1,
    "reciprocal": lambda xp, x, y: -y * y,
    "sin": lambda xp, x, y: xp.cos(x),
    "sinh": lambda xp, x, y: xp.cosh(x),
    "sqrt": lambda xp, x, y: 0.5 / y,
    "square": lambda xp, x, y: 2 * x,
    "tan": lambda xp, x, y: 1 + y * y,
    "tanh": lambda xp, x, y: 1 - y * y,
}


def elementwise(name: str, fn: Any, x: Any) -> Any:
    """A function of each entry."""
    return fn(x)


@rrule(elementwise)
def _(name: Anything, fn: Anything, x: Anything):
    y, xp, slope = elementwise(name, fn, x), x.__array_namespace__(), SLOPES[name]

    def elementwise_pullback(ȳ):
        return NONE, NONE, times(ȳ, conjugate(slope(xp, x, y)))

    return y, elementwise_pullback


def conjugate(x: Any) -> Any:
    """The conjugate of an array or a number."""
    if is_array(x):
        return x.__array_namespace__().conj(x) if kind_of(x) == "c" else x
    return x.conjugate() if isinstance(x, complex) else x


def magnitude(fn: Any, x: Any) -> Any:
    """|x|."""
    return fn(x)


@rrule(magnitude)
def _(fn: Anything, x: Anything):
    def magnitude_pullback(ȳ):
        slope = phase(x) if kind_of(x) == "c" else x.__array_namespace__().sign(x)
        return NONE, times(ȳ, slope)

    return magnitude(fn, x), magnitude_pullback


def phase(z: Any) -> Any:
    """z / |z|, and 0 at 0."""
    xp = z.__array_namespace__()
    return z / or_one(xp, xp.abs(z))


Partial = Callable[[Any, Any, Any, Any], Any]
PAIRED: dict[str, tuple[Partial, Partial]] = {  # of the namespace, the arguments and the value
    "add": (lambda xp, a, b, y: 1, lambda xp, a, b, y: 1),
    "subtract": (lambda xp, a, b, y: 1, lambda xp, a, b, y: -1),
    "multiply": (lambda xp, a, b, y: b, lambda xp, a, b, y: a),
    "divide": (lambda xp, a, b, y: 1 / b, lambda xp, a, b, y: -y / b),
    "remainder": (lambda xp, a, b, y: 1, lambda xp, a, b, y: -xp.floor(a / b)),
    "pow": (
        lambda xp, a, b, y: slope_by_base(xp, a, b),
        lambda xp, a, b, y: slope_by_exponent(xp, a, b, y),
    ),
    "maximum": (lambda xp, a, b, y: share(xp, a, b, y), lambda xp, a, b, y: share(xp, b, a, y)),
    "minimum": (lambda xp, a, b, y: share(xp, a, b, y), lambda xp, a, b, y: share(xp, b, a, y)),
    "atan2": (
        lambda xp, a, b, y: b / or_one(xp, a * a + b * b),
        lambda xp, a, b, y: -a / or_one(xp, a * a + b * b),
    ),
    "hypot": (lambda xp, a, b, y: a / or_one(xp, y), lambda xp, a, b, y: b / or_one(xp, y)),
    "logaddexp": (lambda xp, a, b, y: xp.exp(a - y), lambda xp, a, b, y: xp.exp(b - y)),
}


def slope_by_base(xp: Any, a: Any, b: Any) -> Any:
    """∂(a**b)/∂a, which is 0 where b is."""
    if not is_array(b):
        return b * a ** (b - 1) if b != 0 else xp.zeros_like(a)
    return b * a ** xp.where(b == 0, xp.ones_like(b), b - 1)


def slope_by_exponent(xp: Any, a: Any, b: Any, y: Any) -> Any:
    """∂(a**b)/∂b, which is 0 where a is."""
    if not is_array(a):
        return y * (math.log(a) if a > 0 else math.nan) if a != 0 else xp.zeros_like(y)
    return y * xp.log(xp.where(a == 0, xp.ones_like(a), a))


def share(xp: Any, a: Any, b: Any, y: Any) -> Any:
    """What an operand of a maximum or minimum gets: a half where they are equal."""
    ones = xp.ones_like(y)
    return xp.where(a == b, 0.5 * ones, xp.where(a == y, ones, 0 * ones))


def or_one(xp: Any, x: Any) -> Any:
    """What to divide by, for a quotient that is 0 where the divisor is."""
    return xp.where(x == 0, xp.ones_like(x), x)


def pairwise(name: str, fn: Any, a: Any, b: Any) -> Any:
    """A function of two arrays, entry by entry; one of them may be a number."""
    return fn(a, b)


@rrule(pairwise)
def _(name: Anything, fn: Anything, a: Anything, b: Anything):
    y, (by_a, by_b) = pairwise(name, fn, a, b), PAIRED[name]
    xp = (a if is_array(a) else b).__array_namespace__()

    def pairwise_pullback(ȳ):
        if name in ("maximum", "minimum"):
            ā = by_operand(a, masked(ȳ, a == y), lambda: by_a(xp, a, b, y))
            b̄ = by_operand(b, masked(ȳ, b == y), lambda: by_b(xp, a, b, y))
            return NONE, NONE, ā, b̄
        ā = by_operand(a, ȳ, lambda: by_a(xp, a, b, y))
        return NONE, NONE, ā, by_operand(b, ȳ, lambda: by_b(xp, a, b, y))

    return y, pairwise_pullback


def by_operand(x: Any, ȳ: Any, slope: Callable[[], Any]) -> Any:
    """The cotangent of an operand; that of a number is brought from the device if it is asked for."""
    if is_array(x):
        return folded(times(ȳ, conjugate(slope())), tuple(x.shape)) if is_inexact(x) else NONE
    return Thunk(lambda: project_to(x)(host(folded(times(ȳ, conjugate(slope())), np.shape(x)))[()]))


def folded(ȳ: Any, shape: Any) -> Any:
    """The sum over those axes along which an array of a shape was broadcast."""
    extra = ȳ.ndim - len(shape)
    axes = [*range(extra)]
    axes += [extra + i for i, n in enumerate(shape) if n == 1 and ȳ.shape[extra + i] != 1]
    xp = ȳ.__array_namespace__()
    if axes:
        ȳ = summed(xp.sum, ȳ, tuple(axes), True)
    return moved(ȳ, lambda c: xp.reshape(c, shape)) if extra else ȳ


def chosen(fn: Any, condition: Any, a: Any, b: Any) -> Any:
    """`where(condition, a, b)`."""
    return fn(condition, a, b)


@rrule(chosen)
def _(fn: Anything, condition: Anything, a: Anything, b: Anything):
    xp = condition.__array_namespace__()

    def chosen_pullback(ȳ):
        ā = by_operand(a, masked(ȳ, condition), lambda: 1)
        return NONE, NONE, ā, by_operand(b, masked(ȳ, xp.logical_not(condition)), lambda: 1)

    return chosen(fn, condition, a, b), chosen_pullback


def part_of(name: str, fn: Any, x: Any) -> Any:
    """The real or the imaginary part, or the conjugate."""
    return fn(x)


@rrule(part_of)
def _(name: Anything, fn: Anything, x: Anything):
    def part_of_pullback(ȳ):
        if name == "imag":
            return NONE, NONE, ȳ * 1j if kind_of(x) == "c" else ZERO
        return NONE, NONE, conjugate(ȳ) if name == "conj" else ȳ

    return part_of(name, fn, x), part_of_pullback


# -- reductions ------------------------------------------------------------------------------------


def summed(fn: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum along axes."""
    return fn(x, axis=axis, keepdims=keepdims)


def kept(x: Any, axis: Any) -> tuple[int, ...]:
    """The shape of a reduction that keeps its axes."""
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    return tuple([1 if i in {a % x.ndim for a in axes} else n for i, n in enumerate(x.shape)])


def spread(y: Any, x: Any, axis: Any) -> Any:
    """The result of a reduction of x, broadcast to its shape."""
    xp = x.__array_namespace__()
    return xp.broadcast_to(xp.reshape(y, kept(x, axis)), tuple(x.shape))


@rrule(summed)
def _(fn: Anything, x: Anything, axis: Anything, keepdims: Anything):
    def summed_pullback(ȳ):
        return NONE, spread(ȳ, x, axis), NONE, NONE

    return summed(fn, x, axis, keepdims), summed_pullback


def mean(fn: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """The mean along axes."""
    return fn(x, axis=axis, keepdims=keepdims)


def count(x: Any, axis: Any) -> int:
    """How many entries of x one entry of a reduction is made of."""
    return int(math.prod(n for n, m in zip(x.shape, kept(x, axis), strict=True) if n != m))


@rrule(mean)
def _(fn: Anything, x: Anything, axis: Anything, keepdims: Anything):
    n = count(x, axis)

    def mean_pullback(ȳ):
        return NONE, spread(ȳ / n, x, axis), NONE, NONE

    return mean(fn, x, axis, keepdims), mean_pullback


def extreme(fn: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """The maximum or minimum along axes."""
    return fn(x, axis=axis, keepdims=keepdims)


@rrule(extreme)
def _(fn: Anything, x: Anything, axis: Anything, keepdims: Anything):
    y = extreme(fn, x, axis, keepdims)
    xp = x.__array_namespace__()

    def extreme_pullback(ȳ):
        largest = x == spread(y, x, axis)
        equal = xp.astype(largest, x.dtype)  # ties share
        shares = equal / xp.sum(equal, axis=axis, keepdims=True)
        return NONE, times(masked(spread(ȳ, x, axis), largest), shares), NONE, NONE

    return y, extreme_pullback


def product(fn: Any, a: Any, b: Any) -> Any:
    """The product of matrices."""
    return fn(a, b)


@rrule(product)
def _(fn: Anything, a: Anything, b: Anything):
    xp = a.__array_namespace__()

    def product_pullback(ȳ):
        rows = a if a.ndim > 1 else xp.reshape(a, (1, a.shape[0]))
        columns = b if b.ndim > 1 else xp.reshape(b, (b.shape[0], 1))
        c = xp.expand_dims(ȳ, axis=-1) if b.ndim == 1 else ȳ
        c = xp.expand_dims(c, axis=-2) if a.ndim == 1 else c
        ā = folded(xp.matmul(c, conjugate(xp.matrix_transpose(columns))), tuple(rows.shape))
        b̄ = folded(xp.matmul(conjugate(xp.matrix_transpose(rows)), c), tuple(columns.shape))
        return NONE, xp.reshape(ā, tuple(a.shape)), xp.reshape(b̄, tuple(b.shape))

    return product(fn, a, b), product_pullback


# -- shapes ----------------------------------------------------------------------------------------


def reshaped(fn: Any, x: Any, given: Any, named: Any) -> Any:
    """The same entries in the same order, in another shape."""
    return fn(x, *given, **named)


@rrule(reshaped)
def _(fn: Anything, x: Anything, given: Anything, named: Anything):
    xp, shape = x.__array_namespace__(), tuple(x.shape)

    def reshaped_pullback(ȳ):
        return NONE, moved(ȳ, lambda c: xp.reshape(c, shape)), NONE, NONE

    return reshaped(fn, x, given, named), reshaped_pullback


def permuted(fn: Any, x: Any, given: Any, named: Any) -> Any:
    """The axes in another order."""
    return fn(x, *given, **named)


@rrule(permuted)
def _(fn: Anything, x: Anything, given: Anything, named: Anything):
    xp, back = x.__array_namespace__(), order_back(fn, x, given, named)

    def permuted_pullback(ȳ):
        return NONE, moved(ȳ, lambda c: xp.permute_dims(c, back)), NONE, NONE

    return permuted(fn, x, given, named), permuted_pullback


def order_back(fn: Any, x: Any, given: Any, named: Any) -> tuple[int, ...]:
    """The order of axes that undoes a permutation of them."""
    xp = x.__array_namespace__()
    probe = xp.broadcast_to(xp.zeros((), dtype=x.dtype), tuple(range(2, 2 + x.ndim)))
    order = [n - 2 for n in fn(probe, *given, **named).shape]
    return tuple([order.index(i) for i in range(x.ndim)])


def broadcast(fn: Any, x: Any, shape: Any) -> Any:
    """An array, broadcast to a shape."""
    return fn(x, shape)


@rrule(broadcast)
def _(fn: Anything, x: Anything, shape: Anything):
    old = tuple(x.shape)

    def broadcast_pullback(ȳ):
        return NONE, folded(ȳ, old), NONE

    return broadcast(fn, x, shape), broadcast_pullback


def cast(fn: Any, x: Any, given: Any, named: Any) -> Any:
    """Another dtype, or a copy."""
    return fn(x, *given, **named)


@rrule(cast)
def _(fn: Anything, x: Anything, given: Anything, named: Anything):
    def cast_pullback(ȳ):
        return NONE, ȳ, NONE, NONE  # the projection to the space of x casts it back

    return cast(fn, x, given, named), cast_pullback


def joined(fn: Any, xs: Args, axis: Any) -> Any:
    """Arrays along an axis that they have, or along a new one."""
    return fn(xs, axis=axis)


def cut(fn: Any, ȳ: Any, xs: Args, axis: Any) -> Args:
    """The pieces that were joined."""
    xp = ȳ.__array_namespace__()
    if axis is None:
        ȳ, axis = moved(ȳ, lambda c: xp.reshape(c, (-1,))), 0
    before = (slice(None),) * (axis % ȳ.ndim)
    if fn is xp.stack:
        return tuple([piece(ȳ, (*before, i, ...), tuple(x.shape)) for i, x in enumerate(xs)])
    sizes = [math.prod(x.shape) if ȳ.ndim != x.ndim else x.shape[axis % ȳ.ndim] for x in xs]
    starts = [sum(sizes[:i]) for i in range(len(xs) + 1)]
    return tuple(
        [
            piece(ȳ, (*before, slice(*starts[i : i + 2]), ...), tuple(x.shape))
            for i, x in enumerate(xs)
        ]
    )


def piece(ȳ: Any, key: Any, shape: Any) -> Any:
    """A part of a cotangent, in a shape."""
    xp = ȳ.__array_namespace__()
    return moved(ȳ, lambda c: xp.reshape(c[key], shape))


@serves(joined)
def _(f: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    fn, xs, axis = args

    def joined_pullback(ȳ: Any) -> Args:
        if is_zero(ȳ):
            return NONE, NONE, ZERO, NONE
        return NONE, NONE, cut(fn, ȳ, xs, axis), NONE

    return joined(fn, xs, axis), joined_pullback


@pushes(joined)
def _(run: Any, args: Args, tangents: Args, keywords: Any) -> Any:
    fn, xs, axis = args
    dots = [entry(tangents[1], i) for i in range(len(xs))]
    filled = [zeros_like(x) if is_zero(ẋ) else ẋ for x, ẋ in zip(xs, dots, strict=True)]
    return joined(fn, xs, axis), run.each(lambda *each: joined(fn, each, axis), *filled)


def zeros_like(x: Any) -> Any:
    """Zeros of an array's shape and dtype."""
    return x.__array_namespace__().zeros_like(x)


# -- entries ---------------------------------------------------------------------------------------


def taken(x: Any, key: Any) -> Any:
    """The entries at some places, none of which comes twice: by slices, numbers or a mask."""
    return x[key]


@rrule(taken)
def _(x: Anything, key: Anything):
    def taken_pullback(ȳ):
        return masked(put(ȳ, key, x), places(ȳ, key, x)), NONE

    return taken(x, key), taken_pullback


def places(ȳ: Any, key: Any, x: Any) -> Any:
    """Which entries of x are taken, or of their cotangents may be other than zero."""
    xp, where = x.__array_namespace__(), mask_of(ȳ)
    everywhere = xp.zeros_like(ȳ) == 0
    return put(everywhere if where is None else where, key, xp.zeros_like(x) == 1)


def put(ȳ: Any, key: Any, x: Any) -> Any:
    """Zeros like x but for these entries."""
    xp = x.__array_namespace__()
    found = xp.zeros_like(x)
    key = tuple([part for part in key if part is not None]) if isinstance(key, tuple) else key
    found[key] = xp.reshape(ȳ, found[key].shape) if key is not None else ȳ[0, ...]
    return found


@rrule(put)
def _(ȳ: Anything, key: Anything, x: Anything):
    def put_pullback(x̄):
        return taken(x̄, key), NONE, NONE

    return put(ȳ, key, x), put_pullback


def is_plain_key(key: Any) -> bool:
    """Does an index name no entry twice?"""
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, (int, slice))
        or (is_array(part) and kind_of(part) == "b")
        for part in parts
    )


non_differentiable(order_back, is_plain_key, kept, count, zeros_like, places)
