"""Functions that a program calls in the place of inlining them, because they call themselves.

Each becomes, for the types of its arguments, a pair of functions: `forward` gives the value and
what `backward` needs to give the cotangents. Both are called directly, nothing is looked up.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from morula.core.adjoint import Adjoint, flat
from morula.core.cotangents import NONE
from morula.core.emit import emit
from morula.core.errors import UnsupportedError
from morula.core.general import pullback_like, separate
from morula.core.infer import Guards, is_fixed
from morula.core.instances import Escapes
from morula.core.ir import Branch, Const, Operand, Var
from morula.core.lift import Given, Lifted, is_stub
from morula.core.primitives import build_tuple
from morula.core.registry import Rule
from morula.core.specialise import NotSpecialised, Specialiser, may_run_twice
from morula.core.traits import Known
from morula.core.values import (
    NEVER,
    Plain,
    Value,
    equal,
    join,
    kept_contents,
    key_of,
    known,
    without_contents,
)


class InContext(Exception):
    """A function that calls itself works on mutable values: its reverse pass is always run."""


class Callee:
    """A function without closure, specialised for what is known of its arguments."""

    def __init__(self, fn: FunctionType, knowns: list[Value]) -> None:
        self.fn = fn
        self.knowns = knowns
        self.result: Value = NEVER  # assumed at first, in the end known
        self.failed = False
        self.specialiser: Specialiser | None = None
        self.twins: dict[tuple[str, ...], Twin] = {}

    def respecialised(self) -> Specialiser:
        """The same once more, as it was before anything was made of it."""
        assert self.specialiser is not None
        return self.specialiser.callees.specialised(self)

    def twin(self, activity: tuple[str, ...]) -> Twin:
        """The pair of functions for these active arguments."""
        found = self.twins.get(activity)
        if found is None:
            found = self.twins[activity] = Twin(self, activity)
            try:
                found.build()
            except InContext:  # which those that ask for it must know from the beginning
                found = self.twins[activity] = Twin(self, activity, in_context=True)
                found.build()
        found.was_asked_for = True
        return found


class Callees:
    """The callees of one program, by function and what is known of the arguments."""

    most = 24
    most_rounds = 5

    def __init__(self) -> None:
        self.found: dict[Any, Callee] = {}
        self.results: dict[Any, Value] = {}  # what each has returned, under any assumption
        self.lifted: dict[FunctionType, Lifted | Given] = {}  # by what stands for them
        self.given: dict[Any, FunctionType] = {}  # by the local functions that they are given

    def of(self, fn: FunctionType, args: list[Value]) -> Callee:
        """The callee for arguments of which this is known."""
        knowns = [
            a if type(a) is Const and is_fixed(a.value) else kept_contents(known(a)) for a in args
        ]
        key = (fn, tuple(map(key_of, knowns)))
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = Callee(fn, knowns)
            # It returns no less under what is assumed now: assumptions only grow.
            found.result = self.results.get(key, NEVER)
            try:
                self.specialise(found)
            except (NotSpecialised, UnsupportedError):
                found.failed = True
            self.results[key] = found.result
        return found

    def specialise(self, callee: Callee) -> None:
        """What the function returns is assumed, then found, until the two agree."""
        if len(self.found) > self.most:
            raise NotSpecialised("it calls too many functions")
        before = dict(self.found)
        for _ in range(self.most_rounds):
            s = self.specialised(callee)
            result = join(callee.result, without_contents(s.returned()))
            if equal(result, callee.result):
                break
            callee.result = result
            self.found = dict(before)  # what was found under a wrong assumption is not kept
        else:
            raise NotSpecialised("its result is not of one type")
        if result is NEVER or not all(may_run_twice(s, c) for c in s.ir.calls()):
            raise NotSpecialised("it has effects")
        callee.specialiser = s

    def specialised(self, callee: Callee) -> Specialiser:
        """The function for these types, with the objects that it makes as its own, if they are."""
        try:
            s = self.specialiser(callee, True)
            s.run()
        except Escapes:
            s = self.specialiser(callee, False)
            s.run()
        return s

    def specialiser(self, callee: Callee, own_objects: bool) -> Specialiser:
        """What specialises a callee, which may be a local function that is lifted."""
        lifted = self.lifted.get(callee.fn)
        if lifted is None and is_stub(callee.fn):
            raise NotSpecialised("a local function that calls itself is called from outside")
        ir = None if lifted is None else lifted.ir()
        return Specialiser(callee.fn, callee.knowns, self, own_objects=own_objects, ir=ir)

    def add_guards(self, guards: Guards) -> None:
        """What the callees ask about the world, the program asks at its entry."""
        for callee in self.found.values():
            if callee.specialiser is not None:
                guards.take_over(callee.specialiser.guards)


class Twin(Adjoint):
    """The value and the reverse pass of a callee, as two functions.

    `activity` says of each argument whether its cotangent is asked for: "no", "yes", or "sum": the
    caller adds it to that of an argument of its own, on which nothing hangs, so it may begin with a
    zero.
    """

    def __init__(self, callee: Callee, activity: tuple[str, ...], in_context: bool = False) -> None:
        super().__init__()
        assert callee.specialiser is not None
        self.specialiser = callee.respecialised() if in_context else callee.specialiser
        self.callee = callee
        self.activity = activity
        self.forward = twin_function(callee.fn)
        self.backward = twin_function(callee.fn)
        self.rule = Rule(callee.fn, rule_of(self.forward, self.backward, activity))
        asked = [None if a == "yes" else Known(Plain) for a in activity if a != "no"]
        self.cotangents = Known(tuple, tuple(asked))
        self.in_context = in_context
        self.has_shadows = False
        self.was_asked_for = False

    def build(self) -> None:
        """Compile the two functions; they may call themselves."""
        s, fn = self.specialiser, self.callee.fn
        asked = [i for i, a in enumerate(self.activity) if a != "no"]
        leaves = {i: flat(s.leaves[i]) for i in asked}
        sums = [x for i in asked if self.activity[i] == "sum" for x in leaves[i]]
        self.differentiate([x for i in asked for x in leaves[i]], sums)
        if self.needs_context:
            if self.was_asked_for and not self.in_context:
                raise InContext
            self.in_context = True
            self.maybe_zero.add(self.reversal.seed)
        self.inline_rules()
        self.clean_adjoint()
        self.return_cotangents(asked)
        self.reversal.resolve()
        backward, kept = separate(self.reversal)
        exit = self.reversal.exit
        both = self.append(exit, build_tuple, self.reversal.result, kept)
        exit.branches = [Branch(None, [both])]
        self.ir.kept = []

        self.forward.__code__ = emit(self.ir, fn.__code__, fn.__globals__)
        self.backward.__code__ = emit(backward, pullback_like(fn.__code__), fn.__globals__)

    def return_cotangents(self, asked: list[int]) -> None:
        """One cotangent for each argument that is asked for."""
        block = self.reversal.end
        built = self.result_tuple()
        block.calls.remove(built)
        found: dict[Var, Operand] = dict(zip(self.leaves, built.args, strict=True))
        results = [self.assemble(block, self.specialiser.leaves[i], found) for i in asked]
        block.branches[0].args = [self.append(block, build_tuple, *results)]


def twin_function(fn: FunctionType) -> FunctionType:
    """A function that gets its code later."""
    return FunctionType(_unfinished.__code__, fn.__globals__, fn.__name__)


def _unfinished() -> None:
    """The code of a function that has none yet."""


def rule_of(
    forward: FunctionType, backward: FunctionType, activity: tuple[str, ...]
) -> FunctionType:
    """The rule of calling a function by its twin."""
    parameters = ", ".join([f"x{i}" for i in range(len(activity))])
    asked = [i for i, a in enumerate(activity) if a != "no"]
    cotangents = [f"x̄{i}" if i in asked else "NONE" for i in range(len(activity))]
    source = f"""
def rule({parameters}):
    y, kept = forward({parameters})
    def callee_pullback(ȳ):
        {", ".join([f"x̄{i}" for i in asked])}, = backward(kept, ȳ)
        return ({", ".join(cotangents)},)
    return y, callee_pullback
"""
    scope: dict[str, Any] = {
        "forward": forward,
        "backward": backward,
        "NONE": NONE,
        "__name__": __name__,
    }
    exec(source, scope)
    rule: FunctionType = scope["rule"]
    return rule
