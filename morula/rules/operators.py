"""Rules of the operators on numbers: + - * / // % **, unary - + abs, in place or not.

For y = f(a, b): ā = ȳ ∂f/∂a, b̄ = ȳ ∂f/∂b; for complex numbers conj(∂f/∂a), and the real part
where the argument is real. // has derivative zero, and a % b = a - b * (a // b). Comparisons and
operators on bits are constant. In a ** b: an integer exponent has no logarithm unless its own
cotangent is asked for; where a = 0 the derivative by b counts as 0, and that by a is that of the
power, infinite if it must be; where a < 0 only the derivative by b is NaN.

Floats, ints (points of the real line) and complex numbers have rules of their own, that inline to
what one writes by hand. One more rule serves all other numbers: NumPy's scalars, Fraction,
Decimal, mpmath's. METHODS says by which methods Python itself resolves an operator.
Tests: tests/rules/test_operators.py
"""

import cmath
import math
import numbers
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    AbstractZero,
    NoTangent,
    Thunk,
    ZeroTangent,
    accumulate,
    exactly,
    find_rrule,
    frule,
    non_differentiable,
    project_to,
    resolved_by,
    rrule,
    to_space,
    type_stable,
)
from morula.rules.numbers import Native, Numeric, Real, Scalar, Text

# What Python does for an operator, by the methods of its operands' types:
#   unary     (method, None, None)
#   binary    (method of the left one, reflected method of the right one, None)
#   in place  (method in place, then as for the binary operator)
METHODS: dict[Any, tuple[str, str | None, str | None]] = {
    operator.lt: ("__lt__", "__gt__", None),
    operator.le: ("__le__", "__ge__", None),
    operator.eq: ("__eq__", "__eq__", None),
    operator.ne: ("__ne__", "__ne__", None),
    operator.ge: ("__ge__", "__le__", None),
    operator.gt: ("__gt__", "__lt__", None),
    operator.neg: ("__neg__", None, None),
    operator.pos: ("__pos__", None, None),
    operator.abs: ("__abs__", None, None),
    operator.invert: ("__invert__", None, None),
    operator.index: ("__index__", None, None),
    operator.truth: ("__bool__", None, None),
}
_BINARY = "add sub mul matmul truediv floordiv mod pow lshift rshift and_ or_ xor"
for _name in _BINARY.split():
    _plain = _name.rstrip("_")
    _pair = f"__{_plain}__", f"__r{_plain}__"
    METHODS[getattr(operator, _name)] = (*_pair, None)
    METHODS[getattr(operator, f"i{_plain}")] = (f"__i{_plain}__", *_pair)
for _op, (_first, _second, _third) in METHODS.items():
    _of_left = (_first, *((_second,) if _third else ()))
    resolved_by[id(_op)] = (_of_left, () if _second is None else (_third or _second,))
resolved_by[id(abs)] = (("__abs__",),)
resolved_by[id(float)] = (("__float__",),)
resolved_by[id(complex)] = (("__complex__", "__float__"),)
resolved_by[id(pow)] = (("__pow__",), ("__rpow__",))
resolved_by[id(divmod)] = (("__divmod__",), ("__rdivmod__",))
del _name, _plain, _pair, _op, _first, _second, _third, _of_left

Function = Callable[..., Any]


def rules_of(*primals: Any) -> Callable[[Function], Function]:
    """`@rrule` for several primals that one rule serves."""

    def register(rule: Function) -> Function:
        for primal in primals:
            rrule(primal)(rule)
        return rule

    return register


def rule_for(primal: Any, *args: Any) -> Function:
    """The function of the rule that serves a call; rules that rest on others use it."""
    rule = find_rrule(primal, args)
    if rule is None:
        raise TypeError(f"no rule of {primal!r} for {', '.join(type(a).__name__ for a in args)}")
    return rule.function


