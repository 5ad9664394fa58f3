"""Programs that write to arrays of their own go by compiled programs, at a constant cost per write."""

import math
import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad

from morula import (
    checkpoint,
    code_adjoint,
    forwarddiff,
    grad,
    gradient,
    hessian,
    jacobian,
    pullback,
)
from morula.core import compiled
from morula.core.compiled import Program
from morula.testing import check_gradient
from tests.mutation import check_mutation

X = np.array([0.7, -1.3, 1.9, 0.4])
A = np.array([[0.5, -1.2, 0.8], [1.1, 0.3, -0.6], [0.9, 1.4, -0.2]])


@pytest.fixture
def reasons(monkeypatch):
    """Why the gradients that were asked for have no program; empty strings for those that have."""
    compiled.forget_programs()
    compiled._families.clear()
    found = []
    compile_one = compiled.Family.compile

    def noting(self, *args):
        program = compile_one(self, *args)
        if type(self) is compiled.Family:
            found.append(program.reason)
        return program

    monkeypatch.setattr(compiled.Family, "compile", noting)
    assert Program.most_tries
    yield found
    compiled._families.clear()


def recurrence(t):
    y = np.zeros(10)
    y[0] = 1
    for i in range(1, 10):
        y[i] = y[i - 1] * t
        y[i] = 1 / (1 + math.exp(-y[i]))
    return y.sum()


def unknown_extent(t, n):
    y = np.empty(n)
    y[0] = t
    for i in range(1, n):
        y[i] = y[i - 1] * 0.9 + t * t
    z = np.zeros((n, 2))
    for i in range(n):
        z[i, 1] = y[i] * t
        z[i, 0] += z[i - 1, 1]
    return (z * z).sum() + y[n - 1]


def products(x):
    y = np.zeros(4)
    for i in range(4):
        y[i] = x[i] * x[i - 1]
    for i in range(1, 4):
        y[i] += y[i - 1] * x[i]
    return (y * np.sin(y)).sum()


def whole_arrays(x):
    y = x.copy()
    z = np.exp(y)
    y[1:] += y[:-1]
    y *= x
    y -= 0.5
    w = y * z
    y /= z
    y[0] = y[1] * x[0]
    y[2:] = x[:2] * 2.0
    y[:1] = x[3]
    return (y * x * w).sum()


def views(x):
    a = np.zeros(4)
    v = a.T
    a[:] = x
    u = v[1:]
    v[1] = v[0] * x[2]
    u *= u
    a[2] = 3.0
    a -= v * x
    a += x * a
    a[1:] = a[:-1]
    return (v * x).sum() + u[0]


def warping(a):
    d = np.zeros((4, 4))
    for i in range(3):
        for j in range(3):
            d[i + 1, j + 1] = a[i, j] ** 2 + min(d[i, j], d[i + 1, j], d[i, j + 1])
    return d[3, 3]


def elimination(a):
    u = a.copy()
    for k in range(2):
        for i in range(k + 1, 3):
            u[i, k] /= u[k, k]
            u[i, k + 1 :] -= u[i, k] * u[k, k + 1 :]
    return (u * u).sum()


def gauss_seidel(a):
    x = np.zeros(3)
    for _ in range(4):
        for i in range(3):
            s = 0.0
            for j in range(3):
                if j != i:
                    s += a[i, j] * x[j]
            x[i] = (1.0 - s) / (a[i, i] + 4.0)
    return x.sum()


def diffusion(x):
    u = x.copy()
    for _ in range(3):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return (u * u).sum()


def trajectory(x):
    states = np.zeros((4, 4))
    state = x
    for i in range(4):
        state = state + 0.1 * np.sin(state)
        states[i] = state
    return (states * states).sum()


def swapped(x):
    a = np.zeros(4)
    b = np.ones(4)
    for i in range(4):
        a[i] = x[i] * 2
        a, b = b, a
        if x[i] > 0:
            a[0] += b[i] * x[i]
    return (a * a).sum() + (a * b).sum()


def a_buffer_in_a_loop(x):
    total = 0.0
    for i in range(4):
        w = np.zeros(4)
        w[i] = x[i]
        w[0] += x[1] * w[i]
        total += (w * x).sum()
    return total


