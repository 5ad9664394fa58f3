"""The objects that build arrays out of an index: np.r_, np.c_, np.mgrid, np.ogrid.

They are Python code that reads its caller's variables or fills arrays; here is what they mean.
Tests: tests/coverage
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import UnsupportedError, non_differentiable
from morula.rules.arrays.bodies import derivative_of

Concatenator: Any = type(np.r_).__mro__[1]
Grid: Any = type(np.mgrid).__mro__[1]


@derivative_of(Concatenator.__getitem__)
def joined(self, key):
    """Arrays, numbers and slices joined along an axis."""
    items = key if isinstance(key, tuple) else (key,)
    axis, ndmin, trans1d = directives(self, items[0])
    if isinstance(items[0], str):
        items = items[1:]
    return np.concatenate([grown(item, ndmin, trans1d) for item in items], axis)


def directives(self: Any, first: Any) -> list[int]:
    """The axis, the least number of axes, the place of the axis of vectors, in the first item."""
    settings = [self.axis, self.ndmin, self.trans1d]
    if isinstance(first, str):
        if first in ("r", "c") or self.matrix:
            raise UnsupportedError(f"no reverse rule for np.r_ with {first!r}: use np.concatenate")
        given = [int(n) for n in first.split(",")]
        settings[: len(given)] = given
    return settings


non_differentiable(directives)


def grown(item, ndmin, trans1d):
    """One item with at least so many axes, its own ones at the place that is asked for."""
    if isinstance(item, slice):
        y = points(item)
        if ndmin <= 1:
            return y
        y = np.reshape(y, (1,) * (ndmin - 1) + y.shape)
        return y if trans1d == -1 else np.swapaxes(y, -1, trans1d)
    y = np.asarray(item)
    missing = ndmin - y.ndim
    if missing <= 0:
        return y
    if trans1d == -1 or not y.ndim:
        return np.reshape(y, (1,) * missing + y.shape)
    before = trans1d if trans1d >= 0 else trans1d + missing + 1
    return np.reshape(y, (1,) * before + y.shape + (1,) * (missing - before))


def points(s):
    """The numbers that a slice stands for; a complex step counts them."""
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if isinstance(step, complex):
        return np.linspace(start, s.stop, int(abs(step)))
    return np.arange(start, s.stop, step)


@derivative_of(Grid.__getitem__)
def grid(self, key):
    """Coordinates of the points of a grid."""
    if isinstance(key, slice):
        return points(key)
    lines = np.meshgrid(*[points(s) for s in key], sparse=self.sparse, indexing="ij")
    return tuple(lines) if self.sparse else np.stack(lines)
