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

from morula.core.extend import call
from morula.rules.arrays.inplace import refuse
from morula.rules.calls import serves


def derivative_of(*primals: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a Python function tell the derivative of callables; the values are theirs."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        @serves(*primals)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if kwargs.get("out") is not None:
                raise refuse(f"np.{fn.__name__} with out=")
            y = fn(*args, **kwargs)
            return y, call(body, *args, **kwargs)[1]

        return body

    return register


def instead_of(*primals: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a Python function run in the place of callables."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        @serves(*primals)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return call(body, *args, **kwargs)

        return body

    return register
