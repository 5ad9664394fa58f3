"""Gradient functions: one family of programs per code object, one function per user's function.

A gradient function has the signature, the defaults and the closure of the function that it
differentiates, and closes over itself as well: its code is shared by all functions with that code.
It begins as a stub; at the first call it gets the code compiled for the types at hand.
"""

from __future__ import annotations

import functools
import inspect
import math
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any

from morula.core import debug, errors, registry
from morula.core.orders import OfGradient, Source
from morula.core.program import ALL, Gradient, Left, Tried, stub, with_keywords
from morula.core.protected import entered, exit_managers
from morula.core.settings import with_own_settings
from morula.core.specialise import NotSpecialised, TooMuchEffort
from morula.core.values import argument_value, coarsened

Fallback = Callable[..., Any]
# The default of what a call has to give.
MISSING = type("Missing", (), {"__reduce__": lambda self: "MISSING", "__module__": __name__})()
How = tuple[tuple[int, ...], bool, bool, bool, tuple[str, ...]]  # what is asked for, and keywords
VARARGS, VARKEYWORDS = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

specialising = not debug.ON  # the tests switch it off to run everything on the general path


class Family:
    """The programs for the gradient of functions with one code object, by argument types."""

    most_programs = 32
    most_fine = 4

    def __init__(
        self,
        code: CodeType,
        namespace: dict[str, Any],
        wanted: tuple[int, ...],
        with_value: bool,
        single: bool,
        has_aux: bool,
        keywords: tuple[str, ...],
        general: Fallback,
        source: Source | None = None,
    ) -> None:
        self.code = code
        self.namespace = namespace
        self.source = source
        self.keywords = keywords
        self.signature = with_keywords(code, keywords)
        self.is_plain = code.co_argcount == count_parameters(self.signature)
        self.wanted = wanted
        self.n_by_position = max([-1, *wanted]) + 1
        self.with_value = with_value
        self.single = single
        self.has_aux = has_aux
        self.general = general
        self.programs: dict[Any, Program] = {}
        self.kinds: Counter[Any] = Counter()
        self.lock = threading.Lock()
        self.stub = stub(self.signature, namespace, slow_path)
        self.first: CodeType | None = None
        self.specialised: weakref.WeakSet[FunctionType] = weakref.WeakSet()

    def function(self, f: Any) -> Any:
        """The gradient function of `f`."""
        cell, primal = CellType(), primal_of(f)
        g = FunctionType(
            self.first or self.stub,
            f.__globals__,
            f.__name__,
            self.defaults(primal),
            (*(primal.__closure__ or ()), cell),
        )
        g.__kwdefaults__ = primal.__kwdefaults__
        cell.cell_contents = Own(g)
        functools.update_wrapper(g, f)
        g.__dict__["__morula__"] = self
        if self.first is not None:
            self.specialised.add(g)
        return g

    def __reduce__(self) -> tuple[Any, ...]:
        """The family of a function with this code, which captures nothing yet."""
        from morula.core.interface import family_again  # which makes families

        cells = tuple([CellType() for _ in self.code.co_freevars])
        f = FunctionType(self.code, self.namespace, self.code.co_name, None, cells)
        return family_again, (f, orders_of(self))

    def defaults(self, f: FunctionType) -> tuple[Any, ...]:
        """The defaults of `f`, but for those of arguments that are differentiated: they are given.

        `MISSING` for what has none, so that it is not Python that tells of too few arguments.
        """
        n_free = max(self.code.co_argcount - self.n_by_position, 0)
        own = (f.__defaults__ or ())[-n_free:] if n_free else ()
        return (MISSING,) * (self.code.co_argcount - len(own)) + own

    def target(self, f: FunctionType) -> FunctionType:
        """What is differentiated, for its signature and its closure: what it does, its source says."""
        if self.source is None:
            return f
        primal = primal_of(f)
        return FunctionType(
            self.code, f.__globals__, f.__name__, primal.__defaults__, primal.__closure__
        )

    def as_called(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call by position and by name, from one for each parameter."""
        code = self.signature
        n, n_named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        named = dict(zip(code.co_varnames[n:n_named], args[n:n_named], strict=True))
        return (*args[:n], *[x for rest in args[n_named:] for x in rest]), named

    def as_given(
        self, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same of a call that leaves some out: what is behind those was given by name."""
        n = [x is MISSING for x in args].index(True)
        names = self.signature.co_varnames[n : len(args)]
        by_name = {k: x for k, x in zip(names, args[n:], strict=True) if x is not MISSING}
        return args[:n], {**by_name, **named}

    def program(self, f: FunctionType, args: tuple[Any, ...], failed: Program | None) -> Program:
        """The program for arguments like these; `failed` is one whose guards did not hold."""
        key = tuple([argument_value(a) for a in args])
        if key not in self.programs and self.kinds[kind_of(key)] >= self.most_fine:
            key = kind_of(key)  # many shapes: one program for all of them  # type: ignore[arg-type]
        found = self.programs.get(key)
        if found is not None and found is not failed:
            return found
        with self.lock:
            found = self.programs.get(key)
            if found is None or found is failed:
                tries = 0 if found is None else found.tries + 1
                if len(self.programs) >= self.most_programs:
                    self.drop_programs()
                replaced = found
                found = self.programs[key] = self.compile_with_all_rules(f, key, tries, args)
                if replaced is not None:
                    if self.first is replaced.code:
                        self.first = found.code  # new functions do not begin with what did not hold
                    replaced.drop()
                self.kinds[kind_of(key)] += 1
        return found

    def compile_with_all_rules(
        self, f: FunctionType, key: tuple[Any, ...], tries: int, args: tuple[Any, ...]
    ) -> Program:
        """`compile`, once more if rules came in meanwhile: what a package ships, another thread's."""
        while True:
            before = _changes.count
            program = self.compile(f, key, tries, args)
            if _changes.count == before or program.is_too_dear:
                return program
            self.first = None

    @with_own_settings
    def compile(
        self,
        f: FunctionType,
        key: tuple[Any, ...],
        tries: int,
        args: tuple[Any, ...],
        tried: Tried = ALL,
    ) -> Program:
        program = Program(tries)
        if not specialising or tries > Program.most_tries:
            return program
        gradient = self.gradient(f, key, tries, args, tried)
        try:
            program.code = gradient.compile(slow_path, program, general_path, protected_path)
        except (NotSpecialised, errors.UnsupportedError) as reason:
            if (less := gradient.with_less(reason)) is not None:
                return self.compile(f, key, tries, args, less)
            program.reason = str(reason)
            program.is_too_dear = type(reason) is TooMuchEffort
            return program
        program.leaves_nothing = gradient.leaves_nothing
        if self.first is None:
            self.first = program.code
        return program

    def gradient(
        self,
        f: FunctionType,
        key: Sequence[Any],
        tries: int,
        args: Sequence[Any],
        tried: Tried,
    ) -> Gradient:
        """What is compiled for arguments of these types, before it is."""
        return Gradient(
            self.target(f),
            list(key),
            self.wanted,
            self.with_value,
            self.single,
            self.has_aux,
            self.keywords,
            # What was assumed and did not hold is not assumed again: the boldest first.
            examples=args if tries < 2 else (),
            optimistic=not tries,
            assuming=tries < Program.most_assuming,
            source=self.source,
            no_exceptions=True,
            tried=tried,
        )

    def built(
        self, f: FunctionType, args: Sequence[Any], careful: bool = False, tried: Tried = ALL
    ) -> Gradient:
        """What is compiled for these arguments first, in SSA form.

        A careful one takes nothing for granted of cotangents and slopes: it never has to begin anew.

        Raises:
            NotSpecialised, UnsupportedError: there is no such program.
        """
        gradient = self.gradient(f, [argument_value(a) for a in args], 0, args, tried)
        if careful:
            gradient.optimistic = gradient.assumptions.allowed = False
        try:
            gradient.build()
        except (NotSpecialised, errors.UnsupportedError) as reason:
            if (less := gradient.with_less(reason)) is not None:
                return self.built(f, args, careful, less)
            raise
        return gradient

    def by_parameter(
        self, f: FunctionType, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The arguments of a call that leaves nothing out, one for each parameter."""
        g = self.function(f)
        g.__code__ = stub(self.signature, f.__globals__, given)
        found: tuple[Any, ...] = g(*args, **named)
        return found

    def drop_programs(self) -> None:
        """Keep none of the programs."""
        dropped = list(self.programs.values())
        self.programs.clear()
        self.kinds.clear()
        for program in dropped:
            program.drop()

    def forget(self) -> None:
        """The registry has changed: nothing that was compiled holds any more."""
        self.drop_programs()
        self.first = None
        for g in self.specialised:
            g.__code__ = self.stub


def orders_of(family: Any) -> list[How]:
    """What is asked for, from the gradient of the function itself to that of its gradients."""
    if family is None:
        return []
    how = (family.wanted, family.with_value, family.single, family.has_aux, family.keywords)
    return [*orders_of(family.source), how]


def count_parameters(code: CodeType) -> int:
    """How many parameters a function has, `*args` among them."""
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & VARARGS)


def kind_of(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """What arguments are like but for the fine details."""
    return tuple([coarsened(k) for k in key])


class Own:
    """What a gradient function captures: itself.

    Where one is pickled by value, as cloudpickle does it, its code goes along, but is not run: what
    it takes for granted is asked anew where it is unpickled.
    """

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return renewed, (self.function,)


def renewed(g: FunctionType) -> Own:
    """A gradient function that has been unpickled begins anew."""
    captured = g.__code__.co_freevars[:-1]
    g.__code__ = stub(g.__code__.replace(co_freevars=captured), g.__globals__, slow_path)
    return Own(g)


class Program:
    """One compiled gradient; without code the general path is taken."""

    most_tries = 8
    most_assuming = 4
    __slots__ = ("code", "is_too_dear", "leaves_nothing", "reason", "tries")

    def __init__(self, tries: int) -> None:
        self.code: CodeType | None = None
        self.tries = tries
        self.reason = ""  # why there is no code
        self.is_too_dear = False  # to try it once more with other rules
        self.leaves_nothing = False  # behind but its result

    def drop(self) -> None:
        """Let go of the code, which refers to this: nobody collects circles of code."""
        self.code = None

    def assume_less(self) -> None:
        """What its folds took for granted was not so: the next one takes nothing for granted."""
        self.tries = max(self.tries, self.most_assuming - 1)

    def __repr__(self) -> str:
        return "program"

    def __reduce__(self) -> tuple[Any, ...]:
        return Program, (self.tries,)


def leaves_nothing(g: Callable[..., Any]) -> bool:
    """Is a gradient function known to leave nothing behind for arguments like those before?"""
    family = g.__dict__.get("__morula__")
    programs = family.programs.values() if type(family) is Family else ()
    return any(p.leaves_nothing and p.code is g.__code__ for p in programs)


def given(_g: FunctionType, _program: None, *args: Any) -> tuple[Any, ...]:
    """The arguments that a gradient function is called with."""
    return args


def slow_path(own: Own, failed: Program | None, *args: Any) -> Any:
    """What a gradient function does when its code does not fit the arguments."""
    g = own.function
    family: Family = g.__dict__["__morula__"]
    f = g.__wrapped__
    positional, named = family.as_called(args)
    if any(x is MISSING for x in positional):
        return family.general(f, *family.as_given(positional, named))  # says what is wrong
    if registry.registry.get(primal_of(f)) is not None:  # a rule of its own says what it means
        return family.general(f, positional, named)
    code = family.program(f, args, failed).code
    if code is None:
        return general_path(own, *args)
    g.__code__ = code  # the next arguments are most often like these
    family.specialised.add(g)
    run = FunctionType(code, g.__globals__, g.__name__, g.__defaults__, g.__closure__)
    return run(*positional, **named)


def protected_path(own: Own, code: CodeType, *args: Any) -> Any:
    """What a gradient function does whose program takes it that no exception is raised.

    Where one is, the general path says what it means; the program has done nothing so far that
    matters.
    """
    g = own.function
    family: Family = g.__dict__["__morula__"]
    run = FunctionType(code, g.__globals__, g.__name__, None, g.__closure__)
    n = len(entered.managers)
    try:
        if family.is_plain:
            return run(*args)
        positional, named = family.as_called(args)
        return run(*positional, **named)
    except Left as left:
        way, arguments = left.way, left.args
    except Exception:
        way, arguments = general_path, (own, *args)
    finally:
        exit_managers(n)
    return way(*arguments)


def general_path(own: Own, *args: Any) -> Any:
    """What a gradient function does with arguments for which no compiled program will do."""
    g = own.function
    family: Family = g.__dict__["__morula__"]
    positional, named = family.as_called(args)
    return family.general(g.__wrapped__, positional, named)


def primal_of(f: Any) -> Any:
    """The function that a gradient function is the gradient of, to whatever order."""
    while type(f.__dict__.get("__morula__")) is Family:
        f = f.__wrapped__
    return f


_families: dict[Any, Family] = {}
# The gradient functions by all arguments, with the value or not, of functions that capture nothing.
by_all_of: dict[tuple[FunctionType, bool], tuple[CodeType, Any]] = {}
most_kept = 64


def family_of(
    f: Any,
    wanted: tuple[int, ...],
    with_value: bool,
    single: bool,
    has_aux: bool,
    keywords: tuple[str, ...],
    general: Fallback,
) -> Family | None:
    """The family for a Python function; None where there can be none.

    `keywords` are the names of what a function with `**kwargs` takes by these.
    """
    if type(f) is not FunctionType or registry.registry.get(f) is not None:
        return None
    inner = f.__dict__.get("__morula__")
    if inner is not None and (type(inner) is not Family or keywords):
        return None
    source = None if inner is None else OfGradient.of_family(inner)
    code = f.__code__ if inner is None else inner.signature
    how = (wanted, with_value, single, has_aux, keywords)
    return family_by(code, f, how, general, source)


def family_by(
    code: CodeType,
    f: FunctionType,
    how: How,
    general: Fallback,
    source: Source | None,
    kind: type[Family] = Family,
) -> Any:
    """The family of a function with this signature, of which the source says what it does."""
    if code.co_flags & RUNS_LATER or registry.registry.get(primal_of(f)) is not None:
        return None
    most = math.inf if code.co_flags & VARARGS else code.co_argcount
    if any(not 0 <= i < most for i in how[0]):
        return None
    key = (id(code), id(f.__globals__), how, source, kind)
    family = _families.get(key)
    if family is None:
        family = _families.setdefault(key, kind(code, f.__globals__, *how, general, source))
    return family


class _Changes:
    """How often rules have been registered."""

    count = 0


_changes = _Changes()


def forget_programs() -> None:
    """Called when a rule is registered: whatever was compiled may mean something else now."""
    _changes.count += 1
    by_all_of.clear()
    for family in list(_families.values()):
        family.forget()


@contextmanager
def by_the_general_path() -> Iterator[None]:
    """No compiled program runs within."""
    global specialising
    before, specialising = specialising, False
    forget_programs()
    try:
        yield
    finally:
        specialising = before
        forget_programs()


registry.on_change.append(forget_programs)
