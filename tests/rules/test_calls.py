"""Calling: methods, classes, partials, callable objects, caches."""

import array
import bisect
import collections
import ctypes
import dataclasses
import functools
import heapq
import math
import operator
import types
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pytest

from morula import (
    J,
    NoRuleError,
    NoTangent,
    RuleError,
    Tangent,
    frule,
    gradient,
    hvp,
    jvp,
    non_differentiable,
    pullback,
    rrule,
    scalar_rule,
)
from morula.testing import check_gradient

T = TypeVar("T")


pytestmark = pytest.mark.usefixtures("path")


class Affine:
    kind = "affine"

    def __init__(self, w, b=0.5):
        self.w = w
        self.b = b

    def __call__(self, x):
        return self.finish(self.w * x + self.b)

    def finish(self, x):
        return math.tanh(x)

    @classmethod
    def square(cls, w):
        return cls(w, w)

    @staticmethod
    def twice(x):
        return 2 * x * x


class Scaled(Affine):
    def __init__(self, w, b, scale):
        super().__init__(w, b)
        self.scale = scale

    def finish(self, x):
        return super().finish(x) * self.scale


class Made:
    def __new__(cls, x, **kwargs):
        self = object.__new__(cls)
        self.x = x * x
        return self

    def __init__(self, x, *, y):
        self.y = x * y


class Other:
    def __new__(cls, x):
        return x * 3.0


class Meta(type):
    def __call__(cls, x):
        made = super().__call__(x * 2.0)
        made.extra = x
        return made


class WithMeta(metaclass=Meta):
    def __init__(self, x):
        self.x = x


class Box(Generic[T]):
    def __init__(self, x):
        self.x = x


@dataclasses.dataclass
class Point:
    x: float
    y: float = 2.0
    tags: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.r = self.x * self.y


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: float
    y: float = 2.0


class Named(NamedTuple):
    u: float
    v: float = 1.5

    def product(self):
        return self.u * self.v


class Stack(list):
    def push(self, x):
        super().append(x * 2.0)


class Registered(dict):
    def __init__(self, x):
        super().__init__(a=x, b=x * x)


class Celsius(float):
    def fahrenheit(self):
        return self * 1.8 + 32.0


class Failure(Exception):
    def __init__(self, message, value):
        super().__init__(message, value)
        self.value = value


def powers(a, b, *rest, scale=1.0, **others):
    return a * b**2 * scale + sum(rest) * others.get("shift", 1.0)


class Squares:
    def __getitem__(self, key):
        return key * key


def missed(get, d):
    try:
        return get(d)
    except KeyError as error:
        return error.args[0] * 3.0


