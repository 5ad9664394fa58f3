"""Distribution functions and their inverses against differences, by every real argument."""

import numpy as np
import pytest
from scipy import special as sp

from morula import gradient
from morula.core.extend import call
from morula.testing import check_gradient, check_rrule

call(sp.erf, 0.5)  # loads the rules

P = np.array([0.2, 0.55, 0.9])
V = np.array([1.3, 4.0, 11.0])
T = np.array([-1.2, 0.4, 2.3])

ALL = {
    "chdtr": (V, V * P), "chdtrc": (V, V * P), "chdtri": (V, P), "chdtriv": (P, V),
    "gdtr": (V, V[::-1], P), "gdtrc": (V, V[::-1], P), "gdtria": (P, V, V[::-1]),
    "gdtrib": (V, P, V[::-1]), "gdtrix": (V, V[::-1], P), "fdtr": (V, V[::-1], P),
    "fdtrc": (V, V[::-1], V), "fdtri": (V, V[::-1] + 1, P),
    "stdtr": (V, T), "stdtrit": (V, P), "stdtridf": (P[1:] * 0.99, np.array([0.13, 1.4])),
    "btdtria": (P, V, P[::-1]), "btdtrib": (V, P, P[::-1]),
    "bdtrik": (P, V + 4, P[::-1]), "chndtr": (V, V, V[::-1]),
    "chndtrix": (P, V, V[::-1]), "chndtrinc": (V, V * 0.4, P * 0.5),
    "chndtridf": (V, P * 0.6, V * 0.3), "ncfdtr": (V, V[::-1], V * 0.6, V),
    "ncfdtri": (V, V[::-1] + 1, V * 0.6, P), "nctdtr": (V, T, V * 0.4), "nctdtrit": (V, T, P),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_by_all_arguments(name):
    fn, args = getattr(sp, name), ALL[name]
    check_rrule(fn, *args, rtol=2e-5, atol=1e-6)
    check_rrule(fn, *[float(a[0]) for a in args], rtol=2e-5, atol=1e-6)


LAST = {
    "bdtr": (3, 10, P), "bdtrc": (3, 10, P), "bdtri": (3, 10, P), "nbdtr": (3, 4, P),
    "nbdtrc": (3, 4, P), "nbdtri": (3, 4, P), "pdtr": (3, V), "pdtrc": (3, V), "pdtri": (3, P),
}  # fmt: skip


@pytest.mark.parametrize("name", LAST)
def test_of_counts(name):
    args = LAST[name]
    fn = getattr(sp, name)
    check_gradient(lambda x: np.sum(fn(*args[:-1], x) * V), args[-1], rtol=1e-5)


def test_second_order():
    def f(v, x):
        return sp.chdtr(v, x) + sp.stdtr(v, x) + sp.fdtr(v, 3.0, x)

    check_gradient(lambda v, x: sum(gradient(f, v, x)), 4.3, 2.1, rtol=1e-5)
    check_gradient(lambda p: gradient(lambda p: sp.stdtrit(4.0, p), p)[0], 0.8, rtol=1e-5)


def test_symmetric_point_of_students_distribution():
    assert np.isclose(gradient(sp.stdtr, 5.0, 0.0)[1], 0.3796066898)
    assert gradient(sp.stdtr, 5.0, 0.0)[0] == 0


def test_inverses_that_are_found_to_few_digits():
    """A function of its inverse is the identity, and constant in the parameters."""
    p = sp.fdtr(3.0, 5.0, 1.2)
    for f, point in (
        (lambda p, m: sp.gammaincc(sp.pdtrik(p, m) + 1, m), (0.4, 3.3)),
        (lambda p, n, q: sp.betainc(n, sp.nbdtrik(p, n, q) + 1, q), (0.4, 3.3, 0.6)),
        (lambda p, d, x: sp.fdtr(d, sp.fdtridfd(d, p, x), x), (p, 3.0, 1.2)),
    ):
        slope, *others = gradient(f, *point)
        assert np.isclose(slope, 1, rtol=1e-8)
        assert np.allclose(others, 0, atol=1e-8)
