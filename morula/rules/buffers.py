"""Buffers: arrays that a compiled program makes and writes to.

Where all that a program does with such an array is known, it has a shadow, as lists have (shadows.py):
an array of the same shape, made beside it in the primal, that holds the cotangents of its entries in
the adjoint. The meaning is that of rules/arrays/memory.py and inplace.py: what is read adds to the
shadow, what is written takes the cotangent from there, and what was overwritten is put back. A view of
a buffer has the same view of the shadow as its own. Where an infinite slope may meet what is written
and never read, an entry of a shadow that nothing has reached is -0.0, which no sum with 0.0 is.

Arrays that a loop only reads, entry by entry, have shadows too: each reading costs the same, however
long the array.
Tests: tests/rules/test_buffers.py
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from morula.core.extend import (
    NONE,
    ZERO,
    Call,
    Const,
    Known,
    Pair,
    Rule,
    Var,
    changes_in_place,
    effects,
    fresh_results,
    gives_new,
    is_constant_call,
    is_zero,
    known,
    loop_step,
    made_again,
    marks_results,
    non_differentiable,
    only_reads,
    part_of,
    possibilities,
    prepares,
    prepares_writes,
    primitives,
    result_on_samples,
    rewrites,
    spread_varied,
    transfers,
    type_stable,
    typed_zero,
    unthunk,
    varied_variables,
    written_results,
)
from morula.rules.arrays.broadcasting import match, total
from morula.rules.arrays.inplace import last_writes
from morula.rules.arrays.structural import Selected, mark
from morula.rules.arrays.traits import whole_shape
from morula.rules.list_types import components
from morula.rules.shadows import UnknownUseError

MAKERS = (np.zeros, np.empty, np.ones, np.zeros_like, np.empty_like, np.ones_like)
COPIES = (np.ndarray.copy, np.copy)
LOOKS = (
    len, primitives.require, primitives.actual_type, primitives.actual_attribute,
    primitives.actual_length,
    operator.is_, operator.is_not, np.shape, np.ndim, np.size,
)  # fmt: skip
# They give new arrays, of truth values.
COMPARISONS = (
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, np.less,
    np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isnan, np.isfinite,
    np.isinf, np.signbit,
)  # fmt: skip
# What a cotangent passes without being multiplied by a slope of its own, and multiplied by a number.
LINEAR = [
    operator.add, operator.sub, operator.neg, operator.pos, operator.getitem, operator.iadd,
    operator.isub, np.add, np.subtract, np.negative, np.positive, *COPIES, *MAKERS,
    np.ndarray.reshape, np.reshape, np.ravel, np.ndarray.ravel, np.transpose, np.ndarray.transpose,
    primitives.build_tuple, max, min, float, operator.matmul, np.dot, np.ndarray.dot, np.sum,
    np.ndarray.sum,
]  # fmt: skip
FACTORS = (operator.mul, operator.truediv)
SUMS = (
    operator.add, operator.sub, operator.neg, operator.pos, np.add, np.subtract, np.negative,
    np.positive, np.sum, np.ndarray.sum, *COPIES, np.ravel, np.ndarray.ravel, np.reshape,
    np.ndarray.reshape, np.transpose, np.ndarray.transpose,
)  # fmt: skip
FLOAT = np.dtype(float).str
REAL = (float, np.float64)


@prepares_writes
def give_buffers_shadows(adjoint: Any) -> set[Any] | None:
    """Rewrite a program so that its buffers have shadows; what then carries a derivative.

    None, with nothing changed, where that is not possible.
    """
    try:
        return Buffers(adjoint).apply()
    except UnknownUseError:
        return None


@prepares
def give_readings_shadows(adjoint: Any) -> set[Any] | None:
    """The same for arrays that loops read, in a program that writes to none."""
    if adjoint.specialiser.writes_in_place:
        return None
    if adjoint.prepared is None and adjoint.may_change_leaves():
        return None
    try:
        return Buffers(adjoint).apply_to_readings()
    except UnknownUseError:
        return None


class Place(NamedTuple):
    """A row of an array: `counter + offset`; without a counter, nothing is known of which."""

    array: Any
    counter: Any
    offset: int


class Buffers:
    """The rewriting of one program."""

    def __init__(self, adjoint: Any) -> None:
        self.adjoint = adjoint
        self.s = adjoint.specialiser
        self.ir = self.s.ir.copy()
        self.definitions = {c.out: c for c in self.ir.calls()}
        self.block_of = {c.out: b for b in self.ir.blocks for c in b.calls}
        self.owner = {p: (b, i) for b in self.ir.blocks for i, p in enumerate(b.params)}
        self.entries = self.ir.predecessors()
        self.members: set[Any] = set()
        self.shadows: dict[Any, Any] = {}
        self.pairs: dict[Any, Any] = {}
        self.results: set[Any] = set()
        self.varied: set[Any] = set()
        self.undone = True  # must what writes overwrite be put back?
        self.marked = False  # does it matter which entries nothing has reached?

    # -- which arrays

    def find_members(self) -> None:
        """The arrays that are written to, and all that share their memory."""
        for call in self.ir.calls():
            if call.out not in self.adjoint.apart and self.s.changes_value(call):
                if not is_write(call):
                    raise UnknownUseError
                self.members.add(call.args[0])
        changed = True
        while changed:
            before = len(self.members)
            for call in self.ir.calls():
                if self.shares(call) and {call.out, call.args[0]} & self.members:
                    self.members.update((call.out, call.args[0]))
            for p, a in self.ir.passed():
                if p in self.members or a in self.members:
                    self.members.update((p, a))
            changed = len(self.members) > before

    def shares(self, call: Any) -> bool:
        """Is the result of a call in the memory of its first operand?"""
        if call.primitive in IN_PLACE:
            return self.is_array(call.args[0])
        view = (
            (call.primitive is operator.getitem and not self.picks(call.args[1]))
            or is_transpose(call)
            or (call.primitive is np.ndarray.transpose and len(call.args) == 1)
            or self.is_diagonal(call)
        )
        return view and self.is_array(call.args[0]) and self.is_array(call.out)

    def is_mask(self, k: Any) -> bool:
        """Is it an index of truth values, which picks entries, each once?"""
        found = known(self.s.value(k))
        return found is not None and found.type is np.ndarray and found.detail[0][1] == "b"

    def picks(self, k: Any) -> bool:
        """Is there an array in an index? Then what it means is a copy."""
        try:
            return np.ndarray in self.index_types(k)
        except UnknownUseError:
            return False

    def way_of(self, x: Any, k: Any) -> str:
        """What x[k] is: an entry, a part in the memory of x, or picked by a mask or by numbers."""
        if self.is_mask(k):
            return "mask"
        if self.picks(k):
            if not self.is_index(k):
                raise UnknownUseError
            return "picked"
        return "entry" if self.is_entry(x, k) else "part"

    def is_diagonal(self, call: Any) -> bool:
        """Is it the diagonal of a matrix, which is a view?"""
        if call.primitive not in (np.diag, np.diagonal, np.ndarray.diagonal):
            return False
        k = self.kind(call.args[0])
        return len(call.args) == 1 and not call.keywords and k is not None and k[1] == 2

    def kind(self, x: Any) -> Any:
        """The detail of an array of float64 of known type; None: it is something else."""
        k = known(self.s.value(x))
        if k is None or k.type is not np.ndarray or k.detail[0] != FLOAT:
            return None
        return k.detail

    def is_array(self, x: Any) -> bool:
        """May it be an array?"""
        value = self.s.value(x)
        return value is None or any(issubclass(k.type, np.ndarray) for k in possibilities(value))

    def is_real(self, x: Any) -> bool:
        """Is it a real number, or an array of such?"""
        value = self.s.value(x)
        if value is None:
            return False
        return all(
            k.type in REAL or (k.type is np.ndarray and k.detail[0] == FLOAT)
            for k in possibilities(value)
        )

    def is_plain(self, x: Any) -> bool:
        """Is it a number that may be written to an array of real ones?"""
        value = self.s.value(x)
        return value is not None and all(k.type in (*REAL, int, bool) for k in possibilities(value))

    # -- what is only read

    def read_by_loops(self) -> dict[Any, list[Any]]:
        """The arrays that loops read entry by entry, or part by part, and the calls that do."""
        read: dict[Any, list[Any]] = {}
        for block in self.ir.blocks:
            again = reachable_from_ends(block)
            if block not in again:
                continue
            for call in block.calls:
                if call.primitive is not operator.getitem or call.keywords:
                    continue
                x = call.args[0]
                if type(x) is not Var or x in self.members or x not in self.varied:
                    continue
                home = self.block_of.get(x) or self.owner[x][0]
                if home not in again and self.kind(x) is not None and self.is_basic(*call.args):
                    read.setdefault(x, []).append(call)
        return read

    def is_basic(self, x: Any, k: Any) -> bool:
        """Is it an index that meets no entry twice?"""
        try:
            self.is_entry(x, k)
        except UnknownUseError:
            return False
        return True

    def follow_readings(self, read: dict[Any, list[Any]]) -> None:
        """Readings add to the shadow of the array, which is a part of its cotangent."""
        for x, calls in read.items():
            marked = self.asks(x, set())
            x̂ = self.ir.var(f"{x.name}̂")
            shadow = Call(x̂, Const(shadow_rule(marked, self.adjoint.again)), (x,))
            if (made := self.definitions.get(x)) is not None:
                block = self.block_of[x]
                block.calls.insert(block.calls.index(made) + 1, shadow)
            else:
                self.owner[x][0].calls.insert(0, shadow)
            self.pairs[x̂] = Pair(shadow.fn, (x,), (), ((0, x),), True)
            for call in calls:
                k = call.args[1]
                rule = reading_of("entry" if self.is_entry(x, k) else "part", marked)
                self.pair(call, rule, (x, x̂, k), (), always=False)

    # -- which zeros matter

    def writes_what_asks(self, call: Any) -> bool:
        """May the slope of what is written to a buffer be infinite?"""
        if not (is_write(call) and call.args[0] in self.members):
            return False
        v = call.args[-1]
        if call.primitive in (operator.imul, operator.itruediv) and not self.is_factor(v):
            return True
        return self.asks(v, set())

    def asks(self, x: Any, seen: set[Any]) -> bool:
        """May a cotangent of x be multiplied by an infinite slope? What buffers hold is asked apart."""
        if type(x) is not Var or x not in self.varied or x in seen:
            return False
        seen.add(x)
        if x in self.owner:
            block, i = self.owner[x]
            return any(self.asks(b.args[i], seen) for _, b in self.entries[block])
        call = self.definitions[x]
        fn, args = call.primitive, call.args
        if fn in FACTORS:
            plain = self.is_factor(args[1]) or (fn is operator.mul and self.is_factor(args[0]))
            return not plain or any(self.asks(a, seen) for a in args)
        if fn is getattr:
            return self.asks(args[0], seen)
        return fn not in LINEAR or any(self.asks(a, seen) for a in args)

    def is_factor(self, x: Any) -> bool:
        """Is it a number that was given, which is taken to be finite?"""
        if type(x) is not Var or x not in self.varied:
            return True
        return x in self.owner and self.owner[x][0] is self.ir.entry and not self.is_array(x)

    # -- the rewriting

    def apply(self) -> set[Any]:
        """Give all buffers shadows; returns the variables that carry a derivative."""
        self.find_members()
        if not all(type(x) is Var and self.kind(x) is not None for x in self.members):
            raise UnknownUseError
        self.find_varied()
        self.undone = self.is_read_before_written()
        self.marked = any(map(self.writes_what_asks, self.ir.calls()))
        read = self.read_by_loops()
        if not self.members.isdisjoint(self.ir.returned()):
            raise UnknownUseError
        for block in self.ir.blocks:
            for call in list(block.calls):
                self.rewrite(block, call)
        for x in list(self.members):
            self.shadow(x)
        self.follow_readings(read)
        self.plan_pairs()
        return self.varied

    def apply_to_readings(self) -> set[Any] | None:
        """The same for a program that writes to no array: it may read arrays in loops."""
        varied = self.adjoint.prepared  # as they are if lists have shadows
        self.varied |= varied_variables(self.s, self.adjoint.leaves) if varied is None else varied
        read = self.read_by_loops()
        if not read:
            return None
        self.follow_readings(read)
        self.plan_pairs()
        return self.varied

    def plan_pairs(self) -> None:
        """Tell the adjoint what has been planned."""
        self.adjoint.pairs.update(self.pairs)
        self.adjoint.rules.update(
            (id(p.forward.value), Rule(p.forward.value, p.forward.value))
            for p in self.pairs.values()
        )
        self.s.ir = self.ir

    def find_varied(self) -> None:
        """What carries a derivative by value: buffers do not, what is read from them does."""
        adjoint = self.adjoint
        roots = {*adjoint.leaves, *[c.out for c in self.ir.calls() if self.reads(c)]}
        if roots & self.members:
            raise UnknownUseError
        if adjoint.prepared is not None:  # lists have shadows
            self.varied |= (roots | adjoint.prepared) - self.members
            spread_varied(self.s, self.varied, self.members | adjoint.apart)
            return
        writes = {c.out for c in self.ir.calls() if self.is_write_here(c)}
        if adjoint.may_change_leaves(writes):
            raise UnknownUseError
        self.varied |= varied_variables(self.s, roots, self.members, writes)

    def is_read_before_written(self) -> bool:
        """May what a pullback reads from a buffer be overwritten between the call and its pullback?"""
        for block in self.ir.blocks:
            later = reachable_from_ends(block)
            for i, call in enumerate(block.calls):
                if not self.needs_contents(call):
                    continue
                follow = [*block.calls[i + 1 :], *[c for b in later for c in b.calls]]
                if any(self.is_write_here(c) and not self.is_beyond(c, call) for c in follow):
                    return True
        return False

    def is_beyond(self, write: Any, reading: Any) -> bool:
        """Does a write that follows a reading go to rows that come behind the rows that are read?"""
        written = self.place_of(write.args[0], write)
        read = [self.place_of(x, None) for x in reading.operands() if x in self.members]
        return all(self.comes_behind(written, place) for place in read)

    def comes_behind(self, a: Any, b: Any) -> bool:
        """Is the first of two places in another array, or by a counter's steps behind the second?"""
        if a is None or b is None:
            return False
        if a.array is not b.array:
            return True
        steps = self.least_of.get(a.counter)
        return steps is not None and a.counter is b.counter and a.offset > b.offset >= -steps

    def place_of(self, x: Any, write: Any) -> Any:
        """Which array a buffer is, or which row of one, by a counter; None: it is not known."""
        key = write.args[1] if write is not None and write.primitive is operator.setitem else None
        made = self.definitions.get(x)
        while made is not None and made.primitive not in (*MAKERS, zeros_for, unreached_like):
            if made.primitive not in IN_PLACE:
                key = made.args[1] if made.primitive is operator.getitem else None
            made = self.definitions.get(made.args[0]) if self.shares(made) else None
        return None if made is None else Place(made.out, *self.counted(key))

    def counted(self, key: Any) -> tuple[Any, int]:
        """The counter in the first part of an index, and what is added to it."""
        made: Any = self.definitions.get(key)
        offset = 0
        if made is not None and made.primitive is primitives.build_tuple and made.args:
            made, key = self.definitions.get(made.args[0]), made.args[0]
        while made is not None and made.primitive in (operator.add, operator.sub):
            key, by = made.args
            if type(by) is not Const or type(by.value) is not int:
                return None, 0
            offset += by.value if made.primitive is operator.add else -by.value
            made = self.definitions.get(key)
        return key, offset

    @functools.cached_property
    def least_of(self) -> dict[Any, int]:
        """The counters of the loops over ranges that run once, upwards, and what they begin with."""
        found: dict[Any, int] = {}
        for block in self.ir.blocks:
            step = loop_step(block)
            begun = None if step is None else self.definitions.get(step.args[0])
            made = None if begun is None else self.definitions.get(begun.args[0])
            if step is None or begun is None or made is None or made.primitive is not range:
                continue
            numbers = [getattr(x, "value", None) for x in made.args]
            begin = 0 if len(numbers) == 1 else numbers[0]
            upwards = len(numbers) < 3 or (type(numbers[2]) is int and numbers[2] > 0)
            home = self.block_of[begun.out]
            if type(begin) is int and upwards and home not in reachable_from_ends(home):
                found[step.out] = begin
        return found

    def is_write_here(self, call: Any) -> bool:
        """Does a call write to a buffer?"""
        return is_write(call) and call.args[0] in self.members

    def needs_contents(self, call: Any) -> bool:
        """May the pullback of a call read what a buffer held?"""
        if self.is_write_here(call):
            factor = call.primitive in (operator.imul, operator.itruediv)
            return factor and call.args[1] in self.members
        return self.reads(call) and not self.is_linear(call)

    def is_linear(self, call: Any) -> bool:
        """Does a call give a sum, a part or a multiple of buffers, so that its slope is constant?"""
        if call.primitive in FACTORS:
            a, b = call.args
            return not self.may_vary(b) or (call.primitive is operator.mul and not self.may_vary(a))
        return call.primitive is operator.getitem or call.primitive in SUMS

    def may_vary(self, x: Any) -> bool:
        """Does an operand carry a derivative?"""
        return x in self.varied or x in self.members

    def reads(self, call: Any) -> bool:
        """Does a call compute something from a buffer that may have a derivative?"""
        if call.out in self.members or call.primitive in (*LOOKS, *COMPARISONS):
            return False
        if not any(x in self.members for x in call.operands()):
            return False
        if is_write(call) and call.args[0] in self.members:
            return False
        constant = is_constant_call(call)
        if constant or call.primitive is getattr:
            if self.is_array(call.out) and not (constant and gives_new(call.fn.value)):
                raise UnknownUseError
            return False
        return True

    def pair(self, call: Any, rule: Any, args: Any, slots: Any, always: bool = True) -> None:
        """Let the adjoint take this rule for a call."""
        self.pairs[call.out] = Pair(Const(rule), tuple(args), (), tuple(slots), always)

    def rewrite(self, block: Any, call: Any) -> None:
        """What a call does with buffers, its pullback does with their shadows."""
        if call.primitive is operator.setitem and call.args[0] in self.members:
            self.rewrite_setitem(call)
        elif call.primitive in IN_PLACE and call.args[0] in self.members:
            self.rewrite_in_place(call)
        elif call.primitive is add_at and call.args[0] in self.members:
            self.rewrite_add_at(call)
        elif self.reads(call):
            self.rewrite_reading(call)
        elif call.out in self.members and self.has_varied_index(call):
            self.pair(call, plain_rule(operator.getitem, 2), call.args, (), always=False)

    def rewrite_setitem(self, call: Any) -> None:
        """`x[k] = v`: what was there is put back, its cotangent is that of v."""
        x, k, v = call.args
        if call.keywords:
            raise UnknownUseError
        way = self.way_of(x, k)
        entry = way == "entry"
        if v in self.members:
            if self.is_there_already(x, k, v):
                if k in self.varied:
                    self.pair(call, plain_rule(operator.setitem, 3), (x, k, v), ())
                return
            if way != "part":
                raise UnknownUseError
            rule = set_rule("part to a buffer", self.undone, self.marked)
            self.pair(call, rule, (x, self.shadow(x), k, v, self.shadow(v)), ())
            return
        unknown = entry and self.s.value(v) is None
        if not (unknown or self.is_real(v) or (self.is_plain(v) and v not in self.varied)):
            raise UnknownUseError
        if self.is_array(v):
            kind = "entry to an array" if entry else "part"
        else:
            kind = "entry" if entry else "part to a number"
        if way == "picked":
            kind = kind.replace("part", "picked")
        slots = [(3, v)] if v in self.varied else []
        self.pair(call, set_rule(kind, self.undone, self.marked), (x, self.shadow(x), k, v), slots)

    def is_there_already(self, x: Any, k: Any, v: Any) -> bool:
        """Is v the very part of x that it is assigned to, as in `x[k] += v`?"""
        made = self.definitions.get(v)
        while made is not None and made.primitive in IN_PLACE:
            made = self.definitions.get(made.args[0])
        return (
            made is not None
            and made.primitive is operator.getitem
            and made.args[0] is x
            and (made.args[1] is k or same_constant(made.args[1], k))
        )

    def is_entry(self, x: Any, k: Any) -> bool:
        """Is k the index of one entry? It must be one that gives an entry or a view."""
        _, ndim, _ = self.kind(x)
        kinds = self.index_types(k)
        if not all(t in (int, slice, type(Ellipsis), np.int64) for t in kinds):
            raise UnknownUseError
        return len(kinds) == ndim and all(t in (int, np.int64) for t in kinds)

    def index_types(self, k: Any) -> list[type]:
        """The types of the parts of an index."""
        value = self.s.value(k)
        if type(value) is Const and type(value.value) is tuple:
            return [type(i) for i in value.value]
        found = known(value)
        if found is None:
            raise UnknownUseError
        if found.type is not tuple:
            return [found.type]
        parts = [known(part) for part in found.detail or (None,)]
        if any(part is None for part in parts):
            raise UnknownUseError
        return [part.type for part in parts]  # type: ignore[union-attr]

    def rewrite_in_place(self, call: Any) -> None:
        """`x += v` and the like."""
        x, v = call.args
        if call.keywords or not (self.is_real(v) or (self.is_plain(v) and v not in self.varied)):
            raise UnknownUseError
        x̂ = self.shadow(x)
        if v in self.members:
            self.pair(
                call,
                in_place_rule(call.primitive, "buffer", self.undone, self.marked),
                (x, x̂, v, self.shadow(v)),
                (),
            )
            return
        slots = [(2, v)] if v in self.varied else []
        kind = ("array" if self.is_array(v) else "number") if slots else "constant"
        self.pair(
            call, in_place_rule(call.primitive, kind, self.undone, self.marked), (x, x̂, v), slots
        )

    def rewrite_add_at(self, call: Any) -> None:
        """`np.add.at(x, k, v)`."""
        x, k, v = call.args
        if v in self.members or not self.is_index(k):
            raise UnknownUseError
        slots = [(3, v)] if v in self.varied else []
        rule = add_at_rule(self.is_array(v), self.undone, self.marked)
        self.pair(call, rule, (x, self.shadow(x), k, v), slots)

    def is_index(self, k: Any) -> bool:
        """Is it made of whole numbers, slices, and arrays of numbers or truth values?"""
        indices = (int, np.int64, slice, type(Ellipsis), np.ndarray)
        return all(t in indices for t in self.index_types(k))

    def rewrite_reading(self, call: Any) -> None:
        """What is computed from buffers has the rule that it has, whose cotangents go to shadows."""
        if call.keywords or type(call.fn) is not Const:
            raise UnknownUseError
        if call.primitive is operator.getitem:
            x, k = call.args
            way = self.way_of(x, k)
            if way == "part":
                raise UnknownUseError
            rule = reading_of(way, self.marked)
            self.pair(call, rule, (x, self.shadow(x), k), (), always=False)
            return
        made = possibilities(self.s.value(call.out) or Known(object))
        numbers = all(typed_zero(k.type) is not None for k in made)
        if not numbers and not (
            gives_new(call.fn.value) and all(k.type is np.ndarray for k in made)
        ):
            raise UnknownUseError
        rule = self.adjoint.specialiser.rule_for(call)
        active = tuple((i, x) for i, x in enumerate(call.args) if x in self.varied)
        if rule is None or not rule.trusted or rule.by_identity or self.s.value(call.out) is None:
            raise UnknownUseError
        if self.adjoint.needs_projection(rule, call, active):
            raise UnknownUseError
        places = tuple([i for i, x in enumerate(call.args) if x in self.members])
        reader = reading_rule(rule.function, len(call.args), places, self.marked)
        self.adjoint.rules[id(rule.function)] = rule
        self.adjoint.note_pure(rule.function)
        shadows = [self.shadow(call.args[i]) for i in places]
        self.pair(call, reader, (*call.args, *shadows), active, always=False)

    # -- shadows

    def insert_after(self, call: Any, fn: Any, *args: Any) -> Any:
        """Call a function right behind a call."""
        out = self.ir.var()
        block = self.block_of[call.out]
        block.calls.insert(
            block.calls.index(call) + 1, Call(out, Const(fn), args, (), call.position)
        )
        self.adjoint.never_raising.add(out)
        return out

    def shadow(self, x: Any) -> Any:
        """The shadow of a buffer: where it comes from, its shadow does too."""
        found = self.shadows.get(x)
        if found is not None:
            return found
        if x in self.owner:
            return self.shadow_of_parameter(x)
        call = self.definitions[x]
        if call.primitive in IN_PLACE:
            found = self.shadow(call.args[0])
        elif self.is_diagonal(call):
            found = self.insert_after(call, diagonal_of, self.shadow(call.args[0]))
        elif self.shares(call):
            args = (self.shadow(call.args[0]), *call.args[1:])
            found = self.insert_after(call, call.primitive, *args)
            if call.primitive is operator.getitem:
                self.is_entry(call.args[0], call.args[1])
            if self.has_varied_index(call):
                rule = plain_rule(operator.getitem, 2)
                self.pairs[found] = Pair(Const(rule), args, (), (), False)
        elif call.primitive in (*MAKERS, zeros_for, unreached_like) or self.is_filled(call):
            found = self.insert_after(call, unreached_like if self.marked else np.zeros_like, x)
        elif call.primitive in COPIES and not call.keywords and len(call.args) == 1:
            if call.args[0] in self.members:
                return self.shadow_of_copy(x, call)
            rule = shadow_rule(self.marked, self.adjoint.again)
            found = self.insert_after(call, rule, x)
            self.pairs[found] = Pair(Const(rule), (x,), (), ((0, x),), True)
        else:
            raise UnknownUseError
        self.shadows[x] = found
        return found

    def has_varied_index(self, call: Any) -> bool:
        """Is it `x[k]` where k is made of integers that are arguments?"""
        return call.primitive is operator.getitem and call.args[1] in self.varied

    def is_filled(self, call: Any) -> bool:
        """Does a call make an array of one number, which carries no derivative?"""
        if call.primitive not in (np.full, np.full_like) or len(call.args) < 2:
            return False
        return not any(x in self.varied for x in call.args[1:])

    def shadow_of_copy(self, x: Any, call: Any) -> Any:
        """What the shadow of a copy holds in the end goes to that of the buffer it is a copy of."""
        source, rule = self.shadow(call.args[0]), copy_shadow_rule(self.marked)
        if x in self.shadows:  # by way of the source, in a loop
            return self.shadows[x]
        found = self.shadows[x] = self.insert_after(call, rule, x, source)
        self.pairs[found] = Pair(Const(rule), (x, source), (), (), True)
        return found

    def shadow_of_parameter(self, x: Any) -> Any:
        """A parameter's shadow is passed beside it."""
        block, i = self.owner[x]
        if block is self.ir.entry:
            raise UnknownUseError  # what an argument holds at the end would have to be made good
        out = self.ir.var(f"{x.name}̂")
        self.shadows[x] = out
        branches = [branch for _, branch in self.entries[block]]
        passed = [self.shadow(branch.args[i]) for branch in branches]
        block.params.append(out)
        for branch, x̂ in zip(branches, passed, strict=True):
            branch.args.append(x̂)
        return out


