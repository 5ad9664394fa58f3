"""Loops in bounded memory."""

import inspect
import math
import random
import tracemalloc

import numpy as np
import pytest

import morula
from morula import (
    DifferentiationError,
    NoRuleError,
    UnsupportedError,
    checkpointed,
    grad,
    gradient,
    isderiving,
    jvp,
    pullback,
    withgradient,
)

pytestmark = pytest.mark.usefixtures("path")
rng = np.random.default_rng(3)


def plainly(f):
    """The same function with ordinary loops."""
    namespace = dict(f.__globals__, checkpointed=lambda iterable, slots=None: iterable)
    source = inspect.getsource(f)
    exec(compile(source, f.__code__.co_filename, "exec"), namespace)
    return namespace[f.__name__]


def carried(x, n):
    y = 1.0
    for i in checkpointed(range(n), slots=3):
        x, y = x * 1.01 + 0.1 * math.sin(y), y - 0.1 * x * i
    return x * y


def with_break_continue_else(x, n):
    y = 0.0
    for i in checkpointed(range(n), 2):
        if x > 5:
            break
        x = x * 1.1
        for j in range(2):
            y += x * j
        if i % 3 == 0:
            continue
        z = y
        if z > 1000:
            return z
    else:
        y = y * 2
    return y + x + i


def with_return(x, n):
    for i in checkpointed(range(n)):
        x = x * x
        if x > 50:
            return x * i
    return x * 3


def over_a_list(x, n):
    xs = [x * i for i in range(n)]
    total = x
    for v in checkpointed(xs):
        total = total * 0.5 + v * v
    return total + xs[0]


def over_an_array(x, n):
    total = 0.0
    for v in checkpointed(np.arange(n) * x):
        total = total * 0.9 + v * v
    return total


def over_zip_and_enumerate(x, n):
    total = 0.0
    for a, b in checkpointed(zip([x] * n, np.linspace(0.0, x, n), strict=True)):
        total += a * b
    for i, v in checkpointed(enumerate([x] * n)):
        total += i * v * total * 0.01
    for v in checkpointed(reversed([x, 2 * x, 3 * x])):
        total = total * 0.5 + v
    return total


def nested_loops(x, n):
    total = x
    for i in checkpointed(range(n), slots=2):
        for j in checkpointed(range(3), slots=1):
            total = total + math.sin(total) * 0.1
        for k in range(2):
            total = total * 0.9
    return total


def in_an_ordinary_loop(x, n):
    total = x
    for i in range(2):
        for j in checkpointed(range(n)):
            total = total * 0.9 + x * i
    return total


def with_closures(x, n):
    a = x

    def step(v):
        nonlocal a
        a = a * 0.9
        return v + a * x

    v = 0.0
    for i in checkpointed(range(n)):
        v = step(v)
        f = lambda w: w * v + i * a
    return f(a) * v


def with_lists(x, n):
    xs = [x, 1.0]
    trajectory = []
    for i in checkpointed(range(n), slots=2):
        xs[i % 2] = xs[0] * 0.5 + xs[1] * x
        trajectory.append([xs[0], i])
        if i:
            trajectory[-2][0] = trajectory[-2][0] * 2
    return sum(t[0] for t in trajectory) + xs[0] * xs[1]


class Particle:
    def __init__(self, x):
        self.x, self.v, self.log = x, 1.0, {}

    def step(self, k):
        self.v = self.v - 0.1 * self.x * k
        self.x = self.x + 0.1 * self.v
        self.log["energy"] = self.x**2 + self.v**2


def with_objects(x, n):
    p = Particle(x)
    for i in checkpointed(range(n), slots=3):
        p.step(x)
    return p.x * p.log["energy"]


def with_new_objects(x, n):
    p = Particle(x)
    for i in checkpointed(range(n), slots=2):
        q = Particle(p.x * 0.9)
        q.log["before"] = p
        q.step(p.v)
        p = q
    return p.x + p.log["before"].x * p.v


def with_a_comprehension_inside(x, n):
    total = x
    for i in checkpointed(range(n)):
        total = sum([total * 0.1 * j for j in range(4)]) + max(total, 0.5)
    return total


def over_objects(x, n):
    particles = [Particle(x * i) for i in range(3)]
    total = x
    for p in checkpointed(particles * n, slots=2):
        p.step(total)
        total = total * 0.9 + p.x
    return total * particles[0].v


def within_enumerate_and_zip(x, n):
    y = 0.0
    for k, i in enumerate(checkpointed(range(n), slots=2), start=1):
        x = x + 0.1 * math.sin(x * k) * i
    for k, (v, w) in enumerate(zip(checkpointed([x, 2.0, y]), [1.0, x, 3.0], strict=True)):
        y = y * v + w * k
    for v in reversed(checkpointed([x, y])):
        y = y * v
    return x * y


