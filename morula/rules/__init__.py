"""The rules: every piece of meaning, one file per kind of value."""

from morula.rules import (
    arrays,
    boxes,
    builtins,
    calls,
    containers,
    exact,
    folding,
    functional,
    iteration,
    linalg,
    lists,
    mathematics,
    meta,
    numbers,
    objects,
    operators,
)

__all__ = [
    "arrays",
    "boxes",
    "builtins",
    "calls",
    "containers",
    "exact",
    "folding",
    "functional",
    "iteration",
    "linalg",
    "lists",
    "mathematics",
    "meta",
    "numbers",
    "objects",
    "operators",
]
