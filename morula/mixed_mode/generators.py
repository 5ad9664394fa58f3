"""Forward mode of generators: every step is a push of the function of its frame.

Tests: tests/mixed_mode/test_language.py
"""

from __future__ import annotations

import gc
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any
from weakref import WeakKeyDictionary

from morula.core import errors, generators
from morula.core.abandon import abandon
from morula.core.cotangents import ZERO, is_zero
from morula.core.registry import non_differentiable
from morula.mixed_mode.calls import Args, Names, compiled
from morula.mixed_mode.push import Both, push, pushes, split_call
from morula.mixed_mode.tangents import Pass, set_value, value_of
from morula.rules import generators as reverse
from morula.rules.calls import MISSING, entry, lookup, once

_steppers: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()


class Stepper:
    """What a generator's record resumes: a step, with the tangents of the frame and of what is sent."""

    __slots__ = ("frame", "run", "sent")

    def __init__(self, run: Pass, frame: Any) -> None:
        self.run = run
        self.frame = frame
        self.sent: Any = ZERO

    def __call__(self, record: Any, signal: Any) -> Any:
        """The next frame; its tangent is kept."""
        frame, record.frame = record.frame, None
        sent, self.sent = self.sent, ZERO
        y, self.frame = push(self.run, record.step, ZERO, (frame, signal), (self.frame, sent))
        return y


def stepper_of(run: Pass, x: Any) -> Any:
    """The stepper of a generator that was made in this pass, or None."""
    if type(x) in reverse.AWAITED:
        x = gc.get_referents(x)[0]
    if type(x) not in reverse.KINDS:
        return None
    return _steppers.get(x, {}).get(id(run))


def remember(run: Pass, x: Any, stepper: Any, record: Any) -> None:
    """Note the stepper and the record of a generator."""
    _steppers.setdefault(x, {})[id(run)] = stepper
    reverse.pushed[x] = record


non_differentiable(stepper_of, remember)


@pushes(generators.make_generator)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Both:
    steps, frame, *cells = args
    stepper = Stepper(run, tangents[1])
    record = generators.new_record(steps, frame, tuple(cells), stepper)
    y = generators.generator_of(record, steps)
    remember(run, y, stepper, record)
    return y, ZERO


def returned(run: Pass, stop: StopIteration, ẏ: Any) -> None:
    """A generator has returned a value with this tangent."""
    if not is_zero(ẏ):
        set_value(run, stop, "value", ẏ)
        set_value(run, stop, "args", (ẏ,))


def stepped(run: Pass, fn: Any, x: Any, rest: Args, sent: Any = ZERO) -> Both:
    """`fn(x, *rest)`, which makes the generator `x` take a step."""
    stepper = stepper_of(run, x)
    if type(x) in reverse.AWAITED and is_zero(sent):
        sent = value_of(run, x, reverse.SENT)
    stepper.sent = sent
    try:
        y = reverse.run_steps(fn, x, *rest)
    except StopIteration as stop:
        returned(run, stop, entry(stepper.frame, 1))
        raise
    return y, entry(stepper.frame, 1)


def _steps(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if fn.__name__ == "throw" and len(args) > 2:
            return push(run, reverse.throw_parts, ZERO, args, tangents)
        if keywords or stepper_of(run, args[0]) is None:
            return compiled(run, fn, ZERO, args, tangents, keywords)
        y, ẏ = stepped(run, fn, args[0], args[1:], (*tangents[1:], ZERO)[0])
        return y, ZERO if y is None else ẏ


for _kind in (GeneratorType, CoroutineType, *reverse.AWAITED):
    for _name in ("send", "throw", "close"):
        _steps(_kind.__dict__[_name])
del _kind, _name


def _awaited(fn: Any) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if reverse.any_record_of(args[0]) is None:
            return compiled(run, fn, ZERO, args, tangents, keywords)
        y = split_call(fn, args, keywords)
        set_value(run, y, reverse.SENT, (*tangents[1:], ZERO)[0])
        return y, ZERO


for _name in ("asend", "__anext__", "athrow", "aclose"):
    _awaited(AsyncGeneratorType.__dict__[_name])
del _name


@pushes(abandon)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    if not reverse.is_dropped(*args):
        return None, ZERO
    return push(run, type(args[0]).close, ZERO, args[:1], tangents[:1])


@pushes(anext)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    x, *default = args
    method = lookup(type(x), "__anext__")
    if method is MISSING:
        return anext(*args), ZERO  # raises
    fn = reverse.next_or if default else method
    return push(run, fn, ZERO, args, tangents)


@pushes(once)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    raise errors.UnsupportedError(
        f"{args[0]} in a derivative of a derivative cannot be differentiated yet"
    )


@pushes(reverse.run_steps)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    """Forward over reverse: how the steps are made is pushed in its turn."""
    fn, x, *values = args
    record = reverse.any_record_of(x)
    inner, sent = record.resume, (*tangents[2:], ZERO)[0]
    if type(x) in reverse.AWAITED and is_zero(sent):
        sent = value_of(run, x, reverse.SENT)
    frames: list[Any] = [ZERO]

    def resume_again(record: Any, signal: Any) -> Any:
        y, ẏ = push(run, inner, ZERO, (record, signal), (ZERO, sent))
        set_value(run, record, "frame", ẏ)
        frames.append(ẏ)
        return y

    record.resume = resume_again
    try:
        y = reverse.run_steps(fn, x, *values)
    except StopIteration as stop:
        returned(run, stop, entry(frames[-1], 1))
        raise
    finally:
        record.resume = inner
    ẏ = entry(frames[-1], 1)
    return y, (ZERO, ẏ) if fn is generators.delegate else ẏ


@pushes(reverse.as_raised)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return reverse.as_raised(*args), (ZERO, tangents[1])


@pushes(generators.received)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return split_call(generators.received, args, keywords), tangents[0]


@pushes(generators.delegate)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    return push(run, reverse.delegate_to_others, ZERO, args, tangents)
