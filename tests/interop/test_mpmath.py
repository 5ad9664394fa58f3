"""Functions of mpmath."""

import mpmath
import pytest
from mpmath import mpc, mpf

import morula
from morula import NoRuleError
from morula.core.errors import DifferentiationError
from morula.interop.mpmath import SLOPES
from tests.modes import check_modes

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
    for f in (lambda x: mpmath.fsub(x, 1), lambda x: mpmath.besselj(0, x)):
        with pytest.raises(NoRuleError):
            morula.grad(f)(mpf(0.4))


def test_precision_is_kept():
    with mpmath.workdps(50):
        assert mpmath.almosteq(morula.grad(mpmath.exp)(mpf(1)), mpmath.e, 1e-45)


def conversions(x, y):
    return {
        "mpf": lambda: mpf(x) ** 2 * y,
        "mpf of one": lambda: mpf(mpf(x)) * y,
        "mpc": lambda: abs(mpc(x, y)) ** 3,
        "parts": lambda: (mpc(x) * mpc(1, y)).imag * mpc(x, y).real,
        "conjugate": lambda: (mpc(x, y) ** 2).conjugate().imag,
        "mpmathify": lambda: mpmath.mpmathify(x) * y * x,
        "function": lambda: mpmath.sin(x) * y * y,
        "sum": lambda: mpmath.fsum(mpf(v) * v for v in (x, y)),
        "sum of absolute values": lambda: mpmath.fsum([-x * y, y], absolute=True),
        "sum of squares": lambda: mpmath.fsum([x, y], squared=True),
        "product": lambda: mpmath.fdot([x, 2], [y, x]),
        "product of pairs": lambda: mpmath.fdot((mpf(a), b) for a, b in ((x, y), (y, 3))),
        "complex product": lambda: mpmath.fdot([mpc(x, y)], [mpc(y, 2)], conjugate=True).imag,
        "prod": lambda: mpmath.fprod(mpf(v) * x for v in (x, y)),
        "polynomial": lambda: mpmath.polyval([mpf(x), 1, y], mpf(y)),
        "text": lambda: mpf("2.5") * x * y,
        "rounded": lambda: (mpmath.floor(mpf(x)) + mpmath.frac(mpf(y))) * x * x,
        "compared": lambda: mpf(x) * y if mpf(x) > 0.1 else mpf(0),
        "precision": lambda: in_precision(x, y),
    }


def in_precision(x, y):
    with mpmath.workdps(30):
        return mpf(x) ** 3 * y


@pytest.mark.parametrize("name", conversions(1.0, 1.0))
def test_floats_that_become_numbers_of_mpmath_and_floats_again(name):
    check_modes(lambda x: float(conversions(x, 1.3 * x)[name]()), 0.7)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mpmath.zeta(mpf(x)),
        lambda x: mpf(x).__add__(1),
        lambda x: mpf(x)._mpf_[1] * 1.0,
        lambda x: mpmath.diff(lambda t: t * t * x, 1.3),
        lambda x: mpmath.fsub(x, 1.0),
    ],
)
def test_digits_are_refused_in_every_mode(f):
    def g(x):
        return float(f(x))

    for derivative in (lambda: morula.grad(g)(1.7), lambda: morula.jvp(g, (1.7,), (1.0,))):
        with pytest.raises(DifferentiationError):
            derivative()


COMPLEX = {
    "sign": lambda x: mpmath.re(mpmath.sign(mpc(x, 2 * x * x)) * mpc(1, 3)),
    "sign of a real number": lambda x: mpmath.sign(mpf(x)) * x * x,
    "absolute values": lambda x: mpmath.fsum([mpc(x, 1), mpc(2, x * x)], absolute=True),
    "squares": lambda x: mpmath.fsum([mpc(x, 1), mpc(2, x)], squared=True).imag,
    "absolute squares": lambda x: mpmath.fsum([mpc(x, 1), mpc(2, x * x)], True, True),
    "frac": lambda x: (mpmath.frac(mpc(3 * x, x)) ** 2).imag,
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_out_of_floats(name):
    check_modes(lambda x: float(COMPLEX[name](x)), 0.7)
