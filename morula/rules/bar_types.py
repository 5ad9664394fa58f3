"""Of what type the cotangents are that helpers of rules compute: like the operand they belong to.

So gradients are programs of values of known types, which can be differentiated once more.
Tests: tests/rules/test_bar_types.py
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from morula.core.extend import (
    Call,
    Const,
    Known,
    folds,
    is_zero_value,
    marks_results,
    result_on_samples,
    transfers,
)
from morula.rules.arrays.arithmetic import by_base, log_or_zero
from morula.rules.arrays.broadcasting import spread
from morula.rules.arrays.einsum import einsum_cotangent
from morula.rules.arrays.products import (
    inner_left,
    inner_right,
    left_kron,
    left_of_stacks,
    right_kron,
    right_of_stacks,
)
from morula.rules.arrays.quantiles import shared_out
from morula.rules.arrays.reductions import cumprod_cotangent, product_slopes
from morula.rules.arrays.shapes import summed_repeats
from morula.rules.linalg.factors import cholesky_cotangent
from morula.rules.linalg.matrices import adjugate
from morula.rules.linalg.norms import direction, norm_cotangent
from morula.rules.linalg.parts import beside_vectors, of_values
from morula.rules.linalg.spectral import hermitian_eigen_cotangent, of_eigenvalues


def real_array(value: Any) -> bool:
    """Is it known to be an array of real numbers with axes?"""
    return (
        type(value) is Known
        and value.type is np.ndarray
        and value.detail is not None
        and value.detail[0][1] == "f"
        and value.detail[1] > 0
    )


def same_kind(values: Any) -> bool:
    """Are all arrays and numbers among them real, of one dtype?"""
    found = set()
    for value in values:
        if type(value) is Known and value.type is np.ndarray:
            if value.detail is None or value.detail[0][1] != "f":
                return False
            found.add(value.detail[0])
        elif type(value) is Known and value.type is np.float64:
            found.add("<f8")
        elif type(value) is not Const and not (
            type(value) is Known and value.type in (float, int, bool)
        ):
            return False
    return len(found) == 1


def like(k: int, *helpers: Callable[..., Any]) -> None:
    """Helpers that give an array like their argument k, if all are real."""

    def transfer(s: Any, call: Any, args: Any) -> Any:
        return args[k] if real_array(args[k]) and same_kind(args) else None

    transfers(*helpers)(transfer)


like(0, log_or_zero, product_slopes, adjugate)
like(1, left_of_stacks, inner_left, cholesky_cotangent, left_kron)
like(2, right_of_stacks, inner_right, cumprod_cotangent, right_kron)


@transfers(by_base)
def _(s: Any, call: Call, args: Any) -> Any:
    """Like the power."""
    return result_on_samples(operator.mul, args) if same_kind(args) else None


@transfers(norm_cotangent)
def _(s: Any, call: Any, args: Any) -> Any:
    """Of the Euclidean norm; others choose entries, and say so by marks."""
    ȳ, y, x, ord, *_ = args
    if type(ord) is not Const or not real_array(x) or not same_kind([ȳ, y, x]):
        return None
    powers = x.detail[1] == 1 and type(ord.value) in (int, float) and math.isfinite(ord.value)
    return x if powers or ord.value in (None, 2, "fro") else None


@transfers(einsum_cotangent)
def _(s: Any, call: Any, args: Any) -> Any:
    ȳ, i, _, _, operands, _ = args
    if type(i) is not Const or getattr(operands, "type", None) is not tuple or not operands.detail:
        return None
    known = same_kind([ȳ, *operands.detail]) and real_array(operands.detail[i.value])
    return operands.detail[i.value] if known else None


@transfers(of_values, beside_vectors)
def _(s: Any, call: Any, args: Any) -> Any:
    """Matrices with real numbers on their diagonals."""
    if not real_array(args[0]):
        return None
    dtype, ndim, shape = args[0].detail
    return Known(np.ndarray, (dtype, ndim + 1, shape and (*shape, shape[-1])))


@folds(hermitian_eigen_cotangent)
def _(f: Any, call: Any) -> Any:
    """Vectors that have no cotangents are left out; others are refused where values are equal."""
    w̄, V̄, w, V = call.args
    if not is_zero_value(V̄) or f.types(w̄) is not np.ndarray:
        return None
    return [f.same_call(call, of_eigenvalues, w̄, w, V)]


@transfers(shared_out)
def _(s: Any, call: Any, args: Any) -> Any:
    """Like the array of which entries were taken."""
    a = args[-1]
    return a if real_array(a) and same_kind([args[0], a]) else None


marks_results(shared_out)


@folds(norm_cotangent)
def _(f: Any, call: Any) -> Any:
    """Of the Euclidean norm of a real array."""
    ȳ, y, x, ord, axis, keepdims = call.args
    order, over, kept = (getattr(k, "value", ...) for k in (ord, axis, keepdims))
    k = f.known(x)
    orders = (None, 2) if real_array(k) and k.detail[1] == 1 else (None, "fro")
    euclidean = real_array(k) and order in orders
    if not euclidean or over is not None or kept is not False:
        return None
    if not all(f.types(a) in (float, np.float64, np.float32) for a in (ȳ, y)):
        return None
    shape = f.new_call(call, getattr, x, f.const("shape"))
    length = f.new_call(call, spread, y, shape.out)
    along = f.new_call(call, direction, x, length.out, f.const(True))
    return [shape, length, along, f.same_call(call, operator.mul, ȳ, along.out)]


like(0, direction)


@transfers(summed_repeats)
def _(s: Any, call: Any, args: Any) -> Any:
    """An array of the shape that is asked for."""
    shape = args[1].value if type(args[1]) is Const else None
    if shape is None or not real_array(args[0]):
        return None
    return Known(np.ndarray, (args[0].detail[0], len(shape), shape))
