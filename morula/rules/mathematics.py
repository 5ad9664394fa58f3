"""Rules of the modules math and cmath.

Real functions are declared by their derivatives, from the result where that is cheaper, for floats
and ints; other numbers (Fraction, Decimal, NumPy's, arrays of one entry) are taken as the float
that `math` makes of them. Holomorphic functions: z̄ = ȳ conj(f'(z)), real for a real argument.
Where a slope is infinite (sqrt at 0, asin at 1) it is inf; hypot, dist and atan2 have slope 0 where
all is 0. fsum, prod, dist and sumprod have rules for tuples and arrays; IN_PYTHON says what they
do with other iterables.
Tests: tests/rules/test_mathematics.py
"""

import cmath
import math
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from morula.core.extend import (
    AbstractZero,
    NoTangent,
    frule,
    have_constants,
    non_differentiable,
    project_to,
    rrule,
    scalar_rule,
    type_stable,
    unthunk,
)
from morula.rules.arrays.broadcasting import unbroadcast
from morula.rules.numbers import Items, Numeric, Real
from morula.rules.operators import conjugate, infinite, rule_for


def real_function(primal: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`@scalar_rule` for floats and ints, and a rule for all else that `math` makes floats of."""

    def register(partials: Callable[..., Any]) -> Callable[..., Any]:
        scalar_rule(primal)(partials)
        if partials.__code__.co_argcount == 2:
            rrule(primal)(lambda x: converted(primal, x))
            return partials
        rrule(primal)(lambda *xs: converted(primal, *xs))
        return partials

    return register


def converted(primal: Any, *args: Any) -> Any:
    """The rule of a real function for arguments that it converts to float."""
    if any([isinstance(a, (str, bytes, bytearray)) for a in args]):
        primal(*args)  # raises: `float` would read them
    numbers = [a if isinstance(a, (int, float)) else float(a) for a in args]
    y, pullback = rule_for(primal, *numbers)(*numbers)

    def conversion_pullback(ȳ):
        return tuple([filled(a, x̄) for a, x̄ in zip(args, pullback(ȳ), strict=True)])

    return y, conversion_pullback


def filled(x: Any, x̄: Any) -> Any:
    """The cotangent of the one number in `x`, in the space of `x`."""
    if isinstance(x, np.ndarray) and not isinstance(x̄, AbstractZero):
        x̄ = np.full(x.shape, x̄)
    return project_to(x)(x̄)


def reciprocal(x: Any) -> Any:
    """1 / x, infinite at 0."""
    return 1 / x if x != 0 else infinite(x)


# -- math: one argument ----------------------------------------------------------------------------


@real_function(math.sin)
def _(y, x: Real):
    return math.cos(x)


@real_function(math.cos)
def _(y, x: Real):
    return -math.sin(x)


@real_function(math.tan)
def _(y, x: Real):
    return 1.0 + y * y


@real_function(math.asin)
def _(y, x: Real):
    return reciprocal(math.sqrt((1.0 - x) * (1.0 + x)))


@real_function(math.acos)
def _(y, x: Real):
    return -reciprocal(math.sqrt((1.0 - x) * (1.0 + x)))


@real_function(math.atan)
def _(y, x: Real):
    return 1.0 / (1.0 + x * x)


@real_function(math.sinh)
def _(y, x: Real):
    return math.cosh(x)


@real_function(math.cosh)
def _(y, x: Real):
    return math.sinh(x)


@real_function(math.tanh)
def _(y, x: Real):
    return 1.0 - y * y


@real_function(math.asinh)
def _(y, x: Real):
    return 1.0 / math.hypot(1.0, x)


@real_function(math.acosh)
def _(y, x: Real):
    return reciprocal(math.sqrt((x - 1.0) * (x + 1.0)))


@real_function(math.atanh)
def _(y, x: Real):
    return 1.0 / ((1.0 - x) * (1.0 + x))


@real_function(math.exp)
def _(y, x: Real):
    return y


@real_function(math.exp2)
def _(y, x: Real):
    return y * 0.6931471805599453  # log 2


@real_function(math.expm1)
def _(y, x: Real):
    return y + 1.0


@real_function(math.log)
def _(y, x: Real):
    return 1 / x  # of ints too large for a float as well


@real_function(math.log1p)
def _(y, x: Real):
    return 1.0 / (1.0 + x)


@real_function(math.log2)
def _(y, x: Real):
    return 1 / x * 1.4426950408889634  # 1 / log 2


@real_function(math.log10)
def _(y, x: Real):
    return 1 / x * 0.4342944819032518  # 1 / log 10


@real_function(math.sqrt)
def _(y, x: Real):
    return 0.5 / y if y else infinite(y)


@real_function(math.cbrt)
def _(y, x: Real):
    return reciprocal(3.0 * y * y)


@real_function(math.fabs)
def _(y, x: Real):
    return 1.0 if x > 0 else -1.0 if x < 0 else x * 0.0  # at NaN: NaN


@real_function(math.degrees)
def _(y, x: Real):
    return 57.29577951308232  # 180 / π


@real_function(math.radians)
def _(y, x: Real):
    return 0.017453292519943295  # π / 180


@real_function(math.erf)
def _(y, x: Real):
    return 1.1283791670955126 * math.exp(-x * x)  # 2 / √π


@real_function(math.erfc)
def _(y, x: Real):
    return -1.1283791670955126 * math.exp(-x * x)


# -- the gamma function, and the derivatives of its logarithm --------------------------------------


def digamma(x: float) -> float:
    """ψ(x), the derivative of log Γ(x); NaN at the poles.

    ψ(x) = ψ(x + 1) - 1 / x up to x = 10, from there Stirling's series; for x < 0 the reflection
    ψ(x) = ψ(1 - x) - π / tan(π x). Abramowitz and Stegun, 6.3.5, 6.3.7 and 6.3.18.
    """
    if x <= 0.0:
        part = x - math.floor(x)
        return digamma(1.0 - x) - math.pi / math.tan(math.pi * part) if part else math.nan
    total = 0.0
    while x < 10.0:
        total -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (
        1 / 12 - f * (1 / 120 - f * (1 / 252 - f * (1 / 240 - f * (1 / 132 - f * 691 / 32760))))
    )
    return total + math.log(x) - 0.5 / x - series


# B(2 k) / (2 k)!, k = 1, 2, …
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def polygamma(n: int, x: float) -> float:
    """The n-th derivative of digamma, n > 0; NaN at the poles.

    ψₙ(x) = ψₙ(x + 1) - (-1)ⁿ n! / xⁿ⁺¹ up to x = n + 15, from there the asymptotic series.
    Abramowitz and Stegun, 6.4.6 and 6.4.11.
    """
    if x <= 0.0 and x == math.floor(x):
        return math.nan
    sign = 1.0 if n % 2 else -1.0
    total = 0.0
    while x < n + 15.0:
        total += math.factorial(n) / x ** (n + 1)
        x += 1.0
    total += math.factorial(n - 1) / x**n + 0.5 * math.factorial(n) / x ** (n + 1)
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        factor = math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        total += bernoulli * factor / x ** (2 * k + n)
    return sign * total


@scalar_rule(digamma)
def _(y, x: Real):
    return polygamma(1, x)


@rrule(polygamma)
def _(n: int, x: Real):
    def polygamma_pullback(ȳ):
        return NoTangent(), ȳ * polygamma(n + 1, x)

    return polygamma(n, x), polygamma_pullback


@frule(polygamma)
def _(n: int, x: Real):
    def polygamma_pushforward(ṅ, ẋ):
        return polygamma(n + 1, x) * ẋ

    return polygamma(n, x), polygamma_pushforward


@real_function(math.gamma)
def _(y, x: Real):
    return y * digamma(x)


@real_function(math.lgamma)
def _(y, x: Real):
    return digamma(x)


# -- math: several arguments -----------------------------------------------------------------------


@real_function(math.pow)
def _(y, a: Real, b: Real):
    return pow_by_base(a, b), pow_by_exponent(a, y)


def pow_by_exponent(a: Any, y: Any) -> Any:
    """∂y/∂b for y = math.pow(a, b)."""
    return y * math.log(a) if a > 0 else 0.0 if a == 0 else math.nan


@scalar_rule(pow_by_exponent)
def _(slope, a: Real, y: Real):
    return (y / a, math.log(a)) if a > 0 else (0.0, slope)


type_stable(pow_by_exponent)


def pow_by_base(a: Any, b: Any) -> Any:
    """∂ math.pow(a, b) / ∂a, infinite at a = 0 where b < 1."""
    if b == 0:
        return 0.0
    return b * math.pow(a, b - 1.0) if a != 0 or b >= 1 else infinite(a)


@real_function(math.atan2)
def _(y, a: Real, b: Real):
    r = reciprocal(a * a + b * b) if a or b else 0.0
    return b * r, -a * r


@real_function(math.hypot)
def _(y, a: Real, b: Real):
    return (a / y, b / y) if y else (1.0 * a, 1.0 * b)  # they are zero, and stay of one type


@real_function(math.hypot)
def _(y, a: Real, b: Real, c: Real):
    return (a / y, b / y, c / y) if y else (1.0 * a, 1.0 * b, 1.0 * c)


@real_function(math.log)
def _(y, x: Real, base: Real):
    r = 1.0 / math.log(base)
    return r / x, -y * r / base


# y = a - n b with n whole
@real_function(math.fmod)
def _(y, a: Real, b: Real):
    return 1.0, (y - a) / b


@real_function(math.remainder)
def _(y, a: Real, b: Real):
    return 1.0, (y - a) / b


@real_function(math.nextafter)
def _(y, a: Real, b: Real):
    return 1.0, 0.0


@real_function(math.copysign)
def _(y, a: Real, b: Real):
    return (math.copysign(1.0, a) * math.copysign(1.0, b) if a else 0.0), 0.0


def fma_partials(y, a: Real, b: Real, c: Real):
    """Those of a b + c."""
    return b, a, 1.0


if hasattr(math, "fma"):  # CPython 3.13
    real_function(math.fma)(fma_partials)


@rrule(math.hypot)
def _(*xs: Numeric):
    y = math.hypot(*xs)

    def hypot_pullback(ȳ):
        return tuple([filled(x, ȳ * (float(x) / y) if y else 0.0) for x in xs])

    return y, hypot_pullback


@rrule(math.ldexp)
def _(x: Numeric, i: Numeric):
    def ldexp_pullback(ȳ):
        return filled(x, math.ldexp(ȳ, i)), NoTangent()

    return math.ldexp(x, i), ldexp_pullback


@rrule(math.frexp)
def _(x: Numeric):
    m, e = math.frexp(x)

    def frexp_pullback(ȳ):
        m̄ = unthunk(ȳ[0])
        return (m̄ if isinstance(m̄, AbstractZero) else filled(x, math.ldexp(m̄, -e)),)

    return (m, e), frexp_pullback


@rrule(math.modf)
def _(x: Numeric):
    def modf_pullback(ȳ):
        return (filled(x, unthunk(ȳ[0])),)

    return math.modf(x), modf_pullback


# -- math: sequences -------------------------------------------------------------------------------


def fsum_of(*xs: Any) -> Any:
    """The exact sum of the arguments."""
    return math.fsum(xs)


def prod_of(start: Any, *xs: Any) -> Any:
    """The product of the arguments."""
    return math.prod(xs, start=start)


def dist_of(n: int, *pq: Any) -> Any:
    """The distance of the points of the first n coordinates and of the others."""
    return math.dist(pq[:n], pq[n:])


def sumprod_of(n: int, *pq: Any) -> Any:
    """The scalar product of the first n numbers with the others."""
    return math.sumprod(pq[:n], pq[n:])  # type: ignore[attr-defined]


def are_numbers(xs: Sequence[Any]) -> bool:
    """Are all of them numbers or arrays?"""
    return all([isinstance(x, (Number, np.ndarray, np.generic)) for x in xs])


non_differentiable(are_numbers)


# What the functions of iterables do, as Python that can be differentiated.


def fsum(seq, /):
    """`math.fsum` of any iterable."""
    return fsum_of(*seq)


def prod(iterable, /, *, start=1):
    """`math.prod` of any iterable."""
    items = tuple(iterable)
    return (
        prod_of(start, *items) if are_numbers((start, *items)) else multiplied(items, start=start)
    )


def multiplied(xs, /, *, start=1):
    """`math.prod` of objects, by their operators."""
    for x in xs:
        start = start * x
    return start


def dist(p, q, /):
    """`math.dist` of any sequences."""
    p, q = tuple(p), tuple(q)
    return dist_of(len(p), *p, *q)


def sumprod(p, q, /):
    """`math.sumprod` of any iterables."""
    p, q = tuple(p), tuple(q)
    if are_numbers((*p, *q)):
        return sumprod_of(len(p), *p, *q)
    return sum_of_products(p, q)


def sum_of_products(p, q):
    """`math.sumprod(p, q)` of objects, by their operators."""
    p, q, total = tuple(p), tuple(q), 0
    if len(p) != len(q):
        raise ValueError("Inputs are not the same length")
    for x, y in zip(p, q, strict=True):
        total = total + x * y
    return total


IN_PYTHON = {math.fsum: fsum, math.prod: prod, math.dist: dist}
if hasattr(math, "sumprod"):  # CPython 3.12
    IN_PYTHON[math.sumprod] = sumprod


def others(xs: Any) -> list[Any]:
    """The products of all factors but one: no division, so any of them may be 0."""
    before, after = [1], [1]
    for x in xs[:-1]:
        before.append(before[-1] * x)
    for x in xs[:0:-1]:
        after.append(after[-1] * x)
    return [a * b for a, b in zip(before, after[::-1], strict=True)] if xs else []


@rrule(fsum_of)
def _(*xs: Any):
    def fsum_pullback(ȳ):
        return tuple([filled(x, ȳ) for x in xs])

    return math.fsum(xs), fsum_pullback


@rrule(prod_of)
def _(*xs: Any):
    def prod_pullback(ȳ):
        bars = [ȳ * conjugate(rest) for rest in others(xs)]
        if isinstance(ȳ, np.ndarray):
            bars = [unbroadcast(x̄, np.shape(x)) for x, x̄ in zip(xs, bars, strict=True)]
        return tuple([project_to(x)(x̄) for x, x̄ in zip(xs, bars, strict=True)])

    return prod_of(*xs), prod_pullback


@rrule(dist_of)
def _(n: int, *pq: Any):
    y = dist_of(n, *pq)

    def dist_pullback(ȳ):
        slopes = [
            (float(p) - float(q)) / y if y else 0.0 for p, q in zip(pq[:n], pq[n:], strict=True)
        ]
        p̄ = [filled(p, ȳ * s) for p, s in zip(pq[:n], slopes, strict=True)]
        q̄ = [filled(q, -ȳ * s) for q, s in zip(pq[n:], slopes, strict=True)]
        return NoTangent(), *p̄, *q̄

    return y, dist_pullback


@rrule(sumprod_of)
def _(n: int, *pq: Any):
    def sumprod_pullback(ȳ):
        p, q = pq[:n], pq[n:]
        p̄ = [project_to(a)(ȳ * conjugate(b)) for a, b in zip(p, q, strict=True)]
        q̄ = [project_to(b)(ȳ * conjugate(a)) for a, b in zip(p, q, strict=True)]
        return NoTangent(), *p̄, *q̄

    return sumprod_of(n, *pq), sumprod_pullback


def gathered(x: Any, cotangents: Any) -> Any:
    """The cotangents of the items, as that of the tuple or array that they come from."""
    if isinstance(x, np.ndarray):
        if x.dtype.kind == "b":
            return NoTangent()
        return project_to(x)(np.array([*cotangents], dtype=np.result_type(x.dtype, np.float16)))
    return tuple(cotangents)


@rrule(math.fsum)
def _(xs: Items):
    def fsum_pullback(ȳ):
        return (gathered(xs, [filled(x, ȳ) for x in xs]),)

    return math.fsum(xs), fsum_pullback


@rrule(math.prod)
def _(xs: Items, *, start=1):
    _, back = rule_for(prod_of, start, *xs)(start, *xs)

    def prod_pullback(ȳ):
        start_bar, *items = back(ȳ)
        return gathered(xs, items), start_bar

    return math.prod(xs, start=start), prod_pullback


@rrule(math.dist)
def _(p: Items, q: Items):
    n = len(p)
    _, back = rule_for(dist_of, n, *p, *q)(n, *p, *q)

    def dist_pullback(ȳ):
        _, *items = back(ȳ)
        return gathered(p, items[:n]), gathered(q, items[n:])

    return math.dist(p, q), dist_pullback


def sumprod_rule(p: Items, q: Items):
    """The rule of `math.sumprod`."""
    n = len(p)
    y, back = rule_for(sumprod_of, n, *p, *q)(n, *p, *q)

    def sumprod_pullback(ȳ):
        _, *items = back(ȳ)
        return gathered(p, items[:n]), gathered(q, items[n:])

    return y, sumprod_pullback


if hasattr(math, "sumprod"):
    rrule(math.sumprod)(sumprod_rule)


# -- cmath -----------------------------------------------------------------------------------------


def holomorphic(primal: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a holomorphic function of one variable by its derivative, from y and z."""

    def register(derivative: Callable[..., Any]) -> Callable[..., Any]:
        @rrule(primal)
        def _(z: complex):
            y = primal(z)

            def holomorphic_pullback(ȳ):
                return (ȳ * derivative(y, z).conjugate(),)

            return y, holomorphic_pullback

        @rrule(primal)
        def _(z: Real):
            y = primal(z)

            def holomorphic_pullback(ȳ):
                return ((ȳ * derivative(y, z).conjugate()).real,)

            return y, holomorphic_pullback

        @rrule(primal)
        def _(z: Numeric):
            y = primal(z)

            def holomorphic_pullback(ȳ):
                return (filled(z, ȳ * derivative(y, complex(z)).conjugate()),)

            return y, holomorphic_pullback

        @frule(primal)
        def _(z: Real | complex):
            y = primal(z)

            def holomorphic_pushforward(ż):
                return project_to(y)(derivative(y, z) * ż)

            return y, holomorphic_pushforward

        return derivative

    return register


@holomorphic(cmath.sin)
def _(y, z):
    return cmath.cos(z)


@holomorphic(cmath.cos)
def _(y, z):
    return -cmath.sin(z)


@holomorphic(cmath.tan)
def _(y, z):
    return 1.0 + y * y


# Products of roots, whose cuts are those of the functions; there the sign of zero tells the side.
@holomorphic(cmath.asin)
def _(y, z):
    return reciprocal(cmath.sqrt(complex(1.0 - z.real, -1.0 * z.imag)) * cmath.sqrt(1.0 + z))


@holomorphic(cmath.acos)
def _(y, z):
    return -reciprocal(cmath.sqrt(complex(1.0 - z.real, -1.0 * z.imag)) * cmath.sqrt(1.0 + z))


@holomorphic(cmath.atan)
def _(y, z):
    return reciprocal(1.0 + z * z)


@holomorphic(cmath.sinh)
def _(y, z):
    return cmath.cosh(z)


@holomorphic(cmath.cosh)
def _(y, z):
    return cmath.sinh(z)


@holomorphic(cmath.tanh)
def _(y, z):
    return 1.0 - y * y


@holomorphic(cmath.asinh)
def _(y, z):
    above, below = complex(1.0 - z.imag, z.real), complex(1.0 + z.imag, -z.real)  # 1 ± i z
    return reciprocal(cmath.sqrt(above) * cmath.sqrt(below))


@holomorphic(cmath.acosh)
def _(y, z):
    return reciprocal(cmath.sqrt(z - 1.0) * cmath.sqrt(z + 1.0))


@holomorphic(cmath.atanh)
def _(y, z):
    return reciprocal(1.0 - z * z)


@holomorphic(cmath.exp)
def _(y, z):
    return y


@holomorphic(cmath.log)
def _(y, z):
    return 1.0 / z


@holomorphic(cmath.log10)
def _(y, z):
    return 0.4342944819032518 / z  # 1 / log 10


@holomorphic(cmath.sqrt)
def _(y, z):
    return reciprocal(2.0 * y)


@rrule(cmath.log)
def _(z: Numeric, base: Numeric):
    y = cmath.log(z, base)

    def log_pullback(ȳ):
        b = complex(base)
        r = 1.0 / cmath.log(b)
        by_z, by_base = r / complex(z), -y * r / b
        return filled(z, ȳ * by_z.conjugate()), filled(base, ȳ * by_base.conjugate())

    return y, log_pullback


def phase_slope(z: Any) -> complex:
    """i z / |z|², the direction in which the phase grows; 0 at 0."""
    z = complex(z)
    return 1j * z / abs(z) ** 2 if z else 0j


@rrule(cmath.phase)
def _(z: Numeric):
    def phase_pullback(ȳ):
        return (filled(z, ȳ * phase_slope(z)),)

    return cmath.phase(z), phase_pullback


@rrule(cmath.polar)
def _(z: Numeric):
    r, φ = cmath.polar(z)

    def polar_pullback(ȳ):
        r̄, φ̄ = unthunk(ȳ[0]), unthunk(ȳ[1])
        outward = complex(z) / r if r else 0j
        return (filled(z, r̄ * outward + φ̄ * phase_slope(z)),)

    return (r, φ), polar_pullback


@rrule(cmath.rect)
def _(r: Numeric, φ: Numeric):
    y = cmath.rect(r, φ)

    def rect_pullback(ȳ):
        by_r = cmath.rect(1.0, φ)
        return filled(r, (ȳ * by_r.conjugate()).real), filled(φ, (ȳ * (1j * y).conjugate()).real)

    return y, rect_pullback


# -- constants -------------------------------------------------------------------------------------

CONSTANT = """
    ceil comb factorial floor gcd isclose isfinite isinf isnan isqrt lcm perm trunc ulp
    isnormal issubnormal signbit
"""
non_differentiable(*[getattr(math, name) for name in CONSTANT.split() if hasattr(math, name)])
non_differentiable(cmath.isclose, cmath.isfinite, cmath.isinf, cmath.isnan)

# Whatever they are given, the result is a float (or a pair of floats) or a whole number, and for cmath
# a complex number.
STABLE = """
    acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2 expm1
    fabs fma fmod frexp gamma hypot ldexp lgamma log log10 log1p log2 modf pow radians remainder sin
    sinh sqrt tan tanh isfinite isinf isnan isclose nextafter ulp fsum
    comb factorial gcd isqrt lcm perm
"""
type_stable(*[getattr(math, name) for name in STABLE.split() if hasattr(math, name)])
type_stable(*[f for name, f in vars(cmath).items() if callable(f) and name[0] != "_"])
type_stable(digamma, polygamma)
have_constants(math, cmath)
