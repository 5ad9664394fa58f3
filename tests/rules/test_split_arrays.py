"""Arrays that are unpacked with a rest, or made lists."""

import numpy as np
import pytest

from morula import code_adjoint, gradient
from morula.testing import check_gradient
from tests.random_programs import on_path


def head_and_tail(p):
    a, b, *rest = p
    return a * b + sum(rest) * rest[0]


def last(p):
    *rest, z = p
    return sum(rest) * z


def middle(p):
    a, *rest, z = p[:4]
    return a * z * rest[0] + len(rest)


def nothing_left(p):
    a, b, c, d, *rest = p
    return a * b + c * d + len(rest)


def listed(p):
    xs = list(p)
    xs.append(xs[0] * 2.0)
    return sum(xs) * xs[1] + sum([v * v for v in list(p)[1:]])


def rows(p):
    total = 0.0
    for row in list(p.reshape(2, 2)):
        total = total + np.sum(row**2) * row[0]
    first, *others = p.reshape(2, 2)
    return total + first @ others[0]


PROGRAMS = [head_and_tail, last, middle, nothing_left, listed, rows]


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    check_gradient(f, np.array([0.4, 0.9, 1.3, 0.7]))


@pytest.mark.parametrize("f", PROGRAMS)
def test_they_are_compiled(f):
    p = np.array([0.4, 0.9, 1.3, 0.7])
    gradient(f, p)
    assert "call_from_program" not in str(code_adjoint(f, p))


def masked(p):
    y = p.copy()
    y[np.abs(p) > 0.8] = 0.0
    return np.sum(np.abs(y) ** 2)


def turned(p):
    total = 0.0
    for v in reversed(p):
        total = total * 0.5 + v
    return np.abs(total)


@pytest.mark.parametrize("f", [masked, turned, lambda p: np.abs(listed(p)), lambda p: abs(last(p))])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_kinds_of_numbers(f, dtype):
    p = np.array([0.4, 0.9, 1.3, 0.7], dtype)
    with on_path("general"):
        (expected,) = gradient(f, p)
    for _ in range(2):
        (found,) = gradient(f, p)
        assert found.dtype == expected.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_empty_arrays():
    def f(p):
        y = p.copy()
        y[p > 0.0] = 1.0
        total = np.sum(y * y) + sum(list(p))
        for v in reversed(p):
            total = total + v
        return total

    assert gradient(f, np.zeros(0))[0].shape == (0,)


def test_too_short():
    with pytest.raises(ValueError, match=r"expected at least 4, got 3"):
        gradient(nothing_left, np.ones(3))
    with pytest.raises(ValueError, match=r"expected at least 2, got 1"):
        gradient(head_and_tail, np.ones(1))


def asked(p):
    big = any(v > 1.0 for v in p)
    small = all(v < 1.0 for v in p[:2])
    return p[0] * (2.0 if big else 3.0) + p[1] * small


def asked_in_turn(p):
    """What stands behind the first that decides is not looked at."""
    return p[0] if any(1.0 / v > 1.0 for v in (p[0], 0.0)) else p[1]


@pytest.mark.parametrize("f", [asked, asked_in_turn])
def test_questions_to_generators(f):
    p = np.array([0.4, 0.9, 1.3, 0.7])
    check_gradient(f, p)
    assert "call_from_program" not in str(code_adjoint(f, p))
