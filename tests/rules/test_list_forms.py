"""What compiled programs spell out of lists: the same values and gradients as on the general path."""

import bisect
import heapq
import math

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient

XS = [0.3, 1.7, -0.4, 2.2, 0.9, 1.1, -1.3]


def quantile(xs):
    s = sorted([x * x + 0.5 * x for x in xs])
    k = 0.3 * (len(s) - 1)
    i = int(k)
    return s[i] + (k - i) * (s[i + 1] - s[i])


def backwards(xs):
    s = sorted(xs, reverse=True)
    return sum(x * (i + 1) for i, x in enumerate(s))


def by_key(xs):
    c = xs[0] * 2
    s = sorted(xs, key=lambda x: abs(x - c), reverse=True)
    return s[0] * s[1] + s[-1] * c


def by_a_dict(xs):
    d = {str(i): x * x for i, x in enumerate(xs)}
    best = max(d, key=d.get)
    return d[best] * len(best) + sum(d[k] for k in sorted(d, key=d.get)[:2])


def pairs_in_order(xs):
    pairs = []
    for i, x in enumerate(xs):
        pairs.append((i % 3, x * x))
    pairs.sort()
    t = 0.0
    for i, (n, v) in enumerate(pairs):
        t += v * (i + 1) * (n + 1)
    return t


def pairs_of_a_dict(xs):
    d = {}
    for i, x in enumerate(xs):
        d[i] = x * x
    t = 0.0
    for k, v in sorted(d.items(), key=lambda item: -item[1])[:3]:
        t += v * (k + 1)
    return t


def in_place(xs):
    ys = [math.exp(-x) for x in xs]
    ys.sort()
    zs = list(ys)
    zs.sort(key=lambda z: (z - 1.0) ** 2, reverse=True)
    ys.reverse()
    return ys[0] * ys[1] + zs[0] * zs[-1]


def rows_in_order(xs):
    rows = [[x, x * x, 1.0] for x in xs]
    rows.sort(key=lambda row: row[1])
    first = rows[0]
    rows[0], rows[1] = rows[1], rows[0]
    first[0] = first[0] * 3
    return rows[0][0] * rows[0][1] + rows[1][0] * rows[-1][1]


def ties(xs):
    ys = [x * x for x in [*xs[:2], *xs[:2]]]
    s = sorted(ys)
    t = sorted(ys, reverse=True)
    return s[0] + 2 * s[1] + 3 * t[0] + 4 * max(ys, key=lambda y: 1.0) + min(ys, key=lambda y: y)


def chosen(xs):
    far = max(xs, key=lambda x: (x - 1.0) ** 2)
    i = min(range(len(xs)), key=lambda i: abs(xs[i]))
    return far * xs[i] + far


def joined(xs):
    padded = [0.0] + xs + [1.0] + xs[:2]
    t = 0.0
    for i in range(1, len(padded) - 1):
        t += padded[i - 1] * padded[i + 1]
    return t


def extended(xs):
    ys = []
    for i in range(len(xs) - 1):
        ys.extend([xs[i] + xs[i + 1], xs[i] * 2])
    ys += xs
    ys += ys
    zs = ys
    zs += [xs[0]]
    ys.extend(ys)
    return sum(y * i for i, y in enumerate(ys))


