"""Rules of class definitions: the body fills a namespace, the metaclass makes the class of it.

The cotangents of a class's attributes are in the table of the class; where it was made they go to the
namespace, and from there to what the body has bound.
Tests: tests/rules/test_classes.py
"""

import builtins
import dataclasses
import types
from types import FunctionType
from typing import Any

import numpy as np

from morula.core.extend import NONE, ZERO, adjoint_of, body_code, call, non_differentiable
from morula.rules.boxes import missing_arguments, remember
from morula.rules.calls import serves
from morula.rules.objects import assign, give, move, table_of, take


def build_class(body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
    """What `class name(*bases, **keywords):` does."""
    resolved = types.resolve_bases(bases)
    metaclass, names, keywords = types.prepare_class(name, resolved, keywords)
    if resolved is not bases:
        names["__orig_bases__"] = bases
    as_function(body)(names)
    if metaclass is type:  # `type(x)` is a constant, making a class is not
        cls = type.__new__(type, name, resolved, names, **keywords)
    else:
        cls = metaclass(name, resolved, names, **keywords)
    check_class_cell(name, cls, names)
    return cls


def as_function(body: FunctionType) -> FunctionType:
    """The body of a class as a function of its namespace."""
    code = body_code(body.__code__, body.__globals__)
    return FunctionType(code, body.__globals__, body.__name__, None, body.__closure__)


def check_class_cell(name: str, cls: Any, names: Any) -> None:
    """An error if a metaclass has forgotten the cell that `super()` reads."""
    cell = names.get("__classcell__") if isinstance(cls, type) else None
    if cell is None:
        return
    try:
        found = cell.cell_contents
    except ValueError:
        raise RuntimeError(
            f"__class__ not set defining {name!r} as {cls!r}. Was __classcell__ propagated to "
            "type.__new__?"
        ) from None
    if found is not cls:
        raise TypeError(f"__class__ set to {found!r} defining {name!r} as {cls!r}")


non_differentiable(types.resolve_bases, types.prepare_class, as_function, check_class_cell)


@serves(builtins.__build_class__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(build_class, *args, **kwargs)


@serves(type.__new__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = args[3]
    cls = type.__new__(*args, **kwargs)
    for name, value in names.items():
        if isinstance(value, (float, complex, np.ndarray, list, dict, tuple)):
            assign(cls, name)

    def new_class_pullback(ȳ: Any) -> tuple[Any, ...]:
        move(table_of(cls), adjoint_of(names))
        return (NONE, *[ZERO] * (len(args) + len(kwargs)))

    return cls, new_class_pullback


non_differentiable(type.__init__)


@serves(dataclasses._process_class)  # type: ignore[attr-defined]
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y = fn(*args, **kwargs)
    defaults: dict[str, Any] = {}
    if type(y.__init__) is FunctionType:
        remember(y.__init__)
        defaults = missing_arguments(y.__init__, 1, {})

    def dataclass_pullback(ȳ: Any) -> tuple[Any, ...]:
        bars, table = adjoint_of(y.__init__), table_of(args[0])
        for name, key in defaults.items():
            give(table, name, take(bars, ("default", key)))
        return (NONE, *[ZERO] * (len(args) + len(kwargs)))

    return y, dataclass_pullback
