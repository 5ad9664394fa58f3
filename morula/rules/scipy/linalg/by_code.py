"""Rules of functions that equal a program of functions with rules."""

from __future__ import annotations

from typing import Any

from morula.core.extend import call, is_zero, rrule, unthunk
from morula.rules.arrays.construction import as_it_is, like_sequence
from morula.rules.arrays.sequences import as_array
from morula.rules.arrays.types import Anything


def by_code(primal: Any, code: Any) -> None:
    """Register a rule for a function of positional arguments that equals `code`."""

    @rrule(primal)
    def _(*args: Anything):
        given = tuple([as_it_is(a) for a in args])

        def code_pullback(ȳ):
            _, back = call(code, *[as_array(a) for a in given])
            bars = [unthunk(ā) for ā in back(ȳ)[1:]]
            return tuple(
                [ā if is_zero(ā) else like_sequence(ā, a) for a, ā in zip(given, bars, strict=True)]
            )

        return primal(*args), code_pullback
