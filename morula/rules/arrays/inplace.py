"""In-place changes of arrays: refused, until the core can undo them in the reverse pass.

Tests: tests/rules/arrays/test_inplace.py
"""

from __future__ import annotations

import operator

import numpy as np

from morula.core.extend import UnsupportedError, changes_in_place, rrule
from morula.rules.arrays.types import Anything

IN_PLACE = (
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow, operator.imatmul, operator.iand, operator.ior, operator.ixor,
    operator.ilshift, operator.irshift,
)  # fmt: skip
WRITING = (
    operator.setitem, operator.delitem, np.put, np.place, np.putmask, np.copyto,
    np.put_along_axis, np.fill_diagonal, np.ndarray.fill, np.ndarray.sort, np.ndarray.partition,
    np.ndarray.put, np.ndarray.resize, np.ndarray.itemset if hasattr(np.ndarray, "itemset") else
    np.ndarray.setfield,
)  # fmt: skip


def refuse(what: str) -> UnsupportedError:
    """The error of a change in place."""
    return UnsupportedError(
        f"{what} changes an array in place, which differentiated code cannot do yet: make a new "
        "array instead (y = x + 1 for y += 1; np.where, np.concatenate or np.stack for y[i] = v)"
    )


def _writing(primal):
    @rrule(primal)
    def _(x: np.ndarray, *args: Anything):
        raise refuse(f"{getattr(primal, '__name__', primal)} of an array")


for _primal in (*IN_PLACE, *WRITING):
    _writing(_primal)


@rrule(np.ufunc.at)
def _(ufunc: np.ufunc, x: np.ndarray, *args: Anything):
    raise refuse(f"np.{ufunc.__name__}.at")


_WRITING = {id(f) for f in (*IN_PLACE, *WRITING)}


def writes_to_arrays(fn, types, n_args, keywords):
    """Does such a call write to an array? Then it has to meet the rules that refuse it."""
    if "out" in keywords or fn is np.ufunc.at:
        return True
    if isinstance(fn, np.ufunc):
        return n_args > fn.nin
    return id(fn) in _WRITING and any(issubclass(t, np.ndarray) for t in types)


changes_in_place.append(writes_to_arrays)
