"""The primitives that bytecode stands for and no module of Python's has: displays, cells, iteration.

Each is an ordinary callable, so that rules can be registered for it; `emit` turns a call of one
back into the instruction that it came from.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from morula.core import errors
from morula.core.cotangents import ZERO


class _Sentinel:
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    @property
    def __name__(self) -> str:
        return self._name


DONE = _Sentinel("DONE")  # what `advance` gives at the end of an iterator
UNDEFINED = _Sentinel("UNDEFINED")  # what a local variable holds before it is bound
NULL = _Sentinel("NULL")  # CPython's filler below a callable on the stack


def build_tuple(*items: Any) -> tuple[Any, ...]:
    """`(a, b, ...)`."""
    return items


def build_named(cls: Any, *items: Any) -> Any:
    """A named tuple of these items."""
    return tuple.__new__(cls, items)


def build_list(*items: Any) -> list[Any]:
    """`[a, b, ...]`."""
    return [*items]


def build_set(*items: Any) -> set[Any]:
    """`{a, b, ...}`."""
    return {*items}


def build_map(*items: Any) -> dict[Any, Any]:
    """`{k: v, ...}` from k, v, k, v, ..."""
    return dict(zip(items[::2], items[1::2], strict=True))


def build_string(*parts: str) -> str:
    """The pieces of an f-string, joined."""
    return "".join(parts)


def format_value(value: Any, conversion: str, spec: Any) -> str:
    """One `{value!conversion:spec}` of an f-string."""
    if conversion:
        convert: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}
        value = convert[conversion](value)
    return format(value, spec)


def list_append(items: list[Any], item: Any) -> None:
    """Put an item at the end of a list under construction (comprehensions, tapes)."""
    items.append(item)


def list_extend(items: list[Any], more: Any) -> None:
    """`[*items, *more]` for a list under construction."""
    items.extend(more)


def set_add(items: set[Any], item: Any) -> None:
    """Put an item into a set under construction."""
    items.add(item)


def set_update(items: set[Any], more: Any) -> None:
    """`{*items, *more}` for a set under construction."""
    items.update(more)


def map_add(items: dict[Any, Any], key: Any, value: Any) -> None:
    """Put an item into a dict under construction."""
    items[key] = value


def dict_update(items: dict[Any, Any], more: Any) -> None:
    """`{**items, **more}` for a dict under construction."""
    items.update(more)


def dict_merge(items: dict[Any, Any], more: Any, fn: Any) -> None:
    """Keyword arguments under construction: as `dict_update`, but a key given twice is an error."""
    if not hasattr(more, "keys"):
        kind = type(more).__name__
        raise TypeError(f"{described(fn)} argument after ** must be a mapping, not {kind}")
    for key in more.keys():  # noqa: SIM118 -- a mapping is what has keys
        if key in items:
            raise TypeError(f"{described(fn)} got multiple values for keyword argument {key!r}")
        items[key] = more[key]


def described(fn: Any) -> str:
    """A callable as it stands in the messages of CPython."""
    name, module = getattr(fn, "__qualname__", None), getattr(fn, "__module__", None)
    if name is None:
        return str(fn)
    return f"{name}()" if module in (None, "builtins") else f"{module}.{name}()"


def unpack(items: Any, n: int) -> tuple[Any, ...]:
    """`a, b = items`: exactly n items, as a tuple."""
    if type(items) is tuple and len(items) == n:
        return items
    names = [f"_{i}" for i in range(n)]
    scope = {"items": items, "__name__": __name__}
    exec(f"{', '.join(names)}{',' if n == 1 else ''} = items" if n else "() = items", scope)
    return tuple([scope[name] for name in names])


def unpack_rest(items: Any, before: int, after: int) -> tuple[Any, ...]:
    """`a, *rest, z = items`: a tuple of the first ones, the list of the rest, the last ones."""
    try:
        iterator = iter(items)
    except TypeError:
        if hasattr(type(items), "__iter__"):
            raise
        kind = type(items).__name__
        raise TypeError(f"cannot unpack non-iterable {kind} object") from None
    all_items = list(iterator)
    if len(all_items) < before + after:
        raise ValueError(
            f"not enough values to unpack (expected at least {before + after}, got {len(all_items)})"
        )
    rest = all_items[before : len(all_items) - after]
    return (*all_items[:before], rest, *all_items[len(all_items) - after :])


def interpolation(value: Any, expression: str, conversion: str | None, spec: str) -> Any:
    """A part of a template string of CPython 3.14."""
    from string.templatelib import Interpolation  # type: ignore[import-not-found]

    return Interpolation(value, expression, conversion, spec)


def template(strings: tuple[str, ...], interpolations: tuple[Any, ...]) -> Any:
    """A template string: texts, and what comes between them."""
    from string.templatelib import Template

    between = [part for pair in zip(strings, interpolations, strict=False) for part in pair]
    return Template(*between, strings[-1])


def intrinsic(number: int, name: str, pair: bool = False) -> FunctionType:
    """A function that runs an intrinsic function of CPython, of 3.12 and later, on its arguments."""
    fn = (lambda a, b: (a, b)) if pair else (lambda a: (a,))
    code = bytearray(fn.__code__.co_code)
    at = next(ins.offset for ins in dis.get_instructions(fn) if ins.opname == "BUILD_TUPLE")
    opcode = dis.opmap.get("CALL_INTRINSIC_2" if pair else "CALL_INTRINSIC_1")
    if opcode is not None:
        code[at : at + 2] = opcode, number
    return FunctionType(fn.__code__.replace(co_code=bytes(code), co_name=name), globals(), name)


type_variable = intrinsic(7, "type_variable")
parameter_specification = intrinsic(8, "parameter_specification")
type_variable_tuple = intrinsic(9, "type_variable_tuple")
generic_base = intrinsic(10, "generic_base")
type_alias = intrinsic(11, "type_alias")
bounded_type_variable = intrinsic(2, "bounded_type_variable", pair=True)
constrained_type_variable = intrinsic(3, "constrained_type_variable", pair=True)
set_type_parameters = intrinsic(4, "set_type_parameters", pair=True)
set_default_type = intrinsic(5, "set_default_type", pair=True)


def apply(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`fn(*args, **kwargs)`."""
    return fn(*args, **kwargs)


