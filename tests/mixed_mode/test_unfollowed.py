"""What functions store that run without being followed: no obstacle, and an error where it is used."""

import numpy as np
import pytest
from scipy import optimize

from morula import UnsupportedError, grad, hvp, ignore_derivatives, jvp
from tests.modes import check_modes


class Bond:
    def __init__(self):
        self.calls = 0
        self.yields = [0.0]

    def price(self, y):
        self.calls += 1
        self.yields.append(y)
        self.last = [2 * y]
        return 5 * np.exp(-y) + 100 * np.exp(-2 * y)


def priced(y, bond, p):
    bond.latest = y * p
    return bond.price(y) - p


def brent(p):
    bond = Bond()
    y = optimize.brentq(priced, 0.0, 1.0, args=(bond, p))
    bond.last = [p]
    return y * y * bond.last[0] * (1 if bond.calls > 0 else 2)


def newton(p):
    calls = 0

    def f(y):
        nonlocal calls
        calls += 1
        return y**3 + y * p - 100.0

    return optimize.newton(f, 1.0) * p * min(calls, 1)


def squares(p):
    bond = Bond()

    def residuals(x):
        bond.latest = x * p
        return np.array([bond.price(x[0]) - p, x[0] - x[1] ** 3])

    return optimize.leastsq(residuals, np.array([0.3, 0.6]), xtol=1e-14)[0] @ np.array([1.0, 2.0])


@pytest.mark.parametrize("f", [brent, newton])
def test_what_is_not_used_is_not_in_the_way(f):
    check_modes(f, 70.0)


def test_least_squares():
    f, h = squares, 1e-3
    slope = jvp(f, (70.0,), (1.0,))[1]
    assert slope == pytest.approx((f(70.0 + h) - f(70.0 - h)) / (2 * h), rel=1e-5)
    assert slope == pytest.approx(grad(f)(70.0), rel=1e-8)


def last_yield(bond):
    return bond.yields[-1]


@pytest.mark.parametrize("read", [lambda b: b.latest, lambda b: b.last[0], last_yield])
def test_what_the_last_call_has_stored_is_refused(read):
    def f(p):
        bond = Bond()
        y = optimize.brentq(priced, 0.0, 1.0, args=(bond, p))
        return y + read(bond)

    for differentiate in (
        grad(f), lambda p: jvp(f, (p,), (1.0,)), lambda p: hvp(f, p, 1.0),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="let it return what it computes"):
            differentiate(70.0)


def test_ignored_functions():
    def unused(x):
        log = []
        ignore_derivatives(lambda: log.append([x]))
        return x * len(log)

    def used(x):
        log = []
        ignore_derivatives(lambda: log.append([x]))
        return x * log[0][0]

    def counts(n):
        log = [0]

        def count():
            log[0] = 2 * n

        ignore_derivatives(count)
        return n * log[0]

    assert jvp(unused, (3.0,), (1.0,)) == (3.0, 1.0)
    for f, x in ((used, 3.0), (counts, 3)):
        with pytest.raises(UnsupportedError, match="called changes a list"):
            jvp(f, (x,), (1.0,))
        with pytest.raises(UnsupportedError, match="called changes a list"):
            grad(f)(x)
