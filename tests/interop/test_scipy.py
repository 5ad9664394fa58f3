"""SciPy's optimisers and solvers with derivatives of Morula's: same answers, fewer calls."""

import dataclasses
import pickle
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, optimize, sparse

from morula.interop import scipy as bridge
from morula.interop.scipy import constraint_hess, curve_jac, fprime, hess, hessp, jac, ode_jac
from morula.testing import check_gradient


def rosen(x, a=100.0):
    return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


X0 = np.array([-1.2, 1.0, 0.5])


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("BFGS", {}),
        ("L-BFGS-B", {}),
        ("CG", {}),
        ("SLSQP", {}),
        ("Newton-CG", {"hessp": hessp(rosen)}),
        ("trust-krylov", {"hessp": hessp(rosen)}),
        ("trust-exact", {"hess": hess(rosen)}),
        ("trust-constr", {"hess": hess(rosen)}),
    ],
)
def test_minimize(method, given):
    x0 = np.array([0.8, 0.7]) if given else X0
    found = optimize.minimize(rosen, x0, (50.0,), method, jac=jac(rosen), tol=1e-8, **given)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)
    if method in ("BFGS", "L-BFGS-B", "SLSQP"):
        without = optimize.minimize(rosen, X0, (50.0,), method, tol=1e-8)
        assert found.nfev < without.nfev / 2


def valley(x, a, b):
    return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + b * (1 - x[:-1]) ** 2)


def edge(x, c):
    return np.array([c - x[0] * x[1], c - x[2]])


def fenced():
    return {
        "fun": lambda x: edge(x, 0.5),
        "lb": 0.0,
        "ub": np.inf,
        "jac": jac(lambda x: edge(x, 0.5)),
        "hess": constraint_hess(lambda x: edge(x, 0.5)),
    }


BOUNDS = [(None, 0.9)] * 3
SECOND = {"hess": {"hess": hess(valley)}, "hessp": {"hessp": hessp(valley)}}


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("CG", {}),
        ("BFGS", {}),
        ("Newton-CG", {}),
        ("Newton-CG", SECOND["hess"]),
        ("Newton-CG", SECOND["hessp"]),
        ("L-BFGS-B", {"bounds": BOUNDS}),
        ("TNC", {"bounds": BOUNDS}),
        ("SLSQP", {"constraints": {"type": "ineq", "fun": edge, "jac": jac(edge), "args": (0.5,)}}),
        ("trust-constr", {"bounds": BOUNDS, **SECOND["hess"]}),
        (
            "trust-constr",
            {"constraints": optimize.NonlinearConstraint(**fenced()), **SECOND["hessp"]},
        ),
        ("dogleg", SECOND["hess"]),
        ("trust-ncg", SECOND["hess"]),
        ("trust-ncg", SECOND["hessp"]),
        ("trust-krylov", SECOND["hessp"]),
        ("trust-exact", SECOND["hess"]),
    ],
)
def test_every_method_with_arguments_limits_and_a_callback(method, options):
    seen = []
    x0, args = np.array([0.8, 0.7, 0.4]), (5.0, 1.0)
    found = optimize.minimize(
        valley, x0, args, method, jac(valley), callback=lambda *x: seen.append(1), **options
    )
    limits = {key: options[key] for key in ("bounds", "constraints") if key in options}
    by_differences = optimize.minimize(valley, x0, args, tol=1e-9, **limits)
    np.testing.assert_allclose(found.x, by_differences.x, atol=2e-3)
    assert found.fun < by_differences.fun + 1e-4
    assert len(seen) >= found.nit - 1 > 0


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
@pytest.mark.parametrize("method", ["BFGS", "CG", "SLSQP", "trust-ncg"])
def test_an_array_of_one_entry_is_a_number_for_minimize(shape, method):
    f = lambda x: np.reshape(np.sum((x - 1.0) ** 2), shape)
    second = {"hessp": hessp(f)} if method == "trust-ncg" else {}
    found = optimize.minimize(f, np.array([0.0, 3.0]), method=method, jac=jac(f), **second)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)
    assert jac(f)(np.ones(2)).shape == (2,)
    one = lambda x: np.array([x[0] ** 2 - 2])
    for method in ("trf", "lm"):
        assert optimize.least_squares(one, [1.0], jac(one), method=method).x == pytest.approx(
            2**0.5
        )
    assert optimize.root(one, [1.0], jac=jac(one)).x == pytest.approx(2**0.5)


