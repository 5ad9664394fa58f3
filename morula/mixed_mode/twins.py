"""What happens to tangents, in programs, where values are moved about: tuples, lists, parts of arrays.

A tuple has the tuple of the tangents of its items beside it, a list the list of them: what is done to
the list is done to that as well, so aliases need no thought. What is linear in an array is done to its
tangent.
Tests: tests/mixed_mode/test_programs.py
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from morula.core.adjoint import is_numeric, to_space
from morula.core.cotangents import ZERO, accumulate
from morula.core.ir import Call, Const, Operand
from morula.core.primitives import (
    advance,
    alias,
    as_tuple,
    build_list,
    build_named,
    build_tuple,
    check_bound,
    list_append,
    list_extend,
    unpack,
)
from morula.core.program import in_space_of
from morula.core.specialise import NotSpecialised
from morula.core.traits import Known, field, sample, typed_zero
from morula.core.values import (
    OneOf,
    Value,
    is_plainly_named,
    is_zero_value,
    known,
    possibilities,
)
from morula.mixed_mode.programs import Pushed, Tangent, moves
from morula.mixed_mode.tangents import zeros_like
from morula.rules.arrays.pushforwards import LINEAR, fitted
from morula.rules.lists import list_item

# -- tuples, and what is put together --------------------------------------------------------------


@moves(build_tuple)
def _(p: Pushed, call: Call) -> Tangent:
    return lambda: p.append(p.at, build_tuple, *map(p.held, call.args))


@moves(build_named)
def _(p: Pushed, call: Call) -> Tangent:
    return lambda: p.append(p.at, build_tuple, *map(p.held, call.args[1:]))


@moves(alias, check_bound)
def _(p: Pushed, call: Call) -> Tangent:
    return lambda: p.dot(call.args[0])


@moves(as_tuple, unpack)
def _(p: Pushed, call: Call) -> Tangent | None:
    """Of a tuple, it is the tuple itself."""
    items, *others = call.args
    k = known(p.specialiser.value(items))
    if k is None or k.type not in (tuple, list):
        return None
    if k.type is tuple:
        return lambda: p.dot(items)
    return lambda: p.append(p.at, call.primitive, p.twin(items), *others)


@moves(operator.getitem)
def _(p: Pushed, call: Call) -> Tangent | None:
    """An item of a tuple or a list, or a part of an array."""
    items, key = call.args
    if p.is_list(items):
        return lambda: read(p, call, items, key)
    k = known(p.specialiser.value(items))
    if k is not None and k.type is np.ndarray:
        return linear(p, call)
    if k is None or k.detail is None or not (k.type is tuple or is_plainly_named(k)):
        return None

    return lambda: p.sum_of([(items, lambda ẋ: part_of(p, ẋ, key))])


def part_of(p: Pushed, ẋ: Operand, key: Operand) -> Operand:
    """An item of a container of tangents, which may be a structural zero."""
    found = p.append(p.at, operator.getitem, ẋ, key)
    p.maybe_zero.add(found)
    return found


def has_tangents(p: Pushed, x: Operand) -> bool:
    """Is it a number or an array that has tangents of its own type?"""
    k = known(p.specialiser.value(x))
    if k is None or field(k) is None or not is_numeric(k):
        return False
    return k.type in (float, complex) or has_tangents_of_its_dtype(k)


def has_tangents_of_its_dtype(k: Known) -> bool:
    """Is it an array, or a number of NumPy's, whose tangents have its dtype and are numbers?"""
    try:
        return getattr(sample(k), "dtype", np.dtype(int)).kind in "fc"
    except KeyError:  # of objects, say
        return False


def is_one(p: Pushed, x: Operand) -> bool:
    """Is it a number or an array?"""
    k = known(p.specialiser.value(x))
    return k is not None and field(k) is not None and is_numeric(k)


