"""Taylor series: exact to order 20, through all that a program is made of, in any mix of modes."""

import cmath
import dataclasses
import math
import statistics
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from morula import (
    NoRuleError,
    frule,
    gradient,
    hessian,
    jvp,
    non_differentiable,
    rrule,
    scalar_rule,
    taylor,
)

mpmath = pytest.importorskip("mpmath", reason="exact series")
V = np.array([1.0, 2.0, 3.0])
A = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])
B = np.array([[0.1, 0.5, 0.2], [0.2, 0.3, 0.4], [0.7, 0.1, 0.2]])


def exact(f, x, order=20):
    with mpmath.workdps(50):
        return np.array([float(c) for c in mpmath.taylor(f, x, order)])


def agrees(found, expected):
    scale = np.maximum(np.abs(expected), 1e-3 * np.max(np.abs(expected)))
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-10)


def sums_to(f, order=12, x=0.7, h=0.02):
    """The series is that of f, if it sums to f nearby as well as its order lets it."""
    c = taylor(f, x, order)
    found = sum(c[k] * h**k for k in range(order + 1))
    np.testing.assert_allclose(found, f(x + h), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("f", "g", "x"),
    [
        (math.exp, mpmath.exp, 0.3),
        (math.expm1, mpmath.expm1, 0.3),
        (math.log, mpmath.log, 1.3),
        (math.log2, lambda x: mpmath.log(x, 2), 1.3),
        (math.log1p, mpmath.log1p, 0.3),
        (math.sqrt, mpmath.sqrt, 1.4),
        (math.sin, mpmath.sin, 0.4),
        (math.cos, mpmath.cos, 0.4),
        (math.tan, mpmath.tan, 0.4),
        (math.asin, mpmath.asin, 0.4),
        (math.acos, mpmath.acos, 0.4),
        (math.atan, mpmath.atan, 0.4),
        (math.sinh, mpmath.sinh, 0.4),
        (math.cosh, mpmath.cosh, 0.4),
        (math.tanh, mpmath.tanh, 0.4),
        (math.asinh, mpmath.asinh, 0.4),
        (math.acosh, mpmath.acosh, 1.4),
        (math.atanh, mpmath.atanh, 0.4),
        (math.erf, mpmath.erf, 0.4),
        (math.erfc, mpmath.erfc, 0.4),
        (math.lgamma, mpmath.loggamma, 1.4),
        (lambda x: math.atan2(x, 1 + x), lambda x: mpmath.atan(x / (1 + x)), 0.4),
        (lambda x: math.hypot(x, 1.0, 2.0), lambda x: mpmath.sqrt(x * x + 5), 0.4),
        (lambda x: math.pow(x, 1.5), lambda x: x ** mpmath.mpf(1.5), 0.4),
        (np.sin, mpmath.sin, 0.5),
        (np.arctan, mpmath.atan, 0.5),
        (np.cbrt, mpmath.cbrt, 0.5),
        (np.exp2, lambda x: mpmath.mpf(2) ** x, 0.5),
        (np.log1p, mpmath.log1p, 0.5),
        (np.sinc, mpmath.sincpi, 0.5),
        (np.sinc, mpmath.sincpi, 2.5),
        (np.sinc, mpmath.sincpi, 1e-3),
        (lambda x: scipy.special.jv(0, x), lambda x: mpmath.besselj(0, x), 1.5),
        (lambda x: x**3 / (1 + x * x) - x, lambda x: x**3 / (1 + x * x) - x, 0.7),
        (lambda x: x**2.5, lambda x: x ** mpmath.mpf(2.5), 0.7),
        (lambda x: x**-3, lambda x: x**-3, 0.7),
        (lambda x: x**x, lambda x: x**x, 0.7),
        (lambda x: 2.0**x, lambda x: mpmath.mpf(2) ** x, 0.7),
    ],
)
def test_series_are_exact_to_order_20(f, g, x):
    agrees(taylor(f, x, 20), exact(g, x))


def test_ten_operations_to_order_20():
    def f(x, m):
        return m.exp(m.sin(x) * m.cos(x)) / m.sqrt(1 + x * x) + m.log(2 + x) * x

    agrees(taylor(lambda x: f(x, math), 0.5, 20), exact(lambda x: f(x, mpmath), 0.5))


