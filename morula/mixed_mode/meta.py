"""Forward mode of differentiation itself: pushforwards of gradients, to any order.

Rules, pullbacks and the programs of both modes are ordinary Python, so they are pushed as all of it is.
Said here is what stands in for the look-up of rules: the rule's own code is pushed, as in reverse mode.
Tests: tests/mixed_mode/test_nesting.py
"""

from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from morula.core import context, errors, general, interface, memory, protected, registry, traits
from morula.core.cotangents import (
    NONE,
    ZERO,
    NotKnown,
    Tangent,
    Thunk,
    accumulate,
    is_zero,
    project_to,
    projected,
    unthunk,
)
from morula.core.registry import constant_unless, non_differentiable
from morula.mixed_mode import transposition
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import attempted, noting, push, push_operand, pushes, split_call
from morula.mixed_mode.tangents import Pass, set_value, together, value_of
from morula.rules import meta, numbers
from morula.rules.arrays import traits as array_traits
from morula.rules.arrays.structural import Selected
from morula.rules.arrays.traits import COMPLEX, FLOATING
from morula.rules.calls import entry, serves

# -- reverse mode inside ---------------------------------------------------------------------------


@pushes(general.call)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    inner, *rest = args
    n = len(rest) - len(keywords)
    named = dict(zip(keywords, rest[n:], strict=True))
    rule = registry.find_rrule(inner, tuple(rest[:n]), named)
    claim = general.claim_of(rule, inner, tuple(rest))
    resolve = general.resolver_of(inner) if claim is None else claim.reverse
    general.expect_from(resolve if rule is None else rule.function)
    if rule is not None and claim is None:
        found = pair_of_rule(run, rule, args[1:], tangents[1:], keywords, True)
        general.seen(inner, tuple(rest), found[0][0], False)
        return found
    if claim is None and registry.is_constant_for(inner, tuple(rest), keywords):
        y = inner(*rest[:n], **named)
        general.seen(inner, tuple(rest), y, True)
        return (y, partial(general._constant_back, 1 + len(rest))), ZERO
    for name, ẋ in zip(keywords, tangents[1 + n :], strict=True):
        set_value(run, named, name, ẋ)
    dots = (tangents[0], together(tangents[1 : 1 + n]), ZERO)
    found = push(run, resolve, ZERO, (inner, tuple(rest[:n]), named), dots)
    if type(found[0]) is tuple and type(inner) not in general.CALLED_BY_CODE:
        general.seen(inner, tuple(rest), found[0][0], True)
    return found


@pushes(general.attempted)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    outer = general.begin_attempt()
    strays = general.strays_here()
    try:
        return push(run, general.call, ZERO, args, tangents, keywords)
    except BaseException as error:
        back = partial(general.pull_back_strays, strays, len(args))
        given, dots = (error, args[1:], back), (ZERO, tangents[1:], ZERO)
        back, _ = push(run, general.with_operand, ZERO, given, dots)
        return (protected.caught(error), back), ZERO
    finally:
        general.end_attempt(outer)


