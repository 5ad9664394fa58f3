"""What the specialised path does with lists: items, displays, loops; as fast as by hand.

The meaning is that of the rules in containers.py and iteration.py: the cotangent of a list is found
by its identity. Here the types are known exactly, so no subclass has to be thought of; and a loop
over lists counts, so that an item's cotangent goes to its place in the adjoint list without a
question to the iterator.
Tests: tests/rules/test_list_types.py
"""

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from morula.core.extend import (
    NONE,
    ZERO,
    Block,
    Call,
    Const,
    IteratorOver,
    Var,
    accumulate,
    adjoint_of,
    call,
    count_uses,
    effects,
    exactly,
    folds,
    gives_item_of,
    is_zero,
    known,
    loop_step,
    may_mutate,
    non_differentiable,
    only_reads,
    primitives,
    rewrites,
    rrule,
    transfers,
    type_stable,
)
from morula.rules.calls import entry


def give(xs: list[Any], k: int, x̄: Any) -> None:
    """Add to the adjoint of the k-th item of a list."""
    bars = adjoint_of(xs)
    while len(bars) <= k:
        bars.append(ZERO)
    bars[k] = x̄ if bars[k] is ZERO else accumulate(bars[k], x̄)


def give_all(xs: list[Any], bars: Any, n: int) -> None:
    """Add to the adjoints of the first n items of a list, from the cotangent of a tuple of them."""
    for k in range(n):
        x̄ = entry(bars, k)
        if not is_zero(x̄):
            give(xs, k, x̄)


def give_to_each(xs: list[Any], n: int, x̄: Any) -> None:
    """Add the same to the adjoints of the first n items of a list."""
    bars = adjoint_of(xs)
    while len(bars) < n:
        bars.append(ZERO)
    bars[:n] = [x̄ if bar is ZERO else accumulate(bar, x̄) for bar in bars[:n]]


effects(give, give_all, give_to_each)


@exactly(operator.getitem, list, int)
def _(xs, i):
    y = xs[i]
    k = i if i >= 0 else i + len(xs)

    def getitem_pullback(x̄):
        give(xs, k, x̄)
        return NONE, NONE

    return y, getitem_pullback


@exactly(primitives.unpack, list, int)
def _(xs, n):
    def unpack_pullback(bars):
        give_all(xs, bars, n)
        return NONE, NONE

    return primitives.unpack(xs, n), unpack_pullback


def are_numbers(xs: list[Any]) -> bool:
    """Are all items numbers to which the cotangent of their sum goes as it is?"""
    return {float, int, np.float64}.issuperset(map(type, xs))


non_differentiable(are_numbers)
only_reads(are_numbers)


@exactly(sum, list, by_identity=True)  # what objects add up to may be an object
def _(xs):
    if not are_numbers(xs):
        y, back = call(sum, xs)
        return y, lambda ȳ: back(ȳ)[1:]
    n = len(xs)

    def sum_pullback(ȳ):
        give_to_each(xs, n, ȳ)
        return (NONE,)

    return sum(xs), sum_pullback


def sum_of(n: int) -> Any:
    """The sum of a tuple of n numbers as a function of them, with its rule."""
    names = [f"x{i}" for i in range(n)]
    source = f"""
def sum_of_items({", ".join(names)}):
    return sum(({", ".join(names)},))

def rule({", ".join([f"{x}: object" for x in names])}):
    def sum_pullback(ȳ):
        return {", ".join(["ȳ"] * n)},
    return sum(({", ".join(names)},)), sum_pullback
"""
    scope: dict[str, Any] = {"__name__": __name__}
    exec(source, scope)
    rrule(scope["sum_of_items"])(scope["rule"])
    type_stable(scope["sum_of_items"])
    return scope["sum_of_items"]


SUMS = {n: sum_of(n) for n in range(1, 9)}


