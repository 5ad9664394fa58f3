"""Rules of `functools.partial`: made, called, and the structure of its cotangent.

The function and the arguments of a partial cannot change: their cotangents are in a
`Tangent[partial](func=…, args=…)`. Its keywords are a dict that can be written to, which has an
adjoint of its own as every other dict.
Tests: tests/rules/test_partials.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from morula.core.extend import (
    NONE,
    ZERO,
    Tangent,
    adjoint_object,
    adjoint_of,
    call,
    collector,
    gradient_for,
    is_zero,
    materialise,
    on_entry,
    projector,
    resolves,
)
from morula.rules.calls import has_places, has_too_few, in_places, item, order_of, part, serves
from morula.rules.objects import give, take
from morula.rules.structures import OnEntry


@serves(partial)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y = partial(*args, **kwargs)  # type: ignore[operator]
    inner = args[0]
    nested = y.func is not inner  # a partial without attributes is flattened by CPython
    m = len(inner.args) if nested else 0
    order = order_of(inner.args if nested else (), len(args) - 1)

    def partial_pullback(ȳ: Any) -> tuple[Any, ...]:
        f̄, read = part(ȳ, "func"), adjoint_of(y.keywords)
        held = in_places(order, [item(part(ȳ, "args"), i) for i in range(len(order))])
        if nested:
            bars = adjoint_of(inner.keywords)
            for k in inner.keywords:
                if k not in kwargs:
                    give(bars, k, take(read, k))
            f̄ = partial_tangent(f̄, held[:m])
        return (
            NONE,
            f̄,
            *held[m:],
            *[take(read, k) for k in kwargs],
        )

    return y, partial_pullback


def partial_tangent(f̄: Any, args: list[Any]) -> Any:
    """The cotangent of a partial, without that of its keywords, which are a dict and may change."""
    fields = {}
    if not is_zero(f̄):
        fields["func"] = f̄
    if not all(map(is_zero, args)):
        fields["args"] = tuple(args)
    return Tangent[partial](fields) if fields else ZERO


@resolves(partial, passing=True)
def call_partial(p: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function, with the arguments of the partial before those of the call, or between them."""
    keywords = {**p.keywords, **kwargs}
    values, n = (*p.args, *args), len(p.args)
    order = order_of(p.args, len(args)) if has_places(p.args) else list(range(len(values)))
    if has_too_few(p.args, len(args)):
        return p(*args, **kwargs)  # which raises the error
    y, back = call(p.func, *[values[i] for i in order], **keywords)

    def call_partial_pullback(ȳ: Any) -> tuple[Any, ...]:
        f̄, *cotangents = back(ȳ)
        named = dict(zip(keywords, cotangents[len(order) :], strict=True))
        given = [named.pop(k) for k in kwargs]
        for k, c in named.items():
            if not is_zero(c):  # constant settings have no adjoint, nor need there be a pass
                give(adjoint_of(p.keywords), k, c)
        bars = in_places(order, cotangents[: len(order)])
        return partial_tangent(f̄, bars[:n]), *bars[n:], *given

    return y, call_partial_pullback


projector.register(partial, lambda x: None)
adjoint_object.register(partial, lambda x: None)


@collector.register(partial)
def _(y: partial[Any], part: Any) -> Any:
    of_keywords = part(y.keywords)

    def collect() -> Any:
        c = of_keywords()
        return ZERO if is_zero(c) else Tangent[partial](keywords=c)

    return collect


class PartialOnEntry(OnEntry):
    """A partial: its function, arguments and keywords."""

    __slots__ = ()


@on_entry.register(partial)
def _(x: partial[Any], known: dict[int, Any]) -> Any:
    parts = {"func": x.func, "args": x.args, "keywords": x.keywords}
    return PartialOnEntry(x, {name: on_entry(value, known) for name, value in parts.items()})


@materialise.register(PartialOnEntry)
def _(x: PartialOnEntry, x̄: Any, of: Callable[[Any], Any]) -> Any:
    bars = {name: gradient_for(p, part(x̄, name), of) for name, p in x.items.items()}
    return Tangent[partial]({name: c for name, c in bars.items() if c is not None})
