"""Rules of closure variables: a cell is a box, and its adjoint object a box as well.

x = get(B): B̄ += x̄;  set(B, x): x̄ = B̄, B̄ = 0 (Innes, Don't Unroll Adjoint, table 3). The cotangent
of a function is that of the variables it captured, which sits in their boxes.
Tests: tests/rules/test_boxes.py
"""

import threading
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import WeakSet

from morula.core.extend import (
    ZERO,
    NoTangent,
    NotSpecialised,
    Tangent,
    accumulate,
    adjoint_object,
    adjoint_of,
    general,
    gradient_for,
    hands_over,
    is_zero,
    materialise,
    memory,
    non_differentiable,
    on_entry,
    primitives,
    reaching,
    results_of,
    rewrites,
    rrule,
    unthunk,
)
from morula.rules.arrays.memory import is_followed
from morula.rules.builtins import ATTRIBUTES
from morula.rules.numbers import Anything

make_cell, get_cell = primitives.make_cell, primitives.get_cell
set_cell, delete_cell = primitives.set_cell, primitives.delete_cell


class Box:
    """The adjoint object of a cell: the cotangent of what it holds."""

    __slots__ = ("cotangent",)

    def __init__(self) -> None:
        self.cotangent: Any = ZERO


@adjoint_object.register
def _(cell: CellType) -> Box:
    return Box()


def take(box: Box) -> Any:
    """The cotangent in a box, which is empty afterwards."""
    cotangent = box.cotangent
    box.cotangent = ZERO
    return cotangent


@rrule(CellType, by_identity=True)
@rrule(make_cell, by_identity=True)
def _(value: Anything):
    cell = make_cell(value)

    def make_cell_pullback(ȳ):
        return (take(adjoint_of(cell)),)

    return cell, make_cell_pullback


@rrule(get_cell)
def _(cell: CellType, name: str, own: bool = False):
    def get_cell_pullback(ȳ):
        box = adjoint_of(cell)
        box.cotangent = accumulate(box.cotangent, ȳ)
        return NoTangent(), NoTangent(), NoTangent()

    return get_cell(cell, name, own), get_cell_pullback


hands_over(get_cell)


def _contents(cell: CellType) -> Any:
    """The rule of reading `cell.cell_contents`."""

    def contents_pullback(ȳ: Any) -> Any:
        box = adjoint_of(cell)
        box.cotangent = accumulate(box.cotangent, ȳ)
        return (ZERO,)

    return cell.cell_contents, contents_pullback


ATTRIBUTES[CellType, "cell_contents"] = _contents


@rewrites
def _(s: Any) -> bool:
    """The parts of a function that are asked for may be rebound behind its back."""
    used = {
        getattr(c.args[1], "value", None) for c in s.ir.calls() if c.primitive in (getattr, setattr)
    }
    if not used.isdisjoint(("__closure__", "__code__", "__defaults__", "__kwdefaults__")):
        raise NotSpecialised("cells, code or default values of a function are read or written")
    return False


@rrule(set_cell, by_identity=True)
def _(cell: CellType, value: Anything):
    def set_cell_pullback(ȳ):
        return NoTangent(), take(adjoint_of(cell))

    set_cell(cell, value)
    return None, set_cell_pullback


@rrule(delete_cell, by_identity=True)
def _(cell: CellType, name: str, own: bool = False):
    def delete_cell_pullback(ȳ):
        adjoint_of(cell).cotangent = ZERO
        return NoTangent(), NoTangent(), NoTangent()

    delete_cell(cell, name, own)
    return None, delete_cell_pullback


# -- global variables: constants, unless differentiated code has set them --------------------------

_assigned: set[tuple[int, str | None]] = set()


def assign_global(namespace: dict[str, Any], name: str) -> None:
    """Note that a global variable was set in differentiated code."""
    _assigned.add((id(namespace), name))


def assign_all_globals(namespace: dict[str, Any]) -> None:
    """Note that any variable of a namespace may have been set there."""
    _assigned.add((id(namespace), None))


class _Exposed(threading.local):
    """Namespaces that differentiated code has as dicts, until nothing is differentiated any more."""

    def __init__(self) -> None:
        self.namespaces: set[int] = set()


