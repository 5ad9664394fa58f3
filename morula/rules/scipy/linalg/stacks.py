"""Stacks of matrices, where a rule of scipy.linalg tells of a single one.

SciPy takes operands of a stack one after the other, broadcasts them, and puts the results in stacks
again; so do the rules here with the cotangents.
Tests: tests/rules/scipy/test_linalg_stacks.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import AbstractZero, NoTangent, call, non_differentiable
from morula.rules.arrays.broadcasting import match, part

EITHER = "a vector or a matrix"  # what has more than one axis is read as matrices


def rank(x: Any, declared: Any) -> Any:
    """How many axes one of a stack has."""
    return min(np.ndim(x), 2) if declared is EITHER else declared


def is_stack(ranks: Any, *operands: Any) -> bool:
    """Whether one of the operands has more axes than one vector or matrix."""
    pairs = zip(operands, ranks, strict=True)
    return any(np.ndim(x) > rank(x, declared) for x, declared in pairs)


non_differentiable(rank, is_stack)


def of_each(ȳ, y, primal, ranks, *args):
    """The cotangents of all `args` of a call whose first ones, one for each rank, are stacks."""
    operands, rest = args[: len(ranks)], args[len(ranks) :]
    cores = [np.ndim(x) - rank(x, declared) for x, declared in zip(operands, ranks, strict=True)]
    shapes = [np.shape(x) for x in operands]
    batches = [s[: max(k, 0)] for s, k in zip(shapes, cores, strict=True)]
    batch = np.broadcast_shapes(*batches)
    wide = []
    for x, shape, k in zip(operands, shapes, cores, strict=True):
        wide.append(x if x is None else np.broadcast_to(x, batch + shape[k:]))
    found = []
    for k in np.ndindex(batch):
        _, back = call(primal, *[x if x is None else x[k] for x in wide], *rest)
        found.append(back(one_of(ȳ, y, k))[1:])
    bars = []
    for i, shape in enumerate(shapes):
        bars.append(together([one[i] for one in found], batch, shape))
    return (*bars, *[NoTangent()] * len(rest))


def one_of(ȳ, y, k):
    """The cotangent of the results of one of the stack."""
    if isinstance(y, np.ndarray):
        return ȳ[k]
    bars = [part(ȳ, i) for i in range(len(y))]
    return tuple([bar if isinstance(bar, AbstractZero) else bar[k] for bar in bars])


def together(bars, batch, shape):
    """The cotangent of an operand of this shape, out of those of each of the stack."""
    some = [bar for bar in bars if not isinstance(bar, AbstractZero)]
    if not some:
        return bars[0]
    zero = np.zeros_like(some[0])
    whole = np.stack([zero if isinstance(bar, AbstractZero) else bar for bar in bars])
    return match(np.reshape(whole, batch + np.shape(zero)), shape)


def of_columns(x̄, primal, a, b, *rest):
    """The cotangents of `primal(a, b, *rest)`, where each matrix of a stack takes the vector b."""
    _, back = call(primal, a, b[:, None], *rest)
    _, ā, b̄, *none = back(x̄[..., None])
    return ā, b̄[:, 0], *none
