"""Rules of sparse arrays: construction, conversion, operators, methods.

    Y = A X:       Ā = Ȳ Xᴴ at the places of A,   X̄ = Aᴴ Ȳ

A cotangent of something sparse is computed at its places only.
Tests: tests/rules/scipy/test_sparse.py
"""

from __future__ import annotations

import math
import operator
from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse

from morula.core.extend import (
    NoTangent,
    UnsupportedError,
    call,
    non_differentiable,
    partial_functions,
    rrule,
    unthunk,
)
from morula.rules.arrays.broadcasting import match
from morula.rules.arrays.construction import as_it_is, like_sequence
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.inplace import note_shown
from morula.rules.arrays.types import Anything, Scalar, Sequence
from morula.rules.scipy.sparse.spaces import (
    ORDERED,
    Sparse,
    adjoint,
    entries,
    entries_of_product,
    first_of,
    has_space,
    into_space,
    like,
    numbers_of_diagonals,
    picked,
    places,
    plainly,
    same_pattern,
    values,
)
from morula.rules.versions import present

CLASSES: list[Any] = [
    getattr(sparse, f"{name}_{kind}")
    for name in ("csr", "csc", "coo", "dia", "bsr", "lil", "dok")
    for kind in ("array", "matrix")
]


def methods(name: str) -> list[Any]:
    """The functions that a method of this name is, in the classes."""
    found: dict[int, Any] = {}
    for cls in CLASSES:
        fn = getattr(cls, name, None)
        if fn is not None:
            found[id(fn)] = fn
    return list(found.values())


def each_method(*names: str) -> Any:
    """Register `rule(method)` for each function that the methods are."""

    def register(rule: Any) -> Any:
        for name in names:
            for fn in methods(name):
                rule(fn)
        return rule

    return register


def refuse_pruned(form: Any, A: Any, B: Any, y: Any) -> None:
    """Refuse a result that lacks entries because they are exactly zero: their slopes are not."""
    ones = [like(X, np.ones(len(values(X)))) for X in (A, B)]
    if form(*ones).nnz != y.nnz:
        raise UnsupportedError(
            "entries of a sparse result are exactly zero and left out by SciPy, so that their "
            "derivative is lost: move the values a little, or compute with dense arrays"
        )


non_differentiable(refuse_pruned)
partial_functions(refuse_pruned)

# -- products --------------------------------------------------------------------------------------


def left_entries(Ȳ, A, B):
    """Ȳ Bᴴ at the places of A."""
    if sparse.issparse(Ȳ) or sparse.issparse(B):
        return like(A, picked(Ȳ @ adjoint(B), A))
    return like(A, entries_of_product(Ȳ, B, A))


def right_entries(Ȳ, A, B):
    """Aᴴ Ȳ at the places of B."""
    if sparse.issparse(Ȳ) or sparse.issparse(A):
        return like(B, picked(adjoint(A) @ Ȳ, B))
    if A.ndim == 1:
        rows, columns = places(B)
        return like(B, np.conjugate(A[rows]) * Ȳ[columns])
    return like(B, entries_of_product(np.conjugate(A.T), np.conjugate(Ȳ.T), B))


def _product(primal):
    @rrule(primal)
    def _(A: Sparse, x: np.ndarray):
        def product_pullback(ȳ):
            if A.ndim == 1:
                _, back = call(product_of_row, A, x)
                return tuple(back(ȳ)[1:])
            return left_entries(ȳ, A, x), adjoint(A) @ ȳ

        return primal(A, x), product_pullback

    @rrule(primal)
    def _(A: Sparse, B: Sparse):
        y = primal(A, B)

        def product_pullback(Ȳ):
            refuse_pruned(operator.matmul, A, B, y)
            return left_entries(Ȳ, A, B), right_entries(Ȳ, A, B)

        return y, product_pullback


def product_of_row(a: Any, x: Any) -> Any:
    """What has one axis, as a matrix of one row, times x."""
    return (a.reshape((1, -1)).tocsr() @ x)[0]


_product(operator.matmul)
each_method("dot", "__matmul__")(_product)


