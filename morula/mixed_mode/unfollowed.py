"""Forward mode of code that runs without being followed: what it changes has no known tangent.

`ignore_derivatives` calls a function as it is, and so the solvers call the function of an equation.
What that has stored is an error as soon as its tangent is used.
Tests: tests/mixed_mode/test_unfollowed.py
"""

from __future__ import annotations

from types import CellType
from typing import Any

from morula.core import general
from morula.core.cotangents import ZERO, is_zero
from morula.core.registry import non_differentiable
from morula.core.traits import adjoint_object, parts_of
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import Unknown, carries, pushes
from morula.mixed_mode.tangents import (
    Pass,
    box_of,
    holds_mutable,
    item_of,
    set_box,
    set_item,
    set_value,
    tangents_if_any,
    value_of,
)
from morula.rules import steering
from morula.rules.calls import entry


@pushes(steering.ignore_derivatives)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    before = general.held_by(args) if isinstance(args[0], steering.THUNKS) else []
    y = steering.ignore_derivatives(*args)
    lose_changes(run, before)
    return y, ZERO


def lose_changes(run: Pass, before: general.Held) -> None:
    """Let no tangent be known of what was changed since; counters count as constants.

    Whole numbers depend on nothing but whole numbers: none of those may have a tangent then.
    """
    changed = steering.changed_since(before)
    constants = () if not changed or whole_numbers_enter(run, before) else (int,)
    for x, keys in changed:
        if adjoint_object(x) is None:
            raise steering.cannot_ignore(x)
        unknown, parts = Unknown(steering.cannot_ignore(x)), parts_of(x) or {}
        for key in keys:
            v = parts.get(key)
            lost = carries(v) and not holds_mutable(v) and type(v) not in constants
            set_tangent_at(run, x, key, unknown if lost else ZERO)
        shorten(run, x)


def whole_numbers_enter(run: Pass, held: general.Held) -> bool:
    """Have whole numbers tangents, among those that are held, also in tuples?"""
    return any(
        [
            is_whole(v, tangent_at(run, x, key))
            for x, parts in held
            if tangents_if_any(run, x) is not None
            for key, v in parts.items()
        ]
    )


def is_whole(v: Any, v̇: Any) -> bool:
    """Is it a whole number with a tangent, or a tuple that holds one?"""
    if type(v) is tuple:
        return any([is_whole(item, entry(v̇, i)) for i, item in enumerate(v)])
    return type(v) is int and not is_zero(v̇)


def tangent_at(run: Pass, x: Any, key: Any) -> Any:
    """The tangent of a part of a mutable value."""
    tangents = tangents_if_any(run, x)
    if type(tangents) is Unknown:
        return tangents
    if isinstance(tangents, list):
        return item_of(tangents, key)
    return box_of(run, x) if type(x) is CellType else value_of(run, x, key)


def set_tangent_at(run: Pass, x: Any, key: Any, ẋ: Any) -> None:
    """Let this be the tangent of a part of a mutable value."""
    if type(tangents_if_any(run, x)) is Unknown:
        return
    if type(x) is CellType:
        set_box(run, x, ẋ)
    elif isinstance(adjoint_object(x), list):
        set_item(run, x, key, ẋ)
    else:
        set_value(run, x, key, ẋ)


def shorten(run: Pass, x: Any) -> None:
    """No tangents of items that a list has no more."""
    tangents = tangents_if_any(run, x)
    if isinstance(tangents, list):
        del tangents[len(x) :]


non_differentiable(lose_changes)
