"""Rules of closure variables: a cell is a box, and its adjoint object a box as well.

x = get(B): B̄ += x̄;  set(B, x): x̄ = B̄, B̄ = 0 (Innes, Don't Unroll Adjoint, table 3). The cotangent
of a function is that of the variables it captured, which sits in their boxes.
Tests: tests/rules/test_boxes.py
"""

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from morula.core.extend import (
    ZERO,
    NoTangent,
    Tangent,
    accumulate,
    adjoint_object,
    adjoint_of,
    materialise,
    rrule,
)
from morula.core.primitives import delete_cell, get_cell, make_cell, set_cell


class Box:
    """The adjoint object of a cell: the cotangent of what it holds."""

    __slots__ = ("cotangent",)

    def __init__(self) -> None:
        self.cotangent: Any = ZERO


@adjoint_object.register
def _(cell: CellType) -> Box:
    return Box()


def take(box: Box) -> Any:
    """The cotangent in a box, which is empty afterwards."""
    cotangent = box.cotangent
    box.cotangent = ZERO
    return cotangent


@rrule(make_cell, by_identity=True)
def _(value: object):
    cell = make_cell(value)

    def make_cell_pullback(ȳ):
        return (take(adjoint_of(cell)),)

    return cell, make_cell_pullback


@rrule(get_cell)
def _(cell: CellType, name: str):
    def get_cell_pullback(ȳ):
        box = adjoint_of(cell)
        box.cotangent = accumulate(box.cotangent, ȳ)
        return NoTangent(), NoTangent()

    return get_cell(cell, name), get_cell_pullback


@rrule(set_cell, by_identity=True)
def _(cell: CellType, value: object):
    def set_cell_pullback(ȳ):
        return NoTangent(), take(adjoint_of(cell))

    set_cell(cell, value)
    return None, set_cell_pullback


@rrule(delete_cell, by_identity=True)
def _(cell: CellType, name: str):
    def delete_cell_pullback(ȳ):
        adjoint_of(cell).cotangent = ZERO
        return NoTangent(), NoTangent()

    delete_cell(cell, name)
    return None, delete_cell_pullback


@materialise.register
def _(fn: FunctionType, x̄: Any, of: Callable[[Any], Any]) -> Any:
    boxes = {
        name: box.cotangent
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
        if (box := of(cell)) is not None and box.cotangent is not ZERO
    }
    return Tangent[FunctionType](boxes) if boxes else NoTangent()
