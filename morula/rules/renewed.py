"""Writes of compiled programs to arrays that nobody else holds: `w /= s` becomes `w = w / s`.

Where a program has made an array itself, and nothing that may share its memory is read again, a new
array in its place is the same to everybody; values by value are what a gradient is fastest with. The
others have shadows (buffers.py). `w[k] = v` makes a copy, so not where a loop does it, and not where
shadows do.
Tests: tests/rules/test_renewed.py
"""

from __future__ import annotations

import operator
from types import FunctionType
from typing import Any

import numpy as np

from morula.core.extend import (
    ZERO,
    Call,
    Const,
    Known,
    NoTangent,
    Var,
    effects,
    fresh_results,
    gives_new,
    is_constant,
    known,
    non_differentiable,
    only_reads,
    possibilities,
    primitives,
    registry,
    repeatable,
    result_on_samples,
    rewrites,
    rrule,
    substitute,
    transfers,
    typed_zero,
)
from morula.rules.arrays.inplace import OPERATORS, frozen, in_shape, last_writes
from morula.rules.arrays.outs import has_out
from morula.rules.arrays.structural import selected
from morula.rules.arrays.traits import whole_shape
from morula.rules.arrays.types import Anything
from morula.rules.buffers import COPIES, IN_PLACE, LINEAR, LOOKS, MAKERS, reachable_from_ends

VIEWS = (
    operator.getitem, np.ndarray.reshape, np.reshape, np.ravel, np.ndarray.ravel, np.transpose,
    np.ndarray.transpose, np.asarray, np.broadcast_to, np.expand_dims, np.squeeze, np.swapaxes,
    np.moveaxis, np.atleast_1d, np.atleast_2d, primitives.alias, primitives.build_tuple,
)  # fmt: skip


@rewrites
def renew(s: Any) -> bool:
    """Put new arrays in the place of arrays that are written to; was there any?"""
    if not any(is_write(s, c) for c in s.ir.calls()):
        return False
    return Renewal(s).apply()


def is_write(s: Any, call: Any) -> bool:
    """Is it a write to what is known as a real array?"""
    if id(call.primitive) not in WRITING:
        return False
    k = known(s.value(call.args[0]))
    return k is not None and k.type is np.ndarray and k.detail is not None and k.detail[0] in REAL


WRITING = {id(f) for f in (*IN_PLACE, operator.setitem)}
REAL = ("<f8", "<f4")


