"""What the iterators of itertools mean, as generators.

Each is Python code that gives the same items, as lazily; it reads its sources as far ahead, but for
`groupby`, which reads a group at a time. What comes out is a generator.
Tests: tests/rules/test_iterators.py
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from types import GeneratorType
from typing import Any

from morula.core.extend import NONE, call, constant_unless, non_differentiable, patterns
from morula.rules.arrays.bodies import instead_of
from morula.rules.builtins import ATTRIBUTES
from morula.rules.calls import MISSING, lookup, runs_body, serves
from morula.rules.generators import any_record_of, delegate_to_others, delegating

ASKS_OBJECTS = True
END: Any = object()
CONSTANT = (range, str, bytes, int, type(None))


def type_seen(x: Any) -> Any:
    """The class of an object as differentiated code sees it: that for which a generator stands."""
    record = any_record_of(x) if type(x) is GeneratorType else None
    if record is None or record.step.__globals__ is not globals():
        return type(x)
    name = record.step.__name__
    return OF_BODIES.get(name) or getattr(itertools, name)


OF_BODIES: dict[str, Any] = {
    "chain_from_iterable": itertools.chain,
    "group_of": itertools._grouper,  # type: ignore[attr-defined]
    "branch": itertools._tee,  # type: ignore[attr-defined]
}


def may_stand_for_another(types: tuple[Any, ...]) -> bool:
    """Is the first one the type of what may be asked for its class? Three arguments make a class."""
    return len(types) == 3 or types[:1] in ((GeneratorType,), (None,))


non_differentiable(type_seen)
constant_unless(may_stand_for_another, isinstance, patterns.is_instance, type)


def is_instance_seen(x: Any, classes: Any) -> bool:
    """`isinstance(x, classes)`."""
    return issubclass(type_seen(x), classes)


non_differentiable(is_instance_seen)


@serves(type)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return type_seen(*args), lambda ȳ: (NONE, NONE)


@serves(isinstance, patterns.is_instance)
def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return is_instance_seen(*args), lambda ȳ: (NONE, NONE, NONE)


def lacking(x: Any, name: str) -> AttributeError | None:
    """What says that an iterator has no such attribute, if only the generator in its place does."""
    cls = type_seen(x)
    if lookup(cls, name) is not MISSING:
        return None
    message = f"'{cls.__module__}.{cls.__name__}' object has no attribute '{name}'"
    return AttributeError(message, name=name, obj=x)


non_differentiable(lacking)


def _of_generators_only(name: str) -> None:
    def attribute_of_generator(x: Any) -> Any:
        error = lacking(x, name)
        if error is not None:
            raise error
        return getattr(x, name), lambda ȳ: (ȳ,)

    ATTRIBUTES[GeneratorType, name] = attribute_of_generator


for _name in {*dir(GeneratorType)} - {*dir(itertools.chain)}:
    _of_generators_only(_name)
ATTRIBUTES[GeneratorType, "__class__"] = lambda x: (type_seen(x), lambda ȳ: (ȳ,))


@delegating
def _(receiver: Any, signal: Any) -> Any:
    """To an iterator nothing can be sent, and it is not told of what is thrown."""
    if signal is None or lacking(receiver, "send") is None:
        return None
    return call(delegate_to_others, receiver, signal)


def as_generator(primal: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a generator stand for an iterator, unless it runs over ranges or text only."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        @serves(primal)
        def _(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if all(isinstance(a, CONSTANT) for a in (*args, *kwargs.values())):
                n = 1 + len(args) + len(kwargs)
                return over_constants(fn, args, kwargs), lambda ȳ: (NONE,) * n
            return call(body, *args, **kwargs)

        runs_body(body, primal)
        return body

    return register


def over_constants(make: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The iterator itself, also where the rule is differentiated in its turn."""
    return make(*args, **kwargs)


non_differentiable(over_constants)


@as_generator(itertools.chain)
def chain(*iterables):
    """The items of one after the other."""
    for iterable in iterables:
        for item in iterable:  # noqa: UP028
            yield item


@instead_of(itertools.chain.__dict__["from_iterable"])
def chain_from_iterable(cls, iterables):
    """The items of one after the other of an iterable's items."""
    for iterable in iterables:
        for item in iterable:  # noqa: UP028
            yield item


@as_generator(itertools.accumulate)
def accumulate(iterable, func=None, *, initial=None):
    """What a function of the last result and the next item gives; sums, if none is given."""
    func = operator.add if func is None else func
    total = END if initial is None else initial
    if initial is not None:
        yield total
    for item in iterable:
        total = item if total is END else func(total, item)
        yield total


@as_generator(itertools.compress)
def compress(data, selectors):
    """The items whose selectors are true."""
    for item, selector in zip(data, selectors):  # noqa: B905
        if selector:
            yield item


@instead_of(itertools.count)
def count(start=0, step=1):
    """start, start + step, …"""
    n = start
    while True:
        yield n
        n = n + step


