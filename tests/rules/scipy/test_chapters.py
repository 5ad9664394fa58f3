"""Signals, images, interpolation, distances: SciPy's compiled functions within its own code."""

import numpy as np
import pytest
from scipy import interpolate, ndimage, signal
from scipy.spatial import distance

from morula import UnsupportedError, gradient, jvp
from morula.testing import check_gradient

RNG = np.random.default_rng(8)
X = np.arange(7.0) + 0.3 * RNG.random(7)
GRID = np.arange(6.0), np.arange(7.0)
OPERANDS = {
    "x": X, "y": RNG.standard_normal(7), "t": np.array([1.3, 2.71, 4.4]),
    "a": RNG.standard_normal((6, 7)), "k": RNG.standard_normal((3, 3)), "b": RNG.standard_normal(3),
    "c": np.array([1.2, -0.4, 0.2]),
    "v": RNG.standard_normal(14), "s": 1.3, "P": RNG.standard_normal((4, 3)),
    "Q": RNG.standard_normal((5, 3)), "w": RNG.random(3) + 0.2, "i": 4 * RNG.random((2, 5)) + 0.3,
    "z": RNG.standard_normal(7) + 1j * RNG.standard_normal(7),
}  # fmt: skip
LABELS = np.arange(42).reshape(6, 7) % 3


def weigh(y):
    """A real number that depends on every entry of the results."""
    if isinstance(y, tuple | list):
        return sum([weigh(y[i]) for i in range(len(y))])
    weights = np.cos(np.arange(np.size(y)) + 1.0).reshape(np.shape(y))
    return np.sum(np.real(y * (weights * (1 - 0.5j if np.iscomplexobj(y) else 1.0))))


