"""Sums and products of adjoints written anew: fewer operations, the same gradients."""

import math
from collections import Counter

import numpy as np
import pytest

import morula
from morula import code_adjoint, gradient, value_and_grad

RING = ("add", "sub", "mul", "truediv", "neg", "pow", "iadd", "isub")


def operations(f, *args):
    """How often a gradient adds, multiplies and so on, in the text of its program."""
    names = [line.split("operator.")[1].split("(")[0] for line in lines(f, *args)]
    return Counter(name for name in names if name in RING)


def lines(f, *args):
    return [line for line in str(code_adjoint(f, *args)).splitlines() if " = operator." in line]


def differences(f, *args, h=1e-6):
    """Central differences by each number, and by each entry of each array."""
    found = []
    for i, x in enumerate(args):
        if isinstance(x, float):
            up, down = (f(*args[:i], x + d, *args[i + 1 :]) for d in (h, -h))
            found.append((up - down) / (2 * h))
            continue
        slopes = np.zeros_like(x)
        for k in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[k] = h
            up, down = (f(*args[:i], x + d, *args[i + 1 :]) for d in (step, -step))
            slopes[k] = (up - down) / (2 * h)
        found.append(slopes)
    return found


def cube(x):
    return x * x * x


def test_like_terms_are_one():
    assert gradient(cube, 2.0) == (12.0,)
    assert operations(cube, 2.0) == {"mul": 2}  # x x, and three times that


def half_a_square(x, y):
    v = x * np.sqrt(y)
    return np.sum(np.tanh((0.3 + 0.5 * x * x) * y / v))


@pytest.mark.parametrize(
    "args",
    [(0.3, 1.5), (np.array([0.3, -0.7]), np.array([1.5, 0.4]))],
    ids=["numbers", "arrays"],
)
def test_terms_that_are_a_variable_in_the_end_are_not_computed(args):
    """0.5 x + 0.5 x is x."""
    for found, expected in zip(
        gradient(half_a_square, *args), differences(half_a_square, *args), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    x̄ = morula.grad(half_a_square)(*args)
    assert x̄ is not args[0]
    with_halves = [line for line in lines(half_a_square, *args) if "mul(0.5, " in line]
    assert len(with_halves) == 1  # that of the value


def constants(x, y):
    return 0.5 * (3.0 * (x * y) / 4.0)


def test_constants_are_multiplied_when_the_program_is_made():
    assert gradient(constants, 2.0, 8.0) == (3.0, 0.75)
    assert any("0.375" in line for line in lines(constants, 2.0, 8.0))
    assert operations(constants, 2.0, 8.0) == {
        "mul": 2
    }  # one for each cotangent, none of the primal


def kepler(x, y):
    r2 = x * x + y * y
    return 1.0 / (r2 * math.sqrt(r2))


def test_roots_that_were_divided_by_are_not_asked_for_zero_and_cancel():
    # d/dx r⁻³ = -3 x r⁻⁵, at (3, 4): -9 / 3125 and -12 / 3125
    assert gradient(kepler, 3.0, 4.0) == pytest.approx((-9 / 3125, -12 / 3125), rel=1e-15)
    assert "operator.truth" not in str(code_adjoint(kepler, 3.0, 4.0))


def root(x):
    return x * math.sqrt(x)


def test_roots_that_nothing_is_divided_by_may_be_zero():
    assert "operator.truth" in str(code_adjoint(root, 4.0))
    assert gradient(root, 4.0) == (3.0,)
    assert gradient(lambda x: math.sqrt(x), 0.0) == (math.inf,)


def divided_in_a_branch(x):
    r = math.sqrt(x)
    if x > 1.0:
        return 2.0 / r
    return r + 1.0


def test_a_division_elsewhere_says_nothing_of_a_root():
    assert gradient(divided_in_a_branch, 0.0) == (math.inf,)
    assert gradient(divided_in_a_branch, 4.0) == (-0.125,)


def shared_factor(x, y, z):
    p = x * y
    return p * z + p / z + p


@pytest.mark.parametrize("args", [(1.5, -2.0, 0.25), (3.0, 0.0, -1.5)])
def test_factors_are_taken_out(args):
    expected = differences(shared_factor, *args)
    assert gradient(shared_factor, *args) == pytest.approx(tuple(expected), rel=1e-7)


def quotient(x, y):
    return (x / y) * y + (x / y) * x


def test_numbers_cancel():
    assert gradient(quotient, 3.0, 2.0) == pytest.approx((4.0, -2.25), rel=1e-15)


def logarithms(x, y):
    return np.sum(np.log(x / y) * y)


def test_arrays_do_not_cancel():
    # By y: log(x / y) - 1, where x is zero by way of 0 · ∞, as it is by the general path.
    x, y = np.array([0.0, 2.0]), np.array([1.0, 4.0])
    with np.errstate(all="ignore"):
        _, found = gradient(logarithms, x, y)
    assert not np.isfinite(found[0])
    assert found[1] == pytest.approx(math.log(0.5) - 1.0, rel=1e-14)


def polynomial(x):
    return np.sum(0.5 * x * x * x - 2.0 * x * x + x)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (0,)])