def inserted(xs):
    ys = []
    for i, x in enumerate(xs):
        ys.insert(i // 2 - 1, math.exp(x))
        ys.insert(-1, x)
        ys.insert(100, x * x)
    return sum(y * i for i, y in enumerate(ys))


def taken_out(xs):
    ys = [x * x for x in xs]
    a = ys.pop(0)
    b = ys.pop(-2)
    del ys[1]
    del ys[-1]
    ys.insert(1, a * b)
    return a * ys[0] + b * ys.pop(1) + sum(y * i for i, y in enumerate(ys))


def lists_taken_out(xs):
    stack = []
    for i in range(4):
        stack.append([xs[i], 1.0])
        stack.insert(0, xs[:i])
    t = 0.0
    while len(stack) > 2:
        top, low = stack.pop(), stack.pop(1)
        top[0] = top[0] * 2
        for x in low:
            t += x * top[0]
    del stack[0]
    stack.append(xs[2:])
    return t + stack.pop()[1]


def rows_exchanged(xs):
    m = [[x * i for x in xs[:3]] for i in range(1, 4)]
    for c in range(3):
        p = max(range(c, 3), key=lambda r: abs(m[r][c]))
        m[c], m[p] = m[p], m[c]
        m[c][0] = m[c][0] * m[p][1]
    return m[0][0] + 2 * m[1][1] + 3 * m[2][0]


def kept_in_order(xs):
    ys = []
    for x in xs:
        bisect.insort(ys, x * x)
        bisect.insort_left(ys, x)
    return sum(y * i for i, y in enumerate(ys))


def events(xs):
    heap, t = [], 0.0
    for i, x in enumerate(xs):
        heapq.heappush(heap, (x * x, i))
    while heap:
        when, i = heapq.heappop(heap)
        t += when * (len(heap) + i)
        if i < 3:
            heapq.heappush(heap, (when + 0.7, i + 3))
    return t


def least_first(xs):
    heap, t = [], 0.0
    for x in xs:
        heapq.heappush(heap, x * x)
        if len(heap) > 3:
            t += heapq.heappop(heap) * len(heap)
    return t + heap[0]


def asked(xs):
    ys = [x * x for x in xs]
    i = ys.index(min(ys))
    j = bisect.bisect_left(sorted(ys), 0.5)
    return ys[i] * ys[j] if ys[0] in ys and ys.count(ys[1]) == 1 else 0.0


ALL = [
    quantile, backwards, by_key, by_a_dict, pairs_in_order, pairs_of_a_dict, in_place,
    rows_in_order, chosen, joined, extended, inserted, taken_out, lists_taken_out, rows_exchanged,
    kept_in_order, events, least_first, asked,
]  # fmt: skip


def numbers_in(x):
    """All numbers of a gradient."""
    return np.array(x, dtype=float)


@pytest.mark.parametrize("f", [*ALL, ties])
def test_value_and_gradient(f):
    xs = list(XS)
    value, (gradient,) = morula.withgradient(f, xs)
    assert xs == XS
    assert value == f(xs)
    with by_the_general_path():
        general = morula.gradient(f, xs)[0]
    np.testing.assert_allclose(gradient, general, rtol=1e-12, atol=1e-15)
    _, back = morula.pullback(f, xs)
    assert back(1.0) == back(1.0)


@pytest.mark.parametrize("f", ALL)
def test_finite_differences(f):
    check_gradient(f, list(XS))


@pytest.mark.parametrize("f", ALL)
def test_nothing_is_resolved_at_run_time(f):
    code = morula.code_adjoint(f, list(XS))
    assert code.kind.startswith("specialised")
    assert not code.left


@pytest.mark.parametrize("f", [quantile, by_key, in_place, taken_out, least_first])
def test_second_derivatives(f):
    g = morula.grad(lambda x: f([x, *XS[1:]]))
    h = 1e-5
    expected = (g(0.31 + h) - g(0.31 - h)) / (2 * h)
    assert morula.grad(g)(0.31) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64, int])
@pytest.mark.parametrize("f", [backwards, by_key, chosen, taken_out])
def test_numbers_of_every_kind(f, kind):
    xs = [kind(10 * x) for x in XS]
    with by_the_general_path():
        expected = morula.gradient(f, xs)[0]
    found = morula.gradient(f, xs)[0]
    assert [*map(type, found)] == [*map(type, expected)]
    np.testing.assert_allclose(numbers_in(found), numbers_in(expected), rtol=1e-6)


def test_keys_are_computed_once_and_in_order():
    seen = []

    def f(xs, note):
        return sorted(xs, key=lambda x: note(x) or -x)[0]

    assert morula.gradient(lambda xs: f(xs, seen.append), [1.0, 3.0, 2.0])[0] == [0.0, 1.0, 0.0]
    assert seen == [1.0, 3.0, 2.0]


def test_objects_that_say_what_is_less():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def __lt__(self, other):
            return self.a < other.a

    def f(xs):
        pairs = [Pair(x, x * x) for x in xs]
        return sorted(pairs)[0].b + max(xs, key=lambda x: 2.0 * x)

    assert morula.gradient(f, [3.0, -1.0, 2.0])[0] == [1.0, -2.0, 0.0]


def test_nothing_to_sort_or_to_choose_from():
    def f(xs):
        ys = xs[:0]
        ys.sort()
        return sum(sorted(ys)) + sum(sorted(ys, key=abs)) + xs[0]

    assert morula.gradient(f, [2.0])[0] == [1.0]
    with pytest.raises(ValueError, match="empty"):
        morula.gradient(lambda xs: max(xs[:0], key=lambda x: x * x), [1.0])
    with pytest.raises(IndexError):
        morula.gradient(lambda xs: heapq.heappop([x for x in xs if x > 5.0]), [1.0])
    with pytest.raises(IndexError, match="pop from empty list"):
        morula.gradient(lambda xs: xs[:0].pop(0), [1.0])


def test_an_argument_that_is_sorted_holds_the_order_afterwards():
    def f(xs):
        xs.sort()
        xs.insert(0, xs[-1] * 2)
        return xs[0] * xs[1]

    xs = [3.0, 1.0, 2.0]
    assert morula.gradient(f, xs)[0] == [2.0, 6.0, 0.0]
    assert xs == [6.0, 1.0, 2.0, 3.0]


def test_nan_is_where_sorting_leaves_it():
    def f(xs):
        ys = sorted(xs)
        return max(ys, key=lambda y: y) * 1.0

    xs = [1.0, math.nan, 0.5, 2.0]
    value, (gradient,) = morula.withgradient(f, xs)
    assert value == f(xs)
    assert gradient == [0.0, 0.0, 0.0, 1.0]


