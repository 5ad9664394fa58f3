"""Forward mode of implicit functions: the tangent of a solution is the solution of a linear equation.

For R(z, p) = 0 it is (∂R/∂z) ż = -(∂R/∂p) ṗ. The right hand side is the pushforward of the residual
with z held, so what the residual captured has its part in it. The tangent of ż solves an equation with
the same slopes, so all orders in all mixtures of the modes are served.
Tests: tests/mixed_mode/test_implicit.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core import general
from morula.core.cotangents import ZERO, is_zero
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import push, pushes
from morula.mixed_mode.pushforward import jvp
from morula.mixed_mode.tangents import Pass
from morula.mixed_mode.unfollowed import lose_changes
from morula.rules.arrays.bodies import instead_of
from morula.rules.implicit import (
    along,
    check_residual,
    check_unchanged,
    linearly_solved,
    slopes,
    solved,
    transposed_slopes,
)


@pushes(solved)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if run.primitive is not None:
        return NotImplemented
    _, residual, *params = args
    z = solved(*args)
    before = general.held_by((residual, *params))
    r, ṙ = push(run, residual, tangents[1], (z, *params), (ZERO, *tangents[2:]))
    check_residual(r, z)
    if is_zero(ṙ):
        return z, ZERO
    M = slopes(z, transposed_slopes(z, residual, tuple(params)))
    lose_changes(run, before)  # z was a constant
    return z, run.each(lambda c: linearly_solved(along, M, -np.asarray(c), z, residual, *params), ṙ)


@pushes(linearly_solved)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if run.primitive is not None:
        return NotImplemented
    way, M, b, z, residual, *params = args
    v = linearly_solved(*args)
    again, ẏ = push(run, way, ZERO, (v, z, residual, *params), (ZERO, *tangents[3:]))
    check_unchanged(again, b)
    rest = run.each(lambda ḃ, ṙ: ḃ - ṙ, tangents[2], ẏ)
    if is_zero(rest):
        return v, rest
    return v, run.each(lambda c: linearly_solved(way, M, c, z, residual, *params), rest)


@instead_of(along)
def along_by_jvp(v: Any, z: Any, residual: Any, *params: Any) -> Any:
    """(∂R/∂z) v; the plain one, by two transpositions, is dearer to differentiate."""
    return jvp(lambda z: residual(z, *params), (z,), (v,))[1]
