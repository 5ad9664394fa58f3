"""A program in SSA form as the text of a Python module, to be read, kept, or run without Morula.

module      what stands around the function: imports, copies of small functions, constants
notation    primitives that are written by a sign, a display or a method
function    the function's names, expressions and statements
structure   its blocks as `for`, `while` and `if`
polish      a last look at the text
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

from morula.core.ir import IR
from morula.core.source.function import FunctionText, indented, signature_text
from morula.core.source.module import Module, NeedsMorula, constant_text, refuse
from morula.core.source.polish import polished
from morula.core.source.structure import Structure, Unstructured, numbered

__all__ = ["constant_text", "refuse", "source_of"]


def source_of(ir: IR, like: CodeType, name: str, title: str, captured: Sequence[Any]) -> str:
    """The text of a module with one function: `ir`, with the signature of `like`.

    Raises:
        UnsupportedError: the program uses what has no name that a module could import.
    """
    for module in (Module(alone=True), Module(alone=False)):
        try:
            text = definition(FunctionText(ir.copy(), like, module, captured), name)
        except NeedsMorula:
            continue
        return module.text(title, text)
    raise AssertionError("what can be imported is imported")


def definition(text: FunctionText, name: str) -> str:
    """The definition of the function."""
    try:
        body = Structure(text).lines()
    except Unstructured:
        body = numbered(text)
    head = f"def {name}({signature_text(text.like)}):"
    return polished("\n".join([head, *indented(body)]))
