"""Objects that a program makes and keeps to itself."""

import abc
import math
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import morula
from morula import code_adjoint, grad
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


class Vector:
    dim = 2

    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    def __rmul__(self, k):
        return self * k

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __call__(self, t):
        return self.x + self.y * t

    def dot(self, other):
        return self.x * other.x + self.y * other.y

    @property
    def norm(self):
        return math.sqrt(self.dot(self))

    @staticmethod
    def twice(a):
        return 2 * a


@dataclass
class Particle:
    x: float
    v: float = 0.5

    def step(self, h):
        return Particle(self.x + h * self.v, self.v - h * self.x)


@dataclass(frozen=True)
class Frozen:
    a: float
    b: float

    def product(self):
        return self.a * self.b


@dataclass
class WithList:
    a: float
    items: list[Any] = field(default_factory=list)


class Slots:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


class Total:
    def __init__(self):
        self.total = 0.0

    def add(self, x):
        self.total += x * x


class Body:
    def __init__(self, x, v):
        self.place = Vector(x, 0.1)
        self.rate = Vector(v, 0.3)

    def energy(self):
        return self.place.dot(self.place) + self.rate.dot(self.rate)


class Base:
    def __init__(self, a):
        self.a = a

    def area(self):
        return self.a * self.height()


class Derived(Base):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b

    def height(self):
        return self.b + self.a


class Lazy:
    def __init__(self, a, c=None):
        if c is None:
            self.c = a * 2
        else:
            self.c = c


Pair = namedtuple("Pair", "w b")


class State(NamedTuple):
    x: float
    v: float = 0.5

    def energy(self):
        return self.x**2 + self.v**2

    @property
    def sum(self):
        return self.x + self.v


def operators(a, b):
    v = Vector(a, b)
    u = 3.0 * v * 2.0 + -Vector(b, a)
    return u.dot(v) + u.norm + v.twice(a) * v.dim + u(b)


def handed_on(a, b):
    p = Particle(a, b)
    for _ in range(10):
        p = p.step(0.1)
    return p.x * p.v


def two_handed_on(a, b):
    p, q = Vector(a, b), Vector(b, 2.0)
    for _ in range(3):
        p, q = q, p + q * 0.5
    return p.dot(q)


def written_in_a_loop(a, b):
    t = Total()
    for i in range(5):
        t.add(a * i + b)
    return t.total


def written_in_a_callee(a, b):
    def grow(v, k):
        v.x += k * v.y

    v = Vector(a, b)
    for k in range(4):
        grow(v, k)
    return v.x * v.y


def under_two_names(a, b):
    v = Vector(a, b)
    w = v
    w.x = w.x * b
    return v.x * v.y


def made_on_two_ways(a, b):
    v = Vector(a, b) if a > 0 else Vector(b, a)
    if b > 0:
        v.x = v.x * 3
    return v.x * v.x * v.y


def made_in_a_loop(a, b):
    s = 0.0
    for i in range(1, 5):
        v = Vector(a * i, b)
        s += v.norm
    return s


def of_arrays(a, b):
    v = Vector(np.array([a, b, 1.0]), np.ones(3) * b)
    w = v + v * 2.0
    return float(np.sum(w.x * w.y))


def nested(a, b):
    q = Body(a, b)
    for _ in range(3):
        q.rate = q.rate + q.place * -0.1
        q.place = q.place + q.rate * 0.1
    return q.energy()


def named_in_a_loop(a, b):
    s = State(a, b)
    for _ in range(5):
        s = s._replace(v=s.v - 0.1 * s.x)
        s = State(v=s[1], x=s.x + 0.1 * s[-1])
    x, v = s
    return s.energy() * s.sum + x * v * len(s)


OWN = [
    operators,
    handed_on,
    two_handed_on,
    written_in_a_loop,
    written_in_a_callee,
    under_two_names,
    made_in_a_loop,
    of_arrays,
    nested,
    named_in_a_loop,
    lambda a, b: Frozen(a, b).product(),
    lambda a, b: Slots(a * b).a,
    lambda a, b: Particle(a).v * a * b + Particle(v=b, x=a).x,
    lambda a, b: Derived(a, b).area(),
    lambda a, b: Lazy(a).c * Lazy(a, b).c,
    lambda a, b: State(a * b).energy(),
]


