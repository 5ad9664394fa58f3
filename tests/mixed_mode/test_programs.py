"""Programs of directional derivatives: their agreement with the general path, and what has none."""

import functools
import itertools
import math
import random
import tracemalloc
import warnings
from fractions import Fraction

import numpy as np
import pytest

import morula
from morula import forwarddiff, frule, gradient, hvp, jacobian, jvp, pushforward, rrule
from morula.core.compiled import _families, by_the_general_path
from morula.mixed_mode import jacobians, programs
from tests.array_programs import ArrayWriter, FreshWriter, InPlaceWriter
from tests.flow_writer import FlowWriter
from tests.program_writer import Program, Writer
from tests.random_programs import forward_gradient
from tests.small_loops import ARGUMENTS, small_loops
from tests.structure_writer import StructureWriter


def program_of(f):
    """The program that was compiled for a function last."""
    found = [
        p
        for family in _families.values()
        if type(family) is programs.Pushes and family.code.co_name == f.__code__.co_name
        for p in family.programs.values()
    ]
    return found[-1]


def compiled(f, args, tangents):
    """What `jvp` gives, which has to be by a program, and is the same at the second call."""
    found = jvp(f, args, tangents)
    assert program_of(f).code is not None, program_of(f).reason
    again = jvp(f, args, tangents)
    np.testing.assert_array_equal(again[0], found[0])
    np.testing.assert_array_equal(again[1], found[1])
    return found


def by_differences(f, args, tangents, h=1e-6):
    """The derivative along tangents by central differences."""

    def at(t):
        moved = [x if v is None else x + t * v for x, v in zip(args, tangents, strict=True)]
        return np.asarray(f(*moved))

    return (at(h) - at(-h)) / (2 * h)


def check(f, args, tangents):
    """By a program: the value of the plain call, the derivative by differences and the general path."""
    y, ẏ = compiled(f, args, tangents)
    np.testing.assert_array_equal(y, f(*args))
    assert type(y) is type(f(*args))
    np.testing.assert_allclose(ẏ, by_differences(f, args, tangents), rtol=1e-5, atol=1e-7)
    with by_the_general_path():
        _, general = jvp(f, args, tangents)
    np.testing.assert_allclose(ẏ, general, rtol=1e-12, atol=1e-14)
    assert type(ẏ) is type(general)


# -- numbers ---------------------------------------------------------------------------------------


def test_numbers():
    def along(x, y):
        return math.sin(x * y) / (1.0 + x**2) - max(x, y) + x**y

    check(along, (1.3, 0.7), (1.0, -0.5))
    check(along, (1.3, 0.7), (None, 1.0))


def test_loops_and_branches():
    def branching(x, y):
        for i in range(9):
            if x > y:
                x = math.sin(x * y) / 2.0
            elif i % 3:
                y = math.exp(-x) + y
            else:
                x, y = y, x + 0.5
        return x - y

    check(branching, (2.0, 1.1), (1.0, 0.3))


def test_a_loop_that_begins_with_constants():
    def settling(k):
        x = 1.0
        for _ in range(100):
            x -= 0.01 * (x**3 - k)
        return x

    check(settling, (8.0,), (1.0,))


def test_integers_take_floats():
    def power_sum(n, x):
        total = 0.0
        for i in range(n):
            total += x**i
        return total * n

    y, ẏ = compiled(power_sum, (3, 2.0), (None, 1.0))
    assert (y, ẏ) == (21.0, 15.0)
    assert jvp(lambda n, x: n * x, (3, 2.0), (1.0, 0.0)) == (6.0, 2.0)


def test_complex_numbers():
    def holomorphic(z, a):
        w = z
        for _ in range(3):
            w = w * z + a
        return w / (2.0 + z)

    z, a = 0.3 + 0.4j, 0.5
    y, ẏ = compiled(holomorphic, (z, a), (1.0 - 2.0j, 0.5))
    assert y == holomorphic(z, a)
    expected = by_differences(holomorphic, (z, a), (1.0 - 2.0j, 0.5))
    assert ẏ == pytest.approx(complex(expected), rel=1e-6)

    def modulus(z):
        return abs(z * z)

    y, ẏ = compiled(modulus, (z,), (1j,))
    assert type(ẏ) is float
    assert ẏ == pytest.approx(2 * 0.4, rel=1e-12)