@as_generator(itertools.cycle)
def cycle(iterable):
    """The items again and again."""
    kept = []
    for item in iterable:
        yield item
        kept.append(item)
    while kept:
        for item in kept:
            yield item


@as_generator(itertools.dropwhile)
def dropwhile(predicate, iterable):
    """The items from the first one on that is refused."""
    dropping = True
    for item in iterable:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


@as_generator(itertools.takewhile)
def takewhile(predicate, iterable):
    """The items before the first one that is refused."""
    for item in iterable:
        if not predicate(item):
            return
        yield item


@as_generator(itertools.filterfalse)
def filterfalse(predicate, iterable):
    """The items that are refused."""
    for item in iterable:
        if not (item if predicate is None else predicate(item)):
            yield item


@as_generator(itertools.groupby)
def groupby(iterable, key=None):
    """Neighbours with equal keys; a group is at its end when the next one has begun."""
    current = [None]

    def group_of(items):
        for item in items:
            if current[0] is not items:
                return
            yield item

    group, last = [], END
    for item in iterable:
        k = item if key is None else key(item)
        if last is not END and k is not last and k != last:
            current[0] = group
            yield last, group_of(group)
            group = []
        last = k
        group.append(item)
    if last is not END:
        current[0] = group
        yield last, group_of(group)


@as_generator(itertools.islice)
def islice(iterable, *limits):
    """Every step-th item from start to stop."""
    start, stop, step = bounds(limits)
    wanted = start
    if stop == 0:
        return
    for position, item in enumerate(iterable, 1):
        if position > wanted:
            yield item
            wanted += step
        if position == stop:
            return


def bounds(limits: tuple[Any, ...]) -> tuple[int, Any, int]:
    """Start, stop and step; the errors are those of Python."""
    itertools.islice((), *limits)
    s = slice(*limits)
    return s.start or 0, s.stop, s.step or 1


@as_generator(itertools.pairwise)
def pairwise(iterable):
    """Each item with the next one."""
    last = END
    for item in iterable:
        if last is not END:
            yield last, item
        last = item


def places(choose: Any, n: int, *r: int) -> Any:
    """An iterator over tuples of places in a sequence of n items."""
    return choose(range(n), *r)


def places_in(lengths: list[int]) -> Any:
    """An iterator over tuples of places in several sequences."""
    return itertools.product(*map(range, lengths))


non_differentiable(bounds, places, places_in)


def _choosing(choose):
    def chosen(iterable, r):
        """Tuples of r items."""
        pool = tuple(iterable)
        for found in places(choose, len(pool), r):
            yield tuple([pool[i] for i in found])

    chosen.__code__ = chosen.__code__.replace(co_name=choose.__name__)
    as_generator(choose)(chosen)


_choosing(itertools.combinations)
_choosing(itertools.combinations_with_replacement)


@as_generator(itertools.permutations)
def permutations(iterable, r=None):
    """Tuples of r items in every order."""
    pool = tuple(iterable)
    for found in places(itertools.permutations, len(pool), len(pool) if r is None else r):
        yield tuple([pool[i] for i in found])


@as_generator(itertools.product)
def product(*iterables, repeat=1):
    """Tuples of one item of each."""
    pools = [tuple(iterable) for iterable in iterables] * repeat
    for found in places_in([len(pool) for pool in pools]):
        yield tuple([pool[i] for pool, i in zip(pools, found, strict=True)])


@instead_of(itertools.repeat)
def repeat(object, times=None):
    """The same again and again."""
    if times is None:
        while True:
            yield object
    for _ in range(times):
        yield object


@as_generator(itertools.starmap)
def starmap(function, iterable):
    """A function of the items' items."""
    for args in iterable:
        yield function(*args)


@as_generator(itertools.tee)
def tee(iterable, n=2):
    """Iterators over the same items, which are read once."""
    source = iter(iterable)
    kept = []

    def branch():
        i = 0
        while True:
            if i == len(kept):
                item = next(source, END)
                if item is END:
                    return
                kept.append(item)
            yield kept[i]
            i += 1

    return tuple([branch() for _ in range(n)])


@as_generator(itertools.zip_longest)
def zip_longest(*iterables, fillvalue=None):
    """Tuples of one item of each, until the longest ends."""
    sources = [iter(iterable) for iterable in iterables]
    while True:
        items, ended = [], 0
        for source in sources:
            item = next(source, END)
            ended += item is END
            items.append(fillvalue if item is END else item)
        if ended == len(sources):
            return
        yield tuple(items)


if hasattr(itertools, "batched"):  # CPython 3.12

    @as_generator(itertools.batched)
    def batched(iterable, n, *, strict=False):
        """Tuples of n items, the last one of what is left."""
        batch = []
        for item in iterable:
            batch.append(item)
            if len(batch) == n:
                yield tuple(batch)
                batch = []
        if batch:
            if strict:
                raise ValueError("batched(): incomplete batch")
            yield tuple(batch)
