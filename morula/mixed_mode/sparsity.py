"""Sparse Jacobians and Hessians: the pattern, and the compressed runs.

The pattern comes from a run of the function in forward mode with sets of indices in the place of
tangents: which entries of the argument can a number depend on? Functions that move entries about move
their sets, elementwise functions and sums unite them; what nothing is known of depends on all that
goes in. So the pattern holds for the path that this run takes, and never lacks an entry.
"""

from __future__ import annotations

import operator
from functools import reduce
from types import NoneType
from typing import Any

import numpy as np

from morula.core import errors
from morula.core.context import as_before
from morula.core.cotangents import ZERO, accumulate, is_zero
from morula.core.interface import grad, pullback
from morula.core.registry import non_differentiable
from morula.mixed_mode.colouring import Star, colours_of
from morula.mixed_mode.jacobians import (
    all_real,
    columns_along,
    library_of,
    once,
    product_for,
    space_of,
)
from morula.mixed_mode.push import push, split_call, value_by
from morula.mixed_mode.repetition import repetition
from morula.mixed_mode.tangents import Pass, by_value, holds_mutable, last, set_all
from morula.rules.arrays.arithmetic import log_or_zero, real_slope
from morula.rules.arrays.broadcasting import spread, total, unbroadcast, widened
from morula.rules.arrays.elementwise import array_part, marked_part
from morula.rules.arrays.indexing import scatter, scattered
from morula.rules.arrays.structural import masked, selected
from morula.rules.checkpoints import is_nested

NOTHING: frozenset[int] = frozenset()
NUMERIC = (int, float, complex, np.ndarray, np.generic)

# -- sets of indices in the place of tangents ------------------------------------------------------


class Dependence:
    """What each entry of a number or an array depends on: an array of sets of indices."""

    __slots__ = ("sets",)
    __array_ufunc__ = None

    def __init__(self, sets: Any) -> None:
        self.sets = sets

    def __add__(self, other: Any) -> Any:
        return self if is_zero(other) else Dependence(np.bitwise_or(self.sets, other.sets))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self

    def __getitem__(self, i: Any) -> Any:
        return Dependence(as_array(self.sets[i]))


def as_array(sets: Any) -> Any:
    """An array of sets, of no dimension for a single one."""
    if isinstance(sets, np.ndarray):
        return sets
    found = np.empty((), object)
    found[()] = sets
    return found


def filled(shape: Any, one: frozenset[int]) -> Any:
    """An array of one and the same set."""
    found = np.empty(shape, object)
    found[...] = as_array(one)
    return found


def sets_of(x: Any, ẋ: Any) -> Any:
    """The sets of the entries of a number or an array."""
    if is_zero(ẋ):
        return filled(np.shape(x), NOTHING)
    return np.broadcast_to(ẋ.sets, np.shape(x))


class Tracing(Pass):
    """A forward pass with sets of indices as tangents."""

    __slots__ = ()
    refusal = "in the search for a pattern: give jacobian your own"

    def empty_layer(self, shape: Any, dtype: Any) -> Any:
        """Entries that depend on nothing."""
        return filled(shape, NOTHING)

    def layers(self, ẋ: Any) -> list[Any]:
        """The array of sets."""
        return [ẋ.sets]

    def of_layers(self, layers: list[Any]) -> Any:
        """What has these sets."""
        return Dependence(as_array(layers[0]))

    def primitive(
        self,
        fn: Any,
        rule: Any,
        is_forward: bool,
        args: tuple[Any, ...],
        tangents: tuple[Any, ...],
        keywords: Any,
    ) -> Any:
        """The value of a call that a rule serves, and what it depends on."""
        y = value_by(rule, args, keywords)
        values = tuple([by_value(self, x, ẋ) for x, ẋ in zip(args, tangents, strict=True)])
        if all(map(is_zero, values)):
            return y, ZERO
        found = depends(fn, args, values, keywords, y)
        if isinstance(y, list):
            set_all(self, y, found)
            return y, ZERO
        if holds_mutable(y):
            raise errors.no_rule(fn, args, why="in the search for a pattern")
        return y, found

    def attribute(self, x: Any, ẋ: Any, name: str, y: Any) -> Any:
        """What an attribute of an array depends on."""
        counts = isinstance(x, np.ndarray) and isinstance(y, int)  # ndim, size
        if is_zero(ẋ) or counts or not isinstance(y, NUMERIC):
            return ZERO
        if name in ("T", "mT"):
            return Dependence(getattr(ẋ.sets, name))
        if np.shape(y) == np.shape(x):
            return ẋ
        return Dependence(filled(np.shape(y), union([ẋ])))


