"""How NumPy's values are written down in a module that holds an adjoint.

Tests: tests/core/test_source.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import constant_text
from morula.rules.arrays.types import NO_VALUE

MOST = 1000  # entries of an array that is written down: a longer one belongs into a file of data


@constant_text.register(np.dtype)
def _(value: Any, module: Any) -> str:
    return f"{module.constant(np)}.dtype({value.str!r})"


@constant_text.register(np.generic)
def _(value: Any, module: Any) -> str:
    kind = f"{module.constant(np)}.{type(value).__name__}"
    if isinstance(value, np.void | np.datetime64 | np.timedelta64):
        return constant_text.dispatch(object)(value, module)
    return f"{kind}({module.constant(value.item())})"


@constant_text.register(np.ndarray)
def _(value: Any, module: Any) -> str:
    if type(value) is not np.ndarray or value.size > MOST or value.dtype.kind not in "biufc":
        return constant_text.dispatch(object)(value, module)
    numpy = module.constant(np)
    entries = module.constant(value.ravel().tolist())
    return f"{numpy}.array({entries}, {module.constant(value.dtype)}).reshape({value.shape})"


@constant_text.register(type(NO_VALUE))
def _(value: Any, module: Any) -> str:
    return f"{module.constant(np)}._NoValue"
