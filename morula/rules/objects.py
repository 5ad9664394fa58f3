"""Rules of objects: reading and setting attributes, operators of user's classes, copies.

The adjoint object of an object of a user's class is a table: attribute -> cotangent. Reading x.a
adds to it, setting x.a takes from it what has come together there: it is the cotangent of the value
that was set. So for every mutable object, whichever name it is reached by; an object's `__dict__`
shares its table. Properties, descriptors, `__getattr__` and operator methods are calls of Python
functions. Classes and modules are constants but for attributes set in differentiated code.
Tests: tests/rules/test_objects.py
"""

import builtins
import copy
import dis
import gc
import importlib
import math
import numbers
import operator
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import cached_property, partial
from threading import local
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, ClassVar, NamedTuple
from weakref import ProxyTypes, WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy as np

from morula.core.extend import (
    IMMUTABLE_TYPE,
    NONE,
    ZERO,
    AbstractZero,
    CotangentError,
    Tangent,
    accumulate,
    adds_to_base,
    adjoint_object,
    adjoint_of,
    call,
    collector,
    constant_unless,
    context,
    errors,
    from_memory,
    general,
    generators,
    gradient_for,
    hands_on,
    has_tangent,
    is_compiled,
    is_own,
    is_zero,
    looked_through,
    materialise,
    may_hold_others,
    meet,
    memory,
    memory_of,
    no_rule,
    no_tangent,
    non_differentiable,
    on_entry,
    parts_of,
    primitives,
    project_to,
    projector,
    protected,
    reaching,
    remembered,
    results_of,
    rrule,
    stands_apart,
    unsupported,
    unthunk,
)
from morula.rules import builtins as of_builtins
from morula.rules import operators
from morula.rules.arrays import attributes as of_arrays
from morula.rules.arrays import flat as of_flat
from morula.rules.arrays.traits import COMPLEX, FLOATING
from morula.rules.boxes import assign_global, expose_globals, is_assigned_global, set_defaults
from morula.rules.calls import (
    CONTAINERS,
    MISSING,
    Back,
    BuiltinMethodType,
    bound_method_of,
    call_bound,
    compiled,
    entry,
    lookup,
    own_method,
    serves,
    works_as_property,
)
from morula.rules.foreign import CData
from morula.rules.numbers import Anything, Text
from morula.rules.questions import (
    are_all,
    filled_in,
    filled_in_from,
    formatted,
    is_any,
    is_contained,
    is_read_again,
    joined,
    print_each,
    range_of,
)

# -- which objects have attributes that carry cotangents -------------------------------------------


def slots_of(cls: type) -> list[str]:
    """The names of the slots of a class and its bases, as attributes are read by them."""
    return [
        name
        for base in reversed(cls.__mro__)
        if not is_compiled(base)
        for name, value in base.__dict__.items()
        if type(value) is MemberDescriptorType
    ]


_has_fields: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def has_fields(cls: type) -> bool:
    """Do objects of this class hold attributes of the user's?"""
    found = _has_fields.get(cls)
    if found is None:
        found = bool(cls.__dictoffset__) or bool(slots_of(cls))
        _has_fields[cls] = found
    return found


def is_by_identity(x: Any) -> bool:
    """Is the cotangent of this object found by its identity?"""
    return type(x) in CONTAINERS or is_rebound(x) or adjoint_object(x) is not None


non_differentiable(has_fields, is_by_identity)


@adjoint_object.register(object)
def _(x: Any) -> Any:
    if is_rebound(x):
        return adjoint_of(x.__dict__)
    return {} if has_fields(type(x)) else None


_type: Any
FORM = type(ClassVar)  # and of Union, Optional, …, which `typing` compares and keeps in sets
for _type in (tuple, str, bytes, numbers.Number, np.ndarray, np.generic, AbstractZero, FORM):
    adjoint_object.register(_type, lambda x: None)
adjoint_object.register(Enum, lambda x: {} if type(x) in _followed else None)
for _type in (ModuleType, FunctionType):
    adjoint_object.register(_type, lambda x: {})
adjoint_object.register(type, lambda cls: None if cls.__flags__ & IMMUTABLE_TYPE else {})
projector.register(AbstractZero, lambda x: lambda x̄: NONE)
no_tangent(type(ZERO), type(NONE))


def take(table: dict[Any, Any], key: Any) -> Any:
    """The cotangent in a table, which has none afterwards."""
    return table.pop(key, ZERO)


def give(table: dict[Any, Any], key: Any, c: Any) -> None:
    """Add a cotangent to a table."""
    if not is_zero(c):
        before = table.get(key, ZERO)
        table[key] = c if before is ZERO else accumulate(before, c)


def put(table: dict[Any, Any], key: Any, c: Any) -> None:
    """Write a cotangent or a tangent into a table."""
    table[key] = c


def move(source: dict[Any, Any], target: dict[Any, Any]) -> None:
    """All that has come together in one table goes to another."""
    for key in list(source):
        give(target, key, take(source, key))


# -- the `__dict__` of an object shares its table --------------------------------------------------


class Noted:
    """Objects by the identity of something, as long as somebody else has them too."""

    def __init__(self) -> None:
        self.weakly: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.kept: dict[int, Any] = {}  # those without weak references
        self.limit = 64

    def note(self, key: Any, x: Any) -> None:
        """Let `x` be found by the identity of `key`."""
        try:
            self.weakly[id(key)] = x
        except TypeError:
            if len(self.kept) >= self.limit:
                self.forget_the_dead()
            self.kept[id(key)] = x

    def found(self, key: Any) -> Any:
        """What is noted by the identity of `key`, or None."""
        found = self.weakly.get(id(key))
        return self.kept.get(id(key)) if found is None and self.kept else found

    def forget(self, key: Any) -> None:
        """Nothing is noted by the identity of `key` any more."""
        self.weakly.pop(id(key), None)
        self.kept.pop(id(key), None)

    def forget_the_dead(self) -> None:
        """Drop the objects that nothing else refers to."""
        for key in list(self.kept):
            if sys.getrefcount(self.kept[key]) <= HELD_BY_NOTES:
                del self.kept[key]
        self.limit = max(64, 2 * len(self.kept))


def _references() -> int:
    """The count of references to an object that notes alone hold."""
    notes = {0: object()}
    return sys.getrefcount(notes[0])


HELD_BY_NOTES = _references()
_exposed, _rebound = Noted(), Noted()


def has_table(x: Any) -> bool:
    """May an object hold attributes whose cotangents are found by its identity?"""
    return is_by_identity(x) and (hasattr(x, "__dict__") or not isinstance(x, CONTAINERS))


non_differentiable(has_table)


def table_of(x: Any) -> Any:
    """The table of an object's attributes; a container has one beside the adjoint of its items."""
    return adjoint_of(x.__dict__ if isinstance(x, CONTAINERS) else x)


def expose(x: Any) -> Any:
    """The `__dict__` of an object, known as its own from now on."""
    d = x.__dict__
    if isinstance(x, ModuleType):
        expose_globals(d)
        _exposed.note(d, x)
    elif not (isinstance(x, CONTAINERS) or is_rebound(x) or not is_by_identity(x)):
        _exposed.note(attributes_of(x), x)
    return d


def attributes_of(x: Any) -> dict[str, Any]:
    """The dict of an object's attributes; of a class, the one behind its `__dict__`."""
    return behind(x.__dict__) if isinstance(x, type) else x.__dict__


def behind(proxy: MappingProxyType[Any, Any]) -> Any:
    """The mapping that such a proxy shows."""
    (mapping,) = gc.get_referents(proxy)
    return mapping


def owner_of(d: dict[Any, Any]) -> Any:
    """The object whose `__dict__` this is, if it was read in differentiated code; or the module."""
    x = _exposed.found(d)
    if x is None and type(d) is dict and "__name__" in d:  # a class may ask itself
        x = sys.modules.get(d["__name__"]) if isinstance(d["__name__"], str) else None
    return x if x is not None and attributes_of(x) is d else None


def is_rebound(x: Any) -> bool:
    """Was the `__dict__` of an object assigned, or may it have been? Then its table is the dict's."""
    cls = type(x)
    plain = adjoint_object.dispatch(cls) is adjoint_object.dispatch(object)
    return (assigns_dict(cls) and plain) or _rebound.found(x) is not None


_assigns_dict: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def assigns_dict(cls: type) -> bool:
    """Do methods of a class assign `__dict__`, so that objects may have one together?"""
    found = _assigns_dict.get(cls)
    if found is None:
        values = [v for base in cls.__mro__ for v in vars(base).values()]
        functions = [getattr(v, "__func__", v) for v in values]
        codes = [f.__code__ for f in functions if type(f) is FunctionType]
        found = not issubclass(cls, CONTAINERS) and any(map(stores_dict, codes))
        _assigns_dict[cls] = found
    return found