def test_tuples_in_and_out():
    def swapped(p, q):
        a, b = p
        return b * q, (a * a, 2.0)

    y, ẏ = jvp(swapped, ((2.0, 3.0), 5.0), ((1.0, 0.5), None))
    assert program_of(swapped).code is not None
    assert (y, ẏ) == ((15.0, (4.0, 2.0)), (2.5, (4.0, 0.0)))


def test_rules_with_slopes_only():
    def scaled(x):
        return math.ldexp(x, 2) * math.ldexp(2.0, 1) + x % 0.7

    check(scaled, (1.5,), (2.0,))


# -- kinks and structural zeros --------------------------------------------------------------------


def test_what_is_structurally_zero_stays_so():
    def infinite_slope(x, y):
        s = 0.0
        for i in range(3):
            s = math.sqrt(s) * 0.0 + x * y if i else s
        return math.sqrt(s - x * y) + y

    with by_the_general_path():
        general = jvp(infinite_slope, (2.0, 1.0), (None, None))
    assert jvp(infinite_slope, (2.0, 1.0), (None, None)) == general

    def root_of_constant(x):
        c = 0.0
        for _ in range(2):
            x = x + math.sqrt(c)
        return x

    assert compiled(root_of_constant, (2.0,), (1.0,)) == (2.0, 1.0)

    def one_way(x):
        r = 0.0
        for i in range(2):
            r = math.sqrt(r) if i == 0 else r + x
        return r

    assert compiled(one_way, (2.0,), (1.0,)) == (2.0, 1.0)


@pytest.mark.parametrize("x", [-1.0, 0.0, 1.0])
def test_kinks_are_those_of_reverse_mode(x):
    def kinked(x):
        return abs(x) + max(x, 0.0) + min(x, 2.0 * x) + math.fabs(x)

    assert compiled(kinked, (x,), (1.0,))[1] == gradient(kinked, x)[0]

    def kinked_array(x):
        parts = np.abs(x) + np.maximum(x, 0.0) + np.where(x > 0, x, 3.0 * x)
        return np.sum(parts) + np.max(x) + np.clip(x, -1.0, 1.0).sum()

    at = np.array([x, x, 0.5])
    for i in range(3):
        e = np.eye(3)[i]
        ẏ = jvp(kinked_array, (at,), (e,))[1]
        assert ẏ == pytest.approx(gradient(kinked_array, at)[0][i], rel=1e-12)


# -- arrays ----------------------------------------------------------------------------------------


def test_arrays():
    def layers(w, x):
        a = np.tanh(np.reshape(w[:6], (2, 3)) @ x + w[6:8])
        return np.stack([a[0] * a, a.T + w[1]]).sum(axis=0) / np.exp(a).mean()

    check(
        layers,
        (np.linspace(-1.0, 1.0, 8), np.array([0.3, 0.1, -0.7])),
        (np.cos(np.arange(8.0)), None),
    )


def test_an_oscillator_with_arrays_of_two():
    def oscillator(y, k):
        def slope(y):
            return np.array([y[1], -k * y[0]])

        for _ in range(20):
            a = slope(y)
            b = slope(y + 0.05 * a)
            y = y + 0.1 * b
        return y

    check(oscillator, (np.array([1.0, 0.0]), 2.0), (None, 1.0))
    check(oscillator, (np.array([1.0, 0.0]), 2.0), (np.array([0.5, 1.0]), None))


@pytest.mark.parametrize("dtype", ["float32", "float64", "longdouble", "complex64", "complex128"])
def test_dtypes_are_kept(dtype):
    def smooth(x):
        return np.exp(x * 0.5) / (2.0 + x * x) + x.sum()

    x = np.array([0.3, -0.4, 1.0], dtype)
    y, ẏ = compiled(smooth, (x,), (np.ones(3, dtype),))
    assert y.dtype == ẏ.dtype == np.dtype(dtype)
    expected = by_differences(smooth, (x.astype("complex128"),), (np.ones(3),))
    np.testing.assert_allclose(ẏ, expected, rtol=1e-5)


def test_empty_arrays():
    def through(x):
        return np.concatenate([x * 2.0, np.sin(x)]), x.sum()

    (a, b), (ȧ, ḃ) = jvp(through, (np.zeros(0),), (np.zeros(0),))
    assert a.shape == ȧ.shape == (0,)
    assert b == ḃ == 0.0


