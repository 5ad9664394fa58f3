"""Shadows: how the adjoint of a program with lists goes without a look-up per item.

Where all that a program does with its lists is known, each list has a shadow: a list of the same
form, made beside it in the primal, that holds the cotangents of its items in the adjoint. What is
read from a list adds to its shadow's item; what is put into one takes the item from there. Aliases
share the shadow as they share the list. So it is with dicts, by key; a shadow keeps the keys that its
dict has lost.
Tests: tests/rules/test_shadows.py
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from collections import defaultdict
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from morula.core.extend import (
    NEVER,
    ZERO,
    Block,
    Call,
    Const,
    Known,
    NotSpecialised,
    Pair,
    Reached,
    Rule,
    Shadow,
    Var,
    adds_plainly,
    gradient_for,
    is_of_plain_kind,
    known,
    may_hold,
    may_mutate,
    maybe_zero,
    maybe_zero_of_parts,
    never_zero,
    new_instance,
    possibilities,
    prepares,
    primitives,
    spread_varied,
    stand_for_zero,
    tangent_of,
)
from morula.rules.arrays.traits import whole_shape
from morula.rules.dict_types import DICTS, entries_of
from morula.rules.list_forms import ASKING
from morula.rules.list_types import Shared, items_of
from morula.rules.lists import list_item
from morula.rules.narrowing import NOTHING, present
from morula.rules.object_types import Fields, fields_of
from morula.rules.objects import is_part_of_python, slots_of
from morula.rules.shadow_rules import (
    BY_THE_SHADOW,
    JOINED,
    READ_AT_ONCE,
    READ_ONE_BY_ONE,
    append_rule,
    dict_rule,
    display_rule,
    dropped,
    extreme_rule,
    insert_rule,
    joined_rule,
    pop_rule,
    popped,
    popped_at,
    popped_shadow,
    product_of_items,
    put_rule,
    reached,
    reached_array,
    sign_of,
    slice_rule,
    sliced,
    sum_rule,
    take_item,
    take_number,
    take_structure,
    turned,
    unreached_array,
    zeros_beside,
)

# What may be asked of a list that has a shadow without a word to the shadow.
LOOKS = (
    len,
    bool,
    operator.truth,
    operator.not_,
    operator.is_,
    operator.is_not,
    operator.contains,
    primitives.actual_type,
    primitives.require,
    primitives.actual_length,
    primitives.has_keys,
    primitives.actual_attribute,
    *ASKING,
)


VIEWS = (
    operator.getitem,
    getattr,
    np.ndarray.transpose,
    np.ndarray.diagonal,
    np.diagonal,
    np.diag,
)

READ_AS_THEY_ARE = (present, primitives.check_bound)
UNBOUND = Known(type(primitives.UNDEFINED))
IDENTITY = (operator.is_, operator.is_not, primitives.actual_type, primitives.require)


class UnknownUseError(Exception):
    """The program does with a list, or with an array, what is not known here."""


@prepares
def give_shadows(adjoint: Any) -> set[Any] | None:
    """Rewrite a program so that its lists have shadows; what then carries a derivative.

    None, with nothing changed, where that is not possible or there is no such list.
    """
    plan = Shadows(adjoint)
    try:
        if plan.is_needed():
            if not adjoint.has_shadows:
                raise UnknownUseError
            return plan.apply()
    except UnknownUseError:
        plan.may_count_keys = False
        if any(c.primitive is new_instance for c in plan.s.ir.calls()):
            raise NotSpecialised(
                "objects are put into others, and more is done with them"
            ) from None
    if plan.s.key_loops and not plan.may_count_keys:
        raise NotSpecialised("a loop over a dict")
    return None


class Shadows:
    """The rewriting of one program."""

    def __init__(self, adjoint: Any) -> None:
        self.adjoint = adjoint
        self.s = adjoint.specialiser
        self.ir = self.s.ir.copy()
        self.definitions = {c.out: c for c in self.ir.calls()}
        self.block_of = {c.out: b for b in self.ir.blocks for c in b.calls}
        self.owner = {p: (b, i) for b in self.ir.blocks for i, p in enumerate(b.params)}
        self.entries = self.ir.predecessors()
        self.varied: set[Any] = set(adjoint.leaves)
        self.active: set[int] = set()  # the roots of the items of lists that have shadows
        self.followed: set[Any] = set()  # objects, and lists in them, that are only read
        self.fields: dict[type, set[str]] = {}  # of objects, that are read
        self.shadows: dict[Any, Any] = {}
        self.results: set[Any] = set()  # that carry a derivative taken from a list
        self.pairs: dict[Any, Any] = {}
        self.memo: Any = None
        self.may_count_keys = True  # carry the keys of dicts no derivative?
        self.zero = Const(ZERO)  # what an item of a shadow begins with, if all begin alike
        self.marked = False  # with a number which says that nothing has reached it?

    # -- which lists

    def root(self, x: Any) -> Shared | None:
        """What is known of the items of x, if it is a list or a dict."""
        return shared_of(self.s.value(x)) if type(x) is Var else None

    def is_active(self, x: Any) -> bool:
        """Is it a list or an object with a shadow?"""
        items = self.root(x)
        return x in self.followed or (items is not None and id(items) in self.active)

    def is_active_root(self, value: Any) -> bool:
        """Is it known to be a list with a shadow?"""
        items = shared_of(value)
        return items is not None and id(items) in self.active

    def gives_cotangent(self, x: Any) -> bool:
        """Has x a cotangent in the adjoint, which a list that it is put into gives?"""
        return not self.is_active(x) and self.carries(x)

    def is_taken_from(self, xs: Any) -> bool:
        """Does the adjoint take items out of the shadow of a list? Then it has to take out all."""
        items = self.root(xs)
        return any(
            self.root(ys) is items and self.gives_cotangent(y)
            for call in self.ir.calls()
            for ys, y in stored(call)
        )

    def is_needed(self) -> bool:
        """Find the lists that hold what carries a derivative; are there any?"""
        for leaf in self.adjoint.leaves:
            self.activate(self.root(leaf))
        self.follow_objects()
        changed = True
        while changed:
            before = len(self.varied), len(self.active)
            self.varied.update(v for v in self.variables() if self.is_active(v))
            self.reach_what_is_written()
            spread_varied(self.s, self.varied)
            for call in self.ir.calls():
                for xs, x in stored(call):
                    if x in self.varied:
                        self.activate(self.root(xs))
                if self.is_slice(call) and self.is_active(call.args[0]):
                    self.activate(self.root(call.out))
            changed = before != (len(self.varied), len(self.active))
        self.may_count_keys = not any(k in self.varied for c in self.ir.calls() for k in keys_in(c))
        return bool(self.active or self.followed)

    def reach_what_is_written(self) -> None:
        """An array that a varied value is written to is varied, under all its names."""
        for call in self.writes:
            if any(x in self.varied for x in call.operands()):
                self.varied.update(self.sharing(call.args[0]))

    @functools.cached_property
    def writes(self) -> list[Any]:
        """The calls that change arrays in place; others than of the first operand are refused later."""
        changes = self.s.changes_value
        return [c for c in self.ir.calls() if self.s.writes_in_place and c.args and changes(c)]

    def sharing(self, x: Any) -> set[Any]:
        """The variables that may be in the memory of an array."""
        views = [c for c in self.ir.calls() if c.primitive in VIEWS]
        links = [(c.out, c.args[0]) for c in (*self.writes, *views)]
        links += self.ir.passed()
        found, n = {x}, 0
        while n < len(found):
            n = len(found)
            found.update(v for link in links if not found.isdisjoint(link) for v in link)
        return {v for v in found if type(v) is Var}

    def is_slice(self, call: Any) -> bool:
        """Is it `xs[a:b]` of a list?"""
        if call.primitive is not operator.getitem:
            return False
        k = known(self.s.value(call.args[1]))
        return k is not None and k.type is slice

    def follow_objects(self) -> None:
        """Follow the objects among the arguments, and what is read from them."""
        leaves = [x for x in self.adjoint.leaves if entries_of(self.s.value(x)) is None]
        objects = [x for x in leaves if self.is_object(x) or self.holds_objects(x)]
        self.followed.update(objects)
        changed = bool(objects)
        while changed:
            before = len(self.followed)
            for call in self.ir.calls():
                if self.is_read_from(call) and self.is_container(call.out):
                    self.followed.add(call.out)
            self.followed.update(p for p, a in self.ir.passed() if a in self.followed)
            changed = len(self.followed) > before

    def is_object(self, x: Any) -> bool:
        """Is it an object of a class of the user's, or a dict?"""
        k = known(self.s.value(x))
        return k is not None and (k.type is dict or is_plain_class(k.type))

    def holds_objects(self, x: Any) -> bool:
        """Is it a list of such?"""
        items = items_of(self.s.value(x))
        k = None if items is None or items.value is NEVER else known(items.value)
        return k is not None and (k.type is dict or is_plain_class(k.type))

    def is_container(self, x: Any) -> bool:
        """May it hold something that has a shadow of its own?"""
        k = known(self.s.value(x))
        return k is not None and has_shadow(k.type)

    def is_read_from(self, call: Any) -> bool:
        """Does a call read from what is followed?"""
        if call.primitive is list_item:
            return call.args[1] in self.followed
        if call.primitive not in (getattr, operator.getitem) or len(call.args) != 2:
            return False
        unpacked = self.definitions.get(call.args[0])
        if unpacked is not None and unpacked.primitive is primitives.unpack:
            return unpacked.args[0] in self.followed
        return call.args[0] in self.followed

    def activate(self, items: Shared | None) -> None:
        """Lists with these items hold what carries a derivative; so may the lists in them."""
        if items is not None and id(items) not in self.active:
            self.active.add(id(items))
            for value in items.held():
                self.activate(shared_of(value))

    def carries(self, x: Any) -> bool:
        """Does a value that is put into a list carry a derivative?"""
        return x in self.varied and not self.is_active(x)

    def variables(self) -> list[Any]:
        """All variables of the program."""
        return [*self.definitions, *self.owner]

    # -- the rewriting

    def apply(self) -> set[Any]:
        """Give all active lists shadows; returns the variables that carry a derivative."""
        self.check()
        if self.followed:
            self.check_followed()
        self.begin_with_numbers()
        for block in self.ir.blocks:
            for call in list(block.calls):
                self.rewrite(block, call)
        for leaf in self.adjoint.leaves:
            if self.is_active(leaf):
                self.shadow(leaf)
                self.adjoint.shadows[leaf] = Shadow(self.memo, finished)
        self.adjoint.pairs.update(self.pairs)
        self.adjoint.rules.update(
            (id(p.forward.value), Rule(p.forward.value, p.forward.value))
            for p in self.pairs.values()
        )
        self.s.ir = self.ir
        lists = {v for v in self.variables() if self.is_active(v)}
        varied = {x for x in self.adjoint.leaves if x not in lists} | self.results
        inserted = {c.out for c in self.ir.calls()} - self.definitions.keys()
        self.adjoint.apart = lists | self.unpacked() | inserted
        spread_varied(self.s, varied, self.adjoint.apart)
        return varied

    def unpacked(self) -> set[Any]:
        """The tuples that lists are unpacked to."""
        return {
            c.out
            for c in self.ir.calls()
            if c.primitive is primitives.unpack and self.is_active(c.args[0])
        }

    def check(self) -> None:
        """Does the program only what is known here?"""
        written = {c.out for c in self.writes}
        for call in self.ir.calls():
            if self.may_be_answered(call):
                raise UnknownUseError
            if call.out in self.s.counted or call.primitive in LOOKS or self.asks(call):
                continue
            held = [x for x in call.args if self.is_active(x)]
            if not held and not self.is_active(call.out):
                stores = call.out not in written and self.may_store(call)
                if stores and any(x in self.varied for x in call.operands()):
                    raise UnknownUseError
                continue
            if any(k in self.varied for k in keys_in(call)):
                raise UnknownUseError
            if call.keywords and call.primitive not in JOINED:
                raise UnknownUseError
            if id(call.primitive) not in REWRITTEN:
                raise UnknownUseError
            if may_mutate(self.s, call):
                items = self.root(call.args[0])
                if items is None or items.outside:
                    raise UnknownUseError
        for x in self.varied:
            plain = x in self.s.counted or x in written or self.is_active(x)
            if not plain and may_hold(self.s.types.get(x)):
                raise UnknownUseError

    def begin_with_numbers(self) -> None:
        """Where lists hold plain numbers, and lists, those of shadows begin with one, too.

        So nobody asks whether anything has reached them; an optimist takes it that what nothing has
        reached does not meet an infinite slope.
        """
        adjoint = self.adjoint
        stand = stand_for_zero(float)
        kinds = self.kinds_of_numbers()
        if kinds is None or any(self.moves_cotangents(call) for call in self.ir.calls()):
            return
        if adjoint.again:
            self.marked = np.ndarray not in kinds or all(map(self.holds_alike, self.variables()))
        elif (
            stand is not None
            and kinds <= {float}
            and not any(map(self.is_dict, self.variables()))
            and adjoint.optimistic
            and adjoint.leaves_nothing
            and adjoint.assumptions.allowed
        ):
            adjoint.assumptions.tests[stand[1]] = None
            self.zero = Const(stand[0])

    def kinds_of_numbers(self) -> set[Any] | None:
        """The types of the numbers that lists with shadows hold; None: they hold other things, too."""
        values = [self.s.value(v) for v in self.variables() if self.is_active(v)]
        roots = [items_of(value) or entries_of(value) for value in values]
        made = [getattr(known(value), "type", None) for value in values]
        if self.followed or None in roots or defaultdict in made:
            return None
        kinds = {kind for items in roots for kind in self.kinds_in(items)}
        return kinds if kinds <= {int, float, np.float64, np.ndarray} else None

    def holds_alike(self, xs: Any) -> bool:
        """Are the arrays in a list with a shadow, if any, all of one shape, and there are only such?"""
        if not self.is_active(xs) or np.ndarray not in self.kinds_in(self.root(xs)):
            return True
        return self.shape_in(xs) is not None

    def shape_in(self, xs: Any) -> Any:
        """The shape of the arrays of float64 in a list with a shadow; None: they are not all alike."""
        items: Any = self.root(xs)
        k = known(items.held()[0]) if items.held() else None
        if k is None or k.type is not np.ndarray or k.detail is None or k.detail[0] != "<f8":
            return None
        return whole_shape(k.detail)

    def kinds_in(self, items: Any) -> set[Any]:
        """The types of the items of some lists that have no shadow; None stands for others."""
        held = [v for v in items.held() if not self.is_active_root(v)]
        kinds = [[None] if v is None else [k.type for k in possibilities(v)] for v in held]
        return {*itertools.chain.from_iterable(kinds)}

    def zero_in(self, xs: Any) -> Const:
        """What an item of the shadow of a list begins with."""
        if not self.marked:
            return self.zero
        kinds = self.kinds_in(self.root(xs))
        if np.ndarray in kinds:
            return Const(unreached_array(self.shape_in(xs)))
        return Const(-0.0 if kinds <= {float} else np.float64(-0.0))

    @property
    def holds_zeros(self) -> bool:
        """May shadows hold structural zeros?"""
        return self.zero.value is ZERO and not self.marked

    def moves_cotangents(self, call: Any) -> bool:
        """Does a call, or its pullback, put into a shadow what may be a structural zero?"""
        if call.primitive is not list.pop and not self.is_slice(call):
            return False
        xs = call.args[0]
        if not self.is_active(xs) or not self.adjoint.again:
            return self.is_active(xs)
        return self.may_hold_shadows(xs) or np.ndarray in self.kinds_in(self.root(xs))

    def may_be_answered(self, call: Any) -> bool:
        """May a question be answered by code of an object's class, which may do anything?"""
        if call.primitive not in (*LOOKS, operator.eq, operator.ne) or call.primitive in IDENTITY:
            return False
        held = [x for x in map(self.root, call.args) if x is not None]
        inside = [fields_of(value) for x in held if type(x) is not Fields for value in x.held()]
        return any([*inside, *[type(x) is Fields for x in held]]) and not self.s.is_constant(call)

    def asks(self, call: Any) -> bool:
        """Does a call ask something of lists, and give nothing that they hold?"""
        value = self.s.types.get(call.out)
        if value is None or may_hold(value) or not self.s.is_constant(call):
            return False
        return not may_mutate(self.s, call) or call.out in self.s.own_changes

    def check_followed(self) -> None:
        """Objects must not change, and must be read as they are."""
        for call in self.ir.calls():
            own = call.out in self.s.own_changes or call.primitive is primitives.list_append
            if not own and may_mutate(self.s, call):
                raise UnknownUseError
            if call.primitive is getattr and call.args[0] in self.followed:
                name, k = call.args[1], known(self.s.value(call.args[0]))
                if k is None or not is_plain_class(k.type) or type(name) is not Const:
                    raise UnknownUseError
                self.fields.setdefault(k.type, set()).add(name.value)
        for cls, names in self.fields.items():
            special = frozenset((*names, "__getattr__", "__getattribute__"))
            if not reads_own_fields(cls, special):
                raise UnknownUseError
            self.s.guards.tests.append((reads_own_fields, (cls, special)))
        for p in self.followed:
            if p in self.owner and self.owner[p][0] is not self.ir.entry:
                block, i = self.owner[p]
                if not all(branch.args[i] in self.followed for _, branch in self.entries[block]):
                    raise UnknownUseError

    def may_store(self, call: Any) -> bool:
        """May a call put a value into an object that is not followed here?"""
        fills = call.primitive in (primitives.map_add, primitives.set_add, primitives.set_cell)
        return fills or may_mutate(self.s, call) or may_hold(self.s.types.get(call.out))

    def insert_after(self, block: Any, call: Any, fn: Any, *args: Any) -> Any:
        """Call a function right behind a call."""
        out = self.ir.var()
        new = Call(out, Const(fn), args, (), call.position)
        block.calls.insert(block.calls.index(call) + 1, new)
        return out

    def shadow(self, xs: Any) -> Any:
        """The shadow of a list."""
        if known(self.s.value(xs)) in (NOTHING, UNBOUND):
            return Const(ZERO)
        found = self.shadows.get(xs)
        if found is None:
            found = self.make_shadow(xs)
        return found

    def make_shadow(self, xs: Any) -> Any:
        """Where a list comes from, its shadow does too."""
        if not self.is_active(xs):
            raise UnknownUseError
        if xs in self.owner:
            return self.shadow_of_parameter(xs)
        call = self.definitions[xs]
        if call.primitive is primitives.build_list:
            return self.shadow_of_display(call)
        if call.primitive in (primitives.build_map, defaultdict):
            return self.shadow_of_dict(call)
        if call.primitive is operator.mul:
            return self.shadow_of_repetition(call)
        if call.primitive is list_item:
            return self.shadow_of_item(call, call.args[1], call.args[2])
        if call.primitive is getattr:
            return self.shadow_of_item(call, call.args[0], call.args[1])
        if call.primitive is new_instance:
            return self.shadow_of_object(call)
        if call.primitive in READ_AS_THEY_ARE:
            self.shadows[xs] = self.shadow(call.args[0])
            return self.shadows[xs]
        if call.primitive is list.pop:
            return self.shadow_of_popped(call)
        if call.primitive in (operator.getitem, dict.__getitem__):
            unpacked = self.definitions.get(call.args[0])
            if unpacked is not None and unpacked.primitive is primitives.unpack:
                return self.shadow_of_item(call, unpacked.args[0], call.args[1])
            if self.is_slice(call):
                return self.shadow_of_slice(call)
            return self.shadow_of_item(call, call.args[0], call.args[1])
        raise UnknownUseError

    def shadow_of_popped(self, call: Any) -> Any:
        """What is taken out of a list has its shadow taken out of the shadow; both come back."""
        xs, *place = call.args
        out = self.ir.var()
        self.shadows[call.out] = out
        x̂s = self.shadow(xs)
        block = self.block_of[call.out]
        taken = Call(out, Const(list.pop), (x̂s, *place), (), call.position)
        block.calls.insert(block.calls.index(call), taken)
        self.pair(call, popped_shadow, (xs, x̂s, out, *place), (), always=True)
        return out

    def shadow_of_slice(self, call: Any) -> Any:
        """A part of a list has a shadow that is added to the list's."""
        if not self.is_active(call.args[0]) and not self.may_hold_shadows(call.args[0]):
            return self.shadow_of_constants(call)
        args = self.shadow(call.args[0]), call.args[1]
        rule = slice_rule(type(self.zero_in(call.out).value)) if self.marked else sliced
        out = self.insert_after(self.block_of[call.out], call, rule, *args)
        self.shadows[call.out] = out
        self.pairs[out] = Pair(Const(rule), args, (), (), True)
        return out

    def shadow_of_repetition(self, call: Any) -> Any:
        """A list of constants, so many times over, has a shadow of zeros."""
        source = next((x for x in call.args if self.root(x) is not None), None)
        items = None if source is None else self.root(source)
        if items is None or self.is_active(source) or any(map(may_hold, items.held())):
            raise UnknownUseError
        return self.shadow_of_constants(call)

    def shadow_of_constants(self, call: Any) -> Any:
        """A new list of values without derivatives has a shadow of zeros."""
        block, zero = self.block_of[call.out], self.zero_in(call.out)
        if self.marked:
            out, one, n = self.ir.var(), self.ir.var(), self.ir.var()
            i = block.calls.index(call) + 1
            block.calls[i:i] = [
                Call(n, Const(len), (call.out,), (), call.position),
                Call(one, Const(primitives.build_list), (zero,), (), call.position),
                Call(out, Const(operator.mul), (one, n), (), call.position),
            ]
        else:
            out = self.insert_after(block, call, zeros_beside, call.out, zero)
        self.shadows[call.out] = out
        return out

    def shadow_of_parameter(self, xs: Any) -> Any:
        """An argument gets a new shadow, another parameter those of what is passed for it."""
        block, i = self.owner[xs]
        if block is self.ir.entry:
            out = self.ir.var(f"{xs.name}̂")
            self.shadows[xs] = out
            if self.memo is None:
                self.memo = self.ir.var("shadows")
                block.calls.insert(0, Call(self.memo, Const(dict), ()))
            begun: tuple[Any, ...] = (Const(shadow_of), (xs, self.memo))
            if not self.holds_zeros:
                begun = (Const(number_shadow_of), (xs, self.memo, self.zero_in(xs)))
            block.calls.insert(1, Call(out, *begun))
            return out
        out = self.ir.var(f"{xs.name}̂")
        self.shadows[xs] = out
        branches = [branch for _, branch in self.entries[block]]
        passed = [self.shadow(branch.args[i]) for branch in branches]
        # All at once, and only now: to find what is passed may have made other parameters here.
        block.params.append(out)
        for branch, x̂ in zip(branches, passed, strict=True):
            branch.args.append(x̂)
        return out

    def shadow_of_display(self, call: Any) -> Any:
        """A list that is made has a shadow that is made."""
        out = self.ir.var()
        self.shadows[call.out] = out
        block = self.block_of[call.out]
        zero = self.zero_in(call.out)
        items = [self.shadow(a) if self.is_active(a) else zero for a in call.args]
        made = Call(out, Const(primitives.build_list), items, (), call.position)
        block.calls.insert(block.calls.index(call), made)
        return out

    def shadow_of_dict(self, call: Any) -> Any:
        """The same for a dict, whose shadow has its keys."""
        out = self.ir.var()
        self.shadows[call.out] = out
        items = [*call.args] if call.primitive is primitives.build_map else []
        zero = self.zero_in(call.out)
        items[1::2] = [self.shadow(a) if self.is_active(a) else zero for a in items[1::2]]
        block = self.block_of[call.out]
        made = Call(out, Const(primitives.build_map), items, (), call.position)
        block.calls.insert(block.calls.index(call), made)
        return out

    def shadow_of_object(self, call: Any) -> Any:
        """An object has a shadow with its attributes; what has not been written is in its class."""
        out = self.ir.var()
        self.shadows[call.out] = out
        fields = fields_of(self.s.value(call.out))
        names = () if fields is None or fields.values is None else fields.values
        items = [x for name in names for x in (Const(name), Const(ZERO))]
        block = self.block_of[call.out]
        made = Call(out, Const(primitives.build_map), items, (), call.position)
        block.calls.insert(block.calls.index(call), made)
        return out

    def shadow_of_item(self, call: Any, xs: Any, k: Any) -> Any:
        """A list in a list has its shadow in the shadow."""
        out = self.insert_after(self.block_of[call.out], call, operator.getitem, self.shadow(xs), k)
        self.shadows[call.out] = out
        return out

    def rewrite(self, block: Block, call: Any) -> None:
        """What a call does with lists, its pullback does with their shadows."""
        if call.out in self.s.counted:
            return
        how = REWRITTEN.get(id(call.primitive))
        if how is not None:
            how(self, block, call)

    def pair(self, call: Any, rule: Any, args: Any, slots: Any, always: bool = False) -> None:
        """Let the adjoint take this rule for a call."""
        self.pairs[call.out] = Pair(Const(rule), tuple(args), (), tuple(slots), always)

    def is_number(self, x: Any) -> bool:
        """Is it a real number of Python or a float64?"""
        k = known(self.s.value(x))
        return k is not None and k.type in (int, float, np.float64)

    def numbers_only(self, call: Any, n_args: int = 1) -> None:
        """A call makes one number, or one array, of all those of a list."""
        value = self.s.types.get(call.out)
        if len(call.args) != n_args or may_hold(value):
            raise UnknownUseError
        self.results.add(call.out)

    def take(self, call: Any, x: Any, xs: Any, k: Any) -> None:
        """A call gives the item x of a list: a list has its shadow there, others their cotangent."""
        if self.is_active(call.out):
            self.shadow(call.out)
        elif call.out in self.varied:
            self.results.add(call.out)
            rule = self.taking(call.out)
            self.pair(call, rule, (x, self.shadow(xs), k), ())

    def is_dict(self, xs: Any) -> bool:
        """Is it a dict, not a list?"""
        k = known(self.s.value(xs))
        return k is not None and k.type in DICTS

    def may_hold_shadows(self, xs: Any) -> bool:
        """May a list or a dict hold others?"""
        items = self.root(xs)
        return items is None or any(map(may_hold, items.held()))

    def is_place(self, xs: Any, k: Any) -> bool:
        """Is it known to be a place in a list, or a key of a dict, of which this is known?"""
        if not self.is_dict(xs):
            return k is not None and k.type is int
        return is_key(k) and (self.root(xs) is not None or not is_real(k))  # it may be a memo

    def adds_plainly(self, x: Any) -> bool:
        """Are cotangents of a value added by +?"""
        value = self.s.value(x)
        return value is not None and all(adds_plainly(k.type) for k in possibilities(value))

    def taking(self, x: Any) -> Any:
        """The rule of taking an item x out of a list."""
        if not self.holds_zeros:
            return take_number
        return take_item if self.adds_plainly(x) else take_structure

    def doubt(self, x: Any) -> Any:
        """What says of the cotangent of an item x, out of a shadow, whether it may be zero."""
        if not self.holds_zeros:
            return self.mark_of(x) if self.marked else never_zero
        return maybe_zero if self.adds_plainly(x) else maybe_zero_of_parts

    def joining(self, call: Any) -> Any:
        """The rule of joining arrays along the first axis, to be differentiated in its turn."""
        xs, *axis = call.args
        shape, join = self.shape_in(xs), call.primitive
        if shape is None or (axis and getattr(axis[0], "value", None) != 0):
            raise UnknownUseError
        if join is np.hstack and len(shape) != 1:
            raise UnknownUseError
        return joined_rule(join, shape, join is np.stack or (join is np.vstack and len(shape) == 1))

    def mark_of(self, x: Any) -> Any:
        """What says of the cotangent of an item whether a shadow has only its mark."""
        k = known(self.s.value(x))
        shape = k.detail[2] if k is not None and k.type is np.ndarray else None
        return reached if shape is None else reached_array(shape)

    def read_from(self, block: Any, call: Any, xs: Any, k: Any) -> None:
        """The same where the call itself does the reading."""
        if self.is_active(call.out):
            self.shadow(call.out)
        elif call.out in self.varied:
            raw = self.ir.var()
            self.s.types[raw] = self.s.types.get(call.out)
            read = Call(raw, call.fn, call.args, (), call.position)
            read.removable, read.movable = call.removable, call.movable
            block.calls.insert(block.calls.index(call), read)
            call.fn, call.args = Const(list_item), (raw, xs, k)
            self.take(call, raw, xs, k)


