"""Lazy iterators as generators, for compiled programs: a generator can become part of a loop.

What stands here in Python takes the place of `enumerate`, `zip`, `map`, `filter` and of callables of
itertools over which one loop runs, where their types do not tell all: items are asked for in the
same order, and none that the callable would not ask for. A generator that is read at once becomes a
list. The rules of these callables (iteration.py) say what they mean elsewhere.
Tests: tests/rules/test_lazy.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from morula.core.extend import (
    NEVER,
    Block,
    Call,
    Const,
    count_uses,
    effects,
    generators,
    known,
    non_differentiable,
    primitives,
    rewrites,
    traits,
    transfers,
)
from morula.rules.list_types import is_array

advance, DONE = primitives.advance, primitives.DONE


def enumerated(xs: Any, start: Any = 0) -> Iterator[Any]:
    """`enumerate(xs, start)`."""
    i = start
    for x in xs:
        yield i, x
        i = i + 1


def zipped(xs: Any, ys: Any) -> Iterator[Any]:
    """`zip(xs, ys)`, of which the first is a generator."""
    ys = iter(ys)
    for x in xs:
        y = advance(ys)
        if y is DONE:
            return
        yield x, y


def zipped_after_first(xs: Any, ys: Any) -> Iterator[Any]:
    """`zip(xs, ys)`, of which the second is a generator."""
    xs = iter(xs)
    x = advance(xs)
    if x is DONE:
        return
    for y in ys:
        yield x, y
        x = advance(xs)
        if x is DONE:
            return


def zipped_after_list(xs: Any, ys: Any) -> Iterator[Any]:
    """`zip(xs, ys)` of a list or an array and a generator."""
    if len(xs) == 0:
        return
    i, x = 0, xs[0]
    for y in ys:
        yield x, y
        i = i + 1
        if i >= len(xs):
            return
        x = xs[i]


def mapped(f: Any, xs: Any) -> Iterator[Any]:
    """`map(f, xs)`."""
    for x in xs:
        yield f(x)


def mapped_to_two(f: Any, xs: Any, ys: Any) -> Iterator[Any]:
    """`map(f, xs, ys)`."""
    for x, y in zip(xs, ys):  # noqa: B905
        yield f(x, y)


def star_mapped(f: Any, xs: Any) -> Iterator[Any]:
    """`itertools.starmap(f, xs)`."""
    for x in xs:
        yield f(*x)


def filtered(f: Any, xs: Any) -> Iterator[Any]:
    """`filter(f, xs)`."""
    for x in xs:
        if f(x):
            yield x


def taken_while(f: Any, xs: Any) -> Iterator[Any]:
    """`itertools.takewhile(f, xs)`."""
    for x in xs:
        if not f(x):
            return
        yield x


def dropped_while(f: Any, xs: Any) -> Iterator[Any]:
    """`itertools.dropwhile(f, xs)`."""
    dropping = True
    for x in xs:
        if dropping and f(x):
            continue
        dropping = False
        yield x


def first_ones(xs: Any, stop: Any) -> Iterator[Any]:
    """`itertools.islice(xs, stop)` of a whole number."""
    i = 0
    if i >= stop:
        check_stop(stop)
        return
    for x in xs:
        yield x
        i = i + 1
        if i >= stop:
            return


def check_stop(stop: Any) -> None:
    """Raise what `itertools.islice` raises for a negative number."""
    itertools.islice((), stop)


non_differentiable(check_stop)
effects(check_stop)


def chained(xs: Any, ys: Any) -> Iterator[Any]:
    """`itertools.chain(xs, ys)`."""
    yield from xs
    yield from ys


def counted(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    """`itertools.count(start, step)`."""
    n = start
    while True:
        yield n
        n = n + step


def accumulated(xs: Any) -> Iterator[Any]:
    """`itertools.accumulate(xs)` of a sequence."""
    xs = list(xs)
    if len(xs) == 0:
        return
    total = xs[0]
    yield total
    for i in range(1, len(xs)):
        total = total + xs[i]
        yield total


def accumulated_by(xs: Any, f: Any) -> Iterator[Any]:
    """`itertools.accumulate(xs, f)` of a sequence, which may be a list that changes meanwhile."""
    if len(xs) == 0:
        return
    total, i = xs[0], 1
    yield total
    while i < len(xs):
        total = f(total, xs[i])
        i = i + 1
        yield total


def paired(xs: Any) -> Iterator[Any]:
    """`itertools.pairwise(xs)` of a sequence."""
    xs = list(xs)
    for i in range(len(xs) - 1):
        yield xs[i], xs[i + 1]


def multiplied(xs: Any, ys: Any) -> Iterator[Any]:
    """`itertools.product(xs, ys)` of sequences."""
    xs, ys = list(xs), list(ys)
    for x in xs:
        for y in ys:
            yield x, y


def multiplied_three(xs: Any, ys: Any, zs: Any) -> Iterator[Any]:
    """`itertools.product(xs, ys, zs)` of sequences."""
    xs, ys, zs = list(xs), list(ys), list(zs)
    for x in xs:
        for y in ys:
            for z in zs:
                yield x, y, z


def squared(xs: Any, repeat: Any) -> Iterator[Any]:
    """`itertools.product(xs, repeat=2)` of a sequence."""
    xs = list(xs)
    for x in xs:
        for y in xs:
            yield x, y


def permuted(xs: Any, _two: Any) -> Iterator[Any]:
    """`itertools.permutations(xs, 2)` of a sequence."""
    xs = list(xs)
    for i in range(len(xs)):
        for j in range(len(xs)):
            if i != j:
                yield xs[i], xs[j]


def combined(xs: Any, _two: Any) -> Iterator[Any]:
    """`itertools.combinations(xs, 2)` of a sequence."""
    xs = list(xs)
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            yield xs[i], xs[j]


def listed(xs: Any) -> list[Any]:
    """`list(xs)`."""
    return [x for x in xs]  # a loop, of which the generator becomes part


def first_of(xs: Any) -> Any:
    """`next(iter(xs))`."""
    for x in xs:
        return x
    return stop()


def first_or(xs: Any, default: Any) -> Any:
    """`next(iter(xs), default)`."""
    for x in xs:
        return x
    return default


def stop() -> Any:
    """Raise what `next` raises at the end."""
    next(iter(()))


non_differentiable(stop)
effects(stop)


@transfers(stop)
def _(s: Any, call: Call, args: Any) -> Any:
    """It gives nothing, ever."""
    return NEVER


FIRST = {1: first_of, 2: first_or}

LAZY: dict[tuple[Any, int], Callable[..., Any]] = {
    (enumerate, 1): enumerated,
    (enumerate, 2): enumerated,
    (zip, 2): zipped,
    (map, 2): mapped,
    (map, 3): mapped_to_two,
    (filter, 2): filtered,
    (itertools.starmap, 2): star_mapped,
    (itertools.takewhile, 2): taken_while,
    (itertools.dropwhile, 2): dropped_while,
    (itertools.islice, 2): first_ones,
    (itertools.chain, 2): chained,
    (itertools.count, 0): counted,
    (itertools.count, 1): counted,
    (itertools.count, 2): counted,
    (itertools.accumulate, 1): accumulated,
    (itertools.accumulate, 2): accumulated_by,
    (itertools.pairwise, 1): paired,
    (itertools.product, 2): multiplied,
    (itertools.product, 3): multiplied_three,
    (itertools.permutations, 2): permuted,
    (itertools.combinations, 2): combined,
}
OF_SEQUENCES = (accumulated, paired, multiplied, multiplied_three, squared, combined, permuted)
OF_TWO = (combined, permuted, squared)
KEYWORDS = {enumerate: {"start"}, itertools.count: {"start", "step"}}
MAKERS = {id(fn) for fn, _ in LAZY}
ASKED = {*MAKERS, id(next)}


@rewrites
def generate(s: Any) -> bool:
    """Put generators in the place of lazy iterators over which loops run; was there one?"""
    if not any(id(c.primitive) in ASKED or is_generator(c) for c in s.ir.calls()):
        return False
    lazy = Lazy(s)
    return any([lazy.rewrite(block, call) for block in s.ir.blocks for call in block.calls])


def is_generator(call: Any) -> bool:
    """Does a call make a generator?"""
    return call is not None and call.primitive is generators.make_generator


def reads_at_once(call: Call) -> bool:
    """Does a call run through its first argument, if that is an iterator?"""
    return traits.is_read_at_once(call) or (call.primitive is sum and len(call.args) == 2)


def may_go_on(code: Any) -> bool:
    """Does a function of that code raise no StopIteration, which would end what it is called by?"""
    return code is None or not {"next", "StopIteration"}.intersection(code.co_names)


def is_two(x: Any) -> bool:
    """Is it known to be the number two?"""
    return type(x) is Const and type(x.value) is int and x.value == 2


class Lazy:
    """The lazy iterators of a program."""

    def __init__(self, s: Any) -> None:
        self.s = s
        self.made: dict[Any, Call] = {c.out: c for c in s.ir.calls()}
        self.uses = count_uses(s.ir)
        self.readers = {x: c for c in s.ir.calls() for x in c.operands()}

    def rewrite(self, block: Any, call: Call) -> bool:
        """Put a generator in the place of a lazy iterator, or a list in that of one read at once."""
        if call.primitive is list and self.is_own_zip(call):
            call.fn = Const(listed)
            return True
        if call.primitive is next:
            return self.take_first(block, call)
        if reads_at_once(call) and self.is_own_generator(call.args[0]):
            if call.primitive is list:
                call.fn = Const(listed)
                return True
            items = Call(self.s.ir.var(), Const(listed), call.args[:1], (), call.position)
            block.calls.insert(block.calls.index(call), items)
            call.args = (items.out, *call.args[1:])
            return True
        twin = self.twin(call) if self.is_run_over(call) else None
        if twin is None:
            return False
        call.fn = Const(twin)
        return True

    def take_first(self, block: Block, call: Call) -> bool:
        """Put a loop that is left at once in the place of `next` of what nothing else reads."""
        source: Any = call.args[0] if call.args else None
        if not self.is_own_generator(source):
            made = self.made.get(source)
            if made is None or made.primitive is not iter or self.uses[source] != 1:
                return False
            if len(made.args) != 1 or known(self.s.value(made.args[0])) is None:
                return False
            if made is not block.calls[block.calls.index(call) - 1]:
                return False
            block.calls.remove(made)
            source = made.args[0]
        call.fn, call.args = Const(FIRST[len(call.args)]), (source, *call.args[1:])
        return True

    def is_own_generator(self, x: Any) -> bool:
        """Is it a generator that nothing else reads?"""
        return is_generator(self.made.get(x)) and self.uses[x] == 1

    def is_own_zip(self, call: Call) -> bool:
        """Is it `list(zip(xs, ys))`, of an iterator that gives tuples and that nothing else reads?"""
        source = self.made.get(call.args[0]) if len(call.args) == 1 else None
        own = source is not None and self.uses[source.out] == 1
        return own and source is not None and source.primitive in (zip, enumerate)

    def is_run_over(self, call: Call) -> bool:
        """Is a call's result read by one loop, or by what is read by one, or at once?"""
        reader = self.readers.get(call.out)
        if reader is None or self.uses[call.out] != 1:
            return False
        if reader.primitive is iter:
            return self.is_run_over(reader)
        if reader.primitive is advance:
            return True
        if id(reader.primitive) in MAKERS:
            return self.is_run_over(reader)
        return reads_at_once(reader) and reader.args[0] is call.out

    def twin(self, call: Call) -> Callable[..., Any] | None:
        """The generator function that does the same, if the types do not tell all."""
        fn = call.primitive
        found = LAZY.get((fn, len(call.args))) if id(fn) in MAKERS else None
        if fn is itertools.product and call.keywords == ("repeat",) and len(call.args) == 2:
            found = squared
        elif found is None or not KEYWORDS.get(fn, set()).issuperset(call.keywords):
            return None
        if fn is enumerate and not is_generator(self.made.get(call.args[0])):
            return None
        if fn is zip:
            return self.twin_of_zip(*call.args)
        if fn in (filter, itertools.takewhile, itertools.dropwhile, map, itertools.starmap):
            return found if self.is_function(call.args[0]) else None
        if fn is itertools.islice:
            stop = known(self.s.value(call.args[1]))
            return found if stop is not None and stop.type is int else None
        if found is accumulated_by:
            xs, f = call.args
            return found if self.is_sequence(xs, True) and self.is_function(f) else None
        if found in OF_SEQUENCES:
            lists = found not in (accumulated, paired)
            given = call.args[: 1 if found in OF_TWO else None]
            fits = found not in OF_TWO or is_two(call.args[1])
            return found if fits and all(self.is_sequence(x, lists) for x in given) else None
        return found

    def twin_of_zip(self, xs: Any, ys: Any) -> Callable[..., Any] | None:
        """The generator function for `zip` of two, one of which is a generator."""
        if is_generator(self.made.get(xs)):
            return zipped
        if not is_generator(self.made.get(ys)):
            return None
        k = known(self.s.value(xs))
        counts = k is not None and (k.type is list or is_array(k))
        return zipped_after_list if counts else zipped_after_first

    def is_function(self, f: Any) -> bool:
        """Is it something that is called, known here or made here, and does not end the iteration?"""
        if type(f) is Const:
            code = getattr(f.value, "__code__", None)
            return callable(f.value) and f.value is not next and may_go_on(code)
        made = self.made.get(f)
        if made is None or made.primitive is not primitives.make_function:
            return False
        code = made.args[1]
        return type(code) is Const and may_go_on(code.value)

    def is_sequence(self, x: Any, lists: bool) -> bool:
        """Is it a sequence that stays as it is, or a list or an array of numbers?"""
        k = known(self.s.value(x))
        if k is None or k.type in (range, tuple):
            return k is not None
        return lists and (k.type is list or (is_array(k) and k.detail[1] == 1))
