"""Construction of SSA form from named variables that blocks write and read.

Blocks write and read variables in any order of blocks. Where a block reads what it has not
written, it gets a parameter; `finish` gives every such parameter its arguments, block by block
against the arrows, and `prune_params` then removes the parameters that were not needed (Braun et
al., Simple and Efficient Construction of SSA Form, CC 2013, without its bookkeeping).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set

from morula.core.ir import IR, Block, Branch, Const, Operand, Var, substitute


class Variables:
    """The named variables of a function under construction."""

    def __init__(self, ir: IR, initial: Callable[[Block, Hashable], Operand | None]) -> None:
        self.ir = ir
        self.initial = initial  # what a variable holds at the start of a block, where that is known
        self._at_end: dict[Block, dict[Hashable, Operand]] = {}
        self._pending: list[tuple[Block, Hashable, Var]] = []
        self._sealed: dict[Block, list[tuple[Block, Branch]]] = {}
        self._top: dict[Block, Block] = {}  # where the chain of sealed blocks above one begins
        self._seen: set[Hashable] = set()  # the variables that were read or written anywhere
        self.variable_of: dict[Var, Hashable] = {}  # for the parameters that reading made

    def write(self, block: Block, variable: Hashable, value: Operand) -> None:
        """From here to the end of the block, or to the next write, the variable is `value`."""
        self._at_end.setdefault(block, {})[variable] = value
        self._seen.add(variable)

    def seal(self, block: Block, *edges: tuple[Block, Branch]) -> None:
        """These are all ways into the block, and nothing more is written where they come from.

        The first is from a block that dominates this one and all between the two, which are sealed as
        well. Reading in a sealed block makes a parameter only where the ways bring different values.
        """
        self._sealed[block] = list(edges)
        self._top[block] = self._top.get(edges[0][0], edges[0][0])

    def follow(self, block: Block, source: Block) -> None:
        """The only way into the block is from `source`, where nothing more is written."""
        self.seal(block, (source, Branch(block)))

    def read(self, block: Block, variable: Hashable, name: str = "") -> Operand:
        """The value of the variable at this point of the block."""
        at_end = self._at_end
        here = values = at_end.setdefault(block, {})
        if variable in here:
            return here[variable]
        ways = self._sealed.get(block, ())
        joins: list[Block] = []
        if variable not in self._seen:
            self._seen.add(variable)
            block = self._top.get(block, block)
            values = at_end.setdefault(block, {})
        while variable not in values and (edges := self._sealed.get(block)) is not None:
            if any(variable in at_end.get(source, ()) for source, _ in edges[1:]):
                joins.append(block)
            block = edges[0][0]
            values = at_end.setdefault(block, {})
        value = values.get(variable)
        if value is None:
            value = values[variable] = self._at_start(block, variable, name)
        for join in reversed(joins):
            value = self._joined(join, variable, value, name)
        here[variable] = value
        if len(ways) == 1:  # so that who comes another way need not go far
            at_end.setdefault(ways[0][0], {}).setdefault(variable, value)
        return value

    def _joined(self, block: Block, variable: Hashable, value: Operand, name: str) -> Operand:
        """The value in a sealed block to which `value` comes the first way."""
        edges = self._sealed[block]
        passed = [value, *(self.read(source, variable, name) for source, _ in edges[1:])]
        if not all(same(value, x) for x in passed):
            value = self.ir.var(name)
            block.params.append(value)
            self.variable_of[value] = variable
            for (_, branch), x in zip(edges, passed, strict=True):
                branch.args.append(x)
        self._at_end.setdefault(block, {})[variable] = value
        return value

    def _at_start(self, block: Block, variable: Hashable, name: str) -> Operand:
        value = self.initial(block, variable)
        if value is None:
            value = self.ir.var(name)
            block.params.append(value)
            self.variable_of[value] = variable
            self._pending.append((block, variable, value))
        return value

    def finish(self) -> None:
        """Give the parameters that reading made their arguments."""
        predecessors = self.ir.predecessors()
        done = 0
        while done < len(self._pending):  # in the order in which the parameters were made
            block, variable, param = self._pending[done]
            done += 1
            for source, branch in predecessors[block]:
                branch.args.append(self.read(source, variable, param.name))
        self._pending.clear()


class Placed(Variables):
    """Variables that are given new values in known blocks only, in a graph that has all its edges.

    A block gets a parameter only where different values may meet: at the joins of the blocks with
    new values (Cytron et al., Efficiently Computing Static Single Assignment Form and the Control
    Dependence Graph, 1991). Elsewhere the value is that of the immediate dominator, the `parent`.
    """

    def __init__(
        self,
        ir: IR,
        initial: Callable[[Block, Hashable], Operand | None],
        parent: dict[Block, Block | None],
        changes: Callable[[Hashable], Set[Block] | None],
    ) -> None:
        super().__init__(ir, initial)
        self.parent = parent
        self.changes = changes  # the blocks with new values, joins included; None: it is not known

    def read(self, block: Block, variable: Hashable, name: str = "") -> Operand:
        here = self._at_end.setdefault(block, {})
        if variable in here:
            return here[variable]
        changes = self.changes(variable)
        if changes is None:
            return super().read(block, variable, name)
        passed = []
        at: Block | None = block
        while at is not None and variable not in self._at_end.setdefault(at, {}):
            passed.append(at)
            at = None if at in changes else self.parent[at]
        if at is not None:
            value = self._at_end[at][variable]
        else:
            value = self._at_start(passed[-1], variable, name)
        for between in passed:
            self._at_end[between][variable] = value
        return value


def prune_params(
    ir: IR,
    keep: Block | None = None,
    pinned: Callable[[Block, Operand], bool] = lambda block, x: False,
) -> None:
    """Remove the parameters that always receive one value, and those that nobody uses.

    Those of the block `keep` stay, and those that a value is passed to that is `pinned`: it would
    mean something else elsewhere.
    """
    values = _param_values(ir, keep, pinned)
    mapping = {p: v for p, v in values.items() if v is not p}
    if mapping:
        for block in ir.blocks:
            for branch in block.branches:
                if branch.block is not None:
                    branch.args = [
                        a
                        for p, a in zip(branch.block.params, branch.args, strict=True)
                        if p not in mapping
                    ]
        for block in ir.blocks:
            block.params = [p for p in block.params if p not in mapping]
    substitute(ir, mapping)
    _drop_unused_params(ir, keep)


MOST_CHANGES = 100  # of what a parameter is thought to receive: a guard against going in circles


def _param_values(
    ir: IR, keep: Block | None, pinned: Callable[[Block, Operand], bool]
) -> dict[Var, Operand]:
    """What each parameter receives, if it always is the same value, else the parameter itself.

    Found optimistically: parameters that only pass a value around among themselves have it.
    """
    fixed = {ir.entry, keep}
    incoming: dict[Var, list[Operand]] = {
        p: [] for block in ir.blocks if block not in fixed for p in block.params
    }
    users: dict[Var, list[Var]] = {}
    stays: set[Var] = set()
    for block in ir.blocks:
        for branch in block.branches:
            if branch.block is None or branch.block in fixed:
                continue
            for p, a in zip(branch.block.params, branch.args, strict=True):
                incoming[p].append(a)
                if pinned(block, a):
                    stays.add(p)
                if type(a) is Var and a in incoming:
                    users.setdefault(a, []).append(p)
    values: dict[Var, Operand] = {}
    changes: dict[Var, int] = {}
    work = list(incoming)[::-1]
    waiting = set(work)
    while work:
        p = work.pop()
        waiting.remove(p)
        if changes.get(p) == MOST_CHANGES:
            continue
        new: Operand | None = p if p in stays else None
        for a in incoming[p]:
            value = values.get(a) if type(a) is Var and a in incoming else a
            if value is None or value is new:
                continue
            if new is None:
                new = value
            elif not same(new, value):
                new = p
                break
        old = values.get(p)
        if new is not None and (old is None or not same(old, new)):
            changes[p] = changes.get(p, 0) + 1
            values[p] = new if changes[p] < MOST_CHANGES else p
            again = [q for q in dict.fromkeys(users.get(p, ())) if q not in waiting]
            work += again
            waiting.update(again)
    return {p: values.get(p, p) for p in incoming}


def same(a: Operand, b: Operand) -> bool:
    """Are two operands the same variable or the same constant object?"""
    if type(a) is Const and type(b) is Const:
        return a.value is b.value
    return a is b


def _drop_unused_params(ir: IR, kept: Block | None) -> None:
    """Liveness of parameters: used by a call or a condition, or passed to a live parameter."""
    position = {p: (block, i) for block in ir.blocks for i, p in enumerate(block.params)}
    incoming = ir.predecessors()
    work: list[Var] = []
    live: set[Var] = set()

    def use(x: Operand | None) -> None:
        if type(x) is Var and x in position and x not in live:
            live.add(x)
            work.append(x)

    for call in ir.calls():
        for x in call.operands():
            use(x)
    for x in ir.returned():
        use(x)
    for block in ir.blocks:
        for branch in block.branches:
            use(branch.cond)
    for param in (*ir.entry.params, *(kept.params if kept is not None else ())):
        use(param)
    while work:
        block, i = position[work.pop()]
        for _, branch in incoming[block]:
            use(branch.args[i])
    for block in ir.blocks[1:]:
        keep = [i for i, p in enumerate(block.params) if p in live]
        if len(keep) < len(block.params):
            for _, branch in incoming[block]:
                branch.args = [branch.args[i] for i in keep]
            block.params = [block.params[i] for i in keep]


def split_critical_edges(ir: IR, all_of_them: bool = True) -> None:
    """Put an empty block on every edge from a block with several exits to one with several entries.

    Else only on those that pass arguments.
    """
    predecessors = ir.predecessors()
    for block in list(ir.blocks):
        if len(block.branches) < 2:
            continue
        for branch in block.branches:
            target = branch.block
            if target is None or not (all_of_them or branch.args):
                continue
            if len(predecessors[target]) > 1:
                middle = ir.block()
                middle.branches = [Branch(target, branch.args)]
                branch.block = middle
                branch.args = []