PROGRAMS = {
    "callable object": lambda x: Affine(x)(x),
    "bound method": lambda x: Affine(x, x * x).finish(x),
    "method held in a variable": lambda x: (lambda f: f(2.0) * f(x))(Affine(x).finish),
    "inheritance and super": lambda x: Scaled(x, 1.0, x * x)(2.0),
    "class method": lambda x: Affine.square(x)(1.0) + Affine(x).square(x).b,
    "static method": lambda x: Affine.twice(x) * Affine(x).twice(x),
    "unbound method": lambda x: Affine.finish(Affine(x), x) + list.__len__([x]),
    "__new__ and __init__": lambda x: Made(x, y=x).x * Made(2.0, y=x).y,
    "__new__ of something else": lambda x: Other(x) * x,
    "a metaclass": lambda x: WithMeta(x).x * WithMeta(x).extra,
    "a generic alias": lambda x: Box[float](x).x * x,
    "dataclass": lambda x: Point(x, x * x).r * Point(x).y * Point(1.0, y=x).x,
    "frozen dataclass": lambda x: Frozen(x).x * Frozen(1.0, x).y,
    "dataclasses.replace": lambda x: dataclasses.replace(Point(x, x), y=x * x).r,
    "named tuple": lambda x: Named(x, x * x).product() * Named(v=x, u=2.0).v + Named(x).product(),
    "named tuple's own methods": lambda x: (
        Named(x)._replace(v=x).product() + Named._make([x, x])[1]
    ),
    "collections.namedtuple": lambda x: sum(collections.namedtuple("P", "a b")(x, x * x)),
    "subclass of list": lambda x: Stack([x, x * x])[1] * x,
    "super in a subclass of list": lambda x: (lambda s: (s.push(x), s[-1] * s[0])[1])(Stack([x])),
    "subclass of dict": lambda x: Registered(x)["b"] * Registered(x)["a"],
    "subclass of float": lambda x: Celsius(x).fahrenheit() * x,
    "an exception's attributes": lambda x: Failure("m", x * x).value * Failure("m", x).args[1],
    "keywords, star arguments": lambda x: powers(x, *[x, 2.0, x], **{"scale": x, "shift": x * x}),
    "keywords out of order": lambda x: powers(b=x, a=x * x, shift=x),
    "default values": lambda x: (lambda y, z=x * x, *, k=x: y * z * k)(2.0),
    "defaults given": lambda x: (lambda y, z=x * x, *, k=x: y * z * k)(2.0, x, k=3.0),
    "partial": lambda x: functools.partial(powers, x)(x * x),
    "partial with keywords": lambda x: functools.partial(powers, b=x, scale=x)(x, scale=x * x),
    "partial of partial": lambda x: functools.partial(functools.partial(powers, x), x, scale=x)(x),
    "partial of a method": lambda x: functools.partial(Affine(x).finish, x)(),
    "partial's parts": lambda x: functools.partial(powers, x, b=x * x).args[0] * x,
    "itemgetter": lambda x: operator.itemgetter(0, 2)([x, 1.0, x * x])[1] * x,
    "itemgetter of keys that count": lambda x: operator.itemgetter(x, x * x)(Squares())[1],
    "itemgetter handed on": lambda x: (lambda get: get(Squares()) * x)(operator.itemgetter(x)),
    "itemgetter that misses": lambda x: missed(operator.itemgetter(x * x), {}),
    "attrgetter": lambda x: operator.attrgetter("w")(Affine(x)) * x,
    "attrgetter of a path": lambda x: operator.attrgetter("w.w")(Affine(Affine(x))) * x,
    "methodcaller": lambda x: operator.methodcaller("finish", x)(Affine(x)) * x,
    "methodcaller with keywords": lambda x: operator.methodcaller("__call__", x=x)(Affine(x)),
    "staticmethod object": lambda x: staticmethod(lambda y: y * y)(x),
    "method of a number": lambda x: x.__mul__(x).__add__(2.0) * (3.0).__rsub__(x),
    "__call__ through the class": lambda x: type(Affine(x)).__call__(Affine(x), x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_of_a_call_agrees_with_differences(name):
    check_gradient(PROGRAMS[name], 0.7)


@pytest.mark.parametrize(
    "name", [name for name in PROGRAMS if "itemgetter" in name or "methodcaller" in name]
)
def test_getters_and_callers_in_forward_mode_and_to_second_order(name):
    f, x, h = PROGRAMS[name], 0.7, 1e-4
    assert jvp(f, (x,), (1.0,))[1] == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-6)
    assert hvp(f, x, 1.0) == pytest.approx((f(x + h) - 2 * f(x) + f(x - h)) / h**2, rel=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(),
        lambda x: np.ndarray.sum(x),
        lambda x: np.sum(x),
        lambda x: np.add.reduce(x),
        lambda x: (x @ np.ones(3)) * x.mean(),
        lambda x: np.sin(x).dot(x),
    ],
)
def test_methods_and_functions_of_arrays(call):
    check_gradient(call, np.array([1.0, 2.0, 4.0]))


def test_single_dispatch_chooses_by_the_type():
    @functools.singledispatch
    def f(x):
        return 0.0

    @f.register
    def _(x: float):
        return x * x

    assert gradient(f, 3.0) == (6.0,)


def test_a_rule_of_an_unbound_method_serves_the_bound_one():
    class Own:
        def method(self, x):
            return x

    @rrule(Own.method)
    def _(self: Own, x: float):
        def pullback(ȳ):
            return Tangent[Own](), ȳ * 100.0

        return x, pullback

    assert gradient(lambda x: Own().method(x), 2.0) == (100.0,)


def test_a_rule_of_a_class_serves_its_construction():
    class Own:
        def __init__(self, x):
            self.x = x

    @rrule(Own)
    def _(x: float):
        def pullback(ȳ):
            return (ȳ.x * 100.0,)

        return object.__new__(Own), pullback

    _, back = pullback(lambda x: Own(x), 2.0)
    assert back(Tangent[Own](x=1.0)) == (100.0,)


