"""The checkers themselves: right rules pass, and each way of being wrong is caught and named."""

import math
import re

import numpy as np
import pytest

from morula import NoTangent, Tangent, frule, non_differentiable, rrule
from morula.testing import check_frule, check_gradient, check_rrule


def rule_for(primal, pullback_of, value=None):
    """Register a rule of one argument for a fresh copy of `primal`; gives the copy."""

    def fresh(x):
        return primal(x)

    fresh.__name__ = primal.__name__

    @rrule(fresh)
    def _(x):
        return (fresh if value is None else value)(x), pullback_of(x)

    return fresh


def square(x):
    return x * x


def total(x):
    return x.sum()


def right_square(x):
    return lambda ȳ: (2 * ȳ * x,)


@pytest.fixture
def wrong_sum():
    def wrong_sum(x):
        return x.sum()

    @rrule(wrong_sum)
    def _(x: np.ndarray):
        return x.sum(), lambda ȳ: (2 * ȳ * np.ones_like(x),)

    return wrong_sum


# -- rules that are right --------------------------------------------------------------------------


@pytest.mark.parametrize("x", [3.0, 2, 1 + 2j, np.float32(3)])
def test_a_right_rule_passes(x):
    check_rrule(rule_for(square, lambda x: lambda ȳ: (2 * ȳ * np.conj(x),)), x)


