"""Does a function write to what it is given? As its own code tells, without what it calls.

What a call asks of an object of a user's class may run methods of that class, which may write as well.

Tests: tests/rules/test_checkpoints.py
"""

from __future__ import annotations

import dis
import functools
import inspect
import operator
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

from morula.core.bytecode.instructions import IN_PLACE
from morula.core.bytecode.lower import lower
from morula.core.errors import UnsupportedError
from morula.core.infer import is_builtin
from morula.core.ir import Call, Const, Var
from morula.core.primitives import get_cell, make_function
from morula.core.registry import registry
from morula.core.traits import (
    attributes_that_write,
    coarse_detail,
    names_that_write,
    parts_of,
    typed_zero,
)

if TYPE_CHECKING:
    from morula.core.specialise import Specialiser

IN_PLACE_OPERATORS = [getattr(operator, name) for name in IN_PLACE.values()]
METHODS = ("fill", "sort", "partition", "put", "resize", "setfield", "itemset")


def by_code(asked: Callable[[CodeType], Any]) -> Callable[[CodeType], Any]:
    """Keep the answers; the constants of code that Morula has made may be such that have no hash."""
    kept = functools.lru_cache(1024)(asked)

    @functools.wraps(asked)
    def answer(code: CodeType) -> Any:
        try:
            return kept(code)
        except TypeError:
            return asked(code)

    return answer


def writes_to_given(s: Specialiser, fn: Any) -> bool:
    """May a function, an operand of a program, write to an argument or to what it captures?"""
    value = s.value(fn)
    if type(value) is Const:
        code = getattr(getattr(value.value, "__func__", value.value), "__code__", None)
    else:
        made = next((c for c in s.ir.calls() if c.out is fn), None)
        is_local = made is not None and made.primitive is make_function
        code = s.value(made.args[1]).value if is_local else None  # type: ignore[union-attr]
    return type(code) is CodeType and code_writes(code)


def runs_method_that_writes(primitive: Any, cls: type, name: Any) -> bool:
    """May a primitive run a method of its operand's class that writes, or by an attribute's name?"""
    return any(code_writes(method.__code__) for method in methods_run(primitive, cls, name))


def methods_run(primitive: Any, cls: type, name: Any) -> list[FunctionType]:
    """The methods, written in Python, that a primitive may run of an operand of this class."""
    asked = str(getattr(primitive, "__name__", "")).strip("_")
    names = [f"__{asked}__", *BESIDES.get(asked, ())]
    if asked[:1] == "i" and hasattr(operator, asked[1:]):
        names += [f"__{asked[1:]}__", f"__r{asked[1:]}__"]
    found = [inspect.getattr_static(cls, method, None) for method in names]
    attribute = inspect.getattr_static(cls, name, None) if type(name) is str else None
    if asked in ("getattr", "setattr", "delattr"):
        found.append(getattr(attribute, f"f{asked[:3]}", None))  # of a property
    return [method for method in found if type(method) is FunctionType]


def named_by(fn: Any) -> list[Any]:
    """The globals that a user's function, or the methods of a class, have names of."""
    functions = [fn, *vars(fn).values()] if isinstance(fn, type) else [fn]
    return [
        f.__globals__[name]
        for f in functions
        if type(f) is FunctionType and not str(f.__module__).startswith("morula.")
        for name in f.__code__.co_names
        if name in f.__globals__
    ]


def surroundings(roots: list[Any]) -> Iterator[tuple[Any, bool]]:
    """What the functions among these values may find, each with whether the values hold it themselves.

    That is what they, the methods of objects and the functions that they name, name in their turn or
    have captured. Without numbers, texts and what has rules.
    """
    waiting = [(x, True) for x in roots]
    seen: dict[tuple[int, bool], Any] = {}
    while waiting and len(seen) < MOST_SEEN:
        x, is_inside = waiting.pop()
        key = id(x), is_inside
        if key in seen or is_number(type(x)) or registry.get(x) is not None:
            continue
        seen[key] = x  # kept: its id must stay its own
        yield x, is_inside
        if type(x) in coarse_detail:
            continue
        waiting += [(y, False) for y in (*named_by(x), *attributes_named_by(x))]
        is_function = type(x) is FunctionType
        waiting += [(y, is_inside and not is_function) for y in first_parts(x)]
        cls = x if isinstance(x, type) else type(x)
        if not is_builtin(cls):
            waiting += [(f, True) for f in vars(cls).values() if type(f) is FunctionType]


MOST_SEEN = 2000


def first_parts(x: Any) -> Iterator[Any]:
    """What a value holds, of containers of more than is ever looked at the first so many."""
    if type(x) in (list, tuple, dict) and len(x) > MOST_SEEN:
        return islice(x.values() if isinstance(x, dict) else x, MOST_SEEN)
    return iter((parts_of(x) or {}).values())


def may_write_to_hidden_arrays(roots: list[Any]) -> bool:
    """May the functions among these values write to arrays that they find in their surroundings?

    Arrays that the values themselves hold do not count.
    """
    has_arrays = has_writers = False
    for x, is_inside in surroundings(roots):
        has_arrays |= type(x) in coarse_detail and not is_inside
        has_writers |= type(x) is FunctionType and may_write_in_place(x.__code__)
    return has_arrays and has_writers


def name_read(call: Call) -> Any:
    """The name of the attribute that a call reads; None: it reads none, or one of a computed name."""
    if call.primitive is not getattr or len(call.args) != 2:
        return None
    return getattr(call.args[1], "value", None)


