"""Second and third derivatives of the scalar rules, against mpmath's differences of 40 digits."""

import math

import numpy as np
import pytest

from morula import grad, hessian, jacobian, taylor

mpmath = pytest.importorskip("mpmath", reason="the derivatives are compared with mpmath's")

# name of the function: where, and what it is called in mpmath, if that is another name
OF_ONE = {
    "acos": (0.3, None), "acosh": (1.7, None), "asin": (0.3, None), "asinh": (0.8, None),
    "atan": (0.8, None), "atanh": (0.4, None), "cbrt": (1.7, lambda x: mpmath.root(x, 3)),
    "cos": (0.8, None), "cosh": (0.8, None), "degrees": (0.8, mpmath.degrees),
    "erf": (0.6, None), "erfc": (0.6, None), "exp": (0.7, None),
    "exp2": (0.7, lambda x: mpmath.mpf(2) ** x), "expm1": (0.7, None), "fabs": (-1.2, abs),
    "gamma": (2.3, None), "lgamma": (2.3, mpmath.loggamma), "log": (1.7, None),
    "log10": (1.7, None), "log1p": (0.7, None), "log2": (1.7, lambda x: mpmath.log(x, 2)),
    "radians": (0.8, mpmath.radians), "sin": (0.8, None), "sinh": (0.8, None),
    "sqrt": (1.7, None), "tan": (0.8, None), "tanh": (0.8, None),
}  # fmt: skip
OF_NUMPY = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctanh": "atanh", "cbrt": "cbrt", "cos": "cos", "cosh": "cosh", "deg2rad": "radians",
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "fabs": "fabs", "log": "log",
    "log10": "log10", "log1p": "log1p", "log2": "log2", "rad2deg": "degrees", "sin": "sin",
    "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
MORE_OF_NUMPY = {
    "reciprocal": (1.3, lambda x: 1 / x),
    "sinc": (0.4, lambda x: mpmath.sincpi(x)),
    "square": (1.3, lambda x: x * x),
    "i0": (0.8, lambda x: mpmath.besseli(0, x)),
}
OF_THIRD_ORDER = [  # in reverse mode too, by a compiled program
    "math.atan(x)", "math.cos(x)", "math.erf(x)", "math.exp(x)", "math.log(x)", "math.sinh(x)",
    "math.tan(x)", "np.sin(x)", "np.exp(x)",
]  # fmt: skip
OF_TWO = {
    "math.atan2(a, b)": (0.7, 1.3, mpmath.atan2),
    "math.fmod(a, b)": (5.3, 2.0, lambda a, b: a - b * mpmath.floor(a / b)),
    "math.hypot(a, b)": (0.7, 1.3, mpmath.hypot),
    "math.pow(a, b)": (1.7, 2.3, mpmath.power),
    "a**b": (1.7, 2.3, mpmath.power),
    "a / b": (1.7, 2.3, lambda a, b: a / b),
    "np.arctan2(a, b)": (0.7, 1.3, mpmath.atan2),
    "np.hypot(a, b)": (0.7, 1.3, mpmath.hypot),
    "np.logaddexp(a, b)": (0.7, 1.3, lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b))),
    "np.logaddexp2(a, b)": (0.7, 1.3, lambda a, b: mpmath.log(2**a + 2**b, 2)),
    "np.power(a, b)": (1.7, 2.3, mpmath.power),
}


def calling(text):
    """A function of this text, with code of its own."""
    return eval(f"lambda {text}", {"math": math, "np": np})


def one_by_one():
    for name, (x, f) in OF_ONE.items():
        if hasattr(math, name):  # cbrt and exp2 are of Python 3.11
            yield pytest.param(f"x: math.{name}(x)", x, f or getattr(mpmath, name), id=name)
    for name, other in OF_NUMPY.items():
        x, f = OF_ONE[other]
        f = f or getattr(mpmath, other)
        yield pytest.param(f"x: np.{name}(x)", np.float64(x), f, id=f"np.{name}")
    for name, (x, f) in MORE_OF_NUMPY.items():
        yield pytest.param(f"x: np.{name}(x)", np.float64(x), f, id=f"np.{name}")


@pytest.mark.parametrize(("text", "x", "exact"), one_by_one())
def test_second_and_third_derivatives(text, x, exact):
    with mpmath.workdps(40):
        second, third = [float(mpmath.re(mpmath.diff(exact, float(x), n))) for n in (2, 3)]
    g = grad(grad(calling(text)))
    assert g(x) == pytest.approx(second, rel=1e-9, abs=1e-12)
    series = taylor(calling(text), float(x), 3)
    assert 2 * series[2] == pytest.approx(second, rel=1e-9, abs=1e-12)
    assert 6 * series[3] == pytest.approx(third, rel=1e-9, abs=1e-12)
    if text[3:] in OF_THIRD_ORDER:
        assert grad(g)(x) == pytest.approx(third, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("text", OF_TWO)
def test_derivatives_by_two_arguments(text):
    a, b, exact = OF_TWO[text]
    f = calling(f"a, b: {text}")
    if text.startswith("np."):
        a, b = np.float64(a), np.float64(b)
    for i, j in ((2, 0), (1, 1), (0, 2)):
        with mpmath.workdps(40):
            d = float(mpmath.diff(exact, (float(a), float(b)), (i, j)))
        g = f
        for argument in [0] * i + [1] * j:
            g = grad(g, argument)
        assert g(a, b) == pytest.approx(d, rel=1e-8, abs=1e-12), (i, j)
    with mpmath.workdps(40):
        third = float(mpmath.diff(lambda t: exact(a + t, b - 2 * t), 0, 3))
    series = taylor(lambda t: f(a + t, b - 2 * t), 0.0, 3)
    assert 6 * series[3] == pytest.approx(third, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_powers_at_zero(n):
    g = f = calling(f"x: x**{n}")
    for order in range(1, 5):
        g = grad(g)
        assert g(0.0) == (math.factorial(n) if order == n else 0.0)
        assert taylor(f, 0.0, 4)[order] == (1.0 if order == n else 0.0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_powers_of_arrays_at_zero(n):
    def f(x):
        return (x**n).sum()

    def slope(x):
        return grad(f)(x).sum()

    x = np.zeros(2)
    np.testing.assert_array_equal(grad(slope)(x), np.full(2, 2.0 if n == 2 else 0.0))


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 2.5, 3.0])
def test_real_powers_of_arrays_at_zero_without_false_warnings(p):
    x, exact = np.zeros(2), {0.0: 0.0, 1.0: 0.0, 1.5: math.inf, 2.0: 2.0, 2.5: 0.0, 3.0: 0.0}[p]

    def f(x):
        return np.sum(x**p)

    infinite = math.isinf(exact)
    with np.errstate(all="ignore" if infinite or p == 0 else "raise"):
        for found in (
            hessian(f, x),
            jacobian(grad(f), x)[0],
            hessian(f, x, sparsity="auto").toarray(),
        ):
            np.testing.assert_array_equal(np.diag(found), [exact, exact])
            assert infinite or not found[0, 1]