@pytest.mark.parametrize("dtype", ["e", "f", "d", "g", "F", "D", "G", "i"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_a_right_rule_passes_in_every_dtype(rng, dtype, shape):
    x = (3 * rng.standard_normal(shape) + (1j if dtype in "FDG" else 0)).astype(dtype)
    check_rrule(rule_for(square, lambda x: lambda ȳ: (2 * ȳ * np.conj(x),)), np.asarray(x))


def test_keywords_reach_the_rule():
    def weighted(x, *, weight=1.0):
        return weight * x

    @rrule(weighted)
    def _(x: float, *, weight=1.0):
        return weight * x, lambda ȳ: (weight * ȳ, x * ȳ)

    check_rrule(weighted, 2.0)
    check_rrule(weighted, 2.0, weight=3.0)


def test_a_keyword_with_the_name_of_an_option_goes_to_the_rule_that_takes_it():
    def power(x, *, order):
        return x**order

    @rrule(power)
    def _(x: float, *, order):
        return x**order, lambda ȳ: (ȳ * order * x ** (order - 1),)

    check_rrule(power, 2.0, order=3)


def test_structures_are_walked():
    def use(parts):
        return {"y": parts["a"] * parts["b"][0], "name": parts["name"]}

    @rrule(use)
    def _(parts: dict):
        a, (b, _), name = parts["a"], parts["b"], parts["name"]

        def use_pullback(ȳ):
            return ({"a": ȳ["y"] * b, "b": [ȳ["y"] * a, 0.0], "name": NoTangent()},)

        return {"y": a * b, "name": name}, use_pullback

    check_rrule(use, {"a": 2.0, "b": [3.0, 4.0], "name": "n"})


def test_tangents_of_objects_are_walked():
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

    def norm(p):
        return math.hypot(p.x, p.y)

    @rrule(norm)
    def _(p: Point):
        r = norm(p)
        return r, lambda r̄: (Tangent[Point](x=r̄ * p.x / r, y=r̄ * p.y / r),)

    check_rrule(norm, Point(3.0, 4.0))


def test_a_mutating_primal_may_change_its_arguments():
    def double(x):
        x *= 2
        return x.sum()

    @rrule(double)
    def _(x: np.ndarray):
        return double(x), lambda ȳ: (2 * np.full(x.shape, ȳ),)

    check_rrule(double, np.ones(3))


# -- rules that are wrong --------------------------------------------------------------------------


def test_checker_catches_a_wrong_rule(wrong_sum):
    with pytest.raises(AssertionError, match="cotangent 0 of the rule of wrong_sum"):
        check_rrule(wrong_sum, np.ones(3))


def test_no_rule_is_no_success():
    with pytest.raises(AssertionError, match=r"no rule of square serves \(float\)"):
        check_rrule(square, 2.0)


def test_a_keyword_that_the_rule_does_not_honour_is_no_success():
    def scaled(x, factor=1.0):
        return factor * x

    @rrule(scaled)
    def _(x: float):
        return x, lambda ȳ: (ȳ,)

    with pytest.raises(AssertionError, match=r"no rule of scaled serves \(float, factor=float\)"):
        check_rrule(scaled, 2.0, factor=2.0)


WRONG = {
    r"the value .* is 4\.000001": (right_square, lambda x: x * x + 1e-6),
    r"the value .* is np\.float64": (right_square, lambda x: np.float64(x * x)),
    "cotangent 0 .* is wrong": (lambda x: lambda ȳ: (2.0001 * ȳ * x,), None),
    "gives nan": (lambda x: lambda ȳ: (math.nan,), None),
    "cotangent 0 .* gives 0, finite": (lambda x: lambda ȳ: (NoTangent(),), None),
    "2 cotangents, expected 1": (lambda x: lambda ȳ: (2 * ȳ * x, ȳ), None),
    "expected a tuple": (lambda x: lambda ȳ: 2 * ȳ * x, None),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_rules_are_caught(message):
    pullback, value = WRONG[message]
    with pytest.raises(AssertionError, match=message):
        check_rrule(rule_for(square, pullback, value), 2.0)


def test_a_cotangent_of_the_wrong_shape_is_caught():
    primal = rule_for(total, lambda x: lambda ȳ: (np.full(4, ȳ),))
    with pytest.raises((AssertionError, ValueError), match="shape"):
        check_rrule(primal, np.ones(3))


def test_a_rule_that_changes_its_arguments_is_caught():
    def value(x):
        x[0] = 7.0
        return np.float64(3.0)

    primal = rule_for(total, lambda x: lambda ȳ: (np.full(3, ȳ),), value)
    with pytest.raises(AssertionError, match="changed its arguments"):
        check_rrule(primal, np.ones(3))


def test_a_pullback_that_changes_an_argument_is_caught():
    def pullback_of(x):
        def square_pullback(ȳ):
            x̄ = 2 * ȳ * x
            x[:] = 0
            return (x̄,)

        return square_pullback

    with pytest.raises(AssertionError, match=r"the pullback of .* changed an argument"):
        check_rrule(rule_for(square, pullback_of), np.ones(3))


def test_a_pullback_that_remembers_is_caught():
    def pullback_of(x):
        kept = [2 * x]

        def square_pullback(ȳ):
            kept[0] = kept[0] * ȳ
            return (kept[0],)

        return square_pullback

    with pytest.raises(AssertionError, match="a second call"):
        check_rrule(rule_for(square, pullback_of), 2.0)


def test_a_float_keyword_without_cotangent_must_not_matter():
    def weighted(x, *, weight=1.0):
        return weight * x

    @rrule(weighted)
    def _(x: float, *, weight=1.0):
        return weight * x, lambda ȳ: (weight * ȳ,)

    check_rrule(weighted, 2.0)
    with pytest.raises(AssertionError, match="cotangent of the keyword weight"):
        check_rrule(weighted, 2.0, weight=3.0)


def test_a_rule_that_takes_no_thunks_in_a_tuple_is_caught():
    def pair(x):
        return math.sin(x), x * x

    @rrule(pair)
    def _(x: float):
        return pair(x), lambda ȳ: (float(ȳ[0]) * math.cos(x) + float(ȳ[1]) * 2 * x,)

    with pytest.raises((AssertionError, TypeError)):
        check_rrule(pair, 2.0)


def test_a_number_for_what_has_no_tangent_space_is_caught():
    def named(x, name):
        return x

    @rrule(named)
    def _(x: float, name: object):
        return x, lambda ȳ: (ȳ, ȳ)

    with pytest.raises(AssertionError, match="no tangent space"):
        check_rrule(named, 2.0, object())


def test_the_second_derivative_is_checked():
    forgetful = non_differentiable(lambda x: x)

    def cube(x):
        return x**3

    @rrule(cube)
    def _(x: float):
        return x**3, lambda ȳ: (3 * ȳ * forgetful(x) ** 2,)

    check_rrule(cube, 2.0)
    with pytest.raises(AssertionError, match="the derivative of the rule of cube"):
        check_rrule(cube, 2.0, order=2)


# -- forward rules ---------------------------------------------------------------------------------


def test_forward_rules():
    def right(x, y):
        return np.sin(x) * y

    def wrong(x, y):
        return np.sin(x) * y

    @frule(right)
    def _(x: np.ndarray, y: float):
        return np.sin(x) * y, lambda ẋ, ẏ: np.cos(x) * ẋ * y + np.sin(x) * ẏ

    @frule(wrong)
    def _(x: np.ndarray, y: float):
        return np.sin(x) * y, lambda ẋ, ẏ: np.cos(x) * ẋ * y

    check_frule(right, np.arange(3.0), 2.0)
    with pytest.raises(AssertionError, match="the forward rule of wrong is wrong"):
        check_frule(wrong, np.arange(3.0), 2.0)
    with pytest.raises(AssertionError, match="no forward rule of square"):
        check_frule(square, 2.0)


# -- gradients -------------------------------------------------------------------------------------


def test_right_gradients_pass():
    check_gradient(lambda x, y: x * math.sin(y) ** 2, 2.0, 3)
    check_gradient(lambda z: abs(z) ** 2, 1 + 2j)
    check_gradient(lambda x, n: x**n, 2.0, n=3)


@pytest.mark.parametrize("point", [0.0, 1e-9, -1e-7])
def test_points_are_moved_off_kinks(point):
    check_gradient(lambda x: abs(x) * math.cos(x), point)


def test_a_function_without_smooth_points_is_refused():
    with pytest.raises(AssertionError, match="no point near"):
        check_gradient(lambda x: float(hash(x) % 1000), 1.5)


def test_the_worst_entry_is_named():
    def bent(x):
        return x * 1.0

    @rrule(bent)
    def _(x: float):
        return bent(x), lambda ȳ: (ȳ * 1.5,)

    def f(a, b):
        return a + 3 * bent(b)

    with pytest.raises(AssertionError, match=re.escape("args[1] is 4.5, should be 3")):
        check_gradient(f, 1.0, 2.0)


def test_entries_are_named_by_their_path():
    def bent(p):
        return p["w"][1] * 1.0

    @rrule(bent)
    def _(p: dict):
        return bent(p), lambda ȳ: ({"w": (0.0, 2 * ȳ)},)

    with pytest.raises(AssertionError, match=re.escape("args[0].w[1] is 2, should be 1")):
        check_gradient(bent, {"w": (1.0, 2.0)})
