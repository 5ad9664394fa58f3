"""Rules of what CPython evaluates late, when it is first asked for: values of `type` statements,
bounds, constraints and defaults of type parameters, and, since 3.14, annotations. Python itself runs
the code of these.

So a number in them has no derivative that is known: `late` refuses it. Types, which is what they are
for, are free. The annotations of functions before 3.14, which are evaluated at once, are kept where
no cotangent leads to, and go the same way.
Tests: tests/test_new_syntax.py
"""

import sys
import typing
from collections.abc import Callable
from numbers import Number
from types import FunctionType, GenericAlias, UnionType
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    Const,
    NotSpecialised,
    has_tangent,
    non_differentiable,
    primitives,
    refuses,
    unsupported,
)
from morula.rules.arrays.inplace import users_line
from morula.rules.builtins import ATTRIBUTES
from morula.rules.objects import is_part_of_python

LATE: dict[type, tuple[str, ...]] = {
    FunctionType: ("__annotations__",),
    typing.TypeVar: ("__bound__", "__constraints__", "__default__"),
    typing.ParamSpec: ("__bound__", "__default__"),
    typing.TypeVarTuple: ("__default__",),
}
if sys.version_info >= (3, 12):
    LATE[typing.TypeAliasType] = ("__value__",)
if sys.version_info >= (3, 14):
    LATE[type] = ("__annotations__",)
NAMES = {name for names in LATE.values() for name in names}
MAKES_LATE = (
    primitives.type_alias, primitives.bounded_type_variable, primitives.constrained_type_variable,
    primitives.set_default_type,
)  # fmt: skip


def may_vary(x: Any, depth: int = 4) -> bool:
    """Is it a number, an array or an object of a user's, or does it hold one?"""
    kind = type(x)
    if kind in (list, tuple, set, frozenset, dict):
        items = x.values() if kind is dict else x
        return depth > 0 and any([may_vary(item, depth - 1) for item in items])
    if isinstance(x, (Number, np.ndarray)):
        return kind is not bool
    if kind in (GenericAlias, UnionType):
        return False
    return has_tangent(kind) and not is_part_of_python(kind)


def late(name: str, x: Any) -> Any:
    """`x.name`, which Python evaluates; refused where numbers are in it."""
    y = getattr(x, name)
    if may_vary(y):
        raise unsupported(
            f"{name}, in which there are numbers,",
            users_line(),
            "Numbers that depend on the arguments belong in variables, not in types",
        )
    return y


def is_late(cls: type, name: str) -> bool:
    """Is this attribute of the objects of a class evaluated when it is asked for?"""
    return name in NAMES and any([name in LATE.get(base, ()) for base in cls.__mro__])


non_differentiable(may_vary, late, is_late)


def _late(name: str) -> Callable[[Any], Any]:
    """The rule of such an attribute."""
    return lambda x: (late(name, x), lambda ȳ: (ZERO,))


for _type, _names in LATE.items():
    for _name in _names:
        ATTRIBUTES[_type, _name] = _late(_name)


@refuses
def _(adjoint: Any) -> None:
    """A program that makes or reads what is evaluated late takes the general path."""
    for call in adjoint.specialiser.ir.calls():
        if call.primitive in MAKES_LATE:
            raise NotSpecialised("types that are evaluated late")
        if (
            call.primitive is getattr
            and type(call.args[1]) is Const
            and call.args[1].value in NAMES
        ):
            raise NotSpecialised("it reads types that are evaluated late")