def union(values: Any) -> frozenset[int]:
    """All that some structure depends on."""
    if isinstance(values, Dependence):
        return reduce(operator.or_, values.sets.ravel().tolist(), NOTHING)
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return reduce(operator.or_, map(union, values), NOTHING)
    return NOTHING


def depends(fn: Any, args: Any, values: Any, keywords: Any, y: Any) -> Any:
    """The sets of a result."""
    if id(fn) in MOVING:
        return moved(fn, args, values, keywords, y)
    if (
        is_elementwise(fn)
        and all(isinstance(x, (*NUMERIC, NoneType)) for x in args)
        and not keywords
    ):
        found = [sets_of(x, ẋ) for x, ẋ in zip(args, values, strict=True)]
        return Dependence(as_array(reduce(np.bitwise_or, found)))
    if id(fn) in UNITING and isinstance(args[0], np.ndarray) and is_zero(values[1:]):
        named = dict(zip(keywords, args[len(args) - len(keywords) :], strict=True))
        along = args[1] if len(args) > 1 + len(keywords) else named.pop("axis", None)
        if not {*named} - {"keepdims", "ddof", "dtype"} and args[0].size:
            return Dependence(united(UNITING[id(fn)], sets_of(args[0], values[0]), along, y))
    if fn is np.ufunc.reduce and np.size(args[1]) and is_zero(values[2:]):
        n = len(args) - len(keywords)
        named = dict(zip(keywords, args[n:], strict=True))
        along = args[2] if n > 2 else named.get("axis", 0)
        return Dependence(united(False, sets_of(args[1], values[1]), along, y))
    if id(fn) in TABLE and {*keywords} <= {"n", "axis"}:
        n = len(args) - len(keywords)
        named = dict(zip(keywords, args[n:], strict=True))
        found = TABLE[id(fn)](args[:n], values, y, **named)
        if found is not None:
            return Dependence(as_array(found))
    return of_all(y, union(values))


def of_all(y: Any, one: frozenset[int]) -> Any:
    """A result of which every entry may depend on everything."""
    if isinstance(y, (tuple, list)):
        return type(y)([of_all(v, one) for v in y]) if type(y) in (tuple, list) else ZERO
    if isinstance(y, NUMERIC) and not isinstance(y, (bool, np.bool_)):
        return Dependence(filled(np.shape(y), one))
    return ZERO


def is_elementwise(fn: Any) -> bool:
    """Is it an operator on numbers, or a ufunc?"""
    return fn in ELEMENTWISE or (isinstance(fn, np.ufunc) and fn.signature is None and fn.nout == 1)


def moved(fn: Any, args: Any, values: Any, keywords: Any, y: Any) -> Any:
    """Entries are moved about: the same call with their numbers in the place of the entries."""
    known: list[frozenset[int]] = [NOTHING]

    def numbered(x: Any, ẋ: Any) -> Any:
        if isinstance(x, (list, tuple)) and any(isinstance(v, (*NUMERIC, list, tuple)) for v in x):
            dots = [ZERO] * len(x) if is_zero(ẋ) else list(ẋ)
            if all(map(is_zero, dots)) and not is_data(x):
                return x
            return type(x)([numbered(v, c) for v, c in zip(x, dots, strict=True)])
        if is_zero(ẋ):
            return np.zeros(np.shape(x), int) if is_data(x) else x
        sets = sets_of(x, ẋ)
        first = len(known)
        known.extend(sets.ravel().tolist())
        return np.arange(first, len(known)).reshape(np.shape(x))

    places = [numbered(x, ẋ) for x, ẋ in zip(args, values, strict=True)]
    return sets_at(split_call(fn, tuple(places), keywords), known)


def is_data(x: Any) -> bool:
    """Are these numbers that are moved, and not places or shapes?"""
    if isinstance(x, (list, tuple)):
        return any(map(is_data, x))
    kind = getattr(getattr(x, "dtype", None), "kind", None)
    return isinstance(x, (float, complex)) or kind in ("f", "c")