def test_arrays_without_axes():
    def without_axes(a):
        first = a[..., 0]
        chosen = np.where(True, a.sum() * 2.0, first)
        return chosen.sum() + first.sum() * np.asarray(a[1]).max() + np.reshape(first, (1, 1)).sum()

    check(without_axes, (np.array([1.5, 2.0]),), (np.array([1.0, -0.5]),))


def test_results_share_no_memory():
    x, v = np.ones(3), np.ones(3)
    y, ẏ = jvp(lambda x: x, (x,), (v,))
    ẏ[0] = 5.0
    assert v[0] == 1.0
    assert y is x


def test_functions_with_no_forward_rule():
    def determinant(x):
        return np.linalg.det(np.outer(x, x) + np.diag(x)) + np.prod(x) * np.arctan2(x, 2.0)

    check(determinant, (np.array([0.5, 1.5, -0.7]),), (np.array([1.0, 2.0, 0.5]),))


# -- lists, and arrays that are written to ---------------------------------------------------------


def test_lists():
    def chained(x):
        xs = [x]
        for i in range(10):
            xs.append(xs[-1] * 0.9 + math.sin(x) + i)
        rows = [[v * j for j in range(3)] for v in xs]
        rows[2][1] = x
        total = 0.0
        for row in rows:
            for v in row:
                total += v * v
        return total + sum(xs) + xs.pop() * len(xs)

    check(chained, (1.1,), (1.0,))


def test_aliases_of_lists():
    def shared(x):
        a = [x, 1.0]
        b = a
        c = [a, b]
        b[0] = a[0] * x
        c[1].append(x)
        return a[0] * a[2] + c[0][0]

    check(shared, (1.1,), (1.0,))


def test_lists_that_are_returned():
    y, ẏ = jvp(lambda x: [x, [x * x, 2.0], (x,)], (3.0,), (1.0,))
    assert y == [3.0, [9.0, 2.0], (3.0,)]
    assert ẏ == [1.0, [6.0, 0.0], (1.0,)]


def test_arrays_that_are_written_to():
    def heat(u):
        u = u.copy()
        for _ in range(4):
            new = u.copy()
            for i in range(1, len(u) - 1):
                new[i] = u[i] + 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
            u = new
        return u

    def in_place(x):
        y = np.zeros(6)
        y[1:3] = x
        y[3:] += y[:3] * x
        v = y[::2]
        v *= 2.0
        w = y + 1.0
        y[0] = x * x
        y /= 1.0 + x
        y -= w
        return w.sum() * y.sum() + v.sum()

    def from_lists(a):
        c = np.zeros((3, 6))
        c[[0, 2], 1] = [-a[1], 1.0]
        c[1, :2] = (a[0], 2.0)
        c[1:] = [a * a, [1.0] * 6]
        c[0, :2] += [a[2], 1.0]
        c[0, :2] *= [a[3], 2.0]
        c[:2, :2] = [[a[0], 1], [2, 3]]
        return np.sum(np.sin(c))

    def unpacked(a):
        y = np.stack([a, a])
        first, _ = y
        y += a
        return np.sum(first * first)

    x = np.linspace(0.2, 1.1, 6)
    check(heat, (x,), (np.cos(x),))
    check(in_place, (1.2,), (1.0,))
    check(from_lists, (x,), (np.cos(x),))
    check(unpacked, (x,), (np.cos(x),))


def test_arguments_that_are_written_to_are_left_as_by_the_plain_call():
    def overwriting(x):
        x[0] = x[1] * 2.0
        return x.sum()

    x = np.array([1.0, 2.0, 3.0])
    assert jvp(overwriting, (x,), (np.ones(3),)) == (9.0, 4.0)
    assert x.tolist() == [4.0, 2.0, 3.0]


def test_loops_with_two_versions():
    def several(k, c):
        angle, speed, least = 1.0, 0.0, 3.0
        for i in range(40):
            for _ in range(2):
                angle += 0.01 * speed
                speed -= 0.01 * (k * math.sin(angle) + c * speed)
            least = min(least, angle)
            if i == 20:
                last = speed
        return angle * least + last + speed

    check(several, (9.0, 0.3), (1.0, 0.5))
    check(several, (9.0, 0.3), (None, 0.5))

    def in_a_list(k):
        x = 0.0
        xs = []
        while len(xs) < 12:
            x = x * 0.5 + k if len(xs) % 4 else 0.25
            xs.append(x)
        return sum(xs) * x

    check(in_a_list, (1.5,), (1.0,))