def test_polynomials_of_arrays(dtype, shape, rng):
    x = rng.standard_normal(shape).astype(dtype)
    (found,) = gradient(polynomial, x)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(
        found, 1.5 * x * x - 4.0 * x + 1.0, rtol=1e-4 if dtype == "f4" else 1e-13
    )


def mixed(x, c, d):
    return np.sum(c * x / d + d * x * c * x)


def test_numbers_and_arrays(rng):
    x = rng.standard_normal(4)
    found = gradient(mixed, x, 1.5, -0.5)
    for got, wanted in zip(found, differences(mixed, x, 1.5, -0.5), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


def test_arrays_divided_by_a_number_that_is_zero():
    # Written with a quotient of numbers, it would be a ZeroDivisionError.
    def f(x, d):
        return np.sum(2.0 * (3.0 * x / d))

    with np.errstate(all="ignore"):
        found, _ = gradient(f, np.ones(2), np.float64(0.0))
    assert np.all(np.isinf(found))


def loop(x, n):
    y = x
    for _ in range(n):
        y = y * x * 0.5 - y * y * x / (1.0 + y * y)
    return y


def by_hand(x, n):
    """The tangent of `loop`, by the rules for products and quotients."""
    y, ẏ = x, 1.0
    for _ in range(n):
        q, q̇ = 1.0 + y * y, 2.0 * y * ẏ
        top, ṫop = y * y * x, 2.0 * y * ẏ * x + y * y
        ẏ = 0.5 * (ẏ * x + y) - (ṫop * q - top * q̇) / (q * q)
        y = y * x * 0.5 - top / q
    return ẏ


@pytest.mark.parametrize("n", [0, 1, 7])
def test_variables_of_a_loop_have_the_values_of_their_iteration(n):
    value, slope = value_and_grad(loop)(1.3, n)
    assert value == loop(1.3, n)
    assert slope == pytest.approx(by_hand(1.3, n), rel=1e-12)


def pulls(positions, masses):
    total = 0.0
    for i, (x, y) in enumerate(positions):
        for j, (u, v) in enumerate(positions):
            if i != j:
                d2 = (u - x) * (u - x) + (v - y) * (v - y) + 0.01
                total += masses[j] / (d2 * math.sqrt(d2))
    return total


def test_cotangents_of_lists_are_numbers():
    positions, masses = [[0.1, 0.2], [1.0, -0.5], [-0.4, 0.8]], [1.0, 2.0, 3.0]
    found = morula.grad(pulls)(positions, masses)
    for i, k in np.ndindex(3, 2):
        moved = [[[*p] for p in positions] for _ in range(2)]
        moved[0][i][k] += 1e-6
        moved[1][i][k] -= 1e-6
        slope = (pulls(moved[0], masses) - pulls(moved[1], masses)) / 2e-6
        assert found[i][k] == pytest.approx(slope, rel=1e-6)


def test_whole_numbers_in_lists_are_differentiated_as_they_were():
    def f(xs):
        return xs[0] * xs[0] * xs[1]

    assert morula.grad(f)([2, 3]) == [12.0, 4.0]


def test_derivatives_of_second_order():
    def slope(x):
        return gradient(kepler, x, 4.0)[0]

    h = 1e-5
    expected = (slope(3.0 + h) - slope(3.0 - h)) / (2 * h)
    assert gradient(slope, 3.0)[0] == pytest.approx(expected, rel=1e-8)


def test_large_constants_stay_where_they_are():
    def f(x):
        return 1e200 * (x * 1e-200)

    assert gradient(f, 2.0) == (1.0,)


def times_nothing(n, u):
    return u if n <= 0 else times_nothing(n - 1, math.sin(u)) * 0.0 + u


def test_products_with_nothing_are_no_part_of_others():
    def f(x):
        return 1.0 / (2.0 + times_nothing(2, x) * times_nothing(2, x))

    x = 1.7
    assert gradient(f, x)[0] == pytest.approx(-2 * x / (2 + x * x) ** 2, rel=1e-14)


def test_what_is_written_to_is_not_used_again():
    def f(x):
        y = x * x
        return np.sum(y[1:] * x[1:] + y[:-1] * x[1:] * x[1:])

    x = np.array([0.5, -1.5, 2.0, 1.0])
    (expected,) = differences(f, x)
    for _ in range(2):
        np.testing.assert_allclose(gradient(f, x)[0], expected, rtol=1e-6)


def gaussian(mu, sigma, x):
    return np.sum(-0.5 * ((x - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * math.log(2.0 * math.pi))


def test_sums_over_products_are_scalar_products(rng):
    x = rng.standard_normal(50)
    text = str(code_adjoint(gaussian, 0.3, 1.5, x))
    assert "ndarray.dot" in text
    z = (x - 0.3) / 1.5
    found = morula.grad(gaussian, (0, 1))(0.3, 1.5, x)
    assert [type(g) for g in found] == [float, float]
    assert found == pytest.approx((sum(z) / 1.5, (sum(z * z) - 50) / 1.5), rel=1e-12)


def test_numbers_are_not_spread_where_the_other_operand_does_it(rng):
    x, mu, sigma = rng.standard_normal((3, 50))
    sigma = 1.0 + sigma * sigma
    assert "spread" not in str(code_adjoint(gaussian, mu, sigma, x))
    z = (x - mu) / sigma
    for got, wanted in zip(
        gradient(gaussian, mu, sigma, x),
        (z / sigma, (z * z - 1.0) / sigma, -z / sigma),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def mean_error(p, x, y):
    return np.mean((np.tanh(x @ p["W"] + p["b"]) - y) ** 2)


@pytest.mark.parametrize("b", [(3,), (1,)])
def test_shapes_that_are_those_of_the_run(b, rng):
    p = {"W": rng.standard_normal((4, 3)), "b": rng.standard_normal(b)}
    x, y = rng.standard_normal((5, 4)), rng.standard_normal((5, 3))
    text = str(code_adjoint(mean_error, p, x, y))
    assert "operator.pow" not in text  # the value is not asked for
    assert "square" not in text
    found = gradient(mean_error, p, x, y)[0]
    for name, w in p.items():
        assert found[name].shape == w.shape
        for k in np.ndindex(w.shape):
            step = np.zeros_like(w)
            step[k] = 1e-6
            up, down = (mean_error({**p, name: w + d}, x, y) for d in (step, -step))
            assert found[name][k] == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-9)


def one_array_twice(p):
    return np.sum(p[0] * p[0] + p[1])


def test_gradients_of_containers_share_no_memory(rng):
    a = rng.standard_normal(4)
    for p in ([a, a], {0: a, 1: a}):
        first, second = (gradient(one_array_twice, p)[0] for _ in range(2))
        for g in (first, second):
            np.testing.assert_allclose(g[0], 2.0 * a)
            np.testing.assert_allclose(g[1], np.ones(4))
        arrays = [first[0], first[1], second[0], second[1], a]
        for i, x in enumerate(arrays):
            assert not any(np.shares_memory(x, y) for y in arrays[i + 1 :])
        first[0][:] = 7.0
        np.testing.assert_allclose(second[0], 2.0 * a)


def passed_on(p):
    return np.sum(p[0] + p[1]) + np.sum(p[0].T)


def test_one_cotangent_for_two_items_is_two_arrays():
    p = [np.ones((2, 2)), np.zeros((2, 2))]
    first, second = gradient(passed_on, p)[0]
    assert not np.shares_memory(first, second)
    first += 1.0
    np.testing.assert_array_equal(second, np.ones((2, 2)))


def products_of_pairs(x):
    xs = [x, x + 1.0]
    return sum([a * b for a in xs for b in xs]) * np.float64(2.0)


def test_cotangents_of_numpy_that_come_out_of_lists_end_as_floats():
    # 2 (x + x + 1)², by x: 8 (2 x + 1)
    (found,) = gradient(products_of_pairs, 1.5)
    assert type(found) is float
    assert found == 32.0


number = 1.0


def begin():
    global number
    number = 0.75


def by_way_of_a_list(x):
    return (
        begin(),
        sum(t * w for t, w in zip((x for _ in (x,)), (x, x)))  # noqa: B905
        / (2.0 + (-(lambda _: x)(x)) * (-(lambda _: x)(x))),
    )[1]


def test_blocks_see_what_those_before_them_compute_now():
    x, h = 1.2, 1e-6
    slope = (by_way_of_a_list(x + h) - by_way_of_a_list(x - h)) / (2 * h)
    assert gradient(by_way_of_a_list, x)[0] == pytest.approx(slope)