def product(x, scale=1.0):
    return scale * x[0] ** 2 * x[1] ** 2


X32 = np.array([0.5, 2.0], np.float32)
HELPERS = {
    "jac": lambda x: jac(product)(x),
    "jac of a vector": lambda x: jac(lambda x: x**3)(x),
    "hess": lambda x: hess(product)(x),
    "hessp": lambda x: hessp(product)(x, np.ones_like(x)),
    "constraint_hess": lambda x: constraint_hess(lambda x: x**3)(x, np.ones_like(x)),
    "curve_jac": lambda x: curve_jac(lambda t, a, b: a * np.array([t, t]) ** b)(
        x.dtype.type(3), *x
    ),
    "ode_jac": lambda x: ode_jac(lambda t, y: [y[0] * y[1], y[0]])(0.0, x),
    "fprime": lambda x: fprime(lambda x: x**3)(x),
}


@pytest.mark.parametrize("name", HELPERS)
def test_dtypes_and_derivatives_of_what_they_give(name):
    f = HELPERS[name]
    want = f(X32.astype(float))
    for dtype in (np.float16, np.float32, np.longdouble):
        found = f(X32.astype(dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, want, rtol=1e-2)
    if name != "curve_jac":
        whole = f(np.array([1, 2]))
        assert whole.dtype == np.float64
        np.testing.assert_array_equal(whole, f(np.array([1.0, 2.0])))
    if "hess" not in name:
        check_gradient(lambda x: np.sum(np.sin(f(x))), X32.astype(float))


def test_derivatives_at_complex_points():
    cube = lambda z, c: z**3 - c
    z = 1 + 2j
    assert fprime(cube)(z, 1.0) == pytest.approx(3 * z**2)
    assert fprime(fprime(cube))(z, 1.0) == pytest.approx(6 * z)
    both = np.array([z, 2 - 1j])
    np.testing.assert_allclose(fprime(cube)(both, 1.0), 3 * both**2)
    second = {"fprime": fprime(cube), "fprime2": fprime(fprime(cube))}
    root = np.exp(2j * np.pi / 3)
    assert optimize.newton(cube, -0.4 + 1j, args=(1.0,), **second) == pytest.approx(root)
    with pytest.raises(TypeError, match=r"size_squared is not holomorphic at .*wirtinger"):
        fprime(size_squared)(z)
    growth = lambda t, y: 1j * y**2 - y
    y0 = [1 + 1j, 0.5]
    found = integrate.solve_ivp(growth, (0, 1), y0, "BDF", jac=ode_jac(growth), rtol=1e-8)
    want = integrate.solve_ivp(growth, (0, 1), y0, "DOP853", rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.y[:, -1], want.y[:, -1], rtol=1e-4)


def size_squared(z):
    return np.abs(z) ** 2


def test_values_are_those_of_scipy():
    x = np.array([0.5, 2.0, -1.0])
    np.testing.assert_allclose(jac(rosen)(x), optimize.rosen_der(x))
    np.testing.assert_allclose(hess(rosen)(x), optimize.rosen_hess(x))
    np.testing.assert_allclose(hessp(rosen)(x, X0), optimize.rosen_hess_prod(x, X0))
    np.testing.assert_allclose(hessp(rosen)(x, X0, 7.0), hess(rosen)(x, 7.0) @ X0)
    assert jac(rosen)(np.array([1, 2, 3])).dtype == float


def test_memory_is_new_at_every_call():
    kept = np.zeros(3)

    def passes_on(x):
        return x

    for f, x in ((rosen, X0.copy()), (passes_on, X0.copy()), (lambda x: x @ kept, X0.copy())):
        j = jac(f)
        a, b = j(x), j(x)
        assert not np.shares_memory(a, b)
        before = b.copy()
        a += 1.0
        np.testing.assert_array_equal(b, before)
        np.testing.assert_array_equal(j(x), before)
        assert not any(np.shares_memory(a, y) for y in (x, kept))
        assert a.flags.writeable


def test_constraints():
    def circle(x):
        return np.array([x[0] ** 2 + x[1] ** 2, x[0] * x[1]])

    v = np.array([2.0, -1.0])
    np.testing.assert_allclose(constraint_hess(circle)(np.ones(2), v), [[4, -1], [-1, 4]])
    constraint = optimize.NonlinearConstraint(
        circle, [-np.inf, -np.inf], [1.0, 0.3], jac=jac(circle), hess=constraint_hess(circle)
    )

    def f(x):
        return -x[0] - 2 * x[1]

    found = optimize.minimize(
        f, [0.1, 0.2], method="trust-constr", jac=jac(f), hess=hess(f), constraints=[constraint]
    )
    by_differences = optimize.minimize(
        f,
        [0.1, 0.2],
        method="trust-constr",
        constraints=[optimize.NonlinearConstraint(circle, [-np.inf, -np.inf], [1.0, 0.3])],
    )
    np.testing.assert_allclose(found.x, by_differences.x, atol=1e-3)


def test_least_squares_and_root():
    t = np.linspace(0, 1, 20)

    def residuals(p, noise=0.0):
        return p[0] * np.exp(-p[1] * t) + p[2] - (2 * np.exp(-3 * t) + 0.5) + noise

    with_it = optimize.least_squares(residuals, [1.0, 1.0, 0.0], jac(residuals), args=(0.0,))
    without = optimize.least_squares(residuals, [1.0, 1.0, 0.0])
    np.testing.assert_allclose(with_it.x, [2.0, 3.0, 0.5], atol=1e-6)
    np.testing.assert_allclose(with_it.x, without.x, atol=1e-6)
    assert jac(residuals)(np.ones(3)).shape == (20, 3)

    def equations(x, c):
        return [x[0] + 0.5 * (x[0] - x[1]) ** 3 - c, 0.5 * (x[1] - x[0]) ** 3 + x[1]]

    found = optimize.root(equations, [0.0, 0.0], (1.0,), jac=jac(equations))
    without = optimize.root(equations, [0.0, 0.0], (1.0,))
    np.testing.assert_allclose(found.x, without.x, rtol=1e-8)
    assert found.nfev < without.nfev

    both = optimize.root(
        lambda x: (equations(x, 1.0), jac(equations)(x, 1.0)), [0.0, 0.0], jac=True
    )
    np.testing.assert_allclose(both.x, without.x, rtol=1e-8)


@pytest.mark.parametrize("n", [1, 2])
def test_solvers_take_the_jacobian_of_one_residual_as_a_row(n):
    f = lambda x: np.array([np.sum(x**2) - 4.0])
    x0 = np.ones(n)
    assert jac(f)(x0).shape == (n,)
    for method in ("trf", "dogbox", "lm")[: 3 if n == 1 else 2]:
        found = optimize.least_squares(f, x0, jac=jac(f), method=method)
        assert found.jac.shape == (1, n)
        np.testing.assert_allclose(f(found.x), 0, atol=1e-6)
    for method in ("hybr", "lm") if n == 1 else ():
        np.testing.assert_allclose(optimize.root(f, x0, jac=jac(f), method=method).x, 2)
    distance = lambda x: np.sum((x - 3.0) ** 2)
    on_circle = optimize.NonlinearConstraint(f, 0, 0, jac=jac(f), hess=constraint_hess(f))
    for given in (on_circle, {"type": "eq", "fun": f, "jac": jac(f)}):
        method = "SLSQP" if isinstance(given, dict) else "trust-constr"
        found = optimize.minimize(distance, x0, jac=jac(distance), constraints=given, method=method)
        np.testing.assert_allclose(found.x, 2 / np.sqrt(n), rtol=1e-5)


def test_sparse_jacobians():
    n = 30

    def chain(x):
        y = 3 * x - x**3
        return y - np.concatenate([[0.0], x[:-1]]) - np.concatenate([x[1:], [0.0]]) + 1

    j = jac(chain, sparsity="auto")(np.linspace(0, 1, n))
    assert sparse.issparse(j)
    assert j.nnz <= 3 * n
    np.testing.assert_allclose(j.toarray(), jac(chain)(np.linspace(0, 1, n)))
    tight = {"ftol": 1e-12, "xtol": 1e-12, "gtol": 1e-12}
    found = optimize.least_squares(chain, np.zeros(n), jac(chain, sparsity="auto"), **tight)
    without = optimize.least_squares(chain, np.zeros(n), **tight)
    np.testing.assert_allclose(found.fun, without.fun, atol=1e-6)


def test_curve_fit():
    def model(x, a, b, c):
        return a * np.exp(-b * x) + c

    x = np.linspace(0, 4, 50)
    y = model(x, 2.5, 1.3, 0.5) + 0.01 * np.random.default_rng(0).standard_normal(50)
    assert curve_jac(model)(x, 2.5, 1.3, 0.5).shape == (50, 3)
    for options in ({}, {"sigma": np.linspace(1, 2, 50)}, {"bounds": (0, 10)}):
        p, cov = optimize.curve_fit(model, x, y, jac=curve_jac(model), **options)
        q, want = optimize.curve_fit(model, x, y, **options)
        np.testing.assert_allclose(p, q, rtol=1e-5)
        np.testing.assert_allclose(cov, want, rtol=1e-3)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_stiff_differential_equations(method):
    def robertson(t, y, k):
        a, b, c = y
        return [-0.04 * a + k * b * c, 0.04 * a - k * b * c - 3e7 * b**2, 3e7 * b**2]

    run = {"method": method, "args": (1e4,), "rtol": 1e-6, "atol": [1e-8, 1e-12, 1e-8]}
    span, y0 = (0, 40.0), [1.0, 0.0, 0.0]
    found = integrate.solve_ivp(robertson, span, y0, jac=ode_jac(robertson), **run)
    without = integrate.solve_ivp(robertson, span, y0, **run)
    np.testing.assert_allclose(found.y[:, -1], without.y[:, -1], rtol=1e-4)
    assert found.nfev <= without.nfev
    if method != "LSODA":
        sparse_one = integrate.solve_ivp(
            robertson, span, y0, jac=ode_jac(robertson, sparsity="auto"), **run
        )
        np.testing.assert_allclose(sparse_one.y[:, -1], found.y[:, -1], rtol=1e-6)


def test_scalar_roots():
    def f(x, c):
        return x**3 - c

    assert fprime(f)(2.0, 1.0) == 12.0
    assert fprime(fprime(f))(2.0, 1.0) == 12.0
    second = {"fprime": fprime(f), "fprime2": fprime(fprime(f))}
    assert optimize.newton(f, 1.5, args=(2.0,), **second) == pytest.approx(2 ** (1 / 3))
    many = optimize.newton(f, np.array([1.5, 1.0]), args=(np.array([2.0, 3.0]),), **second)
    np.testing.assert_allclose(many, np.cbrt([2.0, 3.0]))
    found = optimize.root_scalar(f, (2.0,), method="halley", x0=1.5, **second)
    assert found.root == pytest.approx(2 ** (1 / 3))


@dataclasses.dataclass
class Line:
    slope: float
    offset: list
    name: str = "line"


def test_solvers_for_structures():
    t = np.linspace(0, 1, 9)
    data = 3 * t - 1

    def residuals(p, scale=1.0):
        return scale * (p.slope * t + p.offset[0] - data)

    def loss(p, scale=1.0):
        return np.sum(residuals(p, scale) ** 2)

    start = Line(0.0, [0.0])
    for method in (None, "Nelder-Mead", "trust-exact", "trust-krylov"):
        found = bridge.minimize(loss, start, (2.0,), method, tol=1e-10)
        assert type(found.params) is Line
        assert found.params.name == "line"
        np.testing.assert_allclose([found.params.slope, found.params.offset[0]], [3, -1], atol=1e-3)
    assert (start.slope, start.offset) == (0.0, [0.0])
    found = bridge.least_squares(residuals, start, (2.0,))
    assert found.params.slope == pytest.approx(3.0)
    found = bridge.root(
        lambda p: {"a": p["x"] ** 2 - 4, "b": [p["y"] - p["x"]]}, {"x": 1.0, "y": 0}
    )
    assert found.params == pytest.approx({"x": 2.0, "y": 2.0})


@pytest.mark.parametrize(
    "method",
    [
        "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP", "dogleg", "trust-ncg", "Powell",
        "COBYLA", "COBYQA",
    ],
)  # fmt: skip
def test_every_method_for_structures(method):
    start = (2, {"a": np.array([0.0, 1.0]), "none": None, "on": True}, [])

    def loss(p, c):
        return c * ((p[0] - 1) ** 2 + np.sum((p[1]["a"] - p[0]) ** 2))

    found = bridge.minimize(loss, start, (2.0,), method, tol=1e-8)
    n, rest, empty = found.params
    np.testing.assert_allclose([n, *rest["a"]], 1.0, atol=1e-3)
    assert (type(n), rest["none"], rest["on"], empty) == (float, None, True, [])


def test_options_of_the_user_come_first():
    f = lambda p: (p["a"] - 1.0) ** 2
    slopes = []
    own = lambda v: slopes.append(1) or 2 * (v - 1.0)
    for given in (None, "2-point", own):
        assert bridge.minimize(f, {"a": 0.0}, jac=given).params["a"] == pytest.approx(1.0)
    assert slopes
    found = bridge.minimize(f, {"a": 0.0}, method="L-BFGS-B", bounds=[(0, 0.5)])
    assert found.params == {"a": 0.5}


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov", "df-sane"])
def test_every_method_of_root_for_structures(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of a Jacobian that is not used
        found = bridge.root(
            lambda p: [p["a"] ** 2 - 2, p["b"] - p["a"]], {"a": 1.0, "b": 1}, method=method
        )
    assert found.params == pytest.approx({"a": 2**0.5, "b": 2**0.5}, rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"method": "lm"}, {"sparsity": "auto"}])