def sets_at(places: Any, known: list[frozenset[int]]) -> Any:
    """The sets at the numbered places."""
    if isinstance(places, (list, tuple)):
        return type(places)([sets_at(p, known) for p in places])
    table = np.empty(len(known), object)
    table[:] = known
    return Dependence(as_array(table[np.asarray(places, int)]))


def united(cumulative: bool, sets: Any, axis: Any, y: Any) -> Any:
    """The sets of a sum, or of the sums up to each entry."""
    if cumulative:
        if axis is None:
            sets, axis = sets.ravel(), 0
        return np.bitwise_or.accumulate(sets, axis=axis)
    axes = tuple(range(sets.ndim)) if axis is None else axis
    return np.reshape(as_array(np.bitwise_or.reduce(sets, axis=axes)), np.shape(y))


def of_product(args: Any, values: Any, y: Any) -> Any:
    """The sets of a product of vectors, and matrices, sparse ones too; zeros of constants count."""
    if any(isinstance(x, (list, tuple)) or np.ndim(x) not in (1, 2) for x in args):
        return None
    a, b = args
    rows = parts_of_rows(a, values[0])
    columns = parts_of_rows(
        b.T, ZERO if is_zero(values[1]) else Dependence(sets_of(b, values[1]).T)
    )
    if min(len(rows), len(columns)) > 1 and len(rows) * len(columns) * np.shape(a)[-1] > MUCH:
        return None
    found = np.empty((len(rows), len(columns)), object)
    for i, row in enumerate(rows):
        for k, column in enumerate(columns):
            both = row.keys() & column.keys()
            found[i, k] = NOTHING.union(*[row[j] for j in both], *[column[j] for j in both])
    return found.reshape(np.shape(y))


def parts_of_rows(x: Any, ẋ: Any) -> list[dict[int, frozenset[int]]]:
    """What the entries of each row depend on, by their columns; constant zeros are left out."""
    if is_zero(ẋ):
        x = x.reshape((1, -1)) if x.ndim == 1 else x
        found: list[dict[int, frozenset[int]]] = [{} for _ in range(x.shape[0])]
        for i, j in np.transpose(x.nonzero()).tolist():
            found[i][j] = NOTHING
        return found
    sets = sets_of(x, ẋ)
    return [dict(enumerate(row)) for row in np.atleast_2d(sets).tolist()]


def of_difference(args: Any, values: Any, y: Any, n: int = 1, axis: int = -1) -> Any:
    """The sets of differences of neighbours."""
    n, axis = (*args[1:], *(n, axis)[len(args) - 1 :])
    sets = np.moveaxis(sets_of(args[0], values[0]), axis, 0)
    for _ in range(n):
        sets = np.bitwise_or(sets[1:], sets[:-1])
    return np.moveaxis(sets, 0, axis)


def of_scattered(args: Any, values: Any, y: Any) -> Any:
    """The sets of zeros to which something is added at an index."""
    found = filled(np.shape(y), NOTHING)
    np.bitwise_or.at(found, args[1], sets_of(args[0], values[0]))
    return found


def of_unbroadcast(args: Any, values: Any, y: Any) -> Any:
    """The sets of sums over the axes along which something was broadcast."""
    sets, shape = sets_of(args[0], values[0]), np.shape(y)
    extra = sets.ndim - len(shape)
    if extra < 0:
        return np.broadcast_to(sets, shape)
    stretched = [i for i, n in enumerate(shape, extra) if n == 1 and sets.shape[i] != 1]
    axes = (*range(extra), *stretched)
    return np.reshape(as_array(np.bitwise_or.reduce(sets, axis=axes) if axes else sets), shape)


def of_total(args: Any, values: Any, y: Any) -> Any:
    """The set of a sum of all entries."""
    return filled(np.shape(y), union([values[0]]))


def of_spread(args: Any, values: Any, y: Any) -> Any:
    """The sets of what is broadcast."""
    return np.broadcast_to(sets_of(args[0], values[0]), np.shape(y))