class Renewal:
    """One program, and what its variables may share."""

    def __init__(self, s: Any) -> None:
        self.s = s
        self.ir = s.ir
        self.made = {c.out: c for c in self.ir.calls()}
        self.group: dict[Any, Any] = {}  # of variables that may be the same array: one of them

    def find(self, x: Any) -> Any:
        """The variable that stands for the group of x."""
        while (next_one := self.group.get(x, x)) is not x:
            x = next_one
        return x

    def join(self, x: Any, y: Any) -> None:
        """Put two variables into one group."""
        if type(x) is Var and type(y) is Var:
            self.group[self.find(x)] = self.find(y)

    def apply(self) -> bool:
        """Renew what can be, group by group."""
        for call in self.ir.calls():
            if self.shares(call):
                every = call.primitive is primitives.build_tuple
                for x in call.args if every else call.args[:1]:
                    if not self.is_number(x):
                        self.join(call.out, x)
        for p, a in self.ir.passed():
            self.join(p, a)
        writes: dict[Any, list[tuple[Any, Call]]] = {}
        for block in self.ir.blocks:
            for call in block.calls:
                if is_write(self.s, call):
                    writes.setdefault(self.find(call.args[0]), []).append((block, call))
        done = False
        for group, found in writes.items():
            if self.is_left(group, found) or not self.is_own(group):
                continue
            if all(self.is_renewable(group, *w) for w in found):
                for block, call in found:
                    self.rewrite(block, call)
                done = True
        return done

    def is_left(self, group: Any, writes: list[tuple[Any, Call]]) -> bool:
        """Is a group better left as it is, where single entries are written in loops or by shadows?"""
        entries = [(b, c) for b, c in writes if c.primitive is operator.setitem]
        if any(b in reachable_from_ends(b) and not self.is_made_in(b, c) for b, c in entries):
            return True
        made = [self.made[x].primitive for x in self.members(group) if x in self.made]
        whole = [
            fn for fn in made if fn not in VIEWS and id(fn) not in WRITING and fn is not getattr
        ]
        return bool(entries) and all(fn in (*MAKERS, *COPIES) for fn in whole)

    def is_made_in(self, block: Any, write: Any) -> bool:
        """Is what is written to computed in the same block, so that a copy takes no longer?"""
        made = self.made.get(write.args[0])
        return made is not None and made in block.calls and not self.shares(made)

    def shares(self, call: Any) -> bool:
        """May the result be an operand, or in its memory, or hold it?"""
        if self.is_number(call.out) or self.picks(call):
            return False
        return call.primitive in VIEWS or id(call.primitive) in WRITING or call.primitive is getattr

    def picks(self, call: Any) -> bool:
        """Is it `x[k]` where k has arrays in it, which makes a new array?"""
        if call.primitive is not operator.getitem:
            return False
        k = known(self.s.value(call.args[1]))
        parts = [k] if k is None or k.type is not tuple else [known(p) for p in k.detail or ()]
        return any(p is not None and p.type in (np.ndarray, list) for p in parts)

    def is_new(self, call: Any) -> bool:
        """Does a call give an array that shares memory with nothing?"""
        if has_out(call.primitive, len(call.args) - len(call.keywords), call.keywords):
            return False
        if call.primitive is np.array:
            return "copy" not in call.keywords and len(call.args) == 1
        return gives_new(call.primitive) or self.picks(call)

    def is_number(self, x: Any) -> bool:
        """Is it certainly no array, and nothing that may hold one?"""
        value = self.s.value(x)
        return value is not None and all(
            typed_zero(k.type) is not None or k.type in (bool, int, str, type(None))
            for k in possibilities(value)
        )

    def members(self, group: Any) -> list[Any]:
        """All variables of a group."""
        params = [p for b in self.ir.blocks for p in b.params]
        return [x for x in (*self.made, *params) if self.find(x) is group]

    def is_own(self, group: Any) -> bool:
        """Has the program made all these arrays, and does nobody else get hold of them?"""
        members = set(self.members(group))
        if members & {*self.ir.entry.params, *self.ir.free}:
            return False
        for x in members & self.made.keys():
            call = self.made[x]
            if not (self.is_new(call) or self.shares(call)):
                return False
            if self.shares(call) and not any(a in members for a in call.args):
                return False
        return all(self.is_harmless(c, members) for c in self.ir.calls())

    def is_harmless(self, call: Any, members: set[Any]) -> bool:
        """Does a call keep none of these arrays?"""
        if not any(x in members for x in call.operands()):
            return True
        if type(call.fn) is not Const or (
            self.s.changes_value(call) and not is_write(self.s, call)
        ):
            return False
        if call.out in members or is_write(self.s, call) or call.primitive in LOOKS:
            return True
        return self.is_new(call) or (self.gives_other(call.out) and keeps_nothing(call.primitive))

    def gives_other(self, x: Any) -> bool:
        """Is it something that cannot be in the memory of an array of real numbers?"""
        detail = self.detail(x)
        return self.is_number(x) or (detail is not None and detail[0] not in REAL)

    def is_renewable(self, group: Any, block: Any, call: Any) -> bool:
        """Is the array, as it was before this write, read no more? And is the new one like it?"""
        x, v = call.args[0], call.args[-1]
        made = self.made.get(x)
        if call.keywords or (made is not None and made.primitive in VIEWS and self.shares(made)):
            return False
        alive = alive_behind(self.ir, block, call) - {call.out}
        own = {call.args[0]} if call.primitive is operator.setitem else set()
        if any(self.find(y) is group for y in alive - own):
            return False
        detail = self.detail(x)
        if call.primitive is operator.setitem:
            return self.is_real(v) and self.is_renamable(block, x)
        k = known(
            result_on_samples(OPERATORS[call.primitive], [self.s.value(a) for a in call.args])
        )
        return k is not None and k.type is np.ndarray and k.detail[:2] == detail[:2]

    def detail(self, x: Any) -> Any:
        """What is known of an array: dtype, number of axes, shape."""
        k = known(self.s.value(x))
        return None if k is None or k.type is not np.ndarray else k.detail

    def is_real(self, x: Any) -> bool:
        """Is it a real number, or an array of such?"""
        value = self.s.value(x)
        return value is not None and all(
            k.type in (float, int, bool, np.float64)
            or (k.type is np.ndarray and k.detail is not None and k.detail[0] in REAL)
            for k in possibilities(value)
        )

    def is_renamable(self, block: Any, x: Any) -> bool:
        """Does all that reads x behind a write stand where only that write can have been before?"""
        behind = reachable_from_ends(block)
        elsewhere, work = {self.ir.entry}, [self.ir.entry]
        if block in elsewhere:
            return True
        while work:
            for b in work.pop().successors():
                if b is not block and b not in elsewhere:
                    elsewhere.add(b)
                    work.append(b)
        return not any(x in reads_of(b) for b in behind & elsewhere)

    def rewrite(self, block: Any, call: Any) -> None:
        """A new array in the place of the one that is written to."""
        x, v = call.args[0], call.args[-1]
        if call.primitive is operator.setitem:
            new = self.ir.var(x.name)
            self.s.types[new] = self.s.value(x)
            behind = reachable_from_ends(block)
            i = block.calls.index(call)
            whole = type(call.args[1]) is Const and call.args[1].value is Ellipsis
            fn, args = (filled, (x, v)) if whole else (with_item, call.args)
            block.calls[i] = Call(new, Const(fn), args, (), call.position)
            for later in block.calls[i + 1 :]:
                later.fn, *args = [new if a is x else a for a in (later.fn, *later.args)]
                later.args = tuple(args)
            rename(block.branches, x, new)
            self.give_none(call.out, new)
            for b in behind - {block}:  # in a loop, what stands ahead is of the next x
                for later in b.calls:
                    later.args = tuple([new if a is x else a for a in later.args])
                rename(b.branches, x, new)
            return
        call.fn = Const(OPERATORS[call.primitive])
        before, other = self.detail(x), known(self.s.value(v))
        if other is not None and other.type is not np.ndarray:
            return
        given = None if other is None or other.detail is None else other.detail
        ahead = []
        if given is None or not has_room(whole_shape(before), whole_shape(given)):
            ahead.append(Call(self.ir.var(), Const(require_room), (x, v), (), call.position))
        if x is not v and not is_along_one_axis(before) and not is_along_one_axis(given):
            ahead.append(Call(self.ir.var(), Const(laid_out_as), (v, x), (), call.position))
            self.s.types[ahead[-1].out] = self.s.value(v)
            call.args = (x, ahead[-1].out)
        i = block.calls.index(call)
        block.calls[i:i] = ahead

    def give_none(self, out: Any, new: Any) -> None:
        """A write gave None to its readers; that it is done is required where it may raise."""
        for call in self.ir.calls():
            if call.primitive is primitives.require:
                call.args = tuple([new if a is out else a for a in call.args])
        substitute(self.ir, {out: Const(None)})


