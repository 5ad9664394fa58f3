"""Hooks, values that count as constant, and the questions about the run."""

from collections import namedtuple

import numpy as np
import pytest

from morula import (
    J,
    UnsupportedError,
    grad,
    gradient,
    hook,
    ignore_derivatives,
    isderiving,
    nestlevel,
    pullback,
    rrule,
    showgrad,
    value_and_grad,
)

pytestmark = pytest.mark.usefixtures("path")

Pair = namedtuple("Pair", "a b")


class Box:
    def __init__(self, x):
        self.x = x


def test_a_hook_is_the_identity_in_a_plain_call():
    xs = [1.0]
    assert hook(lambda x̄: 0.0, xs) is xs
    assert showgrad(2.0, "x") == 2.0


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (3.0, 12.0),
        (3, 12.0),
        (np.float32(3), np.float32(12)),
        (np.array([3.0, -1.0]), np.array([12.0, -4.0])),
        (3 + 1j, 12 + 4j),
    ],
)
def test_a_hook_changes_the_cotangent_of_its_value_only(x, expected):
    def f(x):
        y = hook(lambda x̄: 2 * x̄, x)
        return (abs(y) ** 2).sum() if isinstance(x, np.ndarray) else abs(y) ** 2

    for g in (grad(f)(x), gradient(f, x)[0]):
        assert type(g) is type(expected) if not isinstance(x, int) else type(g) is float
        np.testing.assert_allclose(g, expected, rtol=1e-6)
    assert gradient(lambda x: hook(lambda x̄: 10.0, x) * x, 3.0) == (13.0,)


def test_clipping_of_gradients():
    def f(x):
        return (hook(lambda x̄: np.clip(x̄, -1.0, 1.0), x) ** 2).sum()

    x = np.array([3.0, 0.25, -2.0])
    np.testing.assert_array_equal(grad(f)(x), [1.0, 0.5, -1.0])


def test_a_hook_may_write_to_its_copy_and_return_nothing():
    seen = []

    def note(x̄):
        seen.append(x̄.copy())
        x̄ *= 0

    x = np.ones(3)
    np.testing.assert_array_equal(gradient(lambda x: hook(note, x).sum(), x)[0], np.zeros(3))
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], np.ones(3))


def test_a_hook_is_called_once_for_each_call_of_the_pullback_and_not_for_what_has_no_cotangent():
    seen = []

    def f(x):
        unused = hook(seen.append, x)
        return hook(seen.append, x) * 2

    _, back = pullback(f, 1.0)
    assert back(3.0) == back(3.0) == (6.0,)
    assert seen == [6.0, 6.0]


def test_hooks_of_lists_dicts_objects_and_tuples():
    seen = []

    def double(x̄):
        seen.append(x̄)
        if isinstance(x̄, list):
            return [2 * c for c in x̄]
        if isinstance(x̄, dict):
            return {k: 2 * c for k, c in x̄.items()}
        return x̄ * 2

    def of_list(xs):
        xs[1] * 0.0
        ys = hook(double, xs)
        ys.append(1.0)
        return ys[0] * ys[1] + ys[2]

    assert gradient(of_list, [2.0, 3.0]) == ([6.0, 4.0],)
    assert gradient(lambda d: hook(double, d)["a"] ** 2, {"a": 3.0, "b": 1.0}) == (
        {"a": 12.0, "b": 0.0},
    )
    assert gradient(lambda b: hook(double, b).x ** 2, Box(3.0))[0].x == 12.0
    assert gradient(lambda p: hook(lambda t: Pair(2 * t.a, t.b), p).a * p.b, Pair(3.0, 4.0)) == (
        Pair(8.0, 3.0),
    )
    assert seen[0] == [3.0, 2.0]
    nested = gradient(lambda t: hook(lambda c: ([5 * c[0][0]], c[1]), t)[0][0] * t[1], ([2.0], 3.0))
    assert nested == (([15.0], 2.0),)


def in_all(y):
    y[0] = 5.0
    return (y * y).sum()


def through_a_view(y):
    y[1:] *= 2.0
    return (y * y).sum()


@pytest.mark.parametrize(("use", "slope"), [(in_all, [0.0, 4.0]), (through_a_view, [2.0, 16.0])])
def test_a_hook_of_an_array_that_is_written_to(use, slope):
    for f in (
        lambda x: use(hook(lambda c: 10 * c, x)),
        lambda x: use(hook(lambda c: 10 * c, x + 0)),
    ):
        back = pullback(f, np.array([1.0, 2.0]))[1]
        for _ in range(2):
            np.testing.assert_allclose(back(1.0)[0], 10 * np.array(slope))


