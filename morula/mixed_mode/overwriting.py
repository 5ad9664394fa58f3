"""Arrays that a program writes to, and their tangents, in programs of directional derivatives.

Each has an array beside it that holds its tangent, in memory of its own; a view has the same view of
that, because it is made by the same call. A write to the array is one to its tangent as well, which
comes first, for it may ask what was there. New arrays have tangents that share memory with no other.
Tests: tests/mixed_mode/test_programs.py
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from morula.core.adjoint import ZERO_IF
from morula.core.cotangents import ZERO
from morula.core.infer import transfers
from morula.core.ir import Call, Operand
from morula.core.simplify import folds
from morula.core.specialise import NotSpecialised
from morula.core.traits import gives_new, only_reads
from morula.core.values import known
from morula.rules.arrays.pushforwards import fitted
from morula.rules.buffers import COPIES, IN_PLACE, MAKERS, Buffers, add_at, is_write
from morula.rules.shadows import UnknownUseError

if TYPE_CHECKING:
    from morula.mixed_mode.programs import Pushed


def members_of(p: Pushed) -> set[Any]:
    """The arrays that a program writes to, and their views; it has made all of them itself."""
    if not p.specialiser.writes_in_place:
        return set()
    buffers = Buffers(p)
    try:
        buffers.find_members()
    except UnknownUseError:
        raise NotSpecialised("an array is changed in a way that is not followed") from None
    for x in buffers.members:
        made = buffers.definitions.get(x)
        view = made is not None and buffers.shares(made) and made.args[0] in buffers.members
        received = x in buffers.owner and buffers.owner[x][0] is not buffers.ir.entry
        new = made is not None and (gives_new_array(made.primitive) or is_picked(buffers, made))
        if not (view or received or new) or buffers.kind(x) is None:
            raise NotSpecialised("an array that is written to may be another's")
    return buffers.members


def gives_new_array(fn: Any) -> bool:
    """Does it give an array in memory of its own?"""
    return fn in MAKERS or fn in COPIES or (gives_new(fn) and fn not in IN_PLACE)


def is_picked(buffers: Buffers, call: Call) -> bool:
    """Is it `x[k]` with an array in k, which is a copy?"""
    return call.primitive is operator.getitem and buffers.picks(call.args[1])


def writes_to(p: Pushed, call: Call) -> bool:
    """Is it a call that writes to an array whose tangent is followed?"""
    return is_write(call) and call.args[0] in p.members


def write_twin(p: Pushed, call: Call) -> None:
    """Before an array is written to, what happens to its tangent."""
    x, *others = call.args
    x̂, v = p.twin(x), others[-1]
    if call.keywords:
        raise NotSpecialised("a write that is not followed")
    v̂ = p.dot(v)
    k = known(p.specialiser.value(v))
    if k is None or k.type in (list, tuple):
        v̂ = p.append(p.at, in_form, v, v̂)
    if call.primitive is operator.setitem:
        p.append(p.at, set_part, x̂, others[0], v̂)
        return
    if call.primitive is add_at:
        p.append(p.at, add_part_at, x̂, others[0], v̂)
        return
    how = UPDATES.get(call.primitive)
    if how is None:
        raise NotSpecialised("a write that is not followed")
    p.append(p.at, how, x̂, x, v, v̂)
    p.dots[call.out] = x̂


def set_part(x̂: Any, k: Any, v̂: Any) -> None:
    """The tangent of `x[k] = v`."""
    x̂[k] = 0.0 if v̂ is ZERO else v̂


def in_form(v: Any, v̂: Any) -> Any:
    """The tangent of a value; in a list, zeros in the form of what has none."""
    return items_in_form(v, v̂) if isinstance(v, (list, tuple)) else v̂


def items_in_form(v: Any, v̂: Any) -> Any:
    """The same of an item."""
    if v̂ is ZERO:
        return np.zeros(np.shape(v))
    if isinstance(v, (list, tuple)):
        return [items_in_form(item, part) for item, part in zip(v, v̂, strict=True)]
    return v̂


def add_part_at(x̂: Any, k: Any, v̂: Any) -> None:
    """The tangent of `np.add.at(x, k, v)`."""
    if v̂ is not ZERO:
        np.add.at(x̂, k, v̂)


def add_to(x̂: Any, x: Any, v: Any, v̂: Any) -> None:
    """The tangent of `x += v`."""
    if v̂ is not ZERO:
        x̂ += v̂


def subtract_from(x̂: Any, x: Any, v: Any, v̂: Any) -> None:
    """The tangent of `x -= v`."""
    if v̂ is not ZERO:
        x̂ -= v̂


def multiply_by(x̂: Any, x: Any, v: Any, v̂: Any) -> None:
    """The tangent of `x *= v`."""
    further = 0.0 if v̂ is ZERO else x * v̂
    x̂ *= v
    x̂ += further


def divide_by(x̂: Any, x: Any, v: Any, v̂: Any) -> None:
    """The tangent of `x /= v`."""
    further = 0.0 if v̂ is ZERO else x / v * v̂ / v
    x̂ /= v
    x̂ -= further


UPDATES = {
    operator.iadd: add_to,
    operator.isub: subtract_from,
    operator.imul: multiply_by,
    operator.itruediv: divide_by,
}


def buffer_twin(y: Any, ẏ: Any) -> Any:
    """The tangent of an array that will be written to."""
    twin = np.zeros_like(y)
    if ẏ is not ZERO:
        twin[...] = ẏ
    return twin


def own(y: Any, ẏ: Any) -> Any:
    """A tangent in memory of its own."""
    return ẏ.copy() if isinstance(ẏ, np.ndarray) else ẏ


ZERO_IF.update({own: 1, fitted: 1})
only_reads(own, buffer_twin, set_part, in_form, add_part_at, *UPDATES.values())


@folds(own)
def _(f: Any, call: Call) -> Operand | None:
    """What is new has memory of its own."""
    ẏ = call.args[1]
    made = f.definitions.get(ẏ)
    return ẏ if made is not None and gives_new(made.primitive) else None


@transfers(own, buffer_twin)
def _(s: Any, call: Call, args: list[Any]) -> Any:
    """It is what the tangent is, and that is like the value."""
    return args[0] if call.primitive is buffer_twin else args[1]
