"""The primitives of generators: a generator is a function of its frame, run from one yield to the next.

`step((number, value, *variables), signal)` goes on where the yield of that number stands, with what
its variables held there, and gives the next such frame. So a generator needs nothing of its own in
the transform: only the object that keeps the present frame.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Generator, Set
from inspect import CO_ITERABLE_COROUTINE
from types import CellType, CodeType, CoroutineType, FunctionType, GeneratorType, coroutine
from typing import Any

Frame = tuple[Any, ...]
FINISHED = -1  # in the place of the number of a yield: the generator has returned the value


class Thrown:
    """A signal that is an exception."""

    __slots__ = ("exception",)

    def __init__(self, exception: BaseException) -> None:
        self.exception = exception


def received(signal: Any) -> Any:
    """The value of `yield`: what was sent, unless an exception was thrown."""
    if type(signal) is Thrown:
        raise signal.exception
    return signal


def hand_over(item: Any) -> None:
    """A yield, in the body of a generator that is to become part of a loop; it is never called."""
    raise AssertionError(item)


class Steps:
    """The code `of` a generator function as one of frame and signal; its name, and its kind.

    `given` are the numbers of the yields whose values an asynchronous generator gives.
    """

    __slots__ = ("code", "given", "kind", "name", "namespace", "of", "qualname")

    def __init__(
        self,
        code: CodeType,
        namespace: dict[str, Any],
        of: CodeType,
        kind: str,
        given: Set[int],
    ) -> None:
        self.code = code
        self.namespace = namespace
        self.of = of
        self.name = of.co_name
        self.qualname = of.co_qualname
        self.kind = kind
        self.given = given


class Place:
    """Where a reverse pass is among the steps of a generator: that is in its adjoint object."""

    __slots__ = ()


class Record:
    """The frame of a running generator, and the pullbacks of the steps that it has made."""

    __slots__ = ("backs", "frame", "given", "place", "resume", "step")

    def __init__(
        self, step: FunctionType, frame: Frame, resume: Callable[..., Any], given: Set[int]
    ) -> None:
        self.step = step
        self.frame = frame
        self.resume = resume
        self.given = given
        self.backs: list[Callable[..., Any]] = []
        self.place = Place()


def plain_resume(record: Record, signal: Any) -> Frame:
    """One step, not differentiated."""
    frame: Frame = record.step(record.frame, signal)
    return frame


class Driving(threading.local):
    """Who looks on while a loop that is not differentiated drives coroutines, in this thread."""

    def __init__(self) -> None:
        self.observer: Callable[[Record, Any], Frame] | None = None


driving = Driving()


def make_step(record: Record, signal: Any) -> Frame:
    """The next step; within one, code that is differentiated drives what it awaits."""
    observer = driving.observer
    if observer is None:
        frame: Frame = record.resume(record, signal)
        return frame
    driving.observer = None
    try:
        return observer(record, signal)
    finally:
        driving.observer = observer


def observed(
    observer: Callable[[Record, Any], Frame], fn: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    """`fn(*args, **kwargs)`, a loop that drives coroutines; the observer makes their steps."""
    outer, driving.observer = driving.observer, observer
    try:
        return fn(*args, **kwargs)
    finally:
        driving.observer = outer


def drive(record: Record) -> Generator[Any, Any, Any]:
    """The generator itself: Python's own, so that all of its protocol is as it should be."""
    signal: Any = None
    while True:
        record.frame = make_step(record, signal)
        number, value = record.frame[:2]
        if number == FINISHED:
            return value
        try:
            signal = yield value
        except BaseException as error:
            signal = Thrown(error)


class Awaited:
    """What a coroutine awaits that makes the steps of another one."""

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        self.record = record

    def __await__(self) -> Generator[Any, Any, Any]:
        return drive(self.record)


async def drive_coroutine(record: Record) -> Any:
    """The same for a coroutine."""
    return await Awaited(record)


class Passed:
    """What an asynchronous generator passes on that it awaits something that yields this."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        return (yield self.value)


async def drive_asynchronous(record: Record) -> AsyncGenerator[Any, Any]:
    """The same for an asynchronous generator."""
    signal: Any = None
    while True:
        record.frame = make_step(record, signal)
        number, value = record.frame[:2]
        if number == FINISHED:
            return
        try:
            if number in record.given:
                signal = yield value
            else:
                signal = await Passed(value)
        except BaseException as error:
            signal = Thrown(error)


DRIVERS: dict[str, Callable[[Record], Any]] = {
    "generator": drive,
    "coroutine": drive_coroutine,
    "asynchronous generator": drive_asynchronous,
}


def same_code(fn: Callable[..., Any]) -> FunctionType:
    """A function that does the same, to be looked into where the other one is served."""
    assert isinstance(fn, FunctionType)
    return FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__)


DRIVERS["awaitable generator"] = coroutine(same_code(drive))


def make_generator(steps: Steps, frame: Frame, *cells: CellType) -> Any:
    """What calling a generator function gives: nothing has run yet."""
    return generator_of(new_record(steps, frame, cells, plain_resume), steps)


def new_record(
    steps: Steps, frame: Frame, cells: tuple[CellType, ...], resume: Callable[..., Any]
) -> Record:
    """A generator at its beginning."""
    return Record(new_step(steps, cells), frame, resume, steps.given)


def new_step(steps: Steps, cells: tuple[CellType, ...]) -> FunctionType:
    """The function that makes the steps."""
    return FunctionType(steps.code, steps.namespace, steps.name, None, cells or None)


def generator_of(record: Record, steps: Steps) -> Any:
    """The object that the user sees."""
    made = DRIVERS[steps.kind](record)
    made.__name__ = steps.name
    made.__qualname__ = steps.qualname
    return made


def delegate(receiver: Any, signal: Any) -> tuple[bool, Any]:
    """One step of `yield from` or `await`: has it returned, and what has it yielded or returned?"""
    try:
        return False, pass_on(receiver, signal)
    except StopIteration as stop:
        return True, stop.value


def pass_on(receiver: Any, signal: Any) -> Any:
    """What the generator that is delegated to yields next."""
    if signal is None:
        return send_nothing(receiver)
    if type(signal) is not Thrown:
        return receiver.send(signal)
    if isinstance(signal.exception, GeneratorExit):
        if hasattr(receiver, "close"):
            receiver.close()
        raise signal.exception
    if not hasattr(receiver, "throw"):
        raise signal.exception
    return receiver.throw(signal.exception)


def send_nothing(receiver: Any) -> Any:
    """The next item; a coroutine has no `__next__`."""
    return next(receiver) if hasattr(receiver, "__next__") else receiver.send(None)


def delegated_iterator(x: Any) -> Any:
    """What `yield from x` runs over."""
    return x if hasattr(x, "send") and hasattr(x, "throw") else iter(x)


def is_marked(x: Any) -> bool:
    """Is it a generator of a function that `types.coroutine` has marked?"""
    code = getattr(x, "gi_code", None) if type(x) is GeneratorType else None
    return code is not None and bool(code.co_flags & CO_ITERABLE_COROUTINE)


def awaitable(x: Any) -> Any:
    """What `await x` runs over."""
    if type(x) is CoroutineType or is_marked(x):
        return x
    method = getattr(type(x), "__await__", None)
    if method is None:
        raise TypeError(f"object {type(x).__name__} can't be used in 'await' expression")
    return method(x)
