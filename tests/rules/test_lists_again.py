"""Second derivatives of programs with lists, dicts and arrays that are written to: by programs."""

import functools
import itertools
import math

import numpy as np
import pytest

from morula import grad, hvp
from morula.mixed_mode.jacobians import general_hvp, product_for
from tests.core.test_orders import reasons
from tests.small_lists import check_lists, sources

X = np.array([0.31, 0.52, 0.73])
V = np.array([1.0, -0.4, 0.6])


def appended(x):
    out = []
    for v in x:
        out.append(v * v)
    return sum(out) ** 2


def sum_with_a_start(x):
    return sum([v * v for v in x], x[0]) ** 2


def an_array_of_items(x):
    return np.sum(np.array([v**3 for v in x]) ** 2)


def neighbours(x):
    return sum([a * b * b for a, b in zip(x, x[1:])])  # noqa: B905, RUF007, a zip is what is tested


def items_set(x):
    xs = [0.0] * 3
    for i in range(3):
        xs[i] = x[i] * x[(i + 1) % 3]
    return xs[0] * xs[1] + xs[2] ** 2


def items_added_to(x):
    s = [0.0] * 3
    for i in range(3):
        for j in range(3):
            s[i] += x[i] * x[j] ** 2
    return s[0] * s[1] + s[2]


def an_item_that_nobody_reads(x):
    xs = [abs(v) ** 0.5 for v in x * np.array([1.0, 0.0, 1.0])]
    return xs[0] * xs[2]


def lists_of_lists(x):
    rows = [[a * b for a in x] for b in x]
    return sum([r[0] * r[1] for r in rows])


def a_product_of_matrices(x):
    a = [[x[i] * x[j] for j in range(3)] for i in range(3)]
    b = [sum(a[i][j] * x[j] for j in range(3)) for i in range(3)]
    return b[0] * b[1] + b[2] ** 2


def floats(x):
    xs = [float(v) for v in x]
    ys = [math.sin(v) * w for v, w in zip(xs, xs[1:])]  # noqa: B905, RUF007
    return sum(ys) * xs[0]


def a_recurrence(x):
    ys = [x[0]]
    for _ in range(4):
        ys.append(math.sin(ys[-1]) * x[1] + x[2])
    return ys[-1] * ys[1]


def a_variance(x):
    ys = [v * v for v in x]
    m = sum(ys) / len(ys)
    return sum([(y - m) ** 2 for y in ys])


def popped(x):
    s, t = [v * v for v in x], 0.0
    while s:
        t = t * x[0] + s.pop()
    return t


def popped_from_within(x):
    s = [v * v for v in x]
    t = s.pop(1) * x[0]
    return t * s.pop(0) + s[0]


def a_stack(x):
    s = [x[0]]
    for v in x:
        a = s.pop()
        s.append(a * v)
        s.append(math.sin(v))
    return sum(s) ** 2


def inserted(x):
    s = [v * v for v in x]
    s.insert(1, x[0] * x[1])
    s.insert(0, x[2] * x[1])
    return s[0] * s[1] * s[2]


def turned_and_shortened(x):
    s = [v * v for v in x]
    s.reverse()
    del s[1]
    return s[0] * s[1] ** 2


def a_slice(x):
    ys = [v * v for v in x]
    return sum(ys[1:]) * ys[0]


def unpacked(x):
    a, b, c = [v * v for v in x]
    return a * b * c


def a_choice(x):
    xs = [v * v for v in x]
    if xs[0] < xs[1]:
        xs.append(xs[0] * xs[1])
    else:
        xs[0] = xs[2]
    return xs[-1] * xs[0]


def nothing_in_it(x):
    s = []
    for v in x:
        if v > 10:
            s.append(v * v)
    return sum(s) + x[0] ** 2


def a_dict(x):
    d = {"a": x[0]}
    d["b"] = d["a"] * x[1]
    d["a"] = d["b"] * x[2]
    return d["a"] * d["b"]


def a_dict_of_arrays(x):
    d = {"w": x * x, "b": x[::-1] * 2}
    d["w"] = d["w"] * d["b"]
    return (d["w"] * d["b"]).sum()


def layers(x):
    weights = [np.outer(x, x) + i for i in range(3)]
    acts = [x]
    for w in weights:
        acts.append(np.tanh(w @ acts[-1]))
    return acts[-1].sum() + acts[1] @ acts[2]


def rows_stacked(x):
    return (np.stack([x * v for v in x]) @ x).sum()


def rows_of_an_array(x):
    r = []
    for i in range(3):
        r.append(x * x[i])
    return (np.array(r) ** 2).sum()


def joined(x):
    r = [x * v for v in x]
    return (np.concatenate(r) ** 3).sum() * np.sum(np.hstack(r) ** 2)


def arrays_set(x):
    s = [np.zeros(3), np.zeros(3)]
    s[0] = x * x
    s[1] = s[0] * x
    return s[1].sum() * s[0][1]


def arrays_that_nobody_reads(x):
    r = [np.sqrt(x * 0.0), x * x, x]
    return (r[1] * x).sum()


def pairs(x):
    return sum([(a * b).sum() for a, b in [[x * v, x] for v in x]])


def written_entries(x):
    y = np.zeros(5)
    for i in range(3):
        y[i] = x[i] ** 3
    return (y**2).sum()


