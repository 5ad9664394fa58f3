"""Finite differences as the rule of a callable that nobody can look into, where the user asks for it.

    D(h) = (g(x + h) - g(x - h)) / 2h,     D = (4 D(h/2) - D(h)) / 3 + O(h⁴)

for g(x) = Re⟨ȳ, f(x)⟩, one number of x after the other; |D(h/2) - D(h)| / 3 estimates the error of the
better of the two.
Tests: tests/rules/test_numeric.py
"""

from __future__ import annotations

import warnings
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    Rule,
    RuleError,
    Tangent,
    UnsupportedError,
    adjoint_if_any,
    called_whole,
    general,
    gradient_for,
    has_tangent,
    is_zero,
    non_differentiable,
    registry,
    unthunk,
)
from morula.rules.calls import entry, registered, serves
from morula.rules.objects import has_fields, is_by_identity, is_part_of_python
from morula.rules.vectors import Leaf, Node, is_leaf, ravel, raveled

EVALUATIONS = {"forward": 1, "central": 2, "richardson": 4}  # for each number
_numeric: dict[int, Any] = {}


def numeric_rule(
    f: Any = None, *, method: str = "richardson", step: float | None = None, rtol: float = 1e-3
) -> Any:
    """Let finite differences be the reverse rule of a callable without one; also as a decorator.

    This is never done unasked; `why` names the calls. Floating and complex numbers among the
    arguments, in any structure, have derivatives; integers are options and have none. The reverse
    pass calls `f` again, with copies of the arguments: "forward" once, "central" twice,
    "richardson" four times for every number.

    Args:
        f: the callable, which is returned; it must give the same for the same arguments.
        method: "forward" (error O(h)), "central" (O(h²)) or "richardson" (O(h⁴)).
        step: h; by default it is the best one for the method and functions of order one, times
            `max(1, abs(x))`.
        rtol: with "richardson", a larger estimate of the relative error gives a warning.
    Raises:
        RuleError: `f` has a rule, or captures variables, which would not be seen to matter.

    >>> import ctypes, ctypes.util
    >>> from morula import gradient
    >>> cbrt = ctypes.CDLL(ctypes.util.find_library("m")).cbrt
    >>> cbrt.restype, cbrt.argtypes = ctypes.c_double, [ctypes.c_double]
    >>> cbrt = numeric_rule(cbrt)
    >>> gradient(lambda x: cbrt(x) ** 2, 8.0)
    (0.33333333,)
    """
    if method not in EVALUATIONS:
        raise RuleError(f"method must be one of {', '.join(EVALUATIONS)}, got {method!r}")
    if f is None:
        return partial(numeric_rule, method=method, step=step, rtol=rtol)
    check_primal(f)

    @serves(f)
    def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        n, names = len(args), tuple(kwargs)

        def again(*values: Any) -> Any:
            return fn(*values[:n], **dict(zip(names, values[n:], strict=True)))

        def rule(*values: Any) -> Any:
            v, unravel = raveled(list(values), is_floating)
            before = general.held_by(values)
            y = again(*values)
            check_run(before, y)

            def numeric_pullback(ȳ: Any) -> Any:
                w = ravel(dense(y, ȳ))[0].conj()

                def g(v: Any) -> Any:
                    return (w * ravel(again(*unravel(v)))[0]).real.sum()

                return tuple(cotangent_of(unravel.form, slopes_of(g, v, method, step, rtol)))

            return y, numeric_pullback

        values = (*args, *kwargs.values())
        y, back = registry.apply_rule(Rule(f, named_like(rule, f)), values, {})
        return y, lambda ȳ: (NONE, *back(ȳ))

    called_whole(f)
    _numeric[id(f)] = f
    return f


def is_numeric(fn: Any) -> bool:
    """Is its rule one of finite differences?"""
    return id(fn) in _numeric


def check_primal(f: Any) -> None:
    """May it get such a rule?"""
    entry = registry.registry.get(f)
    name = getattr(f, "__qualname__", repr(f))
    if (entry is not None and (entry.reverse is not None or entry.constant)) or (
        registered(f)[0] is not None and not is_numeric(f)
    ):
        raise RuleError(f"{name} has a rule already, which is exact")
    if isinstance(f, FunctionType):
        for variable, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            if may_be_a_point(cell.cell_contents):
                raise RuleError(
                    f"{name} captures {variable!r}, and finite differences by its arguments would not "
                    "see it: make it an argument"
                )