@pytest.mark.parametrize("f", OWN)
def test_attributes_of_own_objects_become_variables(f):
    grad = morula.grad(f, (0, 1))
    found = grad(1.3, 0.7)
    with by_the_general_path():
        assert found == pytest.approx(morula.grad(f, (0, 1))(1.3, 0.7), rel=1e-12)
    check_gradient(f, 1.3, 0.7)
    program = str(morula.code_adjoint(f, 1.3, 0.7))
    assert "call_from_program" not in program
    assert "setattr" not in program


def kept_in_a_list(a, b):
    vs = [Vector(a, b), Vector(b, a)]
    return vs[0].x * vs[1].x


def kept_in_a_dict(a, b):
    v = Vector(a, b)
    v.x *= 2
    return {"v": v}["v"].x * v.y


def seen_through_vars(a, b):
    v = Vector(a, b)
    vars(v)["x"] = b * b
    return v.x * v.y


def compared(a, b):
    v, w = Vector(a, b), Vector(a, b)
    return v.x if v is w else v.y * a


def shadowed(a, b):
    v = Vector(a, b)
    v.dot = lambda other: other.x * 5.0
    return v.dot(v) * b


def given_a_list(a, b):
    one, other = WithList(a), WithList(b)
    one.items.append(a * b)
    return one.items[0] * len(other.items) + one.items[0] * a


def with_none_before(a, b):
    last, total = None, 0.0
    for i in range(4):
        v = Vector(a * i, b)
        if last is not None:
            total += v.dot(last)
        last = v
    return total


@pytest.mark.parametrize(
    "f",
    [
        kept_in_a_list,
        kept_in_a_dict,
        seen_through_vars,
        compared,
        shadowed,
        given_a_list,
        with_none_before,
        made_on_two_ways,
    ],
)
def test_objects_that_others_see_have_the_same_gradient(f):
    check_gradient(f, 1.3, 0.7)
    assert morula.grad(f)(1.3, 0.7) == morula.grad(f)(1.3, 0.7)


def test_an_attribute_that_is_not_there_raises_as_it_does_without():
    with pytest.raises(AttributeError, match="'Vector' object has no attribute 'z'"):
        morula.grad(lambda a: Vector(a, a).z)(1.0)
    with pytest.raises(AttributeError):
        morula.grad(lambda a: setattr(State(a), "x", 2.0) or a)(1.0)
    with pytest.raises(TypeError):
        morula.grad(lambda a: State(a, a, a).x)(1.0)


def test_a_class_that_changes_is_asked_for_its_methods(monkeypatch):
    grad = morula.grad(operators)
    before = grad(1.3, 0.7)
    monkeypatch.setattr(Vector, "dot", lambda self, other: self.x * other.y)
    with by_the_general_path():
        expected = morula.grad(operators)(1.3, 0.7)
    assert grad(1.3, 0.7) == pytest.approx(expected, rel=1e-12) != before
    monkeypatch.setattr(Vector, "__init__", lambda self, x, y: vars(self).update(x=y, y=x))
    assert grad(1.3, 0.7) != pytest.approx(expected, rel=1e-12)


def test_properties_of_arguments_are_part_of_the_program():
    v = Vector(3.0, 4.0)
    (found,) = morula.gradient(lambda v: v.norm, v)
    assert (found.x, found.y) == pytest.approx((0.6, 0.8))
    assert "call_from_program" not in str(morula.code_adjoint(lambda v: v.norm, v))


def quadratic(p):
    w, b = p
    return (p.w * w).sum() * p[1] + b * b


def test_named_tuples_are_taken_apart():
    p = Pair(np.array([1.0, 2.0]), 3.0)
    (found,) = morula.gradient(quadratic, p)
    assert type(found) is Pair
    assert found.w.tolist() == [6.0, 12.0]
    assert found.b == 11.0
    assert "call_from_program" not in str(morula.code_adjoint(quadratic, p))
    nested_one = Pair(p, 2.0)
    (found,) = morula.gradient(lambda q: quadratic(q.w) * q.b, nested_one)
    assert type(found.w) is Pair
    assert found.b == 24.0
    assert found.w.b == 22.0
    (found,) = morula.gradient(lambda q: [q][0].w.sum() * q.b, p)
    assert type(found) is Pair
    assert found.b == 3.0
    assert found.w.tolist() == [3.0, 3.0]


