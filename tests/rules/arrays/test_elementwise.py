"""Functions of one and two arguments, choices, clip and the parts of complex numbers."""

import numpy as np
import pytest

from morula import grad, gradient, jvp, pullback
from morula.core.extend import ZeroTangent, find_rrule
from morula.core.registry import apply_rule
from morula.rules.arrays.elementwise import share_in
from morula.testing import check_rrule

ANYWHERE = [
    np.exp, np.exp2, np.expm1, np.sin, np.cos, np.sinh, np.cosh, np.tanh, np.arctan, np.arcsinh,
    np.square, np.negative, np.positive, np.conjugate, np.sinc, np.tan, np.absolute, np.sign,
]  # fmt: skip
POSITIVE = [np.log, np.log2, np.log10, np.log1p, np.sqrt, np.reciprocal]
BELOW_ONE = [np.arcsin, np.arccos, np.arctanh]
REAL = [np.cbrt, np.degrees, np.rad2deg, np.radians, np.deg2rad, np.fabs, np.frexp, np.modf]
X = np.array([[0.3, 0.6, 0.9], [0.45, 0.15, 0.75]])


def gradients(fn, *args, ȳ=1.0, **kwargs):
    return apply_rule(find_rrule(fn, args, kwargs), args, kwargs)[1](ȳ)


@pytest.mark.parametrize("fn", ANYWHERE + POSITIVE + BELOW_ONE)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8", "g"])
def test_one_argument(fn, dtype):
    x = X.astype(dtype)
    if x.dtype.kind == "c":
        x = x + 0.3j
    if fn is not np.reciprocal:
        x = x - (0.5 if fn in ANYWHERE else 0)
    check_rrule(fn, x, order=2 if dtype == "f8" else 1)
    check_rrule(fn, x[:0])
    check_rrule(fn, x.T[::2])
    check_rrule(fn, x[0, 0])
    check_rrule(fn, x[0, 0].item())
    check_rrule(fn, np.array(x[1, 1]))


@pytest.mark.parametrize("fn", REAL)
@pytest.mark.parametrize("x", [X - 0.52, X.astype("f4"), 0.3, np.float32(0.3)])
def test_one_real_argument(fn, x):
    check_rrule(fn, x)


def test_arccosh():
    check_rrule(np.arccosh, X + 1, order=2)
    check_rrule(np.arccosh, X + 1j)


@pytest.mark.parametrize("fn", [np.exp, np.sin, np.sqrt, np.square, np.arctan])
def test_integers(fn):
    check_rrule(fn, np.array([1, 2, 3]))
    check_rrule(fn, 2)


@pytest.mark.parametrize("fn", [np.arcsin, np.arccos, np.arctanh, np.arccosh, np.log, np.sqrt])
@pytest.mark.parametrize("x", [-1.5 + 0j, -1.5 - 0j, complex(1.5, 0.0), complex(1.5, -0.0)])
def test_branch_cuts(fn, x):
    (x̄,) = gradients(fn, np.array([x]), ȳ=np.ones(1, complex))
    h = 1e-6 * (1j if np.copysign(1, x.imag) > 0 else -1j)  # along the side that x is on
    slope = (fn(x + 2 * h) - fn(x + h)) / h
    assert np.allclose(x̄, np.conj(slope), atol=1e-4)


