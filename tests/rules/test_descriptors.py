"""Slots and properties that are asked by their own methods."""

import pytest

from morula import UnsupportedError, grad, jvp
from tests.modes import check_modes


class Point:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a = a
        self.b = b

    @property
    def product(self):
        return self.a * self.b

    @product.setter
    def product(self, value):
        self.a = value / self.b

    @property
    def square(self):
        return self.a**2


class Hiding(Point):
    __slots__ = ("a",)


OUTSIDE = Point(1.0, 2.0)


def by_slots(x):
    p = Point(x, 1.0)
    Point.b.__set__(p, x * x)
    get = Point.a.__get__
    return get(p) * Point.__dict__["b"].__get__(p, Point) * p.b


def all_slots(x):
    p = Point.__new__(Point)
    for name in Point.__slots__:
        getattr(Point, name).__set__(p, x * (1 + len(vars(Point)[name].__name__)))
    return sum(getattr(Point, name).__get__(p) for name in Point.__slots__) * p.a


def by_properties(x):
    p = Point(x, x * x)
    Point.product.__set__(p, x)
    return Point.product.__get__(p) * Point.square.__get__(p, Point)


def deleted(x):
    p = Point(x, x)
    Point.a.__delete__(p)
    return x * x if not hasattr(p, "a") else p.b


def outside(x):
    Point.a.__set__(OUTSIDE, x * x)
    return OUTSIDE.a * OUTSIDE.b


def errors(x):
    y = x * (Point.a.__get__(None, Point) is Point.a)
    for ask in (
        lambda: Point.a.__get__(3),
        lambda: Point.a.__set__(3, x),
        lambda: Point.a.__delete__(3),
        lambda: Point.a.__get__(Point.__new__(Point)),
        lambda: Point.square.__set__(OUTSIDE, x),
        lambda: property().__get__(OUTSIDE),
    ):
        try:
            ask()
        except (AttributeError, TypeError) as error:
            y = y * len(str(error)) / 50
    return y * x


@pytest.mark.parametrize("f", [by_slots, all_slots, by_properties, deleted, outside, errors])
def test_descriptors_that_are_asked_themselves(f):
    check_modes(f, 1.3)


@pytest.mark.parametrize("mode", [grad, lambda f: lambda x: jvp(f, (x,), (1.0,))])
def test_a_slot_that_is_hidden_is_refused(mode):
    def f(x):
        p = Hiding(x, x)
        Point.a.__set__(p, x * x)
        return Point.a.__get__(p) * p.a

    with pytest.raises(UnsupportedError, match="a slot that another one of its name hides"):
        mode(f)(1.3)
