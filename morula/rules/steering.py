"""Steering the gradient: hooks on cotangents, values that count as constant, questions about the run.

Each of these is the identity, or a plain question, in an ordinary call; what it means while its
caller is differentiated is its rule. `nestlevel` counts by itself: its rule is one more than
`nestlevel`, and a rule that is itself differentiated has the rule of what it calls.
Tests: tests/rules/test_steering.py
"""

from collections import deque
from collections.abc import Callable
from copy import copy
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from morula.core.extend import (
    Const,
    NoTangent,
    Reached,
    UnsupportedError,
    adjoint_if_any,
    adjoint_object,
    context,
    general,
    gradient_for,
    hands_on_whole,
    is_reached,
    is_zero,
    non_differentiable,
    on_entry,
    only_once,
    parts_of,
    project_to,
    rewrites,
    rrule,
    transfers,
    type_stable,
)
from morula.rules.numbers import Anything, Numeric, is_inexact
from morula.rules.objects import has_fields, is_by_identity, is_part_of_python, own_fields

# -- hooks -----------------------------------------------------------------------------------------


def hook(fn: Callable[[Any], Any], x: Any) -> Any:
    """`x` itself; the reverse pass applies `fn` to its cotangent.

    What `fn` returns is the cotangent from there on; if it returns None, what it has left in its
    argument. It gets what `gradient` would give for `x`, a copy of its own, if a cotangent reaches
    `x`: all that the uses of this result contribute, and of a list, a dict or an object whatever has
    come together there by then.

    >>> from morula import gradient
    >>> gradient(lambda x: hook(lambda x̄: min(x̄, 1.0), x) ** 2, 3.0)
    (1.0,)
    """
    return x


def showgrad(x: Any, label: str | None = None) -> Any:
    """`x` itself; the reverse pass prints its cotangent.

    >>> from morula import gradient
    >>> gradient(lambda x: showgrad(x * x, "square") * 3.0, 2.0)
    square: 3.0
    (12.0,)
    """

    def show(x̄: Any) -> None:
        print(f"{'gradient' if label is None else label}: {x̄!r}")

    return hook(show, x)


@rrule(hook)
def _(fn: Anything, x: Numeric):
    def hook_pullback(x̄):
        return NoTangent(), hooked(fn, gradient_for(x, x̄, adjoint_if_any))

    return x, hook_pullback


@rrule(hook, by_identity=True)
def _(fn: Anything, x: Anything):
    picture, project, parts = on_entry(x, {}), project_to(x), mutable_parts(x)

    def hook_pullback(x̄):
        if is_zero(x̄) and not any(map(is_reached, parts)):
            return NoTangent(), x̄
        seen = gradient_for(picture, x̄, Reached())
        for part in parts:
            context.forget(part)
        return NoTangent(), project(hooked(fn, seen))

    return x, hook_pullback


hands_on_whole(hook)


def hooked(fn: Any, x̄: Any) -> Any:
    """The cotangent that a hook makes of another."""
    new = fn(x̄)
    return x̄ if new is None else new


def mutable_parts(x: Any) -> list[Any]:
    """The values in `x`, itself among them, whose cotangents are found by identity."""
    return [part for part, _ in general.held_by((x,)) if adjoint_object(part) is not None]


non_differentiable(mutable_parts)

# -- is this code being differentiated? ------------------------------------------------------------


def nestlevel() -> int:
    """How many levels deep this code is being differentiated; 0 in an ordinary call.

    >>> from morula import gradient
    >>> gradient(lambda x: nestlevel() * x, 5.0)
    (1.0,)
    """
    return context.depth.level


def isderiving() -> bool:
    """Is this code being differentiated?

    >>> from morula import gradient
    >>> gradient(lambda x: 2 * x if isderiving() else x, 5.0)
    (2.0,)
    """
    return nestlevel() > 0


@rrule(nestlevel)
def _():
    def nestlevel_pullback(ȳ):
        return ()

    return 1 + nestlevel(), nestlevel_pullback


def one_level_deeper() -> int:
    """`nestlevel` as code that is differentiated sees it."""
    return 1 + nestlevel()


non_differentiable(one_level_deeper)
only_once(one_level_deeper)
type_stable(one_level_deeper)


@rewrites
def _(s: Any) -> bool:
    """Compiled programs call `nestlevel` as if nothing depended on being differentiated."""
    calls = [call for call in s.ir.calls() if call.primitive is nestlevel]
    for call in calls:
        call.fn = Const(one_level_deeper)
    return bool(calls)


