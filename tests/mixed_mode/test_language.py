"""Forward mode through the language: the derivatives of reverse mode, for all programs of its tests."""

import bisect
import collections
import copy
import functools
import heapq
import itertools
import math
import pickle
import statistics
import typing
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest

from morula import (
    DifferentiationError,
    NoRuleError,
    checkpoint,
    grad,
    gradient,
    hook,
    hvp,
    ignore_derivatives,
    jacobian,
    jvp,
    nestlevel,
)
from morula.testing import check_gradient
from tests import test_exceptions, test_generators, test_language
from tests.rules import (
    test_classes,
    test_containers,
    test_iteration,
    test_objects,
    test_special_methods,
)
from tests.rules.test_unknown import cubic_root

MODULES = [
    test_language,
    test_containers,
    test_objects,
    test_iteration,
    test_classes,
    test_generators,
    test_exceptions,
    test_special_methods,
]
PROGRAMS = [
    pytest.param(f, id=f"{module.__name__.split('_')[-1]}-{f.__name__}")
    for module in MODULES
    for f in module.PROGRAMS
]


def names(f):
    return f.__code__.co_varnames[: f.__code__.co_argcount]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_derivative_is_the_one_of_reverse_mode(program):
    point = (0.7, 1.3)[: len(names(program))]
    direction = (0.3, -1.1)[: len(point)]
    slopes = gradient(program, *point)
    y, ẏ = jvp(program, point, direction)
    assert y == program(*point)
    assert ẏ == pytest.approx(sum(map(float.__mul__, slopes, direction)), rel=1e-10)


def slope(f, *point):
    """The derivative along the first argument."""
    return jvp(f, point, (1.0, *[None] * (len(point) - 1)))[1]


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y


def lists(x):
    xs = [x, 2 * x, 3 * x]
    xs.insert(1, x * x)
    xs.reverse()
    xs[1:2] = [x, xs[0] * x]
    del xs[0]
    xs.sort(key=lambda v: -v)
    xs *= 2
    return sum(xs[1::2]) * xs.pop() + xs.copy()[-1]


def dicts(x):
    d = {"a": x, **{"b": x * x}}
    d.update([("c", x)], e=3 * x)
    d.setdefault("f", x * d.pop("a"))
    return sum(d.values()) * d["f"] + next(iter({x * x: 1}))


def overwritten_items(x):
    d = {"a": x, "b": x * x}
    d |= {"a": d["b"] * 2, "c": x}
    d |= [("b", d["a"] * x)]
    return d["a"] * d["b"] * d["c"]


def copies_of_what_holds_itself(x):
    d, xs = {"v": x}, [x]
    d["self"] = d
    xs.append((xs, d))
    e, ys = copy.deepcopy(d), copy.deepcopy(xs)
    e["v"] *= x
    ys[0] *= 3.0
    return d["v"] * e["self"]["v"] * ys[1][0][0] + ys[1][1]["v"] * xs[0]


def sets(x):
    s = {x, x * x}
    s.discard(1.0)
    return sum(s | {x}) * sum(s.union([x])) * sum(frozenset([x, 1.0]))


def repeated_lists(x):
    a = [x, x * x] * 2
    b = a
    b *= 2
    a[1] = 3.0 * x
    c = 2 * [[x]]
    c[0][0] = x**3
    d = [x] * np.int64(2) + np.int32(1) * [x, 1.0]
    d *= np.int64(2)
    return sum(a) * c[1][0] + sum((x, 1.0) * np.int64(3)) * len([x] * 0 + 2 * [x]) + sum(d) * d[5]


def cleared(x):
    d = {"a": x, "b": 2.0}
    y = d["a"]
    d.clear()
    d["b"] = y * x
    return sum(d.values()) * len(d)


def aliases(x):
    a = b = [x]
    a.append(b[0] * x)
    return b[1] * (a is b)


def cached(x):
    f = functools.lru_cache(lambda y: y * y)
    return f(x) * f(x)


