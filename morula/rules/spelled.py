"""Calls that compiled programs spell out: map, filter, reduce, partial, unpacking, sums of arrays.

What stands here in Python is put in the place of the call, and with it the function that it gets.
Only where that is the same, effects and their order included: `map` and `filter` where all is read at
once, `reduce` over what has a length. The rules of these callables say what they mean elsewhere.
Tests: tests/rules/test_spelled.py
"""

from __future__ import annotations

import collections
import functools
import math
import operator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    Call,
    Const,
    Known,
    coarsened,
    count_uses,
    effects,
    generators,
    is_plainly_named,
    known,
    non_differentiable,
    only_reads,
    primitives,
    registry,
    rewrites,
    substitute,
    traits,
    transfers,
    transfers_like,
    type_stable,
)
from morula.rules.calls import PLACEHOLDER, body_of, derivative_body_of, with_derivative_of
from morula.rules.list_types import NUMBERS, is_array, items_in, items_of
from morula.rules.lists import list_item
from morula.rules.questions import are_all, is_any


def mapped(f: Any, xs: Any) -> Any:
    """`list(map(f, xs))`."""
    return [f(x) for x in xs]


def mapped_two(f: Any, xs: Any, ys: Any) -> Any:
    """`list(map(f, xs, ys))`."""
    return [f(x, y) for x, y in zip(xs, ys)]  # noqa: B905


def filtered(f: Any, xs: Any) -> Any:
    """`list(filter(f, xs))`."""
    return [x for x in xs if f(x)]


def reduced(f: Any, xs: Any, value: Any) -> Any:
    """`functools.reduce(f, xs, value)`."""
    for x in xs:
        value = f(value, x)
    return value


def reduced_from_first(f: Any, xs: Any) -> Any:
    """`functools.reduce(f, xs)`, of what has a length and is not empty."""
    value = xs[0]
    for x in xs[1:]:
        value = f(value, x)
    return value


def reduced_in_turn(f: Any, xs: Any) -> Any:
    """The same of a list that may be empty, or change meanwhile."""
    if len(xs) == 0:
        reduce_nothing()
    value = xs[0]
    for i, x in enumerate(xs):
        if i:
            value = f(value, x)
    return value


def reduce_nothing() -> None:
    """Raise what `reduce` raises."""
    functools.reduce(max, ())


LISTED = (mapped, mapped_two, filtered)


IN_TURN = {any: is_any, all: are_all}


def added_up(xs: Any, start: Any = 0) -> Any:
    """`sum(xs)` of an array."""
    for x in xs:
        start = start + x
    return start


def least(xs: Any) -> Any:
    """`min(xs)` of an array."""
    if len(xs) == 0:
        of_nothing(min, xs)
    found = xs[0]
    for x in xs[1:]:
        if x < found:
            found = x
    return found


def greatest(xs: Any) -> Any:
    """`max(xs)` of an array."""
    if len(xs) == 0:
        of_nothing(max, xs)
    found = xs[0]
    for x in xs[1:]:
        if x > found:
            found = x
    return found


def of_nothing(choose: Any, xs: Any) -> None:
    """Raise what `min` and `max` raise; a call of these here would be spelled out for ever."""
    choose(xs)


non_differentiable(of_nothing, reduce_nothing)
only_reads(of_nothing, reduce_nothing)
effects(of_nothing, reduce_nothing)

OF_ARRAYS = {sum: added_up, min: least, max: greatest}


def multiplied(xs: Any) -> Any:
    """`math.prod(xs)`."""
    product = 1
    for x in xs:
        product = product * x
    return product


def exact_sum(xs: Any) -> Any:
    """`math.fsum(xs)` of an array."""
    items = [x for x in xs]
    return math.fsum(items)


# `math.dist` computes what `math.hypot` does of floats, to the last bit.


def distance_of_two(p: Any, q: Any) -> Any:
    """`math.dist(p, q)` of points in the plane."""
    return math.hypot(float(p[0]) - float(q[0]), float(p[1]) - float(q[1]))


def distance_of_three(p: Any, q: Any) -> Any:
    """`math.dist(p, q)` of points in space."""
    return math.hypot(
        float(p[0]) - float(q[0]), float(p[1]) - float(q[1]), float(p[2]) - float(q[2])
    )


