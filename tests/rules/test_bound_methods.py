"""Special methods that are no functions: what a class has under their names is bound, then called."""

import functools

import numpy as np
import pytest

from tests.modes import check_modes


class Scale:
    """Called without the object: it is no descriptor."""

    def __call__(self, other):
        return 5.0 * other


class Of:
    """A descriptor, which gives a function of the object's value."""

    def __get__(self, x, cls):
        return lambda *others: x.v * sum(others, 1.0)


class Point:
    def __init__(self, v):
        self.v = v

    def scaled(self, k, other):
        return self.v * other * k

    @classmethod
    def __mul__(cls, other):
        return other**3

    __add__ = functools.partialmethod(scaled, 3.0)
    __radd__ = staticmethod(lambda other: other * other)
    __sub__ = Scale()
    __truediv__ = __neg__ = __round__ = __divmod__ = __getitem__ = __lt__ = Of()
    __abs__ = property(lambda self: lambda: self.v * self.v)
    __float__ = property(lambda self: self.v.__float__)
    __rmatmul__ = property(lambda self: lambda other: self.v * sum(other))
    __len__ = property(lambda self: lambda: int(self.v > 0.0) + 1)


PROGRAMS = {
    "partialmethod": lambda x: Point(x) + x,
    "staticmethod": lambda x: x + Point(x),
    "classmethod": lambda x: Point(x) * x,
    "callable object": lambda x: Point(x) - x,
    "descriptor": lambda x: Point(x) / x,
    "of one": lambda x: -Point(x) + x,
    "property": lambda x: abs(Point(x)),
    "on the right of a tuple": lambda x: (x, 2.0) @ Point(x),
    "divmod": lambda x: divmod(Point(x), x),
    "comparison": lambda x: Point(x) < x,
    "item": lambda x: Point(x)[x] * Point(x)[2.0],
    "round": lambda x: round(Point(x)) * x,
    "float": lambda x: float(Point(x)) * x,
    "length": lambda x: len(Point(x)) * x * x,
    "array": lambda x: np.sum(np.array([x, 1.0]) * (Point(x) / x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_bound_is_followed(name):
    check_modes(PROGRAMS[name], 0.7)
