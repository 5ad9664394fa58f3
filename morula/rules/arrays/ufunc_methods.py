"""Rules of what every ufunc has: calls with keywords, reduce, accumulate, outer, reduceat, at.

`np.add.reduce` is another object each time it is asked for, so these rules are registered for the
methods of the type (`np.ufunc.reduce`), with the ufunc as their first argument. Likewise a call
with `where=` or `dtype=` is served by a rule of `np.ufunc.__call__`: the rules of the ufuncs
themselves stay free of keywords.
Tests: tests/rules/arrays/test_ufunc_methods.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    NoTangent,
    NotKnown,
    ZeroTangent,
    call,
    find_rrule,
    is_constant,
    is_zero,
    no_rule,
    non_differentiable,
    opaque,
    project_to,
    resolves,
    rrule,
    unthunk,
)
from morula.rules.arrays.broadcasting import part, restore, spread, unbroadcast
from morula.rules.arrays.callbacks import each_entry, function_of_ufunc
from morula.rules.arrays.construction import as_it_is, like_sequence, rounds
from morula.rules.arrays.indexing import scatter
from morula.rules.arrays.inplace import fits
from morula.rules.arrays.outs import call_with_out, outs_of, parted
from morula.rules.arrays.reductions import (
    asked_for,
    attaining,
    attains,
    of_initial,
    running_back,
)
from morula.rules.arrays.structural import selected
from morula.rules.arrays.types import NO_VALUE, Anything, Sequence

_REDUCTIONS = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
}  # fmt: skip
_RUNNING = {np.add: np.cumsum, np.multiply: np.cumprod}


@resolves(np.ufunc)
def ufunc_call(ufunc: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that no rule of the ufunc itself serves: keywords, or types that it does not know."""
    parts = parted(ufunc, len(args), kwargs)
    if parts is None:
        return without_out(ufunc, args, kwargs)
    plain = partial(before_it_is_written, ufunc, outs_of(parts, (*args, *kwargs.values())))
    return call_with_out(ufunc, args, kwargs, plain)


def before_it_is_written(
    ufunc: Any, outs: tuple[Any, ...], *args: Any, **kwargs: Any
) -> tuple[Any, Any]:
    """The value and the pullback of what is to be written to arrays."""
    targets = [x for x in outs if x is not None and x is not Ellipsis]
    if ufunc.signature is None and not all([fits(x, *args) for x in targets]):
        ufunc(*args, out=outs, **kwargs)  # raises
    if targets and kwargs.get("where", True) is not True and ufunc.nout == 1:
        y, inner = call(np.ufunc.__call__, ufunc, *args, **kwargs, elsewhere=targets[0])
        return y, partial(without_elsewhere, inner)
    return call(ufunc, *args, **kwargs)


def without_elsewhere(back: Any, ȳ: Any) -> tuple[Any, ...]:
    """The cotangents of the call of a ufunc from those of the call of `np.ufunc.__call__`."""
    return back(ȳ)[1:-1]


