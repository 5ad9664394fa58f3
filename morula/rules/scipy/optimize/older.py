"""The functions of scipy.optimize that stand for one method each.

They are run with all of their results, and those that were asked for are given.
Tests: tests/rules/scipy/test_optimize_older.py
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from morula.core.extend import UnsupportedError, called_whole, interface, non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import loss_told_as, without_derivative
from morula.rules.scipy.optimize.solvers import (
    CONSTRAINED,
    ROUGHLY,
    as_tuple,
    has_numbers,
    is_at_bounds,
    is_flat,
    solution,
)
from morula.rules.steering import ignore_derivatives

MINIMIZERS: dict[Any, Callable[[Any], bool]] = {  # and whether one has converged
    optimize.fmin: lambda told: told[4] == 0,
    optimize.fmin_powell: lambda told: told[5] == 0,
    optimize.fmin_bfgs: lambda told: told[6] == 0,
    optimize.fmin_cg: lambda told: told[4] == 0,
    optimize.fmin_ncg: lambda told: told[5] == 0,
    optimize.fmin_slsqp: lambda told: told[3] == 0,
    optimize.fmin_l_bfgs_b: lambda told: told[2]["warnflag"] == 0,
    optimize.fmin_tnc: lambda told: told[2] in (0, 1, 2),
    optimize.fmin_cobyla: lambda told: True,
    optimize.brent: lambda told: True,
    optimize.golden: lambda told: True,
    optimize.fminbound: lambda told: told[2] == 0,
}
WITHOUT_LOSS = (optimize.fmin_tnc, optimize.fmin_cobyla)
CONSTRAINTS = ("cons", "eqcons", "f_eqcons", "ieqcons", "f_ieqcons")


def bound(primal: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """All arguments of a call by name, those left out too; an error where Python raises one."""
    found = inspect.signature(primal).bind(*args, **keywords)
    found.apply_defaults()
    return found.arguments


def limits(primal: Any, given: dict[str, Any]) -> Any:
    """The bounds of the unknowns, if there are some."""
    if primal is optimize.fminbound:
        return [(given["x1"], given["x2"])]
    return given.get("bounds") or None


def is_constrained(x: Any, primal: Any, given: dict[str, Any]) -> bool:
    """Is the minimum perhaps where it is because of a constraint or a bound?"""
    constraints = [given[name] for name in CONSTRAINTS if given.get(name) is not None]
    if any([callable(c) or np.size(c) for c in constraints]):
        return True
    how_near = ROUGHLY if primal is optimize.fminbound else 1e-6
    return is_at_bounds(np.atleast_1d(x), limits(primal, given), how_near)


def minimum_of(primal: Any) -> None:
    """Declare a minimiser: the gradient of the loss vanishes at what it finds."""

    @instead_of(primal)
    def _(*args: Any, **keywords: Any) -> Any:
        given = bound(primal, args, keywords)
        f, more = args[0] if args else given["func"], as_tuple(given.get("args", ()))
        asked = bool(given.get("full_output", True))
        told = ignore_derivatives(lambda: run(primal, given))
        x = told[0] if isinstance(told, tuple) else told
        paired = given.get("fprime", 0) is None and not given.get("approx_grad", True)

        def value(x: Any, *args: Any) -> Any:
            return f(x, *args)[0] if paired else f(x, *args)

        def slope(x: Any, *args: Any) -> Any:
            return interface.gradient(value, x, *args)[0]

        if ignore_derivatives(lambda: is_constrained(x, primal, given)):
            x = without_derivative(x, CONSTRAINED, UnsupportedError, value(x, *more))
        else:
            found = MINIMIZERS[primal](told) or is_flat(slope, x, more)
            x = solution(primal.__name__, x, slope, more, found)
        if not isinstance(told, tuple) or not asked:
            return (x, told[-1]) if given.get("retall") else x
        rest = [alone(v, primal, x) for v in told[1:]]
        if primal not in WITHOUT_LOSS:
            rest[0] = loss_told_as(told[1], value(x, *more))
        return (x, *rest)

    called_whole(primal)


def run(primal: Any, given: dict[str, Any]) -> Any:
    """The solver, with all that it tells."""
    if "full_output" in given:
        given = {**given, "full_output": True}
    return primal(**given)


def alone(told: Any, primal: Any, x: Any) -> Any:
    """What a solver tells by the way."""
    if not has_numbers(told):
        return told
    what = f"what scipy.optimize.{primal.__name__} tells besides has no derivative"
    return without_derivative(told, what, None, x)


non_differentiable(limits, is_constrained)
for _primal in MINIMIZERS:
    minimum_of(_primal)

# -- roots -----------------------------------------------------------------------------------------

ROOTS = (
    optimize.anderson,
    optimize.broyden1,
    optimize.broyden2,
    optimize.diagbroyden,
    optimize.excitingmixing,
    optimize.linearmixing,
    optimize.newton_krylov,
)


def root_of(primal: Any) -> None:
    """Declare a solver: the function vanishes at what it finds, or it raises."""

    @instead_of(primal)
    def _(F: Any, xin: Any, *settings: Any, **keywords: Any) -> Any:
        x = ignore_derivatives(lambda: primal(F, xin, *settings, **keywords))
        return solution(primal.__name__, x, F, (), True)

    called_whole(primal)


for _primal in ROOTS:
    root_of(_primal)
del _primal