def forward(*primals: Any) -> Callable[[Function], Function]:
    """`@frule` for several primals, of a rule that holds for every number.

    For those of Python's own types it stands as it is; for the others tangents are projected.
    """

    def register(rule: Function) -> Function:
        def binary(a: Scalar, b: Scalar):
            return projected(*rule(a, b))

        def unary(a: Scalar):
            return projected(*rule(a))

        for primal in primals:
            frule(primal)(rule)
            frule(primal)(binary if rule.__code__.co_argcount == 2 else unary)
        return rule

    return register


def projected(y: Any, pushforward: Function) -> tuple[Any, Function]:
    """The pushforward with tangents in the space of `y`."""
    return y, lambda *tangents: to_space(y, pushforward(*tangents))


# -- helpers of the other numbers ------------------------------------------------------------------


def conjugate(x: Any) -> Any:
    """The conjugate of any number."""
    return x if isinstance(x, (float, int, np.bool_)) else x.conjugate()


def unwrapped(x: Any) -> Any:
    """A number to calculate with: NumPy's integers wrap around, Python's do not."""
    return int(x) if isinstance(x, (np.integer, np.bool_)) else x


# -- sums, differences -----------------------------------------------------------------------------


@rules_of(operator.add, operator.iadd)
def _(a: Real, b: Real):
    def add_pullback(ȳ):
        return ȳ, ȳ

    return a + b, add_pullback


@rules_of(operator.add, operator.iadd)
def _(a: complex, b: complex):
    def add_pullback(ȳ):
        return ȳ, ȳ

    return a + b, add_pullback


@rules_of(operator.add, operator.iadd)
def _(a: complex, b: Real):
    def add_pullback(ȳ):
        return ȳ, ȳ.real

    return a + b, add_pullback


@rules_of(operator.add, operator.iadd)
def _(a: Real, b: complex):
    def add_pullback(ȳ):
        return ȳ.real, ȳ

    return a + b, add_pullback


@rules_of(operator.add, operator.iadd)
def _(a: Scalar, b: Scalar):
    def add_pullback(ȳ):
        return project_to(a)(ȳ), project_to(b)(ȳ)

    return a + b, add_pullback


@forward(operator.add)
def _(a: Native, b: Native):
    def add_pushforward(ȧ, ḃ):
        return ȧ + ḃ

    return a + b, add_pushforward


@rules_of(operator.sub, operator.isub)
def _(a: Real, b: Real):
    def sub_pullback(ȳ):
        return ȳ, -ȳ

    return a - b, sub_pullback


@rules_of(operator.sub, operator.isub)
def _(a: complex, b: complex):
    def sub_pullback(ȳ):
        return ȳ, -ȳ

    return a - b, sub_pullback


@rules_of(operator.sub, operator.isub)
def _(a: complex, b: Real):
    def sub_pullback(ȳ):
        return ȳ, -ȳ.real

    return a - b, sub_pullback


@rules_of(operator.sub, operator.isub)
def _(a: Real, b: complex):
    def sub_pullback(ȳ):
        return ȳ.real, -ȳ

    return a - b, sub_pullback


@rules_of(operator.sub, operator.isub)
def _(a: Scalar, b: Scalar):
    def sub_pullback(ȳ):
        return project_to(a)(ȳ), project_to(b)(-ȳ)

    return a - b, sub_pullback


@forward(operator.sub)
def _(a: Native, b: Native):
    def sub_pushforward(ȧ, ḃ):
        return ȧ - ḃ

    return a - b, sub_pushforward


# -- products --------------------------------------------------------------------------------------


@rules_of(operator.mul, operator.imul)
def _(a: Real, b: Real):
    def mul_pullback(ȳ):
        return ȳ * b, ȳ * a

    return a * b, mul_pullback


@rules_of(operator.mul, operator.imul)
def _(a: complex, b: complex):
    def mul_pullback(ȳ):
        return ȳ * b.conjugate(), ȳ * a.conjugate()

    return a * b, mul_pullback