@rrule(operator.matmul)
def _(x: np.ndarray, A: Sparse):
    def product_pullback(ȳ):
        return ȳ @ adjoint(A), right_entries(ȳ, x, A)

    return x @ A, product_pullback


def _by_sequence(primal):
    @rrule(primal)
    def _(A: Sparse, x: Sequence):
        y, back = call(primal, A, np.asarray(x))
        given = as_it_is(x)

        def by_sequence_pullback(ȳ):
            _, Ā, x̄ = back(ȳ)
            return Ā, like_sequence(unthunk(x̄), given)

        return y, by_sequence_pullback


_by_sequence(operator.matmul)
each_method("dot", "__matmul__", "multiply")(_by_sequence)


@rrule(operator.matmul)
def _(x: Sequence, A: Sparse):
    y, back = call(operator.matmul, np.asarray(x), A)
    given = as_it_is(x)

    def by_sequence_pullback(ȳ):
        _, x̄, Ā = back(ȳ)
        return like_sequence(unthunk(x̄), given), Ā

    return y, by_sequence_pullback


# -- entry by entry --------------------------------------------------------------------------------


@rrule(operator.mul)
def _(A: Sparse, x: Scalar):
    def scaled_pullback(ȳ):
        bars = picked(ȳ, A)
        return like(A, bars * np.conjugate(x)), np.sum(bars * np.conjugate(values(A)))

    return A * x, scaled_pullback


@rrule(operator.mul)
def _(x: Scalar, A: Sparse):
    def scaled_pullback(ȳ):
        bars = picked(ȳ, A)
        return np.sum(bars * np.conjugate(values(A))), like(A, bars * np.conjugate(x))

    return x * A, scaled_pullback


@rrule(operator.truediv)
def _(A: Sparse, x: Scalar):
    def scaled_pullback(ȳ):
        bars = picked(ȳ, A) / np.conjugate(x)
        return like(A, bars), -np.sum(bars * np.conjugate(values(A) / x))

    return A / x, scaled_pullback


def _multiply(primal):
    @rrule(primal)
    def _(A: Sparse, B: Sparse):
        y = primal(A, B)

        def multiply_pullback(ȳ):
            refuse_pruned(type(A).multiply, A, B, y)
            if A.shape != B.shape:
                return against(ȳ, A, B), against(ȳ, B, A)
            a = picked(ȳ, A) * np.conjugate(entries(B, A))
            return like(A, a), like(B, picked(ȳ, B) * np.conjugate(entries(A, B)))

        return y, multiply_pullback

    @rrule(primal)
    def _(A: Sparse, x: np.ndarray):
        def multiply_pullback(ȳ):
            rows, columns = places(A)
            wide = np.broadcast_to(x, A.shape)[rows, columns]
            bars = picked(ȳ, A)
            dense = scatter(bars * np.conjugate(values(A)), (rows, columns), A.shape, ȳ.dtype)
            return like(A, bars * np.conjugate(wide)), match(dense, x.shape)

        return primal(A, x), multiply_pullback

    @rrule(primal)
    def _(A: Sparse, x: Scalar):
        def multiply_pullback(ȳ):
            bars = picked(ȳ, A)
            return like(A, bars * np.conjugate(x)), np.sum(bars * np.conjugate(values(A)))

        return primal(A, x), multiply_pullback


def against(ȳ, A, other):
    """The cotangent of a factor of a product entry by entry; one of the factors is broadcast."""
    whole = ȳ.multiply(other.conj())
    for axis in (0, 1):
        if A.shape[axis] == 1 and whole.shape[axis] > 1:
            whole = np.expand_dims(np.asarray(whole.sum(axis=axis)).ravel(), axis)
    return like(A, picked(whole, A))


@rrule(operator.mul)
def _(A: Sparse, B: Sparse | np.ndarray):
    """Of matrices a product, of arrays entry by entry."""
    form = operator.matmul if isinstance(A, sparse.spmatrix) else type(A).multiply
    _, back = call(form, A, B)

    def mul_pullback(ȳ):
        return tuple(back(ȳ)[1:])

    return A * B, mul_pullback


