"""Numbers that are read from texts and bytes which were made of numbers have lost their derivative.

A text has no cotangent. So while code is differentiated it is noted by its identity if it was made of
numbers: by `str`, a format, `json.dumps`, and by whatever makes a text of such a text (`join`, `split`,
`strip`, slices, `+`). Where a number is read from one, and the gradient depends on that number, a
warning says so, as where a real number is stored in an array of integers. In reverse mode nothing is
known of where a number came from: one that does not depend on the arguments counts too. Texts of
files and constants are made of no numbers and are free.
Tests: tests/rules/test_lossy.py
"""

from __future__ import annotations

import ast
import csv
import io
import mmap
import operator
import re
import warnings
from collections.abc import Callable, Iterable
from numbers import Number
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    Const,
    Known,
    NotSpecialised,
    answers,
    changes_objects,
    constant_unless,
    count_uses,
    general,
    is_bound,
    is_known,
    is_reached,
    is_zero,
    known,
    non_differentiable,
    primitives,
    refuses,
    transfers,
    unthunk,
)
from morula.rules.arrays.inplace import users_line
from morula.rules.lists import list_item
from morula.rules.objects import is_part_of_python

FILES = (io.StringIO, io.BytesIO, io.TextIOWrapper, io.BufferedRandom, io.FileIO)
WRITABLE = (bytearray, mmap.mmap, *FILES)
TABLE = type(csv.reader(()))
TEXTS = (str, bytes, re.Match, CodeType, ast.AST, TABLE, *WRITABLE)
MOST = 4096  # texts that are known at a time
LONGEST = 2**22  # characters in them


def is_text(x: Any) -> bool:
    """Is it text, or an array of texts?"""
    return isinstance(x, TEXTS) or (isinstance(x, np.ndarray) and x.dtype.kind in "SU")


TREES = (ast.Module, ast.Expression, ast.Interactive, ast.FunctionType)
for _type in (str, bytes, bytearray, np.str_, np.bytes_, np.ndarray, *TREES):
    general.ENCODINGS[_type] = is_text
del _type


def is_marked(x: Any, known: dict[int, Any], inside: bool = True) -> bool:
    """Is it a text that was made of numbers, or does it hold one?"""
    if type(x) in (list, tuple):
        return inside and any([is_marked(item, known) for item in x])
    return id(x) in known and is_text(x)


def any_marked(values: Any, known: dict[int, Any], inside: bool = True) -> bool:
    """Is there such a text among these values, or in those that are lists or tuples?"""
    return bool(known) and any([is_marked(x, known, inside) for x in values])


def mark(x: Any, known: dict[int, Any]) -> None:
    """Note a text, or all texts in a list or a tuple."""
    if type(x) in (list, tuple):
        for item in x:
            mark(item, known)
    elif is_text(x) and not is_shared(x):
        known[id(x)] = x
        if len(known) > MOST:
            del known[next(iter(known))]


def mark_all(values: Any, known: dict[int, Any]) -> None:
    """Note what a call may have written text to."""
    for x in values:
        if isinstance(x, WRITABLE):
            known[id(x)] = x


def is_shared(x: Any) -> bool:
    """Is it one of the texts that there is one object of, or too long to be kept?"""
    return len(x) < 2 or len(x) > LONGEST if isinstance(x, (str, bytes)) else False


def is_number(x: Any) -> bool:
    """Is it a real or complex number, or an array of such?"""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "fcO"
    return isinstance(x, Number) and not isinstance(x, (int, np.integer))


def holds_numbers(x: Any, depth: int = 4) -> bool:
    """Is it a number, or a container of some?"""
    if type(x) in (list, tuple, set, frozenset, dict):
        items = x.values() if type(x) is dict else x
        return depth > 0 and any([holds_numbers(item, depth - 1) for item in items])
    return is_number(x)


MAKERS = (operator.mod, str.__mod__, str.format)
READERS: list[Any] = [
    float, complex, np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.ndarray.astype,
    float.__dict__["fromhex"], eval, ast.literal_eval,
]  # fmt: skip
READING_OBJECTS: list[type] = []  # the types of objects that do when they are called
ITEMS = (operator.getitem, getattr, dict.get, dict.pop, dict.setdefault)  # give what was there


def is_one_of(fn: Any, functions: Iterable[Any]) -> bool:
    """Is it one of these functions?"""
    return any([fn is g for g in functions])


def reads(fn: Any, values: tuple[Any, ...] = ()) -> bool:
    """Is it known for reading numbers from texts?"""
    if is_one_of(fn, ITEMS):
        return len(values) > 0 and isinstance(values[0], ast.AST)  # a literal, in a syntax tree
    if isinstance(fn, type):
        return fn in READERS or issubclass(fn, Number | np.generic)
    return is_one_of(fn, READERS) or isinstance(fn, tuple(READING_OBJECTS))


