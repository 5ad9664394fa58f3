"""Numbers of gmpy2."""

import pytest

import morula
from tests.modes import check_modes

gmpy2 = pytest.importorskip("gmpy2")

from gmpy2 import mpfr, mpq, mpz  # noqa: E402

from morula.interop.gmpy2 import SLOPES  # noqa: E402

WITHIN = {"acosh": 1.7}


@pytest.mark.parametrize("name", [name for name in SLOPES if name != "gamma"])
def test_functions(name):
    f = getattr(gmpy2, name)
    check_modes(lambda x: float(f(mpfr(x)) * x), WITHIN.get(name, 0.4))


def test_gamma():
    found = morula.grad(lambda x: gmpy2.gamma(x))(mpfr("0.4"))
    assert float(found) == pytest.approx(float(gmpy2.gamma(0.4) * gmpy2.digamma(mpfr(0.4))))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mpfr(x) ** mpfr(x) / 3 - x,
        lambda x: mpfr(x, 100) * mpq(1, 3) + mpz(3) * mpfr(x) ** 2,
        lambda x: mpq(x) ** 2 * 3,
        lambda x: mpfr("2.5") * x * x,
    ],
)
def test_operators_and_conversions(f):
    check_modes(lambda x: float(f(x)), 0.7)


def test_the_cotangent_is_of_the_same_kind():
    with gmpy2.context(precision=200):
        found = morula.grad(gmpy2.exp)(mpfr(1))
        assert type(found) is mpfr
        assert abs(found - gmpy2.exp(mpfr(1))) < mpfr("1e-55")


def test_cotangents_of_complex_numbers_follow_the_convention():
    z = gmpy2.mpc(0.3, 0.4)
    found = morula.grad(lambda z: abs(gmpy2.exp(z) * z) ** 2)(z)
    e, d = gmpy2.exp(z) * z, gmpy2.exp(z) * (z + 1)
    assert complex(found) == pytest.approx(complex(2 * e * d.conjugate()))
