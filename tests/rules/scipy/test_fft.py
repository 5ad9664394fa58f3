"""scipy.fft and scipy.fftpack: types, norms, lengths, axes; operators on periodic sequences."""

import numpy as np
import pytest
from scipy import fft, fftpack

from morula import grad, gradient, hvp
from morula.core.errors import NoRuleError
from morula.core.extend import call
from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw

call(fft.fft, np.ones(2))  # loads the rules
call(fftpack.fft, np.ones(2))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 4, 7])
def test_along_one_axis(rng, name, norm, n):
    fn = getattr(fft, name)
    for dtype in ("f8", "f4") if name in ("rfft", "ihfft") else ("f8", "c16", "c8"):
        check_rrule(fn, draw(rng, 5, dtype), n, norm=norm, order=1 if n else 2)
        check_rrule(fn, draw(rng, (4, 2), dtype).T[::-1], n=n, axis=-2, norm=norm)
    check_rrule(fn, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("more", ["2", "n"])
def test_along_several_axes(rng, name, more):
    fn = getattr(fft, name + more)
    for dtype in ("f8",) if name in ("rfft", "ihfft") else ("f8", "c16"):
        check_rrule(fn, draw(rng, (3, 4), dtype), norm="forward", order=2)
        check_rrule(fn, draw(rng, (2, 3, 4), dtype), axes=(0, 2))
        check_rrule(fn, draw(rng, (3, 4), dtype), (4, 3), axes=(1, 0))


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("orthogonalize", [None, True, False])
def test_cosine_and_sine_transforms(rng, name, type, norm, orthogonalize):
    fn, several = getattr(fft, name), getattr(fft, name + "n")
    keywords = {"norm": norm, "orthogonalize": orthogonalize}
    check_rrule(fn, draw(rng, 5, "f8"), type=type, **keywords, order=2)
    check_rrule(fn, draw(rng, (2, 4), "f4"), type, 6, 1, **keywords)
    check_rrule(fn, draw(rng, (4, 2), "c16"), type, 3, axis=0, **keywords)
    check_rrule(several, draw(rng, (3, 4), "f8"), type, **keywords)
    check_rrule(several, draw(rng, (2, 3, 4), "f8"), type, (2, 5), **keywords)
    check_rrule(several, draw(rng, (3, 4), "f8"), type=type, axes=0, **keywords)


@pytest.mark.parametrize("fn", [fft.fht, fft.ifht])
@pytest.mark.parametrize("n", [6, 7])
def test_hankel_transforms(rng, fn, n):
    check_rrule(fn, draw(rng, n, "f8"), 0.3, 0.7, rtol=1e-5)
    check_rrule(fn, draw(rng, (2, n), "f8"), 0.3, 0.7, offset=0.2, bias=0.1, rtol=1e-5)
    check_gradient(lambda dln: np.sum(fft.fht(np.ones(4), dln, 0.5, fft.fhtoffset(dln, 0.5))), 0.3)


def test_helpers(rng):
    x = draw(rng, (3, 4), "f8")
    check_gradient(lambda x: fft.fftshift(x, axes=1)[1, 1] * fft.fftfreq(4)[1], x)
    n = fft.next_fast_len(7)
    check_gradient(lambda x: np.abs(fft.fft(x[0], fft.next_fast_len(7))[n - 1]), x)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("n", [None, 3, 4, 7])
def test_transforms_of_fftpack(rng, name, n):
    fn = getattr(fftpack, name)
    check_rrule(fn, draw(rng, 5, "f8"), n=n, order=2)
    check_rrule(fn, draw(rng, (4, 2), "f8"), n=n, axis=0)
    if name in ("fft", "ifft"):
        check_rrule(fn, draw(rng, (4, 2), "c16"), n=n, axis=0)
        check_rrule(getattr(fftpack, name + "2"), draw(rng, (2, 3, 2), "c16"))
        check_rrule(getattr(fftpack, name + "n"), draw(rng, (2, 3), "c16"), (3, 2))


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_and_sine_transforms_of_fftpack(rng, name, type, norm):
    check_rrule(getattr(fftpack, name), draw(rng, (2, 4), "f8"), type, 5, norm=norm)
    check_rrule(getattr(fftpack, name + "n"), draw(rng, (3, 4), "f8"), type, norm=norm)


@pytest.mark.parametrize("n", [6, 7])
def test_operators_of_fftpack(rng, n):
    c = draw(rng, n, "f8")
    for f in (
        lambda x: fftpack.hilbert(x),
        lambda x: fftpack.ihilbert(x),
        lambda x: fftpack.diff(x),
        lambda x: fftpack.diff(x, 2, period=3.0),
        lambda x: fftpack.diff(x - np.mean(x), -1),
        lambda x: fftpack.tilbert(x, 0.7),
        lambda x: fftpack.itilbert(x, 0.7),
        lambda x: fftpack.cs_diff(x, 0.7, 0.3),
        lambda x: fftpack.sc_diff(x, 0.7, 0.3, period=5.0),
        lambda x: fftpack.ss_diff(x, 0.7, 0.3),
        lambda x: fftpack.cc_diff(x, 0.7, 0.3),
        lambda x: fftpack.shift(x, 0.4),
    ):
        check_gradient(lambda x, f=f: np.sum(c * f(x) ** 2), draw(rng, n, "f8"))
    check_gradient(lambda a: np.sum(c * fftpack.shift(c**2, a)), 0.4)


@pytest.mark.parametrize("n", [6, 7])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_shifts_and_periods_of_fftpack(rng, n, dtype):
    c, x = draw(rng, n, dtype), draw(rng, n, dtype)
    for f in (
        lambda p: fftpack.diff(x, 1, p),
        lambda p: fftpack.diff(x - np.mean(x), -2, period=p),
        lambda p: fftpack.diff(x, 0, p),
        lambda p: fftpack.shift(x, 0.4, p),
        lambda a: fftpack.shift(x, a),
        lambda a: fftpack.shift(x, a, 3.0 * a),
    ):

        def g(p, f=f):
            return np.real(np.sum(c * f(p)))

        check_gradient(g, 2.3)
        h = 1e-4
        assert hvp(g, 2.3, 1.0) == pytest.approx(
            (grad(g)(2.3 + h) - grad(g)(2.3 - h)) / (2 * h), rel=1e-6, abs=1e-8
        )


def test_a_parameter_without_a_formula_is_an_error(path):
    x = np.arange(4.0)
    assert grad(lambda x: fftpack.tilbert(x, 0.7)[1])(x).shape == (4,)
    with pytest.raises(NoRuleError, match="the derivative by its parameter is not known"):
        gradient(lambda h: fftpack.tilbert(x, h)[1], 0.7)
    with pytest.raises(NoRuleError, match="the derivative by its parameter is not known"):
        gradient(lambda h: np.sum(fftpack.tilbert(x, h * h) ** 2), 0.7)
