"""Objects that a program makes and puts into lists, dicts and other objects."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient
from tests.specialised import (
    POINT,
    holds_for_other_types,
    is_pulled_back_again,
    nothing_is_left_to_run_time,
)


@dataclass
class Particle:
    x: float
    v: float
    m: float = 1.0

    def kinetic(self):
        return 0.5 * self.m * self.v**2

    def kick(self, force, h):
        self.v += h * force / self.m

    @property
    def momentum(self):
        return self.m * self.v


class Vector:
    dimension = 2

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    __rmul__ = __mul__

    def norm(self):
        return math.sqrt(self.x**2 + self.y**2 + self.dimension)

    def moved(self, h):
        return Vector(self.x + h * self.y, self.y - h * self.x)


@dataclass(frozen=True)
class State:
    x: float
    v: float


class Link:
    def __init__(self, value, next=None):
        self.value, self.next = value, next


class Layer:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def __call__(self, x):
        return math.tanh(self.w * x + self.b)


class Account:
    rate = 0.05

    def __init__(self, start):
        self.history = [start]

    def step(self):
        self.history.append(self.history[-1] * (1.0 + self.rate))


class Base:
    def __init__(self, x):
        self.x = x

    def area(self):
        return self.x * self.x


class Scaled(Base):
    def __init__(self, x, k):
        super().__init__(x)
        self.k = k

    def area(self):
        return self.k * super().area()


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


class Counting:
    """Its length is told by code of its own."""

    def __init__(self, x):
        self.x, self.asked = x, 0.0

    def __len__(self):
        self.asked += 1.0
        return 2


def comprehension(a, b):
    bodies = [Particle(a * i, b + i) for i in range(4)]
    for _ in range(3):
        for p in bodies:
            p.kick(-p.x, 0.1)
            p.x += 0.1 * p.v
    return sum(p.kinetic() for p in bodies)


def appended(a, b):
    bodies = []
    for i in range(4):
        bodies.append(Particle(a * i, b, 1.0 + i))
    total = 0.0
    for i, p in enumerate(bodies):
        total += p.momentum * i + p.x * p.x
    return total


def pairs(a, b):
    found = [Vector(a * i, b * i * i) for i in range(4)]
    total = 0.0
    for i in range(len(found)):
        for j in range(i + 1, len(found)):
            total += (found[i] + found[j]).norm()
    return total


def replaced_in_a_loop(a, b):
    """What becomes of the list depends on the class of what is in it."""
    vectors = [Vector(a, b), Vector(b, a)]
    for _ in range(3):
        vectors = [v.moved(0.1) for v in vectors]
    return vectors[0].x * vectors[1].y


def summed(a, b):
    total = Vector(0.0, 0.0)
    for v in [Vector(a * i, b) for i in range(5)]:
        total = total + 0.5 * v
    return total.norm()


def trajectory(a, b):
    s = State(a, b)
    states = [s]
    for _ in range(5):
        s = State(s.x + 0.1 * s.v, s.v - 0.1 * s.x)
        states.append(s)
    return sum(s.x**2 for s in states) + states[-1].v


def linked(a, b):
    head = None
    for i in range(5):
        head = Link(a * i + b, head)
    total, k, node = 0.0, 1.0, head
    while node is not None:
        total += k * node.value**2
        k *= 0.5
        node = node.next
    return total


def linked_by_truth(a, b):
    head = None
    for i in range(5):
        head = Link(a * i + b, head)
    total, node = 0.0, head
    while node:
        total = total * b + node.value
        node = node.next
    return total


def called(a, b):
    x = a
    for layer in [Layer(a * i, b) for i in range(1, 4)]:
        x = layer(x)
    return x


def of_lists(a, b):
    accounts = [Account(a), Account(b), Account(a * b)]
    for _ in range(4):
        for account in accounts:
            account.step()
    return sum(sum(account.history) for account in accounts)


def inherited(a, b):
    found = []
    for i in range(4):
        found.append(Scaled(a * i, b))
    return sum(s.area() for s in found)


def slotted(a, b):
    found = [Slotted(a * i, b) for i in range(3)]
    found[1].a = found[2].a * found[0].b
    return sum(s.a * s.b for s in found)


def under_two_names(a, b):
    p = Particle(a, b)
    bodies = [p, Particle(b, a), p]
    for q in bodies:
        q.x = q.x * q.v
    return p.x + bodies[1].x


def in_a_dict(a, b):
    bodies = {}
    for name in ["sun", "earth", "moon"]:
        bodies[name] = Particle(a, b * len(name))
    for body in bodies.values():
        body.x = body.x * body.v
    return sum(bodies[name].x for name in bodies)


def in_an_object(a, b):
    parents = [Link(Particle(a * i, b)) for i in range(3)]
    for parent in parents:
        parent.value.kick(a, 0.5)
    return sum(parent.value.kinetic() for parent in parents)


def of_arrays(a, b):
    layers = [Vector(np.array([a, b]) * i, np.array([b, 1.0])) for i in range(3)]
    x = np.array([a, 1.0])
    for layer in layers:
        x = np.tanh(layer.x * x + layer.y)
    return x.sum()


def made_of_none(a, b):
    """An attribute that is None at first."""
    found = [Link(None) for _ in range(3)]
    for i, link in enumerate(found):
        link.value = a * i if i else b
    return sum(link.value for link in found if link.value is not None)


def swapped(a, b):
    xs = [Particle(a, 1.0), Particle(b, 2.0), Particle(a * b, 3.0)]
    xs[0], xs[2] = xs[2], xs[0]
    last = xs.pop()
    return xs[0].x * xs[0].v + last.x * xs[1].x


def chosen(a, b):
    found = [Particle(a * i, b) for i in range(1, 4)]
    best = found[0]
    for p in found:
        if p.x > best.x:
            best = p
    best.v = best.v * 2.0
    return sum(p.x * p.v for p in found)


def of_the_class(a, b):
    """The value of the class is read until the object has one of its own."""
    accounts = [Account(a), Account(b)]
    accounts[0].step()
    accounts[0].rate = b
    for account in accounts:
        account.step()
    return sum(account.history[-1] for account in accounts)


def a_list_of_another(a, b):
    """Objects that carry no derivative."""
    points = [Vector(i, 2.0) for i in range(3)]
    return sum(a * p.x + b * p.y for p in points)


@dataclass
class Checked:
    x: float
    n: int = 0

    def __post_init__(self):
        self.x = self.x * 2.0


def renewed(a, b):
    states = [State(a, b)]
    for _ in range(4):
        s = states[-1]
        states.append(replace(s, x=s.x + 0.1 * s.v))
    return sum(s.x * s.v for s in states)


def renewed_alone(a, b):
    s = State(a, b)
    for _ in range(4):
        s = replace(s, v=s.v - 0.1 * s.x)
        s = replace(s, x=s.x + 0.1 * s.v)
    return s.x


def renewed_and_checked(a, b):
    c = Checked(a)
    for _ in range(2):
        c = replace(c, n=c.n + 1)
    return c.x * c.n * b


KEPT = [
    renewed, renewed_alone, renewed_and_checked,
    comprehension, appended, pairs, replaced_in_a_loop, summed, trajectory, linked, linked_by_truth,
    called, of_lists, inherited, slotted, under_two_names, in_a_dict, in_an_object, of_arrays,
    swapped, chosen, of_the_class, a_list_of_another,
]  # fmt: skip


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is compiled yet."""
    compiled.forget_programs()
    compiled._families.clear()


