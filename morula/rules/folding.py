"""What the specialiser may compute ahead, and what it knows of results that samples do not tell.

Products with the cotangent "one" that a gradient begins with, and conjugates of real values, are
the value itself. A power has a type that depends on the values; here is what is sure of it.
Tests: tests/rules/test_folding.py
"""

import operator
from typing import Any

import numpy as np

from morula.core.extend import folds, fresh_results, result_on_samples, transfers, type_stable


def constant(x: Any) -> Any:
    """The value of a constant operand of type int or float, else None."""
    value = getattr(x, "value", None)
    return value if type(value) in (int, float) else None


def alike(f: Any, a: Any, b: Any) -> bool:
    """Are both floats, or both arrays of floats, so that a sign may move from one to the other?"""
    t = f.types(a)
    return t is f.types(b) and (t is float or (t is np.ndarray and f.details(a) == f.details(b)))


def negated(f: Any, x: Any) -> Any:
    """What `x` is the negative of, if that negative is needed nowhere else."""
    call = f.definition(x, operator.neg)
    return call.args[0] if call is not None and f.used_once(x) else None


def negative_of(f: Any, call: Any, fn: Any, a: Any, b: Any) -> list[Any]:
    """The calls that give -fn(a, b)."""
    inner = f.new_call(call, fn, a, b)
    return [inner, f.same_call(call, operator.neg, inner.out)]


@folds(operator.mul)
def _(f: Any, call: Any) -> Any:
    """Products with 1.0 and -1.0, and signs out of products: the same, bit for bit."""
    a, b = call.args
    for x, y in ((a, b), (b, a)):
        factor = constant(x)
        if factor == 1 and type(factor) is float and f.types(y) is float:
            return y
        if factor == -1 and type(factor) is float and f.types(y) is float:
            return [f.same_call(call, operator.neg, y)]
    if alike(f, a, b):
        if (x := negated(f, a)) is not None:
            return negative_of(f, call, operator.mul, x, b)
        if (x := negated(f, b)) is not None:
            return negative_of(f, call, operator.mul, a, x)
        if f.in_adjoint:
            return times_reciprocal(f, call)
    return None


def times_reciprocal(f: Any, call: Any) -> Any:
    """In an adjoint, a * (1 / b) is a / b, which is nearer to the truth as well."""
    a, b = call.args
    for x, y in ((a, b), (b, a)):
        quotient = f.definition(y, operator.truediv)
        if quotient is not None and constant(quotient.args[0]) == 1 and f.used_once(y):
            return [f.same_call(call, operator.truediv, x, quotient.args[1])]
    return None


@folds(operator.truediv)
def _(f: Any, call: Any) -> Any:
    a, b = call.args
    if alike(f, a, b) and (x := negated(f, a)) is not None:
        return negative_of(f, call, operator.truediv, x, b)
    return None


@folds(operator.add)
def _(f: Any, call: Any) -> Any:
    """x + -y is x - y."""
    a, b = call.args
    if alike(f, a, b):
        if (x := negated(f, b)) is not None:
            return [f.same_call(call, operator.sub, a, x)]
        if (x := negated(f, a)) is not None:
            return [f.same_call(call, operator.sub, b, x)]
    return None


@folds(operator.sub)
def _(f: Any, call: Any) -> Any:
    """x - -y is x + y."""
    a, b = call.args
    if alike(f, a, b) and (x := negated(f, b)) is not None:
        return [f.same_call(call, operator.add, a, x)]
    return None


@folds(operator.neg)
def _(f: Any, call: Any) -> Any:
    """--x is x, for floats."""
    x = negated(f, call.args[0])
    return x if x is not None and f.types(x) is float else None


@folds(operator.pow)
def _(f: Any, call: Any) -> Any:
    """x ** 1 is x, for floats."""
    x, n = call.args
    return x if constant(n) == 1 and type(constant(n)) is int and f.types(x) is float else None


@folds(float.conjugate, int.conjugate)
def _(f: Any, call: Any) -> Any:
    return call.args[0]


@folds(np.ndarray.conjugate, np.ndarray.conj)
def _(f: Any, call: Any) -> Any:
    """The conjugate of a real array is the array."""
    known = f.details(call.args[0])
    return call.args[0] if known is not None and known[0][1] == "f" else None


@transfers(operator.pow, operator.ipow)
def _(s: Any, call: Any, args: Any) -> Any:
    """a ** n: a float or an array stays one for an int n, an int for a constant n >= 0."""
    a, n = args
    type_of_a = getattr(a, "type", None)
    exponent = getattr(n, "value", None)
    if type(exponent) is int and exponent >= 0:
        return result_on_samples(operator.pow, args)
    if type_of_a is float and (type(exponent) is int or getattr(n, "type", None) is int):
        return a
    if type_of_a is np.ndarray and (
        type(exponent) in (int, float) or getattr(n, "type", None) in (int, float, np.ndarray)
    ):
        return result_on_samples(operator.pow, args)
    return None


type_stable(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
type_stable(np.zeros, np.ones, np.full, np.eye, np.zeros_like, np.ones_like)
type_stable(np.ndarray)  # its attributes: shape, T, dtype, ...

fresh_results(
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.matmul,
    operator.pow, np.dot, np.add, np.multiply, np.subtract, np.divide, np.negative, np.exp, np.log,
    np.tanh, np.sqrt, np.sin, np.cos, np.outer, np.add.reduce, np.ndarray.dot,
)  # fmt: skip
