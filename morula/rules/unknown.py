"""Cotangents for which nobody has a formula: asking for one is an error, never a zero.

Tests: tests/rules/test_unknown.py
"""

from __future__ import annotations

from typing import Any

from morula.core.extend import NotKnown, no_rule, non_differentiable


def unknown(primal: Any, parameter: str) -> Any:
    """The cotangent of a parameter of a function whose derivative by it is not known."""
    reason = f"the derivative by {parameter} is not known"
    return NotKnown(lambda: no_rule(primal, (), reason=reason))


non_differentiable(unknown)
