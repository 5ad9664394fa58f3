"""Simplification of a function in SSA form, without a change of what it does.

Tuples that are only taken apart, cells that hold one value, branches on constants, accesses to
constant modules, and calls whose results nobody uses are removed. None of this knows a value's
meaning: what may be computed ahead is said by `FOLDS`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Collection, Hashable
from types import CellType, FunctionType, ModuleType, UnionType
from typing import Any

from morula.core.cfg import dominators
from morula.core.cotangents import (
    NONE,
    ZERO,
    AbstractZero,
    NoTangent,
    Thunk,
    ZeroTangent,
    accumulate,
)
from morula.core.ir import (
    IR,
    Block,
    Call,
    Const,
    Operand,
    Var,
    count_uses,
    reachable,
    replace_operands,
    replaced,
    substitute,
)
from morula.core.primitives import (
    UNDEFINED,
    alias,
    as_tuple,
    build_map,
    build_named,
    build_tuple,
    check_bound,
    dict_merge,
    get_cell,
    load_global,
    make_cell,
    make_function,
    set_cell,
    unpack,
)
from morula.core.registry import registry
from morula.core.ssa import prune_params
from morula.core.traits import gives_new, is_written, marks, say_once

# Primitives without an effect: a call of one may be removed, or repeated.
PURE = {
    id(f)
    for f in (
        build_tuple,
        as_tuple,
        make_cell,
        make_function,
        operator.is_,
        operator.is_not,
        slice,
        accumulate,
    )
}


class Assumptions:
    """What folds take for granted of a program, once all rules are inlined.

    Whether it was so shows in its results: where a test of them says that it was not, the program
    begins anew.
    """

    def __init__(self) -> None:
        self.allowed = False  # may it begin anew?
        self.inlined = False  # are all rules?
        self.waiting = False  # does a fold want to be asked then?
        self.tests: dict[Callable[..., bool], None] = {}

    def assume(self, test: Callable[..., bool]) -> bool:
        """May it be assumed that what the test asks of the results will not be so?"""
        if self.allowed and self.inlined:
            self.tests[test] = None
            return True
        self.waiting |= self.allowed
        return False


class Folding:
    """The definitions that folding looks at, and the globals that may be taken as constants."""

    def __init__(
        self,
        ir: IR,
        trusted: Callable[[dict[str, Any]], bool],
        known: Callable[[Operand], Any],
        adjoint: Collection[Block] = (),
    ) -> None:
        self.ir = ir
        self.known = known
        self.trusted = trusted
        self.exact = False  # must the primal's value be that of the plain call, bit for bit?
        self.assumptions = Assumptions()
        self.in_rule = False  # is it the body of a rule, and not yet a part of a program?
        self.definitions = {c.out: c for c in ir.calls()}
        self.block: Block | None = None  # that of the call that is folded
        self.block_of = {c.out: block for block in ir.blocks for c in block.calls}
        self.cells = single_values(ir, adjoint)
        self.differentiated = bool(adjoint)  # has the program its adjoint already?
        self.again = False  # will the adjoint be differentiated in its turn?
        self.in_adjoint = False  # is the call that is folded part of an adjoint?
        self.primal: set[Var] | None = (
            None  # what the value is computed by, if by blocks it cannot be told
        )
        self.loop_values: Collection[Var] = ()  # of the primal, for an adjoint: one per iteration
        self._readers: dict[Var, Block | None] | None = None
        self.notes: dict[str, Any] = {}  # of the folds, for others that follow
        self._uses: dict[Var, int] | None = None
        self.readers = find_readers(ir) if any(marks(c.primitive) for c in ir.calls()) else None
        self._unbound: set[Operand] | None = None

    def types(self, x: Operand) -> type | None:
        """The exact type of an operand, where it is known."""
        k = self.known(x)
        return None if k is None else k.type

    def details(self, x: Operand) -> Any:
        """The detail of an operand, where it is known."""
        k = self.known(x)
        return None if k is None else k.detail

    @staticmethod
    def const(value: Any) -> Const:
        """A constant operand."""
        return Const(value)

    def new_call(self, call: Call, fn: Any, *args: Operand) -> Call:
        """A call of a function without effects, in the place of another."""
        new = Call(self.ir.var(), Const(fn), args, (), call.position)
        new.removable = call.removable
        new.movable = call.movable
        return new

    def same_call(self, call: Call, fn: Any, *args: Operand) -> Call:
        """A call that defines the variable that `call` defines."""
        new = Call(call.out, Const(fn), args, (), call.position)
        new.removable = call.removable
        new.movable = call.movable
        return new

    def count_again(self, call: Call, value: Operand | list[Call]) -> None:
        """The uses after a call was replaced by a value or by other calls."""
        if self._uses is None:
            return
        if type(value) is Var:
            self._uses[value] = self._uses.get(value, 0) + self._uses.get(call.out, 0)
        elif type(value) is list:
            for new in value:
                for a in new.args:
                    if type(a) is Var:
                        self._uses[a] = self._uses.get(a, 0) + 1

    def may_overwrite(self, x: Operand) -> bool:
        """Is it a fresh value of the same run of the adjoint's block, that nothing else reads?"""
        call = self.definitions.get(x) if type(x) is Var else None
        return (
            self.in_adjoint
            and not self.again
            and call is not None
            and self.block_of.get(x) is self.block  # type: ignore[arg-type]
            and gives_new(call.primitive)
            and self.used_once(x)
        )

    def must_stay(self, call: Call, value: Operand) -> bool:
        """Would a variable of a loop be read at a place that means the value of another iteration?

        In the adjoint it has the value of the iteration that its place belongs to.
        """
        if not self.in_adjoint or value not in self.loop_values:
            return False
        if self._readers is None:
            self._readers = _only_readers(self.ir)
        return self._readers.get(call.out) is not self.block

    def used_once(self, x: Operand) -> bool:
        """Is a variable read at one place only?"""
        return type(x) is Var and self.uses_of(x) == 1

    def uses_of(self, x: Var) -> int:
        """At how many places is a variable read?"""
        if self._uses is None:
            self._uses = count_uses(self.ir)
        return self._uses.get(x, 0)

    def is_bound(self, x: Var) -> bool:
        """Is a parameter of a block never UNDEFINED?"""
        if self._unbound is None:
            self._unbound = _maybe_unbound(self.ir)
        return x not in self._unbound

    def definition(self, x: Operand, primitive: Any) -> Call | None:
        """The call that defines x, if it is one of this primitive."""
        call = self.definitions.get(x) if type(x) is Var else None
        return call if call is not None and call.primitive is primitive else None


