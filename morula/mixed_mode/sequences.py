"""Forward mode of arrays that are made of lists and tuples of numbers, and of functions of those.

An array of them has the array of their tangents as its tangent. What the rules of
`rules/arrays/sequences.py` say of other sequences is transposed, as all reverse rules are.
Tests: tests/mixed_mode/test_sequences.py
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from morula.core.cotangents import ZERO, NotKnown, is_zero
from morula.core.registry import non_differentiable
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.memory import current
from morula.mixed_mode.push import push, pushes
from morula.mixed_mode.structures import drain
from morula.mixed_mode.tangents import Pass
from morula.mixed_mode.transposition import nothing_enters
from morula.rules.arrays.draws import SOURCES
from morula.rules.arrays.sequences import (
    BINARY,
    CONVERTED,
    FIRST,
    OF_A_MATRIX,
    OF_A_MATRIX_AND_ANOTHER,
    OF_TWO,
    UNARY,
)
from morula.rules.arrays.types import Sequence

NUMBERS = (float, int, np.float64)


def is_plain(x: Any) -> bool:
    """Is it a list or a tuple of Python's own of which NumPy makes an array of floats, item by item?"""
    return type(x) in (list, tuple) and len(x) > 0 and all(map(is_plain_item, x))


def is_plain_item(x: Any) -> bool:
    """Is it a number, an array of floats or a sequence of such?"""
    if type(x) is np.ndarray:
        return x.dtype == float
    return type(x) in NUMBERS or is_plain(x)


non_differentiable(is_plain, is_plain_item)


def leaves(run: Pass, xs: Any, ẋs: Any) -> Iterator[tuple[Any, Any]]:
    """The numbers and arrays in a sequence, in their order, and their tangents."""
    for x, ẋ in zip(*drain(run, xs, ẋs), strict=True):
        if type(x) in (list, tuple):
            yield from leaves(run, x, ẋ)
        else:
            yield x, current(run, x, ẋ)


def in_form_of(xs: Any, parts: Iterator[Any]) -> list[Any]:
    """The same sequence of other parts; zeros where there are none."""
    return [
        in_form_of(x, parts) if type(x) in (list, tuple) else part_for(x, next(parts)) for x in xs
    ]


def part_for(x: Any, ẋ: Any) -> Any:
    """The tangent of a number or an array, also where it is zero."""
    return np.zeros(np.shape(x)) if is_zero(ẋ) else ẋ


@pushes(np.array, np.asarray, np.asanyarray)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if run.primitive is not None or len(args) != 1 or not is_plain(args[0]):
        return NotImplemented
    if nothing_enters(run, np.array, ZERO, args, tangents):
        return NotImplemented
    dots = [ẋ for _, ẋ in leaves(run, args[0], tangents[0])]
    if any([type(ẋ) is NotKnown for ẋ in dots]):
        return NotImplemented
    y = np.array(args[0])
    if y.dtype != float:  # all of them integers
        return NotImplemented
    return y, run.each(lambda *found: np.array(in_form_of(args[0], iter(found))), *dots)


def _by_array(primal: Any) -> None:
    places = CONVERTED[primal]

    @pushes(primal)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        n = len(args) - len(keywords)
        plain = [i for i in places if i < n and is_plain(args[i])]
        if not plain or nothing_enters(run, primal, ZERO, args, tangents):
            return NotImplemented
        pairs = [
            push(run, np.array, ZERO, (x,), (ẋ,)) if i in plain else (x, ẋ)
            for i, (x, ẋ) in enumerate(zip(args, tangents, strict=True))
        ]
        converted, dots = zip(*pairs, strict=True)
        return push(run, primal, ZERO, converted, dots, keywords)


for _primal in (*UNARY, *FIRST, *OF_A_MATRIX, *BINARY, *OF_TWO, *OF_A_MATRIX_AND_ANOTHER):
    _by_array(_primal)


def _taken(primal: Any) -> None:
    @pushes(primal)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        """Entries at random places of a sequence, of objects too: those of the array of them."""
        if len(args) - len(keywords) < 2 or not isinstance(args[1], Sequence):
            return NotImplemented
        if nothing_enters(run, primal, ZERO, args, tangents):
            return NotImplemented
        x, ẋ = push(run, np.array, ZERO, args[1:2], tangents[1:2])
        values, dots = (args[0], x, *args[2:]), (tangents[0], ẋ, *tangents[2:])
        return push(run, primal, ZERO, values, dots, keywords)


for _source in SOURCES:
    _taken(_source.choice)
    _taken(_source.permutation)
del _primal, _source