_exposed = _Exposed()
memory.AT_END.append(lambda: _exposed.namespaces.clear())


def expose_globals(namespace: dict[str, Any]) -> None:
    """Note that differentiated code may set any variable of a namespace, as an item of a dict."""
    _exposed.namespaces.add(id(namespace))


def is_assigned_global(namespace: dict[str, Any], name: str) -> bool:
    """Was it?"""
    key = id(namespace)
    return (key, name) in _assigned or (key, None) in _assigned or key in _exposed.namespaces


non_differentiable(assign_global, assign_all_globals, expose_globals, is_assigned_global)


@rrule(primitives.load_global, by_identity=True)
def _(namespace: dict, name: str):
    assigned = is_assigned_global(namespace, name)

    def load_global_pullback(ȳ):
        if assigned:
            bars = adjoint_of(namespace)
            bars[name] = accumulate(bars.get(name, ZERO), ȳ)
        return NoTangent(), NoTangent()

    return primitives.load_global(namespace, name), load_global_pullback


@rrule(primitives.store_global, by_identity=True)
def _(namespace: dict, name: str, value: Anything):
    assign_global(namespace, name)
    primitives.store_global(namespace, name, value)

    def store_global_pullback(ȳ):
        return NoTangent(), NoTangent(), adjoint_of(namespace).pop(name, ZERO)

    return None, store_global_pullback


# -- default values: a function's adjoint object has those by position, a dict those by name -------

Place = tuple[Any, Any]  # what has an adjoint object, and the key in it

_with_defaults: WeakSet[FunctionType] = WeakSet()


@rrule(primitives.make_function, by_identity=True)
def _(
    namespace: dict,
    code: CodeType,
    defaults: Anything,
    kwdefaults: Anything,
    annotations: Anything,
    *cells: CellType,
):
    fn = primitives.make_function(namespace, code, defaults, kwdefaults, annotations, *cells)
    remember(fn)

    def make_function_pullback(ȳ):
        found = take_defaults(fn, defaults)
        return (NoTangent(), NoTangent(), found, *[NoTangent()] * (2 + len(cells)))

    return fn, make_function_pullback


def give_default(holder: Any, key: Any, c: Any) -> None:
    """Add to the cotangent of a default value."""
    bars = adjoint_of(holder)
    bars[key] = accumulate(bars.get(key, ZERO), c)


def take_defaults(fn: FunctionType, defaults: Any) -> tuple[Any, ...]:
    """The cotangents of the default values by position, which are zero afterwards."""
    bars = adjoint_of(fn)
    return tuple([bars.pop(("default", i), ZERO) for i in range(len(defaults or ()))])


def set_defaults(fn: FunctionType, name: str, values: Any) -> Callable[[], Any]:
    """`fn.__defaults__ = values` or `fn.__kwdefaults__ = values`; gives what pulls it back."""
    setattr(fn, name, values)
    remember(fn)

    def set_defaults_pullback() -> Any:
        return take_defaults(fn, values) if name == "__defaults__" else ZERO

    return set_defaults_pullback


def remember(fn: FunctionType) -> None:
    """Note that the default values of a function carry cotangents."""
    _with_defaults.add(fn)


def followed_defaults(fn: FunctionType) -> dict[Any, Any]:
    """The default values that carry cotangents, by their keys in the adjoint object of a function."""
    if fn not in _with_defaults:
        return {}
    found: dict[Any, Any] = {("default", i): v for i, v in enumerate(fn.__defaults__ or ())}
    return found if fn.__kwdefaults__ is None else {**found, "__kwdefaults__": fn.__kwdefaults__}


def missing_arguments(fn: FunctionType, n: int, keywords: Iterable[str]) -> dict[str, Place]:
    """The parameters that a call with n arguments and these keywords leaves to default values.

    Gives where the default values are; empty if nothing depends on them.
    """
    if fn not in _with_defaults:
        return {}
    code, defaults = fn.__code__, fn.__defaults__ or ()
    first = code.co_argcount - len(defaults)
    missing: dict[str, Place] = {}
    if n < min(first, code.co_posonlyargcount):
        return {}  # the call is an error
    for i in range(max(n, first), code.co_argcount):
        missing[code.co_varnames[i]] = fn, ("default", i - first)
    named = fn.__kwdefaults__ or {}
    for name in named:
        missing[name] = named, name
    return {
        name: place
        for name, place in missing.items()
        if name not in keywords or is_positional_only(fn, name)
    }


