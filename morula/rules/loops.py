"""Loops in bounded memory: `for i in checkpointed(range(n))`.

core/outline.py makes a function of the body, which is run here. The first time nothing is kept but a
few states; the reverse pass goes back step by step and runs forward again from the last state
before. Where states are kept is the binomial schedule (Griewank & Walther, Revolve, ACM Trans. Math.
Softw. 26(1), 2000): with s states, n steps are reversed with at most r runs of each, for

    n <= (s + r)! / (s! r!)

States, and how those of two runs are matched, are those of rules/checkpoints.py.
Tests: tests/rules/test_loops.py
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    NotSpecialised,
    UnsupportedError,
    accumulate,
    adjoint_object,
    call,
    called_whole,
    context,
    is_protected,
    is_zero,
    non_differentiable,
    project_to,
    rewrites,
    runs_loops,
)
from morula.rules.calls import entry, serves, together
from morula.rules.checkpoints import (
    Outcome,
    State,
    again_and_log,
    bring_back,
    contents_of,
    follow_written,
    has_changed,
    is_needed,
    is_nested,
    outcome_of,
    put_back,
    random_state,
    stand_in,
    state_of,
)


def checkpointed(iterable: Iterable[Any], slots: int | None = None) -> Iterable[Any]:
    """The iterable itself; a `for` loop over it is differentiated in bounded memory.

    The head of an ordinary loop: `for i in checkpointed(range(n)):`. Its body may do anything that
    can be differentiated, `break`, `continue`, `return`, inner loops, changes of arrays, lists and
    objects included. The reverse pass needs memory for the states of at most `slots` iterations (what
    they hand on to the next) and for what one iteration keeps, and runs iterations again: with s
    slots and r runs of each, (s + r)! / (s! r!) iterations. By default s is about log2 of their number.
    As with `checkpoint`, random numbers come again as they came, and effects on global variables happen
    more than once. In derivatives of derivatives it is an ordinary loop, of which all is kept.

    Args:
        iterable: a range, a list, a tuple, an array, or a zip, enumerate or reversed of these;
            `enumerate(checkpointed(x))` is the same as `checkpointed(enumerate(x))`.
        slots: how many states are kept at once, at least 1.
    Raises:
        ValueError: `slots` is less than 1.
        UnsupportedError: at a differentiated call, if it is not the head of a `for` statement,
            named as in `from morula import checkpointed` or `morula.checkpointed`, outside of `try`
            and `with`.

    >>> from morula import gradient
    >>> def decay(x):
    ...     for _ in checkpointed(range(1000), slots=5):
    ...         x = x - 0.001 * x * x
    ...     return x
    >>> gradient(decay, 1.0)
    (0.2498,)
    """
    check_slots(slots)
    return iterable


def check_slots(slots: int | None) -> None:
    """Is it a number of states?"""
    if slots is not None and (type(slots) is not int or slots < 1):
        raise ValueError(f"slots must be an int of at least 1, got {slots!r}")


called_whole(checkpointed)


@serves(checkpointed)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    raise UnsupportedError(
        "checkpointed is understood as the head of a loop: for x in checkpointed(...), by its own "
        "name, also within enumerate, zip and reversed, in a function that is no generator, outside "
        "of try and with, and not as an iterator that is passed on. Way out: put such a loop into a "
        "function of its own, or leave checkpointed away"
    )


@rewrites
def _(s: Any) -> bool:
    """Such loops go by the general path."""
    if any(c.primitive is checkpointed for c in s.ir.calls()):
        raise NotSpecialised("a checkpointed loop")
    return False


# -- running it ------------------------------------------------------------------------------------


@runs_loops(checkpointed)
def run_loop(
    body: FunctionType,
    carried: tuple[Any, ...],
    fixed: tuple[Any, ...],
    final: tuple[int | None, ...],
    head: Any,
    *args: Any,
    **kwargs: Any,
) -> tuple[int, tuple[Any, ...]]:
    """The way by which the loop is left, and the values of the variables that are read behind it."""
    return run_plainly(body, carried, fixed, final, head(*args, **kwargs))


called_whole(run_loop)


def run_ordinary(
    body: FunctionType,
    carried: tuple[Any, ...],
    fixed: tuple[Any, ...],
    final: tuple[int | None, ...],
    head: Any,
    *args: Any,
    **kwargs: Any,
) -> tuple[int, tuple[Any, ...]]:
    """The same of what turns out to be no head of loops."""
    return run_plainly(body, carried, fixed, final, head(*args, **kwargs))


def run_plainly(
    body: FunctionType,
    carried: tuple[Any, ...],
    fixed: tuple[Any, ...],
    final: tuple[int | None, ...],
    iterable: Any,
) -> tuple[int, tuple[Any, ...]]:
    """The loop, run as it stands."""
    for item in iterable:
        way, *values = body(*carried, *fixed, item)
        if way:
            return way, tuple(values)
        carried = tuple(values)
    return 0, values_at_end(carried, final)


def values_at_end(carried: tuple[Any, ...], final: tuple[int | None, ...]) -> tuple[Any, ...]:
    """The live variables when there are no more items."""
    return tuple([None if i is None else carried[i] for i in final])


class Plan:
    """The states that are kept, the last one on top, and what the reverse pass has to know."""

    def __init__(self, values: tuple[Any, ...], n: int, slots: int | None) -> None:
        self.values = values  # by which all that is mutable is reached
        self.n = n
        self.slots = max(1, math.ceil(math.log2(n + 1))) if slots is None else slots
        self.kept: list[Kept] = []
        self.steps = 0  # how many iterations the loop has had
        self.outcome: Any = None


class Kept:
    """The state before an iteration."""

    def __init__(self, step: int, state: State, carried: tuple[Any, ...]) -> None:
        self.step = step
        self.state = state
        self.carried = carried


@serves(run_loop)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    body, carried, fixed, final, head, *rest = args
    if head is not checkpointed:
        return call(run_ordinary, *args, **kwargs)
    signature(head).bind(*rest, **kwargs)
    names = (*("iterable", "slots")[: len(rest)], *kwargs)
    given = dict(zip(names, (*rest, *kwargs.values()), strict=True))
    iterable, slots = given["iterable"], given.get("slots")
    if is_nested():
        y, back = call(run_plainly, body, carried, fixed, final, iterable)

        def nested_pullback(ȳ: Any) -> tuple[Any, ...]:
            _, _, carried_bar, fixed_bar, _, of_items = back(ȳ)
            of_given = [of_items if name == "iterable" else NONE for name in names]
            return (NONE, NONE, carried_bar, fixed_bar, NONE, NONE, *of_given)

        return y, nested_pullback
    check_slots(slots)
    sequences = sequences_in(iterable)
    items, items_back = items_of(iterable)
    plan = begin(body, carried, (*fixed, *roots_of(items)), len(items), slots)
    way, values, state, step = 0, (), carried, 0
    due = next_due(plan, plan.kept, len(items))
    while step < len(items):
        if step == due:
            keep(plan, step, state)
            due = next_due(plan, plan.kept, len(items))
        try:
            way, *values = context.call_plainly(body, *state, *fixed, items[step])
        except Exception:
            if not (is_protected() and has_changed(plan.kept[0].state)):
                raise
            put_back(plan.kept[0].state)
            call(run_plainly, body, carried, fixed, final, items)  # raises it again
            raise
        step += 1
        if way:
            break
        state = tuple(values)
    check_sequences(sequences)
    y = (way, tuple(values) if way else values_at_end(state, final))
    finish(plan, step, tuple(values) if way else state)

    def run_loop_pullback(ȳ: Any) -> tuple[Any, ...]:
        v̄ = entry(ȳ, 1)
        if is_zero(v̄) and not is_needed(plan.outcome):
            return (ZERO,) * (1 + len(args) + len(kwargs))
        bars = [entry(v̄, i) for i in range(len(final))]
        if not way:
            bars = bars_of_carried(bars, final, len(carried))
        now = state_now(plan)
        try:
            carried_bar, fixed_bar, item_bars = back_through(plan, body, fixed, items, bars)
        finally:
            bring_back(now)
        of_items = NONE if items_back is None else items_back(together(item_bars))[1]
        of_given = [of_items if name == "iterable" else NONE for name in names]
        return (NONE, NONE, carried_bar, fixed_bar, NONE, NONE, *of_given)

    return y, run_loop_pullback


def back_through(plan: Plan, body: Any, fixed: tuple[Any, ...], items: Any, bars: list[Any]) -> Any:
    """The reverse pass: cotangents of the first state, of what is only read, and of the items."""
    fixed_bars: list[Any] = [ZERO] * len(fixed)
    item_bars: list[Any] = [ZERO] * plan.steps
    ahead, kept, step = plan.outcome, list(plan.kept), plan.steps
    while step:
        step -= 1
        while kept[-1].step > step:
            kept.pop()
        bring_back(kept[-1].state)
        at, state = kept[-1].step, kept[-1].carried
        due = next_due(plan, kept, step + 1)
        while at < step:
            _, *values = context.call_plainly(body, *state, *fixed, items[at])
            at, state = at + 1, tuple(values)
            if at in (step, due):
                kept.append(state_before(plan, at, state, at < step))
                due = next_due(plan, kept, step + 1)
        arguments = (*state, *fixed, items[step])
        out, back = again_and_log(plan.kept[0].state, body, arguments, {})
        stand_in(ahead, out[1:])
        _, *all_bars = back(project_to(out)((ZERO, *bars)))
        n = len(state)
        bars = all_bars[:n]
        fixed_bars = [accumulate(a, b) for a, b in zip(fixed_bars, all_bars[n:-1], strict=True)]
        item_bars[step] = all_bars[-1]
        ahead = outcome_at(plan, kept[-1])
    return together(bars), together(fixed_bars), item_bars


def bars_of_carried(bars: list[Any], final: tuple[int | None, ...], n: int) -> list[Any]:
    """The cotangents of the last state, from those of the live variables."""
    found: list[Any] = [ZERO] * n
    for i, c in zip(final, bars, strict=True):
        if i is not None:
            found[i] = accumulate(found[i], c)
    return found


# -- items and states ------------------------------------------------------------------------------


def items_of(iterable: Any) -> tuple[Sequence[Any], Any]:
    """The items, to be had more than once, and their pullback; none for numbers that only count."""
    return (iterable, None) if type(iterable) is range else call(tuple, iterable)


ITERATORS = (
    zip, enumerate, reversed,
    *[type(iter(x)) for x in ((), [], "", range(1), np.zeros(1))],
    *[type(reversed(x)) for x in ([], range(1))],
)  # fmt: skip


def sequences_in(iterable: Any) -> list[tuple[Any, Any]]:
    """The lists and arrays of numbers that are iterated over, with what they hold.

    An error for iterables whose items cannot all be taken before the loop begins.
    """
    if isinstance(iterable, list):
        return [(iterable, list(iterable))]
    if isinstance(iterable, np.ndarray):
        return [(iterable, iterable.copy())] if iterable.ndim == 1 else []
    if isinstance(iterable, (range, tuple, str)):
        return []
    if type(iterable) not in ITERATORS:
        raise UnsupportedError(
            f"checkpointed takes a range, a list, a tuple, an array, or a zip, enumerate or reversed "
            f"of these, not a {type(iterable).__name__}: make a list of it"
        )
    found = []
    for part in iterable.__reduce__()[1]:
        parts = part if type(part) is tuple else (part,)
        found += [pair for x in parts if np.iterable(x) for pair in sequences_in(x)]
    return found


def begin(
    body: Any, carried: tuple[Any, ...], held: tuple[Any, ...], n: int, slots: int | None
) -> Plan:
    """The plan of a loop, with the state that it begins with."""
    plan = Plan((body, *held), n, slots)
    plan.kept.append(Kept(0, state_of((*plan.values, *carried)), carried))
    return plan


def check_sequences(sequences: list[tuple[Any, Any]]) -> None:
    """An error if one of them was changed by the loop over it, which took its items beforehand."""
    for x, before in sequences:
        if isinstance(x, list):
            same = len(x) == len(before) and all(map(operator.is_, x, before))
        else:
            same = x.tobytes() == before.tobytes()
        if not same:
            raise UnsupportedError(
                f"a checkpointed loop over a {type(x).__name__} that the loop changes: loop over a "
                "copy of it"
            )


def roots_of(items: Sequence[Any]) -> list[Any]:
    """What is mutable among the items, each once."""
    if type(items) is range:
        return []
    found = State((items,), containers_only=True)
    arrays = [array for array, _ in found.arrays.values()]
    parts = [x for x, _ in found.parts.values() if adjoint_object(x) is not None]
    return [*parts, *arrays]


def keep(plan: Plan, step: int, carried: tuple[Any, ...]) -> None:
    """Keep the state before an iteration of the first run."""
    plan.kept.append(state_before(plan, step, carried, True))


def next_due(plan: Plan, kept: list[Kept], end: int) -> int:
    """Before which iteration to keep the next state, if those up to `end` are still to be reversed."""
    free = plan.slots - len(kept)
    return kept[-1].step + stride(end - kept[-1].step, free) if free > 0 else -1


def stride(n: int, free: int) -> int:
    """How far to run before the next of `free` states is kept, with n iterations to reverse."""
    r = 1
    while math.comb(free + 1 + r, r) < n:
        r += 1
    return min(max(1, math.comb(free + r, r - 1)), n - 1) if n > 1 else 1


def state_before(
    plan: Plan, step: int, carried: tuple[Any, ...], with_arrays: bool = False
) -> Kept:
    """The present state; with arrays, it can be brought back later."""
    values = (*plan.values, *carried)
    state = State(values, containers_only=True)
    state.arrays = (
        State(values, since=plan.kept[-1].state.arrays, skip=plan.kept[0].state.resting).arrays
        if with_arrays
        else {}
    )
    for key, (source, _) in plan.kept[0].state.sources.items():
        state.sources[key] = source, random_state(source)
    return Kept(step, state, carried)


def finish(plan: Plan, steps: int, values: tuple[Any, ...]) -> None:
    """The first run has ended with these values."""
    plan.steps = steps
    states = [kept.state for kept in plan.kept]
    written = follow_written(states)
    resting = {key: owner for state in states for key, owner in state.resting.items()}
    plan.outcome = outcome_of(states[0], values)
    plan.outcome.changed |= written
    states[0].resting = resting
    for state in states[1:]:
        state.sources = {key: state.sources[key] for key in states[0].sources}


def state_now(plan: Plan) -> State:
    """What everything holds when the reverse pass comes."""
    now = State(())
    for state in (plan.outcome.state, *[kept.state for kept in plan.kept]):
        for key, (x, _) in state.parts.items():
            now.parts[key] = x, contents_of(x) or {}
    for key, (source, _) in plan.kept[0].state.sources.items():
        now.sources[key] = source, random_state(source)
    return now


def outcome_at(plan: Plan, kept: Kept) -> Outcome:
    """A state, as what the iteration before it has left."""
    return Outcome(kept.carried, plan.outcome.held, kept.state)


non_differentiable(check_slots, sequences_in, check_sequences, roots_of)