@rrule(operator.mul)
def _(x: np.ndarray, A: Sparse):
    def mul_pullback(ȳ):
        if isinstance(A, sparse.spmatrix):
            _, back = call(operator.matmul, x, A)
            return tuple(back(ȳ)[1:])
        _, back = call(type(A).multiply, A, x)
        _, Ā, x̄ = back(ȳ)
        return x̄, Ā

    return x * A, mul_pullback


@rrule(operator.truediv)
def _(A: Sparse, B: Sparse):
    """Where neither has an entry the quotient is NaN, whatever the entries are."""
    y = A / B

    def quotient_pullback(ȳ):
        of_b = picked(ȳ, B) * np.conjugate(entries(y, B) / entries(B, B))
        return like(A, picked(ȳ, A) / np.conjugate(entries(B, A))), like(B, -of_b)

    return y, quotient_pullback


def share(a, b, greater):
    """How much of the larger (or smaller) of two is the first: half, where they are equal."""
    return np.where(a == b, 0.5, (a > b) == greater)


def _choice(primal, greater):
    @rrule(primal)
    def _(A: Sparse, B: Sparse):
        def choice_pullback(ȳ):
            a = picked(ȳ, A) * share(entries(A, A), entries(B, A), greater)
            return like(A, a), like(B, picked(ȳ, B) * share(entries(B, B), entries(A, B), greater))

        return primal(A, B), choice_pullback

    @rrule(primal)
    def _(A: Sparse, x: Scalar):
        y = primal(A, x)

        def choice_pullback(ȳ):
            a = picked(ȳ, A) * share(entries(A, A), x, greater)
            return like(A, a), np.sum(picked(ȳ, y) * share(x, entries(A, y), greater))

        return y, choice_pullback


each_method("maximum")(lambda fn: _choice(fn, True))
each_method("minimum")(lambda fn: _choice(fn, False))


each_method("multiply")(_multiply)


def _sum(primal, sign):
    @rrule(primal)
    def _(A: Sparse, B: Sparse):
        y = primal(A, B)

        def sum_pullback(ȳ):
            refuse_pruned(operator.add, A, B, y)
            return like(A, picked(ȳ, A)), like(B, sign * picked(ȳ, B))

        return y, sum_pullback

    @rrule(primal)
    def _(A: Sparse, B: np.ndarray):
        def sum_pullback(ȳ):
            return like(A, picked(ȳ, A)), sign * np.asarray(ȳ)

        return primal(A, B), sum_pullback

    @rrule(primal)
    def _(A: np.ndarray, B: Sparse):
        def sum_pullback(ȳ):
            return np.asarray(ȳ), like(B, sign * picked(ȳ, B))

        return primal(A, B), sum_pullback


_sum(operator.add, 1.0)
_sum(operator.sub, -1.0)


@rrule(operator.neg)
def _(A: Sparse):
    def neg_pullback(ȳ):
        return (like(A, -picked(ȳ, A)),)

    return -A, neg_pullback


def _linear(primal, back):
    """A method without arguments that moves entries: `back` moves them to where they were."""

    @rrule(primal)
    def _(A: Sparse, *rest: Anything, **keywords):
        def linear_pullback(ȳ):
            return (like(A, picked(back(ȳ, A), A)), *[NoTangent()] * len(rest))

        return primal(A, *rest, **keywords), linear_pullback


for _name in ("toarray", "todense", "copy", "tocsr", "tocsc", "tocoo", "todia", "tobsr", "tolil",
              "todok", "asformat", "astype", "sorted_indices"):  # fmt: skip
    each_method(_name)(lambda fn: _linear(fn, lambda ȳ, A: ȳ))
each_method("conj", "conjugate")(
    lambda fn: _linear(fn, lambda ȳ, A: np.conjugate(ȳ) if isinstance(ȳ, np.ndarray) else ȳ.conj())
)
each_method("transpose")(lambda fn: _linear(fn, lambda ȳ, A: ȳ.T))
each_method("trace")(lambda fn: _linear(fn, lambda ȳ, A: ȳ * np.eye(*A.shape)))


