"""A generator function -> a function that makes the generator, and its steps.

The body is lowered to one function of frame and signal. It begins with a jump to where the frame
says; there, a variable that is read is an item of the frame, and then that yield keeps it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Hashable
from functools import partial
from types import CodeType
from typing import Any

from morula.core import generators
from morula.core.bytecode.lower import MAKERS, Lowering, derive, lowers
from morula.core.emit import tidy
from morula.core.errors import UnsupportedError
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, count_of_parameters
from morula.core.primitives import (
    DONE,
    UNDEFINED,
    advance,
    build_list,
    build_tuple,
    list_append,
    own_keywords,
)
from morula.core.simplify import is_trusted, simplify_rule

_KIND = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_HEAD = 2  # the number of the yield and its value stand before the variables in a frame


def lower_generator(code: CodeType, namespace: dict[str, Any]) -> IR | None:
    """The SSA form of a generator function, which only makes the generator."""
    if not code.co_flags & _KIND:
        return None
    ir = IR(code.co_qualname, code.co_filename)
    entry = ir.block()
    entry.params = [ir.var(name) for name in code.co_varnames[: count_of_parameters(code)]]
    ir.free = [ir.var(name) for name in code.co_freevars]
    frame, made = ir.var("frame"), ir.var()
    start: list[Operand] = [Const(0), Const(None), *entry.params]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords = start[-1] = ir.var(entry.params[-1].name)
        entry.calls.append(Call(keywords, Const(own_keywords), entry.params[-1:]))
    given: set[int] = set()
    body = derive(code, namespace, partial(_Steps, given=given), _LIKE)
    steps = generators.Steps(body, namespace, code, kind_of(code), given)
    entry.calls += [
        Call(frame, Const(build_tuple), start),
        Call(made, Const(generators.make_generator), (Const(steps), frame, *ir.free)),
    ]
    entry.branches = [Branch(None, [made])]
    return ir


MAKERS.append(lower_generator)


def kind_of(code: CodeType) -> str:
    """What calling a function with this code gives."""
    if code.co_flags & inspect.CO_ASYNC_GENERATOR:
        return "asynchronous generator"
    if code.co_flags & inspect.CO_ITERABLE_COROUTINE:
        return "awaitable generator"
    return "coroutine" if code.co_flags & inspect.CO_COROUTINE else "generator"


_LIKE = (lambda frame, signal: None).__code__


class _Steps(Lowering):
    """The body of a generator as a function of frame and signal.

    `given` will hold the numbers of the yields of an asynchronous generator; at all others it awaits.
    """

    def __init__(self, *args: Any, given: set[int]) -> None:
        super().__init__(*args)
        self.given = given

    def entry(self) -> None:
        """Block 0 goes to where the frame says; the first resumption is the beginning."""
        self.ir.blocks.insert(0, self.ir.block())
        self.ir.blocks.pop()
        self.frame, self.signal = self.ir.var("frame"), self.ir.var("signal")
        self.ir.entry.params = [self.frame, self.signal]
        self.ir.free = [self.ir.var(name) for name in self.code.co_freevars]
        of_free = dict(enumerate(self.ir.free, len(self.slots) - len(self.ir.free)))
        self.resumptions: list[Block] = []
        self.yields: list[tuple[Block, Operand]] = [(self.ir.entry, Const(None))]
        self.kept: list[dict[Hashable, None]] = []  # per yield, the variables that the frame holds
        self.deepest = 0  # stack at a yield
        self.resume()
        arguments = range(count_of_parameters(self.code))
        self.kept[0] = dict.fromkeys(("slot", i) for i in arguments)
        self.at_start = {**of_free, **{i: self.frame for i in arguments}}
        self.of_free = of_free
        self.block.branches.append(Branch(self.first))

    def resume(self) -> None:
        """From here on, control comes from a resumption."""
        self.block = self.ir.block()
        self.resumptions.append(self.block)
        self.kept.append({})

    def at_entry(self, block: Block, variable: Any) -> Operand | None:
        """What a variable holds where the generator is resumed."""
        if block not in self.resumptions:
            return None
        kind, i = variable
        if kind == "slot" and i in self.of_free:
            return self.of_free[i]
        number = self.resumptions.index(block)
        if not number and variable not in self.kept[number]:
            return Const(UNDEFINED)
        self.kept[number][variable] = None
        value = self.ir.var(self.slots[i] if kind == "slot" else "")
        place = Const(self.place_in_frame(variable))
        block.calls.insert(0, Call(value, Const(operator.getitem), (self.frame, place)))
        return value

    def place_in_frame(self, variable: Any) -> int:
        """The same in all forms of the function: a step of one form goes on with another's frame."""
        kind, i = variable
        return _HEAD + i + (0 if kind == "slot" else len(self.slots) - len(self.ir.free))

    def suspend(self, value: Operand) -> None:
        """End the block with a yield, and go on with what is sent."""
        suspended = self.block
        self.deepest = max(self.deepest, self.depth)
        self.yields.append((suspended, value))
        suspended.branches = [Branch(None)]
        self.resume()
        if suspended in self.following:
            self.following[self.block] = self.following[suspended]

    def finish(self) -> None:
        """Frames, now that it is known what is read after each yield."""
        self.dispatch()
        super().finish()
        saved: list[dict[Hashable, Operand]] = [{} for _ in self.yields]
        missing = True
        while missing:
            missing = False
            for i, (block, _) in enumerate(self.yields[1:], 1):
                for variable in list(self.kept[i])[len(saved[i]) :]:
                    saved[i][variable] = self.variables.read(block, variable)
                    missing = True
            self.variables.finish()
        size = len(self.slots) - len(self.ir.free) + self.deepest
        for i, (block, value) in enumerate(self.yields[1:], 1):
            frame: list[Operand] = [Const(i), value, *[Const(UNDEFINED)] * size]
            for variable, x in saved[i].items():
                frame[self.place_in_frame(variable)] = x
            self.block = block
            block.branches[0].args = [self.append(build_tuple, *frame)]

    def dispatch(self) -> None:
        """Go to the resumption that the frame says."""
        block, number = self.ir.entry, self.ir.var()
        block.calls.append(Call(number, Const(operator.getitem), (self.frame, Const(0))))
        for i, target in enumerate(self.resumptions[:-1]):
            test, rest = self.ir.var(), self.ir.block()
            block.calls.append(Call(test, Const(operator.eq), (number, Const(i))))
            block.branches = [Branch(target, (), test), Branch(rest)]
            block = rest
        block.branches = [Branch(self.resumptions[-1])]

    def returns(self, value: Operand) -> None:
        """End the generator."""
        frame = self.append(build_tuple, generators.FINISHED, value)
        self.block.branches.append(Branch(None, (frame,)))

    def receive(self, signal: Operand) -> Operand:
        """What was sent."""
        return self.call(generators.received, signal)

    iterator_of = staticmethod(generators.delegated_iterator)

    def delegate(self, receiver: Operand, signal: Operand) -> tuple[Operand, Operand, Operand]:
        """A step of `yield from`: whether it has ended, what it yields, what it has returned."""
        both = self.call(generators.delegate, receiver, signal)
        finished = self.append(operator.getitem, both, 0)
        value = self.append(operator.getitem, both, 1)
        return finished, value, value