def is_transpose(call: Any) -> bool:
    """Is it `x.T`?"""
    return (
        call.primitive is getattr
        and len(call.args) == 2
        and getattr(call.args[1], "value", None) == "T"
    )


@rewrites
def call_transposes(s: Any) -> bool:
    """`x.T` of an array is `x.transpose()`, which has a rule by types."""
    found = [c for c in s.ir.calls() if is_transpose(c) and is_exact_array(s, c.args[0])]
    for call in found:
        call.fn, call.args = Const(np.ndarray.transpose), call.args[:1]
    return bool(found)


def is_exact_array(s: Any, x: Any) -> bool:
    """Is it known to be a plain array?"""
    k = known(s.value(x))
    return k is not None and k.type is np.ndarray


def reachable_from_ends(block: Any) -> set[Any]:
    """The blocks that control may come to after a block, itself among them if in a loop."""
    found: set[Any] = set()
    work = list(block.successors())
    while work:
        b = work.pop()
        if b not in found:
            found.add(b)
            work += b.successors()
    return found


def is_write(call: Any) -> bool:
    """Does a call write to an array, if its first operand is one?"""
    return call.primitive in (operator.setitem, add_at) or call.primitive in IN_PLACE


@made_again.append
def is_view(known_of: Any, call: Any) -> bool:
    """Is it a view by whole numbers and slices, or a transpose, which is made again in the adjoint?"""
    x = known_of(call.args[0]) if call.args else None
    if x is None or x.type is not np.ndarray:
        return False
    if call.primitive is np.ndarray.transpose:
        return len(call.args) == 1
    y = known_of(call.out)
    if call.primitive is not operator.getitem or y is None or y.type is not np.ndarray:
        return False
    k = call.args[1]
    if type(k) is Const:
        return all(type(i) in VIEWING for i in (k.value if type(k.value) is tuple else (k.value,)))
    k = known_of(k)
    if k is None:
        return False
    parts = k.detail or () if k.type is tuple else (k,)
    return bool(parts) and all(getattr(known(i), "type", None) in VIEWING for i in parts)


