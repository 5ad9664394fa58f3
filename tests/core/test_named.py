"""Named tuples with methods, operators and as items of lists and objects: compiled and generally."""

import math
from collections import namedtuple
from typing import NamedTuple

import pytest

import morula
from morula import gradient
from tests.modes import check_modes


class Vector(NamedTuple):
    x: float
    y: float = 1.0

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    __rmul__ = __mul__

    def dot(self, other):
        return self.x * other.x + self.y * other.y

    @property
    def norm(self):
        return math.sqrt(self.dot(self))


Plain = namedtuple("Plain", "a b", defaults=[2.0])


class Sphere:
    def __init__(self, centre, radius):
        self.centre, self.radius = centre, radius

    def hit(self, origin, direction):
        """The distance, or None."""
        apart = origin - self.centre
        b = apart.dot(direction)
        rest = b * b - apart.dot(apart) + self.radius**2
        return None if rest < 0 else -b - math.sqrt(rest)


def operators(x):
    return ((Vector(x, 2.0) + Vector(1.0, x)) * x - 2 * Vector(x)).norm


def in_a_list(x):
    vectors = [Vector(x), Vector(1.0, x), Vector(y=x, x=x * x)]
    return vectors[0].dot(vectors[1]) * vectors[2].norm


def made_in_a_loop(x):
    vectors = [Vector(x * i) for i in range(4)]
    return sum(a.dot(b) for a, b in zip(vectors, vectors[1:], strict=False))  # noqa: RUF007


def best_of_a_list(x):
    vectors = [Vector(x), Vector(1.0, x), Vector(x * x, 3.0)]
    best = vectors[0]
    for v in vectors:
        if v.norm > best.norm:
            best = v
    return best.norm * best.x


def held_by_objects(x):
    spheres = [Sphere(Vector(x, 0.5), 2 * x), Sphere(Vector(4.0, x), 1.0)]
    nearest, distance = None, math.inf
    for sphere in spheres:
        t = sphere.hit(Vector(-5.0, 0.7), Vector(1.0, 0.0))
        if t is not None and t < distance:
            nearest, distance = sphere, t
    if nearest is None:
        return 0.0
    return nearest.radius * distance + nearest.centre.dot(Vector(distance, x))


def all_miss(x):
    spheres = [Sphere(Vector(x, 9.0), 2 * x), Sphere(Vector(4.0, 9.0), 1.0)]
    hits = [s.hit(Vector(-5.0, 0.7), Vector(1.0, 0.0)) for s in spheres]
    return sum(h for h in hits if h is not None) + x * x


def as_tuples(x):
    pairs = [Plain(x), Plain(x * x, x)]
    (a, b), second = pairs
    return a * b + second[0] * second[-1] + sum(second) * len(pairs[0])


def added_as_tuples(x):
    both = Plain(x) + Plain(x * x, 3.0)  # four numbers
    return both[0] * both[2] + sum(both)


def kept_and_returned(x):
    kept = {"a": Vector(x), "b": Vector(x, x)}
    last = [v for v in kept.values()][-1]
    return last.norm * kept["a"].x


PROGRAMS = [
    operators, in_a_list, made_in_a_loop, best_of_a_list, held_by_objects, all_miss, as_tuples,
    added_as_tuples, kept_and_returned,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    check_modes(f, 0.7)


COMPILED = [operators, in_a_list, made_in_a_loop, best_of_a_list, held_by_objects]


@pytest.mark.parametrize("f", COMPILED)
def test_nothing_is_left_to_run_time(f):
    assert not morula.code_adjoint(f, 0.7).left


def test_methods_that_change_later():
    class Changing(NamedTuple):
        x: float

        def __mul__(self, other):
            return self.x * other.x

    def f(x):
        items = [Changing(x), Changing(3.0)]
        return items[0] * items[1]

    assert gradient(f, 2.0) == (3.0,)
    Changing.__mul__ = lambda self, other: self.x**other.x
    assert gradient(f, 2.0) == (12.0,)


class Renaming:
    """Its attributes are other ones than asked for."""

    def __init__(self, v):
        self.v = v

    def double(self):
        return self.v * 2

    def triple(self):
        return self.v * 3

    def __getattribute__(self, name):
        return object.__getattribute__(self, "triple" if name == "double" else name)


class RenamingSlots:
    __slots__ = ("v",)
    __init__ = Renaming.__init__
    double, triple = Renaming.double, Renaming.triple
    __getattribute__ = Renaming.__getattribute__


@pytest.mark.parametrize("cls", [Renaming, RenamingSlots])
def test_methods_by_a_getattribute_of_the_class(cls):
    assert gradient(lambda x: cls(x).double(), 0.7) == (3.0,)
    assert gradient(lambda x: sum(a.double() for a in [cls(x), cls(x * x)]), 1.0) == (9.0,)
    given = cls(0.7)
    value, slope = morula.value_and_grad(lambda a: a.double())(given)
    assert value == given.double()
    assert slope.v == 3.0


class Times(namedtuple("Times", "a b")):
    """Its items are not what its attributes are."""

    def __getitem__(self, i):
        return tuple.__getitem__(self, i) * 10


class Reversing(NamedTuple):
    a: float
    b: float = 2.0

    def __iter__(self):
        return iter([self.b, self.a])

    def __len__(self):
        return 7


def items_and_attributes(x):
    held = [Times(x, 2.0)]
    a, b = held[0]
    return held[0].a + held[0][1] * a + b


def own_iteration(x):
    held = [Reversing(x), Reversing(x * x, 3.0)]
    b, a = held[0]
    return a * 10 + b + held[1].a * len(held[1])


def replaced_and_compared(x):
    held = [Plain(x), Plain(x * 2, x)]
    changed = [p._replace(a=p.a * 2) for p in held]
    return max(held).a + sorted(changed)[0].b * changed[1]._asdict()["a"]


@pytest.mark.parametrize("f", [items_and_attributes, own_iteration, replaced_and_compared])
def test_classes_that_say_themselves_what_items_are(f):
    check_modes(f, 0.7)


def test_wrong_numbers_of_fields():
    with pytest.raises(TypeError, match="takes from 2 to 3 positional arguments"):
        gradient(lambda x: [Vector(x, 2.0, 3.0)][0].x, 0.7)
    with pytest.raises(TypeError, match="missing 1 required"):
        gradient(lambda x: [Vector(y=x)][0].y, 0.7)