@pytest.mark.parametrize(
    "f",
    [lists, dicts, overwritten_items, copies_of_what_holds_itself, sets, aliases, cached]
    + [repeated_lists, cleared],
)
def test_mutable_values(f):
    check_gradient(f, 1.7)
    assert slope(f, 1.7) == pytest.approx(gradient(f, 1.7)[0], rel=1e-12)
    assert hvp(f, 1.7, 1.0) == pytest.approx(slope(lambda x: slope(f, x), 1.7), rel=1e-12)


def test_tangents_mirror_arguments_and_results():
    def f(p, xs, d):
        return {"a": p.x * xs[0], "b": (p.y, d["k"])}, [xs[1] * d["k"][1]]

    args = (Point(2.0, 3.0), [4.0, 5.0], {"k": (6.0, 7.0)})
    tangents = ({"x": 1.0}, [10.0, 0.0], {"k": (None, 100.0)})
    y, ẏ = jvp(f, args, tangents)
    assert y == ({"a": 8.0, "b": (3.0, (6.0, 7.0))}, [35.0])
    assert ẏ == ({"a": 24.0, "b": (0.0, (0.0, 100.0))}, [500.0])


def test_the_tangent_of_an_object_that_is_returned():
    _, ẏ = jvp(lambda x: Point(x * x, [x]), (3.0,), (1.0,))
    assert ẏ.x == 6.0
    assert ẏ.y == [1.0]


def test_effects_happen_once_and_the_value_is_that_of_the_plain_call():
    seen = []

    def f(x):
        seen.append(float(x))
        return math.fsum([x, 0.1, 0.2]) + sum([0.1] * 3, x)

    y, _ = jvp(f, (0.7,), (1.0,))
    assert seen == [0.7]
    assert y == f(0.7)


def test_a_list_of_the_caller_is_changed_as_by_the_plain_call():
    xs = [1.0, 2.0]

    def f(xs):
        xs.append(xs[0] * xs[1])
        return xs[2]

    assert jvp(f, (xs,), ([1.0, 10.0],)) == (2.0, 12.0)
    assert xs == [1.0, 2.0, 2.0]


def test_nothing_is_kept_of_values_that_are_gone():
    from morula.mixed_mode.push import push
    from morula.mixed_mode.tangents import ZERO, Pass

    def f(x, n):
        for _ in range(n):
            xs = [x * 0.5]
            xs.append(xs[0] + 0.5)
            x = xs[1]
        return x

    run = Pass()
    push(run, f, ZERO, (1.0, 5000), (1.0, ZERO))
    assert len(run.table) < 1000


def test_steering():
    assert slope(lambda x: x * ignore_derivatives(x), 3.0) == 3.0
    assert slope(lambda x: hook(lambda x̄: 10 * x̄, x) * x, 3.0) == 6.0
    assert slope(lambda x: checkpoint(lambda y: y * y * x, x), 3.0) == 27.0
    assert slope(lambda x: x * nestlevel(), 3.0) == 1.0
    assert slope(lambda x: slope(lambda y: y * nestlevel(), x) * x, 3.0) == 2.0


def test_an_unknown_callable_is_refused_only_where_its_result_is_used():
    unknown = functools.partial(cubic_root)

    def printed(x):
        str(f"{unknown(x)}")
        return x * x

    assert slope(printed, 3.0) == 6.0
    with pytest.raises(NoRuleError, match="cbrt"):
        slope(lambda x: unknown(x) * x, 3.0)


def test_exceptions_are_the_users():
    def f(x):
        return [x][3]

    with pytest.raises(IndexError, match="list index out of range"):
        jvp(f, (1.0,), (1.0,))
    with pytest.raises(TypeError, match=r"f\(\) missing 1 required positional argument: 'y'"):
        jvp(lambda x: (lambda: (lambda f: f(x))(_needs_two))(), (1.0,), (1.0,))


def _needs_two(x, y):
    return x


