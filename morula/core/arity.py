"""How many arguments compiled functions take: a call with others raises before any rule sees it.

Tests: tests/core/test_arity.py
"""

from __future__ import annotations

import sys
from inspect import Parameter, signature
from types import (
    BuiltinFunctionType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NoReturn

from morula.core import errors

ANY = range(sys.maxsize)
_counts: dict[int, tuple[Any, range]] = {}


def counts_of(fn: Any) -> range:
    """The numbers of arguments that may be passed by position alone, as far as they are known."""
    found = _counts.get(id(fn))
    if found is not None:
        return found[1]
    if not is_lasting(fn) or not tells_truly(fn):
        return ANY
    counts = by_signature(fn)
    _counts[id(fn)] = fn, counts
    return counts


def fail(fn: Any, args: tuple[Any, ...]) -> NoReturn:
    """Raise what the call of a function with so many arguments raises."""
    fn(*args)
    raise errors.miscounted(fn, len(args))  # what it tells of itself, or was declared, is wrong


def takes(fewest: int, most: int, *fns: Any) -> None:
    """Declare how many arguments functions take that do not all tell their signature."""
    for fn in fns:
        _counts[id(fn)] = fn, range(fewest, most + 1)


def is_lasting(fn: Any) -> bool:
    """Is it a compiled function of a module or a method of a class, which nobody makes anew?"""
    if type(fn) is BuiltinFunctionType:
        return type(fn.__self__) is ModuleType
    return type(fn) in (MethodDescriptorType, WrapperDescriptorType)


def tells_truly(fn: Any) -> bool:
    """Is it of Python itself? What others tell may be less than they take, as of `ufunc.reduce`."""
    of_module = type(fn) is BuiltinFunctionType
    owner: str = fn.__module__ or "" if of_module else fn.__objclass__.__module__
    return owner.partition(".")[0] in sys.stdlib_module_names


def by_signature(fn: Any) -> range:
    """The same, by what a compiled function tells."""
    try:
        parameters = signature(fn).parameters.values()
    except (ValueError, TypeError):
        return ANY
    if any([p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for p in parameters]):
        return ANY
    placed = [p for p in parameters if p.kind <= Parameter.POSITIONAL_OR_KEYWORD]
    return range(sum([p.default is p.empty for p in placed]), len(placed) + 1)