VIEWING = (int, np.int64, slice, type(Ellipsis), type(None))


def same_constant(a: Any, b: Any) -> bool:
    """Are both the same constant index?"""
    return type(a) is Const and type(b) is Const and repr(a.value) == repr(b.value)


# -- what is known of arrays whose extents are not -------------------------------------------------


def part_of_array(detail: Any, key: Any) -> Any:
    """An entry, a view by whole numbers and slices, or what arrays of indices and masks pick."""
    dtype, ndim, shape = detail
    kinds: list[Any] = [known(part) for part in components(key)]
    taken, added, picked = 0, 0, None
    for k in kinds:
        if k is None:
            return None
        if k.type in (int, np.int64):
            taken += 1
        elif k.type is type(None):
            added += 1
        elif k.type is np.ndarray and k.detail is not None and k.detail[0][1] in "ib":
            mask = k.detail[0][1] == "b"
            taken += k.detail[1] if mask else 1
            picked = max(picked or 0, 1 if mask else k.detail[1])
        elif k.type not in (slice, type(Ellipsis)):
            return None
    if taken > ndim:
        return None
    left = ndim - taken + added + (picked or 0)
    whole = all(k.type in (int, np.int64) for k in kinds)
    if left and shape is not None and None not in shape[ndim - left :] and whole:
        return Known(np.ndarray, (dtype, left, shape[ndim - left :]))
    is_array = left or any(k.type is type(Ellipsis) for k in kinds)
    return Known(np.ndarray, (dtype, left, None)) if is_array else Known(np.dtype(dtype).type)


