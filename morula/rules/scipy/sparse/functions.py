"""Rules of functions of sparse arrays: Kronecker products, exponential, find, largest entries, norms.

    K = A ⊗ B:     Ā = Σ K̄ B* over the pairs with each entry of A, and likewise B̄
    Y = exp A:     Ā = L(Aᴴ, Ȳ) at the places of A, computed with dense matrices

Tests: tests/rules/scipy/test_sparse.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg as dense
from scipy import sparse
from scipy.sparse import linalg

from morula.core.extend import (
    NoTangent,
    UnsupportedError,
    call,
    non_differentiable,
    partial_functions,
    rrule,
)
from morula.rules.arrays.broadcasting import part
from morula.rules.arrays.types import Anything
from morula.rules.linalg.parts import filled
from morula.rules.scipy.linalg.functions import frechet
from morula.rules.scipy.sparse.arithmetic import each_method
from morula.rules.scipy.sparse.spaces import Sparse, adjoint, like, picked, places, values

# -- Kronecker products ----------------------------------------------------------------------------


def pairs(A: Any, B: Any) -> Any:
    """The places in A ⊗ B of the products of the entries of A with those of B."""
    where = []
    for i, k, n in zip(places(A), places(B), B.shape, strict=True):
        where.append((i[:, None].astype(np.int64) * n + k).ravel())
    shape = A.shape[0] * B.shape[0], A.shape[1] * B.shape[1]
    return sparse.coo_array((np.ones(len(where[0])), tuple(where)), shape=shape)


non_differentiable(pairs)


@rrule(sparse.kron)
def _(A: Sparse, B: Sparse, format=None):
    def kron_pullback(ȳ):
        a, b = values(A), values(B)
        bars = np.reshape(picked(ȳ, pairs(A, B)), (len(a), len(b)))
        return like(A, bars @ np.conjugate(b)), like(B, np.conjugate(a) @ bars), NoTangent()

    return sparse.kron(A, B, format), kron_pullback


# -- the exponential -------------------------------------------------------------------------------


@rrule(linalg.expm)
def _(A: Sparse):
    def expm_pullback(ȳ):
        G = frechet(dense.expm, adjoint(A).toarray(), ȳ.toarray())
        return (like(A, picked(G, A)),)

    return linalg.expm(A), expm_pullback


# -- entries ---------------------------------------------------------------------------------------


@rrule(sparse.find)
def _(A: Sparse):
    y = sparse.find(A)

    def find_pullback(ȳ):
        refuse_zeros(A, y[2])
        found = sparse.coo_array((filled(part(ȳ, 2), y[2]), (y[0], y[1])), shape=A.shape)
        return (like(A, picked(found, A)),)

    return y, find_pullback


def refuse_zeros(A: Any, found: Any) -> None:
    """Refuse entries that were left out because they are zero: their slopes are not."""
    if A.tocsr().nnz != len(found):
        raise UnsupportedError(
            "entries that are exactly zero are left out by find, so that their derivative is lost: "
            "take A.tocoo().data"
        )


non_differentiable(refuse_zeros)
partial_functions(refuse_zeros)


@each_method("max", "min", "nanmax", "nanmin")
def _by_rows(primal):
    """SciPy sums the entries of a COO array where it stands; the rules of CSR serve."""
    name = primal.__name__

    @rrule(primal)
    def _(A: sparse.coo_array | sparse.coo_matrix, *rest: Anything, **keywords):
        def extremum_pullback(ȳ):
            _, back = call(of_rows, A, name, rest, keywords)
            return (back(ȳ)[1], *[NoTangent()] * len(rest))

        return primal(A, *rest, **keywords), extremum_pullback


def of_rows(A: Any, name: str, rest: Any, keywords: Any) -> Any:
    """The method of the array in CSR."""
    return getattr(A.tocsr(), name)(*rest, **keywords)


# -- NumPy's functions, which call methods ---------------------------------------------------------


def _by_method(primal):
    @rrule(primal)
    def _(A: Sparse):
        def method_pullback(ȳ):
            _, back = call(getattr(type(A), primal.__name__), A)
            return (back(ȳ)[1],)

        return primal(A), method_pullback


for _f in (
    np.sin, np.tan, np.arcsin, np.arctan, np.sinh, np.tanh, np.arcsinh, np.arctanh, np.expm1, np.log1p,
    np.sqrt, np.deg2rad, np.rad2deg,
):  # fmt: skip
    _by_method(_f)
