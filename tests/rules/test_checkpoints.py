"""Recomputing in the place of keeping."""

import copy
import random
import tracemalloc
from collections import deque

import numpy as np
import pytest

from morula import (
    DifferentiationError,
    J,
    UnsupportedError,
    checkpoint,
    grad,
    gradient,
    isderiving,
    pullback,
    value_and_grad,
)
from morula.core import writers

pytestmark = pytest.mark.usefixtures("path")

global_rng = np.random.default_rng(5)


class Model:
    def __init__(self, w):
        self.w = w
        self.seen = []

    def __call__(self, x, *, scale=1.0):
        self.seen.append(x)
        return self.w * x * scale

    def note(self, x):
        self.last = x * self.w
        return self.last


def both(f, *args):
    """The gradient with checkpoints, and without."""
    found = gradient(lambda *a: f(checkpoint, *a), *copy.deepcopy(args))
    return found, gradient(lambda *a: f(lambda g, *b, **k: g(*b, **k), *a), *copy.deepcopy(args))


def test_values_and_gradients_are_those_of_the_call():
    def f(run, x, y):
        z = run(lambda a, b, k=1.0: (a * b + k, [a * k]), x, y, k=x * 2)
        return z[0] * z[1][0] + run(np.sin, x * y)

    a, b = both(f, 2.0, 3.0)
    assert a == b
    assert value_and_grad(lambda x: checkpoint(lambda y: y * y, x) * x)(3.0) == (27.0, 27.0)
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(
        grad(lambda x: checkpoint(lambda y: y**3, x).sum())(x), [3.0, 12.0]
    )


def test_captured_variables_objects_and_the_callable_itself():
    def f(run, model, x):
        a = x * 2

        def inner(y):
            nonlocal a
            a = a * y
            return a + model(y, scale=x)

        y = run(inner, x)
        return y * a + model.seen[-1] + run(model.note, x) * model.last

    a, b = both(f, Model(3.0), 2.0)
    assert a[0].w == b[0].w
    assert a[1] == b[1]

    c = 4.0
    _, back = J(lambda x: checkpoint(lambda y: y * c, x), 2.0)
    f̄, x̄ = back(1.0)
    assert (f̄.c, x̄) == (2.0, 4.0)


def test_what_changes_later_is_as_it_was_for_the_second_run():
    def f(run, x, xs):
        a = x
        y = run(lambda: a * xs[0] * xs[-1])
        a = 10 * x
        xs[0] = 100.0
        xs.append(5.0)
        return y * a * xs[0]

    xs = [2.0, 3.0]
    a, b = both(f, 7.0, [2.0, 3.0])
    assert a == b
    _, back = pullback(lambda x, xs: f(checkpoint, x, xs), 7.0, xs)
    assert back(1.0) == back(1.0) == b
    assert xs == [100.0, 3.0, 5.0]


def test_what_it_changes_is_changed_once():
    def f(run, x, xs, d, s, q):
        def inner(k):
            xs.append(k * xs[0])
            xs[0] = k
            d["n"] = d.get("n", 0) + 1
            d["new"] = [k * k]
            s.add("b")
            q.append(len(q))
            return xs[-1]

        y = run(inner, x)
        run(inner, y)
        d["new"].append(x)
        return y * xs[-1] + d["new"][0] * d["new"][1] * d["n"]

    args = lambda: (3.0, [2.0, 5.0], {"a": 1.0}, {"a"}, deque([1.0, 2.0]))
    a, b = both(f, *args())
    assert a[:3] == b[:3]
    mine, plain = args(), args()
    gradient(lambda *a: f(checkpoint, *a), *mine)
    f(lambda g, *a: g(*a), *plain)
    assert mine == plain


def test_mutable_results_are_found_again():
    def f(run, x):
        made = run(lambda y: {"items": [y, [y * y]], "model": Model(y)}, x)
        made["items"][1].append(x)
        made["items"].append(made["items"][0] * 2)
        inner = made["items"][1]
        made["model"].w = made["model"].w * inner[0]
        same = run(lambda m: m, made)
        assert same is made
        return inner[0] * inner[1] * made["items"][2] * same["model"](x)

    a, b = both(f, 1.5)
    assert a == pytest.approx(b, rel=1e-14)


