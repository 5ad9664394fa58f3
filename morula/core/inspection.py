"""Looking at the SSA forms: `code_ir` and `code_adjoint`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from morula.core import errors
from morula.core.bytecode.lower import lower
from morula.core.callables import beyond_parameters, function_of
from morula.core.emit import merge_blocks
from morula.core.general import call as general_call
from morula.core.general import call_from_program, general_plan
from morula.core.interface import family_for
from morula.core.ir import IR, Call, Const, reachable
from morula.core.program import Gradient, with_keywords
from morula.core.reverse import Reversal
from morula.core.source import refuse, source_of
from morula.core.specialise import NotSpecialised
from morula.core.ssa import prune_params


def code_ir(f: Any) -> IR:
    """The SSA form of a Python function, as it was lowered; `print` shows it with source lines.

    Raises:
        ArgumentError: `f` is not a Python function.
        UnsupportedError: `f` uses a construct that is not lowered yet.

    >>> def cube(x):
    ...     return x * x * x
    >>> print(code_ir(cube))  # doctest: +ELLIPSIS
    cube:...
    b0(%0.x):
        goto b1()
    b1():
        %1 = operator.mul(%0.x, %0.x)...
        %2 = operator.mul(%1, %0.x)...
        return %2
    """
    code = _function(f)
    return lower(code.__code__, code.__globals__).copy()


class AdjointCode:
    """A primal with its adjoint in SSA form: `ir` holds both, `str` shows them.

    `left` are the calls whose meaning is found out when they happen: the line and the callable.
    """

    def __init__(self, ir: IR, kind: str, rebuilt: Callable[[], Gradient] | None = None) -> None:
        self.ir = tidy(ir)
        self.kind = kind
        self.left = [described(c, ir) for c in ir.calls() if c.primitive in RESOLVED_LATE]
        self._rebuilt = rebuilt  # gives the program that takes nothing for granted

    def source(self, name: str | None = None) -> str:
        """The same as the text of a Python module with one function, called `name`.

        It takes the arguments of the function and gives its gradients by the positional ones: one as it
        is, several as a tuple. What the function has captured and the values of global variables are
        those of now. The module imports what the program calls (NumPy, `math`, …) and Morula only
        where the program calls a function of Morula's that is more than a few lines of its own.

        Raises:
            UnsupportedError: the adjoint has no form of its own (in print, its first line says why),
                or holds values that no module could import or write down.

        >>> def area(width, height):
        ...     return width * height
        >>> print(code_adjoint(area, 2.0, 3.0).source())
        \"\"\"The gradient of area, made by Morula.\"\"\"
        <BLANKLINE>
        from __future__ import annotations
        <BLANKLINE>
        <BLANKLINE>
        def gradient_of_area(width, height):
            return (height, width)
        <BLANKLINE>
        """
        if self._rebuilt is None:
            refuse(f"it is {self.kind}")
        gradient = self._rebuilt()
        ir, fn = tidy(gradient.ir), gradient.fn
        late = [described(c, ir) for c in ir.calls() if c.primitive in RESOLVED_LATE]
        if late:
            refuse(f"what the call on {late[0]} does is found out when it happens")
        title = f"The gradient of {fn.__qualname__}, made by Morula."
        signature = with_keywords(fn.__code__, gradient.keywords)
        captured = [cell.cell_contents for cell in fn.__closure__ or ()]
        name = name or f"gradient_of_{fn.__name__.strip('<>')}"
        return source_of(ir, signature, name, title, captured)

    def __str__(self) -> str:
        calls = "1 call is" if len(self.left) == 1 else f"{len(self.left)} calls are"
        title = f"# {self.kind}; {calls} resolved at run time"
        return "\n".join([title, *[f"#   {line}" for line in self.left], str(self.ir)])

    __repr__ = __str__


RESOLVED_LATE = (general_call, call_from_program)


def described(call: Call, ir: IR) -> str:
    """A call that is resolved at run time, for reading: where it is, what is called."""
    callee, inlined = call.args[0], call.position.inlined
    name = (
        errors.qualified_name(callee.value)
        if isinstance(callee, Const)
        else callee.name or repr(callee)
    )
    place = "" if inlined is None else f" of {inlined.code.co_name}"
    line = "between lines" if call.position.line is None else f"line {call.position.line}"
    return f"{line}{place}: {name}"


def code_adjoint(f: Any, /, *args: Any, **kwargs: Any) -> AdjointCode:
    """The SSA form of `gradient(f, *args, **kwargs)`: the primal of `f`, followed by its adjoint.

    It is what the gradient runs: specialised to the types of the arguments where that is possible,
    else the general form. In both there may be calls whose meaning is found out when they happen:
    the first line counts them, the lines behind it name them.

    Raises:
        ArgumentError: there is no Python function that calling `f` runs.
        TypeError: `f` cannot be called with these arguments.
    """
    target = function_of(f)
    if target is None:
        raise no_code(f)
    function, before, named = target
    args, kwargs = (*before, *args), {**named, **kwargs}
    inspect.signature(function).bind(*args, **kwargs)
    wanted = tuple(range(len(before), len(args)))
    others = beyond_parameters(function.__code__, len(args), kwargs)
    family = family_for(function, wanted, False, len(wanted) == 1, False, others or ())
    try:
        if family is None:
            raise NotSpecialised("it has a rule, or what it does is done later")
        built, given = family.built, family.by_parameter(function, args, kwargs)
        return AdjointCode(
            built(function, given).ir,
            "specialised to the types of the arguments",
            lambda: built(function, given, careful=True),
        )
    except (NotSpecialised, errors.UnsupportedError) as reason:
        reversal = Reversal(lower(function.__code__, function.__globals__), general_plan)
        reversal.build()
        reversal.resolve()
        return AdjointCode(reversal.ir, f"general, because: {reason}")


def tidy(ir: IR) -> IR:
    """The same without what is there for emission only."""
    ir.kept = []
    ir.blocks = reachable(ir)
    prune_params(ir)
    merge_blocks(ir)
    return ir


def no_code(f: Any) -> errors.ArgumentError:
    """What is said of a callable that is not written in Python."""
    return errors.ArgumentError(
        f"{errors.qualified_name(f)} is not a Python function: it has no code to look at"
    )


def _function(f: Any) -> FunctionType:
    while not isinstance(f, FunctionType):
        inner = getattr(f, "__func__", None) or getattr(f, "func", None)
        if inner is None:
            raise no_code(f)
        f = inner
    return f