def _plain(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return split_call(fn, args, keywords), ZERO


for _fn in (general.below, *general.ABOUT_REGIONS):
    _plain(_fn)
del _fn


# -- forward mode inside ---------------------------------------------------------------------------


def push_held(run: Pass, error: BaseException, args: Args, tangents: Args) -> None:
    """What an exception holds that a push has raised, in both passes."""
    inner, _, _, given, dots, *_ = zip(args, tangents, strict=True)
    push(run, push_operand, ZERO, *zip(inner, (error, ZERO), given, dots, strict=True))


@pushes(attempted)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    args[0].protected += 1
    try:
        return push(run, push, ZERO, args, tangents, keywords)
    except BaseException as error:
        push_held(run, error, args, tangents)
        return (protected.caught(error), ZERO), ZERO
    finally:
        args[0].protected -= 1


@pushes(noting)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    try:
        return push(run, push, ZERO, args, tangents, keywords)
    except BaseException as error:
        push_held(run, error, args, tangents)
        raise


@serves(noting, passing=True)
def _(fn: Any, args: Args, kwargs: Any) -> Any:
    _, expected = general.how_called()
    if expected:
        y, back = general.attempted(push, *args, **kwargs)
        if type(y) is protected.Raised:
            refuse_held(y.exception, args)
        return y, back
    try:
        return general.call(push, *args, **kwargs)
    except BaseException as error:
        refuse_held(error, args)
        raise


def refuse_held(error: BaseException, args: Args) -> None:
    """An exception that leaves a function must hold no operand with a tangent."""
    i = general.operand_in(error, args[3])
    if i is not None and not is_zero(args[4][i]):
        raise errors.UnsupportedError(
            f"a reverse pass over a forward pass does not follow what a {type(error).__name__} "
            "holds that leaves a function within: hand it on by an exception of your own"
        ) from error


@serves(attempted)
def _(fn: Any, args: Args, kwargs: Any) -> Any:
    args[0].protected += 1
    try:
        both, back = general.attempted(push, *args, **kwargs)
    finally:
        args[0].protected -= 1
    if type(both) is not protected.Raised:
        return both, back
    run, _, _, given, dots, *_ = args
    _, held = general.call(push_operand, run, both.exception, given, dots)

    def attempted_pullback(ȳ: Any) -> tuple[Any, ...]:
        *_, given_bar, dots_bar = held(ZERO)
        bars = [*back(ZERO)]
        bars[4] = accumulate(bars[4], given_bar)
        bars[5] = accumulate(bars[5], dots_bar)
        return tuple(bars)

    return (both, ZERO), attempted_pullback


@pushes(registry.apply_rule)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    rule, given, named = args
    dots = [entry(tangents[1], i) for i in range(len(given))]
    dots += [value_of(run, named, k) for k in named]
    return pair_of_rule(run, rule, (*given, *named.values()), tuple(dots), tuple(named), False)


def pair_of_rule(
    run: Pass, rule: Any, args: Args, tangents: Args, keywords: Names, callee: bool
) -> Any:
    """The value and the pullback that a rule gives, with their tangents."""
    n = len(args) - len(keywords)
    pair, ṗair = push(run, rule.function, ZERO, args, tangents, keywords)
    y, pullback = pair
    positions = rule.positions(n, keywords)
    if rule.by_identity:
        projections: list[Any] = [None] * len(args)
    else:
        projections = [project_to(x) for x in args]
    collect = registry.collector_of(rule, y, args)
    kept = (rule, n, positions, projections, callee, collect, y, args)
    ẏ, ṗullback = entry(ṗair, 0), entry(ṗair, 1)
    ḃack = ZERO if is_zero(ṗullback) else Tangent[partial](args=(ṗullback, ZERO))
    return (y, partial(meta.pull_back, pullback, kept)), together([ẏ, ḃack])


def pull_back(run: Pass, args: Args, tangents: Args) -> Any:
    """One call of the pullback of a rule: what the rule says is pushed, and what it does not is not."""
    pullback, kept, ȳ = args
    ṗullback, _, ẏ = tangents
    rule, n_args, positions, projections, callee, collect, y, values = kept
    first: Args = (NONE,) if callee else ()
    if collect is not None:
        given, ġiven = push(run, collect, ZERO, (), ())
        ȳ, ẏ = push(run, accumulate, ZERO, (ȳ, given), (ẏ, ġiven))
    if type(ȳ) is Thunk:
        ȳ, ẏ = push(run, unthunk, ZERO, (ȳ,), (ẏ,))
    if memory.in_memory() and not rule.by_identity:
        if not traits.gives_old(rule.primal):
            given = y, () if registry.gives_all(rule) else values
            beside, ḃeside = push(run, traits.from_memory, ZERO, given, (ZERO, ZERO))
            ȳ, ẏ = push(run, accumulate, ZERO, (ȳ, beside), (ẏ, ḃeside))
            ȳ, ẏ = push(run, unthunk, ZERO, (ȳ,), (ẏ,)) if type(ȳ) is Thunk else (ȳ, ẏ)
        if traits.is_done_at_once(rule.primal):
            given = (rule.primal, values, ȳ)
            found, ḟound = push(run, traits.at_once, ZERO, given, (ZERO, ZERO, ẏ))
            if found is not None:
                of_found = [entry(ḟound, i) for i in range(len(found))]
                return (*first, *found), together([*[ZERO for _ in first], *of_found])
    if (ȳ is ZERO or ȳ is NONE) and not rule.by_identity:
        return (*first, *[ZERO for _ in positions]), ZERO
    cotangents, ċotangents = push(run, pullback, ṗullback, (ȳ,), (ẏ,))
    n = meta.count_of(rule, cotangents, n_args, values, positions)
    bars: list[Any] = [*first]
    dots: list[Any] = [ZERO for _ in first]
    for i, project in zip(positions, projections, strict=True):
        x̄, x̄̇ = NONE, ZERO
        if i is not None and i < n:
            x̄, x̄̇ = cotangents[i], entry(ċotangents, i)
            if project is not None and x̄ is not ZERO and x̄ is not NONE:
                x̄, x̄̇ = push(run, project, ZERO, (x̄,), (x̄̇,))
        bars.append(x̄)
        dots.append(x̄̇)
    return tuple(bars), together(dots)


def thunks_within(args: Args) -> Args:
    """`Thunk`, if a cotangent holds one that is to be computed yet."""
    waiting = list(args)
    while waiting:
        x̄ = waiting.pop()
        if type(x̄) is Thunk:
            if x̄._compute is not None:
                return (Thunk,)
            x̄ = x̄._value
        if type(x̄) is tuple:
            waiting += x̄
        elif type(x̄) is Tangent:
            waiting += x̄._fields.values()
    return ()


def computes(types: Args) -> bool:
    """Is a Thunk computed by asking whether it is zero? It is kept, so its derivative counts."""
    return Thunk in types


constant_unless(computes, is_zero, types_of=thunks_within)


@pushes(meta.pull_back)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    try:
        return pull_back(run, args, tangents)
    except Exception as error:
        _, kept, ȳ = args
        if not kept[0].trusted or not traits.is_abstract(unthunk(ȳ)):
            raise
        first = [NONE] if kept[4] else []
        return (*first, *registry.not_known(error, kept[-1])), ZERO


def instead(fn: Any, other: Any) -> None:
    """Pushing `fn` is pushing `other`."""

    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return context.as_before(push, run, other, ZERO, args, tangents, keywords)


@pushes(context.as_before)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, args[0], tangents[0], args[1:], tangents[1:], keywords)


