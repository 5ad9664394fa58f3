"""jacobian, hessian, hvp, diaghessian, forwarddiff: shapes, modes, dtypes, what is refused."""

import math
import operator
import pickle
import tracemalloc
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from morula import (
    ArgumentError,
    UnsupportedError,
    diaghessian,
    forwarddiff,
    gradient,
    hessian,
    hvp,
    jacobian,
    jvp,
    prefer_forward,
    pullback,
)
from morula.core.extend import by_the_general_path
from morula.testing import check_gradient

X = np.array([1.0, 2.0, 3.0])


def f(x):
    return np.array([[x[0] ** 2 * x[1], np.sin(x[2])], [x[0], x[1] * x[2]]])


EXPECTED = np.array([[[4, 1, 0], [0, 0, math.cos(3.0)]], [[1, 0, 0], [0, 3, 2]]])


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_the_shape_is_that_of_the_result_and_the_argument(mode):
    (j,) = jacobian(f, X, mode=mode)
    assert j.shape == (2, 2, 3)
    np.testing.assert_allclose(j, EXPECTED)
    np.testing.assert_allclose(jacobian(f, mode=mode)(X), EXPECTED)


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_scalars_stay_scalars_and_every_argument_has_its_own(mode):
    assert jacobian(lambda a, b: a * b, 2.0, 3, mode=mode) == (3.0, 2.0)
    by_x, by_a = jacobian(lambda x, a: a * x, X, 2.0, mode=mode)
    np.testing.assert_allclose(by_x, 2 * np.eye(3))
    np.testing.assert_allclose(by_a, X)
    assert jacobian(lambda x: x, np.zeros(0), mode=mode)[0].shape == (0, 0)
    assert jacobian(lambda x: 2.0 * x, np.ones((2, 1)), mode=mode)[0].shape == (2, 1, 2, 1)


def test_the_mode_with_fewer_runs_is_chosen():
    runs = []

    def counted(x):
        runs.append(1)
        return np.sum(x)

    jacobian(counted, np.ones(10))
    assert len(runs) == 1
    jacobian(counted, np.ones(10), mode="forward")
    assert len(runs) == 2  # one for all directions
    jacobian(counted, np.ones(40), mode="forward")
    assert len(runs) == 5  # one for every sixteen


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "g", "F"])
def test_the_dtype_is_kept(mode, dtype):
    (j,) = jacobian(lambda x: x * x, np.array([1, 2], dtype), mode=mode)
    assert j.dtype == np.dtype(dtype)
    np.testing.assert_allclose(j, [[2, 0], [0, 4]])
    assert jacobian(lambda n: n * n, np.array([1, 2]), mode=mode)[0].dtype == np.float64


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_holomorphic_function(mode):
    z = np.array([1 + 2j, 3 - 1j])
    np.testing.assert_allclose(jacobian(lambda z: z**2, z, mode=mode)[0], np.diag(2 * z))


@pytest.mark.parametrize(
    ("args", "keywords", "error", "message"),
    [
        (([1.0],), {}, TypeError, "argument 0 is a list, Jacobians and Hessians are of numbers"),
        ((X,), {"mode": "sideways"}, ValueError, "mode is 'forward', 'reverse' or None"),
        ((np.array(["a"]),), {}, TypeError, "has no derivative"),
    ],
)
def test_what_is_refused(args, keywords, error, message):
    with pytest.raises(error, match=message):
        jacobian(lambda x: x, *args, **keywords)


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
@pytest.mark.parametrize("x", [1.0, np.ones(2)])
def test_a_result_that_is_no_array_is_refused(mode, x):
    for _ in range(2):
        with pytest.raises(TypeError, match="the result is a tuple"):
            jacobian(lambda x: (x, x), x, mode=mode)


# -- second derivatives ----------------------------------------------------------------------------


def g(x):
    return np.sum(x**2) * x[0] + np.exp(x[1])


HESSIAN = np.array([[6.0, 4, 6], [4, 2 + math.exp(2.0), 0], [6, 0, 2]])


def test_hessians():
    np.testing.assert_allclose(hessian(g, X), HESSIAN)
    np.testing.assert_allclose(hessian(g)(X), HESSIAN)
    np.testing.assert_allclose(hvp(g, X, X), HESSIAN @ X)
    np.testing.assert_allclose(diaghessian(g, X), np.diag(HESSIAN))
    assert hessian(math.sin, 0.5) == -math.sin(0.5)
    assert diaghessian(math.sin, 0.5) == -math.sin(0.5)
    assert hessian(lambda x: np.sum(x**2), np.ones((2, 1))).shape == (2, 1, 2, 1)


