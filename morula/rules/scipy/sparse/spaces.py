"""The space of a sparse array: its own pattern, whose entries stand in its data.

    values(A)          the data, in the order of `places(A)`
    like(A, data)      an array of the pattern and kind of A
    picked(S̄, A)       the entries of a cotangent, sparse or dense, at the places of A
    entries(B, A)      those of a value
    adjoint(A)         the conjugate transpose

What is not stored has no cotangent: a gradient has the pattern of its argument. What is stored several
times for one place, as in COO, is summed in a value, while each has its own cotangent. Formats that
store blocks, diagonals or dictionaries go by CSR.
Tests: tests/rules/scipy/test_sparse.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from morula.core.extend import (
    NoTangent,
    add,
    adjoint_object,
    collector,
    is_zero,
    materialise,
    multiply,
    non_differentiable,
    on_entry,
    parts_of,
    projector,
    remembered,
    rrule,
    some_cotangent,
    space_problem,
    unthunk,
)
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.types import Anything
from morula.rules.vectors import Foreign, foreign

if TYPE_CHECKING:  # the type is there for dispatch
    Sparse = Any
else:
    Sparse = sparse.sparray | sparse.spmatrix
ORDERED = ("csr", "csc", "coo")  # whose data stand in the order of `tocoo`


def plainly(A: Any) -> Any:
    """A in a format whose data are its entries, one by one."""
    if A.format == "dia":
        numbers = numbers_of_diagonals(A)
        data = np.ravel(A.data)[numbers.data]
        return type(numbers)((data, numbers.indices, numbers.indptr), shape=A.shape)
    return A if A.format in ORDERED else A.tocsr()


def numbers_of_diagonals(A: Any) -> Any:
    """Where the entries stand in the data of diagonals; by CSR directly, zeros would be left out."""
    numbers = np.arange(A.data.size).reshape(A.data.shape)
    found = type(A)((numbers + 1, A.offsets), shape=A.shape).tocsr()
    found.data -= 1
    return found


def places(A: Any) -> Any:
    """The rows and columns of the data; what has one axis is a row."""
    coords = plainly(A).tocoo(copy=False).coords
    return (np.zeros_like(coords[0]), coords[0]) if len(coords) == 1 else coords


def values(A):
    """The data."""
    return plainly(A).data


def like(A, data):
    """An array of the pattern and kind of A with other data."""
    if A.format == "dia":
        diagonals = np.zeros(A.data.size, data.dtype)
        diagonals[numbers_of_diagonals(A).data] = data
        return type(A)((diagonals.reshape(A.data.shape), A.offsets), shape=A.shape)
    pattern = plainly(A)
    if pattern.format == "coo":
        made = type(pattern)((data, pattern.coords), shape=pattern.shape)
    else:
        made = type(pattern)((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    return made if A.format in ORDERED else made.asformat(A.format)


def same_pattern(S: Any, A: Any) -> bool:
    """Have two arrays of one ordered format the same places?"""
    if S.format != A.format or S.nnz != A.nnz:
        return False
    if S.format == "coo":
        return S.ndim == A.ndim and all(map(np.array_equal, S.coords, A.coords))
    return np.array_equal(S.indptr, A.indptr) and np.array_equal(S.indices, A.indices)


def picked(S̄, A):
    """The entries of a cotangent at the places of A."""
    rows, columns = places(A)
    if not sparse.issparse(S̄):
        return as_rows(np.asarray(S̄))[rows, columns]
    if A.format in ORDERED and same_pattern(S̄, A):
        return S̄.data
    return entries_at(S̄, rows, columns)


def entries(B, A):
    """The entries of an array at the places of A."""
    return picked(B.tocsr() if sparse.issparse(B) and B.format == "coo" else B, A)


def first_of(A: Any) -> Any:
    """For each of the data, the first that is stored for its place."""
    if A.format != "coo":
        return np.arange(len(values(A)))
    rows, columns = places(A)
    flat = rows.astype(np.int64) * A.shape[-1] + columns
    _, first, place = np.unique(flat, return_index=True, return_inverse=True)
    return first[place]


def as_rows(S):
    """What has one axis as a row."""
    return S.reshape((1, -1)) if S.ndim == 1 else S


def entries_at(S: Any, rows: Any, columns: Any) -> Any:
    """The entries of a sparse array."""
    if not len(rows):
        return np.zeros(0, S.dtype)
    return np.asarray(as_rows(S).tocsr()[rows, columns]).ravel()


def adjoint(A):
    """The conjugate transpose."""
    return A.conj().T


def entries_of_product(u, v, A):
    """(u vᴴ) at the places of A; u and v are vectors or have several columns."""
    rows, columns = places(A)
    product = u[rows] * np.conjugate(v[columns])
    return product if product.ndim == 1 else np.sum(product, axis=1)


non_differentiable(places, same_pattern, numbers_of_diagonals, first_of)


@rrule(values)
def _(A: Sparse):
    def values_pullback(ȳ):
        return (like(A, ȳ),)

    return values(A), values_pullback


@rrule(like)
def _(A: Sparse, data: np.ndarray):
    def like_pullback(S̄):
        return NoTangent(), picked(S̄, A)

    return like(A, data), like_pullback


@rrule(picked)
def _(S̄: Anything, A: Sparse):
    def picked_pullback(ȳ):
        if sparse.issparse(S̄):
            return like(A, ȳ), NoTangent()
        dense = scatter(ȳ, places(A), (1, *S̄.shape)[-2:], ȳ.dtype)
        return np.reshape(dense, S̄.shape), NoTangent()

    return picked(S̄, A), picked_pullback


@rrule(adjoint)
def _(A: Sparse):
    def adjoint_pullback(S̄):
        return (adjoint(S̄),)

    return adjoint(A), adjoint_pullback


# -- what the core is told -------------------------------------------------------------------------


def has_space(A: Any) -> bool:
    """Do the entries have a derivative?"""
    return A.dtype.kind in "fciu"


def into_space(A: Any, x̄: Any) -> Any:
    """A cotangent as an array of the pattern, dtype and kind of A."""
    data = picked(x̄, A)
    wanted = A.dtype if A.dtype.kind in "fc" else np.dtype(float)
    if wanted.kind != "c" and data.dtype.kind == "c":
        data = data.real
    return like(A, data.astype(wanted))


def memory_of_data(A: Any) -> Any:
    """The array that holds the numbers; None, if several objects do."""
    return A.data if A.format not in ("dok", "lil") else None


def some_of(A: Any) -> Any:
    """Numbers, of which none is zero, in the pattern of A: SciPy leaves zeros out of products."""
    if not has_space(A):
        return None
    n = len(values(A))
    return like(A, (np.cos(np.arange(n)) + 2.0).astype(A.dtype if A.dtype.kind in "fc" else float))


def sum_of(a: Any, b: Any) -> Any:
    """The sum of two cotangents."""
    if sparse.issparse(b) and a.format in ORDERED and same_pattern(b, a):
        return like(a, a.data + b.data)
    return a + b


for _base in (sparse.sparray, sparse.spmatrix, sparse.dok_array, sparse.dok_matrix):
    adjoint_object.register(_base, lambda A: None)
    collector.register(_base, lambda A, part: None)
    on_entry.register(_base, lambda A, known: A.copy())
    remembered.register(_base, lambda A, known: remembered(memory_of_data(A), known))
    parts_of.register(_base, lambda A: parts_of(memory_of_data(A)))
    some_cotangent.register(_base, some_of)
    space_problem.register(_base, lambda A, x̄: None)
    add.register(_base, sum_of)
    multiply.register(_base, lambda x̄, factor: x̄ * factor)

    @projector.register(_base)
    def _(A):
        return lambda x̄: into_space(A, x̄)

    @materialise.register(_base)
    def _(A, x̄, of):
        if not has_space(A):
            return None
        x̄ = unthunk(x̄)
        if is_zero(x̄):
            x̄ = like(A, np.zeros(len(values(A))))
        return into_space(A, x̄).copy()


# -- in vectors ------------------------------------------------------------------------------------


def goes_into_vector(A: Any) -> bool:
    """Does `ravel` take its data?"""
    return A.dtype.kind in "fciu"


def from_vector(part: Any, A: Any, shape: Any) -> Any:
    """An array of the pattern and kind of A with a part of a vector as its data."""
    return like(A, part.astype(A.dtype if A.dtype.kind in "fc" else np.dtype(float)))


def itself(A: Any) -> Any:
    """What `from_vector` needs to know."""
    return A


foreign.append(
    Foreign((sparse.sparray, sparse.spmatrix), goes_into_vector, values, from_vector, itself)
)
