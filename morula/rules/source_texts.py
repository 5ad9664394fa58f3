"""Rules of eval and exec: the text is compiled, and runs as a function of the names that it is given.

That is how the body of a class runs (`body_code`); its value is that of the expression. A text without
a namespace reads the variables of the function that it stands in, which differentiated code keeps
under no names: it is refused, unless it names nothing but what is built in.
Tests: tests/rules/test_source_texts.py
"""

import builtins
import dis
import functools
import sys
from types import CodeType, FrameType, FunctionType
from typing import Any

from morula.core.extend import (
    NONE,
    ZERO,
    NotSpecialised,
    body_code,
    call,
    constant_unless_written,
    general,
    non_differentiable,
    rewrites,
    unsupported,
)
from morula.rules.arrays.inplace import users_line
from morula.rules.boxes import assign_all_globals, expose_globals
from morula.rules.calls import serves
from morula.rules.lossy import READERS, holds_numbers, is_marked, warn_of_reading


@functools.lru_cache(maxsize=256)
def code_of(text: Any, mode: str) -> CodeType:
    """The code of a text."""
    return compile(text, "<string>", mode, dont_inherit=True)


def as_function(fn: Any, text: Any, *spaces: Any, **named: Any) -> tuple[Any, Any]:
    """A function of the names that a text finds and sets, and these names."""
    namespace, names = spaces_of(*spaces, **named)
    if is_buffer(text):
        text = bytes(text)
    if fn is eval and isinstance(text, (str, bytes)):
        text = text.lstrip(" \t" if isinstance(text, str) else b" \t")
    code = text if isinstance(text, CodeType) else code_of(text, fn.__name__)
    if namespace is None:
        if not set(names_in(code)) <= vars(builtins).keys():
            what = f"{fn.__name__} without a namespace, which reads the variables around it,"
            raise unsupported(what, shown(text), "Give it a dict: eval(text, {'x': x})")
        namespace = names = {}
    if code.co_freevars:
        raise unsupported(f"{fn.__name__} of code with a closure", shown(text))
    if type(namespace) is not dict:
        raise TypeError(f"{fn.__name__}() globals must be a dict, not {type(namespace).__name__}")
    namespace.setdefault("__builtins__", builtins)
    assign_all_globals(namespace)
    body = FunctionType(body_code(code, namespace), namespace, code.co_name)
    return body, names


def spaces_of(globals: Any = None, locals: Any = None, /, **named: Any) -> tuple[Any, Any]:
    """The namespace of a text, and the mapping of its names."""
    globals, locals = named.get("globals", globals), named.get("locals", locals)
    if globals is None and locals is not None:
        globals = {}
    return globals, globals if locals is None else locals


def names_in(code: CodeType) -> list[str]:
    """The names that a code reads and sets, with those of the functions in it."""
    inside = [name for x in code.co_consts if isinstance(x, CodeType) for name in names_in(x)]
    return [*code.co_names, *inside]


def shown(text: Any) -> str:
    """The beginning of a text, as a message shows it."""
    return text.co_filename if isinstance(text, CodeType) else repr(text)[:60]


def run_text(fn: Any, *args: Any, **named: Any) -> Any:
    """`eval(*args)` or `exec(*args)`."""
    body, names = as_function(fn, *args, **named)
    y = body(names)
    if fn is exec:
        bound_numbers(args[0], names)
    return y if fn is eval else None


def bound_numbers(text: Any, names: Any) -> list[Any]:
    """The numbers that a text which has run has bound: read from it, as those that `eval` gives."""
    code = (
        text
        if isinstance(text, CodeType)
        else code_of(bytes(text) if is_buffer(text) else text, "exec")
    )
    found = [
        names[name] for name in names_bound(code) if name in names and holds_numbers(names[name])
    ]
    if found and is_marked(text, general.LOSSY):
        warn_of_reading(users_line())
    return found


def is_buffer(text: Any) -> bool:
    """Is it a text in memory that may be written to?"""
    return isinstance(text, (bytearray, memoryview))


def names_bound(code: CodeType) -> list[str]:
    """The names that a code binds."""
    return [ins.argval for ins in dis.get_instructions(code) if ins.opname in BINDS]


BINDS = ("STORE_NAME", "STORE_GLOBAL")
READERS.append(bound_numbers)
non_differentiable(as_function, bound_numbers)


@serves(eval, exec)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y, back = call(run_text, fn, *args, **kwargs)

    def text_pullback(ȳ: Any) -> tuple[Any, ...]:
        back(ȳ)
        return (NONE, *[ZERO] * (len(args) + len(kwargs)))

    return y, text_pullback


@rewrites
def _(s: Any) -> bool:
    """Functions that run texts go by the general path."""
    calls = [*s.ir.calls()]
    if any(c.primitive in (eval, exec, globals, locals) for c in calls) or any(
        c.primitive in (vars, dir) and not c.args for c in calls
    ):
        raise NotSpecialised("a text is run")
    return False


def user_frame() -> FrameType:
    """The innermost function that runs and is not of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("morula."):
        frame = frame.f_back
    return frame


@serves(globals)
def global_variables(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The dict of the module: its items are the variables."""
    namespace = user_frame().f_globals
    expose_globals(namespace)
    return namespace, lambda ȳ: (NONE,)


constant_unless_written(lambda fn, n, keywords: not n, dir)  # of what is around


@serves(dir)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return refuse_names(fn, args, kwargs)


@serves(locals)
def refuse_names(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Which variables there are depends on the way that was taken: otherwise `lower` has named them.

    pytest asks for them to word a failed assertion.
    """
    if fn is locals and "@py_builtins" in user_frame().f_code.co_names:
        return {}, lambda ȳ: (NONE,)
    raise unsupported(
        f"{fn.__name__}(), which asks for the variables around it,",
        f"{fn.__name__}() is called",
        "Name the variables that are meant, as in {'x': x}",
    )