# -- values that count as constant -----------------------------------------------------------------

THUNKS = (FunctionType, MethodType, BuiltinFunctionType, partial)


def ignore_derivatives(x_or_thunk: Any) -> Any:
    """A value that counts as constant: that of the argument, or what it returns if it is a function.

    Functions, methods and partials are called, without arguments; other callable objects are values.
    Arrays, lists, dicts and objects are copied, so that nothing that is later read from the result
    carries a derivative, and what is done to it does not reach the original.

    >>> from morula import gradient
    >>> gradient(lambda x: x * ignore_derivatives(x), 3.0)
    (3.0,)
    >>> gradient(lambda x: x * ignore_derivatives(lambda: x * x), 3.0)
    (9.0,)
    """
    x = x_or_thunk() if isinstance(x_or_thunk, THUNKS) else x_or_thunk
    return detached(x, {})


def detached(x: Any, memo: dict[int, Any]) -> Any:
    """A copy of all that is mutable in `x`; `memo` holds the copies made so far, and the originals."""
    if id(x) in memo:
        return memo[id(x)][0]
    if isinstance(x, np.ndarray):
        made = x.copy() if is_inexact(x.dtype) else x
    elif type(x) is tuple or (isinstance(x, tuple) and hasattr(x, "_fields")):
        made = tuple.__new__(type(x), [detached(item, memo) for item in x])
    elif isinstance(x, (list, deque, dict)):
        made = copy(x)
        memo[id(x)] = made, x
        for key, item in x.items() if isinstance(x, dict) else enumerate(x):
            made[key] = detached(item, memo)
    elif isinstance(x, set) or not is_by_identity(x):
        made = copy(x) if isinstance(x, set) else x
    elif has_fields(type(x)) and not is_part_of_python(type(x)) and type(x) not in THUNKS:
        made = copy(x)
        memo[id(x)] = made, x
        for name, value in own_fields(x).items():
            object.__setattr__(made, name, detached(value, memo))
    else:
        made = x
    memo[id(x)] = made, x
    return made


@transfers(ignore_derivatives)
def _(s: Any, call: Any, args: Any) -> Any:
    known = args[0] if len(args) == 1 and not call.keywords else None
    kind = getattr(known, "type", None)
    return known if kind in (int, float, complex, bool, np.ndarray, np.float64) else None


@rrule(ignore_derivatives)
def _(x_or_thunk: Numeric):
    def ignore_derivatives_pullback(ȳ):
        return (NoTangent(),)

    return ignore_derivatives(x_or_thunk), ignore_derivatives_pullback


@rrule(ignore_derivatives, by_identity=True)
def _(x_or_thunk: Anything):
    y, changed = ignored(x_or_thunk)

    def ignore_derivatives_pullback(ȳ):
        refuse_reached(changed)
        return (NoTangent(),)

    return y, ignore_derivatives_pullback


def refuse_reached(changed: general.Held) -> None:
    """An error if cotangents have reached what was changed where no derivatives are followed."""
    for x, keys in changed:
        if context.is_reached_at(x, keys):
            raise cannot_ignore(x)


def ignored(x_or_thunk: Any) -> tuple[Any, list[tuple[Any, list[Any]]]]:
    """What `ignore_derivatives` gives, and what the function that it called has changed."""
    if not isinstance(x_or_thunk, THUNKS):
        return ignore_derivatives(x_or_thunk), []
    before = general.held_by((x_or_thunk,))
    y = ignore_derivatives(x_or_thunk)
    changed = changed_since(before)
    for x, _ in changed:
        if adjoint_object(x) is None:
            raise cannot_ignore(x)
    return y, changed


def changed_since(before: general.Held) -> general.Held:
    """What has been changed, and where; and all of what was made and put there."""
    changed = general.changes(before)
    known = {id(x) for x, _ in before}
    new = []
    for x, keys in changed:
        parts = parts_of(x) or {}
        new += [parts[key] for key in keys if key in parts]
    made = [
        (x, [*parts])
        for x, parts in general.held_by(tuple(new))
        if id(x) not in known and adjoint_object(x) is not None
    ]
    return changed + made


def cannot_ignore(x: Any) -> UnsupportedError:
    """The error for a function whose effects cannot count as constant."""
    return UnsupportedError(
        f"a function that ignore_derivatives or a solver of equations called changes a "
        f"{type(x).__name__} that the gradient runs through: let it return what it computes, and store "
        "that outside"
    )


non_differentiable(ignored, changed_since)
