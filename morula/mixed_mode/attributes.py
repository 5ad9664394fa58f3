"""Forward mode of attributes, operators of user's classes, copies.

The tangents of an object stand in a table by the names of its attributes; properties, descriptors,
`__getattr__` and operator methods are calls of Python functions, found as in reverse mode.
Tests: tests/mixed_mode/test_language.py
"""

import copy
import operator
from collections.abc import Callable
from enum import Enum
from functools import cached_property, partial
from threading import local
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any
from weakref import ProxyTypes, proxy

import numpy as np

from morula.core import errors, primitives, protected
from morula.core.cotangents import ZERO, is_zero
from morula.core.registry import find_rrule, non_differentiable
from morula.core.traits import is_compiled
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import Both, Unknown, opaque, push, pushes, rules_of, split_call
from morula.mixed_mode.tangents import (
    Pass,
    all_zero,
    box_of,
    set_tangents,
    set_value,
    tangents_if_any,
    value_of,
)
from morula.mixed_mode.transposition import transposed_attribute
from morula.rules import boxes, dicts, late_types, objects, operators
from morula.rules import builtins as of_builtins
from morula.rules.arrays import attributes as of_arrays
from morula.rules.arrays.traits import COMPLEX, FLOATING
from morula.rules.calls import (
    CONTAINERS,
    MISSING,
    BuiltinMethodType,
    bound_method_of,
    entry,
    lookup,
    own_method,
    part,
    works_as_property,
)
from morula.rules.containers import is_native
from morula.rules.foreign import CData, is_in_array
from morula.rules.objects import has_table, is_by_identity
from morula.rules.questions import is_contained

# -- reading ---------------------------------------------------------------------------------------


def table_owner(x: Any) -> Any:
    """By what the tangents of the attributes of an object are found."""
    return x.__dict__ if isinstance(x, CONTAINERS) else x


non_differentiable(table_owner)


def own(run: Pass, x: Any, name: str) -> Any:
    """The tangent of an attribute that an object itself holds."""
    if has_table(x):
        return value_of(run, table_owner(x), name)
    fields = getattr(x, "__dict__", None)  # of a number, say, whose own tangent goes by value
    return value_of(run, fields, name) if type(fields) is dict else ZERO


