"""Rules of radial basis functions: the equations for their weights, and their values at points.

Tests: tests/rules/scipy/test_interpolate.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from morula.rules.arrays.bodies import derivative_of, instead_of
from morula.rules.scipy.answers import refused, told_as
from morula.rules.scipy.interpolate import routines
from morula.rules.scipy.linalg.routines import symmetric
from morula.rules.steering import ignore_derivatives


def squares(x: Any, y: Any) -> Any:
    """The squares of all distances."""
    apart = x[:, None, :] - y[None, :, :]
    return np.sum(apart * apart, axis=2)


def kernel_of(name: str, q: Any) -> Any:
    """A basis function of the squares of distances; those of odd powers are level at zero."""
    if name == "multiquadric":
        return -np.sqrt(q + 1.0)
    if name == "inverse_multiquadric":
        return 1.0 / np.sqrt(q + 1.0)
    if name == "inverse_quadratic":
        return 1.0 / (q + 1.0)
    if name == "gaussian":
        return np.exp(-q)
    zero = q == 0
    q = np.where(zero, 1.0, q)
    if name == "thin_plate_spline":
        found = q * np.log(q) / 2.0
    else:
        sign, power = {"linear": (-1.0, 0.5), "cubic": (1.0, 1.5), "quintic": (-1.0, 2.5)}[name]
        found = sign * q**power
    return np.where(zero, 0.0, found)


@derivative_of(routines.polynomial_matrix)
def polynomials(x: Any, powers: Any) -> Any:
    """Monomials, a column for each row of powers."""
    columns = [np.ones((len(x), 0))]
    for row in powers:
        product = np.ones(len(x))
        for d, power in enumerate(row):
            for _ in range(power):
                product = product * x[:, d]
        columns.append(product[:, None])
    return np.concatenate(columns, axis=1)


@derivative_of(routines.build_evaluation_coefficients)
def evaluation(
    x: Any, y: Any, kernel: Any, epsilon: Any, powers: Any, shift: Any, scale: Any
) -> Any:  # fmt: skip
    """Basis functions around y and monomials, at the points x."""
    near = kernel_of(kernel, squares(x * epsilon, y * epsilon))
    return np.concatenate((near, polynomials((x - shift) / scale, powers)), axis=1)


@derivative_of(routines.build_system)
def system(y: Any, d: Any, smoothing: Any, kernel: Any, epsilon: Any, powers: Any) -> Any:
    """The matrix and the right sides, and how monomials are shifted and scaled."""
    low, high = np.min(y, axis=0), np.max(y, axis=0)
    shift, half = (high + low) / 2.0, (high - low) / 2.0
    scale = np.where(half == 0, 1.0, half)
    near = kernel_of(kernel, squares(y * epsilon, y * epsilon)) + np.diag(smoothing)
    columns = polynomials((y - shift) / scale, powers)
    n = columns.shape[1]
    above = np.concatenate((near, columns), axis=1)
    below = np.concatenate((columns.T, np.zeros((n, n))), axis=1)
    right = np.concatenate((d, np.zeros((n, d.shape[1]))))
    return np.concatenate((above, below)), right, shift, scale


@instead_of(routines.dsysv)
def dsysv(
    a: Any, b: Any, lwork: Any = None, lower: Any = 0, overwrite_a: Any = 0, overwrite_b: Any = 0
) -> Any:  # fmt: skip
    """The factors of a symmetric matrix, and the solution of a x = b.

    What may be overwritten stays as it is: SciPy does not read it again.
    """
    room = {} if lwork is None else {"lwork": lwork}
    found = ignore_derivatives(partial(routines.dsysv, a, b, lower=lower, **room))
    factors, pivots, x, info = found
    if info:
        return refused(factors, FACTORS, a), pivots, refused(x, FAILED, a, b), info
    told = np.linalg.solve(symmetric(a, lower), np.reshape(b, np.shape(x)))
    return refused(factors, FACTORS, a), pivots, told_as(x, told), info


FAILED = "what dsysv gives for a singular matrix has no derivative"
FACTORS = "the factors of a symmetric matrix that is not definite have no derivative"