@moves(*LINEAR)
def linear(p: Pushed, call: Call) -> Tangent | None:
    """A function that is linear in its first argument is its own derivative."""
    x, *others = call.args
    if any(other in p.varied for other in others) or not has_tangents(p, call.out):
        return None
    if any(type(other) is Const and type(other.value) is str for other in others):
        return None  # an order of entries, which may depend on how an array is laid out in memory
    return (lambda: p.sum_of([(x, partial(same_of, p, call))])) if is_one(p, x) else None


def same_of(p: Pushed, call: Call, ẋ: Operand) -> Operand:
    """The same call with a tangent as its first argument."""
    ẏ = p.applied(call.fn, ẋ, *call.args[1:])
    p.at.calls[-1].keywords = call.keywords
    return p.append(p.at, fitted, call.out, ẏ)


@moves(np.array, np.asarray, np.stack, np.concatenate, np.vstack, np.hstack, np.column_stack)
def _(p: Pushed, call: Call) -> Tangent | None:
    """What puts numbers or arrays together does the same to their tangents."""
    x, *others = call.args
    k = known(p.specialiser.value(x))
    if k is None or k.type not in (tuple, list):
        return linear(p, call)
    if any(other in p.varied for other in others) or not has_tangents(p, call.out):
        return None
    if k.type is list:
        return lambda: same_of(p, call, p.append(p.at, all_filled, x, p.twin(x)))
    if not holds_numbers(k):
        return None
    return lambda: p.sum_of([(x, lambda ẋ: same_of(p, call, filled(p, x, ẋ, k)))])


def all_filled(x: Any, ẋ: Any) -> Any:
    """The tangents of a list of numbers and arrays, with zeros for those that have none."""
    if type(x) is list:
        return [all_filled(item, part) for item, part in zip(x, ẋ, strict=True)]
    return zeros_like(x) if ẋ is ZERO else ẋ


def holds_numbers(value: Value) -> bool:
    """Is it known to be a number, an array, or a tuple of these, or of such tuples?"""
    if value is None:
        return False
    k = known(value) if type(value) is not OneOf else None
    if k is None or k.type is not tuple:
        return all(field(m) is not None and is_numeric(m) for m in possibilities(value))
    return k.detail is not None and all(map(holds_numbers, k.detail))


def filled(p: Pushed, x: Operand, ẋ: Operand, value: Value) -> Operand:
    """The tangent of what holds numbers, with zeros for those that have none."""
    k = known(value) if type(value) is not OneOf else None
    if k is not None and k.type is tuple:
        items = [
            filled(p, item_of(p, x, i), item_of(p, ẋ, i), inside)
            for i, inside in enumerate(k.detail)
        ]
        return p.append(p.at, build_tuple, *items)
    zeros = [typed_zero(kind.type) for kind in possibilities(value)]
    if None not in zeros:
        return p.if_zero(ẋ, lambda: Const(zeros[0]))
    return p.if_zero(ẋ, lambda: p.append(p.at, np.zeros_like, x))


def item_of(p: Pushed, items: Operand, i: int) -> Operand:
    """An item of a tuple, or of a tangent of one."""
    return items if is_zero_value(items) else part_of(p, items, Const(i))


@moves(in_space_of, to_space)
def _(p: Pushed, call: Call) -> Tangent:
    """What brings a value to the space of another does so with its tangent."""
    x, y = call.args
    return lambda: p.sum_of([(y, lambda ẏ: p.append(p.at, call.primitive, x, ẏ))])


LINEAR_ATTRIBUTES = ("T", "mT", "real", "imag")


@moves(getattr)
def _(p: Pushed, call: Call) -> Tangent | None:
    """Attributes of numbers and arrays that are linear."""
    x, name = call.args[:2]
    rule = p.specialiser.attribute_rule(call)
    if not callable(rule) or type(name) is not Const or name.value not in LINEAR_ATTRIBUTES:
        raise NotSpecialised("the tangent of an attribute")
    return lambda: p.sum_of([(x, lambda ẋ: p.append(p.at, getattr, ẋ, name))])


# -- new arrays ------------------------------------------------------------------------------------


@moves(np.zeros, np.empty, np.ones, np.zeros_like, np.empty_like, np.ones_like)
def _(p: Pushed, call: Call) -> Tangent:
    """They depend on nothing; if they are written to, that is seen to there."""
    return lambda: Const(ZERO)


