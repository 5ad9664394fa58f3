"""The parts of mutable values, by which it is seen what a function changed that has no rule.

Objects of the standard library (a logger, a lock) are not looked into: they hold no parameters.
Tests: tests/rules/test_parts.py
"""

from __future__ import annotations

import contextlib
import numbers
from collections import deque
from functools import partial
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from morula.core.extend import holds_items, holds_others, looked_through, parts_of
from morula.rules.arrays.memory import owner_of
from morula.rules.boxes import followed_defaults
from morula.rules.objects import has_fields, is_by_identity, is_part_of_python, read_slot, slots_of

parts_of.register(list, lambda x: dict(enumerate(x)))
parts_of.register(tuple, lambda x: dict(enumerate(x)))
parts_of.register(dict, dict)
parts_of.register(deque, lambda x: dict(enumerate(x)))
parts_of.register(set, lambda x: {item: item for item in x})
parts_of.register(MethodType, lambda x: {"__self__": x.__self__, "__func__": x.__func__})
parts_of.register(
    partial, lambda x: {"func": x.func, **dict(enumerate(x.args)), "keywords": x.keywords}
)
parts_of.register(CellType, lambda x: {} if x == CellType() else {"value": x.cell_contents})
looked_through.register(frozenset, lambda x: x)
looked_through.register(dict, lambda x: [key for key in x if type(key) is not str])
looked_through.register(BaseException, lambda error: error.args)
looked_through.register(slice, lambda x: (x.start, x.stop, x.step))
looked_through.register(np.ndarray, lambda x: x.ravel().tolist() if x.dtype.kind == "O" else ())
holds_others(
    set, frozenset, deque, BaseException, slice, partial, SimpleNamespace, MethodType,
    MappingProxyType, *map(type, ({}.keys(), {}.values(), {}.items())),
)  # fmt: skip
holds_items(lambda x: x, list, tuple, deque, set)
holds_items(dict.values, dict)
for _type in (str, bytes, numbers.Number, np.generic, type, ModuleType):
    parts_of.register(_type, lambda x: None)


@parts_of.register(FunctionType)
def _(x: FunctionType) -> Any:
    """Its cells, and those of its default values that carry derivatives."""
    return {**dict(enumerate(x.__closure__ or ())), **followed_defaults(x)}


@parts_of.register(object)
def _(x: Any) -> Any:
    if not has_fields(type(x)) or is_part_of_python(type(x)) or not is_by_identity(x):
        return None
    fields = {name: read_slot(x, name) for name in slots_of(type(x))}
    with contextlib.suppress(AttributeError):  # there may be slots only
        fields.update(object.__getattribute__(x, "__dict__"))
    return fields


@parts_of.register(np.ndarray)
def _(x: np.ndarray) -> Any:
    """Its bytes, if it holds numbers that have a derivative and can be written to; or their owner."""
    if not x.flags.writeable:
        return None
    if x.dtype.kind in "fc" or x.dtype.names is not None:
        return {"data": np.ndarray.tobytes(x)}  # a class may refuse
    owner = owner_of(x)
    return None if owner is x else {"owner": owner}


del _type
