"""Functions that an equation defines: fixed points, and solvers of the user's own.

R(z, p) = 0 defines z(p), however it was found. For a cotangent z̄,

    (∂R/∂z)ᵀ λ = z̄,      p̄ = -(∂R/∂p)ᵀ λ

(implicit function theorem; Christianson, Reverse accumulation and attractive fixed points, Optim.
Methods Softw. 3, 1994). λ is itself defined by an equation, linear in λ, whose
derivatives are solutions of such equations with the same ∂R/∂z: that is put together once, and serves
all orders. Unknowns are vectors here, complex ones as their real and imaginary parts.
Tests: tests/rules/test_implicit.py
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    ConvergenceError,
    UnsupportedError,
    call,
    called_whole,
    general,
    interface,
    is_zero,
    non_differentiable,
    unthunk,
)
from morula.rules.arrays.bodies import instead_of, taking_memory
from morula.rules.calls import serves
from morula.rules.steering import changed_since, ignore_derivatives, refuse_reached
from morula.rules.vectors import ravel


def fixed_point(
    f: Callable[..., Any], x0: Any, *params: Any, tol: float | None = None, max_steps: int = 10_000
) -> Any:
    """The x with `x = f(x, *params)`, by iteration from x0; its derivative is that of the equation.

    So the derivative does not depend on how many steps were taken, nor on x0, and is right where the
    iteration started at the solution. Variables that `f` captured count as parameters too. x is a
    number, an array, or a structure of these (see `ravel`).

    Args:
        f: function of x and the parameters that gives something like x.
        x0: where to begin.
        params: further arguments of `f`.
        tol: the iteration ends when no number changes by more than `tol · max(1, max(abs(x)))`; about
            3e-13 in double precision if it is not given.
        max_steps: how many steps are taken at most.
    Raises:
        ConvergenceError: the iteration did not end, or the equation does not determine x.
        ValueError: `f` gives something of another size than x0.

    >>> import math
    >>> from morula import gradient
    >>> fixed_point(lambda x, a: (x + a / x) / 2, 1.0, 2.0)
    1.41421356
    >>> gradient(lambda a: fixed_point(lambda x, a: (x + a / x) / 2, 1.0, a), 2.0)
    (0.35355339,)
    """
    start, unravel = ravel(x0)

    def residual(v: Any, *params: Any) -> Any:
        return v - ravel(f(unravel(v), *params))[0]

    def solve(*params: Any) -> Any:
        return iterate(f, unravel, start, params, tol, max_steps)

    return unravel(solved(solve, residual, *params))


def iterate(
    f: Any, unravel: Any, x: Any, params: tuple[Any, ...], tol: float | None, max_steps: int
) -> Any:
    """The vector at which the iteration stands still."""
    tol = np.finfo(x.dtype).eps ** 0.8 if tol is None else tol
    step = np.inf
    for _ in range(max_steps):
        new = ravel(f(unravel(x), *params))[0]
        check_step(new, x)
        step = np.max(np.abs(new - x), initial=0.0)
        x = new.astype(x.dtype)
        if not np.isfinite(step):
            raise ConvergenceError(
                "the iteration of fixed_point ran into a number that is not finite"
            )
        if step <= tol * np.max(np.abs(x), initial=1.0):
            return x
    raise ConvergenceError(
        f"fixed_point did not converge in {max_steps} steps: the last one was {step:.3g}. Begin nearer "
        "to the solution, damp f, or set max_steps= or tol="
    )


def check_step(new: Any, old: Any) -> None:
    """Does f give something like its argument?"""
    if new.shape != old.shape:
        raise ValueError(f"fixed_point: f gives {new.size} numbers for an x of {old.size}")
    if new.dtype.kind == "c" and old.dtype.kind != "c":
        raise ValueError(
            "fixed_point: f gives complex numbers for a real x: begin with a complex x0"
        )


def implicit_rule(residual: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Declare that a solver finds z with `residual(z, *params) = 0`, the equation to differentiate.

    `@implicit_rule(residual)` above `def solver(*params, **options)`, which returns z: a number, an
    array or a structure of these (see `ravel`), of as many numbers as the residual. The solver may do
    anything; it is run and not looked into. Keyword arguments that `residual` takes as well count as
    parameters, the others as options of the solver, without derivative. What `residual` captured
    counts as a parameter.

    Raises:
        ConvergenceError: at a differentiated call, where the residual does not determine z.

    >>> from scipy.optimize import brentq
    >>> from morula import gradient
    >>> def residual(x, a):
    ...     return x**3 + a * x - 1
    >>> @implicit_rule(residual)
    ... def root(a, tol=1e-12):
    ...     return brentq(residual, 0, 1, args=(a,), xtol=tol)
    >>> gradient(root, 2.0)
    (-0.1732702,)
    """
    parameters = inspect.signature(residual).parameters

    def decorate(solver: Callable[..., Any]) -> Any:
        @functools.wraps(solver)
        def solution(*params: Any, **keywords: Any) -> Any:
            return solver(*params, **keywords)

        called_whole(solution)

        @instead_of(solution)
        def _(*args: Any, **kwargs: Any) -> Any:
            named = [key for key in kwargs if key in parameters]
            options = {key: x for key, x in kwargs.items() if key not in named}
            values = (*args, *[kwargs[key] for key in named])
            return solution_of(solver, residual, named, options, values)

        return solution

    return decorate


