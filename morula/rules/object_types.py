"""What the specialised path knows of the attributes of objects that a program makes and keeps.

    bodies = [Body(x, 0.0) for x in xs]

Objects that nobody else sees become variables (core/instances.py). Those that are put into lists,
dicts or other objects stay objects, as long as all that is done with them is known: objects that may
be one and the same share one `Fields`, as lists share their `Items`, with the type of each attribute.
Tests: tests/rules/test_object_types.py
"""

from __future__ import annotations

from types import FunctionType, MemberDescriptorType
from typing import Any

from morula.core.extend import (
    Const,
    Known,
    OneOf,
    contents,
    followed_of,
    in_class,
    known,
    new_instance,
    transfers,
)
from morula.rules.dict_types import DictContents, Entries
from morula.rules.list_types import item

MISSING = in_class(object, "no such attribute")


class Fields(Entries):
    """What is known of the attributes of some objects of one class, by name."""

    def attribute(self, s: Any, cls: type, name: str) -> Any:
        """What is known of an attribute: what was written, or what its class has."""
        this = self.root()
        if this.values is None or not is_own(cls, name):
            return None
        of_class = in_class(cls, name)
        if of_class is MISSING:
            return this.values.get(name)
        if type(of_class) in (FunctionType, MemberDescriptorType):
            return this.values.get(name)
        if hasattr(type(of_class), "__get__"):  # it is asked what is read
            return None
        s.guards.attributes[id(cls), name] = (cls, name, of_class)
        this.put_at(name, item(Const(of_class)))
        return None if this.values is None else this.values[name]


class FieldContents(DictContents):
    """Objects of one class, known by the types of their attributes."""

    may_be_missing = True

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def is_followed(self, detail: Any) -> bool:
        """Has all that happens to such objects been seen?"""
        return detail is not None and detail.root().values is not None

    def item(self, detail: Any) -> Any:
        """Nothing is known of what a loop over an object gives."""

    def at(self, detail: Any, key: Any) -> Any:
        """Nor of its items."""

    def put(self, s: Any, call: Any, container: Any, key: Any, value: Any) -> Any:
        """Nor of what it does with them."""
        s.own_changes.discard(call.out)

    def attribute(self, s: Any, call: Any, detail: Any, name: str) -> Any:
        """The type of an attribute."""
        found = detail.attribute(s, self.cls, name)
        if found is not None:
            s.own_changes.add(call.out)
        else:
            s.own_changes.discard(call.out)
        return found


def is_own(cls: type, name: str) -> bool:
    """Is an attribute written to and read from the object itself, if it is there?"""
    found = in_class(cls, name)
    return type(found) is MemberDescriptorType or not (
        hasattr(type(found), "__set__") or hasattr(type(found), "__delete__")
    )


def fields_of(value: Any) -> Fields | None:
    """What is known of the attributes of an object."""
    k = followed_of(value) if type(value) is OneOf else known(value)
    if k is None or not isinstance(k.detail, Fields):
        return None
    return k.detail.root()


@transfers(new_instance)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """An object of this class, whose attributes are followed where it may stay one."""
    cls = args[0].value if type(args[0]) is Const else None
    if cls is None or not s.keeps_objects or issubclass(cls, tuple):
        return None if cls is None else Known(cls)
    if cls not in contents:
        contents[cls] = FieldContents(cls)
    made: Fields = s.memory.setdefault(call.out, Fields(s))
    return Known(cls, made.root())


@transfers(setattr, object.__setattr__)
def _(s: Any, call: Any, args: list[Any]) -> Any:
    """An attribute is written to an object that is followed."""
    fields, k = fields_of(args[0]), known(args[0])
    s.own_changes.discard(call.out)
    if fields is None or k is None or type(args[1]) is not Const or call.keywords:
        return None
    custom = in_class(k.type, "__setattr__") is not object.__setattr__
    if not is_own(k.type, args[1].value) or (call.primitive is setattr and custom):
        return None
    fields.put(args[1], item(args[2]))
    s.own_changes.add(call.out)
    return Known(type(None))
