"""Forward mode of weak references: the tangents of an object are found by the object itself.

What goes by value (an array) has its tangent beside it, which a reference does not reach: such a
reference goes the way of a call that nothing is known of.
Tests: tests/mixed_mode/test_references.py
"""

from typing import Any
from weakref import ReferenceType

from morula.core.cotangents import ZERO
from morula.mixed_mode.calls import Args, Names
from morula.mixed_mode.push import Both, push, pushes, pushes_type, split_call
from morula.mixed_mode.tangents import Pass
from morula.rules.objects import is_by_identity


def _refer(fn: Any, at: int) -> None:
    @pushes(fn)
    def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
        if not is_by_identity(args[at]):
            return NotImplemented
        return split_call(fn, args, keywords), ZERO


_refer(ReferenceType, 0)
_refer(ReferenceType.__new__, 1)
_refer(ReferenceType.__init__, 1)


@pushes(ReferenceType.__call__)
def _(run: Pass, args: Args, tangents: Args, keywords: Names) -> Any:
    found = ReferenceType.__call__(*args)
    if found is not None and not is_by_identity(found):
        return NotImplemented
    return found, ZERO


@pushes_type(ReferenceType)
def _(run: Pass, fn: Any, ḟ: Any, args: Args, tangents: Args, keywords: Names) -> Both:
    return push(run, ReferenceType.__call__, ZERO, (fn, *args), (ḟ, *tangents), keywords)
