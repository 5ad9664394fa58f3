"""Where pickle finds gradient functions: by the name of the function that they are the gradient of.

Pickle saves a function as the names of its module and of itself. A gradient function has the name
of its function, so its module is one of these, made when it is asked for:

    morula.core.gradients.<transform>(<argnums>, <has_aux>)-<module>, "." written as "%2E"

so that a gradient function pickles where its function does, and is found in another process too.
Functions of the main program are found in processes that run it; cloudpickle and dill take them
along, and their gradients (core/compiled.py).
Of callables that are no functions of a module (objects, methods, partials), a transform gives an
object, which pickles as the callable and the options that it was made of.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import FunctionType, MethodType, ModuleType
from typing import Any
from urllib.parse import unquote


class Transformed:
    """What a transform gives for a callable `f`: called, it does what `run` does.

    It has the name, the docstring and the signature of `f`, and is a method where `f` would be one.
    """

    def __init__(
        self,
        transform: Callable[..., Any],
        f: Callable[..., Any],
        options: dict[str, Any],
        run: Callable[..., Any],
    ) -> None:
        functools.update_wrapper(self, f, updated=())
        if not hasattr(f, "__name__"):
            self.__name__ = transform.__name__
        self._made_by = transform, f, options
        self.run = run

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or type(self._made_by[1]) is not FunctionType:
            return self
        return MethodType(self, instance)

    def __repr__(self) -> str:
        transform, f, options = self._made_by
        given = [repr(f), *[f"{name}={value!r}" for name, value in options.items()]]
        return f"{transform.__name__}({', '.join(given)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return made_again, self._made_by


def made_again(transform: Callable[..., Any], f: Any, options: dict[str, Any]) -> Any:
    """`transform(f)` with these options."""
    return transform(f, **options)


__path__: list[str] = []  # a package, of modules that are in no file


def module_name(transform: str, options: tuple[Any, ...], module: str) -> str:
    """The name of the module of the gradients of a module's functions."""
    return f"{__name__}.{transform}{options!r}-{module.replace('%', '%25').replace('.', '%2E')}"


def for_pickle(
    g: Callable[..., Any], transform: Callable[..., Any], f: Any, options: dict[str, Any]
) -> Callable[..., Any]:
    """`g`, which is `transform(f, **options)`, as something that pickles if `f` does."""
    if type(f) is not FunctionType:
        return Transformed(transform, f, options, g)
    named: Callable[..., Any] = give_name(g, f, transform.__name__, tuple(options.values()))
    return named


def give_name(g: Any, f: FunctionType, transform: str, options: tuple[Any, ...]) -> Any:
    """`g`, the gradient of a function `f`, under a name by which pickle finds it, if `f` has one.

    The function that has the name already is given back, if it is the gradient of the same.
    """
    name, module = f.__qualname__, f.__module__
    if "<" in name or not isinstance(module, str):  # <locals> and <lambda> have no name in a module
        return g
    if named_in(sys.modules.get(module), name) is not f:
        return g
    full_name = module_name(transform, options, module)
    home: Any = sys.modules.get(full_name) or make_module(full_name)
    there = home.__made__.get(name)
    if there is not None and of_same(there, g):
        return there
    g.__module__ = full_name
    home.__made__[name] = g
    return g


def named_in(owner: Any, name: str) -> Any:
    """What has a name in a module, or in a class in it; None if nothing has."""
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


class Names:
    """The names of a class, in a module of gradients."""

    def __init__(self, home: str, name: str) -> None:
        self._home = home
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return importlib.import_module(self._home).__getattr__(f"{self._name}.{name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Names, (self._home, self._name)


def of_same(g: Any, other: Any) -> bool:
    """Are two gradient functions of one function, as it is now?"""
    return all(
        getattr(g, field, None) is getattr(other, field, None)
        for field in ("__wrapped__", "__kwdefaults__")
    ) and (g.__defaults__ == other.__defaults__ and g.__dict__ == other.__dict__)


class Finder:
    """Finds the modules of gradients, when something is unpickled."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec for names that `module_name` gives."""
        return ModuleSpec(name, Loader) if name.startswith(f"{__name__}.") else None  # type: ignore[arg-type]


class Loader:
    """Makes a module of gradients."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """An ordinary module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Its functions come when they are asked for."""
        transform, options, of = parts_of(module.__name__)
        made: dict[str, Any] = {}

        def find(name: str) -> Any:
            if of == "__main__" and is_asked_by_value():
                raise AttributeError(name)
            if name in made:
                return made[name]
            special = name.startswith("__")
            f = None if special else named_in(importlib.import_module(of), name)
            if f is None:
                raise AttributeError(f"module {of!r} has no function {name!r}")
            if isinstance(f, type):
                return Names(module.__name__, name)
            from morula.core import interface  # which is made of this module's functions

            return getattr(interface, transform)(f, *options)

        module.__dict__.update(__getattr__=find, __made__=made)


# Where cloudpickle (joblib, Dask, Ray) and dill ask whether a function is to be found by its name.
BY_VALUE = ("_lookup_module_and_qualname", "_locate_function")


def is_asked_by_value() -> bool:
    """Does one ask who takes functions of the main program along, for other processes have another?"""
    frame = sys._getframe(2)
    while frame.f_code.co_name == "_getattribute" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_name in BY_VALUE


def parts_of(name: str) -> tuple[str, tuple[Any, ...], str]:
    """Transform, options and module, from the name of a module of gradients."""
    call, _, module = name[len(__name__) + 1 :].partition(")-")
    transform, _, options = call.partition("(")
    return transform, ast.literal_eval(f"({options})"), unquote(module)


def make_module(name: str) -> ModuleType:
    """The module of gradients with this name."""
    spec = Finder.find_spec(name)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)
    Loader.exec_module(module)
    return module


sys.meta_path.append(Finder)
