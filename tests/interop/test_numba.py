import collections
import math
import subprocess
import sys

import numpy as np
import pytest

import morula
from morula import (
    NoRuleError,
    grad,
    gradient,
    hessian,
    hvp,
    ignore_derivatives,
    jvp,
    pullback,
    value_and_grad,
)
from morula.core.errors import UnsupportedError

numba = pytest.importorskip("numba", reason="functions that Numba compiles need Numba")

from morula.interop.numba import (  # noqa: E402
    compile_gradient,
    njit_grad,
    njit_value_and_grad,
)

# -- compiled functions inside of a program --------------------------------------------------------


@numba.njit
def weighted(x, w):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i] * w
    return s


@numba.njit
def nested(x):
    return weighted(x, 2.0) ** 2


@numba.vectorize
def bent(a, b):
    return a * math.sin(b) if a > 1.5 else a * b


@numba.guvectorize(["(float64[:], float64[:])"], "(n)->()")
def total(a, out):
    out[0] = a.sum()


X = np.array([1.0, 2.0, 3.0])


def test_functions_of_njit_are_looked_into():
    def loss(x):
        return weighted(x, x[0]) + nested(x)

    def plain(x):
        return weighted.py_func(x, x[0]) + weighted.py_func(x, 2.0) ** 2

    assert np.array_equal(gradient(loss, X)[0], gradient(plain, X)[0])
    assert np.allclose(jvp(loss, (X,), (X,))[1], jvp(plain, (X,), (X,))[1])
    assert np.allclose(hessian(loss, X), hessian(plain, X))
    assert np.array_equal(grad(nested)(X), gradient(nested.py_func, X)[0])
    assert gradient(numba.njit(lambda x, k=3.0: k * x), 2.0, k=5.0) == (5.0,)


def test_what_a_function_of_njit_writes_to_is_followed():
    @numba.njit
    def fill(x, out):
        for i in range(len(x)):
            out[i] = x[i] * x[i]

    def loss(x):
        out = np.zeros(3)
        fill(x, out)
        return out.sum()

    assert gradient(loss, X)[0].tolist() == [2.0, 4.0, 6.0]
    assert jvp(loss, (X,), (X,))[1] == 28.0


def test_functions_of_vectorize_go_entry_by_entry():
    def loss(x):
        return bent(x, x[0]).sum()

    def plain(x):
        return x[0] * x[0] + (x[1] + x[2]) * np.sin(x[0])

    assert np.allclose(gradient(loss, X)[0], gradient(plain, X)[0])
    assert np.allclose(jvp(loss, (X,), (X,))[1], jvp(plain, (X,), (X,))[1])
    value, _ = value_and_grad(lambda a: bent(a, 2.0))(3.0)
    assert value == bent(3.0, 2.0)


def test_functions_of_guvectorize_are_refused_where_it_matters():
    assert gradient(lambda x: (total(x), x.sum())[1], X)[0].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(NoRuleError, match="made by guvectorize"):
        gradient(lambda x: total(x) * 1.0, X)
    with pytest.raises(NoRuleError, match="made by guvectorize"):
        jvp(lambda x: total(x) * 1.0, (X,), (X,))


def test_numba_is_not_imported_by_morula():
    code = "import sys, morula; morula.gradient(abs, 1.0); assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- compiled gradients ----------------------------------------------------------------------------


def power(x, n):
    r = 1.0
    while n > 0:
        n -= 1
        r *= x
    return r


