"""Special methods that are no plain functions: Python binds what a class has, and calls that."""

import functools
import math
import numbers
import typing

import numpy as np
import pytest

import morula
from morula import NoRuleError

pytestmark = pytest.mark.usefixtures("path")


class Number(float):
    @functools.singledispatchmethod
    def __mul__(self, other):
        return Number(float(self) * 3.0)

    @functools.lru_cache  # noqa: B019
    def __neg__(self):
        return Number(float(self) * 3)

    __add__ = functools.partialmethod(lambda self, k, other: float(self) * k + other, 3.0)
    __abs__ = property(lambda self: lambda: float(self) * 5)


class Converted(float):
    def __float__(self):
        return float.__mul__(self, 0.01)

    def __round__(self, n=0):
        return float.__mul__(self, 2.0)

    def __floor__(self):
        return float.__mul__(self, self)

    def __complex__(self):
        return complex(float.__mul__(self, 2.0), 1.0)

    @property
    def real(self):
        return float.__mul__(self, 13.0)


class Exchanged(float):
    __mul__ = float.__add__


class Items(list):
    __getitem__ = functools.partialmethod(lambda self, k, i: k * list.__getitem__(self, i), 2.0)
    __add__ = functools.partialmethod(lambda self, k, other: [k * self[0], *other], 2.0)
    append = functools.partialmethod(lambda self, k, value: list.append(self, k * value), 3.0)


class Table(dict):
    __missing__ = functools.partialmethod(lambda self, k, key: k * self["a"], 2.0)
    __setitem__ = functools.partialmethod(
        lambda self, k, i, v: dict.__setitem__(self, i, k * v), 2.0
    )


class Steps:
    def __init__(self, v):
        self.v = v

    __iter__ = functools.partialmethod(lambda self, k: iter([self.v * k]), 2.0)
    __reversed__ = functools.partialmethod(lambda self, k: iter([self.v * k]), 5.0)
    __call__ = functools.partialmethod(lambda self, k, x: self.v * k * x, 3.0)
    __len__ = functools.partialmethod(lambda self, k: k, 1)


class Initialised:
    __init__ = functools.partialmethod(lambda self, x, k: setattr(self, "v", x * k), k=3.0)


class Point(typing.NamedTuple("Point", [("a", float), ("b", float)])):
    @functools.cached_property
    def norm(self):
        return (self.a**2 + self.b**2) ** 0.5


def appended(x):
    items = Items([x])
    items.append(x)
    return list.__getitem__(items, 1)


def put(x):
    table = Table()
    table["a"] = x
    return table["a"] * table["b"]


def twice(x):
    p = Point(x, 2.0)
    return p.norm * p.norm + p.norm


PROGRAMS = {
    "singledispatchmethod": lambda x: Number(x) * x + 0.0,
    "lru_cache": lambda x: -Number(x) + 0.0,
    "partialmethod": lambda x: Number(x) + x,
    "property": lambda x: abs(Number(x)),
    "float": lambda x: float(Converted(x)) * x,
    "round": lambda x: round(Converted(x), 1),
    "floor": lambda x: math.floor(Converted(x)),
    "complex": lambda x: abs(complex(Converted(x))),
    "attribute": lambda x: Converted(x).real,
    "item": lambda x: Items([x])[0],
    "sum of lists": lambda x: (Items([x]) + [x])[0],
    "append": appended,
    "missing": lambda x: Table(a=x)["b"],
    "put": put,
    "iteration": lambda x: sum(Steps(x)),
    "reversed": lambda x: next(reversed(Steps(x))),
    "unpacked": lambda x: (lambda a: a)(*Steps(x)),
    "called": lambda x: Steps(x)(x),
    "__init__": lambda x: Initialised(x).v,
    "cached_property of a tuple": lambda x: Point(x, 2.0).norm,
    "cached_property, twice": twice,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_bound_is_followed(name):
    f, x = PROGRAMS[name], 1.3
    slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
    for _ in range(2):
        value, (gradient,) = morula.withgradient(f, x)
        assert value == f(x)
        assert gradient == pytest.approx(slope, rel=1e-6)
    try:
        found = morula.jvp(f, (x,), (1.0,))
    except NoRuleError:
        return
    assert found == pytest.approx((value, slope), rel=1e-6)


def test_an_operator_that_a_class_gets_later():
    class Late(float):
        pass

    def f(x):
        return float(Late(x) * x)

    assert morula.gradient(f, 2.0) == (4.0,)
    Late.__mul__ = lambda self, other: float(self) * other * 3
    assert morula.withgradient(f, 2.0) == (12.0, (12.0,))
    assert morula.jvp(f, (2.0,), (1.0,)) == (12.0, 12.0)


class Length(numbers.Number):
    __hash__ = None

    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return self.v * 7 + other.v

    def __float__(self):
        return self.v * 2


def test_numbers_of_a_class_written_in_python_are_refused_where_they_hide_others():
    for f in (lambda x: Length(x) + Length(x), lambda x: float(Length(x))):
        with pytest.raises(NoRuleError, match="count as numbers, not as their attributes"):
            morula.gradient(f, 3.0)
    assert morula.gradient(lambda x: x * bool(Length(1.0)), 3.0) == (1.0,)


def test_an_operator_that_is_another_compiled_one_is_refused():
    with pytest.raises(NoRuleError):
        morula.gradient(lambda x: Exchanged(x) * x, 1.3)

    class Matrices(np.ndarray):
        __mul__ = np.ndarray.__matmul__

    with pytest.raises(morula.DifferentiationError):
        morula.gradient(
            lambda a: np.sum(np.asarray(a.view(Matrices) * a.view(Matrices))), np.eye(2)
        )