@rules_of(operator.mul, operator.imul)
def _(a: complex, b: Real):
    def mul_pullback(ȳ):
        return ȳ * b, (ȳ * a.conjugate()).real

    return a * b, mul_pullback


@rules_of(operator.mul, operator.imul)
def _(a: Real, b: complex):
    def mul_pullback(ȳ):
        return (ȳ * b.conjugate()).real, ȳ * a

    return a * b, mul_pullback


@rules_of(operator.mul, operator.imul)
def _(a: Scalar, b: Scalar):
    def mul_pullback(ȳ):
        return (
            project_to(a)(ȳ * unwrapped(conjugate(b))),
            project_to(b)(ȳ * unwrapped(conjugate(a))),
        )

    return a * b, mul_pullback


@forward(operator.mul)
def _(a: Native, b: Native):
    def mul_pushforward(ȧ, ḃ):
        return ȧ * b + a * ḃ

    return a * b, mul_pushforward


# -- quotients and remainders ----------------------------------------------------------------------


@rules_of(operator.truediv, operator.itruediv)
def _(a: Real, b: Real):
    y = a / b

    def truediv_pullback(ȳ):
        ā = ȳ / b
        return ā, -ā * y

    return y, truediv_pullback


@rules_of(operator.truediv, operator.itruediv)
def _(a: complex, b: complex):
    y = a / b

    def truediv_pullback(ȳ):
        ā = ȳ / b.conjugate()
        return ā, -ā * y.conjugate()

    return y, truediv_pullback


@rules_of(operator.truediv, operator.itruediv)
def _(a: complex, b: Real):
    y = a / b

    def truediv_pullback(ȳ):
        ā = ȳ / b
        return ā, -(ā * y.conjugate()).real

    return y, truediv_pullback


@rules_of(operator.truediv, operator.itruediv)
def _(a: Real, b: complex):
    y = a / b

    def truediv_pullback(ȳ):
        ā = ȳ / b.conjugate()
        return ā.real, -ā * y.conjugate()

    return y, truediv_pullback


@rules_of(operator.truediv, operator.itruediv)
def _(a: Scalar, b: Scalar):
    y = a / b

    def truediv_pullback(ȳ):
        ā = ȳ / unwrapped(conjugate(b))
        return project_to(a)(ā), project_to(b)(-ā * conjugate(y))

    return y, truediv_pullback


@forward(operator.truediv)
def _(a: Native, b: Native):
    y = a / b

    def truediv_pushforward(ȧ, ḃ):
        return (ȧ - y * ḃ) / b

    return y, truediv_pushforward


@rrule(operator.floordiv)
def _(a: Numeric, b: Numeric):
    def floordiv_pullback(ȳ):
        return ZeroTangent(), ZeroTangent()

    return a // b, floordiv_pullback


@rrule(operator.ifloordiv)
def _(a: Scalar, b: Numeric):
    def floordiv_pullback(ȳ):
        return ZeroTangent(), ZeroTangent()

    return a // b, floordiv_pullback


@forward(operator.floordiv)
def _(a: Native, b: Native):
    def floordiv_pushforward(ȧ, ḃ):
        return ZeroTangent()

    return a // b, floordiv_pushforward


