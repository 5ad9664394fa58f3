"""The rules: every piece of meaning, one file per kind of value."""

from morula.rules import (
    arrays,
    boxes,
    builtins,
    objects,
    meta,
    iteration,
    functional,
    containers,
    calls,
    exact,
    folding,
    mathematics,
    numbers,
    operators,
)

__all__ = [
    "arrays",
    "boxes",
    "builtins",
    "objects",
    "meta",
    "iteration",
    "functional",
    "containers",
    "calls",
    "exact",
    "folding",
    "mathematics",
    "numbers",
    "operators",
]
