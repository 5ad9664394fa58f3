"""The rules: every piece of meaning, one file per kind of value."""

from morula.rules import boxes, folding, mathematics, numbers, operators

__all__ = ["boxes", "folding", "mathematics", "numbers", "operators"]
