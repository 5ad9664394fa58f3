"""The primitives of `try`: a call that may raise, what it raised, and the exception being handled.

In a protected region a call `f(x)` is `attempt(f, x)`: it gives the value, or `Raised` with the
exception, and the block goes on to one of its two successors. So exceptions are ordinary values and
ordinary branches, for the transform as for everything else.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from morula.core import errors


class Raised:
    """What a call gives that has raised an exception."""

    __slots__ = ("exception",)

    def __init__(self, exception: BaseException) -> None:
        self.exception = exception


def attempt(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`fn(*args, **kwargs)`, or `Raised`."""
    try:
        return fn(*args, **kwargs)
    except BaseException as error:
        return caught(error)


def caught(error: BaseException) -> Raised:
    """An exception that a function on behalf of another has caught, as if that one had.

    In its traceback stands the frame above the caller's, in the place of the caller's own.
    """
    own = error.__traceback__
    error.__traceback__ = None if own is None else own.tb_next
    return passed_by(Raised(error), 2)


def passed_by(raised: Raised, depth: int) -> Raised:
    """An exception that a callee has given; the frame `depth` above stands for the call."""
    frame = sys._getframe(1 + depth)
    behind = raised.exception.__traceback__
    here = TracebackType(behind, frame, frame.f_lasti, frame.f_lineno or 0)
    raised.exception.__traceback__ = here
    return raised


class Entered(threading.local):
    """The context managers that compiled programs of a thread are in."""

    def __init__(self) -> None:
        self.managers: list[Any] = []


entered = Entered()


def enter_manager(manager: Any) -> Any:
    """`manager.__enter__()`; whoever runs the program leaves it if an exception is raised."""
    value = manager.__enter__()
    entered.managers.append(manager)
    return value


def exit_manager(manager: Any) -> None:
    """`manager.__exit__(None, None, None)`."""
    entered.managers.pop()
    manager.__exit__(None, None, None)


def exit_managers(n: int) -> None:
    """Leave all but the first n."""
    while len(entered.managers) > n:
        exit_manager(entered.managers[-1])


def hold(exception: BaseException, operand: Any) -> None:
    """An exception that a compiled call has raised holds this operand, as `KeyError` holds the key."""


def has_raised(x: Any) -> bool:
    """Did the call raise an exception?"""
    return type(x) is Raised


def exception_of(x: Raised) -> BaseException:
    """The exception that the call raised."""
    return x.exception


def give_raised(exception: BaseException) -> Raised:
    """What a function gives that an exception leaves, where its caller asks for it."""
    return Raised(exception)


def push_exc_info(exception: BaseException) -> BaseException | None:
    """Begin to handle an exception; gives the one that was handled so far."""
    raise AssertionError("an instruction, not a function")


def pop_except(before: BaseException | None) -> None:
    """The exception has been handled; before it, this one was."""
    raise AssertionError("an instruction, not a function")


def reraise(exception: BaseException) -> None:
    """Let an exception pass on, as if nothing had caught it."""
    raise exception


def raise_again() -> None:
    """`raise`: the exception that is being handled."""
    raise


def exception_matches(exception: BaseException, kinds: Any) -> bool:
    """`except kinds:`."""
    check_kinds(kinds if isinstance(kinds, tuple) else (kinds,))
    return _is_meant(exception, kinds)


def _is_meant(exception: BaseException, kinds: Any) -> bool:
    """Is it of one of these kinds? A refusal is only of those of Morula's.

    The plain run raises none, so `except RuntimeError:` does not mean it.
    """
    return _is_one_of(exception, kinds) and (not _is_refusal(exception) or _names_refusals(kinds))


def _is_refusal(exception: BaseException) -> bool:
    """Is it that something cannot be differentiated?"""
    return isinstance(exception, (errors.NoRuleError, errors.UnsupportedError))


def _names_refusals(kinds: Any) -> bool:
    """Is one of these kinds of exceptions Morula's own?"""
    named = kinds if isinstance(kinds, tuple) else (kinds,)
    types = [kind for kind in named if isinstance(kind, type)]
    return any([issubclass(kind, errors.DifferentiationError) for kind in types])