SIGNALS = {
    "lfilter": lambda b, c, v: signal.lfilter(b, c, v),
    "lfilter, state": lambda b, c, v: signal.lfilter(b, c, v, zi=b[:2]),
    "lfilter, axis": lambda b, c, a: signal.lfilter(b, c, a, axis=0),
    "lfilter, long numerator": lambda v, c, a: signal.lfilter(v[:5], c[:2], a),
    "lfilter, long denominator": lambda b, c, a: signal.lfilter(b[:1], c, a, zi=a[:, :2])[1],
    "lfilter of complex": lambda b, c, z: signal.lfilter(b, c, z),
    "filtfilt": lambda v: signal.filtfilt([0.3, 0.2], [1, -0.5], v, padlen=4),
    "sosfilt": lambda w, v: signal.sosfilt(np.array([[*w, 1, -0.3, 0.2], [*w, 1, 0.4, 0.1]]), v),
    "sosfilt, state": lambda w, a, b: signal.sosfilt(
        np.array([[*w, 1, -0.3, 0.2]]), a[0], zi=b[None, :2]
    ),
    "convolve": lambda v, b: signal.convolve(v, b, "same"),
    "convolve directly": lambda a, k: signal.convolve(a, k, "valid", method="direct"),
    "convolve by fft": lambda a, k: signal.convolve(a, k, method="fft"),
    "correlate": lambda z, y: signal.correlate(z, y[:3] * 1j),
    "correlate, same": lambda a, k: signal.correlate(a, k, "same", method="direct"),
    "correlate, short first": lambda a, k: signal.correlate(k, a, "valid", method="direct"),
    "convolve2d": lambda a, k: signal.convolve2d(a, k),
    "convolve2d, symmetric": lambda a, k: signal.convolve2d(a, k, "same", "symm"),
    "convolve2d, wrapped": lambda a, k: signal.convolve2d(a, k[:2], "same", "wrap"),
    "convolve2d, filled": lambda a, k: signal.convolve2d(a, k[:, :2], fillvalue=2.0),
    "correlate2d": lambda a, k: signal.correlate2d(a, k[:2], "valid"),
    "correlate2d, same": lambda a, k: signal.correlate2d(a, k[:2, :2], "same"),
    "sepfir2d": lambda a, b, v: signal.sepfir2d(a, b, v[:5]),
    "sepfir2d of complex": lambda a, b, z: signal.sepfir2d(a * (1 + 0.5j), b + 0j, z[:5]),
    "upfirdn": lambda b, v: signal.upfirdn(b, v, 3, 2),
    "resample_poly": lambda a: signal.resample_poly(a, 3, 2, axis=1),
    "savgol": lambda v: signal.savgol_filter(v, 5, 2),
    "welch": lambda v: signal.welch(v, nperseg=8)[1],
    "hilbert": lambda v: np.abs(signal.hilbert(v)),
    "medfilt": lambda v: signal.medfilt(v, 3),
    "lfilter_zi": lambda b, c: signal.lfilter_zi(b, c),
    "lfilter_zi, short": lambda b, c: signal.lfilter_zi(b[:2], c),
    "lfilter_zi, a0 is 1": lambda b, c: signal.lfilter_zi(b, np.concatenate(([1.0], c[1:]))),
    "lfiltic": lambda b, c, x: signal.lfiltic(b, c, x[:2], x[3:6]),
    "lfiltic, outputs alone": lambda b, c, x: signal.lfiltic(b[:1], c, x[:1]),
    "symiirorder1": lambda v, w: signal.symiirorder1(np.tile(v, 4), 0.5, w[0] / 4),
    "symiirorder2": lambda v, w: signal.symiirorder2(np.tile(v, 6), w[0] / 3, w[1]),
    "medfilt2d": lambda a: signal.medfilt2d(a, 3) + signal.medfilt2d(a, (1, 5)),
}
IMAGES = {
    "convolve": lambda a, k: ndimage.convolve(a, k),
    "correlate, constant": lambda a, k: ndimage.correlate(a, k[:2], mode="constant", cval=1.5),
    "correlate, wrapped": lambda a, k: ndimage.correlate(a, k, mode="wrap", origin=(1, -1)),
    "correlate, mirrored": lambda a, k: ndimage.correlate(a, k[:, :2], mode="mirror"),
    "correlate1d": lambda a, b: ndimage.correlate1d(a, b, axis=0, mode="nearest", origin=1),
    "convolve1d": lambda z, b: ndimage.convolve1d(z, b[:2], mode="reflect"),
    "gaussian": lambda a, s: ndimage.gaussian_filter(a, s),
    "gaussian, derivative": lambda a: ndimage.gaussian_filter(a, (1.2, 0.8), order=(1, 0)),
    "gaussian magnitude": lambda a: ndimage.gaussian_gradient_magnitude(a, 1.0),
    "uniform": lambda a: ndimage.uniform_filter(a, (2, 3), mode="constant", cval=1.0),
    "sobel": lambda a: ndimage.sobel(a),
    "laplace": lambda a: ndimage.laplace(a, mode="wrap"),
    "maximum": lambda a: ndimage.maximum_filter(a, 3),
    "minimum": lambda a: ndimage.minimum_filter(a, footprint=np.eye(3)),
    "median": lambda a: ndimage.median_filter(a, 3),
    "percentile": lambda v: ndimage.percentile_filter(v, 30, 3),
    "dilation": lambda a, k: ndimage.grey_dilation(a, structure=np.abs(k)),
    "erosion": lambda a, k: ndimage.grey_erosion(a, structure=np.abs(k), footprint=np.eye(3) + 1),
    "spline": lambda a: ndimage.spline_filter(a),
    "spline of a row": lambda a: ndimage.spline_filter1d(a, 4, axis=0, mode="grid-wrap"),
    "labelled": lambda a: ndimage.mean(a, LABELS, [0, 1]),
    "a function": lambda a, s: ndimage.generic_filter(
        a, lambda row, k: k * np.sum(row**2), footprint=np.eye(3), mode="wrap", extra_arguments=(s,)
    ),
    "a function of lines": lambda a: ndimage.generic_filter1d(a, products_along, 2, mode="mirror"),
}
INTERPOLATION = {
    "CubicSpline": lambda x, y, t: interpolate.CubicSpline(x, y)(t),
    "natural": lambda x, a, t: interpolate.CubicSpline(x, a.T, bc_type="natural")(t, 1),
    "integral": lambda x, y, s: interpolate.CubicSpline(x, y).integrate(s, 4.1),
    "integral beyond": lambda x, y, s: interpolate.CubicSpline(x, y).integrate(s + 7, s - 3),
    "derivative": lambda x, y, t: interpolate.CubicSpline(x, y).derivative(2)(t),
    "Pchip": lambda x, y, t: interpolate.PchipInterpolator(x, y)(t),
    "Akima": lambda x, y, t: interpolate.Akima1DInterpolator(x, y)(t),
    "Hermite": lambda x, y, t: interpolate.CubicHermiteSpline(x, y, y[::-1])(t),
    "PPoly": lambda a, t: interpolate.PPoly(a[:3], np.arange(8.0))(t - 2, extrapolate=False)[2:],
    "PPoly, many derivatives": lambda a, t: interpolate.PPoly(a[:3], np.arange(8.0))(t, 3) + t,
    "descending": lambda a, t: interpolate.PPoly(a[:3], np.arange(8.0)[::-1])(t),
    "interp1d": lambda x, y, t: interpolate.interp1d(x, y, kind="cubic")(t),
    "make_interp_spline": lambda x, y, t: interpolate.make_interp_spline(x, y)(t),
    "quadratic": lambda x, y, t: interpolate.make_interp_spline(x, y, k=2)(t),
    "clamped": lambda y, t: interpolate.make_interp_spline(np.arange(7.0), y, bc_type="clamped")(t),
    "BSpline": lambda x, y, t: interpolate.BSpline(np.r_[x, x[-1:] + 2, x[-1:] + 3], y[:5], 3)(
        t + 2
    ),
    "slope of BSpline": lambda y, t: interpolate.BSpline(np.arange(10.0), y[:6], 3)(t + 2, 2),
    "integral of BSpline": lambda y: interpolate.BSpline(np.arange(10.0), y[:6], 3).integrate(
        3.2, 5
    ),
    "regular grid": lambda a, i: interpolate.RegularGridInterpolator(GRID, a)(i.T),
    "nearest on a grid": lambda a, i: interpolate.RegularGridInterpolator(GRID, a, "nearest")(i.T),
    "rows on a grid": lambda a, i: interpolate.RegularGridInterpolator(GRID[:1], a)(i[0]),
    "interpn": lambda a, i: interpolate.interpn(GRID, a, (i[0], i[1])),
}
DISTANCES = {
    **{
        name: lambda P, Q, name=name: distance.cdist(P, Q, name)
        for name in (
            "euclidean", "sqeuclidean", "cityblock", "cosine", "correlation", "chebyshev", "canberra",
            "braycurtis", "mahalanobis", "seuclidean",
        )
    },
    "pairs": lambda P: distance.pdist(P),
    "pairs, spread": lambda Q: distance.pdist(Q, "seuclidean"),
    "pairs, weighted": lambda Q, w: distance.pdist(Q, metric="cosine", w=w),
    "power": lambda P, Q, s, w: distance.cdist(P, Q, "minkowski", p=s + 1, w=w),
    "weights": lambda P, Q, w: distance.cdist(P, Q, "cityblock", w=w),
    "spread": lambda P, Q, w: distance.cdist(P, Q, "seuclidean", V=w),
    "inverse": lambda P, Q, k: distance.cdist(P, Q, "mahalanobis", VI=k @ k.T + np.eye(3)),
    "a function": lambda P, Q, s: distance.cdist(P, Q, lambda u, v: np.sum(np.abs(u - v) ** s)),
    "whole": lambda P: distance.squareform(distance.pdist(P)),
    "there and back": lambda P: distance.squareform(distance.squareform(distance.pdist(P))),
}  # fmt: skip


