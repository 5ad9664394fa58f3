"""Truncated power series: the coefficients behind the value, each computed from those before it.

    s(t) = a + Σ s_k t^k,  k = 1, 2, …      a is the value that the program itself computes

A series is asked for its coefficients in their order, so it may be defined by itself: with y' = p, the
k-th coefficient of y is that of p before, over k. Coefficients are numbers or arrays of the shape of
the value; one that is structurally zero contributes nothing.
Reference: Griewank, Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 13.
Tests: tests/mixed_mode/test_taylor.py
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core import errors
from morula.core.cotangents import NONE, ZERO, is_zero

NextTerm = Callable[[int], Any]


class Series:
    """The coefficients of t, t², …; `after(k)` gives the k-th, or is None: all others are zero."""

    __slots__ = ("after", "terms")
    __array_ufunc__ = None

    def __init__(self, terms: Any, after: NextTerm | None = None) -> None:
        self.terms: list[Any] = list(terms)
        self.after = after

    def at(self, k: int) -> Any:
        """The k-th coefficient, k ≥ 1."""
        terms = self.terms
        while len(terms) < k:
            if self.after is None:
                return ZERO
            n = len(terms)
            term = self.after(n + 1)
            if len(terms) != n:
                raise errors.RuleError(
                    "a rule gives a derivative that needs the coefficient which it is to give"
                )
            terms.append(ZERO if term is NONE else term)
        return terms[k - 1]

    def finish(self, order: int) -> None:
        """Compute all coefficients, and keep nothing that they were computed from."""
        if order:
            self.at(order)
        self.after = None
        while self.terms and is_zero(self.terms[-1]):
            self.terms.pop()

    def __add__(self, other: Any) -> Any:
        if is_zero(other):
            return self
        return Series((), lambda k: self.at(k) + other.at(k))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Series((), lambda k: -self.at(k))

    def __getitem__(self, i: Any) -> Any:
        return mapped(self, lambda c: c[i])


def term(s: Any, k: int) -> Any:
    """The k-th coefficient of a tangent, which may be structurally zero."""
    return ZERO if is_zero(s) else s.at(k)


def mapped(s: Series, linear: Callable[[Any], Any]) -> Series:
    """The series of a linear function of one."""

    def after(k: int) -> Any:
        c = s.at(k)
        return ZERO if is_zero(c) else linear(c)

    return Series((), after)


def fit(y: Any, c: Any) -> Any:
    """A coefficient in the shape of the value: spread, where operands were broadcast."""
    if is_zero(c) or not isinstance(y, np.ndarray) or np.shape(c) == y.shape:
        return c
    return np.broadcast_to(c, y.shape)


def derivative(s: Any) -> Any:
    """The first coefficient of s', and its series."""
    if is_zero(s):
        return ZERO, ZERO
    return s.at(1), Series((), lambda k: scaled(s.at(k + 1), k + 1))


def scaled(c: Any, n: int) -> Any:
    """A coefficient times an integer."""
    return ZERO if is_zero(c) else c * n


# -- arithmetic ------------------------------------------------------------------------------------


def sum_of(y: Any, a: Any, b: Any) -> Series:
    """a + b."""
    return Series((), lambda k: fit(y, term(a, k) + term(b, k)))


def difference(y: Any, a: Any, b: Any) -> Series:
    """a - b."""

    def after(k: int) -> Any:
        return fit(y, term(a, k) + -term(b, k))

    return Series((), after)


def product(multiply: Any, y: Any, values: tuple[Any, ...], series: tuple[Any, ...]) -> Series:
    """A multilinear function of some arguments: its coefficients are sums over those of each."""

    def after(k: int) -> Any:
        return fit(y, convolved(multiply, (), values, series, k))

    return Series((), after)


def convolved(
    multiply: Any, fixed: tuple[Any, ...], values: tuple[Any, ...], series: tuple[Any, ...], k: int
) -> Any:
    """Σ multiply(a_i, b_j, …) over i + j + … = k, behind arguments that are fixed already."""
    value, s = values[0], series[0]
    if len(values) == 1:
        last = value if k == 0 else term(s, k)
        return ZERO if is_zero(last) else multiply(*fixed, last)
    total: Any = ZERO
    for j in range(1 if is_zero(s) else k + 1):
        c = value if j == 0 else s.at(j)
        if not is_zero(c):
            total = total + convolved(multiply, (*fixed, c), values[1:], series[1:], k - j)
    return total


def quotient(y: Any, values: tuple[Any, Any], a: Any, b: Any) -> Series:
    """a / b:  b₀ y_k = a_k - Σ b_j y_(k-j),  j = 1 … k."""
    divisor = values[1]

    def after(k: int) -> Any:
        total = term(a, k)
        if not is_zero(b):
            for j in range(1, k + 1):
                c = b.at(j)
                d = y if j == k else s.at(k - j)
                if not (is_zero(c) or is_zero(d)):
                    total = total + -(c * d)
        return ZERO if is_zero(total) else fit(y, total / divisor)

    s = Series((), after)
    return s


