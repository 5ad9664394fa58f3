"""Cotangents that nobody has a formula for: they travel, and are refused where they arrive."""

import copy
import ctypes
import ctypes.util
import functools
import marshal
import math
from collections import deque

import numpy as np
import pytest
from scipy import sparse, special, stats
from scipy.special import jv

from morula import J, grad, gradient, jvp, rrule
from morula.core import context
from morula.core.errors import NoRuleError, UnsupportedError
from morula.core.extend import NotKnown, by_the_general_path, shows_all
from morula.rules.unknown import unknown

pytestmark = pytest.mark.usefixtures("path")


def scaled(order, x):
    return order * x


@rrule(scaled)
def _(order: float, x: float):
    def scaled_pullback(ȳ):
        return unknown(scaled, "its order"), ȳ * order

    return order * x, scaled_pullback


class Model:
    def __init__(self, order):
        self.order = order


def test_who_asks_gets_the_error():
    for f in (
        lambda v: scaled(v, 2.0),
        lambda v: scaled(3 * v + v, 2.0) + v,
        lambda v: scaled(float(np.sum(np.array([v, v]))), 2.0),
        lambda v: scaled(v * np.ones(2)[0], 2.0) + v,
    ):
        with pytest.raises(NoRuleError, match="the derivative by its order is not known"):
            gradient(f, 1.5)
    with pytest.raises(NoRuleError, match="the derivative by its order is not known"):
        gradient(lambda m: scaled(m.order, 2.0), Model(1.5))
    with pytest.raises(NoRuleError, match="the derivative by its order is not known"):
        gradient(lambda orders: scaled(orders[0], 2.0), [1.5])


def test_lists_inside_what_an_opaque_function_gives():
    def thawed(x):
        return marshal.loads(marshal.dumps(([2.0 * x], [[x]], {"x": [x]})))

    for f in (
        lambda x: thawed(x)[0][0],
        lambda x: thawed(x)[1][0][0],
        lambda x: thawed(x)[2]["x"][0],
    ):
        with pytest.raises(NoRuleError, match="loads"):
            gradient(f, 3.0)

    def popped(x):
        inner = thawed(x)[1].pop()
        return inner[0]

    with pytest.raises(NoRuleError, match="loads"):
        gradient(popped, 3.0)
    assert gradient(lambda x: len(thawed(x)[1]) * x, 3.0) == (1.0,)


def test_who_does_not_ask_is_not_bothered():
    model, orders, order = Model(1.5), [1.5], 1.5
    for f in (
        lambda x: scaled(order, x),
        lambda x: scaled(orders[0], x),
        lambda x: scaled(model.order, x),
        lambda x: scaled(*orders, x),
        lambda x: scaled(order * 1.0, x),
    ):
        assert gradient(f, 2.0) == (1.5,)
        assert gradient(lambda x, f=f: gradient(f, x)[0] * x, 2.0) == (1.5,)


def test_the_callable_hands_it_on():
    order = 1.5
    _, back = J(lambda x: scaled(order, x), 2.0)
    f̄, x̄ = back(1.0)
    assert x̄ == 1.5
    assert isinstance(f̄.order, NotKnown)
    with pytest.raises(NoRuleError):
        float(f̄.order)


# -- functions without a rule, of which the gradient depends or not --------------------------------

cubic_root = ctypes.CDLL(ctypes.util.find_library("m")).cbrt
cubic_root.restype, cubic_root.argtypes = ctypes.c_double, [ctypes.c_double]


class Box:
    def __init__(self, v):
        self.v = v


def in_a_cell(v):
    def double():
        nonlocal v
        v = 2 * v

    double()
    return v


def in_a_class(v):
    class Kept:
        held = v

    return Kept.held


def in_a_global(v):
    global kept
    kept = v
    return kept


def in_an_exception(v):
    try:
        raise KeyError(v)
    except KeyError as error:
        return error.args[0]


def in_what_refers_to_itself(v):
    items, box = [v], Box(v)
    items.append(items)
    box.items, box.own, items[0] = items, box, box
    return box.items[1][0].own.v


def in_an_array(v):
    a = np.zeros(3)
    a[1] = v
    a *= 2
    return a[1]


CARRIERS = [
    lambda v: v,
    lambda v: [v, 1.0][0],
    lambda v: (v, 1.0)[0],
    lambda v: {"a": [v]}["a"][0],
    lambda v: Box(v).v,
    lambda v: np.array([v, 1.0])[0],
    lambda v: np.sort(np.stack([v, 3 * v]))[0],
    lambda v: next(iter([v])),
    lambda v: next(u for u in (v, v)),
    lambda v: max(v, 0.5),
    lambda v: copy.deepcopy([Box(v)])[0].v,
    lambda v: deque([v])[0],
    lambda v: {v}.pop(),
    lambda v: math.fsum([v, v]),
    lambda v: functools.partial(lambda a, b: a, v)(b=1.0),
    lambda v: (lambda *args, **named: named["v"])(1.0, v=v),
    in_a_cell,
    in_a_class,
    in_a_global,
    in_an_exception,
    in_what_refers_to_itself,
    in_an_array,
]