part_of[np.ndarray] = part_of_array


@transfers(np.zeros, np.ones, np.empty)
def _(s: Any, call: Any, args: Any) -> Any:
    """The shape says how many axes there are, though not always how long they are."""
    found = result_on_samples(call.primitive, args, call.keywords)
    if len(args) != 1 or call.keywords or (type(found) is Known and whole_shape(found.detail)):
        return found
    kinds = [known(part) for part in components(args[0])]
    if not all(k is not None and k.type in (int, np.int64) for k in kinds):
        return found
    return Known(np.ndarray, (FLOAT, len(kinds), rows_of(args[0])))


def rows_of(shape: Any) -> Any:
    """A shape of which all is known but how many rows there are; None: less is known."""
    lengths = [getattr(n, "value", None) for n in components(shape)[1:]]
    return (None, *lengths) if lengths and all(type(n) is int for n in lengths) else None


# -- what runs


def zeros_for(x: np.ndarray) -> np.ndarray:
    """A shadow of zeros."""
    return np.zeros(x.shape)


def unreached_like(x: np.ndarray) -> np.ndarray:
    """A shadow that nothing has reached yet."""
    return np.full(x.shape, -0.0)


def diagonal_of(x̂: np.ndarray) -> np.ndarray:
    """The diagonal of a shadow, to be written to."""
    return as_strided(x̂, (min(x̂.shape),), (sum(x̂.strides),))