@rules_of(operator.mod, operator.imod)
def _(a: Real, b: Real):
    def mod_pullback(ȳ):
        return ȳ, -ȳ * (a // b)

    return a % b, mod_pullback


def quotient(a: Any, b: Any, y: Any) -> Any:
    """`a // b` from y = a % b, also of numbers that have no `//`."""
    try:
        return unwrapped(a // b)
    except TypeError:
        return (a - y) / b


@rules_of(operator.mod, operator.imod)
def _(a: Scalar, b: Scalar):
    y = a % b

    def mod_pullback(ȳ):
        return project_to(a)(ȳ), project_to(b)(-ȳ * quotient(a, b, y))

    return y, mod_pullback


@forward(operator.mod)
def _(a: Native, b: Native):
    y = a % b

    def mod_pushforward(ȧ, ḃ):
        return ȧ - quotient(a, b, y) * ḃ

    return y, mod_pushforward


# -- powers ----------------------------------------------------------------------------------------


def infinite(x: Any) -> Any:
    """A slope that falls from infinity at 0, where x is; so its own slope there is -inf."""
    return math.inf / (1 + x.real)


def base_slope(a: Any, b: Any) -> Any:
    """∂(a ** b)/∂a = b a ** (b - 1) for any numbers, also where a ** (b - 1) is none."""
    a, b = unwrapped(a), unwrapped(b)
    if b == 0:
        return 0
    n = b - 1
    if a == 0 and (n.real < 0 or n.imag != 0):  # Python has no 0 ** n
        return infinite(a)
    return a**n * b


def exponent_slope(a: Any, y: Any) -> Any:
    """∂y/∂b = y log(a) for y = a ** b of any numbers; 0 where a = 0, NaN where a < 0 and y real."""
    a, y = unwrapped(a), unwrapped(y)
    if a == 0:
        return 0
    if isinstance(a, (complex, np.complexfloating)) or isinstance(y, (complex, np.complexfloating)):
        return y * cmath.log(a)
    if isinstance(y, Decimal):
        return y * Decimal(a).ln() if a > 0 else y * Decimal("nan")
    context = getattr(y, "context", None)  # mpmath's numbers
    if context is not None:
        return context.nan if isinstance(y, numbers.Real) and a < 0 else y * context.log(a)
    return y * math.log(a) if a > 0 else math.nan


def pulled_back(ȳ: Any, slope: Any) -> Any:
    """`ȳ * conj(slope)`, real if a real argument asks for it."""
    if isinstance(slope, complex):
        return (ȳ * slope.conjugate()).real
    return ȳ * slope


# The edges of the real power: a <= 0, where the power may be complex, or a slope be infinite.


def base_edge(ȳ: Any, a: Any, b: Any) -> Any:
    """The cotangent of a real `a` in `a ** b`, wherever it lies."""
    return pulled_back(ȳ, base_slope(a, b))


def exponent_edge(ȳ: Any, a: Any, y: Any) -> Any:
    """The cotangent of a real `b` in `y = a ** b`, wherever `a` lies."""
    return pulled_back(ȳ, exponent_slope(a, y))


# Their own slopes, where they are real.


@rrule(base_edge)
def _(ȳ: float, a: float, b: float):
    def base_edge_pullback(z̄):
        c = z̄ * ȳ
        return base_edge(z̄, a, b), curvature_at_edge(c, a, b), twist_at_edge(c, a, b)

    return base_edge(ȳ, a, b), base_edge_pullback


def curvature_at_edge(c: float, a: float, b: float) -> Any:
    """c ∂²(a ** b)/∂a², where a <= 0."""
    if b == 0:
        return c * 0.0
    return c * -math.inf if a == 0 and b < 1 else c * b * base_slope(a, b - 1)


def twist_at_edge(c: float, a: float, b: float) -> Any:
    """c ∂²(a ** b)/∂a∂b, where a <= 0."""
    if b == 0 or (a == 0 and b < 1):
        return c * 0.0
    y = a ** (b - 1)
    return c * (y + b * exponent_slope(a, y))


@rrule(exponent_edge)
def _(ȳ: float, a: float, y: float):
    def exponent_edge_pullback(z̄):
        return exponent_edge(z̄, a, y), ZERO, ZERO

    return exponent_edge(ȳ, a, y), exponent_edge_pullback


type_stable(base_edge, exponent_edge, curvature_at_edge, twist_at_edge)


@rules_of(operator.pow, operator.ipow, pow)
def _(a: Real, b: int):
    y = a**b

    def pow_pullback(ȳ):
        return (
            ȳ * (b * a ** (b - 1)) if b != 0 else ȳ * 0.0,
            ȳ * (y * math.log(a)) if a > 0 else exponent_edge(ȳ, a, y),
        )

    return y, pow_pullback


@rules_of(operator.pow, operator.ipow, pow)
def _(a: Real, b: float):
    y = a**b

    def pow_pullback(ȳ):
        return (
            ȳ * (b * a ** (b - 1.0)) if a > 0 else base_edge(ȳ, a, b),
            ȳ * (y * math.log(a)) if a > 0 else exponent_edge(ȳ, a, y),
        )

    return y, pow_pullback


@exactly(operator.pow, float, float)
def _(a, b):
    y = a**b

    def pow_pullback(ȳ):
        return (
            ȳ * (b * math.pow(a, b - 1.0)) if a > 0.0 else base_edge(ȳ, a, b),
            ȳ * (y * math.log(a)) if a > 0.0 else exponent_edge(ȳ, a, y),
        )

    return y, pow_pullback


@rules_of(operator.pow, operator.ipow, pow)
def _(a: complex, b: int):
    y = a**b

    def pow_pullback(ȳ):
        return (
            ȳ * (b * a ** (b - 1)).conjugate() if b != 0 else ȳ * 0.0,
            (ȳ * exponent_slope(a, y).conjugate()).real,
        )

    return y, pow_pullback


@rules_of(operator.pow, operator.ipow, pow)
def _(a: complex, b: float):
    y = a**b

    def pow_pullback(ȳ):
        return (
            ȳ * base_slope(a, b).conjugate(),
            (ȳ * exponent_slope(a, y).conjugate()).real,
        )

    return y, pow_pullback


@rules_of(operator.pow, operator.ipow, pow)
def _(a: complex, b: complex):
    y = a**b

    def pow_pullback(ȳ):
        return (
            ȳ * base_slope(a, b).conjugate(),
            ȳ * exponent_slope(a, y).conjugate(),
        )

    return y, pow_pullback


@rules_of(operator.pow, operator.ipow, pow)
def _(a: Real, b: complex):
    y = a**b

    def pow_pullback(ȳ):
        return (
            (ȳ * base_slope(a, b).conjugate()).real,
            ȳ * exponent_slope(a, y).conjugate(),
        )

    return y, pow_pullback


@rules_of(operator.pow, operator.ipow, pow)
def _(a: Scalar, b: Scalar):
    y = a**b

    def pow_pullback(ȳ):
        return (
            project_to(a)(ȳ * conjugate(base_slope(a, b))),
            Thunk(lambda: project_to(b)(ȳ * conjugate(exponent_slope(a, y)))),
        )

    return y, pow_pullback


@forward(operator.pow, pow)
def _(a: Native, b: Native):
    y = a**b

    def pow_pushforward(ȧ, ḃ):
        by_base = ȧ if isinstance(ȧ, AbstractZero) else base_slope(a, b) * ȧ
        by_exponent = ḃ if isinstance(ḃ, AbstractZero) else exponent_slope(a, y) * ḃ
        return accumulate(by_base, by_exponent)

    return y, pow_pushforward


# -- one argument ----------------------------------------------------------------------------------


@rrule(operator.neg)
def _(a: Numeric):
    def neg_pullback(ȳ):
        return (-ȳ,)

    return -a, neg_pullback


@rrule(operator.pos)
def _(a: Numeric):
    def pos_pullback(ȳ):
        return (ȳ,)

    return +a, pos_pullback


@forward(operator.neg)
def _(a: Native):
    def neg_pushforward(ȧ):
        return -ȧ

    return -a, neg_pushforward


@forward(operator.pos)
def _(a: Native):
    def pos_pushforward(ȧ):
        return ȧ

    return +a, pos_pushforward


@rules_of(operator.abs, abs)
def _(a: Real):
    y = abs(a)

    def abs_pullback(ȳ):
        return (ȳ if a > 0 else -ȳ if a < 0 else a * 0.0,)  # at NaN: NaN

    return y, abs_pullback


def outwards(ȳ: Any, a: Any, y: Any) -> Any:
    """ȳ a / |a|, or zero; apart from the pullback, so that no tuple depends on the way."""
    return ȳ * (a / y) if y != 0 else 0j


@rules_of(operator.abs, abs)
def _(a: complex):
    y = abs(a)

    def abs_pullback(ȳ):
        return (outwards(ȳ, a, y),)

    return y, abs_pullback


@rules_of(operator.abs, abs)
def _(a: Numeric):
    y = abs(a)

    def abs_pullback(ȳ):
        return (project_to(a)(ȳ * (unwrapped(a) / y) if y != 0 else ȳ * 0),)

    return y, abs_pullback


@forward(operator.abs, abs)
def _(a: Native):
    y = abs(a)

    def abs_pushforward(ȧ):
        if isinstance(ȧ, AbstractZero) or y == 0:
            return ZeroTangent()
        return (conjugate(a) * ȧ).real / y

    return y, abs_pushforward


# -- strings under + * % ---------------------------------------------------------------------------


@rules_of(operator.add, operator.iadd)
def _(a: Text, b: Text):
    def add_pullback(ȳ):
        return NoTangent(), NoTangent()

    return a + b, add_pullback


@rules_of(operator.mul, operator.imul)
def _(a: Text, b: int):
    def mul_pullback(ȳ):
        return NoTangent(), NoTangent()

    return a * b, mul_pullback


@rules_of(operator.mul, operator.imul)
def _(a: int, b: Text):
    def mul_pullback(ȳ):
        return NoTangent(), NoTangent()

    return a * b, mul_pullback


# -- constants -------------------------------------------------------------------------------------

COMPARISONS = (
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.ge,
    operator.gt,
    operator.is_,
    operator.is_not,
    operator.not_,
    operator.truth,
    operator.contains,
    operator.countOf,
    operator.indexOf,
    operator.index,
    operator.length_hint,
)
non_differentiable(*COMPARISONS)
for _new in ("is_none", "is_not_none"):  # CPython 3.14
    if hasattr(operator, _new):
        non_differentiable(getattr(operator, _new))
del _new


# Of numbers only: `|` merges dicts, and classes give these signs any meaning.
@rules_of(operator.invert)
def _(a: Numeric):
    def invert_pullback(ȳ):
        return (NoTangent(),)

    return ~a, invert_pullback


def bits_rule(op: Any) -> Function:
    """The rule of an operator on bits; in place for what cannot be changed in place."""

    def rule(a: Numeric, b: Numeric):
        def bits_pullback(ȳ):
            return NoTangent(), NoTangent()

        return op(a, b), bits_pullback

    def rule_in_place(a: Scalar, b: Numeric):
        return rule(a, b)

    return rule_in_place if METHODS[op][2] else rule


BITS = (
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.iand,
    operator.ior,
    operator.ixor,
    operator.ilshift,
    operator.irshift,
)
for _op in BITS:
    rrule(_op)(bits_rule(_op))
del _op

type_stable(
    operator.add,
    operator.iadd,
    operator.sub,
    operator.isub,
    operator.mul,
    operator.imul,
    operator.truediv,
    operator.itruediv,
    operator.floordiv,
    operator.ifloordiv,
    operator.mod,
    operator.imod,
    operator.neg,
    operator.pos,
    operator.abs,
    abs,
    *COMPARISONS,
    operator.invert,
    *BITS,
)


# -- for the fallback of the core ------------------------------------------------------------------


def generic_arithmetic_rule(op: Any) -> Function | None:
    """The rule of an operator that serves any numbers, of whichever type, or None."""
    args = (np.float32(1),) * (1 if METHODS[op][1] is None else 2)  # a type with no rule of its own
    rule = find_rrule(op, args)
    return None if rule is None else rule.function