def loop(t):
    s, xs = 0.0, []
    for i in range(10):
        s = s * t + math.sin(i * t)
        xs.append(s)
        if i % 3 == 2 and s > -2.0:
            s = s * s
    return sum(xs)


@pytest.mark.parametrize(
    "f",
    [
        loop,
        lambda t: (A + t * B) @ (V * t),
        lambda t: np.linalg.inv(A + t * B),
        lambda t: np.linalg.solve(A + t * B, V * t),
        lambda t: np.linalg.det(A + t * B),
        lambda t: np.linalg.cholesky(A + t * (B + B.T)),
        lambda t: np.linalg.eigvalsh(A + t * (B + B.T)),
        lambda t: np.linalg.svd(A + t * B)[1],
        lambda t: np.linalg.norm(V * t + V**2),
        lambda t: scipy.linalg.expm(t * B),
        lambda t: np.einsum("ij,j,k->ik", A + t * B, V * t, np.exp(V * t)),
        lambda t: np.prod(A + t, axis=0),
        lambda t: np.cumprod(V + t),
        lambda t: np.std(np.sin(V * t)),
        lambda t: np.maximum(V * t, 1.0) + np.abs(V * t - 1) + np.clip(V * t, 0.5, 1.0),
        lambda t: np.where(V * t > 1, np.exp(V * t), np.sqrt(t)),
        lambda t: np.sort(np.sin(3 * V * t)),
        lambda t: np.concatenate([V * t, [1.0, 2.0], np.array([t, t * t])]),
        lambda t: (V * t)[:, None] ** (V + t)[None, :] / (V + t),
        lambda t: np.stack([V * t, V])[:, ::2].T,
        lambda t: np.outer(V * t, V * t).mean(axis=1).cumsum(),
        lambda t: np.array([math.sin(a) for a in (V * t).tolist()]),
        lambda t: sum(a * a for a in V * t),
        lambda t: abs(cmath.exp((0.1 + 1j) * t)),
        lambda t: np.abs(np.fft.fft(V * t + V**2)) ** 2,
        lambda t: np.real(np.sqrt(1j + V * t)),
        lambda t: scipy.special.gammaln(1 + V * t),
        lambda t: math.log(math.gamma(1 + t)),
        lambda t: scipy.special.logsumexp(V * t),
        lambda t: max([t, t * t, 2 * t]) * (t if t > 0 else -t),
        lambda t: math.dist([t, 1.0], [0.0, t * t]),
        lambda t: (A * t).ravel()[[0, 3, 3]],
    ],
)
def test_series_sum_to_the_function(f):
    sums_to(f)


@pytest.mark.parametrize("x", [0, 0.0, 2])
def test_powers_at_zero_and_of_integers(x):
    np.testing.assert_array_equal(
        taylor(lambda x: x**3 + x**0 + x**2.0, x, 4),
        exact(lambda x: x**3 + 1 + x**2, x, 4),
    )


def test_an_infinite_derivative_is_infinite():
    assert taylor(lambda x: x**1.5, 0.0, 2).tolist() == [0.0, 0.0, math.inf]


def test_the_branch_not_taken_contributes_nothing():
    with np.errstate(divide="ignore"):
        found = taylor(lambda x: np.where(x < 1, x, np.sqrt(x)), np.float64(0), 3)
    assert found.tolist() == [0, 1, 0, 0]


def test_other_numbers_keep_their_kind():
    assert taylor(lambda x: x**3 / (1 + x), Fraction(1, 2), 3) == [
        Fraction(1, 12),
        Fraction(4, 9),
        Fraction(19, 27),
        Fraction(16, 81),
    ]
    assert taylor(lambda x: x * x * x, Decimal("0.5"), 2) == [
        Decimal("0.125"),
        Decimal("0.75"),
        Decimal("1.5"),
    ]
    assert taylor(np.sin, np.float32(0.5), 2).dtype == np.float32
    found = taylor(lambda z: z * z, 1j, 2)
    np.testing.assert_array_equal(found, [-1, 2j, 1])


