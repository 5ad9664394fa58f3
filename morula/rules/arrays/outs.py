"""Calls with out=: those without, whose results are written to what is given as `out`.

It may be given by name, or by position behind all that the call takes besides.
Tests: tests/rules/arrays/test_outs.py
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    call,
    changes_in_place,
    constant_unless_written,
    is_zero,
    non_differentiable,
    project_to,
    registry,
    says_where_to_write,
)
from morula.rules.arrays.inplace import (
    check_writes,
    note,
    rounds,
    seed,
    to_masked,
    undo,
    warn_of_rounding,
)
from morula.rules.arrays.memory import take, take_at


class Parted(NamedTuple):
    """A call with out= in parts. Arguments are counted, those by name behind the others."""

    positions: list[int]
    names: list[tuple[str, int]]
    outs: list[int]


def parted(fn: Any, n: int, keywords: Iterable[str]) -> Parted | None:
    """Which of n arguments by position and of those by name are `out`; None: the call has none."""
    place, behind = places_of_out(fn)
    names = [(k, n + i) for i, k in enumerate(keywords)]
    by_name = [i for k, i in names if k == "out"]
    if by_name:
        return Parted(list(range(n)), [(k, i) for k, i in names if k != "out"], by_name)
    if place is None or n <= place:
        return None
    if isinstance(fn, np.ufunc):
        return Parted(list(range(place)), names, list(range(place, n)))
    later = list(zip(behind, range(place + 1, n), strict=False))
    return Parted(list(range(place)), [*later, *names], [place])


COMPILED = (
    np.ufunc, type(np.sum), type(np.ndarray.sum), type(np.random.Generator.random),
    types.BuiltinFunctionType,
)  # fmt: skip


# What the signatures of the methods of ufuncs do not tell, nor NumPy 2.0 of some functions.
BEHIND: dict[Any, tuple[int, tuple[str, ...]]] = {
    np.concatenate: (2, ()),
    np.dot: (2, ()),
    np.ndarray.dot: (2, ()),
    np.ufunc.reduce: (4, ("keepdims", "initial", "where")),
    np.ufunc.accumulate: (4, ()),
    np.ufunc.reduceat: (5, ()),
}


def places_of_out(fn: Any) -> tuple[int | None, tuple[str, ...]]:
    """How many arguments go before `out`, and the names of those behind it; None: it has no place."""
    if not isinstance(fn, COMPILED):
        return None, ()
    owner = getattr(fn, "__self__", None)
    if type(fn) is not types.BuiltinFunctionType or isinstance(owner, types.ModuleType | None):
        return found_places(fn)
    if not isinstance(owner, np.ndarray | np.generic | np.ufunc):
        return None, ()
    place, behind = found_places(getattr(type(owner), fn.__name__))  # nothing holds the owner
    return None if place is None else place - 1, behind


@functools.cache
def found_places(fn: Any) -> tuple[int | None, tuple[str, ...]]:
    """The same of a compiled callable."""
    if isinstance(fn, np.ufunc):
        return fn.nin, ()
    if fn in (np.ndarray.conj, np.ndarray.conjugate):  # tell no signature in some versions of NumPy
        return found_places(np.conjugate)
    if fn in BEHIND:
        return BEHIND[fn]
    signature = signature_of(fn)
    parameters = [] if signature is None else list(signature.parameters.values())
    names = [p.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    if "out" not in names or fn is np.ndarray.choose:  # where more choices stand there
        return None, ()
    place = names.index("out")
    return place, tuple(names[place + 1 :])


def signature_of(fn: Any) -> inspect.Signature | None:
    """The signature of a compiled callable, if it tells one."""
    try:
        signature = inspect.signature(fn)
    except (ValueError, TypeError):
        signature = None
    of_array = getattr(fn, "__objclass__", None) is np.ndarray and hasattr(np, fn.__name__)
    kinds = [] if signature is None else [p.kind for p in signature.parameters.values()]
    if of_array and (signature is None or inspect.Parameter.VAR_KEYWORD in kinds):
        return inspect.signature(getattr(np, fn.__name__))  # that of the function
    return signature


def has_out(fn: Any, n: int, keywords: Iterable[str]) -> bool:
    """Has a call with n arguments by position one that it writes to?"""
    return "out" in keywords or ((place := places_of_out(fn)[0]) is not None and n > place)


non_differentiable(parted, places_of_out, found_places, signature_of, has_out)


def writes_out(fn: Any, types: Any, n_args: int, keywords: Iterable[str]) -> bool:
    """Does such a call write to an array? Then the compiled path leaves it to these rules."""
    return "out" in keywords or has_out(fn, n_args, keywords)


changes_in_place.append(writes_out)
says_where_to_write.append(has_out)


def constant_but_for_out(*primals: Any) -> None:
    """Declare callables without derivative; what they write to `out` over loses its cotangent."""
    non_differentiable(*primals)
    constant_unless_written(has_out, *primals)


def call_with_out(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], plain: Any = None) -> Any:
    """The value and the pullback of a call with out=; None, if there is no `out`, or no rule.

    `plain` is asked for those of the call without, where that is no call of `fn`.
    """
    parts = parted(fn, len(args), kwargs)
    if parts is None or (plain is None and not has_meaning(fn)):
        return None
    given = [*args, *kwargs.values()]
    rest = [given[i] for i in parts.positions]
    named = {k: given[i] for k, i in parts.names}
    outs = outs_of(parts, given)
    y, back = (plain or partial(call, fn))(*rest, **named)
    if len(outs) == 1 and outs[0] is Ellipsis:  # the result as an array, also where it has no axes
        y, back = as_arrays(y, back)
    elif any([x is not None for x in outs]):
        for x in outs:
            check_writes(x)
        where = where_of(fn, named)
        y, back = written_out(y, back, outs, partial(fn, *args, **kwargs), where, rest)
    return y, partial(with_out, parts, len(given), back)


def as_arrays(y: Any, back: Any) -> Any:
    """The value and the pullback of a call whose results without axes become arrays."""
    several = isinstance(y, tuple)
    made = [call(np.asarray, v) for v in (y if several else (y,))]

    def arrays_pullback(ȳ: Any) -> Any:
        bars = list(ȳ) if several and not is_zero(ȳ) else [ȳ] * len(made)
        bars = [of_array(v̄)[1] for (_, of_array), v̄ in zip(made, bars, strict=True)]
        return back(tuple(bars) if several else bars[0])

    arrays = tuple([v for v, _ in made])
    return arrays if several else arrays[0], arrays_pullback


def outs_of(parts: Parted, given: Sequence[Any]) -> tuple[Any, ...]:
    """What is given as `out`: an array, or None, for every result."""
    outs = tuple([given[i] for i in parts.outs])
    return outs[0] if type(outs[0]) is tuple else outs


def has_meaning(fn: Any) -> bool:
    """Is anything registered for a callable?"""
    entry = registry.registry.get(fn)
    return entry is not None and (entry.constant or entry.reverse is not None)


non_differentiable(has_meaning)


def where_of(fn: Any, named: dict[str, Any]) -> Any:
    """Where the results of a call are written: the masks of reductions are about what they reduce."""
    return named.get("where", True) if isinstance(fn, np.ufunc) else True


def with_out(parts: Parted, n: int, back: Any, ȳ: Any) -> tuple[Any, ...]:
    """The cotangents of a call with out= and n arguments, from those of the call without."""
    f̄, *bars = back(ȳ)
    order = [*parts.positions, *[i for _, i in parts.names]]
    found = dict(zip(order, bars, strict=False))
    return (f̄, *[ZERO if i in parts.outs else found.get(i, NONE) for i in range(n)])


def written_out(
    y: Any, back: Any, outs: Any, write: Callable[[], Any], where: Any, operands: Any
) -> Any:
    """The value and the pullback of a call with out=, from those of the call without.

    With a mask, what is written is written where it holds. `write` makes the user's call.
    """
    several = isinstance(y, tuple)
    values = y if several else (y,)
    targets = (*outs, *[None] * (len(values) - len(outs)))
    written = [(i, x) for i, x in enumerate(targets) if x is not None]
    before = [(i, x, x.copy(), written_part(x, values[i], where, operands)) for i, x in written]
    result = write()
    for _, x in written:
        note(x)

    def out_pullback(ȳ: Any) -> tuple[Any, ...]:
        bars = list(ȳ) if several and not is_zero(ȳ) else [ȳ] * len(values)
        for i, x, old, _ in before:
            seed(x, bars[i])
            undo(x, Ellipsis, old)
        for i, _, _, taken in before:
            bars[i] = taken()
        return back(tuple(bars) if several else bars[0])

    return result, out_pullback


def written_part(x: np.ndarray, y: Any, where: Any, operands: Any) -> Callable[[], Any]:
    """What takes the cotangent of y that is written to x where a mask holds.

    With a mask, y has the dtype of x, and what was computed is of the kind of the operands.
    """
    computed = [y] if where is True else [np.asarray(v) for v in operands]
    rounded = next(filter(None, [rounds(x, v) for v in computed]), "")
    if rounded:
        return partial(rounded_away, x, np.array(np.broadcast_to(where, x.shape)), rounded)
    project = project_to(y)
    if where is True and np.shape(y) == x.shape:
        return lambda: project(take(x))
    mask = np.array(np.broadcast_to(where, x.shape))
    back = to_masked(y, where, x.shape)
    return lambda: back(take_at(x, mask))


def rounded_away(x: np.ndarray, mask: np.ndarray, where: str) -> Any:
    """No cotangent comes out of an array of integers."""
    if not is_zero(take_at(x, mask)):
        warn_of_rounding(x, where)
    return ZERO
