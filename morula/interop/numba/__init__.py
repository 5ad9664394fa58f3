"""Numba: gradients of compiled functions, and gradients that are compiled.

Functions of `numba.njit` inside a program are differentiated without anything from here (`rules.py`).
What is here gives the gradient of a function of numbers and arrays as one function that Numba compiles.
Tests: tests/interop/test_numba.py
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

from morula.core import errors
from morula.core.callables import function_of, positions_of
from morula.core.compiled import VARARGS, VARKEYWORDS
from morula.core.interface import grad, value_and_grad
from morula.core.values import argument_value, coarsened
from morula.interop.numba import rules
from morula.interop.numba.programs import Program, not_compiled

__all__ = ["compile_gradient", "njit_grad", "njit_value_and_grad", "rules"]


def njit_grad(f: Callable[..., Any], argnums: Any = 0, **options: Any) -> Callable[..., Any]:
    """The gradient of `f`, as `morula.grad` gives it, compiled by Numba for the types of a call.

    Args:
        f: a function of numbers, arrays and tuples of these that gives one real number; plain, or
            compiled by `numba.njit` itself.
        argnums: by which arguments, as in `morula.grad`.
        options: for `numba.njit`: `fastmath=`, `boundscheck=`, `nogil=`, …
    Returns:
        A function with the arguments of `f`. Globals and captured variables are constants, as they
        are in all functions that Numba compiles.
    Raises:
        UnsupportedError: the gradient is no program that Numba compiles; it names the construct.
    """
    compiled = _compiled_value_and_grad(f, argnums, options)

    def gradient_alone(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return compiled(args, kwargs)[1]

    return rules.CompiledGradient(gradient_alone, grad(f, argnums), f)


def njit_value_and_grad(
    f: Callable[..., Any], argnums: Any = 0, **options: Any
) -> Callable[..., Any]:
    """The value and the gradient of `f`, compiled; see `njit_grad`."""
    compiled = _compiled_value_and_grad(f, argnums, options)
    return rules.CompiledGradient(compiled, value_and_grad(f, argnums), f)


def compile_gradient(
    f: Callable[..., Any], *args: Any, argnums: Any = 0, **options: Any
) -> Dispatcher:
    """The function of Numba that gives the value and the gradient for arguments like these.

    It takes all arguments of `f` by position, and other compiled functions may call it:

    >>> import numba
    >>> cube = compile_gradient(lambda x: x * x * x, 1.0)
    >>> @numba.njit
    ... def newton(x):
    ...     for _ in range(20):
    ...         y, slope = cube(x)
    ...         x -= (y - 2.0) / slope
    ...     return x
    >>> newton(1.0) ** 3
    2.0
    """
    function, args = _as_called(f, args, {})
    return _compile(function, args, argnums, options)


def _compiled_value_and_grad(f: Callable[..., Any], argnums: Any, options: Any) -> Any:
    made: dict[Any, Dispatcher] = {}

    def compiled(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function, args = _as_called(f, args, kwargs)
        key = tuple([coarsened(argument_value(a)) for a in args])
        if key not in made:
            made[key] = _compile(function, args, argnums, options)
        try:
            return made[key](*args)
        except NumbaError as error:
            raise not_compiled(function, str(error)) from error

    return compiled


def _compile(function: Any, args: tuple[Any, ...], argnums: Any, options: Any) -> Dispatcher:
    wanted = tuple(positions_of(argnums, len(args), function))
    knowns = [coarsened(argument_value(a)) for a in args]
    single = isinstance(argnums, int)
    return numba.njit(**options)(Program(function, knowns, wanted, True, single).function())


def _as_called(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """The Python function that is run, and its arguments by position."""
    target = function_of(f)
    if target is None or target[1] or target[2]:
        raise errors.ArgumentError(f"{errors.qualified_name(f)} is not a Python function")
    function = target[0]
    code = function.__code__
    if code.co_flags & (VARARGS | VARKEYWORDS) or code.co_kwonlyargcount:
        raise not_compiled(function, "it takes *args, **kwargs or arguments by keyword only")
    if len(args) == code.co_argcount and not kwargs:
        return function, args
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return function, bound.args
