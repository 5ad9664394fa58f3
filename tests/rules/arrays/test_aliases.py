"""One memory under several names: views, containers, closures, objects, callees, second derivatives."""

import collections
import copy
import functools
import types

import numpy as np
import pytest

from morula import J, Tangent, grad, gradient, pullback, withgradient
from tests.mutation import check_mutation

X = np.array([0.7, -1.3, 1.9, 0.4])
A = np.array([[0.5, -1.2, 0.8], [1.1, 0.3, -0.6], [0.9, 1.4, -0.2]])

VIEWS = {
    "name": lambda a: a,
    "slice": lambda a: a[1:],
    "row": lambda a: a[1],
    "reversed": lambda a: a[::-1, ::2],
    "view of a view": lambda a: a[1:][:, 1:][0],
    "T": lambda a: a.T,
    "transpose": lambda a: a.transpose(1, 0),
    "swapaxes": lambda a: np.swapaxes(a, 0, 1),
    "moveaxis": lambda a: np.moveaxis(a, 0, 1),
    "reshape": lambda a: a.reshape(-1),
    "reshape that copies": lambda a: a.T.reshape(-1),
    "ravel": lambda a: a.ravel(),
    "flatten": lambda a: a.flatten(),
    "new axis": lambda a: a[:, None],
    "expand_dims": lambda a: np.expand_dims(a, 1),
    "squeeze": lambda a: np.squeeze(a[None]),
    "asarray": lambda a: np.asarray(a),
    "array": lambda a: np.array(a),
    "array without a copy": lambda a: np.array(a, copy=None),
    "astype": lambda a: a.astype(float, copy=False),
    "view": lambda a: a.view(),
    "real": lambda a: a.real,
    "np.real": lambda a: np.real(a),
    "flip": lambda a: np.flip(a, 0),
    "rot90": lambda a: np.rot90(a),
    "atleast_2d": lambda a: np.atleast_2d(a),
    "atleast_3d": lambda a: np.atleast_3d(a),
    "split": lambda a: np.split(a, 3)[1],
    "array_split": lambda a: np.array_split(a, 2, axis=1)[0],
    "broadcast_arrays": lambda a: np.broadcast_arrays(a, a)[0].copy(),
    "ascontiguousarray": lambda a: np.ascontiguousarray(a),
    "asfortranarray": lambda a: np.asfortranarray(a),
    "conj": lambda a: a.conj(),
    "nan_to_num": lambda a: np.nan_to_num(a),
    "list": lambda a: [a, 1][0],
    "unpacked": lambda a: (lambda p, q: q)(*[1, a]),
    "dict": lambda a: {"a": a}["a"],
    "row by iteration": lambda a: list(a)[2],
    "enumerate": lambda a: [r for i, r in enumerate(a) if i > 0][1],
    "zip": lambda a: next(zip(a, a, strict=True))[1],
    "map": lambda a: list(map(lambda r: r[1:], a))[1],
    "max": lambda a: max([a[0], a[1]], key=lambda r: r.sum()),
    "closure": lambda a: (lambda: a)(),
    "partial": lambda a: functools.partial(lambda p, q: p, a)(2),
    "object": lambda a: types.SimpleNamespace(w=a).w,
    "reduce": lambda a: functools.reduce(lambda p, q: p if p.sum() > q.sum() else q, list(a)),
    "copy": lambda a: copy.copy(a),
    "deepcopy": lambda a: copy.deepcopy(a),
    "deepcopy of a list": lambda a: copy.deepcopy([a, a[0]])[0],
    "copy of a list": lambda a: copy.copy([a])[0],
    "conditional": lambda a: a if a.sum() > 0 else a.T,
    "sum": lambda a: sum([a, a]),
    "einsum": lambda a: np.einsum("ij->ji", a),
    "diagonal": lambda a: np.diagonal(a).copy(),
    "as_strided": lambda a: np.lib.stride_tricks.as_strided(a, (2, 2), (24, 8)),
    "sliding window": lambda a: np.lib.stride_tricks.sliding_window_view(a, (1, 3)).copy(),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_names_of_one_memory(view):
    def f(a):
        before = np.sin(a)
        v = view(a)
        w = view(a)
        u = v * 2.0
        v[..., 0] = v[..., -1] * a[0, 0]
        a[1] *= w.sum()
        v += a[0, 1]
        w[0] -= u.sum()
        return (a * before).sum() + (v * w).sum() + (a**2).sum()

    check_mutation(f, A, rtol=1e-5)


class Slotted:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


HOLDERS = {
    "list": (lambda a: [a], lambda x: x[0]),
    "two in a list": (lambda a: [a, a], sum),
    "list of lists": (lambda a: [[a], [a]], lambda x: x[1][0]),
    "list of tuples": (lambda a: [(a, 1.0)], lambda x: x[0][0]),
    "list of rows": (lambda a: [a[:2], a[1:]], lambda x: x[0] + x[1]),
    "dict": (lambda a: {"w": a}, lambda x: x["w"]),
    "deque": (lambda a: collections.deque([a]), lambda x: x[0]),
    "object": (lambda a: types.SimpleNamespace(w=a), lambda x: x.w),
    "slots": (Slotted, lambda x: x.w),
    "object of lists": (lambda a: types.SimpleNamespace(w=[a]), lambda x: x.w[0]),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_deep_copies_of_what_holds_an_array_that_is_written_to(name):
    """What came to an entry written before the copy went to what the entry had been, silently."""
    hold, held = HOLDERS[name]

    def f(a):
        a[1] = a[0] * a[2]
        x = copy.deepcopy(hold(a))
        a[2] = 0.0
        return (np.sin(held(x)) * np.arange(1.0, 4.0)).sum() + a.sum()

    check_mutation(f, A, rtol=1e-5)


@pytest.mark.parametrize("order", ["view first", "array first"])
def test_both_orders(order):
    def f(x):
        y = x.reshape(2, 2)
        if order == "view first":
            y[0] = y[1] * x[0]
            x[1] = x[2] * y[0, 0]
        else:
            x[1] = x[2] * y[0, 0]
            y[0] = y[1] * x[0]
        return (y @ y).sum() * x[0]

    check_mutation(f, X)


def test_overlapping_slices():
    def f(x):
        x[1:] += x[:-1]
        x[:-1] = x[1:] * x[:-1]
        x[2:] = x[:-2]
        x[::-1] *= x
        return (x**2).sum()

    check_mutation(f, X)


def test_a_view_that_overlaps_itself_is_read():
    def f(x):
        w = np.lib.stride_tricks.sliding_window_view(x, 2)
        b = np.broadcast_to(x, (3, 4))
        y = (w * w).sum(1)
        x[1] = x[0] * x[3]
        return (w.sum(1) * y).sum() + (b * np.arange(12.0).reshape(3, 4)).sum() + b[1, 1] ** 2

    check_mutation(f, X)


def test_a_part_of_complex_numbers_is_broadcast():
    def f(z):
        v = z.real
        w = np.broadcast_to(v, (2, *v.shape))
        v[0] = v[1] * 2.0
        return (w * w).sum() + np.sum(np.abs(z) ** 2)

    check_mutation(f, X * (1 + 0.5j))


def test_one_array_is_passed_twice():
    def f(a, b):
        y = a * 2.0
        b[0] = a[1] * 3.0
        return (y * b).sum()

    x = X.copy()
    value, (first, second) = withgradient(f, x, x)
    plain = X.copy()
    assert value == f(plain, plain)
    assert x.tolist() == plain.tolist()

    def once(a):
        return f(a, a)

    assert first + second == pytest.approx(check_mutation(once, X)[0])


def test_arguments_that_share_memory():
    def f(a, b):
        b *= 2.0
        return (a**2).sum() + b[0]

    x = X.copy()
    (whole, part) = gradient(f, x, x[2:])
    expected = [2 * X[0], 2 * X[1], 8 * X[2] + 2, 8 * X[3]]
    total = whole.copy()
    total[2:] += part
    assert total == pytest.approx(np.array(expected))


def test_arrays_in_containers():
    def f(state, rate):
        for key in state:
            state[key][0] *= rate
        state["w"] += state["l"][1] if False else 1.0
        first, *rest = [state["w"], state["v"]]
        rest[0][:] = first * rest[0]
        state["u"] = state["v"]
        state["u"][-1] = rate
        return (state["v"] * state["w"]).sum()

    check_mutation(f, {"w": X.copy(), "v": X[::-1].copy()}, 1.3)


def test_lists_of_views():
    def f(a, xs):
        rows = [a[0], a[1], xs[0][:3]]
        for r in rows:
            r *= rows[0].sum()
        xs.append(a[2])
        xs[-1][1] = xs[0][0]
        return (a * A).sum() + sum([(x * x).sum() for x in xs])

    def with_list(a, x):
        return f(a, [x])

    check_mutation(with_list, A, X)


class Filter:
    def __init__(self, state, gain):
        self.state = state
        self.gain = gain
        self.history = np.zeros((3, len(state)))

    def step(self, i, x):
        self.state[:] = self.state + self.gain * (x - self.state)
        self.state[0] *= x
        self.history[i] = self.state
        self.gain *= 0.9


def test_arrays_in_objects():
    def f(state, gain):
        found = Filter(state, gain)
        for i in range(3):
            found.step(i, float(i) + 0.5)
        return (found.history**2).sum() + found.state.sum()

    check_mutation(f, X, 0.4)


def test_an_object_is_an_argument():
    found = Filter(X.copy(), 0.4)

    def f(o):
        o.step(0, 2.0)
        o.step(1, 0.5)
        return (o.history * o.history).sum()

    def by_fields(state, gain):
        return f(Filter(state, gain))

    (tangent,) = gradient(f, found)
    expected = check_mutation(by_fields, X, 0.4)
    assert type(tangent) is Tangent
    assert tangent.state == pytest.approx(expected[0])
    assert tangent.gain == pytest.approx(expected[1])
    assert tangent.history.shape == (3, 4)
    assert not tangent.history[:2].any()


def test_closures():
    def f(x):
        total = np.zeros(3)
        n = 0

        def add(v):
            nonlocal n, total
            total[n] += v * x[n]
            x[n + 1] *= v
            n += 1
            if n == 2:
                total = total * 2.0

        for v in (2.0, 3.0):
            add(v * x[0])
        return (total * x[:3]).sum()

    check_mutation(f, X)


def test_the_cotangent_of_a_closure():
    w = X.copy()

    def f(v):
        w[1] = w[0] * v
        w[:] *= 2.0
        return w.sum()

    _, back = J(f, 3.0)
    assert w.tolist() == (2 * np.array([X[0], X[0] * 3.0, *X[2:]])).tolist()
    for _ in range(2):
        closure, v̄ = back(1.0)
        assert closure.w.tolist() == [2.0 + 6.0, 0.0, 2.0, 2.0]
        assert v̄ == 2 * X[0]


BUFFER = np.zeros(4)


def test_a_global_buffer():
    def f(x):
        BUFFER[:] = x * x
        BUFFER[0] = BUFFER[1] * BUFFER[2]
        return BUFFER.sum()

    check_mutation(f, X)
    check_mutation(f, X)


def scale_first(a, factor=2.0):
    a[0] *= factor
    return a


def normalise(a, *, out=None):
    out = a if out is None else out
    out /= np.sqrt((a * a).sum())
    return out


def test_callees():
    def f(x, factor):
        y = scale_first(x[1:], factor)
        z = normalise(x)
        scale_first(y)
        w = normalise(z + 0.0, out=z)
        return (x * y[0]).sum() + w[2]

    check_mutation(f, X, 1.7)


def fill_rows(a, i):
    if i < len(a):
        a[i] = a[i - 1] * a[i, 0]
        fill_rows(a, i + 1)


def test_recursion():
    def f(a):
        fill_rows(a, 1)
        return (a**2).sum()

    check_mutation(f, A)


def test_an_unknown_callee(path):
    def f(x, g):
        y = x * 2.0
        z = y * x
        g(y)
        return (y * z).sum()

    def g(y):
        y[0] = y[1] * 3.0

    found = gradient(f, X.copy(), g)[0]
    expected = check_mutation(lambda x: f(x, g), X)[0]
    assert found == pytest.approx(expected)


def test_callees_in_containers(path):
    steps = [scale_first, lambda a: np.negative(a, out=a)]

    def f(x):
        y = x + 0.0
        for step in steps:
            step(y)
        return (y * x).sum()

    check_mutation(f, X)


def test_a_buffer_that_a_callee_makes(path):
    def cumulated(t, table):
        y = np.zeros(3)
        y[0] = t
        for i in range(1, 3):
            y[i] = y[i - 1] * t
        return table["sum"](y)

    def f(t, table):
        return cumulated(t, table) * t

    assert gradient(f, 2.0, {"sum": np.sum})[0] == pytest.approx(2 * 2 + 3 * 4 + 4 * 8)


# -- pullbacks -------------------------------------------------------------------------------------


def test_pullbacks_over_one_array_in_any_order():
    def f(x, k):
        y = x * x
        x[k] *= 3.0
        return (y * x).sum()

    def reference(values, k):
        return gradient(f, values.copy(), k)[0]

    x = X.copy()
    _, first = pullback(f, x, 0)
    middle = x.copy()
    _, second = pullback(f, x, 1)
    last = x.copy()
    x[:] = 0.0
    for back, expected in (
        (first, reference(X, 0)),
        (second, reference(middle, 1)),
        (first, reference(X, 0)),
    ):
        assert back(1.0)[0] == pytest.approx(expected)
        assert not x.any()
    assert last[0] == 3 * X[0]


def test_a_buffer_that_only_the_function_has_is_used_again():
    buffer = np.zeros(4)

    def f(x, k):
        np.multiply(x, k, out=buffer)
        buffer[1] = buffer[0] * x[1]
        return (buffer * buffer).sum()

    _, first = pullback(f, X, 2.0)
    _, second = pullback(f, X[::-1].copy(), 5.0)
    found = first(1.0), second(1.0), first(1.0)
    expected = gradient(f, X, 2.0)
    for one in (found[0], found[2]):
        assert one[0] == pytest.approx(expected[0])
        assert one[1] == pytest.approx(expected[1])


def test_an_exception_in_the_reverse_pass_leaves_memory_as_it_was():
    from morula import rrule

    def broken(x):
        return x * 1.0

    @rrule(broken)
    def _(x: np.ndarray):
        def broken_pullback(ȳ):
            raise KeyError("no")

        return x * 1.0, broken_pullback

    def f(x):
        y = broken(x)
        x[:] = 1.0
        return (x * y).sum()

    x = X.copy()
    with pytest.raises(KeyError):
        gradient(f, x)
    assert x.tolist() == [1.0] * 4


def test_what_was_once_written_to_is_differentiated_as_ever(path):
    x = X.copy()

    def writes(x):
        x[0] = 2.0
        return x.sum()

    gradient(writes, x)

    def reads(x, xs):
        y = np.sin(x) * x[0]
        for v in xs:
            y = y + v * x[1]
        return (y * y).sum()

    found = gradient(reads, x, [x, x * 2.0])
    expected = gradient(reads, x.copy(), [x.copy(), x * 2.0])
    assert found[0] == pytest.approx(expected[0])
    for a, b in zip(found[1], expected[1], strict=True):
        assert a == pytest.approx(b)


# -- second derivatives ----------------------------------------------------------------------------


def buffered(x):
    y = np.zeros(4)
    for i in range(4):
        y[i] = x[i] ** 2 * (y[i - 1] if i else 1.0)
    y[1:] += y[:-1] * x[1:]
    y *= x[0]
    return y.sum()


def on_its_argument(x):
    x[0] = x[1] * x[2]
    np.exp(x[1:3], out=x[1:3])
    x[1:] *= x[:-1]
    return (x * x).sum()


def through_views(x):
    a = x.reshape(2, 2) * 1.0
    for r in a:
        r *= r[0]
    v = a.T
    v[0] += v[1] ** 2
    np.add.at(a, [0, 0], a[1] * x[0])
    a[a > 1.0] *= 0.5
    return (a * v).sum()


@pytest.mark.parametrize("f", [buffered, on_its_argument, through_views])
def test_second_derivatives(f):
    direction = np.array([0.3, -0.2, 0.5, 0.1])

    def slope(x):
        return (gradient(f, x * 1.0)[0] * direction).sum()

    check_mutation(slope, X)
    check_mutation(lambda x: (grad(f)(x + 0.0) ** 2).sum(), X * 0.7, rtol=1e-5)


def test_a_gradient_between_writes():
    def f(x):
        y = x + 0.0
        y[0] *= x[1]
        g = gradient(on_its_argument, y)[0]
        y += g
        return (y * x).sum()

    check_mutation(f, X * 0.5, rtol=1e-5)


class Account:
    """Its properties and special methods write to an array."""

    def __init__(self, x):
        self.held = np.array([x, x * x])

    @property
    def first(self):
        return self.held[0]

    @first.setter
    def first(self, value):
        self.held[0] += value

    def __setitem__(self, k, value):
        self.held[k] = value

    def __iadd__(self, value):
        self.held += value
        return self

    def __len__(self):
        self.held[1] *= 2
        return 2


def by_property(a, b):
    account = Account(a)
    account.first = b
    return account.held.sum() * account.first


def by_item(a, b):
    accounts = [Account(a)]
    accounts[0][1] = b * a
    setattr(accounts[0], "first", b)  # noqa: B010
    return accounts[0].held.prod()


def by_operator(a, b):
    account = Account(a)
    view = account.held[:1]
    account += b
    return view[0] * account.held[1]


def by_length(a, b):
    account = Account(a)
    return len(account) * account.held.sum() * b


@pytest.mark.parametrize("f", [by_property, by_item, by_operator, by_length])
def test_methods_of_objects_that_write_to_their_arrays(f):
    check_mutation(f, 0.7, 1.3)
