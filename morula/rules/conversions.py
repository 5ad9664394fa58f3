"""What compiled programs convert by a call of its own: lists and tuples of numbers, to arrays.

    np.dot(x, [1.0, a]), x * (a, b), np.linalg.norm([a, b]), np.float64(a).item()

NumPy does so itself. As a call, the conversion has a derivative by the numbers, one by one, and the
function is then one of arrays.
Tests: tests/rules/test_conversions.py
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from morula.core.extend import NEVER, Call, Const, Known, known, possibilities, rewrites
from morula.rules.arrays.sequences import CONVERTED, OPERATORS
from morula.rules.displays import Displays
from morula.rules.list_types import are_floats, is_array, items_of

READERS = {id(f): (f, places) for f, places in CONVERTED.items()}
NUMBERS = frozenset(map(Known, (float, int, np.float64)))


@rewrites
def convert_sequences(s: Any) -> bool:
    """Convert what functions of arrays are given as lists or tuples of numbers; was there any?"""
    conversions = Conversions(s)
    found = [(block, call) for block in s.ir.blocks for call in block.calls]
    return any([conversions.rewrite(block, call) for block, call in found])


class Conversions:
    """The lists and tuples of numbers in a program."""

    def __init__(self, s: Any) -> None:
        self.s = s
        self.displays = Displays(s)

    def rewrite(self, block: Any, call: Call) -> bool:
        """Convert the operands of a call."""
        f = call.primitive
        if f is np.generic.item and self.is_float64(call):
            call.fn = Const(float)
            return True
        _, places = READERS.get(id(f), (None, ()))
        if f in OPERATORS and not any(self.is_array(x) for x in call.args):
            return False
        n = len(call.args) - len(call.keywords)
        found = [i for i in places if i < n and self.makes_array(call.args[i])]
        args = list(call.args)
        for i in found:
            args[i] = self.s.ir.var()
            made = Call(args[i], Const(np.asarray), (call.args[i],), (), call.position)
            block.calls.insert(block.calls.index(call), made)
        call.args = tuple(args)
        return bool(found)

    def is_float64(self, call: Call) -> bool:
        """Is a method without arguments one of a float of NumPy's?"""
        return len(call.args) == 1 and known(self.s.value(call.args[0])) == Known(np.float64)

    def is_array(self, x: Any) -> bool:
        """Is it known to be a plain array?"""
        return is_array(known(self.s.value(x)))

    def makes_array(self, x: Any) -> bool:
        """Is it a list or a tuple of numbers and arrays, or of such?"""
        if type(x) is Const:
            return isinstance(x.value, tuple) and all(map(is_number_or_more, x.value))
        parts = self.displays.items_of(x)
        if parts is None and x in self.displays.tuples:
            parts = self.displays.tuples[x].args
        if parts is not None:
            return bool(parts) and all(map(self.is_part, parts))
        value = self.s.value(x)
        items, k = items_of(value), known(value)
        if items is not None:
            return are_floats(items.value)
        return type(k) is Known and k.type is tuple and bool(k.detail) and {*k.detail} <= NUMBERS

    def is_part(self, x: Any) -> bool:
        """Is it a number, an array, or what makes one?"""
        if type(x) is Const and is_number(x.value):
            return True
        value = self.s.value(x)
        if value is None or value is NEVER:
            return False
        kinds = possibilities(value)
        return kinds <= NUMBERS or self.is_array(x) or self.makes_array(x)


def is_number(x: Any) -> bool:
    """Is it one of which NumPy makes no object?"""
    return isinstance(x, (numbers.Real, complex)) and type(x).__module__ in ("builtins", "numpy")


def is_number_or_more(x: Any) -> bool:
    """Is it a number, or a tuple of such?"""
    return is_number(x) or (isinstance(x, tuple) and all(map(is_number_or_more, x)))