def loops_over_ranges(x):
    y = np.zeros(4)
    for i in range(3, -1, -1):
        y[i] += x[i] * x[i - 1]
        for j in range(i):
            if j == 2:
                continue
            y[j] += y[i] * x[j] * (i + 1)
        for _ in range(i, 2):
            y[i] *= x[0]
    for k in range(0):
        y[k] = 0.0
    for k in range(4):
        if x[k] > 1.5:
            break
        y[k] = y[k] * x[k]
    y[k] += x[k] ** 2
    return (y * y).sum() + k * y[0]


def counters_that_change(x):
    y, r = np.zeros(4), range(1, 4)
    for i in r:
        y[i] = x[i] * y[i - 1] + x[0]
        i = i - 1
        y[i] += x[i] * i
    for i in r:
        y[i] *= y[i - 1]
    steps = iter(r)
    for i in steps:
        y[i] += x[i]
        for j in steps:
            y[j] *= x[i] + j
    return y.sum()


def left_by_return(x):
    y = np.zeros(4)
    for i in range(4):
        for j in range(3):
            y[i] += x[j] * x[i] * (j + 1)
            if i + j == 4:
                return (y * y).sum() + i * y[j]
    return 0.0


def sums_that_are_overwritten(x):
    u, w = x.copy(), x.copy()
    for _ in range(3):
        u[1:-1] += 0.1 * (u[2:] + u[:-2] - 2 * u[1:-1])
        u[0] -= u.sum() / 4
        w[1:] *= 0.5
        w[:2] = w[2:] * w[1:3]
    return (u * u).sum() + (w * u).sum()


COMPILED = [
    (recurrence, 0.8), (unknown_extent, 0.7, 5), (products, X), (whole_arrays, X), (views, X),
    (warping, A), (elimination, A), (gauss_seidel, A), (diffusion, X), (trajectory, X), (swapped, X),
    (a_buffer_in_a_loop, X), (loops_over_ranges, X), (counters_that_change, X), (left_by_return, X),
    (sums_that_are_overwritten, X),
]  # fmt: skip


@pytest.mark.parametrize("program", COMPILED, ids=lambda p: p[0].__name__)
def test_programs_with_buffers(reasons, program):
    f, *args = program
    found = check_mutation(f, *args, rtol=1e-5)
    assert set(reasons) == {""}
    compiled.forget_programs()
    compiled._families.clear()
    compiled.specialising = False
    try:
        general = gradient(f, *args)
    finally:
        compiled.specialising = True
    for a, b in zip(found, general, strict=True):
        assert a == pytest.approx(b, rel=1e-12)


def restarts(x):
    y = np.zeros((5, 2))
    y[0] = x[:2]
    n = 0
    while True:
        for i in range(3):
            y[i + 1] = y[i] * y[i] + x[i]
            n += 1
            if n == 2:
                break
        else:
            return (y * y).sum()


def negative_rows(x):
    y = np.zeros((4, 2))
    y[-1] = x[:2]
    for i in range(3):
        y[i] = y[i - 1] * y[i - 1] + x[2]
    return (y * y).sum()


def rows_behind(x):
    y = np.zeros((6, 2))
    y[0] = x[:2]
    y[1] = x[2:]
    for i in range(1, 5):
        v = y[i]
        w = v[::-1]
        y[i + 1] = np.sin(w) * v * y[i - 1]
        y[i + 1, 0] *= y[i, 1]
    return (y * y).sum()


def same_row(x):
    y = np.zeros((6, 2))
    y[0] = x[:2]
    for i in range(2):
        s = y[i] * y[i]
        y[i] = s * x[2]
        y[i + 1] += s * y[i]
    return (y * y).sum()


def downwards(x):
    y = np.zeros((6, 2))
    y[5] = x[:2]
    for i in range(4, -1, -1):
        y[i] = y[i + 1] * y[i + 1] * x[2]
        y[i + 1] = y[i] * x[3]
    return (y * y).sum()


def rows_again(x):
    y = np.zeros((4, 2))
    y[0] = x[:2]
    for k in range(2):
        for i in range(3):
            y[i + 1] = y[i] * y[i] * x[k] + y[i + 1] * x[2]
    return (y * y).sum()


def two_arrays(x):
    y = np.zeros((4, 2))
    z = np.zeros((4, 2))
    y[0] = x[:2]
    z[0] = x[2:]
    for i in range(3):
        y[i + 1] = z[i] * y[i]
        z[i] = y[i + 1] * z[i]
        z[i + 1] = np.exp(y[i])
    return (y * z).sum()