def test_random_numbers_come_again_and_all_states_are_as_they_were():
    rng, legacy, own = np.random.default_rng(1), np.random.RandomState(2), random.Random(3)

    def noisy(x, rng):
        a = random.random() + np.random.rand() + rng.normal() + own.random() + legacy.rand()
        return x * (a + global_rng.random())

    def f(x):
        y = checkpoint(noisy, x, rng)
        return checkpoint(noisy, y, rng) * random.random()

    def states():
        return (
            random.getstate(),
            np.random.get_state()[1].tolist(),
            rng.bit_generator.state,
            legacy.get_state()[2],
            own.getstate(),
            global_rng.bit_generator.state,
        )

    def seed():
        random.seed(0)
        np.random.seed(0)
        for source in (rng, global_rng):
            source.bit_generator.state = np.random.default_rng(9).bit_generator.state
        own.seed(3)
        legacy.seed(2)

    seed()
    plain = f(1.0)
    after = states()
    seed()
    value, slope = value_and_grad(f)(1.0)
    assert value == plain
    assert slope == pytest.approx(plain, rel=1e-14)
    assert states() == after


calls = 0


def test_a_second_run_that_differs_is_an_error():
    def f(x):
        global calls
        calls += 1
        return x * calls

    with pytest.raises(DifferentiationError, match=r"another result .* in the\s+place of"):
        gradient(lambda x: checkpoint(f, x), 2.0)
    with pytest.raises(UnsupportedError, match="makes a list_iterator"):
        gradient(lambda x: sum(checkpoint(lambda y: iter([y, y]), x)), 2.0)
    with pytest.raises(UnsupportedError, match="takes items from a list_iterator"):
        gradient(lambda x: checkpoint(sum, iter([x, x])), 2.0)


def test_arrays_that_it_writes_to():
    def f(run, x, u):
        made = {}

        def inner(k):
            u[1:] += u[:-1] * k
            made["v"] = np.zeros(2)
            made["v"][0] = u[1]
            made["v"][1] = k * k
            return u[:2]

        w = run(inner, x)
        made["v"][0] *= x
        y = (w * made["v"]).sum() * u[2]
        run(inner, y * 0.1)
        u[0] = x
        return (u * u).sum() + y + made["v"].sum()

    a, b = both(f, 1.5, np.array([1.0, 2.0, 3.0]))
    assert a[0] == pytest.approx(b[0], rel=1e-13)
    np.testing.assert_allclose(a[1], b[1], rtol=1e-13)
    mine, plain = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])
    _, back = pullback(lambda x, u: f(checkpoint, x, u), 1.5, mine)
    f(lambda g, *a: g(*a), 1.5, plain)
    np.testing.assert_array_equal(mine, plain)
    assert back(1.0)[0] == back(1.0)[0] == a[0]
    np.testing.assert_array_equal(mine, plain)


def test_a_buffer_that_the_function_makes_is_written_to():
    def fill(x, n):
        y = np.zeros(3)
        y[0] = x[0] * n
        for i in range(1, 3):
            y[i] = y[i - 1] * x[i]
        y[:2] *= 2.0
        return y

    def f(run):
        def loss(x):
            y = run(fill, x, 2.0)
            z = run(fill, y, 3.0)
            return (y * z).sum()

        return loss

    x = np.array([0.5, 1.5, -2.0])
    expected = gradient(f(lambda f, *args: f(*args)), x)[0]
    np.testing.assert_allclose(gradient(f(checkpoint), x)[0], expected, rtol=1e-12)


def test_it_runs_again_only_where_a_cotangent_arrives():
    class Runs:
        n = 0

    def f(x):
        Runs.n += 1
        return x * 2

    def g(x):
        unused = checkpoint(f, x)
        return checkpoint(f, x) * x

    assert gradient(g, 3.0) == (12.0,)
    assert Runs.n == 3


