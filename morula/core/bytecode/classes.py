"""The body of a class definition -> a function of the namespace that it fills."""

from __future__ import annotations

from types import CodeType
from typing import Any

from morula.core import primitives
from morula.core.bytecode.lower import Lowering, derive, lowers
from morula.core.ir import Branch, Const, Operand

_LIKE = (lambda names: None).__code__


def body_code(code: CodeType, namespace: dict[str, Any]) -> CodeType:
    """The code of a function that fills a class's namespace as the body with this code does."""
    found = _bodies.get((id(code), id(namespace)))
    if found is None:
        found = code, derive(code, namespace, _ClassBody, _LIKE)
        _bodies[id(code), id(namespace)] = found
    return found[1]


_bodies: dict[tuple[int, int], tuple[CodeType, CodeType]] = {}


class _ClassBody(Lowering):
    """The names that a body binds are items of its namespace, its only parameter."""

    def entry(self) -> None:
        """The first block."""
        entry = self.ir.block()
        self.ir.blocks.insert(0, self.ir.blocks.pop())
        self.block = entry
        self.names = self.ir.var("names")
        entry.params = [self.names]
        self.ir.free = [self.ir.var(name) for name in self.code.co_freevars]
        self.at_start = dict(enumerate(self.ir.free, len(self.slots) - len(self.ir.free)))
        entry.branches.append(Branch(self.first))


def _names(b: Lowering) -> Operand:
    assert isinstance(b, _ClassBody)
    return b.names


@lowers("load_name")
def _(b: Lowering, name: str) -> None:
    b.push(b.call(primitives.load_name, _names(b), Const(b.namespace), name, name=name))


@lowers("store_name")
def _(b: Lowering, name: str) -> None:
    b.call(primitives.store_name, _names(b), name, b.pop())


@lowers("delete_name")
def _(b: Lowering, name: str) -> None:
    b.call(primitives.delete_name, _names(b), name)


@lowers("load_locals")
def _(b: Lowering, arg: Any) -> None:
    b.push(_names(b))


@lowers("load_classderef")
def _(b: Lowering, slot: int) -> None:
    cell = b.variables.read(b.block, ("slot", slot))
    name = b.slots[slot]
    b.push(b.call(primitives.load_name_or_cell, _names(b), cell, name, name=name))


@lowers("load_from_dict_or_deref")
def _(b: Lowering, slot: int) -> None:
    cell = b.variables.read(b.block, ("slot", slot))
    name = b.slots[slot]
    b.push(b.call(primitives.load_name_or_cell, b.pop(), cell, name, name=name))


@lowers("load_from_dict_or_globals")
def _(b: Lowering, name: str) -> None:
    b.push(b.call(primitives.load_name, b.pop(), Const(b.namespace), name, name=name))


@lowers("setup_annotations")
def _(b: Lowering, arg: Any) -> None:
    b.call(primitives.setup_annotations, _names(b))