def written_entries_of_a_matrix(x):
    a = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            a[i, j] = x[i] * x[j] ** 2
    return (a @ x).sum()


def written_beside_a_list(x):
    y, xs = np.zeros(3), []
    for i in range(3):
        y[i] = x[i] * x[0]
        xs.append(y[i] * x[1])
    return sum(xs) * y[2]


def written_by_way_of_a_view(x):
    y, xs = np.zeros(3), []
    v = y.T
    y[0] = x[0]
    xs.append(v[0] * x[1])
    y[0] = x[2]
    xs.append(v[0])
    return xs[0] * xs[1]


def written_and_read_in_turn(x):
    y, xs = np.zeros(3), [0.0, 0.0]
    for i in range(2):
        xs[i] = y[0]
        y[0] = x[i] * x[2]
        y[1] = xs[i] * x[0]
    return xs[1] * y[1]


COMPILED = {
    "a comprehension": lambda x: sum([v**3 for v in x]),
    "a generator": lambda x: sum(np.tanh(v) for v in x),
    "the sum by NumPy": lambda x: np.sum([v**3 for v in x]),
    "the mean by NumPy": lambda x: np.mean([v**3 for v in x]) * x[0],
    "the sum by math": lambda x: math.fsum([v * v * v for v in x]),
    "the largest": lambda x: max([v**3 for v in x]) * x[0],
    "the product": lambda x: math.prod([v**2 for v in x]),
    "the order": lambda x: (lambda ys: ys[0] * ys[1] ** 2)(sorted([v * v for v in x])),
    "a list of an array's": lambda x: sum([a * b for a, b in enumerate(x.tolist())]) ** 2,
    "map": lambda x: sum(map(lambda v: v**3, x)),
    "reduce": lambda x: functools.reduce(lambda a, b: a * b + b, x),
} | {
    f.__name__.replace("_", " "): f
    for f in (
        appended, sum_with_a_start, an_array_of_items, neighbours, items_set, items_added_to,
        an_item_that_nobody_reads, lists_of_lists, a_product_of_matrices, floats, a_recurrence,
        a_variance, popped, popped_from_within, a_stack, inserted, turned_and_shortened, a_slice,
        unpacked, a_choice, nothing_in_it, a_dict, a_dict_of_arrays, layers, rows_stacked,
        rows_of_an_array, joined, arrays_set, arrays_that_nobody_reads, pairs, written_entries,
        written_entries_of_a_matrix, written_beside_a_list, written_by_way_of_a_view,
        written_and_read_in_turn,
    )
}  # fmt: skip


def check(f):
    found, h = hvp(f, X, V), 1e-5
    slope = (grad(f)(X + h * V) - grad(f)(X - h * V)) / (2 * h)
    np.testing.assert_allclose(found, general_hvp(f, X, V), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("f", COMPILED.values(), ids=COMPILED)
def test_products_have_programs(f):
    check(f)
    assert not reasons(product_for(f, X))


def arrays_of_several_shapes(x):
    s = [x, x[:2] * x[0], np.outer(x, x)]
    s.append(s[0] * x[1])
    return s[1].sum() * s[2].sum() + s[3] @ x


def numbers_and_arrays(x):
    s = [x * x, x[0]]
    return (s[0] * s[1]).sum()


def slices_of_lists_of_arrays(x):
    s = [x * v for v in x]
    return sum([a @ x for a in s[1:]])


def arrays_popped(x):
    s, t = [x * v for v in x], 0.0
    while s:
        t = t * x[0] + s.pop().sum()
    return t


def an_array_in_a_list_written_to(x):
    ys = [np.zeros(3)]
    ys[0][1] = x[0] * x[1]
    return ys[0].sum() * x[2]


@pytest.mark.parametrize(
    "f",
    [
        arrays_of_several_shapes,
        numbers_and_arrays,
        slices_of_lists_of_arrays,
        arrays_popped,
        an_array_in_a_list_written_to,
    ],
)
def test_others_take_the_general_path(f):
    check(f)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed):
    for source in itertools.islice(sources(seed), 4):
        check_lists(source)


OF_OTHER_KINDS = {
    "numbers": lambda x: sum([v * v for v in x]) ** 2,
    "rows": lambda x: (np.stack([x * v for v in x]) ** 3).sum(),
    "the second axis": lambda x: (np.stack([x * v for v in x], axis=1) @ x).sum(),
    "the first axis, by keyword": lambda x: (np.stack([x * v for v in x], axis=0) @ x).sum(),
    "joined along an axis": lambda x: (np.concatenate([x * v for v in x], axis=0) ** 3).sum(),
    "a start by keyword": lambda x: sum([v * v for v in x], start=x[0]) ** 2,
    "complex numbers": lambda x: sum([abs(v * (1 + 2j)) ** 2 for v in x]) ** 2,
    "an empty part": lambda x: sum([v * v for v in x[:0]], x[0] ** 3) + np.sum(x[:0]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", OF_OTHER_KINDS.values(), ids=OF_OTHER_KINDS)
def test_kinds_axes_and_keywords(f, dtype):
    x, v = X.astype(dtype), V.astype(dtype)
    found, exact = hvp(f, x, v), general_hvp(f, X, V)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, rtol=1e-9 if dtype is np.float64 else 1e-4)
