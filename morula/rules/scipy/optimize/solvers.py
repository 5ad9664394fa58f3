"""Rules of scipy.optimize: what a solver finds is defined by an equation, not by its steps.

    root, fsolve, brentq, newton, …:     F(x, p) = 0
    minimize, minimize_scalar:           ∂f/∂x = 0
    least_squares, leastsq, curve_fit:   Jᵀ r = 0

So the derivative does not depend on the start, nor on the number of steps (see rules/implicit.py);
the arguments in `args=` and what the functions captured are parameters. Solvers run as they are. A
solution at a bound or a constraint, one that was not found, and what else a solver tells (Jacobians,
estimates of Hessians) have no derivative here: asking for it is an error.
Tests: tests/rules/scipy/test_optimize.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize

from morula.core.extend import (
    ConvergenceError,
    UnsupportedError,
    called_whole,
    interface,
    non_differentiable,
)
from morula.rules.arrays.bodies import instead_of
from morula.rules.implicit import solved
from morula.rules.scipy.answers import loss_told_as, told_as, without_derivative
from morula.rules.steering import ignore_derivatives

# -- solutions -------------------------------------------------------------------------------------


def not_found(name: str) -> str:
    """What is said where a solver ended without a solution."""
    return (
        f"scipy.optimize.{name} did not converge: what it returned solves no equation, and so has no "
        "derivative. Begin nearer to the solution, or look at its options"
    )


def implicit(x: Any, residual: Any, args: Any) -> Any:
    """The solution x, an array or a number, of residual(x, *args) = 0."""
    shape = np.shape(x)
    found = np.ravel(np.asarray(x, complex if np.iscomplexobj(x) else float))

    def solve(*args: Any) -> Any:
        return found

    def of_vector(v: Any, *args: Any) -> Any:
        return np.ravel(residual(np.reshape(v, shape) if shape else v[0], *args))

    z = solved(solve, of_vector, *args)
    if isinstance(x, np.ndarray):
        return np.reshape(z, shape)
    return type(x)(z[0]) if type(x) in (float, complex) else z[0]


def solution(name: str, x: Any, residual: Any, args: Any, found: Any) -> Any:
    """The same, whose derivative is an error if it was not found."""
    if not found:
        witness = np.ravel(residual(x, *as_tuple(args)))
        return without_derivative(x, not_found(name), ConvergenceError, witness)
    return implicit(x, residual, as_tuple(args))


def as_tuple(args: Any) -> tuple[Any, ...]:
    """SciPy takes a single further argument without parentheses."""
    return args if isinstance(args, tuple) else (args,)


def result(plain: Any, name: str, x: Any, **entries: Any) -> Any:
    """The result of a solver, with the entries that have derivatives."""
    entries["x"] = x
    for key, told in plain.items():
        if key not in entries:
            entries[key] = untold(told, f"{key!r} of the result of scipy.optimize.{name}", x)
    return type(plain)(entries)


def untold(told: Any, what: str, x: Any) -> Any:
    """What a solver tells without a derivative, results within results too."""
    if isinstance(told, optimize.OptimizeResult):
        return type(told)({key: untold(part, what, x) for key, part in told.items()})
    return (
        without_derivative(told, f"{what} has no derivative", None, x)
        if has_numbers(told)
        else told
    )


def has_numbers(x: Any) -> bool:
    """Is it a real number or an array of such?"""
    return isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


non_differentiable(not_found, has_numbers)

# -- roots -----------------------------------------------------------------------------------------


@instead_of(optimize.root)
def _(fun, x0, args=(), method="hybr", jac=None, tol=None, callback=None, options=None):
    plain = ignore_derivatives(
        lambda: optimize.root(fun, x0, args, method, jac, tol, callback, options)
    )

    def residual(x, *args):
        return fun(x, *args)[0] if jac is True else fun(x, *args)

    x = solution("root", plain.x, residual, args, plain.success)
    return result(plain, "root", x=x)


@instead_of(optimize.fsolve)
def _(func, x0, args=(), fprime=None, full_output=0, **options):
    x, info, found, message = ignore_derivatives(
        lambda: optimize.fsolve(func, x0, args, fprime, True, **options)
    )
    x = solution("fsolve", x, func, args, found == 1)
    return (x, info, found, message) if full_output else x


def _bracketing(primal: Any, name: str) -> None:
    @instead_of(primal)
    def _(f, a, b, args=(), *options, **keywords):
        found = ignore_derivatives(lambda: primal(f, a, b, args, *options, **keywords))
        if not isinstance(found, tuple):
            return solution(name, found, f, args, True)
        x, report = found
        return solution(name, x, f, args, report.converged), report


for _name in ("brentq", "brenth", "bisect", "ridder", "toms748"):
    _bracketing(getattr(optimize, _name), _name)


@instead_of(optimize.root_scalar)
def _(f, args=(), *options, fprime=None, **keywords):
    plain = ignore_derivatives(
        lambda: optimize.root_scalar(f, args, *options, fprime=fprime, **keywords)
    )

    def residual(x, *args):
        return f(x, *args)[0] if fprime is True else f(x, *args)

    plain["root"] = solution("root_scalar", plain.root, residual, args, plain.converged)
    return plain


@instead_of(optimize.newton)
def _(func, x0, fprime=None, args=(), *options, **keywords):
    found = ignore_derivatives(
        lambda: optimize.newton(func, x0, fprime, args, *options, **keywords)
    )
    full = isinstance(found, tuple)
    x, converged = (found[0], report_of(found[1])) if full else (found, True)
    x = solution("newton", x, func, tuple(args), converged)
    return (x, *found[1:]) if full else x


def report_of(told: Any) -> bool:
    """Have all entries converged?"""
    return bool(np.all(getattr(told, "converged", told)))


non_differentiable(report_of)


@instead_of(optimize.fixed_point)
def _(func, x0, args=(), *options, **keywords):
    found = ignore_derivatives(lambda: optimize.fixed_point(func, x0, args, *options, **keywords))
    return solution("fixed_point", found, lambda x, *args: func(x, *args) - x, tuple(args), True)


# -- minima ----------------------------------------------------------------------------------------


@instead_of(optimize.minimize)
def _(
    fun, x0, args=(), method=None, jac=None, hess=None, hessp=None, bounds=None, constraints=(),
    tol=None, callback=None, options=None,
):  # fmt: skip
    plain = ignore_derivatives(
        lambda: optimize.minimize(
            fun, x0, args, method, jac, hess, hessp, bounds, constraints, tol, callback, options
        )
    )

    def value(x, *args):
        return fun(x, *args)[0] if jac is True else fun(x, *args)

    def slope(x, *args):
        if callable(jac):
            return jac(x, *args)
        return fun(x, *args)[1] if jac is True else interface.gradient(fun, x, *args)[0]

    if is_at_bounds(plain.x, bounds) or has_constraints(constraints):
        witness = value(plain.x, *as_tuple(args))
        x = without_derivative(plain.x, CONSTRAINED, UnsupportedError, witness)
    else:
        x = solution(
            "minimize", plain.x, slope, args, plain.success or is_flat(slope, plain.x, args)
        )
    loss = loss_told_as(plain.fun, value(x, *as_tuple(args)))
    return result(plain, "minimize", x=x, fun=loss)


CONSTRAINED = (
    "the minimum that scipy.optimize found is at a bound, under constraints, or that of another loss: "
    "it is not where the gradient vanishes, and its derivative is not known here. See implicit_rule "
    "for equations of your own"
)


def has_constraints(constraints: Any) -> bool:
    """Were constraints given?"""
    return not isinstance(constraints, (tuple, list)) or len(constraints) > 0


ROUGHLY = 1e-4  # how near to a bound the solvers of one unknown end that never reach it


def is_at_bounds(x: Any, bounds: Any, how_near: float = 1e-6) -> bool:
    """Is an unknown at one of its bounds?"""
    if bounds is None:
        return False
    if isinstance(bounds, optimize.Bounds):
        low, high = bounds.lb, bounds.ub
    else:
        low, high = zip(*bounds, strict=True)
    low = np.array([-np.inf if b is None else b for b in np.broadcast_to(low, np.shape(x))], float)
    high = np.array([np.inf if b is None else b for b in np.broadcast_to(high, np.shape(x))], float)
    near = how_near * np.maximum(1, np.abs(x))
    return bool(np.any((x - low <= near) | (high - x <= near)))


def is_flat(slope: Any, x: Any, args: Any) -> bool:
    """Does the gradient vanish, though the solver wanted more than rounding allows?"""
    return bool(np.max(np.abs(slope(x, *as_tuple(args)))) < 1e-5)


non_differentiable(has_constraints, is_at_bounds, is_flat)


@instead_of(optimize.minimize_scalar)
def _(fun, bracket=None, bounds=None, args=(), method=None, tol=None, options=None):
    plain = ignore_derivatives(
        lambda: optimize.minimize_scalar(fun, bracket, bounds, args, method, tol, options)
    )

    def slope(x, *args):
        return interface.gradient(fun, x, *args)[0]

    x = plain.x
    if bounds is not None and is_at_bounds(np.array([x]), [bounds], ROUGHLY):
        x = without_derivative(x, CONSTRAINED, UnsupportedError, fun(x, *as_tuple(args)))
    else:
        x = solution("minimize_scalar", x, slope, args, plain.success)
    return result(
        plain, "minimize_scalar", x=x, fun=loss_told_as(plain.fun, fun(x, *as_tuple(args)))
    )


# -- least squares ---------------------------------------------------------------------------------


@instead_of(optimize.least_squares)
def _(fun, x0, jac="2-point", bounds=(-np.inf, np.inf), *options, args=(), kwargs=None, **keywords):
    kwargs = kwargs or {}
    plain = ignore_derivatives(
        lambda: optimize.least_squares(
            fun, x0, jac, bounds, *options, args=args, kwargs=kwargs, **keywords
        )
    )
    robust = keywords.get("loss", "linear") != "linear" or len(options) > 5
    if robust or np.any(plain.active_mask):
        witness = np.ravel(fun(plain.x, *as_tuple(args), **kwargs))
        x = without_derivative(plain.x, CONSTRAINED, UnsupportedError, witness)
        return result(plain, "least_squares", x)
    x = solution(
        "least_squares", plain.x, normal_equations, (fun, as_tuple(args), kwargs), plain.success
    )
    r = np.atleast_1d(fun(x, *as_tuple(args), **kwargs))
    cost = told_as(plain.cost, 0.5 * np.sum(r * r))
    return result(plain, "least_squares", x=x, fun=told_as(plain.fun, r), cost=cost)


def normal_equations(x: Any, fun: Any, args: Any, kwargs: Any) -> Any:
    """Jᵀ r, the gradient of half the sum of squares."""

    def half(x: Any) -> Any:
        r = np.ravel(fun(x, *args, **kwargs))
        return 0.5 * np.sum(r * r)

    return interface.gradient(half, x)[0]


@instead_of(optimize.leastsq)
def _(func, x0, args=(), Dfun=None, full_output=False, *options, **keywords):
    found = ignore_derivatives(
        lambda: optimize.leastsq(func, x0, args, Dfun, True, *options, **keywords)
    )
    x, covariance, info, message, flag = found
    x = solution("leastsq", x, normal_equations, (func, as_tuple(args), {}), flag in (1, 2, 3, 4))
    if not full_output:
        return x, flag
    what = "the covariance of scipy.optimize.leastsq has no derivative"
    covariance = None if covariance is None else without_derivative(covariance, what, None, x)
    return x, covariance, info, message, flag


called_whole(
    optimize.root, optimize.fsolve, optimize.brentq, optimize.brenth, optimize.bisect, optimize.ridder,
    optimize.toms748, optimize.root_scalar, optimize.newton, optimize.fixed_point, optimize.minimize,
    optimize.minimize_scalar, optimize.least_squares, optimize.leastsq,
)  # fmt: skip