@each_method("diagonal")
def _diagonal(primal):
    @rrule(primal)
    def _(A: Sparse, k=0):
        def diagonal_pullback(ȳ):
            rows, columns = places(A)
            on = columns - rows == k
            where = np.where(on, np.minimum(rows, columns), 0)
            return like(A, np.where(on, ȳ[where], 0.0)), NoTangent()

        return primal(A, k), diagonal_pullback


def _total(primal, mean):
    @rrule(primal)
    def _(A: Sparse, axis=None, dtype=None, out=None):
        y = primal(A, axis, dtype, out)
        axes = axis if isinstance(axis, tuple) else (axis,)

        def total_pullback(ȳ):
            rows, columns = places(A)
            if axis is None or len(axes) == A.ndim:
                n, bars = math.prod(A.shape), np.ravel(ȳ)[0] * np.ones(len(rows))
            else:
                along = columns if axes[0] % 2 == 0 else rows
                n, bars = A.shape[axes[0]], np.ravel(ȳ)[along]
            return like(A, bars / n if mean else bars), NoTangent(), NoTangent(), NoTangent()

        return y, total_pullback


each_method("sum")(lambda fn: _total(fn, False))
each_method("mean")(lambda fn: _total(fn, True))


def _entrywise(name, slope):
    @each_method(name)
    def _register(primal):
        @rrule(primal)
        def _(A: Sparse):
            def entrywise_pullback(ȳ):
                return (like(A, picked(ȳ, A) * np.conjugate(slope(values(A)))),)

            return primal(A), entrywise_pullback


_entrywise("sqrt", lambda x: 0.5 / np.sqrt(x))
_entrywise("sin", np.cos)
_entrywise("tan", lambda x: 1 + np.tan(x) ** 2)
_entrywise("arcsin", lambda x: 1 / np.sqrt(1 - x * x))
_entrywise("arctan", lambda x: 1 / (1 + x * x))
_entrywise("sinh", np.cosh)
_entrywise("tanh", lambda x: 1 - np.tanh(x) ** 2)
_entrywise("arcsinh", lambda x: 1 / np.sqrt(1 + x * x))
_entrywise("arctanh", lambda x: 1 / (1 - x * x))
_entrywise("expm1", np.exp)
_entrywise("log1p", lambda x: 1 / (1 + x))
_entrywise("deg2rad", lambda x: np.full(x.shape, np.pi / 180))
_entrywise("rad2deg", lambda x: np.full(x.shape, 180 / np.pi))
_entrywise("__abs__", lambda x: np.conjugate(np.sign(x)))


@rrule(operator.abs)
@rrule(abs)
def _(A: Sparse):
    def abs_pullback(ȳ):
        return (like(A, picked(ȳ, A) * np.sign(values(A))),)

    return abs(A), abs_pullback


@each_method("power")
def _power(primal):
    @rrule(primal)
    def _(A: Sparse, n: Scalar, dtype=None):
        def power_pullback(ȳ):
            x, bars = values(A), picked(ȳ, A)
            ā = like(A, bars * np.conjugate(n * x ** (n - 1)))
            if isinstance(n, int):
                return ā, NoTangent(), NoTangent()
            slope = np.where(x == 0, 0.0, x**n * np.log(np.where(x == 0, 1.0, x)))
            return ā, np.sum(bars * np.conjugate(slope)), NoTangent()

        return primal(A, n, dtype), power_pullback


# -- entries ---------------------------------------------------------------------------------------


def entry_of(A, index):
    """A[index] and its pullback."""
    y = A[index]

    def getitem_pullback(ȳ):
        data = values(A)
        number = np.arange(1, len(data) + 1)
        first = first_of(A)
        # Where the entries stand in the data, from 1.
        found = like(A, np.where(first + 1 == number, number, 0)).tocsr()[index]
        if sparse.issparse(found):
            at = found.tocoo(copy=False)
            bars = picked(ȳ, at)[at.data > 0]
            positions = at.data[at.data > 0] - 1
        else:
            flat = np.ravel(np.asarray(found))
            bars, positions = np.ravel(np.asarray(ȳ))[flat > 0], flat[flat > 0] - 1
        whole = scatter(np.ravel(bars), (positions,), data.shape, data.dtype)
        return like(A, whole[first]), NoTangent()

    return y, getitem_pullback


