"""Rules of sum, min, max, sorted, reduce and the sums and products of math over any iterable.

sum and reduce are folds: each step is a call of the operator or of the function. min and max give
ȳ to the item that was chosen, the first among equals; sorted gives each item the cotangent from
the place where it went. Functions given as `key` are called once per item, in order.
Tests: tests/rules/test_functional.py
"""

import functools
import math
import operator
import typing
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    ZeroTangent,
    accumulate,
    adjoint_of,
    call,
    non_differentiable,
    project_to,
    rrule,
)
from morula.rules.arrays.bodies import instead_of
from morula.rules.calls import MISSING, compiled, entry, runs_body, serves
from morula.rules.containers import (
    Compared,
    answers,
    cotangents_of,
    drain,
    drop_from,
    order_of,
    visit,
)
from morula.rules.numbers import Anything
from morula.rules.questions import Key

NUMBERS = (int, float, bool)


@serves(sum)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    start = args[1] if len(args) > 1 else kwargs.get("start", 0)
    if isinstance(start, (str, bytes, bytearray)):
        return sum([], start), None  # raises
    plain: list[Any] = [start]  # Python's own numbers, which sum adds in a way of its own
    steps: list[Any] = []
    total = start

    def each(item: Any) -> None:
        nonlocal total
        if not steps and type(item) in NUMBERS and type(start) in NUMBERS:
            plain.append(item)
            return
        if not steps:
            total = sum(plain[1:], start)
        total, step = call(operator.add, total, item)
        steps.append(step)

    _, back = visit(args[0], each)
    if not steps:
        total = sum(plain[1:], start)

    def sum_pullback(ȳ: Any) -> tuple[Any, ...]:
        n = len(plain) - 1

        def cotangent_of(i: int) -> Any:
            nonlocal ȳ
            if i >= n:
                _, ȳ, c = steps[i - n](ȳ)
                return c
            return projected(plain[i + 1], ȳ)

        x̄ = back(cotangent_of)
        rest = [projected(start, ȳ)] * (len(args) + len(kwargs) - 1)
        return (NONE, x̄, *rest)

    return total, sum_pullback


def projected(x: Any, x̄: Any) -> Any:
    """A cotangent in the space of `x`."""
    return project_to(x)(x̄)


