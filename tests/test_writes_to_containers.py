"""Writes to lists, dicts, objects and closures: value, gradient, final state, pullbacks, both modes."""

import array
import copy
import dataclasses
import functools
import heapq
import operator
import types

import numpy as np
import pytest

from morula import gradient, jvp
from tests.mutation import check_mutation, moved


def every_method_of_dicts(xs):
    d = {"a": xs[0]}
    d["b"] = xs[1] * d["a"]
    d.update(c=xs[2], a=d["b"])
    d.setdefault("e", xs[0])
    d.setdefault("a", 5.0)
    p = d.pop("c")
    _k, v = d.popitem()
    d |= {"z": p * v}
    q = d | {"a": xs[1]}
    del d["b"]
    d.pop("nope", None)
    return sum(d.values()) * q["b"] + q["a"] * len(d)


def a_dict_written_in_its_loop(xs):
    d = dict(enumerate(xs))
    for k in list(d):
        d[k] *= d[(k + 1) % 3]
    for k, v in d.items():
        d[k] = v * v
    return sum(v * k for k, v in d.items()) + d[0]


def one_value_for_all_keys(xs):
    d = dict.fromkeys("abc", xs[0])
    d["a"] *= xs[1]
    return sum(d.values())


def containers_made_on_the_way(xs):
    d = {}
    d.setdefault("r", {}).setdefault("s", []).append(xs[0])
    d["r"]["s"][0] *= xs[1]
    d["r"]["t"] = d["r"]["s"]
    d["r"]["t"].append(xs[2])
    return d["r"]["s"][0] * d["r"]["s"][1]


def copies_of_a_dict(xs):
    d = {"a": [xs[0]]}
    e = d.copy()
    f = copy.deepcopy(d)
    e["a"][0] *= 2
    f["a"][0] *= 3
    return d["a"][0] * f["a"][0]


def every_function_of_heaps(xs):
    h = []
    for v in xs:
        heapq.heappush(h, v * v)
    a = heapq.heappop(h)
    b = heapq.heapreplace(h, a * 3)
    c = heapq.heappushpop(h, b * xs[0])
    heapq.heapify(h)
    return a * b + c * sum(v * (i + 1) for i, v in enumerate(h)) + heapq.nlargest(1, h)[0]


def an_array_of_constants(xs):
    a = array.array("d", [1.0, 2.0])
    a[0] = 3.0
    a.append(4.0)
    return xs[0] * a[0] * a[2] + xs[1]


def bytes_that_are_written(xs):
    b = bytearray(b"ab")
    b[0] = 99
    b.extend(b"q")
    del b[1]
    return xs[0] * b[0] * len(b)


class Squared:
    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v * 2

    @v.setter
    def v(self, x):
        self._v = x * x

    @v.deleter
    def v(self):
        self._v = 1.0


def a_property_that_is_deleted(xs):
    p = Squared(xs[0])
    p.v = xs[1]
    a = p.v
    p.v *= xs[2]
    b = p.v
    del p.v
    return a * b + p.v * xs[0]


@dataclasses.dataclass
class Record:
    a: float
    b: list = dataclasses.field(default_factory=list)


def a_data_class_and_its_copy(xs):
    o = Record(xs[0])
    o.b.append(xs[1])
    o.a += o.b[0]
    p = dataclasses.replace(o, a=xs[2])
    p.b[0] *= 2
    return o.a * o.b[0] + p.a * p.b[0]


def a_variable_of_the_function_around(xs):
    t = xs[0]
    n = 0

    def f(v):
        nonlocal t, n
        t = t * v
        n += 1
        return t

    a = f(xs[1])
    b = f(xs[2])
    return a * b + t * n


def closures_with_a_state_each(xs):
    def make():
        s = 0.0

        def add(v):
            nonlocal s
            s += v * v
            return s

        return add, lambda: s

    a, g = make()
    b, h = make()
    a(xs[0])
    b(xs[1])
    a(xs[2])
    return g() * h()


class Link:
    def __init__(self, v, n=None):
        self.v = v
        self.n = n


def a_list_that_is_turned_round(xs):
    h = None
    for v in xs:
        h = Link(v, h)
    n = h
    while n.n is not None:
        n.n.v = n.n.v * n.v
        n = n.n
    p = None
    while h:
        h.n, p, h = p, h, h.n
    t = 1.0
    n = p
    while n:
        t = t * n.v + 1
        n = n.n
    return t


class Pile:
    def __init__(self):
        self.items = []

    def push(self, x):
        self.items.append(x)
        return self

    def pop(self):
        return self.items.pop()

    def __len__(self):
        return len(self.items)

    def __iadd__(self, x):
        self.push(x)
        return self


def a_stack_of_the_users(xs):
    s = Pile()
    for v in xs:
        s += v * v
    a = s.pop()
    b = s.pop()
    s.push(a * b).push(a)
    return s.pop() * s.pop() + len(s) * s.items[0]


def a_dict_and_a_list_in_themselves(xs):
    d = {"v": xs[0]}
    d["me"] = d
    d["me"]["me"]["v"] *= xs[1]
    l = [d]
    l.append(l)
    l[1][0]["v"] += xs[2]
    return d["v"] ** 2


def a_function_that_captured_a_list(xs):
    ys = [v * v for v in xs]
    f = lambda: ys[0] * ys[1]
    a = f()
    ys[0] = xs[2]
    b = f()
    ys = [xs[1]] * 2
    return a + b * f()


def a_list_given_twice(xs):
    def g(a, b):
        a[0] *= b[1]
        b[1] = a[0]
        return a[0] + b[1]

    return g(xs, xs) * xs[2]