@pytest.mark.parametrize("f", [*KEPT, made_of_none])
@pytest.mark.parametrize("point", [(0.7, 1.3), (1.4, -0.6)])
def test_value_and_gradient(f, point):
    check_gradient(f, *point)
    value, gradients = morula.withgradient(f, *point)
    assert repr(value) == repr(f(*point))
    assert [type(g) for g in gradients] == [float, float]
    with by_the_general_path():
        general, expected = morula.withgradient(f, *point)
    assert repr(value) == repr(general)
    np.testing.assert_allclose(gradients, expected, rtol=1e-12)


@pytest.mark.parametrize("f", KEPT)
def test_nothing_is_left_to_run_time(f):
    nothing_is_left_to_run_time(f)


@pytest.mark.parametrize("f", KEPT)
def test_other_types_and_second_calls(f):
    holds_for_other_types(f, [POINT, (2, 1.3), POINT, (np.float64(0.7), 1.3)])


@pytest.mark.parametrize("f", KEPT)
def test_a_pullback_may_be_called_again(f):
    is_pulled_back_again(f)


@pytest.mark.parametrize("f", [comprehension, trajectory, linked, summed])
def test_second_order(f):
    def of_one(x):
        return f(x, 1.3)

    h = 1e-5
    slope = morula.grad(of_one)
    expected = (slope(0.7 + h) - slope(0.7 - h)) / (2 * h)
    assert morula.hvp(of_one, 0.7, 1.0) == pytest.approx(expected, rel=1e-6)
    assert morula.jvp(of_one, (0.7,), (1.0,))[1] == pytest.approx(slope(0.7), rel=1e-12)


def counted(a, b):
    found = [Counting(a), Counting(b)]
    n = sum(len(c) for c in found)
    if found[0]:
        n += 1
    return n * a * b + sum(c.x * c.asked for c in found)


def shown(a, b, texts):
    found = [Particle(a, b), Particle(b, a)]
    texts.append(str(found[0]))
    return found[0].x * found[1].v


def listed(a, b, seen):
    found = [Particle(a, b)]
    seen.append(found[0])
    return found[0].x * found[0].v


def removed(a, b):
    found = [Particle(a, b), Particle(b, a)]
    del found[0].m
    return sum(p.m * p.x for p in found)


def compared(a, b):
    found = [Particle(a, b), Particle(b, a)]
    return a * b * (2.0 if Particle(a, b) in found else 1.0)


def mixed(a, b):
    found = [Base(a), Scaled(a, b), Base(b)]
    for _ in range(2):
        found.append(found[0])
    return sum(shape.area() for shape in found)


