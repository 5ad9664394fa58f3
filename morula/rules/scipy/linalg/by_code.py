"""Rules of functions that equal a program of functions with rules."""

from __future__ import annotations

from typing import Any

from morula.core.extend import call, rrule
from morula.rules.arrays.types import Anything


def by_code(primal: Any, code: Any) -> None:
    """Register a rule for a function of positional arguments that equals `code`."""

    @rrule(primal)
    def _(*args: Anything):
        def code_pullback(ȳ):
            _, back = call(code, *args)
            return tuple(back(ȳ)[1:])

        return primal(*args), code_pullback