def test_a_rule_whose_value_is_its_own_argument():
    def tenfold(x):
        return x

    @rrule(tenfold)
    def _(x: np.ndarray):
        return x, lambda c: (10 * c,)

    @rrule(tenfold)
    def _(x: list):
        return x, lambda c: ([10 * v for v in c],)

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(gradient(lambda x: in_all(tenfold(x)), x.copy())[0], [0, 40])
    assert gradient(lambda x: tenfold([x, 2 * x])[1], 3.0) == (20.0,)
    assert gradient(lambda xs: tenfold(xs)[1] ** 2, [1.0, 3.0]) == ([0.0, 60.0],)


def test_a_hook_of_a_captured_function_sees_the_second_order():
    def f(x):
        return hook(lambda x̄: x̄ * x, x) ** 2  # as if the slope were 2x * x

    assert gradient(f, 3.0) == (18.0,)
    assert gradient(lambda x: gradient(f, x)[0], 3.0) == (12.0,)


def test_showgrad_prints_the_cotangent(capsys):
    def f(x, y):
        return showgrad(x, "x") * showgrad(y * 2)

    assert grad(f, (0, 1))(3.0, 4.0) == (8.0, 6.0)
    assert sorted(capsys.readouterr().out.splitlines()) == ["gradient: 3.0", "x: 8.0"]


def test_nestlevel_counts_the_levels():
    assert (nestlevel(), isderiving()) == (0, False)
    levels = []

    def f(x):
        levels.append(nestlevel())
        return x * x * nestlevel()

    assert gradient(f, 3.0) == (6.0,)
    assert grad(f)(3.0) == 6.0
    assert gradient(lambda x: gradient(f, x)[0], 3.0) == (4.0,)
    assert levels == [1, 1, 2]
    three = grad(grad(grad(lambda x: x**3 * nestlevel())))
    assert three(1.0) == pytest.approx(18.0)


def test_isderiving_in_functions_methods_and_rules_of_others():
    class Dropout:
        def __init__(self, rate):
            self.rate = rate

        def __call__(self, x):
            return x * self.rate if isderiving() else x

        def constant(self):
            return 2.0 if isderiving() else 1.0

    layer = Dropout(0.5)
    assert layer(4.0) == 4.0
    assert value_and_grad(lambda x: layer(x) * layer.constant())(4.0) == (4.0, 1.0)
    assert gradient(lambda layer, x: layer(x), layer, 4.0)[1] == 0.5


def test_ignored_values_count_as_constant():
    assert gradient(lambda x: x * ignore_derivatives(x), 3.0) == (3.0,)
    assert grad(lambda x: x * ignore_derivatives(lambda: x * x))(3.0) == 9.0
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(grad(lambda x: (x * ignore_derivatives(x)).sum())(x), x)
    np.testing.assert_array_equal(
        gradient(lambda x: x[0] * ignore_derivatives(x.sum), x)[0], [3, 0]
    )
    assert gradient(lambda x: ignore_derivatives(x) * 2, 3.0) == (0.0,)
    assert gradient(lambda s: len(ignore_derivatives(s)), "abc") == (None,)


def test_ignored_structures_are_copies():
    def f(xs, b, t):
        ys, c, (u, _) = ignore_derivatives(xs), ignore_derivatives(b), ignore_derivatives(t)
        ys.append(7.0)
        return xs[0] * ys[0] * b.x[0] * c.x[0] * t[0]["k"] * u["k"] + ys[-1]

    b = Box([2.0])
    assert f([3.0], b, ({"k": 5.0}, 1.0)) == 907.0
    g = gradient(f, [3.0], b, ({"k": 5.0}, 1.0))
    assert g[0] == [300.0]
    assert g[1].x == [450.0]
    assert g[2] == ({"k": 180.0}, 0.0)
    x = np.ones(2)
    assert ignore_derivatives(x) is not x
    assert ignore_derivatives(b).x is not b.x
    assert type(ignore_derivatives(Pair(1, [2]))) is Pair


def test_what_an_ignored_function_changes_is_refused_where_the_gradient_runs_through_it():
    def quiet(x):
        log = []
        ignore_derivatives(lambda: log.append(x))
        return x * len(log)

    def loud(x):
        xs = [x]
        ignore_derivatives(lambda: xs.append(2 * x))
        return xs[0] * xs[1]

    assert gradient(quiet, 3.0) == (1.0,)
    with pytest.raises(UnsupportedError, match="called changes a list"):
        gradient(loud, 3.0)


def test_a_callable_object_is_a_value():
    class Model:
        def __init__(self):
            self.w = 2.0

        def __call__(self):
            raise AssertionError("it is not called")

    assert gradient(lambda m: ignore_derivatives(m).w * m.w, Model())[0].w == 2.0


def test_the_cotangent_of_the_callable():
    a = 3.0
    _, back = J(lambda x: hook(lambda x̄: 2 * x̄, a) * x, 2.0)
    f̄, x̄ = back(1.0)
    assert (f̄.a, x̄) == (4.0, 3.0)
