"""Recomputing in the place of keeping: `checkpoint`.

A function that is run again must find what it found the first time: the contents of whatever is
mutable among its arguments and captured variables, and the random numbers. Both are in a `State`,
which is taken before the first run and brought back for the second. What the second run makes has
other identities than what the first made; where adjoint objects are found by identity, the one
stands for the other. That both runs gave the same is checked.
Tests: tests/rules/test_checkpoints.py
"""

from __future__ import annotations

import io
import numbers
import operator
import random
import sys
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    DifferentiationError,
    NotSpecialised,
    UnsupportedError,
    adjoint_if_any,
    adjoint_object,
    call,
    called_whole,
    context,
    is_protected,
    is_reached,
    is_zero,
    memory,
    non_differentiable,
    parts_of,
    project_to,
    rewrites,
    rrule,
    writes_to_given,
)
from morula.rules.arrays.inplace import note, undo
from morula.rules.arrays.memory import give, is_followed, owner_of, take
from morula.rules.caches import is_same
from morula.rules.calls import MISSING, serves
from morula.rules.objects import slots_of


def checkpoint(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`f(*args, **kwargs)`, of which nothing is kept for the reverse pass: it runs `f` once more.

    So memory is needed for the arguments and the result only. For the second run, lists, dicts,
    objects and captured variables are as they were, and random numbers come anew as they came:
    those of `random`, of NumPy's and PyTorch's global states, and of generators that are captured,
    global variables of the function, or among the arguments. After it all of them are as before it.
    Other effects happen twice: what is printed, and what is done to global variables. In derivatives
    of derivatives it is an ordinary call, of which all is kept.

    Raises:
        DifferentiationError: the second run gave another result than the first.
        UnsupportedError: `f` takes items from an iterator that it was given, or returns one.

    >>> from morula import gradient
    >>> gradient(lambda x: checkpoint(lambda y: y * y * x, x + 1.0), 2.0)
    (21.0,)
    """
    return f(*args, **kwargs)


called_whole(checkpoint)


@serves(checkpoint)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    f, *rest = args
    if is_nested():
        y, back = call(f, *rest, **kwargs)
        return y, lambda ȳ: (NONE, *back(ȳ))
    before = state_of((f, rest, kwargs))
    try:
        y = context.call_plainly(f, *rest, **kwargs)
    except Exception:
        if not (is_protected() and has_changed(before)):
            raise
        put_back(before)
        call(f, *rest, **kwargs)  # what it changes before it raises the exception again counts
        raise
    after = outcome_of(before, y)

    def checkpoint_pullback(ȳ: Any) -> tuple[Any, ...]:
        if is_zero(ȳ) and not is_needed(after):
            return (NONE, *[ZERO] * (len(args) + len(kwargs)))
        now = begin_again(before)
        by_value = memory.present() is None  # in a compiled program
        if by_value:
            memory.follow({})
        try:
            again, back = again_and_log(before, f, rest, kwargs)
            stand_in(after, again)
            return (NONE, *back(project_to(again)(ȳ)))
        finally:  # after an exception too, which may be an interrupt
            bring_back(now)
            if by_value:
                memory.follow(None)

    return y, checkpoint_pullback


@rewrites
def _(s: Any) -> bool:
    """Functions that write to arrays they are given go by the general path, which follows memory."""
    for c in s.ir.calls():
        if c.primitive is not checkpoint or not c.args:
            continue
        if any(map(s.may_reach_arrays, c.operands())) and writes_to_given(s, c.args[0]):
            raise NotSpecialised("a checkpointed function writes to what it is given")
    return False


def is_nested() -> bool:
    """Is the rule that asks differentiated itself?"""
    return False


@rrule(is_nested)
def _():
    def is_nested_pullback(ȳ):
        return ()

    return True, is_nested_pullback


# -- what a run can change -------------------------------------------------------------------------


def contents_of(x: Any) -> dict[Any, Any] | None:
    """What a value holds that a run may change, by key; None: nothing."""
    return dict(enumerate(x)) if isinstance(x, deque) else parts_of(x)


class State:
    """The contents of what is mutable within some values, and the states of random numbers.

    `arrays` are those that own the memory of arrays that can be written to, with copies: until the
    first run has ended, then of those only that it has written to. A copy that is in `since` and
    still right is shared, those in `skip` are left out. With `containers_only` there are no copies
    and no random numbers.
    """

    def __init__(
        self,
        values: tuple[Any, ...],
        containers_only: bool = False,
        since: dict[int, tuple[Any, Any]] | None = None,
        skip: Collection[int] = (),
    ) -> None:
        self.values = values
        self.containers_only = containers_only
        self.since = since or {}
        self.skip = skip
        self.parts: dict[int, tuple[Any, dict[Any, Any]]] = {}
        self.iterators: list[Any] = []
        self.arrays: dict[int, tuple[Any, Any]] = {}
        self.resting: dict[int, Any] = {}  # arrays that were not written to
        self.sources: dict[int, tuple[Any, Any]] = {}
        self.add(values)

    def add(self, values: tuple[Any, ...]) -> None:
        """Take what can be reached from these values, and was not reached before."""
        seen: set[int] = set()
        waiting = list(values)
        while waiting:
            x = waiting.pop()
            if id(x) in seen or id(x) in self.parts:
                continue
            seen.add(id(x))
            is_source = source_of(x) is not None
            parts = None if is_source or isinstance(x, np.ndarray) else contents_of(x)
            if parts is not None:
                self.parts[id(x)] = x, parts
                waiting += parts.values()
            elif hasattr(type(x), "__next__") and not isinstance(x, io.IOBase):
                self.iterators.append(x)
            elif isinstance(x, np.ndarray):
                self.add_memory(owner_of(x))
            if self.containers_only:
                continue
            if is_source:
                self.sources[id(x)] = x, random_state(x)
            elif isinstance(x, FunctionType):
                waiting += globals_of_interest(x)

    def add_memory(self, owner: Any) -> None:
        """Take the contents of an array that owns its memory."""
        if id(owner) in self.arrays or id(owner) in self.skip or not owner.flags.writeable:
            return
        copy = self.since.get(id(owner), (owner, None))[1]
        if not self.containers_only and (copy is None or is_written(owner, copy)):
            copy = owner.copy()
        self.arrays[id(owner)] = owner, copy


def is_written(owner: Any, copy: Any) -> bool:
    """Does an array hold something else than its copy?"""
    return owner.shape != copy.shape or np.ndarray.tobytes(owner) != np.ndarray.tobytes(copy)


class Source(NamedTuple):
    """A kind of random numbers: how its state is told and set, and which all functions share."""

    type: type
    state: Callable[[Any], Any]
    set_state: Callable[[Any, Any], None]
    shared: Callable[[], Sequence[Any]] = tuple


def set_state_of_bits(bits: Any, state: Any) -> None:
    """Bring a bit generator of NumPy's back to a state."""
    bits.state = state


sources = [
    Source(
        np.random.Generator,
        lambda x: x.bit_generator.state,
        lambda x, state: set_state_of_bits(x.bit_generator, state),
    ),
    Source(np.random.BitGenerator, lambda x: x.state, set_state_of_bits),
    Source(
        np.random.RandomState,
        np.random.RandomState.get_state,
        np.random.RandomState.set_state,
        lambda: (np.random.mtrand._rand,),
    ),
    Source(random.SystemRandom, lambda x: None, lambda x, state: None),
    Source(random.Random, random.Random.getstate, random.Random.setstate, lambda: (random._inst,)),
]  # libraries that are met later add theirs


def source_of(x: Any) -> Source | None:
    """What kind of random numbers it gives, if it does."""
    for source in sources:
        if isinstance(x, source.type):
            return source
    return None


def shared_sources() -> list[Any]:
    """The random numbers that functions draw from without naming them."""
    return [x for source in sources for x in source.shared()]


def random_state(x: Any) -> Any:
    """The state of a source of random numbers; None: it has none that can be brought back."""
    source = source_of(x)
    return None if source is None else source.state(x)


def set_random_state(x: Any, state: Any) -> None:
    """Bring a source of random numbers back to a state."""
    source = source_of(x)
    if source is not None:
        source.set_state(x, state)


def globals_of_interest(fn: FunctionType) -> list[Any]:
    """The functions of the user's and the random numbers among the global variables of a function."""
    if str(fn.__module__).split(".")[0] in {*sys.stdlib_module_names, "numpy", "scipy", "morula"}:
        return []
    found = [fn.__globals__.get(name) for name in names_in(fn.__code__)]
    return [x for x in found if isinstance(x, FunctionType) or source_of(x) is not None]


def names_in(code: CodeType) -> set[str]:
    """The names of global variables in a code object and those inside it."""
    inside = [c for c in code.co_consts if isinstance(c, CodeType)]
    return {*code.co_names}.union(*[names_in(c) for c in inside])


def state_of(values: tuple[Any, ...]) -> State:
    """The present state of what can be reached from these values, and of all random numbers."""
    state = State((*values, *shared_sources()))
    if state.iterators:
        raise runs_once(state.iterators[0], "takes items from")
    return state


def runs_once(x: Any, what: str) -> UnsupportedError:
    """The error for a function that cannot be run again because of an iterator."""
    return UnsupportedError(
        f"a checkpointed function that {what} a {type(x).__name__}, which cannot be done a second "
        "time: use a list"
    )


@dataclass
class Outcome:
    """What a run has left: its result, and the contents of what it may have changed."""

    y: Any
    held: list[Any]  # what was there before
    state: State
    changed: bool = False  # is something changed that was there?

    def parts(self, x: Any) -> Any:
        """What a value held after the run."""
        found = self.state.parts.get(id(x))
        return contents_of(x) if found is None else found[1]


def is_changed(x: Any, parts: dict[Any, Any]) -> bool:
    """Does a value hold something else now?"""
    now = contents_of(x) or {}
    return list(now) != list(parts) or any(now[k] is not part for k, part in parts.items())


def outcome_of(before: State, y: Any) -> Outcome:
    """What the first run has left; `before` keeps what the second one needs."""
    written = follow_written([before])
    for key, (source, state) in list(before.sources.items()):
        if same_state(random_state(source), state):
            del before.sources[key]
    after = State((*before.values, y), containers_only=True)
    if after.iterators:
        raise runs_once(after.iterators[0], "makes")
    held = [x for x, _ in before.parts.values()]
    changed = any(is_changed(x, parts) for x, parts in before.parts.values()) or written
    return Outcome(y, held, after, changed)


def follow_written(states: list[State]) -> bool:
    """Let reverse passes follow the memory that was written to since; other copies go.

    Was there any?
    """
    written = {
        key: owner
        for state in states
        for key, (owner, copy) in state.arrays.items()
        if is_written(owner, copy)
    }
    for owner in written.values():
        note(owner)
    for state in states:
        state.resting = {k: owner for k, (owner, _) in state.arrays.items() if k not in written}
        state.arrays = {key: pair for key, pair in state.arrays.items() if key in written}
    return bool(written)


def same_state(a: Any, b: Any) -> bool:
    """Are two states of random numbers the same?"""
    try:
        return bool(a == b)
    except ValueError:  # there are arrays in them
        pass
    if isinstance(a, dict):
        return all(same_state(a[k], b[k]) for k in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same_state, a, b))
    return bool(np.all(a == b))