def passed_on(x):
    y = np.zeros((5, 2))
    y[0] = x[:2]
    p = y[0]
    for i in range(4):
        q = p * p
        y[i] = q * x[2]
        p = y[i]
        y[i + 1] = p * q
    return (y * y).sum()


def columns(x):
    y = np.zeros((2, 5))
    z = y.T
    z[0] = x[:2]
    for i in range(4):
        z[i + 1] = z[i] * z[i] + x[2]
        y[i % 2] *= x[3]
    return (y * y).sum()


ROWS = [
    restarts, negative_rows, rows_behind, same_row, downwards, rows_again, two_arrays, passed_on,
    columns,
]  # fmt: skip


@pytest.mark.parametrize("f", ROWS)
def test_rows_that_are_written_behind_those_that_are_read(f, reasons):
    check_mutation(f, X, rtol=1e-5)
    assert set(reasons) == {""}


def relaxed(x, sweeps):
    u = np.zeros(4)
    for _ in range(sweeps):
        for i in range(1, 3):
            u[i] = 0.5 * (x[i] + u[i - 1] + u[i + 1])
    return (u * u).sum()


def stencil(x, sweeps):
    u = x.copy()
    for _ in range(sweeps):
        u[1:-1] += 0.1 * (u[2:] + u[:-2] - 2 * u[1:-1])
    return (u * u).sum()


@pytest.mark.parametrize("f", [relaxed, stencil])
def test_loops_over_ranges_whose_adjoint_asks_for_no_values_keep_nothing(f):
    def peak(sweeps):
        tracemalloc.start()
        grad(f)(X, sweeps)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    check_gradient(lambda x: f(x, 3), X)
    peak(2)
    assert peak(2000) < peak(20) + 1000


def writes_to_its_argument(x):
    x[0] = x[1] * 2.0
    return x.sum()


def by_a_mask(x):
    y = x.copy()
    y[y > 0.5] = 0.0
    return (y * x).sum()


def of_single_precision(x):
    y = np.zeros(4, np.float32)
    y[0] = x[1]
    return (y * x).sum()


def in_a_list(x):
    y = np.zeros(4)
    ys = [y]
    ys[0][1] = x[0]
    return (y * x).sum()


def flips(x):
    y = np.zeros(4)
    z = np.flip(y)
    y[0] = x[0]
    return (z * x).sum()


def of_integers(x):
    y = np.zeros(4, int)
    y[0] = 3
    return x[y[0]] * x[0]


@pytest.mark.parametrize(
    "f", [writes_to_its_argument, of_single_precision, in_a_list, flips, of_integers]
)
def test_what_else_is_written_goes_by_the_general_path(reasons, f):
    check_mutation(f, X, rtol=2e-2)
    assert all(reasons)


def masked_twice(x):
    y = x * 2.0
    z = y.copy()
    m = x > 0.5
    z[m] = x[m] ** 2
    z[~m] = z[~m] * 3.0
    z[z > 1.5] = x[0]
    return (z * x).sum() + np.sum(z[z < 1.0] ** 2)


def masked_rows(x):
    y = np.zeros((2, 2))
    z = x[:4].reshape(2, 2)
    y[z > 0.5] = z[z > 0.5] * x[0]
    y[1] += z[0]
    y[z > 100.0] = 7.0
    y[y < 0.1] = x[1]
    return np.sum(y**2)


@pytest.mark.parametrize("f", [by_a_mask, masked_twice, masked_rows])
def test_masks(f, reasons):
    check_mutation(f, X)
    assert not any(reasons)


def test_what_a_mask_overwrites_is_structurally_zero():
    def f(x):
        y = np.zeros(3)
        y[:] = np.sqrt(x)
        y[x <= 0.0] = 0.0
        return y.sum()

    for _ in range(2):
        np.testing.assert_allclose(grad(f)(np.array([0.0, 4.0, 9.0])), [0.0, 0.25, 1 / 6])


def test_an_error_of_the_plain_call():
    def f(x):
        y = np.zeros(3)
        for i in range(4):
            y[i] = x[i]
        return y.sum()

    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        gradient(f, X)