class _Body(Lowering):
    """The body of a generator to which nothing is sent, as an ordinary function."""

    signal = Const(None)
    iterator_of = staticmethod(iter)

    def suspend(self, value: Operand) -> None:
        """Hand over an item."""
        self.append(generators.hand_over, value)

    def receive(self, signal: Operand) -> Operand:
        """Nobody sends anything."""
        return signal

    def delegate(self, receiver: Operand, signal: Operand) -> tuple[Operand, Operand, Operand]:
        """A step of `yield from`; what it has returned is not known."""
        value = self.append(advance, receiver)
        return self.append(operator.is_, value, DONE), value, _RETURNED


_RETURNED = Const("what `yield from` gives")
_STOPS = {"next", "StopIteration"}  # a generator that raises StopIteration raises another exception


def body_of(steps: generators.Steps) -> IR | None:
    """The body of a generator as a function in which yields are calls of `hand_over`.

    None for one that handles exceptions, one of which it may raise where it is left early.
    """
    key = id(steps.of), id(steps.namespace)
    if key not in _bodies:
        lowering = _Body(steps.of, steps.namespace, False)
        try:
            ir = None if _STOPS.intersection(steps.of.co_names) else lowering.run()
        except UnsupportedError:
            ir = None
        if ir is not None:
            if is_trusted(steps.namespace):
                simplify_rule(ir)
            tidy(ir)
            used = [*ir.returned(), *(a for _, a in ir.passed())]
            used += [x for call in ir.calls() for x in call.operands()]
            if lowering.handlers or any(x is _RETURNED for x in used):
                ir = None
        _bodies[key] = steps, ir
    return _bodies[key][1]


