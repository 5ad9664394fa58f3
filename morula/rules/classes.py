"""Rules of class definitions: the body fills a namespace, the metaclass makes the class of it.

The cotangents of a class's attributes are in the table of the class; where it was made they go to the
namespace, and from there to what the body has bound.
Tests: tests/rules/test_classes.py
"""

import builtins
import dataclasses
import enum
import types
from functools import partial
from operator import is_, itemgetter
from types import FunctionType
from typing import Any

from morula.core.extend import (
    NONE,
    ZERO,
    NotSpecialised,
    adjoint_of,
    body_code,
    call,
    fixed_types,
    no_tangent,
    non_differentiable,
    primitives,
    rewrites,
    rrule,
    unsupported,
)
from morula.rules.boxes import missing_arguments, remember
from morula.rules.calls import lookup, runs_body, serves, together
from morula.rules.objects import (
    assign,
    give,
    is_assigned,
    is_part_of_python,
    move,
    note_followed,
    note_made,
    note_values,
    table_of,
    take,
    unknown,
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


non_differentiable(
    primitives.type_variable, primitives.parameter_specification, primitives.type_variable_tuple,
    primitives.generic_base, primitives.type_alias, primitives.bounded_type_variable,
    primitives.constrained_type_variable, primitives.set_type_parameters, primitives.set_default_type,
)  # fmt: skip
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
    initialised: list[Any] = []

    def initialise(init: Any, member: Any, *given: Any) -> None:
        note_followed(type(member))
        initialised.append((member, given, call(init, member, *given)[1]))

    cls = initialising(initialise, fn, args)
    note_made(cls)
    note_values(cls, values)
    for key in values:
        assign(cls, key)

    def make_enumeration_pullback(ȳ: Any) -> tuple[Any, ...]:
        for member, given, back in reversed(initialised):
            of_value = value_given(member, values.get(member._name_), given)
            give(table_of(cls), member._name_, of_value(back(ZERO)[2:]))
        move(table_of(cls), adjoint_of(names))
        return (NONE, *[ZERO] * len(args))

    return cls, make_enumeration_pullback


def new_enumeration(metaclass: Any, name: str, bases: Any, names: Any, /, **keywords: Any) -> Any:
    """`EnumType.__new__`, by which `Enum("Name", members)` makes a class."""
    new = partial(enum.EnumType.__new__, metaclass)
    return make_enumeration(new, name, bases, names, keywords)


@serves(enum.EnumType.__new__)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(new_enumeration, *args, **kwargs)


runs_body(new_enumeration, enum.EnumType.__new__)


def initialising(initialise: Any, make: Any, args: tuple[Any, ...]) -> Any:
    """An enumeration; `initialise(init, member, *values)` runs an `__init__` of the user's."""
    bases, names = args[2:4]
    init = init_of_members(bases, names)
    if init is None:
        return make(*args)
    own = "__init__" in names

    def __init__(self: Any, *values: Any) -> None:  # noqa: N807
        initialise(init, self, *values)

    dict.__setitem__(names, "__init__", __init__)
    cls = make(*args)
    if own:
        dict.__setitem__(names, "__init__", init)
        type.__setattr__(cls, "__init__", init)
    else:
        dict.__delitem__(names, "__init__")
        type.__delattr__(cls, "__init__")
    return cls


def init_of_members(bases: tuple[Any, ...], names: Any) -> Any:
    """The `__init__` of the user's that members of an enumeration get, if no `__new__` makes them."""
    scopes = [names, *[vars(cls) for base in bases for cls in base.__mro__]]
    if any(is_of_user(scope.get("__new__")) for scope in scopes):
        return None
    found = next((scope["__init__"] for scope in scopes if "__init__" in scope), None)
    return found if is_of_user(found) else None


def is_of_user(fn: Any) -> bool:
    """Is it a function of the user's?"""
    fn = getattr(fn, "__func__", fn)
    return type(fn) is FunctionType and not is_part_of_python(fn)


def value_given(member: Any, value: Any, given: tuple[Any, ...]) -> Any:
    """How the cotangents of what `__init__` was given make that of the value of a member."""
    items = are_items(value, given)
    if items is None:
        return lambda bars: unknown(member, "value")(together(bars))
    return together if items else itemgetter(0)


def are_items(value: Any, given: tuple[Any, ...]) -> bool | None:
    """Is a value given item by item, or as a whole? None: it is made of it otherwise."""
    if len(given) == 1 and given[0] is value:
        return False
    same = type(value) is tuple and len(value) == len(given) and all(map(is_, value, given))
    return True if same else None


non_differentiable(init_of_members, are_items)
non_differentiable(type.__init__)


no_tangent(type(dataclasses._HAS_DEFAULT_FACTORY))  # type: ignore[attr-defined]
fixed_types.add(type(dataclasses._HAS_DEFAULT_FACTORY))  # type: ignore[attr-defined]


@serves(dataclasses._process_class)  # type: ignore[attr-defined]
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    cls = args[0]
    written = fields_written(cls)
    y = fn(*args, **kwargs)
    new, defaults = new_fields(y), default_values(y)
    copy_assigned(cls, y)

    def dataclass_pullback(ȳ: Any) -> tuple[Any, ...]:
        for field, (holder, key) in defaults:
            give(adjoint_of(field), "default", take(adjoint_of(holder), key))
        if y is not cls:
            move(table_of(y), table_of(cls))
        for field in new:
            name, of_field = field.name, adjoint_of(field)
            if name in written:
                give(of_field, "default", take(table_of(cls), name))
            else:
                give(table_of(class_with(cls, name)), name, take(of_field, "default"))
        return (NONE, *[ZERO] * (len(args) + len(kwargs)))

    return y, dataclass_pullback


def fields_written(cls: type) -> set[str]:
    """The fields of a data class to be that its body spells out by `field(...)`."""
    return {name for name, value in vars(cls).items() if type(value) is dataclasses.Field}


def new_fields(cls: Any) -> list[Any]:
    """The fields that a data class has not got from its bases."""
    old = [vars(base).get(FIELDS, {}).values() for base in cls.__mro__[1:]]
    inherited = {id(field) for fields in old for field in fields}
    return [field for field in getattr(cls, FIELDS).values() if id(field) not in inherited]


FIELDS = "__dataclass_fields__"


def default_values(cls: Any) -> list[tuple[Any, Any]]:
    """The fields that `__init__` has default values for, and where those are."""
    if type(cls.__init__) is not FunctionType:
        return []
    remember(cls.__init__)
    fields = getattr(cls, FIELDS)
    missing = missing_arguments(cls.__init__, 1, {})
    return [(fields[name], place) for name, place in missing.items() if name in fields]


def copy_assigned(cls: type, new: type) -> None:
    """The class with slots that is made in the place of another has its attributes."""
    if new is not cls:
        note_made(new)
        for name in vars(cls):
            if is_assigned(cls, name):
                assign(new, name)


def class_with(cls: type, name: str) -> type:
    """The class that has the attribute of a class."""
    return next((base for base in cls.__mro__ if name in vars(base)), cls)


non_differentiable(fields_written, new_fields, default_values, copy_assigned, class_with)