BITS_OF_UNREACHED = np.float64(-0.0).view(np.int64)


def reached(x̂: Any) -> Any:
    """Which entries of a shadow something has reached."""
    return x̂.view(np.int64) != BITS_OF_UNREACHED


def cotangent_in(x̂: np.ndarray) -> np.ndarray:
    """What a shadow holds, marked as structurally zero where nothing has reached it."""
    if np.count_nonzero(x̂) == x̂.size:
        return x̂.copy()
    where = reached(x̂)
    return x̂.copy() if np.count_nonzero(where) == x̂.size else mark(x̂ + 0.0, where)


def held_in(x̂: np.ndarray) -> np.ndarray:
    """The same without a copy, where it is read at once."""
    return x̂ if np.count_nonzero(x̂) == x̂.size else cotangent_in(x̂)


def sum_if_reached(v̄: Any) -> Any:
    """The sum of what a shadow held; the structural zero if nothing has reached it."""
    return total(v̄) if was_reached(v̄) else ZERO


def was_reached(v̄: Any) -> bool:
    """Is some entry of a cotangent not structurally zero?"""
    return type(v̄) is not Selected or v̄._where is None or bool(v̄._where.any())


only_reads(zeros_for, unreached_like)
written_results(zeros_for, unreached_like)
fresh_results(zeros_for, unreached_like)
marks_results(cotangent_in, held_in)
non_differentiable(zeros_for, unreached_like, diagonal_of, was_reached)
type_stable(cotangent_in, held_in)


