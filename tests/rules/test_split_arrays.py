"""Arrays that are unpacked with a rest, or made lists."""

import numpy as np
import pytest

from morula import code_adjoint, gradient
from morula.testing import check_gradient


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
