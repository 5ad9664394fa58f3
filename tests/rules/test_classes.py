"""Classes that are defined in differentiated functions."""

import abc
import collections
import dataclasses
import enum
import functools
import operator
import typing
from fractions import Fraction

import pytest

from morula import NoRuleError, grad, gradient, hvp, jvp, withgradient
from morula.testing import check_gradient
from tests.modes import check_modes

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


def other_numbers_in_the_body(x):
    class A:
        whole = 2 * x
        exact = Fraction(1, 3) * Fraction(x)
        first = functools.partial(operator.mul, x)  # of an instance, a method since CPython 3.14

    return A.whole * float(A.exact) + A.first(3.0) + A.first(2.0)


def whole_numbers_in_the_body(x):
    class A:
        k = round(x) * 0 + 2

    class B:
        k = x if x is None else A.k * x

    return B.k * B().k


def values_of_an_enumeration(x):
    class Choice(enum.Enum):
        FIRST = x * x
        SECOND = 2.0

        @property
        def twice(self):
            return 2 * self.value

    return Choice.FIRST.value * Choice.SECOND.value + Choice.FIRST.twice * x


def an_enumeration_of_numbers(x):
    class Choice(float, enum.Enum):
        FIRST = x * 2

    return Choice.FIRST * Choice.FIRST.value


def a_class_by_calling_type(x):
    made = type("A", (), {"k": 2 * x, "m": lambda self: self.k * x})
    return made().m() + made.k


def a_class_by_calling_type_with_a_base(x):
    class Meta(type):
        def __init__(cls, name, bases, names):
            cls.scale = cls.k * x

    class Base(metaclass=Meta):
        k = x

    made = type("A", (Base,), {"k": 3 * x})
    return made.scale * Base.scale + made.k


def a_metaclass_that_is_called_and_asked(x):
    class Meta(type):
        def __call__(cls, *args):
            made = super().__call__(*args)
            made.extra = 2 * x
            return made

        def __getitem__(cls, i):
            return cls.k * i

        def __getattr__(cls, name):
            return cls.k * len(name)

        def __len__(cls):
            return 2

        def __iter__(cls):
            yield cls.k
            yield x

        @property
        def volume(cls):
            return cls.k * x

    class A(metaclass=Meta):
        k = x * x

        def __init__(self, v):
            self.v = v

    return A(x).extra * A(x).v + A[3] + A.volume + A.three * sum(A) * len(A)


def a_metaclass_with_getattribute(x):
    class Meta(type):
        def __getattribute__(cls, name):
            if name == "other":
                return 2.0 * x
            return super().__getattribute__(name)

    class A(metaclass=Meta):
        k = x * x

    return A.k * A.other


def descriptors_that_learn_their_names(x):
    class Scaled:
        def __set_name__(self, owner, name):
            self.name, self.scale = "_" + name, owner.k

        def __get__(self, obj, owner):
            return self.scale if obj is None else self.scale * obj.__dict__[self.name]

        def __set__(self, obj, value):
            obj.__dict__[self.name] = value * value

    class A:
        k = 3 * x
        d = Scaled()

    a = A()
    a.d = x
    a.d += 1.0
    return a.d * A.d


def default_values_of_a_method(x):
    class A:
        def m(self, u=x * 3, *, v=x):
            return u * u * v

    return A().m() + A().m(2.0)


def an_init_subclass_that_notes_classes(x):
    seen = []

    class B:
        def __init_subclass__(cls, **k):
            super().__init_subclass__(**k)
            seen.append(cls.k * 3)
            cls.twice = cls.k * x

    class D(B):
        k = x * 2

    return seen[0] + D.twice


def an_init_subclass_with_keywords(x):
    seen = []

    class B:
        def __init_subclass__(cls, f=1.0, **k):
            super().__init_subclass__(**k)
            cls.f = f * 2
            seen.append(f)

    class D(B, f=x):
        pass

    return D.f * seen[0]


def an_init_subclass_marked_as_classmethod(x):
    seen = []

    class B:
        @classmethod
        def __init_subclass__(cls):
            seen.append(x)

    class D(B):
        pass

    return seen[0] * x


def a_set_name_that_notes_owners(x):
    seen = []

    class Desc:
        def __set_name__(self, owner, name):
            seen.append(owner.k * x)

    class C:
        k = x * 3
        d = Desc()

    return seen[0]


