"""Every callable of scipy.interpolate, by its data, its sites and the points asked for."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import interpolate
from scipy.interpolate import _rbfinterp_np
from scipy.linalg import lapack
from scipy.sparse.linalg import spsolve

from morula import UnsupportedError, gradient, jvp, value_and_grad
from morula.core.extend import by_the_general_path
from morula.rules.scipy.interpolate import routines

RNG = np.random.default_rng(3)
N = np.arange(10.0)
X = np.cumsum(1 + 0.3 * np.sin(2 * N)) * 0.5
Y = np.sin(X) + 0.1 * X + 0.05 * np.cos(7 * N)
GX = np.array([0.0, 0.8, 1.7, 2.4, 3.5, 4.1])
GY = np.array([0.0, 1.1, 1.9, 3.2, 4.0, 4.7, 5.5])
G8 = np.array([0.0, 0.8, 1.7, 2.4, 3.5, 4.1, 4.9, 5.3])
S = np.array([4.0, 5.0]) * RNG.random((30, 2))
V = np.sin(S[:, 0]) + 0.2 * S[:, 1] ** 2
S3 = RNG.random((40, 3))
THETA, PHI = np.linspace(0.3, 2.8, 6), np.linspace(0.1, 6.0, 7)
CELLS = np.arange(3.0), np.arange(3.0), np.arange(4.0)
SITES = np.arange(4.0) * 2
WIDE = np.linspace(0, 6, 7)
BOXES = np.arange(5.0) * 1.3, np.arange(3.0) * 3
KNOTS = np.arange(11.0) - 2, np.arange(12.0) - 2
KX = np.array([0.0, 0, 0, 2, 4, 4, 4]), np.array([0.0, 0, 0, 2, 5, 5, 5])
OPERANDS = {
    "x": X, "y": Y, "t": np.array([0.71, 1.33, 2.02, 3.17, 4.41]), "w": 1 + 0.3 * np.cos(N),
    "a": np.stack((Y, np.cos(Y) + X), 1), "k": np.array([1.7, 2.9]), "e": 0.9, "f": 3.1,
    "gx": GX, "gy": GY, "z": np.sin(GX)[:, None] * np.cos(0.6 * GY) + 0.1 * GX[:, None] * GY,
    "p": np.array([[1.15, 2.1], [2.2, 0.7], [3.3, 2.9], [0.47, 4.4]]),
    "g": np.sin(G8)[:, None] * np.cos(0.5 * G8), "s": S, "v": V, "m": np.stack((V, np.cos(V)), 1),
    "q": np.array([[1.3, 2.1], [2.2, 1.6], [2.6, 3.0]]), "W": 1 + 0.2 * np.cos(np.arange(30.0)),
    "r": np.sin(THETA)[:, None] * np.cos(PHI) + 0.1 * THETA[:, None],
    "S": S3, "V": np.sin(2 * S3[:, 0]) + S3[:, 1] * S3[:, 2], "Q": 0.25 + 0.5 * RNG.random((4, 3)),
    "c": np.sin(np.arange(24.0)).reshape(4, 6), "b": np.sin(np.arange(12.0) + 1).reshape(4, 3),
    "n": np.sin(np.arange(72.0)).reshape(3, 3, 4, 2), "l": np.sin(np.arange(56.0)).reshape(7, 8),
    "T": np.array([-1.2, -0.8, -0.3, 0, 1.05, 2.2, 3.3, 5, 5.6, 6.1, 7]),
    "C": np.sin(np.arange(7) + 0.5),
}  # fmt: skip


def closed(y):
    return np.concatenate((y[:-1], y[:1]))


def padded(c):
    return np.concatenate((c, np.zeros(4)))


def with_ends(x, k):
    return np.concatenate((np.repeat(x[:1], 4), k, np.repeat(x[-1:], 4)))


def within(k):
    return np.concatenate((np.zeros(1), k, np.full(1, 5.0)))


def extended(kind, b, t):
    poly = kind(b, np.arange(4.0))
    poly.extend(b * 2, np.array([4.0, 5, 6]))
    return poly(t)


def added(x, y, t):
    poly = interpolate.BarycentricInterpolator(x[:5], y[:5], rng=1)
    poly.add_xi(x[5:7], y[5:7])
    return poly(t)


def reset(x, y, t):
    poly = interpolate.BarycentricInterpolator(x[:5], y[:5], rng=1)
    poly.set_yi(y[:5] * 2)
    return poly(t)


def smoother(y, s, t):
    spline = interpolate.UnivariateSpline(X, y, s=0)
    spline.set_smoothing_factor(s)
    return spline(t)


def quotient(a, t):
    p, q = interpolate.pade(a, 3)
    return p(t) / q(t)


def grid(gx, gy, z, p, method, **options):
    return interpolate.RegularGridInterpolator((gx, gy), z, method, **options)(p)


US, IUS = interpolate.UnivariateSpline, interpolate.InterpolatedUnivariateSpline
LSQ, RBS = interpolate.LSQUnivariateSpline, interpolate.RectBivariateSpline
splrep, splev = interpolate.splrep, interpolate.splev
CURVES = {
    "UnivariateSpline": lambda x, y, t: US(x, y, s=0)(t),
    "even degree": lambda x, y, t: US(x, y, k=4, s=0)(t, nu=2),
    "weights of an interpolation": lambda y, w, t: US(X, y, w=w, s=0)(t),
    "as smooth as a polynomial": lambda x, y, w, t: US(x, y, w=w, s=1e3)(t),
    "wider ends": lambda x, y, e, t: US(x, y, bbox=[e - 1, 6.0], s=0)(t),
    "another smoothing factor": lambda y, t: smoother(y, 1e3, t),
    "ends": lambda x, y, t: US(x, y, s=0, ext=3)(3 * t - 2),
    "zeros beyond": lambda x, y, t: US(x, y, s=0)(3 * t - 2, ext="zeros"),
    "InterpolatedUnivariateSpline": lambda x, y, t: IUS(x, y)(t),
    "quadratic": lambda x, y, t: IUS(x, y, k=2)(t),
    "integral": lambda x, y, e, f: IUS(x, y).integral(e - 1, f),
    "derivative": lambda x, y, t: IUS(x, y).derivative(2)(t),
    "antiderivative": lambda x, y, t: IUS(x, y).antiderivative()(t),
    "derivatives": lambda x, y, e: IUS(x, y).derivatives(e),
    "get_coeffs": lambda x, y: IUS(x, y).get_coeffs(),
    "get_knots": lambda x: IUS(x, Y).get_knots(),
    "get_residual": lambda x, y, w, k: LSQ(x, y, k, w=w).get_residual(),
    "roots": lambda x, y: IUS(x, y - 0.3).roots(),
    "LSQUnivariateSpline": lambda x, y, k, w, t: LSQ(x, y, k, w)(t),
    "splrep": lambda x, y, t: splev(t, splrep(x, y)),
    "splrep, t": lambda x, y, w, k, t: splev(t, splrep(x, y, w, t=k), der=1),
    "splrep, k": lambda x, y, t: splev(t, splrep(x, y, k=1), ext=1),
    "splrep, xb": lambda x, y, e, t: splev(t, splrep(x, y, xb=e - 0.8, xe=6.0, k=2)),
    "splrep, full_output": lambda x, y, k: splrep(x, y, t=k, full_output=1)[1],
    "splrep, per": lambda x, y, t: splev(t, splrep(x, closed(y), per=1)),
    "splrep, per, even": lambda x, y, t: splev(t, splrep(x, closed(y), k=2, per=1)),
    "splrep, per, t": lambda x, y, w, k, t: splev(t, splrep(x, closed(y), w, t=k, per=1)),
    "splrep of columns": lambda y, t: splev(t, splrep(X.tolist(), y, s=0)),
    "splev": lambda T, C, t: splev(t, (T, C, 3)),
    "splev, ext": lambda T, C, t: splev(2 * t - 1, (T, C, 3), ext=3),
    "splev, der": lambda T, C, t: splev(t, (T, C, 3), der=2),
    "splev of curves": lambda T, C, t: splev(t, (T, [C, C * C], 3)),
    "splint": lambda T, C, e, f: interpolate.splint(e - 3, f, (T, C, 3)),
    "spalde": lambda T, C, e: np.array(interpolate.spalde(e, (T, C, 3))),
    "splder": lambda T, C, t: splev(t, interpolate.splder((T, padded(C), 3))),
    "splantider": lambda T, C, t: splev(t, interpolate.splantider((T, padded(C), 3), 2)),
    "insert": lambda T, C, e, t: splev(t, interpolate.insert(e, (T, C, 3), m=2)),
    "sproot": lambda T, C: interpolate.sproot((T, C, 3)),
    "splprep": lambda x, y, t: splev(t / 6, interpolate.splprep([x, y], s=0)[0]),
    "splprep, u": lambda x, y, t: splev(t, interpolate.splprep([y, y * y], u=x, s=0)[0]),
    "splprep, per": lambda y, t: splev(
        t / 6, interpolate.splprep([closed(y), closed(y * y + X)], s=0, per=1)[0]
    ),
    "splprep, t": lambda y, w, k, t: splev(
        t, interpolate.splprep([y, y * y], w, X, task=-1, t=with_ends(X, k))[0]
    ),
}  # fmt: skip
SURFACES = {
    "bisplrep": lambda v, W, t: interpolate.bisplev(
        t, t[:3], interpolate.bisplrep(*S.T, v, W, 0, 4, 0, 5, 2, 2, s=1e3)
    ),
    "bisplrep, t": lambda v, W, t: interpolate.bisplev(
        t, t[:3], interpolate.bisplrep(*S.T, v, W, 0, 4, 0, 5, 2, 2, -1, tx=KX[0], ty=KX[1])
    ),
    "bisplev": lambda C, e, t: interpolate.bisplev(
        t, e, (KX[0], KX[1], np.concatenate((C, C, C[:2])), 2, 2), dx=1
    ),
    "RectBivariateSpline": lambda gx, gy, z, p: RBS(gx, gy, z).ev(p[:, 0], p[:, 1]),
    "ev, dx": lambda z, p: RBS(GX, GY, z, kx=2).ev(p[:, 0], p[:, 1], dx=1, dy=1),
    "on a grid": lambda z, k, t: RBS(GX, GY, z)(k, t),
    "on a grid, dx": lambda z, k, t: RBS(GX, GY, z)(k + 0.05, t, dx=1),
    "integral": lambda z, e, f: RBS(GX, GY, z).integral(e - 2, f, e + 0.2, f + 1),
    "partial_derivative": lambda z, p: RBS(GX, GY, z).partial_derivative(1, 1)(*p.T, grid=False),
    "wider": lambda z, e, p: RBS(GX, GY, z, bbox=[e - 1, 5, -0.2, 6]).ev(p[:, 0], p[:, 1]),
    "polynomial": lambda gx, gy, z, p: RBS(gx, gy, z, s=1e3).ev(p[:, 0], p[:, 1]),
    "SmoothBivariateSpline": lambda s, v, W, p: interpolate.SmoothBivariateSpline(
        s[:, 0], s[:, 1], v, W, kx=2, ky=2, s=1e6
    ).ev(p[:, 0], p[:, 1]),
    "LSQBivariateSpline": lambda s, v, W, e, p: interpolate.LSQBivariateSpline(
        s[:, 0], s[:, 1], v, [e + 1], [2.5], W, kx=2, ky=2
    ).ev(p[:, 0], p[:, 1]),
    "LSQBivariateSpline, bbox": lambda v, p: interpolate.LSQBivariateSpline(
        *S.T, v, [2.0], [2.5], bbox=[0, 4, 0, 5], kx=2, ky=1
    ).ev(p[:, 0], p[:, 1]),
    "LSQBivariateSpline, negative sites": lambda s, v, p: interpolate.LSQBivariateSpline(
        s[:, 0] - 0.1, s[:, 1] - 3, v, [2.0], [0.5], kx=1, ky=1
    ).ev(p[:, 0], p[:, 1] - 3),
    "RectSphereBivariateSpline": lambda r, t: interpolate.RectSphereBivariateSpline(
        THETA, PHI, r
    ).ev(t / 2, t),
    "LSQSphereBivariateSpline": lambda v, t: interpolate.LSQSphereBivariateSpline(
        0.7 * S[:, 0] + 0.1, 1.2 * S[:, 1], v, np.array([1.4]), np.array([2.0, 4.0])
    )(t[:2] / 2, t[:2], grid=False),
    "values on the sphere": lambda t: interpolate.SmoothSphereBivariateSpline(
        0.7 * S[:, 0] + 0.1, 1.2 * S[:, 1], V, s=1e3
    ).ev(t / 2, t),
}
Linear, Cubic = interpolate.LinearNDInterpolator, interpolate.CloughTocher2DInterpolator
Nearest = interpolate.NearestNDInterpolator
SCATTERED = {
    "LinearNDInterpolator": lambda s, v, q: Linear(s, v)(q),
    "several values": lambda s, m, q: Linear(s, m, fill_value=0, rescale=True)(q[:, 0], q[:, 1]),
    "beyond": lambda v, q, e: Linear(S, v, e)(q * 2 - 1),
    "three dimensions": lambda S, V, Q: Linear(S, V)(Q),
    "complex": lambda v, q: Linear(S, v * (1 + 2j))(q),
    "CloughTocher2DInterpolator": lambda s, v, q: Cubic(s, v, tol=1e-13)(q),
    "CloughTocher2DInterpolator, rescale": lambda s, m, q: Cubic(s, m, tol=1e-13, rescale=True)(q),
    "NearestNDInterpolator": lambda v, q: Nearest(S, v)(q) + 0 * q[:, 0],
    "nearest of several": lambda s, m, q: Nearest(s, m, rescale=True)(q[:, 0], q[:, 1]),
    "griddata, nearest": lambda v, q: interpolate.griddata(S, v, q, "nearest"),
    "griddata, linear": lambda v, q: interpolate.griddata(S, v, 2 * q - 1, fill_value=0.0),
    "griddata, rescale": lambda v, q: interpolate.griddata(
        (S[:, 0], S[:, 1]), v, (q[:, 0], q[:, 1]), method="linear", rescale=True
    ),
    "griddata, cubic": lambda q: interpolate.griddata(S, V, q, method="cubic"),
    "griddata of a line": lambda x, y, t: interpolate.griddata(x, y, t, method="linear"),
    **{
        f"RBFInterpolator, {kernel}": lambda s, v, q, e, kernel=kernel: interpolate.RBFInterpolator(
            s, v, kernel=kernel, epsilon=e
        )(q)
        for kernel in (
            "linear", "thin_plate_spline", "cubic", "quintic", "multiquadric", "inverse_multiquadric",
            "inverse_quadratic", "gaussian",
        )
    },
    "RBFInterpolator, smoothing": lambda m, q, e: interpolate.RBFInterpolator(
        S, m, smoothing=e, degree=2
    )(q),
    "Rbf": lambda s, v, q, e: interpolate.Rbf(*s.T, v, epsilon=e)(q[:, 0], q[:, 1]),
    "Rbf, thin_plate": lambda v, q: interpolate.Rbf(*S.T, v, function="thin_plate")(*q.T),
    "Rbf, several": lambda m, q: interpolate.Rbf(*S.T, m, mode="N-D", smooth=0.1)(*q.T),
    "Rbf, a function": lambda v, q, e: interpolate.Rbf(
        *S.T, v, function=lambda self, r: np.exp(-self.epsilon * r), epsilon=e
    )(*q.T),
}  # fmt: skip
if "simplex_tolerance" in inspect.signature(interpolate.griddata).parameters:
    SCATTERED["griddata, simplex_tolerance"] = lambda s, v, q: interpolate.griddata(
        s, v, q, simplex_tolerance=2.0
    )
GRIDS = {
    **{
        f"interp1d, {kind}": lambda x, y, t, kind=kind: interpolate.interp1d(x, y, kind)(t)
        for kind in ("linear", "nearest", "zero", "quadratic", "previous", "next", 5)
    },
    "interp1d, fill_value": lambda y, t, e: interpolate.interp1d(
        X, y, fill_value=e, bounds_error=False
    )(3 * t),
    "interp1d, axis": lambda a, t: interpolate.interp1d(X, a, axis=0, fill_value="extrapolate")(2 * t),
    "interp1d, unsorted": lambda x, y, t: interpolate.interp1d(x[::-1], y)(t),
    **{
        f"grid, {method}": lambda gx, gy, z, p, method=method: grid(gx, gy, z, p, method)
        for method in ("linear", "nearest", "slinear")
    },
    "grid, cubic": lambda gx, gy, z, p: grid(gx, gy, z, p, "cubic", solver=spsolve),
    "grid, quintic": lambda g, p: grid(G8, G8, g, p, "quintic", solver=spsolve),
    "grid, pchip": lambda z, p: grid(GX[1:], GY, z[1:], p[:2], "pchip"),
    "grid, nu": lambda g, p: interpolate.RegularGridInterpolator(
        (G8, G8), g, "cubic", solver=spsolve
    )(p, nu=(1, 0)),
    "grid, beyond": lambda z, p: grid(GX, GY, z, 2 * p, "linear", bounds_error=False, fill_value=None),
    "grid, descending": lambda z, p: grid(GX[::-1], GY, z, p, "linear"),
    "grid in three dimensions": lambda n, Q: interpolate.RegularGridInterpolator(CELLS, n)(2 * Q),
    "interpn": lambda z, p: interpolate.interpn((GX, GY), z, p),
    "interpn, splinef2d": lambda gx, gy, z, p: interpolate.interpn((gx, gy), z, p, "splinef2d"),
}  # fmt: skip
PPoly, BPoly, NdPPoly = interpolate.PPoly, interpolate.BPoly, interpolate.NdPPoly
POLYNOMIALS = {
    "PPoly": lambda b, k, t: PPoly(b, within(k))(t),
    "antiderivative": lambda b, k, t: PPoly(b, within(k)).antiderivative(2)(t),
    "integrate": lambda c, e, f: PPoly(c, WIDE).integrate(e, f),
    "integrate, periodic": lambda c, e, f: PPoly(c, WIDE, extrapolate="periodic").integrate(e, f + 9),
    "roots": lambda c: PPoly(c, WIDE).roots(extrapolate=False),
    "solve": lambda x, y, e: interpolate.CubicSpline(x, y).solve(0.7 * e, extrapolate=False),
    "roots of several": lambda b: PPoly(b[:, :2, None] * np.array([1.0, 2.0]), SITES[:3]).roots()[1],
    "extend": lambda b, t: extended(PPoly, b, t),
    "from_bernstein_basis": lambda b, t: PPoly.from_bernstein_basis(BPoly(b, SITES))(t),
    "from_spline": lambda T, C, t: PPoly.from_spline((T, C, 3))(t),
    "BPoly": lambda b, k, t: BPoly(b, within(k))(t),
    "BPoly, nu": lambda b, k, t: BPoly(b, within(k))(t, 2),
    "BPoly, derivative": lambda b, t: BPoly(b, SITES).derivative()(t),
    "BPoly, antiderivative": lambda b, t: BPoly(b, SITES).antiderivative()(t),
    "BPoly, integrate": lambda b, e, f: BPoly(b, SITES).integrate(e, f),
    "BPoly, beyond": lambda b, t: np.nan_to_num(BPoly(b, SITES)(2 * t, extrapolate=False)),
    "from_power_basis": lambda b, t: BPoly.from_power_basis(PPoly(b, SITES))(t),
    "from_derivatives": lambda x, a, t: BPoly.from_derivatives(x[:4], a[:4])(t[:3]),
    "BPoly, extend": lambda b, t: extended(BPoly, b, t),
    "NdPPoly": lambda n, p: NdPPoly(n, BOXES)(p),
    "NdPPoly, nu": lambda n, p: NdPPoly(n, BOXES)(p, nu=(1, 1)),
    "NdPPoly, derivative": lambda n, p: NdPPoly(n, BOXES).derivative((1, 0))(p),
    "NdPPoly, antiderivative": lambda n, p: NdPPoly(n, BOXES).antiderivative((1, 0))(p),
    "NdPPoly, integrate": lambda n, e, f: NdPPoly(n, BOXES).integrate([[e, f], [e, f + 1]]),
    "NdPPoly, beyond": lambda n, p: np.nan_to_num(NdPPoly(n, BOXES)(3 * p, extrapolate=False)),
    **{
        f"CubicSpline, {bc}": lambda x, y, t, bc=bc: interpolate.CubicSpline(x, y, bc_type=bc)(t)
        for bc in ("not-a-knot", "natural")
    },
    "CubicSpline, periodic": lambda x, y, t: interpolate.CubicSpline(
        x, closed(y), bc_type="periodic"
    )(t),
    "CubicSpline, slopes": lambda x, y, e, t: interpolate.CubicSpline(
        x, y, bc_type=((1, e), (2, e))
    )(t),
    "CubicSpline, antiderivative": lambda x, y, t: interpolate.CubicSpline(x, y).antiderivative()(t),
    "CubicHermiteSpline": lambda x, y, w, t: interpolate.CubicHermiteSpline(x, y, w)(t),
    "pchip_interpolate": lambda x, y, t: interpolate.pchip_interpolate(x, y, t, der=1),
    "makima": lambda x, y, t: interpolate.Akima1DInterpolator(x, y, method="makima")(t),
}  # fmt: skip
BSpline, NdBSpline = interpolate.BSpline, interpolate.NdBSpline
SPLINES = {
    "BSpline": lambda T, C, t: BSpline(T, C, 3)(t),
    "derivative": lambda T, C, t: BSpline(T, C, 3).derivative(2)(t),
    "nu": lambda T, C, t: BSpline(T, C, 3)(t, nu=2),
    "antiderivative": lambda T, C, t: BSpline(T, C, 3).antiderivative()(t),
    "integrate": lambda T, C, e, f: BSpline(T, C, 3).integrate(e, f),
    "basis_element": lambda k, t: BSpline.basis_element(within(k))(t),
    "design_matrix": lambda T, t: BSpline.design_matrix(t, T, 3).toarray(),
    "insert_knot": lambda C, e, t: BSpline(np.arange(11.0), C, 3).insert_knot(e + 3.6)(t + 3),
    "NdBSpline": lambda l, p: NdBSpline(KNOTS, l, 3)(p),
    "NdBSpline, nu": lambda l, p: NdBSpline(KNOTS, l, 3)(p, nu=(1, 0)),
    "NdBSpline, knots": lambda T, p: NdBSpline((T, T), np.ones((7, 7)) * np.sin(np.arange(7)), 3)(p),
    "NdBSpline, design_matrix": lambda p: NdBSpline.design_matrix(p, KNOTS, 3).toarray(),
    "make_interp_spline": lambda x, y, t: interpolate.make_interp_spline(x, y)(t),
    "periodic": lambda x, y, t: interpolate.make_interp_spline(x, closed(y), bc_type="periodic")(t),
    "slopes": lambda x, y, e, t: interpolate.make_interp_spline(
        x, y, bc_type=([(1, e)], [(2, e)])
    )(t),
    "make_lsq_spline": lambda x, y, w, k, t: interpolate.make_lsq_spline(
        x, y, with_ends(x, k), w=w
    )(t),
    "normal equations": lambda x, a, w, k, t: interpolate.make_lsq_spline(
        x, a, with_ends(x, k), w=w, method="norm-eq"
    )(t),
    "make_smoothing_spline": lambda x, y, w, e, t: interpolate.make_smoothing_spline(
        x, y, w=w, lam=e
    )(t),
    "make_splrep": lambda x, y, t: interpolate.make_splrep(x, y, s=0)(t),
    "make_splrep, polynomial": lambda x, y, w, t: interpolate.make_splrep(x, y, w=w, s=1e3)(t),
    "make_splprep": lambda x, y, t: interpolate.make_splprep([x, y], s=0)[0](t / 6),
}  # fmt: skip
RATIONAL = {
    "AAA": lambda x, y, t: interpolate.AAA(x, y, max_terms=4)(t),
    "AAA, poles": lambda y: interpolate.AAA(X, y, max_terms=3).poles(),
    "FloaterHormannInterpolator": lambda x, y, t: interpolate.FloaterHormannInterpolator(x, y)(t),
    "roots": lambda x, y: interpolate.FloaterHormannInterpolator(x, y, d=2).roots(),
    "barycentric_interpolate": lambda x, y, t: interpolate.barycentric_interpolate(
        x[:5], y[:5], t, der=[0, 1], rng=1
    ),
    "add_xi": lambda x, y, t: added(x, y, t),
    "set_yi": lambda x, y, t: reset(x, y, t),
    "KroghInterpolator": lambda x, y, t: interpolate.KroghInterpolator(x[:5], y[:5])(t),
    "krogh_interpolate": lambda x, y, t: interpolate.krogh_interpolate(x[:5], y[:5], t, der=1),
    "lagrange": lambda x, y, t: interpolate.lagrange(x[:4], y[:4])(t),
    "pade": lambda y, t: quotient(y[:6] + 1, t),
    "approximate_taylor_polynomial": lambda e, t: interpolate.approximate_taylor_polynomial(
        lambda x: np.sin(x * e), 0.3, 3, 0.5
    )(t),
}
ALL = {
    f"{chapter}: {name}": f
    for chapter, table in (
        ("curves", CURVES), ("surfaces", SURFACES), ("scattered", SCATTERED), ("grids", GRIDS),
        ("polynomials", POLYNOMIALS), ("splines", SPLINES), ("rational", RATIONAL),
    )
    for name, f in table.items()
}  # fmt: skip


def weigh(y):
    """A real number that depends on every entry of the results."""
    y = np.asarray(y)
    weights = np.cos(1.3 * np.arange(y.size) + 0.3).reshape(y.shape)
    return np.sum(np.real(y * weights * (1 - 0.5j if np.iscomplexobj(y) else 1.0)))


def operands_of(f):
    """Its operands, and a direction for each."""
    names = [p.name for p in inspect.signature(f).parameters.values() if p.default is p.empty]
    args = [OPERANDS[name] for name in names]
    return args, [
        np.cos(1.7 * np.arange(np.size(x)) + i).reshape(np.shape(x)) for i, x in enumerate(args)
    ]


def difference(f, args, along, h=1e-4):
    """The derivative along a direction, by four values."""

    def at(s):
        return f(*[x + s * v for x, v in zip(args, along, strict=True)])

    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


def product(cotangents, along):
    return sum(np.sum(g * v) for g, v in zip(cotangents, along, strict=True))


BISPLREP = """
import numpy as np
from scipy.interpolate import bisplrep
x, y = np.meshgrid(np.arange(6.0), np.arange(6.0))
t = np.array([0.0, 0, 0, 2, 5, 5, 5])
tck = bisplrep(x.ravel(), y.ravel(), x.ravel() * 2, kx=2, ky=2, task=-1, tx=t, ty=t)
raise SystemExit(not (np.array_equal(tck[0], t) and np.array_equal(tck[1], t)))
"""


def skip_what_scipy_cannot_do(name):
    """There are versions whose bisplrep does not hand on its knots, and reads others from anywhere."""
    if name == "surfaces: bisplrep, t":
        plain = subprocess.run([sys.executable, "-c", BISPLREP], capture_output=True, check=False)
        if plain.returncode:
            pytest.skip("this SciPy itself fails")


@pytest.mark.parametrize("name", ALL)
def test_all_modes_agree_with_differences(name):
    skip_what_scipy_cannot_do(name)
    args, along = operands_of(ALL[name])

    def f(*args):
        return weigh(ALL[name](*args))

    slope = difference(f, args, along)
    value, cotangents = value_and_grad(f, tuple(range(len(args))))(*args)
    assert value == f(*args)
    np.testing.assert_allclose(product(cotangents, along), slope, rtol=1e-6, atol=1e-7)
    value, tangent = jvp(f, tuple(args), tuple(along))
    assert value == f(*args)
    np.testing.assert_allclose(tangent, slope, rtol=1e-6, atol=1e-7)
    with by_the_general_path():
        value, others = value_and_grad(f, tuple(range(len(args))))(*args)
    assert value == f(*args)
    for g, other in zip(cotangents, others, strict=True):
        np.testing.assert_allclose(other, g, rtol=1e-9, atol=1e-11)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "curves: UnivariateSpline", "curves: LSQUnivariateSpline", "curves: integral", "curves: insert",
        "curves: sproot", "curves: splrep, per", "surfaces: RectBivariateSpline",
        "surfaces: LSQBivariateSpline", "surfaces: LSQSphereBivariateSpline",
        "scattered: LinearNDInterpolator", "scattered: CloughTocher2DInterpolator",
        "scattered: NearestNDInterpolator", "scattered: RBFInterpolator, cubic", "grids: grid, linear",
        "grids: interp1d, fill_value", "polynomials: antiderivative", "polynomials: roots",
        "polynomials: BPoly", "polynomials: NdPPoly", "splines: make_lsq_spline", "splines: NdBSpline",
        "rational: roots",
    ],
)  # fmt: skip
def test_second_order(name):
    args, along = operands_of(ALL[name])

    def f(*args):
        return weigh(ALL[name](*args)) ** 2

    def slope(*args):
        return product(gradient(f, *args), along)

    expected = difference(slope, args, along)
    found = jvp(slope, tuple(args), tuple(along))[1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


NOISY = Y + 0.3 * np.cos(9 * X)
REFUSED = {
    "UnivariateSpline": lambda y, t: US(X, y, s=0.1)(t),
    "splrep": lambda y, t: splev(t, splrep(X, y, s=0.1)),
    "splprep": lambda y, t: splev(t / 6, interpolate.splprep([X, y], s=0.1)[0])[0],
    "make_splrep": lambda y, t: interpolate.make_splrep(X, y, s=0.1)(t),
}


@pytest.mark.parametrize("name", REFUSED)
def test_smoothing_fits_have_a_derivative_by_points_only(name):
    t = OPERANDS["t"]

    def f(y, t):
        return np.sum(np.asarray(REFUSED[name](y, t)) ** 2)

    with pytest.raises(UnsupportedError, match="chooses its knots"):
        gradient(lambda y: f(y, t), NOISY)
    with pytest.raises(UnsupportedError, match="chooses its knots"):
        jvp(lambda y: f(y, t), (NOISY,), (Y,))
    (found,) = gradient(lambda t: f(NOISY, t), t)
    expected = difference(lambda t: f(NOISY, t), [t], [np.ones(5)])
    np.testing.assert_allclose(np.sum(found), expected, rtol=1e-6)


SMOOTHED = {
    "UnivariateSpline": lambda s: US(X, NOISY, s=s)(1.3),
    "set_smoothing_factor": lambda s: smoother(NOISY, s, 1.3),
    "splrep": lambda s: splev(1.3, splrep(X, NOISY, s=s)),
    "ends": lambda s: splev(1.3, splrep(X, NOISY, s=0.1, xb=s - 0.9)),
    "splprep": lambda s: splev(0.3, interpolate.splprep([X, NOISY], s=s)[0])[0],
    "make_splrep": lambda s: interpolate.make_splrep(X, NOISY, s=s)(1.3),
    "RectBivariateSpline": lambda s: RBS(GX, GY, np.cos(9 * OPERANDS["z"]), s=s)(1.1, 2.2)[0, 0],
    "SmoothBivariateSpline": lambda s: interpolate.SmoothBivariateSpline(
        *S.T, V, kx=1, ky=1, s=10 * s
    ).ev(1.1, 2.2),
    "RectSphereBivariateSpline": lambda s: interpolate.RectSphereBivariateSpline(
        THETA, PHI, OPERANDS["r"], s=s
    ).ev(1.1, 2.2),
    "SmoothSphereBivariateSpline": lambda s: interpolate.SmoothSphereBivariateSpline(
        0.7 * S[:, 0] + 0.1, 1.2 * S[:, 1], V, s=90 * s
    ).ev(1.1, 2.2),
}


@pytest.mark.parametrize("name", SMOOTHED)
def test_how_smooth_a_fit_is_has_no_derivative(name):
    def f(s):
        return SMOOTHED[name](s) * 1.0

    assert f(0.1) != f(0.12)
    with pytest.raises(UnsupportedError, match="chooses its knots"):
        gradient(f, 0.1)
    with pytest.raises(UnsupportedError, match="chooses its knots"):
        jvp(f, (0.1,), (1.0,))


def test_smoothing_surfaces_have_a_derivative_by_points_only():
    z, p = np.cos(9 * OPERANDS["z"]), OPERANDS["p"]
    with pytest.raises(UnsupportedError, match="chooses its knots"):
        gradient(lambda z: np.sum(RBS(GX, GY, z, s=0.5).ev(*p.T)), z)
    (found,) = gradient(lambda p: np.sum(RBS(GX, GY, z, s=0.5).ev(p[:, 0], p[:, 1])), p)
    assert np.all(np.isfinite(found))
    assert np.any(found)


def test_sites_on_the_sphere_are_refused():
    r = OPERANDS["r"]

    def f(u):
        return np.sum(interpolate.RectSphereBivariateSpline(u, PHI, r).ev(THETA, THETA))

    with pytest.raises(UnsupportedError, match="by the values only"):
        gradient(f, THETA)


def test_a_periodic_spline_takes_no_knots():
    tck = splrep(X, closed(Y), per=1)
    with pytest.raises(UnsupportedError, match="periodic"):
        gradient(lambda x: splev(2.0, interpolate.insert(x, tck, per=1)), 2.2)


def test_a_multiple_root_is_refused():
    c = np.array([[1.0], [0.0], [0.0]])
    with pytest.raises(UnsupportedError, match="multiple root"):
        gradient(lambda c: np.sum(PPoly(c, np.array([-1.0, 1.0])).roots()), c)


def test_jumps_are_roots_that_follow_breakpoints():
    c = np.array([[-1.0, 1.0]])

    def f(c, x):
        return PPoly(c, x).roots()[0]

    found = gradient(f, c, np.array([0.0, 1.0, 2.0]))
    assert found[0].tolist() == [[0.0, 0.0]]
    assert found[1].tolist() == [0.0, 1.0, 0.0]


def test_points_beyond_all_triangles_have_the_fill_value():
    far = np.array([[9.0, 9.0], [1.3, 2.1]])

    def f(v, q):
        return np.sum(Linear(S, v, fill_value=2.0)(q)[:1])

    v̄, q̄ = gradient(f, V, far)
    assert not np.any(v̄)
    assert not np.any(q̄)
    assert f(V, far) == 2.0


def test_points_that_are_data_leave_no_nan():
    def f(s, v, q):
        return np.sum(interpolate.RBFInterpolator(s, v, kernel="linear")(q))

    assert all(np.all(np.isfinite(g)) for g in gradient(f, S, V, S[:3]))


@pytest.mark.skipif(not hasattr(_rbfinterp_np, "dsysv"), reason="other equations are solved")
@pytest.mark.parametrize("lower", [0, 1])
def test_symmetric_equations_follow_one_triangle(lower):
    a, b = np.array([[2.0, 1, 0], [5, -1, 0.5], [7, 8, 1]]), np.array([1.0, 2, 3])

    def f(a, b):
        return weigh(np.sin(lapack.dsysv(a, b, lower=lower)[2]))

    directions = [np.cos(np.arange(9.0)).reshape(3, 3), np.sin(np.arange(3.0) + 1)]
    found = gradient(f, a, b)
    assert not np.any((np.triu if lower else np.tril)(found[0], 1 if lower else -1))
    np.testing.assert_allclose(product(found, directions), difference(f, [a, b], directions))
    with pytest.raises(UnsupportedError, match="factors"):
        gradient(lambda a: np.sum(lapack.dsysv(a, b)[0]), a)
    with pytest.raises(UnsupportedError, match="singular"):
        gradient(lambda b: np.sum(lapack.dsysv(0 * a, b)[2]), b)


def test_nearest_neighbours_take_the_gradient_of_their_values():
    (found,) = gradient(lambda v: np.sum(Nearest(S, v)(S[[3, 3, 5]] + 1e-3)), V)
    assert found.tolist() == (2.0 * (np.arange(30) == 3) + (np.arange(30) == 5)).tolist()


@pytest.mark.thorough
def test_smoothing_by_cross_validation():
    """The parameter that is chosen depends on the data as the minimum does."""
    y, t = NOISY[:8], OPERANDS["t"][:2]

    def f(y):
        return np.sum(interpolate.make_smoothing_spline(X[:8], y)(t))

    expected = difference(f, [y], [Y[:8]], h=1e-2)
    np.testing.assert_allclose(np.sum(gradient(f, y)[0] * Y[:8]), expected, rtol=1e-3)


def test_no_points_and_lists_and_single_precision():
    (found,) = gradient(lambda y: np.sum(IUS(X, y)(np.zeros(0))) + np.sum(y), Y)
    assert found.tolist() == [1.0] * 10
    (found,) = gradient(lambda y: float(splev(1.3, splrep(X.tolist(), y))), Y.tolist())
    (expected,) = gradient(lambda y: float(splev(1.3, splrep(X, y))), Y)
    np.testing.assert_allclose(found, expected)
    (single,) = gradient(lambda y: float(splev(1.3, splrep(X, y))), Y.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-6)


def test_a_routine_is_where_this_version_has_it():
    assert (
        routines.routine("no_module.f", "_fitpack.none", "_fitpack_impl.splrep") is routines.splrep
    )
    none = routines.routine("_fitpack.none", "_bsplines.BSpline.none")
    with pytest.raises(UnsupportedError, match="lacks"):
        none(1.0)


MOVED = """
from types import SimpleNamespace
from scipy.interpolate import _fitpack_impl
name = "dfitpack" if hasattr(_fitpack_impl, "dfitpack") else "_fitpack"
module = getattr(_fitpack_impl, name)
setattr(_fitpack_impl, name, SimpleNamespace(**vars(module)))
del module.splev

import numpy as np
from morula import gradient
from scipy.interpolate import splint, splrep, splev
tck = splrep(np.arange(6.0), np.cos(np.arange(6.0)))
t, c, k = tck
assert np.any(gradient(lambda c: splint(0.5, 3.0, (t, c, k)), c)[0])
gradient(lambda c: splev(2.5, (t, c, k)) + 0.0, c)
"""


def test_a_routine_that_has_moved_is_refused():
    plain = subprocess.run([sys.executable, "-c", MOVED], capture_output=True, check=False)
    assert re.search("NoRuleError: .*splev", plain.stderr.decode())