ELEMENTWISE = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod,
    operator.neg, operator.pos, operator.abs, abs, float, operator.iadd, operator.isub,
    operator.imul, operator.itruediv, operator.ipow, pow, np.ndarray.conjugate, np.clip,
    np.ndarray.clip, accumulate, log_or_zero, array_part, marked_part, masked,
    real_slope, selected, widened, np.float64, np.float32, np.complex128, np.complex64, complex,
}  # fmt: skip
MUCH = 1_000_000  # products of entries whose sets are not looked at one by one
TABLE = {
    **{id(fn): of_product for fn in (operator.matmul, np.matmul, np.dot, np.ndarray.dot)},
    id(np.diff): of_difference,
    id(scatter): of_scattered,
    id(scattered): of_scattered,
    id(unbroadcast): of_unbroadcast,
    id(spread): of_spread,
    id(total): of_total,
}
MOVING = {
    id(fn)
    for fn in (
        operator.getitem, np.reshape, np.ndarray.reshape, np.transpose, np.ndarray.transpose,
        np.ravel, np.ndarray.ravel, np.ndarray.flatten, np.concatenate, np.stack, np.hstack,
        np.vstack, np.roll, np.flip, np.repeat, np.ndarray.repeat, np.tile, np.squeeze,
        np.ndarray.squeeze, np.expand_dims, np.swapaxes, np.moveaxis, np.broadcast_to, np.take,
        np.delete, np.append, np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.where,
        np.ndarray.copy, np.copy, np.diag,
        np.diagonal, np.ndarray.tolist, np.split, np.insert, np.atleast_1d, np.triu,
        np.tril,
    )
}  # fmt: skip
UNITING = {
    **{
        id(fn): False
        for fn in (
            np.sum, np.ndarray.sum, np.mean, np.ndarray.mean, np.prod, np.ndarray.prod, np.max,
            np.ndarray.max, np.min, np.ndarray.min, np.std, np.ndarray.std, np.var, np.ndarray.var,
        )
    },
    **{id(fn): True for fn in (np.cumsum, np.ndarray.cumsum, np.cumprod, np.ndarray.cumprod)},
}  # fmt: skip


def pattern_of(f: Any, args: tuple[Any, ...], k: int) -> Any:
    """Which entries of f(*args) depend on which of its k-th argument: a sparse matrix of ones."""
    from scipy import sparse

    x = args[k]
    sets = np.empty(np.size(x), object)
    sets[:] = [frozenset([i]) for i in range(np.size(x))]
    tangents: list[Any] = [ZERO] * len(args)
    tangents[k] = Dependence(sets.reshape(np.shape(x)))
    run = Tracing()
    y, ẏ = as_before(push, run, f, ZERO, args, tuple(tangents))
    space_of(y, "the result")
    found = sets_of(y, last(run, y, ẏ)).ravel().tolist()
    rows = np.repeat(np.arange(len(found)), [len(s) for s in found])
    columns = np.array([j for s in found for j in sorted(s)], int)
    shape = (np.size(y), np.size(x))
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


# -- compressed runs -------------------------------------------------------------------------------


def sparse_jacobian(f: Any, args: tuple[Any, ...], sparsity: Any) -> Any:
    """The Jacobians by all arguments as sparse matrices, of shape (y.size, x.size)."""
    spaces = [space_of(x, f"argument {i}") for i, x in enumerate(args)]
    again = repetition((f, args), is_nested())
    for i, x in enumerate(args):
        check_kind(i, x)
    if len(args) != 1 and not isinstance(sparsity, str):
        raise errors.ArgumentError("a pattern may be given for one argument, not for more")
    patterns = [pattern_by(sparsity, f, args, k, again) for k in range(len(args))]
    for pattern, space in zip(patterns, spaces, strict=True):
        check_pattern(pattern, (pattern.shape[0], space.size), "Jacobian")
    return tuple([compressed(f, args, k, spaces[k], patterns[k], again) for k in range(len(args))])


def check_kind(i: int, x: Any) -> None:
    """An error for an array of another library."""
    if library_of(x) is not None:
        raise errors.ArgumentError(
            f"argument {i} is a {type(x).__name__}: sparse derivatives are by numbers and arrays of "
            "NumPy's, so leave out sparsity, or call f with arrays of NumPy's"
        )


non_differentiable(pattern_of, check_kind)


