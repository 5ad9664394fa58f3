"""What users call of forward mode: pushforward and jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from morula.core import errors
from morula.core.callables import by_position, function_of
from morula.core.context import as_before
from morula.core.cotangents import ZERO
from morula.core.registry import non_differentiable
from morula.core.settings import settings
from morula.mixed_mode.directions import pushed_along
from morula.mixed_mode.programs import pushes_of, runs_again
from morula.mixed_mode.push import push, refuse_unknown
from morula.mixed_mode.tangents import BY_VALUE, Pass, absorb, shown_to_user
from morula.rules.arrays.bodies import instead_of


def jvp(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value `f(*args)` and its derivative along `tangents`, in one run of `f`.

    Args:
        f: any function; it runs once, with its side effects.
        args: tuple or list of its arguments.
        tangents: one per argument, each of the structure and shape of its argument; an `int` takes a
            `float`, None is a zero.
    Returns:
        `(y, ẏ)`; ẏ mirrors y.
    Raises:
        TypeError: `args` and `tangents` are no tuples or lists of one length.
        ValueError: a tangent is not of the structure, shape or kind of its argument.

    >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
    (6.0, 23.0)
    """
    check_sequences(args, tangents)
    return pushed(f, tuple(args), tuple(tangents))


def check_sequences(args: Any, tangents: Any) -> None:
    """Are these two tuples or lists of one length?"""
    for name, xs in (("args", args), ("tangents", tangents)):
        if not isinstance(xs, (tuple, list)):
            raise errors.ArgumentError(
                f"jvp(f, args, tangents) takes a tuple or a list as {name}, got a {type(xs).__name__}"
            )
    check_count(args, tangents)


def check_count(args: Any, tangents: Any) -> None:
    """Is there one tangent per argument?"""
    if len(args) != len(tangents):
        raise errors.ArgumentError(
            f"{len(tangents)} tangents were given for {len(args)} arguments: one is needed for each, "
            "None for a zero"
        )


def pushed(f: Any, args: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The value and its derivative: by a program, where there is one."""
    run = Pass()
    dots = absorbed(run, args, tangents)
    plain = None if run.table else plain_call(f, args)
    program = None if plain is None else pushes_of(plain[0], len(plain[1]), by_general_path)
    if plain is None or program is None:
        return in_pass(run, f, args, dots)
    both: tuple[Any, Any] = program(*plain[1], *along_all(plain, dots))
    return both


Plain = tuple[Any, tuple[Any, ...], int]  # a function, all its arguments, how many come before


def plain_call(f: Any, args: tuple[Any, ...]) -> Plain | None:
    """The call of a Python function, with all its arguments by position, that calling `f` is."""
    if type(f) is FunctionType and f.__code__.co_argcount == len(args):
        return with_named(f, args, 0)
    target = function_of(f)
    if target is None or target[2]:
        return None
    function, before, _ = target
    missing = function.__code__.co_argcount - len(before) - len(args)
    defaults = function.__defaults__ or ()
    if not 0 <= missing <= len(defaults) or "__morula__" in function.__dict__:
        return (f, args, 0) if type(f) is FunctionType else None
    return with_named(function, (*before, *args, *defaults[len(defaults) - missing :]), len(before))


def with_named(f: FunctionType, args: tuple[Any, ...], before: int) -> Plain:
    """The same, with the defaults of what could be given by name only."""
    plain = by_position(f)
    missing = plain.__code__.co_argcount - len(args)
    return plain, (*args, *plain.__defaults__[-missing:]) if missing else args, before


def along_all(plain: Plain, dots: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tangents of all arguments of such a call, from those of the arguments that were given."""
    _, args, before = plain
    behind = len(args) - before - len(dots)
    return (*[ZERO] * before, *dots, *[ZERO] * behind)


@instead_of(pushed)
def general_pushed(f: Any, args: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The same by the general path, as differentiated code sees it."""
    run = Pass()
    return in_pass(run, f, args, absorbed(run, args, tangents))


def absorbed(run: Pass, args: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tangents by value of arguments; those of what is mutable go to the table."""
    return tuple(
        [
            ẋ if type(x) is float is type(ẋ) else absorb(run, x, ẋ, f"argument {i}")
            for i, (x, ẋ) in enumerate(zip(args, tangents, strict=True))
        ]
    )


def by_general_path(f: Any, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """What a program does where only the general path will do."""
    n = primal_count(f)
    x, dots = args[:n], args[n:]
    if len(dots) == n:
        return in_pass(Pass(), f, x, dots)
    y, tangents = pushed_along(f, x, [dots[i : i + n] for i in range(0, len(dots), n)])
    return (y, *tangents)


def primal_count(f: Any) -> int:
    """How many arguments a function has that there are programs for."""
    family = f.__dict__.get("__morula__")
    code: Any = f.__code__ if family is None else family.signature
    return int(code.co_argcount)


def pushed_again(
    f: Any, args: tuple[Any, ...], directions: list[Any]
) -> tuple[Any, list[Any]] | None:
    """The value and the derivatives along directions, by a program that runs as often as it needs.

    None where there is no program, or one with effects. A direction has one tangent for each argument.
    """
    if not directions or not all([isinstance(x, BY_VALUE) for x in args]):
        return None
    plain = plain_call(f, args)
    if plain is None:
        return None
    f, x, _ = plain
    runs = -(-len(directions) // AT_ONCE)
    count = -(-len(directions) // runs)
    missing = runs * count - len(directions)
    dots = [absorbed(Pass(), args, e) for e in (*directions, *directions[:1] * missing)]
    program = pushes_of(f, len(x), by_general_path, count)
    given = [
        (*x, *[ẋ for e in dots[i : i + count] for ẋ in along_all(plain, e)])
        for i in range(0, len(dots), count)
    ]
    if program is None or not runs_again(program, given[0]):
        return None
    found = [program(*some) for some in given]
    return found[0][0], [ẏ for _, *tangents in found for ẏ in tangents][: len(directions)]


AT_ONCE = 4  # directions in one run of a program


non_differentiable(pushed_again)


def in_pass(run: Pass, f: Any, args: tuple[Any, ...], dots: tuple[Any, ...]) -> tuple[Any, Any]:
    """One forward pass."""
    settings.begin()
    try:
        y, ẏ = as_before(push, run, f, ZERO, args, dots)
    finally:
        settings.end()
    refuse_unknown((ẏ,))
    return y, shown_to_user(run, y, ẏ)


def pushforward(f: Callable[..., Any], /, *args: Any) -> tuple[Any, Callable[..., Any]]:
    """The value `f(*args)` and `push`: tangents -> ẏ, one tangent per argument.

    `push` may be called any number of times; each call runs `f` again.

    >>> y, push = pushforward(lambda x, y: x * y, 2.0, 3.0)
    >>> push(1.0, 0.0)
    3.0
    """
    return f(*args), partial(push_along, f, args)


def push_along(f: Any, args: tuple[Any, ...], *tangents: Any) -> Any:
    """The derivative along tangents."""
    check_count(args, tangents)
    return pushed(f, args, tangents)[1]


__all__ = ["jvp", "pushforward"]
