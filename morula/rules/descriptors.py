"""Slots and properties that are asked themselves: `C.slot.__get__(x)` is `x.slot`, and so on.

The cotangent of a slot lies in the table of the object, by its name.
Tests: tests/rules/test_descriptors.py
"""

from types import MemberDescriptorType
from typing import Any

from morula.core.extend import call, non_differentiable, unsupported
from morula.rules.arrays.inplace import users_line
from morula.rules.calls import lookup, runs_body, serves


def is_found(slot: Any, x: Any) -> bool:
    """Is it this slot that `x` has under its name? Otherwise the plain call raises the error."""
    if lookup(type(x), slot.__name__) is slot:
        return True
    if isinstance(x, slot.__objclass__):
        hint = "Give the slots of the two classes different names"
        raise unsupported("a slot that another one of its name hides", users_line(), hint)
    return False


non_differentiable(is_found)


def get_slot(slot: Any, x: Any, cls: Any = None, /) -> Any:
    """`slot.__get__(x, cls)`."""
    if x is None or not is_found(slot, x):
        return without_object(slot, x, cls)
    return object.__getattribute__(x, slot.__name__)


def set_slot(slot: Any, x: Any, value: Any, /) -> None:
    """`slot.__set__(x, value)`."""
    if is_found(slot, x):
        object.__setattr__(x, slot.__name__, value)
    else:
        without_object(slot, x)


def delete_slot(slot: Any, x: Any, /) -> None:
    """`slot.__delete__(x)`."""
    if is_found(slot, x):
        object.__delattr__(x, slot.__name__)
    else:
        without_object(slot, x)


def without_object(slot: Any, x: Any, cls: Any = None) -> Any:
    """What a descriptor gives where there is no object; for one of another class that is an error."""
    return slot.__get__(x, cls)


def get_property(p: Any, x: Any, cls: Any = None, /) -> Any:
    """`p.__get__(x, cls)`."""
    return without_object(p, x, cls) if x is None or p.fget is None else p.fget(x)


def set_property(p: Any, x: Any, value: Any, /) -> None:
    """`p.__set__(x, value)`."""
    if p.fset is None:
        refuse_value(p, x)
    else:
        p.fset(x, value)


def refuse_value(p: Any, x: Any) -> None:
    """The error of a property that cannot be set."""
    p.__set__(x, None)


non_differentiable(without_object, refuse_value)
BODIES = {
    MemberDescriptorType.__get__: get_slot,
    MemberDescriptorType.__set__: set_slot,
    MemberDescriptorType.__delete__: delete_slot,
    property.__get__: get_property,
    property.__set__: set_property,
}


@serves(*BODIES)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(BODIES[fn], *args, **kwargs)


for _method, _body in BODIES.items():
    runs_body(_body, _method)