def test_structures_are_mirrored():
    found = taylor(lambda x: {"a": x * x, "b": [x, (x**3, "s")]}, 2.0, 3)
    assert found[0] == {"a": 4.0, "b": [2.0, (8.0, "s")]}
    assert found[1] == {"a": 4.0, "b": [1.0, (12.0, None)]}
    assert found[3] == {"a": 0.0, "b": [0.0, (1.0, None)]}


def test_a_direction_for_arrays_and_structures():
    found = taylor(np.sin, np.array([0.0, 1.0]), 3, np.ones(2))
    agrees(found[:, 1], exact(mpmath.sin, 1, 3))
    assert found.shape == (4, 2)
    assert taylor(lambda p: p[0] * p[1], [1.0, 2.0], 2, [1.0, 3.0]).tolist() == [2, 5, 3]
    assert taylor(lambda p: p["a"] * p["b"], {"a": 1.0, "b": 2.0}, 1, {"a": 1.0}).tolist() == [2, 2]
    with pytest.raises(TypeError, match="needs a direction where x is no number but a ndarray"):
        taylor(np.sin, np.ones(2), 3)
    with pytest.raises(ValueError, match="order is -1"):
        taylor(math.sin, 1.0, -1)


def test_order_zero_and_constants():
    assert taylor(lambda x: x, 2.0, 0).tolist() == [2.0]
    assert taylor(lambda x: 3.0, 2.0, 2).tolist() == [3.0, 0.0, 0.0]


def test_the_function_runs_once():
    seen = []

    def f(x):
        seen.append(1)
        return math.exp(x)

    taylor(f, 1.0, 5)
    assert seen == [1]


# -- rules of the user's ---------------------------------------------------------------------------


def by_partials(a, b):
    return math.sin(a) * b


def by_pullback(a):
    return np.array([a[0] * a[1], math.exp(a[1])])


def by_pushforward(a, *, gain=2.0):
    return gain * math.tan(a)


def itself(x):
    return math.exp(-x * x)


@scalar_rule(by_partials)
def _(y, a: float, b: float):
    return math.cos(a) * b, math.sin(a)


@rrule(by_pullback)
def _(a: np.ndarray):
    def pullback(ȳ):
        return (np.array([ȳ[0] * a[1], ȳ[0] * a[0] + ȳ[1] * math.exp(a[1])]),)

    return by_pullback(a), pullback


@frule(by_pushforward)
def _(a: float, *, gain=2.0):
    y = by_pushforward(a, gain=gain)

    def pushforward(ȧ):
        return gain * (1 + (y / gain) ** 2) * ȧ

    return y, pushforward


@rrule(itself)
def _(x: float):
    y = itself(x)

    def pullback(ȳ):
        return (-2 * x * y * ȳ,)

    return y, pullback


@pytest.mark.parametrize(
    "f",
    [
        lambda t: by_partials(t * t, t),
        lambda t: by_pullback(np.array([t, t * t])),
        lambda t: by_pushforward(t / 3, gain=3.0),
        lambda t: itself(t) * t,
    ],
)
def test_rules_of_users_are_used(f):
    sums_to(f)


def test_a_rule_that_is_not_the_derivative_is_believed():
    def f(x):
        return math.sin(x)

    @rrule(f)
    def _(x: float):
        return math.sin(x), lambda ȳ: (3.0 * ȳ,)

    assert taylor(f, 0.0, 3).tolist() == [0.0, 3.0, 0.0, 0.0]


def test_a_constant_has_no_series():
    f = non_differentiable(lambda x: math.floor(x) * 1.0)
    assert taylor(lambda x: f(x) * x, 2.5, 2).tolist() == [5.0, 2.0, 0.0]


def test_what_has_no_rule_is_refused():
    with pytest.raises(NoRuleError, match=r"statistics\.fmean.*for Taylor series"):
        taylor(lambda x: statistics.fmean([x, 2.0]), 0.5, 2)


def test_a_body_that_tells_the_derivative_tells_the_series():
    found = taylor(lambda x: np.interp(x * x, [0.0, 1.0], [0.0, 2.0]), 0.5, 3)
    assert found.tolist() == [0.5, 2.0, 2.0, 0.0]


