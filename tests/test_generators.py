"""Generators: lazy and infinite, with send, throw, close and yield from."""

import asyncio
import contextlib
import gc
import inspect
import itertools
import math
import sys

import pytest

from morula import grad, gradient, hvp, jvp, pullback, withgradient
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


def powers(x, n):
    t = x
    for _ in range(n):
        yield t
        t = t * x


def in_a_loop(x):
    s = 0.0
    for v in powers(x, 4):
        s = s + v * x
    return s


def an_expression(x):
    return sum(v * v for v in [x, 2 * x, 3 * x] if v < 4)


def as_a_list(x):
    return sum(list(powers(x, 3)))


def unpacked_and_collected(x):
    a, b, c = powers(x, 3)
    d = dict((i, v) for i, v in enumerate(powers(x, 2)))
    first, *rest = powers(x, 4)
    return a * b + c + max(powers(x, 3)) * d[1] + first * rest[-1]


def sending(x):
    def average():
        total, n = 0.0, 0
        while True:
            v = yield total / max(n, 1)
            total = total + v
            n += 1

    a = average()
    next(a)
    a.send(x)
    a.send(x * x)
    return a.send(3 * x) ** 2


def delegating(x):
    def inner(y):
        z = yield y * 2
        return z * y

    def outer(y):
        r = yield from inner(y)
        yield r * 3

    o = outer(x)
    a = next(o)
    return a * o.send(a)


def delegating_to_a_list(x):
    def outer():
        yield from [x, x * x]
        yield from (v * x for v in (x, 2.0))

    return math.prod(outer())


def infinite(x):
    def count(y):
        while True:
            yield y
            y = y * 1.1

    s = 0.0
    for i, v in enumerate(count(x)):
        if i == 5:
            break
        s = s + v * v
    return s


def throwing(x):
    def g():
        try:
            yield x
            yield x * x
        except ValueError:
            yield x**3

    it = g()
    return next(it) * it.throw(ValueError("now"))


def zipped_and_mapped(x):
    return sum(a * b for a, b in zip(powers(x, 3), map(math.sin, powers(x, 3)), strict=True))


class Tree:
    def __init__(self, v, *kids):
        self.v = v
        self.kids = kids

    def walk(self):
        yield self.v
        for kid in self.kids:
            yield from kid.walk()


def a_recursive_generator(x):
    return math.prod(Tree(x, Tree(x * 2), Tree(x * x, Tree(3 * x))).walk())


def changing_what_is_outside(x):
    state = {"v": x}

    def g():
        for i in range(3):
            state["v"] = state["v"] * x + i
            yield state["v"]

    s = 1.0
    for v in g():
        s = s * v + state["v"]
        state["v"] = state["v"] * 2
    return s * state["v"]


def the_returned_value(x):
    def g():
        yield x
        return x * x

    it = g()
    y = next(it)
    try:
        next(it)
    except StopIteration as stop:
        return y * stop.value


def nested_loops(x):
    def g():
        for i in range(3):
            if i == 1:
                continue
            for j in range(i):
                yield x * j
            yield x * x * i

    return sum(v * v for v in g())


def keywords_and_stars(x):
    def g(a, *args, k=2.0, **kwargs):
        yield a * k
        yield from args
        yield kwargs["z"]

    return math.prod(g(x, x * x, k=x, z=3 * x))