@pytest.mark.parametrize("dtype", ["f2", "f4", "g"])
def test_the_dtype_of_second_derivatives_is_kept(dtype):
    x = np.array([1, 2], dtype)
    for found in (hessian(lambda x: np.sum(x**3), x), diaghessian(lambda x: np.sum(x**3), x)):
        assert found.dtype == np.dtype(dtype)
    v = hvp(lambda x: np.sum(x**3), x, x)
    assert v.dtype == np.dtype(dtype)
    np.testing.assert_allclose(v, [6, 24])


def test_a_product_with_the_hessian_of_a_structure():
    v = hvp(lambda p: p["a"] ** 2 * p["b"][0], {"a": 2.0, "b": [3.0]}, {"a": 1.0, "b": [10.0]})
    assert v == {"a": 46.0, "b": [4.0]}
    assert hvp(lambda x, c: c * x**3, 2.0, 1.0, 5.0) == 60.0


# -- forwarddiff -----------------------------------------------------------------------------------


def test_forwarddiff_has_the_value_and_the_gradient():
    assert forwarddiff(math.sin, 2.0) == math.sin(2.0)
    slope = gradient(lambda x: forwarddiff(lambda y: y**3, x) * x, 2.0)
    assert slope == (32.0,)
    (found,) = gradient(lambda x: np.sum(forwarddiff(f, x) ** 2), X)
    np.testing.assert_allclose(found, gradient(lambda x: np.sum(f(x) ** 2), X)[0])


def test_forwarddiff_of_complex_numbers():
    def h(z):
        return abs(z) ** 2 + (z * z).imag

    assert gradient(lambda z: forwarddiff(h, z), 1 + 2j)[0] == pytest.approx(gradient(h, 1 + 2j)[0])


@pytest.mark.parametrize("general", [False, True])
def test_arrays_that_forwarddiff_captured_and_that_are_written_to(general):
    def before(a):
        kept = np.zeros(2)
        kept[:] = a
        return forwarddiff(lambda v: v * kept[0], 2.0)

    def after(a):
        kept = np.full(2, a)
        y = forwarddiff(lambda v: v * kept[0], 2.0)
        kept[:] = 7.0
        return y + kept[1]

    def another(a):
        kept = np.full(2, a)
        y = forwarddiff(lambda v: v * kept[0], 2.0)
        other = np.zeros(2)
        other[0] = a
        return y + other[0]

    with by_the_general_path() if general else nullcontext():
        for f in (before, after, another):
            check_gradient(f, 0.5, order=1)


def test_what_forwarddiff_captured_and_what_changed_then_has_no_gradient():
    def rebound(a):
        kept = np.full(2, a)
        y = forwarddiff(lambda v: v * kept[0], 2.0)
        kept = kept * 1.0
        kept[0] = 7.0
        return y

    def cleared(a):
        kept = [a]
        y = forwarddiff(lambda v: v * sum(kept), 2.0)
        kept.clear()
        return y

    for f in (rebound, cleared):
        assert f(0.5) == 1.0
        with pytest.raises(UnsupportedError, match="changed after the call"):
            gradient(f, 0.5)


@pytest.mark.parametrize("captured", [3.0, np.array([3.0])])
def test_what_forwarddiff_captures_has_its_gradient(captured):
    def through(a, x):
        return np.sum(forwarddiff(lambda y: a * y**3, x) * a)

    def plainly(a, x):
        return np.sum(a * x**3 * a)

    found, expected = gradient(through, captured, 2.0), gradient(plainly, captured, 2.0)
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])


class Held(NamedTuple):
    number: float
    name: str


@dataclass(frozen=True)
class Frozen:
    pair: tuple


class Mutable:
    def __init__(self, a):
        self.pair = (a, 1.0)

    def times(self, y):
        return self.pair[0] * y


def by_a_default(a):
    def times(y, pair=(a, 1.0)):
        return pair[0] * y

    return times


HOLDING = {
    "tuple": lambda a: (lambda pair: lambda y: pair[0] * y)((a, "name")),
    "nested tuple": lambda a: (lambda pair: lambda y: pair[0][1] * y)(((1.0, a), 1.0)),
    "named tuple": lambda a: (lambda held: lambda y: held.number * y)(Held(a, "name")),
    "tuple in a dict": lambda a: (lambda d: lambda y: d["pair"][0] * y)({"pair": (a, 1.0)}),
    "frozen object": lambda a: (lambda held: lambda y: held.pair[0] * y)(Frozen((a, 1.0))),
    "method": lambda a: Mutable(a).times,
    "default": by_a_default,
    "partial by position": lambda a: partial(lambda k, y: k * y, a),
    "partial by name": lambda a: partial(lambda y, k: k[0] * y, k=(a,)),
    "partial within": lambda a: (lambda inner: lambda y: inner(y))(partial(operator.mul, a)),
}