def squares(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
    return s


def lotka_volterra(p):
    x, y, h = 10.0, 5.0, 0.01
    for _ in range(50):
        a = p[0] * x - p[1] * x * y
        b = p[2] * x * y - p[3] * y
        c = p[0] * (x + h * a) - p[1] * (x + h * a) * (y + h * b)
        d = p[2] * (x + h * a) * (y + h * b) - p[3] * (y + h * b)
        x, y = x + h * (a + c) / 2, y + h * (b + d) / 2
    return x + y


def heat(u0, k):
    u = u0.copy()
    for _ in range(5):
        old = u.copy()
        for i in range(1, len(u) - 1):
            u[i] = old[i] + k * (old[i - 1] - 2 * old[i] + old[i + 1])
    s = 0.0
    for i in range(len(u)):
        s += u[i] * u[i]
    return s


def pairs(x):
    e = 0.0
    for i in range(len(x)):
        for j in range(i):
            r2 = 0.0
            for k in range(3):
                d = x[i, k] - x[j, k]
                r2 += d * d
            e += 1 / r2
    return e


def early(x):
    y = x
    while y * y < 100.0:
        if y > 5:
            y = y * 1.5
            continue
        k = 0
        while k < 3:
            y = y + math.sin(x) / 3
            k += 1
            if y > 8:
                break
    return y


def not_taken(x):
    y = math.sqrt(x - 1) if x >= 1 else 0.0
    return max(y, 0.5) + x**2.5


FACTOR = 2.5


def with_global(x):
    return FACTOR * x * x


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("f", "points"),
    [
        (power, [(1.01, 100), (1.5, 3), (1.5, 0)]),
        (lotka_volterra, [(np.array([1.1, 0.4, 0.1, 0.4]),)]),
        (heat, [(RNG.random(12), 0.1)]),
        (pairs, [(RNG.random((5, 3)),)]),
        (early, [(1.0,)]),
        (not_taken, [(1.0,), (3.0,)]),
        (with_global, [(3.0,)]),
    ],
)
def test_compiled_gradients_are_those_of_morula(f, points):
    compiled = njit_value_and_grad(f)
    for args in points:
        value, expected = value_and_grad(f)(*args)
        found_value, found = compiled(*args)
        assert np.allclose(found_value, value, rtol=1e-14)
        assert np.allclose(found, expected, rtol=1e-13, atol=1e-300)
        assert np.shape(found) == np.shape(expected)


def test_compiled_gradients_serve_other_lengths_and_types():
    g = njit_grad(squares)
    assert g(np.ones(3)).tolist() == [2.0] * 3
    assert g(np.ones(5)).tolist() == [2.0] * 5
    assert g(np.ones(0)).shape == (0,)
    assert g.__name__ == "squares"
    both = njit_grad(lambda x, k: x * x * k, argnums=(1, 0))
    assert both(2.0, k=0.5) == (4.0, 2.0)


def test_compiled_gradients_of_functions_of_njit_and_within_them():
    @numba.njit
    def step(x, k):
        return x * x * k

    k = 3.0
    f = numba.njit(lambda x: step(x, k) + x)
    assert njit_grad(f)(2.0) == 13.0
    slope = compile_gradient(f, 1.0)

    @numba.njit
    def descend(x):
        for _ in range(100):
            x -= 0.1 * slope(x)[1]
        return x

    assert math.isclose(descend(1.0), -1 / 6)


def test_what_does_not_compile_is_named():
    def writes(x):
        x[0] = 1.0
        return x.sum()

    with pytest.raises(
        UnsupportedError, match=r"cannot be compiled by Numba: a value .* changed in place"
    ):
        njit_grad(writes)(np.ones(3))
    with pytest.raises(UnsupportedError, match=r"hook in line \d+"):
        njit_grad(lambda x: x * morula.hook(abs, x))(1.0)
    assert njit_grad(lambda x: x * morula.ignore_derivatives(x))(3.0) == 3.0
    with pytest.raises(UnsupportedError, match="by keyword only"):
        njit_grad(lambda x, *rest: x)(1.0)


def test_arrays_that_broadcast_are_refused_and_never_wrong():
    g = njit_grad(lambda x, y: (x * y).sum())
    assert g(np.ones(3), np.arange(3.0)).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="broadcast"):
        g(np.ones(1), np.arange(3.0))


