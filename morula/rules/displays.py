"""Lists that one call reads where they are written down.

    np.stack([a, b]), x[[0, 2]], max([a, b])

Nobody else sees such a list, and these functions take a tuple for the same. Of a tuple the items are
known one by one, so the program needs no list.
Tests: tests/rules/test_displays.py
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from morula.core.extend import Const, Var, count_uses, known, primitives, rewrites
from morula.rules.arrays.sequences import BINARY, FIRST, OF_TWO, UNARY

JOINED = (
    np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, np.linalg.multi_dot,
)  # fmt: skip
CONVERTED = (np.array, np.asarray, np.asanyarray)
READS = {id(f): f for f in (*JOINED, *CONVERTED, *UNARY, *BINARY, *FIRST, *OF_TWO)}
NUMBERS = (float, complex, np.float64, np.float32, np.complex128, np.complex64)


@rewrites
def read_as_tuples(s: Any) -> bool:
    """Make tuples of lists that one call reads; were there any?"""
    displays = Displays(s)
    return any([displays.rewrite(block, call) for block in s.ir.blocks for call in block.calls])


class Displays:
    """The lists of a program that are made in one place and used in one other."""

    def __init__(self, s: Any) -> None:
        self.s = s
        self.uses = count_uses(s.ir)
        self.made = {c.out: c for c in s.ir.calls() if c.primitive is primitives.build_list}
        self.tuples = {c.out: c for c in s.ir.calls() if c.primitive is primitives.build_tuple}
        self.extended = {
            c.args[0]: c for c in s.ir.calls() if c.primitive is primitives.list_extend
        }

    def rewrite(self, block: Any, call: Any) -> bool:
        """Give a call tuples where it has lists."""
        f = call.primitive
        if f is operator.getitem:
            return self.take_as_array(call)
        if f in (max, min):
            return self.take_one_by_one(call)
        if id(f) not in READS or (f in CONVERTED and not is_of_numbers(call)):
            return False
        return any([self.as_tuple(call, i) for i in range(len(call.args))])

    def as_tuple(self, call: Any, i: int) -> bool:
        """Make a tuple of an operand and of the lists in it."""
        items = self.items_of(call.args[i])
        if items is None:
            return False
        if all(type(x) is Const for x in items):
            args = list(call.args)
            args[i] = Const(tuple([x.value for x in items]))
            call.args = tuple(args)
            return True
        made = self.made[call.args[i]]
        made.fn = Const(primitives.build_tuple)
        for k in range(len(made.args)):
            self.as_tuple(made, k)
        return True

    def items_of(self, x: Any) -> list[Any] | None:
        """The operands that a list is made of, if it is read at one place only."""
        made = self.made.get(x)
        if made is None:
            return None
        extended = self.extended.get(x)
        if extended is None:
            return list(made.args) if self.uses[x] == 1 else None
        constant = extended.args[1]
        if self.uses[x] > 2 or made.args or type(constant) is not Const:
            return None
        return [Const(value) for value in constant.value]

    def take_one_by_one(self, call: Any) -> bool:
        """`max([a, b])`, and `max((a, b))`, is `max(a, b)`."""
        if len(call.args) != 1 or call.keywords:
            return False
        made = self.tuples.get(call.args[0])
        items = self.items_of(call.args[0]) if made is None else made.args
        if items is None or len(items) < 2:
            return False
        call.args = tuple(items)
        return True

    def take_as_array(self, call: Any) -> bool:
        """Whole numbers that are an index are an array."""
        of, index = call.args
        k = known(self.s.value(of))
        items = self.items_of(index) if type(index) is Var else None
        if not items or k is None or k.type is not np.ndarray:
            return False
        if not all(type(x) is Const and type(x.value) is int for x in items):
            return False
        call.args = (of, Const(np.array([x.value for x in items])))
        return True


def is_of_numbers(call: Any) -> bool:
    """Does a conversion make an array of numbers, in which a tuple is no record?"""
    if len(call.args) == 1:
        return True
    return (
        call.keywords == ("dtype",)
        and len(call.args) == 2
        and type(call.args[1]) is Const
        and call.args[1].value in NUMBERS
    )