def solution_of(
    solver: Any, residual: Any, named: list[str], options: dict[str, Any], values: tuple[Any, ...]
) -> Any:
    """What the solver finds, as a function of parameters: those in `named` stand last."""
    n = len(values) - len(named)

    def run() -> Any:
        keywords = dict(zip(named, values[n:], strict=True))
        return solver(*values[:n], **keywords, **options)

    found, unravel = ravel(ignore_derivatives(run))

    def residual_of_vector(v: Any, *values: Any) -> Any:
        keywords = dict(zip(named, values[n:], strict=True))
        return ravel(residual(unravel(v), *values[:n], **keywords))[0]

    def solve(*values: Any) -> Any:
        return found

    return unravel(solved(solve, residual_of_vector, *values))


# -- the rule --------------------------------------------------------------------------------------


def solved(solve: Any, residual: Any, *params: Any) -> Any:
    """The vector z = solve(*params), at which residual(z, *params) = 0."""
    return solve(*params)


called_whole(solved)


@serves(solved)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    solve, residual, *params = args
    z = solved(solve, residual, *params)
    before = general.held_by((residual, *params))
    r, back = call(residual, z, *params)
    check_residual(r, z)
    by_unknowns = transposed_slopes(z, residual, params)
    changed = changed_since(before)  # with z as a constant

    def solved_pullback(z̄: Any) -> tuple[Any, ...]:
        refuse_reached(changed)
        if is_zero(z̄):
            return (ZERO,) * (1 + len(args))
        M = slopes(z, by_unknowns)
        λ = linearly_solved(transposed, M, unthunk(z̄), z, residual, *params)
        _, *bars = back(-λ)
        return (NONE, NONE, NONE, *bars[1:])

    given_out = z.copy()  # what is written to it later is not written to z
    return given_out, taking_memory(given_out, tuple(params), solved_pullback)


def check_residual(r: Any, z: Any) -> None:
    """Are there as many equations as unknowns?"""
    if r.shape != z.shape:
        raise ValueError(f"{r.size} equations cannot determine {z.size} unknowns")


# -- linear equations with the slopes of a residual ------------------------------------------------


def transposed(λ: Any, z: Any, residual: Any, *params: Any) -> Any:
    """(∂R/∂z)ᵀ λ."""
    _, back = interface.pullback(residual, z, *params)
    return back(λ)[0]


def along(v: Any, z: Any, residual: Any, *params: Any) -> Any:
    """(∂R/∂z) v, the transpose of the transposed."""
    _, back = interface.pullback(lambda λ: transposed(λ, z, residual, *params), z)
    return back(v)[0]