DISTANCES = {2: distance_of_two, 3: distance_of_three}


@rewrites
def spell_out(s: Any) -> bool:
    """Put Python functions in the place of these callables; was there anything?"""
    made = {c.out: c for c in s.ir.calls()}
    uses = count_uses(s.ir)
    changed = False
    for block in s.ir.blocks:
        for i, call in enumerate(list(block.calls)):
            if s.may_be_claimed(call):
                continue
            behind = block.calls[i + 1] if i + 1 < len(block.calls) else None
            spelled = spelling(s, call, behind, made, uses)
            if has_body(s, call):
                changed = s.has_bodies = True
                put_body(s, block, call)
            elif spelled is not None:
                call.fn = Const(spelled)
                changed = True
                if spelled in DISTANCES.values():
                    make_tuples(call, made)
                if behind is not None and behind.primitive is list and spelled in LISTED:
                    block.calls.remove(behind)  # it is a list, which nobody else has
                    call.out = behind.out
            elif call.primitive is pow and len(call.args) == 2 and not call.keywords:
                call.fn = Const(operator.pow)
                changed = True
            elif call.primitive in (operator.pow, operator.ipow):
                changed |= whole_power(s, call)
            elif call.primitive in (np.ndarray.reshape, np.ndarray.transpose):
                changed |= axes_together(s, block, call)
            elif call.primitive is primitives.as_tuple:
                if spread_list(s, block, call, made):
                    return True  # the block is no longer one
                changed |= spread_array(s, block, call)
            elif call.primitive is primitives.unpack:
                changed |= unpack_array(s, block, call) or unpack_named(s, block, call)
            elif call.primitive is primitives.unpack_rest:
                changed |= unpack_known(s, block, call, made, uses) or split_array(s, block, call)
            elif call.primitive is getattr:
                changed |= read_by_place(s, call)
            elif call.primitive is np.ndarray.tolist and len(call.args) == 1:
                changed |= spell_tolist(s, call)
            elif call.primitive is list and len(call.args) == 1 and has_rows(s.value(call.args[0])):
                call.fn, changed = Const(entries), True
            elif call.primitive is list and (n := known_length(s, call)) is not None:
                read_each(s, block, call, call.args[0], n)
                call.fn, changed = Const(primitives.build_list), True
            elif call.primitive in (list, list.copy) and is_known_list(s, call):
                call.fn, call.args = Const(operator.getitem), (*call.args, Const(slice(None)))
                changed = True
            elif call.primitive is functools.update_wrapper:
                changed |= leave_unwrapped(s, block, call, made, uses)
            elif type(call.fn) is not Const:
                changed |= call_through(s, call, made.get(call.fn), uses)
    return changed


def spelling(s: Any, call: Call, behind: Any, made: dict[Any, Any], uses: Any) -> Any:
    """The function in the place of a callable."""
    f, n = call.primitive, len(call.args)
    if f in (any, all) and n == 1:
        source: Any = made.get(call.args[0])
        is_own = source is not None and source.primitive is generators.make_generator
        return IN_TURN[f] if is_own and uses[source.out] == 1 else None
    if f in (sum, min, max) and not call.keywords and 0 < n <= (2 if f is sum else 1):
        return OF_ARRAYS[f] if has_rows(s.value(call.args[0])) else None
    if f is math.dist and n == 2 and not call.keywords:
        p, q = [length_of_numbers(s, x, made, uses) for x in call.args]
        return DISTANCES.get(p) if p == q else None
    if f in (math.prod, math.fsum) and n == 1 and not call.keywords:
        return of_numbers(s, f, call.args[0])
    if f not in (map, filter, functools.reduce) or call.keywords or n < 2:
        return None
    if not (is_function(call.args[0], made) or is_operator(call.args[0])):
        return None
    if f is functools.reduce:
        k = known(s.value(call.args[1]))
        if k is None or k.type not in (list, tuple, np.ndarray):
            return None
        if n == 2:
            alone = uses.get(call.args[1]) == 1  # nobody can change it meanwhile
            if alone and has_items(k, made.get(call.args[1])):
                return reduced_from_first
            return reduced_in_turn if k.type is list or is_array(k) else None
        return reduced
    alone = behind is not None and uses.get(call.out) == 1 and behind.args
    if not (alone and behind.args[0] is call.out):
        return None
    # Too many for the variables: the last ones are not asked for, which is seen if f has effects.
    unpacked = behind.primitive is primitives.unpack and f is map and is_pure(call.args[0])
    if unpacked and not all(has_length(known(s.value(xs))) for xs in call.args[1:]):
        return None
    if not (unpacked or traits.is_read_at_once(behind)):
        return None
    if f is filter:
        return filtered if n == 2 else None
    return {2: mapped, 3: mapped_two}.get(n)


