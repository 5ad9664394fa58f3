"""Rules that packages ship: what they name in the entry-point group `morula.rules`.

    [project.entry-points."morula.rules"]
    mypackage = "mypackage.adjoints"          # or "mypackage.adjoints:register"

The object is loaded when a callable of `mypackage` is first looked up in a differentiated program,
and called if it is callable. So the package need not import Morula, nor its users the rules.

Morula's own rules for a library that not every program uses wait in the same way, by the name of a
module of the library (`waits("library.part", "morula.rules.part")`), so that they import it only
where the program did.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any
from weakref import ref

GROUP = "morula.rules"

_met: set[Any] = set()  # modules the rules of whose packages are there
_entry_points: dict[str, list[EntryPoint]] = {}
_searched: list[str] = []  # the path on which they were found
_loaded: set[EntryPoint] = set()
_lock = threading.RLock()
_NAMED = (FunctionType, BuiltinFunctionType, type)
_waiting: dict[str, str] = {}  # own rules by the module that they are for
_unnamed: dict[Any, list[str]] = {}  # modules whose callables of a type do not name them
_recognises: list[Callable[[type], bool]] = []
_seen: dict[int, Any] = {}  # classes that these have been asked about, by id
OF_CYTHON = "cython_function_or_method"  # a type for each version of Cython
_SHIP_NOTHING = {*sys.stdlib_module_names, "__main__", "morula"}


def meet(primal: Any) -> bool:
    """Load the rules that the package of a callable ships; False: nothing was new."""
    new = meet_home(primal)
    return (isinstance(primal, type) and id(primal) not in _seen and meet_class(primal)) or new


def meet_class(t: type) -> bool:
    """Ask about a class that is met for the first time; False: nothing was new."""
    number = id(t)
    _seen[number] = ref(t, lambda _: _seen.pop(number, None))
    return any([recognise(t) for recognise in _recognises])


def recognises(test: Callable[[type], bool]) -> Callable[[type], bool]:
    """Register what is asked about each class when it is first met: has it made rules for it?"""
    _recognises.append(test)
    return test


def meet_home(primal: Any) -> bool:
    """The same by the module that it was defined in."""
    if type(primal) is FunctionType:
        module = primal.__module__
        home = primal.__globals__.get("__name__")  # a decorator's, where that has put on the names
        if home != module and home not in _met and meet_module(home):
            return True
    else:
        module = module_of(primal)
    t = type(primal)
    if any([kind in _unnamed and meet_unnamed(kind) for kind in (t, t.__name__)]):
        return True
    return module not in _met and meet_module(module)


def meet_module(module: Any) -> bool:
    """Load the rules for a module that has not been met."""
    package = module.split(".")[0] if type(module) is str else "__main__"
    if package in _SHIP_NOTHING and not any(is_inside(module, m) for m in _waiting):
        _met.add(module)
        return False
    with _lock:
        if module in _met:
            return False
        _met.add(module)  # its rules look up callables of the package
        found = shipped_by(package)
        try:
            own = load_waiting(module)
            for entry_point in found:
                load(entry_point)
        except BaseException:
            _met.discard(module)
            raise
    return own or bool(found)


def waits(module: str, rules: str, unnamed: type | str | None = None) -> None:
    """Import the module `rules` when a callable of `module` is first met, or of one inside it.

    Callables of type `unnamed`, or of a type of that name, do not say where they are from: the first
    one without a rule that is met after `module` was imported counts.
    """
    _waiting[module] = rules
    if unnamed is not None:
        _unnamed.setdefault(unnamed, []).append(module)


def meet_unnamed(t: type | str) -> bool:
    """Load the rules for modules that have callables of this type, if they were imported."""
    with _lock:
        imported = [m for m in _unnamed[t] if m in _waiting and m in sys.modules]
        return any([load_waiting(m) for m in imported])


def is_inside(module: Any, other: str) -> bool:
    """Is a module the other one, or inside of it?"""
    return type(module) is str and (module == other or module.startswith(other + "."))


def load_waiting(module: str) -> bool:
    """Import the rules that wait for a module, or for one that it is inside of."""
    names = [m for m in _waiting if is_inside(module, m)]
    for name in names:
        rules = _waiting.pop(name)
        try:
            import_module(rules)
        except BaseException as error:
            if is_of_another(name, error):
                continue
            _waiting[name] = rules
            raise
    return bool(names)


def is_of_another(module: str, error: BaseException) -> bool:
    """Has the program something else by the name of a library, which lacks what its rules import?

    What stands in for a library that is not there is a module, the library a package.
    """
    library = module.split(".")[0]
    return (
        isinstance(error, ImportError)
        and is_inside(error.name, library)
        and not hasattr(sys.modules.get(library), "__path__")
    )


def module_of(primal: Any) -> Any:
    """The name of the module that a callable, or what it is of, was defined in."""
    owner = primal
    if isinstance(primal, MethodDescriptorType):
        owner = primal.__objclass__
    elif not isinstance(primal, _NAMED) and type(primal).__name__ != OF_CYTHON:
        owner = type(primal)  # an object may answer to any attribute
    return getattr(owner, "__module__", None)


def shipped_by(package: str) -> list[EntryPoint]:
    """The entry points of a package that have not been loaded yet."""
    if _searched != sys.path:
        _searched[:] = sys.path
        _entry_points.clear()
        for entry_point in entry_points(group=GROUP):
            _entry_points.setdefault(entry_point.name, []).append(entry_point)
    return [e for e in _entry_points.get(package, ()) if e not in _loaded]


def load(entry_point: EntryPoint) -> None:
    """Load what an entry point names, and call it if it can be called."""
    try:
        register = entry_point.load()
        if callable(register):
            register()
    except Exception as error:
        error.add_note(
            f"in the rules that a package ships: {entry_point.name} = {entry_point.value!r} in the "
            f"entry-point group {GROUP}"
        )
        raise
    _loaded.add(entry_point)
