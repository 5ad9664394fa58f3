"""Rules of differentiating within differentiated code: gradients of gradients, to any order.

`gradient` and its kin are ordinary Python, and so are rules, pullbacks and emitted code: they are
differentiated like all of it. Said here is only what must not be looked into: the tables of the
running reverse pass, the look-up of rules, the transformation itself; and that a gradient function,
which is compiled for the types at hand, means the general path.
Tests: tests/rules/test_meta.py
"""

from functools import cached_property, partial
from inspect import isfunction
from types import FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    Tangent,
    Thunk,
    UnsupportedError,
    accumulate,
    add,
    adjoint_of,
    attempted,
    below,
    call,
    callables,
    collector,
    context,
    errors,
    expect_nothing,
    general,
    in_space_of,
    interface,
    is_abstract,
    known,
    known_value,
    lines_of_result,
    materialise,
    memory,
    multiply,
    non_differentiable,
    on_entry,
    project_to,
    projector,
    protected,
    registry,
    repeatable,
    rrule,
    to_space,
    traits,
    transfers,
    unit,
    unthunk,
)
from morula.rules.arrays.memory import is_followed
from morula.rules.calls import entry, item, part, serves, together
from morula.rules.numbers import Numeric
from morula.rules.objects import give, take

non_differentiable(
    context.enter,
    context.leave,
    context.adjoint_of,
    context.adjoint_if_any,
    context.forget,
    context.go_deeper,
    context.share_adjoint,
    context.is_reached,
    context.is_reached_at,
    context.results_of,
    context.beside,
    *[f for f in vars(memory).values() if callable(f) and f.__module__ == memory.__name__],
    *[f for f in vars(errors).values() if isfunction(f) and f.__module__ == errors.__name__],
    traits.gives_old,
    traits.is_done_at_once,
    registry.gives_all,
    traits.stands_apart,
    is_followed,
    general.try_forward_of,
    general.forward_of,
    general.made_inside,
    general._binding,
    registry.find_rrule,
    registry.is_constant,
    registry.is_constant_for,
    registry.Rule.positions,
    registry.Rule.position_of,
    *[p.func for p in vars(registry.Rule).values() if isinstance(p, cached_property)],
    traits.has_tangent,
    traits.adjoint_object,
    lines_of_result,
    interface.ask_only,
    interface.as_argnums,
    interface.copy_of,
    callables.positions_of,
    unit,
    *[
        f.dispatch
        for f in (
            add,
            multiply,
            projector,
            materialise,
            on_entry,
            collector,
            unit,
            traits.from_memory,
        )
    ],
)


@rrule(accumulate)
def _(a: Numeric, b: Numeric):
    def accumulate_pullback(ȳ):
        return ȳ, ȳ

    return accumulate(a, b), accumulate_pullback


@rrule(in_space_of)
def _(x: Any, x̄: Any):
    def in_space_of_pullback(ȳ):
        return NONE, ȳ

    return in_space_of(x, x̄), in_space_of_pullback


@rrule(to_space)
def _(x: Any, x̄: Any):
    def to_space_pullback(ȳ):
        return NONE, ȳ

    return to_space(x, x̄), to_space_pullback


repeatable(in_space_of, to_space)


@transfers(in_space_of, to_space)
def _(s: Any, call: Any, args: Any) -> Any:
    """Like the argument, but that integers are points of the real line."""
    k = known(args[0])
    if k is None:
        return None
    zero = traits.typed_zero(k.type)
    if zero is not None:
        return known_value(zero)
    return args[0] if k.type is np.ndarray and k.detail[0][1] in "fc" else None


@rrule(registry.Rule.checked)
def _(self: registry.Rule, cotangents: Any, n_args: int):
    def checked_pullback(ȳ):
        return NONE, ȳ, NONE

    return self.checked(cotangents, n_args), checked_pullback


# -- calls of what has a rule: the rule's own code is differentiated, not the code that looks for it


