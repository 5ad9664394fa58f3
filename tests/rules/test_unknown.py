"""Cotangents that nobody has a formula for: they travel, and are refused where they arrive."""

import numpy as np
import pytest

from morula import J, gradient, jvp, rrule
from morula.core.errors import NoRuleError, UnsupportedError
from morula.core.extend import NotKnown
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
