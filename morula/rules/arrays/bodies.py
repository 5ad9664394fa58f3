"""Functions whose derivative is that of a few lines of Python, which compute the same.

    @derivative_of(np.trapezoid)
    def trapezoid(y, x=None, dx=1.0, axis=-1): ...

The value is NumPy's own; the pullback is that of the body, which is written in functions that have
rules, with the parameters of the primal. So every keyword is served, and every order.
Where the arguments contain functions, which are to be called once only, or the result lists, whose
cotangents are found by their identity, the value is the body's too: `instead_of`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from morula.core.extend import accumulate, call, from_memory, unthunk
from morula.rules.arrays.inplace import first_of, refuse, with_out, written_out
from morula.rules.calls import runs_body, serves, tells_derivative


def derivative_of(*primals: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a Python function tell the derivative of callables; the values are theirs."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        names = body.__code__.co_varnames[: body.__code__.co_argcount]
        place = names.index("out") if "out" in names else -1

        @serves(*primals)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if len(args) > place >= 0 and args[place] is not None:
                raise refuse(f"np.{fn.__name__} with an array to write to by position")
            rest = {k: v for k, v in kwargs.items() if k != "out"}
            y = fn(*args, **rest)
            back = taking_memory(y, (*args, *rest.values()), call(body, *args, **rest)[1])
            if "out" not in kwargs:
                return y, back
            if kwargs["out"] is not None:
                write = partial(fn, *args, **kwargs)
                y, back = written_out(y, back, first_of(kwargs["out"]), write)
            return y, partial(with_out, list(kwargs), len(args), 0, back)

        tells_derivative(body, *primals)
        return body

    return register


def taking_memory(y: Any, given: tuple[Any, ...], back: Any) -> Any:
    """The pullback of a new value y, which may be in memory that was written to afterwards."""

    def body_pullback(ȳ):
        return back(unthunk(accumulate(ȳ, from_memory(y, given))))

    return body_pullback


def instead_of(*primals: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a Python function run in the place of callables."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        @serves(*primals)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return call(body, *args, **kwargs)

        runs_body(body, *primals)
        return body

    return register