def by_keywords(x, n):
    for v in checkpointed(slots=2, iterable=[x] * n):
        x = x + 0.1 * math.sin(x * v)
    return x


PROGRAMS = [
    over_objects,
    within_enumerate_and_zip,
    by_keywords,
    carried,
    with_break_continue_else,
    with_return,
    over_a_list,
    over_an_array,
    over_zip_and_enumerate,
    nested_loops,
    in_an_ordinary_loop,
    with_closures,
    with_lists,
    with_objects,
    with_new_objects,
    with_a_comprehension_inside,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_value_and_gradient_are_those_of_the_ordinary_loop(f):
    g = plainly(f)
    for n in (1, 2, 7, 20):
        value, (slope, _) = withgradient(f, 1.3, n)
        expected, (expected_slope, _) = withgradient(g, 1.3, n)
        assert value == expected == f(1.3, n)
        assert slope == pytest.approx(expected_slope, rel=1e-13)
        assert grad(f)(1.3, n) == slope


def no_steps(x, n):
    i = 5
    for i in checkpointed(range(n)):
        x = x * 2
    else:
        x = x * x
    return x * i


def test_no_iterations():
    assert withgradient(no_steps, 3.0, 0) == (45.0, (30.0, 0.0))
    assert withgradient(no_steps, 3.0, 1) == (0.0, (0.0, 0.0))


def by_module(x):
    for _ in morula.checkpointed(range(3)):
        x = x * x
    return x


def by_import(x):
    from morula import checkpointed as kept

    for _ in kept(range(3), slots=1):
        x = x * x
    return x


def test_the_names_by_which_it_is_known():
    assert gradient(by_module, 2.0) == gradient(by_import, 2.0) == (8 * 2.0**7,)


def test_captured_names():
    from morula import checkpointed

    kept = morula

    def f(x):
        for v in checkpointed([x, 2.0, x], slots=2):
            x = x * v
        for _ in kept.checkpointed(range(2)):
            x = x * x
        return x

    assert gradient(f, 1.5)[0] == pytest.approx(12 * 16 * 1.5**11)


def test_in_a_function_that_is_called_within_with_or_try():
    def powers(x, n):
        for i in checkpointed(range(3)):
            x = x * x
            if i == n:
                raise KeyError
        return x

    def f(x):
        with np.errstate(all="ignore"):
            x = powers(x, 5)
        try:
            return powers(x, 5)
        except KeyError:
            return 0.0

    assert gradient(f, 1.01)[0] == pytest.approx(64 * 1.01**63)

    def broken_off(x):
        try:
            return powers(x, 1)
        except KeyError:
            return x * x

    with pytest.raises(UnsupportedError, match="powers was called by compiled code and raised"):
        gradient(broken_off, 1.01)


def test_something_else_of_that_name():
    def checkpointed(items, weight):
        return [weight * v for v in items]

    class Trainer:
        rate = 2.0

        def checkpointed(self, n):
            return [self.rate] * n

    trainer = Trainer()

    def f(x):
        for v in checkpointed([x, 2.0], x):
            x = x * v
        trainer.rate = x
        for v in trainer.checkpointed(2):
            try:
                x = x * v
            finally:
                pass
        return x

    assert f(1.5) == pytest.approx(8 * 1.5**12)
    assert gradient(f, 1.5)[0] == pytest.approx(96 * 1.5**11)


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 50])
def test_any_number_of_slots(slots):
    def f(x):
        for i in checkpointed(range(23), slots=slots):
            x = x + 0.1 * math.sin(x * i)
        return x

    def g(x):
        for i in range(23):
            x = x + 0.1 * math.sin(x * i)
        return x

    assert gradient(f, 1.0)[0] == pytest.approx(gradient(g, 1.0)[0], rel=1e-13)


class Runs:
    n = 0


@pytest.mark.parametrize(
    ("n", "slots", "most"), [(10, 3, 2), (56, 3, 5), (35, 4, 3), (100, 100, 1)]
)
def test_iterations_run_as_often_as_the_binomial_schedule_says(n, slots, most):
    def f(x):
        for i in checkpointed(range(n), slots=slots):
            Runs.n += 1
            x = x * 1.01
        return x

    def counted(x):
        for k, i in enumerate(checkpointed(range(n), slots=slots)):
            Runs.n += 1
            x = x * 1.01
        return x

    assert math.comb(slots + most, slots) >= n
    for loop in (f, counted):
        Runs.n = 0
        gradient(loop, 1.0)
        assert n < Runs.n <= n * (most + 1) + n