@pytest.mark.parametrize(
    "fn",
    [np.arctan2, np.hypot, np.copysign, np.logaddexp, np.logaddexp2, np.fmod, np.maximum,
     np.minimum, np.fmax, np.fmin, np.heaviside],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_two_arguments(fn, dtype):
    a = np.array([[1.3, -0.7, 2.1], [0.4, 5.3, -1.2]], dtype)
    b = np.array([0.5, 1.1, -0.8], dtype)
    check_rrule(fn, a, b, order=2)
    check_rrule(fn, a, 0.9)
    check_rrule(fn, 0.9, a)
    check_rrule(fn, a[0], b[:, None])
    check_rrule(fn, 1.3, 0.4)
    check_rrule(fn, a[0, 0], np.float64(0.4))
    check_rrule(fn, a[:0], b)


def test_ldexp():
    check_rrule(np.ldexp, X, np.array([1, -2, 3]))
    check_rrule(np.ldexp, X.astype("f4"), 2)


def test_absolute_of_integers_and_at_zero():
    assert gradients(np.absolute, np.array([0.0, -1.0, 2.0]), ȳ=np.ones(3))[0].tolist() == [
        0,
        -1,
        1,
    ]
    assert gradients(np.absolute, np.array([0j, 3 + 4j]), ȳ=np.ones(2))[0].tolist() == [
        0,
        0.6 + 0.8j,
    ]


def test_removable_points():
    zero = np.zeros(1)
    assert gradients(np.hypot, zero, zero, ȳ=np.ones(1)) == (0, 0)
    assert gradients(np.sinc, zero, ȳ=np.ones(1)) == (0,)
    with np.errstate(divide="ignore"):
        assert gradients(np.sqrt, zero, ȳ=np.ones(1)) == (np.inf,)
    x = np.array([1e-6, -1e-4, 1e-2])
    assert np.allclose(gradients(np.sinc, x, ȳ=np.ones(3))[0], -(np.pi**2) * x / 3, rtol=1e-3)


def test_infinite_logaddexp():
    a, b = np.array([-np.inf, -np.inf, 0.0]), np.array([-np.inf, 0.0, -np.inf])
    ā, b̄ = gradients(np.logaddexp, a, b, ȳ=np.ones(3))
    assert np.allclose(ā, [0.5, 0, 1])
    assert np.allclose(b̄, [0.5, 1, 0])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i8"])
def test_logaddexp_overflows_nowhere(dtype):
    """Without a warning, which would be an error here; small slopes are as exact as large ones."""
    x = np.array([-1e4, -30, 0, 30, 1e4]).astype(dtype)
    b̄ = gradients(np.logaddexp, np.zeros(5, dtype), x, ȳ=np.ones(5))[1]
    with np.errstate(over="ignore"):
        expected = 1 / (1 + np.exp(-x.astype(float)))
    assert np.allclose(b̄, expected, rtol=1e-3, atol=max(1e-300, np.finfo(b̄.dtype).tiny))


def test_logaddexp_of_infinite_and_large_numbers():
    a, b = np.array([np.inf, -np.inf, np.inf, 1e3]), np.array([np.inf, np.inf, -1e3, -1e3])
    ā, b̄ = gradients(np.logaddexp, a, b, ȳ=np.ones(4))
    assert np.allclose(ā, [0.5, 0, 1, 1])
    assert np.allclose(b̄, [0.5, 1, 0, 0])


@pytest.mark.parametrize("fn", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_ties_are_shared(fn):
    x = np.array([0.0, 1.0, -1.0])
    ā, b̄ = gradients(fn, x, 0.0, ȳ=np.ones(3))
    assert ā.tolist() in ([0.5, 1, 0], [0.5, 0, 1])
    assert b̄ == 1.5
    assert gradients(fn, 1.0, 1.0) == (0.5, 0.5)
    assert gradients(fn, x, x.copy(), ȳ=np.ones(3))[0].tolist() == [0.5] * 3


@pytest.mark.parametrize("n", [3, 5000])
def test_maximum_passes_nothing_to_the_other_side(n):
    x = np.full(n, -1.0)
    (x̄, _) = gradients(np.maximum, x, 0.0, ȳ=np.full(n, np.inf))
    assert not x̄.any()


def test_fmax_with_nan():
    a, b = np.array([np.nan, 1.0]), np.array([2.0, np.nan])
    ā, b̄ = gradients(np.fmax, a, b, ȳ=np.ones(2))
    assert ā.tolist() == [0, 1]
    assert b̄.tolist() == [1, 0]


C = np.array([[True, False, True], [False, False, True]])


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
def test_where(rng, dtype):
    a = X.astype(dtype)
    check_rrule(np.where, C, a, a[0] * 2, order=2)
    check_rrule(np.where, C, a, 2.0)
    check_rrule(np.where, C, 2.0, a)
    check_rrule(np.where, C[0], a[:, :1], 1.5)
    check_rrule(np.where, C, 1.0, 2.0)
    check_rrule(np.where, True, a, a + 1)
    check_rrule(np.where, True, 1.0, 2.0)
    check_rrule(np.where, np.bool_(False), a[0, 0], 2.0)
    check_rrule(np.where, C[:0], a[:0], 1.0)


def test_where_of_scalars_gives_a_structural_zero():
    assert gradients(np.where, True, 1.0, 2.0)[2] is ZeroTangent()


@pytest.mark.parametrize(
    "bounds", [(0.2, 0.7), (None, 0.7), (0.2, None), (X[0] - 0.1, X[1] + 0.07)]
)
def test_clip(bounds):
    for fn in (np.clip, np.ndarray.clip):
        check_rrule(fn, X, *bounds, order=2)
        check_rrule(fn, X, min=bounds[0], max=bounds[1])
    check_rrule(np.clip, X, a_min=bounds[0], a_max=bounds[1])


def test_clip_at_its_bounds():
    check_rrule(np.clip, X, X[0] - 0.1, X[1])  # to first order: the slope jumps there
    assert gradients(np.clip, np.array([0.0, 0.5, 1.0]), 0.0, 1.0, ȳ=np.ones(3))[0].tolist() == [
        0.5,
        1,
        0.5,
    ]


@pytest.mark.parametrize("fn", [np.real, np.imag, np.angle, np.conjugate, np.ndarray.conj])
def test_parts(fn):
    check_rrule(fn, X + 1j * X[::-1])
    if fn is not np.ndarray.conj:
        check_rrule(fn, 0.3 + 0.4j)
    if fn is not np.angle:
        check_rrule(fn, X)


def test_angle_in_degrees():
    check_rrule(np.angle, X + 1j, deg=True)


def test_nan_to_num_of_complex_numbers_with_one_finite_part(path):
    nan, inf = float("nan"), float("inf")
    z = np.array([1 + 2j, complex(nan, 1), complex(1, nan), complex(-inf, 2), complex(nan, inf)])

    def f(z):
        y = np.nan_to_num(z, posinf=1.0, neginf=2.0)
        return np.sum(y.real * [1, 2, 3, 4, 5] + y.imag * [5, 4, 3, 2, 1])

    assert gradient(f, z)[0].tolist() == [1 + 5j, 4j, 3, 2j, 0]
    assert jvp(f, (z,), ((1 + 2j) * np.ones(5),))[1] == 1 + 10 + 8 + 3 + 4


def test_nan_to_num():
    x = np.array([1.0, np.nan, np.inf])
    assert gradients(np.nan_to_num, x, ȳ=np.ones(3))[0].tolist() == [1, 0, 0]
    check_rrule(np.nan_to_num, X)


@pytest.mark.parametrize("shape", [(5,), (2, 3), ()])
def test_the_slope_of_logaddexp_with_zero_is_the_logistic_function(rng, shape):
    z = np.asarray(rng.standard_normal(shape))
    slope = gradient(lambda z: np.sum(np.logaddexp(0.0, z)), z)[0]
    np.testing.assert_allclose(slope, 1 / (1 + np.exp(-z)), rtol=1e-15)


def cross_entropy(w, X):
    return np.sum(np.logaddexp(0.0, X @ w))


def read_again(w, X):
    z = X @ w
    return np.sum(np.logaddexp(0.0, z) * z)


@pytest.mark.parametrize(("f", "in_place"), [(cross_entropy, True), (read_again, False)])
def test_the_slope_of_logaddexp_stands_in_the_memory_of_what_nobody_reads_any_more(f, in_place):
    g, X = grad(f), np.linspace(-2.0, 3.0, 1800).reshape(600, 3)
    for scale in (1.0, 1000.0, 1.0):  # exp(1000) overflows
        w, before = scale * np.array([0.3, -0.2, 0.5]), X.copy()
        kept = w.copy()
        slopes = [(f(w + h, X) - f(w - h, X)) / 2e-6 for h in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(g(w, X), slopes, rtol=1e-5)
        np.testing.assert_array_equal(w, kept)
        np.testing.assert_array_equal(X, before)
    assert any(c is share_in for c in g.__code__.co_consts) == in_place


def test_the_slope_of_logaddexp_where_the_exponential_overflows():
    z = np.array([np.inf, -np.inf, 800.0, -800.0, 0.0])
    slope = gradient(lambda z: np.sum(np.logaddexp(0.0, z)), z)[0]
    np.testing.assert_allclose(slope, [1.0, 0.0, 1.0, 0.0, 0.5], atol=1e-300)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("f", "at"),
    [(np.log, 0.0), (np.log2, 0.0), (np.log10, 0), (np.log1p, -1.0), (np.arctanh, 1.0)],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_an_infinite_slope_at_a_number_of_python_is_no_error(f, at):
    """As for the numbers and arrays of NumPy; dividing by zero is an error in Python alone."""
    assert gradient(f, at) == gradient(lambda x: f(x) * 1.0, at) == (np.inf,)
    assert pullback(f, at)[1](1.0) == (np.inf,)
    assert jvp(f, (at,), (1.0,))[1] == np.inf
    assert gradient(lambda x: f(x).sum(), np.array([at], float))[0] == np.inf