instead(interface.J, interface.straight_differentiate)
instead(interface.differentiate, interface.straight_differentiate)
instead(interface.pull, interface.straight_pull)
instead(interface.pullback, interface.general_pullback)
instead(interface.gradient, meta.general_gradient)
instead(interface.withgradient, meta.general_withgradient)


@pushes(accumulate)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    a, b = args
    if a is ZERO or a is NONE or b is ZERO or b is NONE:
        first = b if a is NONE or (a is ZERO and b is not NONE) else a
        return first, tangents[1] if first is b else tangents[0]
    return NotImplemented


@pushes(projected)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    project, x̄ = args
    ẋ = tangents[1]
    if x̄ is ZERO or x̄ is NONE or project is None:
        return x̄, ẋ
    if run.primitive is None and is_of_numbers(project, x̄):
        y = project(x̄)
        if y is x̄ or is_zero(ẋ):
            return y, ẋ
        if not isinstance(y, np.ndarray) or y.shape == np.shape(x̄):
            return y, run.each(project, ẋ)
    if type(x̄) is Thunk or type(x̄) is NotKnown or hasattr(project, "hands_on"):
        return NotImplemented
    return push(run, project, tangents[0], (x̄,), (ẋ,))


def is_of_numbers(project: Any, x̄: Any) -> bool:
    """Is it a projection of Morula's, linear, from plain numbers or arrays to such?"""
    if type(project) is not FunctionType or project.__module__ not in OF_NUMBERS:
        return False
    if type(x̄) is np.ndarray or type(x̄) is Selected:
        return x̄.dtype.kind in "fc" and not memory.in_memory()
    return type(x̄) in (float, complex, *FLOATING, *COMPLEX) and not memory.in_memory()


OF_NUMBERS = (numbers.__name__, array_traits.__name__)
non_differentiable(is_of_numbers)


def _structural_zero(kind: Any, zero: Any) -> None:
    @pushes(kind, moves=True)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        return zero, ZERO


_structural_zero(type(ZERO), ZERO)
_structural_zero(type(NONE), NONE)


def transforms(fn: Any, general_form: Any) -> None:
    """What `grad` and `value_and_grad` give for a function is differentiated by the general path."""

    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if args and type(args[0]) is FunctionType:
            return split_call(fn, args, keywords), ZERO
        return push(run, general_form, ZERO, args, tangents, keywords)


transforms(interface.grad, meta.general_grad)
transforms(interface.value_and_grad, meta.general_value_and_grad)

# -- transposition inside --------------------------------------------------------------------------


@pushes(transposition.transposed)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, transposition.transpose, ZERO, args, tangents)


@serves(transposition.transposed)
def _(fn: Any, args: Args, kwargs: Any) -> Any:
    return general.call(transposition.transpose, *args)


@pushes(transposition.transposed_call)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, transposed_call, ZERO, args, tangents)


@serves(transposition.transposed_call)
def _(fn: Any, args: Args, kwargs: Any) -> Any:
    return general.call(transposed_call, *args)


def transposed_call(
    run: Pass,
    fn: Any,
    ḟ: Any,
    args: Args,
    tangents: Args,
    keywords: Names,
    refused: transposition.Refused | None = None,
) -> tuple[Any, Any]:
    """A call by its reverse rule, as differentiated code sees it."""
    if transposition.nothing_enters(run, fn, ḟ, args, tangents):
        return split_call(fn, args, keywords), ZERO
    return transposition.transpose_call(run, fn, ḟ, args, tangents, keywords, refused)