def stores_dict(code: CodeType) -> bool:
    """Is there `….__dict__ = …` in this code?"""
    return "__dict__" in code.co_names and any(
        i.opname == "STORE_ATTR" and i.argval == "__dict__" for i in dis.get_instructions(code)
    )


def note_rebound(x: Any, before: dict[str, Any]) -> None:
    """Note that it was, and has its former one no more."""
    _exposed.forget(before)
    _rebound.note(x, x)


non_differentiable(table_of, expose, behind, owner_of, is_rebound, note_rebound)

# -- attributes that are set of classes and modules ------------------------------------------------

_assigned: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def assign(owner: Any, name: str) -> None:
    """Note that an attribute of a class or a module was set in differentiated code."""
    _assigned.setdefault(owner, set()).add(name)
    if isinstance(owner, ModuleType):
        assign_global(owner.__dict__, name)
        _exposed.note(owner.__dict__, owner)


def is_assigned(owner: Any, name: str) -> bool:
    """Was it?"""
    if isinstance(owner, ModuleType):
        return is_assigned_global(owner.__dict__, name)
    return name in _assigned.get(owner, ())


_made: WeakSet[type] = WeakSet()


def note_made(cls: type) -> None:
    """Note that a class was made in differentiated code."""
    _made.add(cls)


def is_made(cls: type) -> bool:
    """Was it?"""
    return cls in _made


non_differentiable(assign, is_assigned, note_made, is_made)

# -- reading ---------------------------------------------------------------------------------------

Attribute = tuple[Any, Callable[[Any], Any]]  # the value, and ȳ -> the cotangent of the object


def to_object(ȳ: Any) -> Any:
    """The cotangent of a bound method is that of its object."""
    return ȳ


def to_nobody(ȳ: Any) -> Any:
    """A constant."""
    return ZERO


def field(x: Any, name: str) -> Callable[[Any], Any]:
    """Where the cotangent of an attribute goes that the object itself holds."""

    def field_pullback(ȳ: Any) -> Any:
        give(table_of(x), name, ȳ)
        return ZERO

    return field_pullback


def unknown(x: Any, name: str) -> Callable[[Any], Any]:
    """The cotangent of an attribute of a compiled object: an error."""

    def unknown_pullback(ȳ: Any) -> Any:
        if is_zero(ȳ):
            return ZERO
        raise no_rule(getattr, (x, name), reason=f"for the attribute {name!r}")

    return unknown_pullback


def own_attribute(x: Any, name: str) -> Callable[[Any], Any]:
    """Where the cotangent of an attribute goes that is no method and no descriptor."""
    return field(x, name) if has_table(x) else unknown(x, name)


def holds(x: Any, name: str) -> bool:
    """Does the object itself have this attribute, in its `__dict__`?"""
    try:
        return name in object.__getattribute__(x, "__dict__")
    except AttributeError:
        return False


non_differentiable(holds)


@serves(getattr)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, name, *default = args
    if default:
        found, missed = attribute_or_missing(x, name)
        if missed is not None:
            return default[0], lambda ȳ: (NONE, *missed(ZERO), ZERO, NONE, ȳ)
        y, back = found
        return y, lambda ȳ: (NONE, back(ȳ), NONE, ZERO)
    y, back = attribute(x, name)

    def getattr_pullback(ȳ: Any) -> tuple[Any, ...]:
        return NONE, back(ȳ), NONE

    return y, getattr_pullback


PLAIN_READING: Any = object.__getattribute__


def is_ordinary(cls: type) -> bool:
    """Is it a class of the user's that leaves it to Python how attributes are found?"""
    return (
        not is_compiled(cls)
        and cls.__getattribute__ is PLAIN_READING
        and not hasattr(cls, "__getattr__")
    )


non_differentiable(is_ordinary)


def referent(proxy: Any) -> Any:
    """What a `weakref.proxy` stands for."""
    return proxy.__reduce_ex__.__self__


non_differentiable(referent)


def attribute_or_missing(x: Any, name: str) -> Any:
    """`x.name`, or None; and the pullback of what was done to find nothing."""
    return general.done_or_missed(AttributeError, attribute, x, name)


def attribute(x: Any, name: str) -> Attribute:
    """`x.name`."""
    cls = type(x)
    if is_ordinary(cls) and lookup(cls, name) is MISSING and has_table(x):
        return object.__getattribute__(x, name), field(x, name)
    if cls in ProxyTypes:
        return attribute(referent(x), name)
    rule = attribute_rule(cls, name)
    if rule is not None:
        y, back = rule(x)
        project = project_to(x)
        return y, lambda ȳ: ZERO if is_zero(ȳ) else project(back(unthunk(ȳ))[0])
    if isinstance(x, type):
        return class_attribute(x, name)
    if isinstance(x, ModuleType):
        of_module = hook_of_module(x, name)
        if of_module is not None:
            y, back = call(of_module, name)
            return y, lambda ȳ: (back(ȳ), ZERO)[1]
        y = expose(x) if name == "__dict__" else getattr(x, name)
        return y, field(x, name) if is_assigned(x, name) else to_nobody
    if cls is super:
        return super_attribute(x, name)
    if isinstance(x, Enum) and type(lookup(cls, name)) is not FunctionType:
        return member_attribute(x, name)
    custom = lookup(cls, "__getattribute__")
    hook = lookup(cls, "__getattr__")
    if hook is MISSING:
        return through(custom, x, name)
    found, missed = general.done_or_missed(AttributeError, through, custom, x, name)
    if missed is None:
        return found
    if general.is_protected():
        general.strays_here().append((custom, missed))
    y, back = call(hook, x, name)

    def hook_pullback(ȳ: Any) -> Any:
        x̄ = back(ȳ)[1]
        missed(ZERO)
        return x̄

    return y, hook_pullback


def hook_of_module(x: ModuleType, name: str) -> Any:
    """The `__getattr__` of a module that has no such attribute, nor a module inside, or None."""
    if name in vars(x) or hasattr(type(x), name) or f"{x.__name__}.{name}" in sys.modules:
        return None
    hook = vars(x).get("__getattr__")
    return hook if type(hook) is FunctionType else None


non_differentiable(hook_of_module, importlib.import_module)


def through(custom: Any, x: Any, name: str) -> Attribute:
    """`x.name` by the `__getattribute__` of the class."""
    if type(custom) is FunctionType:
        y, back = call(custom, x, name)
        return y, lambda ȳ: back(ȳ)[1]
    if type(x) in (MethodType, BuiltinFunctionType, BuiltinMethodType, MethodWrapperType):
        return getattr(x, name), to_object if name == "__self__" else to_nobody
    if type(x) is partial and name in ("func", "args"):
        return getattr(x, name), lambda ȳ: Tangent[partial]({name: ȳ})
    if isinstance(x, local):
        return getattr(x, name), unknown(x, name)
    if is_compiled(type(x)) and lookup(type(x), name) is MISSING:
        return getattr(x, name), own_attribute(x, name)  # compiled code may find it in other ways
    return plain_attribute(x, name)


