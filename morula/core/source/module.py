"""What stands around a function that is written down: imports, copies, constants."""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import operator
import sys
import textwrap
from types import BuiltinMethodType, CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

from morula.core import cotangents, errors, primitives
from morula.core.cotangents import NONE, ZERO, AbstractZero, NoTangent, ZeroTangent
from morula.core.dispatch import by_type
from morula.core.ir import describe_constant, describe_tuple, is_literal


class NeedsMorula(Exception):
    """The program calls a function of Morula's that cannot be copied."""


class Module:
    """What stands in front of the function: imports, copies of small functions, values.

    A module that stands alone has its own copies of all that is Morula's. They do not go together with
    Morula's functions, for which another structural zero would be none: so it is all or nothing.
    """

    def __init__(self, alone: bool) -> None:
        self.alone = alone
        self.imports: dict[str, str] = {}  # names and how they are bound
        self.definitions: dict[str, str] = {}
        self.bound: dict[str, Any] = {"DONE": primitives.DONE, "operator": operator}

    def text(self, title: str, function: str) -> str:
        """The whole file."""
        if "operator." not in "".join([function, *self.definitions.values()]):
            self.imports.pop("operator", None)
        head = f'"""{title}"""\n\nfrom __future__ import annotations\n'
        parts = [head]
        if self.imports:
            parts.append("\n".join(sorted(set(self.imports.values()))) + "\n")
        parts += [f"\n{text}\n" for text in self.definitions.values()]
        return "\n".join([*parts, f"\n{function}\n"])

    def is_free(self, name: str, value: Any) -> bool:
        """Can a name stand for this value?"""
        if name in self.bound:
            return self.bound[name] is value
        return name.isidentifier() and not keyword.iskeyword(name)

    def bind(self, name: str, value: Any) -> None:
        self.bound[name] = value

    def constant(self, value: Any) -> str:
        """An expression for a value that a program holds."""
        if value is ZERO or value is NONE:
            self.define_zeros()
            return "ZERO" if value is ZERO else "NONE"
        if value is primitives.DONE or value is primitives.UNDEFINED:
            return self.mark(value)
        if is_literal(value):
            return repr(value)
        if type(value) is tuple:
            return describe_tuple(value, self.constant)
        return constant_text(value, self)

    def module(self, value: ModuleType) -> str:
        """A module, by the name by which it is usually known."""
        path = value.__name__
        name = SHORT_NAMES.get(path, path.replace(".", "_"))
        if not self.is_free(name, value):
            name = f"{name}_module"
        self.bind(name, value)
        plain = name == path
        self.imports[name] = f"import {path}" if plain else f"import {path} as {name}"
        return name

    def function(self, fn: Any) -> str:
        """A callable: a builtin, a name in a module, or a copy of it."""
        name, owner = str(getattr(fn, "__name__", "")), getattr(fn, "__self__", None)
        if getattr(builtins, name, None) is fn:
            return name
        if is_own(fn) and self.alone:
            if not self.copy(fn):
                raise NeedsMorula
            return name
        of = str(getattr(getattr(fn, "__objclass__", None), "__name__", ""))
        if of and getattr(builtins, of, None) is fn.__objclass__:
            return f"{of}.{name}"
        if isinstance(fn, BuiltinMethodType) and owner is not None and not inspect.ismodule(owner):
            return f"{self.constant(owner)}.{name}"
        found = place_of(fn)
        if found is None:
            refuse(f"{describe_constant(fn)} has no name by which a module could import it")
        module, path = found
        if is_own(fn) and self.is_free(path, fn):
            self.bind(path, fn)
            self.imports[path] = f"from {module.__name__} import {path}"
            return path
        return f"{self.module(module)}.{path}"

    def copy(self, thing: Any) -> bool:
        """Put a function or class of Morula's into the file, if it is made of what a file can name."""
        name = thing.__name__
        if self.bound.get(name) is thing:
            return True
        tree = definition(thing)
        if tree is None or not self.is_free(name, thing):
            return False
        before = dict(self.imports), dict(self.definitions), dict(self.bound)
        self.bind(name, thing)
        if all(self.knows(other, value) for other, value in globals_read(thing)):
            self.definitions[name] = ast.unparse(tree)
            if len(self.definitions) - len(before[1]) <= MOST_COPIED:
                return True
        self.imports, self.definitions, self.bound = before
        return False

    def knows(self, name: str, value: Any) -> bool:
        """Make a global variable of something copied known under its own name, if that can be."""
        if self.bound.get(name, self) is value:
            return True
        if not self.is_free(name, value):
            return False
        if value is ZERO or value is NONE or any(value is c for c in ZEROS):
            self.define_zeros()
            return self.bound.get(name) is value
        if type(value) is type(primitives.DONE):
            return self.constant(value) == name
        if is_own(value) and (inspect.isclass(value) or inspect.isfunction(value)):
            return bool(value.__name__ == name) and self.copy(value)
        try:
            self.value(name, value, name)
        except (errors.UnsupportedError, NeedsMorula):
            return False
        return True

    def value(self, name: str, value: Any, wanted: str = "") -> str:
        """A global variable of the file with a value that is written down there."""
        name = wanted or f"{name}_then"
        if self.bound.get(name, self) is not value:
            text = self.constant(value)
            self.bind(name, value)
            if text != name:
                self.definitions[name] = f"{name} = {text}"
        return name

    def mark(self, value: Any) -> str:
        """What stands for the end of an iterator, or for a variable that has no value."""
        name = str(value.__name__)
        self.bind(name, value)
        if self.alone:
            self.definitions.setdefault(name, f"{name} = object()")
        else:
            self.imports[name] = f"from {primitives.__name__} import {name}"
        return name

    def define_zeros(self) -> None:
        """The structural zeros, and the names of their classes."""
        if not self.alone:
            self.imports["ZERO"] = f"from {cotangents.__name__} import NONE, ZERO"
            self.bound |= {"NONE": NONE, "ZERO": ZERO}
            return
        self.definitions.setdefault("ZERO", ZERO_TEXT)
        for name, value in [("ZERO", ZERO), ("NONE", NONE), *((c.__name__, c) for c in ZEROS)]:
            self.bind(name, value)