_needs_two.__name__ = _needs_two.__qualname__ = "f"


DERIVATIVES = {
    "f": lambda g: lambda x: slope(g, x),
    "r": lambda g: lambda x: gradient(g, x)[0],
}


@pytest.mark.parametrize("order", [*itertools.product("fr", repeat=2)])
def test_map_and_filter_at_second_order(order):
    def f(x):
        squares = map(lambda v: v * x, (x, x * x))
        return sum([a * b for a, b in zip(squares, filter(None, [x, 1.0]), strict=True)])

    outer, inner = [DERIVATIVES[k] for k in order]
    assert outer(inner(f))(2.0) == 24.0


@pytest.mark.parametrize("order", [*itertools.product("fr", repeat=2)])
def test_generators_at_second_order(order):
    outer, inner = [DERIVATIVES[k] for k in order]
    assert outer(inner(lambda x: sum(v * x for v in [x, x]) * x))(2.0) == 24.0


def test_writes_into_arrays():
    def f(x):
        y = np.zeros(3)
        y[0] = x
        return y.sum()

    assert slope(f, 2.0) == 1.0
    into = slope(lambda x: np.exp(x * np.ones(2), out=np.zeros(2)).sum(), 2.0)
    assert into == pytest.approx(2 * math.exp(2.0))

    def of_constants(x):
        y = np.zeros(3)
        y[1] = 2.0
        return (y * x).sum()

    assert slope(of_constants, 2.0) == 2.0


def test_items_of_arrays():
    def f(x):
        a, b = np.array([x, x * x])
        return a * b + sum([v * x for v in np.array([x, 1.0])])

    assert slope(f, 2.0) == 17.0


def test_copies_are_independent():
    def f(x):
        xs = [x, [x]]
        ys, zs = copy.copy(xs), copy.deepcopy(xs)
        ys[1][0] = x * x
        zs[0] = x**3
        return xs[1][0] + zs[0] * zs[1][0]

    assert slope(f, 2.0) == pytest.approx(4.0 + 32.0)


def popped_from_a_heap(x):
    heap = [x * 3, x, x * 2]
    heapq.heapify(heap)
    first = heapq.heappop(heap)
    heapq.heappush(heap, x * 0.5)
    return first * heap[0] + heapq.heappop(heap) * 7 + heapq.heappushpop(heap, x * 9)


def test_items_that_a_heap_moves():
    value, tangent = jvp(popped_from_a_heap, (1.3,), (1.0,))
    assert value == popped_from_a_heap(1.3)
    assert tangent == pytest.approx(grad(popped_from_a_heap)(1.3))


def test_an_item_that_a_heap_gives_back_at_once():
    def f(x, y):
        heap = [x * x, 3.0 * x]
        heapq.heapify(heap)
        first = heapq.heappushpop(heap, y)
        return first * heapq.heappushpop(heap, 2.0) * heap[0]

    for point in ((1.3, 0.2), (0.4, 5.0)):
        check_gradient(f, *point)
        slopes = gradient(f, *point)
        assert jvp(f, point, (1.0, 2.0))[1] == pytest.approx(slopes[0] + 2.0 * slopes[1])


def counted(x):
    counts = collections.defaultdict(float)
    for key in "abca":
        counts[key] += x
    return counts["a"] * counts["b"]


def test_what_a_default_dict_makes_in_second_derivatives():
    assert hvp(counted, 1.3, 1.0) == pytest.approx(4.0)
    assert grad(grad(counted))(1.3) == pytest.approx(4.0)


def test_a_derivative_that_would_be_lost_in_a_pickle_is_refused():
    def f(x):
        return pickle.loads(pickle.dumps([x, 2.0]))[0] * x

    with pytest.raises(NoRuleError, match="dumps"):
        jvp(f, (0.7,), (1.0,))
    assert jvp(lambda x: x * pickle.loads(pickle.dumps(2.0)), (0.7,), (1.0,)) == (1.4, 2.0)


