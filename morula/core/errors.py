"""Morula's own errors, one function per message.

An error says what happened, where in the user's source, and the way out. A user's exception is
never wrapped: it keeps its type and traceback and gets a note.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class DifferentiationError(Exception):
    """The common base of Morula's errors."""

    tells_place = False  # whether its text has the user's line


class NoRuleError(DifferentiationError, NotImplementedError):
    """A cotangent reached the result of a callable that has no rule and no Python code."""


class UnsupportedError(DifferentiationError, NotImplementedError):
    """The function uses a construct that is not differentiated yet."""


class OutputError(DifferentiationError, TypeError):
    """The output is not one real number."""


class ArgumentError(DifferentiationError, TypeError):
    """The arguments do not fit the function, or `argnums` does not fit the arguments."""


class RuleError(DifferentiationError, TypeError):
    """A rule, or the pullback that it returned, does not keep to the contract of rules."""


class AmbiguousRuleError(RuleError):
    """Two rules fit the arguments and neither is more specific."""


class ConvergenceError(DifferentiationError, ArithmeticError):
    """An iteration did not converge, or an equation does not determine its solution."""


class NonFiniteError(DifferentiationError, FloatingPointError):
    """Within `debug_nans`: a gradient is not finite."""


class CotangentError(DifferentiationError, ValueError):
    """A cotangent is not in the space of its primal."""


def said_by(fn: Any, name: str) -> Any:
    """An attribute that names an object, or None: what the object has may be any code of its own."""
    try:
        return getattr(fn, name, None)
    except Exception:
        return None


def qualified_name(fn: Any) -> str:
    """The name a user knows a callable by: `numpy.linalg.solve`, `Model.loss`."""
    name = said_by(fn, "__qualname__") or said_by(fn, "__name__")
    if name is None:
        return f"an object of type {qualified_name(type(fn))}"
    owner = getattr(fn, "__objclass__", None)
    module = getattr(owner or fn, "__module__", None)
    if module in (None, "builtins", "__main__"):
        return str(name)
    return f"{str(module).lstrip('_')}.{name}"


def type_names(args: Iterable[Any]) -> str:
    """The types of the arguments as they stand in a message."""
    return ", ".join(type(a).__name__ for a in args)


def no_rule(
    fn: Any,
    args: Iterable[Any],
    where: str = "",
    reason: str = "",
    why: str = "whose result reaches the gradient",
) -> NoRuleError:
    """No rule for a callable that matters."""
    name = qualified_name(fn)
    lines = [f"no reverse rule for {name}({type_names(args)}), {why}"]
    if where:
        lines.append(f"  {where}")
    if reason:
        lines.append(f"  {reason}")
    short = name.rsplit(".", 1)[-1]
    lines.append(
        f"  Ways out: register one with @rrule({short}), see docs/rules.md; or let finite differences "
        f"be the rule, numeric_rule({short}); or put the call in ignore_derivatives(...), if it counts "
        "as constant"
    )
    return NoRuleError("\n".join(lines))


def miscounted(fn: Any, count: int) -> UnsupportedError:
    """A function took a number of arguments that it was thought not to take."""
    return UnsupportedError(
        f"`{qualified_name(fn)}` took {count} arguments, which by its signature it does not take; "
        "no rule was looked for. Call it through a function with an `@rrule` of its own"
    )


def changed_in_place(fn: Any, x: Any) -> UnsupportedError:
    """A callable that cannot be looked into changed a value whose cotangents go by value."""
    return UnsupportedError(
        f"{qualified_name(fn)} changes a {type(x).__name__} in place, which differentiated code "
        f"cannot do yet: call it with a copy, or register a rule with @rrule, see docs/rules.md"
    )


def lost_in_exception(fn: Any) -> UnsupportedError:
    """An exception left a function by way of compiled code, so its cotangents cannot be passed on."""
    return UnsupportedError(
        f"{qualified_name(fn)} was called by compiled code and raised an exception that was caught "
        "outside of it; what it had changed until then cannot be differentiated yet. Way out: handle "
        "the exception in the function itself"
    )