def linearly_solved(way: Any, M: Any, b: Any, z: Any, residual: Any, *params: Any) -> Any:
    """The v with way(v, z, residual, *params) = b; `way` is `along` or `transposed`.

    M is what `slopes` gives. It only serves to find v: what the derivatives of v are, the equation
    says, and they are solutions of such equations with the same M.
    """
    is_complex, n = z.dtype.kind == "c", z.size

    def vector(x: Any) -> Any:
        return (x[:n] + 1j * x[n:] if is_complex else x).astype(z.dtype)

    def matvec(x: Any) -> Any:
        if way is transposed:
            return M(vector(np.ravel(x)))
        return real_parts(way(vector(np.ravel(x)), z, residual, *params), is_complex)

    eps = np.finfo(z.dtype).eps
    b = real_parts(np.asarray(b), is_complex)
    if callable(M):
        return vector(by_products(matvec, b, eps))
    return vector(by_matrix(M if way is along else M.T, b, eps))


def transposed_slopes(z: Any, residual: Any, params: tuple[Any, ...]) -> Any:
    """What maps λ to (∂R/∂z)ᵀ λ, with the residual as it is now: what it captured may change."""
    _, back = interface.pullback(residual, z, *params)
    return lambda λ: back(λ)[0]


def slopes(z: Any, transposed_slopes: Any) -> Any:
    """∂R/∂z as a matrix of real numbers; what gives its rows, by λ, if there are too many."""
    is_complex = z.dtype.kind == "c"

    def row(λ: Any) -> Any:
        return real_parts(transposed_slopes(λ), is_complex)

    if z.size > DENSE:
        return row
    units = np.eye(z.size).astype(z.dtype)
    rows = [row(e) for e in (*units, *(1j * units if is_complex else ()))]
    return np.stack(rows) if rows else np.zeros((0, 0))


def real_parts(v: Any, is_complex: bool) -> Any:
    """A vector as one of real numbers, in double precision."""
    return (np.concatenate([v.real, v.imag]) if is_complex else v).astype(float)


called_whole(linearly_solved)
non_differentiable(slopes, transposed_slopes)


@serves(linearly_solved)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    way, M, b, z, residual, *params = args
    v = linearly_solved(*args)
    again, back = call(way, v, z, residual, *params)
    check_unchanged(again, b)

    def linearly_solved_pullback(v̄: Any) -> tuple[Any, ...]:
        if is_zero(v̄):
            return (ZERO,) * (1 + len(args))
        other = transposed if way is along else along
        b̄ = linearly_solved(other, M, unthunk(v̄), z, residual, *params)
        _, _, *bars = back(-b̄)
        return (NONE, NONE, NONE, b̄, *bars)

    return v, linearly_solved_pullback


DENSE = 200  # unknowns for which the matrix is put together


def by_matrix(A: Any, b: Any, eps: float) -> Any:
    """The x with A x = b."""
    try:
        x = np.linalg.solve(A, b)
    except np.linalg.LinAlgError:
        raise undetermined() from None
    return checked(x, np.linalg.norm(A @ x - b), b, eps)


def by_products(matvec: Any, b: Any, eps: float) -> Any:
    """The x with matvec(x) = b."""
    from scipy.sparse.linalg import LinearOperator, gmres  # not imported before it is needed

    tol, n = eps**0.75, b.size
    x, _ = gmres(LinearOperator((n, n), matvec), b, rtol=tol, atol=0.0, restart=50, maxiter=200)
    return checked(x, np.linalg.norm(matvec(x) - b), b, eps)


def checked(x: Any, error: Any, b: Any, eps: float) -> Any:
    """x, if it is a solution."""
    if not error <= np.sqrt(eps) * np.linalg.norm(b):
        raise undetermined()
    return x


def check_unchanged(again: Any, b: Any) -> None:
    """Is the product with the slopes, taken anew to be differentiated, still the right hand side?"""
    if not np.linalg.norm(again - b) <= np.finfo(again.dtype).eps ** 0.25 * np.linalg.norm(b):
        raise UnsupportedError(
            "what the residual of an implicit function captured is another value than when the "
            "solution was found (changed in place, or its name bound anew), and higher derivatives "
            "read it again: give it as an argument, or let a function of its own capture it"
        )


def undetermined() -> ConvergenceError:
    """The error where the derivative of the residual cannot be inverted."""
    return ConvergenceError(
        "the equation does not determine its solution to first order: the derivative of the residual "
        "by the unknowns is singular there, or too badly conditioned"
    )


non_differentiable(check_residual, check_step, check_unchanged, undetermined)