@pytest.mark.parametrize("name", HOLDING)
def test_what_forwarddiff_holds_by_value_has_its_gradient(name):
    def f(a, x):
        return forwarddiff(HOLDING[name](a), x) * a

    check_gradient(f, 3.0, 5.0)


def test_forwarddiff_keeps_nothing_and_nests():
    def long(x):
        for _ in range(1000):
            x = x + 0.001 * math.sin(x)
        return x

    (slope,) = gradient(lambda x: forwarddiff(long, x), 1.0)
    assert slope == pytest.approx(gradient(long, 1.0)[0], rel=1e-12)
    assert hessian(lambda x: forwarddiff(lambda y: y**3, x) * x, 2.0) == 48.0
    assert gradient(lambda x: gradient(lambda y: forwarddiff(lambda z: z**3, y), x)[0], 2.0) == (
        12.0,
    )


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_complex_results_of_real_arguments_keep_their_imaginary_parts(mode):
    x, z = np.array([0.5, 2.0]), 1.0 - 0.5j
    by_x, by_z = jacobian(lambda x, z: np.exp(1j * x) * z, x, z, mode=mode)
    np.testing.assert_allclose(by_x, np.diag(1j * np.exp(1j * x) * z))
    np.testing.assert_allclose(by_z, np.exp(1j * x))
    by_float = jacobian(lambda t: np.exp(1j * t), 2.0, mode=mode)[0]
    assert by_float == pytest.approx(1j * np.exp(2j))


@pytest.mark.parametrize(
    "how", [{"mode": "forward"}, {"mode": "reverse"}, {"sparsity": "auto"}, {}]
)
def test_real_results_of_complex_arguments_change_by_both_parts(how):
    z, dz = np.array([1 + 2j, 0.5 - 1j]), np.array([0.3 - 0.2j, 1.1 + 0.7j])

    def f(z):
        return np.abs(z) ** 2 + z.imag

    (found,) = jacobian(f, z, **how)
    found = found.toarray() if how.get("sparsity") else found
    np.testing.assert_allclose(np.real(found @ dz), jvp(f, (z,), (dz,))[1])
    np.testing.assert_allclose(np.diag(found), 2 * z.conj() - 1j)
    if not how.get("sparsity"):
        (slope,) = jacobian(lambda z: abs(z) ** 2, 1 + 2j, **how)
        assert slope == gradient(lambda z: abs(z) ** 2, 1 + 2j)[0].conjugate()


# -- prefer_forward --------------------------------------------------------------------------------


@prefer_forward
def cooled(temperature, rate, n, *, surroundings=20.0):
    """A long loop of few numbers."""
    for _ in range(n):
        temperature = temperature - 0.01 * rate * (temperature - surroundings)
    return temperature


def plainly_cooled(temperature, rate, n, *, surroundings=20.0):
    return cooled.__wrapped__(temperature, rate, n, surroundings=surroundings)


def test_a_function_that_prefers_forward_mode_is_the_same_function():
    assert cooled(90.0, 1.5, 100) == plainly_cooled(90.0, 1.5, 100)
    assert cooled.__name__ == "cooled"
    assert cooled.__doc__ == "A long loop of few numbers."
    assert pickle.loads(pickle.dumps(cooled)) is cooled
    y, back = pullback(cooled, 90.0, 1.5, 100)
    assert y == plainly_cooled(90.0, 1.5, 100)
    assert back(1.0) == back(1.0)


@pytest.mark.parametrize("general", [False, True])
def test_its_derivatives_are_those_of_the_function(general):
    def through(f):
        return lambda a, k, s: f(a * 2.0, k, 50, surroundings=s) ** 2

    with by_the_general_path() if general else nullcontext():
        at = (40.0, 1.5, 25.0)
        found, expected = gradient(through(cooled), *at), gradient(through(plainly_cooled), *at)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        check_gradient(through(cooled), *at)
        assert gradient(cooled, 90.0, 1.5, 30) == pytest.approx(
            gradient(plainly_cooled, 90.0, 1.5, 30)
        )