def test_numbers_of_two_kinds_under_one_name():
    def reaction(k):
        a, b = 1.0, 0.0
        for _ in range(10):
            u = k[0] * a
            a, b = a - 0.1 * u, b + 0.1 * u * k[1]
        return np.array([a, b, 2.0])

    check(reaction, (np.array([0.4, 1.5]),), (np.array([1.0, -0.5]),))


# -- methods, objects, partials --------------------------------------------------------------------


class Parabola:
    """An object that is called."""

    def __init__(self, factor):
        self.factor = factor

    def value(self, x):
        return self.factor * x * x

    def __call__(self, x, offset=2.0):
        return self.value(x) + offset * x


def test_methods_objects_and_partials():
    p = Parabola(3.0)
    assert jvp(p.value, (2.0,), (1.0,)) == (12.0, 12.0)
    assert program_of(Parabola.value).code is not None
    assert jvp(p, (2.0,), (1.0,)) == (16.0, 14.0)
    assert jvp(functools.partial(Parabola.value, p), (2.0,), (1.0,)) == (12.0, 12.0)
    p.factor = 1.0
    assert jvp(p.value, (2.0,), (1.0,)) == (4.0, 4.0)
    assert jvp(lambda a: Parabola(a)(2.0), (3.0,), (1.0,)) == (16.0, 4.0)
    assert jvp(lambda x, n=3: x**n, (2.0,), (1.0,)) == (8.0, 12.0)


# -- rules of users' -------------------------------------------------------------------------------


def test_rules_of_users():
    def looked_into(x):
        return x * x

    def by_forward_rule(x):
        raise AssertionError

    def by_reverse_rule(x):
        raise AssertionError

    @frule(by_forward_rule)
    def _(x: float):
        return 2.0 * x, lambda ẋ: 7.0 * ẋ

    @rrule(by_reverse_rule)
    def _(x: float):
        return 3.0 * x, lambda ȳ: (5.0 * ȳ,)

    def f(x):
        return looked_into(x) + by_forward_rule(x) + by_reverse_rule(x)

    assert jvp(f, (3.0,), (1.0,)) == (24.0, 18.0)

    @rrule(looked_into)
    def _(x: float):
        return x * x, lambda ȳ: (11.0 * ȳ,)

    assert jvp(f, (3.0,), (1.0,)) == (24.0, 23.0)


# -- effects ---------------------------------------------------------------------------------------


def test_effects_happen_once(capsys):
    calls = []

    def noted(x):
        calls.append(len(calls))
        print("x")
        return x * x

    for n in (1, 2, 3):
        assert jvp(noted, (3.0,), (1.0,)) == (9.0, 6.0)
        assert calls == list(range(n))
        assert capsys.readouterr().out == "x\n"


def test_effects_happen_once_where_an_assumption_fails():
    calls = []
    table = {"a": 1.5}

    def reading(x):
        calls.append(1)
        return x * table["a"]

    assert jvp(reading, (3.0,), (1.0,)) == (4.5, 1.5)
    table["a"] = 2
    assert jvp(reading, (3.0,), (1.0,)) == (6.0, 2.0)
    assert len(calls) == 2


def test_random_numbers_are_drawn_once():
    def noisy(x, rng):
        return x * rng.normal()

    rng, plain = np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(2):
        drawn = plain.normal()
        assert jvp(noisy, (3.0, rng), (1.0, None)) == (3.0 * drawn, drawn)


def test_exceptions_are_those_of_the_plain_call():
    def failing(x):
        if x > 2.0:
            raise KeyError("too large")
        return math.log(x)

    assert jvp(failing, (1.0,), (1.0,)) == (0.0, 1.0)
    with pytest.raises(KeyError, match="too large"):
        jvp(failing, (3.0,), (1.0,))
    with pytest.raises(ValueError, match=r"math domain error|positive input"):
        jvp(failing, (-1.0,), (1.0,))

    def unneeded(x):
        1.0 / (x - 1.0)
        return x

    with pytest.raises(ZeroDivisionError):
        jvp(unneeded, (1.0,), (1.0,))


