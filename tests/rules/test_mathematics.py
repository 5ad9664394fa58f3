"""The functions of math and cmath, against finite differences and mpmath."""

import cmath
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from morula import grad, hessian, jvp
from morula.core.registry import apply_rule, find_rrule, registry
from morula.rules import mathematics
from morula.rules.mathematics import IN_PYTHON, digamma, polygamma
from morula.testing import check_frule, check_gradient, check_rrule

# The names of COVERAGE: every one has a rule or is constant, in every version of Python.
RULE = """
    acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees dist erf erfc exp exp2
    expm1 fabs fma fmod frexp fsum gamma hypot ldexp lgamma log log10 log1p log2 modf nextafter pow prod
    radians remainder sin sinh sqrt sumprod tan tanh
""".split()
CONSTANT = """
    ceil comb factorial floor gcd isclose isfinite isinf isnan isqrt lcm perm trunc ulp
""".split()
ONE = """
    acos asin asinh atan atanh cbrt cos cosh degrees erf erfc exp exp2 expm1 fabs gamma lgamma log
    log10 log1p log2 radians sin sinh sqrt tan tanh
""".split()
COMPLEX = "acos acosh asin asinh atan atanh cos cosh exp log log10 sin sinh sqrt tan tanh".split()
OTHERS = [Fraction(1, 3), Decimal("0.3"), np.float32(0.3), np.float16(0.3), mpmath.mpf("0.3")]


def gradient_of(fn, *args, seed=1.0, **kwargs):
    return apply_rule(find_rrule(fn, args, kwargs), args, kwargs)[1](seed)


@pytest.mark.parametrize("name", RULE)
def test_there_is_a_rule(name):
    fn = getattr(math, name, None)
    if fn is not None:
        args = {"ldexp": (0.5, 1), "fsum": ((1.0,),), "prod": ((1.0,),), "dist": ((1.0,), (2.0,))}
        args["sumprod"] = args["dist"]
        guesses = [args[name]] if name in args else [(0.5,), (0.5, 0.5), (0.5, 0.5, 0.5)]
        assert any(find_rrule(fn, guess) for guess in guesses)


@pytest.mark.parametrize("name", CONSTANT)
def test_constants(name):
    assert registry.get(getattr(math, name)).constant
    if hasattr(cmath, name):
        assert registry.get(getattr(cmath, name)).constant


def test_every_function_of_both_modules_is_known():
    for module in (math, cmath):
        for name, fn in vars(module).items():
            if callable(fn) and not name.startswith("_"):
                known = mathematics.rrule.__globals__["registry"].get(fn)
                assert known is not None, name


# -- one argument ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("x", [0.3, 0.85, -0.4, 0.001, np.float64(0.6), 2.5, 7, -1.7])
def test_functions_of_one_argument(name, x):
    fn = getattr(math, name)
    try:
        fn(x), fn(x + 0.01), fn(x - 0.01)
    except ValueError:
        return  # outside of the domain
    check_rrule(fn, x)
    check_frule(fn, x)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("x", [*OTHERS, np.array(0.3), np.array(0.3, "f4")], ids=repr)
def test_other_numbers_get_cotangents_of_their_own_type(name, x):
    check_rrule(getattr(math, name), x)


@pytest.mark.parametrize("x", [1.3, 7, Fraction(4, 3)])
def test_acosh(x):
    check_rrule(math.acosh, x)


@pytest.mark.parametrize("name", [*ONE, "acosh"])
def test_second_derivatives(name):
    check_rrule(getattr(math, name), 1.4 if name == "acosh" else 0.35, order=2)


@pytest.mark.parametrize(
    ("fn", "x", "slope"),
    [
        (math.sqrt, 0.0, math.inf),
        (math.cbrt, 0.0, math.inf),
        (math.asin, 1.0, math.inf),
        (math.acos, -1.0, -math.inf),
        (math.acosh, 1, math.inf),
        (math.fabs, 0.0, 0.0),
        (math.log, 10**400, 0.0),
        (math.exp, -math.inf, 0.0),
    ],
)
def test_points_at_the_edge(fn, x, slope):
    assert gradient_of(fn, x) == (slope,)


def test_nan_stays_nan():
    for fn in (math.fabs, math.sin, math.sqrt, math.tanh):
        assert math.isnan(gradient_of(fn, math.nan)[0])


# -- gamma -----------------------------------------------------------------------------------------

POINTS = [*np.linspace(-5.3, 30, 40), 1e-5, 0.5, 1.0, 100.0, 1e6]