def test_residuals_in_a_structure(options):
    residuals = lambda p: {"u": p["a"] ** 2 - 2, "v": [p["b"] - p["a"], np.zeros((2, 1))]}
    found = bridge.least_squares(residuals, {"a": 1.0, "b": 1.0}, **options)
    assert found.params == pytest.approx({"a": 2**0.5, "b": 2**0.5})


def test_they_pickle():
    for made in (jac(rosen), hess(rosen)):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(made))(X0), made(X0))


def test_the_example_finds_the_optimum_that_differences_find_in_fewer_calls():
    pytest.importorskip("sklearn", reason="the extra examples is not installed")
    path = Path(__file__).parents[2] / "examples" / "fit.py"
    example = runpy.run_path(str(path))
    found, errors = example["fit"]()
    loss = example["negative_log_likelihood"]
    x0, f, unravel = bridge.flat(loss, found.params)
    without = optimize.minimize(f, 0.9 * x0, method="BFGS")
    np.testing.assert_allclose(found.params["slopes"], unravel(without.x)["slopes"], atol=2e-3)
    assert found.fun <= without.fun + 1e-4
    assert found.nfev < without.nfev / 2
    assert np.all(errors["slopes"] > 0.02)


def test_errors_say_what_is_wrong():
    with pytest.raises(TypeError, match=r"gradient needs one real number.*ndarray of shape \(2,\)"):
        hess(lambda x: x)(np.ones(2))
    with pytest.raises(TypeError, match="which returned a str"):
        jac(lambda x: "a")(np.ones(2))
    with pytest.raises(ValueError, match="sparsity is 'auto' or a matrix, not 'yes'"):
        hess(lambda x: np.sum(x**2), sparsity="yes")(np.ones(2))
    for make in (jac, hess):
        for point in ({"a": 1.0}, np.array([1, 2], object), "abc", np.array([True])):
            with pytest.raises(
                TypeError, match=r"a point is a number or an array .* or morula\.ravel"
            ):
                make(rosen)(point)
    for make in (jac, hess):
        with pytest.raises(TypeError, match=r"output of .*rosen, which returned a complex"):
            make(rosen)(np.array([1j, 2.0]), a=1.0)
    with pytest.raises(ValueError, match=r"the tangent of argument 0 .* shape \(2,\)"):
        hessp(rosen)(X0, np.ones(2))
    with pytest.raises(ValueError, match=r"\(1,\) and \(2,\) not aligned"):
        constraint_hess(lambda x: [x[0] ** 2, x[1] ** 2])(X0, np.ones(1))
    for solve in (bridge.minimize, bridge.least_squares, bridge.root):
        with pytest.raises(TypeError, match="real and imaginary parts as parameters"):
            solve(lambda p: abs(p["z"] - 1j), {"z": 0j})
        with pytest.raises(TypeError, match="no numbers in the parameters"):
            solve(lambda p: 1.0, {"name": "line", "none": None})
    with pytest.raises(TypeError, match="itself, which returned a dict"):
        bridge.minimize(itself, {"a": 1.0})


def itself(params):
    return params


def test_sparse_hessians():
    x = np.linspace(0, 1, 40)
    found = hess(optimize.rosen, sparsity="auto")(x)
    np.testing.assert_allclose(found.toarray(), optimize.rosen_hess(x))
    again = hess(optimize.rosen, sparsity=found)(x + 1)
    np.testing.assert_allclose(again.toarray(), optimize.rosen_hess(x + 1))
    neighbours = lambda x: x[1:] ** 2 * x[:-1]
    v = np.arange(39.0)
    found = constraint_hess(neighbours, sparsity="auto")(x, v)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), constraint_hess(neighbours)(x, v))
