"""Odd but plausible programs that write to memory: value, gradient, final state, pullbacks.

On both paths, by `check_mutation`, and in forward mode.
"""

import bisect
import copy
import dataclasses
import heapq
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque

import numpy as np
import pytest

import morula
from tests.mutation import check_mutation, direction, leaves, moved, with_leaves

X = np.array([0.3, -0.7, 1.2, 0.9])


class Point:
    __slots__ = ("_y", "arr", "x")

    def __init__(self, x):
        self.x = x
        self._y = x * 2
        self.arr = np.array([x, x * x])

    @property
    def y(self):
        return self._y * self.x

    @y.setter
    def y(self, v):
        self._y = v * v
        self.arr[0] += v


class Node:
    def __init__(self, v, n=None):
        self.v = v
        self.next = n


class Doubling:
    cls = 1.0

    def __setattr__(self, k, v):
        object.__setattr__(self, k, v if k == "raw" else v * 2)

    def __iadd__(self, o):
        self.acc = o
        return self

    def __setitem__(self, k, v):
        self.__dict__[k] = v * 3

    def __getitem__(self, k):
        return getattr(self, k)

    def __delitem__(self, k):
        delattr(self, k)


def every_method_of_lists(xs):
    xs[1:2] = [xs[0] * 2, xs[2]]
    xs.append(xs[0] * xs[1])
    xs.extend((x * x for x in xs[:2]))
    xs.insert(-1, xs[2] ** 2)
    xs.reverse()
    p = xs.pop(1)
    xs.remove(xs[0])
    xs.sort(key=lambda v: -v * v)
    xs += [p]
    xs *= 2
    del xs[::3]
    xs[::2] = [v * 3 for v in xs[::2]]
    return sum((v * v * i for i, v in enumerate(xs)))


def a_list_that_is_cleared(xs):
    m = xs
    k = xs[:]
    xs.clear()
    m.append(k[0] * k[1])
    xs.extend(k)
    xs[-1] *= 2
    del m[0]
    return sum((v * v for v in xs))


def a_list_in_itself(xs):
    s = [xs[0]]
    s.append(s)
    s[1][0] *= xs[1]
    s[1][1].append(xs[2])
    return s[0] * s[2]


def lists_in_a_list(xs):
    xs[0], xs[1] = (xs[1], xs[0])
    xs[0][1] *= xs[1][0]
    xs.append(xs[0])
    xs[2][0] = xs[1][1] ** 2
    for_ = [r for r in xs]
    for_[0][0] *= 3
    return sum((a * b for a, b in xs))


def a_list_that_grows_in_its_loop(xs):
    for i, v in enumerate(xs):
        if i < 3:
            xs.append(v * xs[0])
    it = iter(xs)
    next(it)
    xs[1] = 5.0 * xs[0]
    s = next(it)
    return s * sum(xs)


def repeated_lists(xs):
    a = [xs[0]] * 3
    a[0] *= 2
    b = [[xs[1]]] * 2
    b[0][0] *= xs[2]
    b *= 2
    return sum(a) * b[3][0]


def slices_of_lists(xs):
    xs[:0] = [xs[2]]
    xs[len(xs) :] = (xs[0] * xs[1],)
    xs[1:1] = map(lambda v: v * 2, xs[:2])
    xs[-2:] = []
    xs[::-1] = list(xs)
    return sum(((i + 1) * v * v for i, v in enumerate(xs)))


def heaps(xs):
    h = []
    [heapq.heappush(h, v * v) for v in xs]
    a = heapq.heappop(h)
    b = heapq.heappushpop(h, xs[0] * 2)
    c = heapq.heapreplace(h, xs[1])
    heapq.heapify(xs)
    d = xs[0]
    e = sum(heapq.nlargest(2, xs)) + sum(heapq.nsmallest(1, xs))
    f = list(heapq.merge([xs[0]], [xs[2] * xs[1]]))
    return a * b + c * d + e * f[0]


