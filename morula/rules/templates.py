"""Rules of template strings, of CPython 3.14: `t"{x:.2f}"` keeps the value of x, with its cotangent.

The cotangent of an interpolation is a `Tangent` with that of its value, that of a template one with
those of its interpolations. Texts, expressions and formats are constant.
Tests: tests/test_new_syntax.py
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from string.templatelib import Interpolation, Template  # type: ignore[import-not-found]
from typing import Any

from morula.core.extend import (
    NoTangent,
    Tangent,
    ZeroTangent,
    frule,
    is_zero,
    primitives,
    projector,
    rrule,
    unthunk,
)
from morula.rules.builtins import ATTRIBUTES, is_part
from morula.rules.iteration import BY_GENERATOR
from morula.rules.numbers import Anything
from morula.rules.objects import constant_attribute

for _type in (Interpolation, Template):
    projector.register(_type, lambda x: lambda x̄: x̄)


@rrule(primitives.interpolation)
@rrule(Interpolation)
def _(value: Anything, expression: Anything = "", conversion: Anything = None, spec: Anything = ""):
    def interpolation_pullback(ȳ):
        return unthunk(ȳ)["value"], NoTangent(), NoTangent(), NoTangent()

    return Interpolation(value, expression, conversion, spec), interpolation_pullback


@rrule(primitives.template)
def _(strings: Anything, interpolations: tuple):
    def template_pullback(ȳ):
        return NoTangent(), unthunk(ȳ)["interpolations"]

    return primitives.template(strings, interpolations), template_pullback


@rrule(operator.add)
def _(a: Template, b: Template):
    n, y = len(a.interpolations), a + b

    def add_pullback(ȳ):
        bars = in_places(y, unthunk(ȳ)["interpolations"])
        of_a, of_b = bars[:n], bars[n:]
        return Tangent[Template]({"interpolations": of_a}), Tangent[Template](
            {"interpolations": of_b}
        )

    return a + b, add_pullback


@rrule(Template)
def _(*parts: Anything):
    y = Template(*parts)

    def template_pullback(ȳ):
        bars = iter(in_places(y, unthunk(ȳ)["interpolations"]))
        return tuple([next(bars) if isinstance(p, Interpolation) else NoTangent() for p in parts])

    return y, template_pullback


@frule(primitives.interpolation)
@frule(Interpolation)
def _(value: Anything, expression: Anything = "", conversion: Anything = None, spec: Anything = ""):
    def interpolation_pushforward(v̇, *others):
        return Tangent[Interpolation]({"value": v̇})

    return Interpolation(value, expression, conversion, spec), interpolation_pushforward


@frule(primitives.template)
def _(strings: Anything, interpolations: tuple):
    def template_pushforward(_, ṗ):
        return Tangent[Template]({"interpolations": ṗ})

    return primitives.template(strings, interpolations), template_pushforward


@frule(Template)
def _(*parts: Anything):
    def template_pushforward(*ṗ):
        dots = [t for part, t in zip(parts, ṗ, strict=True) if isinstance(part, Interpolation)]
        return Tangent[Template]({"interpolations": tuple(dots)})

    return Template(*parts), template_pushforward


@frule(operator.add)
def _(a: Template, b: Template):
    def add_pushforward(ȧ, ḃ):
        dots = (*in_places(a, parts_in(ȧ)), *in_places(b, parts_in(ḃ)))
        return Tangent[Template]({"interpolations": dots})

    return a + b, add_pushforward


def parts_in(ṫ: Any) -> Any:
    """The tangents of the interpolations, in that of a template."""
    return ṫ if is_zero(ṫ) else ṫ["interpolations"]


def values_of(t: Any) -> Any:
    """The rule of reading the values of a template."""

    def values_pullback(ȳ):
        bars = [
            ZeroTangent() if is_zero(v) else Tangent[Interpolation]({"value": v})
            for v in in_places(t, ȳ)
        ]
        return (Tangent[Template]({"interpolations": tuple(bars)}),)

    return t.values, values_pullback


def in_places(t: Any, ȳ: Any) -> tuple[Any, ...]:
    """The cotangents of all interpolations, from those of a tuple of them."""
    ȳ = unthunk(ȳ)
    if is_zero(ȳ):
        return (ZeroTangent(),) * len(t.interpolations)
    return tuple([ȳ[i] for i in range(len(t.interpolations))])


is_part(Interpolation, "value")
is_part(Template, "interpolations")
ATTRIBUTES[Template, "values"] = values_of
ATTRIBUTES[Template, "strings"] = constant_attribute("strings")
for _name in ("expression", "conversion", "format_spec"):
    ATTRIBUTES[Interpolation, _name] = constant_attribute(_name)


def parts_of_template(t: Any) -> Iterator[Any]:
    """`iter(t)`: its texts, but for the empty ones, and its interpolations."""
    for i, text in enumerate(t.strings):
        if text:
            yield text
        if i < len(t.interpolations):
            yield t.interpolations[i]


BY_GENERATOR[Template] = parts_of_template
del _type, _name
