"""Geometric transforms by splines, and filters in Fourier space."""

import numpy as np
import pytest
from scipy import ndimage

from morula import UnsupportedError, grad, gradient, value_and_grad
from morula.rules.scipy.ndimage.resampling import sampled
from tests.array_modes import check_array_modes, often, weigh

RNG = np.random.default_rng(2)
IMAGE = RNG.normal(size=(6, 7))
PLACES = RNG.uniform(0.3, 4.6, size=(2, 5))
MATRIX, OFFSET = np.array([[1.1, 0.1], [0.05, 0.9]]), np.array([0.2137, 0.3219])
MODES = ["nearest", "wrap", "reflect", "mirror", "constant", "grid-wrap", "grid-constant"]


@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("mode", MODES)
def test_the_definition_has_the_values_of_the_kernel(mode, order):
    places = RNG.uniform(-15, 20, size=(2, 80))
    y = ndimage.map_coordinates(IMAGE, places, order=order, mode=mode, cval=0.7, prefilter=False)
    code = MODES.index(mode)
    np.testing.assert_allclose(sampled(IMAGE, places, order, code, 0.7, 0, float), y, atol=1e-12)


TRANSFORMS = {
    "map_coordinates": lambda a, m, o, p, **s: ndimage.map_coordinates(a, p, **s),
    "affine_transform": lambda a, m, o, p, **s: ndimage.affine_transform(a, m, o, **s),
    "diagonal": lambda a, m, o, p, **s: ndimage.affine_transform(a, m[0] + 0.3, o, (4, 3), **s),
    "shift": lambda a, m, o, p, **s: ndimage.shift(a, o, **s),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    def f(a, m, o, p):
        cubic = TRANSFORMS[name](a, m, o, p, mode="mirror")
        return weigh(cubic) + weigh(TRANSFORMS[name](a, m, o, p, order=1, cval=0.4))

    check_array_modes(f, IMAGE, MATRIX, OFFSET, PLACES, second=False)


@pytest.mark.parametrize("mode", often(MODES, "wrap", "reflect", "constant"))
def test_modes(mode):
    def f(a, p):
        return weigh(ndimage.map_coordinates(a, 3.0 * p - 4.0, order=3, mode=mode, cval=0.4))

    check_array_modes(f, IMAGE, PLACES, second=False)


def test_second_derivatives_by_the_places():
    check_array_modes(lambda a, p: weigh(ndimage.map_coordinates(a, p)), IMAGE, PLACES, second=True)


def test_angles_zooms_and_functions():
    def f(t):
        turned = ndimage.rotate(IMAGE, 30.0 * t, reshape=False, mode="nearest")
        smaller = ndimage.zoom(IMAGE * t, 0.6, grid_mode=True, mode="grid-wrap")
        return weigh(turned) + weigh(ndimage.zoom(IMAGE * t, 1.5)) + weigh(smaller)

    h = 1e-6
    assert grad(f)(0.7) == pytest.approx((f(0.7 + h) - f(0.7 - h)) / (2 * h), rel=1e-5)
    seen = []

    def place(i, c):
        seen.append(i)
        return c * i[0] + 0.1, c * i[1] + 0.2

    def g(c):
        return weigh(ndimage.geometric_transform(IMAGE, place, extra_arguments=(c,)))

    value, slope = value_and_grad(g)(0.83)
    assert len(seen) == IMAGE.size
    assert value == g(0.83)
    assert slope == pytest.approx((g(0.83 + h) - g(0.83 - h)) / (2 * h), rel=1e-5)


def test_kept_and_given_arrays():
    def f(a):
        out = np.zeros((6, 7))
        ndimage.shift(a, 0.3, output=out)
        out[0] = 0.0
        return weigh(out) + weigh(ndimage.shift(a, [0.3, 0.4], output=np.float32).astype(float))

    h = 1e-3
    v = RNG.normal(size=IMAGE.shape)
    slope = np.sum(grad(f)(IMAGE) * v)
    assert slope == pytest.approx((f(IMAGE + h * v) - f(IMAGE - h * v)) / (2 * h), rel=1e-3)


@pytest.mark.parametrize("shape", [(7,), (6, 5), (3, 4, 5)])
def test_filters_in_fourier_space(shape):
    x = np.fft.fftn(RNG.normal(size=shape))
    half = np.fft.rfftn(RNG.normal(size=shape))
    s = RNG.uniform(0.8, 2.0, size=len(shape))

    def f(re, s):
        y = re + 0.3j * re
        found = ndimage.fourier_gaussian(y, s) + ndimage.fourier_uniform(y, s)
        found = found + ndimage.fourier_ellipsoid(y, s) + ndimage.fourier_shift(y, s)
        ours = ndimage.fourier_gaussian(half * re.ravel()[0], s, n=shape[-1])
        return weigh(np.real(found)) + weigh(np.imag(found)) + weigh(np.real(ours))

    check_array_modes(f, np.real(x), s, second=False)


def test_compiled_functions_are_refused():
    from scipy import LowLevelCallable

    assert issubclass(LowLevelCallable, tuple)
    with pytest.raises((UnsupportedError, TypeError)):
        gradient(lambda a: np.sum(ndimage.geometric_transform(a, 3.0)), IMAGE)
