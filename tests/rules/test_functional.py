"""sum, min, max, sorted, reduce."""

# ruff: noqa: B905

import functools
import math
import operator
import typing
from fractions import Fraction

import numpy as np
import pytest

from morula import code_adjoint, gradient, pullback
from morula.testing import check_gradient
from tests.modes import check_modes

pytestmark = pytest.mark.usefixtures("path")


class Vector:
    def __init__(self, a, b):
        self.a = a
        self.b = b

    def __add__(self, other):
        return Vector(self.a + other.a, self.b * other.b)

    def __radd__(self, other):
        return Vector(self.a + other, self.b)

    def __lt__(self, other):
        return self.a < other.a

    def __gt__(self, other):
        return self.a > other.a


def sums(x, y):
    xs = [x, y, x * y]
    v = sum([Vector(x, y), Vector(y, x)])
    return (
        sum(xs) * sum((x, y), y)
        + sum(map(lambda v: v * v, xs), start=x)
        + sum([np.float64(1.0) * x, y, 2]) * sum({"a": x, "b": y}.values())
        + sum([np.array([x, y]), np.array([y, y])]).sum()
        + v.a * v.b
        + sum([(x,), (y, y)], (1.0,))[1]
        + sum([])
    )


def extremes(x, y):
    xs = [x, -y, x * y, 0.5]
    return (
        max(xs) * min(xs)
        + max(xs, key=lambda v: v * v)
        + min(x * x, y * y, key=lambda v: -v) * max((x, y))
        + max([], default=x * y)
        + max({"a": x, "b": y}.values())
        + min(map(lambda v: v * v, xs))
        + max([Vector(x, y), Vector(y, x * 3)]).b
        + max([(1, x), (0, y)])[1]
        + min(np.array([x, y, -x]))
    )


def sorting(x, y):
    xs = [x, -y, x * y, 0.5]
    a = sorted(xs)
    b = sorted(xs, key=lambda v: v * v, reverse=True)
    c = sorted({"b": x, "a": y}.items())
    d = sorted([Vector(x, y), Vector(-y, x)])
    e = sorted(zip([2, 1], (x, y)), key=operator.itemgetter(0))
    ys = list(xs)
    ys.sort(reverse=True)
    return a[0] * b[0] + a[1] * b[-1] + c[0][1] * c[1][1] ** 2 + d[0].b + e[0][1] * ys[0] * ys[-1]


def folds(x, y):
    xs = [x, y, x * y]
    return (
        functools.reduce(lambda a, b: a * b + x, xs)
        + functools.reduce(operator.mul, xs, y)
        + functools.reduce(max, xs)
        * functools.reduce(lambda a, b: a + [b * a[-1]], (x, y), [y])[-1]
        + functools.reduce(lambda a, b: (b, a[0] * b), map(lambda v: v * x, xs), (1.0, y))[1]
    )


@pytest.mark.parametrize("program", [sums, extremes, sorting, folds])
def test_the_gradient_agrees_with_differences(program):
    check_gradient(program, 0.7, 1.3)


def test_the_first_of_equals_is_chosen():
    assert gradient(lambda x, y: max([x, y]), 1.0, 1.0) == (1.0, 0.0)
    assert gradient(lambda x, y: min([x, y]), 1.0, 1.0) == (1.0, 0.0)
    assert gradient(lambda x, y: max(x, y, key=abs), -1.0, 1.0) == (1.0, 0.0)
    assert gradient(lambda x, y: sorted([x, y])[0], 1.0, 1.0) == (1.0, 0.0)
    assert gradient(lambda x, y: sorted([x, y], reverse=True)[0], 1.0, 1.0) == (1.0, 0.0)


def test_sums_keep_the_type_of_their_items():
    assert gradient(lambda xs: sum(xs), [Fraction(1, 2), Fraction(1, 3)]) == (
        [Fraction(1), Fraction(1)],
    )
    assert gradient(lambda xs: sum(xs).real, [1j, 2.0]) == ([1 + 0j, 1.0],)
    xs = [0.1] * 10
    assert pullback(lambda xs: sum(xs), xs)[0] == sum(xs)