@pushes(getattr, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """What depends on nothing but the type: nobody can have registered anything for these."""
    x, name, *default = args
    kind = type(x)
    if default or keywords:
        return NotImplemented
    if kind is ModuleType and name in vars(x):
        return getattr(x, name), value_of(run, x, name) if run.table else ZERO
    if kind not in PLAIN:
        return NotImplemented
    if kind is np.ndarray and name in of_arrays.CONSTANTS:
        return getattr(x, name), ZERO
    method = getattr(kind, name, None)
    return (
        (getattr(x, name), tangents[0]) if type(method) is MethodDescriptorType else NotImplemented
    )


PLAIN = {np.ndarray, np.float64, np.complex128, float, complex, list, dict, tuple}


@pushes(getattr)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    x, name, *default = args
    if not default:
        if find_rrule(getattr, (x, name)) is not None:
            y = getattr(x, name)
            return (y, tangents[0]) if objects.is_bound(y, x) else NotImplemented
        return attribute(run, x, tangents[0], name)
    found = attribute_or_none(run, x, tangents[0], name)
    return (default[0], tangents[2]) if found is None else found


def is_field(x: Any, name: str) -> bool:
    """Is it the name of a field of records, which is an attribute of theirs?"""
    return isinstance(x, (np.recarray, np.record)) and name in (x.dtype.names or ())


non_differentiable(is_field)


def attribute_or_none(run: Pass, x: Any, ẋ: Any, name: str) -> Any:
    """`x.name` and its tangent, or None."""
    try:
        return attribute(run, x, ẋ, name)
    except AttributeError:
        return None


def attribute(run: Pass, x: Any, ẋ: Any, name: str) -> Both:
    """`x.name` and its tangent."""
    cls = type(x)
    if cls in ProxyTypes:
        return attribute(run, objects.referent(x), ẋ, name)
    if is_field(x, name):
        return getattr(x, name), push(run, operator.getitem, ZERO, (x, name), (ẋ, ZERO))[1]
    if (name == "flat" and isinstance(x, np.ndarray)) or (name == "base" and cls is np.flatiter):
        return getattr(x, name), ẋ  # the tangent of x.flat is that of x
    if name in of_builtins.PARTS.get(cls, ()):
        return getattr(x, name), part(ẋ, name)
    if cls is CellType:
        return getattr(x, name), box_of(run, x)
    if cls is GeneratorType:
        return objects.attribute(x, name)[0], ZERO
    if cls is FunctionType and name == "__defaults__":
        dots = [value_of(run, x, ("default", i)) for i in range(len(x.__defaults__ or ()))]
        return x.__defaults__, ZERO if all_zero(dots) else tuple(dots)
    if late_types.is_late(cls, name):
        return late_types.late(name, x), ZERO
    rule = objects.attribute_rule(cls, name)
    if rule is not None:
        y = getattr(x, name)
        if run.attribute is not None:
            return y, run.attribute(x, ẋ, name, y)
        if is_zero(ẋ) or is_constant_attribute(x, name):
            return y, ZERO
        if is_linear(x, name) and type(ẋ) is not Unknown:
            return y, run.each(operator.attrgetter(name), ẋ)
        return y, transposed_attribute(run, rule, x, ẋ)
    if isinstance(x, type):
        return class_attribute(run, x, name)
    if isinstance(x, ModuleType):
        of_module = objects.hook_of_module(x, name)
        if of_module is not None:
            return push(run, of_module, ZERO, (name,), (ZERO,))
        y = objects.expose(x) if name == "__dict__" else getattr(x, name)
        return y, value_of(run, x, name)
    if cls is super:
        return super_attribute(run, x, ẋ, name)
    if isinstance(x, Enum) and type(lookup(cls, name)) is not FunctionType:
        return member_attribute(run, x, ẋ, name)
    custom = lookup(cls, "__getattribute__")
    hook = lookup(cls, "__getattr__")
    if hook is MISSING:
        return through(run, custom, x, ẋ, name)
    found = through_or_none(run, custom, x, ẋ, name)
    return push(run, hook, ZERO, (x, name), (ẋ, ZERO)) if found is None else found


def is_linear(x: Any, name: str) -> bool:
    """Is it an attribute of plain numbers and arrays that their tangents have alike?"""
    if type(x) is np.ndarray:
        linear = name in ("real", "imag") or (name == "T" and x.ndim > 0)
        return linear and x.dtype.kind in "fc"
    return name in ("real", "imag") and type(x) in (float, complex, *FLOATING, *COMPLEX)


def is_constant_attribute(x: Any, name: str) -> bool:
    """Is it an attribute of arrays and their entries that has no derivative?"""
    return name in of_arrays.CONSTANTS and isinstance(x, (np.ndarray, np.generic))


non_differentiable(is_linear, is_constant_attribute)


def through(run: Pass, custom: Any, x: Any, ẋ: Any, name: str) -> Both:
    """`x.name` by the `__getattribute__` of the class."""
    if type(custom) is FunctionType:
        return push(run, custom, ZERO, (x, name), (ẋ, ZERO))
    if type(x) in (MethodType, BuiltinFunctionType, BuiltinMethodType, MethodWrapperType):
        return getattr(x, name), ẋ if name == "__self__" else ZERO
    if type(x) is partial and name in ("func", "args", "keywords"):
        return getattr(x, name), part(ẋ, name)
    if isinstance(x, local):
        return getattr(x, name), unknown(x, ẋ, name)
    if is_compiled(type(x)) and lookup(type(x), name) is MISSING:
        return getattr(x, name), own(run, x, name)
    return plain_attribute(run, x, ẋ, name)


def through_or_none(run: Pass, custom: Any, x: Any, ẋ: Any, name: str) -> Any:
    """The same, or None: then `__getattr__` is asked."""
    try:
        return through(run, custom, x, ẋ, name)
    except AttributeError:
        return None


@pushes(FunctionType.__get__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    """The method of an object; its tangent is that of the object."""
    return split_call(FunctionType.__get__, args, keywords), tangents[1]


@pushes(object.__getattribute__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return plain_attribute(run, args[0], tangents[0], args[1])


def unknown(x: Any, ẋ: Any, name: str) -> Any:
    """The tangent of an attribute of a compiled object: an error where it is used, if there is one."""
    if is_zero(ẋ):
        return ZERO
    return Unknown(errors.no_rule(getattr, (x, name), reason=f"for the attribute {name!r}"))


def plain_attribute(run: Pass, x: Any, ẋ: Any, name: str) -> Both:
    """`object.__getattribute__(x, name)`, step by step."""
    cls = type(x)
    found = lookup(cls, name)
    kind = type(found)
    if found is MISSING:
        return object.__getattribute__(x, name), own(run, x, name)
    if works_as_property(found, "__get__") and found.fget is not None:
        return push(run, found.fget, ZERO, (x,), (ẋ,))
    if kind is GetSetDescriptorType or kind is MemberDescriptorType:
        return compiled_attribute(run, x, ẋ, name, kind)
    if kind is cached_property:
        return cached_attribute(run, x, ẋ, name, found)
    if kind is objects._NAMED_FIELD and isinstance(x, tuple):
        i = found.__reduce__()[1][0]
        return tuple.__getitem__(x, i), entry(ẋ, i)
    get = lookup(kind, "__get__")
    if type(get) is FunctionType and (objects.is_data(kind) or not objects.holds(x, name)):
        return push(run, get, ZERO, (found, x, cls), (ZERO, ẋ, ZERO))
    y = object.__getattribute__(x, name)
    if objects.is_bound(y, x):
        return y, ẋ
    if (y is found and not objects.holds(x, name)) or kind in (staticmethod, classmethod):
        return y, class_attribute(run, cls, name)[1]
    if get is not MISSING and not objects.holds(x, name):
        return y, unknown(x, ẋ, name)
    return y, own(run, x, name)


def compiled_attribute(run: Pass, x: Any, ẋ: Any, name: str, kind: type) -> Both:
    """A slot, `__dict__`, or an attribute of a compiled class."""
    if name == "__dict__":
        return objects.expose(x), ZERO
    y = object.__getattribute__(x, name)
    if name in objects.CONSTANT_ATTRIBUTES:
        return y, ZERO
    if kind is MemberDescriptorType or isinstance(x, BaseException):
        return y, own(run, x, name)
    lost = tangents_if_any(run, x)  # of an object of a compiled class, as ctypes has them
    return y, lost if type(lost) is Unknown else unknown(x, is_in_array(x) or ẋ, name)


def cached_attribute(run: Pass, x: Any, ẋ: Any, name: str, found: Any) -> Both:
    """A `functools.cached_property`: computed once, then an attribute of the object."""
    is_kept, by_identity = name in x.__dict__, is_by_identity(x)
    if is_kept and (by_identity or is_zero(ẋ)):
        return x.__dict__[name], own(run, x, name) if by_identity else ZERO
    y, ẏ = push(run, found.func, ZERO, (x,), (ẋ,))
    y = x.__dict__.setdefault(name, y)
    if not by_identity:
        return y, ẏ
    set_value(run, table_owner(x), name, ẏ)
    return y, ẏ


def class_attribute(run: Pass, cls: type, name: str) -> Both:
    """An attribute of a class."""
    if name == "__dict__":
        return objects.expose(cls), ZERO
    meta = type(cls)
    custom, hook = lookup(meta, "__getattribute__"), lookup(meta, "__getattr__")
    missing = lookup(meta, name) is MISSING and lookup(cls, name) is MISSING
    for method, asked in ((custom, True), (hook, missing)):
        if asked and type(method) is FunctionType:
            return push(run, method, ZERO, (cls, name), (ZERO, ZERO))
    return plain_class_attribute(run, cls, name)


@pushes(type.__getattribute__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return plain_class_attribute(run, *args)


def plain_class_attribute(run: Pass, cls: type, name: str) -> Both:
    """`type.__getattribute__(cls, name)`."""
    of_meta = lookup(type(cls), name)
    if works_as_property(of_meta, "__get__") and of_meta.fget is not None:
        return push(run, of_meta.fget, ZERO, (cls,), (ZERO,))
    found = lookup(cls, name)
    get = lookup(type(found), "__get__")
    if type(get) is FunctionType:
        return push(run, get, ZERO, (found, None, cls), (ZERO, ZERO, ZERO))
    y = type.__getattribute__(cls, name)
    for base in cls.__mro__:
        if name in base.__dict__:
            return y, value_of(run, base, name)
    return y, ZERO


def member_attribute(run: Pass, x: Enum, ẋ: Any, name: str) -> Both:
    """An attribute of a member of an enumeration."""
    found = lookup(type(x), name)
    if objects.is_made(type(x)):
        if name in ("value", "_value_"):
            return x.value, value_of(run, type(x), x.name)
        if works_as_property(found, "__get__") and found.fget is not None:
            return push(run, found.fget, ZERO, (x,), (ẋ,))
        if objects.holds(x, name) and name not in objects.MEMBER_CONSTANTS:
            if is_by_identity(x):
                return getattr(x, name), value_of(run, x, name)
            raise errors.no_rule(getattr, (x, name), reason=f"for the attribute {name!r}")
    return getattr(x, name), ZERO


def super_attribute(run: Pass, s: Any, ẋ: Any, name: str) -> Both:
    """`super().name`; the tangent of a method is that of the object."""
    obj, cls = s.__self__, s.__self_class__
    mro = cls.__mro__
    for base in mro[mro.index(s.__thisclass__) + 1 :]:
        if name in base.__dict__:
            found = base.__dict__[name]
            if works_as_property(found, "__get__") and not isinstance(obj, type):
                return push(run, found.fget, ZERO, (obj,), (ẋ,))
            if isinstance(obj, type):
                break
            if type(found) is cached_property:
                return cached_attribute(run, obj, ẋ, name, found)
            get = lookup(type(found), "__get__")
            if type(get) is FunctionType:
                return push(run, get, ZERO, (found, obj, cls), (ZERO, ẋ, ZERO))
            break
    return getattr(s, name), ẋ


@pushes(super)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return super(*args), tangents[-1] if args else ZERO


def _method_kind(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return fn(*args), tangents[0]


for _fn in (staticmethod, classmethod):
    _method_kind(_fn)


@pushes(vars)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return objects.variables_of(vars, args, {})[0], ZERO


@pushes(proxy)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """What stands for an object: the tangents are in the object's table."""
    return split_call(proxy, args, keywords), ZERO


# -- setting and deleting --------------------------------------------------------------------------


@pushes(setattr)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if rules_of(setattr, args, ())[0] is not None:
        return NotImplemented
    if type(args[0]) in ProxyTypes:
        args = (objects.referent(args[0]), *args[1:])
    custom = own_method(type(args[0]), "__setattr__")
    if custom is not MISSING:
        return push(run, custom, ZERO, args, tangents)[0], ZERO
    bound = bound_method_of(args[0], "__setattr__")
    if bound is not MISSING:
        return push(run, bound, ZERO, args[1:], tangents[1:])[0], ZERO
    return set_attribute(run, args, tangents, setattr)


def _setter(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return set_attribute(run, args, tangents, fn)


for _fn in (object.__setattr__, type.__setattr__, ModuleType.__setattr__):
    _setter(_fn)


def set_attribute(run: Pass, args: Args, tangents: Args, store: Any) -> Both:
    """`x.name = value`."""
    x, name, value = args
    if is_field(x, name):
        return push(run, operator.setitem, ZERO, args, tangents)
    if type(x) is CellType and name == "cell_contents":
        return push(run, primitives.set_cell, ZERO, (x, value), (ZERO, tangents[2]))
    found = lookup(type(x), name)
    kind = type(found)
    if works_as_property(found, "__set__") and found.fset is not None:
        push(run, found.fset, ZERO, (x, value), (tangents[0], tangents[2]))
        return None, ZERO
    method = MISSING if found is MISSING else lookup(kind, "__set__")
    if type(method) is FunctionType:
        push(run, method, ZERO, (found, x, value), (ZERO, tangents[0], tangents[2]))
        return None, ZERO
    if isinstance(x, np.ndarray):
        if hasattr(np.ndarray, name) or not is_zero(tangents[2]):
            raise errors.changed_in_place(store, x)
        return store(x, name, value), ZERO
    if isinstance(x, CData) and found is not MISSING:
        return opaque(run, store, ZERO, args, tangents, ())
    if isinstance(x, FunctionType) and name in objects.DEFAULTS:
        set_defaults(run, x, name, value, tangents[2])
        return None, ZERO
    if name == "__dict__" and objects.can_be_rebound(x):
        rebind(run, x, value, store)
        return None, ZERO
    if isinstance(x, (type, ModuleType)):
        objects.assign(x, name)
    store(x, name, value)
    if objects.has_no_table(x):
        if not is_zero(tangents[2]):
            raise dicts.factory_by_value(value)
        return None, ZERO
    if is_by_identity(x):
        set_value(run, table_owner(x), name, tangents[2])
    elif not is_zero(tangents[2]):
        raise errors.no_rule(store, args)
    return None, ZERO


def rebind(run: Pass, x: Any, fields: dict[str, Any], store: Any) -> None:
    """`x.__dict__ = fields`: the tangents of the old dict stay with it."""
    before, known = x.__dict__, tangents_if_any(run, x)
    store(x, "__dict__", fields)
    objects.note_rebound(x, before)
    if known is None:
        return
    set_tangents(run, before, known)
    for name in objects.slots_of(type(x)):
        set_value(run, x, name, known.get(name, ZERO))


def set_defaults(run: Pass, fn: FunctionType, name: str, values: Any, ẋ: Any) -> None:
    """`fn.__defaults__ = values` or `fn.__kwdefaults__ = values`."""
    setattr(fn, name, values)
    boxes.remember(fn)
    if name == "__defaults__":
        for i in range(len(values or ())):
            set_value(run, fn, ("default", i), entry(ẋ, i))


@pushes(delattr)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    custom = own_method(type(args[0]), "__delattr__")
    if custom is not MISSING:
        return push(run, custom, ZERO, args, tangents)
    return delete_attribute(run, args[0], args[1], delattr)


@pushes(object.__delattr__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return delete_attribute(run, args[0], args[1], object.__delattr__)


def delete_attribute(run: Pass, x: Any, name: str, delete: Any) -> Both:
    """`del x.name`."""
    found = lookup(type(x), name)
    if works_as_property(found, "__delete__") and found.fdel is not None:
        return push(run, found.fdel, ZERO, (x,), (ZERO,))
    remover = lookup(type(found), "__delete__")
    if type(remover) is FunctionType:
        return push(run, remover, ZERO, (found, x), (ZERO, ZERO))
    delete(x, name)
    if is_by_identity(x):
        set_value(run, table_owner(x), name, ZERO)
    return None, ZERO


# -- the operators of classes that define them in Python -------------------------------------------

PLAIN = (int, float, complex, np.ndarray, np.generic, str, list, tuple, dict, set, type)


def has_rule(op: Any, args: Args, keywords: Names) -> bool:
    """Is there a rule for these operands, which says more than the code of a class does?"""
    return rules_of(op, args, keywords)[0] is not None


non_differentiable(has_rule)


def binary_operator(op: Any) -> Callable[..., Any]:
    """`a op b` where at least one of the classes says in Python what it is."""

    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if type(args[0]) in PLAIN and type(args[1]) in PLAIN:
            return NotImplemented
        methods = objects.attempts(op, *args)
        if not any([objects.is_python(m) for m, _ in methods]) or has_rule(op, args, keywords):
            return NotImplemented
        for method, swapped in methods:
            values, dots = (args[::-1], tangents[::-1]) if swapped else (args, tangents)
            y, ẏ = push(run, method, ZERO, values, dots)
            if objects.is_implemented(y):
                return y, ẏ
        return objects.nobody_says(op, *args), ZERO

    return meaning


def unary_operator(op: Any) -> Callable[..., Any]:
    """`-a` and the like, by the method of the class."""
    names = operators.METHODS.get(op) or of_builtins.METHODS[op]

    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if not args or type(args[0]) in PLAIN:
            return NotImplemented
        for name in names:
            if name is not None and objects.is_python(objects.method_of(type(args[0]), name)):
                if has_rule(op, args, keywords):
                    return NotImplemented
                return push(
                    run, objects.method_of(type(args[0]), name), ZERO, args, tangents, keywords
                )
        return NotImplemented

    return meaning


for _op, _methods in operators.METHODS.items():
    _kind = unary_operator if _methods[1] is None else binary_operator
    pushes(_op)(_kind(_op))
for _op in (abs, float, complex):
    pushes(_op)(unary_operator(_op))


def said_by_class(name: str) -> Callable[..., Any]:
    """What a class says by one method."""

    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        method = objects.method_of(type(args[0]), name)
        return push(run, method, ZERO, args, tangents, keywords)

    return meaning


def answered_by(op: Any, names: tuple[str, ...]) -> Callable[..., Any]:
    """What a class answers by a method, within what Python lets it answer."""

    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        cls = type(args[0])
        name = objects.first_of(cls, names)
        method = objects.method_of(cls, name)
        if not objects.is_python(method):
            return NotImplemented
        asked = objects.asked_with(name, args)
        dots = (*tangents, ZERO)[: len(asked)]
        answer, _ = push(run, method, ZERO, asked, dots)
        return op(objects.in_place_of(cls, name, answer), *args[1:]), ZERO

    return meaning


def by_code(function: Any) -> Callable[..., Any]:
    """What a function in Python says."""
    return lambda run, args, tangents, keywords: push(run, function, ZERO, args, tangents, keywords)


for _op, _names in objects.ANSWERED_BY.items():
    pushes(_op)(answered_by(_op, _names))
for _op, (_function, _) in objects.IN_PYTHON.items():
    pushes(_op)(by_code(_function))
pushes(operator.contains)(answered_by(operator.contains, ("__contains__",)))


@pushes(operator.contains)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if objects.is_searched(type(args[0])):
        return push(run, is_contained, ZERO, args, tangents)
    return NotImplemented


@pushes(hasattr)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    try:
        attribute(run, args[0], tangents[0], args[1])
    except AttributeError:
        return False, ZERO
    return True, ZERO


for _op, _name in objects.SAID_BY_CLASS.items():
    pushes(_op)(said_by_class(_name))


@pushes(pow)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if len(args) == 2 and not keywords:
        return push(run, operator.pow, ZERO, args, tangents)
    return NotImplemented


@pushes(divmod)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    for method, i, j in (("__divmod__", 0, 1), ("__rdivmod__", 1, 0)):
        found = objects.method_of(type(args[i]), method)
        if objects.is_python(found):
            values, dots = (args[i], args[j]), (tangents[i], tangents[j])
            y, ẏ = push(run, found, ZERO, values, dots)
            if objects.is_implemented(y):
                return y, ẏ
    return NotImplemented


def array_operator(op: Any, swapped: bool) -> Callable[..., Any]:
    """`np.ndarray.__add__` and the like: the operator."""

    def meaning(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if keywords or not all(isinstance(a, objects.ARRAY_LIKE) for a in args):
            return NotImplemented
        if swapped:
            args, tangents = args[::-1], tangents[::-1]
        return push(run, op, ZERO, args, tangents)

    return meaning


for _op, _methods in operators.METHODS.items():
    for _cls in (np.ndarray, np.generic):
        for _name, _swapped in ((_methods[0], False), (_methods[1], True)):
            if _name in _cls.__dict__ and not (_swapped and _methods[2]):
                pushes(_cls.__dict__[_name])(array_operator(_op, _swapped))


@pushes(operator.delitem)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    method = own_method(type(args[0]), "__delitem__")
    if method is not MISSING:
        return push(run, method, ZERO, args, tangents)
    if isinstance(args[0], dict) and is_native(args[0], "__delitem__"):
        return push(run, dict.__delitem__, ZERO, args, tangents)
    return NotImplemented


# -- exceptions, namespaces, copies ----------------------------------------------------------------


def set_made_of(run: Pass, error: Any, values: Args, tangents: Args, n: int) -> None:
    """An exception was made of these values, the first n of which are its `args`."""
    if all_zero(tangents):
        return
    set_value(run, error, "args", tuple(tangents[:n]))
    for name, i in objects.exception_fields(error, values).items():
        set_value(run, error, name, tuple(tangents[:n]) if i == objects.ALL else tangents[i])


def _exception(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        y = split_call(fn, args, keywords)
        error = args[0] if y is None else y
        set_made_of(run, error, args[1:], tangents[1:], len(args) - len(keywords) - 1)
        return y, ZERO


_makers = {
    id(cls.__dict__[name]): cls.__dict__[name]
    for cls in objects.EXCEPTIONS
    for name in ("__new__", "__init__")
    if name in cls.__dict__
}
for _fn in _makers.values():
    _exception(_fn)


@pushes(protected.hold)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    n = 0 if type(args[0]) is AttributeError else 1
    set_made_of(run, args[0], args[1:], tangents[1:], n)
    return split_call(protected.hold, args, keywords), ZERO


@pushes(copy.copy)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    (x,) = args
    method = lookup(type(x), "__copy__")
    if type(method) is FunctionType:
        return push(run, method, ZERO, args, tangents)
    if objects.has_own_state(x):
        return push(run, objects.copy_by_code, ZERO, args, tangents)
    y = copy.copy(x)
    if y is not x and is_by_identity(x):
        copy_tangents(run, x, y)
        return y, ZERO
    return y, tangents[0]


@pushes(object.__reduce_ex__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    x, protocol = args
    if protocol < 2 or not (is_by_identity(x) or objects.has_own_state(x)):
        return NotImplemented
    return push(run, objects.reduced, ZERO, args, tangents)


@pushes(copy.deepcopy)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if keywords == ("memo", "x"):
        args, tangents = args[::-1], tangents[::-1]
    x = args[0]
    if objects.has_own_copy(x):
        return push(run, objects.deepcopy_by_code, ZERO, args, tangents)
    memo = args[1] if len(args) > 1 and args[1] is not None else {}
    known = len(memo.get(id(memo), ()))
    y = copy.deepcopy(x, memo)
    for old, new in objects.copied(memo, known):
        copy_tangents(run, old, new)
    return y, tangents[0]


def copy_tangents(run: Pass, old: Any, new: Any) -> None:
    """A copy has the tangents of the original."""
    tangents = tangents_if_any(run, old)
    if tangents:
        set_tangents(run, new, tangents.copy())


del _op, _methods, _kind, _cls, _name, _names, _swapped, _fn, _function
