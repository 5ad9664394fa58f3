"""The transforms of numpy.fft: lengths, axes, norms, real and complex operands."""

import numpy as np
import pytest
import scipy.fft

from morula import grad, gradient, jvp, pullback
from morula.testing import check_gradient, check_rrule
from tests.rules.linalg.matrices import draw

NORMS = [None, "backward", "ortho", "forward"]


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 3, 4, 7])
def test_along_one_axis(rng, name, norm, n):
    fn = getattr(np.fft, name)
    real = name in ("rfft", "ihfft")
    for dtype in ("f8", "f4") if real else ("f8", "c16", "c8"):
        check_rrule(fn, draw(rng, 5, dtype), n, norm=norm, order=1 if n else 2)
        check_rrule(fn, draw(rng, (2, 4), dtype), n, 1, norm)
        check_rrule(fn, draw(rng, (4, 2), dtype).T[::-1], n=n, axis=-2)
    check_rrule(fn, np.arange(4))
    check_rrule(fn, [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
)
@pytest.mark.parametrize("norm", [None, "forward", "ortho"])
def test_along_several_axes(rng, name, norm):
    fn = getattr(np.fft, name)
    for dtype in ("f8",) if name.startswith("r") else ("f8", "c16"):
        check_rrule(fn, draw(rng, (3, 4), dtype), norm=norm, order=2)
        check_rrule(fn, draw(rng, (2, 3, 4), dtype), axes=(0, 2), norm=norm)
        check_rrule(fn, draw(rng, (3, 4), dtype), (4, 3), axes=(1, 0), norm=norm)
        check_rrule(fn, draw(rng, (3, 4), dtype), (5, -1), axes=(0, 1), norm=norm)
    if name.endswith("n"):
        check_rrule(fn, draw(rng, (2, 3, 2), "f8"), axes=None, norm=norm)
    if name in ("fftn", "ifftn"):
        check_rrule(fn, draw(rng, (2, 3), "c16"), axes=(1, 1), norm=norm)


def test_shifts_and_frequencies(rng):
    def f(x):
        return np.sum(np.fft.fftshift(np.abs(np.fft.fft(x)) ** 2) * np.fft.fftfreq(5))

    check_gradient(f, draw(rng, 5, "f8"))
    check_gradient(lambda x: np.fft.ifftshift(x, axes=0)[1, 1], draw(rng, (3, 2), "f8"))


def test_convolution_by_transforms(rng):
    def f(x, k):
        return np.sum(np.fft.irfft(np.fft.rfft(x, 8) * np.fft.rfft(k, 8), 8) ** 2)

    check_gradient(f, draw(rng, 6, "f8"), draw(rng, 3, "f8"))


@pytest.mark.parametrize("of", [np.fft, scipy.fft])
def test_frequencies_depend_on_the_distance_of_the_samples(of):
    check_gradient(lambda d: np.sum(of.fftfreq(5, d) ** 2), 0.7, order=2)
    check_gradient(lambda d: of.rfftfreq(4, d=d)[2] * d * d, 0.7)
    assert gradient(lambda d: of.fftfreq(4, d)[1], 0.5) == (-1.0,)
    assert jvp(lambda d: of.rfftfreq(4, d)[1], (0.5,), (1.0,)) == (0.5, -1.0)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 3, 8])
def test_programs(rng, name, norm, n):
    namespace = {"np": np}
    exec(f"def f(x): return np.sum(np.abs(np.fft.{name}(x, {n}, 0, {norm!r})) ** 3)", namespace)
    f = namespace["f"]
    for dtype in ("f8", "f4") if name in ("rfft", "ihfft") else ("f8", "c16", "c8"):
        x = draw(rng, (5, 2), dtype)
        _, back = pullback(f, x)
        found = grad(f)(x)
        assert found.dtype == x.dtype
        rtol = 1e-4 if dtype in ("f4", "c8") else 1e-10
        np.testing.assert_allclose(found, back(1.0)[0], rtol=rtol, atol=1e-3 * rtol)


@pytest.mark.parametrize("call", ["fft2(x)", "irfftn(x, (3, 4))", "fftn(x, axes=(1,))", "rfft2(x)"])
def test_programs_along_several_axes(rng, call):
    namespace = {"np": np}
    exec(f"def f(x): return np.sum(np.abs(np.fft.{call}) ** 3)", namespace)
    x = draw(rng, (3, 4), "f8")
    _, back = pullback(namespace["f"], x)
    np.testing.assert_allclose(grad(namespace["f"])(x), back(1.0)[0])