def test_exceptions_that_are_caught():
    def guarded(x):
        try:
            y = math.log(x)
        except ValueError:
            y = x * x
        return y * x

    assert jvp(guarded, (1.0,), (1.0,)) == (0.0, 1.0)
    assert jvp(guarded, (-2.0,), (1.0,)) == (-8.0, 12.0)


def test_globals_and_captured_variables_that_change():
    factor = 2.0

    def scaled(x):
        return factor * x

    assert jvp(scaled, (3.0,), (1.0,)) == (6.0, 2.0)
    factor = 5.0
    assert jvp(scaled, (3.0,), (1.0,)) == (15.0, 5.0)
    factor = np.array([1.0, 2.0])
    assert jvp(scaled, (3.0,), (1.0,))[1].tolist() == [1.0, 2.0]


def test_arguments_of_other_types():
    def squared(x):
        return x * x

    assert jvp(squared, (3.0,), (1.0,)) == (9.0, 6.0)
    assert jvp(squared, (3,), (1.0,)) == (9, 6.0)
    assert jvp(squared, (np.array([1.0, 2.0]),), ([1.0, 0.5],))[1].tolist() == [2.0, 2.0]
    assert jvp(squared, (1j,), (1.0,)) == (-1.0, 2j)
    assert jvp(squared, (3.0,), (None,)) == (9.0, 0.0)
    assert jvp(squared, (Fraction(1, 3),), (Fraction(2),)) == (Fraction(1, 9), Fraction(4, 3))
    assert jvp(lambda: 3.0, (), ()) == (3.0, 0.0)


def test_a_fresh_lambda_costs_no_compilation():
    def make(a):
        return lambda x: a * x * x

    assert jvp(make(2.0), (3.0,), (1.0,)) == (18.0, 12.0)
    before = program_of(make(1.0))
    assert jvp(make(3.0), (3.0,), (1.0,)) == (27.0, 18.0)
    assert program_of(make(1.0)) is before


# -- memory ----------------------------------------------------------------------------------------


def test_a_long_loop_keeps_nothing():
    def long(x, n):
        s = 0.0
        for _ in range(n):
            x = x * 0.999 + 0.001
            s += math.sin(x)
        return s

    compiled(long, (2.0, 10), (1.0, None))

    def peak(n):
        tracemalloc.start()
        jvp(long, (2.0, n), (1.0, None))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(20_000) < 1.5 * peak(200) + 1000


# -- nesting ---------------------------------------------------------------------------------------


def slope(f):
    """The derivative of a function of a number."""
    return lambda x: jvp(f, (x,), (1.0,))[1]


def test_perturbations_are_not_confused():
    assert slope(lambda x: x * slope(lambda y: x * y)(x))(4.0) == 8.0
    assert slope(lambda x: x * slope(lambda y: x + y)(2.0))(1.0) == 1.0


def test_both_modes_in_each_other():
    assert gradient(lambda x: slope(lambda y: y**3 * x)(x), 2.0)[0] == pytest.approx(36.0)
    assert jvp(morula.grad(lambda x: x**3), (2.0,), (1.0,)) == (12.0, 12.0)
    assert jvp(lambda x: morula.grad(lambda y: x * y**3)(x), (2.0,), (1.0,)) == (24.0, 36.0)
    assert slope(slope(slope(lambda x: x**4)))(1.0) == pytest.approx(24.0)


def test_forward_over_reverse_through_a_loop():
    def pendulum(k):
        x, v = 1.0, 0.0
        for _ in range(20):
            v -= 0.05 * k * math.sin(x)
            x += 0.05 * v
        return x

    g = morula.grad(pendulum)
    _, second = jvp(g, (2.0,), (1.0,))
    h = 1e-5
    assert second == pytest.approx((g(2.0 + h) - g(2.0 - h)) / (2 * h), rel=1e-6)


def test_jacobians_and_pushforwards():
    def polar(r, t):
        return np.array([r * np.cos(t), r * np.sin(t)])

    by_r, by_t = jacobian(polar, 2.0, 0.5, mode="forward")
    np.testing.assert_allclose(by_r, [np.cos(0.5), np.sin(0.5)])
    np.testing.assert_allclose(by_t, [-2.0 * np.sin(0.5), 2.0 * np.cos(0.5)])
    _, push = pushforward(polar, 2.0, 0.5)
    np.testing.assert_allclose(push(1.0, 0.0), by_r)
    np.testing.assert_allclose(push(0.0, 1.0), by_t)
    assert program_of(polar).code is not None


