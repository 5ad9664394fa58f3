"""Rules of class definitions: the body fills a namespace, the metaclass makes the class of it.

The cotangents of a class's attributes are in the table of the class; where it was made they go to the
namespace, and from there to what the body has bound.
Tests: tests/rules/test_classes.py
"""

import builtins
import dataclasses
import enum
import types
from types import FunctionType
from typing import Any

from morula.core.extend import (
    NONE,
    ZERO,
    NotSpecialised,
    adjoint_of,
    body_code,
    call,
    no_tangent,
    non_differentiable,
    rewrites,
    rrule,
    unsupported,
)
from morula.rules.boxes import missing_arguments, remember
from morula.rules.calls import lookup, serves
from morula.rules.objects import (
    assign,
    give,
    is_part_of_python,
    move,
    note_made,
    note_values,
    table_of,
    take,
)


def build_class(body: Any, name: str, *bases: Any, **keywords: Any) -> Any:
    """What `class name(*bases, **keywords):` does."""
    resolved = types.resolve_bases(bases)
    metaclass: Any = metaclass_of(resolved, keywords)
    keywords = {key: value for key, value in keywords.items() if key != "metaclass"}
    prepare = prepared_in_python(metaclass)
    if prepare is None:
        names = namespace_of(metaclass, name, resolved, keywords)
    else:
        names = prepare(name, resolved, **keywords)
    if resolved is not bases:
        names["__orig_bases__"] = bases
    as_function(body)(names)
    if makes_plainly(metaclass):
        cls = make_plainly(metaclass, name, resolved, names, **keywords)
    elif isinstance(metaclass, type) and issubclass(metaclass, enum.EnumType):
        cls = make_enumeration(metaclass, name, resolved, names, keywords)
    else:
        cls = metaclass(name, resolved, names, **keywords)
    check_class_cell(name, cls, names)
    return cls


