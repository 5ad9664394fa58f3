"""Derivatives that take several runs of a function are those of one run, and leave what one leaves."""

import random

import numpy as np
import pytest

from morula import (
    UnsupportedError,
    diaghessian,
    forwarddiff,
    grad,
    gradient,
    hessian,
    jacobian,
    jvp,
)
from morula.mixed_mode.directions import AT_ONCE
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")
X = np.array([1.0, 2.0, 3.0])


def drawn(x):
    return x**3 * np.random.normal(size=3) + random.random() * x


def draws():
    np.random.seed(3)
    random.seed(4)
    return np.random.normal(size=3), random.random(), np.random.rand(), random.random()


@pytest.mark.parametrize(
    "slopes",
    [
        lambda: np.diag(jacobian(drawn, X, mode="forward")[0]),
        lambda: np.diag(jacobian(drawn, X)[0]),
        lambda: np.diag(jacobian(drawn, X, mode="reverse")[0]),
        lambda: jacobian(drawn, X, sparsity="auto")[0].diagonal(),
        lambda: gradient(lambda x: forwarddiff(drawn, x).sum(), X)[0],
    ],
)
def test_all_runs_draw_the_same_random_numbers(slopes):
    normal, uniform, *after = draws()
    np.random.seed(3)
    random.seed(4)
    found = slopes()
    assert [np.random.rand(), random.random()] == after
    np.testing.assert_allclose(found, 3 * X**2 * normal + uniform)


@pytest.mark.parametrize("second", [lambda f: np.diag(hessian(f, X)), lambda f: diaghessian(f, X)])
def test_second_derivatives_draw_the_same_random_numbers(second):
    normal, _, *after = draws()
    for _ in range(2):  # what is compiled knows that it draws
        np.random.seed(3)
        random.seed(4)
        np.testing.assert_allclose(second(lambda x: drawn(x).sum()), 6 * X * normal)
        assert [np.random.rand(), random.random()] == after


def test_generators_that_are_captured():
    generator = np.random.default_rng(1)
    expected = np.random.default_rng(1).normal(size=3)
    found = jacobian(lambda x: x * generator.normal(size=3), X, mode="forward")[0]
    np.testing.assert_array_equal(np.diag(found), expected)


def doubled(a):
    a *= 2
    a[0] += a[1] ** 2
    return a * a[0]


@pytest.mark.parametrize(
    "how", [{"mode": "forward"}, {"mode": "reverse"}, {}, {"sparsity": "auto"}]
)
def test_arguments_that_are_written_to(how):
    x = X.copy()
    found = jacobian(doubled, x, **how)[0]
    found = found.toarray() if how == {"sparsity": "auto"} else found
    np.testing.assert_allclose(found, [[72, 576, 0], [8, 100, 0], [12, 96, 36]])
    np.testing.assert_array_equal(x, [18, 4, 6])


def test_second_derivatives_by_an_argument_that_is_written_to():
    x, y = X.copy(), X.copy()
    expected = [[8, 68, 4], [68, 944, 32], [4, 32, 0]]
    np.testing.assert_allclose(hessian(lambda x: doubled(x).sum(), x), expected)
    np.testing.assert_allclose(diaghessian(lambda x: doubled(x).sum(), y), np.diag(expected))
    np.testing.assert_array_equal(x, [18, 4, 6])
    np.testing.assert_array_equal(y, [18, 4, 6])


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_what_is_captured_changes_once(mode):
    class Counter:
        n = 0.0
        seen = ()

    counter, log, total = Counter(), [0.0], 0.0

    def f(x):
        nonlocal total
        counter.n = counter.n + x[0]
        total = total + 1.0
        log.append(float(len(log)))
        return x * counter.n * total

    found = jacobian(f, X, mode=mode)[0]
    np.testing.assert_allclose(found, [[2, 0, 0], [2, 1, 0], [3, 0, 1]])
    assert (counter.n, total, log) == (1.0, 1.0, [0.0, 1.0])


def test_counters_count_all_runs_and_each_finds_what_the_first_found():
    class Counter:
        n = 0

    counter, runs, calls, cache, count = Counter(), [], {"f": 0, "g": 5}, {}, 0

    def f(x):
        nonlocal count
        count += 1
        counter.n += 1
        calls["f"] += 1
        cache[len(cache)] = 1
        runs.append(counter.n)
        return x * count * counter.n

    counter.n = 0
    x = np.ones(2 * AT_ONCE + 1)  # three runs
    np.testing.assert_array_equal(jacobian(f, x, mode="forward")[0], np.eye(x.size))
    assert (count, counter.n, calls, runs) == (3, 3, {"f": 3, "g": 5}, [1, 1, 1])
    assert cache == {0: 1}


def test_an_exception_leaves_what_it_should():
    log = []

    def f(x):
        log.append(x[0])
        if len(log) > 1:
            raise KeyError
        return x * x

    np.testing.assert_allclose(jacobian(f, X, mode="forward")[0], np.diag(2 * X))
    with pytest.raises(KeyError):
        jacobian(f, X, mode="forward")
    assert len(log) == 2


def test_within_differentiated_code():
    def drawn_there(x):
        return jacobian(lambda y: y**2 * np.random.normal(size=3), x, mode="forward")[0].sum()

    np.random.seed(3)
    expected = 2 * np.random.normal(size=3)
    np.random.seed(3)
    np.testing.assert_allclose(gradient(drawn_there, X)[0], expected)
    np.random.seed(3)
    assert jvp(drawn_there, (X,), (X,))[1] == pytest.approx(expected @ X)

    def written_there(x):
        return jacobian(doubled, x * 1.0, mode="forward")[0].sum()

    check_gradient(written_there, X)
    with pytest.raises(UnsupportedError, match="run several times for its derivatives changes a"):
        gradient(written_there, np.ones(AT_ONCE + 1))


def test_forwarddiff_of_what_changes_its_surroundings():
    def of_a_cell(x):
        total = 0.0

        def f(y):
            nonlocal total
            total += y[0]
            return total * y[1]

        return forwarddiff(f, x)

    np.testing.assert_allclose(grad(of_a_cell)(X), [2, 1, 0])

    def of_what_it_has_left(x):
        seen = []

        def f(y):
            seen.append(y[0] * y[0])
            return y[1]

        return forwarddiff(f, x) * seen[0]

    with pytest.raises(UnsupportedError, match="changes a list that the output depends on"):
        gradient(of_what_it_has_left, X)

    with pytest.raises(
        UnsupportedError, match=r"writes to an array of shape \(3,\) that it has not"
    ):
        gradient(lambda x: forwarddiff(doubled, x * 1.0).sum(), X)
