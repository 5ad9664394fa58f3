"""The rules: every piece of meaning, one file per kind of value."""

from morula.rules import boxes, mathematics, numbers, operators

__all__ = ["boxes", "mathematics", "numbers", "operators"]