def test_random_numbers_come_again():
    def noisy(x):
        for i in checkpointed(range(9), slots=2):
            x = x * (1 + 0.1 * rng.standard_normal() + 0.1 * random.random())
        return x * random.random()

    def seed():
        rng.bit_generator.state = np.random.default_rng(7).bit_generator.state
        random.seed(7)

    seed()
    expected = noisy(1.0)
    states = rng.bit_generator.state, random.getstate()
    seed()
    assert gradient(noisy, 1.0)[0] == pytest.approx(expected, rel=1e-13)
    assert (rng.bit_generator.state, random.getstate()) == states


def test_what_is_changed_holds_in_the_end_what_it_should():
    def f(xs, d):
        for i in checkpointed(range(6), slots=2):
            xs.append(xs[-1] * 2)
            d["sum"] = d.get("sum", 0.0) + xs[-1]
        y = d["sum"] * xs[0]
        xs[:] = [0.0]
        return y

    xs, d = [3.0], {}
    y, back = pullback(f, xs, d)
    first = back(1.0)
    assert (xs, d) == ([0.0], {"sum": 378.0})
    assert first[0] == [756.0]
    assert back(1.0) == first
    assert (xs, d) == ([0.0], {"sum": 378.0})
    assert y == 1134.0


def test_all_runs_count_as_differentiated():
    def f(x):
        for i in checkpointed(range(4)):
            x = x * 2 if isderiving() else x
        return x

    assert withgradient(f, 1.0) == (16.0, (16.0,))


def test_second_derivatives():
    def f(x):
        for i in checkpointed(range(3), slots=2):
            x = x * x
        return x

    assert grad(grad(f))(1.1) == pytest.approx(56 * 1.1**6)


def test_derivatives_of_all_modes_over_items():
    def f(x):
        y = 1.0
        for v in checkpointed([x, x * x]):
            y = y * v
        return y

    def slope(x):
        return jvp(f, (x,), (1.0,))[1]

    assert slope(2.0) == 12.0
    assert grad(grad(f))(2.0) == grad(slope)(2.0) == jvp(slope, (2.0,), (1.0,))[1] == 12.0
    assert jvp(grad(f), (2.0,), (1.0,))[1] == 12.0


def test_second_derivatives_of_a_loop_with_a_list():
    def f(x):
        xs = [x]
        for i in checkpointed(range(2)):
            xs.append(xs[-1] * xs[0])
            xs[0] = xs[0] * 2
        return xs[-1]

    assert gradient(f, 3.0) == (54.0,)
    assert grad(grad(f))(3.0) == pytest.approx(36.0)


