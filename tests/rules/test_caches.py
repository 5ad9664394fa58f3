"""Tests of morula/rules/caches.py: functions with a cache that call others, and themselves."""

import functools
import math
import threading

import numpy as np
import pytest

from morula import DifferentiationError, grad, gradient, hessian, jvp


def fibonacci(n, x):
    return x if n < 2 else fibonacci(n - 1, x) * x + fibonacci(n - 2, x)


def with_cache(calls=None):
    """The same with a cache; `calls` is the list of its calls."""

    @functools.lru_cache(None)
    def f(n, x):
        if calls is not None:
            calls.append(n)
        return x if n < 2 else f(n - 1, x) * x + f(n - 2, x)

    return f


def test_a_function_that_calls_itself_runs_as_often_as_its_cache_lets_it():
    calls = []
    f = with_cache(calls)
    assert gradient(lambda x: f(10, x), 1.1) == pytest.approx(
        gradient(lambda x: fibonacci(10, x), 1.1), rel=1e-14
    )
    assert calls == list(range(10, -1, -1))
    gradient(lambda x: f(60, x), 1.1)  # for ever, if calls were not shared
    gradient(lambda x: f(60, x), 1.1)


def test_what_a_cached_function_does_happens_once():
    for transform in (gradient, lambda f, x: jvp(f, (x,), (1.0,))):
        seen = []

        @functools.lru_cache
        def f(x):
            seen.append(x * x)
            return x * 3.0

        def loss(x):
            y = f(x)
            return y * seen[0] * f(x + 1.0) * len(seen)

        plain = loss(2.0)
        f.cache_clear()
        seen.clear()
        found = transform(loss, 2.0)
        slope = (4 * 2.0**3 + 3 * 2.0**2) * 18.0  # of 18 x^3 (x + 1)
        assert found == ((slope,) if len(found) == 1 else (plain, slope))
        assert seen == [4.0, 9.0]
        assert f.cache_info()[:2] == (0, 2)


def test_other_threads_call_the_function_itself():
    inside, on = threading.Event(), threading.Event()
    others = []

    class Key:
        """Its hash is asked for while another function stands in the place of the cached one."""

        def __hash__(self):
            inside.set()
            on.wait(10)
            return 1

    def plain(key, x):
        return x * x

    f = functools.cache(plain)

    def other():
        inside.wait(10)
        others.append(plain(None, 3.0))
        on.set()

    thread = threading.Thread(target=other)
    thread.start()
    key = Key()
    assert gradient(lambda x: f(key, x), 2.0) == (4.0,)
    thread.join()
    assert others == [9.0]


def test_deep_recursion():
    @functools.cache
    def f(n, x):
        return x if n == 0 else f(n - 1, x) * 1.001

    assert gradient(lambda x: f(300, x), 2.0)[0] == pytest.approx(1.001**300, rel=1e-12)
    assert gradient(lambda x: f(300, x), 2.0)[0] == pytest.approx(1.001**300, rel=1e-12)


def test_a_cached_function_without_code_of_its_own():
    assert gradient(functools.cache(math.sin), 2.0) == (math.cos(2.0),)
    assert jvp(functools.cache(math.sin), (2.0,), (1.0,)) == (math.sin(2.0), math.cos(2.0))


def test_forward_mode_shares_calls_with_equal_tangents():
    calls = []
    f = with_cache(calls)
    expected = jvp(lambda x: fibonacci(10, x), (1.1,), (2.0,))
    assert jvp(lambda x: f(10, x), (1.1,), (2.0,)) == pytest.approx(expected, rel=1e-14)
    assert calls == list(range(10, -1, -1))
    f = with_cache()
    jvp(lambda x: f(60, x), (1.1,), (2.0,))  # for ever, if calls were not shared
    _, ẏ = jvp(lambda x, y: f(3, x) * f(3, y), (1.1, 1.1), (2.0, 0.0))
    slope = grad(lambda x: fibonacci(3, x))(1.1)
    assert ẏ == pytest.approx(2.0 * slope * fibonacci(3, 1.1), rel=1e-14)


def test_second_derivatives():
    f = with_cache()
    expected = grad(grad(lambda x: fibonacci(6, x)))(1.1)
    assert grad(grad(lambda x: f(6, x)))(1.1) == pytest.approx(expected, rel=1e-12)
    assert hessian(lambda x: f(6, x), 1.1) == pytest.approx(expected, rel=1e-12)