@pytest.mark.parametrize("x", POINTS)
def test_digamma(x):
    assert digamma(x) == pytest.approx(float(mpmath.digamma(x)), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("x", [x for x in POINTS if abs(x) > 1e-3])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_polygamma(n, x):
    assert polygamma(n, x) == pytest.approx(float(mpmath.polygamma(n, x)), rel=1e-11)


def test_poles():
    assert all(math.isnan(digamma(-n)) and math.isnan(polygamma(1, -n)) for n in range(4))


def test_the_chain_of_derivatives_of_gamma():
    check_rrule(digamma, 1.7)
    check_frule(digamma, 1.7)
    check_rrule(polygamma, 2, 1.7)
    check_frule(polygamma, 2, 1.7)


# -- several arguments -----------------------------------------------------------------------------

TWO = ["pow", "atan2", "hypot", "log", "fmod", "remainder", "copysign"]


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize(
    ("a", "b"), [(1.3, 0.4), (2, 0.7), (0.3, 5), (1.2, Fraction(2, 3)), (np.float32(2.2), 0.3)]
)
def test_functions_of_two_arguments(name, a, b):
    check_rrule(getattr(math, name), a, b)
    if not isinstance(a, np.float32) and not isinstance(b, Fraction):
        check_frule(getattr(math, name), a, b)


@pytest.mark.parametrize("name", TWO)
def test_second_derivatives_of_two_arguments(name):
    check_rrule(getattr(math, name), 1.3, 0.4, order=2)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("fmod", (-7.3, 2.1)),
        ("remainder", (7.9, 2.1)),
        ("remainder", (-7.9, -2.1)),
        ("atan2", (-0.3, -0.5)),
        ("copysign", (2.0, -1.0)),
        ("copysign", (-2, -1.0)),
        ("hypot", (2.0,)),
        ("hypot", (1.0, 2.0, 3)),
        ("hypot", (1.0, Fraction(2), np.float32(3))),
        ("ldexp", (1.3, 4)),
        ("ldexp", (np.float32(1.3), -4)),
        ("modf", (-2.7,)),
        ("modf", (np.float32(2.7),)),
        ("frexp", (5.3,)),
        ("frexp", (Fraction(-7, 3),)),
    ],
)
def test_more_arguments(name, args):
    check_rrule(getattr(math, name), *args)


@pytest.mark.skipif(not hasattr(math, "fma"), reason="from CPython 3.13")
def test_fma():
    check_rrule(math.fma, 1.5, 2.5, 3.5)


@pytest.mark.parametrize(
    ("fn", "args", "expected"),
    [
        (math.hypot, (0.0, 0.0), (0, 0)),
        (math.hypot, (0.0, 0, 0.0), (0, 0, 0)),
        (math.dist, ((0.0, 1.0), (0.0, 1.0)), ((0, 0), (0, 0))),
        (math.atan2, (0.0, 0.0), (0, 0)),
        (math.pow, (0.0, 2.0), (0, 0)),
        (math.pow, (0.0, 1.0), (1, 0)),
        (math.pow, (0.0, 0.0), (0, 0)),
        (math.pow, (0.0, 0.5), (math.inf, 0)),
    ],
)
def test_degenerate_points(fn, args, expected):
    assert gradient_of(fn, *args) == expected


def test_pow_of_a_negative_base():
    ā, b̄ = gradient_of(math.pow, -1.5, 3.0)
    assert ā == pytest.approx(6.75)
    assert math.isnan(b̄)


# -- sequences -------------------------------------------------------------------------------------


@pytest.mark.parametrize("items", [(1.0, 2.0, 3), (), np.array([1.5, 2.5]), (Fraction(1, 2), 2.0)])
def test_sums_and_products(items):
    check_rrule(math.fsum, items)
    check_rrule(math.prod, items)
    check_rrule(math.prod, items, start=2.5)


@pytest.mark.parametrize("items", [(0.0, 2.0, 3.0), (0.0, 2.0, 0.0), (1j, 2.0, 1 - 1j)])
def test_products_need_no_division(items):
    check_rrule(math.prod, items)


def test_the_product_of_one_zero():
    assert gradient_of(math.prod, (0.0, 2.0, 3.0)) == ((6.0, 0.0, 0.0),)