def find_readers(ir: IR) -> dict[Var, list[Call | Var]]:
    """What reads each variable: calls, and the parameters that it is passed to."""
    readers: dict[Var, list[Call | Var]] = {}
    for call in ir.calls():
        for x in call.operands():
            if type(x) is Var:
                readers.setdefault(x, []).append(call)
    for p, a in ir.passed():
        if type(a) is Var:
            readers.setdefault(a, []).append(p)
    return readers


def _only_readers(ir: IR) -> dict[Var, Block | None]:
    """For variables that only calls of one block read, that block; None for the others."""
    readers: dict[Any, Block | None] = {}
    for block in ir.blocks:
        for call in block.calls:
            for x in call.operands():
                readers[x] = block if readers.get(x, block) is block else None
        for branch in block.branches:
            readers.update(dict.fromkeys((*branch.args, branch.cond)))
    return readers


def single_values(ir: IR, adjoint: Collection[Block]) -> dict[Var, Operand]:
    """Cells that are not passed to anything unknown and hold one value all along.

    What an adjoint reads of a cell, the primal has set: in the iteration that the place belongs to.
    """
    made = {c.out for c in ir.calls() if c.primitive is make_cell}
    if not made:
        return {}
    values: dict[Var, list[Operand]] = {}
    escaped: set[Operand] = set()
    for call in ir.calls():
        if call.primitive is make_cell:
            first = call.args[0]
            initial = [] if type(first) is Const and first.value is UNDEFINED else [first]
            values.setdefault(call.out, [])[:0] = initial
        elif call.primitive is set_cell and type(call.args[0]) is Var:
            values.setdefault(call.args[0], []).append(call.args[1])
            escaped.add(call.args[1])
        elif call.primitive is make_function:
            escaped.update(call.args[:5])
            if type(call.args[1]) is Const and rebinds(call.args[1].value):
                escaped.update(call.args[5:])
        elif call.primitive is not get_cell:
            escaped.update(call.operands())
    for block in ir.blocks:
        for branch in block.branches:
            escaped.update(branch.args)
    single = {
        cell: held[0]
        for cell, held in values.items()
        if cell in made and cell not in escaped and len(held) == 1
    }
    early = _read_too_early(ir, single, adjoint) if single else ()
    return {cell: value for cell, value in single.items() if cell not in early}


