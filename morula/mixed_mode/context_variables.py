"""Forward mode of `contextvars`.

Tests: tests/rules/test_context_variables.py
"""

from contextvars import Context, ContextVar
from typing import Any

from morula.core.cotangents import ZERO
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import Both, push, pushes, split_call
from morula.mixed_mode.tangents import Pass, set_value, value_of
from morula.rules.context_variables import note_setting, setting_of


@pushes(ContextVar.set)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    token = ContextVar.set(*args)
    set_value(run, note_setting(*args), "value", tangents[1])
    return token, ZERO


@pushes(ContextVar)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    variable = split_call(ContextVar, args, keywords)
    if keywords:
        set_value(run, note_setting(variable, args[-1]), "value", tangents[-1])
    return variable, ZERO


@pushes(ContextVar.get)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    y = ContextVar.get(*args)
    if len(args) > 1 and y is args[1]:
        return y, tangents[1]
    setting = setting_of(args[0], y)
    return y, ZERO if setting is None else value_of(run, setting, "value")


@pushes(Context.run)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    context, f, *rest = args
    return context.run(push, run, f, tangents[1], tuple(rest), tangents[2:], keywords)