def stored(call: Any) -> list[tuple[Any, Any]]:
    """Pairs of a list and what a call puts into it."""
    if call.primitive is primitives.build_list:
        return [(call.out, a) for a in call.args]
    if call.primitive in (primitives.list_append, list.append):
        return [(call.args[0], call.args[1])]
    puts = (operator.setitem, primitives.map_add, list.insert)
    if call.primitive in puts and len(call.args) == 3:
        return [(call.args[0], call.args[2])]
    if call.primitive is primitives.build_map:
        return [(call.out, a) for a in call.args[1::2]]
    if call.primitive in WRITING and len(call.args) == 3:
        return [(call.args[0], call.args[2])]
    return []


def keys_in(call: Any) -> tuple[Any, ...]:
    """The keys that a call puts into a dict."""
    if call.primitive in (operator.setitem, primitives.map_add):
        return call.args[1:2]
    return call.args[::2] if call.primitive is primitives.build_map else ()


def shared_of(value: Any) -> Shared | None:
    """What is known of the items of a list or a dict."""
    return items_of(value) or entries_of(value) or fields_of(value)


def is_key(k: Any) -> bool:
    """Is it known to be a key of a type that Python itself compares?"""
    if k is None or k.type is not tuple:
        return k is not None and k.type in KEYS
    return k.detail is not None and all(is_key(known(part)) for part in k.detail)