def has_room(shape: Any, given: Any) -> bool:
    """Has the result for an array of this shape and another operand the same shape?"""
    return None not in (shape, given) and np.broadcast_shapes(shape, given) == shape


def is_along_one_axis(detail: Any) -> bool:
    """Is there at most one axis of more than one entry?"""
    if detail is None:
        return False
    shape = whole_shape(detail)
    return detail[1] < 2 or (shape is not None and sum(n != 1 for n in shape) < 2)


def keeps_nothing(fn: Any) -> bool:
    """Is it sure that what a function is given is not held by anybody when it is done?"""
    if type(fn) is FunctionType and str(fn.__module__).split(".")[0] != "morula":
        return False  # a user's, which has been declared to have no derivative
    entry = registry.registry.get(fn)
    return is_constant(fn) or (entry is not None and (entry.stable or entry.pure))


def rename(branches: Any, x: Any, new: Any) -> None:
    """Pass and ask for another variable."""
    for branch in branches:
        branch.args = [new if a is x else a for a in branch.args]
        branch.cond = new if branch.cond is x else branch.cond


def reads_of(block: Any) -> set[Any]:
    """All that a block reads."""
    found = {x for c in block.calls for x in c.operands()}
    for branch in block.branches:
        found |= {*branch.args, branch.cond}
    return found


