"""Several runs of a function that count as one: each finds what the first has found.

A Jacobian takes a run for each of its columns. What the function changes (its arguments, what it
captures, the states of random numbers) is brought back before each run, and in the end is what one
run leaves; but counters and logs without numbers other than integers have counted all runs. Within
code that is differentiated itself, random numbers are brought back; other changes are refused there,
for cotangents go by the objects that are changed.
Tests: tests/mixed_mode/test_repetition.py
"""

from __future__ import annotations

from typing import Any

from morula.core import errors
from morula.core.registry import non_differentiable
from morula.rules.checkpoints import (
    State,
    is_changed,
    is_written,
    put_back,
    random_state,
    same_state,
    shared_sources,
)


class Repetition:
    """What the runs of a function find, and what the first of them has left."""

    def __init__(self, values: tuple[Any, ...], is_nested: bool) -> None:
        self.is_nested = is_nested
        self.before = State((*values, *shared_sources()))
        self.after: State | None = None  # before the second run: if the first has changed anything
        self.runs = 0

    def changed_parts(self) -> list[tuple[Any, list[Any]]]:
        """The mutable values that a run has changed, with the keys of what is another now."""
        found = []
        for x, parts in self.before.parts.values():
            if is_changed(x, parts):
                now = parts_now(x)
                found.append((x, [k for k in now if now[k] is not parts.get(k, now)]))
        return found

    def written_arrays(self) -> list[Any]:
        """The arrays that a run has written to."""
        return [owner for owner, copy in self.before.arrays.values() if is_written(owner, copy)]

    def drew(self) -> bool:
        """Has a run drawn random numbers?"""
        sources = self.before.sources.values()
        return not all(same_state(random_state(x), state) for x, state in sources)


def repetition(values: tuple[Any, ...], is_nested: bool) -> Repetition:
    """Made before the first run of a function that is reached by these values."""
    return Repetition(values, is_nested)


def begin(repeated: Repetition) -> None:
    """Before a run."""
    if repeated.runs == 1:
        settle(repeated)
    if repeated.after is not None:
        put_back(repeated.before)


def end(repeated: Repetition) -> None:
    """After a run, whether it has raised an exception or not."""
    repeated.runs += 1
    after = repeated.after
    if after is not None:
        for key, (x, parts) in repeated.before.parts.items():
            if is_changed(x, parts):
                counted = with_counts(x, parts, after.parts[key][1])
                after.parts[key] = x, counted
        put_back(after)


def settle(repeated: Repetition) -> None:
    """Take what the first run has left, if it has changed anything."""
    changed = [x for x, _ in repeated.changed_parts()] + repeated.written_arrays()
    if changed and repeated.is_nested:
        raise changed_in_repetition(changed[0])
    if changed or repeated.drew():
        before = repeated.before
        held = (*[x for x, _ in before.parts.values()], *[x for x, _ in before.arrays.values()])
        repeated.after = State((*before.values, *held))


def parts_now(x: Any) -> dict[Any, Any]:
    """What a mutable value holds."""
    return State((x,), containers_only=True).parts[id(x)][1]


def with_counts(x: Any, before: dict[Any, Any], so_far: dict[Any, Any]) -> dict[Any, Any]:
    """What earlier runs have left in a value, with what a further one has counted or logged."""
    now = parts_now(x)
    if isinstance(x, list):
        added = list(now.values())[len(before) :]
        is_log = all(now.get(k) is part for k, part in before.items())
        if is_log and all(isinstance(part, COUNTED) for part in added):
            return dict(enumerate([*so_far.values(), *added]))
    steps = {
        k: now[k] - part for k, part in before.items() if type(part) is type(now.get(k)) is int
    }
    return {k: part + steps[k] if k in steps else part for k, part in so_far.items()}


COUNTED = (int, str, type(None))


def changed_in_repetition(x: Any) -> errors.UnsupportedError:
    """The error for a change that would have to be taken back within differentiated code."""
    return errors.UnsupportedError(
        f"a function that is run several times for its derivatives changes a {type(x).__name__}, in "
        "code that is differentiated: let it work on a copy"
    )


non_differentiable(repetition, begin, end)
