"""Cotangents that nobody has a formula for: they travel, and are refused where they arrive."""

import numpy as np
import pytest
from scipy.special import jv

from morula import J, gradient, jvp, rrule
from morula.core.errors import NoRuleError
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


def test_functions_of_numpy_hand_it_on_and_a_tangent_is_refused():
    def of_array(v):
        return np.sum(jv(v * np.array([1.5, 2.5]), 2.0))

    for f in (of_array, lambda v: scaled(v, 2.0), lambda v: jv(v, 2.0)):
        for differentiate in (gradient, lambda f, v: jvp(f, (v,), (1.0,))):
            with pytest.raises(NoRuleError, match="is not known"):
                differentiate(f, 1.5)
