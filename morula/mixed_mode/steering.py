"""Forward mode of classes, of what steers the gradient, and of questions about the run.

Tests: tests/mixed_mode/test_language.py
"""

import builtins
import dataclasses
import pickle
from types import FunctionType
from typing import Any

from morula.core import context, errors, protected
from morula.core.cotangents import ZERO, is_zero
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.meta import instead
from morula.mixed_mode.push import push, pushes, split_call
from morula.mixed_mode.tangents import (
    Pass,
    all_zero,
    reached,
    set_tangents,
    set_value,
    tangents_if_any,
    value_of,
)
from morula.rules import classes, objects, steering
from morula.rules.calls import entry
from morula.rules.checkpoints import checkpoint
from morula.rules.iterators import type_seen
from morula.rules.loops import checkpointed
from morula.rules.source_texts import global_variables, refuse_names, run_text

instead(builtins.__build_class__, classes.build_class)


@pushes(type.__new__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    names = args[3]
    given, named = args[:4], dict(zip(keywords, args[4:], strict=True))
    naming = [k for k, v in names.items() if type(classes.set_name_of(v)) is FunctionType]
    cls: Any = classes.without_hooks(given, naming, named)
    objects.note_made(cls)
    for name in names:
        set_value(run, cls, name, value_of(run, names, name))
    for name in naming:
        type.__setattr__(cls, name, names[name])
    for name in naming:
        push(run, classes.set_name_of(names[name]), ZERO, (names[name], cls, name), (ZERO,) * 3)
    hook = classes.hook_of(cls)
    if hook is not None:
        push(run, hook, ZERO, (cls, *args[4:]), (ZERO, *tangents[4:]), keywords)
    return cls, ZERO


@pushes(classes.make_enumeration)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    tangents_of = {name: value_of(run, args[3], name) for name in args[3]}

    def initialise(init: Any, member: Any, *given: Any) -> None:
        objects.note_followed(type(member))
        ẋ = tangents_of.get(member._name_, ZERO)
        items = classes.are_items(args[3].get(member._name_), given)
        if items is None and not is_zero(ẋ):
            raise errors.no_rule(getattr, (member, "value"), why="in forward mode")
        dots = [entry(ẋ, i) for i in range(len(given))] if items else [ẋ]
        push(run, init, ZERO, (member, *given), (ZERO, *dots))

    cls = classes.initialising(initialise, classes.make_enumeration, args)
    objects.note_made(cls)
    for name, ẋ in tangents_of.items():
        set_value(run, cls, name, ẋ)
    return cls, ZERO


@pushes(type, moves=True)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if len(args) == 1:
        return type_seen(args[0]), ZERO
    return push(run, classes.make_class, ZERO, args, tangents, keywords)


@pushes(dataclasses._process_class)  # type: ignore[attr-defined]
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    cls = args[0]
    written = classes.fields_written(cls)
    y: Any = split_call(dataclasses._process_class, args, keywords)  # type: ignore[attr-defined]
    classes.copy_assigned(cls, y)
    for field in classes.new_fields(y):
        name = field.name
        if name in written:
            set_value(run, cls, name, value_of(run, field, "default"))
        else:
            holder = classes.class_with(cls, name)
            set_value(run, field, "default", value_of(run, holder, name))
    if y is not cls:
        set_tangents(run, y, (tangents_if_any(run, cls) or {}).copy())
    for field, (holder, key) in classes.default_values(y):
        set_value(run, holder, key, value_of(run, field, "default"))
    return y, ZERO


def _text_runner(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return push(run, run_text, ZERO, (fn, *args), (ZERO, *tangents), keywords)


for _fn in (eval, exec):
    _text_runner(_fn)


del _fn


@pushes(globals)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return global_variables(globals, args, {})[0], ZERO


def _asking(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if args:
            return split_call(fn, args, keywords), ZERO
        return refuse_names(fn, args, {})


for _fn in (locals, dir):
    _asking(_fn)
del _fn


def _pickler(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if not all_zero(tangents) or reached(run, args):
            raise errors.no_rule(fn, args, why="in forward mode")
        return split_call(fn, args, keywords), ZERO


for _fn in (pickle.dumps, pickle.dump):
    _pickler(_fn)
del _fn


@pushes(protected.special_method)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    protected.special_method(*args)  # raises where there is none
    return push(run, getattr, ZERO, args, tangents)


@pushes(steering.hook)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return args[1], tangents[1]


@pushes(steering.nestlevel)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return 1 + steering.nestlevel(), ZERO


@pushes(checkpoint, context.call_plainly)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, args[0], tangents[0], args[1:], tangents[1:], keywords)


@pushes(checkpointed)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    at = 0 if len(args) > len(keywords) else keywords.index("iterable")
    return args[at], tangents[at]
