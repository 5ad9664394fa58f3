"""Local functions that call themselves, with what they have captured."""

import math

import numpy as np
import pytest

import morula
from morula.core import compiled
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient
from tests.specialised import (
    POINT,
    holds_for_other_types,
    is_pulled_back_again,
    nothing_is_left_to_run_time,
)


def power(x, y):
    def f(n):
        return 1.0 if n == 0 else x * f(n - 1) + y

    return f(6)


def fibonacci(x, y):
    a = x * y

    def fib(n, start=0.5):
        if n < 2:
            return a if n else start * y
        return fib(n - 1) + x * fib(n - 2, start=0.25)

    return fib(6) + fib(3, y)


def by_turns(x, y):
    def even(n):
        return 1.0 if n == 0 else x * odd(n - 1)

    def odd(n):
        return y if n == 0 else x + even(n - 1)

    return even(5) * odd(4)


def with_a_helper(x, y):
    def square(v):
        return v * v + y

    def halved(v):
        return square(v) if v < 0.2 else halved(v / 2) * x

    return halved(x) + halved(y)


def by_a_sum(x, y):
    def f(n):
        return x if n == 0 else y * sum(f(k) for k in range(n))

    return f(4)


def by_a_list(x, y):
    def f(n):
        return x if n == 0 else sum([f(k) * y for k in range(n)])

    return f(3)


def twice_made(x, y):
    """Made anew for each call of the function around it."""

    def outer(a):
        def f(n):
            return a if n == 0 else f(n - 1) * y

        return f(3)

    return outer(x) + outer(x * y)


def in_a_loop(x, y):
    total = 0.0
    for k in range(3):
        a = x * k

        def f(n):
            return a if n == 0 else y * f(n - 1)

        total += f(k)
    return total


def of_arrays(x, y):
    w = np.array([[x, 0.1], [0.2, y]])

    def f(n):
        return np.ones(2) if n == 0 else np.tanh(w @ f(n - 1))

    return f(3).sum()


def returned(x, y):
    """It goes out of the function that made it, and is called there."""

    def make(a):
        def f(n):
            return a if n == 0 else f(n - 1) * y

        return f

    g = make(x)
    return g(2) + g(3)


def handed_on(x, y):
    def f(n):
        return x if n == 0 else f(n - 1) * y

    def twice(g, n):
        return g(n) + g(n + 1)

    return twice(f, 2)


def halves(f, a, b, depth):
    m = 0.5 * (a + b)
    if depth == 0:
        return (b - a) * f(m)
    return halves(f, a, m, depth - 1) + halves(f, m, b, depth - 1)


def given(x, y):
    return halves(lambda t: math.exp(-x * t) * y, 0.0, 2.0, 3)


def given_twice(x, y):
    """The same code with other values, with other defaults, and another function."""
    found = 0.0
    for k in (1.0, 2.0):
        found += halves(lambda t, k=k: x * t * k, 0.0, y, 2)

    def shape(k):
        def f(t):
            return math.sin(k * t)

        return f

    return found + halves(shape(x), 0.0, 1.0, 1) + halves(shape(y), 0.0, 1.0, 2)


def root(f, a, b, steps=0):
    m = 0.5 * (a + b)
    if steps == 20:
        return m - f(m) / (2.0 * m)
    return root(f, a, m, steps + 1) if f(a) * f(m) <= 0 else root(f, m, b, steps=steps + 1)


def of_a_root(x, y):
    return root(lambda t: t * t - x, 0.0, 3.0) * y


def given_by_turns(x, y):
    def f(t):
        return x * t

    def g(t):
        return y + t

    def alternate(f, g, n):
        return f(1.0) if n == 0 else g(alternate(g, f, n - 1))

    return alternate(f, g, 3)


def given_what_counts(x, y):
    n = 0.0

    def f(t):
        nonlocal n
        n += t * y
        return x * t

    return halves(f, 0.0, 1.0, 2) + n


def given_ever_new_ones(x, y):
    def nested(f, n):
        return f(x) if n == 0 else nested(lambda t: f(t) * y, n - 1)

    return nested(lambda t: t * t, 3)


def rebound_by_another(x, y):
    k = x

    def f(n):
        return k if n <= 0 else f(n - 1) * y

    def change():
        nonlocal k
        k = k * y

    before = f(1)
    change()
    return before + f(1)


def rebound_in_a_class(x, y):
    k = x

    def f(n):
        return k if n <= 0 else f(n - 1) * y

    before = f(1)

    class Change:
        nonlocal k
        k = x * x

    return before + f(1)


def kept_for_the_next_round(x, y):
    total, before = 0.0, None
    for i in range(3):
        k = x * (i + 1)

        def f(n):
            return k * y if n <= 0 else f(n - 1) + k

        if before is not None:
            total += before(1)
        total += f(2)
        before = f
    return total


def called_before_it_is_made_anew(x, y):
    total, i = 0.0, 0
    while i < 4:
        k = x * (i + 1)
        if i > 0:
            total += f(1)  # noqa: F821

        def f(n):
            return k * y if n <= 0 else f(n - 1) + k

        total += f(2)
        i += 1
    return total


def put_into_a_tuple(x, y):
    k = x

    def f(n):
        return k if n <= 0 else f(n - 1) * y

    def change(by):
        nonlocal k
        k = k * by
        return k

    pair = (f, f)
    return pair[0](2) + change(x) + pair[1](1)


