"""Rules of the built-in functions of numbers, and of the methods that numbers have.

float, complex and pow pass ȳ on to the space of their arguments; divmod is (//, %); max and min of
several arguments give ȳ to the one that was chosen, the first among equals, and a structural zero
to the others. Whatever makes text, truth values, integers or places out of values is constant.
`x.__add__(y)` and the like have the rules of the operators; ATTRIBUTES are the rules of reading
`x.real` and the like, METHODS the methods that a built-in function calls on a user's object.
Tests: tests/rules/test_builtins.py
"""

import bisect
import builtins
import copy
import functools
import itertools
import math
import operator
import random
import time
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from morula.core.extend import (
    NoTangent,
    Tangent,
    ZeroTangent,
    attribute_rules,
    find_rrule,
    frule,
    is_compiled,
    non_differentiable,
    project_to,
    reads_at_once,
    registry,
    rrule,
    takes,
    type_stable,
    unthunk,
)
from morula.rules import operators
from morula.rules.mathematics import filled
from morula.rules.numbers import Anything, Numeric, Real, Scalar

Rule = Callable[..., tuple[Any, Callable[[Any], Any]]]

# The methods by which Python resolves a built-in function on an object of a class.
METHODS: dict[Any, tuple[str, ...]] = {
    abs: ("__abs__",),
    float: ("__float__", "__index__"),
    complex: ("__complex__", "__float__", "__index__"),
    divmod: ("__divmod__", "__rdivmod__"),
    pow: ("__pow__", "__rpow__"),
    round: ("__round__",),
}

# -- float and complex -----------------------------------------------------------------------------


@rrule(float)
def _(x: Real):
    def float_pullback(ȳ):
        return (ȳ,)

    return float(x), float_pullback


@rrule(float)
def _(x: Numeric):
    def float_pullback(ȳ):
        return (filled(x, ȳ),)

    return float(x), float_pullback


@frule(float)
def _(x: Real):
    def float_pushforward(ẋ):
        return ẋ

    return float(x), float_pushforward


@rrule(float)
def _(x: str | bytes | bytearray):
    def float_pullback(ȳ):
        return (NoTangent(),)

    return float(x), float_pullback


@rrule(float)
def _():
    def float_pullback(ȳ):
        return ()

    return 0.0, float_pullback


@rrule(complex)
def _(real: Real, *, imag=0):
    def complex_pullback(ȳ):
        return ȳ.real, filled(imag, ȳ * -1j)

    return complex(real, imag), complex_pullback


@rrule(complex)
def _(real: Numeric, *, imag=None):
    y = complex(real) if imag is None else complex(real, imag)

    def complex_pullback(ȳ):
        return filled(real, ȳ), filled(imag, ȳ * -1j)

    return y, complex_pullback


@rrule(complex)
def _(real: Real, imag: Real):
    def complex_pullback(ȳ):
        return ȳ.real, ȳ.imag

    return complex(real, imag), complex_pullback


@rrule(complex)
def _(real: Numeric, imag: Numeric):
    def complex_pullback(ȳ):
        return filled(real, ȳ), filled(imag, ȳ * -1j)

    return complex(real, imag), complex_pullback


@rrule(complex)
def _(*, real=0, imag=0):
    def complex_pullback(ȳ):
        return filled(real, ȳ), filled(imag, ȳ * -1j)

    return complex(real=real, imag=imag), complex_pullback


@rrule(complex)
def _(real: str):
    def complex_pullback(ȳ):
        return (NoTangent(),)

    return complex(real), complex_pullback


@frule(complex)
def _(real: Scalar):
    def complex_pushforward(ẋ):
        return project_to(0j)(ẋ)

    return complex(real), complex_pushforward


@frule(complex)
def _(real: Scalar, imag: Scalar):
    def complex_pushforward(ẋ, ẏ):
        return project_to(0j)(ẋ + ẏ * 1j)

    return complex(real, imag), complex_pushforward


# -- the larger and the smaller one ----------------------------------------------------------------


@rrule(max)
def _(a: Real, b: Real):
    def max_pullback(ȳ):
        return ZeroTangent() if b > a else ȳ, ȳ if b > a else ZeroTangent()

    return max(a, b), max_pullback


@rrule(min)
def _(a: Real, b: Real):
    def min_pullback(ȳ):
        return ZeroTangent() if b < a else ȳ, ȳ if b < a else ZeroTangent()

    return min(a, b), min_pullback


@rrule(max)
def _(a: Real, b: Real, c: Real):
    place = (2 if c > b else 1) if b > a else 2 if c > a else 0

    def max_pullback(ȳ):
        return (
            ȳ if place == 0 else ZeroTangent(),
            ȳ if place == 1 else ZeroTangent(),
            ȳ if place == 2 else ZeroTangent(),
        )

    return max(a, b, c), max_pullback


