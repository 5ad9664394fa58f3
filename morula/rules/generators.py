"""Rules of generators: making one, and the steps that it makes.

Every step is a call of an ordinary function of its frame (`core.generators`); the record of the
generator keeps their pullbacks, and its adjoint object the cotangent of the present frame. Steps
that compiled code has made are pulled back with those that differentiated code has made before them.
Tests: tests/rules/test_generators.py
"""

import gc
import math
from collections.abc import Callable
from functools import partial
from inspect import CO_GENERATOR
from types import AsyncGeneratorType, CoroutineType, GeneratorType, MethodDescriptorType
from typing import Any
from weakref import WeakKeyDictionary

from morula.core.extend import (
    NONE,
    ZERO,
    NoTangent,
    Tangent,
    abandon,
    accumulate,
    adjoint_object,
    adjoint_of,
    attempted,
    call,
    collector,
    general,
    generators,
    is_protected,
    is_zero,
    materialise,
    non_differentiable,
    on_entry,
    primitives,
    projector,
    protected,
    rrule,
    strays_here,
)
from morula.rules.calls import MISSING, compiled, entry, lookup, serves
from morula.rules.numbers import Anything
from morula.rules.objects import give, table_of, take

_records: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def record_of(x: Any) -> Any:
    """The record of a generator that differentiated code has made, or None.

    What `__anext__` and its like of an asynchronous generator give makes steps of that generator.
    """
    if type(x) in AWAITED:
        x = gc.get_referents(x)[0]
    return _records.get(x) if type(x) in KINDS else None


def any_record_of(x: Any) -> Any:
    """The same, also of a generator that was made in forward mode."""
    if type(x) in AWAITED:
        x = gc.get_referents(x)[0]
    return _records.get(x) or pushed.get(x)


pushed: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # the records of forward mode


def _awaited_types() -> set[type]:
    """The types of what `asend`, `athrow` and `aclose` of an asynchronous generator give."""

    async def nothing() -> Any:
        yield

    x = nothing()
    made: list[Any] = [x.asend(None), x.aclose()]
    for awaited in made:
        awaited.close()
    return {*map(type, made)}


AWAITED = _awaited_types()
KINDS = (GeneratorType, CoroutineType, AsyncGeneratorType)
SENT = "sent"  # in the table of what `asend` gives: the cotangent of what is sent


class Reversed:
    """Which steps of a generator are left to be pulled back, and the cotangent of the frame."""

    __slots__ = ("frame", "left")

    def __init__(self) -> None:
        self.left = math.inf
        self.frame: Any = ZERO


@adjoint_object.register
def _(place: generators.Place) -> Reversed:
    return Reversed()


for _type in AWAITED:
    adjoint_object.register(_type, lambda x: {})
for _type in KINDS:
    adjoint_object.register(_type, lambda x: None)
for _type in (*KINDS, *AWAITED):
    projector.register(_type, lambda x: lambda x̄: ZERO)
    collector.register(_type, lambda y, part: None)
    on_entry.register(_type, lambda x, known: x)
    materialise.register(_type, lambda x, x̄, of: None)
del _type

# -- steps -----------------------------------------------------------------------------------------


@serves(abandon)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    iterator, maker = args
    if not is_dropped(iterator, maker):
        return None, lambda ȳ: (NONE, NONE, NONE)
    _, back = call(type(iterator).close, iterator)

    def abandon_pullback(ȳ: Any) -> Any:
        back(ZERO)
        return NONE, NONE, NONE

    return None, abandon_pullback


def is_dropped(iterator: Any, maker: Any) -> bool:
    """Is it a generator that a call of a generator function has made just now?"""
    code = getattr(getattr(maker, "__func__", maker), "__code__", None)
    return (
        type(iterator) is GeneratorType and code is not None and code.co_flags & CO_GENERATOR != 0
    )


non_differentiable(is_dropped)


def resume(record: Any, signal: Any) -> Any:
    """One step, whose pullback is kept."""
    frame, record.frame = record.frame, None
    how = attempted if is_caught(signal) else call
    y, back = how(record.step, frame, signal)
    record.backs.append(back)
    return unless_raised(y)


def unless_raised(y: Any) -> Any:
    """The value of a step; the exception is raised that has left it."""
    if type(y) is protected.Raised:
        raise y.exception
    return y


def is_caught(signal: Any) -> bool:
    """May somebody handle an exception that the step raises, perhaps Python's own `close`?"""
    return is_protected() or type(signal) is generators.Thrown


