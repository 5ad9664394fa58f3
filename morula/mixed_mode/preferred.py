"""Functions whose derivatives reverse mode takes by forward mode, wherever they are called.

Tests: tests/mixed_mode/test_jacobians.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from morula.core.cotangents import NONE, ZERO, Thunk
from morula.core.errors import UnsupportedError, qualified_name
from morula.core.general import call
from morula.core.registry import non_differentiable
from morula.mixed_mode.jacobians import forwarddiff
from morula.mixed_mode.push import push, pushes
from morula.mixed_mode.tangents import Pass
from morula.rules.calls import entry, serves
from morula.rules.vectors import ravel

_F = TypeVar("_F", bound=Callable[..., Any])

CONSTANTS, NUMBERS, OTHERS = range(3)


def prefer_forward(f: _F) -> _F:
    """Let reverse mode differentiate `f` by forward mode, wherever it is called: a decorator.

    Nothing is kept of what happens in `f`, however long it runs: for functions of few numbers with
    long loops. The arguments that are floats, complex numbers or arrays of such are those that it is
    differentiated by; it runs once for each of their entries. Only if the derivative by something
    else is asked for (by what is in a list, a dict or an object, or is captured), `f` is differentiated
    in reverse as well. Integers are constants. The result is a number or an array. `forwarddiff` does
    this for one call.

    Raises:
        TypeError: `f` is no Python function.
        UnsupportedError: in reverse mode, if `f` writes to an array that it is given.

    >>> from morula import gradient
    >>> @prefer_forward
    ... def settled(k, n):
    ...     x = 1.0
    ...     for _ in range(n):
    ...         x -= 0.01 * (x**3 - k)
    ...     return x
    ...
    >>> gradient(settled, 8.0, 1000)
    (0.083333333, 0.0)
    """
    if not isinstance(f, FunctionType):
        raise TypeError(f"prefer_forward takes a Python function, got {type(f).__name__}")

    @functools.wraps(f)
    def preferring(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    @serves(preferring)
    def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = Arguments(args, kwargs)
        numbers, others = tuple(given.values[NUMBERS]), tuple(given.values[OTHERS])
        _, unravel = ravel(numbers)
        y, back = call(in_forward_mode, f, given, unravel, numbers, others)

        def preferring_pullback(ȳ: Any) -> tuple[Any, ...]:
            found = back(ȳ)
            of_each = {NUMBERS: found[4], OTHERS: found[5]}

            def cotangent(kind: int, i: int) -> Any:
                return NONE if kind is CONSTANTS else Thunk(lambda: entry(of_each[kind], i))

            return NONE, *[cotangent(kind, i) for kind, i in given.places]

        return y, preferring_pullback

    @pushes(preferring)
    def _(run: Pass, args: tuple[Any, ...], tangents: tuple[Any, ...], keywords: Any) -> Any:
        return push(run, f, ZERO, args, tangents, keywords)

    return preferring  # type: ignore[return-value]


non_differentiable(prefer_forward)


def kind_of(x: Any) -> int:
    """Is an argument a constant, a number or an array to differentiate by, or something else?"""
    if isinstance(x, (int, np.integer, np.bool_, str, bytes, type(None))):
        return CONSTANTS
    is_array = isinstance(x, np.ndarray) and x.dtype.kind in "fc"
    return NUMBERS if is_array or isinstance(x, (float, complex, np.inexact)) else OTHERS


def check_unwritten(f: Any, v: Any, values: tuple[Any, ...]) -> None:
    """An error if arrays that were given do not hold any more what they held: they were copies."""
    if not np.array_equal(ravel(values)[0], v, equal_nan=True):
        raise UnsupportedError(
            f"{qualified_name(f)}, which prefers forward mode, writes to an array that it is given: "
            "let it work on a copy"
        )


non_differentiable(check_unwritten)


class Arguments:
    """The arguments of a call, sorted by what they are, and how to put such together again."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.n = len(args)
        self.names = tuple(kwargs)
        self.values: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        self.places: list[tuple[int, int]] = []  # of each argument: what it is, and the how-manieth
        for x in (*args, *kwargs.values()):
            kind = kind_of(x)
            self.places.append((kind, len(self.values[kind])))
            self.values[kind].append(x)

    def joined(self, numbers: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[Any, Any]:
        """The arguments by position and by name, with these numbers and others."""
        values = (self.values[CONSTANTS], numbers, others)
        found = [values[kind][i] for kind, i in self.places]
        return found[: self.n], dict(zip(self.names, found[self.n :], strict=True))


def in_forward_mode(
    f: Any, given: Any, unravel: Any, numbers: tuple[Any, ...], others: tuple[Any, ...]
) -> Any:
    """`f` of these arguments; its adjoint by the numbers among them is that of forward mode."""
    v, _ = ravel(numbers)

    def of_vector(v: Any) -> Any:
        values = unravel(v)
        args, kwargs = given.joined(values, others)
        y = f(*args, **kwargs)
        check_unwritten(f, v, values)
        return y

    return forwarddiff(of_vector, v)
