"""Double-ended queues in differentiated code."""

from collections import deque

import numpy as np
import pytest

import morula
from morula import DifferentiationError
from morula.testing import check_gradient


def popped(x):
    q = deque([x, x * 2])
    return q.popleft() * 3 + q.pop() * x


def rotated(x):
    q = deque([x, x * 2, x**3])
    q.rotate(1)
    q.rotate()
    q.rotate(-1)
    q.reverse()
    return q[0] * q[1] + 5 * q[-1]


def joined(x):
    a, b = deque([x, x * 2], maxlen=3), deque([x**3, x * x])
    q = a + b
    b.append(x)
    q += [x * 5]
    return q[0] * q[1] + (b + a)[2] * q[-1]


def both_ends(x):
    q = deque()
    q.append(x)
    q.appendleft(x * x)
    q.extend([x**3, 1.0])
    q.extendleft([x**4, x**5])
    q.insert(2, x * 7)
    del q[1]
    q[0] = q[0] * q[3]
    return sum(v * (i + 1) for i, v in enumerate(q))


def bounded(x):
    q = deque([x, x * 2, x * 3], maxlen=2)
    q.append(x**2)
    q.appendleft(x**3)
    q.extend([x**4])
    return q[0] + 10 * q[1]


def empty_bound(x):
    q = deque([x], maxlen=0)
    q.append(x)
    q.appendleft(x)
    return x * 2 + len(q)


def breadth_first(x):
    tree = {"a": ["b", "c"], "b": ["d"], "c": [], "d": []}
    waiting = deque([("a", x)])
    total = 0.0
    while waiting:
        node, value = waiting.popleft()
        total += value**2
        for child in tree[node]:
            waiting.append((child, value * x))
    return total


def moving_average(x):
    window = deque(maxlen=3)
    total = 0.0
    for k in range(6):
        window.append(x * k)
        total += sum(window) / len(window) * k
    return total


def copied(x):
    q = deque([x, x * 2])
    r = q.copy()
    q.clear()
    q.append(x * 5)
    return r[0] * r[1] + q[0] + max(reversed(r))


def removed_and_repeated(x):
    q = deque([x, x * 2, x**3], maxlen=5)
    q.remove(q[1])
    r = 2 * q
    q *= 3
    q[0] *= x
    return sum(v * (i + 1) for i, v in enumerate(q)) + (r * 0 + r)[3] * (q * 2)[-1]


def of_an_array(x):
    q = deque(np.array([x, x**2, 3.0]))
    a, b, c = q
    return a * b + c


PROGRAMS = [
    popped, rotated, joined, both_ends, bounded, empty_bound, breadth_first, moving_average, copied,
    removed_and_repeated,
]  # fmt: skip


@pytest.mark.parametrize("f", [*PROGRAMS, of_an_array])
def test_gradients(f):
    check_gradient(f, 1.3)


@pytest.mark.parametrize("f", PROGRAMS)
def test_second_derivatives(f):
    h = 1e-5
    by_differences = (morula.grad(f)(1.3 + h) - morula.grad(f)(1.3 - h)) / (2 * h)
    np.testing.assert_allclose(morula.grad(morula.grad(f))(1.3), by_differences, atol=1e-5)


@pytest.mark.parametrize("f", PROGRAMS)
def test_forward_mode_is_right_or_refused(f):
    try:
        _, tangent = morula.jvp(f, (1.3,), (1.0,))
    except DifferentiationError:
        return
    np.testing.assert_allclose(tangent, morula.grad(f)(1.3))


def test_a_queue_as_an_argument_and_as_a_result():
    (gradient,) = morula.gradient(lambda q: q[0] ** 2 * q.pop(), deque([3.0, 5.0]))
    assert gradient == deque([30.0, 9.0])
    assert morula.gradient(lambda q: 2.0, deque([3.0, 5.0])) == (deque([0.0, 0.0]),)
    y, back = morula.pullback(lambda x: deque([x, x * 2]), 2.0)
    assert y == deque([2.0, 4.0])
    assert back(deque([1.0, 1.0])) == (3.0,)
    assert back([1.0, 0.5]) == (2.0,)


class Doubling(deque):
    def __add__(self, other):
        return deque([2 * x for x in self]) + other

    def __iadd__(self, more):
        self.extend([3 * x for x in more])
        return self


def test_operators_of_a_class_of_its_own():
    def f(x):
        q = Doubling()
        q.append(x)
        q += [x * x]
        return (q + deque([x]))[0] * q[1]

    assert morula.gradient(f, 2.0) == (72.0,)
    assert morula.jvp(f, (2.0,), (1.0,))[1] == 72.0