@transfers(zeros_for, unreached_like, cotangent_in, held_in)
def _(s: Any, call: Any, args: Any) -> Any:
    return args[0]


@functools.cache
def shadow_rule(marked, again):
    """The shadow of a new array, or of one that is read; what it holds in the end is a cotangent.

    Where it is differentiated in its turn, the cotangent is not the memory that was written to.
    """
    held = "cotangent_in(x̂)" if marked else "x̂.copy()" if again else "x̂"
    source = f"""
def rule(x):
    x̂ = {"unreached_like" if marked else "zeros_for"}(x)
    def new_shadow_pullback(ȳ):
        return ({held},)
    return x̂, new_shadow_pullback
"""
    return made(source)


@functools.cache
def copy_shadow_rule(marked):
    """The shadow of a copy of a buffer with the shadow x̂."""
    source = f"""
def rule(y, x̂):
    ŷ = {"unreached_like" if marked else "zeros_for"}(y)
    def copy_shadow_pullback(ȳ):
        {"add_reaching(x̂, cotangent_in(ŷ))" if marked else "add_to(x̂, ŷ)"}
        return ()
    return ŷ, copy_shadow_pullback
"""
    return made(source)


@functools.cache
def reading_of(kind, marked):
    """The rule of `x[k]`, an entry or a part; in a sum with 0.0 a cotangent is not -0.0."""
    add = {
        ("entry", False): "x̂[k] += ȳ",
        ("entry", True): "x̂[k] += ȳ + 0.0",
        ("part", False): "add_to(x̂[k], ȳ)",
        ("part", True): "add_reaching(x̂[k], ȳ)",
        ("mask", False): "v̄ = x̂[k]; add_to(v̄, ȳ); x̂[k] = v̄",
        ("mask", True): "v̄ = x̂[k]; add_reaching(v̄, ȳ); x̂[k] = v̄",
        ("picked", False): "add_picked(x̂, k, ȳ)",
        ("picked", True): "add_picked_reaching(x̂, k, ȳ)",
    }[kind, marked]
    source = f"""
def rule(x, x̂, k):
    def reading_pullback(ȳ):
        {add}
        return ()
    return x[k], reading_pullback
"""
    return made(source)


