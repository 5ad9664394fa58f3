"""Functions of mpmath."""

import mpmath
import pytest
from mpmath import mpc, mpf

import morula
from morula import NoRuleError
from morula.rules.multiprecision import SLOPES

WITHIN = {"acosh": 1.7, "loggamma": 1.7, "ei": 1.7}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name):
    f = getattr(mpmath, name)
    at = mpf(WITHIN.get(name, 0.4))
    found = morula.grad(lambda x: f(x) * x)(at)
    assert type(found) is mpf
    assert mpmath.almosteq(found, mpmath.diff(lambda x: f(x) * x, at), 1e-8)


def test_functions_that_are_python():
    def f(x):
        return mpmath.log(x, 2) * mpmath.power(x, 3) + mpmath.hypot(x, 2) / mpmath.atan2(x, 3)

    at = mpf("0.7")
    assert mpmath.almosteq(morula.grad(f)(at), mpmath.diff(f, at), 1e-8)


def test_complex_numbers():
    z = mpc(0.3, 0.4)
    found = morula.grad(lambda z: abs(mpmath.exp(z) * z) ** 2)(z)
    e, d = mpmath.exp(z) * z, mpmath.exp(z) * (z + 1)
    assert mpmath.almosteq(found, 2 * e * mpmath.conj(d))


def test_what_reads_digits_is_refused():
    for f in (lambda x: mpmath.fsum([x, x]), lambda x: mpmath.besselj(0, x)):
        with pytest.raises(NoRuleError):
            morula.grad(f)(mpf(0.4))


def test_precision_is_kept():
    with mpmath.workdps(50):
        assert mpmath.almosteq(morula.grad(mpmath.exp)(mpf(1)), mpmath.e, 1e-45)
