"""Rules of functions that equal a program of functions with rules, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from morula.core.extend import UnsupportedError, call, non_differentiable, partial_functions, rrule
from morula.rules.arrays.types import Anything


def refuse_stack(primal: Any, a: Any, ndim: int = 2) -> None:
    """Refuse more than one matrix, where the derivative is that of a single one."""
    if np.ndim(a) > ndim:
        raise UnsupportedError(
            f"scipy.linalg.{primal.__name__} of a stack has no derivative here: call it for one "
            "after the other"
        )


non_differentiable(refuse_stack)
partial_functions(refuse_stack)


def by_code(primal: Any, code: Any) -> None:
    """Register a rule for a function of positional arguments that equals `code`."""

    @rrule(primal)
    def _(*args: Anything):
        def code_pullback(ȳ):
            _, back = call(code, *args)
            return tuple(back(ȳ)[1:])

        return primal(*args), code_pullback
