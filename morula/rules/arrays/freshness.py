"""What makes new arrays: their results share memory with nothing, so that no copy is needed.

Tests: tests/rules/arrays/test_freshness.py
"""

from __future__ import annotations

import operator

import numpy as np

from morula.core.extend import fresh_results
from morula.rules.arrays.sequences import BINARY, UNARY

FRESH = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.mod,
    operator.matmul, operator.neg, operator.abs, abs, pow, np.where, np.zeros, np.ones, np.full,
    np.zeros_like, np.ones_like, np.full_like, np.einsum, np.ndarray.dot, np.linalg.solve,
    np.linalg.inv, np.cumsum, np.ndarray.cumsum, np.concatenate, np.stack, np.ndarray.copy,
)  # fmt: skip

# np.real and np.imag give views.
fresh_results(*FRESH, *[f for f in (*UNARY, *BINARY) if f not in (np.real, np.imag)])
