"""Finite differences as a rule, where the user asks for it."""

import ctypes
import ctypes.util
import math
import warnings

import numpy as np
import pytest

from morula import RuleError, UnsupportedError, grad, gradient, numeric_rule, pullback, rrule
from morula.testing import check_gradient

pytestmark = pytest.mark.usefixtures("path")


def black_box(x, y=1.0, *, scale=1.0, n=1):
    assert type(n) is int
    return scale * np.sin(x) * np.exp(y) * n


box = numeric_rule(black_box)

libm = ctypes.CDLL(ctypes.util.find_library("m"))
log1p = numeric_rule(libm.log1p)
log1p.restype, log1p.argtypes = ctypes.c_double, [ctypes.c_double]


def test_numbers_keywords_and_options():
    assert box is black_box
    assert gradient(box, 0.5, 0.2) == pytest.approx(
        (math.cos(0.5) * math.exp(0.2), math.sin(0.5) * math.exp(0.2)), rel=1e-9
    )
    assert gradient(lambda x: box(x, scale=x, n=2), 0.5)[0] == pytest.approx(
        2 * math.e * (math.sin(0.5) + 0.5 * math.cos(0.5)), rel=1e-9
    )
    assert gradient(lambda n: box(0.5, n=n) * n, 3)[0] == pytest.approx(box(0.5, n=3))
    assert grad(lambda x: log1p(x) * x)(1.0) == pytest.approx(math.log(2) + 0.5, rel=1e-9)


def test_an_object_of_another_language_in_a_loss_of_arrays(rng):
    x = rng.uniform(1, 2, 3)

    def loss(x):
        return sum(log1p(xi) for xi in x) * x.sum()

    check_gradient(loss, x)


def test_structures_in_and_out():
    @numeric_rule
    def simulate(p, steps):
        v = p["v"][0] * np.ones(2) + p["z"].imag
        return {"end": (v * steps, [p["w"].w ** 2]), "steps": steps}

    class Weight:
        def __init__(self, w):
            self.w = w

    def loss(p):
        out = simulate(p, 3)
        return (out["end"][0] ** 2).sum() * out["end"][1][0]

    g = gradient(loss, {"v": (0.5, "fast"), "z": 1 + 2j, "w": Weight(3.0)})[0]
    assert g["v"] == (pytest.approx(2 * 9 * 2 * 2.5 * 9, rel=1e-8), None)
    assert g["z"] == pytest.approx(810j, rel=1e-8)
    assert g["w"].w == pytest.approx(2 * 9 * 6.25 * 6, rel=1e-8)


@pytest.mark.parametrize(
    ("method", "rel"), [("forward", 1e-6), ("central", 1e-8), ("richardson", 1e-10)]
)
def test_methods_and_steps(method, rel):
    f = numeric_rule(lambda x: math.exp(x), method=method)
    assert gradient(f, 1.0)[0] == pytest.approx(math.e, rel=rel)
    coarse = numeric_rule(lambda x: x * x, method="forward", step=0.5)
    assert gradient(coarse, 1.0) == (2.5,)


def test_the_arguments_are_those_of_the_call():
    @numeric_rule
    def f(xs):
        return xs[0] * xs[1]

    def g(xs):
        y = f(xs)
        xs[0] = 100.0
        return y * xs[0]

    assert gradient(g, [2.0, 3.0])[0] == pytest.approx([300.0, 200.0], rel=1e-8)


def test_the_pullback_and_the_second_order():
    _, back = pullback(box, 0.5)
    assert back(2.0) == back(2.0)
    f = numeric_rule(lambda x: math.sin(x))
    assert grad(grad(lambda x: f(x) * x))(0.5) == pytest.approx(
        2 * math.cos(0.5) - 0.5 * math.sin(0.5), rel=1e-5
    )


def test_what_has_no_derivative_may_be_captured():
    libm, name, exact = ctypes.CDLL(ctypes.util.find_library("m")), "cos", True
    cosine = getattr(libm, name)
    cosine.restype, cosine.argtypes = ctypes.c_double, [ctypes.c_double]
    f = numeric_rule(lambda x: getattr(libm, name)(x) if exact else None)
    assert gradient(f, 0.5)[0] == pytest.approx(-math.sin(0.5), rel=1e-8)


def test_a_function_that_is_not_smooth_gives_a_warning():
    f = numeric_rule(lambda x: abs(x - 1.0001))
    with pytest.warns(RuntimeWarning, match="differences do not agree"):
        gradient(f, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient(numeric_rule(lambda x: 0.0), 1.0)


def test_what_is_refused():
    with pytest.raises(RuleError, match="has a rule already"):
        numeric_rule(math.sin)
    a = 2.0
    with pytest.raises(RuleError, match="captures 'a'"):
        numeric_rule(lambda x: a * x)
    with pytest.raises(RuleError, match="method must be one of"):
        numeric_rule(lambda x: x, method="magic")

    @numeric_rule
    def grows(xs):
        xs.append(1.0)
        return xs[0]

    with pytest.raises(UnsupportedError, match="changes a list"):
        gradient(grows, [1.0])
    with pytest.raises(UnsupportedError, match="gives a object"):
        gradient(lambda x: numeric_rule(lambda x: object())(x), 1.0)


def test_a_rule_that_comes_later_is_exact():
    f = numeric_rule(lambda x: x**3)
    assert gradient(f, 2.0)[0] == pytest.approx(12.0)

    @rrule(f)
    def _(x: float):
        return x**3, lambda ȳ: (ȳ * 12.5,)

    assert gradient(f, 2.0) == (12.5,)