def is_needed(after: Outcome) -> bool:
    """May a cotangent have reached what the function has made or changed?"""
    return (
        after.changed
        or any(is_reached(x) for x, _ in after.state.parts.values())
        or any(is_followed(owner) for owner, _ in after.state.arrays.values())
    )


# -- the second run --------------------------------------------------------------------------------


def begin_again(before: State) -> State:
    """Bring a state back; gives the present one of the same values."""
    now = State(())
    for key, (x, _) in before.parts.items():
        now.parts[key] = x, contents_of(x) or {}
    for key, (source, _) in before.sources.items():
        now.sources[key] = source, random_state(source)
    bring_back(before)
    return now


def bring_back(state: State) -> None:
    """All values hold again what they held in this state."""
    set_all(state, lambda owner, copy: undo(owner, ..., copy))


def has_changed(state: State) -> bool:
    """Does a value hold something else than in this state, or an array, after a run?"""
    return any(is_changed(x, parts) for x, parts in state.parts.values()) or any(
        is_written(owner, copy) for owner, copy in state.arrays.values()
    )


def put_back(state: State) -> None:
    """`bring_back` where no reverse pass goes on: what was written to stays as it is put back."""
    set_all(state, lambda owner, copy: operator.setitem(owner, ..., copy))


def set_all(state: State, write: Callable[[Any, Any], Any]) -> None:
    """Values hold what they held in this state, arrays by writing to them."""
    for x, parts in state.parts.values():
        if is_changed(x, parts):
            refill(x, parts)
    for owner, copy in state.arrays.values():
        if is_written(owner, copy):
            write(owner, copy)
    for source, of_source in state.sources.values():
        set_random_state(source, of_source)


