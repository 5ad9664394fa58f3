"""Gradients of what runs a Python function in the end: methods, objects, partials, calls by keyword.

Which function that is, with which arguments, and what is differentiated, only a call says. So there
is one gradient function for each way to call it, made at the first such call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

from morula.core import errors
from morula.core.compiled import VARARGS, VARKEYWORDS, Family
from morula.core.gradients import Transformed
from morula.core.registry import non_differentiable, registry

Target = tuple[Any, tuple[Any, ...], dict[str, Any]]
Step = Callable[[Any], Target | None]
STEPS: dict[type, Step] = {}


def runs(t: type) -> Callable[[Step], Step]:
    """Register what an object of type `t` calls, with which arguments before the call's own."""

    def register(step: Step) -> Step:
        STEPS[t] = step
        return step

    return register


@runs(Transformed)
def _(f: Transformed) -> None:
    """Which function it runs, it finds out itself."""


def function_of(f: Any) -> Target | None:
    """The Python function that calling `f` runs, and the arguments that `f` adds to the call's own.

    None if there is none, or if a rule says what calling `f` means.
    """
    args: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    while type(f) is not FunctionType:
        step = STEPS.get(type(f)) or (None if isinstance(f, type) else STEPS.get(object))
        found = step(f) if step is not None and registry.get(f) is None else None
        if found is None:
            return None
        f, before, named = found
        args, keywords = (*before, *args), {**named, **keywords}
    return f, args, keywords


def is_plain(f: Any) -> bool:
    """Is it a function whose arguments can all be given by position, and none more?"""
    return (
        type(f) is FunctionType
        and not f.__code__.co_kwonlyargcount
        and not f.__code__.co_flags & (VARARGS | VARKEYWORDS)
    )


_positional: dict[int, tuple[CodeType, CodeType]] = {}


def by_position(f: Any) -> Any:
    """The same as a plain function: keyword-only parameters, which all have defaults, come last."""
    if type(f) is not FunctionType or not f.__code__.co_kwonlyargcount:
        return f
    code, defaults = f.__code__, f.__kwdefaults__ or {}
    n = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[code.co_argcount : n]
    if code.co_flags & (VARARGS | VARKEYWORDS) or not defaults.keys() >= {*names}:
        return f
    if "__morula__" in f.__dict__ or registry.get(f) is not None:
        return f
    found = _positional.get(id(code))
    if found is None:
        made = code.replace(co_argcount=n, co_kwonlyargcount=0)
        found = _positional[id(code)] = (code, made)
    values = (*(f.__defaults__ or ()), *[defaults[name] for name in names])
    return FunctionType(found[1], f.__globals__, f.__name__, values, f.__closure__)


class Made:
    """A gradient function, and what it was made of."""

    __slots__ = ("code", "defaults", "function", "gradient", "kwdefaults")

    def __init__(self, function: FunctionType, gradient: FunctionType) -> None:
        self.function = function
        self.gradient = gradient
        self.code = function.__code__
        self.defaults = function.__defaults__
        self.kwdefaults = function.__kwdefaults__

    def is_of(self, function: FunctionType) -> bool:
        """Would it be made of this function again?"""
        return (
            self.function is function
            and self.code is function.__code__
            and self.defaults is function.__defaults__
            and self.kwdefaults is function.__kwdefaults__
        )