@rewrites
def take_apart_sums(s: Any) -> bool:
    """The sum of a tuple of a few numbers is a function of the numbers."""
    changed = False
    for block in s.ir.blocks:
        for c in list(block.calls):
            if c.primitive is not sum or c.keywords or len(c.args) != 1:
                continue
            k = known(s.value(c.args[0]))
            items = k.detail if k is not None and k.type is tuple else None
            if not items or len(items) not in SUMS or not all(map(is_number, items)):
                continue
            xs, i, numbers = c.args[0], block.calls.index(c), []
            for j in range(len(items)):
                numbers.append(s.ir.var())
                read = Call(numbers[-1], Const(operator.getitem), (xs, Const(j)), (), c.position)
                block.calls.insert(i + j, read)
            c.fn, c.args = Const(SUMS[len(items)]), tuple(numbers)
            changed = True
    return changed


def is_number(value: Any) -> bool:
    """Is it a number to which the cotangent of a sum goes as it is?"""
    k = known(value)
    return k is not None and k.type in (float, int, np.float64)


def list_item(x: Any, xs: list[Any], k: int) -> Any:
    """x, which a loop over the list xs has taken from its k-th place."""
    return x


@rrule(list_item)
def _(x: object, xs: object, k: object):
    def list_item_pullback(x̄):
        give(xs, k, x̄)
        return NONE, NONE, NONE

    return x, list_item_pullback


type_stable(list_item)
only_reads(list_item)
gives_item_of(list_item, 1)


@transfers(list_item)
def _(s: Any, call: Any, args: Any) -> Any:
    return args[0]


# -- loops ------------------------------------------------------------------------------------------


def loops_to_count(s: Any, made: dict[Any, Call], uses: Any) -> Iterator[tuple[Block, Call, Call]]:
    """The loops that do not count yet: the head, the step, and the call that makes the iterator."""
    entries = s.ir.predecessors()
    for block in s.ir.blocks:
        step = loop_step(block)
        if step is None or step.out in s.counted:
            continue
        start = made.get(step.args[0])
        if start is None or start.primitive is not iter or uses[start.out] != 1:
            continue
        if len(start.args) == 1 and len(entries[block.branches[1].block]) == 1:
            yield block, step, start


@rewrites
def count_loops(s: Any) -> bool:
    """`for x in xs` over lists or arrays, also by way of zip and enumerate, becomes one that counts."""
    made = {c.out: c for c in s.ir.calls()}
    uses = count_uses(s.ir)
    for block, step, start in loops_to_count(s, made, uses):
        source = made.get(start.args[0])
        if source is not None and is_turned(s, source, uses):
            read_by_number(s, block, step, source)
            return True
        if source is not None and source.primitive in (zip, enumerate) and uses[source.out] != 1:
            continue
        items = items_of_loop(s, start.args[0], source)
        if items is not None:
            rewrite_loop(s, block, step, start, source, items)
            return True
    return False


def is_turned(s: Any, source: Any, uses: Any) -> bool:
    """Does a loop run over `reversed(xs)` of a list or an array that does not become shorter?"""
    if source.primitive is not reversed or source.keywords or uses[source.out] != 1:
        return False
    k = known(s.value(source.args[0]))
    if k is None or taking(k) not in (item_of_list, item_of_array):
        return False
    return k.type is not list or not any(may_shorten(s, c) for c in s.ir.calls())


def may_shorten(s: Any, call: Any) -> bool:
    """May a call take items out of a list, so that a loop over it ends before its time?"""
    return may_mutate(s, call) and call.primitive not in (list.append, operator.setitem)


def read_by_number(s: Any, block: Any, step: Any, source: Any) -> None:
    """`for x in reversed(xs)` becomes `for k in range(len(xs) - 1, -1, -1)` with `x = xs[k]`."""
    ir, (xs,) = s.ir, source.args
    at = next(b for b in ir.blocks if source in b.calls)
    n, last, k = ir.var(), ir.var(), ir.var("k")
    i = at.calls.index(source)
    at.calls[i:i] = [
        Call(n, Const(len), (xs,), (), source.position),
        Call(last, Const(operator.sub), (n, Const(1)), (), source.position),
    ]
    source.fn, source.args = Const(range), (last, Const(-1), Const(-1))
    test, body = block.calls[-1], block.branches[1].block
    item, step.out = step.out, k
    test.args = (k, test.args[1])
    body.calls.insert(0, Call(item, Const(operator.getitem), (xs, k), (), step.position))