@rrule(operator.getitem)
def _(A: Sparse, index: Anything):
    return entry_of(A, index)


@rrule(operator.getitem)
def _(A: sparse.dok_array | sparse.dok_matrix, index: Anything):
    """These are dictionaries too."""
    return entry_of(A, index)


# -- what changes an array in place ----------------------------------------------------------------


def refuse_change(what: str) -> Any:
    """Cotangents of sparse arrays go by value."""
    raise UnsupportedError(
        f"{what} changes a sparse array in place, which differentiated code cannot do: make a new "
        "one from its data"
    )


def refuse_write() -> Any:
    """What is written to the data is a change of the array."""
    return refuse_change("a write to A.data")


@rrule(operator.setitem)
def _(A: Sparse, index: Anything, value: Anything):
    return refuse_change("an assignment to an item")


@rrule(operator.setitem)
def _(A: sparse.dok_array | sparse.dok_matrix, index: Anything, value: Anything):
    return refuse_change("an assignment to an item")


@each_method("__setitem__")
def _assigning(primal):
    @rrule(primal)
    def _(A: Sparse, index: Anything, value: Anything):
        return refuse_change("an assignment to an item")


@rrule(setattr)
def _(A: Sparse, name: str, value: Anything):
    return refuse_change(f"an assignment to the attribute {name!r}")


def _in_place(primal):
    @rrule(primal)
    def _(A: Sparse, other: Anything):
        return refuse_change(primal.__name__)


for _f in (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow):
    _in_place(_f)


@each_method("setdiag", "resize")
def _changing(primal):
    @rrule(primal)
    def _(A: Sparse, *rest: Anything, **keywords):
        return refuse_change(primal.__name__)


WAYS_OUT = {
    "sum_duplicates": "A.tocoo().tocsr() gives a new one",
    "sort_indices": "A.sorted_indices() gives a new one",
    "eliminate_zeros": "entries that are zero have slopes; leave them",
}


@each_method(*WAYS_OUT)
def _tidying(primal):
    """Methods that change nothing of most arrays."""

    @rrule(primal)
    def _(A: Sparse):
        refuse_tidying(primal, A)

        def tidying_pullback(ȳ):
            return (NoTangent(),)

        return primal(A), tidying_pullback


def refuse_tidying(primal: Any, A: Any) -> None:
    """Refuse a call that would move, sum or leave out entries of an array."""
    tidied = A.copy()
    primal(tidied)
    if not same_pattern(tidied, A):
        raise UnsupportedError(
            f"{primal.__name__} changes a sparse array in place, which differentiated code cannot do: "
            + WAYS_OUT[primal.__name__]
        )


non_differentiable(refuse_tidying)
partial_functions(refuse_tidying)

# -- functions that put the entries of several arrays into one -------------------------------------


def leaves_of(blocks: Any) -> list[Any]:
    """The arrays in nested lists."""
    if sparse.issparse(blocks) or isinstance(blocks, np.ndarray):
        return [blocks]
    if isinstance(blocks, Sequence):
        return [leaf for block in blocks for leaf in leaves_of(block)]
    return []


def size_of(leaf: Any) -> int:
    """How many numbers one of them holds."""
    return len(values(leaf)) if sparse.issparse(leaf) else leaf.size


def numbered(blocks: Any, start: list[int], merged: bool) -> Any:
    """The same with the entries numbered from 1 through all arrays.

    merged: what is stored for a place again has 0, for it will be summed.
    """
    if sparse.issparse(blocks) or isinstance(blocks, np.ndarray):
        begin = start[0]
        start[0] += size_of(blocks)
        numbers = np.arange(begin + 1.0, start[0] + 1)
        if isinstance(blocks, np.ndarray):
            return numbers.reshape(blocks.shape)
        if merged:
            numbers[first_of(blocks) != np.arange(len(numbers))] = 0.0
        return like(blocks, numbers)
    if isinstance(blocks, Sequence):
        return type(blocks)([numbered(block, start, merged) for block in blocks])
    return blocks