def alive_behind(ir: Any, block: Any, call: Any) -> set[Any]:
    """The variables that something may read behind a call."""
    alive: dict[Any, set[Any]] = {b: set() for b in ir.blocks}
    changed = True
    while changed:
        changed = False
        for b in ir.blocks:
            found = alive_at(b, alive, None)
            if found != alive[b]:
                alive[b] = found
                changed = True
    return alive_at(block, alive, call)


def alive_at(block: Any, alive: dict[Any, set[Any]], until: Any) -> set[Any]:
    """The variables that are read at the beginning of a block or later, or behind one of its calls."""
    found: set[Any] = set()
    for branch in block.branches:
        found |= {x for x in (*branch.args, branch.cond) if type(x) is Var}
        if branch.block is not None:
            found |= alive[branch.block]
    for c in reversed(block.calls):
        if c is until:
            return found
        found.discard(c.out)
        found |= {x for x in c.operands() if type(x) is Var}
    return found - set(block.params)


# -- what runs -------------------------------------------------------------------------------------


def require_room(x: np.ndarray, v: Any) -> None:
    """Raise what an in-place operator raises where the result is larger than x."""
    shape = np.shape(v)
    if shape != x.shape and np.broadcast_shapes(x.shape, shape) != x.shape:
        operator.iadd(x, v)  # raises, and says the shapes


non_differentiable(require_room)
only_reads(require_room)
effects(require_room)
transfers(require_room)(lambda s, call, args: Known(type(None)))


def laid_out_as(v: np.ndarray, x: np.ndarray) -> np.ndarray:
    """An operand in an order of axes by which a new result is laid out as x is."""
    if x.flags.c_contiguous or v.ndim < 2 or v.strides == x.strides:
        return v
    strides = x.strides[x.ndim - v.ndim :]
    axes = sorted(range(v.ndim), key=lambda i: -strides[i])
    return v.transpose(axes).copy().transpose(np.argsort(axes))


@rrule(laid_out_as)
def _(v: np.ndarray, x: np.ndarray):
    def laid_out_pullback(ȳ):
        return ȳ, NoTangent()

    return laid_out_as(v, x), laid_out_pullback


@transfers(laid_out_as)
def _(s: Any, call: Any, args: Any) -> Any:
    return args[0]


only_reads(laid_out_as)
LINEAR.append(laid_out_as)


def with_item(x: np.ndarray, index: Any, value: Any) -> np.ndarray:
    """A copy of x that holds `value` at `index`."""
    y = x.copy("K")
    y[index] = value
    return y


@rrule(with_item)
def _(x: np.ndarray, index: Anything, value: Anything):
    index = frozen(index)
    shape, given = x.shape, np.shape(value)

    def with_item_pullback(ȳ):
        v̄ = ȳ[index]
        last = last_writes(shape, index)
        v̄ = v̄ if last is None else np.where(last, v̄, 0.0)
        return selected(ȳ, kept_by(shape, index)), NoTangent(), in_shape(v̄, given)

    return with_item(x, index, value), with_item_pullback


def kept_by(shape: tuple[int, ...], index: Any) -> np.ndarray:
    """Which entries an assignment to these places leaves as they are."""
    kept = np.ones(shape, bool)
    kept[index] = False
    return kept


def filled(x: np.ndarray, value: Any) -> np.ndarray:
    """An array like x of which all is `value`."""
    y = np.empty_like(x)
    y[...] = value
    return y


@rrule(filled)
def _(x: np.ndarray, value: Anything):
    shape = np.shape(value)

    def filled_pullback(ȳ):
        return ZERO, in_shape(ȳ, shape)

    return filled(x, value), filled_pullback


non_differentiable(kept_by)
fresh_results(with_item, filled)
repeatable(with_item, filled)


@transfers(with_item, filled)
def _(s: Any, call: Any, args: Any) -> Any:
    return args[0]