def test_a_list_of_pairs_that_is_an_argument():
    def f(items, left):
        total = 0.0
        for value, weight in sorted(items, key=lambda t: t[0] / t[1], reverse=True):
            taken = min(weight, left)
            total += value * taken
            left -= taken
        return total

    items = [(1.0, 0.5), (2.0, 0.1), (0.3, 0.9)]
    assert not morula.code_adjoint(f, items, 0.55).left
    gradient = morula.gradient(f, items, 0.55)
    with by_the_general_path():
        assert morula.gradient(f, items, 0.55) == gradient
    assert gradient[0][2] == (0.0, 0.0)
    assert gradient[0][1] == (0.1, 1.0)
    assert gradient[1] == 1.0
    mixed = [(1.0, 0.5), (2, 0.1), (0.3, 0.9)]
    np.testing.assert_allclose(morula.gradient(f, mixed, 0.55)[0], gradient[0])
    assert morula.gradient(f, [], 0.55) == ([], 0.0)
    with pytest.raises(ValueError, match="unpack"):
        morula.gradient(f, [(1.0, 0.5), (2.0, 0.1, 1.0)], 0.55)


def test_whole_numbers_that_are_put_in_order():
    def f(n, x):
        xs = []
        for i in range(3):
            bisect.insort(xs, n * (i % 2))
            bisect.insort_left(xs, n * i, key=lambda y: -y)
        return xs[0] * x + xs[-1]

    with by_the_general_path():
        general = morula.value_and_grad(f, (0, 1))(2, 1.5)
    assert morula.value_and_grad(f, (0, 1))(2, 1.5) == general
    assert general[0] == f(2, 1.5)
    h = 1e-6
    slope = (f(2 + h, 1.5) - f(2 - h, 1.5)) / (2 * h)
    assert general[1][0] == pytest.approx(slope)


OF_OTHERS = {
    "sorted array": lambda x: sorted(x)[1] * sorted(x, reverse=True)[2] * x[0],
    "sorted by a key": lambda x: sorted(x, key=lambda v: -v * v)[0] * x[1],
    "sorted tuple": lambda x: sorted((x[0] * 2, x[1], x[2] ** 2))[1],
    "sorted pairs": lambda x: sorted(zip(x, x[::-1], strict=True))[0][1] * x[2],
    "counted": lambda x: sum(i * v for i, v in sorted(enumerate(x), key=lambda p: p[1])),
    "greatest of an array": lambda x: max(x, key=lambda v: (v - 1) ** 2) * x[0],
    "least of a tuple": lambda x: min((x[0], x[1] * 3, x[2]), key=abs) * x[1],
    "all of them": lambda x: sum(i * v for i, v in enumerate(sorted(x))),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_what_is_no_list(name):
    f, x = OF_OTHERS[name], np.array(XS)
    assert "; 0 calls are" in str(morula.code_adjoint(f, x)).split("\n")[0]
    check_gradient(f, x)
    with by_the_general_path():
        general = morula.grad(f)(x)
    np.testing.assert_allclose(morula.grad(f)(x), general, rtol=1e-12)


def test_what_is_no_list_and_empty():
    assert morula.grad(lambda x: len(sorted(x)) + x.sum())(np.zeros(0)).shape == (0,)
    for empty in (np.zeros(0), np.ones(3)[:0]):
        with pytest.raises(ValueError, match=r"(max|iterable)"):
            morula.grad(lambda x: max(x, key=abs))(empty)
    with pytest.raises(ValueError, match="ambiguous"):
        morula.grad(lambda x: sorted(x)[0].sum())(np.ones((2, 2)))


CHOSEN_WHILE_CHANGED = {
    "generator": lambda numbers, key: max(numbers(), key=key),
    "least": lambda numbers, key: min(numbers(), key=key),
    "expression": lambda numbers, key: max((2.0 * v for v in numbers()), key=key),
    "mapped": lambda numbers, key: min(map(abs, numbers()), key=key),
    "filtered": lambda numbers, key: max(filter(None, numbers()), key=key),
}


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("name", CHOSEN_WHILE_CHANGED)
def test_what_keys_change_is_there_for_the_next_item(name):
    def f(x):
        state = x

        def numbers():
            nonlocal state
            for _ in range(3):
                state = 1.5 * state
                yield state

        def key(v):
            nonlocal state
            state = state + v
            return v

        return CHOSEN_WHILE_CHANGED[name](numbers, key) * state

    check_gradient(f, 1.3)


@pytest.mark.usefixtures("path")
def test_keys_that_change_the_list_that_is_chosen_from():
    def f(x):
        xs = [x, 2.0 * x, 3.0 * x]

        def key(v):
            xs[2] = xs[2] * v
            xs[0] = 0.0
            return -v

        return max(xs, key=key) * xs[2]

    check_gradient(f, 1.3)


@pytest.mark.usefixtures("path")
def test_keys_that_change_the_dict_that_is_chosen_from():
    def f(x):
        d = {"a": x, "b": 2.0 * x, "c": 3.0 * x}

        def key(item):
            d["c"] = d["c"] * item[1]
            return item[1]

        return max(d.items(), key=key)[1] + max(d.values(), key=lambda v: -v)

    check_gradient(f, 1.3)
