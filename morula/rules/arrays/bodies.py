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
from typing import Any

from morula.core.extend import accumulate, call, from_memory, unthunk
from morula.rules.arrays.outs import call_with_out
from morula.rules.calls import runs_body, serves, tells_derivative


def derivative_of(*primals: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a Python function tell the derivative of callables; the values are theirs."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        @serves(*primals, passing=True)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            def plain(*args: Any, **kwargs: Any) -> Any:
                y = fn(*args, **kwargs)
                given = (*args, *kwargs.values())
                return y, taking_memory(y, given, call(body, *args, **kwargs)[1])

            return call_with_out(fn, args, kwargs, plain) or plain(*args, **kwargs)

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
        @serves(*primals, passing=True)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return call(body, *args, **kwargs)

        runs_body(body, *primals)
        return body

    return register