def given_and_rebound(x, y):
    k = x

    def g(a):
        return k * a

    def change():
        nonlocal k
        k = k * y

    before = halves(g, 0.0, 1.0, 2)
    change()
    return before + halves(g, 0.0, 1.0, 1)


LIFTED = [
    given, of_a_root,
    power, fibonacci, by_turns, with_a_helper, by_a_sum, by_a_list, twice_made, of_arrays, returned,
    handed_on,
]  # fmt: skip


def rebound(x, y):
    """What it has captured is rebound behind it."""

    def f(n):
        return a if n == 0 else f(n - 1) * y

    a = x
    first = f(2)
    a = x * x
    return first + f(2)


def counting(x, y):
    """It rebinds what it has captured."""
    total = 0.0

    def f(n):
        nonlocal total
        total += x * n
        return y if n == 0 else f(n - 1) * y

    return f(3) + total


def mapped(x, y):
    """It is more than called."""

    def f(n):
        return x if n == 0 else y * f(n - 1)

    return sum(map(f, [1, 2, 3])) + [f][0](2)


def by_name(x, y):
    def f(*, n):
        return x if n == 0 else y * f(n=n - 1)

    return f(n=3)


def of_any_number(x, y):
    def f(*rest):
        return x if not rest else y * f(*rest[1:])

    return f(1, 2, 3)


def remembering(x, y):
    memo = {}

    def fib(n):
        if n not in memo:
            memo[n] = x if n < 2 else fib(n - 1) * y + fib(n - 2)
        return memo[n]

    return fib(6)


def noting(x, y):
    """It leaves something behind."""

    def f(n):
        NOTED.append(n)
        return x if n == 0 else y * f(n - 1)

    return f(3)


NOTED: list[int] = []


@pytest.fixture(autouse=True)
def fresh():
    """Nothing is compiled yet."""
    compiled.forget_programs()
    compiled._families.clear()


OTHERS = [
    given_what_counts,
    given_ever_new_ones,
    given_twice,
    given_by_turns,
    in_a_loop,
    rebound,
    counting,
    mapped,
    by_name,
    of_any_number,
    remembering,
    noting,
    rebound_by_another,
    rebound_in_a_class,
    kept_for_the_next_round,
    called_before_it_is_made_anew,
    put_into_a_tuple,
    given_and_rebound,
]


@pytest.mark.parametrize("f", [*LIFTED, *OTHERS])
@pytest.mark.parametrize("point", [(0.7, 1.3), (1.4, -0.6)])
def test_value_and_gradient(f, point):
    check_gradient(f, *point)
    value, gradients = morula.withgradient(f, *point)
    assert repr(value) == repr(f(*point))
    assert [type(g) for g in gradients] == [float, float]
    with by_the_general_path():
        expected = morula.gradient(f, *point)
    np.testing.assert_allclose(gradients, expected, rtol=1e-12)


@pytest.mark.parametrize("f", LIFTED)
def test_nothing_is_left_to_run_time(f):
    nothing_is_left_to_run_time(f)


@pytest.mark.parametrize("f", LIFTED)
def test_other_types_and_second_calls(f):
    holds_for_other_types(f, [POINT, (2, 1.3), POINT, (np.float64(0.7), 1)])


@pytest.mark.parametrize("f", LIFTED)
def test_pullbacks_and_directions(f):
    expected = is_pulled_back_again(f)
    for _ in range(3):
        assert morula.jvp(f, (0.7, 1.3), (1.0, 0.5))[1] == pytest.approx(expected @ (1.0, 0.5))


@pytest.mark.parametrize("f", [power, by_turns, by_a_sum])
def test_second_order(f):
    def of_one(x):
        return f(x, 1.3)

    h = 1e-5
    slope = morula.grad(of_one)
    expected = (slope(0.7 + h) - slope(0.7 - h)) / (2 * h)
    for _ in range(2):
        assert morula.hvp(of_one, 0.7, 1.0) == pytest.approx(expected, rel=1e-6)


def test_what_it_does_happens_once():
    g = morula.value_and_grad(noting, (0, 1))
    for _ in range(2):
        NOTED.clear()
        g(0.7, 1.3)
        assert NOTED == [3, 2, 1, 0]


def test_what_the_function_around_it_has_captured():
    def made(scale):
        def f(x):
            def g(n):
                return math.sin(x) if n == 0 else scale * g(n - 1)

            return g(3)

        return f

    for scale in (0.5, 2.0, 0.5):
        slope = morula.grad(made(scale))
        assert slope(0.3) == pytest.approx(scale**3 * math.cos(0.3), rel=1e-14)


def test_an_unset_variable_is_the_error_of_the_plain_call():
    def f(x):
        def g(n):
            return x if n == 0 else g(n - 1) * late

        first = g(0)
        late = 2.0
        return first + g(2)

    def too_early(x):
        value = g(2)  # noqa: F821

        def g(n):
            return x if n == 0 else g(n - 1)

        return value

    assert morula.withgradient(f, 3.0) == (15.0, (5.0,))
    for call in (too_early, morula.grad(too_early)):
        with pytest.raises(UnboundLocalError):
            call(1.0)
