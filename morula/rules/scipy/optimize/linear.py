"""Linear programs and least squares within bounds: what is active at the solution, is an equation.

Which constraints are active, which variables are at a bound, which blocks are pooled does not change
nearby, unless the solution is degenerate: that is refused.
Tests: tests/rules/scipy/test_optimize_linear.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize, sparse

from morula.core.extend import UnsupportedError, called_whole, non_differentiable
from morula.rules.arrays.bodies import instead_of
from morula.rules.scipy.answers import told_as
from morula.rules.scipy.optimize.solvers import result
from morula.rules.steering import ignore_derivatives

non_differentiable(
    optimize.bracket,
    optimize.check_grad,
    optimize.linear_sum_assignment,
    optimize.quadratic_assignment,
)


def dense(A: Any) -> Any:
    """A matrix as an array."""
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


# -- least squares ---------------------------------------------------------------------------------


@instead_of(optimize.nnls)
def _(A, b, **settings):
    x, norm = ignore_derivatives(lambda: optimize.nnls(A, b, **settings))
    A, b = np.asarray(A), np.ravel(np.asarray(b))
    y = at_bounds(A, b, x, x > 0, np.zeros(len(x)))
    r = A @ y - b
    return y, told_as(norm, np.linalg.norm(r))


def at_bounds(A: Any, b: Any, x: Any, free: Any, fixed: Any) -> Any:
    """x, which minimises |A x - b| in the free variables; the others stay at `fixed`."""
    free_at, fixed_at = np.flatnonzero(free), np.flatnonzero(~free)
    rest = b - A[:, fixed_at] @ fixed[fixed_at]
    y = np.zeros(len(x))
    y[fixed_at] = fixed[fixed_at]
    if len(free_at):
        y[free_at] = np.linalg.lstsq(A[:, free_at], rest, rcond=None)[0]
    return told_as(x, y)


@instead_of(optimize.lsq_linear)
def _(A, b, bounds=(-np.inf, np.inf), *settings, **keywords):
    plain = ignore_derivatives(lambda: optimize.lsq_linear(A, b, bounds, *settings, **keywords))
    if not (sparse.issparse(A) or isinstance(A, (np.ndarray, list, tuple))):
        raise UnsupportedError(
            "scipy.optimize.lsq_linear of a LinearOperator has no derivative here: give a matrix"
        )
    A, b = dense(A), np.asarray(b)
    low, high = (bounds.lb, bounds.ub) if isinstance(bounds, optimize.Bounds) else bounds
    n = A.shape[1]
    low, high = np.broadcast_to(low, n), np.broadcast_to(high, n)
    state = plain.active_mask
    fixed = np.where(state < 0, low, np.where(state > 0, high, 0.0))
    x = at_bounds(A, b, plain.x, state == 0, fixed)
    r = A @ x - b
    return result(
        plain, "lsq_linear", x, fun=told_as(plain.fun, r), cost=told_as(plain.cost, 0.5 * (r @ r))
    )


@instead_of(optimize.isotonic_regression)
def _(y, *, weights=None, increasing=True):
    plain = ignore_derivatives(
        lambda: optimize.isotonic_regression(y, weights=weights, increasing=increasing)
    )
    y = np.asarray(y)
    w = np.ones(len(y)) if weights is None else np.asarray(weights)
    blocks = np.repeat(np.arange(len(plain.blocks) - 1), np.diff(plain.blocks))
    if not increasing:
        blocks = blocks[::-1]
    pooled = np.stack([blocks == k for k in range(len(plain.blocks) - 1)]).astype(float)
    totals = pooled @ w
    x = told_as(plain.x, ((pooled @ (w * y)) / totals)[blocks])
    order = slice(None) if increasing else slice(None, None, -1)
    return result(plain, "isotonic_regression", x, weights=told_as(plain.weights, totals[order]))


# -- linear programs -------------------------------------------------------------------------------


@instead_of(optimize.linprog)
def _(
    c, A_ub=None, b_ub=None, A_eq=None, b_eq=None, bounds=(0, None), method="highs", callback=None,
    options=None, x0=None, integrality=None,
):  # fmt: skip
    plain = ignore_derivatives(
        lambda: optimize.linprog(
            c, A_ub, b_ub, A_eq, b_eq, bounds, method, callback, options, x0, integrality
        )
    )
    if plain.x is None:
        return plain
    if integrality is not None and np.any(integrality):
        raise UnsupportedError(
            "a linear program with whole numbers among the unknowns has no derivative here"
        )
    c = np.ravel(np.asarray(c))
    n = len(c)
    rows, values = [], []
    if A_eq is not None:
        rows.append(dense(A_eq))
        values.append(np.ravel(np.asarray(b_eq)))
    if A_ub is not None:
        active = np.flatnonzero(is_tight(plain.slack, b_ub))
        rows.append(dense(A_ub)[active])
        values.append(np.ravel(np.asarray(b_ub))[active])
    for k, (low, high) in enumerate(pairs_of(bounds, n)):
        for limit in (low, high):
            if limit is not None and is_tight(plain.x[k] - ignore_derivatives(limit), limit):
                rows.append(np.eye(n)[k : k + 1])
                values.append(np.reshape(limit, 1))
    M = np.concatenate(rows) if rows else np.zeros((0, n))
    check_vertex(ignore_derivatives(M), n)
    x = told_as(plain.x, np.linalg.solve(M, np.concatenate(values)))
    entries = {"fun": told_as(plain.fun, c @ x)}
    if A_ub is not None:
        entries["slack"] = told_as(plain.slack, np.ravel(np.asarray(b_ub)) - dense(A_ub) @ x)
    if A_eq is not None:
        entries["con"] = told_as(plain.con, np.ravel(np.asarray(b_eq)) - dense(A_eq) @ x)
    return result(plain, "linprog", x, **entries)


def is_tight(slack: Any, scale: Any) -> Any:
    """Which constraints are active."""
    return np.abs(slack) <= 1e-9 * np.maximum(1.0, np.abs(np.asarray(scale, float)))


def check_vertex(M: Any, n: int) -> None:
    """An error unless the active constraints determine the solution, and none too many."""
    if len(M) != n or np.linalg.matrix_rank(M) < n:
        raise UnsupportedError(
            "the solution of a linear program has a derivative where as many constraints are active "
            f"as there are unknowns: here {len(M)} are, for {n}"
        )


def pairs_of(bounds: Any, n: int) -> list[Any]:
    """The bounds of each unknown; None where there is none."""
    if bounds is None:
        return [(0, None)] * n
    if isinstance(bounds, tuple) and len(bounds) == 2 and not np.ndim(bounds[0]):
        return [bounds_of(*bounds)] * n
    found = [bounds_of(*pair) for pair in bounds]
    return found * n if len(found) == 1 else found


def bounds_of(low: Any, high: Any) -> tuple[Any, Any]:
    """The same, where infinity stands for none."""
    return (
        None if low is None or np.isneginf(ignore_derivatives(low)) else low,
        None if high is None or np.isposinf(ignore_derivatives(high)) else high,
    )


non_differentiable(is_tight, check_vertex)


@instead_of(optimize.milp)
def _(c, *, integrality=None, bounds=None, constraints=None, options=None):
    plain = ignore_derivatives(
        lambda: optimize.milp(
            c, integrality=integrality, bounds=bounds, constraints=constraints, options=options
        )
    )
    if plain.x is None:
        return plain
    if integrality is None or not np.all(integrality):
        raise UnsupportedError(
            "scipy.optimize.milp has a derivative where all unknowns are whole numbers: they do not "
            "change, and the value is linear in c. For the others see linprog"
        )
    entries = {"fun": told_as(plain.fun, np.ravel(np.asarray(c)) @ plain.x)}
    return type(plain)({**plain, **entries})


called_whole(
    optimize.nnls,
    optimize.lsq_linear,
    optimize.isotonic_regression,
    optimize.linprog,
    optimize.milp,
)