def _read_too_early(ir: IR, cells: Collection[Operand], adjoint: Collection[Block]) -> set[Operand]:
    """Those of the cells that may be read on a way on which they have not been set.

    What an adjoint reads has been set where the primal came by.
    """
    setters: dict[Operand, tuple[Block, int]] = {}
    readers: list[tuple[Operand, Block, int]] = []
    for block in ir.blocks:
        for i, call in enumerate(block.calls):
            if call.primitive is set_cell and call.args[0] in cells:
                setters[call.args[0]] = block, i
            elif call.primitive is get_cell and call.args[0] in cells and block not in adjoint:
                readers.append((call.args[0], block, i))
    readers = [(cell, b, i) for cell, b, i in readers if cell in setters]
    parent = dominators(ir) if readers else {}
    early = set()
    for cell, block, i in readers:
        setter, j = setters[cell]
        above: Block | None = block
        while above is not None and above is not setter:
            above = parent[above]
        if above is None or (block is setter and i < j):
            early.add(cell)
    return early


def _maybe_unbound(ir: IR) -> set[Operand]:
    """The parameters of blocks that may receive UNDEFINED."""
    found: set[Operand] = set()
    changed = True
    while changed:
        changed = False
        for p, a in ir.passed():
            undefined = type(a) is Const and a.value is UNDEFINED
            if p not in found and (undefined or a in found):
                found.add(p)
                changed = True
    return found


def rebinds(code: Any) -> bool:
    """Does a function, or one inside it, rebind a variable that it closes over?"""
    import dis

    found = _REBINDS.get(id(code))
    if found is None:
        names = set(code.co_freevars)
        stores = any(
            ins.opname in ("STORE_DEREF", "DELETE_DEREF") and ins.argval in names
            for ins in dis.get_instructions(code)
        )
        inner = any(rebinds(c) for c in code.co_consts if hasattr(c, "co_code"))
        found = _REBINDS[id(code)] = (stores or inner, code)
    return found[0]


_REBINDS: dict[int, tuple[bool, Any]] = {}

Fold = Callable[[Folding, Call], "Operand | list[Call] | None"]
FOLDS: dict[int, Fold] = {}


def folds(*primitives: Any, over: Fold | None = None) -> Callable[[Fold], Fold]:
    """Register how calls of primitives are folded.

    The fold gives an operand, or the calls to do instead, of which the last one has the result, or
    None where there is nothing to fold. `over` is an earlier fold, to which this one goes on.
    """

    def register(fold: Fold) -> Fold:
        say_once(FOLDS, primitives, fold, over)
        return fold

    return register