def a_metaclass_that_notes_calls(x):
    seen = []

    class M(type):
        def __call__(cls, *a):
            seen.append(a[0] * 2)
            return super().__call__(*a)

    class C(metaclass=M):
        def __init__(self, v):
            self.v = v

    return C(x).v * seen[0]


def a_metaclass_with_keywords(x):
    seen = []

    class M(type):
        def __init__(cls, name, bases, ns, **k):
            super().__init__(name, bases, ns)
            seen.append(ns["k"] * 2 + k.get("w", 0))

        def __new__(mcs, name, bases, ns, **k):
            c = super().__new__(mcs, name, bases, ns)
            c.z = ns["k"] * x
            return c

    class C(metaclass=M, w=x):
        k = x

    return seen[0] * C.z


def a_namespace_that_a_metaclass_prepares(x):

    class M(type):
        @classmethod
        def __prepare__(mcs, name, bases, **k):
            return {"p": x * 3}

    class C(metaclass=M):
        q = p * 2  # noqa: F821, which the metaclass has prepared

    return C.q + C.p


def class_decorators(x):
    seen = []

    def deco(cls):
        seen.append(cls.k * 2)
        cls.m = lambda self: self.k * x
        return cls

    def deco2(f):

        def inner(cls):
            cls.s = f
            return cls

        return inner

    @deco2(x * x)
    @deco
    class C:
        k = x

    return seen[0] + C().m() + C.s


def partials_in_a_class(x):

    class C:
        f = staticmethod(functools.partial(lambda a, b: a * b, x))
        g = functools.partial(lambda a, b: a * b, x)

        @staticmethod
        def h(u):
            return u * x

        i = classmethod(lambda cls, u: u * x)

    return C.f(2.0) + C().f(3.0) + C.g(4.0) + C.h(x) + C().h(2.0) + C.i(x) + C().i(2.0)


def default_values_set_as_an_attribute(x):
    N = collections.namedtuple("N", "a b", defaults=[x])
    n = N(x * 2)
    a, b = n
    return a * b


def default_values_of_fields(x):
    class Base:
        w = x * x

    @dataclasses.dataclass
    class D(Base):
        w: float
        k: dataclasses.InitVar[float] = x

        def __post_init__(self, k):
            self.product = k * self.w

    @dataclasses.dataclass
    class E(D):
        q: float = dataclasses.field(default=x * 3, kw_only=True)

    e = E()
    return D().product + e.product * e.q + dataclasses.fields(E)[1].default ** 2 + E.q


def default_values_of_fields_with_slots(x):
    @dataclasses.dataclass(slots=True)
    class D:
        scale: typing.ClassVar[float] = x * x
        a: float
        b: float = dataclasses.field(default=x * 3)

        def product(self):
            return self.a * self.b * self.scale

    @dataclasses.dataclass(slots=True)
    class E(D):
        c: float = x

    return D(2.0).product() + E(x).product() * E(1.0).c


def a_dataclass_by_calling(x):
    fields = ["a", ("b", float, dataclasses.field(default=x))]
    made = dataclasses.make_dataclass("D", fields, namespace={"p": lambda self: self.a * self.b})
    return made(x * 2).p()


def members_with_attributes(x):
    seen = []

    class Planet(enum.Enum):
        FIRST = (x, 2.0)
        SECOND = (3.0, x * x)

        def __init__(self, mass, radius):
            self.mass, self.radius = mass, radius
            seen.append(self.name)

        @property
        def gravity(self):
            return self.mass * x / self.radius**2

    second = Planet((3.0, x * x))
    return Planet.FIRST.gravity * second.gravity * len(seen) + Planet.FIRST.value[0] ** 2


def members_with_an_inherited_init(x):
    class Base(enum.Enum):
        def __init__(self, v):
            self.squared = v * v * x

    class Choice(Base):
        FIRST = x
        SECOND = 2 * x

    Choice.FIRST.more = x**3
    return sum(c.squared for c in Choice) * Choice.FIRST.value + Choice.FIRST.more