@serves(general.call, passing=True)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    inner, *rest = args
    rule = registry.find_rrule(inner, tuple(rest), kwargs)
    claim = general.claim_of(rule, inner, (*rest, *kwargs.values()))
    resolve = general.resolver_of(inner) if claim is None else claim.reverse
    below(general.expect_from, resolve if rule is None else rule.function)
    if rule is not None and claim is None:
        expect_nothing()
        both, back = apply(rule, tuple(rest), kwargs, True)
        general.seen(inner, (*rest, *kwargs.values()), both[0], False)
        return both, lambda ȳ: (NONE, NONE, *back(ȳ))
    n = 2 + len(rest) + len(kwargs)
    if claim is None and registry.is_constant_for(inner, (*rest, *kwargs.values()), kwargs):
        expect_nothing()
        y = inner(*rest, **kwargs)
        general.seen(inner, (*rest, *kwargs.values()), y, True)
        return (y, partial(general._constant_back, n - 1)), lambda ȳ: (NONE,) * n
    both, back = call(resolve, inner, tuple(rest), kwargs)
    if type(both) is tuple and type(inner) not in general.CALLED_BY_CODE:
        general.seen(inner, (*rest, *kwargs.values()), both[0], True)

    def call_pullback(ȳ: Any) -> tuple[Any, ...]:
        _, f̄, args_bar, _ = back(ȳ)
        named = adjoint_of(kwargs)
        return (
            NONE,
            f̄,
            *[entry(args_bar, i) for i in range(len(rest))],
            *[take(named, key) for key in kwargs],
        )

    return both, call_pullback