def pattern_by(sparsity: Any, f: Any, args: tuple[Any, ...], k: int, again: Any) -> Any:
    """The pattern that is given, or found out: ones, also where a matrix that is given holds zeros."""
    if isinstance(sparsity, str):
        if sparsity != "auto":
            raise ValueError(f"sparsity is 'auto' or a matrix, not {sparsity!r}")
        return once(again, pattern_of, f, args, k)
    from scipy import sparse

    given = sparse.csr_array(sparsity)
    return sparse.csr_array((np.ones(given.nnz), given.indices, given.indptr), shape=given.shape)


def check_pattern(pattern: Any, shape: tuple[int, int], of: str) -> None:
    """An error for a pattern that is given in another shape than it has."""
    if pattern.shape != shape:
        raise errors.ArgumentError(f"the pattern is of shape {pattern.shape}, the {of} of {shape}")


non_differentiable(check_pattern)


def compressed(f: Any, args: tuple[Any, ...], k: int, space: Any, pattern: Any, again: Any) -> Any:
    """The entries of a pattern, by one run for each colour of its columns, or of its rows."""
    from scipy import sparse

    entries = pattern.tocoo()
    by_column, by_row = colours_of(pattern), colours_of(pattern.T)
    n, m = (int(np.max(c, initial=-1)) + 1 for c in (by_column, by_row))
    found: Any
    if n <= m or not all_real([space]):

        def direction(k: int, c: int) -> Any:
            return np.reshape((by_column == c).astype(space.dtype), space.shape)

        colours = [(k, c) for c in range(n)]
        runs = [np.ravel(y) for y in columns_along(f, args, colours, direction, again)]
        if runs:
            check_pattern(pattern, (runs[0].size, space.size), "Jacobian")
        found = [runs[by_column[j]][i] for i, j in zip(entries.row, entries.col, strict=True)]
    else:
        y, back = once(again, pullback, f, *args)
        of_result = space_of(y, "the result")
        check_pattern(pattern, (of_result.size, space.size), "Jacobian")
        seeds = [
            np.reshape((by_row == c).astype(of_result.dtype), of_result.shape) for c in range(m)
        ]
        runs = [np.ravel(back(ȳ)[k]) for ȳ in seeds]
        if of_result.is_complex:
            imaginary = [np.ravel(back(1j * ȳ)[k]) for ȳ in seeds]
            runs = [re + 1j * im for re, im in zip(runs, imaginary, strict=True)]
        found = [runs[by_row[i]][j] for i, j in zip(entries.row, entries.col, strict=True)]
    values = np.array(found, runs[0].dtype if runs else space.dtype)
    return sparse.csr_array((values, (entries.row, entries.col)), shape=pattern.shape)


def sparse_hessian(f: Any, x: Any, args: tuple[Any, ...], sparsity: Any) -> Any:
    """The Hessian as a sparse matrix of shape (x.size, x.size), by one product for each colour."""
    from scipy import sparse

    check_kind(0, x)
    space = space_of(x, "argument 0")
    again = repetition((f, x, args), is_nested())

    def slope(x: Any) -> Any:
        return grad(f)(x, *args)

    pattern = pattern_by(sparsity, slope, (x,), 0, again)
    check_pattern(pattern, (space.size, space.size), "Hessian")
    if space.is_complex:  # the derivative of the gradient by real parts, which is not symmetric
        return compressed(slope, (x,), 0, space, pattern, again)
    star = Star(pattern + pattern.T)

    def direction(k: int, c: int) -> Any:
        return np.reshape((star.colours == c).astype(space.dtype), space.shape)

    colours = [(0, c) for c in range(int(np.max(star.colours, initial=-1)) + 1)]
    product = None if is_nested() else product_for(f, x)
    if product is None:
        runs = columns_along(slope, (x,), colours, direction, again)
    else:
        runs = [once(again, product, x, direction(k, c), *args) for k, c in colours]
    columns = [np.ravel(run) for run in runs]
    entries = pattern.tocoo()
    values = np.zeros(entries.nnz, columns[0].dtype if columns else space.dtype)
    for n, (i, j) in enumerate(zip(entries.row.tolist(), entries.col.tolist(), strict=True)):
        c, row = star.place(i, j)
        values[n] = columns[c][row]
    return sparse.csr_array((values, (entries.row, entries.col)), shape=pattern.shape)
