"""Rules of generators: making one, and the steps that it makes.

Every step is a call of an ordinary function of its frame (`core.generators`); the record of the
generator keeps their pullbacks, and its adjoint object the cotangent of the present frame. Steps
that compiled code has made are pulled back with those that differentiated code has made before them.
Tests: tests/rules/test_generators.py
"""

from collections.abc import Callable
from functools import partial
from types import CoroutineType, FunctionType, GeneratorType
from typing import Any
from weakref import WeakKeyDictionary

from morula.core.extend import (
    NONE,
    ZERO,
    NoTangent,
    Tangent,
    accumulate,
    adjoint_object,
    adjoint_of,
    attempted,
    call,
    collector,
    generators,
    is_zero,
    materialise,
    no_tangent,
    non_differentiable,
    on_entry,
    primitives,
    projector,
    protected,
    protection,
    rrule,
)
from morula.rules.calls import compiled, entry, once, serves
from morula.rules.numbers import Anything
from morula.rules.objects import take

_records: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def record_of(x: Any) -> Any:
    """The record of a generator that differentiated code has made, or None."""
    return _records.get(x) if type(x) in (GeneratorType, CoroutineType) else None


class Reversed:
    """The adjoint object of a record: the cotangent of the frame behind the steps that are left."""

    __slots__ = ("frame", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        self.frame: Any = ZERO


@adjoint_object.register
def _(record: generators.Record) -> Reversed:
    return Reversed(len(record.backs))


for _type in (GeneratorType, CoroutineType):
    adjoint_object.register(_type, lambda x: None)
    projector.register(_type, lambda x: lambda x̄: ZERO)
    collector.register(_type, lambda y: None)
    on_entry.register(_type, lambda x, known: x)
    materialise.register(_type, lambda x, x̄, of: None)
del _type
no_tangent(generators.Record)

# -- steps -----------------------------------------------------------------------------------------


def resume(record: Any, signal: Any) -> Any:
    """One step, whose pullback is kept."""
    frame, record.frame = record.frame, None
    how = attempted if protection.depth or type(signal) is generators.Thrown else call
    y, back = how(record.step, frame, signal)
    record.backs.append(back)
    if type(y) is protected.Raised:
        raise y.exception
    return y


def pull_steps(record: Any, first: int, ȳ: Any) -> Any:
    """Pull back the steps from the first on; ȳ is the cotangent of what the last one yielded.

    Gives the cotangent of what was sent to the first of them.
    """
    adjoint = adjoint_of(record)
    sent = ZERO
    while adjoint.left > first:
        adjoint.left -= 1
        c = adjoint.frame if is_zero(ȳ) else accumulate(adjoint.frame, Tangent[tuple]({1: ȳ}))
        _, adjoint.frame, sent = record.backs[adjoint.left](c)
        ȳ = ZERO
    return sent


class Steps:
    """The steps that a generator makes meanwhile; `pull_back` is their pullback."""

    __slots__ = ("first", "last", "record")

    def __init__(self, record: Any) -> None:
        self.record = record
        self.first = self.last = len(record.backs)

    def end(self) -> None:
        """No more steps are these."""
        self.last = len(self.record.backs)

    def pull_back(self, ȳ: Any) -> Any:
        """From the cotangent of what was yielded to that of what was sent."""
        if self.first == self.last:
            return ZERO
        pull_steps(self.record, self.last, ZERO)  # those that nobody else pulls back
        return pull_steps(self.record, self.first, ȳ)


def steps_of(x: Any, run: Callable[[], Any]) -> tuple[Any, Steps]:
    """What running something gives that lets the generator `x` make steps; and these."""
    steps = Steps(record_of(x))
    try:
        y = run()
    except BaseException as error:
        steps.end()
        if protection.depth:
            protection.strays.append((x, partial(pull_back_raising, steps, error)))
        raise
    steps.end()
    return y, steps


def remember(x: Any, record: Any) -> None:
    """Note the record of a generator."""
    _records[x] = record


def pull_back_raising(steps: Steps, error: BaseException, ȳ: Any) -> tuple[Any, ...]:
    """Pull back steps the last of which has raised an exception, if only because it was the last."""
    returned = ZERO
    if isinstance(error, StopIteration):
        bars = adjoint_of(error)
        returned = accumulate(take(bars, "value"), entry(take(bars, "args"), 0))
    return (steps.pull_back(returned),)


non_differentiable(record_of, remember)


@rrule(generators.make_generator, by_identity=True)
def _(steps: generators.Steps, frame: tuple, *cells: Any):
    once("a generator")
    record = generators.new_record(steps, frame, cells, resume)
    y = generators.generator_of(record, steps)
    remember(y, record)

    def make_generator_pullback(ȳ):
        pull_steps(record, 0, ZERO)
        adjoint = adjoint_of(record)
        frame_bar, adjoint.frame = adjoint.frame, ZERO
        return (NoTangent(), frame_bar, *[NoTangent()] * len(cells))

    return y, make_generator_pullback


@rrule(generators.received)
def _(signal: Anything):
    def received_pullback(ȳ):
        return (ȳ,)

    return generators.received(signal), received_pullback


# -- next, send, throw, close ----------------------------------------------------------------------


def next_of(x: Any) -> tuple[Any, Any]:
    """The next item of a recorded generator, or DONE; and the pullback of the step."""
    y, steps = steps_of(x, lambda: next(x, primitives.DONE))
    return y, steps.pull_back


@serves(GeneratorType.send, GeneratorType.throw, GeneratorType.close)
@serves(CoroutineType.send, CoroutineType.throw, CoroutineType.close)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, *values = args
    if record_of(x) is None:
        return compiled(fn, args, kwargs)
    y, steps = steps_of(x, lambda: fn(*args, **kwargs))

    def step_pullback(ȳ: Any) -> tuple[Any, ...]:
        sent = steps.pull_back(ȳ)
        return (NONE, ZERO, *[sent] * len(values[:1]), *[NONE] * len(values[1:]))

    return y, step_pullback


@serves(generators.delegate)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    receiver, signal = args
    if record_of(receiver) is None:
        return call(delegate_to_others, receiver, signal)
    both, steps = steps_of(receiver, lambda: generators.delegate(receiver, signal))

    def delegate_pullback(ȳ: Any) -> tuple[Any, ...]:
        return NONE, ZERO, steps.pull_back(entry(ȳ, 1))

    return both, delegate_pullback


delegate_to_others = FunctionType(
    generators.delegate.__code__, generators.delegate.__globals__, "delegate"
)