def length_of_numbers(s: Any, x: Any, made: dict[Any, Any], uses: Any) -> int | None:
    """How many numbers are in a tuple, or in a list that nothing else reads."""
    value, source = known(s.value(x)), made.get(x)
    items: Any = None
    if value is not None and value.type is tuple:
        items = value.detail
    elif source is not None and source.primitive is primitives.build_list and uses[x] == 1:
        items = [s.value(item) for item in source.args]
    return len(items) if are_numbers(items) else None


def make_tuples(call: Call, made: dict[Any, Any]) -> None:
    """Make tuples of lists that are written down as operands, whose items are then known."""
    for x in call.args:
        if x in made and made[x].primitive is primitives.build_list:
            made[x].fn = Const(primitives.build_tuple)


def of_numbers(s: Any, f: Any, xs: Any) -> Any:
    """The function in the place of a product or an exact sum."""
    value: Any = known(s.value(xs))
    if has_rows(value):
        one_axis = value.detail[1] == 1
        return {math.prod: multiplied, math.fsum: exact_sum}[f] if one_axis else None
    return multiplied if f is math.prod and are_numbers(items_in(value)) else None


def are_numbers(items: Any) -> bool:
    """Are these values known to be floats or ints?"""
    return items is not None and {*NUMBERS}.issuperset(map(coarsened, map(known, items)))


def has_body(s: Any, call: Call) -> bool:
    """May a function be put in the place of what is called, as no rule serves the call?"""
    found = typed_body(s, call) or body_of(call.primitive) or derivative_body_of(call.primitive)
    if found is None or not s.by_bodies or s.changes_value(call):
        return False
    is_numpys = (getattr(call.primitive, "__module__", None) or "").startswith("numpy")
    if is_numpys and any(s.value(a) is None for a in call.args):
        return False  # a class that is not known may say itself what the function does
    return not s.may_have_rule(call)


def typed_body(s: Any, call: Call) -> Any:
    """The function that stands in the place of a call by the types of its arguments, or None."""
    body = traits.typed_bodies.get(id(call.primitive))
    return None if body is None else body([s.value(a) for a in call.args])


def put_body(s: Any, block: Any, call: Call) -> None:
    """A function that runs in the place of another, or that tells the derivative of its values."""
    body = typed_body(s, call) or body_of(call.primitive)
    if body is not None:
        s.in_several_runs |= id(call.primitive) in traits.in_several_runs
        call.fn = Const(body)
        return
    told = call.copy()
    told.out, told.fn = s.ir.var(), Const(derivative_body_of(call.primitive))
    plain = call.copy()
    plain.out, plain.fn = s.ir.var(), Const(without_derivative(call.primitive))
    block.calls[block.calls.index(call) : block.calls.index(call)] = [plain, told]
    call.fn, call.args, call.keywords = Const(with_derivative_of), (plain.out, told.out), ()