def is_real(k: Any) -> bool:
    """Is such a key a real number, or holds one?"""
    return k.type in REALS or (k.type is tuple and any(is_real(known(part)) for part in k.detail))


WRITING = (setattr, object.__setattr__)  # an attribute

REALS = (float, np.float64)
KEYS = (str, int, bool, type(None), *REALS)


REWRITTEN: dict[int, Callable[[Shadows, Any, Any], None]] = {}


def rewrites_calls(*fns: Any) -> Callable[[Any], Any]:
    """Register how calls of these are rewritten."""

    def register(how: Any) -> Any:
        REWRITTEN.update((id(fn), how) for fn in fns)
        return how

    return register


@rewrites_calls(primitives.build_list)
def _(plan: Shadows, block: Any, call: Any) -> None:
    if not plan.is_active(call.out):
        return
    ŷ = plan.shadow(call.out)
    slots = [(i + 1, a) for i, a in enumerate(call.args) if plan.carries(a)]
    if slots:
        plan.pair(
            call, display_rule(*map(plan.doubt, call.args)), (ŷ, *call.args), slots, always=True
        )


@rewrites_calls(primitives.list_append, list.append)
def _(plan: Shadows, block: Any, call: Any) -> None:
    xs, x = call.args
    if not plan.is_active(xs):
        return
    x̂s = plan.shadow(xs)
    x̂ = plan.shadow(x) if plan.is_active(x) else plan.zero_in(xs)
    carries = plan.gives_cotangent(x)
    if call.primitive is primitives.list_append and not plan.is_taken_from(xs):
        plan.insert_after(block, call, primitives.list_append, x̂s, x̂)
    else:
        slots = [(3, x)] if carries else []
        plan.pair(
            call, append_rule(call.primitive, plan.doubt(x)), (xs, x̂s, x̂, x), slots, always=True
        )