def a_heap_of_tuples(xs):
    h = [(v, i) for i, v in enumerate(xs)]
    heapq.heapify(h)
    s = 0.0
    while h:
        v, i = heapq.heappop(h)
        s += v * v * (i + 1)
        if i and v > 0.2 and (v < 3):
            heapq.heappush(h, (v * 2.5, 0))
    return s


def insorted(xs):
    s = sorted(xs)
    bisect.insort(s, xs[0] * xs[1])
    return sum((i * v * v for i, v in enumerate(s)))


def views_of_a_dict(d):
    vs = d.values()
    ks = d.keys()
    its = d.items()
    d["a"] *= d["b"]
    d["n"] = d["a"] ** 2
    s = 0
    for k, v in its:
        s += v * v * (1 + (k in ks))
    for k in list(d):
        d[k] = d[k] * 2
    for k in reversed(d):
        s += d[k]
    return s * sum(vs)


def default_dicts(d):
    q = defaultdict(float)
    q["s"] += d["a"]
    q["s"] *= d["b"]
    w = defaultdict(list)
    w["k"].append(d["a"] * 2)
    w["k"].append(q["s"])
    q["t"]
    e = defaultdict(lambda: d["a"])
    e["x"] *= d["b"]
    return sum(w["k"]) * e["x"] + e["y"] + len(q)


def counters(d):
    c = Counter()
    c["x"] += d["a"]
    c.update({"x": d["b"], "y": d["a"] * d["b"]})
    c.subtract({"y": d["a"]})
    e = c + Counter(x=d["a"] * 5, y=3.0)
    m = c.most_common(1)[0][1]
    c += Counter(z=2.0)
    return c["x"] * m + sum(e.values()) + c["missing"]


def an_ordered_dict(d):
    o = OrderedDict(d)
    o.move_to_end("a")
    _, v = o.popitem(last=False)
    o["c"] = v * o["a"]
    o.move_to_end("c", last=False)
    o["a"] *= 2
    a, b = o.values()
    return a * b * b


def chained_maps(d):
    c = ChainMap({"a": d["b"] * 2}, d)
    c["b"] = c["a"] * d["b"]
    n = c.new_child({"q": c["b"]})
    n["a"] = n["q"] * d["a"]
    n.pop("q")
    d["a"] *= 3
    return c["a"] * c["b"] * n["a"] + n.parents["a"] + c.maps[1]["a"]


def a_dict_in_itself(d):
    d["me"] = d
    d["me"]["me"]["a"] *= d["b"]
    d["l"] = [d]
    d["l"][0]["b"] = d["a"] ** 2
    del d["me"]
    d.pop("l")
    return d["a"] * d["b"]


def lists_and_arrays_in_a_dict(d):
    d["a"].append(d["b"][0])
    d["b"] *= d["a"][1]
    d["c"] = d["b"]
    d["c"][0] = d["a"][0]
    d["a"][0] = d["b"][1] ** 2
    return sum(d["a"]) * d.pop("c").sum()


def user_lists_and_dicts(xs):
    u = UserList(xs)
    u.append(u[0] * 2)
    u[1] *= u[0]
    u.sort()
    u += [xs[2]]
    d = UserDict(a=xs[0])
    d["b"] = d["a"] * xs[1]
    d.update(a=d["b"] ** 2)
    return sum((i * v for i, v in enumerate(u))) * d["a"]


def every_method_of_queues(xs):
    d = deque(xs, maxlen=4)
    d.append(d[0] * d[1])
    d.appendleft(d[2] ** 2)
    d.rotate(1)
    d.extend([xs[0]])
    d.extendleft([xs[1] * 2])
    d[1] *= d[0]
    a = d.popleft()
    d.insert(1, a * 2)
    d.reverse()
    d.remove(d[0])
    del d[0]
    d += [xs[2]]
    return sum(((i + 1) * v * v for i, v in enumerate(d)))


def a_queue_in_itself(xs):
    d = deque()
    d.extend((v * v for v in xs))
    e = d.copy()
    d.clear()
    e *= 2
    d.append(e[0])
    d.append(d)
    d[1][0] *= xs[0]
    return sum(e) * d[0]