def test_zeros_that_are_structural_stay_zero():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += max(math.sqrt(x[i]), 0.5)
        return s

    expected = grad(f)(np.array([0.0, 1.0]))
    assert expected.tolist() == [0.0, 0.5]
    assert njit_grad(f)(np.array([0.0, 1.0])).tolist() == [0.0, 0.5]


# -- second order, structures, containers ----------------------------------------------------------

Pair = collections.namedtuple("Pair", "a b")


@numba.njit
def product_and_sum(p, k):
    return p.a * p.b**2, p.a + k


def test_structures_go_through_functions_of_njit():
    p = Pair(2.0, 3.0)
    assert gradient(lambda p: product_and_sum(p, 1.0)[0], p) == (Pair(9.0, 12.0),)
    assert pullback(product_and_sum, p, 1.0)[1]((1.0, 10.0)) == (Pair(19.0, 12.0), 10.0)
    assert hvp(lambda p: product_and_sum(p, 1.0)[0], p, Pair(1.0, 1.0)) == Pair(6.0, 10.0)
    assert njit_grad(lambda p: p[0] * p[1])((2.0, 3.0)) == (3.0, 2.0)
    single = gradient(lambda x: weighted(x, 2.0), X.astype(np.float32))[0]
    assert single.dtype == njit_grad(lambda x: (x * x).sum())(X.astype(np.float32)).dtype
    assert single.dtype == np.float32


SLOPE, BOTH = njit_grad(power), njit_value_and_grad(power)


def test_compiled_gradients_that_a_closure_has_captured():
    def by_closure():
        cube = njit_value_and_grad(lambda x: np.sum(x * x * x))

        def f(x):
            y, slope = cube(x)
            return y + np.sum(slope)

        return f

    f = by_closure()
    np.testing.assert_allclose(grad(f)(X), 3 * X**2 + 6 * X)
    np.testing.assert_allclose(jvp(f, (X,), (np.ones(3),))[1], np.sum(3 * X**2 + 6 * X))
    np.testing.assert_allclose(hvp(f, X, np.ones(3)), 6 * X + 6)
    held = {"slope": njit_grad(lambda x: x**3)}
    assert grad(lambda x: held["slope"](x) * x)(2.0) == pytest.approx(36.0)


def test_derivatives_of_compiled_gradients_are_those_of_morula():
    assert (SLOPE.__name__, SLOPE(2.0, 3)) == ("power", 12.0)
    assert grad(SLOPE)(2.0, 3) == 12.0
    assert gradient(lambda x: BOTH(x, 3)[0] * BOTH(x, 3)[1], 2.0) == (240.0,)


@numba.experimental.jitclass([("a", numba.float64)])
class Compiled:
    def __init__(self, a):
        self.a = a

    def scaled(self, x):
        return self.a * x


@pytest.mark.parametrize(
    "f",
    [
        lambda x: Compiled(x).scaled(2.0),
        lambda x: Compiled(x).a * 2.0,
        lambda x: numba.typed.List([x, 2.0])[0] * 2.0,
    ],
)
def test_containers_and_classes_that_numba_compiles_are_refused(f):
    for run in (lambda: gradient(f, 3.0), lambda: jvp(f, (3.0,), (1.0,))):
        with pytest.raises(NoRuleError, match="Numba compiled it, and what it was made of"):
            run()


def test_a_function_of_the_users_may_be_given_what_numba_compiled():
    """It is followed; what reads from the object is refused, unless it is said to be constant."""
    box = Compiled(3.0)

    def scaled(box, x):
        return x * ignore_derivatives(box.a) * (2.0 if box.a > 0 else 1.0)

    assert gradient(lambda x: scaled(box, x) * x, 2.0) == (24.0,)
    assert gradient(scaled, box, 2.0) == (None, 6.0)
    assert gradient(lambda x: x * ignore_derivatives(lambda: box.scaled(2.0)), 1.0) == (6.0,)
    for f in (lambda x: box.a * x, lambda x: box.scaled(x)):
        with pytest.raises(NoRuleError, match="ignore_derivatives"):
            gradient(f, 2.0)