@pytest.mark.parametrize("carry", CARRIERS)
@pytest.mark.parametrize("first", [True, False])
def test_a_function_without_a_rule_is_refused_where_it_matters(carry, first):
    def f(x):
        return x + (cubic_root(carry(x)) if first else carry(cubic_root(x)))

    for _ in range(2):
        with pytest.raises(NoRuleError, match=r"test_unknown.py:\d+, in f:") as caught:
            gradient(f, 1.5)
    assert any(entry.name == "f" for entry in caught.traceback)
    with pytest.raises(RuntimeError, match="outside of a reverse pass"):
        context.adjoint_of([])  # the pass is over


@pytest.mark.parametrize("carry", CARRIERS[:-1])  # beside memory there is no place for it
@pytest.mark.parametrize("first", [True, False])
def test_a_function_without_a_rule_is_in_nobodys_way(carry, first):
    def f(x, y):
        return x * (cubic_root(carry(y)) if first else carry(cubic_root(y)))

    root = f(1.0, 8.0)
    for of in (lambda x: f(x, 8.0), lambda x: f(x, Model(8.0).order), lambda x: f(x, [8.0][0])):
        assert gradient(of, 1.5) == (root,)
    assert grad(f)(1.5, 8.0) == root  # the other argument is not asked for


def test_values_that_show_all_there_is_of_them():
    inside = [1.0, (2.0, np.ones(2)), {"a": 3}]
    inside.append(inside)
    assert shows_all(inside)
    for hidden in (b"1.0", "1.0", iter([1.0]), memoryview(b"1"), Box(1.0), np.array([None])):
        assert not shows_all([inside, (hidden,)])


def test_what_is_not_known_is_never_written_to_an_array():
    unknown_one, buffer = unknown(scaled, "its order"), np.zeros(2)
    assert np.add(buffer, unknown_one) is np.reshape(unknown_one, 2) is unknown_one
    for write in (
        lambda: np.add(buffer, unknown_one, out=buffer),
        lambda: np.cumsum(unknown_one, out=buffer),
        lambda: np.copyto(buffer, unknown_one),
        lambda: np.put(buffer, [0], unknown_one),
    ):
        with pytest.raises(NoRuleError, match="its order"):
            write()


def test_degenerate_points_of_what_is_constant_are_in_nobodys_way():
    def of_its_vectors(matrix):
        return np.linalg.eigh(matrix)[1][0].sum()

    assert gradient(lambda x: x * of_its_vectors(np.eye(3)), 2.0) == (1.0,)
    with pytest.raises(UnsupportedError, match="choice of eigenvectors"):
        gradient(lambda x: x * of_its_vectors(x * np.eye(3)), 2.0)
    density = stats.multivariate_normal
    (x̄,) = gradient(lambda x: density.logpdf(x, np.zeros(3), np.eye(3)), np.arange(3.0))
    np.testing.assert_allclose(x̄, [0.0, -1.0, -2.0])


def test_what_a_compiled_function_writes_is_seen_however_often_it_writes_the_same():
    kernel = pytest.importorskip("scipy.sparse._sparsetools").csr_maximum_csr

    def f(x):
        data, indptr, indices = np.empty(6), np.empty(4, np.int32), np.empty(6, np.int32)
        at, places = np.arange(4, dtype=np.int32), np.arange(3, dtype=np.int32)
        kernel(3, 3, at, places, x, at, places, np.ones(3), indptr, indices, data)
        return data[:3].sum()

    x = np.array([2.0, 3.0, 4.0])
    for _ in range(5):
        f(x)
        with pytest.raises(UnsupportedError, match="changes a ndarray in place"):
            gradient(f, x)
        with pytest.raises(UnsupportedError, match="changes a ndarray in place"):
            jvp(f, (x,), (x,))


def test_functions_of_numpy_hand_it_on_and_a_tangent_is_refused():
    def of_array(v):
        return np.sum(jv(v * np.array([1.5, 2.5]), 2.0))

    for f in (of_array, lambda v: scaled(v, 2.0), lambda v: jv(v, 2.0)):
        for differentiate in (gradient, lambda f, v: jvp(f, (v,), (1.0,))):
            with pytest.raises(NoRuleError, match="is not known"):
                differentiate(f, 1.5)