def test_memory_is_bounded():
    def of(n, slots):
        def f(x):
            for i in checkpointed(range(n), slots=slots):
                x = np.sin(x) + 0.1
            return x.sum()

        x = np.ones(10_000)
        gradient(f, x)
        tracemalloc.start()
        gradient(f, x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak / x.nbytes

    assert of(100, 5) < 25
    assert of(20, 100) > 18


def test_what_is_refused():
    with pytest.raises(ValueError, match="slots must be an int of at least 1"):
        checkpointed(range(3), slots=0)

    def passed_on(x):
        return sum([x * i for i in checked(checkpointed(range(3)))])

    def checked(items):
        return items

    with pytest.raises(UnsupportedError, match="understood as the head of a loop"):
        gradient(passed_on, 1.0)

    def with_try(x):
        for _ in checkpointed(range(3)):
            try:
                x = x * x
            finally:
                pass
        return x

    with pytest.raises(NoRuleError, match="put that part of the body into a function of its own"):
        gradient(with_try, 1.0)

    def over_a_generator(x):
        for v in checkpointed(x * i for i in range(3)):
            x = x * v
        return x

    with pytest.raises(UnsupportedError, match="make a list of it"):
        gradient(over_a_generator, 1.0)

    def over_a_zip_with_a_generator(x):
        for v, i in checkpointed(zip((x * i for i in range(3)), range(3), strict=True)):
            x = x * v
        return x

    with pytest.raises(UnsupportedError, match="make a list of it"):
        gradient(over_a_zip_with_a_generator, 1.0)

    def over_what_it_changes(x):
        xs = [x, x, x]
        for i, v in checkpointed(enumerate(xs)):
            xs[-1] = v * i
        return xs[-1]

    with pytest.raises(UnsupportedError, match="a list that the loop changes"):
        gradient(over_what_it_changes, 1.0)

    def over_a_list_that_grows(x):
        xs = [x]
        for v in checkpointed(xs):
            if len(xs) < 4:
                xs.append(v * x)
        return xs[-1]

    with pytest.raises(UnsupportedError, match="a list that the loop changes"):
        gradient(over_a_list_that_grows, 1.0)

    def in_try(x):
        try:
            for i in checkpointed(range(3)):
                x = x * x
        finally:
            pass
        return x

    with pytest.raises((UnsupportedError, NoRuleError), match="head of a loop"):
        gradient(in_try, 1.0)

    def with_try(x):
        for i in checkpointed(range(3)):
            try:
                x = x * x
            finally:
                pass
        return x

    with pytest.raises((UnsupportedError, NoRuleError), match="with try or with inside"):
        gradient(with_try, 1.0)

    def that_differs(x):
        for i in checkpointed(range(3), slots=1):
            Runs.n += 1
            x = [x[0] * Runs.n]
        return x[0]

    with pytest.raises(DifferentiationError, match="another result"):
        gradient(that_differs, [1.0])


def into_a_buffer(x, n):
    y = np.zeros(n + 1)
    y[0] = x
    for i in checkpointed(range(n), slots=2):
        y[i + 1] = math.sin(y[i]) + 0.1 * x
    return (y * y).sum()


def in_place(x, n):
    u = np.array([x, 1.0, 2.0, x * x])
    for i in checkpointed(range(n), slots=3):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u *= 1.0 + 0.01 * x
    u[0] = 5.0
    return (u**2).sum()


def with_a_scratch_array(x, n):
    scratch = np.zeros(3)
    total = x
    for i in checkpointed(range(n), slots=2):
        scratch[:] = 0.0
        scratch[i % 3] = total
        scratch += x
        total = (scratch * scratch).sum() * 0.1
    return total * scratch[1]


def with_new_arrays(x, n):
    u = np.array([x, 2.0])
    history = []
    for i in checkpointed(range(n), slots=2):
        v = np.empty(2)
        v[0] = u[1] * 0.9
        v[1] = u[0] + 0.1 * x
        if history:
            history[-1][0] *= 2.0
        history.append(v)
        u = v
    u[1] += x
    return sum(h.sum() for h in history) * u[1]


def over_rows(x, n):
    a = np.full((n, 2), x) + np.arange(2.0)
    total = x
    for row in checkpointed(a, slots=2):
        row *= total
        total = total * 0.5 + row[1]
    return total + (a * a).sum()


@pytest.mark.parametrize(
    "f", [over_rows, into_a_buffer, in_place, with_a_scratch_array, with_new_arrays]
)
def test_loops_that_write_to_arrays(f):
    g = plainly(f)
    for n in (1, 2, 7, 12):
        value, (slope, _) = withgradient(f, 0.7, n)
        expected, (expected_slope, _) = withgradient(g, 0.7, n)
        assert value == expected == f(0.7, n)
        assert slope == pytest.approx(expected_slope, rel=1e-12)


def test_an_array_that_is_an_argument():
    def f(x, u):
        y = u * 1.0
        for i in checkpointed(range(5), slots=2):
            u[1:] = u[:-1] * x
            y = y + u
        u[0] = 0.0
        return (y * u).sum()

    def g(x, u):
        y = u * 1.0
        for i in range(5):
            u[1:] = u[:-1] * x
            y = y + u
        u[0] = 0.0
        return (y * u).sum()

    u, v = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])
    (a, b), (c, d) = gradient(f, 0.9, u), gradient(g, 0.9, v)
    assert a == pytest.approx(c, rel=1e-13)
    np.testing.assert_allclose(b, d, rtol=1e-13)
    np.testing.assert_array_equal(u, v)
    _, back = pullback(f, 0.9, np.array([1.0, 2.0, 3.0]))
    first, second = back(1.0), back(1.0)
    assert first[0] == second[0] == pytest.approx(c, rel=1e-13)
    np.testing.assert_array_equal(first[1], second[1])


def test_an_array_that_seems_to_rest():
    def f(x):
        flag = np.zeros(1)
        for i in checkpointed(range(8), slots=1):
            x = x * (1.1 + flag[0])
            flag[0] = 1.0 - flag[0]
        return x

    with pytest.raises(UnsupportedError, match="holds again what it held"):
        gradient(f, 1.0)


def test_tracebacks_show_the_line_in_the_loop():
    def f(x):
        for i in checkpointed(range(3)):
            x = x / (x - x)
        return x

    with pytest.raises(ZeroDivisionError) as caught:
        gradient(f, 2.0)
    lines = [entry.lineno for entry in caught.traceback if str(entry.path) == __file__]
    first = f.__code__.co_firstlineno
    assert lines[-1] == first - 1 + 2
