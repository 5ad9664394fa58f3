"""Ways to declare the functions of scipy.special, which are elementwise and broadcast.

    elementwise(f)(lambda y, x: ∂y/∂x)              of one argument
    partials(f, ∂₁, ∂₂, …)                          of several: functions of y and the arguments
    several_results(f, …)(lambda ys, *args: …)      with several results: ∂ of each by the last one
    by_definition(f, g)                             f equals g, made of functions with rules
    inverse_of(f, g, i, j)                          y = f(…) solves g(…, y at place i, …) = argument j

In place of a derivative may stand CONSTANT (a count, an order that SciPy takes as a whole number),
UNKNOWN (nobody has a formula, and asking for it is an error) or ORDER (constant if it is an integer,
unknown if it is real). Derivatives are those of holomorphic functions.
Tests: tests/rules/scipy/test_special.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    NoTangent,
    Thunk,
    call,
    is_zero,
    non_differentiable,
    rrule,
    type_stable,
    unthunk,
)
from morula.rules.arrays.broadcasting import match, part, shape_of, widened
from morula.rules.arrays.elementwise import elementwise
from morula.rules.arrays.sequences import takes_sequences
from morula.rules.arrays.types import Anything, Numeric
from morula.rules.unknown import unknown

CONSTANT = "constant"
UNKNOWN = "unknown"
ORDER = "order"
ORDINALS = ("first", "second", "third", "fourth", "fifth")


def cotangent(primal, i, derivative, ȳ, y, args):
    """That of argument i, in its shape."""
    if derivative is CONSTANT:
        return NoTangent()
    if derivative is UNKNOWN:
        return unknown(primal, f"its {ORDINALS[i]} argument")
    if derivative is ORDER:
        return by_order(primal, i, args[i])
    # numbers of NumPy divide by zero
    values = [np.float64(a) if type(a) is float else widened(a) for a in args]
    return match(ȳ * np.conjugate(derivative(y, *values)), shape_of(args[i]))


def by_order(primal, i, n):
    """The cotangent of an order, which has one only where functions are defined between integers."""
    if np.result_type(n).kind in "biu":
        return NoTangent()
    return unknown(primal, f"its {ORDINALS[i]} argument")


non_differentiable(by_order)


def partials(primal: Any, *derivatives: Any) -> None:
    """Declare a function of two to five arguments by its partial derivatives."""
    _BY_ARITY[len(derivatives)](primal, derivatives)
    type_stable(primal)


def _two(primal, d):
    @rrule(primal)
    def _(a: Numeric, b: Numeric):
        y = primal(a, b)

        def special_pullback(ȳ):
            args = (a, b)
            return (
                cotangent(primal, 0, d[0], ȳ, y, args),
                cotangent(primal, 1, d[1], ȳ, y, args),
            )

        return y, special_pullback


def _three(primal, d):
    @rrule(primal)
    def _(a: Numeric, b: Numeric, c: Numeric):
        y = primal(a, b, c)

        def special_pullback(ȳ):
            args = (a, b, c)
            return (
                cotangent(primal, 0, d[0], ȳ, y, args),
                cotangent(primal, 1, d[1], ȳ, y, args),
                cotangent(primal, 2, d[2], ȳ, y, args),
            )

        return y, special_pullback


def _four(primal, d):
    @rrule(primal)
    def _(a: Numeric, b: Numeric, c: Numeric, e: Numeric):
        y = primal(a, b, c, e)

        def special_pullback(ȳ):
            args = (a, b, c, e)
            return (
                cotangent(primal, 0, d[0], ȳ, y, args),
                cotangent(primal, 1, d[1], ȳ, y, args),
                cotangent(primal, 2, d[2], ȳ, y, args),
                cotangent(primal, 3, d[3], ȳ, y, args),
            )

        return y, special_pullback


_BY_ARITY = {2: _two, 3: _three, 4: _four}


def several_results(primal: Any, *before: Any) -> Any:
    """Declare a function with several results by their derivatives by the last argument.

    `before` says of each other argument whether it is CONSTANT or UNKNOWN.
    """

    def register(derivatives):
        @rrule(primal)
        def _(*args: Numeric):
            ys = primal(*args)

            def special_pullback(ȳ):
                slopes = derivatives(ys, *[widened(a) for a in args])
                x̄: Any = 0.0
                for i in range(len(ys)):
                    bar = part(ȳ, i)
                    if not is_zero(bar):
                        x̄ = x̄ + bar * np.conjugate(slopes[i])
                last = match(x̄, shape_of(args[-1]))
                others = [cotangent(primal, i, kind, None, None, args) for i, kind in others_of]
                return (*others, last)

            return ys, special_pullback

        return derivatives

    others_of = tuple(enumerate(before))
    return register


def by_definition(primal: Any, definition: Any) -> None:
    """Declare a function by another one that has the same values, of functions with rules."""

    @rrule(primal)
    def _(*args: Numeric):
        def special_pullback(ȳ):
            shape = np.shape(ȳ)
            wide = [np.broadcast_to(np.asarray(widened(a)), shape) for a in args]
            _, back = call(definition, *wide)
            bars = back(ȳ if isinstance(ȳ, np.ndarray) else np.asarray(ȳ))[1:]
            return tuple([over(x̄, x) for x̄, x in zip(bars, args, strict=True)])

        return primal(*args), special_pullback


def over(x̄, x):
    """A wide cotangent in the shape of its argument."""
    x̄ = unthunk(x̄)
    return x̄ if is_zero(x̄) else match(x̄, shape_of(x))


def inverse_of(primal: Any, function: Any, place: int, value: int) -> None:
    """Declare the inverse of a function by the implicit function theorem.

    y = primal(args) solves function(...) = args[value]; the function takes the other arguments in
    their order, with y at `place`. UNKNOWN partial derivatives of it stay so.
    """

    @rrule(primal)
    def _(*args: Numeric):
        y = primal(*args)

        def special_pullback(ȳ):
            shape = np.shape(ȳ)
            # copies: in memory that is written to, slopes would count as cotangents
            wide = [np.array(np.broadcast_to(widened(a), shape)) for a in args]
            level = wide.pop(value)
            wide.insert(place, np.array(np.broadcast_to(y, shape)))
            _, back = call(function, *wide)
            slopes = [*back(np.ones(shape, np.result_type(level, float)))[1:]]
            slope = slopes.pop(place)
            p̄ = ȳ / (np.zeros(shape) if is_zero(slope) else slope)  # zero where there is no entry
            bars = [
                Thunk(lambda s=s, x=x: over(-p̄ * s, x)) for s, x in _others(slopes, args, value)
            ]
            bars.insert(value, match(p̄, shape_of(args[value])))
            return tuple(bars)

        return y, special_pullback


def _others(slopes, args, value):
    return zip(slopes, [a for i, a in enumerate(args) if i != value], strict=True)


__all__ = [
    "CONSTANT",
    "ORDER",
    "UNKNOWN",
    "Anything",
    "by_definition",
    "elementwise",
    "inverse_of",
    "partials",
    "several_results",
    "takes_sequences",
]
