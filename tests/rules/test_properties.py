"""Properties of derived classes, and what `super()` finds of descriptors."""

import abc
import functools

import pytest

import morula

pytestmark = pytest.mark.usefixtures("path")


class Property(property):
    pass


class Doubled(property):
    def __get__(self, x, cls=None):
        return self if x is None else super().__get__(x, cls) * 2


class SetTripled(property):
    def __set__(self, x, value):
        super().__set__(x, 3 * value)


class Stored(property):
    def __init__(self, compute):
        self.compute, self.key = compute, compute.__name__
        super().__init__(self.stored)

    def stored(self, x):
        if self.key not in x.__dict__:
            x.__dict__[self.key] = self.compute(x)
        return x.__dict__[self.key]


class Meta(type):
    twice = Property(lambda cls: cls.v * 2)


class Body:
    def __init__(self, x):
        self.x = x

    def put(self, value):
        self.x = 2 * value

    def drop(self):
        self.x = self.x * 5

    square = Property(lambda self: self.x * self.x, put, drop)
    doubled = Doubled(lambda self: self.x * self.x, put, drop)
    tripled = SetTripled(lambda self: self.x * self.x, put, drop)
    cube = abc.abstractproperty(lambda self: self.x**3)

    @Stored
    def area(self):
        return 3.0 * self.x**2

    @functools.cached_property
    def kept(self):
        return self.x**2


class Derived(Body):
    @property
    def square(self):
        return super().square * 7

    @property
    def doubled(self):
        return super().doubled * 7

    @property
    def kept(self):
        return super().kept * 7


def of_a_class(x):
    class Made(metaclass=Meta):
        v = x * x

    return Made.twice


def read(name):
    return lambda x: getattr(Body(x), name)


def put(name):
    def f(x):
        it = Body(0.0)
        setattr(it, name, x * x)
        return it.x

    return f


def dropped(name):
    def f(x):
        it = Body(x)
        delattr(it, name)
        return it.x

    return f


def augmented(x):
    it = Body(x)
    it.square += x
    it.tripled -= 1.0
    return it.x * it.square


PROGRAMS = {
    **{name: read(name) for name in ("square", "doubled", "tripled", "cube", "area")},
    **{f"put {name}": put(name) for name in ("square", "doubled", "tripled")},
    **{f"dropped {name}": dropped(name) for name in ("square", "doubled", "tripled")},
    "augmented": augmented,
    "stored": lambda x: (lambda it: it.area + it.area * it.x)(Body(x)),
    "super": lambda x: Derived(x).square,
    "super, own get": lambda x: Derived(x).doubled,
    "super, kept": lambda x: (lambda it: it.kept + it.kept)(Derived(x)),
    "of a class": of_a_class,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_modes(name):
    f, x = PROGRAMS[name], 1.3
    slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
    for _ in range(2):
        value, (gradient,) = morula.withgradient(f, x)
        assert value == f(x)
        assert gradient == pytest.approx(slope, rel=1e-6)
    assert morula.jvp(f, (x,), (1.0,)) == pytest.approx((value, slope), rel=1e-6)