def pull_steps(record: Any, first: int, ȳ: Any) -> Any:
    """Pull back the steps from the first on; ȳ is the cotangent of what the last one yielded.

    Gives the cotangent of what was sent to the first of them.
    """
    adjoint = adjoint_of(record.place)
    adjoint.left = min(adjoint.left, len(record.backs))
    sent = ZERO
    while adjoint.left > first:
        adjoint.left -= 1
        c = adjoint.frame if is_zero(ȳ) else accumulate(adjoint.frame, Tangent[tuple]({1: ȳ}))
        _, adjoint.frame, sent = record.backs[adjoint.left](c)
        ȳ = ZERO
    return sent


def give_returned(record: Any, ȳ: Any) -> None:
    """Add the cotangent of what a coroutine has returned."""
    if not is_zero(ȳ):
        adjoint = adjoint_of(record.place)
        adjoint.frame = accumulate(adjoint.frame, Tangent[tuple]({1: ȳ}))


class Steps:
    """The steps that a generator makes meanwhile; `pull_back` is their pullback."""

    __slots__ = ("first", "last", "record", "x")

    def __init__(self, x: Any) -> None:
        self.x = x
        self.record = record_of(x)
        self.first = self.last = len(self.record.backs)

    def end(self) -> None:
        """No more steps are these."""
        self.last = len(self.record.backs)

    def pull_back(self, ȳ: Any) -> Any:
        """From the cotangent of what was yielded to that of what was sent."""
        if self.first == self.last:
            return ZERO
        pull_steps(self.record, self.last, ZERO)  # those that nobody else pulls back
        return sent_by(self.x, pull_steps(self.record, self.first, ȳ))


def sent_by(x: Any, sent: Any) -> Any:
    """The cotangent of what was sent; what `asend` gives has it from the call of `asend`."""
    if type(x) in AWAITED:
        give(adjoint_of(x), SENT, sent)
        return ZERO
    return sent