class Falsy:
    def __init__(self, x):
        self.x = x

    def __bool__(self):
        raise AssertionError("nobody asked")


def in_the_fields_of_a_falsy_object(x):
    v = Falsy(x * x)
    v.__dict__["x"] = v.__dict__["x"] * x
    return vars(v)["x"]


def values_of_a_dict(x):
    d = {"a": x, "b": x * x}
    return sum(d.values()) * next(reversed(d.values()))


def by_the_method_of_an_iterator(x):
    step = iter([x, x * x]).__next__
    other = iter({"a": x**3}.values()).__next__
    return step() * step() * other()


@pytest.mark.parametrize(
    "f", [in_the_fields_of_a_falsy_object, values_of_a_dict, by_the_method_of_an_iterator]
)
def test_what_values_hold_in_all_orders(f):
    x, h = 1.3, 1e-4
    slope = (f(x + h) - f(x - h)) / (2 * h)
    bend = (f(x + h) - 2 * f(x) + f(x - h)) / h**2
    assert jvp(f, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-6)
    assert grad(f)(x) == pytest.approx(slope, rel=1e-6)
    assert grad(grad(f))(x) == pytest.approx(bend, rel=1e-5)
    assert jvp(grad(f), (x,), (1.0,))[1] == pytest.approx(bend, rel=1e-5)
    assert grad(lambda x: jvp(f, (x,), (1.0,))[1])(x) == pytest.approx(bend, rel=1e-5)


def drawn(*, from_source):
    return from_source.__next__()


def merged(*xs):
    return list(heapq.merge(sorted(xs[:2]), sorted(xs[2:])))


@pytest.mark.parametrize(
    "program",
    [
        lambda s: [s, 1.0].__iter__().__next__(),
        lambda s: iter((s, 1.0)).__next__(),
        lambda s: zip([s], [s], strict=True).__next__()[0],
        lambda s: map(lambda v: 2 * v, [s]).__next__(),
        lambda s: enumerate([s]).__next__()[1],
        lambda s: itertools.chain([s]).__next__(),
        lambda s: reversed([1.0, s]).__next__(),
        lambda s: {"a": s}.values().__iter__().__next__(),
        lambda s: np.array([s]).__iter__().__next__(),
        lambda s: (s * i for i in (3.0,)).__next__(),
        lambda s: (s * i for i in (3.0,)).__iter__().__next__(),
        lambda s: drawn(from_source=iter([s * s])),
    ],
)
def test_methods_of_iteration_are_the_functions_of_that_name(program):
    h = 1e-6
    slope = (program(0.7 + h) - program(0.7 - h)) / (2 * h)
    assert jvp(program, (0.7,), (1.0,))[1] == pytest.approx(slope)
    assert gradient(program, 0.7)[0] == pytest.approx(slope)


def test_a_merge_of_sorted_lists():
    tangents = jvp(merged, (0.1, 0.8, 0.5, 0.9), (1.0, 2.0, 3.0, 4.0))[1]
    assert tangents == [1.0, 3.0, 2.0, 4.0]


class Empty:
    """An object that counts as false."""

    def __init__(self, x):
        self.__dict__["x"] = x

    def __len__(self):
        return 0


def test_the_dict_of_an_object_that_counts_as_false():
    assert jvp(lambda x: Empty(x).x * 3.0, (0.7,), (1.0,))[1] == 3.0
    assert jvp(lambda x: np.poly1d(x)(2.0), (np.ones(3),), (np.ones(3),))[1] == 7.0