def test_a_cached_function_has_the_same_gradient_the_second_time():
    calls = []

    @functools.lru_cache
    def square(x):
        calls.append(x)
        return x * x

    assert [gradient(square, 3.0), gradient(square, 3.0)] == [(6.0,), (6.0,)]
    assert gradient(lambda x: square(x) * x, 3.0) == (27.0,)
    assert square.cache_info().hits == 2


def test_a_mutable_result_of_an_earlier_call_is_refused():
    @functools.lru_cache
    def pair(x):
        return [x, x * x]

    assert gradient(lambda x: pair(x)[1], 3.0) == (6.0,)
    for _ in range(2):
        with pytest.raises(NoRuleError, match="mutable"):
            gradient(lambda x: pair(x)[1], 3.0)


def test_a_cached_function_of_nothing_is_a_constant():
    @functools.cache
    def model():
        return Affine(2.0, 0.0)

    assert gradient(lambda x: model().w * x, 3.0) == (2.0,)


def test_a_compiled_function_that_moves_the_items_of_a_list_is_followed():
    def f(x):
        h = [x, 2 * x, x * x]
        heapq.heapify(h)
        heapq.heappush(h, x / 10)
        bisect.insort(h, 3 * x)
        np.random.default_rng(0).shuffle(h)
        heapq.heapify(h)
        return heapq.heappop(h) * h[0] + heapq.heapreplace(h, x**3) * h[1] + h[-1]

    check_gradient(f, 0.5)


def test_a_compiled_function_that_changes_a_container_is_refused_only_if_it_matters():
    set_slice = ctypes.pythonapi.PyList_SetSlice
    set_slice.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.py_object]

    def harmless(x):
        items = [1, 2]
        set_slice(items, 0, 1, [3, 4])
        return x * len(items)

    def harmful(x):
        items = [x, 2.0]
        set_slice(items, 0, 1, [3.0, 4.0])
        return items[2] * x

    assert gradient(harmless, 0.5) == (3.0,)
    with pytest.raises(NoRuleError, match="which changes a list"):
        gradient(harmful, 0.5)


def test_an_unknown_function_is_called_and_refused_only_if_it_matters():
    def unused(x):
        values = array.array("d", [x])
        return x * x * len(values)

    assert gradient(unused, 2.0) == (4.0,)
    with pytest.raises(NoRuleError, match=r"getitem\(array\), which has lost"):
        gradient(lambda x: array.array("d", [x])[0], 2.0)


def test_effects_of_construction_happen_once_and_in_order():
    log = []

    class Noisy:
        def __new__(cls, x):
            log.append("new")
            return object.__new__(cls)

        def __init__(self, x):
            log.append("init")
            self.x = x

        def __call__(self):
            log.append("call")
            return self.x

    assert gradient(lambda x: Noisy(x)() * x, 2.0) == (4.0,)
    assert log == ["new", "init", "call"]


def test_wrong_calls_raise_what_python_raises():
    class NoInit:
        pass

    class BadInit:
        def __init__(self, x):
            return 1

    with pytest.raises(TypeError, match="takes no arguments"):
        gradient(lambda x: NoInit(x), 1.0)
    with pytest.raises(TypeError, match="should return None"):
        gradient(lambda x: BadInit(x), 1.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        gradient(lambda x: Affine(), 1.0)
    with pytest.raises(TypeError, match="not callable"):
        gradient(lambda x: x(1.0), 1.0)


def test_the_cotangent_of_a_callable_is_that_of_what_it_holds():
    layer = Affine(2.0, 0.0)
    _, back = J(layer.finish, 0.0)
    assert back(1.0) == (Tangent[Affine](w=0.0, b=0.0), 1.0)
    _, back = J(layer, 0.0)
    assert back(1.0) == (Tangent[Affine](w=0.0, b=1.0), 2.0)
    _, back = J(functools.partial(powers, 3.0, scale=2.0), 5.0)
    f̄, x̄ = back(1.0)
    assert (f̄.args, f̄.keywords["scale"], x̄) == ((50.0,), 75.0, 60.0)


def test_what_a_cached_function_changes():
    def f(x):
        seen = []

        @functools.cache
        def g(n):
            seen.append(n * x)
            return n * x

        return g(2) + g(2) + sum(seen)

    assert gradient(f, 3.0) == (6.0,)
    assert jvp(f, (3.0,), (1.0,)) == (18.0, 6.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * float.fromhex("0x1p1"),
        lambda x: x * "ab".maketrans("a", "b")[97],
        lambda x: x * b"".fromhex("03")[0],
        lambda x: x * np.ones(2).dtype.itemsize,
        lambda x: x * np.zeros(3, "f4").dtype.type(2.5),
        lambda x: x * {}.fromkeys("ab", 3.0)["a"],
    ],
)
def test_compiled_methods_of_classes_and_of_what_has_no_derivative_are_constants(f):
    assert gradient(f, 1.5) == (f(1.5) / 1.5,)
    assert jvp(f, (1.5,), (1.0,)) == (f(1.5), f(1.5) / 1.5)


