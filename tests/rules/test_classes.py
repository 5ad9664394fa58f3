"""Classes that are defined in differentiated functions."""

import dataclasses
import enum
import typing

import pytest

from morula import gradient, withgradient
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


def a_class_variable(x):
    class A:
        w = x * 2

        def m(self, y):
            return self.w * y * x

    return A().m(x) + A.w


def inheritance(x):
    class Base:
        def __init__(self, v):
            self.v = v

        def get(self):
            return self.v * 3

    class Derived(Base):
        def get(self):
            return super().get() * x

    return Derived(x).get()


def a_dataclass(x):
    @dataclasses.dataclass
    class D:
        a: float
        b: float = 2.0

        @property
        def product(self):
            return self.a * self.b

    return D(x).product * D(x, x).product


def a_dataclass_with_defaults(x):
    @dataclasses.dataclass
    class D:
        a: float
        b: float = x * x
        c: list = dataclasses.field(default_factory=lambda: [x])

    return D(x).b * D(2.0, x).a * D(1.0).c[0] + D.b


def a_metaclass(x):
    class Meta(type):
        def __new__(cls, name, bases, names):
            names["more"] = names["base"] * 5
            return super().__new__(cls, name, bases, names)

        def __call__(cls, *args):
            made = super().__call__(*args)
            made.v = made.v * x
            return made

    class E(metaclass=Meta):
        base = x

        def __init__(self, v):
            self.v = v

    return E.more * E(x).base * E(x).v


def a_named_tuple(x):
    class P(typing.NamedTuple):
        a: float
        b: float

    p = P(x, x * x)
    return p.a * p.b


def an_enum(x):
    class Choice(enum.Enum):
        FIRST = 1
        SECOND = 2

    return x * x * Choice.SECOND.value


def names_in_the_body(x):
    k = 3.0

    class A:
        scale = k * x
        j = scale
        items = [x * i for i in range(3)]  # noqa: RUF012
        del j
        if x > 0:
            sign = 1.0

        @staticmethod
        def s(v):
            return v * k

        @classmethod
        def c(cls, v):
            return cls.scale * v + cls.items[2]

    return A.s(x) * A.c(x) * A.sign + A().scale


PROGRAMS = [
    a_class_variable, inheritance, a_dataclass, a_dataclass_with_defaults, a_metaclass,
    a_named_tuple, an_enum, names_in_the_body,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(program):
    assert withgradient(program, 1.3)[0] == program(1.3)
    check_gradient(program, 1.3)


def test_the_class_is_as_python_makes_it():
    def f(x):
        class A(list):
            """What it is for."""

            y: float = x

            def m(self):
                return __class__

        made.append(A)
        return x

    made = []
    gradient(f, 1.0)
    f(1.0)
    a, b = made
    assert a.__doc__ == b.__doc__
    assert a.__qualname__ == b.__qualname__
    assert a.__module__ == b.__module__
    assert a.__annotations__ == b.__annotations__
    assert a().m() is a
    assert set(vars(a)) == set(vars(b))
    assert a.__mro__[1:] == b.__mro__[1:]


def test_an_error_in_the_body_is_the_users():
    def f(x):
        class A:
            y = nothing  # noqa: F821

        return x

    with pytest.raises(NameError, match="nothing"):
        gradient(f, 1.0)
