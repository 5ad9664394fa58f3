"""Cotangents of arrays that are structurally zero at some entries: the branch not taken.

`np.where(x >= 0, x, np.sqrt(-x))` gives the square root no cotangent where x >= 0. A plain zero
there would become 0 · ∞ = NaN in the pullback of the root, and taking every 0 · ∞ for 0 would hide
the NaN of `sqrt(x)**2` at 0. So a zero that comes from a selection is marked: `Selected` is an
array that knows where it may be other than zero. Its product with anything is zero elsewhere; a sum
with an unmarked array is unmarked. It holds its zeros, so that code which takes it for a plain
array reads what is right. Compiled programs mark only what a product will ask about (folding.py).
Tests: tests/rules/arrays/test_structural.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import ZERO, NoTangent, NotKnown, rrule, type_stable, without_marks
from morula.rules.arrays.types import NO_VALUE, Anything

SMALL = 4096  # below this many entries one call of np.where is the fastest selection


class Selected(np.ndarray):
    """An array that is structurally zero outside of `_where`; None: nothing is known."""

    _where: np.ndarray | None = None

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        plain = [unmarked(x) for x in inputs]
        if not keywords and method == "__call__" and ufunc in _MARKED:
            where = _MARKED[ufunc](*inputs)
            if where is not None:
                result = _where_it_counts(ufunc, plain, where)
                return result if out is None else _written(out[0], result, where)
        if out is not None:
            for x in out:
                if type(x) is Selected:
                    x._where = None
            keywords["out"] = tuple(map(unmarked, out))
        result = getattr(ufunc, method)(*plain, **keywords)
        if out is None and ufunc is np.add and method == "reduce" and self._where is not None:
            return _marked_sum(result, self._where, keywords)
        return result if out is None else (out[0] if len(out) == 1 else out)

    def __array_function__(self, func, types, args, kwargs):
        if func in _MOVING and type(args[0]) is Selected:
            rest = _plain_tree(args[1:])
            return args[0]._moved(lambda x: func(x, *rest, **kwargs))
        if func is np.sum and type(args[0]) is Selected:
            return args[0].sum(*args[1:], **kwargs)
        if func is np.concatenate:
            return _joined(*args, **kwargs)
        if func is np.split and self._where is not None:
            parts, masks = (func(x, *args[1:], **kwargs) for x in (unmarked(self), self._where))
            return [mark(x, w) for x, w in zip(parts, masks, strict=True)]
        if func is np.where and len(args) == 3:
            return selected(np.where(*map(unmarked, args)), _where_chosen(*args))
        return func(*_plain_tree(args), **_plain_tree(kwargs))

    def __reduce__(self):
        return unmarked(self).__reduce__()

    def reshape(self, *shape, **keywords):
        """The same cotangent in another shape."""
        return self._moved(lambda x: x.reshape(*shape, **keywords))

    def transpose(self, *axes):
        """The same cotangent with its axes permuted."""
        return self._moved(lambda x: x.transpose(*axes))

    def ravel(self, order="C"):
        """The same cotangent along one axis."""
        return self._moved(lambda x: x.ravel(order))

    def flatten(self, order="C"):
        """The same, in memory of its own."""
        return self._moved(lambda x: x.flatten(order))

    def swapaxes(self, first, second):
        """The same cotangent with two axes swapped."""
        return self._moved(lambda x: x.swapaxes(first, second))

    def copy(self, order="C"):
        """The same cotangent in memory of its own."""
        return self._moved(lambda x: x.copy(order))

    def squeeze(self, axis=None):
        """The same cotangent without axes of length 1."""
        return self._moved(lambda x: x.squeeze(axis))

    def sum(self, axis=None, dtype=None, **keywords):
        """Its sum, as `np.add.reduce` gives it."""
        return np.add.reduce(self, axis, dtype, **keywords)

    def conjugate(self):
        """The conjugate cotangent."""
        return np.conjugate(self)

    conj = conjugate

    def astype(self, dtype, *args, **keywords):
        """The same cotangent with another dtype."""
        result = unmarked(self).astype(dtype, *args, **keywords)
        return result if self._where is None else mark(result, self._where)

    @property
    def real(self):
        """The real part of the cotangent."""
        return (
            unmarked(self).real if self._where is None else mark(unmarked(self).real, self._where)
        )

    @property
    def imag(self):
        """The imaginary part of the cotangent."""
        return (
            unmarked(self).imag if self._where is None else mark(unmarked(self).imag, self._where)
        )

    @property
    def T(self):  # noqa: N802, the name that arrays give it
        """The transposed cotangent."""
        return self.transpose()

    def __getitem__(self, index):
        return self._moved(lambda x: x[index])

    def _moved(self, move):
        result = move(unmarked(self))
        if self._where is None or not isinstance(result, np.ndarray):
            return result
        return mark(result, move(self._where))


def _written(out: np.ndarray, result: Any, where: np.ndarray) -> np.ndarray:
    """A marked result in the memory of an array."""
    unmarked(out)[...] = unmarked(result)
    if type(out) is Selected:
        out._where = where
    return out


def unmarked(x: Any) -> Any:
    """An array without its mark, in the same memory."""
    return x.view(np.ndarray) if type(x) is Selected else x


without_marks.register(Selected)(unmarked)


def zeros_without_cotangent(shape: Any) -> Selected:
    """Zeros, all of which are structural."""
    return mark(np.zeros(shape), np.zeros(shape, bool))


def _plain_tree(x: Any) -> Any:
    if type(x) in (tuple, list):
        return type(x)([_plain_tree(part) for part in x])
    if type(x) is dict:
        return {key: _plain_tree(part) for key, part in x.items()}
    return unmarked(x)


def _where_it_counts(ufunc: np.ufunc, args: list[Any], where: np.ndarray) -> Any:
    """The ufunc of a marked cotangent and something: not computed where it counts as zero."""
    x = args[0]
    if len(args) == 1 or type(args[1]) in (float, int):
        shape, dtype = x.shape, x.dtype
    elif isinstance(x, np.ndarray) and isinstance(args[1], np.ndarray):
        same = x.shape == args[1].shape
        shape = x.shape if same else np.broadcast_shapes(x.shape, args[1].shape)
        dtype = x.dtype if x.dtype == args[1].dtype else np.result_type(*args)
    else:
        shape, dtype = np.broadcast_shapes(*map(np.shape, args)), np.result_type(*args)
    if where.shape != shape:
        where = np.broadcast_to(where, shape)
    if shape and dtype.kind in "fc":
        with np.errstate(all="ignore"):
            result = ufunc(*args)
        if type(result) is np.ndarray and np.isfinite(np.vdot(result, result)):
            return mark(result, where)  # no entry was infinite, so 0 times it is 0
    result = np.zeros(shape, dtype)
    ufunc(*args, out=result, where=where)
    return mark(result, where)


def _marked_sum(result: Any, where: np.ndarray, keywords: dict[str, Any]) -> Any:
    """A sum over axes: structurally zero where nothing but such zeros was added."""
    plain = keywords.get("initial", NO_VALUE) is NO_VALUE and keywords.get("where", True) is True
    if not isinstance(result, np.ndarray) or not plain:
        return result
    axis, keepdims = keywords.get("axis", 0), bool(keywords.get("keepdims", False))
    return mark(result, np.logical_or.reduce(where, axis=axis, keepdims=keepdims))


def _joined(parts: Any, axis: Any = 0) -> Any:
    """Pieces joined, with their marks."""
    masks = [np.ones(np.shape(x), bool) if _of(x) is None else _of(x) for x in parts]
    if all(map(np.all, masks)):
        return np.concatenate(_plain_tree(parts), axis)
    return mark(np.concatenate(_plain_tree(parts), axis), np.concatenate(masks, axis))


def _where_chosen(mask: Any, a: Any, b: Any) -> Any:
    """Where what `np.where` takes is not structurally zero; a number 0.0 stands for such a zero."""
    a_counts, b_counts = (
        _of(x)
        if type(x) is Selected and x._where is not None
        else not (type(x) is float and x == 0)
        for x in (a, b)
    )
    return np.where(mask, a_counts, b_counts)


def mark(x̄: np.ndarray, where: np.ndarray) -> Selected:
    """`x̄`, which holds zeros where the mask does not, as an array that knows it."""
    marked = x̄.view(Selected)
    marked._where = where
    return marked


def selected(x̄: Any, where: Any) -> Any:
    """`x̄` where the mask holds, marked as structurally zero elsewhere."""
    if type(x̄) is NotKnown:
        return x̄ if np.any(where) else ZERO
    if not isinstance(x̄, np.ndarray) or x̄.ndim == 0:
        return x̄ if where else ZERO
    if where.shape != x̄.shape:
        where = np.broadcast_to(where, x̄.shape)
    if (already := _of(x̄)) is not None:
        where = where & already
    return mark(masked(np.asarray(x̄), where), where)


def _of(x: Any) -> Any:
    return x._where if type(x) is Selected else None


def _first(a: Any, b: Any = None) -> Any:
    return _of(a)


def _both(a: Any, b: Any) -> Any:
    a, b = _of(a), _of(b)
    return b if a is None else a if b is None else a & b


def _either(a: Any, b: Any) -> Any:
    a, b = _of(a), _of(b)
    return None if a is None or b is None else a | b


# Functions that put the entries of their first argument elsewhere.
_MOVING = {
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.expand_dims,
    np.squeeze, np.diagonal, np.real, np.imag, np.flip, np.roll, np.rot90, np.broadcast_to,
    np.take, np.take_along_axis, np.repeat,
}  # fmt: skip
_MARKED = {
    np.multiply: _both,
    np.divide: _first,
    np.add: _either,
    np.subtract: _either,
    np.negative: _first,
    np.positive: _first,
    np.conjugate: _first,
}


def masked(x̄, mask):
    """`x̄` where `mask` holds, 0 elsewhere, even if `x̄` is infinite there; not marked."""
    if isinstance(x̄, np.ndarray) and x̄.size > SMALL and type(x̄) is np.ndarray:
        # A product is three times as fast as a selection; it is right if all of x̄ is finite.
        if x̄.dtype.kind in "fc" and np.isfinite(np.vdot(x̄, x̄)):
            return x̄ * mask
    elif type(x̄) is Selected and x̄._where is not None:
        return selected(x̄, x̄._where & mask)
    return np.where(mask, x̄, 0.0)


@rrule(masked)
def _(x̄: Anything, mask: Anything):
    def masked_pullback(ȳ):
        return masked(ȳ, mask), NoTangent()

    return masked(x̄, mask), masked_pullback


def _selecting(select):
    @rrule(select)
    def _(x̄: Anything, where: Anything):
        def selected_pullback(ȳ):
            return selected(ȳ, where), NoTangent()

        return select(x̄, where), selected_pullback


_selecting(selected)
_selecting(mark)


type_stable(masked)
