"""`f(*args, **kwargs)` with arguments that are known one by one becomes an ordinary call.

The tuple, the list and the dicts that such a call puts together are followed back to the displays
that they began with; nothing else may change or hold them.
"""

from __future__ import annotations

from morula.core.ir import IR, Block, Call, Const, Operand, substitute
from morula.core.primitives import (
    apply,
    as_tuple,
    build_list,
    build_map,
    build_tuple,
    dict_merge,
    list_append,
    list_extend,
    own_keywords,
)


def spread_arguments(ir: IR) -> bool:
    """Rewrite one such call; was there one?"""
    calls = [(block, c) for block in ir.blocks for c in block.calls]
    if not any(c.primitive in (apply, own_keywords) for _, c in calls):
        return False
    s = Spread(ir)
    return any(s.rewrite(block, c) for block, c in calls)


class Spread:
    """What is put together for calls."""

    def __init__(self, ir: IR) -> None:
        self.ir = ir
        self.made: dict[Operand, Call] = {}
        self.place: dict[Call, tuple[Block, int]] = {}
        self.readers: dict[Operand, list[Call]] = {}
        self.held: set[Operand] = set()  # what is passed on to other blocks
        self.asked: set[Operand | None] = set()  # what branches depend on
        self.displays: list[Call] = []  # that a call is followed back to
        self.gone: list[Call] = []  # what has no purpose when the call is rewritten
        for block in ir.blocks:
            for i, call in enumerate(block.calls):
                self.made[call.out] = call
                self.place[call] = block, i
                for x in {*call.operands()}:
                    self.readers.setdefault(x, []).append(call)
            for branch in block.branches:
                self.held.update(branch.args)
                self.asked.add(branch.cond)

    def rewrite(self, block: Block, call: Call) -> bool:
        """Give a call its arguments one by one, if they are known."""
        if call.primitive is own_keywords:
            return self.take_over(block, call)
        if call.primitive is not apply:
            return False
        self.displays, self.gone = [], []
        fn, args, kwargs = call.args
        positional = self.items(args, call)
        named = None if positional is None else self.pairs(kwargs, call)
        if positional is None or named is None:
            return False
        call.fn, call.args = fn, (*positional, *[x for _, x in named])
        call.keywords = tuple([name for name, _ in named])
        read_by = [call, *self.gone]
        unread = [
            d
            for d in self.displays
            if d.out not in self.asked and all(c in read_by for c in self.readers[d.out])
        ]
        for other in (*self.gone, *unread):
            home, _ = self.place[other]
            home.calls.remove(other)
        return True

    def take_over(self, block: Block, call: Call) -> bool:
        """The dict of `**kwargs` that the call of an inlined function has made."""
        made = self.made.get(call.args[0])
        if made is None or made.primitive is not build_map or made.out in self.held:
            return False
        if self.readers[made.out] != [call]:
            return False
        block.calls.remove(call)
        substitute(self.ir, {call.out: made.out})
        return True

    def items(self, x: Operand, reader: Call) -> list[Operand] | None:
        """The items of a tuple, or of a list that nothing but `reader` reads."""
        made = self.made.get(x)
        if type(x) is Const and type(x.value) is tuple:
            return [Const(item) for item in x.value]
        if made is None:
            return None
        if made.primitive is build_tuple:
            return list(made.args)
        if x in self.held:
            return None
        if made.primitive is as_tuple and self.readers[x] == [reader]:
            self.gone.append(made)
            return self.items(made.args[0], made)
        if made.primitive is not build_list:
            return None
        self.displays.append(made)
        found = list(made.args)
        for change in self.readers[x]:
            if change is reader:
                continue
            if not self.is_between(made, change, reader) or change.args[0] is not x:
                return None
            more: list[Operand] | None = None
            if change.primitive is list_append:
                more = [change.args[1]]
            elif change.primitive is list_extend:
                more = self.items(change.args[1], change)
            if more is None or change.args[1] is x:
                return None
            found += more
            self.gone.append(change)
        return found

    def pairs(self, x: Operand, reader: Call) -> list[tuple[str, Operand]] | None:
        """The names and values of a dict that only calls like `reader` read."""
        made = self.made.get(x)
        if made is None or made.primitive is not build_map or x in self.held:
            return None
        found = []
        for name, value in zip(made.args[::2], made.args[1::2], strict=True):
            if type(name) is not Const or type(name.value) is not str:
                return None
            found.append((name.value, value))
        self.displays.append(made)
        for other in self.readers[x]:
            if other is reader or (other.primitive is dict_merge and other.args[0] is not x):
                continue
            if other.primitive is not dict_merge or not self.is_between(made, other, reader):
                return None
            more = self.pairs(other.args[1], other)
            if more is None:
                return None
            found += more
            self.gone.append(other)
        return found if len(dict(found)) == len(found) else None

    def is_between(self, first: Call, call: Call, last: Call) -> bool:
        """Do the three calls come one after the other, in one block?"""
        (a, i), (b, j), (c, k) = (self.place[x] for x in (first, call, last))
        return a is b is c and i < j < k
