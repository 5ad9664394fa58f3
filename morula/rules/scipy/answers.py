"""What SciPy's solvers answer: values that are found in one way and differentiated in another.

Tests: tests/rules/scipy/test_optimize.py, tests/rules/scipy/test_integrate.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    NotKnown,
    UnsupportedError,
    called_whole,
    frule,
    is_zero,
    rrule,
)
from morula.rules.arrays.types import Anything


def without_derivative(x: Any, what: str, error: Any, witness: Any) -> Any:
    """x itself, whose derivative is an error; `witness` depends on what x depends on.

    Without an error of its own: what a solver tells by the way, whose tangent is NaN.
    """
    return x


called_whole(without_derivative)


@rrule(without_derivative)
def _(x: Anything, what: Anything, error: Anything, witness: Anything):
    def refusing_pullback(x̄):
        return NONE, NONE, NONE, nothing(x̄, what, error, witness)

    return without_derivative(x, what, error, witness), refusing_pullback


def nothing(x̄: Any, what: str, error: Any, witness: Any) -> Any:
    """Zeros for the witness if no cotangent has come; else the error."""
    if np.any(np.not_equal(x̄, 0)):
        raise (error or UnsupportedError)(what)
    return witness * 0.0


@rrule(nothing)
def _(x̄: Anything, what: Anything, error: Anything, witness: Anything):
    def nothing_pullback(ẇ):
        """In forward mode, which transposes: a tangent has come."""
        if not np.any(np.not_equal(ẇ, 0)):
            return ZERO, NONE, NONE, ZERO
        if error is not None:
            raise error(what)
        return np.full(np.shape(x̄), np.nan), NONE, NONE, ZERO

    return nothing(x̄, what, error, witness), nothing_pullback


@frule(without_derivative)
def _(x: Anything, what: Anything, error: Anything, witness: Anything):
    def refusing_pushforward(ẋ, *others):
        if is_zero(others[-1]):
            return ZERO
        if error is not None:
            raise error(what)
        return x * np.nan

    return x, refusing_pushforward


def told_as(value: Any, derived: Any) -> Any:
    """The value that a solver tells, whose derivative is that of `derived`."""
    return copied(value)


def copied(value: Any) -> Any:
    """The value; what is written to an array later is not written to what the solver gave."""
    return value.copy() if isinstance(value, np.ndarray) else value


called_whole(told_as)


@rrule(told_as)
def _(value: Anything, derived: Anything):
    def told_pullback(ȳ):
        return NONE, ȳ

    return told_as(value, derived), told_pullback


@frule(told_as)
def _(value: Anything, derived: Anything):
    def told_pushforward(v̇, ḋ):
        return ḋ

    return told_as(value, derived), told_pushforward


def loss_told_as(told: Any, loss: Any) -> Any:
    """The loss that a minimiser tells: a number, also where the function gives arrays of one."""
    return told_as(
        told, loss if np.shape(loss) == np.shape(told) else np.reshape(loss, np.shape(told))
    )


def refused(value: Any, what: str, *data: Any) -> Any:
    """The value and its derivative; asking for that by one of the data is an error."""
    return copied(value)


called_whole(refused)


@rrule(refused)
def _(value: Anything, what: Anything, *data: Anything):
    def refused_pullback(ȳ):
        if not np.any(np.not_equal(ȳ, 0)):
            return (ȳ, NONE, *[ZERO] * len(data))
        return (ȳ, NONE, *[NotKnown(lambda: UnsupportedError(what))] * len(data))

    return refused(value, what, *data), refused_pullback


@frule(refused)
def _(value: Anything, what: Anything, *data: Anything):
    def refused_pushforward(v̇, ẇ, *dots):
        if any(not is_zero(ẋ) and np.any(np.not_equal(ẋ, 0)) for ẋ in dots):
            return NotKnown(lambda: UnsupportedError(what))
        return v̇

    return refused(value, what, *data), refused_pushforward