def test_a_rule_of_which_each_order_asks_for_many_others_is_refused():
    def f(x, n):
        return x * n

    @rrule(f)
    def _(x: float, n: int):
        return x * n, lambda ȳ: (ȳ * (f(x, 2 * n) + f(x, 2 * n + 1)), None)

    with pytest.raises(NoRuleError, match="to order 30 it asks for more than 300 others"):
        taylor(lambda x: f(x, 1), 0.5, 30)


# -- other modes -----------------------------------------------------------------------------------


def curvature(p):
    """The second coefficient of sin(p t) about 1 is -p² sin(p) / 2."""
    return taylor(lambda t: math.sin(p * t), 1.0, 2)[2]


def slope_of_curvature(p):
    return -p * math.sin(p) - p * p * math.cos(p) / 2


def test_reverse_mode_of_a_captured_variable():
    assert gradient(curvature, 2.0)[0] == pytest.approx(slope_of_curvature(2.0))


def test_reverse_mode_of_the_point():
    def f(x):
        return taylor(lambda t: math.exp(t * t), x, 2)[2]

    expected = 3 * taylor(lambda t: math.exp(t * t), 0.5, 3)[3]
    assert gradient(f, 0.5)[0] == pytest.approx(expected)


def test_forward_mode():
    assert jvp(curvature, (2.0,), (1.0,))[1] == pytest.approx(slope_of_curvature(2.0))


def test_series_of_derivatives_and_of_series():
    expected = exact(lambda x: x * mpmath.cos(x), 2.0, 5)
    agrees(taylor(lambda x: gradient(lambda t: math.sin(x * t), 1.0)[0], 2.0, 5), expected)
    agrees(taylor(lambda x: jvp(lambda t: math.sin(x * t), (1.0,), (1.0,))[1], 2.0, 5), expected)
    agrees(taylor(lambda x: taylor(lambda t: math.sin(x * t), 1.0, 3)[1], 2.0, 5), expected)


def test_coefficients_are_derivatives_over_factorials():
    def f(x):
        return math.exp(math.sin(x))

    assert 2 * taylor(f, 0.4, 2)[2] == pytest.approx(hessian(f, 0.4))


def written_last(x):
    y = np.zeros(2)
    held = [y]
    y[0] = x * x
    y[1:] = np.sin(x)
    return y, held


def test_arrays_that_are_written_last_have_their_series():
    wanted = [[0.09, math.sin(0.3)], [0.6, math.cos(0.3)], [1.0, -math.sin(0.3) / 2]]
    np.testing.assert_allclose(taylor(lambda x: written_last(x)[0], 0.3, 2), wanted)
    for (y, held), coefficient in zip(taylor(written_last, 0.3, 2), wanted, strict=True):
        np.testing.assert_allclose(y, coefficient)
        np.testing.assert_allclose(held[0], coefficient)
    slope = gradient(lambda a: taylor(lambda x: written_last(a * x)[0], 0.3, 2)[1][0], 1.1)
    np.testing.assert_allclose(slope, [4 * 1.1 * 0.3])


def test_callables_that_have_no_hash():
    @dataclasses.dataclass
    class Cubic:
        factor: float

        def __call__(self, x):
            return float(f"{self.factor * x**3}")

    cubic = Cubic(2.0)

    @rrule(cubic)
    def _(x: float):
        return 2 * x**3, lambda ȳ: (6 * x**2 * ȳ,)

    np.testing.assert_allclose(taylor(lambda x: cubic(x), 2.0, 3), [16, 24, 12, 2])


@pytest.mark.parametrize("x", [0.3, -0.7])
def test_each_number_of_a_sequence_has_its_own_series(x):
    small = np.float32(0.5)  # so that the whole is not taken for an array

    def f(t):
        lower = np.maximum([t * t, small], t)
        return lower * np.hypot((t, small), [1.0, t]) * np.arctan2(t, [small, t * t])

    series, h = taylor(f, x, 2), 1e-4
    assert series[0].tolist() == f(x).tolist()
    np.testing.assert_allclose(series[1], (f(x + h) - f(x - h)) / (2 * h), rtol=1e-5)
    np.testing.assert_allclose(2 * series[2], (f(x + h) - 2 * f(x) + f(x - h)) / h**2, rtol=1e-4)