@functools.cache
def without_derivative(fn: Any) -> Any:
    """A function that gives the values of fn, and no derivatives."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    functools.update_wrapper(plain, fn, ("__name__", "__qualname__"), ())
    non_differentiable(plain)
    effects(plain)  # it may raise an exception
    entry = registry.registry.get(fn)
    if entry is not None and entry.stable:
        type_stable(plain)
    transfers_like(plain, fn)
    return plain


@transfers(with_derivative_of)
def _(s: Any, call: Call, args: Any) -> Any:
    return args[1] if args[0] is None else args[0]


def whole_power(s: Any, call: Call) -> bool:
    """`x ** 2.0` of a float is `x ** 2`, whose rule knows more: no base has an edge."""
    n: Any = call.args[1]
    whole = type(n) is Const and type(n.value) is float and n.value.is_integer()
    if not whole or abs(n.value) > LARGEST_POWER:
        return False
    k = known(s.value(call.args[0]))
    if k is None or k.type not in (float, np.float64):
        return False
    call.args = (call.args[0], Const(int(n.value)))
    return True


LARGEST_POWER = 1024.0


def is_function(x: Any, made: dict[Any, Any]) -> bool:
    """Is it a Python function that is known, or made here?"""
    if type(x) is Const:
        return type(x.value) is FunctionType
    return x in made and made[x].primitive is primitives.make_function


def is_operator(x: Any) -> bool:
    """Is it a compiled function that is known, like `operator.mul`, or a type of numbers?"""
    if type(x) is not Const:
        return False
    return type(x.value) is BuiltinFunctionType or x.value is int or x.value is float


def is_pure(f: Any) -> bool:
    """Is it known to be a type of numbers or a function of `math`?"""
    return is_operator(f) and (f.value in (int, float) or f.value.__module__ == "math")


def has_length(k: Any) -> bool:
    """Is it known to be something that ends?"""
    return k is not None and k.type in (list, tuple, range, np.ndarray)


def has_items(k: Any, made: Any) -> bool:
    """Is it certain that it is not empty?"""
    if k.type is tuple:
        return bool(k.detail)
    return made is not None and made.primitive is primitives.build_list and bool(made.args)


def leave_unwrapped(s: Any, block: Any, call: Call, made: dict[Any, Any], uses: Any) -> bool:
    """A function made here that is only called needs no name and documentation of another."""
    wrapper: Any = call.args[0] if call.args else None
    if wrapper not in made or not is_function(wrapper, made) or uses[wrapper] != 1:
        return False
    if not all(is_function(x, made) or type(x) is Const for x in call.args[1:]):
        return False
    if not is_only_called(s, call.out, uses):
        return False
    block.calls.remove(call)
    substitute(s.ir, {call.out: wrapper})
    return True


def is_only_called(s: Any, fn: Any, uses: Any) -> bool:
    """Does nobody read, keep or change this function?"""
    return uses[fn] == sum(call.fn is fn for call in s.ir.calls())


def leaves_place(value: Any) -> bool:
    """Is an argument of a partial what stands for one that is given later?"""
    k = Known(type(value.value)) if type(value) is Const else known(value)
    return k is not None and k.type is type(PLACEHOLDER)


def call_through(s: Any, call: Call, partial: Any, uses: Any) -> bool:
    """A call of what functools.partial gives is one of the function, with more arguments.

    Unless somebody may write to its keywords, which are a dict.
    """
    if partial is None or partial.primitive is not functools.partial:
        return False
    if len(partial.args) == len(partial.keywords) or not is_only_called(s, partial.out, uses):
        return False
    if any([leaves_place(s.value(x)) for x in partial.args]):
        return False
    n, m = len(partial.args) - len(partial.keywords), len(call.args) - len(call.keywords)
    named = dict(zip(partial.keywords, partial.args[n:], strict=True))
    named |= dict(zip(call.keywords, call.args[m:], strict=True))
    call.fn = partial.args[0]
    call.args = (*partial.args[1:n], *call.args[:m], *named.values())
    call.keywords = tuple(named)
    uses[partial.out] -= 1
    partial.removable = not uses[partial.out]
    return True


def unpack_array(s: Any, block: Any, call: Call) -> bool:
    """`a, b = xs` of an array: its length is asked for, and its entries are read."""
    xs: Any
    n: Any
    xs, n = call.args
    if not has_rows(s.value(xs)):
        return False
    assert type(n) is Const
    check = Call(s.ir.var(), Const(require_length), (xs, n), (), call.position)
    block.calls.insert(block.calls.index(call), check)
    read_each(s, block, call, xs, n.value)
    return True


def split_array(s: Any, block: Any, call: Call) -> bool:
    """`a, *b = xs` of an array or a list: items are read, and the rest is a list of them."""
    xs, before, after = call.args
    is_list = items_of(s.value(xs)) is not None
    if not (is_list or has_rows(s.value(xs))):
        return False
    if type(before) is not Const or type(after) is not Const:
        return False
    calls: list[Call] = []

    def append(fn: Any, *args: Any) -> Any:
        calls.append(Call(s.ir.var(), Const(fn), args, (), call.position))
        return calls[-1].out

    append(require_least, xs, before, after)
    first = [append(operator.getitem, xs, Const(i)) for i in range(before.value)]
    inside = Const(slice(before.value, -after.value or None))
    rest = append(operator.getitem, xs, inside)
    if not is_list:
        rest = append(entries, rest)
    last = [append(operator.getitem, xs, Const(i)) for i in range(-after.value, 0)]
    at = block.calls.index(call)
    block.calls[at:at] = calls
    call.fn, call.args = Const(primitives.build_tuple), (*first, rest, *last)
    return True


def entries(xs: Any) -> list[Any]:
    """`list(xs)` of an array."""
    return [x for x in xs]


def numbers_of(xs: Any) -> list[Any]:
    """`xs.tolist()` of an array of real numbers."""
    return [float(x) for x in xs]


def rows_of_numbers(xs: Any) -> list[Any]:
    """The same of one of two axes."""
    return [[float(x) for x in row] for row in xs]


TO_LIST = {1: numbers_of, 2: rows_of_numbers}


def spell_tolist(s: Any, call: Call) -> bool:
    """`xs.tolist()`."""
    value: Any = s.value(call.args[0])
    if not is_array(value) or value.detail[0][1] != "f" or value.detail[1] not in TO_LIST:
        return False
    call.fn = Const(TO_LIST[value.detail[1]])
    return True


def is_known_list(s: Any, call: Call) -> bool:
    """Is it a copy of a list of whose items something is known?"""
    return len(call.args) == 1 and items_of(s.value(call.args[0])) is not None


def require_least(xs: Any, before: int, after: int) -> None:
    """Raise what unpacking with a rest raises, of an array that is too short."""
    if len(xs) < before + after:
        primitives.unpack_rest(xs, before, after)


non_differentiable(require_least)
only_reads(require_least)
effects(require_least)
transfers(require_least)(lambda s, call, args: Known(type(None)))


def unpack_named(s: Any, block: Any, call: Call) -> bool:
    """`a, b = xs` of a named tuple, whose items are read."""
    xs, n = call.args
    value: Any = known(s.value(xs))
    if value is None or type(n) is not Const or not is_plainly_named(value):
        return False
    if len(value.detail) != n.value:
        return False
    read_each(s, block, call, xs, n.value)
    return True


def read_by_place(s: Any, call: Call) -> bool:
    """`p.x` of a named tuple is one of its items."""
    if len(call.args) != 2 or type(call.args[1]) is not Const:
        return False
    value, name = known(s.value(call.args[0])), call.args[1].value
    if value is None or value.type is tuple or not is_plainly_named(value):
        return False
    cls: Any = value.type
    is_field = name in cls._fields and type(vars(cls).get(name)) is FIELD
    if not is_field or cls.__getattribute__ is not tuple.__getattribute__:
        return False
    s.guards.attributes[id(cls), name] = (cls, name, getattr(cls, name))
    call.fn, call.args = Const(operator.getitem), (call.args[0], Const(cls._fields.index(name)))
    return True


FIELD = type(vars(collections.namedtuple("Named", "x"))["x"])


def known_length(s: Any, call: Call) -> int | None:
    """That of the tuple whose items are read, if these are known one by one."""
    k = known(s.value(call.args[0])) if len(call.args) == 1 and not call.keywords else None
    items = None if k is None or k.type is not tuple else k.detail
    return None if items is None or len(items) > MOST_ARGUMENTS else len(items)


def read_each(s: Any, block: Any, call: Call, xs: Any, n: int) -> None:
    """Put a tuple of the first n items in the place of a call."""
    calls = [
        Call(s.ir.var(), Const(operator.getitem), (xs, Const(i)), (), call.position)
        for i in range(n)
    ]
    at = block.calls.index(call)
    block.calls[at:at] = calls
    call.fn, call.args = Const(primitives.build_tuple), tuple(c.out for c in calls)


MOST_ARGUMENTS = 32


def spread_array(s: Any, block: Any, call: Call) -> bool:
    """`f(*xs)` of an array whose length is known."""
    xs, *_ = call.args
    value: Any = s.value(xs)
    length = value.detail[2][0] if has_rows(value) and value.detail[2] else None
    if length is None or length > MOST_ARGUMENTS:
        return False
    read_each(s, block, call, xs, length)
    return True


def spread_list(s: Any, block: Any, call: Call, made: dict[Any, Any]) -> bool:
    """`f(*xs)` of a list of the caller's, of which the program asks whether it is as long as now."""
    xs, *_ = call.args
    example = s.examples.given.get(xs)
    if type(example) is not list or len(example) > MOST_ARGUMENTS:
        return False
    if items_of(s.value(xs)) is None or not is_from_caller(s, xs, made):
        return False
    length, same = s.ir.var(), s.ir.var()
    i = block.calls.index(call)
    block.calls[i:i] = [
        Call(length, Const(len), (xs,), (), call.position),
        Call(same, Const(operator.eq), (length, Const(len(example))), (), call.position),
    ]
    s.guard_test(block, i + 2, same)
    rest = next(b for b in s.ir.blocks if call in b.calls)
    read_each(s, rest, call, xs, len(example))
    return True