def test_arrays_structures_methods_and_what_is_captured():
    @prefer_forward
    def scaled(x, factors, offset=0.0):
        return np.sin(x * factors["by"][0]) + offset

    class Model:
        def __init__(self, a):
            self.a = a

        @prefer_forward
        def __call__(self, x):
            return self.a * x**2

    def f(x, a):
        return np.sum(scaled(x * a, {"by": (a, 1.0)}, a) * Model(a)(x))

    check_gradient(f, np.array([0.3, 0.5]), 1.2)

    def with_a_captured_number(a, x):
        return prefer_forward(lambda y: a * y**3)(x) * a

    check_gradient(with_a_captured_number, 1.5, 0.7)
    check_gradient(lambda z: abs(prefer_forward(lambda y: y * y)(z)), 1 + 2j)


def test_nothing_is_kept_of_the_loop():
    (slope, *_) = gradient(cooled, 90.0, 1.5, 20)
    tracemalloc.start()
    gradient(cooled, 90.0, 1.5, 2000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.0 < slope < 1.0
    assert most < 300_000


def test_results_are_numbers_or_arrays():
    @prefer_forward
    def both(x):
        return x * x, [x, 3.0]

    assert both(2.0) == (4.0, [2.0, 3.0])
    with pytest.raises(ArgumentError, match="the result of forwarddiff is a tuple"):
        gradient(lambda x: both(x)[0], 2.0)


def test_arrays_that_it_writes_to_are_refused():
    @prefer_forward
    def doubled_first(x):
        x[0] = x[0] * 2.0
        return np.sum(x**2)

    with pytest.raises(UnsupportedError, match=r"doubled_first.*writes to an array"):
        gradient(lambda x: doubled_first(x * 1.0), X)


def test_single_precision_empty_arrays_and_one_array_twice():
    @prefer_forward
    def product(x, y):
        return np.sum(np.sin(x) * y)

    x = X.astype(np.float32)
    (found,) = gradient(lambda x: product(x, x[::-1]), x)
    (expected,) = gradient(lambda x: np.sum(np.sin(x) * x[::-1]), x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    check_gradient(lambda x: product(x, x), X)
    (found,) = gradient(lambda x: product(x, x) + 1.0, np.zeros(0))
    assert found.shape == (0,)


def test_it_is_a_decorator_of_functions():
    with pytest.raises(TypeError, match="prefer_forward"):
        prefer_forward(3.0)


# -- compiled products with cotangents -------------------------------------------------------------


def reaction(y):
    fast = 3e7 * y[1] ** 2
    slow = 0.04 * y[0] - 1e4 * y[1] * y[2]
    return np.array([-slow, slow - fast, fast])


def a_loop(k, x):
    a = 1.0
    for _ in range(20):
        a = a - 0.1 * (a * k - math.sin(a)) + x[0]
    return a * x


def branches(x):
    return x[:2] * 2.0 if x[2] > 2.5 else np.sin(x[1:])


@pytest.mark.parametrize(
    ("f", "args"),
    [(reaction, (X,)), (a_loop, (0.5, X)), (branches, (X,)), (np.sum, (X,)), (operator.mul, (2.0, 3.0))]
    + [(lambda a, b: a * b + a, (2.0, 3.0)), (lambda x: x[0] * 2.0, (X,)), (lambda x: x @ x, (X,))]
    + [(lambda x: x[:2].astype(np.float32), (X.astype(np.float32),))],
)  # fmt: skip
def test_jacobians_of_the_same_function_once_more(f, args):
    expected = jacobian(f, *args, mode="forward")
    for _ in range(4):
        for mode in (None, "reverse"):
            found = jacobian(f, *args, mode=mode)
            assert [type(J) for J in found] == [type(J) for J in expected]
            for J, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(J, wanted, rtol=1e-6)
                assert np.asarray(J).dtype == np.asarray(wanted).dtype
                assert np.shape(J) == np.shape(wanted)


def test_other_points_results_and_captured_values_once_more():
    scale = 2.0

    def f(x):
        if x.size == 2:
            return float(scale * x[0])
        return scale * x[:2] if x[0] > 0 else scale * x

    for _ in range(3):
        np.testing.assert_array_equal(jacobian(f, X)[0], scale * np.eye(2, 3))
        np.testing.assert_array_equal(jacobian(f, -X)[0], scale * np.eye(3))
        np.testing.assert_array_equal(jacobian(f, X[:2])[0], [scale, 0])
        scale += 1.0


def test_effects_happen_once_each_time():
    seen = []

    def f(x):
        seen.append(x.size)
        return x * x

    for i in range(1, 4):
        np.testing.assert_array_equal(jacobian(f, X, mode="reverse")[0], np.diag(2 * X))
        assert len(seen) == i


def test_jacobians_within_differentiated_code_once_more():
    for _ in range(2):
        jacobian(reaction, X)
        check_gradient(lambda x: jacobian(lambda y: y * y[0], x)[0].sum() * 1.0, X)