def test_both_runs_count_as_differentiated():
    assert gradient(lambda x: checkpoint(lambda y: y * 2 if isderiving() else y, x), 3.0) == (2.0,)


def test_nested_checkpoints_and_higher_orders():
    def f(x):
        return checkpoint(lambda y: checkpoint(lambda z: z**3, y * 2) * y, x)

    assert gradient(f, 1.5)[0] == pytest.approx(32 * 1.5**3)
    assert grad(grad(f))(1.5) == pytest.approx(96 * 1.5**2)
    inside = gradient(lambda x: checkpoint(lambda y: gradient(lambda z: z**3, y)[0], x), 2.0)
    assert inside == (12.0,)


def test_the_second_order_of_one_that_changes_a_list_and_captures_what_changes():
    def f(x):
        xs = []
        a = x
        checkpoint(lambda: xs.append(a * x * x))
        a = 10.0
        return xs[0] * x

    assert gradient(f, 2.0) == (32.0,)
    assert grad(grad(f))(2.0) == pytest.approx(48.0)


def test_exceptions_pass_and_leave_all_as_it_is():
    def f(x):
        try:
            return checkpoint(lambda y: 1 / (y - y), x)
        except ZeroDivisionError:
            return x * 3

    assert gradient(f, 2.0) == (3.0,)


def test_it_writes_to_an_array_of_its_caller():
    def through_a_part(a):
        b = a[:]
        b *= 2
        a[0] += a[1] ** 2
        return (a**2).sum()

    def by_out(a):
        np.multiply(a, a, out=a)
        return a[0]

    def loss(run):
        def f(x):
            a = x * 1.0
            y = run(through_a_part, a) + run(by_out, a[1:])
            return y + a.sum()

        return f

    def own(x):
        a = x * 1.0

        def captured():
            a.fill(3.0)

        checkpoint(captured)
        return (a * x).sum()

    x = np.array([1.0, 2.0])
    plain = loss(lambda f, *args: f(*args))
    np.testing.assert_allclose(gradient(loss(checkpoint), x)[0], gradient(plain, x)[0])
    np.testing.assert_allclose(grad(loss(checkpoint))(x), [74, 640])
    np.testing.assert_allclose(gradient(own, x)[0], [3, 3])


def test_what_it_changed_before_an_exception_that_is_caught_is_no_silent_zero():
    def f(x):
        seen = [x]

        def broken_off(y):
            seen.append(y * 2)
            raise KeyError

        try:
            checkpoint(broken_off, x)
        except KeyError:
            pass
        return sum(seen) * x

    with pytest.raises(UnsupportedError, match="raised an exception that was caught outside of it"):
        gradient(f, 1.5)

    def only_draws(x):
        def broken_off(y):
            y * np.random.rand()
            raise KeyError

        try:
            return checkpoint(broken_off, x)
        except KeyError:
            return x * x * np.random.rand()

    np.random.seed(0)
    _, factor = np.random.rand(2)
    np.random.seed(0)
    assert gradient(only_draws, 1.5) == (pytest.approx(3 * factor),)


def test_memory_is_that_of_the_arguments():
    def layer(x):
        for _ in range(20):
            x = np.sin(x)
        return x

    def deep(run):
        def loss(x):
            for _ in range(10):
                x = run(layer, x)
            return x.sum()

        return loss

    x = np.ones(20_000)
    peaks = []
    for run in (checkpoint, lambda f, x: f(x)):
        g = grad(deep(run))
        slope = g(x)
        tracemalloc.start()
        np.testing.assert_array_equal(g(x), slope)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < peaks[1] / 4


def test_constants_of_code_need_no_hash():
    code = (lambda x: x + x).__code__.replace(co_consts=(None, {}))
    assert not writers.may_write_in_place(code)
    assert writers.stored_by(code) == (set(), set())
    assert not writers.code_writes(code)