def products_along(line, out):
    out[...] = line[1:] * line[:-1]


ALL = {
    f"{chapter}: {name}": f
    for chapter, table in (
        ("signal", SIGNALS), ("ndimage", IMAGES), ("interpolate", INTERPOLATION), ("spatial", DISTANCES)
    )
    for name, f in table.items()
}  # fmt: skip


def operands_of(f):
    names = f.__code__.co_varnames[: f.__code__.co_argcount - len(f.__defaults__ or ())]
    return [OPERANDS[n] for n in names]


def difference(f, args, along, h=1e-6):
    """The derivative along a direction, by values only."""
    above, below = ([x + d * v for x, v in zip(args, along, strict=True)] for d in (h, -h))
    return (f(*above) - f(*below)) / (2 * h)


@pytest.mark.parametrize("name", ALL)
def test_both_modes_agree_with_differences(name):
    args = operands_of(ALL[name])

    def f(*args):
        return weigh(ALL[name](*args))

    along = [np.sin(np.arange(np.size(x)) + 0.5).reshape(np.shape(x)) for x in args]
    slope = difference(f, args, along)
    y, ẏ = jvp(f, args, along)
    assert y == f(*args)
    np.testing.assert_allclose(ẏ, slope, rtol=1e-6, atol=1e-7)
    pairs = zip(gradient(f, *args), along, strict=True)
    np.testing.assert_allclose(
        sum(np.vdot(g, v).real for g, v in pairs), slope, rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize(
    "name",
    [
        "signal: lfilter, state", "signal: convolve2d, symmetric", "ndimage: gaussian",
        "interpolate: make_interp_spline", "interpolate: regular grid", "spatial: inverse",
    ],
)  # fmt: skip
def test_second_order(name):
    args = operands_of(ALL[name])
    along = [np.cos(np.arange(np.size(x))).reshape(np.shape(x)) for x in args]

    def f(*args):
        return weigh(ALL[name](*args)) ** 2

    def slope(*args):
        pairs = zip(gradient(f, *args), along, strict=True)
        return sum([np.sum(g * v) for g, v in pairs])

    expected = difference(slope, args, along, 1e-5)
    np.testing.assert_allclose(jvp(slope, args, along)[1], expected, rtol=1e-5, atol=1e-6)


def test_points_that_are_the_same():
    """Distances that are norms have the gradient zero there, the others none of their own."""
    P = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]])
    for metric in ("euclidean", "seuclidean", "cityblock"):
        assert np.all(np.isfinite(gradient(lambda P, m=metric: distance.pdist(P, m).sum(), P)[0]))
    assert gradient(lambda P: distance.pdist(P)[0], P)[0].tolist() == np.zeros((3, 2)).tolist()