@serves(object.__getattribute__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y, back = plain_attribute(*args)
    return y, lambda ȳ: (NONE, back(ȳ), NONE)


def attribute_rule(cls: type, name: str) -> Any:
    """The rule of an attribute of a number or an array."""
    is_derived = not is_compiled(cls) and not is_own(cls) and stands_apart(cls) is None
    if is_derived and adds_to_base(cls, name):
        return None
    if issubclass(cls, np.ndarray):
        if name in of_arrays.CONSTANTS:
            return constant_attribute(name)
        return of_arrays.ATTRIBUTES.get(name) or of_arrays.ADDRESSES.get(name)
    if issubclass(cls, np.generic):
        if name in of_arrays.CONSTANTS:
            return constant_attribute(name)
        return of_arrays.SCALAR_ATTRIBUTES.get(name)
    for base in cls.__mro__:
        found = of_builtins.ATTRIBUTES.get((base, name))
        if found is not None:
            return found
    return None


def constant_attribute(name: str) -> Any:
    """The rule of an attribute without derivative."""
    return lambda x: (getattr(x, name), lambda ȳ: (ZERO,))


non_differentiable(attribute_rule)


def is_bound(value: Any, x: Any) -> bool:
    """Is it a method of this object?"""
    kinds = (MethodType, BuiltinFunctionType, BuiltinMethodType, MethodWrapperType)
    return isinstance(value, kinds) and value.__self__ is x


def plain_attribute(x: Any, name: str) -> Attribute:
    """`object.__getattribute__(x, name)`, step by step."""
    cls = type(x)
    found = lookup(cls, name)
    kind = type(found)
    if found is MISSING:
        y = object.__getattribute__(x, name)
        return y, own_attribute(x, name)
    if works_as_property(found, "__get__") and found.fget is not None:
        return by_getter(found.fget, x)
    if kind is GetSetDescriptorType or kind is MemberDescriptorType:
        return compiled_attribute(x, name, kind)
    if kind is cached_property:
        return cached_attribute(x, name, found)
    if kind is _NAMED_FIELD and isinstance(x, tuple):
        i = found.__reduce__()[1][0]
        return tuple.__getitem__(x, i), lambda ȳ: Tangent[tuple]({i: ȳ})
    get = lookup(kind, "__get__")
    if type(get) is FunctionType and (is_data(kind) or not holds(x, name)):
        return by_descriptor(get, found, x, cls)
    y = object.__getattribute__(x, name)
    if is_bound(y, x):
        return y, to_object
    if (y is found and not holds(x, name)) or kind in (staticmethod, classmethod):
        return y, class_field(cls, name)
    if get is not MISSING and not holds(x, name):
        return y, unknown(x, name)
    return y, own_attribute(x, name)


class _Named(NamedTuple):
    field: Any


_NAMED_FIELD = type(_Named.__dict__["field"])
CONSTANT_ATTRIBUTES = {"__class__", "__doc__", "__module__", "__weakref__", "__name__"}


def is_data(kind: type) -> bool:
    """Do descriptors of this kind come before the object's own attributes?"""
    return lookup(kind, "__set__") is not MISSING or lookup(kind, "__delete__") is not MISSING


non_differentiable(is_data, is_bound)


def compiled_attribute(x: Any, name: str, kind: type) -> Attribute:
    """A slot, `__dict__`, or an attribute of a compiled class."""
    if name == "__dict__":
        return expose(x), to_nobody
    y = object.__getattribute__(x, name)
    if name in CONSTANT_ATTRIBUTES or not has_tangent(type(x)):
        return y, to_nobody
    if kind is MemberDescriptorType or isinstance(x, BaseException):
        return y, own_attribute(x, name)
    return y, unknown(x, name)


def cached_attribute(x: Any, name: str, found: Any) -> Attribute:
    """A `functools.cached_property`: computed once, then an attribute of the object."""
    if not is_by_identity(x):
        return cached_of_value(x, name, found)
    if holds(x, name):
        return x.__dict__[name], field(x, name)
    y, back = call(found.func, x)
    x.__dict__[name] = y

    def cached_attribute_pullback(ȳ: Any) -> Any:
        return back(accumulate(take(table_of(x), name), ȳ))[1]

    return y, cached_attribute_pullback


def cached_of_value(x: Any, name: str, found: Any) -> Attribute:
    """The same of an object whose cotangent goes by value: one that was kept is found again for it."""
    if name in x.__dict__:
        return x.__dict__[name], lambda ȳ: ZERO if is_zero(ȳ) else call(found.func, x)[1](ȳ)[1]
    y, back = call(found.func, x)
    x.__dict__[name] = y
    return y, lambda ȳ: back(ȳ)[1]


def class_attribute(cls: type, name: str) -> Attribute:
    """An attribute of a class."""
    if name == "__dict__":
        return expose(cls), to_nobody
    meta = type(cls)
    custom = lookup(meta, "__getattribute__")
    if type(custom) is FunctionType:
        y, back = call(custom, cls, name)
        return y, lambda ȳ: back(ȳ)[1]
    of_meta, hook = lookup(meta, name), lookup(meta, "__getattr__")
    if of_meta is MISSING and lookup(cls, name) is MISSING and type(hook) is FunctionType:
        y, back = call(hook, cls, name)
        return y, lambda ȳ: back(ȳ)[1]
    return plain_class_attribute(cls, name)


@serves(type.__getattribute__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y, back = plain_class_attribute(*args)
    return y, lambda ȳ: (NONE, back(ȳ), NONE)


def plain_class_attribute(cls: type, name: str) -> Attribute:
    """`type.__getattribute__(cls, name)`."""
    of_meta = lookup(type(cls), name)
    if works_as_property(of_meta, "__get__") and of_meta.fget is not None:
        return by_getter(of_meta.fget, cls)
    found = lookup(cls, name)
    get = lookup(type(found), "__get__")
    if type(get) is FunctionType:
        y, back = call(get, found, None, cls)
        return y, lambda ȳ: back(ȳ)[1]
    return type.__getattribute__(cls, name), class_field(cls, name)


def class_field(cls: type, name: str) -> Callable[[Any], Any]:
    """Where the cotangent of a class's attribute goes."""
    for base in cls.__mro__:
        if name in base.__dict__:
            if is_assigned(base, name):
                return field(base, name)
            return unknown(base, name) if is_made(base) else to_nobody
    return to_nobody


def member_attribute(x: Enum, name: str) -> Attribute:
    """An attribute of a member of an enumeration: a constant, unless that was made here."""
    cls = type(x)
    found = lookup(cls, name)
    if is_made(cls):
        if name in ("value", "_value_"):
            return x.value, member_value(cls, x)
        if works_as_property(found, "__get__") and found.fget is not None:
            return by_getter(found.fget, x)
        if holds(x, name) and name not in MEMBER_CONSTANTS:
            return getattr(x, name), own_attribute(x, name)
    return getattr(x, name), to_nobody


MEMBER_CONSTANTS = ("_name_", "_sort_order_", "__objclass__")


def member_value(cls: type, x: Enum) -> Callable[[Any], Any]:
    """Where the cotangent of a member's value goes: to what the body of the class has bound."""
    bound = _values.get(cls, {})
    name = getattr(x, "_name_", None)  # it has none while it is made
    if name in bound and bound[name] is x.value:
        return field(cls, name)
    return unknown(x, "value")


_values: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()


def note_values(cls: type, values: dict[str, Any]) -> None:
    """Note what the body of an enumeration has bound."""
    _values[cls] = values


non_differentiable(note_values)


_followed: WeakSet[type] = WeakSet()


def note_followed(cls: type) -> None:
    """Note an enumeration whose members were given their attributes in differentiated code."""
    _followed.add(cls)


non_differentiable(note_followed)


def by_descriptor(get: Any, found: Any, x: Any, cls: type) -> Attribute:
    """What the `__get__` of a descriptor gives for an object."""
    y, back = call(get, found, x, cls)
    return y, lambda ȳ: back(ȳ)[2]


@serves(FunctionType.__get__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The method of an object; its cotangent is that of the object."""
    n = len(args) + len(kwargs)

    def get_pullback(ȳ: Any) -> tuple[Any, ...]:
        return (NONE, ZERO, *[to_object(ȳ)][: n - 1], *[NONE] * (n - 2))

    return fn(*args, **kwargs), get_pullback


def by_getter(get: Any, x: Any) -> Attribute:
    """What a getter gives."""
    y, back = call(get, x)
    return y, lambda ȳ: back(ȳ)[1]


def super_attribute(s: Any, name: str) -> Attribute:
    """`super().name`; its cotangent is that of the object."""
    obj, cls = s.__self__, s.__self_class__
    mro = cls.__mro__
    for base in mro[mro.index(s.__thisclass__) + 1 :]:
        if name in base.__dict__:
            found = base.__dict__[name]
            if works_as_property(found, "__get__") and not isinstance(obj, type):
                return by_getter(found.fget, obj)
            if isinstance(obj, type):
                break
            if type(found) is cached_property:
                return cached_attribute(obj, name, found)
            get = lookup(type(found), "__get__")
            if type(get) is FunctionType:
                return by_descriptor(get, found, obj, cls)
            break
    return getattr(s, name), to_object


@serves(super)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return super(*args), lambda ȳ: (NONE, *[NONE] * (len(args) - 1), ȳ)


@serves(staticmethod, classmethod)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args), lambda ȳ: (NONE, ȳ)


@serves(vars)
def variables_of(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The attributes of an object; those of nothing would be the variables around."""
    if not args:
        raise unsupported("vars(), which asks for the variables around it,", "vars() is called")
    if len(args) > 1 or not hasattr(args[0], "__dict__"):
        vars(*args)  # raises
    return expose(args[0]), lambda ȳ: (NONE, ZERO)


# -- setting and deleting --------------------------------------------------------------------------


@serves(setattr)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, name, value = args
    if type(x) in ProxyTypes:
        x = referent(x)
    custom = own_method(type(x), "__setattr__")
    if custom is not MISSING:
        _, back = call(custom, x, name, value)
        return None, lambda ȳ: (NONE, *back(ZERO)[1:])
    bound = bound_method_of(x, "__setattr__")
    if bound is not MISSING:
        _, back = call(bound, name, value)
        return None, lambda ȳ: (NONE, ZERO, *back(ZERO)[1:])
    return set_attribute(x, name, value, setattr)


@serves(object.__setattr__, type.__setattr__, ModuleType.__setattr__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return set_attribute(*args, fn)  # type: ignore[call-arg]


def set_attribute(x: Any, name: str, value: Any, store: Any) -> Any:
    """`x.name = value`, and the cotangents of (setattr, x, name, value)."""
    cls = type(x)
    if cls is CellType and name == "cell_contents":
        _, back = call(primitives.set_cell, x, value)
        return None, lambda ȳ: (NONE, ZERO, NONE, back(ZERO)[2])
    found = lookup(cls, name)
    kind = type(found)
    if works_as_property(found, "__set__") and found.fset is not None:
        _, back = call(found.fset, x, value)
        return None, lambda ȳ: set_bars(back(ZERO), 1, 2)
    if found is not MISSING and type(lookup(kind, "__set__")) is FunctionType:
        _, back = call(lookup(kind, "__set__"), found, x, value)
        return None, lambda ȳ: set_bars(back(ZERO), 2, 3)
    if isinstance(x, np.ndarray) and lookup(kind, "__set__") is not MISSING:
        back = of_flat.set_attribute(x, name, value)
        return None, lambda ȳ: (NONE, ZERO, NONE, back(ZERO))
    if isinstance(x, CData) and found is not MISSING:
        return general.opaque(store, (x, name, value), {})
    if isinstance(x, FunctionType) and name in DEFAULTS:
        defaults_back = set_defaults(x, name, value)
        return None, lambda ȳ: (NONE, ZERO, NONE, defaults_back())
    if name == "__dict__" and can_be_rebound(x):
        rebind_back = rebind(x, value, store)
        return None, lambda ȳ: (NONE, ZERO, NONE, rebind_back())
    if isinstance(x, (type, ModuleType)):
        assign(x, name)
    store(x, name, value)
    if has_no_table(x):
        return None, lambda ȳ: (NONE, ZERO, NONE, ZERO)

    def setattr_pullback(ȳ: Any) -> tuple[Any, ...]:
        return NONE, ZERO, NONE, take(table_of(x), name) if is_by_identity(x) else ZERO

    return None, setattr_pullback


def has_no_table(x: Any) -> bool:
    """Is it a container with nothing but its own attributes, as the factory of a `defaultdict`?"""
    return isinstance(x, CONTAINERS) and not hasattr(x, "__dict__")


non_differentiable(has_no_table)


def can_be_rebound(x: Any) -> bool:
    """Are the cotangents of an object's attributes found by the object, and not by its `__dict__`?"""
    return is_by_identity(x) and not isinstance(x, (*CONTAINERS, FunctionType, type, ModuleType))


non_differentiable(can_be_rebound)


def rebind(x: Any, fields: dict[str, Any], store: Any) -> Callable[[], Any]:
    """`x.__dict__ = fields`; gives what pulls it back.

    At each moment the table of the object is that of the dict that it has then.
    """
    before = x.__dict__
    store(x, "__dict__", fields)
    note_rebound(x, before)

    def rebind_pullback() -> Any:
        after = adjoint_of(x)
        context.share_adjoint(before, x)
        for name in slots_of(type(x)):
            give(adjoint_of(x), name, take(after, name))
        return ZERO

    return rebind_pullback


DEFAULTS = ("__defaults__", "__kwdefaults__")


def set_bars(cotangents: tuple[Any, ...], x: int, value: int) -> tuple[Any, ...]:
    """The cotangents of (setattr, x, name, value) from those of a setter."""
    return NONE, cotangents[x], NONE, cotangents[value]


@serves(delattr)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, name = args
    custom = own_method(type(x), "__delattr__")
    if custom is not MISSING:
        _, back = call(custom, x, name)
        return None, lambda ȳ: back(ZERO)
    return delete_attribute(x, name, delattr)


@serves(object.__delattr__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return delete_attribute(*args, fn)  # type: ignore[call-arg]


def delete_attribute(x: Any, name: str, delete: Any) -> Any:
    """`del x.name`."""
    found = lookup(type(x), name)
    if works_as_property(found, "__delete__") and found.fdel is not None:
        _, back = call(found.fdel, x)
        return None, lambda ȳ: (NONE, back(ZERO)[1], NONE)
    remover = lookup(type(found), "__delete__")
    if type(remover) is FunctionType:
        _, back = call(remover, found, x)
        return None, lambda ȳ: (NONE, back(ZERO)[2], NONE)
    delete(x, name)

    def delattr_pullback(ȳ: Any) -> tuple[Any, ...]:
        if is_by_identity(x):
            take(table_of(x), name)
        return NONE, ZERO, NONE

    return None, delattr_pullback


# -- the operators of classes that define them in Python -------------------------------------------

SIGNS = dict(
    zip(
        [
            "add",
            "sub",
            "mul",
            "matmul",
            "truediv",
            "floordiv",
            "mod",
            "pow",
            "lshift",
            "rshift",
            "and_",
            "or_",
            "xor",
        ],
        ["+", "-", "*", "@", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"],
        strict=True,
    )
)
SIGNS.update({"i" + name.rstrip("_"): sign + "=" for name, sign in SIGNS.items()})
COMPARISONS = {
    operator.lt: "<",
    operator.le: "<=",
    operator.eq: "==",
    operator.ne: "!=",
    operator.ge: ">=",
    operator.gt: ">",
}


def is_python(method: Any) -> bool:
    """Is a method written in Python?"""
    return method is not MISSING and not hasattr(type(method), "__objclass__") and callable(method)


def says_in_python(cls: type, name: str) -> bool:
    """Does a class say itself what a special method does?"""
    return is_python(method_of(cls, name)) or own_method(cls, name) is not MISSING


METHOD_DESCRIPTOR = 1 << 17  # Py_TPFLAGS_METHOD_DESCRIPTOR: called with the object ahead


def method_of(cls: type, name: str) -> Any:
    """A special method of a class as a function of the object and others, or MISSING.

    Python binds what a class has under such a name, and calls that: the value of a property, say.
    """
    found = lookup(cls, name)
    if found is MISSING or found is None or type(found).__flags__ & METHOD_DESCRIPTOR:
        return found
    return partial(call_bound, found)


def is_implemented(y: Any) -> bool:
    """Did an operator method do its work?"""
    return y is not NotImplemented


def attempts(op: Any, a: Any, b: Any) -> list[tuple[Any, bool]]:
    """The methods that Python asks for `a op b` in turn, and if it asks b's first."""
    first, second, third = operators.METHODS[op]
    assert second is not None
    left, right = type(a), type(b)
    if op in COMPARISONS:
        both = [(comparison(left, first), False), (comparison(right, second), True)]
        return both[::-1] if left is not right and issubclass(right, left) else both
    in_place = MISSING
    if third is not None:  # in place, then as the plain operator
        in_place = method_of(left, first)
        first, second = second, third
    by_left, by_right = method_of(left, first), method_of(right, second)
    waits = isinstance(a, SEQUENCES) and not says_itself(left, first, second)
    if left is right:
        by_right = MISSING
    reflected_first = (
        by_right is not MISSING
        and lookup(right, second) is not lookup(left, second)
        and issubclass(right, left)
    )
    found = [(by_left, False), (by_right, True)]
    if reflected_first or waits:
        found.reverse()
    lets_wait = isinstance(a, SEQUENCES) and (left in SEQUENCES or op is operator.imul)
    place = 0 if not lets_wait or is_python(in_place) else 1 if waits else 2
    found.insert(place, (in_place, False))
    return [(m, swapped) for m, swapped in found if m is not MISSING and m is not None]


SEQUENCES = (list, tuple, str, bytes, bytearray, deque)  # their operators wait for those of numbers


def says_itself(cls: type, method: str, reflected: str) -> bool:
    """Does a class of sequences say in Python what an operator does, so that it is asked first?"""
    return is_python(method_of(cls, method)) or is_python(method_of(cls, reflected))


def comparison(cls: type, name: str) -> Any:
    """The method by which a class compares."""
    found = method_of(cls, name)
    return unequal if found is object.__ne__ and is_python(lookup(cls, "__eq__")) else found


def unequal(a: Any, b: Any) -> Any:
    """`object.__ne__`."""
    equal: Any = type(a).__eq__
    y = equal(a, b)
    return y if y is NotImplemented else not y


def nobody_says(op: Any, a: Any, b: Any) -> bool:
    """What `a op b` gives, or raises, where no method of theirs says it."""
    if op is operator.eq or op is operator.ne:
        return (a is b) is (op is operator.eq)
    kinds = f"{type(a).__name__!r} and {type(b).__name__!r}"
    if op in COMPARISONS:
        raise TypeError(f"{COMPARISONS[op]!r} not supported between instances of {kinds}")
    raise TypeError(f"unsupported operand type(s) for {SIGNS[op.__name__]}: {kinds}")


non_differentiable(
    is_python, method_of, attempts, says_itself, is_implemented, nobody_says
)  # fmt: skip


def binary_operator(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`a op b` where at least one of the classes says in Python what it is."""
    a, b = args
    methods = attempts(op, a, b)
    if not any([is_python(m) for m, _ in methods]):
        return compiled(op, args, kwargs)
    for method, swapped in methods:
        y, back = call(method, b, a) if swapped else call(method, a, b)
        if is_implemented(y):
            return y, operator_pullback(back, swapped)
    return nobody_says(op, a, b), lambda ȳ: (NONE, ZERO, ZERO)


def operator_pullback(back: Back, swapped: bool) -> Back:
    """The cotangents of (operator, a, b) from those of a method."""

    def binary_pullback(ȳ: Any) -> tuple[Any, ...]:
        _, first, second = back(ȳ)
        return (NONE, second, first) if swapped else (NONE, first, second)

    return binary_pullback


def unary_operator(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`-a` and the like, by the method of the class."""
    names = operators.METHODS.get(op) or of_builtins.METHODS[op]
    for name in names:
        if name is not None and is_python(method_of(type(args[0]), name)):
            return by_method(name)(op, args, kwargs)
    return compiled(op, args, kwargs)


def two_sided(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`divmod` and `pow`: the operator of both arguments."""
    if len(args) != 2 or kwargs:
        return unary_operator(op, args, kwargs)
    if op is pow:
        return binary_operator(operator.pow, args, kwargs)
    for method, x, y in (("__divmod__", *args), ("__rdivmod__", *args[::-1])):
        found = method_of(type(x), method)
        if is_python(found):
            z, back = call(found, x, y)
            if is_implemented(z):
                return z, operator_pullback(back, method == "__rdivmod__")
    return compiled(op, args, kwargs)


for _op, _methods in operators.METHODS.items():
    serves(_op)(unary_operator if _methods[1] is None else binary_operator)
for _op in (abs, float, complex):
    serves(_op)(unary_operator)
serves(divmod, pow)(two_sided)


def as_operator(op: Any, swapped: bool) -> Any:
    """A resolver for `np.ndarray.__add__` and the like: the operator."""

    def resolver(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        operands = args[::-1] if swapped else args
        if kwargs or not all(isinstance(a, ARRAY_LIKE) for a in args):
            return compiled(fn, args, kwargs)
        if len(args) == 2 and any([is_python(m) for m, _ in attempts(op, *operands)]):
            return compiled(fn, args, kwargs)  # it was asked by the operator
        y, back = call(op, *operands)
        if not swapped:
            return y, back
        return y, operator_pullback(back, True)

    return resolver


ARRAY_LIKE = (np.ndarray, numbers.Number)
for _op, _methods in operators.METHODS.items():
    for _cls in (np.ndarray, np.generic, *FLOATING, *COMPLEX):
        for _name, _swapped in ((_methods[0], False), (_methods[1], True)):
            if _name in _cls.__dict__ and not (_swapped and _methods[2]):
                serves(_cls.__dict__[_name])(as_operator(_op, _swapped))  # type: ignore[index]


def by_method(name: str) -> Any:
    """A resolver for what a class says by one method."""

    def resolver(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        method = method_of(type(args[0]), name)
        if not is_python(method):
            return compiled(fn, args, kwargs)
        y, back = call(method, *args)
        return y, lambda ȳ: (NONE, *back(ȳ)[1:])

    return resolver


# What is constant for numbers and containers, and what else a class may say that it is.

SAID_BY_CLASS = {
    round: "__round__",
    math.trunc: "__trunc__",
    math.floor: "__floor__",
    math.ceil: "__ceil__",
}
BY_STEPS = (GeneratorType, map, filter, zip, enumerate, type(iter(int, 1)))
CONSTANT_KINDS = (numbers.Number, np.ndarray, np.generic)


def asks(*names: str, steps: bool = False) -> Callable[[tuple[Any, ...]], bool]:
    """May one of some types say in Python what it is, by a method of one of these names?

    With `steps`, what runs Python code to give its items does as well.
    """
    known: WeakKeyDictionary[type, bool] = WeakKeyDictionary()

    def asks_one(types: tuple[Any, ...]) -> bool:
        for t in types:
            if t is None:
                return True
            answer = known.get(t)
            if answer is None:
                says = adds_to_base if issubclass(t, CONSTANT_KINDS) else says_in_python
                answer = (steps and t in BY_STEPS) or any([says(t, name) for name in names])
                if is_compiled(t):  # others may change
                    known[t] = answer
            if answer:
                return True
        return False

    return asks_one


def types_within(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of values and of all that these hold, if they are containers."""
    types: set[Any] = set()
    seen: dict[int, Any] = {}
    waiting = list(args)
    while waiting:
        x = waiting.pop()
        types.add(type(x))
        if id(x) in seen or type(x) in HOLDING_NOTHING:
            continue
        seen[id(x)] = x
        if isinstance(x, HOLDING):
            waiting += [*x, *x.values()] if isinstance(x, dict) else x
        else:
            waiting += looked_through(x)
        if may_hold_others(type(x)):
            waiting += (parts_of(x) or {}).values()
    return tuple(types)


HOLDING = (*CONTAINERS, tuple, frozenset)
HOLDING_NOTHING = frozenset((int, float, complex, bool, str, bytes, type(None)))

for _op in COMPARISONS:
    _first, _second, _ = operators.METHODS[_op]
    _more = ("__eq__",) if _op is operator.ne else ()
    constant_unless(asks(_first, _second or _first, *_more), _op, types_of=types_within)
for _op, _name in SAID_BY_CLASS.items():
    constant_unless(asks(_name), _op)
    serves(_op)(by_method(_name))


def by_answer(*names: str) -> Any:
    """A resolver for what a class answers by a method, within what Python lets it answer."""

    def resolver(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        cls = type(args[0])
        name = first_of(cls, names)
        method = method_of(cls, name)
        if not is_python(method):
            return compiled(fn, args, kwargs)
        answer, back = call(method, *asked_with(name, args))
        y = fn(in_place_of(cls, name, answer), *args[1:], **kwargs)

        def answer_pullback(ȳ: Any) -> tuple[Any, ...]:
            n = len(args) + len(kwargs)
            bars = [*back(ZERO)[1:], *[ZERO] * n]
            return (NONE, *bars[:n])

        return y, answer_pullback

    return resolver


def first_of(cls: type, names: tuple[str, ...]) -> str:
    """That of some methods which a class has and Python asks first."""
    of_all = (
        MISSING,
        None,
        *[vars(object).get(n) for n in names],
    )  # what all objects have asks others
    return next((n for n in names if lookup(cls, n) not in of_all), names[0])


def asked_with(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a method is called with: the object, an element to look for, how to format it."""
    if name == "__contains__":
        return args
    return (args[0], *args[1:2], *[""] * (2 - len(args))) if name == "__format__" else args[:1]


def in_place_of(cls: type, name: str, answer: Any) -> Any:
    """An object whose one method has given this answer already."""
    return type(cls.__name__, (), {name: lambda self, *args: answer})()


non_differentiable(first_of, asked_with, in_place_of)

ANSWERED_BY = {
    operator.truth: ("__bool__", "__len__"),
    operator.not_: ("__bool__", "__len__"),
    bool: ("__bool__", "__len__"),
    len: ("__len__",),
    int: ("__int__", "__index__", "__trunc__"),
    operator.index: ("__index__",),
    str: ("__str__", "__repr__"),
    repr: ("__repr__",),
    ascii: ("__repr__",),
    format: ("__format__", "__str__", "__repr__"),
    hash: ("__hash__",),
    bytes: ("__bytes__",),
    hex: ("__index__",),
    oct: ("__index__",),
    bin: ("__index__",),
    chr: ("__index__",),
}
TEXTS = (str, repr, ascii, format, hash)
for _op, _names in ANSWERED_BY.items():
    constant_unless(asks(*_names), _op, types_of=types_within if _op in TEXTS else None)
    serves(_op)(by_answer(*_names))


ITERATION = ("__iter__", "__getitem__")
constant_unless(
    asks("__contains__", "__eq__", *ITERATION, steps=True), operator.contains, types_of=types_within
)
answer_contained = by_answer("__contains__")


def is_searched(cls: type) -> bool:
    """Is what is looked for compared with the items one by one?"""
    found = lookup(cls, "__contains__")
    return found is MISSING or found in (list.__contains__, tuple.__contains__)


non_differentiable(is_searched)


@serves(operator.contains)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if is_searched(type(args[0])):
        return call(is_contained, *args)
    return answer_contained(fn, args, kwargs)


asks_for_text = asks("__str__", "__repr__")


def prints_in_python(types: tuple[Any, ...]) -> bool:
    """Is the text of objects asked for, or may it be read again?"""
    return asks_for_text(types) or is_read_again(types)


IN_FIELDS = ("__format__", "__str__", "__repr__", "__getitem__", "__getattr__", "__getattribute__")

# What asks objects one by one: the same in Python.
IN_PYTHON = {
    any: (is_any, asks("__bool__", "__len__", *ITERATION, steps=True)),
    all: (are_all, asks("__bool__", "__len__", *ITERATION, steps=True)),
    primitives.format_value: (formatted, asks("__format__", "__str__", "__repr__")),
    print: (print_each, prints_in_python),
    range: (range_of, asks("__index__")),
    str.join: (joined, asks(*ITERATION, steps=True)),
    str.format: (filled_in, asks(*IN_FIELDS)),
    str.format_map: (filled_in_from, asks(*IN_FIELDS)),
}
for _op, (_, _asks) in IN_PYTHON.items():
    constant_unless(_asks, _op, types_of=None if _op is range else types_within)


@serves(*IN_PYTHON)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(IN_PYTHON[fn][0], *args, **kwargs)


@rrule(operator.mod)
@rrule(operator.imod)
def _(a: Text, b: Anything):
    def mod_pullback(ȳ):
        return NONE, NONE

    return filled_in_places(a, b), mod_pullback


def filled_in_places(a: Any, b: Any) -> Any:
    """`a % b` of a text; objects that are asked for theirs may change nothing meanwhile."""
    if not asks_for_text(types_within((b,))):
        return a % b
    before = general.held_by((b,))
    try:
        return a % b
    finally:
        for x, keys in general.changes(before):
            now = parts_of(x) or {}
            if any([has_tangent(type(now.get(key))) for key in keys]):
                raise errors.changed_in_place(operator.mod, x)


non_differentiable(filled_in_places)


searches_in_python = asks("__getattr__", "__getattribute__")


def may_lack(types: tuple[Any, ...]) -> bool:
    """May code say what attributes there are, or does a generator stand for an iterator?"""
    return GeneratorType in types[:1] or searches_in_python(types)


constant_unless(may_lack, hasattr)


@serves(hasattr)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found, missed = attribute_or_missing(*args)
    if missed is not None:
        return False, lambda ȳ: (NONE, *missed(ZERO), ZERO, NONE)
    return True, lambda ȳ: (NONE, found[1](ZERO), NONE)


serves(operator.setitem)(by_method("__setitem__"))
serves(operator.delitem)(by_method("__delitem__"))


def own_class_getitem(cls: type) -> Any:
    """The `__class_getitem__` of a class, if it is a user's."""
    found = lookup(cls, "__class_getitem__")
    method = found.__func__ if type(found) is classmethod else None
    ours = type(method) is FunctionType and lookup(type(cls), "__getitem__") is MISSING
    return method if ours and not is_part_of_python(method) else None


non_differentiable(own_class_getitem)


@serves(operator.getitem)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, key = args
    if isinstance(x, type) and lookup(type(x), "__getitem__") is MISSING:
        method = own_class_getitem(x)
        if method is not None:
            y, back = call(method, x, key)
            return y, lambda ȳ: (NONE, NONE, back(ȳ)[2])
        return operator.getitem(x, key), lambda ȳ: (NONE, NONE, NONE)  # list[int]
    return by_item(fn, args, kwargs)


by_item = by_method("__getitem__")

# -- exceptions ------------------------------------------------------------------------------------


EXCEPTIONS = [
    cls
    for cls in vars(builtins).values()
    if isinstance(cls, type) and issubclass(cls, BaseException)
]
ALL = -1  # in the place of the number of one value

# The attributes of those, besides `args`, that hold what their classes are given.
EXCEPTION_FIELDS = {
    cls: [
        name
        for name, found in vars(cls).items()
        if type(found) in (MemberDescriptorType, GetSetDescriptorType)
        and not (name.startswith("_") or name == "args")
    ]
    for cls in EXCEPTIONS
}


def exception_fields(error: BaseException, values: tuple[Any, ...]) -> dict[str, int]:
    """Which attributes hold which of the values that an exception was made of, besides `args`.

    That with all of them is ALL.
    """
    names = [name for cls in type(error).__mro__ for name in EXCEPTION_FIELDS.get(cls, ())]
    fields = {}
    for name in names:
        with suppress(AttributeError):  # it holds nothing
            held = object.__getattribute__(error, name)
            found = [i for i, value in enumerate(values) if value is held]
            found += [ALL] * (held is error.args)
            if found and has_tangent(type(held)):
                fields[name] = found[0]
    return fields


non_differentiable(exception_fields)


@serves(
    *{
        id(cls.__dict__[name]): cls.__dict__[name]
        for cls in EXCEPTIONS
        for name in ("__new__", "__init__")
        if name in cls.__dict__
    }.values()
)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Both note the arguments in `args`; `__init__` notes them anew, in other attributes too."""
    y = fn(*args, **kwargs)
    error = args[0] if y is None else y
    values = (*args[1:], *kwargs.values())
    fields = exception_fields(error, values)
    n = min(len(args) - 1, len(error.args))

    def exception_pullback(ȳ: Any) -> tuple[Any, ...]:
        table = table_of(error)
        bars = [ZERO] * len(values)
        for name, at in [("args", ALL), *fields.items()]:
            c = take(table, name)
            held = {i: entry(c, i) for i in range(n)} if at == ALL else {at: c}
            for i, part in held.items():
                bars[i] = accumulate(bars[i], part)
        return (NONE, ZERO, *bars)

    return y, exception_pullback


@serves(protected.hold)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    error, _ = args

    def hold_pullback(ȳ: Any) -> tuple[Any, ...]:
        table = table_of(error)
        held = entry(take(table, "args"), 0)
        for name in exception_fields(error, (args[1],)):
            held = accumulate(held, take(table, name))
        return NONE, ZERO, held

    return fn(*args), hold_pullback


# -- copies ----------------------------------------------------------------------------------------


def named_copy(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A copy of what is given by name."""
    given = [kwargs[k] for k in ("x", "memo")[len(args) :] if k in kwargs]
    if len(given) < len(kwargs) or not (args or "x" in kwargs):
        fn(*args, **kwargs)  # raises
    y, back = call(fn, *args, *given)

    def named_copy_pullback(ȳ: Any) -> tuple[Any, ...]:
        x̄ = back(ȳ)[1]
        return (NONE, *[x̄, NONE][: len(args)], *[x̄ if k == "x" else NONE for k in kwargs])

    return y, named_copy_pullback


@serves(copy.copy)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs:
        return named_copy(fn, args, kwargs)
    (x,) = args
    method = lookup(type(x), "__copy__")
    if type(method) is FunctionType:
        y, back = call(method, x)
        return y, lambda ȳ: (NONE, back(ȳ)[1])
    if has_own_state(x):
        return call(copy_by_code, x)
    y = copy.copy(x)
    if y is x or not is_by_identity(x):
        return y, partial(of_copy, x, y)

    def copy_pullback(ȳ: Any) -> tuple[Any, ...]:
        move_adjoint(y, x)
        return NONE, ZERO

    return y, copy_pullback


def of_copy(x: Any, y: Any, ȳ: Any) -> tuple[Any, ...]:
    """The cotangents of (copy, x), for a copy y whose cotangents go by value."""
    return NONE, project_to(x)(accumulate(ȳ, from_memory(y, (x,))))


@serves(copy.deepcopy)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs:
        return named_copy(fn, args, kwargs)
    x = args[0]
    if has_own_copy(x):
        return call(deepcopy_by_code, *args)
    memo = args[1] if len(args) > 1 and args[1] is not None else {}
    known = len(memo.get(id(memo), ()))
    y = copy.deepcopy(x, memo)
    pairs = copied(memo, known)
    held = {id(old): by_value_in(old) for old, _ in pairs}

    def deepcopy_pullback(ȳ: Any) -> tuple[Any, ...]:
        for old, new in reversed(pairs):
            if is_by_identity(old):
                into_memory(adjoint_of(new), held[id(old)])
                move_adjoint(new, old)
            else:
                move_in_memory(new, old)
        return (NONE, of_copy(x, y, ȳ)[1], *[NONE] * (len(args) - 1))

    return y, deepcopy_pullback


def copied(memo: dict[int, Any], first: int = 0) -> list[tuple[Any, Any]]:
    """The mutable originals that `copy.deepcopy` has noted, with their copies."""
    return [
        (old, memo[id(old)])
        for old in memo.get(id(memo), [])[first:]
        if is_by_identity(old) or memory_of(old) is not None
    ]


def by_value_in(old: Any) -> dict[Any, Any]:
    """What a mutable original holds whose cotangents go by value, by the keys of its adjoint object."""
    return {key: x for key, x in (parts_of(old) or {}).items() if not is_by_identity(x)}


def into_memory(bars: Any, held: dict[Any, Any]) -> None:
    """The cotangents in an adjoint object, as those of other values, which may be written to."""
    if memory.in_memory():
        for key, x in held.items():
            if key in bars if isinstance(bars, dict) else key < len(bars):
                bars[key] = project_to(x)(bars[key])


copy_by_code = generators.same_code(copy.copy)
deepcopy_by_code = generators.same_code(copy.deepcopy)
BY_SLOTS = ("__getattribute__", "__setattr__")  # by which copies are made slot by slot
STATE = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs__")


REFILLED = {  # by the compiled base of a class: by which methods a copy is made and filled
    list: ("__iter__", "append"),
    deque: ("__init__", "__iter__", "append"),
    OrderedDict: ("__init__", "__iter__", "__getitem__", "items", "__setitem__"),
    defaultdict: ("__init__", "__iter__", "__getitem__", "items", "__setitem__"),
    dict: ("items", "__setitem__"),
    **dict.fromkeys((tuple, int, float, complex), ("__new__",)),
}


def has_own_state(x: Any) -> bool:
    """Does its class say in Python what a copy of an object is made of?"""
    cls = type(x)
    if is_part_of_python(cls):
        return False
    hooks = STATE
    for base in REFILLED:
        if isinstance(x, base):
            hooks += REFILLED[base]
            break
    else:
        if not is_by_identity(x):
            return False
    if slots_of(cls):
        hooks += BY_SLOTS
    return any([is_python(lookup(cls, name)) for name in hooks])


def has_own_copy(x: Any) -> bool:
    """Does a class say in Python how it is copied, that of x or of anything that x holds?"""
    by_class = {type(x): x}
    for z, parts in general.held_by((x,)):
        by_class[type(z)] = z
        by_class.update((type(v), v) for v in parts.values())
    return any(
        [
            has_own_state(z) or type(lookup(cls, "__deepcopy__")) is FunctionType
            for cls, z in by_class.items()
        ]
    )


def reduced(x: Any, protocol: int) -> Any:
    """`object.__reduce_ex__(x, protocol)` for an object of a class written in Python."""
    cls = type(x)
    if is_python(lookup(cls, "__reduce__")):
        return x.__reduce__()
    given = x.__getnewargs__() if is_python(lookup(cls, "__getnewargs__")) else given_to_new(x)
    state = x.__getstate__() if is_python(lookup(cls, "__getstate__")) else state_of(x)
    items = iter(x) if isinstance(x, (list, deque)) else None
    pairs = iter(x.items()) if isinstance(x, dict) else None
    if isinstance(x, deque):
        return cls, () if x.maxlen is None else ((), x.maxlen), state, items, None
    if isinstance(x, OrderedDict):
        return cls, (), state, None, pairs
    if isinstance(x, defaultdict):
        return cls, () if x.default_factory is None else (x.default_factory,), None, None, pairs
    return new_object, (cls, *given), state, items, pairs


def given_to_new(x: Any) -> tuple[Any, ...]:
    """`x.__getnewargs__()` of compiled code: a value of the base that a class is derived from."""
    if isinstance(x, tuple):
        return (tuple.__getitem__(x, slice(None)),)
    for base in (int, float, complex):
        if isinstance(x, base):
            return (base.__pos__(x),)
    return ()


def new_object(cls: Any, *args: Any) -> Any:
    """An object of a class, before anything is put into it."""
    return cls.__new__(cls, *args)


def state_of(x: Any) -> Any:
    """The attributes of an object, and its slots apart, as Python's own `__getstate__` gives them."""
    fields = getattr(x, "__dict__", None) if type(x).__dictoffset__ else None
    found = [(name, getattr(x, name, MISSING)) for name in slots_of(type(x))]
    slots = {name: value for name, value in found if value is not MISSING}
    return (fields or None, slots) if slots else fields or None


@serves(object.__reduce_ex__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, protocol = args
    is_made_anew = is_by_identity(x) or has_own_state(x)
    if protocol < 2 or not is_made_anew or is_compiled(type(x)):
        return compiled(fn, args, kwargs)
    return call(reduced, *args)


non_differentiable(copied, has_own_state, has_own_copy, slots_of)


def move_in_memory(new: Any, old: Any) -> None:
    """What is kept beside the memory of a copy goes beside that of the original."""
    c = from_memory(new, ())
    if not is_zero(c):
        memory.write_to(memory_of(old))
        project_to(old)(c)


def move_adjoint(new: Any, old: Any) -> None:
    """What reached a copy goes to the original."""
    source, target = adjoint_of(new), adjoint_of(old)
    if isinstance(source, list):
        for i, c in enumerate(source):
            while len(target) <= i:
                target.append(ZERO)
            target[i] = accumulate(target[i], c)
        source.clear()
    else:
        move(source, target)


# -- cotangents of objects by value, and what the user gets ----------------------------------------


def own_fields(x: Any) -> dict[str, Any]:
    """The attributes that an object itself holds, by name, in their order."""
    fields = {}
    for name in slots_of(type(x)):
        value = read_slot(x, name)
        if value is not MISSING:
            fields[name] = value
    if type(x).__dictoffset__ and hasattr(x, "__dict__"):
        fields.update(expose(x))
    return fields


def read_slot(x: Any, name: str) -> Any:
    """What is in a slot, or MISSING; a `__getattr__` of its class, which may read it, is not asked."""
    try:
        return object.__getattribute__(x, name)
    except AttributeError:
        return MISSING


non_differentiable(own_fields)


@projector.register(object)
def _(x: Any) -> Any:
    if meet(type(x)):
        return projector(x)
    if not has_fields(type(x)) or not is_by_identity(x):
        return None
    fields = own_fields(x)

    @hands_on(x, fields)
    def absorb(x̄: Any) -> Any:
        """A cotangent that a rule returned by value goes to the table of the object."""
        x̄ = as_tangent(x, x̄)
        if isinstance(x, Tangent) and not (isinstance(x̄, Tangent) and x̄._primal is Tangent):
            return absorb_fields(x, x̄)
        if not isinstance(x̄, Tangent) and not isinstance(x̄, dict):
            kind = type(x).__name__
            raise CotangentError(
                f"the cotangent of an object of type {kind} is a {type(x̄).__name__}, expected "
                f"Tangent[{kind}](...)"
            )
        table = adjoint_of(x)
        for name, c in x̄.items():
            if c is not None:
                give(table, name, project_to(fields[name])(c) if name in fields else c)
        return ZERO

    return absorb


def absorb_fields(x: Any, x̄: Any) -> Any:
    """What mirrors the primal of a cotangent goes to the table of its fields."""
    fields, table = x._fields, adjoint_of(x._fields)
    for name, c in x̄.items() if isinstance(x̄, Tangent | dict) else enumerate(x̄):
        if name in fields and c is not None:
            give(table, name, project_to(fields[name])(c))
    return ZERO


@collector.register(object)
def _(y: Any, part: Any) -> Any:
    if not has_fields(type(y)) or not is_by_identity(y):
        return None
    parts = {name: part(value) for name, value in own_fields(y).items()}

    def collect() -> Any:
        table = adjoint_of(y)
        found = {name: take(table, name) for name in list(table)}
        for name, collect_part in parts.items():
            if collect_part is not None:
                give(found, name, collect_part())
        return Tangent[type(y)](found) if found else ZERO

    return collect


for _type in (
    str, bytes, numbers.Number, np.ndarray, np.generic, AbstractZero, Enum, type, ModuleType,
    FunctionType, CellType,
):  # fmt: skip
    collector.register(_type, lambda y, part: None)
for _type in (type, ModuleType, property, staticmethod, classmethod, type(primitives.UNDEFINED)):
    projector.register(_type, lambda x: lambda x̄: NONE)
for _type in (FunctionType, CellType):
    projector.register(_type, lambda x: None)
for _type in (property, staticmethod, classmethod):
    adjoint_object.register(_type, lambda x: None)
    no_tangent(_type)


class Part(NamedTuple):
    """A part of an object: a value that the object, or a dict or a list in it, holds under a key."""

    owner: Any
    key: Any
    value: Any
    counts: bool  # has it a place in the gradient?

    def read(self) -> Any:
        """The value, as a program reads it."""
        if isinstance(self.owner, (dict, list)):
            return self.owner[self.key]
        return getattr(self.owner, self.key)


class Mirror(NamedTuple):
    """How a library mirrors its objects, where their gradients are no `Tangent`."""

    parts: Callable[[Any], list[Part] | None]  # in their order; None: it is no such object
    made_of: Callable[[Any, list[Any]], Any]  # an object like another one, of these parts
    settings: Callable[[Any], tuple[type, ...]]  # of numbers that are none of its parameters


mirrors: list[Mirror] = []


def mirror_of(x: Any) -> Mirror | None:
    """How an object is mirrored; None: by a `Tangent`."""
    if not mirrors or isinstance(x, Tangent):
        return None
    return next((mirror for mirror in mirrors if mirror.parts(x) is not None), None)


def meet_all(x: Any) -> None:
    """Load the rules for the libraries of all that a value holds."""
    on_entry(x, {})


def parts_by(mirror: Mirror, x: Any) -> list[Part]:
    """The parts of an object that is mirrored so."""
    return mirror.parts(x) or []


def as_tangent(x: Any, x̄: Any) -> Any:
    """What mirrors an object, as a `Tangent` of its attributes; a `Tangent` as it is."""
    if type(x̄) is not type(x):
        return x̄
    meet_all(x)
    mirror = mirror_of(x)
    if mirror is None:
        return x̄
    of_x, of_bar = parts_by(mirror, x), parts_by(mirror, x̄)
    if len(of_x) != len(of_bar):
        kind = type(x).__name__
        raise CotangentError(f"the cotangent of a {kind} of {len(of_x)} parts has {len(of_bar)}")
    fields: dict[str, Any] = {}
    for part, c in zip(of_x, of_bar, strict=True):
        if part.counts and c.value is not None:
            put_in(fields, x, part, c.read())
    return Tangent[type(x)](fields)


def put_in(fields: dict[str, Any], x: Any, part: Part, c: Any) -> None:
    """Put the cotangent of a part among those of the attributes."""
    if part.owner is x:
        fields[part.key] = c
    else:
        name = next(name for name, value in own_fields(x).items() if value is part.owner)
        if name not in fields:
            fields[name] = [None] * len(part.owner) if isinstance(part.owner, list) else {}
        fields[name][part.key] = c


non_differentiable(mirror_of, meet_all, parts_by)


class ObjectOnEntry:
    """An object, with the attributes that it had when the differentiated function was called."""

    __slots__ = ("fields", "primal")

    def __init__(self, primal: Any, fields: dict[str, Any]) -> None:
        self.primal = primal
        self.fields = fields


@on_entry.register(object)
def _(x: Any, known: dict[int, Any]) -> Any:
    if meet(type(x)):  # its package has rules
        return on_entry(x, known)
    if not has_fields(type(x)) or not is_by_identity(x) or is_part_of_python(type(x)):
        return x
    found = known.get(id(x))
    if found is None:
        found = known[id(x)] = ObjectOnEntry(x, {})
        for name, value in own_fields(x).items():
            found.fields[name] = on_entry(value, known)
    return found


# Modules of the standard library whose classes are there to hold a user's values.
HOLDERS = ("__main__", "types", "collections", "argparse")


def is_part_of_python(x: Any) -> bool:
    """Is it a class of the standard library: a logger, a lock, a path? They hold no parameters."""
    module = str(x.__module__).split(".")[0]
    return module in sys.stdlib_module_names and module not in HOLDERS


non_differentiable(is_part_of_python)


@remembered.register(object)
def _(x: Any, known: dict[int, Any]) -> Any:
    if id(x) in known or not has_fields(type(x)) or not is_by_identity(x):
        return []
    if is_part_of_python(type(x)):
        return []
    known[id(x)] = x
    return [found for value in own_fields(x).values() for found in remembered(value, known)]


@remembered.register(FunctionType)
def _(fn: FunctionType, known: dict[int, Any]) -> Any:
    if id(fn) in known:
        return []
    known[id(fn)] = fn
    cells = [cell for cell in fn.__closure__ or () if cell != CellType()]
    return [found for cell in cells for found in remembered(cell.cell_contents, known)]


for _type in (type, ModuleType, str, bytes, numbers.Number, np.generic, CellType, Enum):
    remembered.register(_type, lambda x, known: [])
for _type in (
    type, ModuleType, str, bytes, numbers.Number, np.ndarray, np.generic, CellType, AbstractZero,
    Enum,
):  # fmt: skip
    on_entry.register(_type, lambda x, known: x)


def like_tangent(x: ObjectOnEntry, of: Callable[[Any], Any]) -> Any:
    """The gradient of a `Tangent`, or its tangent: one of the same primal."""
    bars = gradient_for(x.fields["_fields"], (of(x.primal) or {}).get("_fields", ZERO), of)
    return Tangent[x.primal._primal]({key: c for key, c in bars.items() if c is not None})


def mirrored(mirror: Mirror, x: ObjectOnEntry, of: Callable[[Any], Any]) -> Any:
    """The gradient of an object whose library mirrors it."""
    settings = mirror.settings(x.primal)
    bars = [
        without(part.value, gradient_of_part(x, part, of), settings) if part.counts else None
        for part in parts_by(mirror, x.primal)
    ]
    return mirror.made_of(x.primal, bars)


def without(x: Any, x̄: Any, settings: tuple[type, ...]) -> Any:
    """A gradient in which there is none for numbers of these types, also in lists, tuples and dicts."""
    if type(x) in settings:
        return None
    if not settings or not isinstance(x, (list, tuple, dict)):
        return x̄
    if isinstance(x, dict):
        return {key: without(x[key], c, settings) for key, c in x̄.items()}
    items = [without(v, c, settings) for v, c in zip(x, x̄, strict=True)]
    return items if isinstance(x, list) else tuple.__new__(type(x̄), items)


def gradient_of_part(x: ObjectOnEntry, part: Part, of: Callable[[Any], Any]) -> Any:
    """That of one part, as it was on entry."""
    held = x.fields if part.owner is x.primal else picture_of(x, part.owner)
    bars, key = of(part.owner), part.key
    if isinstance(part.owner, list):
        return gradient_for(held[key], bars[key] if bars and key < len(bars) else ZERO, of)
    return gradient_for(held.get(key, part.value), (bars or {}).get(key, ZERO), of)


def picture_of(x: ObjectOnEntry, owner: Any) -> Any:
    """The items that a dict or a list in an object had."""
    for value in x.fields.values():
        if getattr(value, "primal", None) is owner:
            return value.items
    return owner


non_differentiable(picture_of)


@materialise.register(ObjectOnEntry)
def _(x: ObjectOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    made = results_of(of)
    mirror = None if id(x) in made else mirror_of(x.primal)
    if mirror is not None:
        made[id(x)] = mirrored(mirror, x, of)
    elif isinstance(x.primal, Tangent) and id(x) not in made:
        made[id(x)] = like_tangent(x, of)
    if id(x) not in made:
        fields: dict[str, Any] = {}
        table = of(x.primal) or {}
        if isinstance(
            x.primal, Tangent
        ):  # a point of a linear space, which is its own tangent space
            inside = gradient_for(x.fields["_fields"], table.get("_fields", ZERO), of)
            named = {name: c for name, c in inside.items() if c is not None}
            made[id(x)] = Tangent[x.primal._primal](named)
            return made[id(x)]
        made[id(x)] = result = Tangent[type(x.primal)]()
        for name, value in x.fields.items():
            c = gradient_for(value, table.get(name, ZERO), of)
            if c is None:
                result._without += (name,)
            else:
                fields[name] = c
        for name, c in table.items():  # set in the table by nobody but a rule
            if name not in x.fields and not is_zero(c):
                fields[name] = unthunk(c)
        result._fields.update(fields)
    return made[id(x)]


@materialise.register(object)
def _(x: Any, x̄: Any, of: Callable[[Any], Any]) -> Any:
    picture = on_entry(x, {})
    if picture is not x:
        return materialise(picture, x̄, reaching(of))
    table = of(x) if has_fields(type(x)) and is_by_identity(x) else None
    if isinstance(table, dict) and not all(map(is_zero, table.values())):
        return Tangent[type(x)]({name: unthunk(c) for name, c in table.items() if not is_zero(c)})
    x̄ = unthunk(x̄)
    return None if is_zero(x̄) else x̄


@materialise.register(Enum)
def _(x: Enum, x̄: Any, of: Callable[[Any], Any]) -> None:
    return None


@on_entry.register(MethodType)
def _(x: MethodType, known: dict[int, Any]) -> Any:
    return on_entry(x.__self__, known)  # which may hold the method


@materialise.register(MethodType)
def _(x: MethodType, x̄: Any, of: Callable[[Any], Any]) -> Any:
    return gradient_for(x.__self__, x̄, of)


del _type, _op, _methods, _cls, _name, _names, _swapped, _first, _second