def as_tuple(items: Any, fn: Any = NULL) -> tuple[Any, ...]:
    """The positional arguments of `fn(*items)`."""
    if fn is not NULL:
        check_iterable(items, fn)
    return tuple(items)


def check_iterable(items: Any, fn: Any) -> None:
    """An error if `items` cannot be the arguments of `fn(*items)`."""
    if not hasattr(type(items), "__iter__") and not hasattr(type(items), "__getitem__"):
        kind = type(items).__name__
        raise TypeError(f"{described(fn)} argument after * must be an iterable, not {kind}")


def own_keywords(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The dict of a `**kwargs` parameter, which the call itself made."""
    return kwargs


def advance(iterator: Any) -> Any:
    """The next item of an iterator, or DONE."""
    return next(iterator, DONE)


def make_cell(value: Any) -> CellType:
    """A closure variable that holds `value`."""
    return CellType() if value is UNDEFINED else CellType(value)


def get_cell(cell: CellType, name: str, own: bool = False) -> Any:
    """Read a closure variable: one of the function's own, or one that it closes over."""
    try:
        return cell.cell_contents
    except ValueError:
        pass
    return check_bound(UNDEFINED, name, own)


def set_cell(cell: CellType, value: Any) -> None:
    """Rebind a closure variable."""
    cell.cell_contents = value


def delete_cell(cell: CellType, name: str, own: bool = False) -> None:
    """`del` of a closure variable."""
    get_cell(cell, name, own)
    del cell.cell_contents


def check_bound(value: Any, name: str, own: bool = True) -> Any:
    """The value of a local or a free variable, if it has been bound on the path that was taken."""
    if value is not UNDEFINED:
        return value
    if own:
        raise UnboundLocalError(
            f"cannot access local variable {name!r} where it is not associated with a value"
        )
    raise NameError(
        f"cannot access free variable {name!r} where it is not associated with a value in "
        "enclosing scope",
        name=name,
    )


def load_global(namespace: dict[str, Any], name: str) -> Any:
    """A global variable, or a builtin."""
    try:
        return namespace[name]
    except KeyError:
        pass
    scope = namespace.get("__builtins__", builtins)
    scope = scope if isinstance(scope, dict) else vars(scope)
    try:
        return scope[name]
    except KeyError:
        pass
    raise not_defined(name)


def not_defined(name: str) -> NameError:
    """The error that no variable has this name."""
    return NameError(f"name {name!r} is not defined", name=name)


def store_global(namespace: dict[str, Any], name: str, value: Any) -> None:
    """Rebind a global variable."""
    namespace[name] = value


def delete_global(namespace: dict[str, Any], name: str) -> None:
    """`del` of a global variable."""
    if name not in namespace:
        raise not_defined(name)
    del namespace[name]


def load_name(names: Any, namespace: dict[str, Any], name: str) -> Any:
    """A name in the body of a class: its own, a global variable or a builtin."""
    return names[name] if name in names else load_global(namespace, name)


def load_name_or_cell(names: Any, cell: CellType, name: str) -> Any:
    """The same for a name that a function around the class binds."""
    return names[name] if name in names else get_cell(cell, name)


def store_name(names: Any, name: str, value: Any) -> None:
    """Bind a name in the body of a class."""
    names[name] = value


def delete_name(names: Any, name: str) -> None:
    """`del` of one."""
    if name not in names:
        raise not_defined(name)
    del names[name]


def setup_annotations(names: Any) -> None:
    """Make room for the annotations of the names in the body of a class."""
    if "__annotations__" not in names:
        names["__annotations__"] = {}


def import_name(
    namespace: dict[str, Any], name: str, fromlist: tuple[str, ...] | None, level: int
) -> Any:
    """`import name` inside a function."""
    return builtins.__import__(name, namespace, None, fromlist or (), level)


def import_from(module: Any, name: str) -> Any:
    """`from module import name`, after the module was imported."""
    try:
        return getattr(module, name)
    except AttributeError:
        pass
    import sys

    package, path = getattr(module, "__name__", "?"), getattr(module, "__file__", None)
    found = sys.modules.get(f"{package}.{name}")
    if found is not None:
        return found
    place = path or "unknown location"
    raise ImportError(
        f"cannot import name {name!r} from {package!r} ({place})", name=package, path=path
    )


def refuse_frame(x: Any, where: str) -> None:
    """Before `x.f_locals`: the frames of transformed code have other variables than the user's."""
    if isinstance(x, FrameType):
        raise errors.unsupported(
            "f_locals, the variables of a function that runs,",
            where,
            "Hand over the values that are meant, in a dict or as arguments",
        )


def make_function(
    namespace: dict[str, Any],
    code: CodeType,
    defaults: tuple[Any, ...] | None,
    kwdefaults: dict[str, Any] | None,
    annotations: Any,
    *cells: CellType,
) -> FunctionType:
    """`lambda` and `def`: a function of the code that closes over the cells.

    The annotations are names and values in turn, or (since CPython 3.14) the function that gives them.
    """
    fn = FunctionType(code, namespace, code.co_name, defaults, cells or None)
    fn.__kwdefaults__ = kwdefaults
    if isinstance(annotations, tuple):
        pairs = zip(annotations[::2], annotations[1::2], strict=True)
        fn.__annotations__ = dict(pairs)
    elif annotations is not None:
        fn.__annotate__ = annotations  # type: ignore[attr-defined]
    return fn


def raise_exception(exception: Any, cause: Any) -> Any:
    """`raise exception from cause`."""
    if cause is NULL:
        raise exception
    raise exception from cause


def globals_of(fn: FunctionType) -> dict[str, Any]:
    """The namespace that a function's global variables live in."""
    return fn.__globals__


def pull(iterator: Any) -> Any:
    """The next item of an iterator that has one: a residual off its tape."""
    return next(iterator)


def sum_if_any(x̄: Any, c: Any) -> Any:
    """`c` added to a sum of cotangents that may still be the structural zero."""
    return c if x̄ is ZERO else c + x̄


def maybe_zero(x̄: Any, x: Any = None) -> Any:
    """x̄, a number or an array or the structural zero: the cotangent of x, if that is given."""
    return x̄


def maybe_zero_of_parts(x̄: Any, x: Any = None) -> Any:
    """x̄, which is not added by +, such as a tuple's, or the structural zero."""
    return x̄


def never_zero(x̄: Any, x: Any = None) -> Any:
    """x̄, the cotangent of x, which is known to be no structural zero."""
    return x̄


def alias(x: Any) -> Any:
    """x itself, under a name of its own: the instance of a variable that stands here."""
    return x


def require(x: Any) -> None:
    """Nothing, but x is computed by then: it stands where the computing may raise what is caught."""


# The same as `type`, `getattr`, `len` and `x[i]`, for tests of what type inference takes for granted:
# inference does not look at them, so they are not folded away.


def actual_type(x: Any) -> type:
    """`type(x)`."""
    return type(x)


def actual_attribute(x: Any, name: str) -> Any:
    """`getattr(x, name)`."""
    return getattr(x, name)


def actual_length(x: Any) -> int:
    """`len(x)`."""
    return len(x)


def has_keys(x: Any, keys: tuple[Any, ...]) -> bool:
    """Has a dict these keys, in this order, or a list items at these places?"""
    if type(x) is list:
        return len(x) == len(keys)
    return tuple(x) == keys and {str}.issuperset(map(type, x))


def actual_item(x: Any, key: Any) -> Any:
    """`x[key]`."""
    return x[key]