@rewrites_calls(list.pop)
def _(plan: Shadows, block: Any, call: Any) -> None:
    (xs, *place), x = call.args, call.out
    if not plan.is_active(xs):
        return
    if place and not plan.is_place(xs, known(plan.s.value(place[0]))):
        raise UnknownUseError
    if plan.is_active(x):
        plan.shadow(x)
        return
    plan.results.add(x)
    rule = popped_at if place else popped
    if plan.marked:
        rule = pop_rule(bool(place), type(plan.zero_in(xs).value))
    plan.pair(call, rule, (xs, plan.shadow(xs), *place), (), always=True)


@rewrites_calls(list.insert)
def _(plan: Shadows, block: Any, call: Any) -> None:
    xs, k, x = call.args
    if not plan.is_active(xs):
        return
    if not plan.is_place(xs, known(plan.s.value(k))):
        raise UnknownUseError
    x̂ = plan.shadow(x) if plan.is_active(x) else plan.zero_in(xs)
    slots = [(4, x)] if plan.gives_cotangent(x) else []
    rule = insert_rule(plan.doubt(x))
    plan.pair(call, rule, (xs, plan.shadow(xs), k, x̂, x), slots, always=True)


@rewrites_calls(list.reverse)
def _(plan: Shadows, block: Any, call: Any) -> None:
    (xs,) = call.args
    if plan.is_active(xs):
        plan.pair(call, turned, (xs, plan.shadow(xs)), (), always=True)