def may_be_a_point(x: Any) -> bool:
    """May a captured value be, or hold, what a derivative is taken by?"""
    if callable(x) or not has_tangent(type(x)):
        return False
    return not (has_fields(type(x)) and is_by_identity(x) and is_part_of_python(type(x)))


def named_like(rule: Any, f: Any) -> Any:
    """The rule, as one that its user is answerable for: what its pullback gives is checked."""
    rule.__module__ = str(getattr(f, "__module__", "__main__"))
    return rule


def check_run(before: Any, y: Any) -> None:
    """Did the function change nothing, and give what differences can be taken of?"""
    for x, _ in general.changes(before):
        raise UnsupportedError(
            f"a function with a numeric rule changes a {type(x).__name__} that it was given: let it "
            "work on a copy"
        )
    if not is_plain(y):
        raise UnsupportedError(
            f"a function with a numeric rule gives a {type(y).__name__}: it must give numbers and "
            "arrays, in tuples, lists and dicts"
        )


def is_plain(y: Any) -> bool:
    """Is it a structure of numbers and arrays?"""
    if isinstance(y, (tuple, list)):
        return all(map(is_plain, y))
    if isinstance(y, dict):
        return all(map(is_plain, y.values()))
    return y is None or isinstance(y, (str, bool, np.bool_)) or is_leaf(y)


def is_floating(x: Any) -> bool:
    """Is it a number, or an array of such, of which differences are taken?"""
    return is_leaf(x) and not isinstance(x, int) and np.asarray(x).dtype.kind not in "iu"


def dense(y: Any, ȳ: Any) -> Any:
    """The cotangent of a plain structure with all of its zeros."""
    ȳ = unthunk(ȳ)
    if isinstance(y, (tuple, list)):
        return [dense(item, entry(ȳ, i)) for i, item in enumerate(y)]
    if isinstance(y, dict):
        return [dense(item, ZERO if is_zero(ȳ) else ȳ[key]) for key, item in y.items()]
    return gradient_for(y, ȳ, adjoint_if_any)


def cotangent_of(form: Any, vector: Any) -> Any:
    """The cotangent of a structure from the vector of its numbers' cotangents."""
    if isinstance(form, Leaf):
        return form.fill(vector, {})
    if not isinstance(form, Node):
        return NONE
    fields = {key: cotangent_of(part, vector) for key, part in form.parts.items()}
    if isinstance(form.primal, list):
        return list(fields.values())
    if isinstance(form.primal, tuple):
        return tuple(fields.values())
    return fields if isinstance(form.primal, dict) else Tangent[type(form.primal)](fields)


def slopes_of(g: Any, v: Any, method: str, step: float | None, rtol: float) -> Any:
    """The derivative of a real function of a vector, in the sense of a cotangent."""
    slopes = [slope(g, v, i, 1.0, method, step, rtol) for i in range(v.size)]
    if v.dtype.kind != "c":
        return np.array(slopes)
    other = [slope(g, v, i, 1j, method, step, rtol) for i in range(v.size)]
    return np.array(slopes) + 1j * np.array(other)


def slope(g: Any, v: Any, i: int, unit: Any, method: str, step: float | None, rtol: float) -> Any:
    """The derivative along one number, real or imaginary."""
    e, h = direction(v, i, unit), step_for(v, i, method, step)
    if method == "forward":
        return (g(v + h * e) - g(v)) / h
    wide = (g(v + h * e) - g(v - h * e)) / (2 * h)
    if method == "central":
        return wide
    fine = (g(v + h / 2 * e) - g(v - h / 2 * e)) / h
    check_error(abs(fine - wide) / 3, fine, rtol)
    return (4 * fine - wide) / 3


def direction(v: Any, i: int, unit: Any) -> Any:
    """The unit vector of the number i."""
    return np.where(np.arange(v.size) == i, unit, 0).astype(v.dtype)


def step_for(v: Any, i: int, method: str, step: float | None) -> float:
    """How far to go."""
    if step is not None:
        return step
    order = EVALUATIONS[method]
    return float(np.finfo(v.dtype).eps ** (1 / (1 + order)) * max(1.0, abs(v[i])))


def check_error(error: Any, slope: Any, rtol: float) -> None:
    """A warning where differences do not agree."""
    if not error <= rtol * max(abs(slope), rtol):
        warnings.warn(
            f"a numeric rule's differences do not agree: {slope:.6g} ± {error:.1g}. Is the function "
            "smooth there? Set step= to where it is",
            RuntimeWarning,
            stacklevel=2,
        )


non_differentiable(
    check_primal, named_like, check_run, is_floating, direction, step_for, check_error
)