def test_slices_carry_tangents():
    assert jvp(lambda s: slice(0.0, s).stop * 2.0, (0.7,), (1.0,))[1] == 2.0
    assert np.array_equal(jvp(lambda s: np.mgrid[0:s:3j], (0.7,), (1.0,))[1], [0.0, 0.5, 1.0])
    x = np.arange(5.0)
    assert jvp(lambda n: x[:n].sum() * n, (3,), (1.0,))[1] == 3.0
    assert jvp(lambda n: [1.0, 2.0, 3.0][:n][-1] * n, (2,), (1.0,))[1] == 2.0


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sum(a=[x[0], x[1]]),
        lambda x: np.array(object=x, copy=True),
        lambda x: np.broadcast_to(array=x, shape=(2, 3)),
        lambda x: np.broadcast_to(x, (2, 3), subok=True),
        lambda x: np.vectorize(np.dot, signature="(n),(n)->()")(np.outer(x, x), x),
        lambda x: np.percentile(a=x, q=30),
        lambda x: np.clip(a=x[1], a_min=0.0, a_max=9.0),
        lambda x: np.convolve(a=x, v=x, mode="same"),
        lambda x: np.add(x, x, dtype=np.float64),
        lambda x: np.vecdot(x, x, axis=0),
        lambda x: np.add(x, x * x, out=...),
        lambda x: np.average(x, weights=x * x),
        lambda x: x.sum(None, None, None, True),
        lambda x: np.choose([0, 1, 4], (x, x * x), mode="wrap"),
        lambda x: np.c_[x, x * x],
        lambda x: np.pad(x, 2, "linear_ramp"),
        lambda x: np.pad(x, 2, "mean"),
        lambda x: np.matrix(np.outer(x, x)).A,
    ],
)
def test_calls_of_numpy_in_every_spelling(call):
    x, v, h = np.array([0.3, 1.1, 0.8]), np.array([1.0, -2.0, 0.5]), 1e-6
    y, ẏ = jvp(call, (x,), (v,))
    assert np.array_equal(y, call(x))
    assert ẏ == pytest.approx((call(x + h * v) - call(x - h * v)) / (2 * h))


STREAMS = {
    "values": lambda p: p.values(),
    "generator": lambda p: (p[k] for k in p),
    "map": lambda p: map(lambda k: p[k] * 1.0, p),
    "iterator": lambda p: iter([*p.values()]),
    "reversed": lambda p: reversed(p.values()),
    "chain": lambda p: itertools.chain(p.values(), [2.0]),
}
READERS = {
    "deque": lambda xs: deque(xs)[1],
    "deque.extend": lambda xs: extended(deque(), xs)[1],
    "deque.extendleft": lambda xs: extended_left(deque(), xs)[1],
    "set": lambda xs: sum(set(xs)),
    "frozenset": lambda xs: sum(frozenset(xs)),
    "set.union": lambda xs: sum({1.5}.union(xs)),
    "fmean": statistics.fmean,
    "pstdev": statistics.pstdev,
    "harmonic_mean": statistics.harmonic_mean,
}


def extended(d, xs):
    d.extend(xs)
    return d


def extended_left(d, xs):
    d.extendleft(xs)
    return d


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("stream", STREAMS)
def test_what_iterators_hand_out_keeps_its_tangent_where_it_is_read_whole(stream, reader):
    p, v, h = {"a": 0.3, "b": 0.5, "c": 0.25}, {"a": 1.0, "b": -0.5, "c": 0.25}, 1e-6

    def f(p):
        return READERS[reader](STREAMS[stream](p)) ** 2

    def moved(t):
        return {key: x + t * v[key] for key, x in p.items()}

    def slope(t):
        return sum(x̄ * v[key] for key, x̄ in gradient(f, moved(t))[0].items())

    assert jvp(f, (p,), (v,))[1] == pytest.approx((f(moved(h)) - f(moved(-h))) / (2 * h), abs=1e-8)
    found = sum(ḡ * v[key] for key, ḡ in hvp(f, p, v).items())
    assert found == pytest.approx((slope(h) - slope(-h)) / (2 * h), abs=1e-8)


@functools.total_ordering
class Event:
    def __init__(self, time):
        self.time = time

    def __lt__(self, other):
        return self.time < other.time

    def __eq__(self, other):
        return self.time == other.time