class Factor:
    def __init__(self, k):
        self.k = k

    def times(self, x):
        return self.k * x


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        (Factor(2.0).times, "one Factor, which is a new object .* Register it for Factor.times"),
        (np.maximum.reduce, "one ufunc, which is a new object .* Register it for ufunc.reduce"),
        ((2.5).__add__, "one float, which is a new object .* Register it for float.__add__"),
    ],
)
@pytest.mark.parametrize("decorator", [rrule, frule, scalar_rule, non_differentiable])
def test_rules_of_methods_that_are_bound_anew_are_refused(decorator, method, advice):
    """They were never met again, silently: the rule did not apply."""
    with pytest.raises(RuleError, match=advice):
        decorator(method)


def test_rules_for_the_methods_of_all_objects_of_a_class_are_the_way_out():
    class Own(Factor):
        def times(self, x):
            return self.k * x

    @rrule(Own.times)
    def _(factor: Own, x: float):
        return factor.times(x), lambda ȳ: (NoTangent(), 99.0 * ȳ)

    own = Own(2.0)
    assert gradient(own.times, 1.0) == (99.0,)
    assert gradient(lambda x: own.times(x) * 2, 1.0) == (198.0,)


bound_once = Factor(2.0).times


def test_a_rule_of_a_method_that_a_module_has():
    @rrule(bound_once)
    def _(x: float):
        return bound_once(x), lambda ȳ: (99.0 * ȳ,)

    assert gradient(lambda x: bound_once(x) * 2, 1.0) == (198.0,)


def test_a_rule_of_a_class_method():
    class Base:
        @classmethod
        def scaled(cls, x, by=1.0, *, shift=0.0):
            return 3 * x * by + shift

        @classmethod
        def tripled(cls, x):
            return 3 * x

        @classmethod
        def index(cls, x):
            return 3 * x

    class Derived(Base):
        pass

    @rrule(Base.scaled)
    def _(x: float, by=1.0, *, shift=0.0):
        return 3 * x * by + shift, lambda ȳ: (30 * by * ȳ, 30 * x * ȳ, 5 * ȳ)

    @frule(Base.tripled)
    def _(x: float):
        return 3 * x, lambda ẋ: 30 * ẋ

    non_differentiable(Base.index)

    for f in (Base.scaled, Base().scaled, Derived.scaled, lambda x: Base.scaled(x)):
        assert gradient(f, 2.0) == (30.0,)
    f = lambda x, by, shift: Base.scaled(x, by=by, shift=shift)
    assert gradient(f, 2.0, 1.0, 0.0) == (30.0, 60.0, 5.0)
    assert jvp(f, (2.0, 1.0, 0.0), (1.0, 1.0, 1.0)) == (6.0, 95.0)
    assert jvp(lambda x: Base.tripled(x), (2.0,), (1.0,)) == (6.0, 30.0)
    assert gradient(lambda x: Base.index(x) * x, 2.0) == (6.0,)

    @rrule(Base.tripled)
    def _(x: float):
        return 3 * x, lambda ȳ: (ȳ, ȳ)

    with pytest.raises(RuleError, match=r"Base.tripled \(.*test_calls.py"):
        gradient(lambda x: Base.tripled(x), 2.0)


def test_methods_that_are_bound_by_hand(path):
    def f(x):
        layer = Affine(x, 0.0)
        finish = types.MethodType(Affine.finish, layer)
        product = types.MethodType(lambda a, b: a * b * x, x)
        return finish(3.0) * finish.__self__.w + product(x)

    check_gradient(f, 1.5)
    assert jvp(f, (1.5,), (1.0,)) == (f(1.5), pytest.approx(gradient(f, 1.5)[0]))