def sets_of_numbers(xs):
    s = {1, 2}
    s.add(3)
    s.discard(1)
    s |= {7}
    t = {xs[0], xs[1]}
    t.add(xs[2] * 2)
    return sum(t) * len(s)


def slots_and_properties(a, b):
    p = Point(a)
    p.y = b
    p.x *= p.y
    q = p
    q.arr[1] *= p.x
    q.x = getattr(p, "_y") * a
    p.arr += q.x
    del p._y
    return (p.arr**2).sum() * p.x


def attributes_by_all_ways(a, b):
    q = Doubling()
    q.u = a
    q.raw = b
    q += a * b
    q["k"] = b * q.acc
    q.__dict__["m"] = q["k"] * a
    vars(q).update(u=q.m)
    q.__dict__["u"] *= 2
    del q["raw"]
    q.__class__.cls = 1.0
    return q.u * q["acc"] + Doubling.cls


def a_linked_list(xs):
    h = None
    for v in xs:
        h = Node(v, h)
    n = h
    while n.next:
        n.next.v *= n.v
        n = n.next
    n.next = h
    h.next.next.next.v += 1.0
    s = 0.0
    for _ in range(5):
        s += h.v * h.v
        h = h.next
    return s


def stacks_and_boxes(a, b):

    class Stack:
        def __init__(s):
            s.items = []

        def push(s, v):
            s.items.append(v)
            return s

        def pop(s):
            return s.items.pop()

    class Box:
        def __init__(s, v):
            s.set(v)

        def get(s):
            return s.v

        def set(s, v):
            s.v = v

    st = Stack().push(a).push(b * a)
    bx = Box(st.pop())
    bx.set(bx.get() * st.pop())
    st.push(bx)
    st.items[0].set(bx.get() ** 2)
    return st.pop().get()


def closures_over_one_cell(a, b):
    acc = a
    fs = []

    def add(v):
        nonlocal acc
        acc *= v
        return acc

    for k in range(3):
        fs.append(lambda k=k: add(b + k))
    for f in fs:
        f()
    c = [f.__closure__ for f in fs]
    del fs

    def gen():
        nonlocal acc
        for _ in range(2):
            acc += b
            yield acc

    return sum(gen()) * acc


def one_array_in_containers(x):
    xs = [x, x]
    xs[0][0] *= 2
    d = {"k": xs[1]}
    d["k"][1:] *= x[0]
    o = types.SimpleNamespace(a=d["k"][::2])
    o.a += x[1]
    f = lambda: x.__imul__(o.a[0])
    f()
    t = (x,)
    t[0][2] = x[3] ** 2
    return (xs[0] * d["k"]).sum()


def callees_that_write(x, y):

    def scale(v, s):
        v *= s
        return v

    def swap(a, b):
        t = a.copy()
        a[:] = b
        b[:] = t

    z = scale(x[1:], y[0])
    swap(x, y)
    scale(y, 2.0)[0] += z[0]
    return (x * y).sum() + (z**2).sum()


def arrays_in_a_dataclass(x):

    @dataclasses.dataclass
    class S:
        pos: np.ndarray
        vel: np.ndarray
        hist: list = dataclasses.field(default_factory=list)

        def step(self, h):
            self.vel -= h * self.pos
            self.pos += h * self.vel
            self.hist.append(self.pos.copy())

    s = S(x[:2], x[2:])
    for _ in range(4):
        s.step(0.1)
    return sum(((h * h).sum() for h in s.hist))


def names_that_change_places(x):
    y = x
    x = x * 2
    y[0] = x[1]
    y, x = (x, y)
    x += y
    return (x * y).sum()


def chained_views(x):
    a = b = x
    a += 1.0
    b *= a
    c = x[:]
    c -= x[0]
    a[1:][1:] *= c[0] + 2
    return (x * x).sum()