def sources(primal: Any, blocks: Any, y: Any, rest: Any, keywords: Any) -> tuple[Any, bool]:
    """The result with, in the place of each entry, its number; whether entries were summed."""
    leaves = leaves_of(blocks)
    merged = any(sparse.issparse(leaf) and np.any(np.diff(first_of(leaf)) != 1) for leaf in leaves)
    where = primal(numbered(blocks, [0], merged), *rest, **keywords)
    if merged and not np.all(values(where)):
        merged = False
        where = primal(numbered(blocks, [0], False), *rest, **keywords)
    if where.nnz != y.nnz and not all(map(sparse.issparse, leaves)):
        raise UnsupportedError(
            "entries of a dense block are exactly zero and left out by SciPy, so that their "
            "derivative is lost: move the values a little, or compute with dense arrays"
        )
    return where, merged


def sorted_into(blocks, bars, start, merged):
    """The cotangents of the blocks, in their structure."""
    if sparse.issparse(blocks) or isinstance(blocks, np.ndarray):
        begin = start[0]
        start[0] += size_of(blocks)
        own = bars[begin : start[0]]
        if isinstance(blocks, np.ndarray):
            return np.reshape(own, blocks.shape)
        return like(blocks, own[first_of(blocks)] if merged else own)
    if isinstance(blocks, Sequence):
        return type(blocks)([sorted_into(block, bars, start, merged) for block in blocks])
    return NoTangent()


non_differentiable(leaves_of, size_of, numbered, sources)
partial_functions(sources)


TURNS = present(sparse, "permute_dims swapaxes")


def _placing(primal):
    @rrule(primal)
    def _(blocks: Anything, *rest: Anything, **keywords):
        y = primal(blocks, *rest, **keywords)

        def placing_pullback(ȳ):
            total = sum([size_of(leaf) for leaf in leaves_of(blocks)])
            where, merged = sources(primal, blocks, y, rest, keywords)
            positions = (values(where) - 1).astype(int)
            bars = scatter(picked(ȳ, where), (positions,), (total,), ȳ.dtype)
            return (sorted_into(blocks, bars, [0], merged), *[NoTangent()] * len(rest))

        return y, placing_pullback


for _f in (
    sparse.hstack, sparse.vstack, sparse.block_array, sparse.bmat, sparse.block_diag, sparse.tril,
    sparse.triu, *TURNS,
):  # fmt: skip
    _placing(_f)
for _f in TURNS:  # of COO they turn the argument itself

    @rrule(_f)
    def _(A: sparse.coo_array | sparse.coo_matrix, *rest: Anything, **keywords):
        return refuse_change("an exchange of the axes of a COO array")


each_method("reshape", "getrow", "getcol")(_placing)

for _name in (
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "nonzero", "count_nonzero", "getnnz",
    "argmax", "argmin", "floor", "ceil", "rint", "trunc",
):  # fmt: skip
    each_method(_name)(non_differentiable)

CONSTANT = (
    "shape", "ndim", "nnz", "dtype", "format", "indices", "indptr", "row", "col", "coords", "size",
    "offsets", "has_sorted_indices", "has_canonical_format", "maxprint", "blocksize",
)  # fmt: skip


@rrule(getattr)
def _(A: Sparse, name: str):
    y = getattr(A, name)
    if name == "data" and isinstance(y, np.ndarray):
        y = y.view()  # what is written to it would not be seen
        y.flags.writeable = False
        note_shown(y, refuse_write)

    def getattr_pullback(ȳ):
        if name in CONSTANT or isinstance(y, tuple | int | str | np.dtype | FunctionType | None):
            return NoTangent(), NoTangent()
        if name == "data" and A.format in ORDERED:
            return like(A, ȳ), NoTangent()
        if name == "data" and A.format == "dia":
            return like(A, np.ravel(ȳ)[numbers_of_diagonals(A).data]), NoTangent()
        if name == "T":
            return like(A, picked(ȳ.T, A)), NoTangent()
        if name in ("real", "imag"):
            bars = picked(ȳ, A)
            return like(A, bars if name == "real" else 1j * bars), NoTangent()
        if isinstance(y, np.ndarray):
            raise UnsupportedError(
                f"{name!r} of a {A.format} array has no derivative: take that of a csr_array"
            )
        return ȳ if isinstance(ȳ, Sparse) else ȳ.__self__, NoTangent()

    return y, getattr_pullback


