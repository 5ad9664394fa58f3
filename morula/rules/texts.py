"""What makes text, or looks into it, is constant: re, warnings, pprint; logging and json when met.

So is the state of files. Numbers that are read from texts: rules/lossy.py. They run
as they are: nothing of a gradient is in them, and their own code is long.
Tests: tests/rules/test_texts.py
"""

from __future__ import annotations

import ast
import io
import pprint
import re
import warnings
from types import MethodDescriptorType
from typing import Any

from morula.core.extend import (
    NONE,
    Const,
    Known,
    answers,
    call,
    constant_unless,
    effects,
    known,
    no_tangent,
    non_differentiable,
    only_reads,
    primitives,
    repeatable,
    result_on_samples,
    rewrites,
    transfers,
)
from morula.rules.calls import serves
from morula.rules.list_types import own_items
from morula.rules.objects import asks_for_text, types_within

non_differentiable(
    re.compile, re.match, re.fullmatch, re.search, re.split, re.findall, re.finditer, re.escape,
    ast.literal_eval, warnings.warn, warnings.warn_explicit,
    primitives.refuse_frame,
)  # fmt: skip

constant_unless(asks_for_text, pprint.pprint, pprint.pformat, pprint.pp, types_of=types_within)

no_tangent(re.Pattern, re.Match)
non_differentiable(re.Match.start, re.Match.end, re.Match.span)
FILES = (
    io.StringIO, io.BytesIO, io.TextIOWrapper, io.FileIO, io.BufferedReader, io.BufferedWriter,
    io.BufferedRandom,
)  # fmt: skip
STATE_OF_FILES = (
    "close", "detach", "fileno", "flush", "isatty", "readable", "seek", "seekable", "tell", "truncate",
    "writable",
)  # fmt: skip
non_differentiable(
    *[vars(c)[name] for f in FILES for c in f.__mro__ for name in STATE_OF_FILES if name in vars(c)]
)


@serves(re.sub, re.subn, re.Pattern.sub, re.Pattern.subn)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Constant as well, but for what a function of the user's does that is called."""
    if any(callable(a) for a in (*args, *kwargs.values())):
        counts = fn in (re.subn, re.Pattern.subn)
        return call(replaced_and_counted if counts else replaced, *args, **kwargs)
    y, _ = call(plain_call, fn, *args, **kwargs)
    return y, lambda ȳ: (NONE,) * (1 + len(args) + len(kwargs))


def plain_call(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """The text that a function makes of texts."""
    return fn(*args, **kwargs)


non_differentiable(plain_call)


def replaced(pattern: Any, repl: Any, string: Any, count: int = 0, flags: Any = 0) -> Any:
    """`re.sub` with a function, in Python."""
    return replaced_and_counted(pattern, repl, string, count, flags)[0]


def replaced_and_counted(
    pattern: Any, repl: Any, string: Any, count: int = 0, flags: Any = 0
) -> tuple[Any, int]:
    """`re.subn` with a function, in Python."""
    pieces: list[Any] = []
    end = n = 0
    for match in re.compile(pattern, flags).finditer(string):
        if n == count and count > 0:
            break
        pieces += [string[end : match.start()], repl(match)]
        end, n = match.end(), n + 1
    return string[:0].join([*pieces, string[end:]]), n


# -- methods of texts: in a program they are known where the text is, such as the key of a dict


def is_of_the_text_alone(name: str) -> bool:
    """Does a method of a text depend on it, and on other texts, and give no list?"""
    takes_more = ("join", "format", "format_map", "translate", "maketrans")
    return name not in (*takes_more, "split", "rsplit", "splitlines")


METHODS = [
    method
    for name, method in vars(str).items()
    if type(method) is MethodDescriptorType and is_of_the_text_alone(name)
]
repeatable(*METHODS)
answers(*METHODS)


@transfers(*METHODS)
def _(s: Any, call: Any, args: Any) -> Any:
    """The answer itself, if all is known, else its type."""
    if call.keywords or not all(type(a) is Const for a in args):
        return result_on_samples(call.primitive, args, call.keywords)
    try:
        y = call.primitive(*[a.value for a in args])
    except Exception:  # it says so when it happens
        return None
    return Const(y) if type(y) in (str, bool, int) else None


@transfers(str.split, str.rsplit, str.splitlines)
def _(s: Any, call: Any, args: Any) -> Any:
    """A list of texts."""
    made = own_items(s, call)
    made.put(Known(str))
    return Known(list, made.root())


only_reads(str.split, str.rsplit, str.splitlines)


def float_of(text: str) -> float:
    """`float(text)`, which may be no number."""
    return float(text)


def int_of(text: str) -> int:
    """`int(text)`, which may be no number."""
    return int(text)


READING = {float: float_of, int: int_of}
non_differentiable(float_of, int_of)
effects(float_of, int_of)
transfers(float_of)(lambda s, call, args: Known(float))
transfers(int_of)(lambda s, call, args: Known(int))


@rewrites
def read_numbers(s: Any) -> bool:
    """Numbers that are read from texts are known as such, and asked for in any case."""
    found = [c for c in s.ir.calls() if c.primitive is float or c.primitive is int]
    found = [c for c in found if len(c.args) == 1 and known(s.value(c.args[0])) == Known(str)]
    for reading in found:
        reading.fn = Const(READING[reading.primitive])
    return bool(found)