def test_what_a_cached_function_captures():
    def loss(x):
        @functools.cache
        def f(n):
            return x if n < 2 else f(n - 1) * x + f(n - 2)

        return f(30)

    def plain(x):
        a = b = x
        for _ in range(29):
            a, b = b, b * x + a
        return b

    assert gradient(loss, 1.1) == pytest.approx(gradient(plain, 1.1), rel=1e-13)


def test_ways_by_index_into_a_captured_array():
    def ways(weights, cached):
        def count(i, left):
            if left == 0:
                return 1.0
            if i == len(weights):
                return 0.0
            return weights[i] * count(i, left - 1) + count(i + 1, left)

        if cached:
            count = functools.cache(count)
        return count(0, 8)

    weights = np.array([0.5, 0.25, 0.3])
    expected = gradient(lambda w: ways(w, cached=False), weights)[0]
    np.testing.assert_allclose(gradient(lambda w: ways(w, True), weights)[0], expected, rtol=1e-13)
    found = gradient(lambda w: ways(w, True), list(weights))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_equal_numbers_from_different_places_are_two():
    @functools.cache
    def square(x):
        return x * x

    @functools.cache
    def outer(x, y):
        return square(x) * square(y) * square(2.0)

    for _ in range(2):
        assert gradient(outer, 2.0, 2.0) == (64.0, 64.0)
        assert gradient(lambda x, y: outer(x, y) + outer(y, x), 2.0, 2.0) == (128.0, 128.0)
        assert gradient(lambda xs: outer(*xs), [2.0, 2.0]) == ([64.0, 64.0],)


def test_what_an_integer_gets_is_found_without_sharing():
    @functools.cache
    def hermite(n, x):
        if n < 2:
            return (2 * x) ** n
        return 2 * x * hermite(n - 1, x) - 2 * (n - 1) * hermite(n - 2, x)

    def without(n, x):
        if n < 2:
            return (2 * x) ** n
        return 2 * x * without(n - 1, x) - 2 * (n - 1) * without(n - 2, x)

    assert gradient(hermite, 5, 0.7) == pytest.approx(gradient(without, 5, 0.7), rel=1e-12)
    assert grad(hermite, argnums=1)(5, 0.7) == pytest.approx(
        grad(without, argnums=1)(5, 0.7), rel=1e-12
    )


def test_an_integer_that_a_cached_function_captures_is_no_silent_zero():
    def loss(x, cached):
        def square(i):
            return i * i

        if cached:
            square = functools.cache(square)

        def outer(_):
            return square(x) * square(3) * 1.0

        if cached:
            outer = functools.cache(outer)
        return outer(1)

    assert gradient(lambda x: loss(x, cached=False), 3) == (54.0,)
    with pytest.raises(DifferentiationError, match="by an integer"):
        gradient(lambda x: loss(x, cached=True), 3)


def test_by_keywords_and_default_values():
    def mixed(f):
        def g(n, x, y=1.0, *, z=2.0):
            if n < 2:
                return x * y
            return g(n - 1, x, z=z) * x + g(n - 2, x, y * z, z=z) * g(n - 1, y, x, z=z)

        g = f(g)
        return lambda x, y, z: g(4, x, y, z=z)

    expected = gradient(mixed(lambda g: g), 1.1, 1.1, 1.1)
    assert gradient(mixed(functools.cache), 1.1, 1.1, 1.1) == pytest.approx(expected, rel=1e-13)


def test_after_an_exception_calls_are_not_shared_with_those_of_before():
    fail = [False]

    @functools.cache
    def inner(x):
        return x * x

    @functools.cache
    def outer(x):
        y = inner(x)
        if fail[0]:
            raise ValueError(x)
        return y * inner(x)

    outer(3.0)
    fail[0] = True
    with pytest.raises(ValueError, match=r"3\.0"):
        gradient(outer, 3.0)
    fail[0] = False
    assert gradient(outer, 3.0) == (108.0,)
    assert gradient(lambda x: inner(x) + outer(x), 3.0) == (114.0,)


def test_objects_are_one_if_they_are_the_same():
    class Model:
        def __init__(self, w):
            self.w = w

        @functools.lru_cache(None)  # noqa: B019, of an object that lives as long
        def f(self, n):
            return self.w if n < 2 else self.f(n - 1) * self.w + self.f(n - 2)

    expected = gradient(lambda x: fibonacci(20, x), 1.1)
    assert gradient(lambda w: Model(w).f(20), 1.1) == pytest.approx(expected, rel=1e-13)
    found = gradient(lambda m: m.f(20), Model(1.1))[0]
    assert found.w == pytest.approx(expected[0], rel=1e-13)