def metaclass_of(bases: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The metaclass that derives from all others, or the callable that stands for one."""
    found = keywords.get("metaclass", type(bases[0]) if bases else type)
    for base in bases if isinstance(found, type) else ():
        if issubclass(type(base), found):
            found = type(base)
        elif not issubclass(found, type(base)):
            raise TypeError(
                "metaclass conflict: the metaclass of a derived class must be a (non-strict) "
                "subclass of the metaclasses of all its bases"
            )
    return found


def prepared_in_python(metaclass: Any) -> Any:
    """The `__prepare__` of a metaclass, if it is the user's."""
    prepare = getattr(metaclass, "__prepare__", None)
    ours = isinstance(prepare, (types.MethodType, FunctionType))
    return prepare if ours and not is_part_of_python(prepare) else None


def namespace_of(
    metaclass: Any, name: str, bases: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """The namespace that the body of a class begins with."""
    prepare = getattr(metaclass, "__prepare__", None)
    return {} if prepare is None else prepare(name, bases, **keywords)


@rrule(type, by_identity=True)
def _(name: str, bases: tuple, names: dict):
    """A class that is made by calling `type`."""
    cls, back = call(make_class, name, bases, names)

    def type_pullback(ȳ):
        return back(ȳ)[1:]

    return cls, type_pullback


@rewrites
def _(s: Any) -> bool:
    """Functions that make classes so go by the general path."""
    if any(c.primitive is type and len(c.args) > 1 for c in s.ir.calls()):
        raise NotSpecialised("a class is made")
    return False


def make_class(name: str, bases: tuple[Any, ...], names: dict[str, Any]) -> Any:
    """`type(name, bases, names)`; of the bases, the metaclass that derives from all others."""
    metaclass = metaclass_of(bases, {})
    if makes_plainly(metaclass):
        return make_plainly(metaclass, name, bases, names)
    return metaclass(name, bases, names)


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


def make_plainly(metaclass: Any, *args: Any, **keywords: Any) -> Any:
    """A class, as the `__call__` of `type` makes it."""
    cls = type.__new__(metaclass, *args, **keywords)
    metaclass.__init__(cls, *args, **keywords)
    return cls


def makes_plainly(metaclass: Any) -> bool:
    """Does it leave making a class to `type`?"""
    return (
        isinstance(metaclass, type)
        and lookup(metaclass, "__new__") is type.__dict__["__new__"]
        and lookup(type(metaclass), "__call__") is type.__dict__["__call__"]
    )


non_differentiable(
    types.resolve_bases, metaclass_of, prepared_in_python, namespace_of, as_function,
    check_class_cell, makes_plainly,
)  # fmt: skip


@serves(builtins.__build_class__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(build_class, *args, **kwargs)


@serves(type.__new__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = args[3]
    naming = [key for key, value in names.items() if type(set_name_of(value)) is FunctionType]
    cls = without_hooks(args, naming, kwargs)
    note_made(cls)
    for key in names:
        assign(cls, key)
    backs = []
    for key in naming:
        type.__setattr__(cls, key, names[key])
    for key in naming:
        backs.append(call(set_name_of(names[key]), names[key], cls, key)[1])
    hook, hook_back = hook_of(cls), None
    if hook is not None:
        _, hook_back = call(hook, cls, **kwargs)

    def new_class_pullback(ȳ: Any) -> tuple[Any, ...]:
        named = [ZERO] * len(kwargs)
        if hook_back is not None:
            _, _, *named = hook_back(ZERO)
        for back in reversed(backs):
            back(ZERO)
        move(table_of(cls), adjoint_of(names))
        return (NONE, *[ZERO] * len(args), *named)

    return cls, new_class_pullback


def without_hooks(args: tuple[Any, ...], naming: list[str], keywords: dict[str, Any]) -> Any:
    """`type.__new__`, but for the hooks that are written in Python, which are called afterwards.

    In the place of those descriptors that want to know their names stands None. An
    `__init_subclass__` is hidden by one of another base, which the class loses again.
    """
    metaclass, name, bases, names = args
    given = {**names, **dict.fromkeys(naming)}
    if not has_hooks(bases):
        return type.__new__(metaclass, name, bases, given, **keywords)
    for hiding in those_hiding(bases):
        cls: Any = type.__new__(metaclass, name, (hiding, *bases), given)
        if takes_bases(cls, bases):
            return cls
    raise unsupported("an `__init_subclass__` of such a base", f"the definition of {name}")


def has_hooks(bases: tuple[Any, ...]) -> bool:
    """Does a class of these bases run an `__init_subclass__` that is not hidden yet?"""
    return not any(base in HIDING for base in bases) and any(hook_of(base, 0) for base in bases)


def takes_bases(cls: Any, bases: tuple[Any, ...]) -> bool:
    """Give a class other bases, if its objects are laid out as theirs."""
    try:
        type.__dict__["__bases__"].__set__(cls, bases)
    except TypeError:
        return False
    return True


class _Hidden:
    __slots__ = ()

    def __init_subclass__(cls, **keywords: Any) -> None: ...


class _HiddenWithFields:
    def __init_subclass__(cls, **keywords: Any) -> None: ...


class _HiddenWithFieldsAdded(_Hidden):
    pass


HIDING = (_HiddenWithFields, _Hidden, _HiddenWithFieldsAdded)


def those_hiding(bases: tuple[Any, ...]) -> list[type]:
    """The classes that hide the hooks of these, and whose objects have a `__dict__` if theirs have."""
    with_fields = any(base.__dictoffset__ for base in bases)
    return [hiding for hiding in HIDING if bool(hiding.__dictoffset__) == with_fields]


def hook_of(cls: type, first: int = 1) -> Any:
    """The `__init_subclass__` that runs for a class, if it is written in Python by a user."""
    for base in cls.__mro__[first:]:
        if base in HIDING:
            return None
        found = base.__dict__.get("__init_subclass__")
        if found is not None:
            hook = getattr(found, "__func__", found)
            return hook if type(hook) is FunctionType and not is_part_of_python(hook) else None
    return None


def set_name_of(value: Any) -> Any:
    """The `__set_name__` of a descriptor, or MISSING."""
    return lookup(type(value), "__set_name__")


non_differentiable(set_name_of, has_hooks, takes_bases, those_hiding, hook_of)


def make_enumeration(
    metaclass: Any, name: str, bases: tuple[Any, ...], names: Any, keywords: dict[str, Any]
) -> Any:
    """An enumeration with the members that its namespace names."""
    return metaclass(name, bases, names, **keywords)


@serves(make_enumeration)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = args[3]
    values = dict(names)
    cls = fn(*args)
    note_made(cls)
    note_values(cls, values)
    for key in values:
        assign(cls, key)

    def make_enumeration_pullback(ȳ: Any) -> tuple[Any, ...]:
        move(table_of(cls), adjoint_of(names))
        return (NONE, *[ZERO] * len(args))

    return cls, make_enumeration_pullback


non_differentiable(type.__init__)


no_tangent(type(dataclasses._HAS_DEFAULT_FACTORY))  # type: ignore[attr-defined]


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
