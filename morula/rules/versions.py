"""What the installed version of a library has of the functions that came to it later than others.

Tests: tests/rules/test_versions.py
"""

from __future__ import annotations

from types import ModuleType
from typing import Any


def present(module: ModuleType | type, names: str) -> list[Any]:
    """Those of the named things, which a text lists, that this version of a module has."""
    return [getattr(module, name) for name in names.split() if hasattr(module, name)]