def test_one_program_serves_named_tuples_of_many_shapes():
    grad = morula.grad(quadratic)
    for n in range(1, 60):
        assert grad(Pair(np.ones(n), 2.0)).b == n + 4.0
    assert len(grad.__morula__.programs) <= 8


def test_setattr_of_the_class_object_is_the_functions():
    def f(a):
        v = Vector(a, a)
        object.__setattr__(v, "x", a * 3.0)
        return v.x * v.y

    assert morula.grad(f)(2.0) == 12.0


class Energy(abc.ABC):
    def __init__(self, k):
        self.k = k

    @abc.abstractmethod
    def of(self, r): ...

    def force(self, r):
        return -(self.of(r + 0.1) - self.of(r - 0.1)) / 0.2


class Spring(Energy):
    def of(self, r):
        return 0.5 * self.k * r * r


class Repulsion(Energy):
    def of(self, r):
        return self.k / r**4


def of_abstract_classes(r, k):
    return sum(e.of(r) * e.force(r) for e in (Spring(k), Repulsion(r)) if isinstance(e, Energy))


def test_classes_derived_from_abstract_ones():
    adjoint = morula.code_adjoint(of_abstract_classes, 1.3, 0.7)
    assert adjoint.kind.startswith("specialised")
    assert not adjoint.left
    check_gradient(of_abstract_classes, 1.3, 0.7)
    adjoint = morula.code_adjoint(lambda e, r: e.force(r), Spring(2.0), 1.3)
    assert adjoint.kind.startswith("specialised")
    assert not adjoint.left
    (ē, r̄) = morula.gradient(lambda e, r: e.force(r), Spring(2.0), 1.3)
    assert (ē.k, r̄) == pytest.approx((-1.3, -2.0))


def test_an_abstract_class_has_no_instances():
    with pytest.raises(TypeError, match="abstract"):
        morula.gradient(lambda k: Energy(k).force(k), 1.0)
    with pytest.raises(TypeError, match="abstract"):
        morula.gradient(lambda k: Energy(k).k, 1.0)


class Bare:
    scale = 2.0

    def cube(self):
        return self.x**3

    @property
    def double(self):
        return 2 * self.x

    @classmethod
    def made(cls, x):
        self = cls()
        self.x = x
        return self

    @classmethod
    def scaled(cls, x):
        return cls.square(x) * cls.scale

    @staticmethod
    def square(x):
        return x * x


class BareInHalf(Bare):
    scale = 0.5

    @staticmethod
    def square(x):
        return x * x * x


def without_initialiser(x):
    a, b = Bare(), Bare.made(x * x)
    a.x = x
    return a.cube() * b.double + Bare.cube(b)


def methods_of_classes(x):
    return Bare.scaled(x) * BareInHalf.scaled(x) + BareInHalf.made(x).double + Bare.square(x)


def an_attribute_of_the_class_until_it_is_set(x):
    a = Bare()
    first = a.scale * x
    if x > 1:
        a.scale = x
    return first + a.scale * Bare.scale


def an_attribute_that_is_missing(x):
    a = Bare()
    try:
        return a.cube()
    except AttributeError:
        return x * x


@pytest.mark.parametrize(
    "f",
    [
        without_initialiser,
        methods_of_classes,
        an_attribute_of_the_class_until_it_is_set,
        an_attribute_that_is_missing,
    ],
)
def test_objects_without_initialiser_and_methods_of_classes(f):
    for x in (1.5, 0.7):
        check_gradient(f, x)
    if f in (without_initialiser, methods_of_classes):
        assert "0 calls are resolved" in str(code_adjoint(f, 1.5))


def test_methods_of_classes_that_are_replaced(monkeypatch):
    g = grad(methods_of_classes)
    first = g(1.5)
    monkeypatch.setattr(BareInHalf, "square", staticmethod(lambda x: x))
    assert g(1.5) == pytest.approx(3 * 1.5**2 + 2 + 2 * 1.5)
    monkeypatch.setattr(Bare, "scaled", classmethod(lambda cls, x: x))
    assert g(1.5) == pytest.approx(2 * 1.5 + 2 + 2 * 1.5)
    monkeypatch.undo()
    assert g(1.5) == first