@serves(general.attempted)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the call has done is known here, if an exception leaves the code that differentiates it."""
    outer = below(general.begin_attempt)
    both, back = attempted(general.call, *args, **kwargs)
    strays = below(general.end_attempt, outer)
    if type(both) is not protected.Raised:
        return both, back
    operands = (*args[1:], *kwargs.values())
    lost = partial(general.pull_back_strays, strays, 1 + len(operands))
    lost, of_operand = call(general.with_operand, both.exception, operands, lost)

    def attempted_pullback(ȳ: Any) -> tuple[Any, ...]:
        _, _, operands_bar, _ = of_operand(entry(ȳ, 1))
        bars = back(ZERO)
        given = [entry(operands_bar, i) for i in range(len(operands))]
        return (*bars[:2], *map(accumulate, bars[2:], given))

    return (both, lost), attempted_pullback


@serves(below, *general.ABOUT_REGIONS)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return below(fn, *args), lambda ȳ: (NONE,) * (1 + len(args))


@serves(registry.apply_rule)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rule, arguments, keywords = args
    both, back = apply(rule, arguments, keywords, False)

    def apply_rule_pullback(ȳ: Any) -> tuple[Any, ...]:
        bars = back(ȳ)
        named = adjoint_of(keywords)
        for key, c in zip(keywords, bars[len(arguments) :], strict=True):
            give(named, key, c)
        return NONE, NONE, together(bars[: len(arguments)]), NONE

    return both, apply_rule_pullback


def apply(rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any], callee: bool) -> Any:
    """What `apply_rule` gives, and its pullback: the cotangents of the arguments.

    With `callee`, the pullback that it gives begins with the cotangent of the callable.
    """
    both, back = call(rule.function, *args, **kwargs)
    y, pullback = both
    values = (*args, *kwargs.values())
    positions = rule.positions(len(args), kwargs)
    if rule.by_identity:
        projections: list[Any] = [None] * len(values)
    else:
        projections = [project_to(x) for x in values]
    collect = registry.collector_of(rule, y, args)
    kept = (rule, len(args), positions, projections, callee, collect, y, values)

    def apply_pullback(ȳ: Any) -> tuple[Any, ...]:
        of_pullback = item(part(entry(ȳ, 1), "args"), 0)
        return back(together([entry(ȳ, 0), of_pullback]))[1:]

    return (y, partial(pull_back, pullback, kept)), apply_pullback


def pull_back(pullback: Any, kept: tuple[Any, ...], ȳ: Any) -> tuple[Any, ...]:
    """One call of the pullback of a rule."""
    return call(pull_back, pullback, kept, ȳ)[0]


@serves(pull_back)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    pullback, kept, ȳ = args
    rule, n_args, positions, projections, callee, collect, y, values = kept
    first: list[Any] = [NONE] if callee else []
    seed_backs = []
    if collect is not None:
        ȳ, seed_back = call(collected, collect, ȳ)
        seed_backs.append(seed_back)
    elif type(ȳ) is Thunk:
        ȳ, seed_back = call(unthunk, ȳ)
        seed_backs.append(seed_back)
    if memory.in_memory() and not rule.by_identity:
        ȳ, seed_back = call(registry.with_memory, rule, y, values, ȳ)
        seed_backs.append(seed_back)
        given, given_back = call(traits.at_once, rule.primal, values, ȳ)
        if given is not None:

            def at_once_pullback(ḡ: Any) -> tuple[Any, ...]:
                of_seed = given_back(
                    together([entry(ḡ, k + len(first)) for k in range(len(given))])
                )
                return NONE, ZERO, NONE, back_through(seed_backs, of_seed[-1])

            return (*first, *given), at_once_pullback
    if (ȳ is ZERO or ȳ is NONE) and not rule.by_identity:
        return (*first, *[ZERO] * len(positions)), lambda ḡ: (
            NONE,
            ZERO,
            NONE,
            back_through(seed_backs, ZERO),
        )
    try:
        cotangents, back = call(pullback, ȳ)
    except Exception as error:
        if not rule.trusted or not is_abstract(ȳ):
            raise
        unknown = registry.not_known(error, values)
        return (*first, *unknown), lambda ḡ: (NONE, ZERO, NONE, ZERO)
    n = count_of(rule, cotangents, n_args, values, positions)
    steps = [
        projected(project, cotangents[i] if i is not None and i < n else NONE)
        for i, project in zip(positions, projections, strict=True)
    ]

    def pull_back_pullback(ḡ: Any) -> tuple[Any, ...]:
        bars: list[Any] = [ZERO] * n
        for k in reversed(range(len(steps))):
            i, step = positions[k], steps[k][1]
            g = entry(ḡ, k + len(first))
            if i is not None and i < n:
                bars[i] = accumulate(bars[i], g if step is None else step(g)[1])
        of_pullback, of_seed = back(together(bars))
        return NONE, of_pullback, NONE, back_through(seed_backs, of_seed)

    return (*first, *[c for c, _ in steps]), pull_back_pullback


def count_of(rule: Any, cotangents: Any, n_args: int, values: Any, positions: Any) -> int:
    """How many cotangents a pullback returned, which it may."""
    n = len(rule.checked(cotangents, n_args))
    if not rule.trusted:
        registry.in_spaces(rule, values, positions, cotangents)
    if not rule.trusted and any([type(c) is not Thunk and holds_thunk(c) for c in cotangents]):
        raise UnsupportedError(
            f"the pullback of {rule} returned a Thunk inside of another cotangent, which cannot be "
            "differentiated in its turn. Way out: a Thunk of the whole cotangent, or its value"
        )
    return n


def holds_thunk(x̄: Any) -> bool:
    """Is a cotangent, or a part of it, put off?"""
    if type(x̄) is Tangent:
        x̄ = x̄._fields
    if isinstance(x̄, dict):
        x̄ = [*x̄.values()]
    return type(x̄) is Thunk or (isinstance(x̄, tuple | list) and any(map(holds_thunk, x̄)))


non_differentiable(count_of)


def back_through(backs: list[Any], x̄: Any) -> Any:
    """The cotangent of what went through several calls as their last argument."""
    for back in reversed(backs):
        x̄ = back(x̄)[-1]
    return x̄


def collected(collect: Any, ȳ: Any) -> Any:
    """All of the cotangent of a mutable value."""
    return unthunk(accumulate(ȳ, collect()))


def projected(project: Any, c: Any) -> tuple[Any, Any]:
    """A projected cotangent and the pullback of the projection; None: it was the identity."""
    if project is None or c is ZERO or c is NONE:
        return c, None
    return call(project, c)


@serves(context.call_plainly)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    context.go_deeper(1)
    try:
        y, back = call(*args, **kwargs)
    finally:
        context.go_deeper(-1)
    return y, lambda ȳ: (NONE, *back(ȳ))


@serves(context.as_before)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    y, back = call(*args, **kwargs)
    return y, lambda ȳ: (NONE, *back(ȳ))


@serves(interface.J, interface.differentiate)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return context.as_before(call, interface.straight_differentiate, *args, **kwargs)


@serves(interface.pullback)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(interface.general_pullback, *args, **kwargs)


@serves(interface.pull)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return context.as_before(call, interface.straight_pull, *args, **kwargs)


def general_gradient(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`gradient` by the general path."""
    return general_withgradient(f, *args, **kwargs)[1]


def general_withgradient(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`withgradient` by the general path."""
    y, back = interface.differentiate(f, *args, **kwargs)
    return y, back(interface._one(y, f))[1:]


@serves(interface.gradient)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(general_gradient, *args, **kwargs)


@serves(interface.withgradient)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call(general_withgradient, *args, **kwargs)


def general_grad(f: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    """`grad` by the general path."""
    return interface.general_grad(f, interface.as_argnums(argnums), has_aux)


def general_value_and_grad(f: Any, argnums: Any = 0, has_aux: bool = False) -> Any:
    """`value_and_grad` by the general path."""
    return interface.general_value_and_grad(f, interface.as_argnums(argnums), has_aux)


@serves(interface.grad, interface.value_and_grad)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if args and type(args[0]) is FunctionType:
        n = 1 + len(args) + len(kwargs)
        return fn(*args, **kwargs), lambda ȳ: (ȳ,) * n
    with_value = fn is interface.value_and_grad
    return call(general_value_and_grad if with_value else general_grad, *args, **kwargs)
