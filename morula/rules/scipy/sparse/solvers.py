"""Rules of scipy.sparse.linalg's solvers by the implicit function: by the matrix and the right side.

    A x = b:    b̄ = A⁻ᴴ x̄,   Ā = -b̄ xᴴ at the places of A

Iterative solvers solve the adjoint equation to the same tolerance; the start has no influence.
Tests: tests/rules/scipy/test_sparse.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from morula.core.extend import (
    ZERO,
    NoTangent,
    UnsupportedError,
    frule,
    is_zero,
    non_differentiable,
    partial_functions,
    rrule,
)
from morula.rules.arrays.broadcasting import part
from morula.rules.arrays.types import Anything
from morula.rules.linalg.spectral import matching
from morula.rules.scipy.sparse.spaces import Sparse, adjoint, entries_of_product, like


def of_equation(b̄, x, A):
    """-b̄ xᴴ at the places of A."""
    if sparse.issparse(A):
        return like(A, -entries_of_product(b̄, x, A))
    return -b̄[:, None] * np.conjugate(x)


@rrule(linalg.spsolve)
def _(A: Sparse, b: np.ndarray, permc_spec=None, use_umfpack=True):
    x = linalg.spsolve(A, b, permc_spec, use_umfpack)

    def spsolve_pullback(x̄):
        b̄ = linalg.spsolve(adjoint(A), np.reshape(x̄, x.shape), permc_spec, use_umfpack)
        return of_equation(b̄, x, A), np.reshape(b̄, b.shape), NoTangent(), NoTangent()

    return x, spsolve_pullback


@rrule(linalg.spsolve_triangular)
def _(
    A: Sparse, b: np.ndarray, lower=True, overwrite_A=False, overwrite_b=False,
    unit_diagonal=False,
):  # fmt: skip
    x = linalg.spsolve_triangular(A, b, lower, False, False, unit_diagonal)

    def triangular_pullback(x̄):
        AH = adjoint(A).tocsr()
        b̄ = linalg.spsolve_triangular(AH, x̄, not lower, False, False, unit_diagonal)
        Ā = of_equation(b̄, x, A)
        if unit_diagonal:
            Ā = Ā - sparse.diags_array(Ā.diagonal())
        return (Ā, b̄, *[NoTangent()] * 4)

    return x, triangular_pullback


def _iterative(primal):
    @rrule(primal)
    def _(A: Sparse | np.ndarray, b: np.ndarray, x0=None, **keywords):
        y = primal(A, b, x0, **keywords)
        x = y[0]

        def iterative_pullback(ȳ):
            options = {k: v for k, v in keywords.items() if k not in ("callback", "M")}
            AH = adjoint(A) if sparse.issparse(A) else np.conjugate(A).T
            b̄ = primal(AH, np.ravel(part(ȳ, 0)), None, **options)[0]
            return of_equation(b̄, x, A), np.reshape(b̄, b.shape), NoTangent()

        return y, iterative_pullback


for _f in (
    linalg.cg, linalg.cgs, linalg.bicg, linalg.bicgstab, linalg.gmres, linalg.lgmres, linalg.minres,
    linalg.qmr, linalg.tfqmr, linalg.gcrotmk,
):  # fmt: skip
    _iterative(_f)


# -- factorisations that solve later ---------------------------------------------------------------


class Outer:
    """The cotangent of a factorised matrix: Σ u vᴴ, evaluated where the matrix is known."""

    def __init__(self, pairs: Any) -> None:
        self.pairs = pairs

    def __add__(self, other: Any) -> Any:
        return Outer((*self.pairs, *other.pairs))


def at_places(outer: Any, A: Any) -> Any:
    """The sparse cotangent."""
    total: Any = 0.0
    for u, v in outer.pairs:
        total = total + entries_of_product(u, v, A)
    return like(A, total)


@rrule(linalg.splu)
def _(A: Sparse, *rest: Anything, **keywords):
    def splu_pullback(ȳ):
        return (at_places(ȳ, A), *[NoTangent()] * len(rest))

    return linalg.splu(A, *rest, **keywords), splu_pullback


@rrule(linalg.SuperLU.solve)
def _(self: linalg.SuperLU, rhs: np.ndarray, trans="N"):
    x = self.solve(rhs, trans)

    def solve_pullback(x̄):
        if trans == "N":
            b̄ = self.solve(x̄, "H")
            return Outer(((-b̄, x),)), b̄, NoTangent()
        b̄ = self.solve(x̄, "N") if trans == "H" else np.conjugate(self.solve(np.conjugate(x̄), "N"))
        pair = (-x, b̄) if trans == "H" else (-np.conjugate(x), np.conjugate(b̄))
        return Outer((pair,)), b̄, NoTangent()

    return x, solve_pullback


# In forward mode, the tangent of a factorisation is that of its matrix.


@frule(linalg.splu)
def _(A: Sparse, *rest: Anything, **keywords):
    def splu_pushforward(Ȧ, *_):
        return Ȧ

    return linalg.splu(A, *rest, **keywords), splu_pushforward


@frule(linalg.SuperLU.solve)
def _(self: linalg.SuperLU, rhs: np.ndarray, trans="N"):
    x = self.solve(rhs, trans)

    def solve_pushforward(Ȧ, ḃ, *_):
        right = 0.0 if is_zero(ḃ) else ḃ
        if not is_zero(Ȧ):
            right = right - (Ȧ if trans == "N" else Ȧ.T if trans == "T" else adjoint(Ȧ)) @ x
        return ZERO if is_zero(ḃ) and is_zero(Ȧ) else self.solve(right, trans)

    return x, solve_pushforward


@rrule(linalg.norm)
def _(x: Sparse, ord=None, axis=None):
    y = linalg.norm(x, ord, axis)

    def norm_pullback(ȳ):
        if ord not in (None, "fro") or axis is not None:
            raise UnsupportedError(
                "norms of sparse arrays but that of Frobenius have no derivative"
            )
        return like(x, ȳ * x.data / (y if y else 1.0)), NoTangent(), NoTangent()

    return y, norm_pullback


# -- a few eigenvalues and singular values ---------------------------------------------------------


def refuse_vectors(V̄: Any) -> None:
    """Vectors of a few values depend on all the others."""
    if not is_zero(V̄):
        raise UnsupportedError(
            "vectors of eigsh and svds have no derivative here: compute with A.toarray()"
        )


non_differentiable(refuse_vectors)
partial_functions(refuse_vectors)


@rrule(linalg.eigsh)
def _(A: Sparse | np.ndarray, k=6, **keywords):
    """w̄ as Σ w̄ᵢ vᵢ vᵢᴴ at the places of A, which counts as Hermitian."""
    y = linalg.eigsh(A, k, **keywords)

    def eigsh_pullback(ȳ):
        values_only = not isinstance(y, tuple)
        w̄ = ȳ if values_only else part(ȳ, 0)
        if not values_only:
            refuse_vectors(part(ȳ, 1))
        options = {**keywords, "return_eigenvectors": True}
        w, V = linalg.eigsh(A, k, **options) if values_only else y
        w̄ = np.take(w̄, matching(y if values_only else w, w))
        return weighted(V * w̄, V, A), NoTangent()

    return y, eigsh_pullback


@rrule(linalg.svds)
def _(A: Sparse | np.ndarray, k=6, **keywords):
    y = linalg.svds(A, k, **keywords)

    def svds_pullback(ȳ):
        values_only = not isinstance(y, tuple)
        s̄ = ȳ if values_only else part(ȳ, 1)
        if not values_only:
            refuse_vectors(part(ȳ, 0))
            refuse_vectors(part(ȳ, 2))
        options = {**keywords, "return_singular_vectors": True}
        U, s, Vh = linalg.svds(A, k, **options) if values_only else y
        s̄ = np.take(s̄, matching(y if values_only else s, s))
        return weighted(U * s̄, np.conjugate(Vh).T, A), NoTangent()

    return y, svds_pullback


def weighted(U, V, A):
    """U Vᴴ at the places of A."""
    if sparse.issparse(A):
        return like(A, entries_of_product(U, V, A))
    return U @ np.conjugate(V).T


non_differentiable(linalg.onenormest, linalg.spbandwidth, linalg.is_sptriangular)