def is_from_caller(s: Any, x: Any, made: dict[Any, Any]) -> bool:
    """Is it an argument, or what was read from one as the caller has it?"""
    if x in s.ir.params:
        return True
    call = made.get(x)
    if call is None or call.primitive not in READING:
        return False
    return is_from_caller(s, call.args[1 if call.primitive is list_item else 0], made)


READING = (getattr, operator.getitem, iter, primitives.advance, list_item)


def axes_together(s: Any, block: Any, call: Call) -> bool:
    """`x.reshape(a, b)` is `x.reshape((a, b))`, whose rule is simpler; `x.transpose(0, 1)` too."""
    n = len(call.args) - len(call.keywords)
    if n < 3:
        return False
    axes = Call(s.ir.var(), Const(primitives.build_tuple), call.args[1:n], (), call.position)
    block.calls.insert(block.calls.index(call), axes)
    call.args = (call.args[0], axes.out, *call.args[n:])
    return True


def has_rows(value: Any) -> bool:
    """Is it known to be an array that has a length?"""
    return is_array(value) and value.detail[1] > 0


def require_length(xs: Any, n: int) -> None:
    """Raise what unpacking raises, of an array whose length is another."""
    if len(xs) != n:
        primitives.unpack(xs, n)


non_differentiable(require_length)
only_reads(require_length)
effects(require_length)
transfers(require_length)(lambda s, call, args: Known(type(None)))


