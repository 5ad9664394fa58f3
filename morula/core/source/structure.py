"""Blocks as nested statements (after Ramsey, Beyond Relooper, ICFP 2022).

The children of a block in the tree of dominators that several ways lead to stand behind it. Where
Python has no jump for what the graph does, the blocks stand in one loop, by their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from morula.core.cfg import dominates, dominators, loop_body
from morula.core.ir import Block
from morula.core.source.function import UNREACHABLE, WAY_OUT, FunctionText, indented, is_way_out


class Unstructured(Exception):
    """Python has no jump for what the graph does."""


class Place(NamedTuple):
    """Where a statement stands: what follows it, and the loop that it is in."""

    follow: Block | None = None  # control goes on there if nothing is said
    header: Block | None = None  # `continue` leads there
    after: Block | None = None  # `break` leads there
    inside: frozenset[Block] | None = None  # what may stand there: the blocks of the loop

    def before(self, block: Block | None) -> Place:
        """The same, in front of another block."""
        return self._replace(follow=block)

    def holds(self, block: Block) -> bool:
        """May the block stand here?"""
        return self.inside is None or block in self.inside


MOST_ATTEMPTS = 20
Lines = Callable[[], list[str]]


class Structure:
    """The blocks of a function as nested statements."""

    def __init__(self, text: FunctionText) -> None:
        self.text = text
        self.blocks = [b for b in text.ir.blocks if not is_way_out(b)]
        self.order = {b: i for i, b in enumerate(self.blocks)}
        self.parent = dominators(text.ir)
        self.predecessors = text.ir.predecessors()
        self.bodies = {h: self.body_of(h) for h in self.blocks if self.latches(h)}
        self.done: set[Block] = set()
        self.attempts = 0

    def lines(self) -> list[str]:
        """The body of the function.

        Raises:
            Unstructured: Python has no jump for what the graph does.
        """
        lines = self.region(self.text.ir.entry, Place())
        if len(self.done) != len(self.blocks):
            raise Unstructured
        return lines

    def latches(self, header: Block) -> list[Block]:
        """The blocks that lead back to a header."""
        return [p for p, _ in self.predecessors[header] if dominates(self.parent, header, p)]

    def body_of(self, header: Block) -> frozenset[Block]:
        return frozenset(loop_body(header, self.latches(header), self.predecessors))

    def is_join(self, block: Block) -> bool:
        """Do several ways forward lead to it?"""
        return len(self.predecessors[block]) - len(self.latches(block)) > 1

    def joins(self, above: Collection[Block], place: Place) -> list[Block]:
        """The joins next below these blocks in the tree of dominators that stand here, in order."""
        return [
            b
            for b in self.blocks
            if self.parent[b] in above and b not in above and self.is_join(b) and place.holds(b)
        ]

    def region(self, block: Block, place: Place) -> list[str]:
        """A block and what it dominates, up to where the place goes on."""
        if block in self.done:
            raise Unstructured
        self.done.add(block)
        if block in self.bodies:
            return self.loop(block, place)
        return self.then_joins(block, place)

    def then_joins(self, block: Block, place: Place) -> list[str]:
        """A block and its end, behind it the joins that its ways lead to."""
        joins = self.joins([block], place)
        if len(joins) < 2:
            return self.with_joins(block, joins, place)
        return self.first_of(
            lambda: self.with_joins(block, joins, place), lambda: self.once(block, joins, place)
        )

    def once(self, block: Block, joins: list[Block], place: Place) -> list[str]:
        """A loop that runs once, so that `break` leads to the last join from everywhere."""
        *others, last = joins
        lines = self.with_joins(block, others, Place(None, None, last, place.inside))
        return ["while True:", *indented(lines), *self.region(last, place)]

    def with_joins(self, block: Block, joins: list[Block], place: Place) -> list[str]:
        lines = self.text.statements(block)
        lines += self.end(block, place.before(joins[0]) if joins else place)
        return lines + self.in_order(joins, place)

    def in_order(self, joins: list[Block], place: Place) -> list[str]:
        """Joins, each in front of the next."""
        lines: list[str] = []
        for i, join in enumerate(joins):
            lines += self.region(join, place.before(joins[i + 1]) if i + 1 < len(joins) else place)
        return lines

    def end(self, block: Block, place: Place) -> list[str]:
        jump = self.text.jumps[block]
        if not jump.branches:
            return [UNREACHABLE]
        if len(jump.branches) == 2:
            return [*self.text.step(block), *self.fork(block, place)]
        target = jump.branches[0].block
        if target is None:
            return [self.text.returned(block)]
        return [*self.text.passing(block), *self.go(target, place)]

    def fork(self, block: Block, place: Place) -> list[str]:
        yes, no = (self.go(b.block, place) for b in self.text.jumps[block].branches if b.block)
        if not yes and not no:
            return []
        if not yes:
            return [f"if {self.text.condition(block, negated=True)}:", *indented(no)]
        lines = [f"if {self.text.condition(block)}:", *indented(yes)]
        if not no:
            return lines
        if leaves(yes):
            return [*lines, *no]
        if is_one_choice(no):
            return [*lines, "el" + no[0], *no[1:]]
        return [*lines, "else:", *indented(no)]

    def go(self, target: Block, place: Place) -> list[str]:
        """Control goes on there: nothing, a jump, or what is there."""
        if is_way_out(target):
            return [WAY_OUT]
        if target is place.follow:
            return []
        if target is place.header:
            return ["continue"]
        if target is place.after:
            return ["break"]
        if self.is_join(target):
            raise Unstructured
        if not place.holds(target):  # the loop is left by way of it
            place = Place(None, place.header, place.after, None)
        return self.region(target, place)

    def loop(self, header: Block, outer: Place) -> list[str]:
        """A loop, and behind it what its ways out lead to."""
        body = self.bodies[header]
        beyond = self.joins(body, outer)
        way = self.main_exit(header, body)
        if beyond or way is None or not outer.holds(way):
            return self.loop_before(beyond, header, outer)
        return self.first_of(
            lambda: self.loop_before([way], header, outer),
            lambda: self.loop_before([], header, outer),
        )

    def first_of(self, one: Lines, other: Lines) -> list[str]:
        """What can be said in one way, or else in another."""
        before = set(self.done)
        try:
            return one()
        except Unstructured:
            self.attempts += 1
            if self.attempts > MOST_ATTEMPTS:
                raise
        self.done = before
        return other()

    def loop_before(self, beyond: list[Block], header: Block, outer: Place) -> list[str]:
        """A loop with these blocks behind it, the first of which `break` leads to."""
        after = beyond[0] if beyond else outer.follow
        inner = Place(header, header, after, self.bodies[header])
        lines = self.counted(header, inner, outer) or self.endless(header, inner)
        return lines + self.in_order(beyond, outer)

    def main_exit(self, header: Block, body: frozenset[Block]) -> Block | None:
        """Where a loop is left that has no join behind it: at its header, or else at its end."""
        exits = [
            t
            for b in [header, *sorted(body - {header}, key=self.order.__getitem__)]
            for t in b.successors()
            if t not in body and not is_way_out(t) and not self.is_join(t)
        ]
        if not exits:
            return None
        return exits[0] if exits[0] in header.successors() else exits[-1]

    def endless(self, header: Block, inner: Place) -> list[str]:
        """`while True:`, with ways out."""
        return ["while True:", *indented(self.then_joins(header, inner))]

    def counted(self, header: Block, inner: Place, outer: Place) -> list[str]:
        """`for item in iterator:`, if the loop begins with the step of an iterator."""
        jump = self.text.jumps[header]
        if jump.iterator is None or self.text.roots[header]:
            return []
        ended, goes_on = (b.block for b in jump.branches)
        assert ended is not None
        assert goes_on is not None
        head = f"for {self.text.name_of(jump.item)} in {self.text.expression(jump.operands[0])}:"
        lines = [head, *indented(self.go(goes_on, inner) or ["pass"])]
        end = self.go(ended, outer.before(inner.after))
        return [*lines, "else:", *indented(end)] if end else lines


def leaves(lines: list[str]) -> bool:
    """Does control never come to what stands behind these lines?"""
    return lines[-1].split(" ")[0] in ("return", "continue", "break", "raise")


def is_one_choice(lines: list[str]) -> bool:
    """Is it an `if` with its branches, and nothing behind it?"""
    return lines[0].startswith("if ") and all(
        line.startswith((" ", "elif ", "else:")) for line in lines[1:]
    )


def numbered(text: FunctionText) -> list[str]:
    """All blocks in one loop, each going on to the next by its number."""
    number = {b: i for i, b in enumerate(text.ir.blocks)}
    lines = ["at = 0", "while True:"]
    for i, block in enumerate(text.ir.blocks):
        lines.append(f"    {'if' if i == 0 else 'elif'} at == {i}:")
        lines += indented(numbered_block(text, block, number), 2)
    return lines


def numbered_block(text: FunctionText, block: Block, number: dict[Block, int]) -> list[str]:
    """What a block does, and the number of the next."""
    if is_way_out(block):
        return [WAY_OUT]
    jump = text.jumps[block]
    lines = text.statements(block)
    if not jump.branches:
        lines.append(UNREACHABLE)
    elif len(jump.branches) == 2:
        yes, no = (number[b.block] for b in jump.branches if b.block is not None)
        lines += [*text.step(block), f"at = {yes} if {text.condition(block)} else {no}"]
    elif jump.branches[0].block is None:
        lines.append(text.returned(block))
    else:
        lines += [*text.passing(block), f"at = {number[jump.branches[0].block]}"]
    return lines