# -- lists -----------------------------------------------------------------------------------------


def read(p: Pushed, call: Call, xs: Operand, key: Operand) -> Operand:
    """The tangent of an item of a list, or of a part of it."""
    if xs not in p.varied:
        return Const(ZERO)
    of_key = known(p.specialiser.value(key))
    if of_key is None or of_key.type not in (int, slice):
        raise NotSpecialised("the index of a list is not known to be one")
    found = p.append(p.at, operator.getitem, p.twin(xs), key)
    if of_key.type is int and not p.is_list(call.out):
        p.maybe_zero.add(found)
    return found


@moves(build_list)
def _(p: Pushed, call: Call) -> Tangent:
    return lambda: p.append(p.at, build_list, *map(p.held, call.args))


@moves(list_append, list.append)
def _(p: Pushed, call: Call) -> Tangent:
    xs, x = call.args
    return lambda: p.append(p.at, call.primitive, p.twin(xs), p.held(x))


@moves(operator.setitem)
def _(p: Pushed, call: Call) -> Tangent | None:
    xs, key, x = call.args
    k = known(p.specialiser.value(key))
    if not p.is_list(xs) or k is None or k.type is not int:
        return None
    return lambda: p.append(p.at, operator.setitem, p.twin(xs), key, p.held(x))


@moves(list_item)
def _(p: Pushed, call: Call) -> Tangent:
    _, xs, k = call.args
    return lambda: read(p, call, xs, k)


def with_lists(p: Pushed, call: Call, *lists: Operand) -> Tangent | None:
    """The same call with lists of tangents in the place of these operands."""
    if not all(map(p.is_list, lists)) or call.keywords:
        return None

    def tangent() -> Operand:
        args = [p.twin(x) if x in lists else x for x in call.args]
        return p.append(p.at, call.primitive, *args)

    return tangent


@moves(list.copy, list.reverse, list.clear, iter)
def _(p: Pushed, call: Call) -> Tangent | None:
    return with_lists(p, call, call.args[0])


@moves(advance)
def _(p: Pushed, call: Call) -> Tangent | None:
    tangent = with_lists(p, call, call.args[0])
    return tangent and (lambda: doubted(p, call, tangent()))


@moves(list.pop)
def _(p: Pushed, call: Call) -> Tangent | None:
    tangent = with_lists(p, call, call.args[0])
    return tangent and (lambda: doubted(p, call, tangent()))


def doubted(p: Pushed, call: Call, ẋ: Operand) -> Operand:
    """What comes out of a list of tangents may be a structural zero, if it is no list."""
    if not p.is_list(call.out):
        p.maybe_zero.add(ẋ)
    return ẋ


@moves(list.extend, list_extend)
def _(p: Pushed, call: Call) -> Tangent | None:
    return with_lists(p, call, *call.args)


@moves(list.insert)
def _(p: Pushed, call: Call) -> Tangent | None:
    xs, i, x = call.args
    if not p.is_list(xs):
        return None
    return lambda: p.append(p.at, list.insert, p.twin(xs), i, p.held(x))


@moves(operator.add)
def _(p: Pushed, call: Call) -> Tangent | None:
    return with_lists(p, call, *call.args)


@moves(operator.mul)
def _(p: Pushed, call: Call) -> Tangent | None:
    return with_lists(p, call, call.args[0])


@moves(sum)
def _(p: Pushed, call: Call) -> Tangent | None:
    """The sum of a list of numbers."""
    xs = call.args[0]
    if len(call.args) != 1 or not p.is_list(xs) or not p.is_real_number(call.out):
        return None

    def tangent() -> Operand:
        found = p.append(p.at, sum_of_tangents, p.twin(xs))
        p.maybe_zero.add(found)
        return found

    return tangent


def sum_of_tangents(ẋs: list[Any]) -> Any:
    """The sum of those that are no structural zeros."""
    total: Any = ZERO
    for ẋ in ẋs:
        total = accumulate(total, ẋ)
    return total
