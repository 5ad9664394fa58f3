"""Does a function write to what it is given? As its own code tells, without what it calls.

What a call asks of an object of a user's class may run methods of that class, which may write as well.

Tests: tests/rules/test_checkpoints.py
"""

from __future__ import annotations

import functools
import inspect
import operator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from morula.core.bytecode.instructions import IN_PLACE
from morula.core.bytecode.lower import lower
from morula.core.errors import UnsupportedError
from morula.core.ir import Call, Const, Var
from morula.core.primitives import get_cell, make_function

if TYPE_CHECKING:
    from morula.core.specialise import Specialiser

IN_PLACE_OPERATORS = [getattr(operator, name) for name in IN_PLACE.values()]
METHODS = ("fill", "sort", "partition", "put", "resize", "setfield", "itemset")


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


BESIDES = {
    "truth": ("__bool__", "__len__"),
    "getattr": ("__getattribute__",),
    "next": ("__next__",),
}


@functools.lru_cache(1024)
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