@rewrites_calls(primitives.build_map)
def _(plan: Shadows, block: Any, call: Any) -> None:
    if not plan.is_active(call.out):
        return
    if not all(is_key(known(plan.s.value(k))) for k in call.args[::2]):
        raise UnknownUseError
    d̂ = plan.shadow(call.out)
    slots = [(i + 1, a) for i, a in enumerate(call.args) if i % 2 and plan.carries(a)]
    if slots:
        rule = dict_rule(sign_of(plan.zero_in(call.out)), *map(plan.doubt, call.args[1::2]))
        plan.pair(call, rule, (d̂, *call.args), slots, always=True)


@rewrites_calls(operator.delitem)
def _(plan: Shadows, block: Any, call: Any) -> None:
    """The shadow of a dict keeps what the dict loses: nothing reaches it until it is put anew."""
    xs, k = call.args
    if not plan.is_active(xs) or plan.is_dict(xs):
        return
    if not plan.is_place(xs, known(plan.s.value(k))):
        raise UnknownUseError
    plan.pair(call, dropped, (xs, plan.shadow(xs), k), (), always=True)


@rewrites_calls(operator.setitem, primitives.map_add)
def _(plan: Shadows, block: Any, call: Any) -> None:
    xs, k, x = call.args
    if not plan.is_active(xs):
        return
    index = known(plan.s.value(k))
    if not plan.is_place(xs, index):
        raise UnknownUseError
    x̂ = plan.shadow(x) if plan.is_active(x) else plan.zero_in(xs)
    how = plan.is_dict(xs), plan.may_hold_shadows(xs), sign_of(plan.zero_in(xs))
    rule = put_rule(call.primitive, plan.doubt(x), *how)
    slots = [(3, x)] if plan.gives_cotangent(x) else []
    plan.pair(call, rule, (xs, plan.shadow(xs), k, x, x̂), slots, always=True)


