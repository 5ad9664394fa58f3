"""Forward mode of implicit functions: the tangent of a solution is the solution of a linear equation.

For R(z, p) = 0 it is (∂R/∂z) ż = -(∂R/∂p) ṗ. The right hand side is the pushforward of the residual
with z held, so what the residual captured has its part in it; ∂R/∂z is applied by `jvp`. The equation
of ż is differentiated as that of z is, so all orders in all mixtures of the modes are served.
Tests: tests/mixed_mode/test_implicit.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.cotangents import ZERO, is_zero
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import push, pushes
from morula.mixed_mode.pushforward import jvp
from morula.mixed_mode.tangents import Pass
from morula.rules.implicit import check_residual, solved, solved_linear


@pushes(solved)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if run.primitive is not None:
        return NotImplemented
    _, residual, *params = args
    z = solved(*args)
    r, ṙ = push(run, residual, tangents[1], (z, *params), (ZERO, *tangents[2:]))
    check_residual(r, z)
    if is_zero(ṙ):
        return z, ZERO
    return z, solved(solve_tangent, tangent_residual, ṙ, z, residual, *params)


def along(residual: Any, z: Any, params: tuple[Any, ...], ż: Any) -> Any:
    """(∂R/∂z) ż."""
    return jvp(lambda z: residual(z, *params), (z,), (ż,))[1]


def tangent_residual(ż: Any, ṙ: Any, z: Any, residual: Any, *params: Any) -> Any:
    """(∂R/∂z) ż + Ṙ."""
    return along(residual, z, params, ż) + ṙ


def solve_tangent(ṙ: Any, z: Any, residual: Any, *params: Any) -> Any:
    """The ż with (∂R/∂z) ż = -Ṙ."""
    return solved_linear(lambda v: along(residual, z, params, v), -np.asarray(ṙ), z)
