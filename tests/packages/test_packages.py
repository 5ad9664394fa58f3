"""Packages from elsewhere, as they are: geodesy, colour, orbits, fluids, steam, filters, finance …

Each function is called as a user of the package calls it. The value is that of the plain call, bit
for bit; the gradient is compared with finite differences, forward mode with the gradient.
"""

import numpy as np
import pytest

from morula import grad, gradient, jvp, withgradient

WHY = "a package of the extra `packages`"


def check(f, *args, second=False):
    """`f`, its gradient and its derivative along a direction; also the second one."""
    args = [np.asarray(x) if isinstance(x, list) else x for x in args]
    rng = np.random.default_rng(0)
    along = [
        x * rng.uniform(0.5, 1.5, x.shape)
        if isinstance(x, np.ndarray)
        else x * float(rng.uniform(0.5, 1.5))
        for x in args
    ]

    def on_line(s):
        return f(*[x + s * v for x, v in zip(args, along, strict=True)])

    h = 1e-4
    expected = 8 * (on_line(h) - on_line(-h)) - (on_line(2 * h) - on_line(-2 * h))
    expected /= 12 * h
    y = f(*args)
    value, gradients = withgradient(f, *args)
    assert value == y
    slope = sum(np.sum(np.asarray(g) * v) for g, v in zip(gradients, along, strict=True))
    assert slope == pytest.approx(expected, rel=1e-6)
    value, ẏ = jvp(f, tuple(args), tuple(along))
    assert value == y
    assert ẏ == pytest.approx(slope, rel=1e-9)
    if second:
        slope = grad(on_line)
        expected = (slope(h) - slope(-h)) / (2 * h)
        assert jvp(slope, (0.0,), (1.0,))[1] == pytest.approx(expected, rel=1e-4)
        assert gradient(slope, 0.0)[0] == pytest.approx(expected, rel=1e-4)


def test_geodesics_on_the_ellipsoid():
    geodesic = pytest.importorskip("geographiclib.geodesic", reason=WHY)
    earth = geodesic.Geodesic.WGS84
    check(lambda a, b, c, s: earth.Direct(a, b, c, s)["lat2"], 40.6, -73.8, 51.6, 5.5e6)


def test_coordinates_on_the_earth():
    pymap3d = pytest.importorskip("pymap3d", reason=WHY)
    utm = pytest.importorskip("utm", reason=WHY)
    check(lambda a, b, c: pymap3d.geodetic2enu(a, b, c, 42.0, -82.0, 200.0)[0], 42.1, -81.0, 1e3)
    check(lambda e, n: utm.to_latlon(e, n, 32, "U")[1], 395201.3, 5673135.2)


def test_colours():
    objects = pytest.importorskip("colormath.color_objects", reason=WHY)
    from colormath.color_conversions import convert_color

    def product(r, g, b):
        lab = convert_color(objects.sRGBColor(r, g, b), objects.LabColor)
        return lab.lab_l + 2 * lab.lab_a * lab.lab_b

    check(product, 0.3, 0.5, 0.7)


def test_orbits():
    model = pytest.importorskip("sgp4.model", reason=WHY)

    def position(eccentricity, inclination, motion):
        satellite = model.Satrec()
        elements = (eccentricity, 1.2, inclination, 2.3, motion, 3.4)
        satellite.sgp4init(model.WGS72, "i", 25544, 25000.5, 3.8792e-05, 0.0, 0.0, *elements)
        _, r, v = satellite.sgp4_tsince(100.0)
        return r[0] * r[1] + r[2] + v[0]

    check(position, 0.0007, 0.9, 0.0676)


def test_flow_in_pipes():
    fluids = pytest.importorskip("fluids", reason=WHY)

    def loss(length, diameter, speed):
        f = fluids.friction.friction_factor(Re=speed * diameter / 1e-6)
        k = fluids.K_from_f(fd=f, L=length, D=diameter)
        return fluids.dP_from_K(K=k, rho=1000, V=speed)

    check(loss, 100.0, 0.1, 2.0)
    check(lambda re, roughness: fluids.friction.friction_factor(Re=re, eD=roughness), 1e5, 1e-4)


def test_properties_of_chemicals():
    chemicals = pytest.importorskip("chemicals", reason=WHY)

    def pressure(temperature):
        return chemicals.vapor_pressure.Wagner(
            temperature, 190.53, 4596420.0, a=-6.00435, b=1.1885, c=-0.834082, d=-1.22833
        )

    check(pressure, 150.0, second=True)
    coefficients = (73.649, -7258.2, -7.3037, 4.1653e-6, 2)
    check(lambda temperature: chemicals.dippr.EQ101(temperature, *coefficients), 300.0)


def test_steam():
    iapws97 = pytest.importorskip("iapws.iapws97", reason=WHY)
    check(lambda t, p: iapws97._Region1(t, p)["h"], 300.0, 3.0)