PROGRAMS = [
    in_a_loop, an_expression, as_a_list, unpacked_and_collected, sending, delegating,
    delegating_to_a_list, infinite, throwing, zipped_and_mapped, a_recursive_generator,
    changing_what_is_outside, the_returned_value, nested_loops, keywords_and_stars,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(program):
    assert withgradient(program, 1.3)[0] == program(1.3)
    check_gradient(program, 1.3)


def test_nothing_is_consumed_that_the_plain_program_would_not_consume():
    def f(x):
        def g():
            for i in range(10**9):
                log.append(i)
                yield x * i

        it = g()
        assert not log
        next(it)
        return next(it) * x

    log = []
    assert gradient(f, 3.0) == (6.0,)
    assert log == [0, 1]


def test_it_is_pythons_own_generator():
    def f(x):
        g = powers(x, 3)
        seen.append((inspect.isgenerator(g), g.__name__, g.__qualname__))
        return next(g)

    seen = []
    gradient(f, 2.0)
    assert seen == [(True, "powers", "powers")]


def test_close_runs_what_stands_in_finally():
    def f(x):
        def g():
            try:
                yield x
                yield x
            finally:
                state["v"] = state["v"] * x
                log.append("closed")

        state = {"v": x}
        it = g()
        y = next(it)
        it.close()
        return y * state["v"]

    log = []
    assert gradient(f, 3.0) == (27.0,)
    assert log == ["closed"]


def test_an_exception_in_a_generator_that_is_caught_outside():
    def f(x):
        state = {"v": x}

        def g():
            yield x
            state["v"] = state["v"] * x
            raise KeyError

        s = 0.0
        try:
            for v in g():
                s = s + v * x
        except KeyError:
            s = s * state["v"]
        return s

    check_gradient(f, 1.3)


def test_a_stop_iteration_inside_becomes_a_runtime_error():
    def f(x):
        def g():
            yield x
            raise StopIteration

        return sum(g())

    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        gradient(f, 1.0)


def test_a_pullback_may_be_called_again():
    y, back = pullback(changing_what_is_outside, 1.5)
    assert y == changing_what_is_outside(1.5)
    assert back(1.0) == back(1.0)


def test_a_long_generator_has_no_recursion_limit():
    def f(x):
        s = 0.0
        for v in (x * i for i in range(6000)):
            s = s + v
        return s

    assert gradient(f, 1.0) == (pytest.approx(6000 * 5999 / 2),)
    gc.collect()


# -- coroutines ------------------------------------------------------------------------------------


def drive(coroutine):
    """What a coroutine returns that awaits nothing that suspends it."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError


def awaiting(x):
    async def square(y):
        return y * y

    async def main():
        a = await square(x)
        return a * await square(a + x)

    return drive(main())


class Later:
    def __init__(self, v):
        self.v = v

    def __await__(self):
        yield
        return self.v * 2

    async def __aenter__(self):
        return self.v

    async def __aexit__(self, *error):
        self.v = self.v * 3

    def __aiter__(self):
        self.n = 0
        return self

    async def __anext__(self):
        self.n += 1
        if self.n > 3:
            raise StopAsyncIteration
        return self.v * self.n


def asynchronous_with_and_for(x):
    async def main():
        later = Later(x)
        async with later as v:
            y = v * x
        async for w in later:
            y = y + w * x
        return y * await later

    coroutine = main()
    coroutine.send(None)
    return drive(coroutine)


def by_asyncio(x):
    async def slow(y):
        await asyncio.sleep(0)
        return y * y

    async def main():
        task = asyncio.create_task(slow(3 * x))
        a, b = await asyncio.gather(slow(x), slow(2 * x))
        return a * b + await task + await slow(a)

    return asyncio.run(main())


@pytest.mark.parametrize("program", [awaiting, asynchronous_with_and_for, by_asyncio])
def test_coroutines(program):
    assert withgradient(program, 1.3)[0] == program(1.3)
    check_gradient(program, 1.3)


def send_and_multiply(x):
    def g(y):
        while True:
            z = yield y * x
            y = y * z

    it = g(x)
    a = next(it)
    return it.send(a * x) * it.send(a)


def closed_with_a_handler(x):
    def g():
        total = 0.0
        try:
            while True:
                total += yield total * x
        except GeneratorExit:
            seen.append(total * total)
            raise

    seen = []
    it = g()
    next(it)
    first = it.send(x)
    it.close()
    return seen[0] * first


def thrown_and_handled(x):
    def g():
        v = x
        while True:
            try:
                v = yield v * x
            except ValueError as error:
                v = error.args[0] * v

    it = g()
    return next(it) * it.throw(ValueError(x * x)) * it.send(x)


@pytest.mark.parametrize("program", [closed_with_a_handler, thrown_and_handled])
def test_second_derivatives_through_exceptions_that_are_sent(program):
    check_gradient(program, 1.3)
    check_gradient(grad(program), 1.3)
    check_gradient(lambda x: jvp(program, (x,), (1.0,))[1], 1.3)


@pytest.mark.parametrize("program", [an_expression, delegating_to_a_list, send_and_multiply])
def test_second_derivatives(program):
    check_gradient(grad(program), 1.3)


@pytest.mark.thorough
def test_third_derivatives():
    def f(x):
        return sum(v * v * x for v in [x, 2 * x])

    assert grad(grad(grad(f)))(1.2) == pytest.approx(30)


def numbers_from_elsewhere(n):
    total = 0.0
    for i in range(n):
        total += yield i
    return total


def test_what_a_generator_from_elsewhere_returns_is_its_value():
    def f(x):
        def inner():
            found = yield from given
            kept.append(found)
            yield found

        steps = inner()
        next(steps)
        steps.send(2.5)
        return x * x

    kept = []
    given = numbers_from_elsewhere(1)
    assert withgradient(f, 3.0) == (9.0, (6.0,))
    given = numbers_from_elsewhere(1)
    assert jvp(f, (3.0,), (1.0,)) == (9.0, 6.0)
    assert kept == [2.5, 2.5]


async def squares(x, n):
    for i in range(n):
        yield x * i


def test_asynchronous_generators_under_asyncio():
    def f(x):
        async def main():
            return sum([v async for v in squares(x, 3)])

        return asyncio.run(main())

    kept = []

    def beside(x):
        async def main():
            kept.append(sum([v async for v in squares(2, 3)]))
            return x * x

        return asyncio.run(main())

    assert gradient(f, 0.5) == (3.0,)
    assert jvp(f, (0.5,), (1.0,)) == (1.5, 3.0)
    assert withgradient(beside, 3.0) == (9.0, (6.0,))
    assert kept == [6]


def numbered(k):
    def numbers(n):
        for i in range(n):
            yield i, k

    return numbers


threes = numbered(3.0)


def test_a_generator_that_is_made_of_constants_is_followed_by_programs(path):
    def f(x):
        return sum(x * i * j + x**3 * j for i, j in threes(4))

    assert gradient(f, 2.0) == (pytest.approx(18.0 + 12 * 12.0),)


# -- loops that leave a generator before its end ---------------------------------------------------


def numbered(log, x):
    try:
        k = 0
        while True:
            k += 1
            yield x * k
    finally:
        log.append("closed")


@contextlib.contextmanager
def noted(log):
    log.append("opened")
    yield
    log.append("closed")


def within(log, x):
    with noted(log):
        yield x
        yield x * x


class Source:
    def __init__(self, log, x):
        self.log, self.x = log, x
        self.shared = numbered(log, x)

    def items(self):
        return self.shared

    def own(self):
        yield from numbered(self.log, self.x)


def left_by_break(log, x):
    s = 0.0
    for v in numbered(log, x):
        s += v * v
        if v > 3.0:
            break
    log.append("after")
    return s


def left_at_once(log, x):
    for v in within(log, x):
        log.append("in it")
        break
    log.append("after")
    return v * v


def left_by_return(log, x):
    def first(limit):
        for v in numbered(log, x):
            if v > limit:
                return v

    y = first(2.0)
    log.append("between")
    return y * first(3.0)


def left_from_within(log, x):
    s = 0.0
    for k in range(2):
        for v in numbered(log, x):
            for w in Source(log, v).own():
                s += v * w
                if w > 2.0:
                    break
            if v > 2.0:
                break
        log.append(k)
    return s


def left_in_protected_code(log, x):
    try:
        for v in numbered(log, x):
            if v > 3.0:
                raise ValueError
    except ValueError:
        log.append("handled")
    try:
        for w in numbered(log, v):
            if w > 9.0:
                break
    finally:
        log.append("after")
    return v * w


def that_have_names(log, x):
    it = numbered(log, x)
    for v in it:
        if v > 3.0:
            break
    log.append("still open")
    w = next(it)
    it.close()
    return v * w


def that_others_hold(log, x):
    source = Source(log, x)
    for v in source.items():
        break
    for w in source.items():
        break
    log.append("still open")
    source.shared.close()
    return v * w


def whose_end_changes_numbers(log, x):
    state = [x]

    def states():
        try:
            while True:
                yield state[0]
        finally:
            state[0] = state[0] * 3.0

    for v in states():
        break
    return state[0] * v


LEFT = [
    left_by_break, left_at_once, left_by_return, left_from_within, left_in_protected_code,
    that_have_names, that_others_hold, whose_end_changes_numbers,
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT)
def test_generators_that_loops_leave_end_when_they_do_in_plain_code(f):
    expected = []
    y = f(expected, 1.3)
    slope = (f([], 1.3 + 1e-6) - f([], 1.3 - 1e-6)) / 2e-6
    log = []
    found, (x̄,) = withgradient(lambda x: f(log, x), 1.3)
    assert (found, log) == (y, expected)
    assert x̄ == pytest.approx(slope, rel=1e-6)
    log.clear()
    assert jvp(lambda x: f(log, x), (1.3,), (1.0,)) == pytest.approx((y, slope), rel=1e-6)
    assert log == expected
    log.clear()
    found, back = pullback(lambda x: f(log, x), 1.3)
    assert (found, log) == (y, expected)
    assert back(1.0) == back(1.0) == (x̄,)


class Managing:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


def halving(x):
    while True:
        yield x
        x = x * 0.5


def every_other(xs):
    wanted = 0
    for position, x in enumerate(xs):
        if position == wanted:
            yield x
            wanted += 2


def first_of_two_within_with(xs):
    with Managing():
        a = next(xs)
    return a * next(xs)


def second_of_two_within_with(xs):
    a = next(xs)
    with Managing():
        return a * next(xs)


def second_of_two_within_try(xs):
    a = next(xs)
    try:
        b = next(xs)
    except KeyError:
        b = 1.0
    return a * b + next(xs)


@pytest.mark.parametrize("make", [every_other, lambda xs: itertools.islice(xs, 1, 9, 2)])
@pytest.mark.parametrize(
    "take", [first_of_two_within_with, second_of_two_within_with, second_of_two_within_try]
)
def test_steps_in_and_out_of_protected_code(make, take, path):
    def f(x):
        return take(make(halving(x)))

    x, h = 1.3, 1e-6
    slope = pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-8)
    assert withgradient(f, x) == (f(x), (slope,))
    assert jvp(f, (x,), (1.0,)) == (f(x), slope)


# -- exceptions of generators that were sent something ---------------------------------------------


def returning_what_was_sent(x):
    def sums():
        total = 0.0
        for _ in range(3):
            total = total + (yield total) * x
        return total * x

    it = sums()
    next(it)
    s, v = 0.0, x
    try:
        while True:
            v = it.send(2 * v)
            s += v
    except StopIteration as stop:
        return s + stop.value


def raising_what_was_sent(x):
    def raising():
        raise ValueError((yield x) * x)

    it = raising()
    first = next(it)
    try:
        it.send(first * x)
    except ValueError as error:
        return error.args[0] * first


def raising_through_a_delegation(x):
    def inner():
        raise ValueError((yield x) * x)

    def outer():
        try:
            yield from inner()
        except ValueError as error:
            return (yield error.args[0]) * x

    it = outer()
    second = it.send(next(it) * 3)
    try:
        it.send(second * x)
    except StopIteration as stop:
        return stop.value


class Scaling:
    """An iterator with a `send` of its own, which returns a value in the end."""

    def __init__(self, x):
        self.x = x
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        return 1.0

    def send(self, v):
        self.n += 1
        if self.n > 2:
            raise StopIteration(v * self.x)
        return v * self.x


def delegating_to_an_object(x):
    def outer():
        return (yield from Scaling(x)) * x

    it = outer()
    v, s = next(it), 0.0
    try:
        while True:
            v = it.send(v * x)
            s += v
    except StopIteration as stop:
        return s + stop.value


class Asking:
    def __init__(self, x):
        self.x = x

    def __await__(self):
        return (yield self.x) * self.x


def a_loop_by_hand(x):
    async def asking():
        first = await Asking(x)
        return first * await Asking(first * x)

    coroutine = asking()
    v = coroutine.send(None)
    try:
        while True:
            v = coroutine.send(2 * v)
    except StopIteration as stop:
        return stop.value


SENT = [
    returning_what_was_sent,
    raising_what_was_sent,
    raising_through_a_delegation,
    delegating_to_an_object,
    a_loop_by_hand,
]


@pytest.mark.parametrize("program", SENT)
def test_what_was_sent_to_a_generator_that_raises(program):
    value, (slope,) = withgradient(program, 1.3)
    assert value == program(1.3)
    assert slope == pytest.approx((program(1.3 + 1e-5) - program(1.3 - 1e-5)) / 2e-5)
    assert jvp(program, (1.3,), (1.0,)) == (value, pytest.approx(slope))


@pytest.mark.parametrize("program", SENT)
def test_second_derivatives_of_what_was_sent(program):
    def pushed(x):
        return jvp(program, (x,), (1.0,))[1]

    first = grad(program)
    second = pytest.approx((first(1.3 + 1e-5) - first(1.3 - 1e-5)) / 2e-5)
    assert grad(first)(1.3) == second
    assert grad(pushed)(1.3) == second
    assert hvp(program, 1.3, 1.0) == second


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it warns since 3.12")
def test_throwing_a_class_and_a_value():
    def f(x):
        def g():
            try:
                yield x
            except ValueError as error:
                yield error.args[0]

        it = g()
        next(it)
        return it.throw(ValueError, x * x)

    assert gradient(f, 1.5) == (3.0,)
    assert jvp(f, (1.5,), (1.0,)) == (2.25, 3.0)


def test_third_derivatives_of_sums_over_generators():
    """Variables that a step has not bound yet are parts of its frame, which is data there."""

    def f(x):
        return sum(v * x for v in (x, 1.0)) ** 2

    assert grad(grad(grad(f)))(0.7) == pytest.approx(24 * 0.7 + 12)