@rrule(min)
def _(a: Real, b: Real, c: Real):
    place = (2 if c < b else 1) if b < a else 2 if c < a else 0

    def min_pullback(ȳ):
        return (
            ȳ if place == 0 else ZeroTangent(),
            ȳ if place == 1 else ZeroTangent(),
            ȳ if place == 2 else ZeroTangent(),
        )

    return min(a, b, c), min_pullback


def chosen_forward(choose: Any) -> Rule:
    """The forward rule of max or min."""

    def rule(a: Anything, b: Anything, *others: Anything):
        args = (a, b, *others)
        y = choose(args)
        place = next(i for i, x in enumerate(args) if x is y)

        def chosen_pushforward(*tangents):
            return tangents[place]

        return y, chosen_pushforward

    return rule


frule(max)(chosen_forward(max))
frule(min)(chosen_forward(min))

# -- quotient and remainder, powers with keywords --------------------------------------------------


@rrule(divmod)
def _(a: Real, b: Real):
    q, r = divmod(a, b)

    def divmod_pullback(ȳ):
        r̄ = unthunk(ȳ[1])
        return r̄, -r̄ * q

    return (q, r), divmod_pullback


@rrule(divmod)
def _(a: Numeric, b: Numeric):
    q, r = divmod(a, b)

    def divmod_pullback(ȳ):
        r̄ = unthunk(ȳ[1])
        return project_to(a)(r̄), project_to(b)(-r̄ * operators.unwrapped(q))

    return (q, r), divmod_pullback


def power(base: Any, exp: Any, mod: Any) -> Any:
    """The rule of pow for these arguments; with a modulus all of them are whole."""
    if mod is None:
        rule = find_rrule(operator.pow, (base, exp))
        if rule is not None:
            y, back = rule.function(base, exp)
            return y, lambda ȳ: (*back(ȳ), NoTangent())
    return pow(base, exp, mod), lambda ȳ: (ZeroTangent(), ZeroTangent(), ZeroTangent())


@rrule(pow)
def _(base: Numeric, exp: Numeric, mod: object):
    return power(base, exp, mod)


@rrule(pow)
def _(base: int, exp: int, *, mod=None):
    return power(base, exp, mod)


@rrule(pow)
def _(base: Numeric, *, exp, mod=None):
    return power(base, exp, mod)


@rrule(pow)
def _(*, base, exp, mod=None):
    return power(base, exp, mod)


# -- attributes and methods of numbers -------------------------------------------------------------


def _itself(x: Any):
    return x, lambda ȳ: (ȳ,)


def _real(x: Any):
    return x.real, lambda ȳ: (ȳ.real + 0j,)


def _imag(x: Any):
    return x.imag, lambda ȳ: (ȳ * 1j,)


def _constant(name: str) -> Rule:
    return lambda x: (getattr(x, name), lambda ȳ: (ZeroTangent(),))


# The rule of reading an attribute: (type, name) -> rule(x); found along the type's __mro__.
ATTRIBUTES: dict[tuple[type, str], Rule] = {(complex, "real"): _real, (complex, "imag"): _imag}
_type: Any
for _type in (int, float, Fraction, Decimal):
    ATTRIBUTES[_type, "real"] = _itself
    ATTRIBUTES[_type, "imag"] = _constant("imag")
attribute_rules.update(ATTRIBUTES)
attribute_rules.update({(_type, "imag"): None for _type in (int, float)})
for _type in (int, Fraction):
    ATTRIBUTES[_type, "numerator"] = _constant("numerator")
    ATTRIBUTES[_type, "denominator"] = _constant("denominator")


# -- slices ----------------------------------------------------------------------------------------


@rrule(slice)
def _(*args: Anything):
    names = ("stop",) if len(args) == 1 else ("start", "stop", "step")[: len(args)]

    def slice_pullback(ȳ):
        ȳ = unthunk(ȳ)
        return tuple([unthunk(ȳ[name]) for name in names])

    return slice(*args), slice_pullback


# The attributes of values whose cotangents and tangents are a `Tangent` of these parts.
PARTS: dict[type, tuple[str, ...]] = {}


def is_part(cls: type, name: str) -> None:
    """Declare that an attribute is a part of the values of a class, which go by value."""
    PARTS[cls] = (*PARTS.get(cls, ()), name)
    ATTRIBUTES[cls, name] = lambda x: (getattr(x, name), lambda ȳ: (Tangent[cls]({name: ȳ}),))


for _name in ("start", "stop", "step"):
    is_part(slice, _name)


def own_kind(t: type) -> type:
    """The compiled type of numbers that a class derives from, whose method it is that was named."""
    kind = next(filter(is_compiled, t.__mro__))
    return t if kind is object else kind


def rule_of_kind(op: Any, args: tuple[Any, ...]) -> Any:
    """The rule of an operator for what is compiled of these numbers, if there is one."""
    entry = registry.registry.get(op)
    types = tuple([own_kind(type(a)) for a in args])
    return None if entry is None else entry.find_by_types("reverse", types)