def run_steps(fn: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """`fn(x, *args)`, which lets the generator `x` make steps."""
    return fn(x, *args, **kwargs)


@serves(run_steps, passing=True)
def _(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """In a derivative of a derivative: how the steps are made is differentiated in its turn."""
    fn, x, *values = args
    _, expected = general.how_called()
    record = any_record_of(x)
    inner, backs = record.resume, []
    strays = strays_here()
    first = len(strays)

    def resume_again(record: Any, signal: Any) -> Any:
        known = len(strays)
        how = attempted if is_caught(signal) else call
        y, back = how(inner, record, signal)
        del strays[known:]  # `backs` has what it did
        backs.append(back)
        return unless_raised(y)

    def pull_back(ȳ: Any) -> Any:
        sent = ZERO
        for i in reversed(range(len(backs))):
            c = take(table_of(record), "frame")
            c = c if is_zero(ȳ) else accumulate(c, Tangent[tuple]({1: ȳ}))
            ȳ = ZERO
            sent = sent_by(x, backs[i](c)[2])
        return sent

    record.resume = resume_again
    try:
        y = run_steps(fn, x, *values, **kwargs)
    except BaseException as error:
        if expected:
            return as_raised(error, partial(back_to, values, pull_back_raising, pull_back, error))
        strays.insert(first, (x, partial(pull_back_alone, pull_back, error)))
        raise
    finally:
        record.resume = inner

    def run_steps_pullback(ȳ: Any) -> tuple[Any, ...]:
        return back_to(values, pull_back, entry(ȳ, 1) if fn is generators.delegate else ȳ)

    return y, run_steps_pullback


def back_to(values: list[Any], pull_back: Any, *args: Any) -> tuple[Any, ...]:
    """The cotangents of a call of `run_steps`, from that of what was sent, the first of the values."""
    sent = pull_back(*args)
    return (NONE, NONE, ZERO, *[sent] * len(values[:1]), *[NONE] * len(values[1:]))


def steps_of(
    fn: Any, x: Any, *args: Any, expected: bool = False, **kwargs: Any
) -> tuple[Any, Callable[[Any], Any]]:
    """What `fn(x, *args)` gives, and the pullback of the steps that it lets the generator `x` make.

    It gives the cotangent of what was sent. Where `Raised` is expected, an exception is that.
    """
    steps = Steps(x)
    try:
        y = run_steps(fn, x, *args, **kwargs)
    except BaseException as error:
        steps.end()
        if expected:
            return as_raised(error, partial(pull_back_raising, steps.pull_back, error))
        if is_protected():
            strays_here().append((x, partial(pull_back_alone, steps.pull_back, error)))
        raise
    steps.end()
    return y, steps.pull_back


def as_raised(error: BaseException, back: Any) -> tuple[Any, Any]:
    """An exception as a value, with its pullback: alone it would be taken for one that was raised."""
    return protected.Raised(error), back


@serves(as_raised)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return as_raised(*args), lambda ȳ: (NONE, ZERO, entry(ȳ, 1))


def remember(x: Any, record: Any) -> None:
    """Note the record of a generator."""
    _records[x] = record


def pull_back_raising(pull_back: Any, error: BaseException, ȳ: Any) -> Any:
    """Pull back steps the last of which has raised an exception, if only because it was the last."""
    returned = ZERO
    if isinstance(error, StopIteration):
        bars = adjoint_of(error)
        returned = accumulate(take(bars, "value"), entry(take(bars, "args"), 0))
    return pull_back(returned)


def pull_back_alone(pull_back: Any, error: BaseException, ȳ: Any) -> tuple[Any, ...]:
    """The same for steps whose caller does not pull them back."""
    return (pull_back_raising(pull_back, error, ȳ),)


non_differentiable(record_of, any_record_of, remember, generators.generator_of, generators.new_step)


@rrule(generators.make_generator, by_identity=True)
def _(steps: generators.Steps, frame: tuple, *cells: Any):
    record = generators.new_record(steps, frame, cells, resume)
    y = generators.generator_of(record, steps)
    remember(y, record)

    def make_generator_pullback(ȳ):
        pull_steps(record, 0, ZERO)
        adjoint = adjoint_of(record.place)
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
    return steps_of(next, x, primitives.DONE)


@serves(GeneratorType.send, GeneratorType.throw, GeneratorType.close, passing=True)
@serves(CoroutineType.send, CoroutineType.throw, CoroutineType.close, passing=True)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, *values = args
    if fn.__name__ == "throw" and len(values) > 1:
        return call(throw_parts, *args)
    _, expected = general.how_called()
    if record_of(x) is None:
        return compiled(fn, args, kwargs)
    y, pull_back = steps_of(fn, *args, expected=expected, **kwargs)

    def step_pullback(ȳ: Any) -> tuple[Any, ...]:
        sent = pull_back(ȳ)
        return (NONE, ZERO, *[sent] * len(values[:1]), *[NONE] * len(values[1:]))

    return y, step_pullback


def throw_parts(x: Any, kind: Any, value: Any, traceback: Any = None) -> Any:
    """`x.throw(kind, value, traceback)`, the way of Python 2."""
    if isinstance(value, kind):
        error = value
    elif value is None:
        error = kind()
    else:
        error = kind(*value) if isinstance(value, tuple) else kind(value)
    return x.throw(error if traceback is None else error.with_traceback(traceback))


@serves(AsyncGeneratorType.asend, AsyncGeneratorType.__anext__)
@serves(AsyncGeneratorType.athrow, AsyncGeneratorType.aclose)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if any_record_of(args[0]) is None:
        return compiled(fn, args, kwargs)
    y = fn(*args, **kwargs)

    def asend_pullback(ȳ: Any) -> tuple[Any, ...]:
        sent = take(adjoint_of(y), SENT)
        values = [sent, *[NONE] * len(args[2:])]
        return (NONE, ZERO, *values[: len(args) - 1])

    return y, asend_pullback


@serves(anext)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, *default = args
    method = lookup(type(x), "__anext__")
    if method is MISSING:
        return anext(*args), None  # raises
    if default:
        return call(next_or, x, *default)
    y, back = call(method, x)
    return y, lambda ȳ: (NONE, *back(ȳ)[1:])


async def next_or(x: Any, default: Any) -> Any:
    """What `anext(x, default)` gives when it is awaited."""
    try:
        return await anext(x)
    except StopAsyncIteration:
        return default


@serves(generators.delegate, passing=True)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    receiver, signal = args
    _, expected = general.how_called()
    for rule in _delegations:
        found = rule(receiver, signal)
        if found is not None:
            return found
    if record_of(receiver) is None:
        if is_compiled(receiver):  # what it returns comes with an exception that it makes itself
            return compiled(fn, args, kwargs)
        return call(delegate_to_others, receiver, signal)
    both, pull_back = steps_of(generators.delegate, receiver, signal, expected=expected)

    def delegate_pullback(ȳ: Any) -> tuple[Any, ...]:
        return NONE, ZERO, pull_back(entry(ȳ, 1))

    return both, delegate_pullback


def is_compiled(receiver: Any) -> bool:
    """Is it a generator, a coroutine or the like, that no code of a user's drives?"""
    return type(lookup(type(receiver), "send")) is MethodDescriptorType


non_differentiable(is_compiled)

delegate_to_others = generators.same_code(generators.delegate)

Delegation = Callable[[Any, Any], Any]
_delegations: list[Delegation] = []


def delegating(rule: Delegation) -> Delegation:
    """Register what one step of delegating to something means: rule(receiver, signal), or None."""
    _delegations.append(rule)
    return rule