@folds(operator.getitem)
def _(f: Folding, call: Call) -> Operand | list[Call] | None:
    """An item, or some of the items, of a tuple that was put together here."""
    items, key = call.args
    if type(key) is not Const:
        return None
    made = f.definition(items, build_tuple)
    if type(key.value) is slice and made is not None and has_constants(key.value):
        part = made.args[key.value]
        return (
            None
            if any(f.must_stay(call, x) for x in part)
            else [f.same_call(call, build_tuple, *part)]
        )
    if type(key.value) is not int:
        return None
    named = f.definition(items, build_named)
    if named is not None and is_read_as_tuple(named.args[0]):
        fields = named.args[1:]
        return fields[key.value] if -len(fields) <= key.value < len(fields) else None
    if made is not None and -len(made.args) <= key.value < len(made.args):
        return made.args[key.value]
    values = items.value if type(items) is Const and type(items.value) is tuple else ()
    return Const(values[key.value]) if -len(values) <= key.value < len(values) else None


def is_read_as_tuple(cls: Operand) -> bool:
    """Is it a class of named tuples that leaves it to `tuple` how items are read?"""
    return type(cls) is Const and cls.value.__getitem__ is tuple.__getitem__


def has_constants(key: slice) -> bool:
    """Are the bounds of a slice integers or left out?"""
    return all(x is None or type(x) is int for x in (key.start, key.stop)) and (
        key.step is None or (type(key.step) is int and key.step != 0)
    )


@folds(build_tuple)
def _(f: Folding, call: Call) -> Operand | None:
    """An index with constant slices."""
    if not all(
        type(a) is Const and (a.value is None or type(a.value) in INDICES) for a in call.args
    ):
        return None
    values = [a.value for a in call.args]
    return Const(tuple(values)) if slice in map(type, values) else None


INDICES = (int, slice)


@folds(unpack)
def _(f: Folding, call: Call) -> Operand | None:
    made = f.definition(call.args[0], build_tuple)
    n = call.args[1]
    if made is not None and type(n) is Const and n.value == len(made.args):
        return made.out
    return None


@folds(as_tuple)
def _(f: Folding, call: Call) -> Operand | None:
    made = f.definition(call.args[0], build_tuple)
    return None if made is None else made.out


@folds(get_cell)
def _(f: Folding, call: Call) -> Operand | None:
    cell = call.args[0]
    if type(cell) is Var:
        return f.cells.get(cell)
    assert type(cell) is Const
    return Const(cell.value.cell_contents) if id(cell.value) in _of_rules else None


_of_rules: dict[int, CellType] = {}


def captured_by_rule(fn: FunctionType) -> list[Operand]:
    """What a rule has captured; nobody rebinds it."""
    cells = fn.__closure__ or ()
    _of_rules.update((id(cell), cell) for cell in cells)
    return [Const(cell) for cell in cells]


@folds(load_global)
def _(f: Folding, call: Call) -> Operand | None:
    namespace, name = call.args
    if type(namespace) is Const and type(name) is Const and f.trusted(namespace.value):
        return Const(load_global(namespace.value, name.value))
    return None


MISSING = object()


@folds(getattr)
def _(f: Folding, call: Call) -> Operand | None:
    """An attribute of a module; those of the user's are guarded before they come here."""
    if len(call.args) != 2:
        return None
    owner, name = call.args
    if type(owner) is not Const or type(name) is not Const:
        return None
    # In rules, all attributes of modules are constants; in the user's code those that are guarded.
    if not isinstance(owner.value, ModuleType) or not (call.removable or f.in_rule):
        return None
    value = getattr(owner.value, name.value, MISSING)  # where it is missing, nobody may get there
    return None if value is MISSING else Const(value)


@folds(operator.or_)
def _(f: Folding, call: Call) -> Operand | None:
    """`A | B` of classes."""
    kinds = [a.value for a in call.args if type(a) is Const]
    if len(kinds) == 2 and {type(k) for k in kinds} <= {type, UnionType}:
        return Const(kinds[0] | kinds[1])
    return None


@folds(slice)
def _(f: Folding, call: Call) -> Operand | None:
    if all(type(a) is Const and is_simple(a.value) for a in call.args):
        return Const(slice(*[a.value for a in call.args]))
    return None


