"""Generators that become part of the loops over them: the same as on the general path."""

import copy
import itertools
import math

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.core.bytecode.lower import lower
from morula.core.generators import make_generator
from morula.testing import check_gradient


def several(x, n):
    yield x
    for i in range(n):
        yield x * i
    yield math.sin(x)


def endless(a, b):
    x = 1.0
    while True:
        yield x
        x = x + 0.1 * (a - b * x)


def squares(xs):
    for x in xs:
        if x > 0:
            yield x * x


def sums(xs):
    s = 0.0
    for x in xs:
        s = s + x
        yield s


def returning(x, n):
    for i in range(n):
        if i == 4:
            return
        yield x**i


def left_early(a, b):
    total = 0.0
    for x in endless(a, b):
        if x > 1.6:
            break
        total += (x - 1.5) ** 2
    return total * x


def with_else(x, n):
    total, last = 0.0, 0.0
    for v in several(x, n):
        if v > 100:
            break
        if v < 0:
            continue
        total += v * v - last
        last = v
    else:
        total *= 2.0
    return total + last


def returned_from_the_loop(x):
    for v in several(x, 5):
        if v > 3.0:
            return v * x
    return x


def of_a_generator(x):
    total = 1.0
    for v in sums(squares([x, -2.0, 0.5, x * x])):
        total += v * total
    return total


def expression(x):
    total = 0.0
    for v in (x * k for k in range(-1, 4) if k > 0):
        total += v**2
    return total


def loops_in_loops(x, n):
    total = 0.0
    for i in range(n):
        for v in several(x + i, i):
            for w in (v * k for k in range(3)):
                if w > 10:
                    break
                total += w
    return total


def ended_by_return(x, n):
    total = 0.0
    for v in returning(x, n=n):
        total += v
    return total


def shared_variable(x, n):
    count = 0.0

    def counting(k=2.0):
        nonlocal count
        for _ in range(n):
            count = count + x
            yield count * k

    total = 0.0
    for v in counting():
        total += v * count
    return total


def first_only(x):
    for v in endless(x, 0.5):
        break
    return v * x


def last_item(x, n):
    for v in several(x, n):
        pass
    return v * 2


def nothing_sent(x, n):
    def asking():
        for i in range(n):
            sent = yield x * i
            if sent is not None:
                yield 1000.0

    total = 0.0
    for v in asking():
        total += v
    return total


def delegating(x, n):
    def all_of_them():
        yield from several(x, n)
        yield x**3

    total = 0.0
    for v in all_of_them():
        total = total + v * total * 0.1 + v
    return total


def arrays(x, n):
    def steps():
        w = np.ones(3) * x
        for _ in range(n):
            yield w
            w = np.cos(w) * x

    total = 0.0
    for w in steps():
        total = total + w @ w
    return total


def made_before(x, n):
    made = several(x, n)
    x = x * 100.0
    total = x
    for v in made:
        total += v
    return total


def alternating(x, y):
    while True:
        yield x
        x = x * y
        yield x * x


def greatest_of_some(x, y):
    return max(itertools.islice(alternating(x, y), 5))


def sum_of_some(x, y):
    return sum(itertools.islice(alternating(x, y), 3))


def list_of_some(x, y):
    xs = list(itertools.islice(alternating(x, y), 5))
    return xs[0] * xs[3] + xs[1] * xs[4] + xs[2]


PROGRAMS = [
    (left_early, (1.0, 0.5)),
    (with_else, (1.3, 4)),
    (with_else, (11.3, 40)),
    (with_else, (-1.3, 4)),
    (returned_from_the_loop, (1.3,)),
    (returned_from_the_loop, (0.3,)),
    (of_a_generator, (0.7,)),
    (expression, (0.7,)),
    (loops_in_loops, (0.7, 4)),
    (ended_by_return, (0.7, 8)),
    (ended_by_return, (0.7, 2)),
    (ended_by_return, (0.7, 0)),
    (shared_variable, (0.7, 4)),
    (first_only, (0.7,)),
    (last_item, (0.7, 3)),
    (nothing_sent, (0.7, 3)),
    (delegating, (0.7, 3)),
    (arrays, (0.7, 5)),
    (made_before, (0.7, 3)),
    (greatest_of_some, (1.7, 0.4)),
    (greatest_of_some, (1.7, 1.4)),
    (sum_of_some, (1.7, 0.4)),
    (list_of_some, (1.7, 0.4)),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_value_and_gradient(f, args):
    value, gradient = morula.value_and_grad(f)(*args)
    assert value == f(*args)
    with compiled.by_the_general_path():
        general = morula.grad(f)(*args)
    np.testing.assert_allclose(gradient, general, rtol=1e-13)
    check_gradient(lambda x: f(x, *args[1:]), args[0])


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_no_generator_is_left(f, args):
    adjoint = morula.code_adjoint(f, *args)
    assert adjoint.kind.startswith("specialised")
    assert not adjoint.left
    assert "make_generator" not in str(adjoint)


def test_what_happens_happens_in_order():
    log = []

    def f(x, n):
        def giving():
            log.append("begin")
            for i in range(3):
                log.append(("give", i))
                yield x * i
            log.append("end")

        made = giving()
        log.append("made")
        total = 0.0
        for v in made:
            log.append(("took", v))
            total += v * v
            if total > n:
                break
        return total

    for n in (0.5, 100.0):
        f(1.5, n)
        expected, log[:] = copy.copy(log), []
        assert morula.grad(f)(1.5, n) == pytest.approx(2 * f(1.5, n) / 1.5)
        assert log == expected * 2
        log[:] = []


def test_two_loops_over_one_generator_share_it():
    def f(x):
        made = several(x, 4)
        total = 0.0
        for v in made:
            total += v
            if v > 1:
                break
        for v in made:
            total += v * v
        return total

    check_gradient(f, 0.7)


def test_a_loop_that_is_entered_again_goes_on_with_its_generator():
    def f(x):
        made = iter(several(x, 6))
        total = 0.0
        for k in range(3):
            for v in made:
                total += v * (k + 1)
                if v > k:
                    break
        return total

    check_gradient(f, 0.7)


def test_what_is_done_when_a_generator_is_left_early():
    log = []

    def closing(x):
        try:
            for i in range(10):
                yield x * i
        finally:
            log.append("closed")

    def f(x):
        total = 0.0
        for v in closing(x):
            total += v
            if v > 2:
                break
        return total

    assert morula.grad(f)(0.7) == 6.0
    assert log == ["closed"]


def test_exceptions_leave_both():
    def failing(x):
        yield x
        raise KeyError("no more")

    def f(x):
        total = 0.0
        for v in failing(x):
            total += v
        return total

    with pytest.raises(KeyError, match="no more"):
        morula.grad(f)(0.7)

    def handled(x):
        total = 0.0
        try:
            for v in failing(x):
                total += v
        except KeyError:
            total *= 3
        return total

    assert morula.grad(handled)(0.7) == 3.0


def test_stop_iteration_inside_is_another_error():
    def taking(x):
        while True:
            yield x * next(iter([]))

    def f(x):
        return sum([v for v in taking(x)])

    def by_loop(x):
        total = 0.0
        for v in taking(x):
            total += v
        return total

    for g in (f, by_loop):
        with pytest.raises(RuntimeError, match="StopIteration"):
            morula.grad(g)(0.7)


def test_the_lowered_form_still_makes_a_generator():
    ir = lower(several.__code__, several.__globals__)
    assert any(c.primitive is make_generator for c in ir.calls())
