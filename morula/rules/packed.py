"""`array.array`: numbers in a buffer, which count as constant.

What is stored there has lost its derivative. Where the gradient depends on what is read, the cotangents
of all that was stored before are not known, which is an error if one of them depends on an argument.
Tests: tests/rules/test_packed.py
"""

from __future__ import annotations

import array
import operator
from functools import partial
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    adjoint_object,
    adjoint_of,
    collector,
    materialise,
    memory,
    no_rule,
    non_differentiable,
    not_known,
    on_entry,
    parts_of,
    projector,
    rrule,
)
from morula.rules.arrays.bodies import instead_of
from morula.rules.containers import drain
from morula.rules.functional import is_iterable
from morula.rules.iteration import BY_GENERATOR
from morula.rules.numbers import Anything

CONTENTS = "contents"

adjoint_object.register(array.array, lambda x: {})
parts_of.register(array.array, lambda x: {CONTENTS: x.tobytes()})
projector.register(array.array, lambda x: lambda x̄: ZERO)
collector.register(array.array, lambda y, part: lambda: adjoint_of(y).get(CONTENTS, ZERO))
on_entry.register(array.array, lambda x, known: x)
materialise.register(array.array, lambda x, x̄, of: None)


def _reading(fn: Any) -> None:
    @rrule(fn)
    def _(xs: array.array, *args: Anything, **kwargs: Any):
        y = fn(xs, *args, **kwargs)

        def reading_pullback(ȳ):
            adjoint_of(xs)[CONTENTS] = no_rule(fn, (xs,), why="which has lost its derivative")
            return (ZERO, *[NONE] * (len(args) + len(kwargs)))

        return y, reading_pullback


for _fn in (
    operator.getitem, array.array.__getitem__, array.array.pop, np.array, np.asarray, np.asanyarray,
    np.frombuffer,
):  # fmt: skip
    _reading(_fn)


def entries_of(xs):
    """The numbers, one by one."""
    for i in range(len(xs)):
        yield xs[i]


BY_GENERATOR[array.array] = entries_of


@instead_of(array.array.tolist)
def tolist(xs):
    """A list of the numbers."""
    return [xs[i] for i in range(len(xs))]


def stored(value: Any) -> tuple[Any, Any]:
    """What is stored, with the items of an iterator as a list, and: an error -> the cotangent of it."""
    if is_iterable(value) and not isinstance(value, (str, bytes, array.array, np.ndarray)):
        items, back = drain(value)
        return items, lambda error: back([*not_known(error, tuple(items))])
    return value, partial(of_stored, value)


def of_stored(value: Any, error: Any) -> Any:
    """The cotangent of what was stored, if what was read later matters: it is not known."""
    if isinstance(value, array.array):
        adjoint_of(value)[CONTENTS] = error
        return NONE
    return not_known(error, (value,))[0]


def if_read(xs: array.array, back: Any) -> Any:
    """What `back` gives, if what was read later matters."""
    error = adjoint_of(xs).get(CONTENTS)
    return NONE if error is None else back(error)


def _storing(fn: Any) -> None:
    @rrule(fn, by_identity=True)
    def _(xs: array.array, *args: Anything):
        value, back = stored(args[-1])
        y = fn(xs, *args[:-1], value)
        return y, lambda ȳ: (NONE, *[NONE] * (len(args) - 1), if_read(xs, back))


METHODS = (
    array.array.append, array.array.extend, array.array.insert, array.array.fromlist,
    array.array.__iadd__,
)  # fmt: skip
for _fn in (*METHODS, operator.iadd):
    _storing(_fn)
del _fn


@rrule(array.array, by_identity=True)
def _(typecode: str, given: Anything = ()):
    value, back = stored(given)
    y = array.array(typecode, value)
    return y, lambda ȳ: (NONE, if_read(y, back))


@rrule(operator.setitem, by_identity=True)
@rrule(array.array.__setitem__, by_identity=True)
def _(xs: array.array, i: Anything, value: Anything):
    old = previous(xs, i)
    operator.setitem(xs, i, value)

    def setitem_pullback(ȳ):
        undo(xs, i, old)
        return NONE, NONE, if_read(xs, partial(of_stored, value))

    return None, setitem_pullback


def previous(xs: array.array, i: Any) -> Any:
    """What a write overwrites, if it is not one that raises."""
    try:
        return xs[i]
    except (IndexError, TypeError):
        return None


def undo(xs: array.array, i: Any, old: Any) -> None:
    """Put back what was there, which arrays in the same memory may show, until the pass ends."""
    if not memory.is_put_back(id(xs)):
        now = xs[:]

        def make_good() -> None:
            xs[:] = now

        memory.put_back(id(xs), make_good)
    xs[i] = old


non_differentiable(previous)