def makes(fn: Any, values: tuple[Any, ...], y: Any, by_code: bool) -> bool:
    """Does a call make a text of numbers?"""
    if not (by_code or is_one_of(fn, MAKERS) or isinstance(y, np.ndarray)):
        return False
    return any(map(holds_numbers, values))


def where_read(fn: Any, values: tuple[Any, ...], y: Any, by_code: bool) -> str:
    """Where a call reads a number from a text that was made of some; texts are noted."""
    known = general.LOSSY
    if is_bound(fn):
        return ""
    is_item = is_one_of(fn, ITEMS)
    inside = not is_item and (by_code or reads(fn))
    if is_text(y) or (by_code and holds_text(y)) or is_row(values, y):
        made = not is_item and makes(fn, values, y, by_code)
        if made or any_marked(values, known, inside):
            mark(y, known)
        return ""
    of_text = reads(fn, values)
    if (is_item and not of_text) or not any_marked(values, known, inside):
        return ""
    mark_all(values, known)
    return users_line() if (by_code or of_text) and holds_numbers(y) else ""


def holds_text(x: Any) -> bool:
    """Is it a list or a tuple that begins with a text?"""
    return type(x) in (list, tuple) and len(x) > 0 and is_text(x[0])


def is_row(values: tuple[Any, ...], y: Any) -> bool:
    """Is y a list of texts that came out of a reader of `csv`?"""
    return holds_text(y) and len(values) > 0 and isinstance(values[0], TABLE)


def reading_pullback(where: str, back: Callable[[Any], Any], y: Any, ȳ: Any) -> Any:
    """The pullback of what reads a number from a text."""
    bars = back(ȳ)
    if not is_zero(unthunk(ȳ)) or is_reached_inside(y):
        warn_of_reading(where)
    return bars


def is_reached_inside(y: Any) -> bool:
    """Does the gradient depend on a number in a list or a dict?"""
    if type(y) not in (list, dict, tuple):
        return False
    if type(y) is not tuple and is_reached(y):
        return True
    return any(map(is_reached_inside, y.values() if type(y) is dict else y))


def warn_of_reading(where: str) -> None:
    """A number that is read from a text has lost its derivative."""
    warnings.warn(
        "a number that the gradient depends on is read from a text that was made of numbers: the "
        f"derivative of that is zero\n  {where}",
        stacklevel=2,
    )


general.FOLLOWS.append(general.Follows(where_read, reading_pullback, warn_of_reading))
non_differentiable(
    is_text, is_marked, any_marked, mark, mark_all, holds_numbers, holds_text,
    is_one_of, is_row, reads, makes, warn_of_reading, is_reached_inside,
)  # fmt: skip

# Asked at every call: a plain call would not be seen.
constant_unless(lambda types: False, primitives.build_string)

# -- compiled programs -----------------------------------------------------------------------------


@transfers(primitives.format_value, primitives.build_string)
def _(s: Any, call: Any, args: Any) -> Any:
    """A text, which is known if all that it is made of is."""
    if all(type(a) is Const for a in args) and type(args[0].value) in (str, int, bool):
        return Const(call.primitive(*[a.value for a in args]))
    return Known(str)


answers(primitives.format_value, primitives.build_string)


@refuses
def _(adjoint: Any) -> None:
    """A program that reads numbers from texts which depend on its arguments takes the general path."""
    s = adjoint.specialiser
    unseen = {c.out for c in s.ir.calls() if is_unseen(s, c)}
    if any(c.primitive in (float, complex) and c.args[0] in unseen for c in s.ir.calls() if c.args):
        raise NotSpecialised("numbers that may have been text")
    printed = [c for c in s.ir.calls() if c.primitive is print and "file" in c.keywords]
    if not all([prints_to_console(s, c) for c in printed]):
        raise NotSpecialised("numbers that are printed to a file")
    made = [c for c in s.ir.calls() if gives_text(s, c)]
    if not made and not unseen:
        return
    dependent = reached_from(s, adjoint.leaves)
    texts = {c.out for c in made if any(x in dependent for x in c.operands())}
    encoded = reached_from(s, texts) if texts else set()
    if may_read_what_is_stored(s, dependent, encoded):
        raise NotSpecialised("numbers that may have been text")
    for c in s.ir.calls() if encoded else ():
        if is_of_exceptions(c.primitive) or not is_kind_of_number(s.types.get(c.out)):
            continue
        if any(x in encoded for x in c.operands()):
            raise NotSpecialised("numbers that were text")


def prints_to_console(s: Any, call: Any) -> bool:
    """Does a call of print name the file of the console, or another one of the system?"""
    file = call.args[len(call.args) - len(call.keywords) + call.keywords.index("file")]
    k = Known(type(file.value)) if type(file) is Const else known(s.types.get(file))
    if k is not None:
        return issubclass(k.type, io.TextIOWrapper)
    made = next((c for c in s.ir.calls() if c.out is file), None)
    return made is not None and made.primitive is getattr and made.args[1].value in CONSOLE


CONSOLE = ("stdout", "stderr")