def item_of_list(raw: Any, xs: Any, k: Any) -> tuple[Any, tuple[Any, ...]]:
    """The k-th item of a list, which a loop has taken from it."""
    return list_item, (raw, xs, k)


def item_of_array(raw: Any, xs: Any, k: Any) -> tuple[Any, tuple[Any, ...]]:
    """The k-th item of an array."""
    return operator.getitem, (xs, k)


def item_of_range(raw: Any, xs: Any, k: Any) -> tuple[Any, tuple[Any, ...]]:
    """A whole number or a letter, which carries no derivative."""
    return primitives.alias, (raw,)


def taking(k: Any) -> Any:
    """How a loop takes items from what is of this kind, if it may be made one that counts."""
    if k is None:
        return None
    if k.type is np.ndarray:
        return item_of_array if k.detail is not None and k.detail[1] > 0 else None
    return {list: item_of_list, range: item_of_range, str: item_of_range}.get(k.type)


def items_of_loop(s: Any, over: Any, source: Any) -> list[Any] | None:
    """How a loop takes its items from what it runs over; None if it is to stay as it is."""
    k = known(s.value(over))
    if k is None or k.type is IteratorOver:
        return None
    if k.type in (list, np.ndarray):
        how = taking(k)
        return None if how is None else [(how, over)]
    if k.type not in (zip, enumerate) or source is None or source.primitive is not k.type:
        return None
    if source.keywords not in ((), ("strict",)):
        return None
    given = source.args[: len(source.args) - len(source.keywords)]
    ways = [taking(known(s.value(a))) for a in given]
    if None in ways or all(way is item_of_range for way in ways):
        return None
    return list(zip(ways, given, strict=True))


def rewrite_loop(s: Any, block: Any, step: Any, made: Any, source: Any, items: list[Any]) -> None:
    ir = s.ir
    item = step.out
    pair = Var(ir.var().id, "counted")
    s.counted.update((pair, made.out))
    if source is not None and source.primitive in (zip, enumerate):
        s.counted.add(source.out)
    body = block.branches[1].block
    test = block.calls[-1]
    # the iterator counts
    if not (source is not None and source.primitive is enumerate):
        counting = ir.var()
        at = next(b for b in ir.blocks if made in b.calls)
        at.calls.insert(
            at.calls.index(made), Call(counting, Const(enumerate), made.args, (), made.position)
        )
        made.args = (counting,)
        s.counted.add(counting)
    step.out = pair
    test.args = (pair, test.args[1])
    # the item is what it was, with the place that it came from
    calls: list[Any] = []

    def append(fn: Any, *args: Any) -> Any:
        out = ir.var()
        calls.append(Call(out, Const(fn), args, (), step.position))
        return out

    k = append(operator.getitem, pair, Const(0))
    raw = append(operator.getitem, pair, Const(1))
    (how, xs), *_ = items
    if source is None or source.primitive not in (zip, enumerate):
        if item in s.given:
            s.given[raw] = s.given[item]
        fn, args = how(raw, xs, k)
        calls.append(Call(item, Const(fn), args, (), step.position))
    elif source.primitive is enumerate:
        fn, args = how(raw, xs, k)
        pair_of_item = (k, append(fn, *args))
        calls.append(Call(item, Const(primitives.build_tuple), pair_of_item, (), step.position))
    else:
        parts = []
        for j, (how, xs) in enumerate(items):
            fn, args = how(append(operator.getitem, raw, Const(j)), xs, k)
            parts.append(append(fn, *args))
        calls.append(Call(item, Const(primitives.build_tuple), parts, (), step.position))
    body.calls[:0] = calls


@folds(list_item)
def _(f: Any, call: Any) -> Any:
    """Where the adjoint is written, or tangents are, the item is all that is left of it."""
    return call.args[0] if f.differentiated or f.primal is not None else None
