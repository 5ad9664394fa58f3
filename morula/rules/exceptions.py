"""Rules of exceptions: what happens on the way from a call that raised one to who handles it.

An exception is an object; its cotangent is that of its attributes. What a protected region does with
it has none of its own.
Tests: tests/rules/test_exceptions.py
"""

import sys
import traceback
import warnings
from typing import Any

import numpy as np

from morula.core.extend import NONE, call, constant_unless, non_differentiable, patterns, protected
from morula.rules.arrays.bodies import instead_of
from morula.rules.calls import serves
from morula.rules.objects import asks_for_text, types_within

non_differentiable(
    protected.has_raised,
    protected.exception_of,
    protected.give_raised,
    protected.push_exc_info,
    protected.pop_except,
    protected.reraise,
    protected.raise_again,
    protected.exception_matches,
    protected.pass_refusals,
    protected.answer_heeded,
    protected.split_group,
    protected.regroup,
    patterns.is_sequence,
    patterns.is_mapping,
    patterns.is_instance,
    patterns.matches_itself,
    patterns.positional_names,
    patterns.check_keys,
    BaseException.with_traceback,
    BaseException.add_note,
    sys.exc_info,
    sys.exception,
    *[getattr(traceback, name) for name in traceback.__all__],
)
constant_unless(
    asks_for_text,
    traceback.format_exception,
    traceback.format_exception_only,
    traceback.print_exception,
    traceback.TracebackException,
    types_of=types_within,
)


@serves(protected.special_method)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, name = args
    fn(x, name)  # raises where there is none
    y, back = call(getattr, x, name)
    return y, lambda ȳ: (NONE, back(ȳ)[1], NONE)


@instead_of(sys.exit)
def leave(status=None, /):
    """The exception has what it is given as an attribute, and as an argument."""
    raise SystemExit(status)


# -- managers whose bodies have nothing to do with the numbers ------------------------------------

CONSTANT_MANAGERS = (np.errstate, warnings.catch_warnings)
for _manager in CONSTANT_MANAGERS:
    non_differentiable(_manager, _manager.__enter__, _manager.__exit__)
del _manager
