"""Norms of every order, over axes, at zero."""

import numpy as np
import pytest
from scipy.spatial import distance

from morula.core.extend import find_rrule
from morula.core.registry import apply_rule
from morula.testing import check_rrule
from tests.array_modes import check_array_modes
from tests.rules.linalg.matrices import draw


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
@pytest.mark.parametrize("order", [None, 2, 1, 0, 3, 2.5, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_vectors(rng, dtype, order, keepdims):
    check_rrule(np.linalg.norm, draw(rng, 4, dtype), order, keepdims=keepdims)
    check_rrule(np.linalg.norm, draw(rng, (2, 3), dtype), order, 1, keepdims)
    check_rrule(np.linalg.norm, draw(rng, (2, 3), dtype), ord=order, axis=0)


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
@pytest.mark.parametrize("order", [None, "fro", "nuc", 2, -2, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_matrices(rng, dtype, order, keepdims):
    check_rrule(np.linalg.norm, draw(rng, (3, 2), dtype), order, keepdims=keepdims)
    check_rrule(np.linalg.norm, draw(rng, (2, 3, 4), dtype), order, (0, 2), keepdims)


@pytest.mark.parametrize("order", [np.inf, -np.inf])
@pytest.mark.parametrize(
    ("shape", "axis"), [((4,), None), ((2, 3), 1), ((2, 3), None), ((2, 3, 4), (0, 2))]
)
def test_infinite_orders(rng, order, shape, axis):
    x, v = rng.standard_normal((2, *shape))
    y, back = apply_rule(find_rrule(np.linalg.norm, (x, order, axis)), (x, order, axis), {})
    ȳ = rng.standard_normal(np.shape(y))
    up, down = (np.linalg.norm(x + h * v, order, axis) for h in (1e-6, -1e-6))
    assert np.isclose(np.sum(back(ȳ)[0] * v), np.sum(ȳ * (up - down) / 2e-6))


def test_all_entries_and_axes(rng):
    check_rrule(np.linalg.norm, draw(rng, (2, 3, 2), "f8"))
    for axis in (None, 0, 1, (0, 1)):
        x = np.ones((2, 2))
        _, back = apply_rule(find_rrule(np.linalg.norm, (x,)), (x,), {"axis": axis})
        assert back(np.ones(2) if axis in (0, 1) else 1.0)[0].shape == (2, 2)
    check_rrule(np.linalg.norm, -2.5)


@pytest.mark.parametrize("order", [None, 2, 1, np.inf, 3])
def test_gradient_at_zero_is_zero(order):
    x = np.zeros(3)
    _, back = apply_rule(find_rrule(np.linalg.norm, (x,)), (x,), {"ord": order})
    assert back(1.0)[0].tolist() == [0, 0, 0]
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    _, back = apply_rule(find_rrule(np.linalg.norm, (x,)), (x,), {"ord": 2, "axis": 1})
    assert back(np.ones(2))[0].tolist() == [[0.6, 0.8], [0, 0]]


ORDERS = {
    "of a vector": lambda x, p: np.linalg.norm(x, p),
    "computed": lambda x, p: np.linalg.norm(x, np.sin(p) + 2.0) * p,
    "of an array of orders": lambda x, p: np.linalg.norm(x, np.array([p, 1.0])[0]),
    "along an axis": lambda x, p: np.linalg.norm(np.stack((x, x * x)), p, axis=1).prod(),
    "distances": lambda x, p: distance.cdist([x], [x * x, -x], "minkowski", p=p).sum(),
}


@pytest.mark.parametrize("name", ORDERS)
def test_by_the_order_in_all_modes(name):
    check_array_modes(ORDERS[name], np.array([0.3, -1.2, 0.7]), 3.0, second=True)
