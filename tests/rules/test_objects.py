"""Objects: attributes, slots, properties, descriptors, operators of classes, copies."""

# ruff: noqa: B905

import copy
import dataclasses
import enum
import functools
import math
import operator
import sys
import types

import numpy as np
import pytest

from morula import (
    J,
    NoRuleError,
    Tangent,
    UnsupportedError,
    grad,
    gradient,
    hvp,
    jvp,
    pullback,
    rrule,
)
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


class Tagged(list):
    pass


class Plain:
    shared = 3.0

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def area(self):
        return self.w * self.h

    @property
    def diagonal(self):
        return math.hypot(self.w, self.h)

    @diagonal.setter
    def diagonal(self, value):
        self.w = value * 0.6
        self.h = value * 0.8

    @functools.cached_property
    def cube(self):
        return self.w**3


class Slotted:
    __slots__ = ("__hidden", "a", "b")

    def __init__(self, a, b):
        self.a = a
        self.b = b
        self.__hidden = a * b

    def hidden(self):
        return self.__hidden


class Doubling:
    """A data descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name) * 2

    def __set__(self, instance, value):
        setattr(instance, self.name, value * 3)


class Computed:
    """A descriptor that is no data descriptor."""

    def __get__(self, instance, owner):
        return instance.x * instance.x


class Described:
    d = Doubling()
    c = Computed()

    def __init__(self, x):
        self.x = x
        self.d = x


class Dynamic:
    def __init__(self, **fields):
        object.__setattr__(self, "fields", fields)

    def __getattr__(self, name):
        if name not in self.fields:
            raise AttributeError(name)
        return self.fields[name]

    def __setattr__(self, name, value):
        self.fields[name] = value

    def __delattr__(self, name):
        del self.fields[name]


class Traced:
    def __init__(self, x):
        self.x = x

    def __getattribute__(self, name):
        value = object.__getattribute__(self, name)
        return value * 2 if name == "x" else value


class Vector:
    def __init__(self, *parts):
        self.parts = list(parts)

    def __add__(self, other):
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(*[a + b for a, b in zip(self.parts, other.parts)])

    def __mul__(self, factor):
        return Vector(*[a * factor for a in self.parts])

    def __rmul__(self, factor):
        return self * (factor * 2)

    def __imul__(self, factor):
        self.parts[:] = [a * factor for a in self.parts]
        return self

    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self.parts, other.parts))

    def __neg__(self):
        return Vector(*[-a for a in self.parts])

    def __abs__(self):
        return math.sqrt(self @ self)

    def __float__(self):
        return self.parts[0] * 1.0

    def __pow__(self, n):
        return Vector(*[a**n for a in self.parts])

    def __divmod__(self, n):
        return self.parts[0] / n, self.parts[1]

    def __getitem__(self, i):
        return self.parts[i]

    def __setitem__(self, i, value):
        self.parts[i] = value

    def __delitem__(self, i):
        del self.parts[i]

    def __len__(self):
        return len(self.parts)

    def __contains__(self, x):
        return x in self.parts

    def __lt__(self, other):
        return self.parts[0] < other.parts[0]

    def __bool__(self):
        return bool(self.parts)


class Longer(Vector):
    def __radd__(self, other):
        return Vector(*[a * b for a, b in zip(self.parts, other.parts)])


class Colour(enum.Enum):
    RED = 2.0


@dataclasses.dataclass
class Nested:
    inner: object
    scale: float = 1.0


def attribute_chain(x):
    o = Nested(Nested(x, x * x), 2.0)
    o.inner.scale *= o.inner.inner
    return o.inner.scale * o.scale


def attributes_by_name(x):
    o = Plain(w=x)
    o.h = x * x
    return o.h * getattr(o, "w", 1.0) * getattr(o, "missing", x)


def the_dict_of_an_object(x):
    o = Plain(w=x)
    o.__dict__["h"] = o.w * x
    vars(o)["w"] = o.h * o.__dict__["w"]
    return o.area() * vars(o).get("k", x)


def an_attribute_overwritten_and_deleted(x):
    o = Plain(w=x, h=x)
    before = o.w
    o.w = o.h * 2
    del o.h
    o.h = x * x
    return before * o.w * o.h


def an_alias(x):
    o = Plain(w=x)
    p = o
    p.w = p.w * x
    return o.w


def a_property_with_a_setter(x):
    o = Plain(w=1.0, h=2.0)
    o.diagonal = x * x
    return o.w * o.diagonal


def a_cached_property(x):
    o = Plain(w=x)
    first = o.cube
    o.w = 100.0
    return first * o.cube


def a_shadowed_class_attribute(x):
    o, p = Plain(), Plain()
    o.shared = x
    return o.shared * p.shared


def a_class_attribute_set_in_the_program(x):
    class_ = type("Fresh", (), {"w": 1.0})
    o = class_()
    before = o.w
    class_.w = x * x
    return o.w * class_.w * before


def a_module_attribute_set_in_the_program(x):
    module = types.ModuleType("fresh")
    module.g = x * x
    return module.g * x


def slots(x):
    o = Slotted(x, 2.0)
    o.b = o.a * o.hidden()
    return o.b * o.a


def dynamic_attributes(x):
    o = Dynamic(a=x)
    o.b = o.a * x
    del o.a
    return o.b * getattr(o, "a", x)


def reflected_first_for_a_subclass(x):
    return (Vector(x, 2.0) + Longer(x, 3.0))[0]


def items_of_a_class(x):
    v = Vector(x, 1.0, 2.0)
    v[1] = v[0] * x
    del v[2]
    return v[1] * len(v) if x in v and v else 0.0


def numbers_have_attributes(x):
    z = complex(x, x * x)
    return z.real * z.imag + x.real + x.imag + z.conjugate().imag


def a_namespace(x):
    n = types.SimpleNamespace(a=x, b=2.0)
    n.c = n.a * n.b
    return n.c * n.a


def an_exceptions_field(x):
    e = ValueError("m")
    e.value = x * x
    return e.value * x


def a_function_attribute(x):
    def f(y):
        return y * f.scale

    f.scale = x * x
    return f(x)


def a_list_with_attributes(x):
    xs = Tagged([x, 2.0])
    xs.weight = x * x
    return xs[0] * xs.weight


def a_copy(x):
    o = Plain(w=x, h=[x, 1.0])
    p = copy.copy(o)
    p.w = p.w * x
    p.h[1] = x * x
    return o.w * p.w * o.h[1]


def a_deep_copy(x):
    o = {"a": Plain(w=x, h=[x, (x, [x])]), "b": np.array([x, 2.0])}
    p = copy.deepcopy(o)
    p["a"].h[1][1][0] *= x
    p["a"].w *= 3.0
    return p["a"].w * o["a"].w + p["a"].h[1][1][0] * o["a"].h[1][1][0] + p["b"].sum()


class Squares:
    def __class_getitem__(cls, x):
        return x * x


def copies_that_classes_make(x):

    class A:
        def __init__(self, v):
            self.v = v
            self.l = [v]

        def __copy__(self):
            return A(self.v * 2)

        def __deepcopy__(self, memo):
            return A(copy.deepcopy(self.v, memo) * 3)

    class B:
        def __init__(self, v):
            self.v = v
            self.l = [v, A(v)]

    b = B(x)
    c, d = (copy.copy(b), copy.deepcopy(b))
    return copy.copy(A(x)).v + copy.deepcopy(A(x)).l[0] + c.v * c.l[0] + d.l[0] * d.l[1].v + d.v


def a_copy_slot_by_slot(x):
    class A:
        __slots__ = ("a", "seen")

        def __init__(self, a):
            object.__setattr__(self, "seen", 0.0)
            self.a = a

        def __setattr__(self, name, value):
            object.__setattr__(self, name, value * 1.5)

        def __getattribute__(self, name):
            value = object.__getattribute__(self, name)
            if name == "a":
                seen = object.__getattribute__(self, "seen")
                object.__setattr__(self, "seen", seen + value)
            return value

    a = A(x)
    b = copy.copy(a)
    return b.a * a.seen + b.seen


def a_circle_that_copies_itself(x):
    class Node:
        def __init__(self, v, following=None):
            self.v, self.following = v, following

        def __deepcopy__(self, memo):
            new = memo[id(self)] = Node(self.v * 3)
            new.following = copy.deepcopy(self.following, memo)
            return new

    a = Node(x)
    a.following = Node(x * x, a)
    b = copy.deepcopy(a)
    return b.v + b.following.following.v * b.following.v


def a_copy_by_reduce(x):

    class R:
        def __init__(self, v):
            self.v = v

        def __reduce__(self):
            return (R, (self.v * 2,))

        def __getstate__(self):
            return {"v": self.v}

    return copy.copy(R(x)).v


def a_copy_by_state(x):

    class R:
        def __init__(self, v):
            self.v = v

        def __getstate__(self):
            return {"v": self.v * 2}

        def __setstate__(self, st):
            self.v = st["v"] * 3

    return copy.copy(R(x)).v + copy.deepcopy(R(x)).v


def a_descriptor_that_deletes(x):

    class Dd:
        def __get__(self, o, t=None):
            return x if o is None else o.k * x

    class Nd:
        def __init__(self):
            self.vals = {}

        def __set__(self, o, v):
            self.vals[id(o)] = v * 2

        def __get__(self, o, t):
            return self.vals[id(o)]

        def __delete__(self, o):
            self.vals[id(o)] = self.vals[id(o)] * x

    class C:
        d = Dd()
        n = Nd()

        def __init__(self, k):
            self.k = k

    c = C(x * 2)
    c.n = x
    r = C.d + c.d + c.n
    del c.n
    c.d = x * 7
    return r + c.n + c.d


def a_class_with_items(x):
    return Squares[x]


def a_method_with_a_cache(x):

    class C:
        def __init__(self):
            self.v = x

        @functools.lru_cache  # noqa: B019, of an object that lives as long
        def q(self, u):
            return u * self.v

    c = C()
    return c.q(x) * c.q(x) + c.q(2.0)


def a_recursion_with_a_cache(x):

    @functools.lru_cache(None)
    def f(n):
        return x * n if n < 2 else f(n - 1) + f(n - 2) * x

    return f(5) * f(4)


def the_dict_of_a_namespace(x):
    n = types.SimpleNamespace(a=x, b=2.0)
    vars(n)["c"] = n.a * n.a
    n.__dict__.update(d=x)
    m = types.SimpleNamespace(**vars(n), e=3.0)
    return n.c * n.d * sum(vars(m).values())


class Settings(types.SimpleNamespace):
    def __init__(self, scale, **more):
        super().__init__(scale=scale * scale, **more)

    def total(self):
        return self.scale * self.shift


def a_class_derived_from_namespaces(x):
    s = Settings(x, shift=2.0 * x)
    s.shift *= s.scale
    return s.total()


class Bag:
    pass


def a_dict_that_becomes_an_objects_own(x):
    b = Bag()
    b.a = x
    fields = {"a": b.a * 2.0}
    b.__dict__ = fields
    fields["c"] = b.a * x
    b.d = fields["c"]
    return b.a * b.d + fields["d"]


def a_dict_that_was_an_objects_own(x):
    b = Bag()
    b.a = x
    old, first = vars(b), b.a
    b.__dict__ = {"a": x * x}
    old["a"] *= 2
    second = old["a"] * b.a
    b.__dict__ = old
    return b.a * second + first


def dicts_that_are_swapped(x):
    b, c = Bag(), Bag()
    b.a, c.a = x, x * x
    vars(b)["k"] = 2.0 * b.a
    b.__dict__, c.__dict__ = c.__dict__, b.__dict__
    b.a *= 3
    return b.a * c.k + c.a


class Shared:
    state: dict = {}  # noqa: RUF012, that of all objects

    def __init__(self):
        self.__dict__ = self.state


def objects_with_one_dict(x):
    Shared.state.clear()
    a, b = Shared(), Shared()
    a.w = x * x
    b.v = b.w * 2.0
    return a.v * b.w * x


OLD, NEW = Shared(), Shared()


def objects_with_one_dict_from_before(x):
    OLD.w = x * x
    NEW.v = NEW.w * 2.0
    return OLD.v * NEW.w * x


class SlotsAndDict:
    __slots__ = ("__dict__", "u")


def slots_beside_a_dict_that_is_replaced(x):
    s = SlotsAndDict()
    s.u, s.w = x, x * x
    a = s.u * s.w
    s.__dict__ = {"w": 3.0 * x}
    s.u *= 2
    return a * s.u * s.w + vars(s)["w"]


class Stateful:
    def __getstate__(self):
        return dict(vars(self))

    def __setstate__(self, state):
        self.__dict__ = state


def a_copy_whose_state_becomes_its_dict(x):
    a = Stateful()
    a.w, a.xs = x, [x]
    b, c = copy.deepcopy(a), copy.copy(a)
    b.w *= x
    b.xs.append(b.w)
    c.w *= 3.0
    return a.w * sum(b.xs) * c.w + c.xs[0]


DICTS = [
    the_dict_of_a_namespace,
    a_class_derived_from_namespaces,
    a_dict_that_becomes_an_objects_own,
    a_dict_that_was_an_objects_own,
    dicts_that_are_swapped,
    objects_with_one_dict,
    objects_with_one_dict_from_before,
    slots_beside_a_dict_that_is_replaced,
    a_copy_whose_state_becomes_its_dict,
]
PROGRAMS = [
    *DICTS,
    attribute_chain,
    attributes_by_name,
    the_dict_of_an_object,
    an_attribute_overwritten_and_deleted,
    an_alias,
    a_property_with_a_setter,
    a_cached_property,
    a_shadowed_class_attribute,
    a_class_attribute_set_in_the_program,
    a_module_attribute_set_in_the_program,
    slots,
    dynamic_attributes,
    reflected_first_for_a_subclass,
    items_of_a_class,
    numbers_have_attributes,
    a_namespace,
    an_exceptions_field,
    a_function_attribute,
    a_list_with_attributes,
    a_copy,
    a_deep_copy,
    lambda x: Described(x).d * Described(x).c,
    lambda x: Traced(x).x * x,
    lambda x: Colour.RED.value * x * len(Colour.RED.name),
    lambda x: Plain(w=x, h=2.0).diagonal,
    lambda x: operator.attrgetter("w", "h")(Plain(w=x, h=x * x))[1],
    copies_that_classes_make,
    a_circle_that_copies_itself,
    a_copy_slot_by_slot,
    a_copy_by_reduce,
    a_copy_by_state,
    a_descriptor_that_deletes,
    a_class_with_items,
    a_method_with_a_cache,
    a_recursion_with_a_cache,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_agrees_with_differences(program):
    check_gradient(program, 0.7)


def test_operators_of_classes_agree_with_differences():
    def f(x):
        v, w = Vector(x, x * x), Vector(1.0, x)
        u = v + w * x
        u *= 2.0
        u = -(3.0 * u)
        return u[0] * v[1] + float(u) + (v**2)[1] * divmod(v, x)[0]

    check_gradient(f, 0.7)


def test_operators_that_no_class_defines_raise_what_python_raises():
    with pytest.raises(
        TypeError, match=r"unsupported operand type\(s\) for \+: 'Vector' and 'float'"
    ):
        gradient(lambda x: Vector(x) + x, 1.0)
    with pytest.raises(
        TypeError, match=r"unsupported operand type\(s\) for /: 'Plain' and 'float'"
    ):
        gradient(lambda x: Plain() / x, 1.0)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        gradient(lambda x: Plain(w=x).nothing, 1.0)
    with pytest.raises(AttributeError, match="nothing"):
        gradient(lambda x: Dynamic(w=x).nothing, 1.0)


def test_the_gradient_of_an_object_mirrors_its_attributes():
    o = Plain(w=2.0, name="o", h=3, inner=Slotted(1.0, 5.0), items=[1.0, "s"], f=math.sin, no=None)
    o.array = np.ones(2)
    o.me = o
    (ḡ,) = gradient(lambda o: o.w * o.w * o.inner.b * o.me.items[0], o)
    assert list(ḡ.keys()) == ["w", "h", "inner", "items", "array", "me"]
    assert (ḡ.w, ḡ.h, ḡ["items"]) == (20.0, 0.0, [20.0, None])
    assert ḡ.inner == Tangent[Slotted](_Slotted__hidden=0.0, a=0.0, b=4.0)
    assert ḡ.me is ḡ
    np.testing.assert_array_equal(ḡ.array, np.zeros(2))


def test_the_gradient_mirrors_the_object_as_it_was_on_entry():
    def f(o):
        o.h = o.w * 2
        o.w = "text"
        return o.h

    o = Plain(w=2.0)
    assert gradient(f, o) == (Tangent[Plain](w=2.0),)
    assert vars(o) == {"w": "text", "h": 4.0}


def test_an_object_in_two_arguments_is_one_object():
    o = Plain(w=2.0)
    a, b = gradient(lambda o, p: o.w * p.w, o, o)
    assert a is b
    assert a.w == 4.0


def test_objects_of_the_standard_library_hold_no_parameters():
    import logging

    o = Plain(w=2.0, log=logging.getLogger("morula"))
    assert gradient(lambda o: o.w, o) == (Tangent[Plain](w=1.0),)


def test_a_pullback_of_an_object_takes_a_tangent_and_can_be_called_again():
    y, back = pullback(lambda x: Plain(w=x, h=Plain(w=x * x)), 3.0)
    y.w = None
    ȳ = Tangent[Plain](w=1.0, h=Tangent[Plain](w=10.0))
    assert [back(ȳ) for _ in range(3)] == [(61.0,)] * 3
    with pytest.raises(ValueError, match="expected Tangent"):
        back(1.0)


def test_a_rule_may_return_the_tangent_of_an_object():
    def area(o):
        raise AssertionError

    @rrule(area)
    def _(o: Plain):
        def pullback(ȳ):
            return (Tangent[Plain](w=ȳ * o.h, h=ȳ * o.w),)

        return o.w * o.h, pullback

    check_gradient(lambda x: (lambda o: o.w * 2 + 0.0 * x)(Plain(w=x)), 2.0)
    assert gradient(lambda x: area(Plain(w=x, h=x * x)), 2.0) == (12.0,)


def test_effects_of_properties_happen_once():
    log = []

    class Noisy:
        def __init__(self, x):
            self.x = x

        @property
        def p(self):
            log.append("p")
            return self.x

        def __getattr__(self, name):
            log.append(name)
            return self.x * 2

    assert gradient(lambda x: Noisy(x).p * Noisy(x).q, 3.0) == (12.0,)
    assert log == ["p", "q"]


def test_setting_an_attribute_of_an_array():
    def f(x):
        y = x * 2.0
        y.real = x * x
        return y.sum()

    _, back = pullback(f, np.array([1.0, 3.0]))
    assert back(1.0)[0].tolist() == [2.0, 6.0]

    def g(x):
        x.dtype = np.int64
        return x.sum()

    with pytest.raises(UnsupportedError, match="of an array"):
        gradient(g, np.ones(2))


def test_an_attribute_of_a_compiled_object_is_refused_only_if_it_matters():
    import decimal

    assert gradient(lambda x: x * (decimal.Context(prec=x).prec > 1), 2) == (1.0,)
    with pytest.raises(NoRuleError, match="for the attribute 'prec'"):
        gradient(lambda x: x * decimal.Context(prec=x).prec, 2)


def test_the_cotangent_of_an_object_that_is_called():
    class Polynomial:
        def __init__(self, *coefficients):
            self.coefficients = coefficients

        def __call__(self, x):
            y = 0.0
            for c in self.coefficients:
                y = y * x + c
            return y

    _, back = J(Polynomial(1.0, 2.0, 3.0), 2.0)
    assert back(1.0) == (Tangent[Polynomial](coefficients=(4.0, 2.0, 1.0)), 6.0)


@pytest.mark.parametrize("program", DICTS)
def test_dicts_of_objects_in_forward_mode(program):
    assert jvp(program, (0.7,), (1.0,))[1] == pytest.approx(gradient(program, 0.7)[0])


def test_namespaces_of_mappings():
    def f(x):
        return types.SimpleNamespace({"a": x * x}, b=x).a

    if sys.version_info >= (3, 13):
        assert gradient(f, 3.0) == (6.0,)
    else:
        with pytest.raises(TypeError, match="no positional arguments expected"):
            gradient(f, 3.0)


@pytest.mark.parametrize(
    "program",
    [*DICTS, a_deep_copy, copies_that_classes_make, a_copy_by_state, a_recursion_with_a_cache],
)
def test_second_derivatives(program):
    check_gradient(grad(program), 0.7)
    assert hvp(program, 0.7, 1.0) == pytest.approx(grad(grad(program))(0.7))


def test_copies_of_what_is_given_by_name():
    assert gradient(lambda s: copy.copy(x=[s, 1.0])[0] * s, 3.0) == (6.0,)
    assert gradient(lambda s: copy.deepcopy(x=[[s]])[0][0] * s, 3.0) == (6.0,)
    assert gradient(lambda s: copy.deepcopy(memo={}, x=[[s]])[0][0] * s, 3.0) == (6.0,)
    assert jvp(lambda s: copy.deepcopy(memo={}, x=[[s]])[0][0] * s, (3.0,), (1.0,)) == (9.0, 6.0)


def test_tangents_with_arrays_are_compared_entry_by_entry():
    def of(*entries, n=1.0):
        return Tangent[Plain](x=np.array(entries), y=[n, {"a": np.ones(2)}])

    assert of(1.0, 2.0) == of(1.0, 2.0)
    assert of(1.0, 2.0) != of(1.0, 3.0)
    assert of(1.0, 2.0) != of(1.0)
    assert of(1.0, 1.0) != Tangent[Plain](x=1.0, y=[1.0, {"a": np.ones(2)}])
    assert of(1.0) != of(1.0, n=2.0)
    assert of(1.0) != Tangent[Plain](x=np.array([1.0]))
    assert of() == of()


class Held:
    def __init__(self):
        self.w = 2.0
        self.k = {"a": 3.0}


def test_derivatives_of_tangents_are_tangents_of_the_same_class():
    f = lambda o: o.w**3 * o.k["a"]
    slope = lambda o: gradient(f, o)[0]
    want = Tangent[Held](w=36.0, k={"a": 12.0})
    assert hvp(f, Held(), Tangent[Held](w=1.0)) == want
    assert jvp(slope, (Held(),), (Tangent[Held](w=1.0),))[1] == want
    assert gradient(lambda t: t.w * t.k["a"], slope(Held()))[0] == Tangent[Held](
        w=8.0, k={"a": 36.0}
    )


def test_attributes_without_a_tangent_space_are_none():
    class Named:
        kind = "a class has one too"

        def __init__(self, w):
            self.w = w
            self.kind = "named"
            self.flag = True
            self.other = None

    (g,) = gradient(lambda p: p.w**2, Named(3.0))
    assert (g.w, g.kind, g.flag, g.other) == (6.0, None, None, None)
    assert repr(g) == "Tangent[Named](w=6.0)"
    for same in (g + g, 2 * g, -g, copy.deepcopy(g)):
        assert same.kind is None
    assert gradient(lambda ps: ps[0].w, [Named(1.0)])[0][0].flag is None
    with pytest.raises(AttributeError, match="nothing"):
        _ = g.nothing


def test_attributes_of_compiled_objects_that_are_found_in_a_way_of_their_own(path):
    """Routines of LAPACK have no `__dict__`."""
    lapack = pytest.importorskip("scipy.linalg.lapack")

    def f(x, kind):
        routine = lapack.dgetrf
        routine.kind = kind
        return x * len(routine.kind)

    assert gradient(f, 2.0, "abc")[0] == 3.0
    assert jvp(lambda x: f(x, "ab"), (2.0,), (1.0,)) == (4.0, 2.0)
    (routine,) = lapack.get_lapack_funcs(("gesv",), (np.ones(2),))
    assert gradient(lambda x: x * len(routine.typecode), 2.0) == (1.0,)