def is_positional_only(fn: FunctionType, name: str) -> bool:
    """Is it the name of a parameter that no keyword gives a value to?"""
    code = fn.__code__
    return name in code.co_varnames[: code.co_posonlyargcount]


def default_value(holder: Any, key: Any) -> Any:
    """A default value: of a function by position, or in the dict of those by name."""
    return holder[key] if isinstance(holder, dict) else holder.__defaults__[key[1]]


non_differentiable(remember, followed_defaults, missing_arguments, is_positional_only)


@rrule(default_value)
def _(holder: Anything, key: Anything):
    def default_value_pullback(ȳ):
        give_default(holder, key, ȳ)
        return NoTangent(), NoTangent()

    return default_value(holder, key), default_value_pullback


def _defaults(fn: FunctionType) -> Any:
    """The rule of reading `fn.__defaults__`."""
    defaults = fn.__defaults__

    def defaults_pullback(ȳ: Any) -> Any:
        c = unthunk(ȳ)
        for i in range(0 if is_zero(c) else len(defaults)):
            give_default(fn, ("default", i), c[i])
        return (ZERO,)

    return defaults, defaults_pullback


def _kwdefaults(fn: FunctionType) -> Any:
    """The rule of reading `fn.__kwdefaults__`, a dict that has an adjoint of its own."""
    return fn.__kwdefaults__, lambda ȳ: (ZERO,)


ATTRIBUTES[FunctionType, "__defaults__"] = _defaults
ATTRIBUTES[FunctionType, "__kwdefaults__"] = _kwdefaults


# -- what the user gets for a function -------------------------------------------------------------


class FunctionOnEntry:
    """A function, with the values that its closure held when it was called."""

    __slots__ = ("captured", "primal")

    def __init__(self, primal: FunctionType, captured: dict[str, Any]) -> None:
        self.primal = primal
        self.captured = captured


@on_entry.register(FunctionType)
def _(fn: FunctionType, known: dict[int, Any]) -> Any:
    if not fn.__closure__:
        return fn
    found = known.get(id(fn))
    if found is None:
        found = known[id(fn)] = FunctionOnEntry(fn, {})
        for name, cell in captured_by(fn):
            found.captured[name] = cell, on_entry(cell.cell_contents, known)
    return found


def captured_by(fn: FunctionType) -> list[tuple[str, CellType]]:
    """The variables that a function closes over and that hold a value."""
    pairs = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    return [(name, cell) for name, cell in pairs if cell != CellType()]


non_differentiable(captured_by)


@materialise.register(FunctionOnEntry)
def _(fn: FunctionOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    made = results_of(of)
    if id(fn) not in made:
        made[id(fn)] = NoTangent()  # for a function that captures itself
        captured = {}
        for name, (cell, value) in fn.captured.items():
            box = of(cell)
            c = ZERO if box is None else box.cotangent
            if c is not ZERO or is_reached(value, of):
                captured[name] = gradient_for(value, c, of)
        captured = {name: c for name, c in captured.items() if c is not None}
        made[id(fn)] = Tangent[FunctionType](captured) if captured else NoTangent()
    return made[id(fn)]


def is_reached(picture: Any, of: Callable[[Any], Any]) -> bool:
    """May a cotangent have reached a captured value by its identity, or in its memory?"""
    primal = getattr(picture, "primal", None)
    if isinstance(primal, FunctionType) or is_followed(picture):
        return True
    return any(bool(of(x)) for x, _ in general.held_by((primal,)))


non_differentiable(is_reached)


@materialise.register(FunctionType)
def _(fn: FunctionType, x̄: Any, of: Callable[[Any], Any]) -> Any:
    picture = on_entry(fn, {})
    return NoTangent() if picture is fn else materialise(picture, x̄, reaching(of))
