"""Cotangents that are structurally zero at some entries: the branch of `where` that is not taken.

What NumPy's arrays have in rules/arrays/structural.py. The arrays of a library cannot be marked, so the
running reverse pass remembers where a cotangent may be other than zero. Its product with anything is
zero elsewhere; a sum with another is not remembered.
Tests: tests/interop/test_array_api.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from morula.core.extend import NONE, adjoint_if_any, beside, context, non_differentiable, rrule
from morula.rules.numbers import Anything


class Mask:
    """Where a cotangent may be other than zero; None: nothing is known."""

    def __init__(self, x̄: Any) -> None:
        self.where: Any = None


def masked(x̄: Any, where: Any) -> Any:
    """`x̄` where a condition holds, and structural zeros elsewhere, even if `x̄` is infinite there."""
    xp = x̄.__array_namespace__()
    where = xp.broadcast_to(where, tuple(x̄.shape))
    found = xp.where(where, x̄, xp.zeros_like(x̄))
    remember(found, where)
    return found


def remember(x̄: Any, where: Any) -> None:
    """A cotangent that holds zeros where the condition does not: they are structural."""
    if context.is_running():
        beside(x̄, Mask).where = where


@rrule(masked)
def _(x̄: Anything, where: Anything):
    def masked_pullback(ȳ):
        return masked(ȳ, where), NONE

    return masked(x̄, where), masked_pullback


def mask_of(x̄: Any) -> Any:
    """Where a cotangent may be other than zero; None: nothing is known."""
    found = adjoint_if_any(x̄)
    return found.where if type(found) is Mask else None


def times(x̄: Any, slope: Any) -> Any:
    """The product, which is zero where the cotangent is structurally zero."""
    if isinstance(slope, int) and slope == 1:
        return x̄
    where = mask_of(x̄)
    return x̄ * slope if where is None else masked(x̄ * slope, where)


def moved(x̄: Any, move: Callable[[Any], Any]) -> Any:
    """The cotangent with its entries at other places."""
    where = mask_of(x̄)
    return move(x̄) if where is None else masked(move(x̄), move(where))


non_differentiable(mask_of, remember)