@folds(check_bound)
def _(f: Folding, call: Call) -> Operand | None:
    x = call.args[0]
    if f.in_rule:
        return None  # of a rule's arguments nothing is known
    if type(x) is Var and (x in f.definitions or f.is_bound(x)):
        return x
    if type(x) is Const and x.value is not UNDEFINED:
        return x
    return None


@folds(operator.is_)
def _(f: Folding, call: Call) -> Operand | None:
    a, b = call.args
    if type(a) is Const and type(b) is Const:
        nothing = b.value is ZERO and a.value is NONE  # a rule may give either
        return Const(nothing or a.value is b.value)
    return None


@folds(operator.is_not)
def _(f: Folding, call: Call) -> Operand | None:
    a, b = call.args
    if type(a) is Const and type(b) is Const:
        return Const(a.value is not b.value)
    return None


@folds(operator.not_, operator.truth)
def _(f: Folding, call: Call) -> Operand | None:
    x = call.args[0]
    if type(x) is Const and type(x.value) in (bool, int, type(None)):
        return Const(call.primitive(x.value))
    made = f.definition(x, build_map)
    if made is not None and not made.args and stays_empty(f.ir, made.out):
        return Const(call.primitive({}))
    return None


def stays_empty(ir: IR, made: Var) -> bool:
    """Do all who read an empty dict leave it as it is? So do calls with the keywords of a function."""
    return all(
        type(reader) is Call
        and (
            reader.primitive in (operator.not_, operator.truth, len)
            or (reader.primitive is dict_merge and reader.args[0] is not made)
        )
        for reader in find_readers(ir)[made]
    )


@folds(accumulate)
def _(f: Folding, call: Call) -> Operand | list[Call] | None:
    """A sum with the structural zero, and sums of tuples item by item."""
    a, b = call.args
    for zero in (NONE, ZERO):
        if type(a) is Const and a.value is zero:
            return b
        if type(b) is Const and b.value is zero:
            return a
    left, right = f.definition(a, build_tuple), f.definition(b, build_tuple)
    if left is None or right is None or len(left.args) != len(right.args):
        return None
    sums = [f.new_call(call, accumulate, x, y) for x, y in zip(left.args, right.args, strict=True)]
    return [*sums, f.same_call(call, build_tuple, *[c.out for c in sums])]


@folds(NoTangent)
def _(f: Folding, call: Call) -> Operand | None:
    return Const(NONE)


@folds(ZeroTangent)
def _(f: Folding, call: Call) -> Operand | None:
    return Const(ZERO)


@folds(Thunk)
def _(f: Folding, call: Call) -> list[Call] | None:
    """What is put off here is needed: cotangents that nobody asks for are not computed anyhow."""
    if not f.in_adjoint and f.primal is None:
        return None
    now = Call(call.out, call.args[0], (), (), call.position)
    now.removable, now.movable = call.removable, call.movable
    return [now]


def simplify(
    ir: IR,
    trusted: Callable[[dict[str, Any]], bool],
    known: Callable[[Operand], Any] = lambda x: None,
    adjoint: Collection[Block] = (),
    exact: bool = True,
    keep: Block | None = None,
) -> bool:
    """Fold until nothing changes; was anything changed? The parameters of the block `keep` stay."""
    changed = False
    while simplify_once(ir, trusted, known, adjoint, exact, keep):
        changed = True
    return changed


def simplify_once(
    ir: IR,
    trusted: Callable[[dict[str, Any]], bool],
    known: Callable[[Operand], Any] = lambda x: None,
    adjoint: Collection[Block] = (),
    exact: bool = True,
    keep: Block | None = None,
    loop_values: Collection[Var] = (),
    again: bool = False,
    primal: set[Var] | None = None,
    assumptions: Assumptions | None = None,
) -> bool:
    """Fold what can be folded in one round; was anything changed?

    Where a value and its tangent are computed side by side, `primal` are the variables of the value.
    """
    folding = Folding(ir, trusted, known, adjoint)
    folding.primal = primal
    folding.again = again
    folding.assumptions = assumptions or folding.assumptions
    folding.loop_values = loop_values
    changed = fold_calls(folding, adjoint, exact)
    changed |= fold_branches(ir)
    changed |= remove_unused(ir)
    if changed:
        prune_params(ir, keep, lambda block, x: block in adjoint and x in loop_values)
    return changed


