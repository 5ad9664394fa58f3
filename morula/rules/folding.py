"""What the specialiser may compute ahead: products with the cotangent "one" that a gradient begins with.

Tests: tests/rules/test_folding.py
"""

import operator
from typing import Any

from morula.core.extend import folds

EXACT = (float,)


def is_one(x: Any) -> bool:
    """Is the operand the constant 1.0?"""
    value = getattr(x, "value", None)
    return type(value) is float and value == 1.0


@folds(operator.mul)
def _(f: Any, call: Any) -> Any:
    """1.0 * x and x * 1.0 are x, bit for bit, where x is a float."""
    a, b = call.args
    if is_one(a) and f.types(b) in EXACT:
        return b
    if is_one(b) and f.types(a) in EXACT:
        return a
    return None