FORMS = {
    "list": list,
    "tolist": lambda a: a.tolist(),
    "tuple": tuple,
    "list of its entries": lambda a: [np.float64(t) for t in a],
    "array of objects": lambda a: a.astype(object).astype(float),
    "masked": lambda a: np.ma.masked_array(a, mask=[False, False, False]),
    "sparse": lambda a: sparse.csr_array((a, [0, 1, 2], [0, 1, 2, 3])).toarray(),
    "memoryview": lambda a: np.asarray(memoryview(a)),
    "flat": lambda a: [t for t in a.flat],
    "imaginary part": lambda a: (a * 1j).imag,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("writes", [False, True])
def test_what_nobody_knows_of_an_array_in_another_form(form, writes):
    def f(v):
        a = v * np.ones(3)
        if writes:
            a[1] = v
        y = special.ive(FORMS[form](a), 1.3).sum()
        if writes:
            a[1:] = 0.0
        return y + v

    f(1.7)
    for differentiate in (gradient, lambda f, v: jvp(f, (v,), (1.0,))):
        with pytest.raises((NoRuleError, ValueError, TypeError)):
            differentiate(f, 1.7)


PARTS = {
    "unique": lambda v: np.unique(np.array([v, 2 * v]), return_index=True)[0],
    "unique_all": lambda v: np.unique_all(np.array([v, 2 * v])).values,
    "linspace": lambda v: np.linspace(1.0, v, 3, retstep=True)[0],
    "its step": lambda v: np.linspace(1.0, v, 3, retstep=True)[1],
    "split": lambda v: np.split(np.array([v, 2 * v]), 2)[0],
    "overlapping parts": lambda v: np.split(np.array([v, 2 * v, v]), [2, 1])[0],
    "hsplit": lambda v: np.hsplit(np.array([v, 2 * v]), 2)[0],
    "meshgrid": lambda v: np.meshgrid(np.array([v, 1.0]), np.array([1.0, 2.0]))[0],
    "gradient": lambda v: np.gradient(np.array([[v, 2 * v], [v * v, 1.0]]))[0],
    "singular values": lambda v: np.linalg.svd(v * np.diag([1.0, 2.0]))[1],
    "average": lambda v: np.average(np.array([v, 2 * v]), returned=True)[0],
}


@pytest.mark.parametrize("name", PARTS)
def test_what_nobody_knows_of_one_of_several_results(name):
    def f(v):
        return np.sum(special.ive(PARTS[name](v), 1.3)) + v

    for differentiate in (gradient, lambda f, v: jvp(f, (v,), (1.0,))):
        with pytest.raises(NoRuleError, match="order"):
            differentiate(f, 1.7)


ORDERS = {
    "used": lambda a, v: special.ive(a, 1.3).sum(),
    "used later": lambda a, v: special.ive(np.sin(a) + 2.0, 1.3).sum(),
    "a view": lambda a, v: special.ive(a[1:], 1.3)[0],
    "an entry": lambda a, v: special.ive(a[1], 1.3),
}


def wrote_before(a):
    a *= 2.0


WRITES = {
    "assigned": lambda a, v: a.__setitem__(1, v),
    "added": lambda a, v: np.add.at(a, [1], v),
    "sorted": lambda a, v: (a.__setitem__(1, v), a.sort()),
    "multiplied": lambda a, v: (a.__setitem__(1, v), wrote_before(a)),
    "into it": lambda a, v: (a.__setitem__(1, v), np.multiply(a, 2.0, out=a)),
}


@pytest.mark.parametrize("use", ORDERS)
@pytest.mark.parametrize("write", WRITES)
def test_what_nobody_knows_of_an_array_that_is_written_to(use, write):
    """It is an error, wherever the array came from and whatever becomes of it."""

    def f(v):
        a = np.zeros(3) + 1.5
        WRITES[write](a, v)
        y = ORDERS[use](a, v)
        a[1:] = 0.0
        return y + v

    for _ in range(2):
        with pytest.raises(NoRuleError, match="order"):
            gradient(f, 1.7)
        with by_the_general_path(), pytest.raises(NoRuleError, match="order"):
            gradient(f, 1.7)


def test_of_a_tuple_one_part_may_be_unknown():
    """What stands beside it has its derivative; what is joined with it has not."""

    def f(order, x, join):
        parts = (order * 1.0, np.atleast_1d(x * x))
        if join:
            joined = np.concatenate((np.atleast_1d(order), parts[1]))
            return special.ive(joined, 1.3).sum()
        return special.ive(parts[0], 1.3) * parts[1][0]

    with by_the_general_path():
        assert gradient(lambda x: f(2.3, x, False), 0.7) == (
            pytest.approx(1.4 * special.ive(2.3, 1.3)),
        )
        for first in (
            lambda v: f(v, 0.7, False),
            lambda v: f(v, 0.7, True),
            lambda v: f(2.3, v, True),
        ):
            with pytest.raises(NoRuleError, match="order"):
                gradient(first, 1.7)