def a_ring_of_rows(x):
    buf = np.zeros((3, 4))
    s = 0.0
    for t in range(7):
        buf[t % 3] = x * (t + 1) + buf[(t - 1) % 3] * 0.5
        s = s + (buf[t % 3] * buf[(t - 2) % 3]).sum()
    return s


def a_buffer_used_again(x):
    tmp = np.empty(4)
    out = 0.0
    for k in range(4):
        tmp[:] = x
        tmp *= k + 1
        np.sin(tmp, out=tmp)
        tmp[k] = 0
        out += tmp @ tmp
    return out


def exceptions_after_writes(x):
    try:
        x[0] *= 2
        x[1] = x[0] * x[2]
        x[9] = 1.0
    except IndexError:
        x[3] *= x[1]
    try:
        x[:2] = [1.0, 2.0, 3.0]
    except ValueError:
        x[0] += x[1]
    return (x * x).sum()


def a_generator_that_writes(x):

    def g():
        for i in range(4):
            x[i] *= 2
            yield x[i]

    s = 0.0
    for v in g():
        s += v * x[0]
    return s


def a_comprehension_that_writes(x):
    [x.__setitem__(i, x[i - 1] * x[i]) for i in range(4)]
    return (x * x).sum()


PROGRAMS = [
    (every_method_of_lists, [0.3, -0.7, 1.2]),
    (a_list_that_is_cleared, [0.3, -0.7, 1.2]),
    (a_list_in_itself, [0.3, -0.7, 1.2]),
    (lists_in_a_list, [[0.3, -0.7], [1.2, 0.5]]),
    (a_list_that_grows_in_its_loop, [0.3, -0.7, 1.2]),
    (repeated_lists, [0.3, -0.7, 1.2]),
    (slices_of_lists, [0.3, -0.7, 1.2]),
    (heaps, [0.3, -0.7, 1.2]),
    (a_heap_of_tuples, [0.3, -0.7, 1.2]),
    (insorted, [0.3, -0.7, 1.2]),
    (views_of_a_dict, {"a": 0.3, "b": -0.7}),
    (default_dicts, {"a": 0.3, "b": -0.7}),
    (counters, {"a": 0.3, "b": -0.7}),
    (an_ordered_dict, {"a": 0.3, "b": -0.7}),
    (chained_maps, {"a": 0.3, "b": -0.7}),
    (a_dict_in_itself, {"a": 0.3, "b": -0.7}),
    (lists_and_arrays_in_a_dict, {"a": [0.3, 0.4], "b": np.array([1.0, 2.0])}),
    (user_lists_and_dicts, [0.3, -0.7, 1.2]),
    (every_method_of_queues, [0.3, -0.7, 1.2]),
    (a_queue_in_itself, [0.3, -0.7, 1.2]),
    (sets_of_numbers, [0.3, -0.7, 1.2]),
    (slots_and_properties, 0.7, 1.3),
    (attributes_by_all_ways, 0.7, 1.3),
    (a_linked_list, [0.3, -0.7, 1.2]),
    (stacks_and_boxes, 0.7, 1.3),
    (closures_over_one_cell, 0.7, 1.3),
    (one_array_in_containers, X),
    (callees_that_write, X, X[::-1].copy()),
    (arrays_in_a_dataclass, X),
    (names_that_change_places, X),
    (chained_views, X),
    (a_ring_of_rows, X),
    (a_buffer_used_again, X),
    (exceptions_after_writes, X),
    (a_generator_that_writes, X),
    (a_comprehension_that_writes, X),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_writes(program, path):
    f, *args = program
    check_mutation(f, *copy.deepcopy(args))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_writes_in_forward_mode(program):
    f, *args = program
    rng = np.random.default_rng(5)
    v = [direction(rng, x) for x in leaves(args)]
    ahead, behind = [f(*moved(copy.deepcopy(args), v, h)) for h in (1e-5, -1e-5)]
    found = morula.jvp(f, tuple(copy.deepcopy(args)), tuple(with_leaves(args, iter(v))))[1]
    np.testing.assert_allclose(found, (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-7)