def has_meaning_of_its_own(roots: list[Any], name: str) -> bool:
    """May a method of this name be one of a class of the user's, or a function that an object holds?

    As far as the surroundings of these values tell; if they are very many it may.
    """
    for seen, (x, _) in enumerate(surroundings(roots), 1):
        cls = x if isinstance(x, type) else type(x)
        if seen == MOST_SEEN or (not is_builtin(cls) and is_python(cls, name)):
            return True
        if name in (getattr(x, "__dict__", None) or ()) and not isinstance(x, (type, ModuleType)):
            return True
        if type(x) is FunctionType and not {name, ANY_NAME}.isdisjoint(stored_by(x.__code__)[1]):
            return True
    return False


def is_python(cls: type, name: str) -> bool:
    """Is an attribute of a class something that its author has written?"""
    found = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
    return found is not None and not isinstance(found, (MethodDescriptorType, GetSetDescriptorType))


def may_rebind(
    roots: list[Any], variables: Collection[Variable], names: Collection[str], has_data: bool
) -> bool:
    """May the functions among these values rebind a global variable or an attribute of such a name?

    With `has_data`, some of the names are those of data in classes, which a computed name may be.
    """
    functions = [x for x, _ in surroundings(roots) if type(x) is FunctionType]
    for f in functions:
        variable, attribute = stored_by(f.__code__)
        if not attribute.isdisjoint(names) or (has_data and ANY_NAME in attribute):
            return True
        if any((id(f.__globals__), name) in variables for name in variable):
            return True
    return False


Variable = tuple[int, str]  # the identity of a namespace and a name in it


ANY_NAME = "*"
# What rebinds by a name that is a text.
BY_NAME = {"setattr", "delattr", "__setattr__", "__delattr__", "__dict__", "vars", "globals"}


@by_code
def stored_by(code: CodeType) -> tuple[set[str], set[str]]:
    """The global variables and the attributes that a code object, or one inside it, rebinds."""
    variables, attributes = set(), set()
    for ins in dis.get_instructions(code):
        if ins.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            variables.add(ins.argval)
        elif ins.opname in ("STORE_ATTR", "DELETE_ATTR"):
            attributes.add(ins.argval)
    if not BY_NAME.isdisjoint(code.co_names):
        texts = {x for x in code.co_consts if type(x) is str}
        variables |= texts
        attributes |= {*texts, ANY_NAME}
    for inner in code.co_consts:
        if type(inner) is CodeType:
            more = stored_by(inner)
            variables |= more[0]
            attributes |= more[1]
    return variables, attributes


def is_number(t: type) -> bool:
    """Is it a type of numbers or texts?"""
    return t is str or typed_zero(t) is not None


def attributes_named_by(fn: Any) -> list[Any]:
    """What a user's function may read of the modules that it names."""
    modules = [x for x in named_by(fn) if type(x) is ModuleType and fn is not x]
    names = fn.__code__.co_names if modules and type(fn) is FunctionType else ()
    return [vars(m)[name] for m in modules for name in names if name in vars(m)]


@by_code
def may_write_in_place(code: CodeType) -> bool:
    """Has a code object, or one inside it, instructions or names of what writes to arrays?"""
    keywords = [name for x in code.co_consts if type(x) is tuple for name in x]
    return (
        any(map(writes_in_place, dis.get_instructions(code)))
        or not {"setattr", *METHODS, *names_that_write}.isdisjoint([*code.co_names, *keywords])
        or any(may_write_in_place(x) for x in code.co_consts if type(x) is CodeType)
    )


def writes_in_place(ins: dis.Instruction) -> bool:
    """May an instruction write to an array?"""
    if ins.opname == "STORE_ATTR":
        return ins.argval in attributes_that_write
    if ins.opname == "BINARY_OP":
        return ins.argrepr.endswith("=")
    return ins.opname in ("STORE_SUBSCR", "STORE_SLICE")


BESIDES = {
    "truth": ("__bool__", "__len__"),
    "getattr": ("__getattribute__",),
    "next": ("__next__",),
}


@by_code
def code_writes(code: CodeType) -> bool:
    """The same of its code."""
    try:
        ir = lower(code, {})
    except UnsupportedError:
        return False
    given: set[Any] = set(ir.blocks[0].params)
    before = -1
    while len(given) > before:
        before = len(given)
        given.update([p for p, x in ir.passed() if x in given])
        given.update([c.out for c in ir.calls() if is_of_given(c, given)])
    return any(writes(c, given) for c in ir.calls())


def is_of_given(c: Call, given: set[Any]) -> bool:
    """Is what a call gives captured, or a part or a view of what was given?"""
    if type(c.fn) is Var:
        return c.fn in given  # a method; what it gives may be a view
    parts = (getattr, operator.getitem, *IN_PLACE_OPERATORS)
    return c.primitive is get_cell or (c.primitive in parts and c.args[0] in given)


def writes(c: Call, given: set[Any]) -> bool:
    """Does a call write to what was given?"""
    by_name = zip(c.keywords, c.args[len(c.args) - len(c.keywords) :], strict=True)
    if any(name == "out" and x in given for name, x in by_name):
        return True
    if c.primitive is getattr and c.args[0] in given:
        return getattr(c.args[1], "value", None) in METHODS
    return c.primitive in (operator.setitem, *IN_PLACE_OPERATORS) and c.args[0] in given