@functools.cache
def plain_rule(fn, n):
    """The rule of a call that has nothing to pull back: a view, whatever its index depends on."""
    args = ", ".join([f"a{i}" for i in range(n)])
    source = f"""
def rule({args}):
    return fn({args}), plain_pullback
def plain_pullback(ȳ):
    return ()
"""
    return made(source, fn=fn)


UNREACHED = "v̄ == 0.0 and copysign(1.0, v̄) < 0.0"

# What `x[k] = v` does for v, by the kind of x[k] and of v: what is kept, and the cotangents in the end.
SETTERS = {
    "entry": ("", "v̄ = x̂[k]", "return NONE, NONE, NONE, v̄"),
    "entry to an array": (
        "shape = np.shape(v)",
        "v̄ = x̂[k]",
        "return NONE, NONE, NONE, np.full(shape, v̄) if shape else v̄",
    ),
    "part": (
        "shape = v.shape",
        "v̄ = x̂[k].copy()",
        "return NONE, NONE, NONE, match(v̄, shape)",
    ),
    "part to a number": ("", "v̄ = total(x̂[k])", "return NONE, NONE, NONE, v̄"),
    "picked": (
        "shape = v.shape",
        "v̄ = where_last(x̂, k, 0.0)",
        "return NONE, NONE, NONE, match(v̄, shape)",
    ),
    "picked to a number": ("", "v̄ = total(where_last(x̂, k, 0.0))", "return NONE, NONE, NONE, v̄"),
    "part to a buffer": ("", "v̄ = x̂[k].copy()", "add_to(v̂, match(v̄, v̂.shape)); return ()"),
}


# The same where it matters which entries nothing has reached.
MARKED_SETTERS = {
    "entry": ("", "v̄ = x̂[k]", f"return NONE, NONE, NONE, ZERO if {UNREACHED} else v̄"),
    "entry to an array": (
        "shape = np.shape(v)",
        "v̄ = x̂[k]",
        f"return NONE, NONE, NONE, ZERO if {UNREACHED} else np.full(shape, v̄) if shape else v̄",
    ),
    "part": (
        "shape = v.shape",
        "v̄ = cotangent_in(x̂[k])",
        "return NONE, NONE, NONE, match(v̄, shape)",
    ),
    "part to a number": (
        "",
        "v̄ = sum_if_reached(cotangent_in(x̂[k]))",
        "return NONE, NONE, NONE, v̄",
    ),
    "picked": (
        "shape = v.shape",
        "v̄ = cotangent_in(where_last(x̂, k, -0.0))",
        "return NONE, NONE, NONE, match(v̄, shape)",
    ),
    "picked to a number": (
        "",
        "v̄ = sum_if_reached(cotangent_in(where_last(x̂, k, -0.0)))",
        "return NONE, NONE, NONE, v̄",
    ),
    "part to a buffer": (
        "",
        "v̄ = cotangent_in(x̂[k])",
        "add_reaching(v̂, match(v̄, v̂.shape)); return ()",
    ),
}


@functools.cache
def set_rule(kind, undone, marked):
    """The rule of `x[k] = v`; what was there is put back, if it is needed again."""
    kept, taken, given = (MARKED_SETTERS if marked else SETTERS)[kind]
    old = "x[k]" if kind.startswith("entry") else "x[k].copy()"
    source = f"""
def rule(x, x̂, k, v{", v̂" if kind == "part to a buffer" else ""}):
    {kept}
    {f"old = {old}" if undone else ""}
    x[k] = v
    def set_pullback(ȳ):
        {"x[k] = old" if undone else ""}
        {taken}
        x̂[k] = {-0.0 if marked else 0.0}
        {given}
    return None, set_pullback
"""
    return made(source)


def made(source: str, **names: Any) -> Any:
    """The rule in a source text."""
    scope: dict[str, Any] = {
        "NONE": NONE, "ZERO": ZERO, "np": np, "match": match, "total": total, "add_to": add_to,
        "add_reaching": add_reaching, "add_picked": add_picked,
        "add_picked_reaching": add_picked_reaching, "where_last": where_last,
        "cotangent_in": cotangent_in, "held_in": held_in,
        "copysign": math.copysign,
        "sum_if_reached": sum_if_reached, "zeros_for": zeros_for, "unreached_like": unreached_like,
        "multiply_reached": multiply_reached, "divide_reached": divide_reached,
        "write": write, "add_at": add_at,
        "imul": operator.imul, "itruediv": operator.itruediv, "__name__": __name__, **names,
    }  # fmt: skip
    exec(source, scope)
    return scope["rule"]


def add_to(x̂: np.ndarray, c: Any) -> None:
    """Add to a shadow."""
    c = unthunk(c)
    if not is_zero(c):
        np.add(x̂, c, x̂)