def pass_refusals(exception: BaseException) -> None:
    """`except:` does not mean that something cannot be differentiated."""
    if _is_refusal(exception):
        raise exception


def answer_heeded(leave: Any, answer: Any, exception: BaseException) -> Any:
    """What the `__exit__` of a manager answers: whether the exception ends there.

    A refusal does not, unless `suppress` and the like name such errors.
    """
    if not _is_refusal(exception) or hasattr(answer, "__await__"):
        return answer
    manager = getattr(leave, "__self__", None)
    kinds = getattr(manager, "_exceptions", getattr(manager, "expected_exception", ()))
    return answer if _names_refusals(kinds) else False


def check_kinds(kinds: tuple[Any, ...], of_group: bool = False) -> None:
    """An error if something cannot stand behind `except`, or behind `except*`."""
    for kind in kinds:
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise TypeError(
                "catching classes that do not inherit from BaseException is not allowed"
            )
        if of_group and issubclass(kind, BaseExceptionGroup):
            raise TypeError(
                "catching ExceptionGroup with except* is not allowed. Use except instead."
            )


def _is_one_of(exception: BaseException, kinds: Any) -> bool:
    if isinstance(kinds, tuple):
        return any(_is_one_of(exception, kind) for kind in kinds)
    return kinds in type(exception).__mro__


def split_group(exception: BaseException, kinds: Any) -> tuple[Any, Any]:
    """`except* kinds:`: the part of an exception group that matches, and the rest."""
    check_kinds(kinds if isinstance(kinds, tuple) else (kinds,), of_group=True)
    if _is_meant(exception, kinds):
        if isinstance(exception, BaseExceptionGroup):
            return None, exception
        group: BaseExceptionGroup[BaseException] = BaseExceptionGroup("", [exception])
        return None, group
    if isinstance(exception, BaseExceptionGroup):
        match, rest = exception.split(kinds)
        return rest, match
    return exception, None


def regroup(original: BaseException, raised: list[BaseException | None]) -> BaseException | None:
    """What goes on behind the clauses of `except*`: what they raised, and what none of them took."""
    if not isinstance(original, BaseExceptionGroup):
        return raised[-1]
    left = [e for e in raised if e is not None]
    new = [e for e in left if not _is_part_of(e, original)]
    leaves = {id(leaf) for e in left if _is_part_of(e, original) for leaf in leaves_of(e)}
    rest = original.subgroup(lambda e: id(e) in leaves) if leaves else None
    if not new:
        return rest
    if rest is not None:
        new.append(rest)
    return new[0] if len(new) == 1 else BaseExceptionGroup("", new)


def _is_part_of(exception: BaseException, original: BaseException) -> bool:
    """Does it come from splitting the original?"""
    return (
        exception.__traceback__ is original.__traceback__
        and exception.__cause__ is original.__cause__
        and exception.__context__ is original.__context__
        and getattr(exception, "__notes__", None) is getattr(original, "__notes__", None)
    )


def leaves_of(exception: BaseException) -> list[BaseException]:
    """The exceptions in a group, and in groups in it."""
    if not isinstance(exception, BaseExceptionGroup):
        return [exception]
    return [leaf for e in exception.exceptions for leaf in leaves_of(e)]


def special_method(x: Any, name: str) -> Any:
    """A method as the interpreter looks for it: in the class, not in the object.

    Raises:
        TypeError: there is none; the message is that of the `with` statement.
    """
    for base in type(x).__mro__:
        if name in base.__dict__:
            found = base.__dict__[name]
            bind = getattr(type(found), "__get__", None)
            return found if bind is None else bind(found, x, type(x))
    manager = "asynchronous context manager" if name.startswith("__a") else "context manager"
    missed = f" (missed {name} method)" if name in ("__exit__", "__aexit__") else ""
    raise TypeError(f"{type(x).__name__!r} object does not support the {manager} protocol{missed}")