# -- construction ----------------------------------------------------------------------------------


def _construction(cls):
    def construction(arg1: Anything, *options):
        A = cls(arg1, *options)
        given = as_it_is(arg1)

        def construction_pullback(S̄):
            return of_argument(S̄, A, given), *[NoTangent()] * len(options)

        return A, construction_pullback

    if cls in (sparse.bsr_array, sparse.bsr_matrix):

        @rrule(cls)
        def _(arg1: Anything, shape=None, dtype=None, copy=False, blocksize=None):
            return construction(arg1, shape, dtype, copy, blocksize)

    else:

        @rrule(cls)
        def _(arg1: Anything, shape=None, dtype=None, copy=False):
            return construction(arg1, shape, dtype, copy)


def of_argument(S̄, A, arg1):
    """The cotangent of what an array was made of."""
    if isinstance(arg1, Sparse):
        return like(arg1, picked(S̄, arg1))
    if isinstance(arg1, np.ndarray):
        dense = S̄.toarray() if sparse.issparse(S̄) else S̄
        return np.reshape(dense, arg1.shape)
    if isinstance(arg1, list):
        return like_sequence(S̄.toarray() if sparse.issparse(S̄) else S̄, arg1)
    if not isinstance(arg1, tuple):
        raise UnsupportedError(
            f"a {A.format} array made of a {type(arg1).__name__} has no derivative: "
            "make it of a NumPy array"
        )
    if all(np.ndim(n) == 0 for n in arg1):
        return NoTangent()  # a shape
    data = np.asarray(arg1[0])
    if A.format in ("dia", "bsr"):
        numbers = np.arange(1.0, data.size + 1).reshape(data.shape)
        where = plainly(type(A)((numbers, *arg1[1:]), shape=A.shape))
        positions = (values(where) - 1).astype(int)
        bars = scatter(picked(S̄, where), (positions,), (data.size,), A.dtype)
        rest = [NoTangent()] * (len(arg1) - 1)
        return (like_sequence(np.reshape(bars, data.shape), arg1[0]), *rest)
    if data.ndim != 1 or A.format not in ORDERED:
        raise UnsupportedError(
            f"a {A.format} array made of its parts has no derivative: make a csr_array"
        )
    if len(arg1) == 3:  # data, indices, indptr
        plain = type(A)((np.ones(len(data)), *arg1[1:]), shape=A.shape)
    else:
        plain = sparse.coo_array((np.ones(len(data)), tuple(arg1[1])), shape=A.shape)
    bars = picked(S̄, plain)
    return (like_sequence(bars, arg1[0]), *[NoTangent()] * (len(arg1) - 1))


for _cls in CLASSES:
    _construction(_cls)


def _diagonals(primal):
    @rrule(primal)
    def _(diagonals: Anything, offsets: Anything = 0, **keywords):
        y = primal(diagonals, offsets=offsets, **keywords)
        diagonals = as_it_is(diagonals)

        def diagonals_pullback(ȳ):
            if np.ndim(offsets) == 0:
                single = len(diagonals) != 1 or np.ndim(diagonals[0]) == 0
                bars = along(ȳ, offsets, diagonals if single else diagonals[0])
                return bars if single else [bars], NoTangent()
            bars = [along(ȳ, k, d) for k, d in zip(offsets, diagonals, strict=True)]
            if isinstance(diagonals, np.ndarray):
                return np.stack(bars), NoTangent()
            return type(diagonals)(bars), NoTangent()

        return y, diagonals_pullback


def along(ȳ, k, d):
    """The cotangent of one diagonal, or of the number that it was made of."""
    bars = ȳ.diagonal(k)
    return like_sequence(np.reshape(np.sum(bars) if np.size(d) == 1 else bars, np.shape(d)), d)


_diagonals(sparse.diags)
_diagonals(sparse.diags_array)
non_differentiable(
    sparse.eye, sparse.eye_array, sparse.identity, sparse.issparse, sparse.isspmatrix, sparse.random,
    sparse.random_array,
)  # fmt: skip

__all__ = ["has_space", "into_space", "plainly"]
