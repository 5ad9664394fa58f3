"""Rules of differentiating within differentiated code: gradients of gradients, to any order.

`gradient` and its kin are ordinary Python, and so are rules, pullbacks and emitted code: they are
differentiated like all of it. Said here is only what must not be looked into: the tables of the
running reverse pass, the look-up of rules, the transformation itself; and that a gradient function,
which is compiled for the types at hand, means the general path.
Tests: tests/rules/test_meta.py
"""

from functools import cached_property
from types import FunctionType
from typing import Any

from morula.core.extend import (
    NoTangent,
    accumulate,
    add,
    call,
    context,
    general,
    interface,
    materialise,
    multiply,
    non_differentiable,
    on_entry,
    projector,
    python_function,
    registry,
    rrule,
    traits,
    unit,
)
from morula.rules.calls import serves
from morula.rules.numbers import Numeric

non_differentiable(
    context.enter,
    context.leave,
    context.adjoint_of,
    context.adjoint_if_any,
    context.results_of,
    general.try_forward_of,
    general.forward_of,
    general._binding,
    registry.find_rrule,
    registry.is_constant,
    registry.Rule.position_of,
    *[p.func for p in vars(registry.Rule).values() if isinstance(p, cached_property)],
    traits.has_tangent,
    traits.adjoint_object,
    interface.check_argnums,
    interface.positions_of,
    unit,
    *[f.dispatch for f in (add, multiply, projector, materialise, on_entry, unit)],
)


@rrule(accumulate)
def _(a: Numeric, b: Numeric):
    def accumulate_pullback(ȳ):
        return ȳ, ȳ

    return accumulate(a, b), accumulate_pullback


@rrule(registry.Rule.checked)
def _(rule: registry.Rule, cotangents: object, n_args: int):
    def checked_pullback(ȳ):
        return NoTangent(), ȳ, NoTangent()

    return rule.checked(cotangents, n_args), checked_pullback


@serves(interface.pull)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(interface.straight_pull, *args, **kwargs)


def general_gradient(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`gradient` by the general path."""
    return general_withgradient(f, *args, **kwargs)[1]


def general_withgradient(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`withgradient` by the general path."""
    y, back = interface.J(f, *args, **kwargs)
    return y, back(interface._one(y, f))[1:]


@serves(interface.gradient)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(general_gradient, *args, **kwargs)


@serves(interface.withgradient)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(general_withgradient, *args, **kwargs)


@serves(interface.grad, interface.value_and_grad)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args and type(args[0]) is FunctionType:
        n = 1 + len(args) + len(kwargs)
        return fn(*args, **kwargs), lambda ȳ: (ȳ,) * n
    return python_function(fn, args, kwargs)

