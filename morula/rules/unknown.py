"""Cotangents for which nobody has a formula: asking for one is an error, never a zero.

Tests: tests/rules/test_unknown.py
"""

from __future__ import annotations

import ctypes
import numbers
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from morula.core.extend import WRITERS, NotKnown, no_rule, non_differentiable, shows_all


def unknown(primal: Any, parameter: str) -> Any:
    """The cotangent of a parameter of a function whose derivative by it is not known."""
    reason = f"the derivative by {parameter} is not known"
    return NotKnown(lambda: no_rule(primal, (), reason=reason))


non_differentiable(unknown)


WRITERS.update({np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask})


def _nothing_hidden(x: Any) -> bool:
    return True


_type: Any
_CFunction: Any = type(ctypes.pythonapi.Py_IsInitialized).__base__
for _type in (numbers.Number, type, type(None), ModuleType, np.dtype, np.ufunc, _CFunction):
    shows_all.register(_type, _nothing_hidden)


@shows_all.register(np.ndarray)
@shows_all.register(np.generic)
def _(x: Any) -> bool:
    return x.dtype.kind in "biufc"


@shows_all.register(BuiltinFunctionType)
def _(fn: Any) -> bool:
    return fn.__self__ is None or shows_all(fn.__self__)


@shows_all.register(tuple)
@shows_all.register(list)
@shows_all.register(dict)
def _(x: Any) -> bool:
    """All that it holds does; it may hold itself."""
    seen, waiting = set(), [x]
    while waiting:
        inside = waiting.pop()
        if isinstance(inside, tuple | list | dict):
            if id(inside) not in seen:
                seen.add(id(inside))
                waiting += inside.values() if isinstance(inside, dict) else inside
        elif not shows_all(inside):
            return False
    return True