def one_entry(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = np.sqrt(x[i])
    return y[1] + 2.0 * y[2]


def one_entry_of_numpy(x):
    y = np.empty(3)
    for i in range(3):
        y[i] = np.sqrt(x[i : i + 1]).sum()
    return y[1] + 2.0 * y[2]


def through_others(x):
    y, z = np.zeros(3), np.zeros((2, 3))
    for i in range(3):
        y[i] = np.sqrt(x[i])
        z[1, i] = 0.5 * y[i] - 1.0
    return 2.0 * z[1, 1] + 4.0 * z[1, 2]


def parts(x):
    y = np.zeros((2, 3))
    y[0] = np.sqrt(x)
    return y[0, 1] + 2.0 * y[0, 2]


def parts_of_parts(x):
    y, z = np.zeros((2, 3)), np.zeros(3)
    y[1] = np.sqrt(x)
    z[:] = y[1]
    return (z[1:] * np.array([1.0, 2.0])).sum()


def a_number_for_a_part(x):
    y = np.zeros((3, 2))
    for i in range(3):
        y[i] = np.sqrt(x[i])
    return y[1, 0] + 2.0 * y[2, 1]


def in_place(x):
    y = np.zeros(3)
    y += np.sqrt(x)
    y -= 2.0 * np.sqrt(x)
    y *= -2.0 * np.ones(3)
    y /= 2.0
    return y[1] + 2.0 * y[2]


def overwritten(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = np.sqrt(x[i])
    y[0] = 1.0
    return (y * np.array([1.0, 1.0, 2.0])).sum()


def read_in_a_loop(x):
    y = np.sqrt(x)
    s = 0.0
    for i in range(1, 3):
        s = s + i * y[i]
    return s


def rows_read_in_a_loop(x):
    y = np.sqrt(np.stack([x, x]))
    s = 0.0
    for i in range(2):
        row = y[i]
        s = s + (row[1] + 2.0 * row[2]) / 2
    return s


NEVER_READ = [
    one_entry, one_entry_of_numpy, through_others, parts, parts_of_parts, a_number_for_a_part,
    in_place, overwritten, read_in_a_loop, rows_read_in_a_loop,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f", NEVER_READ)
def test_what_is_written_and_never_read_is_structurally_zero(f):
    x = np.array([0.0, 4.0, 9.0])
    expected = [0.0, 0.25, 1 / 3]
    for _ in range(2):
        np.testing.assert_allclose(grad(f)(x), expected)
    _, back = pullback(f, x)
    np.testing.assert_allclose(back(1.0)[0], expected)
    np.testing.assert_allclose(back(1.0)[0], expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_zero_that_was_computed_is_not_structural(sign):
    def f(x):
        y = np.zeros(3)
        y[:] = np.sqrt(x)
        s = 0.0
        for i in range(3):
            s = s + sign * y[i] ** 2
        return s

    found = grad(f)(np.array([0.0, 4.0, 9.0]))
    assert np.isnan(found[0])
    assert np.allclose(found[1:], sign)
    assert not np.signbit(grad(lambda x: read_in_a_loop(x))(np.ones(3)))[0]


def sum_of_readings(x, A, n):
    y = np.exp(x)
    s = 0.0
    for _ in range(n):
        for i in range(len(x)):
            row = A[i]
            s = s + y[i] * y[i - 1] * x[i] + row[0] * row @ x
            for j in range(2):
                s = s + A[i, j] * A[j, i] * y[j]
    return s + y.sum() + (A * A).sum()


def test_arrays_that_loops_read():
    x, A = np.array([0.3, -0.2, 0.5]), np.arange(9.0).reshape(3, 3) / 7
    check_gradient(lambda x, A: sum_of_readings(x, A, 2), x, A)
    for g, h in zip(gradient(sum_of_readings, x, A, 2), pullback(sum_of_readings, x, A, 2)[1](1.0)):  # noqa: B905
        np.testing.assert_allclose(g, h)
    first, second = grad(sum_of_readings, (0, 1))(x, A, 2), grad(sum_of_readings, (0, 1))(x, A, 2)
    assert all(map(np.array_equal, first, second))
    assert not np.shares_memory(first[0], second[0])
    np.testing.assert_allclose(
        hessian(lambda x: sum_of_readings(x, A, 2), x),
        jacobian(grad(lambda x: sum_of_readings(x, A, 2)), x, mode="reverse")[0],
    )


def test_a_reading_costs_the_same_in_a_long_array():
    text = str(code_adjoint(read_in_a_loop, X))
    assert "zeros_for" in text or "unreached_like" in text
    assert "scatter" not in text


def cholesky(a):
    s, n = a @ a.T + 1.0, 3
    lower = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            t = s[i, j]
            for k in range(j):
                t -= lower[i, k] * lower[j, k]
            lower[i, j] = math.sqrt(t) if i == j else t / lower[j, j]
    return lower.sum() + np.prod(np.diag(lower)) + np.diagonal(lower)[1]


def diagonal_taken_early(a):
    m = np.zeros((3, 3))
    d = np.diag(m)
    m[:] = a * a
    m[1, 1] = d[0] * 2.0
    y = (d * d).sum()
    m[0, 0] = 1.0
    return y + (d * m[0]).sum()


def filled(x):
    d = np.full((5, 5), np.inf)
    d[0, 0] = 0
    for i in range(1, 5):
        for j in range(1, 5):
            d[i, j] = (x[i - 1] - 0.3 * j) ** 2 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[-1, -1]


@pytest.mark.parametrize(("f", "x"), [(cholesky, A), (diagonal_taken_early, A), (filled, X)])
def test_diagonals_and_filled_arrays(f, x, reasons):
    check_mutation(f, x.copy())
    assert not any(reasons)


def a_copy_of_a_buffer(x):
    u = np.zeros(3)
    u[0] = x[0]
    v = u.copy()
    v[1] = x[1] * u[0]
    u[0] = 7.0
    u[1] = x[2]
    return (v * v * u).sum()


def copies_in_a_loop(x):
    u = np.zeros(3)
    for k in range(3):
        u = u.copy()
        u[k] = x[k] + u[k - 1]
    return (u * u).sum()


def copies_that_change_places(x):
    u = np.zeros(3)
    u[0] = x[0]
    for k in range(3):
        v = u.copy()
        for i in range(3):
            v[i] = u[i] * x[k] + u[i - 1]
        u = v
    return (u * u).sum()


def copies_with_infinite_slopes(x):
    u = np.zeros(3)
    for i in range(3):
        u[i] = x[i] ** 0.5
    for k in range(3):
        v = u.copy()
        v[0] = u[1] * x[k]
        u = v
    return u[1:].sum() + u[0]


@pytest.mark.parametrize(
    "f",
    [a_copy_of_a_buffer, copies_in_a_loop, copies_that_change_places, copies_with_infinite_slopes],
)
def test_copies_of_buffers(f):
    x = np.array([0.7, 0.3, 0.9])
    assert str(code_adjoint(f, x)).startswith("# specialised")
    check_mutation(f, x)


def test_what_a_copy_of_a_buffer_overwrites_has_a_structural_zero():
    with np.errstate(divide="ignore"):
        found = grad(copies_with_infinite_slopes)(np.array([0.0, 0.3, 0.9]))
    assert np.isfinite(found).all()


def test_closures_and_objects_carry_derivatives_beside_buffers():
    def with_buffer(y, x):
        buffer = np.zeros(2)
        buffer[0] = x
        return y + buffer[0]

    def closure(x):
        k = 2 * x
        return with_buffer(quad(lambda t: t * k, 0.0, 1.0)[0], x)

    def partial_function(x):
        power = partial(pow, 2 * x)
        return with_buffer(quad(lambda t: t * power(3), 0.0, 1.0)[0], x)

    def rebound(x):
        k = 2 * x
        y = checkpoint(lambda t: t * k, x)
        return with_buffer(forwarddiff(lambda t: t * k, 2.0), y)

    for f in (closure, partial_function, rebound):
        check_gradient(f, 0.5)


def test_lists_that_change_beside_buffers_have_gradients_of_their_first_length():
    def f(xs, a):
        xs.append(0.5 * xs[2])
        c = a.copy()
        c[0] = xs[-1]
        return c.sum() + 0.3 * sum(xs)

    xs = [1.0, 2.0, 3.0]
    g, of_array = gradient(f, xs, np.ones(3))
    assert g == pytest.approx([0.3, 0.3, 0.95])
    assert of_array.tolist() == [0.0, 1.0, 1.0]
    assert xs == [1.0, 2.0, 3.0, 1.5]


def test_a_number_written_to_a_part_that_nothing_reads_has_a_structural_zero(path):
    def f(x):
        b = np.zeros(3)
        b[:2] = np.sqrt(x[0]) * (x * x)[1]
        return b[2:].sum() + x[1]

    assert gradient(f, np.array([0.0, 2.0]))[0].tolist() == [0, 1]

    def g(x):
        y = x * x
        b = np.zeros(2)
        b[::2] = -y[1]
        return (b[1::2] * 2.0).sum()

    assert gradient(g, np.array([2.0, 1.0]))[0].tolist() == [0, 0]