def test_heaps_and_sorted_lists_of_objects_keep_their_tangents():
    def f(xs):
        heap = []
        for x in xs:
            heapq.heappush(heap, Event(x * x))
        ordered = []
        for event in heap:
            bisect.insort(ordered, event)
        first = heapq.heapreplace(heap, Event(9.0 * xs[0]))
        return first.time + ordered[1].time ** 2 + heap[0].time * ordered[2].time

    xs, v, h = [0.7, 0.3, 0.5], [1.0, 0.5, -0.25], 1e-6

    def along(t):
        return [x + t * w for x, w in zip(xs, v, strict=True)]

    assert jvp(f, (xs,), (v,))[1] == pytest.approx((f(along(h)) - f(along(-h))) / (2 * h))
    slopes = [
        (a - b) / (2 * h)
        for a, b in zip(gradient(f, along(h))[0], gradient(f, along(-h))[0], strict=True)
    ]
    assert hvp(f, xs, v) == pytest.approx(slopes)


def test_annotations_are_looked_at_in_forward_mode():
    def f(x):
        class Shape:
            @functools.singledispatchmethod
            def area(self, a):
                return a

            @area.register
            def _(self, a: float):
                return a**2

        def g(a: float | None, b: typing.Optional[int] = None) -> float: ...

        return Shape().area(x) * len(typing.get_type_hints(g))

    assert jvp(f, (3.0,), (1.0,)) == (27.0, 18.0)
    assert hvp(f, 3.0, 1.0) == 6.0


def items_that_are_deleted(x):
    d = {"a": x * x, "b": x}
    del d["a"]
    d["a"] = x * 3.0
    e = OrderedDict(a=x, b=x * x)
    del e["b"]
    e["b"] = 2.0
    g = defaultdict(float)
    g[1] += x
    del g[1]
    g[1] += x * x
    k = {x: 1.0}
    del k[x]
    k[x] = 2.0
    try:
        del d["c"]
    except KeyError:
        d["c"] = x
    return d["a"] * e["b"] * g[1] * d["c"] + sum(k)


def test_items_that_are_deleted_leave_no_tangent():
    x, h = 1.3, 1e-6
    expected = (items_that_are_deleted(x + h) - items_that_are_deleted(x - h)) / (2 * h)
    value, slope = jvp(items_that_are_deleted, (x,), (1.0,))
    assert value == items_that_are_deleted(x)
    assert slope == pytest.approx(expected, rel=1e-6)
    assert gradient(items_that_are_deleted, x)[0] == pytest.approx(expected, rel=1e-6)


class Squared(float):
    def __new__(cls, v):
        self = float.__new__(cls, v)
        self.__dict__["square"] = v * v
        return self


def test_what_is_written_to_the_dict_of_a_number():
    assert jvp(lambda x: Squared(x).square * x, (1.5,), (1.0,))[1] == pytest.approx(3 * 1.5**2)


class Params(list):
    pass


class Queue(deque):
    pass


class Elements(set):
    pass


MADE_OF_ITERATORS = {
    "list": lambda x: Params(q * x for q in (x, 2.0))[0],
    "queue": lambda x: Queue(map(lambda q: q * x, (x, 2.0)))[0],
    "reversed": lambda x: Params(reversed([x, x * x]))[0],
}


@pytest.mark.parametrize("name", MADE_OF_ITERATORS)
def test_containers_of_a_class_are_made_of_what_iterators_give(name):
    f = MADE_OF_ITERATORS[name]
    assert jvp(f, (0.7,), (1.0,)) == pytest.approx((f(0.7), 1.4))
    assert jacobian(f, 0.7, mode="forward") == pytest.approx((1.4,))


@pytest.mark.parametrize("cls", [Elements, type("Frozen", (frozenset,), {})])
def test_sets_of_a_class_are_refused(cls):
    with pytest.raises(DifferentiationError):
        jvp(lambda x: sum(cls(q * x for q in (x, 2.0))), (0.7,), (1.0,))