def may_read_what_is_stored(s: Any, dependent: set[Any], texts: set[Any]) -> bool:
    """May a call of something unknown read a number from a text that another call has stored?

    What stores it puts it into an object, or is unknown itself and depends on the arguments.
    """
    stored, used = False, count_uses(s.ir)
    for c in [*s.ir.calls()] * (2 if has_loops(s.ir) else 1):
        given = is_unseen(s, c) and not keeps_no_text(c.primitive)
        depends = any(x in dependent for x in c.operands())
        reads = given and c.out in used and is_kind_of_number(s.types.get(c.out))
        if reads and stored and not depends:
            return True
        changes = type(c.fn) is not Const or changes_objects(c.primitive)
        stored |= (given and depends) or (changes and any(x in texts for x in c.args))
    return False


def keeps_no_text(fn: Any) -> bool:
    """Is it a helper of a rule, or does it only take something apart?"""
    of_rules = type(fn) is FunctionType and str(fn.__module__).startswith("morula.")
    return of_rules or is_one_of(fn, (iter, next, getattr, len, primitives.advance))


def has_loops(ir: Any) -> bool:
    """Does a branch of a program lead back?"""
    places = {block: i for i, block in enumerate(ir.blocks)}
    return any(
        places.get(b.block, len(places)) <= i for i, x in enumerate(ir.blocks) for b in x.branches
    )


def is_of_exceptions(fn: Any) -> bool:
    """Does it make an exception of a text, or raise one?"""
    made = isinstance(fn, type) and issubclass(fn, BaseException) and is_part_of_python(fn)
    return made or fn is primitives.raise_exception


def reached_from(s: Any, variables: Iterable[Any]) -> set[Any]:
    """All variables that depend on these, in whatever way."""
    found = set(variables)
    size = -1
    while size != len(found):
        size = len(found)
        for c in s.ir.calls():
            if any(x in found for x in c.operands()) and not is_answer(s.types.get(c.out)):
                found.add(c.out)
                found.update([x for x in c.args if may_hold_text(s.types.get(x))])
        found.update(p for p, a in s.ir.passed() if a in found)
    return found


def gives_text(s: Any, call: Any) -> bool:
    """Does a call give text, or something without derivative that is not known?"""
    k = known(s.types.get(call.out))
    if call.primitive in VIEWS or call.primitive in MOVERS:
        return False
    if k is None:
        if any([type(x) is Const and is_one_of(x.value, TEXT_MAKERS) for x in call.operands()]):
            return True
        if call.primitive is operator.mod:
            template = known(type_of(s, call.args[0]))
            return template is not None and template.type in general.ENCODINGS
        return may_give_text(call.primitive, bool(s.is_constant(call)))
    if k.type is np.ndarray:
        return k.detail[0][1] in "SU"
    return k.type in general.ENCODINGS


def is_unseen(s: Any, call: Any) -> bool:
    """Is it a call of something unknown, of whose result nothing is known?"""
    if known(s.types.get(call.out)) is not None:
        return False
    return type(call.fn) is not Const or not (callable(call.primitive) and is_known(call.primitive))


TEXTS_OF_NUMPY = (
    "array2string", "array_repr", "array_str", "base_repr", "binary_repr", "format_float_positional",
    "format_float_scientific",
)  # fmt: skip


TEXT_MAKERS = (
    str, repr, format, ascii, str.format, str.format_map, str.__mod__, bytes.__mod__,
    primitives.format_value, primitives.build_string, re.sub, re.subn, re.Pattern.sub, re.Pattern.subn,
)  # fmt: skip


VIEWS = (dict.values, dict.items, dict.keys)  # of what is in a dict: texts that were put there
MOVERS = (operator.getitem, list_item, list.pop, primitives.advance, primitives.alias)  # likewise


def type_of(s: Any, x: Any) -> Any:
    """What is known of an operand."""
    return x if type(x) is Const else s.types.get(x)


def may_give_text(fn: Any, constant: bool) -> bool:
    """May a function of which nothing is known give text?"""
    package, *rest = str(getattr(fn, "__module__", None)).split(".")
    if package == "numpy":
        return fn.__name__ in TEXTS_OF_NUMPY or rest[:1] in (["char"], ["strings"])
    return (constant and package != "morula") or is_one_of(fn, TEXT_MAKERS)


def is_kind_of_number(value: Any) -> bool:
    """May a value be a number that has a derivative?"""
    k = known(value)
    if k is None:
        return True
    if k.type is np.ndarray:
        return k.detail[0][1] in "fcO"
    return issubclass(k.type, Number) and not issubclass(k.type, (int, np.integer))


def is_answer(value: Any) -> bool:
    """Is a value a truth value or an integer?"""
    k = known(value)
    return k is not None and issubclass(k.type, (int, np.integer, np.bool_))


def may_hold_text(value: Any) -> bool:
    """May texts have been stored in a value?"""
    k = known(value)
    return k is not None and k.type in (list, dict)