non_differentiable(own_kind, rule_of_kind)


def method_rule(method: Any, op: Any, cls: type, arity: int, reflected: bool) -> Rule:
    """The rule of `float.__radd__` and the like, from that of the operator."""

    def run(*args: Any) -> Any:
        y = method(*args)
        rule = None if y is NotImplemented else rule_of_kind(op, args[::-1] if reflected else args)
        if rule is None:
            return y, lambda ȳ: (NoTangent(),) * arity
        _, back = rule.function(*(args[::-1] if reflected else args))
        return y, lambda ȳ: back(ȳ)[::-1] if reflected else back(ȳ)[:arity]

    def unary(x: cls):  # type: ignore[valid-type]
        return run(x)

    def binary(x: cls, other: object):  # type: ignore[valid-type]
        return run(x, other)

    return unary if arity == 1 else binary


CONSTANT_METHODS = """
    __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rlshift__ __rshift__
    __rrshift__ __invert__ __lt__ __le__ __eq__ __ne__ __gt__ __ge__ __bool__ __int__ __index__
    __trunc__ __floor__ __ceil__ __round__ __hash__ __repr__ __str__ __format__ __getnewargs__
    __sizeof__ __reduce__ is_integer hex bit_length bit_count to_bytes
    limit_denominator is_finite is_infinite is_nan is_normal is_qnan is_signed is_snan
    is_subnormal is_zero is_canonical adjusted as_tuple compare compare_signal compare_total
    compare_total_mag logb logical_and logical_invert logical_or logical_xor number_class
    quantize rotate same_quantum shift to_eng_string to_integral to_integral_exact
    to_integral_value radix
"""


def _register_methods(cls: type) -> None:
    """The rules of the methods of a class of numbers that Python's operators call."""
    methods = vars(cls)
    non_differentiable(
        *[methods[name] for name in CONSTANT_METHODS.split() if callable(methods.get(name))]
    )
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        for method, reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
            if method in methods:
                op = getattr(operator, name)
                rrule(methods[method])(method_rule(methods[method], op, cls, 2, reflected))
    for method, op in {
        "__neg__": operator.neg,
        "__pos__": operator.pos,
        "__abs__": abs,
        "__float__": float,
        "__complex__": complex,
    }.items():
        if method in methods:
            rrule(methods[method])(method_rule(methods[method], op, cls, 1, False))
    for method, reflected in (("__divmod__", False), ("__rdivmod__", True)):
        if method in methods:
            rrule(methods[method])(method_rule(methods[method], divmod, cls, 2, reflected))


for _type in (bool, int, float, complex, Fraction, Decimal):
    _register_methods(_type)


def conjugate_rule(cls: type) -> Rule:
    """The rule of `x.conjugate()`."""

    def rule(x: cls):  # type: ignore[valid-type]
        def conjugate_pullback(ȳ):
            return (ȳ.conjugate(),)

        return x.conjugate(), conjugate_pullback  # type: ignore[attr-defined]

    return rule


for _type in (int, float, complex, Decimal):
    rrule(vars(_type)["conjugate"])(conjugate_rule(_type))
del _type

reads_at_once(sum, list, tuple, sorted, set, frozenset, math.fsum, math.prod)
reads_at_once(min, max, calls="key")

takes(0, 1, list, tuple, set, frozenset)
takes(1, 1, reversed, copy.copy)
takes(1, 2, enumerate, iter, next, math.log, dict.update)
takes(1, 3, copy.deepcopy)
takes(2, 2, filter)
takes(2, 3, getattr, functools.reduce, dict.pop)
takes(2, 4, itertools.islice)
takes(1, 1, dict.copy, dict.popitem, dict.keys, dict.values, dict.items, dict.clear)
takes(2, 2, set.add, set.discard, set.remove, deque.append, deque.appendleft, deque.extend)
takes(2, 2, deque.extendleft, deque.remove, deque.count)
takes(1, 1, set.pop, set.copy, set.clear, deque.popleft, deque.pop, deque.copy, deque.clear)

# -- constants -------------------------------------------------------------------------------------

CONSTANT = """
    all any ascii bin bool bytearray bytes callable chr dir format hasattr hash hex id input int
    isinstance issubclass len oct open ord print range repr round str type
"""
non_differentiable(*[getattr(builtins, name) for name in CONSTANT.split()])
non_differentiable(random.Random.random, random.Random.getrandbits)
non_differentiable(bisect.bisect_left, bisect.bisect_right)
non_differentiable(
    time.time, time.perf_counter, time.monotonic, time.process_time, time.sleep, time.time_ns,
    time.perf_counter_ns,
)  # fmt: skip
STABLE = """
    all any ascii bin bool callable chr complex divmod float format hasattr hash hex id int
    isinstance issubclass len oct ord range repr str
"""
type_stable(*[getattr(builtins, name) for name in STABLE.split()])
type_stable(int.conjugate, float.conjugate, complex.conjugate)