def exception_of_higher_order() -> UnsupportedError:
    """An exception left a function and was caught, in a derivative of a derivative."""
    return UnsupportedError(
        "a function raised an exception that was caught outside of it, which in a derivative of a "
        "derivative cannot be differentiated yet. Way out: handle the exception in the function itself"
    )


def written_behind(fn: Any) -> UnsupportedError:
    """Code that a compiled program calls has written to memory that the program reads."""
    return UnsupportedError(
        f"{qualified_name(fn)}, called from a compiled program, changes a value in place that the "
        "program has at hand as well. Way out: pullback(f, ...) goes by the general path, which "
        "follows this"
    )


def written_in_transpose(fn: Any) -> UnsupportedError:
    """Forward mode by the transpose of a reverse pass, which would have to go through memory."""
    return UnsupportedError(
        f"forward mode cannot follow {qualified_name(fn)}, which runs code that writes to arrays: use "
        "reverse mode, or let that code make new arrays"
    )


def unsupported(construct: str, where: str, hint: str = "") -> UnsupportedError:
    """A construct of the language that is not lowered."""
    text = f"{construct} cannot be differentiated yet\n  {where}"
    return UnsupportedError(text + (f"\n  {hint}" if hint else ""))


def not_scalar(value: Any, function: str, made_at: Iterable[str] = ()) -> OutputError:
    """The output, made at these lines, of a function handed to `gradient` is not one real number."""
    kind = type(value).__name__
    head = f"gradient needs one real number as the output of {function}, which returned "
    if value is None:
        return OutputError(head + "None: is a return statement missing?")
    shape = getattr(value, "shape", None)
    if isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c":
        return OutputError(
            head + f"a complex value ({kind}). Take its real part, its imaginary part or its "
            "absolute value (real, imag, abs), or use pullback with a cotangent of your own"
        )
    if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        return OutputError(
            head
            + "\n  ".join([f"a truth value ({kind}): a comparison made it", *made_at])
            + "\n  Return what is compared, or use pullback, which accepts any output"
        )
    if shape is not None and shape != ():
        return OutputError(
            head + f"a {kind} of shape {shape}. Reduce it (.sum(), .mean()), or use jacobian "
            "for all of its derivatives, or pullback with a cotangent of the output"
        )
    return OutputError(
        head + f"a {kind}. Return one of its numbers, or use pullback with a cotangent of the "
        "output, or jacobian"
    )


def argnums_out_of_range(fn: Any, argnums: Any, needed: int, given: int) -> ArgumentError:
    """There are too few positional arguments for `argnums`."""
    return ArgumentError(
        f"argnums={argnums!r} needs at least {needed} of them, but {qualified_name(fn)} was called "
        f"with {given} positional argument{'' if given == 1 else 's'}; those passed by keyword count "
        "where argnums names them all"
    )


def wrong_count(rule: str, expected: str, got: int) -> RuleError:
    """A pullback returned the wrong number of cotangents."""
    return RuleError(f"the pullback of {rule} returned {got} cotangents, expected {expected}")


def not_a_tuple(rule: str, got: Any) -> RuleError:
    """A pullback returned something that is not a tuple."""
    return RuleError(
        f"the pullback of {rule} returned a {type(got).__name__}, expected a tuple with one "
        "cotangent per parameter of the rule (a 1-tuple for one parameter)"
    )


def not_a_pair(rule: str, got: Any) -> RuleError:
    """A rule returned something that is not a value and a pullback."""
    return RuleError(
        f"{rule} returned a {type(got).__name__}, expected a tuple of the value and its pullback"
    )


def ambiguous(primal: Any, args: Iterable[Any], candidates: Iterable[str]) -> AmbiguousRuleError:
    """Two rules fit and neither is more specific."""
    listed = "\n  ".join(candidates)
    return AmbiguousRuleError(
        f"more than one rule for {qualified_name(primal)}({type_names(args)}) fits, and none is "
        f"the most specific:\n  {listed}\n  Way out: register one for the common types of these"
    )


def wrong_space(what: str, expected: str, got: str) -> CotangentError:
    """A cotangent of the wrong shape or kind."""
    return CotangentError(f"{what} is {got}, expected {expected}")