def power(y: Any, base: Any, exponent: Any, a: Series) -> Series:
    """a ** r with r constant and a₀ not zero:  k a₀ y_k = Σ (r j - (k - j)) a_j y_(k-j)."""

    def after(k: int) -> Any:
        total: Any = ZERO
        for j in range(1, k + 1):
            c = a.at(j)
            d = y if j == k else s.at(k - j)
            if not (is_zero(c) or is_zero(d)):
                total = total + c * d * (exponent * j - (k - j))
        return ZERO if is_zero(total) else fit(y, total / (base * k))

    s = Series((), after)
    return s


def general_power(y: Any, base: Any, exponent: Any, a: Any, r: Any) -> Series:
    """a ** r with a₀ positive:  y' = y m',  m = r log a."""
    logarithm = np.log(base)
    by_log = logarithm_of(base, a)
    m = product(operator.mul, exponent * logarithm, (exponent, logarithm), (r, by_log))
    return exponential(y, m)


def logarithm_of(base: Any, a: Any) -> Any:
    """log a:  k a₀ l_k = k a_k - Σ j l_j a_(k-j),  j = 1 … k - 1."""
    if is_zero(a):
        return ZERO

    def after(k: int) -> Any:
        total = scaled(a.at(k), k)
        for j in range(1, k):
            c, d = s.at(j), a.at(k - j)
            if not (is_zero(c) or is_zero(d)):
                total = total + -(c * d * j)
        return ZERO if is_zero(total) else total / (base * k)

    s = Series((), after)
    return s


def exponential(y: Any, m: Series) -> Series:
    """exp m:  k y_k = Σ j m_j y_(k-j),  j = 1 … k."""

    def after(k: int) -> Any:
        total: Any = ZERO
        for j in range(1, k + 1):
            c = m.at(j)
            d = y if j == k else s.at(k - j)
            if not (is_zero(c) or is_zero(d)):
                total = total + c * d * j
        return ZERO if is_zero(total) else fit(y, total / k)

    s = Series((), after)
    return s


def integer_power(multiply: Any, base: Any, n: int, a: Series) -> Series:
    """a ** n, n ≥ 1, by products: there is no division, so a₀ may be zero."""
    found: Any = None
    square, s = base, a
    while True:
        if n & 1:
            found = (square, s) if found is None else times(multiply, found[0], found[1], square, s)
        n >>= 1
        if not n:
            return found[1]
        square, s = times(multiply, square, s, square, s)


def times(multiply: Any, a: Any, s: Any, b: Any, t: Any) -> tuple[Any, Series]:
    """The product of two values with their series."""
    y = multiply(a, b)
    return y, product(multiply, y, (a, b), (s, t))


def sine_over_argument(x: Any, a: Series) -> Series:
    """sin(πx) / (πx), by its expansion at 0 as far as |x| = 2: Σ (-(πx)²)^m / (2m + 1)!, by Horner.

    From there on by y (πx) = sin(πx), a recurrence that nearer to 0 would let errors grow.
    """
    z = np.asarray(np.pi * x)
    t = mapped(a, lambda c: np.asarray(np.pi * c))
    y = np.asarray(np.sinc(x))
    near = np.absolute(z) < 2 * np.pi
    inner = np.where(near, z, 0.0)
    square, s = times(operator.mul, inner, t, inner, t)
    sine, cosine = np.sin(z), np.cos(z)
    by_sine = Series((), lambda k: turned(cosine, by_cosine, t, k))
    by_cosine = Series((), lambda k: -turned(sine, by_sine, t, k))
    outer = quotient(y, (sine, np.where(near, 1.0, z)), by_sine, t)

    def after(k: int) -> Any:
        far = outer.at(k)
        close = by_horner(square, s, k)
        c = np.where(near, close, 0.0 if is_zero(far) else far)
        return c if isinstance(x, np.ndarray) else c[()]

    return Series((), after)


def turned(value: Any, other: Any, t: Any, k: int) -> Any:
    """The k-th term of the integral of a product: Σ j t_j other_(k-j) / k."""
    total: Any = 0.0
    for j in range(1, k + 1):
        c = t.at(j)
        d = value if j == k else other.at(k - j)
        if not (is_zero(c) or is_zero(d)):
            total = total + c * d * (j / k)
    return total


def by_horner(square: Any, s: Any, k: int) -> Any:
    """The k-th term of the expansion of the sine over its argument, in the square of that."""
    m = k + 20
    value, p = np.full_like(square, (-1.0) ** m / math.factorial(2 * m + 1)), Series(())
    for i in range(m - 1, -1, -1):
        _, p = times(operator.mul, value, p, square, s)
        value = value * square + (-1.0) ** i / math.factorial(2 * i + 1)
    return 0.0 if is_zero(p.at(k)) else p.at(k)