def simplify_rule(ir: IR) -> None:
    """Fold what does not depend on where the body of a rule, or of its pullback, is put."""
    changed = True
    while changed:
        folding = Folding(ir, is_trusted, lambda x: None)
        folding.in_rule = True
        changed = fold_calls(folding) | fold_branches(ir)
        if changed:
            remove_unused(ir)
            prune_params(ir)


def is_trusted(namespace: dict[str, Any]) -> bool:
    """Are these the globals of one of Morula's own modules, which are taken as constants?"""
    return str(namespace.get("__name__", "")).split(".")[0] == "morula"


def fold_calls(folding: Folding, adjoint: Collection[Block] = (), exact: bool = True) -> bool:
    """Replace calls by what they are known to give."""
    ir = folding.ir
    mapping: dict[Var, Operand] = {}
    rewritten = False
    for block in ir.blocks:
        kept: list[Call] = []
        folding.in_adjoint = block in adjoint
        folding.exact = exact and not folding.in_adjoint
        folding.block = block
        for call in block.calls:
            replace_operands(call, mapping)
            if folding.primal is not None:
                folding.in_adjoint = call.out not in folding.primal
                folding.exact = not folding.in_adjoint
            fold = None
            if type(call.fn) is Const and not call.keywords:
                fold = FOLDS.get(id(call.fn.value))
            value = zero_of(folding, call)
            if value is None and fold is not None:
                value = fold(folding, call)
            if value is None:
                value = computed(call)
            if value is None:
                kept.append(call)
            elif type(value) is list:
                folding.count_again(call, value)
                if folding.primal is not None and not folding.in_adjoint:
                    folding.primal.update([c.out for c in value])
                kept += value
                folding.definitions.update((c.out, c) for c in value)
                folding.block_of.update((c.out, block) for c in value)
                rewritten = True
            elif folding.must_stay(call, found := replaced(mapping, value)):  # type: ignore[arg-type]
                kept.append(Call(call.out, Const(alias), (found,), (), call.position))
            else:
                mapping[call.out] = found
                folding.count_again(call, found)
        block.calls = kept
    substitute(ir, mapping)
    return bool(mapping) or rewritten


def zero_of(f: Folding, call: Call) -> Operand | list[Call] | None:
    """What arithmetic with a structural zero gives: that zero, the other operand or its negative."""
    fn, args = call.primitive, call.args
    if len(args) > 2 or id(fn) not in WITH_ZEROS:
        return None
    zeros = [type(x) is Const and isinstance(x.value, AbstractZero) for x in args]
    if True not in zeros:
        return None
    if fn in (operator.add, operator.sub):
        if zeros[-1]:
            return args[0]
        return args[1] if fn is operator.add else [f.same_call(call, operator.neg, args[1])]
    return Const(ZERO) if zeros[0] or fn in (operator.mul, operator.matmul) else None


WITH_ZEROS = {
    id(f)
    for f in (
        operator.add, operator.sub, operator.mul, operator.matmul, operator.truediv, operator.neg,
        operator.getitem,
    )
}  # fmt: skip

SIMPLE = (int, float, bool, str, type(None))


def computed(call: Call) -> Operand | None:
    """What a type-stable function of simple constants gives."""
    for a in call.args:
        if type(a) is Var or not is_simple(a.value):
            return None
    fn = call.primitive
    if fn is None or call.keywords or not call.args:
        return None
    entry = registry.get(fn)
    if entry is None or not entry.stable:
        return None
    try:
        value = fn(*[a.value for a in call.args])
    except Exception:  # it happens when the program runs
        return None
    return Const(value) if is_simple(value) else None