def add_reaching(x̂: np.ndarray, c: Any) -> None:
    """The same where it matters what is reached: structural zeros reach nothing."""
    if type(c) is not np.ndarray:
        c = unthunk(c)
        if is_zero(c):
            return
        if type(c) is Selected and c._where is not None:
            np.add(x̂, c.view(np.ndarray) + 0.0, x̂, where=c._where)
            return
    np.add(x̂, c, x̂)
    if np.count_nonzero(x̂) != x̂.size:
        np.add(x̂, 0.0, x̂)


def add_picked(x̂: np.ndarray, k: Any, c: Any) -> None:
    """Add to entries of a shadow, as often as an index names them."""
    c = unthunk(c)
    if not is_zero(c):
        add_at(x̂, k, c)


def add_picked_reaching(x̂: np.ndarray, k: Any, c: Any) -> None:
    """The same where it matters what is reached; -0.0 changes nothing."""
    c = unthunk(c)
    if is_zero(c):
        return
    if type(c) is Selected and c._where is not None:
        c = np.where(c._where, c.view(np.ndarray) + 0.0, -0.0)
    else:
        c = c + 0.0
    add_at(x̂, k, c)


def where_last(x̂: np.ndarray, k: Any, other: float) -> Any:
    """x̂[k]; another number where a later entry of k names the same place."""
    last = last_writes(x̂.shape, k)
    return x̂[k] if last is None else np.where(last, x̂[k], other)


def multiply_reached(x̂: np.ndarray, v: Any) -> None:
    """`x̂ *= v` where something has reached x̂."""
    where = True if np.count_nonzero(x̂) == x̂.size else reached(x̂)
    np.multiply(x̂, v, x̂, where=where)
    np.add(x̂, 0.0, x̂, where=where)


def divide_reached(x̂: np.ndarray, v: Any) -> None:
    """`x̂ /= v` where something has reached x̂."""
    where = True if np.count_nonzero(x̂) == x̂.size else reached(x̂)
    np.divide(x̂, v, x̂, where=where)
    np.add(x̂, 0.0, x̂, where=where)


effects(add_to, add_reaching, add_picked, add_picked_reaching, multiply_reached, divide_reached)


@functools.cache
def reading_rule(rule, n, places, marked):
    """The rule of a function that reads buffers at these places among its n arguments."""
    args = ", ".join([f"a{i}" for i in range(n)])
    shadows = ", ".join([f"s{i}" for i in places])
    add = "add_reaching" if marked else "add_to"
    gifts = "; ".join([f"{add}(s{i}, bars[{i}])" for i in places])
    bars = ", ".join(["NONE" if i in places else f"bars[{i}]" for i in range(n)])
    source = f"""
def rule({args}, {shadows}):
    y, back = inner({args})
    def reading_pullback(ȳ):
        bars = back(ȳ)
        {gifts}
        return {bars}{", NONE" * len(places)},
    return y, reading_pullback
"""
    return made(source, inner=rule)


def write(op: Any, x: np.ndarray, v: Any) -> None:
    """`x op= v`."""
    op(x, v)


effects(write)


def add_at(x: np.ndarray, k: Any, v: Any) -> None:
    """`np.add.at(x, k, v)`, as programs know it."""
    np.add.at(x, k, v)


effects(add_at)
transfers(add_at)(lambda s, call, args: Known(type(None)))
changes_in_place.append(lambda fn, types, n, keywords: fn is add_at)


@functools.cache
def add_at_rule(is_array, undone, marked):
    """The rule of `np.add.at(x, k, v)`: v has the cotangents of where it went, which stay."""
    held = "cotangent_in(np.asarray(x̂[k]))" if marked else "np.array(x̂[k])"
    whole = "sum_if_reached(v̄)" if marked else "total(v̄)"
    source = f"""
def rule(x, x̂, k, v):
    {"shape = v.shape" if is_array else ""}
    {"old = x.copy()" if undone else ""}
    add_at(x, k, v)
    def add_at_pullback(ȳ):
        {"x[...] = old" if undone else ""}
        v̄ = {held}
        return NONE, NONE, NONE, {"match(v̄, shape)" if is_array else whole}
    return None, add_at_pullback
"""
    return made(source)


# The cotangent of v in `x op= v`, for the cotangent x̂ and what x held, and what x̂ is changed by.
IN_PLACE = {
    operator.iadd: ("x̂.copy()", ""),
    operator.isub: ("-x̂", ""),
    operator.imul: ("x̂ * old", "write(imul, x̂, v)"),
    operator.itruediv: ("x̂ * old / (-v * v)", "write(itruediv, x̂, v)"),
}
MARKED_IN_PLACE = {
    operator.iadd: ("cotangent_in(x̂)", ""),
    operator.isub: ("-held_in(x̂)", ""),
    operator.imul: ("held_in(x̂) * old", "multiply_reached(x̂, v)"),
    operator.itruediv: ("held_in(x̂) * old / (-v * v)", "divide_reached(x̂, v)"),
}
TO_OPERAND = {
    "number": "return NONE, NONE, total(v̄)",
    "array": "return NONE, NONE, v̄ if shape is None else match(v̄, shape)",
    "constant": "return ()",
    "buffer": "add_to(v̂, match(v̄, v̂.shape)); return ()",
}


@functools.cache
def in_place_rule(op, kind, undone, marked):
    """The rule of `x op= v`, where v is a number, an array, a constant or a buffer."""
    of_operand, on = (MARKED_IN_PLACE if marked else IN_PLACE)[op]
    give = TO_OPERAND[kind]
    if marked:
        give = give.replace("total", "sum_if_reached").replace("add_to", "add_reaching")
    first = "" if kind == "constant" else f"v̄ = {of_operand}"
    source = f"""
def rule(x, x̂, v{", v̂" if kind == "buffer" else ""}):
    {"old = x.copy()" if undone or "old" in first else ""}
    {"shape = None if v.shape == x.shape else v.shape" if kind == "array" else ""}
    write(op, x, v)
    def in_place_pullback(ȳ):
        {"x[...] = old" if undone else ""}
        {first}
        {on}
        {give}
    return x, in_place_pullback
"""
    return made(source, op=op)
