"""Lists that one call reads where they are written down.

    np.stack([a, b]), x[[0, 2]], x[[0, 2], i] = 1.0, max([a, b])

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
from morula.rules.buffers import add_at

JOINED = (
    np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, np.linalg.multi_dot,
)  # fmt: skip
CONVERTED = (np.array, np.asarray, np.asanyarray)
READS = {id(f): f for f in (*JOINED, *CONVERTED, *UNARY, *BINARY, *FIRST, *OF_TWO)}
INDEXED = (operator.getitem, operator.setitem, add_at, np.put)
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
        if f in INDEXED:
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
        """Whole numbers, or truth values, that are an index are an array."""
        of, index, *others = call.args
        if type(index) is not Var or not self.is_array(of):
            return False
        if index in self.tuples:
            return self.is_index_only(index) and self.take_parts(self.tuples[index])
        found = self.as_array(index)
        if found is not None:
            call.args = (of, found, *others)
        return found is not None

    def take_parts(self, index: Any) -> bool:
        """The same for the parts of an index."""
        found = [self.as_array(part) for part in index.args]
        index.args = tuple([x if y is None else y for x, y in zip(index.args, found, strict=True)])
        return any(x is not None for x in found)

    def as_array(self, x: Any) -> Any:
        """The constant array that a list in an index means; None: it may be another list."""
        made, extended = self.made.get(x), self.extended.get(x)
        if made is None or not self.is_index_only(x, extended is not None):
            return None
        items = made.args
        if extended is not None and type(extended.args[1]) is Const:
            items = (*items, *[Const(v) for v in extended.args[1].value])
        types = {type(x.value) if type(x) is Const else None for x in items}
        if types not in ({int}, {bool}):
            return None
        return Const(np.array([x.value for x in items]))

    def is_index_only(self, x: Any, extended: bool = False) -> bool:
        """Is a list or a tuple nothing but an index of arrays, or a part of one?"""
        found = int(extended)
        for call in self.s.ir.calls():
            if call.primitive in INDEXED and self.is_array(call.args[0]):
                found += call.args[1] is x
            elif call.primitive is primitives.build_tuple and x in call.args:
                found += call.args.count(x) if self.is_index_only(call.out) else 0
        return found == self.uses[x]

    def is_array(self, x: Any) -> bool:
        """Is it known to be a plain array?"""
        k = known(self.s.value(x))
        return k is not None and k.type is np.ndarray


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