def refill(x: Any, parts: dict[Any, Any]) -> None:
    """Let a mutable value hold these parts, and no others."""
    if isinstance(x, list):
        list.__setitem__(x, slice(None), list(parts.values()))
    elif isinstance(x, deque):
        x.clear()
        x.extend(parts.values())
    elif isinstance(x, set):
        x.clear()
        x.update(parts.values())
    elif isinstance(x, dict):
        dict.clear(x)
        dict.update(x, parts)
    elif isinstance(x, CellType):
        if parts:
            x.cell_contents = parts["value"]
        else:
            del x.cell_contents
    else:
        refill_object(x, parts)


def refill_object(x: Any, parts: dict[str, Any]) -> None:
    """Let an object have these attributes, and no others."""
    slots = slots_of(type(x))
    for name in slots:
        if parts[name] is not MISSING:
            object.__setattr__(x, name, parts[name])
        elif hasattr(x, name):
            object.__delattr__(x, name)
    if type(x).__dictoffset__:
        x.__dict__.clear()
        x.__dict__.update({k: v for k, v in parts.items() if k not in slots})


def stand_in(after: Outcome, again: Any) -> None:
    """Let what the second run has made stand for what the first has made.

    The cotangents of arrays that it has written to are kept beside them from now on.
    """
    same = [(x, x) for x in after.held]
    for old, new in pairs_of(after, [(after.y, again), *same]):
        if not isinstance(old, np.ndarray):
            context.share_adjoint(old, new)
            same.append((old, new))
        elif is_followed(old) and not is_zero(x̄ := take(old)):
            note(new)
            give(new, x̄)
    for _, x in same if memory.in_memory() else ():
        settle(adjoint_if_any(x), contents_of(x) or {})


