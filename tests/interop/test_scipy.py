"""SciPy's optimisers and solvers with derivatives of Morula's: same answers, fewer calls."""

import dataclasses
import pickle
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, optimize, sparse

from morula.interop import scipy as bridge
from morula.interop.scipy import constraint_hess, curve_jac, fprime, hess, hessp, jac, ode_jac


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


def test_sparse_hessians():
    x = np.linspace(0, 1, 40)
    found = hess(optimize.rosen, sparsity="auto")(x)
    np.testing.assert_allclose(found.toarray(), optimize.rosen_hess(x))
    again = hess(optimize.rosen, sparsity=found)(x + 1)
    np.testing.assert_allclose(again.toarray(), optimize.rosen_hess(x + 1))