def is_simple(x: Any) -> bool:
    """Is it an immutable value of a plain type?"""
    return type(x) in SIMPLE or (type(x) is tuple and all(map(is_simple, x)))


def fold_branches(ir: IR) -> bool:
    """A branch on a constant is taken always or never."""
    changed = False
    for block in ir.blocks:
        if len(block.branches) == 2 and type(cond := block.branches[0].cond) is Const:
            block.branches = [block.branches[0 if cond.value else 1]]
            block.branches[0].cond = None
            changed = True
    if changed:
        ir.blocks = reachable(ir)
    return changed


def share(
    ir: IR, side: Callable[[Block, Call], Hashable], gives_the_same: Callable[[Call], bool]
) -> bool:
    """Compute what is computed twice once: calls that give the same for the same operands.

    A value is shared where its block dominates, among calls that are on the same `side`.
    """
    children: dict[Block, list[Block]] = {}
    for block, parent in dominators(ir).items():
        if parent is not None:
            children.setdefault(parent, []).append(block)
    mapping: dict[Var, Operand] = {}
    overwritten = {c.args[0] for c in ir.calls() if is_written(c.primitive) and c.args}
    work: list[tuple[Block, dict[Any, Var]]] = [(ir.entry, {})]
    while work:
        block, known = work.pop()
        known = dict(known)
        kept = []
        for call in block.calls:
            replace_operands(call, mapping)
            key = _key_of(call, side(block, call)) if gives_the_same(call) else None
            if key is None or call.out in overwritten:
                kept.append(call)
            elif key in known:
                mapping[call.out] = known[key]
            else:
                known[key] = call.out
                kept.append(call)
        block.calls = kept
        work += [(child, known) for child in children.get(block, ())]
    substitute(ir, mapping)
    return bool(mapping)


def _key_of(call: Call, side: Hashable) -> Any:
    """What two calls that give the same have in common; None: the call stands for itself."""
    if is_written(call.primitive):
        return None
    return side, id(call.primitive), call.keywords, tuple([_operand_key(a) for a in call.args])


def _operand_key(x: Operand) -> Any:
    if type(x) is Var:
        return x
    if is_simple(x.value) or type(x.value) is slice:
        return type(x.value), repr(x.value)
    return id(x.value)


def is_removable(call: Call) -> bool:
    """Has the call no effect but its result?"""
    return call.removable or (type(call.fn) is Const and id(call.fn.value) in PURE)


def remove_unused(ir: IR) -> bool:
    """Remove calls without effect whose results nobody uses, and parameters likewise."""
    passed: dict[Var, list[Operand]] = {}
    work: list[Operand | None] = []
    optional: dict[Var, Call] = {}
    cells = {c.out for c in ir.calls() if c.primitive is make_cell}
    sets: dict[Var, list[Call]] = {}  # of local cells: they live as long as the cell does
    for call in ir.calls():
        if call.primitive is set_cell and call.args[0] in cells:
            sets.setdefault(call.args[0], []).append(call)
        elif is_removable(call):
            optional[call.out] = call
        else:
            work += call.operands()
    for p, a in ir.passed():
        passed.setdefault(p, []).append(a)
    work += ir.returned()
    work += [branch.cond for block in ir.blocks for branch in block.branches]
    live: set[Var] = set()
    while work:
        x = work.pop()
        if type(x) is not Var or x in live:
            continue
        live.add(x)
        if (needed := optional.pop(x, None)) is not None:
            work += needed.operands()
        work += passed.get(x, ())
        for call in sets.pop(x, ()):
            work += call.operands()
    unused = {*optional.values(), *itertools.chain(*sets.values())}
    for block in ir.blocks:
        if not unused.isdisjoint(block.calls):
            block.calls = [c for c in block.calls if c not in unused]
    return bool(unused)