def test_filters():
    kalman = pytest.importorskip("filterpy.kalman", reason=WHY)
    from filterpy.common import Q_discrete_white_noise

    def likelihood(q, r):
        kf = kalman.KalmanFilter(dim_x=2, dim_z=1)
        kf.x = np.array([0.0, 1.0])
        kf.F = np.array([[1.0, 1.0], [0.0, 1.0]])
        kf.H = np.array([[1.0, 0.0]])
        kf.P *= 10.0
        kf.R *= r
        kf.Q = Q_discrete_white_noise(dim=2, dt=1.0, var=q)
        total = 0.0
        for z in (0.0, 0.8, 0.9):
            kf.predict()
            kf.update(z)
            total = total + kf.log_likelihood
        return total

    check(likelihood, 0.3, 0.5)


def test_rotations():
    pyquaternion = pytest.importorskip("pyquaternion", reason=WHY)
    transforms3d = pytest.importorskip("transforms3d", reason=WHY)

    def rotated(axis, angle, v):
        x, y, z = pyquaternion.Quaternion(axis=axis, angle=angle).rotate(v)
        return x * y + z

    check(rotated, [1.0, 2.0, 0.5], 0.7, [1.0, 0.0, 3.0])

    def quaternion(a, b, c):
        return transforms3d.quaternions.mat2quat(transforms3d.euler.euler2mat(a, b, c))[2]

    check(quaternion, 0.3, 0.4, 0.5)


def test_finance():
    npf = pytest.importorskip("numpy_financial", reason=WHY)
    check(npf.irr, [-100.0, 39.0, 59.0, 55.0, 20.0])
    check(npf.npv, 0.08, [-100.0, 39.0, 59.0, 55.0, 20.0])
    check(lambda payment: npf.rate(10, payment, -3500.0, 10000.0), 0.1)


def test_light_of_the_sun():
    pvlib = pytest.importorskip("pvlib", reason=WHY)
    check(pvlib.atmosphere.get_relative_airmass, 60.0)
    check(
        lambda tilt: pvlib.irradiance.haydavies(tilt, 180.0, 100.0, 500.0, 1300.0, 40.0, 190.0),
        30.0,
    )


def test_propagation_of_errors():
    uncertainties = pytest.importorskip("uncertainties", reason=WHY)
    umath = pytest.importorskip("uncertainties.umath", reason=WHY)

    def spread(x):
        a, b = uncertainties.ufloat(x[0], 0.1), uncertainties.ufloat(x[1], x[0] * 0.2)
        y = umath.sin(a) * b + a**2
        return y.std_dev * y.nominal_value

    check(spread, np.array([0.7, 1.3]))


def test_shapes_of_lines():
    lineshapes = pytest.importorskip("lmfit.lineshapes", reason=WHY)
    x = np.linspace(-1.0, 1.0, 9)
    check(lambda a, c, s: (lineshapes.voigt(x, a, c, s) ** 2).sum(), 1.3, 0.1, 0.4, second=True)


@pytest.mark.parametrize("method", ["RK23", "RK45"])
def test_differential_equations_by_the_code_of_scipy(method):
    from scipy.integrate._ivp.rk import RK23, RK45

    def end(p, y0):
        def slopes(t, y):
            return [p[0] * y[0] - y[0] * y[1], -p[1] * y[1] + y[0] * y[1]]

        solver = {"RK23": RK23, "RK45": RK45}[method](slopes, 0.0, y0, 0.4, rtol=1e-4)
        while solver.status == "running":
            solver.step()
        return solver.y[0] * solver.y[1]

    check(end, [1.5, 3.0], [1.0, 1.2])


def test_minima_of_many_functions_at_once_by_the_code_of_scipy():
    elementwise = pytest.importorskip("scipy.optimize.elementwise", reason="SciPy 1.15 has it")

    def height(a):
        found = elementwise.find_minimum(
            lambda v, a: (v - a) ** 2 + 0.1 * v**4, (-1.0, 0.5, 2.0), args=(a,), maxiter=4
        )
        return found.f_x

    check(height, 0.9)


def test_quantities_of_astropy():
    u = pytest.importorskip("astropy.units", reason=WHY)
    x = [1.5, 2.5, 3.5]

    def power(T):
        flux = 5.67e-8 * u.W / u.m**2 / u.K**4 * (100.0 * T * u.K) ** 4
        return (4 * np.pi * u.m**2 * flux).sum().to_value("kW")

    def mixed(x):
        length = np.hypot(x * u.km + x * u.m, x[0] * u.cm)
        area = np.concatenate([length, 2.0 * length]) ** 2
        return (area.mean() / np.sqrt(area[0])).to_value("m") + np.sin(x * 30 * u.deg)[0].value

    check(power, x)
    check(mixed, x)
    check(lambda x: (x * u.um).to(u.THz, equivalencies=u.spectral())[1].value, x)


def test_quantities_of_unyt():
    unyt = pytest.importorskip("unyt", reason=WHY)
    x = [1.5, 2.5, 3.5]

    def f(x):
        length = x * unyt.km + x * unyt.m
        work = np.dot(length, x * unyt.N).to_value("J")
        return (
            work
            + np.sin(x[0] * 30 * unyt.degree).item()
            + np.sqrt(length * length[0])[1].to_value("m")
        )

    check(f, x)
