"""Several directions in one run: a forward pass whose tangents are one for each direction.

The function runs once, with its effects, and every rule is asked once; only what is linear in the
tangents is applied to each. So a Jacobian by n entries costs one run of the program and n of the linear
parts, in chunks of `AT_ONCE` that bound the memory.
Tests: tests/mixed_mode/test_directions.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from morula.core.context import as_before
from morula.core.cotangents import NONE, ZERO, Tangent, is_zero, unthunk
from morula.core.registry import non_differentiable
from morula.core.settings import settings
from morula.mixed_mode.push import push, refuse_unknown
from morula.mixed_mode.tangents import Pass, absorb, all_zero, last, of_leaves, shown_to_user
from morula.rules.calls import entry

AT_ONCE = 16  # directions in one run: the more, the less of its cost is that of the program itself


class Directions:
    """The tangents of a number or an array, one for each direction; some are structurally zero."""

    __slots__ = ("each",)
    __array_ufunc__ = None

    def __init__(self, each: tuple[Any, ...]) -> None:
        self.each = each

    def __add__(self, other: Any) -> Any:
        if is_zero(other):
            return self
        return Directions(tuple([a + b for a, b in zip(self.each, other.each, strict=True)]))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Directions(tuple([-c for c in self.each]))

    def __getitem__(self, i: Any) -> Any:
        return Directions(tuple([c if is_zero(c) else c[i] for c in self.each]))


class Several(Pass):
    """A forward pass along several directions."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def each(self, linear: Callable[..., Any], *tangents: Any) -> Any:
        """A linear function of tangents, along each direction."""
        return gathered(
            [ZERO if all_zero(dots) else unthunk(linear(*dots)) for dots in self.split(tangents)]
        )

    def split(self, tangents: Any) -> list[Any]:
        """Tangents of any structure along each direction."""
        return [along(tangents, d) for d in range(self.count)]

    def gathered(self, found: list[Any]) -> Any:
        """The inverse."""
        return gathered(found)

    def count_of_layers(self) -> int:
        """One for each direction."""
        return self.count

    def layers(self, ẋ: Any) -> list[Any]:
        """The tangents along each direction."""
        return list(ẋ.each)

    def of_layers(self, layers: list[Any]) -> Any:
        """What has these."""
        return Directions(tuple(layers))


def along(tangents: Any, d: int) -> Any:
    """The tangents of any structure along one direction."""
    return of_leaves(tangents, Directions, lambda c: c.each[d])


def gathered(found: list[Any]) -> Any:
    """The tangents along several directions, each of any structure, in one structure."""
    some = next((c for c in found if not is_zero(c) and c is not NONE), ZERO)
    if isinstance(some, (tuple, list)):
        n = max([len(c) for c in found if not is_zero(c)])
        held = [() if is_zero(c) else c for c in found]
        of_items = [[entry(c, i) if i < len(c) else ZERO for c in held] for i in range(n)]
        return type(some)(map(gathered, of_items))
    if isinstance(some, (dict, Tangent)):
        named = [{} if is_zero(c) else dict(c.items()) for c in found]
        keys = dict.fromkeys([k for c in named for k in c])
        parts = {k: gathered([c.get(k, ZERO) for c in named]) for k in keys}
        return parts if isinstance(some, dict) else Tangent[some._primal](parts)
    return some if is_zero(some) else Directions(tuple([ZERO if c is NONE else c for c in found]))


def pushed_along(f: Any, args: tuple[Any, ...], directions: list[Any]) -> tuple[Any, list[Any]]:
    """The value of f(*args) and its tangents along some directions, in one run.

    A direction has one tangent for each argument, None where that is zero.
    """
    run = Several(len(directions))
    dots = []
    for k, x in enumerate(args):
        dots.append(gathered([absorb(run, x, e[k], f"argument {k}") for e in directions]))
    settings.begin()
    try:
        y, ẏ = as_before(push, run, f, ZERO, args, tuple(dots))
    finally:
        settings.end()
    refuse_unknown((ẏ,))
    ẏ = last(run, y, ẏ)
    return y, [shown_to_user(Pass(), y, c) for c in run.split(ẏ)]


def chunks(items: list[Any]) -> Iterator[list[Any]]:
    """As many at once as one run takes."""
    for i in range(0, len(items), AT_ONCE):
        yield items[i : i + AT_ONCE]


non_differentiable(chunks)