class Asked:
    """Its comparison leaves something behind."""

    def __init__(self, x):
        self.x, self.times = x, 0.0

    def __eq__(self, other):
        self.times += other.x
        return self.x == other.x


def asked(a, b):
    found = [Asked(a), Asked(b)]
    n = 2.0 if Asked(b) in found else 1.0
    return n * found[0].x + found[0].times * found[1].x + (found[0] == found[1]) * found[0].times


def refused(a, b):
    try:
        replace(State(a, b), z=1.0)
    except TypeError:
        return a * b
    return a


class Given:
    def __init__(self, items):
        self.items = items


def of_an_argument(a, b):
    """What is put into objects may be seen by the caller."""
    held = [Given(ITEMS), Given(ITEMS)]
    held[0].items.append(a)
    return sum(held[1].items) * b


ITEMS = []


class Noisy:
    log: ClassVar[list] = []

    def __init__(self, x):
        self.x = x

    def __setattr__(self, name, value):
        Noisy.log.append(name)
        object.__setattr__(self, name, value)


def noisy(a, b):
    found = [Noisy(a), Noisy(b)]
    found[0].x = found[1].x * a
    return found[0].x


@pytest.mark.parametrize("f", [counted, removed, compared, mixed, noisy, refused, asked])
def test_what_is_not_followed_is_right_all_the_same(f):
    check_gradient(f, 0.7, 1.3)
    for _ in range(3):
        value, gradients = morula.withgradient(f, 0.7, 1.3)
        assert repr(value) == repr(f(0.7, 1.3))
    with by_the_general_path():
        expected = morula.gradient(f, 0.7, 1.3)
    np.testing.assert_allclose(gradients, expected, rtol=1e-12)


def test_side_effects_are_those_of_the_plain_call():
    for f in (shown, listed):
        plain, ours = [], []
        g = morula.value_and_grad(f, (0, 1))
        for _ in range(2):
            assert g(0.7, 1.3, ours)[0] == f(0.7, 1.3, plain)
        assert ours == plain
    before = len(Noisy.log)
    noisy(0.7, 1.3)
    n = len(Noisy.log) - before
    morula.grad(noisy)(0.7, 1.3)
    assert len(Noisy.log) == before + 2 * n
    g = morula.value_and_grad(of_an_argument, (0, 1))
    ITEMS.clear()
    assert g(0.7, 1.3) == (0.7 * 1.3, (1.3, 0.7))
    assert ITEMS == [0.7]
    ITEMS.clear()


def test_a_class_that_changes_is_looked_at_again():
    g = morula.grad(comprehension)
    first = g(0.7, 1.3)
    kinetic = Particle.kinetic
    try:
        Particle.kinetic = lambda self: self.x
        with by_the_general_path():
            expected = morula.grad(comprehension)(0.7, 1.3)
        assert g(0.7, 1.3) == pytest.approx(expected, rel=1e-12)
    finally:
        Particle.kinetic = kinetic
    assert g(0.7, 1.3) == first


def test_a_missing_attribute():
    def f(a):
        found = [Link(a), Link(2.0 * a)]
        found[0].other = a
        return sum(link.other for link in found)

    for call in (f, morula.grad(f)):
        with pytest.raises(AttributeError, match="other"):
            call(1.0)


@dataclass
class Tree:
    value: float
    children: list = field(default_factory=list)


def test_objects_in_lists_of_objects():
    def f(a):
        root = Tree(a)
        for i in range(3):
            child = Tree(a * i)
            child.children.append(Tree(a * a))
            root.children.append(child)
        total, waiting = 0.0, [root]
        while waiting:
            node = waiting.pop()
            total += node.value**2
            waiting.extend(node.children)
        return total

    check_gradient(f, 0.7)
    assert morula.withgradient(f, 0.7)[0] == f(0.7)


class Product:
    def __init__(self, a):
        self.a = a

    def __add__(self, other):
        return Product(self.a * other.a)

    def __radd__(self, other):
        return Product(self.a * (1 + other))


def test_objects_that_the_caller_gives_are_summed():
    """What is pulled back is in the object that the sum is."""

    def f(xs, x):
        return sum(xs).a * x

    for _ in range(3):
        (first, second), slope = morula.gradient(f, [Product(2.0), Product(3.0)], 0.7)
        assert (first.a, second.a, slope) == pytest.approx((2.1, 1.4, 6.0))


class Setting:
    factor = 2.0


def test_class_attributes_that_the_program_writes():
    def f(x):
        before = Setting.factor * x
        Setting.factor = before * x
        made = Setting()
        return made.factor * x + Setting.factor

    for _ in range(3):
        Setting.factor = 2.0
        value, (slope,) = morula.withgradient(f, 1.5)
        assert value == 2.0 * 1.5**3 + 2.0 * 1.5**2
        assert slope == pytest.approx(6.0 * 1.5**2 + 4.0 * 1.5)
        assert Setting.factor == 4.5
    Setting.factor = 2.0