MOST_COPIED = 8  # functions that one function brings with it: what needs more is imported
ZEROS = (AbstractZero, ZeroTangent, NoTangent)
ZERO_TEXT = """\
class AbstractZero:
    \"\"\"A cotangent that nothing has reached: it vanishes in sums and swallows factors.\"\"\"

    def __add__(self, other):
        return other

    def __mul__(self, other):
        return self

    __radd__ = __add__
    __rmul__ = __mul__


class ZeroTangent(AbstractZero):
    pass


class NoTangent(AbstractZero):
    pass


ZERO, NONE = ZeroTangent(), NoTangent()"""

SHORT_NAMES = {"numpy": "np"}


@by_type
def constant_text(value: Any, module: Module) -> str:
    """An expression for a constant that is no literal; rules say it for types of their own."""
    if inspect.ismodule(value):
        return module.module(value)
    if callable(value):
        return module.function(value)
    refuse(f"a value of type {type(value).__name__} cannot be written down")


@constant_text.register
def _(value: float, module: Module) -> str:
    return f'float("{value}")'  # what is no literal: infinite, or not a number


@constant_text.register
def _(value: complex, module: Module) -> str:
    return f"complex({module.constant(value.real)}, {module.constant(value.imag)})"


@constant_text.register
def _(value: slice, module: Module) -> str:
    return f"slice({', '.join(map(module.constant, (value.start, value.stop, value.step)))})"


@constant_text.register(list)
def _(value: list[Any], module: Module) -> str:
    return f"[{', '.join(map(module.constant, value))}]"


@constant_text.register(set)
@constant_text.register(frozenset)
def _(value: Any, module: Module) -> str:
    return f"{type(value).__name__}([{', '.join(sorted(map(module.constant, value)))}])"


@constant_text.register(dict)
def _(value: dict[Any, Any], module: Module) -> str:
    pairs = [f"{module.constant(k)}: {module.constant(v)}" for k, v in value.items()]
    return f"{{{', '.join(pairs)}}}"


def refuse(reason: str) -> NoReturn:
    """The program cannot be written as a module of its own."""
    raise errors.UnsupportedError(f"this adjoint cannot be written as a module: {reason}")


def is_own(value: Any) -> bool:
    """Is a function or a module one of Morula's?"""
    name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
    return str(name).partition(".")[0] == __name__.partition(".")[0]


def place_of(fn: Any) -> tuple[ModuleType, str] | None:
    """A module and a name in it by which a callable can be had."""
    name = getattr(fn, "__name__", None)
    path = getattr(fn, "__qualname__", name)
    homes = [getattr(fn, "__module__", None), *LIKELY_HOMES]
    for home in homes:
        module = sys.modules.get(home) if isinstance(home, str) else None
        if module is None or not isinstance(path, str):
            continue
        found: Any = module
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is fn:
            return public_home(module, path, fn), path
    return None


LIKELY_HOMES = ("numpy", "scipy.special", "math", "cmath", "operator")  # of what does not say it


def public_home(module: ModuleType, path: str, fn: Any) -> ModuleType:
    """The shortest package on the way to a module that has the same thing under the same name."""
    parts = module.__name__.split(".")
    if parts[0].startswith("_"):
        parts = [parts[0].lstrip("_"), *parts[1:]]
    for n in range(1, len(parts)):
        package = sys.modules.get(".".join(parts[:n]))
        if package is not None and getattr(package, path, None) is fn:
            return package
    public = sys.modules.get(".".join(parts))
    return public if public is not None and getattr(public, path, None) is fn else module


def definition(thing: Any) -> ast.stmt | None:
    """The source of a function or class of a module, without decorators and annotations."""
    plain = inspect.isclass(thing) or (type(thing) is FunctionType and not thing.__closure__)
    if not plain or "<locals>" in thing.__qualname__:
        return None
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body
    except (OSError, SyntaxError, ValueError):
        return None
    if not isinstance(tree, ast.FunctionDef | ast.ClassDef) or tree.name != thing.__name__:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    if isinstance(tree, ast.FunctionDef):
        tree.decorator_list = []
    return tree


def globals_read(thing: Any) -> list[tuple[str, Any]]:
    """The global variables that a function or class reads, and their values."""
    if inspect.isclass(thing):
        members = [getattr(m, "__func__", getattr(m, "fget", m)) for m in vars(thing).values()]
        found = dict(x for m in members if isinstance(m, FunctionType) for x in globals_read(m))
        return sorted(
            [*found.items(), *((b.__name__, b) for b in thing.__bases__ if b is not object)]
        )
    namespace = thing.__globals__
    return [
        (name, namespace[name]) for name in sorted(names_in(thing.__code__)) if name in namespace
    ]


def names_in(code: CodeType) -> set[str]:
    """The names that code looks up; attributes are among them."""
    inner = [names_in(c) for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*inner)
