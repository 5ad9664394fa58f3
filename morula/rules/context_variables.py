"""Rules of `contextvars`: a variable of a context is a box, found by the value that was put into it.

Which context is the present one cannot be asked, but a value that is read is the one that was set,
whatever contexts were copied, entered and reset in between.
Tests: tests/rules/test_context_variables.py
"""

from __future__ import annotations

import sys
from contextvars import Context, ContextVar
from typing import Any

from morula.core.extend import (
    NONE,
    ZERO,
    adjoint_of,
    call,
    non_differentiable,
    rrule,
)
from morula.rules.calls import serves
from morula.rules.numbers import Anything
from morula.rules.objects import give, take

non_differentiable(ContextVar.reset)


class Setting:
    """A value that was put into a variable of a context."""

    def __init__(self, variable: Any, value: Any) -> None:
        self.variable = variable
        self.value = value


_settings: dict[int, Setting] = {}  # by the identity of the value
_limit = [64]


def note_setting(variable: Any, value: Any) -> Setting:
    """Note that a value was put into a variable; each level of differentiation notes it alike."""
    known = setting_of(variable, value)
    if isinstance(known, Setting):
        return known
    if len(_settings) >= _limit[0]:
        for key in list(_settings):
            if sys.getrefcount(_settings[key].value) <= HELD:
                del _settings[key]
        _limit[0] = max(64, 2 * len(_settings))
    found = _settings[id(value)] = Setting(variable, value)
    return found


def setting_of(variable: Any, value: Any) -> Any:
    """How a value came into a variable, or None: not in differentiated code."""
    found = _settings.get(id(value))
    if found is None or found.value is not value or found.variable is not variable:
        return None
    return found


def _references() -> int:
    """The count of references to a value that its setting alone holds."""
    settings = {0: Setting(None, object())}
    return sys.getrefcount(settings[0].value)


HELD = _references()
non_differentiable(note_setting, setting_of)


@rrule(ContextVar.set, by_identity=True)
def _(variable: ContextVar, value: Anything):
    token = variable.set(value)
    setting = note_setting(variable, value)

    def set_pullback(ȳ):
        return NONE, take(adjoint_of(setting), "value")

    return token, set_pullback


@serves(ContextVar)
def _(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    variable = ContextVar(*args, **kwargs)
    setting = note_setting(variable, kwargs.get("default"))

    def variable_pullback(ȳ: Any) -> tuple[Any, ...]:
        c = take(adjoint_of(setting), "value")
        return (NONE, *[NONE] * len(args), *[c for _ in kwargs])

    return variable, variable_pullback


@rrule(ContextVar.get, by_identity=True)
def _(variable: ContextVar, *default: Anything):
    y = variable.get(*default)
    is_default = bool(default) and y is default[0]
    setting = None if is_default else setting_of(variable, y)

    def get_pullback(ȳ):
        if setting is not None:
            give(adjoint_of(setting), "value", ȳ)
        return NONE, *[ȳ if is_default else ZERO for _ in default]

    return y, get_pullback


@serves(Context.run)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    context, f, *rest = args
    y, back = context.run(call, f, *rest, **kwargs)

    def run_pullback(ȳ: Any) -> tuple[Any, ...]:
        return (NONE, ZERO, *back(ȳ))

    return y, run_pullback