def test_jacobians_of_more_columns_than_one_run_takes():
    def mixed(x, y):
        total = np.zeros(3)
        for i in range(3):
            total[i] = x[i] * y[2 - i] + x[3] ** (i + 1)
        return total

    x, y = np.array([0.5, 1.5, -1.0, 2.0]), np.array([3.0, 1.0, 0.5])
    forward = jacobian(mixed, x, y, mode="forward")
    assert program_of(mixed).code is not None
    for found, expected in zip(forward, jacobian(mixed, x, y, mode="reverse"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def determinant(x):
        return np.linalg.det(np.outer(x, x) + np.diag(x)) * np.prod(x)

    forward = jacobian(determinant, x[:3], mode="forward")[0]
    np.testing.assert_allclose(forward, gradient(determinant, x[:3])[0], rtol=1e-9)


def test_forwarddiff_by_a_program():
    def settle(k):
        x = 1.0
        for _ in range(500):
            x -= 0.01 * (x**3 - k)
        return x

    slope = gradient(lambda k: forwarddiff(settle, k) ** 2, 8.0)[0]
    assert program_of(settle).code is not None
    assert slope == pytest.approx(2 * 2.0 / 12.0, rel=1e-6)
    z = 0.5 + 0.25j
    found = gradient(lambda z: abs(forwarddiff(lambda w: w * w * 2.0, z)), z)[0]
    assert found == pytest.approx(4.0 * z, rel=1e-12)


def test_jacobians_of_functions_with_effects_run_them_once():
    calls = []

    def counted(x):
        calls.append("called")
        return x * x[0]

    J = jacobian(counted, np.array([1.0, 2.0, 3.0]), mode="forward")[0]
    np.testing.assert_array_equal(J, [[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    assert calls == ["called"]


# -- random programs -------------------------------------------------------------------------------


def check_program(program):
    """The derivative along a direction is that by dual numbers; effects are those of a plain call."""
    f, log = program.load()
    try:
        y, exact = f(*program.args), forward_gradient(program)[1]
    except Exception:
        return
    logged = repr(log)
    f, log = program.load()
    v = [(1.0, None, -0.5)[i % 3] for i in range(len(program.args))]
    found, ẏ = jvp(f, program.args, v)
    expected = sum(d * (c or 0.0) for d, c in zip(exact, v, strict=True) if c)
    assert found == y or found != found, program
    assert ẏ == pytest.approx(expected, rel=1e-8, abs=1e-10, nan_ok=True), program
    assert repr(log) == logged, program


@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("writer", [Writer, StructureWriter, FlowWriter])
def test_random_programs(writer, number):
    check_program(writer(random.Random(f"pushed {number}")).program())


@pytest.mark.parametrize("first", range(4))
def test_small_loops(first):
    for source in itertools.islice(small_loops(1), 4 * first, None, 23):
        check_program(Program(source, ARGUMENTS))
    for source in itertools.islice(small_loops(2), 101 * first, None, 409):
        check_program(Program(source, ARGUMENTS))


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("writer", [ArrayWriter, InPlaceWriter, FreshWriter])
def test_random_programs_of_arrays(writer, number):
    program = writer(random.Random(f"pushed {number}")).program()
    rng = np.random.default_rng(number)

    def tangent(x):
        v = rng.normal(size=np.shape(x)) + 1j * rng.normal(size=np.shape(x)) * np.iscomplexobj(x)
        v = (v if np.iscomplexobj(x) else v.real).astype(np.asarray(x).dtype)
        return v if isinstance(x, np.ndarray) else v[()]

    v = [tangent(x) for x in program.arguments()]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            y = program.load()(*program.arguments())
        except Exception:
            return
        args, others = program.arguments(), program.arguments()
        found = jvp(program.load(), args, v)
        with by_the_general_path():
            general = jvp(program.load(), others, v)
    np.testing.assert_array_equal(found[0], y)
    single = any(np.asarray(x).dtype.char in "fF" for x in args)
    rtol = 2e-2 if single else 1e-8
    scale = np.max(np.abs(np.nan_to_num(general[1])), initial=1.0)
    np.testing.assert_allclose(found[1], general[1], rtol=rtol, atol=rtol * scale)
    assert np.asarray(found[1]).dtype == np.asarray(general[1]).dtype
    for x, other in zip(args, others, strict=True):
        np.testing.assert_array_equal(x, other)


def changed_by_another_name(x):
    y = np.exp(x)
    r = y
    y += 1.0
    return (r * y).sum()


def changed_by_both_names(x):
    y = np.empty_like(x)
    r = np.exp(x, out=y)
    r *= x
    y += 1.0
    return (r * y).sum()


@pytest.mark.parametrize("f", [changed_by_another_name, changed_by_both_names])
def test_an_array_that_is_changed_under_two_names(f):
    x, h = np.array([0.7, 1.3, 0.4, 2.1]), 1e-6
    expected = (f(x + h) - f(x - h)) / (2 * h)
    for _ in range(3):
        assert jvp(f, (x,), (np.ones(4),))[1] == pytest.approx(expected, rel=1e-6)


LAYER = np.array([[0.1, 0.2], [0.3, 0.4]])


def of_layers(params):
    W, (b, (c,)) = params
    return (np.tanh(W @ np.ones(2) + b) ** 2).sum() * c + c**3


def of_steps(p):
    y = p[0]
    for _ in range(4):
        y = y + p[1] * y * 0.01
    return y


def writes_to_its_tuple(p):
    p[0][0] = p[1] * p[0][1]
    return (p[0] ** 3).sum()


OF_TUPLES = [
    (of_steps, (2.0, 3.0), (1.0, 1.0)),
    (of_layers, (LAYER, (np.ones(2), (0.7,))), (LAYER, (np.ones(2), (1.0,)))),
    (of_layers, (LAYER, (np.ones(2), (0.7,))), (None, ([1, 0], (1.0,)))),
    (lambda p: p[0] ** 3, (2.0, np.ones(2)), (1.0, np.ones(2))),
    (lambda p: (p[0] ** 3).sum() * p[1], (np.float32([1, 2]), 2.0), (np.ones(2), 1.0)),
    (lambda p: 3.0, (), ()),
]


@pytest.mark.parametrize(("f", "x", "v"), OF_TUPLES)
def test_products_with_hessians_by_tuples(f, x, v):
    for found, other in zip(hvp(f, x, v), jacobians.general_hvp(f, x, v), strict=True):
        check_alike(found, other)


def check_alike(found, other):
    """The same structure, types and numbers."""
    assert type(found) is type(other)
    if isinstance(found, tuple):
        for a, b in zip(found, other, strict=True):
            check_alike(a, b)
    else:
        assert np.asarray(found).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(found, other, rtol=1e-6, atol=1e-12)


def test_products_with_hessians_by_tuples_of_numbers_are_programs():
    f, x, v = OF_TUPLES[0]
    product = jacobians.product_for(f, x)
    product(x, v)
    assert product.__dict__["__morula__"].program(product, (x, v), None).code is not None


def test_products_with_hessians_by_a_tuple_whose_array_is_written_to():
    x = (np.array([1.0, 2.0]), 2.0)
    W̄, c̄ = hvp(writes_to_its_tuple, x, (np.ones(2), 1.0))
    np.testing.assert_allclose(W̄, [0.0, 252.0])
    assert c̄ == 240.0
    assert x[0].tolist() == [4.0, 2.0]


@pytest.mark.parametrize("reduce", [np.sum, np.mean, np.max, np.min])
@pytest.mark.parametrize("method", [False, True])
def test_an_axis_that_has_a_tangent(reduce, method):
    def f(x, k):
        y = x * np.array([[1.0, 2.0], [4.0, 3.0]])
        return getattr(y, reduce.__name__)(k) if method else reduce(y, k)

    y, ẏ = jvp(f, (2.0, 1), (1.0, 1.0))
    np.testing.assert_allclose(ẏ, y / 2.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: (x * np.ones(n)).reshape((n, 1)),
        lambda x, n: (x * np.ones(n)).reshape(1, n),
        lambda x, n: np.reshape(x * np.ones(n), (n, 1)),
    ],
)
def test_a_shape_of_numbers_that_have_tangents(f):
    y, ẏ = jvp(f, (2.0, 3), (1.0, 1.0))
    np.testing.assert_array_equal(ẏ, y / 2.0)
