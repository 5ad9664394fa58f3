"""Looking at the SSA forms: `code_ir` and `code_adjoint`."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

from morula.core import errors
from morula.core.bytecode.lower import lower
from morula.core.emit import merge_blocks
from morula.core.general import general_plan
from morula.core.ir import IR, Call, Operand, reachable
from morula.core.places import Place
from morula.core.program import Gradient
from morula.core.reverse import Reversal
from morula.core.specialise import NotSpecialised
from morula.core.ssa import prune_params
from morula.core.values import argument_value


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
    """A primal with its adjoint in SSA form: `ir` holds both, `str` shows them."""

    def __init__(self, ir: IR, kind: str) -> None:
        self.ir = ir
        self.kind = kind

    def __str__(self) -> str:
        return f"# {self.kind}\n{self.ir}"

    __repr__ = __str__


def code_adjoint(f: Any, *args: Any) -> AdjointCode:
    """The SSA form of the gradient of `f` at these arguments: its primal, followed by its adjoint.

    It is what the gradient runs: specialised to the types of the arguments where that is possible,
    else the general form, in which calls are resolved when they happen.
    """
    function = _function(f)
    if isinstance(f, MethodType):
        args = (f.__self__, *args)
    return adjoint_of(function, args, True)


def adjoint_of(function: FunctionType, args: tuple[Any, ...], by_bodies: bool) -> AdjointCode:
    """The same, with functions in the place of others or without."""
    gradient = Gradient(
        function,
        [argument_value(a) for a in args],
        range(len(args)),
        False,
        len(args) == 1,
        examples=args,
        no_exceptions=True,
        by_bodies=by_bodies,
    )
    try:
        return AdjointCode(_tidy(gradient.build()), "specialised to the types of the arguments")
    except (NotSpecialised, errors.UnsupportedError) as reason:
        if by_bodies and gradient.has_bodies:
            return adjoint_of(function, args, False)
        reversal = Reversal(lower(function.__code__, function.__globals__), general_plan)
        reversal.build()
        reversal.resolve()
        return AdjointCode(_tidy(reversal.ir), f"general, because: {reason}")


def lines_of_result(f: Any) -> list[str]:
    """The lines of the user's source where what `f` returns was made, for messages."""
    try:
        code = _function(f).__code__
        ir = lower(code, _function(f).__globals__)
    except errors.DifferentiationError:
        return []
    lines = {line for call in _makers_of_result(ir) if (line := call.position.line) is not None}
    return [str(Place(code.co_filename, line, code.co_name)) for line in sorted(lines)]


def _makers_of_result(ir: IR) -> list[Call]:
    """The calls that define what is returned, by whatever way it came there."""
    made = {call.out: call for call in ir.calls()}
    incoming: dict[Operand, list[Operand]] = {}
    returned: list[Operand] = []
    for block in ir.blocks:
        for branch in block.branches:
            if branch.block is None:
                returned += branch.args
            else:
                for param, x in zip(branch.block.params, branch.args, strict=True):
                    incoming.setdefault(param, []).append(x)
    seen: set[Operand] = set()
    while returned:
        x = returned.pop()
        if x not in seen:
            seen.add(x)
            returned += incoming.get(x, [])
    return [call for out, call in made.items() if out in seen]


def _tidy(ir: IR) -> IR:
    ir.kept = []
    ir.blocks = reachable(ir)
    prune_params(ir)
    merge_blocks(ir)
    return ir


def _function(f: Any) -> FunctionType:
    while not isinstance(f, FunctionType):
        inner = getattr(f, "__func__", None) or getattr(f, "func", None)
        if inner is None:
            raise errors.ArgumentError(
                f"{errors.qualified_name(f)} is not a Python function: it has no code to look at"
            )
        f = inner
    return f