def settle(adjoint: Any, parts: dict[Any, Any]) -> None:
    """Bring cotangents of a container's parts, that have come by value, to beside their memory."""
    if isinstance(adjoint, list):
        for i, c in enumerate(adjoint):
            adjoint[i] = project_to(parts[i])(c) if i in parts else c
    elif isinstance(adjoint, dict):
        for key in [key for key in adjoint if key in parts]:
            adjoint[key] = project_to(parts[key])(adjoint[key])
    elif adjoint is not None and "value" in parts:  # that of a cell
        adjoint.cotangent = project_to(parts["value"])(adjoint.cotangent)


def again_and_log(before: State, run: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A differentiated run, in which no array is written to that the first run seemed to let rest."""
    log = memory.begin_log()
    try:
        found = call(run, *args, **kwargs)
    finally:
        written = memory.end_log(log)
    if any(key in before.resting for key in written):
        raise UnsupportedError(
            "a checkpointed function or loop writes to an array, which then holds again what it held "
            "before: make the array in it"
        )
    return found


def pairs_of(after: Outcome, waiting: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The mutable values of the first run with those of the second that stand in the same places."""
    found: list[tuple[Any, Any]] = []
    seen: dict[int, Any] = {}
    while waiting:
        old, new = waiting.pop()
        if id(old) in seen:
            if seen[id(old)] is not new:
                raise differs(old, new)
            continue
        parts = None if isinstance(old, np.ndarray) else after.parts(old)
        if parts is None:
            check_same(old, new)
            if old is not new and isinstance(old, np.ndarray):
                seen[id(old)] = new
                found.append((old, new))
            continue
        now = contents_of(new)
        if type(old) is not type(new) or now is None or list(parts) != list(now):
            raise differs(old, new)
        seen[id(old)] = new
        if old is not new and adjoint_object(old) is not None:
            found.append((old, new))
        waiting += [(part, now[key]) for key, part in parts.items()]
    return found


def check_same(old: Any, new: Any) -> None:
    """An error if what has no parts is not the same in both runs."""
    if old is new:
        return
    if type(old) is not type(new):
        raise differs(old, new)
    values = (str, bytes, numbers.Number, np.ndarray, np.generic)
    if isinstance(old, values) and not is_same(old, new):
        raise differs(old, new)


def differs(old: Any, new: Any) -> DifferentiationError:
    """The error if the second run gave something else."""
    return DifferentiationError(
        f"a checkpointed function gave another result when it was run again: {short(new)} in the "
        f"place of {short(old)}. It depends on something that is neither an argument, a captured "
        "variable nor a known source of random numbers"
    )


def short(x: Any) -> str:
    """A value as it stands in a message."""
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


non_differentiable(state_of, outcome_of, is_needed, begin_again, bring_back, stand_in)