@rewrites_calls(operator.getitem, dict.__getitem__)
def _(plan: Shadows, block: Any, call: Any) -> None:
    items, k = call.args
    unpacked = plan.definitions.get(items)
    if unpacked is not None and unpacked.primitive is primitives.unpack:
        if plan.is_active(unpacked.args[0]):
            plan.read_from(block, call, unpacked.args[0], k)
    elif plan.is_active(items):
        index = known(plan.s.value(k))
        if index is not None and index.type is slice:
            plan.shadow(call.out)
            return
        if not plan.is_place(items, index):
            raise UnknownUseError
        plan.read_from(block, call, items, k)


@rewrites_calls(getattr)
def _(plan: Shadows, block: Any, call: Any) -> None:
    if plan.is_active(call.args[0]):
        plan.read_from(block, call, call.args[0], call.args[1])


@rewrites_calls(new_instance, *READ_AS_THEY_ARE, defaultdict)
def _(plan: Shadows, block: Any, call: Any) -> None:
    """What it has is read and written item by item."""


@rewrites_calls(*WRITING)
def _(plan: Shadows, block: Any, call: Any) -> None:
    x, name, value = call.args
    if not plan.is_active(x):
        return
    ẑ = plan.shadow(value) if plan.is_active(value) else Const(ZERO)
    rule = put_rule(call.primitive, plan.doubt(value), True, plan.may_hold_shadows(x), ZERO)
    slots = [(3, value)] if plan.gives_cotangent(value) else []
    plan.pair(call, rule, (x, plan.shadow(x), name, value, ẑ), slots, always=True)