def without_out(ufunc: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same, where nothing is written to."""
    if ufunc.signature is not None and not {"axis", "axes", "keepdims"}.isdisjoint(kwargs):
        y, back = call(along_axes, ufunc, args, **kwargs)
        n = len(kwargs)
        return y, lambda ȳ: (NONE, *whole_tuple(back(ȳ)[2], len(args)), *[NONE] * n)
    if find_rrule(np.ufunc.__call__, (ufunc, *args), kwargs) is None:
        return opaque(ufunc, args, kwargs)
    y, back = call(np.ufunc.__call__, ufunc, *args, **kwargs)
    return y, lambda ȳ: back(ȳ)[1:]


def whole_tuple(bars: Any, n: int) -> Any:
    """The cotangents of the entries of a tuple."""
    return [part(bars, i) for i in range(n)]


def along_axes(ufunc, args, *, axis=None, axes=None, keepdims=False):
    """A ufunc of vectors or matrices along axes that are not the last ones."""
    inner = core_axes(ufunc, args)
    if axis is not None:
        axes = [(axis,) for _ in args]
    axes = [given_axes(axes, i, n) for i, n in enumerate(inner)]
    moved = [
        np.moveaxis(np.asarray(x), axes[i], tuple(range(-inner[i], 0))) for i, x in enumerate(args)
    ]
    y = ufunc(*moved)
    if keepdims:
        return np.expand_dims(y, axes[0])
    kept = inner[len(args)]
    return np.moveaxis(y, tuple(range(-kept, 0)), axes[-1]) if kept else y


def core_axes(ufunc: Any, args: Any) -> list[int]:
    """How many axes of each operand and of the result a ufunc takes together."""
    inside = ufunc.signature.replace("->", ",").replace("),(", ");(").split(";")
    counts = [len([c for c in part.strip("()").split(",") if c]) for part in inside]
    if ufunc is np.matmul:  # of vectors it leaves an axis out
        a, b = [min(np.ndim(x), 2) for x in args]
        return [a, b, a + b - 2]
    return counts


def given_axes(axes: Any, i: int, n: int) -> tuple[int, ...]:
    """The axes of operand i; the last ones, if none are given."""
    if axes is None or i >= len(axes):
        return tuple(range(-n, 0))
    return (axes[i],) if isinstance(axes[i], int) else tuple(axes[i])


non_differentiable(core_axes, given_axes)


def _rule_of(fn: Any, *args: Any) -> Any:
    """The function of the rule that serves a call for which there certainly is one."""
    rule = find_rrule(fn, args)
    assert rule is not None
    return rule.function


@rrule(np.ufunc.__call__)
def _(
    ufunc: np.ufunc, *args: Anything, where=True, dtype=None, casting="same_kind", order="K",
    subok=True, elsewhere=None,
):  # fmt: skip
    """A call with keywords: the rule of the bare call, and zeros where it was not computed.

    What `elsewhere` holds is given there. Operands that are sequences are converted. One that is
    converted to another kind of number, by `dtype` and `casting`, counts as what it is converted to.
    """
    f = function_of_ufunc(ufunc)
    if f is not None and where is True and dtype is None and elsewhere is None:
        y, back = call(each_entry, f, ufunc.nout, *args)

        def each_entry_pullback(ȳ):
            _, f̄, _, *bars = back(ȳ)
            return f̄, *bars

        return y, each_entry_pullback
    given, args = tuple([as_it_is(x) for x in args]), operands(args)
    keywords: dict[str, Any] = {"casting": casting, "order": order, "subok": subok}
    if dtype is not None:
        keywords["dtype"] = dtype
    if where is not True:
        keywords["where"] = where
    if elsewhere is not None:
        keywords["out"] = elsewhere.copy()
    y = ufunc(*args, **keywords)

    def ufunc_pullback(ȳ):
        if is_constant(ufunc):
            return (ZeroTangent(),) * (len(args) + 1)
        rule = find_rrule(ufunc, args)
        if rule is None:
            raise no_rule(ufunc, args)
        shape = np.shape(y)
        seen = args if dtype is None else as_converted(ufunc, args, dtype, casting)
        wide = seen if where is True else [_selected_argument(x, where, shape) for x in seen]
        seed = ȳ if where is True else selected(spread(ȳ, shape), np.broadcast_to(where, shape))
        cotangents = rule.function(*wide)[1](seed)
        return (
            NoTangent(),
            *[
                of_operand(ZeroTangent() if loses_fraction(x, z) else unthunk(x̄), x)
                for x, z, x̄ in zip(given, seen, cotangents, strict=False)
            ],
        )

    return y, ufunc_pullback


def as_converted(ufunc, args, dtype, casting):
    """The operands as the loop of a ufunc for this dtype sees them, if it changes their kind."""
    given = [np.asarray(x).dtype for x in args]
    nothing = (None,) * ufunc.nout
    asked = (*[None] * ufunc.nin, np.dtype(dtype), *nothing[1:])
    seen = ufunc.resolve_dtypes((*given, *nothing), signature=asked, casting=casting)
    pairs = zip(args, given, seen, strict=False)
    return tuple([x if _keeps(a, b) else np.asarray(x).real.astype(b) for x, a, b in pairs])


def _keeps(given: np.dtype, seen: np.dtype) -> bool:
    return given.kind == seen.kind or np.can_cast(given, seen, "same_kind")


def loses_fraction(given: Any, seen: Any) -> bool:
    """Was it made whole by a conversion?"""
    return seen is not given and rounds(np.asarray(seen).dtype, given)


non_differentiable(loses_fraction)


def operands(args):
    """The operands, with arrays in the place of sequences."""
    return tuple([np.asarray(x) if isinstance(x, Sequence) else x for x in args])


def of_operand(x̄, x):
    """A wide cotangent in the shape of its operand, in whose structure it is."""
    narrow = x̄ if type(x̄) is NotKnown or is_zero(x̄) else unbroadcast(x̄, np.shape(x))
    if isinstance(x, Sequence) and not is_zero(x̄):
        return like_sequence(narrow, x)
    return project_to(x)(narrow)


def _selected_argument(x, where, shape):
    """An argument in the shape of the result, and 1 where it was not looked at."""
    return np.where(where, np.broadcast_to(x, shape), np.ones((), np.asarray(x).dtype))


@rrule(np.ufunc.reduce)
def _(
    ufunc: np.ufunc, array: np.ndarray, axis=0, dtype=None, *, keepdims=False, initial=NO_VALUE,
    where=True,
):  # fmt: skip
    keywords: dict[str, Any] = {"keepdims": keepdims}
    if initial is not NO_VALUE:
        keywords["initial"] = initial
    if where is not True:
        keywords["where"] = where
    if ufunc in _REDUCTIONS and (dtype is None or ufunc in (np.add, np.multiply)):
        if dtype is not None:
            keywords["dtype"] = dtype
        whole = _REDUCTIONS[ufunc]
        y, back = _rule_of(whole, array, axis)(array, axis, **keywords)
        n = 3 if whole in (np.sum, np.prod) else 2

        def reduce_pullback(ȳ):
            ā, *rest = back(ȳ)
            last = rest[n - 1] if len(rest) >= n else NoTangent()
            return NoTangent(), ā, *_N2, NONE, last, NoTangent()

        return y, reduce_pullback
    y = ufunc.reduce(array, axis, dtype, **keywords)
    rounded = dtype is not None and rounds(np.dtype(dtype), array)

    def other_reduce_pullback(ȳ):
        if is_constant(ufunc) or rounded:
            return (ZeroTangent(),) * 7
        if ufunc not in (np.logaddexp, np.logaddexp2, np.hypot, np.fmax, np.fmin):
            if ufunc.nin != 2 or find_rrule(ufunc, (array, array)) is None:
                raise no_rule(ufunc.reduce, (array,))
            _, back = call(in_turn, ufunc, array, axis, keepdims, initial, where)
            bars = back(ȳ)
            return NoTangent(), bars[2], *_N2, NONE, bars[5], NONE
        wide_y = restore(y, array.shape, axis, keepdims)
        wide_ȳ = restore(ȳ, array.shape, axis, keepdims)
        start = 0.0 if initial is NO_VALUE else initial
        if ufunc is np.logaddexp:
            ā, start_bar = wide_ȳ * np.exp(array - wide_y), ȳ * np.exp(start - y)
        elif ufunc is np.logaddexp2:
            ā, start_bar = wide_ȳ * np.exp2(array - wide_y), ȳ * np.exp2(start - y)
        elif ufunc is np.hypot:
            ā = wide_ȳ * array / np.where(wide_y == 0, 1, wide_y)
            start_bar = ȳ * start / np.where(y == 0, 1, y)
        else:
            mask = attains(array, y, axis, keepdims, where)
            n = attaining(mask, axis, keepdims, initial, y)
            ā = selected(restore(ȳ / n, array.shape, axis, keepdims), mask)
            start_bar = np.where(y == start, ȳ / n, 0.0)
        start_bar = NONE if initial is NO_VALUE else of_initial(np.sum(start_bar), initial, y)
        return NoTangent(), asked_for(ā, where), *_N2, NONE, start_bar, NONE

    return y, other_reduce_pullback


_N2 = (NONE, NONE)


def in_turn(ufunc, x, axis, keepdims, initial, where):
    """A ufunc of entries along an axis, one after the other."""
    axis = 0 if axis is None else axis[0] if isinstance(axis, tuple) else axis
    rows = np.moveaxis(x, axis, 0)
    if initial is NO_VALUE:
        y, rows = rows[0], rows[1:]
    else:
        y = np.broadcast_to(initial, rows.shape[1:])
    if where is not True:
        where = np.moveaxis(np.broadcast_to(where, x.shape), axis, 0)
    for i in range(len(rows)):
        following = ufunc(y, rows[i])
        y = following if where is True else np.where(where[i], following, y)
    return np.expand_dims(y, axis) if keepdims else y


def one_by_one(ufunc, x, axis):
    """What a ufunc gives of the entries along an axis up to each of them."""
    rows = np.moveaxis(x, axis, 0)
    found = last = rows[:1]
    for i in range(1, len(rows)):
        last = ufunc(last, rows[i : i + 1])
        found = np.concatenate((found, last))
    return np.moveaxis(found, 0, axis)


@rrule(np.ufunc.accumulate)
def _(ufunc: np.ufunc, array: np.ndarray, axis=0, dtype=None):
    if ufunc in _RUNNING:
        running = _RUNNING[ufunc]
        y, back = _rule_of(running, array, axis)(array, axis, dtype)

        def accumulate_pullback(ȳ):
            return NoTangent(), back(ȳ)[0], NoTangent(), NoTangent()

        return y, accumulate_pullback
    y = ufunc.accumulate(array, axis, dtype)
    rounded = dtype is not None and rounds(np.dtype(dtype), array)

    def extreme_pullback(ȳ):
        if is_constant(ufunc) or rounded:
            return (ZeroTangent(),) * 4
        if ufunc is np.subtract:
            sums = np.moveaxis(running_back(ȳ, axis), axis, 0)
            return NoTangent(), np.moveaxis(np.concatenate((sums[:1], -sums[1:])), 0, axis), *_N2
        if ufunc not in (np.maximum, np.minimum):
            if ufunc.nin != 2 or find_rrule(ufunc, (array, array)) is None:
                raise no_rule(ufunc.accumulate, (array,))
            if not array.size:
                return (ZeroTangent(),) * 4
            return NoTangent(), call(one_by_one, ufunc, array, axis)[1](ȳ)[2], *_N2
        return NoTangent(), running_extreme_cotangent(ȳ, array, y, axis), *_N2

    return y, extreme_pullback


def running_extreme_cotangent(ȳ, x, y, axis):
    """x̄ of a running maximum or minimum: ȳ to the first entry that attained it."""
    n = x.shape[axis]
    steps = np.arange(n).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    before = np.concatenate(
        (np.take(y, range(min(1, n)), axis), np.take(y, np.arange(max(n - 1, 0)), axis)), axis
    )
    new = (y != before) | (steps == 0)
    source = np.maximum.accumulate(np.where(new, steps, 0), axis)
    index = list(np.indices(x.shape, sparse=True))
    index[axis] = source
    return scatter(ȳ, tuple(index), x.shape, x.dtype)


@rrule(np.ufunc.outer)
def _(ufunc: np.ufunc, a: Anything, b: Anything):
    """Every pair of entries: the rule of the ufunc, with the axes of a before those of b."""
    a_shape = np.shape(a)
    b_shape = np.shape(b)
    y = ufunc.outer(a, b)
    a, b = as_it_is(a), as_it_is(b)

    def outer_pullback(ȳ):
        if is_constant(ufunc):
            return (ZeroTangent(),) * 3
        wide = np.reshape(a, (*a_shape, *[1] * len(b_shape)))
        rule = find_rrule(ufunc, (wide, np.asarray(b)))
        if rule is None:
            raise no_rule(ufunc.outer, (a, b))
        ā, b̄ = rule.function(wide, np.asarray(b))[1](ȳ)
        bars = zip((ā, b̄), (a, b), (a_shape, b_shape), strict=True)
        return NoTangent(), *[
            x̄ if is_zero(x̄) else like_sequence(np.reshape(x̄, shape), x) for x̄, x, shape in bars
        ]

    return y, outer_pullback


@rrule(np.ufunc.reduceat)
def _(ufunc: np.ufunc, array: np.ndarray, indices: Anything, axis=0, dtype=None):
    y = ufunc.reduceat(array, indices, axis, dtype)
    rounded = dtype is not None and rounds(np.dtype(dtype), array)

    def reduceat_pullback(ȳ):
        if is_constant(ufunc) or rounded:
            return (ZeroTangent(),) * 5
        if ufunc is not np.add:
            parts = segments_of(np.asarray(indices), array.shape[axis])
            ā = reduceat_cotangent(ȳ, ufunc, array, parts, axis)
            return NoTangent(), ā, NoTangent(), *_N2
        segments = reduceat_matrix(np.asarray(indices), array.shape[axis])
        ā = np.moveaxis(np.tensordot(segments, ȳ, ((0,), (axis,))), 0, axis)
        return NoTangent(), ā, NoTangent(), *_N2

    return y, reduceat_pullback


def segments_of(indices: np.ndarray, n: int) -> list[Any]:
    """The slices of an axis of length n that `reduceat` reduces."""
    ends = np.append(indices[1:], n)
    return [slice(int(i), max(int(j), int(i) + 1)) for i, j in zip(indices, ends, strict=True)]


def reduceat_cotangent(ȳ, ufunc, array, parts, axis):
    """The sum of the cotangents of all segments, which may overlap."""
    rows = np.moveaxis(array, axis, 0)
    ȳ = np.moveaxis(ȳ, axis, 0)
    total = np.zeros(rows.shape)
    for i, segment in enumerate(parts):
        _, back = call(np.ufunc.reduce, ufunc, rows[segment], 0)
        total = total + scatter(back(ȳ[i])[2], segment, rows.shape, rows.dtype)
    return np.moveaxis(total, 0, axis)


def reduceat_matrix(indices: np.ndarray, n: int) -> np.ndarray:
    """Which entries of an axis of length n each segment of `reduceat` sums."""
    ends = np.append(indices[1:], n)
    ends = np.where(ends > indices, ends, indices + 1)
    steps = np.arange(n)
    return ((steps >= indices[:, None]) & (steps < ends[:, None])).astype(float)