def a_default_value_that_grows(xs):
    def g(v, acc=[]):  # noqa: B006
        acc.append(v * v)
        return sum(acc)

    g(xs[0])
    return g(xs[1]) * xs[2]


def lists_sorted_twice(xs):
    xs.sort(key=lambda v: (v < 0, -v))
    xs.sort(reverse=True)
    ys = sorted(xs, key=abs)
    ys[0] *= 2
    return sum(v * (i + 1) for i, v in enumerate(ys)) + xs[0] * xs[1]


def parts_of_a_list_deleted(xs):
    ys = xs * 2
    del ys[1:4:2]
    ys[1:3] = [ys[2] * ys[1]]
    ys.insert(99, xs[0])
    ys.remove(ys[0])
    i = ys.index(xs[0])
    return sum(v * (j + 1) for j, v in enumerate(ys)) * (i + 1)


def a_list_extended_by_another_name(xs):
    ys = xs
    ys += [xs[0] * 2]
    zs = ys
    zs = zs + [1.0]
    zs[0] *= 3
    return sum(xs) * zs[0]


def a_generator_over_what_it_writes(xs):
    def g():
        for i in range(len(xs)):
            xs[i] = xs[i] * xs[i - 1]
            yield xs[i]

    return sum(a * (i + 1) for i, a in enumerate(g())) + xs[0]


def writes_by_functions_of_operator(xs):
    o = types.SimpleNamespace(i=types.SimpleNamespace(v=xs[0]))
    operator.attrgetter("i")(o).v = xs[1] * xs[2]
    operator.setitem(xs, 0, o.i.v)
    operator.iadd(xs, [xs[1]])
    return sum(xs) * operator.itemgetter(0, 2)(xs)[1]


class InADict:
    def __init__(self):
        self.__dict__["_h"] = {}

    def __setattr__(self, k, v):
        self._h[k] = v * 2

    def __getattr__(self, k):
        return self._h[k] * 3

    def __delattr__(self, k):
        del self._h[k]


def attributes_kept_in_a_dict(xs):
    o = InADict()
    o.a = xs[0]
    o.b = o.a * xs[1]
    del o.a
    o.a = xs[2]
    return o.a * o.b


class Doubled:
    def __set_name__(self, o, n):
        self.n = "_" + n

    def __get__(self, o, t=None):
        return getattr(o, self.n) * 2

    def __set__(self, o, v):
        setattr(o, self.n, v * v)


class WithOne:
    q = Doubled()


def a_descriptor(xs):
    o = WithOne()
    o.q = xs[0]
    a = o.q
    o.q = xs[1] * a
    return o.q * a + xs[2]


class Totals:
    total = 0.0
    items = []  # noqa: RUF012


def attributes_of_a_class(xs):
    Totals.total = xs[0]
    Totals.total *= xs[1]
    Totals.items.append(xs[2])
    r = Totals.total * Totals.items[-1]
    Totals.items.clear()
    Totals.total = 0.0
    return r


def a_context_that_writes(xs):
    class M:
        def __enter__(self):
            xs[0] *= xs[1]
            return xs

        def __exit__(self, *a):
            xs[1] = xs[0] * 2
            return False

    with M() as y:
        y.append(y[0] * y[2])
    return sum(v * v for v in xs)


def unpacking_into_itself(xs):
    a, *b = xs
    b[0], xs[0] = xs[0] * 2, b[1]
    [xs[1], (c,)] = b[0], [a]
    return sum(xs) * c + b[0]


def a_memo_of_its_own(xs):
    memo = {}

    def f(i):
        if i not in memo:
            memo[i] = xs[i] * (f(i - 1) if i else 1.0)
        return memo[i]

    return f(2) + f(1)


def a_method_that_others_call(xs):
    acc = []
    f = functools.partial(acc.append)
    f(xs[0])
    list(map(acc.append, [v * v for v in xs]))
    return sum(a * (i + 1) for i, a in enumerate(acc))


def a_list_handed_on(xs):
    return functools.reduce(lambda a, v: (a.append(a[-1] * v), a)[1], xs, [xs[0]])[-1]


PROGRAMS = (
    every_method_of_dicts, a_dict_written_in_its_loop, one_value_for_all_keys,
    containers_made_on_the_way, copies_of_a_dict, a_property_that_is_deleted, a_descriptor,
    attributes_kept_in_a_dict, attributes_of_a_class, a_data_class_and_its_copy,
    a_variable_of_the_function_around, closures_with_a_state_each, a_list_that_is_turned_round,
    a_stack_of_the_users, a_dict_and_a_list_in_themselves, a_function_that_captured_a_list,
    a_list_given_twice, a_default_value_that_grows, lists_sorted_twice, parts_of_a_list_deleted,
    a_list_extended_by_another_name, a_generator_over_what_it_writes, a_context_that_writes,
    unpacking_into_itself, a_memo_of_its_own, a_method_that_others_call, a_list_handed_on,
    every_function_of_heaps, writes_by_functions_of_operator, an_array_of_constants,
    bytes_that_are_written,
)  # fmt: skip
POINT = [0.7, 1.3, -0.4]
DIRECTION = [1.0, -0.5, 2.0]


@pytest.mark.parametrize("f", PROGRAMS)
def test_writes(f, path):
    check_mutation(f, POINT)


@pytest.mark.parametrize("f", PROGRAMS)
def test_again_and_again_and_in_forward_mode(f):
    ahead, behind = [f(*moved((list(POINT),), DIRECTION, h)) for h in (1e-5, -1e-5)]
    expected = pytest.approx((ahead - behind) / 2e-5, rel=1e-6, abs=1e-8)
    for _ in range(3):
        assert np.dot(gradient(f, list(POINT))[0], DIRECTION) == expected
        assert jvp(f, (list(POINT),), (list(DIRECTION),))[1] == expected