def unpack_known(s: Any, block: Any, call: Call, made: dict[Any, Any], uses: Any) -> bool:
    """`a, *b = xs` for items that are known one by one."""
    source, before, after = call.args
    if type(before) is not Const or type(after) is not Const:
        return False
    calls: list[Any] = []
    items = listed(s, source, made, uses, calls, call.position)
    if items is None or len(items) < before.value + after.value:
        return False
    end = len(items) - after.value
    rest = s.ir.var()
    inside = items[before.value : end]
    calls.append(Call(rest, Const(primitives.build_list), tuple(inside), (), call.position))
    call.fn = Const(primitives.build_tuple)
    call.args = (*items[: before.value], rest, *items[end:])
    i = block.calls.index(call)
    block.calls[i:i] = calls
    return True


def listed(s: Any, x: Any, made: dict[Any, Any], uses: Any, calls: Any, position: Any) -> Any:
    """The items of a tuple, or of a list that nobody else reads."""
    display = made.get(x)
    if display is not None and display.primitive is primitives.build_list and uses[x] == 1:
        display.removable = True
        return list(display.args)
    k = known(s.value(x))
    if k is None or k.type is not tuple or k.detail is None:
        return None
    found = []
    for i in range(len(k.detail)):
        found.append(s.ir.var())
        calls.append(Call(found[-1], Const(operator.getitem), (x, Const(i)), (), position))
    return found
