"""Cotangents that a rule puts off, in forward mode and at second order."""

import pytest

from morula import Tangent, Thunk, grad, gradient, hessian, hvp, jvp, rrule
from morula.core.errors import UnsupportedError


def double(x):
    return 2.0 * x


@rrule(double)
def _(x):
    def double_pullback(ȳ):
        return (Thunk(lambda: 2.0 * ȳ),)

    return 2.0 * x, double_pullback


class Gain:
    def __init__(self, k):
        self.k = k


def amplify(gain, x):
    return gain.k * x


@rrule(amplify)
def _(gain: Gain, x):
    def amplify_pullback(ȳ):
        return Tangent[Gain](k=Thunk(lambda: ȳ * x)), Thunk(lambda: ȳ * gain.k)

    return gain.k * x, amplify_pullback


def test_the_transpose_of_a_rule_computes_what_was_put_off():
    assert jvp(double, (3.0,), (1.0,)) == (6.0, 2.0)
    assert jvp(lambda x: double(x) * x, (3.0,), (1.0,)) == (18.0, 12.0)
    assert hessian(lambda x: double(x) ** 2, 3.0) == 8.0
    assert gradient(lambda x: gradient(lambda y: double(y) * y, x)[0], 3.0) == (4.0,)


def test_what_is_put_off_inside_of_a_cotangent_has_first_derivatives_only():
    found, x̄ = gradient(amplify, Gain(3.0), 2.0)
    assert (found.k, x̄) == (2.0, 3.0)
    for derivative in (
        lambda: jvp(lambda k: amplify(Gain(k), 2.0), (3.0,), (1.0,)),
        lambda: hessian(lambda x: amplify(Gain(x), x) ** 2, 2.0),
        lambda: gradient(lambda x: gradient(lambda y: amplify(Gain(y), y), x)[0], 3.0),
    ):
        with pytest.raises(UnsupportedError, match="a Thunk inside of another cotangent"):
            derivative()


def multiplied(a, b):
    return a * b


@rrule(multiplied)
def _(a, b):
    return a * b, lambda ȳ: (Thunk(lambda: ȳ * b), Thunk(lambda: ȳ * a))


@pytest.mark.parametrize("f", [lambda p: multiplied(*p), lambda p: multiplied(p[0], p[1])])
def test_thunks_in_a_tuple_that_is_asked_whether_it_is_zero(f):
    """To ask computes them, and what is kept then has a derivative too."""
    slope = lambda y: grad(f)((2.0, y))[0]
    assert grad(slope)(3.0) == 1.0
    assert jvp(slope, (3.0,), (1.0,)) == (3.0, 1.0)


def weighed(xs, *, by):
    return xs[0] * by


@rrule(weighed)
def _(xs: list, *, by):
    x, n = xs[0], len(xs)

    def weighed_pullback(ȳ):
        return [ȳ * by] + [0.0] * (n - 1), Thunk(lambda: ȳ * x)

    return weighed(xs, by=by), weighed_pullback


def test_thunks_of_rules_for_lists():
    """They are computed where there is a tangent, as those of rules for numbers are."""
    f = lambda x, w: weighed([x, 1.0], by=w) ** 2
    assert gradient(f, 2.0, 3.0) == (36.0, 24.0)
    assert jvp(f, (2.0, 3.0), (0.0, 1.0)) == (36.0, 24.0)
    assert jvp(f, (2.0, 3.0), (1.0, 1.0)) == (36.0, 60.0)
    assert hvp(lambda p: f(p[0], p[1]), (2.0, 3.0), (1.0, 1.0)) == (2 * 9.0 + 24.0, 24.0 + 8.0)
