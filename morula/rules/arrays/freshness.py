"""What is known of results: which are new arrays, and which have shapes that values decide.

A new array shares memory with nothing, so that it needs no copy. A mask, or a number of repetitions
per entry, decides the shape of what it selects; of those results samples may not tell the shape.

Tests: tests/rules/arrays/test_freshness.py
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np

from morula.core.extend import fresh_results, result_on_samples, transfers
from morula.rules.arrays.sequences import BINARY, UNARY

FRESH = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod,
    operator.matmul, operator.neg, operator.abs, abs, pow, np.where, np.zeros, np.ones, np.full,
    np.zeros_like, np.ones_like, np.full_like, np.einsum, np.ndarray.dot, np.linalg.solve,
    np.linalg.inv, np.cumsum, np.ndarray.cumsum, np.concatenate, np.stack, np.ndarray.copy,
)  # fmt: skip

# np.real and np.imag give views.
fresh_results(*FRESH, *[f for f in (*UNARY, *BINARY) if f not in (np.real, np.imag)])


@transfers(np.where)
def _(s: Any, call: Any, args: Any) -> Any:
    """With three arguments, the mask counts by its shape only."""
    if len(args) != 3 or call.keywords:
        return None
    mask = args[0]
    if getattr(mask, "type", None) is np.ndarray and mask.detail is not None:
        mask = replace(mask, detail=(np.dtype(int).str, *mask.detail[1:]))
    return result_on_samples(np.where, [mask, *args[1:]])


@transfers(np.repeat, np.ndarray.repeat)
def _(s: Any, call: Any, args: Any) -> Any:
    if call.keywords or len(args) < 2 or type(getattr(args[1], "value", None)) is not int:
        return None
    return result_on_samples(call.primitive, args)