@rewrites_calls(sum, math.fsum)
def _(plan: Shadows, block: Any, call: Any) -> None:
    xs, *start = call.args
    if plan.is_active(xs):
        if start and (call.primitive is not sum or not plan.is_number(start[0])):
            raise UnknownUseError
        plan.numbers_only(call, 1 + len(start))
        rule = sum_rule(call.primitive, plan.marked)
        slots = [(2, x) for x in start if plan.carries(x)]
        plan.pair(call, rule, (xs, plan.shadow(xs), *start), slots)


@rewrites_calls(math.prod)
def _(plan: Shadows, block: Any, call: Any) -> None:
    if plan.is_active(call.args[0]):
        plan.numbers_only(call)
        plan.pair(call, product_of_items, (call.args[0], plan.shadow(call.args[0])), ())


@rewrites_calls(min, max)
def _(plan: Shadows, block: Any, call: Any) -> None:
    if any(map(plan.is_active, call.args)):
        plan.numbers_only(call)
        rule = extreme_rule(call.primitive, plan.marked)
        plan.pair(call, rule, (call.args[0], plan.shadow(call.args[0])), ())


@rewrites_calls(np.array, np.asarray, np.sum, np.mean)
def _(plan: Shadows, block: Any, call: Any) -> None:
    xs = call.args[0]
    if plan.is_active(xs):
        plan.numbers_only(call)
        if plan.marked and plan.may_hold_shadows(xs):
            raise UnknownUseError
        rules = READ_ONE_BY_ONE if plan.marked else READ_AT_ONCE
        plan.pair(call, rules[call.primitive], (xs, plan.shadow(xs)), ())


