"""SymPy's numbers are numbers like others; what else SymPy makes of numbers has no derivative here.

SymPy computes with digits and builds expressions, through which no derivative can be followed: its
code is not looked into, and a cotangent that reaches what it has made is an error. What
`sympy.lambdify` gives is ordinary Python.
Tests: tests/interop/test_sympy.py
"""

from __future__ import annotations

import warnings
from types import FunctionType, MethodType
from typing import Any

import sympy

from morula.core.extend import (
    NONE,
    adjoint_object,
    find_rrule,
    general,
    non_differentiable,
    not_known,
    project_to,
    projector,
    registry,
    rrule,
    stays_general,
)
from morula.mixed_mode.push import opaque as opaque_in_forward_mode
from morula.rules import lossy
from morula.rules.numbers import Anything, Scalar, to_float

REASON = "SymPy computes with digits: call what sympy.lambdify makes of the expression"
SLOPES: dict[Any, Any] = {
    sympy.exp: sympy.exp,
    sympy.log: lambda x: 1 / x,
    sympy.sin: sympy.cos,
    sympy.cos: lambda x: -sympy.sin(x),
    sympy.tan: lambda x: 1 + sympy.tan(x) ** 2,
    sympy.asin: lambda x: (1 - x**2) ** -0.5,
    sympy.acos: lambda x: -((1 - x**2) ** -0.5),
    sympy.atan: lambda x: 1 / (1 + x**2),
    sympy.sinh: sympy.cosh,
    sympy.cosh: sympy.sinh,
    sympy.tanh: lambda x: 1 - sympy.tanh(x) ** 2,
    sympy.sqrt: lambda x: 0.5 * x**-0.5,
}


def to_number(x̄: Any) -> Any:
    """A cotangent as a number of SymPy's."""
    return x̄ if isinstance(x̄, sympy.Number) else sympy.Float(to_float(x̄))


projector.register(sympy.Number, lambda x: to_number)
projector.register(sympy.Basic, lambda x: lambda x̄: x̄)
adjoint_object.register(sympy.Basic, lambda x: None)


@rrule(sympy.Float)
def _(num: Scalar, dps: Anything = None, precision: Anything = None):
    y = sympy.Float(num, dps, precision)
    project = project_to(num)
    return y, lambda ȳ: (project(ȳ), NONE, NONE)


@rrule(sympy.sympify)
def _(a: Scalar):
    project = project_to(a)
    return sympy.sympify(a), lambda ȳ: (project(ȳ),)


@rrule(sympy.Expr.conjugate)
def _(self: sympy.Number):
    return self.conjugate(), lambda ȳ: (ȳ,)


def _has_slope(f: Any, slope: Any) -> None:
    @rrule(f)
    def _(x: sympy.Number):
        def slope_pullback(ȳ):
            return (ȳ * slope(x),)

        return f(x), slope_pullback


for _f, _slope in SLOPES.items():
    _has_slope(_f, _slope)


def is_sympys(fn: Any) -> bool:
    """Is it a function or a class of SymPy's, or an object of such a class?"""
    if type(fn) is MethodType:
        fn = fn.__func__
    home = fn if type(fn) is FunctionType or isinstance(fn, type) else type(fn)
    module = home.__module__
    return type(module) is str and module.partition(".")[0] == "sympy"


def opaque(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that is not looked into."""
    y, back = general.opaque(fn, args, kwargs, REASON, unknown=nobody_knows)  # type: ignore[call-arg]
    note(fn, y, (*args, *kwargs.values()), general.LOSSY)
    return y, back


def nobody_knows(error: Exception, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The cotangents of a callable and its arguments: that of a method is that of its object."""
    fn, *given = values
    owner = fn.__self__ if type(fn) is MethodType else fn if isinstance(fn, sympy.Basic) else None
    return not_known(error, (owner, *given))


def opaque_forward(
    run: Any, fn: Any, ḟ: Any, args: tuple[Any, ...], tangents: Any, keywords: Any
) -> Any:
    """The same in forward mode."""
    y, ẏ = opaque_in_forward_mode(run, fn, ḟ, args, tangents, keywords, REASON)
    note(fn, y, args, run.encodings)
    return y, ẏ


def note(fn: Any, y: Any, values: tuple[Any, ...], texts: dict[int, Any]) -> None:
    """What becomes a text or code has lost the derivatives of the numbers in it."""
    if not any(map(has_floats, (getattr(fn, "__self__", None), *values))):
        return
    lossy.mark(y, texts)
    if type(y) is FunctionType:
        warnings.warn(
            "sympy.lambdify has written real numbers into the code of a function, where they have "
            "lost their derivative: make the function with a symbol in their place",
            stacklevel=2,
        )


def has_floats(x: Any) -> bool:
    """Is it an expression with real numbers in it, or are there some?"""
    if isinstance(x, (tuple, list)):
        return any(map(has_floats, x))
    return isinstance(x, sympy.Basic) and x.has(sympy.Float)


OPAQUE = general.Claim(opaque, opaque_forward)


def claims(fn: Any, values: tuple[Any, ...]) -> Any:
    """What a call of SymPy's means; None where it is another's, or has a rule."""
    if not is_sympys(fn):
        return None
    if type(fn) is MethodType:
        fn, values = fn.__func__, (fn.__self__, *values)
    return OPAQUE if find_rrule(fn, values) is None else None


non_differentiable(is_sympys, note, has_floats)
general.CLAIMS.append(claims)
stays_general.append(is_sympys)
registry.registry.entry(claims).changed()
