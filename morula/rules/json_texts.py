"""The module json: text is constant, and what is read from it too, where no function makes it.

Tests: tests/rules/test_texts.py, tests/rules/test_lossy.py
"""

from __future__ import annotations

import json
from typing import Any

from morula.core.extend import ZERO, non_differentiable, opaque, resolves
from morula.rules.lossy import READING_OBJECTS

non_differentiable(json.dumps, json.dump)

Scanner = type(json.JSONDecoder().scan_once)  # type: ignore[attr-defined]
CONSTANT = (None, float, int)
READING_OBJECTS.append(Scanner)


@resolves(Scanner)
def scan(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Read one value of a text; who makes numbers with functions of their own gets an error."""
    hooks = (fn.object_hook, fn.object_pairs_hook, fn.parse_float, fn.parse_int)
    if any(hook not in CONSTANT for hook in hooks):
        return opaque(fn, args, kwargs)
    return fn(*args, **kwargs), lambda ȳ: (ZERO,) * (1 + len(args) + len(kwargs))
