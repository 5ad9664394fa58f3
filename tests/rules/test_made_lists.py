"""Lists, deques and sets that a call makes, and that are changed afterwards."""

import copy
import heapq
import itertools
import random
from collections import deque

import pytest

from tests.modes import check_modes

MADE = {
    "list": lambda v: list((v, v * v)),
    "sorted": lambda v: sorted([v, v * v]),
    "copy": lambda v: [v, v * v].copy(),
    "a slice": lambda v: [v, v * v, 1.0][:2],
    "+": lambda v: [v] + [v * v],
    "*": lambda v: [v, v * v] * 2,
    "map": lambda v: list(map(lambda t: t * v, [v, 1.0])),
    "deepcopy": lambda v: copy.deepcopy([v, v * v]),
    "nsmallest": lambda v: heapq.nsmallest(2, [v, v * v, 9.0]),
    "accumulate": lambda v: list(itertools.accumulate([v, v])),
    "sample": lambda v: random.Random(0).sample([v, v * v, 1.0], 2),
    "deque": lambda v: deque([v, v * v]),
    "deque +": lambda v: deque([v]) + deque([v * v]),
    "deque *": lambda v: deque([v, v * v]) * 2,
    "deque copy": lambda v: deque([v, v * v]).copy(),
}


def cleared(x, v):
    y = x[0]
    x.clear()
    return y


def deleted(x, v):
    y = x[1]
    del x[0]
    return y


def lengthened(x, v):
    x.append(v)
    return x[0] * x[-1]


CHANGES = {
    "pop": lambda x, v: x.pop(),
    "clear": cleared,
    "del": deleted,
    "append": lengthened,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("made", MADE)
def test_what_is_changed_later_has_the_derivatives_of_before(made, change):
    check_modes(lambda v: CHANGES[change](MADE[made](v), v) * v, 1.7)


SETS = {
    "|": lambda a, v: a | {v * v},
    "union": lambda a, v: a.union({v * v}),
    "-": lambda a, v: (a | {v * v}) - {9.0},
    "copy": lambda a, v: a.copy(),
    "frozenset": lambda a, v: set(frozenset(a)),
}


@pytest.mark.parametrize("made", SETS)
@pytest.mark.parametrize("change", ["the set", "its origin"])
def test_sets_that_lose_what_was_taken_from_them(made, change):
    """What an element brought was lost with it, silently."""

    def f(v):
        a = {v, v**3}
        s = SETS[made](a, v)
        y = max(s)
        (s if change == "the set" else a).clear()
        return y * v + sum(s)

    check_modes(f, 1.7)