class Calls:
    """The gradient functions for the calls of one callable, by how it is called."""

    most = 32

    def __init__(
        self,
        f: Any,
        argnums: Any,
        family: Callable[[FunctionType, tuple[int, ...], tuple[str, ...]], Family | None],
        general: Callable[..., Any],
    ) -> None:
        self.f = f
        self.argnums = argnums  # None: all that are given by position
        self.family = family
        self.general = general
        self.made: dict[Any, Made] = {}

    def __eq__(self, other: object) -> bool:
        return type(other) is Calls and self.f is other.f and self.argnums == other.argnums

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The gradient for these arguments."""
        target = function_of(self.f)
        if target is None:
            return self.general(*args, **kwargs)
        if kwargs and self.argnums is not None:
            args, kwargs = with_asked_for(self.f, self.argnums, args, kwargs)
        function, before, named = target
        named = {**named, **kwargs} if named else kwargs
        key = (len(before), len(args), *named)
        made = self.made.get(key)
        if made is None or not made.is_of(function):
            made = self.make(function, len(before), len(args), named)
            if made is None:
                return self.general(*args, **kwargs)
            if len(self.made) >= self.most:
                self.made.clear()
            self.made[key] = made
        return made.gradient(*before, *args, **named)

    def make(
        self, function: FunctionType, before: int, n: int, named: Iterable[str]
    ) -> Made | None:
        """The gradient function for n arguments by position, behind others, and these by name.

        None if there is none, or if the call raises what Python raises.
        """
        positions = range(n) if self.argnums is None else positions_of(self.argnums, n, self.f)
        others = beyond_parameters(function.__code__, before + n, named)
        if others is None:
            return None
        family = self.family(function, tuple([before + i for i in positions]), others)
        return None if family is None else Made(function, family.function(function))


def beyond_parameters(code: CodeType, n: int, named: Iterable[str]) -> tuple[str, ...] | None:
    """Which of these names `**kwargs` takes, in a call with n arguments by position.

    None if the call raises what Python raises.
    """
    n_named = code.co_argcount + code.co_kwonlyargcount
    by_name = code.co_varnames[max(n, code.co_posonlyargcount) : n_named]
    if n > code.co_argcount:
        if not code.co_flags & VARARGS:
            return None
        by_name = code.co_varnames[code.co_argcount : n_named]
    others = tuple([name for name in named if name not in by_name])
    return others if not others or takes_others(code, others) else None


def takes_others(code: CodeType, names: tuple[str, ...]) -> bool:
    """Do arguments of these names, which are no parameters, belong to `**kwargs`?"""
    n = code.co_argcount + code.co_kwonlyargcount + 1 + bool(code.co_flags & VARARGS)
    return bool(code.co_flags & VARKEYWORDS) and not any(x in code.co_varnames[:n] for x in names)


def with_asked_for(
    f: Any, argnums: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call with the arguments that are differentiated by position, if it gives them by name.

    So are those before them; one of these that is left out gets its default. Negative argnums count
    what is given by position, so they name nothing else.
    """
    names = names_asked_for(f, argnums, len(args), tuple(kwargs))
    if not names:
        return args, kwargs
    rest = dict(kwargs)
    behind = [rest.pop(name) if name in rest else default for name, default in names]
    return (*args, *behind), rest


def names_asked_for(
    f: Any, argnums: Any, n: int, given: tuple[str, ...]
) -> tuple[tuple[str, Any], ...]:
    """The parameters behind the first n, up to the last that argnums name, with their defaults.

    None of them if not all that argnums name are given by these names.
    """
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    needed = max(numbers, default=-1) + 1
    if n >= needed:
        return ()
    try:
        parameters = list(inspect.signature(f).parameters.values())[:needed]
    except (TypeError, ValueError):
        return ()
    for i in range(n, needed):
        p = parameters[i] if i < len(parameters) else None
        if p is None or p.kind is not p.POSITIONAL_OR_KEYWORD:
            return ()
        if p.name not in given and (i in numbers or p.default is p.empty):
            return ()
    return tuple([(p.name, p.default) for p in parameters[n:]])


non_differentiable(names_asked_for)


def as_called(general: Any, f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """What the general path of a gradient function gives, called with the arguments as they are."""
    return general(f, args, kwargs)


def positions_of(argnums: Any, n: int, f: Any) -> list[int]:
    """The positions that argnums mean for a call with n positional arguments."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for i in numbers:
        if not -n <= i < n:
            raise errors.argnums_out_of_range(f, argnums, i + 1 if i >= 0 else -i, n)
    return [i % n for i in numbers]
