"""What the specialiser may compute ahead, and what it knows of results that samples do not tell.

Products with the cotangent "one" that a gradient begins with, and conjugates of real values, are
the value itself. A power has a type that depends on the values; here is what is sure of it.
Tests: tests/rules/test_folding.py
"""

import operator
from typing import Any

import numpy as np

from morula.core.extend import folds, result_on_samples, transfers, type_stable


def is_one(x: Any) -> bool:
    """Is the operand the constant 1.0?"""
    value = getattr(x, "value", None)
    return type(value) is float and value == 1.0


@folds(operator.mul)
def _(f: Any, call: Any) -> Any:
    """1.0 * x and x * 1.0 are x, bit for bit, where x is a float."""
    a, b = call.args
    if is_one(a) and f.types(b) is float:
        return b
    if is_one(b) and f.types(a) is float:
        return a
    return None


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
