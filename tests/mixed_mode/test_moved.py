"""What moves values about moves the tangents of any of them, also those in no space that is known."""

import collections
import functools
import operator
import types
from collections import OrderedDict, defaultdict, deque

import pytest

from morula import hessian, jvp
from morula.core.errors import DifferentiationError
from tests.modes import check_modes


class Holder:
    def __init__(self, value):
        self.value = value


CARRIERS = {
    "number": (lambda v: v, lambda c: c),
    "closure": (lambda v: lambda: v, lambda c: c()),
    "object": (Holder, lambda c: c.value),
    "partial": (lambda v: functools.partial(operator.mul, v), lambda c: c(3.0)),
    "values": (lambda v: {"a": v}.values(), sum),
    "items": (lambda v: {"a": v}.items(), lambda c: sum(value for _, value in c)),
    "proxy": (lambda v: types.MappingProxyType({"a": v}), lambda c: c["a"]),
    "generator": (lambda v: (w * 2 for w in [v]), next),
    "cached": (lambda v: functools.lru_cache(lambda: v), lambda c: c()),
}


def without_first(q, c):
    q.append(1.0)
    q.append(c)
    return q.pop()


def put_in_front(c):
    q = deque([1.0, 2.0], maxlen=2)
    q.appendleft(c)
    return q[0]


def extended(c):
    q = deque([1.0], 2)
    q.extend([2.0, c])
    q.extendleft([q.pop()])
    return q.popleft()


def popped_twice(c):
    d = OrderedDict(a=c, b=1.0)
    d.popitem()
    return d.popitem(last=False)[1]


MOVES = {
    "dict.pop": lambda c: {"a": c}.pop("a"),
    "dict.pop, missing": lambda c: {}.pop("a", c),
    "dict.popitem": lambda c: {"a": c}.popitem()[1],
    "keywords.pop": lambda c: (lambda **named: named.pop("z"))(z=c),
    "OrderedDict.pop": lambda c: OrderedDict([("a", c)]).pop("a"),
    "OrderedDict.popitem": popped_twice,
    "dict |": lambda c: ({"a": 1.0} | {"a": c})["a"],
    "dict | of others": lambda c: (defaultdict(list, b=c) | OrderedDict(a=1.0))["b"],
    "dict.__or__": lambda c: dict.__or__({"a": c}, {"b": 1.0})["a"],
    "deque": lambda c: deque([1.0, c], 1)[0],
    "deque.pop": lambda c: without_first(deque(), c),
    "deque.popleft": lambda c: deque([c]).popleft(),
    "deque.appendleft": put_in_front,
    "deque.extend": extended,
    "enumerate": lambda c: next(enumerate([c]))[1],
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("move", MOVES)
def test_what_is_moved_keeps_its_derivative(move, carrier):
    make, read = CARRIERS[carrier]
    check_modes(lambda x: read(MOVES[move](make(x * x))) * x, 0.7)


UNMOVED = {
    "deque.rotate": lambda c: (q := deque([c]), q.rotate(1))[0][0],
    "list *": lambda c: ([c] * 2)[1],
    "OrderedDict.copy": lambda c: OrderedDict(a=c).copy()["a"],
    "namedtuple._replace": lambda c: (
        collections.namedtuple("Pair", "a b")(1.0, 2.0)._replace(a=c).a
    ),
}


@pytest.mark.parametrize("move", UNMOVED)
def test_tangents_without_a_place_are_refused(move):
    """A derivative that is there is right; otherwise there is an error, never a part of it."""

    def f(x):
        return UNMOVED[move](functools.partial(operator.mul, x * x))(3.0) * x

    for derivative, expected in (
        (lambda: jvp(f, (0.7,), (1.0,))[1], 4.41),
        (lambda: hessian(f, 0.7), 12.6),
    ):
        try:
            found = derivative()
        except DifferentiationError:
            continue
        assert found == pytest.approx(expected)


def test_real_keys_beside_what_is_taken_and_joined():
    def f(x):
        d = {x * 2: x * x, x * x * x: 1.0}
        e = d | {5.0: x}
        key, value = d.popitem()
        d[key * x] = value
        e.pop(x * 2)
        return sum(k * k * v for k, v in d.items()) + sum(k * v for k, v in e.items())

    check_modes(f, 0.7)


def test_enumerate_runs_over_the_values_of_a_dict():
    def f(x):
        return sum(v * (i + 1) for i, v in enumerate({"a": x * x, "b": x}.values())) * x

    check_modes(f, 0.7)