@rewrites_calls(np.stack, np.concatenate, np.vstack, np.hstack)
def _(plan: Shadows, block: Any, call: Any) -> None:
    xs, *axis = call.args
    if plan.is_active(xs):
        if call.keywords not in ((), ("axis",)) or plan.s.types.get(call.out) is None:
            raise UnknownUseError
        plan.results.add(call.out)
        rule = plan.joining(call) if plan.marked else JOINED[call.primitive]
        plan.pair(call, rule, (xs, plan.shadow(xs), *axis), ())


@rewrites_calls(operator.mul)
def _(plan: Shadows, block: Any, call: Any) -> None:
    if any(map(plan.is_active, call.args)):
        raise UnknownUseError


@rewrites_calls(list_item)
def _(plan: Shadows, block: Any, call: Any) -> None:
    x, xs, k = call.args
    if plan.is_active(xs):
        plan.take(call, x, xs, k)


@rewrites_calls(primitives.unpack)
def _(plan: Shadows, block: Any, call: Any) -> None:
    """Its items are read one by one."""


# -- what runs


@functools.lru_cache(100)
def is_plain_class(cls: type) -> bool:
    """Is it a class of the user's whose objects have their attributes in a dict?"""
    return (
        is_of_plain_kind(cls)
        and cls.__dictoffset__ != 0
        and not issubclass(cls, NOT_PLAIN)
        and not is_part_of_python(cls)
        and not slots_of(cls)
    )


NOT_PLAIN = (list, tuple, dict, set, frozenset, str, bytes, type, Number, np.ndarray, np.generic)


def reads_own_fields(cls: type, special: frozenset[str]) -> bool:
    """Do its objects have their own attributes of these names, for the class has none?"""
    return all([special.isdisjoint(base.__dict__) for base in cls.__mro__[:-1]])


def shadow_of(x: Any, known: dict[int, Any]) -> Any:
    """A shadow of an argument; one list, one object, has one shadow."""
    found = known.get(id(x))
    if found is None:
        if type(x) is list:
            if NUMBERS.issuperset(map(type, x)):
                found = known[id(x)] = [ZERO] * len(x)
                return found
            found = known[id(x)] = []
            for y in x:
                found.append(shadow_of(y, known) if has_shadow(type(y)) else ZERO)
        else:
            held = x if type(x) is dict else x.__dict__
            found = known[id(x)] = dict.fromkeys(held, ZERO)
            if not NUMBERS.issuperset(map(type, held.values())):
                for name, y in held.items():
                    if has_shadow(type(y)):
                        found[name] = shadow_of(y, known)
    return found


def number_shadow_of(x: Any, known: dict[int, Any], zero: float) -> Any:
    """The same of a list of numbers, or of such lists: it holds numbers."""
    found = known.get(id(x))
    if found is None:
        if x and type(x[0]) is list:
            found = known[id(x)] = []
            found += [number_shadow_of(y, known, zero) for y in x]
        else:
            found = known[id(x)] = [zero] * len(x)
    return found


def has_shadow(cls: type) -> bool:
    """Do objects of this class have shadows of their own?"""
    return cls is list or cls is dict or (cls not in NUMBERS and is_plain_class(cls))


NUMBERS = frozenset((float, int, np.ndarray))
FLOATS = frozenset((float,))


def finished(x: Any, shadows: dict[Any, Any]) -> Any:
    """The gradient for a list or an object, from the shadows by the identity of what has them."""
    found = shadows.get(Finish)
    if found is None:
        found = shadows[Finish] = Finish(shadows)
    return found.whole(x)


class Finish(Reached):
    """The gradients of what has shadows; one object has one gradient."""

    def __init__(self, shadows: dict[int, Any]) -> None:
        super().__init__()
        self.shadows = shadows

    def whole(self, x: Any) -> Any:
        """The gradient for a list or an object."""
        key = id(x)
        x̂ = self.shadows.get(key)
        if x̂ is None:
            return gradient_for(x, ZERO, self.adjoint)
        made = self.results.get(key)
        if made is not None:
            return made
        if type(x) is list:
            if FLOATS.issuperset(map(type, x)) and FLOATS.issuperset(map(type, x̂)):
                self.results[key] = x̂
                return x̂
            made = self.results[key] = []
            made += [self.item(y, x̂[i]) for i, y in enumerate(x)]
            return made
        if type(x) is dict:
            made = self.results[key] = {}
            for k, y in x.items():
                made[k] = self.item(y, x̂[k])
            return made
        fields: dict[str, Any] = {}
        made = self.results[key] = tangent_of(type(x), fields)
        for name, y in x.__dict__.items():
            ȳ = self.item(y, x̂[name])
            if ȳ is None:
                made._without += (name,)
            else:
                fields[name] = ȳ
        return made

    def item(self, y: Any, ȳ: Any) -> Any:
        """The gradient for an item or a field; the shadow has its cotangent, or a shadow."""
        kind = type(ȳ)
        if kind is float is type(y):
            return ȳ
        if kind is np.ndarray is type(y) and y.shape == ȳ.shape:
            dtype = ȳ.dtype
            if y.dtype is dtype and dtype.kind in "fc":
                ours = sys.getrefcount(ȳ) <= BY_THE_SHADOW and ȳ.base is None
                return ȳ if ours else ȳ.copy()
        if id(y) in self.shadows:
            return self.whole(y)
        return gradient_for(y, ȳ, self.adjoint)

    @staticmethod
    def adjoint(x: Any) -> None:
        """Nothing has reached a container that has no shadow."""
