"""Rules of `types.SimpleNamespace`: its construction, by classes derived from it too.

Tests: tests/rules/test_objects.py
"""

import sys
from types import SimpleNamespace
from typing import Any

from morula.core.extend import non_differentiable
from morula.rules.arrays.bodies import instead_of

TAKES_MAPPINGS = sys.version_info >= (3, 13)
non_differentiable(vars(SimpleNamespace)["__new__"])


@instead_of(SimpleNamespace)
def namespace(*mappings, **fields):
    """A namespace of these fields."""
    x = SimpleNamespace.__new__(SimpleNamespace)
    initialise(x, *mappings, **fields)
    return x


@instead_of(vars(SimpleNamespace)["__init__"])
def initialise(self: Any, /, *mappings, **fields):
    """Give a namespace these fields."""
    if len(mappings) > TAKES_MAPPINGS:
        refuse(self, *mappings)
    given = dict(*mappings, **fields)
    for name in given:
        if not isinstance(name, str):
            raise TypeError("keywords must be strings")
    vars(self).update(given)


@non_differentiable
def refuse(x: SimpleNamespace, *mappings: Any) -> None:
    """Raise what Python raises for these arguments."""
    SimpleNamespace.__init__(x, *mappings)