PROGRAMS = [
    default_values_of_fields, default_values_of_fields_with_slots, a_dataclass_by_calling,
    members_with_attributes, members_with_an_inherited_init,
    a_class_variable, inheritance, a_dataclass, a_dataclass_with_defaults, a_metaclass,
    a_named_tuple, an_enum, names_in_the_body, whole_numbers_in_the_body,
    values_of_an_enumeration, an_enumeration_of_numbers, a_metaclass_that_is_called_and_asked,
    a_metaclass_with_getattribute, descriptors_that_learn_their_names, default_values_of_a_method,
    other_numbers_in_the_body, a_class_by_calling_type, a_class_by_calling_type_with_a_base,
    an_init_subclass_that_notes_classes,
    an_init_subclass_with_keywords,
    an_init_subclass_marked_as_classmethod,
    a_set_name_that_notes_owners,
    a_metaclass_that_notes_calls,
    a_metaclass_with_keywords,
    a_namespace_that_a_metaclass_prepares,
    class_decorators,
    partials_in_a_class,
    default_values_set_as_an_attribute,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(program):
    assert withgradient(program, 1.3)[0] == program(1.3)
    check_gradient(program, 1.3)


def test_whole_numbers_of_a_class_are_points_of_the_real_line():
    def f(n):
        class A:
            k = n * 2

        return A.k * 1.5

    assert gradient(f, 3) == (3.0,)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(values_of_an_enumeration, marks=pytest.mark.thorough),
        a_class_by_calling_type,
        pytest.param(descriptors_that_learn_their_names, marks=pytest.mark.thorough),
        default_values_of_a_method,
        default_values_of_fields,
        default_values_of_fields_with_slots,
        members_with_attributes,
    ],
    ids=lambda f: f.__name__,
)
def test_second_derivatives(program):
    check_gradient(grad(program), 1.3)
    check_gradient(lambda x: jvp(program, (x,), (1.0,))[1], 1.3)


def test_what_only_compiled_code_sees_is_refused():
    def of_a_member(x):
        class Choice(enum.Enum):
            FIRST = (x, 2.0)

            def __new__(cls, a, b):
                self = object.__new__(cls)
                self._value_, self.product = a, a * b
                return self

        return Choice.FIRST.product

    with pytest.raises(NoRuleError, match="getattr"):
        gradient(of_a_member, 1.0)


def test_a_class_with_a_hook_is_as_python_makes_it():
    class Base(metaclass=abc.ABCMeta):  # noqa: B024, for how its objects are laid out
        kinds: typing.ClassVar = []

        def __init_subclass__(cls):
            Base.kinds.append(cls)

    class Slotted:
        __slots__ = ("a",)

        def __init_subclass__(cls):
            Base.kinds.append(cls)

    def f(x):
        class A(Base):
            pass

        class B(Slotted):
            __slots__ = ("b",)

        class C(Base, list):
            pass

        return x

    f(1.0)
    plain = Base.kinds.copy()
    Base.kinds.clear()
    gradient(f, 1.0)
    assert [cls.__mro__[1:] for cls in Base.kinds] == [cls.__mro__[1:] for cls in plain]
    assert [cls.__dictoffset__ for cls in Base.kinds] == [cls.__dictoffset__ for cls in plain]
    assert {"A", "B", "C"} == {cls.__name__ for cls in Base.kinds}
    assert Base.kinds[0] in Base.__subclasses__()


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


@pytest.mark.parametrize(
    "program", [an_init_subclass_with_keywords, a_set_name_that_notes_owners, partials_in_a_class]
)
def test_second_derivatives_through_hooks(program):
    check_gradient(grad(program), 0.7)
    assert hvp(program, 0.7, 1.0) == pytest.approx(grad(grad(program))(0.7))


MEMBERS_BY_CALL = {
    "a dict": lambda v: enum.Enum("E", {"A": v, "B": v * v}),
    "pairs": lambda v: enum.Enum("E", [("A", v), ("B", v * v)]),
    "of floats": lambda v: enum.Enum("E", {"A": v, "B": v * v}, type=float),
}


@pytest.mark.parametrize("name", MEMBERS_BY_CALL)
def test_enumerations_made_by_a_call(name):
    def f(v):
        members = MEMBERS_BY_CALL[name](v)
        return members.A.value * members["B"].value

    check_modes(f, 1.7)


def test_enumerations_of_names_and_of_a_metaclass_of_its_own():
    class Meta(enum.EnumMeta):
        def __new__(metacls, name, bases, names, **keywords):
            return super().__new__(metacls, name, bases, names, **keywords)

    class Base(enum.Enum, metaclass=Meta):
        pass

    def f(v):
        flags = enum.IntEnum("Flags", "ONE TWO")
        members = Base("E", {"A": 2.0, "B": 3.0})
        return v * v * flags.TWO * members.A.value + members.B.value

    check_modes(f, 1.7)
