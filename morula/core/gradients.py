"""Where pickle finds gradient functions: by the name of the function that they are the gradient of.

Pickle saves a function as the names of its module and of itself. A gradient function has the name
of its function, so its module is one of these, made when it is asked for:

    morula.core.gradients.<transform>(<argnums>, <has_aux>)-<module>, "." written as "%2E"

so that a gradient function pickles where its function does, and is found in another process too.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any
from urllib.parse import unquote

__path__: list[str] = []  # a package, of modules that are in no file


def module_name(transform: str, options: tuple[Any, ...], module: str) -> str:
    """The name of the module of the gradients of a module's functions."""
    return f"{__name__}.{transform}{options!r}-{module.replace('%', '%25').replace('.', '%2E')}"


def give_name(g: Any, f: Any, transform: str, options: tuple[Any, ...]) -> Any:
    """`g`, the gradient of `f`, under a name by which pickle finds it, if `f` has one.

    The function that has the name already is given back, if it is the gradient of the same.
    """
    name, module = getattr(f, "__qualname__", None), getattr(f, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str) or module not in sys.modules:
        return g
    if sys.modules[module].__dict__.get(name) is not f:
        return g
    full_name = module_name(transform, options, module)
    home = sys.modules.get(full_name) or make_module(full_name)
    named = home.__dict__.get(name)
    if named is not None and of_same(named, g):
        return named
    g.__module__ = full_name
    home.__dict__[name] = g
    return g


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

        def find(name: str) -> Any:
            special = name.startswith("__")
            f = None if special else getattr(importlib.import_module(of), name, None)
            if f is None:
                raise AttributeError(f"module {of!r} has no function {name!r}")
            from morula.core import interface  # which is made of this module's functions

            return getattr(interface, transform)(f, *options)

        module.__dict__["__getattr__"] = find


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
