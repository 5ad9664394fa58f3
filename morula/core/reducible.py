"""Loops with several ways in become loops with one, by copies of blocks.

The reverse pass walks loops backwards, so each needs one header. Where control also comes into the
middle of a loop, as it does into a generator that is resumed, it gets a copy of what is left of the
iteration, up to the header (Janssen & Corporaal, Making Graphs Reducible with Controlled Node
Splitting, TOPLAS 1997).
"""

from __future__ import annotations

from morula.core.ir import IR, Block, Branch, Operand, Var, reachable
from morula.core.ssa import prune_params


def make_reducible(ir: IR) -> None:
    """Copy blocks until every loop has one way in."""
    ir.blocks = reachable(ir)
    pass_all_values(ir)
    while _split_one(ir, set(ir.blocks)):
        ir.blocks = reachable(ir)
    prune_params(ir)


def _split_one(ir: IR, nodes: set[Block]) -> bool:
    """Split a loop among these blocks that has several ways in, if there is one."""
    predecessors = ir.predecessors()
    for loop in strongly_connected(nodes):
        entries = [
            b
            for b in ir.blocks
            if b in loop and (b is ir.entry or any(p not in loop for p, _ in predecessors[b]))
        ]
        if len(entries) > 1:
            inside = {b: sum(p in loop for p, _ in predecessors[b]) for b in entries}
            header = max(entries, key=lambda b: inside[b])
            _copy_rest(ir, loop, header, next(b for b in entries if b is not header))
            return True
        if _split_one(ir, loop - {*entries}):
            return True
    return False


def _copy_rest(ir: IR, loop: set[Block], header: Block, middle: Block) -> None:
    """Whoever comes into the loop in its middle gets a copy of what lies before the header."""
    rest, work = {middle}, [middle]
    while work:
        for b in work.pop().successors():
            if b in loop and b is not header and b not in rest:
                rest.add(b)
                work.append(b)
    twin = {b: ir.block() for b in ir.blocks if b in rest}
    for block in list(ir.blocks):
        if block not in loop:
            for branch in block.branches:
                if branch.block is middle:
                    branch.block = twin[middle]
    for block, copy in twin.items():
        _copy_block(ir, block, copy, twin)


def _copy_block(ir: IR, block: Block, copy: Block, twin: dict[Block, Block]) -> None:
    new: dict[Var, Var] = {}

    def renamed(x: Operand) -> Operand:
        return new.get(x, x) if type(x) is Var else x

    for p in block.params:
        new[p] = ir.var(p.name)
    copy.params = list(new.values())
    for call in block.calls:
        again = call.copy()
        again.fn, again.args = renamed(call.fn), tuple(map(renamed, call.args))
        again.out = new[call.out] = ir.var(call.out.name)
        copy.calls.append(again)
    for b in block.branches:
        target = None if b.block is None else twin.get(b.block, b.block)
        cond = None if b.cond is None else renamed(b.cond)
        copy.branches.append(Branch(target, map(renamed, b.args), cond))


def pass_all_values(ir: IR) -> None:
    """Every block gets all that it needs as parameters, so that it can be copied."""
    needed = _needed(ir)
    own: dict[Block, dict[Var, Var]] = {}
    for block in ir.blocks:
        own[block] = {v: ir.var(v.name) for v in needed[block]}
    for block in ir.blocks:
        mine = own[block]

        def renamed(x: Operand, mine: dict[Var, Var] = mine) -> Operand:
            return mine.get(x, x) if type(x) is Var else x

        for call in block.calls:
            call.fn, call.args = renamed(call.fn), tuple(map(renamed, call.args))
        for branch in block.branches:
            if branch.cond is not None:
                branch.cond = renamed(branch.cond)
            branch.args = [renamed(a) for a in branch.args]
            if branch.block is not None:
                branch.args += [renamed(v) for v in needed[branch.block]]
        block.params += mine.values()


def _needed(ir: IR) -> dict[Block, list[Var]]:
    """The variables that each block, or one behind it, reads and that are defined before it."""
    defined = {b: {*b.params, *(c.out for c in b.calls)} for b in ir.blocks}
    needed: dict[Block, dict[Var, None]] = {b: dict.fromkeys(_reads(b)) for b in ir.blocks}
    for b in ir.blocks:
        for v in (*defined[b], *ir.free):
            needed[b].pop(v, None)
    predecessors = ir.predecessors()
    work = list(ir.blocks)
    while work:
        block = work.pop()
        for source, _ in predecessors[block]:
            more = [
                v for v in needed[block] if v not in defined[source] and v not in needed[source]
            ]
            if more:
                needed[source].update(dict.fromkeys(more))
                work.append(source)
    return {b: list(found) for b, found in needed.items()}


def _reads(block: Block) -> list[Var]:
    operands: list[Operand | None] = [x for call in block.calls for x in call.operands()]
    for branch in block.branches:
        operands += [*branch.args, branch.cond]
    return [x for x in operands if type(x) is Var]


def strongly_connected(nodes: set[Block]) -> list[set[Block]]:
    """The loops among these blocks: sets of blocks that reach each other (Tarjan, 1972)."""
    index: dict[Block, int] = {}
    low: dict[Block, int] = {}
    path: list[Block] = []
    on_path: set[Block] = set()
    found: list[set[Block]] = []
    for root in nodes:
        if root in index:
            continue
        stack = [(root, iter(root.successors()))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while stack:
            block, successors = stack[-1]
            for b in successors:
                if b not in nodes:
                    continue
                if b not in index:
                    index[b] = low[b] = len(index)
                    path.append(b)
                    on_path.add(b)
                    stack.append((b, iter(b.successors())))
                    break
                if b in on_path:
                    low[block] = min(low[block], index[b])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[block])
                if low[block] == index[block]:
                    members = set()
                    while block not in members:
                        members.add(path.pop())
                    on_path -= members
                    if len(members) > 1 or block in block.successors():
                        found.append(members)
    return found
