"""What may be None, and is asked: programs know it better behind the question."""

import math

import numpy as np
import pytest

import morula
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient


class Controller:
    def __init__(self, p, d):
        self.p, self.d = p, d
        self.total, self.last = 0.0, None

    def update(self, error, h):
        self.total += error * h
        slope = 0.0 if self.last is None else (error - self.last) / h
        self.last = error
        return self.p * error + self.total + self.d * slope


def controlled(a, b):
    controller, x, cost = Controller(a, b), 0.0, 0.0
    for _ in range(20):
        x += controller.update(1.0 - x, 0.05) * 0.05
        cost += (1.0 - x) ** 2
    return cost


def nearest(a, b):
    best = None
    for i in range(-3, 4):
        t = (a * i - b) ** 2 + 0.1 * b
        if best is None or t < best:
            best = t
    return best * a if best is not None else 0.0


def smoothed(a, b):
    level = None
    out = 0.0
    for k in range(6):
        x = math.sin(a * k)
        if level is not None:
            level = b * x + (1 - b) * level
        else:
            level = x * 2
        out += level * level
    return out


def negated(a, b):
    last = None
    total = 0.0
    for k in range(5):
        if not (last is None):  # noqa: E714
            total += last * b
        last = a * k if k % 2 else None
    return total + a


def looked_up(a, b):
    d = {i: a * i for i in range(3)}
    total = 0.0
    for i in range(5):
        v = d.get(i)
        if v is None:
            v = d[i] = b * i
        total += v * i
    return total


def default(x, scale=None):
    if scale is None:
        scale = x
    return x * scale


def defaults(a, b):
    return default(a) + default(a, b) * default(b)


def asked_twice(a, b):
    x = None
    total = 0.0
    for k in range(4):
        if x is not None:
            y = x * b
            if x is not None and k > 2:
                y += x * x
            total += y
        x = a + k if k != 1 else None
    return total


def returned(a, b):
    def root(c):
        return None if c < 0 else math.sqrt(c)

    total = 0.0
    for k in range(-2, 3):
        r = root(a * k + b)
        if r is None:
            continue
        total += r
    return total


def of_arrays(a, b):
    v = None
    for k in range(4):
        w = np.array([a, b]) * k
        v = w if v is None else v * w + 1.0
    return v @ v


class Node:
    def __init__(self, value, rest=None):
        self.value, self.rest = value, rest


def linked(a, b):
    node, total = Node(a, Node(b, Node(a * b))), 0.0
    while node is not None:
        total += node.value**2
        node = node.rest
    return total


ALL = [
    controlled, nearest, smoothed, negated, looked_up, defaults, asked_twice, returned, of_arrays,
    linked,
]  # fmt: skip


@pytest.mark.parametrize("f", ALL)
def test_value_and_gradient(f):
    value, gradient = morula.value_and_grad(f, (0, 1))(1.3, 0.7)
    assert value == f(1.3, 0.7)
    with by_the_general_path():
        general = morula.grad(f, (0, 1))(1.3, 0.7)
    np.testing.assert_allclose(gradient, general, rtol=1e-12)
    check_gradient(f, 1.3, 0.7)
    _, back = morula.pullback(f, 1.3, 0.7)
    assert back(1.0) == back(1.0)
    g = morula.grad(lambda x: f(x, 0.7))
    assert morula.grad(g)(1.3) == pytest.approx((g(1.3001) - g(1.2999)) / 2e-4, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    "f", [controlled, nearest, smoothed, negated, looked_up, defaults, asked_twice, returned]
)
def test_nothing_is_resolved_at_run_time(f):
    assert not morula.code_adjoint(f, 1.3, 0.7).left


def test_float32_stays():
    found = morula.grad(smoothed)(np.float32(1.3), np.float32(0.7))
    with by_the_general_path():
        expected = morula.grad(smoothed)(np.float32(1.3), np.float32(0.7))
    assert type(found) is type(expected)
    assert found == pytest.approx(expected, rel=1e-5)


def test_an_argument_that_is_none():
    def f(x, scale):
        return x * 2 if scale is None else x * scale

    assert morula.gradient(f, 3.0, None) == (2.0, None)
    assert morula.gradient(f, 3.0, 5.0) == (5.0, 3.0)