_bodies: dict[tuple[int, int], tuple[generators.Steps, IR | None]] = {}


def collected(code: CodeType, namespace: dict[str, Any]) -> CodeType:
    """Code that gives a list of all that a generator expression yields."""
    key = id(code), id(namespace)
    found = _collected.get(key)
    if found is None:
        found = _collected[key] = (code, derive(code, namespace, _Collected, _LIKE_ONE))
    return found[1]


_collected: dict[tuple[int, int], tuple[CodeType, CodeType]] = {}
_LIKE_ONE = (lambda iterator: None).__code__


class _Collected(_Body):
    """The body of a generator expression as a function that gives a list."""

    def entry(self) -> None:
        """The list that is filled comes first."""
        super().entry()
        self.items = self.ir.var("items")
        self.ir.entry.calls.append(Call(self.items, Const(build_list), ()))

    def handler_at(self, offset: int) -> None:
        """There is but the handler that a generator has for a StopIteration of its body."""

    def suspend(self, value: Operand) -> None:
        """Put an item into the list."""
        self.append(list_append, self.items, value)

    def returns(self, value: Operand) -> None:
        """Give the list."""
        super().returns(self.items)


@lowers("yield")
def _(b: Lowering, arg: Any) -> None:
    assert isinstance(b, _Steps | _Body)
    b.suspend(b.pop())
    b.push(b.signal)


@lowers("give")
def _(b: Lowering, arg: Any) -> None:
    assert isinstance(b, _Steps)
    b.given.add(len(b.yields))


@lowers("receive")
def _(b: Lowering, arg: Any) -> None:
    assert isinstance(b, _Steps | _Body)
    b.push(b.receive(b.pop()))


@lowers("delegated_iterator")
def _(b: Lowering, arg: Any) -> None:
    assert isinstance(b, _Steps | _Body)
    b.push(b.call(b.iterator_of, b.pop()))


@lowers("awaitable")
def _(b: Lowering, arg: Any) -> None:
    b.push(b.call(generators.awaitable, b.pop()))


@lowers("send")
def _(b: Lowering, arg: tuple[int, bool]) -> None:
    assert isinstance(b, _Steps | _Body)
    offset, pops = arg
    signal = b.pop()
    finished, value, returned = b.delegate(b.peek(1), signal)
    b.push(value)
    ended, target = b.ir.block(), b.block_at[offset]
    b.variables.follow(ended, b.block)
    b.variables.write(ended, ("stack", b.depth - 1 - pops), returned)
    ended.branches = [Branch(target)]
    b.waiting.append((target, b.depth - pops, set(b.nulls)))
    b.goto(ended, finished)
    b.goto(b.following[b.block])
