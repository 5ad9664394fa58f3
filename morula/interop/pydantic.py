"""Models of pydantic: what validation and dumping leave as it was given keeps its derivative.

A number, or an object, that comes out as it went in depends on it; so do those in lists, tuples, dicts
and models that are made anew. What was converted has no derivative that is known.
Tests: tests/interop/test_pydantic.py
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic_core import SchemaSerializer, SchemaValidator

from morula.core.extend import (
    NONE,
    ZERO,
    adjoint_of,
    general,
    is_reached,
    is_zero,
    no_rule,
    non_differentiable,
    project_to,
    rrule,
)
from morula.mixed_mode.push import Unknown, pushes
from morula.mixed_mode.structures import drain as drain_with_tangents
from morula.mixed_mode.tangents import (
    reached,
    set_all,
    set_value,
    tangents_if_any,
    together,
    value_of,
)
from morula.rules.calls import entry
from morula.rules.containers import drop_from, scatter
from morula.rules.numbers import Anything, is_number
from morula.rules.objects import give, take

VALIDATE, DUMP = SchemaValidator.validate_python, SchemaSerializer.to_python
FIELDS = (dict, BaseModel)


def is_kept(value: Any, given: Any) -> bool:
    """Is a value what was given for it, or that as a number of Python's?"""
    if value is given or type(value) is type(given):
        return value is given
    return is_number(value) and is_number(given) and bool(value == given)


def fields_of(x: Any) -> dict[str, Any]:
    """The values of a dict or a model by their names."""
    return x if isinstance(x, dict) else vars(x)


def is_sequence(value: Any, given: Any) -> bool:
    """Is a list or a tuple made of the items of another?"""
    if type(value) not in (list, tuple) or type(given) not in (list, tuple):
        return False
    return len(value) == len(given)


def is_made(fn: Any, value: Any, given: Any) -> bool:
    """May a field that was not given by its name depend on what was given: is it no default value?"""
    return fn is DUMP or any([name not in fields_of(value) for name in fields_of(given)])


def converted(fn: Any, what: Any) -> Exception:
    """The error where a derivative is asked for that nobody knows."""
    return no_rule(fn, (what,), reason=f"pydantic has converted a {type(what).__name__}")


non_differentiable(is_kept, fields_of, is_sequence, is_made, converted)


def back_to(fn: Any, value: Any, given: Any, v̄: Any) -> Any:
    """The cotangent of what was given for a value."""
    if is_kept(value, given):
        return project_to(given)(v̄)
    if is_sequence(value, given):
        n = len(value)
        if type(value) is list:
            project_to(value)(v̄)
            bars = drop_from(adjoint_of(value), 0, n)
        else:
            bars = [entry(v̄, i) for i in range(n)]
        parts = [back_to(fn, value[i], given[i], bars[i]) for i in range(n)]
        return scatter(given, parts) if type(given) is list else together(parts)
    if isinstance(value, FIELDS) and isinstance(given, FIELDS):
        named, inside = adjoint_of(value), fields_of(given)
        for name, part in list(fields_of(value).items()):
            c = take(named, name)
            if name in inside:
                give(adjoint_of(given), name, back_to(fn, part, inside[name], c))
            elif not is_zero(c) and is_made(fn, value, given):
                raise converted(fn, given)
        return ZERO
    if not is_zero(v̄) or any([is_reached(x) for x, _ in general.held_by((value,))]):
        raise converted(fn, given)
    return ZERO


def along(run: Any, fn: Any, value: Any, given: Any, ġ: Any) -> Any:
    """The tangent of a value by that of what was given for it."""
    if is_kept(value, given):
        return ġ
    if is_sequence(value, given):
        dots = drain_with_tangents(run, given, ġ)[1]
        dots = [along(run, fn, *each) for each in zip(value, given, dots, strict=True)]
        if type(value) is tuple:
            return together(dots)
        set_all(run, value, dots)
        return ZERO
    if isinstance(value, FIELDS) and isinstance(given, FIELDS):
        inside = fields_of(given)
        for name, part in list(fields_of(value).items()):
            if name in inside:
                ġ = value_of(run, given, name)
                set_value(run, value, name, along(run, fn, part, inside[name], ġ))
            elif tangents_if_any(run, given) and is_made(fn, value, given):
                set_value(run, value, name, Unknown(converted(fn, given)))
        return ZERO
    if not is_zero(ġ) or reached(run, (given,)):
        raise converted(fn, given)
    return ZERO


@rrule(VALIDATE, by_identity=True)
def _(validator: Anything, data: dict, *, self_instance: Anything = None):
    y = VALIDATE(validator, data, self_instance=self_instance)

    def validate_pullback(ȳ):
        back_to(VALIDATE, y, data, ȳ)
        return NONE, ZERO, ZERO

    return y, validate_pullback


@rrule(DUMP, by_identity=True)
def _(serializer: Anything, model: BaseModel, **keywords):
    y = DUMP(serializer, model, **keywords)

    def dump_pullback(ȳ):
        back_to(DUMP, y, model, ȳ)
        return NONE, ZERO, *[NONE] * len(keywords)

    return y, dump_pullback


@pushes(VALIDATE)
def _(run: Any, args: Any, tangents: Any, keywords: Any) -> Any:
    if keywords not in ((), ("self_instance",)) or type(args[1]) is not dict:
        return NotImplemented
    validator, data, *model = args
    y = VALIDATE(validator, data, self_instance=model[0] if model else None)
    along(run, VALIDATE, y, data, ZERO)
    return y, ZERO


@pushes(DUMP)
def _(run: Any, args: Any, tangents: Any, keywords: Any) -> Any:
    n = len(args) - len(keywords)
    if n != 2 or not isinstance(args[1], BaseModel):
        return NotImplemented
    y = DUMP(*args[:2], **dict(zip(keywords, args[2:], strict=True)))
    along(run, DUMP, y, args[1], ZERO)
    return y, ZERO