def extreme(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`max` or `min` of an iterable, or with a key."""
    key = kwargs.get("key")
    single = len(args) == 1
    keys: list[Any] = []
    key_backs: list[Any] = []

    def each(item: Any) -> None:
        if key is None:
            keys.append(item)
        else:
            k, key_back = call(key, item)
            keys.append(k)
            key_backs.append(key_back)

    items, back = visit(args[0] if single else args, each)
    if not args or (not single and "default" in kwargs):
        return fn(*args, **kwargs), None  # raises
    if not items:
        if "default" not in kwargs:
            return fn(items), None  # raises
        return kwargs["default"], lambda ȳ: (NONE, back(None), *by_name(kwargs, "default", ȳ))
    asked: list[Any] = []
    compared = [Compared(x, i, asked) for i, x in enumerate(keys)] if answers(keys) else keys
    place = fn(range(len(items)), key=compared.__getitem__)

    def extreme_pullback(ȳ: Any) -> tuple[Any, ...]:
        of_keys = cotangents_of(asked, len(keys))

        def cotangent_of(i: int) -> Any:
            c = ȳ if i == place else ZERO
            return accumulate(of_keys[i] if key is None else key_backs[i](of_keys[i])[1], c)

        x̄ = back(cotangent_of)
        bars = [x̄] if single else [entry(x̄, i) for i in range(len(args))]
        return (NONE, *bars, *[NONE] * len(kwargs))

    return items[place], extreme_pullback


def by_name(kwargs: dict[str, Any], name: str, c: Any) -> list[Any]:
    """Cotangents of keyword arguments, of which one has some."""
    return [c if k == name else NONE for k in kwargs]


serves(max, min)(extreme)


@instead_of(functools.cmp_to_key)
def cmp_to_key(mycmp):
    """A class of keys that are compared by a function."""
    return functools.partial(Key, mycmp)


def chosen(y: Any, args: tuple[Any, ...]) -> Any:
    """A pullback to that one of the arguments which is the result itself."""
    place = next(i for i, a in enumerate(args) if a is y)

    def chosen_pullback(ȳ):
        c = projected(y, ȳ)
        return tuple([c if i == place else ZeroTangent() for i in range(len(args))])

    return chosen_pullback


def chosen_of(choose: Any) -> Any:
    """The rule of `max` or `min` of several arguments."""

    def rule(a: Anything, b: Anything, *others: Anything):
        args = (a, b, *others)
        if answers(args):
            y, back = extreme(choose, args, {})
            return y, lambda ȳ: back(ȳ)[1:]
        y = choose(*args)
        return y, chosen(y, args)

    return rule


for _choose in (max, min):
    rrule(_choose, by_identity=True)(chosen_of(_choose))
del _choose


@serves(sorted)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 1 or kwargs.keys() - {"key", "reverse"}:
        sorted(*args, **kwargs)  # raises
    items, back = drain(args[0])
    order, asked = order_of(items, kwargs.get("key"), kwargs.get("reverse", False))
    y = [items[i] for i in order]

    def sorted_pullback(ȳ: Any) -> tuple[Any, ...]:
        parts = drop_from(adjoint_of(y), 0, len(order))  # the list may be shorter now
        bars = asked()
        for j, i in enumerate(order):
            bars[i] = accumulate(parts[j], bars[i])
        return (NONE, back(bars), *[NONE] * len(kwargs))

    return y, sorted_pullback


@serves(functools.reduce)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    f, xs, *initial = args
    y = initial[0] if initial else MISSING
    steps: list[Any] = []

    def each(item: Any) -> None:
        nonlocal y
        if y is MISSING:
            y = item
        else:
            y, step = call(f, y, item)
            steps.append(step)

    items, back = visit(xs, each)
    if y is MISSING:
        return functools.reduce(f, items), None  # raises

    def reduce_pullback(ȳ: Any) -> tuple[Any, ...]:
        f̄: Any = ZERO
        begin = len(items) - len(steps)

        def cotangent_of(i: int) -> Any:
            nonlocal ȳ, f̄
            if i < begin:
                return ȳ
            c, ȳ, x̄ = steps[i - begin](ȳ)
            f̄ = accumulate(c, f̄)
            return x̄

        x̄ = back(cotangent_of)
        return NONE, f̄, x̄, *[ȳ] * len(initial)

    return y, reduce_pullback


@serves(
    *[getattr(math, name) for name in ("prod", "fsum", "dist", "sumprod") if hasattr(math, name)]
)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    drained = [drain(x) if is_iterable(x) else (x, None) for x in args]
    if not any(back is not None for _, back in drained):
        return compiled(fn, args, kwargs)
    values = [x if back is None else tuple(x) for x, back in drained]
    y, back = call(fn, *values, **kwargs)

    def of_iterables_pullback(ȳ: Any) -> tuple[Any, ...]:
        bars = list(back(ȳ))
        for i, (items, drain_back) in enumerate(drained):
            if drain_back is not None:
                bars[i + 1] = drain_back([entry(bars[i + 1], k) for k in range(len(items))])
        return tuple(bars)

    return y, of_iterables_pullback


def is_iterable(x: Any) -> bool:
    """Is it an iterable other than a tuple or an array, which have rules of their own?"""
    return hasattr(x, "__iter__") and not isinstance(x, (tuple, np.ndarray, np.generic))


non_differentiable(is_iterable)


# -- what only hands on ----------------------------------------------------------------------------


def as_given(x: Any, /) -> Any:
    """What a `typing.NewType` gives when it is called."""
    return x


def called(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`operator.call(fn, *args, **kwargs)`."""
    return fn(*args, **kwargs)


HANDING_ON: dict[Any, Any] = {typing.NewType.__call__: as_given, operator.call: called}


@serves(*HANDING_ON)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(HANDING_ON[fn], *args, **kwargs)


for _fn, _body in HANDING_ON.items():
    runs_body(_body, _fn)
