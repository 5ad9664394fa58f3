"""Rules of functions of matrices: exponential, logarithm, powers, trigonometric and hyperbolic ones.

    Y = f(A):    Ā = L(Aᴴ, Ȳ), the Fréchet derivative, which is the upper right block of
                 f of the matrix with the blocks Aᴴ, Ȳ and 0, Aᴴ

so that every f is its own derivative, to any order.
Mathias, A chain rule for matrix functions and applications, SIAM J. Matrix Anal. Appl. 17 (1996);
Higham, Functions of matrices, theorem 3.6.
Tests: tests/rules/scipy/test_linalg_functions.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from morula.core.extend import NoTangent, call, rrule
from morula.rules.arrays.broadcasting import part
from morula.rules.arrays.types import Anything
from morula.rules.linalg.parts import ctranspose, filled
from morula.rules.scipy.linalg.solvers import complex_if
from morula.rules.scipy.linalg.stacks import is_stack, of_each


def blocks(A, E):
    """The matrix with the blocks A, E and 0, A."""
    top = np.concatenate((A, E), axis=-1)
    bottom = np.concatenate((np.zeros_like(A), A), axis=-1)
    return np.concatenate((top, bottom), axis=-2)


def frechet(f, A, E):
    """The derivative of f at A along E."""
    n = A.shape[-1]
    return f(blocks(A, E))[..., :n, n:]


def _function(primal):
    @rrule(primal)
    def _(A: np.ndarray):
        def function_pullback(ȳ):
            return (frechet(primal, complex_if(ctranspose(A), ȳ), ȳ),)

        return primal(A), function_pullback


for _f in (
    linalg.expm, linalg.cosm, linalg.sinm, linalg.tanm, linalg.coshm, linalg.sinhm, linalg.tanhm,
    linalg.logm,
):  # fmt: skip
    _function(_f)


@rrule(linalg.sqrtm)
def _(A: np.ndarray):
    """Y Y = A: Z with Yᴴ Z + Z Yᴴ = Ȳ."""
    y = linalg.sqrtm(A)

    def sqrtm_pullback(ȳ):
        yH = complex_if(ctranspose(y), ȳ)
        return (linalg.solve_sylvester(yH, yH, ȳ),)

    return y, sqrtm_pullback


@rrule(linalg.signm)
def _(A: np.ndarray):
    """A = S N with S² = 1: Ā = Z - Sᴴ Z Sᴴ with Nᴴ Z + Z Nᴴ = Ȳ.

    Higham, chapter 5, after Kenney and Laub. The blocks of `frechet` have too few eigenvectors for
    what SciPy's `signm` does.
    """
    y = linalg.signm(A)

    def signm_pullback(ȳ):
        S = complex_if(ctranspose(y), ȳ)
        N = complex_if(ctranspose(A @ y), ȳ)
        Z = linalg.solve_sylvester(N, N, ȳ)
        return (Z - S @ Z @ S,)

    return y, signm_pullback


@rrule(linalg.fractional_matrix_power)
def _(A: np.ndarray, t: Anything):
    y = linalg.fractional_matrix_power(A, t)

    def power_pullback(ȳ):
        def power(X):
            return linalg.fractional_matrix_power(X, t)

        ā = frechet(power, complex_if(ctranspose(A), ȳ), ȳ)
        if isinstance(t, int):
            return ā, NoTangent()
        return ā, np.sum(np.real(np.conjugate(y @ linalg.logm(A)) * ȳ))

    return y, power_pullback


@rrule(linalg.expm_frechet)
def _(A: np.ndarray, E: np.ndarray, method=None, compute_expm=True, check_finite=True):
    y = linalg.expm_frechet(A, E, method, compute_expm, check_finite)

    def frechet_pullback(ȳ):
        if is_stack((2, 2), A, E):
            rest = method, compute_expm, check_finite
            return of_each(ȳ, y, linalg.expm_frechet, (2, 2), A, E, *rest)
        both, back = call(exponential_and_derivative, A, E)
        if compute_expm:
            bars = filled(part(ȳ, 0), both[0]), filled(part(ȳ, 1), both[1])
        else:
            bars = np.zeros_like(both[0]), ȳ
        _, ā, ē = back(bars)
        return ā, ē, NoTangent(), NoTangent(), NoTangent()

    return y, frechet_pullback


def exponential_and_derivative(A: Any, E: Any) -> Any:
    """exp(A) and its derivative along E."""
    n = A.shape[-1]
    both = linalg.expm(blocks(A, E))
    return both[:n, :n], both[:n, n:]


@rrule(linalg.funm)
def _(A: np.ndarray, func: Anything, disp=True):
    """By eigenvalues: V f(w) V⁻¹, whose derivative takes that of f; equal ones are refused."""
    y = linalg.funm(A, func, disp)

    def funm_pullback(ȳ):
        bar = ȳ if disp else part(ȳ, 0)
        _, back = call(by_eigenvalues, A, func)
        _, ā, f̄ = back(np.asarray(bar, complex))
        return ā, f̄, NoTangent()

    return y, funm_pullback


def by_eigenvalues(A: Any, func: Any) -> Any:
    """V f(w) V⁻¹."""
    w, V = np.linalg.eig(A + 0j)
    return (V * func(w)[..., None, :]) @ np.linalg.inv(V)