def test_keys_are_called_once_each_in_order():
    log = []

    def key(name):
        def noting(v):
            log.append((name, v))
            return -v

        return noting

    def f(x):
        a = max(map(key("m"), [x, 2 * x]), key=key("k"))
        b = sorted([x, 3 * x], key=key("s"))[0]
        return a * b + functools.reduce(lambda u, v: key("r")(u * v), map(key("q"), [x, x, x]))

    f(1.0)
    expected = list(log)
    log.clear()
    y, _ = pullback(f, 1.0)
    assert log == expected
    assert y == f(1.0)


def test_errors_are_those_of_the_plain_call():
    with pytest.raises(ValueError, match=r"max\(\) (arg|iterable argument) is"):
        gradient(lambda x: max([]), 1.0)
    with pytest.raises(TypeError, match=r"reduce\(\) of empty (sequence|iterable)"):
        gradient(lambda x: functools.reduce(operator.add, []), 1.0)
    with pytest.raises(TypeError, match=r"can't sum strings"):
        gradient(lambda x: sum(["a"], "b"), 1.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        gradient(lambda x: sum([x, None]), 1.0)
    with pytest.raises(TypeError, match="not supported between"):
        gradient(lambda x: sorted([x, "a"]), 1.0)
    with pytest.raises(TypeError, match="default"):
        gradient(lambda x: max(x, x, default=1.0), 1.0)


def test_decorators_that_are_applied_inside():
    def scaled(k):
        def decorate(f):
            @functools.wraps(f)
            def inner(*args, **kwargs):
                return k * f(*args, **kwargs)

            return inner

        return decorate

    def f(x):
        @scaled(x)
        def cube(y):
            return y**3

        return cube(x)

    def named(x):
        @scaled(x)
        def cube(y):
            return y**3

        return cube(x) * len(cube.__name__) * len(cube.__wrapped__.__name__)

    check_gradient(f, 1.3)
    check_gradient(named, 1.3)
    assert "0 calls are resolved" in str(code_adjoint(f, 1.3))


def test_reductions_of_lists_from_outside():
    def by_function(xs):
        return functools.reduce(lambda a, b: a * b + 1, xs)

    def by_operator(xs):
        return functools.reduce(operator.mul, xs) + functools.reduce(operator.add, xs, 2.0)

    def of_a_list_that_grows(xs):
        def step(a, b):
            if len(xs) < 5:
                xs.append(a)
            return a * b

        return functools.reduce(step, xs)

    for f in (by_function, by_operator, of_a_list_that_grows):
        for xs in ([2.0], [1.5, 2.0, -3.0], [1, 2.5]):
            check_gradient(f, xs)
        with pytest.raises(TypeError, match="empty iterable"):
            gradient(f, [])
    assert "0 calls are resolved" in str(code_adjoint(by_operator, [1.0, 2.0]))


Metres = typing.NewType("Metres", float)
Several = typing.NewType("Several", list)


class Sine:
    __call__ = math.sin


def filled(x):
    xs = Several([x])
    operator.call(xs.append, x * x)
    return xs[0] * xs[1]


HANDED_ON = {
    "new type": lambda x: Metres(x * x) * x,
    "new type that is mapped": lambda x: sum(map(Metres, [x, x * x])) * x,
    "new type of a new type": lambda x: typing.NewType("Long", Metres)(Metres(x)) ** 3,
    "call of a function": lambda x: operator.call(lambda a, b: a * b**2, x, b=x * x),
    "call of what is compiled": lambda x: operator.call(math.sin, x) * operator.call(Metres, x),
    "filled list": filled,
    "builtin function in the place of a method": lambda x: Sine()(x) * x,
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_what_only_hands_on(name):
    check_modes(HANDED_ON[name], 1.3)