@pytest.mark.parametrize(
    ("p", "q"),
    [((1.0, 2), (4.0, 6.0)), (np.array([1.0, 2.0]), (4.0, 6.5)), ((), ()), ((1.0,), (3.0,))],
)
def test_distances(p, q):
    check_rrule(math.dist, p, q)
    if hasattr(math, "sumprod"):
        check_rrule(math.sumprod, p, q)


@pytest.mark.parametrize("fn", IN_PYTHON)
def test_iterables_in_python_give_the_same_value(fn):
    items = [[0.1, 0.7, 0.3]] if fn in (math.fsum, math.prod) else [[0.1, 0.7], (0.3, 2.0)]
    iterators = map(iter, items) if len(items) == 1 else items
    assert IN_PYTHON[fn](*iterators) == fn(*items)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("fsum_of", (1.0, 2, Fraction(1, 2))),
        ("prod_of", (2, 1.5, 0.0, 3.5)),
        ("dist_of", (2, 1.0, 2.0, 4.0, 6.0)),
        ("sumprod_of", (2, 1.0, 2.0, 4.0, 6.0)),
    ],
)
def test_what_iterables_are_reduced_to(name, args):
    if name != "sumprod_of" or hasattr(math, "sumprod"):
        check_rrule(getattr(mathematics, name), *args)


# -- cmath -----------------------------------------------------------------------------------------

PLANE = [
    0.3 + 0.4j,
    -0.2 - 0.5j,
    2 - 1j,
    -2 + 0.1j,
    np.complex128(1 - 0.2j),
    np.complex64(1 + 0.3j),
]


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("z", [*PLANE, 0.3, -0.4, 2, *OTHERS, mpmath.mpc(0.2, 0.3), np.array(0.3j)])
def test_holomorphic_functions(name, z):
    check_rrule(getattr(cmath, name), z)
    if isinstance(z, (int, float, complex)):
        check_frule(getattr(cmath, name), z)


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("z", [0.3 + 0.4j, 0.3])
def test_second_derivatives_in_the_plane(name, z):
    check_rrule(getattr(cmath, name), z, order=2)


@pytest.mark.parametrize("name", ["phase", "polar"])
@pytest.mark.parametrize("z", [*PLANE, -0.4, 2])
def test_polar_coordinates(name, z):
    check_rrule(getattr(cmath, name), z)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (cmath.log, (1 + 2j, 3.0)),
        (cmath.log, (2.0, 3j)),
        (cmath.rect, (2.0, 0.3)),
        (cmath.rect, (2, Fraction(1, 3))),
    ],
)
def test_complex_functions_of_two_arguments(fn, args):
    check_rrule(fn, *args)


def test_complex_points_at_the_edge():
    assert gradient_of(cmath.sqrt, 0j) == (math.inf,)
    assert gradient_of(cmath.phase, 0j) == (0,)
    assert gradient_of(cmath.polar, 0j, seed=(1.0, 1.0)) == (0,)


def test_real_arguments_get_real_gradients():
    for name in COMPLEX:
        (x̄,) = gradient_of(getattr(cmath, name), -0.7, seed=1 + 2j)
        assert type(x̄) is float


OF_ARRAYS = {
    "arrays": lambda x: math.prod([x * np.arange(1.0, 3.0), x * x * np.ones(2)]),
    "numbers among arrays": lambda x: math.prod((x, np.arange(1.0, 3.0), 2)),
    "from a number": lambda x: math.prod([np.arange(1.0, 3.0) * x], start=x),
    "rows": lambda x: math.prod(x * np.arange(1.0, 7.0).reshape(3, 2)),
    "a generator": lambda x: math.prod(x * y for y in (np.ones(2), np.arange(2.0))),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_products_of_arrays(name):
    check_gradient(lambda x: np.sum(OF_ARRAYS[name](x) ** 2), 1.3)


@pytest.mark.parametrize(
    ("f", "first", "second"),
    [
        (math.sqrt, math.inf, -math.inf),
        (lambda x: x**0.5, math.inf, -math.inf),
        (lambda x: math.pow(x, 0.25), math.inf, -math.inf),
        (lambda x: x**1.5, 0.0, math.inf),
        (lambda x: 2.0 * math.sqrt(x) + x * x, math.inf, -math.inf),
    ],
)
def test_a_slope_that_is_infinite_at_zero_falls_from_there(f, first, second):
    def slope(x):
        return grad(f)(x)

    assert slope(0.0) == first
    assert grad(slope)(0.0) == grad(grad(f))(0.0) == hessian(f, 0.0) == second
    assert jvp(slope, (0.0,), (1.0,))[1] == second
