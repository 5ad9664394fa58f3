"""Roots that SciPy has found, as functions of what they are the roots of.

Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import UnsupportedError, non_differentiable
from morula.rules.steering import ignore_derivatives


def refined(
    difference: Callable[[Any], Any], slope: Callable[[Any], Any], z: Any, left_out: Any = False
) -> Any:
    """Two of Newton's steps from z, which depend on the equation as the roots do up to order three."""
    s = ignore_derivatives(z)
    for _ in range(2):
        steep = slope(s)
        check_slopes(ignore_derivatives(steep), left_out)
        s = s - difference(s) / np.where(left_out, 1.0, steep)
    return s


def check_slopes(steep: Any, left_out: Any) -> None:
    """A root where the function is level has no derivative."""
    if np.any((steep == 0) & ~np.asarray(left_out)):
        raise UnsupportedError(
            "a multiple root has no derivative: it appears or vanishes when the spline changes"
        )


non_differentiable(check_slopes)
