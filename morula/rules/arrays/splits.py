"""Arrays that compiled programs split: the parts are slices, which need no list of cotangents.

What stands here in Python is put in the place of the call, if it is known that it gets an array and
how it is split. The rules of these functions say what they mean elsewhere.
Tests: tests/rules/arrays/test_splits.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import Call, Const, non_differentiable, only_reads, primitives, rewrites
from morula.rules.list_types import is_array


def of_equal_size(xs: Any, n: int, axis: int, part: Any) -> Any:
    """`np.split(xs, n, axis)`."""
    length = xs.shape[axis]
    if length % n:
        refuse_unequal()
    size = length // n
    return [part(xs, i * size, (i + 1) * size) for i in range(n)]


def of_nearly_equal_size(xs: Any, n: int, axis: int, part: Any) -> Any:
    """`np.array_split(xs, n, axis)`: the first ones have an entry more."""
    size, more = divmod(xs.shape[axis], n)
    starts = [i * size + min(i, more) for i in range(n + 1)]
    return [part(xs, starts[i], starts[i + 1]) for i in range(n)]


def at_places(xs: Any, ends: Any, part: Any) -> Any:
    """`np.split(xs, places, axis)`: all parts by where they begin and end."""
    return [part(xs, start, end) for start, end in ends]


def refuse_unequal() -> None:
    """Raise what `np.split` raises."""
    raise ValueError("array split does not result in an equal division")


def rows(xs: Any, start: Any, end: Any) -> Any:
    return xs[start:end]


def columns(xs: Any, start: Any, end: Any) -> Any:
    return xs[:, start:end]


def layers(xs: Any, start: Any, end: Any) -> Any:
    return xs[:, :, start:end]


def entries(xs: Any, start: Any, end: Any) -> Any:
    return xs[..., start:end]


non_differentiable(refuse_unequal)
only_reads(refuse_unequal)

PARTS = {-1: entries, 0: rows, 1: columns, 2: layers}  # by the axis
AXES = {np.hsplit: 1, np.vsplit: 0, np.dsplit: 2}
SPLITS = (np.split, np.array_split, *AXES)


def spell_splits(s: Any) -> bool:
    """Put slices in the place of splits; were there any?"""
    changed = False
    made = {c.out: c for c in s.ir.calls()}
    for call in made.values():
        spelled = split_by_slices(s, call, made)
        if spelled is not None:
            function, *options = spelled
            call.fn, call.args = Const(function), (call.args[0], *map(Const, options))
            call.keywords = ()
            changed = True
    return changed


rewrites(spell_splits)


def split_by_slices(s: Any, call: Call, made: dict[Any, Call]) -> tuple[Any, ...] | None:
    """The function that means the same split, and its arguments behind the first one."""
    given = split_arguments(call)
    if given is None or not is_array(s.value(call.args[0])):
        return None
    ndim = s.value(call.args[0]).detail[1]
    if not is_left_alone(s, given[0]):
        return None
    places, axis = constant_places(given[0], made), AXES.get(call.primitive, given[1])
    if call.primitive is np.hsplit and ndim == 1:
        axis = 0
    if places is None or axis not in PARTS or ndim <= axis or not ndim:
        return None
    if type(places) is tuple:
        return at_places, tuple(zip((0, *places), (*places, None), strict=True)), PARTS[axis]
    if places < 1:
        return None
    whole = of_nearly_equal_size if call.primitive is np.array_split else of_equal_size
    return whole, places, axis, PARTS[axis]


def split_arguments(call: Call) -> tuple[Any, Any] | None:
    """How a call splits, and along which axis; None if it is no split, or this is not known."""
    if call.primitive not in SPLITS:
        return None
    n = len(call.args) - len(call.keywords)
    named = dict(zip(("ary", "indices_or_sections", "axis"), call.args[:n], strict=False))
    named.update(zip(call.keywords, call.args[n:], strict=True))
    axis = named.get("axis", Const(0))
    known = "indices_or_sections" in named and n and type(axis) is Const and type(axis.value) is int
    return (named["indices_or_sections"], axis.value) if known else None


def is_left_alone(s: Any, places: Any) -> bool:
    """Does nothing but splits read a list, so that it is as it was made?"""
    if type(places) is Const:
        return True
    readers = [c for c in s.ir.calls() if places in c.operands()]
    passed = any(a is places for _, a in s.ir.passed())
    return not passed and all(c.primitive in SPLITS for c in readers)


def constant_places(x: Any, made: dict[Any, Call]) -> Any:
    """The number of parts, or the places between them as a tuple, if they are constant."""
    if type(x) is Const:
        value = x.value
        return value if type(value) is int or is_of_integers(value) else None
    call = made.get(x)
    if call is None or call.primitive not in (primitives.build_list, primitives.build_tuple):
        return None
    found = tuple([a.value if type(a) is Const else None for a in call.args])
    return found if is_of_integers(found) else None


def is_of_integers(x: Any) -> bool:
    """Is it a tuple of integers?"""
    return type(x) is tuple and all(type(i) is int for i in x)