def test_metrics_of_truth_values_are_refused():
    P = np.array([[0.2, 1.0], [1.0, 0.3]])
    with pytest.raises(UnsupportedError, match="distance 'jaccard'"):
        gradient(lambda P: distance.cdist(P, P, "jaccard").sum(), P)


def test_filters_of_single_precision_stay_single():
    a = OPERANDS["a"].astype(np.float32)
    (g,) = gradient(lambda a: ndimage.gaussian_filter(a, 1.0).sum(), a)
    assert g.dtype == np.float32
    (g,) = gradient(lambda a: signal.lfilter([1.0], [1.0, -0.5], a).sum(), a)
    assert g.dtype == np.float32


def test_arange_with_its_end_by_position():
    check_gradient(lambda s: np.sum(np.arange(5, None, s) * np.arange(5 / s)), 0.7)
    assert gradient(lambda s: np.sum(np.arange(s, stop=None, step=1.0)), 4.2) == (0.0,)
    assert gradient(lambda s: np.sum(np.arange(s, None)), 4.2) == (0.0,)
    assert gradient(lambda s: np.sum(np.arange(s, stop=4.0)), 0.5) == (4.0,)


EMPTY = {
    "correlate": lambda x: ndimage.correlate(x, np.ones((3, 3)), mode="wrap"),
    "correlate1d": lambda x: ndimage.correlate1d(x, [0.2, 0.5, 0.1], axis=0),
    "gaussian_filter": lambda x: ndimage.gaussian_filter(x, 1.0),
    "uniform_filter": lambda x: ndimage.uniform_filter(x, 3),
    "maximum_filter": lambda x: ndimage.maximum_filter(x, 3),
    "median_filter": lambda x: ndimage.median_filter(x, 3),
}


def test_a_filter_whose_first_coefficient_is_zero():
    def f(b, c):
        return weigh(signal.lfilter_zi(b[:2], np.concatenate(([0.0], c))))

    try:
        f(OPERANDS["b"], OPERANDS["c"])
    except ValueError:
        pytest.skip("SciPy does not take it, from 1.18 on")
    check_gradient(f, OPERANDS["b"], OPERANDS["c"])


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_filters_of_images_without_entries(name, shape):
    image = np.zeros(shape)
    found = gradient(lambda x: np.sum(EMPTY[name](x)) + np.sum(x), image)[0]
    assert found.shape == shape


def test_neighbours_that_there_are_none_of_leave_the_weights_alone():
    found = gradient(lambda k: np.sum(ndimage.correlate(np.zeros((0, 4)), k)), np.ones((3, 3)))[0]
    assert np.array_equal(found, np.zeros((3, 3)))


@pytest.mark.parametrize("name", ["cdist", "pdist"])
def test_a_function_of_two_points_may_be_named_as_metric(name):
    points = {"cdist": ("XA", "XB"), "pdist": ("X",)}[name]
    function = getattr(distance, name)

    def f(P):
        given = {key: P * (1.0 + i) + i for i, key in enumerate(points)}
        return weigh(
            function(**given, metric=lambda u, v: np.sum((u - v) ** 2 * np.exp(u * v / 4)))
        )

    def weighted(P):
        given = {key: P * (1.0 + i) + i for i, key in enumerate(points)}
        return weigh(function(**given, metric=distance.euclidean, w=np.array([0.3, 1.2, 0.7])))

    check_gradient(f, OPERANDS["P"])
    check_gradient(weighted, OPERANDS["P"])


SOS = np.array([[1.0, 0.5, 0.2, 1.0, -0.3, 0.2]])
IN_ONE_LINE = {
    "correlate1d": lambda x: np.sum(ndimage.correlate1d(x, [0.2, 0.5, 0.1]) ** 2),
    "gaussian_filter": lambda x: np.sum(ndimage.gaussian_filter(x, 1.0) ** 2),
    "sosfilt": lambda x: np.sum(signal.sosfilt(SOS, x) ** 2),
    "lfilter": lambda x: np.sum(signal.lfilter([1.0, 0.5], [1.0, 0.2], x) ** 2),
}


@pytest.mark.parametrize("name", IN_ONE_LINE)
def test_kernels_that_write_to_arguments_in_small_functions(name):
    check_gradient(IN_ONE_LINE[name], np.sin(np.arange(12.0)), order=1)
