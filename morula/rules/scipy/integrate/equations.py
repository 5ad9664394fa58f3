"""Differential equations: odeint, and solve_ivp by LSODA, whose steps are compiled code.

The other methods of solve_ivp are Python code, which is differentiated: their derivative is that of
the steps that were taken. Here the value is SciPy's; the derivative is that of the same problem
solved by DOP853 or, if that takes many more evaluations, as for stiff problems, by Radau, with the
same tolerances. So it is as accurate as the solution, for parameters in `args=` and captured ones,
initial values and times.
Tests: tests/rules/scipy/test_integrate.py
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from scipy import integrate

from morula.core.extend import called_whole, non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import told_as, without_derivative
from morula.rules.steering import ignore_derivatives

# The function itself, by its own code.
solve_by_code: Any = FunctionType(
    integrate.solve_ivp.__code__,
    integrate.solve_ivp.__globals__,
    "solve_ivp",
    integrate.solve_ivp.__defaults__,
)


@instead_of(integrate.solve_ivp)
def _(
    fun, t_span, y0, method="RK45", t_eval=None, dense_output=False, events=None, vectorized=False,
    args=None, **options,
):  # fmt: skip
    if not is_lsoda(method) or dense_output or events is not None:
        return solve_by_code(
            fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args, **options
        )
    plain = ignore_derivatives(
        partial(
            integrate.solve_ivp, fun, t_span, y0, "LSODA", t_eval, False, None, vectorized, args,
            **options,
        )
    )  # fmt: skip
    times = plain.t if t_eval is None else np.asarray(t_eval)
    tolerances = {k: options[k] for k in ("rtol", "atol") if k in options}
    again = solved_again(fun, t_span, y0, times, args, plain.nfev, tolerances)
    y = told_as(plain.y, again) if plain.success else refused(plain.y, again)
    return type(plain)({**plain, "y": y})


def is_lsoda(method: Any) -> bool:
    """Is it the compiled method?"""
    return method == "LSODA" or method is integrate.LSODA


def solved_again(fun, t_span, y0, times, args, evaluations, tolerances):
    """The solution at some times, by a method that is Python code."""
    problem = (fun, t_span, y0)
    trial = ignore_derivatives(
        partial(integrate.solve_ivp, *problem, method="DOP853", args=args, **tolerances)
    )
    method = "DOP853" if trial.success and trial.nfev < 10 * evaluations + 500 else "Radau"
    return solve_by_code(fun, t_span, y0, method, times, False, None, False, args, **tolerances).y


def refused(y, again):
    """A solution that was not found to its end."""
    what = "scipy.integrate did not reach the end of the interval: its solution has no derivative"
    return without_derivative(y, what, None, np.sum(again))


@instead_of(integrate.odeint)
def _(
    func, y0, t, args=(), Dfun=None, col_deriv=0, full_output=0, ml=None, mu=None, rtol=None, atol=None,
    *options, tfirst=False, **keywords,
):  # fmt: skip
    found, info = ignore_derivatives(
        partial(
            integrate.odeint, func, y0, t, args, Dfun, col_deriv, True, ml, mu, rtol, atol, *options,
            tfirst=tfirst, **keywords,
        )
    )  # fmt: skip
    args = args if isinstance(args, tuple) else (args,)
    t = np.asarray(t)

    def fun(time, y):
        return np.asarray(func(time, y, *args) if tfirst else func(y, time, *args))

    tolerances = {
        "rtol": 1.49e-8 if rtol is None else rtol,
        "atol": 1.49e-8 if atol is None else atol,
    }
    start = np.atleast_1d(np.asarray(y0, float))
    if len(t) < 2 or np.any(np.diff(t) == 0) or np.size(tolerances["rtol"]) > 1:
        again = start  # what follows is refused
        y = without_derivative(found, UNUSUAL, None, np.sum(again))
    else:
        span, count = (t[0], t[-1]), int(info["nfe"][-1])
        y = told_as(found, solved_again(fun, span, start, t, None, count, tolerances).T)
    return (y, info) if full_output else y


UNUSUAL = (
    "scipy.integrate.odeint with repeated times, or with a tolerance for each unknown, has no "
    "derivative here: see scipy.integrate.solve_ivp"
)

called_whole(integrate.solve_ivp, integrate.odeint)
non_differentiable(is_lsoda)
