"""The rules: every piece of meaning, one file per kind of value."""

from morula.rules import (
    arrays,
    boxes,
    builtins,
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
    "exact",
    "folding",
    "mathematics",
    "numbers",
    "operators",
]
