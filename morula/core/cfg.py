"""The control-flow graph: one exit, dominators, loops with one way in and one way back."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

from morula.core.ir import IR, Block, Branch, Call, Const, reachable
from morula.core.primitives import DONE, advance
from morula.core.ssa import split_critical_edges


@dataclass(eq=False, slots=True)
class Loop:
    """A natural loop: control enters by `preheader -> header`, repeats by `latch -> header`."""

    header: Block
    preheader: Block
    latch: Block
    body: set[Block] = field(default_factory=set)


def loop_step(block: Block) -> Call | None:
    """`item = advance(iterator)` at the end of a block that goes on only with an item."""
    if len(block.calls) < 2 or len(block.branches) != 2:
        return None
    step, test = block.calls[-2:]
    fits = (
        step.primitive is advance
        and test.primitive is operator.is_
        and test.args[0] is step.out
        and type(test.args[1]) is Const
        and test.args[1].value is DONE
        and block.branches[0].cond is test.out
    )
    return step if fits else None


def dominators(ir: IR) -> dict[Block, Block | None]:
    """The immediate dominator of every reachable block (Cooper, Harvey & Kennedy, 2001)."""
    order = reachable(ir)
    index = {b: i for i, b in enumerate(order)}
    predecessors = ir.predecessors()
    parent: dict[Block, Block | None] = {order[0]: None}

    def common(a: Block, b: Block) -> Block:
        while a is not b:
            while index[a] > index[b]:
                up = parent[a]
                assert up is not None
                a = up
            while index[b] > index[a]:
                up = parent[b]
                assert up is not None
                b = up
        return a

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            found: Block | None = None
            for p, _ in predecessors[block]:
                if p in parent:
                    found = p if found is None else common(p, found)
            if parent.get(block, block) is not found:
                parent[block] = found
                changed = True
    return parent


def dominates(parent: dict[Block, Block | None], a: Block, b: Block | None) -> bool:
    """Does every way to `b` lead through `a`?"""
    while b is not None:
        if a is b:
            return True
        b = parent[b]
    return False


class Joins:
    """Where the values meet that different blocks give a variable."""

    def __init__(self, ir: IR, parent: dict[Block, Block | None]) -> None:
        self.frontier: dict[Block, list[Block]] = {block: [] for block in parent}
        for block, edges in ir.predecessors().items():
            if block not in parent or len(edges) < 2:
                continue
            for source, _ in edges:
                at: Block | None = source
                while at is not parent[block] and at is not None:
                    if block not in self.frontier[at][-1:]:
                        self.frontier[at].append(block)
                    at = parent[at]
        self.found: dict[frozenset[Block], frozenset[Block]] = {}

    def of(self, blocks: frozenset[Block]) -> frozenset[Block]:
        """These blocks, and those that control reaches by several ways with different values."""
        if blocks not in self.found:
            changes, work = set(blocks), list(blocks)
            while work:
                for join in self.frontier[work.pop()]:
                    if join not in changes:
                        changes.add(join)
                        work.append(join)
            self.found[blocks] = frozenset(changes)
        return self.found[blocks]


def dominated(parent: dict[Block, Block | None]) -> dict[Block, tuple[int, int]]:
    """Numbers of the blocks, and of each the last that it dominates: all between are, and no others."""
    children: dict[Block | None, list[Block]] = {}
    for block, above in parent.items():
        children.setdefault(above, []).append(block)
    first: dict[Block, int] = {}
    span: dict[Block, tuple[int, int]] = {}
    stack: list[tuple[Block, bool]] = [(b, False) for b in children.get(None, ())]
    while stack:
        block, done = stack.pop()
        if done:
            span[block] = (first[block], len(first) - 1)
        else:
            first[block] = len(first)
            stack.append((block, True))
            stack += [(b, False) for b in children.get(block, ())]
    return span


def one_exit(ir: IR) -> Block:
    """Make all returns leave by one block, which has the result as its parameter."""
    ir.blocks = reachable(ir)
    returning = [(b, branch) for b in ir.blocks for branch in b.branches if branch.block is None]
    exit_block = ir.block()
    result = ir.var("result")
    exit_block.params = [result]
    exit_block.branches = [Branch(None, [result])]
    for _, branch in returning:
        branch.block = exit_block
    return exit_block


def _join(ir: IR, target: Block, edges: list[tuple[Block, Branch]]) -> Block:
    """A block through which these edges reach their target."""
    middle = ir.block()
    middle.params = [ir.var(p.name) for p in target.params]
    middle.branches = [Branch(target, middle.params)]
    for _, branch in edges:
        branch.block = middle
    return middle


def canonical_loops(ir: IR) -> list[Loop]:
    """Give every loop one preheader and one latch; the loops found, inner ones first.

    Every loop of lowered Python is natural: control enters it at its header only.
    """
    ir.blocks = reachable(ir)
    parent = dominators(ir)
    loops = []
    for header in list(ir.blocks):
        edges = ir.predecessors()[header]
        back = [e for e in edges if dominates(parent, header, e[0])]
        if not back:
            continue
        ahead = [e for e in edges if e not in back]
        latch, preheader = _join(ir, header, back), _join(ir, header, ahead)
        loops.append(Loop(header, preheader, latch))
    split_critical_edges(ir)
    ir.blocks = reachable(ir)
    predecessors = ir.predecessors()
    for loop in loops:
        loop.body = loop_body(loop.header, [loop.latch], predecessors)
    return sorted(loops, key=lambda loop: len(loop.body))


def loop_body(
    header: Block, latches: list[Block], predecessors: dict[Block, list[tuple[Block, Branch]]]
) -> set[Block]:
    """The blocks of a loop, from the ends of its iterations back to its header."""
    body, work = {header}, list(latches)
    while work:
        block = work.pop()
        if block not in body:
            body.add(block)
            work += [p for p, _ in predecessors[block]]
    return body


def is_reducible(ir: IR) -> bool:
    """Is every loop entered at one block only?"""
    parent = dominators(ir)
    index = {b: i for i, b in enumerate(reachable(ir))}
    return all(
        index[b] < index[s] or dominates(parent, s, b) for b in index for s in b.successors()
    )


def leads_to(ir: IR, target: Block) -> set[Block]:
    """The blocks from which control can reach `target`."""
    predecessors = ir.predecessors()
    found, work = {target}, [target]
    while work:
        for p, _ in predecessors[work.pop()]:
            if p not in found:
                found.add(p)
                work.append(p)
    return found


def nested(ir: IR) -> list[Block]:
    """The blocks that control can reach, every loop in one piece: what follows it stands behind it."""
    blocks = reachable(ir)
    return _nested(blocks, set(blocks))


def _nested(blocks: list[Block], inside: set[Block]) -> list[Block]:
    """These blocks, the first of which leads to the others, by the ways that stay inside."""
    found = []
    for part in _components(blocks, inside):
        header = next(b for b in blocks if b in part)
        rest = [b for b in blocks if b in part and b is not header]
        found += [header, *_nested(rest, part - {header})]
    return found


def _components(blocks: list[Block], inside: set[Block]) -> list[set[Block]]:
    """The strongly connected components, each before those that it leads to (Kosaraju & Sharir)."""
    successors = {b: [t for t in b.successors() if t in inside] for b in blocks}
    predecessors: dict[Block, list[Block]] = {b: [] for b in blocks}
    for b, targets in successors.items():
        for t in targets:
            predecessors[t].append(b)
    seen: set[Block] = set()
    order = [b for root in blocks for b in _postorder(root, successors, seen)]
    seen = set()
    parts = [set(_postorder(root, predecessors, seen)) for root in reversed(order)]
    return [part for part in parts if part]


def _postorder(root: Block, edges: dict[Block, list[Block]], seen: set[Block]) -> list[Block]:
    """What the root leads to and has not been seen, each block behind those that it leads to."""
    found: list[Block] = []
    if root in seen:
        return found
    seen.add(root)
    stack = [(root, iter(edges[root]))]
    while stack:
        block, targets = stack[-1]
        target = next((t for t in targets if t not in seen), None)
        if target is None:
            stack.pop()
            found.append(block)
        else:
            seen.add(target)
            stack.append((target, iter(edges[target])))
    return found
