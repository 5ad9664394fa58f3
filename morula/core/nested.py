"""Derivatives that a program takes itself, `grad(f)(x)` or `gradient(f, x)`, become part of it.

The inner function, with all that it has captured, is a function of its own for this: its parameters
are the arguments of the call and the captured values. Its gradient is built in SSA form, as for
derivatives of derivatives (orders.py), and put in the place of the call. Where that cannot be, the
call stays, and means the general path.
Tests: tests/core/test_nested.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

from morula.core.cfg import dominators
from morula.core.compiled import Family
from morula.core.errors import UnsupportedError
from morula.core.examples import NOTHING
from morula.core.infer import Guards
from morula.core.inline import inline
from morula.core.ir import IR, Block, Branch, Call, Const, Operand, Var, substitute
from morula.core.orders import OfGradient, Source
from morula.core.primitives import (
    build_tuple,
    make_cell,
    make_function,
    set_cell,
)
from morula.core.program import Gradient, in_space_of
from morula.core.simplify import single_values
from morula.core.specialise import (
    DERIVATIVES,
    NotAsExpected,
    NotSpecialised,
    Specialiser,
    rewrites,
)
from morula.core.traits import Known, expected_results
from morula.core.values import OneOf, Value, known
from morula.core.writers import writes_to_given


class Maker(NamedTuple):
    """What gives a gradient function of its first argument, or its gradient by the other ones."""

    of_function: bool
    with_value: bool


MAKERS: dict[int, Maker] = {}  # by the identity of the function


class NotKnownYet(Exception):
    """The type of an argument is not known; it may be assumed later."""


class Wish(NamedTuple):
    """A derivative that is taken at a call: of which function, at which arguments, and how."""

    f: Operand
    args: tuple[Operand, ...]
    wanted: tuple[int, ...]
    single: bool
    with_value: bool
    has_aux: bool
    keywords: tuple[str, ...] = ()  # of the last arguments


def inline_derivatives(s: Specialiser) -> bool:
    """Put the derivatives that the program takes in the place of the calls; were there any?"""
    made = {c.out: c for c in s.ir.calls()}
    for call in made.values():
        call.removable = call.removable or makes_function(call)
    for block in s.ir.blocks:
        for i, call in enumerate(block.calls):
            wish = None if call.out in s.left_general else wish_of(call, made)
            if wish is None:
                continue
            try:
                gradient, operands = derivative(s, wish, call, block, made)
            except NotKnownYet:
                continue
            except (NotSpecialised, UnsupportedError):
                if call.out in s.expected:
                    raise NotAsExpected from None
                if s.deals_with_arrays and writes_to_given(s, wish.f):
                    raise NotSpecialised(
                        "what it takes a derivative of writes to what it is given"
                    ) from None
                s.left_general.add(call.out)
                continue
            put_in_place(s, block, i, gradient, operands)
            return True
    return False


def expect_derivatives(s: Specialiser) -> bool:
    """Take derivatives in loops to be like the arguments, on which they depend in their turn."""
    made = {c.out: c for c in s.ir.calls()}
    n = len(s.expected)
    for call in made.values() if s.may_expect else ():
        if call.out in s.expected or call.out in s.left_general:
            continue
        wish = wish_of(call, made)
        if wish is not None:
            s.expected[call.out] = partial(expected, s, wish, call)
        elif id(call.primitive) in expected_results:
            result = expected_results[id(call.primitive)]
            s.expected[call.out] = partial(expected_of_function, s, result, call.args)
    return len(s.expected) > n


def expected_of_function(
    s: Specialiser, result: Callable[[list[Value]], Value], args: tuple[Operand, ...]
) -> Value:
    """What is known of a second derivative, from what is known of the arguments."""
    return result([s.value(x) for x in args])


def expected(s: Specialiser, wish: Wish, call: Call) -> Value:
    """What is known of a derivative, from what is known of the arguments."""
    values = [s.value(wish.args[i]) for i in wish.wanted]
    found = [s.result_for(call, Const(in_space_of), [value]) for value in values]
    slope = found[0] if wish.single else Known(tuple, tuple(found))
    if wish.with_value or wish.has_aux:
        return Known(tuple, (None, slope) if wish.with_value else (slope, None))
    return slope


def makes_function(call: Call) -> bool:
    """Does a call give a gradient function, and do nothing else?"""
    maker = MAKERS.get(id(call.primitive))
    return maker is not None and maker.of_function


def put_in_place(
    s: Specialiser, block: Block, index: int, gradient: Gradient, operands: list[Operand]
) -> None:
    """Put a derivative in the place of a call, with what is known and asked for it."""
    results: dict[Var, Operand] = {}
    renamed: dict[Var, Operand] = {}
    removable = block.calls[index].removable
    inline(s.ir, block, index, gradient.ir, operands, (), removable, results, None, renamed)
    inner = gradient.specialiser
    s.guards.take_over(inner.guards)
    for v, value in {**gradient.types, **inner.given}.items():
        x = renamed.get(v)
        if value is not None and type(x) is Var and v not in gradient.ir.params:
            s.given[x] = value
    substitute(s.ir, results)


def wish_of(call: Call, made: dict[Var, Call]) -> Wish | None:
    """What derivative a call takes, if it takes one."""
    if type(call.fn) is Const and call.keywords:
        return None
    maker = MAKERS.get(id(call.primitive))
    if maker is not None and not maker.of_function and len(call.args) > 1:
        f, *args = call.args
        return Wish(f, tuple(args), tuple(range(len(args))), False, maker.with_value, False)
    if type(call.fn) is Const:
        return wish_of_function(call.fn.value, tuple(call.args))
    inner = made.get(call.fn)  # type: ignore[arg-type]
    maker = None if inner is None else MAKERS.get(id(inner.primitive))
    if inner is None or maker is None or not maker.of_function:
        return None
    options = options_of(inner)
    if options is None:
        return None
    argnums, has_aux = options
    single = type(argnums) is int
    wanted = (argnums,) if single else argnums
    if type(wanted) is not tuple or not all(type(i) is int for i in wanted):
        return None
    n = len(call.args) - len(call.keywords)
    if not all(-n <= i < n for i in wanted):
        return None
    wanted = tuple([i % n for i in wanted])
    how = (wanted, single, maker.with_value, has_aux, tuple(call.keywords))
    return Wish(inner.args[0], tuple(call.args), *how)


def wish_of_function(g: Any, args: tuple[Operand, ...]) -> Wish | None:
    """The derivative that a call of a function takes, if it is a gradient function made before."""
    family = g.__dict__.get("__morula__") if type(g) is FunctionType else None
    if type(family) is not Family or len(args) <= max(family.wanted) or family.keywords:
        return None
    how = (family.wanted, family.single, family.with_value, family.has_aux)
    return Wish(Const(g.__wrapped__), args, *how)


def options_of(call: Call) -> tuple[Any, bool] | None:
    """The `argnums` and `has_aux` of a call that makes a gradient function, if they are known."""
    n = len(call.args) - len(call.keywords)
    given = dict(zip(("argnums", "has_aux"), call.args[1:n], strict=False))
    given.update(zip(call.keywords, call.args[n:], strict=True))
    if not n or not all(type(x) is Const for x in given.values()) or n > 3:
        return None
    if not given.keys() <= {"argnums", "has_aux"}:
        return None
    values = {name: x.value for name, x in given.items()}
    has_aux = values.get("has_aux", False)
    return (values.get("argnums", 0), has_aux) if type(has_aux) is bool else None


class Whole(Source):
    """A function that is given in SSA form."""

    def __init__(self, ir: IR) -> None:
        self.ir = ir

    def function(self, *_: Any) -> tuple[IR, Guards]:
        return self.ir, Guards()


def derivative(
    s: Specialiser, wish: Wish, call: Call, block: Block, made: dict[Var, Call]
) -> tuple[Gradient, list[Operand]]:
    """The derivative in SSA form, and its arguments."""
    closed = Closed(s, call, block, made)
    closed.close(wish)
    knowns = [known_of(s, x, made) for x in closed.operands]
    how = (wish.wanted, wish.with_value, wish.single, wish.has_aux, (), Whole(closed.ir))
    stand_in = function_of(len(knowns), s.fn)
    examples = examples_of(s, closed.operands)
    return OfGradient(*how).built(stand_in, knowns, examples, ()), closed.operands


def examples_of(s: Specialiser, operands: list[Operand]) -> list[Any]:
    """Values that the arguments of a derivative may have; none if one is missing."""
    if not s.examples.given:
        return []
    s.examples.follow(s.ir, s.value)
    found = [s.examples.one(x) for x in operands]
    return [] if any(x is NOTHING for x in found) else found


def known_of(s: Specialiser, x: Operand, made: dict[Var, Call]) -> Known:
    """What is known of an argument; of a tuple, what is known of its items."""
    call = made.get(x) if type(x) is Var else None
    if call is not None and call.primitive is build_tuple:
        return Known(tuple, tuple([known_of(s, item, made) for item in call.args]))
    value = s.value(x)
    k = None if type(value) is OneOf else known(value)
    if k is None or k.type is None:
        raise NotKnownYet
    return k


class Closed:
    """A function that is made in a program, as one that captures nothing.

    What it captures are further parameters, but for functions, which are made anew inside.
    """

    def __init__(self, s: Specialiser, call: Call, block: Block, made: dict[Var, Call]) -> None:
        self.s = s
        self.call = call
        self.block = block
        self.made = made
        self.cells = single_values(s.ir, ())
        self.parent = dominators(s.ir)
        self.ir = IR(s.ir.name, s.ir.filename)
        self.entry = self.ir.block()
        self.operands: list[Operand] = []
        self.inside: dict[Operand, Operand | None] = {}  # None: it is being made

    def close(self, wish: Wish) -> None:
        """Make a function of the arguments of a derivative, and of what is captured."""
        params = [self.param(x) for x in wish.args]
        out = self.append(self.lift(wish.f), *params)
        self.entry.calls[-1].keywords = wish.keywords
        self.entry.branches = [Branch(None, [out])]

    def param(self, x: Operand) -> Operand:
        """A parameter for an operand of the program."""
        new = self.ir.var(x.name if type(x) is Var else "")
        self.entry.params = [*self.entry.params, new]
        self.operands.append(x)
        return new

    def append(self, fn: Operand, *args: Operand) -> Var:
        """The result of a call inside."""
        out = self.ir.var()
        self.entry.calls.append(Call(out, fn, args, (), self.call.position))
        return out

    def lift(self, x: Operand) -> Operand:
        """What stands inside for an operand of the program."""
        if type(x) is Const:
            return x
        if x in self.inside:
            found = self.inside[x]
            if found is None:
                raise NotSpecialised("a function captures itself")
            return found
        self.inside[x] = None
        self.inside[x] = new = self.lift_variable(x)
        return new

    def lift_variable(self, x: Operand) -> Operand:
        made = self.made.get(x)  # type: ignore[arg-type]
        if made is None or made.keywords:
            return self.param(x)
        if made.primitive is build_tuple:
            return self.append(made.fn, *[self.lift(a) for a in made.args])
        if made.primitive is make_function:
            first = [self.lift(a) for a in made.args[:5]]
            return self.append(made.fn, *first, *[self.lift_cell(c) for c in made.args[5:]])
        if makes_function(made):
            return self.append(made.fn, *[self.lift(a) for a in made.args])
        return self.param(x)

    def lift_cell(self, cell: Operand) -> Operand:
        """A cell inside, with what a cell of the program holds for good."""
        return self.append(Const(make_cell), self.lift(self.content(cell)))

    def content(self, cell: Operand) -> Operand:
        """What a cell holds, which is set once, before the derivative is taken."""
        value = self.cells.get(cell)  # type: ignore[arg-type]
        if value is None:
            raise NotSpecialised("a captured variable is not the program's own, or changes")
        for block in self.s.ir.blocks:
            for i, call in enumerate(block.calls):
                if (
                    call.primitive is set_cell
                    and call.args[0] is cell
                    and not self.is_behind(block, i)
                ):
                    raise NotSpecialised("a captured variable may be set later")
        return value

    def is_behind(self, block: Block, index: int) -> bool:
        """Has a call surely been made when the derivative is taken?"""
        above: Block | None = self.block
        while above is not None and above is not block:
            above = self.parent[above]
        return above is not None and (
            block is not self.block or index < block.calls.index(self.call)
        )


def function_of(n: int, like: FunctionType) -> FunctionType:
    """A function of so many parameters, for its signature and its name."""
    names = ", ".join([f"_{i}" for i in range(n)])
    code: Callable[..., Any] = eval(f"lambda {names}: None")
    found = FunctionType(code.__code__, like.__globals__, like.__name__)
    return found


DERIVATIVES.append(inline_derivatives)
rewrites(expect_derivatives)
